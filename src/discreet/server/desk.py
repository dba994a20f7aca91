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

from discreet.body_limit import ANONYMOUS_BODY
from discreet.errors import DiscreetError, EstimationError
from discreet.privacy import Guarantee, rounded_up
from discreet.report.drawing import stylesheet
from discreet.server import api, drafts, invitations, tallies
from discreet.server.access import SESSION_DAYS, Grant, same_origin, session_cookie, session_of
from discreet.server.bundle import TYPES, Bundle, templates
from discreet.server.desk_acts import Act, perform
from discreet.server.evidence import factor
from discreet.server.pages import Spoken, promised
from discreet.server.prediction import prediction_of
from discreet.server.problems import Problem
from discreet.server.reports import guarded, guessing, server_of
from discreet.server.results import LIARS, Results, counted
from discreet.server.sealed_arrivals import count_waiting
from discreet.server.settle import LONGEST_WAIT, smallest_pool
from discreet.server.surveys import Survey, utc_day
from discreet.serving import Patience, body_of

__all__ = ["desk_pages"]

FORM = 1 << 20
HERE = Path(__file__).parent
CSRF = "the desk takes requests from its own pages only"
ENDED = "You are signed out: a session ends after a day."
LETTERS = 200
"""Letters per page: each QR code takes time to draw."""
NEW = {"questions": drafts.EXAMPLE, "truth": "50", "batch": "100"}
"""Initial fields of the form for a new collection."""

Handler = Callable[..., Any]


def desk_pages(bundle: Bundle | None = None) -> APIRouter:
    """Create the routes of the desk.

    Parameters
    ----------
    bundle : Bundle, optional
        For the digest in letters and for previews; that of the package if not given.
    """
    desk = Desk(bundle or Bundle())
    router = APIRouter(include_in_schema=False, route_class=desk.route_class())
    routes: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "/desk", desk.collections),
        ("GET", "/desk/static/{name}", desk.static),
        ("POST", "/desk/enter", desk.enter),
        ("POST", "/desk/leave", desk.leave),
        ("GET", "/desk/new/collection", desk.draft),
        ("POST", "/desk/new/collection", desk.create),
        ("POST", "/desk/promise", desk.promise),
        ("GET", "/desk/{slug}", desk.collection),
        ("GET", "/desk/{slug}/preview", desk.preview),
        ("GET", "/desk/{slug}/files/{name}", desk.file),
        ("POST", "/desk/{slug}/predict", desk.predict),
        ("POST", "/desk/{slug}/do/{name}", desk.act),
        ("POST", "/desk/{slug}/letters", desk.letters),
    )
    for method, path, handler in routes:
        router.add_api_route(path, handler, methods=[method], response_model=None)
    return router


def _refuse(reason: str, sentence: str) -> Problem:
    return Problem(reason, sentence)


async def _fields(request: Request) -> dict[str, str]:
    """Read the fields of a form from our own pages; the session was checked before."""
    return await _form_of(request, FORM)


async def _few_fields(request: Request) -> dict[str, str]:
    """Read the fields of a form from somebody who is not signed in."""
    return await _form_of(request, ANONYMOUS_BODY)


async def _form_of(request: Request, limit: int) -> dict[str, str]:
    if not same_origin(request):
        raise Problem("cross-site", CSRF)
    body = await body_of(request, limit, _refuse, Patience(largest=limit))
    try:
        found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise Problem("invalid", "this is not a form") from None
    return {name: values[-1] for name, values in found.items()}


Fields = Annotated[dict[str, str], Depends(_fields)]
FewFields = Annotated[dict[str, str], Depends(_few_fields)]


def _away(path: str, session: str | None = None, secure: bool = True) -> Response:
    """Redirect to another page, with a session cookie if given."""
    answer = RedirectResponse(path, 303)
    if session is not None:
        answer.headers["Set-Cookie"] = session_cookie(session, secure)
    return answer


def promise_line(guarantee: Guarantee) -> str:
    """Format a guarantee in one sentence."""
    facts = promised(guarantee)
    if facts["inactive"]:
        return "Nobody is protected: " + "; ".join(guarantee.broken)
    line = (
        f"Epsilon {rounded_up(guarantee.epsilon, 3)} per person in total: whoever thought "
        f"something {facts['before']} in 100 likely can be moved to at most {facts['after']} in "
        "100."
    )
    return line + (" This protection is weak." if facts["weak"] else "")


