"""Every table that a command prints keeps its right border on terminals of 80 and of 50 columns."""

import pytest
from click.testing import Result
from rich.cells import cell_len

COMMANDS = [
    "show noisy.json",
    "evaluate model.json others.csv",
    "datasets list",
    "schema show schema.json",
    "schema check schema.json others.csv",
    "budget ledger.json",
    "local plan schema.json --epsilon 2 -o plan.json",
    "local size schema.json --epsilon 2 --respondents 1000",
    "survey check questionnaire.yaml",
    "survey privacy questionnaire.yaml",
    "survey size questionnaire.yaml --respondents 1000",
    "compare others.csv --schema schema.json --epsilon 1,10 --folds 2 --repeats 1",
]
WITHOUT_TABLES = {"schema check schema.json others.csv"}


def list_cut_lines(text: str, width: int) -> list[str]:
    """The lines of tables that are too long or do not end with a border."""
    return [
        line
        for line in text.splitlines()
        if line[:1] in set("┏┃┡│└") and (line[-1] not in "┓┃┩│┘" or cell_len(line) > width)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_tables_keep_their_right_border(command, run, monkeypatch):
    run("train", "population.csv", "--schema", "schema.json", "--epsilon", 2, "-o", "noisy.json",
        "--budget-file", "ledger.json", "--budget-total", 5)  # fmt: skip
    run("survey", "new", "-o", "questionnaire.yaml")
    for width in (50, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        arguments = command.split()
        shown: Result = run(*arguments, *(["--force"] if "-o" in arguments else []))
        assert shown.exit_code == 0, shown.output
        assert list_cut_lines(shown.stdout, width) == []
        if width == 80 and command not in WITHOUT_TABLES:
            assert "┏" in shown.stdout


def test_a_cut_table_is_noticed():
    """The known-bad twin."""
    assert list_cut_lines("┏━━━┳━━\n┃ a ┃ b\n└───┴──", 80) != []
    assert list_cut_lines("┏━━━┓\n┃ a ┃\n└───┘\nsome words", 80) == []
    assert list_cut_lines("┏━━━┓", 4) != []
