"""A seed, an inferred schema and a published but unsound method void a promise on every way.

Each way is walked three times: with nothing wrong (then it must be private, so that the test can
fail), with an inferred schema, and with a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import CentralNB, FederatedNB, LocalNB, SurveyNB
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.collection.tally import Tally
from discreet.estimation import estimate
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import make_feature_requests
from discreet.federated.simulation import RoundTerms, simulate_horizontal, simulate_vertical
from discreet.files.documents import compute_digest, encode_canonical, parse_document
from discreet.local import inversion as local_inversion
from discreet.local.planning import make_plan
from discreet.model import NaiveBayesModel
from discreet.privacy.guarantee import INFERRED_REASON, Guarantee
from discreet.randomness import as_random
from discreet.schema.schema import Categorical, Schema
from discreet.statistics.statistics import Statistics
from discreet.survey import inversion as survey_inversion
from discreet.survey.questionnaire import Questionnaire

ROWS = [("red", "no"), ("blue", "yes"), ("red", "yes"), ("blue", "no")] * 6
COLUMNS = {"colour": np.array([one for one, _ in ROWS])}
CODES = np.array([int(two == "yes") for _, two in ROWS], dtype=np.int32)


def schema(inferred: bool) -> Schema:
    colour = Categorical("colour", ["red", "blue"], optional=False)
    return Schema([colour], "sick", ["no", "yes"], inferred=inferred)


def fitted(estimator: Any, public: Schema, seed: int | None) -> Any:
    nb = estimator(schema=public, random_state=seed)
    return nb.fit(COLUMNS["colour"].astype(object)[:, None], np.array([two for _, two in ROWS]))


def of_estimator(estimator: Any, public: Schema, seed: int | None) -> list[Guarantee]:
    nb = fitted(estimator, public, seed)
    return [nb.guarantee_, nb.model_.guarantee, nb.statistics_.guarantee]


def of_files(public: Schema, seed: int | None) -> list[Guarantee]:
    nb = fitted(CentralNB, public, seed)
    model = NaiveBayesModel.from_json(nb.model_.to_json())
    statistics = Statistics.from_json(nb.statistics_.to_json())
    return [model.guarantee, statistics.guarantee, estimate(statistics).guarantee]


def of_reports(public: Schema, seed: int | None) -> list[Guarantee]:
    """JSON reports, their tally, the tally's file, statistics and model."""
    plan = make_plan(public, 1.0, 100)
    tally = Tally(plan)
    for number, (colour, sick) in enumerate(ROWS):
        device = Respondent(
            plan, MemoryStore(), random_state=None if seed is None else seed + number
        )
        tally.add(device.report({"colour": colour, "sick": sick}).to_json())
    read = Tally.from_json(tally.to_json())
    statistics = local_inversion.estimate_statistics(read)
    both = local_inversion.estimate_statistics(tally + read.__class__(plan))
    given = local_inversion.estimate_statistics(read, plan.guarantee)
    return [device.guarantee, *(s.guarantee for s in (statistics, both, given))]


def of_sheets(public: Schema, seed: int | None) -> list[Guarantee]:
    survey = Questionnaire.from_schema(public, 0.5)
    tally = Tally(survey)
    for number, (colour, sick) in enumerate(ROWS):
        random_state = None if seed is None else seed + number
        respondent = Respondent(survey, MemoryStore(), random_state=random_state)
        tally.add(respondent.report({"colour": colour, "sick": sick}).to_json())
    statistics = survey_inversion.estimate_statistics(Tally.from_json(tally.to_json()))
    return [respondent.guarantee, statistics.guarantee, estimate(statistics).guarantee]


def of_rounds(vertical: bool, public: Schema, seed: int | None) -> list[Guarantee]:
    terms, random = RoundTerms(public, make_feature_requests(public, 4, []), 1.0), as_random(seed)
    if vertical:
        release, _ = simulate_vertical(terms, COLUMNS, CODES, random)
    else:
        halves = [slice(0, 12), slice(12, 24)]
        parts = [({"colour": COLUMNS["colour"][half]}, CODES[half]) for half in halves]
        release, _ = simulate_horizontal(terms, parts, random)
    assert release.statistics is not None
    return [release.model.guarantee, release.statistics.guarantee]


