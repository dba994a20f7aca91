"""Attacks A to E succeed on the construction as published, and the same code fails on ours.

Ours is put at its weakest: one counter a ciphertext, every ciphertext captured, and the attacker
holds the Paillier key.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from published import PUBLIC_FACTOR, PublishedRound, draw_blinding_factors
from round_fixtures import (
    NAMES,
    PARTIES,
    horizontal_manifest,
    horizontal_round,
    table,
    vector_of,
    vertical_manifest,
    vertical_round,
)
from scipy import stats
from uniformity import FALSE_ALARM, looks_uniform, shared, value_and_steps

from discreet.federated.crypto.masks import derive_pair_key, expand_residues
from discreet.federated.crypto.packing import Slots
from discreet.federated.crypto.paillier import Encryptor, generate_key
from discreet.federated.crypto.sealing import unseal_bytes
from discreet.federated.horizontal.arithmetic import make_slots, open_totals
from discreet.papers.published_parties import center_residue, recover_pad


@pytest.fixture(scope="module")
def other_key():
    return generate_key(1024, allow_small=True)


@pytest.fixture
def one_counter_a_ciphertext(monkeypatch):
    monkeypatch.setattr(Slots, "size", property(lambda self: 1))


def provider_counts(seed, rows=60):
    """Class totals and the class-by-value tables of two features, of 2 and 3 values."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, rows)
    tables = []
    for size in (2, 3):
        counts = np.zeros((2, size), dtype=int)
        np.add.at(counts, (codes, rng.integers(0, size, rows)), 1)
        tables.append(counts)
    return np.bincount(codes, minlength=2), tables


@pytest.fixture(scope="module")
def broken(small_key, other_key):
    return PublishedRound(small_key, other_key, [provider_counts(seed) for seed in range(3)])


# ---------------------------------------------------------------- the attacks, as code


def quotient(key, one, two):
    """A and D: the quotient of two ciphertexts of one provider, decrypted."""
    modulus = key.public.n_squared
    return center_residue(
        key.decrypt(int(one) * pow(int(two), -1, int(modulus)) % modulus), key.public.n
    )


def under_pad(key, ciphertext, pad):
    return center_residue(key.decrypt(int(ciphertext)) - pad, key.public.n)


# ---------------------------------------------------------------- on the published construction


def test_the_published_round_works_when_nobody_attacks(broken):
    exact = [
        sum(c[0] for c in broken.counts),
        *(sum(c[1][j] for c in broken.counts) for j in (0, 1)),
    ]
    for found, total, noise in zip(
        broken.open_collector_totals(), exact, broken.noise, strict=True
    ):
        assert np.array_equal(found, total * PUBLIC_FACTOR + noise)


def test_attack_a_the_collector_reads_count_differences(broken, small_key):
    for (_, tables), submitted in zip(broken.counts, broken.collector_submissions, strict=True):
        found = quotient(small_key, submitted[1][0, 0], submitted[1][1, 1])
        assert found == (tables[0][0, 0] - tables[0][1, 1]) * PUBLIC_FACTOR


def collector_reads_everything(broken, key):
    """B for every provider: the pads, and with them all exact counts."""
    pads, counts = [], []
    for submitted in broken.collector_submissions:
        pads.append(recover_pad(key, submitted[0][0], submitted[1][0]))
        read = [[under_pad(key, c, pads[-1]) for c in part.ravel()] for part in submitted]
        counts.append(read)
    return pads, counts


def test_attack_b_the_collector_reads_every_count_of_every_provider(broken, small_key):
    _, counts = collector_reads_everything(broken, small_key)
    for own, read in zip(broken.counts, counts, strict=True):
        for true, found in zip([own[0], *own[1]], read, strict=True):
            assert [PUBLIC_FACTOR * int(one) for one in np.ravel(true)] == found


def test_attack_b2_the_collector_reads_the_noise(broken, small_key):
    pads, _ = collector_reads_everything(broken, small_key)
    n = small_key.public.n
    own = small_key.decrypt(broken.collector_factors[0])
    of_noise = -(own + sum(pads)) % n  # the product of all factors is one
    for true, token in zip(broken.noise, broken.noise_token, strict=True):
        found = [under_pad(small_key, one, of_noise) for one in token.ravel()]
        assert found == true.ravel().tolist()


