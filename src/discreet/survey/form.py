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

from discreet.announcement import Words
from discreet.errors import FormatError, PrivacyError
from discreet.mechanisms.laws import rational
from discreet.mechanisms.response import Related, Response, Unrelated
from discreet.privacy import odds_factor, rounded_up
from discreet.survey.questionnaire import Questionnaire

__all__ = ["Wording", "form_of", "instructions", "texts_in"]

MOST = 10_000
"""Most numbers that a respondent draws from: four ten-sided dice."""

PAGE = """<!doctype html>
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

CATALOGUE = Path(__file__).parents[1] / "server" / "static" / "words"
"""The texts of the page on the web; the form adds what only paper needs."""

PAPER = {
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
NEEDED = (
    *("direction", "hand.title", "hand.draw", "hand.hit", "hand.truth", "hand.opposite"),
    *("hand.own", "hand.rest", "hand.law", "hand.means", "hand.range"),
)


@lru_cache
def texts_in(language: str, path: str | None = None) -> Mapping[str, str]:
    """The texts of the form in one language.

    Parameters
    ----------
    language : str
        One that the package has (``en``, ``de``), unless a file is given.
    path : str, optional
        A JSON object with the same keys as ``PAPER`` and those of ``NEEDED``, to translate.
    """
    if path is None:
        if language not in PAPER:
            raise FormatError(
                f"there are no texts in {language!r}; there are {', '.join(PAPER)}: write "
                "--texts FILE with a translation of them"
            )
        own = json.loads((CATALOGUE / f"{language}.json").read_text(encoding="utf-8"))
        return {**own, **PAPER[language]}
    from discreet.documents import parse, read_text

    found = parse(read_text(path), "translation")
    lacking = [key for key in (*NEEDED, *PAPER["en"]) if not isinstance(found.get(key), str)]
    if lacking:
        raise FormatError(f"{path}: lacks the text {lacking[0]!r}; add it to the translation")
    return found


@dataclass(frozen=True)
class Wording:
    """What a form says, in one language.

    Parameters
    ----------
    language : str
    words : Words, optional
        Title, introduction, questions and answers in that language, from an announcement; without
        them, those of the questionnaire.
    texts : mapping of str to str
        The form's own texts; see :func:`texts_in`.
    """

    language: str = "en"
    words: Words | None = None
    texts: Mapping[str, str] = field(default_factory=lambda: texts_in("en"))

    def says(self, key: str, **parts: object) -> str:
        """One of the form's own texts."""
        return self.texts[key].format(**parts)

    def span(self, low: int, high: int) -> str:
        """A range of numbers."""
        return str(low) if low == high else self.says("hand.range", low=low, high=high)

    def asked(self, questionnaire: Questionnaire, name: str) -> str:
        """A question, as it is asked."""
        if self.words is not None and name in self.words.questions:
            return self.words.questions[name].wording
        own = questionnaire.wording.get(name)
        return own.private if own and own.private else name

    def called(self, name: str) -> str:
        """A question, as the draws call it."""
        translated = self.words is not None and name in self.words.questions
        return self.words.questions[name].wording if self.words and translated else name

    def answers(self, questionnaire: Questionnaire, name: str) -> Sequence[str]:
        """The answers to a question, with their labels."""
        labels = questionnaire.cells[name].labels
        if self.words is None or name not in self.words.questions:
            return labels
        own = self.words.questions[name].answers
        return [*own, *labels[len(own) :]]


def instructions(questionnaire: Questionnaire, wording: Wording | None = None) -> list[list[str]]:
    """What a respondent does for each group, step by step."""
    said = wording or Wording()
    return [
        _steps(questionnaire, number, channel, said)
        for number, channel in enumerate(questionnaire.channels)
    ]


