"""What was released, as named leaves that a distinguisher can look at.

An artefact is whatever a program gives away: text, bytes, JSON, numbers, arrays, a fitted
estimator, an exception, warnings. :func:`leaves` takes it apart down to single numbers and words,
each named by its path. Nothing is left out for being uninteresting: a leak is where nobody looked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["Leaves", "leaves", "released"]

Leaves = dict[str, float | str]

MOST = 4000
"""Leaves of one artefact; the rest is left to the leaf of the whole."""
DEEPEST = 12
DERIVED = (" lowest bit", " length", " sum", " shape")


def leaves(artefact: Any) -> Leaves:
    """Every number and word of an artefact by its path, and the artefact as a whole.

    Numbers that are not whole also give the place of their lowest bit, where noise that was added
    in floating point shows; lists of numbers their sum, where an exact total shows.

    Parameters
    ----------
    artefact : object

    Examples
    --------
    >>> leaves({"n": 3, "mean": 0.75})
    {'n': 3.0, 'mean': 0.75, 'mean lowest bit': -2.0, 'whole': '[3.0, 0.75]'}
    """
    found: Leaves = {}
    for path, value in _walk(artefact, "", 0):
        if len(found) >= MOST:
            break
        found[path or "value"] = value
        if isinstance(value, float) and not value.is_integer() and math.isfinite(value):
            found[f"{path or 'value'} lowest bit"] = _lowest_bit(value)
    told = [value for path, value in found.items() if not path.endswith(DERIVED)]
    found["whole"] = str(told)
    return found


def _lowest_bit(value: float) -> float:
    """The exponent of the lowest bit that is set: 0.75 is 3/4, so -2."""
    denominator = value.as_integer_ratio()[1]
    return float(1 - denominator.bit_length())


def _walk(value: Any, path: str, depth: int) -> Iterator[tuple[str, float | str]]:
    if depth > DEEPEST:
        yield path, repr(value)
        return
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        yield from _text(value, path, depth)
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        yield path, _number(value)
    elif isinstance(value, Mapping):
        yield from _means(value, path)
        for key, item in value.items():
            yield from _walk(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        yield f"{path} length".strip(), float(len(value))
        if len(value) > 1 and all(_counted(item) for item in value):
            # noisy numbers may be made to add up to an exact one
            yield f"{path} sum".strip(), float(f"{math.fsum(map(float, value)):.9g}")
        for place, item in enumerate(value):
            yield from _walk(item, f"{path}[{place}]", depth + 1)
    elif isinstance(value, np.ndarray):
        yield f"{path} shape", str(value.shape)
        yield from _walk(value.tolist(), path, depth + 1)
    elif isinstance(value, BaseException):
        yield path, f"{type(value).__name__}: {value}"
    elif value is None:
        yield path, "None"
    else:
        yield from _object(value, path, depth)


def _means(value: Mapping[Any, Any], path: str) -> Iterator[tuple[str, float | str]]:
    """Means and variances, where counts, sums and sums of squares stand together.

    Noise that was added to them is not seen in sums, which carry that of the counts as well.
    """
    sums = [value.get(key) for key in ("counts", "totals", "squares")]
    if not all(isinstance(one, list) and all(map(_counted, one)) for one in sums):
        return
    for place, (count, total, square) in enumerate(zip(*sums, strict=False)):
        if count > 0:
            mean = total / count
            yield f"{path}.mean[{place}]", float(mean)
            yield f"{path}.variance[{place}]", float(square / count - mean * mean)


def _counted(value: Any) -> bool:
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return plain and abs(value) < 1e300


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _text(value: str, path: str, depth: int) -> Iterator[tuple[str, float | str]]:
    """Text that is JSON is taken apart; other text is a word."""
    if value[:1] in ("{", "["):
        try:
            yield from _walk(json.loads(value), path, depth + 1)
        except (ValueError, RecursionError):
            yield path, value
        return
    yield path, value


def _object(value: Any, path: str, depth: int) -> Iterator[tuple[str, float | str]]:
    """A document as its JSON, anything else by what it holds."""
    if hasattr(value, "to_json"):
        yield from _walk(value.to_json(), path, depth + 1)
    elif hasattr(value, "__dict__"):
        yield from _walk(dict(vars(value)), path, depth + 1)
    else:
        yield path, repr(value)


def released(run: Callable[[], Any]) -> dict[str, Any]:
    """Run a program and give all it lets out: its result, or its error, and its warnings.

    Parameters
    ----------
    run : callable
    """
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found: dict[str, Any] = {"result": run()}
        except (Exception, SystemExit) as error:  # whatever it is, it was seen
            found = {"error": error}
    if caught:
        found["warnings"] = [f"{one.category.__name__}: {one.message}" for one in caught]
    return found
