"""Read the files of the parties of a round."""

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
    """Refuse to replace a file, unless an earlier run of this command may have written it.

    In that case the file is compared with the new content at the end.

    Parameters
    ----------
    path : str or None
        An output.
    state : str
        The state folder of the command.
    """
    if path is not None and not (os.path.isdir(state) and os.listdir(state)):
        refuse_replacement(path)


def read_identity(path: str) -> Identity:
    """Read a party's own keys."""
    from discreet.federated.agreement.identity import Identity

    with about(path):
        return Identity.from_json(read_text(path))


def read_manifest(path: str) -> Manifest:
    """Read a manifest."""
    from discreet.federated.agreement.manifest import Manifest

    with about(path):
        return Manifest.from_json(read_text(path))


def read_invitation(path: str) -> Invitation:
    """Read an invitation to align rows."""
    from discreet.federated.agreement.invitation import Invitation

    with about(path):
        return Invitation.from_json(read_text(path))


def read_agreement(path: str) -> Manifest | Invitation:
    """Read a manifest or an invitation."""
    with about(path):
        invited = parse(read_text(path), "manifest").get("format") == "discreet/invitation"
    return read_invitation(path) if invited else read_manifest(path)


def read_key(path: str | None) -> PrivateKey | None:
    """Read a Paillier key, if one is given."""
    if path is None:
        return None
    from discreet.federated.crypto.paillier import PrivateKey

    with about(path):
        return PrivateKey.from_json(read_text(path))


def read_cards(paths: tuple[str, ...]) -> tuple[Card, ...]:
    """Read cards whose fingerprints the user has checked."""
    from discreet.federated.agreement.identity import Card

    found = []
    for path in paths:
        with about(path):
            found.append(Card.from_json(read_text(path)))
    return tuple(found)


def ledger_of(
    path: str | None, total: float | None = None, upcoming: Manifest | None = None
) -> Callable[[Manifest], None] | None:
    """Make a function that charges a round to a budget file, if one is given.

    Parameters
    ----------
    path : str, optional
    total : float, optional
        Total epsilon of a new ledger.
    upcoming : Manifest, optional
        A round that the ledger must be able to pay.
    """
    if path is None:
        return None
    from discreet.ledger import Ledger

    with about(path):  # check the ledger before signing: after it, the others wait
        ledger = Ledger(path) if total is None else Ledger.create(path, total)
        ledger.read()
        if upcoming is not None:
            ledger.require(upcoming.guarantee, _round(upcoming))

    def charge(manifest: Manifest) -> None:
        ledger.charge(manifest.guarantee, _round(manifest), once=True)

    return charge


def _round(manifest: Manifest) -> str:
    """Format the name of a round for the ledger, with the complete digest.

    Two manifests that share sixteen digits can be constructed, and the second would not be charged.
    """
    return f"federated round {manifest.round}, manifest {manifest.hash.hex()}"
