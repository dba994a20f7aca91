"""Empirical Bayes for class-by-bin tables of numbers whose noise variance is known.

Neighbouring bins of a number carry nearly the same information about the class, so the noise of a
bin can be measured by its neighbours. The model of a feature, after Aitchison's logistic normal
laws and with a smooth kernel as in Gaussian processes:

    log P(bin | class) = margin + strength * departure of the class - normalising constant
    margin       normal, half of its variance shared with neighbours
    departure    normal, zero over all classes; either rough (every bin its own) or smooth

Its mode is found by Gauss-Newton for a grid of strengths, rough and smooth; how plausible each of
them is is learnt from all features together (mixture.py, on Laplace's approximation of the
evidence), and the probabilities are averaged. Probabilities stay positive by construction.

What looks like noise in every feature may still add up over many: a part of the log-probabilities
is that of the plain counts, which are not shrunk and whose errors average out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.estimation.mixture import fit_mixture, pool_log_linearly

__all__ = ["TablePosterior", "fit_posteriors", "smooth_tables"]


BIN_STRENGTHS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Standard deviations of a class's departure from the margin, in log-probability."""
SHARED_VARIANCE_PARTS = (0.0, 0.9)
"""Part of a departure's variance that neighbouring bins share: rough, smooth."""
STRENGTH_GRID = np.array(
    [(s, part) for s in BIN_STRENGTHS for part in SHARED_VARIANCE_PARTS[: 1 if s == 0 else None]]
)
"""The points of the grid: strength and shared part."""
MARGIN_STD = 1.5
"""Standard deviation of the margin's log-probabilities."""
MARGIN_SHARED_PART = 0.5
"""Part of the margin's variance that neighbouring bins share."""
KERNEL_RANGE = 0.35
"""How far bins are neighbours, as a part of the range."""
MAX_NEWTON_STEPS = 30
"""Most Gauss-Newton steps to a mode."""
MAX_STEP_HALVINGS = 8
"""How often a step that makes the loss worse is halved, at most."""
EM_STEPS = 30
"""EM steps that learn the weights of the grid."""
PRIOR_FEATURES = 4.0
"""Features that the prior of the grid's weights is worth; 12 compared:
docs/experiments/local.md."""
MAX_COUNT_WEIGHT = 0.15
"""Weight of the plain counts' log-probability, less where their noise is wider than all people;
.08, .15 and .3 compared: docs/experiments/local.md, "Numbers: a part of the plain counts"."""
TINY = 1e-12


def smooth_tables(
    tables: Mapping[str, tuple[Floats, Floats]],
    bin_counts: Mapping[str, int],
    prior: Floats,
    people_by_feature: Mapping[str, float],
    own_noise_shares: Mapping[str, float],
) -> dict[str, Floats]:
    """P(bin | class) of every numeric feature.

    Parameters
    ----------
    tables : mapping of name to (counts, variances)
        Each of shape (classes, cells).
    bin_counts : mapping of name to int
        How many of the cells are bins in order; a further one is for missing values.
    prior : array of shape (classes,)
        Valid class probabilities.
    people_by_feature : mapping of name to float
        How many people each table was estimated from; sampling noise is judged by it.
    own_noise_shares : mapping of name to float
        Which part of the noise of each table is every class's own. What only moves people from
        class to class does not average out, and plain counts are left out as far.
    """
    log_evidence, grid_probabilities, share_tables = {}, {}, {}
    for name, (counts, variances) in tables.items():
        table_total = max(float(counts.sum()), 1.0)
        share_tables[name] = counts / table_total, variances / table_total**2
    for name, posterior in fit_posteriors(share_tables, bin_counts, prior, people_by_feature):
        log_evidence[name] = posterior.log_evidence
        grid_probabilities[name] = np.maximum(
            _compute_probabilities(posterior.roots, posterior.modes[None])[0], TINY
        )
    start_weights = np.where(STRENGTH_GRID[:, 0] == 0, 1.0, 1 / len(SHARED_VARIANCE_PARTS))
    _, grid_weights = fit_mixture(
        np.array(list(log_evidence.values())),
        start_weights / start_weights.sum(),
        prior_weight=PRIOR_FEATURES,
        steps=EM_STEPS,
    )
    mean_probabilities = {
        name: np.tensordot(feature_weights, grid_probabilities[name], axes=1)
        for name, feature_weights in zip(log_evidence, grid_weights, strict=True)
    }
    pooled_tables = {}
    for name, (counts, variances) in tables.items():
        # noise wider than the number of people carries no evidence
        known_share = min(1.0, people_by_feature[name] ** 2 / max(float(variances.mean()), TINY))
        pooled_tables[name] = pool_log_linearly(
            mean_probabilities[name],
            counts,
            MAX_COUNT_WEIGHT * known_share * own_noise_shares[name],
        )
    return pooled_tables


