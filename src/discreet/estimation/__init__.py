"""Estimate a model with valid probabilities from statistics."""

from discreet.estimation.from_statistics import Postprocess, estimate, norm_cut, norm_sub

__all__ = ["Postprocess", "estimate", "norm_cut", "norm_sub"]
