"""Dispatch to the central training methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np

from discreet.central.budget import Budget, Settings, weights_of
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy import Account, Guarantee, require_paid
from discreet.randomness import Random, SeededRandom
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics
from discreet.tables.source import Columns, Source

__all__ = [
    "PUBLISHED",
    "Method",
    "Request",
    "check",
    "promised",
    "rehearse",
    "train",
    "train_and_charge",
]

PUBLISHED = {
    "global-published": "as published, the noise is scaled by exact class sizes, which leak; what "
    "was asked for is not kept",
}
"""Methods that exist for comparison only, and why their guarantee is void."""

Method = Literal["histogram", "moments", "global", "global-published", "smooth", "trimmed"]


class Request(TypedDict):
    """Privacy parameters and settings of a training."""

    epsilon: float
    delta: float
    method: Method
    settings: Settings


SMOOTH = ("smooth", "trimmed")
SMALLEST_SPAN = (
    1e-60  # of public bounds, in units of the feature: its fourth power is a normal float
)
LARGEST_SPAN = 1e60  # likewise
FINEST_CUTS = 1 << 10  # parts into which bounds must be divisible: the most bins that may be asked
_HOME = {
    "histogram": ("histogram", "histogram"),
    "moments": ("moments", "moments"),
    "global": ("moments", "sound"),
    "global-published": ("moments", "published"),
    "smooth": ("smooth", "smooth"),
    "trimmed": ("smooth", "trimmed"),
}


def _laplace_is_less(budget: Budget, schema: Schema) -> bool:
    """Whether noise without delta is less than with it: so for few features and large epsilon.

    Of d shares, Laplace noise has the variance 2 d^2 / epsilon^2 and Gaussian noise d / (2 rho).
    """
    return 4 * len(schema.features) * budget.whole < Fraction(budget.epsilon) ** 2


def _check_bounds(feature: Numeric) -> None:
    """Refuse bounds that are missing, or between which floats cannot be cut or squared."""
    if not feature.bounded:
        raise SchemaError(
            f"{feature.name} has no public bounds, and how far one person can move it is "
            "unknown; give it the lower and upper bounds that you know"
        )
    span = feature.upper - feature.lower
    finest = FINEST_CUTS * math.ulp(max(abs(feature.lower), abs(feature.upper)))
    if not max(SMALLEST_SPAN, finest) <= span <= LARGEST_SPAN:
        far = "close together" if span < 1 else "far apart"
        raise SchemaError(
            f"{feature.name}: the public bounds [{feature.lower!r}, {feature.upper!r}] are too "
            f"{far} to calculate with; state the feature and its bounds in another unit"
        )


def check(
    schema: Schema, *, epsilon: float, delta: float, method: Method, settings: Settings
) -> Budget | None:
    """Refuse an invalid request before a row is read or a ledger is charged.

    Gives the budget, or None where nothing is promised. It depends on nothing but public choices.
    """
    if method not in _HOME:
        raise PrivacyError(f"method={method!r}; write one of {', '.join(get_args(Method))}")
    for feature in schema.features:
        if isinstance(feature, Numeric):
            _check_bounds(feature)
    weights_of(schema, settings.allocation, 1, 1)
    if isinstance(epsilon, (int, float)) and math.isinf(epsilon) and epsilon > 0:
        return None
    budget = Budget(epsilon, delta)
    if method in SMOOTH:
        import_module("discreet.central.smooth").scales(schema, budget, settings)
    elif budget.concentrated and _laplace_is_less(budget, schema):
        return Budget(epsilon)
    return budget


def rehearse(
    schema: Schema, *, epsilon: float, delta: float, method: Method, settings: Settings
) -> None:
    """Train on an empty table and discard the result, to find errors before anything is charged.

    Noise scales follow from public choices, so an empty table meets the same limits as any other.
    """
    nobody = {name: np.empty(0, dtype=object) for name in schema.names}
    source = Columns(schema, nobody, np.empty(0, dtype=np.int32))
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "method": method}
    train(source, **asked, settings=settings, random=SeededRandom(0))


def promised(schema: Schema, budget: Budget | None, method: Method) -> Guarantee:
    """The guarantee of a training with this budget, from :func:`validate_request`."""
    promise = Guarantee.nothing()
    if budget is not None:
        promise = Guarantee(budget.epsilon, budget.delta)
    return promise.under(schema=schema, published=PUBLISHED.get(method, ""))


def train_and_charge(
    source: Source,
    charge: Callable[[Guarantee], Account | None] | None,
    *,
    has_ledger: bool,
    random: Random,
    **asked: Unpack[Request],
) -> Statistics:
    """Validate, charge, train, and refuse to release more than was charged.

    Parameters
    ----------
    source : Source
    charge : callable, optional
        Pays for what is about to be promised, or raises. It is called once, before noise is drawn,
        and gives the account of the ledger that was charged, if there is one.
    has_ledger : bool
        Whether ``charge`` pays from a ledger: then every limit of the noise and every value of the
        table is checked beforehand, so that nothing is paid for a training that would be refused.
    random : Random
    **asked
        The ``epsilon``, ``delta``, ``method`` and ``settings`` of :func:`train`.
    """
    budget = check(source.schema, **asked)
    if has_ledger:
        rehearse(source.schema, **asked)
        source.count()
    planned = promised(source.schema, budget, asked["method"])
    account = None if charge is None else charge(planned)
    released = train(source, **asked, random=random)
    require_paid(released.guarantee, planned, f"training by {asked['method']}")
    return replace(released, guarantee=replace(released.guarantee, account=account))


def train(
    source: Source,
    *,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "histogram",
    settings: Settings,
    random: Random,
) -> Statistics:
    """Release statistics under a promise of epsilon and delta; `estimate` makes the model.

    Parameters
    ----------
    source : Source
    epsilon : float
        ``math.inf`` for the exact binned classifier, which promises nothing.
    delta : float, default 0
    method : {"histogram", "moments", "global", "global-published", "smooth", "trimmed"}
    settings : Settings
    random : Random
    """
    budget = check(source.schema, epsilon=epsilon, delta=delta, method=method, settings=settings)
    if budget is None:
        home = "histogram" if method == "histogram" else "parametric"
        limit: Callable[[Source, Settings], Statistics] = import_module(
            f"discreet.central.{home}"
        ).exact
        return limit(source, settings)
    module, name = _HOME[method]
    run: Callable[[Source, Budget, Settings, Random], Statistics] = getattr(
        import_module(f"discreet.central.{module}"), name
    )
    released = run(source, budget, settings, random)
    promise = released.guarantee.under(
        schema=source.schema,
        simulated=random.simulated,
        published=PUBLISHED.get(method, ""),
    )
    return replace(released, guarantee=promise)
