"""How a paper is reproduced: cells that are computed once, figures, statements with verdicts.

A paper is a module that lists its cells (each a handful of parameters), computes one of them, draws
its figures and judges the paper's statements by the figures. Everything else is here: cells run in
parallel, finished ones are kept under the digest of code and parameters, and what comes out is a
CSV file of every cell, plots, and a page.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from discreet.documents import write_atomic

__all__ = ["Cell", "Figure", "Line", "Panel", "Paper", "Results", "Statement", "reproduce"]

PAPERS = {
    "local-nb": "local_nb",
    "surveys": "surveys",
    "mechanisms": "mechanisms",
    "smooth-sensitivity": "smooth_sensitivity",
    "multi-party": "multi_party",
}
"""Name on the command line to module."""

JUDGED = "# ---------------------------------------------------------------- figures and verdicts"
"""Below this line of a module are words and plots, which do not change what was computed."""

Values = Mapping[str, Sequence[float]]
Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class Cell:
    """One number of a figure: which figure, and the parameters, in a fixed order."""

    figure: str
    parameters: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, figure: str, **parameters: Any) -> Cell:
        """A cell with named parameters."""
        return cls(figure, tuple(parameters.items()))

    def __getitem__(self, name: str) -> Any:
        return dict(self.parameters)[name]


@dataclass(frozen=True)
class Line:
    """A line of a plot, with standard errors if it has any."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] = ()
    style: str = "-"


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    lines: Sequence[Line]
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of the paper in its own arrangement."""

    name: str
    caption: str
    panels: Sequence[Panel]
    columns: int = 2


@dataclass(frozen=True)
class Statement:
    """What the paper says, what was measured, and whether it holds."""

    said: str
    measured: str
    verdict: str
    because: str = ""


@dataclass(frozen=True)
class Results:
    """The values of the cells that were computed."""

    values: Mapping[Cell, Values]

    def __contains__(self, cell: Cell) -> bool:
        return cell in self.values

    def series(self, figure: str, metric: str = "accuracy", **parameters: Any) -> Sequence[float]:
        """The values of one cell."""
        return self.values[Cell.of(figure, **parameters)][metric]

    def mean(self, figure: str, metric: str = "accuracy", **parameters: Any) -> float:
        """Their mean; NaN if the cell was not computed."""
        cell = Cell.of(figure, **parameters)
        found = self.values.get(cell, {}).get(metric, ())
        return float(np.mean(found)) if len(found) else math.nan

    def error(self, figure: str, metric: str = "accuracy", **parameters: Any) -> float:
        """Standard error of the mean."""
        found = self.values.get(Cell.of(figure, **parameters), {}).get(metric, ())
        return _error(found)


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


class Paper(Protocol):
    """What a module of this folder provides."""

    TITLE: str
    NOTES: str
    CODE: tuple[str, ...]
    """Files and folders of the package whose change makes finished cells stale."""
    REPEATS: int

    @staticmethod
    def cells(quick: bool) -> list[Cell]:
        """What is computed."""

    @staticmethod
    def compute(cell: Cell, repeats: int, quick: bool) -> Values:
        """The values of one cell, a number for each repetition."""

    @staticmethod
    def figures(results: Results) -> Iterator[Figure]:
        """The plots."""

    @staticmethod
    def statements(results: Results) -> Iterator[Statement]:
        """The verdicts."""


@dataclass(frozen=True)
class Run:
    """How a reproduction was asked for."""

    out: Path
    repeats: int | None = None
    quick: bool = False
    figure: str | None = None
    jobs: int = 2
    command: str = "discreet reproduce"
    cache: Path = field(default=Path(".cache/papers"))


def paper(name: str) -> Any:
    """The module of a paper.

    Parameters
    ----------
    name : str
        As on the command line.
    """
    return import_module(f"discreet.papers.{PAPERS[name]}")


def _digest(module: Any) -> str:
    """Digest of the code that the cells of a paper depend on."""
    package = Path(__file__).parent.parent
    found = hashlib.sha256()
    for place in (f"papers/{Path(module.__file__).name}", *module.CODE):
        path = package / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(file.read_text("utf-8").split(JUDGED)[0].encode())
    return found.hexdigest()


def _kept(run: Run, name: str, code: str, cell: Cell, repeats: int) -> Path:
    asked = json.dumps([cell.figure, cell.parameters, repeats, run.quick])
    return run.cache / name / f"{hashlib.sha256((code + asked).encode()).hexdigest()[:32]}.json"


def _compute(name: str, cell: Cell, repeats: int, quick: bool) -> Values:
    import warnings

    from discreet.errors import PrivacyWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # experiments on public tables
        found = paper(name).compute(cell, repeats, quick)
    return {metric: [float(value) for value in values] for metric, values in found.items()}


def reproduce(name: str, run: Run, advance: Advance | None = None) -> Path:
    """Compute what is not there yet, and write the CSV file, the plots and the page of a paper.

    Parameters
    ----------
    name : str
    run : Run
    advance : callable, optional
        Called with the number of finished and of all cells.

    Returns
    -------
    Path
        The page.
    """
    module = paper(name)
    repeats = run.repeats or (max(2, module.REPEATS // 10) if run.quick else module.REPEATS)
    cells = [
        cell
        for cell in module.cells(run.quick)
        if run.figure is None or cell.figure.split()[0] in (run.figure, "all")
    ]
    code, values = _digest(module), {}
    files = {cell: _kept(run, name, code, cell, repeats) for cell in cells}
    for cell, file in files.items():
        if file.exists():
            values[cell] = json.loads(file.read_text("utf-8"))["values"]
    missing = [cell for cell in cells if cell not in values]
    if advance:
        advance(len(values), len(cells))
    for cell, found in _computed(name, missing, repeats, run):
        values[cell] = found
        body = {
            "paper": name,
            "figure": cell.figure,
            "parameters": dict(cell.parameters),
            "repeats": repeats,
            "code": code,
            "values": found,
        }
        files[cell].parent.mkdir(parents=True, exist_ok=True)
        write_atomic(files[cell], json.dumps(body))
        if advance:
            advance(len(values), len(cells))
    results = Results({cell: values[cell] for cell in cells})
    return _written(name, module, results, run, repeats)


def _computed(
    name: str, cells: Sequence[Cell], repeats: int, run: Run
) -> Iterator[tuple[Cell, Values]]:
    if run.jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield cell, _compute(name, cell, repeats, run.quick)
        return
    with ProcessPoolExecutor(run.jobs) as pool:
        waiting = {pool.submit(_compute, name, c, repeats, run.quick): c for c in cells}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


# ---------------------------------------------------------------- what is written


def _written(name: str, module: Any, results: Results, run: Run, repeats: int) -> Path:
    folder = run.out / name
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "cells.csv", _csv(results))
    page = [f"# {module.TITLE}", "", module.NOTES.strip(), ""]
    page += [
        f"Made by `{run.command}`: {repeats} repetitions of every cell unless the text says "
        f"otherwise; repetition r has the seed r. Every cell with its standard error is in "
        f"[cells.csv]({name}/cells.csv).",
        "",
    ]
    verdicts = list(module.statements(results)) if run.figure is None else []
    if verdicts:
        page += ["## What the paper states, and what we measure", ""]
        page += ["| the paper | measured here | verdict |", "|---|---|---|"]
        for one in verdicts:
            because = f", because {one.because}" if one.because else ""
            page += [f"| {one.said} | {one.measured} | **{one.verdict}**{because} |"]
        page += [""]
    for figure in module.figures(results):
        stem = f"{name}/{figure.name.replace(' ', '-')}"
        page += [f"## {figure.name[0].upper()}{figure.name[1:]}", "", figure.caption, ""]
        if draw(figure, run.out / stem):
            page += [f"![{figure.name}: {figure.caption}]({stem}.svg)", ""]
    path = run.out / f"{name}.md"
    write_atomic(path, "\n".join(page))
    return path


def _csv(results: Results) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["figure", "parameters", "metric", "repetitions", "mean", "standard_error"])
    for cell, metrics in results.values.items():
        named = " ".join(f"{key}={value}" for key, value in cell.parameters)
        for metric, values in metrics.items():
            row = [cell.figure, named, metric, len(values), f"{np.mean(values):.6g}"]
            writer.writerow([*row, f"{_error(values):.3g}" if len(values) > 1 else ""])
    return text.getvalue()


COLOURS = ("#0b5cad", "#b34a00", "#00735a", "#a03c78", "#6b5500", "#1a1a1a", "#8a5fd0", "#c2185b")
MARKS = "os^Dvx*P"


def draw(figure: Figure, stem: Path) -> bool:
    """Write ``stem.svg`` and ``stem.png``; False where matplotlib is not installed.

    Parameters
    ----------
    figure : Figure
    stem : Path
    """
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(figure.columns, len(figure.panels))
    rows = math.ceil(len(figure.panels) / columns)
    names = dict.fromkeys(line.label for panel in figure.panels for line in panel.lines)
    looks = {name: k for k, name in enumerate(names)}
    width = 4.6 * columns if columns > 1 else 7.0
    with pyplot.rc_context({"svg.hashsalt": "discreet", "svg.fonttype": "none", "font.size": 9}):
        made, axes = pyplot.subplots(
            rows, columns, figsize=(width, 3.4 * rows + 0.4), squeeze=False, layout="constrained"
        )
        for place, panel in zip(axes.flat, figure.panels, strict=False):
            _panel(place, panel, looks)
        for place in list(axes.flat)[len(figure.panels) :]:
            place.set_visible(False)
        handles: dict[str, Any] = {}
        for place in axes.flat:
            for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        longest = max(len(name) for name in looks)
        across = max(1, min(len(looks), int(width * 72 / (5.0 * longest + 45))))
        made.legend(
            [handles[name] for name in looks], list(looks), loc="outside lower center", ncols=across
        )
        made.savefig(f"{stem}.svg", metadata={"Date": None})
        made.savefig(f"{stem}.png", dpi=110)
        pyplot.close(made)
    return True


def _panel(place: Any, panel: Panel, looks: Mapping[str, int]) -> None:
    for line in panel.lines:
        k = looks[line.label]
        look: dict[str, Any] = {"color": COLOURS[k % 8], "linestyle": line.style, "linewidth": 1.4}
        if len(line.x) > 1 and line.style == "-":
            look |= {"marker": MARKS[k % 8], "markersize": 4}
        if len(line.error):
            look.pop("linestyle")
            place.errorbar(line.x, line.y, line.error, label=line.label, capsize=2, **look)
        else:
            place.plot(line.x, line.y, label=line.label, **look)
    place.set_title(panel.title, fontsize=10)
    place.set_xlabel(panel.x)
    place.set_ylabel(panel.y)
    if panel.log_x:
        _log_scale(place.xaxis, place.set_xscale)
    if panel.log_y:
        _log_scale(place.yaxis, place.set_yscale)
    place.grid(alpha=0.3)


def _log_scale(axis: Any, scale: Callable[[str], None]) -> None:
    """Plain numbers that keep their distance: 1, 2, 5 of each decade, or 1 alone of many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    scale("log")
    low, high = axis.get_view_interval()
    few = high / max(low, 1e-300) < 1e3
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
