"""``discreet train``: a classifier from a trusted curator's table, with a promise."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import click

from discreet.cli.files import read_schema, write
from discreet.cli.output import console, example, json_option, print_json, progress
from discreet.errors import FormatError, PrivacyError

__all__ = ["train"]

METHODS = ("histogram", "moments", "global", "global-published", "smooth", "trimmed")


class Shares(click.ParamType[dict[str, float]]):
    """``age=2,sex=1``."""

    name = "age=2,sex=1"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        """Names and weights."""
        if isinstance(value, dict):
            return value
        found: dict[str, float] = {}
        for part in filter(None, str(value).split(",")):
            name, _, weight = part.rpartition("=")
            try:
                found[name.strip()] = float(weight)
            except ValueError:
                self.fail(f"{part!r} is no share; write age=2,sex=1", param, ctx)
        return found


@click.command(
    epilog=example(
        "discreet train people.csv --schema people.schema.json --epsilon 1 -o model.json",
        "discreet train 'data/*.parquet' --schema s.json --epsilon 0.5 \\",
        "    --budget-file budget.json --budget-total 3 -o model.json",
        "discreet train postgres://user@host/db --table t --schema s.json --epsilon 1 -o m.json",
    )
)
@click.argument("data")
@click.option("--schema", "path", required=True, help="The public description of DATA.")
@click.option("--epsilon", required=True, type=float, help="The budget of this training.")
@click.option("--delta", default=0.0, show_default=True, help="Allows Gaussian noise.")
@click.option("--method", type=click.Choice(METHODS), default="histogram", show_default=True)
@click.option("--allocation", type=Shares(), help="Shares of the budget by feature.")
@click.option("--bins", type=click.IntRange(1), help="Equal bins of every numeric feature.")
@click.option(
    "--likelihood", type=click.Choice(["gaussian", "truncated"]), default="gaussian", hidden=True
)
@click.option("--table", help="The table's name, for a database URL.")
@click.option("--budget-file", help="A ledger beside the data: this training is charged to it.")
@click.option(
    "--budget-total", type=float, help="Total epsilon with which to make the ledger if it is new."
)
@click.option("--budget-total-delta", type=float, default=0.0, help="Total delta of a new ledger.")
@click.option("-o", "--output", required=True, help="The model file to write.")
@json_option
def train(
    data: str,
    path: str,
    epsilon: float,
    delta: float,
    method: Any,
    allocation: dict[str, float] | None,
    bins: int | None,
    likelihood: Any,
    table: str | None,
    budget_file: str | None,
    budget_total: float | None,
    budget_total_delta: float,
    output: str,
    as_json: bool,
) -> None:
    """Train a classifier on DATA under a promise to everyone in it.

    DATA is a CSV or Parquet file, a glob, a database URL, or spark:PATH; it is counted where it
    lies. Noise comes from the cryptographic source. With a ledger, the training is charged before
    the first noise is drawn, refused if the total would be overdrawn, and never refunded.
    """
    from discreet.central.budget import Budget, weights_of
    from discreet.central.settings import Method
    from discreet.estimators import CentralNB

    assert set(METHODS) == set(get_args(Method))
    if not Path(output).resolve().parent.is_dir():
        raise FormatError(f"{output}: its folder does not exist; make it first")
    public = read_schema(path)
    weights_of(public, allocation, 1, 1)  # what is wrong with it is said before anything is paid
    if not math.isinf(epsilon):
        Budget(epsilon, delta)
    classifier = CentralNB(
        epsilon,
        delta=delta,
        method=method,
        allocation=allocation,
        bins="auto" if bins is None else bins,
        likelihood=likelihood,
        schema=public,
    )
    with progress("Counting", "queries", as_json) as advance:
        left = None
        rows = classifier.open_source(data, table=table, progress=advance)
        if budget_file is not None:
            rows.count()  # a value that does not fit the schema is found before anything is paid
            left = _charged(
                budget_file, budget_total, budget_total_delta, f"{method} of {data}", epsilon, delta
            )
        classifier.fit_source(rows)
    write(output, classifier.model_.to_json())
    promise = classifier.guarantee_
    if as_json:
        body = {"output": output, "method": method, "guarantee": promise.to_body()}
        print_json(body | ({} if left is None else {"budget_left": left}))
        return
    click.echo(f"{output}: {method}, {len(public.features)} features", err=True)
    console().print(str(promise))
    for charge in promise.charges:
        console().print(f"  {charge.epsilon:.6g}  {charge.name}")
    if left is not None:
        click.echo(f"{budget_file}: {left:g} left", err=True)


def _charged(
    path: str, total: float | None, total_delta: float, what: str, epsilon: float, delta: float
) -> float:
    """Pay, before anything is drawn; gives what is left."""
    from discreet.ledger import Ledger

    if math.isinf(epsilon):
        raise PrivacyError("a training without privacy cannot be charged to a ledger")
    if what.startswith("global-published"):
        raise PrivacyError(
            "global-published keeps no promise, so that no ledger can account for it"
        )
    ledger = Ledger(path) if total is None else Ledger.create(path, total, total_delta)
    return float(ledger.charge(what, epsilon, delta).left[0])
