"""Modes of logistic normal laws of class-by-cell tables, in time that is linear in the classes.

    log P(cell | class) = margin + strength * departure of the class - normalising constant

The covariance of these log-probabilities, before any data, is that of a class for itself and of
all classes together: a I (x) G + 1 1' (x) (M - a G / K) for K classes, with the covariances M of
the margin and G of departures. Data say something about each class for itself. So the equations of
a Gauss-Newton step fall apart into one block per class, of the size of its cells, and one more
block for the sum over classes (docs/maths.md, "Smoothing: one block per class").

A law is held by coefficients b, of shape (classes, cells): with G = L L' the log-probabilities are
L (a b_c + (L^-1 M L'^-1 - a I / K) (b_1 + … + b_K)).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from discreet.arrays import Floats, Integers

__all__ = [
    "SHARED_VARIANCE_PARTS",
    "STRENGTH_GRID",
    "TablePosterior",
    "TablePrior",
    "build_table_prior",
    "compute_softmax",
    "find_modes",
    "single_blas_thread",
]

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
MAX_STEP_SIZE = 1e-2
"""Steps end when no standardised parameter moves further than this."""
MAX_BLOCK_NUMBERS = 1 << 14
"""Numbers in the blocks of all classes that are solved at once, in the processor's cache."""
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class TablePrior:
    """Normal laws of log P(cell | class), one for each point of the grid.

    Parameters
    ----------
    margin_root : array of shape (cells, cells)
        A root of M, the covariance of the margin.
    cell_roots : array of shape (grid, cells, cells)
        The Cholesky root L of the correlations of a class's departures.
    departure_basis : array of shape (classes, classes - 1)
        From independent departures to those of the classes, which add up to zero.
    strengths : array of shape (grid,)
        Standard deviations of departures.
    """

    margin_root: Floats
    cell_roots: Floats
    departure_basis: Floats
    strengths: Floats

    @cached_property
    def own_variances(self) -> Floats:
        """The variance a of a class for itself, of shape (grid,)."""
        class_count = len(self.departure_basis)
        return np.asarray(self.strengths**2 * class_count / max(class_count - 1, 1))

    @cached_property
    def margin_projection(self) -> Floats:
        """The margin's root, standardised by departures: L^-1 times it; (grid, cells, cells)."""
        return np.asarray(np.linalg.solve(self.cell_roots, self.margin_root[None]), np.float64)

    @cached_property
    def shared_covariances(self) -> Floats:
        """L^-1 M L'^-1 - a I / K, of shape (grid, cells, cells)."""
        margin_covariances = self.margin_projection @ np.swapaxes(self.margin_projection, 1, 2)
        class_count, cell_count = len(self.departure_basis), len(self.margin_root)
        own_parts = self.own_variances[:, None, None] / class_count * np.eye(cell_count)
        return np.asarray(margin_covariances - own_parts)

    def apply_covariance(self, grid_points: Integers, coefficients: Floats) -> Floats:
        """Log-probabilities by coefficients, but for the root L; (laws, classes, cells)."""
        class_sums = coefficients.sum(axis=1)[:, None]
        # the covariance is symmetric: a row times it is it times the row
        shared_parts = class_sums @ self.shared_covariances[grid_points]
        return np.asarray(self.own_variances[grid_points, None, None] * coefficients + shared_parts)

    def compute_parameters(self, grid_points: Integers, coefficients: Floats) -> Floats:
        """Standard normal parameters of which coefficients are the image: (laws, parameters)."""
        margins = coefficients.sum(axis=1)[:, None] @ self.margin_projection[grid_points]
        departures = self.strengths[grid_points, None, None] * (
            self.departure_basis.T @ coefficients
        )
        return np.concatenate([margins, departures], axis=1).reshape(len(coefficients), -1)

    def build_root(self, grid_point: int) -> Floats:
        """From standard normal parameters to log-probabilities: (classes, cells, parameters)."""
        class_count, cell_count = len(self.departure_basis), len(self.margin_root)
        departure_root = self.strengths[grid_point] * self.cell_roots[grid_point]
        root = np.concatenate(
            [
                np.tile(self.margin_root, (class_count, 1)),
                np.kron(self.departure_basis, departure_root),
            ],
            axis=1,
        )
        return root.reshape(class_count, cell_count, -1)


