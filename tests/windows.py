"""The file locks of Windows, as far as another system can pretend to have them.

``msvcrt.locking`` is replaced by a stand-in with its contract: one open file at a time holds the
byte, another gets EACCES at once, and closing the file gives it back. Run as a program, it charges
a ledger under these locks, as :data:`test_ledger.CHARGE` does.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from discreet.files import locks

NBLCK = 2
real = locks.fcntl


def pretended(put: Callable[[Any, str, Any], None], failing: int = 0) -> None:
    """Let files/locks.py find msvcrt and no fcntl."""

    def locking(file: int, mode: int, count: int) -> None:
        assert (mode, count) == (NBLCK, 1)
        if failing:
            raise OSError(failing, os.strerror(failing))
        try:
            real.flock(file, real.LOCK_EX | real.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    put(locks, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=NBLCK))
    put(locks, "fcntl", None)


if __name__ == "__main__":
    pretended(setattr)
    program, *sys.argv[1:] = sys.argv[1:]
    exec(compile(program, "charging", "exec"))
