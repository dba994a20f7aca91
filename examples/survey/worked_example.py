"""A survey about health at work: five private questions in two groups, nobody trusted.

    python examples/survey/worked_example.py

Everything below the first dashed line would run on the respondents' devices, everything below the
second at the collector. What travels between them is JSON; here it stays in one process. The same
questionnaire as a form to print, for people who would rather draw with dice:

    discreet survey form examples/survey/questionnaire.yaml -o form.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from discreet import estimate
from discreet.survey import (
    MemoryStore,
    Questionnaire,
    Respondent,
    Tally,
    estimate_share,
    estimate_sheet_accuracy,
    estimate_statistics,
)
from discreet.survey.beliefs import Beliefs
from discreet.survey.measure import measure_privacy

FILE = Path(__file__).with_name("questionnaire.yaml")
PEOPLE = 4_000


def population(people: int, seed: int) -> Iterator[dict[str, object]]:
    """Invented people, of whom about a third are burnt out."""
    rng = np.random.default_rng(seed)
    for burnt_out in rng.random(people) < 0.3:
        sleep = [0.2, 0.8] if burnt_out else [0.8, 0.2]
        yield {
            "burnout": "yes" if burnt_out else "no",
            "sleep": str(rng.choice(["well", "badly"], p=sleep)),
            "medication": "yes" if rng.random() < (0.5 if burnt_out else 0.1) else "no",
            "alcohol": int(rng.integers(0, 8)),
            "overtime": "yes" if rng.random() < (0.7 if burnt_out else 0.2) else "no",
        }


# ---------------------------------------------------------------- on each device
def sheets(questionnaire_file: str, seed: int) -> Iterator[str]:
    """One randomized sheet from each person. A real device keeps it in a FolderStore."""
    questionnaire = Questionnaire.from_json(questionnaire_file)  # refused if its channels lie
    for answers in population(PEOPLE, seed):
        yield Respondent(questionnaire, MemoryStore()).report(answers).to_json()


# ---------------------------------------------------------------- at the collector
def main() -> None:
    """Publish the questionnaire, tally what comes back, learn from it and test it."""
    questionnaire = Questionnaire.read(FILE)
    print(questionnaire.guarantee)
    print(f"\n{questionnaire.sentence}\n")

    tally = Tally.from_reports(questionnaire, sheets(questionnaire.to_json(), seed=0))
    print(f"{tally.reports} sheets counted, {tally.rejected.total()} rejected")
    for predicate in ("burnout = yes", "sleep = badly and (overtime = yes or medication = yes)"):
        found = estimate_share(tally, predicate)
        low, high = found.interval()
        print(f"  {predicate}: {found.share:.3f} (95 % interval {low:.3f} to {high:.3f})")

    model = estimate(estimate_statistics(tally))
    others = Tally.from_reports(questionnaire, sheets(questionnaire.to_json(), seed=1))
    accuracy = estimate_sheet_accuracy(model, others)  # from their randomized sheets alone
    low, high = accuracy.interval
    print(f"accuracy on others {accuracy.accuracy:.3f} (95 % interval {low:.3f} to {high:.3f})\n")

    after = measure_privacy(questionnaire, Beliefs.from_model(questionnaire, model))
    for one in after.questions:
        print(f"  {one.name}: a guess from the whole sheet is wrong with {one.sound_unknown:.2f}")


if __name__ == "__main__":
    main()
