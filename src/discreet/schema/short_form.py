"""Schemas with one line for each column: ``tenure: 0..72``, ``contract: [month, year]``.

The short form is a spelling only. It is read into the long form, whose JSON is canonical: the
digest of a schema is the same, whichever form it was written in.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from discreet.errors import FormatError, SchemaError
from discreet.files.documents import load_document, parse_json
from discreet.files.yaml_text import convert_yaml_to_json, format_yaml_list, format_yaml_scalar
from discreet.schema.dates import Date, DatePart
from discreet.schema.line_hints import DAY, NEVER_MISSING, NUMBER, list_likely_lines
from discreet.schema.schema import (
    VERSION,
    Categorical,
    Feature,
    Schema,
    SchemaBody,
    abbreviate_value,
)

__all__ = [
    "LINE_EXAMPLES",
    "NEVER_MISSING",
    "expand_document",
    "format_feature",
    "format_schema",
    "read_feature",
]

LINE_EXAMPLES = (
    "0..72 for numbers, [month, year] for categories, 2015-01-01..2026-12-31 by month or by "
    "weekday for dates"
)
"""What a column may say, as errors and drafts show it."""

MAX_WHOLE_DIGITS = 15
"""Digits up to which bounds are written as whole numbers."""

NUMERIC_LINE = re.compile(
    rf"(?:(?P<lower>{NUMBER})? *\.\. *(?P<upper>{NUMBER})?|number)(?:,? +(?P<integer>whole|real))?"
)
DATE_LINE = re.compile(
    rf"(?=.)(?:(?P<lower>{DAY}) *\.\. *(?P<upper>{DAY}))?(?:(?:^| +)by (?P<by>[a-z ]+))?"
)
CATEGORY_LINE = re.compile(r"one of (?P<values>\[.*\])")
WHOLE_BOUND = re.compile(r"[-+]?[0-9]+")


def expand_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return a schema's document in the long form; one in the long form comes back as it is.

    Parameters
    ----------
    document : dict
        As read from JSON or YAML. ``features`` may map names to lines, ``target`` its name to the
        classes.

    Raises
    ------
    SchemaError
        If a line is not understood; names the column, what was written, and what may be.
    """
    document = dict(document)
    features, target = document.get("features"), document.get("target")
    if isinstance(features, dict):
        document["features"] = [_expand_feature(name, line) for name, line in features.items()]
    if isinstance(target, dict):
        if len(target) != 1 or "classes" in document:
            raise SchemaError(
                "target: write the class column with its classes, such as target: {churned: [no, "
                "yes]}, and no classes besides"
            )
        ((document["target"], document["classes"]),) = target.items()
        if not isinstance(document["classes"], list):
            raise SchemaError(
                f"{document['target']}: its classes are {abbreviate_value(document['classes'])}; "
                f"write a list, such as target: {{{document['target']}: [no, yes]}}"
            )
    return document


def _expand_feature(name: str, line: Any) -> Any:
    """The long form of one column."""
    if isinstance(line, dict):  # the long form without its name
        if "name" in line:
            raise SchemaError(f"{name}: has its name twice; remove the key 'name'")
        return {"name": name, **line}
    if isinstance(line, list):
        return {"name": name, "kind": "categorical", "values": line}
    if not isinstance(line, str):
        raise _make_line_error(name, line)
    body = _expand_line(" ".join(line.split()))
    if body is None:
        raise _make_line_error(name, line)
    return {"name": name, **body}


def _expand_line(text: str) -> dict[str, Any] | None:
    """The long form of a line without its name; None if it is not understood."""
    is_optional = not text.endswith(f", {NEVER_MISSING}")
    body = _read_line(text.removesuffix(f", {NEVER_MISSING}"))
    return None if body is None else {**body, "optional": is_optional}


def _read_line(text: str) -> dict[str, Any] | None:
    """Kind, and bounds or values, of a line; None if it is not understood."""
    if matched_line := CATEGORY_LINE.fullmatch(text):
        try:
            values = parse_json(convert_yaml_to_json(matched_line["values"], "list", True))
        except FormatError:
            return None
        return {"kind": "categorical", "values": values}
    if matched_line := DATE_LINE.fullmatch(text):
        return {"kind": "date", **matched_line.groupdict()}
    if text in ("", "..") or not (matched_line := NUMERIC_LINE.fullmatch(text)):
        return None
    written_bounds = {key: matched_line[key] for key in ("lower", "upper") if matched_line[key]}
    is_whole = bool(written_bounds) and all(map(WHOLE_BOUND.fullmatch, written_bounds.values()))
    if matched_line["integer"]:
        is_whole = matched_line["integer"] == "whole"
    bounds = {key: float(written_bound) for key, written_bound in written_bounds.items()}
    if not all(map(math.isfinite, bounds.values())):
        return None
    return {"kind": "numeric", "integer": is_whole, **bounds}


