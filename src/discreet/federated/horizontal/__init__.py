"""A horizontal round: providers hold different people and the same columns.

    provider    counts, adds its share of noise, hides the numbers under its pads      submission
    collector   adds up what all providers sent; the pads cancel only in the whole sum      total
    receiver    opens the total: noised counts, and nothing else
    (or, in mode probabilities: the collector opens the total and sends a sealed            model)

The three state machines read and return messages and keep what they accepted; a lost machine is
rebuilt by giving the same messages to a new one. A provider must not be rebuilt with other noise
under the same manifest: it keeps its submission and sends the same bytes again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazily

_HOME = {
    "Collector": "federated.horizontal.collector",
    "Provider": "federated.horizontal.provider",
    "Receiver": "federated.horizontal.receiver",
}

__all__ = ["Collector", "Provider", "Receiver"]

if TYPE_CHECKING:
    from discreet.federated.horizontal.collector import Collector
    from discreet.federated.horizontal.provider import Provider
    from discreet.federated.horizontal.receiver import Receiver

__getattr__, __dir__ = lazily(__name__, _HOME)
