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

from discreet.cli.federated.progress import ProgressReporter
from discreet.cli.output import make_console, make_table
from discreet.errors import DiscreetError
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.service.routes import list_routes

__all__ = ["Rehearsal", "find_free_port"]

POLL_SECONDS = 0.1
TERMINATION_SECONDS = 5.0
"""Seconds that a terminated process has to exit before it is killed."""


@dataclass(frozen=True)
class PartyProgress:
    """Progress of one party."""

    name: str
    role: str
    has_signed: bool
    sent_messages: tuple[str, ...]
    due_count: int
    last_line: str


def find_free_port() -> int:
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
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.collector_folder = folder / "kept-collector" / manifest.hash.hex()[:32]
        self.due_messages = [
            (sender, f"{recipient} {sender} {message_kind}")
            for recipient, expected_messages in list_routes(manifest).items()
            for sender, message_kind in expected_messages
        ]
        self.port = find_free_port()
        self._previous_handlers: dict[int, Any] = {}
        self._defers_interrupts, self._interrupted = False, False

    def __enter__(self) -> Self:
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            self._previous_handlers[signal_number] = signal.signal(
                signal_number, self._handle_interrupt
            )
        return self

    def _handle_interrupt(self, signal_number: int, frame: Any) -> None:
        self._interrupted = True
        if not self._defers_interrupts:
            raise KeyboardInterrupt

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._defers_interrupts = True  # ignore a second Ctrl-C while shutting down
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + TERMINATION_SECONDS
        for process in self.processes.values():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for signal_number, handler in self._previous_handlers.items():
            signal.signal(signal_number, handler)

    def start_collector(self, *arguments: str) -> None:
        """Start the collector."""
        self._start_process(
            self.manifest.collector.name, "collect", "--port", str(self.port), *arguments
        )

    def start_party(self, party_name: str, command_name: str, *arguments: str) -> None:
        """Start a party other than the collector."""
        self._start_process(
            party_name, command_name, *arguments, "--collector", f"http://127.0.0.1:{self.port}"
        )

    def _start_process(self, party_name: str, command_name: str, *arguments: str) -> None:
        process_arguments = [
            *(
                sys.executable,
                "-m",
                "discreet",
                "federated",
                command_name,
                "manifest.json",
                *arguments,
            ),
            *(
                "--identity",
                f"{party_name}.identity.json",
                "--state",
                f"kept-{party_name}",
                "--yes",
            ),
        ]
        self._defers_interrupts = True  # an interrupt here would leave an unrecorded process
        with open(self.folder / f"{party_name}.log", "wb") as log_file:
            self.processes[party_name] = subprocess.Popen(
                process_arguments,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,  # Ctrl-C ends this process, which ends the others
            )
        self._defers_interrupts = False
        if self._interrupted:
            raise KeyboardInterrupt

    def list_progress(self) -> list[PartyProgress]:
        """Return the progress of every party."""
        return [self._get_progress(party_name) for party_name in self.manifest.parties]

    def _get_progress(self, party_name: str) -> PartyProgress:
        due_names = [
            message_name for sender, message_name in self.due_messages if sender == party_name
        ]
        sent_names = tuple(
            message_name for message_name in due_names if self._has_message(message_name)
        )
        process = self.processes.get(party_name)
        last_line = (
            "ended"
            if process is not None and process.poll() == 0
            else self._read_last_line(party_name)
        )
        is_collector = party_name == self.manifest.collector.name
        has_signed = (
            self.collector_folder.exists()
            if is_collector
            else (self.collector_folder / f"{party_name}.signature").exists()
        )
        return PartyProgress(
            party_name,
            self.manifest.roles[party_name],
            has_signed,
            sent_names,
            len(due_names),
            last_line,
        )

    def _has_message(self, message_name: str) -> bool:
        """Return whether the collector has a message; its own messages have other file names."""
        own_name = "correction" if message_name.endswith(" correction") else "result"
        is_own_message = (
            f" {self.manifest.collector.name} " in message_name
            and (self.collector_folder / f"{own_name}.sent").exists()
        )
        return is_own_message or (self.collector_folder / f"{message_name}.message").exists()

    def _read_last_line(self, party_name: str) -> str:
        try:
            log_lines = (
                (self.folder / f"{party_name}.log").read_text("utf-8", "replace").splitlines()
            )
        except FileNotFoundError:
            return "not started"
        text_lines = [log_line for log_line in log_lines if log_line.strip()]
        # a repeated line ends with the elapsed seconds
        return re.sub(r" …, \d+ s$", "", text_lines[-1].strip()) if text_lines else "starting"

    def show_until_ended(self, reporter: ProgressReporter) -> None:
        """Show the progress of all parties until they exit; raise if one of them fails."""
        with _open_view(reporter) as update_view:
            while True:
                running_names = [
                    party_name
                    for party_name, process in self.processes.items()
                    if process.poll() is None
                ]
                update_view(self.list_progress())
                self._raise_if_failed()
                if not running_names:
                    return
                time.sleep(POLL_SECONDS)

    def _raise_if_failed(self) -> None:
        failed_names = [
            party_name for party_name, process in self.processes.items() if process.poll()
        ]
        if (
            failed_names
        ):  # the collector's error usually follows from another party's: report it last
            failed_names.sort(key=lambda party_name: party_name == self.manifest.collector.name)
            party_name = failed_names[0]
            last_line = self._read_last_line(party_name).removeprefix("Error: ")
            raise DiscreetError(
                f"{party_name} ({self.manifest.roles[party_name]}) gave up: {last_line}"
            )


@contextmanager
def _open_view(reporter: ProgressReporter) -> Iterator[Any]:
    """Yield a function that updates a table at a terminal, or prints news as lines elsewhere."""
    if sys.stderr.isatty():
        from rich.live import Live

        with (
            reporter.pause_output(),
            Live(console=make_console(stderr=True), refresh_per_second=5) as live_display,
        ):
            yield lambda parties: live_display.update(_make_progress_table(parties))
        return
    yield _NewsPrinter(reporter).print_news


def _make_progress_table(parties: list[PartyProgress]) -> Any:
    progress_table = make_table("Rehearsal", "party", "part", "signed", "sent", "now")
    for party in parties:
        sent_text = f"{len(party.sent_messages)} of {party.due_count}" if party.due_count else ""
        progress_table.add_row(
            party.name, party.role, "yes" if party.has_signed else "no", sent_text, party.last_line
        )
    return progress_table


class _NewsPrinter:
    """Prints what has changed as lines of text."""

    def __init__(self, reporter: ProgressReporter) -> None:
        self.reporter = reporter
        self.printed_lines: set[str] = set()

    def print_news(self, parties: list[PartyProgress]) -> None:
        news_lines = [f"{party.name} has signed" for party in parties if party.has_signed]
        for party in parties:
            for message_name in party.sent_messages:
                recipient, _, message_kind = message_name.split(" ")
                news_lines.append(f"{party.name} has sent its {message_kind} for {recipient}")
            if party.last_line == "ended":
                news_lines.append(f"{party.name} has ended")
        for news_line in news_lines:
            if news_line not in self.printed_lines:
                self.printed_lines.add(news_line)
                self.reporter.say(news_line)
        waiting_texts = [
            f"{party.name}: {party.last_line}" for party in parties if party.last_line != "ended"
        ]
        self.reporter.show("; ".join(waiting_texts) or "going on")
