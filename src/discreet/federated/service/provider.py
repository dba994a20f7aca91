"""A provider and a label provider as programs: count, sign, send once, wait for the end.

What is sent is kept in a folder before it is sent, and sent again as it is after a restart: new
noise under old pads would give a part of it away. The ledger is charged when a submission is
made, not when a round succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

__all__ = ["aligned", "label", "provide"]

Charge = Callable[[Manifest], None]


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
            kept.same(ids, *(column.tolist() for column in columns.values()))
            agreed = connection.agreed(known)
            assert agreed.label is not None
            labels = connection.take("labels", agreed.label.name)

            def make_tables() -> Message:
                machine = vertical.Provider(own, agreed, known)
                machine.receive(labels)
                machine.check(columns, ids)
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
            for _ in manifest.layout.rows(one, columns[one.feature]):
                pass


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
        kept.same(ids, codes.tolist())
        agreed = connection.agreed(known)
        machine = vertical.LabelProvider(own, agreed, key, known)
        messages = machine.labels(codes, ids)
        for card, message in zip(agreed.providers, messages, strict=True):
            # a restarted label provider sends what it sent before
            connection.send(kept.once(f"labels {card.name}", lambda own=message: own))  # type: ignore[misc]
        for card in agreed.providers:
            machine.receive(connection.take("tables", card.name))
        if machine.way.deals:
            machine.receive(connection.take("correction", agreed.collector.name))

        def make_shares() -> Message:
            if charge is not None:
                charge(agreed)
            return machine.shares()

        connection.send(kept.once("shares", make_shares))
        connection.finish()
        kept.finish(own)


def aligned(
    source: Any, names: tuple[str, ...], id_column: str | None
) -> tuple[dict[str, Any], list[str] | None]:
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
        source = _read(str(source), wanted)
    columns = {name: np.asarray(column) for name, column in columns_of(source, wanted).items()}
    if id_column is None:
        return columns, None
    ids = np.array([text_of(one) for one in columns.pop(id_column).tolist()], dtype=object)
    if len(set(ids.tolist())) < len(ids):
        raise SchemaError(f"{id_column}: an id occurs twice; every row needs its own")
    order = np.argsort(ids, kind="stable")
    return {name: column[order] for name, column in columns.items()}, ids[order].tolist()


def _read(path: str, names: list[str]) -> dict[str, Any]:
    from discreet.tables.engines import ordered_batches

    parts = list(ordered_batches(path, names))
    return {
        name: np.concatenate([_array(part.column(name)) for part in parts])
        if parts
        else np.empty(0, object)
        for name in names
    }


def _array(column: Any) -> Any:
    return np.array(column.to_pylist(), dtype=object)
