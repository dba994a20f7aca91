"""Claims: no sheet of a randomized-response survey says more than its epsilon allows.

Everything here is exact. ``law`` walks through every random choice of the sampler that a device
runs, with its probability as a fraction, and finds what really leaves it; ``worst_ratio`` compares
that for every two people. Known-bad twins go through the same functions and must fail.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import Categorical, PrivacyError, Schema, SchemaError
from discreet.audit import enumeration
from discreet.audit.enumeration import EnumeratedRandom, find_worst_ratio
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.errors import EstimationError
from discreet.mechanisms.laws import AnswerLaw
from discreet.mechanisms.response import RESPONSE_MODELS, Related, Response, Unrelated
from discreet.privacy.rounding import (
    compute_channel_epsilon,
    exp_rounded_down,
    exp_rounded_up,
    log_to_nearest,
    sum_rounded_up,
)
from discreet.survey.questionnaire import Group, PersonalLaw, Questionnaire
from schemas import BITS as SCHEMA

Output = tuple[Any, ...]
Chances = dict[Output, Fraction]


def law(send: Callable[[EnumeratedRandom], Output]) -> Chances:
    """What leaves a device, by running it on every path."""
    return enumeration.compute_law(send)


def worst_ratio(laws: Sequence[Chances]) -> Fraction | float:
    """The largest P(output | one person) / P(output | another)."""
    return find_worst_ratio(laws).ratio


def is_private(laws: Sequence[Chances], epsilon: float) -> bool:
    ratio = worst_ratio(laws)
    if isinstance(ratio, float):
        return math.isinf(epsilon)
    return math.log(ratio.numerator) - math.log(ratio.denominator) <= epsilon * (1 + 1e-12)


LAWS = {
    "uniform": (),
    "skewed": (AnswerLaw((0,), (1, 3)), AnswerLaw((1,), (2, 1, 5))),
    "joint": (AnswerLaw((1, 0), (1, 2, 3, 4, 5, 6)),),
}
CHANNELS: list[Response] = [
    *(Unrelated((2,), theta) for theta in ("0.01", "0.5", "0.9", "1/3")),
    *(Unrelated((2, 3), theta, laws) for theta in ("0.2", "0.7") for laws in LAWS.values()),
    Unrelated((2, 2, 2), "0.5"),
    *(Related((2,), theta) for theta in ("0.1", "0.4", "0.6", "0.9", "1/3")),
    Related((2, 2), "0.7"),
]


def name(channel: Response) -> str:
    return f"{channel.name}-{channel.sizes}-{channel.theta}"


def sent_by(channel: Response, truth: Sequence[int]) -> Callable[[EnumeratedRandom], Output]:
    return lambda random: tuple(channel.perturb([list(truth)], random)[0].tolist())


@pytest.mark.parametrize("channel", CHANNELS, ids=name)
def test_the_sampler_draws_the_stated_channel_exactly(channel):
    for truth in channel.outputs():
        stated = {r: channel.likelihood(truth, r) for r in channel.outputs()}
        assert law(sent_by(channel, truth)) == {r: p for r, p in stated.items() if p}


@pytest.mark.parametrize("channel", CHANNELS, ids=name)
def test_the_stated_epsilon_is_what_enumeration_finds(channel):
    laws = [law(sent_by(channel, truth)) for truth in channel.outputs()]
    ratio, stated = worst_ratio(laws), channel.compute_exact_epsilon()
    assert is_private(laws, stated)
    assert stated == compute_channel_epsilon(channel.channel())
    if math.isfinite(stated):
        assert not is_private(laws, stated * 0.999)  # and it is no larger than it must be
        assert (
            channel.compute_worst_ratio() == ratio
        )  # what large groups use instead of enumeration
    else:
        assert channel.compute_worst_ratio() is None


def test_the_loss_of_a_group_of_uniform_bits_is_large_and_printed():
    for bits in (1, 3, 5, 15, 40):
        channel = Unrelated((2,) * bits, "0.5")
        assert channel.compute_exact_epsilon() == pytest.approx(math.log(1 + 2**bits))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("laws", LAWS.values(), ids=LAWS)
def test_theta_by_epsilon_is_the_largest_that_keeps_it(epsilon, laws):
    channel = Unrelated.from_epsilon(epsilon, (2, 3), laws)
    assert channel.compute_exact_epsilon() == pytest.approx(epsilon, rel=1e-12)
    assert is_private([law(sent_by(channel, t)) for t in channel.outputs()], epsilon)
    more = Unrelated((2, 3), channel.theta_exact + Fraction(1, 10**6), laws)
    assert not is_private([law(sent_by(more, t)) for t in more.outputs()], epsilon)
    assert Related.from_epsilon(epsilon, (2,)).compute_exact_epsilon() == pytest.approx(
        epsilon, rel=1e-12
    )


def test_warner_on_a_group_has_no_epsilon_and_says_so():
    for theta in ("0.3", "0.7"):
        assert math.isinf(Related((2, 2), theta).compute_exact_epsilon())
        assert math.isinf(Related((2,) * 12, theta).compute_exact_epsilon())
    with pytest.raises(PrivacyError, match="infinite epsilon"):
        Related.from_epsilon(1.0, (2, 2))
    schema = Schema([Categorical("a", ["n", "y"], optional=False)], "c", ["n", "y"])
    survey = Questionnaire.from_schema(schema, 0.7, model="related")
    assert math.isinf(survey.guarantee.epsilon)
    assert "complement" in str(survey.guarantee)
    assert "no epsilon" in survey.sentence


def test_no_protection_is_no_epsilon():
    assert math.isinf(Unrelated((2, 3), 1).compute_exact_epsilon())
    assert math.isinf(Related((2,), 1).compute_exact_epsilon())
    assert math.isinf(Unrelated((2,), "0.5", (AnswerLaw((0,), (0, 1)),)).compute_exact_epsilon())
    assert Unrelated((2,), 0).compute_exact_epsilon() == 0
    assert Related((2,), "1/2").compute_exact_epsilon() == 0
    with pytest.raises(PrivacyError, match="probability zero"):
        Unrelated.from_epsilon(1.0, (2,), (AnswerLaw((0,), (0, 1)),))


def test_errors_say_where_nothing_can_be_estimated():
    table = np.eye(2)
    with pytest.raises(EstimationError, match="theta is 0"):
        Unrelated((2, 2), 0).invert_channel(table, {0: 0, 1: 1})
    with pytest.raises(EstimationError, match="theta is 1/2"):
        Related((2, 2), 0.5).invert_channel(table, {0: 0, 1: 1})
    with pytest.raises(SchemaError, match="exactly two"):
        Related((2, 3), 0.7)
    assert set(RESPONSE_MODELS) == {"unrelated", "related"}


# ---------------------------------------------------------------- whole sheets, as serialised
TWO = Questionnaire(
    SCHEMA,
    [Group(("a", "c"), theta=0.3), Group(("b",), epsilon=1.0)],
    [PersonalLaw(("a",), (1, 2))],
)


def people() -> Iterator[dict[str, str]]:
    for answers in itertools.product("ny", repeat=3):
        yield dict(zip("abc", answers, strict=True))


def sheet_of(
    survey: Questionnaire, answers: dict[str, str]
) -> Callable[[EnumeratedRandom], Output]:
    """The text that leaves the device."""

    def send(random: EnumeratedRandom) -> Output:
        sheet = Respondent(survey, MemoryStore(), random_state=random).report(answers)
        return (sheet.to_json(),)

    return send


def test_a_serialised_sheet_keeps_the_sum_of_its_groups():
    laws = [law(sheet_of(TWO, answers)) for answers in people()]
    total = TWO.guarantee.epsilon
    assert is_private(laws, total)
    assert not is_private(laws, total * 0.999)
    assert total == pytest.approx(math.log(1 + 0.3 / (0.7 / 6)) + 1.0)


@pytest.mark.slow
def test_a_sheet_drawn_twice_is_the_known_bad_twin():
    """Two draws for one person, as a respondent who forgets would make, break the promise."""

    def twice(answers):
        def send(random):
            one, two = (sheet_of(TWO, answers)(random) for _ in range(2))
            return one + two

        return send

    some = [{"a": "n", "b": "n", "c": "n"}, {"a": "y", "b": "n", "c": "n"}]
    assert is_private([law(sheet_of(TWO, answers)) for answers in some], TWO.guarantee.epsilon)
    assert not is_private([law(twice(answers)) for answers in some], TWO.guarantee.epsilon)


def test_a_sheet_sent_again_is_the_same_sheet():
    """What our respondent does instead."""

    def again(answers):
        def send(random):
            respondent = Respondent(TWO, MemoryStore(), random_state=random)
            return tuple(respondent.report(answers).to_json() for _ in range(3))

        return send

    assert is_private([law(again(answers)) for answers in people()], TWO.guarantee.epsilon)


def test_a_sheet_that_names_its_coin_is_a_known_bad_twin():
    """A field that says which questions were answered: the likeliest mistake of a form."""

    def telling(answers):
        channel = TWO.channels[1]

        def send(random):
            private = bool(random.bernoulli_words(channel.threshold, 1)[0])
            drawn = int(channel.draw_personal(1, random)[0, 0])
            return (private, "ny".index(answers["b"]) if private else drawn)

        return send

    assert worst_ratio([law(telling(answers)) for answers in people()]) == math.inf


def test_drawing_personal_answers_only_when_needed_is_safe_but_one_joint_coin_is_not_two():
    """Groups promise independent coins; one coin for both groups costs as one larger group."""

    def one_coin(answers):
        def send(random):
            private = bool(random.bernoulli_words(TWO.channels[1].threshold, 1)[0])
            truth = np.array([["ny".index(answers[n]) for n in "abc"]])
            places = [0, 2, 1]
            drawn = np.concatenate([c.draw_personal(1, random) for c in TWO.channels], axis=1)
            return tuple((truth[:, places] if private else drawn)[0].tolist())

        return send

    even = TWO.channels[1].theta_exact
    same = Questionnaire(SCHEMA, [Group(("a", "c"), theta=even), TWO.groups[1]], TWO.laws)
    laws = [law(one_coin(answers)) for answers in people()]
    assert is_private([law(sheet_of(same, a)) for a in people()], same.guarantee.epsilon)
    assert math.log(worst_ratio(laws)) != pytest.approx(same.guarantee.epsilon)


# ------------------------------------------- testing on randomized records: MRR, 3.4
def hit(answers: Sequence[int]) -> bool:
    """A classifier that predicts c from a and b; whether it is right."""
    return int(answers[0] and answers[1]) == answers[2]


ONE_GROUP = Questionnaire.from_schema(SCHEMA, 0.5)


def test_the_sheet_alone_lets_us_test_within_epsilon():
    assert is_private(
        [law(sheet_of(ONE_GROUP, answers)) for answers in people()], ONE_GROUP.guarantee.epsilon
    )


def test_the_published_way_to_test_is_a_known_bad_twin():
    """MRR, 3.4: the sheet, and from the same person whether the personal part was predicted right.

    A mismatch proves that the sheet is private: infinite epsilon.
    """
    channel = ONE_GROUP.channels[0]

    def published(answers):
        truth = ["ny".index(answers[n]) for n in "abc"]

        def send(random):
            private = bool(random.bernoulli_words(channel.threshold, 1)[0])
            personal = channel.draw_personal(1, random)[0].tolist()
            return (*(truth if private else personal), hit(personal))

        return send

    laws = [law(published(answers)) for answers in people()]
    assert worst_ratio(laws) == math.inf
    assert not is_private(laws, 1e9)


def test_own_personal_answers_have_no_epsilon_against_who_knows_them():
    """001's 6.3 claims the contrary: given the personal answer, a mismatch is proof."""
    own = Questionnaire.from_schema(SCHEMA, 0.5)
    own = Questionnaire(SCHEMA, own.groups, personal="own")
    known = {"a": "n", "b": "n", "c": "n"}

    def send_of(answers):
        def send(random):
            made = Respondent(own, MemoryStore(), unprotected=True, random_state=random).report(
                answers, known
            )
            return (made.to_json(),)

        return send

    assert worst_ratio([law(send_of(answers)) for answers in people()]) == math.inf
    assert math.isinf(own.guarantee.epsilon)
    assert "respondents' own" in str(own.guarantee)


