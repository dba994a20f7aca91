"""Load the fifteen UCI tables from a folder, checked against their description, or from OpenML."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import os
import warnings
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.datasets.generated import Dataset, balance_scale
from discreet.documents import parse, read_text
from discreet.errors import FormatError, PrivacyWarning
from discreet.schema import Categorical, Schema

__all__ = ["available", "folder", "load", "names"]

VARIABLE = "DISCREET_DATA"


class _OpenML(NamedTuple):
    """Name, version and shape of a table at OpenML, where names are not unique."""

    name: str
    version: int
    rows: int
    features: int
    classes: int


OPENML = {
    "adult": _OpenML("adult", 2, 48842, 14, 2),
    "australian": _OpenML("Australian", 4, 690, 14, 2),
    "balance_scale": _OpenML("balance-scale", 1, 625, 4, 3),
    "breast_cancer": _OpenML("breast-cancer", 1, 286, 9, 2),
    "breast_cancer_wisconsin": _OpenML("breast-w", 1, 699, 9, 2),
    "car": _OpenML("car", 1, 1728, 6, 4),
    "chess": _OpenML("kr-vs-kp", 1, 3196, 36, 2),
    "connect4": _OpenML("connect-4", 2, 67557, 42, 3),
    "diabetes": _OpenML("diabetes", 1, 768, 8, 2),
    "glass": _OpenML("glass", 1, 214, 9, 6),
    "mushroom": _OpenML("mushroom", 1, 8124, 22, 2),
    "seeds": _OpenML("seeds", 1, 210, 7, 3),
    "skin": _OpenML("skin-segmentation", 1, 245057, 3, 2),
    "spect": _OpenML("SPECT", 1, 267, 22, 2),
    "splice": _OpenML("splice", 1, 3190, 60, 3),
}


def names() -> tuple[str, ...]:
    """Names of the benchmark tables that :func:`load` knows."""
    return tuple(OPENML)


def folder() -> Path | None:
    """The folder of benchmark tables that ``DISCREET_DATA`` names, if it exists."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named and Path(named).is_dir() else None


def available(name: str, folder: str | Path | None = None) -> bool:
    """Whether :func:`load` finds this table on this machine, without a network.

    Parameters
    ----------
    name : str
        A benchmark table, as :func:`names` lists them, or one of your own in the same form.
    folder : str or Path, optional
        Where to look; the folder that ``DISCREET_DATA`` names if not given.
    """
    return name == "balance_scale" or _find(name, folder) is not None


