"""The delta of a whole release: noise and choices, one after the other, never stated too small.

V(x) is the largest delta at epsilon = x of all steps from some step on, whatever the steps before
have released. After the last step it is (1 - exp(x))^+. A step whose privacy loss is L under the
one table makes E V(x - L) of it, the largest over all that an adversary may have asked for, and
because that includes what depends on earlier outcomes, the recursion needs no independence.

=========== ========================================================================================
noise       discrete Gaussian: L is normal with the variance mu^2 = 2 rho and the mean mu^2 / 2, but
            for a factor close to 1 (below)
choice      exponential mechanism of bounded range epsilon: L is between t - epsilon and t, for the
            worst t. V is convex in exp(x), so that the ends are worst (Dong, Durfee, Rogers 2020)
pure step   L is between -epsilon and epsilon
=========== ========================================================================================

**On a grid.** V is known at multiples of a step of the grid and, being convex in exp(x), is at most
the chord in between ("connect the dots": Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022).
Everything else is rounded towards more loss as well; sums are of positive numbers, without FFT.

**Discrete noise.** A discrete Gaussian of parameter v about s is a normal number of variance
v - r^2 about s, randomly rounded by a discrete Gaussian of parameter r^2, but for a factor between
exp(-eta) and exp(eta); eta is about 6 exp(-4 pi^2 r^2) (docs/maths.md; the idea is Peikert's of
2010). Rounding costs nothing. So each number that one person moves costs the noise r^2 and an eta,
and the whole keeps exp(eta) V(epsilon - 2 eta), with all etas together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.arrays import Floats

__all__ = [
    "ChoiceStep",
    "NoiseStep",
    "PureStep",
    "ReleaseStep",
    "compute_gaussian_delta",
    "compute_gaussian_rho",
    "compute_release_delta",
    "compute_release_deltas",
    "find_usable_share",
    "split_promise",
]

MAX_ACCOUNTED_EPSILON = 64.0
"""Largest epsilon that is accounted for numerically; beyond it exp(epsilon) is too large."""
MAX_SPLIT_DELTA = 0.1
"""Largest delta that is split in two after a pure part; a larger one promises next to nothing."""
GRID_STEPS_PER_SD = 48.0
"""Steps of the grid per standard deviation of the loss; 24 and 96 compared:
docs/experiments/central.md."""
TAIL_CHANCE = 1e-6
"""Chance, as a multiple of delta, of a loss beyond the range of the grid; it is added to delta."""
SMOOTHING_VARIANCES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0)
"""Candidates for r^2, the part of the noise that makes it continuous; the best is used."""
FLOAT_MARGIN = 1e-12
"""Relative margin for the errors of floats, which are less."""
SHARE_DENOMINATOR = 1024
"""A usable share is a whole number of parts of this size, rounded down."""
TINY_DELTA = 1e-300
"""Stands for a delta of zero where its logarithm is needed."""


@dataclass(frozen=True)
class NoiseStep:
    """Discrete Gaussian noise of the variance (sensitivity^2 / 2 rho), on whole numbers.

    Parameters
    ----------
    rho : Fraction or float
    sensitivity : int
        How far one person moves the numbers, in the Euclidean norm.
    coordinates : int
        How many of the numbers one person moves.
    """

    rho: Fraction | float
    sensitivity: int = 1
    coordinates: int = 1


@dataclass(frozen=True)
class ChoiceStep:
    """An exponential mechanism of bounded range epsilon = sqrt(8 rho).

    Parameters
    ----------
    rho : Fraction or float
    """

    rho: Fraction | float


@dataclass(frozen=True)
class PureStep:
    """Anything that is epsilon-DP, epsilon = sqrt(2 rho).

    Parameters
    ----------
    rho : Fraction or float
    """

    rho: Fraction | float


ReleaseStep = NoiseStep | ChoiceStep | PureStep
"""A step of a release, by its share of rho."""
Promise = tuple[float, float]
"""Epsilon and delta."""


def compute_gaussian_delta(mu: float, epsilon: float) -> float:
    """Delta of normal noise of variance 1 on a number that one person moves by mu.

    Balle, Wang 2018, theorem 8.

    Parameters
    ----------
    mu : float
    epsilon : float
    """
    near, far = (epsilon / mu + sign * mu / 2 for sign in (-1, 1))
    tails = [math.erfc(position / math.sqrt(2)) / 2 for position in (near, far)]
    return tails[0] - math.exp(epsilon) * tails[1]


@lru_cache(maxsize=256)
def compute_gaussian_rho(epsilon: float, delta: float) -> float:
    """Return the rho of continuous normal noise that just keeps (epsilon, delta).

    It bounds what any release gets here, and is not a promise by itself.

    Parameters
    ----------
    epsilon : float
        Up to MAX_ACCOUNTED_EPSILON.
    delta : float

    Examples
    --------
    >>> round(compute_gaussian_rho(1.0, 1e-6), 4)
    0.028
    """
    low, high = 0.0, math.sqrt(2 * epsilon) + 40.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if compute_gaussian_delta(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low * low / 2


@lru_cache(maxsize=256)
def split_promise(epsilon: float, delta: float, pure_epsilon: float) -> tuple[Promise, ...]:
    """What must be kept after a part that is pure_epsilon-DP, so that the whole keeps its promise.

    That V(epsilon - pure_epsilon) is at most d1 and V(epsilon + pure_epsilon) at most d2, where
    p d1 + (1-p) d2 = delta and p = exp(pure_epsilon) / (1 + exp(pure_epsilon)). It holds also if
    the part decides what follows. d1 > delta is the one that leaves most (docs/maths.md).

    Parameters
    ----------
    epsilon, delta : float
        Of the whole.
    pure_epsilon : float
        Of the first part, below epsilon.

    Examples
    --------
    >>> [(round(e, 2), round(d * 1e6, 2)) for e, d in split_promise(1.0, 1e-6, 0.04)]
    [(0.96, 1.63), (1.04, 0.34)]
    """
    chance = 1 / (1 + math.exp(-pure_epsilon))
    near, far = math.nextafter(epsilon - pure_epsilon, 0.0), epsilon + pure_epsilon
    if far > MAX_ACCOUNTED_EPSILON or delta > MAX_SPLIT_DELTA:
        return ((near, delta),)

    def split(first_delta: float) -> tuple[Promise, ...]:
        second_delta = (delta - chance * first_delta) / (1 - chance) * (1 - 1e-9)
        return (near, first_delta), (far, second_delta)

    low, high = delta, delta / chance * (1 - 1e-6)
    while high - low > 1e-4 * delta:
        middle = (low + high) / 2
        near_rho, far_rho = (compute_gaussian_rho(*promise) for promise in split(middle))
        if near_rho < far_rho:
            low = middle
        else:
            high = middle
    return split(low)


@lru_cache(maxsize=64)
def find_usable_share(steps: tuple[ReleaseStep, ...], promises: tuple[Promise, ...]) -> Fraction:
    """Largest share of every step's rho at which the whole keeps its promises, rounded down.

    Parameters
    ----------
    steps : tuple of ReleaseStep
        All steps, in the order of their release.
    promises : tuple of (float, float)
        Epsilons and deltas that the whole must keep, each of them.

    Examples
    --------
    >>> float(find_usable_share((NoiseStep(0.025), ChoiceStep(0.003)), ((1.0, 1e-6),)))
    0.97...
    """
    low, high = 0, SHARE_DENOMINATOR + 1
    is_accounted = max(epsilon for epsilon, _ in promises) <= MAX_ACCOUNTED_EPSILON
    trial = SHARE_DENOMINATOR if is_accounted else 0
    while low < trial < high:
        stated_deltas = compute_release_deltas(steps, promises, trial / SHARE_DENOMINATOR)
        delta_pairs = [
            (delta, stated) for (_, delta), stated in zip(promises, stated_deltas, strict=True)
        ]
        is_kept = all(stated <= delta for delta, stated in delta_pairs)
        logs = [
            math.log(max(min(stated, 0.5), TINY_DELTA)) / math.log(min(delta, 0.5))
            for delta, stated in delta_pairs
        ]
        low, high = (trial, high) if is_kept else (low, trial)
        # ln delta is about -epsilon^2 / (4 rho share): a guess, or half of what is left
        guess = round(trial * min(logs) + (0.5 if is_kept else -0.5))
        trial = guess if low < guess < high else (low + high) // 2
    return Fraction(low, SHARE_DENOMINATOR)


def compute_release_delta(
    steps: Sequence[ReleaseStep], epsilon: float, delta: float, share: float = 1.0
) -> float:
    """Upper bound of the delta at which the whole release keeps epsilon.

    Parameters
    ----------
    steps : sequence of ReleaseStep
        All steps, in the order of their release. Leaving some out costs no more.
    epsilon : float
        From 0 to MAX_ACCOUNTED_EPSILON.
    delta : float
        About what is expected: how far the grid reaches.
    share : float, default 1
        By which the rho of every step is multiplied.

    Examples
    --------
    >>> steps = [NoiseStep(0.02), ChoiceStep(0.002), NoiseStep(0.004, 1024, 3)]
    >>> 4e-7 < compute_release_delta(steps, 1.0, 1e-6) < 5e-7
    True
    """
    return compute_release_deltas(steps, ((epsilon, delta),), share)[0]


def compute_release_deltas(
    steps: Sequence[ReleaseStep], promises: Sequence[Promise], share: float = 1.0
) -> list[float]:
    """Upper bounds of the deltas at which the whole release keeps several epsilons.

    Parameters
    ----------
    steps : sequence of ReleaseStep
        All steps, in the order of their release.
    promises : sequence of (float, float)
        Epsilons, and about which deltas are expected.
    share : float, default 1
        By which the rho of every step is multiplied.
    """
    variance = 2 * share * sum(float(step.rho) for step in steps)
    if variance <= 0:
        return [0.0] * len(promises)
    epsilons = np.array([epsilon for epsilon, _ in promises])
    tail_chance = TAIL_CHANCE * min(delta for _, delta in promises)
    grid_step = math.sqrt(variance) / GRID_STEPS_PER_SD
    reach = math.ceil((epsilons.max() + 3 * math.sqrt(variance)) / grid_step)
    profile = _Profile(grid_step, -np.expm1(grid_step * np.arange(-reach, 1)), reach)
    total_eta = 0.0
    gaussian_variance = 0.0  # of the noise steps between two others: one step together
    for step in reversed(steps):
        if isinstance(step, NoiseStep):
            smoothed_variance, eta = _smooth_noise(step, share, variance, float(epsilons.min()))
            if not math.isfinite(eta):
                return [1.0] * len(promises)  # too little noise for its grid of whole numbers
            gaussian_variance += smoothed_variance
            total_eta += eta
            continue
        profile = profile.precede_by_noise(gaussian_variance, tail_chance)
        gaussian_variance = 0.0
        step_rho = share * float(step.rho) * (1 + FLOAT_MARGIN)
        profile = (
            profile.precede_by_choice(math.sqrt(8 * step_rho))
            if isinstance(step, ChoiceStep)
            else profile.precede_by_pure_step(math.sqrt(2 * step_rho))
        )
    profile = profile.precede_by_noise(gaussian_variance, tail_chance)
    bounds = math.exp(total_eta) * profile.interpolate(epsilons - 2 * total_eta)
    return [min(float(bound) * (1 + 1e-9), 1.0) for bound in bounds]


def _smooth_noise(
    step: NoiseStep, share: float, variance: float, epsilon: float
) -> tuple[float, float]:
    """Variance of the loss of noise made continuous, and eta, for the r^2 that costs the least."""
    step_variance = 2 * share * float(step.rho) * (1 + FLOAT_MARGIN)
    lattice_variance = step.sensitivity**2 / step_variance
    best_cost, best_variance, best_eta = math.inf, math.inf, math.inf
    for smoothing_variance in SMOOTHING_VARIANCES:
        smoothed_part = smoothing_variance / lattice_variance
        if smoothed_part >= 0.5:
            break
        ripple = _compute_ripple(smoothing_variance)
        # of the normal number, given the rounded one
        left_ripple = _compute_ripple(smoothing_variance * (2 - smoothed_part))
        above = math.log1p(left_ripple + ripple**2 / (1 - ripple))
        above += math.log1p(_compute_ripple(lattice_variance))
        eta = step.coordinates * max(above, -math.log1p(-left_ripple)) * (1 + 1e-9)
        relative_cost = smoothed_part * step_variance / variance / 2 + 2 * eta / max(epsilon, 1e-9)
        if relative_cost < best_cost:
            best_cost, best_eta = relative_cost, eta
            best_variance = step_variance / (1 - smoothed_part) * (1 + 1e-12)
    return best_variance, best_eta


def _compute_ripple(variance: float) -> float:
    """2 sum over j > 0 of exp(-2 pi^2 variance j^2), rounded up to a geometric series."""
    decay = math.exp(-2 * math.pi**2 * variance)
    return 2 * decay / (1 - decay)


@dataclass(frozen=True, eq=False)
class _Profile:
    """Upper bounds of V at the multiples -reach … reach of the step of the grid.

    Below the grid V is at most its chord to V(-infinity) = 1, and above it its last value.
    """

    grid_step: float
    values: Floats
    reach: int

    def __post_init__(self) -> None:
        missing_count = 2 * self.reach + 1 - len(self.values)
        padded_values = np.concatenate([self.values, np.zeros(missing_count)])
        # V falls; a rounding error must not make it rise
        falling_values = np.maximum.accumulate(padded_values[::-1])[::-1]
        object.__setattr__(self, "values", np.clip(falling_values, 0.0, 1.0))

    def precede_by_noise(self, variance: float, tail_chance: float) -> _Profile:
        """V before a step whose loss is normal with this variance and half of it as its mean."""
        if variance <= 0:
            return self
        first_loss, chances, excess_chance = _discretise_normal_loss(
            variance, self.grid_step, tail_chance
        )
        last_loss = first_loss + len(chances) - 1
        places = np.arange(-last_loss, len(self.values) - first_loss)
        padded_values = self.values[np.clip(places, 0, len(self.values) - 1)]
        padded_values[places < 0] = 1.0
        sums = np.convolve(padded_values, chances, mode="valid")
        return _Profile(self.grid_step, sums * (1 + FLOAT_MARGIN) + excess_chance, self.reach)

    def precede_by_choice(self, epsilon: float) -> _Profile:
        """V before an exponential mechanism of bounded range: for every x the worst t.

        L is t with the chance (1 - exp(t-epsilon)) / (1 - exp(-epsilon)), else t - epsilon. With
        V = a + b exp(x) on the interval of x - t, and a' + b' exp(x) on that of x - t + epsilon,
        E V(x - L) is A + B exp(x) - C exp(t) - D exp(-t), at most A + B exp(x) - 2 sqrt(C D).
        """
        intercepts, slopes = self._compute_chords()
        exponentials = np.exp(self.grid_step * np.arange(-self.reach, self.reach + 1))
        scale, fall = -1 / math.expm1(-epsilon), math.exp(-epsilon)
        shift, last_interval = math.floor(epsilon / self.grid_step), len(slopes) - 1
        first_place = -shift - 1  # of x - t, where the first of the grid is 0
        places = np.arange(first_place, len(exponentials))
        lower = np.clip(places, 0, last_interval)
        worst_values = self.values
        for upper_shift in (shift, shift + 1):  # how far apart both intervals are
            upper = np.clip(places + upper_shift, 0, last_interval)
            fallen, risen = intercepts[lower] - intercepts[upper], slopes[upper] - slopes[lower]
            fallen_error = FLOAT_MARGIN * (np.abs(intercepts[lower]) + np.abs(intercepts[upper]))
            risen_error = FLOAT_MARGIN * (np.abs(slopes[lower]) + np.abs(slopes[upper]))
            constant = intercepts[lower] - fall * intercepts[upper]
            constant += fallen_error + np.maximum(-fallen, 0.0)
            linear = slopes[upper] - fall * slopes[lower]
            linear += risen_error + np.maximum(-risen, 0.0)
            mixed = np.maximum(fallen - fallen_error, 0.0) * np.maximum(risen - risen_error, 0.0)
            mixed = 2 * np.sqrt(fall * mixed)
            for offset in range(upper_shift):
                window = slice(-first_place - offset, len(places) - offset)
                worst_values = np.maximum(
                    worst_values,
                    scale
                    * (
                        constant[window]
                        + linear[window] * exponentials
                        - mixed[window] * np.sqrt(exponentials)
                    ),
                )
        return _Profile(self.grid_step, worst_values, self.reach)

    def precede_by_pure_step(self, epsilon: float) -> _Profile:
        """V before anything that is epsilon-DP: randomized response is the worst of it."""
        chance = 1 / (1 + math.exp(-epsilon))
        positions = np.asarray(self.grid_step * np.arange(-self.reach, self.reach + 1), np.float64)
        values = chance * self.interpolate(positions - epsilon)
        values += (1 - chance) * self.interpolate(positions + epsilon)
        return _Profile(self.grid_step, values, self.reach)

    def interpolate(self, positions: Floats) -> Floats:
        """Upper bounds of V at any positions: the chords in exp(x)."""
        intercepts, slopes = self._compute_chords()
        intervals = np.floor(positions / self.grid_step).astype(np.int64) + self.reach + 1
        intervals = np.clip(intervals, 0, len(slopes) - 1)
        constant, linear = intercepts[intervals], slopes[intervals] * np.exp(positions)
        margin = FLOAT_MARGIN * (np.abs(constant) + np.abs(linear))
        return np.asarray(np.minimum(constant + linear + margin, 1.0))

    def _compute_chords(self) -> tuple[Floats, Floats]:
        """Intercept and slope in exp(x) on each interval: below, within and above the grid."""
        exponentials = np.exp(self.grid_step * np.arange(-self.reach, self.reach + 1))
        inner_slopes = np.diff(self.values) / np.diff(exponentials)
        slopes = np.concatenate([[(self.values[0] - 1) / exponentials[0]], inner_slopes, [0.0]])
        intercepts = np.concatenate([[1.0], self.values - slopes[1:] * exponentials])
        return intercepts, slopes


def _discretise_normal_loss(
    variance: float, grid_step: float, tail_chance: float
) -> tuple[int, Floats, float]:
    """A law on the grid whose V is never less than that of a normal loss ("connect the dots").

    What is in an interval moves to its ends, so that its chance under both tables stays the same.

    Returns
    -------
    int
        The first loss, in steps of the grid.
    array
        Chances of the losses from there on.
    float
        Chance of an infinite loss.
    """
    from scipy.special import ndtr

    deviation = math.sqrt(variance)
    reach = deviation * math.sqrt(-2 * math.log(tail_chance))
    first_loss = math.floor((variance / 2 - reach) / grid_step)
    last_loss = math.ceil((variance / 2 + reach) / grid_step)
    losses = grid_step * np.arange(first_loss, last_loss + 1)
    chances_by_table = []
    for mean in (variance / 2, -variance / 2):
        positions = (losses - mean) / deviation
        is_right = positions[:-1] > 0  # differences of small numbers, not of numbers near 1
        near = np.where(is_right, -positions[1:], positions[:-1])
        far = np.where(is_right, -positions[:-1], positions[1:])
        chances_by_table.append(ndtr(far) - ndtr(near))
    here, there = chances_by_table
    up = (here - np.exp(losses[:-1]) * there) / -math.expm1(-grid_step)
    down = (np.exp(losses[1:]) * there - here) / math.expm1(grid_step)
    margin = 2 * FLOAT_MARGIN * here / min(grid_step, 1.0)
    chances = np.zeros(len(losses))
    chances[1:] += np.maximum(up, 0.0) + margin
    chances[:-1] += np.maximum(down, 0.0) + margin
    chances[0] += ndtr((losses[0] - variance / 2) / deviation)
    return first_loss, chances, float(ndtr((variance / 2 - losses[-1]) / deviation)) * (1 + 1e-9)
