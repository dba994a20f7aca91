"""Full disks, slow and broken networks, two processes of one party, crowds of idle connections."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
pytest.importorskip("resource")

from crash_harness import run_round
from party_processes import PATIENCE

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.messages import CHUNK_BYTES, SIGNATURE_HEADER, encode_request
from discreet.federated.rehearsal import find_free_port
from discreet.federated.service.transport import SignedRequests

pytestmark = pytest.mark.slow

ROWS = 40_000
"""Rows of a vertical round whose tables take a few chunks: 1.4 MB for hospital-a."""

DEEP = 300_000
"""Bytes after which what one side sends at a stretch is surely a body, no header or signature."""


class Proxy:
    """A network between the parties and the collector: slow, or cut after so many bytes.

    Parameters
    ----------
    port : int
        The collector's.
    cut : int
        Bytes after which a connection is broken, in whichever direction.
    rate : float
        Bytes a second of each connection.
    flip : str
        What arrives with a byte changed: the first long body "to" the collector, or "from" it.
    """

    def __init__(self, port, cut=0, rate=0.0, flip=""):
        self.target, self.cut, self.rate, self.flip = port, cut, rate, flip
        self.carried = self.broken = 0
        self.lock = threading.Lock()
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.listening.close()

    def _listen(self):
        while True:
            try:
                near, _ = self.listening.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            left = [self.cut]
            run = {"to": 0, "from": 0}  # bytes since the other side last spoke
            for way, pair in (("to", (near, far)), ("from", (far, near))):
                said = (way, run)
                threading.Thread(target=self._carry, args=(*pair, left, said), daemon=True).start()

    def _carry(self, source, target, left, said):
        way, run = said
        try:
            while data := source.recv(8192):
                if self.rate:
                    time.sleep(len(data) / self.rate)
                with self.lock:
                    self.carried += len(data)
                    run.update({key: run[key] + len(data) if key == way else 0 for key in run})
                    left[0] -= len(data)
                    if self.cut and left[0] < 0:
                        self.broken += 1
                        break
                    if self.flip == way and run[way] > DEEP:
                        data, self.flip = bytes([data[0] ^ 1]) + data[1:], ""
                target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the other thread


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def sizes(one):
    """Bytes of all messages that were carried, each sent once and fetched once."""
    import json

    headers = [json.loads(path.read_text()) for path in one.kept("collector", "*.message")]
    return sum(header["size"] * (1 + (header["recipient"] != "collector")) for header in headers)


def test_over_a_line_that_keeps_breaking_little_is_sent_twice(tmp_path):
    """Every connection breaks after 600 kB; the tables alone are longer than two of those."""
    with (
        run_round(tmp_path / "round", partition="vertical", rows=ROWS) as one,
        Proxy(one.port, cut=600_000) as proxy,
    ):
        one.through = proxy.port
        one.everyone()
        one.finish()
        one.check()
        assert proxy.broken >= 4
        assert "Traceback" not in one.said("collector")
        assert proxy.carried < 2 * sizes(one) + 500_000  # requests for news, and chunks cut off


def test_over_a_slow_line_one_hears_how_far_it_is(tmp_path):
    with (
        run_round(tmp_path / "round", partition="vertical", rows=ROWS) as one,
        Proxy(one.port, rate=250_000) as proxy,
    ):
        one.through = proxy.port
        one.everyone()
        one.finish()
        one.check()
        assert "sending tables for labels: " in one.said("hospital-a")
        assert "fetching tables of hospital-a: " in one.said("labels")


@pytest.mark.parametrize("way", ["to", "from"])
def test_a_byte_that_changes_on_its_way_is_noticed_and_the_message_sent_again(way, tmp_path):
    """Without TLS, which would notice earlier: in a body its digest does. (A byte of a header or a
    signature is refused at once, and named; so the byte is one deep inside a large body.)
    """
    with (
        run_round(tmp_path / "round", partition="vertical", rows=ROWS) as one,
        Proxy(one.port, flip=way) as proxy,
    ):
        one.through = proxy.port
        one.everyone()
        one.finish()
        one.check()
        assert not proxy.flip


@pytest.mark.parametrize("name", ["hospital-a", "labels"])
def test_a_party_whose_disk_is_full_says_so_and_goes_on_later(name, tmp_path):
    """No file may be longer than 40 kB, as on a full disk; a sentence names file and cause."""
    with run_round(tmp_path / "round", partition="vertical", rows=20_000) as one:
        for other in one.names:
            one.start(other, largest=40_000 if other == name else 0)
        assert one.wait(name) == 2
        assert "cannot be written: File too large" in one.said(name)
        assert "Traceback" not in one.said(name)
        one.start(name)
        one.finish()
        one.check()


def test_a_receiver_that_cannot_write_the_model_opens_the_round_again(tmp_path):
    with run_round(tmp_path / "round") as one:
        for name in one.names:
            one.start(name, output="/dev/full")
        assert one.wait("receiver") == 2
        assert "/dev/full: cannot be written: No space left on device" in one.said("receiver")
        one.start("receiver")
        one.finish()
        one.check()


def test_a_collector_whose_disk_is_full_keeps_the_others_waiting_until_there_is_room(tmp_path):
    with run_round(tmp_path / "round", partition="vertical", rows=20_000) as one:
        one.start("collector", largest=40_000)
        for name in one.names:
            if name != "collector":
                one.start(name)
        one.until(lambda: "the collector cannot keep this" in one.said("labels"))
        assert "File too large" in one.said("labels")
        os.kill(one.running["collector"].pid, signal.SIGKILL)
        one.wait("collector")
        one.start("collector")
        one.finish()
        one.check()


@pytest.mark.parametrize("name", ["hospital-a", "labels", "collector", "receiver"])
def test_a_second_process_of_one_party_is_refused_while_the_first_goes_on(name, tmp_path):
    with run_round(tmp_path / "round", partition="vertical") as one:
        first = one.start(name)
        one.until(lambda: one.kept(name, "lock"))
        if name == "collector":
            one.until(lambda: "waiting for" in one.said(name))
        port, one.port = one.port, find_free_port()
        one.start(name)
        assert one.wait(name) == 2
        assert "another process of this party is in the same round" in one.said(name)
        one.port, one.running[name] = port, first
        for other in one.names:
            if other != name:
                one.start(other)
        one.finish()
        one.check()


def announced(own, manifest):
    """A request of a party that announces a body; one of a stranger would be refused at once."""
    target, moment = f"/signatures/{own.name}", str(int(time.time()))
    code = own.sign(encode_request(manifest, "POST", target, moment)).hex()
    head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n"
    return f"{head}{SIGNATURE_HEADER}: {own.name} {moment} {code}\r\n\r\n".encode()


@pytest.mark.parametrize("half", [False, True], ids=["nothing", "half a request"])
def test_thousands_of_idle_connections_keep_nobody_out(half, tmp_path):
    """The collector may open 256 files; 400 connections that say nothing are opened to it.

    Or that announce a body and do not send it. Their time is 30 seconds, then they are closed or
    told so. That others are answered while most of the idle ones are still open shows that they
    did not have to wait for it.
    """
    with run_round(tmp_path / "round") as made:
        folder, port = made.folder, made.port
        manifest = Manifest.from_json((folder / "manifest.json").read_text())
        own = Identity.from_json((folder / "receiver.identity.json").read_text())
        words = ["collect", "manifest.json", "--identity", "collector.identity.json", "--yes"]
        words += ["--state", "kept-collector", "--port", str(port)]
        limited = "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (256, 256)); "
        run = f"from discreet.cli import main; main({['federated', *words]!r})"
        command = [sys.executable, "-c", limited + run]
        collector = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
        idle = []
        try:
            signed = SignedRequests(own, manifest)
            said = announced(own, manifest) if half else b""
            url = f"http://127.0.0.1:{port}"
            with httpx.Client(base_url=url, auth=signed, trust_env=False, timeout=60) as http:

                def status():
                    try:
                        return http.get("/status").status_code == 200
                    except httpx.TransportError:
                        return False

                made.until(status)
            for number in range(400):
                idle.append(socket.create_connection(("127.0.0.1", port)))
                with contextlib.suppress(OSError):
                    idle[-1].sendall(said)
                time.sleep(0.1 * (number % 50 == 49))  # else the system drops some
            with httpx.Client(base_url=url, auth=signed, trust_env=False, timeout=60) as http:
                made.until(status)
            gone = told = 0
            for one in idle:
                one.setblocking(False)
                try:
                    data = one.recv(1)
                    gone, told = gone + (not data), told + bool(data)
                except BlockingIOError:
                    pass
                except OSError:
                    gone += 1
            assert 400 - 256 <= gone <= 350  # some had to go, most have not been waited for
            assert told < 50
        finally:
            for one in idle:
                one.close()
            collector.kill()
            collector.wait(PATIENCE)


def test_a_body_of_a_stranger_or_before_agreement_is_not_taken_in(tmp_path):
    """The answer comes after the head of the request: of 700 announced megabytes none is sent."""
    with run_round(tmp_path / "round") as one:
        one.start("collector")
        one.until(lambda: listens(one.port))
        manifest = Manifest.from_json((one.folder / "manifest.json").read_text())
        own = Identity.from_json((one.folder / "hospital-a.identity.json").read_text())
        target = "/messages?offset=0"
        request = httpx.Request("POST", f"http://x{target}")
        next(SignedRequests(own, manifest).auth_flow(request))
        known = "".join(f"{k}: {v}\r\n" for k, v in request.headers.items() if "discreet" in k)
        for headers, reason in (("", "wrong-signature"), (known, "not-agreed")):
            head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {700 * CHUNK_BYTES}\r\n"
            with socket.create_connection(("127.0.0.1", one.port), PATIENCE) as line:
                line.sendall(f"{head}{headers}\r\n".encode())
                said = b""
                while b"}" not in said and (data := line.recv(4096)):
                    said += data
            assert reason.encode() in said, said
