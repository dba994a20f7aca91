"""Rules of the estimators' parameters: allowed values, and the error message that names them.

Every estimator has one table, parameter name to :class:`Rule`. ``fit`` reads all parameters
through it before it looks at any data, so that no misspelt value is silently ignored.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np

from discreet.errors import DiscreetError, FormatError, PrivacyError, SchemaError
from discreet.estimation import Postprocess
from discreet.ledger import Ledger
from discreet.losses import as_written
from discreet.randomness import Random
from discreet.schema import Schema

__all__ = [
    "BINS",
    "BUDGET",
    "COMMON",
    "EPSILON",
    "PRIOR",
    "RANDOM",
    "Rule",
    "instance",
    "number",
    "one_of",
]

MOST_BINS = 1 << 16
LEAST_EPSILON = 1e-9
"""Smallest epsilon accepted: below it noise is too wide to be drawn exactly."""


@dataclass(frozen=True)
class Rule:
    """The rule of one parameter: how to read it, and the words of its error.

    Parameters
    ----------
    words : str
        Allowed values in words, for the error message.
    read : callable
        Returns the value as plain Python (NumPy scalars become numbers); raises ``TypeError``,
        ``ValueError`` or ``ArithmeticError`` where the rule is broken.
    error : type of DiscreetError
        What the user sees.
    """

    words: str
    read: Callable[[Any], Any]
    error: type[DiscreetError] = SchemaError

    def checked(self, name: str, value: Any) -> Any:
        """Return the plain value, or raise an error that names parameter, value and rule."""
        try:
            return self.read(value)
        except (FormatError, SchemaError) as error:  # keep the schema's or ledger's reason
            raise type(error)(f"{name}={_short(value)}; write {self.words} ({error})") from None
        except (TypeError, ValueError, ArithmeticError):
            raise self.error(f"{name}={_short(value)}; write {self.words}") from None

    def or_none(self, meaning: str) -> Rule:
        """The same rule, with None allowed as well."""

        def read(value: Any) -> Any:
            return None if value is None else self.read(value)

        return Rule(f"{self.words}, or None {meaning}", read, self.error)


def number(words: str, allowed: Callable[[float], bool], error: Any = SchemaError) -> Rule:
    """A real number, Python's or NumPy's; not text, and not true or false."""

    def read(value: Any) -> float:
        found = _real(value)
        _if(allowed(found))
        return found

    return Rule(words, read, error)


def whole(words: str, least: int, names: Sequence[str] = ()) -> Rule:
    """A whole number of at least ``least``, or one of the names."""

    def read(value: Any) -> Any:
        if isinstance(value, str):
            return _if(value in names, str(value))
        return _if(least <= (found := _whole(value)), found)

    return Rule(words, read)


def one_of(*values: Any, error: Any = SchemaError) -> Rule:
    """One of a few names or whole numbers."""

    def read(value: Any) -> Any:
        kind: Any = str if isinstance(value, str) else Integral
        for one in values:
            same = isinstance(one, kind) and not isinstance(value, bool) and one == value
            if same:
                return one
        raise ValueError

    *first, last = map(repr, values)
    return Rule(f"{', '.join(first)} or {last}" if first else last, read, error)


def instance(words: str, kinds: Callable[[], Any], *names: str) -> Rule:
    """An object of some kinds, imported only when needed, or one of the names."""

    def read(value: Any) -> Any:
        if isinstance(value, str):
            return _if(value in names, str(value))
        return _if(value is not None and isinstance(value, kinds()), value)

    return Rule(words, read)


def flag() -> Rule:
    """True or False."""

    def read(value: Any) -> bool:
        _if(isinstance(value, (bool, np.bool_)))
        return bool(value)

    return Rule("True or False", read)


def by_name(words: str, read: Callable[[Any], Any]) -> Rule:
    """A mapping of feature names to something."""

    def every(value: Any) -> dict[str, Any]:
        _if(isinstance(value, Mapping) and all(isinstance(name, str) for name in value))
        return {str(name): read(one) for name, one in value.items()}

    return Rule(words, every)


def positive(value: Any) -> float:
    """A finite number above zero."""
    found = _real(value)
    _if(0 < found < math.inf)
    return found


def _real(value: Any) -> float:
    _if(isinstance(value, Real) and not isinstance(value, bool))
    float(value)  # 10**400 does not fit a double: OverflowError
    return float(as_written(value))


def _whole(value: Any) -> int:
    _if(isinstance(value, Integral) and not isinstance(value, bool))
    return int(value)


def _if(holds: Any, value: Any = None) -> Any:
    if not holds:
        raise ValueError
    return value


def _short(value: Any) -> str:
    """The value's repr, shortened to one line."""
    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = shown.maxlong = 60
    return " ".join(shown.repr(value.item() if isinstance(value, np.generic) else value).split())


