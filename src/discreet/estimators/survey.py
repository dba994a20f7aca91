"""Naive Bayes from a randomized-response survey: each record is simulated as one respondent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.collection.simulation import simulate
from discreet.encoding import is_missing
from discreet.errors import PrivacyError, SchemaError
from discreet.estimation import Postprocess
from discreet.estimators.base import Given, Rows
from discreet.estimators.columns import ColumnKind
from discreet.estimators.parameters import (
    BINS,
    BUDGET,
    COMMON,
    POSTPROCESS,
    RANDOM,
    Rule,
    flag,
    number,
    one_of,
)
from discreet.estimators.private import Pay, PrivateEstimator, check_bins, kept, two_classes
from discreet.mechanisms.laws import rational
from discreet.randomness import as_random
from discreet.schema import Schema
from discreet.scoring import Scoring
from discreet.shuffling import Shuffle
from discreet.statistics import Statistics
from discreet.survey.files import whole_weights
from discreet.survey.inversion import statistics_of
from discreet.survey.questionnaire import PersonalLaw, Questionnaire

__all__ = ["SurveyNB"]

RESTS = "each record is randomized on its owner's device; here one process simulates them"


def _thetas(value: Any) -> Fraction | list[Fraction]:
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str) and np.ndim(value):
        return [_theta(one) for one in value]
    return _theta(value)


def _theta(value: Any) -> Fraction:
    theta = rational("theta", str(value) if isinstance(value, np.number) else value)
    if not 0 <= theta <= 1:
        raise ValueError
    return theta


def _groups(value: Any) -> list[list[str | int]] | str | None:
    if value is None or (isinstance(value, str) and value == "each"):
        return value
    if any(isinstance(part, (str, Set)) for part in (value, *value)):  # a set has no order
        raise ValueError
    return [[_member(one) for one in group] for group in value]


def _member(one: Any) -> str | int:
    if isinstance(one, str):
        return one
    if isinstance(one, (int, np.integer)) and not isinstance(one, bool):
        return int(one)
    raise ValueError


def _personal(value: Any) -> Any:
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    return one_of("uniform").read(value)


class SurveyNB(PrivateEstimator):
    """Naive Bayes from one randomized answer sheet per person; ``fit`` simulates the respondents.

    Real surveys use :mod:`discreet.survey`; this estimator does the same to a table, so that
    questionnaires can be compared before anyone is asked.

    Parameters
    ----------
    theta : float, str, Fraction or sequence of these, default 0.7
        Probability that the true answers of a group are sent; one for each group, or one for all.
        At 1 it is the exact classifier and protects nobody.
    model : {"unrelated", "related"}
        Personal answers in place of the truth, or its complement (Warner; yes/no columns only).
    groups : None, "each", or sequence of sequences of names or column numbers
        What is randomized together: everything, nothing, or these. The class is in the first group
        unless one names it.
    personal : "uniform", or mapping of name to weights
        Public law of the personal answers; columns that are not named have a uniform one.
    shuffled : bool, default False
        Whether an anonymiser shuffles the sheets: then the promise against everyone who sees only
        those is stronger than the sheet's own (:mod:`discreet.shuffling`).
    delta : float, default 1e-8
        Of shuffled sheets; not used otherwise.
    bins : int or mapping, default 8
        How numeric columns are cut.
    postprocess : {"none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"}, optional
        "bayes" if not given, and "none" where nothing is noisy.
    budget : Ledger, MemoryLedger or path, optional
        Where every fit is charged before noise is drawn, and refused if it would be overdrawn.
        Clones share it. Left out, fits of rows that were fitted before in this process warn.
    schema : Schema, path or mapping, optional
        What is public. Left out, it is taken from the data, with a warning and without protection.
    categorical_features, missing, unseen
        As in :class:`~discreet.MixedNB`; only used where there is no schema.
    random_state : None, int, numpy Generator or Random
        None draws from the cryptographic source; a seed ends the promise.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes of the schema, in the type of y, sorted.
    class_count_ : array of shape (n_classes,)
        Estimates.
    class_prior_ : array of shape (n_classes,)
        P(class) of the model.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; only for tables with text names.
    schema_ : Schema
        As given, or as taken from the data.
    questionnaire_ : Questionnaire
        What every respondent was asked.
    statistics_ : Statistics
        Unbiased estimates with variances.
    model_ : NaiveBayesModel
        What predicts; can be saved as JSON without scikit-learn.
    guarantee_ : Guarantee
        Promised to every respondent, for the whole sheet.

    See Also
    --------
    LocalNB : Asks each person one question, with the whole epsilon.
    discreet.survey.questionnaire.Questionnaire : For real surveys.

    Notes
    -----
    Epsilon follows from theta, the groups and the number of answers: see
    ``questionnaire_.guarantee``. Every person sends one sheet, so there is no ``sample_weight``,
    and no ``partial_fit``.

    Examples
    --------
    >>> from discreet import SurveyNB
    >>> from discreet.datasets import mortgage
    >>> people = mortgage(5000)
    >>> nb = SurveyNB(theta=0.6, schema=people.schema, random_state=0).fit(people.X, people.y)
    >>> nb.guarantee_.simulated, bool(nb.score(people.X, people.y) > 0.7)
    (True, True)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "theta": Rule(
            "a number that is a probability, such as 0.7 or '7/10', or a list with one for each "
            "group",
            _thetas,
            PrivacyError,
        ),
        "model": one_of("unrelated", "related"),
        "groups": Rule(
            "None for one group, 'each' for one group per question, or lists of names", _groups
        ),
        "personal": Rule(
            "'uniform', or the weights of the answers by name: a simulation has no answers of the "
            "respondents' own",
            _personal,
        ),
        "shuffled": flag(),
        "delta": number("a number between 0 and 1", lambda delta: 0 < delta < 1, PrivacyError),
        "bins": BINS,
        "postprocess": POSTPROCESS,
        "budget": BUDGET,
        **COMMON,
        "random_state": RANDOM,
    }
    _once = (
        "a second call would ask the same people again and add to what they revealed. Fit once, or "
        "collect with discreet.survey, where tallies of further people are added"
    )

    def __init__(
        self,
        theta: Any = 0.7,
        *,
        model: Literal["unrelated", "related"] = "unrelated",
        groups: Any = None,
        personal: Any = "uniform",
        shuffled: bool = False,
        delta: float = 1e-8,
        bins: Any = 8,
        postprocess: Postprocess | None = None,
        budget: Any = None,
        schema: Any = None,
        categorical_features: Any = "from_dtype",
        missing: Literal["skip", "category"] = "skip",
        unseen: Literal["error", "other"] = "error",
        random_state: Any = None,
    ) -> None:
        self.theta = theta
        self.model = model
        self.groups = groups
        self.personal = personal
        self.shuffled = shuffled
        self.delta = delta
        self.bins = bins
        self.postprocess = postprocess
        self.budget = budget
        self.schema = schema
        self.categorical_features = categorical_features
        self.missing = missing
        self.unseen = unseen
        self.random_state = random_state

    def _train(self, rows: Rows, given: Given, pay: Pay) -> Statistics:
        return replace(self._statistics(rows, given, pay), scoring=Scoring(given["postprocess"]))

    def _statistics(self, rows: Rows, given: Given, pay: Pay) -> Statistics:
        schema = rows.schema
        if not self._exact:
            two_classes(schema)
        check_bins(given, schema)
        questionnaire = _questionnaire(schema, given)
        if given["shuffled"]:
            shuffle = Shuffle.of(questionnaire.blanket, given["delta"], len(rows.codes))
            questionnaire = replace(questionnaire, shuffled=shuffle)
        self.questionnaire_ = questionnaire
        cells = [questionnaire.cells[n].column(rows.columns[n]) for n in schema.names]
        answers = np.column_stack([*cells, rows.codes]).astype(np.int64)
        promise = kept(questionnaire.guarantee, RESTS)
        pay(promise)
        tally = simulate(questionnaire, answers, as_random(given["random_state"]))
        return statistics_of(tally, promise)

    def _described(
        self,
        columns: Mapping[str, Any],
        kinds: list[ColumnKind],
        classes: NDArray[Any],
        given: Given,
    ) -> Schema:
        schema = super()._described(columns, kinds, classes, given)
        related = given["model"] == "related"  # yes or no, without room for "missing"
        return _whole(schema, columns) if related else schema

    @property
    def _exact(self) -> bool:
        """Whether theta is 1 for all groups, so that every answer is true."""
        try:
            thetas = _thetas(self.theta)
        except (TypeError, ValueError):
            return False
        return all(theta == 1 for theta in (thetas if isinstance(thetas, list) else [thetas]))


