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
from starlette.convertors import StringConvertor, register_url_convertor

from discreet.collection.announcement import MAX_REPORT_BYTES
from discreet.collection.report import ALREADY_SHUFFLED, ID_PATTERN, Report, derive_report_id
from discreet.errors import FormatError
from discreet.hosting.serving import RequestLimits, read_request_body
from discreet.server import invitations
from discreet.server.arrivals import store_batch
from discreet.server.intake import ReportRow, read_batch_rows
from discreet.server.limits import RateLimiter
from discreet.server.problems import Problem, describe_responses, make_missing_problem
from discreet.server.running import Server
from discreet.server.settling import withdraw_report
from discreet.server.surveys import Survey
from discreet.server.writer import WriterBusy

__all__ = [
    "Slug",
    "find_published_survey",
    "find_visible_survey",
    "get_server",
    "make_body_reader",
    "read_large_body",
    "require_guess_quota",
    "require_request_quota",
    "routers",
]

MAX_BATCH_BYTES = 1 << 26
"""Bytes of a Parquet batch."""
MAX_DOCUMENT_BYTES = 1 << 24
"""Bytes of what a collector sends as JSON: a document with its announcement, rows to predict."""
PARQUET_MEDIA_TYPE = "application/vnd.apache.parquet"
REPORT_PATIENCE = RequestLimits(base_seconds=20.0, max_counted_bytes=MAX_REPORT_BYTES)

Slug = Annotated[str, Path(pattern="^[a-z0-9-]{1,64}$", description="Name of the survey")]
Fault = Literal["misshapen", "unknown question", "out of domain", "simulated"]


def get_server(request: Request) -> Server:
    """Get the running server of a request."""
    server: Server = request.app.state.server
    return server


class RawRequestRoute(APIRoute):
    """A route whose function receives the raw request: fast, and still described in OpenAPI."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function itself, without the framework's parsing."""
        endpoint: Any = self.endpoint
        return endpoint  # type: ignore[no-any-return]


router = APIRouter(prefix="/api/v1/surveys/{slug}/reports", tags=["reports"])
raw_router = APIRouter(route_class=RawRequestRoute)


class ReportOutcome(BaseModel):
    """The outcome of a report."""

    outcome: Literal["counted", "repeated"]
    id: str


class BatchOutcomes(BaseModel):
    """The outcomes of the reports of a batch."""

    counted: int = Field(description="Stored now")
    repeated: int = Field(description="The same report was stored before")
    refused: dict[str, int] = Field(description="How many were refused, by reason")


def require_request_quota(request: Request) -> Server:
    """Return the server; refuse too many requests from one address."""
    server = get_server(request)
    if not _is_allowed(server.request_limiter, request):
        raise Problem("too-many", "too many requests from this address; try again in a moment")
    return server


def require_guess_quota(request: Request, tried_kind: str) -> Server:
    """Return the server; refuse too many guesses of codes or tokens from one address."""
    server = require_request_quota(request)
    if not _is_allowed(server.guess_limiter, request):
        raise Problem("too-many", f"too many {tried_kind} were tried from this address")
    return server


async def find_published_survey(request: Request, slug: Slug) -> Survey:
    """Find a survey that was ever opened; drafts are refused as not found."""
    server = get_server(request)
    survey = await server.find_survey(slug)
    is_published = server.surveys.is_known_published(survey)
    if is_published or await run_in_threadpool(server.surveys.is_published, survey):
        return survey
    raise make_missing_problem()


async def find_visible_survey(request: Request, slug: Slug) -> Survey:
    """Find a survey that was ever opened, or a draft for a collector with a token or session."""
    server = require_request_quota(request)
    try:
        return await find_published_survey(request, slug)
    except Problem:
        try:
            await run_in_threadpool(server.access.require_role, request, "viewer")
        except Problem:  # not even that it exists
            raise make_missing_problem() from None
        return await server.find_survey(slug)


def _is_allowed(limits: RateLimiter, request: Request) -> bool:
    return limits.allow_request(request.client.host if request.client else None)


