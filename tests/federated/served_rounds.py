"""Rounds over HTTP in this process: a collector's server in a thread, its parties in others."""

from __future__ import annotations

import ipaddress
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

pytest.importorskip("httpx")
pytest.importorskip("fastapi")

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from round_fixtures import PARTIES, table

from discreet.federated.service.collector_client import NullListener, RoundClient
from discreet.federated.service.receiver import run_receiver
from discreet.federated.service.server import RoundSession, create_application


def unsigned(manifest):
    return replace(manifest, signatures={})


def signed_round(manifest, folder, key=None):
    running = RoundSession(PARTIES["collector"], unsigned(manifest), folder, key)
    for name in manifest.parties:
        running.accept_signature(name, manifest.signatures[name])
    return running


def frame(seed, rows=50):
    columns, codes = table(rows, seed)
    return {**columns, "class": np.array(["no", "yes"], dtype=object)[codes]}


def soon(seconds):
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


class Served:
    """A real server on loopback, in a thread."""

    def __init__(self, running, **how):
        self.scheme = "https" if "ssl_certfile" in how else "http"
        config = uvicorn.Config(create_application(running), port=0, log_level="error", **how)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.address = self.server.servers[0].sockets[0].getsockname()[:2]
        return f"{self.scheme}://{self.address[0]}:{self.address[1]}"

    def __exit__(self, *error):
        self.server.should_exit = True
        self.thread.join(10)


def receiver_in(folder):
    return "receiver", lambda c: run_receiver(c, folder / "receiver", lambda release: None)


def run_all(url, manifest, parts, tmp_path):
    """All parties in threads of their own; gives the release."""
    found, errors = {}, []

    def act(name, work):
        try:
            with RoundClient(url, PARTIES[name], manifest) as connection:
                found[name] = work(connection)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=act, args=part, daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 900  # only a round that hangs takes so long
    for thread in threads:
        while thread.is_alive() and not errors and time.monotonic() < until:
            thread.join(0.1)  # the others would wait for one that failed
    assert errors == []
    return found["receiver"]


def certificate(folder, name):
    """A self-signed certificate for 127.0.0.1 and its key, as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / f"{name}.key").write_bytes(pem)
    return str(folder / f"{name}.pem"), str(folder / f"{name}.key")


class Listening(NullListener):
    def __init__(self):
        self.heard = []

    def say(self, line):
        self.heard.append(line)
