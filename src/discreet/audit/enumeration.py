"""Compute the exact loss of a program with finite outputs by enumerating its random choices.

:class:`EnumeratedRandom` is a random source that takes one given path through all choices a program
makes, and knows how likely that path is, as a fraction. Running the program once along every path
gives P(output | input) of the *code*, not of its description: :func:`compute_law`. The worst ratio
of two such laws is the loss: :func:`find_worst_ratio`.
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
from discreet.mechanisms.oracle import PROBABILITY_UNIT
from discreet.privacy.rounding import exp_rounded_down, log_to_nearest
from discreet.randomness import Random

__all__ = [
    "EndlessError",
    "EnumeratedRandom",
    "WorstRatio",
    "compute_law",
    "find_worst_ratio",
    "is_within_epsilon",
    "iter_paths",
]

MAX_BRANCHES = 1 << 16
"""Largest number of branches of one choice that are enumerated."""

Output = TypeVar("Output", bound=Hashable)


class EndlessError(PrivacyError):
    """The program makes a choice that cannot be enumerated, or too many of them."""


class EnumeratedRandom(Random):
    """Random source that follows one path through all choices and computes its probability.

    The 16 bytes of a report's id are not a choice: drawn after the answer, they are zero here.
    Subsets come in ascending order, because nothing is promised about their order.

    Parameters
    ----------
    path : sequence of int
        Which branch to take at each choice; the first one where the path ends.

    Attributes
    ----------
    branches_taken : list of (int, int)
        The branch that was taken at each choice, and how many there were.
    probability : Fraction
        How likely this path is.
    """

    simulated: ClassVar[bool] = True

    def __init__(self, path: Sequence[int]) -> None:
        self.path = path
        self.branches_taken: list[tuple[int, int]] = []
        self.probability = Fraction(1)

    def choose(self, probabilities: Sequence[Fraction]) -> int:
        """Take the branch of the path; branches of probability zero are skipped."""
        possible_outcomes = [
            outcome for outcome, probability in enumerate(probabilities) if probability
        ]
        branch = self._take_branch(len(possible_outcomes))
        self.probability *= probabilities[possible_outcomes[branch]]
        return possible_outcomes[branch]

    def uniform_choice(self, branch_count: int) -> int:
        """Take the branch of the path among equally likely ones."""
        if branch_count > MAX_BRANCHES:
            raise EndlessError(f"a choice among {branch_count} values cannot be enumerated")
        self.probability /= branch_count
        return self._take_branch(branch_count)

    def _take_branch(self, branch_count: int) -> int:
        choice_index = len(self.branches_taken)
        branch = self.path[choice_index] if choice_index < len(self.path) else 0
        self.branches_taken.append((branch, branch_count))
        return branch

    def raw(self, count: int) -> Bytes:
        """Return the bytes of an id; other draws of bytes have too many outcomes."""
        if count != 16:
            raise EndlessError("this draw uses raw bytes, which cannot be enumerated")
        return np.zeros(count, np.uint8)

    def integers(self, below: int, size: int) -> Integers:
        """A choice among ``below``, ``size`` times."""
        return np.array([self.uniform_choice(below) for _ in range(size)], np.int64)

    def _draw_flag(self, threshold: int) -> bool:
        probability = Fraction(int(threshold), PROBABILITY_UNIT)
        return bool(self.choose([1 - probability, probability]))

    def bernoulli_words(self, threshold: int, size: int) -> Booleans:
        """A choice between False and True, ``size`` times."""
        return np.array([self._draw_flag(threshold) for _ in range(size)], np.bool_)

    def bernoulli_each(self, thresholds: Words) -> Booleans:
        """A choice between False and True for every threshold."""
        flags = [self._draw_flag(threshold) for threshold in thresholds.reshape(-1).tolist()]
        return np.array(flags, np.bool_).reshape(thresholds.shape)

    def bits(self, threshold: int, rows: int, columns: int) -> Bytes:
        """A choice between False and True for every bit, without padding."""
        flags = self.bernoulli_words(threshold, rows * columns).reshape(rows, columns)
        return np.packbits(flags, axis=1, bitorder="little")

    def subsets(self, pool: int, take: int, rows: int) -> Integers:
        """A choice among all subsets."""
        subset_count = math.comb(pool, take)
        subset_numbers = [self.uniform_choice(subset_count) for _ in range(rows)]
        return np.array([_get_subset(pool, take, number) for number in subset_numbers], np.int64)


@cache
def _get_subset(pool_size: int, subset_size: int, subset_number: int) -> tuple[int, ...]:
    return next(
        itertools.islice(itertools.combinations(range(pool_size), subset_size), subset_number, None)
    )


def iter_paths(
    program: Callable[[EnumeratedRandom], Output],
    random_class: type[EnumeratedRandom] = EnumeratedRandom,
    max_paths: float = math.inf,
) -> Iterator[tuple[Output, EnumeratedRandom]]:
    """Run a program once along every path; iterate over outputs and paths.

    Parameters
    ----------
    program : callable
        The program, given its random source.
    random_class : type of EnumeratedRandom
    max_paths : float
        Paths after which to give up with an error.
    """
    path: list[int] | None = []
    for path_count in itertools.count():
        if path is None:
            return
        if path_count >= max_paths:
            raise EndlessError(f"this program has more than {max_paths:,} paths")
        path_random = random_class(path)
        yield program(path_random), path_random
        branches_taken = path_random.branches_taken
        while branches_taken and branches_taken[-1][0] + 1 == branches_taken[-1][1]:
            branches_taken.pop()
        path = (
            [*(branch for branch, _ in branches_taken[:-1]), branches_taken[-1][0] + 1]
            if branches_taken
            else None
        )


def compute_law(
    program: Callable[[EnumeratedRandom], Output],
    random_class: type[EnumeratedRandom] = EnumeratedRandom,
    max_paths: float = math.inf,
) -> dict[Output, Fraction]:
    """Compute P(output) exactly. The parameters are those of :func:`iter_paths`.

    Examples
    --------
    >>> from discreet.mechanisms.frequency import DE
    >>> oracle = DE(1.0, 2)
    >>> chances = compute_law(lambda random: int(oracle.perturb([1], random)[0]))
    >>> round(float(chances[1] / chances[0]), 6)
    2.718282
    """
    probabilities: dict[Output, Fraction] = defaultdict(Fraction)
    for output, path_random in iter_paths(program, random_class, max_paths):
        probabilities[output] += path_random.probability
    assert sum(probabilities.values()) == 1
    return dict(probabilities)


@dataclass(frozen=True)
class WorstRatio:
    """The largest ratio of two likelihoods of one output, and where it is attained.

    Parameters
    ----------
    ratio : Fraction or float
        ``math.inf`` where an output is impossible for one of the inputs.
    output : object
    likelier_input, rarer_input : object
        The inputs, by the names they have in the laws.
    """

    ratio: Fraction | float
    output: Any = None
    likelier_input: Any = None
    rarer_input: Any = None

    @property
    def epsilon(self) -> float:
        """The loss: ln(ratio)."""
        return math.inf if isinstance(self.ratio, float) else log_to_nearest(self.ratio)


def find_worst_ratio(
    laws: Mapping[Any, Mapping[Any, Fraction]] | Sequence[Mapping[Any, Fraction]],
) -> WorstRatio:
    """Find the largest likelihood ratio over all outputs and pairs of inputs.

    Parameters
    ----------
    laws : mapping of input to law, or sequence of laws
        P(output | input); outputs that a law does not name are impossible.
    """
    laws_by_input = dict(laws) if isinstance(laws, Mapping) else dict(enumerate(laws))
    worst_ratio = WorstRatio(Fraction(1))
    for output in dict.fromkeys(
        output for input_law in laws_by_input.values() for output in input_law
    ):
        probabilities = {
            input_name: input_law.get(output, Fraction(0))
            for input_name, input_law in laws_by_input.items()
        }
        likeliest = max(probabilities, key=probabilities.__getitem__)
        rarest = min(probabilities, key=probabilities.__getitem__)
        if probabilities[likeliest] == 0:
            continue
        if probabilities[rarest] == 0:
            return WorstRatio(math.inf, output, likeliest, rarest)
        if probabilities[likeliest] / probabilities[rarest] > worst_ratio.ratio:
            worst_ratio = WorstRatio(
                probabilities[likeliest] / probabilities[rarest], output, likeliest, rarest
            )
    return worst_ratio


def is_within_epsilon(epsilon: float, ratio: Fraction | float) -> bool:
    """Whether a ratio is at most exp(epsilon), computed with 60 digits."""
    if math.isinf(epsilon):
        return True
    return not isinstance(ratio, float) and ratio <= exp_rounded_down(Fraction(epsilon))
