"""Processes of a round killed with SIGKILL at every phase, and started again with the same command.

The round ends with the right result, everyone who holds data has paid once, and nobody has ever
sent two versions of one message. A point is anything that others or the disk notice. ``make soak``
takes all of them, before and after, with Paillier and in the other mode; this a half.
"""

from __future__ import annotations

import os

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("resource")

from killing import play

pytestmark = pytest.mark.slow

SOAK = bool(os.environ.get("SOAK"))
ROLES = [
    *(("horizontal", name) for name in ("hospital-a", "collector", "receiver")),
    *(("vertical", name) for name in ("hospital-a", "labels", "collector", "receiver")),
]
WAYS = [("masks", "counts"), *([("paillier", "counts"), ("masks", "probabilities")] * SOAK)]


def chosen(points):
    """Before every second point; where there is time before and after all of them."""
    return points if SOAK else [one for one in points if one.startswith("before ")][::2]


@pytest.mark.parametrize(("way", "mode"), WAYS)
@pytest.mark.parametrize(("partition", "name"), ROLES)
def test_a_party_killed_at_any_phase_goes_on_where_it_was(
    partition, name, way, mode, tmp_path, real_key
):
    how = {"partition": partition, "mode": mode, "key": real_key if way == "paillier" else None}
    with play(tmp_path / "undisturbed", **how) as reference:
        reference.everyone()
        reference.finish()
        reference.check()
        points = chosen(reference.points(name))
    assert len(points) > 4
    for number, point in enumerate(points):
        with play(tmp_path / str(number), **how) as one:
            one.everyone({name: point})
            one.finish()
            one.check()
            # it did get there: nothing is shown by a kill that never happened
            assert point in one.points(name)
