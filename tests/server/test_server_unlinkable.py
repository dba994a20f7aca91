"""Whoever reads the database at rest cannot tell which report came with which invitation.

The attacks know everything that the database and its files hold. They guess, for each invitation,
which report was sent with it: by equal transaction numbers, and by the order of rows, transactions
or bytes. Of 40 guesses by pure chance one is right on average; 9 or more with a probability below
1 / 9! = 3e-6, so a test here fails by chance less than once in 10^5 runs. The known-bad twin writes
the report in the transaction that spends the invitation, which is what one would do at first; the
same attacks join all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql
from servers import Live, added, fresh_postgres, plan, report, serving

from discreet.server import database as db
from discreet.server import settle as settling
from discreet.server.arrivals import Arrival, take
from discreet.server.database import Database
from discreet.server.intake import Row, packed
from discreet.server.invitations import code_hash, invite
from discreet.server.settle import reseal, settle, settle_piece

PEOPLE = 40
CHANCE = 9
Pairs = dict[bytes, bytes]
"""Hash of an invitation -> id of the report that came with it: what nobody may learn."""


def right(guessed: Sequence[tuple[bytes, bytes]], truth: Pairs) -> int:
    return sum(truth.get(bytes(hash_)) == bytes(id_) for hash_, id_ in guessed)


def by_order(hashes: Sequence[bytes], ids: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(hashes, ids, strict=True))


def attacks_on_postgres(database: Database) -> list[list[tuple[bytes, bytes]]]:
    """By equal transactions, and by the order of transactions and of places in the file."""
    with database.reading.connect() as connection:

        def column(query: str) -> list[Any]:
            return [tuple(row) for row in connection.exec_driver_sql(query)]

        joined = column(
            "SELECT i.hash, r.id FROM invitation i JOIN report r ON i.xmin = r.xmin "
            "AND i.survey = r.survey WHERE i.spent > 0"
        )
        guesses = [joined]
        for order in ("xmin::text::bigint, ctid", "ctid"):
            hashes = column(f"SELECT hash FROM invitation WHERE spent > 0 ORDER BY {order}")
            ids = column(f"SELECT id FROM report ORDER BY {order}")
            guesses.append(by_order([h for (h,) in hashes], [i for (i,) in ids]))
        return guesses


def attacks_on_sqlite(database: Database) -> list[list[tuple[bytes, bytes]]]:
    """By the order of rows, and by the places of ids and hashes in the bytes of all files."""
    with database.reading.connect() as connection:
        hashes = [h for (h,) in connection.exec_driver_sql("SELECT hash FROM invitation")]
        ids = [i for (i,) in connection.exec_driver_sql("SELECT id FROM report")]
    guesses = [by_order(hashes, ids)]
    path = Path(str(database.url.database))
    for file in (path, path.with_name(path.name + "-wal")):
        whole = file.read_bytes() if file.exists() else b""
        for find in (whole.find, whole.rfind):
            places = [sorted((find(one), one) for one in some) for some in (hashes, ids)]
            assert file != path or all(place >= 0 for place, _ in places[1])
            guesses.append(by_order(*([one for _, one in some] for some in places)))
    return guesses


def best(database: Database, truth: Pairs) -> int:
    attacks = attacks_on_sqlite if database.sqlite else attacks_on_postgres
    return max(right(guess, truth) for guess in attacks(database))


def collected(live: Live, settle_after: Sequence[int] = (PEOPLE,)) -> Pairs:
    """People answer one after the other; settled where the numbers say so."""
    survey = live.server.surveys.find("health")
    assert survey is not None
    codes = live.owned("POST", "/health/invitations", json={"count": PEOPLE}).json()["codes"]
    truth = {}
    for number, code in enumerate(codes, 1):
        made, _ = report(live.collection)
        assert live.post(made, Invitation=code).status_code == 201
        truth[code_hash(survey.number, code)] = bytes.fromhex(made.id)
        if number in settle_after:
            assert live.owned("POST", "/health/settle").status_code == 200
    return truth  # type: ignore[return-value]


@pytest.mark.slow
def test_no_attack_joins_settled_reports_with_their_invitations(database: Database) -> None:
    added(database, plan(), entry="invited", batch=PEOPLE)
    with serving(database) as live:
        truth = collected(live)
        assert live.counted() == PEOPLE
        assert best(database, truth) < CHANCE
        if not database.sqlite:
            with database.reading.connect() as connection:
                alone = connection.execution_options(isolation_level="AUTOCOMMIT")
                size = "SELECT pg_relation_size('arrival')"
                assert alone.exec_driver_sql(size).scalar() == 0, "nothing is left of arrivals"
                order = "SELECT hash FROM invitation WHERE spent > 0 ORDER BY xmin::text, ctid"
                spent = [bytes(one) for (one,) in alone.exec_driver_sql(order)]
                assert spent == sorted(truth), "nor of the order in which codes were spent"
                alone.exec_driver_sql("VACUUM FREEZE")
            assert best(database, truth) < CHANCE
    if database.sqlite:
        path = Path(str(database.url.database))
        assert best(database, truth) < CHANCE
        log = path.with_name(path.name + "-wal")
        assert not log.exists() or log.stat().st_size == 0


def twin(database: Database) -> Pairs:
    """The obvious way: one transaction spends the invitation and stores the report for good."""
    collection = plan()
    number = added(database, collection, entry="invited")
    with database.write() as connection:
        if database.sqlite:  # and tables as everybody makes them, with numbers of rows
            for name in ("report", "invitation"):
                connection.exec_driver_sql(f"DROP TABLE {name}")
            connection.exec_driver_sql("CREATE TABLE report (survey, id, question, value)")
            connection.exec_driver_sql("CREATE TABLE invitation (survey, hash, spent)")
        codes = invite(connection, number, PEOPLE)
    if database.sqlite:
        with database.write() as connection:
            connection.exec_driver_sql("DELETE FROM invitation")
    truth: Pairs = {}
    for code in codes:
        made, _ = report(collection)
        hash_ = code_hash(number, code)
        assert hash_ is not None
        row = {"survey": number, "question": made.question, "value": packed(made.value)}
        with database.write() as connection:
            if database.sqlite:  # spent codes are written down as they come
                spent = {"survey": number, "hash": hash_, "spent": 1}
                connection.execute(sql.insert(db.invitation).values(**spent))
            else:
                here = db.invitation.c
                change = sql.update(db.invitation).where(here.hash == hash_).values(spent=1)
                connection.execute(change)
            identity = bytes.fromhex(made.id)
            connection.execute(sql.insert(db.report).values(id=identity, **row))
        truth[hash_] = bytes.fromhex(made.id)
    if database.sqlite:
        database.tidy()
    return truth


def test_the_known_bad_twin_is_joined_whole(database: Database) -> None:
    truth = twin(database)
    assert best(database, truth) == PEOPLE
    if database.sqlite:
        rows, *in_bytes = attacks_on_sqlite(database)
        assert right(rows, truth) == PEOPLE
        assert right(in_bytes[0], truth) == PEOPLE, "the bytes alone tell it, too"
    else:
        with database.reading.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            alone.exec_driver_sql("VACUUM FREEZE")
        assert best(database, truth) == PEOPLE, "freezing hides nothing"


@pytest.mark.parametrize("skipped", ["order of ids", "invitations anew"])
def test_each_step_of_settling_is_needed(postgres: str, skipped: str) -> None:
    """Two more twins on PostgreSQL: batches of one keep the order; spent codes keep theirs."""
    with Database(fresh_postgres(postgres)) as database:
        database.migrate()
        _check_step(database, skipped)


def _check_step(database: Database, skipped: str) -> None:
    collection = plan()
    number = added(database, collection, entry="invited")
    with database.write() as connection:
        codes = invite(connection, number, PEOPLE)
    truth: Pairs = {}
    for code in codes:
        made, _ = report(collection)
        hash_ = code_hash(number, code)
        arrival = Arrival(Row(bytes.fromhex(made.id), made.question, packed(made.value)), hash_)
        with database.write() as connection:
            assert take(connection, number, True, [arrival]) == ["counted"]
        assert hash_ is not None
        truth[hash_] = arrival.row.id
        if skipped == "order of ids":
            assert settle_piece(database, number, collection, 1) == 1
    if skipped == "order of ids":
        assert best(database, truth) == PEOPLE
        return
    assert settle_piece(database, number, collection, PEOPLE) == PEOPLE
    with database.reading.connect() as connection:
        order = "SELECT hash FROM invitation WHERE spent > 0 ORDER BY xmin::text::bigint"
        before = [bytes(h) for (h,) in connection.exec_driver_sql(order)]
        assert before == list(truth), "who answered after whom is still there"
    reseal(database, number)
    with database.reading.connect() as connection:
        after = [bytes(h) for (h,) in connection.exec_driver_sql(f"{order}, ctid")]
    assert after == sorted(truth)


def test_batches_are_never_smaller_than_announced(database: Database) -> None:
    collection = plan()
    number = added(database, collection)
    sizes = []
    for arrived in (3, 4, 12, 5, 5):
        for _ in range(arrived):
            made, _ = report(collection)
            row = Row(bytes.fromhex(made.id), made.question, packed(made.value))
            with database.write() as connection:
                take(connection, number, False, [Arrival(row)])
        sizes.append(settle(database, number, collection, 10))
    assert sizes == [0, 0, 19, 0, 10]


def test_large_batches_stay_large_where_work_is_done_in_pieces(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "PIECE", 3)
    collection = plan()
    number = added(database, collection, entry="invited")
    with database.write() as connection:
        arrivals = []
        for code in invite(connection, number, 29):
            made, _ = report(collection)
            row = Row(bytes.fromhex(made.id), made.question, packed(made.value))
            arrivals.append(Arrival(row, code_hash(number, code)))
    with database.write() as connection:
        assert set(take(connection, number, True, arrivals)) == {"counted"}
    sizes = []
    while moved := settle_piece(database, number, collection, 10):
        sizes.append(moved)
    assert sizes == [10, 19]
    anew = []
    while some := reseal(database, number):
        anew.append(some)
    assert anew == [3] * 9 + [2]


def test_no_column_holds_a_time_an_address_or_an_order() -> None:
    columns = {
        f"{table.name}.{column.name}" for table in db.metadata.tables.values() for column in table.c
    }
    assert columns == {
        *(f"survey.{one}" for one in ("number", "slug", "document", "announcement", "state")),
        *(f"arrival.{one}" for one in ("survey", "id", "question", "value")),
        *(f"report.{one}" for one in ("survey", "id", "question", "value")),
        *(f"withdrawn.{one}" for one in ("survey", "id")),
        *(f"invitation.{one}" for one in ("survey", "hash", "spent")),
        *(f"tally.{one}" for one in ("survey", "version", "counted", "sums", "settled")),
        *(f"tally.{one}" for one in ("repeated", "withdrawn")),
        *(f"sheet.{one}" for one in ("survey", "question", "value", "times")),
        *(f"refusal.{one}" for one in ("survey", "kind", "times")),
        *(f"token.{one}" for one in ("hash", "kind", "role", "label", "made", "expires")),
        *(f"action.{one}" for one in ("day", "label", "what", "times")),
    }  # the only times are the days of tokens and of what owners did
