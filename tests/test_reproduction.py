"""Reproductions: finished cells are kept, changed code is noticed, pages carry every verdict."""

import csv
import gzip
import hashlib
import json

import numpy as np
import pytest
from click.testing import CliRunner

from discreet.cli import main
from discreet.papers import (
    local_nb_experiments,
    local_nb_statements,
    mechanisms,
    multi_party,
    reproduction,
    smooth_sensitivity,
)
from discreet.papers.local_nb_experiments import score_all_answered
from discreet.papers.reproduction import (
    PAPERS,
    ReproductionOptions,
    describe_left_out,
    reproduce_paper,
)
from discreet.papers.results import (
    PairedDifference,
    PaperCell,
    PaperResults,
    check_all_hold,
    check_statements,
    format_verdict,
)


@pytest.fixture
def counted(monkeypatch):
    """The mechanisms paper with few cells, and how often one was computed."""
    calls = []
    real, few = mechanisms.compute, [c for c in mechanisms.list_cells(True) if c.figure != "bayes"]

    def compute(cell, repeats, quick):
        calls.append(cell)
        return real(cell, repeats, quick)

    monkeypatch.setattr(mechanisms, "compute", compute)
    monkeypatch.setattr(mechanisms, "list_cells", lambda quick: few)
    return calls


def run(tmp_path, **more):
    return ReproductionOptions(tmp_path / "out", 5, True, jobs=1, cache=tmp_path / "cache", **more)


@pytest.mark.slow
def test_a_run_goes_on_where_it_ended(counted, tmp_path, monkeypatch):
    page = reproduce_paper("mechanisms", run(tmp_path))
    first, text = len(counted), page.read_text()
    assert first == len(mechanisms.list_cells(True))
    reproduce_paper("mechanisms", run(tmp_path))
    assert len(counted) == first  # nothing was computed again
    assert page.read_text() == text
    some = sorted((tmp_path / "cache" / "mechanisms").iterdir())[0]
    some.unlink()
    reproduce_paper("mechanisms", run(tmp_path))
    assert len(counted) == first + 1
    monkeypatch.setattr(reproduction, "_compute_code_digest", lambda module: "other code")
    reproduce_paper("mechanisms", run(tmp_path))
    assert len(counted) == 2 * first + 1


@pytest.mark.slow
def test_what_is_written_has_every_cell_and_every_verdict(counted, tmp_path):
    page = reproduce_paper("mechanisms", run(tmp_path))
    rows = list(csv.DictReader((tmp_path / "out/mechanisms/cells.csv").open()))
    assert {row["figure"] for row in rows} == {"error", "listings", "bias", "example"}
    simulated = [row for row in rows if row["metric"] == "mean squared error"]
    assert all(float(row["standard_error"]) > 0 for row in simulated)
    assert all(row["repetitions"] == "5" for row in simulated)
    text = page.read_text()
    found = text.count("**holds") + text.count("**does not hold")
    assert found == 4 + len(mechanisms.LISTINGS)
    assert "0.0056" in text
    if "errors.svg" in text:  # where matplotlib is installed
        for name in ("errors", "listings"):
            assert (tmp_path / f"out/mechanisms/{name}.svg").stat().st_size > 1000
            assert (tmp_path / f"out/mechanisms/{name}.png").stat().st_size > 1000


def test_the_listings_have_the_epsilons_that_enumeration_gives():
    found = {
        one: mechanisms.compute(
            PaperCell.from_parameters("listings", listing=one, claimed=1.0), 2, True
        )["epsilon"][0]
        for one in mechanisms.LISTINGS
        if "256" not in one
    }
    assert found["5.1 Laplace"] == pytest.approx(1)
    assert found["5.2 Duchi, one number"] == pytest.approx(1)
    assert found["5.3 Duchi, d = 2"] == pytest.approx(2.0986, abs=1e-4)
    assert found["the text's Duchi, d = 2"] == pytest.approx(np.log(1 + np.e))
    assert found["5.4 Piecewise, grid 16"] > np.log(2 * 16)


def judge(values):
    findings = check_statements(mechanisms.STATEMENTS, PaperResults(values))
    return {claim: finding.verdict for claim, finding in findings.items()}


