"""The commands of the federated how-to pages, run as they are written, on one machine.

Two things are changed: the port, which may be taken, and ``--yes``, as nobody is at a terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np
import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from click.testing import CliRunner

from discreet import Categorical, NaiveBayesModel, Numeric, Schema
from discreet.cli import main
from discreet.cli.federated import federated
from discreet.federated.rehearsal import find_free_port

PAGES = Path(__file__).resolve().parents[2] / "docs" / "how-to"
TRAIN, ALIGN = PAGES / "train-with-others.md", PAGES / "align-rows.md"
SERVED = {"collect", "provide", "label", "receive", "align"}
PROGRAMS = ("discreet federated ", "openssl ")
HANGING = 1800
"""Seconds after which a round hangs, on any machine."""
SCHEMA = Schema(
    [Numeric("age", 0, 100), Categorical("sex", ["f", "m"]), Numeric("income", 0, 9)],
    "ill",
    ["no", "yes"],
)


def commands(page, language="sh"):
    """The commands of each fenced block, as lists of words."""
    for block in re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
        lines = block.replace("\\\n", " ").splitlines()
        yield [shlex.split(line) for line in lines if line.startswith(PROGRAMS)]


def everyone():
    context = click.Context(federated)
    return {name: federated.get_command(context, name) for name in federated.list_commands(context)}


def people(folder):
    rng, names = np.random.default_rng(1), [*SCHEMA.names, "ill"]
    rows = [
        [str(rng.integers(0, 101)), "fm"[rng.integers(2)], str(rng.integers(0, 10)), "no"]
        for _ in range(60)
    ]
    for row in rows[::2]:
        row[3] = "yes"
    (folder / "schema.json").write_text(SCHEMA.to_json())

    def save(name, columns, chosen):
        lines = [",".join(["patient", *columns])]
        for i in chosen:
            lines.append(",".join([f"{i:08}", *(rows[i][names.index(one)] for one in columns)]))
        (folder / name).write_text("\n".join(lines) + "\n")

    for i, name in enumerate(("a.csv", "b.csv", "c.csv")):
        save(name, names, range(i, 60, 3))
    save("columns-a.csv", ["age", "sex"], range(60))
    save("columns-b.csv", ["income"], reversed(range(60)))
    save("labels.csv", ["ill"], range(60))
    save("list-a.csv", ["age", "sex"], range(40))
    save("list-b.csv", ["income"], range(10, 50))
    save("list-l.csv", ["ill"], range(5, 60))


def act(block, folder, monkeypatch):
    """Run a block: the parties of a round together, everything else in turn.

    Processes are waited for until each has ended, or one has failed, however busy the machine is.
    """
    monkeypatch.chdir(folder)
    port, running = str(find_free_port()), []
    try:
        for words in block:
            if words[0] == "openssl":
                subprocess.run(words, check=True, capture_output=True)
                continue
            words = [word.replace("8443", port) for word in words[1:]]
            if words[1] not in SERVED:
                done = CliRunner().invoke(main, words)
                assert done.exit_code == 0, (words, done.output)
                continue
            command = [sys.executable, "-m", "discreet", *words, "--yes"]
            with tempfile.TemporaryFile("w+") as said:
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
                running.append((process, os.fdopen(os.dup(said.fileno()), "r")))
        wait_for(running)
    finally:
        for process, said in running:
            if process.poll() is None:
                process.kill()
                process.wait()
            said.close()


def wait_for(running):
    """Until all processes have ended well; the first that fails is named with its words."""
    until = time.monotonic() + HANGING
    while True:
        codes = [process.poll() for process, _ in running]
        for (process, said), code in zip(running, codes, strict=True):
            if code:
                said.seek(0)
                raise AssertionError(process.args, said.read())
        if None not in codes:
            return
        assert time.monotonic() < until, "the round hangs"
        time.sleep(0.05)


@pytest.mark.slow
def test_the_page_about_training_works_as_it_is_written(tmp_path, monkeypatch):
    people(tmp_path)
    for block in commands(TRAIN):
        act(block, tmp_path, monkeypatch)
    assert not NaiveBayesModel.read(tmp_path / "rehearsed.json").guarantee.is_private
    models = ("model.json", "secure-model.json", "vertical-model.json", "paillier-model.json")
    for name in models:
        assert NaiveBayesModel.read(tmp_path / name).guarantee.epsilon == 1


@pytest.mark.slow
def test_the_page_about_aligning_works_as_it_is_written(tmp_path, monkeypatch):
    people(tmp_path)
    for block in commands(ALIGN):
        act(block, tmp_path, monkeypatch)
    for names, first in (
        (("aligned-a", "aligned-b", "aligned-l"), 10),
        (("secure-a", "secure-l"), 5),
    ):
        kept = []
        for name in names:
            lines = (tmp_path / f"{name}.csv").read_text().splitlines()
            kept.append([line.split(",")[0] for line in lines[1:]])
        assert all(one == kept[0] for one in kept)  # in the same order
        assert sorted(kept[0]) == [f"{i:08}" for i in range(first, 40)]


@pytest.mark.slow
def test_a_page_that_is_wrong_does_not_work(tmp_path, monkeypatch):
    """The twin: an owner that trusts another certificate than the collector's is refused."""
    people(tmp_path)
    blocks = list(commands(ALIGN))
    for block in blocks[:1]:
        act(block, tmp_path, monkeypatch)
    setup, parties = blocks[-2:]
    other = [word.replace("collector.pem", "other.pem") for word in setup[0]]
    act([other, *setup], tmp_path, monkeypatch)
    collector, *_, wrong = parties
    wrong = [word.replace("collector.pem", "other.pem") for word in wrong]
    with pytest.raises(AssertionError, match="is not under the authority"):
        act([wrong, collector], tmp_path, monkeypatch)


def test_every_option_of_the_pages_exists_and_every_option_is_on_them():
    known = everyone()
    for page in (TRAIN, ALIGN):
        for language in ("sh", "text"):
            for block in commands(page, language):
                for _, _, step, *words in (one for one in block if one[0] == "discreet"):
                    given = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
                    real = {one for param in known[step].params for one in param.opts}
                    assert given <= real, (page.name, step, given - real)
    told = TRAIN.read_text("utf-8") + ALIGN.read_text("utf-8")
    spelt = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", told))
    every = {one for command in known.values() for param in command.params for one in param.opts}
    assert spelt >= {one for one in every if one.startswith("-")} - {"--id-column", "--output"}
    assert {one for one in spelt if one.startswith("--")} <= every
    for step in known:
        assert f"federated {step}" in told
