"""Settings of a server, validated once."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import FormatError

__all__ = ["ServerSettings"]


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server.

    Parameters
    ----------
    base_url : str
        The public address of the server, such as ``https://survey.example.org``.
    rate, burst : float
        Requests per second and at once from one address
        (:class:`~discreet.server.limits.RateLimiter`).
    settle_interval : float
        Seconds between two rounds of upkeep, which settle where enough reports wait.
    contact : str
        For ``/.well-known/security.txt``: an address such as ``mailto:security@example.org``.
    """

    base_url: str = "http://127.0.0.1:8000"
    rate: float = 30.0
    burst: float = 600.0
    settle_interval: float = 5.0
    contact: str = ""

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")) or self.base_url.endswith("/"):
            raise FormatError(
                f"the address is {self.base_url!r}; write it as https://survey.example.org, "
                "without a slash at the end"
            )
        if not (self.rate >= 0 and self.burst >= 1 and self.settle_interval > 0):
            raise FormatError("rate is at least 0, burst at least 1, settle_interval above 0")

    @property
    def is_secure(self) -> bool:
        """Whether the server is reached by https."""
        return self.base_url.startswith("https://")
