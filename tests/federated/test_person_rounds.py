"""Rounds in which a person may have several rows: counted, noised and promised for all of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from round_fixtures import (
    SCHEMA,
    agreed,
    horizontal_manifest,
    judging_manifest,
    table,
    vertical_manifest,
)

from discreet.errors import PrivacyError, SchemaError
from discreet.federated.agreement.description import describe_agreement
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.service.provider import ProviderInput, _count_source
from discreet.schema.inference_cost import ALL_ROWS_UNIT, InferenceCost
from discreet.tables.contributions import select_person_rows

K = 3


def visits(persons=40, rows=200):
    """A table in which most persons have more rows than are counted."""
    columns, codes = table(rows, 5)
    frame = pd.DataFrame({**columns, "patient": np.arange(rows) % persons})
    frame["class"] = np.array(SCHEMA.classes, dtype=object)[codes]
    return frame


def manifest_for(limit=K, *, judged=False):
    if not judged:
        return horizontal_manifest(rows_per_person=limit)
    return judging_manifest(rows_per_person=limit)[0]


def count(manifest, frame):
    bound = ProviderInput(frame, person="patient").make_bound(manifest)
    return _count_source(manifest, frame, bound)


def worst_cost(manifest):
    """What all rows of a person cost at most, exactly, where one provider counts them."""
    frame, costs = visits(), []
    for person in range(6):
        rest = frame[frame["patient"] != person]
        change = count(manifest, frame) - count(manifest, rest)
        costs.append(
            sum(
                Fraction(int(np.abs(part).sum())) / manifest.block_noises[block].scale
                for block, part in manifest.layout.split(change)
            )
        )
    # the worst person: all rows the same, at the ends of the public bounds
    extreme = frame.iloc[:K].assign(colour="red", size=10.0, age=100.0, patient=-1)
    extreme["class"] = "no"
    change = count(manifest, pd.concat([frame, extreme])) - count(manifest, frame)
    costs.append(
        sum(
            Fraction(int(np.abs(part).sum())) / manifest.block_noises[block].scale
            for block, part in manifest.layout.split(change)
        )
    )
    return max(costs)


@pytest.mark.parametrize("judged", [False, True])
def test_all_rows_of_a_person_cost_at_most_epsilon(judged):
    manifest = manifest_for(judged=judged)
    assert worst_cost(manifest) <= Fraction(manifest.epsilon)
    assert judged or worst_cost(manifest) > Fraction(manifest.epsilon) * 9 / 10


def test_a_schema_that_was_inferred_by_rows_is_refused_before_anybody_counts():
    manifest = manifest_for()
    by_rows = replace(manifest.schema, inference=InferenceCost(0.25))
    with pytest.raises(PrivacyError, match="infer it again with person="):
        replace(manifest, schema=by_rows)
    by_person = replace(by_rows, inference=InferenceCost(0.25, unit=ALL_ROWS_UNIT))
    assert replace(manifest, schema=by_person).guarantee.include_schema(by_person).epsilon == 1.25


def test_twin_noise_for_one_row(monkeypatch):
    manifest = manifest_for()
    single = horizontal_manifest()
    noises = dict(zip(manifest.layout.blocks, single.block_noises.values(), strict=True))
    monkeypatch.setitem(vars(manifest), "block_noises", noises)
    assert worst_cost(manifest) > 2 * Fraction(manifest.epsilon)


@pytest.mark.parametrize("judged", [False, True])
def test_a_provider_counts_the_same_rows_of_a_file_and_in_memory(tmp_path, judged):
    manifest, frame = manifest_for(judged=judged), visits()
    frame.to_parquet(tmp_path / "visits.parquet")
    frame.astype({"age": "Int64"}).to_csv(tmp_path / "visits.csv", index=False)
    bound = ProviderInput(frame, person="patient").make_bound(manifest)
    codes = np.searchsorted(SCHEMA.classes, frame["class"])
    columns = {name: frame[name].to_numpy() for name in SCHEMA.names}
    rows, _ = select_person_rows(frame["patient"], columns, codes, SCHEMA, bound)
    expected = manifest.layout.count_rows(
        {name: column[rows] for name, column in columns.items()}, codes[rows]
    )
    assert len(rows) == 40 * K
    for source in (frame, dict(frame), *map(str, tmp_path.iterdir())):
        assert _count_source(manifest, source, bound).tolist() == expected.tolist()


def test_a_provider_that_does_not_say_whose_rows_are_is_refused():
    with pytest.raises(SchemaError, match="name the column with --person"):
        ProviderInput(visits()).make_bound(manifest_for())
    assert ProviderInput(visits()).make_bound(horizontal_manifest()) is None
    only = ProviderInput(visits(), person="patient").make_bound(horizontal_manifest())
    assert only.rows_per_person == 1


def test_what_is_agreed_is_signed_promised_and_read_again(small_key):
    manifest = manifest_for()
    assert Manifest.from_json(manifest.to_json()).rows_per_person == K
    assert manifest.hash != replace(manifest, rows_per_person=1).hash
    promise = str(manifest.guarantee)
    assert "all rows of one person (of which at most 3 are counted)" in promise
    assert "has that many times this epsilon" in promise
    assert "at most 3 are counted" in describe_agreement(agreed(manifest))
    assert manifest_for(judged=True).rows_per_person == K
    assert "several providers" not in str(horizontal_manifest().guarantee)
    with pytest.raises(SchemaError, match="in a vertical round each person has one row"):
        vertical_manifest(small_key, rows_per_person=2)
    for wrong in (0, 1001, True):
        with pytest.raises(PrivacyError, match="rows_per_person"):
            horizontal_manifest(rows_per_person=wrong)


def test_the_column_of_ids_is_named_nowhere_in_what_is_agreed():
    assert "patient" not in manifest_for().to_json()
