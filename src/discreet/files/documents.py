"""Versioned JSON documents that travel.

A document carries its format, its version and the SHA-256 of its canonical bytes. The digest
finds damage and careless edits; it is not a signature.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cached_property
from typing import Any, ClassVar, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from discreet.errors import FormatError
from discreet.files.fault_places import describe_message, describe_place, select_faults

__all__ = [
    "STRICT_CONFIG",
    "Body",
    "Document",
    "RepeatedKeyError",
    "compute_digest",
    "dump_document",
    "encode_canonical",
    "load_document",
    "make_body_class",
    "parse_json",
]

MAX_DOCUMENT_CHARS = 256 * 1024 * 1024
"""Documents beyond this many characters are refused before they are parsed."""

MAX_SHOWN_KEY_CHARS = 60
"""Characters of a key that a message repeats."""

BodyT = TypeVar("BodyT", bound="Body")

STRICT_CONFIG = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=True)


class Body(BaseModel):
    """Base of the shapes on disk: unknown fields are refused, nothing is executed."""

    model_config = STRICT_CONFIG


def make_body_class(dataclass_type: type[Any]) -> type[Body]:
    """Make the pydantic model of a dataclass whose fields are written to JSON as they are.

    Nested dataclasses set ``__pydantic_config__`` to the strict configuration as well.
    """
    type_hints, body_fields = get_type_hints(dataclass_type), dict[str, Any]()
    for dataclass_field in fields(dataclass_type):
        default: Any = ... if dataclass_field.default is MISSING else dataclass_field.default
        if dataclass_field.default_factory is not MISSING:
            default = Field(default_factory=dataclass_field.default_factory)
        body_fields[dataclass_field.name] = (type_hints[dataclass_field.name], default)
    body_class: type[Body] = create_model(
        f"{dataclass_type.__name__}Body", __base__=Body, **body_fields
    )
    return body_class


def _to_json_value(value: Any) -> Any:
    """Convert to JSON values: infinity becomes ``"inf"``; NaN is refused."""
    if isinstance(value, float):
        if math.isnan(value):
            raise FormatError("NaN cannot be written to a file; find out where it came from")
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return value
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json_value(item) for item in value]
    return value


def encode_canonical(body: Mapping[str, Any]) -> bytes:
    """Encode values as canonical JSON: sorted keys, no spaces, UTF-8.

    Parameters
    ----------
    body : mapping
        Plain values.

    Examples
    --------
    >>> encode_canonical({"b": 2.0, "a": [1, "é"]}).decode()
    '{"a":[1,"é"],"b":2.0}'
    """
    canonical_text = json.dumps(
        _to_json_value(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return canonical_text.encode()


def compute_digest(content: bytes) -> str:
    """Compute the SHA-256 of canonical bytes, as ``sha256:<hex>``."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def dump_document(
    kind: str,
    version: int,
    body: Mapping[str, Any],
    indent: int | None = 1,
    sealed: bool = True,
) -> str:
    """Write a document of one kind as JSON text; sealed ones carry their digest."""
    document = {"format": f"discreet/{kind}", "version": version, **_to_json_value(body)}
    if sealed:
        document["digest"] = compute_digest(encode_canonical(document))
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"


class Document(ABC):
    """Base of values that are published as sealed documents, named by their digest."""

    kind: ClassVar[str]
    version: ClassVar[int]

    @abstractmethod
    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the document's content; every report names it."""
        return compute_digest(self.encode_canonical())

    def encode_canonical(self) -> bytes:
        """The bytes whose SHA-256 is the digest."""
        header = {"format": f"discreet/{self.kind}", "version": self.version}
        return encode_canonical({**header, **self.to_body()})

    def to_json(self) -> str:
        """Write as versioned JSON."""
        seal = {"digest": self.digest}
        header = {"format": f"discreet/{self.kind}", "version": self.version}
        document = {**header, **_to_json_value(self.to_body()), **seal}
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


