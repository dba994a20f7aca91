"""Reproduction of a paper: cells that are computed once, figures, statements with verdicts.

A paper is a module that lists its cells (each a handful of parameters), computes one of them, draws
its figures and judges the paper's statements by the figures. Everything else is here: cells run in
parallel, finished ones are kept under the digest of code and parameters, and what comes out is a
CSV file of every cell, plots, and a page.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from discreet.documents import write_atomic
from discreet.errors import SchemaError
from discreet.papers.drawing import Figure, draw
from discreet.papers.results import Cell, Results, Statement, Values, standard_error

__all__ = ["PAPERS", "Paper", "Run", "left_out", "paper", "reproduce"]

PAPERS = {
    "local-nb": "local_nb",
    "surveys": "surveys",
    "mechanisms": "mechanisms",
    "smooth-sensitivity": "smooth_sensitivity",
    "multi-party": "multi_party",
}
"""Name on the command line to module."""

JUDGED = "# ---------------------------------------------------------------- figures and verdicts"
"""Marker line in a paper's module: below it are texts and plots, which do not affect cells."""

Advance = Callable[[int, int], None]


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


def left_out(name: str) -> str:
    """What cannot be reproduced on this machine and what it would need; empty if nothing.

    Parameters
    ----------
    name : str
        As on the command line.
    """
    return str(getattr(paper(name), "left_out", str)())


def _digest(module: Any) -> str:
    """Digest of the code that the cells of a paper depend on."""
    package = Path(__file__).parent.parent
    found = hashlib.sha256()
    for place in (f"papers/{Path(module.__file__).name}", *module.CODE):
        path = package / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(_meaning(file.read_text("utf-8")).encode())
    return found.hexdigest()


def _meaning(source: str) -> str:
    """The part of a module's source that affects cells: no comments, layout, texts, plots."""
    tree = ast.parse(source.split(JUDGED)[0])
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _silent(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _silent(node: ast.AST) -> bool:
    """Whether a statement affects no cell: docstrings, page texts, imports from here."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.ImportFrom):
        return str(node.module).startswith("discreet.papers")
    names = [ast.unparse(one) for one in node.targets] if isinstance(node, ast.Assign) else []
    return names in (["TITLE"], ["NOTES"], ["SEEDING"])


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
    """Compute missing cells, and write the CSV file, the plots and the page of a paper.

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
    if not cells:
        known = dict.fromkeys(cell.figure.split()[0] for cell in module.cells(run.quick))
        raise SchemaError(f"{name} has no figure {run.figure}; write one of {', '.join(known)}")
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
    page += [left_out(name), ""] if left_out(name) else []
    seeds = getattr(module, "SEEDING", "repetition r has the seed r")
    page += [
        f"Made by `{run.command}`: {repeats} repetitions of every cell unless the text says "
        f"otherwise; {seeds}. Every cell with its standard error is in "
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
            writer.writerow([*row, f"{standard_error(values):.3g}" if len(values) > 1 else ""])
    return text.getvalue()
