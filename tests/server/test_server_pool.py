"""Who settles is drawn: whoever sends all reports but one does not know where the last one is.

Of a pool of 2k reports k are settled, drawn at random. The attacker here sends 2k - 1 of them, with
ids that it chooses, and compares what is exported before and after with its own reports.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from servers import Live, added, plan, problem, report, serving, waiting_in

import discreet.server
from discreet.collection.announcement import make_example_yaml
from discreet.server import database as db
from discreet.server import sealed_arrivals, settling
from discreet.server.arrivals import Arrival, store_arrivals
from discreet.server.database import Database
from discreet.server.desk import create_desk_router
from discreet.server.intake import ReportRow, pack_integers
from discreet.server.invitations import create_codes, hash_code
from discreet.server.keys import Key, format_key_name
from discreet.server.settling import MAX_WAIT_SECONDS, settle_arrivals, settle_piece

COLLECTION = plan()
OURS = {"Sec-Fetch-Site": "same-origin"}
BATCH = 5
TRIALS = 160
FEWEST, MOST = 43, 117  # of 160 with chance 1/2: outside with a chance of 4e-9
FEWEST_AT_PLACE, MOST_AT_PLACE = 39, 121  # for 10 places together: 3e-9


def row_of(identity: bytes) -> ReportRow:
    """A report of chance under an id of choice."""
    made, _ = report(COLLECTION)
    return ReportRow(identity, made.question, pack_integers(made.value))


def sent(database: Database, number: int, ids: Sequence[bytes]) -> None:
    """Reports under these ids, one transaction each, as they arrive."""
    for identity in ids:
        with database.write() as connection:
            assert store_arrivals(connection, number, False, [Arrival(row_of(identity))]) == [
                "counted"
            ]


def exported(database: Database, number: int) -> set[bytes]:
    """Ids of the reports that anybody who may export can read."""
    with database.read() as connection:
        here = db.report.c
        query = sql.select(here.id).where(here.survey == number)
        return set(map(bytes, connection.execute(query).scalars()))


def aged(database: Database, number: int, seconds: float) -> None:
    """As if as many as a batch had waited for so long."""
    with database.write() as connection:
        sealed_arrivals.set_key_age(connection, number, seconds)


def read_age(database: Database, number: int) -> float:
    with database.read() as connection:
        return sealed_arrivals.read_key_age(connection, number)


def new_ids(count: int, first: bytes = b"") -> list[bytes]:
    return [first + secrets.token_bytes(16 - len(first)) for _ in range(count)]


def places_settled(database: Database, trials: int, pool: int) -> Counter[int]:
    """How often the report that came at which place was exported; the victim comes first.

    The attacker's ids are the largest there are, so that a choice by ids would always take the
    victim.
    """
    times: Counter[int] = Counter()
    for trial in range(trials):
        number = added(database, COLLECTION, f"trial-{trial}", batch=BATCH)
        ids = [*new_ids(1, b"\0"), *new_ids(pool - 1, b"\xff" * 4)]
        sent(database, number, ids)
        settle_piece(database, number, COLLECTION, BATCH)
        out = exported(database, number)
        times.update(place for place, identity in enumerate(ids) if identity in out)
    return times


@pytest.mark.slow
def test_who_sends_all_but_one_reads_the_last_with_a_chance_of_one_half(database: Database) -> None:
    times = places_settled(database, TRIALS, 2 * BATCH)
    assert times.total() == TRIALS * BATCH
    assert FEWEST <= times[0] <= MOST
    assert all(FEWEST_AT_PLACE <= times[n] <= MOST_AT_PLACE for n in range(2 * BATCH)), times


def test_a_filled_batch_alone_settles_nothing(database: Database) -> None:
    for pool in (BATCH, 2 * BATCH - 1):
        assert not places_settled(database, 1, pool)
        with database.write() as connection:
            connection.execute(sql.delete(db.survey))


@pytest.mark.slow
def test_twin_a_batch_that_is_settled_whole_gives_the_last_one_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "MAX_WAIT_SECONDS", -1.0)  # nothing is kept back
    assert places_settled(database, 20, BATCH)[0] == 20


@pytest.mark.slow
def test_twin_a_choice_by_ids_takes_the_last_one_always(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Key, "compute_mark", lambda self, kind, content: content[:16])
    assert places_settled(database, 20, 2 * BATCH)[0] == 20


def test_whole_batches_are_settled_and_one_or_more_kept_back(database: Database) -> None:
    number = added(database, COLLECTION, batch=BATCH)
    settled = []
    for arrived in (9, 1, 5, 4, 3, 7):  # waiting then: 9, 10, 10, 9, 12, 14
        sent(database, number, new_ids(arrived))
        settled.append(settle_arrivals(database, number, COLLECTION, BATCH))
    assert settled == [0, 5, 5, 0, 5, 5]
    sent(database, number, new_ids(8))
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 10
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 0, "no second look settles more"
    assert len(waiting_in(database, number)) == 7
    assert settle_arrivals(database, number, COLLECTION, 1) == 7, "all at the close"
    assert database.keys.list_batches() == []


def test_what_is_kept_back_is_sealed_anew_with_its_invitation_and_its_withdrawal(
    database: Database,
) -> None:
    number = added(database, COLLECTION, entry="invited", batch=BATCH)
    with database.write() as connection:
        codes = [hash_code(number, code) for code in create_codes(connection, number, 4 * BATCH)]
    arrivals = [
        Arrival(row_of(identity), code)
        for identity, code in zip(new_ids(4 * BATCH), codes, strict=True)
    ]
    with database.write() as connection:
        assert set(store_arrivals(connection, number, True, arrivals)) == {"counted"}
    with database.write() as connection:
        keys = sealed_arrivals.load_live_keys(connection, number)
        some = [one.row.id for one in arrivals[:6]]
        found = sealed_arrivals.find_arrivals(connection, number, keys, some)
        for waiting in found.values():
            sealed_arrivals.withdraw_arrival(connection, number, keys, waiting)
    (old,) = database.keys.list_batches()
    assert settle_piece(database, number, COLLECTION, BATCH) == (BATCH, True)  # of 14
    (new,) = database.keys.list_batches()
    assert new != old, "the key of what was settled is destroyed"
    kept = waiting_in(database, number)
    assert sum(waiting.live for waiting in kept) == 9
    gone = {one.row.id for one in arrivals[:6]}
    assert {w.arrival.row.id for w in kept if not w.live} <= gone
    assert exported(database, number).isdisjoint(gone)
    fresh = zip(new_ids(4 * BATCH), codes, strict=True)
    again = [Arrival(row_of(identity), code) for identity, code in fresh]
    with database.write() as connection:
        assert set(store_arrivals(connection, number, True, again)) == {"invitation"}, "spent once"
        repeated = set(store_arrivals(connection, number, True, arrivals[6:]))
        assert repeated == {"repeated"}, "known, settled or not"
        assert set(store_arrivals(connection, number, True, arrivals[:6])) == {"withdrawn"}


# ---------------------------------------------------------------- how long something waits


def test_nothing_waits_longer_than_stated_once_a_batch_waits(database: Database) -> None:
    number = added(database, COLLECTION, batch=BATCH)
    sent(database, number, new_ids(7))
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 0
    aged(database, number, MAX_WAIT_SECONDS - 3600)
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 0
    sent(database, number, new_ids(5))
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 5
    assert read_age(database, number) > MAX_WAIT_SECONDS - 3600, "carried over to the next key"
    aged(database, number, MAX_WAIT_SECONDS + 3600)
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 7
    sent(database, number, new_ids(9))
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 0, "the next pool begins anew"


def test_a_batch_that_is_filled_late_is_not_settled_at_once(database: Database) -> None:
    """Otherwise an old report and the attacker's would be a batch, without anything kept back."""
    number = added(database, COLLECTION, batch=BATCH)
    sent(database, number, new_ids(BATCH - 1))
    aged(database, number, MAX_WAIT_SECONDS + 3600)
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 0, "smaller than any batch"
    assert read_age(database, number) < 3600, "time begins when as many as a batch wait"
    sent(database, number, new_ids(BATCH))
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 0


