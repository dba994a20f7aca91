"""Nobody is trusted: each person randomizes on their own device and sends one report.

::

    Plan ─► Respondent ─► Report ─► Tally ─► Statistics
    public  their device  sent once  sums     estimates with variances

The names that a collection needs; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazily

_HOME = {
    "make_plan": "local.planning",
    "Choices": "local.planning",
    "Plan": "local.plan",
    "Question": "local.plan",
    "Respondent": "collection.respondent",
    "FolderStore": "collection.store",
    "MemoryStore": "collection.store",
    "Report": "collection.report",
    "Tally": "collection.tally",
    "tally_parquet": "collection.bulk",
    "statistics_of": "local.inversion",
}

__all__ = [
    "Choices",
    "FolderStore",
    "MemoryStore",
    "Plan",
    "Question",
    "Report",
    "Respondent",
    "Tally",
    "make_plan",
    "statistics_of",
    "tally_parquet",
]

if TYPE_CHECKING:
    from discreet.collection.bulk import tally_parquet
    from discreet.collection.report import Report
    from discreet.collection.respondent import Respondent
    from discreet.collection.store import FolderStore, MemoryStore
    from discreet.collection.tally import Tally
    from discreet.local.inversion import statistics_of
    from discreet.local.plan import Plan, Question
    from discreet.local.planning import Choices, make_plan

__getattr__, __dir__ = lazily(__name__, _HOME)
