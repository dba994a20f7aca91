"""The Dataset class, and generated datasets: two exact ones, and populations of any size."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.datasets.population import MORTGAGE_SCHEMA, draw_population
from discreet.datasets.visits import VISITS_SCHEMA, draw_visits
from discreet.errors import SchemaError
from discreet.schema.schema import Categorical, Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Dataset",
    "make_balance_scale",
    "make_long_tailed",
    "make_mortgage",
    "make_mortgage_table",
    "make_visits",
]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its public schema.

    Parameters
    ----------
    name, title : str
    schema : Schema
    frame : pandas.DataFrame
        The features and the target; in ``make_visits`` columns that identify a row, too. Categories
        and classes are text, a missing one is None; numbers are float64, or int64 where they are
        whole and none is missing.
    source : str
        Where the rows come from.
    """

    name: str
    title: str
    schema: Schema
    frame: pd.DataFrame
    source: str

    @property
    def X(self) -> pd.DataFrame:  # noqa: N802 - scikit-learn's name for it
        """The features."""
        return self.frame[list(self.schema.names)]

    @property
    def y(self) -> NDArray[np.object_]:
        """The target, as text."""
        return np.asarray(self.frame[self.schema.target].to_numpy(dtype=object))

    def __len__(self) -> int:
        return len(self.frame)


def make_balance_scale() -> Dataset:
    """Make the balance scale table: all beams with weights and distances 1 to 5, and their tip."""
    feature_names = ["left_weight", "left_distance", "right_weight", "right_distance"]
    digit_names = ["1", "2", "3", "4", "5"]
    schema = Schema(
        [Categorical(feature_name, digit_names, optional=False) for feature_name in feature_names],
        "tip",
        ["L", "B", "R"],
    )
    rows = [
        (*map(str, beam), "BLR"[np.sign(beam[0] * beam[1] - beam[2] * beam[3])])
        for beam in itertools.product(range(1, 6), repeat=4)
    ]
    return _make_text_dataset(
        "balance_scale", "Balance Scale", schema, rows, "generated: all 625 beams"
    )


def make_mortgage_table() -> Dataset:
    """Make the ten-row table with which the papers explain Naive Bayes.

    For (Young, Medium, Female) the scores are 1/40 = 0.025 for Yes and 1/180 = 0.0056 for No, so
    the prediction is Yes; the papers print 0.055 for the latter and conclude No.
    """
    schema = Schema(
        [
            Categorical("Age", ["Young", "Medium", "Old"], optional=False),
            Categorical("Income", ["Low", "Medium", "High"], optional=False),
            Categorical("Gender", ["Female", "Male"], optional=False),
        ],
        target="Missed payment",
        classes=["Yes", "No"],
    )
    rows = [
        ("Young", "Low", "Male", "Yes"),
        ("Young", "High", "Female", "Yes"),
        ("Medium", "High", "Male", "No"),
        ("Old", "Medium", "Male", "No"),
        ("Old", "High", "Male", "No"),
        ("Old", "Low", "Female", "Yes"),
        ("Medium", "Low", "Female", "No"),
        ("Medium", "Medium", "Male", "Yes"),
        ("Young", "Low", "Male", "No"),
        ("Old", "High", "Female", "No"),
    ]
    source = "Yilmaz, Al-Rubaie and Chang, Locally differentially private Naive Bayes, table I"
    return _make_text_dataset("mortgage_table", "Mortgage payments, ten rows", schema, rows, source)


def make_long_tailed(
    upper: float = 1000.0, rows: int = 4600, columns: int = 57, seed: int = 1
) -> Dataset:
    """Generate word frequencies like a spam table: mostly zero, long-tailed, on wide bounds.

    Parameters
    ----------
    upper : float, default 1000
        Public upper bound of every feature; values beyond it are cut off there.
    rows, columns : int
    seed : int, default 1
        The same seed gives the same rows.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < 0.394).astype(int)
    columns_by_name, class_sides = {}, np.array([-0.5, 0.5])
    for column_index in range(columns):
        zero_share = rng.uniform(0.4, 0.95)
        zero_probability = 1 / (
            1 + np.exp(-(np.log(zero_share / (1 - zero_share)) + class_sides * rng.normal(0, 1.0)))
        )
        class_means = rng.normal(-0.5, 1) + class_sides * rng.normal(0, 0.8)
        word_frequencies = np.exp(rng.normal(class_means[y], rng.uniform(0.6, 1.3)))
        columns_by_name[f"word{column_index}"] = np.where(
            rng.random(rows) < zero_probability[y], 0.0, np.minimum(word_frequencies, upper)
        )
    schema = Schema(
        [Numeric(name, 0, upper, optional=False) for name in columns_by_name], "spam", ["no", "yes"]
    )
    columns_by_name["spam"] = np.array(["no", "yes"], dtype=object)[y]
    source = f"generated: rows={rows}, columns={columns}, seed={seed}"
    return Dataset("long_tailed", "Long tails", schema, pd.DataFrame(columns_by_name), source)


def _make_text_dataset(
    name: str, title: str, schema: Schema, rows: Sequence[tuple[str, ...]], source: str
) -> Dataset:
    import pandas as pd

    frame = pd.DataFrame(rows, columns=[*schema.names, schema.target], dtype=object)
    return Dataset(name, title, schema, frame, source)


def make_mortgage(n: int = 20_000, seed: int = 0, missing: float = 0.0) -> Dataset:
    """Generate a population after the papers' running example.

    Eight features that depend on one another, and whether a payment was missed (about 30 % yes).
    :func:`~discreet.datasets.population.compute_mortgage_probability` gives P(yes | x) exactly, so
    the best possible accuracy is known: ``MORTGAGE_BAYES_ACCURACY`` = 0.8521 (standard error
    0.00002), against 0.697 for always "no" and about 0.84 for Naive Bayes. All numbers are
    invented; no real people are involved.

    Parameters
    ----------
    n : int, default 20 000
        Number of people.
    seed : int, default 0
        The same seed gives the same people.
    missing : float, default 0
        Share of employment and of credit score that is missing at random; the people are those of
        ``missing=0``.
    """
    _check_people(n)
    if not 0.0 <= missing < 1.0:
        raise SchemaError(f"missing={missing!r}; write a share from 0 to below 1")
    source = f"generated: n={n}, seed={seed}, missing={missing:g}"
    return Dataset(
        "mortgage", "Mortgage payments", MORTGAGE_SCHEMA, draw_population(n, seed, missing), source
    )


def make_visits(n: int = 20_000, seed: int = 0) -> Dataset:
    """Generate a clinic's visits, several per patient, and which were missed (about 9 % yes).

    The frame has the columns ``visit_id`` and ``patient_id`` besides what the schema lists, and the
    time of each visit, of which the schema uses the weekday. All patients are invented.

    Parameters
    ----------
    n : int, default 20 000
        Number of patients; they come 2.3 times on average, and at most 40 times.
    seed : int, default 0
        The same seed gives the same patients.
    """
    _check_people(n)
    source = f"generated: n={n}, seed={seed}"
    return Dataset("visits", "Missed visits", VISITS_SCHEMA, draw_visits(n, seed), source)


def _check_people(n: int) -> None:
    if n < 1:
        raise SchemaError(f"n={n!r}; write a number of people of at least 1")
