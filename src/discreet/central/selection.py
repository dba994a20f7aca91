"""The choice of features, of their cells and of how they are scored.

**Features.** Of d tables each carries d times the noise of one, and a prediction adds d of them up.
So its noise grows like d^(3/2), and below a certain number of people all features together say
nothing, where the best one alone may say nearly all. Candidates are features, numeric ones cut in
several ways. The quality of a candidate is the number of rows that the best rule on its cells gets
right: the sum over cells of the largest class count, less a public price for every cell.

**Cells.** Bins are of equal width and, where there is data enough, ever finer towards zero. A
quantity with the public bounds 0 and 1000 often has nearly all of its values near 0, where bins of
equal width would see one lump; the extra cells near zero cost a little noise and keep such
features. They follow from public bounds and from what is already private.

**Scoring.** Every candidate is a model made of the released tables. Its quality is the number of
training rows that it classifies right.

Features and scorings are chosen by the exponential mechanism, drawn exactly. One more record
changes every quality by 0 or +1, all in the same direction, so choosing i with probability
proportional to exp(epsilon q_i) costs epsilon (the usual factor of two is for qualities that may
move in both directions). A person with up to k records changes it by 0 to +k: epsilon is divided by
k. Nothing that this module counts may leave without noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.arrays import Array, Floats, Indices, Integers
from discreet.central.budget import Budget
from discreet.estimation.corrections import AdditiveModel
from discreet.randomness import Random
from discreet.schema.binning import compute_inner_edges
from discreet.schema.cells import Cells, build_cells
from discreet.schema.schema import Numeric
from discreet.statistics.statistics import Table
from discreet.tables.contributions import Influence
from discreet.tables.source import Source

__all__ = [
    "FeatureSelection",
    "RowSample",
    "compute_subsample_share",
    "compute_table_quality",
    "count_affordable_features",
    "count_correct",
    "list_candidate_binnings",
    "merge_cells",
    "sample_exponential_mechanism",
    "select_features",
    "weigh_rows",
]

MIN_PEOPLE_PER_NOISE_ALL_FEATURES = 4.0
"""All d features are used when people / noise scale is at least this times sqrt(K d)."""
MIN_PEOPLE_PER_NOISE_PER_FEATURE = 60.0
"""People / noise scale that the table of each chosen feature must keep."""
CELL_PENALTY = 0.15
"""Penalty per cell, in multiples of the noise scale; .15 to .8 compared:
docs/experiments/central.md."""
SUFFICIENT_ROWS_TIMES_EPSILON = 1000
"""Rows times epsilon of a subsample that is large enough to choose between candidates."""
MIN_SCORED_ROWS = 10_000
"""Least number of rows of that subsample, where there are as many."""


@dataclass(frozen=True)
class FeatureSelection:
    """How many features to select, and what the selection costs.

    Parameters
    ----------
    feature_count : int
        Features to select.
    total_cost : Fraction
        Share of the budget for all choices together.
    penalty_in_people : float
        Penalty of a cell, in people.
    """

    feature_count: int
    total_cost: Fraction
    penalty_in_people: float


@dataclass(frozen=True, eq=False)
class RowSample:
    """Cell indices and classes of the rows that candidate models are scored on.

    Parameters
    ----------
    cell_indices : mapping of feature name to array of int
    class_codes : array of int
        Class indices.
    row_indices : array of int, optional
        Where these rows are in the sample that they were taken from.
    weights : array of float, optional
        What each row counts, a whole number; one, if not given.
    influence : Influence
        How far one person moves a sum over rows.
    """

    cell_indices: Mapping[str, Array]
    class_codes: Indices
    row_indices: Indices | slice = field(default_factory=lambda: slice(None))
    weights: Floats | None = None
    influence: Influence = field(default_factory=Influence)

    def draw_subsample(self, share: Fraction, random: Random) -> RowSample:
        """Draw a random share of the rows, each row independently."""
        if share == 1:
            return replace(self, row_indices=slice(None))
        row_indices = np.flatnonzero(random.bernoulli(share, len(self.class_codes)))
        cell_indices = {
            name: np.take(feature_indices, row_indices)
            for name, feature_indices in self.cell_indices.items()
        }
        return replace(
            self,
            cell_indices=cell_indices,
            class_codes=self.class_codes[row_indices],
            row_indices=row_indices,
            weights=None if self.weights is None else self.weights[row_indices],
        )

    def take_own_rows(self, sample_values: Array) -> Array:
        """Values of these rows, from the values of the sample that they were taken from."""
        if isinstance(self.row_indices, slice):
            return sample_values[self.row_indices]
        return np.take(sample_values, self.row_indices, axis=0)

    def score_rows(self, model: AdditiveModel) -> Floats:
        """Scores of every row: log-prior plus the score tables of its cells and pairs of cells."""
        row_scores = np.tile(np.log(model.prior), (len(self.class_codes), 1))
        for name, score_table in model.tables.items():
            # take copies a row at once, where indexing copies its numbers alone
            row_scores += np.take(score_table.T, self.cell_indices[name], axis=0)
        for pair_key, pair_scores in model.pairs.items():
            pair_indices, _ = self.find_group_indices(dict(pair_key))
            padded_scores = np.concatenate([pair_scores.T, np.zeros((1, len(model.prior)))])
            row_scores += np.take(padded_scores, pair_indices, axis=0)
        return row_scores

    def find_group_indices(self, groups: Mapping[str, tuple[int, ...]]) -> tuple[Integers, int]:
        """Where every row is among the groups of cells of some features, and how many there are.

        Rows of which a cell is in no group (-1) come after the last.
        """
        if len(groups) == 1:
            ((name, cell_groups),) = groups.items()
            group_count = max(cell_groups) + 1
            group_of_cell = np.array(cell_groups)
            group_of_cell[group_of_cell < 0] = group_count
            return np.take(group_of_cell, self.cell_indices[name]), group_count
        group_indices = np.zeros(len(self.class_codes), dtype=np.int64)
        group_count, ignored_rows = 1, None
        for name, cell_groups in groups.items():
            feature_groups = np.take(np.array(cell_groups), self.cell_indices[name])
            feature_group_count = max(cell_groups) + 1
            group_indices *= feature_group_count
            group_indices += feature_groups
            group_count *= feature_group_count
            if min(cell_groups) < 0:
                is_ignored = feature_groups < 0
                ignored_rows = is_ignored if ignored_rows is None else ignored_rows | is_ignored
        if ignored_rows is not None:
            group_indices[ignored_rows] = group_count
        return group_indices, group_count


def count_affordable_features(
    people: float, class_count: int, noise_scales: Sequence[float]
) -> int:
    """How many features can be released with enough people per noise scale.

    Parameters
    ----------
    people : float
        A private estimate.
    class_count : int
    noise_scales : sequence of float
        Laplace scale of the noise of each table if there are one, two, … all of them.

    >>> noise_scales = [k / 0.5 for k in range(1, 17)]
    >>> [count_affordable_features(n, 2, noise_scales) for n in (20, 150, 300, 800)]
    [1, 1, 2, 16]
    """
    feature_count = len(noise_scales)
    min_people_per_noise = MIN_PEOPLE_PER_NOISE_ALL_FEATURES * math.sqrt(
        class_count * feature_count
    )
    if people >= min_people_per_noise * noise_scales[-1]:
        return feature_count
    affordable_count = 1
    while (
        affordable_count + 1 < feature_count
        and people >= MIN_PEOPLE_PER_NOISE_PER_FEATURE * noise_scales[affordable_count]
    ):
        affordable_count += 1
    return affordable_count


def select_features(
    source: Source, bins: Any, selection: FeatureSelection, budget: Budget, random: Random
) -> dict[str, Cells]:
    """Select features and their cells, one at a time, by the exponential mechanism.

    Parameters
    ----------
    source : Source
    bins : "auto", int or mapping
        How the user wants numeric features cut; "auto" leaves it to the choice.
    selection : FeatureSelection
        How many features, and what they may cost.
    budget : Budget
    random : Random
    """
    candidate_tables = _count_candidate_tables(source, bins)
    selected_cells: dict[str, Cells] = {}
    for feature_index in range(selection.feature_count):
        charge_name = f"choice of feature {feature_index + 1} of {selection.feature_count}"
        epsilon = budget.spend_on_selection(
            charge_name, selection.total_cost / selection.feature_count
        )
        table_qualities = [
            compute_table_quality(table, selection.penalty_in_people * source.count_sensitivity)
            for table in candidate_tables
        ]
        best_index = sample_exponential_mechanism(
            table_qualities, epsilon / source.count_sensitivity, random
        )
        best_cells = candidate_tables[best_index].cells
        feature_name = best_cells.feature.name
        selected_cells[feature_name] = best_cells
        candidate_tables = [
            table for table in candidate_tables if table.cells.feature.name != feature_name
        ]
    return {name: selected_cells[name] for name in source.schema.names if name in selected_cells}


def compute_table_quality(table: Table, penalty_in_counts: float) -> int:
    """Rows that the majority class of each cell classifies correctly, less a penalty per cell."""
    return int(table.counts.max(axis=0).sum()) - round(penalty_in_counts * table.cells.size)


def _count_candidate_tables(source: Source, bins: Any) -> list[Table]:
    """Tables of all features in all candidate binnings, from one count on the finest cells."""
    schema = source.schema
    binnings_by_feature: dict[str, list[Any]] = {}
    for feature in schema.features:
        if isinstance(feature, Numeric):
            requested_bins = bins.get(feature.name) if isinstance(bins, Mapping) else bins
            binnings_by_feature[feature.name] = (
                list_candidate_binnings(feature)
                if requested_bins is None or requested_bins == "auto"
                else [requested_bins]
            )
    cells_by_feature = {
        feature_name: [
            Cells.from_schema(schema, feature_name, {feature_name: binning}) for binning in binnings
        ]
        for feature_name, binnings in binnings_by_feature.items()
    }
    finest_edges = {
        name: sorted(
            {
                inner_edge
                for feature_cells in candidate_cells
                for inner_edge in feature_cells.edges[1:-1]
            }
        )
        for name, candidate_cells in cells_by_feature.items()
    }
    finest_tables = source.count_tables(build_cells(schema, finest_edges))
    return [
        merge_cells(table, feature_cells)
        for name, table in finest_tables.items()
        for feature_cells in cells_by_feature.get(name, [table.cells])
    ]


def merge_cells(table: Table, coarser_cells: Cells) -> Table:
    """The same counts on coarser cells."""
    if coarser_cells == table.cells:
        return table
    first_bins = np.searchsorted(table.cells.edges[:-1], coarser_cells.edges[:-1])
    bin_counts = np.add.reduceat(table.counts[:, : table.cells.value_count], first_bins, axis=1)
    return Table(
        coarser_cells,
        np.concatenate([bin_counts, table.counts[:, table.cells.value_count :]], axis=1),
    )


def list_candidate_binnings(feature: Numeric) -> list[list[float]]:
    """Candidate binnings of a feature: 4 bins, 8 bins, and 16 bins that are finer near zero.

    >>> [len(points) + 1 for points in list_candidate_binnings(Numeric("age", 20, 100))]
    [4, 8, 16]
    """
    binnings = [
        compute_inner_edges(feature, 4),
        compute_inner_edges(feature, 8),
        compute_inner_edges(feature, 16, fine_near_zero=True),
    ]
    return [binning for i, binning in enumerate(binnings) if binning not in binnings[:i]]


def sample_exponential_mechanism(
    qualities: Sequence[int], epsilon: Fraction, random: Random
) -> int:
    """Index i with probability proportional to exp(epsilon * quality[i]), exactly.

    A uniform candidate is kept with probability exp(-epsilon * shortfall), the chance that a
    geometric draw of scale 1 / (epsilon * shortfall) is not zero.
    """
    best_quality = max(qualities)
    while True:
        index = int(random.integers(len(qualities), 1)[0])
        scaled_shortfall = epsilon * (best_quality - int(qualities[index]))
        if scaled_shortfall == 0 or random.geometric(1 / scaled_shortfall, 1)[0] >= 1:
            return index


def compute_subsample_share(epsilon: float, people: float) -> Fraction:
    """Share of the rows to score so that the choice between candidates is reliable."""
    return Fraction(
        min(1.0, max(MIN_SCORED_ROWS, SUFFICIENT_ROWS_TIMES_EPSILON / epsilon) / max(people, 1.0))
    )


def weigh_rows(row_values: Array, weights: Floats | None) -> Array:
    """Values of rows, each as often as the row counts: once, if there are no weights."""
    return row_values if weights is None else (row_values.T * weights).T


def count_correct(scores: Floats, class_codes: Integers, weights: Floats | None = None) -> int:
    """Count the rows of a sample that a candidate classifies correctly.

    Every row is in the sample by a coin of its own, so that a record still changes the number
    by 0 or 1 only; the coin's bias comes from private estimates and from the budget. The coins of
    a person's rows may all show heads, which is what is charged.
    """
    # of two classes the first is predicted where both are level, as by argmax, which is slower
    predicted_codes = scores[:, 1] > scores[:, 0] if scores.shape[1] == 2 else scores.argmax(axis=1)
    return int(weigh_rows(predicted_codes == class_codes, weights).sum())
