"""The respondent's page in a real browser, over the real server."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sites import SENTINEL, Person, bundle, collections, site

from discreet.collection.announcement import AnnouncementTexts
from discreet.server import database as db
from discreet.server.database import find_rows
from discreet.server.pages import compute_posterior
from discreet.server.sealed_arrivals import find_arrivals, load_live_keys

pytestmark = [pytest.mark.browser, pytest.mark.slow]
People = Callable[..., Person]

AUTOMATIC = [name for name in collections() if name not in ("hand", "invited")]


def stored(live: Any, name: str, id_: str) -> bool:
    """Whether what a report says is in the database of a server, waiting or settled."""
    number, identity = live.server.surveys.find_survey(name).number, bytes.fromhex(id_)
    with live.server.database.read() as connection:
        keys = load_live_keys(connection, number)
        waiting = find_arrivals(connection, number, keys, [identity]).get(identity)
        settled = find_rows(connection, db.report, number, [identity])
    return bool(settled) or (
        waiting is not None and (waiting.live or waiting.arrival.row.value != b"")
    )


# ---------------------------------------------------------------- answered to the end


@pytest.mark.parametrize("name", AUTOMATIC)
def test_a_survey_of_every_kind_is_answered_to_the_end(
    name: str, person: People, live: Any
) -> None:
    somebody = person()
    somebody.sent(name)
    (body,) = somebody.bodies()
    assert stored(live, name, json.loads(body)["id"])
    hosts = {one.url.split("/")[2] for one in somebody.requests}
    assert hosts == {live.base.split("/")[2]}  # no request but to the server itself


@pytest.mark.parametrize("name", ["either", "own", "hand"])
def test_people_may_draw_with_their_own_dice(name: str, person: People, live: Any) -> None:
    somebody = person()
    somebody.reviewed(name, 1, begin="Draw with my own coin or dice")
    somebody.press("Send")
    somebody.counted()
    (body,) = somebody.bodies()
    report = json.loads(body)
    assert stored(live, name, report["id"])
    assert report["value"] == [1] * len(report["value"])  # what was ticked, nothing else
    assert somebody.page.get_by_role("button", name="Withdraw now").count() == 0
    assert '"key":null' in somebody.kept()  # whoever has seen the draw must not choose


def test_a_plan_asks_only_for_the_question_that_was_drawn(person: People) -> None:
    asked = set()
    for _ in range(12):
        somebody = person()
        somebody.goto("direct")
        kept = json.loads(somebody.kept())
        (drawn,) = [one for part in kept if isinstance(part, list) for one in part if "code" in one]
        screens = []
        somebody.press("Begin")
        while somebody.page.locator("form").count():
            screens.append(somebody.page.locator("h1").inner_text())
            somebody.page.locator("input[type=radio]").first.check()
            somebody.press("Continue")
        collection = collections()["direct"][0]
        assert screens == [*collection.questions[drawn["question"]].features, "sick"]
        asked.add(drawn["question"])
        somebody.page.reload()
        somebody.page.get_by_role("button", name="Begin").wait_for()
        assert json.loads(somebody.kept()) == kept  # drawn once, also when nothing was sent
        if len(asked) == 2:
            return
    pytest.fail("twelve people were asked the same of two questions: chance 1 in 2,048")


def test_a_judge_answers_everything_and_sends_one_bit(person: People, live: Any) -> None:
    """Also in plain words: what leaves the device is said before and after."""
    seen = set()
    for _ in range(20):
        somebody = person()
        somebody.goto("judging")
        assert "sends only this: right or wrong" in somebody.page.content()
        somebody.press("Begin")
        screens = []
        while somebody.page.locator("form").count():
            screens.append(somebody.page.locator("h1").inner_text())
            somebody.page.locator("input[type=radio]").first.check()
            somebody.press("Continue")
        assert screens == ["smokes", "drinks", "sick"]
        assert "send what is true" in somebody.page.content()
        somebody.press("Draw and send")
        somebody.counted()
        (body,) = somebody.bodies()
        value = json.loads(body)["value"]
        assert value in ([0], [1])
        assert not {"smokes", "drinks", "sick"} & set(json.loads(body))
        somebody.page.get_by_role("button", name="Look at it", exact=True).click()
        word = "right" if value == [1] else "wrong"
        somebody.page.get_by_text(f"the model guesses {word} about you").wait_for()
        seen.add(word)
        if len(seen) == 2:
            return
    pytest.fail("twenty people sent the same bit: chance 1 in 524,288")


# ---------------------------------------------------------------- nothing leaks


def asked_for_a_number(new: Callable[[], Person]) -> Person:
    """Somebody who drew a question about the number; two of three people do."""
    for _ in range(40):
        somebody = new()
        somebody.goto("means")
        drawn = json.loads(somebody.kept())[4][0]["question"]
        if collections()["means"][0].questions[drawn].features:
            return somebody
    raise AssertionError("forty people drew the class alone: chance 3 ** -40")


def test_answers_are_nowhere_but_in_memory(
    person: People, live: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    somebody = asked_for_a_number(person)
    somebody.reviewed("means")
    assert SENTINEL not in somebody.kept()
    somebody.press("Draw and send")
    somebody.counted()
    for one in somebody.requests:
        text = f"{one.url} {one.all_headers()} {one.post_data}"
        assert SENTINEL not in text
        assert "424242" not in text
    assert SENTINEL not in somebody.kept()
    assert SENTINEL not in somebody.page.content()
    folder = Path(live.server.database.location).parent
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert folder / "collected.db" in files
    assert folder / "collected.db.keys" / "batches" in {path.parent for path in files}
    for path in files:
        assert SENTINEL.encode() not in path.read_bytes()
    assert SENTINEL not in "".join(capfd.readouterr())
    somebody.page.go_back()
    assert SENTINEL not in somebody.page.content()


def test_a_page_that_keeps_answers_is_found(chromium: Any, tmp_path: Path) -> None:
    """The twin: a page that saves drafts, as most surveys do."""
    drafts = {
        "questions.js": (
            "answers.set(field.key, field.readAnswer())",
            "answers.set(field.key, field.readAnswer())"
            " && (sessionStorage[field.key] = field.readAnswer())",
        )
    }
    with site(tmp_path, bundle(drafts), "means") as live:
        somebody = asked_for_a_number(lambda: Person(chromium, live.base))
        somebody.reviewed("means")
        assert SENTINEL in somebody.kept()


def test_an_invitation_is_used_once_and_is_in_no_address(person: People, live: Any) -> None:
    codes = live.owned("POST", "/invited/invitations", json={"count": 2}).json()["codes"]
    somebody = person()
    digest = live.server.surveys.find_survey("invited").announcement.digest.removeprefix("sha256:")
    somebody.goto(f"invited#c={codes[0]}&d={digest}")
    assert somebody.page.url == f"{live.base}/s/invited#d={digest}"  # compared again on a reload
    somebody.page.reload()  # the code is not lost with the address
    somebody.press("Begin")
    somebody.answer()
    somebody.press("Draw and send")
    somebody.counted()
    sent = [one.url.partition("#")[0] for one in somebody.requests]  # what follows # is not sent
    assert all(codes[0] not in url for url in sent)
    assert not any(one.headers.get("referer") for one in somebody.requests)
    assert codes[0] not in somebody.kept()  # after it has arrived
    somebody.page.reload()
    somebody.counted()
    assert len(somebody.bodies()) == 1
    # a second person with the same code is told before anything is drawn
    other = person()
    other.goto(f"invited#c={codes[0]}")
    other.page.get_by_text("This invitation has been used.").wait_for()
    assert other.bodies() == []
    # one on the same device with another code answers, too; typed in groups as letters print it
    typed = f"{codes[1][:13]} {codes[1][13:]}".upper()
    somebody.page.goto(f"{live.base}/s/invited#c=wrong")
    somebody.page.get_by_label("Code of your invitation").fill(typed)
    somebody.press("Continue")
    somebody.press("Begin")
    somebody.answer()
    somebody.page.get_by_label("I allow this total").check()
    somebody.press("Draw and send")
    somebody.counted()
    assert len(set(somebody.bodies())) == 2


CHANGES: dict[str, Any] = {
    "withdrawal": "none",
    "words": {
        "en": AnnouncementTexts("Habits", "This has nothing to do with your health insurance.")
    },
}


def announced_otherwise(somebody: Person, live: Any, change: str) -> Any:
    """The screen after a link with a digest, where the server announces something else."""
    survey = live.server.surveys.find_survey("sheet")
    other = replace(survey.announcement, **{change: CHANGES[change]})
    assert other.collection == survey.collection.digest  # only the words and rules around it

    def lie(route: Any) -> None:
        told = {**route.fetch().json(), "announcement": json.loads(other.to_json())}
        route.fulfill(json=told)

    somebody.context.route("**/api/v1/surveys/sheet", lie)
    return somebody.goto(f"sheet#d={survey.announcement.digest.removeprefix('sha256:')}")


@pytest.mark.parametrize("change", CHANGES)
def test_another_announcement_than_in_the_letter_stops_the_page(
    change: str, person: People, live: Any
) -> None:
    page = announced_otherwise(person(), live, change)
    page.get_by_text("not the ones that were announced").wait_for()
    page.reload()  # what was compared once is compared again
    page.get_by_text("not the ones that were announced").wait_for()


def test_a_page_that_compares_only_the_document_is_found(chromium: Any, tmp_path: Path) -> None:
    """The twin: words, dates and rules may be changed behind a link that names the questions."""
    careless = {
        "respond.js": (
            "computedDigest !== expectedDigest || computedDigest !== sealedDigest",
            "false",
        )
    }
    with (
        site(tmp_path, bundle(careless), "sheet") as live,
        Person(chromium, live.base) as somebody,
    ):
        announced_otherwise(somebody, live, "withdrawal")
        somebody.page.get_by_role("button", name="Begin").wait_for()


def test_an_announcement_that_is_not_its_digest_stops_the_page(person: People) -> None:
    """Also behind a link that names none."""
    somebody = person()

    def damage(route: Any) -> None:
        told = route.fetch().json()
        told["announcement"]["asks"] = "Somebody else"
        route.fulfill(json=told)

    somebody.context.route("**/api/v1/surveys/sheet", damage)
    somebody.goto("sheet").get_by_text("not the ones that were announced").wait_for()


# ---------------------------------------------------------------- one draw


def test_a_double_click_sends_one_report(person: People) -> None:
    somebody = person()
    somebody.reviewed("sheet")
    somebody.page.get_by_role("button", name="Draw and send").dblclick()
    somebody.counted()
    assert len(set(somebody.bodies())) == 1


def two_tabs(somebody: Person, at_once: bool = True) -> set[str]:
    """The bodies of two tabs that were both about to send."""
    first = somebody.reviewed("sheet", 0)
    second = somebody.reviewed("sheet", 1, somebody.opened())
    for tab in (first, second):
        tab.get_by_role("button", name="Draw and send").click()
        if not at_once:
            somebody.counted(tab)
    for tab in (first, second):
        somebody.counted(tab)
    return set(somebody.bodies())


@pytest.mark.parametrize("at_once", [True, False])
def test_two_tabs_send_one_report(at_once: bool, person: People) -> None:
    assert len(two_tabs(person(), at_once)) == 1


def test_tabs_without_the_lock_are_found(chromium: Any, tmp_path: Path) -> None:
    """The twin: whoever draws does not look at what was kept, and overwrites it.

    One tab after the other: at once, the first may send what the second has just kept.
    """
    blind = {
        "keep.js": (
            "if (storedReport !== undefined) return storedReport;\nconst allowed",
            "const allowed",
        ),
        "respond.js": ("if (this.storedReport) return this.storedReport;\n", ""),
    }
    changed = bundle(blind)
    text = changed.files["keep.js"].decode()
    assert text.count("await awaitRequest(reportStore.add(report));") == 1
    files = {
        **changed.files,
        "keep.js": text.replace("reportStore.add(report)", "reportStore.put(report)").encode(),
    }
    with (
        site(tmp_path, type(changed)(files), "sheet") as live,
        Person(chromium, live.base) as somebody,
    ):
        assert len(two_tabs(somebody, at_once=False)) == 2


WATCHED = """
  window.order = [];
  const transaction = IDBDatabase.prototype.transaction, fetch = window.fetch;
  IDBDatabase.prototype.transaction = function (stores, mode, options) {
    const opened = transaction.call(this, stores, mode, options);
    if (mode === "readwrite" && [stores].flat().includes("report")) {
      opened.addEventListener("complete", () => window.order.push(`kept ${opened.durability}`));
    }
    return opened;
  };
  window.fetch = (url, options) => {
    if (options?.method === "POST") window.order.push("sent");
    return fetch(url, options);
  };
