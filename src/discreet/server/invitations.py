"""Invitations: codes that are used once, of which only hashes are stored.

A code is 128 random bits, written in 26 letters and digits. It travels in the fragment of a link,
which browsers do not send, and in a header of the report. The database holds its hash, in the order
of hashes: neither to whom it was given nor when it was used.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from typing import Literal

import sqlalchemy as sql

from discreet.server import database as db
from discreet.server.database import among

__all__ = ["code_hash", "invite", "link_of", "qr_code", "state_of"]

HEADER = "Invitation"
MOST = 100_000
"""Codes that are made at a time."""
LETTERS = 26


def code_hash(number: int, code: str) -> bytes | None:
    """What is stored of a code of a survey; None for what cannot be a code."""
    plain = code.replace("-", "").replace(" ", "").upper()
    if len(plain) != LETTERS:
        return None
    try:
        raw = base64.b32decode(plain + "======")
    except (binascii.Error, ValueError):
        return None
    return hashlib.sha256(b"discreet/invitation|%d|" % number + raw).digest()


def invite(connection: sql.Connection, number: int, count: int) -> list[str]:
    """Make codes; this is the only time that they are seen."""
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
    """Whether a code can be used, asked before anything is drawn."""
    hashed = code_hash(number, code)
    found = [] if hashed is None else among(connection, db.invitation, number, [hashed])
    if not found:
        return "unknown"
    return "spent" if found[0][1] else "unused"


def link_of(base: str, slug: str, code: str) -> str:
    """The link for one invited person; the part after # stays in the browser."""
    return f"{base}/s/{slug}#c={code}"


def qr_code(link: str) -> str:
    """A link as an SVG image, without styles that a strict content policy forbids."""
    import io

    import segno

    out = io.BytesIO()
    segno.make(link, error="m", micro=False).save(
        out, kind="svg", xmldecl=False, omitsize=True, dark="#000", light="#fff"
    )
    return out.getvalue().decode()
