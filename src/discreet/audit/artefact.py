"""Split a release into named leaves that a distinguisher can compare.

An artefact is everything that a program releases: text, bytes, JSON, numbers, arrays, a fitted
estimator, an exception, warnings. :func:`extract_leaves` takes it apart down to single numbers and
words, each named by its path. Nothing is left out for being uninteresting: a leak is where nobody
looked.

Reading JSON drops its form: white space, the order of keys, keys that occur twice, how a number or
a character is spelled. So the length of every text is a leaf as well, and for JSON its skeleton:
the text with the kind of each value in place of the value, where it is spelled as usual. Members
with the same key are all kept, and so are whole numbers that a float does not hold exactly.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["Leaves", "capture_release", "extract_leaves", "make_skeleton"]

Leaves = dict[str, float | str]

MAX_LEAVES = 4000
"""Leaves of one artefact; further ones enter the leaf ``whole`` as a digest."""
MAX_DEPTH = 12
"""Levels of nested values that are taken apart; what is deeper is one leaf, its text."""
DERIVED_SUFFIXES = (" lowest bit", " length", " sum", " shape")
TOKEN_PATTERN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")(?P<key>\s*:)?|-?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|Infinity)'
    r"|NaN|true|false|null"
)
"""A value of a JSON text, or a key with its colon."""
WHITE_SPACE_PATTERN = re.compile(r"\s*")


def extract_leaves(artefact: Any) -> Leaves:
    """Extract every number and string of an artefact by its path, and the artefact as a whole.

    Numbers that are not whole also give the place of their lowest bit, where noise that was added
    in floating point shows; lists of numbers their sum, where an exact total shows; texts their
    length, and JSON its skeleton, where its form shows.

    Parameters
    ----------
    artefact : object

    Examples
    --------
    >>> extract_leaves({"n": 3, "mean": 0.75})
    {'n': 3.0, 'mean': 0.75, 'mean lowest bit': -2.0, 'whole': '[3.0, 0.75]'}
    >>> extract_leaves('{"n": 3} ')  # doctest: +ELLIPSIS
    {'text length': 9.0, 'text skeleton': '{"n": _} ', 'n': 3.0, 'whole': ...}
    """
    leaves_by_path: Leaves = {}
    overflow_hash = hashlib.sha256()
    for path, value in _iter_leaves(artefact, "", 0):
        leaf_name = _make_unused_name(path or "value", leaves_by_path)
        if len(leaves_by_path) >= MAX_LEAVES:
            overflow_hash.update(f"{leaf_name}: {value!r}\n".encode("utf-8", "backslashreplace"))
            continue
        leaves_by_path[leaf_name] = value
        if isinstance(value, float) and not value.is_integer() and math.isfinite(value):
            # the exponent of the lowest bit that is set: 0.75 is 3/4, so -2
            denominator = value.as_integer_ratio()[1]
            leaves_by_path[f"{leaf_name} lowest bit"] = float(1 - denominator.bit_length())
    direct_values = [
        value for path, value in leaves_by_path.items() if not path.endswith(DERIVED_SUFFIXES)
    ]
    leaves_by_path["whole"] = str(direct_values) + (
        f" and {overflow_hash.hexdigest()}" if len(leaves_by_path) >= MAX_LEAVES else ""
    )
    return leaves_by_path


def _make_unused_name(name: str, used_names: Mapping[str, Any]) -> str:
    """Make a name that is not in use, so that no value hides another."""
    while name in used_names:
        name += " again"
    return name


def _iter_leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, float | str]]:
    """Leaves of a value by its kind; what is deeper than MAX_DEPTH is one leaf, its text."""
    if depth > MAX_DEPTH:
        yield path, repr(value)
        return
    if isinstance(value, bytes | bytearray):
        value = _decode(bytes(value))
    if isinstance(value, str):
        yield from _iter_text_leaves(value, path, depth)
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        yield path, _to_float(value)
        if isinstance(value, int | np.integer) and _to_float(value) != value:
            yield f"{path} exactly".strip(), hex(value)
    elif isinstance(value, Mapping):
        yield from _iter_mapping_leaves(value, path, depth)
    elif isinstance(value, list | tuple | set | frozenset):
        yield from _iter_sequence_leaves(value, path, depth)
    else:
        yield from _iter_object_leaves(value, path, depth)


def _iter_mapping_leaves(
    value: Mapping[Any, Any], path: str, depth: int
) -> Iterator[tuple[str, float | str]]:
    """Leaves of the values by their keys, and means of counts and sums among them."""
    if not value:
        yield path, "{}"
    yield from _iter_means(value, path)
    for key, item in value.items():
        yield from _iter_leaves(item, f"{path}.{key}" if path else str(key), depth + 1)


def _iter_sequence_leaves(
    value: Collection[Any], path: str, depth: int
) -> Iterator[tuple[str, float | str]]:
    """Leaves of the items by their positions, their number, and the sum of numbers."""
    yield f"{path} length".strip(), float(len(value))
    if len(value) > 1 and all(_is_finite_number(item) for item in value):
        # noisy numbers may be made to add up to an exact one
        yield f"{path} sum".strip(), float(f"{math.fsum(map(float, value)):.9g}")
    for position, item in enumerate(value):
        yield from _iter_leaves(item, f"{path}[{position}]", depth + 1)


def _decode(content: bytes) -> str:
    """UTF-8 as text, other bytes spelled so that no two are the same."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return repr(content)