def load(name: str, folder: str | Path | None = None) -> Dataset:
    """Load a benchmark table.

    Parameters
    ----------
    name : str
        One of :func:`names`, or a table of your own in the folder, in the same form.
    folder : path, optional
        Where ``NAME.csv.gz`` and ``NAME.json`` are. By default the folder that ``DISCREET_DATA``
        names; if the table is not there, scikit-learn fetches it from OpenML (and keeps a copy in
        its data home). OpenML spells columns and classes its own way and has no public schema,
        so that one is then inferred.

    Raises
    ------
    FormatError
        If there is no such table, its file is damaged, or it could not be fetched.
    """
    if found := _find(name, folder):
        return _read(name, found)
    if name not in OPENML:
        close = difflib.get_close_matches(str(name), OPENML, n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise FormatError(
            f"there is no benchmark table {name!r}; {hint}there are {', '.join(OPENML)} "
            "(and, generated, mortgage)"
        )
    if name == "balance_scale":
        return balance_scale()
    if folder is not None:
        raise FormatError(f"{folder}: lacks {name}.csv.gz and {name}.json; put both there")
    return _fetch(name)


def _find(name: str, given: str | Path | None) -> Path | None:
    where = folder() if given is None else Path(given)
    # One file without the other is a broken table, which _read reports, and not an absent one.
    pair = [where / f"{name}.csv.gz", where / f"{name}.json"] if where else []
    return where if any(path.is_file() for path in pair) else None


def _read(name: str, where: Path) -> Dataset:
    import pandas as pd

    description = read_text(where / f"{name}.json")
    facts = parse(description, "dataset description")
    schema = Schema.from_json(description)
    text = _unpack(where / f"{name}.csv.gz", facts.get("sha256"))
    words = [f.name for f in schema.features if isinstance(f, Categorical)] + [schema.target]
    numbers = [key for key in schema.names if key not in words]
    types: dict[str, Any] = dict.fromkeys(words, object) | dict.fromkeys(numbers, np.float64)
    tokens = {key: ["", *schema.missing_tokens] for key in numbers}
    try:
        frame = pd.read_csv(
            io.BytesIO(text), dtype=types, keep_default_na=False, na_values=tokens or None
        )
    except ValueError as error:
        raise FormatError(f"{name}.csv.gz: does not fit {name}.json: {error}") from None
    if list(frame.columns) != [*schema.names, schema.target] or len(frame) != facts.get("rows"):
        raise FormatError(
            f"{name}.csv.gz: its columns or its {len(frame)} rows are not those that {name}.json "
            "lists; fetch both files again"
        )
    for feature in schema.features:
        column = frame[feature.name]
        if isinstance(feature, Categorical):
            cells = column.to_numpy(dtype=object, copy=True)
            cells[column.isin(schema.missing_tokens).to_numpy()] = None
            frame[feature.name] = pd.Series(cells, dtype=object)
        elif feature.integer and not column.isna().any():
            frame[feature.name] = column.astype(np.int64)
    return Dataset(name, str(facts.get("title", name)), schema, frame, str(facts.get("source", "")))


def _unpack(path: Path, stated: object) -> bytes:
    try:
        text = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise FormatError(
            f"{path}: this file is missing, only its description is there; fetch it again"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{path}: cannot be unpacked: {error}; fetch it again") from None
    actual = hashlib.sha256(text).hexdigest()
    if stated != actual:
        raise FormatError(
            f"{path}: damaged or changed: its description says sha256 {str(stated)[:16]}…, its "
            f"content has {actual[:16]}…; fetch both files again"
        )
    return text


def _fetch(name: str) -> Dataset:
    import pandas as pd
    from sklearn.datasets import fetch_openml

    entry = OPENML[name]
    place = f"OpenML {entry.name}, version {entry.version}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its retries; the last failure is reported below
            bunch = fetch_openml(entry.name, version=entry.version, as_frame=True, parser="auto")
    except Exception as error:  # the network, a proxy, a full disk, a moved table: all the same
        raise FormatError(
            f"{name}: not found. Either set {VARIABLE} to a folder with {name}.csv.gz and "
            f"{name}.json, or allow scikit-learn to download it ({place}); that failed with "
            f"{type(error).__name__}: {error}"
        ) from error
    target = bunch.target.name
    frame = bunch.frame[[*bunch.data.columns, target]].reset_index(drop=True)
    shape = (len(frame), frame.shape[1] - 1, frame[target].nunique())
    if shape != entry[2:]:
        raise FormatError(
            f"{name}: {place} has (rows, features, classes) {shape} where the UCI table has "
            f"{tuple(entry[2:])}; set {VARIABLE} to a folder with {name}.csv.gz and {name}.json"
        )
    for column in frame.columns:
        if column == target or not pd.api.types.is_numeric_dtype(frame[column]):
            cells = [None if pd.isna(cell) else str(cell) for cell in frame[column]]
            frame[column] = pd.Series(cells, dtype=object)
    with warnings.catch_warnings():
        # Public benchmark rows: learning bounds and categories from them harms no privacy.
        warnings.simplefilter("ignore", PrivacyWarning)
        schema = Schema.infer(frame, target)
    return Dataset(name, entry.name, schema, frame[[*schema.names, target]], place)
