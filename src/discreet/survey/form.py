"""Paper forms: the respondent draws with dice or cards and ticks the result.

The channel is that of the software; what it promises rests on the respondent's own draw. The texts
are those of the respondent's page on the web, in its languages, or in any other by a file.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from html import escape
from pathlib import Path

from discreet.collection.announcement import AnnouncementTexts
from discreet.errors import FormatError, PrivacyError
from discreet.mechanisms.laws import parse_rational
from discreet.mechanisms.response import Related, Response, Unrelated
from discreet.privacy.guarantee import format_odds_factor, format_rounded_up
from discreet.survey.questionnaire import Questionnaire

__all__ = ["FormTexts", "list_instructions", "load_texts", "render_form"]

MAX_DRAW_NUMBERS = 10_000
"""Most numbers that a respondent draws from: four ten-sided dice."""

PAGE_TEMPLATE = """<!doctype html>
<html lang="{language}" dir="{direction}">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 12pt/1.5 serif; max-width: 42em; margin: 2em auto; padding: 0 1em; }}
section {{ break-inside: avoid; border-top: 1px solid; margin-top: 1.5em; }}
label {{ margin-inline-end: 1.5em; white-space: nowrap; }}
footer {{ border-top: 1px solid; margin-top: 2em; font-size: 10pt; }}
</style>
<h1>{title}</h1>
<p>{introduction}</p>
{parts}
<footer><p>{sentence} {rests}</p><p>{document}</p></footer>
</html>
"""

TEXTS_FOLDER = Path(__file__).parents[1] / "server" / "static" / "words"
"""The texts of the page on the web; the form adds what only paper needs."""

PAPER_TEXTS = {
    "en": {
        "form.rests": "That rests on your own draw: make it fairly, show it to nobody, and do what "
        "it says.",
        "form.odds": "",
        "form.void": "",
        "form.document": "Questionnaire {digest}",
    },
    "de": {
        "form.rests": "Das beruht auf Ihrer eigenen Ziehung: Ziehen Sie ehrlich, zeigen Sie das "
        "Ergebnis niemandem, und tun Sie, was es sagt.",
        "form.odds": "Wer Ihren Bogen sieht, kann, was er sonst auch weiß, seine Wettquote auf "
        "alles, was Ihre Antworten betrifft, höchstens um den Faktor {factor} ändern (Epsilon "
        "{epsilon} insgesamt).",
        "form.void": "Für diesen Bogen wird kein Epsilon versprochen: Fragen Sie nach, was er "
        "über Sie verrät, bevor Sie ihn ausfüllen.",
        "form.document": "Fragebogen {digest}",
    },
}
REQUIRED_TEXT_KEYS = (
    *("direction", "hand.title", "hand.draw", "hand.hit", "hand.truth", "hand.opposite"),
    *("hand.own", "hand.rest", "hand.law", "hand.means", "hand.range"),
)


@lru_cache
def load_texts(language: str, path: str | None = None) -> Mapping[str, str]:
    """The texts of the form in one language.

    Parameters
    ----------
    language : str
        One that the package has (``en``, ``de``), unless a file is given.
    path : str, optional
        A JSON object with the same keys as ``PAPER_TEXTS`` and those of ``REQUIRED_TEXT_KEYS``, to
        translate.
    """
    if path is None:
        if language not in PAPER_TEXTS:
            raise FormatError(
                f"there are no texts in {language!r}; there are {', '.join(PAPER_TEXTS)}: write "
                "--texts FILE with a translation of them"
            )
        page_texts = json.loads((TEXTS_FOLDER / f"{language}.json").read_text(encoding="utf-8"))
        return {**page_texts, **PAPER_TEXTS[language]}
    from discreet.files.atomic_writing import read_text
    from discreet.files.documents import parse_document

    translation = parse_document(read_text(path), "translation")
    missing_keys = [
        key
        for key in (*REQUIRED_TEXT_KEYS, *PAPER_TEXTS["en"])
        if not isinstance(translation.get(key), str)
    ]
    if missing_keys:
        raise FormatError(f"{path}: lacks the text {missing_keys[0]!r}; add it to the translation")
    return translation


@dataclass(frozen=True)
class FormTexts:
    """What a form says, in one language.

    Parameters
    ----------
    language : str
    words : AnnouncementTexts, optional
        Title, introduction, questions and answers in that language, from an announcement; without
        them, those of the questionnaire.
    texts : mapping of str to str
        The form's own texts; see :func:`load_texts`.
    """

    language: str = "en"
    words: AnnouncementTexts | None = None
    texts: Mapping[str, str] = field(default_factory=lambda: load_texts("en"))

    def format_text(self, key: str, **parts: object) -> str:
        """One of the form's own texts."""
        return self.texts[key].format(**parts)

    def format_range(self, low: int, high: int) -> str:
        """A range of numbers."""
        return str(low) if low == high else self.format_text("hand.range", low=low, high=high)

    def get_question_text(self, questionnaire: Questionnaire, name: str) -> str:
        """A question, as it is asked."""
        if self.words is not None and name in self.words.questions:
            return self.words.questions[name].wording
        question_wording = questionnaire.wording.get(name)
        return question_wording.private if question_wording and question_wording.private else name

    def get_short_name(self, name: str) -> str:
        """A question, as the draws call it."""
        is_translated = self.words is not None and name in self.words.questions
        return self.words.questions[name].wording if self.words and is_translated else name

    def list_answers(self, questionnaire: Questionnaire, name: str) -> Sequence[str]:
        """The answers to a question, with their labels."""
        cell_labels = questionnaire.cells[name].labels
        if self.words is None or name not in self.words.questions:
            return cell_labels
        translated_answers = self.words.questions[name].answers
        return [*translated_answers, *cell_labels[len(translated_answers) :]]


