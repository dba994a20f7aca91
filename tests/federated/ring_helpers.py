"""Alignments in one process, for the tests."""

from __future__ import annotations

from round_fixtures import PARTIES

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.invitation import Invitation
from discreet.federated.alignment import Matcher, Owner

OWNERS = ["labels", "hospital-a", "hospital-b", "hospital-c", "hospital-d"]
PARTIES.setdefault("hospital-d", Identity.generate("hospital-d"))


def invitation(count=3, signed=True, **options):
    cards = tuple(PARTIES[name].card for name in OWNERS[:count])
    made = Invitation(cards, PARTIES["collector"].card, **options)
    return made.with_signatures(*(PARTIES[name] for name in made.parties)) if signed else made


class Ring:
    """All parties of an alignment; what was said is kept, in order."""

    def __init__(self, lists, **options):
        self.agreed = invitation(len(lists), **options)
        self.lists = lists
        self.owners = [
            Owner(PARTIES[card.name], self.agreed, ids)
            for card, ids in zip(self.agreed.owners, lists, strict=True)
        ]
        self.matcher = Matcher(PARTIES["collector"], self.agreed)
        self.said = []

    def carry(self):
        """Every list once round the ring."""
        for origin, owner in enumerate(self.owners):
            self.said.append(owner.make_own_list())
            for step in range(1, len(self.owners)):
                follower = self.owners[(origin + step) % len(self.owners)]
                self.said.append(follower.blind_and_forward(self.said[-1].to_bytes()))
            self.matcher.receive(self.said[-1].to_bytes())

    def common(self):
        """The ids that each owner is told are common, in its order."""
        self.carry()
        answers = self.matcher.make_answers()
        self.said += answers
        return [
            [ids[row] for row in owner.read_common_rows(answer.to_bytes())]
            for owner, ids, answer in zip(self.owners, self.lists, answers, strict=True)
        ]
