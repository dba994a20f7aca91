"""All rows of a person together cost at most epsilon, exactly.

Neighbours are tables with and without all rows of one person, of whom there may be more than are
used. What is released is fixed beforehand, as in test_central_privacy.py, and what was given to
the noise is compared.
"""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from central_transcripts import EPSILON, RECORDS, SCHEMA, cost, train, transcript_of

from discreet import Categorical, CentralNB, CryptoRandom, Schema
from discreet.central import budget as budget_module
from discreet.central import corrections as corrections_module
from discreet.central import histogram as histogram_module
from discreet.central import rare_classes as rare_classes_module
from discreet.central import selection as selection_module
from discreet.central import temperature as temperature_module
from discreet.central import training as training_module
from discreet.central.budget import CentralSettings
from discreet.central.corrections import CorrectionBudget
from discreet.central.selection import RowSample, count_correct
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy.accountant import NoiseStep, compute_gaussian_rho
from discreet.schema.cells import encode_classes
from discreet.tables import contributions, source
from discreet.tables.contributions import (
    WEIGHT_STEPS,
    ContributionBound,
    Influence,
    compute_person_weights,
    select_person_rows,
)
from discreet.tables.source import InMemorySource

CHOICES = (corrections_module, rare_classes_module, selection_module, temperature_module)
"""Where candidates are chosen."""
K = 3
SCALES = {False: K, True: WEIGHT_STEPS}
"""By how much counts are larger than those of one row per person, without and with weights."""
FEW, SOME, MANY = (4, 3), (20, 30), (40_000, 40_000)
"""Class counts of persons: one feature is chosen, all are used, corrections are made."""
RARE, MANY_AND_RARE = (7_700, 300), (77_000, 3_000)
"""The same with a rare class: the evidence is weighed, without and with corrections."""


def own(person, *records):
    return [(*record, person) for record in records]


OTHERS = [
    [],
    own("p", *RECORDS[3:10]) + own("q", *RECORDS[:2]) + own(None, RECORDS[5], RECORDS[7]),
    own(1, *RECORDS[::2]) + own(2, *[RECORDS[4]] * 4) + own("r", *RECORDS[8:9] * 2),
]
"""Tables of other persons, some of whom have more rows than are used."""
PERSONS = [
    own("new", *rows)
    for rows in (RECORDS[:1], [RECORDS[9]] * K, [RECORDS[2]] * 7, RECORDS[1::5], RECORDS[::-1])
]


def bound_of(weighting=False):
    return ContributionBound("person", K, "own", weighting)


@pytest.fixture
def heads(monkeypatch):
    """Every row is looked at, the same in both tables."""
    monkeypatch.setattr(CryptoRandom, "bernoulli", lambda self, share, size: np.ones(size, bool))


def worst_person(monkeypatch, persons, *, weighting=False, bases=OTHERS, first=SOME, **options):
    """The largest cost of all rows of a person; and that nothing else differs."""
    options |= {"bound": bound_of(weighting), "first": [SCALES[weighting] * n for n in first]}
    largest = Fraction(0)
    for base in bases:
        given, released, _ = transcript_of(monkeypatch, base, "histogram", **options)
        for rows in persons:
            mixed = rows[::2] + base + rows[1::2]
            again, released_again, _ = transcript_of(monkeypatch, mixed, "histogram", **options)
            assert released == released_again, "something other than the released numbers got out"
            largest = max(largest, cost(given, again))
    return largest


@pytest.mark.slow
@pytest.mark.parametrize("weighting", [False, True])
@pytest.mark.parametrize("first", [FEW, SOME, (4_000, 4_000), MANY, RARE, MANY_AND_RARE], ids=str)
def test_all_rows_of_a_person_cost_at_most_epsilon(monkeypatch, heads, first, weighting):
    persons = PERSONS if first == SOME else PERSONS[1:]
    largest = worst_person(monkeypatch, persons, weighting=weighting, first=first)
    assert Fraction(EPSILON) / 3 < largest <= Fraction(EPSILON)


