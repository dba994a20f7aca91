"""Dates of any engine as whole hours since 1970, by the one pattern of dates.

Text is read by its digits, not by the engine's own idea of a date, which would depend on settings
and refuse a whole query for one row. Points in time with a zone are in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from discreet.errors import SchemaError
from discreet.schema.cells import Cells
from discreet.schema.dates import (
    DATE_PATTERN,
    EPOCH,
    PART_VALUES,
    SPILL_PATTERN,
    Date,
    DatePart,
    Part,
    compute_part,
    read_hour,
)
from discreet.schema.schema import Feature, Numeric
from discreet.tables.columns import (
    compare_bytewise,
    is_among,
    make_double,
    make_group_key,
    read_numbers,
)

__all__ = [
    "INVALID_SUFFIX",
    "add_date_columns",
    "make_cell_key",
    "read_feature_numbers",
    "select_dates",
    "spell_parts",
]

HOURS_PER_DAY = 24.0
"""Hours of any day: the zones of points in time are those of UTC."""

UNREACHED_ROWS = 1 << 62
"""More rows than any table has."""

PART_KEYS = {
    "weekday": ("1970-01-", 5, ""),  # a Monday
    "month of year": ("1970-", 1, "-01"),
    "hour": ("1970-01-01 ", 0, ":00"),
}
"""What rows are grouped by: text, the number of the first cell in two digits, and text."""

INVALID_SUFFIX = " is not a date"
"""What is appended to the name of a column of dates for the text in it that is not a date."""


def add_date_columns(table: Any, features: Iterable[Feature], tokens: Sequence[str]) -> Any:
    """Return a table whose columns of dates are read, in steps that name what is used twice.

    Of a :class:`~discreet.Date` its column holds days since the first as doubles; of a
    :class:`~discreet.DatePart` text, a date for each cell. NULL is a missing value; what is not a
    date is text in a further column, or, of a part, the text itself.

    Parameters
    ----------
    table : ibis.Table
    features : iterable of Feature
        Those that are not dates are left as they are.
    tokens : sequence of str
        Spellings of missing.
    """
    dates_by_name = {
        feature.name: feature for feature in features if isinstance(feature, (Date, DatePart))
    }
    if not dates_by_name:
        return table
    if table.get_backend().name == "sqlite":
        numbers: dict[str, Any] = {}
        for name, feature in dates_by_name.items():
            text = _read_names(compare_bytewise(table[name], name), feature)
            text = _drop_missing(text, tokens)
            by = feature.by if isinstance(feature, DatePart) else "day"
            numbers |= {_name(name, "n"): _make_python_reader(by)(text), _name(name, "t"): text}
        rows = table.mutate(**numbers)
    else:
        rows = _number_moments(_read_moments(table, dates_by_name, tokens), dates_by_name)
    read_columns = {}
    for name, feature in dates_by_name.items():
        invalid_text = rows[_name(name, "n")].isnull().ifelse(rows[_name(name, "t")], _null_text())
        if isinstance(feature, Date):
            first_day = make_double(float((feature.first - EPOCH).days))
            read_columns[name] = rows[_name(name, "n")] - first_day
            read_columns[name + INVALID_SUFFIX] = invalid_text
        else:
            read_columns[name] = _make_part_key(rows[_name(name, "n")], feature.by, invalid_text)
    return rows.mutate(**read_columns)


def read_feature_numbers(table: Any, feature: Numeric, tokens: Sequence[str]) -> tuple[Any, Any]:
    """The numbers of a feature, and text that is not one, or None; of a date, its days.

    Parameters
    ----------
    table : ibis.Table
        With the columns of :func:`add_date_columns`.
    feature : Numeric
    tokens : sequence of str
        Spellings of missing.
    """
    if isinstance(feature, Date):
        return table[feature.name], table[feature.name + INVALID_SUFFIX]
    return read_numbers(table, feature.name, tokens)


def make_cell_key(column: Any, cells: Cells) -> Any:
    """A column to group by, with one key for every public cell; of parts of dates as it is.

    Parameters
    ----------
    column : ibis.Column
    cells : Cells
    """
    return column if isinstance(cells.feature, DatePart) else make_group_key(column, cells)


def select_dates(table: Any, name: str) -> Any:
    """A column of dates as a model reads it; of SQLite its text, whatever type is declared.

    Parameters
    ----------
    table : ibis.Table
    name : str
        Of the column.
    """
    is_text = table.get_backend().name == "sqlite"
    return compare_bytewise(table[name], name) if is_text else table[name]


def spell_parts(column: Any, feature: DatePart) -> Any:
    """The public text of each part of dates; NULL and what is not a date as they are.

    Parameters
    ----------
    column : ibis.Column
        Of :func:`add_date_columns`.
    feature : DatePart
    """
    return column.cases(*_list_part_keys(feature), else_=column)


def _list_part_keys(feature: DatePart) -> list[tuple[str, str]]:
    """What rows are grouped by, with the name of each cell."""
    before, first_number, after = PART_KEYS[feature.by]
    return [
        (f"{before}{number:02}{after}", value)
        for number, value in enumerate(PART_VALUES[feature.by], first_number)
    ]


def _read_names(text: Any, feature: Date | DatePart) -> Any:
    """Text in which a date stands for the name of each cell, which is an answer, too."""
    if isinstance(feature, Date):
        return text
    return text.cases(*((value, key) for key, value in _list_part_keys(feature)), else_=text)


def _null_text() -> Any:
    import ibis

    return ibis.null("string")


def _make_part_key(index: Any, by: Part, invalid_text: Any) -> Any:
    """A date in the cell of an index, by its digits."""
    import ibis

    before, first_number, after = PART_KEYS[by]
    digits = (index.cast("int64") + first_number).cast("string").lpad(2, "0")
    return ibis.coalesce(ibis.literal(before).concat(digits, ibis.literal(after)), invalid_text)


def _number_moments(rows: Any, features: Mapping[str, Date | DatePart]) -> Any:
    """Days since 1970, or cells of parts, in columns that end in .n."""
    days = {
        _name(name, "e"): rows[_name(name, "d")].epoch_days().cast("float64")
        for name, feature in features.items()
        if feature.by not in ("hour", "month of year")
    }
    rows = rows.mutate(**days) if days else rows
    numbers = {}
    for name, feature in features.items():
        if feature.by == "hour":
            numbers[_name(name, "n")] = rows[_name(name, "h")]
        elif feature.by == "month of year":
            numbers[_name(name, "n")] = (rows[_name(name, "d")].month() - 1).cast("float64")
        elif feature.by == "weekday":  # 1 January 1970 was a Thursday
            shifted_days, week = rows[_name(name, "e")] + make_double(3.0), make_double(7.0)
            numbers[_name(name, "n")] = shifted_days - week * _floor(shifted_days / week)
        else:
            numbers[_name(name, "n")] = rows[_name(name, "e")]
    return rows.mutate(**numbers)


def _read_moments(
    table: Any, features: Mapping[str, Date | DatePart], tokens: Sequence[str]
) -> Any:
    """Days as dates (.d) and hours as doubles (.h), NULL where missing or invalid; text (.t)."""
    text_features = {
        name: feature for name, feature in features.items() if table[name].type().is_string()
    }
    rows = _read_texts(table, text_features, tokens) if text_features else table
    typed_columns: dict[str, Any] = {}
    for name in features:
        if name not in text_features:
            day, hour, text = _read_typed(table[name], name)
            typed_columns |= {_name(name, "d"): day, _name(name, "h"): hour, _name(name, "t"): text}
    return rows.mutate(**typed_columns) if typed_columns else rows


def _read_typed(column: Any, name: str) -> tuple[Any, Any, Any]:
    """Day, hour and text of a column of dates, points in time or something else."""
    import ibis

    column_type = column.type()
    text, day, hour = column.cast("string"), ibis.null("date"), ibis.null("float64")
    if column_type.is_timestamp() or column_type.is_date():
        # with a zone in UTC: tables are refused in sessions that have another one
        moment = column
        day = moment.date() if column_type.is_timestamp() else moment
        is_within = (day >= ibis.date(1, 1, 1)) & (day <= ibis.date(9999, 12, 31))
        moment = is_within.ifelse(moment, ibis.null(moment.type()))
        day = moment.date() if column_type.is_timestamp() else moment
        hour = moment.hour() if column_type.is_timestamp() else moment.isnull().ifelse(None, 0)
        hour = hour.cast("float64")
    elif column_type.is_floating():
        text = column.isnan().ifelse(_null_text(), text)
    elif not (column_type.is_numeric() or column_type.is_boolean() or column_type.is_null()):
        raise SchemaError(f"{name}: a column of type {column_type} does not hold dates")
    return day, hour, text


def _read_texts(rows: Any, features: Mapping[str, Date | DatePart], tokens: Sequence[str]) -> Any:
    """Day and hour of columns of text, by the places of the digits of what is a date."""
    import ibis

    def trim(get: Callable[[str], Any]) -> dict[str, Any]:
        is_date = get("t").re_search(DATE_PATTERN) & ~get("t").re_search(SPILL_PATTERN)
        trimmed = get("t").re_extract(r"([0-9].*[0-9Z])", 1)
        return {"v": is_date.ifelse(trimmed, _null_text())}

    def split(get: Callable[[str], Any]) -> dict[str, Any]:
        zone = get("v").substr(16)  # after hours and minutes
        return {
            "day": get("v").substr(0, 10).cast("date"),
            "hour": (get("v").length() > 10).ifelse(get("v").substr(11, 2), "0").cast("float64"),
            "zone": zone,
            "has": zone.contains("+") | zone.contains("-"),
        }

    def read_zone(get: Callable[[str], Any]) -> dict[str, Any]:
        digits = get("zone").re_extract(r"[-+]([0-9:]+)", 1).replace(":", "").concat("00")
        return {
            "zone": get("has").ifelse(digits, "0000"),
            "west": get("zone").contains("-"),
            "minutes": get("has").ifelse(get("v").substr(14, 2), "0").cast("float64"),
        }

    def move(get: Callable[[str], Any]) -> dict[str, Any]:
        zone_minutes = get("zone").substr(0, 2).cast("float64") * make_double(60.0)
        zone_minutes += get("zone").substr(2, 2).cast("float64")
        minutes = get("west").ifelse(get("minutes") + zone_minutes, get("minutes") - zone_minutes)
        return {"hour": get("hour") + _floor(minutes / make_double(60.0))}

    def wrap(get: Callable[[str], Any]) -> dict[str, Any]:
        one_day, day_hours = ibis.interval(days=1), make_double(HOURS_PER_DAY)
        day = ibis.cases(
            (get("hour") < make_double(0.0), (get("day") - one_day).cast("date")),
            (get("hour") >= day_hours, (get("day") + one_day).cast("date")),
            else_=get("day"),
        )
        hour = get("hour") - day_hours * _floor(get("hour") / day_hours)
        return {"d": day, "h": get("v").isnull().ifelse(ibis.null("float64"), hour)}

    texts = {
        _name(name, "t"): _read_names(compare_bytewise(rows[name], name), feature)
        for name, feature in features.items()
    }
    rows = rows.mutate(**{key: _drop_missing(text, tokens) for key, text in texts.items()})
    for step in (trim, split, read_zone, move, wrap):
        columns: dict[str, Any] = {}
        for name in features:
            step_columns = step(partial(_get_column, rows, name))
            columns |= {_name(name, suffix): column for suffix, column in step_columns.items()}
        rows = _keep_step(rows.mutate(**columns))
    return rows


def _keep_step(rows: Any) -> Any:
    """Rows whose columns are computed once: PostgreSQL writes a step into the next without a limit.

    Every use of a column would then compute it again, and with it all columns that it is made of.
    """
    return rows.limit(UNREACHED_ROWS) if rows.get_backend().name == "postgres" else rows


def _name(name: str, suffix: str) -> str:
    """Name of a column in which a step of reading a column is kept."""
    return f"{name} (discreet, {suffix})"


def _get_column(rows: Any, name: str, suffix: str) -> Any:
    return rows[_name(name, suffix)]


def _drop_missing(text: Any, tokens: Sequence[str]) -> Any:
    import ibis

    return is_among(text, ["", *tokens]).ifelse(ibis.null("string"), text)


def _floor(number: Any) -> Any:
    """Round doubles down, to doubles."""
    return number.floor().cast("float64")


@cache
def _make_python_reader(by: Part | Literal["day"]) -> Any:
    import ibis

    def read_date(text: str) -> float:
        hour = read_hour(text)
        if hour is None:
            return None  # type: ignore[return-value]
        return float(hour // 24 if by == "day" else compute_part(by, np.array([hour]))[0])

    read_date.__name__ = f"discreet_{by.replace(' ', '_')}"
    return ibis.udf.scalar.python(read_date, signature=(("string",), "float64"))
