"""What is drawn, and how many bytes it takes, is a function of the bytes: docs/formats.md.

Hand-made tapes force ties, refusals, collisions and further words; random tapes compare everything
with a second implementation that draws one value at a time (``reference.py``). Implementations
with one mistake each must disagree on them.
"""

from __future__ import annotations

import decimal
import math
import random as plain
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from reference import ONE, Reader
from tape import Tape

from discreet.mechanisms.frequency import ORACLES, FrequencyOracle
from discreet.mechanisms.mean import MEAN_ORACLES, MeanOracle
from discreet.mechanisms.response import AnswerLaw, Related, Unrelated
from discreet.randomness import SeededRandom

HALF = 1 << 63


def edge(k: int, scale: Fraction, bits: int = 64) -> int:
    """The first bits of exp(-k / scale): where floor(-scale ln U) changes from k to k - 1."""
    precise = decimal.Context(prec=80)
    top, bottom = decimal.Decimal(-k * scale.denominator), decimal.Decimal(scale.numerator)
    exponent = precise.divide(top, bottom)
    return math.floor(Fraction(precise.exp(exponent)) * (1 << bits))


def little(*words: int, size: int = 8) -> str:
    return b"".join(word.to_bytes(size, "little") for word in words).hex()


def halves(*numbers: int) -> str:
    return little(*numbers, size=4)


STRADDLE = edge(3, Fraction(10))
"""A first word that leaves open whether floor(-10 ln U) is 2 or 3."""
NEXT = edge(3, Fraction(10), 128) % ONE
"""The next 64 bits of the number at which it changes."""

SAMPLERS: dict[str, tuple[str, str, Any]] = {
    "little-endian words": ("words(1)", "0100000000000080", [HALF + 1]),
    "uniform": ("uniform(1)", "ff07000000000080", [0.5]),
    "integers: the high half of the product": ("integers(10, 2)", halves(0x80000001, 256), [5, 0]),
    "integers of one value read their bytes": ("integers(1, 2)", "ffffffff00000000", [0, 0]),
    # 2^32 mod 10 = 6: a low half of the product below 6 is refused
    "integers: a refused one": ("integers(10, 1)", halves(0, 0x80000001), [5]),
    "integers: refused twice": ("integers(10, 1)", halves(0, 0, 0x40000001), [2]),
    "integers: refused ones come after all others": (
        "integers(10, 3)",
        halves(0, 0xF0000000, 0, 0x80000001, 0x40000001),
        [5, 9, 2],
    ),
    "integers up to 2^32": ("integers(2**32, 1)", "ffffffff", [2**32 - 1]),
    "integers beyond 2^32": ("integers(2**32 + 1, 1)", little(5 << 31), [5]),
    "integers beyond 2^32: a refused one": (
        "integers(2**32 + 1, 2)",
        little(ONE - 1, 7 << 31, 9 << 31),
        [9, 7],
    ),
    "integers up to 2^63": ("integers(2**63, 1)", little(ONE - 1), [2**63 - 1]),
    "coin: a byte decides": ("bernoulli_words(0x80 << 56 | 1, 2)", "7f81", [True, False]),
    "coin: a tie takes a word": (
        "bernoulli_words(0x80 << 56 | 2, 3)",
        "80 00 80" + little(1 << 8 | 0xFF, 2 << 8),
        [True, True, False],
    ),
    "coin: no tie if the rest is zero": ("bernoulli_words(0x80 << 56, 2)", "807f", [False, True]),
    "coin: impossible and certain read nothing": ("bernoulli_words(0, 2)", "", [False, False]),
    "coin: certain": ("bernoulli_words(2**64, 2)", "", [True, True]),
    "coin: a probability is rounded half to even": (
        "bernoulli(0.1, 1)",
        "19" + little(0x99999999999A << 16),  # 0.1 = 0x1999999999999a00 / 2^64, as a double
        [False],
    ),
    "bits: padding is drawn and cleared": (
        "bits(0x80 << 56, 1, 3)",
        "00ff00 0000ff00ff",
        [[0b101]],
    ),
    "bits: a tie in the padding takes its word": (
        "bits(0x80 << 56 | 1, 2, 1)",
        "00ffffffffffff80 ffffffffffffff00" + little(0),
        [[1], [0]],
    ),
    "Floyd": ("subsets(100, 2, 1)", halves(0x80000000, 0x40000001), [[49, 25]]),
    "Floyd: a collision takes the last": (
        "subsets(100, 2, 1)",
        halves(0x80000000, 0x7FFFFFFF),
        [[49, 99]],
    ),
    "Floyd: all rows of a step come first": (
        "subsets(100, 2, 2)",
        halves(1, 0x80000000, 0x7FFFFFFF, 0x40000001),
        [[0, 49], [49, 25]],
    ),
    "Fisher-Yates": ("subsets(4, 2, 1)", halves(0xC0000000, 0x80000000), [[3, 2]]),
    "Fisher-Yates: the first comes back": (
        "subsets(4, 3, 1)",
        halves(0xC0000000, 0xF0000000, 0),
        [[3, 0, 2]],
    ),
    "geometric: a word decides": ("geometric(10, 1)", little(HALF), [6]),
    "geometric of scale zero reads nothing": ("geometric(0, 3)", "", [0, 0, 0]),
    "geometric: further words come after all first ones": (
        "geometric(10, 3)",
        little(STRADDLE, HALF, STRADDLE, NEXT - 1, NEXT + 1),
        [3, 6, 2],
    ),
    "geometric: and another": (
        "geometric(10, 1)",
        little(STRADDLE, NEXT, edge(3, Fraction(10), 192) % ONE + 1),
        [2],
    ),
    "geometric: zero takes another word": ("geometric(10, 1)", little(0, 1 << 40), [609]),
    "Laplace: first minus second": (
        "discrete_laplace(10, 2)",
        little(HALF, ONE - 1, HALF >> 1, HALF),
        [-7, -6],
    ),
    "Gaussian of variance zero reads nothing": ("discrete_gaussian(0, 2)", "", [0, 0]),
}  # fmt: skip


