"""Expected messages of a round with their lengths, derived from the manifest.

Each partition states this once. The collector also carries messages between others: what it
carries is encrypted or uniform.
"""

from __future__ import annotations

from discreet.federated.agreement.manifest import Manifest
from discreet.federated.horizontal import arithmetic as horizontal
from discreet.federated.messages import ExpectedMessages
from discreet.federated.vertical import protocol as vertical

__all__ = ["list_routes"]


def list_routes(manifest: Manifest) -> dict[str, ExpectedMessages]:
    """List for each recipient the expected senders, message kinds and lengths."""
    if manifest.partition == "horizontal":
        return horizontal.list_routes(manifest)
    return vertical.list_routes(vertical.make_protocol(manifest))
