"""Real processes on loopback: three providers, a collector and a receiver train a model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from party_processes import PATIENCE, discreet, write_rows
from round_fixtures import SCHEMA, table

from discreet import NaiveBayesModel, Statistics
from discreet.federated.agreement.identity import Identity
from discreet.federated.rehearsal import find_free_port

pytestmark = pytest.mark.slow

NAMES = ["hospital-a", "hospital-b", "hospital-c"]


class Parties:
    """Processes of one round, ended when the test ends."""

    def __init__(self, folder):
        self.folder, self.running = folder, []
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "discreet", "federated", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        self.running.append(process)
        return process

    def collector(self):
        return self.start(
            *("collect", "manifest.json", "--identity", "collector.identity.json"),
            *("--state", "kept-collector", "--port", self.port, "--yes"),
        )

    def party(self, step, name, *further):
        state = () if step == "receive" else ("--state", f"kept-{name}")
        return self.start(
            *(step, "manifest.json", *further, "--identity", f"{name}.identity.json"),
            *("--collector", self.url, *state, "--yes"),
            *(() if step == "receive" else ("--unprotected",)),
        )

    def stop(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def parties(tmp_path):
    made = Parties(tmp_path)
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    yield made
    made.stop()


def identities(folder, *names, paillier=None):
    for name in names:
        if name == paillier:
            discreet("identity", name, "--paillier", "--bits", 2048, cwd=folder)
            continue
        own = Identity.generate(name)
        (folder / f"{name}.identity.json").write_text(own.to_json())
        (folder / f"{name}.card.json").write_text(own.card.to_json())


def agreed(folder, *further, epsilon="inf", deadline=60, names=NAMES):
    cards = [part for name in names for part in ("--provider", f"{name}.card.json")]
    discreet(
        *("manifest", "schema.json", *cards, "--collector", "collector.card.json"),
        *("--receiver", "receiver.card.json", "--epsilon", epsilon, "--bins", 4),
        *("--moments", "age", "--deadline", deadline, "-o", "manifest.json", "--force", *further),
        cwd=folder,
    )


def ended(process, code=0):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, (process.args, out, err)
    return err


def given_up(agree, start, who):
    """All parties' last words at the deadline; a busy machine is given more time to get there."""
    for seconds in (8, 24, 72):
        agree(seconds)
        lines = [ended(process, code=2) for process in start()]
        if who in lines[0]:
            break
    for line in lines:
        assert "deadline has passed" in line
        assert who in line


def until(what):
    """Wait for something that happens at others."""
    over = time.monotonic() + PATIENCE
    while not what() and time.monotonic() < over:
        time.sleep(0.01)
    assert what()


def horizontal_tables(folder):
    tables = [table(80, seed) for seed in range(3)]
    for name, (columns, codes) in zip(NAMES, tables, strict=True):
        write_rows(folder / f"{name}.csv", columns, codes, [*SCHEMA.names, "class"])
    return tables


def check_totals(folder, codes):
    statistics = Statistics.from_json((folder / "statistics.json").read_text())
    assert statistics.totals.tolist() == np.bincount(codes, minlength=2).tolist()
    for one in statistics.tables.values():
        assert one.counts.sum() == len(codes)
    model = NaiveBayesModel.read(folder / "model.json")
    assert set(model.predict(table(5, 1)[0])) <= {"no", "yes"}


RECEIVED = ("-o", "model.json", "--statistics", "statistics.json")


def test_three_providers_train_with_the_collector_killed_in_mid_round(parties):
    folder = parties.folder
    identities(folder, *NAMES, "collector", "receiver")
    tables = horizontal_tables(folder)
    agreed(folder)
    collector = parties.collector()
    receiver = parties.party("receive", "receiver", *RECEIVED)
    providers = [parties.party("provide", name, f"{name}.csv") for name in NAMES[:2]]
    late = parties.party("provide", NAMES[2], f"{NAMES[2]}.csv")
    kept = folder / "kept-collector"
    until(lambda: list(kept.glob("*/*.message")))
    os.kill(collector.pid, signal.SIGKILL)
    collector.communicate()
    time.sleep(0.3)
    again = parties.collector()
    for process in (*providers, late, receiver):
        ended(process)
    ended(again)
    check_totals(folder, np.concatenate([codes for _, codes in tables]))


