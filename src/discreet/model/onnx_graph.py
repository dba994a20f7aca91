"""A Naive Bayes model as an ONNX graph, node by node, in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet import __version__
from discreet.model import GaussianFactor, NaiveBayesModel
from discreet.model.sql_text import has_integer_labels
from discreet.schema.cells import Cells
from discreet.schema.projection import Projection
from discreet.schema.schema import Categorical, Numeric, format_value

__all__ = ["Graph"]

OPSET = 18
"""Version of ONNX's operators: of 2022, so that runtimes since then read the file."""
ML_OPSET = 3
"""Version of the operators of ``ai.onnx.ml``: of the same time."""
IR_VERSION = 8
"""Version of the file format: of the same time."""


class Graph:
    """An ONNX graph in the making: every method adds nodes and returns their output's name."""

    def __init__(self, onnx: Any, model: NaiveBayesModel) -> None:
        self.onnx, self.model = onnx, model
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.used_names = {*model.schema.names, *model.inputs.names}
        self.column_tensors = {name: name for name in model.schema.names}
        """The tensor that holds the column of a feature, of shape (rows, 1)."""

    def build(self) -> Any:
        """The whole ONNX model, checked."""
        onnx, helper, model = self.onnx, self.onnx.helper, self.model
        label_name = self._reserve_name("label")
        probabilities_name = self._reserve_name("probabilities")
        inputs = self._make_inputs()
        joint_name = self._add_joint()
        self._add_decision(joint_name, label_name, probabilities_name)
        tensor_types = onnx.TensorProto
        label_kind = (
            tensor_types.INT64 if has_integer_labels(model.schema.classes) else tensor_types.STRING
        )
        outputs = [
            helper.make_tensor_value_info(label_name, label_kind, ["rows"]),
            helper.make_tensor_value_info(
                probabilities_name, tensor_types.DOUBLE, ["rows", len(model.schema.classes)]
            ),
        ]
        graph_proto = helper.make_graph(self.nodes, "naive_bayes", inputs, outputs, self.constants)
        opset_versions = [
            helper.make_opsetid("", OPSET),
            helper.make_opsetid("ai.onnx.ml", ML_OPSET),
        ]
        model_proto = helper.make_model(
            graph_proto,
            opset_imports=opset_versions,
            ir_version=IR_VERSION,
            producer_name="discreet",
            producer_version=__version__,
            doc_string=str(model.guarantee),
        )
        model_properties = {
            "target": model.schema.target,
            "schema_digest": model.schema.digest,
            "guarantee": str(model.guarantee),
        }
        helper.set_model_props(model_proto, model_properties)
        onnx.checker.check_model(model_proto)
        return model_proto

    def _make_inputs(self) -> list[Any]:
        """Declare the columns that are read, and make components of them where the model does."""
        pair_names = (name for pair in self.model.pairs for name in pair.names)
        names = list(dict.fromkeys([*(factor.name for factor in self.model.factors), *pair_names]))
        projection = self.model.projection
        if projection is not None and any(
            component.name in names for component in projection.components
        ):
            component_names = {component.name for component in projection.components}
            names = [name for name in names if name not in component_names]
            names += [feature.name for feature in projection.numeric_features]
            self._add_projection(projection)
        tensor_types = self.onnx.TensorProto
        return [
            self.onnx.helper.make_tensor_value_info(
                name,
                tensor_types.STRING
                if isinstance(self.model.inputs[name], Categorical)
                else tensor_types.DOUBLE,
                ["rows", 1],
            )
            for name in names
        ]

    def _add_projection(self, projection: Projection) -> None:
        """Components, added up in the order of the features; what is refused counts as missing."""
        zero_name, component_sum = self._add_constant(np.array(0.0)), ""
        outliers = projection.input_schema.outliers
        for j, feature in enumerate(projection.numeric_features):
            feature_value = self._add_clipping(feature, feature.name, outliers)
            feature_value = self._add_node(
                "Sub", feature_value, self._add_constant(projection.centre[j])
            )
            scaled_value = self._add_node(
                "Div", feature_value, self._add_constant(projection.scale[j])
            )
            is_absent = self._add_node("IsNaN", feature.name)
            is_absent = self._add_node(
                "Or", is_absent, self._add_refusal(feature, feature.name, outliers)
            )
            scaled_value = self._add_node("Where", is_absent, zero_name, scaled_value)
            feature_part = self._add_node(
                "Mul", scaled_value, self._add_constant(projection.matrix[j][None, :])
            )
            component_sum = (
                self._add_node("Add", component_sum, feature_part)
                if component_sum
                else feature_part
            )
        for component_index, component in enumerate(projection.components):
            self.column_tensors[component.name] = self._add_node(
                "Gather", component_sum, self._add_constant([component_index]), axis=1
            )

    def _add_clipping(self, feature: Numeric, column: str, outliers: str) -> str:
        if outliers == "clip":
            for operator, bound in (("Max", feature.lower), ("Min", feature.upper)):
                if np.isfinite(bound):
                    column = self._add_node(operator, column, self._add_constant(np.array(bound)))
        return column

    def _add_joint(self) -> str:
        """Joint: log P(c) + sum of log P(x_j | c), added up in the model's own order, tempered."""
        joint_name = self._add_constant(self.model.log_prior[None, :])
        gaussian_factors: list[GaussianFactor] = []
        codes_by_cells: dict[Cells, str] = {}
        for factor in self.model.factors:
            if isinstance(factor, GaussianFactor):
                gaussian_factors.append(factor)
                continue
            cell_codes = codes_by_cells[factor.cells] = self._add_cell_codes(factor.cells)
            # the last row is the cell of everything the model would refuse: it adds nothing
            score_table = np.vstack([factor.log_probability.T, np.zeros(len(self.model.log_prior))])
            joint_name = self._add_node(
                "Add",
                joint_name,
                self._add_node("Gather", self._add_constant(score_table), cell_codes),
            )
        for pair in self.model.pairs:
            for cells in pair.cells:
                if cells not in codes_by_cells:
                    codes_by_cells[cells] = self._add_cell_codes(cells)
            first_cells, second_cells = pair.cells
            # as above, a row and a column more
            score_table = np.pad(pair.scores_by_cells, ((0, 1), (0, 1), (0, 0)))
            row_offset = self._add_node(
                "Mul",
                codes_by_cells[first_cells],
                self._add_constant(np.array(second_cells.size + 1)),
            )
            cell_codes = self._add_node("Add", row_offset, codes_by_cells[second_cells])
            score_table = score_table.reshape(-1, len(self.model.log_prior))
            joint_name = self._add_node(
                "Add",
                joint_name,
                self._add_node("Gather", self._add_constant(score_table), cell_codes),
            )
        if gaussian_factors:
            joint_name = self._add_node("Add", joint_name, self._add_densities(gaussian_factors))
        if self.model.temperature != 1:
            temperature = self._add_constant(np.array(self.model.temperature))
            joint_name = self._add_node("Mul", joint_name, temperature)
        return joint_name

    def _add_decision(self, joint_name: str, label: str, probabilities: str) -> None:
        best_class = self._add_node("ArgMax", joint_name, axis=1, keepdims=0)
        classes = self.model.schema.classes
        class_labels = (
            classes if has_integer_labels(classes) else [format_value(value) for value in classes]
        )
        self._add_node("Gather", self._add_constant(class_labels), best_class, output_name=label)
        last_axis = self._add_constant([1])
        max_joint = self._add_node("ReduceMax", joint_name, last_axis)
        # impossible under every class: nothing is known, as in model.compute_log_posterior
        is_impossible = self._add_node("Equal", max_joint, self._add_constant(np.array(-np.inf)))
        zero_name = self._add_constant(np.array(0.0))
        shifted_joint = self._add_node(
            "Sub",
            self._add_node("Where", is_impossible, zero_name, joint_name),
            self._add_node("Where", is_impossible, zero_name, max_joint),
        )
        odds_sum = self._add_node("ReduceSum", self._add_node("Exp", shifted_joint), last_axis)
        self._add_node(
            "Exp",
            self._add_node("Sub", shifted_joint, self._add_node("Log", odds_sum)),
            output_name=probabilities,
        )

    def _add_cell_codes(self, cells: Cells) -> str:
        """Cell indices, of shape (rows,); the number of cells stands for "leave it out"."""
        column = self.column_tensors[cells.feature.name]
        missing_code = cells.size if cells.missing_index is None else cells.missing_index
        feature_axis = self._add_constant([1])
        if isinstance(cells.feature, Categorical):
            code_by_text = dict.fromkeys(["", *cells.tokens], missing_code)
            code_by_text |= {
                format_value(value): index for index, value in enumerate(cells.feature.values)
            }
            cell_codes = self._add_node(
                "LabelEncoder",
                column,
                domain="ai.onnx.ml",
                keys_strings=list(code_by_text),
                values_int64s=list(code_by_text.values()),
                default_int64=cells.size if cells.other_index is None else cells.other_index,
            )
            return self._add_node("Squeeze", cell_codes, feature_axis)
        inner_edges = cells.edges[1:-1] or (np.nan,)  # nothing reaches NaN: a single bin
        reached_edges = self._add_node(
            "GreaterOrEqual", column, self._add_constant(np.array([inner_edges]))
        )
        bin_codes = self._add_node(
            "ReduceSum", self._add_cast(reached_edges, "INT64"), feature_axis, keepdims=0
        )
        number = self._add_node("Squeeze", column, feature_axis)
        bin_codes = self._add_node(
            "Where",
            self._add_node("IsNaN", number),
            self._add_constant(np.array(missing_code)),
            bin_codes,
        )
        is_refused = self._add_refusal(cells.feature, number, cells.outliers)
        return self._add_node(
            "Where", is_refused, self._add_constant(np.array(cells.size)), bin_codes
        )

    def _add_densities(self, factors: Sequence[GaussianFactor]) -> str:
        """Sum of the normal log-densities, of shape (rows, classes)."""
        outliers = self.model.schema.outliers
        columns, refusals = [], []
        for factor in factors:
            column = self.column_tensors[factor.name]
            refusals.append(self._add_refusal(factor.feature, column, outliers))
            columns.append(self._add_clipping(factor.feature, column, outliers))
        feature_axis, last_axis = self._add_constant([1]), self._add_constant([2])
        stacked_columns = self._add_node(
            "Unsqueeze", self._add_node("Concat", *columns, axis=1), feature_axis
        )
        is_missing = self._add_node(
            "Concat", *(self.column_tensors[factor.name] for factor in factors), axis=1
        )
        is_missing = self._add_node("Unsqueeze", self._add_node("IsNaN", is_missing), feature_axis)
        is_refused = self._add_node(
            "Unsqueeze", self._add_node("Concat", *refusals, axis=1), feature_axis
        )
        class_means = self._add_class_constant([factor.mean for factor in factors])
        square_weights = self._add_class_constant([-0.5 / factor.variance for factor in factors])
        log_constants = self._add_class_constant([factor.log_constant for factor in factors])
        missing_scores = self._add_class_constant([factor.log_missing for factor in factors])
        distance = self._add_node("Sub", stacked_columns, class_means)
        squared_distance = self._add_node("Mul", distance, distance)
        density_terms = self._add_node(
            "Add", self._add_node("Mul", squared_distance, square_weights), log_constants
        )
        density_terms = self._add_node("Where", is_missing, missing_scores, density_terms)
        density_terms = self._add_node(
            "Where", is_refused, self._add_constant(np.array(0.0)), density_terms
        )
        return self._add_node("ReduceSum", density_terms, last_axis, keepdims=0)

    def _add_refusal(self, feature: Numeric, number: str, outliers: str) -> str:
        """Where the model would raise an error; numbers keep their shape."""
        refusal_conditions = []
        if not feature.optional:
            refusal_conditions.append(self._add_node("IsNaN", number))
        if outliers == "error":
            refusal_conditions.append(
                self._add_node("Less", number, self._add_constant(np.array(feature.lower)))
            )
            refusal_conditions.append(
                self._add_node("Greater", number, self._add_constant(np.array(feature.upper)))
            )
        if feature.integer:
            fraction_part = self._add_node("Sub", number, self._add_node("Floor", number))
            refusal_conditions.append(
                self._add_node("Greater", fraction_part, self._add_constant(np.array(0.0)))
            )
        if not refusal_conditions:
            refusal_conditions.append(
                self._add_node("Less", number, self._add_constant(np.array(-np.inf)))
            )  # never
        any_refusal = refusal_conditions[0]
        for condition in refusal_conditions[1:]:
            any_refusal = self._add_node("Or", any_refusal, condition)
        return any_refusal

    def _add_cast(self, name: str, kind: str) -> str:
        return self._add_node("Cast", name, to=getattr(self.onnx.TensorProto, kind))

    def _add_node(
        self, operator: str, *inputs: str, output_name: str = "", **attributes: Any
    ) -> str:
        output_name = output_name or self._reserve_name(f"{operator.lower()}_{len(self.nodes)}")
        self.nodes.append(
            self.onnx.helper.make_node(operator, list(inputs), [output_name], **attributes)
        )
        return output_name

    def _add_constant(self, value: Any) -> str:
        constant_name = self._reserve_name(f"constant_{len(self.constants)}")
        constant_array = np.array(value)
        if constant_array.dtype.kind in "US":
            constant_array = constant_array.astype(object)
        self.constants.append(self.onnx.numpy_helper.from_array(constant_array, constant_name))
        return constant_name

    def _add_class_constant(self, columns: Sequence[Any]) -> str:
        """A constant of shape (classes, features)."""
        return self._add_constant(np.array(columns).T)

    def _reserve_name(self, name: str) -> str:
        """A name that no feature and no earlier node has."""
        while name in self.used_names:
            name += "_"
        self.used_names.add(name)
        return name
