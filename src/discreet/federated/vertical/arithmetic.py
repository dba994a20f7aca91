"""Protocol interface of a vertical round: products of hidden labels with hidden cells.

A protocol defines lengths and arithmetic; the classes of the roles define who sends what, and
when. Only the protocol interprets sums; they stay under the opener's pad until the end. Content
whose length grows with the rows is written and read piece by piece.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import Layout
from discreet.federated.crypto.masks import pair_key
from discreet.federated.crypto.packing import checked
from discreet.federated.crypto.sealing import sealed_length
from discreet.federated.messages import Expected, Lengths
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import LARGEST_MODEL

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["TAG", "Advance", "Way", "routes", "way_of"]

TAG = 32
"""Bytes of the proof that two parties hold the same rows, after labels and tables."""

Advance = Callable[[str, int, int], None]
"""Called with the step, how much of it is done, and the total."""


def _quietly(what: str, done: int, whole: int) -> None:
    """Discard progress."""


class Way(ABC):
    """Arithmetic of a vertical round; holds no secrets.

    Parameters
    ----------
    manifest : Manifest
        Of a vertical round.
    """

    deals = False
    """Whether the collector sends the label provider a correction."""

    def __init__(self, manifest: Manifest) -> None:
        if manifest.partition != "vertical":
            raise ProtocolError("wrong-manifest", "this is a horizontal round")
        assert manifest.label is not None
        assert manifest.rows is not None
        self.manifest, self.label, self.rows = manifest, manifest.label, manifest.rows
        self.layouts = {
            card.name: manifest.layout.only(manifest.columns[card.name])
            for card in manifest.providers
        }
        self.advance: Advance = _quietly

    def pair(self, own: Identity, other: Card, purpose: str) -> bytes:
        """A key of two parties in this round."""
        return pair_key(own, other, self.manifest.hash, purpose)

    def weights(self, layout: Layout, columns: Mapping[str, Any]) -> Iterator[Integers]:
        """Yield what each row adds to each cell: one array of shape (rows, cells) per block."""
        for one in layout.wanted:
            for block, weights in layout.rows(one, columns[one.feature]):
                checked([block.sensitivity * self.rows], 4)  # leaves room for the noise
                yield weights

    def check_rows(self, layout: Layout, columns: Mapping[str, Any]) -> None:
        """Refuse columns of another length than was agreed."""
        for one in layout.wanted:
            if (found := len(columns[one.feature])) != self.rows:
                raise ProtocolError(
                    "wrong-rows", f"{one.feature}: {found} rows, {self.rows} agreed"
                )

    @property
    def all_sums(self) -> int:
        """Bytes of the padded sums of all providers' tables."""
        return sum(self.sums_size(name) for name in self.layouts)

    @property
    @abstractmethod
    def labels_size(self) -> int:
        """Bytes of the hidden labels."""

    @abstractmethod
    def tables_size(self, provider: str) -> int:
        """Bytes of a provider's hidden tables."""

    @abstractmethod
    def sums_size(self, provider: str) -> int:
        """Bytes of the padded sums of one provider's tables."""

    @abstractmethod
    def check_key(self, key: PrivateKey | None) -> None:
        """Refuse a label provider without the key that it needs."""

    @abstractmethod
    def hide(
        self, own: Identity, codes: NDArray[Any], key: PrivateKey | None
    ) -> Callable[[Card], Iterable[bytes]]:
        """Hide the class of each row; returns a function that yields the pieces for a provider."""

    @abstractmethod
    def read_labels(self, own: Identity, payload: Payload) -> Any:
        """A provider reads, or refuses, hidden labels."""

    @abstractmethod
    def tables(
        self, own: Identity, labels: Any, columns: Mapping[str, Any], noise: Integers
    ) -> Iterable[bytes]:
        """A provider's sums with its noise and the opener's pad, in pieces."""

    @abstractmethod
    def read_tables(
        self, own: Identity, sender: Card, payload: Payload, codes: NDArray[Any]
    ) -> Any:
        """The label provider reads, or refuses, hidden tables."""

    @abstractmethod
    def sums(self, tables: Any, key: PrivateKey | None, correction: bytes) -> bytes:
        """The label provider's padded sums of one provider's tables."""

    @abstractmethod
    def plus(self, provider: str, sums: bytes, noise: Integers) -> bytes:
        """Add a share of noise to padded sums; refuse invalid sums."""

    @abstractmethod
    def opened(self, own: Identity, provider: Card, sums: bytes) -> Integers:
        """For the opener: the sums without their pad, in the order of the layout."""

    def correction(self, own: Identity) -> bytes:
        """For the collector: what the label provider adds to the sums, for each provider."""
        raise ProtocolError("wrong-kind", "this round needs no correction from the collector")


def way_of(manifest: Manifest) -> Way:
    """Make the protocol that the manifest names."""
    if manifest.aggregation == "masks":
        from discreet.federated.vertical.with_masks import VerticalMasks

        return VerticalMasks(manifest)
    from discreet.federated.vertical.with_paillier import VerticalPaillier

    return VerticalPaillier(manifest)


def routes(way: Way) -> dict[str, Expected]:
    """For each recipient, what it gets of whom, and how long that is."""
    manifest, label, collector = way.manifest, way.label.name, way.manifest.collector.name
    sums = Lengths.exactly(sealed_length(way.all_sums))
    labels = Lengths.exactly(way.labels_size + TAG)
    found: dict[str, Expected] = {name: {(label, "labels"): labels} for name in way.layouts}
    tables = {(n, "tables"): Lengths.exactly(way.tables_size(n) + TAG) for n in way.layouts}
    found[label] = {**tables, (collector, "correction"): sums} if way.deals else tables
    found[collector] = {(label, "shares"): sums}
    result = {(collector, "total"): sums}
    if manifest.mode == "probabilities":
        result = {(collector, "model"): Lengths(range(1, LARGEST_MODEL), sealed=True)}
    return {**found, manifest.receiver.name: result}
