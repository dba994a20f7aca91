"""The public plan of a local collection: questions, mechanisms, and the share of each.

A plan carries every probability as an integer over 2^64 and a digest. Anyone with the plan can
check the privacy of a report; respondents need no floating-point arithmetic.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field

from discreet.arrays import Floats, Integers
from discreet.errors import EstimationError, FormatError, PrivacyError, SchemaError
from discreet.files.atomic_writing import read_text
from discreet.files.documents import Body, load_document
from discreet.local.device import RecordRandomizer
from discreet.local.question import VERDICTS, Question, QuestionBody
from discreet.privacy.guarantee import INFERRED_REASON, Charge, Guarantee, format_odds_sentence
from discreet.privacy.shuffling import Blanket, Shuffle, ShuffleBody
from discreet.randomness import Random
from discreet.schema.cells import Cells
from discreet.schema.projection import Projection, ProjectionBody
from discreet.schema.schema import Categorical, Numeric, Schema, SchemaBody

__all__ = ["Assignment", "Design", "Plan", "Question", "Wave", "WaveDesign"]

Assignment = Literal["draw", "groups"]
Design = Literal["auto", "pairs", "paper"]
WaveDesign = Literal[Design, "judge"]
"""A later wave may also judge candidate models that follow from the earlier ones."""
DIGEST_PATTERN = re.compile("sha256:[0-9a-f]{64}")
VERSION = 5

MAX_REPORTS_PER_PERSON = 1000
"""Largest number of reports that one person may send to one plan."""


@dataclass(frozen=True)
class Wave:
    """Inputs of the shares of a later wave, so that anyone can recompute them.

    Parameters
    ----------
    number : int
        From 2 on; a plan that follows no other has no wave.
    respondents : int
        Expected in all waves together: the class question is asked by it.
    plan, tally : str
        Digests of the plan before this one and of its tally. That plan names its own predecessor.
    kind : {"auto", "pairs", "paper", "judge"}
    oracle : str
        How the questions were made: see :func:`~discreet.local.waves.next_plan`.
    """

    number: int
    respondents: int
    plan: str
    tally: str
    kind: WaveDesign = "auto"
    oracle: str = "auto"

    def __post_init__(self) -> None:
        for field_name, min_value in (("number", 2), ("respondents", 1)):
            value = getattr(self, field_name)
            if isinstance(value, bool) or not isinstance(value, int) or value < min_value:
                raise SchemaError(
                    f"wave: its {field_name} is {value!r}; it must be at least {min_value}"
                )
        for field_name in ("plan", "tally"):
            if not DIGEST_PATTERN.fullmatch(getattr(self, field_name)):
                raise SchemaError(f"wave: its {field_name} is not a digest: sha256:…")


@dataclass(frozen=True, eq=False, repr=False)
class Plan(RecordRandomizer):
    """Questions for a population, each person answering as many as ``reports`` says.

    Parameters
    ----------
    schema : Schema
    epsilon : float
        Per person and total: the reports of one person together lose at most this.
    questions : sequence of Question
    edges : mapping of feature name to bin edges
        For numeric features that are asked by cell.
    assignment : {"draw", "groups"}
        Whether respondents draw their question themselves, or the collector tells them which.
    reports : int, default 1
        How many reports one person may send.
    projection : Projection, optional
        Public: what makes the numbers of ``schema`` from those of a record. Devices apply it.
    shuffled : Shuffle, optional
        What is promised beyond epsilon where an anonymiser shuffles the reports.
    wave : Wave, optional
        For a plan that follows earlier ones of the same collection.

    Attributes
    ----------
    report_epsilon : float
        Largest epsilon of one report, so that all reports together stay within epsilon.
    original : Schema
        Of a record as it is before the projection, if there is one.
    names : tuple of str
        The columns of a whole record: the features, then the target.
    mean_features : frozenset of str
        Features asked by their mean; by cell only whether they are missing.
    cumulative_weights : array of int
        A uniform integer below the last one selects a question.
    shares : array of float
        Expected share of respondents of each question.
    """

    schema: Schema
    epsilon: float
    questions: Sequence[Question]
    edges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    assignment: Assignment = "draw"
    reports: int = 1
    projection: Projection | None = None
    shuffled: Shuffle | None = None
    wave: Wave | None = None
    report_epsilon: float = field(init=False, repr=False)
    original: Schema = field(init=False, repr=False)
    names: tuple[str, ...] = field(init=False, repr=False)
    mean_features: frozenset[str] = field(init=False, repr=False)
    cumulative_weights: Integers = field(init=False, repr=False)
    shares: Floats = field(init=False, repr=False)

    kind: ClassVar[str] = "plan"
    version: ClassVar[int] = VERSION
    noun: ClassVar[str] = "report"
    command_group: ClassVar[str] = "local"
    has_waves: ClassVar[bool] = True
    device = "software"

    def __repr__(self) -> str:
        return f"Plan({len(self.questions)} questions, epsilon={self.epsilon!r}, {self.schema!r})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", tuple(self.questions))
        object.__setattr__(self, "epsilon", float(self.epsilon))
        edges = {name: tuple(map(float, bin_edges)) for name, bin_edges in self.edges.items()}
        object.__setattr__(self, "edges", edges)
        if not self.epsilon > 0:
            raise PrivacyError(f"epsilon is {self.epsilon!r}; it must be above 0")
        if not self.questions:
            raise SchemaError("a plan needs at least one question")
        if self.projection is not None and self.projection.output_schema != self.schema:
            raise SchemaError("the projection makes other features than the plan asks about")
        if self.assignment not in get_args(Assignment):
            raise SchemaError(f"assignment={self.assignment!r}; write 'draw' or 'groups'")
        is_integer = isinstance(self.reports, int) and not isinstance(self.reports, bool)
        if not is_integer or not 1 <= self.reports <= MAX_REPORTS_PER_PERSON:
            raise PrivacyError(
                f"reports is {self.reports!r}; a person sends 1 to {MAX_REPORTS_PER_PERSON}"
            )
        original = self.schema if self.projection is None else self.projection.input_schema
        object.__setattr__(self, "original", original)
        object.__setattr__(self, "names", (*original.names, self.schema.target))
        object.__setattr__(self, "report_epsilon", split_epsilon(self.epsilon, self.reports))
        weights = [question.weight for question in self.questions]
        if sum(weights) >= 1 << 53:
            raise SchemaError(
                "the weights of the questions add up to 2^53 or more; use smaller ones"
            )
        mean_questions = [question for question in self.questions if question.power]
        mean_features = frozenset(name for question in mean_questions for name in question.features)
        object.__setattr__(self, "mean_features", mean_features)
        object.__setattr__(self, "cumulative_weights", np.cumsum(weights))
        object.__setattr__(self, "shares", np.array(weights, float) / float(sum(weights)))
        for question_number, question in enumerate(self.questions):
            self._check_question(question_number, question)
        if len({question.candidate is None for question in self.questions}) > 1:
            raise SchemaError("questions that judge a model make a plan of their own")
        self._check_edges()
        if self.shuffled is not None:
            self._check_shuffled(self.shuffled)

    def _check_question(self, question_number: int, question: Question) -> None:
        mechanism = question.mechanism
        if not mechanism.epsilon <= self.report_epsilon:
            raise PrivacyError(
                f"question {question_number} spends {mechanism.epsilon!r}, the plan promises "
                f"{self.epsilon!r} per person for {self.reports} "
                f"report{'s' * (self.reports > 1)}"
            )
        if question.candidate is not None:
            cell_count = VERDICTS
            question.candidate.check_cells(
                len(self.schema.classes),
                {name: self.cells[name].size for name in question.features},
            )
        elif question.power == 0:
            cell_count = math.prod(self.get_table_shape(question))
        else:
            cell_count = len(self.schema.classes) * len(question.features)
            for feature in map(self.schema.__getitem__, question.features):
                if isinstance(feature, Categorical) or not feature.is_bounded:
                    raise SchemaError(
                        f"{feature.name}: only a number with public bounds has a mean to ask for"
                    )
        if mechanism.size != cell_count:
            raise SchemaError(
                f"question {question_number} has {cell_count} cells, its mechanism {mechanism.size}"
            )
        if not self.mean_features:
            return
        for name in question.features if question.power == 0 else ():
            if name in self.mean_features and self.cells[name].value_count > 1:
                raise SchemaError(
                    f"{name} is asked both by bin and by its mean; choose one, or ask by a single "
                    "bin whether it is there at all"
                )

    def _check_edges(self) -> None:
        for name, bin_edges in self.edges.items():
            feature = self.schema[name]
            if not isinstance(feature, Numeric) or name not in self.cells:
                raise SchemaError(f"the plan has edges for {name}, which is not asked by bin")
            if (
                tuple(bin_edges)
                != Cells.from_schema(self.schema, name, {name: bin_edges[1:-1]}).edges
            ):
                raise SchemaError(f"{name}: the first and last edge are not its public bounds")

    def _check_shuffled(self, shuffle: Shuffle) -> None:
        if self.assignment != "draw":
            raise PrivacyError(
                "shuffled: people must draw their question themselves (assignment='draw'); where "
                "the collector assigns it, they hide only among those with the same question"
            )
        if self.reports > 1:
            raise PrivacyError(
                f"shuffled: a person sends {self.reports} reports, and the shuffle hides one of "
                "each; write reports=1"
            )
        shuffle.require_kept_by(self.blanket)

    @cached_property
    def blanket(self) -> Blanket:
        """The privacy blanket of a shuffled report: question and answer together."""
        weighted_questions = zip(self.shares.tolist(), self.questions, strict=True)
        return Blanket.from_mixture(
            [(share, question.blanket) for share, question in weighted_questions]
        )

    @property
    def bins(self) -> dict[str, int | list[float]]:
        """Bins of the numbers that are asked by cell: of another plan they make the same cells."""
        return {
            name: list(cells.edges[1:-1]) or 1
            for name, cells in self.cells.items()
            if isinstance(self.schema[name], Numeric)
        }

    def get_table_shape(self, question: Question) -> tuple[int, ...]:
        """(classes, cells of the first feature, …) of a question about cells."""
        class_count = len(self.schema.classes)
        return (class_count, *(self.cells[name].size for name in question.features))

    @property
    def judges_models(self) -> bool:
        """Whether every question judges a candidate model by one bit."""
        return self.questions[0].candidate is not None

    @property
    def question_outcomes(self) -> int:
        """Number of equally likely outcomes of drawing a question."""
        return int(self.cumulative_weights[-1])

    @property
    def mechanisms(self) -> list[tuple[str, Any]]:
        """The mechanism of every question, after its number and name."""
        return [
            (f"question {number}, {question.name}", question.mechanism)
            for number, question in enumerate(self.questions)
        ]

    @cached_property
    def unshuffled_guarantee(self) -> Guarantee:
        """The guarantee of all reports that a person may send, without a shuffle."""
        largest_epsilon = max(question.mechanism.epsilon for question in self.questions)
        total_epsilon = (
            self.epsilon
            if largest_epsilon == self.report_epsilon
            else self.reports * largest_epsilon
        )
        return Guarantee(
            total_epsilon,
            neighbours="replace",
            trust="local",
            unit="everything one person answers",
            against="everyone, the collector included: it is the report itself that is randomized",
            assumptions=(
                "the respondent's device is honest and its random source good",
                f"a person sends at most {self.reports} report{'s' * (self.reports > 1)}",
                "that a person took part at all is not hidden",
            ),
            charges=tuple(
                Charge(f"report {report_index + 1}", largest_epsilon)
                for report_index in range(self.reports)
            ),
        ).void_if(schema=self.schema)

    @property
    def sentence(self) -> str:
        """One sentence for respondents about their protection, however the report travels."""
        if math.isinf(self.unshuffled_guarantee.epsilon):
            return "Your answers are not protected: they may be sent unchanged."
        report_phrase = (
            "your report" if self.reports == 1 else f"all {self.reports} of your reports"
        )
        odds_text = format_odds_sentence(report_phrase, self.unshuffled_guarantee.epsilon)
        return f"{odds_text} Not covered: {INFERRED_REASON}." if self.schema.inferred else odds_text

    def get_asked_columns(self, question: int) -> tuple[str, ...]:
        """The columns of a record that one question is about."""
        features = self.questions[question].features
        if self.projection is not None:
            component_names = {component.name for component in self.projection.components}
            numeric_names = (
                {feature.name for feature in self.projection.numeric_features}
                if component_names & {*features}
                else ()
            )
            features = tuple(
                name for name in self.original.names if name in numeric_names or name in features
            )
        return (*features, self.schema.target)

    def draw_questions(self, respondents: int, random: Random) -> Integers:
        """Draw the question of each respondent, or assign questions in exact shares."""
        if self.assignment == "draw":
            draws = random.integers(int(self.cumulative_weights[-1]), respondents)
            return np.searchsorted(self.cumulative_weights, draws, side="right")
        group_ends = np.round(np.cumsum(self.shares) * respondents).astype(np.int64)
        question_order = np.searchsorted(group_ends, np.arange(respondents), side="right")
        return question_order[np.argsort(random.words(respondents), kind="stable")]

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        questions = [question.to_body() for question in self.questions]
        body = {
            "schema": self.schema.to_body(),
            "epsilon": self.epsilon,
            "assignment": self.assignment,
            "reports": self.reports,
            "edges": {name: list(edges) for name, edges in self.edges.items()},
            "questions": questions,
            "projection": None if self.projection is None else self.projection.to_body(),
        }
        if self.shuffled is not None:
            body["shuffled"] = self.shuffled.to_body()
        if self.wave is not None:
            body["wave"] = asdict(self.wave)
        return body

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan, and check that its probabilities keep what its epsilon promises.

        The canonical bytes are read as well: what a collector serves, without the digest, which is
        their SHA-256.
        """
        body = load_document(text, "plan", VERSION, PlanBody, sealed=False)
        try:
            schema = body.public.to_schema()
            plan = cls(
                schema,
                body.epsilon,
                [question.to_question() for question in body.questions],
                {name: tuple(bin_edges) for name, bin_edges in body.edges.items()},
                body.assignment,
                body.reports,
                None if body.projection is None else body.projection.to_projection(schema),
                None if body.shuffled is None else body.shuffled.to_shuffle(),
                None if body.wave is None else Wave(**body.wave.model_dump()),
            )
        except (SchemaError, PrivacyError, EstimationError) as error:
            raise FormatError(f"this plan contradicts itself: {error}") from None
        stated_digest, canonical_bytes = json.loads(text).get("digest"), plan.encode_canonical()
        if (
            stated_digest is None
            and (text.encode() if isinstance(text, str) else text).strip() != canonical_bytes
        ):
            raise FormatError(
                "this plan has no digest, and it is not the bytes that a collector serves: fetch "
                "it again and keep it as it comes, or take the file that discreet local plan wrote"
            )
        if stated_digest not in (None, plan.digest):  # every device must see the same digest
            raise FormatError("this plan is not in canonical form; take it as discreet wrote it")
        return plan

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read a plan file."""
        return cls.from_json(read_text(path))


def split_epsilon(epsilon: float, reports: int) -> float:
    """Return the largest float that, times ``reports``, does not exceed epsilon."""
    report_epsilon = epsilon / reports
    if math.isfinite(report_epsilon) and Fraction(report_epsilon) * reports > Fraction(epsilon):
        return math.nextafter(report_epsilon, 0)
    return report_epsilon


class WaveBody(Body):
    number: int
    respondents: int
    plan: str
    tally: str
    kind: WaveDesign
    oracle: str


class PlanBody(Body):
    public: SchemaBody = Field(alias="schema")
    epsilon: float
    assignment: Assignment
    reports: int
    edges: dict[str, list[float]]
    questions: list[QuestionBody]
    projection: ProjectionBody | None
    shuffled: ShuffleBody | None = None
    wave: WaveBody | None = None
