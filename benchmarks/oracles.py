"""How fast frequency oracles are, beside multi-freq-ldpy and pure-ldp in the same run.

``.venv/bin/python benchmarks/oracles.py`` prints a table ready for RESULTS.md: reports per second
of CPU time on one thread, best of three; ours with the cryptographic source. The client turns
values into reports, the server reports into estimated frequencies. The peers live in a virtual
environment of their own, ``.venv-peers/ldp``, made on the first run; their functions take one
report at a time, which is what a user of theirs gets. (multi-freq-ldpy compiles most of its clients
with numba; a first call before the clock starts pays for that.)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".venv-peers" / "ldp"
PACKAGES = ["multi-freq-ldpy", "pure-ldp", "xxhash<4", "statsmodels", "scikit-learn"]
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)

SIZES = (16, 128)
EPSILON = 1.0
RUNS = 3
OURS, SLOWER = 1_000_000, 100_000  # SHE draws a number a cell
THEIRS, SLOWEST = 20_000, 2_000  # their hashing server takes 0.1 ms a report

Rates = dict[str, tuple[float, float]]  # "oracle size" -> client, server reports per second
Client = Callable[[int], Any]
Server = Callable[[Sequence[Any]], object]
Pairs = dict[str, tuple[Client, Server, int]]


def seconds(work: Callable[[], object]) -> float:
    """Return the least CPU time of ``RUNS`` runs."""
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def our_rates() -> Rates:
    """Measure every oracle of discreet."""
    import numpy as np

    from discreet.mechanisms.frequency import ORACLES
    from discreet.randomness import CryptoRandom

    random, rates = CryptoRandom(), Rates()
    for size in SIZES:
        for name, kind in ORACLES.items():
            oracle, count = kind(EPSILON, size), SLOWER if name == "she" else OURS
            values = random.integers(size, count)
            reports = oracle.perturb(values, random)
            client = seconds(lambda o=oracle, v=values: o.perturb(v, random))  # type: ignore[misc]
            server = seconds(
                lambda o=oracle, r=reports, n=count: o.estimate(o.tally(r), n)  # type: ignore[misc]
            )
            rates[f"{name} {size}"] = count / client, count / server
            assert np.isfinite(rates[f"{name} {size}"]).all()
    return rates


# The peers' side: runs in their environment, where discreet is not installed.


def _timed(client: Client, server: Server, size: int, count: int) -> tuple[float, float]:
    values = [i % size for i in range(count)]
    server([client(value) for value in values[:100]])
    reports = [client(value) for value in values]
    return (
        count / seconds(lambda: [client(value) for value in values]),
        count / seconds(lambda: server(reports)),
    )


def multi_freq_ldpy(d: int) -> Pairs:
    """Return client, server and number of reports of each oracle of multi-freq-ldpy."""
    from multi_freq_ldpy.pure_frequency_oracles import GRR, HE, LH, SS, UE

    e = EPSILON
    return {
        "de": (
            lambda v: GRR.GRR_Client(v, d, e),
            lambda r: GRR.GRR_Aggregator_MI(r, d, e),
            THEIRS,
        ),
        "sue": (
            lambda v: UE.UE_Client(v, d, e, False),
            lambda r: UE.UE_Aggregator_MI(r, e, False),
            THEIRS,
        ),
        "oue": (
            lambda v: UE.UE_Client(v, d, e, True),
            lambda r: UE.UE_Aggregator_MI(r, e, True),
            THEIRS,
        ),
        "she": (
            lambda v: HE.HE_Client(v, d, e),
            lambda r: HE.HE_Aggregator_MI(r, d, e, False),
            THEIRS,
        ),
        "the": (
            lambda v: HE.HE_Client(v, d, e),
            lambda r: HE.HE_Aggregator_MI(r, d, e, True),
            THEIRS,
        ),
        "ss": (lambda v: SS.SS_Client(v, d, e), lambda r: SS.SS_Aggregator_MI(r, d, e), THEIRS),
        "olh": (lambda v: LH.LH_Client(v, d, e), lambda r: LH.LH_Aggregator_MI(r, d, e), SLOWEST),
    }


def pure_ldp(d: int) -> Pairs:
    """Return client, server and number of reports of each oracle of pure-ldp."""
    import pure_ldp.frequency_oracles as oracles

    def pair(client: Any, server: Any, count: int = THEIRS) -> tuple[Client, Server, int]:
        def collect(reports: Sequence[Any]) -> None:
            server.reset()
            server.aggregate_all(reports)
            server.estimate(0, suppress_warnings=True)

        return client.privatise, collect, count

    asked: dict[str, Any] = {"epsilon": EPSILON, "d": d, "index_mapper": lambda value: value}
    hadamard = oracles.HadamardResponseClient(hash_funcs=None, **asked)
    return {
        "de": pair(oracles.DEClient(**asked), oracles.DEServer(**asked)),
        "sue": pair(oracles.UEClient(**asked), oracles.UEServer(**asked)),
        "oue": pair(
            oracles.UEClient(use_oue=True, **asked), oracles.UEServer(use_oue=True, **asked)
        ),
        "she": pair(oracles.HEClient(**asked), oracles.HEServer(**asked)),
        "the": pair(oracles.HEClient(**asked), oracles.HEServer(use_the=True, **asked)),
        "olh": pair(
            oracles.LHClient(use_olh=True, **asked),
            oracles.LHServer(use_olh=True, **asked),
            SLOWEST,
        ),
        "hr": pair(hadamard, oracles.HadamardResponseServer(**asked)),
    }


def peer_rates(pairs_of: Callable[[int], Pairs]) -> Rates:
    """Measure all oracles of a peer; one that fails is left out and said so."""
    rates = Rates()
    for size in SIZES:
        for name, (client, server, count) in pairs_of(size).items():
            try:
                rates[f"{name} {size}"] = _timed(client, server, size, count)
            except Exception as error:  # their releases break now and then; ours is still measured
                print(f"{pairs_of.__name__}, {name} at {size}: {error!r}", file=sys.stderr)
    return rates


def peers() -> dict[str, Rates]:
    """Measure the peers in their own environment, made where it is missing."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        venv.create(PEERS, with_pip=True)
    present = [python, "-c", "import multi_freq_ldpy, pure_ldp.frequency_oracles"]
    if subprocess.run(present, capture_output=True, check=False).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    done = subprocess.run(
        [python, __file__, "--peers"],
        check=True,
        stdout=subprocess.PIPE,
        env=os.environ | ONE_THREAD,
    )
    measured: dict[str, Rates] = json.loads(done.stdout)
    return measured


