"""``discreet survey answer``, ``randomize``, ``tally`` and ``train``: what any collection has."""

from __future__ import annotations

from discreet.cli.collection import QUESTIONNAIRE, answering, simulating, tallying, training

__all__ = ["answer", "randomize", "tally", "train"]

answer = answering(QUESTIONNAIRE)
randomize = simulating(QUESTIONNAIRE)
tally = tallying(QUESTIONNAIRE)
train = training(QUESTIONNAIRE)
