"""A second round in which providers judge candidate models: what is counted, hidden and paid."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from noise_laws import TAIL, sum_law
from party_processes import write_rows
from round_fixtures import (
    PARTIES,
    SCHEMA,
    agreed,
    counted,
    horizontal_manifest,
    horizontal_round,
    judging_manifest,
    table,
    vertical_manifest,
)

from discreet import FederatedNB, Statistics, estimate
from discreet.cli.federated.files import make_ledger_charge
from discreet.datasets import make_mortgage
from discreet.errors import EstimationError, SchemaError
from discreet.estimation.candidates import count_correct_rows
from discreet.federated import horizontal
from discreet.federated.agreement.description import describe_agreement, summarize_agreement
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.judging import (
    Judging,
    compute_statistics_digest,
    make_judging,
    make_judging_manifest,
    pays_to_judge,
    split_judging_epsilon,
)
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.provider import _count_source
from discreet.files.documents import dump_document
from discreet.privacy.ledger import Ledger
from discreet.schema.cells import encode_classes
from discreet.statistics.candidate import CandidateModel
from populations import make_sizes
from schemas import SIZES

HASH, DIGEST = "0" * 64, "sha256:" + "0" * 64


def random_judging(classes, rng, others=1, spread=40):
    """Candidates of two features with three cells each; small scores, so that ties occur."""
    models = [
        CandidateModel(
            rng.integers(-spread, 1, classes),
            {name: rng.integers(-spread, 1, (classes, 3)) for name in ("x", "y")},
        )
        for _ in range(1 + others)
    ]
    return Judging(HASH, DIGEST, (100, 70, 50, 35, 25, 0), tuple(models))


def count_every_row(judging, classes):
    """What every possible row adds to the counters, row by row."""
    return np.array(
        [
            judging.count_rows({"x": np.array([x]), "y": np.array([y])}, np.array([code]))
            for x, y, code in product(range(3), range(3), range(classes))
        ]
    )


# ------------------------------------------------------------------------------ what a row changes


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "others"), [(2, 0), (2, 1), (3, 0), (3, 2), (5, 1)])
def test_one_row_changes_the_counters_by_at_most_the_sensitivity(classes, others):
    rng, largest = np.random.default_rng(classes), 0
    for _ in range(60):
        judging = random_judging(classes, rng, others)
        changes = np.abs(count_every_row(judging, classes)).sum(axis=1)
        assert changes.max() <= judging.sensitivity
        largest = max(largest, changes.max())
    assert largest == judging.sensitivity  # no smaller number would do


def test_twin_counting_every_candidate_changes_by_more():
    """The obvious way: a counter for each weight. One row changes all of them."""
    judging = random_judging(2, np.random.default_rng(0), others=0)
    weighted = [
        CandidateModel(
            100 * judging.models[0].offsets,
            {name: weight * one for name, one in judging.models[0].tables.items()},
        )
        for weight in judging.percentages
    ]
    changes = [
        count_correct_rows(weighted, {"x": np.array([x]), "y": np.array([y])}, np.array([c])).sum()
        for x, y, c in product(range(3), range(3), range(2))
    ]
    assert max(changes) == len(weighted) > judging.sensitivity


def worst_loss(scale, noise, changes):
    """The largest log-ratio of the noisy counters of two tables that differ by such a row."""
    left = sum_law(float(scale), noise.required_shares, noise.parties - noise.tolerated)
    seen = left[TAIL - 400 : TAIL + 401]
    return sum(
        float(np.abs(np.log(seen[step:]) - np.log(seen[:-step])).max()) if step else 0.0
        for step in np.abs(changes)
    )


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_replayed_with_a_neighbour_judging_costs_at_most_its_epsilon(epsilon):
    """The exact law of all counters, with the noise that is left if a provider tells its own."""
    manifest, _ = judging_manifest(epsilon=epsilon)
    (block,) = manifest.layout.blocks
    noise = manifest.block_noises[block]
    assert noise.scale == block.sensitivity / Fraction(epsilon)
    rng = np.random.default_rng(1)
    rows = np.unique(
        [change for _ in range(40) for change in count_every_row(random_judging(2, rng), 2)], axis=0
    )
    assert np.abs(rows).sum(axis=1).max() == block.sensitivity == 2
    losses = [worst_loss(noise.scale, noise, change) for change in rows]
    assert max(losses) == pytest.approx(epsilon)


def test_twin_noise_for_one_candidate_exceeds_the_epsilon_of_judging():
    """Noise for a sensitivity of 1, and a counter of its own for every candidate; and no noise."""
    manifest, _ = judging_manifest(epsilon=0.5)
    (noise,) = manifest.block_noises.values()
    rows = count_every_row(random_judging(2, np.random.default_rng(1)), 2)
    assert max(worst_loss(1 / 0.5, noise, change) for change in rows) > 1.9 * 0.5
    assert worst_loss(noise.scale, noise, np.ones(7, dtype=int)) > 3 * 0.5
    exact, _ = judging_manifest(epsilon=math.inf)
    assert exact.is_effectively_exact  # which `provide` refuses without --unprotected
    assert not exact.guarantee.is_private


def test_what_the_receiver_opens_is_the_exact_number_and_every_providers_noise():
    manifest, statistics = judging_manifest(epsilon=0.05)  # no share is 0 by chance: < 1e-7
    exact = counted(manifest, seed=3)
    machines = []

    def make(identity, agreement):
        machines.append(horizontal.HorizontalProvider(identity, agreement))
        return machines[-1]

    seen = []
    first = Judging.choose_scoring

    def watch(self, statistics, counters, variance):
        seen.append(counters)
        return first(self, statistics, counters, variance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Judging, "choose_scoring", watch)
        horizontal_round(manifest, exact, provider=make, judged=statistics)
    shares = [machine._noise_share for machine in machines]
    np.testing.assert_array_equal(seen[0], sum(exact) + sum(shares))
    assert all(share.any() for share in shares)


# --------------------------------------------------------------------------------- both rounds


@pytest.mark.parametrize("way", ["masks", "paillier"])
def test_without_noise_the_best_candidate_is_chosen(way, small_key):
    """Age says the class; its copies would drown a prior that is right."""
    key = small_key if way == "paillier" else None
    first = horizontal_manifest(key, moments=(), epsilon=math.inf)
    exact = counted(first, seed=3, rows=200)
    released, _ = horizontal_round(first, exact, key)
    manifest, statistics = judging_manifest(
        first=first, statistics=released.statistics, epsilon=math.inf
    )
    counts = counted(manifest, seed=3, rows=200)
    release, _ = horizontal_round(manifest, counts, key, judged=statistics)
    excess, _ = manifest.judging.sum_excess(sum(counts), 0.0)
    model = estimate(release.statistics)
    assert model.to_json() == release.model.to_json()
    right = 0
    for provider in range(3):
        columns, codes = table(200, 3 + provider)
        right += int((model.predict(columns) == np.array(SCHEMA.classes)[codes]).sum())
        right -= int((released.model.predict(columns) == np.array(SCHEMA.classes)[codes]).sum())
    # rows within 1 / 1024 of log-odds of a tie may be decided otherwise
    assert abs(right - excess.max()) <= 10


def test_weights_and_features_decide_like_the_scoring_that_is_chosen():
    """Judged whole numbers and the model that is made afterwards are the same classifier."""
    people = make_mortgage(1500)
    nb = FederatedNB(1.0, judge="never", schema=people.schema, random_state=0)
    nb.fit(people.X, people.y)
    statistics = nb.statistics_
    judging = make_judging(HASH, statistics)
    codes = encode_classes(people.schema, people.y)
    cells = {
        name: one.cells.encode_column(people.X[name]) for name, one in statistics.tables.items()
    }
    excess, _ = judging.sum_excess(judging.count_rows(cells, codes), 0.0)
    default = (nb.predict(people.X) == people.y).sum()
    for index in range(len(excess)):
        noisy = np.where(np.arange(len(excess)) == index, 10_000.0, 0.0)
        steps = np.concatenate([np.diff(noisy[:6]), noisy[6:]])
        scoring = judging.choose_scoring(statistics, steps, 1.0)
        model = estimate(replace(statistics, scoring=scoring))
        right = (model.predict(people.X) == people.y).sum()
        assert abs(right - default - excess[index]) <= 3  # 1/1024 of log-odds may break a near tie


def test_both_rounds_are_charged_and_the_guarantee_is_their_sum(tmp_path):
    counting, judging = split_judging_epsilon(1.0)
    first = horizontal_manifest(moments=(), epsilon=counting)
    second, statistics = judging_manifest(first=first, epsilon=judging)
    release, _ = horizontal_round(second, counted(second, seed=3), judged=statistics)
    guarantee = release.model.guarantee
    assert guarantee.epsilon == 1.0
    assert math.fsum(charge.epsilon for charge in guarantee.charges) == pytest.approx(1.0)
    assert "and the one whose models it judges" in str(guarantee)
    assert "takes part in two rounds" not in str(guarantee)
    ledger = Ledger.create(tmp_path / "budget.json", 3.0)
    charge = make_ledger_charge(str(ledger.path))
    for manifest in (first, second, second):  # a restarted provider is not charged again
        charge(manifest)
    assert sum(entry.epsilon for entry in ledger.read().entries) == pytest.approx(1.0)


def test_twin_a_second_round_under_the_first_ones_name_costs_nothing(tmp_path):
    counting, judging = split_judging_epsilon(1.0)
    first = horizontal_manifest(moments=(), epsilon=counting)
    second, _ = judging_manifest(first=first, epsilon=judging)
    ledger = Ledger.create(tmp_path / "budget.json", 3.0)
    for manifest in (first, second):
        ledger.charge(manifest.guarantee, "federated round", once=True)
    assert sum(entry.epsilon for entry in ledger.read().entries) < 0.96


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 1.0, 1 / 3, 4.0, 7.7])
def test_both_epsilons_add_up_exactly(epsilon):
    counting, judging = split_judging_epsilon(epsilon)
    assert Fraction(counting) + Fraction(judging) == Fraction(epsilon)
    assert judging == pytest.approx(0.05 * epsilon)


# ------------------------------------------------------------------------------- what is refused


def test_only_the_statistics_of_the_first_round_open_a_judging():
    manifest, statistics = judging_manifest()
    other = replace(statistics, totals=statistics.totals + 1)
    with pytest.raises(ProtocolError, match="made from other statistics"):
        horizontal.HorizontalReceiver(PARTIES["receiver"], manifest, None, other)
    with pytest.raises(ProtocolError, match="--judged"):
        horizontal.HorizontalReceiver(PARTIES["receiver"], manifest)
    travelled = Statistics.from_json(statistics.to_json())
    assert compute_statistics_digest(travelled) == manifest.judging.statistics_digest
    horizontal.HorizontalReceiver(PARTIES["receiver"], manifest, None, travelled)


def test_who_signs_a_judging_reads_that_it_is_not_all_and_who_sees_the_first_round():
    manifest, _ = judging_manifest()
    text = describe_agreement(manifest)
    assert "per person in total" not in text
    assert f"added to that of the round with the manifest {manifest.judging.first_round}" in text
    summary = summarize_agreement(manifest)
    seen = {party["role"]: party["learns"] for party in summary["parties"]}
    assert "first round" in seen["provider"]
    assert "first round" in seen["collector"]
    first = replace(manifest, judging=None, signatures={})
    assert "per person in total" in describe_agreement(first)
    assert "first round" not in describe_agreement(first)


def test_a_manifest_of_judging_travels_and_states_its_own_sensitivity():
    manifest, _ = judging_manifest()
    again = Manifest.from_json(manifest.to_json())
    assert again.hash == manifest.hash
    assert again.block_noises == manifest.block_noises
    assert "which one row changes by 2 in all" in describe_agreement(again)
    body = json.loads(manifest.to_json())
    for key in ("format", "version", "digest"):
        del body[key]
    for change, match in (
        ({"sensitivity": 1}, "do not sign it"),
        ({"percentages": [100, 100, 50]}, "fall from 100"),
        ({"percentages": [100]}, "fall from 100"),
        ({"percentages": [100, 50.5]}, "percentages"),
        ({"models": []}, "candidate models"),
        ({"first_round": "x"}, "first_round"),
    ):
        wrong = {**body, "judging": {**body["judging"], **change}}
        with pytest.raises(ValueError, match=match):
            Manifest.from_json(dump_document("manifest", 6, wrong))


def test_candidates_are_judged_where_rows_are_whole_and_cells_are_agreed():
    manifest, statistics = judging_manifest()
    with pytest.raises(SchemaError, match="nobody holds whole rows"):
        replace(vertical_manifest(moments=()), judging=manifest.judging)
    with pytest.raises(SchemaError, match="mode counts"):
        replace(manifest, mode="probabilities")
    with pytest.raises(SchemaError, match="by cells alone"):
        replace(manifest, requests=horizontal_manifest().requests)
    coarser = tuple(
        replace(one, edges=one.edges[::2]) if one.edges else one for one in manifest.requests
    )
    with pytest.raises(EstimationError, match="a candidate has 5 cells"):
        replace(manifest, requests=coarser)
    with pytest.raises(SchemaError, match="judges models itself"):
        make_judging_manifest(manifest, statistics, 0.1)


# ----------------------------------------------------------------------------- rows and estimator


@pytest.mark.slow
def test_rows_of_a_file_are_judged_like_rows_in_memory(tmp_path):
    manifest, _ = judging_manifest(first=horizontal_manifest(moments=(), epsilon=math.inf))
    columns, codes = table(300, 8)
    write_rows(tmp_path / "a.csv", columns, codes, [*SCHEMA.names, "class"])
    expected = manifest.layout.count_rows(columns, codes)
    np.testing.assert_array_equal(_count_source(manifest, str(tmp_path / "a.csv")), expected)
    assert expected.any()


@pytest.mark.slow
def test_the_estimator_judges_where_public_numbers_say_that_it_pays():
    judged = FederatedNB(1.0, schema=SIZES).fit(*make_sizes(600))
    assert judged.judging_manifest_.judging.first_round == judged.manifest_.hash.hex()
    assert judged.guarantee_.epsilon == 1.0
    assert judged.guarantee_.is_private
    assert judged.manifest_.epsilon < 1.0
    for seed, options in enumerate(
        (
            {"judge": "never"},
            {"people": 100},
            {"mode": "probabilities"},
            {"partition": "vertical"},
            {"numeric": "moments"},
            {"epsilon": math.inf},
        )
    ):
        X, y = make_sizes(600, seed=1 + seed)
        nb = FederatedNB(**{"epsilon": 1.0, "schema": SIZES, **options}).fit(X, y)
        assert nb.judging_manifest_ is None
        assert nb.manifest_.epsilon == options.get("epsilon", 1.0)
    assert pays_to_judge(3000, 1.0)
    assert not pays_to_judge(3000, math.inf)


@pytest.mark.slow
def test_evidence_that_repeats_itself_is_toned_down():
    """Seven copies of one weak feature: the model of all is too sure, its majority is not."""
    from discreet import Categorical, Schema

    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.15).astype(int)
    hint = np.where(rng.random(len(y)) < 0.65, y, 1 - y).astype(str)
    names = [f"copy{index}" for index in range(7)]
    schema = Schema([Categorical(name, ["0", "1"]) for name in names], "class", [0, 1])
    X = pd.DataFrame(dict.fromkeys(names, hint))
    plain = FederatedNB(1.0, judge="never", schema=schema).fit(X, y)
    judged = FederatedNB(1.0, schema=schema, random_state=0).fit(X, y)
    assert np.mean(plain.predict(X) == y) < 0.7
    assert np.mean(judged.predict(X) == y) > 0.84


def test_a_manifest_with_judging_is_signed_by_the_parties_of_the_first_round():
    first = horizontal_manifest(moments=())
    manifest, _ = judging_manifest(first=first)
    assert manifest.parties == first.parties
    assert manifest.round == first.round + 1
    assert manifest.judging.first_round == first.hash.hex()
    changed = replace(manifest, judging=replace(manifest.judging, first_round="1" * 64))
    assert set(changed.unsigned_parties) == set(manifest.parties)
    assert agreed(replace(changed, signatures={})).hash != manifest.hash
