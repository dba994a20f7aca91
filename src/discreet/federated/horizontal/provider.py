"""The provider of a horizontal round: counts, adds its share of noise, hides under its pads."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import Pads
from discreet.federated.crypto.packing import checked
from discreet.federated.horizontal.arithmetic import check_role, slots_of
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.randomness import CryptoRandom, Random

__all__ = ["Provider"]


class Provider:
    """A provider; keys and noise are drawn at construction, before it sees any data.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
        Signed by everyone.
    known : iterable of Card
        Parties whose keys were checked out of band; others are believed as the manifest has them.
    random : Random, optional
        Where the noise comes from; a seeded source is for simulation and ends the promise.
    """

    def __init__(
        self,
        own: Identity,
        manifest: Manifest,
        known: Iterable[Card] = (),
        random: Random | None = None,
    ) -> None:
        by_name = {card.name: card for card in manifest.providers}
        check_role(own, by_name.get(own.name), "provider", manifest)
        manifest.enter(own, known)
        self.own, self.manifest = own, manifest
        self.random = CryptoRandom() if random is None else random
        masked = manifest.aggregation == "masks"
        opener = manifest.opener if masked else None
        self._pads = Pads(own, manifest.providers, opener, manifest.hash)
        if not masked:
            from discreet.federated.crypto.paillier import Encryptor

            key, slots = slots_of(manifest)
            # prepared before there is data, so rather too large a table than too small a one
            expected = max(64, 2 * slots.plaintexts(manifest.layout.size))
            self._encryptor = Encryptor(key, expected)
        self._noise = self.share()
        self._submission: Message | None = None

    def share(self) -> Integers:
        """Draw the share of the noise, one number for each counter."""
        return self.manifest.share(self.manifest.layout, self.random)

    def submit(self, exact: Integers) -> Message:
        """Make the submission of this provider; every further call returns the same message.

        Parameters
        ----------
        exact : array of int
            What :meth:`Layout.vector <discreet.federated.counters.Layout.vector>` counted.
        """
        if self._submission is None:
            manifest = self.manifest
            if len(exact) != manifest.layout.size:
                raise ProtocolError("wrong-length", "these counts do not fit the manifest")
            noised = checked(exact + self._noise, len(manifest.providers))
            hide = self._masked if manifest.aggregation == "masks" else self._encrypted
            self._submission = Message.create(
                self.own, manifest, "submission", manifest.collector.name, hide(noised)
            )
        return self._submission

    def _masked(self, noised: Integers) -> bytes:
        hidden = noised.view(np.uint64) + self._pads.words(len(noised))
        return hidden.astype("<u8").tobytes()

    def _encrypted(self, noised: Integers) -> bytes:
        key, slots = slots_of(self.manifest)
        plains = slots.pack(noised)
        pads = self._pads.residues(len(plains), key.n)
        hidden = [self._encryptor.encrypt(a + b) for a, b in zip(plains, pads, strict=True)]
        return key.to_bytes(hidden)
