"""The collector of a vertical round: deals masks, adds the last share of noise."""

from __future__ import annotations

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.sealing import seal, unseal_bytes
from discreet.federated.messages import Message
from discreet.federated.vertical.party import VerticalParty
from discreet.randomness import CryptoRandom, Random

__all__ = ["VerticalCollector"]


class VerticalCollector(VerticalParty):
    """Adds the last share of noise; in mode counts it sees uniform numbers only.

    Parameters
    ----------
    identity : Identity
    manifest : Manifest
    random : Random, optional
    """

    def __init__(
        self, identity: Identity, manifest: Manifest, random: Random | None = None
    ) -> None:
        super().__init__(identity, manifest, manifest.collector, "collector")
        manifest.start_session(identity)
        self.random = CryptoRandom() if random is None else random
        self._correction: Message | None = None
        self._padded_totals = b""
        self._result: Message | None = None

    def make_correction(self) -> Message:
        """Make the correction for the label provider (masks only); always the same content."""
        if self._correction is None:
            shared_key = self.protocol.derive_pair_key(
                self.identity, self.label_provider, "correction"
            )
            content = seal(shared_key, [self.protocol.compute_correction(self.identity)])
            self._correction = self._make_message("correction", self.label_provider.name, content)
        return self._correction

    @property
    def missing_senders(self) -> tuple[str, ...]:
        """The label provider, while its message has not come."""
        return self.inbox.missing_senders

    def receive(self, data: bytes | Message) -> Message:
        """Accept the padded sums, or refuse them with a reason."""
        message = self.inbox.read_message(data)
        padded_sums = unseal_bytes(
            self.protocol.derive_pair_key(self.identity, self.label_provider, "shares"),
            message.body.read(),
        )
        self._padded_totals = self._add_noise_shares(padded_sums, self.random)
        self.inbox.accept_message(message)
        return message

    def make_result(self) -> Message:
        """What the receiver gets, sealed: padded totals, or in mode probabilities a model."""
        self.inbox.require_all_messages()
        if self._result is None:
            receiver, opens_at_receiver = self.manifest.receiver, self.manifest.mode == "counts"
            content = (
                self._padded_totals
                if opens_at_receiver
                else self._open_totals(self._padded_totals).to_probabilities()
            )
            kind = "total" if opens_at_receiver else "model"
            # sealed, padded as it is: the label provider, who knows the sums before the last share
            # of noise was added, would otherwise read that share off
            shared_key = self.protocol.derive_pair_key(self.identity, receiver, kind)
            self._result = self._make_message(kind, receiver.name, seal(shared_key, [content]))
        return self._result
