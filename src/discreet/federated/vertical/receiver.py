"""The receiver of a vertical round: takes the pads away."""

from __future__ import annotations

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.sealing import unseal_bytes
from discreet.federated.messages import Message
from discreet.federated.release import Release
from discreet.federated.vertical.party import VerticalParty

__all__ = ["VerticalReceiver"]


class VerticalReceiver(VerticalParty):
    """Gets the result of a vertical round.

    Parameters
    ----------
    identity : Identity
        The receiver's keys.
    manifest : Manifest
        What all parties signed.
    """

    def __init__(self, identity: Identity, manifest: Manifest) -> None:
        super().__init__(identity, manifest, manifest.receiver, "receiver")
        manifest.start_session(identity)

    def receive(self, data: bytes | Message) -> Release:
        """Open the result, or refuse it with a reason."""
        message = self.inbox.read_message(data)
        shared_key = self.protocol.derive_pair_key(
            self.identity, self.manifest.collector, message.kind
        )
        content = unseal_bytes(shared_key, message.body.read())
        if self.manifest.mode == "counts":
            release = self._open_totals(content)
        else:
            release = Release.from_probabilities(self.manifest, content)
        self.inbox.accept_message(message)
        return release