@cache
def build_table_prior(class_count: int, cell_count: int, bin_count: int) -> TablePrior:
    """Build the prior of a table; its first cells are bins in order, the others alone."""
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
    return TablePrior(
        MARGIN_STD * margin_root, np.array(cell_roots), departure_basis, STRENGTH_GRID[:, 0]
    )


@dataclass(frozen=True, eq=False)
class TablePosterior:
    """What a noisy table leaves possible, at each strength: normal laws of standardised parameters.

    Parameters
    ----------
    log_evidence : array of shape (grid,)
    probabilities : array of shape (grid, classes, cells)
        P(cell | class) at the modes.
    coefficients : array of shape (grid, classes, cells)
        Of the modes.
    joint_slopes, cell_weights : arrays of shape (grid, classes, cells)
        Where the precisions are taken: P(class, cell), and 1 / variance of each cell.
    table_prior : TablePrior
    """

    log_evidence: Floats
    probabilities: Floats
    coefficients: Floats
    joint_slopes: Floats
    cell_weights: Floats
    table_prior: TablePrior

    def compute_law(self, grid_point: int) -> tuple[Floats, Floats, Floats]:
        """Mode, precision and root of the standardised parameters at a point of the grid."""
        root = self.table_prior.build_root(grid_point)
        joint = self.joint_slopes[grid_point]
        conditional = joint / joint.sum(axis=1, keepdims=True)
        mean_roots = np.einsum("kd,kdn->kn", conditional, root)
        slopes = (joint[..., None] * (root - mean_roots[:, None])).reshape(-1, root.shape[2])
        precision = slopes.T @ (slopes * self.cell_weights[grid_point].reshape(-1, 1))
        precision[np.diag_indices_from(precision)] += 1
        mode = self.table_prior.compute_parameters(
            np.array([grid_point]), self.coefficients[[grid_point]]
        )[0]
        return mode, precision, root

    def draw(self, grid_points: Integers, rng: np.random.Generator) -> Floats:
        """P(cell | class), drawn once for each given grid point: (draws, classes, cells)."""
        drawn_tables = np.empty((len(grid_points), *self.probabilities.shape[1:]))
        with single_blas_thread():
            for grid_point in np.unique(grid_points):
                draw_indices = np.flatnonzero(grid_points == grid_point)
                mode, precision, root = self.compute_law(int(grid_point))
                precision_root = np.linalg.cholesky(precision)
                z = rng.standard_normal((len(precision_root), len(draw_indices)))
                z = mode + np.linalg.solve(precision_root.T, z).T
                drawn_tables[draw_indices] = compute_softmax(np.tensordot(z, root, axes=(1, 2)))
        return drawn_tables


