"""``discreet train``: a private classifier from a trusted curator's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from discreet.cli.files import output_of, write
from discreet.cli.ledgers import require_budget_file
from discreet.cli.output import example, json_option, note, print_json, progress

if TYPE_CHECKING:
    from discreet.ledger import Spending

__all__ = ["train"]

METHODS = ("histogram", "moments", "global", "global-published", "smooth", "trimmed")


class Shares(click.ParamType[dict[str, float]]):
    """``age=2,sex=1``."""

    name = "age=2,sex=1"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        """Parse names and weights."""
        if isinstance(value, dict):
            return value
        found: dict[str, float] = {}
        for part in filter(None, str(value).split(",")):
            name, _, weight = part.rpartition("=")
            try:
                found[name.strip()] = float(weight)
            except ValueError:
                self.fail(f"invalid share {part!r}; write age=2,sex=1", param, ctx)
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
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="histogram",
    show_default=True,
    help="How the noisy statistics are computed.",
)
@click.option("--allocation", type=Shares(), help="Shares of the budget by feature.")
@click.option("--bins", type=click.IntRange(1, 1024), help="Equal bins of every numeric feature.")
@click.option(
    "--likelihood", type=click.Choice(["gaussian", "truncated"]), default="gaussian", hidden=True
)
@click.option(
    "--corrections/--no-corrections",
    default=True,
    show_default=True,
    help="With enough people, part of the budget counts what the model so far gets wrong.",
)
@click.option("--table", help="The table's name, for a database URL.")
@click.option("--budget-file", help="A ledger for this data: the training is charged to it.")
@click.option(
    "--budget-total", type=float, help="Total epsilon with which to make the ledger if it is new."
)
@click.option("--budget-total-delta", type=float, help="Total delta of a new ledger.")
@click.option(
    "--void",
    is_flag=True,
    help="Charge even a void guarantee, and mark the ledger as broken.",
)
@click.option(
    "-o", "--output", type=output_of("model"), required=True, help="The model file to write."
)
@click.option(
    "--statistics",
    type=output_of("statistics"),
    help="Also write the noisy numbers, for predict --uncertainty.",
)
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
    corrections: bool,
    table: str | None,
    budget_file: str | None,
    budget_total: float | None,
    budget_total_delta: float | None,
    void: bool,
    output: str,
    statistics: str | None,
    as_json: bool,
) -> None:
    """Train a classifier on DATA under a promise to everyone in it.

    DATA is a CSV or Parquet file, a glob, a database URL, or spark:PATH; it is counted where it
    is stored. Noise comes from the cryptographic source. With a ledger, the training is charged
    before the first noise is drawn, refused if the total would be overdrawn, and never refunded.
    Trainings with a void guarantee (an inferred schema, a published method, an infinite epsilon)
    are refused, too.
    """
    from discreet.central.budget import PUBLIC, Settings
    from discreet.central.training import Method, Request, train_and_charge
    from discreet.estimation import estimate
    from discreet.ledger import Ledger
    from discreet.privacy import Account, Guarantee, rounded_up
    from discreet.randomness import CryptoRandom
    from discreet.schema import Schema
    from discreet.tables.source import TableSource

    assert set(METHODS) == set(get_args(Method))
    require_budget_file(
        budget_file, budget_total=budget_total, budget_total_delta=budget_total_delta, void=void
    )
    if budget_total is None and budget_total_delta is not None:
        raise click.UsageError(
            f"--budget-total-delta {budget_total_delta:g} is for a new ledger; give --budget-total "
            "as well."
        )
    spending: Spending | None = None
    with progress("Counting", "queries", as_json) as advance:
        public = Schema.read(path)
        settings = Settings(
            allocation,
            "auto" if bins is None else bins,
            likelihood,
            corrections=corrections,
            assumptions=() if public.inferred else (PUBLIC,),
        )
        asked: Request = {
            "epsilon": epsilon,
            "delta": delta,
            "method": method,
            "settings": settings,
        }
        rows = TableSource(data, public, table=table, progress=advance)

        def charge(promise: Guarantee) -> Account:
            nonlocal spending
            assert budget_file is not None
            ledger = Ledger(budget_file)
            if budget_total is not None:
                ledger = Ledger.create(budget_file, budget_total, budget_total_delta or 0.0)
            spending = ledger.charge(promise, f"training by {method}", who=data, void=void)
            return spending.account(ledger.path.name)

        has_ledger = budget_file is not None
        paying = charge if has_ledger else None
        released = train_and_charge(
            rows, paying, has_ledger=has_ledger, **asked, random=CryptoRandom()
        )
    write(output, estimate(released).to_json())
    if statistics is not None:
        write(statistics, released.to_json())
    promise = released.guarantee
    if as_json:
        body = {"output": output, "method": method, "guarantee": promise.to_body()}
        print_json(body | ({} if spending is None else {"budget": _state(spending)}))
        return
    costs = [f"  {rounded_up(charge.epsilon):<10} {charge.name}" for charge in promise.charges]
    lines = [str(promise), *costs]
    note(f"{output}: {method}, {len(public.features)} features")
    click.echo("\n".join(lines))
    if spending is not None:
        note(f"{budget_file}: {float(spending.left[0]):g} left")
        for reason in spending.broken:
            click.echo(
                f"{budget_file}: BROKEN: the total no longer limits what was released ({reason})",
                err=True,
            )


def _state(spending: Spending) -> dict[str, Any]:
    left = [float(one) for one in spending.left]
    return {"left": left[0], "left_delta": left[1], "broken": list(spending.broken)}
