"""``discreet local``: a collection as a row of files, from the plan to predictions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from discreet.cli import main
from discreet.datasets import make_mortgage
from discreet.local import Plan, Report, Tally
from discreet.model import NaiveBayesModel

Run = Callable[..., Result]
Refused = Callable[..., str]

ORACLES = ["auto", "de", "sue", "oue", "she", "the", "ss", "olh", "hr"]
GAUSSIAN = [
    ["--approach", "1"],
    ["--approach", "2", "--mechanism", "one-bit"],
    ["--approach", "2", "--mechanism", "duchi"],
    ["--approach", "2", "--mechanism", "piecewise"],
    ["--approach", "3"],
    ["--approach", "hybrid"],
]
KINDS = [
    *(["--oracle", name] for name in ORACLES),
    ["--oracle", "the", "--theta", "0.25", "--kind", "paper"],
    ["--kind", "pairs", "--bins", "4"],
    ["--assignment", "groups"],
    *(["--numeric", "gaussian", *how] for how in GAUSSIAN),
]
PEOPLE = 3000


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mortgage population and its schema, as ``discreet datasets fetch`` writes them."""
    folder = tmp_path_factory.mktemp("town")
    fetched = ["datasets", "fetch", "mortgage", "-o", str(folder), "--rows", str(PEOPLE)]
    assert CliRunner().invoke(main, fetched).exit_code == 0
    return folder


@pytest.fixture
def here(run: Run, town: Path, tmp_path: Path) -> Path:
    for name in ("mortgage.csv", "mortgage.schema.json"):
        (tmp_path / name).symlink_to(town / name)
    return tmp_path


@pytest.fixture
def ok(run: Run, here: Path) -> Run:
    def invoke(*arguments: object) -> Result:
        result = run(*arguments)
        assert result.exit_code == 0, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture
def planned(ok: Run) -> Plan:
    ok("local", "plan", "mortgage.schema.json", "--epsilon", 1, "-o", "plan.json")
    return Plan.read("plan.json")


