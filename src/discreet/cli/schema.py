"""``discreet schema new``, ``infer``, ``check`` and ``show``: the public description of a table."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import CommandGroup
from discreet.cli.files import OUTPUT, write_file
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    make_table,
    print_json,
    print_note,
    show_progress,
)
from discreet.cli.schema_inference import infer
from discreet.cli.schema_prompts import prompt_for_schema
from discreet.errors import DiscreetError, SchemaError

if TYPE_CHECKING:
    from discreet.schema.drafting import SchemaDraft
    from discreet.schema.inference_cost import InferenceCost
    from discreet.schema.schema import Feature, Schema

__all__ = ["schema"]


@click.group(cls=CommandGroup, epilog=format_example("discreet schema show people.schema.json"))
def schema() -> None:
    """Start, infer, check and show the public description of a table."""


@schema.command(
    epilog=format_example(
        "discreet schema new people.csv --target missed_payment -o people.schema.yaml",
        "discreet schema new postgres://host/db --table people > people.schema.yaml",
    )
)
@click.argument("data")
@click.option("--target", default="", help="The column that holds the classes.")
@click.option("--table", help="The table's name, for a database URL.")
@click.option(
    "--prompt/--no-prompt",
    default=None,
    help="Ask for what is missing, or not; the default is to ask on a terminal.",
)
@click.option("-o", "--output", type=OUTPUT, help="The file to write instead of standard output.")
def new(data: str, target: str, table: str | None, prompt: bool | None, output: str | None) -> None:
    """Start the schema of DATA from the names and types of its columns alone.

    No value is read, only the header of a CSV file, or the names and types of the columns of
    Parquet files and databases. On a terminal, bounds, categories and classes are asked for;
    elsewhere they are left open in a commented YAML file, for somebody who knows them without
    looking at the data. Ctrl-C ends the questions; the answers so far are written, and the rest is
    left open.
    """
    from discreet.schema.drafting import SchemaDraft

    draft = SchemaDraft.from_source(data, target, table)
    is_prompting = sys.stdin.isatty() and sys.stderr.isatty() if prompt is None else prompt
    try:
        for draft_state in prompt_for_schema(draft) if is_prompting else ():
            draft = draft_state
    except click.Abort:
        click.echo(err=True)  # the line of the question
        print_note("Stopped; what was answered is kept")
        raise
    finally:
        _write_draft(draft, output)


def _write_draft(draft: SchemaDraft, output: str | None) -> None:
    """Write the draft, and print how many places are open."""
    if output is None:
        click.echo(draft.to_yaml(), nl=False)
    else:
        write_file(output, draft.to_yaml())
        print_note(f"{output}: {len(draft.columns)} columns")
    if draft.open_fields:
        open_places = f"{len(draft.open_fields)} places to fill in"
        print_note(f"{open_places}, then: discreet schema check {output or 'FILE'}")


schema.add_command(infer)


@schema.command(epilog=format_example("discreet schema check people.schema.json people.csv"))
@click.argument("path", metavar="SCHEMA")
@click.argument("data", required=False)
@json_option
def check(path: str, data: str | None, as_json: bool) -> None:
    """Check a SCHEMA file and, if DATA is given, whether DATA fits it.

    For DATA, the exact number of rows in each class is printed: treat it as confidential.
    """
    from discreet.schema.schema import Schema, format_value

    public_schema = Schema.read(path)
    check_result: dict[str, Any] = {
        "schema": path,
        "digest": public_schema.digest,
        "features": len(public_schema.features),
        "classes": [format_value(value) for value in public_schema.classes],
    }
    if data is not None:
        class_totals, problems = _count_rows(data, public_schema)
        check_result |= {
            "data": data,
            "fits": not problems,
            "problems": problems,
            "by_class": class_totals,
        }
    if as_json:
        print_json(check_result)
    if check_result.get("problems"):
        raise SchemaError(
            f"{data} does not fit {path}: {_format_problems(check_result['problems'])}"
        )
    if as_json:
        return
    click.echo(
        f"{path}: {check_result['features']} features, {len(check_result['classes'])} classes"
    )
    click.echo(public_schema.digest)
    if data is not None:
        click.echo(f"{data}: fits, {sum(check_result['by_class'].values()):,} rows")
        for class_name, row_count in check_result["by_class"].items():
            click.echo(f"  {public_schema.target} = {class_name}: {row_count:,}")


def _count_rows(data: str, public_schema: Schema) -> tuple[dict[str, int], list[str]]:
    """Count the rows by class; return the counts, or every problem found."""
    from discreet.schema.schema import format_value
    from discreet.tables import count

    with show_progress("counting", "queries") as report_progress:
        try:
            class_totals = count(data, public_schema, progress=report_progress).totals
            class_names = [format_value(value) for value in public_schema.classes]
            return dict(zip(class_names, class_totals.tolist(), strict=True)), []
        except SchemaError as error:
            problems = [str(error)]
    # counting stops at the first problem: check each feature alone
    with show_progress("checking", "features") as report_progress:
        for position, feature in enumerate(public_schema.features):
            report_progress(position, len(public_schema.features))
            try:
                count(data, replace(public_schema, features=(feature,), inferred=False))
            except DiscreetError as error:
                if str(error) not in problems:
                    problems.append(str(error))
    return {}, problems


def _format_problems(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return "; ".join(f"({number}) {problem}" for number, problem in enumerate(problems, 1))


@schema.command(epilog=format_example("discreet schema show people.schema.json"))
@click.argument("path", metavar="SCHEMA")
@json_option
def show(path: str, as_json: bool) -> None:
    """Print a SCHEMA file in a readable form."""
    from discreet.schema.schema import Schema, format_value

    public_schema = Schema.read(path)
    if as_json:
        print_json({**public_schema.to_body(), "digest": public_schema.digest})
        return
    printer = make_console()
    feature_table = make_table("", "feature", "kind", "values or bounds", ">cells", "optional")
    for feature in public_schema.features:
        feature_kind, domain, cell_count = _describe_feature(feature, public_schema)
        feature_table.add_row(
            feature.name, feature_kind, domain, cell_count, "yes" if feature.optional else "no"
        )
    printer.print(feature_table)
    class_list = ", ".join(format_value(value) for value in public_schema.classes)
    printer.print(f"target     {public_schema.target}: {class_list}")
    token_list = ", ".join(map(repr, public_schema.missing_tokens))
    spellings = f", also spelt {token_list}" if token_list else ""
    printer.print(f"missing    {public_schema.missing}{spellings}")
    printer.print(f"outliers   {public_schema.outliers}")
    printer.print(f"unseen     {public_schema.unseen}")
    if public_schema.inference is not None:
        printer.print(f"inferred   {_describe_inference(public_schema.inference)}")
    printer.print(f"digest     {public_schema.digest}", soft_wrap=True)


def _describe_inference(cost: InferenceCost) -> str:
    """Describe what inferring the schema cost."""
    from discreet.privacy.guarantee import format_inference_cost

    when_text = f" on {cost.charged[:10]}" if cost.charged else ""
    people_text = "every guarantee includes it" if cost.same_people else "from other people"
    void_text = "; SIMULATED with a seed, which promises nothing" if cost.simulated else ""
    return (
        f"for {format_inference_cost(cost)}{when_text}, about {cost.unit}; {people_text}{void_text}"
    )


def _describe_feature(feature: Feature, public_schema: Schema) -> tuple[str, str, str]:
    """Describe the kind, domain and number of cells of a feature."""
    from discreet.schema.cells import Cells
    from discreet.schema.dates import Date, DatePart
    from discreet.schema.schema import Categorical, format_value

    if isinstance(feature, Categorical):
        value_texts = [format_value(value) for value in feature.values]
        omission_note = f", … ({len(value_texts)} values)" if len(value_texts) > 12 else ""
        cell_count = Cells.from_schema(public_schema, feature.name).size
        kind = f"date by {feature.by}" if isinstance(feature, DatePart) else "categorical"
        return kind, ", ".join(value_texts[:12]) + omission_note, str(cell_count)
    number_kind = "whole number" if feature.integer else "number"
    if isinstance(feature, Date):
        number_kind = f"date by {feature.by}"
    lower, upper = feature.format_bound(feature.lower), feature.format_bound(feature.upper)
    return number_kind, f"{lower} to {upper}" if feature.is_bounded else "no bounds", "bins"
