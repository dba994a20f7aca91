"""Who sends what to whom in a round, and how long it may be; all of it follows from the manifest.

The collector also carries messages between others: what it carries is encrypted or uniform.
"""

from __future__ import annotations

from datetime import UTC, datetime

from discreet.federated.chunks import Chunks
from discreet.federated.horizontal import submission_length
from discreet.federated.manifest import Manifest
from discreet.federated.messages import Expected
from discreet.federated.vertical_party import TAG

__all__ = ["routes", "seconds_left"]


def routes(manifest: Manifest) -> dict[str, Expected]:
    """For each recipient, which messages are expected of whom."""
    collector, receiver = manifest.collector.name, manifest.receiver.name
    received = {(receiver, "received"): range(1)}
    if manifest.partition == "horizontal":
        length = submission_length(manifest)
        own = {(card.name, "submission"): length for card in manifest.providers}
        return {collector: {**own, **received}}
    assert manifest.label is not None
    assert manifest.paillier is not None
    assert manifest.rows is not None
    label, width = manifest.label.name, manifest.paillier.width
    labels = manifest.rows * width + TAG
    tables: Expected = {}
    residues = 0
    for card in manifest.providers:
        layout = manifest.layout.only(manifest.columns[card.name])
        count = Chunks(layout, manifest.paillier.bits).count
        residues += count * -(-manifest.paillier.bits // 8)
        tables[card.name, "tables"] = range(count * width + TAG, count * width + TAG + 1)
    found: dict[str, Expected] = {
        card.name: {(label, "labels"): range(labels, labels + 1)} for card in manifest.providers
    }
    found[label] = tables
    found[collector] = {(label, "shares"): range(residues, residues + 1), **received}
    return found


def seconds_left(manifest: Manifest) -> float | None:
    """Seconds until the deadline; None where there is none."""
    if not manifest.deadline:
        return None
    moment = datetime.fromisoformat(manifest.deadline)
    return (moment - datetime.now(UTC)).total_seconds()
