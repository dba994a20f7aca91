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

from discreet.arrays import Integers
from discreet.documents import load
from discreet.errors import PrivacyError, SchemaError
from discreet.federated.agreement.identity import Card
from discreet.federated.agreement.signed import (
    VERSION,
    Agreement,
    Role,
    check_cards,
    check_deadline,
)
from discreet.federated.counters import LEAST, Block, Layout, Wanted
from discreet.federated.crypto.noise import PolyaShares, draw_each
from discreet.federated.refusals import ProtocolError
from discreet.privacy import Guarantee
from discreet.randomness import Random
from discreet.schema import Schema

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey, PublicKey

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
    wanted : sequence of Wanted
        Which statistics; see :func:`~discreet.federated.counters.wanted_of`.
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
    round : int
    delta : float, default 0
        Always 0: the shares of noise are exact and need none.
    paillier : PublicKey, optional
        The one that its holder's card states: the label provider's or the opener's.
    nonce : str
        Makes every manifest unique.
    deadline : str
        Until when submissions are taken, as ISO 8601; empty for none.
    signatures : mapping of name to hexadecimal signature
        Not a part of what is hashed.
    """

    KIND: ClassVar[str] = "manifest"

    schema: Schema
    wanted: tuple[Wanted, ...]
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
    round: int = 1
    delta: float = 0.0
    paillier: PublicKey | None = None
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    deadline: str = ""
    signatures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kinds in (
            ("partition", Partition),
            ("mode", Mode),
            ("aggregation", Aggregation),
        ):
            if getattr(self, name) not in get_args(kinds):
                raise SchemaError(f"{name}={getattr(self, name)!r}; write one of {get_args(kinds)}")
        self._check_roster()
        self._check_budget()
        if self.partition == "vertical":
            self._check_columns()
        elif self.label is not None or self.columns or self.rows is not None:
            raise SchemaError("a label provider, columns and rows belong to vertical rounds")
        if (self.aggregation == "paillier") != (self.paillier is not None):
            raise SchemaError("a Paillier key is needed for aggregation='paillier', and only there")
        self._check_paillier()
        check_deadline(self.deadline)
        if len(self.noises) != len(self.layout.blocks):
            raise SchemaError("two statistics are the same")

    def _check_paillier(self) -> None:
        """Refuse a key that its holder's card does not state, or whose proof does not hold."""
        holder, key = self.key_holder, self.paillier
        if holder is None or key is None:
            return
        if holder.paillier == key.fingerprint:
            holder.verify_modulus(key.n)
            return
        stated = "no Paillier key"
        if holder.paillier is not None:
            stated = f"the Paillier key {holder.paillier}"
        raise SchemaError(
            f"the manifest has the Paillier key {key.fingerprint}, but the card of {holder.name}, "
            f"who opens with it, states {stated}; {holder.name} makes a key and a new card with "
            f"`discreet federated identity {holder.name} --paillier`"
        )

    def _check_budget(self) -> None:
        if isinstance(self.epsilon, bool) or not self.epsilon > 0:
            raise PrivacyError(f"epsilon is {self.epsilon!r}; it must be a number above 0")
        if self.delta != 0:
            raise PrivacyError("the noise shares are exact and need no delta; write 0")
        if self.margin < 0 or (self.margin and self.partition == "vertical"):
            raise PrivacyError(
                "the class counts have a weight of 0 or more, and 0 in a vertical round, where "
                "they are derived from the features' tables"
            )
        least = 0 if math.isinf(self.epsilon) else 1
        if not least <= self.tolerated < self.sharers:
            raise PrivacyError(
                f"tolerated={self.tolerated}: of {self.sharers} parties who add noise, {least} to "
                f"{self.sharers - 1} may be missing or colluding"
                + "; with 0 a noise-adding party that sees the result could subtract its own share"
                * (self.tolerated == 0)
            )

    def _check_roster(self) -> None:
        least = 1 if self.partition == "vertical" else 2
        if len(self.providers) < least:
            raise PrivacyError(f"a round needs at least {least} providers to hide one among others")
        check_cards(self._cards)

    def _check_columns(self) -> None:
        if self.label is None or self.rows is None or self.rows < 1:
            raise SchemaError("a vertical round needs a label provider and a number of rows")
        held = [name for card in self.providers for name in self.columns.get(card.name, ())]
        if sorted(held) != sorted(one.feature for one in self.wanted) or set(self.columns) != {
            card.name for card in self.providers
        }:
            raise SchemaError("in a vertical round every wanted feature has exactly one provider")

    @cached_property
    def layout(self) -> Layout:
        """Which numbers are added up, in which order."""
        return Layout(self.schema, self.wanted, bool(self.margin))

    @cached_property
    def parties(self) -> dict[str, Card]:
        """Everyone, by name."""
        return {card.name: card for card in self._cards}

    @property
    def _cards(self) -> list[Card]:
        label = () if self.label is None else (self.label,)
        return [*self.providers, *label, self.collector, self.receiver]

    @cached_property
    def roles(self) -> dict[str, Role]:
        """Everyone's part, by name."""
        found: dict[str, Role] = {card.name: "provider" for card in self.providers}
        if self.label is not None:
            found[self.label.name] = "label provider"
        return {**found, self.collector.name: "collector", self.receiver.name: "receiver"}

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

    def require_key(self, own: Card, key: PrivateKey | None) -> None:
        """Refuse, before anything is signed, that the holder of the Paillier key is without it.

        Parameters
        ----------
        own : Card
        key : PrivateKey, optional
            What is given.
        """
        if self.key_holder != own or self.paillier is None:
            return
        wanted = f"the one of this manifest (fingerprint {self.paillier.fingerprint})"
        if key is None:
            raise ProtocolError(
                "wrong-manifest",
                f"{own.name} needs a Paillier key, {wanted}; name the file with --key "
                f"{own.name}.paillier.json",
            )
        if key.public.n != self.paillier.n:
            raise ProtocolError(
                "wrong-manifest",
                f"the Paillier key given (fingerprint {key.public.fingerprint}) is not {wanted}; "
                "give that key, or ask for a manifest with this one",
            )

    @property
    def sharers(self) -> int:
        """Number of noise-adding parties; vertical: a provider, label provider and collector."""
        return len(self.providers) if self.partition == "horizontal" else 3

    def cost(self, block: Block) -> Fraction | float:
        """Return the epsilon of one block; the epsilons of all blocks add up exactly."""
        if math.isinf(self.epsilon):
            return math.inf
        whole = self.margin + sum(one.weight for one in self.wanted)
        if block.part == "classes":
            return Fraction(self.epsilon) * self.margin / whole
        one = next(one for one in self.wanted if one.feature == block.feature)
        parts = len(self.layout.blocks_of(one))
        return Fraction(self.epsilon) * one.weight / whole / parts

    def noise(self, block: Block) -> PolyaShares:
        """Make the noise law of a block; in vertical rounds a replaced record counts twice."""
        cost = self.cost(block)
        changed = block.sensitivity * (2 if self.partition == "vertical" else 1)
        scale = Fraction(0) if isinstance(cost, float) else changed / cost
        return PolyaShares(scale, self.sharers, self.tolerated)

    @cached_property
    def noises(self) -> dict[Block, PolyaShares]:
        """The noise of every block."""
        return {block: self.noise(block) for block in self.layout.blocks}

    @cached_property
    def bare(self) -> bool:
        """Whether some totals have practically no noise: epsilon is infinite or very large."""
        return min(noise.variance for noise in self.noises.values()) < LEAST

    def share(self, layout: Layout, random: Random) -> Integers:
        """Draw one party's noise share for every counter of a layout (all or a part of it)."""
        sizes = [(self.noises[b], layout.classes * b.size) for b in layout.blocks]
        return draw_each(sizes, random)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of the round."""
        from discreet.federated.agreement.promise import promise

        return promise(self)

    @property
    def about(self) -> str:
        """Digest of the schema; messages name it."""
        return self.schema.digest

    def content(self) -> dict[str, Any]:
        """Everything that was agreed, as plain values; the signatures are not a part of it."""
        from discreet.federated.agreement.manifest_file import content_of

        return content_of(self)

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

        return load(text, "manifest", VERSION, ManifestBody).manifest(allow_small_key)
