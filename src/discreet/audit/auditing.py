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
from discreet.audit.distinguisher import choose_event, compute_detectable_loss, compute_lower_bound
from discreet.audit.enumeration import (
    EndlessError,
    compute_law,
    find_worst_ratio,
    is_within_epsilon,
)
from discreet.audit.sampling import draw_samples, find_repetition, require_portable, start_worker
from discreet.audit.subject import EnumerableCheck, Pair, Subject
from discreet.audit.verdict import REPORTED_CONFIDENCE, SAME_OUTPUTS, Audit, Verdict
from discreet.errors import PrivacyError, SchemaError

__all__ = ["Effort", "audit"]

ProgressCallback = Callable[[int, int], None]


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
    subject: Subject, effort: Effort | None = None, progress: ProgressCallback | None = None
) -> Audit:
    """Audit a privacy guarantee.

    Parameters
    ----------
    subject : Subject
        Made by ``make_collection_subject``, ``make_mechanism_subject``,
        ``make_classifier_subject``, ``make_manifest_subject`` or, for a foreign object,
        ``make_function_subject``.
    effort : Effort, optional
    progress : callable, optional
        Called as ``progress(done, total)`` with the number of outputs.

    Examples
    --------
    >>> from discreet.audit import audit, make_mechanism_subject
    >>> print(audit(make_mechanism_subject("de", epsilon=1.0, size=3)))
    every report of every value: promised 1.00; exactly 1
    """
    effort = effort or Effort()
    verdicts = [_check_exactly(walk, effort.paths) for walk in subject.checks]
    is_finished = verdicts and all(
        verdict.way == "exact" and not verdict.note for verdict in verdicts
    )
    if subject.pairs and (effort.statistical or not is_finished):
        verdicts += _check_statistically(subject, effort, progress or (lambda done, total: None))
    return Audit(subject.name, tuple(verdicts))


def _check_exactly(walk: EnumerableCheck, max_paths: int) -> Verdict:
    verdict = Verdict(walk.check, "exact", walk.epsilon, note=walk.note)
    try:
        laws, path_count = _compute_laws(walk, max_paths)
    except EndlessError as error:
        try:
            channel_rows = walk.stated_channel() if walk.stated_channel is not None else []
        except (PrivacyError, SchemaError):  # too large to write out
            channel_rows = []
        if not channel_rows:
            return replace(verdict, way="not done", note=str(error))
        # inputs may have equal names, so they are numbered
        laws = {
            str(input_number): dict(enumerate(channel_row))
            for input_number, channel_row in enumerate(channel_rows)
        }
        path_count = 0
        verdict = replace(verdict, note="of the channel that the mechanism states, not of its code")
    worst_ratio = find_worst_ratio(laws)
    return replace(
        verdict,
        found=worst_ratio.epsilon,
        broken=not is_within_epsilon(walk.epsilon, worst_ratio.ratio),
        event=walk.describe_output(worst_ratio.output),
        pair=(str(worst_ratio.likelier_input), str(worst_ratio.rarer_input)),
        samples=path_count,
    )


def _compute_laws(walk: EnumerableCheck, max_paths: int) -> tuple[dict[str, Any], int]:
    """Compute the output distribution of every input, and the number of paths."""
    laws: dict[str, Any] = {}
    path_count = 0
    for name, program_input in walk.inputs:

        def run(random: Any, program_input: Any = program_input) -> Any:
            nonlocal path_count
            path_count += 1
            return walk.draw_output(program_input, random)

        laws[name] = compute_law(run, max_paths=max_paths - path_count)
    return laws, path_count


def _check_statistically(
    subject: Subject, effort: Effort, progress: ProgressCallback
) -> list[Verdict]:
    verdicts: list[Verdict] = []
    pair_count = len(subject.pairs)
    total_outputs = 2 * effort.samples * pair_count
    pair_alpha = (1 - effort.confidence) / pair_count
    reported_alpha = (1 - REPORTED_CONFIDENCE) / pair_count
    if effort.processes > 1:
        require_portable(subject)
    with ExitStack() as exit_stack:
        worker_count = effort.processes if effort.processes > 1 else 0
        workers = [exit_stack.enter_context(start_worker()) for _ in range(worker_count)]
        if workers and (seeded := find_repetition(subject, workers, effort.seconds / 5)):
            return [replace(seeded, confidence=effort.confidence)]
        start_time = time.monotonic()
        for pair_number, pair in enumerate(subject.pairs):
            outputs_before = 2 * effort.samples * pair_number
            deadline = start_time + effort.seconds * (pair_number + 1) / pair_count
            report_pair = partial(_report_progress, progress, outputs_before, total_outputs)
            pair_samples = draw_samples(
                subject.release, pair, effort.samples, workers, deadline, report_pair
            )
            verdict = _compare_samples(subject, pair, pair_samples, pair_alpha, reported_alpha)
            verdicts.append(replace(verdict, confidence=effort.confidence))
    return verdicts


def _report_progress(
    progress: ProgressCallback, outputs_before: int, total_outputs: int, outputs_done: int
) -> None:
    progress(outputs_before + outputs_done, total_outputs)


def _describe_failures(pair_samples: tuple[list[Leaves], list[Leaves]]) -> str:
    """Describe the errors if all runs failed, so that nothing was released or tested."""
    errors = [artefact_leaves.get("error") for side in pair_samples for artefact_leaves in side]
    if None in errors:
        return ""
    (commonest_error, _), *other_errors = Counter(errors).most_common()
    return f"{commonest_error}" + (f" or {len(other_errors)} other errors" if other_errors else "")


def _compare_samples(
    subject: Subject,
    pair: Pair,
    pair_samples: tuple[list[Leaves], list[Leaves]],
    alpha: float,
    reported_alpha: float,
) -> Verdict:
    """Fit scores, choose an event and confirm it, each on its own samples."""
    quarter_size = len(pair_samples[0]) // 4
    fit_samples, choose_samples, confirm_samples = (
        (pair_samples[0][start:end], pair_samples[1][start:end])
        for start, end in (
            (0, quarter_size),
            (quarter_size, 2 * quarter_size),
            (2 * quarter_size, None),
        )
    )
    verdict = Verdict(
        pair.check,
        "statistical",
        subject.epsilon,
        subject.delta,
        samples=2 * len(pair_samples[0]),
    )
    failure_text = _describe_failures(pair_samples)
    not_done = replace(verdict, way="not done", note=f"every run ended with {failure_text}")
    event = choose_event(fit_samples, choose_samples, subject.delta)
    if event is None:
        return not_done if failure_text else replace(verdict, event=SAME_OUTPUTS)
    first_count, second_count = event.count(confirm_samples[0]), event.count(confirm_samples[1])
    input_names = (pair.first_name, pair.second_name)
    if event.swapped:
        first_count, second_count, input_names = second_count, first_count, input_names[::-1]
    sample_count, delta = len(confirm_samples[0]), subject.delta
    epsilon_bound, reported_bound = (
        float(compute_lower_bound(first_count, second_count, sample_count, error, delta))
        for error in (alpha, reported_alpha)
    )
    if failure_text and epsilon_bound <= subject.epsilon:  # errors may be the event
        return not_done
    noise_shares = subject.shared
    return replace(
        verdict,
        found=epsilon_bound,
        usual=reported_bound,
        detects=compute_detectable_loss(sample_count, alpha, subject.epsilon, delta, noise_shares)
        if noise_shares
        else 0.0,
        broken=epsilon_bound > subject.epsilon,
        event=f"{event.description} ({first_count} against {second_count} times of {sample_count})",
        pair=input_names,
    )
