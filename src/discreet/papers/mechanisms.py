"""A textbook chapter on local mechanisms for numbers: their errors, and what its listings do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.papers.drawing import Figure, Line, Panel
from discreet.papers.results import Cell, Results, Statement
from discreet.privacy import rounded_up

TITLE = "Advanced local mechanisms for machine learning, checked"
NOTES = """
The chapter presents the Laplace, Duchi and Piecewise mechanisms for numbers in [-1, 1], with Python
listings, and Naive Bayes on top of them. Here are the errors of this package's own mechanisms (with
Hybrid, which the chapter lacks), the epsilon that the chapter's listings really have (worked out
from the probabilities of their outputs, not measured by sampling), and Naive Bayes with each.

Variances are exact, of one person's unbiased number, rounding to the public grid included. The mean
squared errors are of the mean over 2,000 people with values drawn uniformly.
"""
CODE = ("mechanisms", "local", "estimation", "estimators")
REPEATS = 40

EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
NAMES = ("Laplace", "Duchi", "Piecewise", "Hybrid")
MANY = 9
"""Dimensions of the second figure."""
PEOPLE = 2000
CLAIMED = (0.5, 1.0, 2.0, 3.0)
LISTINGS = ("5.1 Laplace", "5.2 Duchi, one number", "5.3 Duchi, d = 2", "5.3 Duchi, d = 4",
            "the text's Duchi, d = 2", "5.4 Piecewise, grid 16",
            "5.4 Piecewise, grid 256")  # fmt: skip
WAYS = ("Laplace, all at once", "one bit", "Duchi", "Piecewise", "Hybrid")
TABLES = ("diabetes", "skin")


def cells(quick: bool) -> list[Cell]:
    """Errors by mechanism and epsilon, listings by claimed epsilon, Naive Bayes, the example."""
    epsilons = EPSILONS[1::3] if quick else EPSILONS
    made = [
        Cell.of("error", mechanism=name, dimensions=size, epsilon=epsilon)
        for size in (1, MANY)
        for name in NAMES
        for epsilon in epsilons
    ]
    made += [Cell.of("listings", listing=one, claimed=e) for one in LISTINGS for e in CLAIMED]
    made += [Cell.of("bias", epsilon=e) for e in (1.0, 3.0, 6.0)]
    made += [
        Cell.of("bayes", table=table, way=way, epsilon=epsilon)
        for table in TABLES
        for way in WAYS
        for epsilon in ((1.0, 4.0) if quick else (0.5, 1.0, 2.0, 4.0, 8.0))
    ]
    return [*made, Cell.of("example")]


def compute(cell: Cell, repeats: int, quick: bool) -> dict[str, list[float]]:
    """The values of one cell."""
    run: dict[str, Callable[[Cell, int], dict[str, list[float]]]] = {
        "error": _error,
        "listings": lambda cell, _: {"epsilon": [_listing(cell["listing"], cell["claimed"])]},
        "bias": _bias,
        "bayes": _bayes,
        "example": _example,
    }
    return run[cell.figure](cell, repeats)


def _mechanism(name: str, epsilon: float, size: int) -> Any:
    from discreet.mechanisms import mean

    one, many = {
        "Laplace": (mean.LaplaceMean, mean.LaplaceMean),
        "Duchi": (mean.Duchi, mean.DuchiMany),
        "Piecewise": (mean.Piecewise, mean.PiecewiseMany),
        "Hybrid": (mean.Hybrid, mean.HybridMany),
    }[name]
    return many(epsilon, size) if size > 1 or name == "Laplace" else one(epsilon)


def _error(cell: Cell, repeats: int) -> dict[str, list[float]]:
    from discreet.randomness import SeededRandom

    oracle = _mechanism(cell["mechanism"], cell["epsilon"], cell["dimensions"])
    squares, bias = [], []
    for repeat in range(repeats):
        values = np.random.default_rng(repeat).uniform(-1, 1, (PEOPLE, cell["dimensions"]))
        reports = oracle.perturb(values, SeededRandom(repeat))
        off = oracle.estimate(oracle.tally(reports), PEOPLE) / PEOPLE - values.mean(axis=0)
        squares.append(float((off**2).mean()))
        bias.append(float(off.mean()))
    return {
        "worst variance": [oracle.worst_variance()],
        "mean squared error": squares,
        "bias": bias,
        "epsilon of the channel": [oracle.epsilon_exact()],
    }


def _listing(name: str, epsilon: float) -> float:
    """The epsilon that a listing has: the largest log-ratio of two inputs' output laws."""
    e = math.exp(epsilon)
    if name.startswith("5.1"):
        return epsilon  # Laplace(2d / epsilon): two vectors differ by at most 2d
    if name.startswith("5.2"):
        p = (e - 1) / (2 * e + 2) + 0.5
        return math.log(p / (1 - p))
    if name.startswith("5.4"):
        return _equal_tails(epsilon, int(name.split()[-1]))
    return _ties(int(name.split()[-1]), Fraction(e), both=name.startswith("the text"))


