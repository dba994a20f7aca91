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

from discreet.announcement import Announcement
from discreet.collection.files import ReportFile
from discreet.collection.protocol import collection_of
from discreet.errors import EstimationError
from discreet.server import invitations, tallies
from discreet.server import surveys as acts
from discreet.server.access import Grant
from discreet.server.analysis import Analysis
from discreet.server.intake import matrices_of
from discreet.server.problems import Problem, responses
from discreet.server.reports import (
    PARQUET,
    Slug,
    described_body,
    guarded,
    guessing,
    json_body,
    published_survey,
    server_of,
    visible_survey,
)
from discreet.server.running import Server
from discreet.server.sealed_arrivals import count_waiting
from discreet.server.settle import clear_keys, smallest_pool
from discreet.server.surveys import Survey

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/surveys")
bearer = HTTPBearer(scheme_name="token", auto_error=False)
MOST_ROWS = 10_000
PIECE = 1 << 18
"""Bytes of a file that are read at a time."""


def viewer(request: Request, _: Annotated[Any, Depends(bearer)] = None) -> Grant:
    """Require the role to read results."""
    return guarded(request).access.require(request, "viewer")


def owner(request: Request, _: Annotated[Any, Depends(bearer)] = None) -> Grant:
    """Require the role to change something."""
    return guarded(request).access.require(request, "owner")


Viewer = Annotated[Grant, Depends(viewer)]
Owner = Annotated[Grant, Depends(owner)]
PUBLIC = ("not-found", "too-many", "unavailable")
READS = ("unauthorized", "forbidden", *PUBLIC)
ACTS = (*READS, "cross-site", "busy")
BODIES = ("slow", "oversized", "media-type")


async def _survey(request: Request, slug: Slug) -> Survey:
    return await server_of(request).survey(slug)


async def _published(request: Request, slug: Slug) -> Survey:
    return await published_survey(server_of(request), slug)


Found = Annotated[Survey, Depends(_survey)]
Published = Annotated[Survey, Depends(_published)]
Visible = Annotated[Survey, Depends(visible_survey)]


class Listed(BaseModel):
    """An entry in the list of surveys."""

    slug: str
    kind: str
    digest: str
    state: Literal["draft", "open", "closed"]


class Described(Listed):
    """A survey and its announcement."""

    announcement: dict[str, Any]
    guarantee: dict[str, Any] = Field(description="What people are promised")


def _listed(survey: Survey, state: str) -> dict[str, Any]:
    collection = survey.collection
    return {
        "slug": survey.slug,
        "kind": collection.kind,
        "digest": collection.digest,
        "state": state,
    }


# ---------------------------------------------------------------- public


@router.get("", tags=["surveys"], responses=responses("too-many", "unavailable"))
def listed(request: Request) -> list[Listed]:
    """List the surveys that are open today."""
    server, today = guarded(request), acts.utc_day()
    return [
        Listed(**_listed(survey, "open"))
        for survey, state in server.surveys.all()
        if state == "open" and survey.announcement.on(today) == "open"
    ]


@router.get("/{slug}", tags=["surveys"], responses=responses(*PUBLIC, "invalid"))
def announcement(request: Request, survey: Visible) -> Described:
    """Return the announcement (who asks, texts, dates) and the privacy guarantee.

    A draft is shown to those who may see results.
    """
    server = server_of(request)
    state = server.surveys.state(survey)
    if state is None:
        raise Problem("not-found", "there is no survey of this name here")
    promised = survey.announcement.guarantee(survey.collection)
    return Described(
        **_listed(survey, state),
        announcement=json.loads(survey.announcement.to_json()),
        guarantee={**_finite(promised.to_body()), "text": str(promised)},
    )


