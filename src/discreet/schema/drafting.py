"""Drafts of schemas from the names and types of columns, to be completed by a person.

What a schema says is public, so it must not come from the data. The names of columns and their
types are taken from a header, a Parquet file's schema, a database or the types of a frame; bounds,
categories and classes are left open in a commented YAML file, with a mark at every place. A schema
in which a mark is left is refused with the places.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from discreet import conveniences
from discreet.errors import FormatError, SchemaError
from discreet.files.yaml_text import format_yaml_list, format_yaml_scalar
from discreet.schema.dates import PART_VALUES, Date, DatePart, make_date_feature
from discreet.schema.schema import (
    FILL_IN_MARK,
    VERSION,
    Categorical,
    Feature,
    Numeric,
    Schema,
    Value,
)
from discreet.schema.short_form import LINE_EXAMPLES, format_feature

__all__ = [
    "ColumnDraft",
    "SchemaDraft",
    "drop_foreign_marks",
    "list_open_parts",
    "read_header",
    "require_finished",
]

MAX_HEADER_BYTES = 1 << 20

FeatureKind = Literal["numeric", "categorical", "date", ""]

_NUMERIC_TYPES = ("int", "uint", "float", "double", "half", "decimal")
_TEXT_TYPES = ("str", "string", "utf8", "large_string", "varchar", "categor", "enum", "dictionary")
_DATE_TYPES = ("date", "timestamp")
_TIME_TYPES = ("time", "duration", "interval")

YAML_HEAD = """\
# What everybody may know about {source}, written down by somebody who did not look at the values.
# Only names {types}were read. Replace every {mark} by what you know without the data: it becomes
# public. Delete a feature that is not to be used. Then:
#     discreet schema check THIS-FILE

format: discreet/schema
version: {version}
target: {{{target}: {classes}}}  # the class column, with every class that may occur
missing: skip  # how a model treats a missing value; or category: as a value of its own
outliers: error  # what happens to a number outside its bounds; or clip
unseen: error  # what happens to a category that is not listed; or other
missing_tokens: []  # spellings of missing, such as ["?"]

