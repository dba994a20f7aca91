"""Start, watch and terminate the parties of a rehearsal, each a process."""

from __future__ import annotations

import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from discreet.cli.federated.telling import Telling
from discreet.cli.output import console, table
from discreet.errors import DiscreetError
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.service.routes import routes

__all__ = ["Rehearsal", "free_port"]

PAUSE = 0.1
GRACE = 5.0
"""Seconds that a terminated process has to exit before it is killed."""


@dataclass(frozen=True)
class Standing:
    """Progress of one party."""

    name: str
    role: str
    signed: bool
    sent: tuple[str, ...]
    due: int
    says: str


def free_port() -> int:
    """Find a free port of this machine.

    It is not chosen by the system, which could give the same port to another connection before the
    collector listens on it.
    """
    for port in random.sample(range(15_000, 30_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise DiscreetError("there is no free port between 15000 and 30000 on this machine")


class Rehearsal:
    """All parties of one round on this machine.

    Leaving the context terminates every process.

    Parameters
    ----------
    folder : path
        With the manifest and the identities.
    manifest : Manifest
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.kept = folder / "kept-collector" / manifest.hash.hex()[:32]
        self.due = [
            (sender, f"{recipient} {sender} {kind}")
            for recipient, expected in routes(manifest).items()
            for sender, kind in expected
        ]
        self.port = free_port()
        self._before: dict[int, Any] = {}
        self._busy, self._interrupted = False, False

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._interrupt)
        return self

    def _interrupt(self, number: int, frame: Any) -> None:
        self._interrupted = True
        if not self._busy:
            raise KeyboardInterrupt

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._busy = True  # ignore a second Ctrl-C while shutting down
        for process in self.running.values():
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + GRACE
        for process in self.running.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def collect(self, *words: str) -> None:
        """Start the collector."""
        self._run(self.manifest.collector.name, "collect", "--port", str(self.port), *words)

    def start(self, name: str, step: str, *words: str) -> None:
        """Start a party other than the collector."""
        self._run(name, step, *words, "--collector", f"http://127.0.0.1:{self.port}")

    def _run(self, name: str, step: str, *words: str) -> None:
        command = [
            *(sys.executable, "-m", "discreet", "federated", step, "manifest.json", *words),
            *("--identity", f"{name}.identity.json", "--state", f"kept-{name}", "--yes"),
        ]
        self._busy = True  # an interrupt here would leave an unrecorded process
        with open(self.folder / f"{name}.log", "wb") as log:
            self.running[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C ends this process, which ends the others
            )
        self._busy = False
        if self._interrupted:
            raise KeyboardInterrupt

    def standings(self) -> list[Standing]:
        """Return the progress of every party."""
        return [self._standing(name) for name in self.manifest.parties]

    def _standing(self, name: str) -> Standing:
        due = [file for sender, file in self.due if sender == name]
        sent = tuple(file for file in due if self._sent(file))
        process = self.running.get(name)
        says = "ended" if process is not None and process.poll() == 0 else self._last(name)
        collector = name == self.manifest.collector.name
        signed = self.kept.exists() if collector else (self.kept / f"{name}.signature").exists()
        return Standing(name, self.manifest.roles[name], signed, sent, len(due), says)

    def _sent(self, file: str) -> bool:
        """Return whether the collector has a message; its own messages have other file names."""
        own = "correction" if file.endswith(" correction") else "result"
        made = f" {self.manifest.collector.name} " in file and (self.kept / f"{own}.sent").exists()
        return made or (self.kept / f"{file}.message").exists()

    def _last(self, name: str) -> str:
        try:
            lines = (self.folder / f"{name}.log").read_text("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return "not started"
        said = [line for line in lines if line.strip()]
        # a repeated line ends with the elapsed seconds
        return re.sub(r" …, \d+ s$", "", said[-1].strip()) if said else "starting"

    def watch(self, tell: Telling) -> None:
        """Show the progress of all parties until they exit; raise if one of them fails."""
        with _view(tell) as show:
            while True:
                left = [name for name, process in self.running.items() if process.poll() is None]
                show(self.standings())
                self._raise_if_failed()
                if not left:
                    return
                time.sleep(PAUSE)

    def _raise_if_failed(self) -> None:
        failed = [name for name, process in self.running.items() if process.poll()]
        if failed:  # the collector's error usually follows from another party's: report it last
            failed.sort(key=lambda name: name == self.manifest.collector.name)
            name = failed[0]
            says = self._last(name).removeprefix("Error: ")
            raise DiscreetError(f"{name} ({self.manifest.roles[name]}) gave up: {says}")


@contextmanager
def _view(tell: Telling) -> Iterator[Any]:
    """Yield a function that updates a table at a terminal, or prints news as lines elsewhere."""
    if sys.stderr.isatty():
        from rich.live import Live

        with tell.asked(), Live(console=console(stderr=True), refresh_per_second=5) as live:
            yield lambda standings: live.update(_drawn(standings))
        return
    yield _Lines(tell).show


def _drawn(standings: list[Standing]) -> Any:
    made = table("Rehearsal", "party", "part", "signed", "sent", "now")
    for one in standings:
        sent = f"{len(one.sent)} of {one.due}" if one.due else ""
        made.add_row(one.name, one.role, "yes" if one.signed else "no", sent, one.says)
    return made


class _Lines:
    """Prints what has changed as lines of text."""

    def __init__(self, tell: Telling) -> None:
        self.tell = tell
        self.told: set[str] = set()

    def show(self, standings: list[Standing]) -> None:
        news = [f"{one.name} has signed" for one in standings if one.signed]
        for one in standings:
            for file in one.sent:
                recipient, _, kind = file.split(" ")
                news.append(f"{one.name} has sent its {kind} for {recipient}")
            if one.says == "ended":
                news.append(f"{one.name} has ended")
        for line in news:
            if line not in self.told:
                self.told.add(line)
                self.tell.say(line)
        waiting = [f"{one.name}: {one.says}" for one in standings if one.says != "ended"]
        self.tell.show("; ".join(waiting) or "going on")
