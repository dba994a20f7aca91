"""How good a model is for each group of people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import SchemaError
from discreet.model.evaluation import Scores, score_joint
from discreet.model.naive_bayes import NaiveBayesModel
from discreet.schema.cells import Cells, encode_classes, is_missing
from discreet.schema.schema import Numeric, format_value

__all__ = ["GroupScores", "label_groups", "score_groups"]

MAX_GROUPS = 50
"""Most groups: figures of more of them are not read, and a column with more is rather an id."""
GROUPS_OF_NUMBERS = 4
"""Equal parts of the public bounds into which a numeric feature is cut."""
MISSING_LABEL = "missing"
"""The group of rows whose value is missing."""


@dataclass(frozen=True, eq=False)
class GroupScores:
    """Scores of all rows, and of the rows with each value of a column.

    Parameters
    ----------
    column : str
    total : Scores
    groups : mapping of value to Scores
    """

    column: str
    total: Scores
    groups: Mapping[str, Scores]

    def __add__(self, other: GroupScores) -> GroupScores:
        if not isinstance(other, GroupScores):
            return NotImplemented
        groups = dict(self.groups)
        for label, scores in other.groups.items():
            groups[label] = groups[label] + scores if label in groups else scores
        _check_group_count(self.column, len(groups))
        return GroupScores(self.column, self.total + other.total, groups)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            **self.total.to_body(),
            "by": self.column,
            "groups": {label: self.groups[label].to_body() for label in self.labels},
        }

    @property
    def labels(self) -> list[str]:
        """The groups in the order in which they are shown: numbers by size, then text."""
        return sorted(self.groups, key=_make_order_key)


def score_groups(
    model: NaiveBayesModel,
    rows: Any,
    truth: Any,
    column: str,
    values: Any,
    costs: Sequence[float] | None = None,
) -> GroupScores:
    """Predict rows, and compare with their true classes for each value of a column.

    Parameters
    ----------
    model : NaiveBayesModel
    rows : data frame, Arrow table, mapping of columns or array
    truth : column of classes
    column : str
        Name of the column by which rows are divided, a feature or not.
    values : column
        Its values.
    costs : sequence of float, optional
        Of missing each class.
    """
    true_codes = encode_classes(model.schema, truth).astype(np.int64)
    joint_scores = model.predict_joint_log_proba(rows)
    labels = label_groups(model, column, values)
    groups = {}
    for label in np.unique(labels):
        is_member = labels == label
        groups[str(label)] = score_joint(
            model, joint_scores[is_member], true_codes[is_member], costs
        )
    total = score_joint(model, joint_scores, true_codes, costs)
    return GroupScores(column, total, groups)


def label_groups(model: NaiveBayesModel, column: str, values: Any) -> Any:
    """The group of every row: its value as text or, of a numeric feature, a quarter of its bounds.

    Parameters
    ----------
    model : NaiveBayesModel
    column : str
    values : column
    """
    schema = model.inputs
    feature = schema[column] if column in schema.names else None
    if feature is not None and (not isinstance(feature, Numeric) or feature.is_bounded):
        cells = Cells.from_schema(schema, feature, GROUPS_OF_NUMBERS)
        labels = [MISSING_LABEL if label == "(missing)" else label for label in cells.labels]
        return np.array(labels, dtype=object)[cells.encode_column(values)]
    plain_values = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    labels = [
        MISSING_LABEL if is_missing(value, schema.missing_tokens) else format_value(value)
        for value in plain_values
    ]
    _check_group_count(column, len(set(labels)))
    return np.array(labels, dtype=object)


def _make_order_key(label: str) -> tuple[float, str]:
    """Sort numbers and bins, such as ``-2 to -1``, by their first number."""
    with suppress(ValueError):
        return float(label.partition(" to ")[0]), label
    return math.inf, label


def _check_group_count(column: str, group_count: int) -> None:
    if group_count > MAX_GROUPS:
        raise SchemaError(
            f"{column}: has more than {MAX_GROUPS} different values; divide rows by a column with "
            "few values, or add one to the table (such as an age group)"
        )
