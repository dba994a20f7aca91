"""A Naive Bayes model as an ONNX graph, node by node, in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet import __version__
from discreet.encoding import Cells
from discreet.model import GaussianFactor, NaiveBayesModel
from discreet.projection import Projection
from discreet.schema import Categorical, Numeric, text_of

__all__ = ["Graph"]

OPSET = 18
ML_OPSET = 3
IR_VERSION = 8
"""Of 2022, so that runtimes since then read the file."""


class Graph:
    """An ONNX graph in the making: every method adds nodes and returns their output's name."""

    def __init__(self, onnx: Any, model: NaiveBayesModel) -> None:
        self.onnx, self.model = onnx, model
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.taken = {*model.schema.names, *model.inputs.names}
        self.column = {name: name for name in model.schema.names}
        """The tensor that holds the column of a feature, of shape (rows, 1)."""

    def build(self) -> Any:
        """The whole ONNX model, checked."""
        onnx, helper, model = self.onnx, self.onnx.helper, self.model
        label, probabilities = self._free("label"), self._free("probabilities")
        inputs = self._inputs()
        joint = self._joint()
        self._decide(joint, label, probabilities)
        kinds = onnx.TensorProto
        label_kind = kinds.INT64 if _whole(model.schema.classes) else kinds.STRING
        outputs = [
            helper.make_tensor_value_info(label, label_kind, ["rows"]),
            helper.make_tensor_value_info(
                probabilities, kinds.DOUBLE, ["rows", len(model.schema.classes)]
            ),
        ]
        graph = helper.make_graph(self.nodes, "naive_bayes", inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        whole = helper.make_model(
            graph,
            opset_imports=versions,
            ir_version=IR_VERSION,
            producer_name="discreet",
            producer_version=__version__,
            doc_string=str(model.guarantee),
        )
        facts = {
            "target": model.schema.target,
            "schema_digest": model.schema.digest,
            "guarantee": str(model.guarantee),
        }
        helper.set_model_props(whole, facts)
        onnx.checker.check_model(whole)
        return whole

    def _inputs(self) -> list[Any]:
        """Declare the columns that are read, and make components of them where the model does."""
        pairs = (name for pair in self.model.pairs for name in pair.names)
        names = list(dict.fromkeys([*(factor.name for factor in self.model.factors), *pairs]))
        projection = self.model.projection
        if projection is not None and any(one.name in names for one in projection.components):
            made = {one.name for one in projection.components}
            names = [name for name in names if name not in made]
            names += [feature.name for feature in projection.numeric]
            self._project(projection)
        kinds = self.onnx.TensorProto
        return [
            self.onnx.helper.make_tensor_value_info(
                name,
                kinds.STRING if isinstance(self.model.inputs[name], Categorical) else kinds.DOUBLE,
                ["rows", 1],
            )
            for name in names
        ]

    def _project(self, projection: Projection) -> None:
        """Components, added up in the order of the features; what is refused counts as missing."""
        zero, total = self._constant(np.array(0.0)), ""
        outliers = projection.before.outliers
        for j, feature in enumerate(projection.numeric):
            number = self._clipped(feature, feature.name, outliers)
            number = self._add("Sub", number, self._constant(projection.centre[j]))
            z = self._add("Div", number, self._constant(projection.scale[j]))
            absent = self._add("IsNaN", feature.name)
            absent = self._add("Or", absent, self._refused(feature, feature.name, outliers))
            z = self._add("Where", absent, zero, z)
            part = self._add("Mul", z, self._constant(projection.matrix[j][None, :]))
            total = self._add("Add", total, part) if total else part
        for k, one in enumerate(projection.components):
            self.column[one.name] = self._add("Gather", total, self._constant([k]), axis=1)

    def _clipped(self, feature: Numeric, column: str, outliers: str) -> str:
        if outliers == "clip":
            for operator, bound in (("Max", feature.lower), ("Min", feature.upper)):
                if np.isfinite(bound):
                    column = self._add(operator, column, self._constant(np.array(bound)))
        return column

    def _joint(self) -> str:
        """Joint: log P(c) + sum of log P(x_j | c), added up in the model's own order."""
        joint = self._constant(self.model.log_prior[None, :])
        dense: list[GaussianFactor] = []
        codes_of: dict[Cells, str] = {}
        for factor in self.model.factors:
            if isinstance(factor, GaussianFactor):
                dense.append(factor)
                continue
            codes = codes_of[factor.cells] = self._codes(factor.cells)
            # the last row is the cell of everything the model would refuse: it adds nothing
            table = np.vstack([factor.log_probability.T, np.zeros(len(self.model.log_prior))])
            joint = self._add("Add", joint, self._add("Gather", self._constant(table), codes))
        for pair in self.model.pairs:
            for cells in pair.cells:
                if cells not in codes_of:
                    codes_of[cells] = self._codes(cells)
            one, two = pair.cells
            # as above, a row and a column more
            table = np.pad(pair.by_cells, ((0, 1), (0, 1), (0, 0)))
            row = self._add("Mul", codes_of[one], self._constant(np.array(two.size + 1)))
            codes = self._add("Add", row, codes_of[two])
            table = table.reshape(-1, len(self.model.log_prior))
            joint = self._add("Add", joint, self._add("Gather", self._constant(table), codes))
        if dense:
            joint = self._add("Add", joint, self._densities(dense))
        return joint

    def _decide(self, joint: str, label: str, probabilities: str) -> None:
        best = self._add("ArgMax", joint, axis=1, keepdims=0)
        classes = self.model.schema.classes
        words = classes if _whole(classes) else [text_of(value) for value in classes]
        self._add("Gather", self._constant(words), best, out=label)
        last = self._constant([1])
        top = self._add("ReduceMax", joint, last)
        # impossible under every class: nothing is known, as in model.normalised
        lost = self._add("Equal", top, self._constant(np.array(-np.inf)))
        zero = self._constant(np.array(0.0))
        shifted = self._add(
            "Sub",
            self._add("Where", lost, zero, joint),
            self._add("Where", lost, zero, top),
        )
        total = self._add("ReduceSum", self._add("Exp", shifted), last)
        self._add("Exp", self._add("Sub", shifted, self._add("Log", total)), out=probabilities)

    def _codes(self, cells: Cells) -> str:
        """Cell indices, of shape (rows,); the number of cells stands for "leave it out"."""
        column = self.column[cells.feature.name]
        absent = cells.size if cells.missing is None else cells.missing
        axis = self._constant([1])
        if isinstance(cells.feature, Categorical):
            known = dict.fromkeys(["", *cells.tokens], absent)
            known |= {text_of(value): index for index, value in enumerate(cells.feature.values)}
            codes = self._add(
                "LabelEncoder",
                column,
                domain="ai.onnx.ml",
                keys_strings=list(known),
                values_int64s=list(known.values()),
                default_int64=cells.size if cells.other is None else cells.other,
            )
            return self._add("Squeeze", codes, axis)
        edges = cells.edges[1:-1] or (np.nan,)  # nothing reaches NaN: a single bin
        reached = self._add("GreaterOrEqual", column, self._constant(np.array([edges])))
        bins = self._add("ReduceSum", self._cast(reached, "INT64"), axis, keepdims=0)
        number = self._add("Squeeze", column, axis)
        bins = self._add(
            "Where", self._add("IsNaN", number), self._constant(np.array(absent)), bins
        )
        refused = self._refused(cells.feature, number, cells.outliers)
        return self._add("Where", refused, self._constant(np.array(cells.size)), bins)

    def _densities(self, factors: Sequence[GaussianFactor]) -> str:
        """Sum of the normal log-densities, of shape (rows, classes)."""
        outliers = self.model.schema.outliers
        columns, refusals = [], []
        for factor in factors:
            column = self.column[factor.name]
            refusals.append(self._refused(factor.feature, column, outliers))
            columns.append(self._clipped(factor.feature, column, outliers))
        axis, last = self._constant([1]), self._constant([2])
        stacked = self._add("Unsqueeze", self._add("Concat", *columns, axis=1), axis)
        missing = self._add("Concat", *(self.column[factor.name] for factor in factors), axis=1)
        missing = self._add("Unsqueeze", self._add("IsNaN", missing), axis)
        refused = self._add("Unsqueeze", self._add("Concat", *refusals, axis=1), axis)
        mean = self._by_class([factor.mean for factor in factors])
        weight = self._by_class([-0.5 / factor.variance for factor in factors])
        constant = self._by_class([factor.constant for factor in factors])
        absent = self._by_class([factor.log_missing for factor in factors])
        distance = self._add("Sub", stacked, mean)
        square = self._add("Mul", distance, distance)
        term = self._add("Add", self._add("Mul", square, weight), constant)
        term = self._add("Where", missing, absent, term)
        term = self._add("Where", refused, self._constant(np.array(0.0)), term)
        return self._add("ReduceSum", term, last, keepdims=0)

    def _refused(self, feature: Numeric, number: str, outliers: str) -> str:
        """Where the model would raise an error; numbers keep their shape."""
        wrong = []
        if not feature.optional:
            wrong.append(self._add("IsNaN", number))
        if outliers == "error":
            wrong.append(self._add("Less", number, self._constant(np.array(feature.lower))))
            wrong.append(self._add("Greater", number, self._constant(np.array(feature.upper))))
        if feature.integer:
            rest = self._add("Sub", number, self._add("Floor", number))
            wrong.append(self._add("Greater", rest, self._constant(np.array(0.0))))
        if not wrong:
            wrong.append(self._add("Less", number, self._constant(np.array(-np.inf))))  # never
        result = wrong[0]
        for other in wrong[1:]:
            result = self._add("Or", result, other)
        return result

    def _cast(self, name: str, kind: str) -> str:
        return self._add("Cast", name, to=getattr(self.onnx.TensorProto, kind))

    def _add(self, operator: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        out = out or self._free(f"{operator.lower()}_{len(self.nodes)}")
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [out], **attributes))
        return out

    def _constant(self, value: Any) -> str:
        name = self._free(f"constant_{len(self.constants)}")
        array = np.array(value)
        if array.dtype.kind in "US":
            array = array.astype(object)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def _by_class(self, columns: Sequence[Any]) -> str:
        """A constant of shape (classes, features)."""
        return self._constant(np.array(columns).T)

    def _free(self, name: str) -> str:
        """A name that no feature and no earlier node has."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _whole(classes: Sequence[Any]) -> bool:
    return all(isinstance(one, int) and not isinstance(one, bool) for one in classes)
