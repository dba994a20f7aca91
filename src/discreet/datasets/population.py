"""A mortgage population whose best possible classifier is known.

The papers' running example (who will miss a payment?) has ten rows. This is the same question
asked of any number of people, drawn from the invented distribution below:

    age ─► employment ─► income ─► credit score, loan to value;  age ─► years at address
    missed payment ~ Bernoulli(P(yes | everything above))

The features depend on one another, so Naive Bayes is good here but not perfect; and because
P(yes | x) is known exactly, so is the best possible accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Indices
from discreet.errors import SchemaError
from discreet.schema.schema import Categorical, Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MORTGAGE_BAYES_ACCURACY",
    "MORTGAGE_BAYES_ACCURACY_ERROR",
    "MORTGAGE_SCHEMA",
    "compute_mortgage_probability",
    "draw_population",
]


MORTGAGE_SCHEMA = Schema(
    [
        Numeric("age", 18, 100, integer=True, optional=False),
        Categorical("income", ["low", "medium", "high"], optional=False),
        Categorical("gender", ["female", "male"], optional=False),
        Categorical(
            "employment", ["employed", "self-employed", "retired", "student", "unemployed"]
        ),
        Categorical(
            "region", ["north", "east", "south", "west", "coast", "capital"], optional=False
        ),
        Numeric("loan_to_value", 0, 1.5, optional=False),
        Numeric("credit_score", 300, 850, integer=True),
        Numeric("years_at_address", 0, 60, integer=True, optional=False),
    ],
    target="missed_payment",
    classes=["no", "yes"],
)
"""Fixed and public; only employment and credit score may be missing."""

MORTGAGE_BAYES_ACCURACY = 0.85210
"""E[max(p, 1 - p)] with p = P(yes | x): no classifier does better on complete rows."""

MORTGAGE_BAYES_ACCURACY_ERROR = 0.00002
"""Standard error of that mean, taken over forty million rows."""

OPTIONAL_FEATURES = tuple(feature.name for feature in MORTGAGE_SCHEMA.features if feature.optional)
REGION_SHARES = np.array([0.14, 0.12, 0.20, 0.16, 0.13, 0.25])  # of the people; invented

# Invented effects, one per value in the order of the schema. Income: on the scale whose cuts are
# -0.45 and 0.65. Score: points. Loan and risk: logits.
INCOME_OF_EMPLOYMENT = np.array([0.55, 0.45, -0.35, -1.30, -1.40])
INCOME_OF_REGION = np.array([-0.15, -0.10, 0.05, 0.00, 0.10, 0.30])
SCORE_OF_EMPLOYMENT = np.array([20.0, 0.0, 15.0, -30.0, -70.0])
SCORE_OF_INCOME = np.array([-45.0, 5.0, 50.0])
LOAN_OF_INCOME = np.array([0.30, 0.05, -0.30])
RISK_OF_INCOME = np.array([0.45, 0.0, -0.40])
RISK_OF_GENDER = np.array([-0.10, 0.10])
RISK_OF_EMPLOYMENT = np.array([-0.15, 0.15, -0.25, 0.20, 0.80])
RISK_OF_REGION = np.array([0.35, 0.20, -0.05, 0.0, -0.15, -0.30])


@dataclass(frozen=True)
class _People:
    """Columns as numbers: categories are positions in the schema's list of values."""

    age: Floats
    income: Indices
    gender: Indices
    employment: Indices
    region: Indices
    loan_to_value: Floats
    credit_score: Floats
    years_at_address: Floats

    def compute_probability(self) -> Floats:
        """Compute P(missed payment = yes | x), a logistic model with two mild interactions."""
        scaled_score = (self.credit_score - 650.0) / 80.0
        scaled_loan = (self.loan_to_value - 0.8) / 0.25
        logit = (
            -1.42
            - 0.01 * (self.age - 45.0)
            - 1.10 * scaled_score
            + 0.90 * scaled_loan
            - 0.03 * (self.years_at_address - 10.0)
            + RISK_OF_INCOME[self.income]
            + RISK_OF_GENDER[self.gender]
            + RISK_OF_EMPLOYMENT[self.employment]
            + RISK_OF_REGION[self.region]
            + 0.45 * scaled_loan * (self.income == 0)  # a large loan weighs more on a small income
            + 0.40 * scaled_loan * -scaled_score  # and more on a poor history
        )
        return np.asarray(1.0 / (1.0 + np.exp(-logit)), dtype=np.float64)


