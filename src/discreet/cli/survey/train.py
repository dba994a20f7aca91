"""``discreet survey``: the commands shared with ``local``, and ``estimate`` and ``test``."""

from __future__ import annotations

import click

from discreet.cli.collection import (
    QUESTIONNAIRE,
    make_answer_command,
    make_simulate_command,
)
from discreet.cli.output import format_example, json_option, make_console, print_json
from discreet.cli.tally import make_shuffle_command, make_tally_command, make_train_command
from discreet.files.atomic_writing import error_context

__all__ = ["answer", "estimate", "randomize", "shuffle", "tally", "test", "train"]

LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)

answer = make_answer_command(
    QUESTIONNAIRE,
    click.option(
        "--personal",
        help="JSON file of the person's own answers to the personal questions, if "
        "the questionnaire asks for them.",
    ),
    click.option(
        "--by-hand",
        is_flag=True,
        help="RECORD holds what was ticked on paper, after a draw by hand.",
    ),
)
randomize = make_simulate_command(QUESTIONNAIRE)
shuffle = make_shuffle_command(QUESTIONNAIRE)
tally = make_tally_command(QUESTIONNAIRE)
train = make_train_command(QUESTIONNAIRE)


@click.command(
    epilog=format_example(
        "discreet survey estimate tally.json 'smokes = yes'",
        "discreet survey estimate tally.json 'sleep != well and not (overtime = no)'",
    )
)
@click.argument("tally")
@click.argument("predicate")
@click.option(
    "--level",
    type=LEVEL,
    default=0.95,
    show_default=True,
    help="Confidence level of the interval.",
)
@json_option
def estimate(tally: str, predicate: str, level: float, as_json: bool) -> None:
    """Estimate for how many people of a TALLY a logical PREDICATE over their answers holds.

    Compare a question with an answer by =, != or in (…); join by and, or, not and parentheses;
    quote names and answers that have spaces. Groups may be mixed freely.
    """
    from discreet.collection.ingest import read_tally
    from discreet.survey.inversion import estimate_share

    sheet_tally = read_tally(QUESTIONNAIRE.kind, tally)
    share_estimate = estimate_share(sheet_tally, predicate)
    lower_bound, upper_bound = share_estimate.interval(level)
    if as_json:
        estimate_body = {
            "share": share_estimate.share,
            "unbiased_share": share_estimate.unbiased,
            "unbiased_count": share_estimate.count,
            "people": share_estimate.people,
        }
        variance_body = {
            "noise_variance": share_estimate.noise_variance,
            "variance": share_estimate.variance,
        }
        print_json(
            {
                **estimate_body,
                **variance_body,
                "interval": [lower_bound, upper_bound],
                "level": level,
            }
        )
        return
    printer = make_console()
    printer.print(
        f"share      {share_estimate.share:.4f}   ({level:.0%} interval {lower_bound:.4f} to "
        f"{upper_bound:.4f})"
    )
    people_estimate = share_estimate.share * share_estimate.people
    printer.print(f"people     {people_estimate:,.1f} of {share_estimate.people:,}")
    noise_std = share_estimate.noise_variance**0.5
    printer.print(f"           ± {noise_std:,.1f} by the randomization alone (one deviation)")
    printer.print(
        f"unbiased   {share_estimate.unbiased:.4f}   ({share_estimate.count:,.1f} people; may be "
        "outside)"
    )


@click.command(
    epilog=format_example(
        "discreet survey test model.json others-tally.json",
    )
)
@click.argument("model")
@click.argument("tally")
@click.option(
    "--level",
    type=LEVEL,
    default=0.95,
    show_default=True,
    help="Confidence level of the interval.",
)
@click.option(
    "--personal-hits",
    type=(int, int),
    metavar="HITS PEOPLE",
    help="Of PEOPLE who sent no sheet, the number on whose personal answers the model was right.",
)
@json_option
def test(
    model: str, tally: str, level: float, personal_hits: tuple[int, int] | None, as_json: bool
) -> None:
    """Estimate the accuracy of a MODEL on the people of a TALLY, whose sheets are randomized.

    Use people on whom the model was not trained. Nobody sends more than their sheet: how often the
    model is right on made-up answers follows from the public law of these answers.
    """
    from discreet.collection.ingest import read_tally
    from discreet.model import NaiveBayesModel
    from discreet.survey.testing import estimate_sheet_accuracy

    sheet_tally = read_tally(QUESTIONNAIRE.kind, tally)
    classifier = NaiveBayesModel.read(model)
    with error_context(tally):
        accuracy_estimate = estimate_sheet_accuracy(
            classifier, sheet_tally, level, personal_hits=personal_hits
        )
    lower_bound, upper_bound = accuracy_estimate.interval
    if as_json:
        print_json({**vars(accuracy_estimate), "interval": [lower_bound, upper_bound]})
        return
    printer = make_console()
    interval_text = f"({level:.0%} interval {lower_bound:.3f} to {upper_bound:.3f})"
    printer.print(f"accuracy   {accuracy_estimate.accuracy:.3f}   {interval_text}")
    printer.print(f"unbiased   {accuracy_estimate.unbiased:.3f}   (may be outside 0 to 1)")
    printer.print(
        f"sheets     {accuracy_estimate.people:,}; right on {accuracy_estimate.observed:.3f} of "
        "them as sent"
    )