WAYS: dict[str, Callable[[Schema, int | None], list[Guarantee]]] = {
    "central": partial(of_estimator, CentralNB),
    "moments": partial(of_estimator, partial(CentralNB, method="moments")),
    "local": partial(of_estimator, LocalNB),
    "survey": partial(of_estimator, SurveyNB),
    "federated": partial(of_estimator, FederatedNB),
    "files": of_files,
    "reports": of_reports,
    "sheets": of_sheets,
    "horizontal round": partial(of_rounds, False),
    "vertical round": partial(of_rounds, True),
}


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_a_promise_is_voided_by_an_inferred_schema_and_by_a_seed(way: str) -> None:
    walk = WAYS[way]
    assert all(one.is_private for one in walk(schema(False), None))
    inferred = walk(schema(True), None)
    assert [one.void for one in inferred] == [(INFERRED_REASON,)] * len(inferred)
    seeded = walk(schema(False), 7)
    assert [one.simulated for one in seeded] == [True] * len(seeded)


@pytest.mark.parametrize("way", WAYS)
def test_twin_without_the_one_rule_every_way_promises_what_it_cannot_keep(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guarantee, "void_if", lambda self, **why: self)
    assert any(one.is_private for one in WAYS[way](schema(True), None))


def test_documents_that_people_agree_on_say_so_before_anyone_answers() -> None:
    cards = [Identity.generate(name).card for name in "abcd"]

    def promises(public: Schema) -> list[Guarantee]:
        manifest = Manifest(
            public,
            make_feature_requests(public, 4, []),
            1.0,
            tuple(cards[:2]),
            *cards[2:],
            aggregation="masks",
        )
        questionnaire = Questionnaire.from_schema(public, 0.5)
        return [make_plan(public, 1.0, 100).guarantee, questionnaire.guarantee, manifest.guarantee]

    assert all(one.is_private for one in promises(schema(False)))
    assert INFERRED_REASON in Questionnaire.from_schema(schema(True), 0.5).sentence
    assert INFERRED_REASON not in Questionnaire.from_schema(schema(False), 0.5).sentence
    for one in promises(schema(True)):
        assert one.void == (INFERRED_REASON,)
        assert "known without the data" not in str(one)


def test_a_resealed_file_cannot_claim_a_promise_that_its_own_schema_voids() -> None:
    whole = parse_document(fitted(CentralNB, schema(True), None).model_.to_json(), "model")
    whole["guarantee"]["void"] = []
    del whole["digest"]
    text = encode_canonical({**whole, "digest": compute_digest(encode_canonical(whole))})
    assert NaiveBayesModel.from_json(text).guarantee.void == (INFERRED_REASON,)


def test_a_published_method_keeps_nothing_whatever_else_holds() -> None:
    nb = fitted(partial(CentralNB, method="global-published"), schema(False), None)
    assert not nb.guarantee_.is_private
    assert nb.guarantee_.epsilon == np.inf
    assert str(nb.guarantee_).startswith("NOT KEPT: as published")
    assert "protected" not in str(nb.guarantee_).lower()


def test_where_nothing_was_promised_nothing_is_taken_back() -> None:
    nothing = Guarantee.make_unprotected()
    assert (
        nothing.void_if(schema=schema(True), simulated=True, published_reason="unsound") == nothing
    )


def test_the_rule_adds_up_and_never_forgets() -> None:
    once = Guarantee(1.0).void_if(schema=schema(True)).void_if(simulated=True)
    assert (once.void, once.simulated) == ((INFERRED_REASON,), True)
    assert once.void_if(schema=schema(True), simulated=False) == once


@pytest.mark.parametrize("kind", ["report", "sheet"])
def test_a_report_says_that_it_is_simulated_and_real_ones_are_as_short_as_before(
    kind: str,
) -> None:
    answers = {"colour": "red", "sick": "no"}

    def text(seed: int | None) -> str:
        public, store = schema(False), MemoryStore()
        if kind == "report":
            return (
                Respondent(make_plan(public, 1.0, 9), store, random_state=seed)
                .report(answers)
                .to_json()
            )
        survey = Questionnaire.from_schema(public, 0.5)
        return Respondent(survey, store, random_state=seed).report(answers).to_json()

    assert '"simulated": true' in text(1)
    assert "simulated" not in text(None)


def test_the_mark_survives_being_written_to_parquet(tmp_path: Path) -> None:
    from discreet.collection.parquet_reports import ReportFile
    from discreet.collection.parquet_tally import tally_parquet

    plan = make_plan(schema(False), 1.0, 9)
    for seed in (None, 1):
        report = Respondent(plan, MemoryStore(), random_state=seed).report(
            {"colour": "red", "sick": "no"}
        )
        file = tmp_path / f"{seed}.parquet"
        with ReportFile(file, plan) as reports:
            reports.add_reports([report])
        assert tally_parquet(plan, file).simulated == (seed is not None)
