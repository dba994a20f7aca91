"""Results of an audit, as sentences and as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from discreet.privacy.guarantee import format_rounded_up

__all__ = ["REPORTED_CONFIDENCE", "SAME_OUTPUTS", "Audit", "Verdict"]

SAME_OUTPUTS = "all outputs are the same"
REPORTED_CONFIDENCE = 0.99
"""The confidence at which a bound is always reported."""
MAX_SOUND_PAIRS = 8
"""Most pairs of inputs without a violation that are shown one by one."""


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
        best event (:func:`~discreet.audit.distinguisher.compute_detectable_loss`); infinite if none
        would.
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
        promised_text = _format_epsilon(self.promised) + (
            f" (delta {self.delta:g})" if self.delta else ""
        )
        confidence_text = "" if self.way == "exact" else f" at {100 * self.confidence:.10g} %"
        if self.way == "not done":
            return f"promised {promised_text}; not checked: {self.note}"
        if self.broken:
            bound_word = "exactly" if self.way == "exact" else "at least"
            likelier_text = f", likelier with {self.pair[0]}" if self.pair[0] else ""
            likelier_text += f" than with {self.pair[1]}" if self.pair[1] else ""
            bound_text = f"{bound_word} {_format_epsilon(self.found, self.way)}{confidence_text}"
            return (
                f"BROKEN: {bound_text}, promised {promised_text}; "
                f"event: {self.event}{likelier_text}"
            )
        if self.way == "exact":
            return f"promised {promised_text}; exactly {format_rounded_up(self.found)}"
        if self.event == SAME_OUTPUTS:
            return f"promised {promised_text}; all {self.samples} outputs are the same"
        extra_notes = []
        if abs(self.confidence - REPORTED_CONFIDENCE) > 1e-12:
            extra_notes.append(f"{_format_epsilon(self.usual, self.way)} at 99 %")
        if 0 < self.detects < math.inf:
            extra_notes.append(f"{format_rounded_up(self.detects, 3)} would be found")
        elif self.detects:
            extra_notes.append("too few samples to detect any loss")
        extra_text = f" ({'; '.join(extra_notes)})" if extra_notes else ""
        found_text = f"{_format_epsilon(self.found, self.way)}{confidence_text}{extra_text}"
        return f"promised {promised_text}; no event found above {found_text}"

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "pair": list(self.pair), "sentence": self.sentence}


def _format_epsilon(loss: float, way: str = "") -> str:
    """Format with two decimals; a lower bound is rounded down."""
    if math.isinf(loss):
        return "infinite"
    return f"{math.floor(loss * 100) / 100 if way == 'statistical' else loss:.2f}"


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
        return any(verdict.broken for verdict in self.verdicts)

    @property
    def is_done(self) -> bool:
        """Whether anything was checked at all."""
        return any(verdict.way != "not done" for verdict in self.verdicts)

    def select_notable(self) -> tuple[list[Verdict], int]:
        """Verdicts to show (of many sound pairs, the worst), and the number of the others."""
        sound_verdicts = [
            verdict
            for verdict in self.verdicts
            if verdict.way == "statistical" and not verdict.broken
        ]
        if len(sound_verdicts) <= MAX_SOUND_PAIRS:
            return list(self.verdicts), 0
        worst_verdict = max(sound_verdicts, key=lambda verdict: verdict.found)
        notable_verdicts = [verdict for verdict in self.verdicts if verdict not in sound_verdicts]
        return [*notable_verdicts, worst_verdict], len(sound_verdicts) - 1

    def __str__(self) -> str:
        """One line per check."""
        return "\n".join(f"{verdict.check}: {verdict.sentence}" for verdict in self.verdicts)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        check_bodies = [verdict.to_body() for verdict in self.verdicts]
        return {"subject": self.subject, "broken": self.broken, "checks": check_bodies}
