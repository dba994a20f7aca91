"""Helpers of all roles in a horizontal round: expected messages, slots, opening totals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import pair_key, words
from discreet.federated.crypto.packing import NARROW, WIDTH, Slots, bound_of
from discreet.federated.crypto.sealing import sealed_length
from discreet.federated.messages import Expected, Lengths
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import LARGEST_MODEL

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey, PublicKey

__all__ = ["check_key", "check_role", "opened", "routes", "slots_of"]


def check_role(own: Identity, card: Card | None, role: str, manifest: Manifest) -> None:
    if card != own.card:
        raise ProtocolError("unknown-sender", f"{own.name} is not the {role} of this round")
    if manifest.partition != "horizontal":
        raise ProtocolError("wrong-manifest", "this is a vertical round")


def check_key(manifest: Manifest, key: PrivateKey | None) -> None:
    if manifest.aggregation == "paillier" and (
        key is None or manifest.paillier is None or key.public.n != manifest.paillier.n
    ):
        raise ProtocolError(
            "wrong-manifest", "the Paillier key of this round is not the one given; open with that"
        )


def slots_of(manifest: Manifest) -> tuple[PublicKey, Slots]:
    """The key, and slots that are wide enough for 2^40 records and any noise (bar exp(-1000))."""
    assert manifest.paillier is not None
    parties = len(manifest.providers)
    largest = max(
        (block.sensitivity << 40) + 1000 * math.ceil(noise.scale)
        for block, noise in manifest.noises.items()
    )
    width = NARROW if largest < bound_of(parties, NARROW) else WIDTH
    return manifest.paillier, Slots(manifest.paillier.bits, parties, width)


def _submission_size(manifest: Manifest) -> int:
    """Bytes of a submission."""
    if manifest.aggregation == "masks":
        return 8 * manifest.layout.size
    key, slots = slots_of(manifest)
    return key.width * slots.plaintexts(manifest.layout.size)


def routes(manifest: Manifest) -> dict[str, Expected]:
    """List for each recipient the expected senders, message kinds and lengths."""
    size, collector = _submission_size(manifest), manifest.collector.name
    result = {(collector, "total"): Lengths.exactly(sealed_length(size))}
    if manifest.mode == "probabilities":
        result = {(collector, "model"): Lengths(range(1, LARGEST_MODEL), sealed=True)}
    submissions = {(card.name, "submission"): Lengths.exactly(size) for card in manifest.providers}
    return {collector: submissions, manifest.receiver.name: result}


def opened(own: Identity, manifest: Manifest, key: PrivateKey | None, total: bytes) -> Integers:
    """Open the noised totals; only the opener has the keys."""
    if manifest.aggregation == "masks":
        sums = np.frombuffer(total, dtype="<u8").astype(np.uint64)
        for card in manifest.providers:
            sums -= words(pair_key(own, card, manifest.hash, "opening"), len(sums))
        return sums.view(np.int64)
    assert key is not None
    public, slots = slots_of(manifest)
    count = slots.plaintexts(manifest.layout.size)
    plains = [key.decrypt(one) for one in public.from_bytes(total, count)]
    return slots.unpack(plains, manifest.layout.size)
