"""The anonymiser's step: reports lose their ids and their order before the collector sees them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from discreet.collection.protocol import Collection
from discreet.collection.report import ALREADY_SHUFFLED, Report
from discreet.collection.shuffle_memory import ShuffleMemory
from discreet.collection.tally import Tally
from discreet.errors import FormatError, PrivacyError
from discreet.randomness import Random

__all__ = ["shuffled"]


def shuffled(
    collection: Collection,
    reports: Iterable[Report | str | bytes],
    random: Random,
    *,
    few: bool = False,
    memory: ShuffleMemory | None = None,
) -> tuple[list[Report], Tally[Collection]]:
    """Return the valid reports in random order, each with a new random id and this batch's mark.

    Reports that the collector would refuse, and repetitions, are left out here: they cannot be
    recognised after this step. So are reports with a batch mark: their senders would be counted
    twice.

    Without ``memory`` nothing is remembered: the same originals, shuffled by two calls, get new ids
    and marks and count as twice as many people, unnoticed. And anyone with the outputs of two calls
    that differ by one report knows that report. Give a ``memory``, which
    refuses reports of an earlier shuffle, as ``discreet local shuffle`` does, or make sure that
    every report goes into one call only.

    Parameters
    ----------
    collection : Plan or Questionnaire
    reports : iterable of reports
        All of one shuffle; they are held in memory.
    random : Random
        The cryptographic source, unless this is a simulation.
    few : bool, default False
        Release them although they are fewer than the guarantee of the shuffle needs.
    memory : ShuffleMemory, optional
        Of this collection: refuses what was in an earlier shuffle, and remembers what is in this
        one before anybody sees the result.

    Returns
    -------
    tuple of (list of Report, Tally)
        The tally says what was left out.
    """
    counted, kept = Tally(collection), []
    for sent in reports:
        report = _parse_report(sent)
        if isinstance(report, Report) and report.batch is not None:
            counted.rejected[ALREADY_SHUFFLED] += 1
        elif counted.add(report).status == "counted":
            assert isinstance(report, Report)
            kept.append(report)
    before = counted.rejected[ALREADY_SHUFFLED]
    if before and not kept:
        raise PrivacyError(
            f"all of these {before:,} {collection.noun}s were shuffled before; pass them on as "
            "they are: shuffled twice they would count as other people"
        )
    stated = collection.shuffled
    if stated is not None and len(kept) < stated.respondents and not few:
        raise PrivacyError(
            f"{len(kept):,} valid {collection.noun}s are fewer than the {stated.respondents:,} in "
            f"which each is to hide; wait for more. To pass them on under the weaker promise, "
            f"epsilon = {collection.guarantee.alone:g}, set allow_fewer=True, or --few on the "
            "command line"
        )
    with nullcontext() if memory is None else memory.passing_on(counted.seen):
        ids = random.raw(16 * len(kept)).reshape(-1, 16)
        order = np.lexsort(ids.T)  # by the new ids, which are independent of the old order
        mark = random.raw(16).tobytes().hex()
        passed = [replace(kept[k], id=ids[k].tobytes().hex(), batch=mark) for k in order]
    return passed, counted


def _parse_report(sent: Report | str | bytes) -> Report | str | bytes:
    """Parse a report; return the text itself if it is not one, for the tally to refuse."""
    try:
        return sent if isinstance(sent, Report) else Report.from_json(sent)
    except FormatError:
        return sent
