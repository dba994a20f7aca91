"""``discreet audit``: test a privacy guarantee."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.budget import read_promising
from discreet.cli.output import console, example, json_option, note, print_json, progress
from discreet.errors import DiscreetError, FormatError, SchemaError, about

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.audit import Subject, Verdict

__all__ = ["audit"]

MAX_SOUND_PAIRS = 8
"""Most pairs of inputs without a violation that are printed one by one."""


@dataclass(frozen=True)
class Stated:
    """Options that describe the subject; None where not given."""

    epsilon: float | None
    delta: float | None
    size: int | None
    schema: str | None
    method: str | None

    def only(self, what: str, *allowed: str) -> None:
        """Refuse options that the subject does not take, rather than ignore them."""
        for name, value in vars(self).items():
            if value is not None and name not in allowed:
                raise click.UsageError(f"--{name} does not go with {what}.")


@click.command(
    epilog=example(
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
    from discreet.audit import audit as run

    asked = Effort(**effort)
    found_subject = _subject(subject, Stated(epsilon, delta, size, schema, method))
    with progress("Auditing", "outputs", as_json) as advance:
        found = run(found_subject, asked, advance)
    if as_json:
        print_json(found.to_body())
    else:
        note(f"{found.subject}")
        shown, omitted = _abridge(found.verdicts)
        for one in shown:
            console().print(f"{one.check}: {one.sentence}")
            if one.note and one.way == "exact":
                console().print(f"  ({one.note})")
        if omitted:
            console().print(f"and {omitted} more pairs with no larger bound; --json prints all")
    if found.broken:
        click.get_current_context().exit(1)
    if not found.done:
        click.get_current_context().exit(2)


def _abridge(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], int]:
    """Select the verdicts to print (of many sound pairs, the worst) and count the others."""
    sound = [one for one in verdicts if one.way == "statistical" and not one.broken]
    if len(sound) <= MAX_SOUND_PAIRS:
        return list(verdicts), 0
    worst = max(sound, key=lambda one: one.found)
    shown = [one for one in verdicts if one not in sound] + [worst]
    return shown, len(sound) - 1


def _subject(name: str, stated: Stated) -> Subject:
    from discreet.audit import of_classifier, of_mechanism
    from discreet.schema import Schema

    if name.endswith(".py"):
        raise SchemaError(f"{name}: which name in it? write {name}:NAME")
    if os.path.exists(name):
        stated.only("a file, which states its own promise")
        return _of_file(name)
    if ":" in name:
        stated.only("a subject that states its own promise")
        return _foreign(name)
    if stated.epsilon is None:
        what = "there is no such file" if "." in name or "/" in name else "give its --epsilon"
        raise SchemaError(f"{name}: {what}")
    if name == "central":
        from discreet.estimators.central import CentralNB

        if stated.schema is None:
            raise click.UsageError("central needs --schema, the public description of a table.")
        stated.only("central", "epsilon", "delta", "schema", "method")
        options: dict[str, Any] = {"method": stated.method or "histogram"}
        options |= {"schema": Schema.read(stated.schema), "delta": stated.delta or 0.0}
        return of_classifier(CentralNB(stated.epsilon, **options))
    gaussian = name == "discrete-gaussian"
    stated.only("this mechanism", "epsilon", "size", *(["delta"] if gaussian else []))
    more = {"delta": stated.delta or 1e-6} if gaussian else {}
    return of_mechanism(name, stated.epsilon, 4 if stated.size is None else stated.size, **more)


def _of_file(path: str) -> Subject:
    from discreet.audit import of_collection, of_manifest

    found = read_promising(path)
    with about(path):
        if hasattr(found, "questions"):
            return of_collection(found)
        if hasattr(found, "providers"):
            return of_manifest(found)
        raise FormatError(
            "a model is one draw and cannot be audited; audit how it was made: "
            "discreet audit central --schema FILE --epsilon NUMBER"
        )


def _foreign(name: str) -> Subject:
    """Import a subject from a file or module of the user."""
    from importlib import import_module

    from discreet.audit import Subject

    place, _, member = name.rpartition(":")
    if place.endswith(".py"):
        if not os.path.exists(place):
            raise FormatError(f"{place}: there is no such file")
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
        place = os.path.basename(place).removesuffix(".py")
    try:  # an error in their code must not exit with the code of a violated guarantee
        module = import_module(place)
        if not hasattr(module, member):
            raise SchemaError(f"{name}: {place} has no {member!r}; write a name that it defines")
        made: Any = getattr(module, member)
        if callable(made) and not isinstance(made, Subject) and _needs_nothing(made):
            made = made()
    except (DiscreetError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise SchemaError(
            f"{name}: {type(error).__name__}: {error}; run {place} by itself first"
        ) from None
    if not isinstance(made, Subject):
        raise SchemaError(
            f"{name} is not a discreet.audit.Subject, nor a function that makes one; see "
            "of_function and of_classifier in discreet.audit"
        )
    return made


def _needs_nothing(function: Any) -> bool:
    """Return whether a function can be called without arguments."""
    try:
        signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True
