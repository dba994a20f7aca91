"""Atomic writing of files.

Every file is written here: to a new file in the same folder, synced, then renamed, so that a
reader sees the old content or the new one and a crash loses neither.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import DiscreetError, FormatError

__all__ = [
    "atomic_replacement",
    "destroy_file",
    "error_context",
    "make_private_folder",
    "move_atomic",
    "read_text",
    "remove_drafts",
    "replace_and_destroy",
    "sync_path",
    "write_atomic",
]

MAX_DRAFT_NAME_BYTES = 200
"""Longest file name, in bytes, that its drafts repeat: file systems allow 255, drafts add 23."""


@contextmanager
def error_context(path: str | Path) -> Iterator[None]:
    """Prefix errors that are raised in this block with the name of the file."""
    try:
        yield
    except DiscreetError as error:
        if str(error).startswith(str(path)):
            raise
        raise type(error)(f"{path}: {error}") from None


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
        sync_path(draft_path)
        if exclusive:
            os.link(draft_path, target_path)  # fails if it exists: the first writer wins
        else:
            draft_path.replace(target_path)
        sync_path(target_path.parent)
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
        sync_path(source)
        os.replace(source, target)
        sync_path(Path(target).parent)
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
        sync_path(target_path.parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FormatError(f"{path}: cannot be destroyed: {error.strerror}") from None


def sync_path(path: str | Path) -> None:
    """Let the content of a file, or the names in a folder, outlive a power cut.

    Parameters
    ----------
    path : path
        Of a folder, names that were added or removed are synced.
    """
    flags = os.O_RDWR  # Windows syncs no file that is open for reading only, and no folder
    if os.path.isdir(path):
        if not hasattr(os, "O_DIRECTORY"):
            return
        flags = os.O_RDONLY | os.O_DIRECTORY
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
