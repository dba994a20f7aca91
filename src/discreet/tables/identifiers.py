"""Columns that name people instead of describing them: nearly every row has its own value.

A model that learns them learns who was in the table, and predicts nothing of anybody else. This
reads exact counts, so that only what promises nothing anyway asks it.
"""

from __future__ import annotations

import re

__all__ = ["IDENTIFIER_REASON", "TOO_MANY_VALUES_REASON", "is_identifier"]

MIN_IDENTIFIER_ROWS = 20
"""With fewer rows, different values say nothing."""
MIN_DISTINCT_SHARE = 0.95
"""Share of the rows with a value of their own from which on a column looks like an identifier."""
MAX_SPAN_PER_ROW = 2.0
"""Whole numbers that are all different and as dense as that are numbered rows."""
IDENTIFIER_NAME = re.compile(
    r"(^|[^a-z])(id|ids|uid|uuid|guid|key|pk|ssn|nr|no|number|code|rownum|index|email|phone)([^a-z]|$)"
    r"|[a-z](ID|Id|Key|Nr|Number)$|^(?i:unnamed:? ?0|rownames?|row_?id)$"
)
"""Names of columns that number or name people; words are separated by other signs or by case."""

IDENTIFIER_REASON = "nearly every row has a value of its own, as in an identifier"
TOO_MANY_VALUES_REASON = "more than {limit} different values, too many for categories"


def is_identifier(
    name: str, row_count: int, distinct_count: int, span: float | None = None
) -> bool:
    """Whether a column of text or of whole numbers looks like an identifier.

    Text is one if nearly all values differ: emails, UUIDs, names. Whole numbers also have to be
    numbered without gaps, or to have a name that says so: incomes and times differ as well.
    Numbers with fractions are measured and never identifiers.

    Parameters
    ----------
    name : str
        Of the column.
    row_count : int
        Rows with a value.
    distinct_count : int
        Different values.
    span : float, optional
        Of whole numbers, the largest less the smallest.

    Examples
    --------
    >>> is_identifier("customer", 1000, 1000, 999.0), is_identifier("income", 1000, 998, 2e5)
    (True, False)
    >>> is_identifier("patient_id", 1000, 1000, 9e8), is_identifier("email", 1000, 1000)
    (True, True)
    """
    if row_count < MIN_IDENTIFIER_ROWS or distinct_count < MIN_DISTINCT_SHARE * row_count:
        return False
    if span is None or span < MAX_SPAN_PER_ROW * row_count:
        return True
    return (
        IDENTIFIER_NAME.search(name) is not None or IDENTIFIER_NAME.search(name.lower()) is not None
    )
