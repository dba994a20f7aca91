"""Shuffling of sheets with several groups, or with made-up answers of unequal probability.

Their blanket is known exactly: in each group it is the law of the made-up answers. The likelihood
ratio of a sheet is a product over the groups, so a sum over many sheets has too many terms for
:mod:`discreet.privacy.shuffling`; here it is convolved by FFT. Derivation: docs/maths.md.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np

from discreet.arrays import Floats

__all__ = ["SheetBlanket"]

CELLS_PER_SD = 30
"""Cells of the grid per standard deviation of a term: rounding adds 1e-4 of the variance."""
TAIL_EXPONENT = 45.0
"""Sums outside the grid have a probability of at most exp(-45), under the tilted law."""
MAX_GRID_CELLS = 1 << 23
"""Largest grid; if more cells were needed, a coarser grid gives a looser bound on delta."""
MAX_PAIRS = 27
"""Largest number of pairs of people that are tried; beyond, one bound covers all."""
MAX_TERMS = 3**10
"""Different terms that a sheet may add; with more, nothing is computed and delta is 1."""
FLOAT_SLACK = 1e-5
"""Share of delta that is added for float rounding in a power of a Fourier transform."""


GroupCells = tuple[tuple[float, float, float], ...]
"""Of one group: (chance of made-up answers, what x and what x' make them more likely by)."""


@dataclass(frozen=True)
class SheetBlanket:
    """The blanket of a sheet: the made-up answers of all groups.

    Parameters
    ----------
    groups : tuple of (float, float, float)
        For each group theta, the probability of the truth, and the probabilities of the least and
        of the second least likely combination of made-up answers.
    """

    groups: tuple[tuple[float, float, float], ...]

    @property
    def ratio(self) -> float:
        """exp(epsilon) of a sheet by itself."""
        return math.prod(
            1 + theta / (1 - theta) / least_chance for theta, least_chance, _ in self.groups
        )

    def compute_delta(self, people: int, epsilon: float) -> float:
        """Compute the delta at which the shuffled sheets of this many people satisfy an epsilon.

        Parameters
        ----------
        people : int
        epsilon : float

        Returns
        -------
        float
            An upper bound, for the worst pair of people; 1 where groups that differ from each
            other are too many to convolve.
        """
        pairs = self._list_pairs()
        if max(map(_count_most_terms, pairs)) > MAX_TERMS:
            return 1.0
        return max(self._compute_pair_delta(pair, people, epsilon) for pair in pairs)

    def _list_pairs(self) -> list[tuple[GroupCells, ...]]:
        """Pairs of people of which one is the worst: in each group they gave the rarest answers.

        Rarer ones say more (docs/maths.md). Which of both has the rarest, and whether both have it,
        matters only where it is rarer than the second.
        """
        group_options: list[list[GroupCells]] = []
        for theta, least_chance, second_chance in self.groups:
            truth_gain = theta / (1 - theta)

            def make_differing_cells(
                first_chance: float, second_chance: float, truth_gain: float = truth_gain
            ) -> GroupCells:
                return (
                    (first_chance, 1 + truth_gain / first_chance, 1),
                    (second_chance, 1, 1 + truth_gain / second_chance),
                    (1 - first_chance - second_chance, 1, 1),
                )

            equal_cells: GroupCells = (
                (least_chance, 1 + truth_gain / least_chance, 1 + truth_gain / least_chance),
                (1 - least_chance, 1, 1),
            )
            cell_options = [make_differing_cells(least_chance, second_chance)]
            if second_chance <= least_chance:
                cell_options = [make_differing_cells(least_chance, least_chance)]
            else:
                cell_options += [make_differing_cells(second_chance, least_chance), equal_cells]
            group_options.append(cell_options)
        if math.prod(map(len, group_options)) > MAX_PAIRS:
            # as if the second were as rare: above all
            bounding_groups = tuple(
                (theta, least_chance, least_chance) for theta, least_chance, _ in self.groups
            )
            return SheetBlanket(bounding_groups)._list_pairs()
        pairs = list(product(*group_options))
        return [pair for pair in pairs if any(len(group_cells) == 3 for group_cells in pair)]

    def _compute_pair_delta(
        self, pair: tuple[GroupCells, ...], people: int, epsilon: float
    ) -> float:
        term_values, chances = self._compute_term_law(pair, epsilon)
        if term_values.max() <= 0:
            return 0.0
        tilt = _find_saddle_point(term_values, chances)
        tilted_chances, _ = _tilt_law(term_values, chances, tilt)
        grid_step = math.sqrt(float(tilted_chances @ term_values**2)) / CELLS_PER_SD
        grid_step = max(
            grid_step, 4 * _compute_half_width(term_values, tilted_chances, people) / MAX_GRID_CELLS
        )
        grid_places, chances = _split_onto_grid(term_values, chances, grid_step)
        tilted_chances, log_sum = _tilt_law(grid_places * grid_step, chances, tilt)
        half_width = _compute_half_width(grid_places * grid_step, tilted_chances, people)
        grid_cells = 2 ** math.ceil(math.log2(2 * half_width / grid_step + 4))
        term_law = np.zeros(grid_cells)
        np.add.at(term_law, grid_places.astype(np.int64) % grid_cells, tilted_chances)
        sum_chances = np.fft.irfft(np.fft.rfft(term_law) ** people, grid_cells)[1 : grid_cells // 2]
        sum_values = np.arange(1, grid_cells // 2) * grid_step
        excess = float(sum_chances.clip(0.0) @ (sum_values * np.exp(-tilt * sum_values)))
        outside_mass = math.exp(-TAIL_EXPONENT) / (math.e * tilt)  # s exp(-tilt s) is at most that
        log_bound = math.log((excess + outside_mass) * (1 + FLOAT_SLACK)) + people * log_sum
        return math.exp(min(log_bound - math.log(people), 0.0))

    def _compute_term_law(
        self, pair: tuple[GroupCells, ...], epsilon: float
    ) -> tuple[Floats, Floats]:
        """What one sheet adds, (R(x) - exp(epsilon) R(x')) / blanket, and with what chance."""
        hidden_chance = math.prod(1 - theta for theta, _, _ in self.groups)
        likelier, chances = np.ones((2, 1)), np.ones(1)
        for group_cells in sorted(
            pair
        ):  # groups that are alike follow each other: equal terms are one
            chance, *factors = np.array(group_cells).T
            likelihood_products = [
                np.outer(*factor_pair).ravel()
                for factor_pair in zip(likelier, factors, strict=True)
            ]
            likelier, term_index = np.unique(likelihood_products, axis=1, return_inverse=True)
            weights = np.outer(chances, chance).ravel()
            chances = np.zeros(likelier.shape[1])
            np.add.at(chances, term_index.ravel(), weights)
        first_ratio, second_ratio = likelier
        term_values = first_ratio - math.exp(epsilon) * second_ratio
        return np.append(0.0, term_values), np.append(1 - hidden_chance, hidden_chance * chances)


def _count_most_terms(pair: tuple[GroupCells, ...]) -> int:
    """Different terms at most: of groups that are alike, it matters how many are in which cell."""
    group_sizes = Counter(pair).values()
    return math.prod((group_count + 1) * (group_count + 2) // 2 for group_count in group_sizes)


def _tilt_law(values: Floats, chances: Floats, tilt: float) -> tuple[Floats, float]:
    """The law in proportion to chance * exp(tilt * value), and the log of what it adds up to."""
    max_exponent = float((tilt * values).max())
    tilted_weights = chances * np.exp(tilt * values - max_exponent)
    total = float(tilted_weights.sum())
    return tilted_weights / total, max_exponent + math.log(total)


def _find_saddle_point(values: Floats, chances: Floats) -> float:
    """The tilt under which a term has a mean of 0: the tail of the sum is then in its middle."""

    def compute_mean(tilt: float) -> float:
        return float(_tilt_law(values, chances, tilt)[0] @ values)

    low_tilt, high_tilt = 0.0, 1 / float(values.max())
    while compute_mean(high_tilt) < 0:
        low_tilt, high_tilt = high_tilt, 2 * high_tilt
    for _ in range(60):
        middle_tilt = (low_tilt + high_tilt) / 2
        low_tilt, high_tilt = (
            (middle_tilt, high_tilt) if compute_mean(middle_tilt) < 0 else (low_tilt, middle_tilt)
        )
    return high_tilt


def _compute_half_width(values: Floats, weights: Floats, people: int) -> float:
    """Compute how far from 0 a sum can be, except with probability exp(-45) (Bernstein)."""
    term_mean = float(weights @ values)
    max_deviation = float(np.abs(values - term_mean).max())
    sum_variance = people * float(weights @ (values - term_mean) ** 2)
    half_width = TAIL_EXPONENT * max_deviation / 3
    half_width += math.sqrt(half_width**2 + 2 * TAIL_EXPONENT * sum_variance)
    return min(half_width, people * max_deviation) + people * abs(term_mean)


def _split_onto_grid(values: Floats, chances: Floats, step: float) -> tuple[Floats, Floats]:
    """The law on multiples of ``step``: each value is split between its two neighbours.

    The mean stays, and sums grow in convex order: the mean of their positive part is bounded from
    above.
    """
    lower_places = np.floor(values / step)
    upper_share = values / step - lower_places
    return np.append(lower_places, lower_places + 1), np.append(
        chances * (1 - upper_share), chances * upper_share
    )