def records(number: int) -> list[dict[str, Any]]:
    frame = make_mortgage(number).frame
    return [
        {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def reports_in(ok: Run, number: int) -> list[str]:
    """Reports of some people, each made on a device of its own."""
    lines = []
    for place, record in enumerate(records(number)):
        Path("me.json").write_text(json.dumps(record))
        made = ok("local", "report", "plan.json", "me.json", "--store", f"kept{place}")
        lines.append(made.stdout)
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("options", KINDS, ids=" ".join)
def test_from_a_plan_to_predictions_through_files(ok: Run, options: list[str]) -> None:
    arguments = ["--epsilon", 2, "--respondents", PEOPLE, *options, "-o", "plan.json"]
    shown = ok("local", "plan", "mortgage.schema.json", *arguments).stdout
    assert "epsilon = 2 per person" in shown
    perturbed = ok("local", "perturb", "plan.json", "mortgage.csv", "-o", "r.parquet")
    assert "raw data" in perturbed.stderr
    assert f"{PEOPLE:,} reports" in perturbed.stderr
    ok("local", "tally", "plan.json", "r.parquet", "-o", "tally.json")
    assert Tally.read("tally.json").reports == PEOPLE
    trained = ok("local", "train", "tally.json", "-o", "trained.json").stdout
    assert "epsilon = 2 per person" in trained
    assert f"{PEOPLE:,} counted" in trained
    model = NaiveBayesModel.read("trained.json")
    assert model.guarantee.is_private
    assert model.guarantee.epsilon == 2
    assert model.guarantee.trust == "local"
    scores = json.loads(ok("evaluate", "trained.json", "mortgage.csv", "--json").stdout)
    assert scores["rows"] == PEOPLE
    ok("predict", "trained.json", "mortgage.csv", "-o", "predicted.csv")
    assert len(Path("predicted.csv").read_text().splitlines()) == PEOPLE + 1


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES)
def test_every_oracle_beats_the_majority_class(ok: Run, oracle: str) -> None:
    plan = ["--epsilon", 5, "--respondents", PEOPLE, "--oracle", oracle, "-o", "plan.json"]
    ok("local", "plan", "mortgage.schema.json", *plan)
    ok("local", "perturb", "plan.json", "mortgage.csv", "-o", "r.parquet", "--seed", 3)
    ok("local", "tally", "plan.json", "r.parquet", "-o", "tally.json")
    ok("local", "train", "tally.json", "-o", "trained.json")
    scores = json.loads(ok("evaluate", "trained.json", "mortgage.csv", "--json").stdout)
    assert scores["accuracy"] > 0.74  # always "no" is right for 0.69


@pytest.mark.slow
@pytest.mark.parametrize("postprocess", ["none", "paper", "norm-sub", "norm-cut", "bayes"])
def test_the_cleaning_up_is_a_choice(ok: Run, planned: Plan, postprocess: str) -> None:
    ok("local", "perturb", "plan.json", "mortgage.csv", "-o", "r.parquet")
    ok("local", "tally", "plan.json", "r.parquet", "-o", "tally.json")
    ok("local", "train", "tally.json", "-o", "trained.json", "--postprocess", postprocess)
    ok("evaluate", "trained.json", "mortgage.csv")


def test_without_noise_the_model_is_good(ok: Run) -> None:
    ok("local", "plan", "mortgage.schema.json", "--epsilon", "inf", "-o", "plan.json")
    ok("local", "perturb", "plan.json", "mortgage.csv", "-o", "r.parquet")
    ok("local", "tally", "plan.json", "r.parquet", "-o", "tally.json")
    assert "no" in ok("local", "train", "tally.json", "-o", "trained.json").stdout
    scores = json.loads(ok("evaluate", "trained.json", "mortgage.csv", "--json").stdout)
    assert scores["accuracy"] > 0.78


# plan


def test_a_plan_says_what_will_be_asked(ok: Run, planned: Plan) -> None:
    shown = ok("local", "plan", "mortgage.schema.json", "--epsilon", 1, "-o", "again.json").stdout
    assert planned.digest in shown
    for question in planned.questions:
        assert question.mechanism.name in shown
    assert Path("again.json").read_text() == Path("plan.json").read_text()
    body = json.loads(
        ok("local", "plan", "mortgage.schema.json", "--epsilon", 1, "-o", "p.json", "--json").stdout
    )
    assert body["digest"] == planned.digest
    assert sum(one["share"] for one in body["questions"]) == pytest.approx(1)
    assert body["guarantee"]["epsilon"] == 1


def test_a_plan_can_go_to_standard_output(ok: Run, planned: Plan) -> None:
    result = ok("local", "plan", "mortgage.schema.json", "--epsilon", 1)
    assert Plan.from_json(result.stdout).digest == planned.digest
    assert "share" in result.stderr


def test_several_reports_share_the_epsilon(ok: Run) -> None:
    plan = ["local", "plan", "mortgage.schema.json", "--epsilon", 1, "--reports", 4, "-o", "p.json"]
    assert "4 reports per person" in ok(*plan).stdout
    made = Plan.read("p.json")
    assert (made.epsilon, made.report_epsilon, made.guarantee.epsilon) == (1.0, 0.25, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.json", "--epsilon", 1], "there is no such file"),
        (["mortgage.csv", "--epsilon", 1], "mortgage.csv: this is not a schema"),
        (["mortgage.schema.json", "--epsilon", 0], "above 0"),
        (["mortgage.schema.json", "--epsilon", -1], "above 0"),
        (["mortgage.schema.json", "--epsilon", "nan"], "above 0"),
        (["mortgage.schema.json", "--epsilon", 1, "--theta", 0.3], "no theta"),
        (["mortgage.schema.json", "--epsilon", 1, "--oracle", "the", "--theta", 7], "theta is 7"),
        (["mortgage.schema.json", "--epsilon", 1, "-o", "no/folder/p.json"], "does not exist"),
    ],
)
def test_a_plan_that_cannot_be_made(
    here: Path, refused: Refused, arguments: list[Any], message: str
) -> None:
    assert message in refused("local", "plan", *arguments)


# report


