"""The JavaScript of a device: what it may touch, its size, what it refuses and promises."""

from __future__ import annotations

import copy
import gzip
import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import Categorical, Numeric, Schema
from discreet.collection.announcement import Announcement, AnnouncementTexts, QuestionTexts
from discreet.files.documents import compute_digest, encode_canonical
from discreet.local import Plan, PlanOptions, make_plan
from discreet.local.question import Question
from discreet.mechanisms.frequency import ORACLES
from discreet.mechanisms.mean import MEAN_ORACLES
from discreet.mechanisms.response import AnswerLaw, Related, Unrelated
from discreet.randomness import CryptoRandom
from discreet.server.bundle import Bundle
from discreet.survey import Group, Questionnaire
from programs import STATIC, evaluated, modules, page, tsc

pytestmark = pytest.mark.browser

DEVICE = ("draw", "random", "mechanisms", "cells", "dates", "promise")
"""What a respondent's device needs: modules without page, network and store."""

ALLOWED = {
    "Array", "BigInt", "Boolean", "DataView", "Error", "Infinity", "JSON", "Map", "Math", "NaN",
    "Date", "Number", "Object", "RangeError", "Set", "String", "TextDecoder", "TextEncoder",
    "TypeError",
    "Uint8Array", "crypto", "parseInt", "undefined",
}  # fmt: skip
OWN = {"constructor", "length", "name"}
"""Words that the modules bind themselves, although a browser's window has them, too."""

WORD = r"[A-Za-z_$][\w$]*"
TOKEN = re.compile(
    r"""/\*.*?\*/|//[^\n]*                                      # comments
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'                   # texts
    |(?<=[=(,:!?])\s*/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+/[a-z]*  # patterns
    |`(?:\\.|\$\{(?:[^{}]|\{[^{}]*\})*\}|[^`\\])*`             # texts with values in them
    |\.\.\.|\??\.\s*\#?"""
    + WORD
    + r"|\#?"
    + WORD,
    re.S | re.X,
)


def words_of(text: str) -> set[str]:
    """Names in JavaScript that are not members of something: variables, keywords, globals."""
    found = set()
    for token in (match.group() for match in TOKEN.finditer(text)):
        if token[0] == "`":
            for inner in re.findall(r"\$\{((?:[^{}]|\{[^{}]*\})*)\}", token):
                found |= words_of(inner)
        elif re.fullmatch(WORD, token):
            found.add(token)
    return found


EVERY_GLOBAL = """() => {
  const names = new Set();
  for (let holder = globalThis; holder; holder = Object.getPrototypeOf(holder)) {
    Object.getOwnPropertyNames(holder).forEach((name) => names.add(name));
  }
  return [...names];
}"""


def test_the_modules_name_few_globals(shown: Any) -> None:
    known = set(shown.evaluate(EVERY_GLOBAL))
    assert {"fetch", "document", "localStorage", "indexedDB", "navigator"} <= known
    for name in DEVICE:
        text = (STATIC / f"{name}.js").read_text(encoding="utf-8")
        assert words_of(text) & known <= ALLOWED | OWN, name
        assert "Math.random" not in text
        assert not re.search(r"\bimport\(", text)
        for line in ("fetch(address);", "const a = `${document.title}`;", "self.close();"):
            assert not words_of(text + line) & known <= ALLOWED | OWN, line  # known-bad twins


def test_the_modules_import_only_each_other() -> None:
    for name in DEVICE:
        text = (STATIC / f"{name}.js").read_text(encoding="utf-8")
        found = set(re.findall(r"^(?:import|export) .* from \"(.*)\";$", text, re.M))
        assert found <= {f"./{one}.js" for one in DEVICE}


@pytest.mark.slow
@pytest.mark.skipif(tsc() is None, reason="tsc is not here: npm install typescript, DISCREET_TSC")
def test_the_types_that_the_modules_state_hold(tmp_path: Path) -> None:
    """Of every module that asks for it with ``// @ts-check``."""

    def check(folder: Path) -> str:
        options = "--noEmit --strict --allowJs --target es2022 --module es2022 --lib es2022,dom"
        files = [str(path) for path in sorted(folder.rglob("*.js"))]
        command = [str(tsc()), *options.split(), "--moduleResolution", "bundler", *files]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    assert check(STATIC) == ""
    wrong = ("promise.js", "return [{ names: collection.asked(question)", "return [{ names: 1")
    assert "error TS" in check(modules(tmp_path, [wrong], bare=False))


