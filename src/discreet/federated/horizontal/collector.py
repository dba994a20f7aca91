"""The collector of a horizontal round: adds up hidden submissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import pair_key
from discreet.federated.crypto.sealing import sealed
from discreet.federated.horizontal.arithmetic import (
    check_key,
    check_role,
    opened,
    routes,
    slots_of,
)
from discreet.federated.messages import Inbox, Message
from discreet.federated.release import Release

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Collector"]


class Collector:
    """Takes one submission of every provider and passes their sum on.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    key : PrivateKey, optional
        Needed in mode ``probabilities`` with Paillier, where the collector opens the sum.
    """

    def __init__(self, own: Identity, manifest: Manifest, key: PrivateKey | None = None) -> None:
        check_role(own, manifest.collector, "collector", manifest)
        manifest.enter(own)
        self.own, self.manifest, self.key = own, manifest, key
        if manifest.mode == "probabilities":
            check_key(manifest, key)
        self.inbox = Inbox(manifest, own.name, routes(manifest)[own.name])

    @property
    def missing(self) -> tuple[str, ...]:
        """Providers that have not submitted."""
        return self.inbox.missing

    def receive(self, data: bytes | Message) -> Message:
        """Accept a submission, or refuse it with a reason."""
        message = self.inbox.read(data)
        if self.manifest.aggregation == "paillier":
            key, slots = slots_of(self.manifest)
            key.from_bytes(message.payload, slots.plaintexts(self.manifest.layout.size))
        self.inbox.keep(message)
        return message

    def total(self) -> bytes:
        """Sum all submissions; the sum stays hidden from everyone but the opener."""
        self.inbox.require_all()
        payloads = (message.payload for message in self.inbox.accepted.values())
        if self.manifest.aggregation == "masks":
            sums = np.zeros(self.manifest.layout.size, dtype=np.uint64)
            for payload in payloads:
                sums += np.frombuffer(payload, dtype="<u8")
            return sums.astype("<u8").tobytes()
        key, slots = slots_of(self.manifest)
        count = slots.plaintexts(self.manifest.layout.size)
        columns = zip(*(key.from_bytes(payload, count) for payload in payloads), strict=True)
        return key.to_bytes([key.add(column) for column in columns])

    def result(self) -> Message:
        """Make the sealed result for the receiver: the hidden total, or a model."""
        manifest, receiver, content = self.manifest, self.manifest.receiver, self.total()
        kind = "total"
        if manifest.mode == "probabilities":
            release = Release.of(manifest, opened(self.own, manifest, self.key, content))
            kind, content = "model", release.to_probabilities()
        key = pair_key(self.own, receiver, manifest.hash, kind)
        return Message.create(self.own, manifest, kind, receiver.name, sealed(key, content))
