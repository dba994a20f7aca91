"""The federated commands as processes of their own, and the tables that they read."""

from __future__ import annotations

import csv
import subprocess
import sys

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

PATIENCE = 90
"""Seconds that a process may take on a busy machine."""


def discreet(*arguments, cwd):
    run = subprocess.run(
        [sys.executable, "-m", "discreet", "federated", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    return run


def write_rows(path, columns, codes, names, ids=None):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(["id"] if ids is not None else []), *names])
        for row in range(len(codes)):
            values = []
            for name in names:
                if name == "class":
                    values.append(["no", "yes"][codes[row]])
                    continue
                value = columns[name][row]
                values.append("" if value != value else value)
            writer.writerow([*([ids[row]] if ids is not None else []), *values])
