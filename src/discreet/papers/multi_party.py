"""Naive Bayes over several data owners (Li and others): table 1, figures 2 and 3, the attack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from discreet.papers.reproduction import Cell, Figure, Line, Panel, Results, Statement
from discreet.privacy import rounded_up

TITLE = "Naive Bayes over several data owners, reproduced"
NOTES = """
T. Li and others: *Differentially private Naive Bayes learning over multiple data sources*. CPU
milliseconds on one thread. *Published* is their protocol with this package's Paillier arithmetic
(which is quicker than the usual one) at their 1024 bits, one ciphertext for each count; *masks* and
*Paillier* are this package's rounds, the latter at 2048 bits with packed counters. Noise,
signatures and checks are included in ours. Splice has at most two repetitions.
"""
CODE = ("federated", "papers/published_parties.py")
REPEATS = 5

TABLES = ("balance_scale", "breast_cancer_wisconsin", "spect", "splice")
PROVIDERS = (2, 4, 8, 16)
WAYS = ("published", "masks", "paillier")
SAMPLE = 100
"""Rows on which the published label provider is timed; its cost is linear in rows."""


def cells(quick: bool) -> list[Cell]:
    """Times of the phases by providers, horizontal and vertical; the attack; accuracy."""
    tables = TABLES[:2] if quick else TABLES
    providers = PROVIDERS[:2] if quick else PROVIDERS
    made = [Cell.of("table", table=t) for t in tables]
    made += [Cell.of("2", table=t, way=w, providers=s) for t in tables for w in WAYS
             for s in providers]  # fmt: skip
    made += [Cell.of("samples", way=w, rows=n) for w in WAYS for n in (200, 400, 800, 1600)]
    made += [Cell.of("3", table=t, way=w) for t in tables for w in WAYS]
    return [*made, *(Cell.of("attack", table=t) for t in tables[:3])]


def compute(cell: Cell, repeats: int, quick: bool) -> dict[str, list[float]]:
    """The values of one cell, a number for each repetition."""
    if cell.figure == "table":
        return _table(cell["table"], repeats)
    if cell.figure == "attack":
        return _attack(cell["table"])
    rounds = max(1, min(repeats, 2 if dict(cell.parameters).get("table") == "splice" else repeats))
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        if cell.figure == "3":
            one = _vertical(cell["table"], cell["way"])
        elif cell.figure == "samples":
            one = _horizontal("splice", cell["way"], 2, cell["rows"])
        else:
            one = _horizontal(cell["table"], cell["way"], cell["providers"], None)
        for name, value in one.items():
            found.setdefault(name, []).append(value)
    return found


def _spent(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    made = work()
    return 1e3 * (time.process_time() - begun), made


@cache
def _key(bits: int, number: int = 0) -> Any:
    from discreet.federated.crypto.paillier import generate

    return generate(bits, allow_small=bits < 2048)


def _parts(table: str, providers: int, rows: int | None = None) -> tuple[Any, list[Any]]:
    from discreet.datasets import load
    from discreet.encoding import class_codes, columns_of

    data = load(table)
    columns, codes = columns_of(data.X, data.schema.names), class_codes(data.schema, data.y)
    arrays = {key: np.asarray(column) for key, column in columns.items()}
    kept = np.arange(len(codes) if rows is None else min(rows, len(codes)))
    return data.schema, [
        ({k: c[own] for k, c in arrays.items()}, codes[own])
        for own in np.array_split(kept, providers)
    ]


def _counted(schema: Any, part: Any) -> Any:
    """Class totals and class-by-value tables of one provider."""
    from discreet.encoding import Cells

    columns, codes = part
    classes, tables = len(schema.classes), []
    for name in schema.names:
        cells = Cells.of(schema, name, 2)
        flat = np.bincount(codes * cells.size + cells.column(columns[name]),
                           minlength=classes * cells.size)  # fmt: skip
        tables.append(flat.reshape(classes, cells.size))
    return np.bincount(codes, minlength=classes), tables


def _horizontal(table: str, way: str, providers: int, rows: int | None) -> dict[str, float]:
    schema, parts = _parts(table, providers, rows)
    if way == "published":
        from discreet.papers.published_parties import Published

        made = Published(_key(1024), _key(1024, 1), [_counted(schema, p) for p in parts], 0.1)
        provider = _spent(lambda: (made.hidden(1), made.hidden_totals(1)))[0]
        collecting = _spent(made.collector_opens)[0]
        both = _spent(made.receiver_opens)[0]  # which opens for the collector once more
        return {"provider": provider, "collector": collecting,
                "receiver": max(both - collecting, 0.0)}  # fmt: skip
    from discreet.federated import horizontal
    from discreet.federated.agreement.identity import Identity
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import wanted_of

    key = _key(2048) if way == "paillier" else None
    names = [*(f"p{i}" for i in range(providers)), "collector", "receiver"]
    people = [Identity.generate(name) for name in names]
    opener = people[-1].card if key is None else people[-1].card_with(key.public.fingerprint)
    manifest = Manifest(
        schema,
        wanted_of(schema, 2),
        0.1,
        tuple(one.card for one in people[:-2]),
        people[-2].card,
        opener,
        aggregation="paillier" if way == "paillier" else "masks",
        paillier=None if key is None else key.public,
    ).signed_by(*people)
    collector = horizontal.Collector(people[-2], manifest)
    spent, said = [], []
    for own, part in zip(people, parts, strict=False):
        machine, exact = horizontal.Provider(own, manifest), manifest.layout.vector(*part)
        took, message = _spent(lambda m=machine, e=exact: m.submit(e))  # type: ignore[misc]
        spent.append(took)
        said.append(message.to_bytes())

    def collect() -> Any:
        for text in said:
            collector.receive(text)
        return collector.result()

    collecting, result = _spent(collect)
    receiver = horizontal.Receiver(people[-1], manifest, key)
    opening = _spent(lambda: receiver.receive(result.to_bytes()))[0]
    return {"provider": float(np.mean(spent)), "collector": collecting, "receiver": opening}


def _vertical(table: str, way: str) -> dict[str, float]:
    """Label provider and slowest provider; for ours also the collector."""
    from discreet.datasets import load
    from discreet.encoding import class_codes, columns_of

    data = load(table)
    schema, codes = data.schema, class_codes(data.schema, data.y)
    columns = columns_of(data.X, schema.names)
    if way == "published":
        from discreet.federated.crypto.paillier import Encryptor

        key = _key(1024)
        encryptor, classes = Encryptor(key.public), len(schema.classes)
        some = codes[:SAMPLE]
        took, vectors = _spent(
            lambda: [[encryptor.encrypt(int(c == code)) for c in range(classes)] for code in some]
        )
        scale = len(codes) / len(some)
        adding = _spent(lambda: [key.public.add([v[c] for v in vectors]) for c in range(classes)])[
            0
        ]
        return {"label provider": took * scale, "provider": adding * scale * len(schema.names) / 4}
    from discreet.federated import vertical
    from discreet.federated.agreement.identity import Identity
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import wanted_of

    key, count = (_key(2048) if way == "paillier" else None), 4
    names = [*(f"p{i}" for i in range(count)), "label", "collector", "receiver"]
    people = [Identity.generate(name) for name in names]
    holder = people[-3].card if key is None else people[-3].card_with(key.public.fingerprint)
    manifest = Manifest(
        schema,
        wanted_of(schema, 2),
        0.1,
        tuple(one.card for one in people[:-3]),
        people[-2].card,
        people[-1].card,
        label=holder,
        columns={f"p{i}": schema.names[i::count] for i in range(count)},
        rows=len(codes),
        partition="vertical",
        aggregation="paillier" if way == "paillier" else "masks",
        paillier=None if key is None else key.public,
    ).signed_by(*people)
    label = vertical.LabelProvider(people[-3], manifest, key)
    collector = vertical.Collector(people[-2], manifest)
    own_time, messages = _spent(lambda: label.labels(codes))
    slowest = 0.0
    for own, message in zip(people[:-3], messages, strict=True):
        machine = vertical.Provider(own, manifest)
        machine.receive(message.to_bytes())
        mine = {name: columns[name] for name in manifest.columns[own.name]}
        took, tables = _spent(lambda m=machine, c=mine: m.tables(c))  # type: ignore[misc]
        slowest = max(slowest, took)
        own_time += _spent(lambda m=tables: label.receive(m.to_bytes()))[0]  # type: ignore[misc]
    dealing = 0.0
    if collector.way.deals:
        dealing, dealt = _spent(collector.correction)
        label.receive(dealt.to_bytes())
    last, shares = _spent(label.shares)
    adding = _spent(lambda: (collector.receive(shares.to_bytes()), collector.result()))[0]
    return {"label provider": own_time + last, "provider": slowest, "collector": dealing + adding}


def _table(table: str, repeats: int) -> dict[str, list[float]]:
    from discreet.datasets import load
    from discreet.estimators import FederatedNB, MixedNB
    from discreet.model.evaluation import cross_validate

    data = load(table)
    exact = cross_validate(
        lambda X, y: MixedNB(schema=data.schema).fit(X, y).model_, data.X, data.y
    )
    found: dict[str, list[float]] = {
        "rows": [len(data.y)],
        "features": [len(data.schema.features)],
        "classes": [len(data.schema.classes)],
        "non-private accuracy": [exact.accuracy],
    }
    for epsilon in (0.1, 1.0):
        scores = [
            cross_validate(
                lambda X, y, s=seed, e=epsilon: FederatedNB(  # type: ignore[misc]
                    e, providers=3, schema=data.schema, random_state=s
                ).fit(X, y).model_,
                data.X, data.y, count=5, seed=seed,
            ).accuracy
            for seed in range(repeats)
        ]  # fmt: skip
        found[f"accuracy at epsilon {rounded_up(epsilon)}"] = scores
    # a record touches d + 1 counts with Laplace(1/0.1) noise each
    found["epsilon of a claimed 0.1"] = [0.1 * (len(data.schema.features) + 1)]
    return found


def _attack(table: str) -> dict[str, list[float]]:
    """The collector of a published round with three providers reads their counts."""
    from discreet.papers.published_parties import PUBLIC_FACTOR, Published, exposed_counts

    schema, parts = _parts(table, 3)
    counts = [_counted(schema, part) for part in parts]
    made = Published(_key(1024), _key(1024, 1), counts, 0.1)
    right = total = 0
    took = 0.0
    for provider, (totals, tables) in enumerate(counts):
        spent, read = _spent(lambda p=provider: exposed_counts(made, p))  # type: ignore[misc]
        took += spent
        for true, found in zip([totals, *tables], read, strict=True):
            truth = [PUBLIC_FACTOR * int(one) for one in np.ravel(true)]
            right += sum(a == b for a, b in zip(truth, found, strict=True))
            total += len(truth)
    return {"counts": [total], "read exactly": [right / total], "milliseconds": [took]}


# ---------------------------------------------------------------- figures and verdicts


def _tables(results: Results) -> list[str]:
    return list(dict.fromkeys(c["table"] for c in results.values if c.figure == "2"))


def _providers(results: Results) -> list[int]:
    return sorted({c["providers"] for c in results.values if c.figure == "2"})


def figures(results: Results) -> Iterator[Figure]:
    """Figure 2 by phase, figure 3 as bars would show it: one point for each table."""
    tables, providers = _tables(results), _providers(results)
    for phase in ("provider", "collector", "receiver") if tables else ():
        panels = []
        for table in tables:
            made = [
                Line(
                    way,
                    providers,
                    [
                        results.mean("2", phase, table=table, way=way, providers=s)
                        for s in providers
                    ],
                )
                for way in WAYS
            ]
            panels.append(Panel(table, made, "providers", "CPU ms", log_x=True, log_y=True))
        yield Figure(f"figure 2 {phase}", f"Horizontal: time of a {phase}.", panels)
    if any(c.figure == "3" for c in results.values):
        sizes = [results.mean("table", "rows", table=t) * results.mean("table", "features", table=t)
                 for t in tables]  # fmt: skip
        order = np.argsort(sizes)
        panels = []
        for phase in ("label provider", "provider"):
            made = [
                Line(way, [sizes[i] for i in order],
                     [results.mean("3", phase, table=tables[i], way=way) for i in order])
                for way in WAYS
            ]  # fmt: skip
            title = f"{phase}: " + ", ".join(tables[i] for i in order)
            panels.append(Panel(title if len(title) < 40 else phase, made, "rows x features",
                                "CPU ms", log_x=True, log_y=True))  # fmt: skip
        yield Figure("figure 3", "Vertical: time by size of the table (from left to right "
                     + ", ".join(tables[i] for i in order) + ").", panels)  # fmt: skip


def statements(results: Results) -> Iterator[Statement]:
    """What the paper states."""
    tables, providers = _tables(results), _providers(results)
    rows = sorted({c["rows"] for c in results.values if c.figure == "samples"})
    by_rows = {w: [results.mean("samples", "provider", way=w, rows=n) for n in rows] for w in WAYS}
    by_providers = {
        w: [results.mean("2", "provider", table=tables[-1], way=w, providers=s) for s in providers]
        for w in WAYS
    }
    steady = max(by_rows["published"]) < 1.5 * min(by_rows["published"]) and max(
        by_providers["published"]
    ) < 1.5 * min(by_providers["published"])
    yield Statement(
        "Encryption time does not depend on samples and providers",
        f"published, ms: {_range(by_rows['published'])} for {rows[0]} to {rows[-1]} rows, "
        f"{_range(by_providers['published'])} for {providers[0]} to {providers[-1]} providers; "
        f"ours with masks {_range(by_providers['masks'])}",
        "holds" if steady else "holds only roughly",
        "" if steady else "the times vary on a busy machine",
    )
    size = {t: _cells(results, t) for t in tables}
    spent = {t: results.mean("2", "collector", table=t, way="published", providers=providers[0])
             for t in tables}  # fmt: skip
    each = [spent[t] / size[t] for t in tables]
    yield Statement(
        "Aggregation time is linear in the number of cells",
        "published, ms per class-by-value cell: "
        + ", ".join(f"{t} {one:.2f}" for t, one in zip(tables, each, strict=True)),
        "holds" if max(each) < 1.6 * min(each) else "holds only roughly",
        "" if max(each) < 1.6 * min(each) else "features of different size share fixed costs",
    )
    most = max(
        results.mean(f, m, **({"table": t, "way": "published"} | more))
        for t in tables
        for f, m, more in (
            ("2", "collector", {"providers": providers[-1]}),
            ("2", "receiver", {"providers": providers[-1]}),
            ("3", "label provider", {}),
        )
    )
    ours = max(
        results.mean("2", phase, table=t, way="masks", providers=s)
        for t in tables for s in providers for phase in ("provider", "collector", "receiver")
    )  # fmt: skip
    yield Statement(
        "Training takes a few seconds at most",
        f"longest phase of a party {most / 1e3:.2f} s as published; ours with masks "
        f"{ours / 1e3:.3f} s (horizontal)",
        "holds" if most < 10_000 else "does not hold",
    )
    attacked = [c["table"] for c in results.values if c.figure == "attack"]
    share = {t: results.mean("attack", "read exactly", table=t) for t in attacked}
    took = {t: results.mean("attack", "milliseconds", table=t) for t in attacked}
    shown = ", ".join(
        f"{t} {100 * share[t]:.0f} % of {results.mean('attack', 'counts', table=t):.0f} counts in "
        f"{took[t] / 1e3:.1f} s"
        for t in attacked
    )
    broken = max(share.values()) > 0.99
    why = (
        "a blinding factor is an additive pad, and one pad for all cells of a provider is found "
        "from the sum over a feature's values; ours draws a fresh pad for every ciphertext, and "
        "the same attacks fail on it (tests/federated/test_attacks.py)"
    )
    yield Statement(
        "Statistics privacy: nobody learns n_i and n_ij(v) of a provider",
        f"the collector of the published round reads exactly: {shown}",
        "does not hold" if broken else "holds",
        why if broken else "",
    )
    yield Statement(
        "Ownership privacy: nobody learns whether a provider holds a value",
        f"the same counts tell who holds a value: {100 * max(share.values()):.0f} % read exactly",
        "does not hold" if broken else "holds",
        "a count of zero is read like any other" if broken else "",
    )
    real = {t: results.mean("table", "epsilon of a claimed 0.1", table=t) for t in tables}
    yield Statement(
        "The model is epsilon-differentially private (epsilon 0.1)",
        "a record changes d + 1 counts, so the total is "
        + ", ".join(f"{t} {e:.1f}" for t, e in real.items())
        + "; and the receiver gets quotients with exact n_i",
        "does not hold",
        "every count has Laplace noise for the whole epsilon, and n_i has none; one provider draws "
        "all the noise and can subtract it",
    )
    accuracy = "; ".join(
        f"{t} {100 * results.mean('table', 'non-private accuracy', table=t):.1f} without privacy, "
        f"{100 * results.mean('table', 'accuracy at epsilon 0.1', table=t):.1f} at 0.1, "
        f"{100 * results.mean('table', 'accuracy at epsilon 1', table=t):.1f} at 1"
        for t in tables
    )
    yield Statement(
        "(not in the paper) what an honest total epsilon costs",
        accuracy,
        "holds only for epsilon near 1 or more rows",
        "these tables are small: at a total of 0.1 little is left to learn",
    )


def _range(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _cells(results: Results, table: str) -> int:
    """Class-by-value cells of a table, class totals included."""
    schema, parts = _parts(table, 2)
    totals, tables = _counted(schema, parts[0])
    return int(len(totals) + sum(one.size for one in tables))
