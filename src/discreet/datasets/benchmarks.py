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

from discreet.datasets.generated import Dataset, make_balance_scale
from discreet.errors import FormatError, PrivacyWarning
from discreet.files.atomic_writing import read_text
from discreet.files.documents import parse_document
from discreet.schema.schema import Categorical, Schema

__all__ = ["get_folder", "is_available", "list_names", "load"]

FOLDER_VARIABLE = "DISCREET_DATA"


class _OpenMLTable(NamedTuple):
    """Name, version and shape of a table at OpenML, where names are not unique."""

    name: str
    version: int
    rows: int
    features: int
    classes: int


OPENML_TABLES = {
    "adult": _OpenMLTable("adult", 2, 48842, 14, 2),
    "australian": _OpenMLTable("Australian", 4, 690, 14, 2),
    "balance_scale": _OpenMLTable("balance-scale", 1, 625, 4, 3),
    "breast_cancer": _OpenMLTable("breast-cancer", 1, 286, 9, 2),
    "breast_cancer_wisconsin": _OpenMLTable("breast-w", 1, 699, 9, 2),
    "car": _OpenMLTable("car", 1, 1728, 6, 4),
    "chess": _OpenMLTable("kr-vs-kp", 1, 3196, 36, 2),
    "connect4": _OpenMLTable("connect-4", 2, 67557, 42, 3),
    "diabetes": _OpenMLTable("diabetes", 1, 768, 8, 2),
    "glass": _OpenMLTable("glass", 1, 214, 9, 6),
    "mushroom": _OpenMLTable("mushroom", 1, 8124, 22, 2),
    "seeds": _OpenMLTable("seeds", 1, 210, 7, 3),
    "skin": _OpenMLTable("skin-segmentation", 1, 245057, 3, 2),
    "spect": _OpenMLTable("SPECT", 1, 267, 22, 2),
    "splice": _OpenMLTable("splice", 1, 3190, 60, 3),
}


def list_names() -> tuple[str, ...]:
    """Names of the benchmark tables that :func:`load` knows."""
    return tuple(OPENML_TABLES)


def get_folder() -> Path | None:
    """The folder of benchmark tables that ``DISCREET_DATA`` names, if it exists."""
    folder_name = os.environ.get(FOLDER_VARIABLE)
    return Path(folder_name) if folder_name and Path(folder_name).is_dir() else None


def is_available(name: str, folder: str | Path | None = None) -> bool:
    """Whether :func:`load` finds this table on this machine, without a network.

    Parameters
    ----------
    name : str
        A benchmark table, as :func:`list_names` lists them, or one of your own in the same form.
    folder : str or Path, optional
        Where to look; the folder that ``DISCREET_DATA`` names if not given.
    """
    return name == "balance_scale" or _find_folder(name, folder) is not None


