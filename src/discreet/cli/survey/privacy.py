"""``discreet survey privacy``: all figures, and in one sentence what may be relied on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import promise_body
from discreet.cli.files import about, read_model
from discreet.cli.output import console, example, json_option, print_json, table
from discreet.cli.survey.design import epsilon_text, read_questionnaire
from discreet.documents import read_text
from discreet.errors import FormatError

if TYPE_CHECKING:
    from discreet.survey.measure import Measure
    from discreet.survey.questionnaire import Questionnaire

__all__ = ["privacy"]


@click.command(
    epilog=example(
        "discreet survey privacy questionnaire.yaml",
        "discreet survey privacy questionnaire.yaml --prior prior.json",
        "discreet survey privacy questionnaire.yaml --model model.json",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.option("--prior", help='JSON: what is believed beforehand, {"smokes": [0.8, 0.2], …}.')
@click.option("--model", help="The released model: what everybody can know afterwards.")
@json_option
def privacy(path: str, prior: str | None, model: str | None, as_json: bool) -> None:
    """Measure how private the answers to a QUESTIONNAIRE are.

    PSE is the chance that a guess from the randomized answer is wrong, for the stated prior
    (uniform if none). After mining it is shown as published, PSE - REC, and soundly: given the
    whole sheet and the model, and in scenario I one other true answer too. Epsilon holds whatever
    anybody knows.
    """
    from discreet.survey.beliefs import Beliefs
    from discreet.survey.measure import measure

    survey = read_questionnaire(path)
    if prior is not None and model is not None:
        raise click.UsageError("Give --prior or --model: a model is a prior.")
    if model is not None:
        with about(model):
            beliefs = Beliefs.of_model(survey, read_model(model))
    else:
        with about(prior or path):
            beliefs = Beliefs.stated(survey, None if prior is None else _prior(prior))
    found = measure(survey, beliefs)
    if as_json:
        print_json(_body(survey, found))
    else:
        _print(survey, found, model or prior or "uniform answers")


def _prior(path: str) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, list) for one in found.values()):
        raise FormatError(f'{path}: a prior is one JSON object: {{"question": [0.8, 0.2], …}}')
    return found


def _print(survey: Questionnaire, found: Measure, known: str) -> None:
    printer = console()
    columns = (">PSE", ">REC I", ">REC II", ">PSE-REC I", ">PSE-REC II", ">sound I", ">sound II")
    shown = table(f"Privacy of single entries, known beforehand: {known}", "entry", *columns)
    for number, group in enumerate(survey.groups):
        entries = [one for one in found.questions if one.name in group.questions]
        for one in entries:
            shown.add_row(one.name, *_figures(one))
        shown.add_row(f"group {number + 1}", *_figures(found.groups[number]), end_section=True)
    printer.print(shown)
    if not found.exact:
        printer.print("sound figures: averages over 4,096 invented sheets")
    printer.print("I: another true answer is known; II: only the sheet. A group is its smallest.\n")
    beliefs = table("P(true answer | reported answer)", "question", "reported", ">prior", "true")
    for name in survey.names:
        labels = survey.cells[name].labels
        for reported, row in zip(labels, found.posteriors[name], strict=True):
            prior = found.priors[name][labels.index(reported)]
            true = ", ".join(f"{a} {p:.3f}" for a, p in zip(labels, row, strict=True))
            beliefs.add_row(name, reported, f"{prior:.3f}", true)
    printer.print(beliefs)
    losses = table("Local-DP epsilon, whatever anybody knows", "group", "questions", ">epsilon")
    for number, (group, epsilon) in enumerate(zip(survey.groups, found.epsilons, strict=True)):
        losses.add_row(str(number + 1), group.name, epsilon_text(epsilon))
    losses.add_row("all", "the whole sheet", epsilon_text(found.epsilon))
    printer.print(losses)
    printer.print(survey.sentence, soft_wrap=True)


def _figures(one: Any) -> tuple[str, ...]:
    published = (one.rec_known, one.rec_unknown, one.published_known, one.published_unknown)
    numbers = (one.before, *published, one.sound_known, one.sound_unknown)
    return tuple(f"{number:.3f}" for number in numbers)


def _body(survey: Questionnaire, found: Measure) -> dict[str, Any]:
    return {
        "questions": [one.to_body() for one in found.questions],
        "groups": [
            {**one.to_body(), "epsilon": epsilon}
            for one, epsilon in zip(found.groups, found.epsilons, strict=True)
        ],
        "epsilon": found.epsilon,
        "exact": found.exact,
        "posteriors": {
            name: {
                reported: dict(zip(survey.cells[name].labels, row.tolist(), strict=True))
                for reported, row in zip(survey.cells[name].labels, rows, strict=True)
            }
            for name, rows in found.posteriors.items()
        },
        "guarantee": promise_body(survey.guarantee),
        "sentence": survey.sentence,
    }
