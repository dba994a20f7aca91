"""``discreet audit``: test a privacy guarantee."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.budget import read_guaranteed_document
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    print_json,
    print_note,
    show_progress,
)
from discreet.errors import SchemaError
from discreet.files.atomic_writing import error_context

if TYPE_CHECKING:
    from discreet.audit import Subject

__all__ = ["audit"]


@dataclass(frozen=True)
class SubjectOptions:
    """Options that describe the subject; None where not given."""

    epsilon: float | None
    delta: float | None
    size: int | None
    schema: str | None
    method: str | None

    def refuse_others(self, subject_text: str, *allowed: str) -> None:
        """Refuse options that the subject does not take, rather than ignore them."""
        for option_name, option_value in vars(self).items():
            if option_value is not None and option_name not in allowed:
                raise click.UsageError(f"--{option_name} does not go with {subject_text}.")


@click.command(
    epilog=format_example(
        "discreet audit plan.json",
        "discreet audit questionnaire.yaml --json",
        "discreet audit ss --epsilon 1 --size 5",
        "discreet audit central --schema people.schema.json --epsilon 1 --method moments",
        "discreet audit manifest.json --seconds 300 --samples 20000",
        "discreet audit mine.py:subject",
    )
)
@click.argument("subject")
@click.option("--epsilon", type=float, help="Epsilon of the mechanism or of CentralNB.")
@click.option("--delta", type=float, help="Delta of CentralNB or discrete-gaussian.")
@click.option(
    "--size",
    type=click.IntRange(1),
    help="Number of values in the domain of a mechanism.  [default: 4]",
)
@click.option("--schema", help="Schema file, for CentralNB.")
@click.option("--method", help="Method of CentralNB.  [default: histogram]")
@click.option(
    "--samples", type=int, default=4000, show_default=True, help="Number of samples of each input."
)
@click.option(
    "--seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds for drawing samples; at least 40 are drawn in any case.",
)
@click.option(
    "--confidence", type=float, default=0.99, show_default=True, help="Confidence of the bound."
)
@click.option(
    "--paths",
    type=int,
    default=50_000,
    show_default=True,
    help="Largest number of paths to enumerate.",
)
@click.option(
    "--processes",
    type=int,
    default=2,
    show_default=True,
    help="Number of processes that draw samples.",
)
@click.option(
    "--statistical", is_flag=True, help="Draw samples even where all paths were enumerated."
)
@json_option
def audit(
    subject: str,
    epsilon: float | None,
    delta: float | None,
    size: int | None,
    schema: str | None,
    method: str | None,
    as_json: bool,
    **effort: Any,
) -> None:
    """Try to break the privacy guarantee of SUBJECT.

    SUBJECT is a plan, a questionnaire or a manifest file; a mechanism by name; the word central,
    for CentralNB with a schema; or FILE.py:NAME (MODULE:NAME), a discreet.audit.Subject or a
    function that makes one, for anything else.

    If a program has finitely many outputs, every path through it is followed and the privacy loss
    is exact. Otherwise outputs of neighbouring inputs are sampled: one half is searched for a
    revealing event, and the other half shows what this event proves, with the stated confidence.
    For a large plan every value, and a missing one, is compared with the first, and all comparisons
    share the time. Finding nothing proves nothing: more samples find smaller defects. The exit code
    is 1 if a guarantee is broken, 2 if nothing was checked.
    """
    from discreet.audit import Effort
    from discreet.audit import audit as run_audit

    audit_effort = Effort(**effort)
    audited_subject = _make_subject(subject, SubjectOptions(epsilon, delta, size, schema, method))
    with show_progress("Auditing", "outputs", as_json) as report_progress:
        audit_result = run_audit(audited_subject, audit_effort, report_progress)
    if as_json:
        print_json(audit_result.to_body())
    else:
        print_note(f"{audit_result.subject}")
        console = make_console()
        shown_verdicts, omitted_count = audit_result.select_notable()
        for verdict in shown_verdicts:
            console.print(f"{verdict.check}: {verdict.sentence}")
            if verdict.note and verdict.way == "exact":
                console.print(f"  ({verdict.note})")
        if omitted_count:
            console.print(f"and {omitted_count} more pairs with no larger bound; --json prints all")
    if audit_result.broken:
        click.get_current_context().exit(1)
    if not audit_result.is_done:
        click.get_current_context().exit(2)


def _make_subject(name: str, stated_options: SubjectOptions) -> Subject:
    from discreet.audit import make_classifier_subject, make_mechanism_subject
    from discreet.audit.named_subjects import import_subject, make_document_subject
    from discreet.schema.schema import Schema

    if name.endswith(".py"):
        raise SchemaError(f"{name}: which name in it? write {name}:NAME")
    if os.path.exists(name):
        stated_options.refuse_others("a file, which states its own promise")
        document = read_guaranteed_document(name)
        with error_context(name):
            return make_document_subject(document)
    if ":" in name:
        stated_options.refuse_others("a subject that states its own promise")
        return import_subject(name)
    if stated_options.epsilon is None:
        missing_reason = (
            "there is no such file" if "." in name or "/" in name else "give its --epsilon"
        )
        raise SchemaError(f"{name}: {missing_reason}")
    if name == "central":
        from discreet.estimators.central import CentralNB

        if stated_options.schema is None:
            raise click.UsageError("central needs --schema, the public description of a table.")
        stated_options.refuse_others("central", "epsilon", "delta", "schema", "method")
        classifier = CentralNB(
            stated_options.epsilon,
            method=stated_options.method or "histogram",  # type: ignore[arg-type]
            schema=Schema.read(stated_options.schema),
            delta=stated_options.delta or 0.0,
        )
        return make_classifier_subject(classifier)
    is_gaussian = name == "discrete-gaussian"
    stated_options.refuse_others(
        "this mechanism", "epsilon", "size", *(["delta"] if is_gaussian else [])
    )
    mechanism_options = {"delta": stated_options.delta or 1e-6} if is_gaussian else {}
    return make_mechanism_subject(
        name,
        stated_options.epsilon,
        4 if stated_options.size is None else stated_options.size,
        **mechanism_options,
    )
