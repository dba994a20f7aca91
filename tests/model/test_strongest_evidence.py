"""Evidence rests on people, in one order everywhere; what noise could turn round is left out."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from commands import run
from discreet import (
    Categorical,
    CentralNB,
    FederatedNB,
    FormatError,
    LocalNB,
    NaiveBayesModel,
    Numeric,
    Schema,
    SurveyNB,
    estimate,
)
from discreet.model import CellFactor
from discreet.model.strongest_evidence import find_strongest_evidence, format_share
from discreet.model.support import CellSupport, NoiseQuantiles, compute_noise_quantile
from discreet.tables import CountRequest, count

PEOPLE = 1500
SCHEMA = Schema(
    [
        Categorical("town", list("abcdefghijkl"), optional=False),
        Numeric("score", 0, 1, optional=False),
        Categorical("smokes", ["no", "yes"], optional=False),
    ],
    "ill",
    ["no", "yes"],
)
ESTIMATORS = {
    "central": (CentralNB, 1.0),
    "local": (LocalNB, 3.0),
    "survey": (SurveyNB, 0.6),
    "federated": (FederatedNB, 1.0),
}
FITS, MAX_BAD_FITS = 12, 5
"""Of 12 fits that are each right with 95 %, more than 5 are wrong with a probability of 1.1e-5."""


def draw_people(rng):
    """Half of the towns are empty, and nobody has a score above 0.3."""
    ill = rng.random(PEOPLE) < 0.3
    frame = pd.DataFrame(
        {
            "town": rng.choice(list("abcdef"), PEOPLE),
            "score": rng.random(PEOPLE) * np.where(ill, 0.3, 0.2),
            "smokes": np.where(rng.random(PEOPLE) < np.where(ill, 0.7, 0.3), "yes", "no"),
        }
    )
    return frame, np.where(ill, "yes", "no").astype(object)


def count_people(model, frame, y):
    """How many people each line of evidence could rest on, by feature and value."""
    factors = [factor for factor in model.factors if isinstance(factor, CellFactor)]
    bins = {factor.name: factor.cells.edges[1:-1] for factor in factors if factor.cells.edges}
    exact = count(frame.assign(ill=y), SCHEMA, CountRequest(bins=bins, moments=None))
    return {
        (factor.name, label): people
        for factor in factors
        for label, people in zip(
            factor.cells.rounded_labels, exact.tables[factor.name].counts.sum(axis=0), strict=True
        )
    }


def list_by_log_odds(model):
    """The known-bad twin, which was shown before: the largest log-odds first, whoever they are."""
    lines = []
    for factor in model.factors:
        for code, label in enumerate(factor.cells.rounded_labels):
            lines.append((abs(np.diff(factor.log_probability[:, code])[0]), factor.name, label))
    return [line[1:] for line in sorted(lines, reverse=True)]


@pytest.mark.slow
@pytest.mark.parametrize("trust", ESTIMATORS)
def test_no_line_rests_on_nobody(trust):
    """That there are people holds for all cells of a model together with 95 %; see MAX_BAD_FITS.

    Intervals of shares hold with 95 % as well: of some 300 less than 85 % do with 1e-12.
    """
    estimator, amount = ESTIMATORS[trust]
    rng, bad_fits, bad_twins, lines = np.random.default_rng(), 0, 0, 0
    covered: list[bool] = []
    for _ in range(FITS):
        frame, y = draw_people(rng)
        model = estimator(amount, schema=SCHEMA).fit(frame, y).model_
        assert model.guarantee.trust == trust
        people = count_people(model, frame, y)
        shown = find_strongest_evidence(model)
        lines += len(shown)
        bad_fits += any(people[line.feature, line.value] == 0 for line in shown)
        bad_twins += any(people[line] == 0 for line in list_by_log_odds(model)[:10])
        covered += list_covered_shares(model, people)
    assert bad_fits <= MAX_BAD_FITS < bad_twins
    assert lines >= FITS  # and something is shown
    assert np.mean(covered) > 0.85


def list_covered_shares(model, people):
    """Whether the true share of each cell is within its interval."""
    margin = compute_noise_quantile(1, model.guarantee.trust)
    return [
        bool(abs(share - people[factor.name, label] / PEOPLE) <= margin * error)
        for factor in model.factors
        if isinstance(factor, CellFactor)
        for label, share, error in zip(
            factor.cells.rounded_labels,
            factor.support.shares,
            factor.support.share_errors,
            strict=True,
        )
    ]


def test_lines_that_noise_could_turn_round_are_left_out():
    """A cell that says nothing is shown with 5 % at most: more than 80 of 800 with 1e-8."""
    rng = np.random.default_rng()
    shown, turned = 0, 0
    for _ in range(4):
        support = make_support(rng.laplace(scale=5, size=(2, 200)) + 100, 2 * 5.0**2)
        for code in range(200):
            ratio = compare(support, code)
            shown += ratio.speaks_for_class() or ratio.speaks_against_class()
            turned += support.rates[0, code] > support.rates[1, code]
    assert shown <= 80
    assert turned > 200  # the twin: the sign of the estimate alone


def make_support(counts, variance, people=20_000.0):
    counts = np.asarray(counts, dtype=float)
    return CellSupport(
        counts.sum(axis=0) / (2 * people),
        np.full(counts.shape[1], np.sqrt(2 * variance) / (2 * people)),
        counts / people,
        np.full(counts.shape, np.sqrt(variance) / people),
    )


def compare(support, code, quantiles=None):
    quantiles = quantiles or NoiseQuantiles.from_counts(200, 200, "central")
    return support.compare_classes(code, 0, np.array([0.0, 1.0]), quantiles)


def test_a_range_excludes_one_exactly_where_the_difference_is_certain():
    """Fieller's theorem, for small and negative counts too."""
    rng = np.random.default_rng(5)
    support = make_support(rng.normal(40, 40, size=(2, 400)), 400.0)
    quantiles = NoiseQuantiles(1.96, 3.0, 3.5)
    for code in range(400):
        ratio = compare(support, code, quantiles)
        errors = (support.rates[0, code] - support.rates[1, code]) / np.hypot(
            *support.rate_errors[:, code]
        )
        for (low, high), quantile in ((ratio.single_range, 1.96), (ratio.joint_range, 3.5)):
            assert 0 <= low <= high
            if support.rates[:, code].min() > quantile * support.rate_errors[0, 0]:
                assert (low > 1) == (errors > quantile)
                assert (high < 1) == (errors < -quantile)
            if errors <= quantile:
                assert low <= 1
        assert ratio.single_range[0] >= ratio.joint_range[0]


