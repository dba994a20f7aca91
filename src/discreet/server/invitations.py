"""Invitations: codes that are used once, of which only hashes are stored.

A code is 128 random bits, written in 26 letters and digits. It travels in the fragment of a link,
which browsers do not send, and in a header of the report. The database holds its hash, in the order
of hashes: neither to whom it was given nor when it was used. What was spent is written there when
its report is settled.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sql

from discreet.server import database as db
from discreet.server.database import among
from discreet.server.sealed_arrivals import live_keys, spent_in_arrivals

if TYPE_CHECKING:
    from discreet.server.surveys import Survey

__all__ = ["code_hash", "invite", "letters", "link_of", "qr_code", "state_of"]

HEADER = "Invitation"
MOST = 100_000
"""Codes that are made at a time."""
LETTERS = 26


def code_hash(number: int, code: str) -> bytes | None:
    """Hash an invitation code of a survey; None if it is not a valid code."""
    plain = code.replace("-", "").replace(" ", "").upper()
    if len(plain) != LETTERS:
        return None
    try:
        raw = base64.b32decode(plain + "======")
    except (binascii.Error, ValueError):
        return None
    return hashlib.sha256(b"discreet/invitation|%d|" % number + raw).digest()


def invite(connection: sql.Connection, number: int, count: int) -> list[str]:
    """Create invitation codes; only their hashes are stored."""
    codes = [
        base64.b32encode(secrets.token_bytes(16)).decode().rstrip("=").lower() for _ in range(count)
    ]
    hashes = sorted(filter(None, (code_hash(number, code) for code in codes)))
    rows = [{"survey": number, "hash": one, "spent": 0} for one in hashes]
    connection.execute(sql.insert(db.invitation), rows)
    return codes


def state_of(
    connection: sql.Connection, number: int, code: str
) -> Literal["unused", "spent", "unknown"]:
    """Check whether a code can be used; asked before a report is drawn."""
    hashed = code_hash(number, code)
    if hashed is None:
        return "unknown"
    found = among(connection, db.invitation, number, [hashed])
    if not found:
        return "unknown"
    keys = live_keys(connection, number, lost_allowed=True)
    waits = spent_in_arrivals(connection, number, keys, [hashed])
    return "spent" if found[0][1] or waits else "unused"


def link_of(base: str, slug: str, announced: str, code: str = "") -> str:
    """Make the link for respondents; the part after # stays in the browser.

    It names the digest of the announcement: the page refuses any other one, and any other
    document. With the code of an invitation it is for one person.
    """
    invited = f"c={code}&" if code else ""
    return f"{base}/s/{slug}#{invited}d={announced.removeprefix('sha256:')}"


def qr_code(link: str) -> str:
    """Draw a link as a QR code in SVG, without styles that the content policy forbids."""
    import io

    import segno

    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out, kind="svg", xmldecl=False, omitsize=True, dark="#000", light="#fff"
    )
    return out.getvalue().decode()


def letters(survey: Survey, base: str, codes: Sequence[str], digest: str, tag: str = "") -> str:
    """Render a page of letters to print, one per code, with its link as a QR code.

    Parameters
    ----------
    survey : Survey
    base : str
        Address of the server.
    codes : sequence of str
    digest : str
        Of the page that people will see.
    tag : str, optional
        Language; that of the announcement if not given.
    """
    from markupsafe import Markup

    from discreet.server.bundle import Bundle, templates
    from discreet.server.pages import Spoken, promised

    told = survey.announcement
    known = Bundle().words
    language = next((one for one in (tag, told.language, told.language[:2]) if one in known), "en")
    made = []
    for code in codes:
        link = link_of(base, survey.slug, told.digest, code)
        made.append((code, link, Markup(qr_code(link))))
    return (
        templates()
        .get_template("letters.html")
        .render(
            say=Spoken(language, known[language]),
            title=survey.title(language),
            told=told,
            hand=getattr(survey.collection, "device", "") == "hand",
            **promised(told.guarantee(survey.collection)),
            address=f"{base}/s/{survey.slug}",
            letters=made,
            digest=digest,
        )
    )
