"""Files that travel: versioned JSON that is either read whole or refused with a reason.

A document carries its format, its version and the SHA-256 of its canonical bytes. The digest
finds damage and careless edits; it is not a signature.

Every file is written here: to a new file in the same folder, synced, then renamed, so that a
reader sees the old content or the new one and a crash loses neither.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.errors import FormatError

__all__ = [
    "Body",
    "Document",
    "canonical",
    "canonical_document",
    "digest_of",
    "dump",
    "json_of_yaml",
    "load",
    "locked",
    "move_atomic",
    "private_folder",
    "read_text",
    "replacing",
    "write_atomic",
]

LARGEST = 256 * 1024 * 1024
"""Documents beyond this many characters are refused before they are parsed."""

LARGEST_YAML = 1 << 20
"""Characters in a hand-written YAML file."""

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
    """The one way to write plain values: sorted keys, no spaces, UTF-8."""
    text = json.dumps(_plain(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def canonical_document(kind: str, version: int, body: Mapping[str, Any]) -> bytes:
    """The exact bytes whose SHA-256 is the digest of a document.

    Parameters
    ----------
    kind : str
        ``"schema"``, ``"plan"`` and so on.
    version : int
        Of the format.
    body : mapping
        Plain values.

    Examples
    --------
    >>> canonical_document("plan", 1, {"b": 2.0, "a": [1, "é"]}).decode()
    '{"a":[1,"é"],"b":2.0,"format":"discreet/plan","version":1}'
    """
    return canonical({"format": f"discreet/{kind}", "version": version, **body})


def digest_of(content: bytes) -> str:
    """SHA-256 of canonical bytes, as ``sha256:<hex>``."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


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
        whole["digest"] = digest_of(canonical_document(kind, version, body))
    return json.dumps(whole, indent=indent, ensure_ascii=False) + "\n"


class Document(ABC):
    """Base of values that are published as sealed documents, named by their digest."""

    kind: ClassVar[str]
    version: ClassVar[int]

    @abstractmethod
    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything the document says; every report to it names it."""
        return digest_of(self.canonical())

    def canonical(self) -> bytes:
        """The bytes whose SHA-256 is the digest."""
        return canonical_document(self.kind, self.version, self.to_body())

    def to_json(self) -> str:
        """Write as versioned JSON."""
        return dump(self.kind, self.version, self.to_body())


def parse(text: str | bytes, kind: str) -> dict[str, Any]:
    """JSON text to a dictionary, or an error that says why not."""
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
        raise FormatError(f"invalid version of this {kind}: {given!r}; expected {version}")
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
        actual = digest_of(canonical_document(kind, given, whole))
    except (RecursionError, UnicodeEncodeError):
        raise FormatError(f"this {kind} is nested too deeply or holds invalid characters") from None
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


def write_atomic(
    path: str | Path, data: str | bytes, *, private: bool = False, exclusive: bool = False
) -> bool:
    """Write a file whole or not at all; it is on the disk when this returns.

    Parameters
    ----------
    path : path
        What is not a regular file (a device, a pipe) is written to as it is. A symbolic link is
        followed: the file that it names is replaced.
    data : str or bytes
    private : bool, default False
        Make the file readable by its owner alone (0600), in folders that are made likewise (0700)
        where they do not exist. Otherwise the folder must exist.
    exclusive : bool, default False
        Never replace a file: where there is one already, it stays.

    Returns
    -------
    bool
        False where ``exclusive`` found a file and wrote nothing.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> write_atomic(folder.name + "/kept/once.json", "{}", private=True, exclusive=True)
    True
    >>> write_atomic(folder.name + "/kept/once.json", "[]", private=True, exclusive=True)
    False
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        with replacing(path, private=private, exclusive=exclusive) as draft:
            draft.write_bytes(content)
    except FileExistsError:
        return False
    return True


