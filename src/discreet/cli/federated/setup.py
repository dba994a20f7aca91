"""``discreet federated identity`` and ``manifest``: the parties of a round and its terms."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.files import read_identity, read_key, read_manifest
from discreet.cli.federated.progress import get_progress_reporter
from discreet.cli.files import OUTPUT, OUTPUT_FOLDER, make_folder, write_file
from discreet.cli.output import format_example, json_option, make_console, print_json
from discreet.cli.overwrite import refuse_replacement
from discreet.cli.parameter_types import BinCountType
from discreet.cli.person_options import rows_per_person_option
from discreet.errors import FormatError
from discreet.files.atomic_writing import error_context, read_text, write_atomic

if TYPE_CHECKING:
    from discreet.federated.agreement.identity import Card

__all__ = ["add_terms_options", "identity", "judge", "manifest"]


def add_terms_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the terms of a round."""
    for option in (
        click.option(
            "--moments",
            multiple=True,
            help="Numeric feature to be summed instead of binned; repeat it for several.",
        ),
        click.option(
            "--bins",
            type=BinCountType(1, 1024),
            metavar="auto|NUMBER",
            default="auto",
            show_default=True,
            help="Number of bins of each numeric feature; auto: by epsilon and --people.",
        ),
        click.option(
            "--people",
            type=click.IntRange(1),
            help="How many people you expect in all tables together: an order of magnitude that "
            "all parties may know, not a count.  [default: 1000 per provider]",
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
            help="What the receiver gets: noisy counts, or the model's probabilities only.",
        ),
        rows_per_person_option(1),
        click.option("--epsilon", type=float, required=True, help="Epsilon per person, in total."),
    ):
        command = option(command)
    return command


@click.command(epilog=format_example("discreet federated identity hospital-a --folder keys"))
@click.argument("name")
@click.option(
    "--folder",
    "place",
    type=OUTPUT_FOLDER,
    default=".",
    show_default=True,
    help="Folder to write the keys to.",
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
    key_folder, written_files = make_folder(place), {}
    identity_path = key_folder / f"{name}.identity.json"
    paillier_path = key_folder / f"{name}.paillier.json"
    if card_only:
        own_identity = read_identity(str(identity_path))
        stored_key = read_key(str(paillier_path)) if paillier_path.exists() else None
        card = (
            own_identity.card if stored_key is None else own_identity.make_card_with_key(stored_key)
        )
        written_files["card"] = _write_public(
            key_folder / f"{name}.card.json", card.to_json(), free_to_replace=True
        )
        _print_card(card, written_files, as_json)
        return
    if paillier and paillier_path.exists():
        raise FormatError(f"{paillier_path}: exists; keys are not replaced, choose another name")
    has_identity = identity_path.exists()
    if paillier and has_identity:  # an existing identity gets a Paillier key
        own_identity = read_identity(str(identity_path))
    else:
        if not has_identity:
            refuse_replacement(key_folder / f"{name}.card.json")  # perhaps somebody else's
        own_identity = Identity.generate(name)
        written_files["identity"] = _write_secret(identity_path, own_identity.to_json())
    card = own_identity.card
    if paillier:
        from discreet.federated.crypto.paillier import generate_key

        get_progress_reporter().show(f"making a Paillier key of {bits} bits")
        paillier_key = generate_key(bits)
        written_files["key"] = _write_secret(paillier_path, paillier_key.to_json())
        public_text = paillier_key.public.to_json()
        written_files["public key"] = _write_public(
            key_folder / f"{name}.paillier.public.json", public_text
        )
        card = own_identity.make_card_with_key(paillier_key)
    written_files["card"] = _write_public(
        key_folder / f"{name}.card.json", card.to_json(), free_to_replace=has_identity
    )
    _print_card(card, written_files, as_json)


def _print_card(card: Card, files: dict[str, str], as_json: bool) -> None:
    from discreet.federated.agreement.description import describe_card, summarize_card

    if as_json:
        print_json({**summarize_card(card), "files": files})
        return
    printer = make_console()
    for file_role, path in files.items():
        printer.print(f"{file_role:<11} {path}", soft_wrap=True)
    printer.print(describe_card(card), soft_wrap=True)


def _write_public(path: Path, text: str, *, free_to_replace: bool = False) -> str:
    """Write a public file; it may be replaced if it is derived from existing keys."""
    write_file(path, text, free_to_replace=free_to_replace)
    return str(path)


def _write_secret(path: Path, text: str) -> str:
    """Write a file that only its owner may read; never replace one."""
    if not write_atomic(path, text, private=True, exclusive=True):
        raise FormatError(f"{path}: exists; keys are not replaced, choose another name")
    return str(path)


@click.command(
    epilog=format_example(
        "discreet federated manifest s.json --provider a.card.json --provider b.card.json \\",
        "    --collector c.card.json --receiver r.card.json --epsilon 1 -o manifest.json",
        "discreet federated manifest s.json --provider a.card.json --provider b.card.json \\",
        "    --collector c.card.json --receiver r.card.json --label l.card.json \\",
        "    --columns a=age,sex --columns b=income --rows 1000 \\",
        "    --key l.paillier.public.json --epsilon 1 -o manifest.json",
    )
)
@click.argument("schema")
@click.option(
    "--provider",
    "providers",
    multiple=True,
    required=True,
    help="Card of a provider; once for each provider.",
)
@click.option("--collector", required=True, help="Card of the collector.")
@click.option("--receiver", required=True, help="Card of the receiver.")
@click.option("--label", help="Card of the label provider; makes the round vertical.")
@click.option(
    "--columns",
    multiple=True,
    help="Who holds which features, as NAME=feature,feature; for vertical rounds.",
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    help="Number of rows, which all providers hold; for vertical rounds.",
)
@add_terms_options
@click.option("--key", help="Paillier public key of the round; without it, the round uses masks.")
@click.option(
    "--round",
    "number",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of this round.",
)
@click.option(
    "--deadline", type=click.FloatRange(1), help="Deadline of the round, in seconds from now."
)
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
    bins: Any,
    people: int | None,
    moments: tuple[str, ...],
    rows_per_person: int,
    number: int,
    deadline: float | None,
    output: str,
) -> None:
    """Write what the parties of a round agree on; each of them signs it when it takes part."""
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.agreement.manifest_file import parse_held_columns
    from discreet.federated.counters import (
        PEOPLE_PER_PROVIDER,
        compute_default_bins,
        make_feature_requests,
    )
    from discreet.federated.service.routes import list_routes
    from discreet.schema.schema import Schema

    public_schema = Schema.read(schema)
    if bins == "auto":
        bins = compute_default_bins(
            public_schema,
            epsilon,
            rows or people or PEOPLE_PER_PROVIDER * len(providers),
            partition="horizontal" if label is None else "vertical",
        )
    deadline_time = datetime.now(UTC) + timedelta(seconds=deadline or 0)
    agreed_manifest = Manifest(
        public_schema,
        make_feature_requests(public_schema, bins, moments),
        epsilon,
        tuple(_read_card(path) for path in providers),
        _read_card(collector),
        _read_card(receiver),
        label=None if label is None else _read_card(label),
        columns=parse_held_columns(columns),
        rows=rows,
        partition="horizontal" if label is None else "vertical",
        mode=mode,
        aggregation="masks" if key is None else "paillier",
        tolerated=tolerated,
        rows_per_person=rows_per_person,
        round=number,
        paillier=None if key is None else _read_public_key(key),
        deadline="" if deadline is None else deadline_time.isoformat(timespec="seconds"),
    )
    list_routes(agreed_manifest)  # refuse a manifest that the parties could not run
    write_file(output, agreed_manifest.to_json())
    printer = make_console()
    printer.print(str(agreed_manifest.guarantee), soft_wrap=True)
    printer.print(f"manifest {agreed_manifest.hash.hex()}", soft_wrap=True)


