"""Results of a collection for the desk: shares, intervals, liars, outlook, evidence, accuracy.

Shares are unbiased estimates and may be negative; intervals are normal ones from the variances of
the statistics. How far liars could move a share follows from the channel alone: a fraction f of
fabricated reports moves it at most to ``share + f * (score - share)``, where ``score`` is the
most (or the least) that one report can count for that cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.collection.size import respondents_for
from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.estimation import estimate
from discreet.report.charts import Dot, dots
from discreet.report.drawing import Axis, Picture, Words, percent, whole_percent
from discreet.schema import text_of
from discreet.server.analysis import Analysis
from discreet.server.evidence import Evidence, strongest

__all__ = ["LIARS", "Outlook", "Results", "counted"]

Z95 = 1.959963984540054
LIARS = (0.01, 0.05)
MOST_SHEETS = 1 << 20
USELESS = 0.5
"""Half-width of a 95 % interval above which a share is practically unknown."""
STRONGEST = 8
"""Largest number of answers shown as evidence."""
FEW = 50
"""Sheets in each half below which no accuracy is estimated."""


def counted(reports: int) -> str:
    """Format a number of reports in words.

    >>> counted(1), counted(1240)
    ('1 report', '1,240 reports')
    """
    return f"{reports:,} report" + "s" * (reports != 1)


@dataclass(frozen=True)
class Share:
    """An estimated share of all respondents, with standard error and range of scores."""

    label: str
    value: float
    error: float
    least: float
    most: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval, if nobody lies."""
        return self.value - Z95 * self.error, self.value + Z95 * self.error

    def moved(self, liars: float) -> tuple[float, float]:
        """Compute the range to which a share of liars could move the estimate."""
        low = self.value + liars * (self.least - self.value)
        return low, self.value + liars * (self.most - self.value)


@dataclass(frozen=True)
class Outlook:
    """The least precise share, and how many more respondents a better precision takes.

    Parameters
    ----------
    what : str
    within : float
        Half of its 95 % interval.
    needed : pairs of float and int
        Half-width of a smaller interval, and how many more respondents it takes.
    """

    what: str
    within: float
    needed: tuple[tuple[float, int], ...]


