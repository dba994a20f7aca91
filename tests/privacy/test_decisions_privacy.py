"""What a central training decides on its way follows from noisy numbers alone, and is paid for.

Transcripts as in test_central_privacy.py, with four features. Outcomes are fixed, so whatever the
table holds, the same features, bins, shares for the coins and trims must follow.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import central_transcripts
import numpy as np
import pytest
from central_transcripts import EPSILON, RECORDS, SCHEMA, cost, transcript_of

from discreet import Categorical, CryptoRandom, Numeric
from discreet.central import corrections as corrections_module
from discreet.central import histogram as histogram_module
from discreet.central import selection, smooth_sensitivity
from discreet.central import smooth as smooth_module
from discreet.central import training as training_module
from discreet.central.budget import Budget, CentralSettings
from discreet.central.corrections import RESIDUAL_STEPS, CorrectionBudget
from discreet.central.selection import CELL_PENALTY, FeatureSelection, RowSample
from discreet.central.smooth import SmoothNoiseBudget, compute_trim
from discreet.estimation import estimate
from discreet.schema.binning import compute_bin_count
from discreet.schema.cells import Cells, encode_classes
from discreet.tables import source as source_module
from discreet.tables.source import InMemorySource, Sampling

FOUR = replace(
    SCHEMA,
    features=(*SCHEMA.features, Categorical("c", ["u", "v"]), Categorical("d", ["p", "q"])),
)
WEAK = tuple(Categorical(f"weak {k}", ["p", "q"]) for k in range(20))
TWO_DOZEN = replace(FOUR, features=(*FOUR.features, *WEAK))
SEVERAL = {"first": (50, 70), "schema": TWO_DOZEN, "epsilon": 5.0}
"""So many people that several features of two dozen are chosen, and not all of them."""
MANY = (4_000_000, 4_000_000)
"""Class counts for which every coin shows tails now and then."""
PLENTY = 8_000_000
AT_HAND = 300_000


def train_on_four(records, method, epsilon, schema, *, delta=0.0, **options):
    """Like ``train``, with more features that follow from the first two."""
    rows = [(a, b, "u" if b == "x" else "v", "p" if a == 100 else "q") for a, b, *_ in records]
    columns = {
        name: np.array([row[min(i, 3)] for row in rows], dtype=object if i else float)
        for i, name in enumerate(schema.names)
    }
    codes = encode_classes(schema, np.array([one[2] for one in records], dtype=object))
    released = training_module.train(
        InMemorySource(schema, columns, codes),
        epsilon=epsilon,
        delta=delta,
        method=method,
        settings=CentralSettings(**options),
        random=CryptoRandom(),
    )
    return central_transcripts.Trained(released, estimate(released))


@pytest.fixture
def four(monkeypatch):
    monkeypatch.setattr(central_transcripts, "train", train_on_four)


def every_table():
    """Tables that have nothing in common, not even their size."""
    rng = np.random.default_rng(0)
    yield []
    for size in (1, 9, 60, 400, 3000):
        yield [RECORDS[i] for i in rng.integers(0, len(RECORDS), size)]


def decisions(monkeypatch, tables, method="histogram", **options):
    """All that was decided and released; one element where no table had an influence."""
    shares = []

    def coins(self, share, size):
        shares.append(share)
        return np.arange(size) % 3 < 2

    monkeypatch.setattr(CryptoRandom, "bernoulli", coins)
    found = set()
    for records in tables:
        shares.clear()
        given, released, trained = transcript_of(monkeypatch, records, method, **options)
        cells = tuple(table.cells for table in trained.statistics.tables.values())
        found.add((tuple(step[:2] for step in given), tuple(shares), cells, released))
    return found


# ---- several features


def choices(given, trained):
    """Exponent and charge of every choice, by its name."""
    charges = {charge.name: Fraction(charge.epsilon) for charge in trained.model.guarantee.charges}
    names = [name for name in charges if "choice" in name]
    exponents = [step[1] for step in given if step[0] == "choice"]
    return {
        name: (exponent, charges[name]) for name, exponent in zip(names, exponents, strict=True)
    }


def excess_of_choices(monkeypatch, options):
    """The largest cost of a choice of features, as a multiple of its own charge."""
    largest = Fraction(0)
    base = [(101.0, "y", "yes")] * 10 + [(100.0, "x", "no")] * 3  # all features say the same
    given, _, trained = transcript_of(monkeypatch, base, "histogram", **options)
    charges = list(choices(given, trained).values())
    for record in RECORDS:
        more, *_ = transcript_of(monkeypatch, [*base, record], "histogram", **options)
        steps = [(one, two) for one, two in zip(given, more, strict=True) if one[0] == "choice"]
        for (one, two), (_, charge) in zip(steps, charges, strict=True):
            largest = max(largest, cost([one], [two]) / charge)
    return largest


@pytest.mark.slow
def test_of_several_features_each_choice_costs_its_own_charge(monkeypatch, four):
    given, _, trained = transcript_of(monkeypatch, RECORDS, "histogram", **SEVERAL)
    number = len(trained.statistics.tables)
    assert 3 <= number < 24
    names = [f"choice of feature {k + 1} of {number}" for k in range(number)]
    assert [name for name in choices(given, trained) if "feature" in name] == names
    assert Fraction(1, 3) < excess_of_choices(monkeypatch, SEVERAL) <= 1
    assert central_transcripts.worst(monkeypatch, "histogram", [[], RECORDS[3:9]], **SEVERAL) <= 5


def terms_of_choices(monkeypatch, tables):
    """What the number of features follows from, and how many are chosen at which price."""
    terms = set()
    for records in tables:
        asked = []
        for name in ("count_affordable_features", "select_features"):
            true = getattr(histogram_module, name)

            def noted(*given, true=true, asked=asked):
                plain = [
                    one for one in given if isinstance(one, float | int | list | FeatureSelection)
                ]
                asked.append(tuple(tuple(one) if isinstance(one, list) else one for one in plain))
                return true(*given)

            with monkeypatch.context() as patched:
                patched.setattr(histogram_module, name, noted)
                transcript_of(patched, records, "histogram", **SEVERAL)
        terms.add(tuple(asked))
    return terms


def test_how_many_features_are_chosen_follows_from_noisy_counts_alone(monkeypatch, four):
    (terms,) = terms_of_choices(monkeypatch, every_table())
    (people, classes, scales), (few,) = terms
    assert people < sum(SEVERAL["first"])
    assert (classes, len(scales)) == (2, 24)
    assert 3 <= few.feature_count < 24
    assert few.penalty_in_people == CELL_PENALTY * scales[few.feature_count - 1]


def test_twin_a_price_that_grows_with_the_exact_number_of_people(monkeypatch, four):
    true = histogram_module._plan_release

    def priced(source, *rest):
        people = float(source.count_classes().sum())
        monkeypatch.setattr(histogram_module, "CELL_PENALTY", CELL_PENALTY * (1 + people))
        return true(source, *rest)

    monkeypatch.setattr(histogram_module, "_plan_release", priced)
    assert len(terms_of_choices(monkeypatch, every_table())) > 1


def test_twin_every_choice_with_the_exponent_of_all_of_them(monkeypatch, four):
    """Three choices, each with exp(3 epsilon q)."""
    real = Budget.spend_on_selection
    monkeypatch.setattr(Budget, "spend_on_selection", lambda *given: 3 * real(*given))
    assert excess_of_choices(monkeypatch, SEVERAL) > 1


MOVES = {
    "choice of feature": 1,
    "choice of scoring": 1,
    "choice of start": RESIDUAL_STEPS,
    "choice of temperature": RESIDUAL_STEPS,
    "choice of pair": 2 * RESIDUAL_STEPS,  # up or down
}
"""By how much one record moves a quality."""


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (SEVERAL, {"choice of feature"}),
        (
            {"first": (4_000, 4_000), "schema": FOUR, "corrections": False},
            {"choice of scoring", "choice of temperature"},
        ),
        (
            {"first": MANY, "schema": FOUR},
            {"choice of start", "choice of pair", "choice of scoring", "choice of temperature"},
        ),
    ],
    ids=["features", "scoring", "corrections"],
)
def test_the_exponent_of_a_choice_is_its_charge(monkeypatch, four, options, made):
    """What a record can move a quality by, times the exponent, is what was charged, and no more."""
    given, _, trained = transcript_of(monkeypatch, RECORDS, "histogram", **options)
    found = choices(given, trained)
    kinds = {kind for kind in MOVES for name in found if name.startswith(kind)}
    assert kinds >= made
    for name, (exponent, charge) in found.items():
        (move,) = (MOVES[kind] for kind in MOVES if name.startswith(kind))
        # a charge is the nearest float that is not larger
        assert 0 <= exponent * move - charge <= charge * Fraction(1, 2**50)


def test_twin_a_start_chosen_with_twice_the_exponent(monkeypatch, four):
    true = corrections_module._choose_start
    monkeypatch.setattr(
        corrections_module, "_choose_start", lambda *given: true(
            *given[:-2], 2 * given[-2], given[-1]
        ),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        test_the_exponent_of_a_choice_is_its_charge(
            monkeypatch, None, {"first": MANY, "schema": FOUR}, {"choice of start"}
        )


# ---- bins


WIDE = replace(SCHEMA, features=(Numeric("a", 0, 1000), SCHEMA.features[1]))


@pytest.mark.parametrize("options", [{"selection": False}, {"corrections": False}], ids=str)
@pytest.mark.parametrize("first", [(20, 30), (90, 100), (3_000, 4_000)])
def test_bins_and_shares_follow_from_noisy_counts_alone(monkeypatch, first, options):
    for schema in (SCHEMA, WIDE):
        given = {"first": first, "schema": replace(schema, outliers="clip"), **options}
        assert len(decisions(monkeypatch, every_table(), **given)) == 1


def flip_of_bins(monkeypatch, first):
    """A table to which one more record is added where its size decides on the number of bins."""
    given, *_ = transcript_of(monkeypatch, [], "histogram", first=first, selection=False)
    scale = float(given[1][1])
    variance = 1 / (2 * math.sinh(1 / (2 * scale)) ** 2)
    per_bin = 2 * math.sqrt(variance / 2)
    size = next(
        n
        for n in itertools.count()
        if compute_bin_count(n / per_bin) < compute_bin_count((n + 1) / per_bin)
    )
    base = [RECORDS[i % len(RECORDS)] for i in range(size)]
    return base, [*base, RECORDS[0]]


def test_a_record_flips_no_number_of_bins(monkeypatch):
    first = (80, 80)
    pair = flip_of_bins(monkeypatch, first)
    assert len(decisions(monkeypatch, pair, first=first, selection=False)) == 1


def test_twin_a_number_of_bins_from_the_exact_number_of_people(monkeypatch):
    first = (80, 80)
    pair = flip_of_bins(monkeypatch, first)
    true, plain, exact = histogram_module._build_cells, histogram_module.release_histogram, []

    def histogram(source, *rest):
        exact.append(float(source.count_classes().sum()))
        return plain(source, *rest)

    def cells(schema, chosen, people, variances):
        return true(schema, chosen, exact[-1], variances)

    monkeypatch.setattr(histogram_module, "release_histogram", histogram)
    monkeypatch.setattr(histogram_module, "_build_cells", cells)
    assert len(decisions(monkeypatch, pair, first=first, selection=False)) == 2


# ---- coins


def coins_of(monkeypatch, records, **options):
    """Every share that was handed to a coin."""
    shares = []

    def coins(self, share, size):
        shares.append(share)
        return np.arange(size) % 3 < 2

    monkeypatch.setattr(CryptoRandom, "bernoulli", coins)
    transcript_of(monkeypatch, records, "histogram", first=MANY, schema=FOUR, **options)
    return shares


def enough_rows(strength, people):
    """Of the rows, so many that candidates can be told apart."""
    return Fraction(min(1.0, max(10_000, 1000 / strength) / people))


@pytest.mark.parametrize("records", [[], RECORDS, RECORDS * 100], ids=len)
def test_every_share_of_a_coin_follows_from_noisy_counts(monkeypatch, four, records):
    """With corrections: of rows at hand, of rows for choices, and of rows for each pair."""
    plan = CorrectionBudget.from_signal_to_noise(
        AT_HAND / (2 * 4 / EPSILON), FOUR, Fraction(EPSILON), float(AT_HAND)
    )  # 300,000 of eight million people are surely at hand
    at_hand = Fraction(AT_HAND / PLENTY)
    choosing = enough_rows(float(plan.final_cost), AT_HAND)
    pairs = [Fraction(200_000 / (2 * AT_HAND))] * plan.pair_count
    assert plan.pair_count > 1
    assert all(0 < share < 1 for share in (at_hand, choosing, *pairs))
    tempering = enough_rows(0.03 * EPSILON, AT_HAND)
    assert coins_of(monkeypatch, records) == [at_hand, choosing, *pairs, tempering]


@pytest.mark.parametrize("records", [[], RECORDS, RECORDS * 100], ids=len)
def test_the_share_of_a_coin_for_a_scoring_follows_from_noisy_counts(monkeypatch, four, records):
    share = enough_rows(0.05 * EPSILON, PLENTY)
    assert 0 < share < 1
    assert coins_of(monkeypatch, records, corrections=False) == [share]


@pytest.mark.parametrize("module", [histogram_module, corrections_module])
def test_twin_a_share_from_the_exact_number_of_people(monkeypatch, four, module):
    exact, plain, true = (
        [],
        histogram_module.release_histogram,
        selection.compute_subsample_share,
    )

    def histogram(source, *rest):
        exact.append(float(source.count_classes().sum()))
        return plain(source, *rest)

    monkeypatch.setattr(histogram_module, "release_histogram", histogram)
    monkeypatch.setattr(
        module,
        "compute_subsample_share",
        lambda epsilon, people: true(epsilon, 1e5 + exact[-1]),
    )
    options = {"corrections": module is corrections_module}
    found = {tuple(coins_of(monkeypatch, one, **options)) for one in (RECORDS, RECORDS * 2)}
    assert len(found) == 2


def rows_of(monkeypatch, coins, some=RowSample.draw_subsample):
    """Which rows a sample takes."""
    monkeypatch.setattr(CryptoRandom, "bernoulli", lambda self, share, size: coins[:size])
    codes = np.arange(len(coins))
    taken = some(RowSample({"a": 10 * codes}, codes), Fraction(1, 3), CryptoRandom())
    np.testing.assert_array_equal(taken.cell_indices["a"], 10 * taken.class_codes)
    np.testing.assert_array_equal(codes[taken.row_indices], taken.class_codes)
    return taken.class_codes.tolist()


def first_rows(sample, share, random):
    """Known bad: as many rows, but always the first ones."""
    rows = np.arange(np.count_nonzero(random.bernoulli(share, len(sample.class_codes))))
    cells = {name: own[rows] for name, own in sample.cell_indices.items()}
    return RowSample(cells, sample.class_codes[rows], rows)


def rows_at_hand(coins, kind):
    """Which rows are kept at hand while all of them are counted."""
    codes = np.arange(len(coins)) % 2
    values = np.array(["x", "y", "y", "x", "x"], dtype=object)[np.arange(len(coins)) % 5]
    columns = {"a": np.full(len(coins), 100.0), "b": values}
    sampling = kind(Fraction(1, 3), CryptoRandom())
    InMemorySource(SCHEMA, columns, codes).count_tables(
        {"b": Cells.from_schema(SCHEMA, "b")}, sampling
    )
    return sampling.class_codes.tolist(), sampling.cell_indices["b"].tolist()


class FirstRows(Sampling):
    """Known bad: as many rows, but always the first ones."""

    def sample_while_reading(self, batches, cells, weight_name=None):
        """Keep the first rows of every batch."""

        def first(coins):
            return np.arange(np.count_nonzero(coins))

        for batch in batches:
            with patch.object(source_module.np, "flatnonzero", first):
                yield from super().sample_while_reading([batch], cells)


def kept_by_its_coin(monkeypatch, kind):
    """Whether the rows at hand are those whose coins show heads."""
    coins = np.arange(12) % 5 > 2
    monkeypatch.setattr(CryptoRandom, "bernoulli", lambda self, share, size: coins)
    codes, cells = rows_at_hand(coins, kind)
    heads = np.flatnonzero(coins)
    return codes == (heads % 2).tolist() and cells == [[0, 1, 1, 0, 0][k % 5] for k in heads]


def test_a_row_is_kept_at_hand_by_a_coin_of_its_own(monkeypatch):
    assert kept_by_its_coin(monkeypatch, Sampling)


def test_twin_as_many_rows_are_kept_at_hand_but_the_first_ones(monkeypatch):
    assert not kept_by_its_coin(monkeypatch, FirstRows)


@pytest.mark.parametrize("some", [RowSample.draw_subsample, first_rows])
def test_a_row_is_in_a_sample_by_a_coin_of_its_own(monkeypatch, some):
    """One row more or less leaves the coins of all others, and so their places, as they are."""
    coins = np.arange(12) % 5 > 2
    sound = rows_of(monkeypatch, coins, some) == np.flatnonzero(coins).tolist()
    shorter = rows_of(monkeypatch, coins[:-2], some) == np.flatnonzero(coins[:-2]).tolist()
    assert sound is shorter is (some is RowSample.draw_subsample)


# ---- trims


def trims_of(monkeypatch, records, first):
    """How many values were left out, of the mean and of the squares of each class."""
    given = []
    for name in ("compute_trimmed_mean", "bound_trimmed_mean_sensitivity"):
        true = getattr(smooth_sensitivity, name)

        def noted(k, trim, *rest, true=true):
            given.append(trim)
            return true(k, trim, *rest)

        monkeypatch.setattr(smooth_sensitivity, name, noted)
    transcript_of(monkeypatch, records, "trimmed", first, 5.0)
    return given


@pytest.mark.parametrize("size", [0, 60, 400])
def test_how_many_are_trimmed_follows_from_noisy_counts(monkeypatch, size):
    first = (900, 2000)
    share = Fraction(5.0) * 2 / 4 / 2  # class counts 1, the number 2, the text 1; two releases
    _, beta = SmoothNoiseBudget(None, Budget(5.0)).calibrate_share(share)
    expected = [compute_trim(float(count), beta) for count in first for _ in range(4)]
    assert 0 < expected[0] < expected[-1]
    assert trims_of(monkeypatch, central_transcripts.crowd(size), first) == expected


def test_twin_as_many_trimmed_as_there_are_people(monkeypatch):
    true = smooth_module.STATISTIC_PAIRS["trimmed"]

    def exact(k, levels, betas, count):
        return true(k, levels, betas, float(len(k)))

    monkeypatch.setitem(smooth_module.STATISTIC_PAIRS, "trimmed", exact)
    one, two = (
        trims_of(monkeypatch, central_transcripts.crowd(size), (900, 2000)) for size in (60, 400)
    )
    assert one != two
