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
from discreet.federated.alignment.party import AlignmentSecret, format_ids
from discreet.federated.crypto.curve25519 import BlindingProgress
from discreet.federated.messages import Message
from discreet.federated.service.collector_client import CollectorClient
from discreet.federated.service.state_folder import StateFolder

__all__ = ["run_owner"]

SECRET_KEY_BYTES = 32


def run_owner(
    client: CollectorClient[Invitation],
    ids: Iterable[Any],
    state: str | Path,
    store_rows: Callable[[list[int]], None],
    *,
    known_cards: tuple[Card, ...] = (),
    advance: BlindingProgress | None = None,
) -> list[int]:
    """Find the rows that all owners hold, in an order that all of them share.

    Parameters
    ----------
    client : CollectorClient
    ids : iterable
        Of one's own rows, each different.
    state : path
        A folder for the secret and what was sent.
    store_rows : callable
        Puts the rows where they belong. Only when it returns is the collector told that the
        answer has arrived, and the secret forgotten.
    known_cards : tuple of Card
        Parties whose keys were checked out of band.
    advance : callable, optional
        Told how many more ids are blinded.
    """
    client.agreement.require_role(client.identity.card, "owner")
    id_texts = format_ids(ids, client.agreement.max_list_ids)
    state_folder = StateFolder(state, client.agreement)
    with state_folder.hold_session(client.identity):
        signed_invitation = client.sign_agreement(known_cards)
        machine = Owner(
            client.identity,
            signed_invitation,
            id_texts,
            _load_or_create_secret(state_folder, client.identity),
            known_cards,
            advance,
        )
        _require_same_ids(state_folder, machine.list_digest)
        previous_owner = signed_invitation.owners[machine.ring_index - 1].name
        client.send_message(
            state_folder.load_or_create(f"list-{machine.ring_index}", machine.make_own_list)
        )
        for origin_index in machine.passing_origins:
            kind = f"list-{origin_index}"
            make_message = partial(
                _forward_list, client, state_folder, machine, kind, previous_owner
            )
            client.send_message(state_folder.load_or_create(kind, make_message))
        rows = machine.read_common_rows(
            client.fetch_message("common", signed_invitation.collector.name, state_folder)
        )
        store_rows(rows)
        client.confirm_result()
        state_folder.finish_round(client.identity)
    return rows


def _forward_list(
    client: CollectorClient[Invitation],
    state_folder: StateFolder,
    machine: Owner,
    kind: str,
    previous_owner: str,
) -> Message:
    """Another owner's list, blinded once more."""
    return machine.blind_and_forward(client.fetch_message(kind, previous_owner, state_folder))


def _load_or_create_secret(state_folder: StateFolder, identity: Identity) -> AlignmentSecret:
    """The secret of this alignment: as it was before, or a fresh one."""
    secret_bytes = state_folder.read_secret(identity, "secret")
    if secret_bytes is None:
        secret = AlignmentSecret()
        state_folder.write_secret(identity, "secret", secret.key + secret.scalar)
        return secret
    return AlignmentSecret(
        scalar=secret_bytes[SECRET_KEY_BYTES:], key=secret_bytes[:SECRET_KEY_BYTES]
    )


def _require_same_ids(state_folder: StateFolder, list_digest: bytes) -> None:
    """Refuse ids that differ from those of the first start."""
    stored_digest = state_folder.read("digest")
    if stored_digest is None:
        state_folder.write("digest", list_digest)
    elif stored_digest != list_digest:
        raise SchemaError(
            "the ids are not those that this alignment was begun with; take the table as it was, "
            "or agree on a new invitation"
        )
