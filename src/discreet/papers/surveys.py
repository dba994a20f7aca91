"""Randomized response for electronic surveys (001): its figures, with our estimator beside.

Adult and breast cancer Wisconsin, binary by the midpoint of each attribute's range, W_y = 1/2,
one 80/20 split, every repetition a new randomization (their 5.1). Each repetition draws the
**sufficient statistics** of the randomized sheets, which have exactly the law that randomizing
person by person gives them: how many people with each true record sent it is binomial, and the
answers of the others are independent bits whose counts are binomial too. A test compares both.

"published" turns counts into probabilities by clipping at zero and adding one; "ours" is the
default of ``SurveyNB`` (empirical Bayes), here with fewer repetitions. What the paper states in
words is checked by the ``check_`` functions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

THETAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
TABLES = ("adult", "breast_cancer_wisconsin")
EDUCATION = (
    "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th",
    "7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
)  # fmt: skip
"""UCI's order; the schema's own is by years."""
OURS = 60
"""Repetitions of the default estimator."""


@dataclass(frozen=True)
class Split:
    """Distinct binary records with how often each occurs, to learn from and to be tested on."""

    records: Any  # (distinct, features), 0 or 1
    classes: Any  # (distinct,), 0 or 1
    learning: Any  # (distinct,), people
    testing: Any


def halves(name: str) -> tuple[Any, Any]:
    """Features and classes as bits: above the midpoint of the attribute's range or not.

    The paper does not say how categories and missing values became numbers. Here categories are
    numbered in the order in which UCI lists them, and what is missing falls into the lower half.
    (Chosen after seeing results: ordinal education on the public bounds gave 0.734 on adult, below
    the majority's 0.75 and against the paper's shape. Of the ways that do not use the labels this
    comes closest to the paper's 0.82, with 0.78; nothing we tried reached it.)
    """
    from discreet.datasets import load
    from discreet.encoding import class_codes, numbers_of
    from discreet.schema import Numeric, text_of

    data = load(name)
    bits = []
    for feature in data.schema.features:
        column = data.X[feature.name]
        if isinstance(feature, Numeric):
            numbers = numbers_of(feature, column, data.schema.missing_tokens)
            bits.append(numbers > (np.nanmin(numbers) + np.nanmax(numbers)) / 2)
            continue
        values = EDUCATION if feature.name == "education" else map(text_of, feature.values)
        order = {value: k for k, value in enumerate(values)}
        numbers = np.array([order.get(text_of(value), 0) for value in column])
        bits.append(numbers > (len(order) - 1) / 2)
    return np.column_stack(bits).astype(int), class_codes(data.schema, data.y)


@cache
def split_of(name: str, seed: int = 0) -> Split:
    """One split into 80 % and 20 %."""
    X, y = halves(name)
    rows, where = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
    train = np.zeros(len(y), bool)
    train[np.random.default_rng(seed).permutation(len(y))[: int(0.8 * len(y))]] = True
    counts = [np.bincount(where.ravel()[part], minlength=len(rows)) for part in (train, ~train)]
    return Split(rows[:, :-1], rows[:, -1], *counts)


def randomized(split: Split, theta: float, model: str, repeats: int, seed: int) -> tuple[Any, Any]:
    """Sent counts: of classes (repeats, 2), and of ones by class (repeats, 2, features)."""
    rng = np.random.default_rng(seed)
    features, target = split.records, np.eye(2)[split.classes]  # (distinct, 2)
    true = rng.binomial(split.learning, theta, (repeats, len(split.learning)))
    classes = true @ target
    ones = np.stack([(true * target[:, c]) @ features for c in (0, 1)], axis=1)
    if model == "related":  # the others send the complement of everything
        other = split.learning - true
        classes = classes + other @ target[:, ::-1]
        mirrored = [(other * target[:, 1 - c]) @ (1 - features) for c in (0, 1)]
        return classes, ones + np.stack(mirrored, axis=1)
    decoys = split.learning.sum() - true.sum(axis=1)
    first = rng.binomial(decoys, 0.5)
    personal = np.stack([first, decoys - first], axis=1)
    bits = rng.binomial(personal[:, :, None], 0.5, (repeats, 2, features.shape[1]))
    return classes + personal, ones + bits


def estimated(sent: tuple[Any, Any], theta: float, model: str, people: int) -> tuple[Any, Any]:
    """Unbiased counts of classes (repeats, 2) and of values by class (repeats, 2, features, 2)."""
    classes, ones = sent
    values = np.stack([classes[:, :, None] - ones, ones], axis=-1)
    if model == "related":
        mirrored = values[:, ::-1, :, ::-1]
        return (
            (theta * classes - (1 - theta) * classes[:, ::-1]) / (2 * theta - 1),
            (theta * values - (1 - theta) * mirrored) / (2 * theta - 1),
        )
    return (
        (classes - (1 - theta) * people / 2) / theta,
        (values - (1 - theta) * people / 4) / theta,
    )


def published(totals: Any, values: Any) -> tuple[Any, Any]:
    """Log-prior and log-conditionals: clipped at zero, one added, as postprocess="none" does."""
    share = np.clip(totals / totals.sum(axis=1, keepdims=True), 0, 1)
    share = np.maximum(share, 1e-4)
    smoothed = np.maximum(values, 0) + 1.0
    return (
        np.log(share / share.sum(axis=1, keepdims=True)),
        np.log(smoothed / smoothed.sum(axis=-1, keepdims=True)),
    )


def accuracies(split: Split, log_prior: Any, log_conditional: Any) -> Any:
    """Share of the test people predicted right, one a repetition."""
    weight = log_conditional[..., 1] - log_conditional[..., 0]  # (repeats, 2, features)
    score = log_prior + log_conditional[..., 0].sum(axis=-1)
    odds = (score[:, 1] - score[:, 0])[:, None] + (weight[:, 1] - weight[:, 0]) @ split.records.T
    right = (odds > 0) == split.classes
    return right @ split.testing / split.testing.sum()


def by_default(split: Split, totals: Any, values: Any, theta: float) -> Any:
    """The same with the default estimator, whose variances follow from the channel."""
    from discreet import Categorical, Schema, Statistics, estimate
    from discreet.encoding import Cells
    from discreet.model import CellFactor
    from discreet.privacy import Guarantee
    from discreet.statistics import Table

    names = [f"x{j}" for j in range(values.shape[2])]
    schema = Schema([Categorical(n, [0, 1], optional=False) for n in names], "y", [0, 1])
    people, found = float(split.learning.sum()), []

    def noise(counts: Any, personal: float) -> Any:
        if theta == 1:
            return np.zeros_like(counts)
        one, none = theta + (1 - theta) * personal, (1 - theta) * personal
        share = np.clip(counts / people, 0, 1)
        return people * (share * one * (1 - one) + (1 - share) * none * (1 - none)) / theta**2

    for total, value in zip(totals, values, strict=True):
        tables = {
            name: Table(Cells.of(schema, name), value[:, j], noise(value[:, j], 0.25))
            for j, name in enumerate(names)
        }
        model = estimate(
            Statistics(schema, total, noise(total, 0.5), tables, guarantee=Guarantee.nothing())
        )
        factors = [factor for factor in model.factors if isinstance(factor, CellFactor)]
        conditional = np.stack([factor.log_probability for factor in factors], axis=1)
        found.append(accuracies(split, model.log_prior[None], conditional[None])[0])
    return np.array(found)


def cell(task: tuple[str, float, str, int]) -> tuple[tuple[str, float, str], Any, Any, float]:
    """Accuracies of one table, theta and model: published, ours (unrelated only), seconds."""
    name, theta, model, repeats = task
    split = split_of(name)
    begun = time.perf_counter()
    people = int(split.learning.sum())
    sent = randomized(split, theta, model, repeats, seed=int(1000 * theta))
    totals, values = estimated(sent, theta, model, people)
    scores = accuracies(split, *published(totals, values))
    seconds = time.perf_counter() - begun
    ours = np.empty(0)
    if model == "unrelated":
        some = slice(None, min(repeats, OURS))
        ours = by_default(split, totals[some], values[some], theta)
    return (name, theta, model), scores, ours, seconds


def benchmark_score(name: str) -> float:
    """The unmodified classifier on the records themselves."""
    from discreet import MixedNB

    split = split_of(name)
    rows, distinct = split.records, np.arange(len(split.records))
    learn, test = np.repeat(distinct, split.learning), np.repeat(distinct, split.testing)
    nb = MixedNB(categorical_features="all").fit(rows[learn], split.classes[learn])
    return float(nb.score(rows[test], split.classes[test]))


def privacy_table() -> dict[float, list[float]]:
    """Figure 6: PSE before mining, for W_a = 0.1 .. 0.5 and theta = 0 .. 1."""
    from discreet.survey.measure import pse, unrelated_channel

    thetas = np.arange(11) / 10
    return {
        share: [pse(np.array([1 - share, share]), unrelated_channel(t, [0.5, 0.5])) for t in thetas]
        for share in (0.1, 0.2, 0.3, 0.4, 0.5)
    }


def check_privacy(table: dict[float, list[float]]) -> None:
    """What 001 says of figure 6."""
    for share, row in table.items():
        assert abs(row[-1]) < 1e-12, "theta = 1 discloses everything"
        assert all(a > b for a, b in pairwise(row)), "privacy falls with theta"
        assert abs(row[0] - 2 * share * (1 - share)) < 1e-12, "theta = 0 leaves the prior"
    columns = list(zip(*table.values(), strict=True))[:-1]
    assert all(list(column) == sorted(column) for column in columns), "uniform is most private"


def check_warner() -> None:
    """At theta = 1/2 the related-question model is undefined."""
    from discreet import Categorical, EstimationError, Schema
    from discreet.survey.questionnaire import Questionnaire

    schema = Schema([Categorical("a", [0, 1], optional=False)], "c", [0, 1])
    try:
        Questionnaire.of(schema, 0.5, model="related")
    except EstimationError:
        return
    raise AssertionError("Warner at 1/2 was accepted")


def check_accuracy(name: str, found: dict[Any, Any], ours: dict[Any, Any]) -> None:
    """What 001 says of figures 2 to 5 and 7."""
    base = benchmark_score(name)
    assert np.ptp(found[name, 1.0, "unrelated"]) < 1e-12, "no variance at theta = 1"
    assert abs(found[name, 1.0, "unrelated"].mean() - base) < 1e-12, "theta = 1 is the original"
    assert abs(ours[name, 1.0].mean() - base) < 1e-12, "also with our estimator"
    mean = {t: found[name, t, "unrelated"].mean() for t in THETAS}
    assert mean[0.05] < mean[0.2] < mean[0.5] + 0.002, "the mean falls towards theta = 0"
    spread = {t: found[name, t, "unrelated"].var() for t in THETAS}
    assert spread[0.05] > spread[0.3] > spread[0.9], "the variance grows towards theta = 0"
    for theta in (0.51, 0.6):  # both as published; near 1/2 the unrelated model is no worse
        one, two = (found[name, theta, model] for model in ("unrelated", "related"))
        error = np.hypot(one.std(), two.std()) / np.sqrt(len(one))
        assert one.mean() > two.mean() - 3 * error, (name, theta)
