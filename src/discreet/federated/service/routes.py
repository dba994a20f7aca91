"""Who sends what to whom in a round, and how long it may be; all of it follows from the manifest.

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
    """For each recipient, what it gets of whom."""
    if manifest.partition == "horizontal":
        return horizontal.routes(manifest)
    return vertical.routes(vertical.way_of(manifest))
