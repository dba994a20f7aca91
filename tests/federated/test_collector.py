"""The collector's server: refusals with reasons, nothing lost, nothing answered by accident."""

from __future__ import annotations

import math
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("httpx")
pytest.importorskip("fastapi")

import httpx
import uvicorn
from click.testing import CliRunner
from round_fixtures import (
    NAMES,
    PARTIES,
    counted,
    horizontal_manifest,
    table,
    vector_of,
    vertical_manifest,
)
from served_rounds import (
    Served,
    certificate,
    frame,
    receiver_in,
    run_all,
    signed_round,
    soon,
    unsigned,
)

from discreet.cli.federated.collect import collect
from discreet.cli.federated.files import make_ledger_charge
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement import signed
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import compute_seconds_left
from discreet.federated.messages import MESSAGE_HEADER, Message
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.collector_client import RoundClient
from discreet.federated.service.provider import (
    ProviderInput,
    load_aligned_columns,
    run_label_provider,
    run_provider,
)
from discreet.federated.service.server import RoundSession
from discreet.federated.service.state_folder import StateFolder
from discreet.federated.service.transport import SignedRequests
from discreet.hosting.serving import RequestLimits, make_timed_protocol
from discreet.privacy.ledger import Ledger


@pytest.mark.slow
def test_every_refusal_is_a_reason_and_a_sentence(tmp_path):
    manifest = horizontal_manifest(epsilon=math.inf)
    exact = counted(manifest)
    running = RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path)
    said = [
        horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        for name, own in zip(NAMES, exact, strict=True)
    ]
    signed = SignedRequests(PARTIES["receiver"], manifest)
    with Served(running) as url, httpx.Client(base_url=url, auth=signed, trust_env=False) as http:

        def refused(reason, method, path, **how):
            answer = http.request(method, path, **how)
            assert answer.json()["reason"] == reason, answer.text
            assert len(answer.json()["sentence"]) > 10
            assert answer.status_code >= 400

        def posted(message, body=None, sender=None, offset=0):
            """How a message is put to the collector, in one chunk."""
            auth = SignedRequests(PARTIES[sender or message.sender], manifest)
            header = {MESSAGE_HEADER: message.header.decode()}
            how = {"content": message.body.read() if body is None else body, "headers": header}
            return {**how, "auth": auth, "params": {"offset": offset}}

        refused("not-agreed", "POST", "/messages", **posted(said[0]))
        for path in ("/status", "/manifest", "/messages/receiver"):
            refused("wrong-signature", "GET", path, auth=None)
            stranger = SignedRequests(Identity.generate("receiver"), manifest)
            refused("wrong-signature", "GET", path, auth=stranger)
        refused("wrong-signature", "POST", "/messages", auth=None, content=b"x" * 100)
        refused("wrong-recipient", "GET", "/messages/hospital-a")
        refused("unknown-sender", "POST", "/signatures/mallory", content="00")
        refused("unknown-sender", "POST", "/signatures/hospital-a", content="00" * 64)
        refused("wrong-signature", "POST", "/signatures/receiver", content="00" * 64, auth=None)
        refused("wrong-signature", "POST", "/signatures/receiver", content="00" * 64)
        refused("oversized", "POST", "/signatures/receiver", content="0" * 1000)
        for name in manifest.parties:
            auth = SignedRequests(PARTIES[name], manifest)
            http.post(f"/signatures/{name}", content=manifest.signatures[name], auth=auth)
        assert http.get("/manifest").json()["signatures"] == dict(manifest.signatures)
        refused("truncated", "POST", "/messages", content=said[0].body.read())
        refused("oversized", "POST", "/messages", headers={MESSAGE_HEADER: "x" * 5000})
        refused("oversized", "POST", "/messages", **posted(said[0], b"x" * 100_000))
        refused("malformed", "POST", "/messages", **posted(said[0], offset="x"))
        refused("unknown-sender", "POST", "/messages", **posted(said[0], sender="hospital-b"))
        refused("damaged", "POST", "/messages", **posted(said[0], bytes(said[0].size)))
        other = Message.create(PARTIES["hospital-a"], manifest, "submission", "receiver", b"")
        refused("wrong-kind", "POST", "/messages", **posted(other))
        other = Message.create(PARTIES["hospital-a"], manifest, "submission", "hospital-b", b"")
        refused("wrong-recipient", "POST", "/messages", **posted(other))
        for path in ("/", "/admin", "/docs", "/openapi.json", "/messages/../manifest/x"):
            refused("unknown-path", "GET", path)
        for method in ("PUT", "DELETE", "PATCH", "GET"):
            refused("unknown-path", method, "/messages")
        half, size = said[0].body.read()[:50], said[0].size
        gap = http.post("/messages", **posted(said[0], said[0].body.read()[60:], offset=60)).json()
        assert gap == {"accepted": False, "have": 0}  # nothing is kept that leaves a gap
        came = http.post("/messages", **posted(said[0], half)).json()
        assert came == {"accepted": False, "have": 50}
        rest = posted(said[0], said[0].body.read()[50:], offset=50)
        assert http.post("/messages", **rest).json() == {"accepted": True, "have": size}
        refused("replayed", "POST", "/messages", **posted(said[0]))
        assert http.get("/messages/receiver", params={"kind": "total"}).status_code == 204
        assert http.get("/status").json()["missing"] == NAMES[1:]
        for message in said[1:]:
            http.post("/messages", **posted(message))
        assert http.get("/status").json()["state"] == "done"
        answer = http.get("/messages/receiver", params={"kind": "total"})
        total = Message.from_header(
            answer.headers[MESSAGE_HEADER].encode(), Payload(answer.content)
        )
    release = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest).receive(total)
    assert np.array_equal(vector_of(manifest, release.statistics), sum(exact))


