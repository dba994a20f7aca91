"""Tally Parquet files of reports with an engine, in bounded memory.

A file has the columns ``id`` (16 bytes), ``collection`` (text), ``question`` (int32), ``value``
(list of int64) and, where an anonymiser shuffled them, ``batch`` (16 bytes). The engine drops what
is misshapen or answers another collection, finds the ids that occur twice, and groups the answers
of each question where they can coincide; the rest streams by, on Spark through its workers. The
integers are those of :meth:`Tally.add`, one report after the other.

Where one id has different answers, :meth:`Tally.add` keeps the first. A table has no row order, so
the smallest valid (question, value, batch) is kept, comparing numbers from left to right.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from discreet.collection.answer_batches import (
    AnswerBatch,
    iter_partial_sums,
    make_comparable_ids,
    read_batches,
)
from discreet.collection.parquet_reports import BATCH_COLUMN, open_reports
from discreet.collection.protocol import CollectionT
from discreet.collection.tally import ID_SAMPLE_SIZE, Tally
from discreet.tables.engines import fetch_arrow, handle_read_errors

__all__ = ["tally_parquet"]

ProgressCallback = Callable[[int, int], None]

MAX_INTEGERS_PER_BATCH = 1 << 20
"""Integers in one batch; the number of rows follows from the width of a report."""


def tally_parquet(
    collection: CollectionT, source: Any, *, progress: ProgressCallback | None = None
) -> Tally[CollectionT]:
    """Tally reports without moving them out of their engine.

    Parameters
    ----------
    collection : Plan or Questionnaire
    source : path, glob, list of these, or table
        Parquet files, or anything :func:`discreet.tables.open_table` opens: ``"spark:path"``, a
        Spark data frame, an ibis or Arrow table with the four columns. Files in one list count as
        one delivery: what is in two of them counts once.
    progress : callable, optional
        Called as ``progress(reports done, reports in all)``.

    Returns
    -------
    Tally
        Without ``seen``: the ids stay with the engine, except for a sample.
    """
    table, is_simulated, source_name = open_reports(source)
    with handle_read_errors(source_name) if source_name else nullcontext():
        bulk_tally = _BulkTally(collection, table, progress or (lambda done, total: None))
        tally: Tally[CollectionT] = bulk_tally.run_queries()
    tally.simulated = is_simulated
    return tally


class _BulkTally:
    def __init__(self, collection: Any, table: Any, progress: ProgressCallback) -> None:
        self.collection, self.table, self.progress = collection, table, progress
        self.tally: Tally[Any] = Tally(collection)
        self.channels = collection.questions
        self.widths = [channel.width for channel in self.channels]
        mark_columns = [BATCH_COLUMN] if BATCH_COLUMN in table.columns else []
        self.answer_columns = ["question", "value", *mark_columns]
        self.batch_rows = max(1024, MAX_INTEGERS_PER_BATCH // max(self.widths))
        self.reports_done = self.reports_total = 0

    def run_queries(self) -> Tally[Any]:
        import ibis

        valid_rows = self._filter_rows()
        self.tally.sample = _sample_smallest_ids(valid_rows)
        recurring_ids = valid_rows.group_by("id").agg(n=valid_rows.count())
        recurring_ids = recurring_ids.filter(recurring_ids.n > 1)
        recurring_count = fetch_arrow(recurring_ids.agg(k=recurring_ids.count()))["k"][0].as_py()
        unique_rows = valid_rows.anti_join(recurring_ids, "id") if recurring_count else valid_rows
        # whole answers are what the tally holds; others are grouped where few can be different
        grouped_questions = [
            question
            for question, channel in enumerate(self.channels)
            if channel.size is None or channel.outputs is not None
        ]
        streamed_questions = [
            question for question in range(len(self.widths)) if question not in grouped_questions
        ]
        if grouped_questions:
            question_rows = unique_rows.filter(unique_rows.question.isin(grouped_questions))
            self._count_answers(
                question_rows.group_by(*self.answer_columns).agg(n=question_rows.count())
            )
        if streamed_questions:
            question_rows = unique_rows.filter(
                unique_rows.question.isin(streamed_questions)
            ).select(*self.answer_columns)
            self._count_streamed(question_rows)
        if recurring_count:
            recurring_rows = valid_rows.semi_join(recurring_ids, "id")
            sort_keys = [  # reports without a batch mark come before those with one
                ibis.asc(name, nulls_first=name == BATCH_COLUMN) for name in self.answer_columns
            ]
            self._count_recurring(recurring_rows.order_by("id", *sort_keys))
        return self.tally

    def _count_streamed(self, answers: Any) -> None:
        """Count answers that are rarely equal: batch by batch, or by the workers of Spark."""
        if answers.get_backend().name != "pyspark":
            self._count_answers(answers)
            return
        for partial_sum in iter_partial_sums(self.collection, answers):
            self.tally.batches.merge(partial_sum.batch_sizes)
            if partial_sum.valid_count:
                self.tally.add_sums(partial_sum.question, partial_sum.sums, partial_sum.valid_count)
                self._report_progress(partial_sum.valid_count)
            self._count_rejected("misshapen", partial_sum.null_count)
            self._count_rejected("out of domain", partial_sum.out_of_domain_count)

    def _filter_rows(self) -> Any:
        """Select the rows that fit this collection, and count the others by their fault."""
        import ibis

        def octet_length(data):  # type: ignore[no-untyped-def]
            """Of a binary column, in every engine; translated by name, never run."""

        count_bytes = ibis.udf.scalar.builtin(octet_length, signature=(("binary",), "int64"))
        report_rows = self.table
        is_complete = report_rows.id.notnull() & (count_bytes(report_rows.id) == 16)
        for column_name in ("collection", "question", "value"):
            is_complete &= report_rows[column_name].notnull()
        if BATCH_COLUMN in report_rows.columns:
            mark_column = report_rows[BATCH_COLUMN]
            is_complete &= mark_column.isnull() | (count_bytes(mark_column) == 16)
        has_right_width = ibis.or_(
            *(
                report_rows.question.isin(
                    [
                        question
                        for question, question_width in enumerate(self.widths)
                        if question_width == width
                    ]
                )
                & (report_rows.value.length() == width)
                for width in sorted(set(self.widths))
            )
        )
        report_rows = report_rows.mutate(
            fault=ibis.cases(
                (~is_complete, "misshapen"),
                (
                    report_rows.collection != self.collection.digest,
                    f"foreign {self.collection.kind}",
                ),
                (~report_rows.question.between(0, len(self.widths) - 1), "unknown question"),
                (~has_right_width, "out of domain"),
                else_="",
            )
        )
        for fault_count in fetch_arrow(
            report_rows.group_by("fault").agg(n=report_rows.count())
        ).to_pylist():
            self.reports_total += fault_count["n"]
            if fault_count["fault"]:
                self._count_rejected(fault_count["fault"], fault_count["n"])
        return report_rows.filter(report_rows.fault == "").select("id", *self.answer_columns)

    def _count_rejected(self, kind: str, report_count: int) -> None:
        if report_count:
            self.tally.rejected[kind] += report_count
            self._report_progress(report_count)

    def _report_progress(self, report_count: int) -> None:
        self.reports_done += report_count
        self.progress(self.reports_done, self.reports_total)

    def _count_answers(self, answers: Any) -> None:
        """Count answers with distinct ids; the column n is how often each was sent."""
        for batch in read_batches(answers, self.batch_rows):
            answer_batch = AnswerBatch(self.channels, batch)
            multiplicities = batch["n"].to_numpy() if "n" in batch.schema.names else None
            self.tally.batches.merge(answer_batch.count_batch_sizes(multiplicities))
            for question, rows, matrix in answer_batch.split_by_question(answer_batch.is_valid):
                row_multiplicities = None if multiplicities is None else multiplicities[rows]
                self.tally.add_values(question, matrix, row_multiplicities)
                self._report_progress(
                    len(rows) if row_multiplicities is None else int(row_multiplicities.sum())
                )
            report_weights = (
                np.ones(batch.num_rows, np.int64) if multiplicities is None else multiplicities
            )
            self._count_rejected("misshapen", int(report_weights[answer_batch.has_null].sum()))
            self._count_rejected(
                "out of domain", int(report_weights[answer_batch.out_of_domain].sum())
            )

    def _count_recurring(self, answers: Any) -> None:
        """Count answers with recurring ids, sorted by id; the kept answer enters the next batch.

        Copies of the kept answer come right after it, so an answer repeats it as long as nothing
        of the same id differed from the one before.
        """
        import pyarrow as pa

        carried_row = None
        for batch in read_batches(answers, self.batch_rows):
            table = pa.Table.from_batches([batch])
            if carried_row is not None:
                table = pa.concat_tables([carried_row, table])
            arrow_batch = table.combine_chunks().to_batches()[0]
            answer_batch = AnswerBatch(self.channels, arrow_batch)
            valid_rows = np.flatnonzero(answer_batch.is_valid)
            ids = make_comparable_ids(arrow_batch["id"])[valid_rows]
            is_first = np.append(True, ids[1:] != ids[:-1])[: len(valid_rows)]
            is_changed = answer_batch.find_changes(valid_rows) & ~is_first
            id_groups = np.cumsum(is_first) - 1
            change_counts = np.cumsum(is_changed)
            is_copy = ~is_first & (change_counts == change_counts[is_first][id_groups])
            first_rows = valid_rows[is_first]
            is_new = np.zeros(arrow_batch.num_rows, bool)
            is_new[first_rows] = True
            if carried_row is not None:
                is_new[0] = False  # counted with its own batch
            for question, question_rows, matrix in answer_batch.split_by_question(is_new):
                self.tally.add_values(question, matrix)
                self._report_progress(len(question_rows))
            self.tally.batches.merge(answer_batch.count_batch_sizes(is_new.astype(np.int64)))
            self.tally.repeated += int(is_copy.sum())
            self._report_progress(int(is_copy.sum()))
            self._count_rejected("id reused", int((~is_first & ~is_copy).sum()))
            self._count_rejected("misshapen", int(answer_batch.has_null.sum()))
            self._count_rejected("out of domain", int(answer_batch.out_of_domain.sum()))
            if len(first_rows):
                carried_row = table.slice(int(first_rows[-1]), 1)


def _sample_smallest_ids(valid_rows: Any) -> set[str]:
    """Return the smallest ids, which identify this delivery and reveal overlap with another one."""
    smallest_ids: set[bytes] = set()
    for id_rows in (valid_rows.select("id"), valid_rows.select("id").distinct()):
        first_ids = fetch_arrow(id_rows.order_by("id").limit(4 * ID_SAMPLE_SIZE))["id"].to_pylist()
        smallest_ids = set(map(bytes, first_ids))
        if len(smallest_ids) >= ID_SAMPLE_SIZE or len(first_ids) < 4 * ID_SAMPLE_SIZE:
            break  # else too many of the smallest are repetitions
    return {id_bytes.hex() for id_bytes in sorted(smallest_ids)[:ID_SAMPLE_SIZE]}
