"""Where predictions go: CSV, Parquet or JSON, piece by piece."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import click
import numpy as np

from discreet.arrays import Floats
from discreet.cli.files import replacing
from discreet.cli.output import print_json
from discreet.errors import FormatError
from discreet.model import normalised
from discreet.schema import Value, text_of

__all__ = ["opened"]

Write = Callable[[Floats, Floats | None], None]
"""Takes the joint log-probabilities of some rows, (rows, classes), and how steady each is."""
Target = AbstractContextManager[Write]


@contextmanager
def opened(
    path: str | None, classes: Sequence[Value], proba: bool, as_json: bool, steady: bool = False
) -> Iterator[Write]:
    """Give a function that writes predictions.

    Parameters
    ----------
    path : str or None
        Where to; standard output if None.
    classes : sequence
    proba : bool
        Whether to write the probability of every class, too.
    as_json : bool
        Print one JSON object: the predictions, or a summary where they go to a file.
    steady : bool, default False
        Whether each prediction comes with how steady it is.
    """
    names = [text_of(value) for value in classes]
    totals = np.zeros(len(names), dtype=np.int64)
    if path is None:
        target: Target = (
            _json(names, proba, steady) if as_json else _csv(None, names, proba, steady)
        )
        with target as write:
            yield write
        return
    parquet = path.lower().endswith(".parquet")
    if not parquet and not path.lower().endswith(".csv"):
        raise FormatError(f"{path}: predictions go to a file that ends in .csv or .parquet")
    with replacing(path) as beside:
        target = (
            _parquet(beside, classes, proba, steady)
            if parquet
            else _csv(beside, names, proba, steady)
        )
        with target as write:

            def counted(scores: Floats, sure: Floats | None = None) -> None:
                totals[:] += np.bincount(np.argmax(scores, axis=1), minlength=len(names))
                write(scores, sure)

            yield counted
    summary = dict(zip(names, totals.tolist(), strict=True))
    if as_json:
        print_json({"output": path, "rows": int(totals.sum()), "predicted": summary})
    else:
        some = ", ".join(f"{name} {number:,}" for name, number in summary.items())
        click.echo(f"{path}: {totals.sum():,} rows ({some})", err=True)


@contextmanager
def _csv(path: Path | None, names: list[str], proba: bool, steady: bool) -> Iterator[Write]:
    words = np.array(names, dtype=object)
    stream: IO[str]
    place = (
        nullcontext(sys.stdout) if path is None else path.open("w", encoding="utf-8", newline="")
    )
    with place as stream:
        writer = csv.writer(stream, lineterminator="\n")
        extra = ["steady"] if steady else []
        writer.writerow(["prediction", *(f"P({name})" for name in names if proba), *extra])

        def write(scores: Floats, sure: Floats | None = None) -> None:
            labels = words[np.argmax(scores, axis=1)].tolist()
            columns = np.exp(normalised(scores)).T.tolist() if proba else []
            columns += [] if sure is None else [np.round(sure, 3).tolist()]
            writer.writerows(zip(labels, *columns, strict=True))

        yield write
        stream.flush()


@contextmanager
def _parquet(path: Path, classes: Sequence[Value], proba: bool, steady: bool) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet

    labels = _column(classes)
    fields = [("prediction", labels.type)]
    fields += [(f"P({text_of(value)})", pa.float64()) for value in classes if proba]
    fields += [("steady", pa.float64())] if steady else []
    shape = pa.schema(fields)
    with path.open("wb") as file, pa.parquet.ParquetWriter(file, shape) as writer:

        def write(scores: Floats, sure: Floats | None = None) -> None:
            columns = [labels.take(pa.array(np.argmax(scores, axis=1)))]
            columns += list(np.exp(normalised(scores)).T) if proba else []
            columns += [] if sure is None else [sure]
            writer.write_batch(pa.record_batch([pa.array(one) for one in columns], schema=shape))

        yield write


def _column(classes: Sequence[Value]) -> Any:
    """The classes as an Arrow array: of their own type if they share one, else as text."""
    import pyarrow as pa

    kinds = {type(value) for value in classes}
    return pa.array(list(classes) if len(kinds) == 1 else [text_of(value) for value in classes])


@contextmanager
def _json(names: list[str], proba: bool, steady: bool) -> Iterator[Write]:
    labels: list[str] = []
    probabilities: list[list[float]] = []
    sureness: list[float] = []

    def write(scores: Floats, sure: Floats | None = None) -> None:
        sureness.extend([] if sure is None else sure.tolist())
        labels.extend(names[code] for code in np.argmax(scores, axis=1))
        if proba:
            probabilities.extend(np.exp(normalised(scores)).tolist())

    yield write
    body: dict[str, Any] = {"rows": len(labels), "classes": names, "predictions": labels}
    if proba:
        body["probabilities"] = probabilities
    if steady:
        body["steady"] = sureness
    print_json(body)
