"""Nobody is trusted: each person randomizes on their own device and sends one report.

::

    plan ─► respondent ─► report ─► tally ─► Statistics
    public  their device  one, once  sums     estimates with variances
"""
