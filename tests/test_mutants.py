"""The mutants of ``make mutants`` change code that exists, and their tests exist."""

from __future__ import annotations

import ast
import textwrap

import pytest

from mutants import MUTANTS, ROOT, SOURCE, Mutant, apply_mutant, noticed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.file}:{m.function}:{m.code[:30]}")
def test_a_mutant_changes_code_that_exists(mutant):
    text = (SOURCE / mutant.file).read_text("utf-8")
    mutated = apply_mutant(mutant, text)
    assert mutated != text
    if mutant.file.endswith(".py"):
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(text))
    for test in mutant.tests.split():
        path, _, name = test.partition("::")
        assert (ROOT / path).exists()
        assert not name or f"def {name}(" in (ROOT / path).read_text("utf-8")


def test_code_is_found_however_its_lines_are_broken():
    text = textwrap.dedent(
        """\
        class Ledger:
            def charge(self, cost):
                if (
                    cost
                    > self.left
                ):
                    raise ValueError
                return self.left - cost

        def left(cost):
            return cost > self.left
        """
    )
    mutant = Mutant("privacy/ledger.py", "Ledger.charge", "cost > self.left", "False", "")
    assert "if (\n            False\n" not in text
    assert (
        ast.unparse(ast.parse(apply_mutant(mutant, text)).body[0].body[0].body[0].test) == "False"
    )
    for code, function in (("cost >= self.left", "Ledger.charge"), ("cost > self.left", "")):
        with pytest.raises(AssertionError, match=r"is there [02] times"):
            apply_mutant(Mutant("privacy/ledger.py", function, code, "False", ""), text)


@pytest.mark.slow
def test_a_mutant_is_noticed_and_no_change_is_not():
    tests = "tests/test_privacy.py"
    code = "self.epsilon + other.epsilon"
    bad = Mutant(
        "privacy/guarantee.py",
        "Guarantee.compose_sequential",
        code,
        "max(self.epsilon, other.epsilon)",
        tests,
    )
    assert noticed(bad).startswith("tests/test_privacy.py::")
    same = Mutant("privacy/guarantee.py", "Guarantee.compose_sequential", code, f"({code})", tests)
    assert noticed(same) == ""
