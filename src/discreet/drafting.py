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
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from discreet.errors import FormatError, SchemaError
from discreet.schema import MARK, Categorical, Feature, Numeric, Schema, Value

__all__ = ["Column", "SchemaDraft", "finished", "header"]

LONGEST_HEADER = 1 << 20

Kind = Literal["numeric", "categorical", ""]

_NUMBERS = ("int", "uint", "float", "double", "half", "decimal")
_WORDS = ("str", "string", "utf8", "large_string", "varchar", "categor", "enum", "dictionary")
_DATES = ("date", "time", "duration", "interval")

HEAD = """\
# What everybody may know about {source}, written down by somebody who did not look at the values.
# Only names {types}were read. Replace every {mark} by what you know without the data: it becomes
# public. Delete a feature that is not to be used. Then:
#     discreet schema check THIS-FILE

format: discreet/schema
version: 1
target: {target}  # the column that holds the classes
classes: {classes}  # every class that may occur, such as [no, yes]
missing: skip  # how a model treats a missing value; or category: as a value of its own
outliers: error  # what happens to a number outside its bounds; or clip
unseen: error  # what happens to a category that is not listed; or other
missing_tokens: []  # spellings of missing, such as ["?"]

features:
"""


@dataclass(frozen=True)
class Column:
    """A column of a draft, as far as it is known.

    Parameters
    ----------
    name : str
    kind : {"numeric", "categorical", ""}
        Empty where the type does not say.
    integer : bool, default False
        Whether only whole numbers occur.
    type : str
        As the table calls it; empty for a CSV file.
    values : tuple, optional
        Categories; None where a person has to list them.
    bounds : pair of float, optional
        None where a person has to write them.
    optional : bool, default True
        Whether it may be missing.
    """

    name: str
    kind: Kind = ""
    integer: bool = False
    type: str = ""
    values: tuple[Value, ...] | None = None
    bounds: tuple[float, float] | None = None
    optional: bool = True

    @classmethod
    def of_type(cls, name: str, type_: Any, categories: Iterable[Any] | None = None) -> Column:
        """Make a column from a type of NumPy, pandas, polars, Arrow or a database.

        Parameters
        ----------
        name : str
        type_ : dtype
        categories : iterable, optional
            Of a categorical type, where they are public.
        """
        told = str(type_).lstrip("!")
        found = told.lower()
        if found.startswith("bool"):  # whatever the values are, there are two of them
            return cls(name, "categorical", type=told, values=(False, True))
        if found.startswith(_NUMBERS):
            return cls(name, "numeric", found.startswith(("int", "uint")), told)
        if found.startswith((*_WORDS, "<u", "|s")):
            values = None if categories is None else tuple(categories)
            return cls(name, "categorical", type=told, values=values)
        return cls(name, type="" if found == "object" else told)

    def feature(self) -> Feature:
        """Return the feature; raises if something is left open."""
        if self.kind == "categorical" and self.values is not None:
            return Categorical(self.name, self.values, self.optional)
        if self.kind == "numeric" and self.bounds is not None:
            return Numeric(self.name, *self.bounds, self.integer, self.optional)
        raise SchemaError(f"this schema is not finished; fill in: {', '.join(self.open)}")

    @property
    def dated(self) -> bool:
        """Whether it holds dates or durations, which features do not support."""
        return self.type.lower().startswith(_DATES)

    @property
    def open(self) -> list[str]:
        """What a person has to fill in."""
        if self.kind == "":
            return [f"{self.name}: kind"]
        if self.kind == "categorical":
            return [f"{self.name}: values"] if self.values is None else []
        return [f"{self.name}: lower", f"{self.name}: upper"] if self.bounds is None else []

    def to_yaml(self) -> str:
        """Write the column as an entry of the list of features."""
        lines = [f"- name: {_scalar(self.name)}" + (f"  # {self.type}" if self.type else "")]
        if self.dated:
            lines.append("  # dates are not supported: make numbers or text of them, or delete it")
        if self.kind == "":
            lines.append(f"  kind: {MARK}  # numeric or categorical, and delete what is not of it")
        else:
            lines.append(f"  kind: {self.kind}")
        if self.kind != "categorical":
            bounds = self.bounds or (MARK, MARK)
            lines.append(f"  lower: {_scalar(bounds[0])}  # bounds that you know, such as 0")
            lines.append(f"  upper: {_scalar(bounds[1])}")
            whole = str(self.integer).lower()
            lines.append(f"  integer: {whole}  # whether only whole numbers occur")
        if self.kind != "numeric":
            values = _listed(self.values)
            lines.append(f"  values: {values}  # every value that may occur, such as [low, high]")
        missing = str(self.optional).lower()
        lines.append(f"  optional: {missing}  # false, if it is never missing")
        return "".join(f"  {line}\n" for line in lines)


