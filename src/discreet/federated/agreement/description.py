"""Human-readable descriptions of manifests, invitations and cards, to read before signing."""

from __future__ import annotations

from typing import Any

from discreet.federated.agreement.identity import Card
from discreet.federated.agreement.invitation import Invitation
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import FeatureRequest
from discreet.federated.refusals import escape_unprintable

__all__ = [
    "describe_agreement",
    "describe_card",
    "describe_promise",
    "summarize_agreement",
    "summarize_card",
]

CANDIDATES_VIEW = "and in the candidate models what they show of the first round's noised totals"
"""What all parties learn besides where candidate models are judged."""


def summarize_card(card: Card) -> dict[str, Any]:
    """A card as plain values."""
    return {"name": card.name, "fingerprint": card.fingerprint, "paillier": card.paillier}


def describe_card(card: Card) -> str:
    """Describe a card in text."""
    lines = [f"party       {card.name}", f"fingerprint {card.fingerprint}"]
    if card.paillier is not None:
        lines.append(f"Paillier    {card.paillier} (signed by {card.name})")
    return "\n".join(lines)


def summarize_agreement(agreement: Manifest | Invitation) -> dict[str, Any]:
    """Summarise an agreement as plain values.

    Parameters
    ----------
    agreement : Manifest or Invitation
    """
    parties = [
        {
            **summarize_card(card),
            "role": agreement.roles[name],
            "learns": _describe_view(agreement, name),
        }
        for name, card in agreement.parties.items()
    ]
    summary: dict[str, Any] = {
        "kind": agreement.KIND,
        "digest": agreement.hash.hex(),
        "round": agreement.round,
        "deadline": agreement.deadline or None,
        "signed": [name for name in agreement.parties if name not in agreement.unsigned_parties],
        "parties": parties,
    }
    if isinstance(agreement, Invitation):
        return {**summary, "ids": agreement.ids, "pad_to": agreement.pad_to}
    for party in parties:
        if party["name"] in agreement.columns:
            party["features"] = list(agreement.columns[party["name"]])
        if agreement.judging is not None and party["name"] != agreement.opener.name:
            party["learns"] += f"; {CANDIDATES_VIEW}"
    public_key = agreement.paillier
    return {
        **summary,
        "partition": agreement.partition,
        "mode": agreement.mode,
        "aggregation": agreement.aggregation,
        "paillier": None
        if public_key is None
        else {"bits": public_key.bits, "fingerprint": public_key.fingerprint},
        "rows": agreement.rows,
        "target": agreement.schema.target,
        "counted": _format_counted(agreement),
        "epsilon": agreement.epsilon,
        "tolerated": agreement.tolerated,
        "against": agreement.guarantee.against,
        "assumptions": list(agreement.guarantee.assumptions),
        "private": agreement.guarantee.is_private,
        "promise": describe_promise(agreement),
    }


def describe_promise(manifest: Manifest) -> str:
    """Describe what a round promises in text; of a round of judging, what it adds to another.

    Parameters
    ----------
    manifest : Manifest
    """
    if manifest.judging is None:
        return str(manifest.guarantee)
    first_round = manifest.judging.first_round
    return (
        f"{manifest.guarantee.describe(is_total=False)}\n"
        f"  It is added to that of the round with the manifest {first_round}."
    )


def describe_agreement(agreement: Manifest | Invitation) -> str:
    """Describe an agreement in text.

    Parameters
    ----------
    agreement : Manifest or Invitation
    """
    summary = summarize_agreement(agreement)
    lines = [
        _format_title(agreement),
        "",
        "Who takes part (compare fingerprints by telephone or in person):",
    ]
    for party in summary["parties"]:
        lines.append(f"  {party['name']}, {party['role']}, {party['fingerprint']}")
        if "features" in party:
            lines.append(f"    holds {', '.join(party['features'])}")
    if isinstance(agreement, Manifest):
        by_class = "" if agreement.judging is not None else ", by class"
        lines += ["", f"What is counted{by_class} ({agreement.schema.target}):"]
        lines += [f"  {request_text}" for request_text in summary["counted"]]
        lines += ["", "What is promised:"]
        lines += [f"  {line}" for line in summary["promise"].splitlines()]
    lines += ["", "What each party learns:"]
    lines += [f"  {party['name']}: {party['learns']}" for party in summary["parties"]]
    if isinstance(agreement, Invitation):
        lines += ["", "No epsilon covers this: whose ids are common becomes known to all owners."]
        if agreement.ids:
            lines.append(f"Ids: {agreement.ids}")
    lines += ["", f"Deadline: {agreement.deadline or 'none'}", f"Digest: {summary['digest']}"]
    return "\n".join(
        map(escape_unprintable, lines)
    )  # names are untrusted: control characters are escaped


def _format_title(agreement: Manifest | Invitation) -> str:
    if isinstance(agreement, Invitation):
        return f"Invitation to align rows, round {agreement.round}"
    hiding_method = "masks"
    if agreement.paillier is not None and agreement.key_holder is not None:
        hiding_method = (
            f"the Paillier key of {agreement.key_holder.name} ({agreement.paillier.bits} bits, "
            f"{agreement.paillier.fingerprint})"
        )
    row_text = "" if agreement.rows is None else f" of {agreement.rows:,} rows"
    return (
        f"Manifest of round {agreement.round}: {agreement.partition}{row_text}, mode "
        f"{agreement.mode}, counts hidden by {hiding_method}"
    )


def _format_counted(manifest: Manifest) -> list[str]:
    judging = manifest.judging
    if judging is None:
        return [_format_request(manifest, request) for request in manifest.requests]
    weights = ", ".join(f"{percentage} %" for percentage in judging.percentages)
    return [
        "rows that candidate models get right, made by the receiver from the totals of the round "
        f"with the manifest {judging.first_round}",
        f"a model of {', '.join(judging.models[0].tables)} with its evidence weighted {weights}",
        *(f"a model of {', '.join(model.tables)}" for model in judging.models[1:]),
        f"{judging.counter_count} numbers, which one row changes by {judging.sensitivity} in all",
    ]


def _format_request(manifest: Manifest, request: FeatureRequest) -> str:
    if request.kind == "moments":
        return f"{request.feature}: count, sum and sum of squares"
    return f"{request.feature}: counts in {manifest.layout.list_blocks(request)[0].size} cells"


def _describe_view(agreement: Manifest | Invitation, name: str) -> str:
    role = agreement.roles[name]
    if isinstance(agreement, Invitation):
        length_text = "" if agreement.pad_to is not None else "how long each list is; "
        if role == "owner":
            return f"{length_text}which of its own rows all owners have"
        return f"{length_text}how many entries each group of owners shares; no id"
    totals_kind = "exact totals" if agreement.is_effectively_exact else "noised totals"
    is_opener = agreement.parties[name] == agreement.opener
    if role == "receiver":
        return f"the {totals_kind} and the model" if is_opener else "the model: probabilities only"
    if role == "collector":
        return f"the {totals_kind} and the model" if is_opener else "uniform numbers only"
    if role == "label provider":
        return "sums under pads of others: uniform numbers only"
    if agreement.partition == "vertical":
        return "who the rows are, and hidden classes that it cannot read"
    return "nothing about the tables of others"
