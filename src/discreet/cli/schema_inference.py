"""``discreet schema infer``: a schema from data, for a price or without any promise."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT, write_file
from discreet.cli.ledger_options import LedgerCharge, ledger_options
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    print_json,
    print_note,
    show_progress,
)
from discreet.cli.person_options import person_options
from discreet.errors import PrivacyWarning

if TYPE_CHECKING:
    from discreet.schema.schema import Schema

__all__ = ["infer"]


class NameListType(click.ParamType[list[str]]):
    """``A,B``: names or values, separated by commas."""

    name = "A,B"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        """Parse an option."""
        if isinstance(value, list):
            return value
        return [part.strip() for part in str(value).split(",") if part.strip()]


class ColumnLineType(click.ParamType[tuple[str, Any]]):
    """``age: 0..110``: a column as in a schema, in YAML."""

    name = "'COLUMN: LINE'"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Parse an option."""
        from discreet.errors import FormatError
        from discreet.files.documents import parse_json
        from discreet.files.yaml_text import convert_yaml_to_json

        if isinstance(value, tuple):
            return value
        try:
            column = parse_json(convert_yaml_to_json(str(value), "column", keep_spelling=True))
        except FormatError:
            column = None
        if not isinstance(column, dict) or len(column) != 1:
            self.fail(f"{value!r}: write 'age: 0..110' or 'contract: [month, year]'", param, ctx)
        return next(iter(column.items()))


@click.command(
    epilog=format_example(
        "discreet schema infer people.csv --target churn --epsilon 0.1 --delta 1e-6 \\",
        "    --budget-file budget.json --budget-total 2 --budget-total-delta 1e-5 \\",
        "    --drop customer_id --classes no,yes --column 'joined: 2015-01-01..2026-12-31' \\",
        "    -o people.schema.yaml",
        "discreet schema infer people.csv --target churn -o people.schema.yaml",
    )
)
@click.argument("data")
@click.option("--target", default="", help="The column that holds the classes.")
@click.option("--epsilon", type=float, help="Price of the inference; without it, nothing is kept.")
@click.option(
    "--delta", type=float, help="With --epsilon: needed for categories and classes, such as 1e-6."
)
@click.option("--like", help="A schema, or a draft of schema new, whose open places are inferred.")
@click.option("--classes", type=NameListType(), help="All classes, where they are known.")
@click.option(
    "--column",
    "columns",
    type=ColumnLineType(),
    multiple=True,
    help="What is known of a column, as in a schema: 'age: 0..110', 'contract: [month, year]', "
    "'joined: 2015-01-01..2026-12-31 by month', 'visited: by weekday'; repeatable.",
)
@click.option("--drop", type=NameListType(), help="Columns to leave out, such as identifiers.")
@person_options
@click.option(
    "--other-people",
    is_flag=True,
    help="Nobody in DATA is in the tables that the schema is for: guarantees assume it, and do not "
    "include the price.",
)
@click.option(
    "--categorical",
    type=NameListType(),
    help="Without --epsilon: numeric columns to treat as categories.",
)
@click.option(
    "--missing-token",
    "tokens",
    multiple=True,
    help="Text that stands for a missing value, such as '?'; repeat it for several.",
)
@click.option("--table", help="The table's name, for a database URL.")
@ledger_options
@click.option("-o", "--output", type=OUTPUT, help="The file to write instead of standard output.")
@json_option
def infer(data: str, output: str | None, as_json: bool, **options: Any) -> None:
    """Infer a schema from DATA: for a price, or without any promise.

    With --epsilon, bounds of numbers, kinds of the columns of a CSV file and, with --delta,
    categories and classes are taken from noisy counts. The schema says what it cost, and every
    guarantee of a model made with it includes that. Numbers outside the bounds are clipped, and
    categories that too few people have become "other". What you know costs nothing: --classes,
    --column, or a draft that you began (--like). Of dates nothing is inferred: describe them.
    With --person one row of each is used, unless --rows-per-person says more.

    It is written with one line for each column, as YAML, or as JSON to a file that ends in .json.

    Without --epsilon, a warning on standard error lists everything that was taken from the data,
    and every guarantee that is made with the schema is void until it is replaced by what is known.
    """
    epsilon = options.pop("epsilon")
    inferred_schema, summary = (
        _infer_freely(data, as_json, options)
        if epsilon is None
        else _infer_privately(data, epsilon, as_json, options)
    )
    if output is not None:
        is_json = output.lower().endswith(".json")
        write_file(output, inferred_schema.to_json() if is_json else inferred_schema.to_yaml())
        size_text = (
            f"{len(inferred_schema.features)} features, {len(inferred_schema.classes)} classes"
        )
        print_note(f"{output}: {size_text}, {inferred_schema.digest}")
    if as_json:
        schema_body = {"output": output} if output else {"schema": inferred_schema.to_body()}
        print_json({**schema_body, "digest": inferred_schema.digest, **summary})
    elif output is None:
        click.echo(inferred_schema.to_yaml(), nl=False)


