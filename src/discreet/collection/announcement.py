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
from discreet.errors import PrivacyError, SchemaError
from discreet.files.atomic_writing import read_text
from discreet.files.documents import STRICT_CONFIG, Document, load_document, make_body_class
from discreet.files.yaml_text import convert_yaml_to_json
from discreet.privacy.guarantee import Guarantee
from discreet.schema.schema import Categorical, format_value

__all__ = ["Announcement", "AnnouncementTexts", "QuestionTexts", "make_example_yaml"]

VERSION = 2
DAY_FIELDS = ("opens", "closes", "deletes")
EntryPolicy = Literal["anyone", "invited"]
WithdrawalPolicy = Literal["none", "blind", "open"]

NAME_PATTERN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
LANGUAGE_PATTERN = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
TEXT_DIRECTION_MARKS = re.compile("[\u202a\u202b\u202d\u202e]")
"""Marks that change the direction of the text after them: “yes” could be read as “no”."""
MAX_TEXT_CHARS = 20_000
"""Characters of one text."""
MAX_REPORT_BYTES = 1 << 16
"""Bytes of a report that a browser sends."""
MAX_EXACT_INTEGER = 1 << 53
"""Beyond this a browser's numbers are not exact."""

OPEN_WITHDRAWAL_ASSUMPTION = "nobody withdraws a report because of what was drawn"


@dataclass(frozen=True)
class QuestionTexts:
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

    __pydantic_config__: ClassVar = STRICT_CONFIG


