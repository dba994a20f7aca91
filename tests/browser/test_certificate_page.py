"""A certificate is exactly one sheet of paper, of either size, for any model of usual size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import CentralNB, Numeric, Schema
from discreet.display.certificate import Certificate
from discreet.privacy.ledger import Ledger

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module", params=[2, 60], ids=["small", "large"])
def page(request: pytest.FixtureRequest, chromium: Any, tmp_path_factory: Any) -> Any:
    """Of a model with short names, or with many that are as long as names get."""
    folder, count = tmp_path_factory.mktemp("certificate"), request.param
    names, classes = ["age", "height"], ["no", "yes"]
    if count > 2:
        names = [f"question {k}: {'how often ' * 6}" for k in range(count)]
        classes = [f"answer {k} {'and more ' * 8}" for k in range(26)]
    schema = Schema([Numeric(name, 0, 1) for name in names], "target", classes)
    ledger = Ledger.create(folder / "ledger.json", 10.0, 1e-5)
    rng = np.random.default_rng(2)
    fitted = CentralNB(epsilon=1.0, delta=1e-6, schema=schema, budget=ledger)
    fitted.fit(rng.random((800, count)), rng.choice(classes, 800))
    (folder / "model.json").write_text(fitted.model_.to_json())
    (folder / "statistics.json").write_text(fitted.statistics_.to_json())
    certificate = Certificate.read(
        folder / "model.json", ledger=str(ledger.path), statistics=f"{folder}/statistics.json"
    )
    file: Path = folder / "page.html"
    file.write_text(certificate.render(), "utf-8")
    shown = chromium.new_page()
    shown.goto(file.as_uri())
    yield shown
    shown.close()


@pytest.mark.parametrize("size", ["A4", "Letter"])
def test_it_prints_on_one_sheet(page: Any, size: str) -> None:
    printed = page.pdf(format=size, prefer_css_page_size=False)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1


@pytest.mark.parametrize("width", [1280, 375])
def test_nothing_is_cut_off(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
