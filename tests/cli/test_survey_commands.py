"""``discreet survey``: each step works from the command line and refuses in one sentence."""

import csv
import json

import numpy as np
import pytest

from discreet import NaiveBayesModel
from discreet.collection.parquet_reports import ReportFile
from discreet.collection.text_reports import read_text_reports
from discreet.survey.questionnaire import Questionnaire

QUESTIONS = ("burnout", "sleep", "medication", "alcohol", "overtime")
ME = {
    "burnout": "yes",
    "sleep": "badly",
    "medication": "no",
    "alcohol": 2,
    "overtime": "yes",
}
STEPS = (
    "new", "check", "privacy", "size", "form", "answer",
    "randomize", "tally", "estimate", "train", "test",
)  # fmt: skip


def people(path, number, seed):
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(QUESTIONS)
        for burnt in rng.random(number) < 0.4:
            sleep = rng.choice(["well", "badly"], p=[0.1, 0.9] if burnt else [0.8, 0.2])
            yes = ["yes" if rng.random() < (0.7 if burnt else 0.2) else "no" for _ in range(2)]
            row = ["yes" if burnt else "no", sleep, yes[0], rng.integers(0, 8), yes[1]]
            writer.writerow(row)


@pytest.fixture
def q(run, tmp_path):
    assert run("survey", "new", "-o", "q.yaml").exit_code == 0
    people("true.csv", 6000, 0)
    people("others.csv", 6000, 1)
    (tmp_path / "me.json").write_text(json.dumps(ME))
    return "q.yaml"


