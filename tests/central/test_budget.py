"""Claims: shares of a budget add up exactly, and noise is as wide as its share demands."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.central.budget import MAX_STEPS_PER_PERSON, Budget, split_budget
from discreet.central.selection import sample_exponential_mechanism
from discreet.errors import PrivacyError
from discreet.privacy.accountant import ChoiceStep, compute_gaussian_rho
from discreet.privacy.rounding import convert_rho_to_epsilon, convert_to_rho
from discreet.randomness import SeededRandom


def test_a_pure_share_gives_noise_of_sensitivity_over_epsilon():
    budget = Budget(0.7)
    noise = budget.spend_on_noise("sum", Fraction(1, 10), 12)
    assert (noise.parameter, noise.gaussian) == (120, False)
    assert budget.remaining == Fraction(0.7) - Fraction(1, 10)


def test_a_concentrated_share_gives_variance_sensitivity_squared_over_two_rho():
    budget = Budget(1.0, 1e-6)
    noise = budget.spend_on_noise("sum", Fraction(1, 1000), 5)
    assert noise.parameter == Fraction(25 * 1000, 2) / budget.usable_share
    assert (noise.gaussian, noise.rounding_step) == (True, 1)


def test_of_steps_that_nobody_planned_only_what_zcdp_allows_is_used():
    budget = Budget(1.0, 1e-6)
    assert budget.total * budget.usable_share == convert_to_rho(1.0, 1e-6)
    assert budget.rho == convert_to_rho(1.0, 1e-6)
    assert float(budget.total) == pytest.approx(compute_gaussian_rho(1.0, 1e-6))


def plan_for(budget):
    cost = budget.total / 10
    return [budget.plan_noise(5 * cost), ChoiceStep(cost), budget.plan_noise(4 * cost, 1024, 3)]


def test_planned_steps_use_more_of_their_shares():
    budget = Budget(1.0, 1e-6)
    steps, before = plan_for(budget), budget.usable_share
    budget.calibrate(steps)
    assert before < Fraction(9, 10) < Fraction(99, 100) < budget.usable_share <= 1
    noise = budget.spend_on_noise("tables", steps[0].rho)
    assert noise.parameter == 1 / (2 * steps[0].rho * budget.usable_share)
    epsilon = budget.spend_on_selection("choice", steps[1].rho)
    assert float(epsilon) == pytest.approx(math.sqrt(8 * steps[1].rho * budget.usable_share))
    budget.spend_on_noise("residuals", steps[2].rho, 1024, 3)
    assert budget.rho == budget.total * budget.usable_share


def test_planned_steps_may_be_left_out_and_nothing_else_may_be_paid_for():
    budget = Budget(1.0, 1e-6)
    steps = plan_for(budget)
    budget.calibrate(steps)
    budget.spend_on_selection("choice", steps[1].rho)
    with pytest.raises(PrivacyError, match="was not planned"):
        budget.spend_on_noise("tables, too late", steps[0].rho)
    with pytest.raises(PrivacyError, match="was not planned"):
        budget.spend_on_noise("more numbers than planned", steps[2].rho, 1024, 4)
    with pytest.raises(PrivacyError, match="come too late"):
        budget.calibrate(steps[2:])


def test_a_plan_beyond_the_budget_is_refused():
    budget = Budget(1.0, 1e-6)
    with pytest.raises(PrivacyError, match="more than is left"):
        budget.calibrate([*plan_for(budget), ChoiceStep(budget.total / 10)])


def test_rounding_to_a_grain_may_move_a_number_by_one_step_more():
    budget = Budget(1.0, 1e-6)
    noise = budget.spend_on_noise("sum", Fraction(1, 1000), 3 * MAX_STEPS_PER_PERSON)
    assert noise.rounding_step == 3
    variance = Fraction((MAX_STEPS_PER_PERSON + 1) ** 2 * 1000, 2)
    assert noise.parameter == variance / budget.usable_share
    assert budget.plan_noise(Fraction(1), 3 * MAX_STEPS_PER_PERSON, 2).sensitivity == (
        MAX_STEPS_PER_PERSON + 2  # each of two numbers may move by one step more
    )


@pytest.mark.parametrize("cost", [Fraction(0), Fraction(-1), Fraction(2)])
def test_nothing_beyond_what_is_left_can_be_spent(cost):
    budget = Budget(1.0)
    with pytest.raises(PrivacyError, match="but only"):
        budget.spend("more", cost)
    budget.spend("half", Fraction(1, 2))
    with pytest.raises(PrivacyError, match=r"0\.5 is left"):
        budget.spend("more", Fraction(3, 4))
    assert budget.spend("rest", budget.remaining) == Fraction(1, 2)


def test_shares_add_up_to_exactly_the_whole():
    parts = split_budget({"a": 1, "b": 2.5, "c": 1 / 3}, Fraction(7, 10))
    assert sum(parts.values()) == Fraction(7, 10)
    assert parts["b"] / parts["a"] == Fraction(5, 2)


def test_shares_of_delta_add_up_to_no_more_than_delta():
    budget = Budget(1.0, 1e-5)
    parts = split_budget({"a": 1, "b": 2, "c": 4}, budget.total)
    spent = sum(Fraction(budget.compute_delta_share(cost)) for cost in parts.values())
    assert Fraction(1e-5) * (1 - Fraction(1, 10**9)) < spent <= Fraction(1e-5)


def test_a_choice_spends_its_bounded_range_epsilon():
    """epsilon^2/8-zCDP: Cesar, Rogers 2021."""
    cost = Fraction(1, 100)
    budget = Budget(1.0, 1e-6)
    epsilon, rho = budget.spend_on_selection("choice", cost), cost * budget.usable_share
    assert rho * (1 - Fraction(1, 10**9)) < epsilon**2 / 8 <= rho
    assert Budget(1.0).spend_on_selection("choice", cost) == cost


def test_what_follows_under_a_delta_has_what_is_left():
    budget = Budget(1.0)
    budget.spend("class counts", Fraction(1, 25))
    later = budget.with_delta(1e-6)
    assert Fraction(later.epsilon) + Fraction(1, 25) <= 1
    assert later.epsilon == pytest.approx(0.96)
    # a pure part of epsilon is epsilon^2/2-zCDP, and rhos add up
    assert later.rho == later.total + Fraction(1, 25) ** 2 / 2
    assert convert_to_rho(0.96, 1e-6) < later.total < Budget(1.0, 1e-6).total


@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_rho_converts_to_no_more_than_epsilon(delta):
    rho = float(convert_to_rho(1.0, delta))
    assert 1 - 1e-9 < convert_rho_to_epsilon(rho, delta) <= 1


def follows_the_law(epsilon):
    """P(i) ~ exp(q_i): 4000 draws over (0, 1, 2), six deviations."""
    random = SeededRandom(3)
    drawn = np.bincount(
        [sample_exponential_mechanism([0, 1, 2], epsilon, random) for _ in range(4000)], minlength=3
    )
    law = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    assert math.isclose(law.sum(), 1)
    return bool((np.abs(drawn - 4000 * law) < 6 * np.sqrt(4000 * law * (1 - law))).all())


def test_a_choice_follows_the_exponential_law():
    assert follows_the_law(Fraction(1))


def test_twin_a_choice_with_more_than_it_was_paid_for_is_noticed():
    assert not follows_the_law(Fraction(2))


def test_a_delta_that_floats_cannot_share_is_refused():
    Budget(1.0, 1e-100)
    with pytest.raises(PrivacyError, match="delta is 1e-316; give at least 1e-100, or 0"):
        Budget(1.0, 1e-316)