@dataclass(frozen=True, eq=False)
class Results:
    """The analysis of a collection, prepared for display.

    Parameters
    ----------
    analysis : Analysis
    """

    analysis: Analysis

    @property
    def people(self) -> float:
        """Estimated number of respondents."""
        return max(float(self.analysis.statistics.totals.sum()), 1.0)

    @cached_property
    def classes(self) -> list[Share]:
        """Shares of the classes."""
        found = self.analysis.statistics
        least, most = self._scores(found.schema.target)
        return [
            Share(text_of(label), total / self.people, math.sqrt(variance) / self.people, low, high)
            for label, total, variance, low, high in zip(
                found.schema.classes, found.totals, found.variances, least, most, strict=True
            )
        ]

    @cached_property
    def features(self) -> dict[str, list[Share]]:
        """Joint shares of cells and classes, by feature, for features asked by cell."""
        found, made = self.analysis.statistics, {}
        for name, table in found.tables.items():
            least, most = self._scores(name)
            rows = []
            for c, label in enumerate(found.schema.classes):
                for v, value in enumerate(table.cells.labels):
                    error = math.sqrt(max(float(table.variances[c, v]), 0.0)) / self.people
                    share = float(table.counts[c, v]) / self.people
                    text = f"{value}, {found.schema.target} {text_of(label)}"
                    rows.append(Share(text, share, error, float(least[c, v]), float(most[c, v])))
            made[name] = rows
        return made

    @cached_property
    def means(self) -> dict[str, list[Dot]]:
        """Means per class, within the public bounds, for numbers asked by their mean."""
        found, made = self.analysis.statistics, {}
        for name, moments in found.moments.items():
            low, high = float(moments.feature.lower or 0.0), float(moments.feature.upper or 0.0)
            rows = []
            for c, label in enumerate(found.schema.classes):
                text = f"{found.schema.target} {text_of(label)}"
                count, (of_count, of_total, _) = float(moments.counts[c]), moments.variances[:, c]
                if count <= Z95 * math.sqrt(of_count):  # there may be nobody in this class
                    rows.append(Dot(text, (low + high) / 2, low, high, note="not known yet"))
                    continue
                # total / count, to first order; both come from questions to different people
                shift = float(moments.totals[c]) / count
                error = moments.step * math.sqrt(of_total + shift * shift * of_count) / count
                mean = float(moments.mean[c])
                ends = (mean - Z95 * error, mean, mean + Z95 * error)
                first, middle, last = (min(max(end, low), high) for end in ends)
                rows.append(Dot(text, middle, first, last))
            made[name] = rows
        return made

    def _scores(self, name: str) -> tuple[Any, Any]:
        """Compute the smallest and largest score of one report for each cell of a table."""
        collection, schema = self.analysis.survey.collection, self.analysis.statistics.schema
        classes, target = len(schema.classes), schema.target
        sizes = (classes,) if name == target else (classes, self._cells(name))
        if collection.kind == "questionnaire":
            from discreet.survey.inversion import unmixed

            names = [target] if name == target else [target, name]
            every = np.eye(math.prod(sizes)).reshape(-1, *sizes)
            scores = unmixed(collection, names, every).reshape(len(every), -1)
            return scores.min(axis=1).reshape(sizes), scores.max(axis=1).reshape(sizes)
        low, high = 0.0, 1.0
        for question, share in zip(collection.questions, collection.shares, strict=True):
            oracle = question.mechanism
            if hasattr(oracle, "q_exact") and (name == target or name in question.features):
                p, q = float(oracle.p_exact), float(oracle.q_exact)
                joined = oracle.size // math.prod(sizes)  # cells of the question in one of ours
                subset = getattr(oracle, "subset", 1 if oracle.name == "de" else joined)
                at_once = min(joined, subset)
                # a liar may also choose the question
                low = min(low, -joined * q / (p - q) / float(share))
                high = max(high, (at_once - joined * q) / (p - q) / float(share))
        return np.full(sizes, low), np.full(sizes, high)

    def _cells(self, name: str) -> int:
        return int(self.analysis.statistics.tables[name].cells.size)

    # ---------------------------------------------------------------- charts

    def chart(self, shares: list[Share], title: str) -> Picture:
        """Draw dots with intervals; the faint band is the effect of 5 % liars."""
        rows = [
            Dot(one.label, one.value, *one.interval, faint=one.moved(LIARS[1])) for one in shares
        ]
        words = Words(label="", number=percent)
        return dots(rows, title=title, axis=Axis(number=whole_percent), words=words)

    def chart_of_means(self, name: str) -> Picture:
        """Draw means with intervals, on the scale of the public bounds."""
        feature = self.analysis.statistics.moments[name].feature
        low, high = float(feature.lower or 0.0), float(feature.upper or 0.0)
        axis = Axis(low=low, high=high, number=_number, ticks=(low, (low + high) / 2, high))
        words = Words(label="", estimate="mean", number=_number)
        return dots(self.means[name], title=f"Mean of {name}", axis=axis, words=words)

    # ---------------------------------------------------------------- use

    @cached_property
    def outlook(self) -> Outlook:
        """Precision of the least precise share, and the respondents needed for a better one."""
        every = [("class " + one.label, one.error) for one in self.classes]
        every += [(f"{name}: {o.label}", o.error) for name, f in self.features.items() for o in f]
        what, error = max(every, key=lambda one: one[1])
        reports, within, needed = self.analysis.tally.people, Z95 * error, []
        for wanted in (0.1, 0.05, 0.02):
            if wanted < within:
                total = respondents_for(error * math.sqrt(reports), wanted / Z95)
                needed.append((wanted, max(0, total - reports)))
        return Outlook(what, within, tuple(needed))

    @cached_property
    def accuracy(self) -> Any:
        """Accuracy of a classifier from half of the sheets, on the other half; or None."""
        collection = self.analysis.survey.collection
        if collection.kind != "questionnaire" or self.analysis.tally.reports < 2 * FEW:
            return None
        if math.prod(collection.sizes) > MOST_SHEETS:
            return None
        from discreet.survey.inversion import statistics_of
        from discreet.survey.testing import accuracy_on_sheets

        try:
            first, second = self._halves()
            return accuracy_on_sheets(estimate(statistics_of(first)), second)
        except EstimationError:
            return None

    def _halves(self) -> Iterator[Tally[Any]]:
        """Split the settled sheets into two random halves, with a fixed seed."""
        tally = self.analysis.tally
        sheets, times = tally.distinct()
        chosen = np.random.default_rng(0).binomial(times, 0.5)
        for part in (chosen, times - chosen):
            made: Tally[Any] = Tally(tally.collection, simulated=tally.simulated)
            made.add_values(0, sheets[part > 0], part[part > 0])
            yield made

    @cached_property
    def evidence(self) -> list[Evidence]:
        """The strongest evidence for classes, first what is certainly more than chance."""
        return strongest(self.analysis.model, self.analysis.statistics)[:STRONGEST]

    @property
    def verdict(self) -> str:
        """One sentence on whether the results can be used yet."""
        reports, largest = self.analysis.tally.reports, max(self.classes, key=lambda o: o.value)
        base = counted(reports)
        if self.accuracy is not None:
            low, high = (100 * end for end in self.accuracy.interval)
            right = (
                f"about {100 * self.accuracy.accuracy:.0f} of 100 people, between {low:.0f} and "
            )
            right = f"{right}{high:.0f}" if high < 99.5 else f"at least {low:.0f} of 100 people"
            sure = low > 100 * largest.interval[1]
            return (
                f"{base}: a classifier made from half of them would be right for {right}; always "
                f"saying “{largest.label}”: about {100 * largest.value:.0f}."
                + " Whether it is better is not sure yet."
                * (not sure)
            )
        if Z95 * largest.error > USELESS:
            return f"{base}: too few to say anything yet; chance alone could explain all of it."
        known = (
            f"{base}: the share of “{largest.label}” is known to within "
            f"{100 * Z95 * largest.error:.1f} percentage points"
        )
        least = self.outlook
        if least.within == Z95 * largest.error:
            return f"{known}, no other share less well."
        return f"{known}, the one known least ({least.what}) to within {100 * least.within:.1f}."


def _number(value: float) -> str:
    """Format a number of a feature's scale, without exponents for large whole numbers."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "\u2212")
