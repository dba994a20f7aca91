"""The classifiers of a comparison: whom each requires to be trusted, and how it is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import SchemaError
from discreet.schema.schema import Schema

__all__ = ["METHODS", "TRUST_MODELS", "ComparedMethod", "TrustModel", "select_methods"]

CLASS_EPSILON_SHARE = 0.3
"""Share of a survey's epsilon that the class gets, at least."""
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


@dataclass(frozen=True)
class ComparedMethod:
    """A classifier trained with a given total epsilon per person."""

    name: str
    trust: str
    description: str
    make_estimator: Callable[[Schema, float, int, int], Any]  # schema, epsilon, bins, seed
    is_default: bool = False


def _make_central_factory(method: str) -> Callable[[Schema, float, int, int], Any]:
    def make_estimator(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
        from discreet.estimators import CentralNB

        return CentralNB(epsilon, method=method, schema=schema, random_state=seed)  # type: ignore[arg-type]

    return make_estimator


def _make_local(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
    from discreet.estimators import LocalNB

    return LocalNB(epsilon, schema=schema, bins=bins, random_state=seed)


def _make_published_factory(oracle: str) -> Callable[[Schema, float, int, int], Any]:
    """The plan and the estimator of Yilmaz, Al-Rubaie, Chang with one of their oracles."""

    def make_estimator(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
        return _make_local(schema, epsilon, bins, seed).set_params(
            oracle=oracle,
            plan="paper",
            postprocess="paper",
            assignment="draw",
            theta=0.25 if oracle == "the" else None,
        )

    return make_estimator


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


def _make_survey_factory(groups: str | None) -> Callable[[Schema, float, int, int], Any]:
    def make_estimator(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
        from discreet.estimators import SurveyNB
        from discreet.survey.questionnaire import Questionnaire

        sheet_bins = min(bins, MAX_SHEET_BINS)
        questionnaire = Questionnaire.from_schema(
            schema, Fraction(1, 2), None, "unrelated", sheet_bins, []
        )
        answer_counts = [questionnaire.cells[name].size for name in schema.names] + [
            len(schema.classes)
        ]
        thetas = compute_thetas(answer_counts if groups else [math.prod(answer_counts)], epsilon)
        return SurveyNB(thetas, groups=groups, bins=sheet_bins, schema=schema, random_state=seed)

    return make_estimator


def _make_federated_factory(numeric: str) -> Callable[[Schema, float, int, int], Any]:
    def make_estimator(schema: Schema, epsilon: float, bins: int, seed: int) -> Any:
        from discreet.estimators import FederatedNB

        return FederatedNB(
            epsilon,
            providers=3,
            numeric=numeric,  # type: ignore[arg-type]
            bins=bins,
            schema=schema,
            random_state=seed,
        )

    return make_estimator


METHODS = {
    method.name: method
    for method in (
        ComparedMethod(
            "histogram",
            "central",
            "noisy tables, the default",
            _make_central_factory("histogram"),
            True,
        ),
        ComparedMethod(
            "moments",
            "central",
            "noisy means and variances",
            _make_central_factory("moments"),
            True,
        ),
        ComparedMethod("smooth", "central", "smooth sensitivity", _make_central_factory("smooth")),
        ComparedMethod("global", "central", "global sensitivity", _make_central_factory("global")),
        ComparedMethod(
            "masks", "federated", "three organisations", _make_federated_factory("bins"), True
        ),
        ComparedMethod(
            "masked-moments", "federated", "the same, moments", _make_federated_factory("moments")
        ),
        ComparedMethod(
            "questions",
            "survey",
            "each question randomized alone",
            _make_survey_factory("each"),
            True,
        ),
        ComparedMethod(
            "sheet", "survey", "the whole sheet randomized at once", _make_survey_factory(None)
        ),
        ComparedMethod("auto", "local", "the default", _make_local, True),
        *(
            ComparedMethod(
                oracle,
                "local",
                f"{oracle.upper()} with the published plan",
                _make_published_factory(oracle),
                oracle in ("de", "oue"),
            )
            for oracle in ("de", "sue", "oue", "she", "the")
        ),
    )
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