def test_ranges_of_exact_counts_are_the_counts():
    """Against one class and against all others; the twin takes the one for the other."""
    schema = Schema([Categorical("town", list("ab"))], "mood", ["bad", "fair", "good"])
    rows = {"town": [*"aaabbaaaaabbbb"], "mood": ["bad"] * 5 + ["fair"] * 4 + ["good"] * 5}
    model = estimate(count(rows, schema))
    bad, fair, good = 3 / 5, 4 / 4, 1 / 5
    both = (4 * fair + 5 * good) / 9
    quantiles = NoiseQuantiles.from_counts(2, 2, "none")
    for weights, odds in (([0, 0, 1], bad / good), ([0, 4, 5], bad / both)):
        ratio = model.factors[0].support.compare_classes(0, 0, np.array(weights, float), quantiles)
        assert ratio.single_range == ratio.joint_range
        assert ratio.single_range == pytest.approx((odds, odds), rel=1e-5)
        assert ratio.share == pytest.approx(8 / 14, rel=1e-5)
        assert ratio.share_interval is None
        assert ratio.has_people
    assert abs(bad / good - bad / both) > 1


def test_exact_counts_need_people_too():
    """Smoothing alone is no evidence: nobody has the value c, whose log-odds are not zero."""
    schema = Schema([Categorical("town", list("abc"), optional=False)], "mood", ["bad", "good"])
    rows = {"town": [*"aabaabbbb"], "mood": ["bad"] * 3 + ["good"] * 6}
    model = estimate(count(rows, schema))
    assert model.factors[0].log_probability[0, 2] > model.factors[0].log_probability[1, 2]
    assert {line.value for line in find_strongest_evidence(model)} == {"a", "b"}


