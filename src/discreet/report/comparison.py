"""Compare trust models on one table: cross-validated classifiers at several epsilons.

The results are computed from raw data and are not protected: for planning, by people who may read
the table.
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
    """The methods and epsilons of a comparison, and the number of training runs."""

    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0)
    methods: tuple[str, ...] = ("histogram", "masks", "questions", "auto")
    folds: int = 5
    repeats: int = 1
    bins: int = 8
    seed: int = 0
    most_respondents: int = 1_000_000

    @property
    def focus(self) -> float:
        """The epsilon that summaries report: the one nearest to 1, on a log scale."""
        return min(self.epsilons, key=lambda one: abs(math.log(one)))


Interval = tuple[float, float]


def resampled(values: Sequence[float], folds: int) -> Interval:
    """Compute the 95 % interval of the mean score over folds.

    Student's t with the variance of resampled scores corrected for the rows that training sets
    share: s² (1/J + n_test/n_train), Nadeau and Bengio 2003. No score is below zero.

    Parameters
    ----------
    values : sequence of float
        One per training run, at least two.
    folds : int
        Into which the rows were dealt.

    Examples
    --------
    >>> low, high = resampled([0.8, 0.9], folds=2)
    >>> round(low, 3), round(high, 3)
    (0.0, 1.95)
    """
    from scipy.stats import t

    count, mean = len(values), float(np.mean(values))
    spread = float(np.var(values, ddof=1)) * (1 / count + 1 / (folds - 1))
    half = float(t.ppf(0.975, count - 1)) * math.sqrt(spread)
    return max(0.0, mean - half), mean + half


@dataclass(frozen=True, eq=False)
class Cell:
    """One method at one epsilon, with the scores of every training."""

    trust: str
    method: str
    epsilon: float
    parts: tuple[Scores, ...]
    folds: int
    seconds: float
    bytes_per_person: float

    @property
    def accuracy(self) -> float:
        """Mean over the folds."""
        return float(np.mean([part.accuracy for part in self.parts]))

    @property
    def interval(self) -> Interval:
        """95 % interval of the accuracy of a model trained so."""
        low, high = resampled([part.accuracy for part in self.parts], self.folds)
        return low, min(1.0, high)

    @property
    def log_loss(self) -> float:
        """Mean over the folds."""
        return float(np.mean([part.log_loss for part in self.parts]))

    @property
    def log_loss_interval(self) -> Interval:
        """95 % interval of the log loss of a model trained so."""
        return resampled([part.log_loss for part in self.parts], self.folds)

    @property
    def calibration_error(self) -> float:
        """Mean over the folds."""
        return float(np.mean([part.calibration_error for part in self.parts]))

    @property
    def calibration_interval(self) -> Interval:
        """95 % interval of the calibration error of a model trained so."""
        return resampled([part.calibration_error for part in self.parts], self.folds)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "trust": self.trust,
            "method": self.method,
            "epsilon": self.epsilon,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "log_loss": self.log_loss,
            "log_loss_interval": list(self.log_loss_interval),
            "calibration_error": self.calibration_error,
            "calibration_interval": list(self.calibration_interval),
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
    tried: tuple[tuple[int, float, Interval], ...]

    @property
    def sentence(self) -> str:
        """In words."""
        start = f"The central classifier has {100 * self.target:.1f} % from {self.people:,} people"
        if self.respondents is None:
            most, reached, _ = self.tried[-1]
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
"""An accuracy at most this far below another counts as matching it."""


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
        pooled = self.exact.parts[0]
        for part in self.exact.parts[1:]:
            pooled += part
        label, share = pooled.majority
        return text_of(label), share

    @property
    def remarks(self) -> list[str]:
        """One sentence per trust model that is less accurate than the most frequent class."""
        label, share = self.majority
        found = []
        for trust in self.trusts:
            low = [e for e in self.settings.epsilons if self.best(trust, e).accuracy < share]
            if low:
                where = _listed([f"{e:g}" for e in low], " and ")
                found.append(
                    f"{trust}: less accurate than always saying “{label}” at epsilon {where}; it "
                    "needs more people, fewer questions or a larger epsilon."
                )
        return found

    @property
    def answer(self) -> str:
        """One sentence: the accuracy of each trust model at the focus epsilon."""
        focus = self.settings.focus
        right: dict[str, float] = {}  # survey and local share one statement
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
            "remarks": self.remarks,
            "best": {
                trust: {f"{e:g}": self.best(trust, e).method for e in self.settings.epsilons}
                for trust in self.trusts
            },
            "respondents": None if self.needed is None else {
                **vars(self.needed), "sentence": self.needed.sentence,
            },
            "skipped": dict(self.skipped),
        }  # fmt: skip


def _listed(parts: Sequence[str], last: str = ", and ") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}{last}{parts[-1]}"


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
        warnings.simplefilter("ignore", PrivacyWarning)  # the caller warns once that data are raw
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

    def _fitted(self, make: Callable[[int], Any]) -> tuple[tuple[Scores, ...], float, Any]:
        parts, seconds, estimator = [], 0.0, None
        for number, (seed, train, test) in enumerate(self.splits()):
            estimator = make(1000 * seed + number)
            begun = time.perf_counter()
            estimator.fit(self.X.iloc[train], self.y[train])
            seconds += time.perf_counter() - begun
            parts.append(score(estimator.model_, self.X.iloc[test], self.y[test]))
        return tuple(parts), seconds / len(parts), estimator

    def cell(self, name: str, epsilon: float) -> Cell:
        method, bins = METHODS[name], self.settings.bins
        parts, seconds, last = self._fitted(
            lambda seed: method.make(self.schema, epsilon, bins, seed)
        )
        sent = self._bytes(method.trust, last)
        return Cell(method.trust, name, epsilon, parts, self.settings.folds, seconds, sent)

    def exact(self) -> Cell:
        """Score the classifier without noise, which sees all records."""
        from discreet.estimators import MixedNB

        parts, seconds, _ = self._fitted(lambda seed: MixedNB(schema=self.schema))
        sent, folds = self._record_bytes(), self.settings.folds
        return Cell("none", "non-private", math.inf, parts, folds, seconds, sent)

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
        """Bytes sent per person: the plain record, a report, or a share of the hidden counts."""
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
        """Find how many respondents (rows drawn with replacement) match the central accuracy."""
        here = [cell for cell in cells if cell.epsilon == epsilon]
        central = [cell.accuracy for cell in here if cell.trust == "central"]
        local = [cell for cell in here if cell.trust == "local"]
        if not central or not local:
            return None
        target, method = max(central), max(local, key=lambda cell: cell.accuracy)
        splits = self.splits()[:4]
        people = len(splits[0][1])
        tried = [(people, method.accuracy, method.interval)]
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
            tried.append((count, float(np.mean(found)), resampled(found, self.settings.folds)))
        return Needed(epsilon, target, people, _crossing(tried, target - TOLERANCE), tuple(tried))


def _crossing(tried: Sequence[tuple[int, float, Interval]], wanted: float) -> int | None:
    """Respondents that reach the target: linear in log(respondents), two digits."""
    last, reached, _ = tried[-1]
    if reached < wanted:
        return None
    if len(tried) == 1:
        return last
    before, had, _ = tried[-2]
    share = (wanted - had) / (reached - had)
    people = before * (last / before) ** share
    digits = 10 ** (len(str(int(people))) - 2)
    return int(math.ceil(people / digits) * digits)
