"""Time to a first private model: from a CSV file to predictions for others, in four libraries.

Every script below gets the same two tables (`population.csv`, `others.csv`, invented people) and
the same public facts, keeps an epsilon of 1 per person, and prints its accuracy. Counted are the
lines that somebody has to write, what has to be installed, and the seconds of a new process. Each
library has an environment of its own (``.venv-peers/first-…``, made at first use); one that cannot
be installed is named in the table.

    python benchmarks/first_model.py
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from discreet.datasets import make_mortgage

PEERS = Path(__file__).resolve().parents[1] / ".venv-peers"
PEOPLE, REPEATS = 20_000, 3

NUMBERS = """
people, others = pd.read_csv("population.csv"), pd.read_csv("others.csv")
bounds = {"age": (18, 100), "loan_to_value": (0, 1.5), "credit_score": (300, 850),
          "years_at_address": (0, 60)}
"""
VALUES = """
values = {"income": ["low", "medium", "high"], "gender": ["female", "male"],
          "employment": ["employed", "self-employed", "unemployed", "retired", "student"],
          "region": ["north", "east", "south", "west", "coast", "capital"]}
"""

OURS = """
import pandas as pd
from discreet import Categorical, CentralNB, Numeric, Schema
people, others = pd.read_csv("population.csv"), pd.read_csv("others.csv")
schema = Schema([
    Numeric("age", 18, 100), Numeric("loan_to_value", 0, 1.5),
    Numeric("credit_score", 300, 850), Numeric("years_at_address", 0, 60),
    Categorical("income", ["low", "medium", "high"]), Categorical("gender", ["female", "male"]),
    Categorical("employment", ["employed", "self-employed", "unemployed", "retired", "student"]),
    Categorical("region", ["north", "east", "south", "west", "coast", "capital"]),
], "missed_payment", ["no", "yes"])
model = CentralNB(epsilon=1.0, schema=schema)
model.fit(people[list(schema.names)], people["missed_payment"])
print(model.score(others[list(schema.names)], others["missed_payment"]))
"""

DIFFPRIVLIB = (
    """
import pandas as pd
from diffprivlib.models import GaussianNB
"""
    + NUMBERS
    + VALUES
    + """
def encoded(table):
    numbers = table[list(bounds)].fillna({name: sum(b) / 2 for name, b in bounds.items()})
    for name, known in values.items():
        for value in known:
            numbers[f"{name}={value}"] = (table[name] == value).astype(float)
    return numbers.to_numpy(float)
lower = [b[0] for b in bounds.values()] + [0] * sum(map(len, values.values()))
upper = [b[1] for b in bounds.values()] + [1] * sum(map(len, values.values()))
model = GaussianNB(epsilon=1.0, bounds=(lower, upper))
model.fit(encoded(people), people["missed_payment"] == "yes")
print(model.score(encoded(others), others["missed_payment"] == "yes"))
"""
)

OPENDP = (
    """
import numpy as np
import opendp.prelude as dp
import pandas as pd
dp.enable_features("contrib")
"""
    + NUMBERS
    + VALUES
    + """
classes, bins = ["no", "yes"], 16
for table in (people, others):
    for name, (low, high) in bounds.items():
        cell = ((table[name] - low) / (high - low) * bins).clip(0, bins - 1)
        table[name] = cell.map(lambda x: "missing" if np.isnan(x) else str(int(x)))
cells = {**{name: [*map(str, range(bins)), "missing"] for name in bounds}, **values}
space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
def counted(name, epsilon):
    joint = [f"{c}|{v}" for c in classes for v in cells[name]]
    rows = (people["missed_payment"] + "|" + people[name]).tolist()
    query = (space >> dp.t.then_count_by_categories(joint, null_category=False)
             >> dp.m.then_laplace(scale=1 / epsilon))
    return np.array(query(rows), float).reshape(len(classes), -1)
tables = {name: np.maximum(counted(name, 1.0 / len(cells)), 0) + 1 for name in cells}
score = np.log(np.mean([table.sum(axis=1) for table in tables.values()], axis=0))[None, :]
for name, table in tables.items():
    likelihood = np.log(table / table.sum(axis=1, keepdims=True))
    score = score + likelihood[:, [cells[name].index(v) for v in others[name]]].T
