"""The mutants of ``make mutants`` change lines that exist, and their tests exist."""

from __future__ import annotations

import pytest

from mutants import MUTANTS, ROOT, SOURCE, Mutant, noticed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.file}:{one.line[:30]}")
def test_a_mutant_changes_one_line_that_exists(mutant):
    text = (SOURCE / mutant.file).read_text("utf-8")
    assert text.count(mutant.line) == 1
    if mutant.file.endswith(".py"):
        compile(text.replace(mutant.line, mutant.change), mutant.file, "exec")
    for test in mutant.tests.split():
        path, _, name = test.partition("::")
        assert (ROOT / path).exists()
        assert not name or f"def {name}(" in (ROOT / path).read_text("utf-8")


@pytest.mark.slow
def test_a_mutant_is_noticed_and_no_change_is_not():
    tests = "tests/test_privacy.py"
    line = "epsilon = self.epsilon + other.epsilon\n"
    bad = Mutant("privacy.py", line, "epsilon = max(self.epsilon, other.epsilon)\n", tests)
    assert noticed(bad).startswith("tests/test_privacy.py::")
    assert noticed(Mutant("privacy.py", line, line, tests)) == ""
