"""What people are told of a mechanism, and what one liar can do, are facts of its channel."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from discreet.mechanisms.frequency import ORACLES, SHE
from discreet.mechanisms.mean import MEAN_ORACLES, Duchi, Hybrid, OneBit, PiecewiseMany
from discreet.mechanisms.oracle import format_percent
from discreet.mechanisms.response import Related, Unrelated
from discreet.randomness import SeededRandom

SETTINGS = [(0.1, 2), (1.0, 5), (3.0, 12), (8.0, 40)]


def chances(sentence: str) -> list[str]:
    return re.findall(r"[\d.]+ %", sentence)


def states_p_and_q(oracle: Any, sentence: str) -> bool:
    """Both probabilities, the one of the truth first."""
    return chances(sentence) == [format_percent(oracle.p_exact), format_percent(oracle.q_exact)]


@pytest.mark.parametrize("name", [name for name in ORACLES if name != "she"])
@pytest.mark.parametrize(("epsilon", "size"), SETTINGS)
def test_an_oracle_states_how_often_it_holds_the_truth(
    name: str, epsilon: float, size: int
) -> None:
    oracle = ORACLES[name](epsilon, size)
    sentence = oracle.to_plain_words()
    assert states_p_and_q(oracle, sentence)
    assert str(size) in sentence
    weaker = ORACLES[name](epsilon / 2, size)  # the twin: another epsilon's words are found out
    assert not states_p_and_q(oracle, weaker.to_plain_words())


@pytest.mark.parametrize(
    ("probability", "shown"),
    [(0.5, "50.0 %"), (0.4754, "47.5 %"), (0.99, "99.0 %"), (0.99954, "99.954 %"), (1, "100 %"),
     (0.00012, "0.012 %"), (0, "0 %")],
)  # fmt: skip
def test_a_chance_is_not_rounded_to_certainty(probability: float, shown: str) -> None:
    assert format_percent(probability) == shown


def test_noisy_numbers_state_their_noise() -> None:
    oracle = SHE(1.0, 5)
    assert f"{np.sqrt(oracle.variance()):.3g}" in oracle.to_plain_words()


def test_direct_encoding_without_protection_says_so() -> None:
    assert chances(ORACLES["de"](float("inf"), 3).to_plain_words()) == ["100 %", "0 %"]


def test_signs_follow_the_number_as_stated() -> None:
    oracle = Duchi(1.0)
    ends = [oracle.compute_row(level)[1] for level in (oracle.resolution, -oracle.resolution)]
    stated = chances(oracle.to_plain_words())
    assert [stated[0], stated[2]] == [format_percent(chance) for chance in ends]


@pytest.mark.parametrize("name", MEAN_ORACLES)
def test_every_mean_oracle_has_words(name: str) -> None:
    many = name == "laplace" or name.endswith("many") or name == "one-bit"
    oracle = MEAN_ORACLES[name](4.0, *([6] if many else []))
    sentence = oracle.to_plain_words()
    assert sentence.endswith(".")
    assert ("6 numbers" in sentence) == many


def test_sampled_coordinates_are_counted() -> None:
    assert OneBit(1.0, 6).to_plain_words().startswith("One of 6 numbers is drawn")
    assert PiecewiseMany(5.0, 6).to_plain_words().startswith("2 of 6 numbers are drawn")
    assert PiecewiseMany(50.0, 6).to_plain_words().startswith("All 6 numbers are sent")


def test_a_mixture_states_both_shares() -> None:
    oracle = Hybrid(3.0)
    stated = chances(oracle.to_plain_words())
    assert format_percent(oracle.piecewise_threshold / 2**64) in stated
    assert format_percent(1 - oracle.piecewise_threshold / 2**64) in stated


@pytest.mark.parametrize("channel", [Unrelated((2, 3), "0.7"), Related((2,), "0.8")])
def test_responses_state_theta(channel: Any) -> None:
    truth = channel.theta_exact
    assert chances(channel.to_plain_words()) == [format_percent(truth), format_percent(1 - truth)]


def gained(oracle: Any, reports: Any) -> float:
    """The most that one of these reports adds to the estimate of any value."""
    counts = [oracle.estimate(oracle.tally(reports[k : k + 1]), 1) for k in range(len(reports))]
    return float(np.max(counts))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_influence_is_the_most_that_one_report_can_add(name: str, epsilon: float) -> None:
    oracle = ORACLES[name](epsilon, 6)
    if name == "she":
        reports = oracle.decode(np.full((1, 6), oracle.max_magnitude))
    elif name == "olh":  # too many reports to list; some of these hit the true group
        reports = oracle.perturb(np.zeros(200, int), SeededRandom(0))
    else:
        reports = oracle.decode(np.array(list(oracle.outputs())))
    assert gained(oracle, reports) == pytest.approx(oracle.influence)


def test_influence_at_a_known_point() -> None:
    """3.2 people at epsilon 1 and 27 cells."""
    assert ORACLES["ss"](1.0, 27).influence == pytest.approx(3.2, abs=0.05)


@pytest.mark.parametrize("name", MEAN_ORACLES)
def test_influence_on_a_sum_is_the_most_that_one_report_can_add(name: str) -> None:
    many = name == "laplace" or name.endswith("many") or name == "one-bit"
    oracle = MEAN_ORACLES[name](3.0, *([2] if many else []), resolution=1)
    reports = oracle.outputs()
    assert gained(oracle, reports) == pytest.approx(oracle.influence)