def _infer_freely(
    data: str, as_json: bool, options: dict[str, Any]
) -> tuple[Schema, dict[str, Any]]:
    """Infer without noise; warn about everything that was taken."""
    from discreet.tables.inference import infer_schema

    known_options = ("target", "categorical", "tokens", "table")
    for name, value in options.items():
        if name not in known_options and value not in (None, (), False, "error"):
            raise click.UsageError(f"--{name.replace('_', '-')} goes with --epsilon.")
    if not options["target"]:
        raise click.UsageError("Missing option '--target'.")
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always", PrivacyWarning)
        inferred_schema = infer_schema(
            data,
            options["target"],
            categorical=options["categorical"] or (),
            missing_tokens=list(options["tokens"]),
            table_name=options["table"],
        )
    messages = [
        str(warning.message)
        for warning in caught_warnings
        if issubclass(warning.category, PrivacyWarning)
    ]
    for message in messages:
        make_console(stderr=True).print(f"PrivacyWarning: {message}", style="yellow")
    return inferred_schema, {"warnings": messages, "guarantee": None}


def _infer_privately(
    data: str, epsilon: float, as_json: bool, options: dict[str, Any]
) -> tuple[Schema, dict[str, Any]]:
    """Infer with noise; say what it cost, and what could not be inferred."""
    from discreet.central.private_inference import infer_private_schema

    if options["categorical"]:
        raise click.UsageError("--categorical goes without --epsilon; give --column or --like.")
    ledger_names = ("budget_file", "budget_total", "budget_total_delta", "budget_composition")
    ledger_charge = LedgerCharge(
        **{name: options[name] for name in ledger_names},
        purpose="schema inference",
        data_source=data,
    )
    with show_progress("Counting", "queries", as_json) as report_progress:
        inference = infer_private_schema(
            data,
            options["target"],
            epsilon=epsilon,
            delta=options["delta"] or 0.0,
            charge=ledger_charge,
            table_name=options["table"],
            like=options["like"],
            classes=options["classes"],
            columns=dict(options["columns"]),
            drop=options["drop"] or (),
            person=options["person"],
            rows_per_person=options["rows_per_person"] or 1,
            missing_person=options["missing_person"],
            missing_tokens=list(options["tokens"]) or None,
            same_people=not options["other_people"],
            progress=report_progress,
        )
    if not as_json:
        click.echo(str(replace(inference.guarantee, account=None)), err=True)
        if omissions := inference.format_omissions():
            click.echo(f"{omissions[0].upper()}{omissions[1:]}.", err=True)
        ledger_charge.print_remaining()
    return inference.schema, {
        "guarantee": inference.guarantee.to_body(),
        "left_out": inference.left_out,
        **ledger_charge.to_body(),
    }
