"""Maximum-likelihood Naive Bayes from whole randomized sheets, by EM.

A sheet is true as a whole or drawn as a whole, and drawn ones are spread over all answers while
true ones are alike. So which sheets are probably true can be told from all of their answers
together, which the tables of one answer by class do not see. With NB the Naive Bayes law of a true
sheet and D the public law of the drawn ones, a sheet s has the likelihood

    theta NB(s) + (1 - theta) D(s)

which EM climbs: r(s) is the probability that s is true, and tables are counts of sheets weighted by
it, drawn to the feature's margin by a pseudo-counts per class. Everything is computed from sheets
that were sent, and costs no privacy.

- How large a is, and whether features depend on the class at all (a without end), is decided by
  the likelihood of sheets that were left out (four folds). Where dependence gains less than a few
  units of log-likelihood, the tables are left to their own shrinkage.
- True answers are not independent within a class. As far as the tables of this classifier lie
  farther from the unbiased ones than the channel's noise explains, it weighs less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Array, Floats, Integers
from discreet.collection.tally import Tally
from discreet.mechanisms.response import Unrelated
from discreet.scoring import Likeliest
from discreet.statistics import Table
from discreet.survey.questionnaire import Questionnaire

__all__ = ["likeliest"]

PULLS = (1.0, 3.0, 10.0, 30.0, 100.0, np.inf)
"""Pseudo-counts per class that shrink its table to the margin; infinity: no dependence."""
GAIN = 6.0
"""Gain of held-out log-likelihood at which dependence on the class is believed to one half."""
FOLDS = 4
SHEETS, CHOOSING = 50_000, 4_000
"""Most respondents that are fitted, of more distinct sheets; and that choose pseudo-counts."""
STEPS, SETTLED = 60, 1e-3
FEW = 20
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Sheets:
    """Some sheets as places in a flat table of (class, cell).

    Parameters
    ----------
    classes : array of int, (sheets,)
    places : sparse array, (sheets, classes * cells)
        One where a sheet of this class has this cell.
    times : array of float, (sheets,)
    drawn : array of float, (sheets,)
        Log-probability that a drawn sheet is this one, and that a sheet is drawn.
    """

    classes: Integers
    places: Any
    times: Floats
    drawn: Floats

    def some(self, chosen: Integers) -> Sheets:
        """Only the chosen sheets."""
        return Sheets(
            self.classes[chosen], self.places[chosen], self.times[chosen], self.drawn[chosen]
        )


@dataclass(frozen=True, eq=False)
class Law:
    """A Naive Bayes law of true sheets: class shares, and P(cell | class) of all features in a row.

    Parameters
    ----------
    shares : array of shape (classes,)
    tables : array of shape (classes, cells of all features)
    """

    shares: Floats
    tables: Floats

    def log_true(self, sheets: Sheets, theta: float) -> Floats:
        """Log-probability that a sheet is true and this one."""
        of_cells = sheets.places @ np.log(self.tables).ravel()
        return np.asarray(np.log(theta) + np.log(self.shares)[sheets.classes] + of_cells)


def likeliest(
    tally: Tally[Questionnaire], totals: Floats, variances: Floats, tables: Mapping[str, Table]
) -> Likeliest | None:
    """The classifier under which the sheets are most likely, and how much it may weigh.

    None where sheets are not true or drawn as a whole (several groups, or the related-question
    model), where everybody sends the truth, or where next to nothing was sent.

    Parameters
    ----------
    tally : Tally
    totals, variances : arrays of shape (classes,)
        Unbiased class totals and the variance of each.
    tables : mapping of name to Table
        Unbiased.
    """
    survey = tally.collection
    (channel, *more) = survey.channels
    theta = float(channel.theta_exact)
    if more or not isinstance(channel, Unrelated) or not 0 < theta < 1 or tally.people < FEW:
        return None
    if len(totals) < 2 or not tables:
        return None
    search = Search(survey, theta, _start(totals, variances, tables))
    law, weight = search.found(*tally.distinct())
    parts = dict(zip(tables, np.split(law.tables, search.ends[:-1], axis=1), strict=True))
    # 1 where the noise of the channel explains all of the distance
    people = float(tally.people)
    distance = [
        (one.counts - people * law.shares[:, None] * parts[name]) ** 2 / one.variances
        for name, one in tables.items()
    ]
    misfit = float(np.concatenate([one.ravel() for one in distance]).mean())
    return Likeliest(weight / max(misfit, 1.0), law.shares, parts)


def _start(totals: Floats, variances: Floats, tables: Mapping[str, Table]) -> Law:
    """Make the unbiased tables positive, at least half a standard deviation per cell."""
    shares = np.maximum(totals, np.sqrt(variances) / 2) + 1
    parts = []
    for one in tables.values():
        kept = np.maximum(one.counts, np.sqrt(one.variances) / 2) + 1
        parts.append(kept / kept.sum(axis=1, keepdims=True))
    return Law(shares / shares.sum(), np.concatenate(parts, axis=1))


class Search:
    """Maximum-likelihood Naive Bayes law of the true sheets, by EM with chosen pseudo-counts.

    Parameters
    ----------
    survey : Questionnaire
    theta : float
    start : Law
    """

    def __init__(self, survey: Questionnaire, theta: float, start: Law) -> None:
        self.survey, self.theta, self.start = survey, theta, start
        self.sizes = np.array(survey.sizes[:-1])  # the target comes last
        self.ends = np.cumsum(self.sizes)

    def found(self, rows: Integers, times: Integers) -> tuple[Law, float]:
        """Fit the law, averaged over pseudo-counts, and the belief in dependence on the class.

        Parameters
        ----------
        rows : array of int, (different sheets, questions)
        times : array of int, (different sheets,)
        """
        few = _people(times, CHOOSING)
        laws, scores = self._compared(self._placed(rows[few], np.ones(len(few))))
        gain = scores[:-1].max() - scores[-1]
        chance = np.exp(scores - scores.max())
        chance = np.where(chance < 0.01, 0.0, chance)
        some, often = rows, times
        if len(rows) > SHEETS:
            kept, often = np.unique(_people(times, SHEETS), return_counts=True)
            some = rows[kept]
        every = self._placed(some, often)
        fitted = [
            (part, self.fitted(every, pull, law, STEPS))
            for part, pull, law in zip(chance / chance.sum(), PULLS, laws, strict=True)
            if part > 0
        ]
        shares = np.exp(sum(part * np.log(law.shares) for part, law in fitted))
        tables = np.exp(sum(part * np.log(law.tables) for part, law in fitted))
        whole = np.add.reduceat(tables, self.ends - self.sizes, axis=1)
        tables = tables / np.repeat(whole, self.sizes, axis=1)
        believed = 1 / (1 + np.exp(np.clip(GAIN - gain, -50.0, 50.0)))
        return Law(shares / shares.sum(), tables), float(believed)

    def _compared(self, sheets: Sheets) -> tuple[list[Law], Floats]:
        """Fit a law for every pseudo-count, and its held-out log-likelihood over the folds."""
        fold = np.arange(len(sheets.times)) % FOLDS
        laws, scores = [], np.zeros(len(PULLS))
        for k, pull in enumerate(PULLS):
            laws.append(self.fitted(sheets, pull, self.start, STEPS))
            for one in range(FOLDS):
                kept, left = (sheets.some(np.flatnonzero(o)) for o in (fold != one, fold == one))
                # from the start law: the law of all sheets has seen the held-out ones
                law = self.fitted(kept, pull, self.start, STEPS)
                true = law.log_true(left, self.theta)
                scores[k] += (left.times * np.logaddexp(true, left.drawn)).sum()
        return laws, scores

    def fitted(self, sheets: Sheets, pull: float, law: Law, steps: int) -> Law:
        """Run EM from a starting law with one pseudo-count."""
        classes, cells = law.tables.shape
        for _ in range(steps):
            true = law.log_true(sheets, self.theta)
            odds = np.exp(np.clip(sheets.drawn - true, -700.0, 700.0))
            weight = sheets.times / (1 + odds)
            of_class: Floats = np.bincount(sheets.classes, weight, minlength=classes).astype(float)
            shares = (of_class + 1) / (of_class.sum() + classes)
            counts = weight @ sheets.places
            tables = self._drawn_to_margin(counts.reshape(classes, cells), of_class, pull)
            step = max(np.abs(shares - law.shares).max(), np.abs(tables - law.tables).max())
            law = Law(shares, tables)
            if step < SETTLED:
                break
        return law

    def _drawn_to_margin(self, counts: Floats, of_class: Floats, pull: float) -> Floats:
        pooled = counts.sum(axis=0) + 1
        margin = pooled / np.repeat(np.add.reduceat(pooled, self.ends - self.sizes), self.sizes)
        if np.isinf(pull):
            return np.tile(margin, (len(counts), 1))
        return np.asarray((counts + pull * margin) / (of_class[:, None] + pull))

    def _placed(self, rows: Integers, times: Array) -> Sheets:
        from scipy.sparse import csr_array  # late: a respondent's device need not load it

        drawn = np.full(len(rows), np.log1p(-self.theta))
        for law in self.survey.all_laws:
            shape = [self.survey.sizes[place] for place in law.places]
            cell = np.ravel_multi_index(tuple(rows[:, list(law.places)].T), shape)
            weights = np.array(law.weights, float) / law.total
            drawn += np.log(np.maximum(weights, TINY))[cell]
        classes = rows[:, -1]
        cells = rows[:, :-1] + self.ends - self.sizes + classes[:, None] * self.ends[-1]
        ends = np.arange(0, cells.size + 1, len(self.sizes))
        flat = (len(rows), self.start.tables.size)
        places = csr_array((np.ones(cells.size), cells.ravel(), ends), shape=flat)
        return Sheets(classes, places, np.asarray(times, float), drawn)


def _people(times: Integers, most: int) -> Integers:
    """Take at most ``max_respondents`` evenly; return the index of each one's distinct sheet."""
    below = np.cumsum(times)
    count = int(below[-1])
    taken = np.arange(count)
    if count > most:
        taken = np.floor((np.arange(most) + 0.5) * count / most).astype(np.int64)
    return np.asarray(np.searchsorted(below, taken, side="right"))
