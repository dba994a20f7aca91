"""The collector of an alignment as a service: carries sealed lists, matches what all blinded."""

from __future__ import annotations

from pathlib import Path

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.invitation import Invitation
from discreet.federated.alignment import Matcher
from discreet.federated.messages import Message
from discreet.federated.service.collector_session import CollectorSession

__all__ = ["AlignmentSession"]


class AlignmentSession(CollectorSession[Invitation]):
    """One alignment at the collector, over its folder.

    Parameters
    ----------
    identity : Identity
    invitation : Invitation
    folder : path
    """

    def __init__(self, identity: Identity, invitation: Invitation, folder: str | Path) -> None:
        invitation.require_role(identity.card, "collector")
        self.machine: Matcher | None = None
        self.answers: dict[str, Message] = {}
        owner_names = [card.name for card in invitation.owners]
        super().__init__(identity, invitation, folder, invitation.routes, owner_names)

    def _start_machine(self) -> None:
        if self.machine is None and not self.agreement.unsigned_parties:
            self.machine = Matcher(self.identity, self.agreement)

    def _take_message(self, message: Message) -> None:
        assert self.machine is not None
        self.machine.receive(message)

    def _make_result_if_complete(self) -> None:
        if self.machine is None or self.machine.missing_senders or self.answers:
            return
        answers = self.machine.make_answers()
        for message in answers:
            # a restarted collector gives the answer that it gave before
            answer = self.folder.load_or_create(
                f"common {message.recipient}",
                lambda answer_message=message: answer_message,  # type: ignore[misc]
            )
            self.answers[message.recipient] = answer

    def _list_own_messages(self, recipient: str) -> list[Message]:
        return [self.answers[recipient]] if recipient in self.answers else []

    @property
    def has_result(self) -> bool:
        """Whether every list is here and compared."""
        return bool(self.answers)

    @property
    def sender_count(self) -> int:
        """The owners."""
        return len(self.agreement.owners)

    def _list_informed_owners(self) -> set[str]:
        accepted = self.inboxes[self.identity.name].accepted
        return {sender for sender, kind in accepted if kind == "received"}

    @property
    def is_result_confirmed(self) -> bool:
        """Whether every owner has said that it has the answer."""
        return len(self._list_informed_owners()) == self.sender_count

    def _list_late_parties(self) -> tuple[str, ...]:
        """Return the owners whom a list is waiting for."""
        late_owners = set()
        for origin_index in range(self.sender_count):
            for sender, recipient in self.agreement.route(origin_index):
                if (sender.name, f"list-{origin_index}") not in self.inboxes[
                    recipient.name
                ].accepted:
                    late_owners.add(sender.name)
                    break
        return tuple(card.name for card in self.agreement.owners if card.name in late_owners)

    def _describe_result(self) -> str:
        if self.is_result_confirmed:
            return "finished: every owner has the answer"
        waiting_owners = [
            card.name
            for card in self.agreement.owners
            if card.name not in self._list_informed_owners()
        ]
        return f"all lists are compared; waiting for {', '.join(waiting_owners)} to take the answer"
