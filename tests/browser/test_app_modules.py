"""The modules that an app takes over: found by node and TypeScript, with a hash of one's own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from declarations import make_declarations

from discreet import Categorical, Schema
from discreet.collection.report import Report
from discreet.local import Plan, PlanOptions, make_plan
from programs import STATIC, evaluated, node, page, tsc

pytestmark = pytest.mark.browser

DEVICE = ("draw", "random", "mechanisms", "cells", "dates", "promise")
needs_tsc = pytest.mark.skipif(
    tsc() is None, reason="tsc is not here: npm install typescript, DISCREET_TSC"
)

SHA256 = """
  const sha256 = (bytes) => {  // FIPS 180-4, for short messages
    const primes = [], roots = (p, power) => Math.floor((p ** power % 1) * 2 ** 32) >>> 0;
    for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
    const k = primes.map((p) => roots(p, 1 / 3)), h = primes.slice(0, 8).map((p) => roots(p, 1 / 2));
    const size = ((bytes.length + 8 >> 6) + 1) * 64, padded = new Uint8Array(size), view = new DataView(padded.buffer);
    padded.set(bytes); padded[bytes.length] = 128; view.setUint32(size - 4, bytes.length * 8);
    const turn = (x, n) => x >>> n | x << 32 - n, w = new Uint32Array(64);
    for (let at = 0; at < size; at += 64) {
      for (let i = 0; i < 64; i++) {
        const a = w[i - 15], b = w[i - 2];
        w[i] = i < 16 ? view.getUint32(at + 4 * i)
          : w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >>> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >>> 10);
      }
      let v = [...h];
      for (let i = 0; i < 64; i++) {
        const [a, b, c, d, e, f, g, last] = v;
        const sum = last + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + k[i] + w[i] | 0;
        const shift = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c) | 0;
        v = [sum + shift | 0, a, b, c, d + sum | 0, e, f, g];
      }
      v.forEach((word, i) => (h[i] = h[i] + word | 0));
    }
    const output = new DataView(new ArrayBuffer(32));
    h.forEach((word, i) => output.setInt32(4 * i, word));
    return new Uint8Array(output.buffer);
  };
"""  # noqa: E501
ANSWERED = (
    SHA256
    + """
  const { collectionOf, DrawError } = draw, results = {};
  const bytes = new TextEncoder().encode(given.text);
  const refusal = async (options) => {
    try { await collectionOf(bytes, options); return null; } catch (error) {
      if (!(error instanceof DrawError)) throw error;
      return error.reason;
    }
  };
  results.without = await refusal({});
  results.wrong = await refusal({ sha256: (content) => sha256(content).map((byte) => byte ^ 1) });
  const collection = await collectionOf(bytes, { sha256, digest: given.digest });
  results.report = (await collection.report(given.answers)).text;
  const tape = new draw.Tape(new Uint8Array(4096).map((_, place) => place * 37 + 11));
  results.taped = (await collection.report(given.answers, { source: tape })).text;
  results.secure = globalThis.isSecureContext ?? true;
  return results;
