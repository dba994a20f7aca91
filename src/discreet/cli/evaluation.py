"""Parts of ``discreet evaluate``: how rows are scored, and tables of exact and noisy scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.output import make_console, make_table

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.model.costs import CostScores
    from discreet.model.evaluation import Scores
    from discreet.model.group_scores import GroupScores
    from discreet.model.noisy_scores import NoisyScores

__all__ = [
    "make_batch_scorer",
    "print_noisy_scores",
    "print_scores",
    "refuse_contradictions",
]


def make_batch_scorer(
    model: NaiveBayesModel, epsilon: float | None, by: str | None, cost: dict[str, float] | None
) -> Callable[[Any, Any], Any]:
    """Make what scores rows; an invalid epsilon or cost is refused before any row is read.

    Parameters
    ----------
    model : NaiveBayesModel
    epsilon : float or None
        Of noisy figures.
    by : str or None
        Column by which rows are divided.
    cost : dict or None
        Of missing a class.
    """
    from discreet.model.costs import resolve_costs
    from discreet.model.evaluation import score_model
    from discreet.model.group_scores import score_groups

    if epsilon is not None:
        from discreet.central.budget import Budget
        from discreet.central.private_scores import count_score_cells

        Budget(epsilon)
        return partial(count_score_cells, model)
    costs = None if cost is None else resolve_costs(model.schema.classes, cost)
    if by is None:
        return partial(score_model, model, costs=costs)
    return lambda batch, truth: score_groups(model, batch, truth, by, batch[by], costs)


def refuse_contradictions(
    epsilon: float | None, by: str | None, cost: dict[str, float] | None, **options: Any
) -> None:
    """Refuse options of noisy figures without --epsilon, and of exact ones with it.

    Parameters
    ----------
    epsilon, by, cost
        As for :func:`make_batch_scorer`.
    **options
        Values of options of noisy figures, by parameter name.
    """
    if epsilon is not None and (by is not None or cost is not None):
        raise click.UsageError(
            "--by and --cost show exact figures of raw data; leave out either them or --epsilon."
        )
    for option_name, value in options.items():
        if epsilon is None and value:
            raise click.UsageError(
                f"--{option_name.replace('_', '-')} is for noisy figures; give --epsilon as well."
            )


def print_scores(scores: Scores | GroupScores) -> None:
    """Print exact scores, and that they are not protected.

    Parameters
    ----------
    scores : Scores or GroupScores
    """
    from discreet.model.group_scores import GroupScores

    printer = make_console()
    total = scores.total if isinstance(scores, GroupScores) else scores
    score_body = total.to_body()
    for table in (
        _make_summary_table(total, score_body),
        _make_class_table(score_body),
        _make_reliability_table(score_body),
        _make_confusion_table(
            "down: true class, across: predicted", [*score_body["classes"]], total.confusion
        ),
    ):
        printer.print(table)
    if total.cost_scores is not None:
        _print_costs(printer, total.cost_scores)
    if isinstance(scores, GroupScores):
        printer.print(_make_group_table(scores))
        printer.print("A group with few rows has wide intervals: where two overlap, the table does "
                      "not tell which group is served better.")  # fmt: skip
    printer.print("These figures are about raw data and are not protected.")


def _make_summary_table(scores: Scores, score_body: dict[str, Any]) -> Any:
    class_names = [*score_body["classes"]]
    ranked = f"of {class_names[1]!r}" if len(class_names) == 2 else "mean over the classes"
    baseline = score_body["baseline"]
    positive_share = ""
    if len(class_names) == 2:
        positive_rows = score_body["classes"][class_names[1]]["rows"]
        positive_share = f"; {positive_rows / scores.rows:.3f} is chance"
    summary_table = make_table(f"{scores.rows:,} rows", "score", ">value", ">95 % interval", "")
    for score_name, key, interval_key, remark in (
        ("accuracy", "accuracy", "interval", ""),
        ("baseline", "", "", f"always {baseline['class']!r}"),
        ("AUC", "auc", "auc_interval", f"{ranked}; 0.5 is chance"),
        (
            "average precision",
            "average_precision",
            "average_precision_interval",
            f"{ranked}{positive_share}",
        ),
        ("log loss", "log_loss", "log_loss_interval", ""),
        (
            "calibration error",
            "calibration_error",
            "calibration_interval",
            "gap to hit rate",
        ),
    ):
        value = score_body[key] if key else baseline["accuracy"]
        interval = score_body[interval_key] if key else baseline["interval"]
        summary_table.add_row(score_name, *_format_value(value, interval, digits=4), remark)
    return summary_table


def _make_class_table(score_body: dict[str, Any]) -> Any:
    """Precision, recall and areas of each class, in percent."""
    rates = ("precision", "recall", "auc", "average_precision")
    class_table = make_table(
        "by class, in %; ± is a 95 % interval, AP the average precision",
        "class", ">rows", ">precision", ">recall", ">AUC", ">AP",
    )  # fmt: skip
    for class_name, entry in score_body["classes"].items():
        class_table.add_row(
            class_name,
            f"{entry['rows']:,}",
            *(_format_percent(entry[rate], entry[f"{rate}_interval"]) for rate in rates),
        )
    return class_table


def _make_reliability_table(score_body: dict[str, Any]) -> Any:
    reliability_table = make_table(
        "calibration: stated and actual accuracy", ">confidence", ">rows", ">right"
    )
    for entry in score_body["reliability"]:
        hit_rate = format_share(entry["hits"], entry["interval"])
        reliability_table.add_row(f"{entry['confidence']:.3f}", f"{entry['rows']:,}", hit_rate)
    return reliability_table


def _print_costs(printer: Any, cost_scores: CostScores) -> None:
    """Print what each way to decide costs, and whether deciding by cost pays."""
    cost_body = cost_scores.to_body()
    prices = ", ".join(f"{name} {cost:g}" for name, cost in cost_body["missing"].items())
    cost_table = make_table(
        f"mean cost of 100 rows, where missing costs: {prices}", "decision", ">cost",
        ">95 % interval",
    )  # fmt: skip
    for policy in cost_body["policies"]:
        low, high = (100 * end for end in policy["interval"])
        cost_table.add_row(
            policy["decide"], f"{100 * policy['cost']:.1f}", f"{low:.1f} to {high:.1f}"
        )
    printer.print(cost_table)
    saved = 100 * cost_body["saved"]
    low, high = (100 * end for end in cost_body["saved_interval"])
    majority_decision = cost_body["policies"][2]["decide"]
    printer.print(
        f"Next to “{majority_decision}”, deciding by cost saves {saved:.1f} on 100 rows ({low:.1f} "
        f"to {high:.1f}). It takes the model's probabilities at their word: see calibration."
    )
    printer.print(
        _make_confusion_table(
            "down: true class, across: decided by cost",
            [*cost_body["missing"]],
            cost_scores.cost_confusion,
        )
    )


def _make_group_table(scores: GroupScores) -> Any:
    """Accuracy, recall and AUC of each group, in percent."""
    from discreet.schema.schema import format_value

    class_names = [format_value(value) for value in scores.total.classes]
    is_binary = len(class_names) == 2
    headings = [f">recall of {class_names[1]}", ">AUC"] if is_binary else [">mean AUC"]
    group_table = make_table(
        f"by {scores.column}, in %; ± is a 95 % interval", scores.column, ">rows", ">accuracy",
        *headings,
    )  # fmt: skip
    for label in scores.labels:
        group_body = scores.groups[label].to_body()
        figures = [_format_percent(group_body["accuracy"], group_body["interval"])]
        if is_binary:
            entry = group_body["classes"][class_names[1]]
            figures.append(_format_percent(entry["recall"], entry["recall_interval"]))
        figures.append(_format_percent(group_body["auc"], group_body["auc_interval"]))
        group_table.add_row(label, f"{group_body['rows']:,}", *figures)
    return group_table


def print_noisy_scores(scores: NoisyScores) -> None:
    """Print noisy scores, and what is promised.

    Parameters
    ----------
    scores : NoisyScores
    """
    score_body, printer = scores.to_body(), make_console()
    class_names, class_scores = [*score_body["classes"]], score_body["classes"]
    row_margin = (scores.rows_interval[1] - scores.rows_interval[0]) / 2
    baseline = score_body["baseline"]
    score_table = make_table(
        f"about {scores.rows:,} rows; all figures with noise", "score", ">value", ">95 % interval",
        "",
    )  # fmt: skip
    summary_rows = [
        ("accuracy", score_body["accuracy"], score_body["interval"], ""),
        ("baseline", baseline["accuracy"], baseline["interval"], f"always {baseline['class']!r}"),
    ]
    first_class = class_scores[class_names[-1]]
    if len(class_names) == 2 and not math.isnan(first_class["auc"]):
        summary_rows.append(
            ("AUC", first_class["auc"], first_class["auc_interval"], f"of {class_names[-1]!r}")
        )
    for score_name, score_value, interval, remark in summary_rows:
        score_table.add_row(score_name, *_format_value(score_value, interval), remark)
    printer.print(score_table)
    has_aucs = len(class_names) > 2 and not math.isnan(first_class["auc_interval"][0])
    rate_names = ["precision", "recall", *(["auc"] if has_aucs else [])]
    headings = [">rows", *(f">{'AUC' if name == 'auc' else name}" for name in rate_names)]
    class_table = make_table("by class", "class", *headings)
    for class_name in class_names:
        entry = class_scores[class_name]
        class_table.add_row(
            class_name,
            f"{entry['rows']:,}",
            *(format_share(entry[name], entry[f"{name}_interval"]) for name in rate_names),
        )
    printer.print(class_table)
    if len(score_body["reliability"]) > 1:
        reliability_table = make_table(
            "calibration: stated and actual accuracy", ">confidence", ">rows", ">right"
        )
        for entry in score_body["reliability"]:
            low, high = entry["confidence"]
            reliability_table.add_row(
                f"{low:.2f} to {high:.2f}",
                f"{entry['rows']:,}",
                format_share(entry["hits"], entry["interval"]),
            )
        printer.print(reliability_table)
    cell_deviation = math.sqrt(scores.noise_variance * scores.counts.shape[2])
    confusion_table = _make_confusion_table(
        f"down: true class, across: predicted; each ±{1.96 * cell_deviation:,.0f} by noise",
        class_names,
        scores.confusion,
    )
    printer.print(confusion_table)
    printer.print(
        f"Noise hides each person: the number of rows is known to ±{row_margin:,.0f}. Intervals "
        "cover the noise and the chance of which people these were; one from 0 to 1 says that the "
        "noise hides this figure."
        + " A model that has learnt from these very rows is less accurate on others."
        * scores.same_people
    )


def _make_confusion_table(title: str, class_names: Sequence[str], confusion: Any) -> Any:
    confusion_table = make_table(title, "", *(f">{class_name}" for class_name in class_names))
    for class_name, confusion_row in zip(class_names, confusion, strict=True):
        confusion_table.add_row(
            class_name, *(f"{max(0, row_count):,}" for row_count in confusion_row)
        )
    return confusion_table


def _format_value(value: float, interval: Sequence[float], digits: int = 3) -> tuple[str, str]:
    if math.isnan(value):
        return "-", "-"
    return f"{value:.{digits}f}", f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def _format_percent(value: float, interval: Sequence[float]) -> str:
    """A share in percent, and how far the farther end of its interval is."""
    if math.isnan(value):
        return "-"
    margin = max(interval[1] - value, value - interval[0])
    return f"{100 * value:.1f} ±{100 * margin:.1f}"


def format_share(value: float, interval: Sequence[float]) -> str:
    """Format a share and its interval; a dash where there is none.

    Parameters
    ----------
    value : float
    interval : sequence of two floats
    """
    return "-" if value != value else f"{value:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"
