"""Randomized response: the truth of a whole group of answers, or something else in its place.

A group of questions is answered at once. In the *unrelated-question* model the respondent sends
all private answers of the group with probability theta, else answers drawn from a public law; in
the *related-question* model (Warner 1965) the truth with probability theta, else the complement of
every answer. The MRR paper (multi-variant randomized response),
sections 3.2 and 6.1; docs/maths.md.

    >>> from fractions import Fraction
    >>> channel = Unrelated((2,), "0.5")
    >>> channel.likelihood([1], [1]), round(channel.compute_exact_epsilon(), 4)
    (Fraction(3, 4), 1.0986)
    >>> Related((2, 2), "0.7").compute_exact_epsilon()  # the report or its complement is the truth
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
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, Integers
from discreet.errors import EstimationError, PrivacyError, SchemaError
from discreet.mechanisms.laws import (
    AnswerLaw,
    Theta,
    average_over_laws,
    parse_rational,
)
from discreet.mechanisms.oracle import (
    MAX_CHANNEL_OUTPUTS,
    PROBABILITY_UNIT,
    format_percent,
)
from discreet.privacy.rounding import exp_rounded_down, log_rounded_up
from discreet.randomness import Random

__all__ = ["RESPONSE_MODELS", "Related", "Response", "Unrelated"]


@dataclass(frozen=True)
class Response(abc.ABC):
    """One group of answers, randomized together.

    Parameters
    ----------
    sizes : tuple of int
        How many answers each question of the group has; answers are the integers 0 .. size - 1.
    theta : int, float, str or Fraction
        Probability that the truth is sent, from 0 to 1, taken as it is written.

    Attributes
    ----------
    width : int
        Answers in a group.
    """

    sizes: tuple[int, ...]
    theta: Theta
    width: int = field(init=False, repr=False, compare=False)
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(int(size) for size in self.sizes))
        object.__setattr__(self, "width", len(self.sizes))
        theta = parse_rational("theta", self.theta)
        object.__setattr__(self, "theta", theta)
        if not self.sizes or min(self.sizes) < 1:
            raise SchemaError("a group needs at least one question, and each question an answer")
        if not 0 <= theta <= 1:
            raise PrivacyError(f"theta is {float(theta):g}; it is a probability, 0 to 1")

    @cached_property
    def threshold(self) -> int:
        """P(the truth is sent) over 2^64, rounded towards privacy."""
        return math.floor(Fraction(self.theta) * PROBABILITY_UNIT)

    @property
    def theta_exact(self) -> Fraction:
        """P(the truth is sent) in the implemented channel."""
        return Fraction(self.threshold, PROBABILITY_UNIT)

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
    def compute_worst_ratio(self) -> Fraction | None:
        """Return the largest likelihood ratio of one report; None where it is infinite."""

    @abc.abstractmethod
    def apply_channel(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return E[function(report) | truth]; see ``invert_channel``."""

    @abc.abstractmethod
    def invert_channel(self, function: Floats, axes: Mapping[int, int]) -> Floats:
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
    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth, for the person who sends it."""

    @abc.abstractmethod
    def get_parameters(self) -> dict[str, Any]:
        """Return all that a device needs; integers over 2^64 as decimal strings."""

    def compute_exact_epsilon(self) -> float:
        """Return the true local-DP loss of a report; infinite where some report rules a truth out.

        It is the least float that is not below it. Small channels are enumerated, every report
        against every two truths; of large ones the extremes of each column are known.
        """
        if math.prod(self.sizes) <= 64:
            from discreet.privacy.rounding import compute_channel_epsilon

            return compute_channel_epsilon(self.channel())
        worst_ratio = self.compute_worst_ratio()
        return math.inf if worst_ratio is None else log_rounded_up(worst_ratio)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield every group of answers that can be sent."""
        return itertools.product(*(range(size) for size in self.sizes))

    def channel(self) -> list[list[Fraction]]:
        """Return P(report | truth): truths by reports, both in the order of ``outputs``."""
        if math.prod(self.sizes) ** 2 > MAX_CHANNEL_OUTPUTS:
            raise PrivacyError(
                f"a group of {math.prod(self.sizes)} combinations is too large to write its "
                "channel out; ask for compute_exact_epsilon() or likelihood()"
            )
        answer_groups = list(self.outputs())
        return [
            [self.likelihood(truth, report) for report in answer_groups] for truth in answer_groups
        ]

    def _require_answers(self, answers: ArrayLike) -> Integers:
        answer_array = np.asarray(answers)
        if (
            answer_array.ndim != 2
            or answer_array.shape[1] != self.width
            or answer_array.dtype.kind not in "iu"
        ):
            raise SchemaError(f"give {self.width} whole numbers per person, one for each answer")
        if (
            answer_array.size
            and not ((answer_array >= 0) & (answer_array < np.array(self.sizes))).all()
        ):
            raise SchemaError("an answer is not one of the public ones")
        return answer_array.astype(np.int64, copy=False)


