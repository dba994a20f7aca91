"""A schema for a price keeps its promise: replayed exactly, step by step, with its twins.

Noise is replaced by outcomes that are fixed beforehand, so that two tables that differ in one
person show what each step was given. What is released may depend on the outcomes alone, and the
worst log-ratio of the steps adds up to at most epsilon. Of the choice of values, which may show
that somebody took part, the law is enumerated.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from discreet import Numeric
from discreet.central import inference_plan, private_inference
from discreet.central.budget import Budget, IntegerNoise
from discreet.central.noise_thresholds import bound_tail_chance, find_noise_threshold
from discreet.central.private_bounds import LOG_GRID_EDGES
from discreet.central.private_inference import infer_private_schema
from discreet.central.private_values import compute_value_threshold, select_values
from discreet.privacy.accountant import compute_gaussian_rho
from discreet.randomness import CryptoRandom
from discreet.schema.inference_cost import InferenceCost
from discreet.tables.column_counts import ColumnCounter

EPSILON, DELTA = 0.5, 1e-3
RECORDS = [
    ("17", "red", "no"),
    ("62.5", "green", "yes"),
    ("old", "", "no"),
    ("1e300", "violet", "maybe"),
    ("", "red", "yes"),
    ("-3", "7", "no"),
]
BASES = [RECORDS[:1], RECORDS[:5] * 2]


class Step(NamedTuple):
    kind: str
    noise: IntegerNoise
    counts: dict[Any, int]
    threshold: int = 0


PAY = Budget.spend


class Replay:
    """What each step was given; what it releases is fixed by its number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, outcome: int) -> None:
        self.outcome, self.steps = outcome, list[Step]()

        def add(noise: IntegerNoise, counts: Any, random: Any) -> Any:
            released = self.draw(len(counts))
            self.steps.append(Step("grid", noise, dict(enumerate(map(int, counts)))))
            return released

        def spend(budget: Budget, name: str, cost: Fraction) -> Fraction:
            self.paid_steps += 1
            return pay(budget, name, cost)

        self.paid_steps, pay = 0, PAY
        monkeypatch.setattr(IntegerNoise, "add", add)
        monkeypatch.setattr(Budget, "spend", spend)
        monkeypatch.setattr(private_inference, "select_values", self.select)

    def draw(self, size: int) -> Any:
        rng = np.random.default_rng([self.outcome, len(self.steps)])
        if self.outcome == 1 and size == len(LOG_GRID_EDGES) + 2:  # numbers from 0 to 128
            released = np.zeros(size, dtype=np.int64)
            released[np.searchsorted(LOG_GRID_EDGES, [16.0, 64.0], side="right")] = 10_000
            return released
        return np.where(rng.random(size) < 0.1, 10_000, rng.integers(-20, 20, size))

    def select(self, value_counts: Any, noise: IntegerNoise, threshold: int, random: Any) -> Any:
        counts = {v: int(n) for values, ns in value_counts for v, n in zip(values, ns, strict=True)}
        self.steps.append(Step("values", noise, counts, threshold))
        return [(), ("a", "b"), ("a", "b", "c")][(self.outcome + len(self.steps)) % 3]


def replay(
    monkeypatch: pytest.MonkeyPatch,
    records: list[tuple[Any, ...]],
    outcome: int,
    delta: float = DELTA,
    **options: Any,
) -> tuple[list[Step], str]:
    found = Replay(monkeypatch, outcome)
    names = ["age", "colour", "class", "who"][: len(records[0]) if records else 3]
    frame = pd.DataFrame(records, columns=names, dtype=object)
    if delta == 0:
        options["classes"] = ["no", "yes"]
    try:
        released = infer_private_schema(frame, "class", epsilon=EPSILON, delta=delta, **options)
    except private_inference.SchemaError as error:
        return found.steps, str(error)
    assert found.paid_steps == len(found.steps), "a step was paid for, and released without noise"
    cost = released.schema.inference
    assert cost is not None
    assert (cost.epsilon, cost.delta) == (EPSILON, delta)
    schema = private_inference.replace(released.schema, inference=InferenceCost(EPSILON))
    return found.steps, schema.to_json() + str(released.left_out)


