"""Statistics and model of a settled tally, computed once per version of the tally."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.collection.inversion import load_inversion
from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.estimation import estimate
from discreet.model.naive_bayes import NaiveBayesModel
from discreet.server import tallies
from discreet.server.database import Database
from discreet.server.surveys import Survey
from discreet.statistics.statistics import Statistics

__all__ = ["Analyses", "Analysis"]


@dataclass(frozen=True, eq=False)
class Analysis:
    """Statistics and model of one version of a tally.

    Parameters
    ----------
    survey : Survey
    version : int
    tally : Tally
    """

    survey: Survey
    version: int
    tally: Tally[Any]

    @cached_property
    def statistics(self) -> Statistics:
        """Unbiased estimates, with the guarantee that respondents were given."""
        if self.tally.reports == 0:
            raise EstimationError("no reports are settled yet, so nothing can be estimated")
        guarantee = self.survey.announcement.make_guarantee(self.survey.collection)
        inversion = load_inversion(self.survey.collection)
        return inversion.estimate_statistics(self.tally, guarantee)

    @cached_property
    def model(self) -> NaiveBayesModel:
        """The classifier."""
        return estimate(self.statistics)


class Analyses:
    """The latest analysis of each survey.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._latest: dict[int, Analysis] = {}
        self._lock = threading.Lock()

    def get_analysis(self, survey: Survey) -> Analysis:
        """Return the analysis of what is settled now; recomputed when the tally has changed."""
        with self.database.read() as connection:
            version = tallies.read_counters(connection, survey.number).version
            latest_analysis = self._latest.get(survey.number)
            if latest_analysis is not None and latest_analysis.version == version:
                return latest_analysis
            tally = tallies.load_tally(connection, survey.number, survey.collection)
        tally.simulated = survey.simulated  # inherited by statistics and model
        analysis = Analysis(survey, version, tally)
        with self._lock:
            self._latest[survey.number] = analysis
        return analysis
