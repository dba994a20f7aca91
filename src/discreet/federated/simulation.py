"""Whole rounds in one process: every party with its own keys, every message signed and read.

What a round costs and gives is thereby known before anyone is asked; the promise holds only
between parties that are really apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import SchemaError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Aggregation, Manifest, Mode
from discreet.federated.counters import Wanted
from discreet.federated.release import Release
from discreet.randomness import Random
from discreet.schema import Schema

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["simulate_horizontal", "simulate_vertical"]

Columns = Mapping[str, Any]
Codes = NDArray[np.int32]


def simulate_horizontal(
    schema: Schema,
    wanted: tuple[Wanted, ...],
    parts: Sequence[tuple[Columns, Codes]],
    epsilon: float,
    random: Random,
    *,
    mode: Mode = "counts",
    aggregation: Aggregation = "masks",
    tolerated: int = 1,
    key: PrivateKey | None = None,
) -> tuple[Release, Manifest]:
    """Let every part of a table be a provider's, and run the round.

    Parameters
    ----------
    schema : Schema
    wanted : tuple of Wanted
    parts : sequence of (columns, class codes)
    epsilon : float
    random : Random
        Where the noise comes from; keys are always from the operating system.
    mode, aggregation, tolerated
        As in the manifest.
    key : PrivateKey, optional
        For Paillier; made if not given.
    """
    providers = [Identity.generate(f"provider-{i}") for i in range(len(parts))]
    collector, receiver = Identity.generate("collector"), Identity.generate("receiver")
    key = _key(key) if aggregation == "paillier" else None
    manifest = Manifest(
        schema,
        wanted,
        epsilon,
        tuple(one.card for one in providers),
        collector.card if mode == "counts" else _card(collector, key),
        _card(receiver, key) if mode == "counts" else receiver.card,
        mode=mode,
        aggregation=aggregation,
        tolerated=tolerated,
        paillier=None if key is None else key.public,
    ).signed_by(*providers, collector, receiver)
    collecting = horizontal.Collector(collector, manifest, key if mode != "counts" else None)
    for own, (columns, codes) in zip(providers, parts, strict=True):
        provider = horizontal.Provider(own, manifest, random=random)
        exact = manifest.layout.vector(columns, codes)
        collecting.receive(provider.submit(exact).to_bytes())
    receiving = horizontal.Receiver(receiver, manifest, key if mode == "counts" else None)
    release = receiving.receive(collecting.result().to_bytes())
    return release.promising(manifest.guarantee.under(simulated=random.simulated)), manifest


def simulate_vertical(
    schema: Schema,
    wanted: tuple[Wanted, ...],
    columns: Columns,
    codes: Codes,
    epsilon: float,
    random: Random,
    *,
    providers: int = 2,
    mode: Mode = "counts",
    aggregation: Aggregation = "masks",
    tolerated: int = 1,
    key: PrivateKey | None = None,
) -> tuple[Release, Manifest]:
    """Deal the columns out to providers, keep the labels at one more, and run the round.

    Parameters
    ----------
    schema, wanted, epsilon, random, mode, aggregation, tolerated, key
        As for :func:`simulate_horizontal`.
    columns : mapping of feature name to column
    codes : array of int
        The class index of each row.
    providers : int
        Among whom the columns are dealt out; no more than there are columns.
    """
    names = [one.feature for one in wanted]
    holders = [Identity.generate(f"provider-{i}") for i in range(min(providers, len(names)))]
    if not holders:
        raise SchemaError(f"providers={providers!r}; a vertical round needs at least one")
    label, collector = Identity.generate("label"), Identity.generate("collector")
    receiver = Identity.generate("receiver")
    key = _key(key) if aggregation == "paillier" else None
    held = {one.name: tuple(names[i :: len(holders)]) for i, one in enumerate(holders)}
    manifest = Manifest(
        schema,
        wanted,
        epsilon,
        tuple(one.card for one in holders),
        collector.card,
        receiver.card,
        label=_card(label, key),
        columns=held,
        rows=len(codes),
        partition="vertical",
        mode=mode,
        aggregation=aggregation,
        tolerated=tolerated,
        paillier=None if key is None else key.public,
    ).signed_by(*holders, label, collector, receiver)
    labelling = vertical.LabelProvider(label, manifest, key, random=random)
    for own, message in zip(holders, labelling.labels(codes), strict=True):
        provider = vertical.Provider(own, manifest, random=random)
        provider.receive(message.to_bytes())
        mine = {name: columns[name] for name in held[own.name]}
        labelling.receive(provider.tables(mine).to_bytes())
    collecting = vertical.Collector(collector, manifest, random=random)
    if collecting.way.deals:
        dealt = collecting.correction()
        labelling.receive(dealt.to_bytes())
    collecting.receive(labelling.shares().to_bytes())
    receiving = vertical.Receiver(receiver, manifest)
    release = receiving.receive(collecting.result().to_bytes())
    return release.promising(manifest.guarantee.under(simulated=random.simulated)), manifest


def _card(own: Identity, key: PrivateKey | None) -> Card:
    return own.card if key is None else own.card_with(key.public.fingerprint)


def _key(key: PrivateKey | None) -> PrivateKey:
    from discreet.federated.crypto.paillier import generate

    return generate() if key is None else key
