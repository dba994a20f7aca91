"""A Naive Bayes model as one SELECT: cells by comparison, scores by addition, the largest decides.

The query reads a table in steps, each a common table expression: the columns as text and numbers,
the cells of their values, the scores of the classes, and what is shown. A value that the model
refuses has no cell: it is NULL, and so are the sum, the prediction and the probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from discreet import __version__
from discreet.errors import EstimationError
from discreet.model import GaussianFactor, NaiveBayesModel
from discreet.model.factors import PairFactor
from discreet.model.sql_columns import InputColumns
from discreet.model.sql_dialects import DIALECTS, IMPOSSIBLE_SCORE, format_double
from discreet.model.sql_text import (
    has_integer_labels,
    split_table_name,
    write_case,
)
from discreet.schema.cells import Cells
from discreet.schema.dates import DatePart
from discreet.schema.schema import Categorical, Numeric, format_value

__all__ = ["SqlQuery"]

LEAST_POSSIBLE_SCORE = -1e200
"""Scores below are taken as impossible, where a model knows of something impossible."""
MIN_LOG_ODDS = -700
"""Log-odds below which a probability becomes 0: PostgreSQL refuses to compute what is less."""
MAX_ARGUMENTS = 50
"""Most arguments of a function: SQLite takes at least 100."""
PREDICTION = "prediction"
"""Name of the column of predictions."""


class SqlQuery:
    """The text of a query in the making: every method adds columns to one of its steps.

    Parameters
    ----------
    model : NaiveBayesModel
    table : str
        Name of the table; a dot separates it from its schema.
    dialect : {"duckdb", "postgres", "sqlite"}
    keys : sequence of str
        Columns that are copied to the result.
    with_probabilities : bool
        Whether to give P(class) for every class.
    """

    def __init__(
        self,
        model: NaiveBayesModel,
        table: str,
        dialect: str,
        keys: Sequence[str],
        *,
        with_probabilities: bool,
    ) -> None:
        if dialect not in DIALECTS:
            raise EstimationError(f"dialect={dialect!r}; write one of {', '.join(DIALECTS)}")
        if not table.strip():
            raise EstimationError("the name of the table is empty; write which table to predict")
        if not model.factors:
            raise EstimationError("this model has no features; there is nothing to export")
        self.model, self.dialect, self.keys = model, DIALECTS[dialect], list(dict.fromkeys(keys))
        self.table_parts = split_table_name(table)
        self.class_names = [format_value(value) for value in model.schema.classes]
        self.probability_names = [f"P({name})" for name in self.class_names * with_probabilities]
        for name in (PREDICTION, *self.probability_names):
            if name in self.keys:
                raise EstimationError(
                    f"{name!r} is a column of the result; leave it out of the keys, or give it "
                    "another name in a view of the table"
                )
        self.columns = InputColumns(model, self.dialect, self.keys)
        self.cells: dict[str, str] = {}
        self.cell_names: dict[Cells, str] = {}
        self.pair_codes: dict[str, str] = {}

    def build(self) -> str:
        """The whole query, after the promise of the model as a comment."""
        class_indices = range(len(self.class_names))
        scores = self._write_scores()
        key_columns = {name: name for name in self.columns.inputs if name.startswith("k")}
        score_columns = key_columns | {f"s{c}": scores[c] for c in class_indices}
        steps: list[tuple[str, dict[str, str], bool]] = [
            ("inputs", self.columns.inputs, False),
            ("date_texts", self.columns.dates.texts, True),
            ("dates", self.columns.dates.dates, True),
            ("date_fields", self.columns.dates.fields, True),
            ("days", self.columns.dates.days, True),
            ("standardised", self.columns.standardised, True),
            ("components", self.columns.components, True),
            ("cells", self.cells, True),
            ("pairs", self.pair_codes, True),
            ("scores", score_columns, False),
        ]
        if any("-1e+290" in score for score in scores):
            limited_scores = {
                f"s{c}": f"CASE WHEN s{c} < {format_double(LEAST_POSSIBLE_SCORE)} "
                f"THEN {self.dialect.write_constant(IMPOSSIBLE_SCORE)} ELSE s{c} END"
                for c in class_indices
            }
            steps.append(("possible_scores", key_columns | limited_scores, False))
        best_score = self._write_greatest([f"s{c}" for c in class_indices])
        steps.append(("best_scores", {"best": best_score}, True))
        outputs = {key: f"k{position}" for position, key in enumerate(self.keys)}
        outputs[PREDICTION] = PREDICTION
        if self.probability_names:
            zero = self.dialect.write_constant(0.0)
            odds = {
                f"e{c}": f"CASE WHEN s{c} - best < {MIN_LOG_ODDS} THEN {zero} "
                f"ELSE EXP(s{c} - best) END"
                for c in class_indices
            }
            steps.append(("odds", odds, True))
            odds_sum = " + ".join(odds)
            outputs |= {
                name: f"e{c} / ({odds_sum})" for c, name in enumerate(self.probability_names)
            }
        steps.append(("decisions", {PREDICTION: self._write_prediction()}, True))
        return self._write_comment() + self._write_steps(steps, outputs)

    def _write_steps(
        self, steps: Iterable[tuple[str, dict[str, str], bool]], outputs: Mapping[str, str]
    ) -> str:
        """Steps that have columns of their own, each from the one before it, and the result."""
        texts, source = [], ".".join(map(self.dialect.quote_name, self.table_parts))
        source += (
            " AS source_rows"  # SQLite takes unknown names in quotes as text, but not after it
        )
        for step_name, columns, keeps_columns in steps:
            if not columns:
                continue
            lines = ["*"] * keeps_columns
            lines += [
                name if name == text else f"{text} AS {name}" for name, text in columns.items()
            ]
            step_name = f"discreet_{step_name}"
            while step_name == self.table_parts[-1]:
                step_name += "_"
            texts.append(
                f"{step_name} AS {self.dialect.fence_before}(\n  SELECT\n    "
                + ",\n    ".join(lines)
                + f"\n  FROM {source}{self.dialect.fence_after}\n)"
            )
            source = step_name
        result = [f"{text} AS {self.dialect.quote_name(name)}" for name, text in outputs.items()]
        return f"WITH {', '.join(texts)}\nSELECT\n  " + ",\n  ".join(result) + f"\nFROM {source}\n"

    def _write_comment(self) -> str:
        """The promise, as lines that no name in it can end."""
        lines = [
            f"Naive Bayes classifier, written for {self.dialect.name} by discreet {__version__}.",
            "A value that the model refuses (unknown, out of bounds, missing where it may not be) "
            "makes the prediction NULL.",
            *str(self.model.guarantee).splitlines(),
        ]
        return "".join(
            f"-- {''.join(sign if sign.isprintable() else ' ' for sign in line)}\n"
            for line in lines
        )

    def _write_prediction(self) -> str:
        labels = [
            str(value)
            if has_integer_labels(self.model.schema.classes)
            else self.dialect.quote_text(format_value(value))
            for value in self.model.schema.classes
        ]
        return write_case((f"s{c} = best", label) for c, label in enumerate(labels))

    def _write_greatest(self, names: list[str]) -> str:
        """The largest of some columns, NULL where they are all NULL."""
        while len(names) > 1:
            chunks = [
                names[first : first + MAX_ARGUMENTS]
                for first in range(0, len(names), MAX_ARGUMENTS)
            ]
            names = [
                f"{self.dialect.greatest}({', '.join(chunk)})" if len(chunk) > 1 else chunk[0]
                for chunk in chunks
            ]
        return names[0]

    def _write_scores(self) -> list[str]:
        """Joint: log P(c) + sum of log P(x_j | c), added up in the model's own order, tempered."""
        terms = [[self.dialect.write_constant(prior)] for prior in self.model.log_prior]
        densities = []
        for factor in self.model.factors:
            if isinstance(factor, GaussianFactor):
                densities.append(factor)
                continue
            code = self._add_cells(factor.cells)
            for class_terms, cell_scores in zip(terms, factor.log_probability, strict=True):
                class_terms.append(self._write_table(code, enumerate(cell_scores)))
        for pair in self.model.pairs:
            code = self._add_pair(pair)
            for class_terms, group_scores in zip(terms, pair.scores, strict=True):
                class_terms.append(self._write_table(code, [(-1, 0.0), *enumerate(group_scores)]))
        for density in densities:
            for class_index, text in enumerate(self._write_density(density)):
                terms[class_index].append(text)
        sums = ["\n      + ".join(class_terms) for class_terms in terms]
        if self.model.temperature == 1:
            return sums
        temperature = format_double(self.model.temperature)
        return [f"{temperature} * (\n      {joint}\n    )" for joint in sums]

    def _write_table(self, code: str, scores: Iterable[tuple[int, float]]) -> str:
        """What each value of a code adds; the first number makes all of them doubles."""
        arms = [
            (str(index), format_double(max(score, IMPOSSIBLE_SCORE))) for index, score in scores
        ]
        first_code, first_score = arms[0]
        return write_case(
            [(first_code, self.dialect.type_double(first_score)), *arms[1:]], operand=code
        )

    def _write_density(self, factor: GaussianFactor) -> list[str]:
        """The normal log-density of each class, or what a missing value adds."""
        number, is_absent = self.columns.add_number(factor.feature)
        clipped_name, absent_name = f"n{number[1:]}", f"a{number[1:]}"
        absent_arms = [(is_absent, "NULL")] if is_absent else []
        self.cells[clipped_name] = write_case(
            [*absent_arms, *self.columns.list_refusals(factor.feature, number)],
            self.columns.clip_number(factor.feature, number),
        )
        if is_absent:
            self.cells[absent_name] = is_absent
        texts = []
        for mean, variance, constant, missing in zip(
            factor.mean, factor.variance, factor.log_constant, factor.log_missing, strict=True
        ):
            distance = f"({clipped_name} - ({format_double(mean)}))"
            density = (
                f"{distance} * {distance} * ({format_double(-0.5 / variance)}) "
                f"+ ({self.dialect.write_constant(constant)})"
            )
            if factor.feature.optional:
                arms = [(absent_name, self.dialect.write_constant(missing))]
                texts.append(write_case(arms, density))
            else:
                texts.append(f"({density})")
        return texts

    def _add_cells(self, cells: Cells) -> str:
        """The column of the indices of cells; NULL where the model refuses a value."""
        if cells in self.cell_names:
            return self.cell_names[cells]
        missing_code = "NULL" if cells.missing_index is None else str(cells.missing_index)
        if isinstance(cells.feature, DatePart):
            text = self._write_part_code(cells, missing_code)
        elif isinstance(cells.feature, Categorical):
            text = self._write_category_code(cells, missing_code)
        else:
            text = self._write_bin_code(cells, missing_code)
        name = self.cell_names[cells] = f"c{len(self.cell_names)}"
        self.cells[name] = text
        return name

    def _write_category_code(self, cells: Cells, missing_code: str) -> str:
        text_name = self.columns.add_text(cells)
        truths = [truth for truth in ("true", "false") if truth in cells.spellings]
        tokens = [
            token
            for token in dict.fromkeys(["", *cells.tokens])
            if token not in cells.spellings and token.lower() not in truths
        ]
        is_missing = f"{text_name} IS NULL"
        is_missing += f" OR {text_name} IN {self.dialect.list_texts(tokens)}" if tokens else ""
        arms = [(is_missing, missing_code)]
        arms += [
            (f"{text_name} = {self.dialect.quote_text(spelling)}", str(index))
            for spelling, index in cells.spellings.items()
        ]
        arms += [
            (f"LOWER({text_name}) = '{truth}'", str(cells.spellings[truth])) for truth in truths
        ]
        return write_case(arms, "" if cells.other_index is None else str(cells.other_index))

    def _write_part_code(self, cells: Cells, missing_code: str) -> str:
        assert isinstance(cells.feature, DatePart)
        part, text_name, is_absent = self.columns.add_part(cells.feature)
        arms = [(is_absent, missing_code)]
        arms += [
            (f"{text_name} = {self.dialect.quote_text(spelling)}", str(index))
            for spelling, index in cells.spellings.items()
        ]
        return write_case(arms, part)

    def _write_bin_code(self, cells: Cells, missing_code: str) -> str:
        feature = cells.feature
        assert isinstance(feature, Numeric)
        number, is_absent = self.columns.add_number(feature)
        arms = [(is_absent, missing_code)] if is_absent else []
        arms += self.columns.list_refusals(feature, number)
        arms += [
            (f"{number} < {self.dialect.write_edge(edge)}", str(index))
            for index, edge in enumerate(cells.edges[1:-1])
        ]
        return write_case([*arms, (f"{number} IS NOT NULL", str(cells.value_count - 1))])

    def _add_pair(self, pair: PairFactor) -> str:
        """The column of the number of a pair of groups; -1 where a cell is to be ignored."""
        codes = [self._add_cells(cells) for cells in pair.cells]
        steps = [max(pair.groups[1]) + 1, 1]
        ignored, group_codes = [f"{codes[0]} IS NULL OR {codes[1]} IS NULL"], []
        arms = [(ignored[0], "NULL")]
        for code, groups, step in zip(codes, pair.groups, steps, strict=True):
            ignored_cells = [str(cell) for cell, group in enumerate(groups) if group < 0]
            if ignored_cells:
                arms.append((f"{code} IN ({', '.join(ignored_cells)})", "-1"))
            group_arms = [
                (str(cell), str(group * step)) for cell, group in enumerate(groups) if group >= 0
            ]
            group_codes.append(write_case(group_arms, operand=code))
        name = f"p{len(self.pair_codes)}"
        self.pair_codes[name] = write_case(arms, " + ".join(group_codes))
        return name
