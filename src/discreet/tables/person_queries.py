"""At most N rows of each person, by a window in the query of any engine.

The order of a person's rows is that of :mod:`discreet.tables.contributions`; where there is a
schema, every engine uses the rows that would be used in memory. Without a schema the content of a
row is the text that the engine itself writes, so that engines may choose differently; the order
still follows from the person's own rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, reduce
from typing import Any

from discreet.schema.cells import Cells
from discreet.schema.dates import Date, DatePart
from discreet.schema.schema import Numeric, Schema, format_value
from discreet.tables.columns import (
    _make_engine_function,
    _parse_float,
    compare_bytewise,
    is_absent_number,
    is_among,
    make_double,
    make_group_key,
)
from discreet.tables.contributions import (
    MAX_EXACT_ID,
    SEPARATOR,
    WEIGHT_STEPS,
    ContributionBound,
    digest_text,
    find_unused_name,
    make_id_error,
    make_missing_id_error,
)
from discreet.tables.date_expressions import add_date_columns, read_feature_numbers, spell_parts
from discreet.tables.engines import fetch_arrow, handle_read_errors, hold_rows, open_rows
from discreet.tables.frames import make_unknown_text
from discreet.tables.queries import clip_number

__all__ = ["limit_person_rows", "open_person_rows"]


def limit_person_rows(
    table: Any,
    bound: ContributionBound,
    columns: Iterable[str],
    schema: Schema | None = None,
    *,
    tokens: Sequence[str] = (),
    weight_name: str | None = None,
) -> Any:
    """The rows of a table, at most ``bound.rows_per_person`` of each person.

    One query looks whether all ids are valid; the rest is a window in the queries to come.

    Parameters
    ----------
    table : ibis.Table
        Holds the column of ids.
    bound : ContributionBound
    columns : iterable of str
        All columns that will be used; their content decides which rows are.
    schema : Schema, optional
        How the columns are read. Without it, engines may use different rows of a person.
    tokens : sequence of str
        Spellings of a missing id, where there is no schema that lists them.
    weight_name : str, optional
        Add a column of this name: the weight of a row in steps of 1/1024, so that the rows of a
        person weigh at most 1 together.

    Returns
    -------
    ibis.Table
        The columns that will be used, without the ids.

    Raises
    ------
    SchemaError
        If ids are missing where they must not be, or are of a type that does not tell persons
        apart.
    """
    import ibis

    column_names = list(dict.fromkeys(columns))
    stored_names = {name: name for name in column_names}
    if schema is not None:
        table, stored_names = _read_dates(table, schema, column_names)
    person_key = _make_person_key(table, bound, tokens if schema is None else schema.missing_tokens)
    # what is used more than once has a name of its own: queries that repeat it grow too large
    count = len(column_names)
    parts = [f"row_{part}{k}" for part in ("value", "text", "order") for k in range(count)]
    added_names = ("person_key", *parts, "person_row", "person_weight")
    names = {name: find_unused_name(name, table.columns) for name in added_names}
    values = {
        names[f"row_value{k}"]: _read_value(table, name, schema)
        for k, name in enumerate(column_names)
    }
    rows = table.mutate(**{names["person_key"]: person_key}, **values)
    content: dict[str, Any] = {}
    for k, name in enumerate(column_names):
        text, order = _spell_content(rows[names[f"row_value{k}"]], name, schema)
        content |= {names[f"row_text{k}"]: text, names[f"row_order{k}"]: order}
    rows = rows.mutate(**content)
    person_key = rows[names["person_key"]]
    texts, orders = (
        [rows[names[f"row_{part}{k}"]] for k in range(count)] for part in ("text", "order")
    )
    row_text = reduce(
        lambda text, part: text.concat(SEPARATOR, part), texts, person_key.fill_null("")
    )
    window = ibis.window(group_by=person_key, order_by=[_digest(row_text), *orders])
    added_columns = {names["person_row"]: ibis.row_number().over(window)}
    if weight_name is not None:
        row_count = ibis.least(
            rows.count().over(ibis.window(group_by=person_key)), bound.rows_per_person
        )
        weight = (ibis.literal(WEIGHT_STEPS) / row_count).floor()
        added_columns[names["person_weight"]] = person_key.isnull().ifelse(WEIGHT_STEPS, weight)
    rows = rows.mutate(**added_columns)
    # a row without an id is a person, where it is not refused
    is_used = rows[names["person_row"]] < bound.rows_per_person
    rows = rows.filter(is_used | rows[names["person_key"]].isnull())
    used_columns = {name: rows[stored_name] for name, stored_name in stored_names.items()}
    if weight_name is not None:
        used_columns[weight_name] = rows[names["person_weight"]].cast("float64")
    return rows.select(**used_columns)


def open_person_rows(
    source: Any,
    bound: ContributionBound,
    schema: Schema,
    *,
    table: str | None = None,
    weight_name: str | None = None,
) -> Any:
    """Open a table with at most ``bound.rows_per_person`` rows of each person.

    Parameters
    ----------
    source : path, glob, URL, Arrow, ibis or Spark table
    bound : ContributionBound
    schema : Schema
        Its columns are used, and the class.
    table : str, optional
        Name of the table, for a database URL.
    weight_name : str, optional
        As for :func:`limit_person_rows`.
    """
    bound.check_schema(schema)
    columns = [*schema.names, schema.target]
    with handle_read_errors(source):
        rows = open_rows(source, [*columns, bound.person], table=table)
        return hold_rows(limit_person_rows(rows, bound, columns, schema, weight_name=weight_name))


def _make_person_key(table: Any, bound: ContributionBound, tokens: Sequence[str]) -> Any:
    """Ids as text that all engines share, NULL where they are missing; invalid ids are refused."""
    import ibis

    column = table[bound.person]
    column_type = column.type()
    invalid = ibis.literal(False)
    if column_type.is_integer():
        key = column.cast("string")
    elif column_type.is_floating():
        column = is_absent_number(column).ifelse(ibis.null("float64"), column.cast("float64"))
        # what is too large for an integer is not cast
        is_exact = column.abs() < make_double(float(MAX_EXACT_ID))
        number = ibis.cases((is_exact, column), else_=make_double(0.0))
        invalid = column.notnull() & (~is_exact | (number != number.floor().cast("float64")))
        key = column.isnull().ifelse(ibis.null("string"), number.cast("int64").cast("string"))
    elif column_type.is_decimal() and not column_type.scale:
        key = column.cast("string")
    elif column_type.is_string() or column_type.is_uuid():
        text = compare_bytewise(column, bound.person)
        key = is_among(text, ["", *tokens]).ifelse(ibis.null("string"), text)
    else:
        raise make_id_error(bound.person, f"its values are of type {column_type}")
    _check_ids(table, bound, key, invalid)
    return key


def _check_ids(table: Any, bound: ContributionBound, key: Any, invalid: Any) -> None:
    """Refuse missing and invalid ids."""
    problems = table.select(
        missing=(key.isnull() & ~invalid).ifelse(1, 0), invalid=invalid.ifelse(1, 0)
    )
    result = fetch_arrow(
        problems.agg(missing=problems.missing.max(), invalid=problems.invalid.max())
    ).to_pylist()[0]
    if result["invalid"]:
        raise make_id_error(bound.person, "an id is a number with a fraction, or too large")
    if result["missing"] and bound.missing_person == "error":
        raise make_missing_id_error(bound.person)


def _read_dates(
    table: Any, schema: Schema, column_names: Sequence[str]
) -> tuple[Any, dict[str, str]]:
    """A table whose columns of dates are read, and in which column each is as it is stored."""
    features = [feature for feature in schema.features if feature.name in column_names]
    stored_names, all_names = {name: name for name in column_names}, list(table.columns)
    for feature in features:
        if isinstance(feature, (Date, DatePart)):
            stored_names[feature.name] = find_unused_name(f"{feature.name} (stored)", all_names)
            all_names.append(stored_names[feature.name])
    copies = {
        stored_name: table[name]
        for name, stored_name in stored_names.items()
        if stored_name != name
    }
    if copies:
        table = add_date_columns(table.mutate(**copies), features, schema.missing_tokens)
    return table, stored_names


def _read_value(table: Any, name: str, schema: Schema | None) -> Any:
    """What a row is, in a column: its number, its text, or the key of its cell."""
    if schema is None:
        return compare_bytewise(table[name], name).fill_null("")
    feature = None if name == schema.target else schema[name]
    if isinstance(feature, Numeric):
        return read_feature_numbers(table, feature, schema.missing_tokens)[0]
    if isinstance(feature, DatePart):
        return table[name]
    return make_group_key(table[name], Cells.from_schema(schema, name))


def _spell_content(value: Any, name: str, schema: Schema | None) -> tuple[Any, Any]:
    """What is digested of a value, and by what rows of the same digest are ordered."""
    import ibis

    if schema is None:
        return value, value
    feature = None if name == schema.target else schema[name]
    if isinstance(feature, Numeric):
        text = ibis.literal("")
        if feature.is_bounded:
            text = clip_number(value, feature, on_grid=True).cast("string").fill_null("")
        return text, clip_number(value, feature, on_grid=False).fill_null(make_double(0.0))
    if isinstance(feature, DatePart):
        text = spell_parts(value, feature).fill_null("")
    else:
        text = _spell_cells(value, Cells.from_schema(schema, name))
    return text, text


def _spell_cells(key: Any, cells: Cells) -> Any:
    """The public text of each cell, whatever the type of the column; missing is empty."""
    import ibis

    unknown_text = ibis.literal(make_unknown_text(cells))
    text = key.cast("string")
    if key.type().is_boolean():
        text = key.ifelse(*(_spell_truth(cells, truth) for truth in (True, False)))
    elif key.type().is_floating():
        branches = [
            (key == make_double(number), ibis.literal(spelling))
            for spelling in cells.spellings
            if (number := _parse_float(spelling)) is not None
        ]
        text = ibis.cases(*branches, else_=unknown_text) if branches else unknown_text
    public_text = is_among(text, cells.spellings).ifelse(text, unknown_text)
    return key.isnull().ifelse("", public_text)


def _spell_truth(cells: Cells, truth: bool) -> str:
    """How the schema spells a truth value, if it does."""
    truth_texts = (format_value(truth), str(truth), str(int(truth)))
    return next((text for text in truth_texts if text in cells.spellings), truth_texts[0])


@cache
def _make_digest_function() -> Any:
    """MD5 in Python, for engines that have none."""
    import ibis

    def discreet_digest(text: str) -> str:
        """The digest of a text."""
        return digest_text(text)

    return ibis.udf.scalar.python(discreet_digest, signature=(("string",), "string"))


def _digest(text: Any) -> Any:
    """The MD5 of text in hexadecimal digits."""
    if text.get_backend().name == "sqlite":
        return _make_digest_function()(text)
    return _make_engine_function("md5", "string", "string", False)(text)