@contextmanager
def replacing(
    path: str | Path, *, private: bool = False, exclusive: bool = False
) -> Iterator[Path]:
    """Give a new file to write to, which takes the place of ``path`` when all went well.

    For what is written piece by piece; everything else uses :func:`write_atomic`, whose
    parameters these are.

    Raises
    ------
    FileExistsError
        Where ``exclusive`` finds a file.
    FormatError
        Where the file cannot be written.
    """
    named = Path(path)
    target = named if exclusive else named.resolve()
    draft = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        if named.is_dir():
            raise FormatError(f"{path}: is a folder; give the name of a file in it")
        if named.exists() and not named.is_file():
            yield named
            return
        if private:
            private_folder(target.parent)
        elif not target.parent.is_dir():
            raise FormatError(f"{path}: the folder {named.parent} does not exist; make it first")
        mode = 0o600 if private else 0o666
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        if target.exists() and not private:
            draft.chmod(target.stat().st_mode & 0o777)
        yield draft
        _sync(draft, os.O_RDONLY)
        if exclusive:
            os.link(draft, target)  # fails if it exists: the first writer wins
        else:
            draft.replace(target)
        if hasattr(os, "O_DIRECTORY"):  # the new name must outlive a power cut, too
            _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if isinstance(error, FileExistsError if exclusive else BrokenPipeError):
            raise
        raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def move_atomic(source: str | Path, target: str | Path) -> None:
    """Give a whole file its name, in the place of one that has it; it is on the disk then.

    Parameters
    ----------
    source : path
        A file in the same folder, written to its end.
    target : path
    """
    try:
        _sync(Path(source), os.O_RDONLY)
        os.replace(source, target)
        if hasattr(os, "O_DIRECTORY"):
            _sync(Path(target).parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise FormatError(f"{target}: cannot be written: {error.strerror or error}") from None


@contextmanager
def locked(path: str | Path, busy: str = "") -> Iterator[None]:
    """Hold a file or folder alone; given back at the end, also when the process is killed.

    Parameters
    ----------
    path : path
        A folder that exists, or a file, which is made where it is missing.
    busy : str, optional
        What to say where another process holds it; without it, its end is waited for.
    """
    try:
        import fcntl
    except ImportError:
        raise FormatError(
            f"{path}: this system has no file locks (fcntl); without them two processes could "
            "spend the same privacy twice, so nothing is done"
        ) from None
    flags = os.O_RDONLY if Path(path).is_dir() else os.O_RDWR | os.O_CREAT
    try:
        file = os.open(path, flags, 0o600)
    except OSError as error:
        raise FormatError(f"{path}: cannot be opened: {error.strerror}") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except BlockingIOError:
            raise FormatError(f"{path}: {busy}") from None
        yield
    finally:
        os.close(file)


def private_folder(path: str | Path) -> Path:
    """A folder that exists; it and those above it are made, where missing, for their owner alone.

    The mode of a folder that exists already is its owner's choice and stays.
    """
    folder = Path(path)
    try:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            with suppress(FileExistsError):  # made by another process meanwhile
                one.mkdir(mode=0o700)
    except OSError as error:
        raise FormatError(f"{path}: cannot be made a folder: {error.strerror}") from None
    if not folder.is_dir():
        raise FormatError(f"{path}: is not a folder")
    return folder


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def json_of_yaml(text: str, kind: str) -> str:
    """Hand-written YAML to JSON; words stay words, references and dates are not understood."""
    import yaml

    if len(text) > LARGEST_YAML:
        raise FormatError(f"this YAML has {len(text)} characters, the limit is {LARGEST_YAML}")

    class Plain(yaml.SafeLoader):  # type: ignore[misc]
        """Without what YAML 1.1 makes of yes, no, on, off, dates and references."""

        yaml_implicit_resolvers = {
            first: [(tag, regexp) for tag, regexp in some if tag.rpartition(":")[2] in KEPT]
            for first, some in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("references (*name) are not understood here")
            return super().compose_node(parent, index)

    try:
        whole = yaml.load(text, Plain)
        return json.dumps(_words(whole), allow_nan=False)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise FormatError(f"this is not a {kind} in YAML: {reason}") from None


KEPT = ("int", "float", "null", "merge")


def _words(value: Any) -> Any:
    """Turn the words true and false into values; all other words stay words."""
    if isinstance(value, dict):
        return {str(key): _words(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_words(item) for item in value]
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
