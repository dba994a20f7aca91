"""The vectors hold in Python, in node and in Chromium, and find every client with one mistake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import Case, agree, cell_in, odd_case, read, result, written
from make import WANTED

from discreet.collection.protocol import parse_collection_json
from discreet.files.documents import compute_digest
from programs import Node, browser, modules, page

HERE = Path(__file__).parent


def file(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


DOCUMENTS: dict[str, str] = file("documents")
VECTORS = {name: file(name) for name in (*WANTED, "plans", "judging", "questionnaires")}


@pytest.fixture(scope="module")
def collections() -> dict[str, Any]:
    """The documents, read as a device reads them."""
    return {
        digest: parse_collection_json(json.dumps({**json.loads(text), "digest": digest}))
        for digest, text in DOCUMENTS.items()
    }


def expected(one: dict[str, Any]) -> dict[str, Any]:
    keys = ("error",) if "error" in one else ("text", "key", "question", "used")
    return {key: one[key] for key in keys}


def test_a_digest_is_the_hash_of_the_canonical_bytes(collections: dict[str, Any]) -> None:
    for digest, text in DOCUMENTS.items():
        assert compute_digest(text.encode()) == digest
        assert collections[digest].encode_canonical() == text.encode()


@pytest.mark.parametrize("name", WANTED)
def test_every_mechanism_has_vectors_in_which_rare_things_happen(name: str) -> None:
    found = VECTORS[name]
    assert len(found) >= 40
    assert not any("error" in one for one in found)
    assert {event for one in found for event in one.get("events", ())} >= WANTED[name]
    sizes = {json.loads(DOCUMENTS[one["document"]])["questions"][0].get("size") for one in found}
    if "size" in json.loads(DOCUMENTS[found[0]["document"]])["questions"][0]:
        assert len(sizes) >= 8 or sizes == {1}


@pytest.mark.parametrize("name", VECTORS)
def test_python_draws_what_the_vectors_say(name: str, collections: dict[str, Any]) -> None:
    for one in VECTORS[name]:
        made = result(Case.from_json(collections[one["document"]], one))
        assert made == expected(one), one["name"]


def odd_cases(collections: dict[str, Any]) -> Iterator[tuple[Case, str, int | None]]:
    for digest, some in file("answers").items():
        for name, answer, cell in some:
            yield odd_case(collections[digest], name, read({"": answer})[""]), name, cell


@pytest.mark.slow
def test_python_encodes_odd_answers_as_the_vectors_say(collections: dict[str, Any]) -> None:
    for case, name, cell in odd_cases(collections):
        assert cell_in(result(case), case.collection, name) == cell, case.answers


def test_labels_of_numbers_are_as_the_vectors_say() -> None:
    for number, label in file("labels"):
        assert f"{number:g}" == label


def answered(twin: Node, cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What a client makes of cases, some at a time."""
    for start in range(0, len(cases), 20):
        some = cases[start : start + 20]
        for one in some:
            twin.ask(one, DOCUMENTS[one["document"]])
        for _ in some:
            yield twin.answer()


def wrong(twin: Node, names: list[str]) -> str | None:
    """The first vector that a client does not draw, of some files."""
    cases = [one for name in names for one in VECTORS[name]]
    for one, theirs in zip(cases, answered(twin, cases), strict=False):
        if not agree(expected(one), theirs):
            return f"{one['name']}: {theirs}, not {expected(one)}"
    return None


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return modules(tmp_path_factory.mktemp("twin"))


@pytest.mark.slow
@pytest.mark.browser
def test_node_draws_what_the_vectors_say(static: Path) -> None:
    with Node(static) as twin:
        assert wrong(twin, list(VECTORS)) is None


def wrong_cell(twin: Node, collections: dict[str, Any]) -> str | None:
    """The first oddly spelt answer that a client puts into another cell."""
    odd = list(odd_cases(collections))
    found = answered(twin, [case.to_json() for case, _, _ in odd])
    for (case, name, cell), made in zip(odd, found, strict=True):
        if len(made.get("error", "")) > 20 or cell_in(made, case.collection, name) != cell:
            return f"{written(case.answers)}: {made}, not {cell}"
    return None


@pytest.mark.slow
@pytest.mark.browser
def test_node_encodes_odd_answers_as_the_vectors_say(
    static: Path, collections: dict[str, Any]
) -> None:
    with Node(static) as twin:
        assert wrong_cell(twin, collections) is None


IN_THE_PAGE = """async ([documents, cases, labels]) => {
  const { answer } = await import("/answer.mjs");
  const draw = await import("/draw.js"), { formatShort } = await import("/cells.js");
  const results = [];
  for (const case_ of cases) results.push(await answer(draw, documents, case_));
  return [results, labels.map(([number]) => formatShort(number))];
}"""


