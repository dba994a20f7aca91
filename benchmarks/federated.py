"""What a federated round costs each party, beside the paper's own way in the same run.

``.venv/bin/python benchmarks/federated.py`` prints tables ready for RESULTS.md: CPU milliseconds on
one thread and bytes on the wire, on the paper's four tables. Ours has 3072 bits and packed slots,
or masks; the paper's way is straight ``phe`` at 1024 bits, one ciphertext a counter, two systems.
Set-up is what is done before there is any data: key agreement, tables of powers, noise.
``--processes`` also runs 16 provider processes, a collector and a receiver on loopback.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from discreet.datasets import load
from discreet.encoding import class_codes, columns_of
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import wanted_of
from discreet.federated.crypto.paillier import PrivateKey, generate
from discreet.federated.horizontal.arithmetic import opened

TABLES = ("balance_scale", "breast_cancer_wisconsin", "spect", "splice")
PROVIDERS = (2, 4, 16)
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
    columns, codes = columns_of(data.X, data.schema.names), class_codes(data.schema, data.y)
    arrays = {key: np.asarray(column) for key, column in columns.items()}
    rows = np.array_split(np.arange(len(codes)), providers)
    return data.schema, [({k: c[own] for k, c in arrays.items()}, codes[own]) for own in rows]


def holding(own: Identity, key: PrivateKey | None) -> Card:
    """The card of whoever holds the Paillier key, if there is one."""
    return own.card if key is None else own.card_with(key.public.fingerprint)


def agreement(schema: Any, providers: int, key: PrivateKey | None) -> tuple[Manifest, list[Any]]:
    """A signed manifest and the identities of its parties."""
    names = [*(f"p{i}" for i in range(providers)), "collector", "receiver"]
    people = [Identity.generate(name) for name in names]
    manifest = Manifest(
        schema,
        wanted_of(schema),
        1.0,
        tuple(one.card for one in people[:-2]),
        people[-2].card,
        holding(people[-1], key),
        aggregation="masks" if key is None else "paillier",
        paillier=None if key is None else key.public,
        margin=1,
    )
    return manifest.signed_by(*people), people


def horizontal_costs(name: str, providers: int, key: PrivateKey | None) -> list[float]:
    """Set-up, provider, collector, receiver in ms; bytes of a submission; counters."""
    schema, parts = parts_of(name, providers)
    manifest, people = agreement(schema, providers, key)
    manifest.require_agreed()
    exact = [manifest.layout.vector(*part) for part in parts]
    setup, _ = milliseconds(lambda: horizontal.Provider(people[0], manifest), 3)
    machines = [horizontal.Provider(one, manifest) for one in people[:-2]]
    work, said = [], []
    for machine, own in zip(machines, exact, strict=True):
        spent, message = milliseconds(lambda m=machine, o=own: m.submit(o))  # type: ignore[misc]
        work.append(spent)
        said.append(message.to_json())
    collector = horizontal.Collector(people[-2], manifest)
    taking, _ = milliseconds(lambda: [collector.receive(m) for m in said])
    adding, result = milliseconds(collector.result)
    receiver = horizontal.Receiver(people[-1], manifest, key)
    opening, _ = milliseconds(lambda: opened(people[-1], manifest, key, result.payload), runs=3)
    receiver.receive(result)
    return [setup, min(work), taking + adding, opening, len(said[0]), manifest.layout.size]


def papers_horizontal(name: str, bits: int = 1024) -> tuple[float, float]:
    """A provider's encryption, and all that opens the paper's model, straight with phe.

    The collector decrypts every noised count and raises a ciphertext to its reciprocal; the
    receiver decrypts every power (algorithm 3 and the extraction).
    """
    import phe

    schema, parts = parts_of(name, 2)
    counts = agreement(schema, 2, None)[0].layout.vector(*parts[0])
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
    schema, codes = data.schema, class_codes(data.schema, data.y)
    columns = columns_of(data.X, schema.names)
    names = [*(f"p{i}" for i in range(providers)), "label", "collector", "receiver"]
    people = [Identity.generate(one) for one in names]
    manifest = Manifest(
        schema,
        wanted_of(schema),
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
    ).signed_by(*people)
    label = vertical.LabelProvider(people[-3], manifest, key)
    collector = vertical.Collector(people[-2], manifest)
    dealing, dealt = milliseconds(collector.correction)
    first, messages = milliseconds(lambda: label.labels(codes))
    slowest, largest = 0.0, 0
    for own, message in zip(people[:-3], messages, strict=True):
        machine = vertical.Provider(own, manifest)
        machine.receive(message)
        spent, tables = milliseconds(lambda m=machine: m.tables(columns))  # type: ignore[misc]
        slowest, largest = max(slowest, spent), max(largest, len(tables.to_json()))
        first += milliseconds(lambda m=tables: label.receive(m))[0]  # type: ignore[misc]
    if dealt is not None:
        label.receive(dealt)
    second, shares = milliseconds(label.shares)
    adding, _ = milliseconds(lambda: (collector.receive(shares), collector.result()))
    sizes = [len(messages[0].to_json()) / 1e6, largest / 1e6]
    return [first + second, slowest, dealing + adding, *sizes]


def papers_label_provider(name: str) -> float:
    """The paper's encrypted class vectors, from a sample of rows."""
    import phe

    data = load(name)
    classes = len(data.schema.classes)
    codes = class_codes(data.schema, data.y)[:SAMPLE]
    public, _ = phe.generate_paillier_keypair(n_length=1024)
    spent, _ = milliseconds(
        lambda: [public.raw_encrypt(int(code == c)) for code in codes for c in range(classes)]
    )
    return spent * len(data) / len(codes)


