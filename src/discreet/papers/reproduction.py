"""Reproduction of a paper: cells that are computed once, figures, statements with verdicts.

A paper is a module that lists its cells (each a handful of parameters), computes one of them, draws
its figures and judges the paper's statements by the figures:

- ``TITLE`` and ``NOTES`` of its page, ``REPEATS``, the usual number of repetitions, and ``CODE``,
  the files and folders of the package whose change makes finished cells stale;
- ``list_cells(quick)``, and ``compute(cell, repeats, quick)``, a number for each repetition;
- ``make_figures(results)``, and ``STATEMENTS``, each with the function that judges it.

Everything else is here: cells run in parallel, finished ones are kept under the digest of code and
parameters, and what comes out is a CSV file of every cell, plots, and a page.
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
from typing import Any

import numpy as np

from discreet.errors import SchemaError
from discreet.files.atomic_writing import write_atomic
from discreet.papers.paper_figures import draw_figure
from discreet.papers.results import (
    PaperCell,
    PaperResults,
    Values,
    check_statements,
    compute_standard_error,
)

__all__ = [
    "PAPERS",
    "ReproductionOptions",
    "describe_left_out",
    "load_paper",
    "reproduce_paper",
]

PAPERS = {
    "local-nb": "local_nb",
    "surveys": "surveys",
    "mechanisms": "mechanisms",
    "smooth-sensitivity": "smooth_sensitivity",
    "multi-party": "multi_party",
}
"""Name on the command line to module."""

JUDGEMENT_MARKER = (
    "# ---------------------------------------------------------------- figures and verdicts"
)
"""Marker line in a paper's module: below it are texts and plots, which do not affect cells."""

ProgressCallback = Callable[[int, int], None]


@dataclass(frozen=True)
class ReproductionOptions:
    """How a reproduction was asked for."""

    out: Path
    repeats: int | None = None
    quick: bool = False
    figure: str | None = None
    jobs: int = 2
    command: str = "discreet reproduce"
    cache: Path = field(default=Path(".cache/papers"))


def load_paper(paper_name: str) -> Any:
    """The module of a paper.

    Parameters
    ----------
    paper_name : str
        As on the command line.
    """
    return import_module(f"discreet.papers.{PAPERS[paper_name]}")


def describe_left_out(paper_name: str) -> str:
    """What cannot be reproduced on this machine and what it would need; empty if nothing.

    Parameters
    ----------
    paper_name : str
        As on the command line.
    """
    return str(getattr(load_paper(paper_name), "describe_left_out", str)())


def _compute_code_digest(module: Any) -> str:
    """Digest of the code that the cells of a paper depend on."""
    package = Path(__file__).parent.parent
    code_hash = hashlib.sha256()
    for code_place in (f"papers/{Path(module.__file__).name}", *module.CODE):
        path = package / code_place
        for code_file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            code_hash.update(_extract_computation(code_file.read_text("utf-8")).encode())
    return code_hash.hexdigest()


