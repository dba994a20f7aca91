"""``discreet datasets list`` and ``fetch``: the tables of the benchmarks, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from discreet.cli import Commands
from discreet.cli.files import OUTPUT_FOLDER, folder, write
from discreet.cli.output import console, example, json_option, note, print_json, table

if TYPE_CHECKING:
    from discreet.datasets import Dataset
    from discreet.schema import Schema

__all__ = ["datasets"]


@click.group(
    cls=Commands,
    epilog=example(
        "discreet datasets list",
    ),
)
def datasets() -> None:
    """List and fetch the benchmark tables."""


@datasets.command(
    "list",
    epilog=example(
        "discreet datasets list --json",
    ),
)
@json_option
def list_(as_json: bool) -> None:
    """List the tables: their size, and where they would come from."""
    rows = _listed()
    if as_json:
        print_json({"datasets": rows})
        return
    shown = table("", "name", ">rows", ">features", ">classes", "comes from")
    for row in rows:
        count = "any" if row["rows"] is None else f"{row['rows']:,}"
        features = str(row["features"])
        if row["categorical"] is not None:
            features = f"{row['categorical']} cat + {row['numeric']} num"
        source = row["source"].split(" ")[0]
        shown.add_row(row["name"], count, features, str(row["classes"]), source)
    console().print(shown)


def _listed() -> list[dict[str, Any]]:
    from discreet.datasets import MORTGAGE_SCHEMA, available, balance_scale, folder, mortgage_table
    from discreet.datasets.benchmarks import OPENML
    from discreet.schema import Schema

    generated = {"balance_scale": balance_scale(), "mortgage_table": mortgage_table()}
    rows = [
        _row("mortgage", None, MORTGAGE_SCHEMA, "generated"),
        _row("mortgage_table", 10, generated["mortgage_table"].schema, "bundled"),
    ]
    place = folder()
    for name, entry in OPENML.items():
        if place is not None and available(name) and (place / f"{name}.json").is_file():
            schema = Schema.read(place / f"{name}.json")
            rows.append(_row(name, entry.rows, schema, "DISCREET_DATA"))
        elif name in generated:
            rows.append(_row(name, entry.rows, generated[name].schema, "generated"))
        else:
            source = f"OpenML {entry.name}, version {entry.version}"
            unknown = {"categorical": None, "numeric": None}
            size = {"name": name, "rows": entry.rows, "features": entry.features}
            rows.append({**size, **unknown, "classes": entry.classes, "source": source})
    return rows


def _row(name: str, rows: int | None, schema: Schema, source: str) -> dict[str, Any]:
    from discreet.schema import Categorical

    categorical = sum(isinstance(feature, Categorical) for feature in schema.features)
    return {
        "name": name,
        "rows": rows,
        "features": len(schema.features),
        "categorical": categorical,
        "numeric": len(schema.features) - categorical,
        "classes": len(schema.classes),
        "source": source,
    }


@datasets.command(
    epilog=example(
        "discreet datasets fetch mortgage -o data",
    )
)
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FOLDER,
    default=".",
    show_default=True,
    help="The folder to write to.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=20_000,
    show_default=True,
    help="People in the mortgage population.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the mortgage population.",
)
@json_option
def fetch(name: str, output: str, rows: int, seed: int, as_json: bool) -> None:
    """Write a table as NAME.csv and NAME.schema.json; files that are the same already stay.

    balance_scale, mortgage and mortgage_table need no network; the others are read from the
    folder that DISCREET_DATA names, or fetched from OpenML.
    """
    dataset = _loaded(name, rows, seed)
    place = folder(output)
    data, schema = place / f"{name}.csv", place / f"{name}.schema.json"
    write(data, dataset.frame.to_csv(index=False, lineterminator="\n"))
    write(schema, dataset.schema.to_json())
    if as_json:
        facts = {"name": name, "rows": len(dataset), "source": dataset.source}
        print_json({**facts, "data": str(data), "schema": str(schema)})
    else:
        note(f"{data}: {len(dataset):,} rows ({dataset.source})")
        note(f"{schema}: {len(dataset.schema.features)} features")


def _loaded(name: str, rows: int, seed: int) -> Dataset:
    from discreet.datasets import load, mortgage, mortgage_table

    if name == "mortgage":
        return mortgage(rows, seed)
    return mortgage_table() if name == "mortgage_table" else load(name)
