"""``discreet compare`` and ``discreet local size``, as a user runs them."""

import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from discreet.cli import main
from discreet.compare.methods import METHODS
from discreet.datasets import make_mortgage


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    people = make_mortgage(1500, seed=1)
    people.frame.to_csv(place / "people.csv", index=False)
    (place / "schema.json").write_text(people.schema.to_json())
    return place


def run(folder, *words):
    parts = [
        str(folder / w) if w in ("people.csv", "schema.json", "none.csv") else w for w in words
    ]
    return CliRunner().invoke(main, parts)


@pytest.fixture(scope="module")
def compared(folder):
    done = run(folder, "compare", "people.csv", "--schema", "schema.json", "--epsilon", "1,4",
               "--methods", "histogram,masks,questions,auto,de", "--report",
               str(folder / "report.html"), "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.slow
def test_compare_has_every_figure_for_every_trust_model(compared):
    body = json.loads(compared.stdout)
    assert "raw data" in compared.stderr
    assert body["protected"] is False
    assert len(body["results"]) == 10
    assert set(body["best"]) == {"central", "federated", "survey", "local"}
    assert body["majority"]["accuracy"] < 0.8 < body["non_private"]["accuracy"] < 0.9
    assert body["majority"]["accuracy"] < 0.8 < body["plain"]["accuracy"] < 0.9
    assert (body["non_private"]["method"], body["plain"]["method"]) == (
        "non-private", "plain Naive Bayes"
    )  # fmt: skip
    assert body["non_private"]["accuracy"] != body["plain"]["accuracy"]
    for one in body["results"]:
        low, high = one["interval"]
        assert low <= one["accuracy"] <= high
        for score, interval in (
            ("log_loss", "log_loss_interval"),
            ("calibration_error", "calibration_interval"),
            ("auc", "auc_interval"),
            ("average_precision", "average_precision_interval"),
        ):
            low, high = one[interval]
            assert 0 <= low <= one[score] <= high
            assert low < high, "every figure has its uncertainty"
        assert one["seconds"] > 0
    sent = {one["trust"]: one["bytes_per_person"] for one in body["results"]}
    assert sent["federated"] < 10 < sent["local"] < 1000
    here = {one["method"]: one["accuracy"] for one in body["results"] if one["epsilon"] == 1}
    assert body["best"]["local"]["1"] == max(("auto", "de"), key=here.get)
    needed = body["respondents"]
    assert needed["tried"][0][0] == needed["people"] == 1200
    for _, found, (low, high) in needed["tried"]:
        assert low < found < high
    below = {one["trust"] for one in body["results"] if one["epsilon"] in (1, 4)}
    for trust in below:
        rows = [one for one in body["results"] if one["trust"] == trust]
        best = [max(o["accuracy"] for o in rows if o["epsilon"] == e) for e in (1, 4)]
        said = [
            remark for remark in body["remarks"] if remark.startswith(f"{trust}: less accurate")
        ]
        assert bool(said) == (min(best) < body["majority"]["accuracy"])
    reached = needed["tried"][-1][1] >= needed["target"] - 0.005
    assert reached == (needed["respondents"] is not None)


@pytest.mark.slow
def test_the_report_is_one_file_that_asks_for_nothing(compared, folder):
    text = (folder / "report.html").read_text()
    body = json.loads(compared.stdout)
    assert body["answer"] in text.replace("&#x27;", "'")
    assert "Nothing on this page is protected" in text
    tags = Tags(text)
    assert not tags.names & {"script", "img", "link", "iframe", "object"}
    assert not any(name in ("src", "style") or name.startswith("on") for name, _ in tags.attributes)
    assert not any(name == "href" for name, _ in tags.attributes)
    assert tags.closed_in_order
    style = text.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in text  # the policy admits this style and no other
    for one in body["results"]:
        assert f"{100 * one['accuracy']:.1f} %" in text


class Tags(HTMLParser):
    """The tags and attributes of a page, and whether every tag is closed in its turn."""

    VOID = frozenset({"meta", "br", "hr"})

    def __init__(self, text):
        super().__init__()
        self.names, self.attributes, self.open, self.closed_in_order = set(), [], [], True
        self.feed(text)
        self.closed_in_order &= not self.open

    def handle_starttag(self, tag, attributes):
        self.names.add(tag)
        self.attributes += attributes
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.names.add(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        self.closed_in_order &= bool(self.open) and self.open.pop() == tag


@pytest.mark.slow
def test_an_accuracy_is_searched_for(folder):
    words = ["compare", "people.csv", "--schema", "schema.json", "--epsilon", "1,2", "--methods",
             "histogram,auto", "--folds", "3", "--cost", "yes=5", "--accuracy"]  # fmt: skip
    done = run(folder, *words, "0.78", "--report", str(folder / "search.html"), "--json")
    assert done.exit_code == 0, done.output
    body = json.loads(done.stdout)
    for result in (*body["results"], body["non_private"]):
        by_cost, by_probability, majority, *_ = result["costs"]["policies"]
        assert majority["decide"] == "always say 'no'"
        assert majority["cost"] == pytest.approx(5 * result["classes"]["yes"]["rows"] / 1500)
    assert by_cost["cost"] < by_probability["cost"] < majority["cost"]  # without privacy
    search = body["accuracy_search"]
    central, local = search["epsilons"]
    assert (central["trust"], local["trust"]) == ("central", "local")
    reached = dict(zip([t[0] for t in central["tried"]], central["tried"], strict=True))
    assert reached[central["epsilon"]][1] >= 0.78
    assert all(t[1] < 0.78 for t in central["tried"] if t[0] < central["epsilon"])
    assert search["respondents"]["target"] == 0.78
    assert "has read raw data" in search["sentences"][-1]
    page = (folder / "search.html").read_text()
    assert "Epsilon for 78 %" in page
    assert "has read raw data" in page
    assert "Mean cost of 100 rows" in page
    text = run(folder, *words, "0.6").stdout
    assert "Always saying “no” is right for" in text
    assert "What reaches 60 % with 1,000 people to learn from" in text
    assert "where missing costs: no 1, yes 5" in text
    assert run(folder, *words, "78").exit_code == 2
    refused = run(folder, *words, "0.6", "--cost", "maybe=2")
    assert refused.exit_code == 2
    assert "'maybe' is not a class" in refused.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--epsilon", "zero"], "numbers separated by commas"),
        (["--epsilon", "0"], "above 0"),
        (["--epsilon", "inf"], "above 0"),
        (["--methods", "magic"], "unknown method"),
        (["--trust", "friends"], "unknown trust model"),
        (["--trust", "local", "--methods", "histogram"], "none of histogram"),
        (["--folds", "500"], "too few"),
    ],
)
def test_compare_refuses_nonsense(folder, words, says):
    done = run(folder, "compare", "people.csv", "--schema", "schema.json", *words)
    assert done.exit_code == 2
    assert says in done.stderr


