"""The classifier of several data owners who hand nothing over: the real protocol, in one process.

>>> from discreet import FederatedNB, Numeric, Schema
>>> schema = Schema([Numeric("age", 18, 100, integer=True)], "retired", ["no", "yes"])
>>> X, y = [[20], [35], [50], [70], [80], [90]] * 200, ["no", "no", "no", "yes", "yes", "yes"] * 200
>>> nb = FederatedNB(epsilon=1.0, providers=5, schema=schema).fit(X, y)
>>> nb.predict([[25], [85]]).tolist()
['no', 'yes']
>>> nb.guarantee_.trust
'federated'
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from discreet.arrays import Floats
from discreet.errors import PrivacyError, SchemaError
from discreet.estimators.inferred import LEAKED, PrivateEstimator
from discreet.federated.layout import wanted_of
from discreet.federated.manifest import Manifest
from discreet.federated.release import Release
from discreet.federated.simulation import simulate_horizontal, simulate_vertical
from discreet.privacy import Guarantee
from discreet.randomness import Random, as_random
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics

__all__ = ["FederatedNB"]

APART = "the providers are really apart: here they were simulated in one process"


class FederatedNB(PrivateEstimator):
    """Naive Bayes over several data owners, without a trusted curator.

    ``fit`` deals the table out to simulated providers and runs the real protocol between them, a
    collector and a receiver: keys, signed messages, shares of noise. Real parties use
    ``discreet.federated`` instead.

    Parameters
    ----------
    epsilon : float, default 1.0
        Per person and total. ``math.inf`` adds no noise and promises nothing.
    providers : int or "rows", default 3
        How many hold a part; ``"rows"`` makes every person a provider.
    partition : {"horizontal", "vertical"}
        Whether providers hold other people or other columns.
    mode : {"counts", "probabilities"}
        Whether the receiver gets noised counts, or the collector opens them and the receiver gets
        probabilities only.
    aggregation : {"masks", "paillier"}, optional
        Masks if not given. In a vertical round masks also need a collector that works with nobody
        who holds data; Paillier does not.
    tolerated : int, default 1
        How many of those who add noise may be missing or colluding.
    bins : int or mapping, default 8
        How numeric features are cut.
    numeric : {"bins", "moments"}
        Whether numeric features are counted by bin, or summed on the public grid.
    key : PrivateKey, optional
        A Paillier key; made when one is needed and none given, which takes some seconds.
    schema : Schema, optional
        What is public. Left out, it is taken from the data, with a warning and without protection.
    categorical_features, missing, unseen
        As in :class:`~discreet.MixedNB`, where there is no schema.
    random_state : None, int, numpy Generator or Random
        None draws noise from the cryptographic source; a seed ends the promise.

    Attributes
    ----------
    classes_, class_prior_, n_features_in_, feature_names_in_
        As usual; the prior is an estimate.
    schema_ : Schema
    manifest_ : Manifest
        What the simulated parties agreed on.
    statistics_ : Statistics or None
        The noised totals; None in mode ``probabilities``, where no receiver sees them.
    class_count_ : array of shape (n_classes,), or None
    inconsistent_ : tuple of str
        Features whose totals contradict the others'.
    model_ : NaiveBayesModel
    guarantee_ : Guarantee
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        providers: int | Literal["rows"] = 3,
        partition: Literal["horizontal", "vertical"] = "horizontal",
        mode: Literal["counts", "probabilities"] = "counts",
        aggregation: Literal["masks", "paillier"] | None = None,
        tolerated: int = 1,
        bins: Any = 8,
        numeric: Literal["bins", "moments"] = "bins",
        key: Any = None,
        schema: Schema | None = None,
        categorical_features: Any = "from_dtype",
        missing: Literal["skip", "category"] = "skip",
        unseen: Literal["error", "other"] = "error",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.providers = providers
        self.partition = partition
        self.mode = mode
        self.aggregation = aggregation
        self.tolerated = tolerated
        self.bins = bins
        self.numeric = numeric
        self.key = key
        self.schema = schema
        self.categorical_features = categorical_features
        self.missing = missing
        self.unseen = unseen
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Deal the table out, run the protocol, and learn what the receiver learns.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        """
        self._check()
        X = self._read_rows(X, reset=True)
        y = self._read_classes(X, y)
        schema, columns, codes = self._public(X, y, self.epsilon != math.inf)
        moments: list[str] = []
        if self.numeric == "moments":
            moments = [one.name for one in schema.features if isinstance(one, Numeric)]
        wanted = wanted_of(schema, self.bins, moments)
        random = as_random(self.random_state)
        run = self._vertical if self.partition == "vertical" else self._horizontal
        release, self.manifest_ = run(schema, wanted, columns, codes, random)
        self.schema_ = schema
        promise = self._promise(release.model.guarantee, random)
        self.model_ = replace(release.model, guarantee=promise)
        self.statistics_: Statistics | None = None
        self.class_count_: Floats | None = None
        if release.statistics is not None:
            self.statistics_ = replace(release.statistics, guarantee=promise)
            self.class_count_ = np.asarray(self.statistics_.totals, dtype=float)
        self.inconsistent_ = release.inconsistent
        self.class_prior_ = np.exp(self.model_.log_prior)
        self.guarantee_: Guarantee = promise
        return self

    def _check(self) -> None:
        if isinstance(self.epsilon, bool) or not self.epsilon > 0:
            raise PrivacyError(f"epsilon is {self.epsilon!r}; it must be a number above 0")
        number = isinstance(self.providers, (int, np.integer)) and self.providers >= 1
        if self.providers != "rows" and (isinstance(self.providers, bool) or not number):
            raise SchemaError(f"providers={self.providers!r}; write a whole number or 'rows'")
        if self.numeric not in ("bins", "moments"):
            raise SchemaError(f"numeric={self.numeric!r}; write 'bins' or 'moments'")
        if self.partition not in ("horizontal", "vertical"):
            raise SchemaError(f"partition={self.partition!r}; write 'horizontal' or 'vertical'")
        if self.partition == "vertical" and self.providers == "rows":
            raise SchemaError(
                "in a vertical round providers hold columns; write a number of providers"
            )

    def _horizontal(
        self, schema: Schema, wanted: Any, columns: dict[str, Any], codes: Any, random: Random
    ) -> tuple[Release, Manifest]:
        count = max(2, len(codes)) if self.providers == "rows" else int(self.providers)
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        parts = [
            ({name: column[rows] for name, column in arrays.items()}, codes[rows])
            for rows in np.array_split(np.arange(len(codes)), count)
        ]
        return simulate_horizontal(
            schema,
            wanted,
            parts,
            self.epsilon,
            random,
            mode=self.mode,
            aggregation=self.aggregation or "masks",
            tolerated=self.tolerated,
            key=self.key,
        )

    def _vertical(
        self, schema: Schema, wanted: Any, columns: dict[str, Any], codes: Any, random: Random
    ) -> tuple[Release, Manifest]:
        return simulate_vertical(
            schema,
            wanted,
            columns,
            codes,
            self.epsilon,
            random,
            providers=int(self.providers),
            mode=self.mode,
            aggregation=self.aggregation or "masks",
            tolerated=self.tolerated,
            key=self.key,
        )

    def _promise(self, promise: Guarantee, random: Random) -> Guarantee:
        if math.isinf(promise.epsilon):
            return promise
        promise = replace(promise, assumptions=(*promise.assumptions, APART))
        if self.schema_.inferred:
            promise = promise.broken_by(LEAKED)
        return promise.in_simulation() if random.simulated else promise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.epsilon != math.inf and self.random_state is None
        return tags
