"""What mistakes cost: decisions by expected cost, and what they would have cost on rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats, Indices, Integers
from discreet.errors import EstimationError
from discreet.model.intervals import Z95
from discreet.schema.schema import Value, format_value

__all__ = ["CostScores", "decide_by_cost", "resolve_costs"]


def resolve_costs(classes: Sequence[Value], costs: Mapping[str, float]) -> tuple[float, ...]:
    """The cost of missing each class, in their order: 1 where nothing else is said.

    Parameters
    ----------
    classes : sequence
    costs : mapping of class to cost
    """
    class_names = [format_value(value) for value in classes]
    for class_name, cost in costs.items():
        if class_name not in class_names:
            raise EstimationError(
                f"cost: {class_name!r} is not a class; write some of {', '.join(class_names)}"
            )
        if not 0 < cost < math.inf:
            raise EstimationError(f"cost of {class_name} is {cost!r}; give a number above 0")
    return tuple(float(costs.get(class_name, 1.0)) for class_name in class_names)


def decide_by_cost(joint_scores: Floats, costs: Sequence[float]) -> Indices:
    """The class whose missing would cost most on average: the largest cost times probability.

    Parameters
    ----------
    joint_scores : array of float, (rows, classes)
    costs : sequence of float
        Of missing each class.
    """
    return np.asarray(np.argmax(joint_scores + np.log(costs), axis=1))


@dataclass(frozen=True, eq=False)
class CostScores:
    """What decisions by cost would have cost, next to those that do without costs.

    Parameters
    ----------
    classes : tuple
    costs : tuple of float
        Of missing each class.
    confusion : array of int, (classes, classes)
        Rows by true and by most probable class.
    cost_confusion : array of int, (classes, classes)
        Rows by true class and by the class that is decided by cost.
    """

    classes: tuple[Value, ...]
    costs: tuple[float, ...]
    confusion: Integers
    cost_confusion: Integers

    @property
    def threshold(self) -> float | None:
        """Of two classes: from which probability of the second on it is decided for; else None."""
        if len(self.classes) != 2:
            return None
        return self.costs[0] / (self.costs[0] + self.costs[1])

    @property
    def rule(self) -> str:
        """How decisions are made, in words."""
        class_names = [format_value(value) for value in self.classes]
        if self.threshold is not None:
            return f"say {class_names[1]!r} from P({class_names[1]}) = {self.threshold:.3g} on"
        return "say the class with the largest cost times probability"

    @property
    def policies(self) -> list[tuple[str, float, tuple[float, float]]]:
        """Names of ways to decide, mean cost per row, and 95 % interval; ours comes first.

        The others: the most probable class, the most frequent class for all, and the class for all
        that would have cost least.
        """
        class_rows = self.cost_confusion.sum(axis=1)
        row_costs = np.array(self.costs)
        miss_costs = row_costs[:, None] * (1 - np.eye(len(self.classes)))
        policies = [
            (self.rule, self.cost_confusion),
            ("say the most probable class", self.confusion),
        ]
        majority_index = int(np.argmax(class_rows))
        cheapest_index = int(np.argmax(row_costs * class_rows))
        for class_index in dict.fromkeys((majority_index, cheapest_index)):
            constant_confusion = np.zeros_like(self.confusion)
            constant_confusion[:, class_index] = class_rows
            policies.append(
                (f"always say {format_value(self.classes[class_index])!r}", constant_confusion)
            )
        return [
            (policy_name, *_compute_mean(miss_costs, confusion))
            for policy_name, confusion in policies
        ]

    @property
    def saving(self) -> tuple[float, tuple[float, float]]:
        """Mean cost per row that our rule saves next to always saying the most frequent class.

        With the 95 % interval of the difference, row by row: negative where the rule costs more.
        """
        class_rows = self.cost_confusion.sum(axis=1)
        majority_index = int(np.argmax(class_rows))
        row_costs = np.array(self.costs)[:, None]
        is_right = np.eye(len(self.classes))
        cell_savings = row_costs * (is_right - is_right[:, majority_index][:, None])
        return _compute_mean(cell_savings, self.cost_confusion, floor=-math.inf)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        class_names = [format_value(value) for value in self.classes]
        saved, saved_interval = self.saving
        return {
            "missing": dict(zip(class_names, self.costs, strict=True)),
            "rule": self.rule,
            "threshold": self.threshold,
            "policies": [
                {"decide": policy_name, "cost": cost, "interval": list(interval)}
                for policy_name, cost, interval in self.policies
            ],
            "saved": saved,
            "saved_interval": list(saved_interval),
            "confusion": self.cost_confusion.tolist(),
        }


def _compute_mean(
    cell_values: Floats, counts: Integers, floor: float = 0.0
) -> tuple[float, tuple[float, float]]:
    """Mean over rows of a value that follows from the cell of a row, and its 95 % interval."""
    row_count = int(counts.sum())
    if row_count < 2:
        return math.nan, (math.nan, math.nan)
    mean = float((cell_values * counts).sum()) / row_count
    variance = float(((cell_values - mean) ** 2 * counts).sum()) / (row_count - 1)
    half_width = Z95 * math.sqrt(variance / row_count)
    return mean, (max(floor, mean - half_width), mean + half_width)
