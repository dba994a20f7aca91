"""Wrong inputs on the command line: each is one sentence that names the way out.

A case is a command and the words that its message must have: what is wrong, and what to do. None
may end in a traceback, run for long, leave an output behind or repeat a row of a table.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.wrong_files import SECRET, fill
from discreet.cli import main

TRAIN = "--schema schema.json --epsilon 1 -o o.json"
PYTHON = re.compile(
    r"\b(None|True|False|math\.inf|np\.|dict|tuple|float|str|bool|codec|Errno|NoneType)\b"
    r"|\w+=['\"]|(Numeric|Categorical|Schema)[.(]|\b\w+(Error|Exception)\b"
)
"""Words of Python, which somebody at a command line need not know."""

Run = Callable[[str], Result]

TABLES = {  # DATA of discreet train, and what the message must say
    "nosuch.csv": "nosuch.csv: there is no such file",
    "adir": "is a folder; write which files you mean: adir/",
    "'none-*.csv'": "no file matches this pattern",
    "bin.csv": "is not text in UTF-8; save it as UTF-8",
    "empty.csv": "is empty; a CSV file starts with the names of its columns",
    "header.csv": "has no rows; give a table with one row per person",
    "u16.csv": "is text in UTF-16; save it as UTF-8",
    "latin1.csv": "line 2 is not text in UTF-8; save it as UTF-8",
    "people.xlsx": "is a spreadsheet; save it as CSV",
    "torn.parquet": "cannot be read",
    "schema.json": "its name must end in .csv, .tsv, .csv.gz or .parquet; rename or convert it",
    "dup.csv": "the first line must name every column once, 'age' does not",
    "dropcol.csv": "lacks the column city; it has age, income, bought",
    "notarget.csv": "lacks the column bought; it has age, income, city",
    "ragged.csv": "line 7 has 3 values, but the first line names 4 columns; add what is missing",
    "ragged2.csv": "line 7 has 5 values, but the first line names 4 columns; put such values in",
    "ragged3.csv": "line 7 has 3 values, but the first line names 4 columns; add what is missing",
    "openquote.csv": "line 7 opens a quotation mark that is not closed; close it",
    "hugeint.csv": "age: inf is outside the public bounds [0, 125]; widen the schema, or set its "
    "outliers to 'clip'",
    "inf.csv": "income: inf is outside the public bounds [0, 200000]; widen the schema",
    "text.csv": "age: 'old' is not a number; if it means missing, list it in missing_tokens",
    "unseen.csv": "city: 'Rome' is not one of the public values (Köln, Paris, Oslo); add it to "
    "the schema, or set its unseen to 'other'",
    "badclass.csv": "bought: 'perhaps' is not one of the public classes (no, yes); add it",
    "noclass.csv": "bought: a row has no class; remove such rows",
    "neg.csv": "age: -5 is outside the public bounds [0, 125]; widen the schema",
    "frac.csv": "age: 30.5 is not a whole number although its integer is true; round it, or set "
    "integer to false",
    "comma.csv": "income: '1234,5' is not a number",
    "g.duckdb": "is a database; write which table of it: duckdb://g.duckdb#table",
    "duckdb://g.duckdb": "which table? write it after the address: duckdb://…#name",
    "duckdb://g.duckdb#nope": "there is no table 'nope'; there are: people",
    "duckdb://g.duckdb#people": "lacks the columns income, city, bought; it has age",
    "s3://bucket/x.parquet": "s3: files are read from this machine only; fetch it first",
    "https://host/x.csv": "https: files are read from this machine only; fetch it first",
    "mysql://u@h/db#t": "is not installed; run: pip install 'ibis-framework[mysql]'",
    "nodb://h/db#t": "nodb: there is no such kind of database; write duckdb://, sqlite://",
}

ACCEPTED = (
    "people.csv",
    "bom.csv",
    "semi.csv",
    "reorder.csv",
    "extra.csv",
    "quoted.csv",
    "nan.csv",
)

SCHEMAS = {
    "nosuch.json": "there is no such file",
    "adir": "adir: is a folder; give the name of a file in it",
    "people.csv": "this is not a schema: it does not begin with an opening brace as JSON does, so "
    "it is another file, perhaps a table; discreet schema new DATA writes one",
    "empty.csv": "this schema file is empty; discreet schema new DATA writes one",
    "bin.csv": "is not text in UTF-8; give another file",
    "m.json": "this is not a discreet schema: its format says 'discreet/model'; discreet schema",
    "badjson.schema.json": "this schema file is incomplete or damaged (line 14",
    "v99.json": "this schema has version 99, this program reads version 2 only; update discreet",
    "lohi.json": "age: lower 10 is not below upper 5; swap them",
    "nolow.json": "age has no public bounds, and how far one person can move it is unknown; give "
    "it the lower and upper bounds that you know",
    "infb.json": "age has no public bounds",
    "typo.json": "invalid at fetures: there is no such key; did you mean features?",
    "typo2.json": "invalid at age.uper: there is no such key; did you mean upper?",
    "notarget.json": "invalid at target: it is missing; add it",
    "dupfeat.json": "two features are named 'age'; rename one",
    "oneclass.json": "bought: 'yes' is the only class, so there is nothing to predict; list at",
}

OPTIONS = {  # added to a training that is right
    "--epsilon 0": "epsilon is 0.0; give a positive number, or inf",
    "--epsilon -1": "epsilon is -1.0; give a positive number",
    "--epsilon nan": "epsilon is nan; give a positive number",
    "--epsilon abc": "'--epsilon': 'abc' is not a number",
    "--epsilon 1e-300": "epsilon is too small here: the noise would be wider than can be drawn "
    "exactly; give a larger epsilon",
    "--delta 2": "delta is 2.0; it must be at least 0 and below 1",
    "--delta nan": "delta is nan; it must be at least 0 and below 1",
    "--bins 100000000": "'--bins': 100000000 must be from 1 to 1024",
    "--bins 0": "'--bins': 0 must be from 1 to 1024",
    "--bins many": "'--bins': 'many' is not a whole number",
    "--method best": "'best' is not one of 'histogram'",
    "--allocation nope=2": "there is no feature 'nope'; there are age, income, city",
    "--allocation age": "invalid share 'age'; write age=2,sex=1",
    "--frobnicate": "No such option '--frobnicate'",
    "--epsilom 1": "Did you mean '--epsilon'?",
    "--budget-file b.json": "b.json: there is no such ledger; state a total first, with "
    "--budget-total",
    "--budget-total 1": "--budget-total 1 has no effect without a ledger; name its file with "
    "--budget-file budget.json",
    "--budget-total-delta 0": "--budget-total-delta 0 has no effect without a ledger",
    "--budget-composition concentrated": "--budget-composition concentrated has no effect",
    "--budget-file led.json --budget-composition addition": "--budget-composition is for a new "
    "ledger; give --budget-total",
    "--budget-file b.json --budget-total 3 --budget-composition concentrated": "adds up rhos, "
    "which needs a delta above 0",
    "--void": "--void has no effect without a ledger",
    "--budget-file led.json --budget-total-delta 1e-6": "--budget-total-delta 1e-06 is for a new "
    "ledger; give --budget-total as well",
    "-o nosuchdir/o.json": "nosuchdir does not exist; make it first",
    "-o adir": "adir: is a folder; give the name of a file in it",
    "-o people.csv": "people.csv is the file of DATA; an output never replaces an input, choose",
    "-o schema.json": "schema.json is the file of --schema; an output never replaces an input",
    "-o ./adir/../people.csv": "is the file of DATA; an output never replaces an input",
    "--budget-file b.json --budget-total 3 -o b.json": "b.json is the file of --budget-file",
    "--statistics o.json": "is named by both",
}

COMMANDS = {
    "trian people.csv": "No such command 'trian'. Did you mean train?",
    "survey tlly q.yaml": "Did you mean tally?",
    "predict m.json": "Missing argument 'DATA'",
    "predict schema.json people.csv": "schema.json: this is not a discreet model: its format says "
    "'discreet/schema'; discreet train writes one",
    "predict m.json empty.csv": "empty.csv: is empty",
    "predict m.json dropcol.csv": "dropcol.csv: the table lacks the column city; it has",
    "predict m.json unseen.csv -o o.csv": "unseen.csv: city: 'Rome' is not one of the public",
    "predict m.json people.csv --explain 5000": "there is no row 5000; it has 120 rows",
    "predict m.json people.csv -o out.xlsx": "predictions go to a file that ends in .csv or",
    "evaluate m.json notarget.csv": "lacks the column bought; it has age, income, city",
    "evaluate m.json header.csv": "header.csv: has no rows to evaluate",
    "evaluate m.json badclass.csv": "bought: 'perhaps' is not one of the public classes",
    "show nosuch.json": "nosuch.json: there is no such file",
    "show bin.csv": "bin.csv: is not text in UTF-8; give another file",
    "show people.csv": "this is not a model: it does not begin with an opening brace",
    "show m.json --strongest -1": "-1 must be at least 0",
    "sample m.json -n -1 -o o.csv": "-1 must be at least 0",
    "export m.json --to onnx -o nosuchdir/x.onnx": "nosuchdir does not exist; make it first",
    "export m.json --to pmml -o x": "'pmml' is not one of",
    "schema infer people.csv --target nope": "lacks the column nope; it has age, income, city",
    "schema infer empty.csv --target a": "empty.csv: is empty",
    "schema infer header.csv --target bought": "holds no number at all; drop the column, or write",
    "schema show people.csv": "this is not a schema",
    "schema check schema.json unseen.csv": "city: 'Rome' is not one of the public values",
    "datasets fetch nosuch": "there is no benchmark table 'nosuch'; there are adult,",
    "local plan schema.json --epsilon 0": "epsilon is 0.0; it must be above 0",
    "local plan schema.json --epsilon 2 --oracle de --theta 0.3": "theta is 0.3, but de has no "
    "theta; leave it out",
    "local plan schema.json --epsilon 2 --bins 100000000": "must be from 1 to 1024",
    "local size schema.json --epsilon 2": "give --precision or --respondents, one of them",
    "local tally schema.json people.csv -o t.json": "this is not a discreet plan: its format says "
    "'discreet/schema'; discreet local plan writes one",
    "local train m.json -o x.json": "this is not a discreet tally: its format says",
    "survey check people.csv": "this is not a questionnaire",
    "survey tally q.yaml -o t.json": "Name at least one file of sheets",
    "survey tally q.yaml nosuch.jsonl -o t.json": "nosuch.jsonl: there is no such file",
    "survey tally q.yaml foreign.jsonl -o t.json": "none of 120 sheets can be counted (120 "
    "foreign questionnaire); give the questionnaire they were made with",
    "survey tally q.yaml people.jsonl -o t.json": "none of 121 sheets can be counted (121 invalid",
    'survey estimate tally.json ""': "write for example: smokes = yes",
    'survey estimate tally.json "undeclared = yes and"': "there is no question 'undeclared'; there",
    'survey estimate tally.json "sleep = yes"': "sleep: 'yes' is not one of its answers; write one",
    'survey estimate tally.json "sleep < 30"': "cannot be read at '< 30'; answers are compared by "
    "=, !=, in (…) or not in (…) only: list the answers that you mean",
    'survey estimate tally.json "sleep >= well"': "answers are compared by =, !=, in (…)",
    "compare people.csv --schema schema.json --epsilon 1,abc": "epsilon is '1,abc'; write numbers "
    "separated by commas",
    "compare people.csv --schema schema.json --epsilon 1 --methods foo": "unknown method 'foo'; "
    "write all, or some of",
    # tried by newcomers
    "schema check tab.yaml": "line 2, column 1: a tab; indent with spaces",
    "schema check colon.yaml": "line 1, column 5: a colon inside a value; put the value in",
    "schema check list.yaml": "it holds a list, not keys with values; discreet schema new DATA",
    "schema check blank.yaml": "it holds nothing, not keys with values; discreet schema new DATA",
    "survey check blank.yaml": "it holds nothing, not keys with values; discreet survey new writes",
    f"train spaces.csv {TRAIN}": "names must be the same to the letter: rename ' income'",
    f"train upper.csv {TRAIN}": "rename 'Age' to 'age', 'Income' to 'income', 'City' to 'city'",
    f"train thousand.csv {TRAIN}": "list it in missing_tokens; numbers are written like 1234.5",
    f"train '' {TRAIN}": "the name of the table is empty; write a file, such as people.csv",
    "compare upper.csv --schema schema.json": "lacks the columns age, income, city, bought; it has",
    f"train people.csv {TRAIN} --budget-file led.json --budget-total 9": "the total of a ledger "
    "cannot be changed: leave it out",
    f"train people.csv {TRAIN} --budget-file blank.yaml": "blank.yaml: this is not a ledger",
    "train people.csv --schema schema.json --epsilon 1 -o ''": "--output is empty; write the name",
    "predict noversion.json people.csv": 'this model has no version; write "version": 5',
    "demo --out people.csv": "people.csv: is a file; choose another name for the folder",
    "compare people.csv --schema schema.json --trust ''": "unknown trust model ''; write some of",
    "compare people.csv --schema schema.json --methods auto --trust central": "write some of "
    "histogram, histogram-delta, moments, smooth, global, or another --trust",
    "local report plan.json me.json --store kept": "which is not asked for; remove it",
    "local report plan.json old.json --store kept": "age: 200 is outside the public bounds "
    "[0, 125]; correct the answer",
    "survey new -o q.yaml": "q.yaml: exists already; choose another name, or replace",
    "announce q.yaml --example -o q2.yaml": "q2.yaml: exists already; choose another",
    "survey answer q.yaml maybe.json --store kept": "'maybe' is not one of the public values (no, "
    "yes); correct the answer",
    "survey answer q.yaml few.json --store kept": "sleep: there is no answer; add one",
    'survey estimate tally.json "burnout = yes or"': "the predicate ends where an answer or "
    "question is expected; write for example",
    'survey estimate tally.json "(burnout = yes"': "ends where a closing parenthesis is expected",
    'survey estimate tally.json "burnout = yes)"': "has ')' where and, or, or its end is expected",
    "announce people.csv --example -o a.yaml": "this is not a collection: it does not begin with "
    "an opening brace as JSON does, so it is another file, perhaps a table; discreet local plan or",
    "verify http://127.0.0.1:1/s/x": "Connection refused; check the address and the network",
    "audit people.csv": "this is not a plan, questionnaire, manifest or model",
    "audit mine.py": "mine.py: which name in it? write mine.py:NAME",
    "audit mine.py:subject": "mine has no 'subject'; write a name that it defines",
    "budget blank.yaml": "this is not a ledger",
}


@pytest.fixture(scope="module")
def wrong_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files, a questionnaire ``q.yaml``, its tally, and sheets of another questionnaire."""
    folder = tmp_path_factory.mktemp("wrong")
    fill(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        runner = CliRunner()
        assert runner.invoke(main, ["survey", "new", "-o", "q.yaml"]).exit_code == 0
        one = "sleep,medication,alcohol,overtime,burnout\nwell,no,2,no,no\n"
        Path("answers.csv").write_text(one + "well,no,2,no,no\n" * 119)
        made = "survey randomize q.yaml answers.csv -o sheets.csv --seed 1"
        assert runner.invoke(main, made.split()).exit_code == 0, "the answers fit the example"
        made = "survey tally q.yaml sheets.csv -o tally.json"
        assert runner.invoke(main, made.split()).exit_code == 0
        _foreign_sheets()
        _by_newcomers()
        shutil.copy("people.csv", "people.jsonl")
    finally:
        os.chdir(before)
    return folder


def _by_newcomers() -> None:
    """What people write who see the program for the first time."""
    runner, one = CliRunner(), "30,3,Oslo,yes\n31,4,Oslo,no\n"
    sheet: dict[str, object] = {"burnout": "yes", "sleep": "badly", "medication": "no"}
    sheet |= {"alcohol": 2, "overtime": "yes"}
    for name, text in {
        "tab.yaml": "a:\n\t- b\n",
        "colon.yaml": "a: b: c\n",
        "list.yaml": "- a\n- b\n",
        "blank.yaml": "# nothing yet\n",
        "q2.yaml": "# half an hour of work\n",
        "spaces.csv": f"age, income, city, bought\n{one}",
        "upper.csv": f"Age,Income,City,Bought\n{one}",
        "thousand.csv": f'age,income,city,bought\n30,"1,000",Oslo,yes\n{one}',
        "noversion.json": Path("m.json").read_text().replace('"version":', '"versoin":', 1),
        "me.json": json.dumps(sheet),
        "maybe.json": json.dumps(sheet | {"burnout": "maybe"}),
        "few.json": json.dumps({"burnout": "yes"}),
        "old.json": json.dumps({"age": 200, "income": 3, "city": "Oslo", "bought": "yes"}),
        "mine.py": "x = 1\n",
        "boom.py": "raise RuntimeError('no')\n",
    }.items():
        Path(name).write_text(text)
    for line in (
        "local plan schema.json --epsilon 2 --respondents 1000 -o plan.json",
        f"train people.csv {TRAIN} --budget-file led.json --budget-total 2",
    ):
        assert runner.invoke(main, line.split()).exit_code == 0
    Path("o.json").unlink()


def _foreign_sheets() -> None:
    from discreet.collection.report import Report, derive_report_id

    Path("foreign.jsonl").write_text(
        "".join(
            Report("sha256:" + "0" * 64, derive_report_id(bytes([i]) * 16), 0, (0,) * 5).to_json()
            for i in range(120)
        )
    )


@pytest.fixture
def run(wrong_files: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(wrong_files)
    monkeypatch.setenv("COLUMNS", "100")

    def invoke(line: str) -> Result:
        return CliRunner().invoke(main, shlex.split(line), prog_name="discreet")

    return invoke


def _cases() -> dict[str, str]:
    return {
        **{f"train {data} {TRAIN}": said for data, said in TABLES.items()},
        **{
            f"train people.csv --schema {name} --epsilon 1 -o o.json": said
            for name, said in SCHEMAS.items()
        },
        **{f"train people.csv {TRAIN} {more}": said for more, said in OPTIONS.items()},
        **COMMANDS,
    }


def files() -> dict[Path, int]:
    """What lies here and when it was changed; not what locks and Python leave behind."""
    found = [path for path in Path.cwd().rglob("*") if "__pycache__" not in path.parts]
    return {path: path.stat().st_mtime_ns for path in found if path.suffix != ".lock"}


@pytest.mark.parametrize(("line", "said"), _cases().items(), ids=list(_cases()))
def test_a_wrong_input_is_refused_with_the_way_out(line: str, said: str, run: Run) -> None:
    before = files()
    result = run(line)
    assert result.exit_code == 2, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit), "a traceback"
    message = " ".join(result.stderr.split())
    assert said in message
    assert SECRET not in result.output, "an error repeats no row"
    assert not PYTHON.search(message.rpartition("discreet: ")[2]), "a word of Python"
    assert files() == before


def test_a_program_that_fails_is_named_not_traced(run: Run) -> None:
    result = run("audit boom.py:x")
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit), "a traceback"
    assert "RuntimeError: no; run boom by itself first" in result.stderr


