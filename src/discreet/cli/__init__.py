"""The command line: ``discreet --help``.

The module of a command is imported when the command runs, and heavy packages inside the command, so
that help appears at once. A DiscreetError is printed as one sentence, with exit code 2.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from functools import wraps
from importlib import import_module
from typing import IO, Any

import click

from discreet import __version__
from discreet.cli.files import NEW_FOLDER, Output, check_outputs
from discreet.cli.output import QUIET_KEY, quiet_option
from discreet.cli.overwrite import FORCE_KEY, force_option
from discreet.errors import DiscreetError

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for plugins takes 40 ms

__all__ = ["CommandGroup", "main"]

COMMANDS = {
    "demo": ("demo", "The same classifier under every trust model, with a report."),
    "schema": ("schema", "Start, infer, check and show a table's public description."),
    "train": ("train", "Train a classifier, with privacy for everyone in a table."),
    "local": ("local", "Collect from people who trust nobody: plan, report, tally, train."),
    "survey": ("survey", "Ask by randomized response: questionnaire, sheets, tally, train."),
    "announce": ("serve", "Write the announcement of a survey (texts, languages, dates)."),
    "serve": ("serve", "Serve plans and questionnaires to people's browsers."),
    "letters": ("letters", "Print invitations to a survey, each with a code and a QR code."),
    "verify": ("verify", "Check that the page of a survey is the one of this release."),
    "page": ("verify", "Write the page of a survey as files, for another host."),
    "federated": ("federated", "Train across data owners; nobody hands over a table."),
    "predict": ("predict", "Predict the classes of a table's rows."),
    "evaluate": ("predict", "Compare a model's predictions with the true classes."),
    "show": ("predict", "Print a model: its guarantee, class shares, evidence."),
    "sample": ("predict", "Draw synthetic records from a released model."),
    "compare": ("compare", "Compare the accuracy of the trust models on your own table."),
    "reproduce": (
        "compare",
        "Recompute experiments of papers, with verdicts.",
    ),
    "export": ("predict", "Write a model for programs that do not have discreet."),
    "certificate": ("certificate", "Write a page about a model for those who file it."),
    "audit": ("audit", "Audit a privacy guarantee empirically or exactly."),
    "budget": (
        "budget",
        "Show the privacy budget spent and left, and a step's cost.",
    ),
    "datasets": ("datasets", "List and fetch the benchmark tables."),
}
"""Name to module and one line of help, in the order in which a newcomer meets them."""


class CommandGroup(click.Group):
    """Commands whose outputs are compared with their inputs before they begin.

    See :mod:`discreet.cli.files`.

    Parameters
    ----------
    commands_by_name : mapping of name to (module, line of help), optional
        Commands in the order in which they are listed, each in a module of :mod:`discreet.cli`
        that is imported when it is run.
    """

    def __init__(
        self,
        *args: Any,
        commands_by_name: Mapping[str, tuple[str, str]] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.commands_by_name = commands_by_name or {}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command that compares its outputs with its inputs before it runs.

        A misspelt name is refused with the one that is probably meant.
        """
        command = super().get_command(ctx, cmd_name)
        if cmd_name in self.commands_by_name:
            module_name, _ = self.commands_by_name[cmd_name]
            command = getattr(import_module(f"discreet.cli.{module_name}"), cmd_name)
        if command is None:
            close_names = difflib.get_close_matches(cmd_name, self.list_commands(ctx), 1)
            if close_names and not ctx.resilient_parsing:
                ctx.fail(f"No such command {cmd_name!r}. Did you mean {close_names[0]}?")
            return None
        if isinstance(command, click.Group) or command.callback is None:
            return command
        checked_command, callback = copy(command), command.callback
        checked_command.params = [*command.params, quiet_option]
        if any(
            isinstance(command_param.type, Output) and command_param.type is not NEW_FOLDER
            for command_param in command.params
        ):
            checked_command.params.insert(-1, force_option)
        if ctx.resilient_parsing:  # shell completion: untyped parameters complete as files
            checked_command.params = [
                _with_path_completion(param) for param in checked_command.params
            ]

        @wraps(callback)
        def run_checked(*args: Any, quiet: bool, force: bool = False, **options: Any) -> Any:
            context = click.get_current_context()
            context.meta[QUIET_KEY] = quiet or context.meta.get(QUIET_KEY)
            context.meta[FORCE_KEY] = force
            check_outputs(context)
            return callback(*args, **options)

        checked_command.callback = run_checked
        return checked_command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return [*self.commands_by_name] or super().list_commands(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their lines of help."""
        if not self.commands_by_name:
            super().format_commands(ctx, formatter)
            return
        with formatter.section("Commands"):
            help_by_name = {name: line for name, (_, line) in self.commands_by_name.items()}
            formatter.write_dl(list(help_by_name.items()))


def _with_path_completion(param: click.Parameter) -> click.Parameter:
    if param.type is not click.STRING:
        return param
    path_param = copy(param)
    path_param.type = click.Path()
    return path_param


class Refusal(click.ClickException):
    """An error that discreet raised on purpose, as one sentence."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence on standard error; passwords in URLs are masked."""
        sentence = re.sub(r"://[^\s/@]*:\S*@", "://…@", " ".join(self.message.split()))
        click.echo(f"discreet: {sentence}", err=True, file=file)


CLICK_MESSAGE_REWRITES = (
    (r" is not a valid float(?: range)?\.?$", " is not a number."),
    (r" is not a valid integer(?: range)?\.?$", " is not a whole number."),
    (r" is not in the range (\S+)<=x<=(\S+?)\.?$", r" must be from \1 to \2."),
    (r" is not in the range x>=(\S+?)\.?$", r" must be at least \1."),
    (r" is not in the range x<=(\S+?)\.?$", r" must be at most \1."),
)
"""Patterns of click's messages that use words of Python, with plain replacements."""


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert DiscreetError and OSError into one sentence."""
    try:
        yield
        sys.stdout.flush()  # a full disk must fail here, not when the interpreter exits
    except click.UsageError as error:
        for pattern, plain_text in CLICK_MESSAGE_REWRITES:
            vars(error)["message"] = re.sub(pattern, plain_text, error.message)
        raise
    except DiscreetError as error:
        raise Refusal(str(error)) from None
    except BrokenPipeError:
        raise  # the reader closed the pipe (for example `head`); click exits quietly
    except OSError as error:
        if error.filename is not None:
            raise Refusal(f"{error.filename}: {error.strerror}") from None
        _discard_output()
        raise Refusal(f"standard output cannot be written: {error.strerror}") from None


def _discard_output() -> None:
    """Discard buffered output; otherwise Python retries the flush at exit and prints an error."""
    with suppress(OSError, ValueError):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())
        os.close(null_device)


class Program(CommandGroup):
    """The group of all commands; converts errors into sentences."""

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Parse the arguments; ``--help`` is printed here."""
        with _convert_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; errors become a sentence, Ctrl-C becomes exit code 130."""
        try:
            with _convert_errors():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(130)
        except click.Abort as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # at the prompt of a question
                ctx.exit(130)
            raise
        except RuntimeError as error:
            if str(error) == "Query interrupted":  # DuckDB raises this on Ctrl-C
                ctx.exit(130)
            raise


@click.command(
    cls=Program,
    commands_by_name=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: discreet demo",
)
@click.option("--quiet", is_flag=True, help=quiet_option.help)
@click.version_option(__version__, prog_name="discreet", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context, quiet: bool) -> None:
    """Naive Bayes classifiers from data nobody has to reveal."""
    ctx.meta[QUIET_KEY] = quiet
