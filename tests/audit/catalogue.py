"""Planted defects, each a mistake that somebody made, and their sound counterparts.

``make audit`` runs all of it and prints a table; tests run it with fewer samples. Everything is
defined at the top of the module, so that a second process can run it, too.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import numpy as np

from discreet import Categorical, CentralNB, Numeric, Schema
from discreet.audit import (
    Audit,
    Effort,
    Pair,
    Subject,
    audit,
    make_classifier_subject,
    make_collection_subject,
    make_function_subject,
    make_manifest_subject,
    make_mechanism_subject,
)
from discreet.audit.neighbours import convert_to_columns, make_add_pairs
from discreet.audit.report_subjects import RespondentDevice, describe_report, make_oracle_subject
from discreet.audit.subject import EnumerableCheck
from discreet.audit.worst_case_tables import make_worst_case_pairs
from discreet.central import budget as budget_module
from discreet.central import histogram as histogram_module
from discreet.central import moments as moments_module
from discreet.central import smooth as smooth_module
from discreet.central.budget import CentralSettings, IntegerNoise
from discreet.central.training import train
from discreet.collection.report import derive_report_id
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.estimation import estimate
from discreet.local.plan import Plan, Question
from discreet.mechanisms.frequency import DE
from discreet.mechanisms.mean import Piecewise
from discreet.randomness import CryptoRandom, Random
from discreet.schema.cells import encode_classes
from discreet.statistics.statistics import Statistics
from discreet.survey.questionnaire import Group, Questionnaire
from discreet.tables.source import InMemorySource
from schemas import FAR_FROM_ZERO as SCHEMA
from twins import TruthFirst

EPSILON = 1.0
MANY = Schema(
    [Categorical(f"f{i}", ["x", "y"], optional=False) for i in range(8)],
    "class",
    ["n", "y"],
)
ONE = Schema([Numeric("a", 100, 101, optional=False)], "class", ["no", "yes"])
"""One number far from zero: a record is in few noisy numbers, so that samples show its loss."""
NUMBERS = Schema([Numeric(f"n{i}", 0, 1, optional=False) for i in range(8)], "class", ["n", "y"])
PLAN = Plan(
    SCHEMA,
    EPSILON,
    [Question((), DE(EPSILON, 2), 1), Question(("b",), DE(EPSILON, 6), 2)],
)
SURVEY = Questionnaire(
    Schema([Categorical("a", ["n", "y"], optional=False)], "c", ["n", "y"]),
    [Group(("a", "c"), epsilon=EPSILON)],
)


# ------------------------------------------------------------------------ central, by samples


def trained(rows: Any, random: Random, *, schema: Schema = SCHEMA, **asked: Any) -> str:
    """What one training releases: the sealed statistics and the model."""
    released = statistics(rows, random, schema=schema, **asked)
    return f"[{released.to_json()}, {estimate(released).to_json()}]"


def statistics(
    rows: Any,
    random: Random,
    *,
    schema: Schema = SCHEMA,
    method: Any = "histogram",
    epsilon: float = EPSILON,
    **settings: Any,
) -> Statistics:
    """The statistics of one training."""
    columns, classes = convert_to_columns(schema, rows)
    source = InMemorySource(schema, columns, encode_classes(schema, classes), None, None)
    return train(
        source,
        epsilon=epsilon,
        delta=settings.pop("delta", 0.0),
        method=method,
        settings=CentralSettings(**settings),
        random=random,
    )


def noisy_numbers(rows: Any, random: Random, **asked: Any) -> dict[str, Any]:
    """All of the statistics that carries noise, where one number is the only feature."""
    found = statistics(rows, random, **asked)
    (one,) = found.moments.values()
    named = {"counts": one.counts, "totals": one.totals, "squares": one.squares}
    return {"classes": found.totals.tolist(), **{key: v.tolist() for key, v in named.items()}}


def central(
    release: Any, schema: Schema = SCHEMA, pairs: Any = None, delta: float = 0.0
) -> Subject:
    return Subject("central", EPSILON, delta, release, pairs or make_add_pairs(schema, 24)[:2])


def with_exact_n(rows: Any, random: Random) -> str:
    """Noisy class counts are scaled so that they add up to the exact n (diffprivlib)."""
    true = histogram_module.compute_precision_weighted_mean

    def exact(estimates: Any, variances: Any) -> Any:
        totals, spread = true(estimates, variances)
        return totals * (len(rows) / totals.sum()), spread

    with patch.object(histogram_module, "compute_precision_weighted_mean", exact):
        return trained(rows, random)


def with_far_sums(rows: Any, random: Random) -> str:
    """Noise for U - L = 1 on a sum of values near 100 (diffprivlib)."""
    true = moments_module.compute_centred_sums

    def uncentred(one: Any, levels: Any) -> Any:
        _, second = true(one, levels)
        return one.counts * round(one.feature.lower / one.step) + one.totals, second

    with patch.object(moments_module, "compute_centred_sums", uncentred):
        return trained(rows, random, method="moments")


def with_classes_of_the_data(given: Any) -> Any:
    """No schema: whoever has the rare class is in the table if it is there."""
    rows = given
    X = np.array([[row["a"]] for row in rows])
    fitted = CentralNB(EPSILON).fit(X, [row["class"] for row in rows])
    return {"classes": fitted.classes_, "model": fitted.model_}


def with_a_method_by_rows(rows: Any, random: Random) -> str:
    """More bins for more rows, counted exactly."""
    return trained(rows, random, bins=4 if len(rows) > 24 else 2)


def with_the_whole_budget_each(rows: Any, random: Random) -> str:
    """Every feature is released with all of epsilon."""
    real = budget_module.Budget.spend_on_noise

    def noise(
        budget: Any, name: str, cost: Fraction, sensitivity: int = 1, coordinates: int = 1
    ) -> IntegerNoise:
        real(budget, name, cost, sensitivity, coordinates)
        return IntegerNoise(sensitivity / budget.total)

    with patch.object(budget_module.Budget, "spend_on_noise", noise):
        return trained(rows, random, schema=MANY, selection=False)


def with_less_noise(
    rows: Any, random: Random, *, part: Fraction, released: Any = trained, **asked: Any
) -> Any:
    """All scales too small by a factor: what an audit of a sound method must be able to see."""
    real, spend = budget_module.Budget.spend_on_noise, smooth_module.SmoothNoiseBudget.spend

    def noise(
        budget: Any, name: str, cost: Fraction, sensitivity: int = 1, coordinates: int = 1
    ) -> IntegerNoise:
        made = real(budget, name, cost, sensitivity, coordinates)
        return replace(made, parameter=made.parameter * part)

    def spent(spender: Any, name: str, cost: Fraction) -> tuple[float, float]:
        alpha, beta = spend(spender, name, cost)  # noise has the scale S / alpha
        return alpha / float(part), beta

    with (
        patch.object(budget_module.Budget, "spend_on_noise", noise),
        patch.object(smooth_module.SmoothNoiseBudget, "spend", spent),
    ):
        return released(rows, random, schema=ONE, **asked)


def at_the_hardest(method: str, part: Fraction, epsilon: float) -> Subject:
    """Too little noise where it hides least: found by the tables that the audit makes for it."""
    classifier = CentralNB(epsilon, schema=ONE, method=method)
    pairs = make_worst_case_pairs(classifier.get_params(deep=False))
    asked = {"method": method, "part": part, "epsilon": epsilon, "released": noisy_numbers}
    return Subject("central", epsilon, 0.0, partial(with_less_noise, **asked), pairs, shared=0)


def with_a_private_scale(rows: Any, random: Random) -> Any:
    """Vaidya et al. 2013: means and variances with noise of scale R / (n + 1), n exact."""
    found = json.loads(trained(rows, random, schema=NUMBERS, method="global-published"))[0]
    moments = list(found["moments"].values())
    counts, sums, squares = (
        np.array([one[key] for one in moments]) for key in ("counts", "totals", "squares")
    )
    return {"means": sums / counts, "variances": squares / counts - (sums / counts) ** 2}


def float_laplace(count: int) -> float:
    """A textbook Laplace draw in floating point."""
    uniform = int.from_bytes(CryptoRandom().raw(8).tobytes(), "little") / 2.0**64 - 0.5
    return count - math.copysign(1 / EPSILON, uniform) * math.log1p(-2 * abs(uniform))


def float_histogram(value: int) -> list[float]:
    """HE of multi-freq-ldpy: a textbook Laplace draw for every cell of a histogram."""
    cells = [float_laplace(0) * 2 for _ in range(4)]
    cells[value] += 1.0
    return cells


STREAM = np.random.default_rng(7)
"""The seeded generator of a careless module."""


def seeded_once(count: int) -> float:
    """Draws go on from call to call, and begin the same way in every process."""
    return round(count + STREAM.laplace(0, 1 / EPSILON))


def seeded_each_time(count: int) -> float:
    return round(count + np.random.default_rng(7).laplace(0, 1 / EPSILON))


COUNTS = [Pair("one person", "nobody", 1, 0)]


# ------------------------------------------------------------------------- reports, exactly


def duchi_with_ties(corner: tuple[int, ...], random: Random) -> tuple[int, ...]:
    """Listing 5.3: in even dimensions ties are put on one side."""
    truth = int(2**64 * math.e / (math.e + 1))
    agree = bool(random.bernoulli_words(truth, 1)[0])
    corners = list(itertools.product((-1, 1), repeat=len(corner)))
    inner = [sum(a * b for a, b in zip(corner, u, strict=True)) for u in corners]
    allowed = [u for u, product in zip(corners, inner, strict=True) if (product > 0) == agree]
    return allowed[int(random.integers(len(allowed), 1)[0])]


def equal_tails(level: int, random: Random) -> int:
    """Listing 5.4: the left or the right tail by a fair coin, however long each is."""
    oracle = Piecewise(EPSILON, "published", resolution=16)
    largest, half = oracle.largest, oracle.half_width
    if random.bernoulli_words(oracle.inside_threshold, 1)[0]:
        return level - half + int(random.integers(2 * half + 1, 1)[0])
    if random.integers(2, 1)[0]:
        return -largest + int(random.integers(max(1, level - half + largest), 1)[0])
    return largest - int(random.integers(max(1, largest - level - half), 1)[0])


def drawn_again(record: Any, random: Random) -> str:
    """Nothing is kept, so a retry is a second report."""
    return RespondentDevice(PLAN)(record, random) + RespondentDevice(PLAN)(record, random)


def withdrawn(record: Any, random: Random) -> str:
    """Whoever sees their own truth in the report takes it back."""
    sent = Respondent(PLAN, MemoryStore(), random_state=random).report(record)
    mine = int(record["class"] == "yes")
    return "withdrawn" if sent.question == 0 and sent.value == (mine,) else str(sent.value)


def named_by_record(record: Any, random: Random) -> str:
    """The id of a report, which no estimate looks at, is made of what the report hides."""
    sent = Respondent(PLAN, MemoryStore(), random_state=random).report(record)
    key = hashlib.sha256(repr(sorted(record.items())).encode()).digest()[:16]
    return replace(sent, id=derive_report_id(key)).to_json()


def question_by_record(record: Any, random: Random) -> str:
    """People with an x answer about it, others do not."""
    device = RespondentDevice(Plan(PLAN.schema, EPSILON, PLAN.questions, assignment="groups"))
    return RespondentDevice(device.collection, 1 if record["b"] == "x" else 0)(record, random)


def walked(release: Any, inputs: Any = None) -> Subject:
    inputs = inputs or make_collection_subject(PLAN).checks[0].inputs[:6]
    walk = EnumerableCheck(
        "every output", inputs, release, EPSILON, lambda sent: describe_report(str(sent))
    )
    first, last = inputs[0], inputs[-1]
    pairs = [Pair(first[0], last[0], first[1], last[1])]
    return Subject("reports", EPSILON, 0.0, release, pairs, [walk])


def corners(*levels: Any) -> list[tuple[str, Any]]:
    return [(str(one), one) for one in levels]


def sampled_with_fake_data(values: tuple[int, ...], random: Random) -> tuple[int, ...]:
    """RS+FD[GRR] of multi-freq-ldpy: of d bits a sampled one is randomized with the epsilon
    ln(d (e - 1) + 1), the others are replaced by uniform ones. All are sent.
    """
    amplified = len(values) * math.expm1(EPSILON) + 1
    truth = int(2**64 * amplified / (amplified + 1))
    sampled = int(random.integers(len(values), 1)[0])
    sent = [int(random.integers(2, 1)[0]) for _ in values]
    honest = bool(random.bernoulli_words(truth, 1)[0])
    sent[sampled] = values[sampled] if honest else 1 - values[sampled]
    return tuple(sent)


VARIED = Schema([Categorical("b", list("uvwxyz"))], "class", ["no", "yes"])
LARGE = Plan(VARIED, EPSILON, [Question(("b",), DE(EPSILON, 14), 1)])
"""Audited as plans are that are too large to be walked through: by samples."""


def spaced(record: Any, random: Random, *, value: Any) -> str:
    """A space after the report of whoever has one value: JSON does not look at it."""
    return RespondentDevice(LARGE)(record, random).rstrip() + " " * (record["b"] == value)


def reordered(record: Any, random: Random) -> str:
    """The same report, with its keys in an order that depends on the record."""
    sent = json.loads(RespondentDevice(LARGE)(record, random))
    return json.dumps(sent, sort_keys=record["b"] == "w")


def sampled(release: Any = None) -> Subject:
    """What leaves a device, by samples alone."""
    subject = make_collection_subject(LARGE)
    return replace(subject, checks=(), release=release or subject.release)


# --------------------------------------------------------------------------------- catalogue


@dataclass(frozen=True)
class Entry:
    """One subject of the catalogue.

    ``samples`` of each input are enough to find a planted defect at a confidence of 99 %.
    """

    name: str
    subject: Callable[[], Subject]
    samples: int = 400
    processes: int = 1
    quick: bool = True
    """Whether the tests run it, too."""
    deep: float = 1
    """How many times more samples ``make audit`` takes."""


def manifest(partition: str, key: Any = None) -> Any:
    from discreet.federated.agreement.identity import Identity
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import make_feature_requests

    who = {n: Identity.generate(n) for n in ("one", "two", "three", "collector", "receiver")}
    wanted = make_feature_requests(SCHEMA, 2, [])
    cards = {name: one.card for name, one in who.items()}
    if key is not None:
        holder = "receiver" if partition == "horizontal" else "three"
        cards[holder] = who[holder].make_card_with_key(key)
    if partition == "horizontal":
        given: dict[str, Any] = {"providers": (cards["one"], cards["two"], cards["three"])}
    else:
        given = {
            "providers": (cards["one"], cards["two"]),
            "label": cards["three"],
            "columns": {"one": ("a",), "two": ("b",)},
            "rows": 24,
        }
    return Manifest(
        SCHEMA, wanted, EPSILON, collector=cards["collector"], receiver=cards["receiver"],
        partition=partition, aggregation="masks" if key is None else "paillier",
        paillier=None if key is None else key.public, **given,
    )  # fmt: skip


def paillier_round(partition: str) -> Subject:
    """What is published of rounds that are played with Paillier, one pair of tables."""
    from discreet.federated.crypto.paillier import generate_key

    made = make_manifest_subject(manifest(partition, generate_key(2048)))
    published = [one for one in made.pairs if one.first[0] == "published"]
    return replace(made, pairs=published[:1])


def without_a_share(release: Any, given: Any, random: Random) -> Any:
    """Everyone believes that the others add the noise."""
    from discreet.federated.agreement.manifest import Manifest

    def nothing(agreed: Any, layout: Any, random: Any = None) -> Any:
        return np.zeros(layout.size, dtype=np.int64)

    with patch.object(Manifest, "draw_noise_share", nothing):
        return release(given, random)


def unshared() -> Subject:
    made = paillier_round("vertical")
    return replace(made, release=partial(without_a_share, made.release))


def noisy_totals(partition: str) -> Subject:
    """Half of the noise of a round: what t colluders are left with, one pair of tables."""
    made = make_manifest_subject(replace(manifest(partition), epsilon=2 * EPSILON))
    left = [one for one in made.pairs if one.first[0] == "left"]
    return replace(made, epsilon=made.epsilon / 2, pairs=left[:1])


DEFECTS = [
    Entry("textbook, listing 5.3: Duchi with ties", lambda: walked(
        duchi_with_ties, corners(*itertools.product((-1, 1), repeat=2)))),
    Entry("textbook, listing 5.4: Piecewise with equal tails", lambda: walked(
        equal_tails, corners(-16, -15, 0, 16))),
    Entry("subset with the truth in front", lambda: make_oracle_subject(TruthFirst(0.1, 5))),
    Entry("report drawn again", lambda: walked(drawn_again)),
    Entry("withdrawal after looking", lambda: walked(withdrawn)),
    Entry("question chosen by the record", lambda: walked(question_by_record)),
    Entry("id made of the record", lambda: walked(named_by_record)),
    Entry("space after the report of a value in between", lambda: sampled(
        partial(spaced, value="w"))),
    Entry("space after the report of a missing value", lambda: sampled(
        partial(spaced, value=None))),
    Entry("order of keys by the record", lambda: sampled(reordered)),
    Entry("RS+FD with every attribute sent", lambda: walked(
        sampled_with_fake_data, corners(*itertools.product((0, 1), repeat=2)))),
    Entry("histogram with float noise", lambda: make_function_subject(
        float_histogram, [Pair("value 0", "value 1", 0, 1)], EPSILON), 1000),
    Entry("float Laplace", lambda: make_function_subject(float_laplace, COUNTS, EPSILON), 1000),
    Entry("n through consistent counts", lambda: central(
        with_exact_n, pairs=make_add_pairs(SCHEMA, 24)[:1]), 200),
    Entry("sum far from zero", lambda: central(
        with_far_sums, pairs=make_add_pairs(SCHEMA, 24)[:1])),
    Entry("class taken from the data", lambda: make_function_subject(
        with_classes_of_the_data, make_add_pairs(SCHEMA, 24)[:1], EPSILON), 200),
    Entry("noise scaled by a private count", lambda: central(
        with_a_private_scale, pairs=make_add_pairs(NUMBERS, 24)[:1]), 800),
    Entry("method chosen by the number of rows", lambda: central(
        with_a_method_by_rows, pairs=make_add_pairs(SCHEMA, 24)[:1])),
    Entry("every feature with the whole budget", lambda: central(
        with_the_whole_budget_each, MANY, make_add_pairs(MANY, 24)[:1])),
    *(Entry(f"half of the noise, {method}", lambda method=method: central(partial(
        with_less_noise, method=method, part=Fraction(1, 2)), pairs=make_add_pairs(ONE, 24)[:1]),
        samples, quick=False)
      for method, samples in (("histogram", 500), ("moments", 1600), ("global", 1000))),
    *(Entry(f"half of the noise, {method}, promised {epsilon}", partial(
        at_the_hardest, method, Fraction(1, 2), epsilon), 4000, quick=deep < 1, deep=deep)
      for method in ("smooth", "trimmed") for epsilon, deep in ((3, 0.25), (1, 1.5))),
    Entry("Paillier round without noise", unshared, 40),
    *(Entry(f"half of the noise, {partition} round", partial(noisy_totals, partition), samples,
            deep=0.5)
      for partition, samples in (("horizontal", 2000), ("vertical", 8000))),
    Entry("seeded at every call",
          lambda: make_function_subject(seeded_each_time, COUNTS, EPSILON), 200),
    Entry("seeded once", lambda: make_function_subject(seeded_once, COUNTS, EPSILON), 200,
          processes=2),
]  # fmt: skip

SOUND = [
    *(Entry(f"{name}, every report", partial(make_mechanism_subject, name, EPSILON, size=4))
      for name in ("de", "sue", "oue", "the", "ss", "hr")),
    *(Entry(f"{name}, by samples", partial(make_mechanism_subject, name, EPSILON, size=3))
      for name in ("she", "olh")),
    Entry("discrete Laplace", partial(make_mechanism_subject, "discrete-laplace", EPSILON), 2000),
    Entry("discrete Gaussian", partial(make_mechanism_subject, "discrete-gaussian", EPSILON), 2000),
    Entry("plan", lambda: make_collection_subject(PLAN)),
    Entry("plan, by samples", sampled, 80),
    Entry("questionnaire", lambda: make_collection_subject(SURVEY)),
    *(Entry(f"CentralNB, {method}", partial(
        make_classifier_subject, CentralNB(EPSILON, schema=SCHEMA, method=method)), 80, deep=3,
        quick=method == "histogram")
      for method in ("histogram", "moments", "global", "smooth", "trimmed")),
    *(Entry(f"CentralNB, {method}, one number", partial(
        make_classifier_subject, CentralNB(EPSILON, schema=ONE, method=method)), 250, deep=2,
        quick=False)
      for method in ("histogram", "moments", "global", "smooth", "trimmed")),
    Entry("CentralNB with a delta", lambda: make_classifier_subject(
        CentralNB(EPSILON, delta=1e-5, schema=MANY, selection=False)), 80, deep=3, quick=False),
    Entry("horizontal round", lambda: make_manifest_subject(manifest("horizontal")), 60,
          quick=False),
    Entry("vertical round", lambda: make_manifest_subject(manifest("vertical")), 60),
    Entry("horizontal round with Paillier", lambda: paillier_round("horizontal"), 40, quick=False),
    Entry("vertical round with Paillier", lambda: paillier_round("vertical"), 40),
]  # fmt: skip


SURE = 1 - 1e-6
"""Confidence at which sound entries are judged, so that no run of the tests fails by chance."""


def judged(entry: Entry, confidence: float, more: float = 1, processes: int = 1) -> Audit:
    """Audit one entry with ``more`` times its samples."""
    effort = Effort(
        samples=int(entry.samples * more),
        seconds=600.0,
        confidence=confidence,
        processes=max(processes, entry.processes),
    )
    return audit(entry.subject(), effort)


def false_alarms(runs: int, confidence: float, real: float = EPSILON) -> int:
    """How many audits call direct encoding broken at a promise of epsilon.

    It spends exactly ``real``; with the promised epsilon, that is the hardest sound subject.
    """
    oracle = DE(real, 2)
    subject = Subject(
        "one bit", EPSILON, 0.0, lambda bit, random: int(oracle.perturb([bit], random)[0]),
        [Pair("0", "1", 0, 1)],
    )  # fmt: skip
    effort = Effort(samples=400, confidence=confidence)
    return sum(audit(subject, effort).broken for _ in range(runs))


def main() -> int:
    """Run the catalogue and print what was found; 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--more", type=int, default=4, help="Times the samples of the tests.")
    parser.add_argument("--alarms", type=int, default=0, help="Count false alarms in N audits.")
    given, wrong = parser.parse_args(), 0
    if given.alarms:
        for confidence in (0.9, 0.99):
            found = false_alarms(given.alarms, confidence)
            print(f"{found} false alarms in {given.alarms} audits at {100 * confidence:g} %")
        return 0
    jobs = [(entry, True) for entry in DEFECTS] + [(entry, False) for entry in SOUND]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(_timed, k, given.more) for k in range(len(jobs))]
        for (entry, planted), result in zip(jobs, waiting, strict=True):
            found, seconds = result.result()
            as_it_must = found.broken == planted and found.done
            wrong += not as_it_must
            verdict = max(
                found.verdicts,
                key=lambda one: (one.way != "not done", one.broken, one.found, one.usual),
            )
            mark = "ok   " if as_it_must else "WRONG"
            kind = "planted" if planted else "sound"
            print(f"{mark} {kind:8}{entry.name:50}{seconds:6.1f} s  {verdict.sentence}", flush=True)
    print(f"{len(DEFECTS)} planted, {len(SOUND)} sound, {wrong} not as they must be")
    return int(wrong > 0)


def _timed(number: int, more: int) -> tuple[Audit, float]:
    begun = time.monotonic()
    planted = number < len(DEFECTS)
    entry = DEFECTS[number] if planted else SOUND[number - len(DEFECTS)]
    found = judged(entry, 0.99 if planted else SURE, more * entry.deep)
    return found, time.monotonic() - begun


if __name__ == "__main__":
    from audit import catalogue  # by its name, so that other processes find it, too

    raise SystemExit(catalogue.main())
