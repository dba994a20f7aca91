"""``discreet demo``: the same question under every trust model, on a bundled population."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT_FOLDER, folder, write
from discreet.cli.output import console, example, json_option, print_json, progress, table

if TYPE_CHECKING:
    import pandas as pd

    from discreet.model import NaiveBayesModel
    from discreet.model.evaluation import Scores
    from discreet.model.explanation import Explanation
    from discreet.schema import Schema

__all__ = ["demo"]

EPSILON = 1.0
"""Per person and total, in every private row but the survey's, which shows its own."""


@dataclass(frozen=True)
class Row:
    """One line of the table: how far one gets with how much trust."""

    trust: str
    sees: str
    epsilon: float | None
    accuracy: float
    interval: tuple[float, float]
    note: str

    def cells(self) -> tuple[str, ...]:
        """The line in words."""
        half = (self.interval[1] - self.interval[0]) / 2
        accuracy = f"{100 * self.accuracy:.1f} %" + (f" ± {100 * half:.1f}" if half > 5e-4 else "")
        from discreet.privacy import rounded_up

        epsilon = "-" if self.epsilon is None else rounded_up(self.epsilon)
        return self.trust, self.sees, epsilon.replace("inf", "∞"), accuracy, self.note


@dataclass(frozen=True)
class Stage:
    """The people, and the one model that the rest of the demo talks about."""

    rows: int
    seed: int

    @cached_property
    def people(self) -> pd.DataFrame:
        """Twice as many people as asked for: half to learn from, half to be tested on."""
        from discreet.datasets import mortgage

        return mortgage(2 * self.rows, self.seed).frame

    @property
    def schema(self) -> Schema:
        """What is public about them."""
        from discreet.datasets import MORTGAGE_SCHEMA

        return MORTGAGE_SCHEMA

    @property
    def learning(self) -> pd.DataFrame:
        """Those whom a classifier may learn from."""
        return self.people.iloc[: self.rows]

    @property
    def others(self) -> pd.DataFrame:
        """Those whom it has never seen."""
        return self.people.iloc[self.rows :]

    @cached_property
    def model(self) -> NaiveBayesModel:
        """The non-private classifier."""
        from discreet.estimators import MixedNB

        known = self.learning
        classes = known[self.schema.target].to_numpy()
        return MixedNB(schema=self.schema).fit(known[list(self.schema.names)], classes).model_

    def scored(self, model: NaiveBayesModel) -> Scores:
        """How a model fares with the others."""
        from discreet.model.evaluation import score

        return score(model, self.others, self.others[self.schema.target])

    def explained(self) -> Explanation:
        """The first of the others who is predicted to miss a payment, or else the first."""
        predicted = self.model.predict(self.others)
        hits = (predicted == "yes").nonzero()[0]
        return self.model.explain(self.others.iloc[int(hits[0]) if len(hits) else 0].to_dict())


def constant(stage: Stage) -> Row:
    """Nothing is learnt."""
    from discreet.model.evaluation import wilson

    right = int((stage.others[stage.schema.target] == "no").sum())
    share = right / stage.rows
    return Row("none needed", "nobody", 0.0, share, wilson(right, stage.rows), "majority class")


def non_private(stage: Stage) -> Row:
    """Everything is known to whoever trains."""
    scores = stage.scored(stage.model)
    note = "MixedNB"
    return Row("full trust", "who trains it", math.inf, scores.accuracy, scores.interval, note)


def local(stage: Stage) -> Row:
    """Nobody is trusted: each person sends one randomized report."""
    from discreet.estimators import LocalNB

    return _fitted(
        stage,
        LocalNB(EPSILON, schema=stage.schema, random_state=stage.seed),
        ("local", "nobody", "LocalNB"),
    )


def survey(stage: Stage) -> Row:
    """Nobody is trusted, and people are asked by randomized response: true answers or a decoy."""
    from discreet.estimators import SurveyNB

    names = [*stage.schema.names, stage.schema.target]
    nb = SurveyNB(0.5, groups=[names], bins=4, schema=stage.schema, random_state=stage.seed)
    row = _fitted(stage, nb, ("survey", "nobody", "SurveyNB θ=0.5"))
    return replace(row, epsilon=math.ceil(100 * nb.guarantee_.epsilon) / 100)


def federated(stage: Stage) -> Row:
    """Three banks are each trusted with their own customers; nobody sees another's table."""
    from discreet.estimators import FederatedNB

    return _fitted(
        stage,
        FederatedNB(EPSILON, providers=3, schema=stage.schema, random_state=stage.seed),
        ("federated", "each its own", "FederatedNB"),
    )