@pytest.mark.browser
@pytest.mark.slow
def test_chromium_draws_what_the_vectors_say(static: Path, collections: dict[str, Any]) -> None:
    cases = [one for some in VECTORS.values() for one in some]
    odd, labels = list(odd_cases(collections)), file("labels")
    everything = [*cases, *(case.to_json() for case, _, _ in odd)]
    with browser() as opened, page(opened, static) as shown:
        found, written_labels = shown.evaluate(IN_THE_PAGE, [DOCUMENTS, everything, labels])
    for one, made in zip(cases, found, strict=False):
        assert agree(expected(one), made), (one["name"], made)
    for (case, name, cell), made in zip(odd, found[len(cases) :], strict=True):
        assert cell_in(made, case.collection, name) == cell, written(case.answers)
    assert written_labels == [label for _, label in labels]


MISTAKES: dict[str, list[tuple[str, str, str]]] = {
    "modulo instead of a product": [
        ("random.js", "const products = this.halves(count).map((half) => BigInt(half) * bound);",
         "const products = this.halves(count).map((half) => BigInt(half) % bound << 32n);"),
        ("random.js", "refusedFlags = "
         "products.map((product) => (product & 0xffffffffn) < threshold);",
         "refusedFlags = [];"),
    ],
    "refused ones are taken": [("random.js", "(product & 0xffffffffn) < threshold", "false")],
    "refused words are taken": [("random.js", "candidates.map((value) => value >= bound)", "[]")],
    "refused ones are drawn again at once": [
        ("random.js", "integers(below, count) {",
         "integers(below, count) {\n    if (count > 1) "
         "return Array.from({ length: count }, () => this.integers(below, 1)[0]);"),
    ],
    "big-endian halves": [("random.js", "getUint32(4 * i, true)", "getUint32(4 * i, false)")],
    "big-endian words": [("random.js", "getBigUint64(8 * i, true)", "getBigUint64(8 * i, false)")],
    "a coin is a double": [
        ("random.js", "const flags = [];",
         "const flags = this.words(count)"
         ".map((word) => Number(word) / 2 ** 64 < Number(threshold) / 2 ** 64);\n"
         "    if (count) return flags;"),
    ],
    "a tie is settled with a double": [
        ("random.js", "words[k] >> 8n < lowBits",
         "Number(words[k] >> 8n) <= Number(lowBits)"),
    ],
    "ties are ignored": [
        ("random.js", "if (byte === firstByte && lowBits) ties.push(flags.length);", ""),
    ],
    "ties are settled at once": [
        ("random.js", "coins(threshold, count) {",
         "coins(threshold, count) {\n    if (count > 1) "
         "return Array.from({ length: count }, () => this.coin(threshold));"),
    ],
    "padding is not drawn": [("mechanisms.js", "8 * Math.ceil(params.size / 8)", "params.size")],
    "a set keeps its order": [
        ("mechanisms.js", "return set.sort((a, b) => a - b);", "return set;"),
    ],
    "a set is sorted as texts": [
        ("mechanisms.js", "return set.sort((a, b) => a - b);", "return set.sort();"),
    ],
    "the place in the set is drawn where it is needed": [
        ("mechanisms.js", "const [place] = source.integers(params.subset, 1);\n"
         "      if (hasTruth) ",
         "if (hasTruth) "),
        ("mechanisms.js", "set[place] = value;",
         "set[source.integers(params.subset, 1)[0]] = value;"),
    ],
    "keys that tie are kept": [
        ("mechanisms.js", "if (set.length === params.subset) return set;",
         "return set.slice(0, params.subset);"),
    ],
    "Floyd keeps a value twice": [
        ("random.js", "chosenValues.includes(value) ? last : value", "value"),
    ],
    "always a shuffle": [("random.js", "if (take * take < pool) {", "if (false) {")],
    "a law is drawn where it is needed": [
        ("mechanisms.js", "const otherAnswers = personal ?? "
         "drawAnswers(source, params.laws, params.sizes);\n"
         "    return keepsTruth ? truth : otherAnswers;",
         "return keepsTruth ? truth : personal ?? drawAnswers(source, params.laws, params.sizes);"),
    ],
    "the first place of a law varies fastest": [
        ("mechanisms.js", "[...places].reverse()", "[...places]"),
    ],
    "a logarithm in floating point": [
        ("random.js", "for (let bits = 64; ; bits += 64) {",
         "for (let bits = 64; ; bits += 64) {\n          values.push(BigInt(Math.floor("
         "-Number(scale) / 2 ** Number(shift) * Math.log(Number(word || 1n) / 2 ** 64))));\n"
         "          break;"),
    ],
    "an open word is decided by its lower end": [
        ("random.js", "high !== null && low * scale >> fraction + shift === "
         "high * scale >> fraction + shift", "word !== 0n"),
    ],
    "further words come at once": [
        ("random.js", "geometric(scale, shift, count) {",
         "geometric(scale, shift, count) {\n    if (count > 1) return "
         "Array.from({ length: count }, () => this.geometric(scale, shift, 1)[0]);"),
    ],
    "noise in pairs": [
        ("random.js", "const plus = this.geometric(scale, shift, count), "
         "minus = this.geometric(scale, shift, count);",
         "const plus = [], minus = [], draw = () => this.geometric(scale, shift, 1)[0];\n"
         "    for (let i = 0; i < count; i++) plus.push(draw()), minus.push(draw());"),
    ],
    "the truth is decided before the other value is drawn": [
        ("mechanisms.js", "const offset = source.integers(size - 1, 1)[0] + 1;",
         "const truth_ = source.coin(truthThreshold), "
         "offset = source.integers(size - 1, 1)[0] + 1;"),
        ("mechanisms.js", "return source.coin(truthThreshold) ? value", "return truth_ ? value"),
    ],
    "no word for a number on the grid": [
        ("mechanisms.js", "const words = source.words(numbers.length);",
         "const words = numbers.map((number) => "
         "(number * resolution % 1 ? source.words(1)[0] : 0n));"),
    ],
    "the window is not skipped": [
        ("mechanisms.js", "outsideLevel >= windowStart ? outsideLevel + width", "false ? 0"),
    ],
    "coordinates keep their order": [
        ("mechanisms.js", ".subset(params.size, params.sampled).sort((a, b) => a - b);",
         ".subset(params.size, params.sampled);"),
    ],
    "the majority of an even number": [
        ("mechanisms.js", "source.coins(TWO_TO_64 / 2n, params.signs)",
         "source.coins(TWO_TO_64 / 2n, params.size)"),
    ],
    "the question is drawn after the answer": [
        ("draw.js", "const question = fixedQuestion ?? this.drawQuestion(source, options.group);",
         "const question = fixedQuestion ?? 0;"),
        ("draw.js", "const key = source.bytes(16),",
         "if (fixedQuestion === null) this.drawQuestion(source, options.group);\n"
         "    const key = source.bytes(16),"),
    ],
    "the key is drawn first": [
        ("draw.js", "const source = options.source ?? new SystemSource();",
         "const source = options.source ?? new SystemSource(), key = source.bytes(16);"),
        ("draw.js", "const key = source.bytes(16), id", "const id"),
    ],
    "the id is not bound to the key": [
        ("draw.js", 'new TextEncoder().encode("discreet/id")', 'new TextEncoder().encode("")'),
    ],
    "a report hides that it is simulated": [("draw.js", "source.simulated, this", "false, this")],
    "a seal over another order": [
        ("draw.js", '{"collection":"${collection}","format":"discreet/report",',
         '{"format":"discreet/report","collection":"${collection}",'),
    ],
    "another separator": [("draw.js", 'value.join(", ")', "value.join()")],
    "classes vary fastest": [
        ("draw.js", "vector[j * targetCells.size + classCell]",
         "vector[classCell * features.length + j]"),
    ],
    "of equal scores the last": [
        ("draw.js", "return scores.indexOf(Math.max(...scores));",
         "return scores.lastIndexOf(Math.max(...scores));"),
    ],
    "a model without its offsets": [
        ("draw.js", "[Number(columns.get(name))], offset)", "[Number(columns.get(name))], 0)"),
    ],
    "the class is sent, not whether the model is right": [
        ("draw.js", "Number(decide(candidate, columns) === classCell)", "classCell % 2"),
    ],
    "cells in the wrong order": [
        ("draw.js", "for (const group of groupChannels) {",
         "for (const group of [...groupChannels].reverse()) {"),
    ],
    "a missing number is zero": [("cells.js", "return NaN;", "return 0;")],
    "an edge belongs to the bin before it": [("cells.js", "edge <= number", "edge < number")],
    "a token is a value": [
        ("cells.js", 'answer === "" || rules.missing_tokens.includes(answer)', 'answer === ""'),
    ],
}  # fmt: skip
"""Clients with one mistake each: what to change in which file."""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_client_with_one_mistake_fails_the_vectors(
    mistake: str, tmp_path: Path, collections: dict[str, Any]
) -> None:
    with Node(modules(tmp_path, MISTAKES[mistake])) as twin:
        found = wrong(twin, list(VECTORS))
    if found is None:
        with Node(tmp_path / "static") as twin:
            found = wrong_cell(twin, collections)
    assert found is not None
    assert "SyntaxError" not in found
    assert "ReferenceError" not in found
