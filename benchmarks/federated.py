"""What a federated round costs each party, beside the paper's own way in the same run.

``.venv/bin/python benchmarks/federated.py`` prints tables ready for RESULTS.md: CPU milliseconds on
one thread and bytes on the wire, on the paper's four tables. Ours has 3072 bits and packed slots,
or masks; the paper's way is straight ``phe`` at 1024 bits, one ciphertext a counter, two systems.
Set-up is what is done before there is any data: key agreement, tables of powers, noise.

    --processes          16 provider processes, a collector and a receiver on loopback, Paillier
    --horizontal 64      so many providers as processes, and as threads of one process, masks
    --vertical 1000000   so many rows, 16 cells at two providers, every party a process, masks
    --proof              only what the proof of a Paillier key costs

Wall times depend on what else the machine does: the load average is printed beside them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from _rounds import Processes, holding, write_parties
from discreet.datasets import load
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import make_feature_requests
from discreet.federated.crypto.paillier import PrivateKey, generate_key
from discreet.federated.horizontal.arithmetic import open_totals
from discreet.schema.cells import encode_classes, get_columns

TABLES = ("balance_scale", "breast_cancer_wisconsin", "spect", "splice")
PROVIDERS = (2, 4, 16)
LONG = ("--vertical", "--horizontal")
SAMPLE = 200  # rows that the paper's label provider is timed on; its cost is linear in rows


def milliseconds(work: Callable[[], Any], runs: int = 1) -> tuple[float, Any]:
    """Return the least CPU time of some runs, and what the last gave."""
    taken, found = [], None
    for _ in range(runs):
        start = time.process_time()
        found = work()
        taken.append(1e3 * (time.process_time() - start))
    return min(taken), found


def parts_of(name: str, providers: int) -> tuple[Any, list[Any]]:
    """Schema, and the rows of each provider."""
    data = load(name)
    columns, codes = get_columns(data.X, data.schema.names), encode_classes(data.schema, data.y)
    arrays = {key: np.asarray(column) for key, column in columns.items()}
    rows = np.array_split(np.arange(len(codes)), providers)
    return data.schema, [({k: c[own] for k, c in arrays.items()}, codes[own]) for own in rows]


def agreement(schema: Any, providers: int, key: PrivateKey | None) -> tuple[Manifest, list[Any]]:
    """A signed manifest and the identities of its parties."""
    names = [*(f"p{i}" for i in range(providers)), "collector", "receiver"]
    people = [Identity.generate(name) for name in names]
    manifest = Manifest(
        schema,
        make_feature_requests(schema),
        1.0,
        tuple(one.card for one in people[:-2]),
        people[-2].card,
        holding(people[-1], key),
        aggregation="masks" if key is None else "paillier",
        paillier=None if key is None else key.public,
        margin=1,
    )
    return manifest.with_signatures(*people), people


def horizontal_costs(name: str, providers: int, key: PrivateKey | None) -> list[float]:
    """Set-up, provider, collector, receiver in ms; bytes of a submission; counters."""
    schema, parts = parts_of(name, providers)
    manifest, people = agreement(schema, providers, key)
    manifest.require_all_signatures()
    exact = [manifest.layout.count_rows(*part) for part in parts]
    setup, _ = milliseconds(lambda: horizontal.HorizontalProvider(people[0], manifest), 3)
    machines = [horizontal.HorizontalProvider(one, manifest) for one in people[:-2]]
    work, said = [], []
    for machine, own in zip(machines, exact, strict=True):
        spent, message = milliseconds(lambda m=machine, o=own: m.make_submission(o))  # type: ignore[misc]
        work.append(spent)
        said.append(message.to_bytes())
    collector = horizontal.HorizontalCollector(people[-2], manifest)
    taking, _ = milliseconds(lambda: [collector.receive(m) for m in said])
    adding, result = milliseconds(collector.make_result)
    receiver, total = (
        horizontal.HorizontalReceiver(people[-1], manifest, key),
        collector.sum_submissions(),
    )
    opening, _ = milliseconds(lambda: open_totals(people[-1], manifest, key, total), runs=3)
    receiver.receive(result)
    return [setup, min(work), taking + adding, opening, len(said[0]), manifest.layout.size]


def papers_horizontal(name: str, bits: int = 1024) -> tuple[float, float]:
    """A provider's encryption, and all that opens the paper's model, straight with phe.

    The collector decrypts every noised count and raises a ciphertext to its reciprocal; the
    receiver decrypts every power (algorithm 3 and the extraction).
    """
    import phe

    schema, parts = parts_of(name, 2)
    counts = agreement(schema, 2, None)[0].layout.count_rows(*parts[0])
    classes = len(schema.classes)
    public, private = phe.generate_paillier_keypair(n_length=bits)
    factor = public.get_random_lt_n()

    def encrypted() -> list[int]:
        doubled = [*counts.tolist(), *counts[:classes].tolist()]  # n_i under both systems
        return [public.raw_encrypt(count) * factor % public.nsquare for count in doubled]

    provider, hidden = milliseconds(encrypted)

    def opened() -> None:
        for one in hidden[:-classes]:
            private.raw_decrypt(one)
            power = pow(hidden[0], 10**12 // 7, public.nsquare)  # l / n', l for the float's 52 bits
            private.raw_decrypt(power)

    return provider, milliseconds(opened)[0]


def vertical_costs(name: str, key: PrivateKey | None, providers: int = 4) -> list[float]:
    """Label provider, slowest provider and collector in ms; MB of labels and of the largest tables.

    Everything counts, tables of powers and the collector's dealing included.
    """
    data = load(name)
    schema, codes = data.schema, encode_classes(data.schema, data.y)
    columns = get_columns(data.X, schema.names)
    names = [*(f"p{i}" for i in range(providers)), "label", "collector", "receiver"]
    people = [Identity.generate(one) for one in names]
    manifest = Manifest(
        schema,
        make_feature_requests(schema),
        1.0,
        tuple(one.card for one in people[:-3]),
        people[-2].card,
        people[-1].card,
        label=holding(people[-3], key),
        columns={f"p{i}": schema.names[i::providers] for i in range(providers)},
        rows=len(codes),
        partition="vertical",
        aggregation="masks" if key is None else "paillier",
        paillier=None if key is None else key.public,
    ).with_signatures(*people)
    label = vertical.LabelProvider(people[-3], manifest, key)
    collector = vertical.VerticalCollector(people[-2], manifest)
    dealing, dealt = milliseconds(collector.make_correction)
    first, messages = milliseconds(lambda: label.make_all_labels(codes))
    slowest, largest = 0.0, 0
    for own, message in zip(people[:-3], messages, strict=True):
        machine = vertical.VerticalProvider(own, manifest)
        machine.receive(message)
        spent, tables = milliseconds(lambda m=machine: m.make_tables(columns))  # type: ignore[misc]
        slowest, largest = max(slowest, spent), max(largest, len(tables.to_bytes()))
        first += milliseconds(lambda m=tables: label.receive(m))[0]  # type: ignore[misc]
    if dealt is not None:
        label.receive(dealt)
    second, shares = milliseconds(label.make_shares)
    adding, _ = milliseconds(lambda: (collector.receive(shares), collector.make_result()))
    sizes = [len(messages[0].to_bytes()) / 1e6, largest / 1e6]
    return [first + second, slowest, dealing + adding, *sizes]


def papers_label_provider(name: str) -> float:
    """The paper's encrypted class vectors, from a sample of rows."""
    import phe

    data = load(name)
    classes = len(data.schema.classes)
    codes = encode_classes(data.schema, data.y)[:SAMPLE]
    public, _ = phe.generate_paillier_keypair(n_length=1024)
    spent, _ = milliseconds(
        lambda: [public.raw_encrypt(int(code == c)) for code in codes for c in range(classes)]
    )
    return spent * len(data) / len(codes)


