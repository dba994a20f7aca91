"""What runs on a respondent's device: one record in, one randomized report out, drawn once.

The report is written down before it leaves. Asking again returns the same report: repeating the
draw would let the collector average the noise away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Integers
from discreet.encoding import Cells, numbers_of
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.local.plan import Plan, Question
from discreet.local.report import Report
from discreet.local.store import FolderStore, MemoryStore, Store
from discreet.mechanisms.frequency import FrequencyOracle
from discreet.privacy import Guarantee
from discreet.randomness import Random, as_random
from discreet.schema import Categorical, Numeric

__all__ = ["FolderStore", "MemoryStore", "Respondent", "Store"]


class Respondent:
    """One person's side of a collection.

    Parameters
    ----------
    plan : Plan
    store : Store
        Where the report is kept before it leaves.
    group : int, optional
        The question assigned by the collector, in a plan with ``assignment="groups"``.
    random_state : None, int or Random
        None is the cryptographic source; anything else is simulation.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        group: int | None = None,
        random_state: int | Random | None = None,
    ) -> None:
        if plan.assignment == "groups" and group is None:
            raise SchemaError("this plan assigns questions: pass group=, the number you were given")
        if plan.assignment == "draw" and group is not None:
            raise SchemaError("in this plan respondents draw their question: leave out group=")
        if group is not None and not 0 <= group < len(plan.questions):
            raise SchemaError(f"group {group} is not one of the {len(plan.questions)} questions")
        self.plan, self.store, self.group = plan, store, group
        self._random = as_random(random_state)

    @property
    def guarantee(self) -> Guarantee:
        """What this person is promised."""
        return self.plan.guarantee.under(simulated=self._random.simulated)

    def report(self, record: Mapping[str, Any], *, again: bool = False) -> Report:
        """The report of this person; the same one however often it is asked for.

        Parameters
        ----------
        record : mapping
            Features and class. All of it is checked against the schema, one question is answered.
        again : bool, default False
            Make a further report, where the plan allows several per person.
        """
        kept = self.store.read(self.plan.digest)
        if kept and not again:
            return self._kept(kept[-1])
        if len(kept) >= self.plan.reports:
            raise PrivacyError(
                f"this person has already sent {len(kept)} of {self.plan.reports} reports; another "
                "one would cost more privacy than the plan promises"
            )
        made = self._make(record)
        if self.store.write(self.plan.digest, len(kept), made.to_json()):
            return made
        return self._kept(self.store.read(self.plan.digest)[len(kept)])

    def _kept(self, text: str) -> Report:
        try:
            report = Report.from_json(text)
            if report.plan != self.plan.digest:
                raise FormatError("it answers another plan")
        except FormatError as error:
            raise FormatError(
                f"the report kept on this device is damaged ({error}); it is not drawn again, "
                "because that would cost privacy twice"
            ) from None
        return report

    def _make(self, record: Mapping[str, Any]) -> Report:
        checked = check_record(self.plan, record)
        number = self.group
        if number is None:
            draw = self._random.integers(int(self.plan.bounds[-1]), 1)
            number = int(np.searchsorted(self.plan.bounds, draw[0], side="right"))
        question = self.plan.questions[number]
        value = answer(self.plan, question, checked, self._random)
        identity = self._random.raw(16).tobytes().hex()
        return Report(self.plan.digest, identity, number, value, self._random.simulated)


def check_record(plan: Plan, record: Mapping[str, Any]) -> dict[str, int | float]:
    """A whole record as cell indices and numbers, or an error that names what does not fit."""
    schema = plan.schema
    unknown = sorted(str(name) for name in record.keys() - {*schema.names, schema.target})
    if unknown:
        raise SchemaError(f"the record holds {', '.join(unknown)}, which no one asked for")
    if record.get(schema.target) is None:
        raise SchemaError(f"the record has no {schema.target}")
    target = Cells(Categorical(schema.target, schema.classes, optional=False))
    checked: dict[str, int | float] = {schema.target: target.index(record[schema.target])}
    for feature in schema.features:
        value = record.get(feature.name)
        if feature.name in plan.cells:
            checked[feature.name] = plan.cells[feature.name].index(value)
        elif isinstance(feature, Numeric):
            column = np.array([value], dtype=object)
            numbers = numbers_of(feature, column, schema.missing_tokens, schema.outliers)
            checked[feature.name] = float(numbers[0])
        else:
            checked[feature.name] = Cells.of(schema, feature.name).index(value)
    return checked


def answer(
    plan: Plan, question: Question, checked: Mapping[str, int | float], random: Random
) -> tuple[int, ...]:
    """The randomized answer of one checked record to one question."""
    c = np.array([checked[plan.schema.target]], dtype=np.int64)
    columns = {name: np.array([checked[name]]) for name in question.features}
    return tuple(int(v) for v in perturbed(plan, question, c, columns, random)[0])


def perturbed(
    plan: Plan,
    question: Question,
    classes: Integers,
    columns: Mapping[str, NDArray[Any]],
    random: Random,
) -> Integers:
    """Serialised answers of many records at once: what one device does, vectorised.

    ``columns`` holds cell indices for questions about cells and numbers for those about means.
    """
    mechanism = question.mechanism
    if isinstance(mechanism, FrequencyOracle):
        cell = classes
        for name, size in zip(question.features, plan.shape_of(question)[1:], strict=True):
            cell = cell * size + columns[name]
        return mechanism.encode(mechanism.perturb(cell, random))
    count = len(plan.schema.classes)
    vector = np.zeros((len(classes), len(question.features), count))
    rows = np.arange(len(classes))
    for j, name in enumerate(question.features):
        t = scaled(plan, name, columns[name])
        vector[rows, j, classes] = t if question.power == 1 else 2 * t * t - 1
    return mechanism.perturb(vector.reshape(len(classes), -1), random)


def scaled(plan: Plan, name: str, numbers: NDArray[Any]) -> Floats:
    """Numbers mapped from their public bounds to [-1, 1]; a missing one counts as the middle."""
    feature = plan.schema[name]
    assert isinstance(feature, Numeric)
    middle, half = (feature.upper + feature.lower) / 2, (feature.upper - feature.lower) / 2
    return np.clip(np.nan_to_num((np.asarray(numbers, float) - middle) / half, nan=0.0), -1, 1)
