"""Program of a receiver: sign, wait for the result, open it, confirm once it is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Card
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release, require_judged_statistics
from discreet.federated.service.collector_client import RoundClient
from discreet.federated.service.state_folder import StateFolder

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey
    from discreet.statistics.statistics import Statistics

__all__ = ["run_receiver"]


def run_receiver(
    client: RoundClient,
    state: str | Path,
    store_release: Callable[[Release], None],
    private_key: PrivateKey | None = None,
    known_cards: tuple[Card, ...] = (),
    judged_statistics: Statistics | None = None,
) -> Release:
    """Take part in a round as the receiver.

    Parameters
    ----------
    client : RoundClient
    state : path
        A folder for the key of the round; until the end the result can be fetched again with it.
    store_release : callable
        Puts the result where it belongs. Only when it returns is the collector told that the
        result has arrived: if it fails, the round can be opened again.
    private_key : PrivateKey, optional
        Needed in mode ``counts`` of a horizontal round with Paillier.
    known_cards : tuple of Card
        Parties whose keys were checked out of band.
    judged_statistics : Statistics, optional
        Needed where candidate models are judged: those that they were made from.
    """
    identity, manifest = client.identity, client.agreement
    manifest.require_role(identity.card, "receiver")
    manifest.require_key(identity.card, private_key)
    if manifest.judging is not None:
        require_judged_statistics(manifest, judged_statistics)
    state_folder = StateFolder(state, manifest)
    with state_folder.hold_session(identity):
        was_stored_before = state_folder.read("kept") is not None
        if was_stored_before:  # all that may be missing is that the collector hears of it
            client.allow_leaving()
        try:
            return _receive_release(
                client, state_folder, store_release, private_key, known_cards, judged_statistics
            )
        except ProtocolError as error:
            if not was_stored_before or error.reason not in ("lonely", "abandoned"):
                raise
            state_folder.finish_round(identity)
            raise ProtocolError(
                "late",
                f"{identity.name} has kept the result of this round before, and the collector is "
                "gone",
            ) from None


def _receive_release(
    client: RoundClient,
    state_folder: StateFolder,
    store_release: Callable[[Release], None],
    private_key: PrivateKey | None,
    known_cards: tuple[Card, ...],
    judged_statistics: Statistics | None,
) -> Release:
    identity, signed_manifest = client.identity, client.sign_agreement(known_cards)
    result_kind = "total" if signed_manifest.mode == "counts" else "model"
    machine: horizontal.HorizontalReceiver | vertical.VerticalReceiver
    if signed_manifest.partition == "vertical":
        machine = vertical.VerticalReceiver(identity, signed_manifest)
    else:
        machine = horizontal.HorizontalReceiver(
            identity, signed_manifest, private_key, judged_statistics
        )
    result = client.fetch_message(result_kind, signed_manifest.collector.name, state_folder)
    with client.show_busy("opening the result"):
        release = machine.receive(result)
        store_release(release)
        state_folder.write("kept", b"")
    client.confirm_result()
    state_folder.finish_round(identity)
    return release
