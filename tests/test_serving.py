"""Deadlines by progress: long bodies over slow lines get through, dribbles do not.

Time is virtual: the loop jumps to the next thing that is due, so nothing here waits or races.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar
from unittest.mock import Mock

import h11
import httptools
import pytest

from discreet.hosting import serving
from discreet.hosting.serving import (
    MAX_PIPELINED_REQUESTS,
    RequestLimits,
    make_timed_protocol,
    read_request_body,
)

T = TypeVar("T")
MEGABYTE = 1_000_000


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is moved on by waiting for it."""

    def __init__(self) -> None:
        self.now = 0.0
        loop = self

        class Instant(selectors.SelectSelector):
            def select(self, timeout: float | None = None) -> Any:
                loop.now += timeout or 0.0
                return super().select(0)

        super().__init__(Instant())

    def time(self) -> float:
        return self.now


def run(work: Coroutine[Any, Any, T]) -> T:
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


class RefusedError(Exception):
    def __init__(self, reason: str, sentence: str) -> None:
        self.reason = reason
        super().__init__(sentence)


class Sent:
    """A body that comes in equal pieces, one per second."""

    def __init__(self, pieces: int, size: int) -> None:
        self.pieces, self.size = pieces, size

    async def stream(self) -> AsyncIterator[bytes]:
        for _ in range(self.pieces):
            await asyncio.sleep(1.0)
            yield b"x" * self.size


def test_37_megabytes_over_8_megabits_get_through() -> None:
    body = run(read_request_body(Sent(37, MEGABYTE), 40 * MEGABYTE, RefusedError))
    assert len(body) == 37 * MEGABYTE


def test_the_known_bad_twin_counts_the_whole_time() -> None:
    total = RequestLimits(min_bytes_per_second=float("inf"))
    with pytest.raises(RefusedError, match="send it faster"):
        run(read_request_body(Sent(37, MEGABYTE), 40 * MEGABYTE, RefusedError, total))


def test_a_dribble_is_refused_after_the_start() -> None:
    with pytest.raises(RefusedError) as refused:
        run(read_request_body(Sent(1000, 10), MEGABYTE, RefusedError))
    assert refused.value.reason == "slow"
    assert "within 30 s" in str(refused.value)


def test_a_body_that_stalls_is_refused() -> None:
    class Stalled(Sent):
        async def stream(self) -> AsyncIterator[bytes]:
            yield b"x" * 1000
            await asyncio.sleep(10_000)

    with pytest.raises(RefusedError, match="1000 bytes came within 30 s"):
        run(read_request_body(Stalled(1, 1), MEGABYTE, RefusedError))


def test_a_long_body_is_refused_as_soon_as_it_is_too_long() -> None:
    assert run(read_request_body(Sent(2, 50), 100, RefusedError)) == b"x" * 100
    with pytest.raises(RefusedError) as refused:
        run(read_request_body(Sent(10, 51), 100, RefusedError))
    assert refused.value.reason == "oversized"


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


