"""Corrections: tables that count what the model so far gets wrong (docs/maths.md, "Corrections").

Where there are people enough, independence is what limits a Naive Bayes model, not the noise. Then
a part of the budget pays for

1. the start: which of the usual scorings, and how far it is toned down, describes the rows best;
2. features, those that say most first: for every cell the sum of residuals (class minus expected
   class) and of curvatures of the model so far, with noise. They change the feature's table;
3. a few pairs of features, chosen by how wrong the model is in their cells: the same for a pair;
4. the last choice: which of the models made on the way, or of the usual ones with all or few
   features, classifies most rows right.

Accounting: rows are looked at through three numbers. A row's residuals and curvature are whole
numbers whose absolute values add up to at most 1024, so one more record changes a table of their
sums by at most 1024 in all, and the sum of their absolute values in cells by at most 1024, up *or
down*: pairs are drawn with exp(epsilon q / 2). The qualities of the start (at most 1024 a row) and
of the last choice (1) can only rise. All shares are charged; all of them see the same rows, and who
is among those is decided by one coin a row, which is charged as if it had always shown heads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.central.budget import Budget, Noise
from discreet.central.choice import Sample, choose, enough, right
from discreet.estimation.corrections import Additive
from discreet.estimation.log_ratios import LogRatios
from discreet.randomness import Random
from discreet.schema import Schema
from discreet.scoring import Correction, Scoring

__all__ = ["Plan", "corrected", "likeliness", "residuals", "sum_rows", "summed"]

Groups = Mapping[str, tuple[int, ...]]
"""What a correction is about: features, and the group of each of their cells."""

UNIT = 1024
"""Residuals are counted in whole multiples of 1 / 1024: the L1 sensitivity of their tables."""
FROM, FROM_OF_MANY = 100.0, 150.0
"""Corrections are made when people / (classes * noise scale) is at least this. With more than two
classes residuals are divided by up to 2.25, so more is needed: benchmarks/RESULTS.md."""
TEMPERATURES = (1.0, 0.7, 0.5, 0.35, 0.25)
WORST = 4.0
"""The log-loss of a row is truncated here, in nats, so that its quality lies between 0 and 1."""
FEWEST, PER_FEATURE = 6, 0.15
"""Corrected features: at least this many, and this many per signal_to_noise * feature_share."""
PER_PAIR, MOST_PAIRS = 45.0, 6
BEST = 10
"""Number of best features whose pairs are candidates."""
GROUPS = 6
"""Largest number of cell groups of each feature of a pair."""
FOR_TABLE = Fraction(8, 10)
"""Part of the cost of a pair that pays for its table; the rest pays for choosing the pair."""
EITHER_WAY = 2
"""Sensitivity factor of a quality that one record may raise or lower (McSherry, Talwar 2007)."""
PAIR_ROWS = 200_000
"""Rows times classes of the subsample on which pairs are scored."""


@dataclass(frozen=True)
class Plan:
    """The budget of each correction step; it depends only on what is already private.

    Parameters
    ----------
    start, features, pairs, last, whole : Fraction
        Of the steps above, and all together.
    number, times : int
        Of features and of pairs.
    people : float
        How many rows there are about, by what is already private.
    """

    start: Fraction
    features: Fraction
    pairs: Fraction
    last: Fraction
    whole: Fraction
    number: int
    times: int
    people: float

    @classmethod
    def of(cls, u: float, schema: Schema, whole: Fraction, people: float) -> Plan | None:
        """The correction budget for this signal-to-noise ratio, or None if it is too low.

        >>> from discreet import Numeric
        >>> schema = Schema([Numeric(f"x{i}", 0, 1) for i in range(20)], "y", [0, 1])
        >>> plan = Plan.of(300.0, schema, Fraction(1), 10_000)
        >>> float(plan.features), float(plan.pairs), plan.number, plan.times
        (0.2, 0.18, 9, 1)
        """
        features = len(schema.features)
        least = FROM if len(schema.classes) == 2 else FROM_OF_MANY
        if not u >= least or features < 2 or len(schema.classes) < 2:
            return None
        tables = min(0.35, 0.2 * math.log10(u / 30))
        twos = min(0.28, 0.9 * tables)
        number = round(min(features, max(FEWEST, PER_FEATURE * u * tables)))
        times = math.floor(min(max(u * twos / PER_PAIR, 1), MOST_PAIRS))
        start, singles, pairs, last = (
            whole * Fraction(round(1000 * one), 1000) for one in (0.03, tables, twos, 0.04)
        )
        together = start + singles + pairs + last
        return cls(start, singles, pairs, last, together, number, times, people)


def residuals(scores: Floats, codes: Integers) -> tuple[Floats, Floats]:
    """Residuals, of shape (rows, 1 or classes), and curvatures of rows, in whole 1/1024.

    Two classes: y - q and q (1 - q), together 1 - P(y)^2. More: onehot - p and a quarter of
    sum of p (1 - p), the row divided by what they add up to where that is more than one. They are
    rounded towards zero, so that the absolute values of a row add up to at most 1024. They are to
    the last bit a function of that row alone, whatever other rows there are.
    """
    scores = np.ascontiguousarray(scores)  # exp may be computed otherwise where there are gaps
    if scores.shape[1] == 2:
        with np.errstate(over="ignore"):
            q = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
        left, curved = (codes - q)[:, None], q * (1 - q)
    else:
        left = np.exp(scores - scores.max(axis=1, keepdims=True))
        left /= -sum_rows(left)[:, None]
        curved = (1 - sum_rows(left * left)) / 4
        left[np.arange(len(codes)), codes] += 1
        curved = np.maximum(curved, 0.0)
        over = np.maximum(sum_rows(np.abs(left)) + curved, 1.0)
        left /= over[:, None]
        curved = curved / over
    left, curved = np.trunc(UNIT * left), np.trunc(UNIT * curved)
    return left, curved


def sum_rows(numbers: Floats) -> Floats:
    """Sum of each row, from the first number to the last.

    NumPy's own sum adds in an order that depends on the memory layout of the rows.
    """
    totals = numbers[:, 0].copy()
    for column in numbers.T[1:]:
        totals += column
    return totals


def summed(index: Integers, cells: int, numbers: Sequence[Floats]) -> Floats:
    """Sum row values per cell; rows of the cell after the last are ignored.

    Whole numbers below 2^53, so that floating point adds them up exactly.
    """
    rows = [np.bincount(index, one, minlength=cells + 1)[:cells] for one in numbers]
    return np.array(rows)


def likeliness(scores: Floats, codes: Integers) -> int:
    """Sum over rows of 1 + max(log P(class), -4) / 4, from 0 to 1 a row, in 1/1024."""
    scores = np.ascontiguousarray(scores)
    away = scores - scores.max(axis=1, keepdims=True)
    log_p = away[np.arange(len(codes)), codes] - np.log(sum_rows(np.exp(away)))
    part = np.clip(1 + np.maximum(log_p, -WORST) / WORST, 0.0, 1.0)
    return int(np.floor(UNIT * part).sum())


def corrected(
    sample: Sample,
    ratios: LogRatios,
    usual: Mapping[Scoring, Additive],
    budget: Budget,
    plan: Plan,
    random: Random,
) -> tuple[Scoring, tuple[Correction, ...]]:
    """Correct the model privately; return the chosen scoring and the corrections it applies.

    Parameters
    ----------
    sample : Sample
        The rows that are looked at.
    ratios : LogRatios
        Of the tables that were released.
    usual : mapping of Scoring to Additive
        Its candidates.
    budget : Budget
    plan : Plan
        What each step may cost.
    random : Random
    """
    few = sample.some(enough(budget.strength(plan.last), plan.people), random)
    start = _start(few, usual, budget.selection("choice of start", plan.start), random)
    model = ratios.model(start)
    candidates = [*usual, start]
    quality = [right(few.scores(one), few.codes) for one in (*usual.values(), model)]
    making = Making(sample, ratios, model, sample.scores(model))
    order = ratios.order[: plan.number]
    about: list[Groups | None] = [{name: _grouped(ratios, name)} for name in order]
    about += [None] * plan.times  # pairs are chosen when it is their turn
    part = FOR_TABLE if len(ratios.order) > 2 else Fraction(1)  # of two features there is one pair
    for done, groups in enumerate(about, 1):
        share = plan.features / len(order)
        if groups is None:
            share = part * plan.pairs / plan.times
            epsilon = Fraction(0)
            if part < 1:
                name = f"choice of pair {done - len(order)} of {plan.times}"
                epsilon = budget.selection(name, plan.pairs / plan.times - share)
            groups = _pair(making, plan.people, epsilon, budget.scale(share), random)
        noise = budget.noise(f"residuals of {' and '.join(groups)}", share, UNIT)
        making.take(groups, noise, random)
        if done in (len(order) // 4, len(order) // 2) or done >= len(order):
            candidates.append(replace(start, corrections=done))
            quality.append(right(making.scores[few.rows], few.codes))
    epsilon = budget.selection("choice of scoring", plan.last)
    chosen = candidates[choose(quality, epsilon, random)]
    return chosen, making.made[: chosen.corrections]


@dataclass
class Making:
    """A model while it is corrected: its scores of every row, and the corrections so far."""

    sample: Sample
    ratios: LogRatios
    model: Additive
    scores: Floats
    made: tuple[Correction, ...] = ()

    def take(self, groups: Groups, noise: Noise, random: Random) -> None:
        """Release noisy residuals of some cells, and correct the model with them."""
        left, curved = residuals(self.scores, self.sample.codes)
        index, size = self.sample.index(groups)
        noisy = noise.add(summed(index, size, [*left.T, curved]), random) / UNIT
        one = Correction(groups, noisy[:-1], noisy[-1], noise.variance / UNIT**2)
        self.model, move = self.model.corrected(one)
        self.made += (one,)
        ignored = np.zeros((1, len(move)))
        self.scores += np.concatenate([move.T, ignored])[index]


def _start(
    few: Sample, usual: Mapping[Scoring, Additive], epsilon: Fraction, random: Random
) -> Scoring:
    """Choose the scoring of all features, and its temperature, by truncated log-likelihood."""
    starts, quality = [], []
    for way, model in usual.items():
        if way.features is not None or way.beta != 1:
            continue
        log_prior = np.log(model.prior)
        whole = few.scores(model) - log_prior
        for beta in TEMPERATURES:
            starts.append(replace(way, beta=beta))
            quality.append(likeliness(log_prior + beta * whole, few.codes))
    return starts[choose(quality, epsilon / UNIT, random)]


def _pair(making: Making, people: float, epsilon: Fraction, scale: float, random: Random) -> Groups:
    """Choose the pair with the largest absolute residuals, by the exponential mechanism."""
    ratios, classes = making.ratios, len(making.ratios.prior)
    best = {name: _grouped(ratios, name, GROUPS) for name in ratios.order[:BEST]}
    pairs = [{a: best[a], b: best[b]} for a, b in combinations(best, 2)]
    if len(pairs) == 1:
        return pairs[0]
    some = making.sample.some(Fraction(min(1.0, PAIR_ROWS / max(classes * people, 1.0))), random)
    left, _ = residuals(making.scores[some.rows], some.codes)
    own = {name: some.index({name: groups}) for name, groups in best.items()}
    quality = []
    for a, b in pairs:
        (first, rows), (second, columns) = own[a], own[b]
        wrong, size = 0, (rows + 1) * (columns + 1)  # what is ignored has the last row and column
        for numbers in left.T:
            table = np.bincount(first * (columns + 1) + second, numbers, minlength=size)
            wrong += int(np.abs(table.reshape(rows + 1, columns + 1)[:rows, :columns]).sum())
        # how wrong the model is there, less a price for every cell
        quality.append(wrong - round(UNIT * scale * left.shape[1] * rows * columns))
    return pairs[choose(quality, epsilon / (EITHER_WAY * UNIT), random)]


def _grouped(ratios: LogRatios, name: str, most: float = math.inf) -> tuple[int, ...]:
    """The group of every cell, -1 for the one that the model ignores: each alone, if not too many.

    Else they are in groups of about equally many people, as the noisy table has them: bins joined
    with their neighbours, categories with those of like evidence.
    """
    table = ratios.statistics.tables[name]
    skipped = table.cells.missing is not None and ratios.statistics.schema.missing == "skip"
    looked = (*range(table.cells.size - skipped), *([-1] * skipped))
    if max(looked) < most:
        return looked
    used = np.flatnonzero(np.array(looked) >= 0)
    order = np.arange(len(used))
    if not table.cells.edges:
        evidence = ratios.model(ratios.statistics.scoring).tables[name]
        order = np.argsort(evidence[int(np.argmax(ratios.prior)), used], kind="stable")
    people = np.maximum(table.counts.sum(axis=0), 0.0)[used][order] + 1.0
    middle = (people.cumsum() - people / 2) / people.sum()
    _, group = np.unique((most * middle).astype(int), return_inverse=True)
    found = np.full(len(looked), -1)
    found[used[order]] = group
    return tuple(int(one) for one in found)
