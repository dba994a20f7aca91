"""Synthetic records from a released model: post-processing, so at no further cost in privacy.

They have what the model knows: the share of each class, and each feature's distribution within a
class. Within a class, features are independent, as Naive Bayes assumes; real ones are not. Missing
values are drawn where the model knows how frequent they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Indices
from discreet.errors import EstimationError
from discreet.model.factors import CellFactor, GaussianFactor
from discreet.model.naive_bayes import NaiveBayesModel
from discreet.randomness import Random, as_random
from discreet.schema import Categorical, Numeric

__all__ = ["sample"]


def sample(
    model: NaiveBayesModel, count: int, random_state: int | Random | None = None
) -> dict[str, NDArray[Any]]:
    """Draw synthetic records: the features that the model uses, then the class.

    Parameters
    ----------
    model : NaiveBayesModel
    count : int
        How many records.
    random_state : None, int or Random
        Where the draws come from; a seed gives the same records again. It changes no promise: the
        model was released already.

    Returns
    -------
    dict of column name to array of object
        None where a value is missing.

    Examples
    --------
    >>> from discreet import MixedNB
    >>> from discreet.datasets import mortgage
    >>> people = mortgage(2000)
    >>> model = MixedNB(schema=people.schema).fit(people.X, people.y).model_
    >>> columns = sample(model, 3, random_state=0)
    >>> len(columns["income"]), list(columns)[-1]
    (3, 'missed_payment')
    """
    if count < 0:
        raise EstimationError(f"{count} records cannot be drawn; give a number of at least 0")
    if model.projection is not None:
        raise EstimationError(
            "this model knows linear combinations of columns, from which the columns themselves "
            "cannot be drawn; train one without a projection"
        )
    random = as_random(random_state)
    classes = _chosen(np.exp(model.log_prior)[None, :], np.zeros(count, np.intp), random)
    columns: dict[str, NDArray[Any]] = {}
    for factor in model.factors:
        if isinstance(factor, CellFactor):
            columns[factor.name] = _cells(factor, classes, random)
        elif isinstance(factor, GaussianFactor):
            columns[factor.name] = _numbers(factor, classes, random)
        else:
            raise EstimationError("records can be drawn from tables and densities only")
    labels = np.empty(len(model.schema.classes), dtype=object)
    labels[:] = model.schema.classes
    columns[model.schema.target] = labels[classes]
    return columns


def _chosen(probability: Floats, rows: Indices, random: Random) -> Indices:
    """For each row of ``rows`` one index, by the law in that line of ``probability``."""
    ends = np.cumsum(probability, axis=1)
    ends /= ends[:, -1:]
    return np.asarray((random.uniform(len(rows))[:, None] >= ends[rows, :-1]).sum(axis=1))


def _cells(factor: CellFactor, classes: Indices, random: Random) -> NDArray[Any]:
    cells, feature = factor.cells, factor.cells.feature
    probability = np.exp(factor.log_probability)
    if cells.missing is not None and probability.sum(axis=1).max() > 1.02:
        probability[:, cells.missing] = 0.0  # the model ignores it, or knows its evidence only
    where = _chosen(probability, classes, random)
    if isinstance(feature, Categorical):
        values = np.empty(cells.size, dtype=object)
        values[: cells.values] = feature.values
        if cells.other is not None:
            values[cells.other] = "(other)"
        return values[where]
    left, width = np.array(cells.edges[:-1]), np.diff(cells.edges)
    bins = np.minimum(where, cells.values - 1)
    numbers = left[bins] + random.uniform(len(where)) * width[bins]
    # bins of whole numbers end before the next whole number
    return _listed(feature, np.floor(numbers) if feature.integer else numbers, where != bins)


def _numbers(factor: GaussianFactor, classes: Indices, random: Random) -> NDArray[Any]:
    from scipy.special import ndtr, ndtri

    mean, deviation = factor.mean[classes], np.sqrt(factor.variance[classes])
    low, high = np.zeros(len(classes)), np.ones(len(classes))
    if factor.truncated:
        low = ndtr((factor.feature.lower - mean) / deviation)
        high = ndtr((factor.feature.upper - mean) / deviation)
    drawn = low + (high - low) * (random.uniform(len(classes)) + 2.0**-54)
    absent = np.zeros(len(classes), dtype=bool)
    if factor.missing is not None:
        absent = random.uniform(len(classes)) < factor.missing[classes]
    return _listed(factor.feature, mean + deviation * ndtri(drawn), absent)


def _listed(feature: Numeric, numbers: Floats, absent: NDArray[np.bool_]) -> NDArray[Any]:
    """Numbers inside the public bounds, whole where the feature is; None where absent."""
    numbers = np.clip(numbers, feature.lower, feature.upper)
    values = np.empty(len(numbers), dtype=object)
    values[:] = [round(one) for one in numbers] if feature.integer else numbers.tolist()
    values[absent] = None
    return values
