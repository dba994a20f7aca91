"""Run the notebooks of ``examples/`` and keep their outputs: ``make notebooks``.

Readers see the tables and plots without running anything. Outputs are trimmed to what pages show:
no times of execution, no identifiers that change from run to run.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TIMEOUT = 600
"""Seconds that one cell may take."""


def run_notebook(path: Path) -> None:
    """Run one notebook in an empty folder and write its outputs into it."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ["PYTHONHASHSEED"] = "0"
    for notebook_path in sorted(EXAMPLES.glob("*.ipynb")):
        run_notebook(notebook_path)
        print(notebook_path.name)
