"""Refusals of the server as RFC 9457 problems: one class, one table of types.

A problem is ``application/problem+json`` with ``type`` (``urn:discreet:problem:…``), ``title``,
``status`` and ``detail``. Programs read the type, people the detail. Nothing of a report is
repeated in it.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from discreet.errors import DiscreetError
from discreet.server.keys import KeysError

__all__ = [
    "NOTICES",
    "TYPES",
    "Problem",
    "ProblemBody",
    "handlers",
    "problem_response",
    "responses",
]

URN = "urn:discreet:problem:"
MEDIA = "application/problem+json"

TYPES: dict[str, tuple[int, str]] = {
    "unauthorized": (401, "A token is needed"),
    "forbidden": (403, "This token does not allow it"),
    "cross-site": (403, "The request came from another site"),
    "invitation": (403, "An unused invitation is needed"),
    "wrong-key": (403, "The key does not belong to this report"),
    "no-withdrawal": (403, "Reports to this survey cannot be withdrawn"),
    "not-open": (403, "The survey is not open yet"),
    "not-found": (404, "There is nothing here"),
    "method": (405, "This method is not possible here"),
    "slow": (408, "The body came too slowly"),
    "id-reused": (409, "Another report with this id was stored before"),
    "exists": (409, "A survey of this name exists"),
    "state": (409, "The survey is in another state"),
    "small-batch": (409, "Too few reports wait to be settled together"),
    "no-reports": (409, "Too few reports for an estimate"),
    "closed": (410, "The survey is closed"),
    "withdrawn": (410, "The report was withdrawn"),
    "oversized": (413, "The body is too long"),
    "media-type": (415, "The body has another media type"),
    "report": (422, "The report is refused"),
    "invalid": (422, "The content is invalid"),
    "too-many": (429, "Too many requests from this address"),
    "internal": (500, "The server failed"),
    "busy": (503, "Too many requests wait already"),
    "unavailable": (503, "The database does not answer"),
}
"""Name of the type -> HTTP status and title; docs/how-to/serve-a-survey.md explains each."""

MOST_NOTICES = 100
"""Largest number of different lines for the operator per day."""
AGAIN = {"too-many": 5, "busy": 2, "unavailable": 5}
"""Seconds after which to try again."""


class Problem(DiscreetError):  # noqa: N818 - the term of RFC 9457
    """A refusal of one of the :data:`TYPES`.

    Parameters
    ----------
    kind : str
        Name of the type.
    detail : str
        One sentence for people.
    **more
        Further members of the body.
    """

    def __init__(self, kind: str, detail: str = "", **more: Any) -> None:
        self.kind, self.status, self.title = kind, *TYPES[kind]
        self.detail, self.more = detail or self.title, more
        super().__init__(self.detail)

    def body(self) -> dict[str, Any]:
        """The members of the JSON object."""
        return {
            "type": URN + self.kind,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }


class ProblemBody(BaseModel):
    """The JSON body of a refusal (RFC 9457)."""

    type: str = Field(description="urn:discreet:problem:…")
    title: str
    status: int
    detail: str
    fault: str | None = Field(None, description="Why a report is refused")


def problem_response(problem: Problem) -> Response:
    """Make the response of a problem."""
    headers = {}
    if problem.kind in AGAIN:
        headers["Retry-After"] = str(AGAIN[problem.kind])
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    text = json.dumps(problem.body(), ensure_ascii=False)
    return Response(text, problem.status, headers, MEDIA)


def responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of a route for OpenAPI."""
    titles: dict[int | str, list[str]] = {}
    for kind in kinds:
        titles.setdefault(TYPES[kind][0], []).append(f"`{kind}`: {TYPES[kind][1]}")
    content = {MEDIA: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    return {
        status: {"description": "; ".join(some), "content": content}
        for status, some in sorted(titles.items(), key=str)
    }


def handlers(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """Register handlers that answer every failure with a problem, without what was sent."""

    @app.exception_handler(Problem)
    async def refused(_: Request, problem: Problem) -> Response:
        return problem_response(problem)

    @app.exception_handler(DiscreetError)
    async def wrong(_: Request, error: DiscreetError) -> Response:
        return problem_response(Problem("invalid", " ".join(str(error).split())))

    @app.exception_handler(KeysError)
    async def keyless(_: Request, error: KeysError) -> Response:
        NOTICES.print(str(error))
        return problem_response(Problem("unavailable"))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return problem_response(Problem("invalid", f"{where}: {first['msg']}"))

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and (address := _without_slash(routers, request)):
            return RedirectResponse(address, 307)
        if error.status_code == 405:
            answer = problem_response(Problem("method"))
            answer.headers["Allow"] = ", ".join(sorted(_methods(routers, request)))
            return answer
        return problem_response(Problem("not-found" if error.status_code == 404 else "invalid"))

    @app.exception_handler(SQLAlchemyError)
    async def gone(_: Request, error: SQLAlchemyError) -> Response:
        NOTICES.print(f"the database failed: {reason_of(error)}")
        return problem_response(Problem("unavailable"))

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        return problem_response(internal(error))


def _methods(routers: Sequence[APIRouter], request: Request) -> set[str]:
    """List the methods that the path of a request supports."""
    found: set[str] = set()
    for route in (route for router in routers for route in router.routes):
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return found


def _without_slash(routers: Sequence[APIRouter], request: Request) -> str:
    """Find the address without a trailing slash; empty if no route matches it.

    The address has no host: the header ``Host`` of a client or proxy is not repeated.
    """
    path = request.url.path.rstrip("/")
    if path == request.url.path or not path:
        return ""
    scope = {**request.scope, "path": path}
    for route in (route for router in routers for route in router.routes):
        if route.matches(scope)[0] is not Match.NONE:
            return quote(path) + (f"?{request.url.query}" if request.url.query else "")
    return ""


class Notices:
    """Lines for the operator, each once per day: one per request would be a list of visits."""

    def __init__(self) -> None:
        self._printed: set[str] = set()
        self._day: date | None = None

    def print(self, line: str) -> None:
        """Print a line unless it was printed today."""
        today = datetime.now(UTC).date()
        if today != self._day:
            self._day, self._printed = today, set()
        if line not in self._printed and len(self._printed) < MOST_NOTICES:
            with suppress(OSError):  # the disk of the log may be full, too
                print(f"discreet: {line}", file=sys.stderr, flush=True)
                self._printed.add(line)


NOTICES = Notices()


def reason_of(error: SQLAlchemyError) -> str:
    """Format the message of a database error, without the statement and its values."""
    return " ".join(str(getattr(error, "orig", "") or type(error).__name__).split())[:300]


def internal(error: BaseException) -> Problem:
    """Make the problem of a bug; its place is printed, nothing of the request is."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    where = " < ".join(f"{one.filename.rpartition('/')[2]}:{one.lineno}" for one in frames[::-1])
    NOTICES.print(f"internal error {type(error).__name__} at {where}")
    return Problem("internal")
