"""Known-bad mechanisms that tests of promises and audits must both refuse."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.mechanisms.frequency import SS
from discreet.randomness import Random


class TruthFirst(SS):
    """The subset report of multi-freq-ldpy: the true value stays at the front."""

    def _draw_small_sets(self, true: Any, random: Random) -> Any:
        member = random.bernoulli_words(self.threshold, len(true))
        sets = random.subsets(self.size - 1, self.subset_size, true.size)
        sets += sets >= true[:, None]
        sets[:, 0] = np.where(member, true, sets[:, 0])
        return sets

    def encode(self, reports: Any) -> Any:
        return reports.astype(np.int64)
