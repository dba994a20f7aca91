"""Audit a privacy guarantee: exactly where outputs are finite, by samples where they are not.

::

    of_collection   a plan or a questionnaire      what leaves a device
    of_mechanism    a mechanism by name            its report
    of_classifier   an estimator, ours or foreign  fitted attributes, errors, warnings
    of_manifest     a federated round              what is published, what colluders are left with
    of_function     any callable                   everything it returns, raises or warns
            │
            ▼
         Subject ──► audit ──► Audit: a Verdict per check, in words

A check that finds nothing proves nothing; one that finds an event proves that the guarantee is
broken, with the stated confidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazily

_HOME = {
    "Audit": "audit.verdict",
    "Effort": "audit.auditing",
    "Pair": "audit.subject",
    "Subject": "audit.subject",
    "Verdict": "audit.verdict",
    "audit": "audit.auditing",
    "of_classifier": "audit.tables",
    "of_collection": "audit.reports",
    "of_function": "audit.tables",
    "of_manifest": "audit.tables",
    "of_mechanism": "audit.reports",
}

__all__ = [
    "Audit",
    "Effort",
    "Pair",
    "Subject",
    "Verdict",
    "audit",
    "of_classifier",
    "of_collection",
    "of_function",
    "of_manifest",
    "of_mechanism",
]

if TYPE_CHECKING:
    from discreet.audit.auditing import Effort, audit
    from discreet.audit.reports import of_collection, of_mechanism
    from discreet.audit.subject import Pair, Subject
    from discreet.audit.tables import of_classifier, of_function, of_manifest
    from discreet.audit.verdict import Audit, Verdict

__getattr__, __dir__ = lazily(__name__, _HOME)
