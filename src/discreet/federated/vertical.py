"""A vertical round: all providers hold the same people, each other columns; one holds the labels.

    collector        with masks only: what makes up for the masks that it shares       correction
    label provider   hides each row's class                                                labels
    provider         adds up the hidden labels of the rows in each cell, a share of noise and a
                     pad that only the opener knows                                        tables
    label provider   reads padded sums, which tell it nothing; adds a share of noise       shares
    collector        adds its share; opens in mode probabilities, else passes on            total
    receiver         takes the pads away: noised counts, and nothing else

How labels are hidden and added up is a way's affair: ``vertical_paillier``, ``vertical_masks``. A
pad is expanded from the key that a provider shares with the opener, so it is never sent. Shares
are sealed for the collector: a provider knows its own pads, and would see sums without the
collector's noise. Rows are aligned by an agreed order of ids; both sides prove to each other that
they have the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.federated.identity import Card, Identity
from discreet.federated.manifest import Manifest
from discreet.federated.masks import SEAL, sealed, unsealed
from discreet.federated.messages import Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release
from discreet.federated.vertical_party import TAG, VerticalParty
from discreet.randomness import CryptoRandom, Random

if TYPE_CHECKING:
    from discreet.federated.paillier import PrivateKey

__all__ = ["Collector", "LabelProvider", "Provider", "Receiver"]

LARGEST_MODEL = 16 << 20


def _exactly(length: int) -> range:
    return range(length, length + 1)


class LabelProvider(VerticalParty):
    """Holds the labels, and with Paillier the key; sees sums only under pads.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    key : PrivateKey, optional
        Needed with Paillier.
    known, random
        As for a horizontal provider.
    """

    def __init__(
        self,
        own: Identity,
        manifest: Manifest,
        key: PrivateKey | None = None,
        known: Iterable[Card] = (),
        random: Random | None = None,
    ) -> None:
        super().__init__(own, manifest, manifest.label, "label provider")
        manifest.require_agreed(known)
        self.way.check_key(key)
        self.key, self.random = key, CryptoRandom() if random is None else random
        expected = {
            (name, "tables"): _exactly(self.way.tables_size(name) + TAG)
            for name in self.way.layouts
        }
        if self.way.deals:
            dealer = manifest.collector.name
            expected[dealer, "correction"] = _exactly(self.way.all_sums + SEAL)
        self.inbox = Inbox(manifest, own.name, expected)
        self._ids: list[Any] | None = None
        self._codes: NDArray[Any] = np.empty(0, dtype=np.int64)
        self._labels: list[Message] = []
        self._tables: dict[str, Any] = {}
        self._correction = bytes(self.way.all_sums)
        self._shares: Message | None = None

    def labels(self, codes: NDArray[Any], ids: Iterable[Any] | None = None) -> list[Message]:
        """The hidden classes of all rows, a message for each provider.

        Parameters
        ----------
        codes : array of int
            Class index of each row.
        ids : iterable, optional
            Of the rows, in order; every provider must hold the same.
        """
        if not self._labels:
            if len(codes) != self.rows:
                raise ProtocolError("wrong-rows", f"{len(codes)} labels for {self.rows} rows")
            self._ids = None if ids is None else list(ids)
            self._codes = np.array(codes)
            hidden = self.way.hide(self.own, self._codes, self.key)
            self._labels = [
                self._send("labels", card.name, payload + self._order(card, self._ids))
                for card, payload in zip(self.manifest.providers, hidden, strict=True)
            ]
        return self._labels

    @property
    def missing(self) -> tuple[str, ...]:
        """Whose tables, or correction, have not come."""
        return self.inbox.missing

    def receive(self, data: bytes | Message) -> Message:
        """Accept a provider's tables or the collector's correction, or refuse with a reason."""
        message = self.inbox.read(data)
        sender = self.manifest.parties[message.sender]
        if message.kind == "correction":
            key = self.way.pair(self.own, sender, "correction")
            self._correction = unsealed(key, message.payload)
        else:
            if not self._labels:
                raise ProtocolError(
                    "out-of-order", "no labels were sent yet, so no tables can come"
                )
            if message.payload[-TAG:] != self._order(sender, self._ids):
                raise ProtocolError("wrong-rows", f"{sender.name} has other rows, or another order")
            tables = self.way.read_tables(self.own, sender, message.payload[:-TAG])
            self._tables[sender.name] = tables
        self.inbox.keep(message)
        return message

    def shares(self) -> Message:
        """All padded sums with a share of noise, sealed for the collector."""
        self.inbox.require_all()
        if self._shares is None:
            sums = b"".join(
                self.way.sums(self._tables[card.name], self._codes, self.key, correction)
                for card, correction in self._pieces(self._correction)
            )
            collector = self.manifest.collector
            key = self.way.pair(self.own, collector, "shares")
            content = sealed(key, self._with_share(sums, self.random))
            self._shares = self._send("shares", collector.name, content)
        return self._shares


class Provider(VerticalParty):
    """Holds some columns; sees labels only hidden.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    known, random
        As for a horizontal provider.
    """

    def __init__(
        self,
        own: Identity,
        manifest: Manifest,
        known: Iterable[Card] = (),
        random: Random | None = None,
    ) -> None:
        cards = {card.name: card for card in manifest.providers}
        super().__init__(own, manifest, cards.get(own.name), "provider")
        manifest.require_agreed(known)
        self.random = CryptoRandom() if random is None else random
        expected = {(self.label.name, "labels"): _exactly(self.way.labels_size + TAG)}
        self.inbox = Inbox(manifest, own.name, expected)
        self._hidden: Any = None
        self._tables: Message | None = None

    def receive(self, data: bytes | Message) -> Message:
        """Accept the hidden labels, or refuse them with a reason."""
        message = self.inbox.read(data)
        self._hidden = self.way.read_labels(self.own, message.payload[:-TAG])
        self.inbox.keep(message)
        return message

    def tables(self, columns: Mapping[str, Any], ids: Iterable[Any] | None = None) -> Message:
        """The class counts of one's own columns, still hidden and under a pad.

        Parameters
        ----------
        columns : mapping of feature name to column
        ids : iterable, optional
            Of the rows, in order.
        """
        self.inbox.require_all()
        if self._tables is None:
            order = self._order(self.label, ids)
            if self.inbox.payload(self.label.name, "labels")[-TAG:] != order:
                raise ProtocolError(
                    "wrong-rows", f"{self.label.name} has other rows, or another order"
                )
            noise = self._share(self.own.name, self.random)
            content = self.way.tables(self.own, self._hidden, columns, noise)
            self._tables = self._send("tables", self.label.name, content + order)
        return self._tables


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
        manifest.require_agreed()
        self.random = CryptoRandom() if random is None else random
        expected = {(self.label.name, "shares"): _exactly(self.way.all_sums + SEAL)}
        self.inbox = Inbox(manifest, own.name, expected)
        self._correction: Message | None = None
        self._total = b""
        self._result: Message | None = None

    def correction(self) -> Message | None:
        """With masks: what the label provider needs; always the same. Nothing with Paillier."""
        if self._correction is None and self.way.deals:
            key = self.way.pair(self.own, self.label, "correction")
            content = sealed(key, self.way.correction(self.own))
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
        """What the receiver gets: padded totals, or in mode probabilities a sealed model."""
        self.inbox.require_all()
        if self._result is None:
            receiver = self.manifest.receiver
            if self.manifest.mode == "counts":
                self._result = self._send("total", receiver.name, self._total)
            else:
                release = self._opened(self._total)
                key = self.way.pair(self.own, receiver, "model")
                content = sealed(key, release.to_probabilities())
                self._result = self._send("model", receiver.name, content)
        return self._result


class Receiver(VerticalParty):
    """Gets the result of a vertical round."""

    def __init__(self, own: Identity, manifest: Manifest) -> None:
        super().__init__(own, manifest, manifest.receiver, "receiver")
        manifest.require_agreed()
        counts = manifest.mode == "counts"
        length = _exactly(self.way.all_sums) if counts else range(1, LARGEST_MODEL)
        kind = "total" if counts else "model"
        self.inbox = Inbox(manifest, own.name, {(manifest.collector.name, kind): length})

    def receive(self, data: bytes | Message) -> Release:
        """Open the result, or refuse it with a reason."""
        message = self.inbox.read(data)
        if self.manifest.mode == "counts":
            release = self._opened(message.payload)
        else:
            key = self.way.pair(self.own, self.manifest.collector, "model")
            release = Release.from_probabilities(unsealed(key, message.payload))
        self.inbox.keep(message)
        return release
