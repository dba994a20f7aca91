"""A provider and a label provider as programs: count, sign, send once, wait for the end.

What is sent is kept in a folder before it is sent, and sent again as it is after a restart: new
noise under old pads would give a part of it away. The ledger is charged when a submission is
made, not when a round succeeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers
from discreet.errors import SchemaError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Card
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import DictionaryColumn
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.collector_client import RoundClient
from discreet.federated.service.state_folder import StateFolder
from discreet.federated.vertical.party import digest_ids
from discreet.schema.schema import format_value

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey
    from discreet.tables.contributions import ContributionBound, MissingPerson

__all__ = [
    "AlignedIds",
    "ProviderInput",
    "load_aligned_columns",
    "run_label_provider",
    "run_provider",
]

ChargeCallback = Callable[[Manifest], None]
ROWS_PER_BLOCK = 1 << 16
"""Rows per block."""


@dataclass(frozen=True)
class ProviderInput:
    """Data and settings of a provider or label provider.

    Parameters
    ----------
    source : path, data frame or whatever can be counted
    id_column : str, optional
        By which the rows of a vertical round are aligned.
    known_cards : tuple of Card
        Parties whose keys were checked out of band.
    charge : callable, optional
        Called once, before a submission is made.
    person : str, optional
        The column that says whose a row is, in a horizontal round.
    missing_person : {"error", "own"}
        Whether a row without an id is refused, or is a person of its own.
    """

    source: Any
    id_column: str | None = None
    known_cards: tuple[Card, ...] = ()
    charge: ChargeCallback | None = None
    person: str | None = None
    missing_person: MissingPerson = "error"

    def make_bound(self, manifest: Manifest) -> ContributionBound | None:
        """How many rows of each person are counted; None where each row is a person."""
        from discreet.tables.contributions import ContributionBound

        if self.person is not None:
            return ContributionBound(self.person, manifest.rows_per_person, self.missing_person)
        if manifest.rows_per_person > 1:
            raise SchemaError(
                f"the manifest counts at most {manifest.rows_per_person} rows of a person, so the "
                "provider has to know whose each row is; name the column with --person"
            )
        return None

    def charge_ledger(self, signed_manifest: Manifest) -> None:
        """Charge the ledger, where there is one."""
        if self.charge is not None:
            self.charge(signed_manifest)


def run_provider(client: RoundClient, provider_input: ProviderInput, state: str | Path) -> None:
    """Take part in a round as a provider of rows or of columns.

    Parameters
    ----------
    client : RoundClient
    provider_input : ProviderInput
    state : path
        A folder for what was sent.
    """
    manifest = client.agreement
    manifest.require_role(client.identity.card, "provider")
    send_messages, last_message = _send_counts, "submission"
    if manifest.partition == "vertical":
        send_messages, last_message = _send_tables, "tables"
    state_folder = StateFolder(state, manifest)
    _run_session(
        client,
        state_folder,
        last_message,
        lambda: send_messages(client, state_folder, provider_input),
    )


def run_label_provider(
    client: RoundClient,
    provider_input: ProviderInput,
    state: str | Path,
    private_key: PrivateKey | None = None,
) -> None:
    """Take part in a vertical round as the label provider; the key is needed with Paillier.

    Other parameters as for :func:`run_provider`.
    """
    manifest, own_card = client.agreement, client.identity.card
    manifest.require_role(own_card, "label provider")
    manifest.require_key(own_card, private_key)
    state_folder = StateFolder(state, manifest)
    _run_session(
        client,
        state_folder,
        "shares",
        lambda: _send_labels_and_shares(client, state_folder, provider_input, private_key),
    )


def _run_session(
    client: RoundClient,
    state_folder: StateFolder,
    last_message: str,
    send_messages: Callable[[], None],
) -> None:
    """Send everything once, ``last_message`` as the last one, then wait for the end."""
    identity = client.identity
    with state_folder.hold_session(identity):
        if not state_folder.is_delivered:
            if was_sent_before := state_folder.has_sent_message(
                last_message
            ):  # all that is missing is to know that it arrived
                client.allow_leaving()
            try:
                send_messages()
            except ProtocolError as error:
                if not was_sent_before or error.reason != "lonely":
                    raise
                raise ProtocolError(
                    "lonely",
                    f"{error.sentence}; the {last_message} of {identity.name} may have arrived "
                    "before it was stopped, or not. Ask the others whether the round has ended: if "
                    f"it has, nothing is left to do, and {state_folder.path} can be deleted; if "
                    "not, start again once the collector is back",
                ) from None
            state_folder.mark_delivered()
        client.wait_for_end()
        state_folder.finish_round(identity)


def _send_counts(
    client: RoundClient, state_folder: StateFolder, provider_input: ProviderInput
) -> None:
    """A provider of rows."""
    with client.show_busy("counting the rows of the table"):
        exact_counts = _count_source(
            client.agreement, provider_input.source, provider_input.make_bound(client.agreement)
        )
    state_folder.require_same_data(exact_counts.tolist())
    signed_manifest = client.sign_agreement(provider_input.known_cards)

    def make_message() -> Message:
        with client.show_busy("hiding the counts"):
            machine = horizontal.HorizontalProvider(
                client.identity, signed_manifest, provider_input.known_cards
            )
            provider_input.charge_ledger(signed_manifest)
            return machine.make_submission(exact_counts)

    client.send_message(state_folder.load_or_create("submission", make_message))


def _send_tables(
    client: RoundClient, state_folder: StateFolder, provider_input: ProviderInput
) -> None:
    """A provider of columns."""
    manifest, identity = client.agreement, client.identity
    with client.show_busy("reading the table"):
        columns, ids = load_aligned_columns(
            provider_input.source, manifest.columns[identity.name], provider_input.id_column
        )
        _check_rows(manifest, columns)
        state_folder.require_same_data(
            _compute_column_digest(ids), *map(_compute_column_digest, columns.values())
        )
    signed_manifest = client.sign_agreement(provider_input.known_cards)

    def make_message() -> Message:
        assert signed_manifest.label is not None
        machine = vertical.VerticalProvider(identity, signed_manifest, provider_input.known_cards)
        machine.store_body, machine.protocol.report_progress = state_folder.spool_body, client.show
        machine.receive(client.fetch_message("labels", signed_manifest.label.name, state_folder))
        machine.check_row_order(ids)
        provider_input.charge_ledger(signed_manifest)
        return machine.make_tables(columns, ids)

    client.send_message(state_folder.load_or_create("tables", make_message))


def _send_labels_and_shares(
    client: RoundClient,
    state_folder: StateFolder,
    provider_input: ProviderInput,
    private_key: PrivateKey | None,
) -> None:
    """A label provider."""
    with client.show_busy("reading the labels"):
        class_codes, ids = _load_labels(client.agreement, provider_input, state_folder)
    signed_manifest = client.sign_agreement(provider_input.known_cards)
    machine = vertical.LabelProvider(
        client.identity, signed_manifest, private_key, provider_input.known_cards
    )
    machine.store_body, machine.protocol.report_progress = state_folder.spool_body, client.show
    machine.set_rows(class_codes, ids)
    for card in signed_manifest.providers:
        # a restarted label provider sends what it sent before
        client.send_message(
            state_folder.load_or_create(f"labels {card.name}", partial(machine.make_labels, card))
        )

    def make_message() -> Message:
        for card in signed_manifest.providers:
            machine.receive(client.fetch_message("tables", card.name, state_folder))
        if machine.protocol.needs_correction:
            machine.receive(
                client.fetch_message("correction", signed_manifest.collector.name, state_folder)
            )
        provider_input.charge_ledger(signed_manifest)
        return machine.make_shares()

    client.send_message(state_folder.load_or_create("shares", make_message))


def _count_source(
    manifest: Manifest, source: Any, bound: ContributionBound | None = None
) -> Integers:
    """The exact numbers: of a file or a database where it lies, of a table in memory there."""
    from discreet.schema.cells import encode_classes, get_columns
    from discreet.tables import count

    layout, schema = manifest.layout, manifest.schema
    wanted_columns = [*schema.names, schema.target]
    if isinstance(source, Mapping) or hasattr(source, "columns"):
        columns = get_columns(source, wanted_columns)
        class_indices = encode_classes(schema, columns.pop(schema.target))
        if bound is not None:
            from discreet.tables.contributions import select_person_rows, take_rows

            bound.check_schema(schema)
            persons = get_columns(source, [bound.person])[bound.person]
            rows, _ = select_person_rows(persons, columns, class_indices, schema, bound)
            columns = {name: take_rows(column, rows) for name, column in columns.items()}
            class_indices = class_indices[rows]
        return layout.count_rows(columns, class_indices)
    if bound is not None:
        from discreet.tables.person_queries import open_person_rows

        source = open_person_rows(source, bound, schema)
    if layout.judging is not None:
        return _judge_rows(manifest, source)
    return layout.encode_statistics(count(source, schema, layout.count_request))


def _judge_rows(manifest: Manifest, source: Any) -> Integers:
    """Count which rows of a file or a database candidate models get right, some rows at a time."""
    from discreet.schema.cells import encode_classes
    from discreet.schema.dates import Date, DatePart
    from discreet.tables.date_expressions import select_dates
    from discreet.tables.engines import MAX_HELD_ROWS, iter_arrow_batches, open_rows

    layout, target = manifest.layout, manifest.schema.target
    column_names = [*(request.feature for request in layout.requests), target]
    counters = np.zeros(layout.size, dtype=np.int64)
    rows = open_rows(source, column_names)
    rows = rows.select(
        **{
            name: select_dates(rows, name)
            if name != target and isinstance(manifest.schema[name], (Date, DatePart))
            else rows[name]
            for name in column_names
        }
    )
    for batch in iter_arrow_batches(rows, MAX_HELD_ROWS, source):
        columns = {name: batch.column(name) for name in column_names}
        class_indices = encode_classes(manifest.schema, columns.pop(target))
        counters += layout.count_rows(columns, class_indices)
    return counters


def _check_rows(manifest: Manifest, columns: Mapping[str, DictionaryColumn]) -> None:
    """Before anyone signs: as many rows as agreed, and values that the schema knows."""
    for name, column in columns.items():
        if len(column) != manifest.rows:
            raise SchemaError(
                f"{name}: the table has {len(column)} rows, the manifest {manifest.rows}; take "
                "the aligned table, or agree on a new manifest"
            )
    for request in manifest.layout.requests:
        if request.feature in columns:
            manifest.layout.encode_rows(request, columns[request.feature].values)


def _compute_column_digest(column: DictionaryColumn | AlignedIds | None) -> str:
    """Of all values in their order."""
    digest_state = hashlib.sha256()
    if isinstance(column, DictionaryColumn):
        digest_state.update("\0".join(map(str, column.values.tolist())).encode())
        digest_state.update(np.ascontiguousarray(column.codes, dtype="<i4").tobytes())
    elif column is not None:
        digest_state.update(column.order[0])
    return digest_state.hexdigest()


def _load_labels(
    manifest: Manifest, provider_input: ProviderInput, state_folder: StateFolder
) -> tuple[Integers, AlignedIds | None]:
    """The class of every row, checked before anyone signs."""
    from discreet.schema.cells import encode_classes

    schema = manifest.schema
    columns, ids = load_aligned_columns(
        provider_input.source, (schema.target,), provider_input.id_column
    )
    class_column = columns[schema.target]
    class_indices = encode_classes(schema, class_column.values)[class_column.codes]
    _check_rows(manifest, columns)
    state_folder.require_same_data(
        _compute_column_digest(ids), _compute_column_digest(class_column)
    )
    return class_indices.astype(np.int64), ids


def load_aligned_columns(
    source: Any, column_names: tuple[str, ...], id_column: str | None
) -> tuple[dict[str, DictionaryColumn], AlignedIds | None]:
    """Columns of a table, its rows sorted by id; without ids, in the order of the file.

    Parameters
    ----------
    source : path or data frame
    column_names : tuple of str
    id_column : str, optional
    """
    from discreet.schema.cells import get_columns

    wanted_columns = [*column_names, *([id_column] if id_column else [])]
    if isinstance(source, (str, Path)):
        columns = _read_columns(str(source), wanted_columns)
    else:
        columns = {
            name: np.asarray(column) for name, column in get_columns(source, wanted_columns).items()
        }
    if id_column is None:
        return {name: _encode_column(column) for name, column in columns.items()}, None
    import pyarrow.compute

    id_texts = _format_ids(columns.pop(id_column))
    sorted_rows = pyarrow.compute.sort_indices(id_texts)
    id_texts = id_texts.take(sorted_rows)
    if (
        len(id_texts) > 1
        and pyarrow.compute.any(pyarrow.compute.equal(id_texts[1:], id_texts[:-1])).as_py()
    ):
        raise SchemaError(f"{id_column}: an id occurs twice; every row needs its own")
    row_order = sorted_rows.to_numpy()
    return {
        name: _encode_column(column)[row_order] for name, column in columns.items()
    }, AlignedIds(id_texts)


class AlignedIds:
    """The ids of all rows in their order, kept as Arrow keeps them: a few bytes each.

    Parameters
    ----------
    texts : pyarrow.Array
    """

    def __init__(self, texts: Any) -> None:
        self.texts = texts

    @cached_property
    def order(self) -> tuple[bytes, int]:
        """What :func:`~discreet.federated.vertical.party.digest_ids` gives, computed once."""
        return digest_ids(iter(self))

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), ROWS_PER_BLOCK):
            yield from self.texts[start : start + ROWS_PER_BLOCK].to_pylist()


def _read_columns(path: str, column_names: list[str]) -> dict[str, Any]:
    """The columns of a file, in Arrow's own representation."""
    import pyarrow

    from discreet.tables.engines import iter_ordered_batches

    record_batches = list(iter_ordered_batches(path, column_names))
    if not record_batches:
        return {name: np.empty(0, object) for name in column_names}
    table = pyarrow.Table.from_batches(record_batches)
    return {name: table.column(name).combine_chunks() for name in column_names}


