"""The collector of a horizontal round: adds up hidden submissions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import derive_pair_key
from discreet.federated.crypto.sealing import seal_bytes
from discreet.federated.horizontal.arithmetic import (
    check_key,
    check_role,
    list_routes,
    make_slots,
    open_totals,
)
from discreet.federated.messages import Inbox, Message
from discreet.federated.release import Release

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["HorizontalCollector"]


class HorizontalCollector:
    """Takes one submission of every provider and passes their sum on.

    Parameters
    ----------
    identity : Identity
    manifest : Manifest
    private_key : PrivateKey, optional
        Needed in mode ``probabilities`` with Paillier, where the collector opens the sum.
    """

    def __init__(
        self, identity: Identity, manifest: Manifest, private_key: PrivateKey | None = None
    ) -> None:
        check_role(identity, manifest.collector, "collector", manifest)
        manifest.start_session(identity)
        self.identity, self.manifest, self.private_key = identity, manifest, private_key
        if manifest.mode == "probabilities" and manifest.aggregation == "paillier":
            check_key(manifest, private_key)
        self.inbox = Inbox(manifest, identity.name, list_routes(manifest)[identity.name])

    @property
    def missing_senders(self) -> tuple[str, ...]:
        """Providers that have not submitted."""
        return self.inbox.missing_senders

    def receive(self, data: bytes | Message) -> Message:
        """Accept a submission, or refuse it with a reason."""
        message = self.inbox.read_message(data)
        if self.manifest.aggregation == "paillier":
            public_key, slots = make_slots(self.manifest)
            public_key.from_bytes(
                message.body.read(), slots.count_plaintexts(self.manifest.layout.size)
            )
        self.inbox.accept_message(message)
        return message

    def sum_submissions(self) -> bytes:
        """Sum all submissions; the sum stays hidden from everyone but the opener."""
        self.inbox.require_all_messages()
        payloads = (message.body.read() for message in self.inbox.accepted.values())
        if self.manifest.aggregation == "masks":
            sums = np.zeros(self.manifest.layout.size, dtype=np.uint64)
            for payload in payloads:
                sums += np.frombuffer(payload, dtype="<u8")
            return sums.astype("<u8").tobytes()
        public_key, slots = make_slots(self.manifest)
        plaintext_count = slots.count_plaintexts(self.manifest.layout.size)
        ciphertext_columns = zip(
            *(public_key.from_bytes(payload, plaintext_count) for payload in payloads), strict=True
        )
        return public_key.to_bytes([public_key.add(column) for column in ciphertext_columns])

    def make_result(self) -> Message:
        """Make the sealed result for the receiver: the hidden total, or a model."""
        manifest, receiver, content = self.manifest, self.manifest.receiver, self.sum_submissions()
        kind = "total"
        if manifest.mode == "probabilities":
            release = Release.from_totals(
                manifest, open_totals(self.identity, manifest, self.private_key, content)
            )
            kind, content = "model", release.to_probabilities()
        shared_key = derive_pair_key(self.identity, receiver, manifest.hash, kind)
        return Message.create(
            self.identity, manifest, kind, receiver.name, seal_bytes(shared_key, content)
        )
