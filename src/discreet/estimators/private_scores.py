"""``score_privately``: how good a model is, from rows whose people are promised something."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.central.private_scores import count_score_cells, release_scores
from discreet.errors import PrivacyError, SchemaError
from discreet.estimators import sklearn_context
from discreet.estimators.fit_history import current_history, hash_rows
from discreet.estimators.parameters import (
    BUDGET_RULE,
    EPSILON_RULE,
    RANDOM_STATE_RULE,
    make_flag_rule,
)
from discreet.model import NaiveBayesModel
from discreet.model.noisy_scores import NoisyScores
from discreet.privacy.guarantee import Account, Guarantee, format_rounded_up
from discreet.privacy.ledger import Ledger
from discreet.randomness import as_random
from discreet.schema.cells import encode_classes, get_columns
from discreet.schema.schema import Schema
from discreet.tables.contributions import (
    ContributionBound,
    MissingPerson,
    select_person_rows,
    take_rows,
)
from discreet.tables.key_columns import (
    describe_repeated_ids,
    find_repeated_ids_in_memory,
    list_id_names,
)

__all__ = ["score_privately"]

LEDGER_PURPOSE = "private evaluation"
"""What a ledger says was paid for."""


def score_privately(
    model: Any,
    rows: Any,
    truth: Any,
    epsilon: float,
    *,
    same_people: bool = False,
    person: str | None = None,
    rows_per_person: int | None = None,
    missing_person: MissingPerson = "error",
    budget: Any = None,
    random_state: Any = None,
) -> NoisyScores:
    """Predict rows, compare with their true classes, and release the figures with noise.

    The promise is to everyone whose row is scored: adding or removing one row changes the
    probability of any figures by at most a factor of exp(epsilon). Accuracy, precision, recall,
    AUC and calibration come from one noisy table, with intervals that cover its noise.

    Parameters
    ----------
    model : NaiveBayesModel or fitted estimator
    rows : data frame, Arrow table, mapping of columns or array
        One row per person, unless there is a ``person``.
    truth : column of classes
    epsilon : float
        What the figures cost each of these people.
    same_people : bool, default False
        Whether these are the people of whom the model was made: then the promise adds up what both
        cost them. Left out, it is about this release alone, and says what both add up to.
    person : str, optional
        Column of ``rows`` with the id of a person who may have several rows. At most
        ``rows_per_person`` of them are used, and the promise is to the whole person.
    rows_per_person : int, optional
        Chosen without looking at the data: the noise grows with it.
    missing_person : {"error", "own"}
        Whether a row without an id is refused, or is a person of its own.
    budget : Ledger, MemoryLedger or path, optional
        Charged before noise is drawn; it refuses to be overdrawn. Left out, rows that were fitted
        before in this process warn.
    random_state : None, int, numpy Generator or Random
        None draws from the cryptographic source. A seed is for simulation and ends the promise.

    Returns
    -------
    NoisyScores

    Examples
    --------
    >>> from discreet import CentralNB, score_privately
    >>> from discreet.datasets import make_mortgage
    >>> people = make_mortgage(4000)
    >>> nb = CentralNB(1.0, schema=people.schema).fit(people.X[:2000], people.y[:2000])
    >>> scores = score_privately(nb, people.X[2000:], people.y[2000:], epsilon=0.5)
    >>> low, high = scores.accuracy_interval
    >>> 0.5 < low < scores.accuracy < high < 1
    True
    >>> scores.guarantee.epsilon, scores.with_model.epsilon
    (0.5, 1.5)
    """
    model = getattr(model, "model_", model)
    if not isinstance(model, NaiveBayesModel):
        raise SchemaError(
            f"a {type(model).__name__} cannot be scored; give a fitted estimator of discreet or a "
            "NaiveBayesModel"
        )
    epsilon = EPSILON_RULE.check_value("epsilon", epsilon)
    same_people = make_flag_rule().check_value("same_people", same_people)
    ledger: Ledger | None = BUDGET_RULE.check_value("budget", budget)
    random = as_random(RANDOM_STATE_RULE.check_value("random_state", random_state))
    if math.isinf(epsilon):
        raise PrivacyError(
            "an infinite epsilon adds no noise; discreet.model.evaluation.score_model computes the "
            "exact figures"
        )
    if isinstance(truth, Sequence) and not isinstance(truth, str):
        truth_column = np.empty(len(truth), dtype=object)  # whose labels keep their own types
        truth_column[:] = truth
        truth = truth_column
    columns = get_columns(rows, model.inputs.names)
    bound = ContributionBound.from_options(person, rows_per_person, missing_person)
    if bound is not None:
        bound.check_schema(model.inputs)
        persons = get_columns(rows, [bound.person])[bound.person]
        class_codes = encode_classes(model.schema, truth)
        used_rows, _ = select_person_rows(persons, columns, class_codes, model.inputs, bound)
        columns = {name: take_rows(column, used_rows) for name, column in columns.items()}
        truth = take_rows(truth, used_rows)
    else:
        _warn_of_repeated_ids(rows, model.schema)
    exact_counts = count_score_cells(model, columns, truth)
    # before anything is paid, should a value be unreadable
    row_hashes = None if random.simulated else hash_rows(columns, int(exact_counts.sum()))

    def charge_ledger(guarantee: Guarantee) -> Account | None:
        if ledger is None:
            return None
        data_source = f"rows with {', '.join(model.inputs.names[:3])}"
        ledger_state = ledger.charge(guarantee, LEDGER_PURPOSE, data_source=data_source)
        return ledger_state.make_account(ledger.path.name)

    noisy_scores = release_scores(
        model,
        exact_counts,
        epsilon,
        random,
        same_people=same_people,
        bound=bound,
        charge=charge_ledger,
    )
    if row_hashes is not None:
        spend = current_history.get().add(row_hashes, noisy_scores.own_guarantee)
        if ledger is None and spend.fit_count > 1:
            sklearn_context.warn_user(
                f"rows of this table were used before: {spend.fit_count} releases cost "
                f"{format_rounded_up(float(spend.epsilon))} in total for the people in them; give "
                "budget= a ledger, which counts every release and refuses to exceed its budget"
            )
    return noisy_scores


def _warn_of_repeated_ids(rows: Any, schema: Schema) -> None:
    """Warn the caller, and nobody else, if persons seem to have several rows of a frame."""
    column_names = [name for name in getattr(rows, "columns", ()) if isinstance(name, str)]
    columns = {name: rows[name] for name in list_id_names(column_names, schema)}
    if id_names := find_repeated_ids_in_memory(columns, schema):
        sklearn_context.warn_user(describe_repeated_ids(id_names))
