"""``discreet federated invite`` and ``align``: find the rows that all owners have."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from discreet.cli.federated.confirm import confirm_agreement
from discreet.cli.federated.files import (
    read_cards,
    read_identity,
    read_invitation,
    refuse_unless_resumed,
)
from discreet.cli.federated.parties import add_party_options
from discreet.cli.federated.progress import get_progress_reporter
from discreet.cli.files import OUTPUT, make_output, open_replacement, write_file
from discreet.cli.output import format_example, json_option, make_console, print_json
from discreet.errors import FormatError, MissingDependencyError, SchemaError
from discreet.files.atomic_writing import error_context

__all__ = ["align", "invite"]


@click.command(
    epilog=format_example(
        "discreet federated invite --owner l.card.json --owner a.card.json --owner b.card.json \\",
        '    --collector c.card.json --ids "patient number, 8 digits" -o invitation.json',
    )
)
@click.option(
    "--owner", "owners", multiple=True, required=True, help="Card of an owner; once for each owner."
)
@click.option("--collector", required=True, help="The collector's card.")
@click.option(
    "--ids", default="", help="Description of the ids and their spelling, for the owners."
)
@click.option(
    "--pad-to",
    type=click.IntRange(1),
    help="Pad every list to this length, to hide how long it is.",
)
@click.option(
    "--round",
    "number",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of this alignment.",
)
@click.option(
    "--deadline", type=click.FloatRange(1), help="Deadline of the alignment, in seconds from now."
)
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

    deadline_time = datetime.now(UTC) + timedelta(seconds=deadline or 0)
    invitation = Invitation(
        read_cards(owners),
        read_cards((collector,))[0],
        ids=ids,
        pad_to=pad_to,
        round=number,
        deadline="" if deadline is None else deadline_time.isoformat(timespec="seconds"),
    )
    write_file(output, invitation.to_json())
    make_console().print(f"invitation {invitation.hash.hex()}", soft_wrap=True)


@click.command(
    epilog=format_example(
        "discreet federated align invitation.json people.csv --id patient \\",
        "    --identity a.identity.json --collector https://collector.example:8443 \\",
        "    --state kept -o aligned.csv",
    )
)
@click.argument("invitation")
@click.argument("data")
@click.option("--id", "--id-column", "id_column", required=True, help="The column of ids.")
@click.option(
    "--state", required=True, help="Folder that keeps the secret and what was sent, for a restart."
)
@click.option(
    "-o",
    "--output",
    type=make_output("", resumable=True),
    required=True,
    help="The .csv or .parquet file to write.",
)
@json_option
@add_party_options
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

    Nobody learns the ids that are not common to all. If it is stopped and started again with the
    same --state, it continues where it was.
    """
    try:
        from discreet.federated.alignment.owner_program import run_owner as run_alignment
        from discreet.federated.alignment.party import format_ids
        from discreet.federated.service.collector_client import CollectorClient
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "federated") from None

    refuse_unless_resumed(output, state)
    if not output.lower().endswith((".csv", ".parquet")):
        raise FormatError(f"{output}: aligned rows go to a file that ends in .csv or .parquet")
    own_identity = read_identity(identity)
    agreement = read_invitation(invitation)
    known_cards = read_cards(known)
    agreement.require_role(own_identity.card, "owner")
    agreement.require_known_parties(own_identity.card, known_cards)
    reporter = get_progress_reporter()
    reporter.show(f"reading {data}")
    data_table = _read_table(data, id_column)
    with error_context(data):
        ids = format_ids(data_table.column(id_column).to_pylist(), agreement.max_list_ids)
    confirm_agreement(agreement, own_identity.name, yes)
    blinded_count = 0
    expected_total = len(ids) * len(agreement.owners)  # the other lists may be longer or shorter
    with CollectorClient(
        url, own_identity, agreement, authority=authority, listener=reporter
    ) as collector_client:

        def add_progress(newly_blinded: int) -> None:
            nonlocal blinded_count
            blinded_count += newly_blinded
            reporter.show("blinding ids", blinded_count, max(blinded_count + 1, expected_total))

        def write_common_rows(row_indices: list[int]) -> None:
            if row_indices:
                reporter.show(f"writing {output}")
                _write_rows(output, data_table.take(row_indices))

        common_rows = run_alignment(
            collector_client,
            ids,
            state,
            write_common_rows,
            known_cards=known_cards,
            advance=add_progress,
        )
    owner_count = len(agreement.owners)
    if not common_rows:
        raise SchemaError(
            f"none of the {len(ids):,} ids is common to all {owner_count} owners, so nothing is "
            "written; do all mean the same ids, in the same spelling?"
        )
    if as_json:
        print_json(
            {"output": output, "rows": len(common_rows), "of": len(ids), "owners": owner_count}
        )
        return
    row_counts = f"{len(common_rows):,} of {len(ids):,} rows"
    reporter.say(f"{output}: {row_counts} are common to all {owner_count} owners")


def _read_table(source: str, id_column: str) -> Any:
    """Read a complete table unchanged, CSV as text."""
    import pyarrow as pa

    from discreet.schema.cells import get_columns
    from discreet.tables.engines import iter_ordered_batches

    with error_context(source):
        batches = list(iter_ordered_batches(source))
        if not batches:
            raise SchemaError("the table has no rows")
        get_columns(dict.fromkeys(batches[0].schema.names), [id_column])
        return pa.Table.from_batches(batches)


def _write_rows(path: str, table: Any) -> None:
    """Write rows to CSV or Parquet, completely or not at all."""
    import pyarrow.parquet

    with open_replacement(path) as draft:
        if path.lower().endswith(".parquet"):
            pyarrow.parquet.write_table(table, draft)
            return
        with open(draft, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table.column_names)
            for batch in table.to_batches(max_chunksize=65_536):
                writer.writerows(
                    zip(*(column.to_pylist() for column in batch.columns), strict=True)
                )
