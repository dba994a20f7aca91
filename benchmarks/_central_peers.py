"""What a user would pick instead, on the same folds: diffprivlib, DP-EBM and AIM of dpmm.

diffprivlib 0.6.6 needs scikit-learn 1.5 and dpmm NumPy 1, so each lives in an environment of its
own (.venv-peers/, made at first use). This file is both sides: :func:`run_peers` writes the folds
to a folder and starts itself over there, :func:`main` fits and prints one JSON line per fold.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PEERS_FOLDER = Path(__file__).resolve().parents[1] / ".venv-peers"
PACKAGES = {
    "dp": [
        *("diffprivlib==0.6.6", "scikit-learn==1.5.2", "interpret-core==0.7.3"),
        *("numpy<2.3", "pandas"),
    ],
    "aim": ["dpmm==0.1.9"],
}
"""What is installed into each environment; their pins exclude each other and ours."""
DELTA = 1e-6
"""Of the peers that need one: DP-EBM and AIM."""
AIM_BINS = 16
"""Equal-width bins of a number, for AIM."""
MIN_PROBABILITY = 1e-9
"""Floor of a probability in a log loss."""


def find_environment(name: str) -> Path | str:
    """The interpreter of an environment, installed at first use; why there is none otherwise."""
    python = PEERS_FOLDER / name / "bin" / "python"
    done = PEERS_FOLDER / name / ".done"
    if not done.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", PEERS_FOLDER / name], check=True)
            install = [str(python), "-m", "pip", "install", "-q", *PACKAGES[name]]
            subprocess.run(install, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            return f"{' '.join(PACKAGES[name])} cannot be installed here ({error})"
        done.touch()
    return python


def run_peers(
    environment: str,
    table: Any,
    epsilons: Sequence[float],
    folds: Sequence[tuple[Any, Any]],
    folder: Path,
    peers: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """Figures of every peer of an environment on every fold of a table.

    Parameters
    ----------
    environment : {"dp", "aim"}
    table : tuple of frame, classes and Schema
    epsilons : sequence of float
    folds : sequence of pairs of arrays
        Rows to train and to test on.
    folder : Path
        For the files in between.
    peers : sequence of str
        Only these; all of the environment if empty.
    """
    import numpy as np

    python = find_environment(environment)
    if isinstance(python, str):
        print(f"skipped: {python}", file=sys.stderr)
        return
    X, y, schema = table
    X.to_json(folder / "X.json", orient="split", double_precision=15)
    domains = [
        [feature.lower, feature.upper]
        if hasattr(feature, "lower")
        else [str(value) for value in feature.values]
        for feature in schema.features
    ]
    np.savez(
        folder / "folds.npz",
        y=np.searchsorted(np.unique(y), y),
        **{f"train{number}": train for number, (train, _) in enumerate(folds)},
        **{f"test{number}": test for number, (_, test) in enumerate(folds)},
    )
    request = {
        "environment": environment,
        "domains": domains,
        "is_numeric": [hasattr(feature, "lower") for feature in schema.features],
        "epsilons": list(epsilons),
        "folds": len(folds),
        "peers": list(peers),
    }
    (folder / "request.json").write_text(json.dumps(request))
    with subprocess.Popen(
        [str(python), __file__, str(folder)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if child.returncode:
        print(f"skipped: {environment} ended with {child.returncode}", file=sys.stderr)


def compute_figures(probability: Any, codes: Any) -> dict[str, float]:
    """Accuracy, log loss and AUC (one against the others, by frequency) of class probabilities."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    probability = np.clip(np.asarray(probability, dtype=float), MIN_PROBABILITY, 1.0)
    probability /= probability.sum(axis=1, keepdims=True)
    rows, classes = np.arange(len(codes)), np.unique(codes)
    ranked = probability[:, 1] if probability.shape[1] == 2 else probability[:, classes]
    if probability.shape[1] > 2:
        ranked = ranked / ranked.sum(axis=1, keepdims=True)
    auc = math.nan
    if len(classes) > 1:
        auc = roc_auc_score(codes, ranked, multi_class="ovr", average="weighted")
    return {
        "accuracy": float(np.mean(probability.argmax(axis=1) == codes)),
        "log_loss": float(-np.log(probability[rows, codes]).mean()),
        "auc": float(auc),
    }


def _encode(frame: Any, request: Any) -> Any:
    """Numbers on [0, 1], categories one-hot."""
    import numpy as np

    parts = []
    for name, domain, is_numeric in zip(
        frame, request["domains"], request["is_numeric"], strict=True
    ):
        if is_numeric:
            column = np.nan_to_num(frame[name].to_numpy(float), nan=domain[0])
            parts.append(((column - domain[0]) / (domain[1] - domain[0]))[:, None])
        else:
            text = frame[name].fillna("missing").astype(str).to_numpy()
            parts.append((text[:, None] == np.array(domain)).astype(float))
    return np.hstack(parts)


