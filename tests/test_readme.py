"""The README, followed to the letter: its ten lines run, its figures and links are right.

The package is copied without anything that was built, and the program is started from there, so
that a file that is missing from the repository is missed here, too. The same holds for the tour of
commands in docs/reference.md. What the README says about ``make`` is looked up in the Makefile;
`.ci/run` runs it. The comparison takes a minute, so that only a part of it runs unless SOAK is set.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.datasets.population import MORTGAGE_BAYES_ACCURACY

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
]

TOUR = [
    line.split("#")[0].strip()
    for line in re.findall(
        r"^    (discreet .+)$", (ROOT / "docs/reference.md").read_text("utf-8"), re.M
    )
]
DASHBOARD = (ROOT / "benchmarks/RESULTS.md").read_text("utf-8")
RESULTS = DASHBOARD + "".join(
    path.read_text("utf-8") for path in ROOT.glob("docs/experiments/*.md")
)
MAX_WORDS = 900
"""One screen and a half, without code, addresses and pictures."""

EXTRAS = {  # what a page must name as soon as it shows this
    r"discreet (serve|letters|verify|page) ": "[server]",
    r"discreet federated ": "[federated]",
    r"discreet export (?!.*--to sql)": "[export]",
    r"postgres(ql)?://\w+@host": "[postgres]",
    r"spark:": "[spark]",
    r"plot_accuracy": "[plot]",
}


def tracked() -> list[str]:
    """Files of the repository; without git, all files of the package and its examples."""
    found = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if found.returncode == 0 and found.stdout:
        return found.stdout.splitlines()
    some = [*ROOT.glob("src/**/*"), *ROOT.glob("*.*"), ROOT / "Makefile"]
    return [str(one.relative_to(ROOT)) for one in some if one.is_file()]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the repository and nothing else."""
    folder = tmp_path_factory.mktemp("clone")
    for name in tracked():
        if name.startswith(("src/", "README", "pyproject", "Makefile")) and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def run_in_clone(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=clone,
        env={**os.environ, "PYTHONPATH": str(clone / "src"), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_every_command_of_the_tour_runs_as_written(clone: Path) -> None:
    assert len(TOUR) >= 15, "the commands were found"
    before = {path.name for path in clone.iterdir()}
    for line in TOUR:
        words = shlex.split(line)[1:]
        if words[0] == "reproduce":  # downloads a table; see test_reproduction.py
            words.append("--help")
        if words[0] == "compare" and "SOAK" not in os.environ:  # see test_compare_and_size.py
            words += ["--epsilon", "1", "--trust", "central,survey"]
        done = run_in_clone(clone, "-m", "discreet", *words)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert "Traceback" not in done.stderr
    written = {path.name for path in (clone / "demo").iterdir()}
    assert {"predicted.csv", "synthetic.csv", "model.onnx", "private.json"} <= written
    assert {"trust.html", "questionnaire.yaml"} <= written
    assert {path.name for path in clone.iterdir()} - before == {"demo"}, "a clone stays tidy"


@pytest.mark.slow
def test_the_ten_lines_print_what_is_shown_below_them(clone: Path, tmp_path: Path) -> None:
    """The accuracy changes with the noise, so it may differ by three points from the one shown."""
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S).groups()  # type: ignore[union-attr]
    statements = [line for line in code.splitlines() if line and "import" not in line]
    assert len(statements) <= 10
    made = run_in_clone(clone, "-m", "discreet", "datasets", "fetch", "mortgage", "--rows", "16000")
    assert made.returncode == 0, made.stderr
    (tmp_path / "demo").mkdir()
    (clone / "mortgage.csv").rename(tmp_path / "demo/population.csv")
    (clone / "mortgage.schema.json").unlink()
    (tmp_path / "model.py").write_text(code, "utf-8")
    done = subprocess.run(
        [sys.executable, "model.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(clone / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    printed, promise = done.stdout.split("\nepsilon", 1)
    expected, shown_promise = shown.split("\nepsilon", 1)
    assert promise.strip() == shown_promise.strip()
    accuracies = [list(map(float, re.findall(r"0\.\d+", text))) for text in (printed, expected)]
    assert len(accuracies[0]) == 2
    assert accuracies[0] == pytest.approx(accuracies[1], abs=0.03)


@pytest.fixture(scope="module")
def comparison(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the demo measures; its people and noise are drawn from a seed."""
    folder = tmp_path_factory.mktemp("demo")
    done = run_in_clone(
        clone, "-m", "discreet", "demo", "--json", "--no-open", "--out", str(folder)
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def read_accuracies(line: str) -> list[float]:
    return [float(number) / 100 for number in re.findall(r"(\d\d\.\d) ±", line)]


@pytest.mark.slow
def test_the_figures_by_trust_model_are_those_of_the_demo(comparison: dict[str, Any]) -> None:
    """In the README, in RESULTS.md and on the site; another processor may round otherwise."""
    site = (ROOT / "docs/index.md").read_text("utf-8")
    for trust in ("central", "federated", "local", "survey"):
        results = [entry for entry in comparison["results"] if entry["trust"] == trust]
        measured = {entry["epsilon"]: entry["accuracy"] for entry in results}
        (row,) = re.findall(rf"^\| {trust} \|.*$", README, re.M)
        assert read_accuracies(row) == [pytest.approx(measured[1], abs=0.002)]
        (row,) = re.findall(rf"^\| {trust} \|.*$", site, re.M)
        assert read_accuracies(row)[0] == pytest.approx(measured[1], abs=0.002)
        (row,) = re.findall(rf"^\| {trust}[:,].*$", DASHBOARD, re.M)
        assert read_accuracies(row) == [pytest.approx(a, abs=0.002) for a in measured.values()]
        if trust == "survey":
            (at_five,) = re.findall(r"At epsilon 5 it has (\d\d\.\d) ±", README)
            assert float(at_five) / 100 == pytest.approx(measured[5], abs=0.002)
    limits = [comparison[key]["accuracy"] for key in ("majority", "plain", "non_private")]
    for text in (README, site):
        shown = re.search(
            r"right for (\d\d\.\d) %, plain Naive Bayes without privacy for (\d\d\.\d) %, "
            r"`CentralNB` without noise for (\d\d\.\d) %",
            text,
        )
        assert shown is not None
        figures = [float(number) / 100 for number in shown.groups()]
        assert figures == [pytest.approx(accuracy, abs=0.002) for accuracy in limits]


@pytest.mark.slow
def test_the_picture_is_drawn_from_the_demo(comparison: dict[str, Any]) -> None:
    spec = importlib.util.spec_from_file_location("draw_accuracy", ROOT / "docs/draw_accuracy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawn, kept = module.draw_picture(comparison), module.PICTURE.read_text("utf-8")
    number = r"\d+\.?\d*"
    assert re.sub(number, "N", drawn) == re.sub(number, "N", kept)
    numbers = [list(map(float, re.findall(number, text))) for text in (drawn, kept)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1.5)  # pixels, and tenths of a percent


def test_figures_of_peers_are_those_of_the_results() -> None:
    beside_peers = README.split("## Choose this when")[1].split("\n## ")[0]
    figures = re.findall(r"\.\d{3}(?: ± \.\d{3})?", beside_peers)
    assert len(figures) >= 6
    assert [figure for figure in figures if figure not in RESULTS] == []


def test_the_figures_of_few_people_are_those_of_the_results() -> None:
    """Where the README says that a model is no better than a guess, no lead was measured."""
    says = "with 50 people at epsilon 1 or 500 at 0.1, local reports with 2,000 at 1"
    assert says in " ".join(README.split())
    (table,) = re.findall(r"few_people\.py\n.*?(\| model .*?)\n\n", DASHBOARD, re.S)
    leads: dict[tuple[str, ...], tuple[float, float]] = {}
    for name, people, epsilon, lead in re.findall(
        r"\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|", table
    ):
        for count, text in zip(people.split(" / "), lead.split(" / "), strict=True):
            mean, error = map(float, re.findall(r"[+-]?\.\d+", text))
            leads[name, count, epsilon] = mean, error
    for case in (("CentralNB", "50", "1"), ("CentralNB", "500", "0.1"), ("LocalNB", "2,000", "1")):
        assert leads[case][0] < 2 * leads[case][1]
    assert leads["CentralNB", "100", "1"][0] > 2 * leads["CentralNB", "100", "1"][1]  # it can fail


def test_no_classifier_can_have_more_than_the_readme_says() -> None:
    assert f"more than {100 * MORTGAGE_BAYES_ACCURACY:.1f} %" in README


def test_the_readme_fits_on_a_screen_and_a_half() -> None:
    prose = re.sub(r"^```.*?^```$|\]\([^)]*\)|<img[^>]*>", " ", README, flags=re.M | re.S)
    assert 500 < len([word for word in prose.split() if re.search(r"\w", word)]) <= MAX_WORDS


def test_every_link_and_picture_of_the_readme_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", README) + re.findall(r'src="([^"]+)"', README)
    here = [link for link in links if "://" not in link]
    assert len(here) >= 20
    assert [link for link in here if not (ROOT / link).is_file()] == []


def test_the_targets_of_make_that_the_readme_names_are_there() -> None:
    named = set(re.findall(r"(?:`|^    )make (?:PYTHON=\S+ )?([a-z]+)", README, re.M))
    assert {"demo", "test", "docs"} <= named
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert named <= made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_at_once_what_to_install(page: Path) -> None:
    text = page.read_text("utf-8")
    first = text.split("\n\n")[1]
    assert first.startswith("Needs "), "the first paragraph says what is needed"
    for shown, extra in EXTRAS.items():
        if re.search(shown, re.sub(r"^Needs .*$", "", text, count=1, flags=re.M)):
            assert extra in text, f"{page.name} shows {shown}"
