"""What each degree of trust costs on one table: classifiers cross-validated at several epsilons.

It reads raw data, and nothing that comes out is protected: for planning, by whoever may read the
table anyway.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.encoding import is_missing
from discreet.errors import EstimationError, PrivacyWarning
from discreet.model.evaluation import Scores, folds, score
from discreet.report.methods import METHODS, TRUST
from discreet.schema import Schema, text_of

__all__ = ["Cell", "Comparison", "Needed", "Settings", "compare"]

Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class Settings:
    """What is tried, and how often."""

    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0)
    methods: tuple[str, ...] = ("histogram", "masks", "questions", "auto")
    folds: int = 5
    repeats: int = 1
    bins: int = 8
    seed: int = 0
    most_respondents: int = 1_000_000

    @property
    def focus(self) -> float:
        """The epsilon that summaries speak of: the one nearest to 1."""
        return min(self.epsilons, key=lambda one: abs(math.log(one)))


@dataclass(frozen=True, eq=False)
class Cell:
    """One method at one epsilon: pooled scores, and the accuracy of every fold."""

    trust: str
    method: str
    epsilon: float
    scores: Scores
    accuracies: tuple[float, ...]
    test_share: float
    seconds: float
    bytes_per_person: float

    @property
    def accuracy(self) -> float:
        """Mean over the folds."""
        return float(np.mean(self.accuracies))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy of a model trained so.

        Student's t with the variance of resampled scores corrected for the rows that training sets
        share: s² (1/J + n_test/n_train), Nadeau and Bengio 2003.
        """
        from scipy.stats import t

        count = len(self.accuracies)
        ratio = self.test_share / (1 - self.test_share)
        spread = float(np.var(self.accuracies, ddof=1)) * (1 / count + ratio)
        half = float(t.ppf(0.975, count - 1)) * math.sqrt(spread)
        return max(0.0, self.accuracy - half), min(1.0, self.accuracy + half)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "trust": self.trust,
            "method": self.method,
            "epsilon": self.epsilon,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "log_loss": self.scores.log_loss,
            "calibration_error": self.scores.calibration_error,
            "seconds": self.seconds,
            "bytes_per_person": self.bytes_per_person,
        }


@dataclass(frozen=True)
class Needed:
    """How many respondents a local collection would need for the accuracy of a central one."""

    epsilon: float
    target: float
    people: int
    respondents: int | None
    tried: tuple[tuple[int, float], ...]

    @property
    def sentence(self) -> str:
        """In words."""
        start = f"The central classifier has {100 * self.target:.1f} % from {self.people:,} people"
        if self.respondents is None:
            most, reached = self.tried[-1]
            return (
                f"{start}; a local collection reached {100 * reached:.1f} % with {most:,} "
                "respondents, the most that were tried."
            )
        return (
            f"{start}; a local collection needs about {self.respondents:,} respondents to come "
            f"within {100 * TOLERANCE:g} points of it, {self.respondents / self.people:.1f} times "
            "as many."
        )


