"""Noise in shares, and pads that cancel: the laws compared number by number, not by eye."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from noise_laws import TAIL, laplace_law, share_law, sum_law, worst_ratio
from round_fixtures import acquainted
from scipy import stats

from discreet.errors import PrivacyError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.crypto.masks import (
    EXCESS_BITS,
    Pads,
    compute_tag,
    derive_pair_key,
    expand_residues,
    expand_words,
)
from discreet.federated.crypto.noise import PolyaShares, _draw_uniform, draw_polya
from discreet.federated.crypto.sealing import seal_bytes, unseal_bytes
from discreet.federated.refusals import ProtocolError
from discreet.randomness import CryptoRandom, SeededRandom

FALSE_ALARM = 1e-6
"""Chance that a statistical test here fails although everything is right."""


@pytest.mark.parametrize(("parties", "tolerated"), [(2, 0), (2, 1), (3, 1), (5, 2), (8, 1)])
def test_any_s_minus_t_shares_together_are_exactly_discrete_laplace(parties, tolerated):
    scale = 4.0
    law = sum_law(scale, parties - tolerated, parties - tolerated)
    np.testing.assert_allclose(law, laplace_law(scale), rtol=0, atol=1e-12)
    assert worst_ratio(law) <= 1 / scale + 1e-6


@pytest.mark.parametrize(("parties", "tolerated"), [(2, 1), (3, 1), (5, 2)])
def test_all_s_shares_sum_to_the_stated_law_and_keep_the_promise(parties, tolerated):
    scale, shares = 4.0, PolyaShares(4.0, parties, tolerated)
    law = sum_law(scale, shares.required_shares, parties)
    k = np.arange(-TAIL, TAIL + 1)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert (law * k**2).sum() == pytest.approx(shares.variance, rel=1e-9)
    whole = stats.nbinom.pmf(
        np.arange(TAIL + 1), parties / shares.required_shares, -math.expm1(-1 / scale)
    )
    np.testing.assert_allclose(law, np.convolve(whole, whole[::-1]), rtol=0, atol=1e-12)
    assert worst_ratio(law) <= 1 / scale + 1e-6


@pytest.mark.parametrize(("parties", "tolerated"), [(3, 1), (5, 2), (8, 1)])
def test_with_one_share_less_than_promised_the_promise_fails(parties, tolerated):
    """The known-bad twin: t + 1 missing or colluding parties."""
    scale = 4.0
    law = sum_law(scale, parties - tolerated, parties - tolerated - 1)
    assert worst_ratio(law) > 1.05 / scale


@pytest.mark.parametrize(("scale", "parts"), [(0.7, 2), (5.0, 3), (40.0, 15), (3.0, 200)])
def test_the_sampler_draws_the_polya_law(scale, parts):
    """Chi-square against the law, false-alarm rate 1e-6."""
    draws = draw_polya(scale, parts, 200_000, CryptoRandom())
    law = stats.nbinom(1 / parts, -math.expm1(-1 / scale))
    edges, last = [0], 0
    while law.sf(last - 1) * len(draws) > 60:
        last += 1
        if (law.cdf(last - 1) - law.cdf(edges[-1] - 1)) * len(draws) > 30:
            edges.append(last)
    observed = np.histogram(draws, [*edges, 1 << 62])[0]
    expected = len(draws) * np.diff([*law.cdf(np.array(edges) - 1), 1.0])
    kept = expected > 5
    observed = np.append(observed[kept], observed[~kept].sum())
    expected = np.append(expected[kept], expected[~kept].sum() + 1e-9)
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > (
        FALSE_ALARM
    )


def test_the_chi_square_would_notice_a_wrong_shape():
    """The known-bad twin: shape 1/4 held against the law of shape 1/3."""
    draws = draw_polya(5.0, 4, 200_000, SeededRandom(1))
    zero = stats.nbinom.pmf(0, 1 / 3, -math.expm1(-1 / 5.0))
    assert stats.binomtest(int((draws == 0).sum()), len(draws), zero).pvalue < FALSE_ALARM


def test_given_the_geometric_draw_the_urn_is_exact():
    """P(kept = x | g) of the cutting equals the beta-binomial of the Polya urn, in fractions."""

    def cutting(g, m):
        """By recursion on the first piece: uniform length, kept with 1/m."""
        if g == 0:
            return {0: Fraction(1)}
        law = {}
        for piece in range(1, g + 1):
            for x, p in cutting(g - piece, m).items():
                law[x] = law.get(x, Fraction(0)) + p * Fraction(m - 1, m) / g
                law[x + piece] = law.get(x + piece, Fraction(0)) + p * Fraction(1, m) / g
        return law

    def urn(g, m):
        """Ball by ball: with x of i balls mine, the next is mine with (1/m + x) / (1 + i)."""
        law = {0: Fraction(1)}
        for i in range(g):
            after = {}
            for x, p in law.items():
                mine = (Fraction(1, m) + x) / (1 + i)
                after[x] = after.get(x, Fraction(0)) + p * (1 - mine)
                after[x + 1] = after.get(x + 1, Fraction(0)) + p * mine
            law = after
        return law

    for m in (2, 3, 7):
        for g in range(8):
            assert cutting(g, m) == urn(g, m)


def test_scales_from_none_to_enormous():
    assert not PolyaShares(0, 3).draw_share(5, CryptoRandom()).any()
    huge = PolyaShares(2**40, 3).draw_share(50, CryptoRandom())
    assert np.abs(huge).max() > 2**30
    with pytest.raises(PrivacyError, match="out of range"):
        PolyaShares(2**60, 3)
    for tolerated in (-1, 3):
        with pytest.raises(PrivacyError, match="parties"):
            PolyaShares(1, 3, tolerated)


@pytest.fixture(scope="module")
def people():
    return [Identity.generate(f"provider-{i}") for i in range(4)]


ROUND = b"manifest hash one".ljust(32)


def all_pads(people, opener=None, manifest=ROUND):
    if opener is None:
        acquainted(people, manifest)
    cards = [one.card for one in people]
    return [Pads(one, cards, opener, manifest) for one in people]


def test_masks_sum_to_zero_modulo_2_to_the_64(people):
    total = sum(pads.sum_words(100) for pads in all_pads(people))
    assert not total.any()


def test_the_product_of_all_blinding_factors_is_one(people, small_key):
    n = small_key.public.n
    pads = [pads.sum_residues(5, n) for pads in all_pads(people)]
    for q in range(5):
        product = 1
        for own in pads:
            product = product * (1 + n * own[q]) % n**2
        assert product == 1


def test_without_one_provider_the_rest_stays_hidden(people):
    total = sum(pads.sum_words(100) for pads in all_pads(people)[:-1])
    assert np.unique(total).size == 100


def test_the_opener_alone_can_take_its_pads_away(people, small_key):
    opener, n = Identity.generate("receiver"), small_key.public.n
    acquainted([*people, opener], ROUND)
    keys = [derive_pair_key(opener, one.card, ROUND, "opening") for one in people]
    total = sum(pads.sum_words(50) for pads in all_pads(people, opener.card))
    assert total.any()
    assert not (total - sum(expand_words(key, 50) for key in keys)).any()
    plain = np.array([p.sum_residues(3, n) for p in all_pads(people, opener.card)], dtype=object)
    own = np.array([expand_residues(key, 3, n) for key in keys], dtype=object)
    assert ((plain.sum(axis=0) - own.sum(axis=0)) % n).tolist() == [0, 0, 0]


def test_pads_are_fresh_for_every_round_position_and_purpose(people):
    one, two = people[0], people[1].card
    acquainted(people, ROUND)
    acquainted(people, b"another".ljust(32))
    keys = {
        derive_pair_key(one, two, ROUND, "pads"),
        derive_pair_key(one, two, ROUND, "opening"),
        derive_pair_key(one, two, b"another".ljust(32), "pads"),
        derive_pair_key(one, people[2].card, ROUND, "pads"),
    }
    assert len(keys) == 4
    assert derive_pair_key(people[1], one.card, ROUND, "pads") in keys
    drawn = expand_words(keys.pop(), 10_000)
    assert np.unique(drawn).size == drawn.size


def test_pads_look_uniform(people, small_key):
    """Chi-square on bytes, false-alarm rate 1e-6 each."""
    pad = all_pads(people)[0]
    counts = np.bincount(pad.sum_words(20_000).view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    n = small_key.public.n
    top = [value * 64 // n for value in pad.sum_residues(4000, n)]
    assert stats.chisquare(np.bincount(top, minlength=64)).pvalue > FALSE_ALARM
    assert EXCESS_BITS >= 128


def test_a_seal_opens_for_the_pair_only_and_shows_changes(people):
    acquainted(people, ROUND)
    key = derive_pair_key(people[0], people[1].card, ROUND, "model")
    closed = seal_bytes(key, b"probabilities")
    assert seal_bytes(key, b"probabilities") != closed  # a fresh nonce each time
    assert (
        unseal_bytes(derive_pair_key(people[1], people[0].card, ROUND, "model"), closed)
        == b"probabilities"
    )
    with pytest.raises(ProtocolError, match="cannot be opened"):
        unseal_bytes(key, closed[:-1] + bytes([closed[-1] ^ 1]))
    with pytest.raises(ProtocolError, match="cannot be opened"):
        unseal_bytes(derive_pair_key(people[2], people[0].card, ROUND, "model"), closed)
    assert compute_tag(key, b"order") != compute_tag(key, b"other order")


def test_a_key_of_low_order_is_refused(people):
    one, weak = people[0], Card("mallory", people[1].card.signing)
    one.store_session_public_keys(
        ROUND, {one.name: one.get_session_public_key(ROUND), weak.name: bytes(32)}
    )
    with pytest.raises(ProtocolError, match="is not a valid X25519 key"):
        derive_pair_key(one, weak, ROUND, "pads")


def test_a_stolen_identity_does_not_open_what_was_sent_before(people):
    acquainted(people, ROUND)
    one, two = people[:2]
    publics = {person.name: person.get_session_public_key(ROUND) for person in people}
    stolen = Identity.from_json(one.to_json())
    with pytest.raises(ProtocolError, match="no key with"):
        derive_pair_key(stolen, two.card, ROUND, "model")
    with pytest.raises(ProtocolError, match="which is lost"):
        stolen.store_session_public_keys(ROUND, publics)
    one.delete_session(ROUND)
    with pytest.raises(ProtocolError, match="no key with"):
        derive_pair_key(one, two.card, ROUND, "model")


def test_twin_with_the_key_of_the_round_a_stolen_identity_opens_everything(people):
    """Stolen too early, before the key is deleted, or from a backup that still holds it."""
    acquainted(people, ROUND)
    one, two = people[:2]
    closed = seal_bytes(derive_pair_key(two, one.card, ROUND, "model"), b"probabilities")
    publics = {person.name: person.get_session_public_key(ROUND) for person in people}
    stolen = Identity.from_json(one.to_json())
    stolen.resume_session(ROUND, one.get_session_private_key(ROUND))
    stolen.store_session_public_keys(ROUND, publics)
    assert (
        unseal_bytes(derive_pair_key(stolen, two.card, ROUND, "model"), closed) == b"probabilities"
    )


def test_what_a_party_draws_is_the_difference_of_two_polya_draws():
    """Counts of -6 … 6 in 40000 draws, six deviations each; one-sided noise is the twin."""
    shares, size = PolyaShares(2, 3, 1), 40_000
    expected = size * share_law(2.0, shares.required_shares)[TAIL - 6 : TAIL + 7]

    def fits(drawn):
        found = np.array([np.count_nonzero(drawn == k) for k in range(-6, 7)])
        return bool((np.abs(found - expected) < 6 * np.sqrt(expected)).all())

    assert fits(shares.draw_share(size, SeededRandom(5)))
    assert not fits(draw_polya(2, shares.required_shares, size, SeededRandom(5)))


class Words:
    """A source whose words are known."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


