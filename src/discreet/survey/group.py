"""A group of questions that are randomized together, and the ways to choose its theta."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, get_args

from discreet.errors import PrivacyError, SchemaError
from discreet.files.documents import Body
from discreet.mechanisms.laws import parse_rational
from discreet.mechanisms.oracle import PROBABILITY_UNIT
from discreet.mechanisms.response import Related, Response, Unrelated
from discreet.schema.schema import refuse_set

if TYPE_CHECKING:
    from discreet.survey.questionnaire import Questionnaire

__all__ = ["Group", "GroupBody", "ResponseModel", "list_subsets", "make_channels"]

ResponseModel = Literal["unrelated", "related"]
Number = int | float | str
MIN_ODDS_RATIO = Fraction(1001, 1000)
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
    model: ResponseModel = "unrelated"

    def __post_init__(self) -> None:
        refuse_set("a group", "questions", self.questions)
        object.__setattr__(self, "questions", tuple(self.questions))
        theta: Any = str(self.theta) if isinstance(self.theta, Fraction) else self.theta
        # as JSON can hold it: a fraction as text, a numpy number as Python's
        object.__setattr__(self, "theta", theta.item() if hasattr(theta, "item") else theta)
        title = self.name or "a group"
        if not self.questions:
            raise SchemaError("a group has no questions; list at least one name")
        if self.model not in get_args(ResponseModel):
            raise SchemaError(f"{title}: model is {self.model!r}; write unrelated or related")
        stated_rules = [
            rule for rule in ("theta", "epsilon", "belief") if getattr(self, rule) is not None
        ]
        if len(stated_rules) != 1:
            raise PrivacyError(
                f"{title}: say how often the truth is sent with exactly one of theta, epsilon and "
                f"belief; this group has {' and '.join(stated_rules) or 'none'}"
            )
        if isinstance(self.epsilon, str) and self.epsilon != "shuffled":
            raise PrivacyError(
                f"{title}: epsilon is {self.epsilon!r}; give a number, or the word shuffled"
            )

    @property
    def name(self) -> str:
        """The questions, for tables."""
        return " + ".join(map(str, self.questions))

    def make_channel(self, questionnaire: Questionnaire, ratio: Fraction | None = None) -> Response:
        """The mechanism of this group on the sheets of a questionnaire.

        Parameters
        ----------
        questionnaire : Questionnaire
        ratio : Fraction, optional
            By how much a report may multiply odds, for a group with a belief.
        """
        places = [questionnaire.place[name] for name in self.questions]
        sizes = [questionnaire.sizes[place] for place in places]
        index_by_place = {place: index for index, place in enumerate(places)}
        group_laws = [
            law.project_onto(index_by_place, questionnaire.sizes) for law in questionnaire.all_laws
        ]
        laws = tuple(law for law in group_laws if law is not None)
        model: type[Related | Unrelated] = Related if self.model == "related" else Unrelated
        model_laws = () if self.model == "related" else (laws,)
        try:
            if self.theta is not None:
                response = model(tuple(sizes), self.theta, *model_laws)
            elif self.epsilon is not None:
                assert self.epsilon != "shuffled"  # the questionnaire has given it a number
                response = model.from_epsilon(self.epsilon, sizes, *model_laws)
            else:
                ratio = compute_odds_ratio(self.belief) if ratio is None else ratio
                response = model.from_ratio(ratio, sizes, *model_laws)
            response.check_estimable()
        except (SchemaError, PrivacyError, ValueError) as error:
            raise type(error)(f"group {self.name}: {error}") from None
        return response

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        group_body: dict[str, Any] = {"questions": list(self.questions), "model": self.model}
        if self.theta is not None:
            group_body["theta"] = self.theta
        if self.epsilon is not None:
            group_body["epsilon"] = self.epsilon
        if self.belief is not None:
            group_body["belief"] = {"prior": self.belief[0], "posterior": self.belief[1]}
        return group_body


def make_channels(questionnaire: Questionnaire, groups: Sequence[Group]) -> tuple[Response, ...]:
    """The mechanisms of groups on the sheets of a questionnaire.

    Where the personal answers are the respondents' own, no belief can be promised.

    Parameters
    ----------
    questionnaire : Questionnaire
    groups : sequence of Group
        Those of the questionnaire, or some of them with an epsilon in numbers.
    """
    belief_groups = [group for group in groups if group.belief is not None]
    if not belief_groups:
        return tuple(group.make_channel(questionnaire) for group in groups)
    if questionnaire.personal == "own":
        raise PrivacyError(
            f"group {belief_groups[0].name}: a belief cannot be promised where the personal "
            "answers are the respondents' own, because somebody may know them; write theta, or "
            "personal: device"
        )
    try:
        ratio = min(compute_odds_ratio(group.belief) for group in belief_groups)
    except PrivacyError as error:
        raise PrivacyError(
            f"group {' or '.join(group.name for group in belief_groups)}: {error}"
        ) from None
    fixed_channels = {
        group_number: group.make_channel(questionnaire)
        for group_number, group in enumerate(groups)
        if group.belief is None
    }
    for group_number, channel in fixed_channels.items():
        worst_ratio = channel.compute_worst_ratio()
        if worst_ratio is None or ratio < worst_ratio * MIN_ODDS_RATIO:
            raise PrivacyError(
                f"group {groups[group_number].name}: its sheet alone may raise a belief as far as "
                f"the belief stated for {belief_groups[0].name} or further, and the two may be "
                "related; lower its theta"
            )
        ratio /= worst_ratio
    ratio_share = _compute_root_below(ratio, len(belief_groups))
    return tuple(
        fixed_channels[group_number]
        if group_number in fixed_channels
        else group.make_channel(questionnaire, ratio_share)
        for group_number, group in enumerate(groups)
    )


def list_subsets(groups: Iterable[int]) -> list[tuple[int, ...]]:
    """All subsets of some groups, the smaller ones first: the last is all of them."""
    group_numbers = tuple(groups)
    return [
        subset
        for subset_size in range(len(group_numbers) + 1)
        for subset in itertools.combinations(group_numbers, subset_size)
    ]


def compute_odds_ratio(belief: Any) -> Fraction:
    """How much a sheet may multiply the odds, so that the prior stays below the posterior.

    b/(1-b) = ratio * a/(1-a). The bound holds for every statement about the answers, because the
    likelihood ratio of two statements is at most the largest of any two whole sheets of answers;
    that of a sheet is the product of the groups', which are randomized independently.
    """
    prior, posterior = (parse_rational("belief", number) for number in belief)
    if not 0 < prior < posterior < 1:
        raise PrivacyError(
            f"belief is {float(prior):g} before and {float(posterior):g} after; it must hold that "
            "0 < prior < posterior < 1"
        )
    return posterior * (1 - prior) / (prior * (1 - posterior))


def _compute_root_below(ratio: Fraction, degree: int) -> Fraction:
    """The largest multiple of 2^-64 whose power is at most a ratio above 1; the ratio itself for
    the first power.
    """
    if degree == 1:
        return ratio
    lower, upper = PROBABILITY_UNIT, math.ceil(ratio) * PROBABILITY_UNIT
    while upper - lower > 1:
        middle = (lower + upper) // 2
        if Fraction(middle, PROBABILITY_UNIT) ** degree <= ratio:
            lower = middle
        else:
            upper = middle
    return Fraction(lower, PROBABILITY_UNIT)


class BeliefBody(Body):
    prior: Number
    posterior: Number


class GroupBody(Body):
    """Shape of a group on disk."""

    questions: list[str]
    model: ResponseModel = "unrelated"
    theta: Number | None = None
    epsilon: float | Literal["shuffled"] | None = None
    belief: BeliefBody | None = None
