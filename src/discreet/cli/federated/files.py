"""Read the files of the parties of a round."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from discreet.cli.overwrite import refuse_replacement
from discreet.errors import SchemaError
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import parse_document

if TYPE_CHECKING:
    from discreet.federated.agreement.identity import Card, Identity
    from discreet.federated.agreement.invitation import Invitation
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.crypto.paillier import PrivateKey
    from discreet.statistics.statistics import Statistics

__all__ = [
    *("ledger_of", "read_agreement", "read_cards", "read_identity", "read_invitation"),
    *("read_judged_statistics", "read_key", "read_manifest", "refuse_unless_resumed"),
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

    with error_context(path):
        return Identity.from_json(read_text(path))


def read_manifest(path: str) -> Manifest:
    """Read a manifest."""
    from discreet.federated.agreement.manifest import Manifest

    with error_context(path):
        return Manifest.from_json(read_text(path))


def read_invitation(path: str) -> Invitation:
    """Read an invitation to align rows."""
    from discreet.federated.agreement.invitation import Invitation

    with error_context(path):
        return Invitation.from_json(read_text(path))


def read_agreement(path: str) -> Manifest | Invitation:
    """Read a manifest or an invitation."""
    with error_context(path):
        is_invitation = (
            parse_document(read_text(path), "manifest").get("format") == "discreet/invitation"
        )
    return read_invitation(path) if is_invitation else read_manifest(path)


def read_key(path: str | None) -> PrivateKey | None:
    """Read a Paillier key, if one is given."""
    if path is None:
        return None
    from discreet.federated.crypto.paillier import PrivateKey

    with error_context(path):
        return PrivateKey.from_json(read_text(path))


def read_cards(paths: tuple[str, ...]) -> tuple[Card, ...]:
    """Read cards whose fingerprints the user has checked."""
    from discreet.federated.agreement.identity import Card

    cards = []
    for path in paths:
        with error_context(path):
            cards.append(Card.from_json(read_text(path)))
    return tuple(cards)


def read_judged_statistics(path: str | None, manifest_path: str) -> Statistics | None:
    """Read the statistics whose models a round judges, before anything is signed."""
    from discreet.federated.release import require_judged_statistics

    manifest, statistics = read_manifest(manifest_path), None
    if path is not None:
        from discreet.statistics.statistics import Statistics

        if manifest.judging is None:
            raise SchemaError("this manifest judges no candidate models; leave --judged out")
        with error_context(path):
            statistics = Statistics.from_json(read_text(path))
    return None if manifest.judging is None else require_judged_statistics(manifest, statistics)


def make_ledger_charge(
    path: str | None, total_epsilon: float | None = None, upcoming_manifest: Manifest | None = None
) -> Callable[[Manifest], None] | None:
    """Make a function that charges a round to a budget file, if one is given.

    Parameters
    ----------
    path : str, optional
    total_epsilon : float, optional
        Total epsilon of a new ledger.
    upcoming_manifest : Manifest, optional
        A round that the ledger must be able to pay.
    """
    if path is None:
        return None
    from discreet.privacy.ledger import Ledger

    with error_context(path):  # check the ledger before signing: after it, the others wait
        ledger = Ledger(path) if total_epsilon is None else Ledger.create(path, total_epsilon)
        ledger.read()
        if upcoming_manifest is not None:
            ledger.require_affordable(upcoming_manifest.guarantee, _format_round(upcoming_manifest))

    def charge_round(manifest: Manifest) -> None:
        ledger.charge(manifest.guarantee, _format_round(manifest), once=True)

    return charge_round


def _format_round(manifest: Manifest) -> str:
    """Format the name of a round for the ledger, with the complete digest.

    Two manifests that share sixteen digits can be constructed, and the second would not be charged.
    """
    return f"federated round {manifest.round}, manifest {manifest.hash.hex()}"
