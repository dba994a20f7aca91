"""Predicates: logical conditions over the answers of one person, as text or as a function.

>>> from discreet import Categorical, Schema
>>> from discreet.survey.questionnaire import Group, Questionnaire
>>> schema = Schema([Categorical("smokes", ["no", "yes"], optional=False)], "sick", ["no", "yes"])
>>> survey = Questionnaire.from_schema(schema)
>>> Predicate.parse(survey, "smokes = yes and not sick = yes").table.astype(int).tolist()
[[0, 0], [1, 0]]
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Booleans
from discreet.errors import EstimationError, SchemaError
from discreet.survey.questionnaire import Questionnaire

__all__ = ["Predicate"]

MAX_COMBINATIONS = 1 << 22
"""Combinations of answers that a predicate may distinguish."""
MAX_DEPTH = 100
"""Most parentheses nested inside each other."""

COMPARISON_FORMS = "=, !=, in (…) or not in (…)"
OPERATOR_HINT = f"answers are compared by {COMPARISON_FORMS} only: list the answers that you mean"
TOKEN_NAMES = {
    "word": "an answer or question",
    "quoted": "an answer or question",
    "open": "an opening parenthesis",
    "close": "a closing parenthesis",
    "comma": "a comma",
    "equals": "=",
    "differs": "!=",
    "end": "and, or, or its end",
}
EXAMPLE_HINT = "write for example: smokes = yes and not (age = old or sick = yes)"

TOKEN_PATTERN = re.compile(
    r"""\s*(?:(?P<open>\()|(?P<close>\))|(?P<comma>,)|(?P<differs>!=|<>)|(?P<equals>==?)"""
    r"""|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s()=!,<>"']+))"""
)


@dataclass(frozen=True, eq=False)
class Predicate:
    """Which combinations of answers to some questions are meant.

    Parameters
    ----------
    names : tuple of str
        The questions that it mentions.
    table : array of bool, one axis per question
        Whether it is true for each combination of answers.
    """

    names: tuple[str, ...]
    table: Booleans

    @classmethod
    def from_answers(cls, questionnaire: Questionnaire, answers: Mapping[str, object]) -> Predicate:
        """A conjunction: each of these questions has this answer."""
        names = tuple(answers)
        sizes = _compute_sizes(questionnaire, names)
        table = np.zeros(sizes, np.bool_)
        table[tuple(questionnaire.cells[name].encode_value(answers[name]) for name in names)] = True
        return cls(names, table)

    @classmethod
    def from_function(
        cls, questionnaire: Questionnaire, names: Sequence[str], holds: Callable[..., bool]
    ) -> Predicate:
        """Any function of the answers' labels, called once for each combination."""
        sizes = _compute_sizes(questionnaire, names)
        labels = [questionnaire.cells[name].labels for name in names]
        truth_values = [bool(holds(*combination)) for combination in itertools.product(*labels)]
        return cls(tuple(names), np.array(truth_values).reshape(sizes))

    @classmethod
    def parse(cls, questionnaire: Questionnaire, text: str) -> Predicate:
        """Read ``smokes = yes and (age != "18 to 30" or not region in (north, south))``.

        Names and answers with spaces or signs stand in quotes; ``missing`` in parentheses is
        ``"(missing)"``. ``not`` binds closer than ``and``, ``and`` closer than ``or``.
        """
        parser = _PredicateParser(questionnaire, text)
        truth_table = parser.parse_disjunction()
        parser.take_token("end")
        return cls(parser.names, np.broadcast_to(truth_table, parser.sizes).copy())


def _compute_sizes(questionnaire: Questionnaire, names: Sequence[str]) -> tuple[int, ...]:
    for name in names:
        questionnaire.find_group(name)  # raises where there is no such question
    sizes = tuple(questionnaire.cells[name].size for name in names)
    if math.prod(sizes) > MAX_COMBINATIONS:
        raise EstimationError(
            f"the predicate distinguishes {math.prod(sizes):,} combinations of answers, the "
            f"limit is {MAX_COMBINATIONS:,}; ask about fewer questions at once"
        )
    return sizes