def proof_costs(bits: int) -> list[float]:
    """CPU milliseconds to make a key, to prove it, and to check the proof; bytes of the card."""
    from discreet.federated.crypto import key_proof

    making, key = milliseconds(lambda: generate_key(bits))
    own = Identity.generate("receiver")
    proving, card = milliseconds(lambda: own.make_card_with_key(key), 5)

    def check() -> None:
        key_proof._find_flaw.cache_clear()
        card.verify_modulus(key.public.n)

    checking, _ = milliseconds(check, 5)
    return [making, proving, checking, len(card.to_json())]


def print_proofs() -> None:
    """What it costs to prove a Paillier key, and to check the proof."""
    print("| bits of N | key made | proof made | proof checked | bytes of the card |")
    print("|---|---:|---:|---:|---:|")
    for bits in (2048, 3072, 4096, 8192):
        making, proving, checking, length = proof_costs(bits)
        print(f"| {bits} | {making:.0f} | {proving:.1f} | {checking:.1f} | {length:.0f} |")


def processes(name: str = "splice", providers: int = 16, paillier: bool = True) -> list[Any]:
    """Wall seconds of a round between processes, and what the processes took."""
    data = load(name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "schema.json").write_text(data.schema.to_json())
        names = [f"p{i}" for i in range(providers)]
        key, public, secret = None, (), ()
        if paillier:
            key = generate_key()
            (folder / "key.json").write_text(key.to_json())
            (folder / "key.public.json").write_text(key.public.to_json())
            public, secret = ("--key", "key.public.json"), ("--key", "key.json")
        write_parties(folder, *names, "collector", "receiver", key=key)
        for one, own in zip(names, np.array_split(np.arange(len(data)), providers), strict=True):
            data.frame.iloc[own].to_csv(folder / f"{one}.csv", index=False)
        parties = Processes(folder)
        cards = [word for one in names for word in ("--provider", f"{one}.card.json")]
        parties.agree(*cards, *public)
        parties.collect()
        parties.party("receiver", "receive", "-o", "model.json", *secret)
        for one in names:
            parties.party(one, "provide", f"{one}.csv")
        found = parties.wait()
    cpu = sum(one.cpu for one in found.values())
    return [max(one.wall for one in found.values()), cpu, found["collector"].memory]