def test_they_are_small() -> None:
    """All that a device loads, as it is served, under 14.5 KiB compressed."""
    files = Bundle().files
    assert sum(len(gzip.compress(files[f"{name}.js"], 9)) for name in DEVICE) < 14.5 * 1024


def test_only_comments_are_left_out_when_they_are_served() -> None:
    """What is served and the source are the same words to whoever reads no comments."""
    for path in sorted(STATIC.glob("*.js")):
        source, files = path.read_text(encoding="utf-8"), Bundle().files

        def code(found: re.Match[str]) -> str:
            return "" if found[0].startswith(("//", "/*")) else found[0]

        left = TOKEN.sub(code, source)
        assert "".join(files[path.name].decode().split()) == "".join(left.split())
        assert len(left) < len(source)


def test_announcements_are_written_in_one_way(static: Path) -> None:
    """The digest of an announcement in JavaScript is the one in Python, whatever its words."""
    names = ["b", "a", "é", "\ue000", "\U0001f600", "aa", "a\U0001f600", ""]
    words = {
        "en": AnnouncementTexts(
            'quo"te \\ / </script>', "line\nend\ttab\x00\x1f\x7f\u2028", "ü 漢 \U0001f600", "",
            {name: QuestionTexts(f"{name}?", ("x", name), "\r") for name in names},
        ),
        "de": AnnouncementTexts("zwei"),
    }  # fmt: skip
    made = Announcement("sha256:" + "0" * 64, "odd", words=words, batch=1_000_000, unprotected=True)
    script = """
      const { writeCanonical } = await import(new URL("respond.js", given.static));
      return writeCanonical(given.told);
    """
    told = json.loads(made.to_json())
    assert told.pop("digest") == made.digest
    given = {"told": told, "static": (static / "draw.js").as_uri()}
    assert evaluated(static, script, given) == made.encode_canonical().decode()


def test_the_public_names_are_these(static: Path) -> None:
    found = evaluated(static, "return [Object.keys(draw), Object.keys(promise)];")
    assert [sorted(names) for names in found] == [
        ["Collection", "DrawError", "Source", "SystemSource", "Tape", "collectionOf", "digestOf",
         "identityOf", "perturb"],
        ["countPeople", "describeProtection", "lossOf", "posteriorOf"],
    ]  # fmt: skip


READ = """
  const reasons = [];
  for (const text of given) {
    try {
      await draw.collectionOf(new TextEncoder().encode(text));
      reasons.push(null);
    } catch (error) {
      reasons.push(error instanceof draw.DrawError ? error.reason : error.stack);
    }
  }
  return reasons;
"""


def plan(**options: Any) -> Plan:
    schema = Schema(
        [Categorical("smokes", ["no", "yes"]), Numeric("age", 18, 98, integer=True)],
        "sick",
        ["no", "yes"],
    )
    return make_plan(schema, epsilon=1.0, options=PlanOptions(**options))


def survey(**options: Any) -> Questionnaire:
    schema = Schema([Categorical("a", ["n", "y"], optional=False)], "b", ["n", "y"])
    return Questionnaire(schema, [Group(("a", "b"), theta="0.5")], **options)


def changed(body: dict[str, Any], path: list[Any], value: Any) -> str:
    body = copy.deepcopy(body)
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return encode_canonical(body).decode()


