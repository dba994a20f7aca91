"""Naive Bayes under local differential privacy (Yilmaz, Al-Rubaie, Chang): figures 2 to 4."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from discreet.model import GaussianFactor
from discreet.model.evaluation import score
from discreet.papers.reproduction import Cell, Figure, Line, Panel, Results, Statement
from discreet.privacy import rounded_up
from discreet.schema import Categorical, Numeric

TITLE = "Naive Bayes under local differential privacy, reproduced"
NOTES = """
E. Yilmaz, M. Al-Rubaie, J. M. Chang: *Locally differentially private Naive Bayes classification*.
Accuracy on 20 % of the rows after training on the other 80 %, split anew in every repetition; a
tenth of the repetitions on Connect-4.

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
"""
CODE = ("estimators", "local", "mechanisms", "collection", "estimation", "projection.py")
REPEATS = 20

DISCRETE = ("car", "chess", "mushroom", "connect4")
ORACLES = ("de", "sue", "oue", "she", "the")
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
READINGS = ("per person", "per report")
CONTINUOUS = {"australian": 2, "diabetes": 4}
"""Table to buckets."""
PROJECTIONS = ("raw", "PCA", "DCA")
SOURCES = ("not private", "public sample")
SIZES = {
    ("australian", "PCA"): 1,
    ("australian", "DCA"): 1,
    ("diabetes", "PCA"): 6,
    ("diabetes", "DCA"): 1,
}
THETAS = (0.05, 0.25, 0.4, 0.55, 0.7, 0.85)
FEWER = {"connect4": 10}
"""Repetitions are divided by this: 67,557 rows say the same with fewer."""


def cells(quick: bool) -> list[Cell]:
    """Every point of figures 2 to 4, the limits without noise, and THE by theta."""
    epsilons = (0.5, 2.0, 5.0) if quick else EPSILONS
    tables = DISCRETE[:3] if quick else DISCRETE
    made = [
        Cell.of("2", table=table, oracle=oracle, epsilon=epsilon, reading=reading)
        for table in tables
        for oracle in ORACLES
        for epsilon in epsilons
        for reading in READINGS
    ]
    made += [Cell.of("2", table=table, oracle="none") for table in tables]
    made += [
        Cell.of("theta", table=table, theta=theta, epsilon=epsilon)
        for table in ("car", "mushroom")
        for theta in THETAS
        for epsilon in (1.0, 3.0)
    ]
    ways = [("raw", "none"), *((p, s) for p in PROJECTIONS[1:] for s in SOURCES)]
    for table in CONTINUOUS:
        for way, source in ways:
            for epsilon in epsilons:
                about = {"table": table, "projection": way, "source": source, "epsilon": epsilon}
                made += [Cell.of("3", oracle=oracle, **about) for oracle in ("de", "oue")]
                made += [Cell.of("4", approach=approach, **about) for approach in (1, 2, 3)]
        made += [Cell.of("3", table=table, oracle="none")]
        made += [Cell.of("4", table=table, approach="none")]
    return made


def compute(cell: Cell, repeats: int, quick: bool) -> dict[str, list[float]]:
    """Accuracy, a number for each repetition."""
    count = max(2, repeats // FEWER.get(cell["table"], 1))
    run = {"2": _discrete, "theta": _by_theta, "3": _continuous, "4": _continuous}[cell.figure]
    return {"accuracy": [run(cell, repeat) for repeat in range(count)]}


@cache
def _rows(table: str) -> Any:
    from discreet.datasets import load

    data = load(table)
    if table not in CONTINUOUS:
        return data
    # every column is a number, as in the paper: codes of categories, too
    features, frame = [], data.frame.copy()
    for feature in data.schema.features:
        if isinstance(feature, Categorical):
            codes = [float(str(value)) for value in feature.values]
            frame[feature.name] = frame[feature.name].astype(float)
            features.append(Numeric(feature.name, min(codes), max(codes), optional=False))
        else:
            features.append(feature)
    return replace(data, schema=replace(data.schema, features=tuple(features)), frame=frame)


def _split(table: str, repeat: int) -> tuple[Any, Any, Any]:
    """Rows, and the indices to learn from and to be tested on."""
    data = _rows(table)
    order = np.random.default_rng(repeat).permutation(len(data.y))
    return data, *np.split(order, [int(0.8 * len(order))])


def published(epsilon: float, **more: Any) -> Any:
    """The paper's plan and estimator; also for benchmarks.

    Parameters
    ----------
    epsilon : float
        Total per person.
    more
        Further parameters of ``LocalNB``.
    """
    from discreet.estimators import LocalNB

    usual = {"plan": "paper", "postprocess": "paper", "assignment": "draw"}
    return LocalNB(epsilon, **(usual | more))


def _discrete(cell: Cell, repeat: int) -> float:
    data, train, test = _split(cell["table"], repeat)
    X, y = data.X, data.y
    if cell["oracle"] == "none":
        return _without_noise(data, train, test, 8)
    theta = 0.25 if cell["oracle"] == "the" else None
    nb = published(
        cell["epsilon"], oracle=cell["oracle"], theta=theta, schema=data.schema, random_state=repeat
    )
    if cell["reading"] == "per person":
        return float(nb.fit(X.iloc[train], y[train]).score(X.iloc[test], y[test]))
    nb.fit(X.iloc[train[:50]], y[train[:50]])  # makes the plan, which does not depend on rows
    return _everyone_answers_all(nb.plan_, X.iloc[train], y[train], X.iloc[test], y[test], repeat)


def _everyone_answers_all(plan: Any, X: Any, y: Any, X_test: Any, y_test: Any, seed: int) -> float:
    """The other reading: n + 1 reports of epsilon each from everyone."""
    from discreet.collection.tally import Tally
    from discreet.encoding import class_codes
    from discreet.estimation import estimate
    from discreet.local.inversion import statistics_of
    from discreet.randomness import SeededRandom
    from discreet.statistics import Table

    columns = {name: X[name].to_numpy() for name in plan.schema.names}
    codes = plan.encoded(columns, class_codes(plan.schema, y))
    random, tally = SeededRandom(seed), Tally(plan, simulated=True)
    for question in range(len(plan.questions)):
        tally.add_values(question, plan.randomized(question, codes, random))
    found, count = statistics_of(tally), len(plan.questions)
    tables = {
        name: Table(one.cells, one.counts / count, one.variances / count**2)
        for name, one in found.tables.items()
    }
    scaled = replace(
        found, totals=found.totals / count, variances=found.variances / count**2, tables=tables
    )
    return score(estimate(scaled, "paper"), X_test, y_test).accuracy


def _without_noise(data: Any, train: Any, test: Any, bins: int) -> float:
    from discreet.estimators import LocalNB

    nb = LocalNB(math.inf, schema=data.schema, bins=bins, random_state=0)
    nb.fit(data.X.iloc[train], data.y[train])
    return float(nb.score(data.X.iloc[test], data.y[test]))


def _by_theta(cell: Cell, repeat: int) -> float:
    data, train, test = _split(cell["table"], repeat)
    nb = published(
        cell["epsilon"], oracle="the", theta=cell["theta"], schema=data.schema, random_state=repeat
    ).fit(data.X.iloc[train], data.y[train])
    return float(nb.score(data.X.iloc[test], data.y[test]))


def _continuous(cell: Cell, repeat: int) -> float:
    """Figures 3 (buckets) and 4 (normal densities), raw or projected."""
    table = cell["table"]
    data, train, test = _split(table, repeat)
    X, y, gaussian = data.X, data.y, cell.figure == "4"
    what = cell["approach" if gaussian else "oracle"]
    if what == "none":
        if not gaussian:
            return _without_noise(data, train, test, CONTINUOUS[table])
        from discreet.estimators import MixedNB

        nb = MixedNB(schema=data.schema).fit(X.iloc[train], y[train])
        return float(nb.score(X.iloc[test], y[test]))
    options: dict[str, Any] = {"schema": data.schema, "random_state": repeat}
    options["bins"] = CONTINUOUS[table]
    if cell["projection"] != "raw":
        from discreet.projection import DCA, PCA

        size = 1 if gaussian else SIZES[table, cell["projection"]]
        options["projection"] = {"PCA": PCA, "DCA": DCA}[cell["projection"]](size)
        sample = train
        if cell["source"] == "public sample":
            cut = len(train) // 8  # a tenth of all rows
            sample, train = train[:cut], train[cut:]
        options["public_sample"] = (X.iloc[sample], y[sample])
    if not gaussian:
        nb = published(cell["epsilon"], oracle=what, **options)
        return float(nb.fit(X.iloc[train], y[train]).score(X.iloc[test], y[test]))
    # a third each of the respondents for classes, means and squares, as in the paper
    nb = published(cell["epsilon"], numeric="gaussian", plan="auto", approach=what, **options)
    model = _as_published(nb.fit(X.iloc[train], y[train]))
    return score(model, X.iloc[test], y[test]).accuracy


def _as_published(fitted: Any) -> Any:
    """Means and variances as they come: the estimator's own would draw them to one another."""
    factors = []
    for one in fitted.statistics_.moments.values():
        low, high = one.feature.lower, one.feature.upper
        least = ((high - low) / 100) ** 2
        mean, variance = np.clip(one.mean, low, high), np.maximum(one.variance, least)
        factors.append(GaussianFactor(one.feature, mean, variance))
    return replace(fitted.model_, factors=tuple(factors))


