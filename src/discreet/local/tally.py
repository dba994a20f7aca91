"""The collector's side: integers that add up, in any order, and what they estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Booleans, Integers
from discreet.documents import Body, dump, load, read_text
from discreet.errors import DiscreetError, EstimationError, FormatError
from discreet.local.plan import Plan
from discreet.local.report import Report
from discreet.mechanisms.frequency import FrequencyOracle
from discreet.mechanisms.mean import MeanOracle

__all__ = ["Receipt", "Tally", "faulty"]

VERSION = 1
LARGEST = 1 << 62
"""Neither a number in a report nor a sum in a tally goes beyond this, so that none can wrap."""

Mechanism = FrequencyOracle | MeanOracle


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
    simulated : bool
        Whether a seeded source made some of the reports: then they promise nothing.
    """

    plan: Plan
    respondents: Integers = None  # type: ignore[assignment]
    sums: list[Integers] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    seen: dict[str, str] = field(default_factory=dict)
    simulated: bool = False

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
        except DiscreetError as error:
            return self._reject("misshapen", str(error))
        if reason := self._refusal(report):
            return self._reject(*reason)
        known = self.seen.get(report.id)
        if known == report.fingerprint:
            self.repeated += 1
            return Receipt("repeated", "this very report was counted before")
        if known is not None:
            return self._reject("id reused", "another report with this id was counted before")
        self.add_values(report.question, [report.value])
        self.seen[report.id] = report.fingerprint
        self.simulated |= report.simulated
        return Receipt("counted")

    def _refusal(self, report: Report) -> tuple[str, str] | None:
        if report.plan != self.plan.digest:
            return "foreign plan", f"it answers the plan {report.plan[:23]}…, not this one"
        if not 0 <= report.question < len(self.plan.questions):
            return "unknown question", f"question {report.question} is not in the plan"
        mechanism = self.plan.questions[report.question].mechanism
        if len(report.value) != mechanism.width:
            return "out of domain", f"{len(report.value)} numbers instead of {mechanism.width}"
        if any(abs(number) > LARGEST for number in report.value):
            return "out of domain", "a number is too large"
        if faulty(mechanism, np.array([report.value], dtype=np.int64))[0]:
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
            How often each of the answers was sent; once if not given.
        """
        mechanism = self.plan.questions[question].mechanism
        matrix = np.asarray(values, dtype=np.int64).reshape(-1, mechanism.width)
        if not len(matrix):
            return
        often = np.ones(len(matrix), np.int64) if times is None else np.asarray(times, np.int64)
        if often.shape != (len(matrix),) or (often < 0).any():
            raise EstimationError("times must say for each answer how often it was sent")
        most = int(np.abs(matrix).max()) * int(often.sum())
        if most + int(np.abs(self.sums[question]).max()) > LARGEST:
            raise EstimationError("the sums would go beyond 2^62 and no longer be exact")
        # binary expansion of the multiplicities: each answer is tallied once for each set bit
        for bit in range(int(often.max()).bit_length()):
            chosen = matrix if times is None else matrix[(often >> bit) & 1 == 1]
            if len(chosen):
                self.sums[question] += _tallied(mechanism, chosen) << bit
        self.respondents[question] += often.sum()

    def __add__(self, other: Tally) -> Tally:
        """The tally of both collectors' reports; the same report must not be in both.

        That is checked for reports that were added one by one; of those that an engine tallied
        in bulk the ids are not kept.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        if self.plan.digest != other.plan.digest:
            raise EstimationError("these tallies follow different plans; they cannot be added")
        both = self.seen.keys() & other.seen.keys()
        if both:
            raise EstimationError(
                f"{len(both)} reports are in both tallies and would count twice; tally them once"
            )
        pairs = list(zip(self.sums, other.sums, strict=True))
        if any(int(np.abs(a).max()) + int(np.abs(b).max()) > LARGEST for a, b in pairs):
            raise EstimationError("the sums would go beyond 2^62 and no longer be exact")
        return Tally(
            self.plan,
            self.respondents + other.respondents,
            [one + two for one, two in pairs],
            self.rejected + other.rejected,
            self.repeated + other.repeated,
            self.seen | other.seen,
            self.simulated or other.simulated,
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
            "simulated": self.simulated,
        }
        return dump("tally", VERSION, body, indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Tally:
        """Read what :meth:`to_json` wrote."""
        body = load(text, "tally", VERSION, _TallyBody)
        plan = Plan.from_json(body.plan)
        shapes = [len(_nothing(question.mechanism)) for question in plan.questions]
        if len(body.respondents) != len(shapes) or list(map(len, body.sums)) != shapes:
            raise FormatError("this tally does not fit its own plan")
        if min(*body.respondents, body.repeated, *body.rejected.values(), 0) < 0:
            raise FormatError("this tally counts fewer than no reports")
        largest = max(
            abs(number) for numbers in (body.respondents, *body.sums) for number in numbers
        )
        if largest > LARGEST:
            raise FormatError("this tally holds a number beyond 2^62")
        return cls(
            plan,
            np.array(body.respondents, dtype=np.int64),
            [np.array(one, dtype=np.int64) for one in body.sums],
            Counter(body.rejected),
            body.repeated,
            body.seen,
            body.simulated,
        )

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


def faulty(mechanism: Mechanism, matrix: Integers) -> Booleans:
    """Which serialised answers no respondent could have sent."""
    huge = (matrix > LARGEST) | (matrix < -LARGEST)
    # a mechanism's own checks may add and subtract, so nothing that could wrap reaches them
    wrong: Booleans = mechanism.faulty(np.where(huge, 0, matrix)) | huge.any(axis=1)
    return wrong


def _tallied(mechanism: Mechanism, matrix: Integers) -> Integers:
    if isinstance(mechanism, FrequencyOracle):
        return mechanism.tally(mechanism.decode(matrix))
    return mechanism.tally(matrix)


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
    simulated: bool
