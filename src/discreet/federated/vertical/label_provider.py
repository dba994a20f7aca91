"""The label provider of a vertical round: hides the classes, sees sums only under pads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Array
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.sealing import seal, unseal_bytes
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.party import VerticalParty
from discreet.federated.vertical.protocol import (
    ORDER_TAG_BYTES,
    ClassCodes,
    LabelHider,
    TableSummer,
)
from discreet.randomness import CryptoRandom, Random

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey


__all__ = ["LabelProvider"]


class LabelProvider(VerticalParty):
    """Holds the labels, and with Paillier the key; sees sums only under pads.

    Parameters
    ----------
    identity : Identity
    manifest : Manifest
    private_key : PrivateKey, optional
        Needed with Paillier.
    known_cards, random
        As for a horizontal provider.
    """

    def __init__(
        self,
        identity: Identity,
        manifest: Manifest,
        private_key: PrivateKey | None = None,
        known_cards: Iterable[Card] = (),
        random: Random | None = None,
    ) -> None:
        super().__init__(identity, manifest, manifest.label, "label provider")
        manifest.start_session(identity, known_cards)
        self.protocol.check_key(private_key)
        self.private_key, self.random = private_key, CryptoRandom() if random is None else random
        self._row_digest = b""
        self._class_codes: Array = np.empty(0, dtype=np.int64)
        self._hide_labels: LabelHider | None = None
        self._labels: dict[str, Message] = {}
        self._sum_tables: dict[str, TableSummer] = {}
        self._correction = bytes(self.protocol.total_sums_size)
        self._shares: Message | None = None

    def set_rows(self, class_codes: ClassCodes, ids: Iterable[Any] | None = None) -> None:
        """Take the class of every row, and the order of the rows.

        Parameters
        ----------
        class_codes : array of int
            Class index of each row.
        ids : iterable, optional
            Of the rows, in order; every provider must hold the same.
        """
        if len(class_codes) != self.row_count:
            raise ProtocolError(
                "wrong-rows", f"{len(class_codes)} labels for {self.row_count} rows"
            )
        self._row_digest, self._class_codes = self._compute_row_digest(ids), np.array(class_codes)

    def make_labels(self, card: Card) -> Message:
        """The hidden classes of all rows for one provider."""
        if card.name not in self._labels:
            if self._hide_labels is None:
                self._hide_labels = self.protocol.make_label_hider(
                    self.identity, self._class_codes, self.private_key
                )
            order_tag = self._compute_order_tag(card, self._row_digest, self.identity.name)
            pieces = chain(self._hide_labels(card), [order_tag])
            self._labels[card.name] = self._make_message("labels", card.name, pieces)
        return self._labels[card.name]

    def make_all_labels(
        self, class_codes: ClassCodes, ids: Iterable[Any] | None = None
    ) -> list[Message]:
        """Hold rows, and give the hidden classes for every provider; see :meth:`set_rows`."""
        if not len(self._class_codes):
            self.set_rows(class_codes, ids)
        return [self.make_labels(card) for card in self.manifest.providers]

    @property
    def missing_senders(self) -> tuple[str, ...]:
        """Whose tables, or correction, have not come."""
        return self.inbox.missing_senders

    def receive(self, data: bytes | Message) -> Message:
        """Accept a provider's tables or the collector's correction, or refuse with a reason."""
        message = self.inbox.read_message(data)
        sender_card = self.manifest.parties[message.sender]
        if message.kind == "correction":
            shared_key = self.protocol.derive_pair_key(self.identity, sender_card, "correction")
            self._correction = unseal_bytes(shared_key, message.body.read())
        else:
            if not len(self._class_codes):
                raise ProtocolError(
                    "out-of-order", "no labels were sent yet, so no tables can come"
                )
            order_tag = message.body.get_slice(-ORDER_TAG_BYTES)
            content = message.body.get_slice(0, -ORDER_TAG_BYTES)
            if order_tag.read() != self._compute_order_tag(
                sender_card, self._row_digest, sender_card.name
            ):
                raise ProtocolError(
                    "wrong-rows", f"{sender_card.name} has other rows, or another order"
                )
            self._sum_tables[sender_card.name] = self.protocol.make_table_summer(
                self.identity, sender_card, content, self._class_codes
            )
        self.inbox.accept_message(message)
        return message

    def make_shares(self) -> Message:
        """All padded sums with a share of noise, sealed for the collector."""
        self.inbox.require_all_messages()
        if self._shares is None:
            padded_sums = b"".join(
                self._sum_tables[card.name](self.private_key, correction)
                for card, correction in self._split_sums(self._correction)
            )
            collector = self.manifest.collector
            shared_key = self.protocol.derive_pair_key(self.identity, collector, "shares")
            content = seal(shared_key, [self._add_noise_shares(padded_sums, self.random)])
            self._shares = self._make_message("shares", collector.name, content)
        return self._shares
