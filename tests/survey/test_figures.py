"""The figures of 001 on the benchmark tables, and that their fast simulation is an honest one."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from discreet import Categorical, Schema
from discreet.collection.simulation import simulate
from discreet.papers import surveys as figures
from discreet.randomness import SeededRandom
from discreet.survey.inversion import statistics_of
from discreet.survey.questionnaire import Questionnaire

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["unrelated", "related"])
def test_sufficient_statistics_have_the_law_of_real_sheets(model):
    """300 repetitions each way: means by t, variances by F, correlation; 1e-6 a number."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = (rng.random((400, 3)) < np.where(y[:, None] == 1, 0.7, 0.2)).astype(int)
    rows, where = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
    counts = np.bincount(where.ravel(), minlength=len(rows))
    split = figures.Split(rows[:, :-1], rows[:, -1], counts, counts)
    totals, values = figures.estimated(
        figures.randomized(split, 0.7, model, 300, 1), 0.7, model, 400
    )
    names = ["x", "y", "z"]
    schema = Schema([Categorical(n, [0, 1], optional=False) for n in names], "c", [0, 1])
    survey = Questionnaire.of(schema, 0.7, model=model)
    truth = np.column_stack([X, y])
    slow = [statistics_of(simulate(survey, truth, SeededRandom(k))) for k in range(300)]
    fast = np.column_stack([totals[:, 1], *(values[:, c, j, 1] for c in (0, 1) for j in range(3))])
    real = np.array(
        [[s.totals[1], *(s.tables[n].counts[c, 1] for c in (0, 1) for n in names)] for s in slow]
    )
    assert (stats.ttest_ind(fast, real).pvalue > 1e-6).all()
    ratio = fast.var(axis=0) / real.var(axis=0)
    assert (np.abs(np.log(ratio)) < np.log(stats.f.isf(5e-7, 299, 299))).all()
    difference = np.corrcoef(fast.T) - np.corrcoef(real.T)
    assert np.abs(difference).max() < 5.5 * np.sqrt(2 / 300)


def test_the_privacy_plot_and_warner_are_as_the_paper_says():
    figures.check_privacy(figures.privacy_table())
    figures.check_warner()
    worse = figures.privacy_table()
    worse[0.1][3] = 0.5  # the known-bad twin is found
    with pytest.raises(AssertionError):
        figures.check_privacy(worse)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "breast_cancer_wisconsin"])
def test_the_papers_statements_hold(name):
    tasks = [(name, theta, "unrelated", 300) for theta in (*figures.THETAS, 0.51)]
    tasks += [(name, theta, "related", 300) for theta in (0.51, 0.6)]
    results = [figures.cell(task) for task in tasks]
    found = {key: scores for key, scores, _, _ in results}
    ours = {key[:2]: scores for key, _, scores, _ in results if len(scores)}
    figures.check_accuracy(name, found, ours)


@pytest.mark.slow
def test_the_worked_example_runs_from_anywhere(tmp_path):
    script = ROOT / "examples" / "survey" / "worked_example.py"
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "epsilon" in done.stdout
    assert not list(tmp_path.iterdir())  # and leaves nothing behind
