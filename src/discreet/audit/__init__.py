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

from discreet.exports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