def processes(name: str = "splice", providers: int = 16, deadline: int = 300) -> float:
    """Wall seconds of a round between processes, from when everyone has signed."""
    import httpx

    data = load(name)
    with tempfile.TemporaryDirectory() as place, socket.socket() as probe:
        folder = Path(place)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        (folder / "schema.json").write_text(data.schema.to_json())
        rows = np.array_split(np.arange(len(data)), providers)
        names = [f"p{i}" for i in range(providers)]
        key = generate()
        for one in (*names, "collector", "receiver"):
            own = Identity.generate(one)
            (folder / f"{one}.identity.json").write_text(own.to_json())
            (folder / f"{one}.card.json").write_text(holding(own, key).to_json())
        for one, own in zip(names, rows, strict=True):
            data.frame.iloc[own].to_csv(folder / f"{one}.csv", index=False)
        (folder / "key.json").write_text(key.to_json())
        (folder / "key.public.json").write_text(key.public.to_json())

        def command(*words: Any) -> list[str]:
            return [sys.executable, "-m", "discreet", "federated", *map(str, words)]

        cards = [word for one in names for word in ("--provider", f"{one}.card.json")]
        agree = ("--collector", "collector.card.json", "--receiver", "receiver.card.json")
        subprocess.run(
            command(
                *("manifest", "schema.json", *cards, *agree, "--epsilon", 1, "-o", "m.json"),
                *("--key", "key.public.json", "--deadline", deadline),
            ),
            cwd=folder,
            check=True,
            capture_output=True,
        )
        url, quiet = f"http://127.0.0.1:{port}", {"stderr": subprocess.DEVNULL}
        line = ("--collector", url, "--yes")

        def own(one: str) -> tuple[str, str]:
            return "--identity", f"{one}.identity.json"

        started = [
            command(
                "collect", "m.json", *own("collector"), "--state", "c", "--port", port, "--yes"
            ),
            command("receive", "m.json", *own("receiver"), *line, "--key", "key.json", "-o", "o"),
            *(
                command("provide", "m.json", f"{one}.csv", *own(one), *line, "--state", one)
                for one in names
            ),
        ]
        running = [subprocess.Popen(words, cwd=folder, **quiet) for words in started]  # type: ignore[call-overload]
        begun = None
        while running[1].poll() is None:
            if any(process.poll() for process in running):
                for process in running:
                    process.kill()
                raise RuntimeError("a process has failed")
            try:
                state = httpx.get(f"{url}/status", trust_env=False).json()["state"]
            except httpx.TransportError:
                state = "starting"
            if begun is None and state in ("collecting", "done"):
                begun = time.monotonic()
            time.sleep(0.05)
        wall = time.monotonic() - (begun or time.monotonic())
        codes = [process.wait(deadline) for process in running]
        assert not any(codes), codes
        return wall


def main() -> None:
    """Print all tables."""
    os.environ.setdefault("DISCREET_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
    key = generate()
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
        print(f"\nsplice, 16 provider processes: {processes():.1f} s wall")


if __name__ == "__main__":
    main()