# ---------------------------------------------------------------- figures and verdicts


def _epsilons(results: Results, figure: str) -> list[float]:
    found = {dict(c.parameters).get("epsilon") for c in results.values if c.figure == figure}
    return sorted(one for one in found if one is not None)


def _tables(results: Results, figure: str) -> list[str]:
    return list(dict.fromkeys(c["table"] for c in results.values if c.figure == figure))


def _line(
    results: Results, label: str, figure: str, epsilons: Sequence[float], **about: Any
) -> Line:
    order = _order(results, figure, about)
    points = [dict(_sorted(order, {**about, "epsilon": e})) for e in epsilons]
    return Line(
        label,
        epsilons,
        [results.mean(figure, **p) for p in points],
        [results.error(figure, **p) for p in points],
    )


def _order(results: Results, figure: str, about: dict[str, Any]) -> tuple[str, ...]:
    wanted = {*about, "epsilon"}
    return next(
        tuple(k for k, _ in c.parameters)
        for c in results.values
        if c.figure == figure and {k for k, _ in c.parameters} == wanted
    )


def _sorted(order: tuple[str, ...], about: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(key, about[key]) for key in order]


def _flat(label: str, epsilons: Sequence[float], value: float) -> Line:
    return Line(label, [epsilons[0], epsilons[-1]], [value, value], style=":")


