"""Every fit is paid for before it draws noise, and the account is right to the last fit."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    permutation_test_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from discreet import (
    Categorical,
    CentralNB,
    CryptoRandom,
    FederatedNB,
    FormatError,
    Guarantee,
    LocalNB,
    NaiveBayesModel,
    Numeric,
    PrivacyError,
    PrivacyWarning,
    Schema,
    SchemaError,
    SurveyNB,
)
from discreet.estimators import private
from discreet.estimators.fit_history import (
    PROCESS_HISTORY,
    FitHistory,
    PrivacySpend,
    hash_rows,
    isolated_fit_history,
)
from discreet.estimators.private import FitAccounting
from discreet.privacy.guarantee import Account
from discreet.privacy.ledger import Ledger, MemoryLedger
from discreet.schema import cells

SCHEMA = Schema([Numeric("size", 0, 9), Categorical("flag", [0, 1])], "class", ["no", "yes"])
PRIVATE = [CentralNB, LocalNB, SurveyNB, FederatedNB]
COST = {CentralNB: 1.0, LocalNB: 1.0, FederatedNB: 1.0}


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    frame = pd.DataFrame({"size": np.clip(rng.normal(2 + 5 * y, 1.0), 0, 9), "flag": y})
    return frame, np.where(y, "yes", "no")


def cost_of(nb):
    return COST.get(nb) or SurveyNB(schema=SCHEMA).fit(*people()).guarantee_.epsilon


class Watched(CryptoRandom):
    """A cryptographic source that notes what was paid when the first bytes were drawn."""

    def __init__(self, ledger):
        super().__init__()
        self.ledger, self.paid = ledger, None

    def raw(self, count):
        if self.paid is None:
            self.paid = len(self.ledger.read().entries)
        return super().raw(count)


def paid_at_the_first_draw(nb, **options):
    ledger = MemoryLedger(100.0, 0.5)
    source = Watched(ledger)
    nb(schema=SCHEMA, budget=ledger, random_state=source, **options).fit(*people())
    return source.paid


@pytest.mark.parametrize(
    ("nb", "options"),
    [
        (CentralNB, {}),
        (CentralNB, {"method": "smooth"}),
        (CentralNB, {"delta": 1e-6}),
        (LocalNB, {}),
        (LocalNB, {"waves": 2}),
        (SurveyNB, {}),
        (SurveyNB, {"shuffled": True}),
        (FederatedNB, {}),
        (FederatedNB, {"partition": "vertical"}),
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_every_fit_is_paid_before_the_first_noise_is_drawn(nb, options):
    assert paid_at_the_first_draw(nb, **options) == 1


def test_a_fit_that_pays_afterwards_is_noticed():
    """The twin draws before it pays."""

    class Late(CentralNB):
        """The bad twin: trains, then pays."""

        def _compute_release(self, rows, given, pay):
            asked = []
            found = super()._compute_release(rows, given, asked.append)
            pay(asked[0])
            return found

    assert paid_at_the_first_draw(Late) == 0


@pytest.mark.parametrize("nb", PRIVATE)
def test_what_is_charged_is_what_is_promised(nb):
    budget = MemoryLedger(100.0, 1e-3)
    options = {"delta": 1e-6} if nb is CentralNB else {}
    if nb in (LocalNB, SurveyNB):
        options = {"shuffled": True, "delta": 1e-6}
    promise = nb(schema=SCHEMA, budget=budget, **options).fit(*people(400)).guarantee_
    (entry,) = budget.read().entries
    assert (entry.epsilon, entry.delta) == (promise.epsilon, promise.delta)
    assert entry.what == f"{nb.__name__}.fit"
    assert promise.account == Account(
        "MemoryLedger", 1, promise.epsilon, promise.delta, (100, 1e-3)
    )


def test_a_release_of_more_than_was_paid_for_is_held_back():
    """Two twins: one pays half, the other nothing."""

    class Cheap(CentralNB):
        """The bad twin: pays for half of what it promises."""

        def _compute_release(self, rows, given, pay):
            return super()._compute_release(
                rows, given, lambda promise: pay(Guarantee(promise.epsilon / 2))
            )

    class Free(CentralNB):
        """And one that does not pay at all."""

        def _compute_release(self, rows, given, pay):
            return super()._compute_release(rows, given, lambda promise: None)

    for nb in (Cheap, Free):
        fitted = nb(schema=SCHEMA)
        with pytest.raises(PrivacyError, match="more than was paid for"):
            fitted.fit(*people())
        assert not hasattr(fitted, "model_")


@pytest.mark.slow
@pytest.mark.parametrize("nb", PRIVATE)
def test_a_ledger_is_never_overdrawn(nb):
    X, y = people()
    cost = cost_of(nb)
    ledger = MemoryLedger(3.5 * cost)
    source = Watched(ledger)
    fitted = nb(schema=SCHEMA, budget=ledger)
    for _ in range(3):
        clone(fitted).fit(X, y)
    last = clone(fitted).set_params(random_state=source)
    with pytest.raises(PrivacyError, match=r"are left; nothing was paid or drawn"):
        last.fit(X, y)
    assert source.paid is None  # no noise
    assert not hasattr(last, "model_")
    assert len(ledger.read().entries) == 3


def fits_of_clones(budget: Any) -> int:
    """How many of three fits the account knows."""
    X, y = people()
    first = CentralNB(schema=SCHEMA, budget=budget).fit(X, y)
    clone(first).fit(X, y)
    clone(clone(first)).fit(X, y)
    return len(Ledger.coerce(budget).read().entries)


def test_clones_share_one_account(tmp_path):
    path = tmp_path / "ledger.json"
    ledger = Ledger.create(path, 100.0)
    assert fits_of_clones(MemoryLedger(100.0)) == 3
    assert fits_of_clones(path) == 3
    assert fits_of_clones(str(path)) == 6
    assert fits_of_clones(ledger) == 9


def test_an_account_that_is_copied_with_its_owner_is_noticed():
    """The twin's clones begin accounts of their own."""

    class Copied(MemoryLedger):
        """The bad twin: every clone begins an account of its own."""

        def __deepcopy__(self, memo):
            return Copied(self.read().epsilon)

    assert fits_of_clones(Copied(100.0)) == 1


