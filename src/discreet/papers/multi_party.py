"""Naive Bayes over several data owners (Li and others): table 1, figures 2 and 3, the attack."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from discreet.papers.paper_figures import Figure, Panel
from discreet.papers.results import (
    MAX_CLOSE_DIFFERENCE,
    Finding,
    PairedDifference,
    PaperCell,
    PaperResults,
    StatementCheck,
    format_percentages,
)
from discreet.privacy.guarantee import format_rounded_up

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
PROTOCOLS = ("published", "masks", "paillier")
TIMED_ROWS = 100
"""Rows on which the published label provider is timed; its cost is linear in the rows."""
NON_PROVIDER_NAMES = ("label", "collector", "receiver")
"""Parties that hold no features."""


def list_cells(quick: bool) -> list[PaperCell]:
    """Times of the phases by providers, horizontal and vertical; the attack; accuracy."""
    tables = TABLES[:2] if quick else TABLES
    providers = PROVIDERS[:2] if quick else PROVIDERS
    return [
        *PaperCell.list_grid("table", table=tables),
        *PaperCell.list_grid("2", table=tables, way=PROTOCOLS, providers=providers),
        *PaperCell.list_grid("samples", way=PROTOCOLS, rows=(200, 400, 800, 1600)),
        *PaperCell.list_grid("3", table=tables, way=PROTOCOLS),
        *PaperCell.list_grid("attack", table=tables[:3]),
    ]


def compute(cell: PaperCell, repeats: int, quick: bool) -> dict[str, list[float]]:
    """The values of one cell, a number for each repetition."""
    if cell.figure == "table":
        return _score_table(cell["table"], repeats)
    if cell.figure == "attack":
        return _run_attack(cell["table"])
    values_by_metric: dict[str, list[float]] = {}
    for _ in range(repeats):
        if cell.figure == "3":
            phase_times = _time_vertical(cell["table"], cell["way"])
        elif cell.figure == "samples":
            phase_times = _time_horizontal("splice", cell["way"], 2, cell["rows"])
        else:
            phase_times = _time_horizontal(cell["table"], cell["way"], cell["providers"], None)
        for metric, metric_value in phase_times.items():
            values_by_metric.setdefault(metric, []).append(metric_value)
    return values_by_metric


def _time_call(timed_call: Callable[[], Any]) -> tuple[float, Any]:
    start_time = time.process_time()
    result = timed_call()
    return 1e3 * (time.process_time() - start_time), result


@cache
def _generate_key(bits: int, number: int = 0) -> Any:
    """A cached Paillier key; another number gives another key of the same length."""
    from discreet.federated.crypto.paillier import generate_key

    return generate_key(bits, allow_small=bits < 2048)


def _load_parts(table: str, providers: int, row_limit: int | None = None) -> tuple[Any, list[Any]]:
    from discreet.datasets import load
    from discreet.schema.cells import encode_classes, get_columns

    dataset = load(table)
    class_indices = encode_classes(dataset.schema, dataset.y)
    columns = {
        name: np.asarray(column)
        for name, column in get_columns(dataset.X, dataset.schema.names).items()
    }
    row_indices = np.arange(len(class_indices))[:row_limit]
    return dataset.schema, [
        ({name: column[rows] for name, column in columns.items()}, class_indices[rows])
        for rows in np.array_split(row_indices, providers)
    ]


def _count_part(schema: Any, provider_part: Any) -> Any:
    """Class totals and class-by-value tables of one provider."""
    from discreet.schema.cells import Cells

    columns, class_indices = provider_part
    class_count, class_tables = len(schema.classes), []
    for name in schema.names:
        cells = Cells.from_schema(schema, name, 2)
        flat_counts = np.bincount(
            class_indices * cells.size + cells.encode_column(columns[name]),
            minlength=class_count * cells.size,
        )
        class_tables.append(flat_counts.reshape(class_count, cells.size))
    return np.bincount(class_indices, minlength=class_count), class_tables


def _make_published_round(provider_counts: Sequence[Any]) -> Any:
    from discreet.papers.published_parties import PublishedRound

    return PublishedRound(_generate_key(1024), _generate_key(1024, 1), provider_counts, 0.1)


def _time_horizontal(
    table: str, protocol: str, providers: int, row_limit: int | None
) -> dict[str, float]:
    schema, provider_parts = _load_parts(table, providers, row_limit)
    if protocol == "published":
        published_round = _make_published_round(
            [_count_part(schema, part) for part in provider_parts]
        )
        provider_time = _time_call(
            lambda: (published_round.hide_counts(1), published_round.hide_totals(1))
        )[0]
        return {"provider": provider_time, **_time_openings(published_round)}
    from discreet.federated import horizontal

    names = [*(f"p{i}" for i in range(providers)), "collector", "receiver"]
    identities, manifest, key = _make_agreement(schema, names, protocol, "receiver")
    collector = horizontal.HorizontalCollector(identities[-2], manifest)
    provider_times, submissions = [], []
    for identity, part in zip(identities, provider_parts, strict=False):
        provider_party = horizontal.HorizontalProvider(identity, manifest)
        exact_vector = manifest.layout.count_rows(*part)
        elapsed, message = _time_call(partial(provider_party.make_submission, exact_vector))
        provider_times.append(elapsed)
        submissions.append(message.to_bytes())

    def collect_submissions() -> Any:
        for submission in submissions:
            collector.receive(submission)
        return collector.make_result()

    collector_time, result_message = _time_call(collect_submissions)
    receiver = horizontal.HorizontalReceiver(identities[-1], manifest, key)
    receiver_time = _time_call(lambda: receiver.receive(result_message.to_bytes()))[0]
    provider_time = float(np.mean(provider_times))
    return {"provider": provider_time, "collector": collector_time, "receiver": receiver_time}


def _time_openings(published_round: Any) -> dict[str, float]:
    """Times of the published collector and receiver."""
    collector_time = _time_call(published_round.open_collector_totals)[0]
    # opens for the collector once more
    both_times = _time_call(published_round.open_receiver_quotients)[0]
    return {"collector": collector_time, "receiver": max(both_times - collector_time, 0.0)}


def _make_agreement(
    schema: Any, party_names: Sequence[str], protocol: str, key_holder: str, **manifest_options: Any
) -> tuple[list[Any], Any, Any]:
    """Parties, their signed manifest, and the Paillier key of one of them, if there is one."""
    from discreet.federated.agreement.identity import Identity
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import make_feature_requests

    key = _generate_key(2048) if protocol == "paillier" else None
    identities = [Identity.generate(name) for name in party_names]
    cards = {identity.card.name: identity.card for identity in identities}
    if key is not None:
        cards[key_holder] = identities[party_names.index(key_holder)].make_card_with_key(key)
    if "label" in cards:
        manifest_options["label"] = cards["label"]
    manifest = Manifest(
        schema,
        make_feature_requests(schema, 2),
        0.1,
        tuple(card for name, card in cards.items() if name not in NON_PROVIDER_NAMES),
        cards["collector"],
        cards["receiver"],
        aggregation="masks" if key is None else "paillier",
        paillier=None if key is None else key.public,
        **manifest_options,
    ).with_signatures(*identities)
    return identities, manifest, key


def _time_vertical(table: str, protocol: str) -> dict[str, float]:
    """Label provider, slowest provider, collector and receiver."""
    from discreet.federated import vertical

    schema, [(feature_columns, class_indices)] = _load_parts(table, 1)
    if protocol == "published":
        return _time_published_vertical(schema, feature_columns, class_indices)
    provider_names = [f"p{i}" for i in range(4)]
    identities, manifest, key = _make_agreement(
        schema,
        [*provider_names, "label", "collector", "receiver"],
        protocol,
        "label",
        columns={name: schema.names[i::4] for i, name in enumerate(provider_names)},
        rows=len(class_indices),
        partition="vertical",
    )
    label_provider = vertical.LabelProvider(identities[-3], manifest, key)
    collector = vertical.VerticalCollector(identities[-2], manifest)
    label_time, messages = _time_call(lambda: label_provider.make_all_labels(class_indices))
    slowest = 0.0
    for identity, message in zip(identities[:-3], messages, strict=True):
        provider_party = vertical.VerticalProvider(identity, manifest)
        provider_party.receive(message.to_bytes())
        own_columns = {name: feature_columns[name] for name in manifest.columns[identity.name]}
        elapsed, tables_message = _time_call(partial(provider_party.make_tables, own_columns))
        slowest = max(slowest, elapsed)
        label_time += _time_call(
            lambda text=tables_message: label_provider.receive(text.to_bytes())  # type: ignore[misc]
        )[0]
    correction_time = 0.0
    if collector.protocol.needs_correction:
        correction_time, correction = _time_call(collector.make_correction)
        label_provider.receive(correction.to_bytes())
    share_time, shares = _time_call(label_provider.make_shares)
    collector_time, total_message = _time_call(
        lambda: (collector.receive(shares.to_bytes()), collector.make_result())[1]
    )
    receiver = vertical.VerticalReceiver(identities[-1], manifest)
    receiver_time = _time_call(lambda: receiver.receive(total_message.to_bytes()))[0]
    return {
        "label provider": label_time + share_time,
        "provider": slowest,
        "collector": correction_time + collector_time,
        "receiver": receiver_time,
    }


def _time_published_vertical(
    schema: Any, feature_columns: Any, class_indices: Any
) -> dict[str, float]:
    from discreet.federated.crypto.paillier import Encryptor

    public_key = _generate_key(1024).public
    encryptor, class_range = Encryptor(public_key), range(len(schema.classes))
    sample_codes = class_indices[:TIMED_ROWS]
    encryption_time, ciphertext_vectors = _time_call(
        lambda: [
            [encryptor.encrypt(int(class_index == code)) for class_index in class_range]
            for code in sample_codes
        ]
    )
    addition_time = _time_call(
        lambda: [
            public_key.add([vector[class_index] for vector in ciphertext_vectors])
            for class_index in class_range
        ]
    )[0]
    row_ratio = len(class_indices) / len(sample_codes)
    published_round = _make_published_round([_count_part(schema, (feature_columns, class_indices))])
    return {
        "label provider": encryption_time * row_ratio,
        "provider": addition_time * row_ratio * len(schema.names) / 4,
        **_time_openings(published_round),
    }


def _score_table(table: str, repeats: int) -> dict[str, list[float]]:
    from discreet.datasets import load
    from discreet.estimators import FederatedNB, MixedNB
    from discreet.model.evaluation import cross_validate

    dataset = load(table)
    exact = cross_validate(
        lambda X, y: MixedNB(schema=dataset.schema).fit(X, y).model_, dataset.X, dataset.y
    )
    values_by_metric: dict[str, list[float]] = {
        "rows": [len(dataset.y)],
        "features": [len(dataset.schema.features)],
        "classes": [len(dataset.schema.classes)],
        "non-private accuracy": [exact.accuracy],
    }

    def fit(X: Any, y: Any, epsilon: float, seed: int) -> Any:
        nb = FederatedNB(epsilon, providers=3, schema=dataset.schema, random_state=seed)
        return nb.fit(X, y).model_

    for epsilon in (0.1, 1.0):
        values_by_metric[f"accuracy at epsilon {format_rounded_up(epsilon)}"] = [
            cross_validate(
                partial(fit, epsilon=epsilon, seed=seed), dataset.X, dataset.y, count=5, seed=seed
            ).accuracy
            for seed in range(repeats)
        ]
    # a record touches d + 1 counts with Laplace(1/0.1) noise each
    values_by_metric["epsilon of a claimed 0.1"] = [0.1 * (len(dataset.schema.features) + 1)]
    return values_by_metric


def _run_attack(table: str) -> dict[str, list[float]]:
    """The collector of a published round with three providers reads their counts."""
    from discreet.papers.published_parties import PUBLIC_FACTOR, read_exposed_counts

    schema, provider_parts = _load_parts(table, 3)
    provider_counts = [_count_part(schema, provider_part) for provider_part in provider_parts]
    published_round = _make_published_round(provider_counts)
    exact_count = cell_count = 0
    total_time = 0.0
    for provider, (totals, tables) in enumerate(provider_counts):
        elapsed, exposed_tables = _time_call(
            partial(read_exposed_counts, published_round, provider)
        )
        total_time += elapsed
        for true_counts, read_counts in zip([totals, *tables], exposed_tables, strict=True):
            scaled_counts = [PUBLIC_FACTOR * int(count) for count in np.ravel(true_counts)]
            exact_count += sum(map(operator.eq, scaled_counts, read_counts))
            cell_count += len(scaled_counts)
    return {
        "counts": [cell_count],
        "read exactly": [exact_count / cell_count],
        "milliseconds": [total_time],
    }


# ---------------------------------------------------------------- figures and verdicts


PHASES = ("provider", "collector", "receiver")
PUBLISHED_TABLE_SIZES = {
    "balance_scale": (4, 3, 625),
    "breast_cancer_wisconsin": (9, 2, 699),
    "spect": (22, 2, 307),
    "splice": (60, 3, 3190),
}
"""Their table 1: attributes, classes, rows."""


def make_figures(results: PaperResults) -> Iterator[Figure]:
    """Figure 2 by phase, figure 3 as bars would show it: one point for each table."""
    provider_counts = results.list_parameter_values("2", "providers")
    for phase in PHASES if provider_counts else ():
        panels = [
            Panel(
                table,
                results.make_lines(
                    "2", "way", PROTOCOLS, "providers", provider_counts, phase, table=table
                ),
                "providers",
                "CPU ms",
                log_x=True,
                log_y=True,
            )
            for table in results.list_parameter_values("2", "table")
        ]
        yield Figure(f"figure 2 {phase}", f"Horizontal: time of a {phase}.", panels)
    if tables := results.list_parameter_values("3", "table"):
        table_sizes = {
            table: results.compute_mean("table", "rows", table=table)
            * results.compute_mean("table", "features", table=table)
            for table in tables
        }
        tables = sorted(tables, key=lambda table: table_sizes[table])
        panels = []
        for phase in ("label provider", *PHASES):
            plot_lines = [
                replace(line, x=[table_sizes[table] for table in tables])
                for line in results.make_lines("3", "way", PROTOCOLS, "table", tables, phase)
            ]
            panels.append(
                Panel(phase, plot_lines, "rows x features", "CPU ms", log_x=True, log_y=True)
            )
        caption = f"Vertical: time by size of the table (from left to right {', '.join(tables)})."
        yield Figure("figure 3", caption, panels)


def _list_tables(results: PaperResults) -> list[str]:
    return results.list_parameter_values("2", "table")


def _list_providers(results: PaperResults) -> list[int]:
    return results.list_parameter_values("2", "providers")


def _check_sizes(results: PaperResults) -> Finding:
    table_sizes = {
        table: tuple(
            int(results.compute_mean("table", metric, table=table))
            for metric in ("features", "classes", "rows")
        )
        for table in _list_tables(results)
    }
    return Finding.from_cases(
        "here / in the paper: "
        + ", ".join(
            f"{table} {' '.join(map(str, sizes))} / "
            f"{' '.join(map(str, PUBLISHED_TABLE_SIZES[table]))}"
            for table, sizes in table_sizes.items()
        ),
        {table: sizes == PUBLISHED_TABLE_SIZES[table] for table, sizes in table_sizes.items()},
        "UCI's own table of that name has another number of rows",
    )


def _check_encryption_time(results: PaperResults) -> Finding:
    row_counts = results.list_parameter_values("samples", "rows")
    provider_counts = _list_providers(results)
    by_rows = results.make_line("", "samples", "rows", row_counts, "provider", way="published").y
    by_providers, masked = (
        line.y
        for line in results.make_lines(
            "2",
            "way",
            ("published", "masks"),
            "providers",
            provider_counts,
            "provider",
            table=_list_tables(results)[-1],
        )
    )
    is_steady = all(max(times) < 1.5 * min(times) for times in (by_rows, by_providers))
    return Finding(
        f"published, ms: {_format_range(by_rows)} for {row_counts[0]} to {row_counts[-1]} rows, "
        f"{_format_range(by_providers)} for {provider_counts[0]} to {provider_counts[-1]} "
        f"providers; ours with masks {_format_range(masked)}",
        "holds" if is_steady else "holds only roughly",
        "" if is_steady else "the times vary on a busy machine",
    )


def _format_range(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _check_aggregation_time(results: PaperResults) -> Finding:
    times_per_cell = {
        table: results.compute_mean(
            "2", "collector", table=table, way="published", providers=_list_providers(results)[0]
        )
        / _count_cells(table)
        for table in _list_tables(results)
    }
    is_linear = max(times_per_cell.values()) < 1.6 * min(times_per_cell.values())
    return Finding(
        "published, ms per class-by-value cell: "
        + ", ".join(f"{table} {duration:.2f}" for table, duration in times_per_cell.items()),
        "holds" if is_linear else "holds only roughly",
        "" if is_linear else "features of different size share fixed costs",
    )


def _check_training_time(results: PaperResults) -> Finding:
    tables, provider_counts = _list_tables(results), _list_providers(results)
    longest_published = max(
        results.compute_mean(figure, phase, table=table, way="published", **parameters)
        for table in tables
        for figure, phase, parameters in (
            ("2", "collector", {"providers": provider_counts[-1]}),
            ("2", "receiver", {"providers": provider_counts[-1]}),
            ("3", "label provider", {}),
        )
    )
    longest_masked = max(
        results.compute_mean("2", phase, table=table, way="masks", providers=provider_count)
        for table in tables
        for provider_count in provider_counts
        for phase in PHASES
    )
    return Finding(
        f"longest phase of a party {longest_published / 1e3:.2f} s as published; ours with masks "
        f"{longest_masked / 1e3:.3f} s (horizontal)",
        "holds" if longest_published < 10_000 else "does not hold",
    )


def _get_exact_shares(results: PaperResults) -> dict[str, float]:
    """Which share of the counts the attack reads exactly, by table."""
    return {
        table: results.compute_mean("attack", "read exactly", table=table)
        for table in results.list_parameter_values("attack", "table")
    }


def _check_statistics_privacy(results: PaperResults) -> Finding:
    exact_shares = _get_exact_shares(results)
    attack_text = ", ".join(
        f"{table} {100 * exact_share:.0f} % of "
        f"{results.compute_mean('attack', 'counts', table=table):.0f} counts in "
        f"{results.compute_mean('attack', 'milliseconds', table=table) / 1e3:.1f} s"
        for table, exact_share in exact_shares.items()
    )
    return _judge_attack(
        f"the collector of the published round reads exactly: {attack_text}",
        exact_shares,
        "a blinding factor is an additive pad, and one pad for all cells of a provider is found "
        "from the sum over a feature's values; ours draws a fresh pad for every ciphertext, and "
        "the same attacks fail on it (tests/federated/test_attacks.py)",
    )


def _check_ownership_privacy(results: PaperResults) -> Finding:
    exact_shares = _get_exact_shares(results)
    return _judge_attack(
        f"the same counts tell who holds a value: {100 * max(exact_shares.values()):.0f} % read "
        "exactly",
        exact_shares,
        "a count of zero is read like any other",
    )


def _judge_attack(measured: str, exact_shares: dict[str, float], reason: str) -> Finding:
    if max(exact_shares.values()) > 0.99:
        return Finding(measured, "does not hold", reason)
    return Finding(measured, "holds")


def _check_guarantee(results: PaperResults) -> Finding:
    real_epsilons = {
        table: results.compute_mean("table", "epsilon of a claimed 0.1", table=table)
        for table in _list_tables(results)
    }
    return Finding(
        "a record changes d + 1 counts, so the total is "
        + ", ".join(f"{table} {loss:.1f}" for table, loss in real_epsilons.items())
        + "; and the receiver gets quotients with exact n_i",
        "does not hold" if max(real_epsilons.values()) > 0.1 else "holds",
        "every count has Laplace noise for the whole epsilon, and n_i has none; one provider draws "
        "all the noise and can subtract it",
    )


def _check_cost(results: PaperResults) -> Finding:
    tables = _list_tables(results)
    exact_accuracies = {
        table: results.compute_mean("table", "non-private accuracy", table=table)
        for table in tables
    }
    return Finding.from_differences(
        f"without privacy {format_percentages(exact_accuracies)}; with it, points of difference: ",
        {
            f"{table} at {epsilon}": PairedDifference.from_pairs(
                results.get_values("table", f"accuracy at epsilon {epsilon}", table=table),
                exact_accuracies[table],
                2 * len(tables),
            )
            for table in tables
            for epsilon in ("0.1", "1")
        },
        lambda difference: difference.is_above(-MAX_CLOSE_DIFFERENCE),
        "the tables are small",
    )


def _count_cells(table: str) -> int:
    """Class-by-value cells of a table, class totals included."""
    schema, provider_parts = _load_parts(table, 2)
    class_totals, class_tables = _count_part(schema, provider_parts[0])
    return int(len(class_totals) + sum(class_table.size for class_table in class_tables))


STATEMENTS: dict[str, StatementCheck] = {
    "Table 1: attributes, classes and rows": _check_sizes,
    "Encryption time does not depend on samples and providers": _check_encryption_time,
    "Aggregation time is linear in the number of cells": _check_aggregation_time,
    "Training takes a few seconds at most": _check_training_time,
    "Statistics privacy: nobody learns n_i and n_ij(v) of a provider": _check_statistics_privacy,
    "Ownership privacy: nobody learns whether a provider holds a value": _check_ownership_privacy,
    "The model is epsilon-differentially private (epsilon 0.1)": _check_guarantee,
    "(not in the paper) an honest total epsilon costs less than two points": _check_cost,
}
"""What the paper states, and how it is judged."""
