"""Actions of a collector on one collection at the desk: open, settle, close, delete, and so on.

Each action returns an address of the desk. Those that cannot be undone require the name of the
collection, and every form names the number of its collection: one that was deleted and created
again under the same name in another tab has another number.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from discreet.announcement import Announcement
from discreet.server import api
from discreet.server.access import Grant
from discreet.server.drafts import whole
from discreet.server.problems import Problem
from discreet.server.rehearsal import rehearse
from discreet.server.reports import server_of
from discreet.server.running import Server
from discreet.server.surveys import Survey, utc_day

__all__ = ["perform"]

MOST = 8_000_000_000
"""Largest expected number of respondents, all waves together."""
REHEARSED = 500
"""Simulated respondents of a rehearsal started at the desk."""


@dataclass(frozen=True)
class Act:
    """An action on a collection.

    Parameters
    ----------
    request : Request
    grant : Grant
    survey : Survey
    fields : mapping of str to str
        Of the form.
    """

    request: Request
    grant: Grant
    survey: Survey
    fields: Mapping[str, str]

    @property
    def server(self) -> Server:
        """The running server."""
        return server_of(self.request)


async def perform(name: str, act: Act) -> str:
    """Run an action on a collection; return the address of the page to show.

    Parameters
    ----------
    name : str
        One of :data:`ACTS`.
    act : Act
    """
    if name not in ACTS:
        raise Problem("not-found")
    slug, number = act.survey.slug, str(act.survey.number)
    if act.fields.get("number", number) != number:
        raise Problem(
            "state",
            f"Nothing was done: {slug} was deleted and created again since that page was opened. "
            "This is the new one.",
        )
    if name in CONFIRMED and act.fields.get("confirm", "").strip() != slug:
        raise Problem("state", f"Nothing was done. To {name}, type the name {slug}.")
    return await ACTS[name](act)


async def _open(act: Act) -> str:
    await api.open_survey(act.request, act.grant, act.survey)
    return f"/desk/{act.survey.slug}"


async def _settle(act: Act) -> str:
    everything = act.fields.get("which") == "all"
    await api.settle_survey(act.request, act.grant, act.survey, anyway=everything)
    return f"/desk/{act.survey.slug}"


async def _close(act: Act) -> str:
    await api.close_survey(act.request, act.grant, act.survey)
    return f"/desk/{act.survey.slug}"


async def _delete(act: Act) -> str:
    await api.delete_survey(act.request, act.grant, act.survey, confirm=act.survey.slug)
    return "/desk"


async def _rehearse(act: Act) -> str:
    collection, told = act.survey.collection, act.survey.announcement
    name = await act.server.write(
        lambda: rehearse(act.server.database, collection, told, REHEARSED)
    )
    return f"/desk/{name}"


async def _wave(act: Act) -> str:
    """Create a draft of the next wave, whose plan asks more about what mattered in this one."""
    survey = act.survey
    if survey.collection.kind != "plan":
        raise Problem("state", "only plans have waves; make another collection")
    if survey.simulated:
        raise Problem("state", "invented people say nothing about what to ask real ones")
    if act.server.surveys.state(survey) != "closed":
        raise Problem("state", "Close it first: the next wave follows from its last count.")
    expected = whole(act.fields, "respondents", MOST)
    with api.enough_reports():
        plan, told = await run_in_threadpool(_next, act.server, survey, expected)
    await api.store(act.server, act.grant, plan, told)
    return f"/desk/{told.name}"


def _next(server: Server, survey: Survey, expected: int) -> tuple[Any, Announcement]:
    """Make the plan of the next wave and its announcement, with the texts of this one."""
    from discreet.local.waves import next_plan

    before = _waves(server, survey)
    plan = next_plan(before, expected)
    first = re.sub(r"-wave-\d+$", "", survey.slug)
    name = f"{first[:52].rstrip('-')}-wave-{len(before) + 1}"
    told = replace(survey.announcement, collection=plan.digest, name=name, opens="", closes="")
    return plan, replace(told, deletes="") if told.overdue(utc_day()) else told


def _waves(server: Server, survey: Survey) -> list[Any]:
    """Load the tallies of a plan and of its earlier waves, in order."""
    real = (one for one, _ in server.surveys.all() if not one.simulated)
    here = {one.collection.digest: one for one in real}
    found = [server.analyses.of(survey).tally]
    while (wave := found[0].collection.wave) is not None:
        if wave.plan not in here:
            raise Problem("state", "the wave before this one is no longer on this server")
        found.insert(0, server.analyses.of(here[wave.plan]).tally)
    return found


ACTS: dict[str, Callable[[Act], Awaitable[str]]] = {
    "open": _open,
    "settle": _settle,
    "close": _close,
    "delete": _delete,
    "rehearse": _rehearse,
    "wave": _wave,
}
CONFIRMED = ("settle", "close", "delete")