@pytest.mark.slow
def test_every_small_table_of_persons_keeps_the_promise(monkeypatch):
    """Two rows of one other person, and up to two of the new one, over all records."""
    pairs = list(itertools.combinations_with_replacement(RECORDS[::4], 2))
    bases = [own("p", *pair) for pair in pairs[::3]]
    persons = [own("new", *rows) for rows in [[one] for one in RECORDS[::4]] + pairs]
    assert worst_person(monkeypatch, persons, bases=bases) <= Fraction(EPSILON)


@pytest.mark.parametrize("first", [FEW, SOME, MANY, RARE], ids=str)
def test_twin_noise_for_one_row_instead_of_all_that_are_used(monkeypatch, heads, first):
    monkeypatch.setattr(ContributionBound, "influence", Influence(1, K))
    scaled = [n // K for n in first]
    largest = worst_person(monkeypatch, PERSONS[1:3], bases=OTHERS[1:2], first=scaled)
    assert largest > 2 * Fraction(EPSILON)


def exponents(monkeypatch, bound, share=0.5):
    """What was charged for each choice, and the exponent of its qualities as a part of that."""
    rng = np.random.default_rng(0)
    codes = (rng.random(40_000) < share).astype(int)
    columns = {f"x{i}": (codes + (rng.random(40_000) < 0.2 + 0.1 * i)) % 2 for i in range(4)}
    schema = Schema([Categorical(name, [0, 1]) for name in columns], "y", [0, 1])
    spent, used = [], []

    def spend(budget, name, share):
        spent.append((re.sub(r"\d+", "", name), real_spend(budget, name, share)))
        return spent[-1][1]

    def choose(qualities, epsilon, random):
        used.append(epsilon)
        return 0

    real_spend = budget_module.Budget.spend_on_selection
    with monkeypatch.context() as patch:
        patch.setattr(budget_module.Budget, "spend_on_selection", spend)
        for module in CHOICES:
            patch.setattr(module, "sample_exponential_mechanism", choose)
        for corrections, epsilon in ((True, 4.0), (False, 4.0)):
            training_module.train(
                InMemorySource(schema, columns, codes, bound=bound, persons=np.arange(40_000)),
                epsilon=epsilon,
                settings=CentralSettings(corrections=corrections),
                random=CryptoRandom(),
            )
    return {name: part / paid for (name, paid), part in zip(spent, used, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("weighting", [False, True])
def test_every_choice_is_for_all_rows_that_are_used(monkeypatch, weighting):
    single, several = (exponents(monkeypatch, bound) for bound in (None, bound_of(weighting)))
    names = ["start", "pair  of ", "scoring", "temperature"]
    assert {*single, *several} == {f"choice of {name}" for name in names}
    for name in several:
        assert several[name] == single.get(name, several[name]) / SCALES[weighting]


@pytest.mark.slow
@pytest.mark.parametrize("weighting", [False, True])
def test_every_choice_for_a_rare_class_is_for_all_rows_that_are_used(monkeypatch, weighting):
    single, several = (exponents(monkeypatch, bound, 0.04) for bound in (None, bound_of(weighting)))
    assert several.keys() == {"choice of start", "choice of pair  of ", "choice of scoring"}
    assert several == {name: part / SCALES[weighting] for name, part in single.items()}


@pytest.mark.slow
def test_twin_choices_for_one_row_instead_of_all_that_are_used(monkeypatch):
    monkeypatch.setattr(histogram_module, "RowSample", sample_for_one)
    with pytest.raises(AssertionError):
        test_every_choice_is_for_all_rows_that_are_used(monkeypatch, False)
    with pytest.raises(AssertionError):
        test_every_choice_for_a_rare_class_is_for_all_rows_that_are_used(monkeypatch, False)


def sample_for_one(*rows, influence, **others):
    return RowSample(*rows, influence=Influence(1, influence.rows), **others)


# Which rows are used: by the person's own rows alone.


def used_rows(records, bound):
    """The rows that are used of each person, as they are."""
    columns = {
        "a": np.array([record[0] for record in records], dtype=float),
        "b": np.array([record[1] for record in records], dtype=object),
    }
    codes = encode_classes(SCHEMA, np.array([record[2] for record in records], dtype=object))
    rows, _ = source.select_person_rows(
        [record[3] for record in records], columns, codes, SCHEMA, bound
    )
    return sorted(str(records[row]) for row in rows)


def assert_choice_is_local(records):
    """Neither other persons nor the order of the table change which rows of a person are used."""
    together = used_rows(records, bound_of())
    assert together == used_rows(records[::-1], bound_of()), "depends on the order of the table"
    alone = []
    for person in {record[3] for record in records}:
        alone += used_rows([record for record in records if record[3] == person], bound_of())
    assert together == sorted(alone), "depends on the rows of others"


CROWDED = own("p", *RECORDS) + own("q", *RECORDS[::-1]) + own(7, *RECORDS[::3]) + own(8, RECORDS[0])


def test_which_rows_are_used_follows_from_the_persons_own_rows():
    assert_choice_is_local(CROWDED)


@pytest.mark.parametrize("mistake", ["first of the table", "commonest values", "one generator"])
def test_twin_rows_chosen_by_more_than_the_persons_own_rows(monkeypatch, mistake):
    def select(persons, columns, codes, schema, bound):
        rows = np.arange(len(codes))
        if mistake == "commonest values":
            texts = [str(value) for value in columns["a"]]
            rows = rows[np.argsort([-texts.count(text) for text in texts], kind="stable")]
        elif mistake == "one generator":
            rows = np.random.default_rng(0).permutation(rows)
        counts, used = {}, []
        for row in rows:
            counts[persons[row]] = counts.get(persons[row], 0) + 1
            used += [row] * (counts[persons[row]] <= bound.rows_per_person)
        return np.array(sorted(used)), None

    monkeypatch.setattr(source, "select_person_rows", select)
    with pytest.raises(AssertionError, match="depends on"):
        assert_choice_is_local(CROWDED + own("z", *RECORDS[:1] * 9))


def test_every_row_of_a_person_is_as_likely_to_be_used_over_persons():
    """The order is another one for every person, so that no value is preferred."""
    records = [row for person in range(400) for row in own(person, *RECORDS[:6])]
    used = [text.split(", ")[1:3] for text in used_rows(records, bound_of())]
    counts = [sum(str(one)[2:5] in str(record) for record in used) for one in ("'x'", "'y'")]
    assert len(used) == 400 * K
    assert min(counts) > 250  # a third of 1200 is expected; a thousandth as likely below 330


# Coins: rows of a person are sampled independently, and no amplification is claimed for them.


def choice_probability(rights, exponent, share):
    """Probability that the second of many models is chosen, over all coins of a person's rows.

    Of ``rights`` rows that only this model gets right, each is looked at with chance ``share``.
    """
    chance = 0.0
    for coins in itertools.product([0, 1], repeat=rights):
        weight = math.prod(share if coin else 1 - share for coin in coins)
        sample = RowSample({}, np.ones(sum(coins), dtype=int))
        scores = np.tile([0.0, 1.0], (sum(coins), 1))
        quality = count_correct(scores, sample.class_codes)
        chance += weight * math.exp(exponent * quality) / (math.exp(exponent * quality) + 1000)
    return chance


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_coins_for_rows_of_a_person_cost_no_more_than_looking_at_all_of_them(share):
    before, after = (choice_probability(rights, EPSILON / K, share) for rights in (0, K))
    assert 1 < after / before <= math.exp(EPSILON)
    # what independent coins are worth, which nobody is promised
    bound = (1 + share * math.expm1(EPSILON / K)) ** K
    assert after / before <= bound * (1 + 1e-12)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_twin_amplification_by_the_formula_for_a_single_row(share):
    """ln(1 + share (exp(e) - 1)) is what one sampled row costs, not all rows of a person."""
    exponent = math.log1p(math.expm1(EPSILON) / share)
    before, one, after = (choice_probability(rights, exponent, share) for rights in (0, 1, K))
    assert one / before <= math.exp(EPSILON)
    assert after / before > 1.5 * math.exp(EPSILON)


# With a delta: Gaussian noise for the Euclidean norm of the change.


@pytest.mark.slow
@pytest.mark.parametrize("weighting", [False, True])
@pytest.mark.parametrize("first", [MANY, MANY_AND_RARE], ids=str)
def test_with_delta_all_rows_of_a_person_keep_the_rho(monkeypatch, heads, weighting, first):
    assert rho_excess(monkeypatch, weighting, first) <= 1 + 1e-9


def test_twin_gaussian_noise_for_one_row(monkeypatch, heads):
    monkeypatch.setattr(ContributionBound, "influence", Influence(1, K))
    assert rho_excess(monkeypatch, False) > K


def test_the_accountant_knows_how_many_numbers_a_person_moves():
    """A residual and a curvature per row; each costs an eta of its own."""
    plan = CorrectionBudget.from_signal_to_noise(300.0, SCHEMA, Fraction(1), 10_000)
    budget = budget_module.Budget(1.0, 1e-6)
    for influence in (Influence(), bound_of().influence, bound_of(True).influence):
        steps = plan.list_steps(2, 2, budget, influence)
        noises = {step.coordinates for step in steps if isinstance(step, NoiseStep)}
        assert noises == {2 * influence.rows}


def rho_excess(monkeypatch, weighting, first=MANY):
    """The largest rho that a person cost as a multiple of what normal noise would leave."""
    released = []

    def add(noise, numbers, random):
        exact = np.asarray(numbers).astype(np.int64) // noise.rounding_step
        released.append((noise.gaussian, Fraction(noise.parameter), exact.ravel()))
        draw = np.random.default_rng(len(released)).integers(0, 60, exact.shape)
        counts = np.array(first) * SCALES[weighting]
        return counts if len(released) == 1 else draw * noise.rounding_step

    def choose(qualities, epsilon, random):
        released.append(("choice", Fraction(epsilon), np.array(qualities)))
        return len(released) % len(qualities)

    monkeypatch.setattr(budget_module.IntegerNoise, "add", add)
    monkeypatch.setattr(training_module, "_is_laplace_noise_smaller", lambda *given: False)
    monkeypatch.setattr(
        histogram_module.ReleasePlan, "compute_mean_share", lambda plan, **_: Fraction(1, 100)
    )
    for module in CHOICES:
        monkeypatch.setattr(module, "sample_exponential_mechanism", choose)
    transcripts, options = [], {"delta": 1e-6, "bound": bound_of(weighting)}
    for records in (OTHERS[1], *(OTHERS[1] + rows for rows in PERSONS[1:])):
        released.clear()
        train(records, "histogram", 1.0, SCHEMA, **options)
        transcripts.append([*released])
    budget_rho = compute_gaussian_rho(1.0, 1e-6) + 0.04**2 / 2  # of the class counts
    return max(compute_rho(transcripts[0], other) for other in transcripts[1:]) / budget_rho


def compute_rho(one, other):
    rho = 0.0
    for (kind, parameter, mine), (_, _, theirs) in zip(one, other, strict=True):
        moved = np.abs(mine - theirs).astype(float)
        if kind == "choice":
            rho += (
                float(parameter) * float((mine - theirs).max() - (mine - theirs).min())
            ) ** 2 / 8
        elif kind:
            rho += float((moved**2).sum()) / (2 * float(parameter))
        else:
            rho += (np.abs(moved).sum() / float(parameter)) ** 2 / 2
    return rho


# What is said, and what is refused.


def test_the_guarantee_says_what_it_covers():
    promise = train(OTHERS[1], "histogram", 1.0, SCHEMA, bound=bound_of()).model.guarantee
    assert promise.unit == "all rows of one person (of which at most 3 are used)"
    assert "each row without an id is of another person" in promise.assumptions
    assert "adding or removing all rows of one person (of which at most 3 are used) changes" in str(
        promise
    )


@pytest.mark.parametrize("method", ["moments", "global", "smooth", "trimmed"])
def test_methods_that_were_not_worked_out_for_several_rows_are_refused(method):
    with pytest.raises(PrivacyError, match="has not been worked out; use method='histogram'"):
        train(OTHERS[1], method, 1.0, SCHEMA, bound=bound_of())
    single = ContributionBound("person", 1, "own", person_weighting=True)
    assert train(OTHERS[1], method, 1.0, SCHEMA, bound=single).statistics.guarantee.is_private


def test_weights_of_a_person_add_up_to_at_most_one():
    for count in range(1, 40):
        assert compute_person_weights(np.zeros(count, dtype=int)).sum() <= WEIGHT_STEPS


def test_twin_weights_rounded_to_the_nearest_step(monkeypatch):
    rounded = [round(WEIGHT_STEPS / count) * count for count in range(1, 40)]
    assert max(rounded) > WEIGHT_STEPS


def test_ids_are_in_nothing_that_is_released():
    secret = "patient-4711"
    trained = train(
        own(secret, *RECORDS) + own("p", *RECORDS), "histogram", 1.0, SCHEMA, bound=bound_of()
    )
    assert secret not in trained.model.to_json() + trained.statistics.to_json()
    assert '"person"' not in trained.model.to_json() + trained.statistics.to_json()


@pytest.mark.parametrize(
    ("ids", "persons"),
    [
        ([1, 1.0, "1", np.int64(1)], 1),
        (["1", " 1", "01", "1.0"], 4),
        ([None, math.nan, "", 5], 4),
        (np.array([1.0, 2.0, math.nan, 1.0]), 3),
    ],
)
def test_ids_are_compared_as_values_of_a_schema(ids, persons):
    records = [RECORDS[0]] * 4
    bound = ContributionBound("person", 1, "own")
    columns = {"a": np.array([one[0] for one in records]), "b": np.array(["x"] * 4, object)}
    rows, codes = select_person_rows(ids, columns, np.zeros(4, int), SCHEMA, bound)
    assert len(rows) == len(set(codes.tolist())) == persons


@pytest.mark.parametrize("ids", [[0.5] * 4, [2.0**53] * 4, [True] * 4, [b"1"] * 4, [[1]] * 4])
def test_ids_that_do_not_tell_persons_apart_are_refused(ids):
    columns = {"a": np.full(4, 100.0), "b": np.array(["x"] * 4, object)}
    with pytest.raises(SchemaError, match="person: an id is"):
        select_person_rows(ids, columns, np.zeros(4, int), SCHEMA, bound_of())


def test_a_missing_id_is_refused_unless_told_otherwise():
    X = __import__("pandas").DataFrame({"a": [100.0] * 3, "b": ["x"] * 3, "id": [1, None, 1]})
    options = {"schema": SCHEMA, "person": "id", "rows_per_person": 2}
    with pytest.raises(SchemaError, match=r"id: the id of a person is missing .* 'own'|own"):
        CentralNB(**options).fit(X, ["no", "no", "yes"])
    CentralNB(missing_person="own", **options).fit(X, ["no", "no", "yes"])


def test_one_person_with_many_rows_is_a_few_rows():
    records = own("all", *RECORDS) * 500
    assert len(used_rows(records, bound_of())) == K
    assert contributions.MAX_ROWS_PER_PERSON <= WEIGHT_STEPS
