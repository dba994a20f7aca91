"""A vertical round: all providers hold the same people, each other columns; one holds the labels.

    label provider   encrypts each row's class                                             labels
    provider         multiplies the labels of the rows in each cell, adds a share of noise and
                     a pad that only the opener knows, and refreshes the randomness         tables
    label provider   decrypts padded sums, which tell it nothing; adds a share of noise     shares
    collector        adds its share; opens in mode probabilities, else passes on             total
    receiver         takes the pads away: noised counts, and nothing else

A pad is expanded from the key that a provider shares with the opener, so it is never sent. Rows
are aligned by an agreed order of ids; both sides prove to each other that they have the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.federated.identity import Card, Identity
from discreet.federated.manifest import Manifest
from discreet.federated.masks import pair_key, residues, sealed, unsealed
from discreet.federated.messages import Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release
from discreet.federated.slots import WIDTH, checked
from discreet.federated.vertical_party import TAG, VerticalParty
from discreet.randomness import CryptoRandom, Random

if TYPE_CHECKING:
    from discreet.federated.paillier import PrivateKey

__all__ = ["Collector", "LabelProvider", "Provider", "Receiver"]

Integers = NDArray[np.int64]
LARGEST_MODEL = 16 << 20


class LabelProvider(VerticalParty):
    """Holds the labels and the Paillier key; sees sums only under pads.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    key : PrivateKey
    known, random
        As for a horizontal provider.
    """

    def __init__(
        self,
        own: Identity,
        manifest: Manifest,
        key: PrivateKey,
        known: Iterable[Card] = (),
        random: Random | None = None,
    ) -> None:
        super().__init__(own, manifest, manifest.label, "label provider")
        manifest.require_agreed(known)
        if key.public.n != self.public.n:
            raise ProtocolError("wrong-manifest", "the manifest names another Paillier key")
        self.key, self.random = key, CryptoRandom() if random is None else random
        lengths = {n: self.public.width * c.count + TAG for n, c in self.chunks.items()}
        expected = {(n, "tables"): range(e, e + 1) for n, e in lengths.items()}
        self.inbox = Inbox(manifest, own.name, expected)
        self._ids: list[Any] | None = None
        self._labels: list[Message] = []
        self._shares: Message | None = None

    def labels(self, codes: NDArray[Any], ids: Iterable[Any] | None = None) -> list[Message]:
        """The encrypted classes of all rows, a message for each provider.

        Parameters
        ----------
        codes : array of int
            Class index of each row.
        ids : iterable, optional
            Of the rows, in order; every provider must hold the same.
        """
        if not self._labels:
            from discreet.federated.paillier import Encryptor

            if len(codes) != self.rows:
                raise ProtocolError("wrong-rows", f"{len(codes)} labels for {self.rows} rows")
            self._ids = None if ids is None else list(ids)
            encryptor = Encryptor(self.public, self.rows, self.key)
            hidden = [encryptor.encrypt(1 << WIDTH * int(code)) for code in codes]
            payload = self.public.to_bytes(hidden)
            self._labels = [
                self._send("labels", card.name, payload + self._order(card, self._ids))
                for card in self.manifest.providers
            ]
        return self._labels

    @property
    def missing(self) -> tuple[str, ...]:
        """Providers whose tables have not come."""
        return self.inbox.missing

    def receive(self, data: bytes | Message) -> Message:
        """Accept a provider's tables, or refuse them with a reason."""
        message = self.inbox.read(data)
        if not self._labels:
            raise ProtocolError("out-of-order", "no labels were sent yet, so no tables can come")
        if message.payload[-TAG:] != self._order(self.manifest.parties[message.sender], self._ids):
            raise ProtocolError("wrong-rows", f"{message.sender} has other rows, or another order")
        count = self.chunks[message.sender].count
        self.public.from_bytes(message.payload[:-TAG], count)
        self.inbox.keep(message)
        return message

    def shares(self) -> Message:
        """All padded sums with a share of noise, for the collector."""
        self.inbox.require_all()
        if self._shares is None:
            sums = []
            for name, chunks in self.chunks.items():
                data = self.inbox.payload(name, "tables")[:-TAG]
                hidden = self.public.from_bytes(data, chunks.count)
                sums.append([self.key.decrypt(one) for one in hidden])
            content = self._with_share(sums, self.random)
            self._shares = self._send("shares", self.manifest.collector.name, content)
        return self._shares


