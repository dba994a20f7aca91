"""Lines that break at the worst moment, strangers who never finish, and mistaken TLS files."""

from __future__ import annotations

import json
import logging
import math
import shutil
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from click.testing import CliRunner
from round_fixtures import NAMES, PARTIES, counted, horizontal_manifest
from served_rounds import Listening, Served, certificate, frame, signed_round, soon, unsigned

from discreet.cli import main
from discreet.cli.federated import collect
from discreet.errors import FormatError
from discreet.federated import horizontal
from discreet.federated.agreement import signed
from discreet.federated.messages import MESSAGE_HEADER, SIGNATURE_HEADER, Message, encode_request
from discreet.federated.service import collector_client
from discreet.federated.service.collector_client import RoundClient
from discreet.federated.service.patience import RetryPolicy
from discreet.federated.service.provider import ProviderInput, run_provider
from discreet.federated.service.receiver import run_receiver
from discreet.federated.service.server import RoundSession
from discreet.hosting.serving import create_trusting_context, make_tls_options

OWN = PARTIES["hospital-a"]


def signature_line(manifest, method, target, own=OWN):
    moment = str(int(signed.get_current_time().timestamp()))
    code = own.sign(encode_request(manifest, method, target, moment)).hex()
    return f"{SIGNATURE_HEADER}: {own.name} {moment} {code}\r\n"


@contextmanager
def logged_errors():
    """What uvicorn says about errors; a server that is made removes the handlers before it."""
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage() + str(record.exc_info))

    handler = Keep()
    logging.getLogger("uvicorn.error").addHandler(handler)
    yield found
    logging.getLogger("uvicorn.error").removeHandler(handler)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/messages?offset=0", "/signatures/hospital-a"])
def test_a_connection_that_breaks_in_a_body_leaves_no_traceback(path, tmp_path):
    manifest = horizontal_manifest(deadline=soon(600))
    running = signed_round(manifest, tmp_path)
    message = horizontal.HorizontalProvider(OWN, manifest).make_submission(counted(manifest)[0])
    served = Served(running)
    with logged_errors() as logged, served:
        for _ in range(5):
            line = socket.create_connection(served.address)
            line.sendall(
                f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {message.size}\r\n"
                f"{MESSAGE_HEADER}: {message.header.decode()}\r\n"
                f"{signature_line(manifest, 'POST', path)}\r\n".encode()
                + message.body.read()[:10]
            )
            while not any(one.cycle for one in served.server.server_state.connections):
                time.sleep(0.01)  # until the request is being answered
            line.close()
            while served.server.server_state.connections or served.server.server_state.tasks:
                time.sleep(0.01)
    assert logged == []


@pytest.mark.slow
def test_a_signature_of_a_stranger_is_refused_before_its_body_comes(tmp_path):
    manifest = unsigned(horizontal_manifest(deadline=soon(600)))
    running = RoundSession(PARTIES["collector"], manifest, tmp_path)
    served = Served(running)
    with served:
        for header in (
            "",
            signature_line(manifest, "POST", "/signatures/hospital-a", PARTIES["receiver"]),
        ):
            with socket.create_connection(served.address) as line:
                head = "POST /signatures/hospital-a HTTP/1.1\r\nHost: x\r\nContent-Length: 192\r\n"
                line.sendall(f"{head}{header}\r\n".encode())
                answer = b""
                while not answer.endswith(b"}"):  # nothing of the body was sent
                    answer += line.recv(65536)
            assert answer.startswith(b"HTTP/1.1 409")
            assert b'"wrong-signature"' in answer or b'"unknown-sender"' in answer
    assert "hospital-a" in running.agreement.unsigned_parties


# ---- the last answer is lost


def losing(line, lose):
    """The first answer for which ``lose`` is true does not arrive; gives what was lost."""
    once, lost = line.transport.send, []

    def act(method, path, **how):
        answer = once(method, path, **how)
        if not lost and lose(path, how, answer):
            lost.append(answer)
            raise httpx.ReadError("the line broke")
        return answer

    line.transport.send = act
    return lost


