"""``discreet verify`` and ``page``: check a survey's page, or write it for another host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from discreet.cli.files import NEW_FOLDER
from discreet.cli.output import example, json_option, print_facts, print_json
from discreet.errors import DiscreetError, FormatError, MissingDependencyError

__all__ = ["page", "verify"]


def _bundle() -> Any:
    try:
        from discreet.server.bundle import Bundle
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "server") from None
    return Bundle()


@click.command(
    epilog=example(
        "discreet verify https://survey.example.org/s/health",
        "discreet verify https://survey.example.org/s/health --release page.sha256",
        "discreet verify",
    )
)
@click.argument("url", required=False)
@click.option(
    "--release",
    type=click.Path(exists=True, dir_okay=False),
    help="The file page.sha256 of a release: is the page of this program the one that it lists?",
)
@click.option("--list", "listed", is_flag=True, help="Print that list, as in page.sha256.")
@json_option
def verify(url: str | None, release: str | None, listed: bool, as_json: bool) -> None:
    """Compare the survey page at URL with the one of this release, byte by byte.

    Everything that the page loads is compared, its content policy, and whether announcement and
    document have the digests that are stated, in the link (#d=…) too. Without URL: print the digest
    of this release's page, which is also on the page and in letters; it is the SHA-256 of the
    file page.sha256 of a release. A server may show others another page than you: verify
    from several places, and never with a personal link.
    """
    bundle = _bundle()
    if release is not None and Path(release).read_bytes() != bundle.listing.encode():
        raise DiscreetError(
            f"{release}: lists a different page from this program's ({bundle.digest}); install the "
            "release that the file belongs to, and verify with that"
        )
    if listed:
        click.echo(bundle.listing, nl=False)
        return
    if url is None:
        if as_json:
            print_json({"digest": bundle.digest})
        else:
            click.echo(bundle.digest)
        return
    import httpx

    from discreet.server.verify import verify as compared

    with httpx.Client(timeout=30) as client:

        def fetch(address: str) -> tuple[int, bytes, str]:
            try:
                answer = client.get(address)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".")
                raise FormatError(
                    f"{address}: cannot be reached: {reason}; check the address and the network"
                ) from None
            policy = answer.headers.get("content-security-policy", "")
            return answer.status_code, answer.content, policy

        found = compared(url, fetch, bundle)
    same = all(one.same for one in found)
    if as_json:
        print_json({"url": url, "same": same, "digest": bundle.digest,
                    "files": [vars(one) for one in found]})  # fmt: skip
    else:
        width = max(len(one.name) for one in found)
        for one in found:
            mark = "same   " if one.same else "CHANGED"
            click.echo(f"{mark}  {one.name:<{width}}  {one.detail}".rstrip())
        click.echo(f"digest   {bundle.digest}")
    if not same:
        raise DiscreetError(
            "this is not the page of this release: do not answer there. It may also be that of "
            "another release; compare with that one"
        )


@click.command(epilog=example("discreet page https://survey.example.org/s/health -o health"))
@click.argument("url")
@click.option(
    "-o", "--output", type=NEW_FOLDER, required=True, help="The folder to write; it must be new."
)
@json_option
def page(url: str, output: str, as_json: bool) -> None:
    """Write the page of the survey at URL as files, for the host of another party.

    Put the folder on a web server (https) of somebody whom respondents trust, such as a works
    council or an ombudsman. The code then comes from there, and only reports go to the collector:
    neither of both alone can change the page and read what it sends.
    """
    bundle = _bundle()
    from discreet.server.verify import split_address

    collector, survey = split_address(url)
    folder = Path(output)
    if folder.exists() and any(folder.iterdir()):
        raise FormatError(f"{output}: is not empty; name a new folder")
    files = bundle.write(folder, collector, survey)
    facts = {
        "output": output,
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "collector": collector,
        "survey": survey,
        "digest": bundle.digest,
    }
    print_facts(facts, as_json)
