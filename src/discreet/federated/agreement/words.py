"""Human-readable descriptions of manifests, invitations and cards, to read before signing."""

from __future__ import annotations

from typing import Any

from discreet.federated.agreement.identity import Card
from discreet.federated.agreement.invitation import Invitation
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import Wanted
from discreet.federated.refusals import printable

__all__ = ["card_facts", "card_words", "facts", "words"]


def card_facts(card: Card) -> dict[str, Any]:
    """A card as plain values."""
    return {"name": card.name, "fingerprint": card.fingerprint, "paillier": card.paillier}


def card_words(card: Card) -> str:
    """Describe a card in text."""
    lines = [f"party       {card.name}", f"fingerprint {card.fingerprint}"]
    if card.paillier is not None:
        lines.append(f"Paillier    {card.paillier} (signed by {card.name})")
    return "\n".join(lines)


def facts(agreement: Manifest | Invitation) -> dict[str, Any]:
    """Summarise an agreement as plain values.

    Parameters
    ----------
    agreement : Manifest or Invitation
    """
    parties = [
        {**card_facts(card), "role": agreement.roles[name], "learns": _learns(agreement, name)}
        for name, card in agreement.parties.items()
    ]
    found: dict[str, Any] = {
        "kind": agreement.KIND,
        "digest": agreement.hash.hex(),
        "round": agreement.round,
        "deadline": agreement.deadline or None,
        "signed": [name for name in agreement.parties if name not in agreement.unsigned],
        "parties": parties,
    }
    if isinstance(agreement, Invitation):
        return {**found, "ids": agreement.ids, "pad_to": agreement.pad_to}
    for party in parties:
        if party["name"] in agreement.columns:
            party["features"] = list(agreement.columns[party["name"]])
    key = agreement.paillier
    return {
        **found,
        "partition": agreement.partition,
        "mode": agreement.mode,
        "aggregation": agreement.aggregation,
        "paillier": None if key is None else {"bits": key.bits, "fingerprint": key.fingerprint},
        "rows": agreement.rows,
        "target": agreement.schema.target,
        "counted": [_counted(agreement, one) for one in agreement.wanted],
        "epsilon": agreement.epsilon,
        "tolerated": agreement.tolerated,
        "against": agreement.guarantee.against,
        "assumptions": list(agreement.guarantee.assumptions),
        "private": agreement.guarantee.private,
        "promise": str(agreement.guarantee),
    }


def words(agreement: Manifest | Invitation) -> str:
    """Describe an agreement in text.

    Parameters
    ----------
    agreement : Manifest or Invitation
    """
    told = facts(agreement)
    lines = [_title(agreement), "", "Who takes part (compare fingerprints over another line):"]
    for party in told["parties"]:
        lines.append(f"  {party['name']}, {party['role']}, {party['fingerprint']}")
        if "features" in party:
            lines.append(f"    holds {', '.join(party['features'])}")
    if isinstance(agreement, Manifest):
        lines += ["", f"What is counted, by class ({agreement.schema.target}):"]
        lines += [f"  {one}" for one in told["counted"]]
        lines += ["", "What is promised:"]
        lines += [f"  {line}" for line in told["promise"].splitlines()]
    lines += ["", "What each party learns:"]
    lines += [f"  {party['name']}: {party['learns']}" for party in told["parties"]]
    if isinstance(agreement, Invitation):
        lines += ["", "No epsilon covers this: whose ids are common becomes known to all owners."]
        if agreement.ids:
            lines.append(f"Ids: {agreement.ids}")
    lines += ["", f"Deadline: {agreement.deadline or 'none'}", f"Digest: {told['digest']}"]
    return "\n".join(map(printable, lines))  # names are untrusted: control characters are escaped


def _title(agreement: Manifest | Invitation) -> str:
    if isinstance(agreement, Invitation):
        return f"Invitation to align rows, round {agreement.round}"
    hidden = "masks"
    if agreement.paillier is not None and agreement.key_holder is not None:
        hidden = (
            f"the Paillier key of {agreement.key_holder.name} ({agreement.paillier.bits} bits, "
            f"{agreement.paillier.fingerprint})"
        )
    rows = "" if agreement.rows is None else f" of {agreement.rows:,} rows"
    return (
        f"Manifest of round {agreement.round}: {agreement.partition}{rows}, mode {agreement.mode}, "
        f"counts hidden by {hidden}"
    )


def _counted(manifest: Manifest, one: Wanted) -> str:
    if one.kind == "moments":
        return f"{one.feature}: count, sum and sum of squares"
    return f"{one.feature}: counts in {manifest.layout.blocks_of(one)[0].size} cells"


def _learns(agreement: Manifest | Invitation, name: str) -> str:
    role = agreement.roles[name]
    if isinstance(agreement, Invitation):
        lengths = "" if agreement.pad_to is not None else "how long each list is; "
        if role == "owner":
            return f"{lengths}which of its own rows all owners have"
        return f"{lengths}how many entries each group of owners shares; no id"
    totals = "exact totals" if agreement.bare else "noised totals"
    opens = agreement.parties[name] == agreement.opener
    if role == "receiver":
        return f"the {totals} and the model" if opens else "the model: probabilities only"
    if role == "collector":
        return f"the {totals} and the model" if opens else "uniform numbers only"
    if role == "label provider":
        return "sums under pads of others: uniform numbers only"
    if agreement.partition == "vertical":
        return "who the rows are, and hidden classes that it cannot read"
    return "nothing about the tables of others"