def silenced(line, lose):
    """The first two requests for which ``lose`` is true never reach the collector."""
    once, lost = line.transport.send, []

    def act(method, path, **how):
        if len(lost) < 2 and lose(path, how):
            lost.append(path)
            raise httpx.WriteError("the line broke")
        return once(method, path, **how)

    line.transport.send = act
    return lost


def leaves(path, how):
    return path == "/status" and bool(how.get("params", {}).get("heard"))


def confirms(path, how, answer):
    header = how.get("headers", {}).get(MESSAGE_HEADER)
    return header is not None and Message.from_header(header.encode()).kind == "received"


def ended(path, how, answer):
    return path == "/status" and json.loads(answer.content)["state"] == "done"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "breaking", "lose", "times"),
    [
        ("receiver", losing, confirms, 1),
        ("hospital-a", losing, ended, 1),
        ("receiver", silenced, leaves, 2),
        ("hospital-a", silenced, leaves, 2),
    ],
    ids=["receiver's answer", "provider's answer", "receiver's leave", "provider's leave"],
)
def test_a_collector_waits_until_its_last_answer_was_heard(
    who, breaking, lose, times, tmp_path, monkeypatch
):
    """The last word of a party, or the answer, is lost: it asks again, and hears the truth."""
    # whoever finds nobody there gives up
    monkeypatch.setattr(collector_client, "DEFAULT_POLICY", RetryPolicy(max_silence_seconds=20.0))
    monkeypatch.setattr(collect, "FINISHED_LINGER_SECONDS", 600.0)
    manifest = horizontal_manifest(epsilon=math.inf, deadline=soon(600))
    running = RoundSession(PARTIES["collector"], unsigned(manifest), tmp_path / "c")
    served, told, lost = Served(running), {}, {}

    def act(name, seed):
        listener = told[name] = Listening()
        with RoundClient(url, PARTIES[name], unsigned(manifest), listener=listener) as line:
            if name == who:
                lost[name] = breaking(line, lose)
            if name == "receiver":
                run_receiver(line, tmp_path / name, lambda release: None)
            else:
                run_provider(line, ProviderInput(frame(seed)), tmp_path / name)

    with served as url:
        watch = (running, served.server, lambda line: None)
        jobs = [threading.Thread(target=collect._watch_round, args=watch, daemon=True)]
        names = [*NAMES, "receiver"]
        jobs += [
            threading.Thread(target=act, args=(n, i), daemon=True) for i, n in enumerate(names)
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join(120)
    assert len(lost[who]) == times
    assert not [line for line in told[who].heard if "gone" in line]
    assert running.is_result_confirmed
    assert running.is_known_to_all


def test_a_party_that_leaves_waits_for_no_collector_that_left_first(monkeypatch):
    """It says so a few times, and no more."""
    asked, manifest = [], horizontal_manifest()
    policy = RetryPolicy(retry_seconds=0.0)
    monkeypatch.setattr(collector_client, "DEFAULT_POLICY", policy)

    def refused(request):
        asked.append(str(request.url))
        raise httpx.ConnectError("Connection refused")

    with RoundClient("http://127.0.0.1:9", PARTIES["receiver"], manifest) as line:
        line.transport.http = httpx.Client(
            base_url=line.transport.url, transport=httpx.MockTransport(refused)
        )
        line._send_farewell()
    assert 1 < len(asked) <= policy.max_farewell_tries


def test_being_told_is_not_knowing(tmp_path):
    """The twin counted whoever was answered, although the answer may be lost."""
    manifest = horizontal_manifest(epsilon=math.inf)
    running = signed_round(manifest, tmp_path)
    for name, own in zip(NAMES, counted(manifest), strict=True):
        running.get_status(name, has_heard=True)  # there is nothing to know yet
        running.store_message(
            horizontal.HorizontalProvider(PARTIES[name], manifest).make_submission(own)
        )
    running.store_message(
        Message.create(PARTIES["receiver"], manifest, "received", "collector", b"")
    )
    for name in (*NAMES, "receiver"):
        assert running.get_status(name)["state"] == "done"
        assert not running.is_known_to_all
    for name in (*NAMES, "receiver"):
        assert not running.is_known_to_all
        running.get_status(name, has_heard=True)
    assert running.is_known_to_all


def test_a_collector_that_is_gone_is_called_gone_and_nothing_more(tmp_path, monkeypatch):
    """Whether it heard the last word cannot be known, so nothing is said of that."""
    monkeypatch.setattr(collector_client, "DEFAULT_POLICY", RetryPolicy(max_silence_seconds=0.0))
    listener, manifest = Listening(), horizontal_manifest(deadline=soon(600))
    with RoundClient(
        "http://127.0.0.1:9", PARTIES["receiver"], manifest, listener=listener
    ) as line:
        line.confirm_result()
    assert "it is not known whether it received the acknowledgement" in listener.heard[-1]


# ---- TLS files


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    for name in ("right", "other"):
        certificate(folder, name)
    return folder


def test_mistaken_tls_files_are_named(tmp_path, pem):
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "text.pem").write_text("not a certificate\n")
    cert, key = sorted(str(path) for path in pem.glob("right*"))
    cert, key = (cert, key) if "CERTIFICATE" in Path(cert).read_text() else (key, cert)
    other = next(str(p) for p in pem.glob("other*") if "PRIVATE" in p.read_text())
    assert make_tls_options(cert, key) == {"ssl_certfile": cert, "ssl_keyfile": key}
    assert make_tls_options(None, None) == {"ssl_certfile": None, "ssl_keyfile": None}
    missing, empty, text = (str(tmp_path / name) for name in ("no.pem", "empty.pem", "text.pem"))
    for files, match in (
        ((cert, None), "TLS needs both"),
        ((None, key), "TLS needs both"),
        ((missing, key), "--certificate .*no.pem: No such file"),
        ((cert, missing), "--certificate-key .*no.pem: No such file"),
        ((str(tmp_path), key), "Is a directory"),
        ((empty, key), "cannot be used for TLS"),
        ((cert, text), "cannot be used for TLS"),
        ((cert, other), "KEY_VALUES_MISMATCH"),
        ((key, cert), "cannot be used for TLS"),
    ):
        with pytest.raises(FormatError, match=match):
            make_tls_options(*files)
    assert isinstance(create_trusting_context(cert), ssl.SSLContext)
    for path, match in ((missing, "No such file"), (empty, "no certificate"), (text, "no certif")):
        with pytest.raises(FormatError, match=f"--authority .*{match}"):
            create_trusting_context(path)


