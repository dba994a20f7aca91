"""HTTP API for collectors, and the public part of a survey."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Annotated, Any, Literal

import sqlalchemy as sql
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from discreet.collection.announcement import Announcement
from discreet.collection.parquet_reports import ReportFile
from discreet.collection.protocol import parse_collection_json
from discreet.errors import EstimationError
from discreet.files.documents import encode_canonical
from discreet.server import invitations, surveys, tallies
from discreet.server.access import Grant
from discreet.server.analysis import Analysis
from discreet.server.intake import iter_matrices
from discreet.server.problems import Problem, describe_responses, make_missing_problem
from discreet.server.reports import (
    PARQUET_MEDIA_TYPE,
    Slug,
    describe_body,
    find_published_survey,
    find_visible_survey,
    get_server,
    make_body_reader,
    require_guess_quota,
    require_request_quota,
)
from discreet.server.running import Server
from discreet.server.sealed_arrivals import count_waiting
from discreet.server.settling import clear_keys, compute_pool_size
from discreet.server.surveys import Survey

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/surveys")
bearer = HTTPBearer(scheme_name="token", auto_error=False)
MAX_PREDICTION_ROWS = 10_000
FILE_CHUNK_BYTES = 1 << 18
"""Bytes of a file that are read at a time."""


def require_viewer(request: Request, _: Annotated[Any, Depends(bearer)] = None) -> Grant:
    """Require the role to read results."""
    return require_request_quota(request).access.require_role(request, "viewer")


def require_owner(request: Request, _: Annotated[Any, Depends(bearer)] = None) -> Grant:
    """Require the role to change something."""
    return require_request_quota(request).access.require_role(request, "owner")


Viewer = Annotated[Grant, Depends(require_viewer)]
Owner = Annotated[Grant, Depends(require_owner)]
PUBLIC_PROBLEMS = ("not-found", "too-many", "unavailable")
READ_PROBLEMS = ("unauthorized", "forbidden", *PUBLIC_PROBLEMS)
ACTION_PROBLEMS = (*READ_PROBLEMS, "cross-site", "busy")
BODY_PROBLEMS = ("slow", "oversized", "media-type")


async def _find_survey(request: Request, slug: Slug) -> Survey:
    return await get_server(request).find_survey(slug)


SurveyBySlug = Annotated[Survey, Depends(_find_survey)]
PublishedSurvey = Annotated[Survey, Depends(find_published_survey)]
VisibleSurvey = Annotated[Survey, Depends(find_visible_survey)]


class SurveyEntry(BaseModel):
    """An entry in the list of surveys."""

    slug: str
    kind: str
    digest: str
    state: Literal["draft", "open", "closed"]


class SurveyDescription(SurveyEntry):
    """A survey and its announcement."""

    announcement: dict[str, Any]
    guarantee: dict[str, Any] = Field(description="What people are promised")


def _make_entry(survey: Survey, state: Any) -> SurveyEntry:
    collection = survey.collection
    return SurveyEntry(
        slug=survey.slug, kind=collection.kind, digest=collection.digest, state=state
    )


# ---------------------------------------------------------------- public


@router.get("", tags=["surveys"], responses=describe_responses("too-many", "unavailable"))
def list_open_surveys(request: Request) -> list[SurveyEntry]:
    """List the surveys that are open today."""
    open_surveys = require_request_quota(request).surveys.list_open_surveys()
    return [_make_entry(survey, "open") for survey in open_surveys]


@router.get("/{slug}", tags=["surveys"], responses=describe_responses(*PUBLIC_PROBLEMS, "invalid"))
def get_announcement(request: Request, survey: VisibleSurvey) -> SurveyDescription:
    """Return the announcement (who asks, texts, dates) and the privacy guarantee.

    A draft is shown to those who may see results.
    """
    server = get_server(request)
    state = server.surveys.read_state(survey)
    if state is None:
        raise make_missing_problem()
    guarantee = survey.announcement.make_guarantee(survey.collection)
    return SurveyDescription(
        **dict(_make_entry(survey, state)),
        announcement=json.loads(survey.announcement.to_json()),
        # canonical: infinities are strings, since JSON has none
        guarantee=json.loads(encode_canonical(guarantee.to_body())) | {"text": str(guarantee)},
    )


@router.get(
    "/{slug}/document",
    tags=["surveys"],
    response_class=Response,
    responses={
        200: {
            "content": {"application/json": {"schema": {"type": "object"}}},
            "description": "Canonical bytes",
        },
        304: {"description": "It has not changed"},
        **describe_responses(*PUBLIC_PROBLEMS, "invalid"),
    },
)
async def get_document(request: Request, survey: VisibleSurvey) -> Response:
    """Return the plan or questionnaire as canonical bytes; their SHA-256 is the digest.

    A draft is shown to those who may see results.
    """
    etag = f'"{survey.collection.digest}"'
    is_published = get_server(request).surveys.is_known_published(survey)
    cache_control = "public, max-age=31536000, immutable" if is_published else "no-store"
    headers = {"ETag": etag, "Cache-Control": cache_control}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(survey.document, headers=headers, media_type="application/json")


class InvitationCode(BaseModel):
    """The code of an invitation."""

    code: str = Field(max_length=100)


class InvitationState(BaseModel):
    """Whether an invitation can be used."""

    state: Literal["unused", "spent", "unknown"]


@router.post(
    "/{slug}/invitations/state",
    tags=["invitations"],
    responses=describe_responses(*PUBLIC_PROBLEMS, "oversized", "invalid"),
)
def check_invitation(
    request: Request, survey: PublishedSurvey, body: InvitationCode
) -> InvitationState:
    """Check whether a code is unused; asked before drawing, so that no report is drawn in vain."""
    server = require_guess_quota(request, "codes")
    with server.database.read() as connection:
        return InvitationState(state=invitations.check_code(connection, survey.number, body.code))


# ---------------------------------------------------------------- results


def _get_analysis(request: Request, survey: Survey) -> Analysis:
    return get_server(request).analyses.get_analysis(survey)


@contextmanager
def refuse_too_few_reports() -> Iterator[None]:
    """Refuse with ``no-reports`` where there are too few reports for an estimate."""
    try:
        yield
    except EstimationError as error:
        raise Problem("no-reports", str(error)) from None


def _make_json_response(text: str) -> Response:
    return Response(text, media_type="application/json")


RESULT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "object"}}}},
    **describe_responses(*READ_PROBLEMS, "no-reports", "invalid"),
}


@router.get("/{slug}/tally", tags=["results"], response_class=Response, responses=RESULT_RESPONSES)
def get_tally(request: Request, _: Viewer, survey: SurveyBySlug) -> Response:
    """Return the settled tally; `discreet local tally` merges it with those of other collectors."""
    return _make_json_response(_get_analysis(request, survey).tally.to_json(include_seen=False))


@router.get(
    "/{slug}/statistics", tags=["results"], response_class=Response, responses=RESULT_RESPONSES
)
def get_statistics(request: Request, _: Viewer, survey: SurveyBySlug) -> Response:
    """Return unbiased estimates with their variances."""
    with refuse_too_few_reports():
        return _make_json_response(_get_analysis(request, survey).statistics.to_json())


@router.get("/{slug}/model", tags=["results"], response_class=Response, responses=RESULT_RESPONSES)
def get_model(request: Request, _: Viewer, survey: SurveyBySlug) -> Response:
    """Return the classifier, as `discreet predict` reads it."""
    with refuse_too_few_reports():
        return _make_json_response(_get_analysis(request, survey).model.to_json())


class PredictionRows(BaseModel):
    """Records without their class."""

    rows: list[dict[str, str | int | float | bool | None]] = Field(
        min_length=1, max_length=MAX_PREDICTION_ROWS
    )


class Predictions(BaseModel):
    """The most probable class of each row, and the probability of each class."""

    classes: list[str]
    predicted: list[str]
    probabilities: list[list[float]]


@router.post(
    "/{slug}/predict",
    tags=["results"],
    responses=describe_responses(*READ_PROBLEMS, *BODY_PROBLEMS, "no-reports", "invalid"),
    openapi_extra=describe_body(PredictionRows),
)
def predict(
    request: Request,
    _: Viewer,
    survey: SurveyBySlug,
    body: Annotated[PredictionRows, Depends(make_body_reader(PredictionRows))],
) -> Predictions:
    """Predict classes of records with the model of what is settled now."""
    from discreet.schema.schema import format_value

    with refuse_too_few_reports():
        classifier = _get_analysis(request, survey).model
    probabilities = classifier.predict_proba(body.rows)
    classes = [format_value(label) for label in classifier.schema.classes]
    best_classes = probabilities.argmax(axis=1)
    return Predictions(
        classes=classes,
        predicted=[classes[class_index] for class_index in best_classes],
        probabilities=probabilities.tolist(),
    )


@router.get(
    "/{slug}/reports.parquet",
    tags=["results"],
    response_class=Response,
    responses={
        200: {"content": {PARQUET_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
        **describe_responses(*READ_PROBLEMS, "invalid"),
    },
)
def export_reports(request: Request, _: Viewer, survey: SurveyBySlug) -> Response:
    """Export all settled reports in the order of their ids, for DuckDB, Spark or `discreet`."""
    # the system deletes it when it is closed, also where the server is killed
    temporary_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is sent
    try:
        write_export(get_server(request), survey, temporary_file)
        file_size = temporary_file.seek(0, os.SEEK_END)
    except BaseException:
        temporary_file.close()
        raise
    headers = {
        "Content-Disposition": f'attachment; filename="{survey.slug}.parquet"',
        "Content-Length": str(file_size),
    }
    return StreamingResponse(
        read_chunks(temporary_file), headers=headers, media_type=PARQUET_MEDIA_TYPE
    )


def read_chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in chunks from its beginning; close it at the end."""
    with file:
        file.seek(0)
        while chunk := file.read(FILE_CHUNK_BYTES):
            yield chunk


