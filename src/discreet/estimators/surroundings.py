"""Detects, from the call stack, which scikit-learn meta-estimator runs this fit.

A private estimator's guarantee covers the rows passed to it. If a Pipeline passes rows that a
transformer has changed by what it learnt from all of them (a mean, a list of categories, a
projection), one person changes every row, and the guarantee is void. If a search or a calibration
uses exact scores of the rows, its choice is not covered by epsilon, although the guarantee of every
single fit holds; then there is a warning.

Steps that run before ``fit`` is called, in other code or in another process, are not detected.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

from discreet.errors import PrivacyWarning

__all__ = ["callers", "inside", "learnt_before", "remarks", "warn"]

AROUND = ("discreet", "sklearn", "joblib", "threading", "concurrent", "multiprocessing")

CHOOSES = (
    "{name} compares exact scores of the rows: every fit keeps its promise, what is chosen by "
    "them is not covered by epsilon. Choose on public or synthetic rows instead"
)
CURVE = (
    "{name} learns from the rows again, without noise: what it adds to the private fits is not "
    "covered by epsilon. Give it public rows, or leave it out"
)
SEEDS = (
    "{name} sets random_state of its members, which ends their promise, and draws the same person "
    "several times; fit the members yourself, or use VotingClassifier"
)
BARE = (
    "{name} also fits {also}, without noise: what it learns is not covered by epsilon, and neither "
    "is what they predict together"
)
REMARKS = {
    "GridSearchCV": CHOOSES,
    "RandomizedSearchCV": CHOOSES,
    "HalvingGridSearchCV": CHOOSES,
    "HalvingRandomSearchCV": CHOOSES,
    "SequentialFeatureSelector": CHOOSES,
    "RFE": CHOOSES,
    "RFECV": CHOOSES,
    "CalibratedClassifierCV": CURVE,
    "TunedThresholdClassifierCV": CURVE,
    "BaggingClassifier": SEEDS,
}
"""Warning by the name of the scikit-learn class."""


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def callers() -> list[Any]:
    """Find the scikit-learn meta-estimators that called this fit, innermost first."""
    from sklearn.base import BaseEstimator

    found: dict[int, Any] = {}
    for frame in _frames():
        if _root(frame) == "sklearn":
            one = frame.f_locals.get("self")
            if isinstance(one, BaseEstimator) and type(one).__module__.startswith("sklearn."):
                found.setdefault(id(one), one)
    return list(found.values())


def inside() -> bool:
    """Whether scikit-learn called this fit, rather than user code."""
    return any(_root(frame) == "sklearn" for frame in _frames())


def warn(message: str, category: type[Warning] = PrivacyWarning) -> None:
    """Issue a warning at the user's line, skipping frames of scikit-learn and discreet."""
    level = 2
    for frame in _frames():
        if _root(frame) not in AROUND:
            break
        level += 1
    warnings.warn(message, category, stacklevel=level)


def remarks(around: list[Any], *, simulated: bool = False) -> list[str]:
    """List uses of the rows by meta-estimators that epsilon does not cover; each only once.

    Parameters
    ----------
    around : list of estimators
        From :func:`callers`.
    simulated : bool, default False
        Whether the fit is a simulation; then only the remark on what made it one is returned.
    """
    said: list[str] = []
    for one in around:
        found = _remark(one)
        if found and one not in _TOLD and (found.startswith("Bagging") or not simulated):
            _TOLD.add(one)
            said.append(found)
    return said


_TOLD: weakref.WeakSet[Any] = weakref.WeakSet()


def _remark(one: Any) -> str:
    name = type(one).__name__
    if name in REMARKS:
        return REMARKS[name].format(name=name)
    if name not in ("VotingClassifier", "StackingClassifier"):
        return ""
    members = [member for _, member in one.estimators]
    members += [one.final_estimator] if name == "StackingClassifier" else []
    also = ", ".join(dict.fromkeys(_name(m) for m in members if not _private(m)))
    return BARE.format(name=name, also=also) if also else ""


def _private(member: Any) -> bool:
    """Whether an estimator, or the last step of a pipeline, has a privacy guarantee."""
    from sklearn.pipeline import Pipeline

    from discreet.estimators.private import PrivateEstimator

    while isinstance(member, Pipeline):
        member = member.steps[-1][1]
    return isinstance(member, (PrivateEstimator, str))  # "drop"


def _name(member: Any) -> str:
    return "LogisticRegression" if member is None else type(member).__name__


def learnt_before(estimator: Any, around: list[Any]) -> str:
    """Explain why rows depend on other people's rows; an empty text if they do not.

    Parameters
    ----------
    estimator : PrivateEstimator
    around : list of estimators
        From :func:`callers`.
    """
    from sklearn.pipeline import Pipeline

    learning: list[str] = []
    for one in around:
        if isinstance(one, Pipeline):
            learning += [n for _, step in one.steps[:-1] for n in _learning(step)]
        elif getattr(one, "final_estimator_", None) is estimator:  # its rows are predictions
            learning += [_name(member) for member in one.estimators_ if not _private(member)]
    if not learning:
        return ""
    names = ", ".join(dict.fromkeys(learning))
    return (
        f"{names} learnt from the rows before this fit, without noise; fit it on public rows and "
        "freeze it (sklearn.frozen.FrozenEstimator), or write what is public into the schema"
    )


def _learning(transformer: Any) -> list[str]:
    """List the names of the transformers inside this one that learn from the rows."""
    from sklearn.compose import ColumnTransformer
    from sklearn.frozen import FrozenEstimator
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import FeatureUnion, Pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
    from sklearn.utils import get_tags

    if transformer is None or isinstance(transformer, (str, FrozenEstimator)):
        return []  # "passthrough", "drop"
    inner: list[Any] | None = None
    if isinstance(transformer, Pipeline):
        inner = [step for _, step in transformer.steps]
    elif isinstance(transformer, ColumnTransformer):
        inner = [step for _, step, _ in transformer.transformers] + [transformer.remainder]
    elif isinstance(transformer, FeatureUnion):
        inner = [step for _, step in transformer.transformer_list]
    if inner is not None:
        return [name for step in inner for name in _learning(step)]
    if isinstance(transformer, (OneHotEncoder, OrdinalEncoder)):
        told = not isinstance(transformer.categories, str)
        limits = transformer.min_frequency, transformer.max_categories
        if told and limits == (None, None) and getattr(transformer, "drop", None) is None:
            return []
    elif isinstance(transformer, SimpleImputer):
        if transformer.strategy == "constant" and transformer.add_indicator is False:
            return []
    elif isinstance(transformer, PolynomialFeatures) or not get_tags(transformer).requires_fit:
        return []
    return [type(transformer).__name__]
