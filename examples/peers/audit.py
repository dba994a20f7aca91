"""Audit public libraries, each in an environment of its own.

    python examples/peers/audit.py           # makes .venv-peers/, then a minute or two

A library that cannot live beside discreet runs in a child process; what it releases comes back as
one line of JSON. To the audit it is a callable like any other.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from discreet.audit import Audit, Effort, Pair, audit, make_function_subject

HOME = Path(__file__).resolve().parents[2] / ".venv-peers"

GAUSSIAN = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import GaussianNB
warnings.simplefilter("ignore")
for line in sys.stdin:
    X, y = json.loads(line)
    nb = GaussianNB(epsilon=1.0, bounds=(1.5, 1.55), priors=None).fit(np.array(X), np.array(y))
    sums = nb.class_count_[:, None] * nb.theta_
    released = {"counts": nb.class_count_.tolist(), "sums": sums.tolist()}
    print(json.dumps(released[sys.argv[1]]), flush=True)
"""

LOCAL = """
import json, sys
from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
clients = {
    "SS": lambda value, size: [int(one) for one in SS_Client(value, size, 1.0)],
    "HE": lambda value, size: HE_Client(value, size, 1.0).tolist(),
    "RS+FD[GRR]": lambda values, sizes: [
        int(one) for one in RSpFD_GRR_Client(values, sizes, len(sizes), 1.0)
    ],
}
for line in sys.stdin:
    print(json.dumps(clients[sys.argv[1]](*json.loads(line))), flush=True)
"""


class Elsewhere:
    """A program in another environment: one line of JSON in, one line out."""

    def __init__(self, name: str, packages: list[str], script: str, *words: str) -> None:
        folder = HOME / name
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
        self.child = subprocess.Popen(
            [str(python), "-c", script, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, given: Any) -> Any:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        try:
            self.child.stdin.write(json.dumps(given) + "\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:  # each time the same words: then the audit says that nothing was checked
            raise RuntimeError("the program in the other environment has ended; see its errors")
        return json.loads(line)


def gaussian_nb(what: str, samples: int) -> Audit:
    """Diffprivlib 0.6.6: counts add up to the exact n; noise for a sum ignores how far it is."""
    X, y = [[1.5]] * 20 + [[1.55]] * 20, [0] * 20 + [1] * 20
    pair = Pair("40 rows", "39 rows", (X, y), (X[:-1], y[:-1]))
    packages = ["diffprivlib==0.6.6", "scikit-learn==1.5.2", "numpy<2.3"]
    program = Elsewhere("diffprivlib", packages, GAUSSIAN, what)
    return audit(make_function_subject(program, [pair], 1.0), Effort(samples=samples))


def local_client(what: str, first: Any, second: Any, sizes: Any, samples: int) -> Audit:
    """multi-freq-ldpy 0.2.5: what one person sends, epsilon 1.

    SS: the true value, if it is in the subset, stands in front. HE: Laplace noise in floating
    point, whose lowest bits show what it was added to. RS+FD[GRR]: a sampled attribute gets
    ln(d (e^epsilon - 1) + 1), as if nobody saw the others; two people who differ in all of them
    are told apart by that much.
    """
    pair = Pair(f"{first}", f"{second}", [first, sizes], [second, sizes])
    packages = ["multi-freq-ldpy==0.2.5", "scipy<2"]  # which it needs and does not name
    program = Elsewhere("multi-freq-ldpy", packages, LOCAL, what)
    return audit(make_function_subject(program, [pair], 1.0), Effort(samples=samples))


if __name__ == "__main__":
    print("diffprivlib GaussianNB, bounds [1.5, 1.55], class counts")
    print(f"  {gaussian_nb('counts', 1000)}")
    print("diffprivlib GaussianNB, bounds [1.5, 1.55], sums")
    print(f"  {gaussian_nb('sums', 2000)}")
    print("multi-freq-ldpy subset selection, 10 values")
    print(f"  {local_client('SS', 0, 1, 10, 16000)}")
    print("multi-freq-ldpy histogram encoding, 10 values")
    print(f"  {local_client('HE', 0, 1, 10, 2000)}")
    print("multi-freq-ldpy RS+FD[GRR], five attributes with two values each")
    print(f"  {local_client('RS+FD[GRR]', [0] * 5, [1] * 5, [2] * 5, 16000)}")
