"""Probability that the classifier without noise would make the same decision.

The classifier without noise is plain Naive Bayes of the exact counts of the same people, on the
same features and bins, one pseudo-count a cell; nothing is shrunk, toned down or corrected. Of a
model with corrections it is the same model with exact corrections, drawn in corrected_draws.py:
plain Naive Bayes decides otherwise where features depend on each other, whatever the noise.

Tables of plain Naive Bayes are drawn from their posterior law, given the noisy numbers and the
known variance of each. What the noise hides is drawn as open, not as absent:

1. class totals: normal around the noisy ones, at least zero;
2. how much the features of such a table tell about the class: a common level, and around it a
   strength for every feature. Beforehand both have the laws below, which are about as wide as among
   public tables; the noisy tables then speak for some of them (smoothing.py has the evidence);
3. for every feature P(cell | class), normal in its log-odds given the strength;
4. the exact counts: between those expected of that many people and the noisy ones, as sampling and
   noise deserve;
5. the rows to predict add one fact. On average over people, P(class | row) is the
   share of the class; drawn tables, in which features err independently of each other, miss it. So
   every drawn classifier is shifted by a constant for each class, unless there are too few rows.
   Naive Bayes itself holds it only roughly, as it counts evidence twice: the constants are those by
   which it would hold, times a number between 0 and 2. This takes the rows for a sample of the same
   people.

Measured on eight tables that it was not tuned on (benchmarks/RESULTS.md): decisions called .85
steady were so in .88 ± .02, those called .92 in .94 ± .01. On single tables it can be too cautious
by .25, and was too sure by .10 at worst (chess, .93 stated, .83 ± .05 true). Where
much noise meets many features that say the same it remains too sure: adult, local reports at
epsilon 1.5, .85 stated, .66 true, and .95 stated, .88 true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.encoding import columns_of
from discreet.errors import EstimationError
from discreet.estimation.corrected_draws import draw_corrected_models
from discreet.estimation.from_statistics import estimate
from discreet.estimation.smoothing import GRID, Posterior, posteriors
from discreet.model import NaiveBayesModel
from discreet.randomness import Random, as_random
from discreet.scoring import Scoring
from discreet.statistics import Moments, Statistics, Table

__all__ = ["FEW_ROWS", "Drawn", "steadiness"]

DRAWS = 200
ASIDE = 0.04
"""Share of the probability that is held back, split equally for and against."""
LEVELS = np.geomspace(0.05, 6.4, 13)
"""Levels of the strengths of a table's features: standard deviations of log P(cell | class)."""
USUAL, WIDE, WITHIN, SMOOTH = 1.0, 0.6, 0.6, 0.7
"""Prior of the level: lognormal with this median and this standard deviation of its logarithm.
Strengths are lognormal around the level with the third; the fourth is the smooth part."""
FEW_ROWS = 50
"""With fewer rows nothing is shifted."""
MOST_ROWS = 1000
"""Number of rows, from the first on, that shifts are estimated from."""
MOST_CELLS = 256
"""Classes times cells; of larger tables, neighbouring cells share their strength."""
HELD = 1 << 22
"""Largest number of scores in memory at once."""
TINY = 1e-9


def steadiness(
    statistics: Statistics,
    rows: Any,
    *,
    draws: int = DRAWS,
    random_state: int | Random | None = None,
) -> Floats:
    """For each row, how probably the classifier without noise would decide the same.

    That classifier is plain Naive Bayes of the exact counts, on the same features and bins; for a
    model with corrections, the same model with corrections that carry no noise.

    Parameters
    ----------
    statistics : Statistics
        Noisy numbers with their variances; what the model was made of.
    rows : data frame, Arrow table, mapping of columns or array
        A sample of the same people, at least 50; of fewer rows less is known and the answer may be
        too sure by more than is measured in benchmarks/RESULTS.md.
    draws : int, default 200
        Classifiers that are drawn.
    random_state : None, int or Random
        For the draws, which reveal nothing that was not released.

    Returns
    -------
    array of float, (rows,)
        Between 0.02 and 0.98 where there is noise; 1 where there is none. In simulations .85 came
        true in .88 of the cases over eight tables; with much noise it can be too sure by .2
        (adult, local reports at epsilon 1.5).

    Examples
    --------
    >>> from discreet import LocalNB
    >>> from discreet.datasets import mortgage
    >>> people = mortgage(4000)
    >>> nb = LocalNB(2.0, schema=people.schema, random_state=0).fit(people.X, people.y)
    >>> steady = steadiness(nb.statistics_, people.X[:100], draws=50, random_state=0)
    >>> bool(0.5 < steady.mean() < 1)
    True
    """
    decision = estimate(statistics).predict_joint_log_proba(rows).argmax(axis=1)
    if statistics.exact:
        return np.ones(len(decision))
    return Drawn(statistics, draws, random_state).steadiness(rows, decision)


