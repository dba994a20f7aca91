"""The collector in an alignment: compares lists that all owners have blinded."""

from __future__ import annotations

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.invitation import NO_POSITION, POSITION_BYTES, Invitation
from discreet.federated.alignment.party import AlignmentParty
from discreet.federated.crypto.curve25519 import parse_points
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError

__all__ = ["Matcher"]


class Matcher(AlignmentParty):
    """The collector: has no ids and no scalar, and compares lists that all owners have blinded.

    Parameters
    ----------
    identity : Identity
    invitation : Invitation
        Signed by everyone.
    """

    def __init__(self, identity: Identity, invitation: Invitation) -> None:
        super().__init__(identity, invitation)
        if identity.name != invitation.collector.name:
            raise ProtocolError("unknown-sender", f"{identity.name} is not the collector")
        self.blinded_lists: dict[int, list[bytes]] = {}

    @property
    def missing_senders(self) -> tuple[str, ...]:
        """Owners who have not sent the list that ends with them."""
        return self.inbox.missing_senders

    def receive(self, data: bytes | Message) -> Message:
        """Accept a list that everyone has blinded, or refuse it with a reason."""
        message = self.inbox.read_message(data)
        self.blinded_lists[int(message.kind.removeprefix("list-"))] = parse_points(
            self._open_message(message)
        )
        self.inbox.accept_message(message)
        return message

    def find_common_points(self) -> list[bytes]:
        """Return points that are in all lists; sorted, which is random, as points are."""
        self.inbox.require_all_messages()
        first_list, *other_lists = self.blinded_lists.values()
        return sorted(set(first_list).intersection(*other_lists))

    def make_answers(self) -> list[Message]:
        """Make the answer for each owner: which positions of its list are common.

        An answer is as long as the list, so that its length tells nobody how many are common.
        """
        common_points, answers = self.find_common_points(), []
        for origin_index, card in enumerate(self.invitation.owners):
            positions = {
                point: number for number, point in enumerate(self.blinded_lists[origin_index])
            }
            answer_numbers = [len(positions), *(positions[point] for point in common_points)]
            answer_numbers += [NO_POSITION] * (1 + len(positions) - len(answer_numbers))
            content = b"".join(number.to_bytes(POSITION_BYTES, "big") for number in answer_numbers)
            answers.append(self._seal_message("common", card, content))
        return answers
