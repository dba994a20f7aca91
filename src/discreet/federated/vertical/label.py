"""The label provider of a vertical round: hides the classes, sees sums only under pads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.sealing import seal, unsealed
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.arithmetic import TAG
from discreet.federated.vertical.party import VerticalParty
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
        self._order_of_rows = b""
        self._codes: NDArray[Any] = np.empty(0, dtype=np.int64)
        self._hidden: Callable[[Card], Iterable[bytes]] | None = None
        self._labels: dict[str, Message] = {}
        self._tables: dict[str, Any] = {}
        self._correction = bytes(self.way.all_sums)
        self._shares: Message | None = None

    def hold(self, codes: NDArray[Any], ids: Iterable[Any] | None = None) -> None:
        """Take the class of every row, and the order of the rows.

        Parameters
        ----------
        codes : array of int
            Class index of each row.
        ids : iterable, optional
            Of the rows, in order; every provider must hold the same.
        """
        if len(codes) != self.rows:
            raise ProtocolError("wrong-rows", f"{len(codes)} labels for {self.rows} rows")
        self._order_of_rows, self._codes = self._digest(ids), np.array(codes)

    def labels_for(self, card: Card) -> Message:
        """The hidden classes of all rows for one provider."""
        if card.name not in self._labels:
            if self._hidden is None:
                self._hidden = self.way.hide(self.own, self._codes, self.key)
            order = self._order(card, self._order_of_rows, self.own.name)
            pieces = chain(self._hidden(card), [order])
            self._labels[card.name] = self._send("labels", card.name, pieces)
        return self._labels[card.name]

    def labels(self, codes: NDArray[Any], ids: Iterable[Any] | None = None) -> list[Message]:
        """Hold rows, and give the hidden classes for every provider; see :meth:`hold`."""
        if not len(self._codes):
            self.hold(codes, ids)
        return [self.labels_for(card) for card in self.manifest.providers]

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
            if not len(self._codes):
                raise ProtocolError(
                    "out-of-order", "no labels were sent yet, so no tables can come"
                )
            proof, content = message.body.part(-TAG), message.body.part(0, -TAG)
            if proof.read() != self._order(sender, self._order_of_rows, sender.name):
                raise ProtocolError("wrong-rows", f"{sender.name} has other rows, or another order")
            tables = self.way.read_tables(self.own, sender, content, self._codes)
            self._tables[sender.name] = tables
        self.inbox.keep(message)
        return message

    def shares(self) -> Message:
        """All padded sums with a share of noise, sealed for the collector."""
        self.inbox.require_all()
        if self._shares is None:
            sums = b"".join(
                self.way.sums(self._tables[card.name], self.key, correction)
                for card, correction in self._pieces(self._correction)
            )
            collector = self.manifest.collector
            key = self.way.pair(self.own, collector, "shares")
            content = seal(key, [self._with_share(sums, self.random)])
            self._shares = self._send("shares", collector.name, content)
        return self._shares
