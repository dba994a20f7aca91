"""The client's parts, each alone: one request, tries, patience, chunks, and what is reported."""

from __future__ import annotations

import dataclasses
import json
import time
from types import SimpleNamespace

import httpx
import pytest
from round_fixtures import PARTIES, horizontal_manifest
from served_rounds import soon

from discreet.errors import SchemaError
from discreet.federated.messages import (
    CHUNK_BYTES,
    MESSAGE_HEADER,
    SIGNATURE_HEADER,
    Message,
    encode_request,
)
from discreet.federated.refusals import ProtocolError
from discreet.federated.service import retrying_transport
from discreet.federated.service.message_transfer import MessageTransfer
from discreet.federated.service.patience import Patience, RetryPolicy
from discreet.federated.service.retrying_transport import RetryingTransport
from discreet.federated.service.state_folder import StateFolder
from discreet.federated.service.status_reporter import NullListener, StatusReporter
from discreet.federated.service.transport import CollectorTransport

URL = "http://127.0.0.1:9"
OWN = PARTIES["hospital-a"]


def answer(status, document):
    headers = {"content-type": "application/json"}
    return httpx.Response(status, headers=headers, content=json.dumps(document).encode())


class Scripted:
    """A transport that answers what it was given, or raises it; the last one for ever."""

    url = URL

    def __init__(self, *script):
        self.script, self.requests = list(script), []

    def send(self, method, path, **arguments):
        self.requests.append((method, path, arguments))
        result = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if callable(result):
            result = result(arguments)
        if isinstance(result, Exception):
            raise result
        return result


class Listening(NullListener):
    def __init__(self):
        self.said, self.shown = [], []

    def say(self, line):
        self.said.append(line)

    def show(self, step, done, total):
        self.shown.append((step, done, total))


@pytest.fixture
def pauses(monkeypatch):
    """The seconds that are slept, without sleeping; other threads go on sleeping."""
    slept = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=slept.append)
    monkeypatch.setattr(retrying_transport, "time", clock)
    return slept


def retrying(transport, deadline="", listener=None, **policy):
    patience = Patience(horizontal_manifest(deadline=deadline), RetryPolicy(**policy))
    return RetryingTransport(transport, patience, StatusReporter(listener or NullListener()))


# ---- one request


def test_a_request_is_signed_and_asks_for_an_unpacked_answer():
    seen, manifest = [], horizontal_manifest()

    def take(request):
        seen.append(request)
        return httpx.Response(200, content=iter([b"{}"]))

    transport = CollectorTransport(f"{URL}/", OWN, manifest)
    transport.http = httpx.Client(
        base_url=URL,
        auth=transport.http.auth,
        headers=transport.http.headers,
        transport=httpx.MockTransport(take),
    )
    transport.send("GET", "/status", params={"changes": -1})
    name, moment, code = seen[0].headers[SIGNATURE_HEADER].split()
    signed_bytes = encode_request(manifest, "GET", "/status?changes=-1", moment)
    assert name == OWN.name
    assert OWN.card.verify_signature(bytes.fromhex(code), signed_bytes)
    assert seen[0].headers["accept-encoding"] == "identity"
    assert transport.url == URL


@pytest.mark.parametrize("url", ["", "collector.example:8443", "ftp://collector", "https://"])
def test_an_address_without_host_or_scheme_is_refused(url):
    with pytest.raises(SchemaError, match="invalid address"):
        CollectorTransport(url, OWN, horizontal_manifest())


# ---- patience


def test_a_policy_cannot_change_while_it_is_followed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RetryPolicy().retry_seconds = 0.0


def test_chunks_double_on_a_quick_line_and_halve_on_a_slow_one_within_bounds():
    policy = RetryPolicy()
    assert policy.adapt_chunk_bytes(1 << 16, 0.99) == 1 << 17
    assert policy.adapt_chunk_bytes(1 << 16, 1.0) == 1 << 15
    assert policy.adapt_chunk_bytes(CHUNK_BYTES, 0.0) == CHUNK_BYTES
    assert policy.adapt_chunk_bytes(1 << 14, float("inf")) == 1 << 14


