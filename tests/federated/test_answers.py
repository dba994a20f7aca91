"""A wrong address, certificate or manifest is one sentence with the cause and the way out."""

from __future__ import annotations

import httpx
import pytest

pytest.importorskip("uvicorn")

from rounds import PARTIES, horizontal_manifest
from test_collector import Served, certificate, soon, unsigned

from discreet.federated.refusals import ProtocolError
from discreet.federated.service.connection import Connection
from discreet.federated.service.server import Round


def refusal(url, manifest, **how):
    with (
        Connection(url, PARTIES["hospital-a"], manifest, **how) as line,
        pytest.raises(ProtocolError) as told,
    ):
        line.agreed()
    return told.value.sentence


def test_tls_on_one_side_only_and_another_host_name(tmp_path):
    manifest = unsigned(horizontal_manifest(deadline=soon(20)))
    running = Round(PARTIES["collector"], manifest, tmp_path / "kept")
    cert, key = certificate(tmp_path, "collector")
    with Served(running, ssl_certfile=cert, ssl_keyfile=key) as url:
        said = refusal(url.replace("https", "http"), manifest)
        assert "speaks TLS; write https://" in said
        said = refusal(url.replace("127.0.0.1", "localhost"), manifest, authority=cert)
        assert "is not for localhost" in said
    with Served(running) as url:
        said = refusal(url.replace("http", "https"), manifest)
    assert "speaks no TLS; start it with --certificate" in said
    assert set(running.manifest.signatures) == {"collector"}


def test_a_collector_of_another_manifest_names_both_digests(tmp_path):
    ours, theirs = (unsigned(horizontal_manifest(deadline=soon(20))) for _ in range(2))
    with Served(Round(PARTIES["collector"], theirs, tmp_path)) as url:
        said = refusal(url, ours)
    assert "hospital-a has not signed the manifest" in said
    assert theirs.hash.hex()[:16] in said
    assert "discreet federated show" in said


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, html="<title>Please log in</title>"),
        httpx.Response(302, headers={"location": "http://proxy.example/"}),
        httpx.Response(502, html="<h1>Bad gateway</h1>"),
        httpx.Response(200, json={"hello": "world"}),
    ],
)
def test_the_page_of_a_proxy_is_no_collector(answer):
    manifest = unsigned(horizontal_manifest(deadline=soon(20)))
    transport = httpx.MockTransport(lambda request: answer)
    said = refusal("http://collector.example:8443", manifest, transport=transport)
    assert "http://collector.example:8443" in said
    assert "check the address and the port" in said
