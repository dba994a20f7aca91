"""Drafts of schemas as they are in files, with places that are still open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.errors import FormatError, SchemaError
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import parse_document
from discreet.files.yaml_text import convert_yaml_to_json
from discreet.schema.drafting import (
    ColumnDraft,
    SchemaDraft,
    drop_foreign_marks,
    list_open_parts,
)
from discreet.schema.schema import FILL_IN_MARK, Schema
from discreet.schema.short_form import NEVER_MISSING, read_feature

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
        columns = tuple(map(ColumnDraft.from_feature, value.features))
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
        classes = document.get("classes")
        if isinstance(target, dict) and len(target) == 1:
            ((target, classes),) = target.items()
        if isinstance(entries, dict):
            columns = tuple(_read_line(name, line) for name, line in entries.items())
        elif isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
            columns = tuple(_read_entry(entry) for entry in entries)
        else:
            raise FormatError("its features are not columns; write a draft with schema new")
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


def _read_line(name: str, line: Any) -> ColumnDraft:
    """A column in one line, of which a place may be open."""
    if isinstance(line, dict):
        return _read_entry({"name": name, **line})
    if not list_open_parts(line):
        return ColumnDraft.from_feature(read_feature(name, line))
    if isinstance(line, list):
        return ColumnDraft(name, "categorical")
    text = line.removesuffix(f", {NEVER_MISSING}")
    draft = ColumnDraft(name, optional=text == line)
    bounds_text, _, by = text.partition(" by ")
    if ".." in bounds_text:
        if by:
            return replace(draft, kind="date", by=by)
        return replace(draft, kind="numeric", integer=bounds_text.endswith(" whole"))
    return replace(draft, kind="categorical") if "[" in text else draft


def _read_entry(entry: dict[str, Any]) -> ColumnDraft:
    """A column in the long form, of which a place may be open."""
    name, kind = entry.get("name"), entry.get("kind")
    if not isinstance(name, str) or kind not in ("numeric", "categorical", "date", FILL_IN_MARK):
        raise FormatError(
            f"{name!r}: its kind is {kind!r}; write numeric, categorical or date, or leave "
            f"{FILL_IN_MARK}"
        )
    entry = drop_foreign_marks(entry)
    if not list_open_parts(entry):
        return ColumnDraft.from_feature(
            read_feature(name, {key: value for key, value in entry.items() if key != "name"})
        )
    return ColumnDraft(
        name,
        "" if kind == FILL_IN_MARK else kind,
        entry.get("integer") is True,
        optional=entry.get("optional") is not False,
        by=entry.get("by") or "month",
    )


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
