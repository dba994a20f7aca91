"""The label provider of a vertical round: hides the classes, sees sums only under pads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import SEAL, sealed, unsealed
from discreet.federated.messages import Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.party import TAG, VerticalParty, exactly
from discreet.randomness import CryptoRandom, Random

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey


__all__ = ["LabelProvider"]


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
        manifest.enter(own, known)
        self.way.check_key(key)
        self.key, self.random = key, CryptoRandom() if random is None else random
        expected = {
            (name, "tables"): exactly(self.way.tables_size(name) + TAG) for name in self.way.layouts
        }
        if self.way.deals:
            dealer = manifest.collector.name
            expected[dealer, "correction"] = exactly(self.way.all_sums + SEAL)
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
                self._send(
                    "labels", card.name, payload + self._order(card, self._ids, self.own.name)
                )
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
            if message.payload[-TAG:] != self._order(sender, self._ids, sender.name):
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
