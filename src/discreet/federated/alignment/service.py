"""The collector of an alignment as a service: carries sealed lists, matches what all blinded."""

from __future__ import annotations

from pathlib import Path

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.invitation import Invitation
from discreet.federated.alignment import Matcher
from discreet.federated.messages import Message
from discreet.federated.service.relay import Carrier

__all__ = ["Matching"]


class Matching(Carrier[Invitation]):
    """One alignment at the collector, over its folder.

    Parameters
    ----------
    own : Identity
    invitation : Invitation
    folder : path
    """

    def __init__(self, own: Identity, invitation: Invitation, folder: str | Path) -> None:
        invitation.require_part(own.card, "collector")
        self.machine: Matcher | None = None
        self.answers: dict[str, Message] = {}
        owners = [card.name for card in invitation.owners]
        super().__init__(own, invitation, folder, invitation.routes, owners)

    def _begin(self) -> None:
        if self.machine is None and not self.manifest.unsigned:
            self.machine = Matcher(self.own, self.manifest)

    def _take(self, message: Message) -> None:
        assert self.machine is not None
        self.machine.receive(message)

    def _advance(self) -> None:
        if self.machine is None or self.machine.missing or self.answers:
            return
        answers = self.machine.answers()
        for message in answers:
            # a restarted collector gives the answer that it gave before
            made = self.folder.once(f"common {message.recipient}", lambda own=message: own)  # type: ignore[misc]
            self.answers[message.recipient] = made

    def _made(self, recipient: str) -> list[Message]:
        return [self.answers[recipient]] if recipient in self.answers else []

    @property
    def done(self) -> bool:
        """Whether every list is here and compared."""
        return bool(self.answers)

    @property
    def actors(self) -> int:
        """The owners."""
        return len(self.manifest.owners)

    def _heard(self) -> set[str]:
        accepted = self.inboxes[self.own.name].accepted
        return {sender for sender, kind in accepted if kind == "received"}

    @property
    def finished(self) -> bool:
        """Whether every owner has said that it has the answer."""
        return len(self._heard()) == self.actors

    def _late(self) -> tuple[str, ...]:
        """Return the owners whom a list is waiting for."""
        late = set()
        for origin in range(self.actors):
            for sender, recipient in self.manifest.route(origin):
                if (sender.name, f"list-{origin}") not in self.inboxes[recipient.name].accepted:
                    late.add(sender.name)
                    break
        return tuple(card.name for card in self.manifest.owners if card.name in late)

    def _after(self) -> str:
        if self.finished:
            return "finished: every owner has the answer"
        late = [card.name for card in self.manifest.owners if card.name not in self._heard()]
        return f"all lists are compared; waiting for {', '.join(late)} to take the answer"
