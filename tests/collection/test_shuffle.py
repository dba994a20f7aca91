"""The anonymiser's step keeps the reports and nothing of who sent them or when."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from discreet import FormatError, PrivacyError
from discreet.collection.batch_sizes import MAX_BATCHES, BatchSizes
from discreet.collection.parquet_reports import ReportFile
from discreet.collection.parquet_tally import tally_parquet
from discreet.collection.report import Report
from discreet.collection.shuffle import shuffle_reports
from discreet.collection.shuffle_memory import ShuffleMemory
from discreet.files.documents import dump_document
from discreet.local import (
    MemoryStore,
    PlanOptions,
    Respondent,
    Tally,
    estimate_statistics,
    make_plan,
)
from discreet.privacy.shuffling import Shuffle
from discreet.randomness import as_random
from discreet.survey import Group, Questionnaire
from discreet.survey.inversion import estimate_statistics as statistics_of_sheets
from schemas import LETTER as SCHEMA


def reports(plan, count):
    record = {"a": "x", "c": "yes"}
    return [Respondent(plan, MemoryStore()).report(record) for _ in range(count)]


@pytest.fixture(scope="module")
def plan():
    return make_plan(SCHEMA, 1.0, 60, PlanOptions(shuffled=0.01))


def test_ids_and_order_are_gone_and_nothing_else(plan):
    sent = reports(plan, 60)
    passed, counted = shuffle_reports(plan, sent, as_random(None))
    assert counted.reports == 60
    assert not {one.id for one in sent} & {one.id for one in passed}
    assert Tally.from_reports(plan, passed).digest == Tally.from_reports(plan, sent).digest
    contents = [one.fingerprint for one in passed]
    before = [replace(one, batch=passed[0].batch).fingerprint for one in sent]
    assert sorted(contents) == sorted(before)
    assert contents != before


def test_the_new_order_is_that_of_the_new_ids(plan):
    """Twin: new ids beside the old order would still tell who was first."""
    passed, _ = shuffle_reports(plan, reports(plan, 60), as_random(1))
    assert [one.id for one in passed] != sorted(one.id for one in reports(plan, 60))
    firsts = set()
    marked = reports(plan, 60)
    for seed in range(40):
        passed, _ = shuffle_reports(plan, marked, as_random(seed))
        firsts.add(passed[0].fingerprint)
    assert len(firsts) > 1


def test_a_memory_refuses_what_another_call_passed_on(plan, tmp_path):
    memory, sent = ShuffleMemory(tmp_path / "memory", plan), reports(plan, 61)
    passed, _ = shuffle_reports(plan, sent[:60], as_random(None), memory=memory)
    assert len(passed) == 60
    for again in (sent, [sent[0], *reports(plan, 60)]):
        with pytest.raises(PrivacyError, match="were in an earlier shuffle"):
            shuffle_reports(plan, again, as_random(None), memory=memory)
    late, _ = shuffle_reports(plan, sent[60:], as_random(None), memory=memory, allow_fewer=True)
    assert Tally.from_reports(plan, [*passed, *late]).reports == 61


def test_what_is_refused_is_not_remembered(plan, tmp_path):
    memory, sent = ShuffleMemory(tmp_path / "memory", plan), reports(plan, 60)
    with pytest.raises(PrivacyError, match="wait for more"):
        shuffle_reports(plan, sent[:9], as_random(None), memory=memory)
    assert len(shuffle_reports(plan, sent, as_random(None), memory=memory)[0]) == 60


def test_twin_without_a_memory_everybody_counts_twice(plan):
    sent = reports(plan, 60)
    passed = [one for _ in range(2) for one in shuffle_reports(plan, sent, as_random(None))[0]]
    counted = Tally.from_reports(plan, passed)
    assert (counted.reports, counted.smallest_shuffle_size, counted.repeated) == (120, 60, 0)


def test_what_comes_twice_is_passed_on_once(plan):
    sent = reports(plan, 60)
    passed, counted = shuffle_reports(
        plan, [*sent, *(one.to_json() for one in sent[:5]), "{}"], as_random(2)
    )
    assert len(passed) == 60
    assert (counted.repeated, counted.rejected.total()) == (5, 1)


def test_too_few_to_hide_in_are_held_back(plan):
    sent = reports(plan, 59)
    with pytest.raises(PrivacyError, match="59 valid reports are fewer than the 60"):
        shuffle_reports(plan, sent, as_random(None))
    assert len(shuffle_reports(plan, sent, as_random(None), allow_fewer=True)[0]) == 59


def test_a_device_charges_what_its_report_reveals_by_itself(plan):
    """Twin: the smaller epsilon of the shuffle would let a store answer far too often."""
    store = MemoryStore()
    Respondent(plan, store).report({"a": "x", "c": "yes"})
    assert plan.epsilon > plan.guarantee.epsilon
    assert sum(store.read_charges().values()) == plan.epsilon


# ------------------------------------------------------------------ batch marks


def roads(plan, tmp_path, *files):
    """Tallies of some files of reports over every road into a tally."""
    together = [report for file in files for report in file]
    yield Tally.from_reports(plan, together)
    yield Tally.from_reports(plan, [report.to_json() for report in together])
    tally = Tally(plan)
    for report in together:
        tally.add(report)
    yield tally
    merged = Tally(plan)
    for file in files:
        merged = merged + Tally.from_json(
            Tally.from_reports(plan, file).to_json(include_seen=False)
        )
    yield merged
    paths = [tmp_path / f"{number}.parquet" for number in range(len(files))]
    for path, file in zip(paths, files, strict=True):
        with ReportFile(path, plan) as out:
            out.add_reports(file)
    yield tally_parquet(plan, paths)
    bulk = Tally(plan)
    for path in paths:
        bulk = bulk + tally_parquet(plan, path)
    yield bulk


@pytest.mark.slow
def test_one_shuffle_that_is_large_enough_gets_the_stronger_promise(plan, tmp_path):
    passed, _ = shuffle_reports(plan, reports(plan, 60), as_random(None))
    assert len({one.batch for one in passed}) == 1
    for parts in ([passed], [passed[:20], passed[20:]]):  # in one file, or in pieces of it
        for tally in roads(plan, tmp_path, *parts):
            assert (tally.reports, tally.smallest_shuffle_size) == (60, 60)
            assert estimate_statistics(tally).guarantee.epsilon == plan.guarantee.epsilon
            assert estimate_statistics(tally).guarantee.delta == plan.shuffled.delta


@pytest.mark.slow
def test_two_small_shuffles_get_the_local_promise(plan, tmp_path):
    """Twin: 120 rows are more than 60, so a promise by the number of rows is the stronger one."""
    files = [
        shuffle_reports(plan, reports(plan, 59), as_random(None), allow_fewer=True)[0]
        for _ in range(2)
    ]
    for tally in roads(plan, tmp_path, *files):
        assert tally.reports == 118
        assert plan.make_guarantee(tally.reports).epsilon == plan.guarantee.epsilon  # the twin
        promise = estimate_statistics(tally).guarantee
        assert (promise.epsilon, promise.delta) == (plan.epsilon, 0.0)
        assert "the smallest batch has 59 counted reports" in str(promise)


@pytest.mark.slow
def test_reports_that_were_never_shuffled_get_the_local_promise(plan, tmp_path):
    unmarked = reports(plan, 60)
    passed, _ = shuffle_reports(plan, reports(plan, 60), as_random(None))
    for files in ([unmarked], [passed, unmarked[:1]], [unmarked[:1], passed]):
        for tally in roads(plan, tmp_path, *files):
            assert tally.smallest_shuffle_size == 0
            promise = estimate_statistics(tally).guarantee
            assert (promise.epsilon, promise.delta) == (plan.epsilon, 0.0)
            assert "reports without a batch mark were counted" in str(promise)


def test_a_file_of_an_earlier_release_beside_a_shuffled_one_is_not_shuffled(plan, tmp_path):
    """It has no column of batch marks. Twin: one mark for all its reports would be a batch."""
    passed, _ = shuffle_reports(plan, reports(plan, 60), as_random(None))
    for name, some in (("marked", passed), ("older", reports(plan, 60))):
        with ReportFile(tmp_path / f"{name}.parquet", plan) as file:
            file.add_reports(some)
    older = pq.read_table(tmp_path / "older.parquet").drop_columns(["batch"])
    pq.write_table(older, tmp_path / "older.parquet")
    tally = tally_parquet(plan, [tmp_path / "marked.parquet", tmp_path / "older.parquet"])
    assert (tally.reports, tally.smallest_shuffle_size) == (120, 0)


def test_sheets_of_small_shuffles_get_the_local_promise():
    """Twin: a promise by the number of sheets is the stronger one."""
    group = Group(("a", "c"), theta="1/2")
    survey = Questionnaire(SCHEMA, [group], shuffled=Shuffle(1.0, 0.01, 60))
    record = {"a": "x", "c": "yes"}

    def sheets(count):
        return [Respondent(survey, MemoryStore()).report(record) for _ in range(count)]

    small = [
        shuffle_reports(survey, sheets(59), as_random(None), allow_fewer=True)[0] for _ in range(2)
    ]
    large, _ = shuffle_reports(survey, sheets(60), as_random(None))
    alone = survey.guarantee.unshuffled_epsilon
    assert survey.make_guarantee(118).epsilon == 1.0 < alone  # the twin
    for sent, epsilon in (([*small[0], *small[1]], alone), (sheets(60), alone), (large, 1.0)):
        assert statistics_of_sheets(Tally.from_reports(survey, sent)).guarantee.epsilon == epsilon


@pytest.mark.slow
def test_the_same_people_shuffled_twice_are_not_a_larger_crowd(plan, tmp_path):
    sent = reports(plan, 30)
    files = [shuffle_reports(plan, sent, as_random(None), allow_fewer=True)[0] for _ in range(2)]
    for tally in roads(plan, tmp_path, *files):
        assert (tally.reports, tally.smallest_shuffle_size) == (60, 30)
        assert estimate_statistics(tally).guarantee.epsilon == plan.epsilon


def test_what_was_shuffled_is_not_shuffled_again(plan):
    passed, _ = shuffle_reports(plan, reports(plan, 60), as_random(None))
    with pytest.raises(PrivacyError, match="all of these 60 reports were shuffled before"):
        shuffle_reports(plan, [one.to_json() for one in passed], as_random(None), allow_fewer=True)
    mixed, counted = shuffle_reports(plan, [*passed, *reports(plan, 60)], as_random(None))
    assert len(mixed) == 60
    assert counted.rejected == {"already shuffled": 60}


def test_a_shuffled_report_travels_with_its_mark_and_an_older_one_without(plan):
    (sent,) = reports(plan, 1)
    marked = replace(sent, batch="0f" * 16)
    assert Report.from_json(marked.to_json()) == marked
    assert Report.from_json(marked.to_json().replace('", "', '",  "')) == marked
    assert Report.from_json(sent.to_json()) == sent
    assert '"version": 2' in sent.to_json()  # what devices keep and send has not changed
    assert '"version": 3' in marked.to_json()
    for version, body in ((2, marked.to_body()), (3, sent.to_body())):
        with pytest.raises(FormatError, match="invalid at batch"):
            Report.from_json(dump_document("report", version, body))
    with pytest.raises(FormatError, match="batch mark of a report is 32"):
        Report.from_json(dump_document("report", 3, {**sent.to_body(), "batch": "f"}))
    with pytest.raises(FormatError, match="changed or damaged"):
        Report.from_json(marked.to_json().replace("0f0f", "1f0f"))


def test_the_same_report_under_two_marks_counts_once(plan):
    (sent,) = reports(plan, 1)
    tally = Tally(plan)
    statuses = [tally.add(replace(sent, batch=mark)).status for mark in ("a" * 32, "b" * 32, None)]
    assert statuses == ["counted", "rejected", "rejected"]
    assert tally.rejected == {"id reused": 2}
    assert tally.batches == {"a" * 32: 1}


@pytest.mark.parametrize(
    "batches",
    [{"a" * 32: 61}, {"a" * 32: 0}, {"a" * 32: -1}, {"a" * 32: 60, "b" * 32: 1}, {"a": 1}],
)
def test_a_tally_file_with_impossible_batches_is_refused(plan, batches):
    tally = Tally.from_reports(plan, shuffle_reports(plan, reports(plan, 60), as_random(None))[0])
    tally.batches = BatchSizes(batches)
    with pytest.raises(FormatError, match="contradicts itself"):
        Tally.from_json(tally.to_json())


def test_an_older_tally_is_refused_with_a_way_out(plan):
    with pytest.raises(FormatError, match=r"version 3, .* make the tally again"):
        Tally.from_json(dump_document("tally", 3, {"smallest": None}))


def test_more_batches_than_are_told_apart_count_as_not_shuffled(plan):
    sizes = BatchSizes()
    for number in range(MAX_BATCHES + 1):
        sizes.add(f"{number:032x}", 5)
    assert len(sizes) == MAX_BATCHES
    tally = Tally(plan, batches=sizes)
    tally.counted[0] = 5 * MAX_BATCHES
    assert tally.smallest_shuffle_size == 5
    tally.counted[0] += 5
    assert tally.smallest_shuffle_size == 0
    more = BatchSizes({"f" * 32: 5})
    more.merge(sizes)
    assert len(more) == MAX_BATCHES