def figures(results: Results) -> Iterator[Figure]:
    """Figures 2, 3 and 4, and accuracy by THE's theta."""
    if epsilons := _epsilons(results, "2"):
        for reading in READINGS:
            panels = [
                Panel(
                    table,
                    [
                        *(
                            _line(
                                results,
                                o.upper(),
                                "2",
                                epsilons,
                                table=table,
                                oracle=o,
                                reading=reading,
                            )
                            for o in ORACLES
                        ),
                        _flat(
                            "no privacy", epsilons, results.mean("2", table=table, oracle="none")
                        ),
                    ],
                    "epsilon, total per person"
                    if reading == "per person"
                    else "epsilon of each report",
                    "accuracy",
                )
                for table in _tables(results, "2")
            ]
            yield Figure(f"figure 2 {reading}", f"Discrete features, epsilon {reading}.", panels)
    if epsilons := _epsilons(results, "3"):
        for figure, key, whats in (("3", "oracle", ("de", "oue")), ("4", "approach", (1, 2, 3))):
            panels = []
            for table in _tables(results, figure):
                for what in whats:
                    made = [
                        _line(
                            results,
                            "raw",
                            figure,
                            epsilons,
                            table=table,
                            projection="raw",
                            source="none",
                            **{key: what},
                        )
                    ]
                    made += [
                        _line(
                            results,
                            f"{p}, {s}",
                            figure,
                            epsilons,
                            table=table,
                            projection=p,
                            source=s,
                            **{key: what},
                        )
                        for p in PROJECTIONS[1:]
                        for s in SOURCES
                    ]
                    limit = results.mean(figure, table=table, **{key: "none"})
                    made.append(_flat("raw, no privacy", epsilons, limit))
                    name = str(what).upper() if figure == "3" else f"approach {what}"
                    panels.append(
                        Panel(f"{table}, {name}", made, "epsilon, total per person", "accuracy")
                    )
            kind = "buckets" if figure == "3" else "normal densities"
            yield Figure(f"figure {figure}", f"Numeric features, {kind}.", panels, len(whats))
    if any(cell.figure == "theta" for cell in results.values):
        panels = [
            Panel(
                f"{table}, epsilon {rounded_up(epsilon)}",
                [
                    Line(
                        "THE",
                        THETAS,
                        [
                            results.mean("theta", table=table, theta=t, epsilon=epsilon)
                            for t in THETAS
                        ],
                        [
                            results.error("theta", table=table, theta=t, epsilon=epsilon)
                            for t in THETAS
                        ],
                    )
                ],
                "theta",
                "accuracy",
            )
            for table in ("car", "mushroom")
            for epsilon in (1.0, 3.0)
        ]
        yield Figure(
            "theta of THE", "Accuracy of THE by its threshold, epsilon per person.", panels
        )


