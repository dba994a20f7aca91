"""An owner in an alignment as a program: signs, sends its list once, blinds the others' once.

The secret is written down before anything is sent, so a restarted owner goes on with the same
one: two blindings of one list would tell how they belong together. It is forgotten at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from discreet.errors import SchemaError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.invitation import Invitation
from discreet.federated.alignment import Owner
from discreet.federated.alignment.party import Secret, texts_of
from discreet.federated.crypto.curve25519 import Advance
from discreet.federated.messages import Message
from discreet.federated.service.connection import Line
from discreet.federated.service.folder import Folder

__all__ = ["align"]

KEY = 32


def align(
    line: Line[Invitation],
    ids: Iterable[Any],
    state: str | Path,
    keep: Callable[[list[int]], None],
    *,
    known: tuple[Card, ...] = (),
    advance: Advance | None = None,
) -> list[int]:
    """Find the rows that all owners hold, in an order that all of them share.

    Parameters
    ----------
    line : Line
    ids : iterable
        Of one's own rows, each different.
    state : path
        A folder for the secret and what was sent.
    keep : callable
        Puts the rows where they belong. Only when it returns is the collector told that the
        answer has arrived, and the secret forgotten.
    known : tuple of Card
        Parties whose keys were checked out of band.
    advance : callable, optional
        Told how many more ids are blinded.
    """
    line.manifest.require_part(line.own.card, "owner")
    texts = texts_of(ids, line.manifest.most)
    kept = Folder(state, line.manifest)
    with kept.held(line.own):
        agreed = line.agreed(known)
        machine = Owner(line.own, agreed, texts, _secret(kept, line.own), known, advance)
        _same(kept, machine.digest)
        before = agreed.owners[machine.place - 1].name
        line.send(kept.once(f"list-{machine.place}", machine.own_list))
        for origin in machine.others:
            kind = f"list-{origin}"
            passed = partial(_passed, line, kept, machine, kind, before)
            line.send(kept.once(kind, passed))
        rows = machine.common(line.take("common", agreed.collector.name, kept))
        keep(rows)
        line.confirm()
        kept.finish(line.own)
    return rows


def _passed(
    line: Line[Invitation], kept: Folder, machine: Owner, kind: str, before: str
) -> Message:
    """Another owner's list, blinded once more."""
    return machine.pass_on(line.take(kind, before, kept))


def _secret(kept: Folder, own: Identity) -> Secret:
    """The secret of this alignment: as it was before, or a fresh one."""
    content = kept.read_secret(own, "secret")
    if content is None:
        secret = Secret()
        kept.write_secret(own, "secret", secret.key + secret.scalar)
        return secret
    return Secret(scalar=content[KEY:], key=content[:KEY])


def _same(kept: Folder, digest: bytes) -> None:
    """Refuse ids that differ from those of the first start."""
    before = kept.read("digest")
    if before is None:
        kept.write("digest", digest)
    elif before != digest:
        raise SchemaError(
            "the ids are not those that this alignment was begun with; take the table as it was, "
            "or agree on a new invitation"
        )
