"""What happens in a process that is held up at every function, until it is heard.

A function of the federated package, when it is first called in this process and on whichever
thread, waits until the process has written something to standard error. What stays unheard is
written down. The silence that is allowed is short here, so that the test is.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

SILENCE = 0.02
PATIENCE = 20.0
BEFORE = ("cli/federated/__init__.py", "cli/federated/progress.py")
"""What starts the telling, and what tells."""


class Holdup:
    """Waits at the first call of everything, and notes where nobody was told anything."""

    def __init__(self, log):
        self.log, self.seen = log, set()

    def __call__(self, frame, event, argument):
        code = frame.f_code
        place = code.co_filename.partition("/discreet/")[2]
        if event != "call" or code in self.seen or "federated/" not in place:
            return
        if place.endswith(BEFORE) or code.co_name == "<module>":
            return
        self.seen.add(code)
        with open(f"{self.log}.held", "a") as file:
            file.write(f"{place} {code.co_qualname}\n")
        said, until = os.fstat(2).st_size, time.monotonic() + PATIENCE
        while os.fstat(2).st_size == said:
            if time.monotonic() > until:
                with open(f"{self.log}.silent", "a") as file:
                    file.write(f"{place} {code.co_qualname}\n")
                os._exit(7)
            time.sleep(0.002)


def act(words, folder, log, fatal="", largest=0):
    """Run a command in a process of its own."""
    os.chdir(folder)
    said = os.open(f"{log}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
    from discreet.cli import main, output
    from discreet.cli.federated import progress
    from discreet.federated.service import collector_client
    from discreet.federated.service.patience import RetryPolicy

    collector_client.DEFAULT_POLICY = RetryPolicy(max_silence_seconds=10.0)
    output.SILENCE_SECONDS = output.MAX_SILENCE_SECONDS = SILENCE
    progress.TICK_SECONDS = SILENCE / 4
    Path(f"{log}.held").touch()
    holdup = Holdup(log)
    threading.setprofile(holdup)
    sys.setprofile(holdup)
    main(["federated", *words])


def deaf(*arguments):
    """The same with a program that says only what it has to say, as it did before."""
    from discreet.cli.federated import progress

    progress.ProgressReporter.tick = lambda self: None
    global PATIENCE
    PATIENCE = 1.0
    act(*arguments)
