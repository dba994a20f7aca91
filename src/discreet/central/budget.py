"""The privacy budget: shares of one guarantee, added up as exact fractions, never exceeded.

Pure promises are shared as epsilon. A promise with delta is shared as rho (zero-concentrated DP),
which adds up as well; epsilon and delta are what the whole rho converts to.

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

from discreet.arrays import Integers
from discreet.encoding import Bins
from discreet.errors import PrivacyError
from discreet.privacy import Charge, Guarantee
from discreet.randomness import Random
from discreet.randomness.samplers import WIDEST
from discreet.schema import Numeric, Schema

__all__ = [
    "PUBLIC",
    "Budget",
    "Noise",
    "Settings",
    "rho_of",
    "shares",
    "weights_of",
]

COARSEST = 1 << 12
"""Most rounding steps that one person may change; rounding stays far below the noise."""
PUBLIC = "the schema was written without looking at the data"


@dataclass(frozen=True)
class Settings:
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
    assumptions: tuple[str, ...] = (PUBLIC,)


def rho_of(epsilon: float, delta: float) -> Fraction:
    """The largest rho whose rho-zCDP promise implies (epsilon, delta), rounded down.

    rho + 2 sqrt(rho ln(1/delta)) <= epsilon: Bun, Steinke 2016, proposition 1.3, solved for rho.

    >>> float(rho_of(1.0, 1e-6))
    0.017...
    """
    tail = math.log(1 / delta)
    root = epsilon / (math.sqrt(tail + epsilon) + math.sqrt(tail))
    return Fraction(root * root * (1 - 1e-12))


def shares(weights: Mapping[str, Any], whole: Fraction) -> dict[str, Fraction]:
    """Split a budget in proportion to positive weights; the parts add up to exactly the whole."""
    exact = {name: Fraction(weight) for name, weight in weights.items()}
    total = sum(exact.values(), Fraction(0))
    return {name: whole * weight / total for name, weight in exact.items()}


@dataclass(frozen=True)
class Noise:
    """Exact noise for whole numbers of which one person changes a few, each by a little.

    Parameters
    ----------
    parameter : Fraction
        The scale of a discrete Laplace law, or the variance parameter of a discrete Gaussian.
    gaussian : bool
    grain : int
        Numbers are rounded to multiples of it before the noise, which is on the same multiples.
    """

    parameter: Fraction
    gaussian: bool = False
    grain: int = 1

    @property
    def variance(self) -> float:
        """Variance of one draw; of the Gaussian, its parameter, which is never less."""
        scale = float(self.parameter)
        if self.gaussian or scale == 0:
            return scale * self.grain**2
        if scale < 0.01:  # a draw other than zero is next to impossible
            return 0.0
        return 1 / (2 * math.sinh(1 / (2 * scale)) ** 2)

    def add(self, numbers: NDArray[Any], random: Random) -> Integers:
        """Add an independent draw of noise to each whole number."""
        law = random.discrete_gaussian if self.gaussian else random.discrete_laplace
        drawn = law(self.parameter, numbers.size).reshape(numbers.shape)
        # counts of float type are whole; floor division rounds to the grain below
        return np.asarray(self.grain * (numbers.astype(np.int64) // self.grain + drawn))


@dataclass
class Budget:
    """The part of a privacy guarantee that has not been spent.

    Parameters
    ----------
    epsilon, delta : float
        The promise as a whole.
    basic : bool, default False
        Share epsilon and delta themselves instead of rho, for noise that is not concentrated.
    earlier : Budget, optional
        A pure budget of which this one is the rest: what it spent is added to the promise.

    Attributes
    ----------
    concentrated : bool
        Whether shares are rho instead of epsilon.
    whole, left : Fraction
        All that may be spent, and what has not been spent.
    """

    epsilon: float
    delta: float = 0.0
    basic: bool = False
    charges: list[tuple[str, Fraction]] = field(default_factory=list)
    earlier: Budget | None = None

    def __post_init__(self) -> None:
        real = isinstance(self.epsilon, (int, float)) and not isinstance(self.epsilon, bool)
        if not real or not self.epsilon > 0:
            raise PrivacyError(
                f"epsilon is {self.epsilon!r}; give a positive number, or inf for no privacy"
            )
        if not 0 <= self.delta < 1:
            raise PrivacyError(f"delta is {self.delta!r}; it must lie in [0, 1)")
        if math.isinf(self.epsilon):
            raise PrivacyError("an infinite epsilon needs no budget: nothing is protected")
        self.concentrated = self.delta > 0 and not self.basic
        whole = rho_of(self.epsilon, self.delta) if self.concentrated else Fraction(self.epsilon)
        self.whole, self.left = whole, whole - sum(cost for _, cost in self.charges)
        if self.whole <= 0:
            raise PrivacyError(f"epsilon {self.epsilon!r} with delta {self.delta:g} leaves nothing")

    def delta_of(self, cost: Fraction) -> float:
        """The share of delta that goes with a share of epsilon."""
        return _below(cost / self.whole * Fraction(self.delta))

    def loosened(self, delta: float) -> Budget:
        """The rest of a pure budget as one with a delta; the epsilons of both parts add up."""
        so_far = replace(self, charges=list(self.charges))
        return Budget(_below(self.left), delta, earlier=so_far)

    def spend(self, name: str, cost: Fraction) -> Fraction:
        """Spend a part of the budget; refuse more than what remains."""
        if cost <= 0 or cost > self.left:
            raise PrivacyError(f"{name}: {float(cost):g} was asked, {float(self.left):g} is left")
        self.charges.append((name, cost))
        self.left -= cost
        return cost

    def noise(self, name: str, cost: Fraction, sensitivity: int = 1) -> Noise:
        """Spend a part on noise for numbers, one of which one person changes by ``sensitivity``.

        Laplace: scale = sensitivity / epsilon. Gaussian: variance = sensitivity^2 / (2 rho), on a
        grain that keeps the variance small; rounding to it may add one to the sensitivity.
        """
        self.spend(name, cost)
        noise = Noise(Fraction(sensitivity) / cost)
        if self.concentrated:
            grain = -(-sensitivity // COARSEST)
            most = sensitivity if grain == 1 else -(-sensitivity // grain) + 1
            noise = Noise(Fraction(most) ** 2 / (2 * cost), gaussian=True, grain=grain)
        if noise.parameter > WIDEST:
            raise PrivacyError(
                "epsilon is too small here: the noise would be wider than can be drawn exactly; "
                "give a larger epsilon, or use the method histogram"
            )
        return noise

    def scale(self, cost: Fraction) -> float:
        """Scale of the Laplace law with the variance that counts released at this cost have."""
        return 0.5 / math.sqrt(cost) if self.concentrated else 1 / float(cost)

    def strength(self, cost: Fraction) -> float:
        """The epsilon of an exponential mechanism of this cost."""
        return math.sqrt(8 * float(cost)) if self.concentrated else float(cost)

    def selection(self, name: str, cost: Fraction) -> Fraction:
        """Spend a part on an exponential mechanism; gives the epsilon of its weights.

        A bounded-range epsilon is epsilon^2/8-zCDP: Cesar, Rogers 2021, lemma 3.4.
        """
        self.spend(name, cost)
        return Fraction(self.strength(cost) * (1 - 1e-12)) if self.concentrated else cost

    def guarantee(self, assumptions: Sequence[str], instead: Budget | None = None) -> Guarantee:
        """The guarantee with every charge by name; charges never exceed the total.

        Parameters
        ----------
        assumptions : sequence of str
            What the promise rests on.
        instead : Budget, optional
            What would have been spent if a released number had been another one. The promise is
            about the mechanism and not about what came out of it: it is the weaker of the two.
        """
        ways = [self] if instead is None else [self, instead]
        spent = [self] if self.earlier is None else [self.earlier, self]
        concentrated = any(way.concentrated for way in ways)
        return Guarantee(
            max(way.epsilon if way.earlier is None else way.earlier.epsilon for way in ways),
            max(way.delta for way in ways),
            assumptions=tuple(assumptions),
            rho=_above(max(way.rho for way in ways)) if concentrated else None,
            # a share of rho is stated as the same share of epsilon
            charges=tuple(
                Charge(name, _below(cost / one.whole * Fraction(one.epsilon)), one.delta_of(cost))
                for one in spent
                for name, cost in one.charges
            ),
        )

    @property
    def rho(self) -> Fraction:
        """The rho for which the whole is rho-zCDP.

        What is epsilon-DP is epsilon^2/2-zCDP (Bun, Steinke 2016, proposition 1.4), and the rhos
        of what comes one after the other add up (lemma 2.3).
        """
        whole = self.whole if self.concentrated else self.whole**2 / 2
        return whole + (
            0 if self.earlier is None else (self.earlier.whole - self.earlier.left) ** 2 / 2
        )


def _below(fraction: Fraction) -> float:
    """The nearest float that is not larger."""
    near = float(fraction)
    return near if Fraction(near) <= fraction else math.nextafter(near, 0.0)


def _above(fraction: Fraction) -> float:
    """The nearest float that is not smaller."""
    near = float(fraction)
    return near if Fraction(near) >= fraction else math.nextafter(near, math.inf)


def weights_of(schema: Schema, allocation: Any, numeric: int, categorical: int) -> dict[str, Any]:
    """Weights of the features' shares: by kind, or as the user allocates them."""
    weights: dict[str, Any] = {
        feature.name: numeric if isinstance(feature, Numeric) else categorical
        for feature in schema.features
    }
    if allocation is None:
        return weights
    if not isinstance(allocation, Mapping):
        raise PrivacyError(f"allocation is {allocation!r}; write {{'age': 2, 'sex': 1}}")
    for name, weight in allocation.items():
        schema[name]  # an unknown name is an error that lists the known ones
        real = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not real or not 0 < weight < math.inf:
            raise PrivacyError(f"allocation of {name} is {weight!r}; give a positive number")
        weights[name] = weight
    return weights
