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

from discreet.collection.announcement import Announcement
from discreet.server import api
from discreet.server.access import Grant
from discreet.server.drafts import parse_whole_number
from discreet.server.problems import Problem
from discreet.server.rehearsal import create_rehearsal
from discreet.server.reports import get_server
from discreet.server.running import Server
from discreet.server.surveys import Survey, utc_day

__all__ = ["run_action"]

MAX_RESPONDENTS = 8_000_000_000
"""Largest expected number of respondents, all waves together."""
REHEARSAL_RESPONDENTS = 500
"""Simulated respondents of a rehearsal started at the desk."""


@dataclass(frozen=True)
class DeskAction:
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
        return get_server(self.request)


async def run_action(action_name: str, action: DeskAction) -> str:
    """Run an action on a collection; return the address of the page to show.

    Parameters
    ----------
    action_name : str
        One of :data:`ACTIONS`.
    action : DeskAction
    """
    if action_name not in ACTIONS:
        raise Problem("not-found")
    slug, survey_number = action.survey.slug, str(action.survey.number)
    if action.fields.get("number", survey_number) != survey_number:
        raise Problem(
            "state",
            f"Nothing was done: {slug} was deleted and created again since that page was opened. "
            "This is the new one.",
        )
    if action_name in CONFIRMED_ACTIONS and action.fields.get("confirm", "").strip() != slug:
        raise Problem("state", f"Nothing was done. To {action_name}, type the name {slug}.")
    return await ACTIONS[action_name](action)


async def _open_survey(action: DeskAction) -> str:
    await api.open_survey(action.request, action.grant, action.survey)
    return f"/desk/{action.survey.slug}"


async def _settle_survey(action: DeskAction) -> str:
    settle_all = action.fields.get("which") == "all"
    await api.settle_survey(action.request, action.grant, action.survey, anyway=settle_all)
    return f"/desk/{action.survey.slug}"


async def _close_survey(action: DeskAction) -> str:
    await api.close_survey(action.request, action.grant, action.survey)
    return f"/desk/{action.survey.slug}"


async def _delete_survey(action: DeskAction) -> str:
    await api.delete_survey(action.request, action.grant, action.survey, confirm=action.survey.slug)
    return "/desk"


async def _rehearse_survey(action: DeskAction) -> str:
    collection, announcement = action.survey.collection, action.survey.announcement
    rehearsal_name = await action.server.run_in_writer(
        lambda: create_rehearsal(
            action.server.database, collection, announcement, REHEARSAL_RESPONDENTS
        )
    )
    return f"/desk/{rehearsal_name}"


async def _create_next_wave(action: DeskAction) -> str:
    """Create a draft of the next wave, whose plan asks more about what mattered in this one."""
    survey = action.survey
    if not survey.collection.has_waves:
        raise Problem("state", "only plans have waves; make another collection")
    if survey.simulated:
        raise Problem("state", "invented people say nothing about what to ask real ones")
    if action.server.surveys.read_state(survey) != "closed":
        raise Problem("state", "Close it first: the next wave follows from its last count.")
    expected_respondents = parse_whole_number(action.fields, "respondents", MAX_RESPONDENTS)
    with api.refuse_too_few_reports():
        plan, announcement = await run_in_threadpool(
            _make_next_wave, action.server, survey, expected_respondents
        )
    await api.store_draft(action.server, action.grant, plan, announcement)
    return f"/desk/{announcement.name}"


def _make_next_wave(
    server: Server, survey: Survey, expected_respondents: int
) -> tuple[Any, Announcement]:
    """Make the plan of the next wave and its announcement, with the texts of this one."""
    from discreet.local.waves import next_plan

    earlier_tallies = _load_wave_tallies(server, survey)
    plan = next_plan(earlier_tallies, expected_respondents)
    base_slug = re.sub(r"-wave-\d+$", "", survey.slug)
    wave_name = f"{base_slug[:52].rstrip('-')}-wave-{len(earlier_tallies) + 1}"
    announcement = replace(
        survey.announcement, collection=plan.digest, name=wave_name, opens="", closes=""
    )
    return plan, replace(announcement, deletes="") if announcement.is_overdue(
        utc_day()
    ) else announcement


def _load_wave_tallies(server: Server, survey: Survey) -> list[Any]:
    """Load the tallies of a plan and of its earlier waves, in order."""
    real_surveys = (
        candidate for candidate, _ in server.surveys.list_surveys() if not candidate.simulated
    )
    surveys_by_digest = {candidate.collection.digest: candidate for candidate in real_surveys}
    wave_tallies = [server.analyses.get_analysis(survey).tally]
    while (wave := wave_tallies[0].collection.wave) is not None:
        if wave.plan not in surveys_by_digest:
            raise Problem("state", "the wave before this one is no longer on this server")
        wave_tallies.insert(0, server.analyses.get_analysis(surveys_by_digest[wave.plan]).tally)
    return wave_tallies


ACTIONS: dict[str, Callable[[DeskAction], Awaitable[str]]] = {
    "open": _open_survey,
    "settle": _settle_survey,
    "close": _close_survey,
    "delete": _delete_survey,
    "rehearse": _rehearse_survey,
    "wave": _create_next_wave,
}
CONFIRMED_ACTIONS = ("settle", "close", "delete")
