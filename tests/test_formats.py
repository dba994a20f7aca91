"""What docs/formats.md shows is what the package does."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from discreet.collection.protocol import parse_collection_json
from discreet.collection.report import Report
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.files.documents import compute_digest, encode_canonical
from discreet.mechanisms.frequency import ORACLES
from discreet.mechanisms.mean import MEAN_ORACLES
from discreet.mechanisms.response import RESPONSE_MODELS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "formats.md").read_text("utf-8")
JSON = re.findall(r"^```json\n(.*?\n)```$", PAGE, re.M | re.S)
REPORT, TIGHT, PLAN, SHEET = JSON


def sealed(text: str) -> str:
    return json.dumps({**json.loads(text), "digest": compute_digest(text.strip().encode())})


@pytest.mark.parametrize("text", [PLAN, SHEET])
def test_the_documents_are_canonical(text: str) -> None:
    shown = parse_collection_json(sealed(text))
    assert shown.encode_canonical().decode() == text.strip()


def test_the_report_of_the_example_is_drawn_from_its_bytes() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "vectors"))
    from tape import Tape

    (script,) = re.findall(r"^```text\n([0-9a-f ]+)\n```$", PAGE, re.M)
    tape = Tape(script)
    tape.simulated = False
    person = Respondent(parse_collection_json(sealed(PLAN)), MemoryStore(), random_state=tape)
    report = person.report({"smokes": "yes", "age": 40, "sick": "no"})
    assert report.to_json() == REPORT
    assert tape.used == len(tape.script)
    body = json.loads(REPORT)
    assert compute_digest(TIGHT.strip().encode()) == body.pop("digest")
    assert encode_canonical(body).decode() == TIGHT.strip()
    assert Report.from_json(REPORT) == report


@pytest.mark.parametrize("name", [*ORACLES, *MEAN_ORACLES, *RESPONSE_MODELS])
def test_every_mechanism_and_all_its_parameters_are_described(name: str) -> None:
    rows = [line for line in PAGE.splitlines() if f"`{name}`" in line.split("|")[1:2].__str__()]
    assert len(rows) >= (2 if name in RESPONSE_MODELS else 3)  # parameters, draws, loss
    if name in RESPONSE_MODELS:
        return
    kind = {**ORACLES, **MEAN_ORACLES}[name]
    single = name in ("duchi", "piecewise", "hybrid")
    every = "".join(row for row in PAGE.splitlines() if "every mean oracle" in row)
    for key in kind(1.0, *(() if single else (9,))).get_parameters():
        assert f"`{key}`" in "".join(rows) + (every if name in MEAN_ORACLES else ""), key