@pytest.mark.parametrize("trust", ["central", "local"])
def test_quantiles_hold_for_the_noise_of_each_model(trust):
    """P(|X| > quantile) is 0.05 / statements at most; the normal law is too short for Laplace's."""
    for statements in (1, 10, 1000):
        quantile = compute_noise_quantile(statements, trust)
        normal = compute_noise_quantile(statements, "local")
        tail = np.exp(-np.sqrt(2) * quantile)
        if trust == "central":
            assert tail == pytest.approx(0.05 / statements)
            assert np.exp(-np.sqrt(2) * normal) > 0.05 / statements  # the twin
    assert compute_noise_quantile(1, "local") == pytest.approx(1.96, abs=0.001)


@pytest.fixture(scope="module")
def fitted():
    frame, y = draw_people(np.random.default_rng(3))
    return CentralNB(5.0, schema=SCHEMA, random_state=0).fit(frame, y)


class Cells(HTMLParser):
    """The text of the cells of tables."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.inside = [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside = tag == "td"

    def handle_data(self, data):
        if self.inside:
            self.texts.append(data)


def test_every_page_shows_the_same_lines_in_the_same_order(fitted, tmp_path, capsys, monkeypatch):
    from discreet.server.evidence import find_strongest

    monkeypatch.setenv("COLUMNS", "120")
    model = fitted.model_
    lines = find_strongest_evidence(model, 4)
    assert len(lines) == 4
    weights = [line.share * line.log_odds for line in lines]
    assert weights == sorted(weights, reverse=True)
    path = tmp_path / "model.json"
    path.write_text(model.to_json())
    shown = run(capsys, "show", path, "--strongest", 4)[1]
    rows = re.findall(r"│ (\w+) +│ (.+?) +│ (yes|no) +│ +([+-][\d.]+) │ +(.+?) │", shown)
    expected = [
        (line.feature, line.value, line.label, f"{line.log_odds:+.2f}", line.share_text)
        for line in lines
    ]
    assert rows == expected
    body = json.loads(run(capsys, "show", path, "--strongest", 4, "--json")[1])
    assert [entry["value"] for entry in body["strongest"]] == [line.value for line in lines]
    low, high = body["strongest"][0]["share_interval"]
    assert low < body["strongest"][0]["share"] < high
    cells = Cells(model._repr_html_()).texts
    first = cells.index(expected[0][0])
    assert cells[first : first + 5 * 4] == [text for row in expected for text in row]
    desk = [entry.statement for entry in find_strongest(model)]
    statements = [f"{line.feature} = {line.value}" for line in find_strongest_evidence(model)]
    assert desk == [statement for statement in statements if statement in desk]
    assert set(statements[:2]) <= set(desk)


def test_a_model_from_a_file_shows_the_same(fitted):
    read = NaiveBayesModel.from_json(fitted.model_.to_json())
    assert find_strongest_evidence(read) == find_strongest_evidence(fitted.model_)
    support = fitted.model_.factors[0].support
    for changes, fault in (
        ({"shares": support.shares[1:]}, "does not fit its cells"),
        ({"rates": support.rates.T}, "does not fit its cells"),
        ({"share_errors": -support.share_errors}, "is negative"),
    ):
        factor = replace(fitted.model_.factors[0], support=replace(support, **changes))
        with pytest.raises(FormatError, match=rf"the support.* {fault}"):
            replace(fitted.model_, factors=[factor])


@pytest.mark.slow
def test_a_model_without_its_statistics_shows_its_own_shares_in_the_same_order():
    """Whoever gets a model alone does not get the totals, not even in what supports its lines."""
    frame, y = draw_people(np.random.default_rng(4))
    options = {"schema": SCHEMA, "random_state": 0}
    alone = FederatedNB(5.0, mode="probabilities", **options).fit(frame, y).model_
    assert all(factor.support is None for factor in alone.factors)
    assert '"support": null' in alone.to_json()
    lines = find_strongest_evidence(alone)
    assert lines
    assert all(line.share_interval is None and line.odds_range is None for line in lines)
    weights = [line.share * line.log_odds for line in lines]
    assert weights == sorted(weights, reverse=True)
    assert alone.explain(frame.iloc[0]).evidence[0].share is None
    totals = FederatedNB(5.0, **options).fit(frame, y).model_
    assert all(factor.support is not None for factor in totals.factors)  # the twin


def find_counts(model, people):
    """The counts of each table that can be read from a model, if there are any."""
    return {
        factor.name: np.rint(factor.support.shares * people).astype(int).tolist()
        for factor in model.factors
        if factor.support is not None
    }


@pytest.mark.slow
def test_a_model_of_probabilities_alone_carries_no_totals():
    """Of a rehearsal without noise, where every number in the model is about the table itself."""
    frame, y = draw_people(np.random.default_rng(5))
    options = {"schema": SCHEMA, "random_state": 0, "mode": "probabilities"}
    alone = FederatedNB(np.inf, **options).fit(frame, y).model_
    assert find_counts(alone, PEOPLE) == {}
    assert find_counts(NaiveBayesModel.from_json(alone.to_json()), PEOPLE) == {}


@pytest.mark.slow
def test_twin_a_model_with_what_supports_it_says_how_many_there_are():
    frame, y = draw_people(np.random.default_rng(5))
    totals = FederatedNB(np.inf, schema=SCHEMA, random_state=0).fit(frame, y).model_
    smokers = frame["smokes"].value_counts()
    assert find_counts(totals, PEOPLE)["smokes"] == [smokers["no"], smokers["yes"]]


def test_explanations_say_how_many_people_and_what_may_be_chance(fitted):
    told = fitted.model_.explain({"town": "a", "score": 0.1, "smokes": "yes"})
    smokes = next(item for item in told.evidence if item.feature == "smokes")
    assert smokes.certain
    assert smokes.share == pytest.approx(0.42, abs=0.06)
    text = str(told)
    assert re.search(r"smokes = yes +[+-]0\.\d+  \d+ % \(\d+ to \d+\) of people\n", text)
    empty = fitted.model_.explain({"town": "l", "score": 0.9, "smokes": "yes"})
    score = next(item for item in empty.evidence if item.feature == "score")
    assert score.certain is False
    assert re.search(r"score = .* of people; may be chance\n", str(empty))
    assert json.loads(json.dumps(told.to_body()))["evidence"][0]["share_interval"]


def test_shares_are_written_in_percent():
    assert format_share(0.0) == "0 %"
    assert format_share(-0.01, (0.0, 0.0004)) == "0 % (0 to 0.04)"
    assert format_share(0.996, (0.99, 1.0)) == "100 % (99 to 100)"


def test_where_nothing_is_certain_a_sentence_says_so(capsys):
    schema = Schema([Categorical("town", list("abc"), optional=False)], "ill", ["no", "yes"])
    rng = np.random.default_rng(0)
    X, y = rng.choice(list("abc"), (60, 1)).astype(object), rng.choice(["no", "yes"], 60)
    model = CentralNB(0.01, schema=schema, random_state=0).fit(X, y).model_
    assert not find_strongest_evidence(model)
    model.show()
    assert "No value certainly speaks for a class" in " ".join(capsys.readouterr().out.split())
    assert "No value certainly speaks for a class" in model._repr_html_()
    model.show(strongest=0)
    assert "certainly" not in capsys.readouterr().out
