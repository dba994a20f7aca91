"""Change privacy-relevant lines one by one, and see which tests notice: ``make mutants``.

Every mutant is one line of the source with one mistake in it. The source is copied, the line
changed, and the tests that should notice run against the copy until one of them fails. A mutant
that survives has ``because``: the reason why the change breaks no promise. tests/test_mutants.py
checks that every line is still there.
"""

# ruff: noqa: E501

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "discreet"


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    ``line`` occurs exactly once in ``file``, and becomes ``change``. ``because`` is why it may
    survive.
    """

    file: str
    line: str
    change: str
    tests: str
    because: str = ""


CENTRAL = "tests/central/test_budget.py tests/privacy/test_central_privacy.py"
WEIGHTS = f"{CENTRAL} tests/central/test_central_nb.py tests/central/test_histogram.py"
CHANNELS = "tests/privacy/test_frequency_privacy.py"
MEANS = "tests/privacy/test_mean_privacy.py"
SURVEYS = "tests/privacy/test_response_privacy.py"
DRAWS = "tests/randomness tests/vectors"
DEVICES = "tests/collection/test_store.py tests/collection/test_respondent.py tests/faults"
LEDGERS = "tests/test_ledger.py tests/faults"
ROUNDS = "tests/federated/test_whole_views.py tests/federated/test_noise_and_masks.py"
ROUNDS += " tests/federated/test_manifest.py"
VOID = "tests/test_privacy.py tests/privacy/test_void_promises.py"

MUTANTS = [
    # ---- noise scales
    Mutant("central/budget.py", "return Noise(Fraction(sensitivity) / cost)",
           "return Noise(Fraction(sensitivity) / (2 * cost))", CENTRAL),
    Mutant("central/budget.py", "return Noise(Fraction(most) ** 2 / (2 * cost), gaussian",
           "return Noise(Fraction(most) ** 2 / (4 * cost), gaussian", WEIGHTS),
    Mutant("central/budget.py", "-(-sensitivity // grain) + 1", "-(-sensitivity // grain)",
           WEIGHTS),
    Mutant("central/budget.py", "if cost <= 0 or cost > self.left:", "if cost <= 0:",
           WEIGHTS),
    Mutant("central/budget.py", "(self.earlier.whole - self.earlier.left) ** 2 / 2",
           "0", WEIGHTS),
    Mutant("central/budget.py", "return _below(cost / self.whole * Fraction(self.delta))",
           "return self.delta", CENTRAL),
    Mutant("central/budget.py", "math.sqrt(8 * float(cost))", "math.sqrt(32 * float(cost))", CENTRAL),
    Mutant("central/budget.py", "return Budget(_below(self.left), delta, earlier=so_far)",
           "return Budget(self.epsilon, delta, earlier=so_far)", CENTRAL),
    Mutant("central/budget.py", "return {name: whole * weight / total for",
           "return {name: whole * weight for", CENTRAL),
    Mutant("central/moments.py", 'of_sum = budget.noise(f"sum of {name}", share, levels)',
           'of_sum = budget.noise(f"sum of {name}", share, 1)', CENTRAL),
    Mutant("central/moments.py", "share, levels**2)", "share, levels)", CENTRAL),
    Mutant("central/smooth.py", "one.bound / alpha_mean, random", "one.bound / (3 * alpha_mean), random",
           CENTRAL),
    Mutant("central/smooth.py", "two.bound / alpha_variance, random", "two.bound * 0, random", CENTRAL),
    Mutant("central/choice.py", "cost = epsilon * (best - int(quality[index]))",
           "cost = 4 * epsilon * (best - int(quality[index]))", WEIGHTS),
    Mutant("central/histogram.py", "first = budget.noise(\"class counts\", budget.whole * FOR_COUNTS, unit)",
           "first = budget.noise(\"class counts\", budget.whole * FOR_COUNTS, 1)",
           WEIGHTS),
    # ---- sampling
    Mutant("randomness/samplers.py", "values -= self.geometric(scale, size)", "pass", DRAWS),
    Mutant("randomness/samplers.py", "np.less(drawn, np.uint8(first), out=flags[part])",
           "np.less_equal(drawn, np.uint8(first), out=flags[part])", DRAWS),
    Mutant("randomness/samplers.py", "real *= -float(scale)", "real *= -float(scale) / 2", DRAWS),
    Mutant("randomness/samplers.py", "gap /= -2 * sigma2", "gap /= -sigma2", DRAWS),
    Mutant("randomness/source.py", "handed_out[:] = 0", "pass", DRAWS),
    Mutant("randomness/source.py", "if random_state is None:\n        return CryptoRandom()",
           "if random_state is None:\n        return SeededRandom(0)", f"{DRAWS} {VOID}"),
    Mutant("randomness/source.py", "os.register_at_fork(after_in_child=_forget_all)", "pass", DRAWS),
    # ---- mechanisms
    Mutant("mechanisms/unary.py", "root = exp_below(self._budget / 2)",
           "root = exp_below(self._budget)", CHANNELS),
    Mutant("mechanisms/unary.py", "return ONE // 2, math.ceil(ONE / (exp_below(self._budget) + 1))",
           "return ONE // 2, math.floor(ONE / (exp_below(self._budget) + 1))", CHANNELS),
    Mutant("mechanisms/unary.py", "miss = exp_above(self._budget * (theta - 1) / 2) / 2",
           "miss = exp_above(self._budget * (1 - theta) / -1) / 2", CHANNELS),
    # ---- stores, reports, ledgers
    Mutant("collection/respondent.py", "if kept and not again:\n            return self._read(kept[-1])\n"
           "        self._check_number(len(kept))\n        codes",
           "self._check_number(0)\n        codes", DEVICES),
    Mutant("collection/respondent.py", "if self.store.keep(digest, number, Kept(made.to_json(), key.hex())):",
           "if True:", DEVICES),
    Mutant("collection/respondent.py", "if sent >= self.collection.reports:", "if False:", DEVICES),
    Mutant("collection/store.py", "elif spent + epsilon > allowed * (1 + TOLERANCE):", "elif False:", DEVICES),
    Mutant("collection/store.py", "if exclusive and name in self._texts:", "if False:",
           f"{DEVICES} tests/collection/test_report_privacy.py"),
    Mutant("ledger.py", "self._write(after)\n            return after", "return after", LEDGERS),
    Mutant("ledger.py", "if promise.broken and not void:", "if False:", f"{LEDGERS} {VOID}"),
    Mutant("ledger.py", "if once and any(entry.what == what for entry in before.entries):",
           "if False:", LEDGERS),
    Mutant("ledger.py", "if not enough:", "if False:", LEDGERS),
    Mutant("documents.py", "_sync(draft, os.O_RDONLY)", "pass", "tests/test_documents.py tests/faults"),
    Mutant("documents.py", "if stated != actual and (sealed or stated is not None):", "if False:",
           "tests/test_documents.py"),
    Mutant("documents.py", "fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))", "pass",
           "tests/test_ledger.py tests/collection/test_store.py tests/collection/test_respondent.py"),
    # ---- promises
    Mutant("privacy.py", "epsilon = self.epsilon + other.epsilon\n",
           "epsilon = max(self.epsilon, other.epsilon)\n", VOID),
    Mutant("privacy.py", "found = replace(self, simulated=self.simulated or simulated)",
           "found = self", VOID),
    Mutant("privacy.py", "epsilon=2 * self.epsilon,\n            delta=delta,",
           "epsilon=self.epsilon,\n            delta=delta,", VOID),
    Mutant("privacy.py", "*([INFERRED] if schema is not None and schema.inferred else [])", "", VOID),
    # ---- federated rounds
    Mutant("federated/agreement/manifest.py", "(2 if self.partition == \"vertical\" else 1)", "1", ROUNDS),
    Mutant("federated/crypto/noise.py", "return self.parties - self.tolerated", "return self.parties",
           ROUNDS),
    Mutant("federated/crypto/noise.py", "return both[:size] - both[size:]", "return both[:size]", ROUNDS),
    Mutant("federated/crypto/masks.py", "for key in self.later + self.opening:\n            total += words",
           "for key in self.opening:\n            total += words",
           f"{ROUNDS} tests/federated/test_rounds.py"),
    Mutant("federated/crypto/sealing.py", "salt = secrets.token_bytes(SALT)", "salt = bytes(SALT)",
           "tests/federated/test_noise_and_masks.py tests/federated/test_attacks.py"),
    Mutant("federated/horizontal/provider.py", "noised = checked(exact + self._noise,",
           "noised = checked(exact,", f"{ROUNDS} tests/federated/test_rounds.py"),
    Mutant("federated/horizontal/provider.py", "if self._submission is None:", "if True:",
           "tests/federated/test_rounds.py tests/federated/test_abuse.py "
           "tests/federated/test_attacks.py"),
]  # fmt: skip


def changed(mutant: Mutant, source: Path) -> None:
    """Make the mistake in a copy of the source."""
    path = source / mutant.file
    text = path.read_text("utf-8")
    assert text.count(mutant.line) == 1, f"{mutant.file}: {mutant.line!r} is not there once"
    path.write_text(text.replace(mutant.line, mutant.change), "utf-8")


def noticed(mutant: Mutant) -> str:
    """The first test that fails on the mutant; empty if none does."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "discreet"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        changed(mutant, source)
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"OMP_NUM_THREADS": "1", "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        for marked in ("not slow and not spark", "slow"):  # most are noticed soon
            if test := _failing(mutant.tests.split(), marked, environment):
                return test
    return ""


def _failing(tests: list[str], marked: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "--no-header", "-m", marked]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *tests],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode in (0, 5):  # all passed, or none has this mark
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    if done.returncode != 1 or failed is None:  # tests that did not run noticed nothing
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-400:]}")
    return failed[1]


def main() -> int:
    """Try every mutant; 1 if one survives without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="Mutants whose file or line has this.")
    given, unexplained = parser.parse_args(), 0
    for mutant in MUTANTS:
        if given.only not in mutant.file + mutant.line:
            continue
        begun = time.monotonic()
        test = noticed(mutant)
        line = " ".join(mutant.line.split())
        if test:
            word = "killed  "
        elif mutant.because:
            word, test = "explained", mutant.because
        else:
            word, unexplained = "SURVIVED", unexplained + 1
        seconds = time.monotonic() - begun
        print(f"{word} {mutant.file}: {line[:70]}  [{seconds:.0f} s]\n         {test}", flush=True)
    print(f"{len(MUTANTS)} mutants, {unexplained} survived without a reason")
    return int(unexplained > 0)


if __name__ == "__main__":
    raise SystemExit(main())
