"""Every sampler draws from exactly the distribution it names, and no stream is ever shared.

Distribution checks reject at ``ALARM`` = 1e-10 each. Fewer than 100 of them see new bytes on every
run, and the chi-square of cells of 50 understates its far tail at most some 50 times: a correct
sampler fails this file with probability below 1e-6. Those on ``SeededRandom`` never change.
"""

from __future__ import annotations

import copy
import decimal
import itertools
import math
import os
import pickle
import signal
import threading
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.randomness import CryptoRandom, Random, SeededRandom, as_random

ALARM = 1e-10
ONE = 1 << 64


class Scripted(Random):
    """Hands out the given bytes, then fails: for exact tests, draw by draw."""

    simulated = True

    def __init__(self, script: bytes) -> None:
        self.script = script

    def raw(self, count: int) -> NDArray[np.uint8]:
        assert count <= len(self.script), "asked for more bytes than the script has"
        head, self.script = self.script[:count], self.script[count:]
        return np.frombuffer(head, np.uint8).copy()


class Slow(SeededRandom):
    """Trusts floating point with nothing, so that every draw is settled in exact arithmetic."""

    margin = 2.0


def little(*words: int) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words)


def fits(drawn: NDArray[np.int64], pmf: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> bool:
    """Chi-square of the draws against a pmf over the integers; rare cells and tails are pooled."""
    low, high = int(drawn.min()) - 1, int(drawn.max()) + 1
    support = np.arange(low, high + 1)
    expected = pmf(support) * drawn.size
    observed = np.bincount(drawn - low, minlength=support.size).astype(float)
    common = expected >= 50
    observed = np.append(observed[common], observed[~common].sum())
    expected = np.append(expected[common], drawn.size - expected[common].sum())
    if expected[-1] < 50:
        expected = np.append(expected[:-2], expected[-2:].sum())
        observed = np.append(observed[:-2], observed[-2:].sum())
    assert expected.size > 1, "too few draws to tell anything"
    statistic = ((observed - expected) ** 2 / expected).sum()
    return bool(stats.chi2.sf(statistic, expected.size - 1) > ALARM)


def follows(
    drawn: NDArray[np.int64], cdf: Callable[[NDArray[np.int64]], NDArray[np.float64]]
) -> bool:
    """Dvoretzky-Kiefer-Wolfowitz: P(sup |F_n - F| > e) <= 2 exp(-2 n e^2), for any distribution."""
    values, counts = np.unique(drawn, return_counts=True)
    reached = np.cumsum(counts) / drawn.size
    gap = max(
        np.abs(reached - cdf(values)).max(),
        np.abs(np.append(0, reached[:-1]) - cdf(values - 1)).max(),
    )
    return bool(gap <= math.sqrt(math.log(2 / ALARM) / (2 * drawn.size)))


def share_fits(flags: NDArray[np.bool_], probability: float) -> bool:
    return bool(stats.binomtest(int(flags.sum()), flags.size, probability).pvalue > ALARM)


def uniform_pmf(below: int) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    return lambda x: np.where((x >= 0) & (x < below), 1 / below, 0.0)


def geometric_pmf(scale: float) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    return lambda x: np.where(x >= 0, np.exp(-x / scale) * -np.expm1(-1 / scale), 0.0)


def laplace_pmf(scale: float) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    return lambda x: np.exp(-np.abs(x) / scale) * np.tanh(1 / (2 * scale))


def gaussian_pmf(variance: float) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    far = math.ceil(40 * math.sqrt(variance)) + 1
    total = np.exp(-(np.arange(-far, far + 1.0) ** 2) / (2 * variance)).sum()
    return lambda x: np.exp(-(x.astype(float) ** 2) / (2 * variance)) / total


@pytest.fixture(params=[CryptoRandom, lambda: SeededRandom(20240607)], ids=["crypto", "seeded"])
def source(request: pytest.FixtureRequest) -> Random:
    made: Random = request.param()
    return made


# --- integers and subsets -------------------------------------------------------------------------


@pytest.mark.parametrize("below", [1, 2, 3, 7, 200, 256, 1000])
def test_integers_are_uniform(source: Random, below: int) -> None:
    drawn = source.integers(below, 200_000)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert drawn.max() < below
    assert below == 1 or fits(drawn, uniform_pmf(below))


@pytest.mark.parametrize("below", [3 << 30, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 3 << 61])
@pytest.mark.parametrize("parts", [3, 64])
def test_large_ranges_are_uniform_in_every_part(below: int, parts: int) -> None:
    drawn = SeededRandom(1).integers(below, 200_000)
    assert drawn.min() >= 0
    assert drawn.max() < below
    inside = np.arange(parts + 1, dtype=object) * below // parts  # exact, beyond float
    share = {i: int(inside[i + 1] - inside[i]) / below for i in range(parts)}
    part = np.searchsorted(inside[1:].astype(np.uint64), drawn.astype(np.uint64), side="right")
    assert fits(part, lambda x: np.array([share.get(int(i), 0.0) for i in x]))


@pytest.mark.parametrize("below", [(1 << 63) - 1, 1 << 63])
def test_integers_reach_up_to_two_to_the_63(below: int) -> None:
    drawn = SeededRandom(2).integers(below, 100_000)
    assert drawn.min() >= 0
    assert fits(drawn >> 57, uniform_pmf(64))
    assert fits(drawn & 63, uniform_pmf(64))


@pytest.mark.parametrize("below", [3, 5, 6, 7, 1 << 31, (1 << 31) + 1])
def test_small_ranges_refuse_exactly_the_excess(below: int) -> None:
    """Every value must be reached by equally many accepted 32-bit words: count them all."""
    refuse = (1 << 32) % below
    edges = [-(-(value << 32) // below) for value in range(4)]  # first word that maps to value
    for value, edge in enumerate(edges[: min(4, below)]):
        for word in (edge, edge + 1):
            accepted = (word * below) % (1 << 32) >= refuse
            script = word.to_bytes(4, "little") + (0xFFFFFFFF).to_bytes(4, "little")
            drawn = int(Scripted(script).integers(below, 1)[0])
            assert drawn == ((word * below) >> 32 if accepted else below - 1)
            assert not accepted or drawn == value


@pytest.mark.parametrize("below", [(1 << 32) + 1, 3 << 61, (1 << 63) - 3])
def test_large_ranges_refuse_exactly_the_excess(below: int) -> None:
    shift = 64 - (below - 1).bit_length()
    words = [0, below - 1, below, below + 1]
    script = little(*(word << shift for word in words), 7 << shift, 8 << shift)
    assert Scripted(script).integers(below, 4).tolist() == [0, below - 1, 7, 8]


def test_a_modulo_biased_twin_is_rejected() -> None:
    biased = SeededRandom(3).raw(200_000).astype(np.int64) % 200
    assert not fits(biased, uniform_pmf(200))


@pytest.mark.slow
@pytest.mark.parametrize(("pool", "take"), [(5, 2), (5, 3), (5, 1), (12, 3), (4, 4), (6, 5)])
def test_every_subset_is_equally_likely(source: Random, pool: int, take: int) -> None:
    drawn = np.sort(source.subsets(pool, take, 100_000), axis=1)
    number = {s: i for i, s in enumerate(itertools.combinations(range(pool), take))}
    index = np.array([number[tuple(row)] for row in drawn.tolist()])
    assert len(number) == 1 or fits(index, uniform_pmf(len(number)))


def test_subsets_have_the_promised_shape_and_no_repeats(source: Random) -> None:
    for pool, take, rows in [(10**6, 30, 500), (300, 100, 5000), (7, 0, 3), (0, 0, 2), (9, 4, 0)]:
        drawn = source.subsets(pool, take, rows)
        assert drawn.shape == (rows, take)
        assert (np.diff(np.sort(drawn, axis=1), axis=1) > 0).all()
        assert drawn.size == 0 or (drawn.min() >= 0 and drawn.max() < pool)


# --- Bernoulli ------------------------------------------------------------------------------------


@pytest.mark.parametrize("probability", [Fraction(1, 3), 0.5, 1 / 512, 0.9999, Fraction(255, 256)])
def test_bernoulli_has_its_probability(source: Random, probability: float | Fraction) -> None:
    flags = source.bernoulli(probability, 1_000_000)
    assert flags.dtype == np.bool_
    assert share_fits(flags, float(probability))


def test_certain_and_impossible_are_exact(source: Random) -> None:
    for probability in (0, 0.0, Fraction(0)):
        assert not source.bernoulli(probability, 1000).any()
    for probability in (1, 1.0, Fraction(1)):
        assert source.bernoulli(probability, 1000).all()
    assert source.bernoulli_words(ONE, 1000).all()
    assert not source.bernoulli_words(0, 1000).any()


def test_a_twin_that_ignores_ties_is_rejected() -> None:
    first = (ONE // 512) >> 56
    assert not share_fits(SeededRandom(4).raw(1_000_000) < first, 1 / 512)


thresholds = st.one_of(
    st.integers(1, ONE - 1),
    st.sampled_from([1, 2, 255, 256, 1 << 56, (1 << 56) - 1, (1 << 56) + 1, ONE - 1, ONE // 3]),
)


@given(thresholds, st.integers(-2, 2), st.binary(min_size=1, max_size=1))
def test_bernoulli_is_exactly_u_below_threshold(threshold: int, step: int, low: bytes) -> None:
    """All 256 first bytes in one call; the one tied with the threshold gets chosen later bits."""
    rest = min(max((threshold & ((1 << 56) - 1)) + step, 0), (1 << 56) - 1)
    script = bytes(range(256)) + low + rest.to_bytes(7, "little")
    flags = Scripted(script).bernoulli_words(threshold, 256)
    for first in range(256):
        assert flags[first] == (first << 56 | rest < threshold)


def test_the_rarest_and_the_surest_flags_can_happen() -> None:
    lowest, highest = bytes(9), b"\xff" * 9
    assert Scripted(lowest).bernoulli_words(1, 1)[0]
    assert not Scripted(b"\x00" + little(1 << 8)).bernoulli_words(1, 1)[0]
    assert not Scripted(highest).bernoulli_words(ONE - 1, 1)[0]
    assert Scripted(b"\xff" + little((ONE - 2) & ~0xFF)).bernoulli_words(ONE, 1)[0]


def test_bernoulli_each_compares_word_by_word(source: Random) -> None:
    words = [0, 5, 5, 5, ONE - 1, ONE - 2]
    limits = np.array([0, 4, 5, 6, ONE - 1, ONE - 1], np.uint64)
    flags = Scripted(little(*words)).bernoulli_each(limits)
    assert flags.tolist() == [False, False, False, True, False, True]
    wanted = np.repeat(np.array([ONE // 3, ONE // 100], np.uint64)[:, None], 300_000, axis=1)
    flags = source.bernoulli_each(wanted)
    assert flags.shape == wanted.shape
    assert share_fits(flags[0], 1 / 3)
    assert share_fits(flags[1], 1 / 100)


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 64, 100])
def test_bits_are_packed_bernoulli_flags(source: Random, columns: int) -> None:
    rows, threshold = 200_000 // columns, ONE // 3
    packed = source.bits(threshold, rows, columns)
    assert packed.dtype == np.uint8
    assert packed.shape == (rows, -(-columns // 8))
    flags = np.unpackbits(packed, axis=1, bitorder="little")
    assert not flags[:, columns:].any()
    flags = flags[:, :columns].astype(np.bool_)
    assert share_fits(flags, 1 / 3)
    if columns > 1:  # neighbours agree as often as independent bits do
        assert share_fits(flags[:, 1:][:, ::2] == flags[:, :-1][:, ::2], 5 / 9)


def test_bits_at_the_ends_and_of_nothing(source: Random) -> None:
    assert np.array_equal(source.bits(ONE, 2, 11), [[255, 7], [255, 7]])
    assert not source.bits(0, 3, 11).any()
    assert source.bits(ONE // 2, 0, 11).shape == (0, 2)
    assert source.bits(ONE // 2, 3, 0).shape == (3, 0)


def test_uniform_is_uniform_and_below_one() -> None:
    drawn = SeededRandom(5).uniform(200_000)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert fits((drawn * 256).astype(np.int64), uniform_pmf(256))
    assert Scripted(b"\xff" * 8).uniform(1)[0] == 1 - 2.0**-53


# --- discrete noise -------------------------------------------------------------------------------

SCALES = [0.1, 1, Fraction(7, 3), 50]
VARIANCES = [Fraction(1, 4), 1, 10, 1000]


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_geometric_and_discrete_laplace_fit_their_pmf(source: Random, scale: float) -> None:
    size = 300_000 if scale >= 1 else 3_000_000
    assert fits(source.geometric(scale, size), geometric_pmf(float(scale)))
    assert fits(source.discrete_laplace(scale, size), laplace_pmf(float(scale)))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [10**6, 1e12])
def test_wide_noise_follows_its_cdf(source: Random, scale: float) -> None:
    size = 200_000 if scale < 1e9 else 1000
    assert follows(source.geometric(scale, size), lambda x: -np.expm1(-(x + 1) / scale))
    drawn = source.discrete_laplace(scale, size)
    assert follows(drawn, lambda x: stats.laplace.cdf(x + 0.5, scale=scale))


@pytest.mark.parametrize("variance", VARIANCES)
def test_discrete_gaussian_fits_its_pmf(source: Random, variance: float) -> None:
    assert fits(source.discrete_gaussian(variance, 300_000), gaussian_pmf(float(variance)))


def test_wide_gaussian_follows_its_cdf(source: Random) -> None:
    drawn = source.discrete_gaussian(1e10, 200_000)
    assert follows(drawn, lambda x: stats.norm.cdf(x + 0.5, scale=1e5))


@pytest.mark.slow
def test_settled_in_exact_arithmetic_the_distributions_are_the_same() -> None:
    slow = Slow(6)
    for scale in (0.25, Fraction(7, 3)):
        assert fits(slow.geometric(scale, 3000), geometric_pmf(float(scale)))
        assert fits(slow.discrete_laplace(scale, 1500), laplace_pmf(float(scale)))
    for variance in (Fraction(1, 4), 10):
        assert fits(slow.discrete_gaussian(variance, 800), gaussian_pmf(float(variance)))


def test_rounded_continuous_laplace_is_rejected() -> None:
    """The textbook's noise: close, and not what the proof is about."""
    rounded = np.rint(np.random.default_rng(7).laplace(0, 1, 300_000)).astype(np.int64)
    assert not fits(rounded, laplace_pmf(1))


def test_rounded_continuous_gaussian_is_rejected() -> None:
    rounded = np.rint(np.random.default_rng(7).normal(0, 1, 300_000)).astype(np.int64)
    assert not fits(rounded, gaussian_pmf(1))


def edge(k: int, scale: Fraction) -> int:
    """floor(2^192 exp(-k / scale)): U below it, and only then, means a draw of k or more."""
    context = decimal.Context(prec=120)
    power = context.divide(
        decimal.Decimal(-k * scale.denominator), decimal.Decimal(scale.numerator)
    )
    return int(context.multiply(context.exp(power), decimal.Decimal(1 << 192)))


class Careless(Scripted):
    """The known-bad twin: believes whatever floating point says."""

    margin = -1.0


def heeds_further_bits(kind: type[Scripted], k: int, scale: Fraction) -> bool:
    """Whether U just under the edge of k gives k, and just over it k - 1; by 128 and 192 bits."""
    boundary = edge(k, scale)
    first, second, third = boundary >> 128, boundary >> 64 & ONE - 1, boundary & ONE - 1
    head = np.array([first], np.uint64)
    return all(
        kind(little(*more, last + step))._convert_to_geometric(head, scale)[0] == value
        for more, last in [([], second), ([second], third)]
        for step, value in [(-1, k), (1, k - 1)]
    )


EDGES = [(1, Fraction(1, 10)), (3, Fraction(1, 10)), (1, Fraction(1)), (17, Fraction(1))] + [
    (k, scale) for scale in (Fraction(7, 3), Fraction(10**6)) for k in (1, 2, 17)
]


@pytest.mark.parametrize(("k", "scale"), EDGES)
def test_at_the_edge_of_a_value_only_further_bits_decide(k: int, scale: Fraction) -> None:
    assert heeds_further_bits(Scripted, k, scale)


@pytest.mark.parametrize(("k", "scale"), [(1, Fraction(1)), (2, Fraction(7, 3))])
def test_a_twin_that_trusts_floating_point_is_rejected(k: int, scale: Fraction) -> None:
    assert not heeds_further_bits(Careless, k, scale)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(10**6)])
def test_fast_and_exact_agree_on_the_same_uniform(scale: Fraction) -> None:
    """On plain uniforms, and on ones crowded against the edges, where floating point errs most."""
    near = [
        (edge(k, scale) >> 128) + sign * (1 << j)
        for k in (1, 2, 5, 40)
        for j in range(0, 50, 3)
        for sign in (-1, 1)
    ]
    plain = SeededRandom(8).words(500).tolist()
    ends = [1, 2, (1 << 44) - 1, 1 << 44, ONE - 1, ONE - 2]
    words = np.array([w for w in near + plain + ends if 0 < w < ONE], np.uint64)
    assert np.array_equal(
        SeededRandom(9)._convert_to_geometric(words, scale),
        Slow(9)._convert_to_geometric(words, scale),
    )


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(10), Fraction(10**9)])
def test_fast_and_exact_acceptance_agree(variance: Fraction) -> None:
    scale = math.isqrt(math.floor(variance)) + 1
    drawn = SeededRandom(10).discrete_laplace(scale, 400)
    gamma = (np.abs(drawn) - float(variance) / scale) ** 2 / (2 * float(variance))
    edges = np.exp(-gamma) * (1 + 2.0 ** -np.arange(2, 52).repeat(8)) * (1 - 2.0**-30)
    crowded = (np.minimum(edges, 1 - 2.0**-50) * 2.0**64).astype(np.uint64)
    for words in (SeededRandom(11).words(400), crowded):
        fast = SeededRandom(12)._accept_draws(words, drawn, variance, scale)
        assert np.array_equal(fast, Slow(12)._accept_draws(words, drawn, variance, scale))


def accepts_by_further_bits(kind: type[Scripted], drawn: int, variance: Fraction) -> bool:
    """Whether U just under exp(-gamma) accepts, and just over it refuses; by bits 65 to 128."""
    scale = math.isqrt(math.floor(variance)) + 1
    gamma = (drawn - variance / scale) ** 2 / (2 * variance)
    boundary = edge(1, 1 / gamma)
    head, second = np.array([boundary >> 128], np.uint64), boundary >> 64 & ONE - 1
    values = np.array([-drawn])
    return all(
        kind(little(second + step))._accept_draws(head, values, variance, scale)[0] == accepted
        for step, accepted in [(-1, True), (1, False)]
    )


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(10), Fraction(10**9)])
@pytest.mark.parametrize("drawn", [0, 1, 3])
def test_at_the_edge_of_acceptance_only_further_bits_decide(drawn: int, variance: Fraction) -> None:
    assert accepts_by_further_bits(Scripted, drawn, variance)
    assert not accepts_by_further_bits(Careless, drawn, variance)


def test_a_uniform_of_all_zero_bits_gets_more_bits() -> None:
    """With U in [2^-128, 2^-127), -ln U lies between 88.03 and 88.72."""
    assert Scripted(little(0, 1)).geometric(Fraction(1, 88), 1)[0] == 1
    assert Scripted(little(0, 1)).geometric(Fraction(1, 89), 1)[0] == 0
    assert Scripted(little(0, 0, 1)).geometric(Fraction(1, 132), 1)[0] == 1  # 132.39 .. 133.08


def test_no_noise_is_zero(source: Random) -> None:
    for scale in (0, 0.0, Fraction(0)):
        assert source.geometric(scale, 3).tolist() == [0, 0, 0]
        assert source.discrete_laplace(scale, 3).tolist() == [0, 0, 0]
        assert source.discrete_gaussian(scale, 3).tolist() == [0, 0, 0]
    tiny = Fraction(1, 10**400)  # below every float
    assert not source.discrete_laplace(tiny, 20).any()
    assert not source.discrete_gaussian(tiny, 20).any()


@settings(max_examples=30)
@given(st.floats(0, 2**53), st.integers(0, 5))
def test_any_allowed_scale_gives_int64(scale: float, size: int) -> None:
    source = SeededRandom(13)
    for drawn in (source.discrete_laplace(scale, size), source.discrete_gaussian(scale, size)):
        assert drawn.dtype == np.int64
        assert drawn.shape == (size,)


# --- the sources ----------------------------------------------------------------------------------


def in_child(draw: Callable[[], bytes]) -> bytes:
    """Return what ``draw`` gives in a forked process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        signal.alarm(10)  # a child that waits for ever for a lock ends with no answer
        os.write(writer, draw())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        drawn = answer.read()
    os.waitpid(child, 0)
    return drawn


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@needs_fork
@pytest.mark.parametrize("count", [16, 1 << 13], ids=["buffered", "direct"])
def test_parent_and_child_never_share_a_stream(count: int) -> None:
    source = CryptoRandom()
    source.raw(16)
    children = [in_child(lambda: source.raw(count).tobytes()) for _ in range(2)]
    streams = {source.raw(count).tobytes(), *children}
    assert len(streams) == 3
    assert {len(stream) for stream in streams} == {count}


@needs_fork
def test_the_fork_check_notices_a_shared_stream() -> None:
    """The twin: a source that a child goes on with."""
    shared = SeededRandom(14)
    assert in_child(lambda: shared.raw(16).tobytes()) == shared.raw(16).tobytes()


@needs_fork
def test_a_child_forked_in_the_middle_of_a_draw_can_draw() -> None:
    source = CryptoRandom()
    with source._lock:
        assert len(in_child(lambda: source.raw(16).tobytes())) == 16


@needs_fork
def test_a_child_under_its_parents_number_has_another_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Process numbers are used again: a grandchild may bear the one of its dead grandparent."""
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    source = CryptoRandom()
    source.raw(16)
    assert in_child(lambda: source.raw(16).tobytes()) != source.raw(16).tobytes()


def count_keys(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    keys: list[bytes] = []
    system = os.urandom

    def urandom(size: int) -> bytes:
        keys.append(system(size))
        return keys[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    return keys


def test_a_fork_that_python_did_not_see_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = count_keys(monkeypatch)
    source = CryptoRandom()
    source.raw(8)
    source.raw(8)
    assert len(keys) == 1
    monkeypatch.setattr(os, "getpid", lambda: -1)
    source.raw(8)
    source.raw(8)
    assert len(set(keys)) == 2


def test_a_key_serves_no_more_bytes_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Thrifty(CryptoRandom):
        rekey_after = 1000

    keys = count_keys(monkeypatch)
    source = Thrifty()
    drawn = np.concatenate([source.words(1000), source.words(3), source.words(1000)])
    assert len(set(keys)) == len(keys) >= drawn.nbytes // 1000
    assert np.unique(drawn).size == drawn.size


def test_the_stream_is_aes_ctr_and_nothing_is_handed_out_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    keys = count_keys(monkeypatch)
    source = CryptoRandom()
    drawn = [source.words(size) for size in (600, 1, 2, 5000, 3, 1000, 500, 511, 512, 4)]
    stream = (
        Cipher(algorithms.AES(keys[0]), modes.CTR(bytes(16))).encryptor().update(bytes(1 << 18))
    )
    assert len(keys) == 1
    assert drawn[0].tobytes() == stream[:4800]
    everything = np.concatenate(drawn)
    assert np.unique(everything).size == everything.size
    assert np.isin(everything, np.frombuffer(stream, np.uint64)).all()


@pytest.mark.slow
def test_threads_never_get_the_same_block() -> None:
    source = CryptoRandom()
    drawn: list[NDArray[np.uint64]] = []

    def draw() -> None:
        drawn.extend([source.words(size % 700 + 1) for size in range(1500)])

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = np.concatenate(drawn)  # 1.6 million words: a chance repeat has probability 1e-7
    assert everything.size == 3 * sum(size % 700 + 1 for size in range(1500))
    assert np.unique(everything).size == everything.size


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_a_copy_has_a_key_of_its_own(copied: Callable[[CryptoRandom], CryptoRandom]) -> None:
    source = CryptoRandom()
    source.raw(16)
    twin = copied(source)
    assert type(twin) is CryptoRandom
    assert not np.array_equal(twin.raw(64), source.raw(64))


def test_a_pickle_holds_no_key_and_no_stream() -> None:
    source = CryptoRandom()
    source.raw(16)
    assert pickle.dumps(source) == pickle.dumps(CryptoRandom())


def test_what_was_handed_out_is_wiped_and_the_callers_own() -> None:
    source = CryptoRandom()
    first = source.raw(16)
    kept = first.copy()
    assert not source._buffer[:16].any()
    first[:] = 0
    source.raw(16)
    assert kept.any()
    assert source.raw(0).size == 0


def test_equal_seeds_repeat_and_others_do_not() -> None:
    def draws(seed: int) -> list[list[int]]:
        source = SeededRandom(seed)
        return [
            source.raw(5).tolist(),
            source.integers(1000, 9).tolist(),
            source.discrete_laplace(10, 9).tolist(),
            source.discrete_gaussian(100, 9).tolist(),
        ]

    assert draws(15) == draws(15)
    assert draws(15) != draws(16)


def test_both_sources_offer_the_same_names() -> None:
    def public(kind: type[Random]) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert (
        public(CryptoRandom) - {"rekey_after"}
        == public(SeededRandom)
        == public(Random) | {"simulated"}
    )
    assert not CryptoRandom.simulated
    assert SeededRandom.simulated


def test_as_random_knows_what_a_random_state_stands_for() -> None:
    assert type(as_random(None)) is type(as_random()) is CryptoRandom
    source = CryptoRandom()
    assert as_random(source) is source
    for seed in (17, np.int32(17)):
        assert np.array_equal(as_random(seed).raw(9), SeededRandom(17).raw(9))
    for make in (np.random.default_rng, np.random.RandomState):
        generator = make(18)
        first, second = as_random(generator), as_random(generator)
        assert isinstance(first, SeededRandom)
        drawn = first.raw(16)
        assert np.array_equal(drawn, as_random(make(18)).raw(16))
        assert not np.array_equal(drawn, second.raw(16))


@pytest.mark.parametrize("wrong", ["7", 7.0, True, object(), np.random, [1]])
def test_as_random_refuses_the_rest(wrong: object) -> None:
    with pytest.raises(TypeError, match="give None for cryptographic randomness"):
        as_random(wrong)  # type: ignore[arg-type]


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("raw", (-1,), "count is -1; ask for zero or more"),
        ("words", (-1,), "count is -1"),
        ("uniform", (-1,), "count is -1"),
        ("integers", (0, 1), "below is 0; give an integer from 1"),
        ("integers", (-3, 1), "below is -3"),
        ("integers", (2**63 + 1, 1), "below is 9223372036854775809"),
        ("integers", (3, -1), "size is -1"),
        ("bernoulli", (-0.1, 1), "probability is -0.1; give a number from 0 to 1"),
        ("bernoulli", (1.1, 1), "probability is 1.1"),
        ("bernoulli", (NAN, 1), "probability is nan"),
        ("bernoulli", (0.5, -1), "size is -1"),
        ("bernoulli_words", (-1, 1), "threshold is -1"),
        ("bernoulli_words", (ONE + 1, 1), "threshold is 18446744073709551617"),
        ("bernoulli_each", (np.array([0.5]),), "thresholds are float64; give uint64"),
        ("bits", (-1, 1, 1), "threshold is -1"),
        ("bits", (1, -1, 1), "rows is -1"),
        ("bits", (1, 1, -1), "columns is -1"),
        ("subsets", (3, 4, 1), "take is 4 of a pool of 3; take at most the pool"),
        ("subsets", (-1, 0, 1), "pool is -1"),
        ("subsets", (3, -1, 1), "take is -1"),
        ("subsets", (3, 1, -1), "rows is -1"),
        *[
            (method, (wrong, 1), f"{name} is {wrong}; give a number from 0 to")
            for method, name in [
                ("geometric", "scale"),
                ("discrete_laplace", "scale"),
                ("discrete_gaussian", "variance"),
            ]
            for wrong in (-1, NAN, INF, -INF, 2**53 + 1)
        ],
        ("geometric", (1, -1), "size is -1"),
        ("discrete_gaussian", (1, -1), "size is -1"),
    ],
)
def test_bad_input_is_named(
    source: Random, method: str, arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(source, method)(*arguments)


def test_a_negative_seed_is_named() -> None:
    with pytest.raises(ValueError, match="seed is -1; give an integer of zero or more"):
        SeededRandom(-1)
