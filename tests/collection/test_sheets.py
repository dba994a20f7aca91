"""One person sends one sheet, drawn once; tallies are integers that do not care for order."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparisons import assert_same_tally
from discreet import Categorical, EstimationError, FormatError, Schema, SchemaError
from discreet.collection.parquet_reports import ReportFile
from discreet.collection.parquet_tally import tally_parquet
from discreet.collection.report import Report
from discreet.collection.respondent import FolderStore, MemoryStore, Respondent
from discreet.collection.store import StoredReport
from discreet.collection.tally import Tally
from discreet.randomness import SeededRandom
from discreet.survey.questionnaire import Questionnaire


def variant(survey, **options):
    fields = {"laws": survey.laws, "cuts": survey.cuts, **options}
    return Questionnaire(survey.schema, survey.groups, **fields)


def test_the_sheet_is_kept_before_it_leaves_and_sent_again_as_it_is(survey, answers, tmp_path):
    first = Respondent(survey, FolderStore(tmp_path)).report(answers)
    kept = list(tmp_path.glob("*.report.json"))
    assert [json.loads(path.read_text())["report"] for path in kept] == [first.to_json()]
    for changed in (answers, {**answers, "smokes": "no"}):
        assert Respondent(survey, FolderStore(tmp_path)).report(changed) == first
    kept[0].write_text(kept[0].read_text()[:-20])
    with pytest.raises(FormatError, match="not drawn again"):
        Respondent(survey, FolderStore(tmp_path)).report(answers)


def test_a_lost_race_returns_the_winners_sheet(survey, answers):
    store = MemoryStore()
    winner = Respondent(survey, MemoryStore()).report(answers)

    class Late(MemoryStore):
        def load_reports(self, collection):
            return store.load_reports(collection)

        def save_report(self, collection, number, kept):
            store.save_report(collection, 0, StoredReport(winner.to_json(), ""))
            return False

    assert Respondent(survey, Late()).report(answers) == winner


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"smokes": "perhaps"}, "smokes: 'perhaps'"),
        ({"weight": 70}, "weight, which is not asked for"),
        ({"smokes": None}, "smokes"),
        ({"age": 17}, "public bounds"),
        ({"sick": None}, "sick"),
    ],
)
def test_answers_are_checked_before_anything_is_drawn(survey, answers, change, words):
    store = MemoryStore()
    with pytest.raises(SchemaError, match=words):
        Respondent(survey, store).report({**answers, **change})
    assert store._list_names() == []
    with pytest.raises(SchemaError, match="there is no answer"):
        Respondent(survey, store).report({"age": 30})


def test_own_personal_answers_are_asked_for_and_sent(survey, answers):
    own = variant(survey, personal="own")
    with pytest.raises(SchemaError, match="pass personal="):
        Respondent(own, MemoryStore(), unprotected=True).report(answers)
    with pytest.raises(SchemaError, match="device draws"):
        Respondent(survey, MemoryStore()).report(answers, answers)
    personal = {"smokes": "no", "region": "east", "age": 80, "sick": "yes"}
    groups = {(1, 0): 0, (0, 1): 0}
    for _ in range(200):
        sheet = Respondent(own, MemoryStore(), unprotected=True).report(answers, personal)
        groups[sheet.value[0], sheet.value[3]] += 1
        assert (sheet.value[1], sheet.value[2]) in {(1, 0), (2, 1)}
    assert min(groups.values()) > 40  # of 200 at 0.6: a false alarm in 1e-9


def test_a_draw_by_hand_is_taken_as_it_was_clicked(survey, answers, tmp_path):
    hand = variant(survey, device="hand")
    clicked = {**answers, "age": "50 to 98"}
    sheet = Respondent(hand, FolderStore(tmp_path), by_hand=True).report(clicked)
    assert sheet.value == (1, 1, 1, 0)
    assert Respondent(hand, FolderStore(tmp_path), by_hand=True).report(answers) == sheet
    assert "own randomization device" in str(hand.guarantee)
    with pytest.raises(SchemaError, match="draw by hand"):
        Respondent(hand, MemoryStore())
    with pytest.raises(SchemaError, match="either"):
        Respondent(survey, MemoryStore(), by_hand=True)
    assert Tally.from_reports(hand, [sheet]).people == 1


@pytest.mark.slow
def test_a_device_imports_no_collector_and_little_else():
    import subprocess
    import sys

    script = (
        "import sys, discreet.collection.respondent, discreet.survey.questionnaire\n"
        "print(*(m for m in ('sklearn', 'pandas', 'ibis', 'rich', 'yaml') if m in sys.modules))\n"
        "print(*(m for m in sys.modules if m.endswith(('.tally', '.inversion', '.bulk'))))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.fixture
def sheets(survey, invented):
    sent = survey.randomize_records(0, invented(survey, 300), SeededRandom(1))
    return [
        Report(survey.digest, f"{k:032x}", 0, tuple(row)) for k, row in enumerate(sent.tolist())
    ]


def test_tallies_do_not_care_for_order_and_merge(survey, sheets):
    whole = Tally.from_reports(survey, sheets)
    assert whole.people == 300
    assert_same_tally(whole, Tally.from_reports(survey, sheets[::-1]), by_id=False)
    assert_same_tally(
        whole,
        Tally.from_reports(survey, sheets[:100]) + Tally.from_reports(survey, sheets[100:]),
        by_id=False,
    )
    again = Tally.from_json(whole.to_json())
    assert_same_tally(whole, again, by_id=False)
    assert again.seen == whole.seen
    assert whole.count_margin(["region", "sick"]).sum() == 300
    assert (
        whole.count_margin(["sick", "region"]).T.tolist()
        == whole.count_margin(["region", "sick"]).tolist()
    )
    with pytest.raises(EstimationError, match="100 sheets are in both"):
        Tally.from_reports(survey, sheets[:100]) + whole


def test_bad_sheets_are_counted_by_their_fault_and_nothing_else_is_lost(survey, sheets):
    good = sheets[0].to_json()
    other = Report("sha256:other", "f" * 32, 0, sheets[0].value)
    bad = [
        ("misshapen", good[:50]),
        ("misshapen", good.replace("value", "answer")),
        ("misshapen", good.replace('"digest": "sha256:', '"digest": "sha256:0')),
        ("foreign questionnaire", other),
        ("out of domain", Report(survey.digest, "e" * 32, 0, (0, 0, 0))),
        ("out of domain", Report(survey.digest, "e" * 32, 0, (0, 0, 3, 0))),
        ("out of domain", Report(survey.digest, "e" * 32, 0, (0, 0, -1, 0))),
        ("id reused", Report(survey.digest, sheets[0].id, 0, (1, 2, 2, 1))),
    ]
    tally = Tally.from_reports(survey, [sheets[0]])
    for reason, one in bad:
        before = tally.people
        receipt = tally.add(one)
        assert receipt.status == "rejected"
        assert receipt.reason.startswith(reason)
        assert tally.people == before
    assert tally.add(good).status == "repeated"
    assert tally.rejected.total() == len(bad)


def test_a_sheet_is_strict():
    with pytest.raises(FormatError, match="32 hexadecimal"):
        Report("sha256:x", "ID", 0, (0,))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_bulk_path_gives_the_same_integers(tmp_path_factory, data):
    schema = Schema(
        [Categorical("a", [1, 2, 3], optional=False), Categorical("b", [1, 2])], "c", [0, 1]
    )
    survey = Questionnaire.from_schema(schema, 0.5)
    ids = st.integers(0, 5).map(lambda k: f"{k:032x}")
    cell = st.integers(-1, 3)
    made = st.builds(
        Report,
        st.sampled_from([survey.digest, "sha256:other"]),
        ids,
        st.just(0),
        st.tuples(cell, cell, cell) | st.tuples(cell),
    )
    sheets = data.draw(st.lists(made, max_size=30))
    # where one id comes with different answers a file has no first one: keep the smallest first
    ordered = sorted(sheets, key=lambda sheet: (sheet.id, sheet.value))
    path = tmp_path_factory.mktemp("bulk") / "sheets.parquet"
    with ReportFile(path, survey) as file:
        file.add_reports(sheets)
    assert_same_tally(Tally.from_reports(survey, ordered), tally_parquet(survey, path), by_id=False)


def test_the_bulk_path_on_many_sheets(survey, invented, tmp_path):
    sent = survey.randomize_records(0, invented(survey, 150_000), SeededRandom(0))
    ids = SeededRandom(1).raw(16 * len(sent)).reshape(-1, 16)
    with ReportFile(tmp_path / "s.parquet", survey, simulated=True) as file:
        file.write(0, ids, sent)
    tally = tally_parquet(survey, tmp_path / "s.parquet")
    direct = Tally(survey)
    direct.add_values(0, sent)
    assert_same_tally(tally, direct, by_id=False)
    assert tally.simulated
    assert Tally.from_json(tally.to_json()).simulated


def test_many_questions_need_no_large_numbers(invented):
    """70 yes/no questions: 2^71 possible sheets, the tally holds those that came."""
    schema = Schema([Categorical(f"q{k}", [0, 1], optional=False) for k in range(70)], "c", [0, 1])
    survey = Questionnaire.from_schema(schema, 0.5)
    rows = survey.randomize_records(0, invented(survey, 500), SeededRandom(0))
    one, two = Tally(survey), Tally(survey)
    one.add_values(0, rows[:200])
    two.add_values(0, rows[200:])
    whole = one + two
    assert whole.people == 500
    assert survey.guarantee.epsilon == pytest.approx(71 * math.log(2), rel=1e-3)
    assert whole.count_margin(["q0", "c"]).sum() == 500


def test_tampered_tallies_are_refused(survey, sheets):
    text = Tally.from_reports(survey, sheets).to_json()
    with pytest.raises(FormatError, match="changed or damaged"):
        Tally.from_json(text.replace('"repeated": 0', '"repeated": 9'))
    from discreet.files.documents import dump_document

    def written(**fields):
        body = json.loads(text)
        for name in ("format", "version", "digest"):
            del body[name]
        return dump_document("tally", 3, {**body, **fields})

    for fields in (
        {"whole": {}},
        {"whole": {"0": [[], [1]]}},
        {"whole": {"0": [[[0, 0, 0, 9]], [300]]}},
        {"whole": {"0": [[[0, 0, 0]], [300]]}},
        {"whole": {"0": [[[0, 0, 0, 0]], [-1]]}},
        {"whole": {"0": [[[0, 0, 0, 0]], [2**63]]}},
        {"whole": {"0": [[[0, 0, 0, 0]], [301]]}},
        {"whole": {"0": [[[0, 0, 0, 0], [0, 0, 0, 0]], [100, 200]]}},
        {"counted": [299]},
        {"repeated": -1},
    ):
        with pytest.raises(FormatError):
            Tally.from_json(written(**fields))
