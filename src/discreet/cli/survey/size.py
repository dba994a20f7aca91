"""``discreet survey size``: how many respondents a questionnaire needs, before anyone is asked."""

from __future__ import annotations

import click

from discreet.cli.files import about
from discreet.cli.output import console, example, json_option, print_json, table
from discreet.cli.survey.design import epsilon_text, read_questionnaire

__all__ = ["size"]


@click.command(
    epilog=example(
        "discreet survey size questionnaire.yaml --precision 0.02",
        "discreet survey size questionnaire.yaml --respondents 3000",
        "discreet survey size questionnaire.yaml --precision 0.01 'burnout = yes'",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.argument("predicates", metavar="[PREDICATE]...", nargs=-1)
@click.option("--precision", type=float, help="Wanted standard error of every share, as a share.")
@click.option("--respondents", type=click.IntRange(1, 10**15), help="How many are expected.")
@json_option
def size(
    path: str,
    predicates: tuple[str, ...],
    precision: float | None,
    respondents: int | None,
    as_json: bool,
) -> None:
    """From a wanted precision to the number of respondents of a QUESTIONNAIRE, or back.

    Of all shares of answers, alone and together with the target; or of the shares of PREDICATEs.
    The figures hold for every population, so real ones are often better. They say how precise
    shares are, not how good a model will be: for that, try it with "discreet survey randomize" on
    invented people.
    """
    from discreet.collection.size import respondents_for
    from discreet.survey.size import precision_of

    if (precision is None) == (respondents is None):
        raise click.UsageError("give --precision or --respondents, one of them")
    survey = read_questionnaire(path)
    with about(path):
        if respondents is None:
            assert precision is not None
            worst = precision_of(survey, 1, predicates)[0].standard_error
            respondents = respondents_for(worst, precision)
        found = precision_of(survey, respondents, predicates)
    epsilon = survey.guarantee.epsilon
    if as_json:
        shares = [vars(one) for one in found]
        print_json({"respondents": respondents, "epsilon": epsilon, "precision": shares})
        return
    title = f"{respondents:,} respondents, epsilon {epsilon_text(epsilon)} per person in total"
    shown = table(title, "share of", ">standard error", ">95 % interval")
    for one in found:
        error = one.standard_error
        shown.add_row(one.what, f"{100 * error:.2f} %", f"± {196 * error:.1f} %")
    printer = console()
    printer.print(shown)
    printer.print("At most, in percentage points, whatever the true answers are.")
