"""What a schema cost that was inferred from people's data with noise."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from discreet.errors import SchemaError
from discreet.files.documents import Body

__all__ = ["ALL_ROWS_UNIT", "WHOLE_RECORD_UNIT", "InferenceCost", "InferenceCostBody"]

WHOLE_RECORD_UNIT = "one person's whole record"
"""What of a person is protected where each person has one row."""
ALL_ROWS_UNIT = "all rows of one person"
"""What of a person is protected where a person may have several rows."""


@dataclass(frozen=True)
class InferenceCost:
    """The promise under which bounds, categories and classes were taken from data.

    Every guarantee of statistics or a model of the schema includes it. It was charged when the
    schema was inferred, and is not charged to a ledger again.

    Parameters
    ----------
    epsilon : float
        Per person, about adding or removing the rows of a person.
    delta : float, default 0
    rho : float, optional
        Where the promise holds as rho-zCDP as well.
    unit : str
        What of a person is protected.
    charged : str
        When it was inferred, and paid for: ISO 8601.
    same_people : bool, default True
        Whether people of the table that it was inferred from may be in the tables that it is used
        for. False only if nobody is in both: guarantees then assume that instead of adding the
        cost.
    simulated : bool, default False
        Whether a seeded source drew the noise: then nothing is promised.
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    unit: str = WHOLE_RECORD_UNIT
    charged: str = ""
    same_people: bool = True
    simulated: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < float("inf") or not 0 <= self.delta < 1:
            raise SchemaError(
                f"inference: epsilon {self.epsilon!r} and delta {self.delta!r}; write what the "
                "schema cost, an epsilon above 0 and a delta of at least 0 and below 1"
            )
        if self.rho is not None and not self.rho >= 0:
            raise SchemaError(f"inference: rho is {self.rho!r}; it must be at least 0")

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return asdict(self)


class InferenceCostBody(Body):
    """Shape of an InferenceCost inside other documents."""

    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    unit: str = WHOLE_RECORD_UNIT
    charged: str = ""
    same_people: bool = True
    simulated: bool = False

    def to_cost(self) -> InferenceCost:
        """The value this shape stands for."""
        return InferenceCost(**self.model_dump())