def write_export(server: Server, survey: Survey, file: IO[bytes]) -> None:
    """Write the settled reports as a Parquet file."""
    import numpy as np

    collection, is_simulated = survey.collection, survey.simulated
    with (
        server.database.read() as connection,
        ReportFile(file, collection, is_simulated) as report_file,
    ):
        for rows in tallies.iter_stored_rows(connection, survey.number):
            values: list[Any] = [None] * len(rows)
            for _, row_indices, matrix in iter_matrices(collection, rows):
                for row_index, report_values in zip(
                    row_indices.tolist(), matrix.tolist(), strict=True
                ):
                    values[row_index] = report_values
            report_ids = np.frombuffer(
                b"".join(bytes(stored_row.id) for stored_row in rows), np.uint8
            )
            report_file.write(
                [stored_row.question for stored_row in rows], report_ids.reshape(-1, 16), values
            )


# ---------------------------------------------------------------- owners


async def store_draft(
    server: Server, grant: Grant, collection: Any, announcement: Announcement
) -> None:
    """Store a new survey as a draft, unless its name is taken."""
    try:
        await server.run_recorded(
            grant,
            f"create {announcement.name}",
            lambda connection: surveys.create_survey(connection, collection, announcement),
        )
    except sql.exc.IntegrityError:
        raise Problem(
            "exists", f"there is a survey named {announcement.name}; choose another"
        ) from None


