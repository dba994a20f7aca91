"""A round on one machine: a manifest with keys that are thrown away, and one process per party.

Every party runs the command that it would run on its own machine. This machine sees every table,
so the result promises nothing.
"""

from __future__ import annotations

import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from discreet.errors import DiscreetError, SchemaError
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest, Mode
from discreet.federated.agreement.manifest_file import parse_held_columns
from discreet.federated.counters import (
    PEOPLE_PER_PROVIDER,
    compute_default_bins,
    make_feature_requests,
)
from discreet.federated.judging import make_judging_manifest, pays_to_judge, split_judging_epsilon
from discreet.federated.service.routes import list_routes
from discreet.files.atomic_writing import error_context, read_text, write_atomic
from discreet.schema.schema import Schema
from discreet.statistics.statistics import Statistics

if TYPE_CHECKING:
    from discreet.tables.contributions import MissingPerson

__all__ = [
    "PartyProgress",
    "Rehearsal",
    "RehearsalRequest",
    "find_free_port",
    "write_agreement",
    "write_judging_agreement",
]

POLL_SECONDS = 0.1
TERMINATION_SECONDS = 5.0
"""Seconds that a terminated process has to exit before it is killed."""


@dataclass(frozen=True)
class RehearsalRequest:
    """Settings of a rehearsal.

    Parameters
    ----------
    schema : Schema
    providers : mapping of name to table
    label : pair of name and table, optional
        The label provider, which makes the round vertical.
    columns : tuple of str
        Who holds what, such as ``a=age,sex``; without it, what the tables have.
    epsilon, mode, tolerated
        As in the manifest.
    paillier : bool
        Paillier encryption; else masks.
    bins : "auto" or int
    people : int or None
        How many are expected in all tables, for ``bins`` and ``judge``; a thousand per provider if
        None.
    judge : bool
        Whether providers of rows judge candidate models in a second round, where that pays.
    moments : tuple of str
    deadline : float
        Seconds for the whole round.
    id_column : str, optional
        The column that rows are aligned by.
    rows_per_person : int, default 1
        As in the manifest.
    person : str, optional
        The column that says whose a row is, in the tables of all providers.
    missing_person : {"error", "own"}
    """

    schema: Schema
    providers: Mapping[str, str]
    label: tuple[str, str] | None
    columns: tuple[str, ...]
    epsilon: float
    mode: Mode
    paillier: bool
    tolerated: int
    bins: Any
    people: int | None
    judge: bool
    moments: tuple[str, ...]
    deadline: float
    id_column: str | None
    rows_per_person: int = 1
    person: str | None = None
    missing_person: MissingPerson = "error"

    @property
    def expected_people(self) -> int:
        """How many people are expected in all tables, by what is public."""
        return self.people or PEOPLE_PER_PROVIDER * len(self.providers)

    @property
    def is_judged(self) -> bool:
        """Whether there is a second round, by public numbers alone."""
        is_possible = self.label is None and self.mode == "counts" and not self.moments
        is_choice = len(self.schema.classes) > 1
        return (
            self.judge
            and is_possible
            and is_choice
            and pays_to_judge(self.expected_people, self.epsilon)
        )


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

    def start_parties(self, request: RehearsalRequest, key_holder: str | None) -> None:
        """Start every party as a process, with the commands it would use on its own machine."""

        def get_key_arguments(party_name: str) -> tuple[str, ...]:
            return ("--key", f"{party_name}.paillier.json") if party_name == key_holder else ()

        collector = self.manifest.collector.name
        self._start_process(
            collector, "collect", "--port", str(self.port), *get_key_arguments(collector)
        )
        address = ("--collector", f"http://127.0.0.1:{self.port}")
        receiver_arguments = (*get_key_arguments("receiver"), "-o", "model.json")
        if self.manifest.judging is not None:
            receiver_arguments += ("--judged", "statistics.json")
        elif request.is_judged:
            receiver_arguments += ("--statistics", "statistics.json")
        self._start_process("receiver", "receive", *receiver_arguments, *address)
        table_arguments = (
            *(() if request.id_column is None else ("--id", request.id_column)),
            *(("--unprotected",) if self.manifest.is_effectively_exact else ()),
        )
        person_arguments: tuple[str, ...] = ()
        if request.person is not None:
            person_arguments = ("--person", request.person)
            person_arguments += ("--missing-person", request.missing_person)
        for party_name, table in request.providers.items():
            own_arguments = (_resolve_path(table), *table_arguments, *person_arguments)
            self._start_process(party_name, "provide", *own_arguments, *address)
        if request.label is not None:
            party_name, table = request.label
            key_arguments = get_key_arguments(party_name)
            own_arguments = (_resolve_path(table), *table_arguments, *key_arguments, *address)
            self._start_process(party_name, "label", *own_arguments)

    def _start_process(self, party_name: str, command_name: str, *arguments: str) -> None:
        own_files = ["--identity", f"{party_name}.identity.json", "--state", f"kept-{party_name}"]
        command = [sys.executable, "-m", "discreet", "federated", command_name, "manifest.json"]
        self._defers_interrupts = True  # an interrupt here would leave an unrecorded process
        with open(self.folder / f"{party_name}.log", "wb") as log_file:
            self.processes[party_name] = subprocess.Popen(
                [*command, *arguments, *own_files, "--yes"],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,  # Ctrl-C ends this process, which ends the others
            )
        self._defers_interrupts = False
        if self._interrupted:
            raise KeyboardInterrupt

    def get_progress(self, party_name: str) -> PartyProgress:
        """Return how far a party is."""
        due_names = [
            message_name for sender, message_name in self.due_messages if sender == party_name
        ]
        sent_names = tuple(
            message_name for message_name in due_names if self._has_message(message_name)
        )
        process = self.processes.get(party_name)
        has_ended = process is not None and process.poll() == 0
        last_line = "ended" if has_ended else self._read_last_line(party_name)
        role, signature_path = self.manifest.roles[party_name], self.collector_folder
        if role != "collector":
            signature_path /= f"{party_name}.signature"
        return PartyProgress(
            party_name, role, signature_path.exists(), sent_names, len(due_names), last_line
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

    def watch(self, update_view: Callable[[list[PartyProgress]], None]) -> None:
        """Report the progress of all parties until they exit; raise if one of them fails."""
        while True:
            has_ended = all(process.poll() is not None for process in self.processes.values())
            update_view([self.get_progress(party_name) for party_name in self.manifest.parties])
            self._raise_if_failed()
            if has_ended:
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


def write_agreement(
    request: RehearsalRequest, folder: Path, say: Callable[[str], None]
) -> tuple[Manifest, str | None]:
    """Write temporary identities and a manifest; return it and the holder of the Paillier key.

    Parameters
    ----------
    request : RehearsalRequest
    folder : path
    say : callable
        Called with what takes a while.
    """
    label_name = None if request.label is None else request.label[0]
    party_names = [
        *request.providers,
        *([] if label_name is None else [label_name]),
        "collector",
        "receiver",
    ]
    identities = {party_name: Identity.generate(party_name) for party_name in party_names}
    if len(identities) < len(party_names):
        raise SchemaError(
            "two parties have the same name; the collector is `collector`, the receiver `receiver`"
        )
    for party_name, own_identity in identities.items():
        write_atomic(folder / f"{party_name}.identity.json", own_identity.to_json(), private=True)
    cards = {party_name: own_identity.card for party_name, own_identity in identities.items()}
    paillier_key = None
    key_holder = label_name or ("receiver" if request.mode == "counts" else "collector")
    if request.paillier:
        from discreet.federated.crypto.paillier import generate_key

        say("making a Paillier key")
        paillier_key = generate_key()
        write_atomic(folder / f"{key_holder}.paillier.json", paillier_key.to_json(), private=True)
        cards[key_holder] = identities[key_holder].make_card_with_key(paillier_key)
    row_count = None if request.label is None else _count_rows(request.label[1])
    bins = request.bins
    if bins == "auto":
        bins = compute_default_bins(
            request.schema,
            request.epsilon,
            row_count or request.expected_people,
            partition="horizontal" if label_name is None else "vertical",
        )
    manifest = Manifest(
        request.schema,
        make_feature_requests(request.schema, bins, request.moments),
        split_judging_epsilon(request.epsilon)[0] if request.is_judged else request.epsilon,
        tuple(cards[party_name] for party_name in request.providers),
        cards["collector"],
        cards["receiver"],
        label=None if label_name is None else cards[label_name],
        columns={} if label_name is None else _resolve_columns(request),
        rows=row_count,
        partition="horizontal" if label_name is None else "vertical",
        mode=request.mode,
        aggregation="paillier" if request.paillier else "masks",
        tolerated=request.tolerated,
        rows_per_person=request.rows_per_person,
        paillier=None if paillier_key is None else paillier_key.public,
        deadline=_format_deadline(request),
    )
    list_routes(manifest)
    write_atomic(folder / "manifest.json", manifest.to_json())
    return manifest, key_holder if request.paillier else None


def write_judging_agreement(
    request: RehearsalRequest, first_folder: Path, manifest: Manifest, folder: Path
) -> Manifest:
    """Write the manifest of the second round, and the files that its parties need.

    Parameters
    ----------
    request : RehearsalRequest
    first_folder : path
        Where the first round ran.
    manifest : Manifest
        Of the first round.
    folder : path
        A new folder.
    """
    folder.mkdir()
    for file in first_folder.iterdir():
        if file.name == "statistics.json" or file.name.endswith(
            (".identity.json", ".paillier.json")
        ):
            write_atomic(folder / file.name, file.read_text("utf-8"), private=True)
    statistics = Statistics.from_json(read_text(folder / "statistics.json"))
    _, judging_epsilon = split_judging_epsilon(request.epsilon)
    judging_manifest = make_judging_manifest(
        manifest, statistics, judging_epsilon, _format_deadline(request)
    )
    write_atomic(folder / "manifest.json", judging_manifest.to_json())
    return judging_manifest


def _format_deadline(request: RehearsalRequest) -> str:
    deadline_time = datetime.now(UTC) + timedelta(seconds=request.deadline)
    return deadline_time.isoformat(timespec="seconds")


def _resolve_columns(request: RehearsalRequest) -> dict[str, tuple[str, ...]]:
    """Resolve which party holds which features: from the options, or from the tables."""
    from discreet.tables.engines import iter_ordered_batches

    if request.columns:
        return parse_held_columns(request.columns)
    columns_by_party = {}
    for party_name, table_path in request.providers.items():
        with error_context(table_path):
            column_names: Sequence[str] = next(iter(iter_ordered_batches(table_path))).schema.names
        columns_by_party[party_name] = tuple(
            feature_name for feature_name in request.schema.names if feature_name in column_names
        )
    return columns_by_party


def _count_rows(path: str) -> int:
    from discreet.tables.engines import iter_ordered_batches

    with error_context(path):
        return sum(batch.num_rows for batch in iter_ordered_batches(path))


def _resolve_path(source: str) -> str:
    """Resolve the path of a file, because the processes run in another folder."""
    return str(Path(source).resolve()) if Path(source).exists() else source
