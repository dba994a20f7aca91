"""A textbook chapter on local mechanisms for numbers: their errors, and what its listings do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.papers.experiments import repeat_score, score_split, split_rows
from discreet.papers.paper_figures import Figure, Panel, PlotLine
from discreet.papers.results import (
    Finding,
    PaperCell,
    PaperResults,
    StatementCheck,
    compute_standard_error,
)
from discreet.privacy.guarantee import format_rounded_up

TITLE = "Advanced local mechanisms for machine learning, checked"
NOTES = """
The chapter presents the Laplace, Duchi and Piecewise mechanisms for numbers in [-1, 1], with Python
listings, and Naive Bayes on top of them. Here are the errors of this package's own mechanisms (with
Hybrid, which the chapter lacks), the epsilon that the chapter's listings really have (worked out
from the probabilities of their outputs, not measured by sampling), and Naive Bayes with each.

Variances are exact, of one person's unbiased number, rounding to the public grid included. The mean
squared errors are of the mean over 2,000 people with values drawn uniformly.
"""
CODE = ("mechanisms", "local", "estimation", "estimators", "papers/experiments.py")
REPEATS = 40

EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
MECHANISM_NAMES = ("Laplace", "Duchi", "Piecewise", "Hybrid")
MANY_DIMENSIONS = 9
"""Dimensions of the second figure."""
PEOPLE_COUNT = 2000
"""Simulated people in each repetition."""
CLAIMED_EPSILONS = (0.5, 1.0, 2.0, 3.0)
"""Epsilons that the chapter's listings are given."""
LISTINGS = (
    "5.1 Laplace",
    "5.2 Duchi, one number",
    "5.3 Duchi, d = 2",
    "5.3 Duchi, d = 4",
    "the text's Duchi, d = 2",
    "5.4 Piecewise, grid 16",
    "5.4 Piecewise, grid 256",
)
BAYES_MECHANISMS = ("Laplace, all at once", "one bit", "Duchi", "Piecewise", "Hybrid")
TABLES = ("diabetes", "skin")
MAX_TABLE_ROWS = 30_000
"""Largest number of rows used of a table, drawn anew in every repetition."""


def list_cells(quick: bool) -> list[PaperCell]:
    """Errors by mechanism and epsilon, listings by claimed epsilon, Naive Bayes, the example."""
    epsilons = EPSILONS[1::3] if quick else EPSILONS
    paper_cells = [
        cell
        for dimensions in (1, MANY_DIMENSIONS)
        for cell in PaperCell.list_grid(
            "error", mechanism=MECHANISM_NAMES, dimensions=(dimensions,), epsilon=epsilons
        )
    ]
    bayes_epsilons = (1.0, 4.0) if quick else (0.5, 1.0, 2.0, 4.0, 8.0)
    return [
        *paper_cells,
        *PaperCell.list_grid("listings", listing=LISTINGS, claimed=CLAIMED_EPSILONS),
        *PaperCell.list_grid("bias", epsilon=(1.0, 3.0, 6.0)),
        *PaperCell.list_grid("bayes", table=TABLES, way=BAYES_MECHANISMS, epsilon=bayes_epsilons),
        PaperCell.from_parameters("example"),
    ]


def compute(cell: PaperCell, repeats: int, quick: bool) -> dict[str, list[float]]:
    """The values of one cell."""
    compute_by_figure: dict[str, Callable[[PaperCell, int], dict[str, list[float]]]] = {
        "error": _compute_errors,
        "bias": _compute_listing_bias,
        "bayes": _score_naive_bayes,
        "example": _compute_example,
    }
    if cell.figure == "listings":
        return {"epsilon": [_compute_listing_epsilon(cell["listing"], cell["claimed"])]}
    return compute_by_figure[cell.figure](cell, repeats)


def _make_mechanism(mechanism_name: str, epsilon: float, dimensions: int) -> Any:
    from discreet.mechanisms import mean

    scalar_class, vector_class = {
        "Laplace": (mean.LaplaceMean, mean.LaplaceMean),
        "Duchi": (mean.Duchi, mean.DuchiMany),
        "Piecewise": (mean.Piecewise, mean.PiecewiseMany),
        "Hybrid": (mean.Hybrid, mean.HybridMany),
    }[mechanism_name]
    return (
        vector_class(epsilon, dimensions)
        if dimensions > 1 or mechanism_name == "Laplace"
        else scalar_class(epsilon)
    )


