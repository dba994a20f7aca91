"""Judging waves: one randomized bit a person chooses among models that follow from others."""

import json
from dataclasses import replace

import numpy as np
import pytest

from commands import run
from discreet import EstimationError, FormatError, LocalNB
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.collection.simulation import simulate_tally
from discreet.collection.tally import Tally
from discreet.errors import PrivacyError, SchemaError
from discreet.estimation import estimate
from discreet.files.documents import dump_document
from discreet.local import Plan, PlanOptions, Question, estimate_statistics, make_plan
from discreet.local.judging import (
    apply_verdicts,
    compute_judges,
    list_judged_scorings,
)
from discreet.local.waves import check_shares, make_next_plan, next_plan
from discreet.mechanisms.frequency import DE, SUE
from discreet.privacy.shuffling import Shuffle
from discreet.randomness import as_random
from schemas import make_answer_schema

NAMES = "abcdef"
SCHEMA = make_answer_schema(NAMES, target="k", classes=["no", "yes"])


def copies(count, seed=0):
    """People of whom one yes/no question, right in 65 of 100, is asked in five spellings."""
    rng = np.random.default_rng(seed)
    y = rng.random(count) < 0.3
    hidden = np.where(rng.random(count) < 0.65, y, ~y)
    same = np.array([np.where(rng.random(count) < 0.98, hidden, ~hidden) for _ in NAMES[1:]])
    alone = np.where(rng.random(count) < 0.85, y, ~y)
    words = np.array(["n", "y"])
    columns = [alone, *same]
    X = {name: words[column.astype(int)] for name, column in zip(NAMES, columns, strict=True)}
    return X, np.array(["no", "yes"])[y.astype(int)]


def collected(plan, seed, count):
    X, y = copies(count, seed)
    return simulate_tally(plan, plan.encode_columns({**X, "k": y}), as_random(1000 + seed))


@pytest.fixture(scope="module")
def first():
    return collected(make_plan(SCHEMA, 2.0, 20_000), 1, 20_000)


@pytest.fixture(scope="module")
def judging(first):
    return next_plan([first], 25_000, kind="judge")


def test_a_judging_plan_follows_from_the_earlier_tallies(first, judging):
    assert (judging.wave.kind, judging.wave.number) == ("judge", 2)
    assert judging.judges_models
    assert not first.collection.judges_models
    assert {question.weight for question in judging.questions} == {1}
    assert {(one.mechanism.name, one.mechanism.size) for one in judging.questions} == {("de", 2)}
    assert list(judging.questions[0].features) == SCHEMA.names
    check_shares(judging, [first])
    again = Plan.from_json(judging.to_json())
    assert again.digest == judging.digest
    check_shares(again, [first])
    other = replace(judging, questions=judging.questions[:-1])
    with pytest.raises(EstimationError, match="do not follow"):
        check_shares(other, [first])


def test_a_device_reports_whether_the_model_is_right(judging):
    """At an epsilon that hides nothing the bit is what the model's own prediction says."""
    X, y = copies(60, 5)
    plain = [replace(question, mechanism=DE(float("inf"), 2)) for question in judging.questions]
    plan = replace(judging, epsilon=float("inf"), questions=plain)
    for row in range(60):
        record = {name: str(X[name][row]) for name in NAMES} | {"k": str(y[row])}
        person = Respondent(plan, MemoryStore(), unprotected=True, random_state=row)
        report = person.report(record)
        assert plan.get_asked_columns(report.question) == (
            *plan.questions[report.question].features,
            "k",
        )
        candidate = plan.questions[report.question].candidate
        scores = candidate.offsets.tolist()
        for name, table in candidate.tables.items():
            cell = "ny".index(record[name])
            scores = [a + int(b) for a, b in zip(scores, table[:, cell], strict=True)]
        right = ["no", "yes"][scores.index(max(scores))] == record["k"]
        assert report.value == (int(right),)


