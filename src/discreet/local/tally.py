"""The collector's side: integers that add up, in any order, and what they estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.documents import Body, dump, load, read_text
from discreet.errors import DiscreetError, EstimationError, FormatError, SchemaError
from discreet.local.plan import Plan
from discreet.local.report import Report
from discreet.mechanisms.frequency import FrequencyOracle

__all__ = ["Receipt", "Tally"]

VERSION = 1
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Receipt:
    """What happened to a report: counted, already counted before, or rejected with a reason."""

    status: Literal["counted", "repeated", "rejected"]
    reason: str = ""


@dataclass(eq=False)
class Tally:
    """Exact sums of the reports to one plan.

    Parameters
    ----------
    plan : Plan
    respondents : array of int
        How many reports each question got.
    sums : list of arrays of int
        What the mechanism of each question adds up.
    rejected : Counter
        How many reports were refused, by reason.
    repeated : int
        How many deliveries were repetitions of a counted report.
    seen : dict
        Fingerprints of the counted reports by id; bulk tallies leave it to their engine.
    """

    plan: Plan
    respondents: Integers = None  # type: ignore[assignment]
    sums: list[Integers] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    seen: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.respondents is None:
            self.respondents = np.zeros(len(self.plan.questions), dtype=np.int64)
        if not self.sums:
            self.sums = [_nothing(question.mechanism) for question in self.plan.questions]

    @property
    def people(self) -> int:
        """Number of counted reports."""
        return int(self.respondents.sum())

    def add(self, report: Report | str | bytes) -> Receipt:
        """Count one report, or say why not; nothing else is touched."""
        try:
            if not isinstance(report, Report):
                report = Report.from_json(report)
            reason = self._refusal(report)
        except DiscreetError as error:
            return self._reject("misshapen", str(error))
        if reason:
            return self._reject(*reason)
        known = self.seen.get(report.id)
        if known == report.fingerprint:
            self.repeated += 1
            return Receipt("repeated", "this very report was counted before")
        if known is not None:
            return self._reject("id reused", "another report with this id was counted before")
        self.seen[report.id] = report.fingerprint
        self.add_values(report.question, [report.value])
        return Receipt("counted")

    def _refusal(self, report: Report) -> tuple[str, str] | None:
        if report.plan != self.plan.digest:
            return "foreign plan", f"it answers the plan {report.plan[:23]}…, not this one"
        if not 0 <= report.question < len(self.plan.questions):
            return "unknown question", f"question {report.question} is not in the plan"
        mechanism = self.plan.questions[report.question].mechanism
        if len(report.value) != mechanism.width:
            return "out of domain", f"{len(report.value)} numbers instead of {mechanism.width}"
        if any(abs(number) >= 1 << 62 for number in report.value):
            return "out of domain", "a number is too large"
        if mechanism.faulty(np.array([report.value], dtype=np.int64))[0]:
            return "out of domain", f"no {mechanism.name} report of this size looks like this"
        return None

    def _reject(self, kind: str, reason: str) -> Receipt:
        self.rejected[kind] += 1
        return Receipt("rejected", f"{kind}: {reason}")

    def add_values(self, question: int, values: ArrayLike, times: ArrayLike | None = None) -> None:
        """Count serialised answers to one question that were checked before.

        Parameters
        ----------
        question : int
        values : array of int, (reports, width)
        times : array of int, optional
            How often each of the answers was sent.
        """
        mechanism = self.plan.questions[question].mechanism
        matrix = np.asarray(values, dtype=np.int64).reshape(-1, mechanism.width)
        if times is not None:
            self._add_repeated(question, matrix, np.asarray(times, dtype=np.int64))
            return
        if isinstance(mechanism, FrequencyOracle):
            self.sums[question] += mechanism.tally(mechanism.decode(matrix))
        else:
            self.sums[question] += mechanism.tally(matrix)
        self.respondents[question] += len(matrix)

    def _add_repeated(self, question: int, matrix: Integers, times: Integers) -> None:
        """Binary expansion of the multiplicities: each answer is tallied once per set bit."""
        bit = 0
        while (times >> bit).any():
            chosen = matrix[(times >> bit) & 1 == 1]
            if len(chosen):
                part = Tally(self.plan)
                part.add_values(question, chosen)
                self.sums[question] += part.sums[question] << bit
                self.respondents[question] += len(chosen) << bit
            bit += 1

    def __add__(self, other: Tally) -> Tally:
        """The tally of both collectors' reports; the same report must not be in both."""
        if not isinstance(other, Tally):
            return NotImplemented
        if self.plan.digest != other.plan.digest:
            raise EstimationError("these tallies follow different plans; they cannot be added")
        both = self.seen.keys() & other.seen.keys()
        if both:
            raise EstimationError(
                f"{len(both)} reports are in both tallies and would count twice; tally them once"
            )
        return Tally(
            self.plan,
            self.respondents + other.respondents,
            [one + two for one, two in zip(self.sums, other.sums, strict=True)],
            self.rejected + other.rejected,
            self.repeated + other.repeated,
            self.seen | other.seen,
        )

    def to_json(self) -> str:
        """Write the tally with its plan as versioned JSON."""
        body = {
            "plan": self.plan.to_json(),
            "respondents": self.respondents.tolist(),
            "sums": [one.tolist() for one in self.sums],
            "rejected": dict(self.rejected),
            "repeated": self.repeated,
            "seen": self.seen,
        }
        return dump("tally", VERSION, body, indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Tally:
        """Read what :meth:`to_json` wrote."""
        body = load(text, "tally", VERSION, _TallyBody)
        plan = Plan.from_json(body.plan)
        empty = cls(plan)
        sums = [np.array(one, dtype=np.int64) for one in body.sums]
        if len(body.respondents) != len(plan.questions) or [s.shape for s in sums] != [
            s.shape for s in empty.sums
        ]:
            raise FormatError("this tally does not fit its own plan")
        respondents = np.array(body.respondents, dtype=np.int64)
        if (respondents < 0).any() or body.repeated < 0:
            raise FormatError("this tally counts fewer than no reports")
        return cls(plan, respondents, sums, Counter(body.rejected), body.repeated, body.seen)

    @classmethod
    def read(cls, path: str | Path) -> Tally:
        """Read a tally file."""
        return cls.from_json(read_text(path))

    @classmethod
    def of(cls, plan: Plan, reports: Iterable[Report | str | bytes]) -> Tally:
        """Tally reports one by one."""
        tally = cls(plan)
        for report in reports:
            tally.add(report)
        return tally


def _nothing(mechanism: Any) -> Integers:
    """What zero reports add up to."""
    if isinstance(mechanism, FrequencyOracle):
        return np.zeros(mechanism.size, dtype=np.int64)
    return np.zeros(len(mechanism.units) * mechanism.size, dtype=np.int64)


class _TallyBody(Body):
    plan: str
    respondents: list[int]
    sums: list[list[int]]
    rejected: dict[str, int]
    repeated: int
    seen: dict[str, str]


def check_same(plans: Iterable[Plan]) -> None:
    """Refuse to mix plans."""
    if len({plan.digest for plan in plans}) > 1:
        raise SchemaError("these files follow different plans")