def central(stage: Stage) -> Row:
    """A curator is trusted with the table, the world only with what is released."""
    from discreet.estimators import CentralNB

    return _fitted(
        stage,
        CentralNB(EPSILON, schema=stage.schema, random_state=stage.seed),
        ("central", "the curator", "CentralNB"),
    )


def _fitted(stage: Stage, estimator: Any, words: tuple[str, str, str]) -> Row:
    known = stage.learning
    classes = known[stage.schema.target].to_numpy()
    scores = stage.scored(estimator.fit(known[list(stage.schema.names)], classes).model_)
    trust, sees, note = words
    return Row(trust, sees, EPSILON, scores.accuracy, scores.interval, note)


def best_possible(stage: Stage) -> Row:
    """The law itself is known, from which the people were drawn."""
    from discreet.datasets import MORTGAGE_BAYES_ACCURACY, MORTGAGE_BAYES_ACCURACY_ERROR

    best, error = MORTGAGE_BAYES_ACCURACY, 2 * MORTGAGE_BAYES_ACCURACY_ERROR
    return Row("(the truth)", "-", None, best, (best - error, best + error), "best possible")


ROWS: list[Callable[[Stage], Row]] = [
    constant,
    local,
    survey,
    federated,
    central,
    non_private,
    best_possible,
]
"""The lines of the table, from top to bottom; a trust model is one more function here."""


@click.command(
    epilog=example(
        "discreet demo --out demo",
    )
)
@click.option(
    "--rows",
    type=click.IntRange(min=10),
    default=20_000,
    show_default=True,
    help="People to learn from; as many others are predicted.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Which people."
)
@click.option(
    "--out",
    type=OUTPUT_FOLDER,
    help="Also write the model, the schema and the people to this folder.",
)
@json_option
def demo(rows: int, seed: int, out: str | None, as_json: bool) -> None:
    """Train and explain a classifier on a bundled population.

    Who will miss a mortgage payment? The people are invented, drawn from a law that is written
    down in discreet.datasets, so the accuracy that nobody can beat is known.
    """
    stage = Stage(rows, seed)
    lines: list[Row] = []
    with progress("training", "classifiers") as advance:
        for done, line in enumerate(ROWS, 1):
            lines.append(line(stage))
            advance(done, len(ROWS))
    files = {} if out is None else _written(stage, folder(out))
    if as_json:
        print_json(_body(stage, lines, files))
    else:
        _print(stage, lines, files)


def _written(stage: Stage, place: Path) -> dict[str, str]:
    contents = {
        "model.json": stage.model.to_json(),
        "schema.json": stage.schema.to_json(),
        "population.csv": stage.learning.to_csv(index=False, lineterminator="\n"),
        "others.csv": stage.others.to_csv(index=False, lineterminator="\n"),
    }
    for name, content in contents.items():
        write(place / name, content)
    return {name: str(place / name) for name in contents}


def _body(stage: Stage, lines: list[Row], files: dict[str, str]) -> dict[str, Any]:
    from discreet.cli.predict import model_body

    return {
        "rows": stage.rows,
        "seed": stage.seed,
        "table": [vars(line) for line in lines],
        "model": model_body(stage.model, 6),
        "explanation": stage.explained().to_body(),
        "files": files,
    }


def _print(stage: Stage, lines: list[Row], files: dict[str, str]) -> None:
    printer = console()
    count = f"{stage.rows:,}"
    printer.print("\nWho will miss a mortgage payment?", style="bold")
    printer.print(f"Learnt from {count} invented people, tested on {count} others.")
    shown = table("", "trust", "who sees raw data", ">epsilon", "accuracy", "note")
    for line in lines:
        shown.add_row(*line.cells())
    printer.print(shown)
    printer.print("What the Naive Bayes model knows", style="bold")
    stage.model.show(strongest=6)
    printer.print("\nWhy one of the others is predicted to miss a payment", style="bold")
    printer.print(str(stage.explained()))
    printer.print("\nNext", style="bold")
    for step in _steps(files):
        printer.print(f"  {step}", soft_wrap=True)


def _steps(files: dict[str, str]) -> list[str]:
    program = _program()
    if not files:
        return [f"{program} demo --out demo    # keep the model and the people"]
    model, others = _quoted(files["model.json"]), _quoted(files["others.csv"])
    return [
        f"{program} predict {model} {others} --proba",
        f"{program} predict {model} {others} --explain 0",
        f"{program} evaluate {model} {others}",
        f"{program} schema show {_quoted(files['schema.json'])}",
    ]


def _program() -> str:
    """How to call this program again: by name, or by its place if the path does not hold it."""
    import os
    import shutil
    import sys

    called = Path(sys.argv[0])
    if shutil.which("discreet") or called.name != "discreet":
        return "discreet"
    return _quoted(os.path.relpath(called))


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)
