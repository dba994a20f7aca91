"""Rounds of real processes that can be killed at a named point, for the tests.

A process is forked from a server that has everything imported, and runs the real command; what
happens in it is in ``crash_points``.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import shutil
import signal
import time

import numpy as np
from crash_points import LEAVE, act
from party_processes import write_rows
from round_fixtures import SCHEMA, table

from discreet import Statistics
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import make_feature_requests
from discreet.federated.rehearsal import find_free_port

PATIENCE = 240
FORK = multiprocessing.get_context("forkserver")
FORK.set_forkserver_preload(
    [
        *("duckdb", "fastapi", "httpx", "ibis.backends.duckdb", "pyarrow.compute", "uvicorn"),
        *("uvicorn.protocols.http.h11_impl", "uvicorn.loops.auto", "uvicorn.lifespan.on"),
        *("discreet.cli", "discreet.cli.federated.collect", "discreet.cli.federated.parties"),
        *("discreet.federated.service.provider", "discreet.federated.service.receiver"),
        *("discreet.federated.service.server", "discreet.federated.crypto.paillier"),
        *("discreet.federated.vertical.with_masks", "discreet.federated.vertical.with_paillier"),
        *("discreet.estimation", "discreet.model", "discreet.tables", "discreet.privacy.ledger"),
    ]
)


class RoundProcesses:
    """One round of processes over a folder of its own.

    epsilon is so large that the noise is nothing but zeros (bar a chance of exp(-300)), and yet it
    is charged.
    """

    def __init__(self, folder, partition="horizontal", mode="counts", key=None, rows=40):
        self.folder, self.partition, self.key = folder, partition, key
        folder.mkdir(parents=True)
        self.holders = ["hospital-a", "hospital-b"]
        self.names = [*self.holders, "collector", "receiver"]
        label = None
        if partition == "vertical":
            self.names.insert(2, "labels")
        people = {name: Identity.generate(name) for name in self.names}
        cards = {name: own.card for name, own in people.items()}
        if key is not None:
            holder = "receiver" if mode == "counts" else "collector"
            self.keyed = "labels" if partition == "vertical" else holder
            cards[self.keyed] = people[self.keyed].make_card_with_key(key)
            (folder / "key.json").write_text(key.to_json())
        label = cards.get("labels")
        for name, own in people.items():
            (folder / f"{name}.identity.json").write_text(own.to_json())
        columns = {"hospital-a": ("colour", "age"), "hospital-b": ("size",)}
        manifest = Manifest(
            SCHEMA,
            make_feature_requests(SCHEMA, 4),
            2000.0,
            tuple(cards[name] for name in self.holders),
            cards["collector"],
            cards["receiver"],
            label=label,
            columns=columns if label else {},
            rows=rows if label else None,
            partition=partition,
            mode=mode,
            aggregation="masks" if key is None else "paillier",
            paillier=None if key is None else key.public,
        )
        self.mode = mode
        (folder / "manifest.json").write_text(manifest.to_json())
        self.exact = self._tables(rows, manifest)
        self.port = self.through = find_free_port()
        self.running, self.fatal, self.target = {}, {}, act

    def _tables(self, rows, manifest):
        ids = [f"p{i:06d}" for i in range(rows)]
        if self.partition == "vertical":
            columns, codes = table(rows, 4)
            for name, held in (*manifest.columns.items(), ("labels", ("class",))):
                write_rows(self.folder / f"{name}.csv", columns, codes, list(held), ids)
            return manifest.layout.count_rows(columns, codes)
        parts = [table(rows, seed) for seed in range(2)]
        for name, part in zip(self.holders, parts, strict=True):
            write_rows(self.folder / f"{name}.csv", *part, [*SCHEMA.names, "class"])
        return sum(manifest.layout.count_rows(*part) for part in parts)

    def start(self, name, fatal="", largest=0, output="model.json"):
        words = ["--identity", f"{name}.identity.json", "--state", f"kept-{name}", "--yes"]
        if self.key is not None and name == self.keyed:
            words += ["--key", "key.json"]
        step = {"labels": "label", "collector": "collect", "receiver": "receive"}.get(name)
        if name == "collector":
            words += ["--port", str(self.port)]
        else:
            words += ["--collector", f"http://127.0.0.1:{self.through}"]
        if name == "receiver":
            words += ["-o", output]
            words += ["--statistics", "statistics.json"] if self.mode == "counts" else []
        elif name != "collector":
            words += ["--budget-file", f"{name}.budget.json", "--budget-total", "5000"]
            words += ["--id", "id"] if self.partition == "vertical" else []
            words += ["--unprotected"]  # as good as exact, and yet charged
        data = [f"{name}.csv"] if name in (*self.holders, "labels") else []
        log = str(self.folder / f"{name}.points")
        words = [step or "provide", "manifest.json", *data, *words]
        process = FORK.Process(
            target=self.target, args=(words, str(self.folder), log, fatal, largest)
        )
        process.start()
        self.running[name] = process
        return process

    def everyone(self, fatal=None):
        """Start everyone; whom a point is named for is killed there."""
        self.fatal = fatal or {}
        for name in self.names:
            self.start(name, self.fatal.get(name, ""))

    def kept(self, name, pattern):
        return list((self.folder / f"kept-{name}").glob(f"*/{pattern}"))

    def said(self, name):
        path = self.folder / f"{name}.points.err"
        return path.read_text() if path.exists() else ""

    def points(self, name):
        return list(dict.fromkeys((self.folder / f"{name}.points").read_text().splitlines()))

    def until(self, what):
        over = time.monotonic() + PATIENCE
        while not (done := what()) and time.monotonic() < over:
            time.sleep(0.02)
        codes = {name: one.exitcode for name, one in self.running.items()}
        assert done, (codes, self.fatal, {name: self.said(name)[-300:] for name in self.names})

    def wait(self, name):
        """The exit code of a process; minus nine where it was killed."""
        process = self.running[name]
        process.join(PATIENCE)
        assert process.exitcode is not None, (name, self.said(name))
        return process.exitcode

    def finish(self):
        """Everyone comes to an end, the right one; whoever was killed is started again."""
        killed = {name for name in self.names if self.fatal.get(name)}
        again = dict.fromkeys(self.names, 0)

        def ended():
            # one look at all of them: who ends after it is judged by the next
            codes = {name: one.exitcode for name, one in self.running.items()}
            for name, code in codes.items():
                told = self.said(name).count("start again once the collector is back")
                if code == -signal.SIGKILL and name in killed:
                    killed.remove(name)
                elif code == 2 and told > again[name]:
                    again[name] = told  # one does as one is told
                    if codes["collector"] == 0:  # it had heard of the end, and died with it
                        shutil.rmtree(self.folder / f"kept-{name}")
                        continue
                else:
                    continue
                self.start(name)
                codes[name] = None
            ended = [name for name, code in codes.items() if code is not None]
            if {*ended, "collector"} >= codes.keys():
                # a restarted collector does not know who has heard that the round is over
                (self.folder / LEAVE).touch()
            return len(ended) == len(codes)

        self.until(ended)
        for name in self.names:
            code, said = self.wait(name), self.said(name)
            over = ("has finished this round", "the collector is gone", "nothing is left to do")
            assert code == 0 or any(line in said for line in over), (name, code, said)

    def check(self):
        """The right result, one charge for everyone who holds data, one version of each message."""
        if self.mode == "counts":
            found = Statistics.from_json((self.folder / "statistics.json").read_text())
            vector = [found.tables[name].counts.reshape(-1) for name in SCHEMA.names]
            assert np.array_equal(np.concatenate(vector), self.exact)
        assert (self.folder / "model.json").exists()
        for name in {*self.holders, *({"labels"} & set(self.names))}:
            text = (self.folder / f"{name}.budget.json").read_text()
            assert text.count('"federated round 1, manifest ') == 1, text
        for name in self.names:
            for what in ("session", "*.body", "*.part", "*.draft"):
                assert not self.kept(name, what), name
        versions = {}
        for line in (self.folder / "sent.log").read_text().splitlines():
            *what, digest = line.split()
            versions.setdefault(tuple(what), set()).add(digest)
        assert all(len(one) == 1 for one in versions.values()), versions

    def stop(self):
        for process in self.running.values():
            if process.is_alive():
                process.kill()
            process.join(PATIENCE)


@contextlib.contextmanager
def run_round(folder, **how):
    made = RoundProcesses(folder, **how)
    try:
        yield made
    finally:
        made.stop()