def threads(name: str = "splice", providers: int = 64) -> tuple[float, float]:
    """Wall and CPU seconds of a round with masks over HTTP, every party a thread here."""
    import threading

    import uvicorn

    from discreet.federated.service.collector_client import RoundClient
    from discreet.federated.service.provider import ProviderInput, run_provider
    from discreet.federated.service.receiver import run_receiver
    from discreet.federated.service.server import RoundSession, create_application

    data = load(name)
    schema, parts = data.schema, np.array_split(np.arange(len(data)), providers)
    manifest, people = agreement(schema, providers, None)
    manifest = replace(manifest, signatures={})
    with tempfile.TemporaryDirectory() as place:
        running = RoundSession(people[-2], manifest, Path(place) / "collector")
        config = uvicorn.Config(create_application(running), port=0, log_level="error")
        server, wrong = uvicorn.Server(config), []
        serving = threading.Thread(target=server.run, daemon=True)
        serving.start()
        while not server.started:
            time.sleep(0.01)
        url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

        def act(own: Any, work: Callable[[Any], Any]) -> None:
            try:
                with RoundClient(url, own, manifest) as line:
                    work(line)
            except Exception as error:
                wrong.append(error)

        def providing(number: int) -> Callable[[Any], Any]:
            frame = data.frame.iloc[parts[number]]
            return lambda line: run_provider(line, ProviderInput(frame), Path(place) / str(number))

        def receiving(line: Any) -> Any:
            return run_receiver(line, Path(place) / "receiver", lambda release: None)

        works = [providing(number) for number in range(providers)]
        pairs = [*zip(people[:-2], works, strict=True), (people[-1], receiving)]
        begun, before = time.monotonic(), time.process_time()
        started = [threading.Thread(target=act, args=pair) for pair in pairs]
        for one in started:
            one.start()
        for one in started:
            one.join()
        wall, cpu = time.monotonic() - begun, time.process_time() - before
        server.should_exit = True
        serving.join()
    if wrong:
        raise wrong[0]
    return wall, cpu


