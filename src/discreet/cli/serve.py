"""``discreet serve`` and ``announce``: a survey on the web, and its announcement."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT, write_file
from discreet.cli.output import (
    format_example,
    json_option,
    print_facts,
    print_json,
    print_note,
    show_progress,
)
from discreet.errors import DiscreetError, FormatError, MissingDependencyError
from discreet.files.atomic_writing import error_context

if TYPE_CHECKING:
    from discreet.server.database import Database
    from discreet.server.running import Server
    from discreet.server.surveys import Survey

__all__ = ["announce", "serve"]

DEFAULT_DATABASE = "collected.db"


# ------------------------------------------------------------------ announce


@click.command(
    epilog=format_example(
        "discreet announce questionnaire.yaml --example -o announcement.yaml",
        "discreet announce questionnaire.yaml announcement.yaml -o announcement.json",
    )
)
@click.argument("document")
@click.argument("words", required=False)
@click.option("--example", "as_example", is_flag=True, help="Write a commented file to complete.")
@click.option("-o", "--output", type=OUTPUT, required=True, help="The file to write.")
@json_option
def announce(
    document: str, words: str | None, as_example: bool, output: str, as_json: bool
) -> None:
    """Check and seal the announcement (WORDS) of a DOCUMENT, a plan or questionnaire.

    WORDS are a YAML or JSON file: who asks, in which languages and words, from when to when, by
    invitation or not. --example writes one with comments, to be completed.
    """
    from discreet.collection.announcement import Announcement, make_example_yaml
    from discreet.server.publishing import make_slug, read_document

    collection = read_document(document)
    if isinstance(collection, Announcement):
        raise FormatError(f"{document}: is an announcement; give the plan or questionnaire first")
    if as_example == (words is not None):
        raise click.UsageError("Give WORDS to check and seal, or --example to begin.")
    if words is None:
        write_file(output, make_example_yaml(collection, make_slug(document)))
        print_note(f"{output}: complete it, then: discreet announce {document} {output}")
        return
    with error_context(words):
        announcement = Announcement.read(words)
        announcement.check_collection(collection)
    write_file(output, announcement.to_json())
    summary = {
        "output": output,
        "digest": announcement.digest,
        "collection": announcement.collection,
        "name": announcement.name,
        "languages": list(announcement.words),
        "entry": announcement.entry,
        "withdrawal": announcement.withdrawal,
        "batch": announcement.batch,
    }
    if announcement.deletes:
        summary["deletes"] = announcement.deletes
    print_facts(summary, as_json)


# ------------------------------------------------------------------ serve


@click.command(
    epilog=format_example(
        "discreet serve questionnaire.yaml",
        "discreet serve plan.json announcement.json --database postgresql://localhost/surveys",
        "discreet serve questionnaire.yaml --rehearse 500",
        "discreet serve --database collected.db --check",
        "discreet serve --database collected.db --token viewer=analysis",
    )
)
@click.argument("files", nargs=-1)
@click.option(
    "--database",
    default=DEFAULT_DATABASE,
    show_default=True,
    envvar="DISCREET_DATABASE",
    help="Database: a file, or a URL of SQLite or PostgreSQL; also set by DISCREET_DATABASE.",
)
@click.option(
    "--keys",
    metavar="FOLDER",
    help="Folder of the database's keys; if left out FILE.keys, for PostgreSQL DISCREET_KEYS.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on.",
)
@click.option("--address", help="Public address of the server, such as https://survey.example.org.")
@click.option("--certificate", help="TLS certificate (PEM file).")
@click.option("--certificate-key", help="Private key of the TLS certificate (PEM file).")
@click.option(
    "--behind",
    metavar="ADDRESSES",
    help="Trusted reverse proxies; X-Forwarded-For is used only from these addresses.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Requests per second from one address; 0 for no limit.",
)
@click.option(
    "--settle-every",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Seconds between checks for reports that can be settled.",
)
@click.option(
    "--contact", default="", help="Contact for security.txt, such as mailto:security@example.org."
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1_000_000),
    default=100,
    show_default=True,
    help="Least number of reports settled (counted) together, if no announcement states one.",
)
@click.option(
    "--invited", is_flag=True, help="Require invitations, for a survey without an announcement."
)
@click.option("--unprotected", is_flag=True, help="Collect even if no privacy is promised.")
@click.option(
    "--rehearse",
    type=click.IntRange(2, 1_000_000),
    metavar="PEOPLE",
    help="Also add a rehearsal survey with this many simulated people, to try the desk.",
)
@click.option(
    "--give-up-lost",
    is_flag=True,
    help="Discard reports sealed with lost keys, print how many, and exit.",
)
@click.option(
    "--check", is_flag=True, help="Recount all reports, compare them with the tallies, and exit."
)
@click.option(
    "--token", metavar="ROLE=LABEL", help="Make an access token for programs, print it, and exit."
)
@click.option("--revoke", metavar="LABEL", help="Delete the tokens of this label, and exit.")
@click.option(
    "--migrate",
    metavar="VERSION",
    help="Migrate the tables of the database to this version, and exit.",
)
@json_option
def serve(files: tuple[str, ...], database: str, as_json: bool, **options: Any) -> None:
    """Serve plans and questionnaires: people answer in a browser, the truth stays there.

    FILES are plans, questionnaires and their announcements. They are added to the database and
    opened; without files, what is in the database is served. Prints the link for respondents, a
    link for the collector that works once, and where the data and its keys are.
    """
    try:
        from discreet.server.database import Database, convert_database_errors
        from discreet.server.lost_keys import check_keys
        from discreet.server.publishing import publish_documents, read_document
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "server") from None

    documents = [(path, read_document(path)) for path in files]
    one_shot_options = ("check", "token", "revoke")
    is_serving = not any(options[option_name] for option_name in one_shot_options)
    with Database(database, serving=is_serving, keys=options["keys"]) as open_database:
        if options["migrate"]:
            open_database.migrate(options["migrate"])
            click.echo(f"tables   version {options['migrate']}")
            return
        open_database.migrate()
        with convert_database_errors(open_database):
            if options["check"]:
                _check_tallies(open_database, as_json)
            elif options["give_up_lost"]:
                _give_up_lost_keys(open_database, as_json)
            elif options["token"] or options["revoke"]:
                _update_tokens(open_database, options["token"], options["revoke"])
            else:
                check_keys(open_database)
                surveys = publish_documents(
                    open_database,
                    documents,
                    _print_warning,
                    batch=options["batch"],
                    entry="invited" if options["invited"] else "anyone",
                    unprotected=options["unprotected"],
                )
                if options["rehearse"]:
                    _rehearse_surveys(open_database, surveys, options["rehearse"])
                _run_server(open_database, surveys, options, as_json)


def _print_warning(warning: str) -> None:
    click.echo(f"warning: {warning}", err=True)


def _rehearse_surveys(database: Database, surveys: list[Survey], people: int) -> None:
    from discreet.server.rehearsal import create_rehearsal

    for survey in surveys:
        rehearsal_name = create_rehearsal(database, survey.collection, survey.announcement, people)
        print_note(f"{rehearsal_name}: {people:,} simulated people, to try the desk")


def _check_tallies(database: Database, as_json: bool) -> None:
    from discreet.server.surveys import recount_surveys

    with show_progress("recounting", "surveys") as report_progress:
        results = recount_surveys(database, report_progress)
    if as_json:
        print_json(results)
    else:
        for slug, survey_result in results.items():
            verdict = (
                "the tally is right"
                if survey_result["same"]
                else f"THE TALLY COUNTS {survey_result['tally']:,}"
            )
            click.echo(f"{slug}  {survey_result['reports']:,} reports, {verdict}")
    if not all(survey_result["same"] for survey_result in results.values()):
        raise DiscreetError("a tally does not match its reports; restore a backup")


def _give_up_lost_keys(database: Database, as_json: bool) -> None:
    from discreet.server.lost_keys import give_up_lost

    lost_counts = give_up_lost(database)
    if as_json:
        print_json(lost_counts)
        return
    for slug, lost_count in lost_counts.items():
        click.echo(f"{slug}  {lost_count:,} reports were not settled, and are lost")
    if not lost_counts:
        click.echo("no key is lost; nothing was given up")


def _update_tokens(database: Database, token: str | None, revoke: str | None) -> None:
    from discreet.server.access import Access

    access = Access(database)
    if token:
        role, _, label = token.partition("=")
        click.echo(access.create_token(role, label))
        click.echo("This is the only time that it is shown.", err=True)
    if revoke:
        click.echo(f"revoked  {access.revoke_tokens(revoke)}")


def _run_server(database: Database, surveys: list[Survey], options: Any, as_json: bool) -> None:
    from discreet.hosting.serving import (
        RequestLimits,
        make_tls_options,
        make_web_server,
        open_listening_socket,
    )
    from discreet.server.app import create_application
    from discreet.server.desk import create_desk_router
    from discreet.server.pages import create_public_router
    from discreet.server.running import Server, ServerSettings

    tls_settings = make_tls_options(options["certificate"], options["certificate_key"])
    host = options["host"]
    listening_socket = open_listening_socket(host, options["port"])
    url_scheme = "https" if options["certificate"] else "http"
    url_host = f"[{host}]" if ":" in host else host
    base_url = (
        options["address"] or f"{url_scheme}://{url_host}:{listening_socket.getsockname()[1]}"
    )
    settings = ServerSettings(
        base_url.rstrip("/"),
        rate=options["rate"],
        burst=max(20 * options["rate"], 1.0),
        settle_interval=options["settle_every"],
        contact=options["contact"],
    )
    server = Server(database, settings)
    web_server = make_web_server(
        create_application(server, [create_public_router(), create_desk_router()]),
        RequestLimits(base_seconds=20.0),
        host=host,
        port=options["port"],
        **tls_settings,
        proxy_headers=options["behind"] is not None,
        forwarded_allow_ips=options["behind"] or "127.0.0.1",
    )
    _warn_overdue(server)
    _print_addresses(server, surveys, as_json)
    web_server.run(sockets=[listening_socket])


def _print_addresses(server: Server, surveys: list[Survey], as_json: bool) -> None:
    """Print the links for respondents and the collector, and where the data and its keys are."""
    base_url = server.settings.base_url
    listed_surveys = surveys or [
        survey for survey, state in server.surveys.list_surveys() if state == "open"
    ]
    addresses = {
        "respondents": [f"{base_url}/s/{survey.slug}" for survey in listed_surveys],
        "collector": f"{base_url}/desk#once={server.access.create_link_token()}",
        "data": server.database.location,
        "keys": str(server.database.keys.folder),
    }
    if as_json:
        print_json(addresses)
    else:
        for link in addresses["respondents"]:
            click.echo(f"respondents  {link}")
        click.echo(f"collector    {addresses['collector']}  (works once, today)")
        click.echo(f"data         {addresses['data']}")
        click.echo(f"keys         {addresses['keys']}")
    sys.stdout.flush()


def _warn_overdue(server: Server) -> None:
    """Warn of surveys that should have been deleted, by their announcement."""
    from discreet.server.surveys import utc_day

    for survey, _ in server.surveys.list_surveys():
        announcement = survey.announcement
        if announcement.is_overdue(utc_day()):
            _print_warning(
                f"{survey.slug} should have been deleted by {announcement.deletes}, as people were "
                f"promised; delete it at the desk"
            )