def _at(results: Results, table: str, oracle: str, epsilon: float, reading: str) -> float:
    return results.mean("2", table=table, oracle=oracle, epsilon=epsilon, reading=reading)


def _both(test: dict[str, bool]) -> str:
    """The verdict where the two readings of epsilon may differ."""
    if all(test.values()):
        return "holds"
    if test["per report"]:
        return "holds only per report"
    return "holds only per person" if test["per person"] else "does not hold"


def statements(results: Results) -> Iterator[Statement]:
    """The ten statements of the paper."""
    epsilons = _epsilons(results, "2")
    low = epsilons[0]
    tables = _tables(results, "2")
    four = [o for o in ORACLES if o != "she"]
    if "connect4" in tables:
        found = {r: {o: _at(results, "connect4", o, low, r) for o in ORACLES} for r in READINGS}
        ok = {r: all(found[r][o] > 0.65 for o in four) for r in READINGS}
        shown = "; ".join(f"{r} {_listed(found[r])}" for r in READINGS)
        yield Statement(
            "More than 65 % on Connect-4 at very small epsilon for all but SHE",
            f"at {low:g}: {shown}; the majority class has 65.8 %",
            _both(ok),
            ""
            if all(ok.values())
            else "with that much noise the majority class is predicted, or something worse",
        )
    found = {r: {o: _at(results, "mushroom", o, 0.5, r) for o in ORACLES} for r in READINGS}
    ok = {r: all(found[r][o] > 0.87 for o in four) for r in READINGS}
    yield Statement(
        "Nearly 90 % on Mushroom at epsilon 0.5 for all but SHE",
        "; ".join(f"{r} {_listed(found[r])}" for r in READINGS),
        _both(ok),
        "" if ok["per person"] else "0.5 for each of 23 reports is 11.5 in total",
    )
    worst = {r: _below_she(results, tables, epsilons, r) for r in READINGS}
    cells_in_all = len(tables) * len(epsilons)
    yield Statement(
        "SHE is worst everywhere",
        f"of {cells_in_all} cells, another oracle is lower by more than two standard errors in: "
        + "; ".join(f"{r} {len(found)}{_named(found)}" for r, found in worst.items()),
        "holds"
        if not any(worst.values())
        else "holds only nearly everywhere"
        if max(map(len, worst.values())) <= cells_in_all / 6
        else "does not hold",
        ""
        if not any(worst.values())
        else "DE is lower where a question has many cells and epsilon is small",
    )
    best = {
        r: {t: max(ORACLES, key=lambda o: _at(results, t, o, 0.5, r)) for t in ("car", "chess")}
        for r in READINGS
    }
    gaps = {
        r: ", ".join(
            f"{t} {best[r][t].upper()} {100 * _at(results, t, best[r][t], 0.5, r):.1f} "
            f"(DE {100 * _at(results, t, 'de', 0.5, r):.1f})"
            for t in ("car", "chess")
        )
        for r in READINGS
    }
    ok = {
        r: all(_close(results, t, "de", best[r][t], 0.5, r) for t in ("car", "chess"))
        for r in READINGS
    }
    yield Statement(
        "DE is best at small epsilon on car and chess",
        "best at 0.5: " + "; ".join(f"{r} {gaps[r]}" for r in READINGS),
        _both(ok),
        ""
        if all(ok.values())
        else "a question of these tables has up to 16 cells, more than the "
        "3 exp(epsilon) + 2 below which DE has the least variance",
    )
    apart, clear = [], 0
    for t in tables:
        for e in epsilons:
            for r in READINGS:
                apart.append(abs(_at(results, t, "sue", e, r) - _at(results, t, "oue", e, r)))
                pair: list[dict[str, Any]] = [
                    {"table": t, "oracle": o, "epsilon": e, "reading": r} for o in ("sue", "oue")
                ]
                clear += apart[-1] > 3 * math.hypot(*(results.error("2", **one) for one in pair))
    alike = clear <= len(apart) / 20
    yield Statement(
        "SUE and OUE are alike",
        f"difference {100 * np.mean(apart):.1f} points on average, {100 * max(apart):.1f} at most; "
        f"beyond three standard errors in {clear} of {len(apart)} cells",
        "holds" if alike else "holds only where the noise hides the difference",
        "" if alike else "OUE has the smaller variance",
    )
    yield _theta(results)
    yield from _continuous_statements(results)
    last = [e for e in epsilons if e > 2] or epsilons[-1:]
    gap = {
        r: {
            t: results.mean("2", table=t, oracle="none")
            - min(max(_at(results, t, o, e, r) for o in four) for e in last)
            for t in tables
        }
        for r in READINGS
    }
    yield Statement(
        "epsilon > 2 is very close to no privacy",
        f"best oracle at {last[0]:g}, points below no privacy (close: less than 4): "
        + "; ".join(
            f"{r} " + ", ".join(f"{t} {100 * g:.1f}" for t, g in gap[r].items()) for r in READINGS
        ),
        _both({r: max(gap[r].values()) < 0.04 for r in READINGS}),
        ""
        if max(gap["per person"].values()) < 0.04
        else "one report per person of that epsilon "
        "is noisy where there are many features and few rows",
    )


