"""The collector's desk: results with their uncertainty, and the actions on a collection.

Pages are made here and work without JavaScript, but for the link that signs in and for the live
statement of the promise. A session is a cookie that only these pages get; whatever changes
something is a POST from one of our own pages (:mod:`discreet.server.access`). What is refused is a
page as well, that of signing in where nobody is signed in.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from discreet.display.chart_parts import read_stylesheet
from discreet.errors import DiscreetError, EstimationError
from discreet.hosting.body_limit import ANONYMOUS_BODY_BYTES
from discreet.privacy.guarantee import Guarantee, format_rounded_up
from discreet.server import api, drafts, invitations, tallies
from discreet.server.access import (
    CROSS_SITE_DETAIL,
    SESSION_DAYS,
    Grant,
    format_session_cookie,
    is_same_origin,
    read_session,
)
from discreet.server.bundle import MEDIA_TYPES, Bundle, load_templates
from discreet.server.desk_actions import DeskAction, run_action
from discreet.server.evidence import format_factor
from discreet.server.pages import Translator, describe_guarantee
from discreet.server.prediction import make_prediction
from discreet.server.problems import Problem, make_missing_problem
from discreet.server.reports import (
    get_server,
    read_large_body,
    require_guess_quota,
    require_request_quota,
)
from discreet.server.results import LIAR_SHARES, SurveyResults, format_report_count
from discreet.server.sealed_arrivals import count_waiting
from discreet.server.settling import MAX_WAIT_SECONDS, compute_pool_size
from discreet.server.surveys import Survey, utc_day

__all__ = ["create_desk_router"]

MAX_FORM_BYTES = 1 << 20
SERVER_FOLDER = Path(__file__).parent
SESSION_ENDED_TEXT = "You are signed out: a session ends after a day."
MAX_LETTERS = 200
"""Letters per page: each QR code takes time to draw."""
NEW_FORM_FIELDS = {"questions": drafts.EXAMPLE_QUESTIONS, "truth": "50", "batch": "100"}
"""Initial fields of the form for a new collection."""

Handler = Callable[..., Any]


def create_desk_router(bundle: Bundle | None = None) -> APIRouter:
    """Create the routes of the desk.

    Parameters
    ----------
    bundle : Bundle, optional
        For the digest in letters and for previews; that of the package if not given.
    """
    desk = Desk(bundle or Bundle())
    router = APIRouter(include_in_schema=False, route_class=desk.make_route_class())
    routes: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/desk", desk.list_collections),
        ("GET", "/desk/static/{name}", desk.get_static_file),
        ("POST", "/desk/enter", desk.sign_in),
        ("POST", "/desk/leave", desk.sign_out),
        ("GET", "/desk/new/collection", desk.show_draft_form),
        ("POST", "/desk/new/collection", desk.create_collection),
        ("POST", "/desk/promise", desk.get_promise),
        ("GET", "/desk/{slug}", desk.show_collection),
        ("GET", "/desk/{slug}/preview", desk.show_preview),
        ("GET", "/desk/{slug}/files/{name}", desk.get_file),
        ("POST", "/desk/{slug}/predict", desk.show_prediction),
        ("POST", "/desk/{slug}/do/{name}", desk.run_action),
        ("POST", "/desk/{slug}/letters", desk.print_letters),
    )
    for method, path, handler in routes:
        router.add_api_route(path, handler, methods=[method], response_model=None)
    return router


async def _read_fields(request: Request) -> dict[str, str]:
    """Read the fields of a form from our own pages; the session was checked before."""
    return await _read_form(request, MAX_FORM_BYTES)


async def _read_anonymous_fields(request: Request) -> dict[str, str]:
    """Read the fields of a form from somebody who is not signed in."""
    return await _read_form(request, ANONYMOUS_BODY_BYTES)


async def _read_form(request: Request, limit: int) -> dict[str, str]:
    if not is_same_origin(request):
        raise Problem("cross-site", CROSS_SITE_DETAIL)
    body = await read_large_body(request, limit)
    try:
        form_values = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise Problem("invalid", "this is not a form") from None
    return {field_name: field_values[-1] for field_name, field_values in form_values.items()}


FormFields = Annotated[dict[str, str], Depends(_read_fields)]
AnonymousFields = Annotated[dict[str, str], Depends(_read_anonymous_fields)]


def _redirect_to(path: str, session: str | None = None, secure: bool = True) -> Response:
    """Redirect to another page, with a session cookie if given."""
    redirect = RedirectResponse(path, 303)
    if session is not None:
        redirect.headers["Set-Cookie"] = format_session_cookie(session, secure)
    return redirect


def format_promise(guarantee: Guarantee) -> str:
    """Format a guarantee in one sentence."""
    belief_facts = describe_guarantee(guarantee)
    if belief_facts["inactive"]:
        return "Nobody is protected: " + "; ".join(guarantee.void_reasons)
    sentence = (
        f"Epsilon {format_rounded_up(guarantee.epsilon, 3)} per person in total: somebody who "
        f"thinks something {belief_facts['before']} in 100 likely can be moved to at most "
        f"{belief_facts['after']} in 100."
    )
    return sentence + (" This protection is weak." if belief_facts["weak"] else "")


class Desk:
    """The pages of the desk, a method for each.

    Parameters
    ----------
    bundle : Bundle
        For the digest in letters and for previews.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.digest, self.templates = bundle.digest, load_templates()
        self.respondents_page, self.policy = bundle.render_page(), bundle.build_policy()
        self.templates.filters |= {"counted": format_report_count, "factor": format_factor}
        self.templates.filters["day"] = Translator("en", bundle.words["en"]).format_day
        desk_folder = SERVER_FOLDER / "static" / "desk"
        self.files = {
            file_name: (desk_folder / file_name).read_bytes()
            for file_name in ("desk.js", "desk.css")
        }
        self.files["charts.css"] = read_stylesheet().encode()
        self.script = Bundle(self.files).compute_integrity("desk.js")

    # ------------------------------------------------------------ how pages are shown

    def render_page(self, template_name: str, status: int = 200, **content: Any) -> HTMLResponse:
        """Render a page from its template."""
        page_html = self.templates.get_template(template_name).render(script=self.script, **content)
        return HTMLResponse(page_html, status)

    def render_refusal(self, request: Request, problem: Problem) -> Response:
        """Render a refusal as a page, since people read it."""
        if problem.kind == "unauthorized":
            sign_in_message = SESSION_ENDED_TEXT if read_session(request) else ""
            return self.render_page(
                "desk_enter.html", 401, title="Sign in", problem=sign_in_message
            )
        return self.render_page(
            "desk_problem.html", problem.status, title=problem.title, problem=problem
        )

    def make_route_class(self) -> type[APIRoute]:
        """Make a route class that renders refusals as pages."""
        desk = self

        class Page(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handler = super().get_route_handler()

                async def handle_refusals(request: Request) -> Response:
                    try:
                        return await handler(request)
                    except Problem as problem:
                        return desk.render_refusal(request, problem)
                    except DiscreetError as error:
                        return desk.render_refusal(
                            request, Problem("invalid", _format_error(error))
                        )
                    except RequestValidationError:  # no collection has such a name
                        return desk.render_refusal(request, Problem("not-found"))

                return handle_refusals

        return Page

    async def get_static_file(self, name: str) -> Response:
        """Return a style sheet or script of the desk."""
        if name not in self.files:
            raise Problem("not-found")
        media_type = MEDIA_TYPES["." + name.rpartition(".")[2]]
        headers = {"Content-Type": media_type, "Cache-Control": "no-cache"}
        return Response(self.files[name], headers=headers)

    # ------------------------------------------------------------ in and out

    async def sign_in(self, request: Request, fields: AnonymousFields) -> Response:
        """Sign in with the token of a link, which works once, or with an API token."""
        server = require_guess_quota(request, "tokens")
        token, access = fields.get("token", "").strip(), server.access
        try:
            grant = await run_in_threadpool(access.find_grant, token, "token")
            if grant is None:
                session = await server.run_in_writer(lambda: access.exchange_link_token(token))
            else:
                session_arguments = (grant.role, grant.label, "session", SESSION_DAYS)
                session = await server.run_in_writer(
                    lambda: access.create_token(*session_arguments)
                )
        except Problem as problem:
            return self.render_page(
                "desk_enter.html", problem.status, title="Sign in", problem=str(problem)
            )
        return _redirect_to("/desk", session, server.settings.is_secure)

    async def sign_out(self, request: Request, _: AnonymousFields) -> Response:
        """Sign out."""
        server, session = require_request_quota(request), read_session(request)
        await server.run_in_writer(lambda: server.access.end_session(session))
        return _redirect_to("/desk", "", server.settings.is_secure)

    # ------------------------------------------------------------ all collections

    def list_collections(self, request: Request, grant: api.Viewer) -> Response:
        """List all collections with state and guarantee."""
        server, collection_entries = get_server(request), []
        with server.database.read() as connection:
            for survey, _ in server.surveys.list_surveys():
                collection_entry = {
                    "survey": survey,
                    "state": server.surveys.read_state(survey),
                    "reports": tallies.read_counters(connection, survey.number).settled,
                    "overdue": survey.announcement.is_overdue(utc_day()),
                    "promise": format_promise(
                        survey.announcement.make_guarantee(survey.collection)
                    ),
                }
                collection_entries.append(collection_entry)
        return self.render_page(
            "desk_list.html", title="Desk", grant=grant, found=collection_entries
        )

    def show_draft_form(self, grant: api.Owner) -> Response:
        """Show the form for a new collection."""
        return self._render_form(grant, NEW_FORM_FIELDS)

    def _render_form(
        self, grant: Grant, fields: dict[str, str], problem: str = "", status: int = 200
    ) -> Response:
        content = {"title": "New collection", "fields": fields, "problem": problem}
        return self.render_page("desk_new.html", status, grant=grant, **content)

    def get_promise(self, _: api.Owner, fields: FormFields) -> Response:
        """Return the guarantee of the collection that the form describes so far."""
        try:
            return PlainTextResponse(format_promise(drafts.parse_collection(fields).guarantee))
        except DiscreetError as error:
            return PlainTextResponse(_format_error(error), 422)

    async def create_collection(
        self, request: Request, grant: api.Owner, fields: FormFields
    ) -> Response:
        """Store the collection of a form as a draft."""
        try:
            collection = await run_in_threadpool(drafts.parse_collection, fields)
            announcement = drafts.make_announcement(fields, collection)
            await api.store_draft(get_server(request), grant, collection, announcement)
        except DiscreetError as error:
            return self._render_form(
                grant, fields, _format_error(error), getattr(error, "status", 422)
            )
        return _redirect_to(f"/desk/{announcement.name}")

    # ------------------------------------------------------------ one collection

    def show_collection(
        self, request: Request, grant: api.Viewer, survey: api.SurveyBySlug
    ) -> Response:
        """Show the page of one collection."""
        return self._render_collection(request, grant, survey)

    def _render_collection(
        self,
        request: Request,
        grant: Grant,
        survey: Survey,
        status: int = 200,
        **extra_content: Any,
    ) -> Response:
        server, announcement = get_server(request), survey.announcement
        state = server.surveys.read_state(survey)
        guarantee = announcement.make_guarantee(survey.collection)
        if state is None:  # deleted by another process
            raise make_missing_problem()
        with server.database.read() as connection:
            has_waiting = state == "closed" and count_waiting(connection, survey.number, 1) > 0
            refusal_counts = tallies.read_refusals(connection, survey.number)
        results, refusal_reason = None, ""
        try:
            results = SurveyResults(server.analyses.get_analysis(survey))
            _ = results.verdict, results.evidence  # computed here, so that a refusal is caught
        except EstimationError as error:
            results, refusal_reason = None, str(error)
        content = {
            "title": survey.slug,
            "grant": grant,
            "survey": survey,
            "state": state,
            "overdue": announcement.is_overdue(utc_day()),
            "base": server.settings.base_url,
            "link": invitations.make_link(
                server.settings.base_url, survey.slug, announcement.digest
            ),
            "promise": format_promise(guarantee),
            "guarantee": str(guarantee),
            "pool": compute_pool_size(announcement.batch),
            "longest_wait_days": round(MAX_WAIT_SECONDS / 86_400),
            "left": has_waiting,
            "refused": {
                refusal_kind: times
                for refusal_kind, times in sorted(refusal_counts.items())
                if times
            },
            "results": results,
            "reason": refusal_reason,
            "schema": survey.collection.original,
            "liars": LIAR_SHARES,
            "most_letters": MAX_LETTERS,
            "prediction": None,
            "given": {},
            "problem": "",
        }
        return self.render_page("desk_survey.html", status, **(content | extra_content))

    def show_preview(self, _: api.Viewer, survey: api.SurveyBySlug) -> Response:
        """Show the respondent's page to a collector, also of a draft; nothing is stored or sent."""
        headers = {"Content-Security-Policy": self.policy}
        return HTMLResponse(self.respondents_page, headers=headers)

    def get_file(self, _: api.Viewer, survey: api.SurveyBySlug, name: str) -> Response:
        """Return the document or announcement, as the command line reads it."""
        documents_by_name = {"document": survey.collection, "announcement": survey.announcement}
        if name not in documents_by_name:
            raise Problem("not-found")
        return Response(documents_by_name[name].to_json(), media_type="application/json")

    def show_prediction(
        self, request: Request, grant: api.Viewer, survey: api.SurveyBySlug, fields: FormFields
    ) -> Response:
        """Show a prediction with its reasons, against the runner-up or a chosen class."""
        answers = {
            field_name[2:]: answer or None
            for field_name, answer in fields.items()
            if field_name.startswith("v-")
        }
        try:
            analysis = get_server(request).analyses.get_analysis(survey)
            prediction = make_prediction(analysis, answers, fields.get("against", ""))
        except DiscreetError as error:
            return self._render_collection(
                request, grant, survey, 422, given=fields, problem=_format_error(error)
            )
        return self._render_collection(request, grant, survey, prediction=prediction, given=fields)

    async def run_action(
        self,
        request: Request,
        grant: api.Owner,
        survey: api.SurveyBySlug,
        fields: FormFields,
        name: str,
    ) -> Response:
        """Run an action: open, settle, close, delete, rehearse, or create the next wave."""
        try:
            return _redirect_to(await run_action(name, DeskAction(request, grant, survey, fields)))
        except DiscreetError as error:
            return await self._render_with_error(request, grant, survey, error)

    async def print_letters(
        self, request: Request, grant: api.Owner, survey: api.SurveyBySlug, fields: FormFields
    ) -> Response:
        """Create invitations and return letters to print."""
        server = get_server(request)
        try:
            if not survey.invited:
                raise Problem("invalid", "letters are for collections by invitation")
            count = drafts.parse_whole_number(fields, "count", MAX_LETTERS)
            codes = await api.create_invitations(
                request, grant, survey, api.InvitationRequest(count=count)
            )
        except DiscreetError as error:
            return await self._render_with_error(request, grant, survey, error)
        letters_html = await run_in_threadpool(
            invitations.render_letters, survey, server.settings.base_url, codes.codes, self.digest
        )
        return HTMLResponse(letters_html)

    async def _render_with_error(
        self, request: Request, grant: Grant, survey: Survey, error: DiscreetError
    ) -> Response:
        """Render the page of a collection again, with the refusal."""
        if getattr(error, "kind", "") == "not-found":
            raise error
        status = getattr(error, "status", 422)
        return await run_in_threadpool(
            self._render_collection, request, grant, survey, status, problem=_format_error(error)
        )


def _format_error(error: DiscreetError) -> str:
    return " ".join(str(error).split())