# A line for each column: {examples}.
# Each may be missing, unless its line ends in ", never missing": 0..72, never missing, or
# one of [month, year], never missing.
features:
"""


@dataclass(frozen=True)
class ColumnDraft:
    """A column of a draft, as far as it is known.

    Parameters
    ----------
    name : str
    kind : {"numeric", "categorical", "date", ""}
        Empty where the type does not say.
    integer : bool, default False
        Whether only whole numbers occur.
    type : str
        As the table calls it; empty for a CSV file.
    values : tuple, optional
        Categories; None where a person has to list them.
    bounds : pair of float, or of dates as text, optional
        None where a person has to write them.
    by : str, default "month"
        How a date is cut.
    optional : bool, default True
        Whether it may be missing.
    """

    name: str
    kind: FeatureKind = ""
    integer: bool = False
    type: str = ""
    values: tuple[Value, ...] | None = None
    bounds: tuple[Any, Any] | None = None
    optional: bool = True
    by: str = "month"

    @classmethod
    def from_type(
        cls, name: str, column_type: Any, categories: Iterable[Any] | None = None
    ) -> ColumnDraft:
        """Make a column from a type of NumPy, pandas, polars, Arrow or a database.

        Parameters
        ----------
        name : str
        column_type : dtype
        categories : iterable, optional
            Of a categorical type, where they are public.
        """
        type_name = str(column_type).lstrip("!")
        lowered_type = type_name.lower()
        if lowered_type.startswith("bool"):  # whatever the values are, there are two of them
            return cls(name, "categorical", type=type_name, values=(False, True))
        if lowered_type.startswith(_DATE_TYPES):
            return cls(name, "date", type=type_name)
        if lowered_type.startswith(_NUMERIC_TYPES):
            return cls(name, "numeric", lowered_type.startswith(("int", "uint")), type_name)
        if lowered_type.startswith((*_TEXT_TYPES, "<u", "|s")):
            values = None if categories is None else tuple(categories)
            return cls(name, "categorical", type=type_name, values=values)
        return cls(name, type="" if lowered_type == "object" else type_name)

    @classmethod
    def from_feature(cls, feature: Feature, column_type: str = "") -> ColumnDraft:
        """Make a column of which everything is known; a number without bounds leaves them open.

        Parameters
        ----------
        feature : Feature
        column_type : str
            As the table calls it.
        """
        draft = cls(feature.name, type=column_type, optional=feature.optional)
        if isinstance(feature, DatePart):
            return replace(draft, kind="date", by=feature.by)
        if isinstance(feature, Date):
            bounds = str(feature.first), str(feature.last)
            return replace(draft, kind="date", by=feature.by, bounds=bounds)
        if isinstance(feature, Categorical):
            return replace(draft, kind="categorical", values=feature.values)
        known_bounds = (feature.lower, feature.upper) if feature.is_bounded else None
        return replace(draft, kind="numeric", integer=feature.integer, bounds=known_bounds)

    def to_feature(self) -> Feature:
        """Return the feature; raises if something is left open."""
        if self.kind == "categorical" and self.values is not None:
            return Categorical(self.name, self.values, self.optional)
        if self.kind == "numeric" and self.bounds is not None:
            return Numeric(self.name, *self.bounds, self.integer, self.optional)
        if self.kind == "date" and not self.open_fields:
            lower, upper = self.bounds or (None, None)
            return make_date_feature(self.name, self.by, lower, upper, self.optional)
        raise SchemaError(f"this schema is not finished; fill in: {', '.join(self.open_fields)}")

    @property
    def is_temporal(self) -> bool:
        """Whether it holds times of day or durations, which features do not support."""
        is_date = self.type.lower().startswith(_DATE_TYPES)
        return not is_date and self.type.lower().startswith(_TIME_TYPES)

    @property
    def open_fields(self) -> list[str]:
        """What a person has to fill in."""
        if self.kind == "":
            return [f"{self.name}: kind"]
        if self.kind == "categorical":
            return [f"{self.name}: values"] if self.values is None else []
        if self.kind == "date" and self.by in PART_VALUES:
            return []
        return [f"{self.name}: lower", f"{self.name}: upper"] if self.bounds is None else []

    def to_yaml(self) -> str:
        """Write the line of the column, with a placeholder at what is left open."""
        number_word = "whole" if self.integer else "real"
        if not self.open_fields:
            line = format_feature(self.to_feature())
        elif self.kind == "categorical":
            line = f"[{FILL_IN_MARK}]"
        elif self.kind == "numeric":
            line = f"{FILL_IN_MARK}..{FILL_IN_MARK} {number_word}"
        elif self.kind == "date":
            line = f"{FILL_IN_MARK}..{FILL_IN_MARK} by {self.by}"
        else:
            line = FILL_IN_MARK
        notes = [self.type] if self.type else []
        if self.is_temporal:
            notes.append("times and durations are not read: make numbers of them")
        note = f"  # {', '.join(notes)}" if notes else ""
        return f"  {format_yaml_scalar(self.name)}: {line}{note}\n"


@dataclass(frozen=True)
class SchemaDraft:
    """The columns of a table, without anything read from its values.

    Parameters
    ----------
    columns : tuple of ColumnDraft
    target : str
        The column that holds the classes; empty where that is not known yet.
    classes : tuple, optional
        None where a person has to list them.
    source : str
        What the columns are of.

    Examples
    --------
    >>> import numpy as np
    >>> people = np.zeros(3, dtype=[("age", "i4"), ("smokes", "?"), ("ill", "U3")])
    >>> draft = SchemaDraft.from_frame(people, target="ill")
    >>> draft
    SchemaDraft(2 features, target='ill'; fill in: classes, age: lower, age: upper)
    >>> draft.to_schema(classes=["no", "yes"], bounds={"age": (0, 120)})
    Schema(2 features: age, smokes; target='ill', classes=('no', 'yes'))
    """

    columns: tuple[ColumnDraft, ...]
    target: str = ""
    classes: tuple[Value, ...] | None = None
    source: str = "a table"

    @classmethod
    def from_frame(
        cls, frame: Any, target: str = "", declared: bool | Collection[str] = False
    ) -> SchemaDraft:
        """The columns of a frame in memory, by their types.

        Parameters
        ----------
        frame, target, declared
            As in :meth:`Schema.from_dtypes`.
        """
        columns = []
        for name, column_type in _get_column_types(frame).items():
            is_public = declared if isinstance(declared, bool) else name in declared
            columns.append(
                ColumnDraft.from_type(
                    str(name), column_type, _list_categories(column_type) if is_public else None
                )
            )
        return cls(tuple(columns)).with_target(target)

    @classmethod
    def from_source(cls, source: str, target: str = "", table: str | None = None) -> SchemaDraft:
        """The columns of a file or of a table of a database; no row is read.

        Parameters
        ----------
        source : path, glob or URL
        target : str, optional
        table : str, optional
            Name of the table, for a database URL.
        """
        source_name, column_types = conveniences.read_column_types(source, table)
        columns = tuple(
            ColumnDraft(name) if column_type is None else ColumnDraft.from_type(name, column_type)
            for name, column_type in column_types
        )
        return cls(columns, source=source_name).with_target(target)

    def with_target(self, target: str) -> SchemaDraft:
        """Return a copy with a class column, which is removed from the features.

        Parameters
        ----------
        target : str
            Empty where it is not known yet.
        """
        names = [column.name for column in self.columns]
        if target and target not in names:
            raise SchemaError(f"there is no column {target!r}; there are {', '.join(names)}")
        if repeated_names := sorted({name for name in names if names.count(name) > 1}):
            raise SchemaError(
                f"more than one column is named {', '.join(repeated_names)}; rename one"
            )
        values_by_name = {column.name: column.values for column in self.columns}
        feature_columns = tuple(column for column in self.columns if column.name != target)
        return replace(
            self, columns=feature_columns, target=target, classes=values_by_name.get(target)
        )

    def __repr__(self) -> str:
        open_note = f"; fill in: {', '.join(self.open_fields)}" if self.open_fields else ""
        return f"SchemaDraft({len(self.columns)} features, target={self.target!r}{open_note})"

    @property
    def open_fields(self) -> tuple[str, ...]:
        """Everything that a person has to fill in."""
        open_places = [] if self.target else ["target"]
        open_places += ["classes"] if self.classes is None else []
        return (*open_places, *(place for column in self.columns for place in column.open_fields))

    def to_schema(
        self,
        target: str = "",
        *,
        classes: Sequence[Any] | None = None,
        bounds: Mapping[str, tuple[Any, Any]] | None = None,
        values: Mapping[str, Sequence[Any]] | None = None,
    ) -> Schema:
        """Make the schema, completed with what is known without the data.

        Parameters
        ----------
        target : str, optional
            The column that holds the classes, where it was not named before.
        classes : sequence, optional
        bounds : mapping of name to (lower, upper), optional
            Numbers, or dates as text.
        values : mapping of name to categories, optional
        """
        draft = self.with_target(target) if target else self
        for name in (*(bounds or {}), *(values or {})):
            if name not in [column.name for column in draft.columns]:
                raise SchemaError(f"there is no column {name!r} to fill in")
        columns = []
        for column in draft.columns:
            if column.is_temporal:
                raise SchemaError(
                    f"{column.name}: times and durations ({column.type}) are not supported; drop "
                    "the column, or turn it into numbers, such as hours"
                )
            if column.name in (bounds or {}):
                lower, upper = (bounds or {})[column.name]
                is_number = isinstance(lower, (int, float)) and column.kind != "date"
                kind: FeatureKind = "numeric" if is_number else "date"
                column = replace(column, kind=kind, bounds=(lower, upper))
            if column.name in (values or {}):
                listed_values = tuple((values or {})[column.name])
                column = replace(column, kind="categorical", values=listed_values)
            columns.append(column)
        known_classes = draft.classes if classes is None else tuple(classes)
        draft = replace(draft, columns=tuple(columns), classes=known_classes)
        if draft.open_fields:
            raise SchemaError(
                f"this schema is not finished; fill in: {', '.join(draft.open_fields)}"
            )
        return Schema(
            [column.to_feature() for column in columns], draft.target, known_classes or ()
        )

    def to_yaml(self) -> str:
        """Write a commented YAML file, with a placeholder at everything to be filled in."""
        has_types = any(column.type for column in self.columns)
        yaml_head = YAML_HEAD.format(
            source=self.source,
            types="and types of columns " if has_types else "of columns ",
            mark=FILL_IN_MARK,
            version=VERSION,
            target=format_yaml_scalar(self.target or FILL_IN_MARK),
            classes=format_yaml_list((FILL_IN_MARK,) if self.classes is None else self.classes),
            examples=LINE_EXAMPLES,
        )
        return yaml_head + "".join(column.to_yaml() for column in self.columns)


def read_header(path: str) -> list[str]:
    """Read the column names in the first line of a CSV file, and nothing after it.

    Parameters
    ----------
    path : str
    """
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb", 0) as csv_file:
            first_line = bytearray()
            while first_line.count(b'"') % 2 or not first_line.endswith(
                b"\n"
            ):  # a name may hold a line break
                next_byte = csv_file.read(1)
                if not next_byte or len(first_line) > MAX_HEADER_BYTES:
                    break
                first_line += next_byte
        header_text = first_line.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        raise FormatError(
            f"{path}: line 1 is not text in UTF-8; save it as UTF-8 (spreadsheets call it 'CSV "
            "UTF-8')"
        ) from None
    except (OSError, EOFError) as error:
        raise FormatError(f"{path}: its header cannot be read: {error}") from None
    unquoted_text = re.sub(r'"[^"]*"', "", header_text)
    separator = max("\t;|,", key=unquoted_text.count)
    names = next(csv.reader(io.StringIO(header_text), delimiter=separator), [])
    if not any(name.strip() for name in names):
        raise FormatError(f"{path}: its first line is empty; it must hold the names of the columns")
    if all(re.fullmatch(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", name, re.I) for name in names):
        raise FormatError(
            f"{path}: its first line holds numbers, not names; add a line with the names of the "
            "columns"
        )
    return [name.strip() for name in names]


def _get_column_types(frame: Any) -> dict[str, Any]:
    """Return names and types of the columns of a frame, without reading values."""
    dtype: Any = getattr(frame, "dtype", None)
    if getattr(dtype, "names", None):  # structured NumPy array
        return {name: dtype.fields[name][0] for name in dtype.names}
    if hasattr(frame, "collect_schema"):  # polars, also lazy
        return dict(frame.collect_schema().items())
    if hasattr(frame, "dtypes") and hasattr(frame, "columns"):  # pandas
        return dict(zip(frame.columns, frame.dtypes, strict=True))
    schema = getattr(frame, "schema", frame)  # Arrow
    if hasattr(schema, "names") and hasattr(schema, "types"):
        return dict(zip(schema.names, schema.types, strict=True))
    raise SchemaError(
        f"a {type(frame).__name__} has no names and types of columns; give a data frame of "
        "pandas or polars, an Arrow table or a structured NumPy array"
    )


def _list_categories(type_: Any) -> list[Any] | None:
    categories = getattr(type_, "categories", None)  # pandas and polars
    return None if categories is None else list(categories)


def require_finished(document: dict[str, Any]) -> dict[str, Any]:
    """Require that a draft is completed; drops placeholders that its kinds do not use.

    Parameters
    ----------
    document : dict
        As read from the file.

    Raises
    ------
    SchemaError
        If something is left to fill in; names all of it.
    """
    target = document.get("target")
    if isinstance(target, dict):
        open_places = ["target"] * (FILL_IN_MARK in target)
        open_places += ["classes"] * any(map(_has_mark, target.values()))
    else:
        open_places = [name for name in ("target", "classes") if _has_mark(document.get(name))]
    target_name = next(iter(target), None) if isinstance(target, dict) else target
    entries = document.get("features")
    if isinstance(entries, dict):
        entries = {
            name: line
            for name, line in entries.items()
            if not (
                name == target_name and _has_mark(line)  # listed before anybody had named it
            )
        }
        for name, line in entries.items():
            open_places += [f"{name}: {place}" for place in list_open_parts(line)]
    elif isinstance(entries, list):
        entries = [
            drop_foreign_marks(entry) if isinstance(entry, dict) else entry
            for entry in entries
            if not (
                isinstance(entry, dict)
                and entry.get("name") == target_name
                and any(map(_has_mark, entry.values()))
            )
        ]
        for entry in entries:
            if isinstance(entry, dict):
                open_places += [f"{entry.get('name')}: {place}" for place in list_open_parts(entry)]
    if open_places:
        raise SchemaError(f"this schema is not finished; fill in: {', '.join(open_places)}")
    return {**document, "features": entries} if entries is not None else document


def drop_foreign_marks(entry: dict[str, Any]) -> dict[str, Any]:
    """A feature in the long form, without the placeholders that its kind does not use.

    Parameters
    ----------
    entry : dict
    """
    foreign_keys = {"numeric": ("values",), "categorical": ("lower", "upper")}
    dropped_keys = foreign_keys.get(str(entry.get("kind")), ())
    return {
        key: value for key, value in entry.items() if not (key in dropped_keys and _has_mark(value))
    }


def list_open_parts(line: Any) -> list[str]:
    """What is to be filled in of a column, in one line or in the long form.

    Parameters
    ----------
    line : str, list or dict
    """
    if isinstance(line, dict):
        marked_keys = [key for key, value in line.items() if _has_mark(value)]
        return ["kind"] if "kind" in marked_keys else marked_keys
    if isinstance(line, list):
        return ["values"] if _has_mark(line) else []
    if not isinstance(line, str) or FILL_IN_MARK not in line:
        return []
    if ".." not in line:
        return ["values" if "[" in line else "kind"]
    lower_text, _, upper_text = line.partition("..")
    marked_texts = (("lower", lower_text), ("upper", upper_text))
    return [bound_name for bound_name, text in marked_texts if FILL_IN_MARK in text]


def _has_mark(value: Any) -> bool:
    return value == FILL_IN_MARK or (isinstance(value, list) and FILL_IN_MARK in value)
