"""``discreet predict``, ``evaluate``, ``show`` and ``export``: what to do with a model file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT, about, batches, read_model, write
from discreet.cli.output import console, example, json_option, print_json, progress, table
from discreet.errors import FormatError, SchemaError

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.model.evaluation import Scores
    from discreet.model.explanation import Explanation

__all__ = ["evaluate", "export", "predict", "show"]


@click.command(
    epilog=example(
        "discreet predict model.json people.csv --proba -o predicted.csv",
        "discreet predict model.json people.csv --explain 0",
    )
)
@click.argument("model")
@click.argument("data")
@click.option(
    "-o", "--output", type=OUTPUT, help="A .csv or .parquet file instead of standard output."
)
@click.option("--proba", is_flag=True, help="Also write P(class) for every class.")
@click.option(
    "--explain",
    "row",
    type=click.IntRange(min=0),
    metavar="ROW",
    help="Explain this row; 0 is first.",
)
@json_option
def predict(
    model: str, data: str, output: str | None, proba: bool, row: int | None, as_json: bool
) -> None:
    """Predict the class of every row of DATA (CSV or Parquet) with a MODEL file.

    Rows are read and written piece by piece, so files may be larger than memory; with --json and
    without -o, all predictions are held until the end.
    """
    from discreet.cli.predictions import opened

    trained = read_model(model)
    if row is not None:
        if output is not None or proba:
            raise click.UsageError("--explain prints one row; leave out --output and --proba.")
        explanation = _explain(trained, data, row)
        if as_json:
            print_json({"row": row, **explanation.to_body()})
        else:
            click.echo(str(explanation))
        return
    done, pieces = 0, batches(data, trained.inputs.names)
    quiet = output is None and sys.stdout.isatty()
    with (
        opened(output, trained.schema.classes, proba, as_json) as put,
        progress("predicting", quiet=quiet) as advance,
        about(data),
    ):
        for batch in pieces:
            put(trained.predict_joint_log_proba(batch))
            done += batch.num_rows
            advance(done)


def _explain(model: NaiveBayesModel, data: str, row: int) -> Explanation:
    seen = 0
    for batch in batches(data, model.inputs.names):
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

    Prints the accuracy with its 95 % interval (Wilson) beside that of always saying the most
    frequent class, the log loss, and for each class how it fared.
    """
    from discreet.model.evaluation import score

    trained = read_model(model)
    scores: Scores | None = None
    with progress("evaluating") as advance, about(data):
        for batch in batches(data, [*trained.inputs.names, trained.schema.target]):
            part = score(trained, batch, batch[trained.schema.target])
            scores = part if scores is None else scores + part
            advance(scores.rows)
    if scores is None or not scores.rows:
        raise FormatError(f"{data}: has no rows to evaluate")
    if as_json:
        print_json({"model": model, "data": data, **scores.to_body()})
    else:
        _print_scores(scores)


def _print_scores(scores: Scores) -> None:
    from discreet.schema import text_of

    printer = console()
    low, high = scores.interval
    label, baseline = scores.majority
    printer.print(f"rows       {scores.rows:,}")
    printer.print(f"accuracy   {scores.accuracy:.4f}   95 % interval {low:.4f} to {high:.4f}")
    printer.print(f"baseline   {baseline:.4f}   always {text_of(label)!r}")
    printer.print(f"log loss   {scores.log_loss:.4f}\n")
    names = [text_of(value) for value in scores.classes]
    by_class = table("by class", "class", ">rows", ">precision", ">recall")
    parts = zip(names, scores.confusion.sum(axis=1), scores.precision, scores.recall, strict=True)
    for name, rows, precision, recall in parts:
        by_class.add_row(name, f"{rows:,}", _share(precision), _share(recall))
    printer.print(by_class)
    confusion = table("down: true class, across: predicted", "", *(f">{name}" for name in names))
    for name, row in zip(names, scores.confusion, strict=True):
        confusion.add_row(name, *(f"{number:,}" for number in row))
    printer.print(confusion)


def _share(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


@click.command(
    epilog=example(
        "discreet show model.json --strongest 5",
    )
)
@click.argument("model")
@click.option(
    "--strongest", type=click.IntRange(min=0), default=10, show_default=True, help="Pieces shown."
)
@json_option
def show(model: str, strongest: int, as_json: bool) -> None:
    """Print a MODEL file: its promise, its priors and its strongest evidence."""
    trained = read_model(model)
    if as_json:
        print_json(model_body(trained, strongest))
    else:
        trained.show(strongest)


def model_body(model: NaiveBayesModel, strongest: int) -> dict[str, Any]:
    """What ``show`` prints, as plain values."""
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

    ONNX: one input a feature, of shape (rows, 1), text or double; outputs label and probabilities.
    skops: load it with trusted=["discreet.model.export.ModelClassifier"].
    """
    trained = read_model(model)
    from discreet.model.export import to_onnx, to_skops

    content = to_onnx(trained) if kind == "onnx" else to_skops(trained)
    write(output, content)
    if as_json:
        print_json({"output": output, "format": kind, "bytes": len(content)})
    else:
        click.echo(f"{output}: {len(content):,} bytes", err=True)