def test_words_at_the_top_are_drawn_again():
    """Below 3/8 of 2^64 a remainder of the last quarter of all words would come up too often."""
    eighth = 1 << 61
    bound = np.array([3 * eighth])
    for place in range(8):
        source = Words(place * eighth + 7, 11)
        expected = place % 3 * eighth + 7 if place < 6 else 11
        assert _draw_uniform(bound, source).tolist() == [expected]
        assert len(source.left) == (1 if place < 6 else 0)
    last = 6 * eighth - 1  # of the words that are taken
    assert _draw_uniform(bound, Words(last, 11)).tolist() == [3 * eighth - 1]
    assert _draw_uniform(bound, Words(last + 1, 11)).tolist() == [11]
    both = _draw_uniform(np.array([3 * eighth, 5]), Words(6 * eighth + 7, 12, 11))
    assert both.tolist() == [11, 2]  # each by its own bound
    bounds = np.array([3 * eighth, 1 << 62, 5])
    top = (1 << 64) - 1
    assert _draw_uniform(bounds, Words(top, top, top, top - 1, 4, 9)).tolist() == [
        4,
        (1 << 62) - 1,
        4,
    ]


def test_twin_without_rejection_favours_small_remainders():
    """Of eight equally likely words the first two thirds get three each, the last one two."""
    eighth = 1 << 61
    plain = [place * eighth % (3 * eighth) // eighth for place in range(8)]
    assert [plain.count(third) for third in range(3)] == [3, 3, 2]
    drawn = [
        _draw_uniform(np.array([3 * eighth]), Words(place * eighth, third * eighth))[0] // eighth
        for place in range(8)
        for third in range(3)
    ]
    assert [drawn.count(third) for third in range(3)] == [8, 8, 8]
