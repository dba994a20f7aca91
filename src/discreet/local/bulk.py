"""Reports by the million: Parquet files, tallied by an engine in bounded memory.

A file has the columns ``id`` (16 bytes), ``plan`` (text), ``question`` (int32) and ``value``
(list of int64). The engine drops what is misshapen or answers another plan, finds the ids that
occur twice, and groups the answers of each question where they can coincide; the rest streams by.
The integers are those of :meth:`Tally.add`, one report after the other.

Where one id comes with different answers, one by one keeps the first. A table has no first row:
the smallest valid (question, value) is kept, numbers compared from left to right.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from discreet.local.batches import Answers, batches_of, identities
from discreet.local.files import ReportFile, open_reports, read_reports, write_reports
from discreet.local.plan import Plan
from discreet.local.tally import Mechanism, Tally
from discreet.mechanisms.frequency import SHE, FrequencyOracle
from discreet.tables.engines import fetched, reading

__all__ = ["ReportFile", "read_reports", "tally_parquet", "write_reports"]

Progress = Callable[[int, int], None]

NUMBERS = 1 << 20
"""Integers that are held in one batch, whatever the number of them in a report."""

FEW = 1 << 16
"""Answers are grouped by the engine where there are at most this many different ones."""


def tally_parquet(plan: Plan, source: Any, *, progress: Progress | None = None) -> Tally:
    """Tally reports where they lie.

    Parameters
    ----------
    plan : Plan
    source : path, glob, list of these, or table
        Parquet files, or whatever :func:`discreet.tables.open_table` opens: ``"spark:path"``, a
        Spark data frame, an ibis or Arrow table with the four columns. Files in one list count as
        one delivery: what is in two of them counts once.
    progress : callable, optional
        Called as ``progress(reports done, reports in all)``.

    Returns
    -------
    Tally
        Without ``seen``: the ids stay with the engine.
    """
    table, simulated, name = open_reports(source)
    with reading(name) if name else nullcontext():
        return _Bulk(plan, table, simulated, progress or (lambda done, total: None)).run()


class _Bulk:
    def __init__(self, plan: Plan, table: Any, simulated: bool, progress: Progress) -> None:
        self.plan, self.table, self.progress = plan, table, progress
        self.tally = Tally(plan, simulated=simulated)
        self.widths = [question.mechanism.width for question in plan.questions]
        self.rows = max(1024, NUMBERS // max(self.widths))
        self.done = self.total = 0

    def run(self) -> Tally:
        fine = self._sorted_out()
        twice = fine.group_by("id").agg(n=fine.count())
        twice = twice.filter(twice.n > 1)
        again = fetched(twice.agg(k=twice.count()))["k"][0].as_py()
        once = fine.anti_join(twice, "id") if again else fine
        grouped = [n for n, q in enumerate(self.plan.questions) if _few(q.mechanism)]
        streamed = [n for n in range(len(self.widths)) if n not in grouped]
        if grouped:
            part = once.filter(once.question.isin(grouped))
            self._count(part.group_by("question", "value").agg(n=part.count()))
        if streamed:
            self._count(once.filter(once.question.isin(streamed)).select("question", "value"))
        if again:
            self._count_in_order(fine.semi_join(twice, "id").order_by("id", "question", "value"))
        return self.tally

    def _sorted_out(self) -> Any:
        """The rows that may be reports to this plan; the others are counted by their fault."""
        import ibis

        rows = self.table
        whole = rows.id.notnull() & (_octets()(rows.id) == 16)
        for name in ("plan", "question", "value"):
            whole &= rows[name].notnull()
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
                (rows.plan != self.plan.digest, "foreign plan"),
                (~rows.question.between(0, len(self.widths) - 1), "unknown question"),
                (~fits, "out of domain"),
                else_="",
            )
        )
        for found in fetched(rows.group_by("fault").agg(n=rows.count())).to_pylist():
            self.total += found["n"]
            if found["fault"]:
                self._reject(found["fault"], found["n"])
        return rows.filter(rows.fault == "").select("id", "question", "value")

    def _reject(self, kind: str, number: int) -> None:
        if number:
            self.tally.rejected[kind] += number
            self._advance(number)

    def _advance(self, number: int) -> None:
        self.done += number
        self.progress(self.done, self.total)

    def _count(self, answers: Any) -> None:
        """Add answers with distinct ids; the column n says how often each was sent."""
        for batch in batches_of(answers, self.rows):
            answered = Answers(self.plan, batch)
            times = batch["n"].to_numpy() if "n" in batch.schema.names else None
            for question, rows, matrix in answered.parts(answered.valid):
                often = None if times is None else times[rows]
                self.tally.add_values(question, matrix, often)
                self._advance(len(rows) if often is None else int(often.sum()))
            weight = np.ones(batch.num_rows, np.int64) if times is None else times
            self._reject("misshapen", int(weight[answered.torn].sum()))
            self._reject("out of domain", int(weight[answered.wrong].sum()))

    def _count_in_order(self, answers: Any) -> None:
        """Add answers whose ids recur, sorted by id; the kept answer is carried to the next batch.

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
            answered = Answers(self.plan, whole)
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
            self.tally.repeated += int(copy.sum())
            self._advance(int(copy.sum()))
            self._reject("id reused", int((~first & ~copy).sum()))
            self._reject("misshapen", int(answered.torn.sum()))
            self._reject("out of domain", int(answered.wrong.sum()))
            if len(kept):
                carried = table.slice(int(kept[-1]), 1)


def _few(mechanism: Mechanism) -> bool:
    """Whether a mechanism has so few different answers that grouping them pays."""
    if isinstance(mechanism, SHE):
        return False
    if isinstance(mechanism, FrequencyOracle):
        return sum(1 for _ in itertools.islice(mechanism.outputs(), FEW + 1)) <= FEW
    return mechanism._output_count() <= FEW


def _octets() -> Any:
    """The number of bytes of a binary column, in every engine."""
    import ibis

    def octet_length(data):  # type: ignore[no-untyped-def]
        """Translated by name, never run."""

    return ibis.udf.scalar.builtin(octet_length, signature=(("binary",), "int64"))
