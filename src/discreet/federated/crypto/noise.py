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
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.arrays import Integers
from discreet.errors import PrivacyError
from discreet.randomness import Random
from discreet.randomness.samplers import Number

__all__ = ["PolyaShares", "draw_each", "polya"]


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
    def needed(self) -> int:
        """Shares that suffice for the guarantee, s - t; each has shape 1/(s - t)."""
        return self.parties - self.tolerated

    @property
    def variance(self) -> float:
        """Variance of the sum of all shares: 2 s/(s - t) a / (1 - a)^2."""
        if not self.scale:
            return 0.0
        rate = 1 / float(self.scale)
        one = math.exp(-rate) / math.expm1(-rate) ** 2
        return 2 * one * self.parties / self.needed

    def draw(self, size: int, random: Random) -> Integers:
        """One party's share for each of ``size`` cells."""
        if not self.scale:
            return np.zeros(size, dtype=np.int64)
        both = polya(self.scale, self.needed, 2 * size, random)
        return both[:size] - both[size:]


def draw_each(wanted: Sequence[tuple[PolyaShares, int]], random: Random) -> Integers:
    """Draw shares of several (law, size) pairs, one after the other; equal laws in one draw."""
    sizes: dict[PolyaShares, int] = {}
    for law, size in wanted:
        sizes[law] = sizes.get(law, 0) + size
    drawn = {law: law.draw(size, random) for law, size in sizes.items()}
    parts = []
    for law, size in wanted:
        parts.append(drawn[law][:size])
        drawn[law] = drawn[law][size:]
    return np.concatenate(parts)


def polya(scale: Number, parts: int, size: int, random: Random) -> Integers:
    """Exact draws from the Polya (negative binomial) law of shape 1/parts, a = exp(-1/scale).

    Parameters
    ----------
    scale : int, float or Fraction
        From 0 to 2^53.
    parts : int
        Number of draws that add up to one geometric draw.
    size : int
    random : Random
    """
    kept = np.zeros(size, dtype=np.int64)
    left = random.geometric(Fraction(scale), size)
    if parts == 1:
        return left
    where = np.flatnonzero(left)
    rest = left[where]
    together = rest.size == 0 or int(rest.max()) * parts < 1 << 63
    while where.size:
        if together:  # length and colour from one draw, uniform on rest * parts
            drawn = _uniform(rest * parts, random)
            piece, mine = drawn // parts + 1, drawn % parts == 0
        else:
            piece, mine = _uniform(rest, random) + 1, random.integers(parts, where.size) == 0
        kept[where[mine]] += piece[mine]
        rest = rest - piece
        going = np.flatnonzero(rest)
        where, rest = where[going], rest[going]
    return kept


def _uniform(below: Integers, random: Random) -> Integers:
    """Integers exactly uniform on 0 … below - 1, each with its own bound."""
    bounds = below.view(np.uint64)
    words = random.words(bounds.size)
    drawn = words % bounds
    # 2^64 mod b words at the top would favour small remainders: those are drawn again
    unsure = np.flatnonzero(words > np.uint64(2**64 - 1) - bounds.max())
    for index in unsure[words[unsure] > ~((np.uint64(0) - bounds[unsure]) % bounds[unsure])]:
        drawn[index] = _uniform(below[index : index + 1], random).view(np.uint64)[0]
    return drawn.view(np.int64)