TOLERANCE = 0.005
"""An accuracy so far below another still counts as matching it."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results, and everything needed to repeat them."""

    name: str
    schema: Schema
    rows: int
    settings: Settings
    cells: tuple[Cell, ...]
    exact: Cell
    needed: Needed | None
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def trusts(self) -> list[str]:
        """The trust models that were tried, from the most trust to the least."""
        return [one for one in TRUST if any(cell.trust == one for cell in self.cells)]

    def best(self, trust: str, epsilon: float) -> Cell:
        """The most accurate method of a trust model at an epsilon."""
        found = [c for c in self.cells if (c.trust, c.epsilon) == (trust, epsilon)]
        return max(found, key=lambda cell: cell.accuracy)

    @property
    def majority(self) -> tuple[str, float]:
        """The most frequent class, and how often it is right."""
        label, share = self.exact.scores.majority
        return text_of(label), share

    @property
    def answer(self) -> str:
        """One sentence: what each degree of trust gives at the epsilon in focus."""
        focus = self.settings.focus
        right: dict[str, float] = {}  # the two that trust nobody are one degree of trust
        for trust in self.trusts:
            who, found = TRUST[trust].trusted, self.best(trust, focus).accuracy
            right[who] = max(right.get(who, 0.0), found)
        parts = [f"for {100 * found:.0f} when {who}" for who, found in right.items()]
        parts[0] = parts[0].replace(" when", " of 100 people when", 1)
        label, share = self.majority
        return (
            f"At epsilon {focus:g} the classifier is right {_listed(parts)}; without privacy for "
            f"{100 * self.exact.accuracy:.0f}, and always saying “{label}” for {100 * share:.0f}."
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        label, share = self.majority
        return {
            "data": self.name,
            "rows": self.rows,
            "protected": False,
            "answer": self.answer,
            "settings": {**vars(self.settings), "methods": list(self.settings.methods)},
            "majority": {"class": label, "accuracy": share},
            "non_private": self.exact.to_body(),
            "results": [cell.to_body() for cell in self.cells],
            "best": {
                trust: {f"{e:g}": self.best(trust, e).method for e in self.settings.epsilons}
                for trust in self.trusts
            },
            "respondents": None if self.needed is None else {
                **vars(self.needed), "sentence": self.needed.sentence,
            },
            "skipped": dict(self.skipped),
        }  # fmt: skip


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def compare(
    name: str, schema: Schema, X: Any, y: Any, settings: Settings, advance: Advance | None = None
) -> Comparison:
    """Cross-validate every method at every epsilon on one table.

    Parameters
    ----------
    name : str
        What the table is called in the report.
    schema : Schema
    X : pandas data frame
    y : array of classes
    settings : Settings
    advance : callable, optional
        Called with the number of finished and of all runs.

    Returns
    -------
    Comparison
    """
    labels = np.asarray(y)
    if len(labels) < 10 * settings.folds:
        raise EstimationError(
            f"{len(labels)} rows are too few for {settings.folds} folds; have at least "
            f"{10 * settings.folds}"
        )
    runs = [(method, e) for method in settings.methods for e in settings.epsilons]
    total, done = len(runs) + 2, 0
    cells: list[Cell] = []
    skipped: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # said once by the caller: raw data
        trial = _Trial(schema, X, labels, settings)
        exact = trial.exact()
        for method, epsilon in runs:
            if method not in skipped:
                try:
                    cells.append(trial.cell(method, epsilon))
                except EstimationError as error:  # a sheet of a billion cells, for instance
                    skipped[method] = str(error)
            done += 1
            if advance:
                advance(done, total)
        cells = [cell for cell in cells if cell.method not in skipped]
        needed = trial.needed(cells, settings.focus)
    if not cells:
        raise EstimationError(f"no method could be tried: {'; '.join(skipped.values())}")
    if advance:
        advance(total, total)
    return Comparison(name, schema, len(labels), settings, tuple(cells), exact, needed, skipped)


@dataclass(frozen=True)
class _Trial:
    """The rows, dealt into folds."""

    schema: Schema
    X: Any
    y: Any
    settings: Settings

    def splits(self) -> list[tuple[int, Any, Any]]:
        one = self.settings
        return [
            (one.seed + repeat, train, test)
            for repeat in range(one.repeats)
            for train, test in folds(self.y, one.folds, one.seed + repeat)
        ]

    def _fitted(self, make: Callable[[int], Any]) -> tuple[Scores, list[float], float, Any]:
        pooled: Scores | None = None
        accuracies, seconds, estimator = [], 0.0, None
        for number, (seed, train, test) in enumerate(self.splits()):
            estimator = make(1000 * seed + number)
            begun = time.perf_counter()
            estimator.fit(self.X.iloc[train], self.y[train])
            seconds += time.perf_counter() - begun
            part = score(estimator.model_, self.X.iloc[test], self.y[test])
            accuracies.append(part.accuracy)
            pooled = part if pooled is None else pooled + part
        assert pooled is not None
        return pooled, accuracies, seconds / len(accuracies), estimator

    def cell(self, name: str, epsilon: float) -> Cell:
        method, bins = METHODS[name], self.settings.bins
        pooled, accuracies, seconds, last = self._fitted(
            lambda seed: method.make(self.schema, epsilon, bins, seed)
        )
        share = 1 / self.settings.folds
        sent = self._bytes(method.trust, last)
        return Cell(method.trust, name, epsilon, pooled, tuple(accuracies), share, seconds, sent)

    def exact(self) -> Cell:
        """Without noise: everything is known to whoever trains."""
        from discreet.estimators import MixedNB

        pooled, accuracies, seconds, _ = self._fitted(lambda seed: MixedNB(schema=self.schema))
        sent, share = self._record_bytes(), 1 / self.settings.folds
        return Cell(
            "none", "non-private", math.inf, pooled, tuple(accuracies), share, seconds, sent
        )

    def _records(self, count: int = 40) -> list[dict[str, Any]]:
        some = self.X.iloc[:count].copy()
        some[self.schema.target] = self.y[:count]
        tokens = self.schema.missing_tokens
        return [
            {key: None if is_missing(value, tokens) else value for key, value in row.items()}
            for row in some.to_dict("records")
        ]

    def _record_bytes(self) -> float:
        texts = [json.dumps(row, default=str, ensure_ascii=False) for row in self._records()]
        return float(np.mean([len(text.encode()) for text in texts]))

    def _bytes(self, trust: str, fitted: Any) -> float:
        """What leaves one person: a record in clear, a report; or their part of hidden counts."""
        if trust == "central":
            return self._record_bytes()
        if trust == "federated":
            manifest = fitted.manifest_
            return float(8 * manifest.layout.size * len(manifest.providers) / len(self.y))
        from discreet.collection.respondent import MemoryStore, Respondent
        from discreet.randomness import SeededRandom

        collection = fitted.plan_ if trust == "local" else fitted.questionnaire_
        random, sizes = SeededRandom(self.settings.seed), []
        for row in self._records():
            assigned = collection.assignment == "groups"
            group = int(collection.draw(1, random)[0]) if assigned else None
            person = Respondent(collection, MemoryStore(), group, random_state=random)
            sizes.append(len(person.report(row).to_json().encode()))
        return float(np.mean(sizes))

    def needed(self, cells: Sequence[Cell], epsilon: float) -> Needed | None:
        """Let ever more people, drawn again from those that are there, answer a collection."""
        here = [cell for cell in cells if cell.epsilon == epsilon]
        central = [cell.accuracy for cell in here if cell.trust == "central"]
        local = [cell for cell in here if cell.trust == "local"]
        if not central or not local:
            return None
        target, method = max(central), max(local, key=lambda cell: cell.accuracy)
        splits = self.splits()[:4]
        people = len(splits[0][1])
        tried = [(people, method.accuracy)]
        while (
            tried[-1][1] < target - TOLERANCE and 4 * tried[-1][0] <= self.settings.most_respondents
        ):
            count = 4 * tried[-1][0]
            found = []
            for seed, train, test in splits:
                drawn = np.random.default_rng(seed).choice(train, count)
                nb = METHODS[method.method].make(self.schema, epsilon, self.settings.bins, seed)
                nb.fit(self.X.iloc[drawn], self.y[drawn])
                found.append(score(nb.model_, self.X.iloc[test], self.y[test]).accuracy)
            tried.append((count, float(np.mean(found))))
        return Needed(epsilon, target, people, _crossing(tried, target - TOLERANCE), tuple(tried))


def _crossing(tried: Sequence[tuple[int, float]], wanted: float) -> int | None:
    """Where the accuracy first reaches what is wanted, linear in log(respondents); two digits."""
    last, reached = tried[-1]
    if reached < wanted:
        return None
    if len(tried) == 1:
        return last
    before, had = tried[-2]
    share = (wanted - had) / (reached - had)
    people = before * (last / before) ** share
    digits = 10 ** (len(str(int(people))) - 2)
    return int(math.ceil(people / digits) * digits)
