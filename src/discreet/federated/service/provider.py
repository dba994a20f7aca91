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
from discreet.federated.counters import Coded
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.connection import Connection
from discreet.federated.service.folder import Folder
from discreet.federated.vertical.party import order_of
from discreet.schema import text_of

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Holding", "Ids", "aligned", "label", "provide"]

Charge = Callable[[Manifest], None]
BLOCK = 1 << 16
"""Rows per block."""


@dataclass(frozen=True)
class Holding:
    """Data and settings of a provider or label provider.

    Parameters
    ----------
    source : path, data frame or whatever can be counted
    id_column : str, optional
        By which the rows of a vertical round are aligned.
    known : tuple of Card
        Parties whose keys were checked out of band.
    charge : callable, optional
        Called once, before a submission is made.
    """

    source: Any
    id_column: str | None = None
    known: tuple[Card, ...] = ()
    charge: Charge | None = None

    def pay(self, agreed: Manifest) -> None:
        """Charge the ledger, where there is one."""
        if self.charge is not None:
            self.charge(agreed)


def provide(connection: Connection, holding: Holding, state: str | Path) -> None:
    """Take part in a round as a provider of rows or of columns.

    Parameters
    ----------
    connection : Connection
    holding : Holding
    state : path
        A folder for what was sent.
    """
    manifest = connection.manifest
    manifest.require_part(connection.own.card, "provider")
    act, last = _submit, "submission"
    if manifest.partition == "vertical":
        act, last = _tabulate, "tables"
    kept = Folder(state, manifest)
    _take_part(connection, kept, last, lambda: act(connection, kept, holding))


def label(
    connection: Connection, holding: Holding, state: str | Path, key: PrivateKey | None = None
) -> None:
    """Take part in a vertical round as the label provider; the key is needed with Paillier.

    Other parameters as for :func:`provide`.
    """
    manifest, card = connection.manifest, connection.own.card
    manifest.require_part(card, "label provider")
    manifest.require_key(card, key)
    kept = Folder(state, manifest)
    _take_part(connection, kept, "shares", lambda: _label(connection, kept, holding, key))


def _take_part(connection: Connection, kept: Folder, last: str, act: Callable[[], None]) -> None:
    """Send everything once, then wait for the end; a message called ``last`` is the last one."""
    own = connection.own
    with kept.held(own):
        if not kept.delivered:
            if again := kept.made(last):  # all that is missing is to know that it arrived
                connection.leave_if_alone()
            try:
                act()
            except ProtocolError as error:
                if not again or error.reason != "lonely":
                    raise
                raise ProtocolError(
                    "lonely",
                    f"{error.sentence}; the {last} of {own.name} may have arrived before it was "
                    "stopped, or not. Ask the others whether the round has ended: if it has, "
                    f"nothing is left to do, and {kept.path} can be deleted; if not, start again "
                    "once the collector is back",
                ) from None
            kept.deliver()
        connection.finish()
        kept.finish(own)


def _submit(connection: Connection, kept: Folder, holding: Holding) -> None:
    """A provider of rows."""
    with connection.busy("counting the rows of the table"):
        exact = _counted(connection.manifest, holding.source)
    kept.same(exact.tolist())
    agreed = connection.agreed(holding.known)

    def make() -> Message:
        with connection.busy("hiding the counts"):
            machine = horizontal.Provider(connection.own, agreed, holding.known)
            holding.pay(agreed)
            return machine.submit(exact)

    connection.send(kept.once("submission", make))


def _tabulate(connection: Connection, kept: Folder, holding: Holding) -> None:
    """A provider of columns."""
    manifest, own = connection.manifest, connection.own
    with connection.busy("reading the table"):
        columns, ids = aligned(holding.source, manifest.columns[own.name], holding.id_column)
        _check_rows(manifest, columns)
        kept.same(_digest(ids), *map(_digest, columns.values()))
    agreed = connection.agreed(holding.known)

    def make() -> Message:
        assert agreed.label is not None
        machine = vertical.Provider(own, agreed, holding.known)
        machine.keep, machine.way.advance = kept.spool, connection.show
        machine.receive(connection.take("labels", agreed.label.name, kept))
        machine.check(ids)
        holding.pay(agreed)
        return machine.tables(columns, ids)

    connection.send(kept.once("tables", make))


def _label(connection: Connection, kept: Folder, holding: Holding, key: PrivateKey | None) -> None:
    """A label provider."""
    with connection.busy("reading the labels"):
        codes, ids = _labels(connection.manifest, holding, kept)
    agreed = connection.agreed(holding.known)
    machine = vertical.LabelProvider(connection.own, agreed, key, holding.known)
    machine.keep, machine.way.advance = kept.spool, connection.show
    machine.hold(codes, ids)
    for card in agreed.providers:
        # a restarted label provider sends what it sent before
        connection.send(kept.once(f"labels {card.name}", partial(machine.labels_for, card)))

    def make() -> Message:
        for card in agreed.providers:
            machine.receive(connection.take("tables", card.name, kept))
        if machine.way.deals:
            machine.receive(connection.take("correction", agreed.collector.name, kept))
        holding.pay(agreed)
        return machine.shares()

    connection.send(kept.once("shares", make))


