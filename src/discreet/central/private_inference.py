"""A schema inferred under differential privacy: bounds, kinds of columns, categories and classes.

What is paid for: whether a column of unknown type holds numbers, the bounds of numbers, and, with a
delta, categories and classes above a threshold. Everything else is public (names, declared types)
or has a safe value: every feature is optional, numbers outside the bounds are clipped, unknown
categories are "other". How many rows the table has is not released.

Accounting: a row is in one cell of a grid and has one value of a column, so that a person with k
rows moves each noisy histogram by k; the costs of all of them add up to the whole
(central/budget.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from os import PathLike
from typing import Any

import numpy as np

from discreet.central.inference_plan import (
    CLASS_WEIGHT,
    InferencePlan,
    count_steps,
    plan_inference,
)
from discreet.central.private_bounds import (
    LOG_GRID_EDGES,
    cut_empty_ends,
    find_occupied_range,
    is_mostly_text,
    make_bounds,
    make_equal_edges,
)
from discreet.central.private_values import compute_value_threshold, select_values
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy.guarantee import Account, Guarantee
from discreet.privacy.ledger import Ledger
from discreet.randomness import Random, as_random
from discreet.schema.draft_files import coerce_draft, merge_draft
from discreet.schema.drafting import ColumnDraft, FeatureKind, SchemaDraft
from discreet.schema.inference_cost import InferenceCost
from discreet.schema.schema import FILL_IN_MARK, Feature, Schema, Value
from discreet.schema.short_form import read_feature
from discreet.tables.column_counts import ColumnCounter
from discreet.tables.contributions import ContributionBound, MissingPerson

__all__ = ["PrivateInference", "infer_priced_schema", "infer_private_schema"]

DATE_EXAMPLE = "--column 'visited: 2015-01-01..2026-12-31 by month' or 'visited: by weekday'"
DATE_REASON = f"which dates it holds is not inferred; say what you know, such as {DATE_EXAMPLE}"
TIME_REASON = "times and durations are not read; make numbers of them"
BOUNDS_REASON = (
    "no numbers stand out from the noise; give its bounds, a larger epsilon or fewer columns"
)
KIND_REASON = (
    "neither numbers nor text stand out from the noise; give its bounds or values, or a larger "
    "epsilon"
)
VALUES_REASON = (
    "no value is frequent enough at this epsilon and delta, as in identifiers; give its values, or "
    f"leave it out; if it holds dates, say {DATE_EXAMPLE}"
)
DELTA_REASON = (
    "it holds text, whose values cannot be inferred without a delta; give its values, or, if it "
    f"holds dates, say {DATE_EXAMPLE}"
)

Progress = Callable[[int, int], None]
ChargeLedger = Callable[[Guarantee], Account | None]


@dataclass(frozen=True)
class PrivateInference:
    """An inferred schema, and what it was not possible to infer.

    Parameters
    ----------
    schema : Schema
    guarantee : Guarantee
        Under which it was inferred; also its ``inference``, in short.
    left_out : dict of str to str
        Columns that are not in the schema, with the reason. Follows from noisy counts alone.
    """

    schema: Schema
    guarantee: Guarantee
    left_out: dict[str, str]

    def format_omissions(self) -> str:
        """Say which columns are left out, and why; empty if none is."""
        names_by_reason: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            names_by_reason.setdefault(reason, []).append(name)
        sentences = [f"{', '.join(names)}: {reason}" for reason, names in names_by_reason.items()]
        return f"left out of the schema: {'. '.join(sentences)}" if sentences else ""


def infer_priced_schema(table: Any, target: str, *, budget: Any = None, **options: Any) -> Schema:
    """Infer a schema for a price, and warn about the columns that are left out of it.

    Parameters
    ----------
    table : data frame, Arrow table, ibis table, path or URL
    target : str
    budget : Ledger or path, optional
        Charged before noise is drawn.
    **options
        As for :func:`infer_private_schema`.
    """

    def charge_ledger(guarantee: Guarantee) -> Account:
        ledger = Ledger.coerce(budget)
        source_name = str(table) if isinstance(table, (str, PathLike)) else f"rows with {target}"
        state = ledger.charge(guarantee, "schema inference", data_source=source_name)
        return state.make_account(ledger.path.name)

    charge = None if budget is None else charge_ledger
    inference = infer_private_schema(table, target, charge=charge, **options)
    if omissions := inference.format_omissions():
        # two frames further up than this: Schema.infer and the convenience that it calls
        warnings.warn(omissions, UserWarning, stacklevel=4)
    return inference.schema


def infer_private_schema(
    source: Any,
    target: str = "",
    *,
    epsilon: float,
    delta: float = 0.0,
    charge: ChargeLedger | None = None,
    table_name: str | None = None,
    like: Any = None,
    classes: Sequence[Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    drop: Collection[str] = (),
    person: str | None = None,
    rows_per_person: int = 1,
    missing_person: MissingPerson = "error",
    missing: Any = "skip",
    missing_tokens: Sequence[str] | None = None,
    same_people: bool = True,
    random_state: Any = None,
    progress: Progress | None = None,
) -> PrivateInference:
    """Infer a schema under (epsilon, delta)-differential privacy for everyone in the table.

    Parameters
    ----------
    source : path, glob, URL, data frame, Arrow, ibis or Spark table
    target : str
        The name of the class column; may be left out where ``like`` has it.
    epsilon, delta : float
        Of the whole inference. Categories and classes need a delta.
    charge : callable, optional
        Pays for what is about to be promised, or raises. It is called once, before noise is drawn.
    table_name : str, optional
        Name of the table, for a database URL.
    like : SchemaDraft, Schema or path, optional
        What is known: columns that are not in it are left out, and what it leaves open is inferred.
    classes : sequence, optional
        All classes, where they are known without the data.
    columns : mapping of name to line, optional
        What is known of columns without the data, each in the one line that it has in a schema:
        ``{"age": "0..110", "contract": ["month", "year"], "visited": "by weekday"}``.
    drop : collection of str
        Columns to leave out.
    person : str, optional
        The column that says whose a row is, where people may have several rows. It is left out of
        the schema.
    rows_per_person : int, default 1
        How many rows of each person are used, chosen by that person's rows alone. The noise grows
        with it, and one is nearly always enough for a schema.
    missing_person : {"error", "own"}
        Whether a row without an id is refused, or is a person of its own.
    missing : {"skip", "category"}
    missing_tokens : sequence of str, optional
        Spellings of missing in text; for a CSV file, a public list of the usual ones by default.
    same_people : bool, default True
        Whether people of this table may be in the tables that the schema is used for.
    random_state : None, int, numpy Generator or Random
        None draws from the cryptographic source. A seed is for simulation and ends the promise.
    progress : callable, optional
        Called as ``progress(done, total)`` after every query.
    """
    bound = None
    if person is not None:
        bound = ContributionBound(person, rows_per_person, missing_person)
    elif rows_per_person != 1:
        raise PrivacyError(
            f"rows_per_person={rows_per_person!r} needs person=, the column that says whose a row "
            "is; without it each row is a person"
        )
    if isinstance(missing_tokens, str):
        raise SchemaError(f"missing_tokens is {missing_tokens!r}; write a list, such as ['?']")
    counter = ColumnCounter.open(
        source, target, table=table_name, bound=bound, tokens=missing_tokens
    )
    draft = _complete_draft(counter.draft, target, like, classes, columns, drop)
    plan = plan_inference(draft, epsilon, delta, bound)
    random = as_random(random_state)
    cost = InferenceCost(
        plan.guarantee.epsilon,
        plan.guarantee.delta,
        plan.guarantee.rho,
        plan.guarantee.unit,
        datetime.now(UTC).isoformat(timespec="seconds"),
        same_people,
        random.simulated,
    )
    guarantee = plan.guarantee.void_if(simulated=random.simulated)
    query_total = sum(map(count_steps, draft.columns)) + (draft.classes is None)
    release = _ColumnRelease(counter, plan, random, query_total, progress)
    release.count_first_grids(draft.columns)  # what cannot be read is found before it is paid for
    account = None if charge is None else charge(guarantee)
    known_classes = draft.classes
    if known_classes is None:
        known_classes = release.choose_values(draft.target, is_declared=False, weight=CLASS_WEIGHT)
    features = [feature for column in draft.columns if (feature := release.infer_feature(column))]
    _require_schema(draft.target, known_classes, features, release.left_out)
    schema = Schema(
        features,
        draft.target,
        known_classes,
        missing,
        outliers="clip",
        unseen="other",
        missing_tokens=counter.tokens,
        inference=cost,
    )
    return PrivateInference(schema, replace(guarantee, account=account), release.left_out)


def _complete_draft(
    draft: SchemaDraft,
    target: str,
    like: Any,
    classes: Sequence[Any] | None,
    columns: Mapping[str, Any] | None,
    drop: Collection[str],
) -> SchemaDraft:
    """The columns of a table with all that is known of them; refuses names that it lacks."""
    if isinstance(drop, str):
        raise SchemaError(f"drop is {drop!r}; write a list of columns, such as ['id']")
    if like is not None:
        draft = merge_draft(draft, coerce_draft(like))
    if not (draft.target or target):
        raise SchemaError("target is empty; name the column that holds the classes")
    if not draft.target:
        draft = draft.with_target(target)
    names = [column.name for column in draft.columns]
    known_features = {name: read_feature(name, line) for name, line in (columns or {}).items()}
    for name in (*known_features, *drop):
        if name not in names:
            raise SchemaError(
                f"there is no column {name!r} besides the class; there are {', '.join(names)}"
            )
    completed_columns = [
        ColumnDraft.from_feature(known_features[column.name], column.type)
        if column.name in known_features
        else column
        for column in draft.columns
        if column.name not in drop
    ]
    for column in completed_columns:
        if not column.open_fields and not column.is_temporal:
            column.to_feature()  # refuses invalid bounds and values before anything is paid for
    return replace(
        draft,
        columns=tuple(completed_columns),
        classes=draft.classes if classes is None else tuple(classes),
    )


def _require_schema(
    target: str,
    classes: tuple[Value, ...],
    features: Sequence[Feature],
    left_out: Mapping[str, str],
) -> None:
    """Refuse a schema without features, or with fewer than two classes."""
    if len(classes) < 2:
        raise SchemaError(
            f"{target}: fewer than two classes are frequent enough at this epsilon and delta; this "
            "was paid for. Give the classes, which are nearly always known without the data"
        )
    if not features:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise SchemaError(f"no feature could be inferred, and this was paid for. {reasons}")


@dataclass
class _ColumnRelease:
    """Noisy histograms of columns, and what follows from them."""

    counter: ColumnCounter
    plan: InferencePlan
    random: Random
    query_total: int
    progress: Progress | None
    left_out: dict[str, str] = field(default_factory=dict, init=False)
    first_grids: dict[str, Any] = field(default_factory=dict, init=False)
    done_queries: int = field(default=0, init=False)

    def _report_query(self) -> None:
        self.done_queries += 1
        if self.progress is not None:
            self.progress(self.done_queries, self.query_total)

    def count_first_grids(self, columns: Sequence[ColumnDraft]) -> None:
        """Count the columns whose bounds or kinds are inferred, exactly; nothing is released."""
        for column in columns:
            if count_steps(column) == 2:
                self.first_grids[column.name] = self.counter.count_cells(
                    column.name, LOG_GRID_EDGES, is_declared=column.kind == "numeric"
                )
                self._report_query()

    def infer_feature(self, column: ColumnDraft) -> Feature | None:
        """Infer what is open of a column; None where it is left out, with a reason."""
        if column.is_temporal or (column.kind == "date" and column.open_fields):
            self.left_out[column.name] = TIME_REASON if column.is_temporal else DATE_REASON
            return None
        if not column.open_fields:
            return column.to_feature()
        kind: FeatureKind = column.kind
        log_range = None
        if kind != "categorical":
            kind, log_range = self._release_first_grid(column)
        if kind == "numeric" and log_range is not None:
            column = replace(column, kind="numeric", bounds=self._infer_bounds(column, log_range))
        elif kind == "categorical" and self.plan.value_delta:
            column = replace(
                column,
                kind="categorical",
                integer=False,
                values=self.choose_values(column.name, is_declared=column.kind != "") or None,
            )
        if column.open_fields:
            reasons = {
                "numeric": BOUNDS_REASON,
                "categorical": VALUES_REASON if self.plan.value_delta else DELTA_REASON,
            }
            self.left_out[column.name] = reasons.get(kind, KIND_REASON)
            return None
        return column.to_feature()

    def _release_first_grid(
        self, column: ColumnDraft
    ) -> tuple[FeatureKind, tuple[float, float] | None]:
        """The kind of a column and the range of its numbers, from noisy counts."""
        noise = self.plan.spend_on_histogram(f"grid of {column.name}")
        counts, text_count = self.first_grids[column.name]
        noisy_counts = noise.add(np.append(counts, text_count), self.random)
        occupied_range = find_occupied_range(noisy_counts[:-1], LOG_GRID_EDGES, noise)
        noisy_rows = 0 if occupied_range is None else occupied_range[2]
        if column.kind == "" and is_mostly_text(noisy_rows, int(noisy_counts[-1]), noise):
            return "categorical", None
        if occupied_range is None:
            return column.kind, None
        return "numeric", occupied_range[:2]

    def _infer_bounds(
        self, column: ColumnDraft, log_range: tuple[float, float]
    ) -> tuple[float, float]:
        """Narrow the range of the first grid by a second one, of equal widths."""
        noise = self.plan.spend_on_histogram(f"bounds of {column.name}")
        edges = make_equal_edges(*log_range)
        counts, _ = self.counter.count_cells(
            column.name, edges, is_declared=column.kind == "numeric"
        )
        self._report_query()
        lower, upper = cut_empty_ends(noise.add(counts, self.random), edges, noise)
        return make_bounds(lower, upper, column.integer)

    def choose_values(self, name: str, *, is_declared: bool, weight: int = 1) -> tuple[Value, ...]:
        """Choose the values of a column that are frequent enough."""
        noise = self.plan.spend_on_histogram(f"values of {name}", weight)
        threshold = compute_value_threshold(noise, self.plan.value_delta, self.plan.rows_per_person)
        value_counts = self.counter.iter_values(name, is_declared=is_declared)
        selected_values = select_values(value_counts, noise, threshold, self.random)
        self._report_query()
        # a schema with the mark of an open place could not be read again
        return tuple(value for value in selected_values if value != FILL_IN_MARK)
