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
from functools import cache
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
DECISIONS = "tests/privacy/test_decisions_privacy.py"
WEIGHTS = f"{CENTRAL} tests/central/test_central_nb.py tests/central/test_histogram.py"
CHANNELS = "tests/privacy/test_frequency_privacy.py"
MEANS = "tests/privacy/test_mean_privacy.py"
SURVEYS = "tests/privacy/test_response_privacy.py"
DRAWS = "tests/randomness tests/vectors"
DEVICES = "tests/collection/test_store.py tests/collection/test_respondent.py tests/faults"
BUDGETS = "tests/estimators/test_budget.py tests/estimators/test_surroundings.py"
LEDGERS = "tests/test_ledger.py tests/faults"
ROUNDS = "tests/federated/test_whole_views.py tests/federated/test_noise_and_masks.py"
ROUNDS += " tests/federated/test_manifest.py"
VOID = "tests/test_privacy.py tests/privacy/test_void_promises.py"
PAGE = "tests/browser/test_respondent_page.py::test_"
DESK = "tests/browser/test_desk_pages.py::test_a_page_of_another_site_cannot_act_at_the_desk"
DESK += " tests/server/test_desk.py"
PREVIEW = "tests/browser/test_desk_pages.py::test_a_collector_looks_at_a_draft_as_respondents_will"
NUMBERS = "tests/browser/test_written_numbers.py"
APPS = "tests/browser/test_app_modules.py"
SHUFFLES = "tests/privacy/test_shuffle_privacy.py tests/collection/test_shuffle.py tests/local/test_waves.py"
MEMORY = "tests/collection/test_shuffle_memory.py"
WAVES = "tests/local/test_waves.py tests/local/test_inversion.py"
CLOCKS = "tests/federated/test_clocks.py"
LEFT = "tests/federated/test_left_behind.py"
KEYS = "tests/federated/test_key_proof.py"
SEALS = "tests/federated/test_sealing.py"
ANSWERS = "tests/federated/test_answers.py"
LINES = "tests/federated/test_broken_lines.py"
ENDINGS = "tests/federated/test_endings.py"
SERVICE = "tests/federated/test_service.py"
VERTICAL = f"{ROUNDS} tests/federated/test_rounds.py tests/federated/test_vertical_views.py"
ARRIVALS = "tests/server/test_server_reports.py tests/server/test_server_access.py"
ACCESS = "tests/server/test_server_access.py"
DRAFTS = "tests/server/test_server_drafts.py"
FULL_DISK = "tests/server/test_server_full_disk.py"
BODIES = "tests/server/test_server_memory.py"
DURABLE = "tests/server/test_server_durable.py"
POOL = "tests/server/test_server_pool.py"
DELETION = "tests/server/test_server_deletion.py"
BATCHES = "tests/server/test_server_unlinkable.py tests/server/test_server_reports.py"
INTERVALS = "tests/survey/test_intervals.py"
WHOLE = "tests/survey/test_whole_sheets.py"
CORRECTED = "tests/privacy/test_corrections_privacy.py tests/central/test_corrections.py"
VERTICAL = "tests/federated/test_vertical_views.py tests/federated/test_whole_views.py"
VERTICAL += " tests/federated/test_rounds.py"

AUDITS = "tests/audit/test_audit.py"
CELLS = "tests/privacy/test_cells_of_records.py"

