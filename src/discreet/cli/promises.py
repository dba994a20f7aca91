"""Files that make a promise, whichever trust model they belong to."""

from __future__ import annotations

from typing import Any

from discreet.cli.files import about, read_model
from discreet.errors import FormatError

__all__ = ["read_promising"]


def read_promising(path: str) -> Any:
    """Read whatever makes a promise: a plan, a questionnaire, a manifest or a model."""
    from discreet.collection.protocol import KINDS, collection_of
    from discreet.documents import parse, read_text

    with about(path):
        if path.endswith((".yaml", ".yml")):
            from discreet.survey.questionnaire import Questionnaire

            return Questionnaire.read(path)
        text = read_text(path)
        kind = str(parse(text, "document").get("format")).removeprefix("discreet/")
        if kind in KINDS:
            return collection_of(text)
        if kind == "manifest":
            from discreet.federated.agreement.manifest import Manifest

            return Manifest.from_json(text)
        if kind == "model":
            return read_model(path)
        raise FormatError(
            f"its format says {kind!r}; give a plan, a questionnaire, a manifest or a model"
        )
