"""A trusted curator trains with a promise, and sees what the promise costs in accuracy.

    python examples/central.py

The people are invented. The noise comes from the operating system's randomness, so the numbers
differ a little from run to run; that is the point.
"""

from __future__ import annotations

import math

from discreet import CentralNB, MixedNB
from discreet.datasets import make_mortgage


def main() -> None:
    """Compare three budgets with the limit that they tend to, and list what the last one paid for.

    Each fit is paid for by the same people: trying three budgets costs their sum.
    """
    people, others = make_mortgage(10_000, seed=0), make_mortgage(10_000, seed=1)

    for name, limit in (
        ("no privacy", CentralNB(math.inf, schema=people.schema)),  # the same, without noise
        ("plain NB", MixedNB(schema=people.schema)),  # counts, and corrects nothing
    ):
        limit.fit(people.X, people.y)
        print(f"{name:<12} accuracy {limit.score(others.X, others.y):.3f}")
    spent = None
    for epsilon in (0.1, 0.5, 1.0):
        nb = CentralNB(epsilon=epsilon, schema=people.schema).fit(people.X, people.y)
        print(f"epsilon {epsilon:<4g} accuracy {nb.score(others.X, others.y):.3f}")
        spent = nb.guarantee_ if spent is None else spent.compose_sequential(nb.guarantee_)
    print(f"all three together cost epsilon {spent.epsilon:g}")

    print()
    print(nb.guarantee_)
    print()
    for charge in nb.guarantee_.charges:
        print(f"  {charge.epsilon:.4f}  {charge.name}")


if __name__ == "__main__":
    main()
