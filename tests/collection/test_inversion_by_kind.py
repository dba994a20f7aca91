"""Claims: what a collector computes is found by the kind of the document, and fits every kind."""

from __future__ import annotations

import inspect
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.collection.ingest import read_tally
from discreet.collection.inversion import INVERSION_MODULES, Inversion, load_inversion
from discreet.collection.protocol import DOCUMENT_CLASSES, load_document_class
from discreet.collection.tally import Tally
from discreet.errors import FormatError
from discreet.local.inversion import compute_precision
from discreet.local.plan import Plan, Question
from discreet.local.planning import PlanOptions, make_plan
from discreet.mechanisms.frequency import DE
from discreet.mechanisms.mean import DuchiMany
from discreet.schema.schema import Categorical, Schema
from discreet.survey.questionnaire import Questionnaire

SMOKES = Categorical("smokes", ["no", "yes"], optional=False)


def make_questionnaire(target: str = "sick", theta: float = 0.5) -> Questionnaire:
    return Questionnaire.from_schema(Schema([SMOKES], target, ["no", "yes"]), theta=theta)


def make_class_plan(weights: tuple[int, ...] = (1,)) -> Plan:
    """The class alone, asked by as many questions."""
    schema = Schema([SMOKES], "sick", ["no", "yes"])
    return Plan(schema, 1.0, [Question((), DE(1.0, 2), weight) for weight in weights])


def public_methods(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def test_every_kind_of_document_has_an_inversion() -> None:
    assert INVERSION_MODULES.keys() == DOCUMENT_CLASSES.keys()
    methods = public_methods(Inversion)
    assert "estimate_statistics" in methods
    for kind in DOCUMENT_CLASSES:
        document_class = load_document_class(kind)
        assert document_class.kind == kind
        inversion = load_inversion(document_class)
        for method in methods:
            expected = inspect.signature(getattr(Inversion, method)).parameters
            actual = inspect.signature(getattr(inversion, method)).parameters
            assert [parameter.default for parameter in actual.values()] == [
                parameter.default for name, parameter in expected.items() if name != "self"
            ]


@pytest.mark.slow
def test_a_collector_of_sheets_loads_nothing_about_plans() -> None:
    program = """
import sys
from discreet.collection.inversion import load_inversion
from discreet.survey.questionnaire import Questionnaire
assert "discreet.survey.inversion" not in sys.modules
load_inversion(Questionnaire)
assert "discreet.survey.inversion" in sys.modules
assert not [name for name in sys.modules if name.startswith("discreet.local")]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def list_totals(collection: Any, values: list[list[int]]) -> np.ndarray[Any, Any]:
    """The estimated class totals from each of these reports by itself."""
    totals = []
    for value in values:
        tally = Tally(collection)
        tally.add_values(0, np.array([value], dtype=np.int64))
        assert tally.reports == 1
        totals.append(load_inversion(collection).estimate_statistics(tally).totals)
    return np.array(totals)


def test_scores_of_sheets_lie_between_those_that_some_sheet_has() -> None:
    collection = make_questionnaire()
    lowest, highest = load_inversion(collection).compute_score_range(collection, "sick")
    sheets = [list(sheet) for sheet in product(range(2), repeat=2)]
    totals = list_totals(collection, sheets)
    assert lowest == pytest.approx(totals.min(axis=0))
    assert highest == pytest.approx(totals.max(axis=0))
    assert (lowest < 0).all()
    assert (highest > 1).all()
    by_answer, _ = load_inversion(collection).compute_score_range(collection, "smokes")
    assert by_answer.shape == (2, 2)


def test_scores_of_reports_lie_between_those_that_some_report_has() -> None:
    plan = make_class_plan()
    lowest, highest = load_inversion(plan).compute_score_range(plan, "sick")
    totals = list_totals(plan, [[0], [1]])
    assert lowest == pytest.approx(totals.min(axis=0))
    assert highest == pytest.approx(totals.max(axis=0))


def test_a_liar_chooses_the_question_that_counts_most() -> None:
    alone, rare = make_class_plan(), make_class_plan((1, 3))
    inversion = load_inversion(alone)
    for alone_scores, rare_scores in zip(
        inversion.compute_score_range(alone, "sick"),
        inversion.compute_score_range(rare, "sick"),
        strict=True,
    ):
        assert rare_scores == pytest.approx(4 * alone_scores)
    pairs = make_plan(alone.schema, 1.0, options=PlanOptions(kind="pairs", oracle="de"))
    _, highest = inversion.compute_score_range(pairs, "smokes")
    assert highest.shape == (2, 2)
    assert (highest > 1).all()


def test_the_error_of_the_classes_is_that_of_the_expected_precision() -> None:
    plan = make_plan(make_class_plan().schema, 1.0, 500)
    inversion = load_inversion(plan)
    errors = {cell.feature: cell.standard_error for cell in compute_precision(plan, 500)}
    assert inversion.compute_class_error(plan, 500) == errors["sick"]
    assert inversion.compute_class_error(plan, 2000) == pytest.approx(errors["sick"] / 2)
    survey = make_questionnaire()
    error = load_inversion(survey).compute_class_error(survey, 100)
    assert error == pytest.approx(2 * load_inversion(survey).compute_class_error(survey, 400))
    assert 0 < error < 0.2


def test_an_error_that_is_not_known_is_zero(schema: Schema) -> None:
    means = Plan(schema, 1.0, [Question(("income",), DuchiMany(1.0, 2), 1, 1)])
    assert load_inversion(means).compute_class_error(means, 100) == 0


def test_quotation_marks_in_names_do_not_hide_the_error_of_the_classes() -> None:
    survey = make_questionnaire()
    error = load_inversion(survey).compute_class_error(survey, 100)
    quoted_target = make_questionnaire(target='"sick"')
    assert load_inversion(quoted_target).compute_class_error(quoted_target, 100) == error > 0
    quoted_class = Questionnaire.from_schema(Schema([SMOKES], "sick", ['"no"', "yes"]), theta=0.5)
    assert load_inversion(quoted_class).compute_class_error(quoted_class, 100) == error


def test_documents_name_their_mechanisms_and_outcomes_of_the_draw() -> None:
    plan = make_class_plan((1, 3))
    assert plan.question_outcomes == 4
    assert [name for name, _ in plan.mechanisms] == ["question 0, de", "question 1, de"]
    assert [mechanism for _, mechanism in plan.mechanisms] == [DE(1.0, 2)] * 2
    survey = make_questionnaire()
    assert survey.question_outcomes == 1
    assert [mechanism for _, mechanism in survey.mechanisms] == list(survey.channels)
    assert [name for name, _ in survey.mechanisms] == [group.name for group in survey.groups]


def test_the_tally_of_another_kind_is_refused_with_the_commands_for_it(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    path.write_text(Tally(make_class_plan()).to_json())
    assert read_tally("plan", str(path)).collection.kind == "plan"
    with pytest.raises(FormatError, match="use the commands of discreet local"):
        read_tally("questionnaire", str(path))
    path.write_text(Tally(make_questionnaire()).to_json())
    with pytest.raises(FormatError, match="use the commands of discreet survey"):
        read_tally("plan", str(path))
