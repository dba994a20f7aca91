"""The desk without a browser: who may do what, what it shows, and that it is right."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from servers import Live, added, plan, questionnaire, report, serving
from servers import client as new_client

from discreet import Categorical, Numeric, Schema
from discreet.cli import main
from discreet.collection.announcement import Announcement
from discreet.collection.parquet_reports import _is_simulated
from discreet.collection.report import Report
from discreet.collection.simulation import iter_simulated_answers
from discreet.collection.tally import Tally
from discreet.local import PlanOptions, make_plan
from discreet.local.waves import check_shares, next_plan
from discreet.randomness import CryptoRandom
from discreet.server import access, desk, surveys
from discreet.server.analysis import Analysis
from discreet.server.bundle import Bundle
from discreet.server.database import Database
from discreet.server.desk import create_desk_router
from discreet.server.drafts import EXAMPLE_QUESTIONS, parse_collection
from discreet.server.pages import create_public_router
from discreet.server.rehearsal import create_rehearsal
from discreet.server.results import SurveyResults
from discreet.server.surveys import Survey
from discreet.server.tallies import has_same_counts, load_tally, recount_reports
from discreet.server.verify import split_address
from discreet.survey import Group
from discreet.survey.testing import Accuracy

pytestmark = pytest.mark.slow  # each starts a collection of its own: a third of a second

ROOT = Path(__file__).parents[2]
OURS = {"Sec-Fetch-Site": "same-origin"}
EVIL = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", **OURS}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        added(database, questionnaire(), "jobs", batch=5)
        added(database, plan(), "health", batch=5)
        added(database, questionnaire(), "letters", entry="invited", batch=5)
        with serving(database, [create_public_router(), create_desk_router()]) as running:
            yield running


def entered(live: Live, role: str = "owner") -> httpx.Client:
    """A client with the session of a role."""
    client = new_client(live.base)
    token = live.server.access.create_token(role, f"{role} of the desk")
    answer = client.post("/desk/enter", data={"token": token}, headers=OURS)
    assert answer.status_code == 303
    return client


def test_a_link_signs_in_once_and_the_cookie_is_strict(live: Live) -> None:
    once = live.server.access.create_link_token()
    client = new_client(live.base)
    assert client.get("/desk").status_code == 401
    answer = client.post("/desk/enter", data={"token": once}, headers=OURS)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert once not in cookie
    assert client.get("/desk").status_code == 200
    again = httpx.post(f"{live.base}/desk/enter", data={"token": once}, headers=OURS)
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    client.post("/desk/leave", headers=FORM)
    assert client.get("/desk").status_code == 401


INVITED: dict[str, Any] = {"entry": "invited", "batch": 5}
POSTS = (
    "/new/collection",
    "/promise",
    "/jobs/predict",
    "/jobs/do/open",
    "/jobs/do/delete",
    "/letters/letters",
)


@pytest.mark.parametrize("path", POSTS)
def test_nothing_is_done_for_other_sites_or_without_a_session(path: str, live: Live) -> None:
    client = entered(live)
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {}):
        answer = client.post(f"/desk{path}", data={"confirm": "jobs"}, headers=headers)
        assert answer.status_code == 403, headers
    strange = httpx.post(f"{live.base}/desk{path}", data={"confirm": "jobs"}, headers=OURS)
    assert strange.status_code == 401
    assert live.server.surveys.find_survey("jobs") is not None


def test_a_desk_that_trusts_its_cookie_alone_is_found(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: whoever has the cookie is asked nothing more."""
    for module in (access, desk):
        monkeypatch.setattr(module, "is_same_origin", lambda _: True)
    entered(live).post("/desk/jobs/do/delete", data={"confirm": "jobs"}, headers=EVIL)
    assert live.server.surveys.find_survey("jobs") is None


