"""Waves: later respondents are asked more about what turned out to matter.

Each person still sends one report; only the public plan of the next wave depends on the earlier
reports, whose tallies are public by then. A plan names the inputs of its shares, so that anyone
with the earlier tallies can recompute it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from discreet.arrays import Array, Floats
from discreet.collection.tally import Tally
from discreet.errors import EstimationError, SchemaError
from discreet.estimation import estimate
from discreet.local.inversion import CountEstimate, estimate_statistics, pool_counts
from discreet.local.judging import make_candidates, make_judging_questions
from discreet.local.plan import Plan, Wave, WaveDesign, split_epsilon
from discreet.local.planning import PlanOptions, make_plan
from discreet.model import CellFactor, NaiveBayesModel
from discreet.privacy.rounding import to_shortest_float
from discreet.privacy.shuffling import Blanket, Shuffle
from discreet.schema.schema import Schema
from discreet.statistics.statistics import Statistics, Table

__all__ = [
    "check_shares",
    "combine_waves",
    "compute_focus",
    "make_judging_plan",
    "make_next_plan",
    "next_plan",
]


def next_plan(
    tallies: Sequence[Tally[Plan]],
    respondents: int,
    *,
    kind: WaveDesign = "auto",
    oracle: str = "auto",
    epsilon: float | None = None,
    shuffled: Shuffle | None = None,
) -> Plan:
    """Make the plan of the next wave, which asks more about the features that mattered before.

    Or, with the kind "judge", the last one: it asks whether models that follow from the earlier
    waves are right (:mod:`discreet.local.judging`).

    Parameters
    ----------
    tallies : sequence of Tally
        Of all earlier waves, in their order.
    respondents : int
        Expected in all waves together.
    kind : {"auto", "pairs", "paper", "judge"}
        "judge" asks people to judge candidate models; otherwise as in
        :func:`~discreet.local.planning.make_plan`.
    oracle : str, default "auto"
        As there; judging is always by randomized response.
    epsilon : float, optional
        That of the wave before, if not given.
    shuffled : Shuffle, optional
        What is promised to this wave, where its reports are shuffled; instead of ``epsilon``.

    Returns
    -------
    Plan
        For the same schema, bins, projection and assignment as the wave before.
    """
    earlier_statistics = _combine_earlier_waves(tallies)
    last_tally = tallies[-1]
    previous_plan = last_tally.collection
    wave_number = 2 if previous_plan.wave is None else previous_plan.wave.number + 1
    wave = Wave(wave_number, respondents, previous_plan.digest, last_tally.digest, kind, oracle)
    return _make_wave_plan(
        previous_plan,
        wave,
        (previous_plan.epsilon if epsilon is None else epsilon)
        if shuffled is None
        else shuffled.epsilon,
        earlier_statistics,
        shuffled,
    )


def make_next_plan(
    schema: Schema,
    tallies: Sequence[Tally[Plan]],
    epsilon: float,
    respondents: int,
    options: PlanOptions,
    *,
    judge: bool = False,
) -> Plan:
    """Make the plan of the next wave from the options of a first one.

    Parameters
    ----------
    schema : Schema
        That of the earlier waves.
    tallies : sequence of Tally
        Of all earlier waves, in their order.
    epsilon, respondents
        As in :func:`~discreet.local.planning.make_plan`; the respondents are those of all waves,
        unless ``options`` says.
    options : PlanOptions
        What the first wave has fixed for all is taken from there.
    judge : bool, default False
        Whether people judge candidate models instead of answering about features.
    """
    if tallies[-1].collection.original != schema:
        raise SchemaError("the earlier waves follow another schema than the one given")
    return next_plan(
        tallies,
        options.respondents_all_waves or respondents,
        kind="judge" if judge else options.kind,
        oracle=options.oracle,
        epsilon=epsilon,
        shuffled=None
        if options.shuffled is None
        else Shuffle(epsilon, options.shuffled, respondents),
    )


def check_shares(plan: Plan, tallies: Sequence[Tally[Plan]]) -> None:
    """Recompute the plan of a later wave from the earlier tallies, and compare.

    Parameters
    ----------
    plan : Plan
    tallies : sequence of Tally
        Of all earlier waves, in any order: each plan names the one before it.

    Raises
    ------
    EstimationError
        If a tally is missing or another one, or if the shares do not follow from them.
    """
    if plan.wave is None:
        raise EstimationError("this plan follows no earlier wave, so there is nothing to recompute")
    ordered_tallies: list[Tally[Plan]] = []
    wave: Wave | None = plan.wave
    tallies_by_digest = {(tally.collection.digest, tally.digest): tally for tally in tallies}
    while wave is not None:
        earlier_tally = tallies_by_digest.get((wave.plan, wave.tally))
        if earlier_tally is None:
            raise EstimationError(
                f"wave {wave.number} follows the tally {wave.tally[:23]}… of the plan "
                f"{wave.plan[:23]}…, which is not among the given ones"
            )
        ordered_tallies.insert(0, earlier_tally)
        wave = earlier_tally.collection.wave
    expected_plan = _make_wave_plan(
        ordered_tallies[-1].collection,
        plan.wave,
        plan.epsilon,
        _combine_earlier_waves(ordered_tallies),
    )
    if expected_plan.digest != replace(plan, shuffled=None).digest:
        raise EstimationError(
            "the shares of this plan do not follow from its wave, its number of respondents and "
            "the earlier tallies; it was made in another way than it says"
        )


def _combine_earlier_waves(tallies: Sequence[Tally[Plan]]) -> Statistics:
    if not tallies:
        raise EstimationError("a later wave follows the tallies of the earlier ones; give them")
    if any(tally.collection.mean_features for tally in tallies):
        raise EstimationError("waves re-issue plans of cells; ask numbers by bin")
    for earlier_tally, later_tally in pairwise(tallies):
        wave = later_tally.collection.wave
        if wave is None or (wave.plan, wave.tally) != (
            earlier_tally.collection.digest,
            earlier_tally.digest,
        ):
            raise EstimationError(
                "these tallies are not those of one wave after the other: each plan must name the "
                "plan and the tally before it; give all earlier waves in their order"
            )
    if tallies[0].collection.wave is not None:
        raise EstimationError("the first tally is of a later wave; give those before it, too")
    if tallies[-1].collection.judges_models:
        raise EstimationError("nothing follows after people have judged; train the model")
    wave_statistics = [estimate_statistics(tally) for tally in tallies]
    if len(tallies) == 1:
        return wave_statistics[0]
    return combine_waves(wave_statistics, [tally.people for tally in tallies])


def _make_wave_plan(
    previous_plan: Plan,
    wave: Wave,
    epsilon: float,
    earlier_statistics: Statistics,
    shuffled: Shuffle | None = None,
) -> Plan:
    if wave.kind == "judge":
        return make_judging_plan(previous_plan, wave, epsilon, earlier_statistics, shuffled)
    oracle_thetas = {
        getattr(question.mechanism, "theta", None) for question in previous_plan.questions
    } - {None}
    return make_plan(
        previous_plan.original,
        epsilon,
        wave.respondents if shuffled is None else shuffled.respondents,
        PlanOptions(
            kind=wave.kind,
            oracle=wave.oracle,
            theta=oracle_thetas.pop() if wave.oracle == "the" and oracle_thetas else None,
            bins=previous_plan.bins,
            assignment=previous_plan.assignment,
            reports=previous_plan.reports,
            focus=compute_focus(estimate(earlier_statistics, "bayes")),
            projection=previous_plan.projection,
            shuffled=None if shuffled is None else shuffled.delta,
            wave=wave,
            respondents_all_waves=wave.respondents,
        ),
    )


def make_judging_plan(
    previous_plan: Plan,
    wave: Wave | None,
    epsilon: float,
    earlier_statistics: Statistics,
    shuffled: Shuffle | None = None,
) -> Plan:
    """Make the plan of a wave that judges the models which follow from earlier ones.

    Parameters
    ----------
    previous_plan : Plan
        Its schema, edges, projection, assignment and number of reports are kept.
    wave : Wave or None
    epsilon : float
        Total per person; not used where the reports are shuffled.
    earlier_statistics : Statistics
        Of all earlier waves together.
    shuffled : Shuffle, optional
    """
    candidates = make_candidates(earlier_statistics)

    def make_local_plan(local_epsilon: float) -> Plan:
        report_epsilon = split_epsilon(local_epsilon, previous_plan.reports)
        questions = make_judging_questions(candidates, report_epsilon)
        asked_features = {name for question in questions for name in question.features}
        return replace(
            previous_plan,
            epsilon=local_epsilon,
            questions=questions,
            edges={
                name: edges for name, edges in previous_plan.edges.items() if name in asked_features
            },
            shuffled=None,
            wave=wave,
        )

    def make_plan_and_blanket(local_epsilon: float) -> tuple[Plan, Blanket]:
        plan = make_local_plan(local_epsilon)
        return plan, plan.blanket

    if shuffled is None:
        return make_local_plan(to_shortest_float(epsilon))
    return replace(shuffled.find_largest_local(make_plan_and_blanket), shuffled=shuffled)


def compute_focus(model: NaiveBayesModel) -> dict[str, float]:
    """Compute weights for the next wave: root of the mutual information of feature and class."""
    class_prior = np.exp(model.log_prior)[:, None]
    mutual_information: dict[str, float] = {}
    for factor in model.factors:
        if isinstance(factor, CellFactor):
            joint_law = np.exp(factor.log_probability)
            joint_law = joint_law / joint_law.sum(axis=1, keepdims=True)
            cell_margin = (class_prior * joint_law).sum(axis=0)
            mutual_information[factor.name] = float(
                (class_prior * joint_law * np.log(joint_law / cell_margin)).sum()
            )
    mean_information = sum(mutual_information.values()) / max(len(mutual_information), 1)
    if mean_information <= 0:
        return {}
    return {
        name: float(np.clip(np.sqrt(information / mean_information), 0.5, 2.0))
        for name, information in mutual_information.items()
    }


def combine_waves(waves: Sequence[Statistics], respondents: Sequence[int]) -> Statistics:
    """Combine the statistics of all waves, weighted by precision.

    Each wave is assumed to be a random part of the population: who is asked later does not depend
    on earlier answers.

    Parameters
    ----------
    waves : sequence of Statistics
    respondents : sequence of int
        How many sent a report in each wave.
    """
    if not waves:
        raise EstimationError("there are no waves to combine")
    if len({statistics.schema.digest for statistics in waves}) > 1:
        raise EstimationError("these waves follow different schemas")
    if any(statistics.moments for statistics in waves):
        raise EstimationError("waves that ask for means cannot be combined; ask by bin")
    if (
        len(
            {
                json.dumps(statistics.projection and statistics.projection.to_body())
                for statistics in waves
            }
        )
        > 1
    ):
        raise EstimationError("these waves follow different projections")
    if any(
        table.cells != waves[0].tables[table_name].cells
        for statistics in waves
        for table_name, table in statistics.tables.items()
    ):
        raise EstimationError("these waves cut a number into different bins")
    total_respondents = sum(respondents)

    def pool_wave_counts(
        wave_counts: Sequence[Array], wave_variances: Sequence[Array]
    ) -> tuple[Floats, Floats]:
        estimates = [
            CountEstimate(
                count_array / respondent_count,
                variance_array / respondent_count**2,
                float(variance_array.mean()) / respondent_count**2
                + (1 - 1 / count_array.size) / count_array.size / respondent_count,
                respondent_count,
            )
            for count_array, variance_array, respondent_count in zip(
                wave_counts, wave_variances, respondents, strict=True
            )
        ]
        return pool_counts(estimates, total_respondents)

    totals, variances = pool_wave_counts(
        [statistics.totals for statistics in waves], [statistics.variances for statistics in waves]
    )
    tables: dict[str, Table] = {}
    for name in waves[0].tables:
        wave_tables = [statistics.tables[name] for statistics in waves]
        pooled_counts = pool_wave_counts(
            [table.counts for table in wave_tables], [table.variances for table in wave_tables]
        )
        tables[name] = Table(wave_tables[0].cells, *pooled_counts)
    guarantee = waves[0].guarantee
    for statistics in waves[1:]:
        guarantee = guarantee.compose_parallel(statistics.guarantee)
    return Statistics(
        waves[0].schema,
        totals,
        variances,
        tables,
        guarantee=guarantee,
        projection=waves[0].projection,
    )
