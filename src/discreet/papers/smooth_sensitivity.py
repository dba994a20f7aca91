"""Naive Bayes with smooth sensitivity (Zafarani, Clifton): figures 4 to 8 and 13 to 16."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from discreet.papers.drawing import Figure, Panel, flat
from discreet.papers.results import Cell, Gap, Results, Statement, listed, verdict
from discreet.privacy import rounded_up

TITLE = "Naive Bayes with smooth sensitivity, reproduced"
NOTES = """
F. Zafarani, C. Clifton: *Differentially private Naive Bayes classifier using smooth sensitivity*.
Stratified 10-fold cross-validation, five times, where a repetition is one fold: fold k of
cross-validation j is repetition 10 j + k. Every method sees the same folds.

Methods marked *published* are as printed and **keep no promise**: `global-published` scales noise
by exact class counts; `smooth, published` takes the first step of theorems 4 and 7 as sensitivity
(where their maximum lies), the variance's sensitivity for the deviation, and sqrt(2) s / epsilon'
as scale. The others are this package's and sound: releases follow add-remove neighbours. The two
methods with delta spend 1 / n and 1 / n^2, as in the paper. The paper leaves the trimming open;
`trimmed` takes it from the noisy class count.

Verdicts compare fold by fold: a difference is clear, if its interval of 95 % (Student's, widened
for the number of comparisons) leaves out zero, and small, if the interval is within two points. ±
is one standard error over the folds. Folds of one cross-validation share rows, so that intervals
are approximate.
"Much better" is judged as clearly better, a rule set after seeing the result: that it is
more than five points would be undecided as published.
"""
CODE = ("central", "estimation", "estimators", "tables")
REPEATS = 50

TABLES = ("adult", "mushroom", "glass", "seeds", "skin")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
DELTAS = {"smooth, delta 1/n": 1, "smooth, delta 1/n^2": 2}
"""Method to the power of 1 / n that is its delta."""
METHODS = ("global-published", "global", "trimmed", "smooth, published", "smooth", *DELTAS,
           "histogram")  # fmt: skip
CENSUS = "census_1940"
ROWS = 250_000
"""Largest number of rows used of a table; only the census has more."""
SHARES = {"1:2": (1, 2), "1:1": (1, 1), "2:1": (2, 1), "4:1": (4, 1)}
"""Weight of numeric to categorical features in the budget, by label."""
MADE = ("categorical speaks", "numeric speaks")
SIZES = (1_000, 5_000, 20_000, 100_000, 1_000_000)


def left_out() -> str:
    """What is not reproduced on this machine, and what it would need."""
    if _census():
        return ""
    return (
        "The 1940 census extract is not here, so what the paper shows of it is left out. IPUMS "
        "hands it out to registered users and it may not be passed on. Put your extract as "
        f"{CENSUS}.csv.gz with its public schema {CENSUS}.json (rows, sha256, features, target, "
        "classes, like the other benchmark tables) into the folder that DISCREET_DATA names, and "
        "it is reproduced as well."
    )


def _census() -> tuple[str, ...]:
    from discreet.datasets import available

    return (CENSUS,) if available(CENSUS) else ()


def cells(quick: bool) -> list[Cell]:
    """Accuracy by method and epsilon, allocations, run times, and how sound the printed way is."""
    epsilons = (0.5, 2.0) if quick else EPSILONS
    tables = ("adult", "glass", "seeds") if quick else (*TABLES, *_census())
    made = [
        Cell.of("4", table=t, method=m, epsilon=e)
        for t in tables
        for m in METHODS
        for e in epsilons
    ]
    made += [Cell.of("4", table=t, method=m) for t in tables for m in ("majority", "non-private")]
    made += [
        Cell.of("14", table=table, shares=shares, epsilon=epsilon)
        for table in (*(() if quick else ("adult",)), *MADE)
        for shares in SHARES
        for epsilon in (0.5, 2.0)
    ]
    made += [Cell.of("13", rows=n) for n in (SIZES[:2] if quick else SIZES)]
    made += [Cell.of("sound", claimed=e) for e in (0.05, 0.1, 0.5, 1.0, 2.0)]
    return [*made, Cell.of("sensitivity")]


def compute(cell: Cell, repeats: int, quick: bool) -> dict[str, list[float]]:
    """The values of one cell."""
    if cell.figure in ("4", "14"):
        return {"accuracy": _folds(cell, repeats)}
    if cell.figure == "13":
        return _times(cell["rows"], max(2, repeats // 10))
    if cell.figure == "sound":
        return {"epsilon": [_real(cell["claimed"])]}
    return _underestimates()


@cache
def _rows(table: str) -> tuple[Any, Any, Any]:
    """Rows, classes and schema; the two synthetic tables have 10,000 rows."""
    from discreet.datasets import load

    if table in MADE:
        return _made(table)
    data = load(table)
    kept = np.random.default_rng(0).permutation(len(data.y))[:ROWS]
    return data.X.iloc[kept].reset_index(drop=True), data.y[kept], data.schema


def _made(which: str) -> tuple[Any, Any, Any]:
    """Five categorical and five numeric attributes, of which one kind depends on the class."""
    import pandas as pd

    from discreet import Categorical, Numeric, Schema

    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 10_000)
    values = ["a", "b", "c", "d"]
    columns: dict[str, Any] = {}
    for k in range(5):
        tilt = 0.25 if which == MADE[0] else 0.0
        law = np.array([[0.25 + tilt / 2, 0.25, 0.25, 0.25 - tilt / 2],
                        [0.25 - tilt / 2, 0.25, 0.25, 0.25 + tilt / 2]])  # fmt: skip
        drawn = (rng.random(len(y))[:, None] > np.cumsum(law, axis=1)[y]).sum(axis=1)
        columns[f"c{k}"] = np.array(values, dtype=object)[np.minimum(drawn, 3)]
        shift = 0.4 * y if which == MADE[1] else 0.0
        columns[f"n{k}"] = np.clip(rng.normal(0, 1, len(y)) + shift, -5, 5)
    features: list[Any] = [Categorical(f"c{k}", values, optional=False) for k in range(5)]
    features += [Numeric(f"n{k}", -5, 5, optional=False) for k in range(5)]
    schema = Schema(features, "class", [0, 1])
    return pd.DataFrame(columns)[list(schema.names)], y, schema


def _folds(cell: Cell, count: int) -> list[float]:
    from discreet.model.evaluation import folds, score

    X, y, schema = _rows(cell["table"])
    found: list[float] = []
    for repeat in range(math.ceil(count / 10)):
        for train, test in folds(y, 10, repeat):
            if len(found) == count:
                break
            model = _trained(cell, X.iloc[train], y[train], schema, len(found))
            found.append(score(model, X.iloc[test], y[test]).accuracy)
    return found


def _trained(cell: Cell, X: Any, y: Any, schema: Any, seed: int) -> Any:
    from discreet.estimators import CentralNB, MixedNB
    from discreet.schema import Numeric

    about = dict(cell.parameters)
    if cell.figure == "14":
        numeric, categorical = SHARES[about["shares"]]
        shares = {
            f.name: numeric if isinstance(f, Numeric) else categorical for f in schema.features
        }
        nb = CentralNB(about["epsilon"], method="smooth", allocation=shares, schema=schema,
                       random_state=seed)  # fmt: skip
        return nb.fit(X, y).model_
    method = about["method"]
    if method == "non-private":
        return MixedNB(schema=schema).fit(X, y).model_
    if method == "majority":
        return _majority(y, schema)
    if method == "smooth, published":
        return published_smooth(X, y, schema, about["epsilon"], seed)
    delta = len(y) ** -float(DELTAS[method]) if method in DELTAS else 0.0
    nb = CentralNB(about["epsilon"], delta=delta, method=method.split(",")[0], schema=schema,
                   random_state=seed)  # fmt: skip
    return nb.fit(X, y).model_


def _majority(y: Any, schema: Any) -> Any:
    from discreet.encoding import class_codes
    from discreet.model import NaiveBayesModel

    counts = np.bincount(class_codes(schema, y), minlength=len(schema.classes)) + 1e-9
    return NaiveBayesModel(schema, np.log(counts / counts.sum()), [])


def published_smooth(X: Any, y: Any, schema: Any, epsilon: float, seed: int) -> Any:
    """Algorithm 1 as printed: for comparison only, it keeps no promise.

    Parameters
    ----------
    X : pandas data frame
    y : array of classes
    schema : Schema
    epsilon : float
        What it claims.
    seed : int
    """
    from discreet.encoding import Cells, class_codes, numbers_of
    from discreet.model import CellFactor, GaussianFactor, NaiveBayesModel
    from discreet.privacy import Guarantee
    from discreet.schema import Numeric

    rng, codes = np.random.default_rng(seed), class_codes(schema, y)
    numeric = [f for f in schema.features if isinstance(f, Numeric)]
    part = epsilon / (len(numeric) + len(schema.features) + 1)
    classes = range(len(schema.classes))
    factors: list[Any] = []

    def cauchy(scale: float) -> float:
        return float(scale * rng.standard_cauchy())

    for feature in schema.features:
        if isinstance(feature, Numeric):
            values = numbers_of(feature, X[feature.name], schema.missing_tokens)
            low, high = feature.lower, feature.upper
            mean, deviation = np.zeros(len(classes)), np.zeros(len(classes))
            for c in classes:
                x = np.sort(values[(codes == c) & ~np.isnan(values)])
                x = x if len(x) else np.array([(low + high) / 2])
                by_mean = max(high - x[0], x[-1] - low) / len(x)
                mean[c] = x.mean() + cauchy(math.sqrt(2) * by_mean / part)
                by_variance = _first_step(x, low, high)
                deviation[c] = x.std() + cauchy(math.sqrt(2) * by_variance / part)
            least = (high - low) / 1000
            factors.append(
                GaussianFactor(feature, np.maximum(mean, 0) if low >= 0 else mean,
                               np.maximum(deviation, least) ** 2)
            )  # fmt: skip
        else:
            cells = Cells.of(schema, feature.name)
            flat = np.bincount(codes * cells.size + cells.column(X[feature.name]),
                               minlength=len(classes) * cells.size)  # fmt: skip
            counts = flat.reshape(len(classes), -1) + rng.laplace(
                0, 1 / part, (len(classes), cells.size)
            )
            counts = np.maximum(counts, 0) + 1
            factors.append(CellFactor(cells, np.log(counts / counts.sum(axis=1, keepdims=True))))
    totals = np.bincount(codes, minlength=len(classes)).astype(float)
    totals = np.maximum([n + cauchy(math.sqrt(2) / part) for n in totals], 1.0)
    return NaiveBayesModel(schema, np.log(totals / totals.sum()), factors, Guarantee.nothing())


def _first_step(x: Any, low: float, high: float) -> float:
    """Theorem 7 at its first step: the largest change of the variance by moving one value."""
    n, total, squares = len(x), float(x.sum()), float((x * x).sum())
    base = squares / n - (total / n) ** 2
    changes = []
    for y in (x[0], x[-1], x[np.argmin(np.abs(x - total / n))]):
        for z in (low, high, total / n):
            changed = (squares - y * y + z * z) / n - ((total - y + z) / n) ** 2
            changes.append(abs(changed - base))
    return float(max(changes))


def _times(rows: int, repeats: int) -> dict[str, list[float]]:
    """Training time in seconds with global and smooth sensitivity, on this many rows of Adult."""
    from discreet.datasets import load
    from discreet.estimators import CentralNB

    data = load("adult")
    drawn = np.random.default_rng(0).choice(len(data.y), rows)
    X, y = data.X.iloc[drawn].reset_index(drop=True), data.y[drawn]
    found: dict[str, list[float]] = {"global": [], "smooth": [], "ratio": []}
    for repeat in range(repeats):
        for method in ("global", "smooth"):
            nb = CentralNB(1.0, method=method, schema=data.schema, random_state=repeat)
            begun = time.process_time()
            nb.fit(X, y)
            found[method].append(time.process_time() - begun)
        found["ratio"].append(found["smooth"][-1] / found["global"][-1])
    return found


def _real(claimed: float) -> float:
    """The epsilon of line 14 between two neighbours: all values in the middle, and one at U.

    The largest log-ratio of two Cauchy densities is a hyperbolic distance: cosh d = 1 + (difference
    of locations squared + difference of scales squared) / (twice the product of the scales).
    """
    n, width = 100, 1.0
    move, one, two = width / (2 * n), width / (2 * n), width / n  # sensitivities: R/2n and R/n
    s1, s2 = (math.sqrt(2) * s / claimed for s in (one, two))
    return math.acosh(1 + (move**2 + (s2 - s1) ** 2) / (2 * s1 * s2))


def _underestimates() -> dict[str, list[float]]:
    """Printed sensitivity of the mean over the true one (replace one), on 300 random tables."""
    from discreet.central.smooth_sensitivity import smooth_mean

    ratios = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, beta = int(rng.integers(5, 40)), float(rng.choice([0.01, 0.1, 0.5]))
        x = np.sort(rng.beta(rng.uniform(0.3, 20), rng.uniform(0.3, 20), n))
        printed = max(1 - x[0], x[-1]) / n
        ratios.append(printed / smooth_mean(x, 0, 1, beta, neighbours="replace"))
    return {"printed over true": ratios}


# ---------------------------------------------------------------- figures and verdicts


def figures(results: Results) -> Iterator[Figure]:
    """Figures 4 to 8, 13, and 14 to 16."""
    if epsilons := results.among("4", "epsilon"):
        panels = []
        for table in results.among("4", "table"):
            made = [results.line(m, "4", "epsilon", epsilons, table=table, method=m)
                    for m in METHODS]  # fmt: skip
            for method, style in (("non-private", ":"), ("majority", "--")):
                value = results.mean("4", table=table, method=method)
                made.append(flat(method, epsilons, value, style))
            panels.append(Panel(table, made, "epsilon", "accuracy", log_x=True))
        yield Figure("figures 4 to 8", "Accuracy by epsilon.", panels)
    if epsilons := results.among("14", "epsilon"):
        panels = [
            Panel(table, [results.line(s, "14", "epsilon", epsilons, table=table, shares=s)
                          for s in SHARES], "epsilon", "accuracy")
            for table in results.among("14", "table")
        ]  # fmt: skip
        yield Figure("figures 14 to 16", "Shares of the budget, numeric to categorical.", panels, 3)
    if sizes := results.among("13", "rows"):
        made = [results.line(m, "13", "rows", sizes, m) for m in ("global", "smooth")]
        panels = [Panel("", made, "rows", "CPU seconds to train", log_x=True, log_y=True)]
        yield Figure("figure 13", "Time to train on Adult, drawn with replacement.", panels)


def _over(results: Results, table: str, method: str) -> list[float]:
    """Mean accuracy of every fold over the epsilons."""
    epsilons = results.among("4", "epsilon")
    return results.over("4", "epsilon", epsilons, table=table, method=method)


def statements(results: Results) -> Iterator[Statement]:
    """What the paper states."""
    tables = results.among("4", "table")
    adult = {m: _over(results, "adult", m) for m in METHODS}
    gains = {
        "as published": Gap.of(adult["smooth, published"], adult["global-published"], 2),
        "for the sound methods": Gap.of(adult["smooth"], adult["global"], 2),
    }
    ok = {case: gap.above() for case, gap in gains.items()}
    yield Statement(
        "Smooth sensitivity is much better than global on human data",
        "Adult, mean over epsilon: " + listed({m: float(np.mean(v)) for m, v in adult.items()})
        + "; smooth minus global, points: " + ", ".join(f"{k} {gap}" for k, gap in gains.items()),
        verdict(ok, ""),
        "" if all(ok.values()) else "the sound global method releases sums of squares and no "
        "deviation, and is better than smooth sensitivity",
    )  # fmt: skip
    if "mushroom" in tables:
        base = _over(results, "mushroom", "global")
        others = ("global-published", "smooth, published", "smooth", "trimmed")
        gaps = {m: Gap.of(_over(results, "mushroom", m), base, len(others)) for m in others}
        ok = {m: gap.within() for m, gap in gaps.items()}
        yield Statement(
            "The methods are the same on Mushroom, which has no numbers",
            "minus global, mean over epsilon, points: "
            + ", ".join(f"{m} {gap}" for m, gap in gaps.items()),
            verdict(ok, "for"),
            "" if all(ok.values()) else "they divide the budget and draw class counts differently",
        )
    gaps = {
        f"{table} {method.split()[-1]}": Gap.of(
            _over(results, table, method), _over(results, table, "smooth"),
            len(tables) * len(DELTAS))
        for table in tables for method in DELTAS
    }  # fmt: skip
    ok = {case: gap.above() for case, gap in gaps.items()}
    yield Statement(
        "Approximate differential privacy is a little better",
        "smooth with delta minus smooth, mean over epsilon, points: "
        + "; ".join(f"{case} {gap}" for case, gap in gaps.items()),
        verdict(ok),
        "" if all(ok.values()) else "beta shrinks with ln(2/delta), so for few rows the smooth "
        "sensitivity itself is larger",
    )  # fmt: skip
    yield _run_times(results)
    yield _allocation(results)
    yield _promise(results)


def _run_times(results: Results) -> Statement:
    sizes = results.among("13", "rows")
    ratios = [results.mean("13", "ratio", rows=n) for n in sizes]
    errors = [results.error("13", "ratio", rows=n) for n in sizes]
    each = zip(ratios, errors, sizes, strict=True)
    return Statement(
        "The run-time ratio of smooth to global falls from ten to three as n grows",
        "ratio: " + ", ".join(f"{r:.2f} ± {e:.2f} at {n:,} rows" for r, e, n in each),
        "does not hold" if max(ratios) < 3 else "holds",
        ""
        if max(ratios) >= 3
        else "sorting once and O(n log n) bounds make smooth sensitivity "
        "nearly as quick as global at every size",
    )


def _allocation(results: Results) -> Statement:
    best, gaps = {}, {}
    for table in results.among("14", "table"):
        for epsilon in results.among("14", "epsilon"):
            about: dict[str, Any] = {"table": table, "epsilon": epsilon}
            found = {s: results.series("14", shares=s, **about) for s in SHARES}
            case = f"{table} at {rounded_up(epsilon)}"
            best[case] = max(found, key=lambda s: float(np.mean(found[s])))
            gaps[case] = Gap.of(found[best[case]], found["2:1"], 6 * len(SHARES))
    ok = {case: gap.within() for case, gap in gaps.items()}
    return Statement(
        "A 2:1 allocation is reasonable",
        "best, and points above 2:1: "
        + ", ".join(f"{case} {best[case]} ({gap})" for case, gap in gaps.items()),
        verdict(ok),
        ""
        if False not in ok.values()
        else "which allocation is best depends on which attributes speak",
    )


def _promise(results: Results) -> Statement:
    real = {c["claimed"]: results.mean("sound", "epsilon", claimed=c["claimed"])
            for c in results.values if c.figure == "sound"}  # fmt: skip
    ratio = results.series("sensitivity", "printed over true")
    low = float(np.mean([r < 1 - 1e-9 for r in ratio]))
    broken = {e: value for e, value in real.items() if value > e}
    return Statement(
        "Algorithm 1 is epsilon-differentially private",
        f"printed sensitivity of the mean below the true one in {100 * low:.0f} % of 300 random "
        f"tables, down to {min(ratio):.2f} of it; line 14 between two neighbours: "
        + ", ".join(f"claimed {e:g}, real at least {v:.2f}" for e, v in real.items()),
        "does not hold" if broken or low > 0 else "holds",
        "theorems 4 and 7 bound how far the statistic drifts, not its local sensitivity at a "
        "distance; label moves are ignored",
    )
