"""The twin in JavaScript and the device in Python, on the same new bytes: the same report.

Documents, answers and tapes are drawn anew in each run; ``DISCREET_SEED`` repeats one.
``DISCREET_CASES`` says how many (``make soak``: a million).
"""

from __future__ import annotations

import os
import random
import secrets
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import (
    Case,
    Growing,
    agree,
    random_case,
    random_judging_plan,
    random_plan,
    random_questionnaire,
    result,
)

from discreet.errors import DiscreetError
from programs import Node, modules

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CASES = int(os.environ.get("DISCREET_CASES", "8000"))
AT_ONCE = 40


def drawn_cases(chance: random.Random) -> list[tuple[Case, dict[str, Any]]]:
    """A new document, some people who answer it, and what Python makes of it."""
    while True:
        try:
            kinds = [random_plan, random_judging_plan, random_questionnaire]
            collection = chance.choices(kinds, [5, 2, 4])[0](chance)
        except DiscreetError:  # a group whose truth is never sent, for instance
            continue
        found = []
        for _ in range(AT_ONCE):
            tape = Growing(collection, chance)
            case = random_case(collection, chance)
            made = result(case, tape)
            more = chance.randbytes(1024)  # a client that reads on shall not end with the tape
            found.append((replace(case, tape=bytes(tape.script) + more), made))
        return found


def test_the_twin_draws_what_python_draws(tmp_path: Path) -> None:
    seed = int(os.environ.get("DISCREET_SEED") or secrets.randbits(32))
    chance, seen = random.Random(seed), Counter[str]()
    with Node(modules(tmp_path)) as twin:
        while seen.total() < CASES:
            cases = drawn_cases(chance)
            for case, _ in cases:
                twin.ask(case.to_json(), case.collection.encode_canonical().decode())
            for case, made in cases:
                theirs = twin.answer()
                assert agree(made, theirs), (
                    f"DISCREET_SEED={seed}: {case.to_json()} of {case.collection.to_json()}: "
                    f"Python {made}, JavaScript {theirs}"
                )
                seen[theirs.get("error", case.collection.kind)] += 1
    assert seen["plan"] > CASES / 4
    assert seen["questionnaire"] > CASES / 10
    reasons = {"missing", "unknown", "number", "whole", "outside", "cell", "unasked", "group"}
    assert reasons <= set(seen)
