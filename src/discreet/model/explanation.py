"""Readable explanations of single predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import SchemaError
from discreet.model.factors import CellFactor, Factor, PairFactor
from discreet.model.strongest_evidence import count_cells, format_share
from discreet.model.support import CellSupport, NoiseQuantiles, ValueRange
from discreet.schema.cells import format_missing_columns, get_columns, to_object_array
from discreet.schema.schema import abbreviate_value, format_value

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel

__all__ = ["Evidence", "Explanation", "explain_row"]


@dataclass(frozen=True)
class Evidence:
    """What one feature adds to the log-odds of the predicted class.

    Attributes
    ----------
    feature, value : str
    log_odds : float
    share : float or None
        Share of people with that value; None where the model does not know it.
    share_interval : pair of float or None
        What the known noise leaves open, with 95 % confidence for all cells together.
    certain : bool or None
        Whether it speaks for that class with 95 % confidence, by the released numbers; None where
        the noise is not known.
    odds_range : pair of float or None
        The ratios of probabilities in the two classes that the noise leaves open, all evidence of
        the explanation together; None where the noise is not known.
    """

    feature: str
    value: str
    log_odds: float
    share: float | None = None
    share_interval: ValueRange | None = None
    certain: bool | None = None
    odds_range: ValueRange | None = None

    @property
    def remark(self) -> str:
        """How many people have the value, and whether its evidence may be chance."""
        if self.share is None:
            return ""
        remark = f"{format_share(self.share, self.share_interval)} of people"
        return f"{remark}; may be chance" if self.certain is False and self.log_odds else remark


@dataclass(frozen=True)
class Explanation:
    """Why one row was classified as it was; the evidence and the prior add up to the log-odds.

    Attributes
    ----------
    predicted, against : str
        The predicted class and the one it is compared with.
    probability : float
        Of the predicted class.
    prior : float
        Log-odds before any feature was seen.
    evidence : tuple of Evidence
        Largest first.
    """

    predicted: str
    against: str
    probability: float
    prior: float
    evidence: tuple[Evidence, ...]

    @property
    def log_odds(self) -> float:
        """Log-odds of the predicted class against the other."""
        return self.prior + sum(item.log_odds for item in self.evidence)

    def __str__(self) -> str:
        width = max([5, *(len(item.feature) + len(item.value) + 3 for item in self.evidence)])
        lines = [
            f"{self.predicted} rather than {self.against} (probability {self.probability:.3f})"
        ]
        lines += [
            f"  {item.feature + ' = ' + item.value:<{width}}  {item.log_odds:+8.3f}  {item.remark}"
            for item in self.evidence
        ]
        lines.append(f"  {'prior':<{width}}  {self.prior:+8.3f}")
        lines.append(f"  {'log-odds':<{width}}  {self.log_odds:+8.3f}")
        return "\n".join(line.rstrip() for line in lines)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "predicted": self.predicted,
            "against": self.against,
            "probability": self.probability,
            "prior": self.prior,
            "log_odds": self.log_odds,
            "evidence": [vars(item) for item in self.evidence],
        }


def explain_row(model: NaiveBayesModel, row: Any, against: Any = None) -> Explanation:
    """Explain the decision for one row by what each feature and pair adds.

    Parameters
    ----------
    model : NaiveBayesModel
    row : mapping, series, data frame of one row, or sequence
    against : class label, optional
        The class to compare with; the runner-up if not given.
    """
    columns = _read_row(row, model.inputs.names)
    log_joint = model.predict_joint_log_proba(columns)[0]
    if model.projection is not None:
        columns = model.projection.transform_columns(columns)
    class_order = np.argsort(-log_joint, kind="stable")
    predicted_index = int(class_order[0])
    compared_index = int(class_order[1]) if len(class_order) > 1 else predicted_index
    if against is not None:
        compared_index = _find_class(model, against)
    class_indices = predicted_index, compared_index
    evidence = [
        *(_explain_factor(model, factor, columns, class_indices) for factor in model.factors),
        *(_explain_pair(model, pair, columns, class_indices) for pair in model.pairs),
    ]
    log_posterior = log_joint - log_joint.max()
    class_weights = np.exp(log_posterior)
    return Explanation(
        str(model.schema.classes[predicted_index]),
        str(model.schema.classes[compared_index]),
        float(class_weights[predicted_index] / class_weights.sum()),
        model.temperature
        * float(model.log_prior[predicted_index] - model.log_prior[compared_index]),
        tuple(sorted(evidence, key=lambda item: -abs(item.log_odds))),
    )


def _read_row(row: Any, names: Sequence[str]) -> dict[str, Any]:
    """The values of one row as columns of one value each."""
    if hasattr(row, "to_dict") and hasattr(row, "index") and not hasattr(row, "columns"):
        # a series of pandas; without names its values are in order
        row_values = row.to_dict()
        row = row_values if set(row_values) & set(names) else list(row_values.values())
        if isinstance(row, dict) and (absent := [name for name in names if name not in row]):
            raise SchemaError(f"the row {format_missing_columns(absent, list(map(str, row)))}")
    if isinstance(row, Mapping):
        return {name: to_object_array([row.get(name)]) for name in names}
    if hasattr(row, "columns") or hasattr(row, "column_names") or getattr(row, "ndim", 1) == 2:
        columns = get_columns(row, names)
        row_count = len(columns[names[0]])
        if row_count != 1:
            raise SchemaError(
                f"a table of {row_count} rows is to be explained; give one row, such as "
                "frame.iloc[[0]]"
            )
        return {name: to_object_array(_list_values(column)) for name, column in columns.items()}
    if isinstance(row, str) or not hasattr(row, "__iter__"):
        raise SchemaError(
            f"{abbreviate_value(row)} is to be explained; give a row: values by name, or in order"
        )
    row_values = list(row)
    if len(row_values) != len(names):
        raise SchemaError(
            f"a row of {len(row_values)} values does not fit the {len(names)} features; give "
            f"these in order: {', '.join(names)}"
        )
    return {name: to_object_array([value]) for name, value in zip(names, row_values, strict=True)}


def _list_values(column: Any) -> Any:
    """The values of a column of Arrow, pandas, polars or NumPy as Python's."""
    for method_name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method_name):
            return getattr(column, method_name)()
    return column


