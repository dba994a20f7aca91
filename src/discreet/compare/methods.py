"""The classifiers of a comparison: whom each requires to be trusted, and how it is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from discreet.errors import SchemaError
from discreet.schema.schema import Schema

__all__ = ["METHODS", "TRUST_MODELS", "ComparedMethod", "TrustModel", "select_methods"]

CLASS_EPSILON_SHARE = 0.3
"""Share of a survey's epsilon that the class gets, at least."""
DEFAULT_METHODS = (
    "histogram", "histogram-delta", "moments", "masks", "questions", "auto", "de", "oue"
)  # fmt: skip
"""Methods that are tried if none are named."""
COMPARED_DELTA = 1e-6
"""Delta of the method that has one: far below one divided by the people of most tables."""
PAPER_BINS = 8
"""Bins of a number under the published plan, where nothing else is asked for."""
THETA_STEPS = 1 << 40
"""Denominator of the thetas, which are rounded down to it."""
MAX_SHEET_BINS = 4
"""Largest number of bins of a feature on a sheet: every cell costs, and a form has few boxes."""


@dataclass(frozen=True)
class TrustModel:
    """A trust model in words: who must be trusted, and what a person sends to whom."""

    name: str
    short_name: str
    trust_statement: str
    sent_data: str


TRUST_MODELS = {
    trust_model.name: trust_model
    for trust_model in (
        TrustModel(
            "central",
            "curator",
            "one curator is trusted with every record",
            "the record, to the curator",
        ),
        TrustModel(
            "federated",
            "own holder",
            "each organisation is trusted with its own people",
            "nothing new: organisations send hidden, noisy counts",
        ),
        TrustModel("survey", "nobody", "nobody is trusted", "a randomized sheet with all answers"),
        TrustModel(
            "local", "nobody", "nobody is trusted", "a randomized report about one question"
        ),
    )
}
"""From the most trust to the least."""


BinCount = int | Literal["auto"]
EstimatorFactory = Callable[[Schema, float, BinCount, int], Any]
"""Makes a classifier from a schema, epsilon, bins and a seed."""


@dataclass(frozen=True)
class ComparedMethod:
    """A classifier trained with a given total epsilon per person."""

    name: str
    trust: str
    description: str
    make_estimator: EstimatorFactory
    is_default: bool = False

    @property
    def delta(self) -> float:
        """The delta that it promises besides epsilon; most promise epsilon alone."""
        return COMPARED_DELTA if self.name.endswith("-delta") else 0.0


def _make_central(
    method: Any, schema: Schema, epsilon: float, bins: BinCount, seed: int, delta: float = 0.0
) -> Any:
    from discreet.estimators import CentralNB

    return CentralNB(epsilon, delta=delta, method=method, schema=schema, random_state=seed)


def _make_local(schema: Schema, epsilon: float, bins: BinCount, seed: int) -> Any:
    from discreet.estimators import LocalNB

    return LocalNB(epsilon, schema=schema, bins=bins, random_state=seed)


def _make_published(oracle: str, schema: Schema, epsilon: float, bins: BinCount, seed: int) -> Any:
    """The plan and the estimator of Yilmaz, Al-Rubaie, Chang with one of their oracles."""
    paper_bins = PAPER_BINS if bins == "auto" else bins
    return _make_local(schema, epsilon, paper_bins, seed).set_params(
        oracle=oracle,
        plan="paper",
        postprocess="paper",
        assignment="draw",
        theta=0.25 if oracle == "the" else None,
    )


