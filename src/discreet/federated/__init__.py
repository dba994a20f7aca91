"""Several organisations, no trusted curator: providers, a collector, a receiver, and their round.

Each party's part is a small machine that takes and gives signed messages; nothing here opens a
file or a connection. :mod:`discreet.federated.horizontal` is for providers who hold different
people, :mod:`discreet.federated.vertical` for providers who hold different columns;
:mod:`discreet.federated.alignment` finds out which people all of these have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazily

_HOME = {
    "Card": "federated.agreement.identity",
    "Identity": "federated.agreement.identity",
    "Invitation": "federated.agreement.invitation",
    "Manifest": "federated.agreement.manifest",
    "PrivateKey": "federated.crypto.paillier",
    "PublicKey": "federated.crypto.paillier",
    "Release": "federated.release",
    "Terms": "federated.simulation",
    "simulate_horizontal": "federated.simulation",
    "simulate_vertical": "federated.simulation",
}

__all__ = [
    "Card",
    "Identity",
    "Invitation",
    "Manifest",
    "PrivateKey",
    "PublicKey",
    "Release",
    "Terms",
    "simulate_horizontal",
    "simulate_vertical",
]

if TYPE_CHECKING:
    from discreet.federated.agreement.identity import Card, Identity
    from discreet.federated.agreement.invitation import Invitation
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.crypto.paillier import PrivateKey, PublicKey
    from discreet.federated.release import Release
    from discreet.federated.simulation import Terms, simulate_horizontal, simulate_vertical

__getattr__, __dir__ = lazily(__name__, _HOME)
