"""At most N rows of each person: the bound, and the choice of rows in memory.

Where a person has more rows than that, which ones are used follows from that person's rows alone:
rows are ordered by a digest of the person's id and of the row's own content, and the first N are
used. So one person more or less changes no row of anybody else, and as every person's order is
another, no value is preferred. Rows with the same digest are ordered by their content; rows that
are the same in that as well are interchangeable.

Content is what a schema sees of a row: public texts of categories and, of a number, its index on
the public grid and then the number itself. It is spelled the same everywhere, so that databases
(:mod:`discreet.tables.person_queries`) use the same rows.

Ids are compared as values of a schema are: 1, 1.0 and "1" are one person, "01" and " 1" are others.
A missing id (NULL, NaN, the empty text, a missing token) is refused, or each such row is a person.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args
from uuid import UUID

import numpy as np

from discreet.arrays import CellCodes, Floats, Indices, Integers
from discreet.errors import PrivacyError, SchemaError
from discreet.schema.cells import (
    Cells,
    Grid,
    _to_flat_array,
    is_missing,
    parse_numbers,
    to_object_array,
)
from discreet.schema.schema import Numeric, Schema, format_value
from discreet.tables.frames import make_unknown_text

__all__ = [
    "MAX_EXACT_ID",
    "MAX_ROWS_PER_PERSON",
    "SEPARATOR",
    "WEIGHT_STEPS",
    "ContributionBound",
    "Influence",
    "MissingPerson",
    "compute_person_weights",
    "digest_text",
    "find_unused_name",
    "make_id_error",
    "make_missing_id_error",
    "select_person_rows",
    "take_rows",
]

MissingPerson = Literal["error", "own"]

WEIGHT_STEPS = 1024
"""Steps of the largest weight, to which weights are rounded: the sensitivity of weighted counts."""
MAX_ROWS_PER_PERSON = 1000
"""Most rows of a person: the noise grows with them, and weights are whole parts of 1024."""
MAX_EXACT_ID = 1 << 53
"""From here on, several whole numbers are the same double, so that persons would be merged."""
SEPARATOR = "|"
"""Between the parts of a row that are digested together."""


@dataclass(frozen=True)
class Influence:
    """How far one person moves the counts of a table.

    Parameters
    ----------
    count_sensitivity : int
        In L1, and so in L2: all of a person's rows may be in one cell. Sums of numbers from 0 to 1
        per row, each times what the row counts, move by at most as much.
    rows : int
        How many rows, and so how many cells, a person is in at most.
    weight_per_count : float
        For how many rows, or persons, a count of one stands.
    """

    count_sensitivity: int = 1
    rows: int = 1
    weight_per_count: float = 1.0


@dataclass(frozen=True)
class ContributionBound:
    """How many rows of one person are used at most, and which rows are one person's.

    Parameters
    ----------
    person : str
        The column of ids. It is never a feature, and its values are never released.
    rows_per_person : int
        From 1 to 1000. It is public: choose it without looking at the data.
    missing_person : {"error", "own"}
        Whether a row without an id is refused, or is a person of its own.
    person_weighting : bool, default False
        Whether the rows of a person share the influence of one: each weighs 1 divided by how many
        rows of that person are used, rounded down to a multiple of 1/1024.

    Examples
    --------
    >>> ContributionBound("patient_id", 3).unit
    'all rows of one person (of which at most 3 are used)'
    """

    person: str
    rows_per_person: int
    missing_person: MissingPerson = "error"
    person_weighting: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.person, str) or not self.person:
            raise SchemaError(
                f"person is {self.person!r}; write the name of the column that says whose a row is"
            )
        limit: Any = self.rows_per_person
        is_whole = isinstance(limit, (int, np.integer)) and not isinstance(limit, bool)
        if not is_whole or not 1 <= limit <= MAX_ROWS_PER_PERSON:
            raise PrivacyError(
                f"rows_per_person is {limit!r}; write how many rows of one person may be used, a "
                f"whole number from 1 to {MAX_ROWS_PER_PERSON} that is chosen without the data"
            )
        object.__setattr__(self, "rows_per_person", int(limit))
        if self.missing_person not in get_args(MissingPerson):
            raise SchemaError(
                f"missing_person is {self.missing_person!r}; write 'error' to refuse rows without "
                "an id, or 'own' to make each of them a person of its own"
            )

    @classmethod
    def from_options(
        cls,
        person: str | None,
        rows_per_person: int | None,
        missing_person: MissingPerson = "error",
        person_weighting: bool = False,
    ) -> ContributionBound | None:
        """The bound of these options; None without any: then each row is a person.

        Parameters
        ----------
        person : str, optional
        rows_per_person : int, optional
        missing_person : {"error", "own"}
        person_weighting : bool, default False
        """
        if person is None and rows_per_person is None:
            return None
        if rows_per_person is None:
            raise PrivacyError(
                f"person={person!r} needs rows_per_person; write how many rows of one person may "
                "be used, a number that is chosen without looking at the data"
            )
        if person is None:
            raise PrivacyError(
                f"rows_per_person={rows_per_person!r} needs person; write the column that says "
                "whose a row is, or leave both out where each row is a person"
            )
        return cls(person, rows_per_person, missing_person, person_weighting)

    @property
    def is_weighted(self) -> bool:
        """Whether rows carry weights; the only row of a person needs none."""
        return self.person_weighting and self.rows_per_person > 1

    @property
    def unit(self) -> str:
        """What of a person is protected, for the guarantee."""
        if self.rows_per_person == 1:
            return "all rows of one person (of which at most 1 is used)"
        usage_text = f"of which at most {self.rows_per_person} are used"
        usage_text += " and weigh 1 together" * self.is_weighted
        return f"all rows of one person ({usage_text})"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the promise to a person rests on."""
        sentences = ["all rows of a person have one id, spelled the same, that nobody else has"]
        if self.missing_person == "own":
            sentences.append("each row without an id is of another person")
        return tuple(sentences)

    @property
    def influence(self) -> Influence:
        """How far one person moves counts of rows, or of steps of the weight."""
        if self.is_weighted:
            return Influence(WEIGHT_STEPS, self.rows_per_person, 1 / WEIGHT_STEPS)
        return Influence(self.rows_per_person, self.rows_per_person)

    def check_schema(self, schema: Schema) -> None:
        """Refuse a schema in which the column of ids is a feature or the class."""
        if self.person in (*schema.names, schema.target):
            role = "the class" if self.person == schema.target else "a feature"
            raise SchemaError(
                f"{self.person}: is {role} of the schema, and an identifier is never learnt from; "
                "leave it out of the schema, or name another column as person"
            )


