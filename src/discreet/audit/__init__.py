"""Audit a privacy guarantee: exactly where outputs are finite, by samples where they are not.

::

    make_collection_subject   a plan or a questionnaire      what leaves a device
    make_mechanism_subject    a mechanism by name            its report
    make_classifier_subject   an estimator, ours or foreign  fitted attributes, errors, warnings
    make_manifest_subject     a federated round              what is published, what is left
                                                             to colluders
    make_function_subject     any callable                   all it returns, raises or warns
            │
            ▼
         Subject ──► audit ──► Audit: a Verdict per check, in words

A check that finds nothing proves nothing; one that finds an event proves that the guarantee is
broken, with the stated confidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazy_exports

_EXPORTS = {
    "Audit": "audit.verdict",
    "Effort": "audit.auditing",
    "Pair": "audit.subject",
    "Subject": "audit.subject",
    "Verdict": "audit.verdict",
    "audit": "audit.auditing",
    "make_classifier_subject": "audit.table_subjects",
    "make_collection_subject": "audit.report_subjects",
    "make_function_subject": "audit.table_subjects",
    "make_manifest_subject": "audit.table_subjects",
    "make_mechanism_subject": "audit.report_subjects",
}

__all__ = [
    "Audit",
    "Effort",
    "Pair",
    "Subject",
    "Verdict",
    "audit",
    "make_classifier_subject",
    "make_collection_subject",
    "make_function_subject",
    "make_manifest_subject",
    "make_mechanism_subject",
]

if TYPE_CHECKING:
    from discreet.audit.auditing import Effort, audit
    from discreet.audit.report_subjects import make_collection_subject, make_mechanism_subject
    from discreet.audit.subject import Pair, Subject
    from discreet.audit.table_subjects import (
        make_classifier_subject,
        make_function_subject,
        make_manifest_subject,
    )
    from discreet.audit.verdict import Audit, Verdict

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
