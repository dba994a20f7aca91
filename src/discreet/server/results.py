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

from discreet.collection.inversion import load_inversion
from discreet.collection.sample_size import compute_required_respondents
from discreet.collection.tally import Tally
from discreet.display.chart_parts import (
    Axis,
    ChartTexts,
    Picture,
    format_percent,
    format_whole_percent,
)
from discreet.display.charts import EstimateRow, render_estimates
from discreet.errors import EstimationError
from discreet.estimation import estimate
from discreet.schema.schema import format_value
from discreet.server.analysis import Analysis
from discreet.server.evidence import SupportedOdds, find_strongest

__all__ = ["LIAR_SHARES", "Outlook", "SurveyResults", "format_report_count"]

Z95 = 1.959963984540054
LIAR_SHARES = (0.01, 0.05)
MAX_DISTINCT_SHEETS = 1 << 20
MAX_USEFUL_HALF_WIDTH = 0.5
"""Half-width of a 95 % interval above which a share is practically unknown."""
MAX_SHOWN_EVIDENCE = 8
"""Largest number of answers shown as evidence."""
MIN_SHEETS_PER_HALF = 50
"""Sheets in each half below which no accuracy is estimated."""


def format_report_count(reports: int) -> str:
    """Format a number of reports in words.

    >>> format_report_count(1), format_report_count(1240)
    ('1 report', '1,240 reports')
    """
    return f"{reports:,} report" + "s" * (reports != 1)