def measure(mine: list[Step], theirs: list[Step]) -> tuple[Fraction, Fraction, Fraction]:
    """The epsilon of Laplace steps, the rho of Gaussian ones, and the delta of new values."""
    assert [(s.kind, s.noise, s.threshold) for s in mine] == [
        (s.kind, s.noise, s.threshold) for s in theirs
    ], "the steps themselves differ"
    epsilon, rho, delta = Fraction(0), Fraction(0), Fraction(0)
    for one, other in zip(mine, theirs, strict=True):
        shared = set(one.counts) & set(other.counts)
        moved = [abs(one.counts[key] - other.counts[key]) for key in shared]
        if one.noise.gaussian:
            rho += Fraction(sum(m * m for m in moved)) / (2 * one.noise.parameter)
        else:
            epsilon += Fraction(sum(moved)) / one.noise.parameter
        for key in set(one.counts) ^ set(other.counts):
            count = one.counts.get(key, 0) + other.counts.get(key, 0)
            assert one.threshold > count, "one person reaches the threshold without noise"
            delta += bound_tail_chance(one.noise, one.threshold - count)
    return epsilon, rho, delta


def check_neighbours(
    monkeypatch: pytest.MonkeyPatch,
    person_rows: list[list[tuple[Any, ...]]],
    delta: float = DELTA,
    **options: Any,
) -> None:
    """Refuse an inference that one person's rows change by more than its price."""
    max_rho = compute_gaussian_rho(EPSILON, delta / 2) if delta else 0.0
    for base, outcome in itertools.product(BASES, (0, 1)):
        rows = [(*row, f"p{i}")[: len(person_rows[0][0])] for i, row in enumerate(base)]
        mine, schema = replay(monkeypatch, rows, outcome, delta, **options)
        for added in person_rows:
            theirs, other_schema = replay(monkeypatch, [*rows, *added], outcome, delta, **options)
            assert schema == other_schema, "what is released depends on more than noisy counts"
            epsilon, rho, value_delta = measure(mine, theirs)
            assert epsilon <= Fraction(EPSILON)
            assert rho <= max_rho
            assert not (epsilon and rho)
            assert value_delta + Fraction(delta) / 2 * bool(rho) <= Fraction(delta)


SINGLE_ROWS = [[record] for record in RECORDS]
PERSON_ROWS = [[(*record, "new") for record in RECORDS[start : start + 3]] for start in (0, 2, 3)]
PERSON_ROWS.append([(*RECORDS[0], "new")] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [DELTA, 0.0])
def test_one_person_costs_at_most_the_price_and_nothing_else_shows(monkeypatch, delta):
    check_neighbours(monkeypatch, SINGLE_ROWS, delta=delta)


@pytest.mark.slow
@pytest.mark.parametrize(("rows_per_person", "delta"), [(1, DELTA), (2, DELTA), (3, 0.0)])
def test_a_person_with_several_rows_costs_at_most_the_price(monkeypatch, rows_per_person, delta):
    options = {"person": "who", "rows_per_person": rows_per_person}
    check_neighbours(monkeypatch, PERSON_ROWS, delta, **options)


@pytest.mark.slow
def test_twin_rows_of_a_person_that_are_forgotten_cost_more(monkeypatch):
    spend = Budget.spend_on_noise
    monkeypatch.setattr(
        Budget, "spend_on_noise", lambda self, name, cost, *rows: spend(self, name, cost)
    )
    with pytest.raises(AssertionError):
        check_neighbours(monkeypatch, PERSON_ROWS, 0.0, person="who", rows_per_person=3)


def count_exactly(counter: ColumnCounter, name: str) -> list[float]:
    numbers = pd.to_numeric(counter.rows.to_pandas()[name], errors="coerce").dropna()
    return [float(number) for number in numbers if math.isfinite(number)]


@pytest.mark.slow
def test_twin_the_smallest_number_as_bound_is_noticed(monkeypatch):
    infer = private_inference._ColumnRelease._infer_bounds

    def infer_exactly(self, column, log_range):
        _, upper = infer(self, column, log_range)
        return min([*count_exactly(self.counter, column.name), upper - 1]), upper

    monkeypatch.setattr(private_inference._ColumnRelease, "_infer_bounds", infer_exactly)
    with pytest.raises(AssertionError, match="more than noisy counts"):
        check_neighbours(monkeypatch, SINGLE_ROWS)


@pytest.mark.slow
def test_twin_a_grid_that_depends_on_the_data_is_noticed(monkeypatch):
    infer = private_inference._ColumnRelease._infer_bounds

    def infer_on_own_grid(self, column, log_range):
        numbers = count_exactly(self.counter, column.name)
        return infer(self, column, (min(numbers, default=0), max(numbers, default=0) + 1))

    monkeypatch.setattr(private_inference._ColumnRelease, "_infer_bounds", infer_on_own_grid)
    with pytest.raises(AssertionError, match="more than noisy counts"):
        check_neighbours(monkeypatch, SINGLE_ROWS)


