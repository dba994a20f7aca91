"""``discreet federated show``: print a card, identity, manifest or invitation in words."""

from __future__ import annotations

import click

from discreet.cli.federated.files import read_agreement, read_cards, read_identity
from discreet.cli.output import example, json_option, print_json
from discreet.documents import parse, read_text
from discreet.errors import FormatError, about

__all__ = ["show"]


@click.command(
    epilog=example(
        "discreet federated show manifest.json", "discreet federated show hospital-a.card.json"
    )
)
@click.argument("file")
@json_option
def show(file: str, as_json: bool) -> None:
    """Print the card, identity, manifest or invitation in FILE; of an identity only its card."""
    from discreet.federated.agreement.words import card_facts, card_words, facts, words

    with about(file):
        kind = str(parse(read_text(file), "card or manifest").get("format"))
        kind = kind.removeprefix("discreet/")
        if kind not in ("party", "identity", "manifest", "invitation"):
            raise FormatError(
                f"this is a {kind} file, not a card, identity, manifest or invitation; "
                "`discreet show` prints models"
            )
    if kind in ("party", "identity"):
        card = read_cards((file,))[0] if kind == "party" else read_identity(file).card
        if as_json:
            print_json({"kind": "card" if kind == "party" else kind, **card_facts(card)})
            return
        click.echo(card_words(card))
        if kind == "identity":
            click.echo("this file holds the secret key: it stays with its owner")
        return
    agreement = read_agreement(file)
    if as_json:
        print_json(facts(agreement))
        return
    click.echo(words(agreement))
    unsigned = ", ".join(agreement.unsigned)
    click.echo(f"Not signed yet by: {unsigned}" if unsigned else "Signed by everyone.")
