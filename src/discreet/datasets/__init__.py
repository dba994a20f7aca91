"""Benchmark tables by name, and generated tables.

The fifteen UCI tables of the papers are read from the folder that the environment variable
``DISCREET_DATA`` names, ``NAME.csv.gz`` next to ``NAME.json``; failing that, scikit-learn fetches
them from OpenML. Two mortgage tables are generated: the papers' ten rows, and a population of any
size whose best possible accuracy is known.

>>> from discreet.datasets import balance_scale, mortgage_table
>>> len(balance_scale()), len(mortgage_table())
(625, 10)
"""

from discreet.datasets.benchmarks import available, folder, load, names
from discreet.datasets.generated import (
    Dataset,
    balance_scale,
    long_tailed,
    mortgage,
    mortgage_table,
)
from discreet.datasets.population import (
    MORTGAGE_BAYES_ACCURACY,
    MORTGAGE_BAYES_ACCURACY_ERROR,
    MORTGAGE_SCHEMA,
    mortgage_probability,
)

__all__ = [
    "MORTGAGE_BAYES_ACCURACY",
    "MORTGAGE_BAYES_ACCURACY_ERROR",
    "MORTGAGE_SCHEMA",
    "Dataset",
    "available",
    "balance_scale",
    "folder",
    "load",
    "long_tailed",
    "mortgage",
    "mortgage_probability",
    "mortgage_table",
    "names",
]