def _ties(size: int, e: Fraction, *, both: bool) -> float:
    """Duchi in an even dimension, ties in T- only (listing 5.3) or in both sets (the text)."""
    corners = list(itertools.product((-1, 1), repeat=size))
    truth, rows = e / (e + 1), []
    for v in corners:
        dots = [sum(a * b for a, b in zip(u, v, strict=True)) for u in corners]
        above = [dot > 0 or (both and dot == 0) for dot in dots]
        below = [dot <= 0 for dot in dots]
        high, low = truth / sum(above), (1 - truth) / sum(below)
        rows.append([high * a + low * b for a, b in zip(above, below, strict=True)])
    return _worst(rows)


def _equal_tails(epsilon: float, resolution: int) -> float:
    """Piecewise with the left or the right tail half of the time (listing 5.4), on a grid."""
    from discreet.mechanisms.mean import Piecewise

    oracle = Piecewise(epsilon, "published", resolution=resolution)
    most, half, inside = oracle.largest, oracle.half, Fraction(oracle.inside, 1 << 64)
    rows = []
    for level in (-resolution, 1 - resolution, 0, resolution):
        row = [Fraction(0)] * (2 * most + 1)
        left = range(-most, level - half) or range(-most, -most + 1)
        right = range(level + half + 1, most + 1) or range(most, most + 1)
        window = range(level - half, level + half + 1)
        tail = (1 - inside) / 2
        for points, mass in ((window, inside), (left, tail), (right, tail)):
            for point in points:
                row[point + most] += mass / len(points)
        rows.append(row)
    return _worst(rows)


def _worst(rows: Sequence[Sequence[Fraction]]) -> float:
    from discreet.losses import epsilon_of_channel

    return float(epsilon_of_channel(rows))


def _bias(cell: Cell, repeats: int) -> dict[str, list[float]]:
    """What listings 5.4 and 5.5 make of a number t, as a share of it."""
    root = math.exp(cell["epsilon"] / 2)
    c = (root + 1) / (root - 1)
    t = 0.5
    left, right = (c + 1) * t / 2 - (c - 1) / 2, (c + 1) * t / 2 + (c - 1) / 2
    inside = root / (root + 1)
    mean = inside * (left + right) / 2 + (1 - inside) * ((left - c) / 2 + (right + c) / 2) / 2
    size = 10
    kept = max(1, min(size, math.floor(cell["epsilon"] / 2.5)))
    again = size / kept * (1 - (1 - 1 / size) ** kept)
    return {"5.4, of t = 0.5": [mean / t], "5.5, d = 10": [again]}