def drawn(source: Tape, call: str) -> Any:
    """What the package draws, as lists."""
    name, _, arguments = call.partition("(")
    return getattr(source, name)(*eval(f"({arguments[:-1]},)")).tolist()


def twin(source: Reader, call: str) -> Any:
    """What the second implementation draws."""
    name, _, arguments = call.partition("(")
    values = eval(f"({arguments[:-1]},)")
    if name == "bernoulli":
        return source.coins(round(Fraction(values[0]) * ONE), values[1])
    if name == "bits":
        rows = source.bits(*values)
        return [np.packbits(row, bitorder="little").tolist() for row in rows]
    names = {"bernoulli_words": "coins", "discrete_laplace": "laplace"}
    if name in ("geometric", "discrete_laplace", "discrete_gaussian"):
        values = (Fraction(values[0]), values[1])
    names["discrete_gaussian"] = "gaussian"
    return getattr(source, names.get(name, name))(*values)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_documented_draw_and_no_byte_more(name: str) -> None:
    call, script, expected = SAMPLERS[name]
    for source, found in ((Tape(script), drawn), (Reader(bytes.fromhex(script)), twin)):
        assert found(source, call) == expected  # type: ignore[operator]
        assert source.used == len(bytes.fromhex(script))


def test_bernoulli_each_takes_a_word_each() -> None:
    thresholds = np.array([0, HALF, ONE - 1], np.uint64)
    source = Tape(little(0, HALF - 1, ONE - 1))
    assert source.bernoulli_each(thresholds).tolist() == [False, True, False]
    assert source.used == 24


CALLS = [
    "words(3)", "uniform(2)", "integers(3, 40)", "integers(2**31 + 1, 40)",
    "integers(2**32 - 5, 9)", "integers(2**32 + 1, 20)", "integers(2**63, 3)",
    "bernoulli_words(0x7f << 56 | 5, 60)",
    "bernoulli_words(3, 60)", "bernoulli_words(2**64 - 3, 60)", "bits(0xff << 56 | 1 << 55, 3, 13)",
    "bits(7, 2, 16)", "subsets(100, 9, 3)", "subsets(100, 10, 3)", "subsets(5, 5, 4)",
    "subsets(2, 1, 5)", "geometric(Fraction(7, 3), 20)", "geometric(0.001, 5)",
    "geometric(2**45, 6)", "discrete_laplace(1000, 9)", "discrete_gaussian(3, 7)",
    "discrete_gaussian(Fraction(1, 7), 4)", "discrete_gaussian(2**40, 3)",
]  # fmt: skip


@cache
def nasty(seed: int, size: int = 1 << 13) -> bytes:
    """Bytes among which ties, refusals and zero words are common."""
    chance = plain.Random(seed)
    common = [0, 0, 1, 0x7F, 0x80, 0xFE, 0xFF, 0xFF, *chance.choices(range(256), k=2)]
    pieces = (
        bytes([chance.choice(common)]) * chance.choice([1, 2, 4, 8]) if chance.random() < 0.5
        else chance.randbytes(8)
        for _ in range(size)
    )  # fmt: skip
    return b"".join(pieces)[:size]


