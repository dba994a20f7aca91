"""Dates in a query: text that is a date, its day as a whole number, and what repeats of it.

Text is read by its digits, as everywhere (:mod:`discreet.schema.dates`), and days are counted by
whole numbers, so that neither the settings of a session nor the engine's own idea of a date matter.
What is not a date is NULL.
"""

from __future__ import annotations

from datetime import date

from discreet.model.sql_dialects import Dialect
from discreet.model.sql_text import write_case
from discreet.schema.dates import DATE_PATTERN, SPILL_PATTERN, Date, DatePart

__all__ = ["DateColumns"]

FIRST_DAY = date(1, 3, 1).toordinal() - 365
"""Ordinal of 1 March of the year 0, the day that is counted as 0: no leap day is before it."""
FIRST_WEEKDAY = 2
"""Its weekday, a Wednesday; Monday is 0."""
BLANKS = (9, 10, 11, 12, 13, 32)
"""Characters that may be around a date."""
TIMES = {
    "duckdb": ((), ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")),
    "postgres": (("date", "timestamp without time zone"), ("timestamp with time zone",)),
}
"""Types whose text depends on the session: of days and times, and of times with a zone."""


class DateColumns:
    """The steps of a query in which columns of dates are read.

    Parameters
    ----------
    dialect : Dialect

    Attributes
    ----------
    texts, dates, fields, days : dict of str to str
        Expressions of four steps: text without blanks and its zone; text that is a date with a
        time; months and minutes; days.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.texts: dict[str, str] = {}
        self.dates: dict[str, str] = {}
        self.fields: dict[str, str] = {}
        self.days: dict[str, str] = {}

    def add_date(self, feature: Date | DatePart, digits: str) -> None:
        """Add the columns of a feature whose text is t0, …: x0 or g0 is what its cells are of.

        Parameters
        ----------
        feature : Date or DatePart
        digits : str
            The number of its columns.
        """
        self._add_text(digits)
        self._add_fields(digits)
        if isinstance(feature, Date):
            days = f"{self._write_days(digits)} - {feature.first.toordinal() - FIRST_DAY}"
            double = "DOUBLE" if self.dialect.name == "duckdb" else "DOUBLE PRECISION"
            self.days[f"x{digits}"] = f"CAST({days} AS {double})"
        elif feature.by == "hour":
            self.days[f"g{digits}"] = f"{self._divide(f'r{digits}', 60)} % 24"
        elif feature.by == "weekday":
            self.days[f"g{digits}"] = f"({self._write_days(digits)} + {FIRST_WEEKDAY}) % 7"
        else:
            self.days[f"g{digits}"] = self._write_days(digits)

    def read_text(self, column: str) -> str:
        """A column as text that no setting of a session changes; times with a zone in UTC.

        Parameters
        ----------
        column : str
        """
        dialect = self.dialect
        text = dialect.text_template.format(column)
        if dialect.name == "sqlite":
            return write_case([(dialect.has_type(column, dialect.text_types), text)])
        plain_types, zone_types = TIMES[dialect.name]
        if dialect.name == "duckdb":  # its text of a zone leaves out seconds
            moment = f"MAKE_TIMESTAMP(EPOCH_US(TRY_CAST({column} AS TIMESTAMPTZ)))"
            arms = [
                (dialect.has_type(column, zone_types), f"CAST({moment} AS VARCHAR)"),
                (dialect.has_type(column, ("BLOB",)), "NULL"),
            ]
        else:
            iso_text = f"TO_JSONB({column}) #>> '{{}}'"
            moment = f"CAST({iso_text} AS TIMESTAMP WITH TIME ZONE) AT TIME ZONE 'UTC'"
            arms = [
                (dialect.has_type(column, zone_types), f"TO_JSONB({moment}) #>> '{{}}'"),
                (dialect.has_type(column, plain_types), iso_text),
            ]
        return write_case(arms, text)

    def write_part(self, feature: DatePart, digits: str) -> str:
        """The cell of a part of a date, from 0.

        Parameters
        ----------
        feature : DatePart
        digits : str
            The number of its columns.
        """
        if feature.by != "month of year":
            return f"g{digits}"
        months = f"u{digits}"  # a zone moves a time by less than a day
        moved_month = write_case(
            [
                (f"g{digits} < {self._write_month_start(months)}", "1"),
                (f"g{digits} < {self._write_month_start(f'({months} + 1)')}", "2"),
            ],
            "3",
        )
        return f"CASE WHEN g{digits} IS NOT NULL THEN ({months} + {moved_month}) % 12 END"

    def _add_text(self, digits: str) -> None:
        """Text without blanks b0 and its zone w0; the same d0 if it is a date, with a time."""
        character = "CHAR" if self.dialect.name == "sqlite" else "CHR"
        blanks = " || ".join(f"{character}({blank})" for blank in BLANKS)
        trimmed_text = f"TRIM(t{digits}, {blanks})"
        text, zone = f"b{digits}", f"w{digits}"
        self.texts[text] = trimmed_text
        self.texts[zone] = f"LTRIM(SUBSTR({trimmed_text}, 17), '0123456789:.')"
        padded_text = write_case([(f"LENGTH({text}) = 10", f"{text} || ' 00:00'")], text)
        self.dates[f"d{digits}"] = write_case([(self._write_is_date(text, zone), padded_text)])

    def _add_fields(self, digits: str) -> None:
        """Months u0 since the first day, and minutes r0 in UTC since the day before the date."""
        text, zone = f"d{digits}", f"w{digits}"
        year, month, hour, minute = (
            f"CAST(SUBSTR({text}, {first}, {length}) AS INTEGER)"
            for first, length in ((1, 4), (6, 2), (12, 2), (15, 2))
        )
        zone_minutes = write_case(
            [(f"{text} IS NULL", "NULL"), (f"LENGTH({zone}) < 3", "0")],
            f"60 * CAST(SUBSTR({zone}, 1, 3) AS INTEGER) + CAST(SUBSTR({zone}, 1, 1) "
            f"|| SUBSTR(REPLACE({zone}, ':', '') || '00', 4, 2) AS INTEGER)",
        )
        self.fields[f"u{digits}"] = f"12 * {year} + {month} - 3"
        # since the day before, so that nothing below zero is divided
        self.fields[f"r{digits}"] = f"1440 + 60 * {hour} + {minute} - {zone_minutes}"

    def _write_days(self, digits: str) -> str:
        """Days since the first: those before the month, in the month, and from minutes."""
        day = f"CAST(SUBSTR(d{digits}, 9, 2) AS INTEGER)"
        moved_days = self._divide(f"r{digits}", 1440)
        return f"({self._write_month_start(f'u{digits}')} + {day} + {moved_days} - 2)"

    def _write_month_start(self, months: str) -> str:
        """Days before a month, of years that begin in March: 365 y + leap days + 30.6 m."""
        leap_days = (
            f"{self._divide(months, 48)} - {self._divide(months, 1200)} "
            f"+ {self._divide(months, 4800)}"
        )
        month_days = self._divide(f"(153 * ({months} % 12) + 2)", 5)
        return f"(365 * {self._divide(months, 12)} + {leap_days} + {month_days})"

    def _divide(self, number: str, divisor: int) -> str:
        """A whole number divided by another, rounded down."""
        return f"({number} {'//' if self.dialect.name == 'duckdb' else '/'} {divisor})"

    def _write_is_date(self, text: str, zone: str) -> str:
        """The condition that text without blanks around it is a date."""
        dialect = self.dialect
        if dialect.name == "sqlite":
            return _write_is_date_without_patterns(text, zone)
        matches = "REGEXP_MATCHES({}, {})" if dialect.name == "duckdb" else "{} ~ {}"
        is_date, is_spilled = (
            matches.format(text, dialect.quote_text(pattern))
            for pattern in (DATE_PATTERN, SPILL_PATTERN)
        )
        return f"{is_date} AND NOT {is_spilled}"


def _write_is_date_without_patterns(text: str, zone: str) -> str:
    """The same condition for SQLite, which has no regular expressions."""
    day, seconds = (
        f"SUBSTR({text}, 1, 10)",
        f"SUBSTR({text}, 17, LENGTH({text}) - 16 - LENGTH({zone}))",
    )
    two_digits = "[0-5][0-9]"
    is_day = (
        f"LENGTH(CAST({text} AS BLOB)) = LENGTH({text}) "  # nothing after a NUL character
        f"AND {day} GLOB '{'[0-9]' * 4}-[0-9][0-9]-[0-9][0-9]' AND {day} > '0001' "
        f"AND DATE(JULIANDAY({day})) = {day}"
    )
    is_time = (
        f"SUBSTR({text}, 11, 6) GLOB '[T ][0-2][0-9]:{two_digits}' AND SUBSTR({text}, 12, 2) < '24'"
    )
    has_seconds = (
        f"{seconds} = '' OR {seconds} GLOB ':{two_digits}' OR "
        f"({seconds} GLOB ':{two_digits}.[0-9]*' AND SUBSTR({seconds}, 5) NOT GLOB '*[^0-9]*')"
    )
    offsets = " OR ".join(
        f"{zone} GLOB '[-+][0-2][0-9]{minutes}'" for minutes in ("", two_digits, f":{two_digits}")
    )
    has_zone = f"{zone} IN ('', 'Z') OR (({offsets}) AND SUBSTR({zone}, 2, 2) < '24')"
    is_spilled = f"{text} GLOB '0001-01-01*+*[1-9]*' OR {text} GLOB '9999-12-31*-*'"
    return (
        f"{is_day} AND (LENGTH({text}) = 10 OR ({is_time} AND ({has_seconds}) AND ({has_zone}))) "
        f"AND NOT ({is_spilled})"
    )