def find_modes(
    joint_shares: Floats,
    noise_variances: Floats,
    people: Floats,
    prior: Floats,
    table_prior: TablePrior,
) -> list[TablePosterior]:
    """Find the modes of several tables at every point of the grid, by Gauss-Newton.

    Parameters
    ----------
    joint_shares, noise_variances : arrays of shape (tables, classes, cells)
    people : array of shape (tables,)
        How many people each table was estimated from.
    prior : array of shape (classes,)
        Positive.
    table_prior : TablePrior
    """
    grid_size = len(table_prior.strengths)
    laws = _LawBatch(
        np.repeat(joint_shares, grid_size, axis=0),
        np.repeat(noise_variances, grid_size, axis=0),
        np.repeat(people, grid_size)[:, None, None],
        prior[:, None],
        np.tile(np.arange(grid_size), len(joint_shares)),
        table_prior,
    )
    with single_blas_thread():
        coefficients, joint_slopes = _run_newton_steps(laws)
        probabilities = laws.compute_probabilities(coefficients)
        cell_weights = laws.compute_weights(probabilities)
        log_density = 0.5 * np.log(cell_weights).sum(axis=(1, 2)) - laws.compute_loss(
            probabilities, cell_weights, coefficients
        )
        cell_weights = laws.compute_weights(joint_slopes / laws.prior)
        log_evidence = log_density - 0.5 * laws.compute_log_determinants(joint_slopes, cell_weights)
    table_shape = (len(joint_shares), grid_size, *joint_shares.shape[1:])
    probabilities, coefficients, joint_slopes, cell_weights = (
        array.reshape(table_shape)
        for array in (probabilities, coefficients, joint_slopes, cell_weights)
    )
    return [
        TablePosterior(
            evidence,
            probabilities[i],
            coefficients[i],
            joint_slopes[i],
            cell_weights[i],
            table_prior,
        )
        for i, evidence in enumerate(log_evidence.reshape(-1, grid_size))
    ]