"""
)


def plan() -> Plan:
    schema = Schema([Categorical("smokes", ["no", "yes"])], "sick", ["no", "yes"])
    return make_plan(schema, epsilon=1.0, options=PlanOptions(kind="pairs", oracle="de"))


def given() -> dict[str, Any]:
    made = plan()
    answers = {"smokes": "yes", "sick": "no"}
    return {"text": made.encode_canonical().decode(), "digest": made.digest, "answers": answers}


def check_reports(found: dict[str, Any]) -> None:
    for name in ("report", "taped"):
        report = Report.from_json(found[name])  # its seal is over its own bytes
        assert report.collection == plan().digest
    assert found["wrong"] == "hash"


def test_a_hash_of_ones_own_gives_the_same_report(static: Path) -> None:
    found = evaluated(static, ANSWERED, given())
    check_reports(found)
    assert found["without"] is None
    own = evaluated(static, ANSWERED.replace("{ sha256, digest", "{ digest"), given())
    assert own["taped"] == found["taped"]


def test_a_platform_without_crypto_subtle_needs_a_hash_passed_in(static: Path) -> None:
    """Node with random bytes and nothing else of Web Crypto, as some apps have it."""
    bare = """
      const { crypto } = globalThis, getRandomValues = (array) => crypto.getRandomValues(array);
      Object.defineProperty(globalThis, "crypto", { value: { getRandomValues } });
    """
    found = evaluated(static, bare + ANSWERED, given())
    assert found["without"] == "insecure"  # the twin: no hash passed in
    check_reports(found)
    assert found["taped"] == evaluated(static, ANSWERED, given())["taped"]


@pytest.mark.slow
def test_an_insecure_page_can_answer_with_a_hash_of_its_own(chromium: Any, static: Path) -> None:
    """A real browser at an address without TLS: there is no crypto.subtle."""
    with page(chromium, static, "http://app.example/") as shown:
        script = f'async (given) => {{ const draw = await import("/draw.js"); {ANSWERED} }}'
        found = shown.evaluate(script, given())
    assert found["secure"] is False
    assert found["without"] == "insecure"  # as it was for everybody there before
    check_reports(found)


def installed(folder: Path) -> Path:
    """An app that has the modules as a package; the folder of the package."""
    package = folder / "node_modules" / "discreet-draw"
    package.mkdir(parents=True)
    names = ["package.json", "types.d.ts"]
    names += [f"{name}{end}" for name in DEVICE for end in (".js", ".d.ts")]
    for name in names:
        shutil.copy(STATIC / name, package)
    return package


APP = """
import { readFileSync } from "node:fs";
import { collectionOf } from "discreet-draw";
import { countPeople } from "discreet-draw/promise.js";
const { text, answers } = JSON.parse(readFileSync(0, "utf8"));
const collection = await collectionOf(new TextEncoder().encode(text));
console.log((await collection.report(answers)).text, countPeople(0.5));
"""


def test_node_takes_the_modules_for_modules(tmp_path: Path) -> None:
    """Also without a suffix that says so, and without a warning; the twin has no package.json."""
    package = installed(tmp_path)
    (tmp_path / "app.mjs").write_text(APP)
    program = str(node())

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        content = json.dumps(given())
        return subprocess.run(
            [program, *command], input=content, capture_output=True, text=True, check=False,
            cwd=tmp_path,
        )  # fmt: skip

    ran = run("app.mjs")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert Report.from_json(ran.stdout.partition("\n")[0] + "\n").collection == plan().digest
    direct = run("--input-type=module", "-e", f'await import("{(STATIC / "draw.js").as_uri()}")')
    assert (direct.returncode, direct.stderr) == (0, "")
    (package / "package.json").unlink()
    assert run("app.mjs").returncode != 0


@pytest.mark.slow
@needs_tsc
def test_the_declarations_say_what_the_modules_say() -> None:
    made = make_declarations()
    assert sorted(made) == sorted(f"{name}.d.ts" for name in DEVICE)
    for name, text in made.items():
        here = (STATIC / name).read_text()
        assert here == text, f"{name} is old: python tests/browser/declarations.py writes it again"


TYPED = """
import { collectionOf, DrawError, type Collection } from "discreet-draw";
import { describeProtection } from "discreet-draw/promise.js";
import type { Answers, Drawn, Hash } from "discreet-draw/types.js";
const sha256: Hash = (bytes) => bytes.slice(0, 32);
export async function answer(bytes: ArrayBuffer, answers: Answers): Promise<Drawn> {
  const collection: Collection = await collectionOf(bytes, { sha256 });
  const truth: number | null = describeProtection(collection)[0].truth;
  if (truth === null) throw new DrawError("document", "noise");
  return collection.report(answers, { question: 0 });
}
"""


@pytest.mark.slow
@needs_tsc
@pytest.mark.parametrize("resolution", ["nodenext", "bundler"])
def test_an_app_in_typescript_finds_the_types(resolution: str, tmp_path: Path) -> None:
    package = installed(tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "app.ts").write_text(TYPED)
    module = "nodenext" if resolution == "nodenext" else "es2022"
    options = f"--noEmit --strict --target es2022 --lib es2022,dom --module {module}"

    def check() -> str:
        command = [str(tsc()), *options.split(), "--moduleResolution", resolution, "app.ts"]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path
        ).stdout

    assert check() == ""
    (tmp_path / "app.ts").write_text(TYPED.replace("question: 0", 'question: "first"'))
    assert "error TS" in check()
    (tmp_path / "app.ts").write_text(TYPED)
    (package / "draw.d.ts").unlink()  # as it was before: JavaScript alone
    assert "error TS" in check()
