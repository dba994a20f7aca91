"""The graph of imports between the modules of the package, read from their source.

Every import counts, those inside functions too: what a function may load, the program may load.
Only what stands under ``if TYPE_CHECKING`` is left out, because no program ever runs it.

- Importing ``discreet.a.b`` runs ``discreet`` and ``discreet.a`` as well.
- ``from discreet.a import name`` is an edge to ``discreet.a.name`` where that is a module, and to
  the module that the stub of ``discreet.a`` names where that loads its names lazily.
- A module loaded by its text (``import_module``) is not seen; tests that run the program see it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

Graph = dict[str, set[str]]

FOLDERS = ("collection", "local", "survey", "federated", "server")
"""Folders with code of more than one party; every module of theirs has a role."""

ROLES = {
    "respondent": [
        "collection.respondent",
        "collection.store",
        "federated.alignment.owner",
        "federated.horizontal.provider",
        "federated.service.provider",
        "federated.vertical.label_provider",
        "federated.vertical.provider",
    ],
    "collector": [
        "collection.ingest",
        "collection.inversion",
        "collection.parquet_tally",
        "collection.tally",
        "federated.alignment.matcher",
        "federated.horizontal.collector",
        "federated.service.collector_session",
        "federated.service.server",
        "federated.vertical.collector",
        "local.inversion",
        "server.*",
        "survey.inversion",
    ],
    "receiver": [
        "federated.horizontal.receiver",
        "federated.service.receiver",
        "federated.vertical.receiver",
    ],
    "anyone": [
        "collection.announcement",
        "collection.answer_batches",
        "collection.batch_sizes",
        "collection.parquet_reports",
        "collection.protocol",
        "collection.report",
        "collection.sample_size",
        "collection.shuffle",
        "collection.shuffle_memory",
        "collection.simulation",
        "collection.text_reports",
        "collection.whole_answer_counts",
        "local.device",
        "local.judging",
        "local.plan",
        "local.planning",
        "local.question",
        "local.waves",
        "survey.beliefs",
        "survey.device",
        "survey.files",
        "survey.form",
        "survey.group",
        "survey.measure",
        "survey.predicate",
        "survey.promise",
        "survey.questionnaire",
        "survey.testing",
        "survey.variance",
        "survey.whole_sheet_em",
        "federated.agreement.description",
        "federated.agreement.identity",
        "federated.agreement.invitation",
        "federated.agreement.manifest",
        "federated.agreement.manifest_file",
        "federated.agreement.promise",
        "federated.agreement.signed",
        "federated.alignment.collector_session",
        "federated.alignment.owner_program",
        "federated.alignment.party",
        "federated.counters",
        "federated.crypto.curve25519",
        "federated.crypto.key_proof",
        "federated.crypto.masks",
        "federated.crypto.noise",
        "federated.crypto.packing",
        "federated.crypto.paillier",
        "federated.crypto.sealing",
        "federated.horizontal.arithmetic",
        "federated.judging",
        "federated.messages",
        "federated.payload",
        "federated.refusals",
        "federated.rehearsal",
        "federated.release",
        "federated.service.collector_answers",
        "federated.service.collector_client",
        "federated.service.message_transfer",
        "federated.service.patience",
        "federated.service.retrying_transport",
        "federated.service.routes",
        "federated.service.state_folder",
        "federated.service.status_reporter",
        "federated.service.transport",
        "federated.simulation",
        "federated.vertical.party",
        "federated.vertical.plaintext_layout",
        "federated.vertical.protocol",
        "federated.vertical.with_masks",
        "federated.vertical.with_paillier",
    ],
}
"""Who runs a module: patterns of names below ``discreet``; ``anyone`` is what all may load."""


def find_roles(module: str) -> list[str]:
    """The roles of a module; one without any would leave its side unseen."""
    name = module.removeprefix("discreet.")
    return [role for role, patterns in ROLES.items() if any(fnmatch(name, p) for p in patterns)]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def iter_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that can run."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if is_type_checking(node):
            assert isinstance(node, ast.If)
            for other in node.orelse:
                yield from (other, *iter_statements(other))
        else:
            yield from iter_statements(node)


def list_imports(path: Path) -> list[tuple[str, str | None]]:
    """Pairs of module and imported name (None for ``import module``)."""
    return _list_imports(path.read_text("utf-8"))


def read_exports(path: Path) -> dict[str | None, str]:
    """Name -> module, by the stub of a package that loads its names when they are asked for."""
    stub = path.with_suffix(".pyi")
    return {name: module for module, name in list_imports(stub)} if stub.exists() else {}


@cache
def _list_imports(text: str) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for node in iter_statements(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            found += [(str(node.module), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
    return found


def import_graph(source: Path) -> Graph:
    """Module -> the modules of the package that it may load, itself left out."""
    package = source.name
    files = {}
    for path in source.rglob("*.py"):
        parts = (package, *path.relative_to(source).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    homes = {name: read_exports(path) for name, path in files.items() if path.stem == "__init__"}

    def loaded(name: str, member: str | None) -> set[str]:
        assert name in files, f"{name} does not exist"
        found = {name, *ancestors(name)}
        if f"{name}.{member}" in files:
            return found | {f"{name}.{member}"}
        home = homes.get(name, {}).get(member)
        return found | loaded(home, member) if home else found

    graph: Graph = {}
    for module, path in files.items():
        edges = set(ancestors(module))
        for name, member in list_imports(path):
            if name.split(".")[0] == package:
                edges |= loaded(name, member)
        graph[module] = edges - {module}
    return graph


def ancestors(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:k]) for k in range(1, len(parts))]


def reached(graph: Graph, begin: Iterable[str]) -> dict[str, list[str]]:
    """Every module that ``begin`` may load, with one shortest way to it."""
    ways = {module: [module] for module in begin}
    queue = list(ways)
    for module in queue:
        for other in sorted(graph[module]):
            if other not in ways:
                ways[other] = [*ways[module], other]
                queue.append(other)
    return ways


def inside(module: str, folders: Iterable[str]) -> bool:
    """Whether a module is one of these or lies in one of these packages."""
    return any(module == one or module.startswith(one + ".") for one in folders)


def crossings(graph: Graph, begin: Iterable[str], forbidden: Iterable[str]) -> list[str]:
    """Ways from one side to the other, written out; none is what a boundary promises."""
    forbidden = list(forbidden)
    ways = reached(graph, begin)
    return sorted(" > ".join(way) for end, way in ways.items() if inside(end, forbidden))
