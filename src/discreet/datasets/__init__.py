"""Benchmark tables by name, and generated tables.

The fifteen UCI tables of the papers are read from the folder that the environment variable
``DISCREET_DATA`` names, ``NAME.csv.gz`` next to ``NAME.json``; failing that, scikit-learn fetches
them from OpenML. Two mortgage tables are generated: the papers' ten rows, and a population of any
size whose best possible accuracy is known; and a clinic's visits, with several rows per patient.

>>> from discreet.datasets import make_balance_scale, make_mortgage_table
>>> len(make_balance_scale()), len(make_mortgage_table())
(625, 10)
"""

from discreet.datasets.benchmarks import get_folder, is_available, list_names, load
from discreet.datasets.generated import (
    Dataset,
    make_balance_scale,
    make_long_tailed,
    make_mortgage,
    make_mortgage_table,
    make_visits,
)
from discreet.datasets.population import (
    MORTGAGE_BAYES_ACCURACY,
    MORTGAGE_BAYES_ACCURACY_ERROR,
    MORTGAGE_SCHEMA,
    compute_mortgage_probability,
)
from discreet.datasets.visits import VISITS_SCHEMA

__all__ = [
    "MORTGAGE_BAYES_ACCURACY",
    "MORTGAGE_BAYES_ACCURACY_ERROR",
    "MORTGAGE_SCHEMA",
    "VISITS_SCHEMA",
    "Dataset",
    "compute_mortgage_probability",
    "get_folder",
    "is_available",
    "list_names",
    "load",
    "make_balance_scale",
    "make_long_tailed",
    "make_mortgage",
    "make_mortgage_table",
    "make_visits",
]