class Drawn:
    """Classifiers of exact numbers that the noisy ones leave possible.

    Parameters
    ----------
    statistics : Statistics
    draws : int, default 200
    random_state : None, int or Random

    Attributes
    ----------
    model : NaiveBayesModel
        All of them in one: its class ``K i + c`` is class c of the classifier i, of K classes.
    shares : array of shape (draws, classes)
        The class shares of each.
    """

    def __init__(
        self,
        statistics: Statistics,
        draws: int = DRAWS,
        random_state: int | Random | None = None,
    ) -> None:
        if draws < 1:
            raise EstimationError(f"{draws} draws say nothing; write at least 1")
        spreads = [one.variances for one in statistics.tables.values()]
        spreads += [one.variances for one in statistics.moments.values()]
        if not all(np.isfinite(one).all() for one in [statistics.variances, *spreads]):
            raise EstimationError(
                "the noise of these statistics has no variance (Cauchy's), so what lies behind "
                "them cannot be drawn; train with another method"
            )
        rng = np.random.default_rng(as_random(random_state).words(4))  # to imagine, not to protect
        totals = _totals(statistics, draws, rng)
        self.shares = totals / totals.sum(axis=1, keepdims=True)
        self._held = rng.uniform(0.0, 2.0, (draws, 1))
        self._shift: Floats | None = None
        if statistics.scoring.corrections:
            self.model = draw_corrected_models(statistics, draws, rng)
            self._shift = np.zeros(1)  # corrected models keep to the class shares
        else:
            self.model = _together(statistics, totals, rng)

    def steadiness(self, rows: Any, decision: Any) -> Floats:
        """For each row the probability that the classifier without noise decides so.

        Parameters
        ----------
        rows : data frame, Arrow table, mapping of columns or array
            Those of the first call are the sample of people by which the classifiers are shifted.
        decision : array of int, (rows,)
        """
        columns = columns_of(rows, self.model.inputs.names)
        many, same = len(decision), np.zeros(len(decision))
        if self._shift is None:
            self._shift = np.zeros(1)
            if many >= FEW_ROWS:
                known = self._scores(columns, slice(0, MOST_ROWS))
                self._shift = self._held * _shift(known, self.shares)
        step = max(HELD // self.shares.size, 1)
        for start in range(0, many, step):
            part = slice(start, start + step)
            scores = self._scores(columns, part) + self._shift
            same[part] = (scores.argmax(axis=2) == decision[part, None]).mean(axis=1)
        return np.asarray(ASIDE / 2 + (1 - ASIDE) * same)

    def _scores(self, columns: Mapping[str, Any], part: slice) -> Floats:
        """Of shape (rows, draws, classes)."""
        some = {name: column[part] for name, column in columns.items()}
        return self.model.predict_joint_log_proba(some).reshape(-1, *self.shares.shape)


def _shift(scores: Floats, shares: Floats, steps: int = 40) -> Floats:
    """Constants by which the mean of P(class | row) becomes the class's share."""
    shift = np.zeros(shares.shape)
    for _ in range(steps):
        moved = scores + shift
        odds = np.exp(moved - moved.max(axis=2, keepdims=True))
        mean = (odds / odds.sum(axis=2, keepdims=True)).mean(axis=0)
        shift += np.clip(np.log(shares + TINY) - np.log(mean + TINY), -1.0, 1.0)
    return shift


def _totals(statistics: Statistics, draws: int, rng: np.random.Generator) -> Floats:
    """Class totals, (draws, classes): normal around the noisy ones, at least zero."""
    from scipy.special import ndtr, ndtri

    whole = max(float(np.sum(statistics.totals)), 1.0)
    if statistics.scoring.prior is not None:
        return np.tile(whole * np.array(statistics.scoring.prior), (draws, 1))
    totals, variances = (np.asarray(x, float) for x in (statistics.totals, statistics.variances))
    classes = len(totals)
    sums = [float(one.counts.sum()) for one in statistics.tables.values()]
    if classes > 1 and np.allclose(sums, whole, rtol=1e-9):
        # everybody was counted, so errors add up to zero: as shares, those of independent errors
        # of K / (K - 1) times the variance
        variances = variances * classes / (classes - 1)
    noise = np.sqrt(variances)
    below = ndtr(-totals / np.maximum(noise, TINY))
    place = below + (1 - below) * rng.uniform(1e-6, 1 - 1e-6, (draws, classes))
    return np.asarray(np.maximum(totals + noise * ndtri(np.minimum(place, 1 - 1e-12)), 1e-3))


def _together(statistics: Statistics, totals: Floats, rng: np.random.Generator) -> NaiveBayesModel:
    """The drawn classifiers as one model, each class of each a class of its own."""
    schema = replace(statistics.schema, classes=tuple(range(totals.size)))
    projection = statistics.projection
    if projection is not None:
        projection = replace(projection, before=replace(projection.before, classes=schema.classes))
    scoring = statistics.scoring
    plain = Scoring("none", likelihood=scoring.likelihood, features=scoring.features)
    tables = _tables(statistics, totals, rng)
    moments = {
        name: _moments(one, totals, rng)
        for name, one in statistics.moments.items()
        if name not in statistics.tables
    }
    return estimate(
        Statistics(
            schema,
            totals.ravel(),
            tables={
                name: Table(statistics.tables[name].cells, counts.reshape(totals.size, -1))
                for name, counts in tables.items()
            },
            moments=moments,
            projection=projection,
            scoring=plain,
        )
    )


def _tables(statistics: Statistics, totals: Floats, rng: np.random.Generator) -> dict[str, Floats]:
    """Exact counts of every feature, (draws, classes, cells)."""
    prior = np.exp(estimate(statistics).log_prior)
    whole = max(float(np.sum(statistics.totals)), 1.0)
    skip, used = statistics.schema.missing == "skip", statistics.scoring.features
    parts: dict[str, tuple[Floats, Floats]] = {}
    bins, groups = {}, {}
    for name, table in statistics.tables.items():
        if used is not None and name not in used:
            continue
        cells = table.cells
        end = cells.missing if skip and cells.missing is not None else cells.size
        counts, variances = (np.asarray(x, float) for x in (table.counts, table.between))
        there = max(whole - max(float(counts[:, end:].sum()), 0.0), whole / 100)
        groups[name] = _groups(counts[:, :end], bool(cells.edges), len(prior))
        into = np.eye(groups[name].max() + 1)[groups[name]]
        parts[name] = counts[:, :end] @ into / there, variances[:, :end] @ into / there**2
        bins[name] = int(into[: cells.values].any(axis=0).sum()) if cells.edges else 0
    people = dict.fromkeys(parts, whole)
    found = dict(posteriors(parts, bins, prior, people))
    return {
        name: _counts(statistics.tables[name], groups[name], probability, totals, rng)
        for name, probability in _probabilities(found, len(totals), rng).items()
    }


def _groups(counts: Floats, ordered: bool, classes: int) -> Any:
    """The group of every cell: its own, or with its neighbours where there are too many cells."""
    cells = counts.shape[1]
    order = np.arange(cells) if ordered else np.argsort(counts.sum(axis=0), kind="stable")
    groups = np.empty(cells, dtype=np.int64)
    groups[order] = np.arange(cells) * min(max(MOST_CELLS // classes, 2), cells) // cells
    return groups


def _probabilities(
    found: Mapping[str, Posterior], draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """P(group of cells | class) of every feature, with levels and strengths drawn."""
    if not found:
        return {}
    strength, shared = GRID.T
    near = np.log(np.maximum(strength, LEVELS[0])) - np.log(LEVELS)[:, None]
    weights = np.exp(-0.5 * (near / WITHIN) ** 2)
    weights *= np.where(strength == 0, 1.0, np.where(shared > 0, SMOOTH, 1 - SMOOTH))
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))[:, None]
    logs = logs + np.array([one.log_evidence for one in found.values()])
    top = logs.max(axis=2, keepdims=True)
    odds = np.exp(logs - top)
    level = -0.5 * (np.log(LEVELS / USUAL) / WIDE) ** 2
    level = level + (np.log(odds.sum(axis=2)) + top[:, :, 0]).sum(axis=1)
    chance = np.exp(level - level.max())
    levels = rng.choice(len(LEVELS), size=draws, p=chance / chance.sum())
    below = (odds / odds.sum(axis=2, keepdims=True)).cumsum(axis=2)
    drawn = {}
    for index, (name, one) in enumerate(found.items()):
        at = (below[levels, index] > rng.random((draws, 1)) * (1 - TINY)).argmax(axis=1)
        drawn[name] = one.draw(at, rng)
    return drawn


def _counts(
    table: Table, groups: Any, probability: Floats, totals: Floats, rng: np.random.Generator
) -> Floats:
    """Exact counts: between expected and noisy ones, as sampling and noise deserve."""
    end = len(groups)
    noisy, variance = (np.asarray(x, float)[:, :end] for x in (table.counts, table.between))
    size = np.maximum(noisy.sum(axis=0), 0.0) + np.sqrt(variance.sum(axis=0)) + 1
    share = size / np.bincount(groups, size)[groups]  # of a cell in its group
    expected = totals[:, :, None] * probability[:, :, groups] * share
    sampled = expected + TINY
    keep = sampled / (sampled + variance)
    noise = np.sqrt(keep * variance) * rng.standard_normal(expected.shape)
    found = np.zeros((*totals.shape, table.cells.size))
    found[:, :, :end] = np.maximum(expected + keep * (noisy - expected) + noise, 0.0)
    return found


def _moments(one: Moments, totals: Floats, rng: np.random.Generator) -> Moments:
    """Exact moments of a number, each class of each draw a class of its own."""
    feature, draws = one.feature, len(totals)
    counts, missing = (np.maximum(np.asarray(x, float), 0.0) for x in (one.counts, one.missing))
    many = np.maximum(counts, 1.0)
    reach = (feature.upper - feature.lower) / 2 if feature.bounded else float(np.ptp(one.mean)) + 1
    share = many / many.sum()
    noise = one.step * np.sqrt(one.variances[1]) / many
    mean = np.clip(one.mean, feature.lower, feature.upper)
    mean = _apart(mean, noise, share, reach, draws, rng)
    mean = np.clip(mean, feature.lower, feature.upper)
    doubt = one.step**4 * one.variances[2] / many**2
    doubt = doubt + 4 * (mean.mean(axis=0) - one.origin) ** 2 * noise**2
    if one.noise is not None:
        doubt = np.asarray(one.noise, float) ** 2
    usual = max(float(share @ np.maximum(one.variance, 0.0)), (reach / 50) ** 2)
    variance = _apart(one.variance, np.sqrt(doubt), share, usual, draws, rng)
    variance = np.clip(variance, usual / 25, max(reach**2, usual / 25))
    present = totals * (many / np.maximum(many + missing, 1.0))
    away = (mean - one.origin) / one.step
    return Moments(
        feature,
        present.ravel(),
        (present * away).ravel(),
        (present * (variance / one.step**2 + away**2)).ravel(),
        (totals - present).ravel(),
        np.tile(one.origin, draws),
        one.step,
    )


def _apart(
    noisy: Floats, noise: Floats, share: Floats, usual: float, draws: int, rng: np.random.Generator
) -> Floats:
    """Numbers of the classes, (draws, classes), when how far they lie apart is open as well."""
    apart = usual * np.array([0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])[:, None]
    spread = apart**2 + noise**2 + (TINY * usual) ** 2
    centre = (noisy / spread).sum(axis=1) / (1 / spread).sum(axis=1)
    logs = -0.5 * (np.log(spread) + (noisy - centre[:, None]) ** 2 / spread).sum(axis=1)
    logs = logs - 0.5 * np.log((1 / spread).sum(axis=1))
    chance = np.exp(logs - logs.max())
    at = rng.choice(len(apart), size=draws, p=chance / chance.sum())
    middle = centre[at] + rng.standard_normal(draws) / np.sqrt((1 / spread[at]).sum(axis=1))
    keep = apart[at] ** 2 / spread[at]
    found = middle[:, None] + keep * (noisy - middle[:, None])
    return np.asarray(found + np.sqrt(keep) * noise * rng.standard_normal((draws, len(share))))
