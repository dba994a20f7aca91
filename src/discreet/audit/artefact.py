"""Split a release into named leaves that a distinguisher can compare.

An artefact is everything that a program releases: text, bytes, JSON, numbers, arrays, a fitted
estimator, an exception, warnings. :func:`leaves` takes it apart down to single numbers and words,
each named by its path. Nothing is left out for being uninteresting: a leak is where nobody looked.

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
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["Leaves", "leaves", "released", "skeleton"]

Leaves = dict[str, float | str]

MOST = 4000
"""Leaves of one artefact; further ones enter the leaf ``whole`` as a digest."""
DEEPEST = 12
DERIVED = (" lowest bit", " length", " sum", " shape")
TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")(?P<key>\s*:)?|-?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|Infinity)'
    r"|NaN|true|false|null"
)
"""A value of a JSON text, or a key with its colon."""
WHITE_SPACE = re.compile(r"\s*")


def leaves(artefact: Any) -> Leaves:
    """Extract every number and string of an artefact by its path, and the artefact as a whole.

    Numbers that are not whole also give the place of their lowest bit, where noise that was added
    in floating point shows; lists of numbers their sum, where an exact total shows; texts their
    length, and JSON its skeleton, where its form shows.

    Parameters
    ----------
    artefact : object

    Examples
    --------
    >>> leaves({"n": 3, "mean": 0.75})
    {'n': 3.0, 'mean': 0.75, 'mean lowest bit': -2.0, 'whole': '[3.0, 0.75]'}
    >>> leaves('{"n": 3} ')  # doctest: +ELLIPSIS
    {'text length': 9.0, 'text skeleton': '{"n": _} ', 'n': 3.0, 'whole': ...}
    """
    found: Leaves = {}
    beyond = hashlib.sha256()
    for path, value in _walk(artefact, "", 0):
        name = _unused(path or "value", found)
        if len(found) >= MOST:
            beyond.update(f"{name}: {value!r}\n".encode("utf-8", "backslashreplace"))
            continue
        found[name] = value
        if isinstance(value, float) and not value.is_integer() and math.isfinite(value):
            found[f"{name} lowest bit"] = _lowest_bit(value)
    told = [value for path, value in found.items() if not path.endswith(DERIVED)]
    found["whole"] = str(told) + (f" and {beyond.hexdigest()}" if len(found) >= MOST else "")
    return found


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    """Make a name that is not in use, so that no value hides another."""
    while name in taken:
        name += " again"
    return name


def _lowest_bit(value: float) -> float:
    """The exponent of the lowest bit that is set: 0.75 is 3/4, so -2."""
    denominator = value.as_integer_ratio()[1]
    return float(1 - denominator.bit_length())


def _walk(value: Any, path: str, depth: int) -> Iterator[tuple[str, float | str]]:
    if depth > DEEPEST:
        yield path, repr(value)
        return
    if isinstance(value, bytes | bytearray):
        value = _decode(bytes(value))
    if isinstance(value, str):
        yield from _text(value, path, depth)
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        yield path, _number(value)
        if isinstance(value, int | np.integer) and _number(value) != value:
            yield f"{path} exactly".strip(), hex(value)
    elif isinstance(value, Mapping):
        if not value:
            yield path, "{}"
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


def _decode(content: bytes) -> str:
    """UTF-8 as text, other bytes spelled so that no two are the same."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return repr(content)


def _means(value: Mapping[Any, Any], path: str) -> Iterator[tuple[str, float | str]]:
    """Iterate over means and variances, where counts, sums and sums of squares occur together.

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
    """Split text that holds JSON documents; other text is a single leaf."""
    yield f"{path} text length".strip(), float(len(value))
    try:
        documents = _parse_documents(value)
    except (ValueError, RecursionError):
        yield path, value
        return
    yield f"{path} text skeleton".strip(), skeleton(value)
    yield from _walk(documents[0] if len(documents) == 1 else documents, path, depth + 1)


def _parse_documents(text: str) -> list[Any]:
    """Objects and lists that follow one another, with or without space between them."""
    decoder, end = json.JSONDecoder(object_pairs_hook=_keep_all_members), 0
    documents: list[Any] = []
    while True:
        start = _after_space(text, end)
        if start == len(text) and documents:
            return documents
        if text[start : start + 1] not in ("{", "["):
            raise ValueError("neither an object nor a list")
        document, end = decoder.raw_decode(text, start)
        documents.append(document)


def _keep_all_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object that keeps all members with the same key."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        members[_unused(key, members)] = value
    return members


def _after_space(text: str, start: int) -> int:
    space = WHITE_SPACE.match(text, start)
    return start if space is None else space.end()


def skeleton(text: str) -> str:
    """Return a JSON text with each value in its usual spelling replaced by its kind.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> print(skeleton('{"n": 3, "mean": 0.750, "spread": 0.5, "word": "a", "last": true}'))
    {"n": _, "mean": 0.750, "spread": _._, "word": "_", "last": bool}
    """
    return TOKEN.sub(_form_of, text)


def _form_of(token: re.Match[str]) -> str:
    spelled = token[0]
    if token["key"] is not None or spelled == "null":
        return spelled
    if token["text"] is not None:
        usual = spelled == json.dumps(json.loads(spelled), ensure_ascii=False)
        return '"_"' if usual else spelled
    if spelled in ("true", "false"):
        return "bool"
    if spelled.removeprefix("-").isdecimal():
        return "_" if spelled != "-0" else spelled
    named = spelled[-1].isalpha()  # NaN, Infinity
    return "_._" if named or spelled == repr(float(spelled)) else spelled


def _object(value: Any, path: str, depth: int) -> Iterator[tuple[str, float | str]]:
    """Leaves of a document (as its JSON), or of an object's attributes."""
    if hasattr(value, "to_json"):
        yield from _walk(value.to_json(), path, depth + 1)
    elif hasattr(value, "__dict__"):
        yield from _walk(dict(vars(value)), path, depth + 1)
    else:
        yield path, repr(value)


def released(run: Callable[[], Any]) -> dict[str, Any]:
    """Run a program and capture its result or error, and its warnings.

    Parameters
    ----------
    run : callable
    """
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found: dict[str, Any] = {"result": run()}
        except (Exception, SystemExit) as error:  # any error is part of the release
            found = {"error": error}
    if caught:
        found["warnings"] = [f"{one.category.__name__}: {one.message}" for one in caught]
    return found