def test_nothing_but_the_answers_is_in_a_sheet():
    sheet = Respondent(TWO, MemoryStore()).report({"a": "n", "b": "y", "c": "n"})
    body = json.loads(sheet.to_json())
    assert body.keys() == {
        "format", "version", "collection", "id", "question", "value", "digest"
    }  # fmt: skip
    assert len(body["value"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("theta", ["0.1", "0.5", "0.7"])
def test_a_stated_loss_is_never_below_the_true_one_and_one_step_less_is(theta):
    """Decided with 60 digits; the nearest float is the twin: about half of them are too low."""
    below = 0
    for size in range(2, 40):
        channel = Unrelated((size,), theta)
        ratio, stated = channel.compute_worst_ratio(), channel.compute_exact_epsilon()
        assert exp_rounded_down(Fraction(stated)) >= ratio
        assert exp_rounded_up(Fraction(math.nextafter(stated, 0.0))) < ratio
        below += exp_rounded_up(Fraction(log_to_nearest(ratio))) < ratio
    assert below > 5
    several = [0.1, 0.2, 0.7, 1e-9]
    assert Fraction(sum_rounded_up(several)) >= sum(map(Fraction, several))
    assert any(  # the twin: floats added one after the other
        Fraction(sum(one)) < sum(map(Fraction, one))
        for one in ([0.1 * k, 0.3, 0.7 * k] for k in range(1, 20))
    )
