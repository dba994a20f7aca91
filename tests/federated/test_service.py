"""Killed, restarted, started twice, out of disk space: nothing is lost, nothing is paid twice."""

from __future__ import annotations

import math
from contextlib import nullcontext
from datetime import timedelta

import numpy as np
import pytest
from round_fixtures import (
    NAMES,
    PARTIES,
    counted,
    horizontal_manifest,
    table,
    vector_of,
    vertical_manifest,
)
from served_rounds import Served, frame, run_all, signed_round, soon, unsigned

from discreet.errors import FormatError, SchemaError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement import signed
from discreet.federated.agreement.identity import Identity
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.collector_client import RoundClient
from discreet.federated.service.provider import ProviderInput, run_label_provider, run_provider
from discreet.federated.service.receiver import run_receiver
from discreet.federated.service.server import RoundSession
from discreet.federated.service.state_folder import StateFolder


class KilledError(Exception):
    """The process ends here."""


def killed(*_):
    raise KilledError


def test_a_state_folder_is_held_by_one_process_at_a_time(tmp_path):
    """Two would send two noises under the same pads."""
    kept = StateFolder(tmp_path, horizontal_manifest())
    with (
        kept.lock_folder(),
        pytest.raises(FormatError, match="another process"),
        kept.lock_folder(),
    ):
        pass
    with kept.lock_folder():
        pass


def test_a_state_folder_belongs_to_one_party_and_keeps_its_key_until_the_end(tmp_path):
    manifest = horizontal_manifest()
    own = Identity.from_json(PARTIES["hospital-a"].to_json())
    kept = StateFolder(tmp_path, manifest)
    kept.join_round(own)
    first = own.get_session_public_key(manifest.hash)
    with pytest.raises(ProtocolError, match="belongs to another party"):
        kept.join_round(PARTIES["hospital-b"])
    restarted = Identity.from_json(own.to_json())
    StateFolder(tmp_path, manifest).join_round(restarted)
    assert restarted.get_session_public_key(manifest.hash) == first
    session = kept.path / "session"
    assert session.stat().st_mode & 0o777 == 0o600
    kept.finish_round(restarted)
    assert not session.exists()
    assert restarted.get_session_public_key(manifest.hash) != first  # forgotten in memory too
    with pytest.raises(ProtocolError, match="has finished this round"):
        kept.join_round(own)


def test_a_second_key_of_one_party_is_refused_by_the_collector(tmp_path):
    """Others may have computed with the first already."""
    manifest = unsigned(horizontal_manifest())
    running = RoundSession(PARTIES["collector"], manifest, tmp_path)
    lost = Identity.from_json(PARTIES["hospital-a"].to_json())
    running.accept_signature("hospital-a", manifest.with_signatures(lost).signatures["hospital-a"])
    again = Identity.from_json(PARTIES["hospital-a"].to_json())
    with pytest.raises(ProtocolError, match="with another key for the round"):
        running.accept_signature(
            "hospital-a", manifest.with_signatures(again).signatures["hospital-a"]
        )
    running.accept_signature("hospital-a", manifest.with_signatures(lost).signatures["hospital-a"])


def test_a_full_disk_changes_nothing_and_a_retry_is_welcome(tmp_path, monkeypatch):
    manifest = horizontal_manifest(epsilon=math.inf)
    exact = counted(manifest)
    running = signed_round(manifest, tmp_path)
    said = [
        horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        for name, own in zip(NAMES, exact, strict=True)
    ]

    def full(*_):
        raise FormatError("No space left on device")

    for message in said:
        with monkeypatch.context() as patch:
            patch.setattr(running.folder, "write", full)
            with pytest.raises(FormatError, match="No space left"):
                running.store_message(message)
        running.store_message(message)
    release = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest).receive(
        running.list_messages("receiver")[0]
    )
    assert np.array_equal(vector_of(manifest, release.statistics), sum(exact))


def test_what_was_refused_does_not_lie_on_the_disk(tmp_path):
    manifest = vertical_manifest(epsilon=math.inf)
    running = signed_round(manifest, tmp_path)
    from discreet.federated.messages import Message

    size = running.inboxes["collector"].expected["labels", "shares"].content_sizes[-1]
    garbage = Message.create(PARTIES["labels"], manifest, "shares", "collector", bytes(size))
    with pytest.raises(ProtocolError, match="cannot be opened"):
        running.store_message(garbage)
    assert list(running.folder.iter_messages(".message")) == []


