"""Release of a round: statistics and a model from noised totals, or probabilities alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.documents import Body, dump, load
from discreet.federated.agreement.promise import inconsistent
from discreet.federated.refusals import ProtocolError

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest
    from discreet.model import NaiveBayesModel
    from discreet.privacy import Guarantee
    from discreet.statistics import Statistics

__all__ = ["LARGEST_MODEL", "Release", "rounded"]

VERSION = 1
LARGEST_MODEL = 16 << 20
"""Bytes of a released model at most."""
GRID = 2.0**-16
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
    def of(cls, manifest: Manifest, vector: Integers) -> Release:
        """Turn the noised totals of a round into a model."""
        from discreet.estimation import estimate

        variances = {block: noise.variance for block, noise in manifest.noises.items()}
        found = manifest.layout.statistics(vector, variances)
        statistics = replace(found, guarantee=manifest.guarantee)
        return cls(estimate(statistics), inconsistent(manifest, vector), statistics)

    def promising(self, promise: Guarantee) -> Release:
        """Return a copy with another guarantee; used to mark simulations."""
        statistics = self.statistics and replace(self.statistics, guarantee=promise)
        return replace(self, model=replace(self.model, guarantee=promise), statistics=statistics)

    def to_probabilities(self) -> bytes:
        """The model alone, rounded: what a receiver gets in mode ``probabilities``."""
        body = {"model": rounded(self.model).to_json(), "inconsistent": list(self.inconsistent)}
        return dump("release", VERSION, body, indent=None).encode()

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

        body = load(data, "release", VERSION, _ReleaseBody)
        model, names = NaiveBayesModel.from_json(body.model), tuple(body.inconsistent)
        if model.schema.digest != manifest.about or model.guarantee != manifest.guarantee:
            raise ProtocolError(
                "wrong-manifest",
                "the model follows another schema or states another promise than this round",
            )
        if not set(names) <= {block.feature for block in manifest.layout.blocks}:
            raise ProtocolError("malformed", "the model names features that nobody counted")
        return cls(model, names)


class _ReleaseBody(Body):
    model: str
    inconsistent: list[str]


def rounded(model: NaiveBayesModel) -> NaiveBayesModel:
    """The model on a public grid: log-probabilities rounded down, densities to 16 bits."""
    from discreet.model import CellFactor

    factors: list[Any] = []
    for factor in model.factors:
        if isinstance(factor, CellFactor):
            factors.append(replace(factor, log_probability=_down(factor.log_probability)))
            continue
        span = factor.feature.upper - factor.feature.lower
        mean = factor.feature.lower + span * _near((factor.mean - factor.feature.lower) / span)
        missing = None if factor.missing is None else _near(factor.missing)
        variance = np.exp(_near(np.log(factor.variance)))
        factors.append(replace(factor, mean=mean, variance=variance, missing=missing))
    return replace(model, log_prior=_down(model.log_prior), factors=factors)


def _down(numbers: Floats) -> Floats:
    return np.asarray(np.floor(numbers / GRID) * GRID)


def _near(numbers: Floats) -> Floats:
    return np.asarray(np.round(numbers / GRID) * GRID)
