"""Public pages without cookies: the respondent's page, the list of surveys, the guarantee.

The page itself is one file for all surveys and people (:mod:`discreet.server.bundle`); it fetches
the announcement and the document like any other client. ``/s/NAME/about`` and the list are made
here and work without JavaScript.
"""

from __future__ import annotations

import gzip
import math
import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from discreet.privacy import Guarantee
from discreet.server.bundle import TYPES, Bundle, templates
from discreet.server.problems import Problem
from discreet.server.reports import (
    Slug,
    guarded,
    published_survey,
    server_of,
    visible_survey,
)
from discreet.server.surveys import utc_day

__all__ = ["posterior", "promised", "public_pages"]

READ = ["GET", "HEAD"]
PRIOR = 0.1
WEAK = 5.0


def posterior(prior: float, epsilon: float) -> int:
    """Compute the largest posterior probability after a report, in percent, rounded up.

    >>> posterior(0.1, 1.0)
    24
    """
    if math.isinf(epsilon):
        return 100
    share = 1 / (1 + math.exp(-epsilon) * (1 - prior) / prior)
    return min(100, math.ceil(100 * share - 1e-9))


@dataclass(frozen=True)
class Spoken:
    """Texts of the pages in one language; called with a key and values."""

    tag: str
    words: dict[str, Any]

    def __call__(self, key: str, **values: Any) -> str:
        """Format a text with its values; ``count`` selects the plural."""
        text = self.words[key]
        if isinstance(text, dict):
            text = text["one" if values["count"] == 1 else "other"]
        return re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), text)

    def day(self, text: str) -> str:
        """Format a day such as 2027-03-31 in words."""
        found = date.fromisoformat(text)
        month = self("month." + str(found.month))
        return self("date.long", day=found.day, month=month, year=found.year)


def spoken(bundle: Bundle, request: Request, offered: list[str]) -> Spoken:
    """Choose the language of a request: that of its address, or the first the browser accepts."""
    wanted = [request.query_params.get("lang", "")]
    for part in request.headers.get("accept-language", "").split(","):
        wanted.append(part.partition(";")[0].strip())
    for tag in (*wanted, *(one.partition("-")[0] for one in wanted), "en"):
        if tag in bundle.words and (tag in offered or not offered or tag == "en"):
            return Spoken(tag, bundle.words[tag])
    return Spoken("en", bundle.words["en"])


def public_pages(bundle: Bundle | None = None) -> APIRouter:
    """Create the routes of the public pages.

    Parameters
    ----------
    bundle : Bundle, optional
        That of the package if not given.
    """
    made = bundle or Bundle()
    router, rendered = APIRouter(include_in_schema=False), templates()
    shell = made.page()
    policy = {"Content-Security-Policy": made.policy()}
    packed = {name: gzip.compress(content, mtime=0) for name, content in made.files.items()}
    packed_shell = gzip.compress(shell.encode(), mtime=0)

    @router.api_route("/static/{name:path}", methods=READ)
    async def static(request: Request, name: str) -> Response:
        if name not in made.files:
            raise Problem("not-found")
        tag = f'"{made.integrity(name)}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        kind = TYPES["." + name.rpartition(".")[2]]
        return _encoded(request, made.files[name], packed[name], headers | {"Content-Type": kind})

    @router.api_route("/s/{slug}", methods=READ)
    async def page(request: Request, slug: Slug) -> Response:
        server = guarded(request)
        try:
            await published_survey(server, slug)
            status = 200
        except Problem:
            status = 404
        headers = policy | {"Content-Type": TYPES[".html"], "Vary": "Accept-Encoding"}
        answer = _encoded(request, shell.encode(), packed_shell, headers)
        answer.status_code = status
        return answer

    @router.api_route("/s/{slug}/about", methods=READ)
    async def about(request: Request, slug: Slug) -> HTMLResponse:
        server, survey = server_of(request), await visible_survey(request, slug)
        say = spoken(made, request, list(survey.announcement.words))
        content = {
            "say": say,
            "title": survey.title(say.tag),
            "survey": survey,
            "base": server.settings.base,
            "digest": made.digest,
            **promised(survey.announcement.guarantee(survey.collection)),
        }
        return HTMLResponse(rendered.get_template("about.html").render(content))

    @router.api_route("/", methods=READ)
    def listed(request: Request) -> HTMLResponse:
        server, today = guarded(request), utc_day()
        say = spoken(made, request, [])
        found = [
            (survey, survey.title(say.tag))
            for survey, state in server.surveys.all()
            if state == "open" and survey.announcement.on(today) == "open"
        ]
        content = {"say": say, "surveys": found, "digest": made.digest}
        return HTMLResponse(rendered.get_template("list.html").render(content))

    return router


def promised(guarantee: Guarantee) -> dict[str, Any]:
    """Describe a guarantee for the pages: how far a report can move a belief."""
    epsilon = guarantee.epsilon if guarantee.private else math.inf
    return {
        "guarantee": guarantee,
        "before": round(100 * PRIOR),
        "after": posterior(PRIOR, epsilon),
        "weak": epsilon > WEAK,
        "inactive": not guarantee.private,
    }


def _encoded(request: Request, content: bytes, packed: bytes, headers: dict[str, str]) -> Response:
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, headers=headers | {"Content-Encoding": "gzip"})
    return Response(content, headers=headers)
