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
import map calls :func:`~discreet.server.headers.make_content_policy`. Static files are mounted by
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
from discreet.hosting.body_limit import BodyLimit
from discreet.server import api, problems, reports, tallies
from discreet.server import database as db
from discreet.server.headers import SecurityHeaders
from discreet.server.problems import Problem, ProblemBody, describe_responses, make_problem_response
from discreet.server.reports import get_server
from discreet.server.running import Server
from discreet.server.surveys import utc_day

__all__ = ["create_application"]

CROSS_ORIGIN_PATHS = re.compile(
    r"/api/v1/surveys/[^/]+(?:/document|/reports|/reports/[0-9a-f]{32}|/invitations/state)?"
)
"""What a page on another host may use: everything that respondents need."""

general_router = APIRouter(tags=["server"])


@general_router.get("/health", response_class=PlainTextResponse)
async def check_health() -> str:
    """Report that the process is alive."""
    return "alive\n"


@general_router.get(
    "/ready", response_class=PlainTextResponse, responses=describe_responses("unavailable")
)
def check_readiness(request: Request) -> str:
    """Check that the database answers, reports are stored and settling works."""
    server = get_server(request)
    with server.database.read() as connection:
        connection.execute(sql.select(sql.func.count()).select_from(db.survey)).scalar()
    if server.writer.has_failed:
        raise Problem("unavailable", "the last reports could not be stored")
    if server.failure_reason:
        raise Problem("unavailable", "what waits cannot be settled; the server's log says why")
    return "ready\n"


@general_router.get(
    "/metrics", response_class=PlainTextResponse, responses=describe_responses("unavailable")
)
def get_metrics(request: Request) -> str:
    """Counters for Prometheus; they change at settling only, so they reveal no arrival times."""
    server = get_server(request)
    samples: dict[str, list[str]] = {
        counter_name: [] for counter_name in ("settled", "repeated", "withdrawn", "refused")
    }
    with server.database.read() as connection:
        for survey, state in server.surveys.list_surveys():
            if state == "draft":  # nobody has to know of it yet
                continue
            public_counters = tallies.read_counters(connection, survey.number)
            survey_label = f'survey="{survey.slug}"'
            for counter_name in ("settled", "repeated", "withdrawn"):
                count = getattr(public_counters, counter_name)
                samples[counter_name].append(f"{{{survey_label}}} {count}")
            for refusal_kind, times in tallies.read_refusals(connection, survey.number).items():
                samples["refused"].append(f'{{{survey_label},kind="{refusal_kind}"}} {times}')
    lines = []
    for counter_name, counter_samples in samples.items():
        metric_name = f"discreet_{counter_name}_total"
        lines += [f"# TYPE {metric_name} counter", *(metric_name + s for s in counter_samples)]
    return "".join(f"{line}\n" for line in lines)


@general_router.get(
    "/.well-known/security.txt",
    response_class=PlainTextResponse,
    responses=describe_responses("not-found"),
)
async def get_security_contact(request: Request) -> str:
    """Return the contact for reports of vulnerabilities (RFC 9116)."""
    contact = get_server(request).settings.contact
    if not contact:
        raise Problem("not-found", "the operator has named no contact (serve --contact)")
    expires = (utc_day() + timedelta(days=180)).isoformat()
    return f"Contact: {contact}\nExpires: {expires}T00:00:00Z\n"


def create_application(server: Server, pages: Sequence[APIRouter] = ()) -> Any:
    """Create the ASGI application with all routes.

    Parameters
    ----------
    server : Server
    pages : sequence of routers
        Pages and the desk.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with server.run_lifespan():
            yield

    fastapi_app = FastAPI(
        title="discreet",
        version=__version__,
        summary="Collects randomized reports; the truth never comes here.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would echo the header Host; problems.py redirects without it
        lifespan=lifespan,
    )
    fastapi_app.add_middleware(BodyLimit, make_refusal=_refuse_body)
    fastapi_app.state.server = server
    routers = (*reports.routers, api.router, general_router, *pages)
    problems.add_problem_handlers(fastapi_app, routers)
    for router in routers:
        fastapi_app.include_router(router)
    _describe_openapi(fastapi_app)
    return SecurityHeaders(
        fastapi_app,
        server.settings.is_secure,
        lambda path: bool(CROSS_ORIGIN_PATHS.fullmatch(path)),
    )


def _refuse_body(reason: str, sentence: str) -> Any:
    return make_problem_response(Problem(reason, sentence))


def _describe_openapi(app: FastAPI) -> None:
    """Replace the framework's error schemas in the OpenAPI description by our problems."""
    default_openapi = app.openapi

    def build_openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            description = default_openapi()
            schemas = description.setdefault("components", {}).setdefault("schemas", {})
            schemas["ProblemBody"] = ProblemBody.model_json_schema()
            for schema_name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(schema_name, None)
            for path_item in description["paths"].values():
                for operation in path_item.values():
                    for route_response in operation.get("responses", {}).values():
                        content = route_response.get("content", {})
                        if "application/problem+json" in content:
                            content.pop("application/json", None)
            app.openapi_schema = description
        return app.openapi_schema

    app.openapi = build_openapi  # type: ignore[method-assign]
