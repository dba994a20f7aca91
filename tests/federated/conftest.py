"""Small keys for speed: 1024 bits are for tests only, and the code says so."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def small_key() -> Any:
    from discreet.federated.crypto.paillier import generate_key

    return generate_key(1024, allow_small=True)


@pytest.fixture(scope="session")
def real_key() -> Any:
    from discreet.federated.crypto.paillier import generate_key

    return generate_key(2048)
