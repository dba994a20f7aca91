"""Lazy imports: public names of a package are imported on first use.

A package that lists its names in ``_EXPORTS`` stays quick to import, and importing one name does
not import the modules of the others: a respondent does not load what a collector runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_exports"]


def lazy_exports(
    package: str, module_by_name: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    module_by_name : mapping of str to str
        Public name -> the module that defines it, without the leading ``discreet.``.

    Examples
    --------
    >>> __getattr__, __dir__ = lazy_exports("discreet.estimators", {"MixedNB": "estimators.mixed"})
    >>> __dir__()
    ['MixedNB']
    """

    def find_export(name: str) -> Any:
        if name not in module_by_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        exported_value = getattr(import_module(f"discreet.{module_by_name[name]}"), name)
        setattr(sys.modules[package], name, exported_value)
        return exported_value

    return find_export, lambda: sorted(module_by_name)
