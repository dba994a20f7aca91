"""Routes for reports and withdrawals of respondents, and for batches of a collector.

Only the route of single reports is performance-critical. It reads the body and passes it to the
writer, which decides for many at a time whether they are valid, new, repeated or too late.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor

from discreet.announcement import REPORT
from discreet.collection.report import ALREADY_SHUFFLED, IDENTITY, Report, identity_of
from discreet.errors import FormatError
from discreet.server import invitations
from discreet.server.arrivals import take_many
from discreet.server.intake import Row, rows_in
from discreet.server.limits import Limits
from discreet.server.problems import Problem, responses
from discreet.server.running import Server
from discreet.server.settle import withdraw
from discreet.server.surveys import Survey
from discreet.server.writer import Busy
from discreet.serving import Patience, body_of

__all__ = [
    "Slug",
    "guarded",
    "guessing",
    "json_body",
    "published_survey",
    "routers",
    "server_of",
    "visible_survey",
]

BATCH = 1 << 26
"""Bytes of a Parquet batch."""
DOCUMENT = 1 << 24
"""Bytes of what a collector sends as JSON: a document with its announcement, rows to predict."""
PARQUET = "application/vnd.apache.parquet"
REPORTS = Patience(start=20.0, largest=REPORT)

Slug = Annotated[str, Path(pattern="^[a-z0-9-]{1,64}$", description="Name of the survey")]
Fault = Literal["misshapen", "unknown question", "out of domain", "simulated"]


def server_of(request: Request) -> Server:
    """Get the running server of a request."""
    server: Server = request.app.state.server
    return server


class Direct(APIRoute):
    """A route whose function receives the raw request: fast, and still described in OpenAPI."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function itself, without the framework's parsing."""
        endpoint: Any = self.endpoint
        return endpoint  # type: ignore[no-any-return]


router = APIRouter(prefix="/api/v1/surveys/{slug}/reports", tags=["reports"])
direct = APIRouter(route_class=Direct)


class Stored(BaseModel):
    """The outcome of a report."""

    outcome: Literal["counted", "repeated"]
    id: str


class Outcomes(BaseModel):
    """The outcomes of the reports of a batch."""

    counted: int = Field(description="Stored now")
    repeated: int = Field(description="The same report was stored before")
    refused: dict[str, int] = Field(description="How many were refused, by reason")


def guarded(request: Request) -> Server:
    """Return the server; refuse too many requests from one address."""
    server = server_of(request)
    if not _allowed(server.limits, request):
        raise Problem("too-many", "too many requests from this address; try again in a moment")
    return server


def guessing(request: Request, what: str) -> Server:
    """Return the server; refuse too many guesses of codes or tokens from one address."""
    server = guarded(request)
    if not _allowed(server.guesses, request):
        raise Problem("too-many", f"too many {what} were tried from this address")
    return server


async def published_survey(server: Server, slug: str) -> Survey:
    """Find a survey that was ever opened; drafts are refused as not found."""
    survey = server.surveys.known(slug) or await server.survey(slug)
    known = server.surveys.known_as_published(survey)
    if known or await run_in_threadpool(server.surveys.published, survey):
        return survey
    raise Problem("not-found", DETAILS["not-found"])


async def visible_survey(request: Request, slug: Slug) -> Survey:
    """Find a survey that was ever opened, or a draft for a collector with a token or session."""
    server = guarded(request)
    try:
        return await published_survey(server, slug)
    except Problem:
        try:
            await run_in_threadpool(server.access.require, request, "viewer")
        except Problem:  # not even that it exists
            raise Problem("not-found", DETAILS["not-found"]) from None
        return await server.survey(slug)


def _allowed(limits: Limits, request: Request) -> bool:
    return limits.allow(request.client.host if request.client else None)


def _refuse(reason: str, sentence: str) -> Problem:
    return Problem(reason, sentence)


def _media(request: Request, *allowed: str) -> None:
    stated = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if stated not in allowed:
        raise Problem("media-type", f"send the body as {allowed[0]}")


