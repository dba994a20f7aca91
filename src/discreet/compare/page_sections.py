"""Sections of the page of a comparison: classes, costs, ranking, and the search of an epsilon."""

from __future__ import annotations

import math
from html import escape

from discreet.compare.results import Comparison
from discreet.display.chart_parts import format_percent
from discreet.privacy.guarantee import format_rounded_up
from discreet.schema.schema import format_value

__all__ = [
    "format_epsilon",
    "format_range",
    "render_accuracy_search",
    "render_classes",
    "render_ranking",
]


def render_accuracy_search(comparison: Comparison) -> str:
    """What reaches the accuracy that was asked for; empty if none was.

    Parameters
    ----------
    comparison : Comparison
    """
    search = comparison.accuracy_search
    if search is None:
        return ""
    question, *answers, warning = search.sentences
    table_rows = "".join(
        f"<tr><td>{escape(needed.trust)}</td><td>{escape(needed.method)}</td>"
        f'<td class="number">{format_rounded_up(epsilon)}</td>'
        f'<td class="number">{format_range(accuracy, interval)}</td></tr>'
        for needed in search.epsilons
        for epsilon, accuracy, interval in needed.tried
    )
    answer_items = "".join(f"<li>{escape(answer)}</li>" for answer in answers)
    return (
        f"<section><h2>Epsilon for {100 * search.target:g} %</h2>"
        f'<p class="lead">{escape(question)}</p><ul>{answer_items}</ul>'
        f'<p class="warning">{escape(warning)}</p>'
        '<div class="wide" tabindex="0" role="region" aria-label="Epsilons that were tried">'
        '<table class="plain"><thead><tr><th scope="col" class="text">trust</th>'
        '<th scope="col" class="text">method</th><th scope="col" class="number">epsilon</th>'
        '<th scope="col" class="number">accuracy (95 % interval)</th></tr></thead>'
        f"<tbody>{table_rows}</tbody></table></div></section>"
    )


def render_ranking(comparison: Comparison) -> str:
    """Areas under curves of all results, which no threshold has a part in.

    Parameters
    ----------
    comparison : Comparison
    """
    classes = comparison.schema.classes
    ranked_text = (
        f"Of “{format_value(classes[1])}”" if len(classes) == 2 else "Means over the classes"
    )
    chance_text = ""
    if len(classes) == 2:
        label, share = comparison.majority_class
        positive_share = share if label == format_value(classes[1]) else 1 - share
        chance_text = f", and the average precision {format_percent(positive_share)}"
    table_rows = "".join(
        f"<tr><td>{escape(result.trust)}</td><td>{escape(result.method)}</td>"
        f'<td class="number">{format_epsilon(result.epsilon)}</td>'
        f'<td class="number">{format_range(result.auc, result.auc_interval)}</td>'
        '<td class="number">'
        f"{format_range(result.average_precision, result.average_precision_interval)}</td></tr>"
        for result in (*comparison.results, comparison.non_private)
    )
    return (
        "<section><h2>Who is ranked first</h2>"
        f'<p class="lead">{escape(ranked_text)}, whatever threshold decides. By chance the AUC is '
        f"50 %{escape(chance_text)}.</p>"
        '<div class="wide" tabindex="0" role="region" aria-label="Ranking">'
        '<table class="plain"><thead><tr><th scope="col" class="text">trust</th>'
        '<th scope="col" class="text">method</th><th scope="col" class="number">epsilon</th>'
        '<th scope="col" class="number">AUC</th>'
        '<th scope="col" class="number">average precision</th></tr></thead>'
        f"<tbody>{table_rows}</tbody></table></div></section>"
    )


def render_classes(comparison: Comparison) -> str:
    """Precision and recall of each class at the focus epsilon, and what mistakes cost.

    Parameters
    ----------
    comparison : Comparison
    """
    table_rows = "".join(
        f"<tr><td>{escape(result.trust)}</td><td>{escape(entry['class'])}</td>"
        f'<td class="number">{format_range(entry["precision"], entry["precision_interval"])}</td>'
        f'<td class="number">{format_range(entry["recall"], entry["recall_interval"])}</td></tr>'
        for result in comparison.list_focus_results()
        for entry in result.pooled_scores.scores_by_class
    )
    focus_text = format_rounded_up(comparison.settings.focus_epsilon)
    return (
        f"<section><h2>Each class at epsilon {focus_text}</h2>"
        '<p class="lead">Precision is the share of right ones among the rows predicted as a class, '
        "recall the share of its rows that are predicted as it; in parentheses 95 % intervals of "
        "the models that were trained here.</p>"
        '<div class="wide" tabindex="0" role="region" aria-label="Each class">'
        '<table class="plain"><thead><tr><th scope="col" class="text">trust</th>'
        '<th scope="col" class="text">class</th><th scope="col" class="number">precision</th>'
        '<th scope="col" class="number">recall</th></tr></thead>'
        f"<tbody>{table_rows}</tbody></table></div>{_render_costs(comparison)}</section>"
    )


def _render_costs(comparison: Comparison) -> str:
    if comparison.settings.cost is None:
        return ""
    cost_bodies = [
        (result.trust, result.to_body()["costs"]) for result in comparison.list_focus_results()
    ]
    prices = ", ".join(f"{name} {cost:g}" for name, cost in cost_bodies[0][1]["missing"].items())
    policies = [
        (trust, policy) for trust, body in cost_bodies for policy in body["policies"][:2]
    ] + [("", policy) for policy in cost_bodies[0][1]["policies"][2:]]
    table_rows = "".join(
        f"<tr><td>{escape(trust)}</td><td>{escape(policy['decide'])}</td>"
        f'<td class="number">{100 * policy["cost"]:.1f} '
        f"({100 * policy['interval'][0]:.1f} to {100 * policy['interval'][1]:.1f})</td></tr>"
        for trust, policy in policies
    )
    return (
        f'<p class="lead">Mean cost of 100 rows, where missing a row of a class costs: '
        f"{escape(prices)}.</p>"
        '<div class="wide" tabindex="0" role="region" aria-label="Costs">'
        '<table class="plain"><thead><tr><th scope="col" class="text">trust</th>'
        '<th scope="col" class="text">decision</th><th scope="col" class="number">cost</th>'
        f"</tr></thead><tbody>{table_rows}</tbody></table></div>"
    )


def format_epsilon(epsilon: float) -> str:
    """Format an epsilon, or that there is none.

    Parameters
    ----------
    epsilon : float
    """
    return "∞" if math.isinf(epsilon) else format_rounded_up(epsilon)


def format_range(share: float, interval: tuple[float, float]) -> str:
    """Format a share and its interval in percent.

    Parameters
    ----------
    share : float
    interval : pair of float
    """
    low, high = interval
    if math.isnan(share):
        return "-"
    return f"{format_percent(share)} ({100 * low:.1f} to {100 * min(high, 1):.1f})"
