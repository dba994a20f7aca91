"""The generated reference is complete: every public name, every parameter explained."""

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).resolve().parents[1]
MUST = {
    "discreet",
    "discreet.local",
    "discreet.survey",
    "discreet.federated",
    "discreet.collection.report",
    "discreet.collection.respondent",
    "discreet.collection.store",
    "discreet.collection.tally",
    "discreet.privacy.ledger",
    "discreet.privacy.guarantee",
    "discreet.mechanisms.frequency",
    "discreet.mechanisms.mean",
    "discreet.mechanisms.response",
    "discreet.mechanisms.additive",
}


@pytest.fixture(scope="module")
def reference():
    path = ROOT / "docs" / "generate_reference.py"
    spec = importlib.util.spec_from_file_location("generate_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lacking(reference, modules):
    """Public names without words, or with a parameter that is not explained."""
    found = []
    for module in modules:
        home = importlib.import_module(module)
        for name in reference.names_of(module):
            thing = getattr(home, name)
            if not (inspect.isclass(thing) or inspect.isroutine(thing)):
                continue
            missing = reference.undocumented(thing)
            if missing or not inspect.getdoc(thing):
                found.append(f"{module}.{name}: {', '.join(missing) or 'no docstring'}")
    return found


def test_every_public_name_is_there_with_its_parameters(reference, tmp_path):
    modules = [module for _, listed in reference.PAGES.values() for module in listed]
    assert set(modules) >= MUST
    assert not lacking(reference, modules)
    text = "\n".join(path.read_text("utf-8") for path in reference.write(tmp_path))
    for module in modules:
        assert f"## `{module}`" in text
        for name in reference.names_of(module):
            assert f"### `{name}`" in text, f"{module}.{name}"
    assert f"`{discreet.__version__!r}`" in text


def test_a_parameter_without_words_is_found(reference, monkeypatch):
    def half(epsilon, size):
        """Halve.

        Parameters
        ----------
        epsilon : float
            Per person.
        """

    twin = type(sys)("twin")
    twin.half, twin.__all__ = half, ["half"]
    monkeypatch.setitem(sys.modules, "twin", twin)
    assert lacking(reference, ["twin"]) == ["twin.half: size"]


def test_a_docstring_becomes_markdown(reference):
    interval = discreet.model.intervals.compute_wilson_interval
    text = "\n\n".join(reference.entry("compute_wilson_interval", interval))
    assert "### `compute_wilson_interval`" in text
    signature = "(hits: int, trials: int, z: float = 1.959963984540054) -> tuple[float"
    assert f"compute_wilson_interval{signature}" in text
    assert "- `hits`, `trials` (int)" in text
    assert "```pycon\n>>> low, high = compute_wilson_interval(81, 100)" in text