@pytest.mark.slow
@pytest.mark.parametrize("stop", range(10))
def test_a_collector_killed_at_any_point_goes_on_from_its_folder(stop, tmp_path):
    """Five signatures, three submissions and the receiver's word; a new process after each."""
    manifest = horizontal_manifest(epsilon=math.inf)
    exact = counted(manifest)
    steps = [
        lambda r, n=name: r.accept_signature(n, manifest.signatures[n]) for name in manifest.parties
    ]
    for name, own in zip(NAMES, exact, strict=True):
        message = horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        steps.append(lambda r, m=message: r.store_message(m))
    done = Message.create(PARTIES["receiver"], manifest, "received", "collector", b"")
    early = signed_round(manifest, tmp_path / "early")
    with pytest.raises(ProtocolError, match="cannot have the result yet"):
        early.store_message(done)
    steps.append(lambda r: r.store_message(done))
    running = RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path)
    for place, step in enumerate(steps):
        if place == stop:
            (tmp_path / manifest.hash.hex()[:32] / ".half.part").write_bytes(b"half a file")
            running = RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path)
        step(running)
    assert running.is_result_confirmed
    again = RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path)
    assert again.is_result_confirmed
    release = horizontal.HorizontalReceiver(PARTIES["receiver"], manifest).receive(
        again.list_messages("receiver")[0]
    )
    assert np.array_equal(vector_of(manifest, release.statistics), sum(exact))


def test_a_vertical_collector_killed_at_any_point_goes_on_from_its_folder(tmp_path):
    """With masks, which make it deal; a new process before each signature and each message."""
    columns, codes = table(40, 3)
    manifest = vertical_manifest(epsilon=math.inf)
    label = vertical.LabelProvider(PARTIES["labels"], manifest)
    providers = {name: vertical.VerticalProvider(PARTIES[name], manifest) for name in NAMES[:2]}
    running = RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path)

    def again():
        return RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path)

    for name in manifest.parties:
        assert running.list_messages("labels") == []
        running.accept_signature(name, manifest.signatures[name])
        running = again()
    dealt = running.list_messages("labels")
    assert [one.kind for one in dealt] == ["correction"]
    for message in label.make_all_labels(codes):
        running.store_message(message)
        running = again()
    assert running.list_missing_parties() == ("hospital-a", "hospital-b")
    for name, provider in providers.items():
        provider.receive(running.list_messages(name)[0])
        running.store_message(provider.make_tables(columns))
        running = again()
    assert running.list_missing_parties() == ("labels",)
    found = running.list_messages("labels")
    assert found[-1] == dealt[0]
    for message in found:
        label.receive(message)
    running.store_message(label.make_shares())
    running = again()
    receiver = vertical.VerticalReceiver(PARTIES["receiver"], manifest)
    release = receiver.receive(running.list_messages("receiver")[0])
    exact = manifest.layout.count_rows(columns, codes)
    assert np.array_equal(vector_of(manifest, release.statistics), exact)


