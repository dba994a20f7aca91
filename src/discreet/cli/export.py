"""``discreet export``: a model for programs that do not have discreet."""

from __future__ import annotations

import click

from discreet.cli.files import OUTPUT, read_model, write
from discreet.cli.output import example, json_option, print_json

__all__ = ["export"]


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
