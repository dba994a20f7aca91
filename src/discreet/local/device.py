"""Check, encode and randomize records for a plan, as a device does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Integers
from discreet.errors import SchemaError
from discreet.mechanisms.frequency import FrequencyOracle
from discreet.randomness import Random
from discreet.schema.cells import Cells, encode_classes, parse_numbers, respondent_error_context
from discreet.schema.schema import Categorical, Numeric

if TYPE_CHECKING:
    from discreet.local.plan import Plan

__all__ = ["PlanRecords", "encode_columns", "encode_record", "randomize_records", "scale_to_bounds"]


@dataclass(frozen=True)
class PlanRecords:
    """Records encoded for the questions of a plan, one row per person.

    Parameters
    ----------
    classes : array of int
        Index of each person's class.
    columns : mapping of name to array
        Cell indices of features asked by cell, numbers of features asked by their mean.
    """

    classes: Integers
    columns: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.classes)

    def __getitem__(self, rows: Any) -> PlanRecords:
        selected_columns = {name: column[rows] for name, column in self.columns.items()}
        return PlanRecords(self.classes[rows], selected_columns)


def encode_record(
    plan: Plan, record: Mapping[str, Any], question: int | None = None
) -> PlanRecords:
    """Check and encode a record; errors name the field that does not fit.

    Parameters
    ----------
    plan : Plan
    record : mapping
    question : int, optional
        Look only at what this question asks; at the whole record if not given.
    """
    schema = plan.schema
    unknown_names = sorted(str(name) for name in record.keys() - {*plan.names})
    if unknown_names:
        raise SchemaError(
            f"the record holds {', '.join(unknown_names)}, which is not asked for; remove it"
        )
    if record.get(schema.target) is None:
        raise SchemaError(f"the record has no {schema.target}; add it")
    target_cells = Cells(Categorical(schema.target, schema.classes, optional=False))
    with respondent_error_context():
        classes = np.array([target_cells.encode_value(record[schema.target])], dtype=np.int64)
    names = schema.names if question is None else plan.questions[question].features
    if plan.projection is not None and not {*names} <= {*plan.original.names}:
        original_columns = {
            feature_name: np.array([record.get(feature_name)], dtype=object)
            for feature_name in plan.original.names
        }
        record = {
            name: column[0]
            for name, column in plan.projection.transform_columns(original_columns).items()
        }
    with respondent_error_context():
        return PlanRecords(
            classes, {name: _encode_value(plan, name, record.get(name)) for name in names}
        )


def _encode_value(plan: Plan, name: str, value: Any) -> NDArray[Any]:
    feature = plan.schema[name]
    if name in plan.cells and name not in plan.mean_features:
        return np.array([plan.cells[name].encode_value(value)])
    if isinstance(feature, Numeric):
        column = np.array([value], dtype=object)
        return parse_numbers(feature, column, plan.schema.missing_tokens, plan.schema.outliers)
    return np.array([Cells.from_schema(plan.schema, name).encode_value(value)])


def encode_columns(
    plan: Plan, columns: Mapping[str, Any], classes: NDArray[Any] | None = None
) -> PlanRecords:
    """Encode the columns of many records that the questions of a plan use.

    Parameters
    ----------
    plan : Plan
    columns : mapping of name to array
    classes : array of int, optional
        Class indices; if not given, they are taken from the target's column.
    """
    schema = plan.schema
    class_indices = encode_classes(schema, columns[schema.target]) if classes is None else classes
    if plan.projection is not None:
        columns = plan.projection.transform_columns(columns)
    encoded_columns: dict[str, NDArray[Any]] = {}
    for question in plan.questions:
        for name in question.features:
            feature = schema[name]
            if name in encoded_columns:
                continue
            if name not in plan.mean_features:
                encoded_columns[name] = (
                    plan.cells[name].encode_column(columns[name]).astype(np.int64)
                )
            elif isinstance(feature, Numeric):
                tokens, outliers = schema.missing_tokens, schema.outliers
                encoded_columns[name] = parse_numbers(feature, columns[name], tokens, outliers)
    return PlanRecords(np.asarray(class_indices).astype(np.int64), encoded_columns)


def randomize_records(plan: Plan, question: int, records: PlanRecords, random: Random) -> Integers:
    """Randomize many records for one question, as one device does for one record."""
    plan_question = plan.questions[question]
    mechanism, classes, columns = plan_question.mechanism, records.classes, records.columns
    if isinstance(mechanism, FrequencyOracle):
        cell_indices = classes
        for name, cell_count in zip(
            plan_question.features, plan.get_table_shape(plan_question)[1:], strict=True
        ):
            # of a number that is asked by its mean: cell 0 where it is there, cell 1 where not
            column = np.isnan(columns[name]) if name in plan.mean_features else columns[name]
            cell_indices = cell_indices * cell_count + column
        return mechanism.encode(mechanism.perturb(cell_indices, random))
    vectors = _make_vectors(plan, plan_question.features, plan_question.power, records)
    return mechanism.perturb(vectors, random)


def _make_vectors(plan: Plan, names: Sequence[str], power: int, records: PlanRecords) -> Floats:
    """Build vectors with the numbers at each person's class, and zero at the other classes."""
    vectors = np.zeros((len(records), len(names), len(plan.schema.classes)))
    row_indices = np.arange(len(records))
    for feature_index, name in enumerate(names):
        unit_values = scale_to_bounds(plan, name, records.columns[name])
        vectors[row_indices, feature_index, records.classes] = (
            unit_values if power == 1 else 2 * unit_values * unit_values - 1
        )
    return vectors.reshape(len(records), -1)


def scale_to_bounds(plan: Plan, name: str, numbers: NDArray[Any]) -> Floats:
    """Scale numbers from their public bounds to [-1, 1]; a missing one becomes the middle, 0."""
    feature = plan.schema[name]
    assert isinstance(feature, Numeric)
    range_middle = (feature.upper + feature.lower) / 2
    half_range = (feature.upper - feature.lower) / 2
    return np.clip(
        np.nan_to_num((np.asarray(numbers, float) - range_middle) / half_range, nan=0.0), -1, 1
    )
