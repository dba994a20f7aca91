"""Announcements: the texts, languages and dates of a collection, and how it is run.

A plan or questionnaire says what is computed; the announcement says it to people. It is public,
sealed, and names the digest of the document that it announces. What decides about privacy is in it
as well: whether an invitation is needed, whether a report can be withdrawn, and how many reports
are settled together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from discreet.collection.protocol import Collection
from discreet.documents import STRICT, Document, json_of_yaml, load, read_text, shape_of
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy import Guarantee
from discreet.schema import Categorical, text_of

__all__ = ["Announcement", "Asked", "Words", "example_of"]

VERSION = 2
DAYS = ("opens", "closes", "deletes")
Entry = Literal["anyone", "invited"]
Withdrawal = Literal["none", "blind", "open"]

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
TURNING = re.compile("[\u202a\u202b\u202d\u202e]")
"""Marks that change the direction of the text after them: “yes” could be read as “no”."""
LONGEST = 20_000
"""Characters of one text."""
REPORT = 1 << 16
"""Bytes of a report that a browser sends."""
EXACT = 1 << 53
"""Beyond this a browser's numbers are not exact."""

OPEN_WITHDRAWAL = "nobody withdraws a report because of what was drawn"


@dataclass(frozen=True)
class Asked:
    """One question in one language.

    Parameters
    ----------
    wording : str
    answers : tuple of str
        A label for each answer of a question with listed answers, in their order; empty where the
        values themselves are shown, and for numbers.
    hint : str
        A line below the question.
    """

    wording: str
    answers: tuple[str, ...] = ()
    hint: str = ""

    __pydantic_config__: ClassVar = STRICT


@dataclass(frozen=True)
class Words:
    """The texts of an announcement in one language.

    Parameters
    ----------
    title : str
    introduction : str
    purpose : str
        What the results are for.
    thanks : str
        What is shown after sending.
    questions : mapping of name to Asked
        Features and target.
    """

    title: str = ""
    introduction: str = ""
    purpose: str = ""
    thanks: str = ""
    questions: Mapping[str, Asked] = field(default_factory=dict)

    __pydantic_config__: ClassVar = STRICT


