"""Comparison of a served page with that of this release, for ``discreet verify URL``."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, urljoin, urlsplit

from discreet.announcement import Announcement
from discreet.documents import digest_of, parse_json
from discreet.errors import DiscreetError, FormatError
from discreet.server.bundle import ABROAD, ROOT, Bundle

__all__ = ["Compared", "split_address", "verify"]

Fetch = Callable[[str], tuple[int, bytes, str]]
"""Address -> status, body, content policy."""


@dataclass(frozen=True)
class Compared:
    """The comparison of one file.

    Parameters
    ----------
    name : str
    same : bool
    detail : str
        Description of the difference.
    """

    name: str
    same: bool
    detail: str = ""


def split_address(url: str) -> tuple[str, str]:
    """Split the respondents' link into server and name of the survey.

    Parameters
    ----------
    url : str

    Examples
    --------
    >>> split_address("https://survey.example.org/s/health#c=abc")
    ('https://survey.example.org', 'health')
    """
    parts = urlsplit(url)
    found = re.fullmatch(r"(.*)/s/([a-z0-9-]{1,64})/?", parts.path)
    if parts.scheme not in ("http", "https") or not parts.netloc or found is None:
        raise FormatError(
            f"{url!r} is not the link of a survey; write https://survey.example.org/s/NAME"
        )
    return f"{parts.scheme}://{parts.netloc}{found[1]}", found[2]


def _setting(page: str, name: str) -> str:
    found = re.search(rf'<meta name="discreet-{name}" content="([^"]*)">', page)
    return html.unescape(found[1]) if found else ""


def _difference(expected: bytes, found: bytes) -> str:
    if expected == found:
        return ""
    place = next(
        (k for k, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b),
        min(len(expected), len(found)),
    )
    return f"differs from byte {place:,} on ({len(found):,} bytes, not {len(expected):,})"


def verify(url: str, fetch: Fetch, bundle: Bundle | None = None) -> list[Compared]:
    """Compare a page, everything it loads, its policy, its announcement and its document.

    Parameters
    ----------
    url : str
        Of a survey on a server, or of the same page on another host; with ``#d=…`` the announcement
        must have that digest.
    fetch : callable
        Returns (status, body, content policy) of an address.
    bundle : Bundle, optional
        The expected page; that of this release if not given.
    """
    made = bundle or Bundle()
    address = url.partition("#")[0]
    status, body, policy = fetch(address)
    page = body.decode("utf-8", "replace")
    if status != 200:
        return [Compared("the page", False, f"the server answers {status}")]
    collector, survey = _setting(page, "collector"), _setting(page, "survey")
    found = []
    if collector:
        expected, root = made.page(collector, survey), urljoin(address, ABROAD)
    else:
        collector, survey = split_address(address)
        expected, root = made.page(), collector + ROOT
        right = policy == made.policy()
        found.append(Compared("content policy", right, "" if right else f"is {policy!r}"))
    difference = _difference(expected.encode(), body)
    found.insert(0, Compared("the page", not difference, difference))
    for name, content in made.files.items():
        status, body, _ = fetch(root + name)
        difference = f"status {status}" if status != 200 else _difference(content, body)
        found.append(Compared(name, not difference, difference))
    wanted = parse_qs(url.partition("#")[2]).get("d", [""])[0]
    return [*found, *_announced(f"{collector}/api/v1/surveys/{survey}", wanted, fetch)]


def _announced(address: str, wanted: str, fetch: Fetch) -> list[Compared]:
    """Verify announcement and document against the digests in the link and announcement."""
    (status, told, _), (other, body, _) = fetch(address), fetch(f"{address}/document")
    if status != 200 or other != 200:
        return [Compared("announcement", False, f"the collector answers {max(status, other)}")]
    try:
        announcement = Announcement.from_json(json.dumps(parse_json(told)["announcement"]))
    except (ValueError, KeyError, TypeError, DiscreetError):
        return [Compared("announcement", False, "it was changed or cannot be read")]
    pairs = (
        ("announcement", announcement.digest, f"sha256:{wanted}" if wanted else ""),
        ("document", digest_of(body), announcement.collection),
    )
    return [
        Compared(name, not named or found == named, found if found == named else f"is {found}")
        for name, found, named in pairs
    ]
