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
from discreet.server.database import find_rows
from discreet.server.sealed_arrivals import find_spent_codes, load_live_keys

if TYPE_CHECKING:
    from discreet.server.surveys import Survey

__all__ = ["check_code", "create_codes", "draw_qr_code", "hash_code", "make_link", "render_letters"]

INVITATION_HEADER = "Invitation"
MAX_CODES = 100_000
"""Codes that are made at a time."""
CODE_LENGTH = 26


def hash_code(survey_number: int, code: str) -> bytes | None:
    """Hash an invitation code of a survey; None if it is not a valid code."""
    plain_code = code.replace("-", "").replace(" ", "").upper()
    if len(plain_code) != CODE_LENGTH:
        return None
    try:
        code_bytes = base64.b32decode(plain_code + "======")
    except (binascii.Error, ValueError):
        return None
    return hashlib.sha256(b"discreet/invitation|%d|" % survey_number + code_bytes).digest()


def create_codes(connection: sql.Connection, survey_number: int, count: int) -> list[str]:
    """Create invitation codes; only their hashes are stored."""
    codes = [
        base64.b32encode(secrets.token_bytes(16)).decode().rstrip("=").lower() for _ in range(count)
    ]
    hashed_codes = sorted(filter(None, (hash_code(survey_number, code) for code in codes)))
    invitation_rows = [
        {"survey": survey_number, "hash": hashed_code, "spent": 0} for hashed_code in hashed_codes
    ]
    connection.execute(sql.insert(db.invitation), invitation_rows)
    return codes


def check_code(
    connection: sql.Connection, survey_number: int, code: str
) -> Literal["unused", "spent", "unknown"]:
    """Check whether a code can be used; asked before a report is drawn."""
    hashed_code = hash_code(survey_number, code)
    if hashed_code is None:
        return "unknown"
    invitation_rows = find_rows(connection, db.invitation, survey_number, [hashed_code])
    if not invitation_rows:
        return "unknown"
    keys = load_live_keys(connection, survey_number, lost_allowed=True)
    waiting_codes = find_spent_codes(connection, survey_number, keys, [hashed_code])
    return "spent" if invitation_rows[0][1] or waiting_codes else "unused"


def make_link(base_url: str, slug: str, announcement_digest: str, code: str = "") -> str:
    """Make the link for respondents; the part after # stays in the browser.

    It names the digest of the announcement: the page refuses any other one, and any other
    document. With the code of an invitation it is for one person.
    """
    code_part = f"c={code}&" if code else ""
    return f"{base_url}/s/{slug}#{code_part}d={announcement_digest.removeprefix('sha256:')}"


def draw_qr_code(link: str) -> str:
    """Draw a link as a QR code in SVG, without styles that the content policy forbids."""
    import io

    import segno

    svg_file = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        svg_file, kind="svg", xmldecl=False, omitsize=True, dark="#000", light="#fff"
    )
    return svg_file.getvalue().decode()


def render_letters(
    survey: Survey, base_url: str, codes: Sequence[str], digest: str, tag: str = ""
) -> str:
    """Render a page of letters to print, one per code, with its link as a QR code.

    Parameters
    ----------
    survey : Survey
    base_url : str
        Address of the server.
    codes : sequence of str
    digest : str
        Of the page that people will see.
    tag : str, optional
        Language; that of the announcement if not given.
    """
    from markupsafe import Markup

    from discreet.server.bundle import Bundle, load_templates
    from discreet.server.pages import Translator, describe_guarantee

    announcement = survey.announcement
    catalogues = Bundle().words
    wanted_tags = (tag, announcement.language, announcement.language[:2])
    language = next((wanted_tag for wanted_tag in wanted_tags if wanted_tag in catalogues), "en")
    code_letters = []
    for code in codes:
        link = make_link(base_url, survey.slug, announcement.digest, code)
        code_letters.append((code, link, Markup(draw_qr_code(link))))
    template = load_templates().get_template("letters.html")
    return template.render(
        say=Translator(language, catalogues[language]),
        title=survey.title(language),
        told=announcement,
        hand=survey.collection.device == "hand",
        **describe_guarantee(announcement.make_guarantee(survey.collection)),
        address=f"{base_url}/s/{survey.slug}",
        letters=code_letters,
        digest=digest,
    )
