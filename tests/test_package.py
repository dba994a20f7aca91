"""What the house promises about itself: quick imports, small rooms, doors in the right places."""

import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import filter as filter_names
from importlib import import_module
from itertools import permutations
from pathlib import Path

import pytest

import discreet
from discreet.exports import read_stub
from imports import FOLDERS, ROLES, crossings, find_roles, import_graph, inside, list_imports

SOURCE = Path(discreet.__file__).parent
HEAVY = {"sklearn", "scipy", "pandas", "ibis", "duckdb", "pyarrow", "rich", "pydantic", "numpy"}


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


LAZY_PACKAGES = [
    ".".join(("discreet", *stub.relative_to(SOURCE).parts[:-1]))
    for stub in sorted(SOURCE.rglob("__init__.pyi"))
]


def test_lazy_packages_have_a_stub():
    assert {"discreet", "discreet.local", "discreet.federated.vertical"} <= set(LAZY_PACKAGES)


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_the_stub_is_the_only_list_of_names(package):
    """Every name is there, in ``__all__``, ``dir`` and ``import *``, and is what its module has."""
    module = import_module(package)
    module_by_name = read_stub(Path(module.__file__).with_suffix(".pyi").read_text("utf-8"))
    assert dir(module) == sorted(module_by_name) != []
    assert {*module.__all__} - {"__version__"} == {*module_by_name}
    for name, home in module_by_name.items():
        assert getattr(module, name) is getattr(import_module(home), name)
    namespace = {}
    exec(f"from {package} import *", namespace)
    assert {*module.__all__} <= {*namespace}


def test_a_stub_exports_what_type_checkers_take_from_it():
    lines = (
        "from a.b import C as C, D as D\nfrom a import E\nfrom a import F as G\nimport h\nx: str"
    )
    assert read_stub(lines) == {"C": "a.b", "D": "a.b"}


def modules_of(path):
    for module, name in list_imports(path):
        yield module
        if name is not None:
            yield f"{module}.{name}"


@pytest.fixture(scope="module")
def graph():
    return import_graph(SOURCE)


def planted(tmp_path, module, line):
    """The graph of a copy of the package with one more import: a known-bad twin."""
    copy = tmp_path / "discreet"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / module
    path.write_text(path.read_text() + line + "\n")
    return import_graph(copy)


def everything_but(graph, *folders):
    return [module for module in graph if not inside(module, folders)]


def core_crossings(graph):
    outside = ["discreet.cli", "discreet.server"]
    return crossings(graph, everything_but(graph, *outside, "discreet.__main__"), outside)


def test_the_core_imports_neither_the_command_line_nor_the_server(graph, tmp_path):
    assert core_crossings(graph) == []
    late = "def late():\n    from discreet.cli.files import write"  # inside a function counts
    assert core_crossings(planted(tmp_path, "schema/cells.py", late))


def central_crossings(graph):
    begin = ["discreet.central", "discreet.estimators.central", "discreet.cli.train"]
    others = [f"discreet.{one}" for one in ("local", "survey", "federated", "collection")]
    return crossings(graph, [one for one in graph if inside(one, begin)], others)


def test_training_centrally_imports_no_other_trust_model(graph, tmp_path):
    assert central_crossings(graph) == []
    eager = "from discreet.estimators.local import LocalNB"  # two steps away from cli.train
    assert central_crossings(planted(tmp_path, "estimators/__init__.py", eager))


def side(graph, role):
    """The modules that one party runs."""
    return [module for module in list_modules_with_roles(graph) if role in find_roles(module)]


def list_modules_with_roles(graph):
    folders = [f"discreet.{folder}" for folder in FOLDERS]
    packages = {module.rpartition(".")[0] for module in graph}
    return [module for module in graph if inside(module, folders) and module not in packages]


def role_crossings(graph):
    return [
        way
        for role, other_role in permutations(("respondent", "collector", "receiver"), 2)
        for way in crossings(graph, side(graph, role), side(graph, other_role))
    ]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        (
            "federated/crypto/masks.py",
            "from discreet.federated.horizontal.collector import HorizontalCollector",
        ),
        ("federated/counters.py", "from discreet.federated.vertical import VerticalReceiver"),
        ("federated/messages.py", "import discreet.federated.vertical.provider"),
    ],
)
def test_no_party_imports_what_another_party_runs(graph, tmp_path, module, line):
    """Respondents and providers, collectors, receivers: each in modules of their own."""
    assert role_crossings(graph) == []
    assert role_crossings(planted(tmp_path, module, line))


def test_every_module_where_parties_meet_has_one_role(graph):
    """A renamed module must not leave its side unseen."""
    modules = list_modules_with_roles(graph)
    assert {module: find_roles(module) for module in modules if len(find_roles(module)) != 1} == {}
    patterns = [pattern for patterns in ROLES.values() for pattern in patterns]
    names = [module.removeprefix("discreet.") for module in modules]
    assert [pattern for pattern in patterns if not filter_names(names, pattern)] == []
    assert find_roles("discreet.local.renamed") == []


def server_crossings(graph):
    serving = [module for module in graph if inside(module, ["discreet.server"])]
    return crossings(graph, serving, side(graph, "respondent"))


def test_the_server_imports_nothing_that_runs_at_respondents(graph, tmp_path):
    """It only ever holds reports; what makes them is not even loaded."""
    assert any(inside(module, ["discreet.server"]) for module in graph)
    assert server_crossings(graph) == []
    line = "from discreet.collection.respondent import Respondent"
    assert server_crossings(planted(tmp_path, "server/intake.py", line))


