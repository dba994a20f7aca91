"""What a user would pick instead, on the same folds: diffprivlib and InterpretML's DP-EBM.

diffprivlib 0.6.6 needs scikit-learn 1.5, so it lives in an environment of its own. This file is
both sides: :func:`run` writes the folds to a folder and starts itself over there.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1] / ".venv-peers" / "dp"
PACKAGES = ["diffprivlib==0.6.6", "scikit-learn==1.5.2", "interpret-core", "numpy<2.3", "pandas"]
PACKAGES += ["pyarrow"]


def run(
    names: Any, epsilons: Any, where: Path, rows_of: Any, folds: Any, most: int, repeats: Any
) -> Any:
    """Accuracy of every peer on every fold, by (peer, table, epsilon)."""
    import numpy as np

    python = HOME / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    found = {}
    for name in names:
        X, y, schema = rows_of(name)
        X.to_parquet(where / "X.parquet")
        kinds = [
            [one.lower, one.upper] if hasattr(one, "lower") else [str(v) for v in one.values]
            for one in schema.features
        ]
        numeric = [hasattr(one, "lower") for one in schema.features]
        codes = np.searchsorted(np.unique(y), y)
        some = [one for repeat in range(repeats(name)) for one in folds(y, repeat)[:most]]
        np.savez(
            where / "folds.npz",
            y=codes,
            **{f"train{i}": train for i, (train, _) in enumerate(some)},
            **{f"test{i}": test for i, (_, test) in enumerate(some)},
        )
        body = {"kinds": kinds, "numeric": numeric, "epsilons": list(epsilons), "folds": len(some)}
        (where / "what.json").write_text(json.dumps(body))
        said = subprocess.run(
            [str(python), __file__, str(where)], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        for line in said.splitlines():
            who, epsilon, *accuracies = line.split("\t")
            found[who, name, float(epsilon)] = [float(one) for one in accuracies]
    return found


def _child(where: Path) -> None:
    import numpy as np
    import pandas as pd
    from diffprivlib.models import GaussianNB, LogisticRegression, RandomForestClassifier
    from interpret.privacy import DPExplainableBoostingClassifier

    warnings.simplefilter("ignore")
    what = json.loads((where / "what.json").read_text())
    frame, saved = pd.read_parquet(where / "X.parquet"), np.load(where / "folds.npz")
    y, classes = saved["y"], np.unique(saved["y"])
    parts = []
    for name, kind, numeric in zip(frame, what["kinds"], what["numeric"], strict=True):
        if numeric:
            column = frame[name].to_numpy(float)
            column = np.nan_to_num(column, nan=kind[0])
            parts.append(((column - kind[0]) / (kind[1] - kind[0]))[:, None])
        else:
            text = frame[name].astype(str).to_numpy()
            parts.append((text[:, None] == np.array(kind)).astype(float))
    X, norm = np.hstack(parts), math.sqrt(len(what["kinds"]))
    bounds = (np.zeros(X.shape[1]), np.ones(X.shape[1]))

    def peers(epsilon: float, seed: int) -> Any:
        if all(what["numeric"]):
            yield "diffprivlib NB", GaussianNB(epsilon=epsilon, bounds=bounds, random_state=seed)
        yield "DP logistic", LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=seed)
        yield (
            "DP forest",
            RandomForestClassifier(
                epsilon=epsilon, bounds=bounds, classes=classes, random_state=seed
            ),
        )
        if len(classes) == 2:
            wide = dict.fromkeys(range(X.shape[1]), (0.0, 1.0))
            yield (
                "DP-EBM",
                DPExplainableBoostingClassifier(
                    epsilon=epsilon, delta=1e-6, privacy_bounds=wide, random_state=seed, n_jobs=1
                ),
            )

    for epsilon in what["epsilons"]:
        scores: dict[str, list[float]] = {}
        for number in range(what["folds"]):
            train, test = saved[f"train{number}"], saved[f"test{number}"]
            for who, peer in peers(epsilon, number):
                peer.fit(X[train], y[train])
                scores.setdefault(who, []).append(float(np.mean(peer.predict(X[test]) == y[test])))
        for who, values in scores.items():
            print(who, epsilon, *values, sep="\t", flush=True)


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
