"""Text and numbers in one data frame, classified and explained. No privacy: this is the limit.

    python examples/mixed_table.py

MixedNB takes columns as they come: text and categories are counted, numbers get a normal density.
It promises nothing to the people in the table, and says so.
"""

from __future__ import annotations

import pandas as pd

from discreet import MixedNB

PLANTS = pd.DataFrame(
    {
        "leaf": ["needle", "needle", "needle", "broad", "broad", "broad", "needle", "broad"],
        "bark": ["rough", "rough", "smooth", "smooth", "smooth", "rough", None, "smooth"],
        "height": [31.0, 22.5, 35.2, 18.0, 29.5, 20.1, 24.0, None],
        "kind": ["spruce", "spruce", "spruce", "beech", "beech", "beech", "spruce", "beech"],
    }
)


def main() -> None:
    """Train on eight trees, predict two, and say why."""
    X, y = PLANTS.drop(columns="kind"), PLANTS["kind"]
    nb = MixedNB().fit(X, y)
    print(nb.guarantee_)

    new = pd.DataFrame(
        {"leaf": ["needle", "broad"], "bark": ["rough", None], "height": [29.0, 21.0]}
    )
    for label, chances in zip(nb.predict(new), nb.predict_proba(new), strict=True):
        print(f"{label}: {dict(zip(nb.classes_.tolist(), chances.round(3).tolist(), strict=True))}")
    print()
    print(nb.model_.explain(new.iloc[0].to_dict()))


if __name__ == "__main__":
    main()
