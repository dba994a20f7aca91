"""``discreet federated rehearse``: a complete round on one machine, one process per party."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.setup import held_columns, terms_options
from discreet.cli.federated.telling import current
from discreet.cli.files import output_of, write
from discreet.cli.output import example
from discreet.documents import write_atomic
from discreet.errors import MissingDependencyError, SchemaError, about

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest
    from discreet.schema import Schema

__all__ = ["rehearse"]


@dataclass(frozen=True)
class _Asked:
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
    epilog=example(
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
@terms_options
@click.option("--paillier", is_flag=True, help="Paillier encryption; without it, masks.")
@click.option(
    "--deadline",
    type=click.FloatRange(1),
    default=600,
    show_default=True,
    help="Seconds for the whole round.",
)
@click.option("-o", "--output", type=output_of("model"), help="The model file to write.")
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
    from discreet.schema import Schema

    tell = current()
    named = [_named(one) for one in providers]
    if len(dict(named)) < len(named):
        raise SchemaError("two providers have the same name; every party needs its own")
    asked = _Asked(
        Schema.read(schema),
        dict(named),
        None if label is None else _named(label),
        deadline=deadline,
        **how,
    )
    with tempfile.TemporaryDirectory(prefix="discreet-rehearsal-") as place:
        folder = Path(place)
        manifest, secret = _agreed(asked, folder)
        with Rehearsal(folder, manifest) as parties:
            _start(parties, asked, manifest.bare, secret)
            parties.watch(tell)
        model = NaiveBayesModel.read(folder / "model.json")
    model = replace(model, guarantee=model.guarantee.under(rehearsed=True))
    if output is not None:
        write(output, model.to_json())
    tell.say(str(model.guarantee))


def _named(text: str) -> tuple[str, str]:
    name, found, path = text.partition("=")
    if not found or not path:
        raise SchemaError(f"{text!r} is not NAME=TABLE; write hospital-a=people.csv")
    return name, path


def _agreed(asked: _Asked, folder: Path) -> tuple[Manifest, str | None]:
    """Write temporary identities and a manifest; return it and the holder of the Paillier key."""
    from discreet.federated.agreement.identity import Identity
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import wanted_of
    from discreet.federated.service.routes import routes

    label = None if asked.label is None else asked.label[0]
    names = [*asked.providers, *([] if label is None else [label]), "collector", "receiver"]
    people = {name: Identity.generate(name) for name in names}
    if len(people) < len(names):
        raise SchemaError(
            "two parties have the same name; the collector is `collector`, the receiver `receiver`"
        )
    for name, own in people.items():
        write_atomic(folder / f"{name}.identity.json", own.to_json(), private=True)
    cards, key = {name: own.card for name, own in people.items()}, None
    holder = label or ("receiver" if asked.mode == "counts" else "collector")
    if asked.paillier:
        from discreet.federated.crypto.paillier import generate

        current().say("making a Paillier key")
        key = generate()
        write_atomic(folder / f"{holder}.paillier.json", key.to_json(), private=True)
        cards[holder] = people[holder].card_with(key)
    until = datetime.now(UTC) + timedelta(seconds=asked.deadline)
    manifest = Manifest(
        asked.schema,
        wanted_of(asked.schema, asked.bins, asked.moments),
        asked.epsilon,
        tuple(cards[name] for name in asked.providers),
        cards["collector"],
        cards["receiver"],
        label=None if label is None else cards[label],
        columns={} if label is None else _columns(asked),
        rows=None if asked.label is None else _rows(asked.label[1]),
        partition="horizontal" if label is None else "vertical",
        mode=asked.mode,
        aggregation="paillier" if asked.paillier else "masks",
        tolerated=asked.tolerated,
        paillier=None if key is None else key.public,
        deadline=until.isoformat(timespec="seconds"),
    )
    routes(manifest)
    write(folder / "manifest.json", manifest.to_json())
    return manifest, holder if asked.paillier else None


def _columns(asked: _Asked) -> dict[str, tuple[str, ...]]:
    """Resolve which party holds which features: from the options, or from the tables."""
    from discreet.tables.engines import ordered_batches

    if asked.columns:
        return held_columns(asked.columns)
    found = {}
    for name, path in asked.providers.items():
        with about(path):
            names: Sequence[str] = next(iter(ordered_batches(path))).schema.names
        found[name] = tuple(one for one in asked.schema.names if one in names)
    return found


def _rows(path: str) -> int:
    from discreet.tables.engines import ordered_batches

    with about(path):
        return sum(part.num_rows for part in ordered_batches(path))


def _start(parties: Any, asked: _Asked, bare: bool, holder: str | None) -> None:
    """Start every party as a process, with the commands it would use on its own machine."""

    def key(name: str) -> tuple[str, ...]:
        return ("--key", f"{name}.paillier.json") if name == holder else ()

    parties.collect(*key("collector"))
    parties.start("receiver", "receive", *key("receiver"), "-o", "model.json")
    rows = () if asked.id_column is None else ("--id", asked.id_column)
    exact = ("--unprotected",) if bare else ()
    for name, path in asked.providers.items():
        parties.start(name, "provide", _place(path), *rows, *exact)
    if asked.label is not None:
        name, path = asked.label
        parties.start(name, "label", _place(path), *rows, *exact, *key(name))


def _place(source: str) -> str:
    """Resolve the path of a file, because the processes run in another folder."""
    return str(Path(source).resolve()) if Path(source).exists() else source
