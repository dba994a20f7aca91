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

from discreet.privacy.guarantee import Guarantee
from discreet.server.bundle import MEDIA_TYPES, Bundle, load_templates
from discreet.server.problems import Problem
from discreet.server.reports import (
    Slug,
    find_published_survey,
    find_visible_survey,
    get_server,
    require_request_quota,
)
from discreet.server.surveys import utc_day

__all__ = ["compute_posterior", "create_public_router", "describe_guarantee"]

READ_METHODS = ["GET", "HEAD"]
EXAMPLE_PRIOR = 0.1
WEAK_EPSILON = 5.0


def compute_posterior(prior: float, epsilon: float) -> int:
    """Compute the largest posterior probability after a report, in percent, rounded up.

    >>> compute_posterior(0.1, 1.0)
    24
    """
    if math.isinf(epsilon):
        return 100
    posterior_share = 1 / (1 + math.exp(-epsilon) * (1 - prior) / prior)
    return min(100, math.ceil(100 * posterior_share - 1e-9))


@dataclass(frozen=True)
class Translator:
    """Texts of the pages in one language; called with a key and values."""

    tag: str
    words: dict[str, Any]

    def __call__(self, key: str, **values: Any) -> str:
        """Format a text with its values; ``count`` selects the plural."""
        text = self.words[key]
        if isinstance(text, dict):
            text = text["one" if values["count"] == 1 else "other"]
        return re.sub(r"\{(\w+)\}", lambda match: str(values[match[1]]), text)

    def format_day(self, text: str) -> str:
        """Format a day such as 2027-03-31 in words."""
        parsed_date = date.fromisoformat(text)
        month_name = self("month." + str(parsed_date.month))
        return self("date.long", day=parsed_date.day, month=month_name, year=parsed_date.year)


def choose_translator(bundle: Bundle, request: Request, offered_tags: list[str]) -> Translator:
    """Choose the language of a request: that of its address, or the first the browser accepts."""
    wanted_tags = [request.query_params.get("lang", "")]
    for preference in request.headers.get("accept-language", "").split(","):
        wanted_tags.append(preference.partition(";")[0].strip())
    for tag in (*wanted_tags, *(wanted_tag.partition("-")[0] for wanted_tag in wanted_tags), "en"):
        if tag in bundle.words and (tag in offered_tags or not offered_tags or tag == "en"):
            return Translator(tag, bundle.words[tag])
    return Translator("en", bundle.words["en"])


def create_public_router(bundle: Bundle | None = None) -> APIRouter:
    """Create the routes of the public pages.

    Parameters
    ----------
    bundle : Bundle, optional
        That of the package if not given.
    """
    page_bundle = bundle or Bundle()
    router, environment = APIRouter(include_in_schema=False), load_templates()
    page_html = page_bundle.render_page()
    policy_headers = {"Content-Security-Policy": page_bundle.build_policy()}
    compressed_files = {
        file_name: gzip.compress(content, mtime=0)
        for file_name, content in page_bundle.files.items()
    }
    compressed_page = gzip.compress(page_html.encode(), mtime=0)

    @router.api_route("/static/{name:path}", methods=READ_METHODS)
    async def get_static_file(request: Request, name: str) -> Response:
        if name not in page_bundle.files:
            raise Problem("not-found")
        etag = f'"{page_bundle.compute_integrity(name)}"'
        headers = {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        media_type = MEDIA_TYPES["." + name.rpartition(".")[2]]
        return _make_encoded_response(
            request,
            page_bundle.files[name],
            compressed_files[name],
            headers | {"Content-Type": media_type},
        )

    @router.api_route("/s/{slug}", methods=READ_METHODS)
    async def get_page(request: Request, slug: Slug) -> Response:
        require_request_quota(request)
        try:
            await find_published_survey(request, slug)
            status_code = 200
        except Problem:
            status_code = 404
        headers = policy_headers | {"Content-Type": MEDIA_TYPES[".html"], "Vary": "Accept-Encoding"}
        page_response = _make_encoded_response(
            request, page_html.encode(), compressed_page, headers
        )
        page_response.status_code = status_code
        return page_response

    @router.api_route("/s/{slug}/about", methods=READ_METHODS)
    async def show_about(request: Request, slug: Slug) -> HTMLResponse:
        server, survey = get_server(request), await find_visible_survey(request, slug)
        say = choose_translator(page_bundle, request, list(survey.announcement.words))
        content = {
            "say": say,
            "title": survey.title(say.tag),
            "survey": survey,
            "base": server.settings.base_url,
            "digest": page_bundle.digest,
            **describe_guarantee(survey.announcement.make_guarantee(survey.collection)),
        }
        return HTMLResponse(environment.get_template("about.html").render(content))

    @router.api_route("/", methods=READ_METHODS)
    def list_surveys(request: Request) -> HTMLResponse:
        server, today = require_request_quota(request), utc_day()
        say = choose_translator(page_bundle, request, [])
        open_surveys = [
            (survey, survey.title(say.tag))
            for survey, state in server.surveys.list_surveys()
            if state == "open" and survey.announcement.get_state(today) == "open"
        ]
        content = {"say": say, "surveys": open_surveys, "digest": page_bundle.digest}
        return HTMLResponse(environment.get_template("list.html").render(content))

    return router


def describe_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """Describe a guarantee for the pages: how far a report can move a belief."""
    epsilon = guarantee.epsilon if guarantee.is_private else math.inf
    return {
        "guarantee": guarantee,
        "before": round(100 * EXAMPLE_PRIOR),
        "after": compute_posterior(EXAMPLE_PRIOR, epsilon),
        "weak": epsilon > WEAK_EPSILON,
        "inactive": not guarantee.is_private,
    }


def _make_encoded_response(
    request: Request, content: bytes, compressed: bytes, headers: dict[str, str]
) -> Response:
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(compressed, headers=headers | {"Content-Encoding": "gzip"})
    return Response(content, headers=headers)
