"""Waves: the class question follows from everyone, and shares can be recomputed by anyone."""

import json
from dataclasses import replace

import numpy as np
import pytest

from commands import run
from discreet import EstimationError, FormatError, LocalNB
from discreet.collection.simulation import simulate_tally
from discreet.files.documents import dump_document
from discreet.local import Plan, PlanOptions, Question, estimate_statistics, make_plan
from discreet.local.waves import check_shares, combine_waves, next_plan
from discreet.privacy.shuffling import Shuffle
from discreet.randomness import as_random
from schemas import make_answer_schema

SCHEMA = make_answer_schema("abcdef", target="k", classes=["no", "yes"])


def people(count, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, count)
    strong = rng.random((count, 6)) < np.where(y[:, None] == 1, 0.8, 0.2)
    noise = rng.random((count, 6)) < 0.5
    X = np.where(np.arange(6) < 2, strong, noise).astype(int)
    words = np.array(["n", "y"])
    return {name: words[X[:, j]] for j, name in enumerate("abcdef")}, np.array(["no", "yes"])[y]


def collected(plan, seed, count=3000):
    X, y = people(count, seed)
    codes = plan.encode_columns({**X, "k": y})
    return simulate_tally(
        plan, codes, as_random(1000 + seed)
    )  # not the stream that drew the people


def class_share(plan):
    return float(plan.shares[0]) if not plan.questions[0].features else 0.0


@pytest.fixture(scope="module")
def waves():
    first = make_plan(SCHEMA, 1.0, 9000)
    tallies = [collected(first, 1)]
    plans = [first]
    for seed in (2, 3):
        plans.append(next_plan(tallies, 9000))
        tallies.append(collected(plans[-1], seed))
    return plans, tallies


def test_a_plan_names_its_wave_its_predecessor_and_the_tally(waves):
    plans, tallies = waves
    assert [plan.wave and plan.wave.number for plan in plans] == [None, 2, 3]
    for before, tally, after in zip(plans, tallies, plans[1:], strict=False):
        assert (after.wave.plan, after.wave.tally) == (before.digest, tally.digest)
        assert after.wave.respondents == 9000
        assert Plan.from_json(after.to_json()).wave == after.wave
    assert "wave" not in json.loads(plans[0].to_json())


def test_later_waves_ask_more_about_what_matters(waves):
    plans, _ = waves
    shares = dict(zip([q.features for q in plans[1].questions], plans[1].shares, strict=True))
    assert min(shares["a",], shares["b",]) > 1.2 * max(shares[n,] for n in "cdef")


def test_anyone_can_recompute_the_shares(waves):
    plans, tallies = waves
    check_shares(plans[1], tallies[:1])
    check_shares(plans[2], tallies[1::-1])  # in any order
    # the ids of reports are not part of a tally's digest
    from discreet.collection.tally import Tally

    assert Tally.from_json(tallies[0].to_json(include_seen=False)).digest == tallies[0].digest


