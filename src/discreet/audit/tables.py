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

from discreet.audit.artefact import released
from discreet.audit.hardest import hardest
from discreet.audit.neighbours import added, columns_of, corner, replaced
from discreet.audit.subject import Pair, Subject
from discreet.central.smooth import PAIRS
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy import rounded_up
from discreet.randomness import Random
from discreet.schema import Numeric, Schema

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest

__all__ = ["of_classifier", "of_function", "of_manifest", "of_noise"]

ROWS = 24
"""Records in the tables that are compared."""


@dataclass(frozen=True)
class Foreign:
    """Any callable of one input; its errors and warnings are released, too."""

    function: Callable[[Any], Any]

    def __call__(self, given: Any, random: Random) -> Any:
        """Result or error, and warnings."""
        return released(lambda: self.function(given))


def of_function(
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
    >>> from discreet.audit import audit, of_function
    >>> audit(of_function(lambda count: count, [(100, 101)], epsilon=1.0)).broken
    True
    """
    return Subject(
        getattr(function, "__name__", type(function).__name__),
        epsilon,
        delta,
        Foreign(function),
        [_pair(one) for one in pairs],
    )


def _pair(given: Any) -> Pair:
    return given if isinstance(given, Pair) else Pair("the first input", "the second", *given)


@dataclass(frozen=True)
class Fitting:
    """Fits a clone of a classifier; releases its fitted attributes and predictions."""

    classifier: Any
    probe: Any

    def __call__(self, given: Any) -> Any:
        """Attributes that end in ``_``, and probabilities of the probe."""
        from sklearn.base import clone

        from discreet.estimators.fit_history import isolated_fit_history

        X, y = given
        with isolated_fit_history():  # warnings about repeated fits are not part of the release
            fitted = clone(self.classifier).fit(X, y)
        learnt = {name: one for name, one in vars(fitted).items() if name.endswith("_")}
        if self.probe is not None and hasattr(fitted, "predict_proba"):
            learnt["probabilities"] = fitted.predict_proba(self.probe)
        return learnt


def of_classifier(
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
        (:mod:`discreet.audit.hardest`).
    epsilon, delta : float, optional
        What is claimed; its parameters of these names if not given.
    probe : array, optional
        Rows whose predicted probabilities are released, too.
    """
    params = classifier.get_params(deep=False)
    claimed = params.get("epsilon") if epsilon is None else epsilon
    if claimed is None or not 0 < claimed < math.inf:
        raise PrivacyError(f"epsilon is {claimed!r}; state what is claimed with epsilon=")
    schema = params.get("schema")
    if pairs is None and schema is None:
        raise SchemaError("give pairs of neighbouring tables (X, y), or a classifier with a schema")
    if pairs is None:
        pairs, probe = _table_pairs(schema, [*added(schema, ROWS), *hardest(params)])
    spent = float(params.get("delta") or 0.0) if delta is None else delta
    made = of_function(Fitting(classifier, probe), pairs, float(claimed), spent)
    name = f"{type(classifier).__name__}, epsilon {rounded_up(claimed)}"
    return replace(made, name=name, shared=_shared(schema, params.get("method", "histogram")))


def _shared(schema: Schema | None, method: str) -> int:
    if method in PAIRS:  # no one-sided event attains the ratio of two Cauchy laws
        return 0
    return 1 if schema is None else _numbers(schema, method != "histogram")


def _numbers(schema: Schema, moments: bool) -> int:
    """Count the noisy numbers a record affects: a class count, a cell or moments per feature."""
    of_number = {True: 3, False: 2} if moments else {True: 1, False: 1}
    return 1 + sum(
        of_number[one.optional] if isinstance(one, Numeric) else 1 for one in schema.features
    )


def _table_pairs(schema: Schema, pairs: Iterable[Pair]) -> tuple[list[Pair], Any]:
    def table(rows: Any) -> tuple[Any, Any]:
        columns, classes = columns_of(schema, rows)
        whole = np.empty((len(classes), len(columns)), dtype=object)
        for place, column in enumerate(columns.values()):
            whole[:, place] = column
        return whole, classes

    found = [replace(one, first=table(one.first), second=table(one.second)) for one in pairs]
    return found, table([corner(schema, False), corner(schema, True)])[0]


@dataclass(frozen=True)
class Round:
    """A federated round in one process; the first provider's table is the input."""

    manifest: Any

    def __call__(self, given: tuple[str, Any], random: Random) -> Any:
        """What is published, or what t colluding parties are left with."""
        from discreet.federated.simulation import Terms, simulate_horizontal, simulate_vertical

        manifest, (view, rows) = self.manifest, given
        table = _codes(manifest.schema, rows)
        if view == "left":
            shares = [
                manifest.share(manifest.layout, random)
                for _ in range(manifest.sharers - manifest.tolerated)
            ]
            return [int(one) for one in manifest.layout.vector(*table) + sum(shares)]
        terms = Terms(
            manifest.schema,
            manifest.wanted,
            manifest.epsilon,
            manifest.mode,
            manifest.aggregation,
            manifest.tolerated,
        )
        key = _throwaway() if manifest.aggregation == "paillier" else None
        if manifest.partition == "horizontal":
            other = _codes(manifest.schema, [corner(manifest.schema, False)] * 3)
            parts = [table, *[other] * (len(manifest.providers) - 1)]
            published, _ = simulate_horizontal(terms, parts, random, key)
        else:
            providers = len(manifest.providers)
            published, _ = simulate_vertical(terms, *table, random, key, providers=providers)
        return published


@cache
def _throwaway() -> Any:
    """Generate a key of the shortest allowed length; the noise does not depend on it."""
    from discreet.federated.crypto.paillier import generate

    return generate(2048)


def _codes(schema: Schema, rows: Any) -> tuple[dict[str, Any], Any]:
    from discreet.encoding import class_codes

    columns, classes = columns_of(schema, rows)
    return columns, class_codes(schema, classes)


def of_manifest(manifest: Manifest) -> Subject:
    """Make the subject of a federated round: what is published, and the noise left after t shares.

    Parameters
    ----------
    manifest : Manifest
        Signed or not. The round is run by new parties in one process, with masks or with
        Paillier, as the manifest says.
    """
    promise = manifest.guarantee
    if math.isinf(promise.epsilon):
        raise PrivacyError("this manifest promises no epsilon, so there is nothing to audit")
    make = added if promise.neighbours == "add-remove" else replaced
    pairs = [
        Pair(f"{words}: {one.one}", one.other, (view, one.first), (view, one.second))
        for view, words in (
            ("left", f"totals with {manifest.tolerated} shares of noise known"),
            ("published", "what is published"),
        )
        for one in make(manifest.schema, ROWS)
    ]
    name = f"{manifest.partition} round {manifest.hash.hex()[:12]}"
    numbers = _numbers(manifest.schema, moments=False)
    return Subject(name, promise.epsilon, promise.delta, Round(manifest), pairs, shared=numbers)


@dataclass(frozen=True)
class NoisyCount:
    """A count with the noise that one step of a central budget gives."""

    noise: Any

    def __call__(self, count: int, random: Random) -> int:
        """The released number."""
        return int(self.noise.add(np.array([count]), random)[0])


NOISES = ("discrete-laplace", "discrete-gaussian")


def of_noise(name: str, epsilon: float, delta: float = 1e-6) -> Subject:
    """Make the subject of a count of sensitivity 1 with the noise of :mod:`discreet.central`.

    Parameters
    ----------
    name : {"discrete-laplace", "discrete-gaussian"}
    epsilon : float
    delta : float
        For the Gaussian.
    """
    from discreet.central.budget import Budget

    budget = Budget(epsilon, delta if name == "discrete-gaussian" else 0.0)
    noise = budget.noise("count", budget.whole)
    pair = Pair("101 people", "100 people", 101, 100)
    return Subject(
        f"{name}, epsilon {rounded_up(epsilon)}", epsilon, budget.delta, NoisyCount(noise), [pair]
    )