@dataclass(frozen=True)
class Announcement(Document):
    """How a collection is presented and run.

    Parameters
    ----------
    collection : str
        Digest of the plan or questionnaire.
    name : str
        Its place in the address, ``/s/NAME``: small letters, digits and hyphens.
    asks : str
        Who collects.
    contact : str
        How to reach them.
    words : mapping of language to Words
        If a text is empty, the questionnaire's own wording is shown.
    language : str
        The default language; the first one if not given.
    opens, closes : str
        Days (YYYY-MM-DD), both included; empty for no limit.
    deletes : str
        The day by which the collector promises to have deleted all reports; the survey is closed
        after it. Empty for no promise.
    entry : {"anyone", "invited"}
        Whether a report needs the code of an invitation.
    withdrawal : {"none", "blind", "open"}
        Whether people may take their report back: never, as long as they have not looked at what
        was drawn, or always. The last one needs one more assumption, which the promise then names.
    batch : int, default 100
        Reports are settled in batches of at least this many, drawn from twice as many or more.
    unprotected : bool, default False
        Ask although nothing is guaranteed; respondents are informed first.
    """

    collection: str
    name: str
    asks: str = ""
    contact: str = ""
    words: Mapping[str, Words] = field(default_factory=dict)
    language: str = ""
    opens: str = ""
    closes: str = ""
    deletes: str = ""
    entry: Entry = "anyone"
    withdrawal: Withdrawal = "blind"
    batch: int = 100
    unprotected: bool = False

    kind: ClassVar[str] = "announcement"
    version: ClassVar[int] = VERSION

    def __post_init__(self) -> None:
        if not SLUG.fullmatch(self.name):
            raise SchemaError(
                f"name is {self.name!r}; write 1 to 64 small letters, digits and hyphens, such as "
                "health-2027"
            )
        for name, kinds in (("entry", Entry), ("withdrawal", Withdrawal)):
            if getattr(self, name) not in get_args(kinds):
                raise SchemaError(
                    f"{name} is {getattr(self, name)!r}; write one of {', '.join(get_args(kinds))}"
                )
        whole = isinstance(self.batch, int) and not isinstance(self.batch, bool)
        if not whole or not 1 <= self.batch <= 1_000_000:
            raise SchemaError(f"batch is {self.batch!r}; settle 1 to 1,000,000 reports together")
        for language in self.words:
            if not LANGUAGE.fullmatch(language):
                raise SchemaError(f"{language!r} is not a language tag such as en or de-CH")
        if not self.language:
            object.__setattr__(self, "language", next(iter(self.words), "en"))
        if self.words and self.language not in self.words:
            raise SchemaError(f"language is {self.language!r}; there are {', '.join(self.words)}")
        first, last, gone = (_day(name, getattr(self, name)) for name in DAYS)
        if first and last and first > last:
            raise SchemaError(f"it opens on {self.opens}, after it closes on {self.closes}")
        if gone and gone <= (last or first or date.min):
            raise SchemaError(
                f"deletes is {self.deletes}, but reports may come on {self.closes or self.opens}; "
                "write a later day"
            )
        for text in _texts(self.to_body()):
            if len(text) > LONGEST:
                raise SchemaError(f"a text has {len(text)} characters; at most {LONGEST}")

    @classmethod
    def plain(cls, collection: Collection, name: str, **settings: Any) -> Announcement:
        """Make an announcement without own texts, for a collection that is served as it is."""
        title = getattr(collection, "title", "") or name
        introduction = getattr(collection, "introduction", "")
        words = {"en": Words(title, introduction)}
        return cls(collection.digest, name, words=words, **settings)

    # ---------------------------------------------------------------- with its collection

    def check(self, collection: Collection) -> None:
        """Raise if the collection cannot be answered in a browser, or the texts do not fit it.

        Parameters
        ----------
        collection : Plan or Questionnaire
            The document whose digest this names.
        """
        kind = collection.kind
        if self.collection != collection.digest:
            raise SchemaError(
                f"this announcement names the {kind} {self.collection[:23]}…, not "
                f"{collection.digest[:23]}…; a changed {kind} needs an announcement of its own"
            )
        if not collection.guarantee.private and not self.unprotected:
            raise PrivacyError(
                f"this {kind} promises nothing: {collection.guarantee.broken[0]}. People are asked "
                "only after 'unprotected: true' in the announcement (serve --unprotected), and "
                "are told so first"
            )
        if collection.schema.inferred:
            raise PrivacyError(
                "the schema was read from data, so its bounds and categories give some of it away; "
                "write down what is known without the data"
            )
        if collection.shuffled is not None:
            raise PrivacyError(
                f"this {kind} rests on an anonymiser between people and the collector, and a web "
                "collector receives what people send from themselves; make it without 'shuffled'"
            )
        if collection.assignment == "groups":
            raise SchemaError(
                "this plan assigns questions by group, and a link carries no group; make it with "
                "assignment 'draw'"
            )
        for number, channel in enumerate(collection.questions):
            if 24 * channel.width + 512 > REPORT:
                raise SchemaError(
                    f"question {number} makes reports of {channel.width} integers; a browser sends "
                    f"at most {REPORT // 1024} kB. Choose an oracle with shorter reports"
                )
            largest = getattr(getattr(channel, "mechanism", None), "largest", 0)
            if isinstance(largest, int) and largest > EXACT:
                raise SchemaError(
                    f"question {number} may report numbers beyond 2^53, which browsers cannot hold"
                )
        for text in _texts([self.to_body(), json.loads(collection.canonical())]):
            if turned := TURNING.search(text):
                raise SchemaError(
                    f"{text.encode('ascii', 'backslashreplace').decode()[:80]!r} holds U+"
                    f"{ord(turned[0]):04X}, which shows the text after it in another order than it "
                    "is read; leave it out (languages from right to left do not need it)"
                )
        for language, words in self.words.items():
            self._check_words(collection, language, words)

    def _check_words(self, collection: Collection, language: str, words: Words) -> None:
        for name, asked in words.questions.items():
            if name not in collection.names:
                raise SchemaError(f"{language}: there are words for {name!r}, which is not asked")
            values = values_of(collection, name)
            if asked.answers and len(asked.answers) != len(values):
                raise SchemaError(
                    f"{language}, {name}: has {len(asked.answers)} labels; it has "
                    f"{len(values)} answers: {', '.join(values) or 'it asks for a number'}"
                )
        if len(self.words) > 1 or words.questions:
            lacking = [name for name in collection.names if name not in words.questions]
            own = language == self.language
            if lacking and not (own and collection.kind == "questionnaire"):
                raise SchemaError(f"{language}: has no words for {', '.join(lacking)}")

    def guarantee(self, collection: Collection) -> Guarantee:
        """Return the guarantee for respondents, with the assumptions of this announcement."""
        promised = collection.guarantee
        if self.withdrawal != "open":
            return promised
        return replace(promised, assumptions=(*promised.assumptions, OPEN_WITHDRAWAL))

    def on(self, day: date) -> Literal["draft", "open", "closed"]:
        """Return the state of the survey on a day, by its dates."""
        if self.opens and day < date.fromisoformat(self.opens):
            return "draft"
        if self.closes and day > date.fromisoformat(self.closes):
            return "closed"
        return "closed" if self.overdue(day) else "open"

    def overdue(self, day: date) -> bool:
        """Whether the promised day of deletion is past."""
        return bool(self.deletes) and day > date.fromisoformat(self.deletes)

    # ---------------------------------------------------------------- files

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return asdict(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Announcement:
        """Read an announcement, hand-written or sealed."""
        body = load(text, "announcement", VERSION, _Body, sealed=False)
        return cls(**{name: getattr(body, name) for name in _Body.model_fields})

    @classmethod
    def read(cls, path: str | Path) -> Announcement:
        """Read an announcement file, YAML if its name says so."""
        text = read_text(path)
        if Path(path).suffix.lower() in (".yaml", ".yml"):
            text = json_of_yaml(text, "announcement")
        return cls.from_json(text)


_Body = shape_of(Announcement)


def _day(name: str, text: str) -> date | None:
    try:
        if text and not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            raise ValueError  # Python reads weeks, too; browsers do not
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise SchemaError(f"{name} is {text!r}; write a day as 2027-03-31") from None


def _texts(value: Any) -> Sequence[str]:
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _texts(part)] + [*map(str, value)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) else []