@click.command(
    epilog=format_example(
        "discreet federated receive manifest.json --identity r.identity.json \\",
        "    --collector https://collector.example:8443 --statistics statistics.json -o model.json",
        "discreet federated judge manifest.json statistics.json -o judging.json",
        "discreet federated receive judging.json --judged statistics.json \\",
        "    --identity r.identity.json --collector https://collector.example:8443 \\",
        "    -o judged-model.json",
    )
)
@click.argument("manifest")
@click.argument("statistics")
@click.option(
    "--epsilon",
    type=float,
    help="Epsilon per person of judging alone; both rounds together cost the sum.  [default: a "
    "nineteenth of the first round's, which is 5 % of the sum]",
)
@click.option(
    "--deadline", type=click.FloatRange(1), help="Deadline of the round, in seconds from now."
)
@click.option("-o", "--output", type=OUTPUT, required=True, help="The manifest file to write.")
def judge(
    manifest: str, statistics: str, epsilon: float | None, deadline: float | None, output: str
) -> None:
    """Write the manifest of a second round, in which the same providers judge candidate models.

    MANIFEST is that of a horizontal round that has ended, STATISTICS what its receiver got. The
    candidates are made of them: the model with its evidence toned down, the majority class, and
    the best two features. Providers add up, with noise, how many of their rows each gets right.
    """
    from discreet.federated.agreement.description import describe_promise
    from discreet.federated.judging import JUDGING_SHARE, make_judging_manifest
    from discreet.statistics.statistics import Statistics

    first_manifest = read_manifest(manifest)
    with error_context(statistics):
        first_statistics = Statistics.from_json(read_text(statistics))
    if epsilon is None:
        epsilon = first_manifest.epsilon * JUDGING_SHARE / (1 - JUDGING_SHARE)
    deadline_time = datetime.now(UTC) + timedelta(seconds=deadline or 0)
    judging_manifest = make_judging_manifest(
        first_manifest,
        first_statistics,
        epsilon,
        "" if deadline is None else deadline_time.isoformat(timespec="seconds"),
    )
    write_file(output, judging_manifest.to_json())
    printer = make_console()
    printer.print(describe_promise(judging_manifest), soft_wrap=True)
    printer.print(f"manifest {judging_manifest.hash.hex()}", soft_wrap=True)


def _read_card(path: str) -> Any:
    from discreet.federated.agreement.identity import Card

    with error_context(path):
        return Card.from_json(read_text(path))


def _read_public_key(path: str) -> Any:
    from discreet.federated.crypto.paillier import PublicKey

    with error_context(path):
        return PublicKey.from_json(read_text(path))
