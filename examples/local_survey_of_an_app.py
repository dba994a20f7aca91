"""An app learns about its users without learning about any of them.

    python examples/local_survey_of_an_app.py

Everything below the first dashed line would run on the users' phones, everything below the second
on the collector's machine. What travels between them is JSON; here it stays in one process.
"""

from __future__ import annotations

from collections.abc import Iterator

from discreet import estimate
from discreet.datasets import make_mortgage
from discreet.local import MemoryStore, Plan, Respondent, Tally, estimate_statistics, make_plan
from discreet.model.evaluation import score_model

PEOPLE = 4_000


# ---------------------------------------------------------------- on each phone
def reports(plan_file: str) -> Iterator[str]:
    """One randomized report from each person. A real app keeps it in a FolderStore."""
    plan = Plan.from_json(plan_file)  # refused if its probabilities do not keep its epsilon
    for record in make_mortgage(PEOPLE).frame.to_dict("records"):
        yield Respondent(plan, MemoryStore()).report(record).to_json()


# ---------------------------------------------------------------- at the collector
def main() -> None:
    """Publish a plan, tally what comes back, and make a classifier of it."""
    others = make_mortgage(10_000, seed=1)
    plan = make_plan(others.schema, epsilon=4.0, respondents=PEOPLE)
    for number, question in enumerate(plan.questions):
        asked = ", ".join((others.schema.target, *question.features))
        print(f"question {number}: {asked} ({question.mechanism.name})")

    tally = Tally.from_reports(plan, reports(plan.to_json()))
    print(f"{tally.reports} reports counted, {sum(tally.rejected.values())} rejected\n")

    model = estimate(estimate_statistics(tally))
    print(model.guarantee)
    scores = score_model(model, others.X, others.y)
    label, share = scores.majority_baseline
    print(f"\naccuracy {scores.accuracy:.3f}, always '{label}' {share:.3f}")


if __name__ == "__main__":
    main()
