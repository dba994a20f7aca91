"""The files that the parties of a round read."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from discreet.cli.overwrite import refuse_replacement
from discreet.documents import parse, read_text
from discreet.errors import about

if TYPE_CHECKING:
    from discreet.federated.agreement.identity import Card, Identity
    from discreet.federated.agreement.invitation import Invitation
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = [
    *("ledger_of", "read_agreement", "read_cards", "read_identity", "read_invitation"),
    *("read_key", "read_manifest", "refuse_unless_resumed"),
]


def refuse_unless_resumed(path: str | None, state: str) -> None:
    """Refuse to replace a file, unless a command that was killed may have written it.

    Then it is compared with what is to be written, at the end.

    Parameters
    ----------
    path : str or None
        An output.
    state : str
        The folder of what the command has to remember.
    """
    if path is not None and not (os.path.isdir(state) and os.listdir(state)):
        refuse_replacement(path)


def read_identity(path: str) -> Identity:
    """A party's own keys."""
    from discreet.federated.agreement.identity import Identity

    with about(path):
        return Identity.from_json(read_text(path))


def read_manifest(path: str) -> Manifest:
    """What was agreed."""
    from discreet.federated.agreement.manifest import Manifest

    with about(path):
        return Manifest.from_json(read_text(path))


def read_invitation(path: str) -> Invitation:
    """Who aligns rows."""
    from discreet.federated.agreement.invitation import Invitation

    with about(path):
        return Invitation.from_json(read_text(path))


def read_agreement(path: str) -> Manifest | Invitation:
    """A manifest or an invitation, whichever the file is."""
    with about(path):
        invited = parse(read_text(path), "manifest").get("format") == "discreet/invitation"
    return read_invitation(path) if invited else read_manifest(path)


def read_key(path: str | None) -> PrivateKey | None:
    """A Paillier key, where one is given."""
    if path is None:
        return None
    from discreet.federated.crypto.paillier import PrivateKey

    with about(path):
        return PrivateKey.from_json(read_text(path))


def read_cards(paths: tuple[str, ...]) -> tuple[Card, ...]:
    """Cards that were checked out of band."""
    from discreet.federated.agreement.identity import Card

    found = []
    for path in paths:
        with about(path):
            found.append(Card.from_json(read_text(path)))
    return tuple(found)


def ledger_of(
    path: str | None, total: float | None = None, upcoming: Manifest | None = None
) -> Callable[[Manifest], None] | None:
    """What charges a round to a budget file, where one is given.

    Parameters
    ----------
    path : str, optional
    total : float, optional
        With which a new ledger is made.
    upcoming : Manifest, optional
        A round that the ledger must be able to pay.
    """
    if path is None:
        return None
    from discreet.ledger import Ledger

    with about(path):  # others wait for whoever has signed: what is wrong is said before
        ledger = Ledger(path) if total is None else Ledger.create(path, total)
        ledger.read()
        if upcoming is not None:
            ledger.require(upcoming.guarantee, _round(upcoming))

    def charge(manifest: Manifest) -> None:
        ledger.charge(manifest.guarantee, _round(manifest), once=True)

    return charge


def _round(manifest: Manifest) -> str:
    """What a round is called in a ledger.

    By the whole digest: two manifests with the same sixteen digits can be made up, and the second
    would not be charged.
    """
    return f"federated round {manifest.round}, manifest {manifest.hash.hex()}"
