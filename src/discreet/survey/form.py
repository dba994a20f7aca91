"""A form to print: the respondent draws with dice or cards and ticks what comes out.

The channel is that of the software; what it promises rests on the respondent's own draw.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from html import escape

from discreet.errors import PrivacyError
from discreet.mechanisms.laws import rational
from discreet.mechanisms.response import Related, Response, Unrelated
from discreet.survey.questionnaire import Questionnaire

__all__ = ["form_of", "instructions"]

MOST = 10_000
"""Numbers that somebody may be asked to draw from: four ten-sided dice."""

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 12pt/1.5 serif; max-width: 42em; margin: 2em auto; padding: 0 1em; }}
section {{ break-inside: avoid; border-top: 1px solid; margin-top: 1.5em; }}
label {{ margin-right: 1.5em; white-space: nowrap; }}
footer {{ border-top: 1px solid; margin-top: 2em; font-size: 10pt; }}
</style>
<h1>{title}</h1>
<p>{introduction}</p>
{parts}
<footer><p>{sentence} That rests on your own draw: make it fairly, show it to nobody, and do what
it says.</p><p>Questionnaire {digest}</p></footer>
</html>
"""


def instructions(questionnaire: Questionnaire) -> list[list[str]]:
    """What a respondent does for each group, step by step."""
    return [
        _steps(questionnaire, number, channel)
        for number, channel in enumerate(questionnaire.channels)
    ]


def _steps(questionnaire: Questionnaire, number: int, channel: Response) -> list[str]:
    group = questionnaire.groups[number]
    theta = rational("theta", group.theta) if group.theta is not None else Fraction(0)
    if theta == 0 or theta.denominator > MOST:
        raise PrivacyError(
            f"group {group.name}: nobody can draw its theta, {float(channel.theta_exact):.6g}, "
            "with dice; write theta as a simple fraction such as 0.6"
        )
    hits, sides = theta.numerator, theta.denominator
    truth = "tick your true answers to all questions of this part"
    if hits == sides:
        return [truth[0].upper() + truth[1:] + "."]
    steps = [
        f"Draw a whole number from 1 to {sides} so that nobody sees it.",
        f"{_range(1, hits)}: {truth}.",
    ]
    rest = _range(hits + 1, sides)
    if isinstance(channel, Related):
        return [*steps, f"{rest}: tick the opposite of your true answer to every question."]
    assert isinstance(channel, Unrelated)
    if questionnaire.personal == "own":
        return [*steps, f"{rest}: tick your true answers to the questions in italics instead."]
    steps.append(f"{rest}: tick what the following draws say, whatever is true.")
    for law in channel.laws:
        if law.total > MOST:
            raise PrivacyError(f"group {group.name}: its personal law cannot be drawn with dice")
        names = [group.questions[place] for place in law.places]
        table = _table(questionnaire, names, law.weights)
        steps.append(f"For {' and '.join(names)}: draw from 1 to {law.total}; {table}.")
    return steps


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def _table(questionnaire: Questionnaire, names: list[str], weights: tuple[int, ...]) -> str:
    """Which numbers stand for which answers."""
    labels = itertools.product(*(questionnaire.cells[name].labels for name in names))
    found, below = [], 0
    for label, weight in zip(labels, weights, strict=True):
        if weight:
            found.append(f"{_range(below + 1, below + weight)} is {' and '.join(label)}")
        below += weight
    return ", ".join(found)


def form_of(questionnaire: Questionnaire) -> str:
    """The form as a page of HTML that prints well and loads nothing."""
    parts = []
    for number, steps in enumerate(instructions(questionnaire)):
        lines = [f"<section><h2>Part {number + 1}</h2><ol>"]
        lines += [f"<li>{escape(step)}</li>" for step in steps]
        lines.append("</ol>")
        for name in questionnaire.groups[number].questions:
            wording = questionnaire.wording.get(name)
            asked = wording.private if wording and wording.private else name
            lines.append(f"<p><b>{escape(name)}</b>: {escape(asked)}")
            if questionnaire.personal == "own" and wording and wording.personal:
                lines.append(f"<br><i>{escape(wording.personal)}</i>")
            boxes = (f"<label>☐ {escape(a)}</label>" for a in questionnaire.cells[name].labels)
            lines.append("<br>" + "".join(boxes) + "</p>")
        parts.append("\n".join([*lines, "</section>"]))
    return PAGE.format(
        title=escape(questionnaire.title or "Questionnaire"),
        introduction=escape(questionnaire.introduction),
        parts="\n".join(parts),
        sentence=escape(questionnaire.sentence),
        digest=questionnaire.digest,
    )