class _PredicateParser:
    """Recursive descent; each rule returns a table that broadcasts over all questions named."""

    def __init__(self, questionnaire: Questionnaire, text: str) -> None:
        self.questionnaire, self.text, self.token_index, self.depth = questionnaire, text, 0, 0
        self.tokens = self._split_tokens()
        mentioned_names = [
            value
            for (kind, value), (next_kind, next_word) in itertools.pairwise(self.tokens)
            if kind in ("word", "quoted")
            and (next_kind in ("equals", "differs") or next_word.lower() in ("in", "not"))
        ]
        self.names = tuple(
            dict.fromkeys(name for name in mentioned_names if name in questionnaire.place)
        )
        self.sizes = _compute_sizes(questionnaire, self.names)

    def _split_tokens(self) -> list[tuple[str, str]]:
        tokens, text_position = [], 0
        text = self.text.rstrip()
        while text_position < len(text):
            match = TOKEN_PATTERN.match(text, text_position)
            if match is None:
                raise SchemaError(
                    "the predicate cannot be read at "
                    f"{text[text_position : text_position + 20].strip()!r}; {OPERATOR_HINT}; "
                    f"{EXAMPLE_HINT}"
                )
            kind = str(match.lastgroup)
            value = match.group(kind)
            tokens.append(("quoted" if kind in ("double", "single") else kind, value))
            text_position = match.end()
        return [*tokens, ("end", "the end")]

    def take_token(self, *kinds: str) -> str:
        kind, value = self.tokens[self.token_index]
        if kind not in kinds:
            expected_tokens = " or ".join(
                dict.fromkeys(TOKEN_NAMES.get(token_kind, token_kind) for token_kind in kinds)
            )
            actual_token = "ends" if kind == "end" else f"has {value!r}"
            raise SchemaError(
                f"the predicate {actual_token} where {expected_tokens} is expected; {EXAMPLE_HINT}"
            )
        self.token_index += 1
        return value

    def take_keyword(self, word: str) -> bool:
        kind, value = self.tokens[self.token_index]
        if kind == "word" and value.lower() == word:
            self.token_index += 1
            return True
        return False

    def parse_disjunction(self) -> Booleans:
        truth_table = self.parse_conjunction()
        while self.take_keyword("or"):
            truth_table = truth_table | self.parse_conjunction()
        return truth_table

    def parse_conjunction(self) -> Booleans:
        truth_table = self.parse_negation()
        while self.take_keyword("and"):
            truth_table = truth_table & self.parse_negation()
        return truth_table

    def parse_negation(self) -> Booleans:
        is_negated = False
        while self.take_keyword("not"):  # a loop: any number of them
            is_negated = not is_negated
        truth_table = (
            self.parse_parentheses()
            if self.tokens[self.token_index][0] == "open"
            else self.parse_comparison()
        )
        return ~truth_table if is_negated else truth_table

    def parse_parentheses(self) -> Booleans:
        """Parse an expression in parentheses."""
        self.take_token("open")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SchemaError(
                f"the predicate has more than {MAX_DEPTH} parentheses inside each other; write it "
                "with fewer"
            )
        truth_table = self.parse_disjunction()
        self.take_token("close")
        self.depth -= 1
        return truth_table

    def parse_comparison(self) -> Booleans:
        name = self.take_token("word", "quoted")
        if name not in self.questionnaire.place:
            known_names = ", ".join(self.questionnaire.names)
            raise SchemaError(f"there is no question {name!r}; there are {known_names}")
        is_negated = self.take_keyword("not")
        if is_negated or self.tokens[self.token_index][1].lower() == "in":
            if not self.take_keyword("in"):
                raise SchemaError(f"after a question comes {COMPARISON_FORMS}; {EXAMPLE_HINT}")
            self.take_token("open")
            answer_labels = [self.take_token("word", "quoted")]
            while self.tokens[self.token_index][0] == "comma":
                self.take_token("comma")
                answer_labels.append(self.take_token("word", "quoted"))
            self.take_token("close")
        else:
            is_negated = self.tokens[self.token_index][0] == "differs"
            self.take_token("equals", "differs")
            answer_labels = [self.take_token("word", "quoted")]
        return self.make_table(name, answer_labels, is_negated)

    def make_table(self, name: str, answers: Sequence[str], is_negated: bool) -> Booleans:
        labels = self.questionnaire.cells[name].labels
        answer_flags = np.zeros(len(labels), np.bool_)
        for answer in answers:
            if answer not in labels:
                raise SchemaError(
                    f"{name}: {answer!r} is not one of its answers; write one of: "
                    f"{', '.join(labels)}"
                )
            answer_flags[labels.index(answer)] = True
        table_shape = [1] * len(self.names)
        table_shape[self.names.index(name)] = len(answer_flags)
        return np.asarray((~answer_flags if is_negated else answer_flags).reshape(table_shape))
