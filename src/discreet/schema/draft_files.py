"""Drafts of schemas as they are in files, with places that are still open."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.errors import FormatError, SchemaError
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import parse_document
from discreet.files.yaml_text import convert_yaml_to_json
from discreet.schema.drafting import ColumnDraft, FeatureKind, SchemaDraft
from discreet.schema.schema import FILL_IN_MARK, Categorical, Schema

__all__ = ["coerce_draft", "merge_draft", "read_draft"]


def coerce_draft(value: Any) -> SchemaDraft:
    """Return a draft from a draft, a schema, or the path of a file of either.

    Parameters
    ----------
    value : SchemaDraft, Schema, str or path
    """
    if isinstance(value, SchemaDraft):
        return value
    if isinstance(value, Schema):
        _require_known(value.inferred, value.inference)
        columns = tuple(
            ColumnDraft(feature.name, "categorical", values=feature.values)
            if isinstance(feature, Categorical)
            else ColumnDraft(
                feature.name,
                "numeric",
                feature.integer,
                bounds=(feature.lower, feature.upper) if feature.is_bounded else None,
            )
            for feature in value.features
        )
        columns = tuple(replace(column, optional=value[column.name].optional) for column in columns)
        return SchemaDraft(columns, value.target, value.classes)
    return read_draft(value)


def read_draft(path: str | Path) -> SchemaDraft:
    """Read a draft from a YAML or JSON file; a place with the mark FILL-IN is open.

    Parameters
    ----------
    path : path
    """
    with error_context(path):
        text = read_text(path)
        if Path(path).suffix.lower() in (".yaml", ".yml"):
            text = convert_yaml_to_json(text, "schema", keep_spelling=True)
        if FILL_IN_MARK not in text:
            return coerce_draft(Schema.from_json(text))
        document = parse_document(text, "schema")
        _require_known(document.get("inferred"), document.get("inference"))
        entries, target = document.get("features"), document.get("target")
        if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
            entries = {str(entry.get("name")): entry for entry in entries}
        if not isinstance(entries, dict):
            raise FormatError("its features are not a list of columns; write one with schema new")
        classes = document.get("classes")
        if isinstance(target, dict) and len(target) == 1:
            ((target, classes),) = target.items()
        columns = tuple(_read_column(name, entry) for name, entry in entries.items())
        draft = SchemaDraft(columns, classes=None if _is_open(classes) else tuple(classes or ()))
        return replace(draft, target="" if _is_open(target) else str(target))


def _require_known(inferred: Any, inference: Any) -> None:
    """Refuse a schema that came from data: what it says would pass for known without them."""
    if inferred or inference:
        price_text = "without any promise" if inferred else "for a price"
        raise SchemaError(
            f"this schema was inferred from data {price_text}, and a draft says what is known "
            "without them; leave it out and infer all columns together, or write what you know"
        )


def _read_column(name: str, entry: Any) -> ColumnDraft:
    """A column of a draft, in the long form or in one line, open or not."""
    if FILL_IN_MARK not in json.dumps(entry):
        features = [entry] if isinstance(entry, dict) and "name" in entry else {name: entry}
        document = {"format": "discreet/schema", "version": Schema.version, "features": features}
        placeholder = {"target": f"not {name}", "classes": ["no", "yes"]}
        return coerce_draft(Schema.from_json(json.dumps({**document, **placeholder}))).columns[0]
    if not isinstance(entry, dict):
        return _read_open_line(name, entry)
    kind = entry.get("kind")
    if kind not in ("numeric", "categorical", FILL_IN_MARK):
        raise FormatError(
            f"{name}: its kind is {kind!r}; write numeric or categorical, or leave {FILL_IN_MARK}"
        )
    bounds, values = (entry.get("lower"), entry.get("upper")), entry.get("values")
    has_bounds = kind == "numeric" and not any(map(_is_open, bounds))
    has_values = kind == "categorical" and not _is_open(values)
    return ColumnDraft(
        name,
        "" if kind == FILL_IN_MARK else kind,
        entry.get("integer") is True,
        values=tuple(values or ()) if has_values else None,
        bounds=(float(bounds[0] or 0), float(bounds[1] or 0)) if has_bounds else None,
        optional=entry.get("optional") is not False,
    )


def _read_open_line(name: str, line: Any) -> ColumnDraft:
    """A column in one line with a mark: a list, a range, or nothing but the mark."""
    if isinstance(line, list) or str(line).startswith("one of"):
        return ColumnDraft(name, "categorical", optional=isinstance(line, list))
    text = str(line)
    is_optional = not text.endswith("never missing")
    if " by " in text:
        return ColumnDraft(name, type="date", optional=is_optional)
    kind: FeatureKind = "numeric" if ".." in text else ""
    return ColumnDraft(name, kind, "whole" in text, optional=is_optional)


def _is_open(value: Any) -> bool:
    return (
        value is None
        or value == FILL_IN_MARK
        or (isinstance(value, list) and FILL_IN_MARK in value)
    )


def merge_draft(draft: SchemaDraft, known: SchemaDraft) -> SchemaDraft:
    """Complete the columns of a table with what another draft says; others are left out.

    Parameters
    ----------
    draft : SchemaDraft
        The columns of a table.
    known : SchemaDraft
        What is known of some of them.
    """
    column_by_name = {column.name: column for column in draft.columns}
    if draft.target and known.target and draft.target != known.target:
        raise SchemaError(
            f"the draft's target is {known.target}, not {draft.target}; name one and the same"
        )
    target = draft.target or known.target
    known_columns = [column for column in known.columns if column.name != target]
    missing_names = [column.name for column in known_columns if column.name not in column_by_name]
    if missing_names:
        raise SchemaError(
            f"the draft has the columns {', '.join(missing_names)}, which the table lacks; it has "
            f"{', '.join(column_by_name)}"
        )
    columns = tuple(
        replace(column, type=column_by_name[column.name].type)
        if column.kind
        else replace(column_by_name[column.name], optional=column.optional)
        for column in known_columns
    )
    classes = draft.classes if known.classes is None else known.classes
    return replace(draft, columns=columns, target=target, classes=classes)
