"""A provider and a label provider as programs: count, sign, send once, wait for the end.

What is sent is kept in a folder before it is sent, and sent again as it is after a restart: new
noise under old pads would give a part of it away. The ledger is charged when a submission is
made, not when a round succeeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers
from discreet.errors import SchemaError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Card
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.messages import Message
from discreet.federated.service.connection import Connection
from discreet.federated.service.folder import Folder
from discreet.schema import text_of

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Ids", "aligned", "label", "provide"]

Charge = Callable[[Manifest], None]
BLOCK = 1 << 16
"""Rows that are looked at together."""


def provide(
    connection: Connection,
    source: Any,
    state: str | Path,
    *,
    id_column: str | None = None,
    known: tuple[Card, ...] = (),
    charge: Charge | None = None,
) -> None:
    """Take part in a round as a provider of rows or of columns.

    Parameters
    ----------
    connection : Connection
    source : path, data frame or whatever can be counted
    state : path
        A folder for what was sent.
    id_column : str, optional
        By which the rows of a vertical round are aligned.
    known : tuple of Card
        Parties whose keys were checked out of band.
    charge : callable, optional
        Called once, before a submission is made.
    """
    manifest, own = connection.manifest, connection.own
    manifest.require_part(own.card, "provider")
    kept = Folder(state, manifest)
    with kept.locked():
        kept.join(own)
        if manifest.partition == "horizontal":
            exact = _counted(manifest, source)
            kept.same(exact.tolist())
            agreed = connection.agreed(known)

            def make_submission() -> Message:
                machine = horizontal.Provider(own, agreed, known)
                if charge is not None:
                    charge(agreed)
                return machine.submit(exact)

            connection.send(kept.once("submission", make_submission))
        else:
            columns, ids = aligned(source, manifest.columns[own.name], id_column)
            _check_rows(manifest, columns)
            kept.same(_digest(ids), *map(_digest, columns.values()))
            agreed = connection.agreed(known)

            def make_tables() -> Message:
                assert agreed.label is not None
                machine = vertical.Provider(own, agreed, known)
                machine.keep, machine.way.advance = kept.spool, connection.show
                machine.receive(connection.take("labels", agreed.label.name, kept))
                machine.check(ids)
                if charge is not None:
                    charge(agreed)
                return machine.tables(columns, ids)

            connection.send(kept.once("tables", make_tables))
        connection.finish()
        kept.finish(own)


def _counted(manifest: Manifest, source: Any) -> Integers:
    from discreet.tables import count

    layout = manifest.layout
    sums = any(one.kind == "moments" for one in layout.wanted)
    return layout.vector_of(
        count(source, manifest.schema, bins=layout.bins, moments="grid" if sums else None)
    )


def _check_rows(manifest: Manifest, columns: Mapping[str, Any]) -> None:
    """Before anyone signs: as many rows as agreed, and values that the schema knows."""
    for name, column in columns.items():
        if len(column) != manifest.rows:
            raise SchemaError(
                f"{name}: the table has {len(column)} rows, the manifest {manifest.rows}; take "
                "the aligned table, or agree on a new manifest"
            )
    for one in manifest.layout.wanted:
        if one.feature in columns:
            for rows in _blocks(manifest.rows or 0):
                manifest.layout.rows(one, columns[one.feature][rows])


def _blocks(count: int) -> Iterator[slice]:
    """Slices of some rows each."""
    for start in range(0, count, BLOCK):
        yield slice(start, start + BLOCK)


def _digest(column: Any) -> str:
    """Of all values in their order."""
    code = hashlib.sha256()
    for rows in _blocks(0 if column is None else len(column)):
        code.update("\0".join(map(str, column[rows].tolist())).encode() + b"\0")
    return code.hexdigest()


def label(
    connection: Connection,
    source: Any,
    state: str | Path,
    key: PrivateKey | None = None,
    *,
    id_column: str | None = None,
    known: tuple[Card, ...] = (),
    charge: Charge | None = None,
) -> None:
    """Take part in a vertical round as the label provider; the key is needed with Paillier.

    Other parameters as for :func:`provide`.
    """
    from discreet.encoding import class_codes

    manifest, own = connection.manifest, connection.own
    manifest.require_part(own.card, "label provider")
    manifest.require_key(own.card, key)
    schema, kept = manifest.schema, Folder(state, manifest)
    with kept.locked():
        kept.join(own)
        columns, ids = aligned(source, (schema.target,), id_column)
        codes = class_codes(schema, columns[schema.target])
        _check_rows(manifest, columns)
        kept.same(_digest(ids), _digest(codes))
        agreed = connection.agreed(known)
        machine = vertical.LabelProvider(own, agreed, key, known)
        machine.keep, machine.way.advance = kept.spool, connection.show
        machine.hold(codes, ids)
        for card in agreed.providers:
            # a restarted label provider sends what it sent before
            connection.send(kept.once(f"labels {card.name}", partial(machine.labels_for, card)))
        for card in agreed.providers:
            machine.receive(connection.take("tables", card.name, kept))
        if machine.way.deals:
            machine.receive(connection.take("correction", agreed.collector.name, kept))

        def make_shares() -> Message:
            if charge is not None:
                charge(agreed)
            return machine.shares()

        connection.send(kept.once("shares", make_shares))
        connection.finish()
        kept.finish(own)


def aligned(
    source: Any, names: tuple[str, ...], id_column: str | None
) -> tuple[dict[str, Any], Ids | None]:
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
        return {name: _array(column) for name, column in columns.items()}, None
    import pyarrow.compute

    ids = _texts(columns.pop(id_column))
    order = pyarrow.compute.sort_indices(ids)
    ids = ids.take(order)
    if len(ids) > 1 and pyarrow.compute.any(pyarrow.compute.equal(ids[1:], ids[:-1])).as_py():
        raise SchemaError(f"{id_column}: an id occurs twice; every row needs its own")
    rows = order.to_numpy()
    return {name: _array(column)[rows] for name, column in columns.items()}, Ids(ids)


class Ids:
    """The ids of all rows in their order, kept as Arrow keeps them: a few bytes each.

    Parameters
    ----------
    texts : pyarrow.Array
    """

    def __init__(self, texts: Any) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: slice) -> Any:
        return self.texts[rows]

    def __iter__(self) -> Iterator[str]:
        for rows in _blocks(len(self)):
            yield from self.texts[rows].to_pylist()


def _read(path: str, names: list[str]) -> dict[str, Any]:
    """The columns of a file, in Arrow's own representation."""
    import pyarrow

    from discreet.tables.engines import ordered_batches

    parts = list(ordered_batches(path, names))
    whole = pyarrow.Table.from_batches(parts) if parts else pyarrow.table(dict.fromkeys(names, []))
    return {name: whole.column(name).combine_chunks() for name in names}


def _texts(column: Any) -> Any:
    """The spelling of ids that all parties share, as an Arrow array."""
    import pyarrow

    if isinstance(column, pyarrow.Array) and pyarrow.types.is_string(column.type):
        return column.fill_null("None")
    return pyarrow.array([text_of(one) for one in _array(column).tolist()], pyarrow.string())


def _array(column: Any) -> Any:
    """A column as NumPy has it; equal texts are one object."""
    import pyarrow

    if not isinstance(column, pyarrow.Array):
        return column
    if pyarrow.types.is_string(column.type):
        coded = column.dictionary_encode()
        values = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        return values[coded.indices.fill_null(len(values) - 1).to_numpy()]
    return np.array(column.to_pylist(), dtype=object)
