"""Claims: every planted defect is found, no sound subject is called broken, within a short time.

Planted defects are judged at 99 %, sound subjects at 1 - 1e-6. ``make audit`` runs the same
catalogue with more samples.
"""

from __future__ import annotations

from operator import attrgetter

import pytest

from audit.catalogue import DEFECTS, SOUND, SURE, judged

pytestmark = pytest.mark.slow

NAME = attrgetter("name")


def quick(entries):
    return [one for one in entries if one.quick]


@pytest.mark.parametrize(
    "entry", [one for one in DEFECTS if one.quick], ids=lambda entry: entry.name
)
def test_a_planted_defect_is_found(entry):
    """The twins: each is a mistake that somebody made."""
    found = judged(entry, 0.99)
    assert found.broken
    assert "BROKEN" in str(found)


@pytest.mark.parametrize("entry", quick(SOUND), ids=NAME)
def test_a_sound_subject_passes(entry):
    found = judged(entry, SURE)
    assert found.is_done
    assert not found.broken
    assert all(one.found <= one.promised * (1 + 1e-9) for one in found.verdicts)
