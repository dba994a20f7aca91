"""Nobody is trusted: each person randomizes on their own device and sends one report.

::

    Plan ─► Respondent ─► Report ─► Tally ─► Statistics
    public  their device  sent once  sums     estimates with variances

The names that a collection needs; each is imported when it is first used.
"""

from discreet.exports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