def test_a_figure_that_a_paper_does_not_have_is_refused(run: Run, tmp_path: Path) -> None:
    result = run(f"reproduce surveys --figure 99 --quick --out {tmp_path}")
    assert result.exit_code == 2
    assert "surveys has no figure 99; write one of 2, 6" in result.stderr


@pytest.mark.parametrize("name", ACCEPTED)
def test_odd_tables_that_are_right_are_accepted(name: str, run: Run) -> None:
    assert run(f"train {name} {TRAIN}").exit_code == 0
    Path("o.json").unlink()


def test_an_infinite_epsilon_is_taken_and_promises_nothing(run: Run) -> None:
    result = run(f"train people.csv {TRAIN} --epsilon inf")
    Path("o.json").unlink()
    assert result.exit_code == 0
    assert "No privacy: this was computed from raw data" in result.output


def test_few_sheets_are_counted_with_a_warning(run: Run) -> None:
    few = run("survey tally q.yaml sheets.csv -o t.json --expected 1000 --json")
    Path("t.json").unlink()
    assert few.exit_code == 0
    assert json.loads(few.stdout)["counted"] == 120
    assert "120 people sent a sheet, 1,000 were planned for" in few.stderr
    enough = run("survey tally q.yaml sheets.csv -o t.json --expected 200 --json")
    Path("t.json").unlink()
    assert "planned for" not in enough.stderr