def test_a_device_prints_its_one_report(ok: Run, planned: Plan) -> None:
    first, second = records(2)
    Path("me.json").write_text(json.dumps(first))
    made = ok("local", "report", "plan.json", "me.json", "--store", "kept").stdout
    assert Report.from_json(made).collection == planned.digest
    (kept,) = Path("kept").glob("*.report.json")
    assert json.loads(kept.read_text())["report"] == made
    assert ok("local", "report", "plan.json", "me.json", "--store", "kept").stdout == made
    Path("me.json").write_text(json.dumps(second))
    assert ok("local", "report", "plan.json", "me.json", "--store", "kept").stdout == made
    body = json.loads(
        ok("local", "report", "plan.json", "me.json", "--store", "kept", "--json").stdout
    )
    assert body["report"]["id"] == Report.from_json(made).id
    assert body["guarantee"]["epsilon"] == 1


def test_a_record_may_come_from_standard_input(ok: Run, planned: Plan) -> None:
    arguments = ["local", "report", "plan.json", "-", "--store", "kept"]
    result = CliRunner().invoke(main, arguments, input=json.dumps(records(1)[0]))
    assert Report.from_json(result.stdout).collection == planned.digest


def test_a_second_report_needs_a_plan_that_allows_it(ok: Run, refused: Refused) -> None:
    Path("me.json").write_text(json.dumps(records(1)[0]))
    report = ["local", "report", "plan.json", "me.json", "--store", "kept"]
    ok("local", "plan", "mortgage.schema.json", "--epsilon", 1, "-o", "plan.json")
    ok(*report)
    assert "already sent 1 of 1" in refused(*report, "--again")
    plan = ["local", "plan", "mortgage.schema.json", "--epsilon", 1, "--reports", 2]
    ok(*plan, "-o", "plan.json", "--force")
    assert "only 1 is allowed in total" in refused(*report)
    first = ok(*report, "--allow", 2).stdout
    assert first != ok(*report, "--again").stdout
    assert "already sent 2 of 2" in refused(*report, "--again")


def test_the_truth_is_sent_only_when_told_so(ok: Run, refused: Refused) -> None:
    ok("local", "plan", "mortgage.schema.json", "--epsilon", "inf", "-o", "plan.json")
    Path("me.json").write_text(json.dumps(records(1)[0]))
    report = ["local", "report", "plan.json", "me.json", "--store", "kept"]
    assert "promises no epsilon" in refused(*report)
    assert not Path("kept").exists()
    assert Report.from_json(ok(*report, "--unprotected").stdout).value


def test_an_assigned_question_is_answered(ok: Run, refused: Refused) -> None:
    plan = ["local", "plan", "mortgage.schema.json", "--epsilon", 1, "--assignment", "groups"]
    ok(*plan, "-o", "plan.json")
    Path("me.json").write_text(json.dumps(records(1)[0]))
    report = ["local", "report", "plan.json", "me.json", "--store", "kept"]
    assert "group" in refused(*report)
    assert Report.from_json(ok(*report, "--group", 3).stdout).question == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "a record is one JSON object"),
        ("{", "a record is one JSON object"),
        ("{}", "the record has no missed_payment"),
        ('{"missed_payment": "perhaps"}', "'perhaps' is not one of"),
        ('{"missed_payment": "no", "height": 1}', "height, which is not asked for"),
    ],
)
def test_a_record_that_does_not_fit(
    planned: Plan, refused: Refused, content: str, message: str
) -> None:
    Path("me.json").write_text(content)
    assert message in refused("local", "report", "plan.json", "me.json", "--store", "kept")
    assert not Path("kept").exists()


def test_no_record_and_no_plan(planned: Plan, refused: Refused) -> None:
    nothing = ["nothing.json", "--store", "kept"]
    assert "nothing.json: there is no such file" in refused(
        "local", "report", "plan.json", *nothing
    )
    Path("me.json").write_text("{}")
    assert "not a discreet plan" in refused("local", "report", "me.json", *nothing)


# perturb


def test_a_seed_repeats_itself_and_ends_the_promise(ok: Run, planned: Plan) -> None:
    files = []
    for name in ("a", "b"):
        perturb = ["local", "perturb", "plan.json", "mortgage.csv", "-o", f"{name}.parquet"]
        body = json.loads(ok(*perturb, "--seed", 7, "--json").stdout)
        assert body["reports"] == PEOPLE
        assert body["guarantee"]["simulated"]
        files.append(pq.read_table(f"{name}.parquet"))
    assert files[0].equals(files[1])
    shown = ok("local", "tally", "plan.json", "a.parquet", "-o", "tally.json").stdout
    assert "no promise holds" in shown
    ok("local", "train", "tally.json", "-o", "trained.json")
    assert not NaiveBayesModel.read("trained.json").guarantee.is_private


