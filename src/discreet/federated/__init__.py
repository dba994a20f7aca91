"""Federated training without a trusted curator: the roles of a round and its manifest.

Each role is a small state machine that reads and returns signed messages; only programs open
files and connections. :mod:`discreet.federated.horizontal` is for providers who hold different
people, :mod:`discreet.federated.vertical` for providers who hold different columns;
:mod:`discreet.federated.alignment` finds the people whom all owners have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazy_exports

_EXPORTS = {
    "Card": "federated.agreement.identity",
    "Identity": "federated.agreement.identity",
    "Invitation": "federated.agreement.invitation",
    "Manifest": "federated.agreement.manifest",
    "PrivateKey": "federated.crypto.paillier",
    "PublicKey": "federated.crypto.paillier",
    "Release": "federated.release",
    "RoundTerms": "federated.simulation",
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
    "RoundTerms",
    "simulate_horizontal",
    "simulate_vertical",
]

if TYPE_CHECKING:
    from discreet.federated.agreement.identity import Card, Identity
    from discreet.federated.agreement.invitation import Invitation
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.crypto.paillier import PrivateKey, PublicKey
    from discreet.federated.release import Release
    from discreet.federated.simulation import RoundTerms, simulate_horizontal, simulate_vertical

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
