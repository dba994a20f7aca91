"""What inferring a schema costs: steps, noise and thresholds, from public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.central.budget import Budget, IntegerNoise
from discreet.central.noise_thresholds import find_noise_threshold
from discreet.central.private_bounds import FALSE_CELL_CHANCE, LOG_GRID_EDGES
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.rounding import to_shortest_float
from discreet.randomness.samplers import MAX_SCALE
from discreet.schema.drafting import ColumnDraft, SchemaDraft
from discreet.schema.inference_cost import ALL_ROWS_UNIT, WHOLE_RECORD_UNIT
from discreet.schema.schema import format_value
from discreet.tables.contributions import ContributionBound

__all__ = ["InferencePlan", "count_steps", "needs_values", "plan_inference"]

CLASS_WEIGHT = 4
"""Steps' worth of the budget for the classes, without which there is no schema; 1 compared:
docs/experiments/schemas.md."""
SELECTION_DELTA_SHARE = Fraction(1, 2)
"""Share of delta for the choice of values where noise needs the other part; with 1/10 and 9/10
thresholds are 1 to 7 % higher: docs/experiments/schemas.md."""


def count_steps(column: ColumnDraft) -> int:
    """How many noisy histograms a column is paid for: two grids, or a grid and values, or values.

    Nothing is inferred of dates, times and durations.

    Parameters
    ----------
    column : ColumnDraft
    """
    if not column.open_fields or column.is_temporal or column.kind == "date":
        return 0
    return 1 if column.kind == "categorical" else 2


def needs_values(column: ColumnDraft) -> bool:
    """Whether a column's values have to be chosen from the data; for an unknown kind, they may.

    Parameters
    ----------
    column : ColumnDraft
    """
    return count_steps(column) > 0 and column.kind != "numeric"


@dataclass(frozen=True)
class InferencePlan:
    """The budget of one inference, and what every step of it gets.

    Parameters
    ----------
    budget : Budget
        Of all steps.
    step_cost : Fraction
        What each noisy histogram costs; that of the classes costs several times as much.
    value_delta : Fraction
        Chance that the values of one column give somebody away; 0 where none are chosen.
    rows_per_person : int
    guarantee : Guarantee
        Of the whole.
    """

    budget: Budget
    step_cost: Fraction
    value_delta: Fraction
    rows_per_person: int
    guarantee: Guarantee

    def spend_on_histogram(self, name: str, weight: int = 1) -> IntegerNoise:
        """Spend on counts of which each row of a person changes one by one.

        Parameters
        ----------
        name : str
            For the account.
        weight : int, default 1
            How many steps' worth.
        """
        return self.budget.spend_on_noise(
            name, weight * self.step_cost, self.rows_per_person, self.rows_per_person
        )


def plan_inference(
    draft: SchemaDraft, epsilon: float, delta: float, bound: ContributionBound | None = None
) -> InferencePlan:
    """Plan what is inferred of a draft, or say what has to be given; no value is read.

    With a delta, noise is Laplace with all of delta for the choice of values, or Gaussian with a
    part of it, whichever has the lower threshold.

    Parameters
    ----------
    draft : SchemaDraft
    epsilon, delta : float
        Of all steps together.
    bound : ContributionBound, optional
        How many rows of a person are used; without it, each row is a person.
    """
    epsilon, delta = to_shortest_float(epsilon), to_shortest_float(delta)
    pure_budget = Budget(epsilon)
    if delta:
        Budget(epsilon, delta)  # refuses what is not a delta
    open_classes = int(draft.classes is None)
    weights = [CLASS_WEIGHT] * open_classes + [1] * sum(map(count_steps, draft.columns))
    if not draft.columns:
        raise SchemaError("no column is left besides the class; name at least one feature")
    if not weights:
        raise SchemaError(
            "everything of this schema is given, so that there is nothing to infer; leave out what "
            "is to be inferred, or use the schema as it is"
        )
    if not delta:
        _require_given_values(draft)
    value_columns = open_classes + sum(map(needs_values, draft.columns)) if delta else 0
    plans = [_make_plan(pure_budget, weights, value_columns, Fraction(delta), bound)]
    if delta:
        selection_delta = Fraction(delta) * SELECTION_DELTA_SHARE if value_columns else Fraction(0)
        noise_delta = float(Fraction(delta) - selection_delta)
        plans.append(
            _make_plan(Budget(epsilon, noise_delta), weights, value_columns, selection_delta, bound)
        )
    plans_with_noise = [(plan, _make_noise(plan)) for plan in plans]
    drawable_plans = [pair for pair in plans_with_noise if pair[1].parameter <= MAX_SCALE]
    if not drawable_plans:
        raise PrivacyError("epsilon is too small: the noise would be wider than can be drawn")
    chosen_plan, _ = min(drawable_plans, key=lambda pair: _compute_threshold(*pair))
    return chosen_plan


def _make_plan(
    budget: Budget,
    weights: Sequence[int],
    value_columns: int,
    selection_delta: Fraction,
    bound: ContributionBound | None,
) -> InferencePlan:
    step_cost = budget.total / sum(weights)
    rows_per_person = 1 if bound is None else bound.rows_per_person
    budget.calibrate(
        [
            budget.plan_noise(weight * step_cost, rows_per_person, rows_per_person)
            for weight in weights
        ]
    )
    value_delta = selection_delta / value_columns if value_columns else Fraction(0)
    guarantee = budget.make_guarantee(() if bound is None else bound.assumptions)
    total_delta = Fraction(budget.delta) + value_delta * value_columns
    guarantee = replace(
        guarantee,
        against="everyone who sees the released schema",
        delta=_round_up(total_delta),
        rho=None if value_columns else guarantee.rho,
        unit=WHOLE_RECORD_UNIT if bound is None else ALL_ROWS_UNIT,
    )
    return InferencePlan(budget, step_cost, value_delta, rows_per_person, guarantee)


def _round_up(fraction: Fraction) -> float:
    """The shortest float that is not smaller, within the last digit."""
    nearest_float = float(fraction)
    return nearest_float if Fraction(nearest_float) >= fraction else nearest_float * (1 + 2**-52)


def _make_noise(plan: InferencePlan) -> IntegerNoise:
    """The noise of every step, without paying for it."""
    if not plan.budget.concentrated:
        return IntegerNoise(plan.rows_per_person / plan.step_cost)
    usable_cost = plan.step_cost * plan.budget.usable_share
    return IntegerNoise(plan.rows_per_person**2 / (2 * usable_cost), gaussian=True)


def _compute_threshold(plan: InferencePlan, noise: IntegerNoise) -> int:
    """The count that a value needs, or a cell where no values are chosen."""
    cell_chance = FALSE_CELL_CHANCE / len(LOG_GRID_EDGES)
    chance = plan.value_delta / plan.rows_per_person or cell_chance
    return find_noise_threshold(noise, chance)


def _require_given_values(draft: SchemaDraft) -> None:
    """Refuse open categories and classes: without a delta nothing can be learnt about them."""
    open_names = [
        column.name
        for column in draft.columns
        if column.kind == "categorical" and count_steps(column)
    ]
    missing_parts = [f"the values of {', '.join(open_names)}"] if open_names else []
    missing_parts += [f"the classes of {draft.target}"] if draft.classes is None else []
    if missing_parts:
        example = format_value(open_names[0]) if open_names else "contract"
        raise SchemaError(
            f"without a delta, {' and '.join(missing_parts)} cannot be inferred: that a value "
            "occurs may be due to a single person. Give them "
            f"(--column '{example}: [A, B]', --classes no,yes; in Python columns=, classes=), "
            "leave columns out (--drop), or add a delta, such as --delta 1e-6"
        )
