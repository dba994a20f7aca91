"""Show an agreement in words, and ask before it is signed."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import click

from discreet.cli.federated.progress import get_progress_reporter
from discreet.errors import PrivacyError
from discreet.privacy.guarantee import format_rounded_up

if TYPE_CHECKING:
    from discreet.federated.agreement.invitation import Invitation
    from discreet.federated.agreement.manifest import Manifest

__all__ = [
    "confirm_agreement",
    "known_option",
    "require_epsilon",
    "unprotected_option",
    "yes_option",
]

known_option = click.option(
    "--known",
    multiple=True,
    help="A card whose fingerprint you have checked; once given, all others must be known too.",
)
yes_option = click.option("--yes", is_flag=True, help="Sign what is shown without being asked.")
unprotected_option = click.option(
    "--unprotected",
    is_flag=True,
    help="Take part even if no epsilon is promised, so that exact counts are opened.",
)


def confirm_agreement(agreement: Manifest | Invitation, name: str, yes: bool) -> None:
    """Show the agreement, and refuse to continue unless the user agrees to sign.

    Parameters
    ----------
    agreement : Manifest or Invitation
    name : str
        Who signs.
    yes : bool
        Whether the answer was given beforehand, by a script.
    """
    from discreet.federated.agreement.description import describe_agreement

    click.echo(describe_agreement(agreement) + "\n", err=True)
    if yes:
        click.echo(f"{name} signs this {agreement.KIND} (--yes)", err=True)
        return
    if not _is_at_terminal():
        raise PrivacyError(
            f"{name} has not agreed to this {agreement.KIND}, and there is no terminal to ask; "
            "read it with `discreet federated show`, then add --yes"
        )
    with get_progress_reporter().pause_output():
        is_agreed = click.confirm(f"Sign this {agreement.KIND} as {name}?", default=False, err=True)
    if not is_agreed:
        raise PrivacyError(f"{name} did not agree, so nothing was signed or sent")


def _is_at_terminal() -> bool:
    return sys.stdin.isatty()


def require_epsilon(manifest: Manifest, unprotected: bool) -> None:
    """Refuse to send exact counts without ``--unprotected``.

    Parameters
    ----------
    manifest : Manifest
    unprotected : bool
    """
    if manifest.is_effectively_exact and not unprotected:
        noise_phrase = (
            "an infinite epsilon: no"
            if math.isinf(manifest.epsilon)
            else (f"an epsilon of {format_rounded_up(manifest.epsilon)}: hardly any")
        )
        raise PrivacyError(
            f"this manifest has {noise_phrase} noise is added, and exact totals of your table and "
            "the others' are opened. If you accept that, add --unprotected; else ask for a "
            "manifest with a smaller epsilon"
        )