@pytest.mark.slow
def test_a_result_that_cannot_be_written_is_not_confirmed_and_can_be_opened_again(tmp_path):
    manifest = unsigned(horizontal_manifest(epsilon=math.inf, deadline=soon(60)))
    running = RoundSession(PARTIES["collector"], manifest, tmp_path / "collector")
    kept = []

    def nowhere(release):
        raise FormatError("/nowhere/model.json: cannot be written")

    def stubborn(connection):
        with pytest.raises(FormatError, match="cannot be written"):
            run_receiver(connection, tmp_path / "receiver", nowhere)
        assert running.has_result
        assert not running.is_result_confirmed
        return run_receiver(connection, tmp_path / "receiver", kept.append)

    parts = [
        (name, lambda c, s=seed: run_provider(c, ProviderInput(frame(s)), tmp_path / str(s)))
        for seed, name in enumerate(NAMES)
    ]
    with Served(running) as url:
        release = run_all(url, manifest, [*parts, ("receiver", stubborn)], tmp_path)
    assert kept == [release]
    assert running.is_result_confirmed
    assert running.is_known_to_all


def test_rows_and_values_are_checked_before_anyone_signs(tmp_path):
    """And labels that changed between two starts."""
    manifest = unsigned(vertical_manifest(epsilon=math.inf, deadline=soon(600)))
    whole = {**frame(3, 40), "id": np.arange(40)}
    with RoundClient("http://127.0.0.1:9", PARTIES["hospital-a"], manifest) as connection:
        short = {name: column[:-1] for name, column in whole.items()}
        with pytest.raises(SchemaError, match="39 rows, the manifest 40"):
            run_provider(connection, ProviderInput(short, "id"), tmp_path / "a")
        odd = {**whole, "colour": np.array(["green"] * 40, dtype=object)}
        with pytest.raises(SchemaError, match="green"):
            run_provider(connection, ProviderInput(odd, "id"), tmp_path / "a")
    with RoundClient("http://127.0.0.1:9", PARTIES["labels"], manifest) as connection:
        connection.sign_agreement = killed
        with pytest.raises(KilledError):
            run_label_provider(connection, ProviderInput(whole, "id"), tmp_path / "l")
        flipped = {**whole, "class": whole["class"][::-1]}
        with pytest.raises(ProtocolError, match="not those that this round was begun with"):
            run_label_provider(connection, ProviderInput(flipped, "id"), tmp_path / "l")


@pytest.mark.slow
def test_the_key_of_an_abandoned_round_is_erased(tmp_path):
    over = unsigned(horizontal_manifest(deadline=soon(0.2)))
    with (
        RoundClient("http://127.0.0.1:9", PARTIES["hospital-a"], over) as connection,
        pytest.raises(ProtocolError, match="deadline has passed"),
    ):
        run_provider(connection, ProviderInput(frame(1)), tmp_path)
    assert not list(tmp_path.glob("*/session"))
    assert list(tmp_path.glob("*/finished"))


def test_requests_of_strangers_and_old_ones_are_refused(tmp_path, monkeypatch):
    manifest = unsigned(horizontal_manifest())
    running = RoundSession(PARTIES["collector"], manifest, tmp_path)
    own = PARTIES["hospital-a"]
    from discreet.federated.messages import encode_request

    def line(moment, who=own, target="/status"):
        signature = who.sign(encode_request(manifest, "GET", target, moment))
        return f"{own.name} {moment} {signature.hex()}"

    import time

    now = str(int(time.time()))
    assert running.authenticate_request(line(now), "GET", "/status") == "hospital-a"
    huge = "9" * 4000
    wrongs = ["", "x", "hospital-a now 00", line(now, PARTIES["hospital-b"]), line("0")]
    wrongs += [f"hospital-a {huge} 00", line(huge), line("-1"), line("\u0661"), f"{now} " * 9]
    for wrong in wrongs:
        with pytest.raises(ProtocolError, match="wrong-signature"):
            running.authenticate_request(wrong, "GET", "/status")
    with pytest.raises(ProtocolError, match="wrong-signature"):
        running.authenticate_request(line(now, target="/manifest"), "GET", "/status")


