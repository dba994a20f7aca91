"""The collector of a vertical round: deals masks, adds the last share of noise."""

from __future__ import annotations

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.sealing import seal, unsealed
from discreet.federated.messages import Message
from discreet.federated.vertical.party import VerticalParty
from discreet.randomness import CryptoRandom, Random

__all__ = ["Collector"]


class Collector(VerticalParty):
    """Adds the last share of noise; in mode counts it sees uniform numbers only.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    random : Random, optional
    """

    def __init__(self, own: Identity, manifest: Manifest, random: Random | None = None) -> None:
        super().__init__(own, manifest, manifest.collector, "collector")
        manifest.enter(own)
        self.random = CryptoRandom() if random is None else random
        self._correction: Message | None = None
        self._total = b""
        self._result: Message | None = None

    def correction(self) -> Message:
        """Make the correction for the label provider (masks only); always the same content."""
        if self._correction is None:
            key = self.way.pair(self.own, self.label, "correction")
            content = seal(key, [self.way.correction(self.own)])
            self._correction = self._send("correction", self.label.name, content)
        return self._correction

    @property
    def missing(self) -> tuple[str, ...]:
        """The label provider, while its message has not come."""
        return self.inbox.missing

    def receive(self, data: bytes | Message) -> Message:
        """Accept the padded sums, or refuse them with a reason."""
        message = self.inbox.read(data)
        sums = unsealed(self.way.pair(self.own, self.label, "shares"), message.payload)
        self._total = self._with_share(sums, self.random)
        self.inbox.keep(message)
        return message

    def result(self) -> Message:
        """What the receiver gets, sealed: padded totals, or in mode probabilities a model."""
        self.inbox.require_all()
        if self._result is None:
            receiver, counts = self.manifest.receiver, self.manifest.mode == "counts"
            content = self._total if counts else self._opened(self._total).to_probabilities()
            kind = "total" if counts else "model"
            # sealed, padded as it is: the label provider, who knows the sums before the last share
            # of noise was added, would otherwise read that share off
            key = self.way.pair(self.own, receiver, kind)
            self._result = self._send(kind, receiver.name, seal(key, [content]))
        return self._result
