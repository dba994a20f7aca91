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
from discreet.server.keys import KeyFolderError

__all__ = [
    "NOTICES",
    "PROBLEM_TYPES",
    "Problem",
    "ProblemBody",
    "add_problem_handlers",
    "describe_responses",
    "make_missing_problem",
    "make_problem_response",
]

URN_PREFIX = "urn:discreet:problem:"
PROBLEM_MEDIA_TYPE = "application/problem+json"

PROBLEM_TYPES: dict[str, tuple[int, str]] = {
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

MAX_DAILY_NOTICES = 100
"""Largest number of different lines for the operator per day."""
RETRY_AFTER_SECONDS = {"too-many": 5, "busy": 2, "unavailable": 5}
"""Seconds after which to try again."""


class Problem(DiscreetError):  # noqa: N818 - the term of RFC 9457
    """A refusal of one of the :data:`PROBLEM_TYPES`.

    Parameters
    ----------
    kind : str
        Name of the type.
    detail : str
        One sentence for people.
    **extra_members
        Further members of the body.
    """

    def __init__(self, kind: str, detail: str = "", **extra_members: Any) -> None:
        self.kind, self.status, self.title = kind, *PROBLEM_TYPES[kind]
        self.detail, self.extra_members = detail or self.title, extra_members
        super().__init__(self.detail)

    def to_body(self) -> dict[str, Any]:
        """The members of the JSON object."""
        return {
            "type": URN_PREFIX + self.kind,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.extra_members,
        }


def make_missing_problem() -> Problem:
    """Make the problem of a survey that is not here, or that nobody has to know of."""
    return Problem("not-found", "there is no survey of this name here")


class ProblemBody(BaseModel):
    """The JSON body of a refusal (RFC 9457)."""

    type: str = Field(description="urn:discreet:problem:…")
    title: str
    status: int
    detail: str
    fault: str | None = Field(None, description="Why a report is refused")


def make_problem_response(problem: Problem) -> Response:
    """Make the response of a problem."""
    headers = {}
    if problem.kind in RETRY_AFTER_SECONDS:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS[problem.kind])
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body_text = json.dumps(problem.to_body(), ensure_ascii=False)
    return Response(body_text, problem.status, headers, PROBLEM_MEDIA_TYPE)


def describe_responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of a route for OpenAPI."""
    titles_by_status: dict[int | str, list[str]] = {}
    for kind in kinds:
        titles_by_status.setdefault(PROBLEM_TYPES[kind][0], []).append(
            f"`{kind}`: {PROBLEM_TYPES[kind][1]}"
        )
    content = {PROBLEM_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    return {
        status: {"description": "; ".join(status_titles), "content": content}
        for status, status_titles in sorted(titles_by_status.items(), key=str)
    }


def add_problem_handlers(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """Register handlers that answer every failure with a problem, without what was sent."""

    @app.exception_handler(Problem)
    async def handle_problem(_: Request, problem: Problem) -> Response:
        return make_problem_response(problem)

    @app.exception_handler(DiscreetError)
    async def handle_invalid_content(_: Request, error: DiscreetError) -> Response:
        return make_problem_response(Problem("invalid", " ".join(str(error).split())))

    @app.exception_handler(KeyFolderError)
    async def handle_key_error(_: Request, error: KeyFolderError) -> Response:
        NOTICES.print_once(str(error))
        return make_problem_response(Problem("unavailable"))

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(_: Request, error: RequestValidationError) -> Response:
        first_error = error.errors()[0]
        field_path = ".".join(str(path_step) for path_step in first_error["loc"])
        return make_problem_response(Problem("invalid", f"{field_path}: {first_error['msg']}"))

    @app.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and (address := _find_without_slash(routers, request)):
            return RedirectResponse(address, 307)
        if error.status_code == 405:
            problem_answer = make_problem_response(Problem("method"))
            problem_answer.headers["Allow"] = ", ".join(sorted(_list_methods(routers, request)))
            return problem_answer
        return make_problem_response(
            Problem("not-found" if error.status_code == 404 else "invalid")
        )

    @app.exception_handler(SQLAlchemyError)
    async def handle_database_error(_: Request, error: SQLAlchemyError) -> Response:
        NOTICES.print_once(f"the database failed: {format_reason(error)}")
        return make_problem_response(Problem("unavailable"))

    @app.exception_handler(Exception)
    async def handle_internal_error(_: Request, error: Exception) -> Response:
        return make_problem_response(make_internal_problem(error))


def _list_methods(routers: Sequence[APIRouter], request: Request) -> set[str]:
    """List the methods that the path of a request supports."""
    allowed_methods: set[str] = set()
    for route in _list_matching(routers, request.scope):
        allowed_methods |= getattr(route, "methods", None) or set()
    return allowed_methods


def _list_matching(routers: Sequence[APIRouter], scope: Any) -> list[Any]:
    """List the routes for a path, whatever the method."""
    routes = (route for router in routers for route in router.routes)
    return [route for route in routes if route.matches(scope)[0] is not Match.NONE]


def _find_without_slash(routers: Sequence[APIRouter], request: Request) -> str:
    """Find the address without a trailing slash; empty if no route matches it.

    The address has no host: the header ``Host`` of a client or proxy is not repeated.
    """
    path = request.url.path.rstrip("/")
    if path == request.url.path or not path:
        return ""
    if not _list_matching(routers, {**request.scope, "path": path}):
        return ""
    return quote(path) + (f"?{request.url.query}" if request.url.query else "")


class Notices:
    """Lines for the operator, each once per day: one per request would be a list of visits."""

    def __init__(self) -> None:
        self._printed: set[str] = set()
        self._day: date | None = None

    def print_once(self, line: str) -> None:
        """Print a line unless it was printed today."""
        today = datetime.now(UTC).date()
        if today != self._day:
            self._day, self._printed = today, set()
        if line not in self._printed and len(self._printed) < MAX_DAILY_NOTICES:
            with suppress(OSError):  # the disk of the log may be full, too
                print(f"discreet: {line}", file=sys.stderr, flush=True)
                self._printed.add(line)


NOTICES = Notices()


def format_reason(error: SQLAlchemyError) -> str:
    """Format the message of a database error, without the statement and its values."""
    return " ".join(str(getattr(error, "orig", "") or type(error).__name__).split())[:300]


def make_internal_problem(error: BaseException) -> Problem:
    """Make the problem of a bug; its place is printed, nothing of the request is."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    code_path = " < ".join(
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames[::-1]
    )
    NOTICES.print_once(f"internal error {type(error).__name__} at {code_path}")
    return Problem("internal")