class RepeatedKeyError(ValueError):
    """A key that an object holds twice; readers would disagree about which value counts.

    Parameters
    ----------
    key : str
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {abbreviate_key(key)} is there twice in one object")
        self.key = key


def abbreviate_key(key: str) -> str:
    return repr(key if len(key) <= MAX_SHOWN_KEY_CHARS else key[:MAX_SHOWN_KEY_CHARS] + "…")


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values_by_key = dict(pairs)
    if len(values_by_key) < len(pairs):
        listed_keys = [key for key, _ in pairs]
        raise RepeatedKeyError(next(key for key in listed_keys if listed_keys.count(key) > 1))
    return values_by_key


def parse_json(text: str | bytes) -> Any:
    """Parse JSON in which no object holds a key twice; everything from outside is read here.

    Parameters
    ----------
    text : str or bytes

    Raises
    ------
    ValueError
        Where it is not JSON, or a key is there twice.
    RecursionError
        Where it is nested too deeply.

    Examples
    --------
    >>> parse_json('{"classes": ["no", "yes"], "classes": ["yes", "no"]}')
    Traceback (most recent call last):
    discreet.files.documents.RepeatedKeyError: the key 'classes' is there twice in one object
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    return _DECODER.decode(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys)


def parse_document(text: str | bytes, kind: str) -> dict[str, Any]:
    """Parse JSON text to a dictionary, or raise an error that says why not."""
    if len(text) > MAX_DOCUMENT_CHARS:
        raise FormatError(
            f"this {_name_kind(kind)} has {len(text)} characters, the limit is {MAX_DOCUMENT_CHARS}"
        )
    try:
        document = parse_json(text)
    except RepeatedKeyError as error:
        raise FormatError(
            f"this {_name_kind(kind)} is ambiguous: {error}; remove one of them"
        ) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(_describe_json_fault(text, kind, error)) from None
    if not isinstance(document, dict):
        raise FormatError(
            f"this is not {add_article(kind)}: it holds {_describe_json_type(document)}, not keys "
            f"with values{_format_hint(kind)}"
        )
    return document


def _describe_json_type(value: Any) -> str:
    """Name the type of a JSON value in plain words."""
    if value is None:
        return "nothing"
    name_by_type = {list: "a list", str: "text", bool: "true or false"}
    return name_by_type.get(type(value), "a number")


COMMAND_BY_KIND = {
    "schema": "discreet schema new DATA",
    "plan": "discreet local plan",
    "questionnaire": "discreet survey new",
    "tally": "discreet local tally or discreet survey tally",
    "model": "discreet train",
    "statistics": "discreet train --statistics",
    "collection": "discreet local plan or discreet survey new",
    "announcement": "discreet announce --example",
    "ledger": "discreet train --budget-file NAME --budget-total EPSILON",
}
"""For each kind of document, the command that writes it; part of error messages."""

REPEAT_HINT_BY_KIND = {
    "schema": "write version 2 in it and check it, because what it says is still understood",
    "ledger": "its total is what this one has left, because what was spent remains spent",
    "party": "discreet federated identity NAME --card",
}
"""For each kind that can be written again from what there is, how."""


def _format_hint(kind: str) -> str:
    return f"; {COMMAND_BY_KIND[kind]} writes one" if kind in COMMAND_BY_KIND else ""


def _name_kind(kind: str) -> str:
    """The kind of a document as a noun that is singular."""
    return f"{kind} file" if kind == "statistics" else kind


def add_article(kind: str) -> str:
    """The kind with its article.

    >>> add_article("announcement"), add_article("statistics")
    ('an announcement', 'a statistics file')
    """
    return f"{'an' if kind[0] in 'aeio' else 'a'} {_name_kind(kind)}"


def _describe_json_fault(text: str | bytes, kind: str, error: Exception) -> str:
    """Describe why a text is not valid JSON, without quoting it: it may be personal data."""
    first_character = text.lstrip()[:1]
    if first_character in ("{", b"{"):
        error_place = f"line {error.lineno}, " if isinstance(error, json.JSONDecodeError) else ""
        reason = getattr(error, "msg", None) or "nested too deeply"
        return (
            f"this {kind} file is incomplete or damaged ({error_place}{reason}); fetch it again, "
            "or correct that line"
        )
    if not first_character:
        return f"this {kind} file is empty{_format_hint(kind)}"
    return (
        f"this is not {add_article(kind)}: it does not begin with an opening brace as JSON does, "
        f"so it is another file, perhaps a table{_format_hint(kind)}"
    )


