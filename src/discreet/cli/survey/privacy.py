"""``discreet survey privacy``: the guarantee in one sentence, and all privacy measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import promise_body
from discreet.cli.output import console, example, json_option, print_json, table
from discreet.cli.survey.design import epsilon_text, read_questionnaire
from discreet.documents import RepeatedKeyError, parse_json, read_text
from discreet.errors import FormatError, about

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
    """Say how private the answers to a QUESTIONNAIRE are, in words and in figures.

    First what everybody may rely on (epsilon), whatever others know. Then how often somebody who
    sees a sheet, and believes beforehand what --prior or --model says (all answers equally likely
    if neither is given), would guess a true answer wrongly. Last the figures of the literature,
    PSE and REC, each with an explanation.
    """
    from discreet.model import NaiveBayesModel
    from discreet.survey.beliefs import Beliefs
    from discreet.survey.measure import measure

    survey = read_questionnaire(path)
    if prior is not None and model is not None:
        raise click.UsageError("Give --prior or --model: a model is a prior.")
    if model is not None:
        with about(model):
            beliefs = Beliefs.of_model(survey, NaiveBayesModel.read(model))
    else:
        with about(prior or path):
            beliefs = Beliefs.stated(survey, None if prior is None else _prior(prior))
    found = measure(survey, beliefs)
    if as_json:
        print_json(_body(survey, found))
    else:
        _print(survey, found, model or prior or "all answers are equally likely")


def _prior(path: str) -> dict[str, Any]:
    try:
        found = parse_json(read_text(path))
    except RepeatedKeyError as error:
        raise FormatError(f"{path}: {error}; remove one of them") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(one, list) for one in found.values()):
        raise FormatError(f'{path}: a prior is one JSON object: {{"question": [0.8, 0.2], …}}')
    return found


def _print(survey: Questionnaire, found: Measure, known: str) -> None:
    printer = console()
    printer.print("What everybody may rely on\n")
    printer.print(survey.sentence, soft_wrap=True)
    losses = table("", "part", "questions", ">epsilon")
    for number, (group, epsilon) in enumerate(zip(survey.groups, found.epsilons, strict=True)):
        losses.add_row(str(number + 1), group.name, epsilon_text(epsilon))
    losses.add_row("all", "the whole sheet", epsilon_text(found.epsilon))
    printer.print(losses)
    printer.print("\nHow often a guess would be wrong\n")
    printer.print(
        f"Somebody sees a sheet and believes this beforehand: {known}. Of 100 guesses at the true "
        "answer, this many are wrong; 0 would be no privacy. 'Knows one more': they know one other "
        "true answer of the same person too."
    )
    guesses = table("", "question", ">wrong, sheet", ">wrong, knows one more")
    for number, group in enumerate(survey.groups):
        for one in (one for one in found.questions if one.name in group.questions):
            guesses.add_row(one.name, *_of_100(one))
        guesses.add_row(f"part {number + 1}, at least", *_of_100(found.groups[number]))
    printer.print(guesses)
    if not found.exact:
        printer.print("These are averages over 4,096 invented sheets.")
    printer.print("\nWhat a reported answer says about the true one\n")
    beliefs = table("", "question", "reported", ">believed before", "believed after")
    for name in survey.names:
        labels = survey.cells[name].labels
        for reported, row in zip(labels, found.posteriors[name], strict=True):
            prior = found.priors[name][labels.index(reported)]
            true = ", ".join(f"{a} {p:.3f}" for a, p in zip(labels, row, strict=True))
            beliefs.add_row(name, reported, f"{prior:.3f}", true)
    printer.print(beliefs)
    _print_published(printer, survey, found)


def _of_100(one: Any) -> tuple[str, str]:
    return f"{100 * one.sound_unknown:.0f}", f"{100 * one.sound_known:.0f}"


def _print_published(printer: Any, survey: Questionnaire, found: Measure) -> None:
    """Print the measures of the literature (PSE, REC), and how to read them."""
    printer.print("\nThe figures of the literature\n")
    printer.print(
        "PSE (privacy of a single entry): the chance that a guess from the one randomized answer "
        "is wrong. REC (recoverability): how much of an answer rules between answers give back "
        "once a model is known; I: another true answer is known, II: only the sheet. The "
        "literature calls PSE - REC the privacy that is left. It is not: REC I is always 1, so the "
        "difference is never above 0, however private the answers are. Rely on the parts above."
    )
    columns = (">PSE", ">REC I", ">REC II", ">PSE-REC I", ">PSE-REC II")
    shown = table("", "entry", *columns)
    for number, group in enumerate(survey.groups):
        for one in (one for one in found.questions if one.name in group.questions):
            shown.add_row(one.name, *_figures(one))
        shown.add_row(f"part {number + 1}", *_figures(found.groups[number]), end_section=True)
    printer.print(shown)
    printer.print("A part is as private as its least private entry.")


def _figures(one: Any) -> tuple[str, ...]:
    published = (one.rec_known, one.rec_unknown, one.published_known, one.published_unknown)
    return tuple(f"{number:.3f}" for number in (one.before, *published))


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