def test_documents_that_lie_or_protect_nobody_are_refused(static: Path) -> None:
    good, sheet = plan(), survey()
    body, form = json.loads(good.encode_canonical()), json.loads(sheet.encode_canonical())
    first = ["questions", 0, "parameters"]
    cases = [
        (good.encode_canonical().decode(), None),
        (sheet.encode_canonical().decode(), None),
        (good.to_json(), "document"),  # the published file, with its seal: not the canonical bytes
        ("", "document"),
        ("[]", "document"),
        ("null", "document"),
        (changed(body, ["format"], "discreet/tally"), "document"),
        (changed(body, ["version"], body["version"] + 1), "version"),
        (changed(body, [*first, "p"], str(2**64)), "document"),  # always the truth
        (changed(body, [*first, "p"], "0"), "document"),  # never the truth, which tells as much
        (changed(body, [*first, "p"], str(int(body["questions"][0]["parameters"]["p"]) + 2**40)),
         "document"),
        (changed(body, [*first, "p"], "many"), "document"),
        (changed(body, [*first, "size"], 7), "document"),
        (changed(body, ["questions", 0, "mechanism"], "nothing"), "document"),
        (changed(body, ["questions", 0, "epsilon"], 1.1), "document"),
        (changed(body, ["reports"], 2), "document"),  # each of two would spend all
        (changed(body, ["epsilon"], 0.9), "document"),
        (changed(body, ["epsilon"], "inf"), "unprotected"),
        (changed(body, ["schema", "inferred"], True), "unprotected"),
        (changed(body, ["questions", 0, "weight"], 0), "document"),
        (changed(body, ["schema", "features", 0, "values", 0], 2**53 + 2), "document"),
        (changed(form, ["channels", 0, "theta"], str(2**64)), "unprotected"),
        (changed(form, ["channels"], None), "document"),
        (survey(personal="own").encode_canonical().decode(), "unprotected"),
    ]  # fmt: skip
    assert evaluated(static, READ, [text for text, _ in cases]) == [reason for _, reason in cases]


