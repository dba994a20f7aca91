"""``discreet federated show``: print a card, identity, manifest or invitation in words."""

from __future__ import annotations

import click

from discreet.cli.federated.files import read_agreement, read_cards, read_identity
from discreet.cli.output import format_example, json_option, print_json
from discreet.errors import FormatError
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import parse_document

__all__ = ["show"]


@click.command(
    epilog=format_example(
        "discreet federated show manifest.json", "discreet federated show hospital-a.card.json"
    )
)
@click.argument("file")
@json_option
def show(file: str, as_json: bool) -> None:
    """Print the card, identity, manifest or invitation in FILE; of an identity only its card."""
    from discreet.federated.agreement.description import (
        describe_agreement,
        describe_card,
        summarize_agreement,
        summarize_card,
    )

    with error_context(file):
        document_kind = str(parse_document(read_text(file), "card or manifest").get("format"))
        document_kind = document_kind.removeprefix("discreet/")
        if document_kind not in ("party", "identity", "manifest", "invitation"):
            raise FormatError(
                f"this is a {document_kind} file, not a card, identity, manifest or invitation; "
                "`discreet show` prints models"
            )
    if document_kind in ("party", "identity"):
        card = read_cards((file,))[0] if document_kind == "party" else read_identity(file).card
        if as_json:
            print_json(
                {
                    "kind": "card" if document_kind == "party" else document_kind,
                    **summarize_card(card),
                }
            )
            return
        click.echo(describe_card(card))
        if document_kind == "identity":
            click.echo("this file holds the secret key: it stays with its owner")
        return
    agreement = read_agreement(file)
    if as_json:
        print_json(summarize_agreement(agreement))
        return
    click.echo(describe_agreement(agreement))
    unsigned_names = ", ".join(agreement.unsigned_parties)
    click.echo(f"Not signed yet by: {unsigned_names}" if unsigned_names else "Signed by everyone.")
