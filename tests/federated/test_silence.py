"""No federated command is silent for longer than two seconds, wherever it is held up."""

from __future__ import annotations

import io
import os
import sys
import time
from itertools import pairwise

import click
import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("resource")

import silence_harness
from click.testing import CliRunner
from crash_harness import FORK, PATIENCE, run_round
from round_fixtures import SCHEMA

from discreet.cli import main
from discreet.cli.output import (
    MAX_SILENCE_SECONDS,
    QUIET_KEY,
    SILENCE_SECONDS,
    ProgressReporter,
)
from discreet.federated.rehearsal import find_free_port


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def told():
    return ProgressReporter("starting", Clock())


def after(told, seconds):
    """Let time pass in tenths of a second."""
    for _ in range(round(seconds * 10)):
        told.clock.now += 0.1
        told.tick()


def test_after_two_seconds_of_silence_one_hears_what_is_going_on(told, capsys):
    after(told, SILENCE_SECONDS - 0.2)
    assert capsys.readouterr().err == ""
    after(told, 0.3)
    assert capsys.readouterr().err == "starting …, 2 s\n"
    told.show("counting the rows")
    after(told, SILENCE_SECONDS + 0.1)
    assert capsys.readouterr().err == "counting the rows …, 2 s\n"


@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_is_asked_for_when_something_is_printed(place, capsys):
    """The reporter begins before the options of its command are parsed."""
    with click.Context(click.Command("federated")) as context:
        context.meta[QUIET_KEY] = place == "before"
        told = ProgressReporter("starting", Clock())
        context.meta[QUIET_KEY] = True
    told.say("making a key")
    after(told, 2 * SILENCE_SECONDS)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("quiet", [True, False])
def test_a_quiet_command_prints_no_progress(quiet, tmp_path, monkeypatch, small_key):
    def make_slowly(bits):
        time.sleep(0.4)
        return small_key

    monkeypatch.setattr("discreet.cli.output.SILENCE_SECONDS", 0.1)
    monkeypatch.setattr("discreet.federated.crypto.paillier.generate_key", make_slowly)
    command = ["federated", "identity", "a", "--paillier", "--folder", str(tmp_path)]
    result = CliRunner().invoke(main, command + ["--quiet"] * quiet)
    assert result.exit_code == 0
    assert ("making a Paillier key" in result.stderr) is not quiet


def test_what_goes_on_for_long_is_repeated_more_and_more_rarely(told, capsys):
    told.say("waiting for 1 of 3: hospital-b, 3600 s left")
    after(told, 600)
    first, *again = capsys.readouterr().err.splitlines()
    assert first == "waiting for 1 of 3: hospital-b, 3600 s left"
    assert again[0] == "waiting for 1 of 3: hospital-b …, 2 s"  # the seconds left are others now
    seconds = [int(line.removesuffix(" s").rpartition(", ")[2]) for line in again]
    gaps = [two - one for one, two in pairwise(seconds)]
    assert gaps[:4] == [4, 8, 16, 32]
    assert max(gaps) <= MAX_SILENCE_SECONDS + 1
    assert len(again) < 20


def test_work_whose_end_is_known_tells_how_far_it_is(told, capsys):
    for done in range(100):
        told.show("encrypting", done, 100)
        after(told, 0.5)
    told.show("encrypting", 100, 100)
    lines = capsys.readouterr().err.splitlines()
    percents = [int(line.removeprefix("encrypting: ").removesuffix(" %")) for line in lines]
    assert all(2 <= two - one <= 6 for one, two in pairwise(percents))  # 2 % a second
    assert len(percents) > 20
    after(told, SILENCE_SECONDS + 0.1)
    assert capsys.readouterr().err.startswith("encrypting: done, going on …")


def test_a_question_is_not_talked_over(told, capsys):
    with told.pause_output():
        after(told, 60)
    assert capsys.readouterr().err == ""
    after(told, SILENCE_SECONDS + 0.1)
    assert capsys.readouterr().err != ""


