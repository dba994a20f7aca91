"""``discreet predict``, ``evaluate``, ``show``, ``export`` and ``sample``: use a model file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.evaluation import (
    make_batch_scorer,
    print_noisy_scores,
    print_scores,
    refuse_contradictions,
)
from discreet.cli.files import OUTPUT, make_output, write_file
from discreet.cli.ledger_options import LedgerCharge, ledger_options
from discreet.cli.output import (
    format_example,
    json_option,
    print_guarantee,
    print_json,
    print_note,
    print_warning,
    show_progress,
)
from discreet.cli.parameter_types import NamedNumbersType
from discreet.cli.person_options import person_options, warn_of_repeated_ids
from discreet.errors import FormatError, SchemaError
from discreet.files.atomic_writing import error_context

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.model.explanation import Explanation
    from discreet.tables.contributions import MissingPerson

__all__ = ["evaluate", "export", "predict", "sample", "show"]


@click.command(
    epilog=format_example(
        "discreet predict model.json people.csv --proba -o predicted.csv",
        "discreet predict model.json people.csv --keep id --keep region",
        "discreet predict model.json postgres://user@host/db --table visits --key id",
        "discreet predict model.json people.csv --explain 0",
        "discreet predict model.json people.csv --uncertainty statistics.json",
    )
)
@click.argument("model")
@click.argument("data")
@click.option(
    "-o",
    "--output",
    type=make_output("predictions"),
    help="A .csv or .parquet file instead of standard output.",
)
@click.option("--proba", is_flag=True, help="Also write P(class) for every class.")
@click.option(
    "--explain",
    "row",
    type=click.IntRange(min=0),
    metavar="ROW",
    help="Explain the decision for this row; the first row is 0.",
)
@click.option(
    "--uncertainty",
    metavar="STATISTICS",
    help="Statistics file from which the model was made: also write how steady each decision is.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Copy a column of DATA to the output, before the prediction; repeatable.",
)
@click.option("--table", help="The table's name, for a database URL.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN",
    help="Copy this column and, of a database, order the rows by it; repeatable.",
)
@json_option
def predict(
    model: str,
    data: str,
    output: str | None,
    proba: bool,
    row: int | None,
    uncertainty: str | None,
    keep: tuple[str, ...],
    table: str | None,
    keys: tuple[str, ...],
    as_json: bool,
) -> None:
    """Predict the class of every row of DATA (CSV, Parquet, database URL) with a MODEL file.

    Columns are found by name, in any order; others are not read. Rows are read and written piece by
    piece, so tables may be larger than memory; with --json and without -o, all predictions are held
    until the end. Rows of a database have no order: each prediction is written with its --key.

    --uncertainty adds a column "steady": the probability that plain Naive Bayes of the exact
    counts, on the same features and bins, would make the same decision (for a model with
    corrections: the same model, corrected without noise). It is estimated by drawing classifiers
    that the known noise leaves possible, and assumes that the rows are a sample of the same people.
    In simulations it is cautious on most tables, but too high where there is much noise (adult,
    local reports at epsilon 1.5: 0.85 stated, 0.66 true).
    """
    from discreet.cli.predictions import ScoredBatch, refuse_output_names, write_predictions
    from discreet.model import NaiveBayesModel
    from discreet.schema.row_errors import row_offset_context
    from discreet.tables.row_batches import iter_row_batches, require_source_kind

    trained_model = NaiveBayesModel.read(model)
    require_source_kind(data, table, keys)
    if row is not None:
        if output is not None or proba or uncertainty or keep:
            raise click.UsageError(
                "--explain prints one row; leave out --output, --proba, --keep and --uncertainty."
            )
        with show_progress("looking for the row") as report_progress, error_context(data):
            row_batches = iter_row_batches(data, trained_model.inputs, table=table, keys=keys)
            explanation = _explain_row(trained_model, row_batches, row, report_progress)
        if as_json:
            print_json({"row": row, **explanation.to_body()})
        else:
            click.echo(str(explanation))
        return
    score_steadiness = _make_steadiness_scorer(trained_model, uncertainty) if uncertainty else None
    copied_names = list(dict.fromkeys([*keys, *keep]))
    refuse_output_names(copied_names, trained_model.schema.classes)

    with show_progress("reading"), error_context(data):
        batches = iter_row_batches(
            data, trained_model.inputs, copies=copied_names, table=table, keys=keys
        )

    def score_batches() -> Iterator[ScoredBatch]:
        rows_done, hidden = 0, output is None and sys.stdout.isatty()
        with show_progress("predicting", hidden=hidden) as report_progress, error_context(data):
            for batch, copies in batches:
                with row_offset_context(rows_done):
                    joint_scores = trained_model.predict_joint_log_proba(batch)
                steadiness = (
                    None if score_steadiness is None else score_steadiness(batch, joint_scores)
                )
                yield ScoredBatch(joint_scores, steadiness, copies)
                rows_done += batch.num_rows
                report_progress(rows_done)

    write_predictions(
        score_batches(),
        trained_model.schema.classes,
        output,
        copied_names=copied_names,
        with_probabilities=proba,
        as_json=as_json,
        with_steadiness=score_steadiness is not None,
    )


def _make_steadiness_scorer(model: NaiveBayesModel, path: str) -> Callable[[Any, Any], Any]:
    """Make a function of rows and scores that computes how steady each decision is."""
    from discreet.estimation.from_statistics import load_model_statistics
    from discreet.estimation.uncertainty import MIN_SHIFT_ROWS, PosteriorDraws
    from discreet.files.atomic_writing import read_text

    with show_progress("reading statistics", "files"), error_context(path):
        statistics = load_model_statistics(read_text(path), model)
        posterior_draws = None if statistics.is_exact else PosteriorDraws(statistics)
    is_first_batch = True

    def score_steadiness(rows: Any, joint_scores: Any) -> Any:
        nonlocal is_first_batch
        decisions = joint_scores.argmax(axis=1)
        if posterior_draws is None:
            return decisions * 0.0 + 1.0
        if is_first_batch and len(decisions) < MIN_SHIFT_ROWS:
            print_warning(
                f"{len(decisions)} rows are too few to compare drawn classifiers with the shares "
                f"of the classes (at least {MIN_SHIFT_ROWS}): how steady decisions are may be "
                "overstated"
            )
        is_first_batch = False
        return posterior_draws.estimate_agreement(rows, decisions)

    return score_steadiness


def _explain_row(
    model: NaiveBayesModel,
    row_batches: Iterator[tuple[Any, Any]],
    row: int,
    report_progress: Callable[..., None],
) -> Explanation:
    rows_before = 0
    for batch, _ in row_batches:
        if row < rows_before + batch.num_rows:
            return model.explain(batch.slice(row - rows_before, 1).to_pylist()[0])
        rows_before += batch.num_rows
        report_progress(rows_before)
    raise SchemaError(f"there is no row {row}; it has {rows_before} rows, the first is 0")


@click.command(
    epilog=format_example(
        "discreet evaluate model.json people.csv",
        "discreet evaluate model.json people.csv --cost yes=5 --by sex",
        "discreet evaluate model.json people.csv --epsilon 0.2 --budget-file budget.json",
    )
)
@click.argument("model")
@click.argument("data")
@click.option("--by", metavar="COLUMN", help="Also show figures for each value of this column.")
@click.option(
    "--cost",
    type=NamedNumbersType("yes=5", "cost"),
    help="What missing a class costs, 1 where not said: also show decisions by cost.",
)
@click.option(
    "--epsilon",
    type=float,
    help="Release noisy figures that cost each person in DATA this epsilon, instead of exact ones.",
)
@click.option(
    "--same-people",
    is_flag=True,
    help="With --epsilon: DATA is about the people of whom the model was made; the promise adds up "
    "what both cost them.",
)
@person_options
@click.option("--table", help="The table's name, for a database URL.")
@ledger_options
@json_option
def evaluate(
    model: str,
    data: str,
    by: str | None,
    cost: dict[str, float] | None,
    epsilon: float | None,
    same_people: bool,
    person: str | None,
    rows_per_person: int | None,
    missing_person: MissingPerson,
    table: str | None,
    as_json: bool,
    **ledger: Any,
) -> None:
    """Predict the rows of DATA and compare the predictions with its true classes.

    Prints the accuracy next to that of always predicting the most frequent class, the areas under
    the ROC curve (AUC) and the precision-recall curve (average precision), the log loss, the
    calibration, and precision and recall of each class, all with 95 % intervals. The figures are
    computed from raw data: they are not protected, even if the model is.

    With --epsilon they are: one noisy table of the rows by true class, predicted class and
    confidence is released, charged to the ledger before noise is drawn, and the intervals cover the
    noise. One row is one person, unless --person and --rows-per-person say otherwise.
    """
    from discreet.model import NaiveBayesModel
    from discreet.schema.row_errors import row_offset_context
    from discreet.tables.contributions import ContributionBound
    from discreet.tables.row_batches import iter_row_batches

    refuse_contradictions(
        epsilon,
        by,
        cost,
        same_people=same_people,
        person=person,
        rows_per_person=rows_per_person,
        **ledger,
    )
    charge = LedgerCharge(**ledger, purpose="private evaluation", data_source=data)
    trained_model = NaiveBayesModel.read(model)
    bound = ContributionBound.from_options(person, rows_per_person, missing_person)
    score_batch = make_batch_scorer(trained_model, epsilon, by, cost)
    scores: Any = None
    row_count = 0
    with show_progress("evaluating") as report_progress, error_context(data):
        if epsilon is not None:
            warn_of_repeated_ids(data, trained_model.schema, bound, table)
        batches = iter_row_batches(
            data,
            trained_model.inputs,
            with_target=True,
            copies=[] if by is None else [by],
            table=table,
            bound=bound,
        )
        for batch, _ in batches:
            with row_offset_context(row_count):
                batch_scores = score_batch(batch, batch[trained_model.schema.target])
            scores = batch_scores if scores is None else scores + batch_scores
            row_count += batch.num_rows
            report_progress(row_count)
    if not row_count:
        raise FormatError(f"{data}: has no rows to evaluate")
    facts = {"model": model, "data": data, "protected": epsilon is not None}
    if epsilon is not None:
        from discreet.central.private_scores import release_scores
        from discreet.randomness import CryptoRandom

        scores = release_scores(
            trained_model,
            scores,
            epsilon,
            CryptoRandom(),
            same_people=same_people,
            bound=bound,
            charge=charge,
        )
        facts |= charge.to_body()
    if as_json:
        print_json({**facts, **scores.to_body()})
    elif epsilon is None:
        print_scores(scores)
    else:
        print_noisy_scores(scores)
        print_guarantee(scores.promise)
        charge.print_remaining()


@click.command(epilog=format_example("discreet show model.json --strongest 5"))
@click.argument("model")
@click.option(
    "--strongest",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of pieces of evidence to show.",
)
@json_option
def show(model: str, strongest: int, as_json: bool) -> None:
    """Print a MODEL file: its guarantee, its class shares and its strongest evidence.

    Evidence is ordered by what it does for people: their share, shown with its 95 % interval, times
    the log-odds. What the known noise could turn round is left out (95 % confidence for each line),
    and so is a value that may be nobody's (95 % for all values together).
    """
    from discreet.model import NaiveBayesModel

    trained_model = NaiveBayesModel.read(model)
    if as_json:
        print_json(make_model_body(trained_model, strongest))
    else:
        trained_model.show(strongest)


def make_model_body(model: NaiveBayesModel, strongest: int) -> dict[str, Any]:
    """Make the JSON values of what ``show`` prints."""
    import numpy as np

    from discreet.model import GaussianFactor
    from discreet.model.strongest_evidence import find_strongest_evidence
    from discreet.schema.schema import format_value

    class_names = [format_value(class_value) for class_value in model.schema.classes]
    evidence = find_strongest_evidence(model, strongest)
    return {
        "guarantee": {**model.guarantee.to_body(), "text": str(model.guarantee)},
        "target": model.schema.target,
        "prior": dict(zip(class_names, np.exp(model.log_prior).tolist(), strict=True)),
        "features": list(model.inputs.names),
        "schema_digest": model.schema.digest,
        "strongest": [line.to_body() for line in evidence],
        "numeric": [
            {
                "feature": factor.name,
                "mean": dict(zip(class_names, factor.mean.tolist(), strict=True)),
                "deviation": dict(zip(class_names, np.sqrt(factor.variance).tolist(), strict=True)),
            }
            for factor in model.factors
            if isinstance(factor, GaussianFactor)
        ],
    }


@click.command(
    epilog=format_example(
        "discreet export model.json --to onnx -o model.onnx",
        "discreet export model.json --to sql --dialect postgres --table visits --key id "
        "-o predict.sql",
    )
)
@click.argument("model")
@click.option(
    "--to",
    "kind",
    required=True,
    type=click.Choice(["onnx", "skops", "sql"]),
    help="onnx for other languages and runtimes, skops for scikit-learn without pickle, sql for "
    "databases.",
)
@click.option(
    "--dialect",
    type=click.Choice(["duckdb", "postgres", "sqlite"]),
    help="Of --to sql: the database that is to run it.",
)
@click.option("--table", help="Of --to sql: the table or view to predict, such as clinic.visits.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMN",
    help="Of --to sql: a column to copy to the result, to know which row a prediction is of; "
    "repeatable.",
)
@click.option("--proba", is_flag=True, help="Of --to sql: also give P(class) for every class.")
@click.option("-o", "--output", type=OUTPUT, required=True, help="The file to write.")
@json_option
def export(
    model: str,
    kind: str,
    dialect: Any,
    table: str | None,
    keys: tuple[str, ...],
    proba: bool,
    output: str,
    as_json: bool,
) -> None:
    """Write a MODEL file as an ONNX graph, a skops file or a SELECT; all predict the same.

    ONNX: one input per feature, of shape (rows, 1), text or double; the outputs are label and
    probabilities.
    skops: load it with trusted=["discreet.model.export.ModelClassifier"].
    SQL: one query, which reads the table's columns by name, whatever their order and types. A row
    with a value that predict would refuse gets NULL as its prediction.
    """
    from discreet.model import NaiveBayesModel
    from discreet.model.export import to_onnx, to_skops, to_sql

    if kind == "sql" and (dialect is None or table is None):
        raise click.UsageError("--to sql needs --dialect and --table: which database, which table.")
    if kind != "sql" and (dialect is not None or table is not None or keys or proba):
        raise click.UsageError("--dialect, --table, --key and --proba belong to --to sql.")
    trained_model = NaiveBayesModel.read(model)
    if kind == "sql":
        content = to_sql(
            trained_model, str(table), dialect=dialect, keys=keys, with_probabilities=proba
        ).encode()
    else:
        content = to_onnx(trained_model) if kind == "onnx" else to_skops(trained_model)
    write_file(output, content)
    if trained_model.guarantee.trust != "none":
        for reason in trained_model.guarantee.void_reasons:
            print_warning(f"the promise of this model is not kept: {reason}")
    if as_json:
        print_json({"output": output, "format": kind, "bytes": len(content)})
    else:
        print_note(f"{output}: {len(content):,} bytes")


@click.command(epilog=format_example("discreet sample model.json -n 1000 -o synthetic.csv"))
@click.argument("model")
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="Number of records.",
)
@click.option("--seed", type=click.IntRange(min=0), help="The same seed gives the same records.")
@click.option(
    "-o",
    "--output",
    type=make_output("synthetic"),
    help="A .csv or .parquet file instead of standard output.",
)
@json_option
def sample(model: str, count: int, seed: int | None, output: str | None, as_json: bool) -> None:
    """Draw synthetic records from a released MODEL, at no further cost in privacy.

    They follow what the model knows: class shares, and each feature within a class; features are
    independent within a class. The guarantee of the model is printed on standard error, and stored
    in the metadata of a Parquet file; a CSV file holds records only, so that every program can read
    it.
    """
    from discreet.model import NaiveBayesModel
    from discreet.model.sampling import sample_records as draw_records

    trained_model = NaiveBayesModel.read(model)
    with show_progress("drawing", "records"):
        synthetic_columns = draw_records(trained_model, count, seed)
    promise_lines = [
        "synthetic records, drawn from a released model",
        *str(trained_model.guarantee).split("\n"),
    ]
    if as_json and output is None:
        values_by_column = {
            column_name: list(column) for column_name, column in synthetic_columns.items()
        }
        print_json(
            {"rows": count, "promise": "\n".join(promise_lines), "columns": values_by_column}
        )
        return
    if output is None:
        click.echo(_format_csv(synthetic_columns), nl=False)
        print_note("\n".join(promise_lines))
        return
    if output.lower().endswith(".parquet"):
        write_file(output, _encode_parquet(synthetic_columns, promise_lines))
    elif output.lower().endswith(".csv"):
        write_file(output, _format_csv(synthetic_columns))
    else:
        raise FormatError(f"{output}: records go to a file that ends in .csv or .parquet")
    if as_json:
        print_json({"output": output, "rows": count, "promise": "\n".join(promise_lines)})
    else:
        print_note(f"{output}: {count:,} {promise_lines[0]}")
        print_note("\n".join(promise_lines[1:]))


def _format_csv(columns: dict[str, Any]) -> str:
    """Format records as CSV, with values as in the schema; a missing value is empty."""
    import csv
    import io

    from discreet.schema.schema import format_value

    spelt_columns = [
        ["" if value is None else format_value(value) for value in column]
        for column in columns.values()
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*spelt_columns, strict=True))
    return text.getvalue()


def _encode_parquet(columns: dict[str, Any], promise_lines: list[str]) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet

    record_table = pa.table(
        {column_name: pa.array(_convert_column(column)) for column_name, column in columns.items()}
    )
    metadata = {
        **(record_table.schema.metadata or {}),
        b"discreet.promise": "\n".join(promise_lines).encode(),
    }
    buffer = io.BytesIO()
    pa.parquet.write_table(record_table.replace_schema_metadata(metadata), buffer)
    return buffer.getvalue()


def _convert_column(column: Any) -> list[Any]:
    """Convert a column for Arrow: unchanged if its values share a type, otherwise as text."""
    from discreet.schema.schema import format_value

    values: list[Any] = column.tolist()
    if len({type(value) for value in values if value is not None}) <= 1:
        return values
    return [None if value is None else format_value(value) for value in values]
