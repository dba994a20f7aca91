"""One question of a plan: features, mechanism, and its JSON form."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet.arrays import Booleans, Integers
from discreet.collection.protocol import MAX_ENUMERATED_OUTPUTS, MAX_EXACT_INTEGER
from discreet.errors import PrivacyError, SchemaError
from discreet.files.documents import Body
from discreet.mechanisms.frequency import DE, SHE, SS, FrequencyOracle, make_oracle
from discreet.mechanisms.mean import MEAN_ORACLES, LaplaceMean, MeanOracle
from discreet.privacy.shuffling import Blanket
from discreet.statistics.candidate import CandidateModel, CandidateModelBody

__all__ = ["Question", "QuestionBody", "make_mean_oracle"]

MAX_INTEGERS_PER_REPORT = 1 << 19
"""Integers in one report; a longer report would exceed what a collector accepts."""


VERDICTS = 2
"""Cells of a question that judges a model: wrong and right."""


@dataclass(frozen=True)
class Question:
    """One question of a plan: a :class:`~discreet.collection.protocol.Channel`.

    Parameters
    ----------
    features : tuple of str
        Which features are asked together with the class; none for the class alone.
    mechanism : FrequencyOracle or MeanOracle
        A frequency oracle reports the cell (class, value, value, …), a mean oracle the numbers
        themselves, in a vector that has one place for each feature and class.
    weight : int
        Share of the respondents who answer it, relative to the other questions.
    power : {0, 1, 2}
        0 for cells; 1 for numbers t scaled to [-1, 1], 2 for their squares 2 t^2 - 1.
    candidate : CandidateModel, optional
        Of a question that judges a model: the device reports cell 1 where it classifies the
        record right and cell 0 where not, and nothing else about the features.

    Attributes
    ----------
    width : int
        How many integers an answer has.
    size : int
        How many integers the answers add up to.
    """

    features: tuple[str, ...]
    mechanism: FrequencyOracle | MeanOracle
    weight: int
    power: Literal[0, 1, 2] = 0
    candidate: CandidateModel | None = None
    width: int = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.weight, bool) or not isinstance(self.weight, int) or self.weight < 1:
            raise SchemaError(f"its weight is {self.weight!r}; give a whole number of at least 1")
        if len(set(self.features)) < len(self.features):
            raise SchemaError("it asks for a feature twice")
        if isinstance(self.mechanism, FrequencyOracle) != (self.power == 0):
            expected_kind = "a frequency oracle" if self.power == 0 else "a mean oracle"
            raise SchemaError(
                f"power {self.power} needs {expected_kind}, not {self.mechanism.name}"
            )
        if self.candidate is not None and not (
            self.power == 0
            and self.mechanism.size == VERDICTS
            and {*self.features} == {*self.candidate.tables}
        ):
            raise SchemaError(
                "a question that judges a model asks for the features of the model, with power 0, "
                "and reports one of two cells: wrong or right"
            )
        object.__setattr__(self, "width", self.mechanism.width)
        sums_per_value = len(self.mechanism.units) if isinstance(self.mechanism, MeanOracle) else 1
        object.__setattr__(self, "size", sums_per_value * self.mechanism.size)
        if self.width > MAX_INTEGERS_PER_REPORT:
            raise SchemaError(
                f"a report of {self.mechanism.name} would hold {self.width} numbers, at most "
                f"{MAX_INTEGERS_PER_REPORT} can be sent; use the oracle olh or hr for this number "
                f"of cells"
            )
        if isinstance(self.mechanism, LaplaceMean) and self.mechanism.active != len(self.features):
            # with fewer, a device could only answer for some records, and silence would tell which
            raise PrivacyError(
                f"laplace is set up for {self.mechanism.active} numbers that differ from zero, but "
                f"{len(self.features)} features are asked at once"
            )

    @property
    def name(self) -> str:
        """Short name of the mechanism."""
        return self.mechanism.name

    @property
    def max_magnitude(self) -> int:
        """Largest absolute value of an integer of an answer."""
        return self.mechanism.max_magnitude

    @property
    def epsilon(self) -> float:
        """Loss of one answer."""
        return self.mechanism.epsilon

    @cached_property
    def blanket(self) -> Blanket:
        """The privacy blanket: noise of other people that hides a shuffled answer."""
        if isinstance(self.mechanism, FrequencyOracle):
            return self.mechanism.blanket()
        return Blanket.from_epsilon(self.mechanism.epsilon)

    @cached_property
    def outputs(self) -> int | None:
        """Number of distinct answers; None if there are more than ``MAX_ENUMERATED_OUTPUTS``."""
        if isinstance(self.mechanism, SHE):
            return None
        if isinstance(self.mechanism, FrequencyOracle):
            output_count = sum(
                1 for _ in itertools.islice(self.mechanism.outputs(), MAX_ENUMERATED_OUTPUTS + 1)
            )
        else:
            output_count = self.mechanism._count_outputs()
        return output_count if output_count <= MAX_ENUMERATED_OUTPUTS else None

    def find_faulty(self, matrix: Integers) -> Booleans:
        """Flag the answers (rows) that no respondent could have sent."""
        is_too_large = (matrix > MAX_EXACT_INTEGER) | (matrix < -MAX_EXACT_INTEGER)
        # a mechanism's own checks may add and subtract, so nothing that could wrap reaches them
        is_invalid: Booleans = self.mechanism.find_faulty(
            np.where(is_too_large, 0, matrix)
        ) | is_too_large.any(axis=1)
        return is_invalid

    def tally(self, matrix: Integers) -> Integers:
        """What valid answers add up to."""
        if isinstance(self.mechanism, FrequencyOracle):
            return self.mechanism.tally(self.mechanism.decode(matrix))
        return self.mechanism.tally(matrix)

    def is_possible(self, sums: Integers, answer_count: int) -> bool:
        """Whether this number of answers can add up to these sums."""
        mechanism, sum_list = self.mechanism, [int(number) for number in sums]
        if isinstance(mechanism, SHE):
            return max(map(abs, sum_list)) <= mechanism.max_magnitude * answer_count
        if isinstance(mechanism, FrequencyOracle):
            # an answer of direct encoding or subset selection is that many of the cells
            has_exact_total = (
                type(mechanism) not in (DE, SS) or sum(sum_list) == self.width * answer_count
            )
            return has_exact_total and min(sum_list) >= 0 and max(sum_list) <= answer_count
        sums_by_unit = np.asarray(sums).reshape(len(mechanism.units), -1)
        return all(
            max(map(abs, unit_sums.tolist())) <= max_per_answer * answer_count
            for unit_sums, max_per_answer in zip(
                sums_by_unit, mechanism._get_unit_limits(), strict=True
            )
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        candidate = {} if self.candidate is None else {"candidate": self.candidate.to_body()}
        return {
            **candidate,
            "features": list(self.features),
            "power": self.power,
            "weight": self.weight,
            "mechanism": self.mechanism.name,
            "size": self.mechanism.size,
            "epsilon": self.mechanism.epsilon,
            "theta": getattr(self.mechanism, "theta", None),
            "parameters": self.mechanism.get_parameters(),
        }


class QuestionBody(Body):
    """Shape of a question on disk."""

    features: list[str]
    power: Literal[0, 1, 2]
    weight: int
    mechanism: str
    size: int
    epsilon: float
    theta: float | None
    parameters: dict[str, Any]
    candidate: CandidateModelBody | None = None

    def to_question(self) -> Question:
        """Convert to a Question; the probabilities must be those of its epsilon."""
        mechanism: FrequencyOracle | MeanOracle
        if self.power == 0:
            mechanism = make_oracle(
                self.mechanism, self.size, self.epsilon, self.theta, self.parameters
            )
        else:
            mechanism = make_mean_oracle(self.mechanism, self.parameters)
        candidate = None if self.candidate is None else self.candidate.to_candidate()
        return Question(tuple(self.features), mechanism, self.weight, self.power, candidate)


def make_mean_oracle(name: str, parameters: Mapping[str, Any]) -> MeanOracle:
    """Make the mean oracle that a plan names; its probabilities must be those of its epsilon."""
    if name not in MEAN_ORACLES:
        raise SchemaError(f"mechanism is {name!r}; write one of {', '.join(MEAN_ORACLES)}")
    oracle_class: Any = MEAN_ORACLES[name]
    accepted_parameters = inspect.signature(oracle_class).parameters
    oracle_parameters = {
        key: value for key, value in parameters.items() if key in accepted_parameters
    }
    try:
        candidates = [
            oracle_class(**oracle_parameters, **window)
            for window in _list_windows(accepted_parameters, parameters)
        ]
    except TypeError:
        raise SchemaError(f"the parameters of {name} lack its epsilon or size") from None
    for mechanism in candidates:
        if mechanism.get_parameters() == dict(parameters):
            return mechanism  # type: ignore[no-any-return]
    raise PrivacyError(f"the parameters of {name} are not those of its epsilon and size")


def _list_windows(
    accepted_parameters: Mapping[str, Any], parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """List the windows that a piecewise mechanism with these parameters may have."""
    if "window" not in accepted_parameters:
        return [{}]
    half_width = parameters.get("half")  # of a single number any window may be chosen
    chosen_windows = (
        [half_width] if isinstance(half_width, int) and not isinstance(half_width, bool) else []
    )
    return [{"window": window} for window in ("least", "published", *chosen_windows)]
