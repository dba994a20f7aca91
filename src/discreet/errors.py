"""Exceptions and warnings of discreet, shared by all trust models.

::

    DiscreetError                   base of all
    ├── SchemaError                 a public description (schema, plan, questionnaire, manifest) or
    │   │                           a parameter is wrong, or a value is outside the schema
    │   └── RowError                a value in a row of a table is outside the schema
    ├── FormatError                 a file is truncated, tampered with, foreign or too new
    ├── PrivacyError                the request would break a guarantee:
    │   │                             central    a budget that is used up, unbounded weights
    │   │                             local      a plan beyond what a device's owner allowed
    │   │                             survey     answers that would be sent unprotected
    │   │                             federated  too few honest parties for the promised noise
    │   └── RefusedError            a scikit-learn method that would break the guarantee
    ├── EstimationError             the statistics do not allow the requested estimate
    ├── ProtocolError               a message of another party breaks the protocol
    │                               (discreet.federated.refusals)
    └── MissingDependencyError      an optional extra is not installed

    PrivacyWarning                  something private was read, or budgets of several fits add up

All but MissingDependencyError (an ImportError) are ValueErrors; RefusedError is an AttributeError
as well, so that ``hasattr`` is False. Every message names the field, the rule, the value and the
way out.
"""

from __future__ import annotations

__all__ = [
    "DiscreetError",
    "EstimationError",
    "FormatError",
    "MissingDependencyError",
    "PrivacyError",
    "PrivacyWarning",
    "RefusedError",
    "RowError",
    "SchemaError",
]


class DiscreetError(Exception):
    """Base of every error that discreet raises on purpose."""


class SchemaError(DiscreetError, ValueError):
    """A public description or a parameter is wrong, or a value is outside the schema."""


class RowError(SchemaError):
    """A value in a row of a table is outside the schema.

    Parameters
    ----------
    reason : str
        What is wrong, and the way out.
    row : int, optional
        The row, counted from 0 as pandas and ``discreet predict --explain`` do.
    """

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason, row)
        self.reason, self.row = reason, row

    def __str__(self) -> str:
        row_note = "" if self.row is None else f" (row {self.row}; the first is 0)"
        return self.reason + row_note

    def add_rows_before(self, rows_before: int) -> RowError:
        """The same error, its row counted from the beginning of a longer table."""
        return RowError(self.reason, None if self.row is None else self.row + rows_before)


class FormatError(DiscreetError, ValueError):
    """A file is truncated, tampered with, of another kind, or too new."""


class PrivacyError(DiscreetError, ValueError):
    """The request would break a privacy guarantee."""


class RefusedError(PrivacyError, AttributeError):
    """A scikit-learn method that would break the guarantee, such as partial_fit."""


class EstimationError(DiscreetError, ValueError):
    """The statistics do not allow the requested estimate."""


class MissingDependencyError(DiscreetError, ImportError):
    """An optional extra is not installed.

    Parameters
    ----------
    package : str
        What could not be imported.
    extra : str
        The extra of discreet that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'discreet[{extra}]'")
        self.package = package
        self.extra = extra


class PrivacyWarning(UserWarning):
    """Something private was read, or the budgets of several fits add up."""
