"""Distributed discrete Laplace noise: any s - t of s shares suffice for the guarantee.

A share is the difference of two draws from the Polya law with shape 1/(s - t),

    P(k) = Gamma(k + r) / (k! Gamma(r)) (1 - a)^r a^k,    r = 1/(s - t),  a = exp(-1/scale),

of which s - t add up to a geometric law, and their difference to the discrete Laplace law of that
scale (Goryczka, Xiong 2017). What more parties add is independent and only adds noise.

The draw is exact, for any number of parties. Split a geometric draw g into m = s - t equal Polya
parts; one part, given g, is what a Polya urn of m colours with weight 1/m puts into one colour.
That urn is a random permutation of g balls whose cycles are coloured at random (Hoppe 1984), and
the cycle of the first ball has a length uniform on 1 … g. So: cut uniform pieces off g until
nothing is left, and keep each with probability 1/m. About ln g steps, integers only, no error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.arrays import Integers
from discreet.errors import PrivacyError
from discreet.randomness import Random
from discreet.randomness.samplers import Number

__all__ = ["PolyaShares", "draw_polya"]


@dataclass(frozen=True)
class PolyaShares:
    """The noise of one table, in shares.

    Parameters
    ----------
    scale : int, float or Fraction
        Sensitivity divided by epsilon; zero means no noise, and no promise.
    parties : int
        How many add a share.
    tolerated : int
        How many of them may be missing, or may tell others their share.
    """

    scale: Number
    parties: int
    tolerated: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.tolerated < self.parties:
            raise PrivacyError(
                f"{self.tolerated} of {self.parties} parties cannot all be missing or colluding: "
                "at least one honest share must remain"
            )
        if not 0 <= self.scale <= 1 << 53:
            # the number itself may be too large to print
            raise PrivacyError("the noise scale is out of range (0 to 2^53); give a larger epsilon")

    @property
    def required_shares(self) -> int:
        """Shares that suffice for the guarantee, s - t; each has shape 1/(s - t)."""
        return self.parties - self.tolerated

    @property
    def variance(self) -> float:
        """Variance of the sum of all shares: 2 s/(s - t) a / (1 - a)^2."""
        if not self.scale:
            return 0.0
        rate = 1 / float(self.scale)
        geometric_variance = math.exp(-rate) / math.expm1(-rate) ** 2
        return 2 * geometric_variance * self.parties / self.required_shares

    def draw_share(self, size: int, random: Random) -> Integers:
        """One party's share for each of ``size`` cells."""
        if not self.scale:
            return np.zeros(size, dtype=np.int64)
        polya_draws = draw_polya(self.scale, self.required_shares, 2 * size, random)
        return polya_draws[:size] - polya_draws[size:]


def draw_polya(scale: Number, part_count: int, size: int, random: Random) -> Integers:
    """Exact draws from the Polya (negative binomial) law of shape 1/parts, a = exp(-1/scale).

    Parameters
    ----------
    scale : int, float or Fraction
        From 0 to 2^53.
    part_count : int
        Number of draws that add up to one geometric draw.
    size : int
    random : Random
    """
    share_counts = np.zeros(size, dtype=np.int64)
    geometric_draws = random.geometric(Fraction(scale), size)
    if part_count == 1:
        return geometric_draws
    open_indices = np.flatnonzero(geometric_draws)
    remaining = geometric_draws[open_indices]
    fits_word = remaining.size == 0 or int(remaining.max()) * part_count < 1 << 63
    while open_indices.size:
        if fits_word:  # length and colour from one draw, uniform on rest * parts
            uniform_draws = _draw_uniform(remaining * part_count, random)
            cycle_lengths = uniform_draws // part_count + 1
            is_own_colour = uniform_draws % part_count == 0
        else:
            cycle_lengths = _draw_uniform(remaining, random) + 1
            is_own_colour = random.integers(part_count, open_indices.size) == 0
        share_counts[open_indices[is_own_colour]] += cycle_lengths[is_own_colour]
        remaining = remaining - cycle_lengths
        unfinished = np.flatnonzero(remaining)
        open_indices, remaining = open_indices[unfinished], remaining[unfinished]
    return share_counts


def _draw_uniform(upper_bounds: Integers, random: Random) -> Integers:
    """Integers exactly uniform on 0 … below - 1, each with its own bound."""
    unsigned_bounds = upper_bounds.view(np.uint64)
    random_words = random.words(unsigned_bounds.size)
    uniform_draws = random_words % unsigned_bounds
    # 2^64 mod b words at the top would favour small remainders: those are drawn again
    possibly_biased = np.flatnonzero(random_words > np.uint64(2**64 - 1) - unsigned_bounds.max())
    for index in possibly_biased[
        random_words[possibly_biased]
        > ~((np.uint64(0) - unsigned_bounds[possibly_biased]) % unsigned_bounds[possibly_biased])
    ]:
        uniform_draws[index] = _draw_uniform(upper_bounds[index : index + 1], random).view(
            np.uint64
        )[0]
    return uniform_draws.view(np.int64)
