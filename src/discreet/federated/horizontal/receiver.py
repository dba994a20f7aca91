"""The receiver of a horizontal round: opens noised totals, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import pair_key
from discreet.federated.crypto.sealing import unsealed
from discreet.federated.horizontal.arithmetic import check_key, check_role, opened, routes
from discreet.federated.messages import Inbox, Message
from discreet.federated.release import Release

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Receiver"]


class Receiver:
    """Gets the result of a round.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    key : PrivateKey, optional
        Needed in mode ``counts`` with Paillier.
    """

    def __init__(self, own: Identity, manifest: Manifest, key: PrivateKey | None = None) -> None:
        check_role(own, manifest.receiver, "receiver", manifest)
        manifest.enter(own)
        self.own, self.manifest, self.key = own, manifest, key
        if manifest.mode == "counts":
            check_key(manifest, key)
        self.inbox = Inbox(manifest, own.name, routes(manifest)[own.name])

    def receive(self, data: bytes | Message) -> Release:
        """Open the result, or refuse it with a reason."""
        message, manifest = self.inbox.read(data), self.manifest
        key = pair_key(self.own, manifest.collector, manifest.hash, message.kind)
        content = unsealed(key, message.payload)
        if manifest.mode == "counts":
            release = Release.of(manifest, opened(self.own, manifest, self.key, content))
        else:
            release = Release.from_probabilities(manifest, content)
        self.inbox.keep(message)
        return release