def _finite(body: Any) -> Any:
    """Encode infinities as strings, since JSON has none."""
    from discreet.documents import canonical

    return json.loads(canonical(body))


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
        **responses(*PUBLIC, "invalid"),
    },
)
async def document(request: Request, survey: Visible) -> Response:
    """Return the plan or questionnaire as canonical bytes; their SHA-256 is the digest.

    A draft is shown to those who may see results.
    """
    tag = f'"{survey.collection.digest}"'
    published = server_of(request).surveys.known_as_published(survey)
    cached = "public, max-age=31536000, immutable" if published else "no-store"
    headers = {"ETag": tag, "Cache-Control": cached}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(survey.document, headers=headers, media_type="application/json")


class Code(BaseModel):
    """The code of an invitation."""

    code: str = Field(max_length=100)


class CodeState(BaseModel):
    """Whether an invitation can be used."""

    state: Literal["unused", "spent", "unknown"]


@router.post(
    "/{slug}/invitations/state",
    tags=["invitations"],
    responses=responses(*PUBLIC, "oversized", "invalid"),
)
def invitation_state(request: Request, survey: Published, body: Code) -> CodeState:
    """Check whether a code is unused; asked before drawing, so that no report is drawn in vain."""
    server = guessing(request, "codes")
    with server.database.read() as connection:
        return CodeState(state=invitations.state_of(connection, survey.number, body.code))


# ---------------------------------------------------------------- results


def _analysis(request: Request, survey: Survey) -> Analysis:
    return server_of(request).analyses.of(survey)


@contextmanager
def enough_reports() -> Iterator[None]:
    """Refuse with ``no-reports`` where there are too few reports for an estimate."""
    try:
        yield
    except EstimationError as error:
        raise Problem("no-reports", str(error)) from None


def _text(text: str) -> Response:
    return Response(text, media_type="application/json")


RESULTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "object"}}}},
    **responses(*READS, "no-reports", "invalid"),
}


@router.get("/{slug}/tally", tags=["results"], response_class=Response, responses=RESULTS)
def tally(request: Request, _: Viewer, survey: Found) -> Response:
    """Return the settled tally; `discreet local tally` merges it with those of other collectors."""
    return _text(_analysis(request, survey).tally.to_json(seen=False))


@router.get("/{slug}/statistics", tags=["results"], response_class=Response, responses=RESULTS)
def statistics(request: Request, _: Viewer, survey: Found) -> Response:
    """Return unbiased estimates with their variances."""
    with enough_reports():
        return _text(_analysis(request, survey).statistics.to_json())


@router.get("/{slug}/model", tags=["results"], response_class=Response, responses=RESULTS)
def model(request: Request, _: Viewer, survey: Found) -> Response:
    """Return the classifier, as `discreet predict` reads it."""
    with enough_reports():
        return _text(_analysis(request, survey).model.to_json())


class Rows(BaseModel):
    """Records without their class."""

    rows: list[dict[str, str | int | float | bool | None]] = Field(
        min_length=1, max_length=MOST_ROWS
    )


class Predictions(BaseModel):
    """The most probable class of each row, and the probability of each class."""

    classes: list[str]
    predicted: list[str]
    probabilities: list[list[float]]


@router.post(
    "/{slug}/predict",
    tags=["results"],
    responses=responses(*READS, *BODIES, "no-reports", "invalid"),
    openapi_extra=described_body(Rows),
)
def predict(
    request: Request, _: Viewer, survey: Found, body: Annotated[Rows, Depends(json_body(Rows))]
) -> Predictions:
    """Predict classes of records with the model of what is settled now."""
    from discreet.schema import text_of

    with enough_reports():
        found = _analysis(request, survey).model
    probabilities = found.predict_proba(body.rows)
    classes = [text_of(one) for one in found.schema.classes]
    best = probabilities.argmax(axis=1)
    return Predictions(
        classes=classes,
        predicted=[classes[one] for one in best],
        probabilities=probabilities.tolist(),
    )


