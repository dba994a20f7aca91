"""Central methods keep their promise, exactly.

Every number that leaves passes through ``Noise.add``, ``AdditiveNoise.release`` or ``choose``. Here
those are replaced: what they return is fixed beforehand, the same for two neighbouring tables, and
what they were given is written down. Then

1. whatever is released afterwards (model, statistics, promise) must be the same to the last byte
   for both tables: nothing but the fixed numbers may have an influence;
2. the cost of the fixed outcome, summed over everything that was released, is at most epsilon.
   For discrete Laplace noise that is |v - v'| / scale in fractions, whatever the outcome; for
   Cauchy noise the hyperbolic distance of (value, scale); for a choice the worst log-ratio.

All tables of up to two records over a small domain are tried, with every record added to each.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import Categorical, CentralNB, CryptoRandom, Numeric, PrivacyWarning, Schema
from discreet.central import budget as budget_module
from discreet.central import histogram as histogram_module
from discreet.central import moments as moments_module
from discreet.central import screening as screening_module
from discreet.central import training as training_module
from discreet.mechanisms import additive_noise

SCHEMA = Schema(
    [Numeric("a", 100, 101), Categorical("b", ["x", "y"])], "class", ["no", "yes"], outliers="clip"
)
RECORDS = list(itertools.product([100.0, 100.3, 101.0, math.nan], ["x", "y", None], ["no", "yes"]))
METHODS = ["histogram", "moments", "global", "smooth", "trimmed"]
EPSILON = 0.7


class Transcript:
    """What the three doors were given, and what they let out."""

    def __init__(self, first):
        self.first, self.given = first, []

    def outcome(self, shape):
        if not self.given:
            return np.resize(np.array(self.first), shape)
        return np.random.default_rng(len(self.given)).integers(0, 60, shape)

    def add(self, noise, numbers, random):
        out = self.outcome(numbers.shape)
        exact = tuple(int(value) for value in np.ravel(numbers))
        self.given.append(("laplace", noise.parameter, exact))
        assert not noise.gaussian
        assert noise.grain == 1
        return out

    def release(self, law, value, scale, random, step):
        self.given.append(("cauchy", type(law).__name__, (float(value), scale)))
        return float(np.random.default_rng(len(self.given)).integers(0, 100)) * float(step)

    def choose(self, quality, epsilon, random):
        self.given.append(("choice", epsilon, tuple(int(one) for one in quality)))
        return len(self.given) % len(quality)


def transcript_of(monkeypatch, records, method, first=(20, 30), epsilon=EPSILON, **options):
    """Train on records with fixed outcomes; give what was written down and what was released."""
    found = Transcript(first)
    monkeypatch.setattr(
        budget_module.Noise, "add", lambda noise, numbers, random: found.add(noise, numbers, random)
    )
    monkeypatch.setattr(
        additive_noise.AdditiveNoise,
        "release",
        lambda law, value, scale, random, step: found.release(law, value, scale, random, step),
    )
    monkeypatch.setattr(histogram_module, "choose", found.choose)
    monkeypatch.setattr(screening_module, "choose", found.choose)
    nb = CentralNB(epsilon, method=method, schema=SCHEMA, **options)
    train(nb, records)
    # the seal of the statistics covers all that anyone ever sees
    return found.given, nb.model_.to_json() + nb.statistics_.to_json(), nb


def train(nb, records):
    from discreet.central.source import Columns
    from discreet.encoding import class_codes

    columns = {
        "a": np.array([one[0] for one in records], dtype=float),
        "b": np.array([one[1] for one in records], dtype=object),
    }
    codes = class_codes(SCHEMA, np.array([one[2] for one in records], dtype=object))
    source = Columns(SCHEMA, columns, codes)
    nb._learnt(SCHEMA, np.array(SCHEMA.classes), nb._released(source, nb._checked()))


def cost(one, other):
    """The exact worst log-ratio of two transcripts with the same outcome."""
    assert [step[:2] for step in one] == [step[:2] for step in other], "the noise itself differs"
    total = Fraction(0)
    for (kind, parameter, mine), (_, _, theirs) in zip(one, other, strict=True):
        if kind == "laplace":
            moved = sum(abs(a - b) for a, b in zip(mine, theirs, strict=True))
            assert parameter > 0 or moved == 0, "released without noise"
            total += Fraction(moved) / parameter if moved else 0
        elif kind == "cauchy":
            (f, s), (g, t) = mine, theirs
            total += Fraction(math.acosh(1 + ((f - g) ** 2 + (s - t) ** 2) / (2 * s * t)))
        else:
            p, q = (np.exp(float(parameter) * (np.array(x) - max(x))) for x in (mine, theirs))
            total += Fraction(float(np.abs(np.log(p / p.sum()) - np.log(q / q.sum())).max()))
    return total


def worst(monkeypatch, method, bases, **options):
    """The largest cost over tables and their neighbours; and that nothing else differs."""
    seen, largest = {}, Fraction(0)

    def look(records):
        key = tuple(sorted(map(str, records)))
        if key not in seen:
            seen[key] = transcript_of(monkeypatch, records, method, **options)[:2]
        return seen[key]

    for base in bases:
        given, released = look(base)
        for record in RECORDS:
            more, again = look([*base, record])
            assert released == again, "something other than the released numbers got out"
            largest = max(largest, cost(given, more))
    return largest


def tables(largest=1, many=4):
    """All small tables, and some larger ones."""
    rng = np.random.default_rng(0)
    yield from ([list(one) for size in range(largest + 1) for one in _sets(size)])
    for size in range(3, 3 + many):
        yield [RECORDS[i] for i in rng.integers(0, len(RECORDS), size)]


def _sets(size):
    return itertools.combinations_with_replacement(RECORDS, size)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_record_costs_at_most_epsilon(monkeypatch, method):
    found = worst(monkeypatch, method, tables())
    slack = Fraction(1, 10**9) if method in ("smooth", "trimmed") else 0
    assert found <= Fraction(EPSILON) + slack
    assert found > Fraction(EPSILON) / 3  # the test does measure something


@pytest.mark.slow
def test_the_choice_of_scoring_is_paid_for(monkeypatch):
    first = (40_000, 40_000)
    given, _, nb = transcript_of(monkeypatch, RECORDS, "histogram", first)
    assert given[-1][0] == "choice"
    assert len(given[-1][2]) >= 4
    assert sum(c.epsilon for c in nb.guarantee_.charges if "choice" in c.name) == pytest.approx(
        0.05 * EPSILON
    )
    # which rows are scored is decided by coins of their own: the same for both tables
    for coins in (lambda _, share, size: np.ones(size, bool), lambda *a: np.arange(a[2]) % 3 > 0):
        monkeypatch.setattr(CryptoRandom, "bernoulli", coins)
        assert worst(monkeypatch, "histogram", tables(0, 5), first=first) <= Fraction(EPSILON)


FEW = (4, 3)
"""Class counts so small that one of the two features is chosen."""


@pytest.mark.slow
def test_the_choice_of_features_is_paid_for(monkeypatch):
    given, _, nb = transcript_of(monkeypatch, RECORDS, "histogram", FEW)
    assert [step[0] for step in given] == ["laplace", "choice", "laplace"]
    assert len(nb.statistics_.tables) == 1
    names = [charge.name for charge in nb.guarantee_.charges]
    assert names[:2] == ["class counts", "choice of feature 1 of 1"]
    found = worst(monkeypatch, "histogram", tables(), first=FEW)
    assert Fraction(EPSILON) / 3 < found <= Fraction(EPSILON)


@pytest.mark.slow
def test_twin_features_chosen_by_a_quality_that_one_record_moves_by_four(monkeypatch):
    true = screening_module.quality
    monkeypatch.setattr(screening_module, "quality", lambda *given: 4 * true(*given))
    assert worst(monkeypatch, "histogram", tables(), first=FEW) > Fraction(EPSILON)


def test_twin_features_chosen_for_free(monkeypatch):
    """The best feature on exact counts, taken without a draw."""

    def best(self, quality, epsilon, random):
        return max(range(len(quality)), key=quality.__getitem__)

    monkeypatch.setattr(Transcript, "choose", best)
    with pytest.raises(AssertionError):
        worst(monkeypatch, "histogram", tables(), first=FEW)


@pytest.mark.parametrize("method", METHODS)
def test_the_charges_add_up_to_epsilon_and_never_more(monkeypatch, method):
    for first in (FEW, (20, 30), (40_000, 40_000)):
        for epsilon in (0.1, 1.0, 1 / 3):
            *_, nb = transcript_of(monkeypatch, RECORDS, method, first, epsilon)
            spent = sum(Fraction(charge.epsilon) for charge in nb.guarantee_.charges)
            assert spent <= Fraction(epsilon)
            assert float(spent) == pytest.approx(epsilon, rel=1e-9)


def test_unequal_allocation_keeps_the_promise(monkeypatch):
    found = worst(monkeypatch, "histogram", tables(0), allocation={"a": 5.0})
    assert Fraction(EPSILON) / 3 < found <= Fraction(EPSILON)


# What a published or popular implementation does, and how it is caught.


def test_twin_sum_with_the_wrong_sensitivity_far_from_zero(monkeypatch):
    """diffprivlib: noise for U - L = 1 on a sum of values near 100."""
    true = moments_module.centred_sums

    def uncentred(one, levels):
        _, second = true(one, levels)
        far = round(one.feature.lower / one.step)
        return one.counts * far + one.totals, second

    assert worst(monkeypatch, "moments", tables(0)) <= Fraction(EPSILON)
    monkeypatch.setattr(moments_module, "centred_sums", uncentred)
    assert worst(monkeypatch, "moments", tables(0)) > 5 * Fraction(EPSILON)


def test_twin_exact_number_of_records(monkeypatch):
    """diffprivlib: noisy class counts that add up to the exact n."""
    true = histogram_module.precision_weighted

    def exact_n(estimates, variances):
        totals, spread = true(estimates, variances)
        return totals * (histogram_module.number / totals.sum()), spread

    real = histogram_module.histogram

    def leaking(source, *rest):
        monkeypatch.setattr(histogram_module, "number", 1 + source.totals().sum(), raising=False)
        return real(source, *rest)

    monkeypatch.setattr(histogram_module, "precision_weighted", exact_n)
    monkeypatch.setattr(histogram_module, "histogram", leaking)
    with pytest.raises(AssertionError, match="something other"):
        worst(monkeypatch, "histogram", tables(0))


def test_twin_counts_without_noise(monkeypatch):
    real = budget_module.Budget.noise

    def quiet(budget, name, share, sensitivity=1):
        noise = real(budget, name, share, sensitivity)
        return budget_module.Noise(Fraction(0)) if name == "class counts" else noise

    monkeypatch.setattr(budget_module.Budget, "noise", quiet)
    with pytest.raises(AssertionError, match="without noise"):
        worst(monkeypatch, "histogram", tables(0))


def test_twin_the_published_noise_scale_gives_class_sizes_away(monkeypatch):
    """Vaidya et al.: the scale R / (n + 1) is a function of the private n."""
    base = [(100.3, "x", "no")] * 4
    one, *_ = transcript_of(monkeypatch, base, "global-published")
    two, *_, nb = transcript_of(monkeypatch, [*base, (100.3, "x", "no")], "global-published")
    scales = [[step[2][1] for step in given if step[0] == "cauchy"] for given in (one, two)]
    assert scales[0] != scales[1]
    assert not nb.guarantee_.private
    assert "NOT KEPT: as published" in str(nb.guarantee_)


def test_the_smooth_noise_scale_is_not_released(monkeypatch):
    for method in ("smooth", "trimmed"):
        *_, nb = transcript_of(monkeypatch, RECORDS, method)
        assert np.isinf(nb.statistics_.moments["a"].variances).all()


@pytest.mark.slow
def test_twin_dropped_features_chosen_on_exact_counts(monkeypatch):
    """A choice made on the data itself, for free."""
    monkeypatch.setattr(histogram_module, "right", lambda *given: _exactly(given))
    first = (40_000, 40_000)
    assert worst(monkeypatch, "histogram", tables(0), first=first) > Fraction(EPSILON)


def _exactly(given):
    source, _, candidates, *_ = given
    return [1000 * int(source.totals().sum()) * (i == 0) for i in range(len(candidates))]


def test_classes_and_categories_never_come_from_the_data():
    X = np.array([[100.2, "x"]] * 30, dtype=object)
    nb = CentralNB(1.0, schema=SCHEMA, selection=False).fit(X, ["no"] * 30)
    assert nb.classes_.tolist() == ["no", "yes"]
    table = nb.statistics_.tables["b"]
    assert table.counts.shape == (2, 3)  # y and missing are there, though nobody has them
    assert (table.variances > 0).all()


def test_twin_without_a_schema_the_classes_leak_and_that_is_said():
    X = np.array([[100.2], [100.4], [100.6]] * 10)
    with pytest.warns(PrivacyWarning, match="classes were taken from the data"):
        one = CentralNB(1.0).fit(X, ["no"] * 29 + ["yes"])
    with pytest.warns(PrivacyWarning, match="classes were taken from the data"):
        two = CentralNB(1.0).fit(X[:29], ["no"] * 29)
    assert one.classes_.tolist() != two.classes_.tolist()
    assert str(one.guarantee_).startswith("NOT KEPT: bounds, categories and classes")
    assert not one.guarantee_.private
    assert not one.statistics_.guarantee.private


def test_with_delta_the_rho_of_all_noise_adds_up():
    """zCDP: sum over releases of sensitivity^2 / (2 variance), plus the choice.

    The histogram's class counts carry Laplace noise: their epsilon is taken off beforehand.
    """
    made = []
    real = budget_module.Budget.noise

    def spy(budget, name, share, sensitivity=1):
        noise = real(budget, name, share, sensitivity)
        made.append((noise, sensitivity, budget))
        return noise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget_module.Budget, "noise", spy)
        patch.setattr(training_module, "_laplace_is_less", lambda budget, source: False)
        X = np.array([[100.2, "x"], [100.9, "y"]] * 4000, dtype=object)
        for method in ("histogram", "moments", "global"):
            made.clear()
            nb = CentralNB(1.0, delta=1e-6, method=method, schema=SCHEMA, random_state=0)
            nb.fit(X, ["no", "yes"] * 4000)
            rho, pure = Fraction(0), Fraction(0)
            if method == "histogram":
                pure = 1 / made.pop(0)[0].parameter
                assert pure == Fraction(4, 100)
            for noise, sensitivity, _ in made:
                most = Fraction(sensitivity, noise.grain)
                most = most if noise.grain == 1 else most + 1
                assert noise.gaussian
                rho += most**2 / (2 * noise.parameter)
            budget = made[0][2]
            chosen = [share for name, share in budget.charges if "choice" in name]
            rho += sum(chosen)
            assert rho <= budget.whole
            assert nb.guarantee_.rho <= budget.whole + pure**2 / 2
            root = math.sqrt(float(budget.whole) * math.log(1e6))
            assert float(pure + budget.whole) + 2 * root <= 1.0
            assert sum(c.epsilon for c in nb.guarantee_.charges) <= 1.0
            assert nb.guarantee_.epsilon == 1.0
            assert nb.guarantee_.delta == 1e-6
