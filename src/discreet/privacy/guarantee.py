"""The privacy guarantee: its parameters, its adversary and its assumptions.

epsilon is always **per person and total**: everything that one person's data ever influenced.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Any, Literal, get_args

from discreet import conveniences
from discreet.errors import PrivacyError
from discreet.files.documents import Body
from discreet.privacy.rounding import (
    convert_rho_to_epsilon,
    sum_rounded_up,
    to_shortest_float,
)
from discreet.schema.inference_cost import (
    ALL_ROWS_UNIT,
    WHOLE_RECORD_UNIT,
    InferenceCost,
    InferenceCostBody,
)

if TYPE_CHECKING:
    from discreet.schema.schema import Schema

__all__ = [
    "Account",
    "Charge",
    "Guarantee",
    "format_inference_cost",
    "format_odds_factor",
    "format_odds_sentence",
    "format_rounded_up",
]

Neighbours = Literal["add-remove", "replace"]
Trust = Literal["none", "central", "local", "survey", "federated"]

SEEDED_REASON = "a seeded source drew the noise, so that whoever knows the seed can subtract it"
REHEARSED_REASON = "this was rehearsed on one machine, which saw every table"
INFERRED_REASON = "bounds, categories and classes were taken from the data and are not protected"

SCHEMA_CHARGE = "schema"
"""Name of the charge for bounds, categories and classes that were inferred with noise."""
OTHER_PEOPLE_ASSUMPTION = (
    "nobody here was in the table from which the schema was inferred for {cost}; who was has "
    "spent that as well"
)

FLOAT_MARGIN = 1e-15
"""Relative margin of a product of floats."""

_CHANGE_TEMPLATES = {
    "add-remove": "adding or removing {unit}",
    "replace": "replacing {unit} by any other",
}


@dataclass(frozen=True)
class Charge:
    """The privacy cost of one released item.

    Parameters
    ----------
    name : str
        What was released.
    epsilon : float
    delta : float, default 0
    """

    name: str
    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Account:
    """Total spent on the same people when a guarantee was made, its own cost included.

    Parameters
    ----------
    where : str
        The ledger.
    releases : int
        How many were paid for, this one included.
    epsilon, delta : float
        What they cost together.
    limit : pair of float
        Epsilon and delta that may be spent in total. An account exists only with a ledger, which
        counts independently of the data; recognising rows would reveal something about them.

    Examples
    --------
    >>> print(Account("clinic.json", 16, 32.0, 0.0, (40.0, 0.0)))
    16 releases cost epsilon 32 together, of 40 (clinic.json)
    """

    where: str
    releases: int
    epsilon: float
    delta: float
    limit: tuple[float, float]

    def __str__(self) -> str:
        is_single = self.releases == 1
        spent_text = f"{self.releases} release{'s' * (not is_single)} cost{'s' * is_single}"
        spent_text += f" epsilon {format_rounded_up(self.epsilon)}"
        spent_text += f" and delta {format_rounded_up(self.delta)}" if self.delta else ""
        spent_text += " together" * (self.releases > 1)
        spent_text += f", of {format_rounded_up(self.limit[0])}"
        spent_text += f" and {format_rounded_up(self.limit[1])}" if self.limit[1] else ""
        return f"{spent_text} ({self.where})"


@dataclass(frozen=True)
class Guarantee:
    """A differential-privacy guarantee with everything it depends on.

    Parameters
    ----------
    epsilon : float
        Per person and total. ``math.inf`` means no protection at all.
    delta : float, default 0
    neighbours : {"add-remove", "replace"}
        Which change to the data the promise is about.
    trust : {"none", "central", "local", "survey", "federated"}
        The trust model; ``"none"`` for a model without any guarantee.
    unit : str
        What of a person is protected.
    against : str
        The adversary who learns no more than epsilon allows.
    assumptions : tuple of str
        What must hold for the promise to hold.
    simulated : bool
        Whether a seeded source was used: then this describes an experiment and promises nothing.
    rho : float or None
        Concentrated DP: the promise holds as rho-zCDP; epsilon and delta are its conversion.
    charges : tuple of Charge
        Cost of each released item; together they compose to epsilon and delta.
    void : tuple of str
        Reasons why the promise is not kept after all, such as bounds that were taken from the
        data. A guarantee with any of them is not private, and says so first.
    unshuffled : float or None
        If epsilon and delta hold for shuffled reports: the epsilon against an adversary who learns
        which report is whose.
    account : Account or None
        What was spent on the same people when this was released, where a ledger was charged.
    schema_cost : InferenceCost or None
        What inferring the schema cost, where epsilon and delta include it.

    Examples
    --------
    >>> first = Guarantee(0.5, trust="central")
    >>> second = Guarantee(0.25, trust="central")
    >>> first.compose_sequential(second).epsilon, first.compose_parallel(second).epsilon
    (0.75, 0.5)
    """

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = "add-remove"
    trust: Trust = "central"
    unit: str = WHOLE_RECORD_UNIT
    against: str = "everyone who sees the released model"
    assumptions: tuple[str, ...] = ()
    simulated: bool = False
    rho: float | None = None
    charges: tuple[Charge, ...] = ()
    void: tuple[str, ...] = ()
    unshuffled: float | None = None
    account: Account | None = None
    schema_cost: InferenceCost | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            if type(value := getattr(self, name)) is not float:
                object.__setattr__(self, name, to_shortest_float(value))
        if not isinstance(self.epsilon, float) or not self.epsilon >= 0:
            raise PrivacyError(f"epsilon is {self.epsilon!r}; it must be a number of at least 0")
        if not isinstance(self.delta, float) or not 0 <= self.delta < 1:
            raise PrivacyError(f"delta is {self.delta!r}; it must be at least 0 and below 1")
        if self.neighbours not in get_args(Neighbours):
            raise PrivacyError(
                f"neighbours={self.neighbours!r}; write one of {_format_choices(Neighbours)}"
            )
        if self.trust not in get_args(Trust):
            raise PrivacyError(f"trust={self.trust!r}; write one of {_format_choices(Trust)}")
        if self.rho is not None and not self.rho >= 0:
            raise PrivacyError(f"rho is {self.rho!r}; it must be at least 0")
        if self.unshuffled is not None and not self.unshuffled >= self.epsilon:
            raise PrivacyError(
                f"unshuffled is {self.unshuffled!r}, and epsilon {self.epsilon!r}; shuffling does "
                "not make reports cost more"
            )

    @classmethod
    def make_unprotected(cls) -> Guarantee:
        """Make the guarantee of a model trained on raw data: none."""
        return cls(math.inf, trust="none", against="nobody")

    @property
    def is_private(self) -> bool:
        """Whether the guarantee holds: it is not void, not simulated, and epsilon is finite."""
        return not self.void_reasons

    @property
    def unshuffled_epsilon(self) -> float:
        """The epsilon of one person's reports without shuffling: what a device has to charge."""
        return self.epsilon if self.unshuffled is None else self.unshuffled

    @property
    def void_reasons(self) -> tuple[str, ...]:
        """Why the guarantee does not hold; empty if it does."""
        reasons = [*self.void]
        if self.simulated:
            reasons.append(SEEDED_REASON)
        if math.isinf(self.epsilon) and not reasons:
            reasons.append("epsilon is infinite: there is no noise")
        return tuple(reasons)

    def void_if(
        self,
        *,
        schema: Schema | None = None,
        simulated: bool = False,
        published_reason: str = "",
        rehearsed: bool = False,
        preparation_reason: str = "",
    ) -> Guarantee:
        """Void the guarantee under these circumstances; the only rule in the package that does so.

        Training, plans, questionnaires, manifests, statistics, models, files and the command line
        all call it. A guarantee with trust "none" stays as it is.

        Parameters
        ----------
        schema : Schema, optional
            Where it was inferred, bounds, categories and classes come from the data, and no noise
            protects them.
        simulated : bool, default False
            Whether a seeded source drew the noise: who knows the seed can subtract it.
        published_reason : str, optional
            Why a published method does not satisfy its stated epsilon; epsilon becomes infinite.
        rehearsed : bool, default False
            Whether all parties of a federated round ran on one machine, as a rehearsal.
        preparation_reason : str, optional
            What else was learnt from the rows before noise was added, such as a fitted scaler.

        Examples
        --------
        >>> Guarantee(1.0).void_if(simulated=True).is_private
        False
        """
        if self.trust == "none":
            return self
        cost = None if schema is None else schema.inference
        simulated = simulated or (cost is not None and cost.simulated)
        guarantee = replace(self, simulated=self.simulated or simulated)
        reasons = [*self.void]
        reasons += [INFERRED_REASON] if schema is not None and schema.inferred else []
        reasons += [REHEARSED_REASON] if rehearsed else []
        reasons += [reason for reason in (preparation_reason, published_reason) if reason]
        if published_reason:
            guarantee = replace(
                guarantee,
                epsilon=math.inf,
                delta=0.0,
                rho=None,
                charges=(),
                against="nobody",
                unshuffled=None,
            )
        return replace(guarantee, void=tuple(dict.fromkeys(reasons)))

    def include_schema(self, schema: Schema) -> Guarantee:
        """Add what inferring the schema cost, once: the same people were in both tables.

        Statistics and models call it for whatever promise they are made with. What is charged to a
        ledger for a training or a round does not include it: it was charged before.

        Parameters
        ----------
        schema : Schema

        Examples
        --------
        >>> from discreet.schema.schema import Numeric, Schema
        >>> schema = Schema([Numeric("age", 16, 96)], "ill", ["no", "yes"])
        >>> priced_schema = replace(schema, inference=InferenceCost(0.25))
        >>> Guarantee(1.0).include_schema(priced_schema).epsilon
        1.25
        """
        cost = schema.inference
        is_included = cost is None or self.schema_cost == cost
        if cost is None or is_included or self.trust == "none" or math.isinf(self.epsilon):
            return self
        if not cost.same_people:
            assumption = OTHER_PEOPLE_ASSUMPTION.format(cost=format_inference_cost(cost))
            return replace(self, assumptions=tuple(dict.fromkeys((*self.assumptions, assumption))))
        covers_all_rows = self.unit.startswith(ALL_ROWS_UNIT)
        if covers_all_rows and cost.unit == WHOLE_RECORD_UNIT:
            raise PrivacyError(
                "the schema was inferred as if each row were another person, and this promise is "
                "for all rows of a person; infer it again with person=, or write it by hand"
            )
        schema_guarantee = Guarantee(
            cost.epsilon,
            cost.delta,
            rho=cost.rho,
            # whose whole record is one row has no other rows
            unit=self.unit if covers_all_rows or self.unit == WHOLE_RECORD_UNIT else cost.unit,
            against=self.against,
            charges=(Charge(SCHEMA_CHARGE, cost.epsilon, cost.delta),),
            simulated=cost.simulated,
        )
        if self.neighbours == "replace":
            schema_guarantee = schema_guarantee.as_replace()
        return replace(self.compose_sequential(schema_guarantee), schema_cost=cost)

    def compute_rho(self) -> float | None:
        """The rho of rho-zCDP; of a pure promise epsilon^2/2, None if none is known."""
        if self.rho is not None or self.delta:
            return self.rho
        return self.epsilon * self.epsilon / 2 * (1 + FLOAT_MARGIN)

    def compose_sequential(self, other: Guarantee) -> Guarantee:
        """Sequential composition: the same people took part in both, so the costs add up.

        Two pure or approximate guarantees add their epsilons and deltas. If one is concentrated and
        the other concentrated or pure (which is epsilon^2/2-zCDP), their rhos add up as well, and
        epsilon is the smaller of the sum and the conversion of rho.
        """
        self._require_comparable(other)
        delta = self.delta + other.delta
        epsilon = self.epsilon + other.epsilon
        rho = None
        rhos = [guarantee.compute_rho() for guarantee in (self, other)]
        if (self.rho, other.rho) != (None, None) and rhos[0] is not None and rhos[1] is not None:
            rho = sum_rounded_up([rhos[0], rhos[1]])
            if delta > 0:
                epsilon = min(epsilon, convert_rho_to_epsilon(rho, delta))
        charges = self._list_charges() + other._list_charges()
        unshuffled_epsilon = self.unshuffled_epsilon + other.unshuffled_epsilon
        composed = self._compose(other, epsilon, delta, rho, charges, unshuffled_epsilon)
        return replace(composed, schema_cost=self.schema_cost or other.schema_cost)

    def compose_parallel(self, other: Guarantee, *, split_by_data: bool = False) -> Guarantee:
        """Parallel composition: nobody took part in both, so the larger cost counts.

        Parameters
        ----------
        other : Guarantee
        split_by_data : bool, default False
            Whether a record's own content (its class, say) decides which part it is in. Then the
            promise must be about add-remove: a replaced record would touch both parts.
        """
        self._require_comparable(other)
        if split_by_data and self.neighbours == "replace":
            raise PrivacyError(
                "replacing a record may move it from one part to the other, so both parts are "
                "touched: compose with compose_sequential(), or state the parts as add-remove"
            )
        costlier = max(self, other, key=lambda guarantee: (guarantee.epsilon, guarantee.delta))
        rho = None
        if self.rho is not None and other.rho is not None:
            rho = max(self.rho, other.rho)
        epsilon, delta = max(self.epsilon, other.epsilon), max(self.delta, other.delta)
        charges = costlier._list_charges()
        unshuffled_epsilon = max(self.unshuffled_epsilon, other.unshuffled_epsilon)
        return self._compose(other, epsilon, delta, rho, charges, unshuffled_epsilon)

    def as_replace(self) -> Guarantee:
        """The same promise about replacing a record: removing one and adding another.

        Group privacy for two steps: 2 epsilon, (1 + exp(epsilon)) delta, 4 rho.
        """
        if self.neighbours == "replace":
            return self
        delta_factor = 1 + math.exp(min(self.epsilon, 700.0))
        delta = self.delta * delta_factor
        if delta >= 1:
            raise PrivacyError(
                f"as replace-one this promise is void: delta becomes {delta:.3g}; use a smaller one"
            )
        return replace(
            self,
            epsilon=2 * self.epsilon,
            delta=delta,
            neighbours="replace",
            rho=None if self.rho is None else 4 * self.rho,
            charges=tuple(
                replace(charge, epsilon=2 * charge.epsilon, delta=charge.delta * delta_factor)
                for charge in self.charges
            ),
        )

    def as_add_remove(self) -> Guarantee:
        """The promise about adding or removing a record, where it can be stated.

        A replace-one promise keeps the number of records fixed and public, so it says nothing
        about adding or removing one; there is no factor that would turn it into such a promise.
        """
        if self.neighbours == "add-remove":
            return self
        raise PrivacyError(
            "a replace-one promise says nothing about adding or removing a record (the number of "
            "records may be public in it); make the release under add-remove instead"
        )

    def _list_charges(self) -> tuple[Charge, ...]:
        return self.charges or (Charge(self.trust, self.epsilon, self.delta),)

    def _require_comparable(self, other: Guarantee) -> None:
        if not isinstance(other, Guarantee):
            raise PrivacyError(f"a Guarantee composes with a Guarantee, not with {other!r}")
        if self.neighbours != other.neighbours:
            raise PrivacyError(
                f"one promise is about {self.neighbours}, the other about {other.neighbours}; "
                "convert the add-remove one with as_replace() first"
            )

    def _compose(
        self,
        other: Guarantee,
        epsilon: float,
        delta: float,
        rho: float | None,
        charges: tuple[Charge, ...],
        unshuffled_epsilon: float,
    ) -> Guarantee:
        if delta >= 1:
            raise PrivacyError(f"the composition guarantees nothing: delta adds up to {delta:.3g}")
        is_shuffled = self.unshuffled is not None or other.unshuffled is not None
        accounts = [account for account in (self.account, other.account) if account is not None]
        return replace(
            self,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            unshuffled=unshuffled_epsilon if is_shuffled else None,
            trust=min(self.trust, other.trust, key=get_args(Trust).index),
            unit=_join_texts(self.unit, other.unit),
            against=_join_texts(self.against, other.against),
            assumptions=tuple(dict.fromkeys((*self.assumptions, *other.assumptions))),
            simulated=self.simulated or other.simulated,
            charges=charges,
            void=tuple(dict.fromkeys((*self.void, *other.void))),
            account=max(accounts, key=lambda account: account.epsilon, default=None),
            # what only one of them includes may be added once more, never once less
            schema_cost=self.schema_cost if self.schema_cost == other.schema_cost else None,
        )

    def _repr_html_(self) -> str:
        return conveniences.render_html(self)

    def __str__(self) -> str:
        """Describe the guarantee in plain words."""
        return self.describe()

    def describe(self, *, is_total: bool = True) -> str:
        """Describe the guarantee in plain words.

        Parameters
        ----------
        is_total : bool, default True
            Whether these people take part in nothing else; an account may say that they do.
        """
        is_only_release = is_total and (self.account is None or self.account.releases == 1)
        if math.isinf(self.epsilon):
            lines = [
                "No privacy: this was computed from raw data and may reveal anyone in it."
                if self.trust in ("none", "central")
                else f"No finite epsilon ({self.trust}): what was sent may prove what is true."
            ]
        else:
            change_text = _CHANGE_TEMPLATES[self.neighbours].format(unit=self.unit)
            lines = [
                f"epsilon = {format_rounded_up(self.epsilon)}"
                + (f", delta = {format_rounded_up(self.delta)}" if self.delta else "")
                + f" per person {'in total' if is_only_release else 'for this release'}"
                + f" ({self.neighbours}, {self.trust}):",
                f"  {change_text} changes the probability of any outcome by at most a factor of "
                f"{format_odds_factor(self.epsilon)}"
                + (f" and {format_rounded_up(self.delta)} more." if self.delta else "."),
                f"  Protected against {self.against}.",
            ]
            if self.unshuffled is not None:
                lines.append(
                    "  Against all who learn which report is whose, the collector too: epsilon = "
                    f"{format_rounded_up(self.unshuffled)}."
                )
            if self.rho is not None:
                lines.append(f"  Holds as {format_rounded_up(self.rho)}-zCDP (concentrated).")
            if self.neighbours == "add-remove":
                replace_cost = "more than this delta allows to state"
                with suppress(PrivacyError):
                    replaced = self.as_replace()
                    replace_cost = f"an epsilon of {format_rounded_up(replaced.epsilon)}" + (
                        f" and a delta of {format_rounded_up(replaced.delta, 2)}"
                        if replaced.delta
                        else ""
                    )
                replaced_unit = "them" if self.unit.startswith("all rows of") else "a record"
                lines.append(f"  Replacing {replaced_unit} instead costs {replace_cost}.")
        if self.account is not None:
            lines.append(f"  Account of these people: {self.account}.")
        lines += [f"  Assumes: {assumption}." for assumption in self.assumptions]
        warnings = [f"NOT KEPT: {reason}." for reason in self.void]
        if self.simulated:
            warnings.append("SIMULATED with a seeded source: this promises nothing to anyone.")
        return "\n".join(warnings + lines)

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        body = {name: getattr(self, name) for name in GuaranteeBody.model_fields}
        body["assumptions"], body["void"] = list(self.assumptions), list(self.void)
        body["charges"] = [[charge.name, charge.epsilon, charge.delta] for charge in self.charges]
        if self.unshuffled is None:
            del body["unshuffled"]
        del body["account"]
        if self.account is not None:
            body["account"] = {**vars(self.account), "limit": list(self.account.limit)}
        del body["schema_cost"]
        if self.schema_cost is not None:
            body["schema_cost"] = self.schema_cost.to_body()
        return body


