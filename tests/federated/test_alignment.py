"""Alignment: exactly the common people, nothing about the others, and what is refused and why."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ring_helpers import OWNERS, Ring, invitation
from round_fixtures import PARTIES, table, vertical_manifest

from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.federated import vertical
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.invitation import MAX_LIST_IDS, NO_POSITION, Invitation
from discreet.federated.alignment import Matcher, Owner
from discreet.federated.alignment.party import (
    HASH_DOMAIN,
    AlignmentParty,
    AlignmentSecret,
    format_ids,
)
from discreet.federated.crypto.curve25519 import (
    POINT_BYTES,
    blind_points,
    is_on_curve,
    parse_points,
    to_point,
)
from discreet.federated.crypto.masks import derive_pair_key
from discreet.federated.crypto.sealing import compute_sealed_length, unseal_bytes
from discreet.federated.messages import Message
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError


def reason_of(refused):
    return refused.value.reason


# ---------------------------------------------------------------- the right answer


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_everyone_is_told_exactly_the_common_ids_in_one_order(data):
    count = data.draw(st.integers(2, 5))
    ids = st.lists(st.integers(0, 14), min_size=1, max_size=12, unique=True)
    lists = [data.draw(ids) for _ in range(count)]
    pad_to = data.draw(st.sampled_from([None, 15]))
    told = Ring(lists, pad_to=pad_to).common()
    assert all(one == told[0] for one in told)
    assert sorted(told[0]) == sorted(set.intersection(*map(set, lists)))


def test_ids_are_the_same_in_any_spelling_that_means_the_same():
    told = Ring([[1, 2, "ä"], np.array(["2", "1", "ä"]), [2.0, "ä", 7.0]]).common()
    assert [sorted(format_ids(one)) for one in told] == [["2", "ä"]] * 3


def test_no_common_id_is_an_empty_answer():
    assert Ring([["a", "b"], ["c"], ["a", "c"]]).common() == [[], [], []]


def test_the_common_order_says_nothing_and_changes_with_the_invitation():
    ids = [f"{i:03d}" for i in range(60)]
    ring, other = Ring([ids, ids]), Ring([ids, ids])
    first, second = ring.common()[0], other.common()[0]
    assert ring.matcher.find_common_points() == sorted(
        ring.matcher.blinded_lists[0]
    )  # by point: no owner's order
    assert sorted(first) == sorted(second) == ids
    assert first != second
    assert first != ids


def test_a_list_does_not_show_the_order_of_the_file():
    agreed, secret = invitation(2), AlignmentSecret()
    ids = [str(i) for i in range(20)]
    one = Owner(PARTIES["labels"], agreed, ids, secret)
    two = Owner(PARTIES["labels"], agreed, ids[::-1], secret)
    assert one._entries == two._entries
    assert one._entries != Owner(PARTIES["labels"], agreed, ids)._entries


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([1, 2, "1"], "twice"),
        (["a", ""], "row 1 has an empty id"),
        (["a", "  "], "empty"),
        ([None], "empty"),
        ([1.0, float("nan")], "empty"),
        ([], "0 ids"),
        (["a", "b", "c", "d", "e"], "5 ids; a list has 1 to 4"),
    ],
)
def test_ids_that_no_list_can_have(ids, said):
    with pytest.raises(SchemaError, match=said):
        Owner(PARTIES["labels"], invitation(pad_to=4), ids)


def test_an_invitation_is_a_document_with_rules():
    agreed = invitation(4, ids="patient number", pad_to=9)
    assert Invitation.from_json(agreed.to_json()) == agreed
    assert not Invitation.from_json(agreed.to_json()).unsigned_parties
    assert invitation().hash != invitation().hash
    with pytest.raises(PrivacyError, match="2 to 32"):
        invitation(1)
    with pytest.raises(SchemaError, match="same name"):
        replace(agreed, owners=(*agreed.owners, agreed.collector))
    with pytest.raises(SchemaError, match="lists have"):
        invitation(pad_to=MAX_LIST_IDS + 1)
    with pytest.raises(SchemaError, match="time zone"):
        invitation(deadline="2030-01-01T00:00:00")
    with pytest.raises(FormatError, match="not a discreet invitation"):
        Invitation.from_json(json.dumps({"format": "discreet/manifest", "version": 1}))


# ---------------------------------------------------------------- abuse


@pytest.fixture
def ring():
    return Ring([["a", "b"], ["b", "c"], ["b", "d"]])


def forged(sender, agreed, content, kind="list-0", recipient="hospital-a"):
    """A sealed and signed message with any content."""
    return AlignmentParty(PARTIES[sender], agreed)._seal_message(
        kind, PARTIES[recipient].card, content
    )


def test_messages_that_are_not_whole_or_not_meant_are_refused(ring):
    follower, message = ring.owners[1], ring.owners[0].make_own_list()
    refused_for = {
        "truncated": message.to_bytes()[:-20],
        "wrong-recipient": ring.owners[1].make_own_list(),
        "wrong-manifest": Ring(ring.lists).owners[0].make_own_list(),
        "wrong-round": replace(message, round=2),
        "wrong-schema": replace(message, schema="sha256:x"),
        "unknown-sender": replace(message, sender="mallory"),
        "damaged": replace(message, body=Payload(bytes(message.size))),
        "wrong-signature": replace(message, digest="00" * 32),
        "oversized": b"x" * 50_000_000,
    }
    for reason, data in refused_for.items():
        with pytest.raises(ProtocolError) as refused:
            follower.blind_and_forward(data)
        assert reason_of(refused) == reason
    ring.carry()  # nothing was lost
    with pytest.raises(ProtocolError) as refused:
        ring.matcher.receive(ring.said[2])
    assert reason_of(refused) == "replayed"
    with pytest.raises(ProtocolError) as refused:
        follower.blind_and_forward(ring.owners[0].make_own_list())
    assert reason_of(refused) == "duplicate"


def test_another_signer_cannot_speak_for_an_owner(ring):
    other = Identity.generate("labels")
    payload = ring.owners[0].make_own_list().body.read()
    fake = Message.create(other, ring.agreed, "list-0", "hospital-a", payload)
    with pytest.raises(ProtocolError, match="wrong-signature"):
        ring.owners[1].blind_and_forward(fake)
    with pytest.raises(ProtocolError, match="unknown-sender"):
        Owner(other, ring.agreed, ["a"])
    with pytest.raises(ProtocolError, match="unknown-sender"):
        Owner(PARTIES["collector"], ring.agreed, ["a"])
    with pytest.raises(ProtocolError, match="unknown-sender"):
        Matcher(PARTIES["labels"], ring.agreed)


def test_nobody_starts_before_all_have_signed_or_with_other_keys():
    with pytest.raises(ProtocolError, match="lacks signatures: labels, hospital-a"):
        Owner(PARTIES["labels"], invitation(signed=False), ["a"])
    known = [Identity.generate("hospital-b").card]
    with pytest.raises(ProtocolError, match="other keys for hospital-b"):
        Owner(PARTIES["labels"], invitation(), ["a"], known_cards=known)


TWISTED = next(u for u in range(2, 100) if not is_on_curve(u)).to_bytes(POINT_BYTES, "little")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (bytes(POINT_BYTES), "out-of-range"),
        ((1).to_bytes(POINT_BYTES, "little"), "out-of-range"),
        (b"\xff" * POINT_BYTES, "out-of-range"),
        (TWISTED, "out-of-range"),
        (2 * to_point(b"a", b"d"), "duplicate"),
    ],
    ids=["zero", "order-four", "not-canonical", "twist", "twice"],
)
def test_bad_points_are_refused_by_owners_and_by_the_collector(ring, content, reason):
    with pytest.raises(ProtocolError) as refused:
        ring.owners[1].blind_and_forward(forged("labels", ring.agreed, content))
    assert reason_of(refused) == reason
    last = forged("hospital-b", ring.agreed, content, "list-0", "collector")
    with pytest.raises(ProtocolError) as refused:
        ring.matcher.receive(last)
    assert reason_of(refused) == reason
    ring.carry()


def test_lists_of_another_length_than_agreed_are_refused():
    ring = Ring([["a"], ["b"]], pad_to=3)
    for count in (2, 4):
        content = b"".join(to_point(bytes([i]), b"d") for i in range(count))
        with pytest.raises(ProtocolError) as refused:
            ring.owners[1].blind_and_forward(forged("labels", ring.agreed, content))
        assert reason_of(refused) == "wrong-length"


def test_what_was_sealed_for_another_does_not_open(ring):
    """The collector hands the payload of one list out as another: signed, but sealed otherwise."""
    payload = ring.owners[0].make_own_list().body.read()
    swapped = Message.create(PARTIES["labels"], ring.agreed, "list-2", "hospital-a", payload)
    with pytest.raises(ProtocolError, match="cannot be opened"):
        ring.owners[1].blind_and_forward(swapped)


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        (
            [3, 0, *2 * [NO_POSITION], NO_POSITION],
            "wrong-length",
        ),  # a point was added or lost on the way
        ([4, 0], "wrong-length"),  # not filled up
        ([4, 1, 1, NO_POSITION, NO_POSITION], "duplicate"),
        ([4, 4, *3 * [NO_POSITION]], "out-of-range"),
        ([4, 0, 1, 2, NO_POSITION], "out-of-range"),  # only two of four stand for somebody
    ],
)
def test_answers_that_cannot_be_are_refused(numbers, reason):
    ring = Ring([["a", "b"], ["b", "c"]], pad_to=4)
    content = b"".join(number.to_bytes(4, "big") for number in numbers)
    with pytest.raises(ProtocolError) as refused:
        ring.owners[0].read_common_rows(
            forged("collector", ring.agreed, content, "common", "labels")
        )
    assert reason_of(refused) == reason


@pytest.mark.parametrize("lies", [False, True])
def test_a_collector_that_lies_about_who_is_common_is_found_out_by_the_round(lies):
    lists = [["a", "b", "c", "d"], ["d", "c", "b", "e"], ["c", "b", "d"]]
    ring = Ring(lists)
    ring.carry()
    answers = ring.matcher.make_answers()
    if lies:  # hospital-a is told that e, whom nobody else has, is common
        place = {point: number for number, point in enumerate(ring.matcher.blinded_lists[1])}
        odd = next(
            n for point, n in place.items() if point not in ring.matcher.find_common_points()
        )
        numbers = [
            4,
            odd,
            *(place[point] for point in ring.matcher.find_common_points()[1:]),
            NO_POSITION,
        ]
        content = b"".join(number.to_bytes(4, "big") for number in numbers)
        answers[1] = forged("collector", ring.agreed, content, "common", "hospital-a")
    told = [
        sorted(ids[row] for row in owner.read_common_rows(answer.to_bytes()))
        for owner, ids, answer in zip(ring.owners, lists, answers, strict=True)
    ]
    columns, codes = table(3, 0)
    manifest = vertical_manifest(rows=3)
    hidden = vertical.LabelProvider(PARTIES["labels"], manifest).make_all_labels(codes, told[0])
    provider = vertical.VerticalProvider(PARTIES["hospital-a"], manifest)
    provider.receive(hidden[0].to_bytes())
    if not lies:
        assert provider.make_tables(columns, told[1]).kind == "tables"
        return
    with pytest.raises(ProtocolError, match="wrong-rows"):
        provider.make_tables(columns, told[1])


def test_lists_and_answers_are_not_mixed_up(ring):
    answer = forged("collector", ring.agreed, bytes(12), "common", "hospital-a")
    with pytest.raises(ProtocolError, match="wrong-kind"):
        ring.owners[1].blind_and_forward(answer)
    with pytest.raises(ProtocolError, match="wrong-kind"):
        ring.owners[1].read_common_rows(ring.owners[0].make_own_list())
    with pytest.raises(ProtocolError, match="waiting for 3 of 3"):
        ring.matcher.make_answers()


# ---------------------------------------------------------------- who learns what


def test_the_length_of_an_answer_does_not_tell_how_many_are_common():
    """Whoever sees messages pass by knows how long they are."""
    sizes = []
    for others in (["a", "b", "c"], ["a", "x", "y"], ["x", "y", "z"]):
        ring = Ring([["a", "b", "c"], others])
        ring.carry()
        answers = ring.matcher.make_answers()
        sizes.append([message.size for message in answers])
        assert len(ring.owners[0].read_common_rows(answers[0])) == len(
            {"a", "b", "c"} & set(others)
        )
    assert sizes[0] == sizes[1] == sizes[2]


def opened(ring, message):
    """The points in a message, as its recipient sees them."""
    party = AlignmentParty(PARTIES[message.recipient], ring.agreed)
    return parse_points(party._open_message(message))


def test_what_the_collector_carries_is_sealed():
    ids = [f"p{i}" for i in range(30)]
    ring = Ring([ids, ids[5:], ids[10:]])
    ring.carry()
    seen = {point for message in ring.said for point in opened(ring, message)}
    seen |= {to_point(one.encode(), HASH_DOMAIN + ring.agreed.hash) for one in ids}
    carried = b"".join(message.to_bytes() + message.body.read() for message in ring.said)
    assert not any(point in carried for point in seen)
    collector = PARTIES["collector"]
    for message in ring.said:
        content = message.body.read()
        for name in OWNERS[:3]:
            key = derive_pair_key(collector, PARTIES[name].card, ring.agreed.hash, message.kind)
            if message.recipient == "collector" and name == message.sender:
                assert unseal_bytes(key, content)
                continue
            with pytest.raises(ProtocolError):
                unseal_bytes(key, content)


def test_dummies_hide_the_lengths_of_lists():
    ring = Ring([["a"], [str(i) for i in range(50)], ["a", "7"]], pad_to=50)
    ring.carry()
    assert {len(message.body.read()) for message in ring.said} == {
        compute_sealed_length(50 * POINT_BYTES)
    }
    assert ring.matcher.find_common_points() == []


# ---------------------------------------------------------------- the twins that can be enumerated

DOMAIN_OF_IDS = [f"{i:04d}" for i in range(2000)]
"""All ids there are: birthdays, postcodes, staff numbers."""


def lists_of_ids(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.choice(DOMAIN_OF_IDS, 100, replace=False).tolist() for _ in range(3)]


def recovered(seen, *forms):
    """The ids whose form, in any way the attacker can compute, is among what it saw."""
    return {one for one in DOMAIN_OF_IDS for form in forms if form(one.encode()) in seen}


def test_plain_hashes_give_every_list_away():
    """The twin: ids that are hashed, not blinded."""
    _, other, _ = lists_of_ids()
    sent = {hashlib.sha256(one.encode()).digest() for one in other}
    assert recovered(sent, lambda text: hashlib.sha256(text).digest()) == set(other)


def test_hashes_under_a_key_that_the_owners_share_give_every_list_away_to_each_owner():
    _, other, _ = lists_of_ids()
    key = b"known to all owners"
    sent = {hmac.digest(key, one.encode(), "sha256") for one in other}
    assert recovered(sent, lambda text: hmac.digest(key, text, "sha256")) == set(other)


@pytest.mark.slow
def test_on_ours_the_same_enumeration_finds_nothing_until_all_scalars_are_known():
    ring = Ring(lists_of_ids())
    ring.carry()
    domain = HASH_DOMAIN + ring.agreed.hash
    scalars = [owner.secret.to_private_key() for owner in ring.owners]

    def under(*known):
        def form(text):
            points = [to_point(text, domain)]
            for place in known:
                points = blind_points(points, scalars[place])
            return points[0]

        return form

    for place, name in enumerate(OWNERS[:3]):  # an owner, with all it received and its scalar
        received = [m for m in ring.said if m.recipient == name]
        seen = {point for message in received for point in opened(ring, message)}
        assert len(seen) == 200
        assert recovered(seen, under(), under(place)) == set()
    last = [m for m in ring.said if m.recipient == "collector" and m.kind == "list-1"]
    seen = set(opened(ring, last[0]))
    assert recovered(seen, under(0, 1)) == set()  # two owners and the collector, against the third
    assert recovered(seen, under(2, 0, 1)) == set(ring.lists[1])  # the attack itself is sound


def test_points_of_two_invitations_cannot_be_compared():
    ids, secret = ["a", "b"], AlignmentSecret()
    first, second = (
        Owner(PARTIES["labels"], agreed, ids, secret) for agreed in (invitation(), invitation())
    )
    one, two = (
        set(
            parse_points(
                AlignmentParty(PARTIES["hospital-a"], o.invitation)._open_message(o.make_own_list())
            )
        )
        for o in (first, second)
    )
    assert not one & two
