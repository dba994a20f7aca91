"""``discreet datasets list`` and ``fetch``: the tables of the benchmarks, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from discreet.cli import CommandGroup
from discreet.cli.files import OUTPUT_FOLDER, make_folder, write_file
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    make_table,
    print_json,
    print_note,
)

if TYPE_CHECKING:
    from discreet.datasets import Dataset
    from discreet.schema.schema import Schema

__all__ = ["datasets"]


@click.group(cls=CommandGroup, epilog=format_example("discreet datasets list"))
def datasets() -> None:
    """List and fetch the benchmark tables."""


@datasets.command("list", epilog=format_example("discreet datasets list --json"))
@json_option
def list_(as_json: bool) -> None:
    """List the tables, their size and where they come from."""
    dataset_rows = _list_tables()
    if as_json:
        print_json({"datasets": dataset_rows})
        return
    dataset_table = make_table("", "name", ">rows", ">features", ">classes", "comes from")
    for dataset_row in dataset_rows:
        row_count = "any" if dataset_row["rows"] is None else f"{dataset_row['rows']:,}"
        feature_text = str(dataset_row["features"])
        if dataset_row["categorical"] is not None:
            feature_text = f"{dataset_row['categorical']} cat + {dataset_row['numeric']} num"
        source_name = dataset_row["source"].split(" ")[0]
        dataset_table.add_row(
            dataset_row["name"], row_count, feature_text, str(dataset_row["classes"]), source_name
        )
    make_console().print(dataset_table)


def _list_tables() -> list[dict[str, Any]]:
    from discreet.datasets import (
        MORTGAGE_SCHEMA,
        VISITS_SCHEMA,
        get_folder,
        is_available,
        make_balance_scale,
        make_mortgage_table,
    )
    from discreet.datasets.benchmarks import OPENML_TABLES
    from discreet.schema.schema import Schema

    generated_datasets = {
        "balance_scale": make_balance_scale(),
        "mortgage_table": make_mortgage_table(),
    }
    dataset_rows = [
        _make_row("mortgage", None, MORTGAGE_SCHEMA, "generated"),
        _make_row("mortgage_table", 10, generated_datasets["mortgage_table"].schema, "bundled"),
        _make_row("visits", None, VISITS_SCHEMA, "generated"),
    ]
    data_folder = get_folder()
    for dataset_name, openml_entry in OPENML_TABLES.items():
        row_count = openml_entry.rows
        schema_path = None if data_folder is None else data_folder / f"{dataset_name}.json"
        if schema_path is not None and is_available(dataset_name) and schema_path.is_file():
            schema = Schema.read(schema_path)
            dataset_rows.append(_make_row(dataset_name, row_count, schema, "DISCREET_DATA"))
        elif dataset_name in generated_datasets:
            schema = generated_datasets[dataset_name].schema
            dataset_rows.append(_make_row(dataset_name, row_count, schema, "generated"))
        else:
            dataset_rows.append(
                {
                    "name": dataset_name,
                    "rows": row_count,
                    "features": openml_entry.features,
                    "categorical": None,
                    "numeric": None,
                    "classes": openml_entry.classes,
                    "source": f"OpenML {openml_entry.name}, version {openml_entry.version}",
                }
            )
    return dataset_rows


def _make_row(name: str, row_count: int | None, schema: Schema, source: str) -> dict[str, Any]:
    from discreet.schema.schema import Categorical

    categorical_count = sum(isinstance(feature, Categorical) for feature in schema.features)
    return {
        "name": name,
        "rows": row_count,
        "features": len(schema.features),
        "categorical": categorical_count,
        "numeric": len(schema.features) - categorical_count,
        "classes": len(schema.classes),
        "source": source,
    }


@datasets.command(epilog=format_example("discreet datasets fetch mortgage -o data"))
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
    help="Number of people of mortgage, of patients of visits.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of mortgage and visits.",
)
@json_option
def fetch(name: str, output: str, rows: int, seed: int, as_json: bool) -> None:
    """Write a table as NAME.csv and NAME.schema.json; identical files are left as they are.

    balance_scale, mortgage, mortgage_table and visits (several rows per patient, with identifiers
    and times) need no network; the others are read from the folder that DISCREET_DATA names, or
    fetched from OpenML.
    """
    dataset = _load_dataset(name, rows, seed)
    out_folder = make_folder(output)
    data_path, schema_path = out_folder / f"{name}.csv", out_folder / f"{name}.schema.json"
    write_file(data_path, dataset.frame.to_csv(index=False, lineterminator="\n"))
    write_file(schema_path, dataset.schema.to_json())
    if as_json:
        summary = {"name": name, "rows": len(dataset), "source": dataset.source}
        print_json({**summary, "data": str(data_path), "schema": str(schema_path)})
    else:
        print_note(f"{data_path}: {len(dataset):,} rows ({dataset.source})")
        print_note(f"{schema_path}: {len(dataset.schema.features)} features")


def _load_dataset(name: str, rows: int, seed: int) -> Dataset:
    from discreet.datasets import load, make_mortgage, make_mortgage_table, make_visits

    if name in ("mortgage", "visits"):
        return (make_mortgage if name == "mortgage" else make_visits)(rows, seed)
    return make_mortgage_table() if name == "mortgage_table" else load(name)
