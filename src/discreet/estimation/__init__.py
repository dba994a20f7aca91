"""Statistics to valid probabilities: the one road to a model."""

from discreet.estimation.from_statistics import Postprocess, estimate, norm_cut, norm_sub

__all__ = ["Postprocess", "estimate", "norm_cut", "norm_sub"]