def _iter_means(value: Mapping[Any, Any], path: str) -> Iterator[tuple[str, float | str]]:
    """Iterate over means and variances, where counts, sums and sums of squares occur together.

    Noise that was added to them is not seen in sums, which carry that of the counts as well.
    """
    sums = [value.get(key) for key in ("counts", "totals", "squares")]
    if not all(
        isinstance(number_list, list) and all(map(_is_finite_number, number_list))
        for number_list in sums
    ):
        return
    for position, (row_count, value_total, square_total) in enumerate(zip(*sums, strict=False)):
        if row_count > 0:
            mean = value_total / row_count
            yield f"{path}.mean[{position}]", float(mean)
            yield f"{path}.variance[{position}]", float(square_total / row_count - mean * mean)


def _is_finite_number(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number and abs(value) < 1e300


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _iter_text_leaves(value: str, path: str, depth: int) -> Iterator[tuple[str, float | str]]:
    """Split text that holds JSON documents; other text is a single leaf."""
    yield f"{path} text length".strip(), float(len(value))
    try:
        documents = _parse_documents(value)
    except (ValueError, RecursionError):
        yield path, value
        return
    yield f"{path} text skeleton".strip(), make_skeleton(value)
    yield from _iter_leaves(documents[0] if len(documents) == 1 else documents, path, depth + 1)


def _parse_documents(text: str) -> list[Any]:
    """Objects and lists that follow one another, with or without space between them."""
    decoder, next_start = json.JSONDecoder(object_pairs_hook=_keep_all_members), 0
    documents: list[Any] = []
    while True:
        space_match = WHITE_SPACE_PATTERN.match(text, next_start)
        start = next_start if space_match is None else space_match.end()
        if start == len(text) and documents:
            return documents
        if text[start : start + 1] not in ("{", "["):
            raise ValueError("neither an object nor a list")
        document, next_start = decoder.raw_decode(text, start)
        documents.append(document)


def _keep_all_members(key_values: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object that keeps all members with the same key."""
    members: dict[str, Any] = {}
    for key, value in key_values:
        members[_make_unused_name(key, members)] = value
    return members


def make_skeleton(text: str) -> str:
    """Return a JSON text with each value in its usual spelling replaced by its kind.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> print(make_skeleton('{"n": 3, "mean": 0.750, "spread": 0.5, "word": "a", "last": true}'))
    {"n": _, "mean": 0.750, "spread": _._, "word": "_", "last": bool}
    """
    return TOKEN_PATTERN.sub(_format_token, text)


def _format_token(token_match: re.Match[str]) -> str:
    token_text = token_match[0]
    if token_match["key"] is not None or token_text == "null":
        return token_text
    if token_match["text"] is not None:
        is_usual = token_text == json.dumps(json.loads(token_text), ensure_ascii=False)
        return '"_"' if is_usual else token_text
    if token_text in ("true", "false"):
        return "bool"
    if token_text.removeprefix("-").isdecimal():
        return "_" if token_text != "-0" else token_text
    is_named = token_text[-1].isalpha()  # NaN, Infinity
    return "_._" if is_named or token_text == repr(float(token_text)) else token_text


def _iter_object_leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, float | str]]:
    """Leaves of an array, an error, a document (as its JSON), or an object's attributes."""
    if isinstance(value, np.ndarray):
        yield f"{path} shape", str(value.shape)
        yield from _iter_leaves(value.tolist(), path, depth + 1)
    elif isinstance(value, BaseException):
        yield path, f"{type(value).__name__}: {value}"
    elif value is None:
        yield path, "None"
    elif hasattr(value, "to_json"):
        yield from _iter_leaves(value.to_json(), path, depth + 1)
    elif hasattr(value, "__dict__"):
        yield from _iter_leaves(dict(vars(value)), path, depth + 1)
    else:
        yield path, repr(value)


def capture_release(program: Callable[[], Any]) -> dict[str, Any]:
    """Run a program and capture its result or error, and its warnings.

    Parameters
    ----------
    program : callable
    """
    import warnings

    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        try:
            outcome: dict[str, Any] = {"result": program()}
        except (Exception, SystemExit) as error:  # any error is part of the release
            outcome = {"error": error}
    if caught_warnings:
        outcome["warnings"] = [
            f"{warning.category.__name__}: {warning.message}" for warning in caught_warnings
        ]
    return outcome