@dataclass(frozen=True)
class SchemaDraft:
    """The columns of a table, without anything read from its values.

    Parameters
    ----------
    columns : tuple of Column
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
    >>> draft = SchemaDraft.of_frame(people, target="ill")
    >>> draft
    SchemaDraft(2 features, target='ill'; fill in: classes, age: lower, age: upper)
    >>> draft.finished(classes=["no", "yes"], bounds={"age": (0, 120)})
    Schema(2 features: age, smokes; target='ill', classes=('no', 'yes'))
    """

    columns: tuple[Column, ...]
    target: str = ""
    classes: tuple[Value, ...] | None = None
    source: str = "a table"

    @classmethod
    def of_frame(
        cls, frame: Any, target: str = "", declared: bool | Collection[str] = False
    ) -> SchemaDraft:
        """The columns of a frame in memory, by their types.

        Parameters
        ----------
        frame, target, declared
            As in :meth:`Schema.from_dtypes`.
        """
        columns = []
        for name, type_ in _types(frame).items():
            public = declared if isinstance(declared, bool) else name in declared
            columns.append(Column.of_type(str(name), type_, _categories(type_) if public else None))
        return cls(tuple(columns)).aimed(target)

    @classmethod
    def of_source(cls, source: str, target: str = "", table: str | None = None) -> SchemaDraft:
        """The columns of a file or of a table of a database; no row is read.

        Parameters
        ----------
        source : path, glob or URL
        target : str, optional
        table : str, optional
            Name of the table, for a database URL.
        """
        from discreet.ledger import without_credentials
        from discreet.tables.engines import files_of, kind_of, open_table

        if kind_of(source) == "csv":
            columns = [Column(name) for name in header(files_of(source)[0])]
        else:
            types = open_table(source, table=table).schema()
            columns = [Column.of_type(name, type_) for name, type_ in types.items()]
        whose = os.path.basename(source) if "://" not in source else without_credentials(source)
        return cls(tuple(columns), source=whose).aimed(target)

    def aimed(self, target: str) -> SchemaDraft:
        """Return a copy with a class column, which is removed from the features.

        Parameters
        ----------
        target : str
            Empty where it is not known yet.
        """
        names = [column.name for column in self.columns]
        if target and target not in names:
            raise SchemaError(f"there is no column {target!r}; there are {', '.join(names)}")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise SchemaError(f"more than one column is named {', '.join(twice)}; rename one")
        known = {column.name: column.values for column in self.columns}
        kept = tuple(column for column in self.columns if column.name != target)
        return replace(self, columns=kept, target=target, classes=known.get(target))

    def __repr__(self) -> str:
        left = f"; fill in: {', '.join(self.open)}" if self.open else ""
        return f"SchemaDraft({len(self.columns)} features, target={self.target!r}{left})"

    @property
    def open(self) -> tuple[str, ...]:
        """Everything that a person has to fill in."""
        places = [] if self.target else ["target"]
        places += ["classes"] if self.classes is None else []
        return (*places, *(place for column in self.columns for place in column.open))

    def finished(
        self,
        target: str = "",
        *,
        classes: Sequence[Any] | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        values: Mapping[str, Sequence[Any]] | None = None,
    ) -> Schema:
        """Make the schema, completed with what is known without the data.

        Parameters
        ----------
        target : str, optional
            The column that holds the classes, where it was not named before.
        classes : sequence, optional
        bounds : mapping of name to (lower, upper), optional
        values : mapping of name to categories, optional
        """
        draft = self.aimed(target) if target else self
        for name in (*(bounds or {}), *(values or {})):
            if name not in [column.name for column in draft.columns]:
                raise SchemaError(f"there is no column {name!r} to fill in")
        columns = []
        for column in draft.columns:
            if column.dated:
                raise SchemaError(
                    f"{column.name}: dates and durations ({column.type}) are not supported; drop "
                    "the column, or turn it into numbers, such as days since a day that is public"
                )
            if column.name in (bounds or {}):
                lower, upper = (bounds or {})[column.name]
                column = replace(column, kind="numeric", bounds=(lower, upper))
            if column.name in (values or {}):
                listed = tuple((values or {})[column.name])
                column = replace(column, kind="categorical", values=listed)
            columns.append(column)
        known = draft.classes if classes is None else tuple(classes)
        draft = replace(draft, columns=tuple(columns), classes=known)
        if draft.open:
            raise SchemaError(f"this schema is not finished; fill in: {', '.join(draft.open)}")
        return Schema([one.feature() for one in columns], draft.target, known or ())

    def to_yaml(self) -> str:
        """Write a commented YAML file, with a placeholder at everything to be filled in."""
        typed = any(column.type for column in self.columns)
        head = HEAD.format(
            source=self.source,
            types="and types of columns " if typed else "of columns ",
            mark=MARK,
            target=_scalar(self.target or MARK),
            classes=_listed(self.classes),
        )
        return head + "".join(column.to_yaml() for column in self.columns)


