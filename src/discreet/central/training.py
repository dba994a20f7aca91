"""Dispatch to the central training methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from typing import Literal, TypedDict, get_args

import numpy as np

from discreet.central.budget import Budget, CentralSettings, resolve_feature_weights
from discreet.central.corrections import MAX_PAIRS
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy.guarantee import Account, Guarantee, require_paid
from discreet.randomness import Random, SeededRandom
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.statistics import Statistics
from discreet.tables.contributions import ContributionBound, Influence
from discreet.tables.source import InMemorySource, Source

__all__ = [
    "UNSOUND_METHODS",
    "Method",
    "TrainingRequest",
    "dry_run",
    "train",
    "validate_request",
]

UNSOUND_METHODS = {
    "global-published": "as published, the noise is scaled by exact class sizes, which leak; what "
    "was asked for is not kept",
}
"""Methods that exist for comparison only, and why their guarantee is void."""

Method = Literal["histogram", "moments", "global", "global-published", "smooth", "trimmed"]


class TrainingRequest(TypedDict):
    """Privacy parameters and settings of a training."""

    epsilon: float
    delta: float
    method: Method
    settings: CentralSettings


SMOOTH_METHODS = ("smooth", "trimmed")
MIN_SPAN = 1e-60  # of public bounds, in units of the feature: its fourth power is a normal float
MAX_SPAN = 1e60  # likewise
MAX_DIVISIONS = 1 << 10  # parts into which bounds must be divisible: most bins that may be asked
_METHOD_FUNCTIONS = {
    "histogram": ("histogram", "release_histogram"),
    "moments": ("moments", "release_moments"),
    "global": ("moments", "release_global"),
    "global-published": ("moments", "release_global_published"),
    "smooth": ("smooth", "release_smooth"),
    "trimmed": ("smooth", "release_trimmed"),
}


def _is_laplace_noise_smaller(
    budget: Budget, schema: Schema, method: Method, settings: CentralSettings
) -> bool:
    """Whether noise without delta is less than with it: so for few numbers and large epsilon.

    Of d shares, Laplace noise has the variance 2 d^2 / epsilon^2 and Gaussian noise d / (2 rho).
    Corrections add shares, if there are people enough: that is known when class counts are.
    """
    share_count = len(schema.features)
    if method == "histogram" and settings.selection and settings.corrections:
        share_count = 2 * share_count + min(MAX_PAIRS, math.comb(share_count, 2))
    return 4 * share_count * budget.total < Fraction(budget.epsilon) ** 2


def validate_request(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    method: Method,
    settings: CentralSettings,
    bound: ContributionBound | None = None,
) -> Budget | None:
    """Refuse an invalid request before a row is read or a ledger is charged.

    Gives the budget, or None where nothing is promised. It depends on nothing but public choices.
    """
    if bound is not None:
        _check_bound(bound, schema, method)
    if method not in _METHOD_FUNCTIONS:
        raise PrivacyError(f"method={method!r}; write one of {', '.join(get_args(Method))}")
    for feature in schema.features:
        if not isinstance(feature, Numeric):
            continue
        if not feature.is_bounded:
            raise SchemaError(
                f"{feature.name} has no public bounds, and how far one person can move it is "
                "unknown; give it the lower and upper bounds that you know"
            )
        bound_width = feature.upper - feature.lower
        finest_width = MAX_DIVISIONS * math.ulp(max(abs(feature.lower), abs(feature.upper)))
        if not max(MIN_SPAN, finest_width) <= bound_width <= MAX_SPAN:  # to be cut and squared
            distance_text = "close together" if bound_width < 1 else "far apart"
            raise SchemaError(
                f"{feature.name}: the public bounds [{feature.lower!r}, {feature.upper!r}] are "
                f"too {distance_text} to calculate with; state the feature and its bounds in "
                "another unit"
            )
    resolve_feature_weights(schema, settings.allocation, 1, 1)
    if isinstance(epsilon, (int, float)) and math.isinf(epsilon) and epsilon > 0:
        return None
    budget = Budget(epsilon, delta)
    if method in SMOOTH_METHODS:
        import_module("discreet.central.smooth").compute_noise_parameters(schema, budget, settings)
    elif budget.concentrated and _is_laplace_noise_smaller(budget, schema, method, settings):
        return Budget(epsilon)
    return budget


def _check_bound(bound: ContributionBound, schema: Schema, method: Method) -> None:
    """Refuse several rows per person where their influence has not been worked out."""
    bound.check_schema(schema)
    if method != "histogram" and bound.influence != Influence():
        raise PrivacyError(
            f"method={method!r}: how far several rows of one person move its statistics has not "
            "been worked out; use method='histogram', or rows_per_person=1"
        )


def dry_run(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    method: Method,
    settings: CentralSettings,
    bound: ContributionBound | None = None,
) -> Guarantee:
    """Train on an empty table, to find errors before anything is charged; gives its guarantee.

    Noise scales follow from public choices, so an empty table meets the same limits as any other,
    and what is promised does not depend on what comes out. What the schema cost is left out: it
    was charged before.
    """
    schema = replace(schema, inference=None)
    empty_columns = {name: np.empty(0, dtype=object) for name in schema.names}
    no_class_codes = np.empty(0, dtype=np.int32)
    return train(
        InMemorySource(schema, empty_columns, no_class_codes, bound=bound, persons=[]),
        epsilon=epsilon,
        delta=delta,
        method=method,
        settings=settings,
        random=SeededRandom(0),
    ).guarantee


def train(
    source: Source,
    *,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "histogram",
    settings: CentralSettings,
    random: Random,
    charge: Callable[[Guarantee], Account | None] | None = None,
    has_ledger: bool = False,
) -> Statistics:
    """Validate, charge, release statistics, and refuse to release more than was charged.

    The release promises epsilon and delta; `estimate` makes the model.

    Parameters
    ----------
    source : Source
    epsilon : float
        ``math.inf`` for the same steps without noise, which promise nothing.
    delta : float, default 0
    method : {"histogram", "moments", "global", "global-published", "smooth", "trimmed"}
    settings : CentralSettings
    random : Random
    charge : callable, optional
        Pays for what is about to be promised, or raises. It is called once, before noise is drawn,
        and gives the account of the ledger that was charged, if there is one.
    has_ledger : bool, default False
        Whether ``charge`` pays from a ledger: then every limit of the noise and every value of the
        table is checked beforehand, so that nothing is paid for a training that would be refused.
    """
    schema, published_reason = source.schema, UNSOUND_METHODS.get(method, "")
    bound = source.bound
    budget = validate_request(
        schema, epsilon=epsilon, delta=delta, method=method, settings=settings, bound=bound
    )
    planned_rho = None
    if has_ledger:
        dry_guarantee = dry_run(
            schema, epsilon=epsilon, delta=delta, method=method, settings=settings, bound=bound
        )
        planned_rho = dry_guarantee.rho
        if budget is not None and budget.delta:  # of which noise without delta needs nothing
            planned_rho = dry_guarantee.compute_rho()
        source.count_statistics()
    planned_guarantee = (
        Guarantee.make_unprotected()
        if budget is None
        else _cover_persons(Guarantee(budget.epsilon, budget.delta, rho=planned_rho), bound)
    ).void_if(schema=schema, published_reason=published_reason)
    # the statistics include what their schema cost, which was charged when it was inferred
    stated_guarantee = planned_guarantee.include_schema(schema)
    account = None if charge is None else charge(planned_guarantee)
    if budget is None:
        released = _compute_without_noise(source, method, settings, random)
        guarantee = released.guarantee
    else:
        method_module, function_name = _METHOD_FUNCTIONS[method]
        release_method: Callable[[Source, Budget, CentralSettings, Random], Statistics] = getattr(
            import_module(f"discreet.central.{method_module}"), function_name
        )
        released = release_method(source, budget, settings, random)
        guarantee = _cover_persons(released.guarantee, bound).void_if(
            schema=schema, simulated=random.simulated, published_reason=published_reason
        )
    require_paid(guarantee, stated_guarantee, f"training by {method}")
    return replace(released, guarantee=replace(guarantee, account=account))


def _cover_persons(guarantee: Guarantee, bound: ContributionBound | None) -> Guarantee:
    """The guarantee of a release of which all noise is for all rows of a person."""
    if bound is None:
        return guarantee
    return replace(
        guarantee, unit=bound.unit, assumptions=(*guarantee.assumptions, *bound.assumptions)
    )


def _compute_without_noise(
    source: Source, method: Method, settings: CentralSettings, random: Random
) -> Statistics:
    """Statistics at an infinite epsilon: what the method tends to as epsilon grows.

    Without choices and corrections, the histogram's are those of plain Naive Bayes on bins.
    """
    if method != "histogram":
        from discreet.central import parametric

        return parametric.compute_exact_statistics(source, settings)
    from discreet.central import histogram
    from discreet.central.noiseless import NoiselessBudget

    if not (settings.selection or settings.corrections):
        return histogram.compute_exact_statistics(source, settings)
    if not source.is_scored:  # they are counted, but not scored
        settings = replace(settings, selection=False)
    # of more rows than can be scored a sample is; nothing has to be hidden from whoever foresees it
    sample_random = random if random.simulated else SeededRandom(0)
    return histogram.release_histogram(source, NoiselessBudget(), settings, sample_random)
