"""The receiver of a vertical round: takes the pads away."""

from __future__ import annotations

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.sealing import unsealed
from discreet.federated.messages import Message
from discreet.federated.release import Release
from discreet.federated.vertical.party import VerticalParty

__all__ = ["Receiver"]


class Receiver(VerticalParty):
    """Gets the result of a vertical round.

    Parameters
    ----------
    own : Identity
        The receiver's keys.
    manifest : Manifest
        What all parties signed.
    """

    def __init__(self, own: Identity, manifest: Manifest) -> None:
        super().__init__(own, manifest, manifest.receiver, "receiver")
        manifest.enter(own)

    def receive(self, data: bytes | Message) -> Release:
        """Open the result, or refuse it with a reason."""
        message = self.inbox.read(data)
        key = self.way.pair(self.own, self.manifest.collector, message.kind)
        content = unsealed(key, message.payload)
        if self.manifest.mode == "counts":
            release = self._opened(content)
        else:
            release = Release.from_probabilities(self.manifest, content)
        self.inbox.keep(message)
        return release
