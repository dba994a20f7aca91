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

__all__ = [
    "find_data_dependence",
    "find_meta_estimators",
    "is_called_by_sklearn",
    "list_remarks",
    "warn_user",
]

FRAMEWORK_MODULES = ("discreet", "sklearn", "joblib", "threading", "concurrent", "multiprocessing")

SELECTION_REMARK = (
    "{name} compares exact scores of the rows: every fit keeps its promise, what is chosen by "
    "them is not covered by epsilon. Choose on public or synthetic rows instead"
)
CALIBRATION_REMARK = (
    "{name} learns from the rows again, without noise: what it adds to the private fits is not "
    "covered by epsilon. Give it public rows, or leave it out"
)
BAGGING_REMARK = (
    "{name} sets random_state of its members, which ends their promise, and draws the same person "
    "several times; fit the members yourself, or use VotingClassifier"
)
ENSEMBLE_REMARK = (
    "{name} also fits {also}, without noise: what it learns is not covered by epsilon, and neither "
    "is what they predict together"
)
REMARKS_BY_CLASS = {
    "GridSearchCV": SELECTION_REMARK,
    "RandomizedSearchCV": SELECTION_REMARK,
    "HalvingGridSearchCV": SELECTION_REMARK,
    "HalvingRandomSearchCV": SELECTION_REMARK,
    "SequentialFeatureSelector": SELECTION_REMARK,
    "RFE": SELECTION_REMARK,
    "RFECV": SELECTION_REMARK,
    "CalibratedClassifierCV": CALIBRATION_REMARK,
    "TunedThresholdClassifierCV": CALIBRATION_REMARK,
    "BaggingClassifier": BAGGING_REMARK,
}
"""Warning by the name of the scikit-learn class."""


def _iter_frames() -> Iterator[tuple[str, FrameType]]:
    """Yield the package and the frame of every call on the stack, the innermost first."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield str(frame.f_globals.get("__name__", "")).partition(".")[0], frame
        frame = frame.f_back


def find_meta_estimators() -> list[Any]:
    """Find the scikit-learn meta-estimators that called this fit, innermost first."""
    from sklearn.base import BaseEstimator

    estimators_by_id: dict[int, Any] = {}
    for package, frame in _iter_frames():
        if package == "sklearn":
            candidate = frame.f_locals.get("self")
            if isinstance(candidate, BaseEstimator) and type(candidate).__module__.startswith(
                "sklearn."
            ):
                estimators_by_id.setdefault(id(candidate), candidate)
    return list(estimators_by_id.values())


def is_called_by_sklearn() -> bool:
    """Whether scikit-learn called this fit, rather than user code."""
    return any(package == "sklearn" for package, _ in _iter_frames())


def warn_user(message: str, category: type[Warning] = PrivacyWarning) -> None:
    """Issue a warning at the user's line, skipping frames of scikit-learn and discreet."""
    stack_level = 2
    for package, _ in _iter_frames():
        if package not in FRAMEWORK_MODULES:
            break
        stack_level += 1
    warnings.warn(message, category, stacklevel=stack_level)


def list_remarks(meta_estimators: list[Any], *, is_simulated: bool = False) -> list[str]:
    """List uses of the rows by meta-estimators that epsilon does not cover; each only once.

    Parameters
    ----------
    meta_estimators : list of estimators
        From :func:`find_meta_estimators`.
    is_simulated : bool, default False
        Whether the fit is a simulation; then only the remark on what made it one is returned.
    """
    new_remarks: list[str] = []
    for meta_estimator in meta_estimators:
        remark = _make_remark(meta_estimator)
        if (
            remark
            and meta_estimator not in _already_warned
            and (remark.startswith("Bagging") or not is_simulated)
        ):
            _already_warned.add(meta_estimator)
            new_remarks.append(remark)
    return new_remarks


_already_warned: weakref.WeakSet[Any] = weakref.WeakSet()


