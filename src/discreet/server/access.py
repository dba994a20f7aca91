"""Access control: tokens of collectors with a role, and sessions of the desk.

A token is 256 random bits; the database holds its SHA-256. There are three kinds:

- ``token``: for programs, as ``Authorization: Bearer …``;
- ``once``: in the link that ``discreet serve`` prints; :meth:`Access.exchange_link_token` exchanges
  it, one time, for a
- ``session``: in a cookie (:func:`format_session_cookie`), for the pages of the desk. A request
  with a cookie that changes something must come from our own pages (:func:`is_same_origin`).

Pages use it like this::

    grant = server.access.require_role(request, "viewer")  # token or session; raises a Problem
    session = await server.run_in_writer(lambda: server.access.exchange_link_token(token))
    answer.headers["Set-Cookie"] = format_session_cookie(session, server.settings.is_secure)

Roles: an ``owner`` may do everything, a ``viewer`` may read results and predict.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import timedelta
from http.cookies import CookieError, SimpleCookie
from typing import Literal
from urllib.parse import urlsplit

import sqlalchemy as sql
from fastapi import Request

from discreet.errors import FormatError
from discreet.server import database as db
from discreet.server.database import Database, add_times
from discreet.server.problems import Problem
from discreet.server.surveys import utc_day

__all__ = ["Access", "Grant", "Role", "format_session_cookie", "is_same_origin"]

Role = Literal["viewer", "owner"]
ROLES = ("viewer", "owner")
SESSION_COOKIE = "discreet-desk"
SESSION_DAYS = 1
LINK_TOKEN_DAYS = 1
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
CROSS_SITE_DETAIL = "the desk takes requests from its own pages only"


@dataclass(frozen=True)
class Grant:
    """The rights of a request.

    Parameters
    ----------
    role : {"viewer", "owner"}
    label : str
        Of the token.
    """

    role: str
    label: str


class Access:
    """The tokens of one database.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def create_token(
        self, role: str, label: str, kind: str = "token", days: int | None = None
    ) -> str:
        """Create a token and store its hash; the token itself is returned and not stored."""
        if role not in ROLES:
            raise FormatError(f"the role is {role!r}; write one of {', '.join(ROLES)}")
        if not label or len(label) > 100:
            raise FormatError("a token needs a label of 1 to 100 characters")
        new_token, today = secrets.token_urlsafe(32), utc_day()
        expires = None if days is None else (today + timedelta(days)).isoformat()
        with self.database.write() as connection:
            connection.execute(sql.delete(db.token).where(db.token.c.expires < today.isoformat()))
            connection.execute(
                sql.insert(db.token).values(
                    hash=_hash_token(new_token),
                    kind=kind,
                    role=role,
                    label=label,
                    made=today.isoformat(),
                    expires=expires,
                )
            )
        return new_token

    def create_link_token(self, role: str = "owner", label: str = "desk") -> str:
        """Create a token for a link, which can be exchanged once for a session."""
        return self.create_token(role, label, "once", LINK_TOKEN_DAYS)

    def exchange_link_token(self, link_token: str) -> str:
        """Exchange the token of a link for a session token; it works once."""
        token_columns = db.token.c
        with self.database.write() as connection:
            token_row = connection.execute(
                sql.delete(db.token)
                .where(token_columns.hash == _hash_token(link_token), token_columns.kind == "once")
                .returning(token_columns.role, token_columns.label, token_columns.expires)
            ).one_or_none()
        if token_row is None or token_row.expires < utc_day().isoformat():
            raise Problem(
                "unauthorized",
                "this link was used before, or is too old; start discreet serve "
                "again for another one",
            )
        return self.create_token(token_row.role, token_row.label, "session", SESSION_DAYS)

    def end_session(self, session: str) -> None:
        """End a session."""
        with self.database.write() as connection:
            connection.execute(sql.delete(db.token).where(db.token.c.hash == _hash_token(session)))

    def revoke_tokens(self, label: str) -> int:
        """Delete all tokens of a label and the sessions made from them; return their number."""
        with self.database.write() as connection:
            deleted_tokens = connection.execute(
                sql.delete(db.token).where(db.token.c.label == label)
            )
            return int(deleted_tokens.rowcount)

    def list_tokens(self) -> list[dict[str, str | None]]:
        """List kinds, roles, labels and days of all tokens."""
        listed_columns = [column for column in db.token.columns if column is not db.token.c.hash]
        with self.database.read() as connection:
            rows = connection.execute(sql.select(*listed_columns).order_by(db.token.c.label))
            return [dict(row) for row in rows.mappings()]

    def find_grant(self, token: str, kind: str) -> Grant | None:
        """Find the grant of a token; every stored hash is compared, in constant time."""
        token_hash, today, grant = _hash_token(token), utc_day().isoformat(), None
        with self.database.read() as connection:
            for row in connection.execute(sql.select(db.token).where(db.token.c.kind == kind)):
                hashes_match = hmac.compare_digest(bytes(row.hash), token_hash)
                if hashes_match and (row.expires is None or row.expires >= today):
                    grant = Grant(row.role, row.label)
        return grant

    def require_role(self, request: Request, role: Role) -> Grant:
        """Return the grant of a request; refuse a missing or wrong token or too low a role."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        grant = None
        if scheme.lower() == "bearer" and token:
            grant = self.find_grant(token.strip(), "token")
        elif session := read_session(request):
            grant = self.find_grant(session, "session")
            if (
                grant is not None
                and request.method not in SAFE_METHODS
                and not is_same_origin(request)
            ):
                raise Problem("cross-site", CROSS_SITE_DETAIL)
        if grant is None:
            raise Problem("unauthorized", "send a valid token as 'Authorization: Bearer …'")
        if ROLES.index(grant.role) < ROLES.index(role):
            raise Problem("forbidden", f"this needs the role {role}; the token has {grant.role}")
        return grant

    def record_action(self, connection: sql.Connection, grant: Grant, action: str) -> None:
        """Count an action done with a token, by day."""
        row = {"day": utc_day().isoformat(), "label": grant.label, "what": action, "times": 1}
        add_times(connection, db.action, [row])


def _hash_token(token: str) -> bytes:
    return hashlib.sha256(b"discreet/token|" + token.encode()).digest()


def read_session(request: Request) -> str:
    """Read the session token from the cookie of a request."""
    try:
        cookies = SimpleCookie(request.headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[SESSION_COOKIE].value if SESSION_COOKIE in cookies else ""


def format_session_cookie(session: str, secure: bool) -> str:
    """Format the header ``Set-Cookie`` of a session; an empty session deletes it."""
    cookie_attributes = [f"{SESSION_COOKIE}={session}", "Path=/", "HttpOnly", "SameSite=Strict"]
    cookie_attributes += ["Secure"] * secure + ["Max-Age=0"] * (not session)
    return "; ".join(cookie_attributes)


def is_same_origin(request: Request) -> bool:
    """Whether the browser states that one of our own pages made the request."""
    fetch_site = request.headers.get("sec-fetch-site")
    if fetch_site is not None:
        return fetch_site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host", "")
