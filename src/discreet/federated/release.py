"""Release of a round: statistics and a model from noised totals, or probabilities alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.federated.agreement.promise import compose_rounds, find_inconsistent_features
from discreet.federated.refusals import ProtocolError
from discreet.files.documents import Body, dump_document, load_document

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest
    from discreet.model import NaiveBayesModel
    from discreet.privacy.guarantee import Guarantee
    from discreet.statistics.statistics import Statistics

__all__ = ["MAX_MODEL_BYTES", "Release", "require_judged_statistics", "round_model"]

RELEASE_VERSION = 1
MAX_MODEL_BYTES = 16 << 20
"""Bytes of a released model at most."""
LOG_PROBABILITY_STEP = 2.0**-16
"""Log-probabilities are released as multiples of this."""


@dataclass(frozen=True, eq=False)
class Release:
    """The result of a round.

    Parameters
    ----------
    model : NaiveBayesModel
    inconsistent : tuple of str
        Features whose totals contradict the others': a party may not have been honest.
    statistics : Statistics or None
        The noised totals, for whoever opened them.
    """

    model: NaiveBayesModel
    inconsistent: tuple[str, ...] = ()
    statistics: Statistics | None = None

    @classmethod
    def from_totals(
        cls,
        manifest: Manifest,
        noised_totals: Integers,
        judged_statistics: Statistics | None = None,
    ) -> Release:
        """Turn the noised totals of a round into a model.

        Parameters
        ----------
        manifest : Manifest
        noised_totals : array of int
        judged_statistics : Statistics, optional
            Where candidate models were judged: the statistics that they were made from.
        """
        from discreet.estimation import estimate

        variances = {block: noise.variance for block, noise in manifest.block_noises.items()}
        if manifest.judging is not None:
            first_statistics = require_judged_statistics(manifest, judged_statistics)
            (variance,) = variances.values()
            scoring = manifest.judging.choose_scoring(first_statistics, noised_totals, variance)
            guarantee = compose_rounds(first_statistics.guarantee, manifest.guarantee)
            statistics = replace(first_statistics, scoring=scoring, guarantee=guarantee)
            return cls(estimate(statistics), (), statistics)
        noised_statistics = manifest.layout.decode_statistics(noised_totals, variances)
        statistics = replace(noised_statistics, guarantee=manifest.guarantee)
        return cls(
            estimate(statistics), find_inconsistent_features(manifest, noised_totals), statistics
        )

    def with_guarantee(self, guarantee: Guarantee) -> Release:
        """Return a copy with another guarantee; used to mark simulations."""
        statistics = self.statistics and replace(self.statistics, guarantee=guarantee)
        return replace(self, model=replace(self.model, guarantee=guarantee), statistics=statistics)

    def to_probabilities(self) -> bytes:
        """The model alone, rounded: what a receiver gets in mode ``probabilities``."""
        body = {"model": round_model(self.model).to_json(), "inconsistent": list(self.inconsistent)}
        return dump_document("release", RELEASE_VERSION, body, indent=None).encode()

    @classmethod
    def from_probabilities(cls, manifest: Manifest, data: bytes) -> Release:
        """Read what :meth:`to_probabilities` wrote; the promise is the one that was signed.

        Parameters
        ----------
        manifest : Manifest
        data : bytes
            Written by the opener of the totals; another schema or guarantee is refused.
        """
        from discreet.model import NaiveBayesModel

        body = load_document(data, "release", RELEASE_VERSION, _ReleaseBody)
        model, feature_names = NaiveBayesModel.from_json(body.model), tuple(body.inconsistent)
        promised = manifest.guarantee.include_schema(manifest.schema)
        if model.schema.digest != manifest.schema_digest or model.guarantee != promised:
            raise ProtocolError(
                "wrong-manifest",
                "the model follows another schema or states another promise than this round",
            )
        if not set(feature_names) <= {block.feature for block in manifest.layout.blocks}:
            raise ProtocolError("malformed", "the model names features that nobody counted")
        return cls(model, feature_names)


def require_judged_statistics(manifest: Manifest, statistics: Statistics | None) -> Statistics:
    """Refuse other statistics than those that the candidate models were made from.

    Parameters
    ----------
    manifest : Manifest
        Of a round that judges candidate models.
    statistics : Statistics, optional
        What is given.
    """
    from discreet.federated.judging import compute_statistics_digest

    assert manifest.judging is not None
    if statistics is None:
        raise ProtocolError(
            "wrong-manifest",
            "this round judges candidate models; give the statistics of the first round, with "
            "--judged statistics.json",
        )
    statistics_digest = compute_statistics_digest(statistics)
    if statistics_digest != manifest.judging.statistics_digest:
        raise ProtocolError(
            "wrong-manifest",
            "the candidate models were made from other statistics "
            f"({manifest.judging.statistics_digest}) than these ({statistics_digest}); give those "
            "of the first round",
        )
    return statistics


class _ReleaseBody(Body):
    model: str
    inconsistent: list[str]


def round_model(model: NaiveBayesModel) -> NaiveBayesModel:
    """The model on a public grid: log-probabilities rounded down, densities to 16 bits.

    What supports its tables is left out: whoever gets it does not get the totals.
    """
    from discreet.model import CellFactor

    rounded_factors: list[Any] = []
    for factor in model.factors:
        if isinstance(factor, CellFactor):
            rounded_factors.append(
                replace(factor, log_probability=_round_down(factor.log_probability), support=None)
            )
            continue
        span = factor.feature.upper - factor.feature.lower
        mean = factor.feature.lower + span * _round_to_step(
            (factor.mean - factor.feature.lower) / span
        )
        missing = None if factor.missing is None else _round_to_step(factor.missing)
        variance = np.exp(_round_to_step(np.log(factor.variance)))
        rounded_factors.append(replace(factor, mean=mean, variance=variance, missing=missing))
    return replace(model, log_prior=_round_down(model.log_prior), factors=rounded_factors)


def _round_down(numbers: Floats) -> Floats:
    return np.asarray(np.floor(numbers / LOG_PROBABILITY_STEP) * LOG_PROBABILITY_STEP)


def _round_to_step(numbers: Floats) -> Floats:
    return np.asarray(np.round(numbers / LOG_PROBABILITY_STEP) * LOG_PROBABILITY_STEP)