def test_attack_c_the_receiver_reads_the_class_totals(broken):
    _, tables = broken.open_receiver_quotients()
    for i, total in enumerate(sum(own[0] for own in broken.counts)):
        seen = [value for one in tables for value in one[i]]
        n = broken.receiver_key.public.n
        assert math.gcd(*(center_residue(value, n) for value in seen)) % int(total) == 0
        assert math.gcd(*(center_residue(value, n) for value in seen)) <= 4 * int(total)


def test_attack_d_the_receiver_reads_differences_of_each_provider(broken, other_key):
    for (totals, _), submitted in zip(broken.counts, broken.receiver_submissions, strict=True):
        assert quotient(other_key, *submitted) == totals[0] - totals[1]


def test_attack_e_as_printed_it_does_not_even_decrypt(small_key):
    key, encryptor = small_key.public, Encryptor(small_key.public)
    product = key.add([*draw_blinding_factors(small_key, 3, key.n), encryptor.encrypt(5)])
    assert small_key.decrypt(product) != 5
    product = key.add([*draw_blinding_factors(small_key, 3), encryptor.encrypt(5)])
    assert small_key.decrypt(product) == 5


# ---------------------------------------------------------------- on ours, with the same code


@pytest.fixture
def ours(small_key, one_counter_a_ciphertext):
    """A round with a class margin, as the published one has; the attacker has the key."""
    manifest = horizontal_manifest(small_key, margin=1, moments=())
    exact = [manifest.layout.count_rows(*table(60, seed)) for seed in range(3)]
    release, said = horizontal_round(manifest, exact, small_key)
    count = manifest.layout.size
    seen = [small_key.public.from_bytes(one.body.read(), count) for one in said[:-1]]
    return manifest, exact, seen, release


FAR = 2**128
"""Counts are far below; a uniform residue mod N is below with a chance of 2^-895."""


def test_attacks_a_and_d_fail_on_ours(ours, small_key):
    _, _, seen, _ = ours
    for submitted in seen:
        for one, two in pairwise(submitted):
            assert abs(quotient(small_key, one, two)) > FAR


def test_attacks_b_and_b2_fail_on_ours(ours, small_key):
    manifest, exact, seen, _ = ours
    offset = make_slots(manifest)[1].offset
    blocks = [(block, part) for block, part in manifest.layout.split(np.arange(len(exact[0])))]
    pads = []
    for submitted in seen:
        cells = [submitted[i] for i in blocks[1][1][0]]
        pads.append(recover_pad(small_key, submitted[blocks[0][1][0, 0]], cells))
        read = [under_pad(small_key, one, pads[-1]) - offset for one in submitted]
        assert min(map(abs, read)) > FAR
    # B2: what the pads add up to is known from the noised totals alone, and is not the noise
    n, shift = small_key.public.n, 3 * offset
    opened = [sum(map(small_key.decrypt, column)) - shift for column in zip(*seen, strict=True)]
    noised = [center_residue(one, n) for one in opened]
    cells, total = blocks[1][1][0], blocks[0][1][0, 0]
    gap = sum(noised[i] for i in cells) - noised[total] + (len(cells) - 1) * shift
    assert (sum(pads) * (len(cells) - 1) - gap) % n == 0
    read = [center_residue(one - sum(pads), n) for one in opened]
    assert not set(read) & set(sum(exact).tolist())


def test_attack_c_fails_on_ours(ours):
    """The receiver sees noised totals and their smoothed logarithms: no multiple of n_i."""
    _, exact, _, release = ours
    totals = sum(exact)[:2]
    for i in range(2):
        rows = [one.counts[i].astype(int).tolist() for one in release.statistics.tables.values()]
        assert math.gcd(*(value for row in rows for value in row)) < totals[i]
        factors_seen = [f.log_probability[i] for f in release.model.factors]
        steps = [int(x) for part in factors_seen for x in np.floor(part * 2**16) if x]
        assert math.gcd(*steps) < totals[i]


# ---------------------------------------------------------------- transcripts


@pytest.mark.slow
def test_what_the_published_collector_sees_is_not_uniform(small_key, other_key):
    """The known-bad twin of the checks below: differences within a submission are counts."""
    n, rows = small_key.public.n, []
    for seed in range(12):
        broken = PublishedRound(small_key, other_key, [provider_counts(seed + k) for k in range(2)])
        for submitted in broken.collector_submissions:
            rows.append([small_key.decrypt(int(c)) for part in submitted for c in part.ravel()])
    _, steps = value_and_steps(rows, n)
    assert not looks_uniform(steps)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["counts", "probabilities"])
