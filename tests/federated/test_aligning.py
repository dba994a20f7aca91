"""Alignment as programs: over HTTP, killed and restarted, missing parties, and real processes."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

import pyarrow as pa
import pyarrow.parquet
from click.testing import CliRunner
from ring_helpers import OWNERS, invitation
from round_fixtures import PARTIES, table, vector_of, vertical_manifest, vertical_round
from served_rounds import Served, soon

from discreet.cli import main
from discreet.cli.federated import align
from discreet.errors import SchemaError
from discreet.federated.agreement.invitation import Invitation
from discreet.federated.alignment import Owner
from discreet.federated.alignment.collector_session import AlignmentSession
from discreet.federated.alignment.owner_program import run_owner
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.rehearsal import find_free_port
from discreet.federated.service.collector_client import CollectorClient
from discreet.federated.service.provider import load_aligned_columns

NAMES = OWNERS[:3]
LISTS = {
    "labels": [f"p{i:03d}" for i in range(60)],
    "hospital-a": [f"p{i:03d}" for i in range(20, 90)][::-1],
    "hospital-b": [f"p{i:03d}" for i in range(0, 100, 2)],
}
COMMON = sorted(set.intersection(*map(set, LISTS.values())))
PATIENCE = 90


class KilledError(Exception):
    """What stands for being killed."""


class Fragile(CollectorClient):
    """A line that breaks after so many messages."""

    left = 10**9

    def send_message(self, message):
        if self.left == 0:
            raise KilledError
        self.left -= 1
        super().send_message(message)


def take_part(url, name, agreed, state, ids, breaks=()):
    """An owner that is killed after so many messages, again and again, and goes on."""
    for left in (*breaks, 10**9):
        with Fragile(url, PARTIES[name], agreed) as line:
            line.left = left
            try:
                rows = run_owner(line, ids, state, lambda rows: None)
            except KilledError:
                continue
            return [ids[row] for row in rows]
    return None


@pytest.mark.slow
def test_owners_and_collector_survive_being_killed(tmp_path):
    agreed = invitation(signed=False, deadline=soon(60))
    running = AlignmentSession(PARTIES["collector"], agreed, tmp_path / "collector")
    told = {}

    def act(name):
        breaks = (0, 0, 1, 2) if name == "hospital-a" else ()
        told[name] = take_part(url, name, agreed, tmp_path / name, LISTS[name], breaks)

    with Served(running) as url:
        threads = [threading.Thread(target=act, args=(name,)) for name in NAMES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert told["labels"] == told["hospital-a"] == told["hospital-b"]
    assert sorted(told["labels"]) == COMMON
    assert running.is_result_confirmed
    assert "finished" in running.format_status_line()
    again = AlignmentSession(PARTIES["collector"], agreed, tmp_path / "collector")
    assert again.answers == running.answers
    assert again.is_result_confirmed
    assert running.is_known_to_all
    assert not again.is_known_to_all  # an answer to the last word may have been lost
    for name in NAMES:
        again.get_status(name, has_heard=True)
    assert again.is_known_to_all
    kept = next((tmp_path / "hospital-a").iterdir())
    assert not (kept / "secret").exists()


@pytest.mark.slow
def test_another_table_under_the_same_invitation_is_refused(tmp_path):
    agreed = invitation(2, signed=False)
    running = AlignmentSession(PARTIES["collector"], agreed, tmp_path / "collector")
    running.accept_signature(
        "hospital-a", agreed.with_signatures(PARTIES["hospital-a"]).signatures["hospital-a"]
    )
    with Served(running) as url, Fragile(url, PARTIES["labels"], agreed) as line:
        line.left = 0
        with pytest.raises(KilledError):
            run_owner(line, ["a", "b"], tmp_path / "labels", lambda rows: None)
        with pytest.raises(KilledError):  # in another order it is the same table
            run_owner(line, ["b", "a"], tmp_path / "labels", lambda rows: None)
        with pytest.raises(SchemaError, match="not those that this alignment was begun with"):
            run_owner(line, ["a", "c"], tmp_path / "labels", lambda rows: None)


def test_the_missing_owner_is_named_and_nothing_is_taken_after_the_deadline(tmp_path):
    agreed = invitation(signed=False, deadline=soon(40))
    running = AlignmentSession(PARTIES["collector"], agreed, tmp_path / "one")
    signed = agreed.with_signatures(*(PARTIES[name] for name in agreed.parties)).signatures
    for name in NAMES[:2]:
        running.accept_signature(name, signed[name])
    assert running.format_status_line().startswith("waiting for 1 of 4: hospital-b to sign, ")
    with pytest.raises(ProtocolError, match="lacks signatures"):
        running.store_message(
            Message.create(PARTIES["labels"], agreed, "list-0", "hospital-a", b"")
        )
    running.accept_signature(NAMES[2], signed[NAMES[2]])
    assert running.get_status()["state"] == "collecting"
    assert running.list_missing_parties() == tuple(NAMES)
    whole = running.agreement
    for place in (0, 2):  # everything that can be done without hospital-a
        own = Owner(PARTIES[NAMES[place]], whole, LISTS[NAMES[place]])
        running.store_message(own.make_own_list())
        for message in running.list_messages(own.identity.name):
            running.store_message(own.blind_and_forward(message))
    assert running.format_status_line().startswith("waiting for 2 of 3: labels, hospital-a, ")
    labels = Owner(PARTIES["labels"], whole, LISTS["labels"])
    running.store_message(labels.blind_and_forward(running.list_messages("labels")[0]))
    assert running.format_status_line().startswith("waiting for 1 of 3: hospital-a, ")
    late = invitation(signed=False, deadline=soon(-1))
    running = AlignmentSession(PARTIES["collector"], late, tmp_path / "two")
    with pytest.raises(ProtocolError, match="abandoned"):
        running.accept_signature("labels", signed["labels"])


# ---------------------------------------------------------------- processes


def write_rows(path, rows):
    """A table of one's own, in CSV or Parquet."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(pa.table(rows), path)
        return
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))


