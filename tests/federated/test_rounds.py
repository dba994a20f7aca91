"""Whole rounds: the result is the sum of the exact counts plus the noise, and nothing else."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from round_fixtures import (
    NAMES,
    PARTIES,
    counted,
    horizontal_manifest,
    horizontal_round,
    table,
    vector_of,
    vertical_manifest,
    vertical_round,
)

from discreet.errors import PrivacyError, SchemaError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import Layout
from discreet.federated.horizontal.arithmetic import make_slots
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical import with_masks
from discreet.federated.vertical.party import VerticalParty
from discreet.schema.cells import Grid

KEYS = pytest.mark.parametrize("aggregation", ["masks", "paillier"])
MODES = pytest.mark.parametrize("mode", ["counts", "probabilities"])


def injected(place):
    """A share of noise that the test knows."""
    return lambda size: np.arange(size) * (place + 1) * (-1) ** place


class KnownNoise(horizontal.HorizontalProvider):
    def __init__(self, identity, manifest, **options):
        super().__init__(identity, manifest, **options)
        self._noise_share = injected(NAMES.index(identity.name))(manifest.layout.size)


@KEYS
def test_the_result_is_the_exact_sum_plus_the_known_noise(aggregation, small_key):
    key = small_key if aggregation == "paillier" else None
    manifest = horizontal_manifest(key)
    exact = counted(manifest)
    release, _ = horizontal_round(manifest, exact, key, KnownNoise)
    noise = sum(injected(place)(manifest.layout.size) for place in range(3))
    assert np.array_equal(vector_of(manifest, release.statistics), sum(exact) + noise)


@KEYS
@MODES
def test_without_noise_the_model_is_that_of_the_joint_table(aggregation, mode, small_key):
    from discreet.estimation import estimate

    key = small_key if aggregation == "paillier" else None
    manifest = horizontal_manifest(key, epsilon=math.inf, mode=mode, margin=1)
    exact = counted(manifest)
    release, _ = horizontal_round(manifest, exact, key)
    joint = manifest.layout.decode_statistics(
        sum(exact), dict.fromkeys(manifest.layout.blocks, 0.0)
    )
    rows = [{"colour": "red", "size": 3.0, "age": a} for a in (10, 50, 90, None)]
    expected = estimate(joint).predict_joint_log_proba(rows)
    found = release.model.predict_joint_log_proba(rows)
    assert np.abs(found - expected).max() < (1e-9 if mode == "counts" else 1e-3)
    assert (release.statistics is None) == (mode == "probabilities")
    assert not release.model.guarantee.is_private


@KEYS
@MODES
def test_with_noise_the_model_carries_the_promise(aggregation, mode, small_key):
    key = small_key if aggregation == "paillier" else None
    manifest = horizontal_manifest(key, mode=mode)
    release, _ = horizontal_round(manifest, counted(manifest), key)
    assert release.model.guarantee == manifest.guarantee
    assert release.model.guarantee.is_private
    release.model.predict(table(5, 1)[0])


@MODES
def test_released_log_probabilities_lie_on_the_public_grid(mode):
    manifest = horizontal_manifest(mode=mode, moments=())
    release, _ = horizontal_round(manifest, counted(manifest))
    scores = np.concatenate([f.log_probability.ravel() for f in release.model.factors]) * 2**16
    assert (scores == np.round(scores)).all() == (mode == "probabilities")


@pytest.mark.slow
def test_the_noise_of_a_round_has_the_stated_variance():
    """Mean square over 3900 cells within 6 standard errors (kurtosis at most that of Laplace)."""
    manifest = horizontal_manifest(moments=())
    exact = [np.zeros(manifest.layout.size, dtype=np.int64)] * 3
    drawn = [horizontal_round(manifest, exact)[0] for _ in range(150)]
    noise = np.concatenate([vector_of(manifest, one.statistics) for one in drawn])
    variance = next(iter(manifest.block_noises.values())).variance
    assert abs(np.mean(noise.astype(float) ** 2) / variance - 1) < 6 * math.sqrt(5 / noise.size)


@KEYS
def test_a_provider_submits_once_and_repeats_itself(aggregation, small_key):
    key = small_key if aggregation == "paillier" else None
    manifest = horizontal_manifest(key)
    provider = horizontal.HorizontalProvider(PARTIES["hospital-a"], manifest)
    exact = counted(manifest)[0]
    assert provider.make_submission(exact) is provider.make_submission(exact + 1)
    with pytest.raises(ProtocolError, match="do not fit"):
        horizontal.HorizontalProvider(PARTIES["hospital-b"], manifest).make_submission(exact[1:])


def test_counts_beyond_the_bound_are_refused_not_wrapped():
    manifest = horizontal_manifest()
    exact = np.full(manifest.layout.size, 2**62)
    with pytest.raises(PrivacyError, match="beyond"):
        horizontal.HorizontalProvider(PARTIES["hospital-a"], manifest).make_submission(exact)


def test_slots_are_narrow_for_counts_and_wide_for_sums(small_key):
    narrow, wide = horizontal_manifest(small_key, moments=()), horizontal_manifest(small_key)
    assert make_slots(narrow)[1].width == 48
    assert make_slots(wide)[1].width == 64
    exact = counted(narrow)
    release, _ = horizontal_round(narrow, exact, small_key, KnownNoise)
    noise = sum(injected(place)(narrow.layout.size) for place in range(3))
    assert np.array_equal(vector_of(narrow, release.statistics), sum(exact) + noise)


def test_a_collector_is_rebuilt_from_the_messages_it_had(small_key):
    manifest = horizontal_manifest(small_key, epsilon=math.inf)
    exact = counted(manifest)
    first = horizontal.HorizontalCollector(PARTIES["collector"], manifest)
    said = [
        horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        for name, own in zip(NAMES, exact, strict=True)
    ]
    first.receive(said[2])
    assert first.missing_senders == ("hospital-a", "hospital-b")
    with pytest.raises(ProtocolError, match="waiting for 2 of 3: hospital-a, hospital-b"):
        first.make_result()
    second = horizontal.HorizontalCollector(PARTIES["collector"], manifest)
    for message in (*first.inbox.accepted.values(), said[0], said[1]):
        second.receive(message)
    assert second.missing_senders == ()
    receiver = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest, small_key)
    found = receiver.receive(second.make_result()).statistics
    assert np.array_equal(vector_of(manifest, found), sum(exact))


@pytest.mark.slow
@KEYS
@MODES
@pytest.mark.parametrize("tolerated", [1, 2])
def test_a_vertical_round_adds_up_too(aggregation, mode, tolerated, small_key):
    key = small_key if aggregation == "paillier" else None
    columns, codes = table(40, 7)
    ids = [f"person {i}" for i in range(40)]
    manifest = vertical_manifest(key, mode=mode, epsilon=math.inf, tolerated=tolerated)
    release, _ = vertical_round(manifest, columns, codes, key, ids)
    if mode == "counts":
        exact = manifest.layout.count_rows(columns, codes)
        assert np.array_equal(vector_of(manifest, release.statistics), exact)
    release.model.predict(columns)
    noisy = vertical_manifest(key, mode=mode, tolerated=tolerated)
    release, _ = vertical_round(noisy, columns, codes, key, ids)
    assert release.model.guarantee == noisy.guarantee
    assert release.inconsistent == ()


@KEYS
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_a_vertical_result_is_the_exact_count_plus_three_known_shares(
    aggregation, block, small_key, monkeypatch
):
    """The provider of a table, the label provider and the collector add one share each."""
    key = small_key if aggregation == "paillier" else None
    # of masks: a few rows at a time, or all
    monkeypatch.setattr(with_masks, "BLOCK_WORDS", block)
    places = {"hospital-a": 1, "hospital-b": 2, "labels": 10, "collector": 100}

    def share(party, provider, random):
        return np.arange(party.protocol.layouts[provider].size) * places[party.identity.name]

    monkeypatch.setattr(VerticalParty, "_draw_noise_share", share)
    columns, codes = table(40, 8)
    manifest = vertical_manifest(key)
    release, _ = vertical_round(manifest, columns, codes, key)
    found = dict(manifest.layout.split(vector_of(manifest, release.statistics)))
    exact = dict(manifest.layout.split(manifest.layout.count_rows(columns, codes)))
    for card in manifest.providers:
        own = manifest.layout.select_features(manifest.columns[card.name])
        factor = places[card.name] + 110
        for block, noise in own.split(np.arange(own.size) * factor):
            assert np.array_equal(found[block] - exact[block], noise)


def test_vertical_masks_refuse_what_would_wrap_or_be_too_long(monkeypatch):
    columns, codes = table(40, 8)
    manifest = vertical_manifest()
    monkeypatch.setattr(Manifest, "draw_noise_share", lambda *_: np.array([2**61]))
    with pytest.raises(PrivacyError, match="beyond"):
        vertical_round(manifest, columns, codes)
    with pytest.raises(SchemaError, match="fewer cells, or use Paillier"):
        vertical.VerticalCollector(PARTIES["collector"], vertical_manifest(rows=10**10))
    monkeypatch.undo()
    monkeypatch.setattr(Layout, "_make_grid", lambda *_: Grid(0.0, 1.0, 2**29))
    with pytest.raises(PrivacyError, match="beyond"):  # 40 squares of 2^58
        vertical_round(vertical_manifest(epsilon=math.inf), columns, codes)


def test_the_urn_of_vertical_shares_is_split_in_three(small_key):
    for tolerated in (1, 2):
        manifest = vertical_manifest(small_key, tolerated=tolerated)
        assert {noise.required_shares for noise in manifest.block_noises.values()} == {
            3 - tolerated
        }


@pytest.mark.slow
def test_what_runs_at_a_provider_imports_little():
    script = (
        "import sys\n"
        "import discreet.federated.horizontal, discreet.federated.vertical\n"
        "import discreet.federated.crypto.paillier, discreet.federated.service.provider\n"
        "import discreet.cli.federated.parties\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "scipy", "matplotlib", "fastapi", "uvicorn", "pandas", "ibis", "duckdb"}
    assert not set(run.stdout.split()) & heavy
