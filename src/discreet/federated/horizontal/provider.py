"""The provider of a horizontal round: counts, adds its share of noise, hides under its pads."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import Pads
from discreet.federated.crypto.packing import check_counters
from discreet.federated.horizontal.arithmetic import check_role, make_slots
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.randomness import CryptoRandom, Random

__all__ = ["HorizontalProvider"]


class HorizontalProvider:
    """A provider; keys and noise are drawn at construction, before it sees any data.

    Parameters
    ----------
    identity : Identity
    manifest : Manifest
        Signed by everyone.
    known_cards : iterable of Card
        Parties whose keys were checked out of band; others are believed as the manifest has them.
    random : Random, optional
        Where the noise comes from; a seeded source is for simulation and ends the promise.
    """

    def __init__(
        self,
        identity: Identity,
        manifest: Manifest,
        known_cards: Iterable[Card] = (),
        random: Random | None = None,
    ) -> None:
        cards_by_name = {card.name: card for card in manifest.providers}
        check_role(identity, cards_by_name.get(identity.name), "provider", manifest)
        manifest.start_session(identity, known_cards)
        self.identity, self.manifest = identity, manifest
        self.random = CryptoRandom() if random is None else random
        is_masked = manifest.aggregation == "masks"
        opener = manifest.opener if is_masked else None
        self._pads = Pads(identity, manifest.providers, opener, manifest.hash)
        if not is_masked:
            from discreet.federated.crypto.paillier import Encryptor

            public_key, slots = make_slots(manifest)
            # prepared before there is data, so rather too large a table than too small a one
            expected_count = max(64, 2 * slots.count_plaintexts(manifest.layout.size))
            self._encryptor = Encryptor(public_key, expected_count)
        self._noise_share = manifest.draw_noise_share(manifest.layout, self.random)
        self._submission: Message | None = None

    def make_submission(self, exact_counts: Integers) -> Message:
        """Make the submission of this provider; every further call returns the same message.

        Parameters
        ----------
        exact_counts : array of int
            What :meth:`Layout.count_rows <discreet.federated.counters.Layout.count_rows>` counted.
        """
        if self._submission is None:
            manifest = self.manifest
            if len(exact_counts) != manifest.layout.size:
                raise ProtocolError("wrong-length", "these counts do not fit the manifest")
            noised_counts = check_counters(
                exact_counts + self._noise_share, len(manifest.providers)
            )
            if manifest.aggregation == "masks":
                pad_words = self._pads.sum_words(len(noised_counts))
                hidden_counts = (noised_counts.view(np.uint64) + pad_words).astype("<u8").tobytes()
            else:
                hidden_counts = self._encrypt_counts(noised_counts)
            self._submission = Message.create(
                self.identity, manifest, "submission", manifest.collector.name, hidden_counts
            )
        return self._submission

    def _encrypt_counts(self, noised_counts: Integers) -> bytes:
        public_key, slots = make_slots(self.manifest)
        plaintexts = slots.pack_counters(noised_counts)
        pad_residues = self._pads.sum_residues(len(plaintexts), public_key.n)
        ciphertexts = [
            self._encryptor.encrypt(plaintext + pad_residue)
            for plaintext, pad_residue in zip(plaintexts, pad_residues, strict=True)
        ]
        return public_key.to_bytes(ciphertexts)
