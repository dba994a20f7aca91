"""Claims: a plan says everything, travels unchanged, and cannot promise more than it keeps."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.files.documents import compute_digest, encode_canonical
from discreet.local.plan import Plan, Question
from discreet.local.planning import PlanOptions, make_plan
from discreet.mechanisms.frequency import DE
from discreet.mechanisms.mean import Duchi, DuchiMany, HybridMany, LaplaceMean, PiecewiseMany
from discreet.randomness import SeededRandom
from discreet.schema.schema import Categorical, Schema

Edit = Callable[[dict[str, Any]], None]


def resealed(plan: Plan, edit: Edit) -> str:
    """The plan's file after an edit, with a digest that fits again."""
    whole = json.loads(plan.to_json())
    whole.pop("digest")
    edit(whole)
    return json.dumps({**whole, "digest": compute_digest(encode_canonical(whole))})


def test_a_plan_comes_back_from_json_unchanged(any_plan: Plan) -> None:
    again = Plan.from_json(any_plan.to_json())
    assert again.digest == any_plan.digest == json.loads(any_plan.to_json())["digest"]
    assert again.to_json() == any_plan.to_json()
    assert [question.mechanism for question in again.questions] == [
        question.mechanism for question in any_plan.questions
    ]
    assert again.guarantee == any_plan.guarantee


def test_the_digest_names_everything(schema: Schema, plan: Plan) -> None:
    others = [
        make_plan(schema, 1.5, 500),
        make_plan(schema, 1.0, 500, PlanOptions(oracle="hr")),
        make_plan(schema, 1.0, 500, PlanOptions(bins=4)),
        make_plan(schema, 1.0, 500, PlanOptions(assignment="groups")),
        make_plan(schema, 1.0, 500, PlanOptions(focus={"age": 3.0})),
    ]
    assert len({plan.digest, *(other.digest for other in others)}) == 6
    assert make_plan(schema, 1.0, 500).digest == plan.digest


def test_a_whole_number_as_epsilon_gives_the_same_digest(schema: Schema) -> None:
    question = Question((), DE(1, 2), 1)
    assert Plan(schema, 1, [question]).digest == Plan(schema, 1.0, [question]).digest
    assert Plan.from_json(Plan(schema, 1, [question]).to_json()).epsilon == 1.0


def test_no_protection_is_written_as_such(schema: Schema) -> None:
    plan = make_plan(schema, math.inf, 500, PlanOptions(oracle="de", kind="pairs"))
    assert math.isinf(Plan.from_json(plan.to_json()).guarantee.epsilon)


def weaker_coin(whole: dict[str, Any]) -> None:
    """The coin of truth of epsilon 8 under the name of epsilon 1."""
    question = whole["questions"][0]
    question["parameters"]["p"] = DE(8.0, question["size"]).get_parameters()["p"]


def test_probabilities_weaker_than_the_epsilon_are_refused(schema: Schema) -> None:
    plan = make_plan(schema, 1.0, 500, PlanOptions(oracle="de"))
    with pytest.raises(FormatError, match="not those of size"):
        Plan.from_json(resealed(plan, weaker_coin))


