"""How heavy the respondent's page is, how soon it can be used, and how soon the desk is there.

The page on a processor slowed down four times (Chromium's throttling), against an empty page from
the same server; the desk with a million reports, against the same with a thousand.
Run: python benchmarks/pages.py [PEOPLE …]
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from discreet.server.bundle import Bundle

QUESTIONNAIRE = Path(__file__).parents[1] / "examples" / "survey" / "questionnaire.yaml"
REPEATS, SLOWER = 9, 4


def weight() -> None:
    bundle = Bundle()
    whole = bundle.render_page().encode()
    # a person loads one language
    loaded = {n: c for n, c in bundle.files.items() if not n.startswith("words/") or "en" in n}
    raw = len(whole) + sum(map(len, loaded.values()))
    packed = len(gzip.compress(whole)) + sum(len(gzip.compress(c)) for c in loaded.values())
    print(f"page with {len(loaded)} files: {raw:,} bytes, {packed:,} as sent (gzip)")


def started(people: int, folder: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    told = [sys.executable, "-m", "discreet", "serve", str(QUESTIONNAIRE), "--rehearse"]
    told += [str(people), "--port", "0", "--rate", "0"]
    server = subprocess.Popen(told, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    lines = [server.stdout.readline().split() for _ in range(3)]
    return server, {line[0]: line[1] for line in lines}


SEEN = """new MutationObserver((_, observer) => {
  if (!document.querySelector("READY")) return;
  window.usable = performance.now() / 1000;
  observer.disconnect();
}).observe(document, { subtree: true, childList: true })"""


def opened(browser: Any, url: str, ready: str) -> tuple[list[float], list[float]]:
    """Seconds until something is there, and of processor time of the main thread till then."""
    times, work = [], []
    for _ in range(REPEATS):
        context = browser.new_context(locale="en-GB")
        page = context.new_page()
        page.add_init_script(SEEN.replace("READY", ready))
        inspected = context.new_cdp_session(page)
        inspected.send("Performance.enable", {"timeDomain": "threadTicks"})
        inspected.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        page.goto(url, wait_until="commit")
        times.append(page.wait_for_function("() => window.usable").json_value())
        found = inspected.send("Performance.getMetrics")["metrics"]
        spent = {one["name"]: one["value"] for one in found}
        work.append(spent["TaskDuration"] - spent["DevToolsCommandDuration"])
        context.close()
    return times, work


def measured(people: int) -> None:
    from playwright.sync_api import sync_playwright

    program = os.environ.get("DISCREET_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        begun = time.perf_counter()
        server, links = started(people, folder)
        print(f"\n{people:,} people simulated and settled in {time.perf_counter() - begun:.0f} s")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            if people < 10_000:
                base = links["respondents"].partition("/s/")[0]
                for name, url, ready in (
                    ("empty page", f"{base}/health", "body"),
                    ("respondent's page", links["respondents"], "main button"),
                ):
                    times, work = opened(browser, url, ready)
                    print(
                        f"{name}: usable after {min(times):.2f} s at best, "
                        f"{statistics.median(times):.2f} s (median of {REPEATS}); its main thread "
                        f"works {1000 * statistics.median(work):.0f} ms, slowed"
                    )
            context = browser.new_context()
            page = context.new_page()
            page.goto(links["collector"])
            page.get_by_role("heading", name="Collections").wait_for()
            times = []
            for _ in range(REPEATS):
                begun = time.perf_counter()
                page.goto(re.sub(r"#.*", "", links["collector"]) + "/questionnaire-simulated")
                times.append(time.perf_counter() - begun)
            first, rest = times[0], statistics.median(times[1:])
            print(f"desk: {first:.2f} s the first time, then {rest:.2f} s (median)")
        finally:
            browser.close()
            server.terminate()
            server.wait()


if __name__ == "__main__":
    weight()
    for people in map(int, sys.argv[1:] or ("1000", "1000000")):
        measured(people)
