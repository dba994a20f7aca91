"""``discreet predict``, ``evaluate``, ``show``, ``export`` and ``sample``: use a model file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT, output_of, write
from discreet.cli.output import (
    console,
    example,
    json_option,
    note,
    print_json,
    progress,
    table,
    warn,
)
from discreet.errors import FormatError, SchemaError, about

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.model.evaluation import Scores
    from discreet.model.explanation import Explanation

__all__ = ["evaluate", "export", "predict", "sample", "show"]


@click.command(
    epilog=example(
        "discreet predict model.json people.csv --proba -o predicted.csv",
        "discreet predict model.json people.csv --explain 0",
        "discreet predict model.json people.csv --uncertainty statistics.json",
    )
)
@click.argument("model")
@click.argument("data")
@click.option(
    "-o",
    "--output",
    type=output_of("predictions"),
    help="A .csv or .parquet file instead of standard output.",
)
@click.option("--proba", is_flag=True, help="Also write P(class) for every class.")
@click.option(
    "--explain",
    "row",
    type=click.IntRange(min=0),
    metavar="ROW",
    help="Explain this row; 0 is first.",
)
@click.option(
    "--uncertainty",
    metavar="STATISTICS",
    help="The noisy numbers that the model was made of: also write how steady each decision is.",
)
@json_option
def predict(
    model: str,
    data: str,
    output: str | None,
    proba: bool,
    row: int | None,
    uncertainty: str | None,
    as_json: bool,
) -> None:
    """Predict the class of every row of DATA (CSV or Parquet) with a MODEL file.

    Rows are read and written piece by piece, so files may be larger than memory; with --json and
    without -o, all predictions are held until the end.

    With --uncertainty there is a column "steady": how probably plain Naive Bayes of the exact
    counts, on the same features and bins, would decide the same (of a model with corrections:
    the same model, corrected without noise). Such classifiers are drawn from
    what the known noise leaves possible; rows are taken for a sample of the same people. In
    simulations it errs to the cautious side on most tables, and with much noise it can be too sure
    (adult, local reports at epsilon 1.5: 0.85 stated, 0.66 true).
    """
    from discreet.cli.predictions import write_predictions
    from discreet.model import NaiveBayesModel
    from discreet.tables.engines import ordered_batches

    trained = NaiveBayesModel.read(model)
    if row is not None:
        if output is not None or proba or uncertainty:
            raise click.UsageError(
                "--explain prints one row; leave out --output, --proba and --uncertainty."
            )
        explanation = _explain(trained, data, row)
        if as_json:
            print_json({"row": row, **explanation.to_body()})
        else:
            click.echo(str(explanation))
        return
    drawn = _drawn(trained, uncertainty) if uncertainty else None
    pieces = ordered_batches(data, trained.inputs.names)

    def scored() -> Iterator[Any]:
        done, hidden = 0, output is None and sys.stdout.isatty()
        with progress("predicting", hidden=hidden) as advance, about(data):
            for batch in pieces:
                joint = trained.predict_joint_log_proba(batch)
                yield joint, None if drawn is None else drawn(batch, joint)
                done += batch.num_rows
                advance(done)

    classes, steady = trained.schema.classes, drawn is not None
    write_predictions(scored(), classes, output, proba=proba, as_json=as_json, steady=steady)


def _drawn(model: NaiveBayesModel, path: str) -> Callable[[Any, Any], Any]:
    """Make a function of rows and scores that computes how steady each decision is."""
    from discreet.documents import read_text
    from discreet.estimation import estimate
    from discreet.estimation.uncertainty import FEW_ROWS, Drawn
    from discreet.statistics import Statistics

    with about(path):
        statistics = Statistics.from_json(read_text(path))
        if estimate(statistics).to_json() != model.to_json():
            raise FormatError("these are not the statistics that the model was made of")
        found = None if statistics.exact else Drawn(statistics)
    first = True

    def steady(rows: Any, joint: Any) -> Any:
        nonlocal first
        decision = joint.argmax(axis=1)
        if found is None:
            return decision * 0.0 + 1.0
        if first and len(decision) < FEW_ROWS:
            warn(
                f"{len(decision)} rows are too few to compare drawn classifiers with the shares of "
                f"the classes (at least {FEW_ROWS}): how steady decisions are may be overstated"
            )
        first = False
        return found.steadiness(rows, decision)

    return steady


def _explain(model: NaiveBayesModel, data: str, row: int) -> Explanation:
    from discreet.tables.engines import ordered_batches

    seen = 0
    for batch in ordered_batches(data, model.inputs.names):
        if row < seen + batch.num_rows:
            return model.explain(batch.slice(row - seen, 1).to_pylist()[0])
        seen += batch.num_rows
    raise SchemaError(f"{data}: there is no row {row}; it has {seen} rows, the first is 0")


@click.command(
    epilog=example(
        "discreet evaluate model.json people.csv",
    )
)
@click.argument("model")
@click.argument("data")
@json_option
def evaluate(model: str, data: str, as_json: bool) -> None:
    """Predict the rows of DATA and compare with the classes that it holds.

    Prints the accuracy next to that of always predicting the most frequent class, the log loss, the
    calibration, and precision and recall of each class, all with 95 % intervals. The figures are
    computed from raw data: they are not protected, even if the model is.
    """
    from discreet.model import NaiveBayesModel
    from discreet.model.evaluation import score
    from discreet.tables.engines import ordered_batches

    trained = NaiveBayesModel.read(model)
    scores: Scores | None = None
    with progress("evaluating") as advance, about(data):
        for batch in ordered_batches(data, [*trained.inputs.names, trained.schema.target]):
            part = score(trained, batch, batch[trained.schema.target])
            scores = part if scores is None else scores + part
            advance(scores.rows)
    if scores is None or not scores.rows:
        raise FormatError(f"{data}: has no rows to evaluate")
    if as_json:
        print_json({"model": model, "data": data, "protected": False, **scores.to_body()})
    else:
        _print_scores(scores)


def _print_scores(scores: Scores) -> None:
    body, printer = scores.to_body(), console()
    label = body["baseline"]["class"]
    shown = table(f"{scores.rows:,} rows", "score", ">value", ">95 % interval", "")
    for name, value, (low, high), remark in (
        ("accuracy", body["accuracy"], body["interval"], ""),
        ("baseline", body["baseline"]["accuracy"], body["baseline"]["interval"],
         f"always {label!r}"),
        ("log loss", body["log_loss"], body["log_loss_interval"], ""),
        ("calibration error", body["calibration_error"], body["calibration_interval"],
         "mean gap between confidence and hit rate"),
    ):  # fmt: skip
        shown.add_row(name, f"{value:.4f}", f"{low:.4f} to {high:.4f}", remark)
    printer.print(shown)
    by_class = table("by class", "class", ">rows", ">precision", ">recall")
    for name, one in body["classes"].items():
        parts = [(one[key], one[f"{key}_interval"]) for key in ("precision", "recall")]
        by_class.add_row(name, f"{one['rows']:,}", *(_share(value, ends) for value, ends in parts))
    printer.print(by_class)
    reliable = table("calibration: said, and was right", ">confidence", ">rows", ">right")
    for one in body["reliability"]:
        right = _share(one["hits"], one["interval"])
        reliable.add_row(f"{one['confidence']:.3f}", f"{one['rows']:,}", right)
    printer.print(reliable)
    names = list(body["classes"])
    confusion = table("down: true class, across: predicted", "", *(f">{name}" for name in names))
    for name, row in zip(names, scores.confusion, strict=True):
        confusion.add_row(name, *(f"{number:,}" for number in row))
    printer.print(confusion)
    printer.print("These figures are about raw data and are not protected.")


def _share(value: float, interval: list[float]) -> str:
    return "-" if value != value else f"{value:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"


@click.command(
    epilog=example(
        "discreet show model.json --strongest 5",
    )
)
@click.argument("model")
@click.option(
    "--strongest",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Pieces of evidence shown.",
)
@json_option
def show(model: str, strongest: int, as_json: bool) -> None:
    """Print a MODEL file: its promise, its priors and its strongest evidence."""
    from discreet.model import NaiveBayesModel

    trained = NaiveBayesModel.read(model)
    if as_json:
        print_json(model_body(trained, strongest))
    else:
        trained.show(strongest)


def model_body(model: NaiveBayesModel, strongest: int) -> dict[str, Any]:
    """Make the JSON values of what ``show`` prints."""
    import numpy as np

    from discreet.model import GaussianFactor
    from discreet.model.explanation import strongest_evidence
    from discreet.schema import text_of

    classes = [text_of(value) for value in model.schema.classes]
    evidence = strongest_evidence(model, strongest)
    return {
        "guarantee": {**model.guarantee.to_body(), "text": str(model.guarantee)},
        "target": model.schema.target,
        "prior": dict(zip(classes, np.exp(model.log_prior).tolist(), strict=True)),
        "features": list(model.inputs.names),
        "schema_digest": model.schema.digest,
        "strongest": [
            {"feature": feature, "value": value, "class": label, "log_odds": odds}
            for feature, value, label, odds in evidence
        ],
        "numeric": [
            {
                "feature": factor.name,
                "mean": dict(zip(classes, factor.mean.tolist(), strict=True)),
                "deviation": dict(zip(classes, np.sqrt(factor.variance).tolist(), strict=True)),
            }
            for factor in model.factors
            if isinstance(factor, GaussianFactor)
        ],
    }


@click.command(
    epilog=example(
        "discreet export model.json --to onnx -o model.onnx",
    )
)
@click.argument("model")
@click.option(
    "--to",
    "kind",
    required=True,
    type=click.Choice(["onnx", "skops"]),
    help="onnx for other languages and runtimes, skops for scikit-learn without pickle.",
)
@click.option("-o", "--output", type=OUTPUT, required=True, help="The file to write.")
@json_option
def export(model: str, kind: str, output: str, as_json: bool) -> None:
    """Write a MODEL file as an ONNX graph or as a skops file; both predict the same.

    ONNX: one input per feature, of shape (rows, 1), text or double; the outputs are label and
    probabilities.
    skops: load it with trusted=["discreet.model.export.ModelClassifier"].
    """
    from discreet.model import NaiveBayesModel
    from discreet.model.export import to_onnx, to_skops

    trained = NaiveBayesModel.read(model)
    content = to_onnx(trained) if kind == "onnx" else to_skops(trained)
    write(output, content)
    if as_json:
        print_json({"output": output, "format": kind, "bytes": len(content)})
    else:
        note(f"{output}: {len(content):,} bytes")


@click.command(
    epilog=example(
        "discreet sample model.json -n 1000 -o synthetic.csv",
    )
)
@click.argument("model")
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="How many records.",
)
@click.option("--seed", type=click.IntRange(min=0), help="The same records again.")
@click.option(
    "-o",
    "--output",
    type=output_of("synthetic"),
    help="A .csv or .parquet file instead of standard output.",
)
@json_option
def sample(model: str, count: int, seed: int | None, output: str | None, as_json: bool) -> None:
    """Draw synthetic records from a released MODEL, at no further cost in privacy.

    They follow what the model knows: class shares, and each feature within a class; features are
    independent within a class. The model's promise is printed on standard error, and stored in the
    metadata of a Parquet file; a CSV file holds records only, so that every program can read it.
    """
    from discreet.model import NaiveBayesModel
    from discreet.model.sampling import sample as drawn

    trained = NaiveBayesModel.read(model)
    columns = drawn(trained, count, seed)
    promise = [
        "synthetic records, drawn from a released model",
        *str(trained.guarantee).split("\n"),
    ]
    if as_json and output is None:
        values = {name: list(column) for name, column in columns.items()}
        print_json({"rows": count, "promise": "\n".join(promise), "columns": values})
        return
    if output is None:
        click.echo(_csv_of(columns), nl=False)
        note("\n".join(promise))
        return
    if output.lower().endswith(".parquet"):
        write(output, _parquet_of(columns, promise))
    elif output.lower().endswith(".csv"):
        write(output, _csv_of(columns))
    else:
        raise FormatError(f"{output}: records go to a file that ends in .csv or .parquet")
    if as_json:
        print_json({"output": output, "rows": count, "promise": "\n".join(promise)})
    else:
        note(f"{output}: {count:,} {promise[0]}")
        note("\n".join(promise[1:]))


def _csv_of(columns: dict[str, Any]) -> str:
    """Format records as CSV, with values as in the schema; a missing value is empty."""
    import csv
    import io

    from discreet.schema import text_of

    spelt = [["" if v is None else text_of(v) for v in column] for column in columns.values()]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*spelt, strict=True))
    return text.getvalue()


def _parquet_of(columns: dict[str, Any], promise: list[str]) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet

    made = pa.table({name: pa.array(_of_a_kind(column)) for name, column in columns.items()})
    metadata = {**(made.schema.metadata or {}), b"discreet.promise": "\n".join(promise).encode()}
    file = io.BytesIO()
    pa.parquet.write_table(made.replace_schema_metadata(metadata), file)
    return file.getvalue()


def _of_a_kind(column: Any) -> list[Any]:
    """Convert a column for Arrow: unchanged if its values share a type, otherwise as text."""
    from discreet.schema import text_of

    values: list[Any] = column.tolist()
    if len({type(value) for value in values if value is not None}) <= 1:
        return values
    return [None if value is None else text_of(value) for value in values]