def agree(call: str, seeds: range, kind: type[Reader] = Reader) -> bool:
    """Whether both implementations draw the same and read the same number of bytes."""
    for seed in seeds:
        script = nasty(seed)
        ours, theirs = Tape(script), kind(script)
        if drawn(ours, call) != twin(theirs, call) or ours.used != theirs.used:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_two_implementations_agree_on_any_bytes(call: str) -> None:
    assert agree(call, range(12))


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    ["bernoulli_words(0x80 << 56 | 9, 262147)", "bits(0x80 << 56 | 9, 5, 8 * 6554)",
     "subsets(1 << 19, 1, 5)", "subsets(1 << 20, 1000, 3)", "geometric(3, 32771)"],
)  # fmt: skip
def test_chunks_are_part_of_the_order(call: str) -> None:
    """Sizes just beyond a chunk: the second chunk begins after the extra bytes of the first."""
    script = SeededRandom(1).raw(2_000_000).tobytes()
    ours, theirs = Tape(script), Reader(script)
    assert drawn(ours, call) == twin(theirs, call)
    assert ours.used == theirs.used


class BigEndian(Reader):
    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")


class Modulo(Reader):
    def integers(self, below: int, count: int) -> list[int]:
        return [self.number(4 if below <= 1 << 32 else 8) % below for _ in range(count)]


class RefusedAtOnce(Reader):
    def integers(self, below: int, count: int) -> list[int]:
        return [Reader.integers(self, below, 1)[0] for _ in range(count)]


class NoTies(Reader):
    def coins(self, threshold: int, count: int, chunk: int = 0) -> list[bool]:
        if threshold in (0, ONE):
            return [threshold == ONE] * count
        return [byte < threshold >> 56 for byte in self.take(count)]


class TiesAtOnce(Reader):
    def coins(self, threshold: int, count: int, chunk: int = 0) -> list[bool]:
        return [Reader.coins(self, threshold, 1)[0] for _ in range(count)]


class NoPadding(Reader):
    def bits(self, threshold: int, rows: int, columns: int) -> list[list[bool]]:
        return [self.coins(threshold, columns) for _ in range(rows)]


class AlwaysShuffles(Reader):
    def floyd(self, pool: int, take: int, rows: int) -> list[list[int]]:
        return self.shuffled(pool, take, rows)


class FloatingPoint(Reader):
    def geometric(self, scale: Fraction, count: int, chunk: int = 0) -> list[int]:
        words = self.words(count)
        return [math.floor(-float(scale) * math.log((w or 1) / 2**64)) for w in words]


@pytest.mark.parametrize(
    ("kind", "call"),
    [(BigEndian, "words(3)"), (BigEndian, "integers(3, 40)"), (Modulo, "integers(3, 40)"),
     (RefusedAtOnce, "integers(2**31 + 1, 40)"), (NoTies, "bernoulli_words(0x7f << 56 | 5, 60)"),
     (TiesAtOnce, "bernoulli_words(0x7f << 56 | 5, 60)"), (NoPadding, "bits(7, 2, 13)"),
     (AlwaysShuffles, "subsets(100, 9, 3)"), (FloatingPoint, "geometric(2**45, 6)")],
)  # fmt: skip
def test_an_implementation_with_one_mistake_is_found(kind: type[Reader], call: str) -> None:
    assert agree(call, range(12))
    assert not agree(call, range(12), kind)


SIZES = (2, 3, 8, 9, 16, 17, 40)
EPSILONS = (0.05, 1.0, 3.0, 20.0)


def reported(source: Reader, oracle: FrequencyOracle, value: int) -> list[int]:
    """One report by the second implementation, from the parameters of a plan."""
    public = {key: int(one) if key in "pq" else one for key, one in oracle.get_parameters().items()}
    match oracle.name:
        case "de":
            return source.de(public["size"], public["p"], value)
        case "ss":
            return source.ss(public["size"], public["subset"], public["p"], value)
        case "hr":
            return source.hr(public["order"], public["p"], value)
        case "olh":
            return source.olh(public["hashes"], public["prime"], public["p"], value)
        case "she":
            scale = Fraction(public["scale"]) / (1 << 16)
            return source.she(public["size"], public["unit"], scale, public["furthest"], value)
    return source.unary(public["size"], public["p"], public["q"], value)


