"""A horizontal round: every provider holds other people, all hold the same columns.

    provider    counts, adds its share of noise, hides the numbers under its pads      submission
    collector   adds up what all providers sent; the pads cancel only in the whole sum      total
    receiver    opens the total: noised counts, and nothing else
    (or, in mode probabilities: the collector opens the total and sends a sealed            model)

The three machines take and give messages and keep what they accepted; a machine that was lost is
rebuilt by giving the same messages to a new one. A provider must not be rebuilt with other noise
under the same manifest: it keeps its submission and sends the same bytes again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers
from discreet.federated.identity import Card, Identity
from discreet.federated.manifest import Manifest
from discreet.federated.masks import Pads, pair_key, sealed, unsealed, words
from discreet.federated.messages import Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release
from discreet.federated.slots import NARROW, WIDTH, Slots, bound_of, checked
from discreet.randomness import CryptoRandom, Random

if TYPE_CHECKING:
    from discreet.federated.paillier import PrivateKey, PublicKey

__all__ = ["Collector", "Provider", "Receiver", "submission_length"]

LARGEST_MODEL = 16 << 20


def _check_role(own: Identity, card: Card | None, role: str, manifest: Manifest) -> None:
    if card != own.card:
        raise ProtocolError("unknown-sender", f"{own.name} is not the {role} of this round")
    if manifest.partition != "horizontal":
        raise ProtocolError("wrong-manifest", "this is a vertical round")


def _slots(manifest: Manifest) -> tuple[PublicKey, Slots]:
    """The key, and slots that are wide enough for 2^40 records and any noise (bar exp(-1000))."""
    assert manifest.paillier is not None
    parties = len(manifest.providers)
    largest = max(
        (block.sensitivity << 40) + 1000 * math.ceil(noise.scale)
        for block, noise in manifest.noises.items()
    )
    width = NARROW if largest < bound_of(parties, NARROW) else WIDTH
    return manifest.paillier, Slots(manifest.paillier.bits, parties, width)


def submission_length(manifest: Manifest) -> range:
    """Bytes of a submission and of a total."""
    if manifest.aggregation == "masks":
        length = 8 * manifest.layout.size
    else:
        key, slots = _slots(manifest)
        length = key.width * slots.plaintexts(manifest.layout.size)
    return range(length, length + 1)


class Provider:
    """One provider: keys are agreed and noise is drawn when it is made, before it sees any data.

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
        _check_role(own, by_name.get(own.name), "provider", manifest)
        manifest.require_agreed(known)
        self.own, self.manifest = own, manifest
        self.random = CryptoRandom() if random is None else random
        masked = manifest.aggregation == "masks"
        opener = manifest.opener if masked else None
        self._pads = Pads(own, manifest.providers, opener, manifest.hash)
        if not masked:
            from discreet.federated.paillier import Encryptor

            key, slots = _slots(manifest)
            # prepared before there is data, so rather too large a table than too small a one
            expected = max(64, 2 * slots.plaintexts(manifest.layout.size))
            self._encryptor = Encryptor(key, expected)
        self._noise = self.share()
        self._submission: Message | None = None

    def share(self) -> Integers:
        """Draw the share of the noise, one number for each counter."""
        return self.manifest.share(self.manifest.layout, self.random)

    def submit(self, exact: Integers) -> Message:
        """The one submission of this provider; asked again, it gives the same.

        Parameters
        ----------
        exact : array of int
            What :meth:`Layout.vector <discreet.federated.layout.Layout.vector>` counted.
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
        key, slots = _slots(self.manifest)
        plains = slots.pack(noised)
        pads = self._pads.residues(len(plains), key.n)
        hidden = [self._encryptor.encrypt(a + b) for a, b in zip(plains, pads, strict=True)]
        return key.to_bytes(hidden)


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
        _check_role(own, manifest.collector, "collector", manifest)
        manifest.require_agreed()
        self.own, self.manifest, self.key = own, manifest, key
        if manifest.mode == "probabilities":
            _check_key(manifest, key)
        length = submission_length(manifest)
        expected = {(card.name, "submission"): length for card in manifest.providers}
        self.inbox = Inbox(manifest, own.name, expected)

    @property
    def missing(self) -> tuple[str, ...]:
        """Providers that have not submitted."""
        return self.inbox.missing

    def receive(self, data: bytes | Message) -> Message:
        """Accept a submission, or refuse it with a reason."""
        message = self.inbox.read(data)
        if self.manifest.aggregation == "paillier":
            key, slots = _slots(self.manifest)
            key.from_bytes(message.payload, slots.plaintexts(self.manifest.layout.size))
        self.inbox.keep(message)
        return message

    def total(self) -> bytes:
        """The sum of all submissions, still hidden from everyone but the opener."""
        self.inbox.require_all()
        payloads = [message.payload for message in self.inbox.accepted.values()]
        if self.manifest.aggregation == "masks":
            sums = np.zeros(self.manifest.layout.size, dtype=np.uint64)
            for payload in payloads:
                sums += np.frombuffer(payload, dtype="<u8")
            return sums.astype("<u8").tobytes()
        key, slots = _slots(self.manifest)
        count = slots.plaintexts(self.manifest.layout.size)
        columns = zip(*(key.from_bytes(payload, count) for payload in payloads), strict=True)
        return key.to_bytes([key.add(column) for column in columns])

    def result(self) -> Message:
        """What the receiver gets: the hidden total, or in mode probabilities a sealed model."""
        manifest, receiver = self.manifest, self.manifest.receiver
        if manifest.mode == "counts":
            return Message.create(self.own, manifest, "total", receiver.name, self.total())
        release = Release.of(manifest, opened(self.own, manifest, self.key, self.total()))
        key = pair_key(self.own, receiver, manifest.hash, "model")
        content = sealed(key, release.to_probabilities())
        return Message.create(self.own, manifest, "model", receiver.name, content)


class Receiver:
    """Gets the result of a round.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    key : PrivateKey, optional
        Needed in mode ``counts`` with Paillier.
    """

    def __init__(self, own: Identity, manifest: Manifest, key: PrivateKey | None = None) -> None:
        _check_role(own, manifest.receiver, "receiver", manifest)
        manifest.require_agreed()
        self.own, self.manifest, self.key = own, manifest, key
        counts = manifest.mode == "counts"
        if counts:
            _check_key(manifest, key)
        length = submission_length(manifest) if counts else range(1, LARGEST_MODEL)
        kind = "total" if counts else "model"
        self.inbox = Inbox(manifest, own.name, {(manifest.collector.name, kind): length})

    def receive(self, data: bytes | Message) -> Release:
        """Open the result, or refuse it with a reason."""
        message, manifest = self.inbox.read(data), self.manifest
        if manifest.mode == "counts":
            vector = opened(self.own, manifest, self.key, message.payload)
            release = Release.of(manifest, vector)
        else:
            key = pair_key(self.own, manifest.collector, manifest.hash, "model")
            release = Release.from_probabilities(unsealed(key, message.payload))
        self.inbox.keep(message)
        return release


def opened(own: Identity, manifest: Manifest, key: PrivateKey | None, total: bytes) -> Integers:
    """The noised totals, for the one party that can open them."""
    if manifest.aggregation == "masks":
        sums = np.frombuffer(total, dtype="<u8").astype(np.uint64)
        for card in manifest.providers:
            sums -= words(pair_key(own, card, manifest.hash, "opening"), len(sums))
        return sums.view(np.int64)
    assert key is not None
    public, slots = _slots(manifest)
    count = slots.plaintexts(manifest.layout.size)
    plains = [key.decrypt(one) for one in public.from_bytes(total, count)]
    return slots.unpack(plains, manifest.layout.size)


def _check_key(manifest: Manifest, key: PrivateKey | None) -> None:
    if manifest.aggregation == "paillier" and (
        key is None or manifest.paillier is None or key.public.n != manifest.paillier.n
    ):
        raise ProtocolError(
            "wrong-manifest", "the Paillier key of this round is not the one given; open with that"
        )