def _questionnaire(schema: Schema, given: Given) -> Questionnaire:
    laws: list[PersonalLaw] = []
    if isinstance(given["personal"], Mapping):
        laws = [PersonalLaw((n,), whole_weights(n, w)) for n, w in given["personal"].items()]
    groups = _named(schema, given["groups"])
    return Questionnaire.of(schema, given["theta"], groups, given["model"], given["bins"], laws)


def _named(schema: Schema, groups: Any) -> list[list[str]] | None:
    """Resolve groups to question names; the class joins the first group unless one names it."""
    if groups is None:
        return None
    if groups == "each":
        return [[name] for name in (*schema.names, schema.target)]
    members = [[_name(schema, one) for one in group] for group in groups]
    if members and not any(schema.target in group for group in members):
        members[0].append(schema.target)
    return members


def _name(schema: Schema, one: str | int) -> str:
    if isinstance(one, str):
        return one
    if not 0 <= one < len(schema.names):
        raise SchemaError(
            f"groups name the column {one}, and there are {len(schema.names)}; write an index from "
            f"0 to {len(schema.names) - 1}, or a name"
        )
    return schema.names[one]


def _whole(schema: Schema, columns: Mapping[str, Any]) -> Schema:
    """The schema with each feature optional only if a value of its column is missing."""
    features = []
    for feature in schema.features:
        values = np.asarray(columns[feature.name], dtype=object)
        optional = any(is_missing(value, schema.missing_tokens) for value in values)
        features.append(replace(feature, optional=optional))
    return replace(schema, features=tuple(features))
