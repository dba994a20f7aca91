"""Federated rounds of real processes on loopback, for the benchmarks: time, memory, bytes.

Every party is ``discreet federated …``, started from files, as it would be elsewhere. ``wait4``
gives each process's processor time and its largest resident memory.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from discreet import Categorical, Schema
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Processes", "holding", "write_parties", "write_vertical"]


@dataclass
class Spent:
    """What a process took."""

    wall: float
    cpu: float
    memory: float
    code: int


@dataclass
class Processes:
    """The parties of one round, over the files of a folder."""

    folder: Path
    deadline: int = 900
    begun: float = 0.0
    started: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.line = ("--collector", f"http://127.0.0.1:{self.port}", "--yes")

    def command(self, *words: Any) -> list[str]:
        """A command of ``discreet federated``."""
        return [sys.executable, "-m", "discreet", "federated", *map(str, words)]

    def run(self, *words: Any) -> None:
        """Run a command and wait for it."""
        subprocess.run(self.command(*words), cwd=self.folder, check=True, capture_output=True)

    def start(self, name: str, *words: Any) -> None:
        """Start a party; what it says goes to a file."""
        self.begun = self.begun or time.monotonic()
        identity = ("--identity", f"{name}.identity.json", "--state", f"kept-{name}")
        with open(self.folder / f"{name}.log", "wb") as log:
            words = (words[0], "m.json", *words[1:], *identity)
            process = subprocess.Popen(self.command(*words), cwd=self.folder, stderr=log)
        self.started[name] = process.pid

    def collect(self, *words: Any) -> None:
        """Start the collector."""
        self.start("collector", "collect", "--port", self.port, "--yes", *words)

    def party(self, name: str, step: str, *words: Any) -> None:
        """Start another party."""
        self.start(name, step, *words, *self.line)

    def wait(self) -> dict[str, Spent]:
        """What each took; the first that fails ends them all."""
        left, found = {pid: name for name, pid in self.started.items()}, {}
        while left:
            pid, status, usage = os.wait4(-1, 0)
            name = left.pop(pid, "")
            if name:
                wall, cpu = time.monotonic() - self.begun, usage.ru_utime + usage.ru_stime
                code = os.waitstatus_to_exitcode(status)
                found[name] = Spent(wall, cpu, usage.ru_maxrss / 1024, code)
                if code:
                    for one in left:
                        os.kill(one, 9)
                    said = (self.folder / f"{name}.log").read_text()[-500:]
                    raise RuntimeError(f"{name} has failed: {said}")
        return found

    def agree(self, *words: Any) -> None:
        """Write the manifest, with epsilon 1."""
        who = ("--collector", "collector.card.json", "--receiver", "receiver.card.json")
        self.run("manifest", "schema.json", *who, "--epsilon", 1, "-o", "m.json", *words)

    def sent(self) -> dict[tuple[str, str], int]:
        """Bytes of the bodies that each party sent, by kind; headers stay at the collector."""
        found: dict[tuple[str, str], int] = {}
        for path in (self.folder / "kept-collector").glob("*/*.message"):
            header = json.loads(path.read_text())
            what = (header["sender"], header["kind"])
            found[what] = found.get(what, 0) + header["size"]
        return found


def holding(own: Identity, key: PrivateKey | None) -> Card:
    """The card of whoever holds the Paillier key, if there is one."""
    return own.card if key is None else own.make_card_with_key(key)


def write_parties(folder: Path, *names: str, key: PrivateKey | None = None) -> None:
    """Identities and cards as files."""
    for one in names:
        own = Identity.generate(one)
        (folder / f"{one}.identity.json").write_text(own.to_json())
        (folder / f"{one}.card.json").write_text(holding(own, key).to_json())


def write_vertical(folder: Path, rows: int, cells: int, providers: int) -> Schema:
    """A table of two classes whose columns lie with some providers, ``cells`` in all."""
    values = [chr(97 + i) for i in range(cells // providers)]
    schema = Schema(
        [Categorical(f"x{i}", values, optional=False) for i in range(providers)], "y", ["no", "yes"]
    )
    (folder / "schema.json").write_text(schema.to_json())
    rng, ids = np.random.default_rng(0), [f"p{i:08d}" for i in range(rows)]
    columns = {
        f"p{i}": np.array(values)[rng.integers(len(values), size=rows)] for i in range(providers)
    }
    columns["label"] = np.array(["no", "yes"])[rng.integers(2, size=rows)]
    for i, (name, column) in enumerate(columns.items()):
        head = "y" if name == "label" else f"x{i}"
        lines = [f"id,{head}", *map(",".join, zip(ids, column.tolist(), strict=True))]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return schema


if __name__ == "__main__":
    place, *numbers = sys.argv[1:]
    write_vertical(Path(place), *map(int, numbers))
