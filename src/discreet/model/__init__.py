"""The classifier: predicts, explains itself, and is written as plain JSON."""

from discreet.model.naive_bayes import (
    CellFactor,
    Factor,
    GaussianFactor,
    NaiveBayesModel,
    normalised,
)

__all__ = ["CellFactor", "Factor", "GaussianFactor", "NaiveBayesModel", "normalised"]
