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
SHUFFLES = "tests/privacy/test_shuffle_privacy.py tests/collection/test_shuffle.py tests/local/test_waves.py"
WAVES = "tests/local/test_waves.py tests/local/test_inversion.py"
CLOCKS = "tests/federated/test_clocks.py"
ENDINGS = "tests/federated/test_endings.py"
SERVICE = "tests/federated/test_service.py"
VERTICAL = f"{ROUNDS} tests/federated/test_rounds.py tests/federated/test_vertical_views.py"
ARRIVALS = "tests/server/test_server_reports.py tests/server/test_server_access.py"
ACCESS = "tests/server/test_server_access.py"
BATCHES = "tests/server/test_server_unlinkable.py tests/server/test_server_reports.py"
WHOLE = "tests/survey/test_whole_sheets.py"
CORRECTED = "tests/privacy/test_corrections_privacy.py tests/central/test_corrections.py"
VERTICAL = "tests/federated/test_vertical_views.py tests/federated/test_whole_views.py"
VERTICAL += " tests/federated/test_rounds.py"

MUTANTS = [
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
    Mutant("estimators/private.py", "self.paid is None or dearer", "False", BUDGETS),
    Mutant("estimators/private.py", "schema=self.schema, simulated=self.simulated, prepared=self.prepared",
           "simulated=self.simulated", BUDGETS),
    Mutant("estimators/seen.py", "for one in met:", "for one in ():", BUDGETS),
    Mutant("estimators/seen.py", "met = {self._root(one)", "met = {one", BUDGETS),
    Mutant("estimators/local.py", "pay(kept(plan.promised(people), RESTS))",
           "pay(Guarantee(1e-9))", BUDGETS),
    Mutant("estimators/seen.py", "spent = sum((self._spent[one] for one in met), Spent.once(cost))",
           "spent = Spent.once(cost)", BUDGETS),
    Mutant("estimators/seen.py", "self.epsilon + other.epsilon,", "max(self.epsilon, other.epsilon),",
           BUDGETS),
    Mutant("estimators/seen.py", "self.delta + other.delta,", "max(self.delta, other.delta),", BUDGETS),
    Mutant("estimators/private.py", "dearer = promise.epsilon > paid.epsilon or promise.delta > paid.delta",
           "dearer = promise.epsilon > paid.epsilon", BUDGETS),
    Mutant("estimators/private.py", "spent = seen_now().fit(self.rows(), paid)", "spent = Spent.once(paid)",
           BUDGETS),
    Mutant("estimators/central.py", "pay(promised(source.schema, allowed, given[\"method\"]))",
           "pay(replace(promised(source.schema, allowed, given[\"method\"]), epsilon=1e-9))", BUDGETS),
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
    Mutant("shuffling.py", "return delta_of(blanket, self.respondents, self.epsilon) <= self.delta",
           "return delta_of(blanket, self.respondents, 1.1 * self.epsilon) <= self.delta", SHUFFLES),
    Mutant("local/plan.py", "self.shuffled.check(self.blanket)", "pass", SHUFFLES),
    Mutant("collection/shuffle.py", "len(kept) < stated.respondents and not few", "False", SHUFFLES),
    Mutant("collection/shuffle.py", "order = np.lexsort(ids.T)", "order = range(len(kept))", SHUFFLES),
    Mutant("collection/shuffle.py", "[replace(kept[k], id=ids[k].tobytes().hex()) for k in order]",
           "[kept[k] for k in order]", SHUFFLES),
    Mutant("collection/tally.py", "return min(parts) if parts and merged else None",
           "return sum(parts) if parts and merged else None", SHUFFLES),
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
    Mutant("federated/service/folder.py", "SECRETS = (\"session\", \"secret\")", "SECRETS = (\"session\",)",
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
    Mutant("server/arrivals.py", "elif invited and one.code not in unspent:", "elif False:", ARRIVALS),
    Mutant("server/arrivals.py", "unspent.discard(one.code)", "pass", ARRIVALS),
    Mutant("server/arrivals.py", ".values(spent=1)", ".values(spent=0)", ARRIVALS),
    Mutant("server/access.py", ".where(here.hash == _hash(once), here.kind == \"once\")",
           ".where(here.hash == _hash(once))", f"{ACCESS} tests/server/test_desk.py"),
    Mutant("server/access.py", "if found is None or found.expires < utc_day().isoformat():",
           "if found is None:", f"{ACCESS} tests/server/test_desk.py"),
    Mutant("server/access.py", "if ROLES.index(grant.role) < ROLES.index(role):", "if False:", ACCESS),
    # ---- what a device keeps
    Mutant("collection/store.py", "            return self._drawn(name).question\n\n    def _charge",
           "            return question\n\n    def _charge", DEVICES),
    Mutant("collection/store.py", "math.fsum(c for c in charges.values() if c < math.inf)", "0.0", DEVICES),
    Mutant("collection/store.py", "        except FileNotFoundError:\n            return []",
           "        except OSError:\n            return []", f"{DEVICES} tests/collection/test_kept_files.py"),
    Mutant("collection/store.py", "text, private=True, exclusive=exclusive)", "text, exclusive=exclusive)",
           f"{DEVICES} tests/collection/test_kept_files.py"),
    Mutant("collection/store.py", "            self._charge(collection, epsilon)\n", "", DEVICES),
    # ---- rows fitted before, in other clothes
    Mutant("estimators/seen.py", "numbers += 0.0  # of minus zero, too", "pass", BUDGETS),
    Mutant("estimators/seen.py", "numbers[np.isnan(numbers)] = np.nan", "pass", BUDGETS),
    Mutant("estimators/seen.py", "return int(np.array(float(text) + 0.0).view(np.uint64))",
           "return _hash(text)", BUDGETS),
    Mutant("estimators/private.py", "replace(promise.under(prepared=self.prepared), account=self.account)",
           "replace(promise, account=self.account)", BUDGETS),
    Mutant("estimators/private.py", "else state is not None\n", "else False\n", BUDGETS),
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
    Mutant("server/settle.py", "if count < max(least, 1):", "if count < 1:", BATCHES),
    Mutant("server/settle.py", "size = size if count >= size + least else count", "pass", BATCHES),
    Mutant("server/settle.py", "codes = sorted(bytes(code) for (code,) in gone)",
           "codes = [bytes(code) for (code,) in gone]", BATCHES,
           because="in the tests both databases return them in the order of their index; sorted, nothing rests on that"),
    # ---- the least number of a shuffle
    Mutant("shuffling.py", "if not whole or not 2 <= self.respondents <= MOST:", "if not whole:", SHUFFLES),
    Mutant("shuffling.py", "epsilon=min(self.epsilon, local.epsilon),\n            delta=self.delta,",
           "epsilon=min(self.epsilon, local.epsilon),\n            delta=0.0,", SHUFFLES),
    Mutant("collection/tally.py", "return None if self.smallest is None else max(self.smallest - other.reports, 0)",
           "return self.smallest", f"{SHUFFLES} tests/collection/test_counting_once.py"),
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
    Mutant("server/static/respond.js", "return open ? {} : { key: null };", "return {};",
           f"{PAGE}nobody_looks_and_keeps_the_key"),
    Mutant("server/static/respond.js", 'if (kept.key === null) throw new Stop("looked");', "",
           f"{PAGE}looking_in_one_tab_ends_withdrawing_in_another"),
    Mutant("server/static/respond.js", "announced !== wanted || announced !== sealed", "announced !== sealed",
           f"{PAGE}another_announcement_than_in_the_letter_stops_the_page"),
    Mutant("server/static/respond.js", "announced !== wanted || announced !== sealed", "sealed !== wanted",
           f"{PAGE}an_announcement_that_is_not_its_digest_stops_the_page"),
    Mutant("server/static/keep.js", "if (known !== undefined) return known;", "",
           f"{PAGE}two_tabs_send_one_report",
           because="respond.js looks before it draws, and IndexedDB's add refuses a second report"),
    Mutant("server/static/keep.js", "one.place !== place && one.epsilon < Infinity", "false",
           f"{PAGE}the_losses_of_all_surveys_of_a_server_add_up"),
    Mutant("server/static/keep.js", "if (sum.total > most * (1 + TOLERANCE)) throw", "if (false) throw",
           f"{PAGE}the_sum_is_kept_where_reports_are_kept"),
    Mutant("server/static/keep.js", 'durability = "strict"', 'durability = "relaxed"',
           f"{PAGE}a_report_is_on_the_disk_before_it_leaves"),
    Mutant("server/static/respond.js", "await this.keep.restored(mine).catch(() => mine)", "mine",
           "tests/browser/test_page_attacks.py::test_who_clears_the_store_sends_one_report"),
    Mutant("server/static/respond.js", "return unsent(kept) ? kept : null;", "return mine;",
           "tests/browser/test_page_attacks.py::test_who_clears_the_store_sends_one_report"),
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
