"""A page about a released model that a data protection officer can file.

It says what was released, what is promised and what that rests on, what was spent and is left, and
what is not covered, with digests by which the files are recognised. All of it is in the model, its
statistics and the ledger; nothing is computed from data. Neither names of files nor whose data it
was are on the page: the ledger holds them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from discreet import __version__
from discreet.display.html_page import assemble_page, read_page_style
from discreet.errors import PrivacyError
from discreet.estimation.from_statistics import load_model_statistics
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import compute_digest, encode_canonical
from discreet.model import NaiveBayesModel
from discreet.privacy.guarantee import Guarantee, format_odds_factor, format_rounded_up
from discreet.privacy.ledger import Ledger
from discreet.privacy.payment import LedgerPayment, find_payment
from discreet.schema.schema import format_value

__all__ = ["Certificate"]

TITLE = "Certificate of a privacy guarantee"
GENERATOR = "discreet certificate"

MAX_LISTED_CHARS = 420
"""Characters of a list of names: with all lists at this length, the page fits on a sheet."""
MAX_NAME_CHARS = 40
"""Characters of a name in a list."""

TRUSTED_PARTIES = {
    "central": "One curator holds the table, drew the noise, and is trusted with both.",
    "local": "Nobody is trusted: each person's device drew the noise before it sent a report.",
    "survey": "Nobody is trusted: each person answered by randomized response.",
    "federated": "Each organisation is trusted with the rows of its own people, and with nothing "
    "else.",
}
"""Who has to be trusted, by trust model."""
RUN_ASSUMPTION = (
    "the program was not changed, and the machines on which it ran were not read by others"
)
"""What every promise of a program rests on."""
CHARGE_KINDS = {
    "class counts": "table of people per class",
    "table": "tables of a feature by class",
    "residuals": "tables of what the model gets wrong",
    "choice": "choices among candidates",
}
"""Kinds of released results, by the first words of their charges."""
UNCOVERED = (
    "The table itself, exact counts, copies and logs: they stay as confidential as they were.",
    "Other releases about the same people that were not charged to this ledger.",
    "What is true of people in general: the model may suggest it about somebody who took no part.",
    "The rows that somebody lets the model predict, and what is done with the predictions.",
    "Groups: what k people have in common is protected with k times epsilon.",
    "How accurate or how fair the model is.",
)
"""What a guarantee never says."""


@dataclass(frozen=True)
class Certificate:
    """What can be certified about a model.

    Parameters
    ----------
    model : NaiveBayesModel
        With a promise that holds.
    model_digest : str
        SHA-256 of its file.
    statistics_digest : str, optional
        SHA-256 of the file of the statistics that it was made of.
    payment : LedgerPayment, optional
    day : str, optional
        When the page is written; today if left out.

    Raises
    ------
    PrivacyError
        If the promise of the model is void.
    """

    model: NaiveBayesModel
    model_digest: str
    statistics_digest: str | None = None
    payment: LedgerPayment | None = None
    day: str = ""

    def __post_init__(self) -> None:
        if not self.day:
            object.__setattr__(self, "day", datetime.now(UTC).date().isoformat())
        if reasons := self.model.guarantee.void_reasons:
            raise PrivacyError(
                f"there is nothing to certify: the promise of this model is not kept "
                f"({'; '.join(reasons)})"
            )

    @classmethod
    def read(
        cls, path: str | Path, *, ledger: str | None = None, statistics: str | None = None
    ) -> Certificate:
        """Read a model with its ledger and its statistics, which have to belong to it.

        Parameters
        ----------
        path : path
            Of the model.
        ledger, statistics : str, optional
            Paths of the other files.
        """
        model = NaiveBayesModel.read(path)
        with error_context(path):
            certificate = cls(model, _compute_file_digest(path))
        payment, statistics_digest = None, None
        if ledger is not None:
            with error_context(ledger):
                payment = find_payment(model.guarantee, Ledger(ledger).read())
        if statistics is not None:
            with error_context(statistics):
                load_model_statistics(read_text(statistics), model)
                statistics_digest = _compute_file_digest(statistics)
        return cls(model, certificate.model_digest, statistics_digest, payment)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        guarantee, schema = self.model.guarantee, self.model.schema
        return {
            "written": self.day,
            "program": f"discreet {__version__}",
            "target": schema.target,
            "classes": [format_value(value) for value in schema.classes],
            "features": list(self.model.inputs.names),
            "used_features": [factor.name for factor in self.model.factors],
            "released": [list(group) for group in _group_charges(guarantee)],
            "guarantee": self._public_guarantee.to_body(),
            "assumptions": [*guarantee.assumptions, RUN_ASSUMPTION],
            "not_covered": list(UNCOVERED),
            "payment": None if self.payment is None else self.payment.to_body(),
            "digests": dict(self._list_digests()),
        }

    def _list_digests(self) -> list[tuple[str, str]]:
        digests = [("model file", self.model_digest), ("schema", self.model.schema.digest)]
        if self.statistics_digest is not None:
            digests.append(("statistics file", self.statistics_digest))
        if self.payment is not None:
            entry_body = self.payment.entry.model_dump()
            digests.append(("ledger entry", compute_digest(encode_canonical(entry_body))))
        return digests

    def render(self) -> str:
        """The page, as HTML."""
        guarantee = self.model.guarantee
        delta_text = f", delta {format_rounded_up(guarantee.delta)}" if guarantee.delta else ""
        header = (
            f"<header><h1>{escape(TITLE)}</h1>"
            f'<p class="answer">A classifier of “{escape(_shorten(self.model.schema.target))}”, '
            f"released with epsilon {format_rounded_up(guarantee.epsilon)}{delta_text} per person."
            "</p></header>"
        )
        sections = [
            header,
            _render_section("What was released", self._describe_release()),
            _render_section("What is promised", self._describe_promise()),
            _render_section("What it rests on", self._list_assumptions(), listed=True),
            _render_section("What was spent, and what is left", self._describe_payment()),
            _render_section("What it does not cover", UNCOVERED, listed=True),
            self._render_digests(),
            f"<footer><p>Written by discreet {__version__} on {self.day} from the files with these "
            "digests; it is not signed, and can be written again from them. A model file states "
            "neither when nor by which version it was made.</p></footer>",
        ]
        style_text = read_page_style("certificate.css")
        return assemble_page(TITLE, style_text, sections, generator=GENERATOR)

    def _describe_release(self) -> list[str]:
        schema, names = self.model.schema, self.model.inputs.names
        class_names = [f"“{format_value(value)}”" for value in schema.classes]
        used_count, pair_count = len(self.model.factors), len(self.model.pairs)
        pair_text = f" and {pair_count} pairs of them" if pair_count else ""
        lines = [
            f"A model that tells {len(class_names)} classes apart: {_join_names(class_names)}.",
            f"Public are the classes and {len(names)} columns: {_join_names(names)}. The model "
            f"uses {used_count} of them{pair_text}.",
        ]
        if groups := _group_charges(self.model.guarantee):
            result_count = sum(number for _, number, _ in groups)
            group_texts = [
                f"{number} {CHARGE_KINDS.get(kind, kind)} ({format_rounded_up(epsilon, 3)})"
                for kind, number, epsilon in groups
            ]
            lines.append(
                f"{result_count} noisy results were released, and the model is computed from them "
                f"alone; with their epsilons: {', '.join(group_texts)}."
            )
        return lines

    def _describe_promise(self) -> list[str]:
        guarantee = self.model.guarantee
        otherwise = "taken no part" if guarantee.neighbours == "add-remove" else "been another one"
        delta_text = f", plus {format_rounded_up(guarantee.delta)}" if guarantee.delta else ""
        plain_text = (
            "Whatever somebody concludes from the model about a person, and whatever else they "
            f"know: the probability of it is at most {format_odds_factor(guarantee.epsilon)} times "
            f"what it would be if this person had {otherwise}{delta_text}."
        )
        account = guarantee.account
        stated_lines = self._public_guarantee.describe(
            is_total=account is None or account.releases == 1
        )
        return [plain_text, " ".join(line.strip() for line in stated_lines.splitlines())]

    @property
    def _public_guarantee(self) -> Guarantee:
        """The promise without what the page says in sections of its own, and without file names."""
        return replace(self.model.guarantee, account=None, assumptions=())

    def _list_assumptions(self) -> list[str]:
        guarantee = self.model.guarantee
        assumptions = [*guarantee.assumptions, RUN_ASSUMPTION]
        return [
            TRUSTED_PARTIES.get(guarantee.trust, guarantee.trust),
            "The noise came from a cryptographic random source, and no seed is known.",
            *(f"{text[:1].upper()}{text[1:]}." for text in assumptions),
        ]

    def _describe_payment(self) -> list[str]:
        payment = self.payment
        if payment is None:
            return [
                "No ledger was given for this page: when the model was trained, and what else was "
                "spent on the same people, is not certified."
            ]
        entry, state = payment.entry, payment.state
        amounts = [
            f"epsilon {format_rounded_up(epsilon)}"
            + (f" and delta {format_rounded_up(delta)}" if state.delta else "")
            for epsilon, delta in (
                (entry.epsilon, entry.delta),
                state.spent,
                (state.epsilon, state.delta),
            )
        ]
        amount_left, left_delta = map(float, state.remaining)
        left_text = f"epsilon {amount_left:g}"
        left_text += f" and delta {left_delta:g}" if state.delta else ""
        origin_text = (
            "The model names this entry."
            if payment.is_named
            else "The model does not name it: it is taken for this model's because no other entry "
            "has this cost."
        )
        release_count = len(state.entries)
        lines = [
            f"Charged on {entry.when[:16].replace('T', ' ')} UTC, before the noise was drawn: "
            f"{amounts[0]} ({entry.what}). {origin_text}",
            f"By {self.day}, {release_count} release{'s' * (release_count != 1)} about these "
            f"people cost {amounts[1]} of {amounts[2]} in total; {left_text} is left.",
        ]
        lines += [
            f"The total no longer limits what was released: {reason}."
            for reason in state.void_reasons
        ]
        return lines

    def _render_digests(self) -> str:
        rows = "".join(
            f"<dt>{escape(name)}</dt><dd><code>{escape(digest.removeprefix('sha256:'))}</code></dd>"
            for name, digest in self._list_digests()
        )
        return f"<section><h2>Digests (SHA-256)</h2><dl>{rows}</dl></section>"


def _group_charges(guarantee: Guarantee) -> list[tuple[str, int, float]]:
    """What was paid for by kind: name, how many, and their epsilon together."""
    groups: dict[str, tuple[int, float]] = {}
    for charge in guarantee.charges:
        kind = charge.name.partition(" of ")[0]
        number, epsilon = groups.get(kind, (0, 0.0))
        groups[kind] = (number + 1, epsilon + charge.epsilon)
    return [(kind, number, epsilon) for kind, (number, epsilon) in groups.items()]


def _compute_file_digest(path: str | Path) -> str:
    return f"sha256:{hashlib.sha256(Path(path).read_bytes()).hexdigest()}"


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARS else f"{name[: MAX_NAME_CHARS - 1]}…"


def _join_names(names: Sequence[str]) -> str:
    """Names up to a length, and how many more there are."""
    listed: list[str] = []
    length = 0
    for name in map(_shorten, names):
        length += len(name) + 2
        if length > MAX_LISTED_CHARS:
            return f"{', '.join(listed)} and {len(names) - len(listed)} more"
        listed.append(name)
    return ", ".join(listed)


def _render_section(title: str, lines: Sequence[str], *, listed: bool = False) -> str:
    tag = "li" if listed else "p"
    content = "".join(f"<{tag}>{escape(line)}</{tag}>" for line in lines)
    content = f"<ul>{content}</ul>" if listed else content
    return f"<section><h2>{escape(title)}</h2>{content}</section>"
