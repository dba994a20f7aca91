"""The public description of a table: features, target, and handling of unusual values.

A schema is written down by people who have not looked at the data. Whatever it says (names,
categories, bounds, classes) is public; everything else stays private.

>>> from discreet import Categorical, Numeric, Schema
>>> schema = Schema(
...     features=[Numeric("age", 18, 100), Categorical("gender", ["female", "male"])],
...     target="missed_payment",
...     classes=["no", "yes"],
... )
>>> Schema.from_json(schema.to_json()) == schema
True
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from discreet.documents import (
    UNORDERED,
    Body,
    canonical_document,
    digest_of,
    dump,
    json_of_yaml,
    load,
    parse,
    read_text,
)
from discreet.errors import SchemaError, about

if TYPE_CHECKING:
    from discreet.drafting import SchemaDraft

__all__ = ["Categorical", "Feature", "Numeric", "Schema", "Value", "refuse_set", "short", "text_of"]

Value = bool | int | float | str
Missing = Literal["skip", "category"]
Outliers = Literal["error", "clip"]
Unseen = Literal["error", "other"]

VERSION = 1

MARK = "FILL-IN"
"""Placeholder in a drafted schema that a person has to replace."""

BESIDE = {
    "name", "title", "note", "source", "sha256", "rows", "split",
    "class_counts", "class_labels", "missing_counts",
}  # fmt: skip
"""Keys of a benchmark table's description that are not part of the schema."""


def text_of(value: Any) -> str:
    """Format a value in the spelling that all engines share: 1, 1.0 and "1" are the same.

    A function of the value alone. Decimals are spelled like the nearest double, and points in time
    as DuckDB and PostgreSQL write them, in UTC if they have a time zone.
    """
    if isinstance(value, str):
        return value
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal) or hasattr(value, "item"):  # NumPy's long double has no item
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return _spell_time(value) if isinstance(value, datetime) else str(value)


def _spell_time(moment: datetime) -> str:
    """Format a point in time as engines do: without trailing zeros, with +00 for UTC."""
    zone = ""
    if moment.tzinfo is not None:
        moment, zone = moment.astimezone(UTC).replace(tzinfo=None), "+00"
    text = moment.isoformat(" ")
    return (text.rstrip("0") if "." in text else text) + zone


def short(value: Any) -> str:
    """Format a value for an error message, in at most 80 characters."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return "a whole number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:60]}…"


def _plain(value: Any) -> Any:
    """Convert NumPy numbers and arrays, tuples and ranges to JSON values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    refuse_set("a schema", short(value), value)
    if isinstance(value, Iterable):
        return list(value)
    raise SchemaError(f"a schema holds names, numbers and lists, not {type(value).__name__}")


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"{what} is named {name!r}; write a name, a string that is not empty")


def _check_flag(name: str, what: str, value: Any) -> bool:
    kind = type(value)
    if kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")):
        return bool(value)
    raise SchemaError(f"{name}: {what} is {value!r}; write True or False")


def refuse_set(name: str, what: str, values: Any) -> None:
    """Refuse a set: its order, and with it the digest, changes from process to process."""
    if isinstance(values, Set) and not isinstance(values, (KeysView, Sequence)):
        raise SchemaError(f"{name}: {what} {UNORDERED}")


def _check_domain(name: str, what: str, values: Any) -> tuple[Value, ...]:
    refuse_set(name, what, values)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise SchemaError(
            f"{name}: {what} is {values!r}; write a list of every value that may occur, such as "
            "['no', 'yes']"
        )
    domain = tuple(v.item() if hasattr(v, "item") else v for v in values)
    if not domain:
        raise SchemaError(f"{name}: {what} is empty; list every value that may occur")
    for value in domain:
        if not isinstance(value, Value) or (isinstance(value, float) and not math.isfinite(value)):
            raise SchemaError(
                f"{name}: {value!r} cannot be one of the {what}; use text, whole numbers or true/"
                "false, and leave missing values to missing="
            )
    seen: set[str] = set()
    for value in domain:
        if (text := text_of(value)) in seen:
            raise SchemaError(f"{name}: {value!r} is listed twice in {what}; remove one")
        seen.add(text)
    return domain


