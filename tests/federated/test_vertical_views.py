"""What each party of a vertical round with masks sees: uniform words, or seals it cannot open.

Every attack here is code that works on a twin of the protocol in which one thing is left out, and
fails on the protocol itself. Rounds have no noise, so that nothing but the masks hides anything.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from round_fixtures import NAMES, PARTIES, table, vertical_manifest, vertical_round
from scipy import stats
from uniformity import FALSE_ALARM, looks_uniform, shared, value_and_steps

from discreet.federated.crypto.masks import expand_words
from discreet.federated.crypto.sealing import compute_sealed_length, unseal_bytes
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical import collector, label_provider, receiver, with_masks

ROWS = 20
SEAL = compute_sealed_length(0)
"""Bytes of the seal of a short message."""
MODES = pytest.mark.parametrize("mode", ["counts", "probabilities"])


@pytest.fixture(autouse=True, params=[4, 8])
def width(request, monkeypatch):
    """Words of 32 bits, and of 64: every claim holds for both."""
    monkeypatch.setattr(with_masks.VerticalMasks, "_compute_word_bytes", lambda way: request.param)
    return request.param


def bytes_of_a_word():
    return with_masks.VerticalMasks._compute_word_bytes(None)


def held(data):
    return np.frombuffer(data, dtype=f"<u{bytes_of_a_word()}")


def expanded(key, count):
    return expand_words(key, count, bytes_of_a_word())


def signed(found):
    return found.view(f"<i{bytes_of_a_word()}")


def far_from_counts(found):
    """At most one number as small as a count: by chance two are, once in 1e10 tests."""
    small = np.abs(signed(found)) <= (3 if bytes_of_a_word() == 4 else 10**4)
    return np.count_nonzero(small) < 2


def played(seed, mode="counts"):
    """A round without noise: manifest, columns, codes, and messages by sender and recipient."""
    columns, codes = table(ROWS, seed)
    manifest = vertical_manifest(rows=ROWS, epsilon=math.inf, mode=mode)
    _, said = vertical_round(manifest, columns, codes)
    return manifest, columns, codes, {(m.sender, m.recipient, m.kind): m.body.read() for m in said}


def uniform(rows):
    """High bits, low bits, and both of differences: each looks uniform."""
    values, steps = value_and_steps(rows, 2 ** (8 * bytes_of_a_word()))
    low = [v % 32 / 32 for row in rows for v in row]
    between = [(b - a) % 32 / 32 for row in rows for a, b in pairwise(row)]
    return all(looks_uniform(one) for one in (values, steps, low, between))


def cells_of(manifest, name, columns):
    """The zeros and ones, and the weights, of a provider's rows."""
    way = with_masks.VerticalMasks(manifest)
    return np.concatenate(list(way.iter_row_weights(way.layouts[name], columns)), axis=1)


def without_seals(monkeypatch):
    """The twin without seals: messages are as long, and open to all."""

    def open_(key, pieces):
        yield b"".join(pieces)[:-SEAL]

    for name, act in (
        ("seal", lambda key, pieces: [*pieces, bytes(SEAL)]),
        ("unseal", open_),
        ("unseal_bytes", lambda key, content: content[:-SEAL]),
    ):
        modules = (label_provider, collector, receiver, with_masks)
        patched = [module for module in modules if hasattr(module, name)]
        assert patched, f"nothing there is called {name}"
        for module in patched:
            monkeypatch.setattr(module, name, act)


def without_pads(monkeypatch):
    """The twin in which the opener's pad is left out."""
    real = with_masks.VerticalMasks.derive_pair_key
    monkeypatch.setattr(
        with_masks.VerticalMasks,
        "derive_pair_key",
        lambda way, own, other, purpose: (
            b"nothing" if purpose == "opening" else real(way, own, other, purpose)
        ),
    )
    monkeypatch.setattr(
        with_masks,
        "expand_words",
        lambda key, count, width: (
            np.zeros(count, f"<u{width}") if key == b"nothing" else expand_words(key, count, width)
        ),
    )


# ---------------------------------------------------------------- attacks, as code


