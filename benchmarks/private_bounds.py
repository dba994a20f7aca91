"""Bounds and categories for a price: what they cover, and what they cost in accuracy.

``.venv/bin/python benchmarks/private_bounds.py coverage adult telco …`` compares two ways to bounds
at the same pure epsilon per column: noisy histograms on public grids (the product's) and two
quantiles by the exponential mechanism over all doubles. Printed are the share of the numbers inside
and the width, as a multiple of the range from the 1 % to the 99 % quantile; medians over columns.

``… accuracy adult telco …`` trains CentralNB at epsilon 1 and delta 1e-6 in all, with the schema of
the table's description, and with schemas inferred for 0.05, 0.1 and 0.2 of it, by both ways.

Tables are read from the folder that DISCREET_DATA names. ``--set NAME=VALUE`` changes a constant of
discreet.central.private_bounds or inference_plan, for tuning.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from discreet import CentralNB, Numeric, Schema
from discreet.central import inference_plan, private_bounds, private_inference
from discreet.central.budget import IntegerNoise
from discreet.central.private_bounds import (
    LOG_GRID_EDGES,
    cut_empty_ends,
    find_occupied_range,
    make_bounds,
    make_equal_edges,
)
from discreet.central.private_inference import infer_private_schema
from discreet.errors import DiscreetError
from discreet.randomness import CryptoRandom
from discreet.schema.schema import format_value

FOLDER = Path(os.environ.get("DISCREET_DATA", "data"))
QUANTILE = 0.01
"""Share of the numbers that the quantiles leave outside at each end."""
SHARES: tuple[float, ...] = (0.05, 0.1, 0.2)
"""Parts of epsilon 1 that the schema may cost."""
DELTA = 1e-6
KNOWN_CLASSES = True
"""Whether the classes are given; ``--infer-classes`` pays for them, too."""


def read(name: str) -> tuple[pd.DataFrame, Schema]:
    """A table with its description."""
    schema = Schema.read(FOLDER / f"{name}.json")
    frame = pd.read_csv(FOLDER / f"{name}.csv.gz", dtype=str, keep_default_na=False)
    return frame[[*schema.names, schema.target]], schema


def bound_by_histogram(numbers: Any, epsilon: float) -> tuple[float, float] | None:
    """Two noisy histograms, each for half of epsilon."""
    random, noise = CryptoRandom(), IntegerNoise(2 / Fraction(epsilon))

    def add_noise(edges: Any) -> Any:
        cells = np.searchsorted(edges, numbers, side="right")
        return noise.add(np.bincount(cells, minlength=len(edges) + 1), random)

    occupied = find_occupied_range(add_noise(LOG_GRID_EDGES), LOG_GRID_EDGES, noise)
    if occupied is None:
        return None
    edges = make_equal_edges(*occupied[:2])
    return make_bounds(*cut_empty_ends(add_noise(edges), edges, noise), False)


def bound_by_quantiles(numbers: Any, epsilon: float) -> tuple[float, float] | None:
    """Two quantiles, each for half of epsilon; the number of rows is taken as known."""
    rng = np.random.default_rng()
    ordered = np.sort(numbers + 0.0)
    bits = ordered.view(np.int64)
    places = np.where(bits < 0, np.int64(-(1 << 63)) - bits, bits)  # doubles in their order
    last = np.array([np.finfo(float).max]).view(np.int64)[0]
    edges = np.concatenate([[-last], places, [last]]).astype(float)
    widths = np.maximum(np.diff(edges), 0.0)
    ranks = np.arange(len(ordered) + 1)
    found = []
    for share in (QUANTILE, 1 - QUANTILE):
        quality = -np.abs(ranks - share * len(ordered)) * epsilon / 4
        with np.errstate(divide="ignore"):
            scores = quality + np.log(widths) + rng.gumbel(size=len(widths))
        cell = int(np.argmax(scores))
        place = np.int64(edges[cell] + rng.random() * widths[cell])
        bit = place if place >= 0 else np.int64(-(1 << 63)) - place
        found.append(float(np.array([bit]).view(np.float64)[0]))
    return (found[0], found[1]) if found[0] < found[1] else None


WAYS = {"histogram": bound_by_histogram, "quantiles": bound_by_quantiles}


def list_numbers(name: str) -> list[Any]:
    """The columns of numbers of a table."""
    frame, schema = read(name)
    columns = [frame[one.name] for one in schema.features if isinstance(one, Numeric)]
    return [pd.to_numeric(one, errors="coerce").dropna().to_numpy(float) for one in columns]


def print_coverage(names: list[str], repeats: int) -> None:
    """Print what bounds cover, by epsilon per column."""
    columns = [column for name in names for column in list_numbers(name)]
    print(f"{len(columns)} columns of {', '.join(names)}\n")
    print("| epsilon per column | way | found | inside | worst 5 % inside | width |")
    print("|---:|---|---:|---:|---:|---:|")
    for epsilon in (0.005, 0.01, 0.02, 0.05, 0.2):
        for way, bound in WAYS.items():
            inside, widths, missing = [], [], 0
            for numbers in columns * repeats:
                bounds = bound(numbers, epsilon)
                if bounds is None:
                    missing += 1
                    continue
                inside.append(((numbers >= bounds[0]) & (numbers <= bounds[1])).mean())
                low, high = np.quantile(numbers, [0.01, 0.99])
                widths.append((bounds[1] - bounds[0]) / max(high - low, 1e-9))
            share = 1 - missing / len(columns * repeats)
            print(
                f"| {epsilon:g} | {way} | {share:.0%} | {np.median(inside):.3f} | "
                f"{np.quantile(inside, 0.05):.3f} | {np.median(widths):.2g} |"
            )


def infer(path: Path, train: pd.DataFrame, hand: Schema, epsilon: float, way: str) -> Schema:
    """A schema for a price, by one of both ways to bounds; the classes are known."""
    target, tokens = hand.target, hand.missing_tokens
    classes = hand.classes if KNOWN_CLASSES else None
    schema = infer_private_schema(
        path, target, epsilon=epsilon, delta=DELTA / 2, classes=classes, missing_tokens=tokens
    ).schema
    if way == "histogram":
        return schema
    column_epsilon = 2 * epsilon / (2 * len(train.columns) - 1)
    features: list[Any] = []
    for feature in schema.features:
        if isinstance(feature, Numeric):
            numbers = pd.to_numeric(train[feature.name], errors="coerce").dropna().to_numpy(float)
            bounds = bound_by_quantiles(numbers, column_epsilon)
            if bounds is None or not 1e-50 < bounds[1] - bounds[0] < 1e50:
                continue
            feature = Numeric(feature.name, *bounds)
        features.append(feature)
    return replace(schema, features=tuple(features))


def measure(path: Path, test: pd.DataFrame, schema: Schema, epsilon: float) -> float:
    """Accuracy on other rows."""
    model = CentralNB(epsilon, delta=DELTA / 2, schema=schema).fit_source(path)
    predicted = [format_value(one) for one in model.predict(test[list(schema.names)])]
    return float((np.array(predicted) == test[schema.target].to_numpy(str)).mean())


def print_accuracy(names: list[str], repeats: int, ways: list[str], folder: str) -> None:
    """Print the accuracy of hand-written and inferred schemas at the same epsilon in all."""
    cases = [("by hand", 0.0)] + [(way, share) for way in ways for share in SHARES]
    heads = [case if not share else f"{case}, {share:g}" for case, share in cases]
    print(f"| table | {' | '.join(heads)} |\n|---|{'---:|' * len(cases)}")
    totals: list[list[float]] = []
    for name in names:
        frame, schema = read(name)
        rng = np.random.default_rng(1)
        found: list[list[float]] = []
        for _ in range(repeats):
            rows = rng.permutation(len(frame))
            test, train = (
                frame.iloc[part].reset_index(drop=True) for part in np.split(rows, [len(rows) // 5])
            )
            usual = (test[schema.target] == train[schema.target].mode()[0]).mean()
            path = Path(folder) / "train.csv"
            train.to_csv(path, index=False)
            line = []
            for way, share in cases:
                try:
                    used = infer(path, train, schema, share, way) if share else schema
                    line.append(measure(path, test, used, 1 - share))
                except DiscreetError as error:
                    print(f"{name} {way} {share}: {str(error)[:90]}")
                    line.append(float(usual))
            found.append(line)
        means = np.mean(found, axis=0)
        errors = np.std(found, axis=0, ddof=1) / math.sqrt(repeats)
        totals.append(list(means))
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"| mean | {' | '.join(f'{mean:.3f}' for mean in np.mean(totals, axis=0))} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "accuracy"])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--way", action="append", choices=list(WAYS))
    parser.add_argument("--set", action="append", default=[], dest="constants")
    parser.add_argument("--infer-classes", action="store_true")
    parser.add_argument("--share", type=float, action="append", dest="shares")
    options = parser.parse_args()
    SHARES = tuple(options.shares or SHARES)
    KNOWN_CLASSES = not options.infer_classes
    for constant in options.constants:
        constant_name, _, value = constant.partition("=")
        number = int(value) if value.isdigit() else Fraction(value)
        module = private_bounds if hasattr(private_bounds, constant_name) else inference_plan
        setattr(module, constant_name, number)
        if hasattr(private_inference, constant_name):
            setattr(private_inference, constant_name, number)
    warnings.simplefilter("ignore")
    if options.what == "coverage":
        print_coverage(options.names, options.repeats)
    else:
        with tempfile.TemporaryDirectory() as working_folder:
            ways = options.way or list(WAYS)
            print_accuracy(options.names, options.repeats, ways, working_folder)