def test_the_collector_says_who_is_missing_and_for_how_long(tmp_path, monkeypatch):
    """By a clock that stands still until it is moved: a busy machine may take its time."""
    moment = datetime.now(UTC)
    monkeypatch.setattr(signed, "get_current_time", lambda: moment)
    manifest = horizontal_manifest(deadline=(moment + timedelta(seconds=40)).isoformat())
    running = signed_round(manifest, tmp_path)
    for name, own in zip(NAMES[::2], counted(manifest)[::2], strict=True):
        message = horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        running.store_message(message)
    assert running.format_status_line() == "waiting for 1 of 3: hospital-b, 40 s left"
    moment += timedelta(seconds=28)
    assert running.format_status_line() == "waiting for 1 of 3: hospital-b, 12 s left"


def test_after_the_deadline_nothing_is_taken(tmp_path):
    manifest = horizontal_manifest(deadline=soon(-1))
    running = RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path)
    with pytest.raises(ProtocolError, match="abandoned"):
        running.accept_signature("hospital-a", manifest.signatures["hospital-a"])
    with pytest.raises(ProtocolError, match="abandoned"):
        running.store_message(
            Message.create(PARTIES["hospital-a"], manifest, "submission", "collector", b"")
        )
    assert running.get_status()["state"] == "abandoned"
    assert compute_seconds_left(manifest) < 0


@pytest.mark.slow
def test_a_round_completes_while_slow_clients_hold_connections(tmp_path):
    manifest = unsigned(horizontal_manifest(epsilon=math.inf, deadline=soon(60)))
    running = RoundSession(PARTIES["collector"], manifest, tmp_path)
    with Served(running) as url:
        host, port = url.removeprefix("http://").split(":")
        loris = [socket.create_connection((host, int(port))) for _ in range(50)]
        for one in loris:
            one.sendall(b"POST /messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        parts = [
            (name, lambda c, s=seed: run_provider(c, ProviderInput(frame(s)), tmp_path / str(s)))
            for seed, name in enumerate(NAMES)
        ]
        release = run_all(url, manifest, [*parts, receiver_in(tmp_path)], tmp_path)
        for one in loris:
            one.close()
    exact = [manifest.layout.count_rows(*table(50, seed)) for seed in range(3)]
    assert np.array_equal(vector_of(manifest, release.statistics), sum(exact))
    assert running.is_result_confirmed


def closed(connections, seconds):
    """How many of them the server has closed, dribbling a byte into each meanwhile."""
    until, gone = time.monotonic() + seconds, set()
    while len(gone) < len(connections) and time.monotonic() < until:
        for one in set(connections) - gone:
            try:
                one.settimeout(0.001)
                if not one.recv(4096):
                    gone.add(one)
            except TimeoutError:
                pass
            except OSError:
                gone.add(one)
            try:
                one.sendall(b"x")
            except OSError:
                gone.add(one)
        time.sleep(0.05)
    return len(gone)


LORIS = [
    b"",  # never says anything
    b"GET /status HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    b"POST /messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{",
    b"GET /status HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",  # nobody reads it
]


@pytest.mark.slow
@pytest.mark.parametrize("patient", [True, False])
def test_clients_that_dribble_are_cut_off_while_a_round_completes(patient, tmp_path):
    """The known-bad twin: the web server as it is lets headers and unread bodies dribble on."""
    protocol = (
        make_timed_protocol("h11", RequestLimits(0.8, grace_seconds=0.2)) if patient else "h11"
    )
    how = {"http": protocol, "timeout_keep_alive": 1}
    manifest = unsigned(horizontal_manifest(epsilon=math.inf, deadline=soon(60)))
    running = RoundSession(PARTIES["collector"], manifest, tmp_path)
    with Served(running, **how) as url:
        host, port = url.removeprefix("http://").split(":")
        loris = [socket.create_connection((host, int(port))) for _ in range(80)]
        for i, one in enumerate(loris):
            one.sendall(LORIS[i % 4])
        if not patient:
            assert closed(loris, 2.0) == 0
        else:
            held = []
            dribbling = threading.Thread(target=lambda: held.append(closed(loris, 120)))
            dribbling.start()
            parts = [
                (
                    name,
                    lambda c, s=seed: run_provider(c, ProviderInput(frame(s)), tmp_path / str(s)),
                )
                for seed, name in enumerate(NAMES)
            ]
            release = run_all(url, manifest, [*parts, receiver_in(tmp_path)], tmp_path)
            dribbling.join(150)
            assert held == [80]
            exact = [manifest.layout.count_rows(*table(50, seed)) for seed in range(3)]
            assert np.array_equal(vector_of(manifest, release.statistics), sum(exact))
        for one in loris:
            one.close()


def test_the_command_serves_with_patience(tmp_path, monkeypatch):
    served = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server: served.append(server.config.http))
    (tmp_path / "m.json").write_text(unsigned(horizontal_manifest()).to_json())
    (tmp_path / "c.json").write_text(PARTIES["collector"].to_json())
    words = ["m.json", "--identity", "c.json", "--state", "kept", "--yes"]
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        found = CliRunner().invoke(collect, words)
    assert "waiting for 4 of 5" in str(found.exception)  # the server that stops at once
    assert [protocol.request_limits.base_seconds for protocol in served] == [30]


