"""YAML that people write, turned into the JSON that programs read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from discreet.errors import FormatError
from discreet.files.documents import abbreviate_key, add_article

__all__ = [
    "SET_REFUSAL",
    "convert_yaml_to_json",
    "format_yaml_list",
    "format_yaml_scalar",
]

SET_REFUSAL = (
    "is a set, whose order, and with it the digest, changes from process to process; write a list"
)
"""Why sets are refused in documents."""

MAX_YAML_CHARS = 1 << 20
"""Characters in a hand-written YAML file."""

YAML_TAGS_KEPT = ("int", "float", "null", "merge")
"""Types of YAML 1.1 that plain words may have; yes, no, on, off and dates are text."""

PLAIN_TEXT_PATTERN = re.compile(r"[A-Za-z_][\w.-]*( [\w.-]+)*")
"""Words that need no quotation marks in YAML, neither here nor in other programs."""


def convert_yaml_to_json(text: str, kind: str, keep_spelling: bool = False) -> str:
    """Convert hand-written YAML to JSON; words stay text, references are refused.

    Parameters
    ----------
    text : str
    kind : str
        What the text should hold, for errors.
    keep_spelling : bool, default False
        Whether plain numbers whose spelling would be lost stay text: ``012``, ``1.10``, ``1_000``.
    """
    import yaml

    if len(text) > MAX_YAML_CHARS:
        raise FormatError(f"this YAML has {len(text)} characters, the limit is {MAX_YAML_CHARS}")

    try:
        document = yaml.load(text, _make_loader(keep_spelling))
        return json.dumps(_convert_keys(document), allow_nan=False)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(
            f"this is not {add_article(kind)} in YAML: {_describe_yaml_fault(error)}"
        ) from None


def _make_loader(keep_spelling: bool) -> Any:
    """A loader for trees without references, repeated keys and words with hidden meanings."""
    import yaml

    class Plain(yaml.SafeLoader):  # type: ignore[misc]
        """YAML loader that keeps yes, no, on, off and dates as text and refuses references."""

        yaml_implicit_resolvers = {
            first_character: [
                (tag, regexp)
                for tag, regexp in resolvers
                if tag.rpartition(":")[2] in YAML_TAGS_KEPT
            ]
            for first_character, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def resolve(self, node_kind: Any, value: Any, implicit: Any) -> Any:
            tag = super().resolve(node_kind, value, implicit)
            if node_kind is not yaml.ScalarNode or not implicit[0]:
                return tag
            if value in ("true", "false"):
                return "tag:yaml.org,2002:bool"
            is_number = tag.endswith((":int", ":float"))
            is_respelt = is_number and keep_spelling and not _is_usual_number(value)
            return "tag:yaml.org,2002:str" if is_respelt else tag

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("references (*name) are not understood here")
            return super().compose_node(parent, index)

        def flatten_mapping(self, node: Any) -> None:
            seen_keys = set()
            for key_node, _ in node.value:  # here, because this is called for merged ones as well
                is_merge = key_node.tag == "tag:yaml.org,2002:merge"
                key = "<<" if is_merge else str(self.construct_object(key_node, deep=True))
                if key in seen_keys:
                    problem = f"the key {abbreviate_key(key)} is there twice in one mapping"
                    key_mark = key_node.start_mark
                    raise yaml.constructor.ConstructorError(
                        None, None, problem, key_mark, "remove one of them"
                    )
                seen_keys.add(key)
            super().flatten_mapping(node)

    return Plain


def _describe_yaml_fault(error: Exception) -> str:
    """Describe where YAML cannot be read and what usually helps, without quoting the file."""
    problem_mark = getattr(error, "problem_mark", None)
    if problem_mark is None:
        return " ".join(str(error).split())
    problem = getattr(error, "problem", "") or ""
    way_out = getattr(error, "note", None)
    if "'\\t'" in problem:
        problem = "a tab; indent with spaces"
    elif "mapping values" in problem:
        problem = "a colon inside a value; put the value in quotation marks"
    else:
        way_out = way_out or "check the indentation, quotation marks and brackets there"
        problem = f"{problem}; {way_out}"
    return f"line {problem_mark.line + 1}, column {problem_mark.column + 1}: {problem}"


def _is_usual_number(text: str) -> bool:
    """Whether a number is spelt as Python writes it, so that it can be spelt so again."""
    try:
        return str(int(text)) == text
    except ValueError:
        pass
    try:
        return repr(float(text)) == text and not float(text).is_integer()
    except ValueError:
        return False


def _convert_keys(value: Any, key: str | None = None) -> Any:
    """Convert keys to text, and refuse sets."""
    if isinstance(value, set):  # !!set
        raise FormatError(f"{'a value' if key is None else abbreviate_key(key)} {SET_REFUSAL}")
    if isinstance(value, dict):
        named_items = [(_format_key(key), item) for key, item in value.items()]
        return {key_text: _convert_keys(item, key_text) for key_text, item in named_items}
    return [_convert_keys(item) for item in value] if isinstance(value, list) else value


def _format_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def format_yaml_scalar(value: Any) -> str:
    """Format a word, number or truth value so that YAML reads it back, with its type.

    Parameters
    ----------
    value : str, int, float or bool

    Examples
    --------
    >>> [format_yaml_scalar(value) for value in ("no", "1.10", 1, 0.5, True, "true")]
    ['no', '"1.10"', '1', '0.5', 'true', '"true"']
    """
    if isinstance(value, float) and not ("." in repr(value) and _is_usual_number(repr(value))):
        return f"!!float {value!r}"  # YAML 1.1 has no 1e-05
    if not isinstance(value, str):
        return json.dumps(value)
    is_word = value.lower() in ("true", "false", "null", "inf", "nan")
    if PLAIN_TEXT_PATTERN.fullmatch(value) and not is_word:
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())


def format_yaml_list(values: Iterable[Any]) -> str:
    """Format words and numbers as a list in one line of YAML.

    Parameters
    ----------
    values : iterable of str, int, float or bool
    """
    return f"[{', '.join(format_yaml_scalar(value) for value in values)}]"
