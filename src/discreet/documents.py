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
    "STRICT",
    "UNORDERED",
    "Body",
    "Document",
    "RepeatedKeyError",
    "canonical",
    "canonical_document",
    "destroy_file",
    "digest_of",
    "dump",
    "json_of_yaml",
    "load",
    "move_atomic",
    "parse_json",
    "private_folder",
    "read_text",
    "remove_drafts",
    "replace_and_destroy",
    "replacing",
    "shape_of",
    "sync_folder",
    "write_atomic",
]

LARGEST = 256 * 1024 * 1024
"""Documents beyond this many characters are refused before they are parsed."""

UNORDERED = (
    "is a set, whose order, and with it the digest, changes from process to process; write a list"
)
"""Why sets are refused in documents."""

LARGEST_YAML = 1 << 20
"""Characters in a hand-written YAML file."""

LONGEST_KEY_SHOWN = 60
"""Characters of a key that a message repeats."""

LONGEST_DRAFT_NAME = 200
"""Longest file name, in bytes, that its drafts repeat: file systems allow 255, drafts add 23."""

B = TypeVar("B", bound="Body")


STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=True)


class Body(BaseModel):
    """Base of the shapes on disk: unknown fields are refused, nothing is executed."""

    model_config = STRICT


def shape_of(value: type[Any]) -> type[Body]:
    """Make the pydantic model of a dataclass whose fields are written to JSON as they are.

    Nested dataclasses set ``__pydantic_config__`` to the strict configuration as well.
    """
    hints, shape = get_type_hints(value), dict[str, Any]()
    for one in fields(value):
        default: Any = ... if one.default is MISSING else one.default
        if one.default_factory is not MISSING:
            default = Field(default_factory=one.default_factory)
        shape[one.name] = (hints[one.name], default)
    made: type[Body] = create_model(f"{value.__name__}Body", __base__=Body, **shape)
    return made


def _plain(value: Any) -> Any:
    """Convert to JSON values: infinity becomes ``"inf"``; NaN is refused."""
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
    """Encode values as canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(_plain(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def canonical_document(kind: str, version: int, body: Mapping[str, Any]) -> bytes:
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
    >>> canonical_document("plan", 1, {"b": 2.0, "a": [1, "é"]}).decode()
    '{"a":[1,"é"],"b":2.0,"format":"discreet/plan","version":1}'
    """
    return canonical({"format": f"discreet/{kind}", "version": version, **body})


def digest_of(content: bytes) -> str:
    """Compute the SHA-256 of canonical bytes, as ``sha256:<hex>``."""
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
        whole["digest"] = digest_of(canonical(whole))
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
        """SHA-256 of the document's content; every report names it."""
        return digest_of(self.canonical())

    def canonical(self) -> bytes:
        """The bytes whose SHA-256 is the digest."""
        return canonical_document(self.kind, self.version, self.to_body())

    def to_json(self) -> str:
        """Write as versioned JSON."""
        return dump(self.kind, self.version, self.to_body())


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
    return repr(key if len(key) <= LONGEST_KEY_SHOWN else key[:LONGEST_KEY_SHOWN] + "…")


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values_by_key = dict(pairs)
    if len(values_by_key) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
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
    discreet.documents.RepeatedKeyError: the key 'classes' is there twice in one object
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    return _DECODER.decode(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated_keys)


def parse(text: str | bytes, kind: str) -> dict[str, Any]:
    """Parse JSON text to a dictionary, or raise an error that says why not."""
    if len(text) > LARGEST:
        raise FormatError(f"this {kind} has {len(text)} characters, the limit is {LARGEST}")
    try:
        whole = parse_json(text)
    except RepeatedKeyError as error:
        raise FormatError(f"this {kind} is ambiguous: {error}; remove one of them") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(_not_json(text, kind, error)) from None
    if not isinstance(whole, dict):
        raise FormatError(
            f"this is not a {kind}: it holds {_called(whole)}, not keys with values{_way_to(kind)}"
        )
    return whole


def _called(value: Any) -> str:
    """Name the type of a JSON value in plain words."""
    if value is None:
        return "nothing"
    kinds = {list: "a list", str: "text", bool: "true or false"}
    return kinds.get(type(value), "a number")