def _require_media_type(request: Request, *allowed_types: str) -> None:
    stated_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if stated_type not in allowed_types:
        raise Problem("media-type", f"send the body as {allowed_types[0]}")


async def read_large_body(request: Request, max_bytes: int) -> bytes:
    """Read a body of at most this length; of senders who were authenticated, unless it is small."""
    return await read_request_body(
        request, max_bytes, Problem, RequestLimits(max_counted_bytes=max_bytes)
    )


Body = TypeVar("Body", bound=BaseModel)


def make_body_reader(model: type[Body]) -> Callable[[Request], Coroutine[Any, Any, Body]]:
    """Make a dependency that reads a JSON body; declared after the one that checks access.

    The framework would read a body of its own before it looks at a token.
    """

    async def read_body(request: Request) -> Body:
        _require_media_type(request, "application/json")
        content = await read_large_body(request, MAX_DOCUMENT_BYTES)
        try:
            return model.model_validate_json(content)
        except ValidationError as error:
            body_errors = [
                {**body_error, "loc": ("body", *body_error["loc"])} for body_error in error.errors()
            ]
            raise RequestValidationError(body_errors) from None

    return read_body


def describe_body(model: type[BaseModel]) -> dict[str, Any]:
    """What :func:`make_body_reader` reads, for OpenAPI."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


OUTCOME_DETAILS = {
    "id-reused": "another report with this id was stored before; this one is not",
    "withdrawn": "its sender has withdrawn this report",
    "closed": "this survey is closed; nothing was stored",
    "not-open": "this survey is not open yet",
    "invitation": "this survey needs an invitation that was not used before",
    "not-found": make_missing_problem().detail,
}


async def store_report(request: Request) -> Response:
    """Store one randomized report.

    The body is the report exactly as the device wrote it. It is on the disk before the answer.
    Sending it again is safe: the same report is stored once. A survey by invitation needs the code
    in the header `Invitation`.
    """
    server = require_request_quota(request)
    slug = request.path_params["slug"]
    survey = await find_published_survey(request, slug)
    _require_media_type(request, "application/json")
    body = await read_request_body(request, MAX_REPORT_BYTES, Problem, REPORT_PATIENCE)
    try:
        report = Report.from_json(body)
    except FormatError as error:
        server.writer.count_refusal(survey, "misshapen")
        raise Problem("report", str(error), fault="misshapen") from None
    hashed_code = None
    if survey.invited:
        hashed_code = invitations.hash_code(
            survey.number, request.headers.get(invitations.INVITATION_HEADER, "")
        )
    try:
        outcome = await server.writer.send_report(survey, report, hashed_code)
    except WriterBusy:
        raise Problem("busy", "too many reports wait to be stored; try again in a moment") from None
    if outcome in ("counted", "repeated"):
        status = 201 if outcome == "counted" else 200
        return JSONResponse({"outcome": outcome, "id": report.id}, status)
    if outcome in OUTCOME_DETAILS:
        if outcome == "not-found":
            server.surveys.forget_survey(slug)
        raise Problem(outcome, OUTCOME_DETAILS[outcome])
    raise Problem("report", _format_fault(survey, outcome), fault=outcome)


def _format_fault(survey: Survey, fault: str) -> str:
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


STORING_PROBLEMS = ("not-found", "oversized", "too-many", "busy", "unavailable")
REPORT_PROBLEMS = ("invitation", "not-open", "slow", "id-reused", "closed", "withdrawn", "report")
SLUG_PARAMETER = {
    "name": "slug",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"},
}
raw_router.add_api_route(
    router.prefix,
    store_report,
    methods=["POST"],
    tags=["reports"],
    status_code=201,
    response_model=ReportOutcome,
    responses={
        200: {"model": ReportOutcome, "description": "The same report was stored before"},
        **describe_responses(*REPORT_PROBLEMS, "media-type", *STORING_PROBLEMS),
    },
    openapi_extra={
        "parameters": [
            SLUG_PARAMETER,
            {
                "name": invitations.INVITATION_HEADER,
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
                            "id": {"type": "string", "pattern": f"^{ID_PATTERN.pattern}$"},
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
    response_model=BatchOutcomes,
    responses=describe_responses(
        "unauthorized", "forbidden", "slow", "media-type", "invalid", *STORING_PROBLEMS
    ),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                media_type: {"schema": {"type": "string", "format": "binary"}}
                for media_type in (PARQUET_MEDIA_TYPE, "application/octet-stream")
            },
        },
        "security": [{"token": []}],
    },
)
async def store_reports(request: Request, slug: Slug) -> BatchOutcomes:
    """Store many reports: a Parquet file, as `discreet local perturb` writes it.

    It is stored piece by piece. Sending it again is safe: stored reports count as repeated.
    """
    server = require_request_quota(request)
    await run_in_threadpool(server.access.require_role, request, "owner")
    survey = await server.find_survey(slug)
    _require_media_type(request, PARQUET_MEDIA_TYPE, "application/octet-stream")
    content = await read_large_body(request, MAX_BATCH_BYTES)
    row_pieces = read_batch_rows(survey.collection, content)
    outcome_counts: Counter[str] = Counter()
    pending_outcomes: asyncio.Future[Counter[str]] | None = None
    while True:  # the next piece is read while this one is stored
        row_piece = await run_in_threadpool(next, row_pieces, None)
        if pending_outcomes is not None:
            outcome_counts += await pending_outcomes
        if row_piece is None:
            break
        rows, refused_counts = row_piece
        outcome_counts += refused_counts
        pending_outcomes = server.writer.run_job(
            lambda rows=rows: _store_rows(server, survey, rows)  # type: ignore[misc]
        )
    if outcome_counts["not-found"]:
        raise make_missing_problem()
    counted, repeated = outcome_counts.pop("counted", 0), outcome_counts.pop("repeated", 0)
    return BatchOutcomes(counted=counted, repeated=repeated, refused=dict(outcome_counts))


def _store_rows(server: Server, survey: Survey, rows: list[ReportRow]) -> Counter[str]:
    has_ended = survey.announcement.get_state(server.writer.get_today()) == "closed"
    with server.database.write() as connection:
        outcomes = store_batch(connection, survey.number, rows, "closed" if has_ended else "open")
    server.writer.arrived_counts[survey.number] += outcomes["counted"]
    return outcomes


class WithdrawalKey(BaseModel):
    """The key whose hash is the id of a report."""

    key: str = Field(pattern=f"^{ID_PATTERN.pattern}$", description="32 hexadecimal digits")


class ReportIdConvertor(StringConvertor):
    """The id of a report in a path."""

    regex = ID_PATTERN.pattern


register_url_convertor("identity", ReportIdConvertor())


@router.delete(
    "/{id:identity}",
    status_code=204,
    response_class=Response,
    responses=describe_responses(
        "wrong-key", "no-withdrawal", "closed", "invalid", *STORING_PROBLEMS
    ),
)
async def withdraw_by_key(
    request: Request,
    slug: Slug,
    id: Annotated[str, Path(pattern=f"^{ID_PATTERN.pattern}$", description="Id of the report")],
    body: WithdrawalKey,
) -> Response:
    """Withdraw a report: it is deleted and taken out of the tally, and cannot be sent again."""
    server = require_request_quota(request)
    survey = await find_published_survey(request, slug)
    if survey.announcement.withdrawal == "none":
        raise Problem("no-withdrawal", "reports to this survey cannot be withdrawn")
    if derive_report_id(bytes.fromhex(body.key)) != id:
        raise Problem("wrong-key", "this is not the key of the report")
    state_by_date = survey.announcement.get_state(server.writer.get_today())
    outcome = await server.run_transaction(
        lambda connection: withdraw_report(
            connection, survey.number, survey.collection, bytes.fromhex(id), state_by_date
        )
    )
    if outcome == "closed":
        raise Problem("closed", "this survey is closed; nothing was withdrawn")
    if outcome == "not-found":
        raise Problem("not-found", "no report of this id was stored here")
    return Response(status_code=204)


routers = (raw_router, router)
