"""A wrong address, certificate or manifest is one sentence with the cause and the way out."""

from __future__ import annotations

import gzip
import json
import threading
from datetime import timedelta

import httpx
import pytest

pytest.importorskip("uvicorn")

from round_fixtures import PARTIES, horizontal_manifest
from served_rounds import Served, certificate, frame, soon, unsigned

from discreet.federated.agreement import signed
from discreet.federated.messages import CHUNK_BYTES, RAW_MEDIA_TYPE
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.collector_client import RoundClient
from discreet.federated.service.provider import ProviderInput, run_provider
from discreet.federated.service.server import RoundSession
from discreet.federated.service.status_reporter import NullListener
from discreet.federated.service.transport import MAX_ANSWER_BYTES


def refusal(url, manifest, **how):
    with (
        RoundClient(url, PARTIES["hospital-a"], manifest, **how) as line,
        pytest.raises(ProtocolError) as told,
    ):
        line.sign_agreement()
    return told.value.sentence


@pytest.mark.slow
def test_tls_on_one_side_only_and_another_host_name(tmp_path):
    manifest = unsigned(horizontal_manifest(deadline=soon(20)))
    running = RoundSession(PARTIES["collector"], manifest, tmp_path / "kept")
    cert, key = certificate(tmp_path, "collector")
    with Served(running, ssl_certfile=cert, ssl_keyfile=key) as url:
        said = refusal(url.replace("https", "http"), manifest)
        assert "uses TLS; write https://" in said
        said = refusal(url.replace("127.0.0.1", "localhost"), manifest, authority=cert)
        assert "is not for localhost" in said
    with Served(running) as url:
        said = refusal(url.replace("http", "https"), manifest)
    assert "does not use TLS; start it with --certificate" in said
    assert set(running.agreement.signatures) == {"collector"}


@pytest.mark.slow
def test_a_collector_of_another_manifest_names_both_digests(tmp_path):
    ours, theirs = (unsigned(horizontal_manifest(deadline=soon(20))) for _ in range(2))
    with Served(RoundSession(PARTIES["collector"], theirs, tmp_path)) as url:
        said = refusal(url, ours)
    assert "this request is not signed by a party of the manifest" in said
    assert theirs.hash.hex()[:16] in said
    assert "discreet federated show" in said


class Impostor:
    """A server that is no collector: what it answers to a path, to all others like a real one."""

    def __init__(self, agreed, /, **wrong):
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        right = {
            "status": answer({"state": "collecting", "line": "here", "changes": 1}),
            "manifest": answer(agreed.to_json().encode()),
        }
        said = {**right, **wrong}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("content-length", 0)))
                path = self.path.strip("/").replace("?", "/").split("/")[0]
                status, kind, content = said.get(path, answer({"accepted": True, "have": 0}))
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()


def answer(content, status=200, kind="application/json"):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return status, kind, text


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        answer(b"<title>Please log in</title>", kind="text/html"),
        answer(b"", 302),
        answer(b"<h1>Bad gateway</h1>", 502, "text/html"),
        answer({"reason": "none of ours", "sentence": "no"}, 409),
        answer({"reason": "late", "sentence": ["no"]}, 409),
    ],
)
def test_the_page_of_a_proxy_is_no_collector(page):
    manifest = unsigned(horizontal_manifest(deadline=soon(20)))
    with Impostor(manifest, signatures=page) as url:
        said = refusal(url, manifest)
    assert url in said
    assert "check the address and the port" in said


DEEP, DIGITS = b"[" * 100_000, b"9" * 5000
ODD = [b"", b"{", b"[]", b"null", b'"x"', b"{}", b"\xff\xfe", DEEP, DIGITS]
STATUS = {"state": "collecting", "line": "here", "changes": 1}
WRONG = [
    *((path, one) for path in ("status", "manifest", "messages") for one in ODD),
    *(("status", {**STATUS, "state": one}) for one in (1, [], "over")),
    *(("status", {**STATUS, "line": one}) for one in (1, None)),
    *(("status", {**STATUS, "changes": one}) for one in ("1", -1, 10**30, {})),
    *(("manifest", {"signatures": one}) for one in ([], {"hospital-a": 1}, None)),
    *(("messages", {"accepted": False, "have": one}) for one in (0, -1, 7, 10**9, 1.5, "x", None)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "content"), WRONG, ids=lambda one: ascii(one)[:24])
