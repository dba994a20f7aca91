"""The classifiers of a comparison: whom each requires to be trusted, and how it is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.schema import Schema

__all__ = ["METHODS", "TRUST", "Method", "Trust", "defaults"]

FOR_CLASS = 0.3
"""Share of a survey's epsilon that the class gets, at least."""


@dataclass(frozen=True)
class Trust:
    """A trust model in words: who must be trusted, and what a person sends to whom."""

    name: str
    short: str
    trusted: str
    sends: str


TRUST = {
    one.name: one
    for one in (
        Trust(
            "central",
            "curator",
            "one curator is trusted with every record",
            "the record, to the curator",
        ),
        Trust(
            "federated",
            "own holder",
            "each organisation is trusted with its own people",
            "nothing new: organisations send hidden, noisy counts",
        ),
        Trust("survey", "nobody", "nobody is trusted", "a randomized sheet with all answers"),
        Trust("local", "nobody", "nobody is trusted", "a randomized report about one question"),
    )
}
"""From the most trust to the least."""


@dataclass(frozen=True)
class Method:
    """A classifier trained with a given total epsilon per person."""

    name: str
    trust: str
    words: str
    make: Callable[[Schema, float, int, int], Any]  # schema, epsilon, bins, seed
    default: bool = False


def _central(method: str) -> Callable[[Schema, float, int, int], Any]:
    def make(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
        from discreet.estimators import CentralNB

        return CentralNB(epsilon, method=method, schema=schema, random_state=seed)  # type: ignore[arg-type]

    return make


def _local(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
    from discreet.estimators import LocalNB

    return LocalNB(epsilon, schema=schema, bins=bins, random_state=seed)


def _published(oracle: str) -> Callable[[Schema, float, int, int], Any]:
    """The plan and the estimator of Yilmaz, Al-Rubaie, Chang with one of their oracles."""

    def make(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
        return _local(schema, epsilon, bins, seed).set_params(
            oracle=oracle,
            plan="paper",
            postprocess="paper",
            assignment="draw",
            theta=0.25 if oracle == "the" else None,
        )

    return make


def thetas_for(sizes: list[int], epsilon: float) -> list[Fraction]:
    """Compute the thetas that split epsilon among groups with these numbers of possible answers.

    The class comes last and gets three tenths, the others equal parts of the rest: its answer is
    in every table. From epsilon = ln(1 + theta / ((1 - theta) w)), w = 1 / size:
    theta = g / (1 + g) with g = w (exp(epsilon) - 1); rounded down, so that the total is never
    above epsilon.

    Parameters
    ----------
    sizes : list of int
    epsilon : float

    Examples
    --------
    >>> [float(one) for one in thetas_for([2], 1.0986122886681098)]  # ln 3
    [0.5]
    """
    others = len(sizes) - 1
    of_class = max(FOR_CLASS, 1 / len(sizes))
    shares = [(1 - of_class) / max(others, 1)] * others + [of_class]
    odds = [math.expm1(share * epsilon) / size for share, size in zip(shares, sizes, strict=True)]
    steps = 1 << 40
    return [Fraction(math.floor(steps * one / (1 + one)), steps) for one in odds]


def _survey(groups: str | None) -> Callable[[Schema, float, int, int], Any]:
    def make(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
        from discreet.estimators import SurveyNB
        from discreet.survey.questionnaire import Questionnaire

        few = min(bins, 4)  # every cell of a sheet costs; four bins are what a form would offer
        asked = Questionnaire.of(schema, Fraction(1, 2), None, "unrelated", few, [])
        sizes = [asked.cells[name].size for name in schema.names] + [len(schema.classes)]
        thetas = thetas_for(sizes if groups else [math.prod(sizes)], epsilon)
        return SurveyNB(thetas, groups=groups, bins=few, schema=schema, random_state=seed)

    return make


def _federated(numeric: str) -> Callable[[Schema, float, int, int], Any]:
    def make(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
        from discreet.estimators import FederatedNB

        return FederatedNB(
            epsilon,
            providers=3,
            numeric=numeric,  # type: ignore[arg-type]
            bins=bins,
            schema=schema,
            random_state=seed,
        )

    return make


METHODS = {
    one.name: one
    for one in (
        Method("histogram", "central", "noisy tables, the default", _central("histogram"), True),
        Method("moments", "central", "noisy means and variances", _central("moments"), True),
        Method("smooth", "central", "smooth sensitivity", _central("smooth")),
        Method("global", "central", "global sensitivity", _central("global")),
        Method("masks", "federated", "three organisations", _federated("bins"), True),
        Method("masked-moments", "federated", "the same, moments", _federated("moments")),
        Method("questions", "survey", "each question randomized alone", _survey("each"), True),
        Method("sheet", "survey", "the whole sheet randomized at once", _survey(None)),
        Method("auto", "local", "the default", _local, True),
        *(
            Method(oracle, "local", f"{oracle.upper()} with the published plan", _published(oracle),
                   oracle in ("de", "oue"))
            for oracle in ("de", "sue", "oue", "she", "the")
        ),
    )
}  # fmt: skip
"""Methods by name; those that are not defaults run only if they are named."""


def defaults(trust: tuple[str, ...]) -> list[str]:
    """The methods that are tried if none are named.

    Parameters
    ----------
    trust : tuple of str
        Trust models, see ``TRUST``.
    """
    return [name for name, one in METHODS.items() if one.default and one.trust in trust]