def load_document(
    content: str | bytes | Mapping[str, Any],
    kind: str,
    version: int,
    shape: type[BodyT],
    sealed: bool = True,
) -> BodyT:
    """Read a document of one kind, refusing what is foreign, newer, older, damaged or misshapen.

    Parameters
    ----------
    content : str, bytes or mapping
        The JSON text, or what was parsed from it.
    kind : str
        ``"schema"``, ``"model"`` and so on.
    version : int
        The only version this program understands.
    shape : type
        The pydantic model of the body.
    sealed : bool, default True
        Whether the digest must be there; where it is there, it must be right.
    """
    document = dict(content) if isinstance(content, Mapping) else parse_document(content, kind)
    stated_format = document.get("format")
    stated_version = document.get("version")
    stated_digest = document.pop("digest", None)
    if stated_format != f"discreet/{kind}":
        raise FormatError(
            f"this is not a discreet {_name_kind(kind)}: "
            + (f"its format says {stated_format!r}" if stated_format else "it has no format")
            + _format_hint(kind)
        )
    noun = _name_kind(kind)
    if (
        not isinstance(stated_version, int)
        or isinstance(stated_version, bool)
        or stated_version < 1
    ):
        version_note = (
            "has no version" if stated_version is None else f"has the version {stated_version!r}"
        )
        raise FormatError(f'this {noun} {version_note}; write "version": {version}')
    if stated_version > version:
        raise FormatError(
            f"this {noun} has version {stated_version}, this program reads version {version} only; "
            "update discreet"
        )
    if stated_version < version:
        hint = f": {REPEAT_HINT_BY_KIND[kind]}" if kind in REPEAT_HINT_BY_KIND else ""
        raise FormatError(
            f"this {noun} has version {stated_version}, this program reads version {version} only; "
            f"make the {noun} again with this release{hint}"
        )
    try:
        actual_digest = compute_digest(encode_canonical(document))
    except (RecursionError, UnicodeEncodeError):
        raise FormatError(f"this {noun} is nested too deeply or holds invalid characters") from None
    if stated_digest != actual_digest and (sealed or stated_digest is not None):
        raise FormatError(
            f"this {noun} was changed or damaged after it was written: "
            + (
                f"its digest says {str(stated_digest)[:20]}…"
                if stated_digest
                else "it has no digest"
            )
            + f", its content {actual_digest[:20]}…"
        )
    del document["format"], document["version"]
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        raise FormatError(
            f"this {noun} is invalid at {_describe_shape_fault(error, shape, document)}"
        ) from None


def _describe_shape_fault(error: ValidationError, shape: type[Body], document: Any) -> str:
    """Describe where a document does not match its shape; suggest the key for a misspelt one."""
    errors = select_faults(error.errors(), document)
    first_error = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
    error_place = describe_place(first_error, document)
    if first_error["type"] == "missing":
        return f"{error_place}: it is missing; add it"
    if first_error["type"] != "extra_forbidden":
        return f"{error_place}: {describe_message(first_error['msg'])}"
    absent_keys = [str(entry["loc"][-1]) for entry in errors if entry["type"] == "missing"]
    known_keys = [*absent_keys, *sorted(_list_keys(shape.model_json_schema()))]
    close_matches = difflib.get_close_matches(str(first_error["loc"][-1]), known_keys, 1)
    way_out = f"did you mean {close_matches[0]}?" if close_matches else "remove it"
    return f"{error_place}: there is no such key; {way_out}"


def _list_keys(json_schema: Any) -> set[str]:
    """List all keys of a JSON schema, at any depth."""
    if isinstance(json_schema, list):
        return set().union(*map(_list_keys, json_schema))
    if not isinstance(json_schema, dict):
        return set()
    return set(json_schema.get("properties", ())).union(*map(_list_keys, json_schema.values()))
