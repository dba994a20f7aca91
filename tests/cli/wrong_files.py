"""A folder of files with one thing wrong in each, named for it; and the good ones beside them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from discreet import Categorical, MixedNB, Numeric, Schema

SECRET = "Brunhilde"
"""What no message may repeat: it stands in rows that cannot be parsed."""

HEADER = ("age", "income", "city", "bought")
SCHEMA = Schema(
    [
        Numeric("age", 0, 125, integer=True),
        Numeric("income", 0, 200_000),
        Categorical("city", ["Köln", "Paris", "Oslo"]),
    ],
    "bought",
    ["no", "yes"],
)
Row = tuple[Any, ...]


def _people() -> list[Row]:
    draw = random.Random(1)
    return [
        (
            draw.randint(18, 90),
            round(draw.uniform(0, 99_999), 2),
            draw.choice(["Köln", "Paris", "Oslo"]),
            draw.choice(["no", "yes"]),
        )
        for _ in range(120)
    ]


def _csv(rows: Sequence[Row], header: Sequence[str] = HEADER, sep: str = ",") -> str:
    return "".join(sep.join(map(str, row)) + "\n" for row in (header, *rows))


def _first(rows: list[Row], **changed: Any) -> str:
    """The table with another value in its first row."""
    own = dict(zip(HEADER, rows[0], strict=True)) | changed
    return _csv([tuple(own.values()), *rows[1:]])


def _tables(rows: list[Row]) -> dict[str, str | bytes]:
    good = _csv(rows)
    return {
        "people.csv": good,
        # rightly accepted
        "bom.csv": b"\xef\xbb\xbf" + good.encode(),
        "semi.csv": _csv(rows, sep=";"),
        "reorder.csv": _csv([row[::-1] for row in rows], HEADER[::-1]),
        "extra.csv": _csv([(*row, "more") for row in rows], (*HEADER, "note")),
        "quoted.csv": _csv([(*row, '"two\nlines, ""quoted"""') for row in rows], (*HEADER, "note")),
        "nan.csv": _first(rows, income="nan"),
        # not a table
        "bin.csv": random.Random(2).randbytes(4000),
        "empty.csv": "",
        "header.csv": _csv([]),
        "u16.csv": good.encode("utf-16"),
        "latin1.csv": good.encode("latin-1"),
        "people.xlsx": b"PK\x03\x04 a spreadsheet",
        "torn.parquet": b"PAR1 and then nothing",
        # other columns
        "dup.csv": _csv([(row[0], *row) for row in rows], ("age", *HEADER)),
        "dropcol.csv": _csv([(*row[:2], row[3]) for row in rows], ("age", "income", "bought")),
        "notarget.csv": _csv([row[:3] for row in rows], HEADER[:3]),
        # rows that are no rows
        "ragged.csv": _csv([*rows[:5], (44, SECRET, "Paris"), *rows[5:]]),
        "ragged2.csv": _csv([*rows[:5], (44, 1, "Paris", "yes", SECRET), *rows[5:]]),
        "ragged3.csv": _csv([*rows[:5], (44, f'"one\n{SECRET}\ntwo"', "Paris"), *rows[5:]]),
        "openquote.csv": _csv([*rows[:5], (44, f'"{SECRET}', "Paris", "yes"), *rows[5:]]),
        # values that do not fit
        "hugeint.csv": _first(rows, age=10**400),
        "inf.csv": _first(rows, income="inf"),
        "text.csv": _first(rows, age="old"),
        "unseen.csv": _first(rows, city="Rome"),
        "badclass.csv": _first(rows, bought="perhaps"),
        "noclass.csv": _first(rows, bought=""),
        "neg.csv": _first(rows, age=-5),
        "frac.csv": _first(rows, age=30.5),
        "comma.csv": _first(rows, income='"1234,5"'),
    }


def _schemas() -> dict[str, str]:
    text = SCHEMA.to_json()

    def changed(change: Callable[[dict[str, Any]], Any]) -> str:
        body = json.loads(text)
        change(body)
        return json.dumps(body)

    return {
        "schema.json": text,
        "badjson.schema.json": text[:200],
        "v99.json": changed(lambda body: body.update(version=99)),
        "lohi.json": changed(lambda body: body["features"][0].update(lower=10, upper=5)),
        "nolow.json": changed(lambda body: body["features"][0].update(lower=None, upper=None)),
        "infb.json": changed(lambda body: body["features"][0].update(upper="inf")),
        "typo.json": changed(lambda body: body.update(fetures=body.pop("features"))),
        "typo2.json": changed(lambda body: body["features"][0].update(uper=9)),
        "notarget.json": changed(lambda body: body.pop("target")),
        "dupfeat.json": changed(lambda body: body["features"].append(body["features"][0])),
        "oneclass.json": changed(lambda body: body.update(classes=["yes"])),
    }


def fill(folder: Path) -> None:
    """Write all files; also a model ``m.json`` of the people, and an empty folder ``adir``."""
    rows = _people()
    for name, content in {**_tables(rows), **_schemas()}.items():
        raw = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(raw)
    (folder / "adir").mkdir()
    people = pd.DataFrame(rows, columns=list(HEADER))
    model = MixedNB(schema=SCHEMA).fit(people[list(HEADER[:3])], people["bought"]).model_
    (folder / "m.json").write_text(model.to_json())
    with duckdb.connect(str(folder / "g.duckdb")) as database:
        database.execute("CREATE TABLE people AS SELECT 1 AS age")