def test_without_a_seed_nothing_repeats(ok: Run, planned: Plan) -> None:
    for name in ("a", "b"):
        ok("local", "perturb", "plan.json", "mortgage.csv", "-o", f"{name}.parquet")
    a, b = (pq.read_table(f"{name}.parquet") for name in ("a", "b"))
    assert not set(a["id"].to_pylist()) & set(b["id"].to_pylist())
    assert a.column_names == ["id", "collection", "question", "value", "batch"]
    assert a["batch"].null_count == len(a)  # nothing was shuffled


def test_a_table_that_cannot_be_perturbed(ok: Run, planned: Plan, run: Run) -> None:
    def refused(*arguments: object) -> str:
        result = run("local", "perturb", *arguments, "-o", "r.parquet")
        assert result.exit_code == 2, (result.output, result.exception)
        assert not Path("r.parquet").exists()
        return result.stderr.splitlines()[-1]

    Path("odd.csv").write_text("age,missed_payment\n40,no\n")
    assert "lacks the column" in refused("plan.json", "odd.csv")
    text = Path("mortgage.csv").read_text().splitlines()
    Path("bad.csv").write_text("\n".join([*text[:3], text[3].replace("no", "maybe")]))
    Path("bad.csv").write_text("\n".join([text[0], text[1].rsplit(",", 1)[0] + ",maybe"]))
    assert "bad.csv: missed_payment: 'maybe'" in refused("plan.json", "bad.csv")
    assert "no such file" in refused("plan.json", "nothing.csv")
    ok("local", "plan", "mortgage.schema.json", "--epsilon", 1, "--reports", 2, "-o", "two.json")
    assert "--reports 1" in refused("two.json", "mortgage.csv")


# tally


@pytest.mark.slow
def test_reports_in_lines_and_in_parquet_come_to_the_same(ok: Run, planned: Plan) -> None:
    lines = reports_in(ok, 12)
    junk = ["not a report\n", "\n", lines[0], Report("sha256:x", "0" * 32, 0, (0,)).to_json()]
    Path("a.jsonl").write_text("".join(lines[:7]))
    Path("b.jsonl").write_text("".join([*lines[7:], *junk]))
    body = json.loads(
        ok("local", "tally", "plan.json", "*.jsonl", "-o", "tally.json", "--json").stdout
    )
    assert (body["counted"], body["repeated"]) == (12, 1)
    assert body["rejected"] == {"misshapen": 1, "foreign plan": 1}
    one = Tally.read("tally.json")
    assert len(one.seen) == 12
    ok("local", "perturb", "plan.json", "mortgage.csv", "-o", "r.parquet")
    both = ["local", "tally", "plan.json", "r.parquet", "a.jsonl", "b.jsonl", "a.jsonl"]
    shown = ok(*both, "-o", "both.json").stdout
    assert "invalid (misshapen): 1" in shown
    ok("local", "tally", "plan.json", "r.parquet", "-o", "r.json")
    whole, part = Tally.read("both.json"), Tally.read("r.json")
    assert whole.reports == PEOPLE + 12
    assert whole.repeated == 1 + 7
    assert whole.rejected == one.rejected
    for all_, some, few in zip(whole.sums, part.sums, one.sums, strict=True):
        assert all_.tolist() == (some + few).tolist()


