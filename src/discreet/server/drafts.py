"""Collections parsed from a form of the desk: a document, a schema, or a list of questions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from discreet.collection.announcement import Announcement, AnnouncementTexts
from discreet.collection.protocol import parse_collection_json
from discreet.errors import FormatError
from discreet.files.documents import parse_document
from discreet.files.yaml_text import convert_yaml_to_json
from discreet.schema.schema import Categorical, Schema
from discreet.server.publishing import convert_to_slug

__all__ = ["EXAMPLE_QUESTIONS", "make_announcement", "parse_collection", "parse_whole_number"]

EXAMPLE_QUESTIONS = """burnout | Have you felt burnt out in the last month? | no, yes
sleep | How do you sleep? | well, badly
overtime | Do you work more than ten hours of overtime a week? | no, yes"""


def parse_collection(fields: Mapping[str, str]) -> Any:
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
        return _make_questionnaire(fields)
    text = document if document.startswith("{") else convert_yaml_to_json(document, "collection")
    if parse_document(text, "collection").get("format") != "discreet/schema":
        return parse_collection_json(text)
    from discreet.local.planning import make_plan

    schema = Schema.from_json(text) if text == document else Schema.from_yaml(document)
    return make_plan(schema, _parse_number(fields, "epsilon", "epsilon"))


def _parse_number(fields: Mapping[str, str], field_name: str, label: str) -> float:
    try:
        return float(fields.get(field_name, ""))
    except ValueError:
        raise FormatError(f"{label} is {fields.get(field_name, '')!r}; write a number") from None


def parse_whole_number(fields: Mapping[str, str], field_name: str, maximum: int) -> int:
    """Parse a positive whole number of a form.

    Parameters
    ----------
    fields : mapping of str to str
    field_name : str
    maximum : int
    """
    field_text = fields.get(field_name, "").strip()
    if not re.fullmatch("[0-9]{1,10}", field_text) or not 1 <= int(field_text) <= maximum:
        raise FormatError(
            f"{field_name} is {field_text[:40]!r}; write a whole number from 1 to {maximum}"
        )
    return int(field_text)


def _make_questionnaire(fields: Mapping[str, str]) -> Any:
    from discreet.survey.group import Group
    from discreet.survey.questionnaire import Questionnaire, Wording

    questions, wordings = [], {}
    for question_line in fields.get("questions", "").splitlines():
        if not question_line.strip():
            continue
        line_cells = [cell.strip() for cell in question_line.split("|")]
        question_name, question_text, answers = [*line_cells, "", ""][:3]
        answer_values = [answer.strip() for answer in answers.split(",") if answer.strip()]
        if len(answer_values) < 2:
            raise FormatError(f"{question_name}: write it as name | wording | answer, answer")
        questions.append(Categorical(question_name, answer_values, optional=False))
        wordings[question_name] = Wording(question_text or question_name)
    if len(questions) < 2:
        raise FormatError("write at least two questions, one per line; the first is predicted")
    theta = _parse_number(fields, "truth", "the share of true answers") / 100
    target, *features = questions
    schema = Schema(features, target.name, list(target.values))
    group = Group((target.name, *(feature.name for feature in features)), theta=round(theta, 4))
    return Questionnaire(
        schema, [group], wording=wordings, title=fields.get("title", ""), device="either"
    )


def make_announcement(fields: Mapping[str, str], collection: Any) -> Announcement:
    """Make the announcement of a collection from the same form."""
    title = fields.get("title", "").strip() or collection.title
    slug = fields.get("name", "").strip() or convert_to_slug(title) or collection.kind
    introduction = fields.get("introduction", "") or collection.introduction
    entry, withdrawal = fields.get("entry", "anyone"), fields.get("withdrawal", "blind")
    return Announcement(
        collection.digest,
        slug,
        asks=fields.get("asks", ""),
        contact=fields.get("contact", ""),
        words={"en": AnnouncementTexts(title or slug, introduction)},
        entry=entry,  # type: ignore[arg-type]
        withdrawal=withdrawal,  # type: ignore[arg-type]
        closes=fields.get("closes", "").strip(),
        deletes=fields.get("deletes", "").strip(),
        batch=parse_whole_number({"batch": "100", **fields}, "batch", 1_000_000),
    )