@dataclass(frozen=True)
class AnnouncementTexts:
    """The texts of an announcement in one language.

    Parameters
    ----------
    title : str
    introduction : str
    purpose : str
        What the results are for.
    thanks : str
        What is shown after sending.
    questions : mapping of name to QuestionTexts
        Features and target.
    """

    title: str = ""
    introduction: str = ""
    purpose: str = ""
    thanks: str = ""
    questions: Mapping[str, QuestionTexts] = field(default_factory=dict)

    __pydantic_config__: ClassVar = STRICT_CONFIG


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
    words : mapping of language to AnnouncementTexts
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
    words: Mapping[str, AnnouncementTexts] = field(default_factory=dict)
    language: str = ""
    opens: str = ""
    closes: str = ""
    deletes: str = ""
    entry: EntryPolicy = "anyone"
    withdrawal: WithdrawalPolicy = "blind"
    batch: int = 100
    unprotected: bool = False

    kind: ClassVar[str] = "announcement"
    version: ClassVar[int] = VERSION

    def __post_init__(self) -> None:
        self._check_settings()
        if not self.language:
            object.__setattr__(self, "language", next(iter(self.words), "en"))
        if self.words and self.language not in self.words:
            raise SchemaError(f"language is {self.language!r}; there are {', '.join(self.words)}")
        self._check_days()
        for text in _list_texts(self.to_body()):
            if len(text) > MAX_TEXT_CHARS:
                raise SchemaError(f"a text has {len(text)} characters; at most {MAX_TEXT_CHARS}")

    def _check_settings(self) -> None:
        if not NAME_PATTERN.fullmatch(self.name):
            raise SchemaError(
                f"name is {self.name!r}; write 1 to 64 small letters, digits and hyphens, such as "
                "health-2027"
            )
        for option_name, allowed_values in (
            ("entry", EntryPolicy),
            ("withdrawal", WithdrawalPolicy),
        ):
            if getattr(self, option_name) not in get_args(allowed_values):
                raise SchemaError(
                    f"{option_name} is {getattr(self, option_name)!r}; write one of "
                    f"{', '.join(get_args(allowed_values))}"
                )
        is_integer = isinstance(self.batch, int) and not isinstance(self.batch, bool)
        if not is_integer or not 1 <= self.batch <= 1_000_000:
            raise SchemaError(f"batch is {self.batch!r}; settle 1 to 1,000,000 reports together")
        for language in self.words:
            if not LANGUAGE_PATTERN.fullmatch(language):
                raise SchemaError(f"{language!r} is not a language tag such as en or de-CH")

    def _check_days(self) -> None:
        first_day, last_day, deletion_day = (
            _parse_day(day_field, getattr(self, day_field)) for day_field in DAY_FIELDS
        )
        if first_day and last_day and first_day > last_day:
            raise SchemaError(f"it opens on {self.opens}, after it closes on {self.closes}")
        if deletion_day and deletion_day <= (last_day or first_day or date.min):
            raise SchemaError(
                f"deletes is {self.deletes}, but reports may come on {self.closes or self.opens}; "
                "write a later day"
            )

    @classmethod
    def make_default(cls, collection: Collection, name: str, **settings: Any) -> Announcement:
        """Make an announcement without own texts, for a collection that is served as it is."""
        texts_by_language = {
            "en": AnnouncementTexts(collection.title or name, collection.introduction)
        }
        return cls(collection.digest, name, words=texts_by_language, **settings)

    # ---------------------------------------------------------------- with its collection

    def check_collection(self, collection: Collection) -> None:
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
        self._check_promise(collection)
        if collection.assignment == "groups":
            raise SchemaError(
                "this plan assigns questions by group, and a link carries no group; make it with "
                "assignment 'draw'"
            )
        _check_browser_limits(collection)
        for text in _list_texts([self.to_body(), json.loads(collection.encode_canonical())]):
            if direction_mark := TEXT_DIRECTION_MARKS.search(text):
                raise SchemaError(
                    f"{text.encode('ascii', 'backslashreplace').decode()[:80]!r} holds U+"
                    f"{ord(direction_mark[0]):04X}, which shows the text after it in another "
                    "order than it is read; leave it out (languages from right to left do not "
                    "need it)"
                )
        for language, texts in self.words.items():
            self._check_texts(collection, language, texts)

    def _check_promise(self, collection: Collection) -> None:
        kind = collection.kind
        if not collection.guarantee.is_private and not self.unprotected:
            raise PrivacyError(
                f"this {kind} promises nothing: {collection.guarantee.void_reasons[0]}. To ask "
                "people nevertheless, write 'unprotected: true' in the announcement (or serve "
                "with --unprotected); people are then warned first"
            )
        if collection.schema.inferred:
            raise PrivacyError(
                "the schema was read from data, so its bounds and categories give some of it away; "
                "write down what is known without the data"
            )
        if collection.shuffled is not None:
            raise PrivacyError(
                f"this {kind} needs an anonymiser between people and the collector, but a web "
                "collector receives reports from people themselves; make it without 'shuffled'"
            )

    def _check_texts(self, collection: Collection, language: str, texts: AnnouncementTexts) -> None:
        for name, question_texts in texts.questions.items():
            if name not in collection.names:
                raise SchemaError(f"{language}: there are words for {name!r}, which is not asked")
            answer_texts = list_answer_texts(collection, name)
            if question_texts.answers and len(question_texts.answers) != len(answer_texts):
                raise SchemaError(
                    f"{language}, {name}: has {len(question_texts.answers)} labels; it has "
                    f"{len(answer_texts)} answers: "
                    f"{', '.join(answer_texts) or 'it asks for a number'}"
                )
        if len(self.words) > 1 or texts.questions:
            missing_names = [name for name in collection.names if name not in texts.questions]
            is_worded = collection.has_own_wording and language == self.language
            if missing_names and not is_worded:
                raise SchemaError(f"{language}: has no words for {', '.join(missing_names)}")

    def make_guarantee(self, collection: Collection) -> Guarantee:
        """Return the guarantee for respondents, with the assumptions of this announcement."""
        base_guarantee = collection.guarantee
        if self.withdrawal != "open":
            return base_guarantee
        return replace(
            base_guarantee, assumptions=(*base_guarantee.assumptions, OPEN_WITHDRAWAL_ASSUMPTION)
        )

    def get_state(self, day: date) -> Literal["draft", "open", "closed"]:
        """Return the state of the survey on a day, by its dates."""
        if self.opens and day < date.fromisoformat(self.opens):
            return "draft"
        if self.closes and day > date.fromisoformat(self.closes):
            return "closed"
        return "closed" if self.is_overdue(day) else "open"

    def is_overdue(self, day: date) -> bool:
        """Whether the promised day of deletion is past."""
        return bool(self.deletes) and day > date.fromisoformat(self.deletes)

    # ---------------------------------------------------------------- files

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return asdict(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Announcement:
        """Read an announcement, hand-written or sealed."""
        body = load_document(text, "announcement", VERSION, _Body, sealed=False)
        return cls(**{field_name: getattr(body, field_name) for field_name in _Body.model_fields})

    @classmethod
    def read(cls, path: str | Path) -> Announcement:
        """Read an announcement file, YAML if its name says so."""
        file_text = read_text(path)
        if Path(path).suffix.lower() in (".yaml", ".yml"):
            file_text = convert_yaml_to_json(file_text, "announcement")
        return cls.from_json(file_text)


_Body = make_body_class(Announcement)


def _parse_day(name: str, text: str) -> date | None:
    try:
        if text and not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            raise ValueError  # Python reads weeks, too; browsers do not
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise SchemaError(f"{name} is {text!r}; write a day as 2027-03-31") from None


def _check_browser_limits(collection: Collection) -> None:
    for question_number, channel in enumerate(collection.questions):
        if 24 * channel.width + 512 > MAX_REPORT_BYTES:
            raise SchemaError(
                f"question {question_number} makes reports of {channel.width} integers; a "
                f"browser sends at most {MAX_REPORT_BYTES // 1024} kB. Choose an oracle with "
                "shorter reports"
            )
        largest_output = getattr(getattr(channel, "mechanism", None), "largest", 0)
        if isinstance(largest_output, int) and largest_output > MAX_EXACT_INTEGER:
            raise SchemaError(
                f"question {question_number} may report numbers beyond 2^53, which browsers "
                "cannot hold"
            )


def _list_texts(value: Any) -> Sequence[str]:
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _list_texts(item)] + [*map(str, value)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _list_texts(item)]
    return [value] if isinstance(value, str) else []


