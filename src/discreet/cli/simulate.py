"""``discreet simulate``: what local privacy would cost on the user's own table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import click

from discreet.cli.files import about, read_schema
from discreet.cli.output import console, example, json_option, print_json, progress, table
from discreet.errors import SchemaError

__all__ = ["simulate"]

PAPER = ("de", "sue", "oue", "she", "the")


@click.command(
    epilog=example(
        "discreet simulate people.csv --schema people.schema.json --epsilon 0.5,1,2",
        "discreet simulate people.parquet --schema s.json --epsilon 1 --methods auto,de,oue",
    )
)
@click.argument("data")
@click.option("--schema", required=True, help="Public description of the table.")
@click.option("--epsilon", required=True, help="One or several, separated by commas.")
@click.option(
    "--methods",
    default="auto," + ",".join(PAPER),
    show_default=True,
    help="auto is our default; an oracle's name is the paper's plan and estimator with it.",
)
@click.option("--repeats", type=click.IntRange(min=2), default=5, show_default=True)
@click.option("--bins", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@json_option
def simulate(
    data: str,
    schema: str,
    epsilon: str,
    methods: str,
    repeats: int,
    bins: int,
    seed: int,
    as_json: bool,
) -> None:
    """Compare oracles and estimators on a table of your own.

    READS RAW DATA: run it only where the raw table may be read. Each row is a respondent who sends
    one randomized report; 80 % of the rows are asked, 20 % are predicted, several times over.
    """
    from discreet.mechanisms.frequency import ORACLES

    budgets = _numbers(epsilon)
    chosen = [name.strip() for name in methods.split(",") if name.strip()]
    for name in chosen:
        if name != "auto" and name not in ORACLES:
            raise SchemaError(f"unknown method {name!r}; write auto or one of {', '.join(ORACLES)}")
    public = read_schema(schema)
    click.echo("discreet: this reads raw data; the result promises nothing to anyone", err=True)
    with about(data):
        trial = _Trial(public, *_rows(data, public), bins)
    lines = []
    runs = [(name, budget) for name in chosen for budget in budgets]
    with progress("simulating", "runs") as advance:
        for done, (name, budget) in enumerate(runs, 1):
            scores = [trial.accuracy(name, budget, seed + r) for r in range(repeats)]
            mean = sum(scores) / repeats
            spread = math.sqrt(sum((s - mean) ** 2 for s in scores) / (repeats - 1))
            half = _student(repeats) * spread / math.sqrt(repeats)
            lines.append({"method": name, "epsilon": budget, "accuracy": mean, "half": half})
            advance(done, len(runs))
    limits = trial.limits(seed)
    if as_json:
        print_json({"rows": len(trial.y), "repeats": repeats, **limits, "results": lines})
    else:
        _print(len(trial.y), chosen, budgets, lines, limits)


def _numbers(text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise SchemaError(f"epsilon is {text!r}; write numbers separated by commas") from None
    if not all(one > 0 for one in found):
        raise SchemaError(f"epsilon is {text!r}; every one must be above 0")
    return found


def _rows(data: str, schema: Any) -> tuple[Any, Any]:
    from discreet.tables.engines import open_table

    opened = open_table(data)
    wanted = [*schema.names, schema.target]
    lacking = [name for name in wanted if name not in opened.columns]
    if lacking:
        raise SchemaError(f"the table lacks {', '.join(lacking)}")
    frame = opened.select(*wanted).to_pandas()
    if len(frame) < 10:
        raise SchemaError(f"{len(frame)} rows are too few to simulate anything")
    return frame[list(schema.names)], frame[schema.target].to_numpy()


@dataclass(frozen=True)
class _Trial:
    """Rows on which classifiers are tried: trained on four fifths, scored on the rest."""

    schema: Any
    X: Any
    y: Any
    bins: int

    def accuracy(self, name: str, epsilon: float, seed: int) -> float:
        """Share of the test rows that a classifier gets right."""
        import numpy as np

        from discreet.estimators import LocalNB

        order = np.random.default_rng(seed).permutation(len(self.y))
        train, test = np.split(order, [int(0.8 * len(self.y))])
        options: dict[str, Any] = {}
        if name != "auto":
            options = {
                "oracle": name,
                "plan": "paper",
                "postprocess": "paper",
                "assignment": "draw",
            }
        nb = LocalNB(epsilon, schema=self.schema, bins=self.bins, random_state=seed, **options)
        nb.fit(self.X.iloc[train], self.y[train])
        return float(nb.score(self.X.iloc[test], self.y[test]))

    def limits(self, seed: int) -> dict[str, float]:
        """What always saying the most frequent class would get right, and no noise at all."""
        import numpy as np

        _, counts = np.unique(self.y, return_counts=True)
        exact = self.accuracy("auto", math.inf, seed)
        return {"majority": float(counts.max() / counts.sum()), "non_private": exact}


def _student(repeats: int) -> float:
    """97.5 % quantile of Student's t."""
    from scipy.stats import t

    return float(t.ppf(0.975, repeats - 1))


def _print(
    rows: int,
    methods: list[str],
    budgets: list[float],
    lines: list[dict[str, Any]],
    limits: dict[str, float],
) -> None:
    made = table(
        f"accuracy by total epsilon per person, {rows:,} rows, 95 % intervals",
        "method",
        *(f">{one:g}" for one in budgets),
    )
    cell = {(one["method"], one["epsilon"]): one for one in lines}
    for name in methods:
        shown = [cell[name, budget] for budget in budgets]
        made.add_row(name, *(f"{o['accuracy']:.3f} ± {o['half']:.3f}" for o in shown))
    out = console()
    out.print(made)
    out.print(f"majority class {limits['majority']:.3f}, without noise {limits['non_private']:.3f}")
