"""Rules of the estimators' parameters: allowed values, and the error message that names them.

Every estimator has one table, parameter name to :class:`ParamRule`. ``fit`` reads all parameters
through it before it looks at any data, so that no misspelt value is silently ignored.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np

from discreet.errors import DiscreetError, FormatError, PrivacyError, SchemaError
from discreet.estimation import Postprocess
from discreet.privacy.ledger import Ledger
from discreet.privacy.rounding import to_shortest_float
from discreet.randomness import Random
from discreet.schema.cells import MAX_BINS
from discreet.schema.schema import Schema
from discreet.tables.contributions import MAX_ROWS_PER_PERSON, MissingPerson

__all__ = [
    "BINS_RULE",
    "BUDGET_RULE",
    "CLASS_PRIOR_RULE",
    "COMMON_RULES",
    "EPSILON_RULE",
    "PERSON_RULES",
    "RANDOM_STATE_RULE",
    "SHUFFLE_RULES",
    "ParamRule",
    "make_choice_rule",
    "make_instance_rule",
    "make_number_rule",
]

MIN_EPSILON = 1e-9
"""Smallest epsilon accepted: below it noise is too wide to be drawn exactly."""


@dataclass(frozen=True)
class ParamRule:
    """The rule of one parameter: how to read it, and the words of its error.

    Parameters
    ----------
    description : str
        Allowed values in words, for the error message.
    parse_value : callable
        Returns the value as plain Python (NumPy scalars become numbers); raises ``TypeError``,
        ``ValueError`` or ``ArithmeticError`` where the rule is broken.
    error_class : type of DiscreetError
        What the user sees.
    allows_none : bool, default False
        Whether None is allowed, too, and stays as it is.
    """

    description: str
    parse_value: Callable[[Any], Any]
    error_class: type[DiscreetError] = SchemaError
    allows_none: bool = False

    def check_value(self, param_name: str, value: Any) -> Any:
        """Return the plain value, or raise an error that names parameter, value and rule."""
        if value is None and self.allows_none:
            return None
        try:
            return self.parse_value(value)
        except (FormatError, SchemaError) as error:  # keep the schema's or ledger's reason
            raise type(error)(
                f"{param_name}={_format_short(value)}; write {self.description} ({error})"
            ) from None
        except (TypeError, ValueError, ArithmeticError):
            raise self.error_class(
                f"{param_name}={_format_short(value)}; write {self.description}"
            ) from None

    def allow_none(self, meaning: str) -> ParamRule:
        """The same rule, with None allowed as well."""
        return replace(self, description=f"{self.description}, or None {meaning}", allows_none=True)


def make_number_rule(
    description: str, is_allowed: Callable[[float], bool], error_class: Any = SchemaError
) -> ParamRule:
    """A real number, Python's or NumPy's; not text, and not true or false."""

    def parse_number(value: Any) -> float:
        real_value = _parse_real(value)
        _require_valid(is_allowed(real_value))
        return real_value

    return ParamRule(description, parse_number, error_class)


def make_integer_rule(
    description: str, minimum: int, allowed_names: Sequence[str] = ()
) -> ParamRule:
    """A whole number of at least ``minimum``, or one of the names."""

    def parse_integer(value: Any) -> Any:
        if isinstance(value, str):
            return _require_valid(value in allowed_names, str(value))
        return _require_valid(minimum <= (integer_value := _parse_integer(value)), integer_value)

    return ParamRule(description, parse_integer)


def make_choice_rule(*values: Any, error_class: Any = SchemaError) -> ParamRule:
    """One of a few names or whole numbers."""

    def parse_choice(value: Any) -> Any:
        value_type: Any = str if isinstance(value, str) else Integral
        for allowed_value in values:
            is_same = (
                isinstance(allowed_value, value_type)
                and not isinstance(value, bool)
                and allowed_value == value
            )
            if is_same:
                return allowed_value
        raise ValueError

    *first_texts, last_text = map(repr, values)
    return ParamRule(
        f"{', '.join(first_texts)} or {last_text}" if first_texts else last_text,
        parse_choice,
        error_class,
    )


def make_instance_rule(
    description: str, get_types: Callable[[], Any], *allowed_names: str
) -> ParamRule:
    """An object of some kinds, imported only when needed, or one of the names."""

    def parse_instance(value: Any) -> Any:
        if isinstance(value, str):
            return _require_valid(value in allowed_names, str(value))
        return _require_valid(value is not None and isinstance(value, get_types()), value)

    return ParamRule(description, parse_instance)


def make_flag_rule() -> ParamRule:
    """True or False."""

    def parse_flag(value: Any) -> bool:
        _require_valid(isinstance(value, (bool, np.bool_)))
        return bool(value)

    return ParamRule("True or False", parse_flag)


def make_mapping_rule(description: str, parse_entry: Callable[[Any], Any]) -> ParamRule:
    """A mapping of feature names to something."""

    def parse_mapping(value: Any) -> dict[str, Any]:
        _require_valid(
            isinstance(value, Mapping) and all(isinstance(entry_name, str) for entry_name in value)
        )
        return {
            str(entry_name): parse_entry(entry_value) for entry_name, entry_value in value.items()
        }

    return ParamRule(description, parse_mapping)


def parse_positive(value: Any) -> float:
    """A finite number above zero."""
    real_value = _parse_real(value)
    _require_valid(0 < real_value < math.inf)
    return real_value


def _parse_real(value: Any) -> float:
    _require_valid(isinstance(value, Real) and not isinstance(value, bool))
    float(value)  # 10**400 does not fit a double: OverflowError
    return float(to_shortest_float(value))


def _parse_integer(value: Any) -> int:
    _require_valid(isinstance(value, Integral) and not isinstance(value, bool))
    return int(value)


def _require_valid(is_valid: Any, value: Any = None) -> Any:
    if not is_valid:
        raise ValueError
    return value


def _format_short(value: Any) -> str:
    """The value's repr, shortened to one line."""
    short_repr = reprlib.Repr()
    short_repr.maxstring = short_repr.maxother = short_repr.maxlong = 60
    return " ".join(
        short_repr.repr(value.item() if isinstance(value, np.generic) else value).split()
    )