def _listed(found: dict[str, float]) -> str:
    return ", ".join(f"{o.upper()} {100 * value:.1f}" for o, value in found.items())


def _below_she(
    results: Results, tables: Sequence[str], epsilons: Sequence[float], reading: str
) -> list[str]:
    """The oracles that are clearly below SHE, one for each cell in which some is."""
    found = []
    for t in tables:
        for e in epsilons:
            lower = [o for o in ORACLES if not _close(results, t, o, "she", e, reading)]
            found += lower[:1]
    return found


def _named(oracles: Sequence[str]) -> str:
    return f" ({', '.join(sorted({o.upper() for o in oracles}))})" if oracles else ""


def _close(
    results: Results, table: str, one: str, other: str, epsilon: float, reading: str
) -> bool:
    """Whether one oracle is at least as good as another, up to two standard errors."""
    values = [
        (
            results.mean("2", table=table, oracle=o, epsilon=epsilon, reading=reading),
            results.error("2", table=table, oracle=o, epsilon=epsilon, reading=reading),
        )
        for o in (one, other)
    ]
    return values[0][0] > values[1][0] - 2 * math.hypot(values[0][1], values[1][1])


def _theta(results: Results) -> Statement:
    best, level = {}, []
    for table in ("car", "mushroom"):
        for epsilon in (1.0, 3.0):
            score = {
                t: results.mean("theta", table=table, theta=t, epsilon=epsilon) for t in THETAS
            }
            best[f"{table} at {rounded_up(epsilon)}"] = max(score, key=lambda t: score[t])
            level.append(max(score.values()) - score[0.25])
    return Statement(
        "theta = 0.25 is best for THE",
        "best theta: "
        + ", ".join(f"{k} {v:g}" for k, v in best.items())
        + f"; 0.25 is up to {100 * max(level):.1f} points below the best",
        "holds" if max(level) < 0.005 else "does not hold",
        "" if max(level) < 0.005 else "the threshold of least variance lies between 1/2 and 1",
    )


