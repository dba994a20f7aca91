import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import Guarantee, PrivacyError
from discreet.privacy.guarantee import Charge, GuaranteeBody
from discreet.privacy.rounding import compute_channel_epsilon, convert_rho_to_epsilon


def test_the_same_people_twice_costs_the_sum():
    total = Guarantee(0.5, 1e-6).compose_sequential(Guarantee(0.25, 1e-7))
    assert total.epsilon == 0.75
    assert total.delta == pytest.approx(1.1e-6)
    assert sum(charge.epsilon for charge in total.charges) == 0.75


def test_each_part_of_a_promise_beside_another_is_the_larger_one():
    """The larger epsilon and the larger delta, not those of one of the two."""
    one, other = Guarantee(1.0, 1e-9, rho=0.1), Guarantee(0.5, 1e-3, rho=0.3)
    for joined in (one.compose_parallel(other), other.compose_parallel(one)):
        assert (joined.epsilon, joined.delta, joined.rho) == (1.0, 1e-3, 0.3)


def test_what_reports_reveal_by_themselves_adds_up_for_the_same_people():
    one = Guarantee(0.5, 1e-6, trust="local", unshuffled=3.0)
    other = Guarantee(0.25, 1e-6, trust="local", unshuffled=2.0)
    assert one.compose_sequential(other).unshuffled_epsilon == 5.0
    assert one.compose_sequential(Guarantee(1.0, trust="local")).unshuffled_epsilon == 4.0
    assert one.compose_parallel(other).unshuffled_epsilon == 3.0


def test_other_people_cost_the_larger():
    both = Guarantee(0.5).compose_parallel(Guarantee(0.25))
    assert (both.epsilon, both.delta) == (0.5, 0)


def test_parts_chosen_by_the_data_need_add_remove():
    with pytest.raises(PrivacyError, match="both parts are touched"):
        Guarantee(1, neighbours="replace").compose_parallel(
            Guarantee(1, neighbours="replace"), split_by_data=True
        )
    assert Guarantee(1).compose_parallel(Guarantee(1), split_by_data=True).epsilon == 1


def test_replacing_is_removing_and_adding():
    pure = Guarantee(0.5).as_replace()
    assert (pure.epsilon, pure.neighbours) == (1.0, "replace")
    approximate = Guarantee(1.0, 1e-6).as_replace()
    # group privacy for two: P(S) <= e P'(S) + d <= e (e P''(S) + d) + d
    assert approximate.delta == pytest.approx(1e-6 * (1 + math.e))
    assert Guarantee(0.5, 1e-6, rho=0.1).as_replace().rho == pytest.approx(0.4)
    assert pure.as_replace() is pure


def test_replace_says_nothing_about_add_remove():
    with pytest.raises(PrivacyError, match="says nothing about adding or removing"):
        Guarantee(1, neighbours="replace").as_add_remove()
    assert Guarantee(1).as_add_remove() == Guarantee(1)


def test_different_relations_do_not_mix():
    with pytest.raises(PrivacyError, match="as_replace"):
        Guarantee(1).compose_sequential(Guarantee(1, neighbours="replace"))
    with pytest.raises(PrivacyError, match="composes with a Guarantee"):
        Guarantee(1).compose_sequential(0.5)


def test_concentrated_promises_add_their_rho():
    one = Guarantee(convert_rho_to_epsilon(0.01, 1e-6), 1e-6, rho=0.01)
    four = one.compose_sequential(one).compose_sequential(one).compose_sequential(one)
    assert four.rho == pytest.approx(0.04)
    assert four.epsilon == pytest.approx(convert_rho_to_epsilon(0.04, 4e-6))
    assert four.epsilon < 4 * one.epsilon


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": "1"},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -0.1},
        {"epsilon": 1, "neighbours": "both"},
        {"epsilon": 1, "trust": "me"},
        {"epsilon": 1, "rho": -1},
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(PrivacyError):
        Guarantee(**wrong)


def test_a_void_promise_is_not_made():
    with pytest.raises(PrivacyError, match="guarantees nothing"):
        Guarantee(1, 0.6).compose_sequential(Guarantee(1, 0.6))
    with pytest.raises(PrivacyError, match="void"):
        Guarantee(5, 0.1).as_replace()


