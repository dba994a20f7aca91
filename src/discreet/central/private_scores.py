"""How good a model is, released privately: one noisy table of scored rows.

A row is in one cell of (true class, predicted class, confidence group), and the grid of groups is
public. So one more row changes one count by one, and the whole of epsilon pays for the noise of
every count: one release, from which all figures follow (:mod:`discreet.model.noisy_scores`).

That needs the cell of a row to be a function of that row alone, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Array, Floats, Integers
from discreet.central.budget import Budget
from discreet.central.corrections import max_rows, sum_rows
from discreet.errors import EstimationError
from discreet.model import GaussianFactor, NaiveBayesModel
from discreet.model.noisy_scores import NoisyScores
from discreet.privacy.guarantee import Account, Guarantee
from discreet.randomness import Random
from discreet.schema.cells import encode_classes, get_columns
from discreet.schema.inference_cost import ALL_ROWS_UNIT
from discreet.tables.contributions import ContributionBound

__all__ = [
    "assign_cells",
    "choose_confidence_edges",
    "compose_with_model",
    "count_score_cells",
    "make_empty_counts",
    "release_scores",
    "score_row_by_row",
]

RELEASE_NAME = "scores"
"""Name of the charge, and of the entry in a ledger."""

SCORED_ROWS_ASSUMPTION = (
    "each scored row is of another person; several of one person cost them that many times this "
    "epsilon, unless person and rows_per_person say whose they are"
)
"""Said where the model's promise is for all rows of a person, and that of the scores is not."""
MODEL_ROWS_ASSUMPTION = (
    "each person has one row in the model's data; with more of them, the model costs that many "
    "times its epsilon"
)
"""Said where the promise of the scores is for all rows of a person, and the model's is not."""

EDGES_TWO_CLASSES = (0.55, 0.62, 0.7, 0.78, 0.86, 0.93, 0.98)
"""Confidence at which groups begin, for two classes; compared with coarser and finer grids:
docs/experiments/central.md, "A private figure"."""
EDGES_SOME_CLASSES = (0.5, 0.65, 0.8, 0.93)
"""The same for 3 to 5 classes, which have more cells."""
EDGES_MANY_CLASSES = (0.6, 0.85)
"""The same for 6 to 12 classes; beyond that there are no groups."""
MAX_SOME_CLASSES = 5
"""Most classes with the second grid."""
MAX_GROUPED_CLASSES = 12
"""Most classes with confidence groups: every group adds classes squared cells."""


def choose_confidence_edges(class_count: int) -> tuple[float, ...]:
    """Choose where confidence groups begin, by what is public: the number of classes.

    Parameters
    ----------
    class_count : int
    """
    if class_count <= 2:
        return EDGES_TWO_CLASSES
    if class_count <= MAX_SOME_CLASSES:
        return EDGES_SOME_CLASSES
    return EDGES_MANY_CLASSES if class_count <= MAX_GROUPED_CLASSES else ()


def make_empty_counts(model: NaiveBayesModel) -> Integers:
    """Make the table of no rows: zeros by true class, predicted class and confidence group.

    Parameters
    ----------
    model : NaiveBayesModel
    """
    class_count = len(model.schema.classes)
    group_count = len(choose_confidence_edges(class_count)) + 1
    return np.zeros((class_count, class_count, group_count), dtype=np.int64)


def score_row_by_row(model: NaiveBayesModel, columns: dict[str, Any]) -> Floats:
    """Joint log-probabilities, to the last bit a function of each row alone.

    Products of matrices add numbers in an order that depends on how many rows there are, so normal
    densities are computed one factor at a time.

    Parameters
    ----------
    model : NaiveBayesModel
    columns : mapping of column name to column
    """
    if model.projection is not None:  # which adds in the order of the features
        columns = model.projection.transform_columns(columns)
        model = replace(model, projection=None)
    gaussian_factors = [factor for factor in model.factors if isinstance(factor, GaussianFactor)]
    cell_factors = [factor for factor in model.factors if not isinstance(factor, GaussianFactor)]
    joint_scores = replace(model, factors=cell_factors).predict_joint_log_proba(columns)
    for factor in gaussian_factors:
        single_factor_model = replace(
            model, log_prior=np.zeros(len(model.log_prior)), factors=[factor], pairs=[]
        )
        joint_scores = joint_scores + single_factor_model.predict_joint_log_proba(columns)
    return joint_scores


