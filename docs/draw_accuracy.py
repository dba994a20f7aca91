"""Draw docs/pictures/accuracy.svg, the picture of the README, from the comparison of the demo.

::

    discreet demo --json > demo.json
    python docs/draw_accuracy.py demo.json

One SVG file without scripts or fonts. Its colours follow the reader's choice of light or dark.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).parent / "pictures" / "accuracy.svg"

WIDTH, HEIGHT = 800, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 596, 52, 324
"""Pixels of the picture, and of the area of the curves."""

LOWEST, HIGHEST = 0.55, 0.88
"""Accuracies at the lower and at the upper edge of the area."""

LABEL_GAP = 19
"""Least pixels between two labels at the right edge."""

TRUST = {
    "central": ("central: the curator", "", "circle"),
    "federated": ("federated: own holder", "8 4", "square"),
    "survey": ("survey: nobody", "2 3", "triangle"),
    "local": ("local: nobody", "10 3 2 3", "diamond"),
}
"""Label, dashes and mark of each trust model, so that nothing depends on colours alone."""

STYLE = """
  svg { --ink: #1a1a1a; --soft: #555; --grid: #d9d9d9; --paper: #fff;
        --central: #0b5cad; --federated: #b34a00; --survey: #00735a; --local: #a03c78; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #f2f2f2; --soft: #b8b8b8; --grid: #444; --paper: #0d1117;
          --central: #74b6ff; --federated: #ffa45c; --survey: #4fd6b0; --local: #f09ccc; }
  }
  text { font: 14px system-ui, sans-serif; fill: var(--ink); }
  .title { font-weight: 600; font-size: 16px; }
  .soft { fill: var(--soft); font-size: 13px; }
  .end { text-anchor: end; } .middle { text-anchor: middle; }
  .grid { stroke: var(--grid); }
  .limit { stroke: var(--soft); stroke-dasharray: 4 4; }
  .paper { fill: var(--paper); }
""" + "".join(
    f"  .{trust} {{ color: var(--{trust}); }} text.{trust} {{ fill: var(--{trust}); }}\n"
    for trust in TRUST
)


def place_accuracy(accuracy: float) -> float:
    """Compute the vertical place of an accuracy, in pixels."""
    return BOTTOM - (accuracy - LOWEST) / (HIGHEST - LOWEST) * (BOTTOM - TOP)


def draw_mark(shape: str, x: float, y: float) -> str:
    """Draw the mark of a trust model around a point."""
    if shape == "circle":
        return f'<circle cx="{x:.0f}" cy="{y:.1f}" r="4.5" fill="currentColor"/>'
    corners = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "triangle": ((0, -5.5), (5.5, 4.5), (-5.5, 4.5)),
        "diamond": ((0, -6), (6, 0), (0, 6), (-6, 0)),
    }[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="currentColor"/>'


def draw_curve(trust: str, results: list[dict[str, Any]], places: dict[float, float]) -> str:
    """Draw the curve of one trust model with the band of its 95 % intervals."""
    _, dashes, shape = TRUST[trust]
    points = [(places[entry["epsilon"]], place_accuracy(entry["accuracy"])) for entry in results]
    upper = [(places[e["epsilon"]], place_accuracy(e["interval"][1])) for e in results]
    lower = [(places[e["epsilon"]], place_accuracy(e["interval"][0])) for e in results]
    band = " ".join(f"{x:.0f},{y:.1f}" for x, y in upper + lower[::-1])
    line = " ".join(f"{x:.0f},{y:.1f}" for x, y in points)
    marks = "".join(draw_mark(shape, x, y) for x, y in points)
    return (
        f'<g class="{trust}"><polygon points="{band}" fill="currentColor" fill-opacity=".12"/>'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="2.5"'
        f' stroke-dasharray="{dashes}"/>{marks}</g>'
    )


def space_labels(heights: dict[str, float]) -> dict[str, float]:
    """Move labels apart, from the top to the bottom."""
    spaced: dict[str, float] = {}
    last = -float(LABEL_GAP)
    for label in sorted(heights, key=heights.__getitem__):
        last = spaced[label] = max(heights[label], last + LABEL_GAP)
    return spaced


def draw_picture(comparison: dict[str, Any]) -> str:
    """Draw the whole picture from what ``discreet demo --json`` prints."""
    epsilons = comparison["settings"]["epsilons"]
    step = (RIGHT - LEFT - 40) / (len(epsilons) - 1)
    places = {epsilon: LEFT + 20 + step * index for index, epsilon in enumerate(epsilons)}
    by_trust = {
        trust: [entry for entry in comparison["results"] if entry["trust"] == trust]
        for trust in TRUST
    }
    parts = [
        f'<text class="title" x="{LEFT}" y="24">Right predictions, by whom people must trust</text>'
    ]
    for percent in range(60, 90, 10):
        y = place_accuracy(percent / 100)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="soft end" x="{LEFT - 8}" y="{y + 4:.1f}">{percent} %</text>')
    for epsilon, x in places.items():
        parts.append(f'<text class="soft middle" x="{x:.0f}" y="{BOTTOM + 20}">{epsilon:g}</text>')
    parts.append(
        f'<text class="soft" x="{LEFT}" y="{BOTTOM + 44}">epsilon, in total per person: smaller is '
        f"more private. Bands: 95 %. {comparison['rows']:,} invented people.</text>"
    )
    majority = comparison["majority"]
    limits = {
        f"always “{majority['class']}”": majority["accuracy"],
        "plain, no privacy": comparison["plain"]["accuracy"],
    }
    heights = {label: place_accuracy(accuracy) for label, accuracy in limits.items()}
    for y in heights.values():
        parts.append(f'<line class="limit" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    for trust, results in by_trust.items():
        parts.append(draw_curve(trust, results, places))
        heights[trust] = place_accuracy(results[-1]["accuracy"])
    for label, y in space_labels(heights).items():
        text, css_class = (TRUST[label][0], label) if label in TRUST else (label, "soft")
        parts.append(
            f'<text class="{css_class}" x="{RIGHT + 8}" y="{y + 4:.1f}">{escape(text)}</text>'
        )
    description = "; ".join(
        f"{TRUST[trust][0]}: "
        + ", ".join(f"{entry['accuracy']:.1%} at {entry['epsilon']:g}" for entry in results)
        for trust, results in by_trust.items()
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n'
        "<title>Accuracy against epsilon, by trust model</title>\n"
        f"<desc>{escape(description)}</desc>\n"
        f"<style>{STYLE}</style>\n"
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as comparison_file:
        PICTURE.write_text(draw_picture(json.load(comparison_file)), "utf-8")