@dataclass(frozen=True)
class Unrelated(Response):
    """The unrelated-question model: the private answers, or personal ones from a public law.

    Parameters
    ----------
    sizes, theta
        As in ``Response``.
    laws : tuple of AnswerLaw
        Independent laws that together cover every place once; uniform ones if not given.
    """

    laws: tuple[AnswerLaw, ...] = ()
    name: ClassVar[str] = "unrelated"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.laws:
            uniform_laws = tuple(AnswerLaw((k,), (1,) * size) for k, size in enumerate(self.sizes))
            object.__setattr__(self, "laws", uniform_laws)
        covered_places = sorted(place for law in self.laws for place in law.places)
        if covered_places != list(range(self.width)):
            raise SchemaError("the laws of a group must cover each of its answers exactly once")
        for law in self.laws:
            if len(law.weights) != math.prod(self.sizes[place] for place in law.places):
                raise SchemaError("a law needs one weight for each combination of its answers")

    @classmethod
    def from_ratio(
        cls, ratio: Fraction, sizes: Sequence[int], laws: Sequence[AnswerLaw] = ()
    ) -> Unrelated:
        """The largest theta whose reports change the odds of anything by at most ``ratio``.

        (theta + (1-theta) w) / ((1-theta) w) = ratio, w the least personal probability.
        """
        without_truth = cls(tuple(sizes), Fraction(0), tuple(laws))
        w = without_truth.min_personal_probability
        if w == 0:
            raise PrivacyError(
                "a personal answer has probability zero, so sending it proves it true at every "
                "theta; give every personal answer some weight"
            )
        odds_gain = (ratio - 1) * w
        return cls(without_truth.sizes, odds_gain / (1 + odds_gain), without_truth.laws)

    @classmethod
    def from_epsilon(
        cls, epsilon: float, sizes: Sequence[int], laws: Sequence[AnswerLaw] = ()
    ) -> Unrelated:
        """The largest theta that keeps epsilon-local differential privacy."""
        return cls.from_ratio(_convert_to_ratio(epsilon), sizes, laws)

    @cached_property
    def min_personal_probability(self) -> Fraction:
        """The smallest probability w of a whole group of personal answers."""
        return math.prod((law.min_probability for law in self.laws), start=Fraction(1))

    @cached_property
    def two_min_probabilities(self) -> tuple[Fraction, Fraction]:
        """The smallest and the second smallest probability of a whole group of answers."""
        smallest_products = [Fraction(1)]
        for law in self.laws:
            smallest_probabilities = heapq.nsmallest(
                2, (Fraction(weight, law.total) for weight in law.weights)
            )
            smallest_products = heapq.nsmallest(
                2, [a * b for a in smallest_products for b in smallest_probabilities]
            )
        return smallest_products[0], smallest_products[-1]

    @property
    def is_uniform(self) -> bool:
        """Whether all personal answers are equally likely."""
        return all(len(set(law.weights)) == 1 for law in self.laws)

    def perturb(
        self, answers: ArrayLike, random: Random, personal: ArrayLike | None = None
    ) -> Integers:
        """Return the private answers with probability theta, else the personal ones."""
        true_answers = self._require_answers(answers)
        sends_truth = random.bernoulli_words(self.threshold, len(true_answers))
        personal_answers = (
            self.draw_personal(len(true_answers), random)
            if personal is None
            else self._require_answers(personal)
        )
        return np.where(sends_truth[:, None], true_answers, personal_answers)

    def draw_personal(self, respondents: int, random: Random) -> Integers:
        """Return personal answers drawn from the public law, exactly."""
        personal_answers = np.empty((respondents, self.width), np.int64)
        for law in self.laws:
            cumulative_weights = np.cumsum(np.array(law.weights, np.int64))
            cell_indices = np.searchsorted(
                cumulative_weights, random.integers(law.total, respondents), side="right"
            )
            law_shape = [self.sizes[place] for place in law.places]
            for place, place_answers in zip(
                law.places, np.unravel_index(cell_indices, law_shape), strict=True
            ):
                personal_answers[:, place] = place_answers
        return personal_answers

    def compute_personal_probability(self, answers: Sequence[int]) -> Fraction:
        """Return P(these personal answers), exactly."""
        probability = Fraction(1)
        for law in self.laws:
            cell_index = 0
            for place in law.places:
                cell_index = cell_index * self.sizes[place] + int(answers[place])
            probability *= Fraction(law.weights[cell_index], law.total)
        return probability

    def likelihood(self, truth: Sequence[int], report: Sequence[int]) -> Fraction:
        """Return theta [report = truth] + (1 - theta) P(personal answers = report)."""
        truth_probability = self.theta_exact if tuple(truth) == tuple(report) else Fraction(0)
        return truth_probability + (1 - self.theta_exact) * self.compute_personal_probability(
            report
        )

    def compute_worst_ratio(self) -> Fraction | None:
        """Return (theta + (1-theta) w) / ((1-theta) w)."""
        theta = self.theta_exact
        if math.prod(self.sizes) == 1 or theta == 0:
            return Fraction(1)
        personal_probability = (1 - theta) * self.min_personal_probability
        return (
            None
            if personal_probability == 0
            else (theta + personal_probability) / personal_probability
        )

    def check_estimable(self) -> None:
        """Raise at theta = 0."""
        if self.threshold == 0:
            raise EstimationError(
                "theta is 0: nobody ever sends a private answer, so nothing can be estimated; "
                "choose a theta above 0"
            )

    def apply_channel(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return theta g + (1-theta) E_Y g."""
        theta = float(self.theta_exact)
        personal_average = average_over_laws(function, self.laws, self.sizes, axes)
        return theta * function + (1 - theta) * personal_average

    def invert_channel(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return (g - (1-theta) E_Y g) / theta: P*(A) = theta P(A) + (1-theta) P(Y) solved."""
        self.check_estimable()
        theta = float(self.theta_exact)
        personal_average = average_over_laws(function, self.laws, self.sizes, axes)
        return (function - (1 - theta) * personal_average) / theta

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        truth_probability = self.theta_exact
        return (
            f"With a chance of {format_percent(truth_probability)} your own "
            f"{_format_answers(self.width)} sent, and with a "
            f"chance of {format_percent(1 - truth_probability)} what was drawn at random in a "
            "publicly known way."
        )

    def get_parameters(self) -> dict[str, Any]:
        """Return theta and the laws."""
        law_bodies = [
            {"places": list(law.places), "weights": list(law.weights)} for law in self.laws
        ]
        return {"theta": str(self.threshold), "laws": law_bodies}


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
        theta = Fraction(self.theta)
        round_towards_half = math.ceil if theta < Fraction(1, 2) else math.floor
        return round_towards_half(theta * PROBABILITY_UNIT)

    @classmethod
    def from_ratio(cls, ratio: Fraction, sizes: Sequence[int]) -> Related:
        """The largest theta whose reports change the odds of anything by at most ``ratio``."""
        if len(tuple(sizes)) > 1:
            raise PrivacyError(
                "a related-question group of two or more questions has an infinite epsilon at "
                "every theta; put each question into a group of its own, or use model: unrelated"
            )
        return cls(tuple(sizes), ratio / (1 + ratio))

    @classmethod
    def from_epsilon(cls, epsilon: float, sizes: Sequence[int]) -> Related:
        """The theta above 1/2 that keeps epsilon-local differential privacy."""
        return cls.from_ratio(_convert_to_ratio(epsilon), sizes)

    def perturb(
        self, answers: ArrayLike, random: Random, personal: ArrayLike | None = None
    ) -> Integers:
        """Return the answers with probability theta, else all of them reversed."""
        true_answers = self._require_answers(answers)
        sends_truth = random.bernoulli_words(self.threshold, len(true_answers))
        return np.where(sends_truth[:, None], true_answers, 1 - true_answers)

    def likelihood(self, truth: Sequence[int], report: Sequence[int]) -> Fraction:
        """Return theta for the truth, 1 - theta for its complement, 0 for all else."""
        if tuple(truth) == tuple(report):
            return self.theta_exact
        reversed_truth = tuple(1 - int(answer) for answer in truth)
        return 1 - self.theta_exact if reversed_truth == tuple(report) else Fraction(0)

    def compute_worst_ratio(self) -> Fraction | None:
        """Return theta / (1 - theta) or its inverse, for one question."""
        theta = self.theta_exact
        if self.width > 1 or theta in (0, 1):
            return None
        return max(theta / (1 - theta), (1 - theta) / theta)

    def check_estimable(self) -> None:
        """Raise at theta = 1/2."""
        if 2 * self.threshold == PROBABILITY_UNIT:
            raise EstimationError(
                "theta is 1/2: in the related-question model every report is then as likely as "
                "its opposite and nothing can be estimated; choose another theta, or model: "
                "unrelated, which has no such gap"
            )

    def apply_channel(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return theta g + (1-theta) g(complement)."""
        theta = float(self.theta_exact)
        return theta * function + (1 - theta) * np.flip(function, axis=tuple(axes.values()))

    def invert_channel(self, function: Floats, axes: Mapping[int, int]) -> Floats:
        """Return (theta g - (1-theta) g(complement)) / (2 theta - 1)."""
        self.check_estimable()
        theta = float(self.theta_exact)
        mirrored_function = np.flip(function, axis=tuple(axes.values()))
        return (theta * function - (1 - theta) * mirrored_function) / float(
            2 * self.theta_exact - 1
        )

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        truth_probability = self.theta_exact
        return (
            f"With a chance of {format_percent(truth_probability)} your own "
            f"{_format_answers(self.width)} sent, and with a "
            f"chance of {format_percent(1 - truth_probability)} the opposite."
        )

    def get_parameters(self) -> dict[str, Any]:
        """Return theta."""
        return {"theta": str(self.threshold)}


RESPONSE_MODELS: dict[str, type[Response]] = {
    model_class.name: model_class for model_class in (Unrelated, Related)
}


def _format_answers(count: int) -> str:
    return "answer is" if count == 1 else f"{count} answers are"


def _convert_to_ratio(epsilon: float) -> Fraction:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not epsilon > 0:
        raise PrivacyError(f"epsilon is {epsilon!r}; give a number above 0")
    if epsilon > 40:
        raise PrivacyError(f"epsilon is {epsilon!r}; above 40 protects nothing: write theta: 1")
    return exp_rounded_down(Fraction(epsilon))
