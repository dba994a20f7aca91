"""Predicates: logical conditions over the answers of one person, as text or as a function.

>>> from discreet import Categorical, Schema
>>> from discreet.survey.questionnaire import Group, Questionnaire
>>> schema = Schema([Categorical("smokes", ["no", "yes"], optional=False)], "sick", ["no", "yes"])
>>> survey = Questionnaire.of(schema)
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

LARGEST = 1 << 22
"""Combinations of answers that a predicate may distinguish."""
DEEPEST = 100
"""Most parentheses nested inside each other."""

COMPARED = "=, !=, in (…) or not in (…)"
OPERATORS = f"answers are compared by {COMPARED} only: list the answers that you mean"
WANTED = {
    "word": "an answer or question",
    "quoted": "an answer or question",
    "open": "an opening parenthesis",
    "close": "a closing parenthesis",
    "comma": "a comma",
    "equals": "=",
    "differs": "!=",
    "end": "and, or, or its end",
}
WRITE = "write for example: smokes = yes and not (age = old or sick = yes)"

TOKEN = re.compile(
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
    def of(cls, questionnaire: Questionnaire, answers: Mapping[str, object]) -> Predicate:
        """A conjunction: each of these questions has this answer."""
        names = tuple(answers)
        sizes = _sizes(questionnaire, names)
        table = np.zeros(sizes, np.bool_)
        table[tuple(questionnaire.cells[n].index(answers[n]) for n in names)] = True
        return cls(names, table)

    @classmethod
    def where(
        cls, questionnaire: Questionnaire, names: Sequence[str], holds: Callable[..., bool]
    ) -> Predicate:
        """Any function of the answers' labels, called once for each combination."""
        sizes = _sizes(questionnaire, names)
        labels = [questionnaire.cells[name].labels for name in names]
        flags = [bool(holds(*some)) for some in itertools.product(*labels)]
        return cls(tuple(names), np.array(flags).reshape(sizes))

    @classmethod
    def parse(cls, questionnaire: Questionnaire, text: str) -> Predicate:
        """Read ``smokes = yes and (age != "18 to 30" or not region in (north, south))``.

        Names and answers with spaces or signs stand in quotes; ``missing`` in parentheses is
        ``"(missing)"``. ``not`` binds closer than ``and``, ``and`` closer than ``or``.
        """
        reader = _Reader(questionnaire, text)
        return cls(reader.names, np.asarray(reader.whole().copy()))


def _sizes(questionnaire: Questionnaire, names: Sequence[str]) -> tuple[int, ...]:
    for name in names:
        questionnaire.group_of(name)  # raises where there is no such question
    sizes = tuple(questionnaire.cells[name].size for name in names)
    if math.prod(sizes) > LARGEST:
        raise EstimationError(
            f"the predicate distinguishes {math.prod(sizes):,} combinations of answers, the "
            f"limit is {LARGEST:,}; ask about fewer questions at once"
        )
    return sizes


class _Reader:
    """Recursive descent; each rule returns a table that broadcasts over all questions named."""

    def __init__(self, questionnaire: Questionnaire, text: str) -> None:
        self.questionnaire, self.text, self.at, self.depth = questionnaire, text, 0, 0
        self.tokens = self._tokens()
        named = [
            value
            for (kind, value), (after, word) in itertools.pairwise(self.tokens)
            if kind in ("word", "quoted")
            and (after in ("equals", "differs") or word.lower() in ("in", "not"))
        ]
        self.names = tuple(dict.fromkeys(n for n in named if n in questionnaire.place))
        self.sizes = _sizes(questionnaire, self.names)

    def _tokens(self) -> list[tuple[str, str]]:
        found, place = [], 0
        text = self.text.rstrip()
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                raise SchemaError(
                    f"the predicate cannot be read at {text[place : place + 20].strip()!r}; "
                    f"{OPERATORS}; {WRITE}"
                )
            kind = str(match.lastgroup)
            value = match.group(kind)
            found.append(("quoted" if kind in ("double", "single") else kind, value))
            place = match.end()
        return [*found, ("end", "the end")]

    def take(self, *kinds: str) -> str:
        kind, value = self.tokens[self.at]
        if kind not in kinds:
            wanted = " or ".join(dict.fromkeys(WANTED.get(one, one) for one in kinds))
            found = "ends" if kind == "end" else f"has {value!r}"
            raise SchemaError(f"the predicate {found} where {wanted} is expected; {WRITE}")
        self.at += 1
        return value

    def keyword(self, word: str) -> bool:
        kind, value = self.tokens[self.at]
        if kind == "word" and value.lower() == word:
            self.at += 1
            return True
        return False

    def whole(self) -> Booleans:
        found = self.either()
        self.take("end")
        return np.broadcast_to(found, self.sizes)

    def either(self) -> Booleans:
        found = self.both()
        while self.keyword("or"):
            found = found | self.both()
        return found

    def both(self) -> Booleans:
        found = self.one()
        while self.keyword("and"):
            found = found & self.one()
        return found

    def one(self) -> Booleans:
        negated = False
        while self.keyword("not"):  # a loop: any number of them
            negated = not negated
        found = self.inner() if self.tokens[self.at][0] == "open" else self.comparison()
        return ~found if negated else found

    def inner(self) -> Booleans:
        """Parse an expression in parentheses."""
        self.take("open")
        self.depth += 1
        if self.depth > DEEPEST:
            raise SchemaError(
                f"the predicate has more than {DEEPEST} parentheses inside each other; write it "
                "with fewer"
            )
        found = self.either()
        self.take("close")
        self.depth -= 1
        return found

    def comparison(self) -> Booleans:
        name = self.take("word", "quoted")
        if name not in self.questionnaire.place:
            known = ", ".join(self.questionnaire.names)
            raise SchemaError(f"there is no question {name!r}; there are {known}")
        negated = self.keyword("not")
        if negated or self.tokens[self.at][1].lower() == "in":
            if not self.keyword("in"):
                raise SchemaError(f"after a question comes {COMPARED}; {WRITE}")
            self.take("open")
            answers = [self.take("word", "quoted")]
            while self.tokens[self.at][0] == "comma":
                self.take("comma")
                answers.append(self.take("word", "quoted"))
            self.take("close")
        else:
            negated = self.tokens[self.at][0] == "differs"
            self.take("equals", "differs")
            answers = [self.take("word", "quoted")]
        return self.table(name, answers, negated)

    def table(self, name: str, answers: Sequence[str], negated: bool) -> Booleans:
        labels = self.questionnaire.cells[name].labels
        flags = np.zeros(len(labels), np.bool_)
        for answer in answers:
            if answer not in labels:
                raise SchemaError(
                    f"{name}: {answer!r} is not one of its answers; write one of: "
                    f"{', '.join(labels)}"
                )
            flags[labels.index(answer)] = True
        shape = [1] * len(self.names)
        shape[self.names.index(name)] = len(flags)
        return np.asarray((~flags if negated else flags).reshape(shape))
