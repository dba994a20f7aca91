"""What people see on a terminal of any width: whole words, whole titles, indented promises."""

from __future__ import annotations

import io
import random
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from discreet import Guarantee
from discreet.display.terminal import HangingText, make_table


def printed(what, width):
    file = io.StringIO()
    Console(file=file, width=width, markup=False, highlight=False, emoji=False).print(what)
    return file.getvalue()


def comparison():
    """As wide as what ``discreet compare`` prints at five epsilons."""
    shown = make_table("accuracy in %, 95 % intervals", "trust", "method", *[">0.1"] * 5)
    shown.add_row("federated", "masks", *["53.7 ±38.1★"] * 5)
    shown.add_row("central", "histogram", *["83.9 ±0.8"] * 5)
    shown.add_row("survey", "questions", *["65.9 ±7.2"] * 5)
    return shown


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 120])
def test_no_word_of_a_table_is_cut_at_any_width(width):
    shown = printed(comparison(), width)
    assert "…" not in shown
    for word in ("federated", "histogram", "questions", "53.7", "±38.1★", "65.9"):
        assert re.search(rf"(?<!\S){re.escape(word)}(?!\S)", shown), word
    assert max(map(len, shown.splitlines())) <= width


def test_a_title_is_one_line_however_narrow_its_table():
    shown = make_table("down: true class, across: predicted", "", ">no")
    shown.add_row("no", "12")
    assert printed(shown, 80).splitlines()[0].rstrip() == "down: true class, across: predicted"


def test_on_a_narrow_terminal_no_line_is_empty_for_a_cell_without_a_name():
    shown = make_table("", "score", ">value", "")
    shown.add_row("accuracy of the model", "0.8303", "")
    assert printed(shown, 20) == "score: accuracy of \nthe model\nvalue: 0.8303\n\n"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_what_goes_on_stands_further_in_than_what_begins(width):
    promise = str(Guarantee(1.0))
    lines = printed(HangingText(promise), width).splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(" ".join(lines).split()) == " ".join(promise.split()), "nothing is lost"
    begun = [line for line in lines if not re.match(r"  (  )?\S", line)]
    assert begun == [lines[0]], "only the headline begins at the left"
    assert any(line.startswith("    ") for line in lines), "a continuation"


WORDS = [
    "a",
    "federated",
    "53.7",
    "±38.1★",
    "Month-to-month",
    "47 % (45 to 50)",
    "日本語",
    "x" * 25,
    "",
]


@pytest.mark.slow
def test_every_table_keeps_its_right_border():
    """The known-bad twin gives columns a least width and lets the library shrink them."""
    draw, cut_tables, cut_twins = random.Random(3), 0, 0
    for width in [50, 80] * 150:
        heads = [draw.choice(["", ">"]) + draw.choice(WORDS) for _ in range(draw.randint(1, 5))]
        shown, twin = make_table("title", *heads), make_table("title", *heads)
        for _ in range(3):
            row = [" ".join(draw.choices(WORDS, k=draw.randint(0, 4))) for _ in heads]
            shown.add_row(*row)
            twin.add_row(*row)
        text = printed(shown, width)
        cut_tables += has_cut_border(text, width)
        if "┏" in text:
            for column in twin.columns:
                cells = [str(column.header), *map(str, column.cells)]
                parts = cells if column.no_wrap else " ".join(cells).split()
                column.min_width = max(map(len, parts), default=1)
            twin.__class__ = Table
            cut_twins += has_cut_border(printed(twin, width), width)
    assert cut_tables == 0
    assert cut_twins > 0


def has_cut_border(text, width):
    lines = [line for line in text.splitlines() if line[:1] in set("┏┃┡│└")]
    return any(
        cell_len(line) != cell_len(lines[0]) or cell_len(line) > width or line[-1] not in "┓┃┩│┘"
        for line in lines
    )