def _counted(manifest: Manifest, source: Any) -> Integers:
    """The exact numbers: of a file or a database where it lies, of a table in memory there."""
    from discreet.encoding import class_codes, columns_of
    from discreet.tables import count

    layout, schema = manifest.layout, manifest.schema
    if isinstance(source, Mapping) or hasattr(source, "columns"):
        columns = columns_of(source, [*schema.names, schema.target])
        codes = class_codes(schema, columns.pop(schema.target))
        return layout.vector(columns, codes)
    return layout.vector_of(count(source, schema, layout.contents))


def _check_rows(manifest: Manifest, columns: Mapping[str, Coded]) -> None:
    """Before anyone signs: as many rows as agreed, and values that the schema knows."""
    for name, column in columns.items():
        if len(column) != manifest.rows:
            raise SchemaError(
                f"{name}: the table has {len(column)} rows, the manifest {manifest.rows}; take "
                "the aligned table, or agree on a new manifest"
            )
    for one in manifest.layout.wanted:
        if one.feature in columns:
            manifest.layout.rows(one, columns[one.feature].values)


def _digest(column: Coded | Ids | None) -> str:
    """Of all values in their order."""
    code = hashlib.sha256()
    if isinstance(column, Coded):
        code.update("\0".join(map(str, column.values.tolist())).encode())
        code.update(np.ascontiguousarray(column.codes, dtype="<i4").tobytes())
    elif column is not None:
        code.update(column.order[0])
    return code.hexdigest()


def _labels(manifest: Manifest, holding: Holding, kept: Folder) -> tuple[Integers, Ids | None]:
    """The class of every row, checked before anyone signs."""
    from discreet.encoding import class_codes

    schema = manifest.schema
    columns, ids = aligned(holding.source, (schema.target,), holding.id_column)
    classes = columns[schema.target]
    codes = class_codes(schema, classes.values)[classes.codes]
    _check_rows(manifest, columns)
    kept.same(_digest(ids), _digest(classes))
    return codes.astype(np.int64), ids


def aligned(
    source: Any, names: tuple[str, ...], id_column: str | None
) -> tuple[dict[str, Coded], Ids | None]:
    """Columns of a table, its rows sorted by id; without ids, in the order of the file.

    Parameters
    ----------
    source : path or data frame
    names : tuple of str
    id_column : str, optional
    """
    from discreet.encoding import columns_of

    wanted = [*names, *([id_column] if id_column else [])]
    if isinstance(source, (str, Path)):
        columns = _read(str(source), wanted)
    else:
        columns = {name: np.asarray(column) for name, column in columns_of(source, wanted).items()}
    if id_column is None:
        return {name: _coded(column) for name, column in columns.items()}, None
    import pyarrow.compute

    ids = _texts(columns.pop(id_column))
    order = pyarrow.compute.sort_indices(ids)
    ids = ids.take(order)
    if len(ids) > 1 and pyarrow.compute.any(pyarrow.compute.equal(ids[1:], ids[:-1])).as_py():
        raise SchemaError(f"{id_column}: an id occurs twice; every row needs its own")
    rows = order.to_numpy()
    return {name: _coded(column)[rows] for name, column in columns.items()}, Ids(ids)


class Ids:
    """The ids of all rows in their order, kept as Arrow keeps them: a few bytes each.

    Parameters
    ----------
    texts : pyarrow.Array
    """

    def __init__(self, texts: Any) -> None:
        self.texts = texts

    @cached_property
    def order(self) -> tuple[bytes, int]:
        """What :func:`~discreet.federated.vertical.party.order_of` gives, computed once."""
        return order_of(iter(self))

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK):
            yield from self.texts[start : start + BLOCK].to_pylist()


def _read(path: str, names: list[str]) -> dict[str, Any]:
    """The columns of a file, in Arrow's own representation."""
    import pyarrow

    from discreet.tables.engines import ordered_batches

    parts = list(ordered_batches(path, names))
    if not parts:
        return {name: np.empty(0, object) for name in names}
    whole = pyarrow.Table.from_batches(parts)
    return {name: whole.column(name).combine_chunks() for name in names}


def _texts(column: Any) -> Any:
    """The spelling of ids that all parties share, as an Arrow array."""
    import pyarrow

    if isinstance(column, pyarrow.Array):
        if pyarrow.types.is_string(column.type):
            return column.fill_null("None")
        column = np.array(column.to_pylist(), dtype=object)
    return pyarrow.array([text_of(one) for one in column.tolist()], pyarrow.string())


def _coded(column: Any) -> Coded:
    """A column as its distinct values, in an order that does not depend on the rows'."""
    import pyarrow

    if isinstance(column, pyarrow.Array):
        kept = column.dictionary_encode("encode")
        found = np.array(kept.dictionary.to_pylist(), dtype=object)
        codes = kept.indices.to_numpy()
    else:
        places: dict[tuple[type, str], int] = {}
        keys = [(type(one), str(one)) for one in column.tolist()]
        codes = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int32)
        first = np.full(len(places), len(column))
        np.minimum.at(first, codes, np.arange(len(column)))
        found = column[first]
    order = sorted(range(len(found)), key=lambda i: str(found[i]))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    return Coded(found[order], place[codes])