class AccountBody(Body):
    """Shape of an Account inside a Guarantee."""

    where: str
    releases: int
    epsilon: float
    delta: float = 0.0
    limit: tuple[float, float]


class GuaranteeBody(Body):
    """Shape of a Guarantee inside other documents."""

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = "add-remove"
    trust: Trust = "central"
    unit: str = WHOLE_RECORD_UNIT
    against: str = ""
    assumptions: list[str] = []
    simulated: bool = False
    rho: float | None = None
    charges: list[tuple[str, float, float]] = []
    void: list[str] = []
    unshuffled: float | None = None
    account: AccountBody | None = None
    schema_cost: InferenceCostBody | None = None

    def to_guarantee(self) -> Guarantee:
        """The value this shape stands for."""
        fields = self.model_dump()
        if self.account is not None:
            fields["account"] = Account(**self.account.model_dump())
        if self.schema_cost is not None:
            fields["schema_cost"] = self.schema_cost.to_cost()
        fields["assumptions"], fields["void"] = tuple(self.assumptions), tuple(self.void)
        fields["charges"] = tuple(Charge(*charge) for charge in self.charges)
        return Guarantee(**fields)


def format_odds_factor(epsilon: float) -> str:
    """Format the largest factor by which odds can change, exp(epsilon).

    Parameters
    ----------
    epsilon : float
    """
    if epsilon < 50:
        return format_rounded_up(math.exp(epsilon), 3)
    return f"exp({format_rounded_up(epsilon)})"


