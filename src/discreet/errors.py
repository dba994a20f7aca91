"""Everything discreet raises on purpose, the same for all four trust models.

::

    DiscreetError                   base of all
    ├── SchemaError                 a public description (schema, plan, questionnaire, manifest) or
    │                               a parameter is wrong, or a value lies outside the schema
    ├── FormatError                 a file is truncated, tampered with, foreign or too new
    ├── PrivacyError                what was asked would break a promise:
    │   │                             central    a budget that is used up, unbounded weights
    │   │                             local      a plan beyond what a device's owner allowed
    │   │                             survey     the truth sent where a promise was expected
    │   │                             federated  too few honest parties for the promised noise
    │   └── RefusedError            a method of scikit-learn that no promise allows
    ├── EstimationError             the statistics cannot be turned into what was asked
    ├── ProtocolError               a message of another party breaks the protocol
    │                               (discreet.federated.refusals)
    └── MissingDependencyError      an optional extra is not installed

    PrivacyWarning                  something private was read, or budgets of several fits add up

All but MissingDependencyError (an ImportError) are ValueErrors; RefusedError is an AttributeError
as well, so that ``hasattr`` says no. Every message names the field, the rule, the value and the
way out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "DiscreetError",
    "EstimationError",
    "FormatError",
    "MissingDependencyError",
    "PrivacyError",
    "PrivacyWarning",
    "RefusedError",
    "SchemaError",
    "about",
]


class DiscreetError(Exception):
    """Base of every error that discreet raises on purpose."""


class SchemaError(DiscreetError, ValueError):
    """A public description or a parameter is wrong, or a value lies outside the schema."""


class FormatError(DiscreetError, ValueError):
    """A file is truncated, tampered with, of another kind, or too new."""


class PrivacyError(DiscreetError, ValueError):
    """What was asked would break a promise."""


class RefusedError(PrivacyError, AttributeError):
    """A method that scikit-learn knows and that no promise allows."""


class EstimationError(DiscreetError, ValueError):
    """The statistics cannot be turned into what was asked."""


class MissingDependencyError(DiscreetError, ImportError):
    """An optional extra is not installed.

    Parameters
    ----------
    package : str
        What could not be imported.
    extra : str
        The extra of discreet that brings it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'discreet[{extra}]'")
        self.package = package
        self.extra = extra


class PrivacyWarning(UserWarning):
    """Something private was read, or the budgets of several fits add up."""


@contextmanager
def about(path: str | Path) -> Iterator[None]:
    """Errors that are raised inside begin with the name of the file they are about."""
    try:
        yield
    except DiscreetError as error:
        if str(error).startswith(str(path)):
            raise
        raise type(error)(f"{path}: {error}") from None
