"""A small public schema, plans over it, and a record that fits."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.local.plan import Plan
from discreet.local.planning import PlanOptions, make_plan
from discreet.schema.schema import Categorical, Numeric, Schema

ORACLES = ("auto", "de", "sue", "oue", "she", "the", "ss", "olh", "hr")
GAUSSIAN: tuple[dict[str, Any], ...] = (
    {"approach": 1},
    {"approach": 2, "mechanism": "one-bit"},
    {"approach": 2, "mechanism": "duchi"},
    {"approach": 2, "mechanism": "piecewise"},
    {"approach": 3},
    {"approach": "hybrid"},
)
KINDS: tuple[dict[str, Any], ...] = (
    *({"oracle": name} for name in ORACLES),
    *({"numeric": "gaussian", **how} for how in GAUSSIAN),
)
"""Everything that a plan can be told to use."""


@pytest.fixture
def schema() -> Schema:
    return Schema(
        [
            Categorical("colour", ["red", "green", "blue"], optional=False),
            Categorical("smokes", [True, False]),
            Numeric("age", 18, 98, integer=True),
            Numeric("income", 0, 1000, optional=False),
        ],
        "sick",
        ["no", "yes"],
        missing_tokens=["?"],
    )


@pytest.fixture
def record() -> dict[str, Any]:
    return {"colour": "red", "smokes": True, "age": 30, "income": 12.5, "sick": "yes"}


@pytest.fixture
def plan(schema: Schema) -> Plan:
    return make_plan(schema, 1.0, 500)


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def any_plan(request: pytest.FixtureRequest, schema: Schema) -> Plan:
    return make_plan(schema, 1.0, 500, PlanOptions(**request.param))
