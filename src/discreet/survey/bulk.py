"""Sheets by the million, in the Parquet files and by the engine of local reports.

A sheet is a row with the columns ``id``, ``plan`` (here the questionnaire's digest), ``question``
(always 0) and ``value`` (the answers): see :mod:`discreet.local.bulk`, which does all the work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Booleans, Bytes, Integers
from discreet.local.bulk import Progress, _Bulk
from discreet.local.files import ReportFile, open_reports
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.sheet import Sheet
from discreet.survey.tally import Tally
from discreet.tables.engines import reading

__all__ = ["SheetFile", "tally_parquet"]


class _Form:
    """A whole sheet, as the bulk path sees a mechanism: so many numbers, each below its limit."""

    name = "sheet"
    size, units = 0, ()  # its sums are not kept: the tally counts whole sheets

    def __init__(self, sizes: Sequence[int]) -> None:
        self.limits = np.array(sizes)
        self.width = len(self.limits)

    def faulty(self, matrix: Integers) -> Booleans:
        return np.asarray(((matrix < 0) | (matrix >= self.limits)).any(axis=1))

    def _output_count(self) -> int:
        return math.prod(self.limits.tolist())


def _as_plan(questionnaire: Questionnaire) -> Any:
    asked = [SimpleNamespace(mechanism=_Form(questionnaire.sizes))]
    return SimpleNamespace(digest=questionnaire.digest, questions=asked)


class _Counting(Tally):
    """A tally that takes answers the way the bulk path hands them over."""

    def add_values(self, question: int, values: ArrayLike, times: ArrayLike | None = None) -> None:
        self.add_answers(values, times)


class SheetFile(ReportFile):
    """A Parquet file that sheets are appended to; a context manager.

    Parameters
    ----------
    path : path
    questionnaire : Questionnaire
    simulated : bool, default False
        Whether a seeded source made the sheets; the file says so, and so will their tally.
    """

    def __init__(
        self, path: str | Path, questionnaire: Questionnaire, simulated: bool = False
    ) -> None:
        super().__init__(path, _as_plan(questionnaire), simulated)

    def write_answers(self, ids: Bytes, answers: Integers) -> None:
        """Append randomized answers, a row a person, with 16 random bytes each."""
        self.write(0, ids, answers)

    def add_sheets(self, sheets: Iterable[Sheet]) -> None:
        """Append sheets, also those to other questionnaires: the tally will say what it refuses."""
        from discreet.local.report import Report

        self.add([Report(s.questionnaire, s.id, 0, s.answers, s.simulated) for s in sheets])


def tally_parquet(
    questionnaire: Questionnaire, source: Any, *, progress: Progress | None = None
) -> Tally:
    """Tally sheets where they lie; the parameters are those of ``discreet.local.bulk``.

    Returns
    -------
    Tally
        The integers of :meth:`Tally.add`, without ``seen``: the ids stay with the engine.
    """
    table, simulated, name = open_reports(source)
    with reading(name) if name else nullcontext():
        bulk = _Bulk(_as_plan(questionnaire), table, False, progress or (lambda done, total: None))
        counted = _Counting(questionnaire, simulated=simulated)
        bulk.tally = counted  # type: ignore[assignment]
        bulk.run()
    if "foreign plan" in counted.rejected:
        counted.rejected["foreign questionnaire"] = counted.rejected.pop("foreign plan")
    return Tally(
        questionnaire,
        *counted.distinct(),
        counted.rejected,
        counted.repeated,
        simulated=simulated,
    )
