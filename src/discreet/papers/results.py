"""Results of the cells of a paper, and how its statements are judged by them.

Differences are paired by repetition and have an interval. It is clear if the interval
leaves out zero, small if the whole interval is within ``MAX_CLOSE_DIFFERENCE``, and otherwise
undecided, so that no verdict hangs on a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from discreet.papers.paper_figures import PlotLine

__all__ = [
    "MAX_CLOSE_DIFFERENCE",
    "Finding",
    "PairedDifference",
    "PaperCell",
    "PaperResults",
    "StatementCheck",
    "check_all_hold",
    "check_statements",
    "format_differences",
    "format_percentages",
    "format_verdict",
]

MAX_CLOSE_DIFFERENCE = 0.02
"""Largest difference in accuracy (two points) that all pages call close, alike or the same."""

Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class PaperCell:
    """One number of a figure: which figure, and the parameters, in a fixed order."""

    figure: str
    parameters: tuple[tuple[str, Any], ...]

    @classmethod
    def from_parameters(cls, figure: str, **parameters: Any) -> PaperCell:
        """A cell with named parameters."""
        return cls(figure, tuple(parameters.items()))

    @classmethod
    def list_grid(cls, figure: str, **values: Sequence[Any]) -> list[PaperCell]:
        """All combinations of the parameters' values; those of the last change fastest."""
        return [
            cls(figure, tuple(zip(values, combination, strict=True)))
            for combination in product(*values.values())
        ]

    def __getitem__(self, name: str) -> Any:
        return dict(self.parameters)[name]


@dataclass(frozen=True)
class Finding:
    """What was measured of a statement of the paper, the verdict, and a reason if it fails."""

    measured: str
    verdict: str
    reason: str = ""

    @classmethod
    def from_cases(
        cls,
        measured: str,
        held_by_case: Mapping[str, bool | None],
        reason: str = "",
        preposition: str = "on",
    ) -> Finding:
        """Judge by cases, see :func:`format_verdict`; the reason is dropped if all hold."""
        is_reason_needed = not all(held_by_case.values())
        return cls(
            measured, format_verdict(held_by_case, preposition), reason if is_reason_needed else ""
        )

    @classmethod
    def from_differences(
        cls,
        measured_heading: str,
        differences: Mapping[str, PairedDifference],
        is_held: Callable[[PairedDifference], bool | None],
        reason: str = "",
        preposition: str = "on",
    ) -> Finding:
        """Judge by differences that are listed after a heading."""
        return cls.from_cases(
            measured_heading + format_differences(differences),
            {case: is_held(difference) for case, difference in differences.items()},
            reason,
            preposition,
        )


@dataclass(frozen=True)
class PairedDifference:
    """A mean difference with its interval by Student's t distribution."""

    mean: float
    standard_error: float
    low: float
    high: float

    @classmethod
    def from_pairs(
        cls, first: Sequence[float], second: Sequence[float] | float, comparison_count: int = 1
    ) -> PairedDifference:
        """Subtract second from first, paired by repetition: same split, same seed.

        Parameters
        ----------
        first, second : sequence of float
            Cut to the shorter.
        comparison_count : int
            Number of intervals that hold simultaneously with 95 % confidence (Bonferroni).
        """
        from scipy.stats import t

        second_values = [second] * len(first) if isinstance(second, float) else second
        pair_count = min(len(first), len(second_values))
        differences = np.asarray(first[:pair_count]) - np.asarray(second_values[:pair_count])
        mean, error = float(np.mean(differences)), compute_standard_error(list(differences))
        quantile = float(t.ppf(1 - 0.025 / comparison_count, max(len(differences) - 1, 1)))
        return cls(mean, error, mean - quantile * error, mean + quantile * error)

    def is_above(self, limit: float = 0.0) -> bool | None:
        """Whether it is above a limit; None if the interval leaves that open."""
        return True if self.low > limit else False if self.high <= limit else None

    def is_within(self, limit: float = MAX_CLOSE_DIFFERENCE) -> bool | None:
        """Whether its absolute value is at most a limit; None if the interval leaves that open."""
        if -limit <= self.low and self.high <= limit:
            return True
        return False if self.low > limit or self.high < -limit else None

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} ± {100 * self.standard_error:.1f}"


def format_verdict(held_by_case: Mapping[str, bool | None], preposition: str = "on") -> str:
    """Whether a statement holds in all cases, in some, or in none.

    Parameters
    ----------
    held_by_case : mapping
        None where the figures leave it open.
    preposition : str
        Preposition before the names of cases.
    """
    held, failed, undecided = (
        [case for case, answer in held_by_case.items() if answer is expected]
        for expected in (True, False, None)
    )
    if len(held) == len(held_by_case):
        return "holds"
    if len(undecided) == len(held_by_case):
        return "undecided"
    undecided_text = f"undecided {preposition} {', '.join(undecided)}" if undecided else ""
    if not failed:
        verdict_text = f"holds, but {undecided_text}"
    else:
        verdict_text = f"holds only {preposition} {', '.join(held)}" if held else "does not hold"
        verdict_text += f" ({undecided_text})" if undecided_text else ""
    return verdict_text.replace("  ", " ")