def tables(folder):
    """Three tables about overlapping people; gives everyone's columns and classes, by id."""
    columns, codes = table(100, 3)
    columns["age"] = np.nan_to_num(columns["age"], nan=30).astype(int)
    held = {"labels": ["class"], "hospital-a": ["colour", "age"], "hospital-b": ["size"]}
    columns["class"] = np.array(["no", "yes"], dtype=object)[codes]
    for name, ids in LISTS.items():
        rows = [int(one[1:]) for one in ids]
        own = {"id": ids, **{n: columns[n][rows].tolist() for n in held[name]}}
        write_rows(folder / f"{name}{'.parquet' if name == 'hospital-b' else '.csv'}", own)
    for name in (*NAMES, "collector"):
        (folder / f"{name}.identity.json").write_text(PARTIES[name].to_json())
        (folder / f"{name}.card.json").write_text(PARTIES[name].card.to_json())
    return columns, codes, held


@pytest.fixture
def processes(tmp_path):
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "discreet", "federated", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ended(process, code=0):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, (process.args, out, err)
    return out, err


def invited(folder, *arguments):
    """The command that writes an invitation, in this process."""
    with contextlib.chdir(folder):
        result = CliRunner().invoke(main, ["federated", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    agreed = Invitation.from_json((folder / "invitation.json").read_text())
    assert f"invitation {agreed.hash.hex()}" in result.output


@pytest.mark.slow
def test_three_processes_align_their_tables_and_a_vertical_round_accepts_them(
    tmp_path, processes, small_key
):
    columns, codes, held = tables(tmp_path)
    port = find_free_port()
    cards = [part for name in NAMES for part in ("--owner", f"{name}.card.json")]
    invite = ("invite", *cards, "--collector", "collector.card.json", "--deadline", PATIENCE)
    invited(tmp_path, *invite, "--pad-to", 80, "-o", "invitation.json")

    def collector():
        how = ("--identity", "collector.identity.json", "--state", "kept", "--port", port, "--yes")
        return processes("collect", "invitation.json", *how)

    def owner(name):
        kind = ".parquet" if name == "hospital-b" else ".csv"
        return processes(
            *("align", "invitation.json", f"{name}{kind}", "--id-column", "id"),
            *("--identity", f"{name}.identity.json", "--collector", f"http://127.0.0.1:{port}"),
            *("--state", f"kept-{name}", "-o", f"{name}.aligned{kind}", "--yes"),
            *(("--json",) if name == "hospital-b" else ()),
        )

    first, owners = collector(), [owner(name) for name in NAMES]
    until = time.monotonic() + PATIENCE
    while not list(tmp_path.glob("kept/*/*.message")) and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(first.pid, signal.SIGKILL)  # in the middle, and started again
    first.communicate()
    again = collector()
    for name, process in zip(NAMES, owners, strict=True):
        out, said = ended(process)
        if name == "hospital-b":
            assert json.loads(out)["rows"] == len(COMMON)
            continue
        assert f"{len(COMMON)} of {len(LISTS[name])} rows are common to all 3 owners" in said
    ended(again)

    found, ids = {}, {}
    for name in NAMES:
        kind = ".parquet" if name == "hospital-b" else ".csv"
        path = tmp_path / f"{name}.aligned{kind}"
        own, ids[name] = load_aligned_columns(path, tuple(held[name]), "id")
        found |= own
    assert [list(ids[name]) for name in NAMES] == 3 * [COMMON]
    manifest = vertical_manifest(small_key, epsilon=math.inf, rows=len(COMMON), moments=())
    labels = (found["class"].values[found["class"].codes] == "yes").astype(np.int32)
    release, _ = vertical_round(manifest, found, labels, small_key, ids=COMMON)
    rows = [int(one[1:]) for one in COMMON]
    whole = {name: columns[name][rows] for name in ("colour", "size", "age")}
    exact = manifest.layout.count_rows(whole, codes[rows])
    assert np.array_equal(vector_of(manifest, release.statistics), exact)


@pytest.mark.slow
def test_no_common_row_is_one_sentence_and_no_file(tmp_path):
    agreed = invitation(2, signed=False, deadline=soon(30))
    (tmp_path / "i.json").write_text(agreed.to_json())
    running, said = AlignmentSession(PARTIES["collector"], agreed, tmp_path / "kept"), []

    def act(name, one):
        write_rows(tmp_path / f"{name}.csv", {"id": [one], "x": [1]})
        (tmp_path / f"{name}.identity.json").write_text(PARTIES[name].to_json())
        data, output, state = (str(tmp_path / f"{name}{end}") for end in (".csv", ".out.csv", ""))
        identity = str(tmp_path / f"{name}.identity.json")
        how = {"id_column": "id", "as_json": False, "known": (), "authority": None, "yes": True}
        try:
            align.align.callback(
                str(tmp_path / "i.json"),
                data,
                state=state,
                output=output,
                identity=identity,
                url=url,
                **how,
            )
        except SchemaError as error:
            said.append(str(error))

    with Served(running) as url:
        threads = [threading.Thread(target=act, args=(OWNERS[i], str(i))) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(said) == 2
    assert all("none of the 1 ids is common to all 2 owners" in one for one in said)
    assert not list(tmp_path.glob("*.out.csv"))
    assert running.is_result_confirmed


def test_only_the_collector_collects(tmp_path):
    with pytest.raises(ProtocolError, match="labels is not the collector"):
        AlignmentSession(PARTIES["labels"], invitation(signed=False), tmp_path)


def test_the_command_says_what_is_wrong(tmp_path):
    tables(tmp_path)
    agreed = invitation(signed=False, pad_to=10, deadline=soon(30))
    (tmp_path / "i.json").write_text(agreed.to_json())

    def run(data, output="a.csv", column="id"):
        how = ["--identity", str(tmp_path / "labels.identity.json"), "--state", str(tmp_path / "k")]
        where = ["--collector", "http://127.0.0.1:9", "-o", str(tmp_path / output)]
        run = ["federated", "align", str(tmp_path / "i.json"), str(data), "--id", column]
        result = CliRunner().invoke(main, [*run, *how, *where])
        assert result.exit_code == 2
        return result.output

    assert "ends in .csv or .parquet" in run(tmp_path / "labels.csv", "a.txt")
    assert "lacks the column patient" in run(tmp_path / "labels.csv", column="patient")
    assert "60 ids; a list has 1 to 10" in run(tmp_path / "labels.csv")
    for name, rows in (("twice", "a,a"), ("empty", "a,,b")):
        (tmp_path / f"{name}.csv").write_text(
            "id,x\n" + "".join(f"{r},1\n" for r in rows.split(","))
        )
        assert name in run(tmp_path / f"{name}.csv")