@router.get(
    "/{slug}/reports.parquet",
    tags=["results"],
    response_class=Response,
    responses={
        200: {"content": {PARQUET: {"schema": {"type": "string", "format": "binary"}}}},
        **responses(*READS, "invalid"),
    },
)
def export(request: Request, _: Viewer, survey: Found) -> Response:
    """Export all settled reports in the order of their ids, for DuckDB, Spark or `discreet`."""
    # the system deletes it when it is closed, also where the server is killed
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is sent
    try:
        write_export(server_of(request), survey, file)
        size = file.seek(0, os.SEEK_END)
    except BaseException:
        file.close()
        raise
    headers = {
        "Content-Disposition": f'attachment; filename="{survey.slug}.parquet"',
        "Content-Length": str(size),
    }
    return StreamingResponse(read_pieces(file), headers=headers, media_type=PARQUET)


def read_pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of a file in chunks from its beginning; close it at the end."""
    with file:
        file.seek(0)
        while piece := file.read(PIECE):
            yield piece


def write_export(server: Server, survey: Survey, file: IO[bytes]) -> None:
    """Write the settled reports as a Parquet file."""
    import numpy as np

    collection, invented = survey.collection, survey.simulated
    with server.database.read() as connection, ReportFile(file, collection, invented) as written:
        for rows in tallies.stored_rows(connection, survey.number):
            values: list[Any] = [None] * len(rows)
            for _, places, matrix in matrices_of(collection, rows):
                for place, row in zip(places.tolist(), matrix.tolist(), strict=True):
                    values[place] = row
            ids = np.frombuffer(b"".join(bytes(row.id) for row in rows), np.uint8)
            written.write([row.question for row in rows], ids.reshape(-1, 16), values)


# ---------------------------------------------------------------- owners


async def store(server: Server, grant: Grant, collection: Any, told: Announcement) -> None:
    """Store a new survey as a draft, unless its name is taken."""

    def work() -> None:
        with server.database.write() as connection:
            acts.create(connection, collection, told)
            server.access.note(connection, grant, f"create {told.name}")

    try:
        await server.write(work)
    except sql.exc.IntegrityError:
        raise Problem("exists", f"there is a survey named {told.name}; choose another") from None


class New(BaseModel):
    """A survey to create."""

    document: str = Field(description="The plan or questionnaire: the exact text of its file")
    announcement: str | None = Field(None, description="The text of an announcement")
    name: str | None = Field(None, description="Its place in the address, without an announcement")


@router.post(
    "",
    status_code=201,
    tags=["surveys"],
    responses=responses(*(one for one in ACTS if one != "not-found"), *BODIES, "exists", "invalid"),
    openapi_extra=described_body(New),
)
async def create(
    request: Request, grant: Owner, body: Annotated[New, Depends(json_body(New))]
) -> Listed:
    """Create a survey; it is a draft until it is opened."""
    server = server_of(request)
    collection = await run_in_threadpool(collection_of, body.document)
    if body.announcement is not None:
        told = Announcement.from_json(body.announcement)
    else:
        told = Announcement.plain(collection, body.name or collection.kind)
    await store(server, grant, collection, told)
    return Listed(**_listed(await server.survey(told.name), "draft"))


@router.post("/{slug}/open", tags=["surveys"], responses=responses(*ACTS, "state", "invalid"))
async def open_survey(request: Request, grant: Owner, survey: Found) -> Listed:
    """Open a survey for answers. A closed survey stays closed."""
    server = server_of(request)

    def work() -> None:
        with server.database.write() as connection:
            stored = acts.stored_state(connection, survey.number)
            if stored is None:
                raise Problem("not-found", "there is no survey of this name here")
            if stored == "closed":
                raise Problem("state", "a closed survey is not opened again; make another one")
            acts.set_state(connection, survey.number, "open")
            server.access.note(connection, grant, f"open {survey.slug}")

    await server.write(work)
    return Listed(**_listed(survey, survey.announcement.on(acts.utc_day())))


@router.post("/{slug}/close", tags=["surveys"], responses=responses(*ACTS, "invalid"))
async def close_survey(request: Request, grant: Owner, survey: Found) -> Listed:
    """Close a survey to reports, and settle those that wait, however few they are."""
    server = server_of(request)
    await server.close(survey, lambda c: server.access.note(c, grant, f"close {survey.slug}"))
    return Listed(**_listed(survey, "closed"))


class Settled(BaseModel):
    """Number of reports that were settled."""

    settled: int


@router.post(
    "/{slug}/settle", tags=["surveys"], responses=responses(*ACTS, "small-batch", "invalid")
)
async def settle_survey(
    request: Request,
    grant: Owner,
    survey: Found,
    anyway: Annotated[bool, Query(description="Keep nothing back, however few wait")] = False,
) -> Settled:
    """Settle a random part of the waiting reports, or all of them with `anyway`."""
    server = server_of(request)

    def work() -> int:
        with server.database.write() as connection:
            server.access.note(connection, grant, f"settle {survey.slug}")
            most = smallest_pool(survey.announcement.batch)
            return count_waiting(connection, survey.number, most)

    count, least = await server.write(work), survey.announcement.batch
    pool = smallest_pool(least)
    if count < pool and not anyway:
        raise Problem(
            "small-batch",
            f"fewer than {pool} reports wait. People were told of batches of {least} or more, and "
            f"{least} are kept back at random, so that nobody who sends all others reads the last "
            "report. Wait, or settle all that wait now: choose that at the desk, or repeat this "
            "with anyway=true",
        )
    return Settled(settled=await server.settle(survey, 1 if anyway else least))


class Invited(BaseModel):
    """Number of invitation codes to create."""

    count: int = Field(ge=1, le=invitations.MOST)


class Codes(BaseModel):
    """Invitation codes; they are shown only once."""

    codes: list[str]
    links: list[str]


@router.post(
    "/{slug}/invitations",
    status_code=201,
    tags=["invitations"],
    responses=responses(*ACTS, "state", "oversized", "invalid"),
)
async def invite(request: Request, grant: Owner, survey: Found, body: Invited) -> Codes:
    """Create invitation codes. Only their hashes are stored."""
    server = server_of(request)

    def work() -> list[str]:
        with server.database.write() as connection:
            ended = survey.announcement.on(acts.utc_day()) == "closed"
            if ended or acts.stored_state(connection, survey.number) == "closed":
                raise Problem("state", "it is closed: nobody could use an invitation any more")
            server.access.note(connection, grant, f"invite to {survey.slug}")
            return invitations.invite(connection, survey.number, body.count)

    codes = await server.write(work)
    base = server.settings.base
    announced = survey.announcement.digest
    links = [invitations.link_of(base, survey.slug, announced, code) for code in codes]
    return Codes(codes=codes, links=links)


@router.delete(
    "/{slug}",
    status_code=204,
    response_class=Response,
    tags=["surveys"],
    responses=responses(*ACTS, "state", "invalid"),
)
async def delete_survey(
    request: Request,
    grant: Owner,
    survey: Found,
    confirm: Annotated[str, Query(description="The name of the survey once more")] = "",
) -> Response:
    """Delete a survey with everything in it, also from the files of the database.

    Backups, replicas and archives of its log are not reached; PostgreSQL's own log is overwritten
    where the role may. What cannot be erased at once is tried again at every look.
    """
    server = server_of(request)
    if confirm != survey.slug:
        raise Problem("state", f"this deletes everything; repeat it with confirm={survey.slug}")

    def work() -> None:
        with server.database.write() as connection:
            acts.delete(connection, survey.number)
            server.access.note(connection, grant, f"delete {survey.slug}")

    await server.write(work)
    await server.write(lambda: clear_keys(server.database, survey.number))
    server.surveys.forget(survey.slug)
    with suppress(SQLAlchemyError):  # it is deleted; upkeep tries again, and says why not
        await server.erase()
    return Response(status_code=204)