MUTANTS = [
    # ---- the cell of a record is a function of that record alone
    Mutant("estimators/base.py", "            X = _read_list(X)", "            X = np.asarray(X)", CELLS),
    Mutant("estimators/base.py", "objects_of(given_y) if is_list else y", "y", CELLS),
    Mutant("estimators/base.py", "return _is_row(values) and not (hasattr(values, \"dtype\") or hasattr(values, \"__array__\"))",
           "return isinstance(values, (list, tuple))", CELLS),
    Mutant("estimators/base.py", "not all(map(_is_row, rows)):",
           "not all(isinstance(row, (list, tuple)) for row in rows):", CELLS),
    Mutant("encoding.py", "if not kinds or kinds in ({int}, {float}, {bool}):", "if True:", CELLS),
    Mutant("tables/frames.py", "name in known and _holds_objects(column)", "False", CELLS),
    Mutant("tables/columns.py", 'return _through_bytes("decode", "encode", column)', "return column", CELLS),
    Mutant("tables/columns.py", 'column.concat(""), "UTF8")', 'column, "UTF8")', CELLS,
           because="convert_to takes char(n) as text, without padding; enumerations would be refused"),
    Mutant("tables/columns.py", 'return whole if engine == "duckdb" else whole.cast("string")', "return whole", CELLS),
    Mutant("tables/queries.py", 'columns[f"a{position}"] = key(self.table[name], self.cells[name])',
           'columns[f"a{position}"] = self.table[name]', CELLS),
    Mutant("tables/columns.py", "spaces = engine_of(text) not in (\"duckdb\", \"pyspark\")", "spaces = False", CELLS),
    Mutant("tables/columns.py", "(number.abs() <= least, double(0.0)),", "(number.abs() < least, double(0.0)),",
           "tests/database/test_engines.py"),
    Mutant("tables/engines.py", "if kind != first.setdefault(name, kind):", "if False:", CELLS),
    Mutant("tables/engines.py", "read_parquet(names, hive_partitioning=False)", "read_parquet(names)", CELLS),
    Mutant("tables/engines.py", 'common["hive_partitioning"] = False', 'common["hive_partitioning"] = True', CELLS),
    Mutant("tables/engines.py", '.option("recursiveFileLookup", "true")', "", CELLS),
    Mutant("tables/frames.py", "objects = _mixed_columns(frame)", "objects: dict[str, Any] = {}", CELLS),
    Mutant("encoding.py", "if str(dtype) == \"Object\" and hasattr(values, \"to_arrow\"):", "if False:", CELLS),
    Mutant("tables/databases.py", "if current and current.lower() not in usual:", "if False:", CELLS),
    Mutant("tables/databases.py", 'whole.isin(["null", "0", "1"])', "whole.notnull()", CELLS),
    Mutant("tables/databases.py", '"read_only": True', '"read_only": False', "tests/tables/test_databases.py"),
    # ---- noise scales
    Mutant("central/budget.py", "noise = Noise(Fraction(sensitivity) / cost)",
           "noise = Noise(Fraction(sensitivity) / (2 * cost))", CENTRAL),
    Mutant("central/budget.py", "noise = Noise(Fraction(most) ** 2 / (2 * cost), gaussian",
           "noise = Noise(Fraction(most) ** 2 / (4 * cost), gaussian", WEIGHTS),
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
    # ---- what a central training decides on its way
    Mutant("central/choice.py", "best = candidates[choose(values, epsilon / source.unit, random)].cells",
           "best = candidates[choose(values, few.number * epsilon / source.unit, random)].cells", DECISIONS),
    Mutant("central/histogram.py", "cells = _cells(schema, settings.bins, max(people - doubt, 0.0), variances)",
           "cells = _cells(schema, settings.bins, float(source.totals().sum()), variances)", DECISIONS),
    Mutant("central/histogram.py", "share = enough(budget.strength(reserved), people)",
           "share = enough(budget.strength(reserved), float(source.totals().sum()))", DECISIONS),
    Mutant("central/histogram.py", "share = Fraction(min(1.0, source.at_hand / max(people, 1.0)))",
           "share = Fraction(min(1.0, source.at_hand / max(float(source.totals().sum()), 1.0)))", DECISIONS),
    Mutant("central/corrections.py", "few = sample.some(enough(budget.strength(plan.last), plan.people), random)",
           "few = sample.some(enough(budget.strength(plan.last), len(sample.codes)), random)", DECISIONS),
    Mutant("central/corrections.py", "PAIR_ROWS / max(classes * people, 1.0)",
           "PAIR_ROWS / max(classes * len(making.sample.codes), 1.0)", DECISIONS),
    Mutant("central/smooth.py", "trims = [trim_for(count, beta) for beta in betas]",
           "trims = [trim_for(float(len(k)), beta) for beta in betas]", DECISIONS),
    Mutant("central/choice.py", "rows = np.flatnonzero(random.bernoulli(share, len(self.codes)))",
           "rows = np.arange(np.count_nonzero(random.bernoulli(share, len(self.codes))))", DECISIONS),
    Mutant("central/corrections.py", "return starts[choose(quality, epsilon / UNIT, random)]",
           "return starts[choose(quality, 2 * epsilon / UNIT, random)]", DECISIONS),
    Mutant("central/histogram.py", "sure = min(max(people - doubt, 0.0), source.at_hand)",
           "sure = min(float(source.totals().sum()), source.at_hand)", DECISIONS),
    Mutant("central/histogram.py", "surely = people[0] - people[1] / 2",
           "surely = float(source.totals().sum()) - people[1] / 2", DECISIONS),
    Mutant("central/histogram.py", "PRICE * scales[number - 1])",
           "PRICE * scales[number - 1] * float(source.totals().sum()) / 100)", DECISIONS),
    Mutant("central/histogram.py", "if source.unit == 1 and people[0] * budget.strength",
           "if source.unit == 1 and float(source.totals().sum()) * budget.strength", DECISIONS),
    Mutant("central/histogram.py", "if people * budget.strength(budget.whole * part) >= ENOUGH:",
           "if float(source.totals().sum()) * budget.strength(budget.whole * part) >= ENOUGH:", DECISIONS),
    Mutant("central/histogram.py", "scoring = [*candidates][choose(quality, epsilon, random)]",
           "scoring = [*candidates][choose(quality, 2 * epsilon, random)]", DECISIONS),
    Mutant("central/corrections.py", "groups = _pair(making, plan.people, epsilon,",
           "groups = _pair(making, plan.people, 2 * epsilon,", DECISIONS),
    Mutant("central/corrections.py", "chosen = candidates[choose(quality, epsilon, random)]",
           "chosen = candidates[choose(quality, 2 * epsilon, random)]", DECISIONS),
    Mutant("central/smooth.py", "one, two = pair(order.indices(c), grid.levels, betas, float(count))",
           "one, two = pair(order.indices(c), grid.levels, betas, float(len(order.indices(c))))", DECISIONS),
    Mutant("tables/source.py", "rows = np.flatnonzero(self.random.bernoulli(self.share, len(codes)))",
           "rows = np.arange(np.count_nonzero(self.random.bernoulli(self.share, len(codes))))", DECISIONS),
    Mutant("tables/source.py", "self.random.bernoulli(self.share, len(codes))",
           "self.random.bernoulli(self.share * Fraction(len(codes), len(codes) + 1), len(codes))", DECISIONS),
    Mutant("central/corrections.py", "left = np.exp(scores - scores.max(axis=1, keepdims=True))",
           "left = np.exp(scores - scores.max())", "tests/privacy/test_row_locality.py"),
    Mutant("central/corrections.py", "away = scores - scores.max(axis=1, keepdims=True)",
           "away = scores - scores.max()", "tests/privacy/test_row_locality.py"),
    Mutant("estimation/uncertainty.py", "if statistics.scoring.corrections:", "if False:",
           "tests/estimation/test_uncertainty.py"),
    Mutant("estimation/corrected_draws.py", "keep * noisy.residuals + doubt, curvatures, 0.0)",
           "noisy.residuals, noisy.curvatures, 0.0)", "tests/estimation/test_uncertainty.py"),
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
    Mutant("ledger.py", "remove_drafts(self.path)  # only", "pass  # only", LEDGERS),
    Mutant("documents.py", "re.escape(_draft_prefix(target)) + r", "r\"\\..*\" + r", LEDGERS),
    Mutant("documents.py", "if len(values_by_key) < len(pairs):", "if False:",
           "tests/test_documents.py"),
    Mutant("documents.py", "                if key in keys:", "                if False:",
           "tests/test_documents.py"),
    Mutant("schema.py", "if isinstance(values, Set) and not isinstance(values, (KeysView, Sequence)):", "if False:",
           "tests/test_schema.py"),
    Mutant("cli/overwrite.py", "    if _is_ledger(path) or", "    if False and _is_ledger(path) or",
           "tests/cli/test_outputs.py"),
    Mutant("cli/overwrite.py", "_stated_epsilon(path) == math.inf", "True",
           "tests/cli/test_outputs.py"),
    Mutant("cli/overwrite.py", "bool(wanted) and wanted <= known", "True", "tests/cli/test_outputs.py"),
    Mutant("cli/overwrite.py", "not fewer and not altered", "not altered", "tests/cli/test_outputs.py"),
    Mutant("cli/files.py", "refuse_replacement(path, kind, draft)", "pass",
           "tests/cli/test_outputs.py"),
    Mutant("cli/files.py", "documents.move_atomic(draft, beside)", "pass",
           "tests/cli/test_outputs.py"),
    Mutant("documents.py", "_sync(draft, os.O_RDWR)", "pass", "tests/test_documents.py tests/faults"),
    Mutant("documents.py", "if stated != actual and (sealed or stated is not None):", "if False:",
           "tests/test_documents.py"),
    Mutant("locks.py", "fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))", "pass",
           "tests/test_ledger.py tests/collection/test_store.py tests/collection/test_respondent.py"),
    Mutant("locks.py", "msvcrt.locking(file, msvcrt.LK_NBLCK, 1)", "pass",
           "tests/test_documents.py tests/test_ledger.py"),
    # ---- what estimators charge
    Mutant("estimators/private.py", "spending = self.budget.charge(promise, f\"{self.name}.fit\", who=self.whose)",
           "spending = self.budget.read()", BUDGETS),
    Mutant("privacy.py", "if paid is None or released.epsilon > paid.epsilon or", "if paid is None or", BUDGETS),
    Mutant("estimators/private.py", "schema=self.schema, simulated=self.simulated, prepared=self.prepared",
           "simulated=self.simulated", BUDGETS),
    Mutant("estimators/fit_history.py", "rows = np.sort(np.concatenate([rows, earlier]), kind=\"stable\")",
           "pass", BUDGETS),
    Mutant("estimators/private.py", "self.recognised = spend.fits > 1\n",
           "self.recognised = spend.fits > 1\n"
           "        self.prepared = \"recognised\" if self.recognised else self.prepared\n", BUDGETS),
    Mutant("central/training.py", "require_paid(released.guarantee, planned, f\"training by {asked['method']}\")",
           "pass", "tests/central/test_train_command.py"),
    Mutant("cli/ledgers.py", "if budget_file is None and value is not None and value is not False:",
           "if False:", "tests/central/test_train_command.py"),
    Mutant("estimators/local.py", "pay(kept(plan.promised(people), RESTS))",
           "pay(Guarantee(1e-9))", BUDGETS),
    Mutant("estimators/fit_history.py", "spend = spend + group_spend\n", "spend = spend\n", BUDGETS),
    Mutant("estimators/fit_history.py", "self.epsilon + other.epsilon,", "max(self.epsilon, other.epsilon),",
           BUDGETS),
    Mutant("estimators/fit_history.py", "self.delta + other.delta,", "max(self.delta, other.delta),", BUDGETS),
    Mutant("estimators/private.py", "self.hashes = self.rows()  # before anything is paid",
           "self.hashes = np.zeros(0, np.uint64)  # before anything is paid", BUDGETS),
    Mutant("estimators/fit_history.py", "if not (kinds <= {int, float} or kinds == {bool}):", "if False:", BUDGETS),
    Mutant("estimators/fit_history.py", "except (ValueError, TypeError, ArithmeticError):", "except TypeError:", BUDGETS),
    Mutant("privacy.py", "released.epsilon > paid.epsilon or released.delta > paid.delta:",
           "released.epsilon > paid.epsilon:", BUDGETS),
    Mutant("estimators/private.py", "self._note(require_paid(promise, self.paid, self.name))",
           "self._note(self.paid or promise)", BUDGETS),
    Mutant("estimators/private.py", "spend = current_history().add(self.hashes, paid)",
           "spend = PrivacySpend.for_fit(paid)", BUDGETS),
    Mutant("central/training.py", "account = None if charge is None else charge(planned)",
           "account = None if charge is None else charge(replace(planned, epsilon=1e-9))", BUDGETS),
    Mutant("estimators/survey.py", "pay(promise)", "pay(replace(promise, epsilon=1e-9))", BUDGETS),
    Mutant("estimators/federated.py", "Guarantee(epsilon, trust=\"federated\"))",
           "Guarantee(1e-9, trust=\"federated\"))", BUDGETS),
    # ---- promises
    Mutant("privacy.py", "epsilon = self.epsilon + other.epsilon\n",
           "epsilon = max(self.epsilon, other.epsilon)\n", VOID),
    Mutant("privacy.py", "found = replace(self, simulated=self.simulated or simulated)",
           "found = self", VOID),
    Mutant("privacy.py", "epsilon=2 * self.epsilon,\n            delta=delta,",
           "epsilon=self.epsilon,\n            delta=delta,", VOID),
    Mutant("privacy.py", "*([INFERRED] if schema is not None and schema.inferred else [])", "", VOID),
    Mutant("privacy.py", "delta = self.delta + other.delta\n", "delta = max(self.delta, other.delta)\n", VOID),
    Mutant("privacy.py", "rho = self.rho + other.rho", "rho = max(self.rho, other.rho)", VOID),
    Mutant("privacy.py", "rho = max(self.rho, other.rho)", "rho = min(self.rho, other.rho)", VOID),
    Mutant("privacy.py", "epsilon, delta = max(self.epsilon, other.epsilon), max(self.delta, other.delta)",
           "epsilon, delta = worse.epsilon, worse.delta", VOID),
    Mutant("privacy.py", "if split_by_data and self.neighbours == \"replace\":", "if False:", VOID),
    Mutant("privacy.py", "if self.neighbours != other.neighbours:", "if False:", VOID),
    Mutant("privacy.py", "self.alone + other.alone", "max(self.alone, other.alone)", f"{VOID} {SHUFFLES}"),
    Mutant("privacy.py", "delta = self.delta * (1 + math.exp(min(self.epsilon, 700.0)))",
           "delta = 2 * self.delta", VOID),
    Mutant("privacy.py", "rho=None if self.rho is None else 4 * self.rho",
           "rho=None if self.rho is None else 2 * self.rho", VOID),
    Mutant("privacy.py", "simulated=self.simulated or other.simulated", "simulated=self.simulated", VOID),
    Mutant("privacy.py", "void=tuple(dict.fromkeys((*self.void, *other.void)))", "void=self.void", VOID),
    Mutant("privacy.py", "reasons = (*reasons, *([prepared] if prepared else []))", "pass",
           f"{VOID} {BUDGETS}"),
    # ---- shuffled collections and waves
    Mutant("shuffling.py", "if people is not None and people < self.respondents:", "if False:", SHUFFLES),
    Mutant("shuffling.py", "unshuffled=local.epsilon,", "unshuffled=min(self.epsilon, local.epsilon),",
           SHUFFLES),
    Mutant("shuffling.py", "return cls(e, 1 / (2 * e), scale=2 * e / (e + 1))",
           "return cls(e, 1 / (e + 1), scale=1.0)", SHUFFLES),
    Mutant("shuffling.py", "return found / n * (1 + SLACK) + left_out", "return found / n / 2", SHUFFLES),
    Mutant("shuffling.py", "return is_kept(blanket, self.respondents, self.epsilon, self.delta)",
           "return is_kept(blanket, self.respondents, 1.1 * self.epsilon, self.delta)", SHUFFLES),
    Mutant("local/plan.py", "self.shuffled.check(self.blanket)", "pass", SHUFFLES),
    Mutant("collection/shuffle.py", "len(kept) < stated.respondents and not few", "False", SHUFFLES),
    Mutant("collection/shuffle.py", "order = np.lexsort(ids.T)", "order = range(len(kept))", SHUFFLES),
    Mutant("collection/shuffle.py", "[replace(kept[k], id=ids[k].tobytes().hex(), batch=mark) for k in order]",
           "[replace(kept[k], batch=mark) for k in order]", SHUFFLES),
    Mutant("collection/shuffle_batches.py", "return min(self._sizes.values(), default=0)",
           "return sum(self._sizes.values())", SHUFFLES),
    Mutant("collection/shuffle_batches.py", "if sum(self._sizes.values()) < reports:", "if False:",
           SHUFFLES),
    Mutant("collection/shuffle_batches.py", "min(sizes, default=1) >= 1 and sum(sizes) <= reports",
           "min(sizes, default=1) >= 1", SHUFFLES),
    Mutant("collection/shuffle_batches.py", "self._sizes[mark] -= reports", "pass",
           "tests/collection/test_counting_once.py"),
    Mutant("collection/tally.py", "self.batches.add(report.batch, 1)",
           'self.batches.add(report.batch or "0" * 32, 1)', SHUFFLES),
    Mutant("collection/tally.py", "made.batches.merge(other.batches)", "pass", SHUFFLES),
    Mutant("collection/shuffle.py", "if isinstance(report, Report) and report.batch is not None:",
           "if False:", SHUFFLES),
    Mutant("collection/shuffle.py", "batch=mark)", "batch=report.batch)", SHUFFLES),
    Mutant("collection/shuffle_memory.py", "if overlap := len(fresh & used):", "if overlap := 0:", MEMORY),
    Mutant("collection/shuffle_memory.py", 'b"".join(sorted(fresh | used))', 'b"".join(sorted(used))',
           MEMORY),
    Mutant("documents.py", "write_atomic(target, data, private=True)", "write_atomic(target, data)", MEMORY),
    Mutant("collection/shuffle_memory.py", '"key": "", "closed": True', '"closed": True', MEMORY),
    Mutant("collection/shuffle_memory.py", "if memory.closed:", "if False:", MEMORY),
    Mutant("documents.py", "os.link(target, previous)", "pass", MEMORY),
    Mutant("documents.py", "remove_drafts(target)  # only", "pass  # only", MEMORY),
    Mutant("documents.py", "if previous.samefile(target):", "if False:", MEMORY,
           because="the state was read before and is written again; only a second kill in between would lose it, and what is left is refused"),
    Mutant("cli/tally.py", "os.path.realpath(path)", "path", MEMORY),
    Mutant("collection/shuffle_memory.py", "digest_size=HASH_BYTES, key=key)",
           "digest_size=HASH_BYTES)", MEMORY),
    Mutant("cli/tally.py", "with replacing(output) as draft, remembered.passing_on(counted.seen):",
           "with replacing(output) as draft:", MEMORY),
    Mutant("mechanisms/oracle.py", "both / ratio", "both", SHUFFLES),
    Mutant("survey/questionnaire.py", "or not first.even:", "or False:", SHUFFLES),
    Mutant("shuffling.py", "ratio = max(one.ratio for _, one in parts)",
           "ratio = min(one.ratio for _, one in parts)", SHUFFLES),
    Mutant("shuffled_sheets.py", "options.append([differ(least, second), differ(second, least), both])",
           "options.append([differ(second, second)])", SHUFFLES),
    Mutant("shuffled_sheets.py", "own - math.exp(epsilon) * other", "own - 1.1 * math.exp(epsilon) * other",
           SHUFFLES),
    Mutant("shuffled_sheets.py", "+ people * log_sum", "+ 1.1 * people * log_sum", SHUFFLES),
    Mutant("collection/batches.py", "differs[1:] |= marks[1:] != marks[:-1]", "pass",
           "tests/collection/test_bulk.py"),
    Mutant("collection/report.py", 'content += f"|{self.batch}"', "pass", SHUFFLES),
    Mutant("server/intake.py", "elif report.batch is not None:", "elif False:",
           "tests/server/test_server_reports.py"),
    Mutant("server/intake.py", "pc.is_null(batch[BATCH])", "pc.is_valid(batch[\"id\"])",
           "tests/server/test_server_reports.py"),
    Mutant("local/waves.py", "if made.digest != replace(plan, shuffled=None).digest:", "if False:", WAVES),
    Mutant("local/waves.py", "if wave is None or (wave.plan, wave.tally) != (before.collection.digest, before.digest):",
           "if False:", WAVES),
    Mutant("local/waves.py", "guarantee = guarantee.beside(one.guarantee)", "pass", WAVES),
    Mutant("local/planning.py", "each = share_of(epsilon, reports)", "each = epsilon",
           "tests/collection/test_plan.py tests/collection/test_report_privacy.py"),
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
    Mutant("federated/service/relay.py", "self.abandoned = self.folder.read(\"abandoned\") is not None",
           "self.abandoned = False", CLOCKS),
    Mutant("federated/service/relay.py", "self.folder.write(\"abandoned\", b\"\")", "pass", CLOCKS),
    Mutant("federated/service/relay.py", "            elif self.over:\n                self._abandon()\n", "",
           CLOCKS),
    Mutant("federated/service/relay.py", "            self._abandon()\n            raise ProtocolError",
           "            raise ProtocolError", CLOCKS),
    Mutant("federated/service/folder.py", "if error.reason == \"abandoned\":", "if False:",
           f"{CLOCKS} {ENDINGS}"),
    Mutant("federated/crypto/masks.py", "derive.derive(own.secret_with(other, manifest))",
           "derive.derive(manifest)", f"{ROUNDS} tests/federated/test_attacks.py"),
    Mutant("federated/crypto/masks.py", "{purpose} {pair}", "{pair}", ROUNDS),
    Mutant("federated/agreement/identity.py", "_Session(X25519PrivateKey.generate())",
           "_Session(X25519PrivateKey.from_private_bytes(self.signing.private_bytes_raw()))", ROUNDS),
    Mutant("federated/agreement/identity.py", "self._sessions.pop(agreement, None)", "pass",
           "tests/federated/test_service.py"),
    Mutant("federated/vertical/provider.py", "noise = self._share(self.own.name, self.random)",
           "noise = 0 * self._share(self.own.name, self.random)", VERTICAL),
    Mutant("federated/vertical/label.py", "seal(key, [self._with_share(sums, self.random)])",
           "seal(key, [sums])", VERTICAL),
    Mutant("federated/vertical/collector.py", "self._total = self._with_share(sums, self.random)",
           "self._total = sums", VERTICAL),
    Mutant("federated/vertical/collector.py", "key = self.way.pair(self.own, receiver, kind)",
           "key = self.way.pair(self.own, self.label, kind)", VERTICAL),
    Mutant("federated/vertical/with_masks.py", "(self.manifest.opener, \"opening\"),", "", VERTICAL),
    Mutant("federated/service/folder.py", "if self.made(name):", "if False:", SERVICE),
    Mutant("federated/service/folder.py", "        for name in SECRETS:\n            self.delete(name)\n", "",
           f"{SERVICE} {ENDINGS}"),
    Mutant("federated/service/folder.py", "SECRETS = (\"session\", \"secret\", ", "SECRETS = (\"session\", ",
           ENDINGS),
    Mutant("federated/service/folder.py", "            own.resume(self.manifest.hash, kept)", "            pass",
           SERVICE),
    Mutant("federated/service/provider.py", "holding.pay(agreed)\n            return machine.submit",
           "return machine.submit", SERVICE),
    Mutant("federated/service/provider.py", "holding.pay(agreed)\n        return machine.tables",
           "return machine.tables", SERVICE),
    Mutant("federated/service/provider.py", "holding.pay(agreed)\n        return machine.shares",
           "return machine.shares", SERVICE),
    Mutant("federated/service/provider.py", "        connection.finish()\n        kept.finish(own)\n",
           "        connection.finish()\n", f"{SERVICE} {ENDINGS}"),
    Mutant("federated/service/receiver.py", "    connection.confirm()\n    kept.finish(own)\n",
           "    connection.confirm()\n", ENDINGS),
    Mutant("federated/alignment/program.py", "        kept.finish(line.own)\n", "",
           f"{ENDINGS} tests/federated/test_aligning.py"),
    Mutant("federated/service/server.py", "if asked_by(request) != recipient:", "if False:",
           "tests/federated/test_collector.py"),
    Mutant("federated/service/relay.py", "if card is None or not card.verify(given, content):",
           "if card is None:", f"{SERVICE} tests/federated/test_collector.py"),
    Mutant("federated/service/folder.py", "\"secret\", \"data\", \"digest\")", "\"secret\", \"digest\")", LEFT),
    Mutant("federated/service/folder.py", "\"secret\", \"data\", \"digest\")", "\"secret\", \"data\")", LEFT),
    Mutant("federated/service/folder.py", "hmac.digest(self._session, content, \"sha256\"), self",
           "__import__(\"hashlib\").sha256(content[14:]).digest(), self", LEFT),
    Mutant("federated/service/folder.py", "self.finish(own)  # it cannot go on", "pass  #", LEFT),
    Mutant("federated/service/folder.py", "            sync_folder(self.path)", "            pass", LEFT),
    Mutant("federated/service/folder.py", "self.write(name, sealed(key, content))", "self.write(name, content)", LEFT),
    Mutant("federated/service/folder.py", "key = own.derive_storage_key(self.manifest.hash, name)", "key = bytes(32)",
           LEFT),
    Mutant("federated/agreement/identity.py", "derive.derive(self.signing.private_bytes_raw())",
           "derive.derive(self.card.signing)", LEFT),
    Mutant("federated/agreement/identity.py", "info = b\"discreet/folder/1\\0\" + name.encode()",
           "info = b\"discreet/folder/1\\0\"", LEFT),
    Mutant("federated/service/folder.py", "        self.write(\"delivered\", b\"\")\n        self.delete(\"data\")\n",
           "        self.write(\"delivered\", b\"\")\n", LEFT),
    Mutant("federated/crypto/key_proof.py", "if gmpy2.gcd(n, _product_of_small_primes()) != 1:", "if False:",
           KEYS),
    Mutant("federated/crypto/key_proof.py", "if gmpy2.powmod(root, modulus, modulus) != challenge:", "if False:",
           KEYS),
    Mutant("federated/crypto/key_proof.py", "if gmpy2.powmod(root, modulus, modulus) != challenge:",
           "if number == 0 and gmpy2.powmod(root, modulus, modulus) != challenge:", KEYS),
    Mutant("federated/crypto/key_proof.py", "SOUNDNESS_BITS = 128", "SOUNDNESS_BITS = 64", KEYS),
    Mutant("federated/crypto/key_proof.py", "SMALLEST_FACTOR_BITS = 16", "SMALLEST_FACTOR_BITS = 15", KEYS),
    Mutant("federated/crypto/key_proof.py", "len(party).to_bytes(4, \"big\"), party)", "len(party).to_bytes(4, \"big\"))",
           KEYS),
    Mutant("federated/crypto/key_proof.py", "parts = (DOMAIN, len(modulus).to_bytes(4, \"big\"), modulus, ",
           "parts = (DOMAIN, len(modulus).to_bytes(4, \"big\"), ", KEYS),
    Mutant("federated/crypto/key_proof.py", "number.to_bytes(4, \"big\")).digest(width)", "bytes(4)).digest(width)",
           KEYS),
    Mutant("federated/agreement/manifest.py", "            holder.verify_modulus(key.n)\n            return\n",
           "            return\n", KEYS),
    Mutant("federated/crypto/paillier.py", "    if bits > MAX_BITS:", "    if False:", KEYS),
    Mutant("federated/crypto/paillier.py", "if len(text) > MAX_BITS // 4 + len(\"0x\"):", "if False:", KEYS),
    Mutant("federated/crypto/sealing.py", "+ bytes([last])", "+ bytes(1)", SEALS),
    Mutant("federated/crypto/sealing.py", "return number.to_bytes(11, \"big\")", "return bytes(11)", SEALS),
    Mutant("federated/crypto/noise.py", "drawn[index] = _uniform(below[index : index + 1], random).view(np.uint64)[0]",
           "pass", ROUNDS),
    Mutant("federated/crypto/noise.py", "np.uint64(2**64 - 1) - bounds.max()", "np.uint64(2**64 - 1) - bounds.min()",
           ROUNDS),
    Mutant("federated/service/connection.py", "LARGEST_ANSWER = 4 << 20", "LARGEST_ANSWER = 4 << 40", ANSWERS),
    Mutant("federated/service/connection.py", "if len(data) > LARGEST_ANSWER:", "if False:", ANSWERS),
    Mutant("federated/service/server.py", "if asked_by(request) != name:", "if False:", LINES),
    Mutant("federated/service/connection.py", "FAREWELL_TRIES = 5", "FAREWELL_TRIES = 1", LINES),
    Mutant("federated/service/relay.py", "if self.done and heard:", "if self.done:", LINES),
    Mutant("federated/release.py", " or model.guarantee != manifest.guarantee:", ":",
           "tests/federated/test_abuse.py"),
    Mutant("federated/agreement/words.py", "map(printable, lines)", "lines",
           "tests/federated/test_before_signing.py"),
    Mutant("cli/federated/confirm.py", "if manifest.bare and not unprotected:",
           "if math.isinf(manifest.epsilon) and not unprotected:", "tests/federated/test_before_signing.py"),
    Mutant("cli/federated/collect.py", "if running.finished or running.over:", "if running.finished:", ENDINGS),
    Mutant("cli/federated/files.py", "{manifest.hash.hex()}\"", "{manifest.hash.hex()[:16]}\"",
           "tests/federated/test_collector.py"),
    Mutant("cli/federated/files.py", "ledger.require(upcoming.guarantee, _round(upcoming))", "pass",
           "tests/federated/test_collector.py"),
    # ---- the collector on the web
    Mutant("server/settle.py", "connection.execute(sql.insert(db.withdrawn).values(survey=number, id=identity))",
           "pass", ARRIVALS),
    Mutant("server/settle.py", "fold(connection, number, collection, gone, -1)", "pass", ARRIVALS),
    Mutant("server/reports.py", "if identity_of(bytes.fromhex(body.key)) != id:", "if False:", ARRIVALS),
    Mutant("server/reports.py", "if survey.announcement.withdrawal == \"none\":", "if False:", ARRIVALS),
    Mutant("server/arrivals.py", "elif invited and arrival.code not in unspent:", "elif False:", ARRIVALS),
    Mutant("server/arrivals.py", "unspent.discard(arrival.code)", "pass", BATCHES),
    Mutant("server/arrivals.py", "return unspent - spent_in_arrivals(", "return unspent or spent_in_arrivals(", ARRIVALS),
    Mutant("server/settle.py", '"hash": code, "spent": 1}', '"hash": code, "spent": 0}', BATCHES),
    Mutant("server/settle.py", "destroy_keys(database.keys, number, closed)", "pass", BATCHES),
    Mutant("server/settle.py", "clear_keys(database, number, orphans=True)", "pass", f"{BATCHES} {DURABLE}"),
    Mutant("server/surveys.py", "    mark_deleted(connection, number)", "    pass", DELETION),
    Mutant("server/api.py", "tempfile.TemporaryFile()", "tempfile.NamedTemporaryFile(delete=False)",
           "tests/server/test_killed.py"),
    Mutant("server/running.py", "        await self.erase()\n        self._cleaned", "        self._cleaned", DELETION),
    Mutant("server/running.py", "await _attempt(self.erase(), failures)", "pass", DELETION),
    Mutant("server/erasure.py", 'database.run_alone(database.writing, "VACUUM", wait=True)', "pass", DELETION),
    Mutant("server/erasure.py", "if not database.tidy():", "if database.tidy() and False:", DELETION),
    Mutant("server/erasure.py", 'f"VACUUM (FULL) {table.name}"', 'f"VACUUM {table.name}"', DELETION),
    Mutant("server/erasure.py", '"VACUUM (FULL) pg_catalog.pg_statistic"', '"SELECT 1"', DELETION),
    Mutant("server/erasure.py", "or _retained(alone, surveys)", "", DELETION),
    Mutant("server/erasure.py", "range(unused + 1)", "range(unused)", DELETION),
    Mutant("server/migrations/versions/v0004_erasure.py", "_set_statistics(0)", "pass", DELETION),
    Mutant("server/sealed_arrivals.py", "else longest\n", "else len(row.value)\n", BATCHES),
    Mutant("server/sealed_arrivals.py", '{"live": 0, "body": ', '{"live": 1, "body": ', ARRIVALS),
    Mutant("server/sealed_arrivals.py", "HEAD.pack(invited, code, identity, 0, 0).ljust(len(content), b\"\\0\")", "content", ARRIVALS),
    Mutant("server/sealed_arrivals.py", "0, 0).ljust(len(content), b\"\\0\")", "0, 0)", ARRIVALS),
    Mutant("server/sealed_arrivals.py", "if number in states or not keys.exists(name):", "if True:", DURABLE),
    Mutant("server/sealed_arrivals.py", "keys.forget_batches(survey, (batch_key_name(survey, number) for number in live))", "pass", BATCHES),
    Mutant("server/keys.py", "in (path.parent, self.folder, *missing):", "in (path.parent, *missing[:0]):", DURABLE),
    Mutant("server/keys.py", "return nonce + self._seals.encrypt(nonce, content, mark)", "return nonce + content + bytes(16)", BATCHES),
    Mutant("server/access.py", ".where(here.hash == _hash(once), here.kind == \"once\")",
           ".where(here.hash == _hash(once))", f"{ACCESS} tests/server/test_desk.py"),
    Mutant("server/access.py", "if found is None or found.expires < utc_day().isoformat():",
           "if found is None:", f"{ACCESS} tests/server/test_desk.py"),
    Mutant("server/access.py", "if ROLES.index(grant.role) < ROLES.index(role):", "if False:", ACCESS),
    Mutant("server/app.py", 'if state == "draft":  # nobody has to know of it yet', "if False:", DRAFTS),
    Mutant("server/surveys.py", 'return state not in (None, "draft")', "return state is not None", DRAFTS),
    Mutant("server/reports.py", "if known or await run_in_threadpool(server.surveys.published, survey):", "if True:", DRAFTS),
    Mutant("server/reports.py", 'await run_in_threadpool(server.access.require, request, "viewer")', "pass", DRAFTS),
    Mutant("server/api.py", "survey: Published, body: Code", "survey: Found, body: Code", DRAFTS),
    Mutant("server/api.py", 'if published else "no-store"', 'if True else "no-store"', DRAFTS),
    Mutant("server/problems.py", "if line not in self._printed and len(self._printed) < MOST_NOTICES:", "if True:", DRAFTS),
    Mutant("server/problems.py", 'NOTICES.print(f"the database failed: {reason_of(error)}")',
           'print(f"the database failed: {reason_of(error)}", file=sys.stderr, flush=True)', DRAFTS),
    Mutant("server/problems.py", "return quote(path) +", "return str(request.base_url)[:-1] + quote(path) +", DRAFTS),
    Mutant("server/running.py", "await self.settle(survey, 1 if closed else None)",
           "await (self.close(survey, lambda _: None) if closed else self.settle(survey))", DRAFTS),
    Mutant("server/running.py", "failures.append(reason_of(error))", "raise error.orig", FULL_DISK),
    Mutant("server/running.py", "await asyncio.wait([upkeep])", "await upkeep", FULL_DISK),
    Mutant("server/running.py", "await _attempt(self.write(self.writer.probe), failures)", "pass", FULL_DISK),
    Mutant("server/writer.py", "self.database.keys.probe()", "pass", DURABLE),
    Mutant("server/database.py", "except sqlite3.Error as error:", "except ZeroDivisionError as error:", FULL_DISK),
    Mutant("server/app.py", "if server.failing:", "if False:", FULL_DISK),
    Mutant("server/problems.py", "with suppress(OSError):", "with suppress(ZeroDivisionError):", FULL_DISK),
    Mutant("serving.py", "if len(self.pipeline) >= AHEAD:", "if False:", "tests/test_serving.py"),
    Mutant("serving.py", '"log_level": "error",', '"log_level": "warning",', DRAFTS),
    Mutant("body_limit.py", "except ClientDisconnect:", "except ZeroDivisionError:", DRAFTS),
    Mutant("body_limit.py", "if self._received <= self.limit or self.judged_by_route:", "if True:", BODIES),
    Mutant("body_limit.py", "if not self._refused and max(self.declared, self._received) <= self.limit:", "if True:", BODIES),
    Mutant("server/desk.py", "return await _form_of(request, ANONYMOUS_BODY)", "return await _form_of(request, FORM)", BODIES),
    Mutant("server/app.py", "app.add_middleware(BodyLimit, refuse=_refuse_body)", "pass", BODIES),
    Mutant("federated/service/server.py", "app.add_middleware(BodyLimit, refuse=_refuse_body)", "pass", BODIES),
    # ---- what a device keeps
    Mutant("collection/store.py", "            return self._drawn(name).question\n\n    def _charge",
           "            return question\n\n    def _charge", DEVICES),
    Mutant("collection/store.py", "math.fsum(c for c in charges.values() if c < math.inf)", "0.0", DEVICES),
    Mutant("collection/store.py", "        except FileNotFoundError:\n            return []",
           "        except OSError:\n            return []", f"{DEVICES} tests/collection/test_kept_files.py"),
    Mutant("collection/store.py", "text, private=True, exclusive=exclusive)", "text, exclusive=exclusive)",
           f"{DEVICES} tests/collection/test_kept_files.py"),
    Mutant("collection/store.py", "            self._charge(collection, epsilon)\n", "", DEVICES),
    Mutant("collection/shuffle.py", "nullcontext() if memory is None else memory.passing_on(counted.seen)",
           "nullcontext()", SHUFFLES),
    # ---- rows fitted before, in other clothes
    Mutant("estimators/fit_history.py", "numbers += 0.0  # minus zero becomes zero", "pass", BUDGETS),
    Mutant("estimators/fit_history.py", "numbers[np.isnan(numbers)] = np.nan", "pass", BUDGETS),
    Mutant("estimators/fit_history.py", "return int(np.array(float(text) + 0.0).view(np.uint64))",
           "return _hash_text(text)", BUDGETS),
    Mutant("estimators/private.py", "replace(promise.under(prepared=self.prepared), account=self.account)",
           "replace(promise, account=self.account)", BUDGETS),
    Mutant("estimators/private.py", "else state is not None\n", "else False\n", BUDGETS),
    # ---- what the audit looks at
    Mutant("audit/artefact.py", 'yield f"{path} text skeleton".strip(), skeleton(value)', "pass", AUDITS),
    Mutant("audit/artefact.py", 'yield f"{path} text length".strip(), float(len(value))', "pass", AUDITS),
    Mutant("audit/artefact.py", 'return "_" if spelled != "-0" else spelled', 'return "_._"', AUDITS),
    Mutant("audit/reports.py", "        if value != low[name]:\n", "        if False:\n", AUDITS),
    Mutant("audit/reports.py", "reversed(values_of(schema, name, edges.get(name, ())))",
           "values_of(schema, name, edges.get(name, ()))[:-1]", AUDITS),
    Mutant("audit/reports.py", "return Device(self.collection, question)(record, random)",
           "return Device(self.collection, 0)(record, random)", AUDITS),
    Mutant("audit/auditing.py", "alpha, usual = (1 - effort.confidence) / pairs, (1 - USUAL) / pairs",
           "alpha, usual = 1 - effort.confidence, 1 - USUAL", AUDITS),
    Mutant("audit/auditing.py", "if failed and least <= subject.epsilon:", "if False:", AUDITS),
    # ---- surveys
    Mutant("survey/whole.py", "law = self.fitted(kept, pull, self.start, STEPS)",
           "law = self.fitted(kept, pull, laws[-1], STEPS)", WHOLE,
           because="what is computed from sheets that were sent costs nothing; the estimate is hardly another"),
    Mutant("survey/whole.py", "drawn = np.full(len(rows), np.log1p(-self.theta))",
           "drawn = np.full(len(rows), np.log(self.theta))", WHOLE),
    Mutant("survey/whole.py", "return Likeliest(weight / max(misfit, 1.0), law.shares, parts)",
           "return Likeliest(weight, law.shares, parts)", WHOLE),
    Mutant("survey/device.py", "sent[:, places] = channel.perturb(private[:, places], random, own)",
           "sent[:, places] = channel.perturb(private[:, places], type(random)(), own)",
           f"{SURVEYS} tests/collection/test_sheets.py"),
    Mutant("survey/variance.py", "extra / people - self.slope * (count / people - share)",
           "extra / people + self.slope * (count / people - share)", INTERVALS),
    Mutant("survey/variance.py", "slope = np.divide(covariance, variance, out",
           "slope = -np.divide(covariance, variance, out", INTERVALS),
    Mutant("survey/testing.py", "slope = np.cov(scores**2 - scores, scores)[0, 1]",
           "slope = -np.cov(scores**2 - scores, scores)[0, 1]", "tests/survey/test_testing.py"),
    # ---- what a central training releases beside its counts
    Mutant("central/parametric.py", "gone = noise.add(one.missing, random)", "gone = one.missing", CENTRAL),
    Mutant("central/corrections.py", "noise = budget.noise(f\"residuals of {' and '.join(groups)}\", share, UNIT)",
           "noise = budget.noise(f\"residuals of {' and '.join(groups)}\", share, UNIT // 2)", CORRECTED),
    Mutant("central/smooth_sensitivity.py", "return max(float(unit) * factor, SMALLEST)",
           "return max(float(unit) * factor / 2, SMALLEST)", f"{CENTRAL} tests/central/test_smooth_sensitivity.py"),
    Mutant("central/smooth_sensitivity.py", "shrunk = max(1 / (kept - 1), math.exp(-beta * (kept - 2)))",
           "shrunk = 1 / (kept - 1)", f"{CENTRAL} tests/central/test_smooth_sensitivity.py"),
    Mutant("mechanisms/additive.py", "dilated = math.sinh(beta / 2) ** 2 + alpha**2 * math.exp(-beta) / 4",
           "dilated = 0.0", "tests/privacy/test_additive_privacy.py"),
    # ---- a vertical round
    Mutant("federated/vertical/label.py", "content = seal(key, [self._with_share(sums, self.random)])",
           "content = seal(key, [sums])", VERTICAL),
    Mutant("federated/vertical/collector.py", "self._total = self._with_share(sums, self.random)",
           "self._total = sums", VERTICAL),
    # ---- withdrawal and batches
    Mutant("server/settle.py", 'if "closed" in (by_date, stored_state(connection, number)):', "if False:", ARRIVALS),
    Mutant("server/settle.py", "return count < pool", "return count < least", POOL),
    Mutant("server/settle.py", "last = count < size + tail", "last = count < size", BATCHES),
    Mutant("server/settle.py", "tail = pool if least > 1 else size", "tail = pool", BATCHES),
    Mutant("server/settle.py", "max(PIECE, Announcement.from_json(text).batch)", "PIECE", BATCHES),
    Mutant("server/settle.py", "if begins and (whole or count < pool):", "if whole or count < pool:", BATCHES),
    Mutant("server/settle.py", "elif count < pool:", "elif False:", BATCHES),
    Mutant("server/settle.py", "begins=not total)", "begins=True)", BATCHES),
    Mutant("server/desk_acts.py", 'act.fields.get("which") == "all"', "True", "tests/server/test_desk.py"),
    Mutant("server/running.py", "smallest, not total)", "smallest, True)", BATCHES),
    Mutant("server/settle.py", "return 2 * least if least > 1 else 1", "return least", POOL),
    Mutant("server/settle.py", "else (count // least - 1) * least", "else count - least", POOL),
    Mutant("server/settle.py", "order_by(here.mark).offset", "order_by(here.code).offset", POOL),
    Mutant("server/settle.py", "age > LONGEST_WAIT  #", "False  #", POOL),
    Mutant("server/settle.py", "        set_age(connection, number, 0.0)", "        pass", POOL),
    Mutant("server/settle.py", "set_age(connection, number, age)", "pass", POOL),
    Mutant("server/settle.py", "_keep_back(connection, number, kept, age)", "pass", POOL),
    Mutant("server/sealed_arrivals.py", "    keys.set_age(name, 0.0)\n", "", POOL),
    Mutant("server/running.py", "return any(survey == number for survey, _ in self.database.keys.batches())",
           "return False", POOL),
    Mutant("server/settle.py", "sorted(w.arrival.code for w in batch if w.arrival.code)",
           "[w.arrival.code for w in batch if w.arrival.code]", BATCHES,
           because="in the tests both databases return them in the order of their index; sorted, nothing rests on that"),
    # ---- the least number of a shuffle
    Mutant("shuffling.py", "if not whole or not 2 <= self.respondents <= MOST:", "if not whole:", SHUFFLES),
    Mutant("shuffling.py", "epsilon=min(self.epsilon, local.epsilon),\n            delta=self.delta,",
           "epsilon=min(self.epsilon, local.epsilon),\n            delta=0.0,", SHUFFLES),
    Mutant("collection/tally.py", "        if report.id in self.withdrawn:\n", "        if False:\n",
           "tests/collection/test_tally.py tests/collection/test_counting_once.py"),
    # ---- texts that leave a device
    Mutant("collection/respondent.py", "key = self._random.raw(16).tobytes()",
           'key = __import__("hashlib").md5(str(codes).encode()).digest()', "tests/collection/test_report_privacy.py"),
    Mutant("mechanisms/response.py", 'random.integers(law.total, people), side="right")',
           'random.integers(law.total, people), side="left")', SURVEYS),
    Mutant("central/smooth.py", "(np.maximum(counts, 1.0) * alpha_variance)",
           "(np.maximum(parts.exact.totals, 1.0) * alpha_variance)", CENTRAL),
    Mutant("audit/reports.py", 'return "".join(one.to_json() for one in sent)',
           'return "".join(replace(one, id="").to_json() for one in sent)', "tests/audit/test_audit.py"),
    # ---- pages
    Mutant("server/static/respond.js", "return keepsKey ? {} : { key: null };", "return {};",
           f"{PAGE}nobody_looks_and_keeps_the_key"),
    Mutant("server/static/respond.js", 'if (current.key === null) throw new SurveyError("looked");', "",
           f"{PAGE}looking_in_one_tab_ends_withdrawing_in_another"),
    Mutant("server/static/respond.js", "computedDigest !== expectedDigest || computedDigest !== sealedDigest", "computedDigest !== sealedDigest",
           f"{PAGE}another_announcement_than_in_the_letter_stops_the_page"),
    Mutant("server/static/respond.js", "computedDigest !== expectedDigest || computedDigest !== sealedDigest", "sealedDigest !== expectedDigest",
           f"{PAGE}an_announcement_that_is_not_its_digest_stops_the_page"),
    Mutant("server/static/keep.js", "if (storedReport !== undefined) return storedReport;", "",
           f"{PAGE}two_tabs_send_one_report",
           because="respond.js looks before it draws, and IndexedDB's add refuses a second report"),
    Mutant("server/static/keep.js", "report.place !== place && report.epsilon < Infinity", "false",
           f"{PAGE}the_losses_of_all_surveys_of_a_server_add_up"),
    Mutant("server/static/keep.js", "if (budget.total > limit * (1 + BUDGET_TOLERANCE)) throw", "if (false) throw",
           f"{PAGE}the_sum_is_kept_where_reports_are_kept"),
    Mutant("server/static/keep.js", 'durability = "strict"', 'durability = "relaxed"',
           f"{PAGE}a_report_is_on_the_disk_before_it_leaves"),
    Mutant("server/static/respond.js", "await this.store.restoreReport(lastKnown).catch(() => lastKnown)", "lastKnown",
           "tests/browser/test_page_attacks.py::test_who_clears_the_store_sends_one_report"),
    Mutant("server/static/respond.js", "return isUnsent(current) ? current : null;", "return lastKnown;",
           "tests/browser/test_page_attacks.py::test_who_clears_the_store_sends_one_report"),
    Mutant("server/static/respond.js", "if (!preview) await survey.#findStored(link.code);", "await survey.#findStored(link.code);",
           PREVIEW, because="what a browser has kept is only shown: a preview writes nothing"),
    Mutant("server/static/respond.js", "if (this.preview) {", "if (false) {", PREVIEW),
    Mutant("server/static/page.js", "if (survey.preview) {", "if (false) {", PREVIEW),
    Mutant("server/static/numbers.js", "if (high) return chooseReading", "if (false) return chooseReading", NUMBERS),
    Mutant("server/static/numbers.js", "if (fitting.length === 1)", "if (fitting.length)", NUMBERS),
    Mutant("local/plan.py", "if stated is None and (", "if False and (",
           "tests/server/test_serve_command.py"),
    Mutant("local/plan.py", "if stated not in (None, plan.digest):", "if False:",
           "tests/collection/test_plan.py tests/properties"),
    Mutant("server/static/show.js", ", useGrouping: false", "", NUMBERS),
    Mutant("server/static/draw.js", "if (await digestOf(new Uint8Array(0), sha256) !== EMPTY_DIGEST) throw", "if (false) throw", APPS),
    Mutant("server/static/draw.js", "id = await identityOf(key, this.#sha256);", "id = await identityOf(key);", APPS),
    Mutant("server/access.py", 'return site == "same-origin"', 'return site != "cross-site"', DESK),
    Mutant("server/access.py", "and request.method not in SAFE and not same_origin(request)", "and False",
           f"{DESK} tests/server/test_server_access.py"),
    Mutant("server/desk.py", "if not same_origin(request):", "if False:", DESK),
    Mutant("server/desk_acts.py", 'if act.fields.get("number", number) != number:', "if False:",
           "tests/server/test_desk.py"),
    Mutant("server/desk_acts.py", "for one, _ in server.surveys.all() if not one.simulated",
           "for one, _ in server.surveys.all()", "tests/server/test_desk.py"),
    Mutant("server/analysis.py", "tally.simulated = survey.simulated", "pass",
           "tests/server/test_desk.py"),
    Mutant("server/templates/letters.html", "{% if inactive %}", "{% if false %}",
           "tests/server/test_desk.py"),
    Mutant("server/bundle.py", "autoescape=True", "autoescape=False",
           "tests/browser/test_hostile_words.py tests/server/test_desk.py"),
    Mutant("announcement.py", "day > date.fromisoformat(self.deletes)",
           "day >= date.fromisoformat(self.deletes)", "tests/server/test_announcement.py"),
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
                _require_sound(test.partition("[")[0])
                return test
    return ""


@cache
def _require_sound(test: str) -> None:
    """A test that fails without any mutant notices nothing."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"}
    if _failing([test], "", environment):
        raise RuntimeError(f"{test} fails without any mutant")


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
