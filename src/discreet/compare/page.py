"""A comparison as one HTML file: no request to anywhere, no script, readable on paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from discreet import __version__
from discreet.compare.methods import METHODS, TRUST_MODELS
from discreet.compare.page_sections import (
    format_epsilon,
    format_range,
    render_accuracy_search,
    render_classes,
    render_ranking,
)
from discreet.compare.results import Comparison, MethodResult
from discreet.display.chart_parts import Axis, format_percent, format_whole_percent, read_stylesheet
from discreet.display.charts import EstimateRow, render_estimates, render_series
from discreet.display.html_page import assemble_page, read_page_style
from discreet.privacy.guarantee import format_rounded_up

__all__ = ["render_page"]

RAW_DATA_WARNING = (
    "Computed from raw data. Nothing on this page is protected: keep it as confidential as the "
    "table itself, and do not publish it."
)
INVENTED_DATA_NOTE = "The people are invented: this page may be shown to anyone."


def render_page(comparison: Comparison, *, command: str, is_invented: bool = False) -> str:
    """Write the report of a comparison.

    Parameters
    ----------
    comparison : Comparison
    command : str
        The command line, so that a reader can repeat it.
    is_invented : bool, default False
        Whether the rows are of invented people, so that there is nothing to protect.
    """
    title = f"What trust costs: {comparison.name}"
    page_sections = [
        f"<header><h1>{escape(title)}</h1>"
        f'<p class="answer">{escape(comparison.summary_sentence)}</p>',
        f'<p class="warning">{escape(INVENTED_DATA_NOTE if is_invented else RAW_DATA_WARNING)}</p>'
        "</header>",
        _render_curve(comparison),
        _render_focus(comparison),
        _render_respondents(comparison),
        render_accuracy_search(comparison),
        render_classes(comparison),
        render_ranking(comparison),
        _render_methods(comparison),
        _render_reading_guide(comparison),
        _render_footer(comparison, command),
    ]
    style_text = read_stylesheet() + read_page_style()
    return assemble_page(title, style_text, page_sections, generator="discreet compare")


def _render_curve(comparison: Comparison) -> str:
    epsilons = comparison.settings.epsilons
    if len(epsilons) == 1:
        return ""
    series = [
        replace(line, label=f"{line.label} ({format_percent(line.y[0])})")
        if line.is_reference
        else line
        for line in comparison.make_accuracy_series()
    ]
    centre_values = [value for line in series for value in line.y]
    low_end = max(0.0, min(centre_values) - 0.25 * (max(centre_values) - min(centre_values)) - 0.01)
    picture = render_series(
        series,
        title="Accuracy against epsilon, by whom people have to trust",
        x=Axis("epsilon, total per person (smaller is more private)", is_log=True, ticks=epsilons),
        y=Axis(
            "share of people predicted correctly",
            low=low_end,
            high=min(1.0, max(centre_values) + 0.03),
            format_tick=format_whole_percent,
        ),
    )
    folds, repeats = comparison.settings.folds, comparison.settings.repeats
    return (
        f"<section><h2>What each degree of trust gives</h2>{picture}"
        f'<p class="lead">Each line is the most accurate method of its trust model. Bands are 95 % '
        f"intervals over {folds * repeats} training runs ({folds} folds, "
        f"{_format_times(repeats)}); where two bands overlap, the table does not tell which is "
        "better.</p>"
        + "".join(f'<p class="lead">{escape(remark)}</p>' for remark in comparison.remarks)
        + "</section>"
    )


def _format_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _render_focus(comparison: Comparison) -> str:
    focus_epsilon = comparison.settings.focus_epsilon
    compared_results = [
        (trust, comparison.find_best(trust, focus_epsilon), TRUST_MODELS[trust].trust_statement)
        for trust in comparison.trust_models
    ]
    compared_results += [
        ("no privacy", comparison.non_private, "the same as central, without noise"),
        (comparison.plain.method, comparison.plain, "no noise, and nothing is corrected"),
    ]
    estimate_rows = [
        EstimateRow(name, result.accuracy, *result.accuracy_interval, note=note)
        for name, result, note in compared_results
    ]
    label, majority_share = comparison.majority_class
    picture = render_estimates(
        estimate_rows,
        title=f"Share of people predicted correctly at epsilon {format_rounded_up(focus_epsilon)}",
        axis=Axis(format_tick=format_whole_percent),
        reference=(f"always saying “{label}”", majority_share),
    )
    return f"<section><h2>At epsilon {format_rounded_up(focus_epsilon)}</h2>{picture}</section>"


def _render_respondents(comparison: Comparison) -> str:
    respondents_needed = comparison.respondents_needed
    if respondents_needed is None:
        return ""
    table_rows = "".join(
        f'<tr><td class="number">{people:,}</td>'
        f'<td class="number">{format_range(accuracy, interval)}</td></tr>'
        for people, accuracy, interval in respondents_needed.tried
    )
    return (
        "<section><h2>Respondents instead of trust</h2>"
        f'<p class="lead">{escape(respondents_needed.sentence)} '
        f"At epsilon {format_rounded_up(respondents_needed.epsilon)} each.</p>"
        '<div class="wide"><table class="plain"><thead>'
        '<tr><th scope="col" class="number">respondents</th>'
        '<th scope="col" class="number">accuracy of a local collection (95 % interval)</th></tr>'
        f"</thead><tbody>{table_rows}</tbody></table></div>"
        '<p class="lead">Further respondents are drawn again from the rows that are there, so this '
        "assumes that others are like them.</p></section>"
    )


def _render_methods(comparison: Comparison) -> str:
    table_rows = ""
    has_choices = len(comparison.settings.methods) > len(comparison.trust_models)
    for trust in comparison.trust_models:
        for result in sorted(
            (result for result in comparison.results if result.trust == trust),
            key=lambda result: (result.epsilon, result.method),
        ):
            is_best = has_choices and comparison.find_best(trust, result.epsilon) is result
            table_rows += _render_row(
                result, f"{result.method}\u00a0★" if is_best else result.method
            )
    for result in (comparison.non_private, comparison.plain):
        table_rows += _render_row(result, result.method)
    column_heads = (
        "trust",
        "method",
        ">epsilon",
        ">accuracy",
        ">log loss",
        ">calibration error",
        ">time to train (s)",
        ">sent per person (bytes)",
    )
    description_items = "".join(
        f"<dt>{method_name}</dt><dd>{escape(METHODS[method_name].description)}</dd>"
        for method_name in comparison.settings.methods
    )
    skipped_notes = "".join(
        f'<p class="lead">{escape(method_name)} was left out: {escape(reason)}.</p>'
        for method_name, reason in comparison.skipped_methods.items()
    )
    star_note = (
        '<p class="lead">★ marks the most accurate method of a trust model at an epsilon, chosen '
        "with these rows: its figure is a little too good.</p>"
    )
    return (
        '<section><h2>Every method</h2><p class="lead">In parentheses 95 % intervals.</p>'
        f"{star_note if has_choices else ''}{_render_table(column_heads, table_rows)}"
        f"{skipped_notes}<h2>Methods</h2><dl>{description_items}</dl></section>"
    )


def _render_table(column_heads: Sequence[str], table_rows: str) -> str:
    header_cells = "".join(
        f'<th scope="col" class="{"number" if head.startswith(">") else "text"}">'
        f"{escape(head.lstrip('>'))}</th>"
        for head in column_heads
    )
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Every method">'
        f'<table class="plain"><thead><tr>{header_cells}</tr></thead><tbody>{table_rows}</tbody>'
        "</table></div>"
    )


def _render_row(result: MethodResult, method_text: str) -> str:
    log_loss, (low, high) = result.log_loss, result.log_loss_interval
    cell_texts = (
        format_epsilon(result.epsilon),
        format_range(result.accuracy, result.accuracy_interval),
        f"{log_loss:.3f} ({low:.3f} to {high:.3f})",
        format_range(result.calibration_error, result.calibration_interval),
        f"{result.training_seconds:.2f}",
        f"{result.bytes_per_person:,.{1 if result.bytes_per_person < 10 else 0}f}",
    )
    number_cells = "".join(f'<td class="number">{escape(text)}</td>' for text in cell_texts)
    return f"<tr><td>{escape(result.trust)}</td><td>{escape(method_text)}</td>{number_cells}</tr>"


def _render_reading_guide(comparison: Comparison) -> str:
    trust_items = "".join(
        f"<dt>{trust}</dt><dd>{escape(TRUST_MODELS[trust].trust_statement.capitalize())}. A person "
        f"sends {escape(TRUST_MODELS[trust].sent_data)}.</dd>"
        for trust in comparison.trust_models
    )
    return (
        f"<section><h2>How to read this</h2><dl>{trust_items}"
        "<dt>no privacy</dt><dd>The curator's default with everything that it does, but without "
        "noise: its accuracy tends to this as epsilon grows. Plain Naive Bayes counts the same "
        "rows and corrects nothing.</dd>"
        "<dt>epsilon</dt><dd>How much one person's data can change what is seen, per person and in "
        "total: anyone who sees it can change their odds on anything about a person by at most a "
        "factor of e<sup>epsilon</sup>: 2.7 at 1, 148 at 5.</dd>"
        "<dt>AUC</dt><dd>How often a row of a class gets a higher probability of it than a row of "
        "another: half by chance. Of two classes the second, of more the mean over all.</dd>"
        "<dt>average precision</dt><dd>Share of right ones among the rows that are most probably "
        "of a class, averaged over how many are taken; by chance it is the share of the class.</dd>"
        "<dt>calibration error</dt><dd>Mean distance between the model's stated confidence and how "
        "often it is right.</dd>"
        "<dt>log loss</dt><dd>Mean surprise at the true class; smaller is better.</dd>"
        "<dt>sent per person</dt><dd>Central: the record in clear. Survey and local: the report "
        "itself. Federated: the organisations' hidden counters, shared by all their people."
        "</dd></dl></section>"
    )


def _render_footer(comparison: Comparison, command: str) -> str:
    settings = comparison.settings
    return (
        f"<footer><p>{comparison.row_count:,} rows, {len(comparison.schema.features)} features, "
        f"{len(comparison.schema.classes)} classes; {settings.folds} folds, "
        f"{_format_times(settings.repeats)}, seed {settings.seed}; schema "
        f"{escape(comparison.schema.digest[:23])}…; discreet {__version__}. Randomness was seeded: "
        "a simulation, which promises nothing to anyone.</p><p>Repeat it: "
        f"<code>{escape(command)}</code></p></footer>"
    )
