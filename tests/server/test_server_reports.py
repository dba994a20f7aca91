"""What becomes of a report: exactly once, on both databases."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
import sqlalchemy as sql
from servers import (
    Live,
    added,
    plan,
    problem,
    questionnaire,
    report,
    serving,
    stored_ids,
    waiting_in,
)

from discreet.collection.announcement import Announcement
from discreet.collection.report import derive_report_id
from discreet.server import database as db
from discreet.server import settling, surveys
from discreet.server.database import Database
from discreet.server.intake import ReportRow
from discreet.server.sealed_arrivals import WaitingArrival
from discreet.survey import Questionnaire


@pytest.mark.slow
def test_a_report_is_counted_once_repeated_after_and_its_id_is_taken(live: Live) -> None:
    collection = live.collection
    made, _ = report(collection)
    first, again = live.post(made), live.post(made)
    assert (first.status_code, first.json()) == (201, {"outcome": "counted", "id": made.id})
    assert (again.status_code, again.json()["outcome"]) == (200, "repeated")
    other = next(
        one
        for one in (replace(report(collection)[0], id=made.id) for _ in range(1000))
        if (one.question, one.value) != (made.question, made.value)
    )
    answer = live.post(other)
    assert (answer.status_code, problem(answer)) == (409, "id-reused")
    live.owned("POST", "/health/settle", params={"anyway": True})
    assert live.post(made).status_code == 200, "settled reports are known, too"
    assert problem(live.post(other)) == "id-reused"
    assert live.counted() == 1


def refusals_of(collection: Any) -> dict[str, tuple[bytes, str]]:
    made, _ = report(collection)
    text = made.to_json()
    return {
        "not JSON": (b"{", "misshapen"),
        "truncated": (text[:-30].encode(), "misshapen"),
        "changed": (text.replace('"question": ', '"question": 1').encode(), "misshapen"),
        "newer": (text.replace('"version": 2', '"version": 9').encode(), "misshapen"),
        "foreign": (replace(made, collection="sha256:0").to_json().encode(), "foreign plan"),
        "unknown": (replace(made, question=99).to_json().encode(), "unknown question"),
        "impossible": (replace(made, value=(10**30,)).to_json().encode(), "out of domain"),
        "simulated": (replace(made, simulated=True).to_json().encode(), "simulated"),
        "nested": (b"[" * 30_000, "misshapen"),
        "not text": (b"\xff\xfe\x00", "misshapen"),
    }


@pytest.mark.slow
def test_bad_reports_are_refused_with_their_fault_and_nothing_is_stored(live: Live) -> None:
    collection = live.collection
    for what, (content, fault) in refusals_of(collection).items():
        answer = live.post(content)
        assert answer.status_code == 422, what
        assert (problem(answer), answer.json()["fault"]) == ("report", fault), what
    live.owned("POST", "/health/close")
    assert live.counted() == 0


@pytest.mark.slow
def test_what_is_not_a_report_of_an_open_survey(live: Live) -> None:
    collection = live.collection
    made, _ = report(collection)
    assert live.post(made, "nowhere").status_code == 404
    assert problem(live.post(made, "nowhere")) == "not-found"
    assert problem(live.post(b"x" * 70_000)) == "oversized"
    assert problem(live.post(made, **{"Content-Type": "text/plain"})) == "media-type"
    assert live.post(made).status_code == 201
    assert live.owned("POST", "/health/close").json()["state"] == "closed"
    assert live.counted() == 1, "closing settles, however little it is"
    late = live.post(report(collection)[0])
    assert (late.status_code, problem(late)) == (410, "closed")
    assert live.post(made).status_code == 200, "whoever was counted may ask again"
    assert problem(live.owned("POST", "/health/open")) == "state"


@pytest.mark.slow
def test_dates_decide_without_anybody_acting(database: Database) -> None:
    today = surveys.utc_day()
    collection = plan()
    added(database, collection, "early", opens=(today + timedelta(1)).isoformat())
    added(database, collection, "late", closes=(today - timedelta(1)).isoformat())
    with serving(database) as live:
        made, _ = report(collection)
        assert problem(live.post(made, "early")) == "not-open"
        assert problem(live.post(made, "late")) == "closed"
        listed = {one["slug"] for one in live.client.get("/api/v1/surveys").json()}
        assert listed == set()
        assert live.client.get("/api/v1/surveys/early").json()["state"] == "draft"
    assert (
        Announcement.make_default(collection, "x", opens="2027-01-02").get_state(date(2027, 1, 1))
        == "draft"
    )


@pytest.mark.slow
def test_a_withdrawn_report_leaves_the_tally_and_does_not_come_back(live: Live) -> None:
    collection = live.collection
    made, key = report(collection)
    others = [report(collection)[0] for _ in range(5)]
    for one in (made, *others):
        assert live.post(one).status_code == 201
    live.owned("POST", "/health/settle", params={"anyway": True})
    assert live.counted() == 6
    assert problem(live.taken_back(made.id, secrets.token_bytes(16))) == "wrong-key"
    assert live.counted() == 6
    assert live.taken_back(made.id, key).status_code == 204
    assert live.taken_back(made.id, key).status_code == 204, "also when repeated"
    assert live.counted() == 5
    again = live.post(made)
    assert (again.status_code, problem(again)) == (410, "withdrawn")
    unknown = secrets.token_bytes(16)
    assert live.taken_back(derive_report_id(unknown), unknown).status_code == 404
    waiting, its_key = report(collection)
    live.post(waiting)
    assert live.taken_back(waiting.id, its_key).status_code == 204
    live.owned("POST", "/health/settle", params={"anyway": True})
    assert live.counted() == 5


def left_after_withdrawing(live: Live, number: int) -> tuple[ReportRow, ReportRow]:
    """What a database has of a report that waits: before and after it is withdrawn."""
    database = live.server.database
    made, key = report(live.collection)
    (code,) = live.owned("POST", "/health/invitations", json={"count": 1}).json()["codes"]
    assert live.post(made, Invitation=code).status_code == 201
    (before,) = waiting_in(database, number)
    assert before.live
    lengths = body_lengths(database)
    assert live.taken_back(made.id, key).status_code == 204
    (after,) = waiting_in(database, number)
    assert not after.live
    assert body_lengths(database) == lengths, "rows of a survey are equally long"
    for _ in range(2):
        assert problem(live.post(made, Invitation=code)) == "withdrawn"
        other = report(live.collection)[0]
        assert problem(live.post(other, Invitation=code)) == "invitation", "it stays spent"
        assert live.taken_back(made.id, key).status_code == 204
        live.owned("POST", "/health/settle", params={"anyway": True})
        assert live.counted() == 0
    assert stored_ids(database, number) == ([], {made.id})
    return before.arrival.row, after.arrival.row


def body_lengths(database: Database) -> list[int]:
    with database.read() as connection:
        return [len(body) for body in connection.execute(sql.select(db.arrival.c.body)).scalars()]


@pytest.mark.slow
def test_what_a_withdrawn_report_said_is_deleted_at_once(database: Database) -> None:
    number = added(database, plan(), entry="invited", batch=5)
    with serving(database) as live:
        before, after = left_after_withdrawing(live, number)
    assert before.value
    assert after == ReportRow(before.id, 0, b"")


@pytest.mark.slow
def test_twin_a_report_that_is_only_marked_as_withdrawn_is_still_there(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mark_only(connection: Any, number: int, _: Any, waiting: WaitingArrival) -> None:
        here = db.arrival.c
        where = (here.survey == number, here.mark == waiting.mark)
        connection.execute(sql.update(db.arrival).where(*where).values(live=0))

    monkeypatch.setattr(settling, "withdraw_arrival", mark_only)
    number = added(database, plan(), entry="invited", batch=5)
    with serving(database) as live:
        before, after = left_after_withdrawing(live, number)
    assert after == before


@pytest.mark.slow
def test_after_the_close_the_count_is_final(database: Database) -> None:
    """By hand or by its date; whoever had withdrawn before hears the same again."""
    today = surveys.utc_day()
    for name, closes in (("by-hand", ""), ("by-date", today.isoformat())):
        collection = plan()
        added(database, collection, name, closes=closes, batch=1)
        with serving(database) as live:
            sent = [report(collection) for _ in range(2)]
            for made, _ in sent:
                assert live.post(made, name).status_code == 201
            (gone, gone_key), (made, key) = sent
            assert live.taken_back(gone.id, gone_key, name).status_code == 204
            if closes:
                live.server.writer.get_today = lambda: today + timedelta(1)
            else:
                live.owned("POST", f"/{name}/close")
            late = live.taken_back(made.id, key, name)
            assert (late.status_code, problem(late)) == (410, "closed")
            assert live.taken_back(gone.id, gone_key, name).status_code == 204


@pytest.mark.slow
def test_withdrawal_can_be_ruled_out(database: Database) -> None:
    collection = plan()
    added(database, collection, withdrawal="none")
    with serving(database) as live:
        made, key = report(collection)
        live.post(made)
        assert problem(live.taken_back(made.id, key)) == "no-withdrawal"


@pytest.mark.slow
def test_sheets_are_counted_whole_and_taken_back_whole(database: Database) -> None:
    asked: Questionnaire = questionnaire()
    added(database, asked, batch=1)
    with serving(database) as live:
        sent = [report(asked) for _ in range(40)]
        assert {live.post(one).status_code for one, _ in sent} == {201}
        live.owned("POST", "/health/settle")
        assert live.counted() == 40
        made, key = sent[0]
        live.taken_back(made.id, key)
        assert live.counted() == 39
        rows = live.owned("GET", "/health/tally").json()["whole"]["0"]
        assert sum(rows[1]) == 39
        assert json.loads(live.owned("GET", "/health/statistics").text)["format"]


@pytest.mark.slow
def test_what_an_anonymiser_shuffled_is_not_taken_from_a_sender(live: Live, tmp_path: Any) -> None:
    """Stored without its mark it could be shuffled once more, and count as two people."""
    from discreet.collection.parquet_reports import ReportFile

    made = [report(live.collection)[0] for _ in range(4)]
    marked = [replace(one, batch="ab" * 16) for one in made]
    refused = live.post(marked[0])
    assert refused.status_code == 422
    assert refused.json()["fault"] == "already shuffled"
    assert "an anonymiser shuffled this report" in refused.json()["detail"]
    with ReportFile(tmp_path / "batch.parquet", live.collection) as file:
        file.add_reports([*marked, *made[:3]])
    content = (tmp_path / "batch.parquet").read_bytes()
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    answer = live.owned("POST", "/health/reports/batch", content=content, headers=headers)
    assert answer.json() == {"counted": 3, "repeated": 0, "refused": {"already shuffled": 4}}


@pytest.mark.slow
def test_batches_and_single_reports_meet_in_one_tally(live: Live, tmp_path: Any) -> None:
    from discreet.collection.parquet_reports import ReportFile

    collection = live.collection
    made = [report(collection)[0] for _ in range(50)]
    assert live.post(made[0]).status_code == 201
    live.owned("POST", "/health/settle", params={"anyway": True})
    assert live.post(made[1]).status_code == 201
    bad = [replace(made[2], id="0" * 32, collection="sha256:0"), replace(made[3], question=77)]
    with ReportFile(tmp_path / "batch.parquet", collection) as file:
        file.add_reports([*made, *bad])
    content = (tmp_path / "batch.parquet").read_bytes()
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    first = live.owned("POST", "/health/reports/batch", content=content, headers=headers)
    assert first.json() == {
        "counted": 48,
        "repeated": 2,
        "refused": {"foreign plan": 1, "unknown question": 1},
    }
    again = live.owned("POST", "/health/reports/batch", content=content, headers=headers)
    assert again.json()["counted"] == 0
    assert again.json()["repeated"] == 50
    live.owned("POST", "/health/close")
    assert live.counted() == 50
    path = "/api/v1/surveys/health/reports/batch"
    assert live.client.post(path, content=content, headers=headers).status_code == 401
    cut = live.owned("POST", "/health/reports/batch", content=content[:-50], headers=headers)
    assert problem(cut) == "invalid"
