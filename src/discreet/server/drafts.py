"""Collections parsed from a form of the desk: a document, a schema, or a list of questions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from discreet.announcement import Announcement, Words
from discreet.collection.protocol import collection_of
from discreet.documents import json_of_yaml, parse
from discreet.errors import FormatError
from discreet.schema import Categorical, Schema

__all__ = ["EXAMPLE", "announcement_from", "collection_from", "whole"]

EXAMPLE = """burnout | Have you felt burnt out in the last month? | no, yes
sleep | How do you sleep? | well, badly
overtime | Do you work more than ten hours of overtime a week? | no, yes"""


def collection_from(fields: Mapping[str, str]) -> Any:
    """Make the plan or questionnaire that a form describes.

    Parameters
    ----------
    fields : mapping of str to str
        ``document``: the text of a plan, questionnaire or schema, JSON or YAML; a schema also needs
        ``epsilon``. Without it ``questions``, one per line as ``name | wording | answer, answer``,
        the first being the one to predict, and ``truth``, in percent.
    """
    document = fields.get("document", "").strip()
    if not document:
        return _questionnaire(fields)
    text = document if document.startswith("{") else json_of_yaml(document, "collection")
    if parse(text, "collection").get("format") != "discreet/schema":
        return collection_of(text)
    from discreet.local.planning import make_plan

    return make_plan(Schema.from_json(text), _number(fields, "epsilon", "epsilon"))


def _number(fields: Mapping[str, str], name: str, what: str) -> float:
    try:
        return float(fields.get(name, ""))
    except ValueError:
        raise FormatError(f"{what} is {fields.get(name, '')!r}; write a number") from None


def whole(fields: Mapping[str, str], name: str, most: int) -> int:
    """Parse a positive whole number of a form.

    Parameters
    ----------
    fields : mapping of str to str
    name : str
    most : int
    """
    text = fields.get(name, "").strip()
    if not re.fullmatch("[0-9]{1,10}", text) or not 1 <= int(text) <= most:
        raise FormatError(f"{name} is {text[:40]!r}; write a whole number from 1 to {most}")
    return int(text)


def _questionnaire(fields: Mapping[str, str]) -> Any:
    from discreet.survey.group import Group
    from discreet.survey.questionnaire import Questionnaire, Wording

    asked, wording = [], {}
    for line in fields.get("questions", "").splitlines():
        if not line.strip():
            continue
        name, told, answers = ([part.strip() for part in line.split("|")] + ["", ""])[:3]
        values = [one.strip() for one in answers.split(",") if one.strip()]
        if len(values) < 2:
            raise FormatError(f"{name}: write it as name | wording | answer, answer")
        asked.append(Categorical(name, values, optional=False))
        wording[name] = Wording(told or name)
    if len(asked) < 2:
        raise FormatError("write at least two questions, one per line; the first is predicted")
    theta = _number(fields, "truth", "the share of true answers") / 100
    target, *features = asked
    schema = Schema(features, target.name, list(target.values))
    group = Group((target.name, *(one.name for one in features)), theta=round(theta, 4))
    return Questionnaire(
        schema, [group], wording=wording, title=fields.get("title", ""), device="either"
    )


def announcement_from(fields: Mapping[str, str], collection: Any) -> Announcement:
    """Make the announcement of a collection from the same form."""
    title = fields.get("title", "").strip() or getattr(collection, "title", "")
    name = fields.get("name", "").strip()
    slug = name or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:64] or collection.kind
    introduction = fields.get("introduction", "") or getattr(collection, "introduction", "")
    entry, withdrawal = fields.get("entry", "anyone"), fields.get("withdrawal", "blind")
    return Announcement(
        collection.digest,
        slug,
        asks=fields.get("asks", ""),
        contact=fields.get("contact", ""),
        words={"en": Words(title or slug, introduction)},
        entry=entry,  # type: ignore[arg-type]
        withdrawal=withdrawal,  # type: ignore[arg-type]
        closes=fields.get("closes", "").strip(),
        deletes=fields.get("deletes", "").strip(),
        batch=whole({"batch": "100", **fields}, "batch", 1_000_000),
    )
