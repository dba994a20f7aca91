"""A provider of a vertical round: holds some columns, sees labels only hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.arithmetic import TAG
from discreet.federated.vertical.party import VerticalParty
from discreet.randomness import CryptoRandom, Random

__all__ = ["Provider"]


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
        manifest.enter(own, known)
        self.random = CryptoRandom() if random is None else random
        self._hidden: Any = None
        self._tables: Message | None = None

    def receive(self, data: bytes | Message) -> Message:
        """Accept the hidden labels, or refuse them with a reason."""
        message = self.inbox.read(data)
        self._hidden = self.way.read_labels(self.own, message.body.part(0, -TAG))
        self.inbox.keep(message)
        return message

    def check(self, ids: Iterable[Any] | None = None) -> bytes:
        """Refuse rows other than those of the labels; returns the tag of their order."""
        self.inbox.require_all()
        order, proof = self._digest(ids), self.inbox.body(self.label.name, "labels").part(-TAG)
        if proof.read() != self._order(self.label, order, self.label.name):
            raise ProtocolError("wrong-rows", f"{self.label.name} has other rows, or another order")
        return self._order(self.label, order, self.own.name)

    def tables(self, columns: Mapping[str, Any], ids: Iterable[Any] | None = None) -> Message:
        """The class counts of one's own columns, still hidden and under a pad.

        Parameters
        ----------
        columns : mapping of feature name to column
        ids : iterable, optional
            Of the rows, in order.
        """
        if self._tables is None:
            order = self.check(ids)
            noise = self._share(self.own.name, self.random)
            content = self.way.tables(self.own, self._hidden, columns, noise)
            self._tables = self._send("tables", self.label.name, chain(content, [order]))
        return self._tables