def result_of(run, *arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_help_lists_the_steps_each_with_an_example(run):
    assert "survey" in run("--help").output
    page = run("survey", "--help").output
    for step in STEPS:
        assert step in page
        own = run("survey", step, "--help").output
        assert "Example:" in own
        assert f"discreet survey {step}" in own
        assert "--json" in own


@pytest.mark.slow
def test_a_survey_from_the_first_question_to_the_accuracy(run, q):
    made = result_of(run, "survey", "randomize", q, "true.csv", "-o", "sheets.parquet")
    assert made["sheets"] == 6000
    assert not made["guarantee"]["simulated"]
    counted = result_of(run, "survey", "tally", q, "sheets.parquet", "-o", "tally.json")
    assert (counted["counted"], counted["rejected"]) == (6000, {})
    trained = result_of(run, "survey", "train", "tally.json", "-o", "model.trained.json")
    assert trained["guarantee"]["epsilon"] == pytest.approx(2.994, abs=1e-3)
    assert trained["prior"]["yes"] == pytest.approx(0.4, abs=0.08)  # 5 deviations
    run("survey", "randomize", q, "others.csv", "-o", "others.parquet", "--seed", 1)
    run("survey", "tally", q, "others.parquet", "-o", "others.json")
    found = result_of(
        run, "survey", "test", "model.trained.json", "others.json", "--level", 0.999999
    )
    # unseeded: a false alarm once in 1e6 runs
    truth = result_of(run, "evaluate", "model.trained.json", "others.csv")
    assert found["interval"][0] < truth["accuracy"] < found["interval"][1]
    share = result_of(run, "survey", "estimate", "tally.json", "burnout = yes and overtime = yes")
    assert share["share"] == pytest.approx(0.28, abs=0.14)  # 5 deviations
    assert share["noise_variance"] < share["variance"]
    assert share["unbiased_share"] == share["share"] == share["unbiased_count"] / 6000
    for command in (
        ("survey", "test", "model.trained.json", "others.json"),
        ("survey", "estimate", "tally.json", "burnout = yes"),
        ("survey", "train", "tally.json", "-o", "model.again.json"),
        ("survey", "tally", q, "sheets.parquet", "-o", "again.json"),
    ):
        assert run(*command).exit_code == 0
    assert NaiveBayesModel.read("model.trained.json").guarantee.trust == "survey"


def test_a_single_sheet_gives_shares_in_0_to_1_and_the_unbiased_numbers_beside(run, q, tmp_path):
    sheet = run("survey", "answer", q, "me.json", "--store", "kept").stdout
    (tmp_path / "one.jsonl").write_text(sheet)
    run("survey", "tally", q, "one.jsonl", "-o", "one.json")
    for predicate in ("burnout = yes", "burnout = no"):
        found = result_of(run, "survey", "estimate", "one.json", predicate)
        low, high = found["interval"]
        assert 0 <= low <= found["share"] <= high <= 1
        assert high - low > 0.5
        assert found["unbiased_share"] < 0 or found["unbiased_share"] > 1
        shown = run("survey", "estimate", "one.json", predicate).stdout
        assert f"unbiased   {found['unbiased_share']:.4f}" in shown
    run("survey", "train", "one.json", "-o", "m.json")
    tested = result_of(run, "survey", "test", "m.json", "one.json")
    assert 0 <= tested["interval"][0] <= tested["accuracy"] <= tested["interval"][1] <= 1
    assert (
        f"unbiased   {tested['unbiased']:.3f}" in run("survey", "test", "m.json", "one.json").stdout
    )


@pytest.mark.slow
def test_sheets_in_words_keep_their_ids_and_their_simulation(run, q, tmp_path):
    assert run("survey", "randomize", q, "true.csv", "-o", "s.csv", "--seed", 3).exit_code == 0
    first = result_of(run, "survey", "tally", q, "s.csv", "-o", "one.json")
    assert (first["counted"], first["simulated"]) == (6000, True)
    twice = result_of(run, "survey", "tally", q, "s.csv", "s.csv", "-o", "two.json")
    assert (twice["counted"], twice["repeated"]) == (6000, 6000)
    lines = (tmp_path / "s.csv").read_text().splitlines()
    (tmp_path / "bad.csv").write_text("\n".join([*lines[:3], lines[3] + "x", "zzz"]) + "\n")
    bad = result_of(run, "survey", "tally", q, "bad.csv", "-o", "three.json")
    assert (bad["counted"], bad["rejected"]) == (2, {"misshapen": 2})
    both = run("survey", "tally", q, "--merge", "one.json", "--merge", "one.json", "-o", "x.json")
    assert both.exit_code == 2
    assert "would count twice" in both.stderr


def test_one_person_sends_one_sheet(run, q, tmp_path):
    first = run("survey", "answer", q, "me.json", "--store", "kept")
    assert first.exit_code == 0
    (tmp_path / "me.json").write_text(json.dumps({**ME, "burnout": "no"}))
    assert run("survey", "answer", q, "me.json", "--store", "kept").stdout == first.stdout
    (tmp_path / "sheet.jsonl").write_text(first.stdout * 2 + "rubbish\n")
    counted = result_of(run, "survey", "tally", q, "sheet.jsonl", "-o", "t.json")
    assert (counted["counted"], counted["repeated"]) == (1, 1)
    assert counted["rejected"] == {"misshapen": 1}
    by_hand = result_of(run, "survey", "answer", q, "me.json", "--store", "hand", "--by-hand")
    assert by_hand["sheet"]["value"] == [1, 0, 0, 1, 0]
    assert "own randomization device" in by_hand["guarantee"]["text"]


def test_check_and_privacy_say_what_may_be_relied_on(run, q, tmp_path):
    checked = run("survey", "check", q)
    assert "epsilon = 2.99445" in result_of(run, "survey", "check", q)["guarantee"]["text"]
    found = result_of(run, "survey", "privacy", q)
    assert found["epsilon"] == pytest.approx(sum(g["epsilon"] for g in found["groups"]))
    assert len(found["questions"]) == 5
    assert found["posteriors"]["burnout"]["yes"]["yes"] == pytest.approx(0.7)
    page = run("survey", "privacy", q).stdout
    for words in (
        "PSE",
        "REC II",
        "chance that a guess",
        "rules between",
        "epsilon",
        "at most a factor of 20",
    ):
        assert words in page, words
    assert found["sentence"] in checked.stdout
    (tmp_path / "prior.json").write_text('{"burnout": [0.9, 0.1]}')
    stated = result_of(run, "survey", "privacy", q, "--prior", "prior.json")
    burnout = next(one for one in stated["questions"] if one["name"] == "burnout")
    assert burnout["before"] < 0.18


def test_size_goes_from_precision_to_respondents_and_back(run, refused, q):
    found = result_of(run, "survey", "size", q, "--precision", 0.02)
    back = result_of(run, "survey", "size", q, "--respondents", found["respondents"])
    assert found == back
    assert max(one["standard_error"] for one in back["precision"]) <= 0.02
    assert 1000 < found["respondents"] < 20_000  # a survey that somebody could run
    page = run(
        "survey", "size", q, "--respondents", 3000, "burnout = yes and overtime = yes"
    ).stdout
    assert "burnout = yes and overtime = yes" in page
    assert "3,000 respondents, epsilon 2.995" in page
    assert "one of them" in run("survey", "size", q).stderr
    assert "between 0 and 1" in refused("survey", "size", q, "--precision", "nan")
    assert "no question 'x'" in refused("survey", "size", q, "--precision", 0.1, "x = 1")


@pytest.mark.slow
def test_files_of_every_kind_are_one_delivery(run, q, tmp_path):
    """JSON lines, CSV and Parquet with the same sheets: each counts once."""
    survey = Questionnaire.read(q)
    run("survey", "randomize", q, "true.csv", "-o", "s.csv")
    sheets = list(read_text_reports(survey, "s.csv"))[:40]
    with ReportFile("s.parquet", survey) as file:
        file.add_reports(sheets)
    lines = (tmp_path / "s.csv").read_text().splitlines(keepends=True)
    (tmp_path / "s.csv").write_text("".join(lines[:41]))
    (tmp_path / "s.jsonl").write_text("".join(sheet.to_json() for sheet in sheets))
    for files in (("s.jsonl", "s.parquet"), ("s.csv", "s.parquet"), ("s.csv", "s.jsonl")):
        counted = result_of(run, "survey", "tally", q, *files, "-o", "t.json")
        assert (counted["counted"], counted["repeated"]) == (40, 40)
    run("survey", "tally", q, "s.parquet", "-o", "one.json")
    again = run("survey", "tally", q, "s.jsonl", "--merge", "one.json", "-o", "two.json")
    assert again.exit_code == 2
    assert "would count twice" in again.stderr


def test_the_truth_is_sent_only_when_told_so(refused, run, q, tmp_path):
    text = (tmp_path / q).read_text().replace("personal: device", "personal: own")
    (tmp_path / "own.yaml").write_text(text)
    answer = ("survey", "answer", "own.yaml", "me.json", "--store", "kept", "--personal", "me.json")
    assert "promises no epsilon" in refused(*answer)
    assert run(*answer, "--unprotected").exit_code == 0


def test_no_epsilon_is_said_in_words(run, q, tmp_path):
    text = (tmp_path / q).read_text().replace("personal: device", "personal: own")
    (tmp_path / "own.yaml").write_text(text)
    page = run("survey", "privacy", "own.yaml").stdout
    assert "no epsilon" in page
    assert "none" in page
    assert result_of(run, "survey", "check", "own.yaml")["guarantee"]["epsilon"] == "inf"


@pytest.mark.slow
def test_json_and_yaml_are_the_same_questionnaire(run, q):
    run("survey", "new", "-o", "q.json")
    one, two = (result_of(run, "survey", "check", name)["digest"] for name in (q, "q.json"))
    assert one == two == Questionnaire.read("q.json").digest
    assert run("survey", "check", q, "-o", "device.json").exit_code == 0
    assert Questionnaire.read("device.json").digest == one
    assert run("survey", "new").stdout.startswith("# A randomized-response questionnaire")


def test_the_form_is_for_printing(run, q, tmp_path):
    assert run("survey", "form", q, "-o", "form.html").exit_code == 0
    assert "Draw a whole number from 1 to 5" in (tmp_path / "form.html").read_text()
    words = ("survey", "form", q, "-o", "form.html", "--force", "--language")
    assert run(*words, "de").exit_code == 0
    assert "Ziehen Sie eine ganze Zahl von 1 bis 5" in (tmp_path / "form.html").read_text()
    assert "there are en, de: write --texts FILE" in run(*words, "fr").stderr


def test_the_form_takes_its_questions_from_an_announcement(run, q, tmp_path):
    assert run("announce", q, "--example", "-o", "words.yaml").exit_code == 0
    made = run("survey", "form", q, "--announcement", "words.yaml", "-o", "form.html")
    assert made.exit_code == 0, made.output
    lost = run(
        "survey", "form", q, "--announcement", "words.yaml", "--language", "de", "-o", "f.html"
    )
    assert "has no words in 'de', there are: en; add them there" in lost.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "none.yaml"), "no such file"),
        (("check", "others.csv"), "questionnaire"),
        (("new", "-o", "q.txt"), ".yaml or .json"),
        (("answer", "q.yaml", "none.json", "--store", "k"), "no such file"),
        (("answer", "q.yaml", "bad.json", "--store", "k"), "sleep: there is no answer"),
        (("randomize", "q.yaml", "true.csv", "-o", "x.txt"), ".csv or .parquet"),
        (("randomize", "q.yaml", "bad.csv", "-o", "x.csv"), "lacks the column"),
        (("tally", "q.yaml", "none.jsonl", "-o", "t.json"), "no such file"),
        (("tally", "q.yaml", "bad.csv", "-o", "t.json"), "lacks the column"),
        (("train", "q.yaml", "-o", "m.json"), "q.yaml"),
        (("test", "model.json", "empty.json"), "empty"),
        (("estimate", "empty.json", "burnout = perhaps"), "not one of its answers"),
        (("privacy", "q.yaml", "--prior", "bad.json"), "a prior is one JSON object"),
        (("privacy", "q.yaml", "--prior", "words.json"), "give 2 probabilities that add up to 1"),
        (("privacy", "q.yaml", "--prior", "deep.json"), "a prior is one JSON object"),
        (("privacy", "q.yaml", "--model", "model.json"), "other questions"),
        (("estimate", "empty.json", "not " * 3000 + "burnout = yes"), "empty"),
        (("estimate", "empty.json", "(" * 3000), "more than 100 parentheses"),
    ],
)
def test_errors_are_one_sentence_and_exit_code_two(refused, run, q, tmp_path, arguments, words):
    (tmp_path / "bad.json").write_text('{"burnout": "perhaps"}')
    (tmp_path / "words.json").write_text('{"burnout": ["often", "never"]}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "bad.csv").write_text("burnout\nyes\n")
    (tmp_path / "empty.jsonl").write_text("")
    run("survey", "tally", q, "empty.jsonl", "-o", "empty.json")
    if arguments[0] == "randomize" and arguments[2] == "bad.csv":
        result = run("survey", *arguments)  # the warning comes first
        assert result.exit_code == 2
        assert words in result.stderr
        return
    assert words in refused("survey", *arguments)
