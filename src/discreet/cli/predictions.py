"""Write predictions to CSV, Parquet or JSON, batch by batch."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from discreet.arrays import Array, Floats
from discreet.cli.files import open_replacement
from discreet.cli.output import print_json, print_note
from discreet.errors import FormatError, SchemaError
from discreet.model import compute_log_posterior
from discreet.schema.schema import Value, format_value

__all__ = ["ScoredBatch", "ScoredBatches", "refuse_output_names", "write_predictions"]

PREDICTION_COLUMN = "prediction"
STEADINESS_COLUMN = "steady"


class ScoredBatch(NamedTuple):
    """Some rows with their scores.

    Parameters
    ----------
    scores : array of float, (rows, classes)
        Joint log-probabilities.
    steadiness : array of float or None
        How steady each decision is.
    copies : Arrow batch
        Columns that are copied.
    """

    scores: Floats
    steadiness: Floats | None
    copies: Any


ScoredBatches = Iterable[ScoredBatch]


def refuse_output_names(copied_names: Sequence[str], classes: Sequence[Value]) -> None:
    """Refuse to copy a column that has the name of a column of predictions.

    Parameters
    ----------
    copied_names : sequence of str
    classes : sequence
    """
    own_names = {PREDICTION_COLUMN, STEADINESS_COLUMN, *map(_name_probability, classes)}
    for name in copied_names:
        if name in own_names:
            raise SchemaError(
                f"{name}: is also the name of a column of the output; rename it in the table, or "
                "leave it out of --keep and --key"
            )


def _name_probability(value: Value) -> str:
    return f"P({format_value(value)})"


def write_predictions(
    scored_batches: ScoredBatches,
    classes: Sequence[Value],
    path: str | None,
    *,
    copied_names: Sequence[str] = (),
    with_probabilities: bool,
    as_json: bool,
    with_steadiness: bool,
) -> None:
    """Write predictions batch by batch.

    Parameters
    ----------
    scored_batches : iterable of ScoredBatch
    classes : sequence
    path : str or None
        Where to; standard output if None.
    copied_names : sequence of str
        Of the columns that are copied, before the prediction.
    with_probabilities : bool
        Whether to write the probability of every class, too.
    as_json : bool
        Print one JSON object: the predictions, or a summary where they go to a file.
    with_steadiness : bool
        Whether each prediction comes with how steady it is.
    """
    class_names = [format_value(value) for value in classes]
    header = [*copied_names, PREDICTION_COLUMN]
    header += [_name_probability(value) for value in classes if with_probabilities]
    header += [STEADINESS_COLUMN] if with_steadiness else []
    if path is None:
        if as_json:
            _print_predictions(scored_batches, class_names, with_probabilities, with_steadiness)
        else:
            _write_csv(sys.stdout, scored_batches, class_names, header, with_probabilities)
        return
    is_parquet = path.lower().endswith(".parquet")
    if not is_parquet and not path.lower().endswith(".csv"):
        raise FormatError(f"{path}: predictions go to a file that ends in .csv or .parquet")
    class_totals = np.zeros(len(class_names), dtype=np.int64)
    counted_batches = _count_predictions(scored_batches, class_totals)
    with open_replacement(path) as draft:
        if is_parquet:
            _write_parquet(
                draft, counted_batches, classes, header, len(copied_names), with_probabilities
            )
        else:
            with draft.open("w", encoding="utf-8", newline="") as stream:
                _write_csv(stream, counted_batches, class_names, header, with_probabilities)
    totals_by_class = dict(zip(class_names, class_totals.tolist(), strict=True))
    if as_json:
        print_json({"output": path, "rows": int(class_totals.sum()), "predicted": totals_by_class})
    else:
        totals_text = ", ".join(
            f"{class_name} {total:,}" for class_name, total in totals_by_class.items()
        )
        print_note(f"{path}: {class_totals.sum():,} rows ({totals_text})")


def _count_predictions(scored_batches: ScoredBatches, class_totals: Array) -> Iterator[ScoredBatch]:
    """Yield the batches unchanged, and count how often each class is predicted."""
    for batch in scored_batches:
        class_totals += np.bincount(np.argmax(batch.scores, axis=1), minlength=len(class_totals))
        yield batch


def _write_csv(
    stream: IO[str],
    scored_batches: ScoredBatches,
    class_names: list[str],
    header: list[str],
    with_probabilities: bool,
) -> None:
    label_texts = np.array(class_names, dtype=object)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    for scores, steadiness, copies in scored_batches:
        output_columns: list[Any] = [
            [_format_copy(value) for value in column.to_pylist()] for column in copies.columns
        ]
        output_columns.append(label_texts[np.argmax(scores, axis=1)].tolist())
        output_columns += (
            np.exp(compute_log_posterior(scores)).T.tolist() if with_probabilities else []
        )
        output_columns += [] if steadiness is None else [np.round(steadiness, 3).tolist()]
        writer.writerows(zip(*output_columns, strict=True))
    stream.flush()


def _format_copy(value: Any) -> str:
    """A copied value as text: a missing one is empty."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _write_parquet(
    path: Path,
    scored_batches: ScoredBatches,
    classes: Sequence[Value],
    header: list[str],
    copied_count: int,
    with_probabilities: bool,
) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    class_labels = _make_label_array(classes)
    own_types = [class_labels.type] + [pa.float64()] * (len(header) - copied_count - 1)
    batches = iter(scored_batches)
    first_batch = next(batches, None)
    read_batches = [] if first_batch is None else [first_batch]
    copied_types = (
        [pa.string()] * copied_count if first_batch is None else first_batch.copies.schema.types
    )
    arrow_schema = pa.schema(zip(header, [*copied_types, *own_types], strict=True))
    with (
        path.open("wb") as parquet_file,
        pa.parquet.ParquetWriter(parquet_file, arrow_schema) as writer,
    ):
        for scores, steadiness, copies in chain(read_batches, batches):
            output_columns = [class_labels.take(pa.array(np.argmax(scores, axis=1)))]
            output_columns += (
                list(np.exp(compute_log_posterior(scores)).T) if with_probabilities else []
            )
            output_columns += [] if steadiness is None else [steadiness]
            own_columns = [pa.array(column) for column in output_columns]
            writer.write_batch(
                pa.record_batch([*copies.columns, *own_columns], schema=arrow_schema)
            )


