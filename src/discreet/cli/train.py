"""``discreet train``: a private classifier from a trusted curator's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click

from discreet.cli.files import make_output, write_file
from discreet.cli.ledger_options import LedgerCharge, ledger_options
from discreet.cli.output import format_example, json_option, print_json, print_note, show_progress
from discreet.cli.parameter_types import NamedNumbersType
from discreet.cli.person_options import person_options, warn_of_repeated_ids

if TYPE_CHECKING:
    from discreet.tables.contributions import MissingPerson

__all__ = ["train"]

METHODS = ("histogram", "moments", "global", "global-published", "smooth", "trimmed")


@click.command(
    epilog=format_example(
        "discreet train people.csv --schema people.schema.json --epsilon 1 -o model.json",
        "discreet train 'data/*.parquet' --schema s.json --epsilon 0.5 \\",
        "    --budget-file budget.json --budget-total 3 -o model.json",
        "discreet train people.csv --schema s.json --epsilon 1 --delta 1e-6 -o model.json",
        "discreet train postgres://user@host/db --table t --schema s.json --epsilon 1 -o m.json",
        "discreet train visits.csv --schema s.json --epsilon 1 --person patient_id \\",
        "    --rows-per-person 3 -o model.json",
    )
)
@click.argument("data")
@click.option(
    "--schema", "path", required=True, help="Schema file: the public description of DATA."
)
@click.option(
    "--epsilon",
    required=True,
    type=float,
    help="Privacy budget of this training; smaller is more private.",
)
@click.option(
    "--delta",
    default=0.0,
    show_default=True,
    help="Delta of the guarantee: above 0 the promise is weaker, and from about five features on "
    "there is less noise. 1e-6 is far below one divided by the people of most tables.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="histogram",
    show_default=True,
    help="How the noisy statistics are computed.",
)
@click.option(
    "--allocation",
    type=NamedNumbersType("age=2,sex=1", "share"),
    help="Weights by which features share the budget.",
)
@click.option(
    "--bins", type=click.IntRange(1, 1024), help="Number of equal bins of every numeric feature."
)
@click.option(
    "--likelihood", type=click.Choice(["gaussian", "truncated"]), default="gaussian", hidden=True
)
@click.option(
    "--corrections/--no-corrections",
    default=True,
    show_default=True,
    help="With enough people, spend part of the budget on correcting what the model gets wrong.",
)
@click.option(
    "--selection/--no-selection",
    default=True,
    show_default=True,
    help="Spend part of the budget on choosing features and how they are scored; without it there "
    "are no corrections either.",
)
@person_options
@click.option(
    "--person-weighting/--no-person-weighting",
    default=True,
    show_default=True,
    help="Let the rows of a person weigh 1 together, with the noise of one row, or 1 each, with "
    "noise for all of them.",
)
@click.option("--table", help="The table's name, for a database URL.")
@ledger_options
@click.option(
    "--void",
    is_flag=True,
    help="Charge even a void guarantee, and mark the ledger as broken.",
)
@click.option(
    "-o", "--output", type=make_output("model"), required=True, help="The model file to write."
)
@click.option(
    "--statistics",
    type=make_output("statistics"),
    help="Also write the noisy statistics of the model, for predict --uncertainty.",
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
    selection: bool,
    person: str | None,
    rows_per_person: int | None,
    missing_person: MissingPerson,
    person_weighting: bool,
    table: str | None,
    void: bool,
    output: str,
    statistics: str | None,
    as_json: bool,
    **ledger: Any,
) -> None:
    """Train a classifier on DATA with a privacy guarantee for everyone in it.

    DATA is a CSV or Parquet file, a glob, a database URL, or spark:PATH; it is counted where it is
    stored. Noise comes from a cryptographic random source. With a ledger, the training is charged
    before the first noise is drawn, refused if the total would be overdrawn, and never refunded.
    Trainings with a void guarantee (an inferred schema, a published method, an infinite epsilon)
    are refused, too.
    """
    from discreet.central import training
    from discreet.central.budget import CentralSettings, list_schema_assumptions
    from discreet.estimation import estimate
    from discreet.privacy.guarantee import format_rounded_up
    from discreet.randomness import CryptoRandom
    from discreet.schema.schema import Schema
    from discreet.tables.contributions import ContributionBound
    from discreet.tables.source import TableSource
    from discreet.tables.source_rows import source_row_context

    assert set(METHODS) == set(get_args(training.Method))
    ledger_charge = LedgerCharge(
        **ledger, purpose=f"training by {method}", data_source=data, void=void
    )
    has_ledger = ledger_charge.budget_file is not None
    with show_progress("Counting", "queries", as_json) as report_progress:
        public_schema = Schema.read(path)
        central_settings = CentralSettings(
            allocation,
            "auto" if bins is None else bins,
            likelihood,
            selection=selection,
            corrections=corrections,
            assumptions=list_schema_assumptions(public_schema),
        )
        training_request: training.TrainingRequest = {
            "epsilon": epsilon,
            "delta": delta,
            "method": method,
            "settings": central_settings,
        }
        bound = ContributionBound.from_options(
            person, rows_per_person, missing_person, person_weighting
        )
        training.validate_request(public_schema, **training_request, bound=bound)
        table_source = TableSource(
            data, public_schema, table=table, progress=report_progress, bound=bound
        )
        warn_of_repeated_ids(data, public_schema, bound, table)
        with source_row_context(data, public_schema):
            released_statistics = training.train(
                table_source,
                **training_request,
                random=CryptoRandom(),
                charge=ledger_charge if has_ledger else None,
                has_ledger=has_ledger,
            )
    write_file(output, estimate(released_statistics).to_json())
    if statistics is not None:
        write_file(statistics, released_statistics.to_json())
    guarantee = released_statistics.guarantee
    if as_json:
        body = {"output": output, "method": method, "guarantee": guarantee.to_body()}
        print_json({**body, **ledger_charge.to_body()})
        return
    cost_lines = [
        f"  {format_rounded_up(budget_charge.epsilon):<10} {budget_charge.name}"
        for budget_charge in guarantee.charges
    ]
    lines = [str(guarantee), *cost_lines]
    print_note(f"{output}: {method}, {len(public_schema.features)} features")
    click.echo("\n".join(lines))
    ledger_charge.print_remaining()