def _bayes(cell: Cell, repeats: int) -> dict[str, list[float]]:
    from discreet.datasets import load
    from discreet.estimators import LocalNB

    ways: dict[str, dict[str, Any]] = {
        "Laplace, all at once": {"approach": 1},
        "one bit": {"approach": 2, "mechanism": "one-bit"},
        "Duchi": {"approach": 2, "mechanism": "duchi"},
        "Piecewise": {"approach": 2, "mechanism": "piecewise"},
        "Hybrid": {"approach": "hybrid"},
    }
    data, found = load(cell["table"]), []
    for repeat in range(max(3, repeats // (8 if cell["table"] == "skin" else 1))):
        order = np.random.default_rng(repeat).permutation(len(data.y))[:30_000]
        train, test = np.split(order, [int(0.8 * len(order))])
        nb = LocalNB(cell["epsilon"], numeric="gaussian", schema=data.schema, random_state=repeat)
        nb.set_params(**ways[cell["way"]]).fit(data.X.iloc[train], data.y[train])
        found.append(float(nb.score(data.X.iloc[test], data.y[test])))
    return {"accuracy": found}


def _example(cell: Cell, repeats: int) -> dict[str, list[float]]:
    """The chapter's ten people: P(Yes) P(Young | Yes) P(Medium | Yes) P(Female | Yes), and No."""
    from discreet.datasets import mortgage_table

    frame, found = mortgage_table().frame, {}
    wanted = {"Age": "Young", "Income": "Medium", "Gender": "Female"}
    for label in ("Yes", "No"):
        mine = frame[frame["Missed payment"] == label]
        shares = [float((mine[name] == value).mean()) for name, value in wanted.items()]
        found[label] = [len(mine) / len(frame) * math.prod(shares)]
    return found


# ---------------------------------------------------------------- figures and verdicts


def figures(results: Results) -> Iterator[Figure]:
    """Errors, listings, Naive Bayes."""
    if epsilons := results.among("error", "epsilon"):
        panels = []
        for size in (1, MANY):
            for metric in ("worst variance", "mean squared error"):
                made = [results.line(name, "error", "epsilon", epsilons, metric, mechanism=name,
                                     dimensions=size) for name in NAMES]  # fmt: skip
                title = f"{metric}, {'one number' if size == 1 else f'{size} numbers'}"
                panels.append(Panel(title, made, "epsilon", metric, log_y=True))
        yield Figure("errors", "Error by epsilon, one and many numbers.", panels)
    if any(cell.figure == "listings" for cell in results.values):
        made = [results.line(one, "listings", "claimed", CLAIMED, "epsilon", listing=one)
                for one in LISTINGS]  # fmt: skip
        made.append(Line("as claimed", CLAIMED, CLAIMED, style=":"))
        panel = Panel("", made, "claimed epsilon", "epsilon that it has")
        yield Figure("listings", "The epsilon that each listing has, against the claimed.", [panel])
    if epsilons := results.among("bayes", "epsilon"):
        panels = []
        for table in TABLES:
            made = [results.line(way, "bayes", "epsilon", epsilons, table=table, way=way)
                    for way in WAYS]  # fmt: skip
            panels.append(Panel(table, made, "epsilon, total per person", "accuracy"))
        yield Figure("naive bayes", "Gaussian Naive Bayes with each mechanism.", panels)


def statements(results: Results) -> Iterator[Statement]:
    """What the chapter states."""
    epsilons = results.among("error", "epsilon")

    def worst(name: str, epsilon: float, size: int = 1) -> float:
        return results.mean(
            "error", "worst variance", mechanism=name, dimensions=size, epsilon=epsilon
        )

    cross = _crossing(epsilons, [worst("Laplace", e) - worst("Duchi", e) for e in epsilons])
    yield Statement(
        "Laplace is worse than Duchi below epsilon 2.3 and better above",
        f"the worst variances cross between {cross[0]:g} and {cross[1]:g}",
        "holds" if cross[0] <= 2.3 <= cross[1] else "holds only with another crossing",
    )
    behind = {
        e: worst("Piecewise", e) / min(worst("Laplace", e), worst("Duchi", e)) for e in epsilons
    }
    bad = [e for e, ratio in behind.items() if ratio > 1.05]
    yield Statement(
        "Piecewise is good at small and at large epsilon",
        "worst variance over the better of Laplace and Duchi: "
        + ", ".join(f"{ratio:.2f} at {e:g}" for e, ratio in behind.items()),
        "holds"
        if not bad
        else "does not hold"
        if len(bad) == len(epsilons)
        else f"holds only from epsilon {rounded_up(min(set(epsilons) - set(bad)))}",
        "" if not bad else "below that Duchi's two values have less variance; Hybrid mixes both",
    )
    biased = {
        name: max(
            abs(results.mean("error", "bias", mechanism=name, dimensions=size, epsilon=e))
            / results.error("error", "bias", mechanism=name, dimensions=size, epsilon=e)
            for size in (1, MANY)
            for e in epsilons
        )
        for name in NAMES
    }
    from scipy.stats import t

    repeats = len(results.series("error", "bias", mechanism="Laplace", dimensions=1,
                                 epsilon=epsilons[0]))  # fmt: skip
    # of so many means of an unbiased mechanism one exceeds this with a probability of 1 %
    limit = float(t.ppf(1 - 0.005 / (8 * len(epsilons)), repeats - 1))
    yield Statement(
        "The mechanisms are unbiased",
        "largest mean error of ours, in standard errors: "
        + ", ".join(f"{name} {value:.1f}" for name, value in biased.items())
        + "; expected answers of the listings: "
        + ", ".join(
            f"{metric} at epsilon {e:g}: {results.mean('bias', metric, epsilon=e):.2f} of the truth"
            for metric in ("5.4, of t = 0.5", "5.5, d = 10")
            for e in (1.0, 6.0)
        ),
        "holds only for ours" if max(biased.values()) < limit else "does not hold",
        "listing 5.4 takes either tail half of the time whatever its length, listing 5.5 draws "
        "coordinates with replacement and overwrites",
    )
    for one in LISTINGS:
        real = {e: results.mean("listings", "epsilon", listing=one, claimed=e) for e in CLAIMED}
        kept = all(value <= e * (1 + 1e-9) for e, value in real.items())
        yield Statement(
            f"{one} has the epsilon it claims",
            ", ".join(f"claimed {e:g}: {value:.2f}" for e, value in real.items()),
            "holds" if kept else "does not hold",
            "" if kept else _why(one),
        )
    yes, no = (results.mean("example", label) for label in ("Yes", "No"))
    yield Statement(
        "Worked example: 0.025 for Yes and 0.055 for No, so No is predicted",
        f"{yes:.4f} for Yes and {no:.4f} for No, so {'Yes' if yes > no else 'No'} is predicted",
        "does not hold" if yes > no else "holds",
        "0.6 x 1/6 x 1/6 x 1/3 is 0.0056" if yes > no else "",
    )


def _why(listing: str) -> str:
    if listing.startswith("5.4"):
        return "a short tail gets as much probability as a long one; finer grids are worse"
    if listing.startswith("5.3"):
        return "ties are only in T-, so T+ and T- differ in size"
    return "a tie is in both sets, so it is likelier than any other corner"


def _crossing(at: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """The points between which values change their sign; NaN if they do not."""
    for (a, x), (b, y) in itertools.pairwise(zip(at, values, strict=True)):
        if x > 0 >= y:
            return a, b
    return math.nan, math.nan
