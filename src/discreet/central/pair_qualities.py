"""How wrong a model is in the cells of each pair of features, for all pairs in a few passes.

The table of a pair is a margin of the table of any more features. So the features are put together
in duos, the residuals of every two duos are added up once, and the tables of their pairs follow
from these sums. Residuals are whole numbers, which floating point adds up exactly in any order
below 2^53: the qualities are the same as if every pair was added up for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from discreet.arrays import Array, Floats

__all__ = ["CellGrouping", "compute_pair_qualities"]


@dataclass(frozen=True, eq=False)
class CellGrouping:
    """The groups of one feature's cells, by row.

    Parameters
    ----------
    indices : array of int
        The group of every row; after the last where it is ignored.
    group_count : int
        Number of groups.
    """

    indices: Array
    group_count: int

    @property
    def padded_count(self) -> int:
        """Number of groups, with the one that is ignored."""
        return self.group_count + 1


def compute_pair_qualities(
    row_residuals: Floats, groupings: Sequence[CellGrouping], price: float
) -> list[int]:
    """How wrong the model is in the cells of each pair, less a price for every cell.

    Parameters
    ----------
    row_residuals : array of shape (rows, columns)
        Whole numbers.
    groupings : sequence of CellGrouping
        Of two features or more.
    price : float
        Of a cell, all columns together.

    Returns
    -------
    list of int
        Of each pair, as :func:`itertools.combinations` lists them: the sum over cells and columns
        of the absolute sum of residuals, less the price.
    """
    qualities = dict.fromkeys(combinations(range(len(groupings)), 2), 0)
    scored_pairs: set[tuple[int, int]] = set()
    columns = [np.ascontiguousarray(column) for column in row_residuals.T]
    for features, joint_indices in _iter_feature_sets(groupings):
        padded_shape = tuple(groupings[feature].padded_count for feature in features)
        joint_sums = [
            np.bincount(joint_indices, column, minlength=int(np.prod(padded_shape))).reshape(
                padded_shape
            )
            for column in columns
        ]
        axis_pairs = {
            (features[first_axis], features[second_axis]): (first_axis, second_axis)
            for first_axis, second_axis in combinations(range(len(features)), 2)
        }
        for pair in axis_pairs.keys() - scored_pairs:
            other_axes = tuple({*range(len(features))} - {*axis_pairs[pair]})
            pair_sums = np.array([sums.sum(axis=other_axes) for sums in joint_sums])
            # what is ignored is the last group of each
            absolute_error = int(np.abs(pair_sums[:, :-1, :-1]).sum())
            first, second = (groupings[feature].group_count for feature in pair)
            qualities[pair] = absolute_error - round(price * first * second)
            scored_pairs.add(pair)
    return list(qualities.values())


def _iter_feature_sets(
    groupings: Sequence[CellGrouping],
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Sets of features, up to four each, and the joint group of every row; every pair is in one."""
    features = range(len(groupings))
    duos = [tuple(features[first : first + 2]) for first in range(0, len(groupings), 2)]
    duo_indices = [_join_indices([groupings[feature] for feature in duo]) for duo in duos]
    if len(duos) == 1:
        yield duos[0], duo_indices[0].indices
    for first, second in combinations(range(len(duos)), 2):
        joint_grouping = _join_indices([duo_indices[first], duo_indices[second]])
        yield (*duos[first], *duos[second]), joint_grouping.indices


def _join_indices(groupings: Sequence[CellGrouping]) -> CellGrouping:
    """The joint groups of several groupings, those with an ignored part included."""
    if len(groupings) == 1:
        return groupings[0]
    first, second = groupings
    joint_count = first.padded_count * second.padded_count
    # small integers, so that those of all rows fit into the processor's cache
    index_type = np.min_scalar_type(-joint_count)
    joint_indices = np.multiply(first.indices, second.padded_count, dtype=index_type)
    joint_indices += second.indices
    return CellGrouping(joint_indices, joint_count - 1)