def count_score_cells(model: NaiveBayesModel, rows: Any, truth: Any) -> Integers:
    """Count rows by true class, predicted class and confidence group: exact, not to be released.

    Parameters
    ----------
    model : NaiveBayesModel
    rows : data frame, Arrow table, mapping of columns or array
    truth : column of classes
    """
    true_codes = encode_classes(model.schema, truth)
    columns = get_columns(rows, model.inputs.names)
    row_count = len(next(iter(columns.values())))
    if row_count != len(true_codes):
        raise EstimationError(f"{row_count} rows do not fit {len(true_codes)} classes")
    predicted_codes, groups = assign_cells(score_row_by_row(model, columns))
    empty_counts = make_empty_counts(model)
    flat_cells = np.ravel_multi_index((true_codes, predicted_codes, groups), empty_counts.shape)
    flat_counts = np.bincount(flat_cells, minlength=empty_counts.size)
    return flat_counts.reshape(empty_counts.shape).astype(np.int64)


def assign_cells(joint_scores: Floats) -> tuple[Array, Array]:
    """The predicted class and the confidence group of every row, each of that row alone.

    Parameters
    ----------
    joint_scores : array of float, (rows, classes)
    """
    joint_scores = np.ascontiguousarray(joint_scores)
    impossible_rows = np.isneginf(max_rows(joint_scores))  # under every class: nothing is known
    joint_scores = np.where(impossible_rows[:, None], 0.0, joint_scores)
    predicted_codes = np.argmax(joint_scores, axis=1)
    confidence = 1 / sum_rows(np.exp(joint_scores - max_rows(joint_scores)[:, None]))
    edges = choose_confidence_edges(joint_scores.shape[1])
    return predicted_codes, np.searchsorted(edges, confidence, side="right")


def release_scores(
    model: NaiveBayesModel,
    exact_counts: Integers,
    epsilon: float,
    random: Random,
    *,
    same_people: bool = False,
    bound: ContributionBound | None = None,
    charge: Callable[[Guarantee], Account | None] | None = None,
) -> NoisyScores:
    """Charge, add noise to every count, and state the promise.

    Parameters
    ----------
    model : NaiveBayesModel
    exact_counts : array of int
        From :func:`count_score_cells`; those of several batches add up.
    epsilon : float
        The whole of it pays for this table.
    random : Random
    same_people : bool, default False
        Whether the people are those of whom the model was made: then the promise adds up what both
        cost them.
    bound : ContributionBound, optional
        How many rows of each person were counted at most; without it, each row is a person.
    charge : callable, optional
        Pays for what is about to be promised, or raises. Called once, before noise is drawn.
    """
    budget = Budget(epsilon)
    # one person changes counts by as much as there are rows of theirs, wherever those are
    sensitivity = 1 if bound is None else bound.influence.count_sensitivity
    noise = budget.spend_on_noise(RELEASE_NAME, budget.total, sensitivity)
    own_guarantee = replace(
        budget.make_guarantee(() if bound is None else bound.assumptions),
        against="everyone who sees the released figures",
    ).void_if(simulated=random.simulated)
    if bound is not None:
        own_guarantee = replace(own_guarantee, unit=bound.unit)
    elif model.guarantee.unit.startswith(ALL_ROWS_UNIT):
        own_guarantee = replace(own_guarantee, assumptions=(SCORED_ROWS_ASSUMPTION,))
    if model.guarantee.neighbours == "replace" and same_people:
        own_guarantee = own_guarantee.as_replace()
    account = None if charge is None else charge(own_guarantee)
    own_guarantee = replace(own_guarantee, account=account)
    return NoisyScores(
        model.schema.classes,
        noise.add(exact_counts, random),
        choose_confidence_edges(len(model.schema.classes)),
        noise.variance,
        own_guarantee,
        compose_with_model(own_guarantee, model.guarantee),
        same_people,
        1 if bound is None else bound.rows_per_person,
    )


def compose_with_model(own_guarantee: Guarantee, model_guarantee: Guarantee) -> Guarantee:
    """The promise to a person whose row was scored, and of whom the model was made.

    Parameters
    ----------
    own_guarantee : Guarantee
        Of the scores.
    model_guarantee : Guarantee
    """
    if model_guarantee.neighbours == "replace":  # what a record costs that becomes another one
        own_guarantee = own_guarantee.as_replace()
    composed = own_guarantee.compose_sequential(model_guarantee)
    assumptions = composed.assumptions
    covers_all_rows = own_guarantee.unit.startswith(ALL_ROWS_UNIT)
    if covers_all_rows and not model_guarantee.unit.startswith(ALL_ROWS_UNIT):
        assumptions += (MODEL_ROWS_ASSUMPTION,)
    return replace(composed, account=own_guarantee.account, assumptions=assumptions)