def test_noise_weaker_than_the_epsilon_is_refused(schema: Schema) -> None:
    plan = make_plan(schema, 1.0, 500, PlanOptions(numeric="gaussian", approach=1))
    last = len(plan.questions) - 1

    def less_noise(whole: dict[str, Any]) -> None:
        parameters = whole["questions"][last]["parameters"]
        parameters["scale_2_32"] = str(int(parameters["scale_2_32"]) // 2)

    def more_epsilon(whole: dict[str, Any]) -> None:  # consistent, but not what the plan says
        strong = LaplaceMean(2.0, plan.questions[last].mechanism.size, active=2)
        whole["questions"][last]["parameters"] = strong.get_parameters()

    def fewer_active(whole: dict[str, Any]) -> None:
        one = LaplaceMean(1.0, plan.questions[last].mechanism.size, active=1)
        whole["questions"][last]["parameters"] = one.get_parameters()

    for edit, message in (
        (less_noise, "not those of its epsilon"),
        (more_epsilon, "spends 2.0, the plan promises 1.0"),
        (fewer_active, "asked at once"),
    ):
        with pytest.raises(FormatError, match=message):
            Plan.from_json(resealed(plan, edit))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda whole: whole.update(epsilon=0.5), "the plan promises 0.5"),
        (lambda whole: whole.update(epsilon=0), "above 0"),
        (lambda whole: whole.update(reports=0), "reports is 0"),
        (lambda whole: whole.update(reports=10**9), "1 to 1000"),
        (lambda whole: whole.update(reports=True), "canonical form"),
        (lambda whole: whole.update(reports="1"), "canonical form"),
        (lambda whole: whole.update(assignment="mine"), "invalid at assignment"),
        (lambda whole: whole.update(questions=[]), "at least one question"),
        (lambda whole: whole.update(extra=1), "invalid at extra"),
        (lambda whole: whole["edges"]["age"].reverse(), "increase strictly"),
        (lambda whole: whole["edges"]["age"].__setitem__(0, 0.0), "public bounds"),
        (lambda whole: whole["edges"].update(colour=[0.0, 1.0]), "not asked by bin"),
        (lambda whole: whole["edges"].pop("age"), "no edges for it"),
        (lambda whole: whole["questions"][0].update(mechanism="auto"), "canonical form"),
        (lambda whole: whole["questions"][0].update(mechanism="xor"), "oracle is 'xor'"),
        (lambda whole: whole["questions"][0].update(weight=0), "at least 1"),
        (lambda whole: whole["questions"][0].update(weight=1 << 60), "2\\^53"),
        (lambda whole: whole["questions"][0].update(features=["height"]), "no feature 'height'"),
        (lambda whole: whole["questions"][0].update(power=1), "mechanism is 'de'"),
        (lambda whole: whole["schema"].update(target="colour"), "contradicts itself"),
    ],
)
def test_an_edited_plan_is_refused_even_with_a_right_digest(
    schema: Schema, edit: Edit, message: str
) -> None:
    plan = make_plan(schema, 1.0, 500, PlanOptions(oracle="de"))
    with pytest.raises(FormatError, match=message):
        Plan.from_json(resealed(plan, edit))


