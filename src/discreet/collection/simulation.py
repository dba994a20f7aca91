"""Simulate many respondents at once, each randomizing alone and sending one report.

The computation is that of a device, vectorised. It reads raw data, so it runs only where raw data
are available anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.collection.protocol import Collection, CollectionT, EncodedRecords
from discreet.collection.tally import Tally
from discreet.randomness import Random
from discreet.schema.cells import get_columns
from discreet.tables.engines import iter_ordered_batches

__all__ = ["iter_simulated_answers", "simulate_tally", "write_simulated_reports"]


def iter_simulated_answers(
    collection: Collection, records: EncodedRecords, random: Random
) -> Iterator[tuple[int, Integers, Integers]]:
    """Simulate one answer per record; iterate over (question, rows, serialised answers).

    Parameters
    ----------
    collection : Plan or Questionnaire
    records : EncodedRecords
        True records, as ``collection.encode_columns`` makes them.
    random : Random
    """
    asked_questions = collection.draw_questions(len(records), random)
    row_order = np.argsort(asked_questions, kind="stable")
    group_bounds = np.searchsorted(
        asked_questions[row_order], np.arange(len(collection.questions) + 1)
    )
    for question in range(len(collection.questions)):
        row_indices = row_order[group_bounds[question] : group_bounds[question + 1]]
        if len(row_indices):
            yield (
                question,
                row_indices,
                collection.randomize_records(question, records[row_indices], random),
            )


def simulate_tally(
    collection: CollectionT, records: EncodedRecords, random: Random
) -> Tally[CollectionT]:
    """Simulate one report per record and tally them.

    Parameters
    ----------
    collection : Collection
        A plan or a questionnaire.
    records : EncodedRecords
        The records, encoded; see :func:`iter_simulated_answers`.
    random : Random
        The source; a seeded one marks the tally as simulated.
    """
    tally = Tally(collection, simulated=random.simulated)
    for question, _, values in iter_simulated_answers(collection, records, random):
        tally.add_values(question, values)
    if collection.shuffled is not None:  # the anonymiser is simulated, too: one shuffle of all
        tally.batches.add(random.raw(16).tobytes().hex(), tally.reports)
    return tally


def write_simulated_reports(
    collection: Collection,
    data: Any,
    report_file: Any,
    random: Random,
    *,
    progress: Callable[[int], None],
) -> int:
    """Simulate one report per row of a table, append them to a file, and return their number.

    Parameters
    ----------
    collection : Plan or Questionnaire
    data : path or table
        Raw data, as :func:`discreet.tables.open_table` opens them.
    report_file : ReportFile or SheetCsv
    random : Random
    progress : callable
        Called as ``progress(reports done)``.
    """
    report_count = 0
    for batch in iter_ordered_batches(data, collection.names):
        records = collection.encode_columns(get_columns(batch, collection.names))
        for question, rows, values in iter_simulated_answers(collection, records, random):
            report_file.write(question, random.raw(16 * len(rows)).reshape(-1, 16), values)
        report_count += batch.num_rows
        progress(report_count)
    return report_count
