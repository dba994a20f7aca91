"""Check, encode and randomize records for a plan, as a device does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Integers
from discreet.collection.protocol import Collection
from discreet.errors import SchemaError
from discreet.mechanisms.frequency import FrequencyOracle
from discreet.randomness import Random
from discreet.schema.cells import Cells, encode_classes, parse_numbers, respondent_error_context
from discreet.schema.schema import Categorical, Numeric, Schema

if TYPE_CHECKING:
    from discreet.local.question import Question
    from discreet.schema.projection import Projection

__all__ = ["PlanRecords", "RecordRandomizer", "scale_to_bounds"]


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


class RecordRandomizer(Collection):
    """Base of plans: what a device does with the record of a person."""

    questions: Sequence[Question]
    edges: Mapping[str, tuple[float, ...]]
    projection: Projection | None
    mean_features: frozenset[str]
    """Features asked by their mean; by cell only whether they are missing."""

    @cached_property
    def cells(self) -> dict[str, Cells]:
        """The public cells of every feature that is asked by cell."""
        cells_by_feature = {}
        for question in self.questions:
            for name in question.features if question.power == 0 else ():
                feature = self.schema[name]
                if isinstance(feature, Numeric) and name not in self.edges:
                    raise SchemaError(f"{name} is asked by bin, but the plan has no edges for it")
                bin_edges = self.edges.get(name, ()) if isinstance(feature, Numeric) else ()
                cells_by_feature[name] = Cells(
                    feature,
                    tuple(bin_edges),
                    self.schema.missing_tokens,
                    self.schema.unseen,
                    self.schema.outliers,
                )
        return cells_by_feature

    def encode_record(
        self,
        record: Mapping[str, Any],
        question: int | None = None,
        personal: Mapping[str, Any] | None = None,
        by_hand: bool = False,
    ) -> PlanRecords:
        """Check and encode one record; errors name the field that does not fit.

        A device applies the plan's projection here, before any question is answered.

        Parameters
        ----------
        record : mapping
        question : int, optional
            Look only at what this question asks; at the whole record if not given.
        personal, by_hand
            For questionnaires only.
        """
        if personal is not None or by_hand:
            raise SchemaError("only questionnaires ask personal questions or are drawn by hand")
        schema = self.schema
        unknown_names = sorted(str(name) for name in record.keys() - {*self.names})
        if unknown_names:
            raise SchemaError(
                f"the record holds {', '.join(unknown_names)}, which is not asked for; remove it"
            )
        if record.get(schema.target) is None:
            raise SchemaError(f"the record has no {schema.target}; add it")
        target_cells = Cells(Categorical(schema.target, schema.classes, optional=False))
        with respondent_error_context():
            classes = np.array([target_cells.encode_value(record[schema.target])], dtype=np.int64)
        names = schema.names if question is None else self.questions[question].features
        if self.projection is not None and not {*names} <= {*self.original.names}:
            record = _project_record(self.projection, record)
        columns: dict[str, NDArray[Any]] = {}
        with respondent_error_context():
            for name in names:
                feature, value = schema[name], record.get(name)
                if name in self.cells and name not in self.mean_features:
                    columns[name] = np.array([self.cells[name].encode_value(value)])
                elif isinstance(feature, Numeric):
                    number = np.array([value], dtype=object)
                    tokens, outliers = schema.missing_tokens, schema.outliers
                    columns[name] = parse_numbers(feature, number, tokens, outliers)
                else:
                    columns[name] = np.array([Cells.from_schema(schema, name).encode_value(value)])
        return PlanRecords(classes, columns)

    def encode_columns(
        self, columns: Mapping[str, Any], classes: NDArray[Any] | None = None
    ) -> PlanRecords:
        """Encode the columns of many records that the questions use.

        Parameters
        ----------
        columns : mapping of name to array
        classes : array of int, optional
            Class indices; if not given, they are taken from the target's column.
        """
        schema = self.schema
        class_indices = (
            encode_classes(schema, columns[schema.target]) if classes is None else classes
        )
        if self.projection is not None:
            columns = self.projection.transform_columns(columns)
        encoded_columns: dict[str, NDArray[Any]] = {}
        for question in self.questions:
            for name in question.features:
                feature = schema[name]
                if name in encoded_columns:
                    continue
                if name not in self.mean_features:
                    encoded_columns[name] = (
                        self.cells[name].encode_column(columns[name]).astype(np.int64)
                    )
                elif isinstance(feature, Numeric):
                    tokens, outliers = schema.missing_tokens, schema.outliers
                    encoded_columns[name] = parse_numbers(feature, columns[name], tokens, outliers)
        return PlanRecords(np.asarray(class_indices).astype(np.int64), encoded_columns)

    def randomize_records(self, question: int, records: PlanRecords, random: Random) -> Integers:
        """Randomize many records for one question, as one device does for one record."""
        plan_question = self.questions[question]
        mechanism, cell_indices, columns = (
            plan_question.mechanism,
            records.classes,
            records.columns,
        )
        if not isinstance(mechanism, FrequencyOracle):
            return mechanism.perturb(
                _make_vectors(self.schema, plan_question.features, plan_question.power, records),
                random,
            )
        if plan_question.candidate is not None:
            columns = {**columns, self.schema.target: records.classes}
            is_right = plan_question.candidate.predict(columns) == records.classes
            return mechanism.encode(mechanism.perturb(is_right.astype(np.int64), random))
        for name in plan_question.features:
            # of a number that is asked by its mean: cell 0 where it is there, cell 1 where not
            column = np.isnan(columns[name]) if name in self.mean_features else columns[name]
            cell_indices = cell_indices * self.cells[name].size + column
        return mechanism.encode(mechanism.perturb(cell_indices, random))


def _project_record(projection: Projection, record: Mapping[str, Any]) -> dict[str, Any]:
    columns = {
        name: np.array([record.get(name)], dtype=object) for name in projection.input_schema.names
    }
    return {name: column[0] for name, column in projection.transform_columns(columns).items()}


def _make_vectors(schema: Schema, names: Sequence[str], power: int, records: PlanRecords) -> Floats:
    """Build vectors with the numbers at each person's class, and zero at the other classes."""
    vectors = np.zeros((len(records), len(names), len(schema.classes)))
    row_indices = np.arange(len(records))
    for feature_index, name in enumerate(names):
        unit_values = scale_to_bounds(schema, name, records.columns[name])
        vectors[row_indices, feature_index, records.classes] = (
            unit_values if power == 1 else 2 * unit_values * unit_values - 1
        )
    return vectors.reshape(len(records), -1)


def scale_to_bounds(schema: Schema, name: str, numbers: NDArray[Any]) -> Floats:
    """Scale numbers from their public bounds to [-1, 1]; a missing one becomes the middle, 0."""
    feature = schema[name]
    assert isinstance(feature, Numeric)
    range_middle = (feature.upper + feature.lower) / 2
    half_range = (feature.upper - feature.lower) / 2
    return np.clip(
        np.nan_to_num((np.asarray(numbers, float) - range_middle) / half_range, nan=0.0), -1, 1
    )
