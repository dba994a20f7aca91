"""``discreet local report``, ``perturb``, ``tally`` and ``train``: what any collection has."""

from __future__ import annotations

from discreet.cli.collection import PLAN, answering, simulating, tallying, training

__all__ = ["perturb", "report", "tally", "train"]

report = answering(PLAN)
perturb = simulating(PLAN)
tally = tallying(PLAN)
train = training(PLAN)