print((np.array(classes)[score.argmax(axis=1)] == others["missed_payment"]).mean())
"""
)

EBM = (
    """
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier
"""
    + NUMBERS
    + """
names = [*bounds, "income", "gender", "employment", "region"]
for table in (people, others):
    table.fillna({name: sum(b) / 2 for name, b in bounds.items()}, inplace=True)
kinds = ["continuous"] * 4 + ["nominal"] * 4
model = DPExplainableBoostingClassifier(
    epsilon=1.0, delta=1e-6, feature_names=names, feature_types=kinds, privacy_bounds=bounds)
model.fit(people[names], (people["missed_payment"] == "yes").astype(int))
print(model.score(others[names], (others["missed_payment"] == "yes").astype(int)))
"""
)

COMMANDS = [
    "train population.csv --schema schema.json --epsilon 1 -o model.json --force --quiet",
    "evaluate model.json others.csv --json",
]
LIBRARIES = {
    "discreet, in Python": (None, [], OURS, "(1, 0)"),
    "diffprivlib, GaussianNB": (
        "diffprivlib", ["diffprivlib==0.6.6", "scikit-learn==1.5.2", "numpy<2.3", "pandas"],
        DIFFPRIVLIB, "(1, 0)",
    ),
    "OpenDP, Naive Bayes by hand": ("opendp", ["opendp", "numpy", "pandas"], OPENDP, "(1, 0)"),
    "InterpretML, DP-EBM": ("interpret", ["interpret-core", "pandas"], EBM, "(1, 1e-6)"),
}  # fmt: skip


def environment(name: str, packages: list[str]) -> str | None:
    """The Python of a library's own environment; None where it cannot be installed."""
    home = PEERS / f"first-{name}"
    python = home / "bin" / "python"
    if not (home / ".made").exists():
        venv.create(home, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-q", *packages]
        if subprocess.run(install, capture_output=True).returncode:
            return None
        (home / ".made").touch()
    return str(python)


def measured(folder: Path, *words: str) -> tuple[float, float, str]:
    """Processor and wall seconds of the quickest of several runs, and the middle accuracy."""
    times, scores = [], []
    for _ in range(REPEATS):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append((spent, time.perf_counter() - begun))
        if found := re.search(r'"accuracy": ([0-9.]+)|^([0-9.]+)$', done.stdout, re.M):
            scores.append(float(found[1] or found[2]))
    return (*min(times), f"{sorted(scores)[len(scores) // 2]:.3f}" if scores else "")


def lines_of(script: str) -> int:
    """Lines with something on them."""
    return sum(bool(line.strip()) for line in script.splitlines())


def main() -> None:
    """Measure and print a table."""
    print("| with | lines or commands | (epsilon, delta) | accuracy | processor s | wall s |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        people = make_mortgage(PEOPLE, seed=0)
        people.frame[: PEOPLE // 2].to_csv(folder / "population.csv", index=False)
        people.frame[PEOPLE // 2 :].to_csv(folder / "others.csv", index=False)
        (folder / "schema.json").write_text(people.schema.to_json())
        spent = wall = 0.0
        for line in COMMANDS:
            one = measured(folder, sys.executable, "-m", "discreet", *line.split())
            spent, wall = spent + one[0], wall + one[1]
        score = one[2]
        print(
            f"| discreet, on the command line | {len(COMMANDS)} commands and a schema file | "
            f"(1, 0) | {score} | {spent:.1f} | {wall:.1f} |"
        )
        for title, (own, packages, script, promise) in LIBRARIES.items():
            python = sys.executable if own is None else environment(own, packages)
            if python is None:
                print(f"| {title} | {lines_of(script)} | {promise} | could not be installed | | |")
                continue
            spent, wall, score = measured(folder, python, "-W", "ignore", "-c", script)
            lines = f"{lines_of(script)} lines"
            print(f"| {title} | {lines} | {promise} | {score} | {spent:.1f} | {wall:.1f} |")


if __name__ == "__main__":
    main()
