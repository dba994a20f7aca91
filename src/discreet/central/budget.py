"""The privacy budget: shares of one guarantee, added up as exact fractions, never exceeded.

Pure promises are shared as epsilon. A promise with delta is shared as rho (zero-concentrated DP),
which adds up as well. The whole is the rho of normal noise that just keeps epsilon and delta, and
of every share only a part may be used: what is sound however the whole is split, or, when all steps
are known, what the accountant computes for them (privacy/accountant.py).

`CentralSettings` are the choices of the user besides the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import PrivacyError
from discreet.privacy.accountant import (
    MAX_ACCOUNTED_EPSILON,
    ChoiceStep,
    NoiseStep,
    Promise,
    ReleaseStep,
    compute_gaussian_rho,
    find_usable_share,
    split_promise,
)
from discreet.privacy.guarantee import Charge, Guarantee
from discreet.privacy.rounding import convert_to_rho
from discreet.randomness import Random
from discreet.randomness.samplers import MAX_SCALE
from discreet.schema.cells import Bins
from discreet.schema.schema import Numeric, Schema

__all__ = [
    "MIN_VARIANCE",
    "PUBLIC_SCHEMA_ASSUMPTION",
    "Budget",
    "CentralSettings",
    "IntegerNoise",
    "list_schema_assumptions",
    "resolve_feature_weights",
    "split_budget",
]

MAX_STEPS_PER_PERSON = 1 << 12
"""Most rounding steps that one person may change; rounding stays far below the noise."""
MIN_VARIANCE = 1e-6
"""Floor of a noise variance, in squared counts, for numerical safety."""
MIN_DELTA = 1e-100
"""Smallest delta above 0: shares of it are computed in floats, which end near 1e-308."""
PUBLIC_SCHEMA_ASSUMPTION = "the schema was written without looking at the data"
PRICED_SCHEMA_ASSUMPTION = (
    "what the schema says is what was inferred for its price, or was known without the data, as "
    "the names and declared types of columns were"
)


@dataclass(frozen=True)
class CentralSettings:
    """Choices of the user besides epsilon and delta.

    Parameters
    ----------
    allocation : mapping of feature name to weight, optional
        Shares of the budget.
    bins : "auto", int or mapping
        How numeric features are cut.
    likelihood : {"gaussian", "truncated"}
        Density of numeric features where one is fitted.
    selection : bool
        Whether a part of the budget may choose features and scorings.
    corrections : bool
        Whether, with people enough, a part may count what the model gets wrong.
    noise : Any
        Noise law of the smooth methods.
    assumptions : tuple of str
        What the promise rests on.
    """

    allocation: Mapping[str, Any] | None = None
    bins: Literal["auto"] | Bins = "auto"
    likelihood: Literal["gaussian", "truncated"] = "gaussian"
    selection: bool = True
    corrections: bool = True
    noise: Any = None
    assumptions: tuple[str, ...] = (PUBLIC_SCHEMA_ASSUMPTION,)


def list_schema_assumptions(schema: Schema) -> tuple[str, ...]:
    """List what a promise assumes about its schema; nothing where it is void because of it."""
    if schema.inferred:
        return ()
    return (PUBLIC_SCHEMA_ASSUMPTION if schema.inference is None else PRICED_SCHEMA_ASSUMPTION,)


def split_budget(weights: Mapping[str, Any], total_cost: Fraction) -> dict[str, Fraction]:
    """Split a cost in proportion to positive weights; the parts add up to exactly the whole."""
    exact_weights = {name: Fraction(weight) for name, weight in weights.items()}
    weight_total = sum(exact_weights.values(), Fraction(0))
    return {name: total_cost * weight / weight_total for name, weight in exact_weights.items()}


@dataclass(frozen=True)
class IntegerNoise:
    """Exact noise for whole numbers of which one person changes a few, each by a little.

    Parameters
    ----------
    parameter : Fraction
        The scale of a discrete Laplace law, or the variance parameter of a discrete Gaussian.
    gaussian : bool
    rounding_step : int
        Numbers are rounded to multiples of it before the noise, which is on the same multiples.
    min_variance : float
        Floor of the variance that released tables carry.
    """

    parameter: Fraction
    gaussian: bool = False
    rounding_step: int = 1
    min_variance: float = MIN_VARIANCE

    @property
    def variance(self) -> float:
        """Variance of one draw; of the Gaussian, its parameter, which is never less."""
        noise_scale = float(self.parameter)
        if self.gaussian or noise_scale == 0:
            return noise_scale * self.rounding_step**2
        if noise_scale < 0.01:  # a draw other than zero is next to impossible
            return 0.0
        return 1 / (2 * math.sinh(1 / (2 * noise_scale)) ** 2)

    def add(self, numbers: NDArray[Any], random: Random) -> NDArray[Any]:
        """Add an independent draw of noise to each whole number."""
        draw_noise = random.discrete_gaussian if self.gaussian else random.discrete_laplace
        noise_draws = draw_noise(self.parameter, numbers.size).reshape(numbers.shape)
        # counts of float type are whole; floor division rounds to the grain below
        return np.asarray(
            self.rounding_step * (numbers.astype(np.int64) // self.rounding_step + noise_draws)
        )


@dataclass
class Budget:
    """The part of a privacy guarantee that has not been spent.

    Parameters
    ----------
    epsilon, delta : float
        The promise as a whole.
    basic_composition : bool, default False
        Share epsilon and delta themselves instead of rho, for noise that is not concentrated.
    pure_part : Budget, optional
        A pure budget of which this one is the rest: what it spent is added to the promise.

    Attributes
    ----------
    concentrated : bool
        Whether shares are rho instead of epsilon.
    total, remaining : Fraction
        All that may be spent, and what has not been spent.
    usable_share : Fraction
        What part of a share of rho noise and choices really have.
    """

    epsilon: float
    delta: float = 0.0
    basic_composition: bool = False
    charges: list[tuple[str, Fraction]] = field(default_factory=list)
    pure_part: Budget | None = None

    def __post_init__(self) -> None:
        is_number = isinstance(self.epsilon, (int, float)) and not isinstance(self.epsilon, bool)
        if not is_number or not self.epsilon > 0:
            raise PrivacyError(
                f"epsilon is {self.epsilon!r}; give a positive number, or inf for no privacy"
            )
        if not 0 <= self.delta < 1:
            raise PrivacyError(f"delta is {self.delta!r}; it must be at least 0 and below 1")
        if 0 < self.delta < MIN_DELTA:
            raise PrivacyError(
                f"delta is {self.delta!r}; give at least {MIN_DELTA:g}, or 0 for epsilon alone"
            )
        if math.isinf(self.epsilon):
            raise PrivacyError("an infinite epsilon needs no budget: nothing is protected")
        self.concentrated = self.delta > 0 and not self.basic_composition
        self.total = Fraction(self.epsilon)
        self.usable_share = Fraction(1)
        self._planned_steps: list[ReleaseStep] | None = None
        if self.concentrated:
            # zCDP composes whatever the steps are, also where shares depend on earlier outcomes
            safe_rho = min(convert_to_rho(*promise) for promise in self._promises)
            self.total = safe_rho
            if max(epsilon for epsilon, _ in self._promises) <= MAX_ACCOUNTED_EPSILON:
                gaussian_rho = min(compute_gaussian_rho(*promise) for promise in self._promises)
                self.total = max(Fraction(gaussian_rho), safe_rho)
            self.usable_share = safe_rho / self.total
        self.remaining = self.total - sum(cost for _, cost in self.charges)
        if self.total <= 0:
            raise PrivacyError(f"epsilon {self.epsilon!r} with delta {self.delta:g} leaves nothing")

    @property
    def _promises(self) -> tuple[Promise, ...]:
        """Epsilons and deltas that all that is paid from here must keep."""
        if self.pure_part is None:
            return ((self.epsilon, self.delta),)
        spent_epsilon = _round_up(self.pure_part.total - self.pure_part.remaining)
        return split_promise(self.pure_part.epsilon, self.delta, spent_epsilon)

    def compute_delta_share(self, cost: Fraction) -> float:
        """The share of delta that goes with a share of epsilon."""
        return _round_down(cost / self.total * Fraction(self.delta))

    def with_delta(self, delta: float) -> Budget:
        """The rest of a pure budget as one with a delta; the epsilons of both parts add up."""
        spent_budget = replace(self, charges=list(self.charges))
        return Budget(_round_down(self.remaining), delta, pure_part=spent_budget)

    def spend(self, name: str, cost: Fraction) -> Fraction:
        """Spend a part of the budget; refuse more than what remains."""
        if cost <= 0 or cost > self.remaining:
            raise PrivacyError(
                f"{name}: costs {float(cost):g}, but only {float(self.remaining):g} is left"
            )
        self.charges.append((name, cost))
        self.remaining -= cost
        return cost

    def calibrate(self, steps: Sequence[ReleaseStep]) -> None:
        """Find out how much of each share may be used if these are all steps, in this order.

        Afterwards nothing but these steps can be paid for, in this order; some may be left out.

        Parameters
        ----------
        steps : sequence of ReleaseStep
            They depend on public choices and on what was released before.
        """
        if not self.concentrated:
            return
        if sum(Fraction(step.rho) for step in steps) > self.remaining or self.charges:
            raise PrivacyError("these steps cost more than is left, or come too late; report this")
        self.usable_share = max(self.usable_share, find_usable_share(tuple(steps), self._promises))
        self._planned_steps = list(steps)

    def plan_noise(self, cost: Fraction, sensitivity: int = 1, coordinates: int = 1) -> NoiseStep:
        """The step of noise for numbers, some of which one person changes.

        Parameters
        ----------
        cost : Fraction
        sensitivity : int, default 1
            By how much in the Euclidean norm.
        coordinates : int, default 1
            How many numbers one person changes.
        """
        rounding_step = -(-sensitivity // MAX_STEPS_PER_PERSON)
        max_change = (
            sensitivity if rounding_step == 1 else -(-sensitivity // rounding_step) + coordinates
        )
        return NoiseStep(cost, max_change, coordinates)

    def spend_on_noise(
        self, name: str, cost: Fraction, sensitivity: int = 1, coordinates: int = 1
    ) -> IntegerNoise:
        """Spend a part on noise for numbers, some of which one person changes by ``sensitivity``.

        Laplace: scale = sensitivity / epsilon, where the changes add up to the sensitivity.
        Gaussian: variance = sensitivity^2 / (2 rho), on a grain that keeps the variance small;
        rounding to it may add one to the sensitivity. ``coordinates`` numbers are changed by one
        person.
        """
        self.spend(name, cost)
        noise = IntegerNoise(Fraction(sensitivity) / cost)
        if self.concentrated:
            step = self.plan_noise(cost, sensitivity, coordinates)
            self._require_planned(step)
            noise = IntegerNoise(
                Fraction(step.sensitivity) ** 2 / (2 * cost * self.usable_share),
                gaussian=True,
                rounding_step=-(-sensitivity // MAX_STEPS_PER_PERSON),
            )
        if noise.parameter > MAX_SCALE:
            raise PrivacyError(
                "epsilon is too small here: the noise would be wider than can be drawn exactly; "
                "give a larger epsilon, or use the method histogram"
            )
        return noise

    def _require_planned(self, step: ReleaseStep) -> None:
        """Refuse a step that the accountant did not know of."""
        if self._planned_steps is None:
            return
        if step not in self._planned_steps:
            raise PrivacyError(f"{step} was not planned; nothing is released: please report this")
        del self._planned_steps[: self._planned_steps.index(step) + 1]

    def compute_noise_scale(self, cost: Fraction) -> float:
        """Scale of the Laplace law with about the variance of counts released at this cost."""
        return 0.5 / math.sqrt(cost) if self.concentrated else 1 / float(cost)

    def compute_selection_epsilon(self, cost: Fraction) -> float:
        """The epsilon of an exponential mechanism of this cost."""
        if not self.concentrated:
            return float(cost)
        return math.sqrt(8 * float(cost * self.usable_share))

    def spend_on_selection(self, name: str, cost: Fraction) -> Fraction | float:
        """Spend a part on an exponential mechanism; gives the epsilon of its weights.

        A bounded-range epsilon is epsilon^2/8-zCDP: Cesar, Rogers 2021, lemma 3.4.
        """
        self.spend(name, cost)
        if not self.concentrated:
            return cost
        self._require_planned(ChoiceStep(cost))
        return Fraction(self.compute_selection_epsilon(cost) * (1 - 1e-12))

    def make_guarantee(
        self, assumptions: Sequence[str], alternative_budget: Budget | None = None
    ) -> Guarantee:
        """The guarantee with every charge by name; charges never exceed the total.

        Parameters
        ----------
        assumptions : sequence of str
            What the promise rests on.
        alternative_budget : Budget, optional
            What would have been spent if a released number had been another one. The promise is
            about the mechanism and not about what came out of it: it is the weaker of the two.
        """
        outcomes = [self] if alternative_budget is None else [self, alternative_budget]
        budget_parts = [self] if self.pure_part is None else [self.pure_part, self]
        any_concentrated = any(outcome.concentrated for outcome in outcomes)
        return Guarantee(
            max(
                outcome.epsilon if outcome.pure_part is None else outcome.pure_part.epsilon
                for outcome in outcomes
            ),
            max(outcome.delta for outcome in outcomes),
            assumptions=tuple(assumptions),
            rho=_round_up(max(outcome.rho for outcome in outcomes)) if any_concentrated else None,
            # a share of rho is stated as the same share of epsilon
            charges=tuple(
                Charge(
                    name,
                    _round_down(cost / budget_part.total * Fraction(budget_part.epsilon)),
                    budget_part.compute_delta_share(cost),
                )
                for budget_part in budget_parts
                for name, cost in budget_part.charges
            ),
        )

    @property
    def rho(self) -> Fraction:
        """The rho for which the whole is rho-zCDP.

        What is epsilon-DP is epsilon^2/2-zCDP (Bun, Steinke 2016, proposition 1.4), and the rhos
        of what comes one after the other add up (lemma 2.3). After a pure part, the steps and how
        much of their shares is used may depend on what that has released: it is all of them then.
        """
        own_rho = self.total**2 / 2
        if self.concentrated:
            own_rho = self.total * (self.usable_share if self.pure_part is None else 1)
        return own_rho + (
            0
            if self.pure_part is None
            else (self.pure_part.total - self.pure_part.remaining) ** 2 / 2
        )


def _round_down(fraction: Fraction) -> float:
    """The nearest float that is not larger."""
    nearest_float = float(fraction)
    return (
        nearest_float if Fraction(nearest_float) <= fraction else math.nextafter(nearest_float, 0.0)
    )


def _round_up(fraction: Fraction) -> float:
    """The nearest float that is not smaller."""
    nearest_float = float(fraction)
    return (
        nearest_float
        if Fraction(nearest_float) >= fraction
        else math.nextafter(nearest_float, math.inf)
    )


def resolve_feature_weights(
    schema: Schema, allocation: Any, numeric_weight: int, categorical_weight: int
) -> dict[str, Any]:
    """Weights of the features' shares: by kind, or as the user allocates them."""
    feature_weights: dict[str, Any] = {
        feature.name: numeric_weight if isinstance(feature, Numeric) else categorical_weight
        for feature in schema.features
    }
    if allocation is None:
        return feature_weights
    if not isinstance(allocation, Mapping):
        raise PrivacyError(f"allocation is {allocation!r}; write {{'age': 2, 'sex': 1}}")
    for name, weight in allocation.items():
        schema[name]  # an unknown name is an error that lists the known ones
        is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not is_number or not 0 < weight < math.inf:
            raise PrivacyError(f"allocation of {name} is {weight!r}; give a positive number")
        feature_weights[name] = weight
    return feature_weights