def test_ciphertexts_of_a_provider_are_uniform_even_to_the_key_owner(
    mode, small_key, one_counter_a_ciphertext
):
    n, rows = small_key.public.n, []
    for seed in range(12):
        manifest = horizontal_manifest(small_key, mode=mode, moments=())
        exact = [manifest.layout.count_rows(*table(30, seed + k)) for k in range(3)]
        _, said = horizontal_round(manifest, exact, small_key)
        for one in said[:3]:
            hidden = small_key.public.from_bytes(one.body.read(), manifest.layout.size)
            rows.append([small_key.decrypt(c) for c in hidden])
    values, steps = value_and_steps(rows, n)
    assert looks_uniform(values)
    assert looks_uniform(steps)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["counts", "probabilities"])
def test_masked_messages_are_uniform_to_all_but_the_opener(mode):
    """Every submission; sums of two; and in mode counts the total that the collector sends."""
    seen = {"one": [], "two": [], "total": []}
    for seed in range(60):
        manifest = horizontal_manifest(mode=mode, moments=())
        exact = [manifest.layout.count_rows(*table(30, seed + k)) for k in range(3)]
        _, said = horizontal_round(manifest, exact)
        words = [np.frombuffer(one.body.read(), dtype="<u8").astype(np.uint64) for one in said[:3]]
        seen["one"] += [own.tolist() for own in words]
        seen["two"].append((words[0] + words[2]).tolist())
        seen["total"].append(sum(words[1:], words[0]).tolist())
    for rows in seen.values():
        values, steps = value_and_steps(rows, 2**64)
        assert looks_uniform(values)
        assert looks_uniform(steps)


