"""``discreet survey``: randomized-response questionnaires; each step a file.

Each command has a module that is imported when it runs; to add a command, add a line to
``COMMANDS``.
"""

from __future__ import annotations

import click

from discreet.cli import CommandGroup
from discreet.cli.output import format_example

__all__ = ["survey"]

COMMANDS = {
    "new": ("survey.design", "Write a commented example questionnaire."),
    "check": ("survey.design", "Explain what a questionnaire asks and promises."),
    "privacy": ("survey.privacy", "Measure how private its answers are."),
    "size": ("survey.design", "How many respondents give which precision."),
    "form": ("survey.design", "Write a form to print, for drawing by hand."),
    "answer": ("survey.train", "One person's device: turn answers into a randomized sheet."),
    "randomize": ("survey.train", "Simulate many devices on a table of true answers."),
    "shuffle": ("survey.train", "The anonymiser: strip ids and order from sheets."),
    "tally": ("survey.train", "Add up sheets."),
    "estimate": ("survey.train", "Estimate for how many people a condition holds."),
    "train": ("survey.train", "Turn a tally into a model."),
    "test": ("survey.train", "A model's accuracy on people whose sheets are randomized."),
}
"""Name to module and one line of help, in the order of a survey."""


@click.command(
    cls=CommandGroup,
    commands_by_name=COMMANDS,
    epilog=format_example(
        "discreet survey new -o questionnaire.yaml",
        "discreet survey privacy questionnaire.yaml",
        "discreet survey answer questionnaire.yaml me.json --store kept > sheet.json",
        "discreet survey tally questionnaire.yaml sheets.jsonl -o tally.json",
        "discreet survey train tally.json -o model.json",
    ),
)
def survey() -> None:
    """Randomized-response surveys: chance decides whether people's true answers are sent."""
