"""Comparison of a served page with that of this release, for ``discreet verify URL``."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, urljoin, urlsplit

from discreet.collection.announcement import Announcement
from discreet.errors import DiscreetError, FormatError
from discreet.files.documents import compute_digest, parse_json
from discreet.server.bundle import RELATIVE_STATIC_ROOT, STATIC_ROOT, Bundle

__all__ = ["ComparedFile", "split_address", "verify_page"]

Fetch = Callable[[str], tuple[int, bytes, str]]
"""Address -> status, body, content policy."""


@dataclass(frozen=True)
class ComparedFile:
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
    url_parts = urlsplit(url)
    match = re.fullmatch(r"(.*)/s/([a-z0-9-]{1,64})/?", url_parts.path)
    if url_parts.scheme not in ("http", "https") or not url_parts.netloc or match is None:
        raise FormatError(
            f"{url!r} is not the link of a survey; write https://survey.example.org/s/NAME"
        )
    return f"{url_parts.scheme}://{url_parts.netloc}{match[1]}", match[2]


def _read_setting(page: str, setting_name: str) -> str:
    match = re.search(rf'<meta name="discreet-{setting_name}" content="([^"]*)">', page)
    return html.unescape(match[1]) if match else ""


def _describe_difference(expected: bytes, actual: bytes) -> str:
    if expected == actual:
        return ""
    first_difference = next(
        (position for position, (a, b) in enumerate(zip(expected, actual, strict=False)) if a != b),
        min(len(expected), len(actual)),
    )
    return (
        f"differs from byte {first_difference:,} on ({len(actual):,} bytes, not {len(expected):,})"
    )


def verify_page(url: str, fetch: Fetch, bundle: Bundle | None = None) -> list[ComparedFile]:
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
    expected_bundle = bundle or Bundle()
    address = url.partition("#")[0]
    status, body, policy = fetch(address)
    page_text = body.decode("utf-8", "replace")
    if status != 200:
        return [ComparedFile("the page", False, f"the server answers {status}")]
    collector, survey = _read_setting(page_text, "collector"), _read_setting(page_text, "survey")
    comparisons = []
    if collector:
        expected_page = expected_bundle.render_page(collector, survey)
        static_root = urljoin(address, RELATIVE_STATIC_ROOT)
    else:
        collector, survey = split_address(address)
        expected_page, static_root = expected_bundle.render_page(), collector + STATIC_ROOT
        difference = "" if policy == expected_bundle.build_policy() else f"is {policy!r}"
        comparisons.append(ComparedFile("content policy", not difference, difference))
    difference = _describe_difference(expected_page.encode(), body)
    comparisons.insert(0, ComparedFile("the page", not difference, difference))
    for file_name, content in expected_bundle.files.items():
        status, body, _ = fetch(static_root + file_name)
        difference = f"status {status}" if status != 200 else _describe_difference(content, body)
        comparisons.append(ComparedFile(file_name, not difference, difference))
    expected_digest = parse_qs(url.partition("#")[2]).get("d", [""])[0]
    return [
        *comparisons,
        *_verify_announcement(f"{collector}/api/v1/surveys/{survey}", expected_digest, fetch),
    ]


def _verify_announcement(address: str, expected_digest: str, fetch: Fetch) -> list[ComparedFile]:
    """Verify announcement and document against the digests in the link and announcement."""
    status, announcement_body, _ = fetch(address)
    document_status, body, _ = fetch(f"{address}/document")
    if status != 200 or document_status != 200:
        detail = f"the collector answers {max(status, document_status)}"
        return [ComparedFile("announcement", False, detail)]
    try:
        announcement_text = json.dumps(parse_json(announcement_body)["announcement"])
        announcement = Announcement.from_json(announcement_text)
    except (ValueError, KeyError, TypeError, DiscreetError):
        return [ComparedFile("announcement", False, "it was changed or cannot be read")]
    named_digest = f"sha256:{expected_digest}" if expected_digest else ""
    digest_pairs = (
        ("announcement", announcement.digest, named_digest),
        ("document", compute_digest(body), announcement.collection),
    )
    return [
        ComparedFile(
            document_name,
            not named_digest or actual_digest == named_digest,
            actual_digest if actual_digest == named_digest else f"is {actual_digest}",
        )
        for document_name, actual_digest, named_digest in digest_pairs
    ]
