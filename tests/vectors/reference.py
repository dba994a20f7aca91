"""The samplers and mechanisms once more, one draw at a time, in plain integers.

Written from docs/formats.md, "In what order bytes are used", and from nothing else: what a port to
another language would look like. Nothing of the package's arithmetic is used; mechanisms give only
their public ``parameters`` and attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

ONE = 1 << 64


class Reader:
    """Bytes in their order, and the draws that are made of them."""

    def __init__(self, script: bytes) -> None:
        self.script, self.used = script, 0

    def take(self, count: int) -> bytes:
        drawn = self.script[self.used : self.used + count]
        assert len(drawn) == count, "asked for more bytes than the tape has"
        self.used += count
        return drawn

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def words(self, count: int) -> list[int]:
        return [self.number(8) for _ in range(count)]

    def uniform(self, count: int) -> list[float]:
        return [(word >> 11) / 2**53 for word in self.words(count)]

    def integers(self, below: int, count: int) -> list[int]:
        if below <= 1 << 32:
            products = [self.number(4) * below for _ in range(count)]
            values = [product >> 32 for product in products]
            refused = [product % 2**32 < 2**32 % below for product in products]
        else:
            values = [word >> 64 - (below - 1).bit_length() for word in self.words(count)]
            refused = [value >= below for value in values]
        again = [i for i in range(count) if refused[i]]
        if again:
            for i, value in zip(again, self.integers(below, len(again)), strict=True):
                values[i] = value
        return values

    def coins(self, threshold: int, count: int, chunk: int = 262_144) -> list[bool]:
        if threshold in (0, ONE):
            return [threshold == ONE] * count
        first, rest = divmod(threshold, 1 << 56)
        flags = []
        for start in range(0, count, chunk):
            drawn = list(self.take(min(chunk, count - start)))
            part = [byte < first for byte in drawn]
            for i, byte in enumerate(drawn):
                if byte == first and rest:
                    part[i] = self.number(8) >> 8 < rest
            flags += part
        return flags

    def coins_each(self, thresholds: list[int]) -> list[bool]:
        return [self.number(8) < threshold for threshold in thresholds]

    def bits(self, threshold: int, rows: int, columns: int) -> list[list[bool]]:
        width = 8 * -(-columns // 8)
        flags = self.coins(threshold, rows * width)
        return [flags[row * width : row * width + columns] for row in range(rows)]

    def subsets(self, pool: int, take: int, rows: int) -> list[list[int]]:
        chunk = max(1, 1_048_576 // max(1, min(pool, take * take)))
        found: list[list[int]] = []
        for start in range(0, rows, chunk):
            draw = self.floyd if take * take < pool else self.shuffled
            found += draw(pool, take, min(chunk, rows - start))
        return found

    def floyd(self, pool: int, take: int, rows: int) -> list[list[int]]:
        chosen: list[list[int]] = [[] for _ in range(rows)]
        for last in range(pool - take, pool):
            for row, value in zip(chosen, self.integers(last + 1, rows), strict=True):
                row.append(last if value in row else value)
        return chosen

    def shuffled(self, pool: int, take: int, rows: int) -> list[list[int]]:
        orders = [list(range(pool)) for _ in range(rows)]
        for i in range(take):
            for order, value in zip(orders, self.integers(pool - i, rows), strict=True):
                order[i], order[i + value] = order[i + value], order[i]
        return [order[:take] for order in orders]

    def minus_log(self, word: int) -> Iterator[tuple[Decimal, Decimal]]:
        """Ends of the interval of -ln U, ever closer; further words are drawn when asked for."""
        bits = 64
        while True:
            precise = Context(prec=bits // 2 + 30)
            whole = precise.ln(Decimal(1 << bits))
            low = precise.subtract(whole, precise.ln(Decimal(word + 1)))
            high = precise.subtract(whole, precise.ln(Decimal(word))) if word else Decimal("inf")
            yield low, high
            word, bits = word << 64 | self.number(8), bits + 64

    def geometric(self, scale: Fraction, count: int, chunk: int = 32_768) -> list[int]:
        if scale == 0:
            return [0] * count
        values = []
        for start in range(0, count, chunk):
            for word in self.words(min(chunk, count - start)):
                for low, high in self.minus_log(word):
                    if high.is_finite():
                        ends = {math.floor(Fraction(end) * scale) for end in (low, high)}
                        if len(ends) == 1:
                            values.append(ends.pop())
                            break
        return values

    def laplace(self, scale: Fraction, count: int) -> list[int]:
        first = self.geometric(scale, count)
        return [a - b for a, b in zip(first, self.geometric(scale, count), strict=True)]

    def gaussian(self, variance: Fraction, count: int) -> list[int]:
        values: list[int] = []
        scale = math.isqrt(math.floor(variance)) + 1
        while variance and len(values) < count:
            wanted = count - len(values)
            drawn = self.laplace(Fraction(scale), min(32_768, wanted + wanted // 2 + 16))
            accepted = []
            for x, word in zip(drawn, self.words(len(drawn)), strict=True):
                gamma = (abs(x) - variance / scale) ** 2 / (2 * variance)
                for low, high in self.minus_log(word):
                    if gamma < Fraction(low):
                        accepted.append(x)
                    elif not high.is_finite() or gamma <= Fraction(high):
                        continue
                    break
            values += accepted[:wanted]
        return values if variance else [0] * count

    # mechanisms, for one respondent

    def de(self, size: int, threshold: int, value: int) -> list[int]:
        offset = self.integers(size - 1, 1)[0] + 1
        return [value if self.coins(threshold, 1)[0] else (value + offset) % size]

    def ss(self, size: int, subset: int, threshold: int, value: int) -> list[int]:
        member = self.coins(threshold, 1)[0]
        if subset**2 < size:
            others = [one + (one >= value) for one in self.subsets(size - 1, subset, 1)[0]]
            place = self.integers(subset, 1)[0]
            if member:
                others[place] = value
            return sorted(others)
        while True:
            keys = [self.number(4) for _ in range(size)]
            keys[value] = 0 if member else 2**32 - 1
            edge = sorted(keys)[subset - 1]
            chosen = [one for one in range(size) if keys[one] <= edge]
            if len(chosen) == subset:
                return chosen

    def unary(self, size: int, p: int, q: int, value: int) -> list[int]:
        flags = self.bits(q, 1, size)[0]
        flags[value] = self.coins(p, 1)[0]
        pattern = sum(1 << place for place, flag in enumerate(flags) if flag)
        return [pattern >> 16 * word & 0xFFFF for word in range(-(-size // 16))]

    def she(self, size: int, unit: int, scale: Fraction, furthest: int, value: int) -> list[int]:
        noisy = self.laplace(scale, size)
        noisy[value] += unit
        return [max(-furthest, min(furthest, one)) for one in noisy]

    def hr(self, order: int, threshold: int, value: int) -> list[int]:
        row = value + 1
        index = self.integers(order, 1)[0]
        supports = (index & row).bit_count() % 2 == 0
        if supports != self.coins(threshold, 1)[0]:
            index ^= row & -row
        return [index]

    def olh(self, hashes: int, prime: int, threshold: int, value: int) -> list[int]:
        a, b, c = (self.integers(prime, 1)[0] for _ in range(3))
        hashed = ((a * value + b) % prime * value + c) % prime % hashes
        return [a, b, c, *self.de(hashes, threshold, hashed)]

    def grid(self, numbers: list[float], resolution: int) -> list[int]:
        levels = []
        for number in numbers:
            whole, part = divmod(Fraction(abs(number)) * resolution, 1)
            level = whole + (self.number(8) < math.floor(part * ONE))
            levels.append(int(level if number >= 0 else -level))
        return levels

    def mean(self, oracle: Any, numbers: list[float]) -> list[int]:
        levels = self.grid(numbers, oracle.resolution)
        return self.on_grid(oracle, levels)

    def on_grid(self, oracle: Any, levels: list[int]) -> list[int]:
        count, R = len(levels), oracle.resolution
        match oracle.name:
            case "laplace":
                noise, most = self.laplace(oracle.noise_scale, count), oracle.largest
                return [max(-most, min(most, i + n)) for i, n in zip(levels, noise, strict=True)]
            case "duchi":
                return list(
                    map(int, self.coins_each([ONE // 2 + i * oracle.slope for i in levels]))
                )
            case "duchi-many":
                drawn = self.integers(2 * R, count)
                plus = [value < R + i for value, i in zip(drawn, levels, strict=True)]
                pattern = self.coins(ONE // 2, count | 1)
                wanted = self.coins(oracle.agreement_threshold, 1)[0]
                negate = (2 * sum(pattern) > len(pattern)) != wanted
                return [int(s == (p != negate)) for s, p in zip(plus, pattern, strict=False)]
            case "piecewise":
                w, most = oracle.half_width, oracle.largest
                inside = self.coins(oracle.inside_threshold, count)
                near = self.integers(2 * w + 1, count)
                far = [value - most for value in self.integers(2 * R, count)]
                return [
                    i - w + n if flag else f + (2 * w + 1 if f >= i - w else 0)
                    for i, flag, n, f in zip(levels, inside, near, far, strict=True)
                ]
            case "hybrid":
                first = self.coins(oracle.piecewise_threshold, count)
                near = self.on_grid(oracle.piecewise, levels)
                plus_or_minus = self.on_grid(oracle.duchi, levels)
                return [
                    n if flag else (2 * s - 1) * oracle.sign_number
                    for flag, n, s in zip(first, near, plus_or_minus, strict=True)
                ]
            case "one-bit" | "piecewise-many" | "hybrid-many":
                chosen = sorted(self.subsets(count, oracle.sampled_count, 1)[0])
                said = self.on_grid(oracle.scalar_oracle, [levels[j] for j in chosen])
                return [one for pair in zip(chosen, said, strict=True) for one in pair]
        raise AssertionError(oracle.name)

    def unrelated(self, channel: Any, truth: list[int]) -> list[int]:
        private = self.coins(channel.threshold, 1)[0]
        personal = [0] * len(truth)
        for law in channel.laws:
            left, cell = self.integers(law.total, 1)[0], 0
            while left >= law.weights[cell]:
                left, cell = left - law.weights[cell], cell + 1
            for place in reversed(law.places):
                cell, personal[place] = divmod(cell, channel.sizes[place])
        return truth if private else personal

    def related(self, channel: Any, truth: list[int]) -> list[int]:
        return truth if self.coins(channel.threshold, 1)[0] else [1 - one for one in truth]