def test_compare_wants_a_table(folder):
    done = run(folder, "compare", "none.csv", "--schema", "schema.json", "--epsilon", "1")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("discreet: ")


def test_a_survey_spends_at_most_the_epsilon_it_is_compared_at():
    people = make_mortgage(300, seed=1)
    for name in ("questions", "sheet"):
        for epsilon in (0.1, 1.0, 5.0):
            nb = METHODS[name].make_estimator(people.schema, epsilon, 8, 0).fit(people.X, people.y)
            spent = nb.questionnaire_.guarantee.epsilon
            assert 0.9 * epsilon < spent <= epsilon * (1 + 1e-9)


def test_every_method_is_made_at_the_epsilon_that_was_asked_for():
    people = make_mortgage(300, seed=1)
    for name, method in METHODS.items():
        nb = method.make_estimator(people.schema, 0.75, 4, 0).fit(people.X, people.y)
        assert nb.guarantee_.epsilon <= 0.75 * (1 + 1e-9), name


def test_size_goes_from_precision_to_people_and_back(folder):
    there = run(folder, "local", "size", "schema.json", "--epsilon", "1", "--precision", "0.01",
                "--json")  # fmt: skip
    assert there.exit_code == 0, there.output
    body = json.loads(there.stdout)
    worst = max(one["standard_error"] for one in body["precision"])
    assert worst == pytest.approx(0.01, rel=0.01)
    back = run(folder, "local", "size", "schema.json", "--epsilon", "1", "--respondents",
               str(body["respondents"]), "--json")  # fmt: skip
    assert json.loads(back.stdout)["precision"] == body["precision"]
    # it promises nothing about a model: that depends on what the collection is to find out
    assert body.keys() == {"respondents", "epsilon", "precision"}
    few = run(folder, "local", "size", "schema.json", "--epsilon", "0.5", "--respondents", "100")
    assert "cannot be known in advance" in " ".join(few.stdout.split())
    assert "enough" not in few.stdout
    assert "comfortable" not in few.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--epsilon", "1"], "one of them"),
        (["--epsilon", "1", "--precision", "0.1", "--respondents", "5"], "one of them"),
        (["--epsilon", "-1", "--precision", "0.1"], "above 0"),
        (["--epsilon", "1", "--precision", "3"], "between 0 and 1"),
        (["--epsilon", "1", "--respondents", "0"], "must be at least 1"),
    ],
)
def test_size_refuses_nonsense(folder, words, says):
    done = run(folder, "local", "size", "schema.json", *words)
    assert done.exit_code == 2
    assert says in done.stderr
