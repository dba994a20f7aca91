"""Processes of a round killed with SIGKILL at every phase, and started again with the same command.

The round ends with the right result, everyone who holds data has paid once, and nobody has ever
sent two versions of one message. A point is anything that others or the disk notice. In one round
every party dies once, each at a point of its own; rounds take turns with masks, Paillier and the
other mode. ``make soak`` kills one party at a time, before and after every point, in every mode.
"""

from __future__ import annotations

import os

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("resource")

from crash_harness import run_round

pytestmark = pytest.mark.slow

SOAK = bool(os.environ.get("SOAK"))
ROLES = [
    *(("horizontal", name) for name in ("hospital-a", "collector", "receiver")),
    *(("vertical", name) for name in ("hospital-a", "labels", "collector", "receiver")),
]
WAYS = [("masks", "counts"), ("paillier", "counts"), ("masks", "probabilities")]


def settings(partition, way, mode, key):
    return {"partition": partition, "mode": mode, "key": key if way == "paillier" else None}


def undisturbed(folder, how):
    """The points of every party in a round in which nobody dies."""
    with run_round(folder, **how) as one:
        one.everyone()
        one.finish()
        one.check()
        return {name: one.points(name) for name in one.names}


def killed(folder, how, fatal):
    """A round in which parties die at the points named, and that ends well all the same."""
    with run_round(folder, **how) as one:
        one.everyone(fatal)
        one.finish()
        one.check()
        for name, point in fatal.items():
            # it did get there: nothing is shown by a kill that never happened
            assert point in one.points(name)


def before(points):
    """Every second point first: who has many dies at each of these, who has few at every one."""
    points = [one for one in points if one.startswith("before ")]
    return points[::2] + points[1::2]


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_parties_killed_at_every_phase_go_on_where_they_were(partition, tmp_path, real_key):
    how = [settings(partition, *way, real_key) for way in WAYS]
    found = [undisturbed(tmp_path / f"undisturbed-{i}", one) for i, one in enumerate(how)]
    phases = [{name: before(points) for name, points in way.items()} for way in found]
    assert all(len(points) > 4 for way in phases for points in way.values())
    most = max(len(points) for way in phases for points in way.values())
    for number in range((most + 1) // 2):
        way = number % len(WAYS)
        fatal = {name: points[number % len(points)] for name, points in phases[way].items()}
        killed(tmp_path / str(number), how[way], fatal)


@pytest.mark.skipif(not SOAK, reason="hours: make soak-federated")
@pytest.mark.parametrize(("way", "mode"), WAYS)
@pytest.mark.parametrize(("partition", "name"), ROLES)
def test_a_party_killed_anywhere_goes_on_where_it_was(
    partition, name, way, mode, tmp_path, real_key
):
    how = settings(partition, way, mode, real_key)
    points = undisturbed(tmp_path / "undisturbed", how)[name]
    assert len(points) > 9
    for number, point in enumerate(points):
        killed(tmp_path / str(number), how, {name: point})
