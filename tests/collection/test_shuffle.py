"""The anonymiser's step keeps the reports and nothing of who sent them or when."""

import pytest

from discreet import Categorical, PrivacyError, Schema
from discreet.collection.shuffle import shuffled
from discreet.local import Choices, MemoryStore, Respondent, Tally, make_plan
from discreet.randomness import as_random

SCHEMA = Schema([Categorical("a", ["x", "y"], optional=False)], "c", ["no", "yes"])


def reports(plan, count):
    record = {"a": "x", "c": "yes"}
    return [Respondent(plan, MemoryStore()).report(record) for _ in range(count)]


@pytest.fixture(scope="module")
def plan():
    return make_plan(SCHEMA, 1.0, 60, Choices(shuffled=0.01))


def test_ids_and_order_are_gone_and_nothing_else(plan):
    sent = reports(plan, 60)
    passed, counted = shuffled(plan, sent, as_random(None))
    assert counted.reports == 60
    assert not {one.id for one in sent} & {one.id for one in passed}
    assert Tally.of(plan, passed).digest == Tally.of(plan, sent).digest
    contents = [one.fingerprint for one in passed]
    assert sorted(contents) == sorted(one.fingerprint for one in sent)
    assert contents != [one.fingerprint for one in sent]


def test_the_new_order_is_that_of_the_new_ids(plan):
    """Twin: new ids beside the old order would still tell who was first."""
    passed, _ = shuffled(plan, reports(plan, 60), as_random(1))
    assert [one.id for one in passed] != sorted(one.id for one in reports(plan, 60))
    firsts = set()
    marked = reports(plan, 60)
    for seed in range(40):
        passed, _ = shuffled(plan, marked, as_random(seed))
        firsts.add(passed[0].fingerprint)
    assert len(firsts) > 1


def test_what_comes_twice_is_passed_on_once(plan):
    sent = reports(plan, 60)
    passed, counted = shuffled(
        plan, [*sent, *(one.to_json() for one in sent[:5]), "{}"], as_random(2)
    )
    assert len(passed) == 60
    assert (counted.repeated, counted.rejected.total()) == (5, 1)


def test_too_few_to_hide_in_are_held_back(plan):
    sent = reports(plan, 59)
    with pytest.raises(PrivacyError, match="59 valid reports are fewer than the 60"):
        shuffled(plan, sent, as_random(None))
    assert len(shuffled(plan, sent, as_random(None), few=True)[0]) == 59


def test_a_device_charges_what_its_report_reveals_by_itself(plan):
    """Twin: the smaller epsilon of the shuffle would let a store answer far too often."""
    store = MemoryStore()
    Respondent(plan, store).report({"a": "x", "c": "yes"})
    assert plan.epsilon > plan.guarantee.epsilon
    assert sum(store.charges().values()) == plan.epsilon
