"""Questions of ``discreet schema new``; every answer is checked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.drafting import Column, SchemaDraft

__all__ = ["ask_for_rest"]

T = TypeVar("T")


def ask_for_rest(draft: SchemaDraft) -> Iterator[SchemaDraft]:
    """Ask for what the user knows without the data; yield the draft after every answer.

    Parameters
    ----------
    draft : SchemaDraft
    """
    names = [column.name for column in draft.columns]
    click.echo(
        f"{draft.source}: {', '.join(names)}. Answer from what you know without looking at the "
        "data; it becomes public. An empty answer leaves a place open.",
        err=True,
    )
    if not draft.target:
        known = _answer("Which column holds the classes", lambda text: draft.aimed(text))
        draft = known or draft
        yield draft
    if draft.target and draft.classes is None:
        draft = replace(draft, classes=_values(f"Every class of {draft.target}, with commas"))
        yield draft
    columns: dict[str, Column | None] = {column.name: column for column in draft.columns}
    for name, column in columns.items():
        for state in _ask_for_column(column) if column is not None else ():
            columns[name] = state
            used = tuple(column for column in columns.values() if column is not None)
            yield replace(draft, columns=used)


def _ask_for_column(column: Column) -> Iterator[Column | None]:
    """Ask about one column; yield it after every answer, or None if it is not used."""
    if not column.open:
        return
    kinds = {"n": "numeric", "w": "whole", "c": "categorical", "s": "skip", "": ""}
    guess = {"numeric": "w" if column.integer else "n", "categorical": "c"}.get(column.kind, "")
    words = f"{column.name}: (n)umber, (w)hole number, (c)ategories or (s)kip"
    choice, shown = click.Choice([*kinds]), bool(guess)
    kind = kinds[
        click.prompt(words, guess, type=choice, show_choices=False, show_default=shown, err=True)
    ]
    if kind == "skip":
        yield None
    if kind in ("skip", ""):
        return
    if kind == "categorical":
        column = replace(column, kind="categorical", integer=False)
        yield column
        column = replace(column, values=_values(f"  every value of {column.name}, with commas"))
    else:
        column = replace(column, kind="numeric", integer=kind == "whole")
        yield column
        bounds = _answer(
            "  its least and its largest possible value, such as 0 100",
            lambda text: _bounds(column, text),
        )
        column = replace(column, bounds=bounds)
    yield column
    if not column.open:
        missing = click.confirm(f"  may {column.name} be missing", default=True, err=True)
        yield replace(column, optional=missing)


def _bounds(column: Column, text: str) -> tuple[float, float]:
    lower, upper = (float(part) for part in text.replace(",", " ").split())
    replace(column, bounds=(lower, upper)).feature()  # raises if the bounds are invalid
    return lower, upper


def _values(words: str) -> tuple[Any, ...] | None:
    from discreet.schema import Categorical

    def read(text: str) -> tuple[Any, ...]:
        listed = tuple(part.strip() for part in text.split(",") if part.strip())
        return Categorical("values", listed).values

    return _answer(words, read)


def _answer(words: str, read: Callable[[str], T]) -> T | None:
    """Ask until the answer is valid or empty."""
    while True:
        text = click.prompt(words, default="", show_default=False, err=True)
        if not text.strip():
            return None
        try:
            return read(text.strip())
        except DiscreetError as error:
            click.echo(f"  {error}", err=True)
        except ValueError:
            click.echo("  two numbers are needed, such as: 0 100", err=True)