def test_a_sealed_model_shows_nothing_but_its_length():
    manifest = horizontal_manifest(mode="probabilities")
    exact = [manifest.layout.count_rows(*table(30, k)) for k in range(3)]
    payload = horizontal_round(manifest, exact)[1][-1].body.read()
    counts = np.bincount(np.frombuffer(payload, np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_a_vertical_transcript_is_encrypted_or_uniform(small_key):
    """Labels: fresh ciphertexts. Tables, to the label provider: uniform. Sums: uniform."""
    n, modulus = small_key.public.n, int(small_key.public.n_squared)
    ciphertexts, padded, residue = [], [], {"shares": [], "total": []}
    for seed in range(25):
        columns, codes = table(20, seed)
        manifest = vertical_manifest(small_key, rows=20)
        _, said = vertical_round(manifest, columns, codes, small_key)
        labels = small_key.public.from_bytes(said[0].body.read()[:-32], 20)
        assert len(set(labels)) == 20
        ciphertexts += [int(one) / modulus for one in labels]
        for one in said[2:4]:
            count = len(one.body.read()) // small_key.public.ciphertext_bytes
            hidden = small_key.public.from_bytes(one.body.read()[:-32], count)
            padded.append([small_key.decrypt(c) for c in hidden])
        for one in said[4:]:
            content = one.body.read()
            other = "labels" if one.kind == "shares" else "receiver"
            content = unseal_bytes(shared(manifest, "collector", other, one.kind), content)
            parts = [content[i : i + 128] for i in range(0, len(content), 128)]
            residue[one.kind].append([int.from_bytes(part, "big") for part in parts])
    assert looks_uniform(ciphertexts)
    for rows in (padded, *residue.values()):
        values, steps = value_and_steps(rows, n)
        assert looks_uniform(values)
        assert not steps or looks_uniform(steps)


@pytest.mark.slow
def test_refreshed_ciphertexts_do_not_show_which_rows_were_multiplied(small_key):
    """The label provider knows its own randomness; without a refresh it finds the rows."""
    key, p = small_key.public, small_key.p
    labels = [Encryptor(key).encrypt(1) for _ in range(2)]
    subset = labels[0]
    assert int(subset) % p == int(labels[0]) % p  # the twin: the random part gives the row away
    parts = [int(key.refresh_ciphertext(subset)) % p / p for _ in range(600)]
    assert looks_uniform(parts)


# ---------------------------------------------------------------- the two privacy goals


def submissions_in(world, manifest_of, repeats):
    """All submitted words of provider 0 in repeated rounds of one world."""
    found = []
    for _ in range(repeats):
        manifest = manifest_of()
        exact = world(manifest)
        _, said = horizontal_round(manifest, exact)
        found.append(np.frombuffer(said[0].body.read(), dtype="<u8").astype(np.uint64))
    return np.concatenate(found)


def same_law(one, two):
    """Two-sample Kolmogorov-Smirnov on the words and chi-square on their five lowest bits.

    Some 1,400 words a side: 32 cells hold about 44 each. In 256 cells, one would be empty on
    both sides once in 300 runs, and chi-square is not defined there.
    """
    scaled = [words / 2.0**64 for words in (one, two)]
    low = [np.bincount((words % 32).astype(np.uint8), minlength=32) for words in (one, two)]
    return (
        min(stats.ks_2samp(*scaled).pvalue, stats.chi2_contingency(np.array(low)).pvalue)
        > FALSE_ALARM / 2
    )


@pytest.mark.slow
def test_statistics_privacy_a_large_table_looks_like_an_empty_one():
    """n, n_i and n_ij(v): submissions of 100 000 rows and of none follow the same law."""
    empty = lambda m: [np.zeros(m.layout.size, dtype=np.int64)] * 3  # noqa: E731
    large = lambda m: [np.full(m.layout.size, 100_000, dtype=np.int64)] * 3  # noqa: E731
    make = lambda: horizontal_manifest(moments=())  # noqa: E731
    assert same_law(submissions_in(empty, make, 60), submissions_in(large, make, 60))


@pytest.mark.slow
def test_ownership_privacy_who_holds_a_value_does_not_show():
    """The same joint table; the one person with a rare value is at provider 0, or at provider 1."""

    def world(holder):
        def make(manifest):
            exact = [np.zeros(manifest.layout.size, dtype=np.int64) for _ in range(3)]
            exact[holder][0] = 1
            return exact

        return make

    make = lambda: horizontal_manifest(moments=(), epsilon=math.inf)  # noqa: E731
    assert same_law(submissions_in(world(0), make, 60), submissions_in(world(1), make, 60))
    released = [
        vector_of(m, horizontal_round(m, world(holder)(m))[0].statistics)
        for holder in (0, 1)
        for m in [make()]
    ]
    assert np.array_equal(*released)  # with noise off, even the result is the same


def test_ownership_shows_in_the_published_construction(small_key, other_key):
    """The known-bad twin: the quotient with a cell that nobody has says who holds the value."""
    for holder in (0, 1):
        counts = [(np.zeros(2, int), [np.zeros((2, 2), int)]) for _ in range(2)]
        counts[holder][1][0][0, 0] = 1
        broken = PublishedRound(small_key, other_key, counts)
        seen = [
            quotient(small_key, own[1][0, 0], own[1][1, 1]) for own in broken.collector_submissions
        ]
        assert [one // PUBLIC_FACTOR for one in seen] == [int(holder == k) for k in (0, 1)]


def test_the_collector_cannot_open_what_the_receiver_opens(small_key):
    """Mode counts: without the receiver's pads a masked total is no total at all."""
    manifest = horizontal_manifest(epsilon=math.inf, moments=())
    exact = [manifest.layout.count_rows(*table(30, k)) for k in range(3)]
    _, said = horizontal_round(manifest, exact)
    content = unseal_bytes(shared(manifest, "collector", "receiver", "total"), said[-1].body.read())
    total = np.frombuffer(content, dtype="<u8").astype(np.uint64).view(np.int64)
    assert np.abs(total).min() > 10**6  # false alarm below 30 * 2^-42
    forged = open_totals(PARTIES["collector"], manifest, None, content)
    assert np.abs(forged).min() > 10**6
    found = open_totals(PARTIES["receiver"], manifest, None, content)
    assert np.array_equal(found, sum(exact))


def test_vertical_pads_are_known_to_provider_and_opener_only(small_key):
    manifest = vertical_manifest(small_key)
    n, provider = small_key.public.n, PARTIES[NAMES[0]]
    own = expand_residues(
        derive_pair_key(provider, manifest.opener, manifest.hash, "opening"), 2, n
    )
    opener = PARTIES["receiver"]
    assert (
        expand_residues(derive_pair_key(opener, provider.card, manifest.hash, "opening"), 2, n)
        == own
    )
    for other in ("collector", "labels", "hospital-b"):
        key = derive_pair_key(PARTIES[other], provider.card, manifest.hash, "opening")
        assert expand_residues(key, 2, n) != own
