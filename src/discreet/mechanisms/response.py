"""Randomized response: the truth of a whole group of answers, or something else in its place.

A group of questions is answered at once. In the *unrelated-question* model the respondent sends
all private answers of the group with probability theta, else answers drawn from a public law; in
the *related-question* model (Warner 1965) the truth with probability theta, else the complement of
every answer. The MRR paper (multi-variant randomized response),
sections 3.2 and 6.1; docs/maths.md.

    >>> from fractions import Fraction
    >>> channel = Unrelated((2,), "0.5")
    >>> channel.likelihood([1], [1]), round(channel.epsilon_exact(), 4)
    (Fraction(3, 4), 1.0986)
    >>> Related((2, 2), "0.7").epsilon_exact()  # the report or its complement is the truth
    inf

Theta is an integer over 2^64, rounded towards privacy; laws are whole-number weights. So the
channel is exact, and its loss is computed from what the coins really do.
"""

from __future__ import annotations

import abc
import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, Integers
from discreet.errors import EstimationError, PrivacyError, SchemaError
from discreet.losses import exp_below, log_above
from discreet.mechanisms.laws import Law, Theta, expectation, joint_law, rational
from discreet.mechanisms.oracle import LARGEST_CHANNEL, ONE, percent, share
from discreet.randomness import Random

__all__ = ["MODELS", "Related", "Response", "Unrelated"]


