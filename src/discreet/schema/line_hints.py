"""What was probably meant by a line of a schema that is not understood."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["NEVER_MISSING", "list_likely_lines"]

NEVER_MISSING = "never missing"
"""What ends the line of a column whose feature is not optional."""
NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
"""A bound: no point at its end or beginning, which could be one of the two dots."""
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
THOUSANDS = r"[-+]?[0-9]{1,3}(?:[,_][0-9]{3})+"
MAX_HINTED_LENGTH = 200
"""Characters of a line up to which it is looked for what was meant."""
SUFFIX = re.compile(r"(.*[^, ]),? ?(?:never mis+ing|not missing|required|mandatory)")
"""A line that ends in words for a value that is always there."""
OPTIONAL_SUFFIX = re.compile(r"(.*[^, ]),? ?(?:optional|(?:may be |sometimes )missing)")
"""A line that ends in words for what holds anyway."""
REWRITINGS = (
    (rf"\[?\(? *({NUMBER}) *(?:-|–|:|,|;|…|to|\.\.\.+) *({NUMBER}) *\)?\]?", r"\1..\2"),
    (r"(?:one|any) of ([^\[\]]*,[^\[\]]*)", r"[\1]"),
    (r"((?!.*\.\.)(?!(?:one|any) of )[^\[\]]*,[^\[\]]*)", r"[\1]"),
    (r"(?:one of )?(\[.*\])", r"\1"),
    (r"(.*\S),? (?:int|ints|integer|integers|whole numbers?)", r"\1 whole"),
    (r"(.*\S),? (?:float|decimal|double|real numbers?)s?", r"\1 real"),
    (r"(whole|real) (.*)", r"\2 \1"),
    (rf"({DAY} *\.\. *{DAY}),? +(day|month|year)s?", r"\1 by \2"),
    (rf"({DAY} *\.\. *{DAY}),? +(?:by )?(weekday|month of year|hour)s?", r"by \2"),
    (r"(?:by )?(weekday|month of year|hour)s?", r"by \1"),
    (r"([0-9]{4}) *\.\. *([0-9]{4}) by (day|month|year)", r"\1-01-01..\2-12-31 by \3"),
    (r"([-+]?[0-9]+),([0-9]{1,2}) *\.\. *([-+]?[0-9]+),([0-9]{1,2})(.*)", r"\1.\2..\3.\4\5"),
    (rf"({THOUSANDS}|{NUMBER}) *\.\. *({THOUSANDS}|{NUMBER})(.*)", r"\1..\2\3"),
)
"""What people write elsewhere, and how it is written here."""


def list_likely_lines(text: str) -> Iterator[str]:
    """Lines that may have been meant, the likeliest first; not all of them are valid.

    Parameters
    ----------
    text : str
        With single blanks.

    Examples
    --------
    >>> list(list_likely_lines("0-72 never missing"))[0]
    '0..72, never missing'
    >>> list(list_likely_lines("[month, year], never missing"))[0]
    'one of [month, year], never missing'
    """
    if len(text) > MAX_HINTED_LENGTH:
        return
    suffix = ""
    if matched_text := SUFFIX.fullmatch(text):
        text, suffix = matched_text[1], f", {NEVER_MISSING}"
    elif matched_text := OPTIONAL_SUFFIX.fullmatch(text):
        text = matched_text[1]
    bodies = [text]
    for pattern, replacement in REWRITINGS:
        if matched_text := re.fullmatch(pattern, text):
            bodies.insert(-1, _join_digits(matched_text.expand(replacement)))
    for body in bodies:
        yield f"one of {body}{suffix}" if suffix and body.startswith("[") else body + suffix


def _join_digits(body: str) -> str:
    """Take the marks of thousands out of bounds."""
    if body.startswith("["):
        return body
    return re.sub(THOUSANDS, lambda number: re.sub("[,_]", "", number[0]), body)
