"""YAML that people write, turned into the JSON that programs read."""

from __future__ import annotations

import json
from typing import Any

from discreet.errors import FormatError
from discreet.files.documents import abbreviate_key, add_article

__all__ = [
    "SET_REFUSAL",
    "convert_yaml_to_json",
]

SET_REFUSAL = (
    "is a set, whose order, and with it the digest, changes from process to process; write a list"
)
"""Why sets are refused in documents."""

MAX_YAML_CHARS = 1 << 20
"""Characters in a hand-written YAML file."""


def convert_yaml_to_json(text: str, kind: str) -> str:
    """Convert hand-written YAML to JSON; words stay text, references are refused."""
    import yaml

    if len(text) > MAX_YAML_CHARS:
        raise FormatError(f"this YAML has {len(text)} characters, the limit is {MAX_YAML_CHARS}")

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

    try:
        document = yaml.load(text, Plain)
        return json.dumps(_convert_booleans(document), allow_nan=False)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(
            f"this is not {add_article(kind)} in YAML: {_describe_yaml_fault(error)}"
        ) from None


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


YAML_TAGS_KEPT = ("int", "float", "null", "merge")


def _convert_booleans(value: Any, key: str | None = None) -> Any:
    """Convert the words true and false to booleans; other words stay text."""
    if isinstance(value, set):  # !!set
        raise FormatError(f"{'a value' if key is None else abbreviate_key(key)} {SET_REFUSAL}")
    if isinstance(value, dict):
        return {str(key): _convert_booleans(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_convert_booleans(item) for item in value]
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
