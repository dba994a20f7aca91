"""Results of an audit, as sentences and as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from discreet.privacy import rounded_up

__all__ = ["SAME", "USUAL", "Audit", "Verdict"]

SAME = "all outputs are the same"
USUAL = 0.99
"""The confidence at which a bound is always reported."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check.

    Parameters
    ----------
    check : str
        What was looked at.
    way : {"exact", "statistical", "not done"}
        Whether everything was enumerated, or samples were compared.
    promised, delta : float
        What was promised.
    found : float
        The loss, exactly; or what it is at least, at ``confidence``.
    broken : bool
    event : str
        The event that best distinguishes the inputs.
    pair : (str, str)
        The input that makes it likelier, and the other.
    confidence : float
        1 where everything was enumerated.
    samples : int
        Outputs drawn, or paths walked through.
    note : str
        What was not covered, or why nothing was done.
    usual : float
        What the loss is at least at 99 %, if ``confidence`` is another.
    detects : float
        The least loss that these samples would show to exceed the promise 9 times of 10, by the
        best event (:func:`~discreet.audit.distinguisher.detectable`); infinite if none would.
    """

    check: str
    way: Literal["exact", "statistical", "not done"]
    promised: float
    delta: float = 0.0
    found: float = 0.0
    broken: bool = False
    event: str = ""
    pair: tuple[str, str] = ("", "")
    confidence: float = 1.0
    samples: int = 0
    note: str = ""
    usual: float = 0.0
    detects: float = 0.0

    @property
    def sentence(self) -> str:
        """The verdict as one sentence.

        Examples
        --------
        >>> Verdict("count", "statistical", 1.0, found=0.93, confidence=0.99).sentence
        'promised 1.00; no event found above 0.93 at 99 %'
        >>> Verdict("count", "statistical", 1.0, found=0.4, usual=0.7, detects=1.62).sentence
        'promised 1.00; no event found above 0.40 at 100 % (0.70 at 99 %; 1.62 would be found)'
        """
        promise = _two(self.promised) + (f" (delta {self.delta:g})" if self.delta else "")
        at = "" if self.way == "exact" else f" at {100 * self.confidence:.10g} %"
        if self.way == "not done":
            return f"promised {promise}; not checked: {self.note}"
        if self.broken:
            least = "exactly" if self.way == "exact" else "at least"
            held = f", likelier with {self.pair[0]}" if self.pair[0] else ""
            held += f" than with {self.pair[1]}" if self.pair[1] else ""
            found = f"{least} {_two(self.found, self.way)}{at}"
            return f"BROKEN: {found}, promised {promise}; event: {self.event}{held}"
        if self.way == "exact":
            return f"promised {promise}; exactly {rounded_up(self.found)}"
        if self.event == SAME:
            return f"promised {promise}; all {self.samples} outputs are the same"
        more = [f"{_two(self.usual, self.way)} at 99 %"] if self._unusual else []
        if 0 < self.detects < math.inf:
            more.append(f"{rounded_up(self.detects, 3)} would be found")
        elif self.detects:
            more.append("too few samples to detect any loss")
        beside = f" ({'; '.join(more)})" if more else ""
        return f"promised {promise}; no event found above {_two(self.found, self.way)}{at}{beside}"

    @property
    def _unusual(self) -> bool:
        return self.way == "statistical" and abs(self.confidence - USUAL) > 1e-12

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "pair": list(self.pair), "sentence": self.sentence}


def _two(number: float, way: str = "") -> str:
    """Format with two decimals; a lower bound is rounded down."""
    if math.isinf(number):
        return "infinite"
    return f"{math.floor(number * 100) / 100 if way == 'statistical' else number:.2f}"


@dataclass(frozen=True)
class Audit:
    """All checks of one subject.

    Parameters
    ----------
    subject : str
    verdicts : tuple of Verdict
    """

    subject: str
    verdicts: tuple[Verdict, ...]

    @property
    def broken(self) -> bool:
        """Whether any check found the promise broken."""
        return any(one.broken for one in self.verdicts)

    @property
    def done(self) -> bool:
        """Whether anything was checked at all."""
        return any(one.way != "not done" for one in self.verdicts)

    def __str__(self) -> str:
        """One line per check."""
        return "\n".join(f"{one.check}: {one.sentence}" for one in self.verdicts)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        checks = [one.to_body() for one in self.verdicts]
        return {"subject": self.subject, "broken": self.broken, "checks": checks}
