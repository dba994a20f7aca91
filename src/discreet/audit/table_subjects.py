"""Subjects that release something about a table: estimators, federated rounds, foreign objects.

Everything that runs is a small frozen value, so that it can be sent to another process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.audit.artefact import capture_release
from discreet.audit.neighbours import (
    convert_to_columns,
    make_add_pairs,
    make_corner_record,
    make_replace_pairs,
)
from discreet.audit.subject import Pair, Subject
from discreet.audit.worst_case_tables import make_worst_case_pairs
from discreet.central.smooth import STATISTIC_PAIRS
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy.guarantee import format_rounded_up
from discreet.randomness import Random
from discreet.schema.schema import Numeric, Schema

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest

__all__ = [
    "make_classifier_subject",
    "make_function_subject",
    "make_manifest_subject",
    "make_noise_subject",
]

TABLE_ROWS = 24
"""Records in the tables that are compared."""


@dataclass(frozen=True)
class ForeignProgram:
    """Any callable of one input; its errors and warnings are released, too."""

    function: Callable[[Any], Any]

    def __call__(self, program_input: Any, random: Random) -> Any:
        """Result or error, and warnings."""
        return capture_release(lambda: self.function(program_input))


def make_function_subject(
    function: Callable[[Any], Any],
    pairs: Iterable[Pair | tuple[Any, Any]],
    epsilon: float,
    delta: float = 0.0,
) -> Subject:
    """Make the subject of any callable that claims a guarantee.

    Parameters
    ----------
    function : callable
        One input to what is released; it draws from a source of its own. Several processes need
        one that is defined at the top of a module.
    pairs : iterable of Pair or of two inputs
        Neighbours.
    epsilon, delta : float
        What is claimed.

    Examples
    --------
    >>> from discreet.audit import audit, make_function_subject
    >>> audit(make_function_subject(lambda count: count, [(100, 101)], epsilon=1.0)).broken
    True
    """
    return Subject(
        getattr(function, "__name__", type(function).__name__),
        epsilon,
        delta,
        ForeignProgram(function),
        [
            pair if isinstance(pair, Pair) else Pair("the first input", "the second", *pair)
            for pair in pairs
        ],
    )


@dataclass(frozen=True)
class ClassifierFit:
    """Fits a clone of a classifier; releases its fitted attributes and predictions."""

    classifier: Any
    probe: Any

    def __call__(self, table_and_classes: Any) -> Any:
        """Attributes that end in ``_``, and probabilities of the probe."""
        from sklearn.base import clone

        from discreet.estimators.fit_history import isolated_fit_history

        X, y = table_and_classes
        with isolated_fit_history():  # warnings about repeated fits are not part of the release
            fitted_classifier = clone(self.classifier).fit(X, y)
        released_values = {
            name: attribute_value
            for name, attribute_value in vars(fitted_classifier).items()
            if name.endswith("_")
        }
        if self.probe is not None and hasattr(fitted_classifier, "predict_proba"):
            released_values["probabilities"] = fitted_classifier.predict_proba(self.probe)
        return released_values


def make_classifier_subject(
    classifier: Any,
    pairs: Iterable[Pair | tuple[Any, Any]] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    probe: Any = None,
) -> Subject:
    """Make the subject of a scikit-learn-like classifier: fitted attributes, errors, warnings.

    Parameters
    ----------
    classifier : object
        With ``get_params``, ``set_params`` and ``fit``.
    pairs : iterable of Pair, optional
        Of inputs ``(X, y)``. Left out, they are made from the classifier's ``schema``; for the
        methods ``"smooth"`` and ``"trimmed"`` also from its other parameters
        (:mod:`discreet.audit.worst_case_tables`).
    epsilon, delta : float, optional
        What is claimed; its parameters of these names if not given.
    probe : array, optional
        Rows whose predicted probabilities are released, too.
    """
    estimator_params = classifier.get_params(deep=False)
    claimed_epsilon = estimator_params.get("epsilon") if epsilon is None else epsilon
    if claimed_epsilon is None or not 0 < claimed_epsilon < math.inf:
        raise PrivacyError(f"epsilon is {claimed_epsilon!r}; state what is claimed with epsilon=")
    schema = estimator_params.get("schema")
    if pairs is None and schema is None:
        raise SchemaError("give pairs of neighbouring tables (X, y), or a classifier with a schema")
    if pairs is None:
        pairs, probe = _make_table_pairs(
            schema, [*make_add_pairs(schema, TABLE_ROWS), *make_worst_case_pairs(estimator_params)]
        )
    claimed_delta = float(estimator_params.get("delta") or 0.0) if delta is None else delta
    subject = make_function_subject(
        ClassifierFit(classifier, probe), pairs, float(claimed_epsilon), claimed_delta
    )
    method = estimator_params.get("method", "histogram")
    if method in STATISTIC_PAIRS:
        noise_shares = 0  # no one-sided event attains the ratio of two Cauchy laws
    else:
        noise_shares = 1 if schema is None else _count_noisy_numbers(schema, method != "histogram")
    name = f"{type(classifier).__name__}, epsilon {format_rounded_up(claimed_epsilon)}"
    return replace(subject, name=name, shared=noise_shares)


def _count_noisy_numbers(schema: Schema, with_moments: bool) -> int:
    """Count the noisy numbers a record affects: a class count, a cell or moments per feature."""
    return 1 + sum(
        2 + feature.optional if with_moments and isinstance(feature, Numeric) else 1
        for feature in schema.features
    )


def _make_table_pairs(schema: Schema, pairs: Iterable[Pair]) -> tuple[list[Pair], Any]:
    def make_table(rows: Any) -> tuple[Any, Any]:
        columns, classes = convert_to_columns(schema, rows)
        cell_matrix = np.empty((len(classes), len(columns)), dtype=object)
        for column_index, column in enumerate(columns.values()):
            cell_matrix[:, column_index] = column
        return cell_matrix, classes

    table_pairs = [
        replace(pair, first=make_table(pair.first), second=make_table(pair.second))
        for pair in pairs
    ]
    return table_pairs, make_table(
        [make_corner_record(schema, False), make_corner_record(schema, True)]
    )[0]


@dataclass(frozen=True)
class RehearsedRound:
    """A federated round in one process; the first provider's table is the input."""

    manifest: Any

    def __call__(self, view_and_rows: tuple[str, Any], random: Random) -> Any:
        """What is published, or what t colluding parties are left with."""
        from discreet.federated.simulation import RoundTerms, simulate_horizontal, simulate_vertical

        manifest, (view, rows) = self.manifest, view_and_rows
        encoded_table = _encode_rows(manifest.schema, rows)
        if view == "left":
            shares = [
                manifest.draw_noise_share(manifest.layout, random)
                for _ in range(manifest.noise_party_count - manifest.tolerated)
            ]
            return [
                int(noisy_total)
                for noisy_total in manifest.layout.count_rows(*encoded_table) + sum(shares)
            ]
        round_terms = RoundTerms(
            manifest.schema,
            manifest.requests,
            manifest.epsilon,
            manifest.mode,
            manifest.aggregation,
            manifest.tolerated,
        )
        throwaway_key = _generate_throwaway_key() if manifest.aggregation == "paillier" else None
        if manifest.partition == "horizontal":
            other_table = _encode_rows(
                manifest.schema, [make_corner_record(manifest.schema, False)] * 3
            )
            provider_tables = [encoded_table, *[other_table] * (len(manifest.providers) - 1)]
            published_statistics, _ = simulate_horizontal(
                round_terms, provider_tables, random, throwaway_key
            )
        else:
            providers = len(manifest.providers)
            published_statistics, _ = simulate_vertical(
                round_terms, *encoded_table, random, throwaway_key, providers=providers
            )
        return published_statistics