@dataclass(frozen=True, init=False)
class Categorical:
    """A feature with a short public list of values.

    Parameters
    ----------
    name : str
    values : sequence of str, int, float or bool
        Every value that may occur, whether or not it does in the data.
    optional : bool, default True
        Whether the value may be missing. If so, "missing" is a public cell of its own in every
        private collection; ``False`` saves that cell and makes a missing value an error.
    """

    name: str
    values: tuple[Value, ...]
    optional: bool

    def __init__(self, name: str, values: Iterable[Any], optional: bool = True) -> None:
        _check_name(name, "a categorical feature")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "values", _check_domain(name, "values", values))
        object.__setattr__(self, "optional", _check_flag(name, "optional", optional))


@dataclass(frozen=True)
class Numeric:
    """A numeric feature with public bounds.

    Parameters
    ----------
    name : str
    lower, upper : float
        Bounds that were known before anyone looked at the data. Left out, the feature is
        unbounded: good enough for :class:`~discreet.MixedNB`, refused by every private estimator.
    integer : bool, default False
        Whether only whole numbers occur.
    optional : bool, default True
        As for :class:`Categorical`.
    """

    name: str
    lower: float = -math.inf
    upper: float = math.inf
    integer: bool = False
    optional: bool = True

    def __post_init__(self) -> None:
        _check_name(self.name, "a numeric feature")
        for side in ("lower", "upper"):
            bound = getattr(self, side)
            try:
                number = float(bound)
            except (TypeError, ValueError, OverflowError):
                number = math.nan
            if math.isnan(number) or isinstance(bound, (str, bool)):
                raise SchemaError(f"{self.name}: {side} is {short(bound)}; write a number you know")
            object.__setattr__(self, side, number)
        for flag in ("integer", "optional"):
            object.__setattr__(self, flag, _check_flag(self.name, flag, getattr(self, flag)))
        if not self.lower < self.upper:
            raise SchemaError(
                f"{self.name}: lower {self.lower:g} is not below upper {self.upper:g}; "
                "swap them, or make the feature categorical if it has one value"
            )
        if self.integer and self.bounded:
            for side in ("lower", "upper"):
                if not getattr(self, side).is_integer():
                    raise SchemaError(
                        f"{self.name}: {side} {getattr(self, side):g} is not a whole number "
                        "although integer is true; round it outwards"
                    )

    @property
    def bounded(self) -> bool:
        """Whether both bounds are finite."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)


Feature = Categorical | Numeric


def _names_of(features: tuple[Feature, ...], target: str) -> tuple[str, ...]:
    """Return the names of the features; raises if they cannot be together in a schema."""
    if not features:
        raise SchemaError("features is empty; a classifier needs at least one")
    for feature in features:
        if not isinstance(feature, (Categorical, Numeric)):
            raise SchemaError(
                f"{feature!r} is not a feature; write Categorical(name, values) or "
                "Numeric(name, lower, upper)"
            )
    names = tuple(feature.name for feature in features)
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(f"two features are named {name!r}; rename one")
        if name == target:
            raise SchemaError(
                f"{target!r} is the target and also a feature; remove the feature, "
                "the target must not predict itself"
            )
    return names


class FeatureBody(Body):
    name: str
    kind: Literal["categorical", "numeric"]
    values: list[Value] | None = None
    lower: float | None = None
    upper: float | None = None
    integer: bool = False
    optional: bool = True


class SchemaBody(Body):
    """Shape of a schema, alone in a file or inside another document."""

    features: list[FeatureBody]
    target: str
    classes: list[Value]
    missing: Missing = "skip"
    outliers: Outliers = "error"
    unseen: Unseen = "error"
    missing_tokens: list[str] = []
    inferred: bool = False

    def value(self) -> Schema:
        """The schema this shape stands for."""
        features: list[Feature] = []
        for one in self.features:
            if one.kind == "categorical":
                features.append(Categorical(one.name, one.values or [], one.optional))
                continue
            lower = -math.inf if one.lower is None else one.lower
            upper = math.inf if one.upper is None else one.upper
            features.append(Numeric(one.name, lower, upper, one.integer, one.optional))
        return Schema(
            features,
            self.target,
            self.classes,
            self.missing,
            self.outliers,
            self.unseen,
            self.missing_tokens,
            self.inferred,
        )


@dataclass(frozen=True, init=False, repr=False)
class Schema:
    """The public description of a table.

    Parameters
    ----------
    features : sequence of Categorical or Numeric
        In the order of the columns of an array; data frames and files are matched by name.
    target : str
        The name of the class column.
    classes : sequence
        Every class that may occur.
    missing : {"skip", "category"}
        Whether the model leaves out the factor of a missing cell, or treats missing as a value.
    outliers : {"error", "clip"}
        What happens to a number outside its public bounds.
    unseen : {"error", "other"}
        What happens to a category that is not listed: refused, or counted in a cell "other".
    missing_tokens : sequence of str
        Spellings of "missing" in text columns, such as ``"?"``. None, NaN and the empty string
        are always missing.
    inferred : bool, default False
        Whether it was taken from the data, which voids the guarantee of every private estimator.
        Write False only if all of it is known without the data.

    Attributes
    ----------
    names : tuple of str
        Names of the features, in order.
    """

    features: tuple[Feature, ...]
    target: str
    classes: tuple[Value, ...]
    missing: Missing
    outliers: Outliers
    unseen: Unseen
    missing_tokens: tuple[str, ...]
    inferred: bool
    names: tuple[str, ...] = field(init=False, compare=False)

    def __init__(
        self,
        features: Iterable[Feature],
        target: str,
        classes: Iterable[Any],
        missing: Missing = "skip",
        outliers: Outliers = "error",
        unseen: Unseen = "error",
        missing_tokens: Sequence[str] = (),
        inferred: bool = False,
    ) -> None:
        _check_name(target, "the target")
        if isinstance(features, (Categorical, Numeric)) or not isinstance(features, Iterable):
            raise SchemaError(
                f"features is {features!r}; write a list of Categorical(name, values) and "
                "Numeric(name, lower, upper)"
            )
        refuse_set("a schema", "features", features)
        refuse_set("a schema", "missing_tokens", missing_tokens)
        domain = _check_domain(target, "classes", classes)
        for name, value, kinds in (
            ("missing", missing, Missing),
            ("outliers", outliers, Outliers),
            ("unseen", unseen, Unseen),
        ):
            if value not in get_args(kinds):
                raise SchemaError(f"{name}={value!r}; write one of {get_args(kinds)}")
        if isinstance(missing_tokens, (str, bytes)) or not isinstance(missing_tokens, Iterable):
            raise SchemaError(
                f"missing_tokens is {missing_tokens!r}; write a list, such as ['?'] for one token"
            )
        for slot, checked in (
            ("features", tuple(features)),
            ("target", target),
            ("classes", domain),
            ("missing", missing),
            ("outliers", outliers),
            ("unseen", unseen),
            ("missing_tokens", tuple(str(token) for token in missing_tokens)),
            ("inferred", bool(inferred)),
        ):
            object.__setattr__(self, slot, checked)
        object.__setattr__(self, "names", _names_of(self.features, target))

    def _repr_html_(self) -> str:
        from discreet.report.notebook import schema_html

        return schema_html(self)

    def __repr__(self) -> str:
        count = len(self.names)
        some = ", ".join(self.names[:4]) + ", …" * (count > 4)
        known = ", ".join(map(repr, self.classes[:4])) + ", …" * (len(self.classes) > 4)
        taken = ", inferred=True" if self.inferred else ""
        return (
            f"Schema({count} feature{'s' * (count > 1)}: {some}; target={self.target!r}, "
            f"classes=({known}){taken})"
        )

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise SchemaError(f"there is no feature {name!r}; there are {', '.join(self.names)}")

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        features: list[dict[str, Any]] = []
        for feature in self.features:
            if isinstance(feature, Categorical):
                body: dict[str, Any] = {"kind": "categorical", "values": list(feature.values)}
            else:
                body = {"kind": "numeric", "integer": feature.integer}
                for side in ("lower", "upper"):
                    bound = getattr(feature, side)
                    body[side] = bound if math.isfinite(bound) else None
            features.append({"name": feature.name, **body, "optional": feature.optional})
        return {
            "features": features,
            "target": self.target,
            "classes": list(self.classes),
            "missing": self.missing,
            "outliers": self.outliers,
            "unseen": self.unseen,
            "missing_tokens": list(self.missing_tokens),
            "inferred": self.inferred,
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the schema's content; parties compare it before they start."""
        return digest_of(canonical_document("schema", VERSION, self.to_body()))

    def to_json(self, indent: int | None = 1) -> str:
        """Write the schema as versioned JSON, without a seal: people are meant to edit it."""
        return dump("schema", VERSION, self.to_body(), indent, sealed=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Schema:
        """Read a schema, hand-written or not, or the description file of a benchmark table."""
        whole = parse(text, "schema")
        if MARK in (text if isinstance(text, str) else text.decode(errors="replace")):
            from discreet.drafting import finished

            whole = finished(whole)
            text = json.dumps(whole)
        if "format" not in whole and {"features", "target", "classes"} <= whole.keys():
            return cls._from_description(whole)
        found = load(text, "schema", VERSION, SchemaBody, sealed=False).value()
        if len(found.classes) == 1 and not found.inferred:
            raise SchemaError(
                f"{found.target}: {found.classes[0]!r} is the only class, so there is nothing to "
                "predict; list at least two classes"
            )
        return found

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a schema file, YAML if its name says so."""
        with about(path):
            text = read_text(path)
            yaml = Path(path).suffix.lower() in (".yaml", ".yml")
            return cls.from_json(json_of_yaml(text, "schema") if yaml else text)

    @classmethod
    def of(cls, value: Any) -> Schema:
        """Return a schema from a schema, the path of its file, or a mapping.

        Parameters
        ----------
        value : Schema, str, path or mapping
            A mapping has the keys of a schema file: ``features``, ``target``, ``classes`` and so
            on.

        Raises
        ------
        TypeError
            If it is something else.

        Examples
        --------
        >>> age = {"name": "age", "kind": "numeric", "lower": 0, "upper": 120}
        >>> Schema.of({"features": [age], "target": "retired", "classes": ["no", "yes"]}).names
        ('age',)
        """
        if isinstance(value, Schema):
            return value
        if isinstance(value, (str, Path)) and str(value):
            return cls.read(value)
        if isinstance(value, Mapping):
            return cls.from_json(json.dumps(value, default=_plain))
        raise TypeError(f"a schema, a path or a mapping is needed, not {type(value).__name__}")

    @classmethod
    def _from_description(cls, whole: dict[str, Any]) -> Schema:
        """Hand-written files and benchmark descriptions, whose ``missing`` holds the token."""
        body = {key: value for key, value in whole.items() if key not in BESIDE}
        token, tokens = whole.get("missing"), whole.get("missing_tokens", [])
        if token is None or isinstance(token, str):
            body["missing"] = token if token in get_args(Missing) else "skip"
        if isinstance(token, str) and token not in get_args(Missing):
            tokens = [token]
        counts = whole.get("missing_counts")
        never = "missing" in whole and token is None
        entries = whole["features"]
        if isinstance(entries, list) and (counts is None or isinstance(counts, dict)):
            entries = [
                {"optional": not never and (counts is None or one.get("name") in counts), **one}
                if isinstance(one, dict)
                else one
                for one in entries
            ]
        head = {"format": "discreet/schema", "version": VERSION}
        shaped = {**head, **body, "features": entries, "missing_tokens": tokens}
        return load(json.dumps(shaped), "schema", VERSION, SchemaBody, sealed=False).value()

    @classmethod
    def from_dtypes(
        cls, frame: Any, target: str = "", *, declared: bool | Collection[str] = False
    ) -> SchemaDraft:
        """Begin a schema with the names and types of a frame's columns; no value is read.

        Parameters
        ----------
        frame : data frame of pandas or polars, Arrow table or schema, structured NumPy array
        target : str, optional
            The name of the class column.
        declared : bool or collection of str, default False
            Columns of a categorical type whose categories are public. The type does not show
            whether they were declared or read from the values, so False uses none of them.

        Returns
        -------
        SchemaDraft
            What is open is filled in with :meth:`~discreet.drafting.SchemaDraft.finished`, or by
            hand in the file of :meth:`~discreet.drafting.SchemaDraft.to_yaml`.

        Examples
        --------
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [31, 47], "smokes": [True, False], "ill": ["no", "yes"]})
        >>> draft = Schema.from_dtypes(people, "ill")
        >>> draft.open
        ('classes', 'age: lower', 'age: upper')
        >>> draft.finished(classes=["no", "yes"], bounds={"age": (0, 120)}).names
        ('age', 'smokes')
        """
        from discreet.drafting import SchemaDraft

        return SchemaDraft.of_frame(frame, target, declared)

    @classmethod
    def infer(cls, table: Any, target: str, **options: Any) -> Schema:
        """Infer a schema from data, and warn about everything that was read from it.

        Parameters
        ----------
        table : data frame, Arrow table, ibis table, or path of a CSV or Parquet file
        target : str
            The name of the class column.
        **options
            ``missing``, ``outliers``, ``unseen``, ``missing_tokens`` and ``categorical`` (names of
            numeric columns to treat as categories).

        Warns
        -----
        PrivacyWarning
            Names every bound, category list and class list that now comes from the data.
        """
        from discreet.tables.inference import infer_schema

        return infer_schema(table, target, **options)
