"""Manifests on disk: strict JSON shapes, parsed completely or refused."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from discreet.documents import Body
from discreet.errors import FormatError
from discreet.federated.agreement.identity import CardBody
from discreet.federated.agreement.manifest import Aggregation, Manifest, Mode, Partition
from discreet.federated.counters import Kind, Wanted
from discreet.schema import SchemaBody

__all__ = ["ManifestBody", "content_of"]

_PLAIN = (
    *("round", "nonce", "deadline", "partition", "mode", "aggregation"),
    *("epsilon", "delta", "tolerated", "margin", "rows", "signatures"),
)


def content_of(manifest: Manifest) -> dict[str, Any]:
    """Everything that was agreed, as plain values; the signatures are not a part of it."""
    key = manifest.paillier
    return {
        "round": manifest.round,
        "nonce": manifest.nonce,
        "deadline": manifest.deadline,
        "partition": manifest.partition,
        "mode": manifest.mode,
        "aggregation": manifest.aggregation,
        "epsilon": manifest.epsilon,
        "delta": manifest.delta,
        "tolerated": manifest.tolerated,
        "margin": manifest.margin,
        "schema": manifest.schema.to_body(),
        "wanted": [
            {
                "feature": one.feature,
                "kind": one.kind,
                "edges": list(one.edges),
                "weight": one.weight,
                "sensitivities": [b.sensitivity for b in manifest.layout.blocks_of(one)],
            }
            for one in manifest.wanted
        ],
        "providers": [card.to_body() for card in manifest.providers],
        "collector": manifest.collector.to_body(),
        "receiver": manifest.receiver.to_body(),
        "label": None if manifest.label is None else manifest.label.to_body(),
        "columns": {name: list(held) for name, held in manifest.columns.items()},
        "rows": manifest.rows,
        "paillier": None if key is None else hex(key.n),
    }


class _WantedBody(Body):
    feature: str
    kind: Kind
    edges: list[float]
    weight: int
    sensitivities: list[int]


class ManifestBody(Body):
    """Shape of a manifest on disk."""

    round: int
    nonce: str
    deadline: str
    partition: Partition
    mode: Mode
    aggregation: Aggregation
    epsilon: float
    delta: float
    tolerated: int
    margin: int
    public: SchemaBody = Field(alias="schema")
    wanted: list[_WantedBody]
    providers: list[CardBody]
    collector: CardBody
    receiver: CardBody
    label: CardBody | None
    columns: dict[str, list[str]]
    rows: int | None
    paillier: str | None
    signatures: dict[str, str]

    def manifest(self, allow_small_key: bool) -> Manifest:
        """Convert the parsed JSON to a manifest; refuse contradictory sensitivities."""
        key = None
        if self.paillier is not None:
            from discreet.federated.crypto.paillier import PublicKey, parse_number

            key = PublicKey(parse_number(self.paillier), allow_small_key)
        found = Manifest(
            schema=self.public.value(),
            wanted=tuple(Wanted(o.feature, o.kind, tuple(o.edges), o.weight) for o in self.wanted),
            providers=tuple(one.card() for one in self.providers),
            collector=self.collector.card(),
            receiver=self.receiver.card(),
            label=None if self.label is None else self.label.card(),
            columns={name: tuple(held) for name, held in self.columns.items()},
            paillier=key,
            **{name: getattr(self, name) for name in _PLAIN},
        )
        stated = [one.sensitivities for one in self.wanted]
        actual = [[b.sensitivity for b in found.layout.blocks_of(o)] for o in found.wanted]
        if stated != actual:
            raise FormatError(
                "this manifest states other sensitivities than its statistics have; do not sign it"
            )
        return found
