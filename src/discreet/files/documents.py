"""Versioned JSON documents, and atomic writing of files.

A document carries its format, its version and the SHA-256 of its canonical bytes. The digest
finds damage and careless edits; it is not a signature.

Every file is written here: to a new file in the same folder, synced, then renamed, so that a
reader sees the old content or the new one and a crash loses neither.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from discreet.errors import FormatError

__all__ = [
    "SET_REFUSAL",
    "STRICT_CONFIG",
    "Body",
    "Document",
    "RepeatedKeyError",
    "atomic_replacement",
    "compute_digest",
    "convert_yaml_to_json",
    "destroy_file",
    "dump_document",
    "encode_canonical",
    "encode_canonical_document",
    "load_document",
    "make_body_class",
    "make_private_folder",
    "move_atomic",
    "parse_json",
    "read_text",
    "remove_drafts",
    "replace_and_destroy",
    "sync_folder",
    "write_atomic",
]

MAX_DOCUMENT_CHARS = 256 * 1024 * 1024
"""Documents beyond this many characters are refused before they are parsed."""

SET_REFUSAL = (
    "is a set, whose order, and with it the digest, changes from process to process; write a list"
)
"""Why sets are refused in documents."""

MAX_YAML_CHARS = 1 << 20
"""Characters in a hand-written YAML file."""

MAX_SHOWN_KEY_CHARS = 60
"""Characters of a key that a message repeats."""

MAX_DRAFT_NAME_BYTES = 200
"""Longest file name, in bytes, that its drafts repeat: file systems allow 255, drafts add 23."""

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
    """Encode values as canonical JSON: sorted keys, no spaces, UTF-8."""
    canonical_text = json.dumps(
        _to_json_value(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return canonical_text.encode()


def encode_canonical_document(kind: str, version: int, body: Mapping[str, Any]) -> bytes:
    """Encode a document as the canonical bytes whose SHA-256 is its digest.

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
    >>> encode_canonical_document("plan", 1, {"b": 2.0, "a": [1, "é"]}).decode()
    '{"a":[1,"é"],"b":2.0,"format":"discreet/plan","version":1}'
    """
    return encode_canonical({"format": f"discreet/{kind}", "version": version, **body})


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
        return encode_canonical_document(self.kind, self.version, self.to_body())

    def to_json(self) -> str:
        """Write as versioned JSON."""
        return dump_document(self.kind, self.version, self.to_body())


class RepeatedKeyError(ValueError):
    """A key that an object holds twice; readers would disagree about which value counts.

    Parameters
    ----------
    key : str
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {_abbreviate(key)} is there twice in one object")
        self.key = key