def _make_line_error(name: str, line: Any) -> SchemaError:
    """The error about a line that is not understood, with what was probably meant."""
    key, text = format_yaml_scalar(name), " ".join(line.split()) if isinstance(line, str) else ""
    way_out = f"write {LINE_EXAMPLES}, such as {key}: 0..72"
    for likely_line in list_likely_lines(text):
        if likely_line.startswith("[") or _expand_line(likely_line) is not None:
            way_out = f"write {key}: {likely_line}"
            break
    problem = f"{abbreviate_value(line)} does not say what the column may hold"
    return SchemaError(f"{name}: {'its line is empty' if line is None else problem}; {way_out}")


def read_feature(name: str, line: Any) -> Feature:
    """Read the line of a column.

    Parameters
    ----------
    name : str
    line : str, list or dict
        As in a schema's document: ``0..72``, a list of categories, or the long form.

    Examples
    --------
    >>> read_feature("visited", "by weekday")
    DatePart(name='visited', by='weekday', optional=True)
    """
    body = {"features": [_expand_feature(name, line)], "target": "", "classes": []}
    document = {"format": "discreet/schema", "version": VERSION, **body}
    loaded_body = load_document(document, "schema", VERSION, SchemaBody, sealed=False)
    return loaded_body.features[0].to_feature()


def format_feature(feature: Feature) -> str:
    """Format a feature as the line of its column, in YAML.

    Parameters
    ----------
    feature : Categorical, Numeric, Date or DatePart

    Examples
    --------
    >>> from discreet import Date, Numeric
    >>> format_feature(Date("joined", "2015-01-01", "2026-12-31", by="month"))
    '2015-01-01..2026-12-31 by month'
    >>> format_feature(Numeric("tenure", 0, 72, integer=True))
    '0..72'
    >>> format_feature(Numeric("charge", 0, 120, optional=False))
    '0..120 real, never missing'
    >>> format_feature(Categorical("contract", ["month", "two years"]))
    '[month, two years]'
    """
    suffix = "" if feature.optional else f", {NEVER_MISSING}"
    if isinstance(feature, DatePart):
        return f"by {feature.by}{suffix}"
    if isinstance(feature, Date):
        return f"{feature.first}..{feature.last} by {feature.by}{suffix}"
    if isinstance(feature, Categorical):
        listed_values = format_yaml_list(feature.values)
        if feature.optional:
            return listed_values
        line = f"one of {listed_values}{suffix}"
        has_yaml_marks = ": " in line or " #" in line
        return json.dumps(line, ensure_ascii=not line.isprintable()) if has_yaml_marks else line
    bounds = [_format_bound(bound) for bound in (feature.lower, feature.upper)]
    line = "..".join(bounds) if any(bounds) else "number"
    written_bounds = [bound for bound in bounds if bound]
    is_whole = bool(written_bounds) and all(map(WHOLE_BOUND.fullmatch, written_bounds))
    kind_word = "" if is_whole == feature.integer else " whole" if feature.integer else " real"
    return line + kind_word + suffix


def _format_bound(bound: float) -> str:
    if not math.isfinite(bound):
        return ""
    is_short = bound.is_integer() and abs(bound) < 10**MAX_WHOLE_DIGITS
    return f"{bound:.0f}" if is_short else repr(bound)


def format_schema(schema: Schema) -> str:
    """Format a schema as YAML, with one line for each column.

    Parameters
    ----------
    schema : Schema
    """
    body: Mapping[str, Any] = schema.to_body()
    lines = ["format: discreet/schema", f"version: {VERSION}"]
    classes = format_yaml_list(schema.classes)
    lines.append(f"target: {{{format_yaml_scalar(schema.target)}: {classes}}}")
    for key, value in body.items():
        if (
            key in ("features", "target", "classes")
            or value == SchemaBody.model_fields[key].default
        ):
            continue
        is_scalar = isinstance(value, (str, bool))
        lines.append(f"{key}: {format_yaml_scalar(value) if is_scalar else json.dumps(value)}")
    lines.append("features:")
    for feature in schema.features:
        lines.append(f"  {format_yaml_scalar(feature.name)}: {format_feature(feature)}")
    return "\n".join(lines) + "\n"