class NewSurvey(BaseModel):
    """A survey to create."""

    document: str = Field(description="The plan or questionnaire: the exact text of its file")
    announcement: str | None = Field(None, description="The text of an announcement")
    name: str | None = Field(None, description="Its place in the address, without an announcement")


@router.post(
    "",
    status_code=201,
    tags=["surveys"],
    responses=describe_responses(
        *(problem_type for problem_type in ACTION_PROBLEMS if problem_type != "not-found"),
        *BODY_PROBLEMS,
        "exists",
        "invalid",
    ),
    openapi_extra=describe_body(NewSurvey),
)
async def create_survey(
    request: Request, grant: Owner, body: Annotated[NewSurvey, Depends(make_body_reader(NewSurvey))]
) -> SurveyEntry:
    """Create a survey; it is a draft until it is opened."""
    server = get_server(request)
    collection = await run_in_threadpool(parse_collection_json, body.document)
    if body.announcement is not None:
        announcement = Announcement.from_json(body.announcement)
    else:
        announcement = Announcement.make_default(collection, body.name or collection.kind)
    await store_draft(server, grant, collection, announcement)
    return _make_entry(await server.find_survey(announcement.name), "draft")


@router.post(
    "/{slug}/open",
    tags=["surveys"],
    responses=describe_responses(*ACTION_PROBLEMS, "state", "invalid"),
)
async def open_survey(request: Request, grant: Owner, survey: SurveyBySlug) -> SurveyEntry:
    """Open a survey for answers. A closed survey stays closed."""

    def open_stored(connection: sql.Connection) -> None:
        stored_state = surveys.read_stored_state(connection, survey.number)
        if stored_state is None:
            raise make_missing_problem()
        if stored_state == "closed":
            raise Problem("state", "a closed survey cannot be opened again; make another one")
        surveys.set_state(connection, survey.number, "open")

    await get_server(request).run_recorded(grant, f"open {survey.slug}", open_stored)
    return _make_entry(survey, survey.announcement.get_state(surveys.utc_day()))