async def silent(scope: Any, receive: Any, send: Any) -> None:
    """An application that reads its body and never answers."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(1e6)


async def held(
    library: str, patience: RequestLimits, pieces: list[bytes], every: float = 1.0
) -> float:
    """Seconds until the server closes a connection on which pieces arrive one after the other."""
    uvicorn = pytest.importorskip("uvicorn")
    from uvicorn.server import ServerState

    loop = asyncio.get_running_loop()
    config = uvicorn.Config(silent, log_level="critical")
    config.load()
    made: Any = make_timed_protocol(library, patience)  # type: ignore[arg-type]
    protocol = made(config=config, server_state=ServerState(), app_state={}, _loop=loop)
    closed = asyncio.Event()
    transport = Mock()
    transport.is_closing.return_value = False
    transport.get_extra_info.return_value = None
    transport.close.side_effect = transport.abort.side_effect = closed.set
    protocol.connection_made(transport)
    for piece in pieces:
        protocol.data_received(piece)
        await asyncio.sleep(every)
        if closed.is_set():
            break
    try:
        await asyncio.wait_for(closed.wait(), 10_000)
    except TimeoutError:
        return float("inf")
    finally:
        protocol.connection_lost(None)
        for task in list(protocol.tasks):
            task.cancel()
    return loop.time()


PATIENCE = RequestLimits(
    base_seconds=30, min_bytes_per_second=1000, max_counted_bytes=100_000, grace_seconds=5
)


@pytest.fixture(params=[h11, httptools], ids=["h11", "httptools"])
def library(request: pytest.FixtureRequest) -> str:
    return str(request.param.__name__)


@pytest.mark.parametrize(
    ("pieces", "until"),
    [
        ([], 30),  # never says anything
        ([b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", *[b"x"] * 100], 31),
        ([HEAD % 100_000, *[b"x"] * 100], 36),
        ([HEAD % 10_000_000, *[b"x" * 500] * 1000], 75),  # half as fast as it must be
    ],
    ids=["silence", "headers", "body", "too slow"],
)
def test_nobody_holds_a_connection_by_dribbling(
    library: str, pieces: list[bytes], until: float
) -> None:
    assert run(held(library, PATIENCE, pieces)) <= until


def test_a_body_that_makes_progress_may_take_its_time(library: str) -> None:
    """80 kB in 40 s are whole; then the connection waits for the answer, however long."""
    pieces = [HEAD % 80_000, *[b"x" * 2000] * 40]
    assert run(held(library, PATIENCE, pieces)) == float("inf")
    total = RequestLimits(
        base_seconds=30, min_bytes_per_second=float("inf"), grace_seconds=5
    )  # the known-bad twin
    assert run(held(library, total, pieces)) < 40


def test_endless_bodies_buy_no_endless_time(library: str) -> None:
    pieces = [HEAD % 10**12, *[b"x" * 2000] * 1000]
    assert run(held(library, PATIENCE, pieces)) <= 30 + 100 + 5 + 1


@pytest.mark.parametrize(
    "begin",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: ",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: ",
    ],
    ids=["address", "headers", "after a body"],
)
def test_endless_headers_are_cut_off_before_they_fill_the_memory(
    library: str, begin: bytes
) -> None:
    """A minute of them: httptools would keep every byte, and copy all of them for every piece."""
    pieces = [begin, *[b"x" * 20_000] * 60]
    assert run(held(library, RequestLimits(base_seconds=100, grace_seconds=100), pieces)) <= 6


def test_long_bodies_of_many_pieces_are_no_headers(library: str) -> None:
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert run(held(library, RequestLimits(), [head, *[chunk] * 100, b"0\r\n\r\n"])) == float("inf")


@pytest.mark.parametrize(
    ("requests", "until"),
    [(MAX_PIPELINED_REQUESTS + 1, float("inf")), (MAX_PIPELINED_REQUESTS + 2, 1)],
)
def test_few_requests_may_be_sent_ahead_of_their_answers(requests: int, until: float) -> None:
    """One is being answered, and each that waits for its turn takes some memory."""
    assert run(held("httptools", PATIENCE, [GET * requests])) == until


def test_twin_without_a_limit_all_requests_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_PIPELINED_REQUESTS", 1 << 30)
    assert run(held("httptools", PATIENCE, [GET * 5000])) == float("inf")


def test_a_second_request_has_its_own_time(library: str) -> None:
    """Known-bad: counting from the connection's first moment."""
    pieces = [HEAD[:20], HEAD[20:] % 2 + b"x", b"x"]

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def work() -> bool:
        import uvicorn
        from uvicorn.server import ServerState

        loop = asyncio.get_running_loop()
        config = uvicorn.Config(answer, log_level="critical", timeout_keep_alive=20)
        config.load()
        made: Any = make_timed_protocol(library, PATIENCE)  # type: ignore[arg-type]
        protocol = made(config=config, server_state=ServerState(), app_state={}, _loop=loop)
        transport = Mock()
        transport.is_closing.return_value = False
        transport.get_extra_info.return_value = None
        protocol.connection_made(transport)
        for _ in range(10):
            for piece in pieces:
                protocol.data_received(piece)
                await asyncio.sleep(5)
        open_still: bool = not transport.close.called
        protocol.connection_lost(None)
        return open_still

    assert run(work())


async def never(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await asyncio.sleep(1e6)


async def at_once(scope: Any, receive: Any, send: Any) -> None:
    """Answers before the body is there, as a refusal does."""
    await send({"type": "http.response.start", "status": 409, "headers": []})
    await send({"type": "http.response.body", "body": b""})


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SOME = HEAD % 9_000_000 + b"x" * 200_000
"""Much of a body, after its headers."""


@pytest.mark.parametrize(
    ("app", "firsts", "aborted"),
    [
        # being answered, or a body on its way: both stay, those that wait for a request go
        (never, [GET, HEAD % 9, b"", b"GET", b"", b""], [2, 3]),
        # if nothing waits for a request, the body that would be late first makes room
        (never, [GET, SOME, *[HEAD % 9] * 4], [2, 3]),
        # what is refused already is not waited for, however long its body
        (at_once, [SOME, HEAD % 9, HEAD % 9, HEAD % 9, HEAD % 9, b""], [0, 1]),
    ],
    ids=["idle", "slow", "refused"],
)
def test_beyond_a_number_idle_and_slow_connections_make_room(
    library: str, app: Any, firsts: list[bytes], aborted: list[int]
) -> None:
    """Six come for four places."""

    async def work() -> list[bool]:
        import uvicorn
        from uvicorn.server import ServerState

        config = uvicorn.Config(app, log_level="critical")
        config.load()
        made: Any = make_timed_protocol(library, RequestLimits(max_connections=4))  # type: ignore[arg-type]
        loop, opened = asyncio.get_running_loop(), []
        for first in firsts:
            protocol = made(config=config, server_state=ServerState(), app_state={}, _loop=loop)
            transport = Mock()
            transport.is_closing.return_value = False
            transport.get_extra_info.return_value = None
            transport.abort.side_effect = lambda one=protocol: one.connection_lost(None)
            protocol.connection_made(transport)
            for piece in (first[:80], first[80:]):
                if piece:
                    protocol.data_received(piece)
            await asyncio.sleep(1)
            opened.append((protocol, transport))
        aborted = [transport.abort.called for _, transport in opened]
        for protocol, _ in opened:
            protocol.connection_lost(None)
            for task in list(protocol.tasks):
                task.cancel()
        return aborted

    assert [number for number, gone in enumerate(run(work())) if gone] == aborted