def _compute_errors(cell: PaperCell, repeats: int) -> dict[str, list[float]]:
    from discreet.randomness import SeededRandom

    mechanism = _make_mechanism(cell["mechanism"], cell["epsilon"], cell["dimensions"])
    squared_errors, biases = [], []
    for repeat in range(repeats):
        values = np.random.default_rng(repeat).uniform(-1, 1, (PEOPLE_COUNT, cell["dimensions"]))
        reports = mechanism.perturb(values, SeededRandom(repeat))
        mean_errors = mechanism.estimate(
            mechanism.tally(reports), PEOPLE_COUNT
        ) / PEOPLE_COUNT - values.mean(axis=0)
        squared_errors.append(float((mean_errors**2).mean()))
        biases.append(float(mean_errors.mean()))
    return {
        "worst variance": [mechanism.compute_worst_variance()],
        "mean squared error": squared_errors,
        "bias": biases,
        "epsilon of the channel": [mechanism.compute_exact_epsilon()],
    }


def _compute_listing_epsilon(listing: str, epsilon: float) -> float:
    """The epsilon that a listing has: the largest log-ratio of two inputs' output laws."""
    exp_epsilon = math.exp(epsilon)
    if listing.startswith("5.1"):
        return epsilon  # Laplace(2d / epsilon): two vectors differ by at most 2d
    if listing.startswith("5.2"):
        truth_probability = (exp_epsilon - 1) / (2 * exp_epsilon + 2) + 0.5
        return math.log(truth_probability / (1 - truth_probability))
    if listing.startswith("5.4"):
        return _compute_tail_epsilon(epsilon, int(listing.split()[-1]))
    return _compute_tie_epsilon(
        int(listing.split()[-1]), Fraction(exp_epsilon), ties_in_both=listing.startswith("the text")
    )


def _compute_tie_epsilon(dimensions: int, exp_epsilon: Fraction, *, ties_in_both: bool) -> float:
    """Duchi in an even dimension, ties in T- only (listing 5.3) or in both sets (the text)."""
    cube_corners = np.array(list(itertools.product((-1, 1), repeat=dimensions)))
    truth_probability, channel_rows = exp_epsilon / (exp_epsilon + 1), []
    for dot_products in (cube_corners @ cube_corners.T).tolist():
        in_upper = [dot > 0 or (ties_in_both and dot == 0) for dot in dot_products]
        in_lower = [dot <= 0 for dot in dot_products]
        upper_mass = truth_probability / sum(in_upper)
        lower_mass = (1 - truth_probability) / sum(in_lower)
        channel_rows.append(
            [
                upper_mass * is_upper + lower_mass * is_lower
                for is_upper, is_lower in zip(in_upper, in_lower, strict=True)
            ]
        )
    return _compute_epsilon(channel_rows)


def _compute_tail_epsilon(epsilon: float, resolution: int) -> float:
    """Piecewise with the left or the right tail half of the time (listing 5.4), on a grid."""
    from discreet.mechanisms.mean import Piecewise

    mechanism = Piecewise(epsilon, "published", resolution=resolution)
    largest_level = mechanism.largest
    half_window = mechanism.half_width
    window_mass = Fraction(mechanism.inside_threshold, 1 << 64)
    channel_rows = []
    for level in (-resolution, 1 - resolution, 0, resolution):
        channel_row = [Fraction(0)] * (2 * largest_level + 1)
        left_tail = range(-largest_level, max(level - half_window, 1 - largest_level))
        right_tail = range(min(level + half_window + 1, largest_level), largest_level + 1)
        window = range(level - half_window, level + half_window + 1)
        tail_mass = (1 - window_mass) / 2
        for points, mass in (
            (window, window_mass),
            (left_tail, tail_mass),
            (right_tail, tail_mass),
        ):
            for point in points:
                channel_row[point + largest_level] += mass / len(points)
        channel_rows.append(channel_row)
    return _compute_epsilon(channel_rows)


def _compute_epsilon(channel_rows: Sequence[Sequence[Fraction]]) -> float:
    from discreet.privacy.rounding import compute_channel_epsilon

    return float(compute_channel_epsilon(channel_rows))


def _compute_listing_bias(cell: PaperCell, repeats: int) -> dict[str, list[float]]:
    """What listings 5.4 and 5.5 make of a number t, as a share of it."""
    exp_half_epsilon = math.exp(cell["epsilon"] / 2)
    output_bound = (exp_half_epsilon + 1) / (exp_half_epsilon - 1)
    true_value = 0.5
    window_start = (output_bound + 1) * true_value / 2 - (output_bound - 1) / 2
    window_end = (output_bound + 1) * true_value / 2 + (output_bound - 1) / 2
    window_mass = exp_half_epsilon / (exp_half_epsilon + 1)
    mean_output = (
        window_mass * (window_start + window_end) / 2
        + (1 - window_mass)
        * ((window_start - output_bound) / 2 + (window_end + output_bound) / 2)
        / 2
    )
    dimensions = 10
    sampled_dimensions = max(1, min(dimensions, math.floor(cell["epsilon"] / 2.5)))
    expected_share = (
        dimensions / sampled_dimensions * (1 - (1 - 1 / dimensions) ** sampled_dimensions)
    )
    return {"5.4, of t = 0.5": [mean_output / true_value], "5.5, d = 10": [expected_share]}


def _score_naive_bayes(cell: PaperCell, repeats: int) -> dict[str, list[float]]:
    from discreet.datasets import load
    from discreet.estimators import LocalNB

    parameters_by_way: dict[str, dict[str, Any]] = {
        "Laplace, all at once": {"approach": 1},
        "one bit": {"approach": 2, "mechanism": "one-bit"},
        "Duchi": {"approach": 2, "mechanism": "duchi"},
        "Piecewise": {"approach": 2, "mechanism": "piecewise"},
        "Hybrid": {"approach": "hybrid"},
    }
    dataset = load(cell["table"])

    def score_repetition(repeat: int) -> float:
        nb = LocalNB(
            cell["epsilon"], numeric="gaussian", schema=dataset.schema, random_state=repeat
        ).set_params(**parameters_by_way[cell["way"]])
        return score_split(nb, dataset, *split_rows(dataset, repeat, MAX_TABLE_ROWS))

    return repeat_score(max(3, repeats // (8 if cell["table"] == "skin" else 1)), score_repetition)


def _compute_example(cell: PaperCell, repeats: int) -> dict[str, list[float]]:
    """The chapter's ten people: P(Yes) P(Young | Yes) P(Medium | Yes) P(Female | Yes), and No."""
    from discreet.datasets import make_mortgage_table

    frame, joint_probabilities = make_mortgage_table().frame, {}
    person_values = {"Age": "Young", "Income": "Medium", "Gender": "Female"}
    for class_label in ("Yes", "No"):
        class_rows = frame[frame["Missed payment"] == class_label]
        shares = [
            float((class_rows[name] == value).mean()) for name, value in person_values.items()
        ]
        joint_probabilities[class_label] = [len(class_rows) / len(frame) * math.prod(shares)]
    return joint_probabilities


# ---------------------------------------------------------------- figures and verdicts


def make_figures(results: PaperResults) -> Iterator[Figure]:
    """Errors, listings, Naive Bayes."""
    if epsilons := results.list_parameter_values("error", "epsilon"):
        panels = []
        for dimensions in (1, MANY_DIMENSIONS):
            for metric in ("worst variance", "mean squared error"):
                plot_lines = results.make_lines(
                    "error",
                    "mechanism",
                    MECHANISM_NAMES,
                    "epsilon",
                    epsilons,
                    metric,
                    dimensions=dimensions,
                )
                title = f"{metric}, {'one number' if dimensions == 1 else f'{dimensions} numbers'}"
                panels.append(Panel(title, plot_lines, "epsilon", metric, log_y=True))
        yield Figure("errors", "Error by epsilon, one and many numbers.", panels)
    if any(cell.figure == "listings" for cell in results.values):
        plot_lines = results.make_lines(
            "listings", "listing", LISTINGS, "claimed", CLAIMED_EPSILONS, "epsilon"
        )
        plot_lines.append(PlotLine("as claimed", CLAIMED_EPSILONS, CLAIMED_EPSILONS, style=":"))
        panel = Panel("", plot_lines, "claimed epsilon", "epsilon that it has")
        yield Figure("listings", "The epsilon that each listing has, against the claimed.", [panel])
    if epsilons := results.list_parameter_values("bayes", "epsilon"):
        panels = []
        for table in TABLES:
            plot_lines = results.make_lines(
                "bayes", "way", BAYES_MECHANISMS, "epsilon", epsilons, table=table
            )
            panels.append(Panel(table, plot_lines, "epsilon, total per person", "accuracy"))
        yield Figure("naive bayes", "Gaussian Naive Bayes with each mechanism.", panels)


def _get_worst_variance(
    results: PaperResults, mechanism: str, epsilon: float, dimensions: int = 1
) -> float:
    return results.compute_mean(
        "error", "worst variance", mechanism=mechanism, dimensions=dimensions, epsilon=epsilon
    )


def _check_crossing(results: PaperResults) -> Finding:
    epsilons = results.list_parameter_values("error", "epsilon")
    differences = [
        _get_worst_variance(results, "Laplace", epsilon)
        - _get_worst_variance(results, "Duchi", epsilon)
        for epsilon in epsilons
    ]
    lower, upper = _find_crossing(epsilons, differences)
    return Finding(
        f"the worst variances cross between {lower:g} and {upper:g}",
        "holds" if lower <= 2.3 <= upper else "holds only with another crossing",
    )


def _find_crossing(x_values: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """The points between which values change their sign; NaN if they do not."""
    for (x_value, difference), (next_x, next_difference) in itertools.pairwise(
        zip(x_values, values, strict=True)
    ):
        if difference > 0 >= next_difference:
            return x_value, next_x
    return math.nan, math.nan


def _check_piecewise(results: PaperResults) -> Finding:
    variance_ratios = {
        epsilon: _get_worst_variance(results, "Piecewise", epsilon)
        / min(_get_worst_variance(results, name, epsilon) for name in ("Laplace", "Duchi"))
        for epsilon in results.list_parameter_values("error", "epsilon")
    }
    good_epsilons = [epsilon for epsilon, ratio in variance_ratios.items() if not ratio > 1.05]
    measured = "worst variance over the better of Laplace and Duchi: " + ", ".join(
        f"{ratio:.2f} at {level:g}" for level, ratio in variance_ratios.items()
    )
    if len(good_epsilons) == len(variance_ratios):
        return Finding(measured, "holds")
    return Finding(
        measured,
        f"holds only from epsilon {format_rounded_up(min(good_epsilons))}"
        if good_epsilons
        else "does not hold",
        "below that Duchi's two values have less variance; Hybrid mixes both",
    )


def _check_bias(results: PaperResults) -> Finding:
    from scipy.stats import t

    epsilons = results.list_parameter_values("error", "epsilon")

    def get_biases(mechanism: str, dimensions: int, epsilon: float) -> Sequence[float]:
        return results.get_values(
            "error", "bias", mechanism=mechanism, dimensions=dimensions, epsilon=epsilon
        )

    cases = list(itertools.product((1, MANY_DIMENSIONS), epsilons))
    largest_bias_by_name = {
        mechanism: max(
            abs(float(np.mean(biases))) / compute_standard_error(biases)
            for biases in (get_biases(mechanism, *case) for case in cases)
        )
        for mechanism in MECHANISM_NAMES
    }
    repetitions = len(get_biases("Laplace", *cases[0]))
    # of so many means of an unbiased mechanism one exceeds this with a probability of 1 %
    bias_limit = float(t.ppf(1 - 0.005 / (8 * len(epsilons)), repetitions - 1))
    return Finding(
        "largest mean error of ours, in standard errors: "
        + ", ".join(f"{mechanism} {value:.1f}" for mechanism, value in largest_bias_by_name.items())
        + "; expected answers of the listings: "
        + ", ".join(
            f"{metric} at epsilon {format_rounded_up(epsilon)}: "
            f"{results.compute_mean('bias', metric, epsilon=epsilon):.2f} of the truth"
            for metric in ("5.4, of t = 0.5", "5.5, d = 10")
            for epsilon in (1.0, 6.0)
        ),
        "holds only for ours"
        if max(largest_bias_by_name.values()) < bias_limit
        else "does not hold",
        "listing 5.4 takes either tail half of the time whatever its length, listing 5.5 draws "
        "coordinates with replacement and overwrites",
    )


def _check_listing(results: PaperResults, listing: str) -> Finding:
    real_epsilons = {
        epsilon: results.compute_mean("listings", "epsilon", listing=listing, claimed=epsilon)
        for epsilon in CLAIMED_EPSILONS
    }
    measured = ", ".join(
        f"claimed {claimed:g}: {value:.2f}" for claimed, value in real_epsilons.items()
    )
    if all(value <= epsilon * (1 + 1e-9) for epsilon, value in real_epsilons.items()):
        return Finding(measured, "holds")
    if listing.startswith("5.4"):
        reason = "a short tail gets as much probability as a long one; finer grids are worse"
    elif listing.startswith("5.3"):
        reason = "ties are only in T-, so T+ and T- differ in size"
    else:
        reason = "a tie is in both sets, so it is likelier than any other corner"
    return Finding(measured, "does not hold", reason)


def _check_example(results: PaperResults) -> Finding:
    yes_probability, no_probability = (
        results.compute_mean("example", label) for label in ("Yes", "No")
    )
    predicts_yes = yes_probability > no_probability
    return Finding(
        f"{yes_probability:.4f} for Yes and {no_probability:.4f} for No, so "
        f"{'Yes' if predicts_yes else 'No'} is predicted",
        "does not hold" if predicts_yes else "holds",
        "0.6 x 1/6 x 1/6 x 1/3 is 0.0056" if predicts_yes else "",
    )


STATEMENTS: dict[str, StatementCheck] = {
    "Laplace is worse than Duchi below epsilon 2.3 and better above": _check_crossing,
    "Piecewise is good at small and at large epsilon": _check_piecewise,
    "The mechanisms are unbiased": _check_bias,
    **{
        f"{listing} has the epsilon it claims": partial(_check_listing, listing=listing)
        for listing in LISTINGS
    },
    "Worked example: 0.025 for Yes and 0.055 for No, so No is predicted": _check_example,
}
"""What the chapter states, and how it is judged."""
