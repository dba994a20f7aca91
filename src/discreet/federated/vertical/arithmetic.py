"""How a vertical round multiplies hidden labels with hidden cells: with Paillier, or with masks.

A way knows lengths and arithmetic; who says what, and when, is in ``vertical``. Sums are bytes to
everyone but the way, one piece a provider, and stay under the opener's pad until the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import Layout
from discreet.federated.crypto.masks import pair_key
from discreet.federated.crypto.packing import checked
from discreet.federated.refusals import ProtocolError

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Way", "way_of"]


class Way(ABC):
    """The arithmetic of a vertical round; it holds nothing secret.

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

    def pair(self, own: Identity, other: Card, purpose: str) -> bytes:
        """A key of two parties in this round."""
        return pair_key(own, other, self.manifest.hash, purpose)

    def weights(self, layout: Layout, columns: Mapping[str, Any]) -> Iterator[Integers]:
        """What each row adds to each cell, one array of shape (rows, cells) a block."""
        for one in layout.wanted:
            for block, weights in layout.rows(one, columns[one.feature]):
                if len(weights) != self.rows:
                    raise ProtocolError(
                        "wrong-rows", f"{one.feature}: {len(weights)} rows, {self.rows} agreed"
                    )
                checked([block.sensitivity * self.rows], 4)  # leaves room for the noise
                yield weights

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
    def hide(self, own: Identity, codes: NDArray[Any], key: PrivateKey | None) -> Iterable[bytes]:
        """The label provider's classes, for each provider in turn."""

    @abstractmethod
    def read_labels(self, own: Identity, payload: bytes) -> Any:
        """A provider reads, or refuses, hidden labels."""

    @abstractmethod
    def tables(
        self, own: Identity, labels: Any, columns: Mapping[str, Any], noise: Integers
    ) -> bytes:
        """A provider's sums with its noise and the opener's pad, for the label provider."""

    @abstractmethod
    def read_tables(self, own: Identity, sender: Card, payload: bytes) -> Any:
        """The label provider reads, or refuses, hidden tables."""

    @abstractmethod
    def sums(
        self, tables: Any, codes: NDArray[Any], key: PrivateKey | None, correction: bytes
    ) -> bytes:
        """The label provider's padded sums of one provider's tables."""

    @abstractmethod
    def plus(self, provider: str, sums: bytes, noise: Integers) -> bytes:
        """Sums with one more share of noise; those that are none are refused."""

    @abstractmethod
    def opened(self, own: Identity, provider: Card, sums: bytes) -> Integers:
        """For the opener: the sums without their pad, in the order of the layout."""

    def correction(self, own: Identity) -> bytes:
        """For the collector: what the label provider adds to the sums, for each provider."""
        raise ProtocolError("wrong-kind", "in this round the collector deals nothing")


def way_of(manifest: Manifest) -> Way:
    """The arithmetic that the manifest names."""
    if manifest.aggregation == "masks":
        from discreet.federated.vertical.with_masks import VerticalMasks

        return VerticalMasks(manifest)
    from discreet.federated.vertical.with_paillier import VerticalPaillier

    return VerticalPaillier(manifest)
