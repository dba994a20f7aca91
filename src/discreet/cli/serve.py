"""``discreet serve`` and ``announce``: a survey on the web, and its announcement."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT, write
from discreet.cli.output import example, json_option, note, print_facts, print_json, progress
from discreet.errors import DiscreetError, FormatError, MissingDependencyError, about

if TYPE_CHECKING:
    from discreet.announcement import Announcement
    from discreet.server.database import Database
    from discreet.server.running import Server

__all__ = ["announce", "serve"]

DATABASE = "collected.db"


def _parsed(path: str) -> tuple[str, Any]:
    """Read a JSON or YAML file; returns ("announcement", …) or ("collection", …)."""
    from discreet.announcement import Announcement
    from discreet.collection.protocol import collection_of
    from discreet.documents import json_of_yaml, parse, read_text

    with about(path):
        text = read_text(path)
        if Path(path).suffix.lower() in (".yaml", ".yml"):
            text = json_of_yaml(text, "collection")
        if parse(text, "collection").get("format") == "discreet/announcement":
            return "announcement", Announcement.from_json(text)
        return "collection", collection_of(text)


def _slug(path: str) -> str:
    import re

    return re.sub(r"[^a-z0-9]+", "-", Path(path).stem.lower()).strip("-")[:64] or "survey"


# ------------------------------------------------------------------ announce


@click.command(
    epilog=example(
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
    from discreet.announcement import Announcement, example_of

    kind, collection = _parsed(document)
    if kind != "collection":
        raise FormatError(f"{document}: is an announcement; give the plan or questionnaire first")
    if as_example == (words is not None):
        raise click.UsageError("Give WORDS to check and seal, or --example to begin.")
    if words is None:
        write(output, example_of(collection, _slug(document)))
        note(f"{output}: complete it, then: discreet announce {document} {output}")
        return
    with about(words):
        made = Announcement.read(words)
        made.check(collection)
    write(output, made.to_json())
    facts = {
        "output": output,
        "digest": made.digest,
        "collection": made.collection,
        "name": made.name,
        "languages": list(made.words),
        "entry": made.entry,
        "withdrawal": made.withdrawal,
        "batch": made.batch,
    }
    if made.deletes:
        facts["deletes"] = made.deletes
    print_facts(facts, as_json)


# ------------------------------------------------------------------ serve


@click.command(
    epilog=example(
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
    default=DATABASE,
    show_default=True,
    envvar="DISCREET_DATABASE",
    help="A file, or the URL of SQLite or PostgreSQL; also DISCREET_DATABASE.",
)
@click.option(
    "--keys",
    metavar="FOLDER",
    help="Where its keys are; else FILE.keys, or DISCREET_KEYS for PostgreSQL.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on.",
)
@click.option("--address", help="How people reach it, as https://survey.example.org.")
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
@click.option("--contact", default="", help="For security.txt, as mailto:security@example.org.")
@click.option(
    "--batch",
    type=click.IntRange(1, 1_000_000),
    default=100,
    show_default=True,
    help="Settle at least this many reports together, where no announcement says it.",
)
@click.option("--invited", is_flag=True, help="Ask for invitations, without an announcement.")
@click.option("--unprotected", is_flag=True, help="Collect although no privacy is promised.")
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
@click.option("--check", is_flag=True, help="Recount all reports, compare with the tallies, exit.")
@click.option("--token", metavar="ROLE=LABEL", help="Make a token for programs, print it, exit.")
@click.option("--revoke", metavar="LABEL", help="Delete the tokens of a label, exit.")
@click.option("--migrate", metavar="VERSION", help="Migrate the tables to a version, exit.")
@json_option
def serve(files: tuple[str, ...], database: str, as_json: bool, **options: Any) -> None:
    """Serve plans and questionnaires: people answer in a browser, the truth stays there.

    FILES are plans, questionnaires and their announcements. They are added to the database and
    opened; without files, what is in the database is served. Prints the link for respondents, a
    link for the collector that works once, and where the data and its keys are.
    """
    try:
        from discreet.server.database import Database, unavailable
        from discreet.server.lost_keys import check_keys
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "server") from None

    found = [(path, *_parsed(path)) for path in files]
    aside = ("check", "token", "revoke")
    serving = not any(options[name] for name in aside)
    with Database(database, serving=serving, keys=options["keys"]) as opened:
        if options["migrate"]:
            opened.migrate(options["migrate"])
            click.echo(f"tables   version {options['migrate']}")
            return
        opened.migrate()
        with unavailable(opened):
            if options["check"]:
                _check(opened, as_json)
            elif options["give_up_lost"]:
                _give_up(opened, as_json)
            elif options["token"] or options["revoke"]:
                _tokens(opened, options["token"], options["revoke"])
            else:
                check_keys(opened)
                names = _added(opened, found, options)
                if options["rehearse"]:
                    _rehearsed(opened, names, options["rehearse"])
                _run(opened, names, options, as_json)


def _added(opened: Database, found: list[tuple[str, str, Any]], options: Any) -> list[str]:
    """Store and open new surveys; return the names of all surveys in the files."""
    from discreet.announcement import Announcement
    from discreet.server import surveys as acts

    told: dict[str, Announcement] = {
        one.collection: one for _, kind, one in found if kind == "announcement"
    }
    names = []
    for path, kind, collection in found:
        if kind == "announcement":
            continue
        announcement = told.pop(collection.digest, None) or Announcement.plain(
            collection,
            _slug(path),
            batch=options["batch"],
            entry="invited" if options["invited"] else "anyone",
            unprotected=options["unprotected"],
        )
        with about(path):
            announcement.check(collection)
        _warn(collection, announcement)
        known = acts.Surveys(opened).find(announcement.name)
        if known is None:
            with opened.write() as connection:
                number = acts.create(connection, collection, announcement)
                acts.set_state(connection, number, "open")
        elif known.collection.digest != collection.digest:
            raise FormatError(
                f"{path}: the database has a survey {announcement.name} with another "
                f"{collection.kind}; people answered that one. Give this one another name, in an "
                "announcement"
            )
        elif announcement.digest != known.announcement.digest and _told(found, collection):
            raise FormatError(
                f"{path}: the survey {announcement.name} was announced in other words or under "
                "other rules; they do not change once it is published. Use another name"
            )
        names.append(announcement.name)
    if told:
        raise FormatError(
            "an announcement names a plan or questionnaire that is not among the files: "
            + ", ".join(one.name for one in told.values())
        )
    return names


def _rehearsed(opened: Database, names: list[str], people: int) -> None:
    from discreet.server.rehearsal import rehearse
    from discreet.server.surveys import Surveys

    surveys = Surveys(opened)
    for name in names:
        survey = surveys.find(name)
        assert survey is not None
        made = rehearse(opened, survey.collection, survey.announcement, people)
        note(f"{made}: {people:,} simulated people, to try the desk")


def _told(found: list[tuple[str, str, Any]], collection: Any) -> bool:
    return any(
        kind == "announcement" and one.collection == collection.digest for _, kind, one in found
    )


def _warn(collection: Any, announcement: Announcement) -> None:
    from discreet.privacy import rounded_up

    guarantee = announcement.guarantee(collection)
    if not guarantee.private:
        click.echo(
            f"warning: {announcement.name} promises nothing: {guarantee.broken[0]}", err=True
        )
    elif guarantee.epsilon > 5:
        click.echo(
            f"warning: {announcement.name} has epsilon {rounded_up(guarantee.epsilon)}; above 5 a "
            "report says almost everything about its sender",
            err=True,
        )
    if announcement.batch < 10:
        click.echo(
            f"warning: {announcement.name} settles batches of {announcement.batch}; somebody "
            "who reads the disk can link so few reports to the order in which people came",
            err=True,
        )


def _check(opened: Database, as_json: bool) -> None:
    from discreet.server.surveys import Surveys
    from discreet.server.tallies import load, recounted, same

    results = {}
    with progress("recounting", "surveys") as advance:
        for done, (survey, _) in enumerate(Surveys(opened).all(), 1):
            with opened.read() as connection:
                stored = load(connection, survey.number, survey.collection)
                counted = recounted(connection, survey.number, survey.collection)
            right = same(stored, counted)
            results[survey.slug] = {
                "reports": counted.reports,
                "tally": stored.reports,
                "same": right,
            }
            advance(done)
    if as_json:
        print_json(results)
    else:
        for slug, one in results.items():
            verdict = "the tally is right" if one["same"] else f"THE TALLY SAYS {one['tally']:,}"
            click.echo(f"{slug}  {one['reports']:,} reports, {verdict}")
    if not all(one["same"] for one in results.values()):
        raise DiscreetError("a tally is not what its reports add up to; restore a backup")


def _give_up(opened: Database, as_json: bool) -> None:
    from discreet.server.lost_keys import give_up_lost

    lost = give_up_lost(opened)
    if as_json:
        print_json(lost)
        return
    for slug, count in lost.items():
        click.echo(f"{slug}  {count:,} reports were not settled, and are lost")
    if not lost:
        click.echo("no key is lost; nothing was given up")


def _tokens(opened: Database, token: str | None, revoke: str | None) -> None:
    from discreet.server.access import Access

    access = Access(opened)
    if token:
        role, _, label = token.partition("=")
        click.echo(access.make(role, label))
        click.echo("This is the only time that it is shown.", err=True)
    if revoke:
        click.echo(f"revoked  {access.revoke(revoke)}")


def _run(opened: Database, names: list[str], options: Any, as_json: bool) -> None:
    from discreet.server.app import application
    from discreet.server.desk import desk_pages
    from discreet.server.pages import public_pages
    from discreet.server.running import Server
    from discreet.server.settings import Settings
    from discreet.serving import Patience, tls_options, web_server

    tls = tls_options(options["certificate"], options["certificate_key"])
    host = options["host"]
    runner = web_server(
        None,  # set below, when the port is known
        Patience(start=20.0),
        host=host,
        port=options["port"],
        **tls,
        proxy_headers=options["behind"] is not None,
        forwarded_allow_ips=options["behind"] or "127.0.0.1",
    )
    socket = _listening(host, options["port"])
    scheme = "https" if options["certificate"] else "http"
    shown = f"[{host}]" if ":" in host else host
    base = options["address"] or f"{scheme}://{shown}:{socket.getsockname()[1]}"
    server = Server(
        opened,
        Settings(
            base.rstrip("/"),
            rate=options["rate"],
            burst=max(20 * options["rate"], 1.0),
            settle_every=options["settle_every"],
            contact=options["contact"],
        ),
    )
    runner.config.app = application(server, [public_pages(), desk_pages()])
    _remind(server)
    once = server.access.once()
    listed = names or [survey.slug for survey, state in server.surveys.all() if state == "open"]
    facts = {
        "respondents": [f"{server.settings.base}/s/{name}" for name in listed],
        "collector": f"{server.settings.base}/desk#once={once}",
        "data": opened.place,
        "keys": str(opened.keys.folder),
    }
    if as_json:
        print_json(facts)
    else:
        for link in facts["respondents"]:
            click.echo(f"respondents  {link}")
        click.echo(f"collector    {facts['collector']}  (works once, today)")
        click.echo(f"data         {facts['data']}")
        click.echo(f"keys         {facts['keys']}")
    sys.stdout.flush()
    runner.run(sockets=[socket])


def _remind(server: Server) -> None:
    """Warn of surveys that should have been deleted, by their announcement."""
    from discreet.server.surveys import utc_day

    for survey, _ in server.surveys.all():
        told = survey.announcement
        if told.overdue(utc_day()):
            click.echo(
                f"warning: {survey.slug} should have been deleted by {told.deletes}, by what "
                "people were told; delete it at the desk",
                err=True,
            )


def _listening(host: str, port: int) -> Any:
    """Open a listening socket, so that a link works as soon as it is printed."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise FormatError(
            f"{host} port {port}: cannot be served: {error.strerror}; choose another --port"
        ) from None
    made.set_inheritable(True)
    return made