def list_instructions(
    questionnaire: Questionnaire, wording: FormTexts | None = None
) -> list[list[str]]:
    """What a respondent does for each group, step by step."""
    form_texts = wording or FormTexts()
    return [
        _list_steps(questionnaire, number, channel, form_texts)
        for number, channel in enumerate(questionnaire.channels)
    ]


def _list_steps(
    questionnaire: Questionnaire, number: int, channel: Response, form_texts: FormTexts
) -> list[str]:
    group = questionnaire.groups[number]
    theta = parse_rational("theta", group.theta) if group.theta is not None else Fraction(0)
    if theta == 0 or theta.denominator > MAX_DRAW_NUMBERS:
        raise PrivacyError(
            f"group {group.name}: nobody can draw its theta, {float(channel.theta_exact):.6g}, "
            "with dice; write theta as a simple fraction such as 0.6"
        )
    hit_count, side_count = theta.numerator, theta.denominator
    if hit_count == side_count:
        return [form_texts.format_text("hand.truth")]
    steps = [
        form_texts.format_text("hand.draw", sides=side_count),
        form_texts.format_text("hand.hit", range=form_texts.format_range(1, hit_count)),
    ]
    other_range = form_texts.format_range(hit_count + 1, side_count)
    if isinstance(channel, Related):
        return [*steps, form_texts.format_text("hand.opposite", range=other_range)]
    assert isinstance(channel, Unrelated)
    if questionnaire.personal == "own":
        personal_questions = [questionnaire.wording[name].personal for name in group.questions]
        return [
            *steps,
            form_texts.format_text(
                "hand.own", range=other_range, questions=" ".join(personal_questions)
            ),
        ]
    steps.append(form_texts.format_text("hand.rest", range=other_range))
    for law in sorted(
        channel.laws, key=lambda personal_law: min(personal_law.places)
    ):  # as the questions follow
        if law.total > MAX_DRAW_NUMBERS:
            raise PrivacyError(f"group {group.name}: its personal law cannot be drawn with dice")
        names = [group.questions[place] for place in law.places]
        law_questions = " + ".join(map(form_texts.get_short_name, names))
        draw_table = _format_draw_table(questionnaire, names, law.weights, form_texts)
        steps.append(
            form_texts.format_text(
                "hand.law", questions=law_questions, total=law.total, table=draw_table
            )
        )
    return steps


