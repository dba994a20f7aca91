"""Type aliases of NumPy arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Booleans", "Bytes", "CellCodes", "Floats", "Indices", "Integers", "Words"]

Array: TypeAlias = NDArray[Any]
Booleans: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
CellCodes: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Integers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
