"""Simulate complete rounds in one process, with real keys and signed messages.

Accuracy and cost of a round are known before anyone is asked. The guarantee holds only if the
parties are really separate, so results are marked as simulated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import SchemaError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Aggregation, Manifest, Mode
from discreet.federated.counters import FeatureRequest
from discreet.federated.judging import make_judging_manifest, split_judging_epsilon
from discreet.federated.release import Release
from discreet.randomness import Random
from discreet.schema.schema import Schema

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey
    from discreet.statistics.statistics import Statistics

__all__ = ["RoundTerms", "simulate_horizontal", "simulate_judged", "simulate_vertical"]

Columns = Mapping[str, Any]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class RoundTerms:
    """Terms of a round without its parties; all of them are in the manifest.

    Parameters
    ----------
    schema : Schema
    requests : tuple of FeatureRequest
    epsilon : float
    mode, aggregation, tolerated
        As in the manifest.
    """

    schema: Schema
    requests: tuple[FeatureRequest, ...]
    epsilon: float
    mode: Mode = "counts"
    aggregation: Aggregation = "masks"
    tolerated: int = 1

    @property
    def can_judge(self) -> bool:
        """Whether providers of rows could judge candidate models of such a round."""
        return (
            self.mode == "counts"
            and not math.isinf(self.epsilon)
            and len(self.schema.classes) > 1
            and all(request.kind == "cells" for request in self.requests)
        )

    def make_manifest(self, providers: Sequence[Identity], **parties: Any) -> Manifest:
        """Make the unsigned manifest of a round with these parties."""
        return Manifest(
            self.schema,
            self.requests,
            self.epsilon,
            tuple(identity.card for identity in providers),
            mode=self.mode,
            aggregation=self.aggregation,
            tolerated=self.tolerated,
            **parties,
        )


def simulate_horizontal(
    terms: RoundTerms,
    provider_tables: Sequence[tuple[Columns, Codes]],
    random: Random,
    private_key: PrivateKey | None = None,
) -> tuple[Release, Manifest]:
    """Simulate a horizontal round in which each part of a table belongs to one provider.

    Parameters
    ----------
    terms : RoundTerms
    provider_tables : sequence of (columns, class codes)
    random : Random
        Where the noise comes from; keys are always from the operating system.
    private_key : PrivateKey, optional
        For Paillier; made if not given.
    """
    parties = _SimulatedParties.generate(len(provider_tables))
    private_key = _resolve_key(private_key) if terms.aggregation == "paillier" else None
    collector, receiver = parties.collector, parties.receiver
    cards = {"collector": collector.card, "receiver": receiver.card}
    if private_key is not None:
        opener = receiver if terms.mode == "counts" else collector
        cards[opener.name] = opener.make_card_with_key(private_key)
    manifest = terms.make_manifest(
        parties.providers,
        **cards,
        paillier=None if private_key is None else private_key.public,
    )
    return parties.run_round(manifest, provider_tables, random, private_key)


def simulate_judged(
    terms: RoundTerms,
    provider_tables: Sequence[tuple[Columns, Codes]],
    random: Random,
    private_key: PrivateKey | None = None,
) -> tuple[Release, Manifest, Manifest]:
    """Simulate a horizontal round, and one in which the same providers judge models made from it.

    Parameters
    ----------
    terms : RoundTerms
        Their epsilon is that of both rounds together.
    provider_tables, random, private_key
        As for :func:`simulate_horizontal`.

    Returns
    -------
    release : Release
        With the scoring that was chosen and the guarantee of both rounds.
    manifest, judging_manifest : Manifest
    """
    counting_epsilon, judging_epsilon = split_judging_epsilon(terms.epsilon)
    parties = _SimulatedParties.generate(len(provider_tables))
    private_key = _resolve_key(private_key) if terms.aggregation == "paillier" else None
    receiver_card = parties.receiver.card
    if private_key is not None:
        receiver_card = parties.receiver.make_card_with_key(private_key)
    counting_manifest = replace(terms, epsilon=counting_epsilon).make_manifest(
        parties.providers,
        collector=parties.collector.card,
        receiver=receiver_card,
        paillier=None if private_key is None else private_key.public,
    )
    first_release, manifest = parties.run_round(
        counting_manifest, provider_tables, random, private_key
    )
    assert first_release.statistics is not None
    release, judging_manifest = parties.run_round(
        make_judging_manifest(manifest, first_release.statistics, judging_epsilon),
        provider_tables,
        random,
        private_key,
        first_release.statistics,
    )
    return replace(release, inconsistent=first_release.inconsistent), manifest, judging_manifest


@dataclass(frozen=True)
class _SimulatedParties:
    """Parties of horizontal rounds with keys that are thrown away."""

    providers: tuple[Identity, ...]
    collector: Identity
    receiver: Identity

    @classmethod
    def generate(cls, provider_count: int) -> _SimulatedParties:
        """Make keys for everyone."""
        return cls(
            tuple(Identity.generate(f"provider-{index}") for index in range(provider_count)),
            Identity.generate("collector"),
            Identity.generate("receiver"),
        )

    def run_round(
        self,
        unsigned_manifest: Manifest,
        provider_tables: Sequence[tuple[Columns, Codes]],
        random: Random,
        private_key: PrivateKey | None,
        judged_statistics: Statistics | None = None,
    ) -> tuple[Release, Manifest]:
        """Run one round with real keys and signed messages."""
        manifest = unsigned_manifest.with_signatures(*self.providers, self.collector, self.receiver)
        opens_at_receiver = manifest.mode == "counts"
        collector_machine = horizontal.HorizontalCollector(
            self.collector, manifest, None if opens_at_receiver else private_key
        )
        for identity, (columns, codes) in zip(self.providers, provider_tables, strict=True):
            provider = horizontal.HorizontalProvider(identity, manifest, random=random)
            exact_counts = manifest.layout.count_rows(columns, codes)
            collector_machine.receive(provider.make_submission(exact_counts).to_bytes())
        receiver_machine = horizontal.HorizontalReceiver(
            self.receiver, manifest, private_key if opens_at_receiver else None, judged_statistics
        )
        release = receiver_machine.receive(collector_machine.make_result().to_bytes())
        guarantee = release.model.guarantee.void_if(simulated=random.simulated)
        return release.with_guarantee(guarantee), manifest


def simulate_vertical(
    terms: RoundTerms,
    columns: Columns,
    codes: Codes,
    random: Random,
    private_key: PrivateKey | None = None,
    *,
    providers: int = 2,
) -> tuple[Release, Manifest]:
    """Simulate a vertical round: columns are dealt to providers, labels to a label provider.

    Parameters
    ----------
    terms, random, private_key
        As for :func:`simulate_horizontal`.
    columns : mapping of feature name to column
    codes : array of int
        The class index of each row.
    providers : int
        Among whom the columns are dealt out; no more than there are columns.
    """
    feature_names = [request.feature for request in terms.requests]
    identities = [
        Identity.generate(f"provider-{index}")
        for index in range(min(providers, len(feature_names)))
    ]
    if not identities:
        raise SchemaError(f"providers={providers!r}; a vertical round needs at least one")
    label, collector = Identity.generate("label"), Identity.generate("collector")
    receiver = Identity.generate("receiver")
    private_key = _resolve_key(private_key) if terms.aggregation == "paillier" else None
    columns_by_provider = {
        identity.name: tuple(feature_names[index :: len(identities)])
        for index, identity in enumerate(identities)
    }
    manifest = terms.make_manifest(
        identities,
        collector=collector.card,
        receiver=receiver.card,
        label=label.card if private_key is None else label.make_card_with_key(private_key),
        columns=columns_by_provider,
        rows=len(codes),
        partition="vertical",
        paillier=None if private_key is None else private_key.public,
    ).with_signatures(*identities, label, collector, receiver)
    label_machine = vertical.LabelProvider(label, manifest, private_key, random=random)
    for identity, message in zip(identities, label_machine.make_all_labels(codes), strict=True):
        provider = vertical.VerticalProvider(identity, manifest, random=random)
        provider.receive(message.to_bytes())
        own_columns = {name: columns[name] for name in columns_by_provider[identity.name]}
        label_machine.receive(provider.make_tables(own_columns).to_bytes())
    collector_machine = vertical.VerticalCollector(collector, manifest, random=random)
    if collector_machine.protocol.needs_correction:
        correction = collector_machine.make_correction()
        label_machine.receive(correction.to_bytes())
    collector_machine.receive(label_machine.make_shares().to_bytes())
    receiver_machine = vertical.VerticalReceiver(receiver, manifest)
    release = receiver_machine.receive(collector_machine.make_result().to_bytes())
    return release.with_guarantee(manifest.guarantee.void_if(simulated=random.simulated)), manifest


def _resolve_key(private_key: PrivateKey | None) -> PrivateKey:
    from discreet.federated.crypto.paillier import generate_key

    return generate_key() if private_key is None else private_key