@dataclass(frozen=True, eq=False)
class _LawBatch:
    """Tables, each with every point of the grid: one law for each of them.

    Parameters
    ----------
    joint_shares, noise_variances : arrays of shape (laws, classes, cells)
    people : array of shape (laws, 1, 1)
    prior : array of shape (classes, 1)
    grid_points : array of shape (laws,)
    table_prior : TablePrior
    """

    joint_shares: Floats
    noise_variances: Floats
    people: Floats
    prior: Floats
    grid_points: Integers
    table_prior: TablePrior

    def compute_probabilities(self, coefficients: Floats) -> Floats:
        """P(cell | class)."""
        standard_logits = self.table_prior.apply_covariance(self.grid_points, coefficients)
        cell_roots = self.table_prior.cell_roots[self.grid_points]
        return compute_softmax(standard_logits @ np.swapaxes(cell_roots, 1, 2))

    def compute_weights(self, probabilities: Floats) -> Floats:
        """1 / variance of each cell, of its noise and of sampling together."""
        expected_joint = self.prior * probabilities
        sampling_variances = expected_joint * (1 - expected_joint) / self.people
        return np.asarray(1 / (self.noise_variances + sampling_variances + TINY))

    def compute_loss(
        self, probabilities: Floats, cell_weights: Floats, coefficients: Floats
    ) -> Floats:
        """Minus the log-density of table and parameters, up to a constant."""
        error = self.joint_shares - self.prior * probabilities
        images = self.table_prior.apply_covariance(self.grid_points, coefficients)
        return np.asarray(
            0.5 * (cell_weights * error**2).sum(axis=(1, 2))
            + 0.5 * (coefficients * images).sum(axis=(1, 2))
        )

    def compute_step(
        self, probabilities: Floats, cell_weights: Floats, coefficients: Floats
    ) -> Floats:
        """The Gauss-Newton step of the coefficients."""
        joint_slopes = self.prior * probabilities
        weighted_errors = joint_slopes * cell_weights * (self.joint_shares - joint_slopes)
        gradients = weighted_errors - probabilities * weighted_errors.sum(axis=2, keepdims=True)
        cell_roots = self.table_prior.cell_roots[self.grid_points]
        sides = gradients @ cell_roots - coefficients
        steps = np.empty_like(coefficients)
        for laws, shared_covariances, curvatures, own_blocks in self._iter_blocks(
            joint_slopes, cell_weights
        ):
            solved = np.linalg.solve(
                own_blocks, np.concatenate([curvatures, sides[laws][..., None]], axis=3)
            )
            own_curvatures, own_steps = solved[..., :-1], solved[..., -1]
            shared_blocks = own_curvatures.sum(axis=1) @ shared_covariances
            shared_blocks[..., *np.diag_indices(shared_blocks.shape[-1])] += 1
            class_sums = np.linalg.solve(shared_blocks, own_steps.sum(axis=1)[..., None])
            shared_steps = own_curvatures @ (shared_covariances @ class_sums)[:, None]
            steps[laws] = own_steps - shared_steps[..., 0]
        return steps

    def compute_log_determinants(self, joint_slopes: Floats, cell_weights: Floats) -> Floats:
        """Log-determinants of the precisions of the standardised parameters."""
        log_determinants = np.empty(len(joint_slopes))
        for laws, shared_covariances, curvatures, own_blocks in self._iter_blocks(
            joint_slopes, cell_weights
        ):
            own_curvatures = np.linalg.solve(own_blocks, curvatures).sum(axis=1)
            shared_blocks = own_curvatures @ shared_covariances
            shared_blocks[..., *np.diag_indices(shared_blocks.shape[-1])] += 1
            log_determinants[laws] = (
                np.linalg.slogdet(own_blocks)[1].sum(axis=1) + np.linalg.slogdet(shared_blocks)[1]
            )
        return log_determinants

    def _iter_blocks(
        self, joint_slopes: Floats, cell_weights: Floats
    ) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
        """Some laws at a time, with their covariances, curvatures and the blocks of each class.

        With the softmax's derivative diag(e) (I - 1 p') a class has the curvature
        H = diag(c) - p c' - c p' + (c_1 + c_2 + …) p p' for c = e^2 w, here between roots: L' H L.
        """
        conditional = joint_slopes / self.prior
        squared_slopes = joint_slopes**2 * cell_weights
        law_count, class_count, cell_count = joint_slopes.shape
        laws_at_once = max(MAX_BLOCK_NUMBERS // (class_count * cell_count**2), 1)
        diagonal = np.arange(cell_count)
        for first_law in range(0, law_count, laws_at_once):
            laws = slice(first_law, first_law + laws_at_once)
            grid_points = self.grid_points[laws]
            p, c = conditional[laws], squared_slopes[laws]
            roots = self.table_prior.cell_roots[grid_points]
            weighted_roots = np.swapaxes(roots, 1, 2)[:, None] * c[:, :, None]
            curvatures = weighted_roots @ roots[:, None]
            crossed = (p @ roots)[..., None] * (
                (c - 0.5 * c.sum(axis=2, keepdims=True) * p) @ roots
            )[:, :, None]
            curvatures -= crossed
            curvatures -= np.swapaxes(crossed, 2, 3)
            own_variances = self.table_prior.own_variances[grid_points, None, None, None]
            own_blocks = own_variances * curvatures
            own_blocks[..., diagonal, diagonal] += 1
            yield laws, self.table_prior.shared_covariances[grid_points], curvatures, own_blocks


def _run_newton_steps(laws: _LawBatch) -> tuple[Floats, Floats]:
    """Coefficients of the modes, and P(class, cell) where the last step was taken."""
    coefficients = np.zeros_like(laws.joint_shares)
    probabilities = laws.compute_probabilities(coefficients)
    for _ in range(MAX_NEWTON_STEPS):
        joint_slopes = laws.prior * probabilities
        cell_weights = laws.compute_weights(probabilities)
        newton_step = laws.compute_step(probabilities, cell_weights, coefficients)
        previous_loss = laws.compute_loss(probabilities, cell_weights, coefficients)
        for _ in range(MAX_STEP_HALVINGS):
            probabilities = laws.compute_probabilities(coefficients + newton_step)
            new_loss = laws.compute_loss(probabilities, cell_weights, coefficients + newton_step)
            is_worse = new_loss > previous_loss + 1e-9
            if not is_worse.any():
                break
            newton_step = np.where(is_worse[:, None, None], newton_step / 2, newton_step)
        coefficients = coefficients + newton_step
        parameter_step = laws.table_prior.compute_parameters(laws.grid_points, newton_step)
        if np.abs(parameter_step).max() < MAX_STEP_SIZE:
            break
    return coefficients, joint_slopes


def compute_softmax(logits: Floats) -> Floats:
    """Probabilities that are proportional to exponentials, along the last axis."""
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Linear algebra on one thread: on small blocks more of them mostly wait for each other."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield
