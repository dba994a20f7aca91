"""The statements of Yilmaz, Al-Rubaie and Chang on local Naive Bayes, and their checks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet.papers.local_nb_experiments import EPSILON_READINGS, ORACLES, THETAS
from discreet.papers.local_nb_numeric import NUMERIC_STATEMENTS
from discreet.papers.results import (
    MAX_CLOSE_DIFFERENCE,
    Finding,
    PairedDifference,
    PaperResults,
    StatementCheck,
    check_all_hold,
    format_differences,
    format_verdict,
)
from discreet.privacy.guarantee import format_rounded_up

__all__ = ["STATEMENTS"]

PRAISED_ORACLES = tuple(oracle for oracle in ORACLES if oracle != "she")


def _get_accuracies(
    results: PaperResults, table: str, epsilon: float, reading: str
) -> dict[str, Sequence[float]]:
    """Accuracies of all oracles in one place of figure 2."""
    return {
        oracle: results.get_values(
            "2", table=table, oracle=oracle, epsilon=epsilon, reading=reading
        )
        for oracle in ORACLES
    }


def _list_tables(results: PaperResults) -> list[str]:
    return results.list_parameter_values("2", "table")


def _list_epsilons(results: PaperResults) -> list[float]:
    return results.list_parameter_values("2", "epsilon")


def _check_connect4(results: PaperResults) -> Finding | None:
    if "connect4" not in _list_tables(results):
        return None
    epsilon = _list_epsilons(results)[0]
    measured_text, held_by_reading = _check_levels(
        results, "connect4", epsilon, lambda difference: difference.is_above(), 0.65
    )
    return Finding.from_cases(
        f"at {format_rounded_up(epsilon)}: {measured_text}; the majority class has 65.8 %",
        held_by_reading,
        "with that much noise the majority class is predicted, or something worse",
        "",
    )


def _check_mushroom(results: PaperResults) -> Finding:
    measured_text, held_by_reading = _check_levels(
        results, "mushroom", 0.5, lambda difference: difference.is_above(-MAX_CLOSE_DIFFERENCE), 0.9
    )
    return Finding(
        measured_text,
        format_verdict(held_by_reading, ""),
        "" if held_by_reading["per person"] else "0.5 for each of 23 reports is 11.5 in total",
    )


def _check_levels(
    results: PaperResults,
    table: str,
    epsilon: float,
    check_difference: Callable[[PairedDifference], bool | None],
    level: float,
) -> tuple[str, dict[str, bool | None]]:
    """Accuracies of all oracles, and by reading whether those that the paper praises pass."""
    measured_texts, held_by_reading = [], {}
    for reading in EPSILON_READINGS:
        differences = {
            oracle: PairedDifference.from_pairs(accuracies, level, len(PRAISED_ORACLES))
            for oracle, accuracies in _get_accuracies(results, table, epsilon, reading).items()
        }
        held_by_reading[reading] = check_all_hold(
            check_difference(differences[oracle]) for oracle in PRAISED_ORACLES
        )
        oracle_texts = (
            f"{oracle.upper()} {100 * (level + difference.mean):.1f} ± "
            f"{100 * difference.standard_error:.1f}"
            for oracle, difference in differences.items()
        )
        measured_texts.append(f"{reading} {', '.join(oracle_texts)}")
    return "; ".join(measured_texts), held_by_reading


def _check_worst_oracle(results: PaperResults) -> Finding:
    """In how many cells SHE is lowest, and where another oracle is clearly lower."""
    table_cells = list(
        itertools.product(_list_tables(results), _list_epsilons(results), EPSILON_READINGS)
    )
    lowest_count, beaten_texts = 0, []
    for table, epsilon, reading in table_cells:
        accuracies = _get_accuracies(results, table, epsilon, reading)
        differences = {
            oracle: PairedDifference.from_pairs(
                accuracies["she"], accuracies[oracle], len(table_cells) * len(PRAISED_ORACLES)
            )
            for oracle in PRAISED_ORACLES
        }
        lowest_count += all(difference.mean <= 0 for difference in differences.values())
        if beating_oracles := [
            oracle.upper() for oracle in PRAISED_ORACLES if differences[oracle].is_above()
        ]:
            cell_text = f"{table} at {format_rounded_up(epsilon)} {reading}"
            beaten_texts.append(f"{', '.join(beating_oracles)} on {cell_text}")
    measured = (
        f"it has the lowest mean in {lowest_count} of {len(table_cells)} cells; another oracle is "
        f"clearly lower in {len(beaten_texts)}"
    )
    if lowest_count == len(table_cells):
        return Finding(measured, "holds")
    if not beaten_texts:
        reason = "elsewhere the oracles are too alike to be told apart"
        return Finding(measured, "holds only up to noise", reason)
    return Finding(
        f"{measured} ({'; '.join(beaten_texts)})",
        f"holds only outside {len(beaten_texts)} of {len(table_cells)} cells"
        if 2 * len(beaten_texts) < len(table_cells)
        else "does not hold",
        "DE is lower where a question has many cells and epsilon is small",
    )


def _check_direct_encoding(results: PaperResults) -> Finding:
    measured_texts, held_by_case = [], {}
    for table, reading in itertools.product(("car", "chess"), EPSILON_READINGS):
        accuracies = _get_accuracies(results, table, 0.5, reading)
        differences = {
            oracle: PairedDifference.from_pairs(
                accuracies[oracle], accuracies["de"], 4 * len(PRAISED_ORACLES)
            )
            for oracle in ORACLES
            if oracle != "de"
        }
        best_oracle = max(differences, key=lambda oracle: differences[oracle].mean)
        held_by_case[f"{table} {reading}"] = check_all_hold(
            difference.is_above() is not True for difference in differences.values()
        )
        measured_texts.append(f"{table} {reading} {best_oracle.upper()} {differences[best_oracle]}")
    return Finding.from_cases(
        f"best of the others minus DE at 0.5, points: {', '.join(measured_texts)} (holds: none is "
        "clearly better)",
        held_by_case,
        "a question of car has up to 16 cells, more than the 3 exp(epsilon) + 2 below which DE "
        "has the least variance",
    )


def _check_unary_encodings(results: PaperResults) -> Finding:
    tables, epsilons = _list_tables(results), _list_epsilons(results)
    differences, largest_difference = {}, 0.0
    for table, reading in itertools.product(tables, EPSILON_READINGS):
        parameters: dict[str, Any] = {"table": table, "reading": reading}
        sue_accuracies, oue_accuracies = (
            results.average_over("2", "epsilon", epsilons, oracle=oracle, **parameters)
            for oracle in ("sue", "oue")
        )
        differences[f"{table} {reading}"] = PairedDifference.from_pairs(
            oue_accuracies, sue_accuracies, len(tables) * len(EPSILON_READINGS)
        )
        sue_line, oue_line = results.make_lines(
            "2", "oracle", ("sue", "oue"), "epsilon", epsilons, **parameters
        )
        largest_difference = max(
            largest_difference, *np.abs(np.subtract(sue_line.y, oue_line.y)).tolist()
        )
    return Finding.from_cases(
        f"OUE minus SUE, mean over epsilon, points: {format_differences(differences)}; "
        f"{100 * largest_difference:.1f} at most in a single cell",
        {case: difference.is_within() for case, difference in differences.items()},
    )


def _check_best_theta(results: PaperResults) -> Finding:
    measured_texts, has_better_theta = [], False
    for table, epsilon in itertools.product(
        results.list_parameter_values("theta", "table"),
        results.list_parameter_values("theta", "epsilon"),
    ):
        theta_accuracies = {
            theta: results.get_values("theta", table=table, theta=theta, epsilon=epsilon)
            for theta in THETAS
        }
        differences = {
            theta: PairedDifference.from_pairs(
                theta_accuracies[theta], theta_accuracies[0.25], 4 * len(THETAS)
            )
            for theta in THETAS
        }
        best_theta = max(differences, key=lambda theta: differences[theta].mean)
        has_better_theta |= any(difference.is_above() for difference in differences.values())
        measured_texts.append(
            f"{table} at {format_rounded_up(epsilon)} {best_theta:g} ({differences[best_theta]})"
        )
    return Finding(
        "best theta, and points above 0.25: " + ", ".join(measured_texts),
        "does not hold" if has_better_theta else "holds",
        "the threshold of least variance lies between 1/2 and 1" if has_better_theta else "",
    )


def _check_near_exact(results: PaperResults) -> Finding:
    """How far the best oracle is from no privacy just above epsilon 2."""
    tables = _list_tables(results)
    epsilon = min(epsilon for epsilon in _list_epsilons(results) if epsilon > 2)
    differences, held_by_case, lower_limit, upper_limit = {}, {}, 0.0, 1.0
    for reading, table in itertools.product(EPSILON_READINGS, tables):
        exact_accuracies = results.get_values("2", table=table, oracle="none")
        accuracies = _get_accuracies(results, table, epsilon, reading)
        oracle_differences = [
            PairedDifference.from_pairs(exact_accuracies, accuracies[oracle], 2 * len(tables) * 4)
            for oracle in PRAISED_ORACLES
        ]
        case = f"{table} {reading}"
        smallest = min(oracle_differences, key=lambda difference: difference.mean)
        lowest_bound = min(difference.low for difference in oracle_differences)
        differences[case] = smallest
        held_by_case[case] = smallest.is_within() if lowest_bound <= MAX_CLOSE_DIFFERENCE else False
        if held_by_case[case]:
            lower_limit = max(lower_limit, smallest.high)
        elif held_by_case[case] is False:
            upper_limit = min(upper_limit, lowest_bound)
    limits_text = (
        f"; limits from {100 * lower_limit:.1f} to {100 * upper_limit:.1f} points would give the "
        "same verdict"
    )
    return Finding.from_cases(
        f"no privacy minus the best oracle at {format_rounded_up(epsilon)}, points: "
        + format_differences(differences)
        + (limits_text if None not in held_by_case.values() else ""),
        held_by_case,
        "one report per person of that epsilon is noisy where there are many features and few rows",
    )


STATEMENTS: dict[str, StatementCheck] = {
    "More than 65 % on Connect-4 at very small epsilon for all but SHE": _check_connect4,
    "Nearly 90 % on Mushroom at epsilon 0.5 for all but SHE": _check_mushroom,
    "SHE is worst everywhere": _check_worst_oracle,
    "DE is best at small epsilon on car and chess": _check_direct_encoding,
    "SUE and OUE are alike": _check_unary_encodings,
    "theta = 0.25 is best for THE": _check_best_theta,
    **NUMERIC_STATEMENTS,
    "epsilon > 2 is very close to no privacy": _check_near_exact,
}
"""What the paper states, and how it is judged."""