class Provider(VerticalParty):
    """Holds some columns; sees labels only encrypted.

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
        length = self.public.width * self.rows + TAG
        expected = {(self.label.name, "labels"): range(length, length + 1)}
        self.inbox = Inbox(manifest, own.name, expected)
        self._tables: Message | None = None

    def receive(self, data: bytes | Message) -> Message:
        """Accept the encrypted labels, or refuse them with a reason."""
        message = self.inbox.read(data)
        self._hidden = self.public.from_bytes(message.payload[:-TAG], self.rows)
        self.inbox.keep(message)
        return message

    def tables(self, columns: Mapping[str, Any], ids: Iterable[Any] | None = None) -> Message:
        """The class counts of one's own columns, still encrypted and under a pad.

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
            sums = self._packed(self._gathered(columns))
            key = pair_key(self.own, self.manifest.opener, self.manifest.hash, "opening")
            pads = residues(key, len(sums), self.public.n)
            noise = self._share(self.own.name, self.random)
            hidden = [
                self.public.refresh(one * self.public.embed(a + b) % self.public.modulus)
                for one, a, b in zip(sums, pads, noise, strict=True)
            ]
            content = self.public.to_bytes(hidden) + order
            self._tables = self._send("tables", self.label.name, content)
        return self._tables

    def _gathered(self, columns: Mapping[str, Any]) -> list[Any]:
        """One ciphertext a column of each block: the labels of its rows, multiplied."""
        layout, found = self.chunks[self.own.name].layout, []
        for one in layout.wanted:
            for block, weights in layout.rows(one, columns[one.feature]):
                if len(weights) != self.rows:
                    raise ProtocolError(
                        "wrong-rows", f"{one.feature}: {len(weights)} rows, {self.rows} agreed"
                    )
                checked([block.sensitivity * self.rows], 4)  # leaves room for the noise
                for column in weights.T:
                    rows = np.flatnonzero(column)
                    found.append(self.public.add(self._weighted(rows, column[rows])))
        return found

    def _weighted(self, rows: Integers, weights: Integers) -> Iterable[Any]:
        for row, weight in zip(rows.tolist(), weights.tolist(), strict=True):
            hidden = self._hidden[row]
            yield hidden if weight == 1 else self.public.scale(hidden, weight)

    def _packed(self, columns: list[Any]) -> list[Any]:
        """Columns side by side, by Horner's rule."""
        chunks, packed, start = self.chunks[self.own.name], [], 0
        for width in chunks.widths:
            whole = columns[start + width - 1]
            for column in reversed(columns[start : start + width - 1]):
                whole = self.public.scale(whole, 1 << chunks.shift) * column % self.public.modulus
            packed.append(whole)
            start += width
        return packed


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
        self.inbox = Inbox(manifest, own.name, {(self.label.name, "shares"): self._sums})
        self._result: Message | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The label provider, while its message has not come."""
        return self.inbox.missing

    def receive(self, data: bytes | Message) -> Message:
        """Accept the padded sums, or refuse them with a reason."""
        message = self.inbox.read(data)
        self._residues(message.payload)
        self.inbox.keep(message)
        return message

    def result(self) -> Message:
        """What the receiver gets: padded totals, or in mode probabilities a sealed model."""
        self.inbox.require_all()
        if self._result is None:
            sums = self._residues(self.inbox.payload(self.label.name, "shares"))
            total = self._with_share(sums, self.random)
            receiver = self.manifest.receiver
            if self.manifest.mode == "counts":
                self._result = self._send("total", receiver.name, total)
            else:
                release = self._opened(self._residues(total))
                key = pair_key(self.own, receiver, self.manifest.hash, "model")
                content = sealed(key, release.to_probabilities())
                self._result = self._send("model", receiver.name, content)
        return self._result


class Receiver(VerticalParty):
    """Gets the result of a vertical round."""

    def __init__(self, own: Identity, manifest: Manifest) -> None:
        super().__init__(own, manifest, manifest.receiver, "receiver")
        manifest.require_agreed()
        counts = manifest.mode == "counts"
        length = self._sums if counts else range(1, LARGEST_MODEL)
        kind = "total" if counts else "model"
        self.inbox = Inbox(manifest, own.name, {(manifest.collector.name, kind): length})

    def receive(self, data: bytes | Message) -> Release:
        """Open the result, or refuse it with a reason."""
        message = self.inbox.read(data)
        if self.manifest.mode == "counts":
            release = self._opened(self._residues(message.payload))
        else:
            key = pair_key(self.own, self.manifest.collector, self.manifest.hash, "model")
            release = Release.from_probabilities(unsealed(key, message.payload))
        self.inbox.keep(message)
        return release