def values_of(collection: Collection, name: str) -> list[str]:
    """List the answers of a question as texts; empty for a number."""
    schema = getattr(collection, "original", collection.schema)
    if name == schema.target:
        return [text_of(value) for value in schema.classes]
    feature = schema[name]
    return [text_of(one) for one in feature.values] if isinstance(feature, Categorical) else []


def example_of(collection: Collection, name: str) -> str:
    """Make a commented announcement in YAML for a collection, to be completed by hand.

    Parameters
    ----------
    collection : Plan or Questionnaire
    name : str
        Its place in the address.
    """
    wording = getattr(collection, "wording", {})
    lines = [
        f"# The words around a {collection.kind}: complete it, then run discreet announce.",
        "# Whoever takes part may read this file.",
        "format: discreet/announcement",
        f"version: {VERSION}",
        "",
        f"# The {collection.kind} that it announces. A changed one has another digest and needs "
        "words of its own.",
        f"collection: {collection.digest}",
        "",
        "# Its place in the address: /s/NAME",
        f"name: {name}",
        "",
        "# Who collects, and how to reach them.",
        'asks: ""',
        'contact: ""',
        "",
        "# First and last day, as 2027-03-31; empty for no limit.",
        'opens: ""',
        'closes: ""',
        "",
        "# The day by which you will have deleted all reports; people are told. Empty for none.",
        "# The desk reminds you, and deletes nothing by itself.",
        'deletes: ""',
        "",
        "# anyone: whoever has the link.   invited: every report needs a code that is used once.",
        "entry: anyone",
        "",
        "# May people take a report back?   none: never.   blind: as long as they have not looked",
        "# at what was drawn.   open: always; then the promise assumes that nobody withdraws",
        "# because of what was drawn.",
        "withdrawal: blind",
        "",
        "# Reports are settled in batches of at least this many, drawn at random from twice as",
        "# many or more; until then, whoever reads the disk could join a report with its",
        "# invitation. Once so many wait, none waits longer than 7 days, nor beyond the close.",
        "batch: 100",
        "",
        "# true: ask although nothing is promised; people are told so first.",
        "unprotected: false",
        "",
        "# Shown to those who speak none of the other languages below.",
        "language: en",
        "",
        "# What people read. Add languages beside this one, each with words for all questions.",
        "words:",
        "  en:",
        f"    title: {_quoted(getattr(collection, 'title', '') or name)}",
        f"    introduction: {_quoted(getattr(collection, 'introduction', ''))}",
        '    purpose: ""',
        '    thanks: ""',
        "    questions:",
    ]
    for asked in collection.names:
        own = wording[asked].private if asked in wording else ""
        lines += [
            f"      {_quoted(asked)}:",
            f"        wording: {_quoted(own or asked)}",
            '        hint: ""',
        ]
        values = values_of(collection, asked)
        if values:
            labels = ", ".join(map(_quoted, values))
            lines.append(f"        answers: [{labels}]  # a label for each, in this order")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)