def labels_by_the_collector(manifest, said):
    """G + B: the collector carries G and has dealt B."""
    payload = said["labels", NAMES[0], "labels"][: bytes_of_a_word() * 2 * ROWS]
    dealt = expanded(shared(manifest, "collector", "labels", "dealt rows"), 2 * ROWS)
    return signed(held(payload) + dealt).reshape(ROWS, 2)


def cells_by_the_collector(manifest, said, name, cells):
    """E + A: the collector carries E and has dealt A."""
    payload = said[name, "labels", "tables"][: bytes_of_a_word() * cells * ROWS]
    dealt = expanded(shared(manifest, "collector", name, "dealt rows"), cells * ROWS)
    return signed(held(payload) + dealt).reshape(ROWS, cells)


def combination_by_a_provider(manifest, correction, labels, cells):
    """Z' + Z + G^T A = L^T A: with the correction a provider could test any guess of labels."""
    name = NAMES[1]
    dealt = expanded(shared(manifest, name, "collector", "dealt rows"), cells * ROWS)
    sums = expanded(shared(manifest, name, "collector", "dealt sums"), 2 * cells)
    of_labels = np.einsum("rc,rd->cd", labels, dealt.reshape(ROWS, cells)).reshape(-1)
    found = held(correction)[-2 * cells :] + sums + of_labels
    return dealt.reshape(ROWS, cells), found.reshape(2, cells)


def sums_by_a_provider(manifest, shares):
    """Shares without one's own pads: sums that lack the collector's noise."""
    way = with_masks.VerticalMasks(manifest)
    count = way.layouts[NAMES[1]].size
    pads = expanded(shared(manifest, NAMES[1], manifest.opener.name, "opening"), count)
    return signed(held(shares)[-count:] - pads)


# ---------------------------------------------------------------- the twins fall


def test_without_seals_the_collector_reads_labels_and_cells(monkeypatch):
    without_seals(monkeypatch)
    manifest, columns, codes, said = played(1)
    assert np.array_equal(labels_by_the_collector(manifest, said), np.eye(2, dtype=int)[codes])
    cells = cells_of(manifest, NAMES[0], columns)
    found = cells_by_the_collector(manifest, said, NAMES[0], cells.shape[1])
    assert np.array_equal(found, cells)


def test_without_seals_a_provider_tests_guesses_of_labels_and_reads_sums(monkeypatch):
    without_seals(monkeypatch)
    manifest, columns, codes, said = played(2)
    cells = cells_of(manifest, NAMES[1], columns)
    hidden = held(said["labels", NAMES[1], "labels"][: bytes_of_a_word() * 2 * ROWS]).reshape(
        ROWS, 2
    )
    correction = said["collector", "labels", "correction"][:-SEAL]
    dealt, found = combination_by_a_provider(manifest, correction, hidden, cells.shape[1])
    right = np.eye(2, dtype=hidden.dtype)[codes]
    assert np.array_equal(np.einsum("rc,rd->cd", right, dealt), found)
    assert not np.array_equal(np.einsum("rc,rd->cd", right[::-1], dealt), found)
    shares = said["labels", "collector", "shares"][:-SEAL]
    exact = manifest.layout.select_features(("size",)).count_rows(columns, codes)
    assert np.array_equal(sums_by_a_provider(manifest, shares), exact)


@pytest.mark.slow
def test_without_pads_collector_and_label_provider_see_sums(monkeypatch):
    without_pads(monkeypatch)
    rows = []
    for seed in range(20):
        manifest, columns, codes, said = played(seed)
        key = shared(manifest, "collector", "labels", "shares")
        rows.append(held(unseal_bytes(key, said["labels", "collector", "shares"])).tolist())
    exact = [
        manifest.layout.select_features(c).count_rows(columns, codes)
        for c in manifest.columns.values()
    ]
    assert np.array_equal(signed(np.array(rows[-1], held(b"").dtype)), np.concatenate(exact))
    assert not uniform(rows)


# ---------------------------------------------------------------- the protocol stands


