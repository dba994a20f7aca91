"""Run an audit: enumerate all outputs where they are finite, draw samples where not.

The samples of a pair of inputs are used in three parts: a quarter fits scores, a quarter chooses
one event, half bounds its epsilon. Only that last half decides, and only one event is tried on it,
so the confidence is what it says; over several pairs the error probability is divided evenly.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from discreet.audit.artefact import Leaves
from discreet.audit.distinguisher import best_event, detectable, lower_bound
from discreet.audit.enumeration import EndlessError, keeps, law, worst
from discreet.audit.sampling import repeated, require_portable, samples, worker
from discreet.audit.subject import Pair, Subject, Walk
from discreet.audit.verdict import SAME, USUAL, Audit, Verdict
from discreet.errors import PrivacyError, SchemaError

__all__ = ["Effort", "audit"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Effort:
    """Limits of an audit: samples, time, paths, and its confidence.

    Parameters
    ----------
    samples : int
        Outputs drawn from each input of a pair, at most.
    seconds : float
        For drawing samples, over all pairs; 40 of each input are drawn however long they take.
    confidence : float
        1 minus the probability that a sound subject is called broken.
    paths : int
        Ways through a program up to which it is enumerated.
    processes : int
        More than one needs a subject that can be sent to another process.
    statistical : bool
        Draw samples even where everything was enumerated.
    """

    samples: int = 4000
    seconds: float = 60.0
    confidence: float = 0.99
    paths: int = 50_000
    processes: int = 1
    statistical: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise PrivacyError(f"confidence is {self.confidence!r}; it must be between 0 and 1")
        if self.samples < 40 or not self.seconds > 0 or self.processes < 1 or self.paths < 0:
            raise PrivacyError(
                f"samples={self.samples}, seconds={self.seconds}, processes={self.processes}, "
                f"paths={self.paths}: give at least 40 samples, a time above 0, one process or "
                "more, and no negative number of paths"
            )


def audit(
    subject: Subject, effort: Effort | None = None, progress: Progress | None = None
) -> Audit:
    """Audit a privacy guarantee.

    Parameters
    ----------
    subject : Subject
        Made by ``of_collection``, ``of_mechanism``, ``of_classifier``, ``of_manifest`` or, for a
        foreign object, ``of_function``.
    effort : Effort, optional
    progress : callable, optional
        Called as ``progress(done, total)`` with the number of outputs.

    Examples
    --------
    >>> from discreet.audit import audit, of_mechanism
    >>> print(audit(of_mechanism("de", epsilon=1.0, size=3)))
    every report of every value: promised 1.00; exactly 1
    """
    effort = effort or Effort()
    verdicts = [_exact(walk, effort.paths) for walk in subject.walks]
    finished = verdicts and all(one.way == "exact" and not one.note for one in verdicts)
    if subject.pairs and (effort.statistical or not finished):
        verdicts += _statistical(subject, effort, progress or (lambda done, total: None))
    return Audit(subject.name, tuple(verdicts))


def _exact(walk: Walk, most: int) -> Verdict:
    verdict = Verdict(walk.check, "exact", walk.epsilon, note=walk.note)
    try:
        laws, walked = _walked(walk, most)
    except EndlessError as error:
        try:
            rows = walk.stated() if walk.stated is not None else []
        except (PrivacyError, SchemaError):  # too large to write out
            rows = []
        if not rows:
            return replace(verdict, way="not done", note=str(error))
        # inputs may have equal names, so they are numbered
        laws, walked = {str(k): dict(enumerate(row)) for k, row in enumerate(rows)}, 0
        verdict = replace(verdict, note="of the channel that the mechanism states, not of its code")
    found = worst(laws)
    return replace(
        verdict,
        found=found.epsilon,
        broken=not keeps(walk.epsilon, found.ratio),
        event=walk.show(found.output),
        pair=(str(found.likelier), str(found.rarer)),
        samples=walked,
    )


def _walked(walk: Walk, most: int) -> tuple[dict[str, Any], int]:
    """Compute the output distribution of every input, and the number of paths."""
    laws: dict[str, Any] = {}
    walked = 0
    for name, given in walk.inputs:

        def run(random: Any, given: Any = given) -> Any:
            nonlocal walked
            walked += 1
            return walk.draw(given, random)

        laws[name] = law(run, most=most - walked)
    return laws, walked


def _statistical(subject: Subject, effort: Effort, progress: Progress) -> list[Verdict]:
    found, total = [], 2 * effort.samples * len(subject.pairs)
    pairs = len(subject.pairs)
    alpha, usual = (1 - effort.confidence) / pairs, (1 - USUAL) / pairs
    if effort.processes > 1:
        require_portable(subject)
    with ExitStack() as stack:
        workers = [stack.enter_context(worker()) for _ in range(effort.processes)]
        if effort.processes == 1:
            workers = []
        elif seeded := repeated(subject, workers, effort.seconds / 5):
            return [replace(seeded, confidence=effort.confidence)]
        begun = time.monotonic()
        for number, pair in enumerate(subject.pairs):
            done = 2 * effort.samples * number
            until = begun + effort.seconds * (number + 1) / len(subject.pairs)
            told = partial(_told, progress, done, total)
            drawn = samples(subject.release, pair, effort.samples, workers, until, told)
            verdict = _compared(subject, pair, drawn, alpha, usual)
            found.append(replace(verdict, confidence=effort.confidence))
    return found


def _told(progress: Progress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


def _failed(drawn: tuple[list[Leaves], list[Leaves]]) -> str:
    """Describe the errors if all runs failed, so that nothing was released or tested."""
    errors = [leaf.get("error") for side in drawn for leaf in side]
    if None in errors:
        return ""
    (usual, _), *others = Counter(errors).most_common()
    return f"{usual}" + (f" or {len(others)} other errors" if others else "")


def _compared(
    subject: Subject,
    pair: Pair,
    drawn: tuple[list[Leaves], list[Leaves]],
    alpha: float,
    usual: float,
) -> Verdict:
    """Fit scores, choose an event and confirm it, each on its own samples."""
    verdict = Verdict(pair.check, "statistical", subject.epsilon, subject.delta)
    quarter = len(drawn[0]) // 4
    fit, choose, confirm = (
        (drawn[0][part], drawn[1][part])
        for part in (slice(quarter), slice(quarter, 2 * quarter), slice(2 * quarter, None))
    )
    verdict = replace(verdict, samples=2 * len(drawn[0]))
    failed = _failed(drawn)
    not_done = replace(verdict, way="not done", note=f"every run ended with {failed}")
    event = best_event(fit, choose, subject.delta)
    if event is None:
        return not_done if failed else replace(verdict, event=SAME)
    seen, other = event.count(confirm[0]), event.count(confirm[1])
    names = (pair.one, pair.other)
    if event.swapped:
        seen, other, names = other, seen, names[::-1]
    size, delta = len(confirm[0]), subject.delta
    least, also = (float(lower_bound(seen, other, size, one, delta)) for one in (alpha, usual))
    if failed and least <= subject.epsilon:  # errors may be the event
        return not_done
    parts = subject.shared
    return replace(
        verdict,
        found=least,
        usual=also,
        detects=detectable(size, alpha, subject.epsilon, delta, parts) if parts else 0.0,
        broken=least > subject.epsilon,
        event=f"{event.words} ({seen} against {other} times of {size})",
        pair=names,
    )
