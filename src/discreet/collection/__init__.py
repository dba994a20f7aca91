"""What plans and questionnaires share: people randomize on their own device and send one report.

::

    Collection ─► Respondent ─► Report ─► Tally ─► Statistics
    public        their device  one, once  integers  discreet.local or discreet.survey

``protocol`` says what a collection is. ``report``, ``store`` and ``respondent`` run on a device,
``tally``, ``files`` and ``bulk`` at the collector; ``simulation`` plays all devices at once.
"""