def _make_label_array(classes: Sequence[Value]) -> Any:
    """Make an Arrow array of the classes: in their type if they share one, otherwise as text."""
    import pyarrow as pa

    value_types = {type(value) for value in classes}
    return pa.array(
        list(classes) if len(value_types) == 1 else [format_value(value) for value in classes]
    )


def _print_predictions(
    scored_batches: ScoredBatches,
    class_names: list[str],
    with_probabilities: bool,
    with_steadiness: bool,
) -> None:
    predicted_labels: list[str] = []
    probabilities: list[list[float]] = []
    steadiness: list[float] = []
    copied_columns: dict[str, list[Any]] = {}
    for scores, batch_steadiness, copies in scored_batches:
        steadiness.extend([] if batch_steadiness is None else batch_steadiness.tolist())
        predicted_labels.extend(class_names[class_code] for class_code in np.argmax(scores, axis=1))
        if with_probabilities:
            probabilities.extend(np.exp(compute_log_posterior(scores)).tolist())
        for name, column in zip(copies.schema.names, copies.columns, strict=True):
            copied_columns.setdefault(name, []).extend(map(_to_json_copy, column.to_pylist()))
    summary: dict[str, Any] = {
        "rows": len(predicted_labels),
        "classes": class_names,
        "predictions": predicted_labels,
    }
    if copied_columns:
        summary["columns"] = copied_columns
    if with_probabilities:
        summary["probabilities"] = probabilities
    if with_steadiness:
        summary["steady"] = steadiness
    print_json(summary)


def _to_json_copy(value: Any) -> Any:
    """A copied value as JSON has it: numbers that are finite, text and truth values, or text."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else _format_copy(value)
    is_plain = value is None or isinstance(value, (bool, int, float, str))
    return value if is_plain else _format_copy(value)
