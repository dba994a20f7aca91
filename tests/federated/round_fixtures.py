"""Whole rounds in one process, for the tests: small tables, every mode, every aggregation."""

from __future__ import annotations

import numpy as np

from discreet import Categorical, Numeric, Schema
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import make_feature_requests
from discreet.federated.judging import make_judging_manifest
from discreet.federated.release import Release

SCHEMA = Schema(
    [
        Categorical("colour", ["red", "blue"]),
        Numeric("size", 0, 10),
        Numeric("age", 0, 100, integer=True),
    ],
    "class",
    ["no", "yes"],
)
NAMES = ["hospital-a", "hospital-b", "hospital-c"]
PARTIES = {name: Identity.generate(name) for name in [*NAMES, "collector", "receiver", "labels"]}


def cards(names):
    return tuple(PARTIES[name].card for name in names)


def holding(name, key):
    """The card of a party that holds a Paillier key, if there is one."""
    own = PARTIES[name]
    return own.card if key is None else own.make_card_with_key(key)


def acquainted(people, agreement):
    """Keys for one round, known to each other."""
    publics = {one.name: one.get_session_public_key(agreement) for one in people}
    for one in people:
        one.store_session_public_keys(agreement, publics)


def agreed(manifest):
    """Signed by everyone, and everyone knows the keys that the others signed with."""
    signed = manifest.with_signatures(*(PARTIES[name] for name in manifest.parties))
    for name in signed.parties:
        signed.start_session(PARTIES[name])
    return signed


def horizontal_manifest(key=None, *, epsilon=1.0, names=NAMES, moments=("age",), **options):
    return agreed(
        Manifest(
            SCHEMA,
            make_feature_requests(SCHEMA, 4, moments),
            epsilon,
            cards(names),
            holding("collector", key),
            holding("receiver", key),
            aggregation="masks" if key is None else "paillier",
            paillier=None if key is None else key.public,
            **options,
        )
    )


def judging_manifest(key=None, *, first=None, statistics=None, epsilon=1.0, **options):
    """A round in which candidate models of another round's totals are judged."""
    first = horizontal_manifest(key, moments=(), **options) if first is None else first
    if statistics is None:
        totals = sum(counted(first, seed=3))
        statistics = Release.from_totals(first, totals).statistics
    return agreed(make_judging_manifest(first, statistics, epsilon)), statistics


def vertical_manifest(key=None, *, epsilon=1.0, rows=40, moments=("age",), **options):
    return agreed(
        Manifest(
            SCHEMA,
            make_feature_requests(SCHEMA, 4, moments),
            epsilon,
            cards(NAMES[:2]),
            PARTIES["collector"].card,
            PARTIES["receiver"].card,
            label=holding("labels", key),
            columns={"hospital-a": ("colour", "age"), "hospital-b": ("size",)},
            rows=rows,
            partition="vertical",
            aggregation="masks" if key is None else "paillier",
            paillier=None if key is None else key.public,
            **options,
        )
    )


def table(rows, seed):
    rng = np.random.default_rng(seed)
    columns = {
        "colour": np.where(rng.random(rows) < 0.4, "red", "blue").astype(object),
        "size": 10 * rng.random(rows),
        "age": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(0, 101, rows)),
    }
    return columns, rng.integers(0, 2, rows).astype(np.int32)


def counted(manifest, seed=0, rows=50):
    """The exact numbers of every provider."""
    tables = [table(rows, seed + i) for i in range(len(manifest.providers))]
    return [manifest.layout.count_rows(*one) for one in tables]


def horizontal_round(
    manifest, exact, key=None, provider=horizontal.HorizontalProvider, judged=None
):
    """Run a round; gives the release and everything that was said."""
    collector = horizontal.HorizontalCollector(PARTIES["collector"], manifest, key)
    receiver = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest, key, judged)
    providers = [provider(PARTIES[card.name], manifest) for card in manifest.providers]
    said = [one.make_submission(own) for one, own in zip(providers, exact, strict=True)]
    for message in said:
        collector.receive(message.to_bytes())
    result = collector.make_result()
    return receiver.receive(result.to_bytes()), [*said, result]


def vertical_round(manifest, columns, codes, key=None, ids=None):
    """Run a vertical round; gives the release and everything that was said."""
    label = vertical.LabelProvider(PARTIES["labels"], manifest, key)
    collector = vertical.VerticalCollector(PARTIES["collector"], manifest)
    receiver = vertical.VerticalReceiver(PARTIES["receiver"], manifest)
    said = list(label.make_all_labels(codes, ids))
    for card, message in zip(manifest.providers, list(said), strict=True):
        provider = vertical.VerticalProvider(PARTIES[card.name], manifest)
        provider.receive(message.to_bytes())
        said.append(provider.make_tables(columns, ids))
        label.receive(said[-1].to_bytes())
    if collector.protocol.needs_correction:
        dealt = collector.make_correction()
        label.receive(dealt.to_bytes())
        said.append(dealt)
    said.append(label.make_shares())
    collector.receive(said[-1].to_bytes())
    said.append(collector.make_result())
    return receiver.receive(said[-1].to_bytes()), said


def vector_of(manifest, statistics):
    """Released statistics back to the vector of sums."""
    layout, found = manifest.layout, []
    if layout.margin:
        raise AssertionError("totals are pooled, they have no vector")
    for one in layout.requests:
        if one.kind == "cells":
            found.append(statistics.tables[one.feature].counts.reshape(-1))
            continue
        sums, levels = statistics.moments[one.feature], layout.list_blocks(one)[1].sensitivity
        found.append(np.stack([sums.counts, sums.missing], axis=1).reshape(-1))
        found.append(2 * sums.totals - levels * sums.counts)
        found.append(8 * sums.squares - 8 * levels * sums.totals + levels**2 * sums.counts)
    return np.round(np.concatenate(found)).astype(np.int64)
