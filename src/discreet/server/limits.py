"""Rate limits in memory: nothing about an address is stored, and nothing outlives the process.

A bucket belongs to a keyed hash of the address (of IPv6 the first 64 bits); the key is drawn when
the process starts. It refills at a constant rate; each request takes one token.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["RateLimiter"]

MAX_ADDRESSES = 100_000
"""Addresses that are remembered; the one seen least recently is forgotten first."""


class RateLimiter:
    """Token buckets of requests by address.

    Parameters
    ----------
    rate : float
        Requests per second on average; 0 for no limit.
    burst : float
        Requests at once.
    clock : callable, optional
        Seconds.

    Examples
    --------
    >>> limits = RateLimiter(rate=1.0, burst=2.0, clock=lambda: 0.0)
    >>> [limits.allow_request("192.0.2.1") for _ in range(3)], limits.allow_request("192.0.2.2")
    ([True, True, False], True)
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._key = secrets.token_bytes(32)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def allow_request(self, address: str | None) -> bool:
        """Whether one more request may come from an address."""
        if not self.rate:
            return True
        bucket_key, current_time = self._hash_address(address or ""), self.clock()
        tokens_left, last_time = self._buckets.get(bucket_key, (self.burst, current_time))
        tokens_left = min(self.burst, tokens_left + (current_time - last_time) * self.rate)
        is_allowed = tokens_left >= 1
        self._buckets[bucket_key] = (tokens_left - is_allowed, current_time)
        self._buckets.move_to_end(bucket_key)
        if len(self._buckets) > MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        return is_allowed

    def _hash_address(self, address: str) -> bytes:
        try:
            parsed = ipaddress.ip_address(address)
            prefix = parsed.packed[:8] if parsed.version == 6 else parsed.packed
        except ValueError:
            prefix = address.encode()
        return hashlib.blake2b(prefix, key=self._key, digest_size=16).digest()
