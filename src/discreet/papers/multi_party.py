"""Naive Bayes over several data owners (Li and others): table 1, figures 2 and 3, the attack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from discreet.papers.drawing import Figure, Panel
from discreet.papers.results import CLOSE, Cell, Gap, Results, Statement, listed, verdict
from discreet.privacy import rounded_up

TITLE = "Naive Bayes over several data owners, reproduced"
NOTES = """
T. Li and others: *Differentially private Naive Bayes learning over multiple data sources*. Times
are of the processor, in milliseconds on one thread: the machine had other work to do. What the
network takes is not in them. *Published* is their protocol with this package's Paillier arithmetic
(which is quicker than the usual one) at their 1024 bits, one ciphertext for each count; *masks* and
*Paillier* are this package's rounds, the latter at 2048 bits with packed counters. Noise,
signatures and checks are included in ours. Bars in the plots are one standard error.

The vertical rounds have four providers, and the time is of the slowest. The published label
provider is timed on 100 rows, of which its cost is a multiple; what its collector and receiver do
is what they do in a horizontal round with one provider.
"""
SEEDING = "repetition r of an accuracy has the seed r, keys and masks are from the system's source"
CODE = ("federated", "papers/published_parties.py")
REPEATS = 5

TABLES = ("balance_scale", "breast_cancer_wisconsin", "spect", "splice")
PROVIDERS = (2, 4, 8, 16)
WAYS = ("published", "masks", "paillier")
SAMPLE = 100
"""Rows on which the published label provider is timed; its cost is linear in the rows."""
NO_PROVIDERS = ("label", "collector", "receiver")


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
    found: dict[str, list[float]] = {}
    for _ in range(repeats):
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
        return {"provider": provider, **_opened(made)}
    from discreet.federated import horizontal

    names = [*(f"p{i}" for i in range(providers)), "collector", "receiver"]
    people, manifest, key = _agreed(schema, names, way, "receiver")
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


def _opened(made: Any) -> dict[str, float]:
    """Times of the published collector and receiver."""
    collecting = _spent(made.collector_opens)[0]
    both = _spent(made.receiver_opens)[0]  # which opens for the collector once more
    return {"collector": collecting, "receiver": max(both - collecting, 0.0)}


def _agreed(
    schema: Any, names: Sequence[str], way: str, holder: str, **more: Any
) -> tuple[list[Any], Any, Any]:
    """Parties, their signed manifest, and the Paillier key of one of them, if there is one."""
    from discreet.federated.agreement.identity import Identity
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import wanted_of

    key = _key(2048) if way == "paillier" else None
    people = [Identity.generate(name) for name in names]
    cards = {one.card.name: one.card for one in people}
    if key is not None:
        cards[holder] = people[names.index(holder)].card_with(key)
    if "label" in cards:
        more["label"] = cards["label"]
    manifest = Manifest(
        schema,
        wanted_of(schema, 2),
        0.1,
        tuple(card for name, card in cards.items() if name not in NO_PROVIDERS),
        cards["collector"],
        cards["receiver"],
        aggregation="masks" if key is None else "paillier",
        paillier=None if key is None else key.public,
        **more,
    ).signed_by(*people)
    return people, manifest, key


def _vertical(table: str, way: str) -> dict[str, float]:
    """Label provider, slowest provider, collector and receiver."""
    from discreet.datasets import load
    from discreet.encoding import class_codes, columns_of

    data = load(table)
    schema, codes = data.schema, class_codes(data.schema, data.y)
    columns = columns_of(data.X, schema.names)
    if way == "published":
        from discreet.federated.crypto.paillier import Encryptor
        from discreet.papers.published_parties import Published

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
        made = Published(key, _key(1024, 1), [_counted(schema, _parts(table, 1)[1][0])], 0.1)
        return {
            "label provider": took * scale,
            "provider": adding * scale * len(schema.names) / 4,
            **_opened(made),
        }
    from discreet.federated import vertical

    count = 4
    names = [*(f"p{i}" for i in range(count)), "label", "collector", "receiver"]
    held = {f"p{i}": schema.names[i::count] for i in range(count)}
    people, manifest, key = _agreed(
        schema, names, way, "label", columns=held, rows=len(codes), partition="vertical"
    )
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
    adding, total = _spent(lambda: (collector.receive(shares.to_bytes()), collector.result())[1])
    receiver = vertical.Receiver(people[-1], manifest)
    opening = _spent(lambda: receiver.receive(total.to_bytes()))[0]
    return {
        "label provider": own_time + last,
        "provider": slowest,
        "collector": dealing + adding,
        "receiver": opening,
    }


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


PHASES = ("provider", "collector", "receiver")
PRINTED = {"balance_scale": (4, 3, 625), "breast_cancer_wisconsin": (9, 2, 699),
           "spect": (22, 2, 307), "splice": (60, 3, 3190)}  # fmt: skip
"""Their table 1: attributes, classes, rows."""


def figures(results: Results) -> Iterator[Figure]:
    """Figure 2 by phase, figure 3 as bars would show it: one point for each table."""
    providers = results.among("2", "providers")
    for phase in PHASES if providers else ():
        panels = [
            Panel(table, [results.line(way, "2", "providers", providers, phase, table=table,
                                       way=way) for way in WAYS],
                  "providers", "CPU ms", log_x=True, log_y=True)
            for table in results.among("2", "table")
        ]  # fmt: skip
        yield Figure(f"figure 2 {phase}", f"Horizontal: time of a {phase}.", panels)
    if tables := results.among("3", "table"):
        size = {t: results.mean("table", "rows", table=t) * results.mean("table", "features",
                                                                         table=t)
                for t in tables}  # fmt: skip
        tables = sorted(tables, key=lambda t: size[t])
        panels = []
        for phase in ("label provider", *PHASES):
            made = [replace(results.line(way, "3", "table", tables, phase, way=way),
                            x=[size[t] for t in tables]) for way in WAYS]  # fmt: skip
            panels.append(Panel(phase, made, "rows x features", "CPU ms", log_x=True, log_y=True))
        told = f"Vertical: time by size of the table (from left to right {', '.join(tables)})."
        yield Figure("figure 3", told, panels)


def statements(results: Results) -> Iterator[Statement]:
    """What the paper states."""
    tables, providers = results.among("2", "table"), results.among("2", "providers")
    kinds = ("features", "classes", "rows")
    found = {t: tuple(int(results.mean("table", m, table=t)) for m in kinds) for t in tables}
    same = {t: found[t] == PRINTED[t] for t in tables}
    yield Statement(
        "Table 1: attributes, classes and rows",
        "here / in the paper: "
        + ", ".join(f"{t} {_numbers(found[t])} / {_numbers(PRINTED[t])}" for t in tables),
        verdict(same),
        "" if all(same.values()) else "UCI's own table of that name has another number of rows",
    )
    rows = results.among("samples", "rows")
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
    attacked = results.among("attack", "table")
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
        "does not hold" if max(real.values()) > 0.1 else "holds",
        "every count has Laplace noise for the whole epsilon, and n_i has none; one provider draws "
        "all the noise and can subtract it",
    )
    exact = {t: results.mean("table", "non-private accuracy", table=t) for t in tables}
    costs = {
        f"{t} at {e}": Gap.of(results.series("table", f"accuracy at epsilon {e}", table=t),
                              exact[t], 2 * len(tables))
        for t in tables for e in ("0.1", "1")
    }  # fmt: skip
    ok = {case: gap.above(-CLOSE) for case, gap in costs.items()}
    yield Statement(
        "(not in the paper) an honest total epsilon costs less than two points",
        f"without privacy {listed(exact)}; with it, points of difference: "
        + ", ".join(f"{case} {gap}" for case, gap in costs.items()),
        verdict(ok),
        "" if all(ok.values()) else "the tables are small",
    )


def _numbers(values: Sequence[int]) -> str:
    return " ".join(map(str, values))


def _range(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _cells(results: Results, table: str) -> int:
    """Class-by-value cells of a table, class totals included."""
    schema, parts = _parts(table, 2)
    totals, tables = _counted(schema, parts[0])
    return int(len(totals) + sum(one.size for one in tables))