def list_answer_texts(collection: Collection, name: str) -> list[str]:
    """List the answers of a question as texts; empty for a number."""
    schema = collection.original
    if name == schema.target:
        return [format_value(value) for value in schema.classes]
    feature = schema[name]
    return (
        [format_value(value) for value in feature.values]
        if isinstance(feature, Categorical)
        else []
    )


def make_example_yaml(collection: Collection, name: str) -> str:
    """Make a commented announcement in YAML for a collection, to be completed by hand.

    Parameters
    ----------
    collection : Plan or Questionnaire
    name : str
        Its place in the address.
    """
    lines = [
        f"# The announcement of a {collection.kind}: complete it, then run discreet announce.",
        "# Everyone who takes part may read this file.",
        "format: discreet/announcement",
        f"version: {VERSION}",
        "",
        f"# The {collection.kind} that it announces. A changed one has another digest and needs an "
        "announcement of its own.",
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
        "# The day by which you will have deleted all reports; people see it. Empty for none.",
        "# The desk reminds you, and deletes nothing by itself.",
        'deletes: ""',
        "",
        "# anyone: everyone with the link.   invited: every report needs a code that is used once.",
        "entry: anyone",
        "",
        "# May people take a report back?   none: never.   blind: as long as they have not looked",
        "# at what was drawn.   open: always; then the promise assumes that nobody withdraws",
        "# because of what was drawn.",
        "withdrawal: blind",
        "",
        "# Reports are settled in batches of at least this many, drawn at random from twice as",
        "# many or more; until then, someone who reads the disk could join a report with its",
        "# invitation. Once this many wait, none waits longer than 7 days, nor beyond the close.",
        "batch: 100",
        "",
        "# true: ask even if nothing is promised; people are warned first.",
        "unprotected: false",
        "",
        "# Shown to those who speak none of the other languages below.",
        "language: en",
        "",
        "# What people read. Add languages next to this one, each with words for all questions.",
        "words:",
        "  en:",
        f"    title: {_quote_text(collection.title or name)}",
        f"    introduction: {_quote_text(collection.introduction)}",
        '    purpose: ""',
        '    thanks: ""',
        "    questions:",
    ]
    for question_name in collection.names:
        question_text = collection.get_own_wording(question_name) or question_name
        lines += [
            f"      {_quote_text(question_name)}:",
            f"        wording: {_quote_text(question_text)}",
            '        hint: ""',
        ]
        answer_texts = list_answer_texts(collection, question_name)
        if answer_texts:
            label_list = ", ".join(map(_quote_text, answer_texts))
            lines.append(f"        answers: [{label_list}]  # a label for each, in this order")
    return "\n".join(lines) + "\n"


def _quote_text(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)
