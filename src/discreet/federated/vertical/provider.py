"""A provider of a vertical round: holds some columns, sees labels only hidden."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.party import VerticalParty
from discreet.federated.vertical.protocol import ORDER_TAG_BYTES, Columns, TableHider
from discreet.randomness import CryptoRandom, Random

__all__ = ["VerticalProvider"]


class VerticalProvider(VerticalParty):
    """Holds some columns; sees labels only hidden.

    Parameters
    ----------
    identity : Identity
    manifest : Manifest
    known_cards, random
        As for a horizontal provider.
    """

    def __init__(
        self,
        identity: Identity,
        manifest: Manifest,
        known_cards: Iterable[Card] = (),
        random: Random | None = None,
    ) -> None:
        cards_by_name = {card.name: card for card in manifest.providers}
        super().__init__(identity, manifest, cards_by_name.get(identity.name), "provider")
        manifest.start_session(identity, known_cards)
        self.random = CryptoRandom() if random is None else random
        self._hide_tables: TableHider | None = None
        self._tables_message: Message | None = None

    def receive(self, data: bytes | Message) -> Message:
        """Accept the hidden labels, or refuse them with a reason."""
        message = self.inbox.read_message(data)
        self._hide_tables = self.protocol.make_table_hider(
            self.identity, message.body.get_slice(0, -ORDER_TAG_BYTES)
        )
        self.inbox.accept_message(message)
        return message

    def check_row_order(self, ids: Iterable[Any] | None = None) -> bytes:
        """Refuse rows other than those of the labels; returns the tag of their order."""
        self.inbox.require_all_messages()
        row_digest = self._compute_row_digest(ids)
        order_tag = self.inbox.get_body(self.label_provider.name, "labels").get_slice(
            -ORDER_TAG_BYTES
        )
        if order_tag.read() != self._compute_order_tag(
            self.label_provider, row_digest, self.label_provider.name
        ):
            raise ProtocolError(
                "wrong-rows", f"{self.label_provider.name} has other rows, or another order"
            )
        return self._compute_order_tag(self.label_provider, row_digest, self.identity.name)

    def make_tables(self, columns: Columns, ids: Iterable[Any] | None = None) -> Message:
        """The class counts of one's own columns, still hidden and under a pad.

        Parameters
        ----------
        columns : mapping of feature name to column
        ids : iterable, optional
            Of the rows, in order.
        """
        if self._tables_message is None:
            order_tag = self.check_row_order(ids)
            noise_share = self._draw_noise_share(self.identity.name, self.random)
            assert self._hide_tables is not None
            content = self._hide_tables(columns, noise_share)
            self._tables_message = self._make_message(
                "tables", self.label_provider.name, chain(content, [order_tag])
            )
        return self._tables_message