def long_vertical(rows: int, cells: int = 16, providers: int = 2) -> None:
    """Print what each party of a long vertical round takes, every party a process."""
    with tempfile.TemporaryDirectory() as place:
        folder, names = Path(place), [f"p{i}" for i in range(providers)]
        # in a process of its own: what this one has held would count for its children
        table = (place, str(rows), str(cells), str(providers))
        subprocess.run([sys.executable, Path(__file__).with_name("_rounds.py"), *table], check=True)
        write_parties(folder, *names, "label", "collector", "receiver")
        parties = Processes(folder)
        words = [word for one in names for word in ("--provider", f"{one}.card.json")]
        words += [w for i in range(providers) for w in ("--columns", f"p{i}=x{i}")]
        parties.agree(*words, "--label", "label.card.json", "--rows", rows)
        parties.collect()
        for one in names:
            parties.party(one, "provide", f"{one}.csv", "--id", "id")
        parties.party("label", "label", "label.csv", "--id", "id")
        parties.party("receiver", "receive", "-o", "model.json")
        found, sent = parties.wait(), parties.sent()
    for name, spent in sorted(found.items()):
        carried = " | ".join(
            f"{sent.get((name, kind), 0) / 1e6:.1f}" for kind in ("labels", "tables")
        )
        print(
            f"| {rows:,} | {name} | {spent.wall:.1f} | {spent.cpu:.1f} | {spent.memory:.0f} | "
            f"{carried} |"
        )


def scale() -> bool:
    """Print the long rounds that are asked for; whether there were any."""
    asked = {word: sys.argv[sys.argv.index(word) + 1 :] for word in sys.argv if word in LONG}
    if "--vertical" in asked:
        print("| rows | party | wall s | CPU s | MB of memory | MB of labels sent | of tables |")
        print("|---|---|---|---|---|---|---|")
        for rows in asked["--vertical"][0].split(","):
            long_vertical(int(float(rows)))
    if "--horizontal" in asked:
        count = int(asked["--horizontal"][0])
        wall, cpu = threads(providers=count)
        print(
            f"\nsplice, {count} providers as threads, masks: {wall:.1f} s wall, {cpu:.1f} s of CPU",
            flush=True,
        )
        wall, cpu, memory = processes(providers=count, paillier=False)
        print(
            f"splice, {count} providers as processes, masks: {wall:.1f} s wall from the first "
            f"process's start, {cpu:.1f} s of CPU in all, collector {memory:.0f} MB"
        )
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return bool(asked)


def main() -> None:
    """Print all tables."""
    os.environ.setdefault("DISCREET_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
    if scale():
        return
    if "--proof" in sys.argv:
        print_proofs()
        return
    key = generate_key()
    print(
        "| table | counters | providers | way | set-up | provider | collector | opening | bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in TABLES:
        hiding, opening = papers_horizontal(name)
        print(f"| {name} | | any | paper, 1024 | | {hiding:.1f} | | {opening:.1f} | |")
        for count in PROVIDERS:
            for way, own in (("masks", None), ("paillier, 3072", key)):
                costs = horizontal_costs(name, count, own)
                setup, work, adding, total, length, counters = costs
                ratio = f" ({hiding / work:.0f}x)"
                of_total = f" ({opening / max(total, 1e-3):.0f}x)"
                print(
                    f"| {name} | {counters:.0f} | {count} | {way} | {setup:.1f} | "
                    f"{work:.2f}{ratio} | {adding:.1f} | {total:.2f}{of_total} | {length:.0f} |"
                )
    print(
        "\n| table, vertical | way | label provider | a provider of 4 | collector | MB of labels "
        "| of tables |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in TABLES:
        theirs = papers_label_provider(name)
        print(f"| {name} | paper, 1024 | {theirs:.0f} | | | | |")
        for way, own in (("masks", None), ("paillier, 3072", key)):
            ours, slowest, adding, labels, tables = vertical_costs(name, own)
            print(
                f"| {name} | {way} | {ours:.1f} ({theirs / ours:.1f}x) | {slowest:.1f} | "
                f"{adding:.1f} | {labels:.2f} | {tables:.2f} |"
            )
    if "--processes" in sys.argv:
        print(f"\nsplice, 16 provider processes: {processes()[0]:.1f} s wall")


if __name__ == "__main__":
    main()
