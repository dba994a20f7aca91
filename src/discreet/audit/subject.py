"""Subject of an audit: a program, its privacy guarantee, and pairs of neighbouring inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import PrivacyError, SchemaError
from discreet.randomness import Random

__all__ = ["EnumerableCheck", "Pair", "ReleaseProgram", "Subject"]

ReleaseProgram = Callable[[Any, Random], Any]
"""Maps an input and a random source to everything that is released."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring inputs.

    Parameters
    ----------
    first_name, second_name : str
        What they are, in words.
    first, second : object
        The inputs themselves.
    """

    first_name: str
    second_name: str
    first: Any
    second: Any

    @property
    def check(self) -> str:
        """The pair in words."""
        return f"{self.first_name} against {self.second_name}"


@dataclass(frozen=True)
class EnumerableCheck:
    """A program with finitely many outputs, and all its neighbouring inputs.

    Parameters
    ----------
    check : str
        What is enumerated, in words.
    inputs : sequence of (str, object)
    draw_output : callable
        An input and a random source to the output, as it is serialised.
    epsilon : float
        What this part promises.
    describe_output : callable
        An output in words.
    note : str
        What is not covered; if not empty, samples are compared as well.
    stated_channel : callable, optional
        The channel that the mechanism states, one row per input, for draws that cannot be
        enumerated.
    """

    check: str
    inputs: Sequence[tuple[str, Any]]
    draw_output: ReleaseProgram
    epsilon: float
    describe_output: Callable[[Any], str] = str
    note: str = ""
    stated_channel: Callable[[], Sequence[Sequence[Fraction]]] | None = None


@dataclass(frozen=True)
class Subject:
    """A privacy guarantee that can be audited.

    Parameters
    ----------
    name : str
    epsilon, delta : float
        What is promised between the inputs of every pair.
    release : callable
        An input and a random source to everything that is released. Foreign programs ignore the
        source and draw from their own.
    pairs : sequence of Pair
    checks : sequence of EnumerableCheck
        Parts with finitely many outputs.
    shared : int, default 1
        By how many noisy numbers the loss of a record is shared; the more, the more samples it
        takes to find one that is too large. Only what an audit says about its power depends on it;
        with 0, for noise that is unlike Laplace's, it says nothing.
    """

    name: str
    epsilon: float
    delta: float
    release: ReleaseProgram
    pairs: Sequence[Pair] = ()
    checks: Sequence[EnumerableCheck] = ()
    shared: int = 1

    def __post_init__(self) -> None:
        # a NaN or infinite epsilon could never be violated
        if not 0 <= self.epsilon < math.inf:
            raise PrivacyError(f"epsilon is {self.epsilon!r}; an audit needs a number from 0 on")
        if not 0 <= self.delta < 1:
            raise PrivacyError(f"delta is {self.delta!r}; it must be at least 0 and below 1")
        if not self.pairs and not self.checks:
            raise SchemaError(f"{self.name}: give at least one pair of neighbouring inputs")
