"""The strongest evidence of a model: what its cells say about classes, first what does most.

Every page, command and plot that shows evidence takes it from here. A line rests on people: lines
are ordered by how much they do for them, and what the known noise could turn round is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Floats
from discreet.model.factors import CellFactor
from discreet.model.support import CellSupport, NoiseQuantiles, ValueRange
from discreet.schema.schema import format_value

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel

__all__ = [
    "NO_EVIDENCE",
    "EvidenceLine",
    "count_cells",
    "find_strongest_evidence",
    "format_share",
]

NO_EVIDENCE = "No value certainly speaks for a class: the noise could turn all of it round."
"""What is shown where tables leave no line of evidence."""


def format_share(share: float, interval: ValueRange | None = None) -> str:
    """Format a share of people in percent, with its interval.

    Parameters
    ----------
    share : float
    interval : pair of float, optional

    Examples
    --------
    >>> format_share(0.5512), format_share(0.081, (0.052, 0.11)), format_share(0.0004)
    ('55 %', '8 % (5 to 11)', '0.04 %')
    """
    share_text = f"{_format_percent(max(share, 0.0))} %"
    if interval is None:
        return share_text
    return f"{share_text} ({_format_percent(interval[0])} to {_format_percent(interval[1])})"


def _format_percent(share: float) -> str:
    """Whole percent; below one, one digit that is not zero."""
    percent = 100 * share
    return f"{percent:.0f}" if percent >= 0.95 or percent < 1e-4 else f"{percent:.1g}"


@dataclass(frozen=True)
class EvidenceLine:
    """A cell that speaks for a class.

    Attributes
    ----------
    feature, value, label : str
        The feature or pair of features, the cell and the class.
    log_odds : float
        Of the class against all others together, by the model.
    share : float
        Share of people in the cell.
    share_interval : pair of float or None
        What the noise leaves open, with 95 % confidence for all cells of the model together; None
        where the share is exact or the noise is not known.
    odds_range : pair of float or None
        The ratios of probabilities that the noise leaves open, with 95 % confidence for all lines
        of the model together; None where the noise is not known.
    """

    feature: str
    value: str
    label: str
    log_odds: float
    share: float
    share_interval: ValueRange | None = None
    odds_range: ValueRange | None = None

    @property
    def share_text(self) -> str:
        """The share and its interval in percent."""
        return format_share(self.share, self.share_interval)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "feature": self.feature,
            "value": self.value,
            "class": self.label,
            "log_odds": self.log_odds,
            "share": self.share,
            "share_interval": self.share_interval and list(self.share_interval),
            "odds_range": self.odds_range and list(self.odds_range),
        }


def find_strongest_evidence(model: NaiveBayesModel, count: int | None = None) -> list[EvidenceLine]:
    """Find the cells that speak for a class, first those that do most for people.

    The order is by share of people times log-odds. A line is there only if the released numbers say
    two things: with 95 % confidence for this line, that the cell speaks for this class; with 95 %
    confidence for all cells of the model together, that there are people in it. Of a model that
    came without its statistics all lines are there, and their shares are the model's own.

    Only cells have a log-odds of their own; a density is shown by its class means instead.

    Parameters
    ----------
    model : NaiveBayesModel
    count : int, optional
        Lines at most; all if not given.
    """
    class_count = len(model.log_prior)
    cell_count = count_cells(model)
    # what speaks for one of two classes speaks against the other: that is one ratio
    ratio_count = cell_count * (class_count if class_count > 2 else 1)
    quantiles = NoiseQuantiles.from_counts(cell_count, ratio_count, model.guarantee.trust)
    evidence_lines = [
        line
        for score_table in _list_score_tables(model)
        for line in score_table.iter_lines(model, quantiles)
    ]
    return sorted(evidence_lines, key=lambda line: -line.share * line.log_odds)[:count]


def count_cells(model: NaiveBayesModel) -> int:
    """Count the cells of all tables of a model.

    Parameters
    ----------
    model : NaiveBayesModel
    """
    return sum(len(score_table.labels) for score_table in _list_score_tables(model))


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The scores of a feature or a pair of features by class and cell.

    Parameters
    ----------
    name : str
    labels : sequence of str
        Of the cells.
    scores : array of shape (classes, cells)
    support : CellSupport or None
    """

    name: str
    labels: Sequence[str]
    scores: Floats
    support: CellSupport | None

    def iter_lines(
        self, model: NaiveBayesModel, quantiles: NoiseQuantiles
    ) -> Iterator[EvidenceLine]:
        """Iterate over the cells that speak for a class, class by class.

        Parameters
        ----------
        model : NaiveBayesModel
        quantiles : NoiseQuantiles
        """
        class_shares = np.exp(model.log_prior)
        model_shares = class_shares @ np.exp(self.scores)
        model_shares /= max(float(model_shares.sum()), 1e-300)
        for class_index, class_label in enumerate(model.schema.classes):
            rival_weights = class_shares.copy()
            rival_weights[class_index] = 0.0
            log_odds = model.temperature * self._compute_log_odds(class_index, rival_weights)
            for cell_index in np.flatnonzero(np.isfinite(log_odds) & (log_odds > 0)).tolist():
                texts = self.name, self.labels[cell_index], format_value(class_label)
                cell_odds = float(log_odds[cell_index])
                if self.support is None:
                    yield EvidenceLine(*texts, cell_odds, float(model_shares[cell_index]))
                    continue
                ratio = self.support.compare_classes(
                    cell_index, class_index, rival_weights, quantiles
                )
                if ratio.speaks_for_class():
                    yield EvidenceLine(
                        *texts, cell_odds, ratio.share, ratio.share_interval, ratio.joint_range
                    )

    def _compute_log_odds(self, class_index: int, rival_weights: Floats) -> Floats:
        """Compute log P(cell | class) - log P(cell | rivals together)."""
        weights = rival_weights / max(float(rival_weights.sum()), 1e-300)
        with np.errstate(divide="ignore", invalid="ignore"):
            rival_scores = np.log(weights @ np.exp(self.scores))
            return np.asarray(self.scores[class_index] - rival_scores)


def _list_score_tables(model: NaiveBayesModel) -> list[ScoreTable]:
    score_tables = [
        ScoreTable(factor.name, factor.cells.rounded_labels, factor.log_probability, factor.support)
        for factor in model.factors
        if isinstance(factor, CellFactor)
    ]
    return score_tables + [
        ScoreTable(" & ".join(pair.names), pair.describe_groups(), pair.scores, pair.support)
        for pair in model.pairs
    ]