def format_odds_sentence(observed_item: str, epsilon: float) -> str:
    """Format the sentence that tells a respondent what an epsilon means.

    Parameters
    ----------
    observed_item : str
        What others see: ``"your report"``.
    epsilon : float

    Examples
    --------
    >>> format_odds_sentence("your report", 1.0).partition("at most ")[2]
    'a factor of 2.72 (epsilon 1 in total).'
    """
    return (
        f"Anyone who sees {observed_item}, no matter what else they know, can change their odds "
        "on anything about "
        f"your answers by at most a factor of {format_odds_factor(epsilon)} "
        f"(epsilon {format_rounded_up(epsilon, 3)} in total)."
    )


def format_rounded_up(number: float, digits: int = 6) -> str:
    """Format a privacy cost, rounded up so that it is never understated.

    Parameters
    ----------
    number : float
        An epsilon, a delta or a value derived from them. Rounding errors of floats in the 13th
        digit are ignored.
    digits : int, default 6
        Largest number of significant digits.

    Examples
    --------
    >>> [format_rounded_up(number) for number in (0.1 + 0.2, 1e-6, math.inf)]
    ['0.3', '1e-06', 'inf']
    >>> format_rounded_up(6.9324, 3)
    '6.94'
    """
    if not math.isfinite(number) or number == 0:
        return f"{number:g}"
    nearest_decimal = Context(prec=12).create_decimal(repr(float(number)))
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).plus(nearest_decimal)):.12g}"


