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

from discreet.audit.artefact import Leaves, leaves
from discreet.audit.subject import Pair, Release, Subject
from discreet.audit.verdict import Verdict
from discreet.errors import SchemaError
from discreet.randomness import CryptoRandom

__all__ = ["repeated", "require_portable", "samples", "worker"]

FIRST = 200
LEAST = 20
"""Draws compared between two processes: at most, and at least if time is short."""


def samples(
    release: Release,
    pair: Pair,
    most: int,
    workers: Sequence[Executor],
    until: float,
    progress: Callable[[int], None],
) -> tuple[list[Leaves], list[Leaves]]:
    """Draw outputs of both inputs until the limit of samples or time, at least 40."""
    drawn: tuple[list[Leaves], list[Leaves]] = ([], [])
    step = 20
    while len(drawn[0]) < most and (len(drawn[0]) < 40 or time.monotonic() < until):
        begun = time.monotonic()
        step = min(step, most - len(drawn[0]))
        jobs = [
            (side, given, part)
            for side, given in enumerate((pair.first, pair.second))
            for part in _parts(step, max(1, len(workers) // 2))
        ]
        if workers:
            waiting = [
                (side, workers[k % len(workers)].submit(draw, release, given, part))
                for k, (side, given, part) in enumerate(jobs)
            ]
            for side, result in waiting:
                drawn[side].extend(result.result())
        else:
            for side, given, part in jobs:
                drawn[side].extend(draw(release, given, part))
        if time.monotonic() - begun < 0.25:
            step *= 2
        progress(len(drawn[0]) + len(drawn[1]))
    return drawn


def _parts(count: int, among: int) -> list[int]:
    return [count // among + (k < count % among) for k in range(among)]


def draw(release: Release, given: Any, count: int, seconds: float = math.inf) -> list[Leaves]:
    """Draw outputs of one input, as leaves, in a worker; at least MIN_COMPARED_DRAWS of them."""
    random, until = CryptoRandom(), time.monotonic() + seconds
    drawn: list[Leaves] = []
    while len(drawn) < count and (len(drawn) < LEAST or time.monotonic() < until):
        drawn.append(leaves(release(given, random)))
    return drawn


def worker() -> Executor:
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


def repeated(subject: Subject, workers: Sequence[Executor], seconds: float) -> Verdict | None:
    """Find out whether two processes draw the same outputs: a seeded source."""
    given = subject.release, subject.pairs[0].first, FIRST, seconds
    begun = [one.submit(draw, *given) for one in workers[:2]]
    mine, theirs = ([one["whole"] for one in result.result()] for result in begun)
    first = min(len(mine), len(theirs))
    same = [a == b for a, b in combinations(mine, 2)]
    # if draws were independent, all would agree with probability rate^first
    rate = sum(same) / len(same) + 0.15
    if mine[:first] != theirs[:first] or rate >= 1 or first * math.log(rate) > math.log(1e-6):
        return None
    return Verdict(
        "the same input in two processes",
        "statistical",
        subject.epsilon,
        subject.delta,
        found=math.inf,
        broken=True,
        event=f"the first {first} outputs of both are the same: the random source is seeded",
        samples=2 * first,
    )
