"""Write predictions to CSV, Parquet or JSON, batch by batch."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from discreet.arrays import Array, Floats
from discreet.cli.files import replacing
from discreet.cli.output import note, print_json
from discreet.errors import FormatError
from discreet.model import normalised
from discreet.schema import Value, text_of

__all__ = ["Scored", "write_predictions"]

Scored = Iterable[tuple[Floats, Floats | None]]
"""Joint log-probabilities of some rows, (rows, classes), and how steady each decision is."""


def write_predictions(
    scored: Scored,
    classes: Sequence[Value],
    path: str | None,
    *,
    proba: bool,
    as_json: bool,
    steady: bool,
) -> None:
    """Write predictions batch by batch.

    Parameters
    ----------
    scored : iterable of (scores, steadiness)
    classes : sequence
    path : str or None
        Where to; standard output if None.
    proba : bool
        Whether to write the probability of every class, too.
    as_json : bool
        Print one JSON object: the predictions, or a summary where they go to a file.
    steady : bool
        Whether each prediction comes with how steady it is.
    """
    names = [text_of(value) for value in classes]
    if path is None:
        if as_json:
            _json(scored, names, proba, steady)
        else:
            _csv(sys.stdout, scored, names, proba, steady)
        return
    parquet = path.lower().endswith(".parquet")
    if not parquet and not path.lower().endswith(".csv"):
        raise FormatError(f"{path}: predictions go to a file that ends in .csv or .parquet")
    totals = np.zeros(len(names), dtype=np.int64)
    with replacing(path) as beside:
        if parquet:
            _parquet(beside, _counted(scored, totals), classes, proba, steady)
        else:
            with beside.open("w", encoding="utf-8", newline="") as stream:
                _csv(stream, _counted(scored, totals), names, proba, steady)
    summary = dict(zip(names, totals.tolist(), strict=True))
    if as_json:
        print_json({"output": path, "rows": int(totals.sum()), "predicted": summary})
    else:
        some = ", ".join(f"{name} {number:,}" for name, number in summary.items())
        note(f"{path}: {totals.sum():,} rows ({some})")


def _counted(scored: Scored, totals: Array) -> Iterator[tuple[Floats, Floats | None]]:
    """Yield the batches unchanged, and count how often each class is predicted."""
    for scores, sure in scored:
        totals += np.bincount(np.argmax(scores, axis=1), minlength=len(totals))
        yield scores, sure


def _csv(stream: IO[str], scored: Scored, names: list[str], proba: bool, steady: bool) -> None:
    words = np.array(names, dtype=object)
    writer = csv.writer(stream, lineterminator="\n")
    extra = ["steady"] if steady else []
    writer.writerow(["prediction", *(f"P({name})" for name in names if proba), *extra])
    for scores, sure in scored:
        labels = words[np.argmax(scores, axis=1)].tolist()
        columns = np.exp(normalised(scores)).T.tolist() if proba else []
        columns += [] if sure is None else [np.round(sure, 3).tolist()]
        writer.writerows(zip(labels, *columns, strict=True))
    stream.flush()


def _parquet(
    path: Path, scored: Scored, classes: Sequence[Value], proba: bool, steady: bool
) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    labels = _column(classes)
    fields = [("prediction", labels.type)]
    fields += [(f"P({text_of(value)})", pa.float64()) for value in classes if proba]
    fields += [("steady", pa.float64())] if steady else []
    shape = pa.schema(fields)
    with path.open("wb") as file, pa.parquet.ParquetWriter(file, shape) as writer:
        for scores, sure in scored:
            columns = [labels.take(pa.array(np.argmax(scores, axis=1)))]
            columns += list(np.exp(normalised(scores)).T) if proba else []
            columns += [] if sure is None else [sure]
            writer.write_batch(pa.record_batch([pa.array(one) for one in columns], schema=shape))


def _column(classes: Sequence[Value]) -> Any:
    """Make an Arrow array of the classes: in their type if they share one, otherwise as text."""
    import pyarrow as pa

    kinds = {type(value) for value in classes}
    return pa.array(list(classes) if len(kinds) == 1 else [text_of(value) for value in classes])


def _json(scored: Scored, names: list[str], proba: bool, steady: bool) -> None:
    labels: list[str] = []
    probabilities: list[list[float]] = []
    sureness: list[float] = []
    for scores, sure in scored:
        sureness.extend([] if sure is None else sure.tolist())
        labels.extend(names[code] for code in np.argmax(scores, axis=1))
        if proba:
            probabilities.extend(np.exp(normalised(scores)).tolist())
    body: dict[str, Any] = {"rows": len(labels), "classes": names, "predictions": labels}
    if proba:
        body["probabilities"] = probabilities
    if steady:
        body["steady"] = sureness
    print_json(body)