def _extract_computation(source: str) -> str:
    """The part of a module's source that affects cells: no comments, layout, texts, plots."""
    tree = ast.parse(source.split(JUDGEMENT_MARKER)[0])
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_silent(statement)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_silent(node: ast.AST) -> bool:
    """Whether a statement affects no cell: docstrings, page texts, imports from here."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.ImportFrom):
        return str(node.module).startswith("discreet.papers")
    target_names = (
        [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []
    )
    return target_names in (["TITLE"], ["NOTES"], ["SEEDING"])


def _compute_cell(paper_name: str, cell: PaperCell, repeats: int, quick: bool) -> Values:
    import warnings

    from discreet.errors import PrivacyWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # experiments on public tables
        cell_values = load_paper(paper_name).compute(cell, repeats, quick)
    return {
        metric_name: [float(value) for value in metric_values]
        for metric_name, metric_values in cell_values.items()
    }


def reproduce_paper(
    paper_name: str, options: ReproductionOptions, report_progress: ProgressCallback | None = None
) -> Path:
    """Compute missing cells, and write the CSV file, the plots and the page of a paper.

    Parameters
    ----------
    paper_name : str
    options : ReproductionOptions
    report_progress : callable, optional
        Called with the number of finished and of all cells.

    Returns
    -------
    Path
        The page.
    """
    module = load_paper(paper_name)
    repetitions = options.repeats or (
        max(2, module.REPEATS // 10) if options.quick else module.REPEATS
    )
    cells = [
        cell
        for cell in module.list_cells(options.quick)
        if options.figure is None or cell.figure.split()[0] in (options.figure, "all")
    ]
    if not cells:
        figure_names = dict.fromkeys(
            cell.figure.split()[0] for cell in module.list_cells(options.quick)
        )
        raise SchemaError(
            f"{paper_name} has no figure {options.figure}; write one of {', '.join(figure_names)}"
        )
    code_digest, values_by_cell = _compute_code_digest(module), {}
    cache_files = {}
    for cell in cells:
        cell_key = json.dumps([cell.figure, cell.parameters, repetitions, options.quick])
        digest = hashlib.sha256((code_digest + cell_key).encode()).hexdigest()
        cache_files[cell] = cache_file = options.cache / paper_name / f"{digest[:32]}.json"
        if cache_file.exists():
            values_by_cell[cell] = json.loads(cache_file.read_text("utf-8"))["values"]
    missing_cells = [cell for cell in cells if cell not in values_by_cell]
    if report_progress:
        report_progress(len(values_by_cell), len(cells))
    for cell, cell_values in _iter_computed(paper_name, missing_cells, repetitions, options):
        values_by_cell[cell] = cell_values
        cache_body = {
            "paper": paper_name,
            "figure": cell.figure,
            "parameters": dict(cell.parameters),
            "repeats": repetitions,
            "code": code_digest,
            "values": cell_values,
        }
        cache_files[cell].parent.mkdir(parents=True, exist_ok=True)
        write_atomic(cache_files[cell], json.dumps(cache_body))
        if report_progress:
            report_progress(len(values_by_cell), len(cells))
    results = PaperResults({cell: values_by_cell[cell] for cell in cells})
    return _write_outputs(paper_name, module, results, options, repetitions)


def _iter_computed(
    paper_name: str, cells: Sequence[PaperCell], repetitions: int, options: ReproductionOptions
) -> Iterator[tuple[PaperCell, Values]]:
    if options.jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield cell, _compute_cell(paper_name, cell, repetitions, options.quick)
        return
    with ProcessPoolExecutor(options.jobs) as pool:
        cell_by_future = {
            pool.submit(_compute_cell, paper_name, cell, repetitions, options.quick): cell
            for cell in cells
        }
        try:
            for finished_future in as_completed(cell_by_future):
                yield cell_by_future[finished_future], finished_future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


# ---------------------------------------------------------------- what is written


def _write_outputs(
    paper_name: str,
    module: Any,
    results: PaperResults,
    options: ReproductionOptions,
    repetitions: int,
) -> Path:
    output_folder = options.out / paper_name
    output_folder.mkdir(parents=True, exist_ok=True)
    write_atomic(output_folder / "cells.csv", _format_csv(results))
    page_lines = [f"# {module.TITLE}", "", module.NOTES.strip(), ""]
    page_lines += [describe_left_out(paper_name), ""] if describe_left_out(paper_name) else []
    seeding_note = getattr(module, "SEEDING", "repetition r has the seed r")
    page_lines += [
        f"Made by `{options.command}`: {repetitions} repetitions of every cell unless the text "
        f"says otherwise; {seeding_note}. Every cell with its standard error is in "
        f"[cells.csv]({paper_name}/cells.csv).",
        "",
    ]
    findings = check_statements(module.STATEMENTS, results) if options.figure is None else {}
    if findings:
        page_lines += ["## What the paper states, and what we measure", ""]
        page_lines += ["| the paper | measured here | verdict |", "|---|---|---|"]
        for claim, finding in findings.items():
            reason_text = f", because {finding.reason}" if finding.reason else ""
            page_lines += [f"| {claim} | {finding.measured} | **{finding.verdict}**{reason_text} |"]
        page_lines += [""]
    for figure in module.make_figures(results):
        figure_stem = f"{paper_name}/{figure.name.replace(' ', '-')}"
        page_lines += [f"## {figure.name[0].upper()}{figure.name[1:]}", "", figure.caption, ""]
        if draw_figure(figure, options.out / figure_stem):
            page_lines += [f"![{figure.name}: {figure.caption}]({figure_stem}.svg)", ""]
    page_path = options.out / f"{paper_name}.md"
    write_atomic(page_path, "\n".join(page_lines))
    return page_path


def _format_csv(results: PaperResults) -> str:
    csv_text = io.StringIO()
    writer = csv.writer(csv_text, lineterminator="\n")
    writer.writerow(["figure", "parameters", "metric", "repetitions", "mean", "standard_error"])
    for cell, metrics in results.values.items():
        parameters_text = " ".join(f"{key}={value}" for key, value in cell.parameters)
        for metric, metric_values in metrics.items():
            error = compute_standard_error(metric_values)
            writer.writerow(
                [
                    cell.figure,
                    parameters_text,
                    metric,
                    len(metric_values),
                    f"{np.mean(metric_values):.6g}",
                    f"{error:.3g}" if len(metric_values) > 1 else "",
                ]
            )
    return csv_text.getvalue()
