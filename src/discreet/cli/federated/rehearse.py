"""``discreet federated rehearse``: a complete round on one machine, one process per party."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.progress import get_progress_reporter
from discreet.cli.federated.setup import add_terms_options, parse_held_columns
from discreet.cli.files import make_output, write_file
from discreet.cli.output import format_example
from discreet.errors import MissingDependencyError, SchemaError, error_context
from discreet.files.atomic_writing import write_atomic

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest
    from discreet.schema.schema import Schema

__all__ = ["rehearse"]


@dataclass(frozen=True)
class _RehearsalRequest:
    """Settings of a rehearsal."""

    schema: Schema
    providers: dict[str, str]
    label: tuple[str, str] | None
    columns: tuple[str, ...]
    epsilon: float
    mode: Any
    paillier: bool
    tolerated: int
    bins: int
    moments: tuple[str, ...]
    deadline: float
    id_column: str | None


@click.command(
    epilog=format_example(
        "discreet federated rehearse schema.json --provider a=a.csv --provider b=b.csv \\",
        "    --epsilon 1 -o model.json",
        "discreet federated rehearse schema.json --provider a=a.csv --provider b=b.csv \\",
        "    --label l=labels.csv --id patient --epsilon 1 -o model.json",
    )
)
@click.argument("schema")
@click.option(
    "--provider", "providers", multiple=True, required=True, help="NAME=TABLE; repeat it."
)
@click.option("--label", help="NAME=TABLE of the label provider; makes the round vertical.")
@click.option("--columns", multiple=True, help="NAME=feature,feature where tables share features.")
@click.option("--id", "id_column", help="The column that rows are aligned by; vertical.")
@add_terms_options
@click.option("--paillier", is_flag=True, help="Paillier encryption; without it, masks.")
@click.option(
    "--deadline",
    type=click.FloatRange(1),
    default=600,
    show_default=True,
    help="Seconds for the whole round.",
)
@click.option("-o", "--output", type=make_output("model"), help="The model file to write.")
def rehearse(
    schema: str,
    providers: tuple[str, ...],
    label: str | None,
    deadline: float,
    output: str | None,
    **how: Any,
) -> None:
    """Run a whole round on this machine, with keys that are thrown away.

    Every party is a process, as it would be on its own machine. This machine sees every table,
    so the model promises nothing: use it to try out a schema, tables and settings.
    """
    try:
        from discreet.cli.federated.processes import Rehearsal
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "federated") from None
    from discreet.model import NaiveBayesModel
    from discreet.schema.schema import Schema

    reporter = get_progress_reporter()
    named_tables = [_parse_named_table(provider_text) for provider_text in providers]
    if len(dict(named_tables)) < len(named_tables):
        raise SchemaError("two providers have the same name; every party needs its own")
    request = _RehearsalRequest(
        Schema.read(schema),
        dict(named_tables),
        None if label is None else _parse_named_table(label),
        deadline=deadline,
        **how,
    )
    with tempfile.TemporaryDirectory(prefix="discreet-rehearsal-") as temporary_folder:
        folder = Path(temporary_folder)
        manifest, key_holder = _write_agreement(request, folder)
        with Rehearsal(folder, manifest) as rehearsal:
            _start_parties(rehearsal, request, manifest.is_effectively_exact, key_holder)
            rehearsal.show_until_ended(reporter)
        model = NaiveBayesModel.read(folder / "model.json")
    model = replace(model, guarantee=model.guarantee.void_if(rehearsed=True))
    if output is not None:
        write_file(output, model.to_json())
    reporter.say(str(model.guarantee))


def _parse_named_table(text: str) -> tuple[str, str]:
    party_name, separator, table_path = text.partition("=")
    if not separator or not table_path:
        raise SchemaError(f"{text!r} is not NAME=TABLE; write hospital-a=people.csv")
    return party_name, table_path


def _write_agreement(request: _RehearsalRequest, folder: Path) -> tuple[Manifest, str | None]:
    """Write temporary identities and a manifest; return it and the holder of the Paillier key."""
    from discreet.federated.agreement.identity import Identity
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import make_feature_requests
    from discreet.federated.service.routes import list_routes

    label_name = None if request.label is None else request.label[0]
    party_names = [
        *request.providers,
        *([] if label_name is None else [label_name]),
        "collector",
        "receiver",
    ]
    identities = {party_name: Identity.generate(party_name) for party_name in party_names}
    if len(identities) < len(party_names):
        raise SchemaError(
            "two parties have the same name; the collector is `collector`, the receiver `receiver`"
        )
    for party_name, own_identity in identities.items():
        write_atomic(folder / f"{party_name}.identity.json", own_identity.to_json(), private=True)
    cards = {party_name: own_identity.card for party_name, own_identity in identities.items()}
    paillier_key = None
    key_holder = label_name or ("receiver" if request.mode == "counts" else "collector")
    if request.paillier:
        from discreet.federated.crypto.paillier import generate_key

        get_progress_reporter().say("making a Paillier key")
        paillier_key = generate_key()
        write_atomic(folder / f"{key_holder}.paillier.json", paillier_key.to_json(), private=True)
        cards[key_holder] = identities[key_holder].make_card_with_key(paillier_key)
    deadline_time = datetime.now(UTC) + timedelta(seconds=request.deadline)
    manifest = Manifest(
        request.schema,
        make_feature_requests(request.schema, request.bins, request.moments),
        request.epsilon,
        tuple(cards[party_name] for party_name in request.providers),
        cards["collector"],
        cards["receiver"],
        label=None if label_name is None else cards[label_name],
        columns={} if label_name is None else _resolve_columns(request),
        rows=None if request.label is None else _count_rows(request.label[1]),
        partition="horizontal" if label_name is None else "vertical",
        mode=request.mode,
        aggregation="paillier" if request.paillier else "masks",
        tolerated=request.tolerated,
        paillier=None if paillier_key is None else paillier_key.public,
        deadline=deadline_time.isoformat(timespec="seconds"),
    )
    list_routes(manifest)
    write_file(folder / "manifest.json", manifest.to_json())
    return manifest, key_holder if request.paillier else None


def _resolve_columns(request: _RehearsalRequest) -> dict[str, tuple[str, ...]]:
    """Resolve which party holds which features: from the options, or from the tables."""
    from discreet.tables.engines import iter_ordered_batches

    if request.columns:
        return parse_held_columns(request.columns)
    columns_by_party = {}
    for party_name, table_path in request.providers.items():
        with error_context(table_path):
            column_names: Sequence[str] = next(iter(iter_ordered_batches(table_path))).schema.names
        columns_by_party[party_name] = tuple(
            feature_name for feature_name in request.schema.names if feature_name in column_names
        )
    return columns_by_party


def _count_rows(path: str) -> int:
    from discreet.tables.engines import iter_ordered_batches

    with error_context(path):
        return sum(batch.num_rows for batch in iter_ordered_batches(path))


def _start_parties(
    rehearsal: Any, request: _RehearsalRequest, is_effectively_exact: bool, key_holder: str | None
) -> None:
    """Start every party as a process, with the commands it would use on its own machine."""

    def get_key_arguments(party_name: str) -> tuple[str, ...]:
        return ("--key", f"{party_name}.paillier.json") if party_name == key_holder else ()

    rehearsal.start_collector(*get_key_arguments("collector"))
    rehearsal.start_party("receiver", "receive", *get_key_arguments("receiver"), "-o", "model.json")
    id_arguments = () if request.id_column is None else ("--id", request.id_column)
    exact_arguments = ("--unprotected",) if is_effectively_exact else ()
    for party_name, table_path in request.providers.items():
        rehearsal.start_party(
            party_name, "provide", _resolve_path(table_path), *id_arguments, *exact_arguments
        )
    if request.label is not None:
        party_name, table_path = request.label
        rehearsal.start_party(
            party_name,
            "label",
            _resolve_path(table_path),
            *id_arguments,
            *exact_arguments,
            *get_key_arguments(party_name),
        )


def _resolve_path(source: str) -> str:
    """Resolve the path of a file, because the processes run in another folder."""
    return str(Path(source).resolve()) if Path(source).exists() else source
