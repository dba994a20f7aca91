"""``discreet schema new``, ``infer``, ``check`` and ``show``: the public description of a table."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import Commands
from discreet.cli.drafting import ask_for_rest
from discreet.cli.files import OUTPUT, write
from discreet.cli.output import console, example, json_option, note, print_json, progress, table
from discreet.errors import DiscreetError, PrivacyWarning, SchemaError

if TYPE_CHECKING:
    from discreet.drafting import SchemaDraft
    from discreet.schema import Feature, Schema

__all__ = ["schema"]


@click.group(
    cls=Commands,
    epilog=example(
        "discreet schema show people.schema.json",
    ),
)
def schema() -> None:
    """Begin, infer, check and show the public description of a table."""


@schema.command(
    epilog=example(
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
    help="Ask for what is missing; the default on a terminal.",
)
@click.option("-o", "--output", type=OUTPUT, help="A new file, instead of standard output.")
def new(data: str, target: str, table: str | None, prompt: bool | None, output: str | None) -> None:
    """Begin the schema of DATA from the names and types of its columns alone.

    No value is read: of a CSV file the header, of Parquet and databases the types as well. On a
    terminal, bounds, categories and classes are asked for; elsewhere they are left open in a
    commented YAML file, for somebody who knows them without looking at the data. Ctrl-C ends the
    questions: what was answered is written, and the rest is left open.
    """
    from discreet.drafting import SchemaDraft

    draft = SchemaDraft.of_source(data, target, table)
    asking = sys.stdin.isatty() and sys.stderr.isatty() if prompt is None else prompt
    try:
        for state in ask_for_rest(draft) if asking else ():
            draft = state
    except click.Abort:
        click.echo(err=True)  # the line of the question
        note("Stopped; what was answered is kept")
        raise
    finally:
        _write_draft(draft, output)


def _write_draft(draft: SchemaDraft, output: str | None) -> None:
    """Write the draft, and print how many places are open."""
    if output is None:
        click.echo(draft.to_yaml(), nl=False)
    else:
        write(output, draft.to_yaml())
        note(f"{output}: {len(draft.columns)} columns")
    if draft.open:
        left = f"{len(draft.open)} places to fill in"
        note(f"{left}, then: discreet schema check {output or 'FILE'}")


@schema.command(
    epilog=example(
        "discreet schema infer people.csv --target missed_payment -o people.schema.json",
    )
)
@click.argument("data")
@click.option("--target", required=True, help="The column that holds the classes.")
@click.option(
    "--categorical",
    multiple=True,
    metavar="A,B",
    help="Columns of numbers that are categories; separate several by commas.",
)
@click.option(
    "--missing-token", "tokens", multiple=True, help="A spelling of missing, such as '?'."
)
@click.option("-o", "--output", type=OUTPUT, help="The file to write instead of standard output.")
def infer(
    data: str,
    target: str,
    categorical: tuple[str, ...],
    tokens: tuple[str, ...],
    output: str | None,
) -> None:
    """Infer a schema from DATA, and list everything that was taken from the data.

    What a schema says is public. A warning on standard error names everything that now comes
    from private data: replace it by what you knew before you looked.
    """
    from discreet.tables.inference import infer_schema

    names = [name.strip() for part in categorical for name in part.split(",") if name.strip()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyWarning)
        found = infer_schema(data, target, categorical=names, missing_tokens=list(tokens))
    for warning in caught:
        if issubclass(warning.category, PrivacyWarning):
            console(stderr=True).print(f"PrivacyWarning: {warning.message}", style="yellow")
    if output is None:
        click.echo(found.to_json(), nl=False)
    else:
        write(output, found.to_json())
        counts = f"{len(found.features)} features, {len(found.classes)} classes"
        note(f"{output}: {counts}, {found.digest}")


@schema.command(
    epilog=example(
        "discreet schema check people.schema.json people.csv",
    )
)
@click.argument("path", metavar="SCHEMA")
@click.argument("data", required=False)
@json_option
def check(path: str, data: str | None, as_json: bool) -> None:
    """Check a SCHEMA file, and whether DATA fits it if that is given.

    The numbers of rows by class that are printed for DATA are private: they are exact.
    """
    from discreet.schema import Schema, text_of

    public = Schema.read(path)
    body: dict[str, Any] = {
        "schema": path,
        "digest": public.digest,
        "features": len(public.features),
        "classes": [text_of(value) for value in public.classes],
    }
    if data is not None:
        totals, problems = _counted(data, public)
        body |= {"data": data, "fits": not problems, "problems": problems, "by_class": totals}
    if as_json:
        print_json(body)
    if body.get("problems"):
        raise SchemaError(f"{data} does not fit {path}: {_listed(body['problems'])}")
    if as_json:
        return
    click.echo(f"{path}: {body['features']} features, {len(body['classes'])} classes")
    click.echo(public.digest)
    if data is not None:
        click.echo(f"{data}: fits, {sum(body['by_class'].values()):,} rows")
        for name, number in body["by_class"].items():
            click.echo(f"  {public.target} = {name}: {number:,}")


def _counted(data: str, public: Schema) -> tuple[dict[str, int], list[str]]:
    """Count the rows by class; return the counts, or every problem found."""
    from discreet.schema import Schema, text_of
    from discreet.tables import count

    with progress("counting", "queries") as advance:
        try:
            totals = count(data, public, progress=advance).totals
            names = [text_of(value) for value in public.classes]
            return dict(zip(names, totals.tolist(), strict=True)), []
        except SchemaError as error:
            problems = [str(error)]
    for feature in public.features:  # counting stops at the first problem: check each feature alone
        options = (public.missing, public.outliers, public.unseen, public.missing_tokens)
        alone = Schema([feature], public.target, public.classes, *options)
        try:
            count(data, alone)
        except DiscreetError as error:
            if str(error) not in problems:
                problems.append(str(error))
    return {}, problems


def _listed(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    return "; ".join(f"({number}) {one}" for number, one in enumerate(problems, 1))


@schema.command(
    epilog=example(
        "discreet schema show people.schema.json",
    )
)
@click.argument("path", metavar="SCHEMA")
@json_option
def show(path: str, as_json: bool) -> None:
    """Print a SCHEMA file for people."""
    from discreet.schema import Schema, text_of

    public = Schema.read(path)
    if as_json:
        print_json({**public.to_body(), "digest": public.digest})
        return
    printer = console()
    shown = table("", "feature", "kind", "values or bounds", ">cells", "optional")
    for feature in public.features:
        kind, domain, cells = _described(feature, public)
        shown.add_row(feature.name, kind, domain, cells, "yes" if feature.optional else "no")
    printer.print(shown)
    classes = ", ".join(text_of(value) for value in public.classes)
    printer.print(f"target     {public.target}: {classes}")
    tokens = "".join(f", also spelt {token!r}" for token in public.missing_tokens)
    printer.print(f"missing    {public.missing}{tokens}")
    printer.print(f"outliers   {public.outliers}")
    printer.print(f"unseen     {public.unseen}")
    printer.print(f"digest     {public.digest}", soft_wrap=True)


def _described(feature: Feature, public: Schema) -> tuple[str, str, str]:
    """Describe the kind, domain and number of cells of a feature."""
    from discreet.encoding import Cells
    from discreet.schema import Categorical, text_of

    if isinstance(feature, Categorical):
        values = [text_of(value) for value in feature.values]
        more = f", … ({len(values)} values)" if len(values) > 12 else ""
        cells = Cells.of(public, feature.name).size
        return "categorical", ", ".join(values[:12]) + more, str(cells)
    kind = "whole number" if feature.integer else "number"
    bounds = f"{feature.lower:g} to {feature.upper:g}" if feature.bounded else "no bounds"
    return kind, bounds, "bins"
