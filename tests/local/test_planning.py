"""Claims: who is asked what, and how many of them, follows from public facts alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from discreet.errors import PrivacyError, SchemaError
from discreet.local.planning import PlanOptions, _QuestionMaker, make_plan
from discreet.mechanisms.mean import LaplaceMean
from discreet.schema.schema import Categorical, Numeric, Schema

SCHEMA = Schema(
    [
        Categorical("colour", ["red", "green"], optional=False),
        Numeric("age", 18, 98),
        Numeric("income", 0, 1000, optional=False),
    ],
    "sick",
    ["no", "yes"],
)
GAUSSIAN = PlanOptions(numeric="gaussian")


def make_maker(**options: Any) -> _QuestionMaker:
    _, age, income = SCHEMA.features
    assert isinstance(age, Numeric)
    assert isinstance(income, Numeric)
    asked: tuple[Any, ...] = (SCHEMA.names, (), (), 3)
    if options.get("numeric") == "gaussian":
        asked = (("colour",), (age, income), ("age",), 4)
    return _QuestionMaker(2, 1.0, PlanOptions(**options), *asked)


def list_shares(options: PlanOptions) -> dict[Any, float]:
    """Shares by features and power; the questions must differ in one of them."""
    plan = make_plan(SCHEMA, 1.0, 10**6, options)
    shares: dict[Any, float] = {
        (question.features, question.power): float(share)
        for question, share in zip(plan.questions, plan.shares, strict=True)
    }
    assert len(shares) == len(plan.questions)
    return shares


def test_numbers_are_asked_by_cell_or_by_mean() -> None:
    by_bins = make_plan(SCHEMA, 1.0, options=PlanOptions(kind="pairs"))
    assert [*by_bins.cells] == ["colour", "age", "income"]
    assert not by_bins.mean_features
    gaussian = make_plan(SCHEMA, 1.0, options=replace(GAUSSIAN, kind="pairs"))
    assert gaussian.mean_features == {"age", "income"}
    # of a number that may be missing, some people are asked whether it is
    assert {name: cells.size for name, cells in gaussian.cells.items()} == {"colour": 2, "age": 2}


def test_in_the_paper_every_question_has_the_same_share() -> None:
    shares = list_shares(PlanOptions(kind="paper"))
    assert list(shares.values()) == pytest.approx([1 / 4] * 4, abs=1e-5)
    shares = list_shares(replace(GAUSSIAN, kind="paper"))
    means = ("age", "income")
    assert list(shares) == [((), 0), (("colour",), 0), (("age",), 0), (means, 1), (means, 2)]
    assert list(shares.values()) == pytest.approx([1 / 5] * 5, abs=1e-5)


def test_where_means_are_asked_the_class_has_a_question_of_its_own() -> None:
    """One part each for the class, the means and the mean squares, and for each feature by cell."""
    maker = make_maker(kind="pairs", numeric="gaussian")
    questions = maker.make_cell_questions({"colour": 2}, {})
    assert maker.compute_class_share(questions, 10**6) == 1 / 4
    assert replace(maker, by_mean=()).compute_class_share(questions, 10**6) == 0


def test_the_class_is_asked_alone_only_if_its_share_would_be_too_uncertain() -> None:
    maker, many_cells = make_maker(), {"colour": 500}
    questions = maker.make_cell_questions(many_cells, {})
    shares = [maker.compute_class_share(questions, people) for people in (50, 5_000, 10**6)]
    assert shares[0] == 0.2
    assert 0 < shares[1] < 0.2
    assert shares[2] == 0
    assert make_maker(kind="pairs").compute_class_share(questions, 50) == 0
    assert maker.compute_class_share([], 50) == 0


def test_means_are_asked_of_all_features_at_once_or_of_each() -> None:
    together = make_maker(numeric="gaussian", approach=1).make_mean_questions()
    assert [(question.features, question.power, share) for question, share in together] == [
        (("age", "income"), 1, 1.0),
        (("age", "income"), 2, 1.0),
    ]
    apart = make_maker(numeric="gaussian", approach=3).make_mean_questions()
    assert [(question.features, question.power, share) for question, share in apart] == [
        (("age",), 1, 0.5),
        (("income",), 1, 0.5),
        (("age",), 2, 0.5),
        (("income",), 2, 0.5),
    ]
    # Laplace noise has to hide as many numbers as one person sends
    assert together[0][0].mechanism == LaplaceMean(1.0, 4, active=2)
    assert apart[0][0].mechanism == LaplaceMean(1.0, 2, active=1)
    assert make_maker(approach=3).make_mean_questions() == []


@pytest.mark.parametrize("kind", ["auto", "pairs", "paper"])
def test_the_shares_of_all_questions_add_up_to_one(kind: Any) -> None:
    maker = make_maker(kind=kind, numeric="gaussian")
    cell_questions = maker.make_cell_questions({"colour": 2}, {})
    completed = maker.complete_questions(cell_questions, 0.25)
    assert sum(share for _, share in completed) == pytest.approx(1)
    assert (completed[0][0].features, completed[0][1]) == ((), 0.25)
    without_class = maker.complete_questions(cell_questions, 0.0)
    assert sum(share for _, share in without_class) == pytest.approx(1)
    assert all(question.features for question, _ in without_class)


def test_a_shuffled_plan_is_the_local_plan_of_a_larger_epsilon() -> None:
    shuffled = make_plan(SCHEMA, 0.5, 100_000, PlanOptions(shuffled=1e-6))
    assert shuffled.shuffled is not None
    assert (shuffled.shuffled.epsilon, shuffled.shuffled.respondents) == (0.5, 100_000)
    assert shuffled.epsilon > 0.5
    alone = make_plan(SCHEMA, shuffled.epsilon, 100_000)
    assert replace(shuffled, shuffled=None).digest == alone.digest


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"epsilon": 0.0}, PrivacyError, "epsilon is 0.0; it must be above 0"),
        ({"respondents": 0.5}, SchemaError, "respondents is 0.5; expect at least one"),
        ({"options": PlanOptions(reports=0)}, PrivacyError, "a person sends at least one"),
        ({"options": PlanOptions(reports=True)}, PrivacyError, "reports is True"),
        ({"options": PlanOptions(kind="all")}, SchemaError, "plan='all'; write 'auto'"),  # type: ignore[arg-type]
        (
            {"options": replace(GAUSSIAN, approach=4)},  # type: ignore[arg-type]
            SchemaError,
            "approach=4; write 1, 2, 3 or 'hybrid'",
        ),
        (
            {"options": replace(GAUSSIAN, approach=2, mechanism="coin")},  # type: ignore[arg-type]
            SchemaError,
            "mechanism='coin'; write one of one-bit, duchi, piecewise",
        ),
    ],
)
def test_what_no_plan_can_be_made_from_is_refused(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {"epsilon": 1.0, "respondents": 500, "options": GAUSSIAN} | change
    with pytest.raises(error, match=message):
        make_plan(SCHEMA, **arguments)