def _bins(value: Any) -> Any:
    def cut(one: Any) -> Any:
        if isinstance(one, (Sequence, np.ndarray)) and not isinstance(one, str):
            return [_if(math.isfinite(point := _real(p)), point) for p in one]
        return _if(1 <= (count := _whole(one)) <= MOST_BINS, count)

    if isinstance(value, Mapping):
        return by_name("", cut).read(value)
    return cut(_whole(value))


def _choice_of_columns(value: Any) -> Any:
    if isinstance(value, str):
        return _if(value in ("from_dtype", "all", "none"), value)
    if value is None:
        return []
    chosen = np.asarray(value)
    _if(chosen.ndim == 1 and (chosen.size == 0 or chosen.dtype.kind in "biuU"))
    return chosen.tolist()


def _prior(value: Any) -> Any:
    prior = np.asarray(value, dtype=float)
    _if(prior.ndim == 1 and (prior >= 0).all() and np.isclose(prior.sum(), 1.0))
    return prior


def _random(value: Any) -> Any:
    kinds = (Random, np.random.Generator, np.random.RandomState)
    if value is None or isinstance(value, kinds):
        return value
    return _if((seed := _whole(value)) >= 0, seed)


def _ledger(value: Any) -> Ledger:
    ledger = Ledger.of(value)
    ledger.read()  # raises unless the ledger exists and is readable
    return ledger


EPSILON = number(
    f"a number of at least {LEAST_EPSILON:g}, or math.inf for no privacy",
    lambda epsilon: epsilon >= LEAST_EPSILON,
    PrivacyError,
)
BINS = Rule(
    f"a whole number from 1 to {MOST_BINS}, or a mapping of feature names to such numbers or to "
    "lists of cut points",
    _bins,
)
AUTO_BINS = Rule(
    f"'auto', {BINS.words}", lambda value: "auto" if _is(value, "auto") else _bins(value)
)
PRIOR = Rule("one probability for each class, none negative, with the sum 1", _prior).or_none(
    "for the learnt one"
)
RANDOM = Rule(
    "None for cryptographic randomness or, to simulate, a seed of at least 0, a numpy Generator or "
    "a discreet Random",
    _random,
)
LIKELIHOOD = one_of("gaussian", "truncated")
POSTPROCESS = one_of(*get_args(Postprocess)).or_none("for 'bayes' where there is noise")
BUDGET = Rule("a Ledger, the path of one, or a MemoryLedger", _ledger).or_none(
    "to be warned about what fits add up to"
)
COMMON: Mapping[str, Rule] = {
    "schema": Rule("a Schema, the path of one, or a mapping", Schema.of).or_none(
        "to take it from the data"
    ),
    "categorical_features": Rule(
        "'from_dtype', 'all', 'none', or a list of names, indices or true/false",
        _choice_of_columns,
    ),
    "missing": one_of("skip", "category"),
    "unseen": one_of("error", "other"),
}


def _is(value: Any, name: str) -> bool:
    return isinstance(value, str) and value == name
