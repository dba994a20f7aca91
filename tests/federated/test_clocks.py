"""Clocks that jump: a round is abandoned for everyone and for good, and nothing is paid twice."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

pytest.importorskip("httpx")
pytest.importorskip("fastapi")

from round_fixtures import NAMES, PARTIES, counted, horizontal_manifest, table, vector_of
from served_rounds import Served, frame, receiver_in, run_all, signed_round, soon, unsigned

from discreet.cli.federated.files import make_ledger_charge
from discreet.federated import horizontal
from discreet.federated.agreement import signed
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.collector_client import RoundClient
from discreet.federated.service.provider import ProviderInput, run_provider
from discreet.federated.service.server import RoundSession
from discreet.privacy.ledger import Ledger

HOUR = 3600


class Clock(threading.local):
    """A clock that is off by some seconds, differently for every thread."""

    off = 0.0

    def __call__(self):
        return datetime.now(UTC) + timedelta(seconds=self.off)


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(signed, "get_current_time", made)
    return made


def submissions(manifest):
    each = zip(NAMES, counted(manifest), strict=True)
    return [
        horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        for name, own in each
    ]


def jumped(tmp_path, clock, heard="both"):
    """A collector whose clock jumps past the deadline and back, with one message missing.

    Somebody hears of it by asking for the state, by sending the message, or both.
    """
    manifest = horizontal_manifest(deadline=soon(HOUR))
    running, messages = signed_round(manifest, tmp_path), submissions(manifest)
    for message in messages[:2]:
        running.store_message(message)
    clock.off = 2 * HOUR
    if heard != "sending":
        assert running.get_status()["state"] == "abandoned"
    if heard != "asking":
        with pytest.raises(ProtocolError, match="abandoned"):
            running.store_message(messages[2])
    clock.off = 0.0
    return manifest, running, messages[2]


@pytest.mark.parametrize("heard", ["asking", "sending"])
def test_a_round_that_was_called_abandoned_stays_so_when_the_clock_is_set_back(
    tmp_path, clock, heard
):
    """Whoever heard of it has deleted its key: nothing may come of the round any more."""
    manifest, running, last = jumped(tmp_path, clock, heard)
    again = RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path)
    for one in (running, again):
        assert one.get_status()["state"] == "abandoned"
        assert "the round is abandoned" in one.format_status_line()
        with pytest.raises(ProtocolError, match="abandoned"):
            one.store_message(last)
        assert one.result is None
        # what was acknowledged is still there
        assert len(one.inboxes["collector"].accepted) == 2


def test_a_collector_that_forgets_it_opens_what_others_believe_abandoned(
    tmp_path, clock, monkeypatch
):
    """The twin."""
    monkeypatch.setattr(RoundSession, "_abandon_round", lambda self: None)
    _, running, last = jumped(tmp_path, clock)
    running.store_message(last)
    assert running.result is not None


def test_a_clock_that_is_set_back_gives_more_time_and_nothing_else(tmp_path, clock):
    manifest = horizontal_manifest(deadline=soon(HOUR))
    running = signed_round(manifest, tmp_path)
    first, *rest = submissions(manifest)
    running.store_message(first)
    clock.off = -24 * HOUR
    for message in rest:
        running.store_message(message)
    with pytest.raises(ProtocolError, match="replayed"):
        running.store_message(first)
    assert running.has_result
    clock.off = 2 * HOUR  # a result that is there stays there
    assert running.get_status()["state"] == "done"
    assert RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path).result == running.result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("jump", "says"), [(HOUR, "clock of hospital-a"), (300, "the deadline has passed")]
)
def test_a_provider_whose_clock_jumps_has_paid_once_and_the_others_go_on(
    jump, says, tmp_path, clock
):
    """It jumps when the submission is paid: more than clocks may differ, or past the deadline."""
    manifest = unsigned(horizontal_manifest(epsilon=math.inf, deadline=soon(120)))
    ledger = Ledger.create(tmp_path / "budget.json", 5.0)
    paid, said = make_ledger_charge(str(tmp_path / "budget.json")), []
    finite = replace(manifest, epsilon=1.0)

    def charge(agreed):
        paid(finite)
        clock.off = jump

    def jumping(line):
        try:
            with pytest.raises(ProtocolError) as caught:
                run_provider(line, ProviderInput(frame(0), charge=charge), tmp_path / "hospital-a")
        finally:
            clock.off = 0.0
            refused.set()
        said.append(caught.value)
        with RoundClient(line.transport.url, line.identity, manifest) as again:
            try:
                run_provider(
                    again,
                    ProviderInput(frame(0), charge=paid_again.append),
                    tmp_path / "hospital-a",
                )
            except ProtocolError as error:
                said.append(error)

    def later(name, seed):  # so that there is something for the first to wait for
        charge = lambda agreed: refused.wait(60)  # noqa: E731
        return name, lambda line: run_provider(
            line, ProviderInput(frame(seed), charge=charge), tmp_path / name
        )

    paid_again, refused = [], threading.Event()
    running = RoundSession(PARTIES["collector"], manifest, tmp_path / "collector")
    with Served(running) as url:
        parts = [(NAMES[0], jumping)]
        parts += [later(name, seed) for seed, name in enumerate(NAMES[1:], 1)]
        release = run_all(url, manifest, [*parts, receiver_in(tmp_path)], tmp_path)
    assert says in str(said[0])
    assert len(ledger.read().entries) == 1
    assert not paid_again  # what was made is sent again as it is
    exact = sum(manifest.layout.count_rows(*table(50, seed)) for seed in range(3))
    assert np.array_equal(vector_of(manifest, release.statistics), exact)
