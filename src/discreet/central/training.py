"""One door to all central methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import get_args

from discreet.central.budget import Budget
from discreet.central.settings import PUBLISHED, Method, Settings
from discreet.central.source import Source
from discreet.errors import PrivacyError
from discreet.privacy import Guarantee
from discreet.randomness import Random
from discreet.schema import Schema
from discreet.statistics import Statistics

__all__ = ["promised", "train"]

SMOOTH = ("smooth", "trimmed")
_HOME = {
    "histogram": ("histogram", "histogram"),
    "moments": ("moments", "moments"),
    "global": ("global_sensitivity", "sound"),
    "global-published": ("global_sensitivity", "published"),
    "smooth": ("smooth", "smooth"),
    "trimmed": ("trimmed", "trimmed"),
}


def _laplace_is_less(budget: Budget, source: Source) -> bool:
    """Whether noise without delta is less than with it: so for few features and large epsilon.

    Of d shares, Laplace noise has the variance 2 d^2 / epsilon^2 and Gaussian noise d / (2 rho).
    """
    parts = len(source.schema.features)
    return 4 * parts * budget.whole < Fraction(budget.epsilon) ** 2


def promised(schema: Schema, epsilon: float, delta: float, method: Method) -> Guarantee:
    """What a training would promise, before anything is drawn or paid."""
    promise = Guarantee.nothing() if math.isinf(epsilon) else Guarantee(epsilon, delta)
    return promise.under(schema=schema, published=PUBLISHED.get(method, ""))


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
    if method not in _HOME:
        raise PrivacyError(f"method={method!r}; write one of {', '.join(get_args(Method))}")
    if isinstance(epsilon, (int, float)) and math.isinf(epsilon) and epsilon > 0:
        home = "histogram" if method == "histogram" else "parametric"
        limit: Callable[[Source, Settings], Statistics] = import_module(
            f"discreet.central.{home}"
        ).exact
        return limit(source, settings)
    budget = Budget(epsilon, delta)
    if budget.concentrated and method not in SMOOTH and _laplace_is_less(budget, source):
        budget = Budget(epsilon)
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
