"""The receiver of a horizontal round: opens noised totals, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import derive_pair_key
from discreet.federated.crypto.sealing import unseal_bytes
from discreet.federated.horizontal.arithmetic import check_key, check_role, list_routes, open_totals
from discreet.federated.messages import Inbox, Message
from discreet.federated.release import Release, require_judged_statistics

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey
    from discreet.statistics.statistics import Statistics

__all__ = ["HorizontalReceiver"]


class HorizontalReceiver:
    """Gets the result of a round.

    Parameters
    ----------
    identity : Identity
    manifest : Manifest
    private_key : PrivateKey, optional
        Needed in mode ``counts`` with Paillier.
    judged_statistics : Statistics, optional
        Needed where candidate models are judged: those that they were made from.
    """

    def __init__(
        self,
        identity: Identity,
        manifest: Manifest,
        private_key: PrivateKey | None = None,
        judged_statistics: Statistics | None = None,
    ) -> None:
        check_role(identity, manifest.receiver, "receiver", manifest)
        manifest.start_session(identity)
        self.identity, self.manifest, self.private_key = identity, manifest, private_key
        self.judged_statistics = judged_statistics
        if manifest.judging is not None:
            require_judged_statistics(manifest, judged_statistics)
        if manifest.mode == "counts" and manifest.aggregation == "paillier":
            check_key(manifest, private_key)
        self.inbox = Inbox(manifest, identity.name, list_routes(manifest)[identity.name])

    def receive(self, data: bytes | Message) -> Release:
        """Open the result, or refuse it with a reason."""
        message, manifest = self.inbox.read_message(data), self.manifest
        shared_key = derive_pair_key(self.identity, manifest.collector, manifest.hash, message.kind)
        content = unseal_bytes(shared_key, message.body.read())
        if manifest.mode == "counts":
            release = Release.from_totals(
                manifest,
                open_totals(self.identity, manifest, self.private_key, content),
                self.judged_statistics,
            )
        else:
            release = Release.from_probabilities(manifest, content)
        self.inbox.accept_message(message)
        return release
