"""Lazy imports: public names of a package are imported on first use.

A package that lists its names in ``_HOME`` stays quick to import, and importing one name does not
import the modules of the others: a respondent does not load what a collector runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazily"]


def lazily(
    package: str, home: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    home : mapping of str to str
        Public name -> the module that defines it, without the leading ``discreet.``.

    Examples
    --------
    >>> __getattr__, __dir__ = lazily("discreet.estimators", {"MixedNB": "estimators.mixed"})
    >>> __dir__()
    ['MixedNB']
    """

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"discreet.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(home)