def format_inference_cost(cost: InferenceCost) -> str:
    """Format what inferring a schema cost.

    Parameters
    ----------
    cost : InferenceCost

    Examples
    --------
    >>> format_inference_cost(InferenceCost(0.1, 1e-6))
    'epsilon 0.1 and delta 1e-06'
    """
    delta_text = f" and delta {format_rounded_up(cost.delta)}" if cost.delta else ""
    return f"epsilon {format_rounded_up(cost.epsilon)}{delta_text}"


def require_paid(released: Guarantee, paid: Guarantee | None, release_name: str) -> Guarantee:
    """Refuse a release that costs more epsilon or delta than was charged; returns ``paid``.

    Parameters
    ----------
    released : Guarantee
        What is about to leave.
    paid : Guarantee or None
        What was charged beforehand, if anything.
    release_name : str
        Which fit or training, for the error.
    """
    costs_more_rho = (
        paid is not None and paid.rho is not None and not (released.rho or 0) <= paid.rho
    )
    if (
        paid is None
        or released.epsilon > paid.epsilon
        or released.delta > paid.delta
        or costs_more_rho
    ):
        raise PrivacyError(
            f"{release_name} would release more than was paid for (epsilon "
            f"{format_rounded_up(released.epsilon)}); nothing is released: please report this"
        )
    return paid


def _join_texts(first: str, second: str) -> str:
    return first if first == second else f"{first}; {second}"


def _format_choices(kinds: Any) -> str:
    return ", ".join(map(repr, get_args(kinds)))
