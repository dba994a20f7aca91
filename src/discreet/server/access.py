"""Access control: tokens of collectors with a role, and sessions of the desk.

A token is 256 random bits; the database holds its SHA-256. There are three kinds:

- ``token``: for programs, as ``Authorization: Bearer …``;
- ``once``: in the link that ``discreet serve`` prints; :meth:`Access.enter` exchanges it, one time,
  for a
- ``session``: in a cookie (:func:`session_cookie`), for the pages of the desk. A request with a
  cookie that changes something must come from our own pages (:func:`same_origin`).

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
from discreet.server.database import Database, insert_of
from discreet.server.problems import Problem
from discreet.server.surveys import utc_day

__all__ = ["Access", "Grant", "Role", "same_origin", "session_cookie"]

Role = Literal["viewer", "owner"]
ROLES = ("viewer", "owner")
COOKIE = "discreet-desk"
SESSION_DAYS = 1
ONCE_DAYS = 1
SAFE = {"GET", "HEAD", "OPTIONS"}


@dataclass(frozen=True)
class Grant:
    """The rights of a request.

    Parameters
    ----------
    role : {"viewer", "owner"}
    label : str
        Of the token.
    kind : {"token", "session"}
    """

    role: str
    label: str
    kind: str


class Access:
    """The tokens of one database.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def make(self, role: str, label: str, kind: str = "token", days: int | None = None) -> str:
        """Create a token and store its hash; the token itself is returned and not stored."""
        if role not in ROLES:
            raise FormatError(f"the role is {role!r}; write one of {', '.join(ROLES)}")
        if not label or len(label) > 100:
            raise FormatError("a token needs a label of 1 to 100 characters")
        made, today = secrets.token_urlsafe(32), utc_day()
        expires = None if days is None else (today + timedelta(days)).isoformat()
        with self.database.write() as connection:
            self._sweep(connection)
            connection.execute(
                sql.insert(db.token).values(
                    hash=_hash(made),
                    kind=kind,
                    role=role,
                    label=label,
                    made=today.isoformat(),
                    expires=expires,
                )
            )
        return made

    @staticmethod
    def _sweep(connection: sql.Connection) -> None:
        here = db.token.c
        connection.execute(sql.delete(db.token).where(here.expires < utc_day().isoformat()))

    def once(self, role: str = "owner", label: str = "desk") -> str:
        """Create a token for a link, which can be exchanged once for a session."""
        return self.make(role, label, "once", ONCE_DAYS)

    def enter(self, once: str) -> str:
        """Exchange the token of a link for a session token; it works once."""
        here = db.token.c
        with self.database.write() as connection:
            found = connection.execute(
                sql.delete(db.token)
                .where(here.hash == _hash(once), here.kind == "once")
                .returning(here.role, here.label, here.expires)
            ).one_or_none()
        if found is None or found.expires < utc_day().isoformat():
            raise Problem(
                "unauthorized",
                "this link was used before, or is too old; start discreet serve "
                "again for another one",
            )
        return self.make(found.role, found.label, "session", SESSION_DAYS)

    def leave(self, session: str) -> None:
        """End a session."""
        with self.database.write() as connection:
            connection.execute(sql.delete(db.token).where(db.token.c.hash == _hash(session)))

    def revoke(self, label: str) -> int:
        """Delete all tokens of a label and the sessions made from them; return their number."""
        with self.database.write() as connection:
            gone = connection.execute(sql.delete(db.token).where(db.token.c.label == label))
            return int(gone.rowcount)

    def listed(self) -> list[dict[str, str | None]]:
        """List kinds, roles, labels and days of all tokens."""
        here = db.token.c
        columns = (here.kind, here.role, here.label, here.made, here.expires)
        with self.database.read() as connection:
            rows = connection.execute(sql.select(*columns).order_by(here.label)).mappings()
            return [dict(row) for row in rows]

    def grant_of(self, token: str, kind: str) -> Grant | None:
        """Find the grant of a token; every stored hash is compared, in constant time."""
        wanted, today, found = _hash(token), utc_day().isoformat(), None
        with self.database.read() as connection:
            for row in connection.execute(sql.select(db.token).where(db.token.c.kind == kind)):
                same = hmac.compare_digest(bytes(row.hash), wanted)
                if same and (row.expires is None or row.expires >= today):
                    found = Grant(row.role, row.label, kind)
        return found

    def require(self, request: Request, role: Role) -> Grant:
        """Return the grant of a request; refuse a missing or wrong token or too low a role."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        grant = None
        if scheme.lower() == "bearer" and token:
            grant = self.grant_of(token.strip(), "token")
        elif session := session_of(request):
            grant = self.grant_of(session, "session")
            if grant is not None and request.method not in SAFE and not same_origin(request):
                raise Problem("cross-site", "the desk takes requests from its own pages only")
        if grant is None:
            raise Problem("unauthorized", "send a valid token as 'Authorization: Bearer …'")
        if ROLES.index(grant.role) < ROLES.index(role):
            raise Problem("forbidden", f"this needs the role {role}; the token has {grant.role}")
        return grant

    def note(self, connection: sql.Connection, grant: Grant, what: str) -> None:
        """Count an action done with a token, by day."""
        upsert = insert_of(connection, db.action)
        here = db.action.c
        upsert = upsert.on_conflict_do_update(
            index_elements=[here.day, here.label, here.what], set_={"times": here.times + 1}
        )
        row = {"day": utc_day().isoformat(), "label": grant.label, "what": what, "times": 1}
        connection.execute(upsert, [row])


def _hash(token: str) -> bytes:
    return hashlib.sha256(b"discreet/token|" + token.encode()).digest()


def session_of(request: Request) -> str:
    """Read the session token from the cookie of a request."""
    try:
        cookies = SimpleCookie(request.headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""


def session_cookie(session: str, secure: bool) -> str:
    """Format the header ``Set-Cookie`` of a session; an empty session deletes it."""
    parts = [f"{COOKIE}={session}", "Path=/", "HttpOnly", "SameSite=Strict"]
    parts += ["Secure"] * secure + ["Max-Age=0"] * (not session)
    return "; ".join(parts)


def same_origin(request: Request) -> bool:
    """Whether the browser states that one of our own pages made the request."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host", "")
