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

from discreet.collection.batches import Answers, batches_of, identities, partial_sums
from discreet.collection.files import BATCH, open_reports
from discreet.collection.protocol import C
from discreet.collection.tally import SAMPLED, Tally
from discreet.tables.engines import fetched, reading

__all__ = ["tally_parquet"]

Progress = Callable[[int, int], None]

NUMBERS = 1 << 20
"""Integers in one batch; the number of rows follows from the width of a report."""


def tally_parquet(collection: C, source: Any, *, progress: Progress | None = None) -> Tally[C]:
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
    table, simulated, name = open_reports(source)
    with reading(name) if name else nullcontext():
        bulk = _Bulk(collection, table, progress or (lambda done, total: None))
        tally: Tally[C] = bulk.run()
    tally.simulated = simulated
    return tally


class _Bulk:
    def __init__(self, collection: Any, table: Any, progress: Progress) -> None:
        self.collection, self.table, self.progress = collection, table, progress
        self.tally: Tally[Any] = Tally(collection)
        self.channels = collection.questions
        self.widths = [channel.width for channel in self.channels]
        marks = [BATCH] if BATCH in table.columns else []
        self.content = ["question", "value", *marks]
        self.rows = max(1024, NUMBERS // max(self.widths))
        self.done = self.total = 0

    def run(self) -> Tally[Any]:
        fine = self._sorted_out()
        self.tally.sample = _smallest(fine)
        twice = fine.group_by("id").agg(n=fine.count())
        twice = twice.filter(twice.n > 1)
        recurring = fetched(twice.agg(k=twice.count()))["k"][0].as_py()
        once = fine.anti_join(twice, "id") if recurring else fine
        # whole answers are what the tally holds; others are grouped where few can be different
        grouped = [
            n for n, one in enumerate(self.channels) if one.size is None or one.outputs is not None
        ]
        streamed = [n for n in range(len(self.widths)) if n not in grouped]
        if grouped:
            part = once.filter(once.question.isin(grouped))
            self._count(part.group_by(*self.content).agg(n=part.count()))
        if streamed:
            part = once.filter(once.question.isin(streamed)).select(*self.content)
            self._count_wide(part)
        if recurring:
            again = fine.semi_join(twice, "id")
            self._count_in_order(again.order_by("id", *map(_in_order, self.content)))
        return self.tally

    def _count_wide(self, answers: Any) -> None:
        """Count answers that are rarely equal: batch by batch, or by the workers of Spark."""
        if answers.get_backend().name != "pyspark":
            self._count(answers)
            return
        for one in partial_sums(self.collection, answers):
            self.tally.batches.merge(one.batches)
            if one.valid:
                self.tally.add_sums(one.question, one.sums, one.valid)
                self._advance(one.valid)
            self._reject("misshapen", one.torn)
            self._reject("out of domain", one.wrong)

    def _sorted_out(self) -> Any:
        """Select the rows that fit this collection, and count the others by their fault."""
        import ibis

        rows = self.table
        whole = rows.id.notnull() & (_octets()(rows.id) == 16)
        for name in ("collection", "question", "value"):
            whole &= rows[name].notnull()
        if BATCH in rows.columns:
            whole &= rows[BATCH].isnull() | (_octets()(rows[BATCH]) == 16)
        fits = ibis.or_(
            *(
                rows.question.isin([n for n, w in enumerate(self.widths) if w == width])
                & (rows.value.length() == width)
                for width in sorted(set(self.widths))
            )
        )
        rows = rows.mutate(
            fault=ibis.cases(
                (~whole, "misshapen"),
                (rows.collection != self.collection.digest, f"foreign {self.collection.kind}"),
                (~rows.question.between(0, len(self.widths) - 1), "unknown question"),
                (~fits, "out of domain"),
                else_="",
            )
        )
        for found in fetched(rows.group_by("fault").agg(n=rows.count())).to_pylist():
            self.total += found["n"]
            if found["fault"]:
                self._reject(found["fault"], found["n"])
        return rows.filter(rows.fault == "").select("id", *self.content)

    def _reject(self, kind: str, number: int) -> None:
        if number:
            self.tally.rejected[kind] += number
            self._advance(number)

    def _advance(self, number: int) -> None:
        self.done += number
        self.progress(self.done, self.total)

    def _count(self, answers: Any) -> None:
        """Count answers with distinct ids; the column n is how often each was sent."""
        for batch in batches_of(answers, self.rows):
            answered = Answers(self.channels, batch)
            times = batch["n"].to_numpy() if "n" in batch.schema.names else None
            self.tally.batches.merge(answered.batch_sizes(times))
            for question, rows, matrix in answered.parts(answered.valid):
                often = None if times is None else times[rows]
                self.tally.add_values(question, matrix, often)
                self._advance(len(rows) if often is None else int(often.sum()))
            weight = np.ones(batch.num_rows, np.int64) if times is None else times
            self._reject("misshapen", int(weight[answered.torn].sum()))
            self._reject("out of domain", int(weight[answered.wrong].sum()))

    def _count_in_order(self, answers: Any) -> None:
        """Count answers with recurring ids, sorted by id; the kept answer enters the next batch.

        Copies of the kept answer come right after it, so an answer repeats it as long as nothing
        of the same id differed from the one before.
        """
        import pyarrow as pa

        carried = None
        for batch in batches_of(answers, self.rows):
            table = pa.Table.from_batches([batch])
            if carried is not None:
                table = pa.concat_tables([carried, table])
            whole = table.combine_chunks().to_batches()[0]
            answered = Answers(self.channels, whole)
            rows = np.flatnonzero(answered.valid)
            ids = identities(whole["id"])[rows]
            first = np.append(True, ids[1:] != ids[:-1])[: len(rows)]
            changed = answered.changed(rows) & ~first
            run = np.cumsum(first) - 1
            changes = np.cumsum(changed)
            copy = ~first & (changes == changes[first][run])
            kept = rows[first]
            fresh = np.zeros(whole.num_rows, bool)
            fresh[kept] = True
            if carried is not None:
                fresh[0] = False  # counted with its own batch
            for question, some, matrix in answered.parts(fresh):
                self.tally.add_values(question, matrix)
                self._advance(len(some))
            self.tally.batches.merge(answered.batch_sizes(fresh.astype(np.int64)))
            self.tally.repeated += int(copy.sum())
            self._advance(int(copy.sum()))
            self._reject("id reused", int((~first & ~copy).sum()))
            self._reject("misshapen", int(answered.torn.sum()))
            self._reject("out of domain", int(answered.wrong.sum()))
            if len(kept):
                carried = table.slice(int(kept[-1]), 1)


def _in_order(name: str) -> Any:
    """Sort key: ascending; reports without a batch mark come before those with one."""
    import ibis

    return ibis.asc(name, nulls_first=name == BATCH)


def _smallest(fine: Any) -> set[str]:
    """Return the smallest ids, which identify this delivery and reveal overlap with another one."""
    found: set[bytes] = set()
    for rows in (fine.select("id"), fine.select("id").distinct()):
        first = fetched(rows.order_by("id").limit(4 * SAMPLED))["id"].to_pylist()
        found = set(map(bytes, first))
        if len(found) >= SAMPLED or len(first) < 4 * SAMPLED:
            break  # else too many of the smallest are repetitions
    return {one.hex() for one in sorted(found)[:SAMPLED]}


def _octets() -> Any:
    """Return the function for the byte length of a binary column, which every engine has."""
    import ibis

    def octet_length(data):  # type: ignore[no-untyped-def]
        """Translated by name, never run."""

    return ibis.udf.scalar.builtin(octet_length, signature=(("binary",), "int64"))
