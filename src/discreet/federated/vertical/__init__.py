"""A vertical round: providers hold different columns of the same people; one holds the labels.

    collector        with masks only: what makes up for the masks that it shares       correction
    label provider   hides each row's class                                                labels
    provider         adds up the hidden labels of the rows in each cell, a share of noise and a
                     pad that only the opener knows                                        tables
    label provider   reads padded sums, which reveal nothing; adds a share of noise       shares
    collector        adds its share; opens in mode probabilities, else passes on            total
    receiver         takes the pads away: noised counts, and nothing else

The protocol classes in ``with_paillier`` and ``with_masks`` define how labels are hidden and
summed. A pad is expanded from the key that a provider shares with the opener, so it is never sent.
Shares are sealed for the collector: a provider knows its own pads, and would see sums without the
collector's noise. The total is sealed for the receiver: the label provider knows the padded sums
before the collector's noise was added, and with the published statistics could compute that noise.
Rows are aligned by an agreed order of ids; both sides prove to each other that they have the same.
"""

from discreet.exports import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
