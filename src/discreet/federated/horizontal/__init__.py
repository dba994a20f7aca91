"""A horizontal round: providers hold different people and the same columns.

    provider    counts, adds its share of noise, hides the numbers under its pads      submission
    collector   adds up what all providers sent; the pads cancel only in the whole sum      total
    receiver    opens the total: noised counts, and nothing else
    (or, in mode probabilities: the collector opens the total and sends a sealed            model)

The three state machines read and return messages and keep what they accepted; a lost machine is
rebuilt by giving the same messages to a new one. A provider must not be rebuilt with other noise
under the same manifest: it keeps its submission and sends the same bytes again.
"""

from discreet.exports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