def test_a_key_of_a_transaction_that_failed_is_not_older_than_what_it_seals(
    database: Database,
) -> None:
    number = added(database, COLLECTION, batch=BATCH)
    with suppress(RuntimeError), database.write() as connection:
        store_arrivals(connection, number, False, [Arrival(row_of(*new_ids(1)))])
        raise RuntimeError
    ((survey, spare),) = database.keys.list_batches()
    database.keys.set_age(format_key_name(survey, spare), MAX_WAIT_SECONDS + 3600)
    sent(database, number, new_ids(BATCH))
    assert database.keys.list_batches() == [(survey, spare)]
    assert settle_arrivals(database, number, COLLECTION, BATCH) == 0


@pytest.mark.slow
def test_an_idle_server_settles_what_has_waited_long_enough(database: Database) -> None:
    number = added(database, COLLECTION, batch=BATCH)
    sent(database, number, new_ids(7))
    with serving(database, settle_interval=0.02) as live:
        while (number, False) not in live.server._settled_surveys:  # its first look is over
            time.sleep(0.01)
        assert live.counted() == 0
        looks, every = [0], live.server.surveys.list_surveys

        def looked() -> Any:
            looks[0] += 1
            return every()

        aged(database, number, MAX_WAIT_SECONDS + 3600)
        live.server.surveys.list_surveys = looked  # type: ignore[method-assign]
        before = 0
        while live.counted() != 7:
            assert before < 10, "its looks pass over what waits"
            time.sleep(0.01)
            before = looks[0]  # those that were over before it was counted