@pytest.mark.slow
def test_a_verdict_follows_the_figures():
    """The known-bad twin: with other values the same statement gets another verdict."""
    cells = [c for c in mechanisms.list_cells(True) if c.figure != "bayes"]
    values = {cell: mechanisms.compute(cell, 4, True) for cell in cells}
    good = judge(values)
    assert good["Laplace is worse than Duchi below epsilon 2.3 and better above"] == "holds"
    assert good["5.3 Duchi, d = 2 has the epsilon it claims"] == "does not hold"
    for cell in cells:
        if cell.figure == "listings":
            values[cell] = {"epsilon": [cell["claimed"]]}
        if cell.figure == "error" and cell["mechanism"] == "Laplace":
            values[cell] = values[cell] | {"worst variance": [1e-9]}
    bad = judge(values)
    assert bad["5.3 Duchi, d = 2 has the epsilon it claims"] == "holds"
    assert bad["Piecewise is good at small and at large epsilon"] == "does not hold"
    crossing = "Laplace is worse than Duchi below epsilon 2.3 and better above"
    assert bad[crossing] != "holds"


def test_words_layout_and_verdicts_do_not_make_cells_stale_and_code_does():
    source = '''
"""A paper."""
from discreet.papers.results import PaperCell
TITLE = "old"
def compute(cell):
    """Old words."""
    return 2 * cell  # why
'''
    rest = f"\n{reproduction.JUDGEMENT_MARKER}\ndef make_figures(): ...\n"
    meaning = reproduction._extract_computation(source)
    for old, new in (
        ("A paper", "This paper"),
        ("PaperCell", "PaperCell, PairedDifference"),
        ('"old"', '"new"'),
        ("Old words", "New words"),
        ("  # why", ""),
    ):
        assert old in source
        assert reproduction._extract_computation(source.replace(old, new) + rest) == meaning
    assert reproduction._extract_computation(source.replace("2 *", "3 *")) != meaning


def test_a_difference_is_judged_by_its_interval():
    """Pairs share their split, so what splits have in common does not blur the difference."""
    splits = np.random.default_rng(0).normal(0.8, 0.1, 20)
    noise = np.random.default_rng(1).normal(0, 0.002, 20)
    paired = PairedDifference.from_pairs(splits + 0.01 + noise, splits)
    assert paired.is_above() is True
    assert paired.is_above(0.01) is None
    assert paired.is_above(0.02) is False
    assert paired.is_within(0.02) is True
    assert paired.is_within(0.01) is None
    assert paired.is_within(0.005) is False
    assert (
        PairedDifference.from_pairs(splits + 0.01 + noise, list(reversed(splits))).is_above()
        is None
    )
    assert PairedDifference.from_pairs([0.91, 0.92, 0.93], 0.9).mean == pytest.approx(0.02)
    one, many = (
        PairedDifference.from_pairs(noise, 0.0),
        PairedDifference.from_pairs(noise, 0.0, comparison_count=50),
    )
    assert one.high - one.low < many.high - many.low


def test_intervals_are_right_as_often_as_they_say():
    rng = np.random.default_rng(5)
    missed = sum(
        PairedDifference.from_pairs(rng.normal(0, 1, 10), 0.0).is_above() is not None
        for _ in range(2000)
    )
    assert 60 < missed < 145  # 5 % of 2000, by more than four standard errors either way


def test_a_verdict_names_what_is_undecided():
    assert format_verdict({"a": True, "b": True}) == "holds"
    assert format_verdict({"a": False, "b": False}) == "does not hold"
    assert format_verdict({"a": True, "b": False, "c": None}) == "holds only on a (undecided on c)"
    assert format_verdict({"per person": False, "per report": True}, "") == "holds only per report"
    assert format_verdict({"a": None}) == "undecided"
    assert format_verdict({"a": True, "b": None}) == "holds, but undecided on b"
    assert format_verdict({"a": False, "b": None}) == "does not hold (undecided on b)"
    assert check_all_hold([True, None]) is None
    assert check_all_hold([True, None, False]) is False
    assert check_all_hold([True, True]) is True


def near(gap, seed):
    """Results in which the best oracle is so far below no privacy, up to noise and splits."""
    rng = np.random.default_rng(seed)
    splits = rng.normal(0.9, 0.02, 20)
    values = {
        PaperCell.from_parameters("2", table="car", oracle="none"): {"accuracy": list(splits)}
    }
    for oracle in local_nb_experiments.ORACLES:
        for reading in local_nb_experiments.EPSILON_READINGS:
            cell = PaperCell.from_parameters(
                "2", table="car", oracle=oracle, epsilon=3.0, reading=reading
            )
            values[cell] = {"accuracy": list(splits - gap + rng.normal(0, 0.01, 20))}
    return PaperResults(values)