def _draw_people(n: int, rng: np.random.Generator) -> _People:
    age = 18.0 + np.floor(83.0 * np.sqrt(rng.random(n)) * rng.random(n) ** 0.8)
    employment = _draw_categories(rng.random(n), _compute_employment_shares(age))
    region = np.searchsorted(np.cumsum(REGION_SHARES)[:-1], rng.random(n), side="right")
    gender = (rng.random(n) < 0.5).astype(np.intp)
    income_means = (
        INCOME_OF_EMPLOYMENT[employment]
        + INCOME_OF_REGION[region]
        - 0.4 * ((age - 48.0) / 20.0) ** 2
        + 0.10 * (gender - 0.5)
    )
    income = np.digitize(income_means + 0.8 * rng.standard_normal(n), [-0.45, 0.65])
    credit_score = (
        650.0
        + SCORE_OF_EMPLOYMENT[employment]
        + SCORE_OF_INCOME[income]
        + 0.6 * (age - 45.0)
        + 60.0 * rng.standard_normal(n)
    )
    loan_logit = 0.25 + LOAN_OF_INCOME[income] - 0.012 * (age - 45.0) + 0.7 * rng.standard_normal(n)
    years_at_address = np.minimum(age - 10.0, 60.0) * rng.random(n) ** 2.2
    return _People(
        age=age,
        income=income,
        gender=gender,
        employment=employment,
        region=region,
        loan_to_value=np.round(1.5 / (1.0 + np.exp(-loan_logit)), 3),
        credit_score=np.clip(np.round(credit_score), 300.0, 850.0),
        years_at_address=np.floor(years_at_address),
    )


def _compute_employment_shares(age: Floats) -> Floats:
    """Compute softmax shares that depend on age: students are young, the retired old."""
    category_weights = np.exp(
        np.stack(
            [
                np.full_like(age, 2.0),
                0.3 + 0.01 * (age - 40.0),
                0.35 * (age - 64.0),
                -0.35 * (age - 24.0),
                0.35 - 0.01 * (age - 40.0),
            ],
            axis=1,
        )
    )
    return np.asarray(category_weights / category_weights.sum(axis=1, keepdims=True))


def _draw_categories(uniform: Floats, shares: Floats) -> Indices:
    """Draw one category per row, by inverting the row's cumulative shares."""
    return np.asarray((uniform[:, None] >= np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1))


def draw_population(n: int, seed: int, missing: float = 0.0) -> pd.DataFrame:
    """Draw people, features in schema order and then the target; see ``datasets.make_mortgage``."""
    import pandas as pd

    rng = np.random.Generator(np.random.PCG64(seed))
    population = _draw_people(n, rng)
    missed_payment = (rng.random(n) < population.compute_probability()).astype(np.intp)
    columns: dict[str, Any] = {}
    for feature in MORTGAGE_SCHEMA.features:
        column = getattr(population, feature.name)
        if isinstance(feature, Categorical):
            columns[feature.name] = _decode_categories(feature.values, column)
        else:
            columns[feature.name] = column.astype(np.int64) if feature.integer else column
    if missing:  # drawn last, so that the people are the same ones with and without
        for name in OPTIONAL_FEATURES:
            is_missing = rng.random(n) < missing
            if columns[name].dtype == object:
                columns[name][is_missing] = None
            else:
                columns[name] = np.where(is_missing, np.nan, columns[name])
    columns[MORTGAGE_SCHEMA.target] = _decode_categories(MORTGAGE_SCHEMA.classes, missed_payment)
    return pd.DataFrame(
        {name: pd.Series(column, dtype=column.dtype) for name, column in columns.items()}
    )


def _decode_categories(values: tuple[Any, ...], codes: Indices) -> NDArray[np.object_]:
    return np.array(values, dtype=object)[codes]


def compute_mortgage_probability(frame: pd.DataFrame) -> Floats:
    """Compute P(missed_payment = yes | x) of the generated population exactly.

    Parameters
    ----------
    frame : data frame
        Complete rows with the features of ``MORTGAGE_SCHEMA``; other columns are ignored.

    Returns
    -------
    ndarray of float
        One probability per row. Predicting "yes" above one half is the best possible classifier.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for feature in MORTGAGE_SCHEMA.features:
        if feature.name not in frame:
            raise SchemaError(f"{feature.name}: the frame has no such column; see MORTGAGE_SCHEMA")
        column = frame[feature.name]
        if isinstance(feature, Categorical):
            column_values = pd.Index(feature.values, dtype=object).get_indexer(column)
            is_known = column_values >= 0
        else:
            column_values = column.to_numpy(dtype=np.float64)
            is_known = (column_values >= feature.lower) & (column_values <= feature.upper)
        if not is_known.all():
            raise SchemaError(
                f"{feature.name}: {column[~is_known].tolist()[0]!r} is missing or outside the "
                "schema; P(yes | x) is only known for complete rows, draw them with missing=0"
            )
        columns[feature.name] = column_values
    return _People(**columns).compute_probability()