@cache
def _generate_throwaway_key() -> Any:
    """Generate a key of the shortest allowed length; the noise does not depend on it."""
    from discreet.federated.crypto.paillier import generate_key

    return generate_key(2048)


def _encode_rows(schema: Schema, rows: Any) -> tuple[dict[str, Any], Any]:
    from discreet.schema.cells import encode_classes

    columns, classes = convert_to_columns(schema, rows)
    return columns, encode_classes(schema, classes)


def make_manifest_subject(manifest: Manifest) -> Subject:
    """Make the subject of a federated round: what is published, and the noise left after t shares.

    Parameters
    ----------
    manifest : Manifest
        Signed or not. The round is run by new parties in one process, with masks or with
        Paillier, as the manifest says.
    """
    guarantee = manifest.guarantee
    if math.isinf(guarantee.epsilon):
        raise PrivacyError("this manifest promises no epsilon, so there is nothing to audit")
    make_pairs = make_add_pairs if guarantee.neighbours == "add-remove" else make_replace_pairs
    pairs = [
        Pair(
            f"{view_words}: {row_pair.first_name}",
            row_pair.second_name,
            (view, row_pair.first),
            (view, row_pair.second),
        )
        for view, view_words in (
            ("left", f"totals with {manifest.tolerated} shares of noise known"),
            ("published", "what is published"),
        )
        for row_pair in make_pairs(manifest.schema, TABLE_ROWS)
    ]
    return Subject(
        f"{manifest.partition} round {manifest.hash.hex()[:12]}",
        guarantee.epsilon,
        guarantee.delta,
        RehearsedRound(manifest),
        pairs,
        shared=_count_noisy_numbers(manifest.schema, with_moments=False),
    )


@dataclass(frozen=True)
class NoisyCount:
    """A count with the noise that one step of a central budget gives."""

    noise: Any

    def __call__(self, count: int, random: Random) -> int:
        """The released number."""
        return int(self.noise.add(np.array([count]), random)[0])


NOISES = ("discrete-laplace", "discrete-gaussian")


def make_noise_subject(name: str, epsilon: float, delta: float = 1e-6) -> Subject:
    """Make the subject of a count of sensitivity 1 with the noise of :mod:`discreet.central`.

    Parameters
    ----------
    name : {"discrete-laplace", "discrete-gaussian"}
    epsilon : float
    delta : float
        For the Gaussian.
    """
    from discreet.central.budget import Budget

    central_budget = Budget(epsilon, delta if name == "discrete-gaussian" else 0.0)
    noise = central_budget.spend_on_noise("count", central_budget.total)
    pair = Pair("101 people", "100 people", 101, 100)
    return Subject(
        f"{name}, epsilon {format_rounded_up(epsilon)}",
        epsilon,
        central_budget.delta,
        NoisyCount(noise),
        [pair],
    )
