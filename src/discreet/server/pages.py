"""Public pages without cookies: the respondent's page, the list of surveys, the guarantee.

The page itself is one file for all surveys and people (:mod:`discreet.server.bundle`); it fetches
the announcement and the document like any other client. ``/s/NAME/about`` and the list are made
here and work without JavaScript.
"""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Callable
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
    pages, router = PublicPages(bundle or Bundle()), APIRouter(include_in_schema=False)
    routes: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("/static/{name:path}", pages.get_static_file),
        ("/s/{slug}", pages.get_page),
        ("/s/{slug}/about", pages.show_about),
        ("/", pages.list_surveys),
    )
    for path, handler in routes:
        router.add_api_route(path, handler, methods=READ_METHODS, response_model=None)
    return router


class PublicPages:
    """The public pages, a method for each.

    Parameters
    ----------
    bundle : Bundle
    """

    def __init__(self, bundle: Bundle) -> None:
        self.bundle, self.page = bundle, bundle.render_page().encode()
        self.policy_headers = {"Content-Security-Policy": bundle.build_policy()}
        self.compressed_page = gzip.compress(self.page, mtime=0)
        self.compressed_files = {
            file_name: gzip.compress(content, mtime=0)
            for file_name, content in bundle.files.items()
        }

    async def get_static_file(self, request: Request, name: str) -> Response:
        """Return a file of the respondent's page."""
        if name not in self.bundle.files:
            raise Problem("not-found")
        etag = f'"{self.bundle.compute_integrity(name)}"'
        headers = {"ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        headers["Content-Type"] = MEDIA_TYPES["." + name.rpartition(".")[2]]
        return _make_encoded_response(
            request, self.bundle.files[name], self.compressed_files[name], headers
        )

    async def get_page(self, request: Request, slug: Slug) -> Response:
        """Return the respondent's page; of a survey that nobody has to know of, with 404."""
        require_request_quota(request)
        headers = {**self.policy_headers, "Content-Type": MEDIA_TYPES[".html"]}
        page_response = _make_encoded_response(
            request, self.page, self.compressed_page, headers | {"Vary": "Accept-Encoding"}
        )
        try:
            await find_published_survey(request, slug)
        except Problem:
            page_response.status_code = 404
        return page_response

    async def show_about(self, request: Request, slug: Slug) -> HTMLResponse:
        """Show what a survey promises, what this server sees, and how to verify."""
        survey = await find_visible_survey(request, slug)
        say = choose_translator(self.bundle, request, list(survey.announcement.words))
        return self._render(
            "about.html",
            say,
            title=survey.title(say.tag),
            survey=survey,
            base=get_server(request).settings.base_url,
            **describe_guarantee(survey.announcement.make_guarantee(survey.collection)),
        )

    def list_surveys(self, request: Request) -> HTMLResponse:
        """List the surveys that are open today."""
        server, say = require_request_quota(request), choose_translator(self.bundle, request, [])
        open_surveys = [
            (survey, survey.title(say.tag)) for survey in server.surveys.list_open_surveys()
        ]
        return self._render("list.html", say, surveys=open_surveys)

    def _render(self, template_name: str, say: Translator, **content: Any) -> HTMLResponse:
        template = load_templates().get_template(template_name)
        return HTMLResponse(template.render(say=say, digest=self.bundle.digest, **content))


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
