"""Every example in a docstring runs and gives what it says."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent
MODULES = sorted(
    ".".join(("discreet", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text()
)
LONG = {"discreet.audit.table_subjects": pytest.mark.slow}


@pytest.mark.parametrize("name", [pytest.param(one, marks=LONG.get(one, ())) for one in MODULES])
def test_examples_give_what_they_say(name):
    found = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted > 0


@pytest.mark.parametrize("name", ["MixedNB", "CentralNB", "LocalNB", "SurveyNB", "FederatedNB"])
def test_estimators_document_all_their_parameters_and_attributes(name):
    estimator = getattr(discreet, name)
    text = estimator.__doc__
    for section in ("Parameters", "Attributes", "See Also", "Notes", "Examples"):
        assert f"    {section}\n    {'-' * len(section)}\n" in text
    parameters, rest = text.split("    Attributes\n")
    described = {word for line in parameters.split("\n") for word in _names(line)}
    assert described >= set(estimator().get_params())
    described = {word for line in rest.split("\n") for word in _names(line)}
    assert described >= {"classes_", "class_count_", "class_prior_", "n_features_in_"}
    assert described >= {"feature_names_in_", "schema_", "statistics_", "model_", "guarantee_"}


def _names(line):
    """Names that a line of a numpydoc section describes."""
    if not line.startswith("    ") or line.startswith("     "):
        return []
    return [one.strip() for one in line.split(" : ")[0].split(",")]
