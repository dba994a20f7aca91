"""The desk of a collector: what was learnt, how sure it is, and what may be done next.

Pages are made here and work without JavaScript, but for the link that signs in and for the live
statement of the promise. A session is a cookie that only these pages get; whatever changes
something is a POST from one of our own pages (:mod:`discreet.server.access`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from discreet.announcement import Announcement
from discreet.errors import DiscreetError, EstimationError
from discreet.privacy import rounded_up
from discreet.report.drawing import stylesheet
from discreet.server import api, drafts, invitations, tallies
from discreet.server.access import SESSION_DAYS, Grant, same_origin, session_cookie, session_of
from discreet.server.bundle import TYPES, Bundle, templates
from discreet.server.pages import PRIOR, WEAK, posterior
from discreet.server.problems import Problem
from discreet.server.rehearsal import is_simulated, rehearse
from discreet.server.reports import Slug, guarded, server_of
from discreet.server.results import LIARS, Results, counted
from discreet.server.settle import waiting
from discreet.server.surveys import Survey
from discreet.serving import Patience, body_of

__all__ = ["desk_pages"]

FORM = 1 << 20
HERE = Path(__file__).parent
REHEARSED = 500
"""Simulated people of a rehearsal that is begun at the desk."""
CSRF = "the desk takes requests from its own pages only"


def _refuse(reason: str, sentence: str) -> Problem:
    return Problem(reason, sentence)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form from one of our own pages."""
    if not same_origin(request):
        raise Problem("cross-site", CSRF)
    body = await body_of(request, FORM, _refuse, Patience(largest=FORM))
    try:
        found = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise Problem("invalid", "this is not a form") from None
    return {name: values[-1] for name, values in found.items()}


def _promise(guarantee: Any) -> dict[str, Any]:
    epsilon = guarantee.epsilon if guarantee.private else float("inf")
    return {
        "private": guarantee.private,
        "epsilon": epsilon,
        "before": round(100 * PRIOR),
        "after": posterior(PRIOR, epsilon),
        "weak": epsilon > WEAK,
        "text": str(guarantee),
    }


def promise_line(guarantee: Any) -> str:
    """A promise in one sentence."""
    facts = _promise(guarantee)
    if not facts["private"]:
        return "Nobody is protected: " + "; ".join(guarantee.broken)
    line = (
        f"Epsilon {rounded_up(facts['epsilon'], 3)} per person in total: whoever thought something "
        f"{facts['before']} in 100 likely can be moved to at most {facts['after']} in 100."
    )
    return line + (" This protection is weak." if facts["weak"] else "")


def _waves(server: Any, survey: Survey) -> list[Any]:
    """The tallies of a plan and of the waves before it, in their order."""
    here = {one.collection.digest: one for one, _ in server.surveys.all()}
    found = [server.analyses.of(survey).tally]
    while (wave := found[0].collection.wave) is not None:
        if wave.plan not in here:
            raise Problem("state", "the wave before this one is no longer on this server")
        found.insert(0, server.analyses.of(here[wave.plan]).tally)
    return found


