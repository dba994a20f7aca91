"""Surveys by randomized response: people answer in groups, and each group may be a decoy.

::

    questionnaire ─► respondent ─► sheet ─► tally ─► Statistics, any logical expression, accuracy
    public           their device  one, once  sums     estimates with variances
"""
