"""What happens in a process of a test that kills: it runs a command, and dies at a named point.

Points are what a party does that others or its disk notice: files that it writes, requests that it
makes, a ledger that it charges. At the chosen one the process gets SIGKILL, which nothing can
handle.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

LEAVE = "nobody comes any more"
"""A file of this name in the folder of a round tells its collector so."""


class Points:
    """Notes the points of a process, and ends it at one of them."""

    def __init__(self, log, fatal):
        self.log, self.fatal = log, fatal

    def reach(self, point):
        with open(self.log, "a") as file:
            file.write(point + "\n")
        if point == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner, name, label):
        """Before and after a function; the label is made of its arguments."""
        real = getattr(owner, name)

        def watched(*arguments, **named):
            point = label(*arguments, **named)
            if point:
                self.reach(f"before {point}")
            found = real(*arguments, **named)
            if point:
                self.reach(f"after {point}")
            return found

        setattr(owner, name, watched)


def asked(line, method, path, again=dict, **how):
    """Requests for news are not points: nobody knows how many there are."""
    if method == "POST":
        header = {**again(), **how}.get("headers", {}).get("discreet-message", "")
        kind = header.partition('"kind": "')[2].partition('"')[0]
        return f"{method} {path.split('/')[1]} {kind}".strip()
    return "GET manifest" if path == "/manifest" else ""


def leaves(collect):
    """A collector waits for those who come late, until the test says that nobody will."""
    while not os.path.exists(LEAVE):
        time.sleep(0.05)
    collect.FINISHED_LINGER_SECONDS = 0.0


def act(words, folder, log, fatal, largest):
    """Run a command in a process of its own."""
    os.chdir(folder)
    said = os.open(f"{log}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
    from discreet.cli import main
    from discreet.cli.federated import collect, parties
    from discreet.federated.service import collector_client, state_folder
    from discreet.federated.service.message_transfer import MessageTransfer
    from discreet.federated.service.patience import RetryPolicy
    from discreet.federated.service.retrying_transport import RetryingTransport
    from discreet.privacy.ledger import Ledger

    collector_client.DEFAULT_POLICY = RetryPolicy(max_silence_seconds=3.0)
    threading.Thread(target=leaves, args=(collect,), daemon=True).start()
    points = Points(log, fatal)
    points.around(state_folder.StateFolder, "write", lambda kept, name, content: f"write {name}")
    points.around(state_folder.StateFolder, "delete", lambda kept, name: f"delete {name}")
    points.around(state_folder, "move_atomic", lambda one, two: f"move {Path(two).name}")
    points.around(RetryingTransport, "send", asked)
    points.around(Ledger, "charge", lambda *_, **__: "charge")
    points.around(parties, "write_file", lambda path, text: f"keep {Path(path).name}")
    real = MessageTransfer._send_chunks

    def sent(transfer, message):
        with open("sent.log", "a") as file:
            file.write(f"{message.sender} {message.kind} {message.recipient} {message.digest}\n")
        real(transfer, message)

    MessageTransfer._send_chunks = sent
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    main(["federated", *words])