def _abbreviate(key: str) -> str:
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
            f"this {kind} has {len(text)} characters, the limit is {MAX_DOCUMENT_CHARS}"
        )
    try:
        document = parse_json(text)
    except RepeatedKeyError as error:
        raise FormatError(f"this {kind} is ambiguous: {error}; remove one of them") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(_describe_json_fault(text, kind, error)) from None
    if not isinstance(document, dict):
        raise FormatError(
            f"this is not a {kind}: it holds {_describe_json_type(document)}, not keys with "
            f"values{_format_hint(kind)}"
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


REPEAT_COMMAND_BY_KIND = {"party": "discreet federated identity NAME --card"}
"""For each kind that can be written again from unchanged keys, the command that does it."""


def _format_hint(kind: str) -> str:
    return f"; {COMMAND_BY_KIND[kind]} writes one" if kind in COMMAND_BY_KIND else ""


def _describe_json_fault(text: str | bytes, kind: str, error: Exception) -> str:
    """Describe why a text is not valid JSON, without quoting it: it may be personal data."""
    first_character = text.lstrip()[:1]
    if first_character in ("{", b"{"):
        error_place = f"line {error.lineno}, " if isinstance(error, json.JSONDecodeError) else ""
        reason = getattr(error, "msg", None) or "nested too deeply"
        return (
            f"this is not a whole {kind} file ({error_place}{reason}); it may be truncated: fetch "
            "it again, or correct that line"
        )
    if not first_character:
        return f"this {kind} file is empty{_format_hint(kind)}"
    return (
        f"this is not a {kind}: it does not begin with an opening brace as JSON does, so it is "
        f"another file, perhaps a table{_format_hint(kind)}"
    )


def load_document(
    text: str | bytes, kind: str, version: int, shape: type[BodyT], sealed: bool = True
) -> BodyT:
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
    document = parse_document(text, kind)
    stated_format = document.get("format")
    stated_version = document.get("version")
    stated_digest = document.pop("digest", None)
    if stated_format != f"discreet/{kind}":
        raise FormatError(
            f"this is not a discreet {kind}: its format says {stated_format!r}{_format_hint(kind)}"
        )
    if (
        not isinstance(stated_version, int)
        or isinstance(stated_version, bool)
        or stated_version < 1
    ):
        version_note = (
            "has no version" if stated_version is None else f"has the version {stated_version!r}"
        )
        raise FormatError(f'this {kind} {version_note}; write "version": {version}')
    if stated_version > version:
        raise FormatError(
            f"this {kind} has version {stated_version}, this program reads version {version} only; "
            "update discreet"
        )
    if stated_version < version:
        command = f": {REPEAT_COMMAND_BY_KIND[kind]}" if kind in REPEAT_COMMAND_BY_KIND else ""
        raise FormatError(
            f"this {kind} has version {stated_version}, this program reads version {version} only; "
            f"make the {kind} again with this release{command}"
        )
    try:
        actual_digest = compute_digest(encode_canonical(document))
    except (RecursionError, UnicodeEncodeError):
        raise FormatError(f"this {kind} is nested too deeply or holds invalid characters") from None
    if stated_digest != actual_digest and (sealed or stated_digest is not None):
        raise FormatError(
            f"this {kind} was changed or damaged after it was written: "
            f"its digest says {str(stated_digest)[:20]}…, its content {actual_digest[:20]}…"
        )
    del document["format"], document["version"]
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        raise FormatError(
            f"this {kind} is misshapen at {_describe_shape_fault(error, shape)}"
        ) from None


def _describe_shape_fault(error: ValidationError, shape: type[Body]) -> str:
    """Describe where a document does not match its shape; suggest the key for a misspelt one."""
    errors = error.errors()
    first_error = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
    error_place = ".".join(str(key) for key in first_error["loc"]) or "the top"
    if first_error["type"] == "missing":
        return f"{error_place}: it is missing; add it"
    if first_error["type"] != "extra_forbidden":
        return f"{error_place}: {first_error['msg']}"
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


def read_text(path: str | Path) -> str:
    """Read a UTF-8 file; raises FormatError with a plain message if that fails."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FormatError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: is a folder; give the name of a file in it") from None
    except UnicodeDecodeError:
        raise FormatError(
            f"{path}: is not text in UTF-8; give another file, or save it as UTF-8"
        ) from None
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from None


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
        with atomic_replacement(path, private=private, exclusive=exclusive) as draft_path:
            draft_path.write_bytes(content)
    except FileExistsError:
        return False
    return True


@contextmanager
def atomic_replacement(
    path: str | Path, *, private: bool = False, exclusive: bool = False
) -> Iterator[Path]:
    """Yield a new file to write to, which replaces ``path`` if the block succeeds.

    For files that are written in chunks; otherwise use :func:`write_atomic`, which has the same
    parameters.

    Raises
    ------
    FileExistsError
        Where ``exclusive`` finds a file.
    FormatError
        Where the file cannot be written.
    """
    given_path = Path(path)
    target_path = given_path if exclusive else given_path.resolve()
    draft_path = target_path.with_name(f"{_draft_prefix(target_path)}{secrets.token_hex(8)}.part")
    try:
        if given_path.is_dir():
            raise FormatError(f"{path}: is a folder; give the name of a file in it")
        if given_path.exists() and not given_path.is_file():
            yield given_path
            return
        if private:
            make_private_folder(target_path.parent)
        elif not target_path.parent.is_dir():
            raise FormatError(
                f"{path}: the folder {given_path.parent} does not exist; make it first"
            )
        file_mode = 0o600 if private else 0o666
        os.close(os.open(draft_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, file_mode))
        if target_path.exists() and not private:
            draft_path.chmod(target_path.stat().st_mode & 0o777)
        yield draft_path
        _sync_path(draft_path, os.O_RDWR)  # Windows syncs no file that is open for reading only
        if exclusive:
            os.link(draft_path, target_path)  # fails if it exists: the first writer wins
        else:
            draft_path.replace(target_path)
        sync_folder(target_path.parent)
    except OSError as error:
        if isinstance(error, FileExistsError if exclusive else BrokenPipeError):
            raise
        raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            draft_path.unlink(missing_ok=True)


def _draft_prefix(target_path: Path) -> str:
    """Return the prefix of a file's drafts: its own name, or a hash of it if that is too long."""
    file_name = target_path.name
    if len(os.fsencode(file_name)) > MAX_DRAFT_NAME_BYTES:
        file_name = hashlib.sha256(os.fsencode(file_name)).hexdigest()[:32]
    return f".{file_name}."


def remove_drafts(path: str | Path) -> None:
    """Remove drafts of a file that killed writers left; for a caller who alone may write it.

    Drafts of other files in the folder stay, so that no writer of another file is disturbed.

    Parameters
    ----------
    path : path
        A file that is written under a lock, which the caller holds.
    """
    target_path = Path(path).resolve()
    draft_pattern = re.compile(re.escape(_draft_prefix(target_path)) + r"[0-9a-f]{16}\.part")
    with suppress(OSError):  # a folder that cannot be listed or changed is reported by the writer
        for entry in os.scandir(target_path.parent):
            if draft_pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)


