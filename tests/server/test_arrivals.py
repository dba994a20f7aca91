"""Each step of storing arrivals by itself: what is there, who is known, which codes are unspent."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sql
from servers import added, plan, questionnaire

from discreet.server import database as db
from discreet.server import surveys
from discreet.server.arrivals import (
    Arrival,
    compare_reports,
    decide_outcomes,
    find_known_reports,
    find_unspent_codes,
    read_intake_state,
    store_arrivals,
)
from discreet.server.database import Database
from discreet.server.intake import ReportRow
from discreet.server.invitations import create_codes, hash_code
from discreet.server.sealed_arrivals import load_live_keys
from discreet.server.settling import settle_piece, withdraw_report

CODE, OTHER_CODE = b"c" * 32, b"d" * 32
SHEET = b"\0\1"


def row(number: int, value: bytes = b"\0") -> ReportRow:
    return ReportRow(bytes([number]) * 16, 0, value)


def arrive(database: Database, number: int, *arrivals: Arrival, invited: bool = False) -> list[Any]:
    with database.write() as connection:
        return store_arrivals(connection, number, invited, arrivals)


def test_the_state_is_that_of_the_survey_unless_its_days_say_otherwise(database: Database) -> None:
    number = added(database, plan())
    met = {}
    for stored in ("open", "draft", "closed"):
        with database.write() as connection:
            surveys.set_state(connection, number, stored)
            for by_date in ("open", "draft", "closed"):
                met[stored, by_date], longest = read_intake_state(connection, number, by_date)
                assert longest > 0
    assert met == {
        ("open", "open"): "open",
        ("open", "draft"): "not-open",
        ("open", "closed"): "closed",
        **{("draft", by_date): "not-open" for by_date in ("open", "draft", "closed")},
        **{("closed", by_date): "closed" for by_date in ("open", "draft", "closed")},
    }
    with database.read() as connection:
        assert read_intake_state(connection, number + 1, "open") == ("not-found", 0)


def test_a_report_is_known_while_it_waits_after_it_was_settled_and_as_withdrawn(
    database: Database,
) -> None:
    collection = questionnaire()
    number = added(database, collection)
    settled, settled_gone, waiting, waiting_gone = (row(n, SHEET) for n in range(1, 5))

    def withdraw(report_id: bytes) -> None:
        with database.write() as connection:
            assert withdraw_report(connection, number, collection, report_id) == "withdrawn"

    assert arrive(database, number, Arrival(settled), Arrival(settled_gone)) == ["counted"] * 2
    settle_piece(database, number, collection, 1)
    withdraw(settled_gone.id)
    assert arrive(database, number, Arrival(waiting), Arrival(waiting_gone)) == ["counted"] * 2
    withdraw(waiting_gone.id)
    added(database, collection, "elsewhere")
    asked = [one.id for one in (settled, settled_gone, waiting, waiting_gone, waiting, row(9))]
    with database.read() as connection:
        keys = load_live_keys(connection, number)
        assert find_known_reports(connection, number, keys, asked) == {
            settled.id: settled,
            settled_gone.id: None,
            waiting.id: waiting,
            waiting_gone.id: None,
        }
        assert find_known_reports(connection, number + 1, keys, asked) == {}


def test_a_code_is_spent_while_its_report_waits_and_afterwards(database: Database) -> None:
    collection = questionnaire()
    number = added(database, collection, entry="invited")
    with database.write() as connection:
        codes = create_codes(connection, number, 3)
    settled, waiting, unused = (hash_code(number, code) or b"" for code in codes)

    def unspent() -> set[bytes]:
        with database.read() as connection:
            keys = load_live_keys(connection, number)
            return find_unspent_codes(connection, number, keys, {settled, waiting, unused, CODE})

    assert unspent() == {settled, waiting, unused}, "and a made-up code is not among them"
    assert arrive(database, number, Arrival(row(1, SHEET), settled), invited=True) == ["counted"]
    assert unspent() == {waiting, unused}
    settle_piece(database, number, collection, 1)
    assert arrive(database, number, Arrival(row(2, SHEET), waiting), invited=True) == ["counted"]
    assert unspent() == {unused}


def test_the_same_report_is_a_repetition_and_another_one_under_its_id_is_not() -> None:
    assert compare_reports(row(1), row(1)) == "repeated"
    assert compare_reports(row(1, b"\1"), row(1)) == "id-reused"
    assert compare_reports(ReportRow(row(1).id, 1, b"\0"), row(1)) == "id-reused"
    assert compare_reports(row(1), None) == "withdrawn"


@pytest.mark.parametrize("state", ["closed", "not-open", "not-found"])
def test_what_is_known_is_said_also_when_nothing_new_is_taken(state: str) -> None:
    arrivals = [Arrival(row(1)), Arrival(row(2)), Arrival(row(3))]
    known = {row(1).id: row(1), row(2).id: None}
    assert decide_outcomes(arrivals, known, state, None) == ["repeated", "withdrawn", state]
    assert decide_outcomes(arrivals, known, state, set()) == ["repeated", "withdrawn", state]


def test_an_arrival_is_known_to_those_after_it() -> None:
    arrivals = [Arrival(row(1)), Arrival(row(1)), Arrival(row(1, b"\1")), Arrival(row(2))]
    known: dict[bytes, ReportRow | None] = {}
    expected = ["counted", "repeated", "id-reused", "counted"]
    assert decide_outcomes(arrivals, known, "open", None) == expected
    assert known == {}, "what the caller has looked up stays as it was"


def test_an_invitation_is_spent_by_what_is_counted_and_by_nothing_else() -> None:
    arrivals = [
        Arrival(row(1), CODE),  # repeated: its code is not looked at
        Arrival(row(2), CODE),
        Arrival(row(3), CODE),  # the code was used by the one before
        Arrival(row(4), OTHER_CODE),  # unknown, or spent before
        Arrival(row(5)),
    ]
    known = {row(1).id: row(1)}
    codes = {CODE}
    assert decide_outcomes(arrivals, known, "open", codes) == [
        "repeated",
        "counted",
        "invitation",
        "invitation",
        "invitation",
    ]
    assert codes == {CODE}
    assert set(decide_outcomes(arrivals[1:], known, "open", None)) == {"counted"}


def test_what_is_counted_is_stored_with_its_code_only_where_codes_are_needed(
    database: Database,
) -> None:
    for invited in (False, True):
        entry = "invited" if invited else "anyone"
        number = added(database, plan(), f"survey-{entry}", entry=entry)
        with database.write() as connection:
            code = hash_code(number, *create_codes(connection, number, 1))
        arrivals = [Arrival(row(1), code), Arrival(row(1, b"\1"), code), Arrival(row(1), code)]
        outcomes = arrive(database, number, *arrivals, invited=invited)
        assert outcomes == ["counted", "id-reused", "repeated"]
        with database.read() as connection:
            arrival = db.arrival.c
            query = sql.select(arrival.code).where(arrival.survey == number)
            (stored_code,) = connection.execute(query).scalars()
            keys = load_live_keys(connection, number)
            assert find_known_reports(connection, number, keys, [row(1).id]) == {row(1).id: row(1)}
        assert (stored_code is not None) == invited