def _continuous_statements(results: Results) -> Iterator[Statement]:
    epsilons = _epsilons(results, "3")

    def average(figure: str, way: str, source: str, key: str, what: Any, table: str) -> float:
        order = _order(results, figure, {"table": 0, "projection": 0, "source": 0, key: 0})
        given = {"table": table, "projection": way, "source": source, key: what}
        return float(
            np.mean(
                [
                    results.mean(figure, **dict(_sorted(order, {**given, "epsilon": e})))
                    for e in epsilons
                ]
            )
        )

    for source in SOURCES:
        score = {
            (t, o): [
                average("3", w, "none" if w == "raw" else source, "oracle", o, t)
                for w in ("DCA", "PCA", "raw")
            ]
            for t in CONTINUOUS
            for o in ("de", "oue")
        }
        ordered = [a > b > c for a, b, c in score.values()]
        first = [a == max(a, b, c) for a, b, c in score.values()]
        yield Statement(
            f"DCA best, then PCA, then raw (buckets, projection {source})",
            "mean over epsilon, DCA/PCA/raw: "
            + ", ".join(
                f"{t} {o.upper()} {100 * a:.1f}/{100 * b:.1f}/{100 * c:.1f}"
                for (t, o), (a, b, c) in score.items()
            ),
            "holds"
            if all(ordered)
            else "holds only for DCA being best"
            if all(first)
            else "does not hold",
            "" if all(ordered) else "PCA looks for spread, not for what tells the classes apart",
        )
    pairs = {}
    for t in CONTINUOUS:
        bins = max(average("3", "DCA", "not private", "oracle", o, t) for o in ("de", "oue"))
        density = max(average("4", "DCA", "not private", "approach", a, t) for a in (1, 2, 3))
        raw_bins = max(average("3", "raw", "none", "oracle", o, t) for o in ("de", "oue"))
        raw_density = max(average("4", "raw", "none", "approach", a, t) for a in (1, 2, 3))
        pairs[t] = (bins, density, raw_bins, raw_density)
    ok = all(a > b and c > d for a, b, c, d in pairs.values())
    yield Statement(
        "Discretisation is better than Gaussian Naive Bayes",
        "mean over epsilon, buckets/densities: "
        + ", ".join(
            f"{t} DCA {100 * a:.1f}/{100 * b:.1f}, raw {100 * c:.1f}/{100 * d:.1f}"
            for t, (a, b, c, d) in pairs.items()
        ),
        "holds" if ok else "holds only for some",
        "" if ok else "with one component a mean and a variance need few respondents",
    )
    score4 = {
        (t, w): [
            average("4", w, "none" if w == "raw" else "not private", "approach", a, t)
            for a in (1, 2, 3)
        ]
        for t in CONTINUOUS
        for w in PROJECTIONS
    }
    raw = [v[0] <= min(v) + 0.002 for (_, w), v in score4.items() if w == "raw"]
    every = [v[0] <= min(v) + 0.002 for v in score4.values()]
    yield Statement(
        "Approach 1 is worst",
        "mean over epsilon, approaches 1/2/3: "
        + ", ".join(
            f"{t} {w} " + "/".join(f"{100 * one:.1f}" for one in v) for (t, w), v in score4.items()
        ),
        "holds" if all(every) else "holds only without projection" if all(raw) else "does not hold",
        ""
        if all(every)
        else "with one dimension approaches 1 and 3 are the same, and the order is noise",
    )