@pytest.mark.slow
def test_twin_a_kind_that_one_odd_record_decides_is_noticed(monkeypatch):
    release = private_inference._ColumnRelease._release_first_grid

    def sniff(self, column):
        kind, log_range = release(self, column)
        has_text = self.first_grids[column.name][1] > 0
        return ("categorical", None) if has_text else (kind, log_range)

    monkeypatch.setattr(private_inference._ColumnRelease, "_release_first_grid", sniff)
    with pytest.raises(AssertionError):
        check_neighbours(monkeypatch, SINGLE_ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [1, 2])
def test_twin_a_threshold_that_a_person_reaches_is_noticed(monkeypatch, threshold):
    monkeypatch.setattr(
        private_inference, "compute_value_threshold", lambda noise, delta, rows: threshold
    )
    with pytest.raises(AssertionError):
        check_neighbours(monkeypatch, SINGLE_ROWS)


# ---- the choice of values, enumerated


def compute_chances(
    counts: dict[str, int], noise: IntegerNoise, threshold: int
) -> dict[str, float]:
    """P(noisy count >= threshold) of each value, by summation of the law."""
    reach = range(-600, 601)
    q = math.exp(-1 / float(noise.parameter))
    law = {x: (1 - q) / (1 + q) * q ** abs(x) for x in reach}
    if noise.gaussian:
        weights = {x: math.exp(-x * x / (2 * float(noise.parameter))) for x in reach}
        law = {x: weight / sum(weights.values()) for x, weight in weights.items()}
    return {
        value: sum(chance for x, chance in law.items() if count + x >= threshold)
        for value, count in counts.items()
    }


def compute_set_delta(
    mine: dict[str, int], theirs: dict[str, int], epsilon: float, choose: Any
) -> float:
    """The exact delta at which two tables are indistinguishable by the released sets."""
    laws = [choose(counts) for counts in (mine, theirs)]
    outcomes = set(laws[0]) | set(laws[1])
    return max(
        sum(max(first.get(o, 0.0) - math.exp(epsilon) * second.get(o, 0.0), 0) for o in outcomes)
        for first, second in (laws, laws[::-1])
    )


def make_set_law(noise: IntegerNoise, threshold: int) -> Any:
    def choose(counts: dict[str, int]) -> dict[Any, float]:
        chances, law = compute_chances(counts, noise, threshold), {}
        for kept in itertools.product([False, True], repeat=len(counts)):
            chosen = tuple(v for v, keep in zip(counts, kept, strict=True) if keep)
            law[chosen] = math.prod(
                chances[v] if keep else 1 - chances[v] for v, keep in zip(counts, kept, strict=True)
            )
        return law

    return choose


TABLES = [{}, {"a": 1}, {"a": 30, "b": 2}, {"a": 40, "b": 39, "c": 38}]
NOISES = [IntegerNoise(Fraction(4)), IntegerNoise(Fraction(5, 2))]


def list_neighbours() -> Any:
    for table in TABLES:
        for value in ("a", "b", "new"):
            yield table, {**table, value: table.get(value, 0) + 1}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_the_released_set_of_values_keeps_epsilon_and_delta(noise, delta):
    epsilon = 1 / float(noise.parameter)
    threshold = compute_value_threshold(noise, Fraction(delta))
    law = make_set_law(noise, threshold)
    worst = max(compute_set_delta(*pair, epsilon, law) for pair in list_neighbours())
    assert delta / 3 < worst <= delta


@pytest.mark.parametrize("noise", NOISES)
def test_twin_a_threshold_without_delta_or_one_too_low_exceeds_it(noise):
    epsilon = 1 / float(noise.parameter)
    for threshold in (1, compute_value_threshold(noise, Fraction(1e-4)) - 1):
        law = make_set_law(noise, threshold)
        worst = max(compute_set_delta(*pair, epsilon, law) for pair in list_neighbours())
        assert worst > 1e-4


def test_twin_the_number_of_values_without_noise_exceeds_it():
    noise = NOISES[0]
    law = make_set_law(noise, compute_value_threshold(noise, Fraction(1e-4)))

    def choose_with_count(counts: dict[str, int]) -> dict[Any, float]:
        return {(len(counts), chosen): chance for chosen, chance in law(counts).items()}

    epsilon = 1 / float(noise.parameter)
    worst = max(compute_set_delta(*pair, epsilon, choose_with_count) for pair in list_neighbours())
    assert worst == pytest.approx(1)