def test_whatever_a_collector_answers_a_provider_ends_with_a_sentence(path, content, tmp_path):
    """Also one that takes in nothing, however often it is sent."""
    signed = horizontal_manifest()
    with (
        Impostor(signed, **{path: answer(content)}) as url,
        RoundClient(url, PARTIES["hospital-a"], unsigned(signed)) as line,
        pytest.raises(ProtocolError) as told,
    ):
        run_provider(line, ProviderInput(frame(1)), tmp_path)
    assert told.value.reason in ("malformed", "truncated")
    assert url in told.value.sentence


@pytest.mark.slow
def test_a_packed_answer_is_not_unpacked():
    """A few kilobytes could become gigabytes."""
    manifest, page = unsigned(horizontal_manifest()), gzip.compress(bytes(1 << 24))
    assert len(page) < 1 << 15
    with (
        Impostor(manifest, signatures=answer(page)) as url,
        RoundClient(url, PARTIES["hospital-a"], manifest) as line,
    ):
        found = line.transport.send("POST", "/signatures/hospital-a")
    assert found.content == page


@pytest.mark.slow
def test_words_of_a_collector_cannot_move_the_cursor(monkeypatch):
    """Nor add lines that look like ours. The deadline passes when such a line was said."""
    manifest, heard = unsigned(horizontal_manifest()), []
    bad = "\x1b[2J\x9b1A\r\nhospital-b has signed\u202e"

    class Listening(NullListener):
        def say(self, line):
            heard.append(line)
            later = signed.get_current_time() + timedelta(seconds=3601)
            monkeypatch.setattr(signed, "get_current_time", lambda: later)

    status = answer({"state": "abandoned", "line": bad, "changes": 1})
    full = answer({"reason": "storage", "sentence": bad}, 507)
    for wrong in (
        {"status": status},
        {"signatures": answer({"reason": "late", "sentence": bad}, 410)},
    ):
        with Impostor(manifest, **wrong) as url:
            heard.append(refusal(url, manifest))
    soon_over = unsigned(horizontal_manifest(deadline=soon(3600)))
    with Impostor(soon_over, signatures=full) as url:
        heard.append(refusal(url, soon_over, listener=Listening()))
    assert len(heard) == 4
    for line in heard:
        assert line.isprintable()
        assert "hospital-b has signed" in line


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_an_answer_without_end_is_left_after_a_few_mebibytes(coding):
    """Whoever listens there may send for ever; memory is bounded, also for what would unpack."""
    sent = []

    def endless():
        for _ in range(64):  # a twin that reads on gets here
            sent.append(1 << 20)
            yield bytes(1 << 20)

    def answer(request):
        headers = {"content-type": "application/json", "content-encoding": coding}
        return httpx.Response(200, headers=headers, content=endless())

    manifest = horizontal_manifest()
    with RoundClient("http://127.0.0.1:9", PARTIES["receiver"], manifest) as line:
        line.transport.http = httpx.Client(
            base_url=line.transport.url, transport=httpx.MockTransport(answer)
        )
        with pytest.raises(ProtocolError, match="with too many bytes"):
            line.connection.send("GET", "/manifest")
    assert sum(sent) <= MAX_ANSWER_BYTES + (1 << 20) <= 8 << 20


def test_the_longest_answer_that_is_due_is_read():
    def answer(request):
        content = iter([bytes(MAX_ANSWER_BYTES)])
        return httpx.Response(200, headers={"content-type": RAW_MEDIA_TYPE}, content=content)

    assert MAX_ANSWER_BYTES >= CHUNK_BYTES
    with RoundClient("http://127.0.0.1:9", PARTIES["receiver"], horizontal_manifest()) as line:
        line.transport.http = httpx.Client(
            base_url=line.transport.url, transport=httpx.MockTransport(answer)
        )
        assert len(line.connection.send("GET", "/messages/receiver").content) == MAX_ANSWER_BYTES