def test_a_handful_of_sheets_says_how_little_it_tells(run: Run) -> None:
    lines = Path("sheets.csv").read_text().splitlines(keepends=True)
    Path("handful.csv").write_text("".join(lines[:6]))
    result = run("survey tally q.yaml handful.csv -o t.json")
    Path("t.json").unlink()
    Path("handful.csv").write_text("".join(lines[:2]))
    one = run("survey tally q.yaml handful.csv -o t.json")
    Path("t.json").unlink()
    assert "counted    1 sheet\n" in one.stdout
    assert "there is only 1 sheet: shares" in one.stderr
    assert (
        "there are only 5 sheets: shares of the classes have a standard error of up to"
        in result.stderr
    )
    assert "'discreet survey size' says how many people it takes" in result.stderr


@pytest.mark.parametrize(
    "line",
    [
        "schema show schema.json",
        "datasets list",
        "survey check q.yaml",
        "survey privacy q.yaml",
        "evaluate m.json people.csv",
        "local size schema.json --epsilon 2 --respondents 1000",
        "show m.json",
    ],
)
def test_nothing_of_a_table_is_lost_on_a_narrow_terminal(
    line: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    wide = run(line).stdout
    monkeypatch.setenv("COLUMNS", "30")
    narrow = run(line).stdout
    words = set(re.findall(r"[^\W_]{2,24}", wide))
    lost = words - set(re.findall(r"[^\W_]{2,24}", narrow))
    joined = re.sub(r"\W|_", "", narrow)  # a word that is longer than a line is broken
    assert not {word for word in lost if word not in joined}