def _format_ids(column: Any) -> Any:
    """The spelling of ids that all parties share, as an Arrow array."""
    import pyarrow

    if isinstance(column, pyarrow.Array):
        if pyarrow.types.is_string(column.type):
            return column.fill_null("None")
        column = np.array(column.to_pylist(), dtype=object)
    return pyarrow.array([format_value(id_value) for id_value in column.tolist()], pyarrow.string())


def _encode_column(column: Any) -> DictionaryColumn:
    """A column as its distinct values, in an order that does not depend on the rows'."""
    import pyarrow

    if isinstance(column, pyarrow.Array):
        encoded = column.dictionary_encode("encode")
        distinct_values = np.array(encoded.dictionary.to_pylist(), dtype=object)
        codes = encoded.indices.to_numpy()
    else:
        first_codes: dict[tuple[type, str], int] = {}
        value_keys = [(type(value), str(value)) for value in column.tolist()]
        codes = np.array(
            [first_codes.setdefault(value_key, len(first_codes)) for value_key in value_keys],
            dtype=np.int32,
        )
        first_rows = np.full(len(first_codes), len(column))
        np.minimum.at(first_rows, codes, np.arange(len(column)))
        distinct_values = column[first_rows]
    value_order = sorted(range(len(distinct_values)), key=lambda index: str(distinct_values[index]))
    new_codes = np.empty(len(value_order), dtype=np.int32)
    new_codes[value_order] = np.arange(len(value_order))
    return DictionaryColumn(distinct_values[value_order], new_codes[codes])
