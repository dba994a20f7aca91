"""Everything discreet raises on purpose.

::

    DiscreetError                 base of all
    ├── SchemaError               the public description is wrong, or a value lies outside it
    ├── FormatError               a file is truncated, tampered with, foreign or too new
    ├── PrivacyError              what was asked would break a promise
    ├── EstimationError           the statistics cannot be turned into what was asked
    └── MissingDependencyError    an optional extra is not installed

    PrivacyWarning                something private was read in order to be helpful

Every message names the field, the rule, the value and the way out.
"""

from __future__ import annotations

__all__ = [
    "DiscreetError",
    "EstimationError",
    "FormatError",
    "MissingDependencyError",
    "PrivacyError",
    "PrivacyWarning",
    "SchemaError",
]


class DiscreetError(Exception):
    """Base of every error that discreet raises on purpose."""


class SchemaError(DiscreetError, ValueError):
    """The public description is wrong, or a value lies outside it."""


class FormatError(DiscreetError, ValueError):
    """A file is truncated, tampered with, of another kind, or too new."""


class PrivacyError(DiscreetError, ValueError):
    """What was asked would break a promise."""


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
    """Something private was read, or a promise rests on an assumption that was not checked."""