def _parse_bins(value: Any) -> Any:
    if isinstance(value, Mapping):
        return make_mapping_rule("", _parse_feature_bins).parse_value(value)
    return _require_valid(1 <= (bin_count := _parse_integer(value)) <= MAX_BINS, bin_count)


def _parse_feature_bins(value: Any) -> Any:
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        return [
            _require_valid(math.isfinite(finite_point := _parse_real(cut_point)), finite_point)
            for cut_point in value
        ]
    return _parse_bins(_parse_integer(value))


def _parse_column_choice(value: Any) -> Any:
    if isinstance(value, str):
        return _require_valid(value in ("from_dtype", "all", "none"), value)
    if value is None:
        return []
    column_choice = np.asarray(value)
    _require_valid(
        column_choice.ndim == 1 and (column_choice.size == 0 or column_choice.dtype.kind in "biuU")
    )
    return column_choice.tolist()


def _parse_class_prior(value: Any) -> Any:
    class_prior = np.asarray(value, dtype=float)
    _require_valid(
        class_prior.ndim == 1 and (class_prior >= 0).all() and np.isclose(class_prior.sum(), 1.0)
    )
    return class_prior


def _parse_random_state(value: Any) -> Any:
    random_types = (Random, np.random.Generator, np.random.RandomState)
    if value is None or isinstance(value, random_types):
        return value
    return _require_valid((seed := _parse_integer(value)) >= 0, seed)


def _open_ledger(value: Any) -> Ledger:
    ledger = Ledger.coerce(value)
    ledger.read()  # raises unless the ledger exists and is readable
    return ledger


EPSILON_RULE = make_number_rule(
    f"a number of at least {MIN_EPSILON:g}, or math.inf for no privacy",
    lambda epsilon: epsilon >= MIN_EPSILON,
    PrivacyError,
)
BINS_RULE = ParamRule(
    f"a whole number from 1 to {MAX_BINS}, or a mapping of feature names to such numbers or to "
    "lists of cut points",
    _parse_bins,
)
AUTO_BINS_RULE = ParamRule(
    f"'auto', {BINS_RULE.description}",
    lambda value: value if isinstance(value, str) and value == "auto" else _parse_bins(value),
)
CLASS_PRIOR_RULE = ParamRule(
    "one probability for each class, none negative, with the sum 1", _parse_class_prior
).allow_none("for the learnt one")
RANDOM_STATE_RULE = ParamRule(
    "None for cryptographic randomness or, to simulate, a seed of at least 0, a numpy Generator or "
    "a discreet Random",
    _parse_random_state,
)
LIKELIHOOD_RULE = make_choice_rule("gaussian", "truncated")
POSTPROCESS_RULE = make_choice_rule(*get_args(Postprocess)).allow_none(
    "for 'bayes' where there is noise"
)
BUDGET_RULE = ParamRule("a Ledger, the path of one, or a MemoryLedger", _open_ledger).allow_none(
    "to be warned about what fits add up to"
)
PERSON_RULES: Mapping[str, ParamRule] = {
    "person": ParamRule(
        "the name of the column that says whose a row is",
        lambda value: _require_valid(isinstance(value, str) and value, str(value)),
    ).allow_none("where each row is a person"),
    "rows_per_person": ParamRule(
        f"how many rows of one person may be used, from 1 to {MAX_ROWS_PER_PERSON}",
        lambda value: _require_valid(
            1 <= (limit := _parse_integer(value)) <= MAX_ROWS_PER_PERSON, limit
        ),
        PrivacyError,
    ).allow_none("where each row is a person"),
    "missing_person": make_choice_rule(*get_args(MissingPerson)),
    "person_weighting": make_flag_rule(),
}
SHUFFLE_RULES: Mapping[str, ParamRule] = {
    "shuffled": make_flag_rule(),
    "delta": make_number_rule(
        "a number between 0 and 1", lambda delta: 0 < delta < 1, PrivacyError
    ),
}
COMMON_RULES: Mapping[str, ParamRule] = {
    "schema": ParamRule("a Schema, the path of one, or a mapping", Schema.coerce).allow_none(
        "to take it from the data"
    ),
    "categorical_features": ParamRule(
        "'from_dtype', 'all', 'none', or a list of names, indices or true/false",
        _parse_column_choice,
    ),
    "missing": make_choice_rule("skip", "category"),
    "unseen": make_choice_rule("error", "other"),
}