@dataclass(frozen=True, eq=False)
class TablePosterior:
    """What a noisy table leaves possible, at each strength: normal laws of standardised parameters.

    Parameters
    ----------
    log_evidence : array of shape (grid,)
    modes : array of shape (grid, parameters)
    precisions : array of shape (grid, parameters, parameters)
    roots : array of shape (grid, classes, cells, parameters)
        From parameters to log-probabilities.
    """

    log_evidence: Floats
    modes: Floats
    precisions: Floats
    roots: Floats

    def draw(self, grid_points: Integers, rng: np.random.Generator) -> Floats:
        """P(cell | class), drawn once for each given grid point: (draws, classes, cells)."""
        drawn_tables = np.empty((len(grid_points), *self.roots.shape[1:3]))
        for grid_point in np.unique(grid_points):
            draw_indices = np.flatnonzero(grid_points == grid_point)
            precision_root = np.linalg.cholesky(self.precisions[grid_point])
            z = rng.standard_normal((len(precision_root), len(draw_indices)))
            z = self.modes[grid_point] + np.linalg.solve(precision_root.T, z).T
            drawn_tables[draw_indices] = _compute_probabilities(
                self.roots[grid_point][None], z[:, None]
            )[:, 0]
        return drawn_tables


def fit_posteriors(
    tables: Mapping[str, tuple[Floats, Floats]],
    bin_counts: Mapping[str, int],
    prior: Floats,
    people_by_feature: Mapping[str, float],
) -> Iterator[tuple[str, TablePosterior]]:
    """Each feature with what its table leaves possible.

    Parameters are those of ``smooth_tables``, with shares of all people in place of counts.
    """
    names_by_shape: dict[tuple[int, int], list[str]] = {}
    for name, (shares, _) in tables.items():
        names_by_shape.setdefault((shares.shape[1], bin_counts[name]), []).append(name)
    for (cell_count, ordered_cells), names in names_by_shape.items():
        joint_shares, noise_variances = (np.array([tables[n][i] for n in names]) for i in (0, 1))
        people_estimates = np.array([people_by_feature[n] for n in names])
        prior_roots = _build_prior_roots(len(prior), cell_count, ordered_cells)
        mode_arrays = _find_modes(
            joint_shares, noise_variances, people_estimates, np.maximum(prior, TINY), prior_roots
        )
        for name, log_evidence, modes, precisions in zip(names, *mode_arrays, strict=True):
            yield name, TablePosterior(log_evidence, modes, precisions, prior_roots)