def test_at_a_terminal_a_bar_appears_and_goes_away(told, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    told.show("sending", 1, 4)
    after(told, SILENCE_SECONDS - 0.2)
    assert told._bar is None
    after(told, 0.5)
    (task,) = told._bar.tasks
    assert (task.description, task.completed, task.total) == ("sending", 1, 4)
    told.say("sent")
    assert told._bar is None


@pytest.mark.parametrize("width", [80, 40])
def test_on_a_narrow_terminal_the_seconds_are_seen_before_the_words(told, monkeypatch, width):
    """And what a collector says is no markup."""
    from rich.console import Console

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    told.show("[bold]waiting for 2 of 4: hospital-b, receiver to sign, and many more to come")
    after(told, SILENCE_SECONDS + 0.2)
    shown = Console(width=width, file=io.StringIO())
    shown.print(told._bar.get_renderable())
    (line,) = shown.file.getvalue().splitlines()
    assert line.startswith("0:00:00 ")
    assert "[bold]waiting" in line
    assert len(line) == width


# ---- whole rounds, held up everywhere


def silent(one, name):
    path = one.folder / f"{name}.points.silent"
    return path.read_text() if path.exists() else ""


HEARD = {
    "hospital-a": ("sending ",),
    "collector": ("waiting for ",),  # the others may be the last whom everyone waited for
    "receiver": ("opening the result",),
}

WORK = {("horizontal", False): "hiding the counts", ("vertical", True): "encrypting"}
if os.environ.get("SOAK"):
    WORK |= {("horizontal", True): "hiding the counts", ("vertical", False): "reading the labels"}


@pytest.mark.slow
@pytest.mark.parametrize(("partition", "paillier"), WORK)
def test_no_function_that_takes_long_is_silent_in_a_round(partition, paillier, tmp_path, real_key):
    key = real_key if paillier else None
    with run_round(tmp_path / "round", partition=partition, key=key) as one:
        one.target = silence_harness.act
        one.everyone()
        codes = {name: one.wait(name) for name in one.names}
        assert not any(silent(one, name) for name in one.names)
        assert set(codes.values()) == {0}, {name: one.said(name)[-300:] for name in one.names}
        for name, parts in HEARD.items():
            for part in parts:
                assert f"{part}" in one.said(name)
            held = (one.folder / f"{name}.points.held").read_text().splitlines()
            assert len(held) > 40  # it was held up, again and again
        assert WORK[partition, paillier] in one.said(
            "labels" if partition == "vertical" else "hospital-a"
        )


def run(folder, target, *words):
    log = str(folder / "-".join(words[:1]))
    process = FORK.Process(target=target, args=([*map(str, words)], str(folder), log))
    process.start()
    process.join(PATIENCE)
    said = (folder / f"{words[0]}.err").read_text()
    quiet = folder / f"{words[0]}.silent"
    return process.exitcode, said, quiet.read_text() if quiet.exists() else ""


@pytest.mark.slow
def test_no_other_command_is_silent(tmp_path):
    """Everything that prepares a round, and an alignment."""
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    for name in ("a", "b", "c", "r"):
        code, said, quiet = run(
            tmp_path, silence_harness.act, "identity", name, *["--paillier"] * (name == "r")
        )
        assert (code, quiet) == (0, ""), said
    assert "making a Paillier key of 3072 bits …" in said
    cards = ("--provider", "a.card.json", "--provider", "b.card.json", "--collector", "c.card.json")
    manifest = ("schema.json", *cards, "--receiver", "r.card.json", "--epsilon", "1")
    owners = ("--owner", "a.card.json", "--owner", "b.card.json", "--collector", "c.card.json")
    for words in (
        ("manifest", *manifest, "-o", "manifest.json"),
        ("show", "manifest.json"),
        ("invite", *owners, "-o", "invitation.json"),
    ):
        code, said, quiet = run(tmp_path, silence_harness.act, *words)
        assert (code, quiet) == (0, ""), said
    align(tmp_path)


def align(folder):
    port = find_free_port()
    words = {"c": ("collect", "invitation.json", "--port", port)}
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text("id,x\n" + "".join(f"{i},1\n" for i in range(40)))
        rest = ("--id", "id", "--collector", f"http://127.0.0.1:{port}", "-o", f"{name}.out.csv")
        words[name] = ("align", "invitation.json", f"{name}.csv", *rest)
    running = {}
    for name, (step, *rest) in words.items():
        own = ("--identity", f"{name}.identity.json", "--state", f"kept-{name}", "--yes")
        whole = [step, *map(str, rest), *own]
        running[name] = FORK.Process(
            target=silence_harness.act, args=(whole, str(folder), str(folder / name))
        )
        running[name].start()
    for name, process in running.items():
        process.join(PATIENCE)
        assert process.exitcode == 0, (folder / f"{name}.err").read_text()[-500:]
        assert not (folder / f"{name}.silent").exists()
    for part in ("reading a.csv", "blinding ids", "sending list-0", "writing a.out.csv"):
        assert part in (folder / "a.err").read_text()


@pytest.mark.slow
def test_a_program_that_speaks_only_when_it_has_news_is_silent_at_once(tmp_path):
    """The twin: the same commands without the thread that looks at the clock."""
    code, _, quiet = run(tmp_path, silence_harness.deaf, "identity", "a")
    assert code == 7
    assert "cli/federated/" in quiet
