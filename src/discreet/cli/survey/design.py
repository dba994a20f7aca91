"""``discreet survey new``, ``check``, ``form`` and ``size``: design a questionnaire."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import promise_body
from discreet.cli.files import OUTPUT, write
from discreet.cli.output import (
    console,
    example,
    json_option,
    note,
    print_json,
    print_promise,
    table,
)
from discreet.errors import FormatError, about

if TYPE_CHECKING:
    from discreet.announcement import Words
    from discreet.survey.questionnaire import Questionnaire

__all__ = ["check", "epsilon_text", "form", "new", "read_questionnaire", "size"]


def read_questionnaire(path: str) -> Questionnaire:
    """Read a questionnaire file, JSON or YAML."""
    from discreet.survey.questionnaire import Questionnaire

    with about(path):
        return Questionnaire.read(path)


def epsilon_text(epsilon: float) -> str:
    """Format an epsilon; "none" if it is infinite."""
    from discreet.privacy import rounded_up

    return "none" if epsilon == float("inf") else rounded_up(epsilon, 4)


@click.command(
    epilog=example(
        "discreet survey new -o questionnaire.yaml",
        "discreet survey check questionnaire.yaml",
    )
)
@click.option(
    "-o", "--output", type=OUTPUT, help="The .yaml or .json file to write; standard output if none."
)
@json_option
def new(output: str | None, as_json: bool) -> None:
    """Write an example: five private questions in two groups, explained line by line.

    Only YAML has comments; a .json file holds the same without them, and with the integers over
    2^64 that a device draws with.
    """
    from discreet.survey.questionnaire import Questionnaire

    text = resources.files("discreet.survey").joinpath("example.yaml").read_text("utf-8")
    if output is None:
        if as_json:
            raise click.UsageError("--json prints a summary; name the file with --output.")
        click.echo(text, nl=False)
        return
    made = Questionnaire.from_yaml(text)
    kind = output.lower().rpartition(".")[2]
    if kind not in ("yaml", "yml", "json"):
        raise FormatError(f"{output}: a questionnaire is a .yaml or .json file; name it so")
    write(output, made.to_json() if kind == "json" else text)
    if as_json:
        print_json({"output": output, "digest": made.digest})
    else:
        note(f"{output}: edit it, then run: discreet survey check {output}")


@click.command(epilog=example("discreet survey check questionnaire.yaml"))
@click.argument("path", metavar="QUESTIONNAIRE")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="Also write it as JSON, with the integers devices draw with.",
)
@json_option
def check(path: str, output: str | None, as_json: bool) -> None:
    """Check a QUESTIONNAIRE and explain what it asks and promises."""
    survey = read_questionnaire(path)
    if output is not None:
        write(output, survey.to_json())
    if as_json:
        print_json({"output": output, **_body(survey)})
        return
    printer = console()
    shown = table("", "group", "questions", "model", ">theta", ">combinations", ">epsilon")
    for number, (group, channel) in enumerate(zip(survey.groups, survey.channels, strict=True)):
        theta, epsilon = float(channel.theta_exact), epsilon_text(survey.epsilons[number])
        combined = f"{_combinations(channel):,}"
        words = (str(number + 1), group.name, group.model, f"{theta:.4g}", combined, epsilon)
        shown.add_row(*words)
    printer.print(shown)
    whose = {"device": "drawn by the device", "own": "the respondents' own"}[survey.personal]
    printer.print(f"target {survey.schema.target}; personal answers are {whose}\n")
    print_promise(survey.guarantee)
    printer.print(f"\n{survey.sentence}", soft_wrap=True)
    printer.print(f"{output or path}: {survey.digest}", soft_wrap=True)


def _combinations(channel: Any) -> int:
    from math import prod

    return prod(channel.sizes)


def _body(survey: Questionnaire) -> dict[str, Any]:
    parts = zip(survey.groups, survey.channels, survey.epsilons, strict=True)
    return {
        "digest": survey.digest,
        "target": survey.schema.target,
        "questions": {name: list(survey.cells[name].labels) for name in survey.names},
        "personal": survey.personal,
        "device": survey.device,
        "groups": [
            {
                **group.to_body(),
                "theta": float(channel.theta_exact),
                "epsilon": epsilon,
            }
            for group, channel, epsilon in parts
        ],
        "guarantee": promise_body(survey.guarantee),
        "sentence": survey.sentence,
    }


@click.command(
    epilog=example(
        "discreet survey form questionnaire.yaml -o form.html",
        "discreet survey form questionnaire.yaml --announcement words.yaml --language de \\",
        "    -o bogen.html",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.option("--language", default="en", show_default=True, help="Language of the form: en, de, …")
@click.option(
    "--announcement", "words", help="Questions and answers in that language, where it has them."
)
@click.option("--texts", help="JSON: the form's own texts in a language that is not here.")
@click.option("-o", "--output", type=OUTPUT, required=True, help="The .html file to write.")
@json_option
def form(
    path: str, language: str, words: str | None, texts: str | None, output: str, as_json: bool
) -> None:
    """Write a page to print for respondents who draw by hand, with dice or cards.

    The questionnaire must say device: hand or either. What respondents ticked is entered with
    "discreet survey answer --by-hand".
    """
    from discreet.survey.form import Wording, form_of, texts_in

    survey = read_questionnaire(path)
    if survey.device == "software":
        raise FormatError(f"{path}: is drawn by software; write device: either to allow dice")
    said = Wording(language, _words(survey, words, language), texts_in(language, texts))
    with about(path):
        page = form_of(survey, said)
    write(output, page)
    if as_json:
        print_json({"output": output, "digest": survey.digest})
    else:
        note(f"{output}: print one for each person")


def _words(survey: Questionnaire, path: str | None, language: str) -> Words | None:
    """Read the texts of an announcement in one language."""
    if path is None:
        return None
    from discreet.announcement import Announcement

    with about(path):
        found = Announcement.read(path)
        found.check(survey)
        if language not in found.words:
            some = ", ".join(found.words) or "none"
            raise FormatError(f"has no words in {language!r}, there are: {some}; add them there")
        return found.words[language]


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
    """Find the respondents that a QUESTIONNAIRE needs for a wanted precision, or the reverse.

    For all shares of answers, alone and together with the target; or for those of PREDICATEs.
    The figures hold for every population, so real ones are often better. They say how precise
    shares are, not how good a model will be: for that, try it with "discreet survey randomize" on
    invented people.
    """
    from discreet.collection.size import respondents_for
    from discreet.survey.inversion import precision_of

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
