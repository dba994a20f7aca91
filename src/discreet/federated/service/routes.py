"""Expected messages of a round with their lengths, derived from the manifest.

Each partition states this once. The collector also carries messages between others: what it
carries is encrypted or uniform.
"""

from __future__ import annotations

from discreet.federated.agreement.manifest import Manifest
from discreet.federated.horizontal import arithmetic as horizontal
from discreet.federated.messages import Expected
from discreet.federated.vertical import arithmetic as vertical

__all__ = ["routes"]


def routes(manifest: Manifest) -> dict[str, Expected]:
    """List for each recipient the expected senders, message kinds and lengths."""
    if manifest.partition == "horizontal":
        return horizontal.routes(manifest)
    return vertical.routes(vertical.way_of(manifest))
