"""Who sends what to whom in a round, and how long it may be; all of it follows from the manifest.

The collector also carries messages between others: what it carries is encrypted or uniform.
"""

from __future__ import annotations

from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import SEAL
from discreet.federated.horizontal.arithmetic import submission_length
from discreet.federated.messages import Expected
from discreet.federated.vertical.arithmetic import way_of
from discreet.federated.vertical.party import TAG, exactly

__all__ = ["routes"]


def routes(manifest: Manifest) -> dict[str, Expected]:
    """For each recipient, which messages are expected of whom."""
    collector, receiver = manifest.collector.name, manifest.receiver.name
    received = {(receiver, "received"): range(1)}
    if manifest.partition == "horizontal":
        length = submission_length(manifest)
        own = {(card.name, "submission"): length for card in manifest.providers}
        return {collector: {**own, **received}}
    way = way_of(manifest)
    label, labels = way.label.name, way.labels_size + TAG
    found: dict[str, Expected] = {
        name: {(label, "labels"): exactly(labels)} for name in way.layouts
    }
    found[label] = {(n, "tables"): exactly(way.tables_size(n) + TAG) for n in way.layouts}
    found[collector] = {(label, "shares"): exactly(way.all_sums + SEAL), **received}
    return found
