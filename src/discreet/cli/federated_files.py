"""The files that the parties of a round read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from discreet.cli.files import about
from discreet.documents import read_text

if TYPE_CHECKING:
    from discreet.federated.identity import Card, Identity
    from discreet.federated.manifest import Manifest
    from discreet.federated.paillier import PrivateKey

__all__ = ["ledger_of", "read_cards", "read_identity", "read_key", "read_manifest"]


def read_identity(path: str) -> Identity:
    """A party's own keys."""
    from discreet.federated.identity import Identity

    with about(path):
        return Identity.from_json(read_text(path))


def read_manifest(path: str) -> Manifest:
    """What was agreed."""
    from discreet.federated.manifest import Manifest

    with about(path):
        return Manifest.from_json(read_text(path))


def read_key(path: str | None) -> PrivateKey | None:
    """A Paillier key, where one is given."""
    if path is None:
        return None
    from discreet.federated.paillier import PrivateKey

    with about(path):
        return PrivateKey.from_json(read_text(path))


def read_cards(paths: tuple[str, ...]) -> tuple[Card, ...]:
    """Cards that were checked out of band."""
    from discreet.federated.identity import Card

    found = []
    for path in paths:
        with about(path):
            found.append(Card.from_json(read_text(path)))
    return tuple(found)


def ledger_of(path: str | None) -> Callable[[Manifest], None] | None:
    """What charges a round to a budget file, where one is given."""
    if path is None:
        return None
    from discreet.central.ledger import Ledger

    ledger = Ledger(path)

    def charge(manifest: Manifest) -> None:
        what = f"federated round {manifest.round}, manifest {manifest.hash.hex()[:16]}"
        ledger.charge(what, float(manifest.epsilon), manifest.delta)

    return charge
