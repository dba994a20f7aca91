"""``discreet survey privacy``: the guarantee in one sentence, and all privacy measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import make_guarantee_body
from discreet.cli.output import format_example, json_option, make_console, make_table, print_json
from discreet.cli.survey.design import format_epsilon, read_questionnaire
from discreet.errors import FormatError
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import RepeatedKeyError, parse_json

if TYPE_CHECKING:
    from discreet.survey.measure import PrivacyMeasure
    from discreet.survey.questionnaire import Questionnaire

__all__ = ["privacy"]


@click.command(
    epilog=format_example(
        "discreet survey privacy questionnaire.yaml",
        "discreet survey privacy questionnaire.yaml --prior prior.json",
        "discreet survey privacy questionnaire.yaml --model model.json",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.option(
    "--prior",
    help='JSON file of what is believed beforehand: {"smokes": [0.8, 0.2], …}.',
)
@click.option("--model", help="Released model, taken as what is believed beforehand.")
@json_option
def privacy(path: str, prior: str | None, model: str | None, as_json: bool) -> None:
    """Say how private the answers to a QUESTIONNAIRE are, in words and in figures.

    Prints three things. First, what everybody may rely on (epsilon), no matter what others know.
    Second, how often somebody would guess a true answer wrongly who sees a sheet and believes
    beforehand what --prior or --model states (all answers equally likely if neither is given).
    Third, two figures of the literature, PSE and REC, with an explanation.
    """
    from discreet.model import NaiveBayesModel
    from discreet.survey.beliefs import Beliefs
    from discreet.survey.measure import measure_privacy

    questionnaire = read_questionnaire(path)
    if prior is not None and model is not None:
        raise click.UsageError("Give --prior or --model: a model is a prior.")
    if model is not None:
        with error_context(model):
            beliefs = Beliefs.from_model(questionnaire, NaiveBayesModel.read(model))
    else:
        with error_context(prior or path):
            beliefs = Beliefs.from_margins(
                questionnaire, None if prior is None else _read_prior(prior)
            )
    privacy_measure = measure_privacy(questionnaire, beliefs)
    if as_json:
        print_json(_make_measure_body(questionnaire, privacy_measure))
    else:
        _print_measure(
            questionnaire, privacy_measure, model or prior or "all answers are equally likely"
        )


def _read_prior(path: str) -> dict[str, Any]:
    try:
        stated_prior = parse_json(read_text(path))
    except RepeatedKeyError as error:
        raise FormatError(f"{path}: {error}; remove one of them") from None
    except (ValueError, RecursionError):
        stated_prior = None
    if not isinstance(stated_prior, dict) or not all(
        isinstance(probabilities, list) for probabilities in stated_prior.values()
    ):
        raise FormatError(f'{path}: a prior is one JSON object: {{"question": [0.8, 0.2], …}}')
    return stated_prior


def _print_measure(
    questionnaire: Questionnaire, privacy_measure: PrivacyMeasure, belief_text: str
) -> None:
    printer = make_console()
    printer.print("What everybody may rely on\n")
    printer.print(questionnaire.sentence, soft_wrap=True)
    loss_table = make_table("", "part", "questions", ">epsilon")
    for group_index, (group, epsilon) in enumerate(
        zip(questionnaire.groups, privacy_measure.epsilons, strict=True)
    ):
        loss_table.add_row(str(group_index + 1), group.name, format_epsilon(epsilon))
    loss_table.add_row("all", "the whole sheet", format_epsilon(privacy_measure.epsilon))
    printer.print(loss_table)
    printer.print("\nHow often a guess would be wrong\n")
    printer.print(
        f"Somebody sees a sheet and believes this beforehand: {belief_text}. Of 100 guesses at the "
        "true answer, this many are wrong; 0 would be no privacy. 'Knows one more': they also "
        "know one other true answer of the same person."
    )
    guess_table = make_table("", "question", ">wrong, sheet", ">wrong, knows one more")
    for group_index, group in enumerate(questionnaire.groups):
        for question_measure in (
            question_measure
            for question_measure in privacy_measure.questions
            if question_measure.name in group.questions
        ):
            guess_table.add_row(question_measure.name, *_format_error_rates(question_measure))
        guess_table.add_row(
            f"part {group_index + 1}, at least",
            *_format_error_rates(privacy_measure.groups[group_index]),
        )
    printer.print(guess_table)
    if not privacy_measure.exact:
        printer.print("These are averages over 4,096 invented sheets.")
    printer.print("\nWhat a reported answer says about the true one\n")
    belief_table = make_table("", "question", "reported", ">believed before", "believed after")
    for question_name in questionnaire.names:
        answer_labels = questionnaire.cells[question_name].labels
        for reported_answer, posterior_row in zip(
            answer_labels, privacy_measure.posteriors[question_name], strict=True
        ):
            prior_share = privacy_measure.priors[question_name][
                answer_labels.index(reported_answer)
            ]
            posterior_text = ", ".join(
                f"{answer_label} {probability:.3f}"
                for answer_label, probability in zip(answer_labels, posterior_row, strict=True)
            )
            belief_table.add_row(
                question_name, reported_answer, f"{prior_share:.3f}", posterior_text
            )
    printer.print(belief_table)
    _print_published(printer, questionnaire, privacy_measure)


def _format_error_rates(entry_measure: Any) -> tuple[str, str]:
    return f"{100 * entry_measure.sound_unknown:.0f}", f"{100 * entry_measure.sound_known:.0f}"


def _print_published(
    printer: Any, questionnaire: Questionnaire, privacy_measure: PrivacyMeasure
) -> None:
    """Print the measures of the literature (PSE, REC), and how to read them."""
    printer.print("\nThe figures of the literature\n")
    printer.print(
        "PSE (privacy of a single entry): the chance that a guess from the one randomized answer "
        "is wrong. REC (recoverability): how much of an answer can be recovered by rules between "
        "answers, once a model is known; I: another true answer is known, II: only the sheet. The "
        "literature calls PSE - REC the privacy that is left. It is not: REC I is always 1, so the "
        "difference is never above 0, however private the answers are. Rely on the parts above."
    )
    figure_names = (">PSE", ">REC I", ">REC II", ">PSE-REC I", ">PSE-REC II")
    figure_table = make_table("", "entry", *figure_names)
    for group_index, group in enumerate(questionnaire.groups):
        for question_measure in (
            question_measure
            for question_measure in privacy_measure.questions
            if question_measure.name in group.questions
        ):
            figure_table.add_row(question_measure.name, *_format_figures(question_measure))
        figure_table.add_row(
            f"part {group_index + 1}",
            *_format_figures(privacy_measure.groups[group_index]),
            end_section=True,
        )
    printer.print(figure_table)
    printer.print("A part is as private as its least private entry.")


def _format_figures(entry_measure: Any) -> tuple[str, ...]:
    published_figures = (
        entry_measure.rec_known,
        entry_measure.rec_unknown,
        entry_measure.published_known,
        entry_measure.published_unknown,
    )
    return tuple(f"{figure:.3f}" for figure in (entry_measure.before, *published_figures))


def _make_measure_body(
    questionnaire: Questionnaire, privacy_measure: PrivacyMeasure
) -> dict[str, Any]:
    return {
        "questions": [question_measure.to_body() for question_measure in privacy_measure.questions],
        "groups": [
            {**group_measure.to_body(), "epsilon": epsilon}
            for group_measure, epsilon in zip(
                privacy_measure.groups, privacy_measure.epsilons, strict=True
            )
        ],
        "epsilon": privacy_measure.epsilon,
        "exact": privacy_measure.exact,
        "posteriors": {
            question_name: {
                reported_answer: dict(
                    zip(
                        questionnaire.cells[question_name].labels,
                        posterior_row.tolist(),
                        strict=True,
                    )
                )
                for reported_answer, posterior_row in zip(
                    questionnaire.cells[question_name].labels, posterior_rows, strict=True
                )
            }
            for question_name, posterior_rows in privacy_measure.posteriors.items()
        },
        "guarantee": make_guarantee_body(questionnaire.guarantee),
        "sentence": questionnaire.sentence,
    }
