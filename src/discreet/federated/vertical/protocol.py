"""Protocol interface of a vertical round: products of hidden labels with hidden cells.

A protocol defines lengths and arithmetic; the classes of the roles define who sends what, and
when. Only the protocol interprets sums; they stay under the opener's pad until the end. Content
whose length grows with the rows is written and read piece by piece.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from discreet.arrays import CellCodes, Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import Column, Layout
from discreet.federated.crypto.masks import derive_pair_key
from discreet.federated.crypto.packing import check_counters
from discreet.federated.crypto.sealing import compute_sealed_length
from discreet.federated.messages import BodyLengths, ExpectedMessages
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import MAX_MODEL_BYTES

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = [
    "ORDER_TAG_BYTES",
    "ClassCodes",
    "Columns",
    "LabelHider",
    "ProgressCallback",
    "TableHider",
    "TableSummer",
    "VerticalProtocol",
    "list_routes",
    "make_protocol",
]

ORDER_TAG_BYTES = 32
"""Bytes of the proof that two parties hold the same rows, after labels and tables."""

ClassCodes: TypeAlias = CellCodes | Integers
"""The class index of each row."""
Columns = Mapping[str, Column]
"""A provider's columns by feature."""
LabelHider = Callable[[Card], Iterable[bytes]]
"""Gives the pieces of the hidden labels for a provider."""
TableHider = Callable[[Columns, Integers], Iterable[bytes]]
"""Gives the pieces of a provider's hidden tables; called with its columns and share of noise."""
TableSummer = Callable[["PrivateKey | None", bytes], bytes]
"""Gives the padded sums of one provider's tables; called with the key and the correction."""
ProgressCallback = Callable[[str, int, int], None]
"""Called with the step, how much of it is done, and the total."""


def _ignore_progress(step: str, done: int, total: int) -> None:
    """Discard progress."""


class VerticalProtocol(ABC):
    """Arithmetic of a vertical round; holds no secrets.

    Parameters
    ----------
    manifest : Manifest
        Of a vertical round.
    """

    needs_correction = False
    """Whether the collector sends the label provider a correction."""

    def __init__(self, manifest: Manifest) -> None:
        if manifest.partition != "vertical":
            raise ProtocolError("wrong-manifest", "this is a horizontal round")
        assert manifest.label is not None
        assert manifest.rows is not None
        self.manifest, self.label_provider, self.row_count = manifest, manifest.label, manifest.rows
        self.class_count = len(manifest.schema.classes)
        self.layouts = {
            card.name: manifest.layout.select_features(manifest.columns[card.name])
            for card in manifest.providers
        }
        self.report_progress: ProgressCallback = _ignore_progress

    def derive_pair_key(self, identity: Identity, peer: Card, purpose: str) -> bytes:
        """A key of two parties in this round."""
        return derive_pair_key(identity, peer, self.manifest.hash, purpose)

    def iter_row_weights(self, layout: Layout, columns: Columns) -> Iterator[Integers]:
        """Yield what each row adds to each cell: one array of shape (rows, cells) per block."""
        for request in layout.requests:
            for block, row_weights in layout.encode_rows(request, columns[request.feature]):
                check_counters([block.sensitivity * self.row_count], 4)  # leaves room for the noise
                yield row_weights

    def check_row_count(self, layout: Layout, columns: Columns) -> None:
        """Refuse columns of another length than was agreed."""
        for request in layout.requests:
            if (row_count := len(columns[request.feature])) != self.row_count:
                raise ProtocolError(
                    "wrong-rows", f"{request.feature}: {row_count} rows, {self.row_count} agreed"
                )

    @property
    def total_sums_size(self) -> int:
        """Bytes of the padded sums of all providers' tables."""
        return sum(self.compute_sums_size(name) for name in self.layouts)

    @property
    @abstractmethod
    def labels_size(self) -> int:
        """Bytes of the hidden labels."""

    @abstractmethod
    def compute_tables_size(self, provider: str) -> int:
        """Bytes of a provider's hidden tables."""

    @abstractmethod
    def compute_sums_size(self, provider: str) -> int:
        """Bytes of the padded sums of one provider's tables."""

    @abstractmethod
    def check_key(self, private_key: PrivateKey | None) -> None:
        """Refuse a label provider without the key that it needs."""

    @abstractmethod
    def make_label_hider(
        self, identity: Identity, class_codes: ClassCodes, private_key: PrivateKey | None
    ) -> LabelHider:
        """For the label provider: hide the class of each row, for every provider."""

    @abstractmethod
    def make_table_hider(self, identity: Identity, payload: Payload) -> TableHider:
        """For a provider: read, or refuse, hidden labels.

        The function that is returned gives its sums with its noise and the opener's pad.
        """

    @abstractmethod
    def make_table_summer(
        self, identity: Identity, sender: Card, payload: Payload, class_codes: ClassCodes
    ) -> TableSummer:
        """For the label provider: read, or refuse, hidden tables."""

    @abstractmethod
    def add_noise_share(self, provider: str, padded_sums: bytes, noise_share: Integers) -> bytes:
        """Add a share of noise to padded sums; refuse invalid sums."""

    @abstractmethod
    def open_sums(self, identity: Identity, provider: Card, padded_sums: bytes) -> Integers:
        """For the opener: the sums without their pad, in the order of the layout."""

    def compute_correction(self, identity: Identity) -> bytes:
        """For the collector: what the label provider adds to the sums, for each provider."""
        raise ProtocolError("wrong-kind", "this round needs no correction from the collector")


def make_protocol(manifest: Manifest) -> VerticalProtocol:
    """Make the protocol that the manifest names."""
    if manifest.aggregation == "masks":
        from discreet.federated.vertical.with_masks import VerticalMasks

        return VerticalMasks(manifest)
    from discreet.federated.vertical.with_paillier import VerticalPaillier

    return VerticalPaillier(manifest)


def list_routes(protocol: VerticalProtocol) -> dict[str, ExpectedMessages]:
    """For each recipient, what it gets of whom, and how long that is."""
    manifest = protocol.manifest
    label_name = protocol.label_provider.name
    collector_name = protocol.manifest.collector.name
    sums_length = BodyLengths.from_size(compute_sealed_length(protocol.total_sums_size))
    labels_length = BodyLengths.from_size(protocol.labels_size + ORDER_TAG_BYTES)
    expected_messages: dict[str, ExpectedMessages] = {
        name: {(label_name, "labels"): labels_length} for name in protocol.layouts
    }
    table_lengths = {
        (name, "tables"): BodyLengths.from_size(
            protocol.compute_tables_size(name) + ORDER_TAG_BYTES
        )
        for name in protocol.layouts
    }
    expected_messages[label_name] = (
        {**table_lengths, (collector_name, "correction"): sums_length}
        if protocol.needs_correction
        else table_lengths
    )
    expected_messages[collector_name] = {(label_name, "shares"): sums_length}
    result_lengths = {(collector_name, "total"): sums_length}
    if manifest.mode == "probabilities":
        result_lengths = {
            (collector_name, "model"): BodyLengths(range(1, MAX_MODEL_BYTES), is_sealed=True)
        }
    return {**expected_messages, manifest.receiver.name: result_lengths}