@pytest.mark.slow
def test_patience_is_for_one_request_and_not_for_a_connection(tmp_path):
    """Many quick requests over one connection take longer than one may."""
    manifest = unsigned(horizontal_manifest())
    running = RoundSession(PARTIES["collector"], manifest, tmp_path)
    signed = SignedRequests(PARTIES["hospital-a"], manifest)
    with (
        Served(running, http=make_timed_protocol("h11", RequestLimits(3.0))) as url,
        httpx.Client(base_url=url, auth=signed, trust_env=False) as http,
    ):
        for _ in range(16):
            assert http.get("/status").json()["state"] == "signing"
            assert http.post("/signatures/a", content="x" * 200).status_code == 409
            time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("aggregation", ["masks", "paillier"])
@pytest.mark.parametrize("mode", ["counts", "probabilities"])
def test_a_vertical_round_over_http(mode, aggregation, tmp_path, small_key):
    key = small_key if aggregation == "paillier" else None
    manifest = unsigned(vertical_manifest(key, epsilon=math.inf, mode=mode, deadline=soon(60)))
    whole = {**frame(3, 40), "id": np.arange(40)}
    running = RoundSession(PARTIES["collector"], manifest, tmp_path / "collector")
    with Served(running) as url:
        parts = [
            (
                name,
                lambda c, n=name: run_provider(c, ProviderInput(whole, "id"), tmp_path / n),
            )
            for name in NAMES[:2]
        ]
        parts.append(
            (
                "labels",
                lambda c: run_label_provider(c, ProviderInput(whole, "id"), tmp_path / "l", key),
            )
        )
        release = run_all(url, manifest, [*parts, receiver_in(tmp_path)], tmp_path)
    if mode == "counts":
        exact = manifest.layout.count_rows(*table(40, 3))
        assert np.array_equal(vector_of(manifest, release.statistics), exact)
    again = RoundSession(PARTIES["collector"], manifest, tmp_path / "collector")
    assert again.result == running.result


def test_a_provider_sends_the_same_bytes_again_and_pays_once(tmp_path):
    manifest = horizontal_manifest()
    ledger = Ledger.create(tmp_path / "budget.json", 1.5)
    charge = make_ledger_charge(str(tmp_path / "budget.json"))
    assert make_ledger_charge(None) is None
    kept = StateFolder(tmp_path, manifest)

    def make(agreed=manifest):
        charge(agreed)
        return horizontal.HorizontalProvider(PARTIES["hospital-a"], agreed).make_submission(
            counted(agreed)[0]
        )

    first = kept.load_or_create("submission", make)
    assert kept.load_or_create("submission", make) == first
    make()  # killed after it had paid and before anything was kept: a retry is not paid again
    assert len(ledger.read().entries) == 1
    another = horizontal_manifest()
    with pytest.raises(PrivacyError, match="left"):  # the next round costs again
        StateFolder(tmp_path, another).load_or_create("submission", lambda: make(another))


def test_rows_are_aligned_by_id_and_ids_are_unique():
    rows = {"x": [1, 2, 3], "id": ["b", "c", "a"]}
    columns, ids = load_aligned_columns(rows, ("x",), "id")
    assert list(ids) == ["a", "b", "c"]
    assert columns["x"].values[columns["x"].codes].tolist() == [3, 1, 2]
    assert load_aligned_columns(rows, ("x",), None)[1] is None
    with pytest.raises(SchemaError, match="twice"):
        load_aligned_columns({"x": [1, 2], "id": ["a", "a"]}, ("x",), "id")


