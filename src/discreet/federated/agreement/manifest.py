"""The manifest: what the parties of a round agree and sign.

A manifest fixes everything that the guarantee depends on, and its hash is in every message and
key. A provider that signs it must know the others: the author of the roster could invent
providers whose noise it knows.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np

from discreet.arrays import Integers
from discreet.errors import PrivacyError, SchemaError
from discreet.federated.agreement.identity import Card
from discreet.federated.agreement.signed import (
    AGREEMENT_VERSION,
    Agreement,
    Role,
    check_deadline,
    check_distinct_cards,
)
from discreet.federated.counters import MIN_NOISE_VARIANCE, Block, FeatureRequest, Layout
from discreet.federated.crypto.noise import PolyaShares
from discreet.federated.refusals import ProtocolError
from discreet.files.documents import load_document
from discreet.privacy.guarantee import Guarantee
from discreet.randomness import Random
from discreet.schema.schema import Schema
from discreet.tables.contributions import MAX_ROWS_PER_PERSON

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey, PublicKey
    from discreet.federated.judging import Judging

__all__ = ["Aggregation", "Manifest", "Mode", "Partition"]

Partition = Literal["horizontal", "vertical"]
Mode = Literal["counts", "probabilities"]
Aggregation = Literal["paillier", "masks"]


@dataclass(frozen=True)
class Manifest(Agreement):
    """The agreement of one round.

    Parameters
    ----------
    schema : Schema
    requests : sequence of FeatureRequest
        Which statistics; see :func:`~discreet.federated.counters.make_feature_requests`.
    epsilon : float
        Per person and total, over all statistics. ``math.inf`` means no noise and no promise.
    providers : sequence of Card
    collector, receiver : Card
    label : Card, optional
        The label provider of a vertical round, who holds the Paillier key there if there is one.
    columns : mapping of provider name to feature names
        Who holds what in a vertical round.
    rows : int, optional
        How many rows all providers of a vertical round hold; not a secret among them.
    partition, mode, aggregation
        Horizontal or vertical; who opens the totals (``"counts"``: the receiver,
        ``"probabilities"``: the collector); ciphertexts or masks.
    tolerated : int, default 1
        How many noise-adding parties may drop out or collude: at least one with a finite
        epsilon, because a noise-adding party that sees the result knows its own share of the noise.
    margin : int
        Weight of the class counts in the budget; zero derives them from the other statistics.
    rows_per_person : int, default 1
        How many rows of a person each provider of a horizontal round counts at most; the noise is
        for that many.
    round : int
    delta : float, default 0
        Always 0: the shares of noise are exact and need none.
    paillier : PublicKey, optional
        The one that its holder's card states: the label provider's or the opener's.
    nonce : str
        Makes every manifest unique.
    deadline : str
        Until when submissions are taken, as ISO 8601; empty for none.
    judging : Judging, optional
        Candidate models made from the totals of an earlier horizontal round: in this one providers
        count the rows that each gets right.
    signatures : mapping of name to hexadecimal signature
        Not a part of what is hashed.
    """

    KIND: ClassVar[str] = "manifest"

    schema: Schema
    requests: tuple[FeatureRequest, ...]
    epsilon: float
    providers: tuple[Card, ...]
    collector: Card
    receiver: Card
    label: Card | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: int | None = None
    partition: Partition = "horizontal"
    mode: Mode = "counts"
    aggregation: Aggregation = "paillier"
    tolerated: int = 1
    margin: int = 0
    rows_per_person: int = 1
    round: int = 1
    delta: float = 0.0
    paillier: PublicKey | None = None
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    deadline: str = ""
    judging: Judging | None = None
    signatures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for field_name, allowed_values in (
            ("partition", Partition),
            ("mode", Mode),
            ("aggregation", Aggregation),
        ):
            if getattr(self, field_name) not in get_args(allowed_values):
                raise SchemaError(
                    f"{field_name}={getattr(self, field_name)!r}; write one of "
                    f"{get_args(allowed_values)}"
                )
        min_providers = 1 if self.partition == "vertical" else 2
        if len(self.providers) < min_providers:
            raise PrivacyError(
                f"a round needs at least {min_providers} providers to hide one among others"
            )
        check_distinct_cards(self.parties, len(self.providers) + (self.label is not None) + 2)
        self._check_budget()
        self._check_rows_per_person()
        if self.partition == "vertical":
            self._check_columns()
        elif self.label is not None or self.columns or self.rows is not None:
            raise SchemaError("a label provider, columns and rows belong to vertical rounds")
        if (self.aggregation == "paillier") != (self.paillier is not None):
            raise SchemaError("a Paillier key is needed for aggregation='paillier', and only there")
        if self.paillier is not None:
            self._check_paillier_key(self.paillier)
        if self.deadline:
            check_deadline(self.deadline)
        if len(self.block_noises) != len(self.layout.blocks):
            raise SchemaError("two statistics are the same")

    def _check_paillier_key(self, key: PublicKey) -> None:
        """Refuse a key that its holder's card does not state, or whose proof does not hold."""
        holder = self.opener if self.label is None else self.label
        if holder.paillier == key.fingerprint:
            holder.verify_modulus(key.n)
            return
        stated_key = "no Paillier key"
        if holder.paillier is not None:
            stated_key = f"the Paillier key {holder.paillier}"
        raise SchemaError(
            f"the manifest has the Paillier key {key.fingerprint}, but the card of {holder.name}, "
            f"who opens with it, states {stated_key}; {holder.name} makes a key and a new card "
            f"with `discreet federated identity {holder.name} --paillier`"
        )

    def _check_budget(self) -> None:
        if self.judging is not None and (self.partition, self.mode) != ("horizontal", "counts"):
            raise SchemaError(
                "candidate models are judged in horizontal rounds of mode counts: in vertical ones "
                "nobody holds whole rows"
            )
        if isinstance(self.epsilon, bool) or not self.epsilon > 0:
            raise PrivacyError(f"epsilon is {self.epsilon!r}; it must be a number above 0")
        if self.delta != 0:
            raise PrivacyError("the noise shares are exact and need no delta; write 0")
        if self.margin < 0 or (self.margin and self.partition == "vertical"):
            raise PrivacyError(
                "the class counts have a weight of 0 or more, and 0 in a vertical round, where "
                "they are derived from the features' tables"
            )
        min_tolerated = 0 if math.isinf(self.epsilon) else 1
        if not min_tolerated <= self.tolerated < self.noise_party_count:
            raise PrivacyError(
                f"tolerated={self.tolerated}: of {self.noise_party_count} parties who add noise, "
                f"{min_tolerated} to {self.noise_party_count - 1} may be missing or colluding"
                + "; with 0 a noise-adding party that sees the result could subtract its own share"
                * (self.tolerated == 0)
            )

    def _check_rows_per_person(self) -> None:
        limit = self.rows_per_person
        if isinstance(limit, bool) or not 1 <= limit <= MAX_ROWS_PER_PERSON:
            raise PrivacyError(
                f"rows_per_person is {limit!r}; write how many rows of a person a provider counts "
                f"at most, from 1 to {MAX_ROWS_PER_PERSON}"
            )
        if limit > 1 and self.partition == "vertical":
            raise SchemaError(
                f"rows_per_person is {limit}, but in a vertical round each person has one row, by "
                "which tables are aligned; write 1"
            )
        if limit > 1:  # a schema that was inferred by rows is refused before anybody counts
            self.guarantee.include_schema(self.schema)

    def _check_columns(self) -> None:
        if self.label is None or self.rows is None or self.rows < 1:
            raise SchemaError("a vertical round needs a label provider and a number of rows")
        provided_features = [
            name for card in self.providers for name in self.columns.get(card.name, ())
        ]
        if sorted(provided_features) != sorted(request.feature for request in self.requests) or set(
            self.columns
        ) != {card.name for card in self.providers}:
            raise SchemaError("in a vertical round every wanted feature has exactly one provider")

    @cached_property
    def layout(self) -> Layout:
        """Which numbers are added up, in which order."""
        return Layout(self.schema, self.requests, bool(self.margin), self.judging)

    @cached_property
    def parties(self) -> dict[str, Card]:
        """Everyone, by name."""
        label = () if self.label is None else (self.label,)
        cards = (*self.providers, *label, self.collector, self.receiver)
        return {card.name: card for card in cards}

    @cached_property
    def roles(self) -> dict[str, Role]:
        """Everyone's part, by name."""
        party_roles: dict[str, Role] = {card.name: "provider" for card in self.providers}
        if self.label is not None:
            party_roles[self.label.name] = "label provider"
        return {**party_roles, self.collector.name: "collector", self.receiver.name: "receiver"}

    @property
    def opener(self) -> Card:
        """Who sees the noised totals: the receiver, or in mode probabilities the collector."""
        return self.receiver if self.mode == "counts" else self.collector

    @property
    def key_holder(self) -> Card | None:
        """Whose Paillier key it is: the label provider's or the opener's; None with masks."""
        if self.aggregation == "masks":
            return None
        return self.opener if self.label is None else self.label

    def require_key(self, own_card: Card, private_key: PrivateKey | None) -> None:
        """Refuse, before anything is signed, that the holder of the Paillier key is without it.

        Parameters
        ----------
        own_card : Card
        private_key : PrivateKey, optional
            What is given.
        """
        if self.key_holder != own_card or self.paillier is None:
            return
        key_description = f"the one of this manifest (fingerprint {self.paillier.fingerprint})"
        if private_key is None:
            raise ProtocolError(
                "wrong-manifest",
                f"{own_card.name} needs a Paillier key, {key_description}; name the file with "
                f"--key {own_card.name}.paillier.json",
            )
        if private_key.public.n != self.paillier.n:
            raise ProtocolError(
                "wrong-manifest",
                f"the Paillier key given (fingerprint {private_key.public.fingerprint}) is not "
                f"{key_description}; give that key, or ask for a manifest with this one",
            )

    @property
    def noise_party_count(self) -> int:
        """Number of noise-adding parties; vertical: a provider, label provider and collector."""
        return len(self.providers) if self.partition == "horizontal" else 3

    def compute_block_epsilon(self, block: Block) -> Fraction | float:
        """Return the epsilon of one block; the epsilons of all blocks add up exactly."""
        if math.isinf(self.epsilon):
            return math.inf
        if block.part == "judged":
            return Fraction(self.epsilon)
        total_weight = self.margin + sum(request.weight for request in self.requests)
        if block.part == "classes":
            return Fraction(self.epsilon) * self.margin / total_weight
        request = next(request for request in self.requests if request.feature == block.feature)
        block_count = len(self.layout.list_blocks(request))
        return Fraction(self.epsilon) * request.weight / total_weight / block_count

    @cached_property
    def block_noises(self) -> dict[Block, PolyaShares]:
        """The noise of every block, for all rows of a person.

        In vertical rounds a replaced record counts twice.
        """
        changed_records = 2 if self.partition == "vertical" else self.rows_per_person
        block_noises = {}
        for block in self.layout.blocks:
            block_epsilon = self.compute_block_epsilon(block)
            noise_scale = (
                Fraction(0)
                if isinstance(block_epsilon, float)
                else block.sensitivity * changed_records / block_epsilon
            )
            block_noises[block] = PolyaShares(noise_scale, self.noise_party_count, self.tolerated)
        return block_noises

    @cached_property
    def is_effectively_exact(self) -> bool:
        """Whether some totals have practically no noise: epsilon is infinite or very large."""
        return min(noise.variance for noise in self.block_noises.values()) < MIN_NOISE_VARIANCE

    def draw_noise_share(self, layout: Layout, random: Random) -> Integers:
        """Draw one party's noise share for every counter of a layout (all or a part of it).

        Blocks of one law are drawn together.
        """
        law_sizes = [
            (self.block_noises[block], layout.rows_per_block * block.size)
            for block in layout.blocks
        ]
        total_sizes: dict[PolyaShares, int] = {}
        for law, size in law_sizes:
            total_sizes[law] = total_sizes.get(law, 0) + size
        law_draws = {law: law.draw_share(size, random) for law, size in total_sizes.items()}
        share_pieces = []
        for law, size in law_sizes:
            share_pieces.append(law_draws[law][:size])
            law_draws[law] = law_draws[law][size:]
        return np.concatenate(share_pieces)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of the round."""
        from discreet.federated.agreement.promise import make_guarantee

        return make_guarantee(self)

    @property
    def schema_digest(self) -> str:
        """Digest of the schema; messages name it."""
        return self.schema.digest

    def to_content(self) -> dict[str, Any]:
        """Everything that was agreed, as plain values; the signatures are not a part of it."""
        label_body = None if self.label is None else self.label.to_body()
        provider_bodies = [card.to_body() for card in self.providers]
        return {
            "round": self.round,
            "nonce": self.nonce,
            "deadline": self.deadline,
            "partition": self.partition,
            "mode": self.mode,
            "aggregation": self.aggregation,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "tolerated": self.tolerated,
            "margin": self.margin,
            "rows_per_person": self.rows_per_person,
            "schema": self.schema.to_body(),
            "wanted": [
                {
                    "feature": request.feature,
                    "kind": request.kind,
                    "edges": list(request.edges),
                    "weight": request.weight,
                    "sensitivities": [
                        block.sensitivity for block in self.layout.list_blocks(request)
                    ],
                }
                for request in self.requests
            ],
            "providers": provider_bodies,
            "collector": self.collector.to_body(),
            "receiver": self.receiver.to_body(),
            "label": label_body,
            "columns": {name: list(features) for name, features in self.columns.items()},
            "rows": self.rows,
            "paillier": None if self.paillier is None else hex(self.paillier.n),
            "judging": None if self.judging is None else self.judging.to_body(),
        }

    @classmethod
    def from_json(cls, text: str | bytes, *, allow_small_key: bool = False) -> Manifest:
        """Read what :meth:`to_json` wrote.

        Parameters
        ----------
        text : str or bytes
        allow_small_key : bool, default False
            Accept a Paillier key below 2048 bits: for tests only.
        """
        from discreet.federated.agreement.manifest_file import ManifestBody

        return load_document(text, "manifest", AGREEMENT_VERSION, ManifestBody).to_manifest(
            allow_small_key
        )
