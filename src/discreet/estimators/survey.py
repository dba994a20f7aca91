"""Naive Bayes from a randomized-response survey: each record is simulated as one respondent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.collection.simulation import simulate_tally
from discreet.errors import PrivacyError, SchemaError
from discreet.estimation import Postprocess
from discreet.estimators.base import CheckedParams, TrainingRows
from discreet.estimators.columns import ColumnKind
from discreet.estimators.parameters import (
    BINS_RULE,
    BUDGET_RULE,
    COMMON_RULES,
    POSTPROCESS_RULE,
    RANDOM_STATE_RULE,
    SHUFFLE_RULES,
    ParamRule,
    make_choice_rule,
)
from discreet.estimators.private import (
    SIMULATION_ASSUMPTION,
    ChargeCallback,
    PrivateEstimator,
    check_bins,
    require_two_classes,
    with_simulation_assumption,
)
from discreet.mechanisms.laws import parse_rational, reduce_weights
from discreet.privacy.shuffling import Shuffle
from discreet.randomness import as_random
from discreet.schema.cells import is_missing
from discreet.schema.schema import Schema
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Statistics
from discreet.survey.inversion import estimate_statistics
from discreet.survey.questionnaire import PersonalLaw, Questionnaire

__all__ = ["SurveyNB"]


def _parse_thetas(value: Any) -> Fraction | list[Fraction]:
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str) and np.ndim(value):
        return [_parse_theta(entry) for entry in value]
    return _parse_theta(value)


def _parse_theta(value: Any) -> Fraction:
    theta = parse_rational("theta", str(value) if isinstance(value, np.number) else value)
    if not 0 <= theta <= 1:
        raise ValueError
    return theta


def _parse_groups(value: Any) -> list[list[str | int]] | str | None:
    if value is None or (isinstance(value, str) and value == "each"):
        return value
    if any(
        isinstance(group_entry, (str, Set)) for group_entry in (value, *value)
    ):  # a set has no order
        raise ValueError
    return [[_parse_member(member) for member in group] for group in value]


def _parse_member(member: Any) -> str | int:
    if isinstance(member, str):
        return member
    if isinstance(member, (int, np.integer)) and not isinstance(member, bool):
        return int(member)
    raise ValueError


def _parse_personal(value: Any) -> Any:
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    return make_choice_rule("uniform").parse_value(value)


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
        those is stronger than the sheet's own (:mod:`discreet.privacy.shuffling`).
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
    >>> from discreet.datasets import make_mortgage
    >>> people = make_mortgage(5000)
    >>> nb = SurveyNB(theta=0.6, schema=people.schema, random_state=0).fit(people.X, people.y)
    >>> nb.guarantee_.simulated, bool(nb.score(people.X, people.y) > 0.7)
    (True, True)
    """

    _param_rules: ClassVar[Mapping[str, ParamRule]] = {
        "theta": ParamRule(
            "a number that is a probability, such as 0.7 or '7/10', or a list with one for each "
            "group",
            _parse_thetas,
            PrivacyError,
        ),
        "model": make_choice_rule("unrelated", "related"),
        "groups": ParamRule(
            "None for one group, 'each' for one group per question, or lists of names",
            _parse_groups,
        ),
        "personal": ParamRule(
            "'uniform', or the weights of the answers by name: a simulation has no answers of the "
            "respondents' own",
            _parse_personal,
        ),
        **SHUFFLE_RULES,
        "bins": BINS_RULE,
        "postprocess": POSTPROCESS_RULE,
        "budget": BUDGET_RULE,
        **COMMON_RULES,
        "random_state": RANDOM_STATE_RULE,
    }
    _partial_fit_refusal = (
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

    def _compute_release(
        self, training_rows: TrainingRows, params: CheckedParams, charge: ChargeCallback
    ) -> Statistics:
        return replace(
            self._estimate_statistics(training_rows, params, charge),
            scoring=Scoring(params["postprocess"]),
        )

    def _estimate_statistics(
        self, training_rows: TrainingRows, params: CheckedParams, charge: ChargeCallback
    ) -> Statistics:
        schema = training_rows.schema
        if not self._is_exact:
            require_two_classes(schema)
        check_bins(params, schema)
        questionnaire = _make_questionnaire(schema, params)
        if params["shuffled"]:
            shuffle = Shuffle.from_blanket(
                questionnaire.blanket, params["delta"], len(training_rows.class_codes)
            )
            questionnaire = replace(questionnaire, shuffled=shuffle)
        self.questionnaire_ = questionnaire
        answer_columns = [
            questionnaire.cells[feature_name].encode_column(training_rows.columns[feature_name])
            for feature_name in schema.names
        ]
        answers = np.column_stack([*answer_columns, training_rows.class_codes]).astype(np.int64)
        guarantee = with_simulation_assumption(questionnaire.guarantee, SIMULATION_ASSUMPTION)
        charge(guarantee)
        tally = simulate_tally(questionnaire, answers, as_random(params["random_state"]))
        return estimate_statistics(tally, guarantee)

    def _infer_schema(
        self,
        columns: Mapping[str, Any],
        kinds: list[ColumnKind],
        classes: NDArray[Any],
        params: CheckedParams,
    ) -> Schema:
        schema = super()._infer_schema(columns, kinds, classes, params)
        is_related = params["model"] == "related"  # yes or no, without room for "missing"
        return _mark_required_features(schema, columns) if is_related else schema

    @property
    def _is_exact(self) -> bool:
        """Whether theta is 1 for all groups, so that every answer is true."""
        try:
            thetas = _parse_thetas(self.theta)
        except (TypeError, ValueError):
            return False
        return all(theta == 1 for theta in (thetas if isinstance(thetas, list) else [thetas]))


def _make_questionnaire(schema: Schema, params: CheckedParams) -> Questionnaire:
    personal_laws: list[PersonalLaw] = []
    if isinstance(params["personal"], Mapping):
        personal_laws = [
            PersonalLaw((question_name,), reduce_weights(question_name, answer_weights))
            for question_name, answer_weights in params["personal"].items()
        ]
    question_groups = _resolve_groups(schema, params["groups"])
    return Questionnaire.from_schema(
        schema, params["theta"], question_groups, params["model"], params["bins"], personal_laws
    )


def _resolve_groups(schema: Schema, groups: Any) -> list[list[str]] | None:
    """Resolve groups to question names; the class joins the first group unless one names it."""
    if groups is None:
        return None
    if groups == "each":
        return [[question_name] for question_name in (*schema.names, schema.target)]
    group_members = [[_resolve_name(schema, member) for member in group] for group in groups]
    if group_members and not any(schema.target in group for group in group_members):
        group_members[0].append(schema.target)
    return group_members


def _resolve_name(schema: Schema, name_or_index: str | int) -> str:
    if isinstance(name_or_index, str):
        return name_or_index
    if not 0 <= name_or_index < len(schema.names):
        raise SchemaError(
            f"groups name the column {name_or_index}, and there are {len(schema.names)}; write an "
            f"index from 0 to {len(schema.names) - 1}, or a name"
        )
    return schema.names[name_or_index]


def _mark_required_features(schema: Schema, columns: Mapping[str, Any]) -> Schema:
    """The schema with each feature optional only if a value of its column is missing."""
    features = []
    for feature in schema.features:
        values = np.asarray(columns[feature.name], dtype=object)
        is_optional = any(is_missing(value, schema.missing_tokens) for value in values)
        features.append(replace(feature, optional=is_optional))
    return replace(schema, features=tuple(features))
