"""Check, encode and randomize records for a plan, as a device does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Integers
from discreet.encoding import Cells, class_codes, numbers_of, own_answer
from discreet.errors import SchemaError
from discreet.mechanisms.frequency import FrequencyOracle
from discreet.randomness import Random
from discreet.schema import Categorical, Numeric

if TYPE_CHECKING:
    from discreet.local.plan import Plan

__all__ = ["Records", "encoded", "prepared", "randomized", "scaled"]


@dataclass(frozen=True)
class Records:
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

    def __getitem__(self, rows: Any) -> Records:
        part = {name: column[rows] for name, column in self.columns.items()}
        return Records(self.classes[rows], part)


def prepared(plan: Plan, record: Mapping[str, Any], question: int | None = None) -> Records:
    """Check and encode a record; errors name the field that does not fit.

    Parameters
    ----------
    plan : Plan
    record : mapping
    question : int, optional
        Look only at what this question asks; at the whole record if not given.
    """
    schema = plan.schema
    unknown = sorted(str(name) for name in record.keys() - {*plan.names})
    if unknown:
        raise SchemaError(
            f"the record holds {', '.join(unknown)}, which is not asked for; remove it"
        )
    if record.get(schema.target) is None:
        raise SchemaError(f"the record has no {schema.target}; add it")
    target = Cells(Categorical(schema.target, schema.classes, optional=False))
    with own_answer():
        classes = np.array([target.index(record[schema.target])], dtype=np.int64)
    names = schema.names if question is None else plan.questions[question].features
    if plan.projection is not None and not {*names} <= {*plan.original.names}:
        whole = {n: np.array([record.get(n)], dtype=object) for n in plan.original.names}
        record = {name: column[0] for name, column in plan.projection.columns(whole).items()}
    with own_answer():
        return Records(classes, {name: _single(plan, name, record.get(name)) for name in names})


def _single(plan: Plan, name: str, value: Any) -> NDArray[Any]:
    feature = plan.schema[name]
    if name in plan.cells and name not in plan.averaged:
        return np.array([plan.cells[name].index(value)])
    if isinstance(feature, Numeric):
        column = np.array([value], dtype=object)
        return numbers_of(feature, column, plan.schema.missing_tokens, plan.schema.outliers)
    return np.array([Cells.of(plan.schema, name).index(value)])


def encoded(plan: Plan, columns: Mapping[str, Any], classes: NDArray[Any] | None = None) -> Records:
    """Encode the columns of many records that the questions of a plan use.

    Parameters
    ----------
    plan : Plan
    columns : mapping of name to array
    classes : array of int, optional
        Class indices; if not given, they are taken from the target's column.
    """
    schema = plan.schema
    codes = class_codes(schema, columns[schema.target]) if classes is None else classes
    if plan.projection is not None:
        columns = plan.projection.columns(columns)
    found: dict[str, NDArray[Any]] = {}
    for question in plan.questions:
        for name in question.features:
            feature = schema[name]
            if name in found:
                continue
            if name not in plan.averaged:
                found[name] = plan.cells[name].column(columns[name]).astype(np.int64)
            elif isinstance(feature, Numeric):
                tokens, outliers = schema.missing_tokens, schema.outliers
                found[name] = numbers_of(feature, columns[name], tokens, outliers)
    return Records(np.asarray(codes).astype(np.int64), found)


def randomized(plan: Plan, question: int, records: Records, random: Random) -> Integers:
    """Randomize many records for one question, as one device does for one record."""
    asked = plan.questions[question]
    mechanism, classes, columns = asked.mechanism, records.classes, records.columns
    if isinstance(mechanism, FrequencyOracle):
        cell = classes
        for name, size in zip(asked.features, plan.shape_of(asked)[1:], strict=True):
            # of a number that is asked by its mean: cell 0 where it is there, cell 1 where not
            column = np.isnan(columns[name]) if name in plan.averaged else columns[name]
            cell = cell * size + column
        return mechanism.encode(mechanism.perturb(cell, random))
    vector = _vector(plan, asked.features, asked.power, records)
    return mechanism.perturb(vector, random)


def _vector(plan: Plan, names: Sequence[str], power: int, records: Records) -> Floats:
    """Build vectors with the numbers at each person's class, and zero at the other classes."""
    vector = np.zeros((len(records), len(names), len(plan.schema.classes)))
    rows = np.arange(len(records))
    for j, name in enumerate(names):
        t = scaled(plan, name, records.columns[name])
        vector[rows, j, records.classes] = t if power == 1 else 2 * t * t - 1
    return vector.reshape(len(records), -1)


def scaled(plan: Plan, name: str, numbers: NDArray[Any]) -> Floats:
    """Scale numbers from their public bounds to [-1, 1]; a missing one becomes the middle, 0."""
    feature = plan.schema[name]
    assert isinstance(feature, Numeric)
    middle, half = (feature.upper + feature.lower) / 2, (feature.upper - feature.lower) / 2
    return np.clip(np.nan_to_num((np.asarray(numbers, float) - middle) / half, nan=0.0), -1, 1)
