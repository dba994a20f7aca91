"""Functions of higher layers that a value of a lower one offers as methods of its own.

``Schema.infer``, ``.plot()``, ``.show()`` and what notebooks display would be imports upwards. They
pass through this module, the only exception to the rule that imports go down (``pyproject.toml``,
``tool.importlinter``); each function imports what it needs when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.privacy.guarantee import Guarantee
    from discreet.schema.schema import Schema
    from discreet.statistics.statistics import Statistics

__all__ = [
    "infer_schema",
    "plot_model",
    "plot_statistics",
    "read_column_types",
    "render_html",
    "show_model",
]


def infer_schema(table: Any, target: str, **options: Any) -> Schema:
    """Infer a schema from data; see :func:`discreet.tables.inference.infer_schema`.

    With an epsilon, for that price; see
    :func:`discreet.central.private_inference.infer_priced_schema`.
    """
    if "epsilon" in options:
        from discreet.central import private_inference

        return private_inference.infer_priced_schema(table, target, **options)
    from discreet.tables import inference

    return inference.infer_schema(table, target, **options)


def read_column_types(source: str, table: str | None) -> tuple[str, list[tuple[str, Any]]]:
    """Read what columns a source has; see :func:`discreet.tables.engines.read_column_types`."""
    from discreet.tables import engines

    return engines.read_column_types(source, table)


def render_html(value: Schema | Guarantee | Statistics | NaiveBayesModel) -> str:
    """Render what a notebook shows for a value."""
    from discreet.display import notebook

    return notebook.render_value(value)


def plot_statistics(statistics: Statistics, feature: str, ax: Any) -> Any:
    """Plot one feature; see :func:`discreet.display.plots.plot_statistics`."""
    from discreet.display import plots

    return plots.plot_statistics(statistics, feature, ax)


def plot_model(model: NaiveBayesModel, strongest: int, ax: Any) -> Any:
    """Plot the strongest evidence; see :func:`discreet.display.plots.plot_model`."""
    from discreet.display import plots

    return plots.plot_model(model, strongest, ax)


def show_model(model: NaiveBayesModel, strongest: int) -> None:
    """Print a model; see :func:`discreet.display.model_summary.show_model`."""
    from discreet.display import model_summary

    model_summary.show_model(model, strongest)
