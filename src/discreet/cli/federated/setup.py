"""``discreet federated identity`` and ``manifest``: the parties of a round and its terms."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.files import read_identity, read_key
from discreet.cli.federated.telling import current
from discreet.cli.files import OUTPUT, OUTPUT_FOLDER, folder, write
from discreet.cli.output import console, example, json_option, print_json
from discreet.cli.overwrite import refuse_replacement
from discreet.documents import read_text, write_atomic
from discreet.errors import FormatError, SchemaError, about

if TYPE_CHECKING:
    from discreet.federated.agreement.identity import Card

__all__ = ["held_columns", "identity", "manifest", "terms_options"]


def terms_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the terms of a round."""
    for option in (
        click.option(
            "--moments", multiple=True, help="A numeric feature to be summed, not binned."
        ),
        click.option(
            "--bins",
            type=click.IntRange(1, 1024),
            default=8,
            show_default=True,
            help="Bins of numeric features.",
        ),
        click.option(
            "--tolerated",
            type=click.IntRange(0),
            default=1,
            show_default=True,
            help="How many noise-adding parties may drop out or collude.",
        ),
        click.option(
            "--mode",
            type=click.Choice(["counts", "probabilities"]),
            default="counts",
            show_default=True,
            help="What the receiver gets.",
        ),
        click.option("--epsilon", type=float, required=True, help="Per person and in total."),
    ):
        command = option(command)
    return command


@click.command(epilog=example("discreet federated identity hospital-a --folder keys"))
@click.argument("name")
@click.option(
    "--folder", "place", type=OUTPUT_FOLDER, default=".", show_default=True, help="Where to write."
)
@click.option(
    "--paillier",
    is_flag=True,
    help="Also a Paillier key: for the receiver (or the collector in mode probabilities) where "
    "aggregation is paillier; in a vertical round for the label provider.",
)
@click.option(
    "--bits",
    type=click.IntRange(2048, 8192),
    default=3072,
    show_default=True,
    help="Length of the Paillier key.",
)
@click.option(
    "--card",
    "card_only",
    is_flag=True,
    help="Only write the card of an existing identity again, with its Paillier key if it has one; "
    "for cards of an older version.",
)
@json_option
def identity(
    name: str, place: str, paillier: bool, bits: int, card_only: bool, as_json: bool
) -> None:
    """Make the keys of the party NAME.

    NAME.identity.json stays with its owner; NAME.card.json is for the others, who compare its
    fingerprint with the owner through another channel. With --paillier an identity that exists
    gets a Paillier key, and a new card with the same fingerprint.
    """
    from discreet.federated.agreement.identity import Identity, check_name

    check_name(name)
    where, files = folder(place), {}
    secret, private = where / f"{name}.identity.json", where / f"{name}.paillier.json"
    if card_only:
        made = read_identity(str(secret))
        kept = read_key(str(private)) if private.exists() else None
        card = made.card if kept is None else made.card_with(kept)
        files["card"] = _public(where / f"{name}.card.json", card.to_json(), free=True)
        _print_card(card, files, as_json)
        return
    if paillier and private.exists():
        raise FormatError(f"{private}: exists; keys are not replaced, choose another name")
    owned = secret.exists()
    if paillier and owned:  # an existing identity gets a Paillier key
        made = read_identity(str(secret))
    else:
        if not owned:
            refuse_replacement(where / f"{name}.card.json")  # perhaps somebody else's
        made = Identity.generate(name)
        files["identity"] = _secret(secret, made.to_json())
    card = made.card
    if paillier:
        from discreet.federated.crypto.paillier import generate

        current().show(f"making a Paillier key of {bits} bits")
        key = generate(bits)
        files["key"] = _secret(private, key.to_json())
        public = key.public.to_json()
        files["public key"] = _public(where / f"{name}.paillier.public.json", public)
        card = made.card_with(key)
    files["card"] = _public(where / f"{name}.card.json", card.to_json(), free=owned)
    _print_card(card, files, as_json)