@pytest.mark.slow
@MODES
def test_the_collector_opens_nothing_that_it_carries(mode):
    """Neither with any key of its own, nor by taking away what it dealt; bytes look uniform."""
    seen = []
    for seed in range(10):
        manifest, columns, _, said = played(seed, mode)
        carried = {key: payload for key, payload in said.items() if "collector" not in key[:2]}
        assert len(carried) == 4
        for (sender, recipient, kind), payload in carried.items():
            for other in (sender, recipient):
                for purpose in ("labels", "tables", "dealt rows", "dealt sums", "opening"):
                    key = shared(manifest, "collector", other, purpose)
                    with pytest.raises(ProtocolError, match="cannot be opened"):
                        unseal_bytes(key, payload[:-32])
            assert kind in ("labels", "tables")
            seen.append(np.frombuffer(payload, np.uint8))
        found = labels_by_the_collector(manifest, said)
        assert far_from_counts(found)
        cells = cells_of(manifest, NAMES[0], columns)
        found = cells_by_the_collector(manifest, said, NAMES[0], cells.shape[1])
        assert far_from_counts(found)
    counts = np.bincount(np.concatenate(seen), minlength=256)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_all_that_the_collector_opens_is_uniform_in_mode_counts():
    shares, totals = [], []
    for seed in range(60):
        manifest, _, _, said = played(seed)
        key = shared(manifest, "collector", "labels", "shares")
        shares.append(held(unseal_bytes(key, said["labels", "collector", "shares"])).tolist())
        key = shared(manifest, "collector", "receiver", "total")
        totals.append(held(unseal_bytes(key, said["collector", "receiver", "total"])).tolist())
    assert uniform(shares)
    assert uniform(totals)


@pytest.mark.slow
@MODES
def test_all_that_the_label_provider_opens_is_uniform(mode):
    """E, S, Z' and what it makes of them; and differences between rows, cells and classes."""
    seen = {"rows": [], "padded": [], "correction": [], "sums": []}
    for seed in range(40):
        manifest, _, codes, said = played(seed, mode)
        way = with_masks.VerticalMasks(manifest)
        key = shared(manifest, "labels", "collector", "correction")
        dealt = unseal_bytes(key, said["collector", "labels", "correction"])
        seen["correction"].append(held(dealt).tolist())
        start = 0
        for name in NAMES[:2]:
            key = shared(manifest, "labels", name, "tables")
            content = unseal_bytes(key, said[name, "labels", "tables"][:-32])
            size = way.compute_sums_size(name)
            seen["rows"].append(held(content[:-size]).tolist())
            seen["padded"].append(held(content[-size:]).tolist())
            payload = Payload(said[name, "labels", "tables"]).get_slice(0, -32)
            add_up = way.make_table_summer(PARTIES["labels"], PARTIES[name].card, payload, codes)
            sums = add_up(None, dealt[start : start + size])
            seen["sums"].append(held(sums).tolist())
            start += size
    for rows in seen.values():
        assert uniform(rows)


@pytest.mark.slow
@MODES
def test_all_that_a_provider_opens_is_uniform(mode):
    """G; it can open neither the correction nor the shares, which the collector serves to all."""
    seen = []
    for seed in range(40):
        manifest, _, _, said = played(seed, mode)
        hidden = {
            unseal_bytes(shared(manifest, n, "labels", "labels"), said["labels", n, "labels"][:-32])
            for n in NAMES[:2]
        }
        seen += [held(one).tolist() for one in hidden]  # one and the same
        for name in NAMES[:2]:
            for sealed_one in (
                said["collector", "labels", "correction"],
                said["labels", "collector", "shares"],
            ):
                for other in ("collector", "labels"):
                    for purpose in ("correction", "shares", "labels", "tables", "dealt rows"):
                        with pytest.raises(ProtocolError, match="cannot be opened"):
                            unseal_bytes(shared(manifest, name, other, purpose), sealed_one)
        shares = said["labels", "collector", "shares"][:-SEAL]
        assert far_from_counts(sums_by_a_provider(manifest, shares))
    assert len(seen) == 40
    assert uniform(seen)
