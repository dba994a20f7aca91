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
from discreet.schema.schema import Categorical, Numeric

__all__ = ["sample_records"]


def sample_records(
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
    >>> from discreet.datasets import make_mortgage
    >>> people = make_mortgage(2000)
    >>> model = MixedNB(schema=people.schema).fit(people.X, people.y).model_
    >>> columns = sample_records(model, 3, random_state=0)
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
    random_source = as_random(random_state)
    class_indices = _draw_indices(
        np.exp(model.log_prior)[None, :], np.zeros(count, np.intp), random_source
    )
    columns: dict[str, NDArray[Any]] = {}
    for factor in model.factors:
        if isinstance(factor, CellFactor):
            columns[factor.name] = _draw_cell_values(factor, class_indices, random_source)
        elif isinstance(factor, GaussianFactor):
            columns[factor.name] = _draw_numbers(factor, class_indices, random_source)
        else:
            raise EstimationError("records can be drawn from tables and densities only")
    class_labels = np.empty(len(model.schema.classes), dtype=object)
    class_labels[:] = model.schema.classes
    columns[model.schema.target] = class_labels[class_indices]
    return columns


def _draw_indices(probability: Floats, law_indices: Indices, random: Random) -> Indices:
    """For each row of ``law_indices`` one index, by the law in that line of ``probability``."""
    cumulative_probability = np.cumsum(probability, axis=1)
    cumulative_probability /= cumulative_probability[:, -1:]
    return np.asarray(
        (random.uniform(len(law_indices))[:, None] >= cumulative_probability[law_indices, :-1]).sum(
            axis=1
        )
    )


def _draw_cell_values(factor: CellFactor, class_indices: Indices, random: Random) -> NDArray[Any]:
    cells, feature = factor.cells, factor.cells.feature
    probability = np.exp(factor.log_probability)
    if cells.missing_index is not None and probability.sum(axis=1).max() > 1.02:
        probability[:, cells.missing_index] = 0.0  # ignored, or only its evidence is known
    drawn_cells = _draw_indices(probability, class_indices, random)
    if isinstance(feature, Categorical):
        cell_values = np.empty(cells.size, dtype=object)
        cell_values[: cells.value_count] = feature.values
        if cells.other_index is not None:
            cell_values[cells.other_index] = "(other)"
        return cell_values[drawn_cells]
    left_edges, bin_widths = np.array(cells.edges[:-1]), np.diff(cells.edges)
    bin_indices = np.minimum(drawn_cells, cells.value_count - 1)
    numbers = left_edges[bin_indices] + random.uniform(len(drawn_cells)) * bin_widths[bin_indices]
    # bins of whole numbers end before the next whole number
    return _list_values(
        feature, np.floor(numbers) if feature.integer else numbers, drawn_cells != bin_indices
    )


def _draw_numbers(factor: GaussianFactor, class_indices: Indices, random: Random) -> NDArray[Any]:
    from scipy.special import ndtr, ndtri

    row_means, row_deviations = factor.mean[class_indices], np.sqrt(factor.variance[class_indices])
    lower_quantile, upper_quantile = np.zeros(len(class_indices)), np.ones(len(class_indices))
    if factor.truncated:
        lower_quantile = ndtr((factor.feature.lower - row_means) / row_deviations)
        upper_quantile = ndtr((factor.feature.upper - row_means) / row_deviations)
    drawn_quantiles = lower_quantile + (upper_quantile - lower_quantile) * (
        random.uniform(len(class_indices)) + 2.0**-54
    )
    is_absent = np.zeros(len(class_indices), dtype=bool)
    if factor.missing is not None:
        is_absent = random.uniform(len(class_indices)) < factor.missing[class_indices]
    return _list_values(
        factor.feature, row_means + row_deviations * ndtri(drawn_quantiles), is_absent
    )


def _list_values(feature: Numeric, numbers: Floats, is_absent: NDArray[np.bool_]) -> NDArray[Any]:
    """Numbers inside the public bounds, whole where the feature is; None where absent."""
    numbers = np.clip(numbers, feature.lower, feature.upper)
    values = np.empty(len(numbers), dtype=object)
    rounded = [round(number) for number in numbers] if feature.integer else numbers.tolist()
    values[:] = [feature.restore_value(number) for number in rounded]
    values[is_absent] = None
    return values
