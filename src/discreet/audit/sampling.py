"""Draw outputs of a subject, in this process or in worker processes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler
from typing import Any

from discreet.audit.artefact import Leaves, extract_leaves
from discreet.audit.subject import Pair, ReleaseProgram, Subject
from discreet.audit.verdict import Verdict
from discreet.errors import SchemaError
from discreet.randomness import CryptoRandom

__all__ = ["draw_samples", "find_repetition", "require_portable", "start_worker"]

MAX_COMPARED_DRAWS = 200
"""Draws of two processes that are compared, at most."""
MIN_COMPARED_DRAWS = 20
"""Draws of two processes that are compared even if time is short."""


def draw_samples(
    release: ReleaseProgram,
    pair: Pair,
    max_samples: int,
    workers: Sequence[Executor],
    deadline: float,
    progress: Callable[[int], None],
) -> tuple[list[Leaves], list[Leaves]]:
    """Draw outputs of both inputs until the limit of samples or time, at least 40."""
    side_samples: tuple[list[Leaves], list[Leaves]] = ([], [])
    step_size = 20
    while len(side_samples[0]) < max_samples and (
        len(side_samples[0]) < 40 or time.monotonic() < deadline
    ):
        start_time = time.monotonic()
        step_size = min(step_size, max_samples - len(side_samples[0]))
        draw_jobs = [
            (side, side_input, draw_count)
            for side, side_input in enumerate((pair.first, pair.second))
            for draw_count in _split_count(step_size, max(1, len(workers) // 2))
        ]
        if workers:
            pending_jobs = [
                (
                    side,
                    workers[job_number % len(workers)].submit(
                        draw_outputs, release, side_input, draw_count
                    ),
                )
                for job_number, (side, side_input, draw_count) in enumerate(draw_jobs)
            ]
            for side, future in pending_jobs:
                side_samples[side].extend(future.result())
        else:
            for side, side_input, draw_count in draw_jobs:
                side_samples[side].extend(draw_outputs(release, side_input, draw_count))
        if time.monotonic() - start_time < 0.25:
            step_size *= 2
        progress(len(side_samples[0]) + len(side_samples[1]))
    return side_samples


def _split_count(count: int, piece_count: int) -> list[int]:
    return [
        count // piece_count + (piece_index < count % piece_count)
        for piece_index in range(piece_count)
    ]


def draw_outputs(
    release: ReleaseProgram, program_input: Any, count: int, seconds: float = math.inf
) -> list[Leaves]:
    """Draw outputs of one input, as leaves, in a worker; at least MIN_COMPARED_DRAWS of them."""
    random, deadline = CryptoRandom(), time.monotonic() + seconds
    outputs: list[Leaves] = []
    while len(outputs) < count and (
        len(outputs) < MIN_COMPARED_DRAWS or time.monotonic() < deadline
    ):
        outputs.append(extract_leaves(release(program_input, random)))
    return outputs


def start_worker() -> Executor:
    # spawned, not forked: reveals generators that start in the same state everywhere
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def require_portable(subject: Subject) -> None:
    """Require that the subject can be sent to another process."""
    try:
        ForkingPickler.dumps((subject.release, subject.pairs))
    except Exception as error:  # objects may raise any error when pickled
        raise SchemaError(
            f"{subject.name} cannot be sent to another process ({error}); define it at the top "
            "of a module, or use one process"
        ) from None


def find_repetition(
    subject: Subject, workers: Sequence[Executor], seconds: float
) -> Verdict | None:
    """Find out whether two processes draw the same outputs: a seeded source."""
    draw_arguments = subject.release, subject.pairs[0].first, MAX_COMPARED_DRAWS, seconds
    futures = [executor.submit(draw_outputs, *draw_arguments) for executor in workers[:2]]
    first_outputs, second_outputs = (
        [output_leaves["whole"] for output_leaves in future.result()] for future in futures
    )
    compared_count = min(len(first_outputs), len(second_outputs))
    is_equal = [
        first_output == second_output
        for first_output, second_output in combinations(first_outputs, 2)
    ]
    # if draws were independent, all would agree with probability rate^first
    equal_rate = sum(is_equal) / len(is_equal) + 0.15
    if (
        first_outputs[:compared_count] != second_outputs[:compared_count]
        or equal_rate >= 1
        or compared_count * math.log(equal_rate) > math.log(1e-6)
    ):
        return None
    return Verdict(
        "the same input in two processes",
        "statistical",
        subject.epsilon,
        subject.delta,
        found=math.inf,
        broken=True,
        event=f"the first {compared_count} outputs of both are the same: "
        "the random source is seeded",
        samples=2 * compared_count,
    )