@cache
def _build_prior_roots(class_count: int, cell_count: int, bin_count: int) -> Floats:
    """For each grid point a root of the prior covariance: standard normals to log-probabilities.

    Shape (grid, classes, cells, classes * cells).
    """
    eigenvalues, eigenvectors = np.linalg.eigh(np.eye(class_count) - 1 / class_count)
    departure_basis = eigenvectors[:, eigenvalues > 0.5] * np.sqrt(
        class_count / max(class_count - 1, 1)
    )
    # of the margin and of each grid point a kernel over the cells; the bins are neighbours in order
    bin_positions = np.arange(bin_count) / bin_count
    bin_kernel = np.exp(-0.5 * ((bin_positions[:, None] - bin_positions) / KERNEL_RANGE) ** 2)
    shared_parts = np.array([MARGIN_SHARED_PART, *STRENGTH_GRID[:, 1]])[:, None, None]
    cell_kernels = np.tile(np.eye(cell_count), (len(shared_parts), 1, 1))
    cell_kernels[:, :bin_count, :bin_count] = shared_parts * bin_kernel + (
        1 - shared_parts
    ) * np.eye(bin_count)
    margin_root, *cell_roots = np.linalg.cholesky(cell_kernels)
    margin_root = np.tile(MARGIN_STD * margin_root, (class_count, 1))
    grid_roots = [
        np.concatenate([margin_root, np.kron(departure_basis, strength * cell_root)], axis=1)
        for strength, cell_root in zip(STRENGTH_GRID[:, 0], cell_roots, strict=True)
    ]
    return np.array(grid_roots).reshape(-1, class_count, cell_count, class_count * cell_count)


def _find_modes(
    joint_shares: Floats, noise_variances: Floats, people: Floats, prior: Floats, roots: Floats
) -> tuple[Floats, Floats, Floats]:
    """Log-evidence (features, grid), modes (…, size) and precisions (…, size, size)."""
    feature_count = len(joint_shares)
    grid_size, class_count, cell_count, parameter_count = roots.shape
    joint_shares, noise_variances = joint_shares[:, None], noise_variances[:, None]
    people = people[:, None, None, None]
    flat_shape = (feature_count, grid_size, class_count * cell_count)
    diagonal = np.arange(parameter_count)
    z = np.zeros((feature_count, grid_size, parameter_count))
    probabilities = _compute_probabilities(roots, z)
    for _ in range(MAX_NEWTON_STEPS):
        expected_joint = prior[:, None] * probabilities
        cell_weights = 1 / (noise_variances + expected_joint * (1 - expected_joint) / people + TINY)
        mean_roots = np.einsum("fgkd,gkdn->fgkn", probabilities, roots)
        cell_slopes = (expected_joint[..., None] * (roots - mean_roots[:, :, :, None])).reshape(
            *flat_shape, parameter_count
        )
        weighted_slopes = np.swapaxes(cell_slopes * cell_weights.reshape(*flat_shape, 1), 2, 3)
        curvature = weighted_slopes @ cell_slopes
        curvature[..., diagonal, diagonal] += 1
        log_gradient = (weighted_slopes @ (joint_shares - expected_joint).reshape(*flat_shape, 1))[
            ..., 0
        ] - z
        newton_step = np.linalg.solve(curvature, log_gradient[..., None])[..., 0]
        previous_loss = _compute_loss(joint_shares - expected_joint, cell_weights, z)
        for _ in range(MAX_STEP_HALVINGS):
            probabilities = _compute_probabilities(roots, z + newton_step)
            error = joint_shares - prior[:, None] * probabilities
            new_loss = _compute_loss(error, cell_weights, z + newton_step)
            is_worse = new_loss > previous_loss + 1e-9
            if not is_worse.any():
                break
            newton_step = np.where(is_worse[..., None], newton_step / 2, newton_step)
        z = z + newton_step
        if np.abs(newton_step).max() < 1e-2:
            break
    probabilities = _compute_probabilities(roots, z)
    expected_joint = prior[:, None] * probabilities
    cell_variances = noise_variances + expected_joint * (1 - expected_joint) / people + TINY
    log_density = -0.5 * np.log(cell_variances).sum(axis=(2, 3)) - _compute_loss(
        joint_shares - expected_joint, 1 / cell_variances, z
    )
    return log_density - 0.5 * np.linalg.slogdet(curvature)[1], z, curvature


def _compute_probabilities(roots: Floats, z: Floats) -> Floats:
    """P(cell | class) of standardised parameters."""
    logits = np.einsum("gkdn,fgn->fgkd", roots, z)
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def _compute_loss(error: Floats, weight: Floats, z: Floats) -> Floats:
    """Minus the log-density of table and parameters, up to a constant."""
    return np.asarray(0.5 * (weight * error**2).sum(axis=(2, 3)) + 0.5 * (z**2).sum(axis=-1))