def test_a_collector_says_that_its_result_was_not_taken_in_time(tmp_path, monkeypatch):
    manifest = horizontal_manifest(epsilon=math.inf, deadline=soon(3600))
    running = signed_round(manifest, tmp_path)
    for name, own in zip(NAMES, counted(manifest), strict=True):
        running.store_message(
            horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        )
    assert not running.is_overdue
    later = signed.get_current_time() + timedelta(seconds=3601)
    monkeypatch.setattr(signed, "get_current_time", lambda: later)
    assert running.is_overdue
    assert not running.is_over
    assert "still serves it" in running.format_status_line()
    done = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest)
    assert done.receive(running.list_messages("receiver")[0]).statistics is not None


class Desk:
    """A connection that delivers what it was given, and dies when everything was sent."""

    def __init__(self, name, manifest, letters=()):
        self.identity, self.agreement = PARTIES[name], manifest
        self.letters, self.show = {(m.kind, m.sender): m for m in letters}, lambda *far: None
        self.sent = []

    def sign_agreement(self, known_cards=()):
        return self.agreement

    def show_busy(self, step_name):
        return nullcontext()

    def fetch_message(self, kind, sender, state_folder):
        return self.letters[kind, sender]

    def send_message(self, message):
        self.sent.append(message.to_bytes())

    def allow_leaving(self):
        pass

    def wait_for_end(self):
        raise KilledError


def started_twice(desk, act, folder):
    """What was sent by the first start and by the second, and how often was paid.

    The first dies after its message was accepted and before it has noted that.
    """
    paid, said = [], []
    for _ in range(2):
        desk.sent = []
        for noted in folder.rglob("delivered"):
            noted.unlink()
        with pytest.raises(KilledError):
            act(desk, paid.append)
        said.append(desk.sent)
    return *said, len(paid)


def test_a_restarted_provider_sends_the_same_bytes_and_pays_once(tmp_path):
    """Fresh noise under the same pads would give a part of it away."""
    desk = Desk("hospital-a", horizontal_manifest())
    first, second, paid = started_twice(
        desk,
        lambda c, charge: run_provider(c, ProviderInput(frame(1), charge=charge), tmp_path),
        tmp_path,
    )
    assert first == second
    assert len(first) == paid == 1


@pytest.mark.parametrize("way", ["masks", "paillier"])
def test_restarted_parties_of_a_vertical_round_send_the_same_bytes_and_pay_once(
    way, tmp_path, small_key
):
    key = small_key if way == "paillier" else None
    manifest, whole = vertical_manifest(key), frame(3, 40)
    columns, codes = table(40, 3)
    collector = vertical.VerticalCollector(PARTIES["collector"], manifest)
    said = vertical.LabelProvider(PARTIES["labels"], manifest, key).make_all_labels(codes)
    letters = [collector.make_correction()] if key is None else []
    for name, message in zip(NAMES[:2], said, strict=True):
        desk = Desk(name, manifest, [message])
        first, second, paid = started_twice(
            desk,
            lambda c, charge, n=name: run_provider(
                c, ProviderInput(whole, charge=charge), tmp_path / n
            ),
            tmp_path,
        )
        assert first == second
        assert len(first) == paid == 1
        provider = vertical.VerticalProvider(PARTIES[name], manifest)
        provider.receive(message)
        letters.append(provider.make_tables(columns))
    first, second, paid = started_twice(
        Desk("labels", manifest, letters),
        lambda c, charge: run_label_provider(
            c, ProviderInput(whole, charge=charge), tmp_path / "labels", key
        ),
        tmp_path,
    )
    assert first == second
    assert len(first) == 3  # the labels for each provider, and the shares
    assert paid == 1


def test_what_is_exponentiated_at_decryption_is_not_known_to_the_sender(small_key, monkeypatch):
    """The same ciphertext twice: other numbers are exponentiated each time."""
    from discreet.federated.crypto import paillier

    seen, real = [], paillier.gmpy2.powmod
    ciphertext = paillier.Encryptor(small_key.public, 1).encrypt(7)
    assert small_key.decrypt(ciphertext) == 7  # makes what is computed once

    class Watched:
        def __getattr__(self, name):
            return getattr(real_module, name)

        @staticmethod
        def powmod(base, *rest):
            seen.append(int(base))
            return real(base, *rest)

    real_module = paillier.gmpy2
    monkeypatch.setattr(paillier, "gmpy2", Watched())
    assert small_key.decrypt(ciphertext) == small_key.decrypt(ciphertext) == 7
    assert len(seen) == len(set(seen)) == 4