def _find_class(model: NaiveBayesModel, label: Any) -> int:
    """The index of a class in any of its spellings."""
    class_texts = [format_value(class_label) for class_label in model.schema.classes]
    if format_value(label) not in class_texts:
        raise SchemaError(
            f"against: {abbreviate_value(label)} is not one of the classes "
            f"({', '.join(class_texts)})"
        )
    return class_texts.index(format_value(label))


def _explain_factor(
    model: NaiveBayesModel,
    factor: Factor,
    columns: Mapping[str, Any],
    class_indices: tuple[int, int],
) -> Evidence:
    factor_model = replace(
        model, log_prior=np.zeros(len(model.log_prior)), factors=[factor], pairs=(), projection=None
    )
    class_scores = factor_model.predict_joint_log_proba(columns)[0]
    log_odds = float(class_scores[class_indices[0]] - class_scores[class_indices[1]])
    if not isinstance(factor, CellFactor):
        value = next(iter(columns[factor.name]))
        return Evidence(factor.name, factor.describe_value(value, model.schema), log_odds)
    cell_index = int(factor.cells.encode_column(columns[factor.name])[0])
    evidence = Evidence(factor.name, factor.cells.rounded_labels[cell_index], log_odds)
    return _add_support(model, evidence, factor.support, cell_index, class_indices)


def _explain_pair(
    model: NaiveBayesModel,
    pair: PairFactor,
    columns: Mapping[str, Any],
    class_indices: tuple[int, int],
) -> Evidence:
    cell_indices = [
        int(feature_cells.encode_column(columns[feature_cells.feature.name])[0])
        for feature_cells in pair.cells
    ]
    class_scores = model.temperature * pair.score_cells(*map(np.atleast_1d, cell_indices))[0]
    value_label = " & ".join(
        feature_cells.rounded_labels[cell_index]
        for feature_cells, cell_index in zip(pair.cells, cell_indices, strict=True)
    )
    log_odds = float(class_scores[class_indices[0]] - class_scores[class_indices[1]])
    evidence = Evidence(" & ".join(pair.names), value_label, log_odds)
    group_index = pair.find_group(*cell_indices)
    if group_index is None:
        return evidence
    return _add_support(model, evidence, pair.support, group_index, class_indices)


def _add_support(
    model: NaiveBayesModel,
    evidence: Evidence,
    support: CellSupport | None,
    cell_index: int,
    class_indices: tuple[int, int],
) -> Evidence:
    """The same evidence with the share of people and the odds that the noise leaves open."""
    if support is None:
        return evidence
    predicted_index, compared_index = class_indices
    class_count = len(model.log_prior)
    # every table against any class that may be compared
    ratio_count = (len(model.factors) + len(model.pairs)) * max(class_count - 1, 1)
    ratio = support.compare_classes(
        cell_index,
        predicted_index,
        np.eye(class_count)[compared_index],
        NoiseQuantiles.from_counts(count_cells(model), ratio_count, model.guarantee.trust),
    )
    return replace(
        evidence,
        share=max(ratio.share, 0.0),
        share_interval=ratio.share_interval,
        certain=(
            ratio.speaks_for_class() if evidence.log_odds > 0 else ratio.speaks_against_class()
        ),
        odds_range=ratio.joint_range,
    )
