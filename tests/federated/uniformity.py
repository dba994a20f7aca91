"""Whether numbers of a transcript are uniform."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from round_fixtures import PARTIES
from scipy import stats

from discreet.federated.crypto.masks import derive_pair_key

FALSE_ALARM = 1e-6
"""Chance that a statistical check here fails although everything is right."""


def shared(manifest, own, other, purpose):
    """The key of two parties."""
    return derive_pair_key(PARTIES[own], PARTIES[other].card, manifest.hash, purpose)


def looks_uniform(shares):
    """Chi-square of numbers in [0, 1) over 32 bins, with the stated false-alarm rate."""
    counts = np.histogram(np.array(shares, dtype=float), 32, (0, 1))[0]
    return stats.chisquare(counts).pvalue > FALSE_ALARM


def value_and_steps(rows, modulus):
    """Numbers and differences within each message, as shares of the modulus."""
    values = [v / modulus for row in rows for v in row]
    steps = [((b - a) % modulus) / modulus for row in rows for a, b in pairwise(row)]
    return values, steps