@dataclass(frozen=True)
class Response(abc.ABC):
    """One group of answers, randomized together.

    Parameters
    ----------
    sizes : tuple of int
        How many answers each question of the group has; answers are the integers 0 .. size - 1.
    theta : int, float, str or Fraction
        Probability that the truth is sent, from 0 to 1, taken as it is written.
    """

    sizes: tuple[int, ...]
    theta: Theta
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        object.__setattr__(self, "theta", rational("theta", self.theta))
        if not self.sizes or min(self.sizes) < 1:
            raise SchemaError("a group needs at least one question, and each question an answer")
        if not 0 <= self._wished <= 1:
            raise PrivacyError(f"theta is {float(self._wished):g}; it is a probability, 0 to 1")

    @property
    def _wished(self) -> Fraction:
        assert isinstance(self.theta, Fraction)
        return self.theta

    @cached_property
    def threshold(self) -> int:
        """P(the truth is sent) over 2^64, rounded towards privacy."""
        return math.floor(self._wished * ONE)

    @property
    def theta_exact(self) -> Fraction:
        """P(the truth is sent) in the implemented channel."""
        return share(self.threshold)

    @property
    def width(self) -> int:
        """Answers in a group."""
        return len(self.sizes)

    @abc.abstractmethod
    def perturb(
        self, answers: ArrayLike, random: Random, personal: ArrayLike | None = None
    ) -> Integers:
        """Return what is sent for each row of answers.

        Parameters
        ----------
        answers : array of int, (people, width)
        random : Random
        personal : array of int, (people, width), optional
            The respondents' own answers to the personal questions; drawn from the law if not given.
        """

    @abc.abstractmethod
    def likelihood(self, truth: Sequence[int], report: Sequence[int]) -> Fraction:
        """Return P(report | truth), exactly."""

    @abc.abstractmethod
    def worst_ratio(self) -> Fraction | None:
        """Return the largest likelihood ratio of one report; None where it is infinite."""

    @abc.abstractmethod
    def mixed(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return E[function(report) | truth]; see ``unmixed``."""

    @abc.abstractmethod
    def unmixed(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return h with E[h(report) | truth] = function(truth): the channel inverted.

        Parameters
        ----------
        function : array
            Of answers; axes that are not of this group are left alone.
        axes : mapping of int to int
            Place in the group to axis of the array, for the answers the function looks at.
        """

    @abc.abstractmethod
    def check_estimable(self) -> None:
        """Raise where nothing could be estimated from the reports."""

    @abc.abstractmethod
    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth, for the person who sends it."""

    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return all that a device needs; integers over 2^64 as decimal strings."""

    def epsilon_exact(self) -> float:
        """Return the true local-DP loss of a report; infinite where some report rules a truth out.

        It is the least float that is not below it. Small channels are enumerated, every report
        against every two truths; of large ones the extremes of each column are known.
        """
        return self._epsilon

    @cached_property
    def _epsilon(self) -> float:
        if math.prod(self.sizes) <= 64:
            from discreet.losses import epsilon_of_channel

            return epsilon_of_channel(self.channel())
        worst = self.worst_ratio()
        return math.inf if worst is None else log_above(worst)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield every group of answers that can be sent."""
        return itertools.product(*(range(size) for size in self.sizes))

    def channel(self) -> list[list[Fraction]]:
        """Return P(report | truth): truths by reports, both in the order of ``outputs``."""
        if math.prod(self.sizes) ** 2 > LARGEST_CHANNEL:
            raise PrivacyError(
                f"a group of {math.prod(self.sizes)} combinations is too large to write its "
                "channel out; ask for epsilon_exact() or likelihood()"
            )
        every = list(self.outputs())
        return [[self.likelihood(truth, report) for report in every] for truth in every]

    def _matrix(self, answers: ArrayLike) -> Integers:
        array = np.asarray(answers)
        if array.ndim != 2 or array.shape[1] != self.width or array.dtype.kind not in "iu":
            raise SchemaError(f"give {self.width} whole numbers per person, one for each answer")
        if array.size and not ((array >= 0) & (array < np.array(self.sizes))).all():
            raise SchemaError("an answer is not one of the public ones")
        return array.astype(np.int64, copy=False)


@dataclass(frozen=True)
class Unrelated(Response):
    """The unrelated-question model: the private answers, or personal ones from a public law.

    Parameters
    ----------
    sizes, theta
        As in ``Response``.
    laws : tuple of Law
        Independent laws that together cover every place once; uniform ones if not given.
    """

    laws: tuple[Law, ...] = ()
    name: ClassVar[str] = "unrelated"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.laws:
            even = tuple(Law((k,), (1,) * size) for k, size in enumerate(self.sizes))
            object.__setattr__(self, "laws", even)
        covered = sorted(place for law in self.laws for place in law.places)
        if covered != list(range(self.width)):
            raise SchemaError("the laws of a group must cover each of its answers exactly once")
        for law in self.laws:
            if len(law.weights) != math.prod(self.sizes[place] for place in law.places):
                raise SchemaError("a law needs one weight for each combination of its answers")

    @classmethod
    def of_ratio(cls, ratio: Fraction, sizes: Sequence[int], laws: Sequence[Law] = ()) -> Unrelated:
        """The largest theta whose reports change the odds of anything by at most ``ratio``.

        (theta + (1-theta) w) / ((1-theta) w) = ratio, w the least personal probability.
        """
        plain = cls(tuple(sizes), Fraction(0), tuple(laws))
        w = plain.least
        if w == 0:
            raise PrivacyError(
                "a personal answer has probability zero, so sending it proves it true at every "
                "theta; give every personal answer some weight"
            )
        gain = (ratio - 1) * w
        return cls(plain.sizes, gain / (1 + gain), plain.laws)

    @classmethod
    def of_epsilon(
        cls, epsilon: float, sizes: Sequence[int], laws: Sequence[Law] = ()
    ) -> Unrelated:
        """The largest theta that keeps epsilon-local differential privacy."""
        return cls.of_ratio(_ratio_of(epsilon), sizes, laws)

    @cached_property
    def least(self) -> Fraction:
        """The smallest probability w of a whole group of personal answers."""
        return math.prod((law.least for law in self.laws), start=Fraction(1))

    @cached_property
    def two_least(self) -> tuple[Fraction, Fraction]:
        """The smallest and the second smallest probability of a whole group of answers."""
        found = [Fraction(1)]
        for law in self.laws:
            two = heapq.nsmallest(2, (Fraction(weight, law.total) for weight in law.weights))
            found = heapq.nsmallest(2, [a * b for a in found for b in two])
        return found[0], found[-1]

    @property
    def even(self) -> bool:
        """Whether all personal answers are equally likely."""
        return all(len(set(law.weights)) == 1 for law in self.laws)

    def perturb(
        self, answers: ArrayLike, random: Random, personal: ArrayLike | None = None
    ) -> Integers:
        """Return the private answers with probability theta, else the personal ones."""
        true = self._matrix(answers)
        private = random.bernoulli_words(self.threshold, len(true))
        other = self.draw(len(true), random) if personal is None else self._matrix(personal)
        return np.where(private[:, None], true, other)

    def draw(self, people: int, random: Random) -> Integers:
        """Return personal answers drawn from the public law, exactly."""
        drawn = np.empty((people, self.width), np.int64)
        for law in self.laws:
            below = np.cumsum(np.array(law.weights, np.int64))
            cell = np.searchsorted(below, random.integers(law.total, people), side="right")
            shape = [self.sizes[place] for place in law.places]
            for place, column in zip(law.places, np.unravel_index(cell, shape), strict=True):
                drawn[:, place] = column
        return drawn

    def law_of(self, answers: Sequence[int]) -> Fraction:
        """Return P(these personal answers), exactly."""
        chance = Fraction(1)
        for law in self.laws:
            cell = 0
            for place in law.places:
                cell = cell * self.sizes[place] + int(answers[place])
            chance *= Fraction(law.weights[cell], law.total)
        return chance

    def likelihood(self, truth: Sequence[int], report: Sequence[int]) -> Fraction:
        """Return theta [report = truth] + (1 - theta) P(personal answers = report)."""
        kept = self.theta_exact if tuple(truth) == tuple(report) else Fraction(0)
        return kept + (1 - self.theta_exact) * self.law_of(report)

    def worst_ratio(self) -> Fraction | None:
        """Return (theta + (1-theta) w) / ((1-theta) w)."""
        theta = self.theta_exact
        if math.prod(self.sizes) == 1 or theta == 0:
            return Fraction(1)
        personal = (1 - theta) * self.least
        return None if personal == 0 else (theta + personal) / personal

    def check_estimable(self) -> None:
        """Raise at theta = 0."""
        if self.threshold == 0:
            raise EstimationError(
                "theta is 0: nobody ever sends a private answer, so nothing can be estimated; "
                "choose a theta above 0"
            )

    def mixed(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return theta g + (1-theta) E_Y g."""
        theta = float(self.theta_exact)
        return theta * function + (1 - theta) * self.averaged(function, axes)

    def unmixed(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return (g - (1-theta) E_Y g) / theta: P*(A) = theta P(A) + (1-theta) P(Y) solved."""
        self.check_estimable()
        theta = float(self.theta_exact)
        return (function - (1 - theta) * self.averaged(function, axes)) / theta

    def averaged(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return E_Y g, the group's axes kept with length one."""
        law = joint_law(self.laws, self.sizes, list(axes))
        return expectation(function, law, list(axes.values()))

    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        truth = self.theta_exact
        return (
            f"With a chance of {percent(truth)} your own {_answers(self.width)} sent, and with a "
            f"chance of {percent(1 - truth)} what was drawn at random in a publicly known way."
        )

    def parameters(self) -> dict[str, Any]:
        """Return theta and the laws."""
        laws = [{"places": list(law.places), "weights": list(law.weights)} for law in self.laws]
        return {"theta": str(self.threshold), "laws": laws}


@dataclass(frozen=True)
class Related(Response):
    """Warner's related-question model: all answers, or the complement of all; yes/no questions.

    A group of two or more has no epsilon: the truth is the report or its complement, so every
    third possibility is ruled out. See ``Response``.
    """

    name: ClassVar[str] = "related"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(size != 2 for size in self.sizes):
            raise SchemaError(
                f"the related-question model complements answers, so each question needs exactly "
                f"two; these have {', '.join(map(str, self.sizes))}. Use model: unrelated, or the "
                "oracle de of a local plan, which sends another value at random"
            )

    @cached_property
    def threshold(self) -> int:
        """P(the truth is sent) over 2^64, rounded towards 1/2."""
        half = math.ceil if self._wished < Fraction(1, 2) else math.floor
        return half(self._wished * ONE)

    @classmethod
    def of_ratio(cls, ratio: Fraction, sizes: Sequence[int]) -> Related:
        """The largest theta whose reports change the odds of anything by at most ``ratio``."""
        if len(tuple(sizes)) > 1:
            raise PrivacyError(
                "a related-question group of two or more questions has an infinite epsilon at "
                "every theta; put each question into a group of its own, or use model: unrelated"
            )
        return cls(tuple(sizes), ratio / (1 + ratio))

    @classmethod
    def of_epsilon(cls, epsilon: float, sizes: Sequence[int]) -> Related:
        """The theta above 1/2 that keeps epsilon-local differential privacy."""
        return cls.of_ratio(_ratio_of(epsilon), sizes)

    def perturb(
        self, answers: ArrayLike, random: Random, personal: ArrayLike | None = None
    ) -> Integers:
        """Return the answers with probability theta, else all of them reversed."""
        true = self._matrix(answers)
        kept = random.bernoulli_words(self.threshold, len(true))
        return np.where(kept[:, None], true, 1 - true)

    def likelihood(self, truth: Sequence[int], report: Sequence[int]) -> Fraction:
        """Return theta for the truth, 1 - theta for its complement, 0 for all else."""
        if tuple(truth) == tuple(report):
            return self.theta_exact
        reversed_truth = tuple(1 - int(answer) for answer in truth)
        return 1 - self.theta_exact if reversed_truth == tuple(report) else Fraction(0)

    def worst_ratio(self) -> Fraction | None:
        """Return theta / (1 - theta) or its inverse, for one question."""
        theta = self.theta_exact
        if self.width > 1 or theta in (0, 1):
            return None
        return max(theta / (1 - theta), (1 - theta) / theta)

    def check_estimable(self) -> None:
        """Raise at theta = 1/2."""
        if 2 * self.threshold == ONE:
            raise EstimationError(
                "theta is 1/2: in the related-question model every report is then as likely as "
                "its opposite and nothing can be estimated; choose another theta, or model: "
                "unrelated, which has no such gap"
            )

    def mixed(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return theta g + (1-theta) g(complement)."""
        theta = float(self.theta_exact)
        return theta * function + (1 - theta) * np.flip(function, axis=tuple(axes.values()))

    def unmixed(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return (theta g - (1-theta) g(complement)) / (2 theta - 1)."""
        self.check_estimable()
        theta = float(self.theta_exact)
        mirrored = np.flip(function, axis=tuple(axes.values()))
        return (theta * function - (1 - theta) * mirrored) / float(2 * self.theta_exact - 1)

    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        truth = self.theta_exact
        return (
            f"With a chance of {percent(truth)} your own {_answers(self.width)} sent, and with a "
            f"chance of {percent(1 - truth)} the opposite."
        )

    def parameters(self) -> dict[str, Any]:
        """Return theta."""
        return {"theta": str(self.threshold)}


MODELS: dict[str, type[Response]] = {kind.name: kind for kind in (Unrelated, Related)}


def _answers(count: int) -> str:
    return "answer is" if count == 1 else f"{count} answers are"


def _ratio_of(epsilon: float) -> Fraction:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon > 0:
        raise PrivacyError(f"epsilon is {epsilon!r}; give a number above 0")
    if epsilon > 40:
        raise PrivacyError(f"epsilon is {epsilon!r}; above 40 protects nothing: write theta: 1")
    return exp_below(Fraction(epsilon))
