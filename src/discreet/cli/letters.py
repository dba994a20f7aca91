"""``discreet letters``: invitations to print, made where the database is."""

from __future__ import annotations

import click

from discreet.cli.files import OUTPUT, write_file
from discreet.cli.output import format_example, json_option, print_json
from discreet.errors import FormatError, MissingDependencyError

__all__ = ["letters"]


@click.command(
    epilog=format_example(
        "discreet letters health --count 200 --address https://survey.example.org -o letters.html"
    )
)
@click.argument("name")
@click.option("--count", type=click.IntRange(1, 10_000), required=True, help="Number of letters.")
@click.option(
    "--database",
    default="collected.db",
    show_default=True,
    envvar="DISCREET_DATABASE",
    help="Database of the server; also set by DISCREET_DATABASE.",
)
@click.option(
    "--address", required=True, help="Public address of the server, as for discreet serve."
)
@click.option(
    "--language", default="", help="Language of the letters; that of the announcement if left out."
)
@click.option("-o", "--output", type=OUTPUT, required=True, help="The HTML file to write.")
@json_option
def letters(
    name: str, count: int, database: str, address: str, language: str, output: str, as_json: bool
) -> None:
    """Make invitations to the survey NAME and write letters to print.

    Each letter has a code that is used once, the link with it as a QR code, and the digests that
    the page shows. Only hashes of the codes are stored: the file is the only place where the codes
    are.
    """
    try:
        from discreet.server import invitations
        from discreet.server.bundle import SERVER_FOLDER, Bundle
        from discreet.server.database import Database
        from discreet.server.running import ServerSettings
        from discreet.server.surveys import SurveyStore
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "server") from None

    base_url = ServerSettings(address.rstrip("/")).base_url
    bundle = Bundle()
    with Database(database, serving=False) as open_database:
        survey = SurveyStore(open_database).find_survey(name)
        if survey is None:
            raise FormatError(f"{database}: has no survey named {name}")
        if not survey.invited:
            raise FormatError(f"{name} is open to anyone; invitations need 'entry: invited'")
        with open_database.write() as connection:
            invitation_codes = invitations.create_codes(connection, survey.number, count)
    letters_html = invitations.render_letters(
        survey, base_url, invitation_codes, bundle.digest, language
    )
    style_text = bundle.files["style.css"].decode() + (
        SERVER_FOLDER / "static/desk/desk.css"
    ).read_text("utf-8")
    for link in ("/static/style.css", "/desk/static/desk.css"):
        letters_html = letters_html.replace(f'<link rel="stylesheet" href="{link}">', "")
    letters_html = letters_html.replace(
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">', ""
    )
    write_file(output, letters_html.replace("</head>", f"<style>\n{style_text}</style>\n</head>"))
    summary = {"output": output, "letters": count, "survey": name, "digest": bundle.digest}
    if as_json:
        print_json(summary)
    else:
        for key, value in summary.items():
            click.echo(f"{key:<8} {value}")
        click.echo("Anyone with this file can answer in place of the invited: delete it.", err=True)
