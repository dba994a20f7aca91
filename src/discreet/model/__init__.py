"""The classifier: predicts, explains itself, and is written as plain JSON."""

from discreet.model.factors import CellFactor, Factor, GaussianFactor, PairFactor
from discreet.model.naive_bayes import NaiveBayesModel, compute_log_posterior

__all__ = [
    "CellFactor",
    "Factor",
    "GaussianFactor",
    "NaiveBayesModel",
    "PairFactor",
    "compute_log_posterior",
]