def test_one_missing_provider_is_named_and_everyone_gives_up_at_the_deadline(parties):
    folder = parties.folder
    identities(folder, *NAMES, "collector", "receiver")
    horizontal_tables(folder)
    given_up(
        lambda seconds: agreed(folder, epsilon=1, deadline=seconds),
        lambda: [
            parties.collector(),
            parties.party("receive", "receiver", *RECEIVED),
            *(parties.party("provide", name, f"{name}.csv") for name in NAMES[:2]),
        ],
        "of 5: hospital-c to sign",
    )
    assert not (folder / "model.json").exists()


UPRIGHT = ("--label", "labels.card.json", "--rows", 60)
HELD = ("--columns", "hospital-a=colour,age", "--columns", "hospital-b=size")


def vertical_tables(folder):
    """The classes, and three files in different orders of rows, which are aligned by id."""
    columns, codes = table(60, 4)
    ids = [f"p{i:03d}" for i in range(60)]
    order = np.random.default_rng(0).permutation(60)
    for path, names, rows in (
        ("hospital-a.csv", ["colour", "age"], np.arange(60)),
        ("hospital-b.csv", ["size"], order),
        ("labels.csv", ["class"], order[::-1]),
    ):
        own = {name: column[rows] for name, column in columns.items()}
        write_rows(folder / path, own, codes[rows], names, [ids[row] for row in rows])
    return codes


@pytest.mark.parametrize("aggregation", ["masks", "paillier"])
def test_a_vertical_round_with_the_collector_killed_in_mid_round(aggregation, parties):
    """One provider is held up until the labels and the other's tables were at the collector."""
    folder, providers, kept = parties.folder, NAMES[:2], parties.folder / "kept-collector"
    paillier = "labels" if aggregation == "paillier" else None
    public = ("--key", "labels.paillier.public.json") if paillier else ()
    secret = ("--key", "labels.paillier.json") if paillier else ()
    identities(folder, *providers, "labels", "collector", "receiver", paillier=paillier)
    codes = vertical_tables(folder)
    agreed(folder, *UPRIGHT, *HELD, *public, names=providers)
    collector = parties.collector()
    others = [
        parties.party("provide", "hospital-b", "hospital-b.csv", "--id", "id"),
        parties.party("provide", "hospital-a", "hospital-a.csv", "--id", "id"),
        parties.party("label", "labels", "labels.csv", "--id", "id", *secret),
    ]
    until(lambda: list(kept.glob("*/hospital-b.signature")))
    os.kill(others[0].pid, signal.SIGSTOP)
    others.append(parties.party("receive", "receiver", *RECEIVED))  # until then nothing is sent
    until(lambda: list(kept.glob("*/labels hospital-a tables.message")))
    os.kill(collector.pid, signal.SIGKILL)
    collector.communicate()
    assert not list(kept.glob("*/result.sent"))
    os.kill(others[0].pid, signal.SIGCONT)
    again = parties.collector()
    for process in (*others, again):
        ended(process)
    check_totals(folder, codes)


def test_a_vertical_provider_that_dies_is_named_and_everyone_gives_up(parties):
    folder, providers, kept = parties.folder, NAMES[:2], parties.folder / "kept-collector"
    identities(folder, *providers, "labels", "collector", "receiver")
    vertical_tables(folder)

    def start():
        shutil.rmtree(kept, ignore_errors=True)
        processes = [
            parties.collector(),
            parties.party("provide", "hospital-a", "hospital-a.csv", "--id", "id"),
            parties.party("label", "labels", "labels.csv", "--id", "id"),
        ]
        lost = parties.party("provide", "hospital-b", "hospital-b.csv", "--id", "id")
        until(lambda: list(kept.glob("*/hospital-b.signature")) or lost.poll() is not None)
        lost.kill()
        # only now can anything be sent
        return [*processes, parties.party("receive", "receiver", *RECEIVED)]

    given_up(
        lambda seconds: agreed(
            folder, *UPRIGHT, *HELD, epsilon=1, deadline=seconds, names=providers
        ),
        start,
        "waiting for 1 of 3: hospital-b",
    )
    assert not (folder / "model.json").exists()


def test_keys_are_secret_files_and_are_not_replaced(tmp_path):
    run = discreet("identity", "hospital-a", "--json", cwd=tmp_path)
    files = json.loads(run.stdout)["files"]
    assert os.stat(tmp_path / files["identity"]).st_mode & 0o077 == 0
    again = subprocess.run(
        [sys.executable, "-m", "discreet", "federated", "identity", "hospital-a"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=PATIENCE,
    )
    assert again.returncode == 2
    assert "not replaced" in again.stderr
