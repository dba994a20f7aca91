"""Questions of ``discreet schema new``; every answer is checked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from discreet.schema.drafting import ColumnDraft, SchemaDraft

__all__ = ["prompt_for_schema"]

T = TypeVar("T")


def prompt_for_schema(draft: SchemaDraft) -> Iterator[SchemaDraft]:
    """Ask for what the user knows without the data; yield the draft after every answer.

    Parameters
    ----------
    draft : SchemaDraft
    """
    column_names = [column.name for column in draft.columns]
    click.echo(
        f"{draft.source}: {', '.join(column_names)}. Answer from what you know without looking at "
        "the data; it becomes public. An empty answer leaves a place open.",
        err=True,
    )
    if not draft.target:
        draft_with_target = _ask_until_valid(
            "Which column holds the classes", lambda text: draft.with_target(text)
        )
        draft = draft_with_target or draft
        yield draft
    if draft.target and draft.classes is None:
        draft = replace(
            draft, classes=_ask_for_values(f"Every class of {draft.target}, with commas")
        )
        yield draft
    columns_by_name: dict[str, ColumnDraft | None] = {
        column.name: column for column in draft.columns
    }
    for column_name, column in columns_by_name.items():
        for column_state in _ask_for_column(column) if column is not None else ():
            columns_by_name[column_name] = column_state
            used_columns = tuple(
                column for column in columns_by_name.values() if column is not None
            )
            yield replace(draft, columns=used_columns)


def _ask_for_column(column: ColumnDraft) -> Iterator[ColumnDraft | None]:
    """Ask about one column; yield it after every answer, or None if it is not used."""
    if not column.open_fields:
        return
    kind_by_letter = {
        "n": "numeric",
        "w": "whole",
        "d": "date",
        "c": "categorical",
        "s": "skip",
        "": "",
    }
    letter_by_kind = {"numeric": "w" if column.integer else "n", "categorical": "c", "date": "d"}
    guessed_letter = letter_by_kind.get(column.kind, "")
    question_text = f"{column.name}: (n)umber, (w)hole number, (d)ate, (c)ategories or (s)kip"
    letter_choice, has_guess = click.Choice([*kind_by_letter]), bool(guessed_letter)
    chosen_kind = kind_by_letter[
        click.prompt(
            question_text,
            guessed_letter,
            type=letter_choice,
            show_choices=False,
            show_default=has_guess,
            err=True,
        )
    ]
    if chosen_kind == "skip":
        yield None
    if chosen_kind in ("skip", ""):
        return
    if chosen_kind == "categorical":
        column = replace(column, kind="categorical", integer=False)
        yield column
        column = replace(
            column, values=_ask_for_values(f"  every value of {column.name}, with commas")
        )
    elif chosen_kind == "date":
        column = replace(column, kind="date", integer=False, by=_ask_for_unit(column))
        yield column
        if column.open_fields:
            days = _ask_until_valid(
                "  its first and its last possible day, such as 2015-01-01 2026-12-31",
                lambda text: _parse_days(column, text),
            )
            column = replace(column, bounds=days)
    else:
        column = replace(column, kind="numeric", integer=chosen_kind == "whole")
        yield column
        bounds = _ask_until_valid(
            "  its least and its largest possible value, such as 0 100",
            lambda text: _parse_bounds(column, text),
        )
        column = replace(column, bounds=bounds)
    yield column
    if not column.open_fields:
        may_be_missing = click.confirm(f"  may {column.name} be missing", default=True, err=True)
        yield replace(column, optional=may_be_missing)


def _ask_for_unit(column: ColumnDraft) -> str:
    """Ask how a date is cut."""
    from discreet.schema.dates import PART_VALUES

    units = ["day", "month", "year", *PART_VALUES]
    return str(click.prompt(f"  cut {column.name} by", "month", type=click.Choice(units), err=True))


def _parse_days(column: ColumnDraft, text: str) -> tuple[str, str]:
    first, last = text.replace("..", " ").replace(",", " ").split()
    replace(column, bounds=(first, last)).to_feature()  # raises if the days are invalid
    return first, last


def _parse_bounds(column: ColumnDraft, text: str) -> tuple[float, float]:
    lower, upper = (float(number_text) for number_text in text.replace(",", " ").split())
    replace(column, bounds=(lower, upper)).to_feature()  # raises if the bounds are invalid
    return lower, upper


def _ask_for_values(question_text: str) -> tuple[Any, ...] | None:
    from discreet.schema.schema import Categorical

    def parse_values(text: str) -> tuple[Any, ...]:
        value_texts = tuple(
            value_text.strip() for value_text in text.split(",") if value_text.strip()
        )
        return Categorical("values", value_texts).values

    return _ask_until_valid(question_text, parse_values)


def _ask_until_valid(question_text: str, parse_answer: Callable[[str], T]) -> T | None:
    """Ask until the answer is valid or empty."""
    while True:
        text = click.prompt(question_text, default="", show_default=False, err=True)
        if not text.strip():
            return None
        try:
            return parse_answer(text.strip())
        except DiscreetError as error:
            click.echo(f"  {error}", err=True)
        except ValueError:
            click.echo("  two values are needed, such as those in the question", err=True)