def _list_diffprivlib(request: Any, frame: Any, classes: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, table and how to make it, of the classifiers of the environment "dp"."""
    import numpy as np
    from diffprivlib.models import GaussianNB, LogisticRegression, RandomForestClassifier
    from interpret.privacy import DPExplainableBoostingClassifier

    X, norm = _encode(frame, request), math.sqrt(len(request["domains"]))
    bounds = (np.zeros(X.shape[1]), np.ones(X.shape[1]))
    if all(request["is_numeric"]):
        yield (
            "diffprivlib NB",
            X,
            lambda epsilon, seed: GaussianNB(epsilon=epsilon, bounds=bounds, random_state=seed),
        )
    yield (
        "DP logistic",
        X,
        lambda epsilon, seed: LogisticRegression(
            epsilon=epsilon, data_norm=norm, random_state=seed
        ),
    )
    yield (
        "DP forest",
        X,
        lambda epsilon, seed: RandomForestClassifier(
            epsilon=epsilon, bounds=bounds, classes=classes, random_state=seed
        ),
    )
    if len(classes) == 2:  # categories as they are, numbers with their public bounds
        columns = {
            name: frame[name].fillna(domain[0])
            if is_numeric
            else frame[name].fillna("missing").astype(str)
            for name, domain, is_numeric in zip(
                frame, request["domains"], request["is_numeric"], strict=True
            )
        }
        kinds = ["continuous" if is_numeric else "nominal" for is_numeric in request["is_numeric"]]
        known = {
            number: tuple(domain)
            for number, (domain, is_numeric) in enumerate(
                zip(request["domains"], request["is_numeric"], strict=True)
            )
            if is_numeric
        }
        raw = type(frame)(columns).to_numpy(object)
        yield (
            "DP-EBM",
            raw,
            lambda epsilon, seed: DPExplainableBoostingClassifier(
                feature_types=kinds,
                epsilon=epsilon,
                delta=DELTA,
                privacy_bounds=known,
                random_state=seed,
                n_jobs=1,
            ),
        )


class _AimClassifier:
    """Boosted trees on as many synthetic rows as AIM was given, in public cells."""

    def __init__(self, epsilon: float, seed: int, sizes: Sequence[int]) -> None:
        self.epsilon, self.seed, self.sizes = epsilon, seed, sizes

    def fit(self, X: Any, codes: Any) -> _AimClassifier:
        import numpy as np
        import pandas as pd
        from dpmm.models.aim import AIMGM
        from sklearn.ensemble import HistGradientBoostingClassifier

        names = [f"x{number}" for number in range(X.shape[1])]
        table = pd.DataFrame(X, columns=names).assign(y=codes)
        self.classes_ = np.arange(self.sizes[-1])
        model = AIMGM(epsilon=self.epsilon, delta=DELTA, n_jobs=1)
        model.set_random_state(np.random.RandomState(self.seed))
        model.set_domain(dict(zip([*names, "y"], self.sizes, strict=True)))
        model.fit(table)
        rows = model.generate(n_records=len(table))
        self.trees = HistGradientBoostingClassifier(random_state=self.seed)
        self.trees.fit(rows[names].to_numpy(), rows["y"].to_numpy())
        return self

    def predict_proba(self, X: Any) -> Any:
        import numpy as np

        probability = np.zeros((len(X), len(self.classes_)))
        probability[:, self.trees.classes_.astype(int)] = self.trees.predict_proba(X)
        return probability


def _list_aim(request: Any, frame: Any, classes: Any) -> Iterator[tuple[str, Any, Any]]:
    """AIM on public cells: its own binning is not used, so that nothing is spent on it."""
    import numpy as np

    columns, sizes = [], []
    for name, domain, is_numeric in zip(
        frame, request["domains"], request["is_numeric"], strict=True
    ):
        if is_numeric:
            share = (frame[name].to_numpy(float) - domain[0]) / (domain[1] - domain[0])
            column = np.clip(np.floor(share * AIM_BINS), 0, AIM_BINS - 1)
            column = np.where(np.isnan(share), AIM_BINS, column)
            sizes.append(AIM_BINS + 1)
        else:
            positions = {value: position for position, value in enumerate(domain)}
            texts = frame[name].fillna("missing").astype(str)
            column = np.array([positions.get(text, len(domain)) for text in texts])
            sizes.append(len(domain) + 1)
        columns.append(column.astype(int))
    sizes.append(len(classes))
    yield (
        "AIM + trees",
        np.array(columns).T,
        lambda epsilon, seed: _AimClassifier(epsilon, seed, sizes),
    )


def main(folder: Path) -> None:
    """Fit every peer of this environment on every fold, and print its figures."""
    import numpy as np
    import pandas as pd

    warnings.simplefilter("ignore")
    request = json.loads((folder / "request.json").read_text())
    frame = pd.read_json(folder / "X.json", orient="split", dtype=False, convert_dates=False)
    saved = np.load(folder / "folds.npz")
    codes, classes = saved["y"], np.unique(saved["y"])
    list_classifiers = {"dp": _list_diffprivlib, "aim": _list_aim}[request["environment"]]
    for peer, X, make_classifier in list_classifiers(request, frame, classes):
        if request["peers"] and peer not in request["peers"]:
            continue
        for epsilon in request["epsilons"]:
            for number in range(request["folds"]):
                train, test = saved[f"train{number}"], saved[f"test{number}"]
                started = time.process_time()
                fitted = make_classifier(epsilon, number).fit(X[train], codes[train])
                seconds = time.process_time() - started
                figures = compute_figures(fitted.predict_proba(X[test]), codes[test])
                figures |= {"peer": peer, "epsilon": epsilon, "fold": number, "seconds": seconds}
                print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
