"""What is published: the same bytes twice, nothing unwanted, licences that fit, absolute links."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HOME = PROJECT["urls"]["Source"] + "/blob/main/"


def built(folder: Path, epoch: int = 1_700_000_000) -> list[Path]:
    pytest.importorskip("hatchling")
    pytest.importorskip("hatch_fancy_pypi_readme")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        env={"SOURCE_DATE_EPOCH": str(epoch), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    return built(tmp_path_factory.mktemp("dist"))


@pytest.mark.slow
def test_built_twice_it_is_the_same_byte_for_byte(dist, tmp_path):
    again = built(tmp_path / "again")
    assert [one.name for one in again] == [one.name for one in dist]
    assert [one.read_bytes() for one in again] == [one.read_bytes() for one in dist]
    other = built(tmp_path / "other", epoch=1_600_000_000)  # the comparison can fail
    assert [one.read_bytes() for one in other] != [one.read_bytes() for one in dist]


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_licence_and_nothing_else(dist):
    wheel = next(one for one in dist if one.suffix == ".whl")
    names = zipfile.ZipFile(wheel).namelist()
    outside = [n for n in names if not n.startswith(("discreet/", "discreet-"))]
    assert outside == []
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert "discreet/py.typed" in names
    stubs = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.pyi")}
    assert stubs  # the packages read their public names from them
    assert stubs <= set(names)
    metadata = next(n for n in names if n.endswith("METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    assert "Author: discreet contributors" in text
    assert "License-Expression: Apache-2.0" in text


UNWANTED = re.compile(
    r"(__pycache__|\.pyc$|\.coverage|\.venv|\.git/|\.hypothesis|uv\.lock|\.mypy_cache|\.egg-info"
    r"|/site/|/demo/|\.pem$|\.key$|node_modules|\.csv\.gz$)"
)


@pytest.mark.slow
def test_nothing_unwanted_is_in_the_sdist(dist):
    archive = next(one for one in dist if one.name.endswith(".tar.gz"))
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    assert [n for n in names if UNWANTED.search(n)] == []
    top = {n.split("/")[1] for n in names if "/" in n}
    assert {"src", "tests", "docs", "pyproject.toml", "README.md", "LICENSE", "PKG-INFO"} <= top
    assert UNWANTED.search("discreet-0.1.0/.coverage")
    if (ROOT / ".git").exists():  # a file that nobody committed would be published unseen
        listed = subprocess.run(
            ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.split("\n")
        files = {n.partition("/")[2] for n in names}
        assert sorted(files - {*listed, "PKG-INFO"}) == []


@pytest.mark.slow
def test_links_of_the_published_readme_are_absolute_and_lead_to_files(dist):
    wheel = next(one for one in dist if one.suffix == ".whl")
    with zipfile.ZipFile(wheel) as opened:
        name = next(n for n in opened.namelist() if n.endswith("METADATA"))
        text = opened.read(name).decode()
    targets = re.findall(r"\]\(([^)#\s]+)", text)
    assert targets
    for target in targets:
        assert "://" in target, f"{target} is relative: nobody can follow it from a package index"
        if target.startswith(HOME):
            assert (ROOT / target.removeprefix(HOME)).exists(), target


def test_the_address_is_the_same_wherever_it_stands():
    """It is a reserved name until there is one; replacing half of it would break every link."""
    text = (ROOT / "pyproject.toml").read_text()
    assert re.findall(r"'\]\((https://[^/]+/.*?)\\1", text) == [HOME]


def test_the_list_of_parts_names_what_users_install_and_no_tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import generate_licences as made

    def part(name):
        return {"name": name, "bom-ref": name}

    names = ["numpy", "pytest", "PyYAML", "hypothesis", "typing_extensions"]
    whole = {
        "metadata": {"component": part("discreet")},
        "components": [part(name) for name in names],
        "dependencies": [
            {"ref": "discreet", "dependsOn": ["numpy", "pytest"]},
            {"ref": "pytest", "dependsOn": ["numpy"]},
            {"ref": "numpy"},
        ],
    }
    left = made.cut(whole)
    assert [one["name"] for one in left["components"]] == ["numpy", "PyYAML", "typing_extensions"]
    assert left["dependencies"] == [
        {"ref": "discreet", "dependsOn": ["numpy"]},
        {"ref": "numpy", "dependsOn": []},
    ]


@pytest.mark.slow
def test_every_dependency_has_a_compatible_licence_and_is_listed(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import generate_licences as made

    assert made.incompatible() == []
    listed = set(re.findall(r"^\| ([\w.-]+) \|", (ROOT / "docs" / "licences.md").read_text(), re.M))
    assert set(made.closure()) <= listed
    monkeypatch.setitem(made.KNOWN, "numpy", "Proprietary")  # the check can fail
    assert made.incompatible() == ["numpy"]


def test_the_workflow_runs_everything_on_every_supported_python():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert re.findall(r'"(3\.\d+)"', text.split("matrix:")[1].split("steps:")[0]) == supported
    assert "run: .ci/run" in text
    assert "id-token: write" in text  # trusted publishing
    assert "password" not in text.replace("no password is kept", "")
