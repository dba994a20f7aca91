"""``discreet survey new``, ``check``, ``form`` and ``size``: design a questionnaire."""

from __future__ import annotations

import math
from importlib import resources
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import make_guarantee_body
from discreet.cli.files import OUTPUT, write_file
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    make_table,
    print_guarantee,
    print_json,
    print_note,
)
from discreet.errors import FormatError
from discreet.files.atomic_writing import error_context

if TYPE_CHECKING:
    from discreet.collection.announcement import AnnouncementTexts
    from discreet.survey.questionnaire import Questionnaire

__all__ = ["check", "form", "format_epsilon", "new", "read_questionnaire", "size"]


def read_questionnaire(path: str) -> Questionnaire:
    """Read a questionnaire file, JSON or YAML."""
    from discreet.survey.questionnaire import Questionnaire

    with error_context(path):
        return Questionnaire.read(path)


def format_epsilon(epsilon: float) -> str:
    """Format an epsilon; "none" if it is infinite."""
    from discreet.privacy.guarantee import format_rounded_up

    return "none" if epsilon == float("inf") else format_rounded_up(epsilon, 4)


@click.command(
    epilog=format_example(
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

    example_text = resources.files("discreet.survey").joinpath("example.yaml").read_text("utf-8")
    if output is None:
        if as_json:
            raise click.UsageError("--json prints a summary; name the file with --output.")
        click.echo(example_text, nl=False)
        return
    questionnaire = Questionnaire.from_yaml(example_text)
    file_suffix = output.lower().rpartition(".")[2]
    if file_suffix not in ("yaml", "yml", "json"):
        raise FormatError(f"{output}: a questionnaire is a .yaml or .json file; choose such a name")
    write_file(output, questionnaire.to_json() if file_suffix == "json" else example_text)
    if as_json:
        print_json({"output": output, "digest": questionnaire.digest})
    else:
        print_note(f"{output}: edit it, then run: discreet survey check {output}")


@click.command(epilog=format_example("discreet survey check questionnaire.yaml"))
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
    questionnaire = read_questionnaire(path)
    if output is not None:
        write_file(output, questionnaire.to_json())
    if as_json:
        print_json({"output": output, **_make_questionnaire_body(questionnaire)})
        return
    printer = make_console()
    group_table = make_table(
        "", "group", "questions", "model", ">theta", ">combinations", ">epsilon"
    )
    for group_index, (group, channel) in enumerate(
        zip(questionnaire.groups, questionnaire.channels, strict=True)
    ):
        group_table.add_row(
            str(group_index + 1),
            group.name,
            group.model,
            f"{float(channel.theta_exact):.4g}",
            f"{math.prod(channel.sizes):,}",
            format_epsilon(questionnaire.epsilons[group_index]),
        )
    printer.print(group_table)
    personal_source = {"device": "drawn by the device", "own": "the respondents' own"}[
        questionnaire.personal
    ]
    printer.print(f"target {questionnaire.schema.target}; personal answers are {personal_source}\n")
    print_guarantee(questionnaire.guarantee)
    printer.print(f"\n{questionnaire.sentence}", soft_wrap=True)
    printer.print(f"{output or path}: {questionnaire.digest}", soft_wrap=True)


def _make_questionnaire_body(questionnaire: Questionnaire) -> dict[str, Any]:
    group_channels = zip(
        questionnaire.groups, questionnaire.channels, questionnaire.epsilons, strict=True
    )
    return {
        "digest": questionnaire.digest,
        "target": questionnaire.schema.target,
        "questions": {
            question_name: list(questionnaire.cells[question_name].labels)
            for question_name in questionnaire.names
        },
        "personal": questionnaire.personal,
        "device": questionnaire.device,
        "groups": [
            {
                **group.to_body(),
                "theta": float(channel.theta_exact),
                "epsilon": epsilon,
            }
            for group, channel, epsilon in group_channels
        ],
        "guarantee": make_guarantee_body(questionnaire.guarantee),
        "sentence": questionnaire.sentence,
    }


@click.command(
    epilog=format_example(
        "discreet survey form questionnaire.yaml -o form.html",
        "discreet survey form questionnaire.yaml --announcement words.yaml --language de \\",
        "    -o bogen.html",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.option("--language", default="en", show_default=True, help="Language of the form: en, de, …")
@click.option(
    "--announcement",
    "words",
    help="Announcement from which translations of questions and answers are taken.",
)
@click.option(
    "--texts", help="JSON file of the form's own texts, for a language that discreet does not have."
)
@click.option("-o", "--output", type=OUTPUT, required=True, help="The .html file to write.")
@json_option
def form(
    path: str, language: str, words: str | None, texts: str | None, output: str, as_json: bool
) -> None:
    """Write a page to print for respondents who draw by hand, with dice or cards.

    The questionnaire must say device: hand or either. What respondents ticked is entered with
    "discreet survey answer --by-hand".
    """
    from discreet.survey.form import FormTexts, load_texts, render_form

    questionnaire = read_questionnaire(path)
    if questionnaire.device == "software":
        raise FormatError(f"{path}: is drawn by software; write device: either to allow dice")
    form_wording = FormTexts(
        language, _read_words(questionnaire, words, language), load_texts(language, texts)
    )
    with error_context(path):
        form_html = render_form(questionnaire, form_wording)
    write_file(output, form_html)
    if as_json:
        print_json({"output": output, "digest": questionnaire.digest})
    else:
        print_note(f"{output}: print one for each person")


def _read_words(
    questionnaire: Questionnaire, path: str | None, language: str
) -> AnnouncementTexts | None:
    """Read the texts of an announcement in one language."""
    if path is None:
        return None
    from discreet.collection.announcement import Announcement

    with error_context(path):
        announcement = Announcement.read(path)
        announcement.check_collection(questionnaire)
        if language not in announcement.words:
            language_list = ", ".join(announcement.words) or "none"
            raise FormatError(
                f"has no words in {language!r}, there are: {language_list}; add them there"
            )
        return announcement.words[language]


@click.command(
    epilog=format_example(
        "discreet survey size questionnaire.yaml --precision 0.02",
        "discreet survey size questionnaire.yaml --respondents 3000",
        "discreet survey size questionnaire.yaml --precision 0.01 'burnout = yes'",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.argument("predicates", metavar="[PREDICATE]...", nargs=-1)
@click.option(
    "--precision", type=float, help="Wanted standard error of every share, as a share such as 0.01."
)
@click.option("--respondents", type=click.IntRange(1, 10**15), help="Number of people expected.")
@json_option
def size(
    path: str,
    predicates: tuple[str, ...],
    precision: float | None,
    respondents: int | None,
    as_json: bool,
) -> None:
    """Find the respondents that a QUESTIONNAIRE needs for a wanted precision, or the reverse.

    The precision is that of all shares of answers, alone and together with the target, or of the
    share of people for whom a PREDICATE holds. It is what every population has at least; real ones
    are often better. It does not say how good a model will be: try that with "discreet survey
    randomize" on invented people.
    """
    from discreet.collection.sample_size import compute_required_respondents
    from discreet.survey.inversion import compute_precision

    if (precision is None) == (respondents is None):
        raise click.UsageError("give --precision or --respondents, one of them")
    questionnaire = read_questionnaire(path)
    with error_context(path):
        if respondents is None:
            assert precision is not None
            worst_error = compute_precision(questionnaire, 1, predicates)[0].standard_error
            respondents = compute_required_respondents(worst_error, precision)
        share_precisions = compute_precision(questionnaire, respondents, predicates)
    epsilon = questionnaire.guarantee.epsilon
    if as_json:
        precision_bodies = [vars(share_precision) for share_precision in share_precisions]
        print_json({"respondents": respondents, "epsilon": epsilon, "precision": precision_bodies})
        return
    table_title = (
        f"{respondents:,} respondents, epsilon {format_epsilon(epsilon)} per person in total"
    )
    precision_table = make_table(table_title, "share of", ">standard error", ">95 % interval")
    for share_precision in share_precisions:
        standard_error = share_precision.standard_error
        precision_table.add_row(
            share_precision.what, f"{100 * standard_error:.2f} %", f"± {196 * standard_error:.1f} %"
        )
    printer = make_console()
    printer.print(precision_table)
    printer.print("At most, in percentage points, whatever the true answers are.")
