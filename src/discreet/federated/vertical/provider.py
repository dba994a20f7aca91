"""A provider of a vertical round: holds some columns, sees labels only hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.messages import Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.party import TAG, VerticalParty, exactly
from discreet.randomness import CryptoRandom, Random

if TYPE_CHECKING:
    pass


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
        expected = {(self.label.name, "labels"): exactly(self.way.labels_size + TAG)}
        self.inbox = Inbox(manifest, own.name, expected)
        self._hidden: Any = None
        self._tables: Message | None = None

    def receive(self, data: bytes | Message) -> Message:
        """Accept the hidden labels, or refuse them with a reason."""
        message = self.inbox.read(data)
        self._hidden = self.way.read_labels(self.own, message.payload[:-TAG])
        self.inbox.keep(message)
        return message

    def check(self, columns: Mapping[str, Any], ids: Iterable[Any] | None = None) -> bytes:
        """Refuse rows that are not those of the labels; gives the proof of their order."""
        self.inbox.require_all()
        theirs = self._order(self.label, ids, self.label.name)
        if self.inbox.payload(self.label.name, "labels")[-TAG:] != theirs:
            raise ProtocolError("wrong-rows", f"{self.label.name} has other rows, or another order")
        return self._order(self.label, ids, self.own.name)

    def tables(self, columns: Mapping[str, Any], ids: Iterable[Any] | None = None) -> Message:
        """The class counts of one's own columns, still hidden and under a pad.

        Parameters
        ----------
        columns : mapping of feature name to column
        ids : iterable, optional
            Of the rows, in order.
        """
        if self._tables is None:
            order = self.check(columns, ids)
            noise = self._share(self.own.name, self.random)
            content = self.way.tables(self.own, self._hidden, columns, noise)
            self._tables = self._send("tables", self.label.name, content + order)
        return self._tables
