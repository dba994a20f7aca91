"""Claim: a query has one group for every public cell, however the values are spelled.

Groups are fetched up to a limit. If spellings were groups of their own, one more record could push
another group of any size beyond it: then no noise would be enough.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comparisons import assert_same_statistics
from discreet.errors import SchemaError
from discreet.schema.schema import Categorical, Numeric, Schema
from discreet.statistics.statistics import Statistics
from discreet.tables import CountRequest, count, counting, queries

FLAGS = Schema(
    [Categorical("smokes", [True, False]), Categorical("drinks", [True, False])],
    "ill",
    [True, False],
    missing_tokens=["?", "n/a"],
)


def spellings(word: str) -> list[str]:
    """A word in all mixtures of small and capital letters."""
    return ["".join(one) for one in itertools.product(*((c, c.upper()) for c in word))]


TRUE, FALSE = spellings("true"), spellings("false")


def odd_rows() -> pd.DataFrame:
    """Hundreds of spellings in every combination, and one plain row a thousand times at the end."""
    words = [*TRUE, *FALSE, "", "?", "n/a"]
    pairs = list(itertools.product(words, words))
    classes = list(itertools.islice(itertools.cycle([*TRUE, *FALSE]), len(pairs)))
    rows = [(*pair, y) for pair, y in zip(pairs, classes, strict=True)]
    rows += [("true", "false", "true")] * 1000
    return pd.DataFrame(rows, columns=["smokes", "drinks", "ill"])


def as_values(frame: pd.DataFrame) -> dict[str, Any]:
    """The same rows in memory, as truth values."""
    plain = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}
    return {
        name: np.array([plain.get(value) for value in frame[name]], dtype=object) for name in frame
    }


def counts(found: Statistics) -> dict[str, Any]:
    return {"totals": found.totals, **{n: t.counts for n, t in found.tables.items()}}


def moved(one: Statistics, two: Statistics) -> int:
    """The largest change in any table, as one record makes it."""
    mine, theirs = counts(one), counts(two)
    return max(int(np.abs(mine[name] - theirs[name]).sum()) for name in mine)


def test_spellings_of_truth_values_are_one_group(tmp_path: Path) -> None:
    frame = odd_rows()
    frame.to_csv(tmp_path / "odd.csv", index=False)
    found = count(tmp_path / "odd.csv", FLAGS)
    assert_same_statistics(found, count(as_values(frame), FLAGS))
    more = pd.concat([frame, pd.DataFrame([["tRuE", "fAlSe", "TRUE"]], columns=frame.columns)])
    more.to_csv(tmp_path / "more.csv", index=False)
    assert moved(count(tmp_path / "more.csv", FLAGS), found) == 1


def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Group by what is written, as it is written."""
    monkeypatch.setattr(queries, "make_group_key", lambda column, cells: column)


def test_a_result_that_would_be_cut_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    unfolded(monkeypatch)
    with pytest.raises(SchemaError, match="nothing was counted"):
        count(odd_rows(), FLAGS)


def test_twin_without_folding_and_with_a_silent_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more record moves the counts by far more than one."""
    frame, true = odd_rows(), counting.fetch_arrow
    whole = count(frame, FLAGS)
    unfolded(monkeypatch)
    monkeypatch.setattr(
        counting, "fetch_arrow", lambda query: (cut := true(query)).slice(0, cut.num_rows - 1)
    )
    assert moved(count(frame, FLAGS), whole) > 100


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2])
def test_every_query_is_held_to_its_limit(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    schema = Schema(
        [Numeric("size", 0, 3, integer=True), Categorical("smokes", [True, False])], "ill", [0, 1]
    )
    every = itertools.product([0, 1, 2, 3], ["TRUE", "False"], [0, 1])
    rows = pd.DataFrame(list(every) * 9, columns=["size", "smokes", "ill"])
    whole = count(rows, schema, CountRequest(bins=4, moments="grid", order=True))
    make_queries = queries.Queries.__init__

    def limit_keys(limit: int) -> None:
        def with_limit(self: queries.Queries, *parts: Any) -> None:
            make_queries(self, *parts)
            self.max_keys = dict.fromkeys(self.max_keys, limit)

        monkeypatch.setattr(queries.Queries, "__init__", with_limit)

    limit_keys(20)
    assert_same_statistics(
        count(rows, schema, CountRequest(bins=4, moments="grid", order=True)), whole
    )
    limit_keys(most)
    with pytest.raises(SchemaError, match="nothing was counted"):
        count(rows, schema, CountRequest(bins=4, moments="grid", order=True))


OTHERS = [
    ([True, False], ["True", "FALSE", "true", "maybe", None, "True"]),
    ([True, False], [True, False, True, None, True, True]),
    (["TRUE", "true", "no"], ["TRUE", "True", "tRUE", "true", "no", "nobody"]),
    (["True", "False"], [True, False, None, True, True, False]),
    (["1", "0"], [True, False, None, True, True, False]),
    (["yes"], [True, False, None, True, True, False]),
    (["05", "5", "1e3", "-0"], ["05", "5", "1e3", "-0", "0", "1000"]),
    (["05", "5", "1e3", "-0"], [5, 50, 1000, 0, 0, None]),
    ([0, 0.5, 2], [0.0, -0.0, 0.5, np.nan, 2.0, 7.5]),
    (["?", "x"], ["?", "x", "", None, "n/a", "z"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("values", "column"), OTHERS)
@pytest.mark.parametrize("unseen", ["error", "other"])
def test_other_is_the_same_from_every_source(
    tmp_path: Path, values: list[Any], column: list[Any], unseen: Any
) -> None:
    """What is not public is "(other)", and what is public is not, in files as in memory."""
    feature = Categorical("x", values)
    tokens = ["?", "n/a"]
    schema = Schema([feature], "y", [True, False], unseen=unseen, missing_tokens=tokens)
    frame = pd.DataFrame({"x": column, "y": [True, False] * 3})
    if unseen == "error":
        known = [value for value in column if schema_knows(schema, value)]
        frame = pd.DataFrame({"x": known, "y": [True] * len(known)})
    here = count(
        {"x": np.array(list(frame["x"]), dtype=object), "y": frame["y"].to_numpy()}, schema
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    assert_same_statistics(count(tmp_path / "rows.parquet", schema), here)
    assert_same_statistics(count(frame, schema), here)
    if frame["x"].map(lambda value: isinstance(value, str)).any():
        frame.to_csv(tmp_path / "rows.csv", index=False)
        assert_same_statistics(count(tmp_path / "rows.csv", schema), here)


def schema_knows(schema: Schema, value: Any) -> bool:
    from discreet.schema.cells import Cells

    try:
        Cells.from_schema(schema, "x").encode_value(value)
    except SchemaError:
        return False
    return True


def test_truth_values_of_a_csv_are_not_other(tmp_path: Path) -> None:
    schema = Schema([Categorical("x", [True, False])], "y", ["a", "b"], unseen="other")
    frame = pd.DataFrame({"x": [True, False, True, True], "y": ["a", "a", "b", "b"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = [[1, 1, 0, 0], [2, 0, 0, 0]]  # true, false, other, missing
    for source in (tmp_path / "rows.csv", tmp_path / "rows.parquet", frame):
        assert count(source, schema).tables["x"].counts.tolist() == expected
    arrays = {name: frame[name].to_numpy() for name in frame}
    assert count(arrays, schema).tables["x"].counts.tolist() == expected