def test_people_are_told_how_long_something_waits() -> None:
    assert MAX_WAIT_SECONDS == 7 * 86_400
    words = Path(discreet.server.__file__).parent / "static" / "words"
    for language, days in (("en", "at most seven days"), ("de", "höchstens noch sieben Tage")):
        said = json.loads((words / f"{language}.json").read_text(encoding="utf-8"))
        assert days in said["about.stored"]["other"]
    assert "none waits longer than 7 days" in make_example_yaml(COLLECTION, "health")
    guide = Path(__file__).parents[2] / "docs/how-to/serve-a-survey.md"
    assert "**Nothing waits longer than seven days**" in guide.read_text(encoding="utf-8")


# ---------------------------------------------------------------- what is shown


def shown(live: Live) -> list[str]:
    """All that collectors and everybody else can read while a collection is open."""
    pages = ("/desk", "/desk/health", "/metrics", "/api/v1/surveys", "/api/v1/surveys/health")
    texts = [live.client.get(page, headers=OURS).text for page in pages]
    refused = live.owned("POST", "/health/settle")
    assert problem(refused) == "small-batch"
    return [*texts, refused.json()["detail"], live.owned("GET", "/health/tally").text]


@pytest.mark.slow
def test_nothing_shows_how_many_wait(database: Database) -> None:
    number = added(database, COLLECTION, batch=BATCH)
    with serving(database, [create_desk_router()]) as live:
        answer = live.client.post("/desk/enter", data={"token": live.token}, headers=OURS)
        assert answer.status_code == 303
        before = shown(live)
        assert "fewer than 10 reports" in before[1]
        for _ in range(2 * BATCH - 1):
            assert live.post(report(COLLECTION)[0]).status_code == 201
            assert shown(live) == before
        assert live.post(report(COLLECTION)[0]).status_code == 201
        assert live.owned("POST", "/health/settle").json() == {"settled": BATCH}
        after = shown(live)
        assert after != before
        for _ in range(BATCH - 1):
            live.post(report(COLLECTION)[0])
            assert shown(live) == after
        assert len(exported(database, number)) == BATCH
