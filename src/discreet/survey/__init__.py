"""Surveys by randomized response: people answer in groups, and each group may be a decoy.

::

    Questionnaire ─► Respondent ─► Report ─► Tally ─► Statistics, any logical predicate, accuracy
    public           their device  a sheet    counts   estimates with variances

The names that a survey needs; each is imported when it is first used.
"""

from discreet.exports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
