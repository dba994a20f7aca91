"""Settings of a server, validated once."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import FormatError

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Settings of a server.

    Parameters
    ----------
    base : str
        The public address of the server, such as ``https://survey.example.org``.
    rate, burst : float
        Requests per second and at once from one address (:class:`~discreet.server.limits.Limits`).
    settle_every : float
        Seconds between two rounds of upkeep, which settle where enough reports wait.
    contact : str
        For ``/.well-known/security.txt``: an address such as ``mailto:security@example.org``.
    """

    base: str = "http://127.0.0.1:8000"
    rate: float = 30.0
    burst: float = 600.0
    settle_every: float = 5.0
    contact: str = ""

    def __post_init__(self) -> None:
        if not self.base.startswith(("http://", "https://")) or self.base.endswith("/"):
            raise FormatError(
                f"the address is {self.base!r}; write it as https://survey.example.org, without a "
                "slash at the end"
            )
        if not (self.rate >= 0 and self.burst >= 1 and self.settle_every > 0):
            raise FormatError("rate is at least 0, burst at least 1, settle_every above 0")

    @property
    def secure(self) -> bool:
        """Whether the server is reached by https."""
        return self.base.startswith("https://")
