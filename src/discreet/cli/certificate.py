"""``discreet certificate``: a page about a released model for those who file it."""

from __future__ import annotations

import click

from discreet.cli.files import make_output, write_file
from discreet.cli.output import format_example, json_option, print_json, print_note, show_progress

__all__ = ["certificate"]


@click.command(
    epilog=format_example(
        "discreet certificate model.json --ledger clinic.budget.json -o certificate.html"
    )
)
@click.argument("model")
@click.option(
    "--ledger",
    help="Ledger that the model was paid from: says when, what else was spent, and what is left.",
)
@click.option(
    "--statistics",
    help="Statistics file from which the model was made: its digest is on the page.",
)
@click.option(
    "-o", "--output", type=make_output("certificate"), required=True, help="The page to write."
)
@json_option
def certificate(
    model: str, ledger: str | None, statistics: str | None, output: str, as_json: bool
) -> None:
    """Write a page about a MODEL file that a data protection officer can file.

    One HTML file that prints on one sheet: what was released, when, what is promised and what that
    rests on, what was spent and what is left, what is not covered, and the digests of the files. It
    is written from these files alone; the names of files, and whose data it was, are not on it.
    A model whose promise is void is refused.
    """
    from discreet.display.certificate import Certificate
    from discreet.privacy.guarantee import format_rounded_up

    with show_progress("reading", "files"):
        certified = Certificate.read(model, ledger=ledger, statistics=statistics)
    write_file(output, certified.render())
    if as_json:
        print_json({"output": output, **certified.to_body()})
    else:
        epsilon_text = format_rounded_up(certified.model.guarantee.epsilon)
        print_note(f"{output}: epsilon {epsilon_text} per person")
