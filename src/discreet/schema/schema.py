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
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from discreet import conveniences
from discreet.errors import FormatError, SchemaError
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import (
    Body,
    Document,
    dump_document,
    load_document,
    parse_document,
)
from discreet.files.yaml_text import SET_REFUSAL, convert_yaml_to_json
from discreet.schema.inference_cost import InferenceCost, InferenceCostBody

if TYPE_CHECKING:
    from discreet.schema.drafting import SchemaDraft

__all__ = [
    "Categorical",
    "Feature",
    "Numeric",
    "Schema",
    "Value",
    "abbreviate_value",
    "format_value",
    "refuse_set",
]

Value = bool | int | float | str
Missing = Literal["skip", "category"]
Outliers = Literal["error", "clip"]
Unseen = Literal["error", "other"]

VERSION = 2

FILL_IN_MARK = "FILL-IN"
"""Placeholder in a drafted schema that a person has to replace."""

DESCRIPTION_ONLY_KEYS = {
    "name", "title", "note", "source", "sha256", "rows", "split",
    "class_counts", "class_labels", "missing_counts",
}  # fmt: skip
"""Keys of a benchmark table's description that are not part of the schema."""


def format_value(value: Any) -> str:
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
    return _format_time(value) if isinstance(value, datetime) else str(value)


def _format_time(moment: datetime) -> str:
    """Format a point in time as engines do: without trailing zeros, with +00 for UTC."""
    zone_suffix = ""
    if moment.tzinfo is not None:
        moment, zone_suffix = moment.astimezone(UTC).replace(tzinfo=None), "+00"
    time_text = moment.isoformat(" ")
    return (time_text.rstrip("0") if "." in time_text else time_text) + zone_suffix


def abbreviate_value(value: Any) -> str:
    """Format a value for an error message, in at most 80 characters."""
    try:
        text = repr(to_plain_value(value))
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return "a whole number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:60]}…"


def to_plain_value(value: Any) -> Any:
    """A value whose repr a person would write: numbers and text of NumPy as Python's."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(to_plain_value, value))
    if type(value) is dict:
        return {to_plain_value(key): to_plain_value(item) for key, item in value.items()}
    if hasattr(value, "isoformat") or type(value).__name__ in ("datetime64", "timedelta64"):
        return str(value)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return value


def _to_plain_json(value: Any) -> Any:
    """Convert NumPy numbers and arrays, tuples and ranges to JSON values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    refuse_set("a schema", abbreviate_value(value), value)
    if isinstance(value, Iterable):
        return list(value)
    raise SchemaError(f"a schema holds names, numbers and lists, not {type(value).__name__}")


