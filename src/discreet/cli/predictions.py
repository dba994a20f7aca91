"""Write predictions to CSV, Parquet or JSON, batch by batch."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from discreet.arrays import Array, Floats
from discreet.cli.files import open_replacement
from discreet.cli.output import print_json, print_note
from discreet.errors import FormatError
from discreet.model import compute_log_posterior
from discreet.schema.schema import Value, format_value

__all__ = ["ScoredBatches", "write_predictions"]

ScoredBatches = Iterable[tuple[Floats, Floats | None]]
"""Joint log-probabilities of some rows, (rows, classes), and how steady each decision is."""


def write_predictions(
    scored_batches: ScoredBatches,
    classes: Sequence[Value],
    path: str | None,
    *,
    with_probabilities: bool,
    as_json: bool,
    with_steadiness: bool,
) -> None:
    """Write predictions batch by batch.

    Parameters
    ----------
    scored_batches : iterable of (scores, steadiness)
    classes : sequence
    path : str or None
        Where to; standard output if None.
    with_probabilities : bool
        Whether to write the probability of every class, too.
    as_json : bool
        Print one JSON object: the predictions, or a summary where they go to a file.
    with_steadiness : bool
        Whether each prediction comes with how steady it is.
    """
    class_names = [format_value(value) for value in classes]
    if path is None:
        if as_json:
            _print_predictions(scored_batches, class_names, with_probabilities, with_steadiness)
        else:
            _write_csv(sys.stdout, scored_batches, class_names, with_probabilities, with_steadiness)
        return
    is_parquet = path.lower().endswith(".parquet")
    if not is_parquet and not path.lower().endswith(".csv"):
        raise FormatError(f"{path}: predictions go to a file that ends in .csv or .parquet")
    class_totals = np.zeros(len(class_names), dtype=np.int64)
    with open_replacement(path) as draft:
        if is_parquet:
            _write_parquet(
                draft,
                _count_predictions(scored_batches, class_totals),
                classes,
                with_probabilities,
                with_steadiness,
            )
        else:
            with draft.open("w", encoding="utf-8", newline="") as stream:
                _write_csv(
                    stream,
                    _count_predictions(scored_batches, class_totals),
                    class_names,
                    with_probabilities,
                    with_steadiness,
                )
    totals_by_class = dict(zip(class_names, class_totals.tolist(), strict=True))
    if as_json:
        print_json({"output": path, "rows": int(class_totals.sum()), "predicted": totals_by_class})
    else:
        totals_text = ", ".join(
            f"{class_name} {total:,}" for class_name, total in totals_by_class.items()
        )
        print_note(f"{path}: {class_totals.sum():,} rows ({totals_text})")


def _count_predictions(
    scored_batches: ScoredBatches, class_totals: Array
) -> Iterator[tuple[Floats, Floats | None]]:
    """Yield the batches unchanged, and count how often each class is predicted."""
    for scores, steadiness in scored_batches:
        class_totals += np.bincount(np.argmax(scores, axis=1), minlength=len(class_totals))
        yield scores, steadiness


def _write_csv(
    stream: IO[str],
    scored_batches: ScoredBatches,
    class_names: list[str],
    with_probabilities: bool,
    with_steadiness: bool,
) -> None:
    label_texts = np.array(class_names, dtype=object)
    writer = csv.writer(stream, lineterminator="\n")
    steady_header = ["steady"] if with_steadiness else []
    writer.writerow(
        [
            "prediction",
            *(f"P({class_name})" for class_name in class_names if with_probabilities),
            *steady_header,
        ]
    )
    for scores, steadiness in scored_batches:
        labels = label_texts[np.argmax(scores, axis=1)].tolist()
        output_columns = (
            np.exp(compute_log_posterior(scores)).T.tolist() if with_probabilities else []
        )
        output_columns += [] if steadiness is None else [np.round(steadiness, 3).tolist()]
        writer.writerows(zip(labels, *output_columns, strict=True))
    stream.flush()


def _write_parquet(
    path: Path,
    scored_batches: ScoredBatches,
    classes: Sequence[Value],
    with_probabilities: bool,
    with_steadiness: bool,
) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    class_labels = _make_label_array(classes)
    fields = [("prediction", class_labels.type)]
    fields += [
        (f"P({format_value(value)})", pa.float64()) for value in classes if with_probabilities
    ]
    fields += [("steady", pa.float64())] if with_steadiness else []
    arrow_schema = pa.schema(fields)
    with (
        path.open("wb") as parquet_file,
        pa.parquet.ParquetWriter(parquet_file, arrow_schema) as writer,
    ):
        for scores, steadiness in scored_batches:
            output_columns = [class_labels.take(pa.array(np.argmax(scores, axis=1)))]
            output_columns += (
                list(np.exp(compute_log_posterior(scores)).T) if with_probabilities else []
            )
            output_columns += [] if steadiness is None else [steadiness]
            writer.write_batch(
                pa.record_batch(
                    [pa.array(column) for column in output_columns], schema=arrow_schema
                )
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
    for scores, batch_steadiness in scored_batches:
        steadiness.extend([] if batch_steadiness is None else batch_steadiness.tolist())
        predicted_labels.extend(class_names[class_code] for class_code in np.argmax(scores, axis=1))
        if with_probabilities:
            probabilities.extend(np.exp(compute_log_posterior(scores)).tolist())
    summary: dict[str, Any] = {
        "rows": len(predicted_labels),
        "classes": class_names,
        "predictions": predicted_labels,
    }
    if with_probabilities:
        summary["probabilities"] = probabilities
    if with_steadiness:
        summary["steady"] = steadiness
    print_json(summary)
