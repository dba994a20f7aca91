"""A certificate says what the model and its ledger say, names no file, and certifies no void."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import Categorical, CentralNB, Guarantee, Numeric, Schema
from discreet.display.certificate import Certificate
from discreet.errors import FormatError, PrivacyError
from discreet.files.documents import encode_canonical
from discreet.privacy.guarantee import Charge
from discreet.privacy.ledger import Ledger
from discreet.privacy.payment import find_payment

SECRET = "clinic-of-doctor-brown"
NASTY = "<script>alert(1)</script>\"&'"


def trained(folder: Path, *, name: str = "age", charges: int = 1, **how: Any) -> CentralNB:
    schema = Schema([Numeric(name, 0, 100), Categorical("b", ["x", "y"])], "sick", ["no", "yes"])
    ledger = Ledger.create(folder / f"{SECRET}.json", epsilon=10.0)
    for _ in range(charges - 1):
        ledger.charge(Guarantee(0.5), "another training", data_source=f"{SECRET}.csv")
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({name: rng.integers(0, 100, 300), "b": rng.choice(["x", "y"], 300)})
    estimator = CentralNB(epsilon=1.0, schema=schema, budget=ledger, **how)
    fitted = estimator.fit(rows, rng.choice(["no", "yes"], 300))
    (folder / "model.json").write_text(fitted.model_.to_json())
    (folder / "statistics.json").write_text(fitted.statistics_.to_json())
    return fitted


def read_text(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page.split("</head>")[1]))


def test_everything_on_the_page_is_in_the_files(tmp_path: Path) -> None:
    trained(tmp_path, charges=3)
    ledger = Ledger(tmp_path / f"{SECRET}.json")
    ledger.charge(Guarantee(0.25), "a later training")
    certificate = Certificate.read(
        tmp_path / "model.json", ledger=str(ledger.path), statistics=f"{tmp_path}/statistics.json"
    )
    text, body = read_text(certificate.render()), certificate.to_body()
    entry = ledger.read().entries[2]
    entry_digest = hashlib.sha256(encode_canonical(entry.model_dump())).hexdigest()
    for file, name in (("model.json", "model file"), ("statistics.json", "statistics file")):
        digest = hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
        assert body["digests"][name] == f"sha256:{digest}"
        assert digest in text
    assert entry_digest in text
    assert certificate.model.schema.digest.removeprefix("sha256:") in text
    assert body["payment"]["when"] == entry.when
    assert body["payment"]["spent"] == [2.25, 0.0]
    assert body["payment"]["left"] == [7.75, 0.0]
    for words in (
        entry.when[:10], "epsilon 1 (", "4 releases", "epsilon 2.25 of epsilon 10", "7.75 is left",
        "age, b", "“no”, “yes”", "for this release", "without looking at the data",
    ):  # fmt: skip
        assert words in text, words
    assert json.loads(json.dumps(body)) == body


def test_no_file_and_nobody_s_data_are_named(tmp_path: Path) -> None:
    """Names of files say whose table it was; the ledger has them, the page has not."""
    model = trained(tmp_path, charges=2).model_
    certificate = Certificate.read(tmp_path / "model.json", ledger=str(tmp_path / f"{SECRET}.json"))
    assert SECRET in str(model.guarantee)
    assert SECRET not in certificate.render()
    assert SECRET not in json.dumps(certificate.to_body())


def test_twin_a_promise_in_the_model_s_words_names_its_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path)
    monkeypatch.setattr(
        Certificate, "_public_guarantee", property(lambda certificate: certificate.model.guarantee)
    )
    certificate = Certificate.read(tmp_path / "model.json")
    assert SECRET in certificate.render()
    assert SECRET in json.dumps(certificate.to_body())


def test_a_page_asks_for_nothing_and_no_name_breaks_out(tmp_path: Path) -> None:
    trained(tmp_path, name=NASTY)
    page = Certificate.read(tmp_path / "model.json").render()
    assert NASTY in read_text(page)
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.search(
        r"(src|href|url\()\s*=?", page.replace("default-src", "").replace("style-src", "")
    )
    assert "No ledger was given" in page


@pytest.mark.parametrize(
    "guarantee",
    [
        Guarantee(1.0).void_if(simulated=True),
        Guarantee(1.0).void_if(preparation_reason="a scaler was fitted"),
        Guarantee.make_unprotected(),
    ],
    ids=["simulated", "void", "none"],
)
def test_a_promise_that_is_not_kept_is_not_certified(tmp_path: Path, guarantee: Guarantee) -> None:
    model = replace(trained(tmp_path).model_, guarantee=guarantee)
    path = tmp_path / "void.json"
    path.write_text(model.to_json())
    with pytest.raises(PrivacyError, match=r"void.json: there is nothing to certify: "):
        Certificate.read(path)


def test_the_ledger_must_be_the_one_that_paid(tmp_path: Path) -> None:
    model = trained(tmp_path, charges=2).model_
    state = Ledger(tmp_path / f"{SECRET}.json").read()
    assert find_payment(model.guarantee, state).entry == state.entries[1]
    costlier = state.entries[0].model_copy(update={"epsilon": 2.0})
    for other in (
        replace(state, entries=state.entries[:1]),
        replace(state, epsilon=11.0),
        replace(state, entries=(costlier, state.entries[1])),
    ):
        with pytest.raises(FormatError, match="not the ledger that the model was paid from"):
            find_payment(model.guarantee, other)


def test_a_model_that_names_no_ledger_is_found_by_its_cost_if_only_one_fits(tmp_path: Path) -> None:
    guarantee = Guarantee(0.5)
    ledger = Ledger.create(tmp_path / "b.json", 10.0)
    with pytest.raises(FormatError, match="none of its 0 entries costs"):
        find_payment(guarantee, ledger.read())
    ledger.charge(guarantee, "a round")
    payment = find_payment(guarantee, ledger.read())
    assert not payment.is_named
    ledger.charge(guarantee, "another round")
    with pytest.raises(FormatError, match="2 of its 2 entries cost"):
        find_payment(guarantee, ledger.read())


def test_statistics_must_be_those_of_the_model(tmp_path: Path) -> None:
    trained(tmp_path)
    old = (tmp_path / "model.json").read_bytes()
    trained(tmp_path)
    (tmp_path / "model.json").write_bytes(old)
    with pytest.raises(FormatError, match="these are not the statistics"):
        Certificate.read(tmp_path / "model.json", statistics=str(tmp_path / "statistics.json"))


def test_what_else_a_promise_says_is_on_the_page(tmp_path: Path) -> None:
    """Costs of a schema, rows per person and further assumptions come with the guarantee."""
    model = trained(tmp_path).model_
    guarantee = replace(
        model.guarantee, epsilon=1.5, delta=1e-7, unit="all rows of one person, at most 3",
        assumptions=("nobody has two ids",),
        charges=(*model.guarantee.charges, Charge("schema", 0.5)),
    )  # fmt: skip
    certificate = Certificate(replace(model, guarantee=guarantee), "sha256:0", day="2026-01-01")
    text = read_text(certificate.render())
    for words in (
        "epsilon 1.5, delta 1e-07", "all rows of one person, at most 3", "Nobody has two ids.",
        "1 schema (0.5)", "on 2026-01-01", "plus 1e-07",
    ):  # fmt: skip
        assert words in text, words


Run = Callable[..., Any]


def test_the_command_writes_the_page_and_its_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from discreet.cli import main

    trained(tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["certificate", *arguments])

    written = run("model.json", "--ledger", f"{SECRET}.json", "-o", "page.html", "--json")
    assert written.exit_code == 0, written.output
    body = json.loads(written.stdout)
    assert body["output"] == "page.html"
    page = Path("page.html").read_text()
    assert body["digests"]["model file"].removeprefix("sha256:") in page
    assert run("model.json", "-o", "page.html").exit_code == 0  # costs nothing to write again
    assert "an output never replaces an input" in run("model.json", "-o", "model.json").stderr
    Path("old.json").write_text(
        Path("model.json").read_text().replace('"version": 5', '"version": 4')
    )
    for name in ("old.json", "statistics.json", "nowhere.json"):
        refused = run(name, "-o", "other.html")
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"discreet: {name}: ")
        assert refused.stderr.count("\n") == 1
