"""Surveys by randomized response: people answer in groups, and each group may be a decoy.

::

    Questionnaire ─► Respondent ─► Report ─► Tally ─► Statistics, any logical predicate, accuracy
    public           their device  a sheet    counts   estimates with variances

The names that a survey needs; each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazy_exports

_EXPORTS = {
    "Questionnaire": "survey.questionnaire",
    "Group": "survey.questionnaire",
    "PersonalLaw": "survey.questionnaire",
    "Respondent": "collection.respondent",
    "FolderStore": "collection.store",
    "MemoryStore": "collection.store",
    "Report": "collection.report",
    "Tally": "collection.tally",
    "tally_parquet": "collection.parquet_tally",
    "estimate_statistics": "survey.inversion",
    "estimate_share": "survey.inversion",
    "estimate_sheet_accuracy": "survey.testing",
}

__all__ = [
    "FolderStore",
    "Group",
    "MemoryStore",
    "PersonalLaw",
    "Questionnaire",
    "Report",
    "Respondent",
    "Tally",
    "estimate_share",
    "estimate_sheet_accuracy",
    "estimate_statistics",
    "tally_parquet",
]

if TYPE_CHECKING:
    from discreet.collection.parquet_tally import tally_parquet
    from discreet.collection.report import Report
    from discreet.collection.respondent import Respondent
    from discreet.collection.store import FolderStore, MemoryStore
    from discreet.collection.tally import Tally
    from discreet.survey.inversion import estimate_share, estimate_statistics
    from discreet.survey.questionnaire import Group, PersonalLaw, Questionnaire
    from discreet.survey.testing import estimate_sheet_accuracy

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
