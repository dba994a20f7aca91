"""Reports drawn with the browser's own random source follow the exact channels.

60,000 draws a channel and input (``make soak``: a million), Pearson's chi-square against the exact
likelihoods, cells merged until each expects at least 10. A test fails by chance with a
probability of at most 1e-8; all of them together with at most 1e-6.
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chi2

from discreet.mechanisms.frequency import ORACLES
from discreet.mechanisms.mean import MEAN_ORACLES
from discreet.mechanisms.response import AnswerLaw, Related, Unrelated
from programs import modules, page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DRAWS = int(os.environ.get("DISCREET_DRAWS", "60000"))
CHANCE = 1e-8  # of a false alarm, for each of fewer than 100 tests

DRAW = """async ([name, parameters, input, draws]) => {
  const { perturb, SystemSource } = await import("/draw.js");
  class Buffered extends SystemSource {  // the same bytes, fetched many at a time
    #left = new Uint8Array(0);
    bytes(count) {
      if (count > this.#left.length) this.#left = super.bytes(65536);
      const taken = this.#left.slice(0, count);
      this.#left = this.#left.subarray(count);
      return taken;
    }
  }
  const source = new Buffered(), counts = new Map();
  for (let k = 0; k < draws; k++) {
    let sent = perturb(name, parameters, input, source);
    if (name === "olh") {  // too many to list: a part of the key, and whether the hash is true
      const [a, b, c, y] = sent, { prime, hashes } = parameters;
      const hashed = ((a * input + b) % prime * input + c) % prime % hashes;
      if (y < 0 || y >= hashes) throw new Error("a hash that there is not");
      sent = [a >> 29, b >> 29, c >> 29, Number(y === hashed)];
    }
    const key = sent.join();
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts];
}"""


def fits(counts: Mapping[Any, int], chances: Mapping[Any, float]) -> float:
    """P(a deviation as large as this): Pearson's chi-square; 0 where the impossible happened."""
    draws = sum(counts.values())
    if any(chances.get(one, 0) <= 0 for one in counts):
        return 0.0
    cells, left = [], [0.0, 0.0]
    for one in sorted(chances, key=lambda one: chances[one]):  # the rarest together
        left = [left[0] + draws * chances[one], left[1] + counts.get(one, 0)]
        if left[0] >= 10:
            cells.append(left)
            left = [0.0, 0.0]
    if cells:
        cells[-1] = [cells[-1][0] + left[0], cells[-1][1] + left[1]]
    found = sum((seen - wanted) ** 2 / wanted for wanted, seen in cells)
    return float(chi2.sf(found, max(1, len(cells) - 1)))


def of_oracle(name: str, epsilon: float, size: int, value: int) -> tuple[Any, ...]:
    oracle = ORACLES[name](epsilon, size)
    chances = {out: float(oracle.likelihood(value, out)) for out in oracle.outputs()}
    return name, oracle.get_parameters(), value, chances


def of_mean(name: str, numbers: list[float], *arguments: Any, **options: Any) -> tuple[Any, ...]:
    """The law of a report: numbers between two grid points go to either."""
    oracle = MEAN_ORACLES[name](*arguments, **options)
    ways = []
    for number in numbers:
        steps = Fraction(abs(number)) * oracle.resolution
        whole, part = divmod(steps, 1)
        sign = -1 if number < 0 else 1
        ways.append([(sign * int(whole), 1 - part), (sign * int(whole + 1), part)])
    outputs = [tuple(map(int, row)) for row in oracle.outputs()]
    chances = dict.fromkeys(outputs, 0.0)
    for way in itertools.product(*ways):
        weight = math.prod((part for _, part in way), start=Fraction(1))
        if weight:
            for out, chance in zip(outputs, oracle._compute_row([i for i, _ in way]), strict=True):
                chances[out] += float(weight * chance)
    return name, oracle.get_parameters(), numbers, chances


def of_response(channel: Any, truth: list[int]) -> tuple[Any, ...]:
    chances = {out: float(channel.likelihood(truth, out)) for out in channel.outputs()}
    parameters = {**channel.get_parameters(), "sizes": list(channel.sizes)}
    return channel.name, parameters, truth, chances


CHANNELS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "de": lambda: of_oracle("de", 1.0, 7, 3),
    "ss, few": lambda: of_oracle("ss", 2.0, 12, 11),
    "ss, many": lambda: of_oracle("ss", 0.5, 9, 4),
    "sue": lambda: of_oracle("sue", 1.0, 9, 8),
    "oue": lambda: of_oracle("oue", 2.0, 8, 0),
    "the": lambda: of_oracle("the", 1.0, 9, 5),
    "hr": lambda: of_oracle("hr", 1.0, 12, 6),
    "laplace": lambda: of_mean("laplace", [0.3], 4.0, resolution=4),
    "duchi": lambda: of_mean("duchi", [-0.77], 1.0, resolution=16),
    "duchi-many": lambda: of_mean("duchi-many", [0.5, -0.2, 0.0, 1.0], 1.0, 4, resolution=4),
    "piecewise": lambda: of_mean("piecewise", [0.9], 1.0, resolution=16),
    "piecewise-many": lambda: of_mean("piecewise-many", [0.5, -1.0, 0.1], 5.0, 3, resolution=4),
    "hybrid": lambda: of_mean("hybrid", [-0.4], 2.0, resolution=16),
    "hybrid-many": lambda: of_mean("hybrid-many", [0.5, -1.0, 0.1], 2.0, 3, resolution=4),
    "one-bit": lambda: of_mean("one-bit", [0.5, -1.0, 0.1], 1.0, 3, resolution=4),
    "unrelated": lambda: of_response(
        Unrelated((2, 3, 2), "0.4", (AnswerLaw((2, 0), (1, 2, 3, 4)), AnswerLaw((1,), (5, 1, 0)))),
        [1, 0, 1],
    ),
    "related": lambda: of_response(Related((2, 2), "0.7"), [1, 0]),
}


