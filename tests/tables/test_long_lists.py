"""Spellings of missing cost no memory: DuckDB makes a join of every long list of values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet.errors import FormatError
from discreet.schema.schema import Numeric, Schema
from discreet.tables import columns as columns_module
from discreet.tables import engines, person_queries
from discreet.tables.contributions import ContributionBound
from discreet.tables.source import TableSource

COLUMNS = 60
TOKENS = ["?", "NA", "N/A", "n/a", "#N/A", "null", "NULL"]
SCHEMA = Schema(
    [Numeric(f"x{k}", 0, 9) for k in range(COLUMNS)], "y", ["0", "1"], missing_tokens=TOKENS
)
BOUND = ContributionBound("who", 2)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A CSV file with some spellings of missing, and an engine with little memory."""
    monkeypatch.setattr(engines, "MEMORY_LIMIT", "150MB")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{k}": rng.integers(0, 10, 2_000) for k in range(COLUMNS)}, dtype=str)
    frame.iloc[:7, 0] = TOKENS
    frame["y"] = rng.integers(0, 2, 2_000)
    frame["who"] = rng.integers(0, 900, 2_000)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    return str(tmp_path / "wide.csv")


@pytest.mark.slow
@pytest.mark.parametrize("bound", [None, BOUND], ids=["rows", "persons"])
def test_many_columns_of_text_are_counted_in_little_memory(
    table: str, bound: ContributionBound | None
) -> None:
    statistics = TableSource(table, SCHEMA, bound=bound).count_statistics("grid")
    moments = statistics.moments["x0"]
    if bound is None:
        assert statistics.totals.sum() == 2_000
        assert moments.counts.sum() == 2_000 - len(TOKENS)
    else:
        assert 0 < statistics.totals.sum() < 2_000


@pytest.mark.slow
@pytest.mark.parametrize("bound", [None, BOUND], ids=["rows", "persons"])
def test_twin_a_join_for_every_list(
    table: str, bound: ContributionBound | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (columns_module, person_queries):
        monkeypatch.setattr(module, "is_among", lambda column, values: column.isin(list(values)))
    with pytest.raises(FormatError, match="Out of Memory"):
        TableSource(table, SCHEMA, bound=bound).count_statistics()
