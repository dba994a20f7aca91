"""Lazy imports: public names of a package are imported on first use.

A package lists its public names once, in its stub ``__init__.pyi``, with a line
``from discreet.x.y import Name as Name`` for each. Type checkers and editors read the stub, and
:func:`attach_stub` reads it when the package is imported. So the package stays quick to import, and
importing one name does not import the modules of the others: a respondent does not load what a
collector runs.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import get_data
from typing import Any

__all__ = ["attach_stub", "read_stub"]


def attach_stub(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package that has a stub.

    Parameters
    ----------
    package : str
        Its ``__name__``.

    Examples
    --------
    >>> __getattr__, __dir__, __all__ = attach_stub("discreet.estimators")
    >>> __all__
    ['CentralNB', 'FederatedNB', 'LocalNB', 'MixedNB', 'SurveyNB']
    """
    module_by_name = read_stub((get_data(package, "__init__.pyi") or b"").decode())

    def find_export(name: str) -> Any:
        if name not in module_by_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        exported_value = getattr(import_module(module_by_name[name]), name)
        setattr(sys.modules[package], name, exported_value)
        return exported_value

    return find_export, lambda: sorted(module_by_name), sorted(module_by_name)


def read_stub(text: str) -> dict[str, str]:
    """Map each name that a stub re-exports to the module that defines it.

    As for type checkers, ``from module import Name`` re-exports nothing without ``as Name``.

    Parameters
    ----------
    text : str
        The content of a ``.pyi`` file.
    """
    return {
        alias.name: str(statement.module)
        for statement in ast.parse(text).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.asname == alias.name
    }