def select_person_rows(
    persons: Any,
    columns: Mapping[str, Any],
    class_codes: CellCodes,
    schema: Schema,
    bound: ContributionBound,
) -> tuple[Indices, Integers]:
    """Select at most ``bound.rows_per_person`` rows of each person, in memory.

    Parameters
    ----------
    persons : array or column
        The id of every row.
    columns : mapping of feature name to column
    class_codes : array of int
        The class index of every row.
    schema : Schema
        Which columns are used, and how they are read.
    bound : ContributionBound

    Returns
    -------
    array of int
        Positions of the rows that are used, in their order.
    array of int
        Whose each of them is; numbers that mean nothing else.
    """
    person_texts = _format_ids(persons, bound, schema.missing_tokens)
    person_codes = _number_persons(person_texts)
    row_counts = np.bincount(person_codes, minlength=1)
    has_too_many = row_counts[person_codes] > bound.rows_per_person
    is_used = ~has_too_many
    crowded_rows = np.flatnonzero(has_too_many)
    if crowded_rows.size:
        content = _list_content(columns, class_codes, schema, crowded_rows)
        rows_by_person: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        for row, (text_parts, row_order) in zip(crowded_rows.tolist(), content, strict=True):
            digest = digest_text(SEPARATOR.join([str(person_texts[row]), *text_parts]))
            rows_by_person[int(person_codes[row])].append((digest, row_order, row))
        for person_rows in rows_by_person.values():
            person_rows.sort()
            is_used[[row for *_, row in person_rows[: bound.rows_per_person]]] = True
    used_rows = np.flatnonzero(is_used)
    return used_rows, person_codes[used_rows]


