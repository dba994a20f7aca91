"""The demonstration: people, the comparison of trust models on them, and a curator's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.compare.comparison import compare_methods
from discreet.compare.results import Comparison, ComparisonSettings

if TYPE_CHECKING:
    from discreet.datasets import Dataset
    from discreet.model import NaiveBayesModel

__all__ = [
    "DEMO_EPSILON",
    "compare_people",
    "load_people",
    "make_data_files",
    "train_curator_model",
]

DEMO_EPSILON = 1.0
"""Epsilon of the curator's model."""
TRAINING_FIFTHS = 4
"""Fifths of the rows from which the curator's model is trained; the others are to be predicted."""


def load_people(name: str, rows: int, seed: int) -> Dataset:
    """Load or generate the rows, shuffled by the seed.

    Parameters
    ----------
    name : str
        "mortgage", or a benchmark table.
    rows : int
        Of a benchmark table, the most that are used.
    seed : int
    """
    from discreet.datasets import load, make_mortgage

    if name == "mortgage":
        return make_mortgage(rows, seed)
    dataset = load(name)
    frame = dataset.frame.sample(min(rows, len(dataset.frame)), random_state=seed)
    return replace(dataset, frame=frame.reset_index(drop=True))


def compare_people(
    people: Dataset, seed: int, report_progress: Callable[[int, int], None] | None = None
) -> Comparison:
    """Compare the default methods at four epsilons.

    Parameters
    ----------
    people : Dataset
    seed : int
    report_progress : callable, optional
        Called with the number of finished and of all runs.
    """
    settings = ComparisonSettings(
        epsilons=(0.5, 1.0, 2.0, 5.0),
        methods=("histogram", "masks", "questions", "auto"),
        seed=seed,
        most_respondents=400_000,
    )
    return compare_methods(
        people.name, people.schema, people.X, people.y, settings, report_progress
    )


def train_curator_model(people: Dataset) -> NaiveBayesModel:
    """Train a model on four fifths of the rows, with noise that is not seeded.

    Parameters
    ----------
    people : Dataset
    """
    from discreet.estimators import CentralNB

    training_size = len(people.y) * TRAINING_FIFTHS // 5
    nb = CentralNB(DEMO_EPSILON, schema=people.schema)
    return nb.fit(people.X[:training_size], people.y[:training_size]).model_


def make_data_files(people: Dataset, model: NaiveBayesModel) -> dict[str, str]:
    """Contents of the files by name: the model, the schema, the rows it saw and the others.

    Parameters
    ----------
    people : Dataset
    model : NaiveBayesModel
    """
    training_size = len(people.y) * TRAINING_FIFTHS // 5
    return {
        "model.json": model.to_json(),
        "schema.json": people.schema.to_json(),
        "population.csv": people.frame[:training_size].to_csv(index=False, lineterminator="\n"),
        "others.csv": people.frame[training_size:].to_csv(index=False, lineterminator="\n"),
    }
