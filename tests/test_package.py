"""What the house promises about itself: quick imports, small rooms, doors in the right places."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent
HEAVY = {"sklearn", "scipy", "pandas", "ibis", "duckdb", "pyarrow", "rich", "pydantic", "numpy"}

# What runs at a respondent or provider must not import what runs at a collector, and back.
SIDES = {
    "respondent": {"local/respondent.py", "survey/respondent.py", "federated/service/provider.py"},
    "collector": {"local/tally.py", "survey/tally.py", "federated/service/server.py", "server"},
}


def imported_after(statement):
    script = f"{statement}\nimport sys\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_import_discreet_imports_nothing_heavy():
    assert not imported_after("import discreet") & HEAVY


def test_a_schema_needs_no_scikit_learn_and_no_pandas():
    after = imported_after("from discreet import Schema, Guarantee, CryptoRandom")
    assert not after & {"sklearn", "scipy", "pandas", "ibis", "duckdb", "pyarrow", "rich"}


def test_the_public_names_are_these():
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    assert set(discreet.__all__) >= {
        "Schema",
        "Categorical",
        "Numeric",
        "Guarantee",
        "Statistics",
        "NaiveBayesModel",
        "MixedNB",
        "estimate",
    }
    assert "MixedNB" in dir(discreet)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nonsense"):
        discreet.Nonsense  # noqa: B018


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def crossings(source):
    """Imports from one side of the collection to the other."""
    found = []
    for side, others in (("respondent", "collector"), ("collector", "respondent")):
        for entry in SIDES[side]:
            paths = [source / entry] if entry.endswith(".py") else (source / entry).rglob("*.py")
            forbidden = {
                "discreet." + one.removesuffix(".py").replace("/", ".") for one in SIDES[others]
            }
            found += [
                (path.name, module)
                for path in paths
                if path.exists()
                for module in imports_of(path)
                if any(module == one or module.startswith(one + ".") for one in forbidden)
            ]
    return found


def test_respondents_and_collectors_do_not_import_each_other(tmp_path):
    assert crossings(SOURCE) == []
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "respondent.py").write_text("from discreet.local.tally import Tally")
    assert crossings(tmp_path)  # the known-bad twin is found


def test_mechanisms_know_no_model_and_the_model_knows_no_mechanism():
    for path in (SOURCE / "mechanisms").glob("*.py"):
        assert not any("discreet.model" in module for module in imports_of(path)), path
    for path in (SOURCE / "model").glob("*.py"):
        assert not any("mechanisms" in module for module in imports_of(path)), path


def test_only_public_scikit_learn_is_used():
    for path in SOURCE.rglob("*.py"):
        for module in imports_of(path):
            if module.startswith("sklearn"):
                assert not any(part.startswith("_") for part in module.split(".")), (path, module)


def test_models_are_never_pickled_and_nothing_is_fetched_from_a_cdn():
    for path in SOURCE.rglob("*.py"):
        assert not {"pickle", "joblib", "cloudpickle", "marshal"} & set(imports_of(path)), path


TESTS = Path(__file__).parent
PLUGINS = {"pytest_xdist": "-n 2", "pytest_cov": "--cov", "coverage": "--cov"}
"""Test tools that are options of a command rather than imports."""


def unused_test_tools(requirements, sources, commands):
    """Distributions that no test imports and no command uses."""
    imported = {module.split(".")[0] for path in sources for module in imports_of(path)}
    skipping = r'importorskip\("(\w+)'
    imported |= {found for path in sources for found in re.findall(skipping, path.read_text())}
    names = [re.split(r"[^A-Za-z0-9_.-]", one)[0].replace("-", "_") for one in requirements]
    called = {name for name, option in PLUGINS.items() if option in commands}
    return [name for name in names if name not in imported | called]


def test_every_test_dependency_is_used_and_no_test_imports_a_benchmark():
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]
    requirements = project["optional-dependencies"]["test"]
    sources, commands = list(TESTS.rglob("*.py")), (TESTS.parent / "Makefile").read_text()
    assert unused_test_tools(requirements, sources, commands) == []
    twin = [*requirements, "schemathesis>=4.0"]
    assert unused_test_tools(twin, sources, commands) == ["schemathesis"]
    scripts = {path.stem for path in (TESTS.parent / "benchmarks").glob("*.py")}
    assert not {module for path in sources for module in imports_of(path)} & scripts
