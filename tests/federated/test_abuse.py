"""Everything that must be refused is, with its reason, while an honest round completes."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from round_fixtures import (
    NAMES,
    PARTIES,
    SCHEMA,
    agreed,
    counted,
    horizontal_manifest,
    table,
    vector_of,
    vertical_manifest,
)

from discreet import Categorical, Schema
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Identity
from discreet.federated.counters import make_feature_requests
from discreet.federated.crypto.masks import derive_pair_key
from discreet.federated.crypto.sealing import compute_content_length, seal_bytes, unseal_bytes
from discreet.federated.messages import Message
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release


def submission(manifest, name="hospital-a", exact=None):
    exact = np.zeros(manifest.layout.size, dtype=np.int64) if exact is None else exact
    return horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(exact)


def forged(manifest, payload, name="hospital-a", kind="submission", to="collector", own=None):
    return Message.create(own or PARTIES[name], manifest, kind, to, payload)


def edited(message, **fields):
    whole = {**json.loads(message.header), **fields}
    return json.dumps(whole).encode() + b"\n" + message.body.read()


OTHER_SCHEMA = Schema(SCHEMA.features, "class", ["no", "yes"], missing="category")


def abuses(manifest, key):
    """Name, bytes and the reason with which they must be refused."""
    honest = submission(manifest)
    payload = honest.body.read()
    n = None if key is None else key.public.n
    later, other = agreed(replace(manifest, round=2)), agreed(replace(manifest, nonce="another"))
    schema = agreed(replace(manifest, schema=OTHER_SCHEMA))
    yield "replay of an earlier round", submission(later).to_bytes(), "wrong-round"
    yield "round edited", edited(submission(later), round=1), "wrong-manifest"
    yield "another agreement", submission(other).to_bytes(), "wrong-manifest"
    yield "another schema", submission(schema).to_bytes(), "wrong-schema"
    yield "truncated", honest.to_bytes()[: len(honest.to_bytes()) // 2], "truncated"
    yield "nothing", b"", "truncated"
    yield "oversized", honest.to_bytes() + b" " * 100_000, "oversized"
    yield "not an object", b"[]", "malformed"
    yield "nested", b"[" * 4000, "truncated"
    yield "unknown field", edited(honest, extra=1), "malformed"
    yield "digest that is none", edited(honest, digest="***"), "malformed"
    yield "negative size", edited(honest, size=-1), "malformed"
    yield "other format", edited(honest, format="discreet/model"), "malformed"
    yield "other version", edited(honest, version=1), "malformed"
    stranger = Identity.generate("mallory")
    yield "unknown sender", forged(manifest, payload, own=stranger).to_bytes(), "unknown-sender"
    twin = Identity.generate("hospital-a")
    yield "wrong signer", forged(manifest, payload, own=twin).to_bytes(), "wrong-signature"
    yield "sender edited", edited(honest, sender="hospital-b"), "wrong-signature"
    tampered = bytes([payload[0] ^ 1]) + payload[1:]
    yield "body edited", honest.header + b"\n" + tampered, "damaged"
    whole = hashlib.sha256(tampered).hexdigest()
    edit = edited(honest.with_body(Payload(tampered)), digest=whole)
    yield "body and digest edited", edit, "wrong-signature"
    yield "body cut", honest.to_bytes()[:-3], "truncated"
    yield "signature cut", edited(honest, signature="00"), "wrong-signature"
    yield "for another", forged(manifest, payload, to="receiver").to_bytes(), "wrong-recipient"
    yield "another kind", forged(manifest, payload, kind="total").to_bytes(), "wrong-kind"
    yield "no provider", forged(manifest, payload, "receiver").to_bytes(), "wrong-kind"
    yield "too short", forged(manifest, payload[:-8]).to_bytes(), "wrong-length"
    yield "too long", forged(manifest, payload + bytes(8)).to_bytes(), "wrong-length"
    if n is not None:
        width = key.public.ciphertext_bytes

        def with_first(number):
            return forged(manifest, number.to_bytes(width, "big") + payload[width:]).to_bytes()

        yield "zero", with_first(0), "out-of-range"
        yield "beyond N^2", with_first(n * n), "out-of-range"
        yield "not invertible", with_first(7 * n), "not-invertible"
        yield "a factor of N", with_first(key.p), "not-invertible"


@pytest.mark.parametrize("aggregation", ["masks", "paillier"])
def test_every_abuse_is_refused_with_its_reason_and_the_honest_round_completes(
    aggregation, small_key
):
    key = small_key if aggregation == "paillier" else None
    manifest = horizontal_manifest(key, epsilon=math.inf)
    exact = counted(manifest)
    collector = horizontal.HorizontalCollector(PARTIES["collector"], manifest, key)
    collector.receive(submission(manifest, "hospital-b", exact[1]))
    seen = 0
    for what, data, reason in abuses(manifest, key):
        with pytest.raises(ProtocolError) as refusal:
            collector.receive(data)
        assert refusal.value.reason == reason, what
        assert len(str(refusal.value)) > len(reason) + 10
        seen += 1
    assert seen == (30 if key else 26)
    assert collector.missing_senders == ("hospital-a", "hospital-c")
    first = submission(manifest, "hospital-c", exact[2])
    collector.receive(first)  # in whatever order
    with pytest.raises(ProtocolError, match="replayed"):
        collector.receive(first)
    with pytest.raises(ProtocolError, match="duplicate"):
        collector.receive(forged(manifest, first.body.read()[::-1], "hospital-c"))
    collector.receive(submission(manifest, "hospital-a", exact[0]))
    receiver = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest, key)
    result = collector.make_result()
    for bad in (
        first,
        forged(manifest, result.body.read(), "hospital-a", "total", "receiver"),
        forged(manifest, result.body.read()[:-1], "collector", "total", "receiver"),
        result.to_bytes()[:-9],
    ):
        with pytest.raises(ProtocolError):
            receiver.receive(bad)
    found = receiver.receive(result.to_bytes()).statistics
    assert np.array_equal(vector_of(manifest, found), sum(exact))
    with pytest.raises(ProtocolError, match="replayed"):
        receiver.receive(result)


def test_nobody_plays_a_part_that_is_not_theirs(small_key):
    flat, upright = horizontal_manifest(small_key), vertical_manifest(small_key)
    stranger = Identity.generate("hospital-a")
    for make in (
        lambda: horizontal.HorizontalProvider(stranger, flat),
        lambda: horizontal.HorizontalProvider(PARTIES["collector"], flat),
        lambda: horizontal.HorizontalCollector(PARTIES["receiver"], flat),
        lambda: horizontal.HorizontalReceiver(PARTIES["collector"], flat, small_key),
        lambda: vertical.VerticalProvider(PARTIES["labels"], upright),
        lambda: vertical.LabelProvider(PARTIES["hospital-a"], upright, small_key),
    ):
        with pytest.raises(ProtocolError, match="is not the"):
            make()
    with pytest.raises(ProtocolError, match="vertical round"):
        horizontal.HorizontalCollector(PARTIES["collector"], upright)
    with pytest.raises(ProtocolError, match="horizontal round"):
        vertical.VerticalCollector(PARTIES["collector"], flat)
    with pytest.raises(ProtocolError, match="Paillier key of this round"):
        horizontal.HorizontalReceiver(PARTIES["receiver"], flat)


def test_nobody_takes_part_in_what_others_have_not_signed(small_key):
    flat = replace(horizontal_manifest(), signatures={})
    upright = replace(vertical_manifest(small_key), signatures={})
    for make in (
        lambda: horizontal.HorizontalProvider(PARTIES["hospital-a"], flat),
        lambda: horizontal.HorizontalCollector(PARTIES["collector"], flat),
        lambda: vertical.VerticalProvider(PARTIES["hospital-a"], upright),
        lambda: vertical.LabelProvider(PARTIES["labels"], upright, small_key),
    ):
        with pytest.raises(ProtocolError, match="lacks signatures"):
            make()


def test_a_total_without_one_provider_does_not_open_as_counts(small_key):
    """Someone adds up two of three submissions: the pads do not cancel."""
    manifest = horizontal_manifest(small_key)
    exact = counted(manifest)
    said = [submission(manifest, n, own) for n, own in zip(NAMES[:2], exact[:2], strict=True)]
    key, width = small_key.public, small_key.public.ciphertext_bytes
    count = len(said[0].body.read()) // width
    columns = zip(*(key.from_bytes(one.body.read(), count) for one in said), strict=True)
    total = key.to_bytes([key.add(column) for column in columns])
    receiver = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest, small_key)
    seal = derive_pair_key(PARTIES["collector"], manifest.receiver, manifest.hash, "total")
    wrong = forged(manifest, seal_bytes(seal, total), "collector", "total", "receiver")
    with pytest.raises(ProtocolError, match="left the round"):
        receiver.receive(wrong)


def test_vertical_refusals(small_key):
    columns, codes = table(40, 9)
    ids = [f"person {i}" for i in range(40)]
    manifest = vertical_manifest(small_key, epsilon=math.inf)
    label = vertical.LabelProvider(PARTIES["labels"], manifest, small_key)
    provider = vertical.VerticalProvider(PARTIES["hospital-a"], manifest)
    with pytest.raises(ProtocolError, match="waiting for 1 of 1: labels"):
        provider.make_tables(columns, ids)
    with pytest.raises(ProtocolError, match="wrong-rows"):
        label.make_all_labels(codes[:-1], ids)
    early = forged(
        manifest,
        bytes(small_key.public.ciphertext_bytes * 1 + 32),
        "hospital-b",
        "tables",
        "labels",
    )
    with pytest.raises(ProtocolError, match="this round needs no correction from the collector"):
        vertical.VerticalCollector(PARTIES["collector"], manifest).make_correction()
    with pytest.raises(ProtocolError, match="wrong-kind"):
        label.receive(forged(manifest, b"", "collector", "correction", "labels"))
    with pytest.raises(ProtocolError, match="out-of-order"):
        label.receive(early)
    mine, other = label.make_all_labels(codes, ids)
    assert label.make_all_labels(codes[::-1], ids)[0] is mine
    with pytest.raises(ProtocolError, match="wrong-recipient"):
        provider.receive(other)
    zero = (
        bytes(small_key.public.ciphertext_bytes)
        + mine.body.read()[small_key.public.ciphertext_bytes :]
    )
    with pytest.raises(ProtocolError, match="out-of-range"):
        provider.receive(forged(manifest, zero, "labels", "labels", "hospital-a"))
    provider.receive(mine)
    with pytest.raises(ProtocolError, match="replayed"):
        provider.receive(mine)
    with pytest.raises(ProtocolError, match="another order"):
        provider.make_tables(columns, ids[::-1])
    with pytest.raises(ProtocolError, match="39 ids"):
        provider.make_tables(columns, ids[:-1])
    with pytest.raises(ProtocolError, match="39 rows"):
        provider.make_tables({name: column[:-1] for name, column in columns.items()}, ids)
    tables = provider.make_tables(columns, ids)
    label.receive(tables)
    swapped = vertical.VerticalProvider(PARTIES["hospital-b"], manifest)
    swapped.receive(other)
    bad = swapped.make_tables(columns, ids)
    cut = forged(manifest, bad.body.read()[:-32] + bytes(32), "hospital-b", "tables", "labels")
    with pytest.raises(ProtocolError, match="wrong-rows"):
        label.receive(cut)
    with pytest.raises(ProtocolError, match="waiting for 1 of 2: hospital-b"):
        label.make_shares()
    label.receive(bad)
    collector = vertical.VerticalCollector(PARTIES["collector"], manifest)
    shares = label.make_shares()
    assert label.make_shares() is shares
    key = derive_pair_key(PARTIES["labels"], PARTIES["collector"].card, manifest.hash, "shares")
    high = seal_bytes(key, b"\xff" * compute_content_length(len(shares.body.read())))
    with pytest.raises(ProtocolError, match="out-of-range"):
        collector.receive(forged(manifest, high, "labels", "shares", "collector"))
    with pytest.raises(ProtocolError, match="cannot be opened"):
        collector.receive(
            forged(manifest, shares.body.read()[::-1], "labels", "shares", "collector")
        )
    with pytest.raises(ProtocolError, match="waiting for 1 of 1"):
        collector.make_result()
    collector.receive(shares)
    receiver = vertical.VerticalReceiver(PARTIES["receiver"], manifest)
    found = receiver.receive(collector.make_result()).statistics
    assert np.array_equal(vector_of(manifest, found), manifest.layout.count_rows(columns, codes))


def test_vertical_refusals_with_masks():
    columns, codes = table(40, 9)
    ids = [f"person {i}" for i in range(40)]
    manifest = vertical_manifest(epsilon=math.inf)
    label = vertical.LabelProvider(PARTIES["labels"], manifest)
    collector = vertical.VerticalCollector(PARTIES["collector"], manifest)
    providers = [vertical.VerticalProvider(PARTIES[name], manifest) for name in NAMES[:2]]
    with pytest.raises(ProtocolError, match="waiting for 1 of 1: labels"):
        providers[0].make_tables(columns, ids)
    with pytest.raises(ProtocolError, match="wrong-rows"):
        label.make_all_labels(codes[:-1], ids)
    said = label.make_all_labels(codes, ids)
    assert label.make_all_labels(codes[::-1], ids)[0] is said[0]

    def refused(party, message, name, kind, to):
        """Cut, too long, changed, meant for another, half of it: nothing of it is kept."""
        payload = message.body.read()
        for bad, reason in (
            (payload[:-8], "wrong-length"),
            (payload + bytes(8), "wrong-length"),
            (bytes([payload[0] ^ 1]) + payload[1:], "cannot be opened"),
            (bytes(len(payload) - 32) + payload[-32:], "cannot be opened"),
        ):
            with pytest.raises(ProtocolError, match=reason):
                party.receive(forged(manifest, bad, name, kind, to))
        with pytest.raises(ProtocolError, match="truncated"):
            party.receive(message.to_bytes()[:-20])
        party.receive(message)
        with pytest.raises(ProtocolError, match="replayed"):
            party.receive(message)
        with pytest.raises(ProtocolError, match="duplicate"):
            party.receive(forged(manifest, payload[::-1], name, kind, to))

    with pytest.raises(ProtocolError, match="wrong-recipient"):
        providers[0].receive(said[1])
    with pytest.raises(ProtocolError, match="cannot be opened"):  # sealed for the other provider
        providers[0].receive(forged(manifest, said[1].body.read(), "labels", "labels", NAMES[0]))
    for provider, message in zip(providers, said, strict=True):
        refused(provider, message, "labels", "labels", provider.identity.name)
    with pytest.raises(ProtocolError, match="another order"):
        providers[0].make_tables(columns, ids[::-1])
    with pytest.raises(ProtocolError, match="39 rows"):
        providers[0].make_tables({name: column[:-1] for name, column in columns.items()}, ids)
    early = vertical.LabelProvider(PARTIES["labels"], manifest)
    with pytest.raises(ProtocolError, match="out-of-order"):
        early.receive(providers[0].make_tables(columns, ids))
    for provider in providers:
        tables = provider.make_tables(columns, ids)
        assert provider.make_tables(columns, ids) is tables
        wrong = tables.body.read()[:-32] + bytes(32)
        with pytest.raises(ProtocolError, match="another order"):
            label.receive(forged(manifest, wrong, provider.identity.name, "tables", "labels"))
        echoed = tables.body.read()[:-32] + said[providers.index(provider)].body.read()[-32:]
        with pytest.raises(ProtocolError, match="another order"):  # the label provider's own proof
            label.receive(forged(manifest, echoed, provider.identity.name, "tables", "labels"))
        refused(label, tables, provider.identity.name, "tables", "labels")
    with pytest.raises(ProtocolError, match="waiting for 1 of 3: collector"):
        label.make_shares()
    dealt = collector.make_correction()
    assert collector.make_correction() is dealt
    again = vertical.VerticalCollector(PARTIES["collector"], manifest).make_correction()
    key = derive_pair_key(PARTIES["labels"], manifest.collector, manifest.hash, "correction")
    # a restarted collector says the same
    assert unseal_bytes(key, again.body.read()) == unseal_bytes(key, dealt.body.read())
    with pytest.raises(ProtocolError, match="wrong-kind"):
        label.receive(forged(manifest, dealt.body.read(), NAMES[0], "correction", "labels"))
    refused(label, dealt, "collector", "correction", "labels")
    shares = label.make_shares()
    assert label.make_shares() is shares
    with pytest.raises(ProtocolError, match="waiting for 1 of 1"):
        collector.make_result()
    refused(collector, shares, "labels", "shares", "collector")
    receiver = vertical.VerticalReceiver(PARTIES["receiver"], manifest)
    found = receiver.receive(collector.make_result()).statistics
    assert np.array_equal(vector_of(manifest, found), manifest.layout.count_rows(columns, codes))


def test_a_label_provider_needs_its_key_only_with_paillier(small_key):
    vertical.LabelProvider(PARTIES["labels"], vertical_manifest())
    with pytest.raises(ProtocolError, match="another Paillier key"):
        vertical.LabelProvider(PARTIES["labels"], vertical_manifest(small_key))


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
@pytest.mark.parametrize("lie", ["schema", "promise", "feature"])
def test_a_model_that_does_not_follow_from_the_round_is_refused(partition, lie):
    """A receiver would otherwise publish the collector's words under the promise of all."""
    make = horizontal_manifest if partition == "horizontal" else vertical_manifest
    vertical_receiver, horizontal_receiver = (
        vertical.VerticalReceiver,
        horizontal.HorizontalReceiver,
    )
    receiver_class = horizontal_receiver if partition == "horizontal" else vertical_receiver
    manifest = make(mode="probabilities", moments=())
    true = Release.from_totals(manifest, np.ones(manifest.layout.size, dtype=np.int64))
    lies = {"promise": true.with_guarantee(replace(true.model.guarantee, epsilon=0.1))}
    lies["feature"] = replace(true, inconsistent=("\x1b[2J",))
    other = Schema([Categorical("colour", ["red", "blue"])], "class", ["no", "yes"])
    elsewhere = replace(
        horizontal_manifest(moments=()), schema=other, requests=make_feature_requests(other)
    )
    found = Release.from_totals(elsewhere, np.ones(elsewhere.layout.size, dtype=np.int64))
    lies["schema"] = found.with_guarantee(true.model.guarantee)
    key = derive_pair_key(PARTIES["collector"], manifest.receiver, manifest.hash, "model")
    for release, refused in ((lies[lie], True), (true, False)):
        body = seal_bytes(key, release.to_probabilities())
        message = Message.create(PARTIES["collector"], manifest, "model", "receiver", body)
        receiver = receiver_class(PARTIES["receiver"], manifest)
        if refused:
            with pytest.raises(ProtocolError, match=r"wrong-manifest|malformed"):
                receiver.receive(message)
        else:
            assert receiver.receive(message).model.guarantee == manifest.guarantee


def test_a_sealed_model_for_others_does_not_open():
    manifest = horizontal_manifest(mode="probabilities")
    receiver = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest)
    with pytest.raises(ProtocolError, match="cannot be opened"):
        receiver.receive(forged(manifest, b"x" * 100, "collector", "model", "receiver"))