def of_mean(name: str, size: int, features: int) -> dict[str, Any]:
    """A plan with one question about numbers, as JSON."""
    numbers = [Numeric(f"t{k}", -1, 1) for k in range(features)]
    schema = Schema(numbers, "y", list(range(size // features)))
    options = {"active": features} if name == "laplace" else {}
    sizes = (size,) if size > 1 else ()
    oracle = MEAN_ORACLES[name](1.0, *sizes, **options)
    made = Plan(schema, 1.0, [Question(tuple(schema.names), oracle, 1, 1)])
    return json.loads(made.encode_canonical())  # type: ignore[no-any-return]


def test_parameters_that_do_not_fit_together_are_refused(static: Path) -> None:
    """Each would lose more than the formula of its loss says, or no report could be tallied."""
    first = ["questions", 0, "parameters"]
    noisy = of_mean("laplace", 4, 2)
    scale = int(noisy["questions"][0]["parameters"]["scale_2_32"])
    weaker = json.loads(changed(noisy, [*first, "active"], 1))
    corner, window = of_mean("duchi-many", 4, 2), of_mean("piecewise", 1, 1)
    mixed, some = of_mean("hybrid", 1, 1), of_mean("one-bit", 4, 2)
    hadamard = json.loads(
        Plan(
            Schema([Categorical("f", ["a"])], "y", list(range(9))), 1.0,
            [Question((), ORACLES["hr"](1.0, 9), 1)],
        ).encode_canonical()
    )  # fmt: skip
    lies = [
        changed(weaker, [*first, "scale_2_32"], str(scale // 2)),  # noise for one number of two
        changed(corner, [*first, "signs"], 4),  # ties
        changed(window, [*first, "largest"], 10),
        changed(window, [*first, "half"], 10),
        changed(mixed, [*first, "sign"], 1),
        changed(mixed, [*first, "duchi", "resolution"], 512),
        changed(some, [*first, "each", "resolution"], 512),
        changed(some, [*first, "sampled"], 2),  # twice the loss
        changed(hadamard, [*first, "order"], 15),
        changed(hadamard, [*first, "order"], 8),
    ]
    honest = [
        encode_canonical(one).decode() for one in (noisy, corner, window, mixed, some, hadamard)
    ]
    assert evaluated(static, READ, honest) == [None] * len(honest)
    assert evaluated(static, READ, lies) == ["document"] * len(lies)


@pytest.mark.slow
def test_damaged_documents_are_refused_with_a_reason(static: Path) -> None:
    """Any part left out or replaced: read, or refused with a reason, never an accident."""

    def paths(value: Any, path: tuple[Any, ...] = ()) -> Any:
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield [*path, key]
            if isinstance(one, (dict, list)):
                yield from paths(one, (*path, key))

    texts = []
    for made in (plan(), survey()):
        body = json.loads(made.encode_canonical())
        for path in paths(body):
            texts += [changed(body, path, new) for new in (KeyError, None, "x", [], {}, -1, 1e9)]
    found = evaluated(static, READ, texts)
    assert len(found) > 500
    assert set(found) <= {None, "document", "version", "unprotected"}
    assert found.count("document") > len(found) / 4


def test_an_insecure_page_is_told_why_nothing_works(chromium: Any, static: Path) -> None:
    script = """async (text) => {
      const { collectionOf } = await import("/draw.js");
      const reading = collectionOf(new TextEncoder().encode(text));
      return reading.then(() => "read", (error) => error.reason);
    }"""
    for address, found in (("http://survey.example/", "insecure"), ("http://localhost/", "read")):
        with page(chromium, static, address) as shown:
            assert shown.evaluate(script, plan().encode_canonical().decode()) == found


def described(mechanism: Any) -> dict[str, Any]:
    sizes = {"sizes": list(mechanism.sizes)} if hasattr(mechanism, "sizes") else {}
    return {"name": mechanism.name, "parameters": {**mechanism.get_parameters(), **sizes}}


def mechanisms() -> list[Any]:
    found: list[Any] = [
        ORACLES[name](epsilon, size)
        for name in ORACLES
        for epsilon, size in ((1e-6, 3), (0.1, 9), (1.0, 17), (4.0, 300), (30.0, 8))
    ]
    for name, kind in MEAN_ORACLES.items():
        sizes: list[Any] = [()] if name in ("duchi", "piecewise", "hybrid") else [(1,), (4,), (9,)]
        found += [kind(epsilon, *size) for epsilon in (0.01, 0.5, 1.0, 6.0, 20.0) for size in sizes]
    found += [
        Unrelated((2, 3), "0.4", (AnswerLaw((0, 1), (1, 2, 3, 4, 5, 6)),)),
        Unrelated((2,), 1),
    ]
    found += [Related((2,), "0.7"), Related((2,), "0.2"), Related((2, 2), "0.7")]
    found += [Unrelated((2,), "0.3", (AnswerLaw((0,), (1, 0)),)), Unrelated((5,), "1e-9")]
    return found


def test_the_loss_of_a_mechanism_is_what_python_says(static: Path) -> None:
    every = mechanisms()
    script = "return given.map(({ name, parameters }) => promise.lossOf(name, parameters));"
    found = evaluated(static, script, [described(one) for one in every])
    for one, loss in zip(every, found, strict=True):
        exact = one.compute_exact_epsilon()
        # JSON has no infinity
        assert (math.inf if loss is None else loss) == pytest.approx(exact, rel=1e-9), one


FACTS = """
  const facts = [];
  for (const text of given) {
    const bytes = new TextEncoder().encode(text);
    const collection = await draw.collectionOf(bytes, { unprotected: true });
    facts.push(promise.describeProtection(collection, 0));
  }
  return facts;
"""


def test_how_often_the_truth_is_sent_is_what_python_says(static: Path) -> None:
    oracles = [ORACLES[n](e, s) for n in ORACLES for e, s in ((0.5, 4), (2.0, 17), (8.0, 40))]
    plans = []
    for oracle in oracles:
        schema = Schema([Categorical("f", ["a"])], "y", list(range(oracle.size)))
        plans.append(Plan(schema, oracle.epsilon, [Question((), oracle, 1)]))
    for oracle, (fact,) in zip(
        oracles,
        evaluated(static, FACTS, [p.encode_canonical().decode() for p in plans]),
        strict=True,
    ):
        assert fact["names"] == ["y"]
        if oracle.name == "she":
            assert (fact["sent"], fact["truth"], fact["other"]) == ("noise", None, None)
        else:
            assert fact["sent"] == ("answers" if oracle.name == "de" else "set")
            assert fact["truth"] == pytest.approx(oracle.p, rel=1e-12)
            assert fact["other"] == pytest.approx(oracle.q, rel=1e-9)


LISTED = """
  const { listCells } = await import(new URL("practice.js", given.static));
  return given.cases.map(({ name, parameters, value }) => listCells(name, parameters, value));
"""


@pytest.mark.slow
def test_practice_reads_a_message_as_the_collector_does(static: Path) -> None:
    """The list of a message holds the answers for which it is likeliest."""
    cases, wanted = [], []
    for name in ORACLES:
        if name == "she":  # numbers with noise: no list
            continue
        for size in (2, 3, 17, 40):
            oracle = ORACLES[name](1.0, size)
            for row in oracle.perturb(np.arange(size), CryptoRandom()):
                value = [int(one) for one in np.atleast_1d(row)]
                likely = [oracle.likelihood(cell, value) for cell in range(size)]
                most = max(likely) if min(likely) < max(likely) else None
                cases.append({**described(oracle), "value": value})
                wanted.append([cell for cell in range(size) if likely[cell] == most])
    found = evaluated(static, LISTED, {"cases": cases, "static": (static / "draw.js").as_uri()})
    for case, lists, right in zip(cases, found, wanted, strict=True):
        everything = list(range(case["parameters"]["size"]))
        assert lists == right or (not right and lists in ([], everything)), case


TRIAL = """
  const { makeTrial } = await import(new URL("practice.js", given.static));
  const collection = await draw.collectionOf(new TextEncoder().encode(given.text));
  const { kind, size, draw: drawCells } = makeTrial(collection, 0), times = Array(size).fill(0);
  for (let k = 0; k < given.people; k++) for (const cell of drawCells(1)) times[cell] += 1;
  return [kind, size, times];
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["de", "ss", "oue", "olh", "hr"])
def test_practice_draws_as_the_question_does(name: str, static: Path) -> None:
    """How often an answer is in the message: p for one's own, q for another, within 6 sigma."""
    made, people = plan(oracle=name, kind="pairs"), 4000
    oracle = made.questions[0].mechanism
    given = {"text": made.encode_canonical().decode(), "people": people}
    given["static"] = (static / "draw.js").as_uri()
    kind, size, times = evaluated(static, TRIAL, given)
    assert (kind, size) == ("answers" if name == "de" else "set", oracle.size)
    for cell, count in enumerate(times):
        share = float(oracle.p_exact if cell == 1 else oracle.q_exact)
        assert abs(count - people * share) < 6 * math.sqrt(people * share * (1 - share)), cell


def test_the_parts_of_a_sheet_say_how_often_they_are_true(static: Path) -> None:
    schema = Schema([Categorical("a", ["n", "y"], optional=False)], "b", ["n", "y"])
    groups = [Group(("a",), theta="0.7", model="related"), Group(("b",), theta="0.25")]
    made = Questionnaire(schema, groups)
    ((first, second),) = evaluated(static, FACTS, [made.encode_canonical().decode()])
    assert (first["truth"], first["other"]) == pytest.approx((0.7, 0.3))
    assert (second["truth"], second["other"]) == (0.25, None)
    assert [first["epsilon"], second["epsilon"]] == pytest.approx(list(made.epsilons))


def test_beliefs_move_as_far_as_epsilon_lets_them(static: Path) -> None:
    script = """return [promise.posteriorOf(0.1, 1), promise.posteriorOf(0.1, 0),
      promise.posteriorOf(0.5, Infinity), promise.posteriorOf(0, 3),
      ...[0.6224, 0.62, 1, 0].map((probability) => promise.countPeople(probability))];"""
    found = evaluated(static, script)
    odds = math.e * 0.1 / 0.9
    assert found[:4] == pytest.approx([odds / (1 + odds), 0.1, 1, 0])
    assert found[4:] == [63, 62, 100, 0]  # rounded towards less protection


def test_a_document_names_its_digest_and_its_choices(static: Path) -> None:
    made = plan()
    script = """
      const bytes = new TextEncoder().encode(given);
      const collection = await draw.collectionOf(bytes, { digest: undefined });
      const labels = collection.names.map(
        (name) => collection.choices(name).map((choice) => choice.label));
      const mismatch = draw.collectionOf(bytes, { digest: "sha256:0" });
      const refusal = await mismatch.catch((error) => error.reason);
      return [collection.digest, collection.kind, collection.names, labels, collection.epsilon,
        refusal, [0, 1].map((question) => collection.asked(question))];"""
    found = evaluated(static, script, made.encode_canonical().decode())
    labels = [list(made.cells[name].labels) for name in made.schema.names]
    assert found == [
        compute_digest(made.encode_canonical()),
        "plan",
        list(made.names),
        [*labels, ["no", "yes"]],
        1,
        "digest",
        [list(made.get_asked_columns(0)), list(made.get_asked_columns(1))],
    ]