def test_very_close_does_not_hang_on_the_seed():
    """The twin, a mean against a limit, changes its mind where the truth is at the limit."""
    for gap, told in ((0.005, "holds"), (0.04, "does not hold"), (0.02, "undecided")):
        found = [near(gap, seed) for seed in range(20)]
        assert {local_nb_statements._check_near_exact(one).verdict for one in found} == {told}
    about = {"table": "car", "oracle": "de", "epsilon": 3.0, "reading": "per report"}
    twin = {
        one.compute_mean("2", table="car", oracle="none") - one.compute_mean("2", **about) < 0.02
        for one in found
    }
    assert twin == {True, False}


@pytest.mark.data
def test_the_published_collector_reads_every_count_and_smooth_as_printed_claims_too_little():
    found = multi_party.compute(PaperCell.from_parameters("attack", table="balance_scale"), 2, True)
    assert found["read exactly"] == [1.0]
    assert (
        smooth_sensitivity.compute(PaperCell.from_parameters("sound", claimed=0.1), 2, True)[
            "epsilon"
        ][0]
        > 0.6
    )
    ratios = smooth_sensitivity.compute(PaperCell.from_parameters("sensitivity"), 2, True)[
        "printed over true"
    ]
    assert min(ratios) < 0.8
    assert max(ratios) <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("way", multi_party.PROTOCOLS)
def test_every_way_of_several_owners_is_timed_in_every_phase(way):
    flat = multi_party.compute(
        PaperCell.from_parameters("2", table="balance_scale", way=way, providers=2), 1, True
    )
    assert set(flat) == {"provider", "collector", "receiver"}
    tall = multi_party.compute(
        PaperCell.from_parameters("3", table="balance_scale", way=way), 1, True
    )
    assert {"label provider", "provider"} <= set(tall)
    assert all(value[0] > 0 for value in (*flat.values(), *tall.values()))


def test_every_answer_counts_once_where_everyone_answers_everything():
    """Without noise, n + 1 reports from everyone give the exact classifier."""
    from discreet import LocalNB
    from discreet.datasets import make_balance_scale

    data = make_balance_scale()
    X, y = data.X, data.y
    nb = LocalNB(
        40.0,
        oracle="de",
        plan="paper",
        postprocess="paper",
        assignment="draw",
        schema=data.schema,
        bins=5,
        random_state=0,
    ).fit(X[:50], y[:50])
    found = score_all_answered(nb.plan_, X, y, X, y, 0)
    exact = LocalNB(float("inf"), schema=data.schema, bins=5, random_state=0).fit(X, y)
    assert found == pytest.approx(exact.score(X, y), abs=0.01)


@pytest.mark.slow
@pytest.mark.data
def test_the_command_lists_its_papers_and_writes_where_it_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(PAPERS) == {"local-nb", "surveys", "mechanisms", "smooth-sensitivity", "multi-party"}
    words = ["reproduce", "surveys", "--figure", "6", "--quick", "--jobs", "1", "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["pages"] == {"surveys": "papers/surveys.md"}
    assert (tmp_path / "papers/surveys/cells.csv").exists()
    assert CliRunner().invoke(main, ["reproduce", "nothing"]).exit_code == 2


def test_the_census_is_asked_for_in_words_and_used_where_it_is(tmp_path, monkeypatch):
    """Nobody may pass the extract on: who has it puts it beside the benchmark tables."""
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    sentence = describe_left_out("smooth-sensitivity")
    assert "census_1940.csv.gz" in sentence
    assert "DISCREET_DATA" in sentence
    assert describe_left_out("surveys") == ""
    assert not [c for c in smooth_sensitivity.list_cells(False) if "census_1940" in str(c)]
    rows = b"age,employed\n30,yes\n61,no\n45,yes\n"
    facts = {
        "rows": 3,
        "sha256": hashlib.sha256(rows).hexdigest(),
        "features": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}],
        "target": "employed",
        "classes": ["no", "yes"],
    }
    (tmp_path / "census_1940.json").write_text(json.dumps(facts))
    (tmp_path / "census_1940.csv.gz").write_bytes(gzip.compress(rows))
    assert describe_left_out("smooth-sensitivity") == ""
    asked = [c for c in smooth_sensitivity.list_cells(False) if "census_1940" in str(c)]
    assert {c["epsilon"] for c in asked if "epsilon" in dict(c.parameters)} == {0.1, 0.5, 1, 2, 5}
    X, y, schema = smooth_sensitivity._load_rows("census_1940")
    assert sorted(y) == ["no", "yes", "yes"]
    assert list(schema.names) == list(X.columns) == ["age"]