def _make_remark(meta_estimator: Any) -> str:
    class_name = type(meta_estimator).__name__
    if class_name in REMARKS_BY_CLASS:
        return REMARKS_BY_CLASS[class_name].format(name=class_name)
    if class_name not in ("VotingClassifier", "StackingClassifier"):
        return ""
    members = [member for _, member in meta_estimator.estimators]
    members += [meta_estimator.final_estimator] if class_name == "StackingClassifier" else []
    exact_members = ", ".join(
        dict.fromkeys(_get_class_name(member) for member in members if not _is_private(member))
    )
    return ENSEMBLE_REMARK.format(name=class_name, also=exact_members) if exact_members else ""


def _is_private(member: Any) -> bool:
    """Whether an estimator, or the last step of a pipeline, has a privacy guarantee."""
    from sklearn.pipeline import Pipeline

    from discreet.estimators.private import PrivateEstimator

    while isinstance(member, Pipeline):
        member = member.steps[-1][1]
    return isinstance(member, (PrivateEstimator, str))  # "drop"


def _get_class_name(member: Any) -> str:
    return "LogisticRegression" if member is None else type(member).__name__


def find_data_dependence(estimator: Any, meta_estimators: list[Any]) -> str:
    """Explain why rows depend on other people's rows; an empty text if they do not.

    Parameters
    ----------
    estimator : PrivateEstimator
    meta_estimators : list of estimators
        From :func:`find_meta_estimators`.
    """
    from sklearn.pipeline import Pipeline

    learning_names: list[str] = []
    for meta_estimator in meta_estimators:
        if isinstance(meta_estimator, Pipeline):
            learning_names += [
                class_name
                for _, step in meta_estimator.steps[:-1]
                for class_name in _list_learning_transformers(step)
            ]
        elif (
            getattr(meta_estimator, "final_estimator_", None) is estimator
        ):  # its rows are predictions
            learning_names += [
                _get_class_name(member)
                for member in meta_estimator.estimators_
                if not _is_private(member)
            ]
    if not learning_names:
        return ""
    names_text = ", ".join(dict.fromkeys(learning_names))
    return (
        f"{names_text} learnt from the rows before this fit, without noise; fit it on public rows "
        "and freeze it (sklearn.frozen.FrozenEstimator), or write what is public into the schema"
    )


def _list_learning_transformers(transformer: Any) -> list[str]:
    """List the names of the transformers inside this one that learn from the rows."""
    from sklearn.frozen import FrozenEstimator

    if transformer is None or isinstance(transformer, (str, FrozenEstimator)):
        return []  # "passthrough", "drop"
    inner_transformers = _list_inner_transformers(transformer)
    if inner_transformers is None:
        return [type(transformer).__name__] if _learns_from_rows(transformer) else []
    return [
        class_name
        for step in inner_transformers
        for class_name in _list_learning_transformers(step)
    ]


def _list_inner_transformers(transformer: Any) -> list[Any] | None:
    """List what a composition applies to the rows; None for a single transformer."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if isinstance(transformer, Pipeline):
        return [step for _, step in transformer.steps]
    if isinstance(transformer, ColumnTransformer):
        return [*(step for _, step, _ in transformer.transformers), transformer.remainder]
    if isinstance(transformer, FeatureUnion):
        return [step for _, step in transformer.transformer_list]
    return None


def _learns_from_rows(transformer: Any) -> bool:
    """Whether a single transformer is fitted to rows, rather than set by its parameters alone."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
    from sklearn.utils import get_tags

    if isinstance(transformer, (OneHotEncoder, OrdinalEncoder)):
        category_limits = transformer.min_frequency, transformer.max_categories
        return (
            isinstance(transformer.categories, str)  # "auto"
            or category_limits != (None, None)
            or getattr(transformer, "drop", None) is not None
        )
    if isinstance(transformer, SimpleImputer):
        return transformer.strategy != "constant" or transformer.add_indicator is not False
    if isinstance(transformer, PolynomialFeatures):
        return False
    return bool(get_tags(transformer).requires_fit)
