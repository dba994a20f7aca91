"""The accountant next to Google's dp_accounting: delta at some epsilons, and time.

    python benchmarks/accounting.py

dp_accounting has an environment of its own (.venv-peers/accounting, made at first use), because its
pins collide with ours; where it does not install, that is said and only our figures are printed.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1] / ".venv-peers" / "accounting"
PACKAGES = ["dp-accounting==0.6.0"]
EPSILONS = (0.5, 1.0)
RELEASES: dict[str, list[tuple[str, float]]] = {
    "normal noise": [("normal", 0.0280144819)],
    "normal noise and randomized response": [("normal", 0.02), ("response", 0.3)],
    "randomized response, four times": [("response", 0.2)] * 4,
    "Laplace, four times": [("laplace", 0.5)] * 4,
    "discrete Gaussian, eight times": [("discrete", 0.025)] * 8,
}
"""Steps by their kind and rho, or epsilon."""


def our_deltas() -> dict[str, list[float]]:
    """Delta of every release at every epsilon."""
    from discreet.privacy.accountant import NoiseStep, PureStep, compute_release_delta

    make_step: dict[str, Any] = {
        "normal": lambda rho: NoiseStep(rho, 10**6),
        "discrete": NoiseStep,
        "response": lambda epsilon: PureStep(epsilon**2 / 2),
        "laplace": lambda epsilon: PureStep(epsilon**2 / 2),
    }
    return {
        name: [
            compute_release_delta([make_step[kind](cost) for kind, cost in steps], epsilon, 1e-6)
            for epsilon in EPSILONS
        ]
        for name, steps in RELEASES.items()
    }


def peer_deltas() -> dict[str, list[float]]:
    """The same by dp_accounting; runs in its environment."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    fine = {"value_discretization_interval": 1e-4}
    make_loss: dict[str, Any] = {
        "normal": lambda rho: pld.from_gaussian_mechanism(1 / math.sqrt(2 * rho), **fine),
        "discrete": lambda rho: pld.from_discrete_gaussian_mechanism(
            1 / math.sqrt(2 * rho), **fine
        ),
        "response": lambda epsilon: pld.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, 0.0), **fine
        ),
        "laplace": lambda epsilon: pld.from_laplace_mechanism(1 / epsilon, **fine),
    }
    deltas = {}
    for name, steps in RELEASES.items():
        loss, *others = (make_loss[kind](cost) for kind, cost in steps)
        for other in others:
            loss = loss.compose(other)
        deltas[name] = [float(loss.get_delta_for_epsilon(epsilon)) for epsilon in EPSILONS]
    return deltas


def run_peer() -> tuple[dict[str, list[float]], float]:
    """What dp_accounting says, and how long it took."""
    python = HOME / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    found = subprocess.run(
        [str(python), __file__, "--peer"], check=True, stdout=subprocess.PIPE, text=True
    )
    deltas, seconds = json.loads(found.stdout)
    return deltas, seconds


def main() -> None:
    if "--peer" in sys.argv:
        begun = time.perf_counter()
        print(json.dumps([peer_deltas(), time.perf_counter() - begun]))
        return
    our_deltas()
    begun = time.perf_counter()
    ours, seconds = our_deltas(), time.perf_counter() - begun
    peers, peer_seconds = dict.fromkeys(ours, [math.nan] * len(EPSILONS)), math.nan
    try:
        peers, peer_seconds = run_peer()
    except subprocess.CalledProcessError:
        print("dp_accounting does not install here; only our figures follow")
    print("| release | epsilon | delta | dp_accounting | ratio |\n|---|---|---|---|---|")
    for name, deltas in ours.items():
        for epsilon, delta, peer in zip(EPSILONS, deltas, peers[name], strict=True):
            ratio = f"{delta / peer:.5f}" if peer > 1e-9 else ""
            print(f"| {name} | {epsilon} | {delta:.6e} | {peer:.6e} | {ratio} |")
    print(f"\n{seconds:.2f} s, dp_accounting {peer_seconds:.2f} s")


if __name__ == "__main__":
    main()
