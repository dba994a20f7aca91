"""Tables of ``discreet evaluate``: exact scores of raw data, and noisy ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.cli.output import make_console, make_table

if TYPE_CHECKING:
    from discreet.model.evaluation import Scores
    from discreet.model.noisy_scores import NoisyScores

__all__ = ["print_noisy_scores", "print_scores"]

MAX_CONFUSION_CLASSES = 12
"""Most classes of a confusion matrix that is printed."""


def print_scores(scores: Scores) -> None:
    """Print exact scores, and that they are not protected.

    Parameters
    ----------
    scores : Scores
    """
    score_body, printer = scores.to_body(), make_console()
    majority_class = score_body["baseline"]["class"]
    score_table = make_table(f"{scores.rows:,} rows", "score", ">value", ">95 % interval", "")
    for score_name, score_value, (lower_end, upper_end), remark in (
        ("accuracy", score_body["accuracy"], score_body["interval"], ""),
        ("baseline", score_body["baseline"]["accuracy"], score_body["baseline"]["interval"],
         f"always {majority_class!r}"),
        ("log loss", score_body["log_loss"], score_body["log_loss_interval"], ""),
        ("calibration error", score_body["calibration_error"], score_body["calibration_interval"],
         "mean gap between confidence and hit rate"),
    ):  # fmt: skip
        score_table.add_row(
            score_name, f"{score_value:.4f}", f"{lower_end:.4f} to {upper_end:.4f}", remark
        )
    printer.print(score_table)
    class_table = make_table("by class", "class", ">rows", ">precision", ">recall")
    for class_name, class_scores in score_body["classes"].items():
        rate_intervals = [
            (class_scores[rate_name], class_scores[f"{rate_name}_interval"])
            for rate_name in ("precision", "recall")
        ]
        class_table.add_row(
            class_name,
            f"{class_scores['rows']:,}",
            *(format_share(rate, rate_interval) for rate, rate_interval in rate_intervals),
        )
    printer.print(class_table)
    reliability_table = make_table(
        "calibration: stated and actual accuracy", ">confidence", ">rows", ">right"
    )
    for reliability_bin in score_body["reliability"]:
        hit_rate = format_share(reliability_bin["hits"], reliability_bin["interval"])
        reliability_table.add_row(
            f"{reliability_bin['confidence']:.3f}", f"{reliability_bin['rows']:,}", hit_rate
        )
    printer.print(reliability_table)
    _print_confusion(
        printer, "down: true class, across: predicted", [*score_body["classes"]], scores.confusion
    )
    printer.print("These figures are about raw data and are not protected.")


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
    _print_confusion(
        printer,
        f"down: true class, across: predicted; each ±{1.96 * cell_deviation:,.0f} by noise",
        class_names,
        scores.confusion,
    )
    printer.print(
        f"Noise hides each person: the number of rows is known to ±{row_margin:,.0f}. Intervals "
        "cover the noise and the chance of which people these were; one from 0 to 1 says that the "
        "noise hides this figure."
    )


def _print_confusion(printer: Any, title: str, class_names: Sequence[str], confusion: Any) -> None:
    confusion_table = make_table(title, "", *(f">{class_name}" for class_name in class_names))
    for class_name, confusion_row in zip(class_names, confusion, strict=True):
        confusion_table.add_row(
            class_name, *(f"{max(0, row_count):,}" for row_count in confusion_row)
        )
    printer.print(confusion_table)


def _format_value(value: float, interval: Sequence[float]) -> tuple[str, str]:
    if math.isnan(value):
        return "-", "-"
    return f"{value:.3f}", f"{interval[0]:.3f} to {interval[1]:.3f}"


def format_share(value: float, interval: Sequence[float]) -> str:
    """Format a share and its interval; a dash where there is none.

    Parameters
    ----------
    value : float
    interval : sequence of two floats
    """
    return "-" if value != value else f"{value:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"
