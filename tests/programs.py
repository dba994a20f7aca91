"""Programs that tests need from outside: node, Chromium; and the JavaScript of the package in them.

Node is the machine's own or the one inside Playwright's wheel; Chromium is the machine's own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import discreet

STATIC = Path(discreet.__file__).parent / "server" / "static"
HERE = Path(__file__).parent / "vectors"

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OLDEST_NODE = 20


def node() -> str | None:
    """Where node is: on the machine, new enough, or inside Playwright's wheel."""
    own = shutil.which("node")
    if own:
        said = subprocess.run([own, "--version"], capture_output=True, text=True, check=False)
        if (
            said.stdout[1:].split(".")[0].isdigit()
            and int(said.stdout[1:].split(".")[0]) >= OLDEST_NODE
        ):
            return own
    found = importlib.util.find_spec("playwright")
    if found is None or found.origin is None:
        return None
    inside = Path(found.origin).parent / "driver" / "node"
    return str(inside) if inside.exists() else None


def chromium() -> str | None:
    """Where Chromium is; ``DISCREET_CHROMIUM`` names another one."""
    named = os.environ.get("DISCREET_CHROMIUM")
    return named or next((path for name in CHROMIUM if (path := shutil.which(name))), None)


def tsc() -> str | None:
    """Where TypeScript's compiler is, which checks the types that JavaScript states."""
    return os.environ.get("DISCREET_TSC") or shutil.which("tsc")


def missing() -> str | None:
    """Why tests marked ``browser`` cannot run, if so."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install 'discreet[test]'"
    if node() is None:
        return f"node {OLDEST_NODE} or later is not here: pip install playwright"
    if chromium() is None:
        return "Chromium is not here: apt-get install chromium, or set DISCREET_CHROMIUM"
    return None


def modules(folder: Path, changes: Iterable[tuple[str, str, str]] = (), bare: bool = True) -> Path:
    """Copy the JavaScript of the package into a folder, with some lines changed.

    Parameters
    ----------
    folder : path
    changes : iterable of (file, old, new)
        What to replace; each old text must occur.
    bare : bool, default True
        Without comments, as it is served.
    """
    from discreet.server.bundle import encode_for_serving

    copy = folder / "static"
    shutil.copytree(STATIC, copy)
    for name, old, new in changes:
        text = (copy / name).read_text(encoding="utf-8")
        assert old in text, f"{name} no longer holds {old!r}: this change must be written again"
        (copy / name).write_text(text.replace(old, new), encoding="utf-8")
    for path in copy.rglob("*.js") if bare else ():
        path.write_bytes(encode_for_serving(path.read_text(encoding="utf-8"), path.suffix))
    return copy


class Node:
    """A client in JavaScript that answers cases as long as it is kept.

    Parameters
    ----------
    static : path
        The folder of draw.js, as ``modules`` makes it.
    """

    def __init__(self, static: Path) -> None:
        program = node()
        assert program is not None
        self._process = subprocess.Popen(
            [program, str(HERE / "twin.mjs"), str(static / "draw.js")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._known: set[str] = set()

    def ask(self, case: dict[str, Any], content: str) -> None:
        """Send a case and, the first time, its document."""
        assert self._process.stdin is not None
        if case["document"] not in self._known:
            self._known.add(case["document"])
            made = {"document": case["document"], "content": content}
            self._process.stdin.write(json.dumps(made) + "\n")
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What it made of the next case that was asked."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "node ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def evaluated(static: Path, script: str, given: Any = None) -> Any:
    """What a script gives back in node; ``draw`` and ``promise`` are the modules.

    Parameters
    ----------
    static : path
        The folder of the modules.
    script : str
        The body of an async function.
    given : any
        What it reads as ``given``.
    """
    program = node()
    assert program is not None
    text = f"""
      const draw = await import({json.dumps((static / "draw.js").as_uri())});
      const promise = await import({json.dumps((static / "promise.js").as_uri())});
      let read = ""; for await (const piece of process.stdin) read += piece;
      const run = async (given) => {{ {script} }};
      process.stdout.write(JSON.stringify(await run(JSON.parse(read))) ?? "null");
    """
    run = subprocess.run(
        [program, "--input-type=module", "-e", text],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()


PAGE = "<!doctype html><html lang=en><title>vectors</title>"


@contextmanager
def page(opened: Any, static: Path, address: str = "http://localhost/") -> Iterator[Any]:
    """A page whose modules are those of a folder, and answer.mjs; localhost is a secure place."""
    context = opened.new_context()

    def serve(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        path = HERE / name if name.endswith(".mjs") else static / name
        if name and path.is_file():
            route.fulfill(body=path.read_bytes(), content_type="text/javascript")
        else:
            route.fulfill(body=PAGE, content_type="text/html")

    context.route("**/*", serve)
    shown = context.new_page()
    shown.goto(address)
    try:
        yield shown
    finally:
        context.close()
