"""``discreet audit``: test a privacy guarantee."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from inspect import signature
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
from discreet.errors import DiscreetError, FormatError, SchemaError, error_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.audit import Subject, Verdict

__all__ = ["audit"]

MAX_SOUND_PAIRS = 8
"""Most pairs of inputs without a violation that are printed one by one."""


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
    "--size", type=click.IntRange(1), help="Values in the domain of a mechanism.  [default: 4]"
)
@click.option("--schema", help="The public description of a table, for CentralNB.")
@click.option("--method", help="Method of CentralNB.  [default: histogram]")
@click.option("--samples", type=int, default=4000, show_default=True, help="Samples of each input.")
@click.option(
    "--seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Time for drawing samples; 40 are drawn in any case.",
)
@click.option(
    "--confidence", type=float, default=0.99, show_default=True, help="Confidence of the bound."
)
@click.option(
    "--paths", type=int, default=50_000, show_default=True, help="Most paths to enumerate."
)
@click.option(
    "--processes", type=int, default=2, show_default=True, help="Processes that draw samples."
)
@click.option("--statistical", is_flag=True, help="Draw samples even where all was enumerated.")
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
    """Try to break the promise of SUBJECT.

    SUBJECT is a plan, a questionnaire or a manifest file; a mechanism by name; the word central,
    for CentralNB with a schema; or FILE.py:NAME (MODULE:NAME), a discreet.audit.Subject or a
    function that makes one, for anything else.

    Where outputs are finite, every way through the program is walked: the loss is exact. Otherwise
    outputs of neighbouring inputs are drawn, an event is searched on one half, and what it proves
    is computed on the other, with the stated confidence. Of a large plan every value and every
    missing one is compared with the first, and all comparisons share the time. Finding nothing
    proves nothing: more samples find smaller defects. The exit code is 1 if a promise is broken, 2
    if nothing was checked.
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
        shown_verdicts, omitted_count = _filter_verdicts(audit_result.verdicts)
        for verdict in shown_verdicts:
            make_console().print(f"{verdict.check}: {verdict.sentence}")
            if verdict.note and verdict.way == "exact":
                make_console().print(f"  ({verdict.note})")
        if omitted_count:
            make_console().print(
                f"and {omitted_count} more pairs with no larger bound; --json prints all"
            )
    if audit_result.broken:
        click.get_current_context().exit(1)
    if not audit_result.is_done:
        click.get_current_context().exit(2)


def _filter_verdicts(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], int]:
    """Select the verdicts to print (of many sound pairs, the worst) and count the others."""
    sound_verdicts = [
        verdict for verdict in verdicts if verdict.way == "statistical" and not verdict.broken
    ]
    if len(sound_verdicts) <= MAX_SOUND_PAIRS:
        return list(verdicts), 0
    worst_verdict = max(sound_verdicts, key=lambda verdict: verdict.found)
    shown_verdicts = [verdict for verdict in verdicts if verdict not in sound_verdicts] + [
        worst_verdict
    ]
    return shown_verdicts, len(sound_verdicts) - 1


def _make_subject(name: str, stated_options: SubjectOptions) -> Subject:
    from discreet.audit import make_classifier_subject, make_mechanism_subject
    from discreet.schema.schema import Schema

    if name.endswith(".py"):
        raise SchemaError(f"{name}: which name in it? write {name}:NAME")
    if os.path.exists(name):
        stated_options.refuse_others("a file, which states its own promise")
        return _read_subject(name)
    if ":" in name:
        stated_options.refuse_others("a subject that states its own promise")
        return _import_subject(name)
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
        classifier_options: dict[str, Any] = {"method": stated_options.method or "histogram"}
        classifier_options |= {
            "schema": Schema.read(stated_options.schema),
            "delta": stated_options.delta or 0.0,
        }
        return make_classifier_subject(CentralNB(stated_options.epsilon, **classifier_options))
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


def _read_subject(path: str) -> Subject:
    from discreet.audit import make_collection_subject, make_manifest_subject

    document = read_guaranteed_document(path)
    with error_context(path):
        if hasattr(document, "questions"):
            return make_collection_subject(document)
        if hasattr(document, "providers"):
            return make_manifest_subject(document)
        raise FormatError(
            "a model is one draw and cannot be audited; audit how it was made: "
            "discreet audit central --schema FILE --epsilon NUMBER"
        )


def _import_subject(name: str) -> Subject:
    """Import a subject from a file or module of the user."""
    from importlib import import_module

    from discreet.audit import Subject

    module_name, _, member_name = name.rpartition(":")
    if module_name.endswith(".py"):
        if not os.path.exists(module_name):
            raise FormatError(f"{module_name}: there is no such file")
        sys.path.insert(0, os.path.dirname(os.path.abspath(module_name)))
        module_name = os.path.basename(module_name).removesuffix(".py")
    try:  # an error in their code must not exit with the code of a violated guarantee
        module = import_module(module_name)
        if not hasattr(module, member_name):
            raise SchemaError(
                f"{name}: {module_name} has no {member_name!r}; write a name that it defines"
            )
        candidate: Any = getattr(module, member_name)
        if (
            callable(candidate)
            and not isinstance(candidate, Subject)
            and _can_call_without_arguments(candidate)
        ):
            candidate = candidate()
    except (DiscreetError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise SchemaError(
            f"{name}: {type(error).__name__}: {error}; run {module_name} by itself first"
        ) from None
    if not isinstance(candidate, Subject):
        raise SchemaError(
            f"{name} is not a discreet.audit.Subject, nor a function that makes one; see "
            "of_function and of_classifier in discreet.audit"
        )
    return candidate


def _can_call_without_arguments(function: Any) -> bool:
    """Return whether a function can be called without arguments."""
    try:
        signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True
