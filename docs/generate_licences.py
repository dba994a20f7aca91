"""List the licences of everything that discreet installs, and refuse what is not compatible.

    python docs/generate_licences.py
    python docs/generate_licences.py SBOM   leaves in a list of parts (CycloneDX) what users install

Reads the metadata of the installed distributions: discreet, its extras, and what these need.
``make release`` runs it; tests/test_release.py compares it with docs/licences.md.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

EXTRAS = ("", "server", "federated", "postgres", "export")
"""What is installed for users; the tools of tests, documents and measurements are not shipped."""

KNOWN = {"skops": "MIT"}
"""Where the metadata names none, what the LICENSE file in the distribution says."""
ALIASES = {
    "mit": "MIT", "bsd": "BSD", "apache": "Apache-2.0", "psf": "PSF-2.0",
    "python software foundation": "PSF-2.0", "mpl": "MPL-2.0", "mozilla": "MPL-2.0",
    "lgpl": "LGPL", "lesser general public": "LGPL", "isc": "ISC", "zlib": "Zlib",
    "unlicense": "Unlicense", "0bsd": "0BSD",
}  # fmt: skip
COMPATIBLE = {
    "MIT", "BSD", "Apache-2.0", "PSF-2.0", "MPL-2.0", "LGPL", "ISC", "Zlib", "Unlicense", "0BSD",
}  # fmt: skip
"""May be used by a program under Apache-2.0; LGPL and MPL parts are imported, not copied."""


def needed(name: str, extra: str = "") -> Iterator[str]:
    """Distributions that one needs on this machine."""
    for text in distribution(name).requires or ():
        one = Requirement(text)
        if one.marker is None or one.marker.evaluate({"extra": extra}):
            yield _plain(one.name)
            for more in one.extras:
                yield from needed(one.name, more)


def closure() -> list[str]:
    """Everything that ``pip install discreet[…]`` brings, with the extras of users."""
    found: set[str] = set()
    waiting = [one for extra in EXTRAS for one in needed("discreet", extra)]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            distribution(name)
        except PackageNotFoundError:  # for another system or Python
            continue
        found.add(name)
        waiting += needed(name)
    return sorted(found)


def licences(name: str) -> list[str]:
    """The licences of a distribution by their usual short names; any of several may be chosen."""
    if name in KNOWN:
        return [KNOWN[name]]
    data = distribution(name).metadata
    stated = data.get("License-Expression") or ""
    stated = stated or " / ".join(
        one.split(" :: ")[-1]
        for one in data.get_all("Classifier") or ()
        if one.startswith("License ::")
    )
    stated = stated or (data.get("License") or "").split("\n")[0]
    said = stated.lower()
    found = [short for words, short in ALIASES.items() if re.search(rf"\b{words}", said)]
    return sorted(set(found)) or [stated or "unknown"]


def table() -> str:
    """The page."""
    lines = [
        "# Licences of what is installed",
        "",
        "discreet is under Apache-2.0. Everything that it installs with the extras "
        + ", ".join(f"`{one}`" for one in EXTRAS if one)
        + " may be used by it. Made by `docs/generate_licences.py`.",
        "",
        "| distribution | licence |",
        "|---|---|",
    ]
    lines += [f"| {name} | {', '.join(licences(name))} |" for name in closure()]
    return "\n".join(lines) + "\n"


def incompatible() -> list[str]:
    """Distributions none of whose licences may be used."""
    return [name for name in closure() if not set(licences(name)) & COMPATIBLE]


def cut(parts: dict[str, Any]) -> dict[str, Any]:
    """A list of all parts of this environment without the tools of tests and documents.

    Parameters
    ----------
    parts : dict
        A CycloneDX document.
    """
    wanted = set(closure())
    kept = [one for one in parts["components"] if _plain(one["name"]) in wanted]
    refs = {one["bom-ref"] for one in kept} | {parts["metadata"]["component"]["bom-ref"]}
    links = [
        {**one, "dependsOn": [ref for ref in one.get("dependsOn", ()) if ref in refs]}
        for one in parts.get("dependencies", ())
        if one["ref"] in refs
    ]
    return {**parts, "components": kept, "dependencies": links}


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


if __name__ == "__main__":
    if bad := incompatible():
        raise SystemExit(f"not compatible, or unknown: {', '.join(bad)}")
    if len(sys.argv) > 1:
        sbom = Path(sys.argv[1])
        sbom.write_text(json.dumps(cut(json.loads(sbom.read_text("utf-8"))), indent=1), "utf-8")
    else:
        Path(__file__).with_name("licences.md").write_text(table(), "utf-8")
