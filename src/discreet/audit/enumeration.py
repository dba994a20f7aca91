"""Compute the exact loss of a program with finite outputs by enumerating its random choices.

:class:`Choices` is a random source that takes one given path through all choices a program makes,
and knows how likely that path is, as a fraction. Running the program once along every path gives
P(output | input) of the *code*, not of its description: :func:`law`. The worst ratio of two such
laws is the loss: :func:`worst`.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from discreet.arrays import Booleans, Bytes, Integers, Words
from discreet.errors import PrivacyError
from discreet.losses import exp_below, log
from discreet.mechanisms.oracle import ONE
from discreet.randomness import Random

__all__ = ["Choices", "EndlessError", "Worst", "keeps", "law", "paths", "worst"]

WIDEST = 1 << 16
"""Largest number of branches of one choice that are enumerated."""

Output = TypeVar("Output", bound=Hashable)


class EndlessError(PrivacyError):
    """The program makes a choice that cannot be enumerated, or too many of them."""


class Choices(Random):
    """Random source that follows one path through all choices and computes its probability.

    The 16 bytes of a report's id are not a choice: drawn after the answer, they are zero here.
    Subsets come in ascending order, because nothing is promised about their order.

    Parameters
    ----------
    path : sequence of int
        Which branch to take at each choice; the first one where the path ends.

    Attributes
    ----------
    taken : list of (int, int)
        The branch that was taken at each choice, and how many there were.
    chance : Fraction
        How likely this path is.
    """

    simulated: ClassVar[bool] = True

    def __init__(self, path: Sequence[int]) -> None:
        self.path, self.taken, self.chance = path, list[tuple[int, int]](), Fraction(1)

    def choose(self, chances: Sequence[Fraction]) -> int:
        """Take the branch of the path; branches of probability zero are skipped."""
        possible = [outcome for outcome, chance in enumerate(chances) if chance]
        branch = self._take(len(possible))
        self.chance *= chances[possible[branch]]
        return possible[branch]

    def uniform_choice(self, among: int) -> int:
        """Take the branch of the path among equally likely ones."""
        if among > WIDEST:
            raise EndlessError(f"a choice among {among} cannot be walked through")
        self.chance /= among
        return self._take(among)

    def _take(self, branches: int) -> int:
        place = len(self.taken)
        branch = self.path[place] if place < len(self.path) else 0
        self.taken.append((branch, branches))
        return branch

    def raw(self, count: int) -> Bytes:
        """Return the bytes of an id; other draws of bytes have too many outcomes."""
        if count != 16:
            raise EndlessError("this draw is made of bytes that cannot be walked through")
        return np.zeros(count, np.uint8)

    def integers(self, below: int, size: int) -> Integers:
        """A choice among ``below``, ``size`` times."""
        return np.array([self.uniform_choice(below) for _ in range(size)], np.int64)

    def _flag(self, threshold: int) -> bool:
        chance = Fraction(int(threshold), ONE)
        return bool(self.choose([1 - chance, chance]))

    def bernoulli_words(self, threshold: int, size: int) -> Booleans:
        """A choice between False and True, ``size`` times."""
        return np.array([self._flag(threshold) for _ in range(size)], np.bool_)

    def bernoulli_each(self, thresholds: Words) -> Booleans:
        """A choice between False and True for every threshold."""
        flags = [self._flag(threshold) for threshold in thresholds.reshape(-1).tolist()]
        return np.array(flags, np.bool_).reshape(thresholds.shape)

    def bits(self, threshold: int, rows: int, columns: int) -> Bytes:
        """A choice between False and True for every bit, without padding."""
        flags = self.bernoulli_words(threshold, rows * columns).reshape(rows, columns)
        return np.packbits(flags, axis=1, bitorder="little")

    def subsets(self, pool: int, take: int, rows: int) -> Integers:
        """A choice among all subsets."""
        among = math.comb(pool, take)
        drawn = [self.uniform_choice(among) for _ in range(rows)]
        return np.array([_subset(pool, take, number) for number in drawn], np.int64)


@cache
def _subset(pool: int, take: int, number: int) -> tuple[int, ...]:
    return next(itertools.islice(itertools.combinations(range(pool), take), number, None))


def paths(
    run: Callable[[Choices], Output], source: type[Choices] = Choices, most: float = math.inf
) -> Iterator[tuple[Output, Choices]]:
    """Run a program once along every path; iterate over outputs and paths.

    Parameters
    ----------
    run : callable
        The program, given its random source.
    source : type of Choices
    most : float
        Paths after which to give up with an error.
    """
    path: list[int] | None = []
    for walked in itertools.count():
        if path is None:
            return
        if walked >= most:
            raise EndlessError(f"there are more than {most:,} ways through this program")
        choices = source(path)
        yield run(choices), choices
        taken = choices.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        path = [*(branch for branch, _ in taken[:-1]), taken[-1][0] + 1] if taken else None


def law(
    run: Callable[[Choices], Output], source: type[Choices] = Choices, most: float = math.inf
) -> dict[Output, Fraction]:
    """Compute P(output) exactly. The parameters are those of :func:`iter_paths`.

    Examples
    --------
    >>> from discreet.mechanisms.frequency import DE
    >>> oracle = DE(1.0, 2)
    >>> chances = law(lambda random: int(oracle.perturb([1], random)[0]))
    >>> round(float(chances[1] / chances[0]), 6)
    2.718282
    """
    found: dict[Output, Fraction] = defaultdict(Fraction)
    for output, choices in paths(run, source, most):
        found[output] += choices.chance
    assert sum(found.values()) == 1
    return dict(found)


@dataclass(frozen=True)
class Worst:
    """The largest ratio of two likelihoods of one output, and where it is attained.

    Parameters
    ----------
    ratio : Fraction or float
        ``math.inf`` where an output is impossible for one of the inputs.
    output : object
    likelier, rarer : object
        The inputs, by the names they have in the laws.
    """

    ratio: Fraction | float
    output: Any = None
    likelier: Any = None
    rarer: Any = None

    @property
    def epsilon(self) -> float:
        """The loss: ln(ratio)."""
        return math.inf if isinstance(self.ratio, float) else log(self.ratio)


def worst(laws: Mapping[Any, Mapping[Any, Fraction]] | Sequence[Mapping[Any, Fraction]]) -> Worst:
    """Find the largest likelihood ratio over all outputs and pairs of inputs.

    Parameters
    ----------
    laws : mapping of input to law, or sequence of laws
        P(output | input); outputs that a law does not name are impossible.
    """
    named = dict(laws) if isinstance(laws, Mapping) else dict(enumerate(laws))
    found = Worst(Fraction(1))
    for output in dict.fromkeys(output for one in named.values() for output in one):
        chances = {name: one.get(output, Fraction(0)) for name, one in named.items()}
        most, least = max(chances, key=chances.__getitem__), min(chances, key=chances.__getitem__)
        if chances[most] == 0:
            continue
        if chances[least] == 0:
            return Worst(math.inf, output, most, least)
        if chances[most] / chances[least] > found.ratio:
            found = Worst(chances[most] / chances[least], output, most, least)
    return found


def keeps(epsilon: float, ratio: Fraction | float) -> bool:
    """Whether a ratio is at most exp(epsilon), computed with 60 digits."""
    if math.isinf(epsilon):
        return True
    return not isinstance(ratio, float) and ratio <= exp_below(Fraction(epsilon))
