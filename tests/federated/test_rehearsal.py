"""A whole round on one machine: a model that promises nothing, and no process left behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from crash_harness import run_round
from party_processes import PATIENCE, write_rows
from round_fixtures import SCHEMA, table

from discreet import NaiveBayesModel
from discreet.cli.federated import rehearse
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.rehearsal import Rehearsal

pytestmark = pytest.mark.slow


def rehearsal(folder, *words, stderr=subprocess.PIPE):
    (folder / "schema.json").write_text(SCHEMA.to_json())
    for seed, name in enumerate("ab"):
        write_rows(folder / f"{name}.csv", *table(40, seed), [*SCHEMA.names, "class"])
    command = ["rehearse", "schema.json", "--provider", "a=a.csv", "--provider", "b=b.csv"]
    return subprocess.Popen(
        [sys.executable, "-m", "discreet", "federated", *command, "--epsilon", "1", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def children(pid):
    """Ids of the processes that a process has started."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.add(int(stat.parent.name))
    return found


def gone(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


@pytest.mark.parametrize("paillier", [False, True])
def test_a_rehearsal_tells_how_far_everyone_is_and_its_model_promises_nothing(paillier, tmp_path):
    process = rehearsal(tmp_path, "-o", "model.json", *["--paillier"] * paillier)
    _, said = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 0, said
    for line in ("a has signed", "b has sent its submission for collector", "receiver has ended"):
        assert line in said
    assert ("making a Paillier key" in said) == paillier
    guarantee = NaiveBayesModel.read(tmp_path / "model.json").guarantee
    assert not guarantee.is_private
    assert "rehearsed on one machine" in str(guarantee)
    assert "rehearsed on one machine" in said
    assert not list(tmp_path.glob("discreet-rehearsal-*"))


@pytest.mark.parametrize("paillier", [False, True])
def test_a_vertical_rehearsal_tells_who_sends_what_to_whom(paillier, tmp_path):
    """With a label provider, rows in another order for everyone, masks and Paillier."""
    columns, codes = table(30, 4)
    ids, back = [f"p{i:02}" for i in range(30)], slice(None, None, -1)
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    write_rows(tmp_path / "a.csv", columns, codes, ["colour", "age"], ids)
    turned = {name: column[back] for name, column in columns.items()}
    write_rows(tmp_path / "b.csv", turned, codes[back], ["size"], ids[back])
    write_rows(tmp_path / "l.csv", columns, codes, ["class"], ids)
    words = ["rehearse", "schema.json", "--provider", "a=a.csv", "--provider", "b=b.csv"]
    words += ["--label", "l=l.csv", "--id", "id", "--epsilon", "1", "-o", "model.json"]
    run = subprocess.run(
        [sys.executable, "-m", "discreet", "federated", *words, *["--paillier"] * paillier],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    for line in (
        "l has sent its labels for a",
        "b has sent its tables for l",
        "l has sent its shares for collector",
        "receiver has ended",
    ):
        assert line in run.stderr
    assert ("making a Paillier key" in run.stderr) == paillier
    assert not NaiveBayesModel.read(tmp_path / "model.json").guarantee.is_private


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_rehearsal_leaves_no_process_and_no_file(number, tmp_path):
    process = rehearsal(tmp_path)
    until, started = time.monotonic() + PATIENCE, set()
    while len(started) < 4 and time.monotonic() < until:
        started = children(process.pid)
        time.sleep(0.02)
    assert len(started) == 4
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert all(gone(pid) for pid in started)
    assert not list(tmp_path.glob("discreet-rehearsal-*"))


def test_whoever_fails_is_named_and_the_others_are_ended(tmp_path):
    (tmp_path / "bad.csv").write_text("colour\nred\n")
    process = rehearsal(tmp_path, "--provider", "c=bad.csv")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "c (provider) gave up: " in said
    assert "lacks the column" in said


def drawn(view):
    """The table as it is drawn at a terminal, its cells without the lines around them."""
    standings = [view.get_progress(name) for name in view.manifest.parties]
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as got:
        console.print(rehearse._make_progress_table(standings))
    lines = [line.replace("│", "┃").split("┃") for line in got.get().splitlines()]
    return [[cell.strip() for cell in line[1:-1]] for line in lines if len(line) > 3]


def test_the_drawn_table_tells_who_signed_who_sent_and_what_each_waits_for(tmp_path):
    """The folders of a vertical round, filled step by step, and the table beside them."""
    with run_round(tmp_path / "round", partition="vertical") as one:
        manifest = Manifest.from_json((one.folder / "manifest.json").read_text())
        view = Rehearsal(one.folder, manifest)
        head, *rows = drawn(view)
        assert head == ["party", "part", "signed", "sent", "now"]
        assert {row[0]: row[1:] for row in rows} == {
            "hospital-a": ["provider", "no", "0 of 1", "not started"],
            "hospital-b": ["provider", "no", "0 of 1", "not started"],
            "labels": ["label provider", "no", "0 of 3", "not started"],
            "collector": ["collector", "no", "0 of 2", "not started"],
            "receiver": ["receiver", "no", "", "not started"],
        }
        view.collector_folder.mkdir(parents=True)
        (view.collector_folder / "hospital-a.signature").touch()
        for name in ("labels.signature", "hospital-a labels labels.message"):
            (view.collector_folder / name).touch()
        (one.folder / "hospital-a.log").write_text("hospital-a signs\nreading the table …, 4 s\n")
        (one.folder / "labels.log").write_text("waiting for 1 of 3: hospital-b to sign, 9 s left\n")
        (one.folder / "hospital-b.log").touch()
        found = {row[0]: row[2:] for row in drawn(view)[1:]}
        assert found["hospital-a"] == ["yes", "0 of 1", "reading the table"]
        assert found["labels"][:2] == ["yes", "1 of 3"]
        assert found["labels"][2] == "waiting for 1 of 3: hospital-b to sign, 9 s left"
        assert found["hospital-b"] == ["no", "0 of 1", "starting"]
        assert found["collector"][:2] == ["yes", "0 of 2"]
        for number, name in enumerate(("correction.sent", "result.sent"), 1):
            (view.collector_folder / name).touch()
            found = {row[0]: row[2:] for row in drawn(view)[1:]}
            assert found["collector"][1] == f"{number} of 2"
            assert found["labels"][1] == "1 of 3"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_at_a_terminal_the_table_is_drawn_until_all_have_ended(tmp_path):
    import pty

    leader, follower = pty.openpty()
    process = rehearsal(tmp_path, "-o", "model.json", stderr=follower)
    os.close(follower)
    said = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the process is
        while data := os.read(leader, 1 << 16):
            said += data
    os.close(leader)
    assert process.wait(PATIENCE) == 0, said.decode()[-500:]
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())
    last = text[text.rindex("party") :]
    for name, sent in (("a", "1 of 1"), ("b", "1 of 1")):
        assert re.search(rf"│ {name} +│ provider +│ yes +│ {sent} +│ ended", last), last
    assert re.search(r"│ receiver +│ receiver +│ yes", last)
    assert re.search(r"│ collector +│ collector +│ yes +│ 1 of 1 +│ ended", last), last
    assert "│ no " in text[: text.rindex("party")]  # it was drawn before that, too