class Desk:
    """The pages of the desk, a method for each.

    Parameters
    ----------
    bundle : Bundle
        For the digest in letters and for previews.
    """

    def __init__(self, bundle: Bundle) -> None:
        self.digest, self.templates = bundle.digest, templates()
        self.respondents_page, self.policy = bundle.page(), bundle.policy()
        self.templates.filters |= {"counted": counted, "factor": factor}
        self.templates.filters["day"] = Spoken("en", bundle.words["en"]).day
        own = HERE / "static" / "desk"
        self.files = {name: (own / name).read_bytes() for name in ("desk.js", "desk.css")}
        self.files["charts.css"] = stylesheet().encode()
        self.script = Bundle(self.files).integrity("desk.js")

    # ------------------------------------------------------------ how pages are shown

    def shown(self, name: str, status: int = 200, **content: Any) -> HTMLResponse:
        """Render a page from its template."""
        text = self.templates.get_template(name).render(script=self.script, **content)
        return HTMLResponse(text, status)

    def refused(self, request: Request, problem: Problem) -> Response:
        """Render a refusal as a page, since people read it."""
        if problem.kind == "unauthorized":
            told = ENDED if session_of(request) else ""
            return self.shown("desk_enter.html", 401, title="Sign in", problem=told)
        return self.shown("desk_problem.html", problem.status, title=problem.title, problem=problem)

    def route_class(self) -> type[APIRoute]:
        """Make a route class that renders refusals as pages."""
        desk = self

        class Page(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handler = super().get_route_handler()

                async def answered(request: Request) -> Response:
                    try:
                        return await handler(request)
                    except Problem as problem:
                        return desk.refused(request, problem)
                    except DiscreetError as error:
                        return desk.refused(request, Problem("invalid", _line(error)))
                    except RequestValidationError:  # no collection has such a name
                        return desk.refused(request, Problem("not-found"))

                return answered

        return Page

    async def static(self, name: str) -> Response:
        """Return a style sheet or script of the desk."""
        if name not in self.files:
            raise Problem("not-found")
        kind = TYPES["." + name.rpartition(".")[2]]
        headers = {"Content-Type": kind, "Cache-Control": "no-cache"}
        return Response(self.files[name], headers=headers)

    # ------------------------------------------------------------ in and out

    async def enter(self, request: Request, fields: FewFields) -> Response:
        """Sign in with the token of a link, which works once, or with an API token."""
        server = guessing(request, "tokens")
        token, access = fields.get("token", "").strip(), server.access
        try:
            known = await run_in_threadpool(access.grant_of, token, "token")
            if known is None:
                session = await server.write(lambda: access.enter(token))
            else:
                made = (known.role, known.label, "session", SESSION_DAYS)
                session = await server.write(lambda: access.make(*made))
        except Problem as problem:
            return self.shown(
                "desk_enter.html", problem.status, title="Sign in", problem=str(problem)
            )
        return _away("/desk", session, server.settings.secure)

    async def leave(self, request: Request, _: FewFields) -> Response:
        """Sign out."""
        server, session = guarded(request), session_of(request)
        await server.write(lambda: server.access.leave(session))
        return _away("/desk", "", server.settings.secure)

    # ------------------------------------------------------------ all collections

    def collections(self, request: Request, grant: api.Viewer) -> Response:
        """List all collections with state and guarantee."""
        server, found = server_of(request), []
        with server.database.read() as connection:
            for survey, _ in server.surveys.all():
                facts = {
                    "survey": survey,
                    "state": server.surveys.state(survey),
                    "reports": tallies.published(connection, survey.number).settled,
                    "overdue": survey.announcement.overdue(utc_day()),
                    "promise": promise_line(survey.announcement.guarantee(survey.collection)),
                }
                found.append(facts)
        return self.shown("desk_list.html", title="Desk", grant=grant, found=found)

    def draft(self, grant: api.Owner) -> Response:
        """Show the form for a new collection."""
        return self._form(grant, NEW)

    def _form(
        self, grant: Grant, fields: dict[str, str], problem: str = "", status: int = 200
    ) -> Response:
        content = {"title": "New collection", "fields": fields, "problem": problem}
        return self.shown("desk_new.html", status, grant=grant, **content)

    def promise(self, _: api.Owner, fields: Fields) -> Response:
        """Return the guarantee of the collection that the form describes so far."""
        try:
            return PlainTextResponse(promise_line(drafts.collection_from(fields).guarantee))
        except DiscreetError as error:
            return PlainTextResponse(_line(error), 422)

    async def create(self, request: Request, grant: api.Owner, fields: Fields) -> Response:
        """Store the collection of a form as a draft."""
        try:
            collection = await run_in_threadpool(drafts.collection_from, fields)
            told = drafts.announcement_from(fields, collection)
            await api.store(server_of(request), grant, collection, told)
        except DiscreetError as error:
            return self._form(grant, fields, _line(error), getattr(error, "status", 422))
        return _away(f"/desk/{told.name}")

    # ------------------------------------------------------------ one collection

    def collection(self, request: Request, grant: api.Viewer, survey: api.Found) -> Response:
        """Show the page of one collection."""
        return self._page(request, grant, survey)

    def _page(
        self, request: Request, grant: Grant, survey: Survey, status: int = 200, **more: Any
    ) -> Response:
        server, told = server_of(request), survey.announcement
        state, guarantee = server.surveys.state(survey), told.guarantee(survey.collection)
        if state is None:  # deleted by another process
            raise Problem("not-found", "there is no survey of this name here")
        with server.database.read() as connection:
            left = state == "closed" and count_waiting(connection, survey.number, 1) > 0
            refused = tallies.load(connection, survey.number, survey.collection).rejected
        results, reason = None, ""
        try:
            results = Results(server.analyses.of(survey))
            _ = results.verdict, results.evidence  # computed here, so that a refusal is caught
        except EstimationError as error:
            results, reason = None, str(error)
        content = {
            "title": survey.slug,
            "grant": grant,
            "survey": survey,
            "state": state,
            "overdue": told.overdue(utc_day()),
            "base": server.settings.base,
            "link": invitations.link_of(server.settings.base, survey.slug, told.digest),
            "promise": promise_line(guarantee),
            "guarantee": str(guarantee),
            "pool": smallest_pool(told.batch),
            "longest_wait_days": round(LONGEST_WAIT / 86_400),
            "left": left,
            "refused": {kind: times for kind, times in sorted(refused.items()) if times},
            "results": results,
            "reason": reason,
            "schema": getattr(survey.collection, "original", survey.collection.schema),
            "liars": LIARS,
            "most_letters": LETTERS,
            "prediction": None,
            "given": {},
            "problem": "",
        }
        return self.shown("desk_survey.html", status, **(content | more))

    def preview(self, _: api.Viewer, survey: api.Found) -> Response:
        """Show the respondent's page to a collector, also of a draft; nothing is stored or sent."""
        headers = {"Content-Security-Policy": self.policy}
        return HTMLResponse(self.respondents_page, headers=headers)

    def file(self, _: api.Viewer, survey: api.Found, name: str) -> Response:
        """Return the document or announcement, as the command line reads it."""
        kinds = {"document": survey.collection, "announcement": survey.announcement}
        if name not in kinds:
            raise Problem("not-found")
        return Response(kinds[name].to_json(), media_type="application/json")

    def predict(
        self, request: Request, grant: api.Viewer, survey: api.Found, fields: Fields
    ) -> Response:
        """Show a prediction with its reasons, against the runner-up or a chosen class."""
        row = {name[2:]: text or None for name, text in fields.items() if name.startswith("v-")}
        try:
            analysis = server_of(request).analyses.of(survey)
            found = prediction_of(analysis, row, fields.get("against", ""))
        except DiscreetError as error:
            return self._page(request, grant, survey, 422, given=fields, problem=_line(error))
        return self._page(request, grant, survey, prediction=found, given=fields)

    async def act(
        self, request: Request, grant: api.Owner, survey: api.Found, fields: Fields, name: str
    ) -> Response:
        """Run an action: open, settle, close, delete, rehearse, or create the next wave."""
        try:
            return _away(await perform(name, Act(request, grant, survey, fields)))
        except DiscreetError as error:
            return await self._again(request, grant, survey, error)

    async def letters(
        self, request: Request, grant: api.Owner, survey: api.Found, fields: Fields
    ) -> Response:
        """Create invitations and return letters to print."""
        server = server_of(request)
        try:
            if not survey.invited:
                raise Problem("invalid", "letters are for collections by invitation")
            count = drafts.whole(fields, "count", LETTERS)
            codes = await api.invite(request, grant, survey, api.Invited(count=count))
        except DiscreetError as error:
            return await self._again(request, grant, survey, error)
        text = await run_in_threadpool(
            invitations.letters, survey, server.settings.base, codes.codes, self.digest
        )
        return HTMLResponse(text)

    async def _again(
        self, request: Request, grant: Grant, survey: Survey, error: DiscreetError
    ) -> Response:
        """Render the page of a collection again, with the refusal."""
        if getattr(error, "kind", "") == "not-found":
            raise error
        status = getattr(error, "status", 422)
        return await run_in_threadpool(
            self._page, request, grant, survey, status, problem=_line(error)
        )


def _line(error: DiscreetError) -> str:
    return " ".join(str(error).split())
