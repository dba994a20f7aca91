"""What a single party can compute from everything it holds, hears and reads when all is published.

Rounds with noise are played several times with fresh pads and the same shares of noise. Whatever
linear combination of all that a party holds (its keys' pads), hears (every message that can be
fetched, opened with every key it has) comes out the same each time has lost its pads. Such a
combination must tell no more than the published totals and the party's own share of noise: then
the noise that is left is that of all other shares, whose law is checked number by number.

Combinations are found by elimination over a field in which the protocol's arithmetic is linear:
the low bits of words for masks, residues modulo a prime factor of N for Paillier.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from noise_laws import TAIL, share_law, sum_law
from round_fixtures import (
    NAMES,
    PARTIES,
    horizontal_manifest,
    judging_manifest,
    table,
    vertical_manifest,
)

from discreet.errors import PrivacyError
from discreet.federated import horizontal, vertical
from discreet.federated.crypto.masks import derive_pair_key as pair
from discreet.federated.crypto.masks import expand_residues, expand_words
from discreet.federated.crypto.paillier import generate_key
from discreet.federated.crypto.sealing import compute_sealed_length, unseal_bytes
from discreet.federated.horizontal.arithmetic import make_slots
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.protocol import ORDER_TAG_BYTES
from discreet.randomness import SeededRandom

ROWS = 30
ROUNDS = {"masks": 8, "paillier": 16}
"""Enough numbers that a relation by chance (one in 2^40 at most) is not expected."""
PADS = ("opening", "dealt sums", "pads")
"""Purposes of the keys from which pads of sums are expanded."""
SEALS = ("labels", "tables", "correction", "shares", "total")
"""Purposes of the keys that seal messages; a model holds no more than the totals it is made of."""
BLOCK = vertical_manifest(moments=()).layout.blocks[0]
WAYS = pytest.mark.parametrize("way", ["masks", "paillier"])
MODES = pytest.mark.parametrize("mode", ["counts", "probabilities"])


@cache
def key_of(way):
    """A tiny key: rounds are played by the dozen, and nothing here depends on the length."""
    return generate_key(512, allow_small=True) if way == "paillier" else None


class Numbers:
    """Numbers of one way, mapped into a field: how bytes, pads and integers are read."""

    def __init__(self, key, count, chunks=None, word=8):
        self.key, self.count, self.chunks = key, count, chunks
        self.prime = 2 if key is None else int(key.p)
        self.width = word if key is None else -(-key.public.bits // 8)

    @property
    def length(self):
        return self.count * self.width

    def of_bytes(self, data):
        order = "little" if self.key is None else "big"
        parts = [data[i : i + self.width] for i in range(0, self.length, self.width)]
        return [int.from_bytes(part, order) % self.prime for part in parts]

    def pad(self, key):
        if self.key is None:
            return [int(one) % 2 for one in expand_words(key, self.count, self.width)]
        return [one % self.prime for one in expand_residues(key, self.count, self.key.public.n)]

    def of_integers(self, vector):
        packed = vector if self.chunks is None else self.chunks(vector)
        return [int(one) % self.prime for one in packed]


def known_pads(role, manifest, numbers):
    """Every pad that a party can expand from a key it shares with anyone, for any purpose."""
    own = PARTIES[role]
    return [
        numbers.pad(pair(own, other, manifest.hash, purpose))
        for other in manifest.parties.values()
        if other.name != role
        for purpose in PADS
    ]


def readable(role, manifest, payload):
    """A message as it is, and opened with every key of the party that fits."""
    found, own = [payload], PARTIES[role]
    for other in manifest.parties.values():
        for purpose in SEALS if other.name != role else ():
            for content in (payload, payload[:-ORDER_TAG_BYTES]):
                with suppress(ProtocolError):
                    found.append(unseal_bytes(pair(own, other, manifest.hash, purpose), content))
    return found


def relations(rounds, prime):
    """Combinations of a view's vectors that come out the same in every round, and what comes out.

    ``rounds[t][v]`` is vector v of round t; elimination of the differences to round 0.
    """
    first = rounds[0]
    rows = [
        [(vector[i] - first[v][i]) % prime for v, vector in enumerate(later)]
        for later in rounds[1:]
        for i in range(len(first[0]))
    ]
    pivots, width = {}, len(first)
    for row in rows:
        for column, pivot in pivots.items():
            if row[column]:
                factor = row[column]
                row = [(a - factor * b) % prime for a, b in zip(row, pivot, strict=True)]
        lead = next((c for c, one in enumerate(row) if one), None)
        if lead is None:
            continue
        inverse = pow(row[lead], -1, prime)
        row = [one * inverse % prime for one in row]
        for column, pivot in pivots.items():
            if pivot[lead]:
                factor = pivot[lead]
                pivots[column] = [(a - factor * b) % prime for a, b in zip(pivot, row, strict=True)]
        pivots[lead] = row
    for free in [c for c in range(width) if c not in pivots]:
        relation = [0] * width
        relation[free] = 1
        for column, pivot in pivots.items():
            relation[column] = -pivot[free] % prime
        yield [
            sum(a * vector[i] for a, vector in zip(relation, first, strict=True)) % prime
            for i in range(len(first[0]))
        ]


def told(value, allowed, prime):
    """Whether a value is nothing but a small combination of what the party may know."""
    for factors in product(range(-3, 4), repeat=len(allowed)):
        combined = [
            sum(f * one[i] for f, one in zip(factors, allowed, strict=True)) % prime
            for i in range(len(value))
        ]
        if combined == value:
            return True
    return False


def leaks(rounds, allowed, prime):
    return [value for value in relations(rounds, prime) if not told(value, allowed, prime)]


# ------------------------------------------------------------------------------- vertical rounds


@cache
def vertical_rounds(way, mode):
    """Rounds with fresh pads and the same noise: manifest, label provider, collector, messages."""
    columns, codes = table(ROWS, 5)
    key, played = key_of(way), []
    for _ in range(ROUNDS[way]):
        manifest = vertical_manifest(key, rows=ROWS, mode=mode, moments=())
        seeds = {name: SeededRandom(k) for k, name in enumerate(("labels", "collector", *NAMES))}
        label = vertical.LabelProvider(PARTIES["labels"], manifest, key, random=seeds["labels"])
        collector = vertical.VerticalCollector(
            PARTIES["collector"], manifest, random=seeds["collector"]
        )
        said = list(label.make_all_labels(codes))
        for card, message in zip(manifest.providers, list(said), strict=True):
            provider = vertical.VerticalProvider(
                PARTIES[card.name], manifest, random=seeds[card.name]
            )
            provider.receive(message)
            said.append(provider.make_tables(columns))
            label.receive(said[-1])
        if collector.protocol.needs_correction:
            dealt = collector.make_correction()
            label.receive(dealt)
            said.append(dealt)
        said.append(label.make_shares())
        collector.receive(said[-1])
        said.append(collector.make_result())
        played.append((manifest, label, collector, said))
    return played


def vertical_view(role, key, manifest, label, collector, said, total_in_clear=False):
    """A party's vectors, what it may know of hospital-a's tables, and the field."""
    way, card = label.protocol, manifest.providers[0]
    layout = way.layouts[card.name]
    chunks = None if key is None else way.plaintext_layouts[card.name]
    count = layout.size if key is None else chunks.plaintext_count
    word = way.word_bytes if key is None else 8
    numbers = Numbers(key, count, None if key is None else chunks.pack_vector, word)
    heard = [one for message in said for one in readable(role, manifest, message.body.read())]
    if total_in_clear:
        heard.append(collector._padded_totals)
    # with masks tables are (hidden rows, sums): the sums lie at the end
    tables = next(m for m in said if m.kind == "tables" and m.sender == card.name)
    heard += [one[-numbers.length :] for one in readable(role, manifest, tables.body.read())]
    view = [numbers.of_bytes(one[: numbers.length]) for one in heard if len(one) >= numbers.length]
    view += known_pads(role, manifest, numbers)
    if role == "labels":  # what the label provider computes on the way
        correction = label._split_sums(label._correction)[0][1]
        sums = label._sum_tables[card.name](key, correction)
        view.append(numbers.of_bytes(sums))
    opener = PARTIES[manifest.opener.name]
    released = way.open_sums(
        opener, card, collector._padded_totals[: way.compute_sums_size(card.name)]
    )
    allowed = [numbers.of_integers(released)]
    if key is not None:  # the public offset of every slot
        allowed.append(numbers.of_integers(np.zeros(layout.size, dtype=np.int64)))
    index = {"labels": 0, "collector": 1, NAMES[0]: 2}.get(role)
    if index is not None:
        own = manifest.draw_noise_share(layout, SeededRandom(index))
        allowed.append(numbers.of_integers(own))
    return view, allowed, numbers.prime


@pytest.mark.slow
@WAYS
@MODES
@pytest.mark.parametrize("role", ["labels", "collector", "receiver", NAMES[0], NAMES[1]])
def test_a_party_of_a_vertical_round_learns_the_published_totals_and_its_own_share(role, mode, way):
    played = [vertical_view(role, key_of(way), *one) for one in vertical_rounds(way, mode)]
    assert not leaks([view for view, _, _ in played], *played[0][1:])


@pytest.mark.slow
@WAYS
def test_a_total_that_anyone_may_fetch_shows_the_collectors_noise_to_the_label_provider(
    way,
):
    """The known-bad twin: our own first protocol sent the padded total unsealed."""
    played = [
        vertical_view("labels", key_of(way), *one, total_in_clear=True)
        for one in vertical_rounds(way, "counts")
    ]
    assert leaks([view for view, _, _ in played], *played[0][1:])


# ------------------------------------------------------------------ two parties of a vertical round

THREAT_MODEL = Path(__file__).resolve().parents[2] / "docs" / "threat-model.md"
COALITIONS = {
    "a table's provider and the label provider": [(NAMES[0], "labels")],
    "a table's provider and the collector": [(NAMES[0], "collector")],
    "the label provider and the collector": [("labels", "collector")],
    "the label provider and the party that opens the totals": [("labels", "receiver")],
    "a provider of another table and any one of these": [
        (NAMES[1], other) for other in (NAMES[0], "labels", "collector", "receiver")
    ],
    "the receiver and one of a table's provider and the collector": [
        ("receiver", other) for other in (NAMES[0], "collector")
    ],
}
"""Rows of the threat model, and the pairs in mode counts that each is about."""


def threat_model_verdicts():
    """What the threat model says of each coalition, at t = 1 and at t = 2."""
    rows = [line.strip() for line in THREAT_MODEL.read_text("utf-8").splitlines()]
    cells = [line.strip("|").split("|") for line in rows if line.startswith("|")]
    found = {row[0].partition("(")[0].strip(): row[1:] for row in cells if len(row) == 3}
    return {coalition: found[coalition] for coalition in COALITIONS}


def in_span(target, known, prime):
    """Whether a vector is a combination of others."""
    pivots = {}

    def reduce(row):
        for column, pivot in pivots.items():
            if row[column]:
                factor = row[column]
                row = [(a - factor * b) % prime for a, b in zip(row, pivot, strict=True)]
        return row

    for row in known:
        row = reduce(row)
        lead = next((column for column, one in enumerate(row) if one), None)
        if lead is not None:
            inverse = pow(row[lead], -1, prime)
            pivots[lead] = [one * inverse % prime for one in row]
    return not any(reduce(target))


def count_shares_left(roles, mode):
    """How many shares of noise stay on hospital-a's counts for two who tell each other everything.

    Whatever both together hold and hear is one view; what is the same in every round is known to
    them. Of the exact counts with some shares of noise, the smallest such sum is looked for.
    """
    played = vertical_rounds("masks", mode)
    views, allowed = [], []
    for one in played:
        parts = [vertical_view(role, None, *one) for role in roles]
        views.append([vector for view, _, _ in parts for vector in view])
        allowed = [vector for _, known, _ in parts for vector in known]
    known = [*allowed, *relations(views, 2)]
    manifest, label, collector, _ = played[-1]
    card = manifest.providers[0]
    layout, opener = label.protocol.layouts[card.name], PARTIES[manifest.opener.name]
    numbers = Numbers(None, layout.size, None, label.protocol.word_bytes)
    sums = collector._padded_totals[: label.protocol.compute_sums_size(card.name)]
    shares = [manifest.draw_noise_share(layout, SeededRandom(index)) for index in range(3)]
    exact = label.protocol.open_sums(opener, card, sums) - sum(shares)
    for size in range(4):
        for some in combinations(shares, size):
            if in_span(numbers.of_integers(exact + sum(some)), known, 2):
                return size
    raise AssertionError("the published totals are known to nobody")


@pytest.mark.slow
@pytest.mark.parametrize("coalition", COALITIONS)
def test_the_threat_model_names_the_pairs_that_exceed_the_promise(coalition):
    """Every pair of a vertical round is in the table; shares that are left are counted in views."""
    verdicts = threat_model_verdicts()[coalition]
    for roles in COALITIONS[coalition]:
        left = count_shares_left(roles, "counts")
        for tolerated, verdict in enumerate(verdicts, 1):
            needed = vertical_manifest(tolerated=tolerated).block_noises[BLOCK].required_shares
            if left < needed:
                assert "exceeds it" in verdict or "whole records" in verdict
            else:
                assert "exceeds it" not in verdict
                assert "whole records" not in verdict


@pytest.mark.slow
def test_in_mode_probabilities_the_collector_opens_and_the_receiver_adds_nothing():
    assert count_shares_left(("labels", "collector"), "probabilities") == 1
    assert count_shares_left(("labels", "receiver"), "probabilities") == 2


def test_every_pair_of_a_vertical_round_is_in_the_threat_model():
    roles = ("labels", "collector", "receiver", NAMES[0], NAMES[1])
    listed = [frozenset(both) for pairs in COALITIONS.values() for both in pairs]
    assert len(listed) == len(set(listed))
    assert set(listed) == {frozenset(both) for both in combinations(roles, 2)}


# ----------------------------------------------------------------------------- horizontal rounds


@cache
def horizontal_rounds(way, mode, number, pads=True, judged=False):
    """Rounds with fresh pads and the same noise; of judged candidates, if that is asked."""
    key, names, played = key_of(way), NAMES[:number], []
    # there are few counters of candidates, so that more rounds make as many numbers
    for _ in range(3 * ROUNDS[way] if judged else ROUNDS[way]):
        manifest = horizontal_manifest(key, names=names, mode=mode, moments=())
        if judged:
            manifest, _ = judging_manifest(first=manifest)
        collector = horizontal.HorizontalCollector(PARTIES["collector"], manifest, key)
        said, noised = [], {}
        for k, name in enumerate(names):
            one = horizontal.HorizontalProvider(PARTIES[name], manifest, random=SeededRandom(k))
            if not pads:
                one._pads.later_keys = one._pads.earlier_keys = []
            exact = manifest.layout.count_rows(*table(ROWS, k))
            noised[name] = exact + one._noise_share
            said.append(one.make_submission(exact))
            collector.receive(said[-1])
        said += [collector.make_result()] if pads else []
        played.append((manifest, collector, said, noised))
    return played


def horizontal_view(role, key, manifest, collector, said, noised):
    total = collector.sum_submissions()
    numbers = _horizontal_numbers(manifest, key)
    heard = [one for message in said for one in readable(role, manifest, message.body.read())]
    if role == manifest.opener.name and key is not None:  # holds the Paillier key
        public, slots = make_slots(manifest)
        count = slots.count_plaintexts(manifest.layout.size)
        ciphertexts = [one for one in heard if len(one) == public.ciphertext_bytes * count] + [
            total
        ]
        heard = [
            b"".join(int(key.decrypt(c)).to_bytes(numbers.width, "big") for c in one)
            for one in (public.from_bytes(one, count) for one in ciphertexts)
        ]
    view = [numbers.of_bytes(one[: numbers.length]) for one in heard if len(one) >= numbers.length]
    view += known_pads(role, manifest, numbers)
    allowed = [numbers.of_integers(sum(noised.values()))]
    if key is not None:  # the public offset of every slot
        allowed.append(numbers.of_integers(np.zeros(manifest.layout.size, dtype=np.int64)))
    if role in noised:
        allowed.append(numbers.of_integers(noised[role]))
    return view, allowed, numbers.prime


def _horizontal_numbers(manifest, key):
    if key is None:
        return Numbers(None, manifest.layout.size)
    _, slots = make_slots(manifest)
    return Numbers(key, slots.count_plaintexts(manifest.layout.size), slots.pack_counters)


@pytest.mark.slow
@WAYS
@MODES
@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("role", ["collector", "receiver", NAMES[0]])
def test_a_party_of_a_horizontal_round_learns_the_published_totals_and_its_own_share(
    role, number, mode, way
):
    rounds = horizontal_rounds(way, mode, number)
    played = [horizontal_view(role, key_of(way), *one) for one in rounds]
    assert not leaks([view for view, _, _ in played], *played[0][1:])


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("role", ["collector", "receiver", NAMES[0]])
def test_a_party_of_a_round_of_judging_learns_the_published_numbers_and_its_own_share(role, way):
    rounds = horizontal_rounds(way, "counts", 3, judged=True)
    played = [horizontal_view(role, key_of(way), *one) for one in rounds]
    assert not leaks([view for view, _, _ in played], *played[0][1:])


@pytest.mark.slow
@WAYS
def test_without_pairwise_pads_the_opener_reads_how_each_provider_judges(way):
    """The known-bad twin of the same."""
    rounds = horizontal_rounds(way, "counts", 3, pads=False, judged=True)
    played = [horizontal_view("receiver", key_of(way), *one) for one in rounds]
    assert leaks([view for view, _, _ in played], *played[0][1:])


@pytest.mark.slow
@WAYS
def test_without_pairwise_pads_the_opener_reads_every_submission(way):
    """The known-bad twin: only the opener's pad hides a submission."""
    rounds = horizontal_rounds(way, "counts", 3, pads=False)
    played = [horizontal_view("receiver", key_of(way), *one) for one in rounds]
    assert leaks([view for view, _, _ in played], *played[0][1:])


