"""The limit of the default method as epsilon grows: the same steps, without noise.

Shares are those of a very large epsilon, so that everything that enough people allow takes place:
all features, the finest bins, all corrections, the choice of a scoring and of a temperature. Noise
is left out, and a choice takes the best candidate, of equally good ones the first. So what the
method does at a large epsilon tends to what it does here. Nothing is promised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from discreet.central.budget import Budget, IntegerNoise
from discreet.privacy.guarantee import Guarantee
from discreet.randomness import Random

__all__ = ["NoiselessBudget"]

PLANNED_EPSILON = 2.0**40
"""The epsilon that steps are planned with: beyond it no plan changes any more."""


@dataclass(frozen=True)
class AbsentNoise(IntegerNoise):
    """No noise: numbers, whole or not, stay as they are."""

    def add(self, numbers: NDArray[Any], random: Random) -> NDArray[Any]:
        """The numbers themselves."""
        return numbers


class NoiselessBudget(Budget):
    """Pays for every step, and neither noise nor chance is drawn."""

    def __init__(self) -> None:
        super().__init__(PLANNED_EPSILON)

    def spend_on_noise(
        self, name: str, cost: Fraction, sensitivity: int = 1, coordinates: int = 1
    ) -> IntegerNoise:
        """Spend a part; gives noise that is none."""
        self.spend(name, cost)
        return AbsentNoise(Fraction(0), min_variance=0.0)

    def spend_on_selection(self, name: str, cost: Fraction) -> float:
        """Spend a part; with infinite weights an exponential mechanism takes the best."""
        self.spend(name, cost)
        return math.inf

    def compute_selection_epsilon(self, cost: Fraction) -> float:
        """Infinite: all rows at hand are looked at."""
        return math.inf

    def make_guarantee(
        self, assumptions: Sequence[str], alternative_budget: Budget | None = None
    ) -> Guarantee:
        """Nothing is promised."""
        return Guarantee.make_unprotected()
