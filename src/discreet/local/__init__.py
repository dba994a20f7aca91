"""Nobody is trusted: each person randomizes on their own device and sends one report.

::

    Plan ─► Respondent ─► Report ─► Tally ─► Statistics
    public  their device  sent once  sums     estimates with variances

The names that a collection needs; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazy_exports

_EXPORTS = {
    "make_plan": "local.planning",
    "PlanOptions": "local.planning",
    "Plan": "local.plan",
    "Question": "local.plan",
    "Respondent": "collection.respondent",
    "FolderStore": "collection.store",
    "MemoryStore": "collection.store",
    "Report": "collection.report",
    "Tally": "collection.tally",
    "tally_parquet": "collection.parquet_tally",
    "estimate_statistics": "local.inversion",
}

__all__ = [
    "FolderStore",
    "MemoryStore",
    "Plan",
    "PlanOptions",
    "Question",
    "Report",
    "Respondent",
    "Tally",
    "estimate_statistics",
    "make_plan",
    "tally_parquet",
]

if TYPE_CHECKING:
    from discreet.collection.parquet_tally import tally_parquet
    from discreet.collection.report import Report
    from discreet.collection.respondent import Respondent
    from discreet.collection.store import FolderStore, MemoryStore
    from discreet.collection.tally import Tally
    from discreet.local.inversion import estimate_statistics
    from discreet.local.plan import Plan, Question
    from discreet.local.planning import PlanOptions, make_plan

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