def test_the_digest_finds_careless_edits(plan: Plan) -> None:
    text = plan.to_json().replace('"assignment": "draw"', '"assignment": "groups"')
    with pytest.raises(FormatError, match="changed or damaged"):
        Plan.from_json(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-40], "incomplete"),
        (lambda text: "", "is empty"),
        (lambda text: "[]", "holds a list, not keys with values"),
        (lambda text: text.replace("discreet/plan", "discreet/model"), "not a discreet plan"),
        (lambda text: text.replace('"version": 5', '"version": 6'), "update discreet"),
        (lambda text: text.replace('"version": 5', '"version": 4'), "version 4"),
    ],
)
def test_what_is_no_plan_is_refused(plan: Plan, change: Callable[[str], str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Plan.from_json(change(plan.to_json()))


def test_a_plan_that_no_device_could_follow_is_refused(schema: Schema) -> None:
    alone = Question((), DE(1.0, 2), 1)
    with pytest.raises(PrivacyError, match="question 1 spends 2"):
        Plan(schema, 1.0, [alone, Question((), DE(2.0, 2), 1)])
    with pytest.raises(SchemaError, match="has 2 cells, its mechanism 3"):
        Plan(schema, 1.0, [Question((), DE(1.0, 3), 1)])
    with pytest.raises(PrivacyError, match="above 0"):
        Plan(schema, math.nan, [alone])
    with pytest.raises(SchemaError, match="no edges"):
        Plan(schema, 1.0, [Question(("age",), DE(1.0, 18), 1)])
    with pytest.raises(SchemaError, match="twice"):
        Question(("colour", "colour"), DE(1.0, 18), 1)
    with pytest.raises(SchemaError, match="needs a mean oracle"):
        Question(("age",), DE(1.0, 2), 1, 1)
    with pytest.raises(SchemaError, match="needs a frequency oracle"):
        Question((), Duchi(1.0), 1)
    with pytest.raises(SchemaError, match="only a number"):
        Plan(schema, 1.0, [Question(("colour",), DuchiMany(1.0, 2), 1, 1)])
    by_bin = Question(("income",), DE(1.0, 4), 1)
    by_mean = Question(("income",), DuchiMany(1.0, 2), 1, 1)
    with pytest.raises(SchemaError, match="both by bin and by its mean"):
        Plan(schema, 1.0, [by_bin, by_mean], {"income": (0, 500, 1000)})


def test_shares_follow_the_weights(schema: Schema) -> None:
    questions = [Question((), DE(1.0, 2), weight) for weight in (1, 3, 4)]
    plan = Plan(schema, 1.0, questions)
    assert plan.shares.tolist() == [0.125, 0.375, 0.5]
    assert plan.cumulative_weights.tolist() == [1, 4, 8]
    drawn = plan.draw_questions(80_000, SeededRandom(5))
    # each within five standard deviations: a false alarm in about 10^6 runs, and the seed is fixed
    spread = 5 * np.sqrt(plan.shares * (1 - plan.shares) * 80_000)
    assert (np.abs(np.bincount(drawn) - plan.shares * 80_000) < spread).all()


def test_groups_are_dealt_out_exactly_and_in_no_order(schema: Schema) -> None:
    questions = [Question((), DE(1.0, 2), weight) for weight in (1, 3, 4)]
    plan = Plan(schema, 1.0, questions, assignment="groups")
    dealt = plan.draw_questions(8_000, SeededRandom(5))
    assert np.bincount(dealt).tolist() == [1_000, 3_000, 4_000]
    assert len(set(dealt[:50].tolist())) == 3


def test_several_reports_share_the_epsilon(schema: Schema) -> None:
    plan = make_plan(schema, 1.5, 500, PlanOptions(reports=3))
    assert {question.mechanism.epsilon for question in plan.questions} == {0.5}
    promise = plan.guarantee
    assert promise.epsilon == 1.5
    assert [charge.epsilon for charge in promise.charges] == [0.5, 0.5, 0.5]
    assert "at most 3 reports" in str(promise)
    assert (promise.trust, promise.neighbours, promise.delta) == ("local", "replace", 0.0)


def test_every_mechanism_of_a_plan_keeps_its_epsilon(any_plan: Plan) -> None:
    for question in any_plan.questions:
        assert question.mechanism.compute_exact_epsilon() <= any_plan.epsilon * (1 + 1e-15)


@pytest.mark.parametrize("kind", [PiecewiseMany, HybridMany])
@pytest.mark.parametrize("window", ["least", "published"])
def test_a_plan_with_either_window_comes_back_from_its_file(
    schema: Schema, kind: Any, window: Any
) -> None:
    plan = Plan(schema, 1.0, [Question(("income",), kind(1.0, 2, window), 1, 1)])
    again = Plan.from_json(plan.to_json())
    assert again.questions == plan.questions
    assert again.encode_canonical() == plan.encode_canonical()


def test_epsilon_is_per_person_however_many_reports_share_it(schema: Schema) -> None:
    """Exactly: seven reports of a seventh each, as floats, must not add up to more than all."""
    for epsilon, reports in ((1.0, 3), (0.7, 7), (0.1, 49)):
        plan = make_plan(schema, epsilon, options=PlanOptions(reports=reports))
        assert plan.epsilon == plan.guarantee.epsilon == epsilon
        assert Fraction(plan.report_epsilon) * reports <= Fraction(epsilon)
        with pytest.raises(PrivacyError, match="the plan promises"):
            Plan(schema, epsilon * 0.99, plan.questions, plan.edges, reports=reports)


def stated_factor(sentence: str) -> float:
    (factor,) = re.findall(r"a factor of ([\d.]+)", sentence)
    return float(factor)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.3])
@pytest.mark.parametrize("reports", [1, 3])
def test_the_sentence_states_by_how_much_odds_change(epsilon: float, reports: int) -> None:
    """Rounded up, never below what the reports together can do; half the epsilon would be found."""
    schema = Schema([Categorical("smokes", ["no", "yes"])], "sick", ["no", "yes"])
    plan = make_plan(schema, epsilon=epsilon, options=PlanOptions(reports=reports))
    worst = max(question.mechanism.compute_exact_epsilon() for question in plan.questions) * reports
    factor = stated_factor(plan.sentence)
    assert math.exp(worst) * (1 - 1e-9) <= factor <= math.exp(epsilon) * 1.01
    assert ("all 3 of your reports" in plan.sentence) == (reports == 3)
    weaker = stated_factor(
        make_plan(schema, epsilon=epsilon / 2, options=PlanOptions(reports=reports)).sentence
    )
    assert not weaker >= math.exp(worst)


def test_the_sentence_of_a_plan_without_protection_says_so() -> None:
    schema = Schema([Categorical("smokes", ["no", "yes"])], "sick", ["no", "yes"])
    assert make_plan(schema, epsilon=math.inf).sentence.startswith("Your answers are not protected")
    taken = replace(schema, inferred=True)
    assert "taken from the data" in make_plan(taken, epsilon=1.0).sentence
