"""Write docs/reference/ from the docstrings: every public name, its parameters, its examples.

    python docs/generate_reference.py [FOLDER]

``make docs`` runs it before the pages are built. A name is public if its module lists it in
``__all__``. What a class inherits without words of its own is taken from the class it inherits.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "discreet": ("Everything at the top", ("discreet",)),
    "tables": ("Tables and datasets", ("discreet.tables", "discreet.datasets")),
    "local": ("Local collections", ("discreet.local",)),
    "survey": ("Surveys", ("discreet.survey",)),
    "collection": (
        "What local collections and surveys share",
        ("discreet.collection.protocol", "discreet.collection.report",
         "discreet.collection.respondent", "discreet.collection.store",
         "discreet.collection.tally", "discreet.collection.parquet_tally",
         "discreet.collection.simulation", "discreet.collection.announcement"),
    ),
    "federated": (
        "Federated training",
        ("discreet.federated", "discreet.federated.horizontal", "discreet.federated.vertical",
         "discreet.federated.alignment"),
    ),
    "privacy": (
        "Promises and the ledger",
        ("discreet.privacy.guarantee", "discreet.privacy.rounding", "discreet.privacy.ledger"),
    ),
    "audit": ("Audits", ("discreet.audit",)),
    "mechanisms": (
        "Mechanisms",
        ("discreet.mechanisms.frequency", "discreet.mechanisms.mean",
         "discreet.mechanisms.response", "discreet.mechanisms.additive",
         "discreet.central.smooth_sensitivity", "discreet.randomness"),
    ),
    "model": (
        "Estimation and models",
        ("discreet.estimation", "discreet.model", "discreet.model.evaluation",
         "discreet.model.export"),
    ),
}  # fmt: skip
"""Page -> its title and the modules whose names it lists."""

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.M)
ENTRY = re.compile(r"^(\S[^\n]*)\n((?:(?:[ ]{4}[^\n]*)?\n)*)", re.M)


def sections(text: str) -> dict[str, str]:
    """A numpydoc docstring as its sections; what comes before the first has the name ""."""
    parts = SECTION.split(text + "\n")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(text: str) -> Iterator[tuple[list[str], str, str]]:
    """Names, type and description of the entries of a section such as Parameters."""
    for head, body in ENTRY.findall(text + "\n"):
        names, _, kind = head.partition(" : ")
        yield re.split(r",\s*", names), kind, inspect.cleandoc(body)


def document(thing: Any) -> dict[str, str]:
    """The sections of a docstring; of a class, Parameters may come from what it inherits."""
    found = sections(inspect.getdoc(thing) or "")
    if inspect.isclass(thing) and "Parameters" not in found:
        for base in thing.__mro__[1:-1]:
            inherited = sections((base.__doc__ and inspect.cleandoc(base.__doc__)) or "")
            if "Parameters" in inherited and base.__module__.startswith("discreet"):
                found["Parameters"] = inherited["Parameters"]
                break
    return found


def parameters(thing: Any) -> list[str]:
    """The names of the parameters a caller gives."""
    if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, BaseException)):
        return []
    if getattr(thing, "_is_protocol", False) or inspect.isabstract(thing):
        return []
    try:
        given = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in given if one.kind not in variable and one.name != "self"]


def undocumented(thing: Any) -> list[str]:
    """Parameters that the docstring does not explain."""
    text = document(thing).get("Parameters", "")
    known = {name.strip("*") for names, _, _ in entries(text) for name in names}
    return [name for name in parameters(thing) if name not in known]


def names_of(module: str) -> list[str]:
    """The public names of a module."""
    return sorted(importlib.import_module(module).__all__, key=str.lower)


def markdown(text: str) -> str:
    """The little markup that docstrings use, as Markdown."""
    text = re.sub(r":\w+:`~?([^`<]+?)`", r"`\1`", text)
    text = re.sub(r"``(.+?)``", r"`\1`", text)
    return re.sub(r"::\n\n", ":\n\n", text)


def signature(name: str, thing: Any) -> str:
    """The name with its parameters, annotations as they are written."""
    try:
        return name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(thing)))
    except (TypeError, ValueError):
        return name


def described(found: dict[str, str]) -> Iterator[str]:
    """The sections of a docstring as Markdown."""
    yield markdown(found.get("", "")).strip()
    for title in ("Parameters", "Attributes", "Returns", "Raises"):
        if title in found:
            yield f"**{title}**"
            lines = []
            for names, kind, text in entries(found[title]):
                shown = ", ".join(f"`{name}`" for name in names)
                plain = " ".join(markdown(text).split())
                lines.append(
                    f"- {shown}{f' ({kind})' if kind else ''}{f': {plain}' if plain else ''}"
                )
            yield "\n".join(lines)
    for title in ("Notes", "See Also"):
        if title in found:
            yield f"**{title}**\n\n{markdown(found[title]).strip()}"
    if "Examples" in found:
        yield f"```pycon\n{found['Examples'].strip()}\n```"


def members(thing: Any) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class of ours defines or inherits from ours."""
    seen = set()
    for base in thing.__mro__:
        if not base.__module__.startswith("discreet"):
            continue
        for name, value in vars(base).items():
            inner = getattr(value, "__func__", value)
            kind = inspect.isfunction(inner) or isinstance(value, property)
            if kind and not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, value


def entry(name: str, thing: Any) -> Iterator[str]:
    """One public name."""
    yield f"### `{name}`"
    if not (inspect.isclass(thing) or inspect.isroutine(thing) or hasattr(thing, "__wrapped__")):
        yield f"`{type(thing).__name__}`" if name != "__version__" else f"`{thing!r}`"
        return
    yield f"```python\n{signature(name, thing)}\n```"
    yield from described(document(thing))
    if inspect.isclass(thing):
        for member, value in members(thing):
            inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            shown = member if isinstance(value, property) else signature(member, inner)
            yield f"#### `{name}.{member}`\n\n```python\n{shown}\n```"
            yield from described(sections(inspect.getdoc(value) or ""))


def page(title: str, modules: tuple[str, ...]) -> str:
    """One page of the reference."""
    parts = [f"# {title}"]
    for module in modules:
        parts.append(f"## `{module}`")
        parts.append(
            markdown(inspect.getdoc(importlib.import_module(module)) or "").split("\n\n")[0]
        )
        for name in names_of(module):
            parts += entry(name, getattr(importlib.import_module(module), name))
    return "\n\n".join(part for part in parts if part) + "\n"


def write(folder: Path) -> list[Path]:
    """Write every page; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, (title, modules) in PAGES.items():
        path = folder / f"{name}.md"
        path.write_text(page(title, modules), "utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "reference"
    for path in write(folder):
        print(path)
