"""What people see on a terminal of any width: whole words, whole titles, indented promises."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

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