def test_shares_that_follow_from_nothing_are_noticed(waves):
    plans, tallies = waves
    questions = list(plans[2].questions)
    one = questions[0]
    questions[0] = Question(one.features, one.mechanism, one.weight + 1, one.power)
    with pytest.raises(EstimationError, match="do not follow"):
        check_shares(replace(plans[2], questions=questions), tallies[:2])
    wave = replace(plans[2].wave, respondents=3000 // 60)
    with pytest.raises(EstimationError, match="do not follow"):
        check_shares(replace(plans[2], wave=wave), tallies[:2])
    with pytest.raises(EstimationError, match="not among the given"):
        check_shares(plans[2], tallies[1:2])
    other = collected(plans[0], 7)
    with pytest.raises(EstimationError, match="not among the given"):
        check_shares(plans[1], [other])
    with pytest.raises(EstimationError, match="follows no earlier wave"):
        check_shares(plans[0], tallies[:1])


def test_waves_out_of_order_are_refused(waves):
    _, tallies = waves
    for some in (tallies[1:2], tallies[1::-1], tallies[::2], []):
        with pytest.raises(EstimationError):
            next_plan(some, 9000)


def test_the_class_question_follows_from_all_respondents():
    """Twin: a plan made for a third of the people asks too many of them for their class alone."""
    X, y = people(1800)
    alone = class_share(make_plan(SCHEMA, 1.0, 600))
    together = class_share(make_plan(SCHEMA, 1.0, 600, PlanOptions(respondents_all_waves=1800)))
    assert alone > together == class_share(make_plan(SCHEMA, 1.0, 1800))
    table = np.column_stack(list(X.values()))
    nb = LocalNB(1.0, schema=SCHEMA, waves=3, random_state=0).fit(table, y)
    assert class_share(nb.plan_) == pytest.approx(together, rel=1e-3)


def test_the_digest_of_a_tally_knows_its_sums(waves):
    plans, tallies = waves
    assert tallies[0].digest != collected(plans[0], 8).digest
    changed = tallies[0] + collected(plans[0], 9)
    assert changed.digest != tallies[0].digest


def test_shuffled_waves_are_shuffled_one_by_one(waves):
    _, tallies = waves
    made = next_plan(tallies[:1], 9000, shuffled=Shuffle(1.0, 1e-6, 3000))
    assert made.shuffled.respondents == 3000
    assert made.wave.respondents == 9000
    check_shares(made, tallies[:1])
    second = collected(made, 5)
    both = combine_waves(
        [estimate_statistics(tallies[0]), estimate_statistics(second)], [3000, 3000]
    )
    assert both.guarantee.unshuffled_epsilon == made.epsilon
    assert both.guarantee.epsilon == 1.0


def test_a_wave_that_is_none_is_refused(waves):
    body = waves[0][1].to_body()
    for change, reason in (
        ({"number": 1}, "at least 2"),
        ({"tally": "sha256:1"}, "is not a digest"),
        ({"kind": "other"}, "kind"),
    ):
        text = dump_document("plan", Plan.version, {**body, "wave": {**body["wave"], **change}})
        with pytest.raises(FormatError, match=reason):
            Plan.from_json(text)


# ------------------------------------------------------------------ tallies of shuffled reports


def test_tallies_of_two_shuffles_do_not_add_up_to_one():
    """Twin: counting all reports of both would state the stronger promise."""
    plan = make_plan(SCHEMA, 1.0, 3000, PlanOptions(shuffled=1e-6))
    small = [collected(plan, seed, 2000) for seed in (1, 2)]
    both = small[0] + small[1]
    assert both.reports == 4000 > plan.shuffled.respondents
    assert both.smallest_shuffle_size == 2000
    assert estimate_statistics(both).guarantee.epsilon == plan.epsilon
    again = type(both).from_json(both.to_json())
    assert again.smallest_shuffle_size == 2000
    whole = [collected(plan, seed, 3000) for seed in (3, 4)]
    kept = estimate_statistics(whole[0] + whole[1]).guarantee
    assert (kept.epsilon, kept.delta, kept.unshuffled_epsilon) == (1.0, 1e-6, plan.epsilon)
    text = json.loads(both.to_json())
    body = {k: v for k, v in text.items() if k not in ("format", "version", "digest")}
    with pytest.raises(FormatError, match="contradicts itself"):
        type(both).from_json(dump_document("tally", 4, {**body, "batches": {"a" * 32: 5000}}))


def test_too_few_reports_leave_the_weaker_promise():
    plan = make_plan(SCHEMA, 1.0, 3000, PlanOptions(shuffled=1e-6))
    enough = estimate_statistics(collected(plan, 1, 3000)).guarantee
    assert (enough.epsilon, enough.delta, enough.unshuffled) == (1.0, 1e-6, plan.epsilon)
    few = estimate_statistics(collected(plan, 1, 2999)).guarantee
    assert (few.epsilon, few.delta, few.unshuffled) == (plan.epsilon, 0.0, None)
    assert "has 2,999 counted reports" in str(few)


# ------------------------------------------------------------------ commands


@pytest.mark.slow
def test_waves_and_shuffles_on_the_command_line(tmp_path, capsys):
    import csv

    X, y = people(900)
    rows = [dict(zip([*X, "k"], row, strict=True)) for row in zip(*X.values(), y, strict=True)]
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*X, "k"])
        writer.writeheader()
        writer.writerows(rows)
    files = {n: tmp_path / n for n in ("s.json", "p1.json", "p2.json", "r.parquet", "t1.json")}
    files["s.json"].write_text(SCHEMA.to_json())
    made = ("local", "plan", files["s.json"], "--epsilon", 1, "--respondents", 900)
    assert run(capsys, *made, "-o", files["p1.json"])[0] == 0
    received = ("local", "perturb", files["p1.json"], tmp_path / "people.csv")
    assert run(capsys, *received, "-o", files["r.parquet"])[0] == 0
    added = ("local", "tally", files["p1.json"], files["r.parquet"], "-o", files["t1.json"])
    assert run(capsys, *added)[0] == 0
    after = ("--after", files["t1.json"])
    assert run(capsys, *made, *after, "-o", files["p2.json"])[0] == 0
    code, out, _ = run(capsys, "local", "check", files["p2.json"], *after)
    assert code == 0
    assert "computed again" in out
    code, out, _ = run(capsys, "local", "check", files["p2.json"])
    assert "--after" in out
    code, _, err = run(capsys, *made, *after, "--bins", 4)
    assert code == 2
    assert "first wave" in err
    # shuffled
    shuffled = (
        *made[:-1],
        900,
        "--shuffled",
        "--delta",
        1e-6,
        "-o",
        tmp_path / "sp.json",
        "--json",
    )
    code, out, _ = run(capsys, *shuffled)
    assert json.loads(out)["guarantee"]["unshuffled"] > 2
    assert run(capsys, *made, "--delta", 1e-6)[0] == 2
    plan = tmp_path / "sp.json"
    run(capsys, "local", "perturb", plan, tmp_path / "people.csv", "-o", tmp_path / "sr.parquet")
    passed = ("local", "shuffle", plan, tmp_path / "sr.parquet", "-o")
    code, out, _ = run(capsys, *passed, tmp_path / "shuffled.parquet")
    assert "passed on  900" in out
    run(capsys, "local", "tally", plan, tmp_path / "shuffled.parquet", "-o", tmp_path / "st.json")
    code, out, _ = run(
        capsys, "local", "train", tmp_path / "st.json", "-o", tmp_path / "m.json", "--json"
    )
    promise = json.loads(out)["guarantee"]
    assert (promise["epsilon"], promise["delta"]) == (1.0, 1e-6)
