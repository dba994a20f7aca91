"""The classifier of a randomized-response survey: every record is a respondent of its own.

>>> from discreet import SurveyNB
>>> from discreet.datasets import mortgage
>>> people = mortgage(5000)
>>> nb = SurveyNB(theta=0.6, schema=people.schema, random_state=0).fit(people.X, people.y)
>>> nb.guarantee_.simulated, bool(nb.score(people.X, people.y) > 0.7)
(True, True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from discreet.encoding import Bins, is_missing
from discreet.errors import SchemaError
from discreet.estimation import Postprocess, estimate
from discreet.estimators.inferred import PrivateEstimator
from discreet.mechanisms.laws import rational
from discreet.privacy import Guarantee
from discreet.randomness import as_random
from discreet.randomness.samplers import Random
from discreet.schema import Schema
from discreet.survey.files import whole_weights
from discreet.survey.inversion import statistics_of
from discreet.survey.questionnaire import PersonalLaw, Questionnaire
from discreet.survey.simulation import simulate

__all__ = ["SurveyNB"]


class SurveyNB(PrivateEstimator):
    """Naive Bayes from one randomized answer sheet a person; fitting simulates the respondents.

    Real surveys use :mod:`discreet.survey`; this estimator does the same to a table, so that
    questionnaires can be compared before anyone is asked.

    Parameters
    ----------
    theta : float or sequence of float, default 0.7
        Probability that the true answers of a group are sent; one a group, or one for all. At 1
        it is the exact classifier and protects nobody.
    model : {"unrelated", "related"}
        Personal answers in place of the truth, or its complement (Warner; yes/no columns only).
    groups : None, "each", or sequence of sequences of names or column numbers
        What is randomized together: everything, nothing, or these. The class is in the first group
        unless one names it.
    personal : "uniform", or mapping of name to weights
        Public law of the personal answers; columns that are not named have a uniform one.
    bins : int or mapping, default 8
        How numeric columns are cut.
    postprocess : {"none", "paper", "norm-sub", "norm-cut", "bayes"}, optional
        "bayes" if not given, and "none" where nothing is noisy.
    schema : Schema, optional
        What is public. Left out, it is taken from the data, with a warning and without protection.
    categorical_features, missing, unseen
        As in :class:`~discreet.MixedNB`, where there is no schema.
    random_state : None, int, numpy Generator or Random
        None draws from the cryptographic source; a seed ends the promise.

    Attributes
    ----------
    classes_, class_count_, class_prior_, n_features_in_, feature_names_in_
        As usual; counts are estimates.
    schema_ : Schema
    questionnaire_ : Questionnaire
    statistics_ : Statistics
        Unbiased estimates with variances.
    model_ : NaiveBayesModel
    guarantee_ : Guarantee
    """

    def __init__(
        self,
        theta: Any = 0.7,
        *,
        model: Literal["unrelated", "related"] = "unrelated",
        groups: Any = None,
        personal: Any = "uniform",
        bins: Any = 8,
        postprocess: Postprocess | None = None,
        schema: Schema | None = None,
        categorical_features: Any = "from_dtype",
        missing: Literal["skip", "category"] = "skip",
        unseen: Literal["error", "other"] = "error",
        random_state: Any = None,
    ) -> None:
        self.theta = theta
        self.model = model
        self.groups = groups
        self.personal = personal
        self.bins = bins
        self.postprocess = postprocess
        self.schema = schema
        self.categorical_features = categorical_features
        self.missing = missing
        self.unseen = unseen
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Let every record send its randomized sheet, tally the sheets and learn from the tally.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        """
        X = self._read_rows(X, reset=True)
        y = self._read_classes(X, y)
        schema, columns, codes = self._public(X, y, not self._open)
        if self.schema is None and self.model == "related":  # no room for "missing"
            schema = _whole(schema, columns)
        if len(schema.classes) < 2 and not self._open:
            raise SchemaError(
                "there is only one class, so there is nothing to ask anyone; name all classes in "
                "the schema"
            )
        self.schema_ = schema
        self.questionnaire_ = self._questionnaire(schema)
        random = as_random(self.random_state)
        cells = [self.questionnaire_.cells[n].column(columns[n]) for n in schema.names]
        answers = np.column_stack([*cells, codes]).astype(np.int64)
        tally = simulate(self.questionnaire_, answers, random)
        self.statistics_ = statistics_of(tally, self._promise(random))
        self.model_ = estimate(self.statistics_, self.postprocess)
        self.class_count_ = np.asarray(self.statistics_.totals, dtype=float)
        self.class_prior_ = np.exp(self.model_.log_prior)
        self.guarantee_: Guarantee = self.model_.guarantee
        return self

    @property
    def _open(self) -> bool:
        """Whether everybody sends the truth."""
        several = isinstance(self.theta, (Sequence, np.ndarray)) and not isinstance(self.theta, str)
        return all(rational("theta", t) == 1 for t in (self.theta if several else [self.theta]))

    def _questionnaire(self, schema: Schema) -> Questionnaire:
        bins: Bins = self.bins
        laws: list[PersonalLaw] = []
        if isinstance(self.personal, Mapping):
            laws = [PersonalLaw((n,), whole_weights(n, w)) for n, w in self.personal.items()]
        elif self.personal != "uniform":
            raise SchemaError(
                f"personal={self.personal!r}; write 'uniform', or the weights of the answers by "
                "name: a simulation has no answers of the respondents' own"
            )
        return Questionnaire.of(schema, self.theta, self._groups(schema), self.model, bins, laws)

    def _groups(self, schema: Schema) -> list[list[str]] | None:
        if self.groups is None:
            return None
        if isinstance(self.groups, str):
            if self.groups != "each":
                raise SchemaError(
                    f"groups={self.groups!r}; write None for one group, 'each' for as many as "
                    "questions, or lists of names"
                )
            return [[name] for name in (*schema.names, schema.target)]
        members = [[_name(schema, one) for one in group] for group in self.groups]
        if members and not any(schema.target in group for group in members):
            members[0].append(schema.target)
        return members

    def _promise(self, random: Random) -> Guarantee:
        stated = self.questionnaire_.guarantee
        rests = "each record is randomized on its owner's device; here whoever fits plays them all"
        promise = replace(stated, assumptions=(rests, *stated.assumptions))
        return promise.in_simulation() if random.simulated else promise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not self._open and self.random_state is None
        return tags


def _name(schema: Schema, one: Any) -> str:
    if isinstance(one, (int, np.integer)) and not isinstance(one, bool):
        if not 0 <= one < len(schema.names):
            raise SchemaError(f"groups name the column {one}; there are {len(schema.names)}")
        return schema.names[int(one)]
    return str(one)


def _whole(schema: Schema, columns: Mapping[str, Any]) -> Schema:
    """The schema with features that are not optional where nothing is missing."""
    features = []
    for feature in schema.features:
        values = np.asarray(columns[feature.name], dtype=object)
        optional = any(is_missing(value, schema.missing_tokens) for value in values)
        features.append(replace(feature, optional=optional) if not optional else feature)
    return Schema(
        features,
        schema.target,
        schema.classes,
        schema.missing,
        schema.outliers,
        schema.unseen,
        schema.missing_tokens,
        schema.inferred,
    )