def check_all_hold(answers: Iterable[bool | None]) -> bool | None:
    """Whether all hold; None if some are open and none fails."""
    distinct_answers = set(answers)
    return False if False in distinct_answers else None if None in distinct_answers else True


def format_percentages(value_by_name: Mapping[Any, float]) -> str:
    """Format values as percentages after their names."""
    return ", ".join(f"{name} {100 * value:.1f}" for name, value in value_by_name.items())


def format_differences(difference_by_case: Mapping[str, PairedDifference]) -> str:
    """Format differences in points after their cases."""
    return ", ".join(f"{case} {difference}" for case, difference in difference_by_case.items())


@dataclass(frozen=True)
class PaperResults:
    """The values of the cells that were computed."""

    values: Mapping[PaperCell, Values]

    def __contains__(self, cell: PaperCell) -> bool:
        return (cell.figure, frozenset(cell.parameters)) in self._values_by_key

    @cached_property
    def _values_by_key(self) -> dict[tuple[str, frozenset[tuple[str, Any]]], Values]:
        return {
            (cell.figure, frozenset(cell.parameters)): cell_values
            for cell, cell_values in self.values.items()
        }

    def list_parameter_values(self, figure: str, parameter_name: str) -> list[Any]:
        """What a parameter is in the cells of a figure, in their order."""
        return list(
            dict.fromkeys(
                value
                for cell in self.values
                for name, value in cell.parameters
                if cell.figure == figure and name == parameter_name
            )
        )

    def get_values(
        self, figure: str, metric: str = "accuracy", **parameters: Any
    ) -> Sequence[float]:
        """The values of one cell; none if it was not computed."""
        return self._values_by_key.get((figure, frozenset(parameters.items())), {}).get(metric, ())

    def compute_mean(self, figure: str, metric: str = "accuracy", **parameters: Any) -> float:
        """Their mean; NaN if the cell was not computed."""
        cell_values = self.get_values(figure, metric, **parameters)
        return float(np.mean(cell_values)) if len(cell_values) else math.nan

    def average_over(
        self,
        figure: str,
        parameter_name: str,
        parameter_values: Sequence[Any],
        metric: str = "accuracy",
        **fixed_parameters: Any,
    ) -> list[float]:
        """The mean of every repetition over the values of a parameter."""
        cell_values = [
            self.get_values(figure, metric, **fixed_parameters, **{parameter_name: value})
            for value in parameter_values
        ]
        repetition_count = min(map(len, cell_values))
        means: list[float] = np.mean(
            [row[:repetition_count] for row in cell_values], axis=0
        ).tolist()
        return means

    def make_line(
        self,
        label: str,
        figure: str,
        parameter_name: str,
        parameter_values: Sequence[Any],
        metric: str = "accuracy",
        **fixed_parameters: Any,
    ) -> PlotLine:
        """Means along a parameter, with standard errors where there are any."""
        cell_values = [
            self.get_values(figure, metric, **fixed_parameters, **{parameter_name: value})
            for value in parameter_values
        ]
        standard_errors = [compute_standard_error(values) for values in cell_values]
        return PlotLine(
            label,
            parameter_values,
            [float(np.mean(values)) if len(values) else math.nan for values in cell_values],
            () if all(map(math.isnan, standard_errors)) else standard_errors,
        )

    def make_lines(
        self,
        figure: str,
        line_parameter: str,
        line_values: Sequence[Any],
        parameter_name: str,
        parameter_values: Sequence[Any],
        metric: str = "accuracy",
        **fixed_parameters: Any,
    ) -> list[PlotLine]:
        """A line for each value of a parameter, along another parameter."""
        return [
            self.make_line(
                str(line_value),
                figure,
                parameter_name,
                parameter_values,
                metric,
                **fixed_parameters,
                **{line_parameter: line_value},
            )
            for line_value in line_values
        ]


StatementCheck = Callable[[PaperResults], Finding | None]
"""Judges a statement of a paper; None if the cells it needs were not computed."""


def check_statements(
    checks: Mapping[str, StatementCheck], results: PaperResults
) -> dict[str, Finding]:
    """What was found of each statement of a paper, by the statement.

    Parameters
    ----------
    checks : mapping
        ``STATEMENTS`` of the paper's module.
    results : PaperResults
    """
    findings = ((statement, check(results)) for statement, check in checks.items())
    return {statement: finding for statement, finding in findings if finding is not None}


def compute_standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean; NaN of fewer than two values."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
