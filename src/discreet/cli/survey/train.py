"""``discreet survey``: the commands shared with ``local``, and ``estimate`` and ``test``."""

from __future__ import annotations

import click

from discreet.cli.collection import QUESTIONNAIRE, answering, read_tally, simulating
from discreet.cli.output import console, example, json_option, print_json
from discreet.cli.tally import shuffling, tallying, training
from discreet.errors import about

__all__ = ["answer", "estimate", "randomize", "shuffle", "tally", "test", "train"]

LEVEL = click.FloatRange(0, 1, min_open=True, max_open=True)

answer = answering(QUESTIONNAIRE)
randomize = simulating(QUESTIONNAIRE)
shuffle = shuffling(QUESTIONNAIRE)
tally = tallying(QUESTIONNAIRE)
train = training(QUESTIONNAIRE)


@click.command(
    epilog=example(
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
    from discreet.survey.inversion import estimate_share

    counted = read_tally(QUESTIONNAIRE, tally)
    found = estimate_share(counted, predicate)
    low, high = found.interval(level)
    if as_json:
        numbers = {
            "share": found.share,
            "unbiased_share": found.unbiased,
            "unbiased_count": found.count,
            "people": found.people,
        }
        spread = {"noise_variance": found.noise, "variance": found.variance}
        print_json({**numbers, **spread, "interval": [low, high], "level": level})
        return
    printer = console()
    printer.print(f"share      {found.share:.4f}   ({level:.0%} interval {low:.4f} to {high:.4f})")
    count = found.share * found.people
    printer.print(f"people     {count:,.1f} of {found.people:,}")
    deviation = found.noise**0.5
    printer.print(f"           ± {deviation:,.1f} by the randomization alone (one deviation)")
    printer.print(f"unbiased   {found.unbiased:.4f}   ({found.count:,.1f} people; may lie outside)")


@click.command(
    epilog=example(
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
    help="Of people who sent no sheet: on how many of their personal answers the model was right.",
)
@json_option
def test(
    model: str, tally: str, level: float, personal_hits: tuple[int, int] | None, as_json: bool
) -> None:
    """Estimate the accuracy of a MODEL on the people of a TALLY, whose sheets are randomized.

    Take people whom the model was not trained on. Nobody sends more than their sheet: how often
    the model is right on made-up answers follows from their public law.
    """
    from discreet.model import NaiveBayesModel
    from discreet.survey.testing import accuracy_on_sheets

    counted = read_tally(QUESTIONNAIRE, tally)
    classifier = NaiveBayesModel.read(model)
    with about(tally):
        found = accuracy_on_sheets(classifier, counted, level, personal_hits=personal_hits)
    low, high = found.interval
    if as_json:
        print_json({**vars(found), "interval": [low, high]})
        return
    printer = console()
    interval = f"({level:.0%} interval {low:.3f} to {high:.3f})"
    printer.print(f"accuracy   {found.accuracy:.3f}   {interval}")
    printer.print(f"unbiased   {found.unbiased:.3f}   (may lie outside 0 to 1)")
    printer.print(f"sheets     {found.people:,}; right on {found.observed:.3f} of them as sent")
