"""A group of questions that are randomized together, and the ways to choose its theta."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from discreet.documents import Body
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.laws import Law, rational
from discreet.mechanisms.oracle import ONE
from discreet.mechanisms.response import Related, Response, Unrelated
from discreet.schema import refuse_set

__all__ = ["Group", "GroupBody", "Model", "channels_of"]

Model = Literal["unrelated", "related"]
Number = int | float | str
ROOM = Fraction(1001, 1000)
"""Least odds ratio that groups with a belief need; less reveals too little to estimate."""


@dataclass(frozen=True)
class Group:
    """Questions that are answered truthfully together or not at all.

    Exactly one of ``theta``, ``epsilon`` and ``belief`` says how often the truth is sent.

    Parameters
    ----------
    questions : tuple of str
    theta : float or str, optional
        Probability of the truth: above 0 and, in the related-question model, not 1/2.
    epsilon : float or "shuffled", optional
        The largest local-DP loss of the group; theta is the largest that keeps it. In a shuffled
        survey such groups can share what the shuffle allows.
    belief : (prior, posterior), optional
        No sheet may raise anyone's belief in any statement from the first probability above the
        second. That is about the whole sheet, since answers of different groups may be related:
        what the other groups may reveal is subtracted, and groups with a belief share the rest.
    model : {"unrelated", "related"}
        What is sent instead of the truth: personal answers, or the complement (Warner).
    """

    questions: tuple[str, ...]
    theta: Number | Fraction | None = None
    epsilon: float | Literal["shuffled"] | None = None
    belief: tuple[Number, Number] | None = None
    model: Model = "unrelated"

    def __post_init__(self) -> None:
        refuse_set("a group", "questions", self.questions)
        object.__setattr__(self, "questions", tuple(self.questions))
        object.__setattr__(self, "theta", _plain(self.theta))
        title = " + ".join(map(str, self.questions)) or "a group"
        if not self.questions:
            raise SchemaError("a group has no questions; list at least one name")
        if self.model not in get_args(Model):
            raise SchemaError(f"{title}: model is {self.model!r}; write unrelated or related")
        given = [n for n in ("theta", "epsilon", "belief") if getattr(self, n) is not None]
        if len(given) != 1:
            raise PrivacyError(
                f"{title}: say how often the truth is sent with exactly one of theta, epsilon and "
                f"belief; this group has {' and '.join(given) or 'none'}"
            )
        if isinstance(self.epsilon, str) and self.epsilon != "shuffled":
            raise PrivacyError(
                f"{title}: epsilon is {self.epsilon!r}; give a number, or the word shuffled"
            )

    @property
    def name(self) -> str:
        """The questions, for tables."""
        return " + ".join(self.questions)

    def channel(
        self, sizes: Sequence[int], laws: Sequence[Law], ratio: Fraction | None = None
    ) -> Response:
        """The mechanism of this group for questions of these sizes.

        Parameters
        ----------
        sizes : sequence of int
        laws : sequence of Law
        ratio : Fraction, optional
            By how much a report may multiply odds, for a group with a belief.
        """
        try:
            made = self._channel(tuple(sizes), tuple(laws), ratio)
            made.check_estimable()
        except (SchemaError, PrivacyError, ValueError) as error:
            raise type(error)(f"group {self.name}: {error}") from None
        return made

    def _channel(
        self, sizes: tuple[int, ...], laws: tuple[Law, ...], ratio: Fraction | None
    ) -> Response:
        if self.theta is not None:
            if self.model == "related":
                return Related(sizes, self.theta)
            return Unrelated(sizes, self.theta, laws)
        if self.epsilon is not None:
            assert self.epsilon != "shuffled"  # the questionnaire has given it a number
            if self.model == "related":
                return Related.of_epsilon(self.epsilon, sizes)
            return Unrelated.of_epsilon(self.epsilon, sizes, laws)
        ratio = odds_ratio(self.belief) if ratio is None else ratio
        if self.model == "related":
            return Related.of_ratio(ratio, sizes)
        return Unrelated.of_ratio(ratio, sizes, laws)

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        body: dict[str, Any] = {"questions": list(self.questions), "model": self.model}
        if self.theta is not None:
            body["theta"] = self.theta
        if self.epsilon is not None:
            body["epsilon"] = self.epsilon
        if self.belief is not None:
            body["belief"] = {"prior": self.belief[0], "posterior": self.belief[1]}
        return body


def channels_of(
    groups: Sequence[Group],
    sizes: Sequence[Sequence[int]],
    laws: Sequence[Sequence[Law]],
    own: bool = False,
) -> tuple[Response, ...]:
    """The mechanisms of all groups of a sheet.

    Parameters
    ----------
    groups : sequence of Group
    sizes, laws : one for each group
        As in ``Group.channel``.
    own : bool
        Whether the personal answers are the respondents' own: then no belief can be promised.
    """
    asked = list(zip(groups, sizes, laws, strict=True))
    stated = [group for group in groups if group.belief is not None]
    if not stated:
        return tuple(group.channel(size, law) for group, size, law in asked)
    if own:
        raise PrivacyError(
            f"group {stated[0].name}: a belief cannot be promised where the personal answers are "
            "the respondents' own, because somebody may know them; write theta, or personal: device"
        )
    try:
        ratio = min(odds_ratio(group.belief) for group in stated)
    except PrivacyError as error:
        raise PrivacyError(f"group {' or '.join(one.name for one in stated)}: {error}") from None
    fixed = {
        number: group.channel(size, law)
        for number, (group, size, law) in enumerate(asked)
        if group.belief is None
    }
    for number, channel in fixed.items():
        worst = channel.worst_ratio()
        if worst is None or ratio < worst * ROOM:
            raise PrivacyError(
                f"group {groups[number].name}: its sheet alone may raise a belief as far as the "
                f"belief stated for {stated[0].name} or further, and the two may be related; lower "
                "its theta"
            )
        ratio /= worst
    each = _root_below(ratio, len(stated))
    return tuple(
        fixed[number] if number in fixed else group.channel(size, law, each)
        for number, (group, size, law) in enumerate(asked)
    )


def odds_ratio(belief: Any) -> Fraction:
    """How much a sheet may multiply the odds, so that the prior stays below the posterior.

    b/(1-b) = ratio * a/(1-a). The bound holds for every statement about the answers, because the
    likelihood ratio of two statements is at most the largest of any two whole sheets of answers;
    that of a sheet is the product of the groups', which are randomized independently.
    """
    prior, posterior = (rational("belief", number) for number in belief)
    if not 0 < prior < posterior < 1:
        raise PrivacyError(
            f"belief is {float(prior):g} before and {float(posterior):g} after; it must hold that "
            "0 < prior < posterior < 1"
        )
    return posterior * (1 - prior) / (prior * (1 - posterior))


def _root_below(ratio: Fraction, degree: int) -> Fraction:
    """The largest multiple of 2^-64 whose power is at most a ratio above 1; the ratio itself for
    the first power.
    """
    if degree == 1:
        return ratio
    low, high = ONE, math.ceil(ratio) * ONE
    while high - low > 1:
        middle = (low + high) // 2
        if Fraction(middle, ONE) ** degree <= ratio:
            low = middle
        else:
            high = middle
    return Fraction(low, ONE)


def _plain(theta: Any) -> Number | None:
    """Theta as JSON can hold it: a fraction as text, a numpy number as Python's."""
    if isinstance(theta, Fraction):
        return str(theta)
    return theta.item() if hasattr(theta, "item") else theta  # type: ignore[no-any-return]


class BeliefBody(Body):
    prior: Number
    posterior: Number


class GroupBody(Body):
    """Shape of a group on disk."""

    questions: list[str]
    model: Model = "unrelated"
    theta: Number | None = None
    epsilon: float | Literal["shuffled"] | None = None
    belief: BeliefBody | None = None

    def group(self) -> Group:
        """The group this shape stands for."""
        belief = None if self.belief is None else (self.belief.prior, self.belief.posterior)
        return Group(tuple(self.questions), self.theta, self.epsilon, belief, self.model)
