"""Files of the command line: an output never replaces an input.

A command declares what it writes with the types :data:`OUTPUT` and :data:`OUTPUT_FOLDER`, or
:func:`make_output` where files of its kind may be replaced; every other parameter may name an
input. That, and the rule of :mod:`discreet.cli.overwrite`, is checked twice: before the command
begins, so that no budget is spent in vain, and again by :func:`open_replacement`, through which
every command writes.
"""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from discreet.cli.overwrite import FREE, refuse_replacement
from discreet.errors import FormatError

__all__ = [
    "NEW_FOLDER",
    "OUTPUT",
    "OUTPUT_FOLDER",
    "Output",
    "check_outputs",
    "folder",
    "output_of",
    "replacing",
    "write",
]


class Output(click.ParamType[str]):
    """Parameter type of an output: a file, or a folder that is created if it does not exist.

    Parameters
    ----------
    name : {"file", "folder"}
    kind : str
        Kind of file (a key of ``FREE_TO_REPLACE``), where a file of the same kind may be replaced.
    resumable : bool, default False
        Whether the command may have written the file before it was killed and restarted. It makes
        the check itself, before it begins a new run.
    """

    def __init__(self, name: str, kind: str = "", *, resumable: bool = False) -> None:
        self.name, self.kind, self.resumable = name, kind, resumable

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete a word with the names of files or folders."""
        return [CompletionItem(incomplete, type="dir" if self.name == "folder" else "file")]


OUTPUT = Output("file")
OUTPUT_FOLDER = Output("folder")
NEW_FOLDER = Output("folder")
"""A folder that must be new, so that no file in it is replaced."""


def output_of(kind: str, *, resumable: bool = False) -> Output:
    """Make the parameter type of a file of one kind."""
    return Output("file", kind, resumable=resumable)


def check_outputs(context: click.Context) -> None:
    """Refuse outputs that cannot be written or would replace an input, before the command runs."""
    named: dict[str, click.Parameter] = {}
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if not isinstance(param.type, Output) or value is None:
            continue
        if not value:
            raise FormatError(f"{_name(param)} is empty; write the name of a {param.type.name}")
        if param.type.name == "file":  # files in a folder are checked when they are written
            _refuse_inputs(value, context)
        real = os.path.realpath(value)
        if param.type.name == "folder" and os.path.exists(value) and not os.path.isdir(value):
            raise FormatError(f"{value}: is a file; choose another name for the folder")
        if param.type.name == "file":
            _refuse_unwritable(value)
            if not param.type.resumable:
                refuse_replacement(value, param.type.kind)
            if real in named:
                raise FormatError(
                    f"{value}: is named by both {_name(named[real])} and {_name(param)}; "
                    "choose two files"
                )
        named[real] = param


def _refuse_unwritable(path: str) -> None:
    if os.path.isdir(path):
        raise FormatError(f"{path}: is a folder; give the name of a file in it")
    place = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(place):
        raise FormatError(f"{path}: the folder {place} does not exist; make it first")
    target = path if os.path.exists(path) and not os.path.isfile(path) else place
    if not os.access(target, os.W_OK):
        raise FormatError(f"{path}: cannot be written: Permission denied")


def _refuse_inputs(path: str | Path, context: click.Context) -> None:
    """Refuse a path that a parameter other than an output names, however it is spelt."""
    for param in context.command.params:
        if isinstance(param.type, Output):
            continue
        value = context.params.get(param.name or "")
        for text in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(text, str) and any(_same(path, one) for one in _files_named(text)):
                raise FormatError(
                    f"{path} is the file of {_name(param)}; an output never replaces an input, "
                    "choose another name"
                )


def _files_named(text: str) -> Iterator[str]:
    """Yield the files that an argument may name (path, pattern or URL), and their locks."""
    if "://" in text or text.startswith("spark:"):
        text = text.split("#")[0].split("?")[0].removeprefix("spark:").split("://")[-1]
    yield text
    yield f"{text}.lock"
    if glob.has_magic(text):
        yield from glob.iglob(text, recursive=True)


def _same(one: str | Path, two: str | Path) -> bool:
    """Return whether two paths name the same file, also through links or before it exists."""
    try:
        if os.path.exists(one) and os.path.exists(two):
            return os.path.isfile(one) and os.path.samefile(one, two)
        return os.path.realpath(one) == os.path.realpath(two)
    except (OSError, ValueError):  # the path is too long or contains a NUL byte
        return False


def _name(param: click.Parameter) -> str:
    option = isinstance(param, click.Option)
    return max(param.opts, key=len) if option else str(param.metavar or param.name).upper()


def folder(path: str) -> Path:
    """Create a folder if it does not exist, and return its path."""
    made = Path(path)
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{path}: cannot be made a folder: {error.strerror or error}") from None
    return made


@contextmanager
def replacing(path: str | Path, *, free: bool = False) -> Iterator[Path]:
    """Yield a draft file that replaces ``path`` if the block succeeds."""
    from discreet import documents  # which brings pydantic

    kind, declared = FREE if free else "", None
    if context := click.get_current_context(silent=True):
        _refuse_inputs(path, context)
        if declared := _declared(path, context):
            kind = kind or declared.kind
    with documents.replacing(path) as draft:
        yield draft
        if draft != Path(path):  # not a device or a pipe
            try:
                refuse_replacement(path, kind, draft)
            except FormatError as error:
                if declared is None:
                    raise
                beside = _keep_beside(path, draft)  # the file appeared while the command ran
                raise FormatError(f"{error}; the new result is in {beside}") from None


def _keep_beside(path: str | Path, draft: Path) -> Path:
    """Save a draft that may not replace its target under a new name: budget may be spent on it."""
    from discreet import documents

    named = Path(path)
    beside = named.with_name(f"{named.stem}-{secrets.token_hex(4)}{named.suffix}")
    documents.move_atomic(draft, beside)
    return beside


def _declared(path: str | Path, context: click.Context) -> Output | None:
    """Find the output that the command declares for a path."""
    for param in context.command.params:
        if isinstance(param.type, Output) and context.params.get(param.name or "") == str(path):
            return param.type
    return None


def write(path: str | Path, content: str | bytes, *, free: bool = False) -> None:
    """Write a file completely or not at all.

    Parameters
    ----------
    path : path
    content : str or bytes
    free : bool, default False
        Whether the caller knows that an existing file can be made again without cost.
    """
    with replacing(path, free=free) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