def load(name: str, folder: str | Path | None = None) -> Dataset:
    """Load a benchmark table.

    Parameters
    ----------
    name : str
        One of :func:`list_names`, or a table of your own in the folder, in the same form.
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
    if table_folder := _find_folder(name, folder):
        return _read_table(name, table_folder)
    if name not in OPENML_TABLES:
        close_names = difflib.get_close_matches(str(name), OPENML_TABLES, n=3)
        hint = f"did you mean {' or '.join(close_names)}? " if close_names else ""
        raise FormatError(
            f"there is no benchmark table {name!r}; {hint}there are {', '.join(OPENML_TABLES)} "
            "(and, generated, mortgage)"
        )
    if name == "balance_scale":
        return make_balance_scale()
    if folder is not None:
        raise FormatError(f"{folder}: lacks {name}.csv.gz and {name}.json; put both there")
    return _fetch_table(name)


def _find_folder(name: str, chosen_folder: str | Path | None) -> Path | None:
    table_folder = get_folder() if chosen_folder is None else Path(chosen_folder)
    # one file without the other is a broken table, which _read_table reports, not an absent one
    table_files = (
        [table_folder / f"{name}.csv.gz", table_folder / f"{name}.json"] if table_folder else []
    )
    return table_folder if any(path.is_file() for path in table_files) else None


def _read_table(name: str, table_folder: Path) -> Dataset:
    import pandas as pd

    description = read_text(table_folder / f"{name}.json")
    description_facts = parse_document(description, "dataset description")
    schema = Schema.from_json(description)
    text = _unpack_table(table_folder / f"{name}.csv.gz", description_facts.get("sha256"))
    text_columns = [
        feature.name for feature in schema.features if isinstance(feature, Categorical)
    ] + [schema.target]
    number_columns = [
        column_name for column_name in schema.names if column_name not in text_columns
    ]
    column_types: dict[str, Any] = dict.fromkeys(text_columns, object) | dict.fromkeys(
        number_columns, np.float64
    )
    missing_tokens = {column_name: ["", *schema.missing_tokens] for column_name in number_columns}
    try:
        frame = pd.read_csv(
            io.BytesIO(text),
            dtype=column_types,
            keep_default_na=False,
            na_values=missing_tokens or None,
        )
    except ValueError as error:
        raise FormatError(f"{name}.csv.gz: does not fit {name}.json: {error}") from None
    if list(frame.columns) != [*schema.names, schema.target] or len(frame) != description_facts.get(
        "rows"
    ):
        raise FormatError(
            f"{name}.csv.gz: its columns or its {len(frame)} rows are not those that {name}.json "
            "lists; fetch both files again"
        )
    for feature in schema.features:
        column = frame[feature.name]
        if isinstance(feature, Categorical):
            text_values = column.to_numpy(dtype=object, copy=True)
            text_values[column.isin(schema.missing_tokens).to_numpy()] = None
            frame[feature.name] = pd.Series(text_values, dtype=object)
        elif feature.integer and not column.isna().any():
            frame[feature.name] = column.astype(np.int64)
    return Dataset(
        name,
        str(description_facts.get("title", name)),
        schema,
        frame,
        str(description_facts.get("source", "")),
    )


def _unpack_table(path: Path, stated_hash: object) -> bytes:
    try:
        text = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise FormatError(
            f"{path}: this file is missing, only its description is there; fetch it again"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{path}: cannot be unpacked: {error}; fetch it again") from None
    actual_hash = hashlib.sha256(text).hexdigest()
    if stated_hash != actual_hash:
        raise FormatError(
            f"{path}: damaged or changed: its description says sha256 {str(stated_hash)[:16]}…, "
            f"its content has {actual_hash[:16]}…; fetch both files again"
        )
    return text


def _fetch_table(name: str) -> Dataset:
    import pandas as pd
    from sklearn.datasets import fetch_openml

    openml_table = OPENML_TABLES[name]
    table_address = f"OpenML {openml_table.name}, version {openml_table.version}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its retries; the last failure is reported below
            bunch = fetch_openml(
                openml_table.name, version=openml_table.version, as_frame=True, parser="auto"
            )
    except Exception as error:  # the network, a proxy, a full disk, a moved table: all the same
        raise FormatError(
            f"{name}: not found. Either set {FOLDER_VARIABLE} to a folder with {name}.csv.gz and "
            f"{name}.json, or allow scikit-learn to download it ({table_address}); that failed "
            f"with {type(error).__name__}: {error}"
        ) from error
    target = bunch.target.name
    frame = bunch.frame[[*bunch.data.columns, target]].reset_index(drop=True)
    table_shape = (len(frame), frame.shape[1] - 1, frame[target].nunique())
    if table_shape != openml_table[2:]:
        raise FormatError(
            f"{name}: {table_address} has (rows, features, classes) {table_shape} where the UCI "
            f"table has {tuple(openml_table[2:])}; set {FOLDER_VARIABLE} to a folder with "
            f"{name}.csv.gz and {name}.json"
        )
    for column in frame.columns:
        if column == target or not pd.api.types.is_numeric_dtype(frame[column]):
            text_values = [
                None if pd.isna(cell_value) else str(cell_value) for cell_value in frame[column]
            ]
            frame[column] = pd.Series(text_values, dtype=object)
    with warnings.catch_warnings():
        # Public benchmark rows: learning bounds and categories from them harms no privacy.
        warnings.simplefilter("ignore", PrivacyWarning)
        schema = Schema.infer(frame, target)
    return Dataset(name, openml_table.name, schema, frame[[*schema.names, target]], table_address)