def test_verdicts_choose_the_better_model(first, judging):
    statistics = estimate_statistics(first)
    judged = apply_verdicts(statistics, collected(judging, 2, 20_000))
    assert judged.scoring in list_judged_scorings(statistics)[1:]
    X, y = copies(4000, 9)
    before, after = (np.mean(estimate(one).predict(X) == y) for one in (statistics, judged))
    assert after > before + 0.05
    assert judged.guarantee.epsilon == 2.0
    assert judged.guarantee.simulated


def test_the_promise_of_a_model_covers_its_judges(first):
    statistics = estimate_statistics(first)
    plan = next_plan([first], 25_000, kind="judge", epsilon=3.0)
    verdicts = Tally(plan)
    judged = apply_verdicts(statistics, verdicts)
    assert (statistics.guarantee.epsilon, judged.guarantee.epsilon) == (2.0, 3.0)
    honest = replace(statistics, guarantee=first.collection.guarantee)
    assert not apply_verdicts(honest, verdicts).guarantee.simulated
    assert apply_verdicts(honest, Tally(plan, simulated=True)).guarantee.simulated


def test_without_evidence_the_default_stays(first, judging):
    statistics = estimate_statistics(first)
    assert apply_verdicts(statistics, Tally(judging)).scoring == statistics.scoring
    for shares in ([50, 50, 50, 50], [50, 53, 40, 20]):
        tally = Tally(judging)
        for question, right in enumerate(shares):
            tally.add_values(question, [[1]] * right + [[0]] * (100 - right))
        assert apply_verdicts(statistics, tally).scoring == statistics.scoring


def test_models_that_follow_from_other_tallies_are_not_chosen(first, judging):
    verdicts = collected(judging, 2, 500)
    with pytest.raises(EstimationError, match="do not follow"):
        apply_verdicts(estimate_statistics(collected(first.collection, 77, 20_000)), verdicts)


def test_judges_say_nothing_about_features(first, judging):
    with pytest.raises(EstimationError, match="only say which candidate"):
        estimate_statistics(collected(judging, 2, 50))
    with pytest.raises(EstimationError, match="nothing follows"):
        next_plan([first, collected(judging, 2, 50)], 900)


def test_plans_of_another_shape_are_refused(judging):
    question = judging.questions[0]
    for mechanism, features in (
        (DE(2.0, 4), question.features),
        (question.mechanism, question.features[:-1]),
    ):
        with pytest.raises(SchemaError, match="wrong or right"):
            Question(features, mechanism, 1, candidate=question.candidate)
    mixed = [question, Question(("a",), DE(2.0, 4), 1)]
    with pytest.raises(SchemaError, match="plan of their own"):
        replace(judging, questions=mixed)
    body = json.loads(judging.to_json())
    table = body["questions"][0]["candidate"]["tables"]["a"]
    for wrong in ([row[:1] for row in table], table[:1], [[0.5, 1], [0, 0]], [[2**40, 1], [0, 0]]):
        body["questions"][0]["candidate"]["tables"]["a"] = wrong
        with pytest.raises(FormatError):
            Plan.from_json(dump_document("plan", body["version"], _without_header(body)))
    old = {**json.loads(judging.to_json()), "version": 4}
    with pytest.raises(FormatError, match="version 4"):
        Plan.from_json(json.dumps(old))


def _without_header(body):
    return {k: v for k, v in body.items() if k not in ("format", "version", "digest")}


def test_any_oracle_of_two_cells_may_carry_the_bit(judging):
    question = judging.questions[0]
    other = replace(question, mechanism=SUE(2.0, 2))
    plan = replace(judging, questions=[other], edges={})
    X, y = copies(200, 3)
    tally = simulate_tally(plan, plan.encode_columns({**X, "k": y}), as_random(0))
    assert tally.reports == 200


def test_it_pays_by_public_numbers_only():
    assert compute_judges(100_000, 1.0) == 20_000
    assert compute_judges(20_000, 1.0) == compute_judges(10**9, float("inf")) == 0
    assert compute_judges(20_000, 1.0, 1e-8) == 4000 == compute_judges(20_000, 4.0)
    assert compute_judges(20, 9.0) == 0


