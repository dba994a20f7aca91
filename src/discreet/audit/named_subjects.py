"""Subjects that a person names: a document, or a subject in a file of their own."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from inspect import signature
from typing import Any

from discreet.audit.report_subjects import make_collection_subject
from discreet.audit.subject import Subject
from discreet.audit.table_subjects import make_manifest_subject
from discreet.errors import DiscreetError, FormatError, SchemaError

__all__ = ["import_subject", "make_document_subject"]


def make_document_subject(document: Any) -> Subject:
    """Make the subject of a plan, a questionnaire or a manifest.

    Parameters
    ----------
    document : document with a guarantee
    """
    if hasattr(document, "questions"):
        return make_collection_subject(document)
    if hasattr(document, "providers"):
        return make_manifest_subject(document)
    raise FormatError(
        "a model is one draw and cannot be audited; audit how it was made: "
        "discreet audit central --schema FILE --epsilon NUMBER"
    )


def import_subject(name: str) -> Subject:
    """Import a subject from a file or module of the user.

    Parameters
    ----------
    name : str
        FILE.py:NAME or MODULE:NAME, a subject or a function that makes one.
    """
    module_name, _, member_name = name.rpartition(":")
    if module_name.endswith(".py"):
        if not os.path.exists(module_name):
            raise FormatError(f"{module_name}: there is no such file")
        sys.path.insert(0, os.path.dirname(os.path.abspath(module_name)))
        module_name = os.path.basename(module_name).removesuffix(".py")
    try:  # an error in their code must not exit with the code of a violated guarantee
        module = import_module(module_name)
        if not hasattr(module, member_name):
            raise SchemaError(
                f"{name}: {module_name} has no {member_name!r}; write a name that it defines"
            )
        candidate: Any = getattr(module, member_name)
        if (
            callable(candidate)
            and not isinstance(candidate, Subject)
            and _can_call_without_arguments(candidate)
        ):
            candidate = candidate()
    except (DiscreetError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise SchemaError(
            f"{name}: {type(error).__name__}: {error}; run {module_name} by itself first"
        ) from None
    if not isinstance(candidate, Subject):
        raise SchemaError(
            f"{name} is not a discreet.audit.Subject, nor a function that makes one; see "
            "of_function and of_classifier in discreet.audit"
        )
    return candidate


def _can_call_without_arguments(function: Any) -> bool:
    """Return whether a function can be called without arguments."""
    try:
        signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True