def cell(rate: float | None, ours: float) -> str:
    """Return a peer's rate in thousands a second, and how many times faster ours is."""
    return "–" if rate is None else f"{rate / 1e3:,.0f} k ({ours / rate:,.0f}x)"


def main() -> None:
    """Print the table."""
    theirs, ours = peers(), our_rates()
    names = list(theirs)
    print(f"| oracle, size | side | discreet | {' | '.join(names)} |")
    print("|---|---|---|" + "---|" * len(names))
    for key, both in ours.items():
        for side, rate in zip(("client", "server"), both, strict=True):
            place = 0 if side == "client" else 1
            found = [theirs[name].get(key) for name in names]
            cells = [cell(pair[place] if pair else None, rate) for pair in found]
            label = key.upper().replace(" ", ", ")
            print(f"| {label} | {side} | {rate / 1e3:,.0f} k | {' | '.join(cells)} |")


if __name__ == "__main__":
    if sys.argv[1:] == ["--peers"]:
        warnings.simplefilter("ignore")
        names = {"multi-freq-ldpy": multi_freq_ldpy, "pure-ldp": pure_ldp}
        print(json.dumps({name: peer_rates(pairs_of) for name, pairs_of in names.items()}))
    elif not ONE_THREAD.items() <= os.environ.items():  # libraries read it when they are loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    else:
        main()