def drawn(shown: Any, name: str, parameters: Any, given: Any, draws: int) -> Counter[Any]:
    found = shown.evaluate(DRAW, [name, parameters, given, draws])
    return Counter({tuple(map(int, key.split(","))): times for key, times in found})


@pytest.mark.parametrize("channel", CHANNELS)
def test_reports_follow_their_channel(channel: str, shown: Any) -> None:
    name, parameters, given, chances = CHANNELS[channel]()
    assert sum(chances.values()) == pytest.approx(1)
    assert fits(drawn(shown, name, parameters, given, DRAWS), chances) > CHANCE


def test_local_hashing_follows_its_channel(shown: Any) -> None:
    """There are too many keys to list them: four groups of each, and whether the hash is true."""
    oracle = ORACLES["olh"](1.0, 30)
    counts = drawn(shown, "olh", oracle.get_parameters(), 29, DRAWS)
    chances = {
        (*key, true): (oracle.p if true else 1 - oracle.p) / 64
        for key in itertools.product(range(4), repeat=3)
        for true in (0, 1)
    }
    assert fits(counts, chances) > CHANCE


def test_noisy_histograms_follow_their_law(shown: Any) -> None:
    """Each number of a report is independent; the law of one is discrete Laplace."""
    oracle = ORACLES["she"](20.0, 2)
    decay = math.exp(-1 / float(oracle.noise_scale))

    def law(number: int, centre: int) -> float:
        return (1 - decay) / (1 + decay) * decay ** abs(number - centre)

    chances = {
        (i, j): law(i, 0) * law(j, oracle.steps_per_unit)
        for i in range(-250, 251)
        for j in range(-190, 320)
    }
    found = drawn(shown, "she", oracle.get_parameters(), 1, DRAWS)
    assert fits(found, chances) > CHANCE


MISTAKES = {
    "de": ("mechanisms.js", "(size - 1, 1)[0] + 1;", "(size, 1)[0];"),
    "ss, many": ("mechanisms.js", "keys[value] = hasTruth ? 0 :",
                 "keys[value] = hasTruth ? 2 ** 31 :"),
    "sue": ("mechanisms.js", "flags[value] = source", "flags[value] ||= source"),
    "piecewise": ("mechanisms.js", "outsideLevel >= windowStart ? outsideLevel + width",
                  "false ? 0"),
    "unrelated": ("mechanisms.js", "[...places].reverse()", "[...places]"),
    "related": ("random.js", "flags.push(byte < firstByte);", "flags.push(byte <= firstByte + 8);"),
    "laplace": ("random.js", "return plus.map((value, i) => value - minus[i]);", "return plus;"),
}  # fmt: skip
"""Channels drawn wrongly."""


@pytest.mark.parametrize("channel", MISTAKES)
def test_a_channel_drawn_wrongly_is_found(channel: str, chromium: Any, tmp_path: Path) -> None:
    name, parameters, given, chances = CHANNELS[channel]()
    with page(chromium, modules(tmp_path, [MISTAKES[channel]])) as shown:
        assert fits(drawn(shown, name, parameters, given, DRAWS // 4), chances) < CHANCE


ASKED = """async (count) => {
  const { SystemSource } = await import("/draw.js");
  const getRandomValues = crypto.getRandomValues.bind(crypto), lengths = [];
  crypto.getRandomValues = (array) => {
    lengths.push(array.byteLength);
    return getRandomValues(array);
  };
  const bytes = new SystemSource().bytes(count);
  const counts = new Array(256).fill(0);
  for (const byte of bytes) counts[byte]++;
  return [lengths, counts];
}"""


def test_many_bytes_are_asked_for_in_pieces(shown: Any) -> None:
    asked, counts = shown.evaluate(ASKED, 200_000)
    assert asked == [65536, 65536, 65536, 200_000 - 3 * 65536]
    assert fits(dict(enumerate(counts)), dict.fromkeys(range(256), 1 / 256)) > CHANCE