def test_simulation_is_contagious_and_said_aloud():
    mixed = Guarantee(1).compose_sequential(Guarantee(1).void_if(simulated=True))
    assert mixed.simulated
    assert not mixed.is_private
    assert "promises nothing" in str(mixed)
    assert Guarantee(1).is_private


def test_a_promise_that_is_not_kept_says_so_first():
    broken = Guarantee(1.0, void=("the bounds were taken from the data",))
    assert not broken.is_private
    assert str(broken).startswith("NOT KEPT: the bounds were taken from the data.")
    assert broken.compose_sequential(Guarantee(1.0)).void == broken.void
    assert not Guarantee(1.0).compose_parallel(broken).is_private


def test_it_speaks_plainly():
    text = str(Guarantee(0.5, 1e-6, assumptions=("the curator is honest",)))
    assert "epsilon = 0.5, delta = 1e-06 per person in total" in text
    assert "adding or removing one person's whole record" in text
    assert "a factor of 1.65" in text
    assert "Assumes: the curator is honest." in text
    assert "Replacing a record instead costs an epsilon of 1 and a delta of 2.7e-06." in text
    assert "Replacing them instead costs" in str(Guarantee(1.0, unit="all rows of one person"))
    assert "No privacy" in str(Guarantee.make_unprotected())


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 6])
def test_printed_costs_are_never_below_what_they_are(digits):
    from discreet.privacy.guarantee import format_rounded_up

    assert format_rounded_up(6.9324, 3) == "6.94"  # the twin: f"{6.9324:.3g}" is 6.93
    for number in (6.9324, 0.1, 1 / 3, 1.0000001, 123456.7, 3e-9, 2.5, 41.99999, 10.0):
        shown = float(format_rounded_up(number, digits))
        assert number * (1 - 1e-12) <= shown <= number * (1 + 10.0 ** (1 - digits))
    for plain in ("1", "0.5", "1e-06", "100"):  # what can be shown is shown as it is
        assert format_rounded_up(float(plain), digits) == plain


def test_no_epsilon_is_printed_with_a_format_that_rounds_down():
    """Sums that fall short by half a digit understate a promise: rounded_up is the one way."""
    import discreet

    rounding = re.compile(r"\{[^{}]*epsilon[^{}]*:[.,0-9]*[efg]\}")
    for file in Path(discreet.__file__).parent.rglob("*.py"):
        for line in file.read_text().splitlines():
            found = rounding.search(line)
            # an average of results at some epsilon is no promise
            known = ("LEAST", "SMALLEST", "results.compute_mean(")
            assert found is None or any(one in found[0] for one in known), (file, line)


def test_round_trip_inside_documents():
    from discreet.files.documents import _to_json_value

    for one in (
        Guarantee.make_unprotected(),
        Guarantee(1, void=("a", "b")),
        Guarantee(1, 1e-9, rho=0.1, charges=(Charge("a", 0.5), Charge("b", 0.5, 1e-9))),
    ):
        assert GuaranteeBody.model_validate(_to_json_value(one.to_body())).to_guarantee() == one


def test_epsilon_of_a_channel_is_the_worst_log_ratio():
    half = Fraction(1, 2)
    assert compute_channel_epsilon([[half, half], [half, half]]) == 0
    warner = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    assert compute_channel_epsilon(warner) == pytest.approx(math.log(3))
    assert compute_channel_epsilon([[1, 0], [0, 1]]) == math.inf
    assert (
        compute_channel_epsilon([[0, 1], [0, 1]]) == 0
    )  # an output that never occurs tells nothing
    tiny = Fraction(1, 10**400)
    assert compute_channel_epsilon([[tiny, 1 - tiny], [2 * tiny, 1 - 2 * tiny]]) == pytest.approx(
        math.log(2)
    )


@pytest.mark.parametrize("bad", [[], [[1], [1, 0]], [[2, -1], [1, 0]], [[0.5, 0.5], [0.5, 0.4]]])
def test_what_is_no_channel_is_refused(bad):
    with pytest.raises(PrivacyError):
        compute_channel_epsilon(bad)


def test_what_takes_a_promise_away_is_said_before_the_promise():
    void = Guarantee(1.0, simulated=True).void_if(
        preparation_reason="the schema was taken from the data"
    )
    lines = str(void).splitlines()
    assert lines[0].startswith("NOT KEPT: ")
    assert lines[1].startswith("SIMULATED with a seeded source")
    assert lines[2].startswith("epsilon = 1 per person")