def test_the_budget_is_a_parameter_like_any_other(tmp_path):
    one, two = MemoryLedger(5.0), MemoryLedger(7.0)
    nb = CentralNB(schema=SCHEMA, budget=one)
    assert nb.get_params()["budget"] is one
    assert clone(nb).budget is one
    assert nb.set_params(budget=two).budget is two
    nb.fit(*people())
    assert [len(each.read().entries) for each in (one, two)] == [0, 1]
    assert "MemoryLedger(epsilon 6 of 7 left)" in repr(nb)


USES: dict[str, tuple[Callable[[Any, Any, Any], Any], int]] = {
    "cross_val_score": (lambda nb, X, y: cross_val_score(nb, X, y, cv=5), 5),
    "search": (lambda nb, X, y: GridSearchCV(nb, {"bins": [2, 3, 4]}, cv=5).fit(X, y), 16),
    "search of a pipeline": (
        lambda nb, X, y: GridSearchCV(
            make_pipeline(FunctionTransformer(), nb), {"centralnb__bins": [2, 3]}, cv=2
        ).fit(X, y),
        5,
    ),
    "voting": (
        lambda nb, X, y: VotingClassifier([("a", nb), ("b", nb)], voting="soft").fit(X, y),
        2,
    ),
    "probabilities": (
        lambda nb, X, y: cross_val_predict(nb, X, y, cv=3, method="predict_proba"),
        3,
    ),
    "calibration": (lambda nb, X, y: CalibratedClassifierCV(nb, cv=4).fit(X, y), 4),
    "calibration of one": (
        lambda nb, X, y: CalibratedClassifierCV(nb, cv=4, ensemble=False).fit(X, y),
        5,
    ),
    "stacking": (
        lambda nb, X, y: StackingClassifier([("a", nb), ("b", nb)], cv=3).fit(X, y),
        2 * (1 + 3),
    ),
    "permuted labels": (
        lambda nb, X, y: permutation_test_score(nb, X, y, cv=2, n_permutations=3),
        2 * (1 + 3),
    ),
    "nested": (
        lambda nb, X, y: cross_val_score(GridSearchCV(nb, {"bins": [2, 3]}, cv=2), X, y, cv=3),
        3 * (2 * 2 + 1),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_the_account_is_right_to_the_last_fit(use):
    """With a ledger and without one, every fit of every use is counted, at its price."""
    X, y = people()
    run, fits = USES[use]
    budget = MemoryLedger(100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        run(CentralNB(0.5, schema=SCHEMA, budget=budget, corrections=False), X, y)
    assert [entry.epsilon for entry in budget.read().entries] == [0.5] * fits
    PROCESS_HISTORY.groups.clear()
    with pytest.warns(PrivacyWarning) as caught:
        run(CentralNB(0.5, schema=SCHEMA, corrections=False), X, y)
    told = [str(one.message) for one in caught if "were fitted before" in str(one.message)]
    assert f"epsilon 0.5 each, {fits} fits, {0.5 * fits:g} in total" in told[-1]
    assert {one.filename for one in caught} == {__file__}  # at the user's line


def test_the_best_estimator_tells_the_whole_account_of_its_ledger():
    X, y = people()
    nb = CentralNB(2.0, schema=SCHEMA, budget=MemoryLedger(40.0))
    with pytest.warns(PrivacyWarning):
        search = GridSearchCV(nb, {"bins": [2, 3, 4]}, cv=5).fit(X, y)
    promise = search.best_estimator_.guarantee_
    account = "Account of these people: 16 releases cost epsilon 32 together, of 40 (MemoryLedger)."
    assert account in str(promise)
    assert "epsilon = 2 per person for this release" in str(promise)
    assert "in total" not in str(promise)
    assert account in search.best_estimator_.model_.guarantee._repr_html_()
    again = NaiveBayesModel.from_json(search.best_estimator_.model_.to_json()).guarantee
    assert again == promise  # in the file, too


def left_behind(nb, *, member, budget=None):
    """What a second fit leaves, its own numbers taken out; ``member`` is in both tables or not."""
    (X, y), (other, labels) = people(150, seed=3), people(150, seed=4)
    sizes = np.random.default_rng(5).uniform(0, 9, (2, 150))  # no two rows are equal
    X, other = X.assign(size=sizes[0]), other.assign(size=sizes[1])
    if member:
        other, labels = pd.concat([other, X.iloc[:1]]), np.append(labels, y[:1])
    with isolated_fit_history(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # what is charged for what follows from noise, where there is a choice to make
        fixed = nb is CentralNB
        unfitted = nb(schema=SCHEMA, budget=budget, **({"selection": False} if fixed else {}))
        clone(unfitted).fit(X, y)
        fitted = clone(unfitted).fit(other, labels)
    told = any("were fitted before" in str(one.message) for one in caught)
    statistics = getattr(fitted, "statistics_", None)
    stated = [fitted.guarantee_, fitted.model_.guarantee]
    stated += [] if statistics is None else [statistics.guarantee]
    stated += [one.guarantee_ for one in (pickle.loads(pickle.dumps(fitted)), copy.copy(fitted))]
    texts = [f"{promise!r} {promise} {promise._repr_html_()}" for promise in stated]
    texts.append(str(sorted(vars(fitted))))
    texts.append(str([sorted(vars(part)) for part in (fitted.model_, statistics) if part]))
    texts.append(str(json.loads(fitted.model_.to_json())["guarantee"]))
    return told, texts


@pytest.mark.slow
@pytest.mark.parametrize("nb", PRIVATE)
def test_nothing_that_is_left_says_whether_rows_were_fitted_before(nb):
    """One row of the second table is in the first, or is not: only the warning differs."""
    (told, recognised), (untold, unknown) = (left_behind(nb, member=one) for one in (True, False))
    assert (told, untold) == (True, False)
    assert recognised == unknown


def test_twin_an_account_of_recognised_rows_in_the_promise_is_noticed(monkeypatch):
    """As it was: the account of the process stands in the promise, in memory and in pickles."""
    true = FitAccounting._warn_of_earlier_fits

    def written_down(accounting, spend):
        true(accounting, spend)
        if spend.fit_count > 1:
            amounts = float(spend.epsilon), float(spend.delta)
            accounting.account = Account(
                "in this process alone", spend.fit_count, *amounts, (math.inf, 0.0)
            )

    monkeypatch.setattr(FitAccounting, "_warn_of_earlier_fits", written_down)
    (_, recognised), (_, unknown) = (left_behind(CentralNB, member=one) for one in (True, False))
    assert recognised != unknown


def test_the_account_of_a_ledger_is_the_same_whoever_is_in_it():
    (_, one), (_, two) = (
        left_behind(CentralNB, member=member, budget=MemoryLedger(9.0)) for member in (True, False)
    )
    assert one == two
    assert "2 releases cost epsilon 2 together, of 9" in one[0]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_threads_and_worker_processes_share_the_account(backend):
    from joblib import parallel_config

    X, y = people()
    budget = MemoryLedger(10.0)
    nb = CentralNB(1.0, schema=SCHEMA, budget=budget, corrections=False)
    with parallel_config(backend=backend, n_jobs=2):
        scores = cross_val_score(nb, X, y, cv=8)
        assert np.isfinite(scores).all()
        assert len(budget.read().entries) == 8
        with pytest.warns(Warning, match="fits failed"):  # scikit-learn notes refusals as NaN
            scores = cross_val_score(nb, X, y, cv=8)
    assert np.isnan(scores).sum() == 6
    assert len(budget.read().entries) == 10


def test_a_search_stops_where_the_account_ends():
    X, y = people()
    nb = CentralNB(1.0, schema=SCHEMA, budget=MemoryLedger(3.0))
    search = GridSearchCV(nb, {"bins": [2, 3]}, cv=2, error_score="raise")
    with pytest.warns(PrivacyWarning), pytest.raises(PrivacyError, match="nothing was paid"):
        search.fit(X, y)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"random_state": 0}, "a seeded source"),
        ({"schema": None}, "taken from the data"),
        ({"method": "global-published"}, "exact class sizes"),
        ({"epsilon": math.inf}, "there is no noise"),
    ],
)
def test_a_promise_that_is_not_kept_has_no_price(options, says):
    budget = MemoryLedger(10.0)
    fitted = CentralNB(**{"schema": SCHEMA, "budget": budget, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        with pytest.raises(PrivacyError, match=says):
            fitted.fit(*people())
    assert budget.read().entries == ()


@pytest.mark.parametrize("nb", PRIVATE)
def test_rows_that_do_not_fit_cost_nothing(nb):
    X, y = people()
    budget = MemoryLedger(100.0)
    fitted = nb(schema=SCHEMA, budget=budget)
    with pytest.raises(SchemaError, match="outside the public bounds"):
        fitted.fit(X.assign(size=10.0), y)
    with pytest.raises(SchemaError, match="not one of the public classes"):
        fitted.fit(X, ["maybe"] * len(y))
    assert budget.read().entries == ()
    assert PROCESS_HISTORY.groups == []


def test_tables_that_are_not_in_memory_are_paid_for_and_recognised(tmp_path):
    X, y = people()
    path = tmp_path / "people.csv"
    X.assign(**{"class": y}).to_csv(path, index=False)
    budget = MemoryLedger(10.0)
    nb = CentralNB(schema=SCHEMA, budget=budget).fit_source(path)
    (entry,) = budget.read().entries
    assert entry.who == str(path)
    assert nb.guarantee_.account.releases == 1
    with pytest.warns(PrivacyWarning, match=r"epsilon 1 each, 2 fits, 2 in total"):
        CentralNB(schema=SCHEMA).fit_source(str(path))


# ---- the account of a process


def test_a_memory_ledger_ends_with_its_process():
    program = (
        "import pickle, sys; from discreet.privacy.ledger import MemoryLedger;"
        "sys.stdout.buffer.write(pickle.dumps(MemoryLedger(1.0)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    left = pickle.loads(done.stdout)
    assert not left.path.parent.exists()
    assert repr(left) == "MemoryLedger(of a process that has ended)"
    with pytest.raises(FormatError, match="no such ledger"):
        CentralNB(schema=SCHEMA, budget=left).fit(*people())
    own = MemoryLedger(1.0)
    assert copy.deepcopy(own) is own
    assert os.name == "nt" or own.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_the_end_of_a_forked_process_takes_no_account_with_it():
    program = (
        "import os; from discreet.privacy.ledger import MemoryLedger; ledger = MemoryLedger(1.0)\n"
        "if os.fork() == 0: raise SystemExit\n"
        "os.wait(); print(ledger)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "MemoryLedger(epsilon 1 of 1 left)\n", done.stderr


def test_numbers_of_numpy_are_charged_as_they_were_written():
    budget = MemoryLedger(np.float32(0.3))
    for _ in range(3):
        CentralNB(np.float32(0.1), schema=SCHEMA, budget=budget).fit(*people())
    assert budget.read().remaining[0] == 0  # three times 0.1, not 0.10000000149
    assert Guarantee(np.float32(0.1), np.float64(0)).epsilon == 0.1
    with pytest.raises(PrivacyError):
        Guarantee(10**400)


# ---- rows that were fitted before


def hashes(frame):
    return hash_rows({name: frame[name] for name in frame}, len(frame))


def test_splits_of_one_table_are_the_same_people():
    X, y = people()
    for folds in (KFold(4), StratifiedKFold(3, shuffle=True, random_state=1)):
        seen = FitHistory()
        for number, (train, _) in enumerate(folds.split(X, y), 1):
            assert seen.add(hashes(X.iloc[train]), Guarantee(1.0)).fit_count == number
    seen = FitHistory()
    first, second = hashes(X.iloc[:60]), hashes(X.iloc[60:])
    assert seen.add(first, Guarantee(1.0)).fit_count == 1
    assert seen.add(second, Guarantee(0.5, 1e-6)).fit_count == 1  # other people
    both = PrivacySpend(3, 0.5, 2.0, Fraction("3.5"), Fraction("1e-6"))
    assert seen.add(hashes(X.iloc[59:61]), Guarantee(2.0)) == both
    last = seen.add(first, Guarantee(1.0, 2e-6))
    assert (last.fit_count, last.delta) == (4, Fraction("3e-6"))  # from now on one group


def test_nothing_dearer_than_what_was_paid_is_stated():
    """In epsilon or in delta: each alone would be a promise that nobody paid for."""
    accounting = object.__new__(FitAccounting)
    (
        accounting.estimator_name,
        accounting.paid_guarantee,
        accounting.preparation_reason,
        accounting.account,
        accounting.schema,
    ) = (
        "CentralNB",
        Guarantee(1.0, 1e-6),
        "",
        None,
        Schema([Categorical("colour", ["red"])], "sick", ["no", "yes"]),
    )
    accounting.row_hashes, accounting.budget = np.empty(0, np.uint64), MemoryLedger(1.0)
    assert accounting.make_guarantee(Guarantee(0.5, 1e-6)).epsilon == 0.5
    for dearer in (Guarantee(1.5, 1e-6), Guarantee(1.0, 1e-5)):
        with pytest.raises(PrivacyError, match="more than was paid for"):
            accounting.make_guarantee(dearer)


@pytest.mark.parametrize("nb", PRIVATE)
def test_a_fit_that_failed_cost_nobody_anything(nb):
    """Whoever corrects a bound and fits again is not told of two fits."""
    X, y = people(150, seed=91)
    narrow = Schema([Numeric("size", 0, 1), Categorical("flag", [0, 1])], "class", ["no", "yes"])
    with isolated_fit_history():
        with pytest.raises(SchemaError, match="is outside the public bounds"):
            nb(schema=narrow).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error", PrivacyWarning)
            nb(schema=SCHEMA).fit(X, y)
        with pytest.warns(PrivacyWarning, match="2 fits"):
            nb(schema=SCHEMA).fit(X, y)


def test_no_person_has_spent_more_than_is_told():
    """The rule is an upper bound for everyone, whatever the splits."""
    rng = np.random.default_rng(5)
    X, _ = people(60)
    seen, own = FitHistory(), np.zeros(60)
    for _ in range(200):
        who = rng.choice(60, rng.integers(1, 6), replace=False)
        cost = float(rng.integers(1, 4))
        own[who] += cost
        told = seen.add(hashes(X.iloc[who]), Guarantee(cost))
        assert told.epsilon >= own[who].max()


def test_the_rule_that_only_knows_whole_tables_is_too_little():
    """The bad twin: a fingerprint of the table misses every fold."""
    X, y = people()
    whole = {hash(X.iloc[train].to_csv()) for train, _ in KFold(4).split(X, y)}
    assert len(whole) == 4  # nothing was ever seen before


def test_rows_are_known_in_every_container_order_and_spelling():
    import polars as pl
    import pyarrow as pa

    X, _ = people()
    mixed = X.assign(colour=np.where(X["flag"], "red", None), truth=X["flag"] == 1)
    first = hashes(mixed)
    again = [
        mixed.sample(frac=1, random_state=3),
        mixed.astype({"size": object, "flag": str}),
        mixed.astype({"flag": float, "colour": "category", "truth": object}),
        mixed.astype({"flag": np.uint64}),
        pd.concat([mixed, mixed]),
        pl.from_pandas(mixed),
    ]
    for frame in again:
        names = list(frame.columns)
        found = hash_rows({name: frame[name] for name in names}, len(frame))
        np.testing.assert_array_equal(found, first)
    table = pa.Table.from_pandas(mixed)
    found = hash_rows({name: table[name] for name in table.column_names}, len(table))
    np.testing.assert_array_equal(found, first)
    assert not np.isin(first, hashes(mixed.assign(size=mixed["size"] + 1e-9))).any()


def test_a_number_is_known_by_its_value_not_by_its_bits():
    """Minus zero is zero, and one missing number is as missing as another."""
    other_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    first = hash_rows({"x": np.array([0.0, math.nan, 1.0])}, 3)
    for values in ([-0.0, other_nan, 1.0], ["-0", None, "1"], [np.float32(-0.0), pd.NA, 1]):
        kind = float if isinstance(values[1], float) else object
        np.testing.assert_array_equal(hash_rows({"x": np.array(values, kind)}, 3), first)
    assert not np.isin(hash_rows({"x": np.array([2.0])}, 1), first).any()


UNREADABLE = [10**5000, Decimal("sNaN"), np.void(b"ab")]
"""Values that have no text, no order or no hash in Python."""


@pytest.mark.parametrize("value", UNREADABLE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("nb", PRIVATE)
def test_a_fit_that_was_paid_for_ends_whatever_a_value_is(nb, value):
    schema = Schema([Categorical("k", ["a", "b"])], "class", ["no", "yes"], unseen="other")
    X = cells.to_object_array(["a", "b", "b", value] * 30).reshape(-1, 1)
    budget = MemoryLedger(10.0)
    fitted = nb(schema=schema, budget=budget).fit(X, ["no", "yes"] * 60)
    assert fitted.guarantee_.account is not None
    assert len(budget.read().entries) == 1


def test_a_value_that_is_missing_in_its_own_way_is_missing_among_numbers():
    schema = Schema([Numeric("n", 0, 9)], "class", ["no", "yes"])
    X = cells.to_object_array([1.0, 2.0, Decimal("sNaN"), 3] * 30).reshape(-1, 1)
    budget = MemoryLedger(10.0)
    assert CentralNB(schema=schema, budget=budget).fit(X, ["no", "yes"] * 60).guarantee_.account


def test_the_bits_of_a_value_are_its_own():
    """Whatever the other values of its column are, and whether they are equal to it."""
    values = [True, 1, "1", "true", 10**5000, 10**5001, Decimal("sNaN"), np.void(b"ab"), None, "a"]
    whole = cells.to_object_array(values)
    alone = [hash_rows({"x": cells.to_object_array([value])}, 1)[0] for value in values]
    np.testing.assert_array_equal(hash_rows({"x": whole}, len(values)), np.unique(alone))
    assert len(set(alone)) == 7  # True and "true", 1 and "1", a signalling NaN and None


@pytest.mark.parametrize("nb", PRIVATE)
def test_rows_are_turned_into_bits_before_they_are_paid_for(nb, monkeypatch):
    """Should a value be unreadable nevertheless, the fit costs nothing."""
    monkeypatch.setattr(private, "hash_rows", lambda columns, count: 1 / 0)
    budget = MemoryLedger(10.0)
    with pytest.raises(ZeroDivisionError):
        nb(schema=SCHEMA, budget=budget).fit(*people())
    assert budget.read().entries == ()


def test_twin_rows_are_turned_into_bits_when_all_is_paid(monkeypatch):
    """As it was: the ledger is charged, and nothing is learnt."""
    pay = FitAccounting.charge_ledger

    def pay_first(accounting, promise):
        compute_hashes = accounting.compute_hashes
        accounting.compute_hashes = lambda: np.zeros(0, np.uint64)
        account = pay(accounting, promise)
        accounting.compute_hashes = compute_hashes
        return account

    monkeypatch.setattr(private, "hash_rows", lambda columns, count: 1 / 0)
    monkeypatch.setattr(FitAccounting, "charge_ledger", pay_first)
    monkeypatch.setattr(
        FitAccounting, "make_guarantee", lambda accounting, promise: accounting.compute_hashes()
    )
    budget = MemoryLedger(10.0)
    with pytest.raises(ZeroDivisionError):
        CentralNB(schema=SCHEMA, budget=budget).fit(*people())
    assert len(budget.read().entries) == 1


def test_nothing_but_bits_is_kept_and_no_more_than_allowed():
    rng = np.random.default_rng(0)
    seen = FitHistory(max_rows=1000)
    table = pd.DataFrame({"x": rng.normal(size=5000)})
    seen.add(hashes(table), Guarantee(1.0))
    ((stored, _),) = seen.groups
    assert 100 < len(stored) <= 1000
    assert stored.dtype == np.uint64
    assert not np.isin(stored, table["x"].to_numpy().view(np.uint64)).any()  # not the numbers
    assert seen.add(hashes(table.iloc[::2]), Guarantee(1.0)).fit_count == 2  # still recognised
    assert seen.add(hashes(table.iloc[:1000] + 9), Guarantee(1.0)).fit_count == 1
    assert sum(len(group) for group, _ in seen.groups) <= 1000


@pytest.mark.parametrize("nb", PRIVATE)
def test_simulations_and_exact_fits_are_not_added_up(nb):
    X, y = people()
    exact = {"theta": 1.0} if nb is SurveyNB else {"epsilon": math.inf}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            nb(schema=SCHEMA, random_state=0).fit(X, y)
            nb(schema=SCHEMA, **exact).fit(X, y)
    assert PROCESS_HISTORY.groups == []


def test_sums_beyond_all_doubles_are_told_too():
    """Of earlier fits, whatever they asked for, no fit may fail that was paid for."""
    X, y = people(60, seed=6)
    with isolated_fit_history():
        for epsilon in (1.7e308, 1.7e308, 1.0):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                CentralNB(epsilon, schema=SCHEMA).fit(X, y)
    assert any("3 fits, " in str(one.message) for one in caught)


def test_what_is_done_apart_is_not_remembered():
    X, y = people()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with isolated_fit_history():
                CentralNB(schema=SCHEMA).fit(X, y)
    assert PROCESS_HISTORY.groups == []


def test_members_of_a_bagging_are_seeded_and_cannot_be_charged():
    X, y = people()
    numbers = X.to_numpy(float)
    budget = MemoryLedger(10.0)
    nb = LocalNB(schema=SCHEMA, budget=budget)
    with pytest.warns(PrivacyWarning, match="sets random_state"), pytest.raises(PrivacyError):
        BaggingClassifier(nb, n_estimators=2).fit(numbers, y)
    assert budget.read().entries == ()
    with pytest.warns(PrivacyWarning, match="sets random_state"):
        bag = BaggingClassifier(LocalNB(20.0, schema=SCHEMA), n_estimators=2).fit(numbers, y)
    assert not any(one.guarantee_.is_private for one in bag.estimators_)
    assert bag.score(numbers, y) > 0.5