def same_reports(name: str, kind: type[Reader] = Reader) -> bool:
    for number, (size, epsilon) in enumerate((s, e) for s in SIZES for e in EPSILONS):
        oracle = ORACLES[name](epsilon, size)
        first = getattr(oracle, "other_threshold", oracle.threshold)
        for value in {0, size // 2, size - 1}:
            script = nasty(number)
            for tape in (script, bytes([first >> 56 & 0xFF]) + script, b"\0" * 20 + script):
                ours, theirs = Tape(tape), kind(tape)
                report = oracle.encode(oracle.perturb([value], ours))[0].tolist()
                if report != reported(theirs, oracle, value) or ours.used != theirs.used:
                    return False
    return True


LONG = {"she": pytest.mark.slow}


@pytest.mark.parametrize("name", [pytest.param(one, marks=LONG.get(one, ())) for one in ORACLES])
def test_a_device_draws_the_documented_report(name: str) -> None:
    assert same_reports(name)


class TruthFirst(Reader):
    def de(self, size: int, threshold: int, value: int) -> list[int]:
        truth = self.coins(threshold, 1)[0]
        offset = self.integers(size - 1, 1)[0] + 1
        return [value if truth else (value + offset) % size]


class Unsorted(Reader):
    def subsets(self, pool: int, take: int, rows: int) -> list[list[int]]:
        return [row[::-1] for row in super().subsets(pool, take, rows)]


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TruthFirst, "de"), (TruthFirst, "olh"), (Unsorted, "ss"), (BigEndian, "ss"), (Modulo, "hr"),
     (NoPadding, "oue"), (NoTies, "sue"), (FloatingPoint, "she")],
)  # fmt: skip
def test_a_device_with_one_mistake_is_found(kind: type[Reader], name: str) -> None:
    assert not same_reports(name, kind)


POINTS = (0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 1e-300, 0.5, 2**-10, -(2**-11))


def mean_oracles(name: str) -> list[MeanOracle]:
    many = name == "laplace" or name.endswith("many") or name == "one-bit"
    return [
        MEAN_ORACLES[name](epsilon, *([size] if many else []), resolution=resolution)
        for epsilon in (0.5, 3.0, 8.0)
        for size in ((1, 2, 5, 12) if many else (1,))
        for resolution in (8, 1024)
    ]


def same_means(name: str, kind: type[Reader] = Reader) -> bool:
    for number, oracle in enumerate(mean_oracles(name)):
        names = ("inside_threshold", "piecewise_threshold", "agreement_threshold")
        coins = (getattr(oracle, one, 0) for one in names)
        first = max(coins) >> 56 & 0xFF  # a tie, where the coin comes right after the grid
        for shift in range(4):
            numbers = [POINTS[(shift * 3 + j) % len(POINTS)] for j in range(oracle.size)]
            script, grid = nasty(number), 8 * oracle.size
            for tape in (script, script[:grid] + bytes([first]) + script[grid:]):
                ours, theirs = Tape(tape), kind(tape)
                report = oracle.perturb([numbers], ours)[0].tolist()
                if report != theirs.mean(oracle, numbers) or ours.used != theirs.used:
                    return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", MEAN_ORACLES)
def test_a_device_draws_the_documented_number(name: str) -> None:
    assert same_means(name)


class GridSkipsWhole(Reader):
    def grid(self, numbers: list[float], resolution: int) -> list[int]:
        levels = []
        for number in numbers:
            level = Fraction(abs(number)) * resolution
            if level.denominator > 1:
                return super().grid(numbers, resolution)
            levels.append(int(level if number >= 0 else -level))
        return levels


@pytest.mark.parametrize(
    ("kind", "name"),
    [(GridSkipsWhole, "duchi"), (NoTies, "piecewise"), (Modulo, "duchi-many"),
     (Modulo, "one-bit"), (FloatingPoint, "laplace"), (BigEndian, "hybrid")],
)  # fmt: skip
def test_a_number_drawn_with_one_mistake_is_found(kind: type[Reader], name: str) -> None:
    assert not same_means(name, kind)


CHANNELS: list[Any] = [
    Unrelated((2,), "0.5"),
    Unrelated((2, 3), "0.7", (AnswerLaw((1, 0), (1, 2, 3, 4, 5, 6)),)),
    Unrelated(
        (2, 2, 5),
        "1/3",
        (AnswerLaw((0,), (3, 1)), AnswerLaw((2,), (1, 0, 2, 0, 7)), AnswerLaw((1,), (1, 1))),
    ),
    Related((2, 2), "0.8"),
    Related((2,), "0.2"),
]


def same_sheets(draw: Callable[[Reader, Any, list[int]], list[int]]) -> bool:
    for channel in CHANNELS:
        for seed in range(60):
            truth = [seed % size for size in channel.sizes]
            script = nasty(seed, 200)
            ours, theirs = Tape(script), Reader(script)
            sent = channel.perturb([truth], ours)[0].tolist()
            if sent != draw(theirs, channel, truth) or ours.used != theirs.used:
                return False
    return True


def test_a_device_draws_the_documented_sheet() -> None:
    def documented(source: Reader, channel: Any, truth: list[int]) -> list[int]:
        return getattr(source, channel.name)(channel, truth)

    def skips_what_it_does_not_need(source: Reader, channel: Any, truth: list[int]) -> list[int]:
        begun = Reader(source.script)
        if begun.coins(channel.threshold, 1)[0]:
            source.used = begun.used
            return truth
        return documented(source, channel, truth)

    assert same_sheets(documented)
    assert not same_sheets(skips_what_it_does_not_need)