def compute_thetas(sizes: list[int], epsilon: float) -> list[Fraction]:
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
    >>> [float(one) for one in compute_thetas([2], 1.0986122886681098)]  # ln 3
    [0.5]
    """
    feature_group_count = len(sizes) - 1
    class_share = max(CLASS_EPSILON_SHARE, 1 / len(sizes))
    shares = [(1 - class_share) / max(feature_group_count, 1)] * feature_group_count + [class_share]
    odds = [math.expm1(share * epsilon) / size for share, size in zip(shares, sizes, strict=True)]
    return [
        Fraction(math.floor(THETA_STEPS * group_odds / (1 + group_odds)), THETA_STEPS)
        for group_odds in odds
    ]


def _make_survey(
    groups: str | None, schema: Schema, epsilon: float, bins: BinCount, seed: int
) -> Any:
    from discreet.estimators import SurveyNB
    from discreet.survey.questionnaire import Questionnaire

    sheet_bins = MAX_SHEET_BINS if bins == "auto" else min(bins, MAX_SHEET_BINS)
    questionnaire = Questionnaire.from_schema(
        schema, Fraction(1, 2), None, "unrelated", sheet_bins, []
    )
    feature_sizes = [questionnaire.cells[name].size for name in schema.names]
    answer_counts = [*feature_sizes, len(schema.classes)]
    thetas = compute_thetas(answer_counts if groups else [math.prod(answer_counts)], epsilon)
    return SurveyNB(thetas, groups=groups, bins=sheet_bins, schema=schema, random_state=seed)


def _make_federated(numeric: Any, schema: Schema, epsilon: float, bins: BinCount, seed: int) -> Any:
    from discreet.estimators import FederatedNB

    return FederatedNB(
        epsilon, providers=3, numeric=numeric, bins=bins, schema=schema, random_state=seed
    )


METHOD_ROWS: list[tuple[str, str, str, EstimatorFactory]] = [
    ("histogram", "central", "noisy tables, the default", partial(_make_central, "histogram")),
    (
        "histogram-delta",
        "central",
        f"the same with a delta of {COMPARED_DELTA:g}",
        partial(_make_central, "histogram", delta=COMPARED_DELTA),
    ),
    ("moments", "central", "noisy means and variances", partial(_make_central, "moments")),
    ("smooth", "central", "smooth sensitivity", partial(_make_central, "smooth")),
    ("global", "central", "global sensitivity", partial(_make_central, "global")),
    ("masks", "federated", "three organisations", partial(_make_federated, "bins")),
    ("masked-moments", "federated", "the same, moments", partial(_make_federated, "moments")),
    ("questions", "survey", "each question randomized alone", partial(_make_survey, "each")),
    ("sheet", "survey", "the whole sheet randomized at once", partial(_make_survey, None)),
    ("auto", "local", "the default", _make_local),
    *(
        (
            oracle,
            "local",
            f"{oracle.upper()} with the published plan",
            partial(_make_published, oracle),
        )
        for oracle in ("de", "sue", "oue", "she", "the")
    ),
]
"""Name, trust model, description and factory of every method."""
METHODS = {
    name: ComparedMethod(name, trust, description, make_estimator, name in DEFAULT_METHODS)
    for name, trust, description, make_estimator in METHOD_ROWS
}
"""Methods by name; those that are not defaults run only if they are named."""


def select_methods(names_text: str | None, trust_text: str) -> tuple[str, ...]:
    """Select the methods to compare.

    Parameters
    ----------
    names_text : str, optional
        Names separated by commas, or all; the defaults of the trust models if None.
    trust_text : str
        Trust models separated by commas, see ``TRUST_MODELS``.
    """
    trust_models = _split_names(trust_text)
    for trust_model in trust_models or [""]:
        if trust_model not in TRUST_MODELS:
            raise SchemaError(
                f"unknown trust model {trust_model!r}; write some of {', '.join(TRUST_MODELS)}"
            )
    fitting_methods = {
        name: method for name, method in METHODS.items() if method.trust in trust_models
    }
    if names_text is None:
        return tuple(name for name, method in fitting_methods.items() if method.is_default)
    if names_text == "all":
        return tuple(fitting_methods)
    method_names = _split_names(names_text)
    for method_name in method_names:
        if method_name not in METHODS:
            raise SchemaError(
                f"unknown method {method_name!r}; write all, or some of {', '.join(METHODS)}"
            )
    selected_names = tuple(name for name in dict.fromkeys(method_names) if name in fitting_methods)
    if not selected_names:
        raise SchemaError(
            f"none of {names_text} belongs to the trust models {', '.join(trust_models)}; write "
            f"some of {', '.join(fitting_methods)}, or another --trust"
        )
    return selected_names


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
