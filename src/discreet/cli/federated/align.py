"""``discreet federated invite`` and ``align``: find the rows that all owners have."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from discreet.cli.federated.confirm import confirm
from discreet.cli.federated.files import (
    read_cards,
    read_identity,
    read_invitation,
    refuse_unless_resumed,
)
from discreet.cli.federated.parties import party
from discreet.cli.federated.telling import current
from discreet.cli.files import OUTPUT, output_of, replacing, write
from discreet.cli.output import console, example, json_option, print_json
from discreet.errors import FormatError, MissingDependencyError, SchemaError, about

__all__ = ["align", "invite"]


@click.command(
    epilog=example(
        "discreet federated invite --owner l.card.json --owner a.card.json --owner b.card.json \\",
        '    --collector c.card.json --ids "patient number, 8 digits" -o invitation.json',
    )
)
@click.option("--owner", "owners", multiple=True, required=True, help="A card; repeat it.")
@click.option("--collector", required=True, help="The collector's card.")
@click.option("--ids", default="", help="What the ids are and how they are spelt, in words.")
@click.option("--pad-to", type=click.IntRange(1), help="Fill every list up, to hide its length.")
@click.option(
    "--round",
    "number",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of this alignment.",
)
@click.option("--deadline", type=click.FloatRange(1), help="Seconds from now.")
@click.option("-o", "--output", type=OUTPUT, required=True, help="The invitation file to write.")
def invite(
    owners: tuple[str, ...],
    collector: str,
    ids: str,
    pad_to: int | None,
    number: int,
    deadline: float | None,
    output: str,
) -> None:
    """Write an invitation to align rows; each owner signs it when it takes part.

    The owners are all who hold a table of a later vertical round, the label provider included.
    """
    from discreet.federated.agreement.invitation import Invitation

    until = datetime.now(UTC) + timedelta(seconds=deadline or 0)
    made = Invitation(
        read_cards(owners),
        read_cards((collector,))[0],
        ids=ids,
        pad_to=pad_to,
        round=number,
        deadline="" if deadline is None else until.isoformat(timespec="seconds"),
    )
    write(output, made.to_json())
    console().print(f"invitation {made.hash.hex()}", soft_wrap=True)


@click.command(
    epilog=example(
        "discreet federated align invitation.json people.csv --id patient \\",
        "    --identity a.identity.json --collector https://collector.example:8443 \\",
        "    --state kept -o aligned.csv",
    )
)
@click.argument("invitation")
@click.argument("data")
@click.option("--id", "--id-column", "id_column", required=True, help="The column of ids.")
@click.option("--state", required=True, help="A folder for the secret and what was sent.")
@click.option(
    "-o",
    "--output",
    type=output_of("", resumable=True),
    required=True,
    help="A .csv or .parquet file to write.",
)
@json_option
@party
def align(
    invitation: str,
    data: str,
    id_column: str,
    state: str,
    output: str,
    as_json: bool,
    identity: str,
    url: str,
    known: tuple[str, ...],
    authority: str | None,
    yes: bool,
) -> None:
    """Sign INVITATION and write the rows of DATA whose ids all owners have, in a common order.

    Nobody learns the ids that are not common to all. Killed and started again with the same
    --state, it goes on where it was.
    """
    try:
        from discreet.federated.alignment.party import texts_of
        from discreet.federated.alignment.program import align as aligned
        from discreet.federated.service.connection import Line
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "federated") from None

    refuse_unless_resumed(output, state)
    if not output.lower().endswith((".csv", ".parquet")):
        raise FormatError(f"{output}: aligned rows go to a file that ends in .csv or .parquet")
    own, agreed, cards = read_identity(identity), read_invitation(invitation), read_cards(known)
    agreed.require_part(own.card, "owner")
    agreed.require_known(own.card, cards)
    tell = current()
    tell.show(f"reading {data}")
    table = _table(data, id_column)
    with about(data):
        ids = texts_of(table.column(id_column).to_pylist(), agreed.most)
    confirm(agreed, own.name, yes)
    whole, done = len(ids) * len(agreed.owners), 0  # the other lists may be longer or shorter
    with Line(url, own, agreed, authority=authority, tell=tell) as line:

        def advance(more: int) -> None:
            nonlocal done
            done += more
            tell.show("blinding ids", done, max(done + 1, whole))

        def keep(rows: list[int]) -> None:
            if rows:
                tell.show(f"writing {output}")
                _write(output, table.take(rows))

        rows = aligned(line, ids, state, keep, known=cards, advance=advance)
    owners = len(agreed.owners)
    if not rows:
        raise SchemaError(
            f"none of the {len(ids):,} ids is common to all {owners} owners, so nothing is "
            "written; do all mean the same ids, in the same spelling?"
        )
    if as_json:
        print_json({"output": output, "rows": len(rows), "of": len(ids), "owners": owners})
        return
    line_of = f"{output}: {len(rows):,} of {len(ids):,} rows are common to all {owners} owners"
    tell.say(line_of)


def _table(source: str, id_column: str) -> Any:
    """Read a complete table unchanged, CSV as text."""
    import pyarrow as pa

    from discreet.encoding import columns_of
    from discreet.tables.engines import ordered_batches

    with about(source):
        parts = list(ordered_batches(source))
        if not parts:
            raise SchemaError("the table has no rows")
        columns_of(dict.fromkeys(parts[0].schema.names), [id_column])
        return pa.Table.from_batches(parts)


def _write(path: str, table: Any) -> None:
    """Write rows to CSV or Parquet, completely or not at all."""
    import pyarrow.parquet

    with replacing(path) as beside:
        if path.lower().endswith(".parquet"):
            pyarrow.parquet.write_table(table, beside)
            return
        with open(beside, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table.column_names)
            for batch in table.to_batches(max_chunksize=65_536):
                writer.writerows(zip(*(c.to_pylist() for c in batch.columns), strict=True))
