"""Reading tables piece by piece, and writing files whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError, FormatError

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.schema import Schema

__all__ = ["about", "batches", "folder", "read_model", "read_schema", "replacing", "write"]


@contextmanager
def about(path: str) -> Iterator[None]:
    """Errors that are raised inside begin with the name of the file they are about."""
    try:
        yield
    except DiscreetError as error:
        if str(error).startswith(path):
            raise
        raise type(error)(f"{path}: {error}") from None


def read_model(path: str) -> NaiveBayesModel:
    """Read a model file."""
    from discreet.model import NaiveBayesModel

    with about(path):
        return NaiveBayesModel.read(path)


def read_schema(path: str) -> Schema:
    """Read a schema file."""
    from discreet.schema import Schema

    with about(path):
        return Schema.read(path)


def batches(source: str, names: Sequence[str] | None = None) -> Iterator[Any]:
    """The columns of a CSV or Parquet file as Arrow batches, in the order of the file."""
    from discreet.tables.ordered import batches

    return batches(source, names)


def folder(path: str) -> Path:
    """A folder that exists; made if it does not."""
    made = Path(path)
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(f"{path}: cannot be made a folder: {error.strerror or error}") from None
    return made


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a new file to write to, which takes the place of ``path`` when all went well."""
    from discreet import documents  # which brings pydantic

    with documents.replacing(path) as draft:
        yield draft


def write(path: str | Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    with replacing(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
