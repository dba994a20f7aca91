"""The collector in an alignment: compares lists that all owners have blinded."""

from __future__ import annotations

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.invitation import NOBODY, NUMBER, Invitation
from discreet.federated.alignment.party import AlignmentParty
from discreet.federated.crypto.curve25519 import points_of
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError

__all__ = ["Matcher"]


class Matcher(AlignmentParty):
    """The collector: has no ids and no scalar, and compares lists that all owners have blinded.

    Parameters
    ----------
    own : Identity
    invitation : Invitation
        Signed by everyone.
    """

    def __init__(self, own: Identity, invitation: Invitation) -> None:
        super().__init__(own, invitation)
        if own.name != invitation.collector.name:
            raise ProtocolError("unknown-sender", f"{own.name} is not the collector")
        self.lists: dict[int, list[bytes]] = {}

    @property
    def missing(self) -> tuple[str, ...]:
        """Owners who have not sent the list that ends with them."""
        return self.inbox.missing

    def receive(self, data: bytes | Message) -> Message:
        """Accept a list that everyone has blinded, or refuse it with a reason."""
        message = self.inbox.read(data)
        self.lists[int(message.kind.removeprefix("list-"))] = points_of(self._opened(message))
        self.inbox.keep(message)
        return message

    def common(self) -> list[bytes]:
        """Return points that are in all lists; sorted, which is random, as points are."""
        self.inbox.require_all()
        first, *others = self.lists.values()
        return sorted(set(first).intersection(*others))

    def answers(self) -> list[Message]:
        """Make the answer for each owner: which positions of its list are common.

        An answer is as long as the list, so that its length tells nobody how many are common.
        """
        common, made = self.common(), []
        for origin, card in enumerate(self.invitation.owners):
            place = {point: number for number, point in enumerate(self.lists[origin])}
            numbers = [len(place), *(place[point] for point in common)]
            numbers += [NOBODY] * (1 + len(place) - len(numbers))
            content = b"".join(number.to_bytes(NUMBER, "big") for number in numbers)
            made.append(self._sealed("common", card, content))
        return made
