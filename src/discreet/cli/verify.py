"""``discreet verify`` and ``page``: check a survey's page, or write it for another host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from discreet.cli.files import NEW_FOLDER
from discreet.cli.output import format_example, json_option, print_facts, print_json
from discreet.errors import DiscreetError, FormatError, MissingDependencyError

__all__ = ["page", "verify"]


def _load_bundle() -> Any:
    try:
        from discreet.server.bundle import Bundle
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "server") from None
    return Bundle()


@click.command(
    epilog=format_example(
        "discreet verify https://survey.example.org/s/health",
        "discreet verify https://survey.example.org/s/health --release page.sha256",
        "discreet verify",
    )
)
@click.argument("url", required=False)
@click.option(
    "--release",
    type=click.Path(exists=True, dir_okay=False),
    help="File page.sha256 of a release: check that it lists the page of this program.",
)
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="Print the list of files and their hashes, as in page.sha256.",
)
@json_option
def verify(url: str | None, release: str | None, listed: bool, as_json: bool) -> None:
    """Compare the survey page at URL with the one of this release, byte by byte.

    Compares everything that the page loads and its content security policy, and checks that
    announcement and document have the digests that are stated on the page and in the link (#d=…).
    Without URL: print the digest of this release's page, which is also on the page and in letters;
    it is the SHA-256 of the file page.sha256 of a release. A server may show others another page
    than you: verify from several places, and never with a personal link.
    """
    bundle = _load_bundle()
    if release is not None and Path(release).read_bytes() != bundle.hash_listing.encode():
        raise DiscreetError(
            f"{release}: lists a different page from this program's ({bundle.digest}); install the "
            "release that the file belongs to, and verify with that"
        )
    if listed:
        click.echo(bundle.hash_listing, nl=False)
        return
    if url is None:
        if as_json:
            print_json({"digest": bundle.digest})
        else:
            click.echo(bundle.digest)
        return
    import httpx

    from discreet.server.verify import verify_page as compare_page

    with httpx.Client(timeout=30) as client:

        def fetch_url(address: str) -> tuple[int, bytes, str]:
            try:
                response = client.get(address)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".")
                raise FormatError(
                    f"{address}: cannot be reached: {reason}; check the address and the network"
                ) from None
            policy = response.headers.get("content-security-policy", "")
            return response.status_code, response.content, policy

        compared_files = compare_page(url, fetch_url, bundle)
    is_same = all(compared_file.same for compared_file in compared_files)
    if as_json:
        file_bodies = [vars(compared_file) for compared_file in compared_files]
        print_json({"url": url, "same": is_same, "digest": bundle.digest, "files": file_bodies})
    else:
        width = max(len(compared_file.name) for compared_file in compared_files)
        for compared_file in compared_files:
            mark = "same   " if compared_file.same else "CHANGED"
            click.echo(f"{mark}  {compared_file.name:<{width}}  {compared_file.detail}".rstrip())
        click.echo(f"digest   {bundle.digest}")
    if not is_same:
        raise DiscreetError(
            "this is not the page of this release: do not answer there. It may also be that of "
            "another release; compare with that one"
        )


@click.command(epilog=format_example("discreet page https://survey.example.org/s/health -o health"))
@click.argument("url")
@click.option(
    "-o", "--output", type=NEW_FOLDER, required=True, help="The folder to write; it must be new."
)
@json_option
def page(url: str, output: str, as_json: bool) -> None:
    """Write the page of the survey at URL as files, for the host of another party.

    Put the folder on a web server (https) of somebody whom respondents trust, such as a works
    council or an ombudsman. The code then comes from there, and only reports go to the collector:
    neither of them alone can both change the page and read what it sends.
    """
    bundle = _load_bundle()
    from discreet.server.verify import split_address

    collector_url, survey_name = split_address(url)
    page_folder = Path(output)
    if page_folder.exists() and any(page_folder.iterdir()):
        raise FormatError(f"{output}: is not empty; name a new folder")
    page_files = bundle.write_files(page_folder, collector_url, survey_name)
    summary = {
        "output": output,
        "files": len(page_files),
        "bytes": sum(path.stat().st_size for path in page_files),
        "collector": collector_url,
        "survey": survey_name,
        "digest": bundle.digest,
    }
    print_facts(summary, as_json)