@pytest.mark.slow
def test_an_estimator_lets_a_fifth_judge_where_it_pays():
    X, y = copies(20_000)
    table = np.column_stack(list(X.values()))
    test_X, test_y = copies(4000, 9)
    test_table = np.column_stack(list(test_X.values()))
    for settings in ({"epsilon": 4.0}, {"epsilon": 1.0, "shuffled": True}):
        with_judges = LocalNB(**settings, schema=SCHEMA, random_state=0).fit(table, y)
        without = LocalNB(**settings, schema=SCHEMA, judge=False, random_state=0).fit(table, y)
        assert with_judges.judging_plan_.judges_models
        assert without.judging_plan_ is None
        assert with_judges.score(test_table, test_y) > without.score(test_table, test_y) + 0.04
        assert with_judges.guarantee_.epsilon == settings["epsilon"]
        assert estimate(with_judges.statistics_).to_json() == with_judges.model_.to_json()
    few = LocalNB(1.0, schema=SCHEMA, random_state=0).fit(table, y)
    assert few.judging_plan_ is None


@pytest.mark.slow
def test_a_shuffled_judging_wave_has_a_shuffle_of_its_own():
    shuffled = PlanOptions(shuffled=1e-6)
    first = collected(make_plan(SCHEMA, 1.0, 4000, shuffled), 1, 4000)
    plan = make_next_plan(SCHEMA, [first], 1.0, 1000, shuffled, judge=True)
    assert plan.shuffled == Shuffle(1.0, 1e-6, 1000)
    assert plan.judges_models
    assert 1.0 < plan.epsilon < first.collection.epsilon
    assert all(question.epsilon <= plan.epsilon for question in plan.questions)
    check_shares(plan, [first])
    # twin: the epsilon of the larger shuffle is not kept by the smaller one
    with pytest.raises(PrivacyError, match="let each reveal less"):
        replace(
            plan,
            epsilon=first.collection.epsilon,
            questions=[
                replace(one, mechanism=DE(first.collection.epsilon, 2)) for one in plan.questions
            ],
        )


@pytest.mark.slow
def test_plans_are_made_and_verdicts_used_on_the_command_line(tmp_path, capsys, first, judging):
    verdicts = collected(judging, 2, 20_000)
    paths = {name: tmp_path / f"{name}.json" for name in ("schema", "t1", "t2", "plan", "model")}
    for name, document in (("schema", SCHEMA), ("t1", first), ("t2", verdicts)):
        paths[name].write_text(document.to_json())
    make = ["local", "plan", paths["schema"], "--epsilon", 2, "--respondents", 25_000, "--judge"]
    after = ["--after", paths["t1"]]
    code, out, _ = run(capsys, *make, *after, "-o", paths["plan"])
    assert code == 0
    assert "judge: k by 6 features" in out
    assert Plan.read(paths["plan"]).digest == judging.digest
    assert "computed again" in run(capsys, "local", "check", paths["plan"], *after)[1]
    train = ["local", "train", "-o", paths["model"]]
    assert run(capsys, *train, paths["t1"], paths["t2"])[0] == 0
    judged = apply_verdicts(estimate_statistics(first), verdicts)
    assert paths["model"].read_text() == estimate(judged).to_json()
    for wrong, reason in (
        (make, "--judge goes with --after"),
        ([*make, *after, "--oracle", "oue"], "--judge goes with --after"),
        ([*train, paths["t2"]], "only say which candidate"),
        ([*train, paths["t2"], paths["t1"]], "only say which candidate"),
        ([*train, paths["t1"], paths["t2"], "--postprocess", "paper"], "do not follow"),
    ):
        code, _, err = run(capsys, *wrong, *(["--force"] if wrong[1] == "train" else []))
        assert code != 0
        assert reason in " ".join(err.split())