def _print_card(card: Card, files: dict[str, str], as_json: bool) -> None:
    from discreet.federated.agreement.words import card_facts, card_words

    if as_json:
        print_json({**card_facts(card), "files": files})
        return
    printer = console()
    for what, path in files.items():
        printer.print(f"{what:<11} {path}", soft_wrap=True)
    printer.print(card_words(card), soft_wrap=True)


def _public(path: Path, text: str, *, free: bool = False) -> str:
    """Write a public file; it may be replaced if it is derived from existing keys."""
    write(path, text, free=free)
    return str(path)


def _secret(path: Path, text: str) -> str:
    """Write a file that only its owner may read; never replace one."""
    if not write_atomic(path, text, private=True, exclusive=True):
        raise FormatError(f"{path}: exists; keys are not replaced, choose another name")
    return str(path)


@click.command(
    epilog=example(
        "discreet federated manifest s.json --provider a.card.json --provider b.card.json \\",
        "    --collector c.card.json --receiver r.card.json --epsilon 1 -o manifest.json",
        "discreet federated manifest s.json --provider a.card.json --provider b.card.json \\",
        "    --collector c.card.json --receiver r.card.json --label l.card.json \\",
        "    --columns a=age,sex --columns b=income --rows 1000 \\",
        "    --key l.paillier.public.json --epsilon 1 -o manifest.json",
    )
)
@click.argument("schema")
@click.option("--provider", "providers", multiple=True, required=True, help="A card; repeat it.")
@click.option("--collector", required=True, help="The collector's card.")
@click.option("--receiver", required=True, help="The receiver's card.")
@click.option("--label", help="The label provider's card; makes the round vertical.")
@click.option("--columns", multiple=True, help="NAME=feature,feature: who holds what; vertical.")
@click.option("--rows", type=click.IntRange(1), help="Rows that all providers hold; vertical.")
@terms_options
@click.option("--key", help="A Paillier public key; without it, the round uses masks.")
@click.option(
    "--round",
    "number",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of this round.",
)
@click.option("--deadline", type=click.FloatRange(1), help="Seconds from now.")
@click.option("-o", "--output", type=OUTPUT, required=True, help="The manifest file to write.")
def manifest(
    schema: str,
    providers: tuple[str, ...],
    collector: str,
    receiver: str,
    label: str | None,
    columns: tuple[str, ...],
    rows: int | None,
    epsilon: float,
    mode: Any,
    key: str | None,
    tolerated: int,
    bins: int,
    moments: tuple[str, ...],
    number: int,
    deadline: float | None,
    output: str,
) -> None:
    """Write what the parties of a round agree on; each of them signs it when it takes part."""
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import wanted_of
    from discreet.federated.service.routes import routes
    from discreet.schema import Schema

    public = Schema.read(schema)
    until = datetime.now(UTC) + timedelta(seconds=deadline or 0)
    made = Manifest(
        public,
        wanted_of(public, bins, moments),
        epsilon,
        tuple(_card(path) for path in providers),
        _card(collector),
        _card(receiver),
        label=None if label is None else _card(label),
        columns=held_columns(columns),
        rows=rows,
        partition="horizontal" if label is None else "vertical",
        mode=mode,
        aggregation="masks" if key is None else "paillier",
        tolerated=tolerated,
        round=number,
        paillier=None if key is None else _key(key),
        deadline="" if deadline is None else until.isoformat(timespec="seconds"),
    )
    routes(made)  # refuse a manifest that the parties could not run
    write(output, made.to_json())
    printer = console()
    printer.print(str(made.guarantee), soft_wrap=True)
    printer.print(f"manifest {made.hash.hex()}", soft_wrap=True)


def _card(path: str) -> Any:
    from discreet.federated.agreement.identity import Card

    with about(path):
        return Card.from_json(read_text(path))


def _key(path: str) -> Any:
    from discreet.federated.crypto.paillier import PublicKey

    with about(path):
        return PublicKey.from_json(read_text(path))


def held_columns(columns: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Parse which party holds which features."""
    found = {}
    for text in columns:
        name, equals, features = text.partition("=")
        if not equals:
            raise SchemaError(f"--columns {text!r}; write hospital-a=age,sex")
        found[name] = tuple(features.split(","))
    return found
