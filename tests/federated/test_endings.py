"""How a round ends for each party: no key is left behind, and nobody waits for those who left."""

from __future__ import annotations

import math
import threading
from datetime import timedelta

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from party_processes import discreet
from ring_helpers import invitation
from round_fixtures import NAMES, PARTIES, counted, horizontal_manifest
from served_rounds import Listening, Served, frame, signed_round, soon, unsigned

from discreet.errors import FormatError
from discreet.federated import horizontal
from discreet.federated.agreement import signed
from discreet.federated.alignment.collector_session import AlignmentSession
from discreet.federated.alignment.owner_program import run_owner
from discreet.federated.refusals import ProtocolError
from discreet.federated.service import collector_client
from discreet.federated.service.collector_client import CollectorClient, RoundClient
from discreet.federated.service.patience import RetryPolicy
from discreet.federated.service.provider import ProviderInput, run_provider
from discreet.federated.service.receiver import run_receiver
from discreet.federated.service.state_folder import StateFolder

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(collector_client, "DEFAULT_POLICY", RetryPolicy(max_silence_seconds=0.3))


def keys(folder):
    return [*folder.rglob("session"), *folder.rglob("secret")]


def provided(line, folder):
    run_provider(line, ProviderInput(frame(1)), folder)


def received(line, folder):
    run_receiver(line, folder, lambda release: None)


def aligned(line, folder):
    run_owner(line, ["a", "b"], folder, lambda rows: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "act", "agreement"),
    [
        ("hospital-a", provided, horizontal_manifest),
        ("receiver", received, horizontal_manifest),
        ("hospital-a", aligned, invitation),
    ],
    ids=["provider", "receiver", "owner"],
)
def test_an_abandoned_round_leaves_no_key_with_any_party(name, act, agreement, tmp_path):
    over = unsigned(agreement(deadline=soon(0.2)))
    with (
        CollectorClient(NOWHERE, PARTIES[name], over) as line,
        pytest.raises(ProtocolError, match="deadline has passed"),
    ):
        act(line, tmp_path)
    assert list(tmp_path.glob("*/finished"))
    assert not keys(tmp_path)


@pytest.mark.slow
def test_an_abandoned_round_leaves_no_key_with_the_collector(tmp_path):
    manifest = unsigned(horizontal_manifest(deadline=soon(-5)))
    (tmp_path / "manifest.json").write_text(manifest.to_json())
    (tmp_path / "c.identity.json").write_text(PARTIES["collector"].to_json())
    words = ["collect", "manifest.json", "--identity", "c.identity.json", "--state", "kept"]
    with pytest.raises(AssertionError, match="the round is abandoned; waiting for"):
        discreet(*words, "--port", 0, "--yes", cwd=tmp_path)
    assert list(tmp_path.glob("kept/*/finished"))
    assert not keys(tmp_path)


def test_a_key_is_deleted_although_the_disk_is_full(tmp_path, monkeypatch):
    """The note that the round has ended fits once its bodies are gone."""
    manifest, own = horizontal_manifest(), PARTIES["hospital-a"]
    kept = StateFolder(tmp_path, manifest)
    kept.join_round(own)
    kept.write("tables.body", bytes(1000))
    real = StateFolder.write

    def full(self, name, content):
        if (self.path / "tables.body").exists():
            raise FormatError("no space left on device")
        real(self, name, content)

    monkeypatch.setattr(StateFolder, "write", full)
    kept.finish_round(own)
    assert not keys(tmp_path)
    with pytest.raises(ProtocolError, match="has finished this round"):
        kept.join_round(own)


# --------------------------------------------------------------------- collectors that have left


def complete(tmp_path, **how):
    """A round of which all but the receiver's part has happened, and its manifest."""
    manifest = horizontal_manifest(epsilon=math.inf, **how)
    running = signed_round(manifest, tmp_path / "collector")
    for name, own in zip(NAMES, counted(manifest), strict=True):
        running.store_message(
            horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        )
    return running, unsigned(manifest)


@pytest.mark.slow
@pytest.mark.parametrize("deadline", ["", soon(3600)], ids=["endless", "in time"])
def test_a_receiver_that_has_the_result_does_not_need_the_collector(
    deadline, tmp_path, impatient, monkeypatch
):
    """Killed before the result is confirmed, with or without a deadline that passes meanwhile."""
    running, manifest = complete(tmp_path, deadline=deadline)
    served, kept, tell = Served(running), [], Listening()

    def keep(release):
        kept.append(release)
        served.__exit__()
        if deadline:
            line.patience.policy = RetryPolicy()
            later = signed.get_current_time() + timedelta(seconds=7200)
            monkeypatch.setattr(signed, "get_current_time", lambda: later)

    with RoundClient(served.__enter__(), PARTIES["receiver"], manifest, listener=tell) as line:
        assert [run_receiver(line, tmp_path / "receiver", keep)] == kept
    sentence = "the collector is gone; it is not known whether it received the acknowledgement"
    assert sentence in tell.heard[-1]
    assert not running.is_result_confirmed
    assert not keys(tmp_path / "receiver")


@pytest.mark.slow
def test_an_owner_that_has_the_answer_does_not_need_the_collector(tmp_path, impatient):
    agreed = invitation(2, signed=False)
    running = AlignmentSession(PARTIES["collector"], agreed, tmp_path / "collector")
    served, kept, names = Served(running), [], [card.name for card in agreed.owners]
    url = served.__enter__()

    def keep(rows):
        kept.append(rows)
        if len(kept) == 2:
            served.__exit__()

    def act(name):
        with CollectorClient(url, PARTIES[name], agreed) as line:
            run_owner(line, ["a", "b"], tmp_path / name, keep)

    owners = [threading.Thread(target=act, args=(name,)) for name in names]
    for one in owners:
        one.start()
    for one in owners:
        one.join(60)
    assert [len(rows) for rows in kept] == [2, 2]
    assert not keys(tmp_path / names[0])
    assert not keys(tmp_path / names[1])


def killed(*_):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_provider_that_does_not_know_whether_it_was_heard_says_so_and_ends(tmp_path, impatient):
    """Killed after its submission arrived; the round ended without it, and the collector left."""
    manifest = horizontal_manifest()
    running = signed_round(manifest, tmp_path / "collector")
    own, bare, state = PARTIES["hospital-a"], unsigned(manifest), tmp_path / "a"
    with Served(running) as url:
        with RoundClient(url, own, bare) as line:
            line.transfer._parse_upload_progress = killed
            with pytest.raises(KeyboardInterrupt):
                provided(line, state)
        assert "hospital-a" not in running.list_missing_parties()
        with RoundClient(NOWHERE, own, bare) as line, pytest.raises(ProtocolError) as told:
            provided(line, state)
        assert told.value.reason == "lonely"
        for words in (NOWHERE, "may have arrived", "can be deleted", "start again", str(state)):
            assert words in told.value.sentence
        assert keys(state)  # the round may go on
        with RoundClient(url, own, bare) as line:  # it does
            line.wait_for_end = lambda: None
            provided(line, state)
    assert not keys(state)


@pytest.mark.slow
def test_a_provider_that_was_not_heard_yet_goes_on_waiting(tmp_path, impatient):
    """The twin: nothing was sent, so a collector that is being restarted is waited for."""
    manifest = unsigned(horizontal_manifest(deadline=soon(1)))
    with (
        RoundClient(NOWHERE, PARTIES["hospital-a"], manifest) as line,
        pytest.raises(ProtocolError, match="deadline has passed"),
    ):
        provided(line, tmp_path)