@pytest.mark.slow
def test_tallies_are_merged(ok: Run, refused: Refused, planned: Plan) -> None:
    lines = reports_in(ok, 6)
    for name, some in {"a": lines[:4], "b": lines[4:], "c": lines[3:]}.items():
        Path(f"{name}.jsonl").write_text("".join(some))
        ok("local", "tally", "plan.json", f"{name}.jsonl", "-o", f"{name}.json")
    merge = ["local", "tally", "plan.json", "-o", "all.json", "--merge"]
    ok(*merge, "a.json", "--merge", "b.json")
    assert Tally.read("all.json").reports == 6
    ok("local", "tally", "plan.json", "a.jsonl", "--merge", "b.json", "-o", "more.json")
    assert Path("more.json").read_text() == Path("all.json").read_text()
    assert "in both tallies" in refused(*merge, "a.json", "--merge", "c.json")
    ok("local", "perturb", "plan.json", "mortgage.csv", "-o", "r.parquet")
    result = ok("local", "tally", "plan.json", "r.parquet", "--merge", "a.json", "-o", "m.json")
    assert "keep a sample of their ids" in result.stderr
    assert "would count twice" in refused(*merge, "m.json", "--merge", "a.json")
    assert Tally.read("m.json").reports == PEOPLE + 4


def test_what_cannot_be_tallied(ok: Run, run: Run, refused: Refused, planned: Plan) -> None:
    tally = ["local", "tally", "plan.json", "-o", "tally.json"]
    assert run(*tally).exit_code == 2
    assert "no such file" in refused(*tally, "nothing.jsonl")
    assert "no such file" in refused(*tally, "nothing.parquet")
    Path("reports.txt2").write_text("no")
    assert "its name must end in" in refused(*tally, "reports.txt2")
    Path("broken.parquet").write_bytes(b"PAR1")
    assert "broken.parquet" in refused(*tally, "broken.parquet")
    ok("local", "plan", "mortgage.schema.json", "--epsilon", 2, "-o", "other.json")
    Path("empty.jsonl").write_text("")
    ok("local", "tally", "other.json", "empty.jsonl", "-o", "o.json")
    assert "different plans" in refused(*tally, "empty.jsonl", "--merge", "o.json")
    assert not Path("tally.json").exists()


def test_a_line_that_is_far_too_long_is_one_rejected_report(
    ok: Run, planned: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = reports_in(ok, 2)
    monkeypatch.setattr("discreet.collection.text_reports.MAX_REPORT_CHARACTERS", 1000)
    monkeypatch.setattr("discreet.collection.report.MAX_REPORT_CHARACTERS", 1000)
    Path("a.jsonl").write_text(lines[0] + "[" * 5000 + "\n" + lines[1])
    ok("local", "tally", "plan.json", "a.jsonl", "-o", "tally.json")
    tally = Tally.read("tally.json")
    assert (tally.reports, tally.rejected) == (2, {"misshapen": 1})


# train


def test_what_cannot_be_trained(ok: Run, refused: Refused, planned: Plan) -> None:
    Path("empty.jsonl").write_text("")
    ok("local", "tally", "plan.json", "empty.jsonl", "-o", "tally.json")
    assert "tally.json: the tally is empty" in refused(
        "local", "train", "tally.json", "-o", "m.json"
    )
    assert "not a discreet tally" in refused("local", "train", "plan.json", "-o", "m.json")
    assert not Path("m.json").exists()


def test_training_says_what_it_did_to_scripts(ok: Run, planned: Plan) -> None:
    ok("local", "perturb", "plan.json", "mortgage.csv", "-o", "r.parquet")
    ok("local", "tally", "plan.json", "r.parquet", "-o", "tally.json")
    body = json.loads(ok("local", "train", "tally.json", "-o", "trained.json", "--json").stdout)
    assert body["reports"] == PEOPLE
    assert sum(body["prior"].values()) == pytest.approx(1)
    assert body["guarantee"]["trust"] == "local"


# help


@pytest.mark.parametrize("step", ["plan", "report", "perturb", "tally", "train"])
def test_every_step_has_help_with_an_example(run: Run, step: str) -> None:
    result = run("local", step, "--help")
    assert result.exit_code == 0
    assert f"discreet local {step}" in result.output.split("Example:")[1]


def test_help_lists_the_steps_without_importing_them(run: Run) -> None:
    for name in [name for name in sys.modules if name.startswith("discreet.cli.local.")]:
        del sys.modules[name]
    result = run("local", "--help")
    assert all(step in result.output for step in ("plan", "report", "perturb", "tally", "train"))
    assert not [name for name in sys.modules if name.startswith("discreet.cli.local.")]
    assert run("local", "nonsense").exit_code == 2