def test_the_deadline_ends_patience_two_pauses_later():
    """So that the collector speaks first."""
    policy = RetryPolicy(retry_seconds=30.0)
    Patience(horizontal_manifest(), policy).refuse_past_deadline("waiting")
    Patience(horizontal_manifest(deadline=soon(-50)), policy).refuse_past_deadline("waiting")
    over = Patience(horizontal_manifest(deadline=soon(-70)), policy)
    with pytest.raises(ProtocolError, match="the round is over; waiting for b") as told:
        over.refuse_past_deadline("waiting for b")
    assert told.value.reason == "abandoned"


def test_a_silence_ends_patience_only_of_those_who_may_leave():
    patience = Patience(horizontal_manifest(), RetryPolicy(max_silence_seconds=60.0))
    long_ago = time.monotonic() - 61
    patience.refuse_long_silence(URL, long_ago)
    patience.may_leave = True
    patience.refuse_long_silence(URL, long_ago + 10)
    with pytest.raises(ProtocolError, match="is gone") as told:
        patience.refuse_long_silence(URL, long_ago)
    assert told.value.reason == "lonely"


# ---- tries


def test_a_request_is_sent_again_until_it_is_answered(pauses):
    listener = Listening()
    transport = Scripted(*[httpx.ReadError("broken")] * 3, answer(200, {"a": 1}))
    connection = retrying(transport, listener=listener)
    assert connection.send("GET", "/status").json() == {"a": 1}
    assert pauses == [0.1, 0.1, 0.1]
    assert listener.said == [f"waiting for the collector at {URL}, which does not answer"]
    assert connection.chunk_bytes == 1 << 14  # 65536 halved twice is the least


def test_a_full_disk_is_waited_for_ten_times_as_long(pauses):
    full = answer(507, {"reason": "storage", "sentence": "the disk is full"})
    listener = Listening()
    connection = retrying(Scripted(full, answer(200, {})), listener=listener)
    connection.send("POST", "/messages")
    assert pauses == [1.0]
    assert listener.said == ["waiting: the disk is full"]


def test_a_refusal_is_not_asked_again(pauses):
    transport = Scripted(answer(410, {"reason": "late", "sentence": "it is over"}))
    with pytest.raises(ProtocolError, match="late: it is over"):
        retrying(transport).send("POST", "/messages")
    assert len(transport.requests) == 1


def test_a_silent_collector_is_left_after_the_deadline(pauses):
    transport = Scripted(httpx.ConnectTimeout("nobody"))
    connection = retrying(transport, deadline=soon(-1))
    with pytest.raises(ProtocolError, match="does not answer \\(ConnectTimeout\\)"):
        connection.send("GET", "/status")
    assert pauses == []


def test_a_wait_asks_for_news_since_the_last_answer():
    states = [("signing", "b is missing", 4), ("signing", "c is missing", 7), ("done", "", 9)]
    transport = Scripted(
        *(
            answer(200, {"state": state, "line": line, "changes": changes})
            for state, line, changes in states
        )
    )
    listener = Listening()
    connection = retrying(transport, listener=listener)
    assert connection.wait_until_ready(lambda state: state == "done" or None) is True
    asked = [arguments["params"]["changes"] for _, _, arguments in transport.requests]
    assert asked == [-1, 4, 7]
    assert listener.said == ["b is missing", "c is missing"]


def test_a_wait_ends_when_the_round_is_abandoned():
    transport = Scripted(answer(200, {"state": "abandoned", "line": "b is late", "changes": 1}))
    with pytest.raises(ProtocolError, match="abandoned: b is late"):
        retrying(transport).wait_until_ready(lambda state: None)


# ---- what is reported