MADE_BY = {
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


MADE_AGAIN_BY = {"party": "discreet federated identity NAME --card"}
"""For each kind that can be written again from unchanged keys, the command that does it."""


def _way_to(kind: str) -> str:
    return f"; {MADE_BY[kind]} writes one" if kind in MADE_BY else ""


def _not_json(text: str | bytes, kind: str, error: Exception) -> str:
    """Describe why a text is not valid JSON, without quoting it: it may be personal data."""
    begins = text.lstrip()[:1]
    if begins in ("{", b"{"):
        place = f"line {error.lineno}, " if isinstance(error, json.JSONDecodeError) else ""
        reason = getattr(error, "msg", None) or "nested too deeply"
        return (
            f"this is not a whole {kind} file ({place}{reason}); it may be truncated: fetch it "
            "again, or correct that line"
        )
    if not begins:
        return f"this {kind} file is empty{_way_to(kind)}"
    return (
        f"this is not a {kind}: it does not begin with an opening brace as JSON does, so it is "
        f"another file, perhaps a table{_way_to(kind)}"
    )


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
    found, given, stated = whole.get("format"), whole.get("version"), whole.pop("digest", None)
    if found != f"discreet/{kind}":
        raise FormatError(
            f"this is not a discreet {kind}: its format says {found!r}{_way_to(kind)}"
        )
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        stated_version = "has no version" if given is None else f"has the version {given!r}"
        raise FormatError(f'this {kind} {stated_version}; write "version": {version}')
    if given > version:
        raise FormatError(
            f"this {kind} has version {given}, this program reads version {version} only; "
            "update discreet"
        )
    if given < version:
        command = f": {MADE_AGAIN_BY[kind]}" if kind in MADE_AGAIN_BY else ""
        raise FormatError(
            f"this {kind} has version {given}, this program reads version {version} only; "
            f"make the {kind} again with this release{command}"
        )
    try:
        actual = digest_of(canonical(whole))
    except (RecursionError, UnicodeEncodeError):
        raise FormatError(f"this {kind} is nested too deeply or holds invalid characters") from None
    if stated != actual and (sealed or stated is not None):
        raise FormatError(
            f"this {kind} was changed or damaged after it was written: "
            f"its digest says {str(stated)[:20]}…, its content {actual[:20]}…"
        )
    del whole["format"], whole["version"]
    try:
        return shape.model_validate(whole)
    except ValidationError as error:
        raise FormatError(f"this {kind} is misshapen at {_misshapen(error, shape)}") from None


def _misshapen(error: ValidationError, shape: type[Body]) -> str:
    """Describe where a document does not match its shape; suggest the key for a misspelt one."""
    found = error.errors()
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    where = ".".join(str(part) for part in first["loc"]) or "the top"
    if first["type"] == "missing":
        return f"{where}: it is missing; add it"
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']}"
    absent = [str(one["loc"][-1]) for one in found if one["type"] == "missing"]
    keys = [*absent, *sorted(_keys(shape.model_json_schema()))]
    meant = difflib.get_close_matches(str(first["loc"][-1]), keys, 1)
    way = f"did you mean {meant[0]}?" if meant else "remove it"
    return f"{where}: there is no such key; {way}"


def _keys(described: Any) -> set[str]:
    """List all keys of a JSON schema, at any depth."""
    if isinstance(described, list):
        return set().union(*map(_keys, described))
    if not isinstance(described, dict):
        return set()
    return set(described.get("properties", ())).union(*map(_keys, described.values()))


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
        with replacing(path, private=private, exclusive=exclusive) as draft:
            draft.write_bytes(content)
    except FileExistsError:
        return False
    return True


@contextmanager
def replacing(
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
    named = Path(path)
    target = named if exclusive else named.resolve()
    draft = target.with_name(f"{_draft_prefix(target)}{secrets.token_hex(8)}.part")
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
        _sync(draft, os.O_RDWR)  # Windows syncs no file that is open for reading only
        if exclusive:
            os.link(draft, target)  # fails if it exists: the first writer wins
        else:
            draft.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        if isinstance(error, FileExistsError if exclusive else BrokenPipeError):
            raise
        raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _draft_prefix(target: Path) -> str:
    """Return the prefix of a file's drafts: its own name, or a hash of it if that is too long."""
    name = target.name
    if len(os.fsencode(name)) > LONGEST_DRAFT_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return f".{name}."


def remove_drafts(path: str | Path) -> None:
    """Remove drafts of a file that killed writers left; for a caller who alone may write it.

    Drafts of other files in the folder stay, so that no writer of another file is disturbed.

    Parameters
    ----------
    path : path
        A file that is written under a lock, which the caller holds.
    """
    target = Path(path).resolve()
    draft = re.compile(re.escape(_draft_prefix(target)) + r"[0-9a-f]{16}\.part")
    with suppress(OSError):  # a folder that cannot be listed or changed is reported by the writer
        for entry in os.scandir(target.parent):
            if draft.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
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
        _sync(Path(source), os.O_RDWR)
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
    target = Path(path)
    try:
        with target.open("r+b", buffering=0) as file:
            file.write(secrets.token_bytes(target.stat().st_size))
            os.fsync(file.fileno())
        target.unlink()
        sync_folder(target.parent)
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
        _sync(Path(path), os.O_RDONLY | os.O_DIRECTORY)


def private_folder(path: str | Path) -> Path:
    """Create a folder and its missing parents with mode 0700; return the folder.

    The mode of an existing folder is not changed.
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
    """Convert hand-written YAML to JSON; words stay text, references are refused."""
    import yaml

    if len(text) > LARGEST_YAML:
        raise FormatError(f"this YAML has {len(text)} characters, the limit is {LARGEST_YAML}")

    class Plain(yaml.SafeLoader):  # type: ignore[misc]
        """YAML loader that keeps yes, no, on, off and dates as text and refuses references."""

        yaml_implicit_resolvers = {
            first: [(tag, regexp) for tag, regexp in some if tag.rpartition(":")[2] in KEPT]
            for first, some in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("references (*name) are not understood here")
            return super().compose_node(parent, index)

        def flatten_mapping(self, node: Any) -> None:
            keys = set()
            for key_node, _ in node.value:  # here, because this is called for merged ones as well
                merging = key_node.tag == "tag:yaml.org,2002:merge"
                key = "<<" if merging else str(self.construct_object(key_node, deep=True))
                if key in keys:
                    problem = f"the key {_abbreviate(key)} is there twice in one mapping"
                    place = key_node.start_mark
                    raise yaml.constructor.ConstructorError(
                        None, None, problem, place, "remove one of them"
                    )
                keys.add(key)
            super().flatten_mapping(node)

    try:
        whole = yaml.load(text, Plain)
        return json.dumps(_words(whole), allow_nan=False)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"this is not a {kind} in YAML: {_yaml_fault(error)}") from None


def _yaml_fault(error: Exception) -> str:
    """Describe where YAML cannot be read and what usually helps, without quoting the file."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
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
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


KEPT = ("int", "float", "null", "merge")


def _words(value: Any, name: str = "a value") -> Any:
    """Convert the words true and false to booleans; other words stay text."""
    if isinstance(value, set):  # !!set
        raise FormatError(f"{name} {UNORDERED}")
    if isinstance(value, dict):
        return {str(key): _words(item, _abbreviate(str(key))) for key, item in value.items()}
    if isinstance(value, list):
        return [_words(item) for item in value]
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def replace_and_destroy(path: str | Path, data: str | bytes) -> None:
    """Write a private file under a lock that the caller holds; its earlier state is overwritten.

    A writer that is killed leaves nothing that the next one does not destroy.

    Parameters
    ----------
    path : path
    data : str or bytes
    """
    target = Path(path).resolve()
    previous = target.with_name(f"{target.name}.previous")
    remove_drafts(target)  # only who holds the lock writes: what is left is of killed writers
    with suppress(FileNotFoundError):
        if previous.samefile(target):  # killed before the new state was written
            previous.unlink()
    destroy_file(previous)
    with suppress(OSError):  # the first state, or a file system without second names
        os.link(target, previous)
    write_atomic(target, data, private=True)
    destroy_file(previous)
