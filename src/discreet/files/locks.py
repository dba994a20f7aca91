"""File locks between processes; a lock ends with the process that holds it."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.errors import FormatError

fcntl: Any
msvcrt: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
try:
    import msvcrt
except ImportError:  # everything else
    msvcrt = None

__all__ = ["hold_lock"]


@contextmanager
def hold_lock(path: str | Path, busy_message: str = "") -> Iterator[None]:
    """Hold an exclusive lock on a file or folder; released at the end, also of a killed process.

    Parameters
    ----------
    path : path
        A folder that exists, or a file, which is created if it is missing.
    busy_message : str, optional
        Error message if another process holds the lock; if empty, wait for the lock.
    """
    if fcntl is None and msvcrt is None:
        raise FormatError(
            f"{path}: this system has no file locks (neither fcntl nor msvcrt); without them two "
            "processes could spend the same privacy twice, so nothing is done"
        )
    is_folder = Path(path).is_dir()
    flags = os.O_RDONLY if is_folder and fcntl is not None else os.O_RDWR | os.O_CREAT
    try:  # Windows cannot open a folder: there, a file inside is locked
        lock_path = Path(path, ".lock") if is_folder and fcntl is None else path
        lock_file = os.open(lock_path, flags, 0o600)
    except OSError as error:
        raise FormatError(f"{path}: cannot be opened: {error.strerror}") from None
    try:
        while not _try_lock(path, lock_file, wait=not busy_message):
            if busy_message:
                raise FormatError(f"{path}: {busy_message}")
            time.sleep(0.02)  # msvcrt cannot wait for as long as it takes
        yield
    finally:
        os.close(lock_file)  # gives the lock back, as the end of a process does


def _try_lock(path: str | Path, lock_file: int, *, wait: bool) -> bool:
    """Try to lock an open file; False if another process holds the lock."""
    held_errors = (errno.EACCES, errno.EDEADLK)
    try:
        if fcntl is not None:
            held_errors = (errno.EAGAIN, errno.EWOULDBLOCK)
            fcntl.flock(lock_file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        else:
            msvcrt.locking(lock_file, msvcrt.LK_NBLCK, 1)  # one byte: it need not exist
    except OSError as error:
        if error.errno in held_errors:
            return False
        raise FormatError(f"{path}: cannot be locked: {error.strerror}") from None
    return True
