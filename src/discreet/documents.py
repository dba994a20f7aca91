"""Files that travel: versioned JSON that is either read whole or refused with a reason.

A document carries its format, its version and the SHA-256 of its canonical form. The digest
finds damage and careless edits; it is no signature, and nobody should read it as one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.errors import FormatError

__all__ = ["Body", "canonical", "digest_of", "dump", "load", "read_text", "write_text"]

LARGEST = 256 * 1024 * 1024
"""Documents beyond this many characters are refused before they are parsed."""

B = TypeVar("B", bound="Body")


class Body(BaseModel):
    """Base of the shapes on disk: unknown fields are refused, nothing is executed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=True)


def _plain(value: Any) -> Any:
    """JSON has no infinity: it travels as the word ``"inf"``; NaN does not travel at all."""
    if isinstance(value, float):
        if math.isnan(value):
            raise FormatError("NaN cannot be written to a file; find out where it came from")
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def canonical(body: Mapping[str, Any]) -> bytes:
    """Write a body in the one way that its digest is taken of."""
    text = json.dumps(_plain(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def digest_of(body: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, as ``sha256:<hex>``."""
    return "sha256:" + hashlib.sha256(canonical(body)).hexdigest()


def dump(
    kind: str,
    version: int,
    body: Mapping[str, Any],
    indent: int | None = 1,
    sealed: bool = True,
) -> str:
    """Write a document of one kind as JSON text; sealed ones carry their digest."""
    whole = {"format": f"discreet/{kind}", "version": version, **_plain(body)}
    if sealed:
        whole["digest"] = digest_of(whole)
    return json.dumps(whole, indent=indent, ensure_ascii=False) + "\n"


def parse(text: str | bytes, kind: str) -> dict[str, Any]:
    """JSON text to a dictionary, or a sentence about why it is none."""
    if len(text) > LARGEST:
        raise FormatError(f"this {kind} has {len(text)} characters, the limit is {LARGEST}")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"this is not a whole {kind} file: {error}; it may be truncated, fetch it again"
        ) from None
    if not isinstance(whole, dict):
        raise FormatError(f"a {kind} file holds a JSON object, this one a {type(whole).__name__}")
    return whole


def load(text: str | bytes, kind: str, version: int, shape: type[B], sealed: bool = True) -> B:
    """Read a document of one kind, refusing what is foreign, newer, older, damaged or misshapen.

    Parameters
    ----------
    text : str or bytes
        The JSON text.
    kind : str
        ``"schema"``, ``"model"`` and so on.
    version : int
        The only version this program understands.
    shape : type
        The pydantic model of the body.
    sealed : bool, default True
        Whether the digest must be there; where it is there, it must be right.
    """
    whole = parse(text, kind)
    found = whole.pop("format", None)
    if found != f"discreet/{kind}":
        raise FormatError(f"this is not a discreet {kind}: its format says {found!r}")
    given = whole.pop("version", None)
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise FormatError(f"this {kind} has no proper version: {given!r}")
    if given > version:
        raise FormatError(
            f"this {kind} has version {given}, this program reads version {version} only; "
            "update discreet"
        )
    if given < version:
        raise FormatError(
            f"this {kind} has version {given}, this program reads version {version} only; "
            f"make the {kind} again with this release"
        )
    stated = whole.pop("digest", None)
    try:
        actual = digest_of({"format": found, "version": given, **whole})
    except (RecursionError, UnicodeEncodeError):
        raise FormatError(f"this {kind} is nested or spelt in a way no {kind} is") from None
    if stated != actual and (sealed or stated is not None):
        raise FormatError(
            f"this {kind} was changed or damaged after it was written: "
            f"its digest says {str(stated)[:20]}…, its content {actual[:20]}…"
        )
    try:
        return shape.model_validate(whole)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top"
        raise FormatError(f"this {kind} is misshapen at {where}: {first['msg']}") from None


def read_text(path: str | Path) -> str:
    """Read a file, with a sentence instead of a traceback where that fails."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FormatError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: cannot be read as text: {error}") from None


def write_text(path: str | Path, text: str) -> None:
    """Write a file whole or not at all: to a neighbour first, then renamed over.

    What is not a plain file (a device, a pipe, a link) is written to as it is.
    """
    target = Path(path)
    try:
        if target.is_symlink() or (target.exists() and not target.is_file()):
            target.write_text(text, encoding="utf-8")
            return
        beside = target.with_name(f".{target.name}.part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(target)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from None