def _check_name(name: Any, role: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(
            f"{role} is named {abbreviate_value(name)}; write a name, a string that is not empty"
        )


def _check_flag(name: str, flag_name: str, value: Any) -> bool:
    value_type = type(value)
    if value_type is bool or (
        value_type.__module__ == "numpy" and value_type.__name__ in ("bool", "bool_")
    ):
        return bool(value)
    raise SchemaError(f"{name}: {flag_name} is {abbreviate_value(value)}; write True or False")


def refuse_set(name: str, content_name: str, values: Any) -> None:
    """Refuse a set: its order, and with it the digest, changes from process to process."""
    if isinstance(values, Set) and not isinstance(values, (KeysView, Sequence)):
        raise SchemaError(f"{name}: {content_name} {SET_REFUSAL}")


def _check_domain(name: str, domain_name: str, values: Any) -> tuple[Value, ...]:
    refuse_set(name, domain_name, values)
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise SchemaError(
            f"{name}: {domain_name} is {abbreviate_value(values)}; write a list of every value "
            "that may occur, such as ['no', 'yes']"
        )
    domain = tuple(entry.item() if hasattr(entry, "item") else entry for entry in values)
    if not domain:
        raise SchemaError(f"{name}: {domain_name} is empty; list every value that may occur")
    for value in domain:
        if not isinstance(value, Value) or (isinstance(value, float) and not math.isfinite(value)):
            raise SchemaError(
                f"{name}: {abbreviate_value(value)} cannot be one of the {domain_name}; use text, "
                "whole numbers or true/false, and leave missing values to missing="
            )
    seen_texts: set[str] = set()
    for value in domain:
        if (value_text := format_value(value)) in seen_texts:
            raise SchemaError(
                f"{name}: {abbreviate_value(value)} is listed twice in {domain_name}; remove one"
            )
        seen_texts.add(value_text)
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

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {"kind": "categorical", "values": list(self.values)}


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

    Attributes
    ----------
    is_bounded : bool
        Whether both bounds are finite.
    """

    name: str
    lower: float = -math.inf
    upper: float = math.inf
    integer: bool = False
    optional: bool = True
    is_bounded: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_name(self.name, "a numeric feature")
        for bound_name in ("lower", "upper"):
            bound = getattr(self, bound_name)
            try:
                bound_value = float(bound)
            except (TypeError, ValueError, OverflowError):
                bound_value = math.nan
            if math.isnan(bound_value) or isinstance(bound, (str, bool)):
                raise SchemaError(
                    f"{self.name}: {bound_name} is {abbreviate_value(bound)}; write a number you "
                    "know"
                )
            object.__setattr__(self, bound_name, bound_value)
        for flag_name in ("integer", "optional"):
            object.__setattr__(
                self, flag_name, _check_flag(self.name, flag_name, getattr(self, flag_name))
            )
        if not self.lower < self.upper:
            raise SchemaError(
                f"{self.name}: lower {self.lower:g} is not below upper {self.upper:g}; "
                "swap them, or make the feature categorical if it has one value"
            )
        is_bounded = math.isfinite(self.lower) and math.isfinite(self.upper)
        object.__setattr__(self, "is_bounded", is_bounded)
        if self.integer and is_bounded:
            for bound_name in ("lower", "upper"):
                if not getattr(self, bound_name).is_integer():
                    raise SchemaError(
                        f"{self.name}: {bound_name} {getattr(self, bound_name):g} is not a whole "
                        "number although integer is true; round it outwards"
                    )

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        bounds = {
            bound_name: bound if math.isfinite(bound) else None
            for bound_name, bound in (("lower", self.lower), ("upper", self.upper))
        }
        return {"kind": "numeric", "integer": self.integer, **bounds}

    def read_bound(self, bound: Any) -> float:
        """Read a cut point.

        Parameters
        ----------
        bound : float
        """
        return float(bound)

    def format_number(self, number: float) -> str:
        """Format a number for people.

        Parameters
        ----------
        number : float
        """
        return f"{number:g}"

    def format_bound(self, number: float) -> str:
        """Format a number as a bound.

        Parameters
        ----------
        number : float
        """
        return self.format_number(number)

    def format_bin(self, low: float, high: float) -> str:
        """Format a bin; of whole numbers the last ends before the next edge.

        Parameters
        ----------
        low, high : float
            Its edges.
        """
        last = high - self.integer
        low_text, last_text = self.format_number(low), self.format_number(last)
        return low_text if low == last else f"{low_text} to {last_text}"

    def restore_value(self, number: float) -> Any:
        """The value of a column that is read as this number.

        Parameters
        ----------
        number : float
        """
        return number


Feature = Categorical | Numeric


def _check_feature_names(features: tuple[Feature, ...], target: str) -> None:
    """Raise if features cannot be together in a schema."""
    if not features:
        raise SchemaError("features is empty; a classifier needs at least one")
    for feature in features:
        if not isinstance(feature, (Categorical, Numeric)):
            raise SchemaError(
                f"{abbreviate_value(feature)} is not a feature; write Categorical(name, values) or "
                "Numeric(name, lower, upper)"
            )
    feature_names = tuple(feature.name for feature in features)
    for name in feature_names:
        if feature_names.count(name) > 1:
            raise SchemaError(f"two features are named {name!r}; rename one")
        if name == target:
            raise SchemaError(
                f"{target!r} is the target and also a feature; remove the feature, "
                "the target must not predict itself"
            )


def _read_bound(bound: float | str | None, unbounded: float) -> Any:
    """A bound as written, which YAML gives as text where its spelling is unusual: 1e6, 1.50."""
    if bound is None:
        return unbounded
    try:
        return float(bound)
    except ValueError:
        return bound


class FeatureBody(Body):
    name: str
    kind: Literal["categorical", "numeric", "date"]
    values: list[Value] | None = None
    lower: float | str | None = None
    upper: float | str | None = None
    integer: bool = False
    by: str | None = None
    optional: bool = True

    def to_feature(self) -> Feature:
        """The feature this shape stands for."""
        from discreet.schema.dates import make_date_feature

        if self.kind == "date":
            return make_date_feature(self.name, self.by, self.lower, self.upper, self.optional)
        if self.kind == "categorical":
            return Categorical(self.name, self.values or [], self.optional)
        lower, upper = _read_bound(self.lower, -math.inf), _read_bound(self.upper, math.inf)
        return Numeric(self.name, lower, upper, self.integer, self.optional)


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
    inference: InferenceCostBody | None = None

    def to_schema(self) -> Schema:
        """The schema this shape stands for."""
        features = [feature_body.to_feature() for feature_body in self.features]
        inference = None if self.inference is None else self.inference.to_cost()
        options = self.model_dump(exclude={"features", "inference"})
        return Schema(features, **options, inference=inference)


@dataclass(frozen=True, init=False, repr=False)
class Schema(Document):
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
        Write False only if all of it is known without the data, or was paid for.
    inference : InferenceCost, optional
        What was paid for inferring it with noise, which every guarantee then includes.

    Attributes
    ----------
    names : list of str
        Names of the features, in order: ``frame[schema.names]`` selects their columns.
    """

    kind: ClassVar[str] = "schema"
    version: ClassVar[int] = VERSION
    features: tuple[Feature, ...]
    target: str
    classes: tuple[Value, ...]
    missing: Missing
    outliers: Outliers
    unseen: Unseen
    missing_tokens: tuple[str, ...]
    inferred: bool
    inference: InferenceCost | None

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
        inference: InferenceCost | None = None,
    ) -> None:
        _check_name(target, "the target")
        if isinstance(features, (Categorical, Numeric)) or not isinstance(features, Iterable):
            raise SchemaError(
                f"features is {abbreviate_value(features)}; write a list of "
                "Categorical(name, values) and Numeric(name, lower, upper)"
            )
        refuse_set("a schema", "features", features)
        refuse_set("a schema", "missing_tokens", missing_tokens)
        domain = _check_domain(target, "classes", classes)
        for option_name, option_value, allowed_values in (
            ("missing", missing, Missing),
            ("outliers", outliers, Outliers),
            ("unseen", unseen, Unseen),
        ):
            if option_value not in get_args(allowed_values):
                raise SchemaError(
                    f"{option_name}={abbreviate_value(option_value)}; write "
                    f"{' or '.join(map(repr, get_args(allowed_values)))}"
                )
        if isinstance(missing_tokens, (str, bytes)) or not isinstance(missing_tokens, Iterable):
            raise SchemaError(
                f"missing_tokens is {abbreviate_value(missing_tokens)}; write a list, such as "
                "['?'] for one token"
            )
        for field_name, checked_value in (
            ("features", tuple(features)),
            ("target", target),
            ("classes", domain),
            ("missing", missing),
            ("outliers", outliers),
            ("unseen", unseen),
            ("missing_tokens", tuple(str(token) for token in missing_tokens)),
            ("inferred", bool(inferred)),
            ("inference", inference),
        ):
            object.__setattr__(self, field_name, checked_value)
        _check_feature_names(self.features, target)

    @property
    def names(self) -> list[str]:  # data frames take a tuple for one name
        return [feature.name for feature in self.features]

    def _repr_html_(self) -> str:
        return conveniences.render_html(self)

    def __repr__(self) -> str:
        feature_count = len(self.names)
        shown_names = ", ".join(self.names[:4]) + ", …" * (feature_count > 4)
        shown_classes = ", ".join(map(repr, self.classes[:4])) + ", …" * (len(self.classes) > 4)
        inferred_note = ", inferred=True" if self.inferred else ""
        return (
            f"Schema({feature_count} feature{'s' * (feature_count > 1)}: {shown_names}; "
            f"target={self.target!r}, classes=({shown_classes}){inferred_note})"
        )

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise SchemaError(f"there is no feature {name!r}; there are {', '.join(self.names)}")

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "features": [
                {"name": feature.name, **feature.to_body(), "optional": feature.optional}
                for feature in self.features
            ],
            "target": self.target,
            "classes": list(self.classes),
            "missing": self.missing,
            "outliers": self.outliers,
            "unseen": self.unseen,
            "missing_tokens": list(self.missing_tokens),
            "inferred": self.inferred,
            **({} if self.inference is None else {"inference": self.inference.to_body()}),
        }

    def to_json(self, indent: int | None = 1) -> str:
        """Write the schema as versioned JSON, without a seal: people are meant to edit it."""
        return dump_document("schema", VERSION, self.to_body(), indent, sealed=False)

    def to_yaml(self) -> str:
        """Write the schema as YAML with one line for each column; it has the same digest."""
        from discreet.schema.short_form import format_schema

        return format_schema(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Schema:
        """Read a schema, hand-written or not, or the description file of a benchmark table."""
        from discreet.schema.short_form import expand_document

        document = parse_document(text, "schema")
        if FILL_IN_MARK in (text if isinstance(text, str) else text.decode(errors="replace")):
            from discreet.schema.drafting import require_finished

            document = require_finished(document)
        document = expand_document(document)
        if "format" not in document and {"features", "target", "classes"} <= document.keys():
            return cls._from_description(document)
        schema = load_document(document, "schema", VERSION, SchemaBody, sealed=False).to_schema()
        if len(schema.classes) == 1 and not schema.inferred:
            raise SchemaError(
                f"{schema.target}: {abbreviate_value(schema.classes[0])} is the only class, so "
                "there is nothing to predict; list at least two classes"
            )
        return schema

    @classmethod
    def from_yaml(cls, text: str) -> Schema:
        """Read a schema in YAML; values keep their spelling: yes, 012 and 1.10 are text.

        Parameters
        ----------
        text : str

        Examples
        --------
        >>> Schema.from_yaml('''
        ... features:
        ...   tenure: 0..72
        ...   contract: [month, year, two years]
        ... target: {churned: [no, yes]}
        ... ''')
        Schema(2 features: tenure, contract; target='churned', classes=('no', 'yes'))
        """
        try:
            json_text = convert_yaml_to_json(text, "schema", keep_spelling=True)
        except FormatError as error:
            if not any("], never" in line and "one of [" not in line for line in text.splitlines()):
                raise
            way_out = "a list that is never missing is written one of [month, year], never missing"
            raise FormatError(f"{error}; {way_out}") from None
        return cls.from_json(json_text)

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a schema file, YAML if its name says so."""
        with error_context(path):
            file_text = read_text(path)
            is_yaml = Path(path).suffix.lower() in (".yaml", ".yml")
            return cls.from_yaml(file_text) if is_yaml else cls.from_json(file_text)

    @classmethod
    def coerce(cls, value: Any) -> Schema:
        """Return a schema from a schema, the path of its file, or a mapping.

        Parameters
        ----------
        value : Schema, str, path or mapping
            A mapping has the keys of a schema file: ``features``, ``target``, ``classes`` and so
            on, with features in the long form or one line for each column.

        Raises
        ------
        TypeError
            If it is something else.

        Examples
        --------
        >>> Schema.coerce({"features": {"age": "0..120"}, "target": {"retired": ["no", "yes"]}})
        Schema(1 feature: age; target='retired', classes=('no', 'yes'))
        """
        if isinstance(value, Schema):
            return value
        if isinstance(value, (str, Path)) and str(value):
            return cls.read(value)
        if isinstance(value, Mapping):
            return cls.from_json(json.dumps(value, default=_to_plain_json))
        raise TypeError(f"a schema, a path or a mapping is needed, not {type(value).__name__}")

    @classmethod
    def _from_description(cls, description: dict[str, Any]) -> Schema:
        """Hand-written files and benchmark descriptions, whose ``missing`` holds the token."""
        body = {
            key: value for key, value in description.items() if key not in DESCRIPTION_ONLY_KEYS
        }
        missing_value = description.get("missing")
        missing_tokens = description.get("missing_tokens", [])
        if missing_value is None or isinstance(missing_value, str):
            body["missing"] = missing_value if missing_value in get_args(Missing) else "skip"
        if isinstance(missing_value, str) and missing_value not in get_args(Missing):
            missing_tokens = [missing_value]
        missing_counts = description.get("missing_counts")
        never_missing = "missing" in description and missing_value is None
        feature_entries = description["features"]
        if isinstance(feature_entries, list) and (
            missing_counts is None or isinstance(missing_counts, dict)
        ):
            feature_entries = [
                {
                    "optional": not never_missing
                    and (missing_counts is None or entry.get("name") in missing_counts),
                    **entry,
                }
                if isinstance(entry, dict)
                else entry
                for entry in feature_entries
            ]
        body |= {"features": feature_entries, "missing_tokens": missing_tokens}
        schema_document = {"format": "discreet/schema", "version": VERSION, **body}
        return load_document(
            schema_document, "schema", VERSION, SchemaBody, sealed=False
        ).to_schema()

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
            What is open is filled in with
            :meth:`~discreet.schema.drafting.SchemaDraft.to_schema`, or by hand in the file of
            :meth:`~discreet.schema.drafting.SchemaDraft.to_yaml`.

        Examples
        --------
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [31, 47], "smokes": [True, False], "ill": ["no", "yes"]})
        >>> draft = Schema.from_dtypes(people, "ill")
        >>> draft.open_fields
        ('classes', 'age: lower', 'age: upper')
        >>> draft.to_schema(classes=["no", "yes"], bounds={"age": (0, 120)}).names
        ['age', 'smokes']
        """
        from discreet.schema.drafting import SchemaDraft

        return SchemaDraft.from_frame(frame, target, declared)

    @classmethod
    def infer(cls, table: Any, target: str, **options: Any) -> Schema:
        """Infer a schema from data: for a price, or with a warning about everything read from it.

        Parameters
        ----------
        table : data frame, Arrow table, ibis table, or path of a CSV or Parquet file
        target : str
            The name of the class column.
        **options
            With ``epsilon`` (and ``delta``, without which categories and classes have to be
            given), the schema is inferred under that promise, which it states and guarantees
            include: ``budget`` (a ledger), ``classes``, ``columns`` (lines such as ``0..110``),
            ``like``, ``drop``, ``person``, ``missing``, ``missing_tokens``, ``same_people``; see
            :func:`discreet.central.private_inference.infer_private_schema`. Without:
            ``missing``, ``outliers``, ``unseen``, ``missing_tokens`` and ``categorical`` (names of
            numeric columns to treat as categories).

        Warns
        -----
        PrivacyWarning
            Without epsilon: names every bound, category list and class list that now comes from
            the data.

        Examples
        --------
        >>> import pandas as pd
        >>> people = pd.DataFrame({"age": [31, 47] * 5000, "ill": ["no", "yes"] * 5000})
        >>> schema = Schema.infer(people, "ill", epsilon=0.5, classes=["no", "yes"])
        >>> schema["age"].lower <= 31 and schema["age"].upper >= 47
        True
        >>> schema.inference.epsilon
        0.5
        """
        return conveniences.infer_schema(table, target, **options)