def test_values_are_chosen_by_noisy_counts_alone(monkeypatch):
    monkeypatch.setattr(IntegerNoise, "add", lambda noise, counts, random: counts * 0 + 7)
    batches = [(["b", "z"], np.array([1, 9])), ([], np.array([], int)), (["a"], np.array([3]))]
    noise, random = NOISES[0], CryptoRandom()
    assert select_values(batches, noise, 7, random) == ("a", "b", "z")
    assert select_values(batches, noise, 8, random) == ()
    many = [([str(n) for n in range(5_000)], np.arange(5_000))]
    assert len(select_values(many, noise, 7, random)) == 1000, "memory is bounded"
    assert select_values([(["10", "9"], np.array([1, 1]))], noise, 7, random) == (9, 10)


# ---- thresholds


@pytest.mark.parametrize("noise", [*NOISES, IntegerNoise(Fraction(30), gaussian=True)])
def test_a_tail_is_never_stated_too_small(noise):
    for level in (1, 2, 5, 12, 20):
        exact = compute_chances({"v": 0}, noise, level)["v"]
        stated = float(bound_tail_chance(noise, level))
        assert exact * (1 - 1e-9) <= stated
        if not noise.gaussian:
            assert stated == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("noise", [*NOISES, IntegerNoise(Fraction(30), gaussian=True)])
@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 10**4), Fraction(1, 10**40)])
def test_a_threshold_is_the_least_that_keeps_its_chance(noise, chance):
    level = find_noise_threshold(noise, chance)
    assert bound_tail_chance(noise, level) <= chance
    assert level == 1 or bound_tail_chance(noise, level - 1) > chance


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_all_values_of_a_person_together_stay_below_delta(rows):
    noise, delta = NOISES[0], Fraction(1, 1000)
    threshold = compute_value_threshold(noise, delta, rows)
    for parts in itertools.combinations_with_replacement(range(rows + 1), rows):
        if sum(parts) == rows:
            chances = compute_chances(
                {f"v{i}": c for i, c in enumerate(parts) if c}, noise, threshold
            )
            assert sum(chances.values()) <= delta


def test_twin_a_threshold_for_one_row_does_not_hold_for_several():
    noise, delta = NOISES[0], Fraction(1, 1000)
    threshold = compute_value_threshold(noise, delta)
    assert compute_chances({"v": 5}, noise, threshold)["v"] > delta


# ---- the account


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("columns", [1, 30])
def test_the_steps_add_up_to_no_more_than_the_whole(delta, columns):
    draft = inference_plan.SchemaDraft(
        tuple(inference_plan.ColumnDraft(f"c{i}") for i in range(columns)),
        "class",
        None if delta else ("no", "yes"),
    )
    plan = inference_plan.plan_inference(draft, 0.1, delta)
    noises = []
    if delta:
        noises.append(plan.spend_on_histogram("class", inference_plan.CLASS_WEIGHT))
    noises += [plan.spend_on_histogram(f"c{i}") for i in range(2 * columns)]
    value_columns = (columns + 1) if delta else 0
    assert plan.value_delta * value_columns + Fraction(plan.budget.delta) <= Fraction(delta)
    if plan.budget.concentrated:
        rho = sum(1 / (2 * noise.parameter) for noise in noises)
        assert rho <= plan.budget.rho
    else:
        assert sum(1 / noise.parameter for noise in noises) <= Fraction(0.1)
    with pytest.raises(private_inference.PrivacyError):
        plan.spend_on_histogram("one more")
    assert plan.guarantee.epsilon == 0.1
    assert plan.guarantee.delta == pytest.approx(delta, rel=1e-12)
    assert plan.guarantee.rho is None, "with values chosen, nothing holds as zCDP"


def test_the_schema_states_what_it_cost_and_makes_values_outside_harmless():
    frame = pd.DataFrame({"age": np.arange(40_000) % 70 + 18.0, "class": ["no", "yes"] * 20_000})
    inference = infer_private_schema(frame, "class", epsilon=0.5, classes=["no", "yes"])
    schema = inference.schema
    age = schema["age"]
    assert isinstance(age, Numeric)
    assert age.lower <= 20
    assert 80 <= age.upper <= 128
    assert (age.optional, age.integer) == (True, False)
    assert (schema.outliers, schema.unseen, schema.inferred) == ("clip", "other", False)
    assert schema.inference is not None
    assert schema.inference.epsilon == 0.5
    assert inference.guarantee.is_private
