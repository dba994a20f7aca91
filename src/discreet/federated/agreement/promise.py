"""The guarantee of a round with its trust assumptions, and the consistency check of totals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers
from discreet.federated.counters import CLASS_TOTAL_PARTS
from discreet.privacy.guarantee import Charge, Guarantee

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest

__all__ = [
    "FALSE_ALARM_PROBABILITY",
    "compose_rounds",
    "find_inconsistent_features",
    "make_guarantee",
]

PUBLIC_DOMAIN_ASSUMPTION = "categories, bounds and classes were known without the data"
SINGLE_ROUND_ASSUMPTION = (
    "nobody is in the tables of two providers, and nobody takes part in two rounds"
)
JUDGED_ROUND_ASSUMPTION = (
    "nobody is in the tables of two providers, and nobody takes part in other rounds than this one "
    "and the one whose models it judges"
)
SEVERAL_PROVIDERS_ASSUMPTION = (
    "a person with rows at several providers is counted by each of them, and has that many times "
    "this epsilon"
)
FALSE_ALARM_PROBABILITY = 1e-6
"""Chance that honest totals are flagged, over all comparisons together."""


def make_guarantee(manifest: Manifest) -> Guarantee:
    """Make the guarantee of a round with all assumptions it rests on."""
    if math.isinf(manifest.epsilon):
        return Guarantee.make_unprotected()
    charges = tuple(
        Charge(
            "rows that candidate models get right"
            if block.part == "judged"
            else f"{block.part} of {block.feature}",
            float(manifest.compute_block_epsilon(block)),
        )
        for block in manifest.layout.blocks
    )
    other_views = "the collector sees nothing but uniform numbers"
    if manifest.mode == "probabilities":
        other_views = "the receiver sees probabilities only"
    provider_count, tolerated = len(manifest.providers), manifest.tolerated
    assumptions = [
        f"of the {provider_count} providers at most {tolerated} are missing or work with others "
        f"who see the result (t = {tolerated}); each knows its own noise and counts as one",
        "collector and receiver may work together, but not with more than t providers",
        SINGLE_ROUND_ASSUMPTION if manifest.judging is None else JUDGED_ROUND_ASSUMPTION,
    ]
    unit = Guarantee.unit
    if manifest.rows_per_person > 1:
        limit = manifest.rows_per_person
        unit = f"all rows of one person (of which at most {limit} are counted)"
        assumptions += [
            SEVERAL_PROVIDERS_ASSUMPTION,
            "at every provider all rows of a person have one id, spelled the same, that nobody "
            "else has",
        ]
    if manifest.partition == "vertical":
        assumptions = _list_vertical_assumptions(manifest)
    assumptions.append("all parties follow the protocol and are merely curious")
    assumptions += [] if manifest.schema.inferred else [PUBLIC_DOMAIN_ASSUMPTION]
    crypto_assumption = "X25519, ChaCha20 and Ed25519 hold"
    if manifest.paillier is not None:
        crypto_assumption += f", and so does Paillier with {manifest.paillier.bits} bits"
    return Guarantee(
        float(manifest.epsilon),
        neighbours="add-remove" if manifest.partition == "horizontal" else "replace",
        trust="federated",
        unit=unit,
        against=(
            f"everyone, {manifest.opener.name} who opens the noised totals included; {other_views}"
        ),
        assumptions=(*assumptions, crypto_assumption),
        charges=charges,
    ).void_if(schema=manifest.schema)


def compose_rounds(first: Guarantee, judging: Guarantee) -> Guarantee:
    """The guarantee of a round and of the one that judged its models: the same people are in both.

    Parameters
    ----------
    first, judging : Guarantee
    """
    first_assumptions = tuple(
        assumption for assumption in first.assumptions if assumption != SINGLE_ROUND_ASSUMPTION
    )
    if math.isinf(first.epsilon) or math.isinf(judging.epsilon):
        return Guarantee.make_unprotected()
    return replace(first, assumptions=first_assumptions).compose_sequential(judging)


def _list_vertical_assumptions(manifest: Manifest) -> list[str]:
    tolerated, opener_name = manifest.tolerated, manifest.opener.name
    assert manifest.label is not None
    label_name = manifest.label.name
    assumptions = [
        f"of a table's provider, {label_name} and the collector at most {tolerated} work with "
        f"others who see the result (t = {tolerated}); each knows its own noise and counts as one",
        f"{label_name} works with no provider: together they hold whole records",
    ]
    if manifest.aggregation == "masks":
        assumptions.append(
            f"{manifest.collector.name}, who deals the masks, works neither with {label_name} nor "
            "with a provider: together they would read the other side's rows"
        )
    if tolerated < 2:
        assumptions.append(
            f"no two of a table's provider, {label_name} and {manifest.collector.name} work "
            "together: each knows its share of the noise, and a single share is left"
        )
        assumptions.append(
            f"{label_name} and {opener_name} do not work together: they would undo a share of noise"
        )
    row_assumption = f"the {manifest.rows} rows, and who is among them, are known to all providers"
    return [*assumptions, row_assumption, "nobody takes part in two rounds"]


def find_inconsistent_features(
    manifest: Manifest,
    noised_totals: Integers,
    false_alarm_probability: float = FALSE_ALARM_PROBABILITY,
) -> tuple[str, ...]:
    """Return features whose class totals contradict those of the others beyond the noise.

    Every table of an honest provider has the same class totals, so sums over cells differ by
    noise alone, whose tails are bounded by Chernoff's inequality. A provider that lies in all
    tables alike is not found: nothing contradicts it.

    Parameters
    ----------
    manifest : Manifest
    noised_totals : array of int
        The noised totals.
    false_alarm_probability : float
        Chance that anything is flagged although everybody was honest.
    """
    block_totals = [
        (block, table.sum(axis=1), block.size)
        for block, table in manifest.layout.split(noised_totals)
        if block.part in CLASS_TOTAL_PARTS
    ]
    if len(block_totals) < 2:
        return ()
    noise_shape = manifest.noise_party_count / (manifest.noise_party_count - manifest.tolerated)
    noise_scales = [float(manifest.block_noises[block].scale) for block, _, _ in block_totals]
    cell_counts = [cell_count for _, _, cell_count in block_totals]
    precisions = [
        1 / max(cell_count * noise_scale**2, 1e-12)
        for cell_count, noise_scale in zip(cell_counts, noise_scales, strict=True)
    ]
    comparison_count = len(block_totals) * len(manifest.schema.classes)
    flagged_features = []
    for index, (block, class_totals, _) in enumerate(block_totals):
        other_precision = sum(precisions) - precisions[index]
        weights = [
            1.0 if other_index == index else precisions[other_index] / other_precision
            for other_index in range(len(block_totals))
        ]
        pooled_totals = sum(
            weights[other_index] * block_totals[other_index][1]
            for other_index in range(len(block_totals))
            if other_index != index
        )
        noise_terms = [
            (weight * noise_scale, cell_count * noise_shape)
            for weight, noise_scale, cell_count in zip(
                weights, noise_scales, cell_counts, strict=True
            )
        ]
        if np.abs(class_totals - pooled_totals).max() > _compute_tail_bound(
            noise_terms, false_alarm_probability / comparison_count
        ):
            flagged_features.append(block.feature)
    return tuple(flagged_features)


def _compute_tail_bound(noise_terms: Sequence[tuple[float, float]], probability: float) -> float:
    """Bound that |sum| exceeds with at most this probability; terms are (scale, shape).

    A difference of two Polya draws of shape r has a smaller moment generating function than the
    difference of gamma draws, (1 - (scale theta)^2)^-r; minimised over theta.
    """
    largest_scale = max(scale for scale, _ in noise_terms)
    if largest_scale == 0:
        return 1e-6
    thetas = np.linspace(0.01, 0.99, 99) / largest_scale
    log_moments = -sum(shape * np.log1p(-((scale * thetas) ** 2)) for scale, shape in noise_terms)
    return float(((log_moments + math.log(2 / probability)) / thetas).min()) + 1.0
