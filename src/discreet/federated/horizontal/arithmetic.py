"""Helpers of all roles in a horizontal round: expected messages, slots, opening totals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import derive_pair_key, expand_words
from discreet.federated.crypto.packing import (
    NARROW_SLOT_BITS,
    SLOT_BITS,
    Slots,
    compute_counter_bound,
)
from discreet.federated.crypto.sealing import compute_sealed_length
from discreet.federated.messages import BodyLengths, ExpectedMessages
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import MAX_MODEL_BYTES

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey, PublicKey

__all__ = ["check_key", "check_role", "list_routes", "make_slots", "open_totals"]


def check_role(identity: Identity, card: Card | None, role: str, manifest: Manifest) -> None:
    if card != identity.card:
        raise ProtocolError("unknown-sender", f"{identity.name} is not the {role} of this round")
    if manifest.partition != "horizontal":
        raise ProtocolError("wrong-manifest", "this is a vertical round")


def check_key(manifest: Manifest, private_key: PrivateKey | None) -> None:
    if (
        private_key is None
        or manifest.paillier is None
        or private_key.public.n != manifest.paillier.n
    ):
        raise ProtocolError(
            "wrong-manifest", "the Paillier key of this round is not the one given; open with that"
        )


def make_slots(manifest: Manifest) -> tuple[PublicKey, Slots]:
    """The key, and slots that are wide enough for 2^40 records and any noise (bar exp(-1000))."""
    assert manifest.paillier is not None
    provider_count = len(manifest.providers)
    largest_counter = max(
        (block.sensitivity << 40) + 1000 * math.ceil(noise.scale)
        for block, noise in manifest.block_noises.items()
    )
    slot_bits = (
        NARROW_SLOT_BITS
        if largest_counter < compute_counter_bound(provider_count, NARROW_SLOT_BITS)
        else SLOT_BITS
    )
    return manifest.paillier, Slots(manifest.paillier.bits, provider_count, slot_bits)


def list_routes(manifest: Manifest) -> dict[str, ExpectedMessages]:
    """List for each recipient the expected senders, message kinds and lengths."""
    collector_name, submission_size = manifest.collector.name, 8 * manifest.layout.size
    if manifest.aggregation == "paillier":
        public_key, slots = make_slots(manifest)
        plaintext_count = slots.count_plaintexts(manifest.layout.size)
        submission_size = public_key.ciphertext_bytes * plaintext_count
    result_lengths = {
        (collector_name, "total"): BodyLengths.from_size(compute_sealed_length(submission_size))
    }
    if manifest.mode == "probabilities":
        result_lengths = {
            (collector_name, "model"): BodyLengths(range(1, MAX_MODEL_BYTES), is_sealed=True)
        }
    submission_lengths = {
        (card.name, "submission"): BodyLengths.from_size(submission_size)
        for card in manifest.providers
    }
    return {collector_name: submission_lengths, manifest.receiver.name: result_lengths}


def open_totals(
    identity: Identity, manifest: Manifest, private_key: PrivateKey | None, hidden_total: bytes
) -> Integers:
    """Open the noised totals; only the opener has the keys."""
    if manifest.aggregation == "masks":
        sums = np.frombuffer(hidden_total, dtype="<u8").astype(np.uint64)
        for card in manifest.providers:
            sums -= expand_words(
                derive_pair_key(identity, card, manifest.hash, "opening"), len(sums)
            )
        return sums.view(np.int64)
    assert private_key is not None
    public_key, slots = make_slots(manifest)
    plaintext_count = slots.count_plaintexts(manifest.layout.size)
    plaintexts = [
        private_key.decrypt(ciphertext)
        for ciphertext in public_key.from_bytes(hidden_total, plaintext_count)
    ]
    return slots.unpack_counters(plaintexts, manifest.layout.size)
