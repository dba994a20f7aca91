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
from discreet.privacy.guarantee import format_rounded_up
from discreet.randomness import Random

__all__ = ["shuffle_reports"]


def shuffle_reports(
    collection: Collection,
    reports: Iterable[Report | str | bytes],
    random: Random,
    *,
    allow_fewer: bool = False,
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
    allow_fewer : bool, default False
        Release them although they are fewer than the guarantee of the shuffle needs.
    memory : ShuffleMemory, optional
        Of this collection: refuses what was in an earlier shuffle, and remembers what is in this
        one before anybody sees the result.

    Returns
    -------
    tuple of (list of Report, Tally)
        The tally says what was left out.
    """
    shuffle_tally, valid_reports = Tally(collection), []
    for sent_report in reports:
        try:
            report = (
                sent_report if isinstance(sent_report, Report) else Report.from_json(sent_report)
            )
        except FormatError:
            shuffle_tally.add(sent_report)  # refused, and counted as that
            continue
        if report.batch is not None:
            shuffle_tally.rejected[ALREADY_SHUFFLED] += 1
        elif shuffle_tally.add(report).status == "counted":
            valid_reports.append(report)
    already_shuffled = shuffle_tally.rejected[ALREADY_SHUFFLED]
    if already_shuffled and not valid_reports:
        raise PrivacyError(
            f"all of these {already_shuffled:,} {collection.noun}s were shuffled before; pass "
            "them on as they are: shuffled twice they would count as other people"
        )
    shuffle_promise = collection.shuffled
    if (
        shuffle_promise is not None
        and len(valid_reports) < shuffle_promise.respondents
        and not allow_fewer
    ):
        raise PrivacyError(
            f"{len(valid_reports):,} valid {collection.noun}s are fewer than the "
            f"{shuffle_promise.respondents:,} in which each is to hide; wait for more. To pass "
            "them on under the weaker promise, epsilon = "
            f"{format_rounded_up(collection.guarantee.unshuffled_epsilon)}, set allow_fewer=True, "
            "or --few on the command line"
        )
    with nullcontext() if memory is None else memory.check_and_remember(shuffle_tally.seen):
        new_ids = random.raw(16 * len(valid_reports)).reshape(-1, 16)
        id_order = np.lexsort(new_ids.T)  # by the new ids, which are independent of the old order
        batch_mark = random.raw(16).tobytes().hex()
        shuffled_reports = [
            replace(
                valid_reports[report_index],
                id=new_ids[report_index].tobytes().hex(),
                batch=batch_mark,
            )
            for report_index in id_order
        ]
    return shuffled_reports, shuffle_tally