@dataclass(frozen=True)
class Share:
    """An estimated share of all respondents, with standard error and range of scores."""

    label: str
    value: float
    standard_error: float
    min_score: float
    max_score: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval, if nobody lies."""
        return self.value - Z95 * self.standard_error, self.value + Z95 * self.standard_error

    def compute_liar_range(self, liar_share: float) -> tuple[float, float]:
        """Compute the range to which a share of liars could move the estimate."""
        low_end = self.value + liar_share * (self.min_score - self.value)
        return low_end, self.value + liar_share * (self.max_score - self.value)


@dataclass(frozen=True)
class Outlook:
    """The least precise share, and how many more respondents a better precision takes.

    Parameters
    ----------
    share_label : str
    half_width : float
        Half of its 95 % interval.
    needed_respondents : pairs of float and int
        Half-width of a smaller interval, and how many more respondents it takes.
    """

    share_label: str
    half_width: float
    needed_respondents: tuple[tuple[float, int], ...]


@dataclass(frozen=True, eq=False)
class SurveyResults:
    """The analysis of a collection, prepared for display.

    Parameters
    ----------
    analysis : Analysis
    """

    analysis: Analysis

    @property
    def respondents(self) -> float:
        """Estimated number of respondents."""
        return max(float(self.analysis.statistics.totals.sum()), 1.0)

    @cached_property
    def classes(self) -> list[Share]:
        """Shares of the classes."""
        statistics = self.analysis.statistics
        min_scores, max_scores = self._compute_scores(statistics.schema.target)
        return [
            self._make_share(format_value(label), *numbers)
            for label, *numbers in zip(
                statistics.schema.classes,
                statistics.totals,
                statistics.variances,
                min_scores,
                max_scores,
                strict=True,
            )
        ]

    def _make_share(
        self, label: str, count: float, variance: float, min_score: float, max_score: float
    ) -> Share:
        standard_error = math.sqrt(max(variance, 0.0)) / self.respondents
        return Share(label, count / self.respondents, standard_error, min_score, max_score)

    @cached_property
    def features(self) -> dict[str, list[Share]]:
        """Joint shares of cells and classes, by feature, for features asked by cell."""
        statistics, shares_by_feature = self.analysis.statistics, {}
        target = statistics.schema.target
        for feature_name, table in statistics.tables.items():
            numbers = np.stack(
                [table.counts, table.variances, *self._compute_scores(feature_name)], axis=-1
            ).tolist()
            shares_by_feature[feature_name] = [
                self._make_share(f"{cell_label}, {target} {format_value(label)}", *cell_numbers)
                for label, class_numbers in zip(statistics.schema.classes, numbers, strict=True)
                for cell_label, cell_numbers in zip(table.cells.labels, class_numbers, strict=True)
            ]
        return shares_by_feature

    @cached_property
    def means(self) -> dict[str, list[EstimateRow]]:
        """Means per class, within the public bounds, for numbers asked by their mean."""
        statistics, dots_by_feature = self.analysis.statistics, {}
        for feature_name, moments in statistics.moments.items():
            lower, upper = float(moments.feature.lower or 0.0), float(moments.feature.upper or 0.0)
            mean_dots = []
            for class_index, label in enumerate(statistics.schema.classes):
                dot_label = f"{statistics.schema.target} {format_value(label)}"
                count = float(moments.counts[class_index])
                count_variance, total_variance, _ = moments.variances[:, class_index]
                if count <= Z95 * math.sqrt(count_variance):  # there may be nobody in this class
                    mean_dots.append(
                        EstimateRow(
                            dot_label, (lower + upper) / 2, lower, upper, note="not known yet"
                        )
                    )
                    continue
                # total / count, to first order; both come from questions to different people
                scaled_mean = float(moments.totals[class_index]) / count
                standard_error = (
                    moments.step
                    * math.sqrt(total_variance + scaled_mean * scaled_mean * count_variance)
                    / count
                )
                mean = float(moments.mean[class_index])
                interval_ends = (mean - Z95 * standard_error, mean, mean + Z95 * standard_error)
                lower_end, middle, upper_end = (
                    min(max(end, lower), upper) for end in interval_ends
                )
                mean_dots.append(EstimateRow(dot_label, middle, lower_end, upper_end))
            dots_by_feature[feature_name] = mean_dots
        return dots_by_feature

    def _compute_scores(self, feature_name: str) -> tuple[Any, Any]:
        """Compute the smallest and largest score of one report for each cell of a table."""
        collection = self.analysis.survey.collection
        return load_inversion(collection).compute_score_range(collection, feature_name)

    # ---------------------------------------------------------------- charts

    def draw_chart(self, shares: list[Share], title: str) -> Picture:
        """Draw dots with intervals; the faint band is the effect of 5 % liars."""
        share_dots = [
            EstimateRow(
                share.label,
                share.value,
                *share.interval,
                manipulable_range=share.compute_liar_range(LIAR_SHARES[1]),
            )
            for share in shares
        ]
        words = ChartTexts(label_heading="", format_value=format_percent)
        return render_estimates(
            share_dots, title=title, axis=Axis(format_tick=format_whole_percent), texts=words
        )

    def draw_means_chart(self, feature_name: str) -> Picture:
        """Draw means with intervals, on the scale of the public bounds."""
        feature = self.analysis.statistics.moments[feature_name].feature
        lower, upper = float(feature.lower or 0.0), float(feature.upper or 0.0)
        axis = Axis(
            low=lower,
            high=upper,
            format_tick=_format_number,
            ticks=(lower, (lower + upper) / 2, upper),
        )
        words = ChartTexts(label_heading="", estimate_heading="mean", format_value=_format_number)
        return render_estimates(
            self.means[feature_name], title=f"Mean of {feature_name}", axis=axis, texts=words
        )

    # ---------------------------------------------------------------- use

    @cached_property
    def outlook(self) -> Outlook:
        """Precision of the least precise share, and the respondents needed for a better one."""
        labelled_errors = [
            ("class " + class_share.label, class_share.standard_error)
            for class_share in self.classes
        ]
        labelled_errors += [
            (f"{feature_name}: {cell_share.label}", cell_share.standard_error)
            for feature_name, cell_shares in self.features.items()
            for cell_share in cell_shares
        ]
        share_label, standard_error = max(labelled_errors, key=lambda entry: entry[1])
        report_count, needed_respondents = self.analysis.tally.people, []
        half_width = Z95 * standard_error
        for target_width in (0.1, 0.05, 0.02):
            if target_width < half_width:
                total_respondents = compute_required_respondents(
                    standard_error * math.sqrt(report_count), target_width / Z95
                )
                needed_respondents.append((target_width, max(0, total_respondents - report_count)))
        return Outlook(share_label, half_width, tuple(needed_respondents))

    @cached_property
    def accuracy(self) -> Any:
        """Accuracy of a classifier from half of the sheets, on the other half; or None."""
        collection = self.analysis.survey.collection
        has_whole_sheets = collection.questions[0].size is None
        if not has_whole_sheets or self.analysis.tally.reports < 2 * MIN_SHEETS_PER_HALF:
            return None
        if math.prod(collection.sizes) > MAX_DISTINCT_SHEETS:
            return None
        from discreet.survey.testing import estimate_sheet_accuracy

        try:
            training_half, test_half = self._split_sheets()
            statistics = load_inversion(collection).estimate_statistics(training_half)
            return estimate_sheet_accuracy(estimate(statistics), test_half)
        except EstimationError:
            return None

    def _split_sheets(self) -> Iterator[Tally[Any]]:
        """Split the settled sheets into two random halves, with a fixed seed."""
        tally = self.analysis.tally
        sheets, times = tally.get_distinct_answers()
        drawn_times = np.random.default_rng(0).binomial(times, 0.5)
        for half_times in (drawn_times, times - drawn_times):
            half_tally: Tally[Any] = Tally(tally.collection, simulated=tally.simulated)
            half_tally.add_values(0, sheets[half_times > 0], half_times[half_times > 0])
            yield half_tally

    @cached_property
    def evidence(self) -> list[SupportedOdds]:
        """The strongest evidence for classes, first what does most for people."""
        return find_strongest(self.analysis.model, MAX_SHOWN_EVIDENCE)

    @property
    def verdict(self) -> str:
        """One sentence on whether the results can be used yet."""
        largest_share = max(self.classes, key=lambda class_share: class_share.value)
        count_text = format_report_count(self.analysis.tally.reports)
        if self.accuracy is not None:
            low, high = (100 * end for end in self.accuracy.interval)
            accuracy_text = f"at least {low:.0f} of 100 people"
            if high < 99.5:
                accuracy_text = (
                    f"about {100 * self.accuracy.accuracy:.0f} of 100 people, between {low:.0f} "
                    f"and {high:.0f}"
                )
            is_better = low > 100 * largest_share.interval[1]
            doubt_text = "" if is_better else " Whether it is better is not sure yet."
            return (
                f"{count_text}: a classifier made from half of them would be right for "
                f"{accuracy_text}; always saying “{largest_share.label}”: about "
                f"{100 * largest_share.value:.0f}.{doubt_text}"
            )
        if Z95 * largest_share.standard_error > MAX_USEFUL_HALF_WIDTH:
            return (
                f"{count_text}: too few to say anything yet; chance alone could explain all of it."
            )
        precision_text = (
            f"{count_text}: the share of “{largest_share.label}” is known to within "
            f"{100 * Z95 * largest_share.standard_error:.1f} percentage points"
        )
        outlook = self.outlook
        if outlook.half_width == Z95 * largest_share.standard_error:
            return f"{precision_text}, and every other share at least as well."
        return (
            f"{precision_text}, the one known least ({outlook.share_label}) to within "
            f"{100 * outlook.half_width:.1f}."
        )


def _format_number(value: float) -> str:
    """Format a number of a feature's scale, without exponents for large whole numbers."""
    number_text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return number_text.replace("-", "\u2212")