def _steps(
    questionnaire: Questionnaire, number: int, channel: Response, said: Wording
) -> list[str]:
    group = questionnaire.groups[number]
    theta = rational("theta", group.theta) if group.theta is not None else Fraction(0)
    if theta == 0 or theta.denominator > MOST:
        raise PrivacyError(
            f"group {group.name}: nobody can draw its theta, {float(channel.theta_exact):.6g}, "
            "with dice; write theta as a simple fraction such as 0.6"
        )
    hits, sides = theta.numerator, theta.denominator
    if hits == sides:
        return [said.says("hand.truth")]
    steps = [
        said.says("hand.draw", sides=sides),
        said.says("hand.hit", range=said.span(1, hits)),
    ]
    rest = said.span(hits + 1, sides)
    if isinstance(channel, Related):
        return [*steps, said.says("hand.opposite", range=rest)]
    assert isinstance(channel, Unrelated)
    if questionnaire.personal == "own":
        own = [questionnaire.wording[n].personal for n in group.questions]
        return [*steps, said.says("hand.own", range=rest, questions=" ".join(own))]
    steps.append(said.says("hand.rest", range=rest))
    for law in sorted(channel.laws, key=lambda one: min(one.places)):  # as the questions follow
        if law.total > MOST:
            raise PrivacyError(f"group {group.name}: its personal law cannot be drawn with dice")
        names = [group.questions[place] for place in law.places]
        asked = " + ".join(map(said.called, names))
        means = _means(questionnaire, names, law.weights, said)
        steps.append(said.says("hand.law", questions=asked, total=law.total, table=means))
    return steps


def _means(
    questionnaire: Questionnaire, names: list[str], weights: tuple[int, ...], said: Wording
) -> str:
    """List the range of numbers that means each answer."""
    labels = itertools.product(*(said.answers(questionnaire, name) for name in names))
    found, below = [], 0
    for label, weight in zip(labels, weights, strict=True):
        if weight:
            drawn = said.span(below + 1, below + weight)
            found.append(said.says("hand.means", range=drawn, answer=" + ".join(label)))
        below += weight
    return " ".join(found)


def form_of(questionnaire: Questionnaire, wording: Wording | None = None) -> str:
    """The form as a page of HTML that prints well and loads nothing.

    Parameters
    ----------
    questionnaire : Questionnaire
    wording : Wording, optional
        In another language than English, or with other words.
    """
    said = wording or Wording()
    words, parts = said.words, []
    for number, steps in enumerate(instructions(questionnaire, said)):
        title = said.says("hand.title", count=number + 1)
        lines = [f"<section><h2>{escape(title)}</h2><ol>"]
        lines += [f"<li>{escape(step)}</li>" for step in steps]
        lines.append("</ol>")
        for name in questionnaire.groups[number].questions:
            asked, called = said.asked(questionnaire, name), said.called(name)
            own = questionnaire.wording.get(name)
            named = "" if called == asked != name else f"<b>{escape(name)}</b>: "
            lines.append(f"<p>{named}{escape(asked)}")
            if questionnaire.personal == "own" and own and own.personal:
                lines.append(f"<br><i>{escape(own.personal)}</i>")
            boxes = (f"<label>☐ {escape(a)}</label>" for a in said.answers(questionnaire, name))
            lines.append("<br>" + "".join(boxes) + "</p>")
        parts.append("\n".join([*lines, "</section>"]))
    title = (words.title if words else "") or questionnaire.title or "Questionnaire"
    introduction = (words.introduction if words else "") or questionnaire.introduction
    return PAGE.format(
        language=escape(said.language),
        direction=escape(said.says("direction")),
        title=escape(title),
        introduction=escape(introduction),
        parts="\n".join(parts),
        sentence=escape(_promise(questionnaire, said)),
        rests=escape(said.says("form.rests")),
        document=escape(said.says("form.document", digest=questionnaire.digest)),
    )


def _promise(questionnaire: Questionnaire, said: Wording) -> str:
    """What respondents may rely on; an empty text stands for the sentence in English."""
    if not questionnaire.guarantee.private:
        return said.says("form.void") or questionnaire.sentence
    loss = sum(questionnaire.epsilons)
    parts = {"factor": odds_factor(loss), "epsilon": rounded_up(loss, 3)}
    return said.says("form.odds", **parts) or questionnaire.sentence