Body = TypeVar("Body", bound=BaseModel)


def json_body(model: type[Body]) -> Callable[[Request], Coroutine[Any, Any, Body]]:
    """Make a dependency that reads a JSON body; declared after the one that checks access.

    The framework would read a body of its own before it looks at a token.
    """

    async def read(request: Request) -> Body:
        _media(request, "application/json")
        content = await body_of(request, DOCUMENT, _refuse, Patience(largest=DOCUMENT))
        try:
            return model.model_validate_json(content)
        except ValidationError as error:
            found = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
            raise RequestValidationError(found) from None

    return read


def described_body(model: type[BaseModel]) -> dict[str, Any]:
    """What :func:`json_body` reads, for OpenAPI."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


DETAILS = {
    "id-reused": "another report with this id was stored before; this one is not",
    "withdrawn": "its sender has withdrawn this report",
    "closed": "this survey is closed; nothing was stored",
    "not-open": "this survey is not open yet",
    "invitation": "this survey needs an invitation that was not used before",
    "not-found": "there is no survey of this name here",
}


async def post(request: Request) -> Response:
    """Store one randomized report.

    The body is the report exactly as the device wrote it. It is on the disk before the answer.
    Sending it again is safe: the same report is stored once. A survey by invitation needs the code
    in the header `Invitation`.
    """
    server = guarded(request)
    slug = request.path_params["slug"]
    survey = await published_survey(server, slug)
    _media(request, "application/json")
    body = await body_of(request, REPORT, _refuse, REPORTS)
    try:
        report = Report.from_json(body)
    except FormatError as error:
        server.writer.refused(survey, "misshapen")
        raise Problem("report", str(error), fault="misshapen") from None
    code = None
    if survey.invited:
        code = invitations.code_hash(survey.number, request.headers.get(invitations.HEADER, ""))
    try:
        outcome = await server.writer.send(survey, report, code)
    except Busy:
        raise Problem("busy", "too many reports wait to be stored; try again in a moment") from None
    if outcome in ("counted", "repeated"):
        status = 201 if outcome == "counted" else 200
        return JSONResponse({"outcome": outcome, "id": report.id}, status)
    if outcome in DETAILS:
        if outcome == "not-found":
            server.surveys.forget(slug)
        raise Problem(outcome, DETAILS[outcome])
    raise Problem("report", _faulty(survey, outcome), fault=outcome)


def _faulty(survey: Survey, fault: str) -> str:
    kind = survey.collection.kind
    sentences = {
        f"foreign {kind}": f"this report answers another {kind}",
        "unknown question": f"its question is not in the {kind}",
        ALREADY_SHUFFLED: (
            "an anonymiser shuffled this report; this collector accepts reports only from their "
            "senders"
        ),
        "simulated": "a seeded source drew this report; it is not private and is not counted",
    }
    return sentences.get(fault, "no respondent could have sent this report")


SLUG_PARAMETER = {
    "name": "slug",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"},
}
direct.add_api_route(
    router.prefix,
    post,
    methods=["POST"],
    tags=["reports"],
    status_code=201,
    response_model=Stored,
    responses={
        200: {"model": Stored, "description": "The same report was stored before"},
        **responses(
            "invitation",
            "not-open",
            "not-found",
            "slow",
            "id-reused",
            "closed",
            "withdrawn",
            "oversized",
            "media-type",
            "report",
            "too-many",
            "busy",
            "unavailable",
        ),
    },
    openapi_extra={
        "parameters": [
            SLUG_PARAMETER,
            {
                "name": invitations.HEADER,
                "in": "header",
                "required": False,
                "schema": {"type": "string"},
            },
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": [
                            "format",
                            "version",
                            "collection",
                            "id",
                            "question",
                            "value",
                            "digest",
                        ],
                        "properties": {
                            "format": {"const": "discreet/report"},
                            "version": {"const": 2},
                            "collection": {"type": "string"},
                            "id": {"type": "string", "pattern": f"^{IDENTITY.pattern}$"},
                            "question": {"type": "integer", "minimum": 0},
                            "value": {"type": "array", "items": {"type": "integer"}},
                            "digest": {"type": "string"},
                        },
                    }
                }
            },
        },
    },
)


@router.post(
    "/batch",
    response_model=Outcomes,
    responses=responses(
        "unauthorized",
        "forbidden",
        "not-found",
        "slow",
        "oversized",
        "media-type",
        "invalid",
        "too-many",
        "busy",
        "unavailable",
    ),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                one: {"schema": {"type": "string", "format": "binary"}}
                for one in (PARQUET, "application/octet-stream")
            },
        },
        "security": [{"token": []}],
    },
)
async def batch(request: Request, slug: Slug) -> Outcomes:
    """Store many reports: a Parquet file, as `discreet local perturb` writes it.

    It is stored piece by piece. Sending it again is safe: stored reports count as repeated.
    """
    server = guarded(request)
    await run_in_threadpool(server.access.require, request, "owner")
    survey = await server.survey(slug)
    _media(request, PARQUET, "application/octet-stream")
    content = await body_of(request, BATCH, _refuse, Patience(largest=BATCH))
    pieces = rows_in(survey.collection, content)
    met: Counter[str] = Counter()
    storing: asyncio.Future[Counter[str]] | None = None
    while True:  # the next piece is read while this one is stored
        piece = await run_in_threadpool(next, pieces, None)
        if storing is not None:
            met += await storing
        if piece is None:
            break
        rows, refused = piece
        met += refused
        storing = server.writer.run(lambda rows=rows: _stored(server, survey, rows))  # type: ignore[misc]
    if met["not-found"]:
        raise Problem("not-found", DETAILS["not-found"])
    counted, repeated = met.pop("counted", 0), met.pop("repeated", 0)
    return Outcomes(counted=counted, repeated=repeated, refused=dict(met))


def _stored(server: Server, survey: Survey, rows: list[Row]) -> Counter[str]:
    ended = survey.announcement.on(server.writer.today()) == "closed"
    with server.database.write() as connection:
        outcomes = take_many(connection, survey.number, rows, "closed" if ended else "open")
    server.writer.arrived[survey.number] += outcomes["counted"]
    return outcomes


class Key(BaseModel):
    """The key whose hash is the id of a report."""

    key: str = Field(pattern=f"^{IDENTITY.pattern}$", description="32 hexadecimal digits")


class Identity(Convertor[str]):
    """The id of a report in a path."""

    regex = IDENTITY.pattern

    def convert(self, value: str) -> str:
        """The id."""
        return value

    def to_string(self, value: str) -> str:
        """The same."""
        return value


register_url_convertor("identity", Identity())


@router.delete(
    "/{id:identity}",
    status_code=204,
    response_class=Response,
    responses=responses(
        "wrong-key",
        "no-withdrawal",
        "not-found",
        "closed",
        "oversized",
        "invalid",
        "too-many",
        "busy",
        "unavailable",
    ),
)
async def take_back(
    request: Request,
    slug: Slug,
    id: Annotated[str, Path(pattern=f"^{IDENTITY.pattern}$", description="Id of the report")],
    body: Key,
) -> Response:
    """Withdraw a report: it is deleted and taken out of the tally, and cannot be sent again."""
    server = guarded(request)
    survey = await published_survey(server, slug)
    if survey.announcement.withdrawal == "none":
        raise Problem("no-withdrawal", "reports to this survey cannot be withdrawn")
    if identity_of(bytes.fromhex(body.key)) != id:
        raise Problem("wrong-key", "this is not the key of the report")

    today = survey.announcement.on(server.writer.today())

    def work() -> str:
        with server.database.write() as connection:
            return withdraw(connection, survey.number, survey.collection, bytes.fromhex(id), today)

    outcome = await server.write(work)
    if outcome == "closed":
        raise Problem("closed", "this survey is closed; nothing was withdrawn")
    if outcome == "not-found":
        raise Problem("not-found", "no report of this id was stored here")
    return Response(status_code=204)


routers = (direct, router)