def header(path: str) -> list[str]:
    """Read the column names in the first line of a CSV file, and nothing after it.

    Parameters
    ----------
    path : str
    """
    try:
        with gzip.open(path) if path.endswith(".gz") else Path(path).open("rb", 0) as file:
            line = bytearray()
            while line.count(b'"') % 2 or not line.endswith(b"\n"):  # a name may hold a line break
                more = file.read(1)
                if not more or len(line) > LONGEST_HEADER:
                    break
                line += more
        text = line.decode("utf-8-sig").strip("\r\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: its header cannot be read as UTF-8: {error}") from None
    bare = re.sub(r'"[^"]*"', "", text)
    separator = max("\t;|,", key=bare.count)
    names = next(csv.reader(io.StringIO(text), delimiter=separator), [])
    if not any(name.strip() for name in names):
        raise FormatError(f"{path}: its first line is empty; it must hold the names of the columns")
    if all(re.fullmatch(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", name, re.I) for name in names):
        raise FormatError(
            f"{path}: its first line holds numbers, not names; add a line with the names of the "
            "columns"
        )
    return [name.strip() for name in names]


def _types(frame: Any) -> dict[str, Any]:
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


def _categories(type_: Any) -> list[Any] | None:
    found = getattr(type_, "categories", None)  # pandas and polars
    return None if found is None else list(found)


def _scalar(value: Any) -> str:
    """Format a word or number so that YAML reads it back."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z_][\w.-]*( [\w.-]+)*", value)
    if plain and value.lower() not in ("true", "false", "null", "inf", "nan"):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _listed(values: Sequence[Any] | None) -> str:
    listed = (MARK,) if values is None else values
    return f"[{', '.join(_scalar(value) for value in listed)}]"


def finished(whole: dict[str, Any]) -> dict[str, Any]:
    """Require that a draft is completed; drops placeholders that its kinds do not use.

    Parameters
    ----------
    whole : dict
        As read from the file.

    Raises
    ------
    SchemaError
        If something is left to fill in; names all of it.
    """
    places = [name for name in ("target", "classes") if _marked(whole.get(name))]
    kept: list[Any] = []
    entries = whole.get("features")
    for one in entries if isinstance(entries, list) else []:
        if not isinstance(one, dict):
            kept.append(one)
            continue
        if one.get("name") == whole.get("target") and any(map(_marked, one.values())):
            continue  # the target, which was listed before anybody had named it
        foreign = {"numeric": ("values",), "categorical": ("lower", "upper")}
        drop = foreign.get(str(one.get("kind")), ())
        one = {key: value for key, value in one.items() if not (key in drop and _marked(value))}
        left = [key for key, value in one.items() if _marked(value)]
        places += [f"{one.get('name')}: {key}" for key in (["kind"] if "kind" in left else left)]
        kept.append(one)
    if places:
        raise SchemaError(f"this schema is not finished; fill in: {', '.join(places)}")
    return {**whole, "features": kept} if isinstance(entries, list) else whole


def _marked(value: Any) -> bool:
    return value == MARK or (isinstance(value, list) and MARK in value)