@pytest.mark.parametrize("option", ["--certificate", "--certificate-key", "--authority"])
def test_a_command_with_a_mistaken_tls_file_names_it(option, tmp_path, pem):
    """It was said that standard output cannot be written."""
    manifest = unsigned(horizontal_manifest())
    (tmp_path / "manifest.json").write_text(manifest.to_json())
    shutil.copy(next(pem.glob("right*")), tmp_path / "some.pem")
    who = "hospital-a" if option == "--authority" else "collector"
    (tmp_path / "own.json").write_text(PARTIES[who].to_json())
    (tmp_path / "a.csv").write_text("colour,size,age,class\nred,1,2,no\n")
    common = ["--identity", str(tmp_path / "own.json"), "--state", str(tmp_path / "s"), "--yes"]
    wrong = str(tmp_path / "nothing.pem")
    if option == "--authority":
        table = [str(tmp_path / "a.csv"), "--collector", "https://127.0.0.1:9", option, wrong]
        words = ["provide", str(tmp_path / "manifest.json"), *table, *common]
    else:
        files = {"--certificate": str(tmp_path / "some.pem"), "--certificate-key": wrong}
        if option == "--certificate":
            files = {"--certificate": wrong, "--certificate-key": str(tmp_path / "some.pem")}
        words = ["collect", str(tmp_path / "manifest.json"), *common]
        words += [word for pair in files.items() for word in pair]
    result = CliRunner().invoke(main, ["federated", *words])
    assert result.exit_code == 2, result.output
    said = result.output.replace("\n", " ")
    assert f"{option} {wrong}: No such file or directory" in said
    assert "standard output" not in said
