"""The command line in this process."""

from __future__ import annotations

import pytest

from discreet.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[object, str, str]:
    """The exit code of a command, and what it printed."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    out = capsys.readouterr()
    return left.value.code, out.out, out.err