def test_a_status_of_which_only_the_seconds_change_is_said_once():
    listener = Listening()
    reporter = StatusReporter(listener)
    for line in ("waiting for b, 9 s left", "waiting for b, 8 s left", "waiting for c, 7 s left"):
        reporter.report_waiting(line)
    assert listener.said == ["waiting for b, 9 s left", "waiting for c, 7 s left"]
    assert listener.shown == [("waiting for b", 0, 0)]


def test_a_step_is_shown_until_its_block_ends():
    listener = Listening()
    with StatusReporter(listener).show_busy("counting"):
        assert listener.shown == [("counting", 0, 0)]
    assert listener.shown[1:] == [("going on", 0, 0)]


# ---- chunks


def a_message(size):
    return Message.create(OWN, horizontal_manifest(), "submission", "collector", bytes(size))


def stored(arguments, body):
    """The answer of a collector to a chunk, and the body it has then."""
    if "content" in arguments:
        offset = arguments["params"]["offset"]
        body[offset:] = arguments["content"]
    header = Message.from_header(arguments["headers"][MESSAGE_HEADER].encode())
    return answer(200, {"accepted": len(body) == header.size, "have": len(body)})


def test_a_long_body_goes_on_where_the_collector_says_it_stopped():
    body, message = bytearray(100_000), a_message(300_000)
    transport = Scripted(lambda arguments: stored(arguments, body))
    MessageTransfer(retrying(transport), OWN.name).send_message(message)
    offsets = [a["params"]["offset"] for _, _, a in transport.requests if "params" in a]
    assert offsets == [100_000, 165_536, 296_608]  # a chunk, and twice as much
    assert len(body) == 300_000


def test_a_collector_that_takes_in_nothing_is_left():
    transport = Scripted(answer(200, {"accepted": False, "have": 0}))
    transfer = MessageTransfer(retrying(transport), OWN.name)
    with pytest.raises(ProtocolError, match="accepts no more bytes of the submission"):
        transfer.send_message(a_message(10))
    policy = RetryPolicy()
    assert len(transport.requests) == policy.max_transfer_tries * (policy.max_stalled_chunks + 1)


def test_a_damaged_body_is_sent_again_and_an_accepted_one_is_not():
    damaged = answer(409, {"reason": "damaged", "sentence": "send it again"})
    transport = Scripted(damaged, answer(200, {"accepted": True, "have": 10}))
    MessageTransfer(retrying(transport), OWN.name).send_message(a_message(10))
    assert len(transport.requests) == 2
    transport = Scripted(answer(409, {"reason": "replayed", "sentence": "it is here"}))
    MessageTransfer(retrying(transport), OWN.name).send_message(a_message(10))
    assert len(transport.requests) == 1
    with pytest.raises(ProtocolError, match="damaged"):
        MessageTransfer(retrying(Scripted(damaged)), OWN.name).send_message(a_message(10))


def test_a_body_that_changes_on_its_way_is_refused_after_a_few_tries(tmp_path):
    message, replaced = a_message(10), a_message(11)

    def act(arguments):
        if "changes" in arguments["params"]:
            return answer(200, {"state": "collecting", "line": "", "changes": 1})
        header = message if arguments["params"]["offset"] == 0 else replaced
        headers = {
            "content-type": "application/octet-stream",
            MESSAGE_HEADER: header.header.decode(),
        }
        return httpx.Response(200, headers=headers, content=bytes(5))

    transport = Scripted(act)
    folder = StateFolder(tmp_path, horizontal_manifest())
    folder.path.mkdir(parents=True, exist_ok=True)
    with pytest.raises(ProtocolError, match="the submission changed on its way"):
        MessageTransfer(retrying(transport), "collector").fetch_message(
            "submission", OWN.name, folder
        )
    starts = [a for _, _, a in transport.requests if a["params"].get("offset") == 0]
    assert len(starts) == RetryPolicy().max_transfer_tries
