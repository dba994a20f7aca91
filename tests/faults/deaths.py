"""A process that dies at a call that touches the disk."""

from __future__ import annotations

import os

POINTS = ("open", "fsync", "link", "replace", "rename", "unlink")
"""What a program calls to change a disk."""


def dying(k):
    """Make the k-th call that touches the disk the last one of this process."""
    calls = 0

    def dies(real):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == k:
                os._exit(9)
            return real(*arguments, **options)

        return call

    for name in POINTS:
        setattr(os, name, dies(getattr(os, name)))
