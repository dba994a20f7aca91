"""Dates as features: days between public bounds, or the weekday, month or hour alone.

A value is read to the hour. With a time zone it is moved to UTC; without one it is taken as it is
written. One pattern says in every engine and in the browser which text is a date; the cell of a
value follows from its hour by whole numbers, which all of them compute alike.

>>> from discreet import Date, DatePart
>>> joined = Date("joined", "2015-01-01", "2026-12-31", by="month")
>>> joined.format_bin(0, 59)
'2015-01 to 2015-02'
>>> DatePart("visit", by="weekday").values[:2]
('Monday', 'Tuesday')
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.errors import SchemaError
from discreet.schema.schema import Categorical, Feature, Numeric, Schema, abbreviate_value

__all__ = [
    "DATE_PATTERN",
    "Date",
    "DatePart",
    "compute_part",
    "make_date_feature",
    "make_moments",
    "make_not_a_date_error",
    "read_hour",
    "refuse_dates",
]

DateUnit = Literal["day", "month", "year"]
Part = Literal["weekday", "month of year", "hour"]

PART_VALUES: dict[str, tuple[str, ...]] = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month of year": (
        *("January", "February", "March", "April", "May", "June", "July", "August"),
        *("September", "October", "November", "December"),
    ),
    "hour": tuple(f"{hour:02}:00" for hour in range(24)),
}
"""The public values of each part of a date, in the order of its cells."""

PART_HOURS: dict[str, tuple[int, ...]] = {
    "weekday": tuple(24 * (4 + weekday) for weekday in range(7)),  # 5 January 1970 was a Monday
    "month of year": tuple(24 * 31 * month for month in range(12)),
    "hour": tuple(range(24)),
}
"""An hour since 1970 with each of these values."""

YEAR = r"([0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"
LEAP_YEAR = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
MONTH_AND_DAY = (
    r"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))"
)
ZONE = r"(Z|[-+]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
TIME = rf"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?{ZONE}?"
DATE_PATTERN = rf"^[\t-\r ]*({YEAR}-{MONTH_AND_DAY}|{LEAP_YEAR}-02-29)({TIME})?[\t-\r ]*$"
"""Dates of ISO 8601 that exist, perhaps with a time and a zone, for every client and engine."""

SPILL_PATTERN = (
    r"(0001-01-01[T ][0-9:.]*[+](0[1-9]|[12][0-9]|00:?(0[1-9]|[1-5]))|9999-12-31[T ][0-9:.]*-)"
)
"""Dates that their zone could move out of the years 1 to 9999, which are refused."""

_DATE_REGEX = re.compile(DATE_PATTERN.removesuffix("$") + r"\Z")

EPOCH = date(1970, 1, 1)
MIN_HOUR = 24 * (date.min - EPOCH).days
"""First hour of the year 1, since 1970."""
MAX_HOUR = 24 * (date.max - EPOCH).days + 23
"""Last hour of the year 9999."""

DATE_HINT = (
    "dates are written like 2019-03-04 or 2019-03-04 15:30; if it means missing, list it in "
    "missing_tokens"
)
"""Hint of errors about what is not a date."""


def read_hour(value: Any) -> int | None:
    """Hours since 1970 of one value, whole; None where it is not a date.

    Parameters
    ----------
    value : str, date, datetime or numpy.datetime64
        In UTC if it has a time zone.

    Examples
    --------
    >>> read_hour("1970-01-02"), read_hour("1970-01-02T01:30+02:00"), read_hour("1970-02-30")
    (24, 23, None)
    """
    hour: int | None = None
    if isinstance(value, str):
        hour = _read_text(value)
    elif isinstance(value, np.datetime64):
        hour = int(value.astype("datetime64[h]").astype(np.int64))
    elif isinstance(value, datetime):
        time = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
        time -= value.utcoffset() or timedelta()
        hour = 24 * (value.date() - EPOCH).days + time // timedelta(hours=1)
    elif isinstance(value, date):
        hour = 24 * (value - EPOCH).days
    return hour if hour is not None and MIN_HOUR <= hour <= MAX_HOUR else None


def _read_text(text: str) -> int | None:
    if _DATE_REGEX.match(text) is None or re.search(SPILL_PATTERN, text):
        return None
    text = text.strip("\t\n\v\f\r ")
    hour, minutes = 24 * (date.fromisoformat(text[:10]) - EPOCH).days, 0
    if len(text) > 10:
        minutes = 60 * int(text[11:13]) + int(text[14:16])
        _, sign, zone = re.split(r"([-+]|$)", text[16:].replace(":", ""), maxsplit=1)
        if sign:
            offset = 60 * int(zone[:2]) + int(zone[2:] or 0)
            minutes += offset if sign == "-" else -offset
    return hour + minutes // 60


def make_moments(hours: Floats) -> NDArray[Any]:
    """Make points in time from hours since 1970; NaN becomes NaT.

    Parameters
    ----------
    hours : array of float
    """
    is_absent = np.isnan(hours)
    moments = np.where(is_absent, 0.0, hours).astype(np.int64).astype("datetime64[h]")
    moments[is_absent] = np.datetime64("NaT")
    return moments


def compute_part(by: Part, hours: Any) -> Any:
    """Compute the cell of a part of dates.

    Parameters
    ----------
    by : {"weekday", "month of year", "hour"}
    hours : array
        Whole hours since 1970.

    Examples
    --------
    >>> [int(compute_part(by, np.array([-1]))[0]) for by in PART_VALUES]
    [2, 11, 23]
    """
    whole_hours = hours.astype(np.int64)
    if by == "hour":
        return whole_hours % 24
    if by == "weekday":  # 1 January 1970 was a Thursday
        return (whole_hours // 24 + 3) % 7
    return whole_hours.astype("datetime64[h]").astype("datetime64[M]").astype(np.int64) % 12


def make_not_a_date_error(name: str, value: Any) -> SchemaError:
    """The error about a value that is not a date.

    Parameters
    ----------
    name : str
        Of the feature.
    value : object
    """
    return SchemaError(f"{name}: {abbreviate_value(value)} is not a date; {DATE_HINT}")


def _read_bound(name: str, bound_name: str, bound: Any) -> date:
    hour = read_hour(bound)
    if hour is None:
        raise SchemaError(
            f"{name}: {bound_name} is {abbreviate_value(bound)}; write a day you know, such as "
            "2015-01-01"
        )
    return EPOCH + timedelta(days=hour // 24)


@dataclass(frozen=True, init=False, repr=False)
class Date(Numeric):
    """A date between public bounds: a number of days since the first, cut into bins of whole units.

    Parameters
    ----------
    name : str
    lower, upper : str or date
        First and last day, known before anyone looked at the data.
    by : {"day", "month", "year"}
        Where bins may begin: on every day, on the first of every month, or of every year.
    optional : bool, default True
        As for :class:`~discreet.Categorical`.

    Attributes
    ----------
    first, last : date
        The bounds. ``lower`` is 0 and ``upper`` the number of days between them.
    """

    first: date = EPOCH
    last: date = EPOCH
    by: DateUnit = "day"

    def __init__(
        self, name: str, lower: Any, upper: Any, by: DateUnit = "day", optional: bool = True
    ) -> None:
        first, last = _read_bound(name, "lower", lower), _read_bound(name, "upper", upper)
        if by not in get_args(DateUnit):
            raise SchemaError(_format_unit_problem(name, by))
        if not first < last:
            raise SchemaError(f"{name}: lower {first} is not before upper {last}; swap them")
        days = float((last - first).days)
        for field_name, value in (
            ("name", name), ("lower", 0.0), ("upper", days), ("integer", True),
            ("optional", optional), ("first", first), ("last", last), ("by", by),
        ):  # fmt: skip
            object.__setattr__(self, field_name, value)
        self.__post_init__()

    def __repr__(self) -> str:
        return (
            f"Date(name={self.name!r}, lower='{self.first}', upper='{self.last}', by={self.by!r}, "
            f"optional={self.optional})"
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        bounds = {"lower": str(self.first), "upper": str(self.last)}
        return {"kind": "date", "by": self.by, **bounds}

    @property
    def first_hour(self) -> int:
        """The hour since 1970 with which the first day begins."""
        return 24 * (self.first - EPOCH).days

    def count_days(self, hours: Floats) -> Floats:
        """Count the days since the first, from hours since 1970.

        Parameters
        ----------
        hours : array of float
        """
        return np.asarray(np.floor((hours - self.first_hour) / 24.0))

    def read_bound(self, bound: Any) -> float:
        """Read a cut point: a date, or a number of days since the first.

        Parameters
        ----------
        bound : str, date or float
        """
        if isinstance(bound, (int, float, np.number)):
            return float(bound)
        return float((_read_bound(self.name, "a cut point", bound) - self.first).days)

    def list_unit_starts(self) -> list[float]:
        """The days, since the first, on which a bin may begin."""
        if self.by == "day":
            return [float(day) for day in range(int(self.upper) + 1)]
        months = range(1, 13) if self.by == "month" else (1,)
        years = range(self.first.year, self.last.year + 1)
        starts = (date(year, month, 1) for year in years for month in months)
        days = (float((start - self.first).days) for start in starts if start <= self.last)
        return [0.0, *(day for day in days if day > 0)]

    def compute_edges(self, bin_count: int) -> tuple[float, ...]:
        """Compute the edges of bins of equally many units.

        Parameters
        ----------
        bin_count : int
            There are as many units at least.
        """
        starts = self.list_unit_starts()
        bin_count = min(bin_count, len(starts))
        inner_starts = (
            starts[math.ceil(bin_number * len(starts) / bin_count)]
            for bin_number in range(1, bin_count)
        )
        return (0.0, *inner_starts, self.upper + 1)

    def align_cuts(self, cut_points: Iterable[float]) -> list[float]:
        """Move cut points back to where bins may begin.

        Parameters
        ----------
        cut_points : iterable of float
        """
        starts = np.array(self.list_unit_starts())
        positions = np.searchsorted(starts, list(cut_points), side="right") - 1
        return [float(start) for start in np.unique(starts[np.maximum(positions, 0)]) if start > 0]

    def format_number(self, number: float) -> str:
        """Format a number of days since the first as the day, month or year.

        Parameters
        ----------
        number : float
        """
        day = math.floor(number) + (self.first - EPOCH).days
        is_shown = MIN_HOUR <= 24 * day <= MAX_HOUR
        text = str(EPOCH + timedelta(days=day)) if is_shown else f"day {number:g}"
        return text[: {"day": 10, "month": 7, "year": 4}[self.by]] if is_shown else text

    def format_bound(self, number: float) -> str:
        """Format a number of days since the first as the day.

        Parameters
        ----------
        number : float
        """
        return Date(self.name, self.first, self.last).format_number(number)

    def format_bin(self, low: float, high: float) -> str:
        """Format a bin as its first and last unit.

        Parameters
        ----------
        low, high : float
            Its edges.
        """
        low_text, high_text = self.format_number(low), self.format_number(high - 1)
        return low_text if low_text == high_text else f"{low_text} to {high_text}"

    def restore_value(self, number: float) -> Any:
        """The date of a number of days since the first, as text.

        Parameters
        ----------
        number : float
        """
        return self.format_bound(number)


@dataclass(frozen=True, init=False, repr=False)
class DatePart(Categorical):
    """What repeats of a date: its weekday, the month of its year or the hour of its time.

    Parameters
    ----------
    name : str
    by : {"weekday", "month of year", "hour"}
        A date without a time has the hour 00:00.
    optional : bool, default True
        As for :class:`~discreet.Categorical`.

    Attributes
    ----------
    values : tuple of str
        The names of the cells, which may stand for a date as well.
    """

    by: Part = "weekday"

    def __init__(self, name: str, by: Part, optional: bool = True) -> None:
        if by not in PART_VALUES:
            raise SchemaError(_format_unit_problem(name, by))
        super().__init__(name, PART_VALUES[by], optional)
        object.__setattr__(self, "by", by)

    def __repr__(self) -> str:
        return f"DatePart(name={self.name!r}, by={self.by!r}, optional={self.optional})"

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {"kind": "date", "by": self.by}

    def read_name(self, text: str) -> int | None:
        """An hour since 1970 with the value of this name, if it is one.

        Parameters
        ----------
        text : str
        """
        return PART_HOURS[self.by][self.values.index(text)] if text in self.values else None


def _format_unit_problem(name: str, by: Any) -> str:
    units = ", ".join([*get_args(DateUnit), *PART_VALUES])
    return f"{name}: by is {abbreviate_value(by)}; write one of {units}"


def make_date_feature(
    name: str, by: str | None, lower: Any, upper: Any, optional: bool = True
) -> Feature:
    """Make the feature of a date from its fields in a document.

    Parameters
    ----------
    name : str
    by : str or None
        None stands for ``day``.
    lower, upper : str or None
    optional : bool, default True
    """
    if by in PART_VALUES:
        if lower is not None or upper is not None:
            raise SchemaError(
                f"{name}: bounds do not go with by {by}; write by {by} alone, or keep the bounds "
                f"and write by {', by '.join(get_args(DateUnit))}"
            )
        return DatePart(name, by, optional)  # type: ignore[arg-type]
    if by is not None and by not in get_args(DateUnit):
        raise SchemaError(_format_unit_problem(name, by))
    if lower is None or upper is None:
        raise SchemaError(
            f"{name}: a date needs its first and last day, such as 2015-01-01..2026-12-31, unless "
            f"it is cut by {', '.join(PART_VALUES)}"
        )
    return Date(name, lower, upper, "day" if by is None else by, optional)  # type: ignore[arg-type]


def refuse_dates(schema: Schema, target: str) -> None:
    """Refuse a schema with dates where they cannot be read.

    Parameters
    ----------
    schema : Schema
    target : str
        What does not read dates, such as ``ONNX``.
    """
    for feature in schema.features:
        if isinstance(feature, (Date, DatePart)):
            raise SchemaError(
                f"{feature.name}: {target} does not read dates; make a column of numbers or text "
                "of it, such as its year or weekday, and train with that"
            )
