"""``discreet serve`` as a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from servers import client, plan


class Process:
    """``discreet serve`` on a port of its own."""

    def __init__(
        self,
        url: str,
        plan_file: Path,
        *more: str,
        before: Callable[[], None] | None = None,
        program: str = "",
    ) -> None:
        discreet = ["-c", program] if program else ["-m", "discreet"]
        command = [sys.executable, *discreet, "serve", str(plan_file), "--database", url]
        self.running = subprocess.Popen(
            [
                *command,
                "--port",
                "0",
                "--rate",
                "0",
                "--batch",
                "10",
                *more,
                "--settle-every",
                "0.05",
                "--json",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )
        assert self.running.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = self.running.stdout.readline()
            assert line, self.running.communicate()[1]
            text += line
        self.port = urlsplit(json.loads(text)["collector"]).port

    def kill(self) -> None:
        self.running.send_signal(signal.SIGKILL)
        self.running.communicate()


@contextmanager
def process(folder: Path, patch: str = "") -> Iterator[tuple[str, Any, Path]]:
    """``discreet serve`` with an open plan: its address, the process, and what it writes."""
    (folder / "plan.json").write_text(plan().to_json())
    log = folder / "log"
    script = f"{patch}\nfrom discreet.cli import main\nmain()"
    options = ["serve", "plan.json", "--port", "0", "--rate", "0"]
    command = [sys.executable, "-c", script, *options]
    with log.open("wb") as err:
        running = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=err)
        try:
            assert running.stdout is not None
            line = running.stdout.readline().decode()
            base = re.sub(r"^respondents\s+(http://[^/]+)/.*\s*$", r"\1", line)
            with client(base) as asking:
                while asking.get("/health").status_code != 200:
                    continue
            yield base, running, log
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(60)
            running.stdout.close()
