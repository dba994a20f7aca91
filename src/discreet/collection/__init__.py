"""What plans and questionnaires share: respondents randomize on their devices and send one report.

::

    Collection ─► Respondent ─► Report ─► Tally ─► Statistics
    public        their device  sent once  integers  discreet.local or discreet.survey

``protocol`` defines a collection. ``report``, ``store`` and ``respondent`` run on a device,
``ingest``, ``tally``, ``parquet_tally`` and ``inversion``, which finds what estimates from a tally,
at the collector; ``simulation`` runs all devices at once.
"""