def test_mechanisms_know_no_model_and_the_model_knows_no_mechanism():
    for path in (SOURCE / "mechanisms").glob("*.py"):
        assert not any("discreet.model" in module for module in modules_of(path)), path
    for path in (SOURCE / "model").glob("*.py"):
        assert not any("mechanisms" in module for module in modules_of(path)), path


def test_only_public_scikit_learn_is_used():
    for path in SOURCE.rglob("*.py"):
        for module in modules_of(path):
            if module.startswith("sklearn"):
                assert not any(part.startswith("_") for part in module.split(".")), (path, module)


def test_models_are_never_pickled_and_nothing_is_fetched_from_a_cdn():
    for path in SOURCE.rglob("*.py"):
        assert not {"pickle", "joblib", "cloudpickle", "marshal"} & set(modules_of(path)), path


TESTS = Path(__file__).parent
PLUGINS = {"pytest_xdist": "-n 2", "pytest_cov": "--cov", "coverage": "--cov"}
"""Test tools that are options of a command rather than imports."""
MODULES = {"zxing_cpp": "zxingcpp", "pillow": "PIL"}
"""Distributions whose modules have other names."""


def unused_test_tools(requirements, sources, commands):
    """Distributions that no test imports and no command uses."""
    imported = {module.split(".")[0] for path in sources for module in modules_of(path)}
    skipping = r'importorskip\("(\w+)'
    imported |= {found for path in sources for found in re.findall(skipping, path.read_text())}
    names = [re.split(r"[^A-Za-z0-9_.-]", one)[0].replace("-", "_") for one in requirements]
    called = {name for name, option in PLUGINS.items() if option in commands}
    return [name for name in names if MODULES.get(name, name) not in imported | called]


@pytest.mark.slow
def test_every_test_dependency_is_used_and_no_test_imports_a_benchmark():
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]
    requirements = project["optional-dependencies"]["test"]
    sources, commands = list(TESTS.rglob("*.py")), (TESTS.parent / "Makefile").read_text()
    assert unused_test_tools(requirements, sources, commands) == []
    twin = [*requirements, "tavern>=2.0"]
    assert unused_test_tools(twin, sources, commands) == ["tavern"]
    scripts = {path.stem for path in (TESTS.parent / "benchmarks").glob("*.py")}
    assert not {module for path in sources for module in modules_of(path)} & scripts


@pytest.mark.slow
def test_what_is_skipped_is_told_with_what_brings_it(monkeypatch):
    for name in ("DISCREET_DATA", "REQUIRE_DATA"):
        monkeypatch.delenv(name, raising=False)
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider"]

    def printed(*words):
        run = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True)
        return run.stdout

    told = r"skipped, and what brings it =+\n +[1-9]\d*  .*set DISCREET_DATA to their folder\n"
    assert re.search(told, printed("tests/test_schema.py", "-m", "data"))
    assert "what brings it" not in printed("tests/test_schema.py", "-m", "not data")


def imports_of_tests(folder):
    """Test modules that another module of the tests imports: helpers have modules of their own."""
    sources = list(folder.rglob("*.py"))
    tests = {path.stem for path in sources if path.stem.startswith("test_")}
    return {
        f"{path.relative_to(folder)}: {module}"
        for path in sources
        for module in modules_of(path)
        if tests & set(module.split("."))
    }


def test_no_module_of_the_tests_imports_a_test_module(tmp_path):
    assert imports_of_tests(TESTS) == set()
    shutil.copytree(TESTS / "faults", tmp_path / "faults")
    with (tmp_path / "faults" / "deaths.py").open("a") as twin:
        twin.write("def late():\n    from test_faults import child\n")
    assert "faults/deaths.py: test_faults" in imports_of_tests(tmp_path)


ROOT = TESTS.parent
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "how-to").glob("*"),
]


def strangers(text):
    """Modules and folders that a document names in backquotes and that are not there."""
    named = re.findall(r"`((?:[a-z_\d]+/)+(?:[a-z_\d]+(?:\.py)?)?|[a-z_\d]+\.py)`", text)

    def exists(name):
        return any(
            (place / (name + end)).exists() for place in (SOURCE, ROOT) for end in ("", ".py")
        )

    return [name for name in named if not exists(name)]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda path: path.name)
def test_every_module_that_a_document_names_exists(page):
    assert strangers(page.read_text("utf-8")) == []


def test_a_module_that_moved_is_noticed():
    known = "`schema/schema.py` `tables/` `tests/privacy/` `local/plan` `docs/maths.md`"
    assert strangers(known) == []
    gone = ["samplers.py", "central/nowhere", "elsewhere/"]
    assert strangers(" ".join(f"`{name}`" for name in gone)) == gone


def test_the_walks_name_modules_that_exist_and_each_has_its_sentence():
    text = (ROOT / "docs" / "data-flow.md").read_text("utf-8")
    walks = re.findall(r"^### .*?^```text\n(.*?)^```$", text, re.M | re.S)
    lines = [line for walk in walks for line in walk.splitlines() if line.startswith("    ")]
    walked = {name.strip() for line in lines for name in line.split("→") if name.strip()}
    assert len(walks) == 4
    assert len(walked) > 60
    assert not {name for name in walked if not (SOURCE / f"{name}.py").is_file()}
    table = text.split("### What happens in each module")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([^`]+)` \| .+\. \|$", table, re.M)) == walked
