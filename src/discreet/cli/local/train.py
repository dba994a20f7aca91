"""``discreet local train``: a tally to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import about, write
from discreet.cli.local.plan import promise_of
from discreet.cli.output import console, example, json_option, print_json
from discreet.schema import text_of

if TYPE_CHECKING:
    from discreet.local.tally import Tally

__all__ = ["read_tally", "train"]


@click.command(
    epilog=example(
        "discreet local train tally.json -o model.json",
        "discreet evaluate model.json people.csv",
    )
)
@click.argument("tally")
@click.option("-o", "--output", required=True, help="The model file to write.")
@click.option(
    "--postprocess",
    type=click.Choice(["none", "paper", "norm-sub", "norm-cut", "bayes"]),
    help="How noisy counts become probabilities; 'bayes' unless nothing is noisy.",
)
@json_option
def train(tally: str, output: str, postprocess: Any, as_json: bool) -> None:
    """Estimate a model from a TALLY file."""
    import numpy as np

    from discreet.estimation import estimate
    from discreet.local.inversion import statistics_of

    counted = read_tally(tally)
    with about(tally):
        model = estimate(statistics_of(counted), postprocess)
    write(output, model.to_json())
    classes = [text_of(value) for value in model.schema.classes]
    prior = dict(zip(classes, np.exp(model.log_prior).tolist(), strict=True))
    if as_json:
        facts = {"output": output, "reports": counted.people, "prior": prior}
        print_json({**facts, "guarantee": promise_of(model.guarantee)})
        return
    printer = console()
    printer.print(str(model.guarantee))
    printer.print(f"\nreports    {counted.people:,} counted")
    printer.print(f"features   {len(model.factors)} of {len(model.schema.features)}")
    shares = ", ".join(f"{name} {share:.3f}" for name, share in prior.items())
    printer.print(f"prior      {shares}")
    printer.print(f"{output}: {model.schema.target} from {', '.join(model.schema.names)}")


def read_tally(path: str) -> Tally:
    """Read a tally file."""
    from discreet.local.tally import Tally

    with about(path):
        return Tally.read(path)