"""


def order_of(somebody: Person) -> list[str]:
    """What happened first: a report on the disk, or a report on its way."""
    somebody.page.add_init_script(WATCHED)
    somebody.sent("sheet")
    return list(somebody.page.evaluate("order"))


def test_a_report_is_on_the_disk_before_it_leaves(person: People) -> None:
    assert order_of(person())[:2] == ["kept strict", "sent"]


def test_a_store_that_does_not_wait_for_the_disk_is_found(chromium: Any, tmp_path: Path) -> None:
    """The twin: what a power cut may lose, after the report has left."""
    relaxed = {"keep.js": ('durability = "strict"', 'durability = "relaxed"')}
    with (
        site(tmp_path, bundle(relaxed), "sheet") as live,
        Person(chromium, live.base) as somebody,
    ):
        assert "kept strict" not in order_of(somebody)


def test_a_failing_network_and_a_reload_send_the_same_bytes(person: People, live: Any) -> None:
    somebody = person()
    somebody.reviewed("sheet")
    met = []

    def fail(route: Any) -> None:
        met.append(route.request.post_data)
        if len(met) == 2:
            route.fetch()  # it arrives, and the answer is lost
        route.abort()

    somebody.context.route("**/reports", fail)
    somebody.press("Draw and send")
    somebody.page.get_by_text("sent again in").wait_for()
    somebody.page.get_by_role("button", name="Try again now").click()
    somebody.page.get_by_text("sent again in 2").wait_for()
    assert len(met) >= 2
    somebody.context.unroute("**/reports")
    somebody.page.reload()  # the draw is kept: no question is asked again
    somebody.counted()
    assert len(set(met) | set(somebody.bodies())) == 1
    assert stored(live, "sheet", json.loads(met[0])["id"])


def test_offline_people_are_told_and_their_report_is_sent_later(person: People) -> None:
    somebody = person()
    somebody.reviewed("sheet")
    somebody.context.set_offline(True)
    somebody.press("Draw and send")
    somebody.page.get_by_text("You are offline").wait_for()
    somebody.context.set_offline(False)
    somebody.counted()
    assert len(set(somebody.bodies())) == 1


def test_a_refused_report_is_said_and_never_drawn_again(person: People) -> None:
    somebody = person()
    somebody.reviewed("sheet")
    problem = json.dumps({"type": "urn:discreet:problem:closed", "status": 410})
    somebody.context.route("**/reports", lambda route: route.fulfill(status=410, body=problem))
    somebody.press("Draw and send")
    somebody.page.get_by_text("closed before your message arrived").wait_for()
    somebody.context.unroute("**/reports")
    somebody.page.reload()
    somebody.page.get_by_role("button", name="Try again now").click()
    somebody.counted()
    assert len(set(somebody.bodies())) == 1


def asked_about_the_sum(somebody: Person) -> bool:
    """Whether somebody who has answered one survey is asked before answering another."""
    somebody.sent("lists")
    somebody.reviewed("bits")
    return bool(somebody.page.locator(".budget").count())


def test_the_losses_of_all_surveys_of_a_server_add_up(person: People) -> None:
    somebody = person()
    assert asked_about_the_sum(somebody)
    text = somebody.page.locator(".budget").inner_text()
    assert f"at most {compute_posterior(0.1, 2.0)} in 100" in text
    assert "epsilon 2 in total; so far you allow 1" in text
    somebody.page.get_by_role("button", name="Draw and send").click()
    somebody.page.get_by_text("Allow the total first").wait_for()
    assert len(somebody.bodies()) == 1
    somebody.page.get_by_label("I allow this total").check()
    somebody.press("Draw and send")
    somebody.counted()
    assert len(somebody.bodies()) == 2


def test_a_sum_over_one_survey_is_found(chromium: Any, tmp_path: Path) -> None:
    """The twin: what was answered elsewhere on this server does not count."""
    apart = {
        "keep.js": (
            "report.place !== place && report.epsilon < Infinity",
            'report.place !== place && place.startsWith(report.collection + "|")',
        )
    }
    with (
        site(tmp_path, bundle(apart), "lists", "bits") as live,
        Person(chromium, live.base) as somebody,
    ):
        assert not asked_about_the_sum(somebody)


def sent_from_two_tabs(somebody: Person) -> list[str]:
    """The reports of two tabs, each of which knew of no other survey when it asked."""
    first = somebody.reviewed("lists")
    second = somebody.reviewed("bits", page=somebody.opened())
    for tab in (first, second):
        assert tab.locator(".budget").count() == 0
        tab.get_by_role("button", name="Draw and send").click()
        tab.locator(".pair, .budget").first.wait_for()
    return somebody.bodies()


def test_the_sum_is_kept_where_reports_are_kept(person: People) -> None:
    somebody = person()
    assert len(sent_from_two_tabs(somebody)) == 1


def test_a_sum_that_only_the_screen_looks_at_is_found(chromium: Any, tmp_path: Path) -> None:
    """The twin: what is kept is not added up again at the moment of keeping."""
    hasty = {
        "keep.js": (
            "if (budget.total > limit * (1 + BUDGET_TOLERANCE)) throw",
            "if (false) throw",
        )
    }
    with (
        site(tmp_path, bundle(hasty), "lists", "bits") as live,
        Person(chromium, live.base) as somebody,
    ):
        assert len(sent_from_two_tabs(somebody)) == 2


# ---------------------------------------------------------------- look or withdraw


def test_whoever_has_not_looked_can_withdraw(person: People, live: Any) -> None:
    somebody = person()
    somebody.sent("sheet")
    id_ = json.loads(somebody.bodies()[0])["id"]
    assert stored(live, "sheet", id_)
    somebody.page.reload()
    somebody.counted()
    somebody.page.get_by_role("button", name="Withdraw now").click()
    somebody.page.get_by_text("will be deleted").wait_for()
    somebody.press("Withdraw now")
    somebody.page.get_by_role("heading", name="Your answer was withdrawn").wait_for()
    assert not stored(live, "sheet", id_)
    somebody.page.reload()
    somebody.page.get_by_role("heading", name="Your answer was withdrawn").wait_for()
    assert len(somebody.bodies()) == 1
    settled = live.owned("POST", "/sheet/settle", params={"anyway": True})
    assert settled.status_code == 200
    assert not stored(live, "sheet", id_), "it is not counted later, either"


def test_whoever_looks_gives_the_key_up_first(person: People) -> None:
    somebody = person()
    somebody.sent("sheet")
    report = json.loads(somebody.bodies()[0])
    kept = next(one for one in json.loads(somebody.kept())[5] if one["id"] == report["id"])
    assert len(kept["key"]) == 32
    somebody.page.get_by_role("button", name="Look at it").click()
    somebody.page.get_by_text("This was sent").wait_for()
    labels = collections()["sheet"][0].cells
    shown = somebody.page.locator(".sent dd").all_inner_texts()
    names = collections()["sheet"][0].names
    told = [labels[name].labels[cell] for name, cell in zip(names, report["value"], strict=True)]
    assert [one.lower() for one in shown] == told
    assert somebody.page.get_by_role("button", name="Withdraw now").count() == 0
    assert kept["key"] not in somebody.kept()
    somebody.page.reload()
    somebody.counted()
    assert somebody.page.get_by_role("button", name="Withdraw now").count() == 0


@pytest.mark.parametrize("name", ["direct", "lists", "bits"])
def test_whoever_looks_reads_the_answers_of_a_message(name: str, person: People) -> None:
    """In words: the cells for which a message is likeliest, the class first."""
    somebody = person()
    somebody.sent(name)
    report = json.loads(somebody.bodies()[0])
    somebody.page.get_by_role("button", name="Look at it").click()
    somebody.page.locator(".sent pre").wait_for()
    made = collections()[name][0]
    question = made.questions[report["question"]]
    labels = [made.schema.classes, *(made.cells[one].labels for one in question.features)]
    likely = [question.mechanism.likelihood(k, report["value"]) for k in range(question.size)]
    if min(likely) == max(likely):
        return  # all or nothing is in the list
    rows = zip(itertools.product(*labels), likely, strict=True)
    wanted = {row for row, chance in rows if chance == max(likely)}
    sent = somebody.page.locator(".sent")
    if name == "direct":
        found = {tuple(one.lower() for one in sent.locator("dd").all_inner_texts())}
    else:
        texts = [one.lower().split(" · ") for one in sent.locator("li").all_inner_texts()]
        found = {
            tuple("(missing)" if one == "i would rather not say" else one for one in row)
            for row in texts
        }
    assert found == wanted


def looked_without_giving_up(somebody: Person, full: bool) -> bool:
    """Whether somebody could look and still have the key: also where it cannot be deleted."""
    somebody.sent("sheet")
    if full:
        refuse = "throw new DOMException('full', 'QuotaExceededError')"
        somebody.page.evaluate(f"() => {{ IDBObjectStore.prototype.put = () => {{ {refuse}; }}; }}")
    somebody.page.get_by_role("button", name="Look at it").click()
    somebody.page.locator(".sent pre, .warning").first.wait_for()
    somebody.page.wait_for_timeout(200)
    looked = somebody.page.locator(".sent pre").count() == 1
    assert looked or full
    return looked and '"key":null' not in somebody.kept()


@pytest.mark.parametrize("full", [False, True])
def test_nobody_looks_and_keeps_the_key(full: bool, person: People) -> None:
    assert not looked_without_giving_up(person(), full)


@pytest.mark.parametrize(
    ("full", "change"),
    [
        (False, {"respond.js": ("return keepsKey ? {} : { key: null };", "return {};")}),
        (
            True,  # the key is deleted, but afterwards
            {
                "receipt.js": (
                    "...describeReport(context, await survey.lookAtReport()));",
                    "...describeReport(context, report));"
                    "survey.lookAtReport().catch(() => undefined);",
                )
            },
        ),
    ],
)
def test_a_page_that_shows_before_it_deletes_is_found(
    full: bool, change: Any, chromium: Any, tmp_path: Path
) -> None:
    """The twin of the test above."""
    with (
        site(tmp_path, bundle(change), "sheet") as live,
        Person(chromium, live.base) as somebody,
    ):
        assert looked_without_giving_up(somebody, full)


def test_looking_in_one_tab_ends_withdrawing_in_another(person: People) -> None:
    somebody = person()
    somebody.sent("sheet")
    other = somebody.goto("sheet", somebody.opened())
    somebody.page.get_by_role("button", name="Look at it").click()
    somebody.page.get_by_text("This was sent").wait_for()
    other.get_by_role("button", name="Withdraw now").click()
    other.get_by_role("button", name="Withdraw now").click()
    other.get_by_text("can no longer be withdrawn").wait_for()
    assert not [one for one in somebody.requests if one.method == "DELETE"]


def test_rules_of_withdrawal_are_followed(person: People) -> None:
    somebody = person()
    somebody.sent("warner")  # open: look and withdraw
    somebody.page.get_by_role("button", name="Look at it").click()
    somebody.page.get_by_text("This was sent").wait_for()
    assert somebody.page.get_by_role("button", name="Withdraw now").count() == 1
    other = person()
    other.sent("settled")  # none
    assert other.page.get_by_role("button", name="Withdraw now").count() == 0


def test_a_shared_device_forgets_all_but_the_fact(person: People) -> None:
    somebody = person()
    somebody.sent("sheet")
    report = json.loads(somebody.bodies()[0])
    somebody.page.get_by_text("This is not my own device").click()
    somebody.press("Forget it")
    kept = somebody.kept()
    assert "discreet/report" not in kept
    assert '"key":null' in kept
    assert report["collection"] in kept
    somebody.goto("sheet")
    somebody.counted()
    assert len(somebody.bodies()) == 1


def test_whoever_chooses_nothing_is_asked_to_choose(person: People) -> None:
    somebody = person()
    page = somebody.goto("spoken")
    somebody.press("Begin")
    assert page.locator("fieldset option").count() == 1 + 40 + 1  # one more for no answer
    page.get_by_role("button", name="Continue").click()
    assert page.locator("[role=alert]").inner_text() == "Please choose an answer."
    page.locator("fieldset select").select_option(index=41)
    assert page.locator("fieldset select").input_value() == "40"
    somebody.press("Continue")


def test_days_are_written_as_people_write_them(person: People) -> None:
    somebody = person()
    page = somebody.goto("spoken")
    assert page.get_by_text("Open until 31 December 2099").count() == 1
    assert page.get_by_text("All messages will be deleted by 31 January 2100").count() == 1
    page.locator("#language").select_option("de")
    page.get_by_text("Alle Nachrichten werden bis 31. Januar 2100 gelöscht").wait_for()
    page.goto(f"{somebody.base}/s/spoken/about?lang=de")
    assert page.get_by_text("alle Nachrichten bis 31. Januar 2100 zu löschen").count() == 1


def test_the_receipt_says_when_messages_are_deleted(person: People) -> None:
    somebody = person()
    somebody.sent("spoken")
    text = somebody.page.locator("main").inner_text()
    assert "promises to delete all messages by 31 January 2100" in text
    somebody = person()
    somebody.sent("sheet")
    assert "names no day by which the messages" in somebody.page.locator("main").inner_text()


# ---------------------------------------------------------------- the promise in numbers


@pytest.mark.parametrize("name", ["direct", "bits", "sheet", "warner"])
def test_the_promise_is_worked_out_from_the_document(name: str, person: People) -> None:
    somebody = person()
    somebody.reviewed(name)
    text = somebody.page.locator("main").inner_text()
    collection = collections()[name][0]
    epsilon = collection.guarantee.epsilon
    assert f"move them to at most {compute_posterior(0.1, epsilon)} in 100" in text
    if collection.kind == "plan":
        truths = {question.mechanism.p for question in collection.questions}
    else:
        truths = {float(channel.theta_exact) for channel in collection.channels}
    marks = [
        somebody.page.locator("figure").nth(k).locator("svg.hundred circle").count()
        for k in range(somebody.page.locator("figure").count())
    ]
    expected = {min(100, math.ceil(100 * truth - 1e-9)) for truth in truths}
    assert set(marks) == expected


def test_an_unprotected_survey_says_so_first(person: People) -> None:
    somebody = person()
    somebody.goto("own")
    first = somebody.page.locator("main > *:not(h1)").first
    assert "Nothing protects your answers" in first.inner_text()


@pytest.mark.parametrize(
    ("name", "first", "said"),
    [
        ("sheet", "Tea", "would be sent."),
        ("direct", "1", "would be sent."),
        ("lists", "1", "this list would be sent"),
        ("means", "1", "this message would be sent"),
    ],
)
def test_practice_is_never_sent(name: str, first: str, said: str, person: People) -> None:
    somebody = asked_for_a_number(person) if name == "means" else person()
    somebody.goto(name)
    before, kept = len(somebody.requests), somebody.kept()
    somebody.press("Try it with a harmless question")
    somebody.page.get_by_label(first, exact=True).check()
    for _ in range(20):
        somebody.page.get_by_role("button", name="Draw", exact=True).click()
    somebody.page.get_by_text("20 draws").wait_for()
    assert said in somebody.page.locator(".drawn").inner_text()
    assert len(somebody.requests) == before
    somebody.press("Back to the survey")
    assert somebody.kept() == kept