def _format_draw_table(
    questionnaire: Questionnaire, names: list[str], weights: tuple[int, ...], form_texts: FormTexts
) -> str:
    """List the range of numbers that means each answer."""
    label_combinations = itertools.product(
        *(form_texts.list_answers(questionnaire, name) for name in names)
    )
    range_texts, numbers_below = [], 0
    for label_combination, weight in zip(label_combinations, weights, strict=True):
        if weight:
            range_text = form_texts.format_range(numbers_below + 1, numbers_below + weight)
            range_texts.append(
                form_texts.format_text(
                    "hand.means", range=range_text, answer=" + ".join(label_combination)
                )
            )
        numbers_below += weight
    return " ".join(range_texts)


def render_form(questionnaire: Questionnaire, wording: FormTexts | None = None) -> str:
    """The form as a page of HTML that prints well and loads nothing.

    Parameters
    ----------
    questionnaire : Questionnaire
    wording : FormTexts, optional
        In another language than English, or with other words.
    """
    form_texts = wording or FormTexts()
    announced_texts, sections = form_texts.words, []
    for number, steps in enumerate(list_instructions(questionnaire, form_texts)):
        title = form_texts.format_text("hand.title", count=number + 1)
        section_lines = [f"<section><h2>{escape(title)}</h2><ol>"]
        section_lines += [f"<li>{escape(step)}</li>" for step in steps]
        section_lines.append("</ol>")
        for name in questionnaire.groups[number].questions:
            question_text = form_texts.get_question_text(questionnaire, name)
            short_name = form_texts.get_short_name(name)
            question_wording = questionnaire.wording.get(name)
            name_prefix = "" if short_name == question_text != name else f"<b>{escape(name)}</b>: "
            section_lines.append(f"<p>{name_prefix}{escape(question_text)}")
            if questionnaire.personal == "own" and question_wording and question_wording.personal:
                section_lines.append(f"<br><i>{escape(question_wording.personal)}</i>")
            answer_boxes = (
                f"<label>☐ {escape(answer)}</label>"
                for answer in form_texts.list_answers(questionnaire, name)
            )
            section_lines.append("<br>" + "".join(answer_boxes) + "</p>")
        sections.append("\n".join([*section_lines, "</section>"]))
    title = (
        (announced_texts.title if announced_texts else "") or questionnaire.title or "Questionnaire"
    )
    introduction = (
        announced_texts.introduction if announced_texts else ""
    ) or questionnaire.introduction
    return PAGE_TEMPLATE.format(
        language=escape(form_texts.language),
        direction=escape(form_texts.format_text("direction")),
        title=escape(title),
        introduction=escape(introduction),
        parts="\n".join(sections),
        sentence=escape(_format_promise(questionnaire, form_texts)),
        rests=escape(form_texts.format_text("form.rests")),
        document=escape(form_texts.format_text("form.document", digest=questionnaire.digest)),
    )


def _format_promise(questionnaire: Questionnaire, form_texts: FormTexts) -> str:
    """What respondents may rely on; an empty text stands for the sentence in English."""
    if not questionnaire.guarantee.is_private:
        return form_texts.format_text("form.void") or questionnaire.sentence
    total_epsilon = sum(questionnaire.epsilons)
    odds_figures = {
        "factor": format_odds_factor(total_epsilon),
        "epsilon": format_rounded_up(total_epsilon, 3),
    }
    return form_texts.format_text("form.odds", **odds_figures) or questionnaire.sentence
