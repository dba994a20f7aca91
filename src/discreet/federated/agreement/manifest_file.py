"""Manifests on disk: strict JSON shapes, parsed completely or refused."""

from __future__ import annotations

from pydantic import Field

from discreet.errors import FormatError, SchemaError
from discreet.federated.agreement.identity import CardBody
from discreet.federated.agreement.manifest import Aggregation, Manifest, Mode, Partition
from discreet.federated.counters import FeatureRequest, RequestKind
from discreet.federated.judging import JudgingBody
from discreet.files.documents import Body
from discreet.schema.schema import SchemaBody

__all__ = ["ManifestBody", "parse_held_columns"]

_PLAIN_FIELDS = (
    *("round", "nonce", "deadline", "partition", "mode", "aggregation"),
    *("epsilon", "delta", "tolerated", "margin", "rows_per_person", "rows", "signatures"),
)


class _FeatureRequestBody(Body):
    feature: str
    kind: RequestKind
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
    rows_per_person: int
    public: SchemaBody = Field(alias="schema")
    wanted: list[_FeatureRequestBody]
    providers: list[CardBody]
    collector: CardBody
    receiver: CardBody
    label: CardBody | None
    columns: dict[str, list[str]]
    rows: int | None
    paillier: str | None
    judging: JudgingBody | None
    signatures: dict[str, str]

    def to_manifest(self, allow_small_key: bool) -> Manifest:
        """Convert the parsed JSON to a manifest; refuse contradictory sensitivities."""
        public_key = None
        if self.paillier is not None:
            from discreet.federated.crypto.paillier import PublicKey, parse_number

            public_key = PublicKey(parse_number(self.paillier), allow_small_key)
        manifest = Manifest(
            schema=self.public.to_schema(),
            requests=tuple(
                FeatureRequest(
                    request_body.feature,
                    request_body.kind,
                    tuple(request_body.edges),
                    request_body.weight,
                )
                for request_body in self.wanted
            ),
            providers=tuple(card_body.to_card() for card_body in self.providers),
            collector=self.collector.to_card(),
            receiver=self.receiver.to_card(),
            label=None if self.label is None else self.label.to_card(),
            columns={name: tuple(feature_names) for name, feature_names in self.columns.items()},
            paillier=public_key,
            judging=None if self.judging is None else self.judging.to_judging(),
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
        )
        stated_sensitivities = [stated_request.sensitivities for stated_request in self.wanted]
        actual_sensitivities = [
            [block.sensitivity for block in manifest.layout.list_blocks(request)]
            for request in manifest.requests
        ]
        if stated_sensitivities != actual_sensitivities:
            raise FormatError(
                "this manifest states other sensitivities than its statistics have; do not sign it"
            )
        return manifest


def parse_held_columns(columns: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Parse which party holds which features, from texts such as ``hospital-a=age,sex``."""
    columns_by_party = {}
    for text in columns:
        party_name, separator, feature_list = text.partition("=")
        if not separator:
            raise SchemaError(f"--columns {text!r}; write hospital-a=age,sex")
        columns_by_party[party_name] = tuple(feature_list.split(","))
    return columns_by_party
