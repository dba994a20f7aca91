"""Central trainings whose noise is fixed beforehand, and what they wrote down and released."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from discreet import CryptoRandom
from discreet.central import budget as budget_module
from discreet.central import corrections as corrections_module
from discreet.central import histogram as histogram_module
from discreet.central import selection
from discreet.central import temperature as temperature_module
from discreet.central import training as training_module
from discreet.central.budget import CentralSettings
from discreet.estimation import estimate
from discreet.mechanisms import additive_noise
from discreet.model import NaiveBayesModel
from discreet.schema.cells import encode_classes
from discreet.statistics.statistics import Statistics
from discreet.tables.source import InMemorySource
from schemas import FAR_FROM_ZERO as SCHEMA

RECORDS = list(itertools.product([100.0, 100.3, 101.0, math.nan], ["x", "y", None], ["no", "yes"]))
METHODS = ["histogram", "moments", "global", "smooth", "trimmed"]
EPSILON = 0.7


class Transcript:
    """What the three doors were given, and what they let out."""

    def __init__(self, first):
        self.first, self.given = first, []

    def outcome(self, shape):
        if not self.given:
            return np.resize(np.array(self.first), shape)
        return np.random.default_rng(len(self.given)).integers(0, 60, shape)

    def add(self, noise, numbers, random):
        out = self.outcome(numbers.shape)
        exact = tuple(int(value) for value in np.ravel(numbers))
        self.given.append(("laplace", noise.parameter, exact))
        assert not noise.gaussian
        assert noise.rounding_step == 1
        return out

    def release(self, law, value, scale, random, step):
        self.given.append(("cauchy", type(law).__name__, (Fraction(value), Fraction(scale))))
        return float(np.random.default_rng(len(self.given)).integers(0, 100)) * float(step)

    def choose(self, quality, epsilon, random):
        self.given.append(("choice", epsilon, tuple(int(one) for one in quality)))
        return len(self.given) % len(quality)


class Trained(NamedTuple):
    statistics: Statistics
    model: NaiveBayesModel


def transcript_of(
    monkeypatch, records, method, first=(20, 30), epsilon=EPSILON, schema=SCHEMA, **options
):
    """Train on records with fixed outcomes; give what was written down and what was released."""
    found = Transcript(first)
    monkeypatch.setattr(
        budget_module.IntegerNoise,
        "add",
        lambda noise, numbers, random: found.add(noise, numbers, random),
    )
    monkeypatch.setattr(
        additive_noise.AdditiveNoise,
        "release",
        lambda law, value, scale, random, step: found.release(law, value, scale, random, step),
    )
    monkeypatch.setattr(histogram_module, "sample_exponential_mechanism", found.choose)
    monkeypatch.setattr(selection, "sample_exponential_mechanism", found.choose)
    monkeypatch.setattr(corrections_module, "sample_exponential_mechanism", found.choose)
    monkeypatch.setattr(temperature_module, "sample_exponential_mechanism", found.choose)
    trained = train(records, method, epsilon, schema, **options)
    # the seal of the statistics covers all that anyone ever sees
    return found.given, trained.model.to_json() + trained.statistics.to_json(), trained


def train(records, method, epsilon, schema, *, delta=0.0, max_weight=None, bound=None, **options):
    """Records are (a, b, class), (a, b, class, weight) or, with a bound, (a, b, class, person)."""
    columns = {
        "a": np.array([one[0] for one in records], dtype=float),
        "b": np.array([one[1] for one in records], dtype=object),
    }
    columns = {name: columns[name] for name in schema.names}
    codes = encode_classes(schema, np.array([one[2] for one in records], dtype=object))
    weights = None if max_weight is None else np.array([one[3] for one in records], dtype=float)
    released = training_module.train(
        InMemorySource(
            schema,
            columns,
            codes,
            weights,
            max_weight,
            bound=bound,
            persons=None if bound is None else [one[3] for one in records],
        ),
        epsilon=epsilon,
        delta=delta,
        method=method,
        settings=CentralSettings(**options),
        random=CryptoRandom(),
    )
    return Trained(released, estimate(released))


def cost(one, other):
    """The exact worst log-ratio of two transcripts with the same outcome."""
    assert [step[:2] for step in one] == [step[:2] for step in other], "the noise itself differs"
    total = Fraction(0)
    for (kind, parameter, mine), (_, _, theirs) in zip(one, other, strict=True):
        if kind == "laplace":
            moved = sum(abs(a - b) for a, b in zip(mine, theirs, strict=True))
            assert parameter > 0 or moved == 0, "released without noise"
            total += Fraction(moved) / parameter if moved else 0
        elif kind == "cauchy":
            (f, s), (g, t) = mine, theirs
            far = ((f - g) ** 2 + (s - t) ** 2) / (4 * s * t)  # sinh^2 of half the distance
            total += Fraction(2 * math.asinh(math.sqrt(far)))
        else:
            p, q = (log_softmax(float(parameter) * np.array(x)) for x in (mine, theirs))
            total += Fraction(float(np.abs(p - q).max()))
    return total


def worst(monkeypatch, method, bases, added=RECORDS, **options):
    """The largest cost over tables and their neighbours; and that nothing else differs."""
    seen, largest = {}, Fraction(0)

    def look(records):
        key = tuple(sorted(map(str, records)))
        if key not in seen:
            seen[key] = transcript_of(monkeypatch, records, method, **options)[:2]
        return seen[key]

    for base in bases:
        given, released = look(base)
        for record in added:
            more, again = look([*base, record])
            assert released == again, "something other than the released numbers got out"
            largest = max(largest, cost(given, more))
    return largest


def scores_of(classes):
    """Scores on a coarse grid, and some as far apart as they may ever be."""
    steps = (-700.0, -3.0, -1.0, -0.01, 0.0, 0.3, 2.0, 40.0)
    return np.array(list(itertools.product(steps, repeat=classes)))


def crowd(size, seed=0):
    """Records of both classes, most of them close together, a few missing."""
    rng = np.random.default_rng(seed)
    near = np.clip(rng.normal(100.5, 0.05, size), 100, 101)
    return [
        (math.nan if i % 11 == 5 else float(a), "xy"[i % 2], ("no", "yes")[i % 3 > 0])
        for i, a in enumerate(near)
    ]