@pytest.mark.slow
def test_a_party_does_not_believe_another_manifest(tmp_path):
    """The collector serves a manifest with another epsilon: its signatures do not fit."""
    ours = unsigned(horizontal_manifest(deadline=soon(60)))
    theirs = signed_round(horizontal_manifest(epsilon=50.0), tmp_path)
    with (
        Served(theirs) as url,
        RoundClient(url, PARTIES["hospital-a"], ours) as connection,
        pytest.raises(ProtocolError, match="wrong-signature"),
    ):
        connection.sign_agreement()


def test_a_party_gives_up_when_no_collector_answers(monkeypatch):
    """The deadline passes as soon as the party has said that it waits."""
    ours, said = unsigned(horizontal_manifest(deadline=soon(3600))), []

    def say(line):
        said.append(line)
        later = signed.get_current_time() + timedelta(seconds=3601)
        monkeypatch.setattr(signed, "get_current_time", lambda: later)

    tell = SimpleNamespace(say=say, show=lambda what, done, whole: None)
    with (
        RoundClient("http://127.0.0.1:9", PARTIES["hospital-a"], ours, listener=tell) as line,
        pytest.raises(ProtocolError, match="does not answer"),
    ):
        line.sign_agreement()
    assert said == ["waiting for the collector at http://127.0.0.1:9, which does not answer"]


@pytest.mark.slow
def test_tls_with_the_right_certificate_and_not_with_another(tmp_path):
    manifest = unsigned(horizontal_manifest(deadline=soon(60)))
    running = RoundSession(PARTIES["collector"], manifest, tmp_path / "kept")
    cert, key = certificate(tmp_path, "collector")
    other, _ = certificate(tmp_path, "mallory")
    with Served(running, ssl_certfile=cert, ssl_keyfile=key) as url:
        with RoundClient(url, PARTIES["hospital-a"], manifest, authority=cert) as line:
            assert line.connection.send("GET", "/status").json()["state"] == "signing"
        with (
            RoundClient(url, PARTIES["hospital-a"], manifest, authority=other) as line,
            pytest.raises(ProtocolError, match="not under the authority"),
        ):
            line.sign_agreement()


@pytest.mark.parametrize(
    "url", ["collector", "ftp://collector.example", "http://", "https://:8443"]
)
def test_an_invalid_address_is_refused_at_once(url):
    with pytest.raises(SchemaError, match="invalid address"):
        RoundClient(url, PARTIES["hospital-a"], vertical_manifest())


def test_what_is_wrong_with_a_ledger_is_said_before_anyone_signs(tmp_path):
    with pytest.raises(FormatError, match="no such ledger"):
        make_ledger_charge(str(tmp_path / "none.json"))
    damaged = tmp_path / "damaged.json"
    damaged.write_text('{"format": "discreet/bud')
    with pytest.raises(FormatError, match=r"damaged\.json: this ledger file is incomplete"):
        make_ledger_charge(str(damaged))
    assert make_ledger_charge(str(tmp_path / "new.json"), 3.0) is not None
    assert float(Ledger(tmp_path / "new.json").read().remaining[0]) == 3.0


def test_a_round_that_a_ledger_cannot_pay_is_refused_before_anyone_signs(tmp_path):
    """Also one whose promise is void; one that is paid already needs nothing more."""
    path, manifest = str(tmp_path / "budget.json"), horizontal_manifest(epsilon=1.0)
    charge = make_ledger_charge(path, 1.5, manifest)
    assert Ledger(path).read().entries == ()
    charge(manifest)
    make_ledger_charge(path, None, manifest)  # started again
    with pytest.raises(PrivacyError, match=r"0\.5 and 0 of 1\.5"):
        make_ledger_charge(path, None, horizontal_manifest(epsilon=1.0))
    with pytest.raises(PrivacyError, match="epsilon is inf"):
        make_ledger_charge(path, None, horizontal_manifest(epsilon=math.inf))
    assert len(Ledger(path).read().entries) == 1


def test_two_manifests_that_look_alike_are_both_charged(tmp_path, monkeypatch):
    """Sixteen equal digits can be made in an afternoon; all sixty-four cannot."""
    path, manifests = str(tmp_path / "budget.json"), [horizontal_manifest() for _ in range(2)]
    charge = make_ledger_charge(path, 9.0)
    for last, one in enumerate(manifests):
        monkeypatch.setitem(vars(one), "hash", bytes(31) + bytes([last]))
        charge(one)
        charge(one)
    assert len(Ledger(path).read().entries) == 2