def compute_person_weights(person_codes: Integers) -> Integers:
    """Weights of rows, in steps of 1/1024: those of a person add up to at most 1.

    Parameters
    ----------
    person_codes : array of int
        Whose each used row is.

    Examples
    --------
    >>> compute_person_weights(np.array([7, 4, 7, 7])).tolist()
    [341, 1024, 341, 341]
    """
    row_counts = np.bincount(person_codes, minlength=1)
    return np.asarray(WEIGHT_STEPS // row_counts[person_codes], dtype=np.int64)


def take_rows(column: Any, rows: Any) -> Any:
    """Some rows of a column, which keeps its type where it can."""
    if isinstance(column, (list, tuple)):
        return to_object_array([column[row] for row in rows])
    if isinstance(column, np.ndarray) or not hasattr(column, "take"):
        return np.asarray(column)[rows]
    return column.take(rows)  # Arrow's arrays and pandas' series know how to take rows


def digest_text(text: str) -> str:
    """The MD5 of a text in hexadecimal digits, by which rows are ordered; databases have it, too.

    It mixes; nothing is kept secret by it, and it never leaves the table's place.
    """
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def find_unused_name(name: str, names: Sequence[str]) -> str:
    """A name that no column has, in any case of its letters."""
    lower_names = {column_name.lower() for column_name in names}
    while name.lower() in lower_names:
        name += "_"
    return name


def make_missing_id_error(person: str) -> SchemaError:
    """The error about a row without an id."""
    return SchemaError(
        f"{person}: the id of a person is missing in some row; fill it in or remove the row, or "
        "set missing_person='own' if each such row is of another person"
    )


def make_id_error(person: str, problem: str) -> SchemaError:
    """The error about ids that do not tell persons apart."""
    return SchemaError(f"{person}: {problem}; give ids as text or as whole numbers below 2^53")


def _format_ids(persons: Any, bound: ContributionBound, tokens: Sequence[str]) -> list[str | None]:
    """Ids as text, None where they are missing."""
    id_texts = [
        None if is_missing(value, tokens) else _format_id(value, bound.person)
        for value in _to_flat_array(persons).tolist()
    ]
    if bound.missing_person == "error" and None in id_texts:
        raise make_missing_id_error(bound.person)
    return id_texts


def _format_id(value: Any, person: str) -> str:
    """An id as text that all engines share."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Decimal) and not value % 1:
        return str(int(value))
    is_exact = isinstance(value, float) and not value % 1 and abs(value) < MAX_EXACT_ID
    if is_exact or (isinstance(value, (str, int, UUID)) and not isinstance(value, bool)):
        return format_value(value)
    if isinstance(value, (float, Decimal)):
        raise make_id_error(person, "an id is a number with a fraction, or too large")
    raise make_id_error(person, f"an id is of type {type(value).__name__}")


def _number_persons(id_texts: Sequence[str | None]) -> Integers:
    """A number for every person; each row without an id is a person."""
    number_by_text: dict[str, int] = {}
    person_count = 0
    person_codes = np.empty(len(id_texts), dtype=np.int64)
    for row, id_text in enumerate(id_texts):
        person_code = person_count if id_text is None else number_by_text.get(id_text, person_count)
        if person_code == person_count:
            person_count += 1
            if id_text is not None:
                number_by_text[id_text] = person_code
        person_codes[row] = person_code
    return person_codes


def _list_content(
    columns: Mapping[str, Any], class_codes: CellCodes, schema: Schema, rows: Indices
) -> list[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """What is digested of each row, and by what rows of the same digest are ordered."""
    class_texts = to_object_array(map(format_value, schema.classes))[class_codes[rows]].tolist()
    texts_by_column, orders_by_column = [], []
    for feature in schema.features:
        column = take_rows(columns[feature.name], rows)
        if isinstance(feature, Numeric):
            numbers = parse_numbers(feature, column, schema.missing_tokens, schema.outliers)
            texts_by_column.append(_spell_numbers(feature, numbers))
            orders_by_column.append(np.where(np.isnan(numbers), 0.0, numbers).tolist())
        else:
            cells = Cells.from_schema(schema, feature)
            unknown_texts = [make_unknown_text(cells)] * (cells.other_index is not None)
            cell_texts = to_object_array([*cells.spellings, *unknown_texts, ""])
            texts_by_column.append(cell_texts[cells.encode_column(column)].tolist())
            orders_by_column.append(texts_by_column[-1])
    row_texts = zip(*texts_by_column, class_texts, strict=True)
    row_orders = zip(*orders_by_column, class_texts, strict=True)
    return list(zip(row_texts, row_orders, strict=True))


def _spell_numbers(feature: Numeric, numbers: Floats) -> list[str]:
    """Indices on the public grid as text; missing numbers, and those without bounds, are empty."""
    texts = np.full(len(numbers), "", dtype=object)
    if feature.is_bounded:
        is_present = ~np.isnan(numbers)
        grid_indices = Grid.from_feature(feature).to_indices(numbers[is_present])
        texts[is_present] = [str(index) for index in grid_indices.tolist()]
    return list(texts)
