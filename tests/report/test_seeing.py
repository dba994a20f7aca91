"""Notebooks see tables and plots, and the notebooks of ``examples`` run."""

import ast
import builtins
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from discreet import Categorical, CentralNB, EstimationError, Guarantee, LocalNB, Schema
from discreet.compare.comparison import ComparisonSettings, compare_methods
from discreet.datasets import make_mortgage
from discreet.display import plots
from discreet.display.chart_parts import read_stylesheet
from discreet.errors import MissingDependencyError
from discreet.model.evaluation import score_model
from discreet.model.strongest_evidence import find_strongest_evidence
from discreet.privacy.guarantee import Charge

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.ipynb"))


@pytest.fixture(scope="module")
def people():
    return make_mortgage(1500, seed=4)


@pytest.fixture(scope="module")
def fitted(people):
    return LocalNB(3.0, schema=people.schema, random_state=0).fit(people.X, people.y)


class Cells(HTMLParser):
    """The text of a table's cells."""

    def __init__(self, text):
        super().__init__()
        self.found, self.inside = [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside = tag in ("td", "th", "caption", "p", "summary")
        assert tag not in ("script", "style")

    def handle_data(self, data):
        if self.inside:
            self.found.append(data)


def test_a_schema_a_promise_statistics_and_a_model_are_tables(people, fitted):
    schema = Cells(people.schema._repr_html_()).found
    assert {"age", "whole number", "18 to 100", "missed_payment: no, yes"} <= set(schema)
    promise = Cells(fitted.guarantee_._repr_html_()).found
    assert str(fitted.guarantee_).splitlines()[0] in promise
    statistics = Cells(fitted.statistics_._repr_html_()).found
    assert f"{fitted.statistics_.totals[0]:,.1f}" in statistics
    model = Cells(fitted.model_._repr_html_()).found
    assert f"{fitted.class_prior_[0]:.3f}" in model
    assert "strongest evidence" in model
    central = CentralNB(1.0, method="moments", schema=people.schema, random_state=0)
    central.fit(people.X, people.y)
    assert "mean ± deviation" in Cells(central.model_._repr_html_()).found
    assert "mean and variance" in Cells(central.statistics_._repr_html_()).found
    assert len(repr(central)) < 300


def test_long_tables_are_folded_and_short_ones_are_open(people, fitted):
    schema = people.schema._repr_html_()
    assert "<details>" not in schema  # 8 features
    charges = tuple(Charge(f"step {number}", 0.1) for number in range(11))
    promise = Guarantee(1.1, charges=charges)._repr_html_()
    assert "<details><summary>spent: 11 rows</summary><table>" in promise
    assert promise.index("epsilon = 1.1") < promise.index("<details>")
    ten = Guarantee(1.0, charges=charges[:10])._repr_html_()
    assert "<details>" not in ten
    model = fitted.model_._repr_html_()
    assert "<caption>strongest evidence</caption>" in model
    headline = str(fitted.guarantee_).splitlines()[0]
    assert f"<details><summary>{headline}</summary>" in model


@pytest.mark.slow
def test_the_box_of_an_estimator_shows_its_promise_in_one_line(people):
    estimator = CentralNB(1.0, schema=people.schema)
    assert "<details><summary>epsilon" not in estimator._repr_html_()
    fitted = estimator.fit(people.X, people.y)
    line = "<summary>epsilon = 1 per person in total (add-remove, central)</summary>"
    for shown in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
        assert shown.count(line) == 1
        assert "sk-estimator" in shown
        assert "Protected against everyone who sees the released model." in shown
    assert "epsilon = 1 per" not in clone(fitted)._repr_html_()
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert fitted._repr_mimebundle_() == {"text/plain": repr(fitted)}
    simulated = CentralNB(1.0, schema=people.schema, random_state=0).fit(people.X, people.y)
    assert "<summary>SIMULATED with a seeded source" in simulated._repr_html_()


def test_names_cannot_break_out_of_a_table():
    from discreet import Categorical, Schema

    schema = Schema([Categorical("<script>", ["<b>", "&"])], "c", ["<i>", "y"])
    text = schema._repr_html_()
    assert "<script>" not in text
    assert "<b>" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.slow
def test_plots_show_what_the_numbers_say(people, fitted):
    pytest.importorskip("matplotlib").use("Agg")
    ax = fitted.model_.plot(strongest=5)
    assert len(ax.patches) == 5
    lines = find_strongest_evidence(fitted.model_, 5)
    assert [bar.get_width() for bar in ax.patches] == [line.log_odds for line in lines[::-1]]
    assert [text.get_text() for text in ax.texts] == [line.share_text for line in lines[::-1]]
    ax = fitted.statistics_.plot("income")
    drawn = ax.containers[0].lines[0].get_ydata()
    table, totals = fitted.statistics_.tables["income"], fitted.statistics_.totals
    assert list(drawn) == pytest.approx(list(table.counts[0] / totals[0]))
    with pytest.raises(EstimationError, match="there are tables of"):
        fitted.statistics_.plot("nothing")
    scores = score_model(fitted.model_, people.X, people.y)
    ax = plots.plot_reliability(scores)
    points = ax.containers[0].lines[0].get_ydata()
    assert list(points) == pytest.approx([one["hits"] for one in scores.to_body()["reliability"]])


@pytest.mark.slow
@pytest.mark.parametrize("classes", [[False, True], [0.0, 1.0]])
def test_classes_that_are_not_text_are_plotted(classes):
    pytest.importorskip("matplotlib").use("Agg")
    schema = Schema([Categorical("a", ["x", "y"], optional=False)], "c", classes)
    y = np.repeat(classes, 100)
    X = np.where(y == classes[1], "x", "y").astype(object)[:, None]
    model = CentralNB(1.0, schema=schema, random_state=0).fit(X, y).model_
    assert model.plot().patches


@pytest.mark.slow
def test_accuracy_against_epsilon_is_the_comparison(people):
    pytest.importorskip("matplotlib").use("Agg")
    settings = ComparisonSettings((0.5, 2.0), ("histogram", "auto"), folds=2, most_respondents=1000)
    found = compare_methods("people", people.schema, people.X, people.y, settings)
    ax = plots.plot_accuracy(found)
    central, local = (line.get_ydata().tolist() for line in ax.lines[:2])
    assert central == [found.find_best("central", e).accuracy for e in (0.5, 2.0)]
    assert local == [found.find_best("local", e).accuracy for e in (0.5, 2.0)]


def test_plots_and_charts_have_the_same_colours():
    light = read_stylesheet().split("@media")[0]
    assert tuple(re.findall(r"--chart-[1-6]: (#[0-9a-f]+)", light)) == plots.SERIES_COLOURS[:6]


def test_a_missing_matplotlib_is_named_with_its_extra(fitted, monkeypatch):
    real = builtins.__import__

    def without(name, *more, **others):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *more, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"discreet\[plot\]"):
        fitted.model_.plot()


