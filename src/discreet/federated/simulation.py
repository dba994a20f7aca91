"""Simulate complete rounds in one process, with real keys and signed messages.

Accuracy and cost of a round are known before anyone is asked. The guarantee holds only if the
parties are really separate, so results are marked as simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

__all__ = ["Terms", "simulate_horizontal", "simulate_vertical"]

Columns = Mapping[str, Any]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Terms:
    """Terms of a round without its parties; all of them are in the manifest.

    Parameters
    ----------
    schema : Schema
    wanted : tuple of Wanted
    epsilon : float
    mode, aggregation, tolerated
        As in the manifest.
    """

    schema: Schema
    wanted: tuple[Wanted, ...]
    epsilon: float
    mode: Mode = "counts"
    aggregation: Aggregation = "masks"
    tolerated: int = 1

    def manifest(self, providers: Sequence[Identity], **parties: Any) -> Manifest:
        """Make the unsigned manifest of a round with these parties."""
        return Manifest(
            self.schema,
            self.wanted,
            self.epsilon,
            tuple(one.card for one in providers),
            mode=self.mode,
            aggregation=self.aggregation,
            tolerated=self.tolerated,
            **parties,
        )


def simulate_horizontal(
    terms: Terms,
    parts: Sequence[tuple[Columns, Codes]],
    random: Random,
    key: PrivateKey | None = None,
) -> tuple[Release, Manifest]:
    """Simulate a horizontal round in which each part of a table belongs to one provider.

    Parameters
    ----------
    terms : Terms
    parts : sequence of (columns, class codes)
    random : Random
        Where the noise comes from; keys are always from the operating system.
    key : PrivateKey, optional
        For Paillier; made if not given.
    """
    providers = [Identity.generate(f"provider-{i}") for i in range(len(parts))]
    collector, receiver = Identity.generate("collector"), Identity.generate("receiver")
    key = _key(key) if terms.aggregation == "paillier" else None
    counts = terms.mode == "counts"
    manifest = terms.manifest(
        providers,
        collector=collector.card if counts else _card(collector, key),
        receiver=_card(receiver, key) if counts else receiver.card,
        paillier=None if key is None else key.public,
    ).signed_by(*providers, collector, receiver)
    collecting = horizontal.Collector(collector, manifest, None if counts else key)
    for own, (columns, codes) in zip(providers, parts, strict=True):
        provider = horizontal.Provider(own, manifest, random=random)
        exact = manifest.layout.vector(columns, codes)
        collecting.receive(provider.submit(exact).to_bytes())
    receiving = horizontal.Receiver(receiver, manifest, key if counts else None)
    release = receiving.receive(collecting.result().to_bytes())
    return release.promising(manifest.guarantee.under(simulated=random.simulated)), manifest


def simulate_vertical(
    terms: Terms,
    columns: Columns,
    codes: Codes,
    random: Random,
    key: PrivateKey | None = None,
    *,
    providers: int = 2,
) -> tuple[Release, Manifest]:
    """Simulate a vertical round: columns are dealt to providers, labels to a label provider.

    Parameters
    ----------
    terms, random, key
        As for :func:`simulate_horizontal`.
    columns : mapping of feature name to column
    codes : array of int
        The class index of each row.
    providers : int
        Among whom the columns are dealt out; no more than there are columns.
    """
    names = [one.feature for one in terms.wanted]
    holders = [Identity.generate(f"provider-{i}") for i in range(min(providers, len(names)))]
    if not holders:
        raise SchemaError(f"providers={providers!r}; a vertical round needs at least one")
    label, collector = Identity.generate("label"), Identity.generate("collector")
    receiver = Identity.generate("receiver")
    key = _key(key) if terms.aggregation == "paillier" else None
    held = {one.name: tuple(names[i :: len(holders)]) for i, one in enumerate(holders)}
    manifest = terms.manifest(
        holders,
        collector=collector.card,
        receiver=receiver.card,
        label=_card(label, key),
        columns=held,
        rows=len(codes),
        partition="vertical",
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
    return own.card if key is None else own.card_with(key)


def _key(key: PrivateKey | None) -> PrivateKey:
    from discreet.federated.crypto.paillier import generate

    return generate() if key is None else key
