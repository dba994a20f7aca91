"""The agreement: what it fixes, what it refuses, what it promises."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from round_fixtures import (
    NAMES,
    PARTIES,
    SCHEMA,
    agreed,
    horizontal_manifest,
    horizontal_round,
    table,
    vertical_manifest,
)

from discreet import Categorical, Numeric, Schema
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import FeatureRequest, Layout, make_feature_requests
from discreet.federated.refusals import ProtocolError
from discreet.files.documents import dump_document


def test_a_manifest_travels_and_keeps_its_hash(small_key):
    for manifest in (
        horizontal_manifest(),
        horizontal_manifest(small_key, mode="probabilities", margin=1, epsilon=math.inf),
        vertical_manifest(small_key, deadline="2030-01-01T00:00:00+00:00"),
        vertical_manifest(mode="probabilities"),
    ):
        again = Manifest.from_json(manifest.to_json(), allow_small_key=True)
        assert again == manifest
        assert again.hash == manifest.hash
        assert again.unsigned_parties == ()


def test_every_field_is_in_the_hash(small_key):
    manifest = vertical_manifest(small_key)
    hashes = {
        replace(manifest, **change).hash
        for change in (
            {},
            {"round": 2},
            {"epsilon": 2.0},
            {"mode": "probabilities"},
            {"tolerated": 2},
            {"rows": 41},
            {"nonce": "0"},
            {"deadline": "2030-01-01T00:00:00+00:00"},
            {"requests": make_feature_requests(SCHEMA, 5, ["age"])},
            {"columns": {"hospital-a": ("colour",), "hospital-b": ("size", "age")}},
        )
    }
    assert len(hashes) == 10
    assert replace(manifest, signatures={}).hash == manifest.hash


def test_a_changed_manifest_has_lost_its_signatures():
    changed = replace(horizontal_manifest(), epsilon=100.0)
    assert set(changed.unsigned_parties) == {*NAMES, "collector", "receiver"}
    with pytest.raises(ProtocolError, match="not-agreed"):
        changed.require_all_signatures()


def test_only_parties_sign_and_only_with_their_own_keys():
    stranger = Identity.generate("hospital-a")
    with pytest.raises(ProtocolError, match="unknown-sender"):
        horizontal_manifest().with_signatures(stranger)
    signatures = {**horizontal_manifest().signatures, "hospital-b": "zz"}
    assert replace(horizontal_manifest(), signatures=signatures).unsigned_parties


def test_small_keys_and_foreign_sensitivities_do_not_get_in_by_file(small_key):
    manifest = horizontal_manifest(small_key)
    with pytest.raises(PrivacyError, match="at least 2048"):
        Manifest.from_json(manifest.to_json())
    body = json.loads(manifest.to_json())
    for key in ("format", "version", "digest"):
        del body[key]
    body["wanted"][2]["sensitivities"] = [1, 1, 1]
    with pytest.raises(FormatError, match="sensitivities"):
        Manifest.from_json(dump_document("manifest", 6, body), allow_small_key=True)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"epsilon": 0.0}, "above 0"),
        ({"epsilon": math.nan}, "above 0"),
        ({"delta": 1e-6}, "no delta"),
        ({"tolerated": 3}, "may be missing"),
        ({"tolerated": -1}, "may be missing"),
        ({"mode": "open"}, "mode="),
        ({"aggregation": "paillier"}, "Paillier key is needed"),
        ({"margin": -1}, "weight"),
        ({"rows": 5}, "vertical"),
        ({"collector": PARTIES["receiver"].card}, "same name"),
        ({"collector": replace(PARTIES["receiver"].card, name="other")}, "same key"),
        ({"requests": ()}, "at least one"),
        ({"requests": (FeatureRequest("colour", "moments"),)}, "not numeric"),
        ({"requests": (FeatureRequest("colour", weight=0),)}, "weight"),
        ({"requests": (FeatureRequest("size", edges=(0.0, 5.0, 11.0)),)}, "public bounds"),
        ({"epsilon": 1e-300}, "out of range"),
        ({"deadline": "tomorrow"}, "ISO 8601"),
        ({"deadline": "2030-01-01T00:00:00"}, "time zone"),
    ],
)
def test_what_cannot_be_agreed_is_refused(change, match):
    with pytest.raises((PrivacyError, SchemaError), match=match):
        replace(horizontal_manifest(), **change)


def test_one_provider_alone_hides_among_nobody():
    manifest = horizontal_manifest()
    with pytest.raises(PrivacyError, match="at least 2 providers"):
        replace(manifest, providers=manifest.providers[:1], tolerated=0)


def test_vertical_rounds_need_labels_rows_and_columns(small_key):
    manifest = vertical_manifest(small_key)
    for change, match in (
        ({"label": None}, "label provider"),
        ({"rows": None}, "number of rows"),
        ({"columns": {"hospital-a": ("colour",), "hospital-b": ("size",)}}, "exactly one"),
        ({"aggregation": "masks"}, "Paillier key"),
        ({"paillier": None}, "Paillier key"),
        ({"margin": 1}, "derived"),
    ):
        with pytest.raises((SchemaError, PrivacyError), match=match):
            replace(manifest, **change)


def test_numbers_without_bounds_are_refused():
    schema = Schema([Numeric("x")], "class", [0, 1])
    with pytest.raises(SchemaError, match="no public bounds"):
        Layout(schema, (FeatureRequest("x", "moments"),))
    with pytest.raises(SchemaError, match="no feature"):
        make_feature_requests(SCHEMA, 4, ["nothing"])


@pytest.mark.parametrize("margin", [0, 1, 3])
def test_the_costs_of_all_tables_add_up_to_epsilon_exactly(margin):
    manifest = horizontal_manifest(epsilon=0.1, margin=margin)
    assert sum(map(manifest.compute_block_epsilon, manifest.layout.blocks)) == Fraction(0.1)
    assert manifest.guarantee.epsilon == 0.1
    assert math.fsum(c.epsilon for c in manifest.guarantee.charges) == pytest.approx(0.1)


def test_noise_is_calibrated_to_what_one_record_changes(small_key):
    """Horizontal: one entry of each block; vertical: two, by replacing a record."""
    flat, upright = horizontal_manifest(), vertical_manifest(small_key)
    for manifest, entries in ((flat, 1), (upright, 2)):
        for block, noise in manifest.block_noises.items():
            assert noise.scale == entries * block.sensitivity / manifest.compute_block_epsilon(
                block
            )
            assert noise.parties == 3


def test_one_record_changes_no_block_by_more_than_its_sensitivity():
    manifest = horizontal_manifest()
    columns, codes = table(200, 3)
    columns["age"][:2], columns["size"][:2] = [0, 100], [0, 10]
    before = manifest.layout.count_rows(columns, codes)
    for row in range(200):
        rest = {name: np.delete(column, row) for name, column in columns.items()}
        change = before - manifest.layout.count_rows(rest, np.delete(codes, row))
        for block, part in manifest.layout.split(change):
            assert np.abs(part).sum() <= block.sensitivity
            assert np.count_nonzero(part) <= 1


def test_rows_and_totals_agree():
    layout = horizontal_manifest().layout
    columns, codes = table(100, 4)
    parts = []
    for one in layout.requests:
        for block, weights in layout.encode_rows(one, columns[one.feature]):
            sums = np.zeros((2, block.size), dtype=np.int64)
            np.add.at(sums, codes, weights)
            parts.append(sums.reshape(-1))
    assert np.array_equal(np.concatenate(parts), layout.count_rows(columns, codes))


def test_the_promise_names_everything_it_rests_on(small_key):
    text = str(horizontal_manifest().guarantee)
    for words in ("add-remove", "t = 1", "merely curious", "two providers", "collector"):
        assert words in text
    upright = vertical_manifest(small_key).guarantee
    assert upright.neighbours == "replace"
    for words in ("40 rows", "labels and receiver do not work together", "1024 bits"):
        assert words in str(upright)
    pairs = "no two of a table's provider, labels and collector work together"
    assert pairs in str(upright)
    at_two = str(vertical_manifest(small_key, tolerated=2).guarantee)
    assert "do not work together" not in at_two
    assert pairs not in at_two
    dealt = "collector, who deals the masks, works neither with labels nor with a provider"
    assert dealt not in str(upright)
    assert dealt in str(vertical_manifest().guarantee)
    assert "Paillier" not in str(vertical_manifest().guarantee)
    assert not horizontal_manifest(epsilon=math.inf).guarantee.is_private


def test_identities_and_cards_travel_and_hide_their_secrets():
    own = Identity.generate("hospital-a")
    again = Identity.from_json(own.to_json())
    assert again.card == own.card == Card.from_json(own.card.to_json())
    assert again.card.verify_signature(own.sign(b"x"), b"x")
    assert own.signing.private_bytes_raw().hex() not in repr(own) + own.card.to_json()
    for name in ("", "two words", "a" * 65, "../etc", "ä"):
        with pytest.raises(FormatError, match="not a valid name"):
            Identity.generate(name)
    body = {"name": "a", "signing": "xx", "paillier": None, "proof": None, "statement": None}
    with pytest.raises(FormatError, match="hexadecimal"):
        Card.from_json(dump_document("party", 4, body))
    with pytest.raises(FormatError, match="32 bytes"):
        Card.from_json(dump_document("party", 4, {**body, "signing": "00"}))
    with pytest.raises(FormatError, match="damaged"):
        Identity.from_json(dump_document("identity", 2, {"name": "a", "signing": "xx"}))


def test_exact_statistics_of_another_schema_are_refused():
    from discreet.tables.in_memory import count_arrays

    other = Schema([Categorical("colour", ["red"])], "class", ["no", "yes"])
    exact = count_arrays(other, {"colour": np.array(["red"], object)}, np.array([0], np.int32))
    with pytest.raises(SchemaError, match="another schema"):
        horizontal_manifest().layout.encode_statistics(exact)


def test_a_liar_is_flagged_and_honest_parties_are_not():
    manifest = horizontal_manifest(epsilon=3.0)
    exact = [manifest.layout.count_rows(*table(2000, seed)) for seed in range(3)]
    assert horizontal_round(manifest, exact)[0].inconsistent == ()
    exact[1] = exact[1].copy()
    exact[1][:6] += 500  # one table says there are many more people than the others do
    assert "colour" in horizontal_round(manifest, exact)[0].inconsistent


def test_honest_rounds_are_not_flagged_however_little_noise():
    for epsilon in (0.01, 1.0, 100.0, math.inf):
        manifest = horizontal_manifest(epsilon=epsilon, margin=1)
        exact = [manifest.layout.count_rows(*table(50, seed)) for seed in range(3)]
        assert horizontal_round(manifest, exact)[0].inconsistent == ()
    single = agreed(replace(horizontal_manifest(), requests=make_feature_requests(SCHEMA, 4)[:1]))
    exact = [single.layout.count_rows(*table(50, seed)) for seed in range(3)]
    assert horizontal_round(single, exact)[0].inconsistent == ()