def script_of(notebook):
    """The code cells as a script that also asks the last value of a cell for its table."""
    lines = ["import matplotlib", "matplotlib.use('Agg')"]
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        if isinstance(tree.body[-1], ast.Expr):
            last = ast.unparse(tree.body.pop().value)
            lines += [ast.unparse(tree), f"_value = {last}"]
            lines += ["print(getattr(_value, '_repr_html_', lambda: repr(_value))())"]
        else:
            lines.append(ast.unparse(tree))
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_runs(notebook, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", script_of(notebook)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "<table>" in done.stdout or "At epsilon" in done.stdout
    assert not list(tmp_path.iterdir())


def test_there_are_four_notebooks():
    assert len(NOTEBOOKS) == 4


def list_output_faults(notebook: dict) -> list[str]:
    """What a reader of an unopened notebook would miss, or should not see."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    faults = ["a cell was not run" for cell in cells if cell["execution_count"] is None]
    faults += [f"ends with {out['ename']}" for out in outputs if out["output_type"] == "error"]
    if not outputs:
        faults.append("shows nothing")
    if "site-packages" in json.dumps(outputs) or "ipykernel_" in json.dumps(outputs):
        faults.append("names a path of the machine that ran it")
    return faults


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_carry_their_outputs(path):
    """``make notebooks`` runs them again."""
    notebook = json.loads(path.read_text("utf-8"))
    assert list_output_faults(notebook) == []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    assert "shows nothing" in list_output_faults(notebook)  # it can fail
