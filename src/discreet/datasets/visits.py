"""Visits to an outpatient clinic as a hospital's own table has them, invented.

Several rows per patient, two columns of identifiers, a point in time, long-tailed numbers, missing
values, and a class that is rare: which visits are missed? Patients differ in a tendency that no
column shows, so rows of one patient tell about one another.

No real people are involved; all effects are on the scale of logits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Array, Floats
from discreet.schema.dates import DatePart
from discreet.schema.schema import Categorical, Numeric, Schema

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["VISITS_SCHEMA", "draw_visits"]

DEPARTMENTS = ("cardiology", "dermatology", "eyes", "orthopaedics", "paediatrics", "surgery")
INSURANCES = ("public", "private", "none")

VISITS_SCHEMA = Schema(
    [
        DatePart("visited", "weekday", optional=False),
        Numeric("age", 0, 110, integer=True, optional=False),
        Categorical("sex", ["female", "male"], optional=False),
        Categorical("insurance", INSURANCES),
        Numeric("distance_km", 0, 300, optional=False),
        Categorical("department", DEPARTMENTS, optional=False),
        Numeric("waiting_days", 0, 365, integer=True, optional=False),
        Categorical("reminded", ["no", "yes"], optional=False),
        Numeric("missed_before", 0, 50, integer=True, optional=False),
    ],
    target="missed",
    classes=["no", "yes"],
)
"""Fixed and public; the table also says whose visit it was and numbers them."""

FIRST_MONDAY = np.datetime64("2023-01-02")
WEEKS = 156
"""Weeks from then on in which there are visits."""
MAX_VISITS = 40
"""Largest number of visits of one patient."""
VISITS_TAIL = 1.5
"""Exponent of the number of visits: most patients come once or twice, a few very often."""
TENDENCY_SPREAD = 0.8
"""Standard deviation of what no column shows about a patient."""
MISSING_INSURANCE_SHARE = 0.04

MISS_OF_DEPARTMENT = np.array([-0.5, 0.6, 0.0, 0.2, -0.4, -0.9])
MISS_OF_INSURANCE = np.array([0.0, -0.6, 1.0])
MISS_OF_WEEKDAY = np.array([0.6, 0.0, -0.1, 0.0, 0.4])  # Monday to Friday


def draw_visits(patient_count: int, seed: int) -> pd.DataFrame:
    """Draw all visits of some patients, in the order of time.

    Parameters
    ----------
    patient_count, seed : int
    """
    import pandas as pd

    rng = np.random.Generator(np.random.PCG64(seed))
    visit_counts = np.minimum(
        1 + np.floor(rng.random(patient_count) ** (-1 / VISITS_TAIL) - 1), MAX_VISITS
    ).astype(np.intp)
    birth_age = np.floor(95 * rng.beta(1.6, 1.3, patient_count))
    sex = rng.integers(0, 2, patient_count)
    insurance = rng.choice(3, patient_count, p=[0.82, 0.13, 0.05])
    distance = np.round(np.minimum(rng.lognormal(1.8, 0.9, patient_count), 300), 1)
    tendency = TENDENCY_SPREAD * rng.standard_normal(patient_count)

    patient = np.repeat(np.arange(patient_count), visit_counts)
    times = _draw_times(len(patient), rng)
    order = np.lexsort((times, patient))
    times = times[order]  # patients stay where they are: each gets its own visits by time
    department = rng.integers(0, len(DEPARTMENTS), len(patient))
    waiting_days = np.minimum(np.floor(rng.lognormal(2.8, 1.0, len(patient))), 365)
    is_reminded = rng.random(len(patient)) < 0.7
    days = (times - FIRST_MONDAY).astype("timedelta64[D]").astype(np.int64)
    age = birth_age[patient] + days // 365
    weekday = days % 7
    hour = times.astype("datetime64[h]").astype(np.int64) % 24
    logit = (
        -3.2
        + tendency[patient]
        + MISS_OF_DEPARTMENT[department]
        + MISS_OF_INSURANCE[insurance[patient]]
        + MISS_OF_WEEKDAY[weekday]
        + 0.5 * (hour == 8)
        + 0.8 * ((age >= 16) & (age < 35))
        + 0.6 * (np.log1p(waiting_days) - 2.9)
        + 0.4 * (np.log1p(distance[patient]) - 2.0)
        - 1.3 * (is_reminded - 0.7)
    )
    is_missed = rng.random(len(patient)) < 1 / (1 + np.exp(-logit))
    insurance_texts = np.array(INSURANCES, dtype=object)[insurance[patient]]
    insurance_texts[rng.random(len(patient)) < MISSING_INSURANCE_SHARE] = None
    patient_numbers = rng.permutation(patient_count) + 100_000
    visits = pd.DataFrame(
        {
            "patient_id": [f"P{number}" for number in patient_numbers[patient]],
            "visited": np.datetime_as_string(times, unit="m"),
            "age": age.astype(np.int64),
            "sex": np.array(["female", "male"], dtype=object)[sex[patient]],
            "insurance": insurance_texts,
            "distance_km": distance[patient],
            "department": np.array(DEPARTMENTS, dtype=object)[department],
            "waiting_days": waiting_days.astype(np.int64),
            "reminded": np.array(["no", "yes"], dtype=object)[is_reminded.astype(np.intp)],
            "missed_before": _count_earlier(patient, is_missed),
            "missed": np.array(["no", "yes"], dtype=object)[is_missed.astype(np.intp)],
        }
    )
    visits = visits.iloc[np.argsort(times, kind="stable")].reset_index(drop=True)
    visits.insert(0, "visit_id", np.arange(len(visits)) + 1)
    return visits


def _draw_times(count: int, rng: np.random.Generator) -> Array:
    """Draw half hours from 8 to half past 16 o'clock on working days."""
    weeks, weekdays = rng.integers(0, WEEKS, count), rng.integers(0, 5, count)
    half_hours = rng.integers(16, 34, count)
    minutes = 24 * 60 * (7 * weeks + weekdays) + 30 * half_hours
    return np.asarray(FIRST_MONDAY.astype("datetime64[m]") + minutes.astype("timedelta64[m]"))


def _count_earlier(patient: Array, is_missed: Array) -> Array:
    """Count what each patient missed before a visit; the rows of a patient are in order."""
    missed_so_far: Floats = np.cumsum(is_missed) - is_missed
    first_rows = np.searchsorted(patient, patient)  # of the same patient
    return np.asarray(missed_so_far - missed_so_far[first_rows], dtype=np.int64)
