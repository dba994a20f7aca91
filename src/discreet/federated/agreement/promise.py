"""The guarantee of a round with its trust assumptions, and the consistency check of totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers
from discreet.federated.counters import knows_totals
from discreet.privacy import Charge, Guarantee

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest

__all__ = ["FALSE_ALARM", "inconsistent", "promise"]

PUBLIC = "categories, bounds and classes were known without the data"
FALSE_ALARM = 1e-6
"""Chance that honest totals are flagged, over all comparisons together."""


def promise(manifest: Manifest) -> Guarantee:
    """Make the guarantee of a round with all assumptions it rests on."""
    if math.isinf(manifest.epsilon):
        return Guarantee.nothing()
    horizontal = manifest.partition == "horizontal"
    blocks = manifest.layout.blocks
    charges = tuple(Charge(f"{b.part} of {b.feature}", float(manifest.cost(b))) for b in blocks)
    return Guarantee(
        float(manifest.epsilon),
        neighbours="add-remove" if horizontal else "replace",
        trust="federated",
        against=_against(manifest),
        assumptions=tuple(_horizontal(manifest) if horizontal else _vertical(manifest)),
        charges=charges,
    ).under(schema=manifest.schema)


def _against(manifest: Manifest) -> str:
    opener = manifest.opener.name
    others = "the collector sees nothing but uniform numbers"
    if manifest.mode == "probabilities":
        others = "the receiver sees probabilities only"
    return f"everyone, {opener} who opens the noised totals included; {others}"


def _common(manifest: Manifest) -> list[str]:
    hidden = "X25519, ChaCha20 and Ed25519 hold"
    if manifest.paillier is not None:
        hidden += f", and so does Paillier with {manifest.paillier.bits} bits"
    return [
        "all parties follow the protocol and are merely curious",
        *([] if manifest.schema.inferred else [PUBLIC]),
        hidden,
    ]


def _horizontal(manifest: Manifest) -> list[str]:
    s, t = len(manifest.providers), manifest.tolerated
    return [
        f"of the {s} providers at most {t} are missing or work with others who see the result "
        f"(t = {t}); each knows its own noise and counts as one",
        "collector and receiver may work together, but not with more than t providers",
        "nobody is in the tables of two providers, and nobody takes part in two rounds",
        *_common(manifest),
    ]


def _vertical(manifest: Manifest) -> list[str]:
    t, opener = manifest.tolerated, manifest.opener.name
    assert manifest.label is not None
    label = manifest.label.name
    found = [
        f"of a table's provider, {label} and the collector at most {t} work with others who see "
        f"the result (t = {t}); each knows its own noise and counts as one",
        f"{label} works with no provider: together they hold whole records",
    ]
    if manifest.aggregation == "masks":
        found.append(
            f"{manifest.collector.name}, who deals the masks, works neither with {label} nor with "
            "a provider: together they would read the other side's rows"
        )
    if t < 2:
        found.append(
            f"no two of a table's provider, {label} and {manifest.collector.name} work together: "
            "each knows its share of the noise, and a single share is left"
        )
        found.append(f"{label} and {opener} do not work together: they would undo a share of noise")
    rows = f"the {manifest.rows} rows, and who is among them, are known to all providers"
    return [*found, rows, "nobody takes part in two rounds", *_common(manifest)]


def inconsistent(
    manifest: Manifest, vector: Integers, false_alarm: float = FALSE_ALARM
) -> tuple[str, ...]:
    """Return features whose class totals contradict those of the others beyond the noise.

    Every table of an honest provider has the same class totals, so sums over cells differ by
    noise alone, whose tails are bounded by Chernoff's inequality. A provider that lies in all
    tables alike is not found: nothing contradicts it.

    Parameters
    ----------
    manifest : Manifest
    vector : array of int
        The noised totals.
    false_alarm : float
        Chance that anything is flagged although everybody was honest.
    """
    found = [
        (block, table.sum(axis=1), block.size)
        for block, table in manifest.layout.split(vector)
        if knows_totals(block)
    ]
    if len(found) < 2:
        return ()
    shape = manifest.sharers / (manifest.sharers - manifest.tolerated)
    scales = [float(manifest.noises[block].scale) for block, _, _ in found]
    sizes = [size for _, _, size in found]
    precision = [1 / max(a * b**2, 1e-12) for a, b in zip(sizes, scales, strict=True)]
    comparisons = len(found) * manifest.layout.classes
    flagged = []
    for i, (block, own, _) in enumerate(found):
        rest = sum(precision) - precision[i]
        shares = [1.0 if j == i else precision[j] / rest for j in range(len(found))]
        others = sum(shares[j] * found[j][1] for j in range(len(found)) if j != i)
        terms = [(a * b, c * shape) for a, b, c in zip(shares, scales, sizes, strict=True)]
        if np.abs(own - others).max() > _bound(terms, false_alarm / comparisons):
            flagged.append(block.feature)
    return tuple(flagged)


def _bound(terms: Sequence[tuple[float, float]], chance: float) -> float:
    """Bound that |sum| exceeds with at most this probability; terms are (scale, shape).

    A difference of two Polya draws of shape r has a smaller moment generating function than the
    difference of gamma draws, (1 - (scale theta)^2)^-r; minimised over theta.
    """
    widest = max(scale for scale, _ in terms)
    if widest == 0:
        return 1e-6
    thetas = np.linspace(0.01, 0.99, 99) / widest
    logs = -sum(shape * np.log1p(-((scale * thetas) ** 2)) for scale, shape in terms)
    return float(((logs + math.log(2 / chance)) / thetas).min()) + 1.0
