"""What a collector estimates from a tally, by the kind of its collection.

This is the only place that knows which module inverts which kind. Modules are named as text and
imported when they are needed: this package is below ``discreet.local`` and ``discreet.survey``, and
a collector of sheets loads nothing about plans. Devices do not load this module.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

from discreet.arrays import Floats
from discreet.collection.protocol import Collection
from discreet.collection.tally import Tally
from discreet.privacy.guarantee import Guarantee
from discreet.statistics.statistics import Statistics

__all__ = ["Inversion", "load_inversion"]

INVERSION_MODULES = {
    "plan": "discreet.local.inversion",
    "questionnaire": "discreet.survey.inversion",
}
"""The module that inverts the channels of each kind of collection: an ``Inversion``."""


class Inversion(Protocol):
    """Functions of a module that inverts the channels of one kind of collection."""

    def estimate_statistics(
        self, tally: Tally[Any], guarantee: Guarantee | None = None
    ) -> Statistics:
        """Estimate unbiased statistics of all respondents."""

    def compute_class_error(self, collection: Any, respondents: int) -> float:
        """Compute the expected standard error of the class shares; 0 if it is not known."""

    def compute_score_range(self, collection: Any, feature_name: str) -> tuple[Floats, Floats]:
        """Compute the least and most that one report can count for each cell of a feature."""


def load_inversion(collection: Collection) -> Inversion:
    """Load the functions that estimate from the tallies of a collection.

    Parameters
    ----------
    collection : Plan or Questionnaire

    Examples
    --------
    >>> from discreet import Numeric, Schema
    >>> from discreet.local import make_plan
    >>> schema = Schema([Numeric("age", 18, 100)], "retired", ["no", "yes"])
    >>> plan = make_plan(schema, epsilon=1.0)
    >>> round(load_inversion(plan).compute_class_error(plan, respondents=10_000), 3)
    0.04
    """
    return cast("Inversion", import_module(INVERSION_MODULES[collection.kind]))
