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
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

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
    "make_folder",
    "make_output",
    "open_replacement",
    "require_budget_file",
    "write_file",
]


OUTPUT_KINDS_KEY = "discreet.output_kinds"
"""Key of the kinds of the outputs that the command line names, by path, as `check_outputs` did."""


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


def make_output(kind: str, *, resumable: bool = False) -> Output:
    """Make the parameter type of a file of one kind."""
    return Output("file", kind, resumable=resumable)


def check_outputs(context: click.Context) -> None:
    """Refuse outputs that cannot be written or would replace an input, before the command runs."""
    params_by_path: dict[str, click.Parameter] = {}
    outputs: list[tuple[str, click.Parameter, Output]] = [
        (context.params[str(param.name)], param, param.type)
        for param in context.command.params
        if isinstance(param.type, Output) and context.params.get(str(param.name)) is not None
    ]
    context.meta[OUTPUT_KINDS_KEY] = {path: output.kind for path, _, output in reversed(outputs)}
    for path, param, output in outputs:
        if not path:
            raise FormatError(
                f"{_get_param_name(param)} is empty; write the name of a {output.name}"
            )
        real_path = os.path.realpath(path)
        if output.name == "file":  # files in a folder are checked when they are written
            _refuse_inputs(path, context)
            if os.path.isdir(path):
                raise FormatError(f"{path}: is a folder; give the name of a file in it")
            folder = os.path.dirname(real_path)
            if not os.path.isdir(folder):
                raise FormatError(f"{path}: the folder {folder} does not exist; make it first")
            is_device = os.path.exists(path) and not os.path.isfile(path)
            if not os.access(path if is_device else folder, os.W_OK):
                raise FormatError(f"{path}: cannot be written: Permission denied")
            if not output.resumable:
                refuse_replacement(path, output.kind)
            if real_path in params_by_path:
                raise FormatError(
                    f"{path}: is named by both {_get_param_name(params_by_path[real_path])} "
                    f"and {_get_param_name(param)}; choose two files"
                )
        elif os.path.exists(path) and not os.path.isdir(path):
            raise FormatError(f"{path}: is a file; choose another name for the folder")
        params_by_path[real_path] = param


def _refuse_inputs(path: str | Path, context: click.Context) -> None:
    """Refuse a path that a parameter other than an output names, however it is spelt."""
    for param in context.command.params:
        if isinstance(param.type, Output):
            continue
        value = context.params.get(param.name or "")
        for argument in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(argument, str) and _names_file(argument, path):
                raise FormatError(
                    f"{path} is the file of {_get_param_name(param)}; an output never replaces an "
                    "input, choose another name"
                )


def _names_file(argument: str, path: str | Path) -> bool:
    """Return whether an argument (path, pattern or URL) names a file, or one whose lock it is.

    The file may be linked, and need not exist.
    """
    if "://" in argument or argument.startswith("spark:"):
        argument = argument.split("#")[0].split("?")[0].removeprefix("spark:").split("://")[-1]
    matching_files = glob.iglob(argument, recursive=True) if glob.has_magic(argument) else ()
    for named_file in chain((argument, f"{argument}.lock"), matching_files):
        with suppress(OSError, ValueError):  # the path is too long or contains a NUL byte
            if os.path.exists(path) and os.path.exists(named_file):
                is_same = os.path.isfile(path) and os.path.samefile(path, named_file)
            else:
                is_same = os.path.realpath(path) == os.path.realpath(named_file)
            if is_same:
                return True
    return False


def _get_param_name(param: click.Parameter) -> str:
    is_option = isinstance(param, click.Option)
    return max(param.opts, key=len) if is_option else str(param.metavar or param.name).upper()


def make_folder(path: str) -> Path:
    """Create a folder if it does not exist, and return its path."""
    folder_path = Path(path)
    try:
        folder_path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{path}: cannot be made a folder: {error.strerror or error}") from None
    return folder_path


@contextmanager
def open_replacement(path: str | Path, *, free_to_replace: bool = False) -> Iterator[Path]:
    """Yield a draft file that replaces ``path`` if the block succeeds."""
    from discreet.files import atomic_writing

    declared_kinds: dict[str, str] = {}
    if context := click.get_current_context(silent=True):
        _refuse_inputs(path, context)
        declared_kinds = context.meta.get(OUTPUT_KINDS_KEY, {})
    output_kind = FREE if free_to_replace else declared_kinds.get(str(path), "")
    with atomic_writing.atomic_replacement(path) as draft:
        yield draft
        if draft != Path(path):  # not a device or a pipe
            try:
                refuse_replacement(path, output_kind, draft)
            except FormatError as error:
                if str(path) not in declared_kinds:
                    raise
                saved_path = _move_beside(path, draft)  # the file appeared while the command ran
                raise FormatError(f"{error}; the new result is in {saved_path}") from None


def _move_beside(path: str | Path, draft: Path) -> Path:
    """Save a draft that may not replace its target under a new name: budget may be spent on it."""
    from discreet.files import atomic_writing

    output_path = Path(path)
    saved_path = output_path.with_name(
        f"{output_path.stem}-{secrets.token_hex(4)}{output_path.suffix}"
    )
    atomic_writing.move_atomic(draft, saved_path)
    return saved_path


def write_file(path: str | Path, content: str | bytes, *, free_to_replace: bool = False) -> None:
    """Write a file completely or not at all.

    Parameters
    ----------
    path : path
    content : str or bytes
    free_to_replace : bool, default False
        Whether the caller knows that an existing file can be made again without cost.
    """
    with open_replacement(path, free_to_replace=free_to_replace) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def require_budget_file(budget_file: str | None, **options: Any) -> None:
    """Refuse options of a ledger where no ledger is named.

    Ignoring them would run a training that the user believes to be limited.

    Parameters
    ----------
    budget_file : str, optional
    **options
        Values of other options, by parameter name; None and False mean not given.
    """
    for option_name, value in options.items():
        if budget_file is None and value is not None and value is not False:
            amount_text = f" {value:g}" if isinstance(value, float) else f" {value}"
            amount_text = "" if value is True else amount_text
            raise click.UsageError(
                f"--{option_name.replace('_', '-')}{amount_text} has no effect without a ledger; "
                "name its file with --budget-file budget.json."
            )