@pytest.mark.parametrize("left", ["access", "desk"])
def test_the_refusal_stands_at_two_doors(
    left: str, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One check is enough where the other is lost: the session asks, and the form asks."""
    monkeypatch.setattr({"access": desk, "desk": access}[left], "is_same_origin", lambda _: True)
    answer = entered(live).post("/desk/jobs/do/delete", data={"confirm": "jobs"}, headers=EVIL)
    assert answer.status_code == 403
    assert live.server.surveys.find_survey("jobs") is not None


def test_viewers_see_and_do_not_act(live: Live) -> None:
    client = entered(live, "viewer")
    page = client.get("/desk/jobs")
    assert page.status_code == 200
    assert "What you can do" not in page.text
    for path in ("/new/collection", "/jobs/do/close", "/letters/letters"):
        assert (
            client.post(f"/desk{path}", data={"confirm": "jobs"}, headers=OURS).status_code == 403
        )
    assert client.get("/desk/new/collection").status_code == 403


def test_dangerous_acts_ask_for_the_name(live: Live) -> None:
    client = entered(live)
    for act in ("close", "delete", "settle"):
        answer = client.post(f"/desk/jobs/do/{act}", data={"confirm": "jbs"}, headers=OURS)
        assert answer.status_code == 409
        assert "type the name jobs" in answer.text
    assert live.server.surveys.read_state(live.server.surveys.find_survey("jobs")) == "open"
    assert client.post("/desk/jobs/do/close", data={"confirm": "jobs"}, headers=OURS).is_redirect
    assert live.server.surveys.read_state(live.server.surveys.find_survey("jobs")) == "closed"
    assert client.post("/desk/jobs/do/delete", data={"confirm": "jobs"}, headers=OURS).is_redirect
    assert live.server.surveys.find_survey("jobs") is None


def test_settling_keeps_some_back_unless_all_are_chosen(database: Database) -> None:
    collection = plan()
    added(database, collection, batch=5)
    with serving(database, [create_desk_router()]) as live:
        client = entered(live)

        def settle(**fields: str) -> httpx.Response:
            data = {"confirm": "health", **fields}
            return client.post("/desk/health/do/settle", data=data, headers=OURS)

        for _ in range(9):
            assert live.post(report(collection)[0]).status_code == 201
        for fields in ({}, {"which": "drawn"}):
            refused = settle(**fields)
            assert refused.status_code == 409
            assert "fewer than 10 reports wait" in refused.text
        assert live.counted() == 0
        assert live.post(report(collection)[0]).status_code == 201
        assert settle(which="drawn").is_redirect
        assert live.counted() == 5
        assert settle(which="all").is_redirect
        assert live.counted() == 10


def test_the_desk_and_the_command_line_make_the_same_model(live: Live, tmp_path: Path) -> None:
    """The same reports, once through the server and once through files."""
    survey = live.server.surveys.find_survey("jobs")
    assert survey is not None
    texts = [report(survey.collection)[0].to_json() for _ in range(40)]
    for text in texts:
        assert live.post(text.encode(), "jobs").status_code == 201
    client = entered(live)
    everything = {"confirm": "jobs", "which": "all"}
    assert client.post("/desk/jobs/do/settle", data=everything, headers=OURS).is_redirect
    page = client.get("/desk/jobs").text
    assert "40 reports" in page
    served = client.get("/api/v1/surveys/jobs/model").text
    paths = {name: str(tmp_path / name) for name in ("q.json", "s.jsonl", "t.json", "m.json")}
    Path(paths["q.json"]).write_text(survey.collection.to_json())
    Path(paths["s.jsonl"]).write_text("".join(texts))
    run = CliRunner()
    told = ["survey", "tally", paths["q.json"], paths["s.jsonl"], "-o", paths["t.json"]]
    assert run.invoke(main, told).exit_code == 0
    assert (
        run.invoke(main, ["survey", "train", paths["t.json"], "-o", paths["m.json"]]).exit_code == 0
    )
    assert Path(paths["m.json"]).read_text() == served


def test_an_empty_desk_can_be_tried_with_simulated_people(live: Live) -> None:
    client = entered(live)
    assert "Try it with simulated people" in client.get("/desk/jobs").text
    assert "Try it" not in entered(live, "viewer").get("/desk/jobs").text
    for _ in range(2):  # a second click shows the same one
        made = client.post("/desk/jobs/do/rehearse", headers=FORM)
        assert made.headers["location"] == "/desk/jobs-simulated"
    page = client.get("/desk/jobs-simulated").text
    assert "SIMULATED" in page
    assert "500 reports" in page
    assert live.counted("jobs") == 0


def test_files_of_a_collection_are_those_of_the_command_line(live: Live, tmp_path: Path) -> None:
    client = entered(live, "viewer")
    for slug in ("jobs", "health"):
        for name in ("document", "announcement"):
            assert httpx.get(f"{live.base}/desk/{slug}/files/{name}").status_code == 401
            text = client.get(f"/desk/{slug}/files/{name}").text
            (tmp_path / f"{slug}-{name}.json").write_text(text, encoding="utf-8")
        files = [str(tmp_path / f"{slug}-{name}.json") for name in ("document", "announcement")]
        told = CliRunner().invoke(main, ["announce", *files, "-o", str(tmp_path / f"{slug}.out")])
        assert told.exit_code == 0, told.output
    assert client.get("/desk/jobs/files/reports").status_code == 404


def test_a_prediction_is_explained(live: Live) -> None:
    survey = live.server.surveys.find_survey("jobs")
    assert survey is not None
    create_rehearsal(live.server.database, survey.collection, survey.announcement, 400)
    client = entered(live)
    page = client.get("/desk/jobs-simulated").text
    assert "SIMULATED" in page
    assert "400 reports: a classifier made from half of them" in page
    answer = client.post(
        "/desk/jobs-simulated/predict", data={"v-smokes": "yes"}, headers=OURS
    ).text
    model = live.server.analyses.get_analysis(
        live.server.surveys.find_survey("jobs-simulated")
    ).model
    said = model.explain({"smokes": "yes"})
    assert f"<strong>{said.predicted}</strong> rather than {said.against}" in answer
    odds = factor(said.evidence[0].log_odds)
    assert re.search(rf"smokes = yes</th><td [^>]*>\w+</td><td [^>]*>{odds}</td>", answer)
    assert "would predict the same with a probability of about" in answer


def factor(log_odds: float) -> str:
    odds = np.exp(abs(log_odds))
    return f"{odds:.1f}" if odds < 100 else f"{odds:,.0f}" if odds <= 1e4 else "more than 10,000"


def test_the_verdict_is_no_bolder_than_its_interval(live: Live) -> None:
    survey = live.server.surveys.find_survey("jobs")
    assert survey is not None
    create_rehearsal(live.server.database, survey.collection, survey.announcement, 4000)
    simulated = live.server.surveys.find_survey("jobs-simulated")
    assert simulated is not None
    analysis = live.server.analyses.get_analysis(simulated)
    share = max(one.interval[1] for one in SurveyResults(analysis).classes)
    unsure = "Whether it is better is not sure yet."
    for interval, told, sure in (
        ((share + 0.01, 0.98), "about 97 of 100 people, between", True),
        ((share - 0.01, 0.98), "about 97 of 100 people, between", False),
        ((share - 0.01, 1.0), f"at least {100 * (share - 0.01):.0f} of 100 people;", False),
    ):
        results = SurveyResults(analysis)
        found = Accuracy(0.97, 0.97, interval, 0.95, 0.9, 2000)
        vars(results)["accuracy"] = found  # where it is kept once it is known
        assert f"would be right for {told}" in results.verdict
        assert (unsure not in results.verdict) == sure


def three_classes() -> Any:
    features = [Categorical("smokes", ["no", "yes"]), Categorical("drinks", ["no", "yes"])]
    return make_plan(
        Schema(features, "mood", ["bad", "fair", "good"]),
        epsilon=2.0,
        options=PlanOptions(kind="pairs"),
    )


@pytest.mark.slow
def test_two_classes_are_compared(live: Live) -> None:
    """The one that is predicted with the one that was chosen, each answer's evidence between."""
    added(live.server.database, three_classes(), "moods", batch=5)
    survey = live.server.surveys.find_survey("moods")
    assert survey is not None
    create_rehearsal(live.server.database, survey.collection, survey.announcement, 500)
    made = live.server.surveys.find_survey("moods-simulated")
    model, client = live.server.analyses.get_analysis(made).model, entered(live)  # type: ignore[arg-type]
    row = {"smokes": "yes", "drinks": "no"}
    fields = {f"v-{name}": value for name, value in row.items()}
    runner_up = model.explain(row)
    for rival in ("bad", "fair", "good"):
        told = {**fields, "against": rival}
        answer = client.post("/desk/moods-simulated/predict", data=told, headers=OURS)
        if rival == runner_up.predicted:
            assert f"{rival} is what the model predicts, so it is" in answer.text
            assert f"<strong>{rival}</strong> rather than {runner_up.against}" in answer.text
            continue
        said = model.explain(row, rival)
        assert f"<strong>{said.predicted}</strong> rather than {rival}" in answer.text
        weights = {f"{one.feature} = {one.value}": one.log_odds for one in said.evidence}
        weights |= {"before any answer": said.prior, "all together": said.log_odds}
        for what, log_odds in weights.items():
            label = said.predicted if log_odds >= 0 else rival
            line = rf"{re.escape(what)}</th><td [^>]*>{label}</td><td [^>]*>{factor(log_odds)}</td>"
            assert re.search(line, answer.text)
        assert f'<option value="{rival}" selected>' in answer.text
    page = client.post("/desk/moods-simulated/predict", data=fields, headers=OURS).text
    assert f"rather than {runner_up.against}" in page


@pytest.mark.slow
def test_the_next_wave_follows_from_all_before_it(live: Live) -> None:
    """Its plan is the one that the command line makes, its words are those of the first."""
    client, database = entered(live), live.server.database
    added(database, three_classes(), "moods", batch=5, contact="somebody", closes="2099-01-01")
    refused = client.post("/desk/moods/do/wave", data={"respondents": "500"}, headers=OURS)
    assert refused.status_code == 409
    assert "Close it first" in refused.text
    tallied: list[Any] = []
    for wave, slug in enumerate(("moods", "moods-wave-2"), 2):
        survey = live.server.surveys.find_survey(slug)
        assert survey is not None
        if wave > 2:
            assert client.post(f"/desk/{slug}/do/open", headers=FORM).is_redirect
        rng = np.random.default_rng(wave)
        for question in range(len(survey.collection.questions)):
            outputs = list(survey.collection.questions[question].mechanism.outputs())
            for pick in rng.integers(len(outputs), size=30):
                value = tuple(map(int, outputs[pick]))
                sent = Report(survey.collection.digest, token_hex(16), question, value)
                assert live.post(sent, slug).status_code == 201
        closed = client.post(f"/desk/{slug}/do/close", data={"confirm": slug}, headers=OURS)
        assert closed.is_redirect
        tallied.append(live.server.analyses.get_analysis(survey).tally)
        nobody = client.post(f"/desk/{slug}/do/wave", data={"respondents": "x"}, headers=OURS)
        assert nobody.status_code == 422
        made = client.post(f"/desk/{slug}/do/wave", data={"respondents": "500"}, headers=OURS)
        assert made.headers["location"] == f"/desk/moods-wave-{wave}"
        draft = live.server.surveys.find_survey(f"moods-wave-{wave}")
        assert draft is not None
        assert live.server.surveys.read_state(draft) == "draft"
        assert draft.collection.digest == next_plan(tallied, 500).digest
        assert draft.announcement.contact == "somebody"
        assert draft.announcement.closes == ""
        check_shares(draft.collection, tallied)
        again = client.post(f"/desk/{slug}/do/wave", data={"respondents": "500"}, headers=OURS)
        assert f"there is a survey named moods-wave-{wave}" in again.text
    first = client.post("/desk/jobs/do/wave", data={"respondents": "500"}, headers=OURS)
    assert "only plans have waves" in first.text


def test_invented_people_decide_nothing_about_real_ones(live: Live, tmp_path: Path) -> None:
    """They answer the same plan, so its digest alone does not tell them apart."""
    client, database = entered(live), live.server.database
    added(database, three_classes(), "moods", batch=5)
    first = live.server.surveys.find_survey("moods")
    assert first is not None
    assert client.post("/desk/moods/do/rehearse", headers=FORM).is_redirect
    tallied = []
    for slug in ("moods", "moods-wave-2"):
        survey = live.server.surveys.find_survey(slug)
        assert survey is not None
        client.post(f"/desk/{slug}/do/open", headers=FORM)
        for _ in range(60):
            random = CryptoRandom()
            question = int(survey.collection.draw_questions(1, random)[0])
            outputs = list(survey.collection.questions[question].mechanism.outputs())
            value = tuple(map(int, outputs[0]))
            sent = Report(survey.collection.digest, token_hex(16), question, value)
            assert live.post(sent, slug).status_code == 201
        client.post(f"/desk/{slug}/do/close", data={"confirm": slug}, headers=OURS)
        tallied.append(live.server.analyses.get_analysis(survey).tally)
        client.post(f"/desk/{slug}/do/wave", data={"respondents": "500"}, headers=OURS)
    third = live.server.surveys.find_survey("moods-wave-3")
    assert third is not None
    check_shares(third.collection, tallied)
    page = client.get("/desk/moods-simulated").text
    assert "Next wave" not in page
    refused = client.post("/desk/moods-simulated/do/wave", data={"respondents": "9"}, headers=OURS)
    assert "invented people say nothing" in refused.text


def test_what_is_downloaded_of_invented_people_says_so(live: Live, tmp_path: Path) -> None:
    client, path = entered(live), tmp_path / "reports.parquet"
    client.post("/desk/jobs/do/rehearse", headers=FORM)
    for slug, invented in (("jobs-simulated", True), ("letters", False)):
        path.write_bytes(client.get(f"/api/v1/surveys/{slug}/reports.parquet").content)
        assert _is_simulated(str(path)) == invented
        assert client.get(f"/api/v1/surveys/{slug}/tally").json()["simulated"] == invented
    model = client.get("/api/v1/surveys/jobs-simulated/model").json()
    assert model["guarantee"]["simulated"]


def test_only_invented_people_are_in_a_collection_named_so(live: Live) -> None:
    """A real one of such a name would be taken for a play, or a play for it."""
    client = entered(live)
    fields = {"questions": EXAMPLE_QUESTIONS, "truth": "50", "name": "staff-simulated"}
    answer = client.post("/desk/new/collection", data=fields, headers=OURS)
    assert answer.status_code == 422
    assert "are kept for invented people" in answer.text
    body = {"document": questionnaire().to_json(), "name": "staff-simulated"}
    assert live.owned("POST", "", json=body).status_code == 422
    client.post("/desk/jobs/do/rehearse", headers=FORM)
    client.post("/desk/jobs/do/delete", data={"confirm": "jobs"}, headers=OURS)
    client.post("/desk/new/collection", data={**fields, "name": "jobs"}, headers=OURS)
    other = client.post("/desk/jobs/do/rehearse", headers=FORM)
    assert "holds simulated answers to another questionnaire" in other.text


def test_a_tab_left_open_does_not_act_on_another_collection(live: Live) -> None:
    """Deleted and made anew under its name: the name is typed rightly, for the wrong one."""
    client = entered(live)
    number = re.findall(r'name="number" value="(\d+)"', client.get("/desk/jobs").text)
    assert len(set(number)) == 1
    client.post("/desk/jobs/do/delete", data={"confirm": "jobs"}, headers=OURS)
    fields = {"questions": EXAMPLE_QUESTIONS, "truth": "50", "name": "jobs"}
    client.post("/desk/new/collection", data=fields, headers=OURS)
    for act in ("open", "close", "delete"):
        data = {"confirm": "jobs", "number": number[0]}
        stale = client.post(f"/desk/jobs/do/{act}", data=data, headers=OURS)
        assert stale.status_code == 409
        assert "created again since that page was opened" in stale.text
    found = live.server.surveys.find_survey("jobs")
    assert found is not None
    assert live.server.surveys.read_state(found) == "draft"


def test_a_collection_that_another_process_deleted_is_gone(live: Live) -> None:
    client, survey = entered(live), live.server.surveys.find_survey("jobs")
    assert survey is not None
    with live.server.database.write() as connection:
        surveys.delete_survey(connection, survey.number)  # the server does not know of it
    assert client.get("/desk/jobs").status_code == 404


def test_people_at_the_desk_read_pages_not_json(live: Live) -> None:
    stranger = new_client(live.base)
    for path in ("/desk", "/desk/new/collection", "/desk/jobs", "/desk/jobs/files/document"):
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert "Sign in to the desk" in answer.text
        assert "signed out" not in answer.text
    stranger.cookies.set(access.SESSION_COOKIE, "of-yesterday")
    assert "You are signed out" in stranger.get("/desk/jobs").text
    client = entered(live)
    for path in ("/desk/unknown", "/desk/NOT A NAME", "/desk/jobs/files/other"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
        assert '<a href="/desk">All collections</a>' in answer.text
    refused = entered(live, "viewer").get("/desk/new/collection")
    assert refused.status_code == 403
    assert "This needs the role owner" in refused.text


def test_the_day_of_deletion_is_told_and_reminded_of(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = entered(live)
    days = {"closes": "2099-03-30", "deletes": "2099-04-05"}
    fields = {
        "questions": EXAMPLE_QUESTIONS,
        "truth": "50",
        "name": "staff",
        "entry": "invited",
        **days,
    }
    early = client.post(
        "/desk/new/collection", data={**fields, "deletes": "2099-03-30"}, headers=OURS
    )
    assert "write a later day" in early.text
    assert 'value="2099-03-30"' in early.text
    assert client.post("/desk/new/collection", data=fields, headers=OURS).is_redirect
    client.post("/desk/staff/do/open", headers=FORM)
    letters = client.post("/desk/staff/letters", data={"count": "1"}, headers=OURS).text
    about = live.client.get("/s/staff/about").text
    german = live.client.get("/s/staff/about", headers={"Accept-Language": "de"}).text
    assert "delete all messages by 5 April 2099" in letters
    assert "delete all messages by 5 April 2099" in about
    assert "bis 5. April 2099 zu löschen" not in german  # these words are offered in English only
    page = client.get("/desk/staff").text
    assert "open until 30 March 2099" in page
    assert "promised by 5 April 2099" in page
    assert "archives of its log still hold them" in page
    assert "no day was promised" in client.get("/desk/jobs").text
    monkeypatch.setattr(desk, "utc_day", lambda: date(2099, 4, 5))
    assert "That day has passed" not in client.get("/desk/staff").text
    monkeypatch.setattr(desk, "utc_day", lambda: date(2099, 4, 6))
    assert "That day has passed" in client.get("/desk/staff").text
    assert "ask an owner" in entered(live, "viewer").get("/desk/staff").text
    assert "should have been deleted by 5 April 2099" in client.get("/desk").text


def test_a_form_that_is_refused_keeps_what_was_chosen(live: Live) -> None:
    client = entered(live)
    fields = {
        "questions": EXAMPLE_QUESTIONS,
        "truth": "x",
        "entry": "invited",
        "withdrawal": "none",
    }
    page = client.post("/desk/new/collection", data=fields, headers=OURS).text
    assert re.findall(r'<option value="(\w+)" selected>', page) == ["invited", "none"]


def test_collections_are_made_from_a_list_a_document_or_a_schema(live: Live) -> None:
    client = entered(live)
    fields = {"title": "My Staff", "questions": EXAMPLE_QUESTIONS, "truth": "50", "batch": "20"}
    line = client.post("/desk/promise", data=fields, headers=OURS)
    epsilon = parse_collection(fields).guarantee.epsilon
    assert f"Epsilon {epsilon:.3g} per person" in line.text
    weaker = client.post("/desk/promise", data={**fields, "truth": "99"}, headers=OURS)
    assert "This protection is weak" in weaker.text
    assert (
        client.post("/desk/promise", data={**fields, "truth": "x"}, headers=OURS).status_code == 422
    )
    made = client.post("/desk/new/collection", data=fields, headers=OURS)
    assert made.headers["location"] == "/desk/my-staff"
    again = client.post("/desk/new/collection", data=fields, headers=OURS)
    assert "there is a survey named my-staff" in again.text
    assert client.post("/desk/my-staff/do/open", headers=FORM).is_redirect
    found = live.server.surveys.find_survey("my-staff")
    assert found is not None
    assert found.announcement.batch == 20
    assert live.server.surveys.read_state(found) == "open"
    schema = plan().schema.to_json()
    answer = client.post(
        "/desk/new/collection",
        data={"document": schema, "epsilon": "2", "name": "from-schema"},
        headers=OURS,
    )
    assert answer.is_redirect
    assert live.server.surveys.find_survey("from-schema").collection.epsilon == 2.0  # type: ignore[union-attr]


WHOLE = ("", "0", "-1", "1.5", "²", "1e3", "9" * 5000, "1 000", "<b>1</b>")


@pytest.mark.parametrize("text", WHOLE)
def test_numbers_in_forms_are_numbers(text: str, live: Live) -> None:
    """Some of these are digits to Python and no numbers, one is too long for it."""
    client = entered(live)
    added(live.server.database, three_classes(), "moods", batch=1)
    client.post("/desk/moods/do/close", data={"confirm": "moods"}, headers=OURS)
    fields = {"questions": EXAMPLE_QUESTIONS, "truth": "50", "name": "staff", "batch": text}
    for path, data in (
        ("/desk/new/collection", fields),
        ("/desk/letters/letters", {"count": text}),
        ("/desk/moods/do/wave", {"respondents": text}),
    ):
        answer = client.post(path, data=data, headers=OURS)
        assert answer.status_code == 422
        assert "write a whole number from 1 to" in answer.text
        assert "<b>1</b>" not in answer.text


def test_large_and_broken_forms_are_refused_by_a_page(live: Live) -> None:
    client = entered(live)
    for status, body in (
        (413, b"questions=" + b"x" * (1 << 20)),
        (422, b"&".join(b"f%d=x" % k for k in range(1001))),
        (422, b"\xff\xfe"),
    ):
        answer = client.post("/desk/new/collection", content=body, headers=FORM)
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_any_name_of_a_collection_has_its_page(live: Live) -> None:
    """Also those that are part of an address of the desk."""
    client = entered(live)
    for slug in ("new", "enter", "leave", "static", "promise", "desk"):
        added(live.server.database, questionnaire(), slug)
        assert f"<h1>{slug}</h1>" in client.get(f"/desk/{slug}").text
        data = {"confirm": slug}
        assert client.post(f"/desk/{slug}/do/close", data=data, headers=OURS).is_redirect


def test_what_collectors_and_respondents_write_is_text(live: Live) -> None:
    client = entered(live)
    nasty = "<script>alert(1)</script>"
    fields = {
        "title": nasty,
        "name": "nasty",
        "questions": f"a | {nasty} | no, {nasty}\nb | b | x, y",
    }
    page = client.post("/desk/new/collection", data={**fields, "truth": nasty}, headers=OURS).text
    assert nasty not in page
    assert "&lt;script&gt;" in page
    assert client.post(
        "/desk/new/collection", data={**fields, "truth": "50"}, headers=OURS
    ).is_redirect
    for path in ("/desk", "/desk/nasty", "/s/nasty/about", "/"):
        assert nasty not in client.get(path).text


@pytest.mark.slow
def test_letters_hold_codes_that_work(live: Live) -> None:
    client = entered(live)
    page = client.post("/desk/letters/letters", data={"count": "3"}, headers=OURS).text
    codes = [
        one.replace(" ", "")
        for one in re.findall(
            r"<code>([a-z2-7]{7} [a-z2-7]{6} [a-z2-7]{7} [a-z2-7]{6})</code>", page
        )
    ]
    assert len(set(codes)) == 3
    assert page.count("<svg") == 3
    assert Bundle().digest in page
    for code in codes:
        state = live.client.post("/api/v1/surveys/letters/invitations/state", json={"code": code})
        assert state.json() == {"state": "unused"}
    other = client.post("/desk/jobs/letters", data={"count": "3"}, headers=OURS)
    assert "letters are for collections by invitation" in other.text
    client.post("/desk/letters/do/close", data={"confirm": "letters"}, headers=OURS)
    late = client.post("/desk/letters/letters", data={"count": "3"}, headers=OURS)
    assert late.status_code == 409
    assert "nobody could use an invitation" in late.text


def test_letters_promise_what_the_collection_does(live: Live) -> None:
    """A letter that says that chance protects, for a survey in which nothing does, is a lie."""
    asked = questionnaire()
    added(live.server.database, replace(asked, personal="own"), "bare", **INVITED, unprotected=True)
    weak = replace(asked, groups=(Group(("smokes", "sick"), theta=0.999),))
    added(live.server.database, weak, "weak", **INVITED)
    added(live.server.database, replace(asked, device="hand"), "hand", **INVITED, contact="Ms Roe")
    client, chance = entered(live), "Chance protects your answer: "
    texts = {}
    for slug in ("letters", "bare", "weak", "hand"):
        answer = client.post(f"/desk/{slug}/letters", data={"count": "1"}, headers=OURS)
        texts[slug] = answer.text
    assert f"{chance}before anything leaves your device" in texts["letters"]
    assert chance not in texts["bare"]
    assert "Nothing protects your answers in this survey" in texts["bare"]
    assert "The protection is weak" in texts["weak"]
    assert "The protection is weak" not in texts["letters"]
    assert f"{chance}you draw yourself" in texts["hand"]
    assert "Contact: Ms Roe" in texts["hand"]


def test_letters_by_the_command_line_have_everything_inside(live: Live, tmp_path: Path) -> None:
    out = tmp_path / "letters.html"
    told = ["letters", "letters", "--count", "2", "--database", str(live.server.database.location)]
    told += ["--address", live.base, "-o", str(out)]
    assert CliRunner().invoke(main, told).exit_code == 0
    text = out.read_text()
    assert text.count('class="letter"') == 2
    assert "href=" not in text
    again = CliRunner().invoke(main, told)
    assert (again.exit_code, out.read_text()) == (2, text), "letters are not printed twice"
    assert "exists already" in again.output
    other = tmp_path / "jobs.html"
    refused = CliRunner().invoke(main, ["letters", "jobs", *told[2:-1], str(other)])
    assert "open to anyone" in refused.output
    assert not other.exists()


@pytest.mark.parametrize("kind", ["jobs", "health"])
def test_liars_can_move_a_share_as_far_as_the_desk_says_and_no_further(
    kind: str, live: Live
) -> None:
    """Every report that anyone could send counts at most what is stated; some report reaches it."""
    from discreet.collection.tally import Tally

    survey = live.server.surveys.find_survey(kind)
    assert survey is not None
    collection = survey.collection
    reached = 0.0
    for question in range(len(collection.questions)):
        if collection.kind == "plan":
            oracle = collection.questions[question].mechanism
            every = [list(map(int, row)) for row in oracle.outputs()]
        else:
            every = [list(row) for row in np.ndindex(*collection.sizes)]
        for value in every:
            tally: Any = Tally(collection)
            # one report beside enough others that every question was answered
            base = 1000
            rng = np.random.default_rng(1)
            for other in range(len(collection.questions)):
                share = 1.0 if collection.kind != "plan" else float(collection.shares[other])
                some = (
                    [list(map(int, r)) for r in collection.questions[other].mechanism.outputs()]
                    if collection.kind == "plan"
                    else every
                )
                count = round(base * share)
                picks = rng.integers(len(some), size=count)
                tally.add_values(other, [some[p] for p in picks])
            before = SurveyResults(Analysis(survey, 0, tally)).classes[0]
            lied: Any = Tally(collection)
            lied = lied + tally
            liars = 10
            lied.add_values(question, [value] * liars)
            after = SurveyResults(Analysis(survey, 0, lied)).classes[0]
            low, high = before.compute_liar_range(liars / (base + liars))
            assert low - 0.002 <= after.value <= high + 0.002
            reached = max(reached, (after.value - before.value) / (high - before.value))
        if collection.kind == "plan":
            break  # the smaller question is enough
    # exact for sheets; of a plan a bound, since its questions are weighed by their precision
    assert reached > (0.99 if collection.kind == "questionnaire" else 0.2)


@pytest.mark.slow
def test_evidence_is_no_bolder_than_the_reports() -> None:
    """All ranges hold together: of 15 collections 11, below that with a chance of 6e-4 at 95 %."""
    asked = Schema([Categorical("town", list("abcdef"))], "sick", ["no", "yes"])
    made, people, rng = make_plan(asked, epsilon=3.0), 1500, np.random.default_rng()
    survey = Survey(9, "towns", made, Announcement.make_default(made, "towns"), b"")
    chances = np.array([[0.3, 0.25, 0.2, 0.15, 0.09, 0.01], [0.05, 0.1, 0.15, 0.25, 0.3, 0.15]])
    held, bold = 0, 0.0
    for _ in range(15):
        sick = rng.random(people) < 0.4
        town = (rng.random((people, 1)) > chances.cumsum(axis=1)[sick.astype(int), :-1]).sum(axis=1)
        rows = {
            "town": np.array(list("abcdef"), dtype=object)[town],
            "sick": np.where(sick, "yes", "no").astype(object),
        }
        tally: Any = Tally(made)
        for question, _, values in iter_simulated_answers(
            made, made.encode_columns(rows), CryptoRandom()
        ):
            tally.add_values(question, values)
        fits = True
        for one in SurveyResults(Analysis(survey, 0, tally)).evidence:
            truth = np.divide(*chances[:, "abcdef".index(one.statement[-1])][[1, 0]])
            truth = truth if one.label == "yes" else 1 / truth
            least, most = one.supported_range or (0.0, np.inf)
            fits &= least <= truth <= most
            bold = max(bold, one.odds / truth)
        held += fits
    assert held >= 11
    assert bold > 2  # the twin: what the model says alone, which was shown before


def test_numbers_asked_by_their_mean_have_a_chart_whose_intervals_hold(live: Live) -> None:
    """Of 150 collections at least 130: below that with a chance of 1e-5 if 95 % is true."""
    asked = Schema([Numeric("income", 0, 1e6, optional=False)], "sick", ["no", "yes"])
    made, people, rng = (
        make_plan(asked, epsilon=1.0, options=PlanOptions(numeric="gaussian")),
        6000,
        np.random,
    )
    survey = Survey(9, "means", made, Announcement.make_default(made, "means"), b"")
    held, narrow, truth = 0, 0, {"sick no": 700_000, "sick yes": 300_000}
    for _ in range(75):
        sick = rng.random(people) < 0.4
        income = np.where(sick, 300_000, 700_000) + 80_000 * rng.standard_normal(people)
        rows = {
            "income": income.clip(0, 1e6),
            "sick": np.where(sick, "yes", "no").astype(object),
        }
        tally: Any = Tally(made)
        for question, _, values in iter_simulated_answers(
            made, made.encode_columns(rows), CryptoRandom()
        ):
            tally.add_values(question, values)
        for one in SurveyResults(Analysis(survey, 0, tally)).means["income"]:
            held += one.low <= truth[one.label] <= one.high
            half = (one.high - one.low) / 4
            narrow += abs(one.value - truth[one.label]) <= half
    assert held >= 130
    assert narrow < 130  # the twin: intervals of half the width
    added(live.server.database, made, "income")
    survey = live.server.surveys.find_survey("income")  # type: ignore[assignment]
    create_rehearsal(live.server.database, made, survey.announcement, 2000)
    page = entered(live).get("/desk/income-simulated").text
    assert "Mean of income" in page
    assert "1,000,000" in page  # the scale is that of the public bounds, without exponents


@pytest.mark.parametrize("make", [plan, questionnaire])
def test_a_rehearsal_is_apart_and_closed(make: Any, tmp_path: Path) -> None:
    with Database(f"sqlite:///{tmp_path}/c.db") as database:
        database.migrate()
        number = added(database, make(), "real")
        from discreet.server.surveys import SurveyStore

        store = SurveyStore(database)
        real = store.find_survey("real")
        assert real is not None
        name = create_rehearsal(database, real.collection, real.announcement, 300)
        made = store.find_survey(name)
        assert made is not None
        assert name == "real-simulated"
        assert store.read_state(made) == "closed"
        assert made.announcement.words["en"].title.startswith("SIMULATED")
        with database.read() as connection:
            assert load_tally(connection, number, real.collection).reports == 0
            counted = load_tally(connection, made.number, made.collection)
            assert counted.reports == 300
            assert has_same_counts(
                counted, recount_reports(connection, made.number, made.collection)
            )
        assert (
            create_rehearsal(database, real.collection, real.announcement, 300) == name
        )  # a second start


# ---------------------------------------------------------------- verify and page


@pytest.mark.slow
def test_verify_finds_every_change(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    run = CliRunner()
    url = f"{live.base}/s/jobs"
    good = run.invoke(main, ["verify", url])
    assert good.exit_code == 0, good.output
    assert "CHANGED" not in good.output
    assert Bundle().digest in run.invoke(main, ["verify"]).output
    from discreet.server import verify

    client = new_client()

    def fetch(address: str) -> tuple[int, bytes, str]:
        answer = client.get(address)
        return answer.status_code, answer.content, answer.headers["content-security-policy"]

    every = verify.verify_page(url, fetch)
    assert all(one.same for one in every)
    names = [one.name for one in every]
    assert {"the page", "content policy", "announcement", "document", *Bundle().files} == set(names)
    survey = live.server.surveys.find_survey("jobs")
    assert survey is not None
    named = f"{url}#d={survey.announcement.digest.removeprefix('sha256:')}"
    assert all(one.same for one in verify.verify_page(named, fetch))
    other = f"{url}#d={'0' * 64}"
    assert [one.name for one in verify.verify_page(other, fetch) if not one.same] == [
        "announcement"
    ]
    told = f"{live.base}/api/v1/surveys/jobs"
    places = {"the page": url, "document": f"{told}/document", "announcement": told}
    for name in (
        "the page", "random.js", "words/de.json", "document", "announcement", "content policy",
    ):  # fmt: skip
        where = places.get(name, f"{live.base}/static/{name}")

        def lying(address: str, where: str = where, name: str = name) -> tuple[int, bytes, str]:
            status, body, policy = fetch(address)
            if name == "content policy":
                return status, body, policy.replace("'none'", "*")
            if address == told == where:  # in the announcement, and not resealed
                return status, body.replace(b'"asks":""', b'"asks":"x"'), policy
            return status, body.replace(b"e", b"E", 1) if address == where else body, policy

        changed = [one.name for one in verify.verify_page(url, lying) if not one.same]
        assert changed == [name]
    assert run.invoke(main, ["verify", f"{live.base}/s/unknown"]).exit_code != 0


def test_the_list_of_a_release_has_the_digest_of_the_page(tmp_path: Path) -> None:
    run, file = CliRunner(), tmp_path / "page.sha256"
    file.write_text(run.invoke(main, ["verify", "--list"]).output)
    digest = "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()
    same = run.invoke(main, ["verify", "--release", str(file)])
    assert same.output.strip() == digest == Bundle().digest
    file.write_text(file.read_text().replace("a", "b", 1))
    other = run.invoke(main, ["verify", "--release", str(file)])
    assert other.exit_code != 0
    assert "lists a different page" in str(other.output) + str(other.exception)
    assert "verify --list >dist/page.sha256" in (ROOT / "Makefile").read_text()


def test_addresses_of_surveys() -> None:
    assert split_address("https://a.example/deep/s/x-1/") == ("https://a.example/deep", "x-1")
    for wrong in ("https://a.example", "ftp://a.example/s/x", "a.example/s/x", "https:///s/x"):
        assert CliRunner().invoke(main, ["page", wrong, "-o", "nowhere"]).exit_code != 0