@router.post(
    "/{slug}/close", tags=["surveys"], responses=describe_responses(*ACTION_PROBLEMS, "invalid")
)
async def close_survey(request: Request, grant: Owner, survey: SurveyBySlug) -> SurveyEntry:
    """Close a survey to reports, and settle those that wait, however few they are."""
    server = get_server(request)
    await server.close_survey(
        survey, lambda c: server.access.record_action(c, grant, f"close {survey.slug}")
    )
    return _make_entry(survey, "closed")


class SettledCount(BaseModel):
    """Number of reports that were settled."""

    settled: int


@router.post(
    "/{slug}/settle",
    tags=["surveys"],
    responses=describe_responses(*ACTION_PROBLEMS, "small-batch", "invalid"),
)
async def settle_survey(
    request: Request,
    grant: Owner,
    survey: SurveyBySlug,
    anyway: Annotated[bool, Query(description="Keep nothing back, however few wait")] = False,
) -> SettledCount:
    """Settle a random part of the waiting reports, or all of them with `anyway`."""
    server, min_batch = get_server(request), survey.announcement.batch
    pool_size = compute_pool_size(min_batch)
    waiting_count = await server.run_recorded(
        grant,
        f"settle {survey.slug}",
        lambda connection: count_waiting(connection, survey.number, pool_size),
    )
    if waiting_count < pool_size and not anyway:
        raise Problem(
            "small-batch",
            f"fewer than {pool_size} reports wait. People were told of batches of {min_batch} "
            f"or more, and {min_batch} are kept back at random, so that nobody who sends all "
            "others reads the last report. Wait, or settle all that wait now: choose that at the "
            "desk, or repeat this with anyway=true",
        )
    return SettledCount(settled=await server.settle_survey(survey, 1 if anyway else min_batch))


class InvitationRequest(BaseModel):
    """Number of invitation codes to create."""

    count: int = Field(ge=1, le=invitations.MAX_CODES)


class InvitationCodes(BaseModel):
    """Invitation codes; they are shown only once."""

    codes: list[str]
    links: list[str]


@router.post(
    "/{slug}/invitations",
    status_code=201,
    tags=["invitations"],
    responses=describe_responses(*ACTION_PROBLEMS, "state", "oversized", "invalid"),
)
async def create_invitations(
    request: Request, grant: Owner, survey: SurveyBySlug, body: InvitationRequest
) -> InvitationCodes:
    """Create invitation codes. Only their hashes are stored."""
    server = get_server(request)

    def create_codes(connection: sql.Connection) -> list[str]:
        has_ended = survey.announcement.get_state(surveys.utc_day()) == "closed"
        if has_ended or surveys.read_stored_state(connection, survey.number) == "closed":
            raise Problem("state", "it is closed: nobody could use an invitation now")
        return invitations.create_codes(connection, survey.number, body.count)

    codes = await server.run_recorded(grant, f"invite to {survey.slug}", create_codes)
    base_url, digest = server.settings.base_url, survey.announcement.digest
    links = [invitations.make_link(base_url, survey.slug, digest, code) for code in codes]
    return InvitationCodes(codes=codes, links=links)


@router.delete(
    "/{slug}",
    status_code=204,
    response_class=Response,
    tags=["surveys"],
    responses=describe_responses(*ACTION_PROBLEMS, "state", "invalid"),
)
async def delete_survey(
    request: Request,
    grant: Owner,
    survey: SurveyBySlug,
    confirm: Annotated[str, Query(description="The name of the survey once more")] = "",
) -> Response:
    """Delete a survey with everything in it, also from the files of the database.

    Backups, replicas and archives of its log are not reached; PostgreSQL's own log is overwritten
    where the role may. What cannot be erased at once is tried again at every look.
    """
    server = get_server(request)
    if confirm != survey.slug:
        raise Problem("state", f"this deletes everything; repeat it with confirm={survey.slug}")
    await server.run_recorded(
        grant,
        f"delete {survey.slug}",
        lambda connection: surveys.delete_survey(connection, survey.number),
    )
    await server.run_in_writer(lambda: clear_keys(server.database, survey.number))
    server.surveys.forget_survey(survey.slug)
    with suppress(SQLAlchemyError):  # it is deleted; upkeep tries again, and says why not
        await server.erase_surveys()
    return Response(status_code=204)