# ------------------------------------------------------------- the noise that a party cannot remove


def worst(law, steps):
    """The largest log-ratio of any outcome under two neighbouring tables, in the seen range."""
    seen = law[TAIL - 400 : TAIL + 401]
    return float(np.abs(np.log(seen[steps:]) - np.log(seen[:-steps])).max())


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_the_shares_that_a_party_does_not_know_keep_the_promise(partition, epsilon):
    make = vertical_manifest if partition == "vertical" else horizontal_manifest
    manifest = make(epsilon=epsilon, moments=())
    block = manifest.layout.blocks[0]
    noise, cost = manifest.block_noises[block], float(manifest.compute_block_epsilon(block))
    scale = float(noise.scale)
    steps = 1  # a replaced record moves two cells by one step each
    entries = 2 if partition == "vertical" else 1
    left = sum_law(scale, noise.required_shares, noise.parties - 1)
    assert entries * worst(left, steps) <= cost * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "real"), [(1.0, 4.2), (0.1, 2.35)])
def test_with_the_collectors_share_known_as_well_the_promise_is_broken(epsilon, real):
    """What the twin's label provider is left with: the provider's share alone, of shape 1/2."""
    manifest = vertical_manifest(epsilon=epsilon, moments=())
    assert 2 * sum(
        worst(share_law(float(noise.scale), noise.required_shares), 1)
        for noise in manifest.block_noises.values()
    ) == pytest.approx(real, abs=0.2)


def test_a_round_in_which_one_must_not_know_ones_own_share_is_refused():
    for make in (horizontal_manifest, vertical_manifest):
        with pytest.raises(PrivacyError, match="subtract its own share"):
            make(tolerated=0)
        make(tolerated=0, epsilon=float("inf"))  # without noise nothing is promised


def test_the_seal_of_the_total_is_for_the_receiver():
    manifest = vertical_manifest(rows=ROWS)
    columns, codes = table(ROWS, 3)
    collector = vertical.VerticalCollector(PARTIES["collector"], manifest)
    label = vertical.LabelProvider(PARTIES["labels"], manifest)
    for card, message in zip(manifest.providers, label.make_all_labels(codes), strict=True):
        provider = vertical.VerticalProvider(PARTIES[card.name], manifest)
        provider.receive(message)
        label.receive(provider.make_tables(columns))
    label.receive(collector.make_correction())
    collector.receive(label.make_shares())
    payload = collector.make_result().body.read()
    assert len(payload) == compute_sealed_length(len(collector._padded_totals))
    assert len(readable("receiver", manifest, payload)) == 2
    assert len(readable("labels", manifest, payload)) == 1