def move_atomic(source: str | Path, target: str | Path) -> None:
    """Move a complete file to its final name, replacing an existing one; synced to disk.

    Parameters
    ----------
    source : path
        A file in the same folder, written to its end.
    target : path
    """
    try:
        _sync_path(Path(source), os.O_RDWR)
        os.replace(source, target)
        sync_folder(Path(target).parent)
    except OSError as error:
        raise FormatError(f"{target}: cannot be written: {error.strerror or error}") from None


def destroy_file(path: str | Path) -> None:
    """Overwrite a small file with random bytes and remove it; a missing file is not an error.

    What a disk or a file system keeps besides (copies on write, snapshots) is out of reach.

    Parameters
    ----------
    path : path
    """
    target_path = Path(path)
    try:
        with target_path.open("r+b", buffering=0) as opened_file:
            opened_file.write(secrets.token_bytes(target_path.stat().st_size))
            os.fsync(opened_file.fileno())
        target_path.unlink()
        sync_folder(target_path.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FormatError(f"{path}: cannot be destroyed: {error.strerror}") from None


def sync_folder(path: str | Path) -> None:
    """Let names that were added to a folder, or removed from it, outlive a power cut.

    Parameters
    ----------
    path : path
    """
    if hasattr(os, "O_DIRECTORY"):
        _sync_path(Path(path), os.O_RDONLY | os.O_DIRECTORY)


def make_private_folder(path: str | Path) -> Path:
    """Create a folder and its missing parents with mode 0700; return the folder.

    The mode of an existing folder is not changed.
    """
    folder = Path(path)
    try:
        missing_folders = [
            parent_folder
            for parent_folder in (folder, *folder.parents)
            if not parent_folder.exists()
        ]
        for parent_folder in reversed(missing_folders):
            with suppress(FileExistsError):  # made by another process meanwhile
                parent_folder.mkdir(mode=0o700)
    except OSError as error:
        raise FormatError(f"{path}: cannot be made a folder: {error.strerror}") from None
    if not folder.is_dir():
        raise FormatError(f"{path}: is not a folder")
    return folder


def _sync_path(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def convert_yaml_to_json(text: str, kind: str) -> str:
    """Convert hand-written YAML to JSON; words stay text, references are refused."""
    import yaml

    if len(text) > MAX_YAML_CHARS:
        raise FormatError(f"this YAML has {len(text)} characters, the limit is {MAX_YAML_CHARS}")

    class Plain(yaml.SafeLoader):  # type: ignore[misc]
        """YAML loader that keeps yes, no, on, off and dates as text and refuses references."""

        yaml_implicit_resolvers = {
            first_character: [
                (tag, regexp)
                for tag, regexp in resolvers
                if tag.rpartition(":")[2] in YAML_TAGS_KEPT
            ]
            for first_character, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("references (*name) are not understood here")
            return super().compose_node(parent, index)

        def flatten_mapping(self, node: Any) -> None:
            seen_keys = set()
            for key_node, _ in node.value:  # here, because this is called for merged ones as well
                is_merge = key_node.tag == "tag:yaml.org,2002:merge"
                key = "<<" if is_merge else str(self.construct_object(key_node, deep=True))
                if key in seen_keys:
                    problem = f"the key {_abbreviate(key)} is there twice in one mapping"
                    key_mark = key_node.start_mark
                    raise yaml.constructor.ConstructorError(
                        None, None, problem, key_mark, "remove one of them"
                    )
                seen_keys.add(key)
            super().flatten_mapping(node)

    try:
        document = yaml.load(text, Plain)
        return json.dumps(_convert_booleans(document), allow_nan=False)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"this is not a {kind} in YAML: {_describe_yaml_fault(error)}") from None


def _describe_yaml_fault(error: Exception) -> str:
    """Describe where YAML cannot be read and what usually helps, without quoting the file."""
    problem_mark = getattr(error, "problem_mark", None)
    if problem_mark is None:
        return " ".join(str(error).split())
    problem = getattr(error, "problem", "") or ""
    way_out = getattr(error, "note", None)
    if "'\\t'" in problem:
        problem = "a tab; indent with spaces"
    elif "mapping values" in problem:
        problem = "a colon inside a value; put the value in quotation marks"
    else:
        way_out = way_out or "check the indentation, quotation marks and brackets there"
        problem = f"{problem}; {way_out}"
    return f"line {problem_mark.line + 1}, column {problem_mark.column + 1}: {problem}"


YAML_TAGS_KEPT = ("int", "float", "null", "merge")


def _convert_booleans(value: Any, name: str = "a value") -> Any:
    """Convert the words true and false to booleans; other words stay text."""
    if isinstance(value, set):  # !!set
        raise FormatError(f"{name} {SET_REFUSAL}")
    if isinstance(value, dict):
        return {
            str(key): _convert_booleans(item, _abbreviate(str(key))) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_convert_booleans(item) for item in value]
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def replace_and_destroy(path: str | Path, data: str | bytes) -> None:
    """Write a private file under a lock that the caller holds; its earlier state is overwritten.

    A writer that is killed leaves nothing that the next one does not destroy.

    Parameters
    ----------
    path : path
    data : str or bytes
    """
    target_path = Path(path).resolve()
    previous_path = target_path.with_name(f"{target_path.name}.previous")
    remove_drafts(target_path)  # only who holds the lock writes: what is left is of killed writers
    with suppress(FileNotFoundError):
        if previous_path.samefile(target_path):  # killed before the new state was written
            previous_path.unlink()
    destroy_file(previous_path)
    with suppress(OSError):  # the first state, or a file system without second names
        os.link(target_path, previous_path)
    write_atomic(target_path, data, private=True)
    destroy_file(previous_path)
