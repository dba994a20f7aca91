"""Small keys for speed: 1024 bits are for tests only, and the code says so."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

if importlib.util.find_spec("gmpy2") is None:  # the extra "federated" is not installed
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def small_key() -> Any:
    from discreet.federated.paillier import generate

    return generate(1024, allow_small=True)


@pytest.fixture(scope="session")
def real_key() -> Any:
    from discreet.federated.paillier import generate

    return generate(2048)
