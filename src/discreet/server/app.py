"""The application: routes, headers on every answer, health, start and end.

    GET  /api/v1/surveys/{slug}                announcement        GET .../document  canonical bytes
    POST /api/v1/surveys/{slug}/reports        one report          POST .../reports/batch   Parquet
    DELETE .../reports/{id}                    withdrawal by key   POST .../invitations/state
    GET  .../tally .../statistics .../model .../reports.parquet    POST .../predict
    POST /api/v1/surveys, .../open, .../close, .../settle, .../invitations; DELETE /api/v1/surveys/…
    GET  /health /ready /metrics /openapi.json /.well-known/security.txt

How pages are added. ``create_application(server, pages=[router, …])`` includes routers of pages and
the desk. In a route, ``get_server(request)`` gives the
:class:`~discreet.server.running.Server` with its database, surveys, analyses and writer;
``server.access.require_role(request, "viewer")`` checks a token or the session cookie
(:mod:`discreet.server.access`); everything that writes runs in
``await server.run_in_writer(work)``. The strict content policy is on every answer; a page with an
import map calls :func:`~discreet.server.headers.content_policy`. Static files are mounted by
the pages.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import sqlalchemy as sql
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse

from discreet import __version__
from discreet.body_limit import BodyLimit
from discreet.server import api, problems, reports, tallies
from discreet.server import database as db
from discreet.server.headers import Headers
from discreet.server.problems import Problem, ProblemBody, problem_response, responses
from discreet.server.reports import server_of
from discreet.server.running import Server
from discreet.server.surveys import utc_day

__all__ = ["application"]

FOREIGN = re.compile(
    r"/api/v1/surveys/[^/]+(?:/document|/reports|/reports/[0-9a-f]{32}|/invitations/state)?"
)
"""What a page on another host may use: everything that respondents need."""

general = APIRouter(tags=["server"])


@general.get("/health", response_class=PlainTextResponse)
async def health() -> str:
    """Report that the process is alive."""
    return "alive\n"


@general.get("/ready", response_class=PlainTextResponse, responses=responses("unavailable"))
def ready(request: Request) -> str:
    """Check that the database answers, reports are stored and settling works."""
    server = server_of(request)
    with server.database.read() as connection:
        connection.execute(sql.select(sql.func.count()).select_from(db.survey)).scalar()
    if server.writer.failed:
        raise Problem("unavailable", "the last reports could not be stored")
    if server.failing:
        raise Problem("unavailable", "what waits cannot be settled; the server's log says why")
    return "ready\n"


@general.get("/metrics", response_class=PlainTextResponse, responses=responses("unavailable"))
def metrics(request: Request) -> str:
    """Counters for Prometheus; they change at settling only, so they reveal no arrival times."""
    server = server_of(request)
    lines: dict[str, list[str]] = {
        f"discreet_{name}_total": [] for name in ("settled", "repeated", "withdrawn", "refused")
    }
    with server.database.read() as connection:
        for survey, state in server.surveys.all():
            if state == "draft":  # nobody has to know of it yet
                continue
            shown = tallies.published(connection, survey.number)
            label = f'survey="{survey.slug}"'
            for name in ("settled", "repeated", "withdrawn"):
                lines[f"discreet_{name}_total"].append(f"{{{label}}} {getattr(shown, name)}")
            here = db.refusal.c
            refused = sql.select(here.kind, here.times).where(here.survey == survey.number)
            for kind, times in connection.execute(refused.order_by(here.kind)):
                lines["discreet_refused_total"].append(f'{{{label},kind="{kind}"}} {times}')
    text = ""
    for name, values in lines.items():
        text += f"# TYPE {name} counter\n" + "".join(f"{name}{value}\n" for value in values)
    return text


@general.get(
    "/.well-known/security.txt",
    response_class=PlainTextResponse,
    responses=responses("not-found"),
)
async def security(request: Request) -> str:
    """Return the contact for reports of vulnerabilities (RFC 9116)."""
    contact = server_of(request).settings.contact
    if not contact:
        raise Problem("not-found", "the operator has named no contact (serve --contact)")
    expires = (utc_day() + timedelta(days=180)).isoformat()
    return f"Contact: {contact}\nExpires: {expires}T00:00:00Z\n"


def application(server: Server, pages: Sequence[APIRouter] = ()) -> Any:
    """Create the ASGI application with all routes.

    Parameters
    ----------
    server : Server
    pages : sequence of routers
        Pages and the desk.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with server.running():
            yield

    app = FastAPI(
        title="discreet",
        version=__version__,
        summary="Collects randomized reports; the truth never comes here.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would echo the header Host; problems.py redirects without it
        lifespan=lifespan,
    )
    app.add_middleware(BodyLimit, refuse=_refuse_body)
    app.state.server = server
    routers = (*reports.routers, api.router, general, *pages)
    problems.handlers(app, routers)
    for router in routers:
        app.include_router(router)
    _describe(app)
    return Headers(app, server.settings.secure, lambda path: bool(FOREIGN.fullmatch(path)))


def _refuse_body(reason: str, sentence: str) -> Any:
    return problem_response(Problem(reason, sentence))


def _describe(app: FastAPI) -> None:
    """Replace the framework's error schemas in the OpenAPI description by our problems."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            whole = made()
            parts = whole.setdefault("components", {}).setdefault("schemas", {})
            parts["ProblemBody"] = ProblemBody.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                parts.pop(name, None)
            for path in whole["paths"].values():
                for operation in path.values():
                    for answer in operation.get("responses", {}).values():
                        content = answer.get("content", {})
                        if "application/problem+json" in content:
                            content.pop("application/json", None)
            app.openapi_schema = whole
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