def desk_pages(bundle: Bundle | None = None) -> APIRouter:
    """The routes of the desk.

    Parameters
    ----------
    bundle : Bundle, optional
        For the digest in letters; that of the package if not given.
    """
    made, rendered = bundle or Bundle(), templates()
    rendered.filters["counted"] = counted
    router = APIRouter(include_in_schema=False)
    files = {
        "desk.js": (HERE / "static" / "desk" / "desk.js").read_bytes(),
        "desk.css": (HERE / "static" / "desk" / "desk.css").read_bytes(),
        "charts.css": stylesheet().encode(),
    }
    script = Bundle({"desk.js": files["desk.js"]}).integrity("desk.js")

    def shown(name: str, status: int = 200, **content: Any) -> HTMLResponse:
        text = rendered.get_template(name).render(script=script, **content)
        return HTMLResponse(text, status)

    def signed_in(request: Request, role: Any = "viewer") -> Grant:
        return guarded(request).access.require(request, role)

    def away(path: str) -> RedirectResponse:
        return RedirectResponse(path, 303)

    @router.get("/desk/static/{name}")
    async def static(name: str) -> Response:
        if name not in files:
            raise Problem("not-found")
        kind = TYPES["." + name.rpartition(".")[2]]
        return Response(files[name], headers={"Content-Type": kind, "Cache-Control": "no-cache"})

    # ------------------------------------------------------------ in and out

    @router.get("/desk")
    async def desk(request: Request) -> Response:
        try:
            grant = await run_in_threadpool(signed_in, request)
        except Problem as problem:
            if problem.kind != "unauthorized":
                raise
            return shown("desk_enter.html", 401, title="Sign in", problem="")
        return await run_in_threadpool(listed, request, grant)

    def listed(request: Request, grant: Grant) -> Response:
        server, found = server_of(request), []
        with server.database.read() as connection:
            for survey, _ in server.surveys.all():
                facts = {
                    "survey": survey,
                    "state": server.surveys.state(survey),
                    "reports": tallies.published(connection, survey.number).settled,
                    "waiting": waiting(connection, survey.number),
                    "promise": promise_line(survey.announcement.guarantee(survey.collection)),
                    "simulated": is_simulated(survey.slug),
                }
                found.append(facts)
        return shown("desk_list.html", title="Desk", grant=grant, found=found)

    @router.post("/desk/enter")
    async def enter(request: Request) -> Response:
        server, fields = guarded(request), await _form(request)
        client = request.client
        if not server.guesses.allow(client.host if client else None):
            raise Problem("too-many", "too many tokens were tried from this address")
        token = fields.get("token", "").strip()
        try:
            grant = await run_in_threadpool(server.access.grant_of, token, "token")
            if grant is None:
                session = await server.write(lambda: server.access.enter(token))
            else:
                known = grant
                session = await server.write(
                    lambda: server.access.make(known.role, known.label, "session", SESSION_DAYS)
                )
        except Problem as problem:
            return shown("desk_enter.html", problem.status, title="Sign in", problem=str(problem))
        answer = away("/desk")
        answer.headers["Set-Cookie"] = session_cookie(session, server.settings.secure)
        return answer

    @router.post("/desk/leave")
    async def leave(request: Request) -> Response:
        server, _ = guarded(request), await _form(request)
        session = session_of(request)
        await server.write(lambda: server.access.leave(session))
        answer = away("/desk")
        answer.headers["Set-Cookie"] = session_cookie("", server.settings.secure)
        return answer

    # ------------------------------------------------------------ new collections

    @router.get("/desk/new")
    def new(request: Request) -> Response:
        grant = signed_in(request, "owner")
        empty = {"questions": drafts.EXAMPLE, "truth": "50", "name": "", "batch": "100"}
        return shown("desk_new.html", title="New collection", grant=grant, fields=empty, problem="")

    @router.post("/desk/promise")
    async def promise(request: Request) -> Response:
        await run_in_threadpool(signed_in, request, "owner")
        fields = await _form(request)
        try:
            collection = await run_in_threadpool(drafts.collection_from, fields)
        except DiscreetError as error:
            return PlainTextResponse(" ".join(str(error).split()), 422)
        return PlainTextResponse(promise_line(collection.guarantee))

    @router.post("/desk/new")
    async def create(request: Request) -> Response:
        grant = await run_in_threadpool(signed_in, request, "owner")
        server, fields = server_of(request), await _form(request)
        try:
            collection = await run_in_threadpool(drafts.collection_from, fields)
            told = drafts.announcement_from(fields, collection)
            told.check(collection)
            await api.store(server, grant, collection, told)
        except DiscreetError as error:
            text, status = " ".join(str(error).split()), getattr(error, "status", 422)
            return shown(
                "desk_new.html", status, title="New collection", grant=grant, fields=fields,
                problem=text,
            )  # fmt: skip
        return away(f"/desk/{told.name}")

    # ------------------------------------------------------------ one collection

    def page(
        request: Request, survey: Survey, grant: Grant, status: int = 200, **more: Any
    ) -> Response:
        server = server_of(request)
        with server.database.read() as connection:
            waits = waiting(connection, survey.number)
            refused = tallies.load(connection, survey.number, survey.collection).rejected
        results, reason = None, ""
        try:
            results = Results(server.analyses.of(survey))
            _ = results.verdict, results.evidence  # computed here, so that a refusal is caught
        except EstimationError as error:
            results, reason = None, str(error)
        schema = getattr(survey.collection, "original", survey.collection.schema)
        content = {
            "title": survey.slug,
            "grant": grant,
            "survey": survey,
            "state": server.surveys.state(survey),
            "base": server.settings.base,
            "link": invitations.link_of(
                server.settings.base, survey.slug, survey.announcement.digest
            ),
            "promise": promise_line(survey.announcement.guarantee(survey.collection)),
            "guarantee": str(survey.announcement.guarantee(survey.collection)),
            "simulated": is_simulated(survey.slug),
            "waiting": waits,
            "refused": {kind: times for kind, times in sorted(refused.items()) if times},
            "results": results,
            "reason": reason,
            "schema": schema,
            "liars": LIARS,
            "explanation": None,
            "given": {},
            "problem": "",
        }
        return shown("desk_survey.html", status, **(content | more))

    @router.get("/desk/{slug}")
    async def survey_page(request: Request, slug: Slug) -> Response:
        grant = await run_in_threadpool(signed_in, request)
        survey = await server_of(request).survey(slug)
        return await run_in_threadpool(page, request, survey, grant)

    @router.get("/desk/{slug}/files/{name}")
    async def files_of(request: Request, slug: Slug, name: str) -> Response:
        """Sealed files, as the command line reads them."""
        await run_in_threadpool(signed_in, request)
        survey = await server_of(request).survey(slug)
        kinds = {"document": survey.collection, "announcement": survey.announcement}
        if name not in kinds:
            raise Problem("not-found")
        return Response(kinds[name].to_json(), media_type="application/json")

    @router.post("/desk/{slug}/predict")
    async def predict(request: Request, slug: Slug) -> Response:
        grant = await run_in_threadpool(signed_in, request)
        server, fields = server_of(request), await _form(request)
        survey = await server.survey(slug)

        def work() -> Response:
            row = {name[2:]: text or None for name, text in fields.items() if name.startswith("v-")}
            schema, against = survey.collection.schema, fields.get("against")
            rival = next((c for c in schema.classes if str(c) == against), None)
            try:
                model = server.analyses.of(survey).model
                found = model.explain(row)
                if rival is not None and rival != found.predicted:
                    found = model.explain(row, rival)
            except DiscreetError as error:
                return page(request, survey, grant, 422, given=fields, problem=str(error))
            return page(request, survey, grant, explanation=found, given=fields)

        return await run_in_threadpool(work)

    @router.post("/desk/{slug}/do/{act}")
    async def act(request: Request, slug: Slug, act: str) -> Response:
        grant = await run_in_threadpool(signed_in, request, "owner")
        server, fields = server_of(request), await _form(request)
        survey = await server.survey(slug)
        needs = act in ("close", "delete", "settle")
        try:
            if needs and fields.get("confirm", "").strip() != slug:
                raise Problem("state", f"Nothing was done. To {act}, type the name {slug}.")
            if act == "open":
                await api.open_survey(request, grant, survey)
            elif act == "close":
                await api.close_survey(request, grant, survey)
            elif act == "settle":
                await api.settle_survey(request, grant, survey, anyway=True)
            elif act == "delete":
                await api.delete_survey(request, grant, survey, confirm=slug)
                return away("/desk")
            elif act == "rehearse":
                return away(f"/desk/{await _rehearsed(server, survey)}")
            elif act == "wave":
                return away(f"/desk/{await _wave(server, grant, survey, fields)}")
            else:
                raise Problem("not-found")
        except Problem as problem:
            if problem.kind == "not-found":
                raise
            told, status = str(problem), problem.status
            return await run_in_threadpool(
                lambda: page(request, survey, grant, status, problem=told)
            )
        return away(f"/desk/{slug}")

    async def _rehearsed(server: Any, survey: Survey) -> str:
        collection, told = survey.collection, survey.announcement
        made: str = await server.write(
            lambda: rehearse(server.database, collection, told, REHEARSED)
        )
        return made

    async def _wave(server: Any, grant: Grant, survey: Survey, fields: dict[str, str]) -> str:
        """A draft of the next wave: a plan that asks more about what mattered in this one."""
        if survey.collection.kind != "plan":
            raise Problem("state", "only plans have waves; make another collection")
        if server.surveys.state(survey) != "closed":
            raise Problem("state", "Close it first: the next wave follows from its last count.")
        expected = fields.get("respondents", "")
        if not expected.isdigit() or not int(expected):
            raise Problem("invalid", "say how many people you expect in all waves together")

        def work() -> tuple[Any, Announcement]:
            from dataclasses import replace

            from discreet.local.waves import next_plan

            before = _waves(server, survey)
            plan = next_plan(before, int(expected))
            first = re.sub(r"-wave-\d+$", "", survey.slug)
            name = f"{first[:52]}-wave-{len(before) + 1}"
            told = replace(
                survey.announcement, collection=plan.digest, name=name, opens="", closes=""
            )
            return plan, told

        try:
            plan, told = await run_in_threadpool(work)
        except EstimationError as error:
            raise Problem("no-reports", str(error)) from None
        await api.store(server, grant, plan, told)
        return told.name

    @router.post("/desk/{slug}/letters")
    async def letters(request: Request, slug: Slug) -> Response:
        grant = await run_in_threadpool(signed_in, request, "owner")
        server, fields = server_of(request), await _form(request)
        survey = await server.survey(slug)
        count = fields.get("count", "")
        if not survey.invited or not count.isdigit() or not 1 <= int(count) <= 1000:
            told = "Letters are for collections by invitation, 1 to 1,000 at a time."
            return await run_in_threadpool(lambda: page(request, survey, grant, 422, problem=told))
        codes = await api.invite(request, grant, survey, api.Invited(count=int(count)))
        text = await run_in_threadpool(
            invitations.letters, survey, server.settings.base, codes.codes, made.digest
        )
        return HTMLResponse(text)

    return router
