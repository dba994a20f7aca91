"""Naive Bayes under local differential privacy (Yilmaz, Al-Rubaie, Chang): figures 2 to 4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from discreet.papers.local_nb_experiments import (
    EPSILON_READINGS,
    ORACLES,
    THETAS,
    compute,
    list_cells,
)
from discreet.papers.local_nb_numeric import make_numeric_figures
from discreet.papers.local_nb_statements import STATEMENTS
from discreet.papers.paper_figures import Figure, Panel, make_flat_line
from discreet.papers.results import PaperResults
from discreet.privacy.guarantee import format_rounded_up

__all__ = [
    "CODE",
    "NOTES",
    "REPEATS",
    "STATEMENTS",
    "TITLE",
    "compute",
    "list_cells",
    "make_figures",
]

TITLE = "Naive Bayes under local differential privacy, reproduced"
NOTES = """
E. Yilmaz, M. Al-Rubaie, J. M. Chang: *Locally differentially private Naive Bayes classification*.
Accuracy on 20 % of the rows after training on the other 80 %, split anew in every repetition; a
fifth of the repetitions on Connect-4.

The paper's epsilon can be read in two ways. **Per person**: everyone sends one report, about one
question that chance picks, and epsilon is all they spend. **Per report**: everyone answers all
n + 1 questions with epsilon each, and spends (n + 1) epsilon in total. The paper's plan and
estimator are used in both (`LocalNB(plan="paper", postprocess="paper")`); only the first reading
is a promise of epsilon to a person, and only it is offered by this package.

The paper learns its projections (PCA, DCA) from the raw training rows, which no untrusted collector
has: *projection not private*. Beside it, the projection comes from a tenth of the rows, taken as
public and left out of training.

Where the paper is silent: all columns of Australian are numbers, categories by their codes; class
means are confined to the public bounds and class variances are at least the square of a hundredth
of the range (figure 4).

How verdicts are reached: accuracies are compared repetition by repetition, which share their split.
A difference is clear, if its interval of 95 % (Student's, widened for the number of comparisons)
leaves out zero; "nearly", "very close" and "alike" mean within two points, which the whole interval
has to show; what the interval leaves open is called undecided. ± is one standard error. The two
points are the limit of every page here. This page had 4 points for "very close" once, set after
seeing results, and the verdict on Car changed with the seeds; beside the verdict stands now for
which limits it would be the same.
"""
CODE = (
    "papers/local_nb_experiments.py",
    "papers/experiments.py",
    "estimators",
    "local",
    "mechanisms",
    "collection",
    "estimation",
    "schema/projection.py",
)
REPEATS = 50

# ---------------------------------------------------------------- figures and verdicts

EPSILON_AXIS_TITLES = {
    "per person": "epsilon, total per person",
    "per report": "epsilon of each report",
}


def make_figures(results: PaperResults) -> Iterator[Figure]:
    """Figures 2, 3 and 4, and accuracy by THE's theta."""
    epsilons = results.list_parameter_values("2", "epsilon")
    for reading in EPSILON_READINGS if epsilons else ():
        panels = []
        for table in results.list_parameter_values("2", "table"):
            plot_lines = results.make_lines(
                "2", "oracle", ORACLES, "epsilon", epsilons, table=table, reading=reading
            )
            exact_accuracy = results.compute_mean("2", table=table, oracle="none")
            panels.append(
                Panel(
                    table,
                    [
                        *(replace(line, label=line.label.upper()) for line in plot_lines),
                        make_flat_line("no privacy", epsilons, exact_accuracy),
                    ],
                    EPSILON_AXIS_TITLES[reading],
                    "accuracy",
                )
            )
        yield Figure(f"figure 2 {reading}", f"Discrete features, epsilon {reading}.", panels)
    yield from make_numeric_figures(results)
    panels = [
        Panel(
            f"{table}, epsilon {format_rounded_up(epsilon)}",
            [results.make_line("THE", "theta", "theta", THETAS, table=table, epsilon=epsilon)],
            "theta",
            "accuracy",
        )
        for table in results.list_parameter_values("theta", "table")
        for epsilon in results.list_parameter_values("theta", "epsilon")
    ]
    if panels:
        caption = "Accuracy of THE by its threshold, epsilon per person."
        yield Figure("theta of THE", caption, panels)
