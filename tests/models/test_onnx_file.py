# SPDX-License-Identifier: Apache-2.0
"""ONNX models: norms as operators and written out, their constants and gains."""

from __future__ import annotations

import random
import warnings
from collections import Counter

import numpy as np
import pytest
from conftest import optional
from model_folders import outcome, trouble

from precision_lab.eps.advice import recommend_eps
from precision_lab.models.configs import read_model_config

onnx = optional("onnx")
helper, FLOAT, HALF = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
MICROSOFT = "com.microsoft"


def save(path, nodes, constants=None, *, x=("rows", 32), type=FLOAT, functions=()):
    """A model of nodes, from the input x to the last node's output."""
    stored = [onnx.numpy_helper.from_array(np.asarray(value), name)
              for name, value in (constants or {}).items()]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", type, list(x))],
        [helper.make_tensor_value_info(nodes[-1].output[0], type, None)], stored,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    if functions:
        opsets.append(helper.make_opsetid("own", 1))
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions))
    path.write_bytes(model.SerializeToString())
    return path


def written(eps, *, centre=False, root="Sqrt", add_type=np.float32, square="Mul"):
    """The nodes and constants of a norm that is written out."""
    constants = {"two": np.asarray(2, add_type), "axes": np.asarray([-1])}
    nodes, x = [], "x"
    if centre:
        nodes += [helper.make_node("ReduceMean", ["x", "axes"], ["mean"]),
                  helper.make_node("Sub", ["x", "mean"], ["d"])]  # fmt: skip
        x = "d"
    nodes.append(helper.make_node(square, [x, x if square == "Mul" else "two"], ["s"]))
    nodes.append(helper.make_node("ReduceMean", ["s", "axes"], ["m"]))
    last = "m"
    if eps is not None:
        constants["eps"] = np.asarray(eps, add_type)
        nodes.append(helper.make_node("Add", ["eps", "m"], ["a"]))
        last = "a"
    if root == "Sqrt":
        nodes += [helper.make_node("Sqrt", [last], ["r"]), helper.make_node("Div", [x, "r"], ["n"])]
    else:
        constants["half"] = np.asarray(-0.5, add_type)
        nodes += [helper.make_node("Pow", [last, "half"], ["r"]),
                  helper.make_node("Mul", [x, "r"], ["n"])]  # fmt: skip
    return nodes, constants


def only(config):
    """The one part of a config."""
    (part,) = config.parts
    return part


class TestOperators:
    """Operators that are norms."""

    @pytest.mark.parametrize(
        ("operator", "inputs", "norm", "default"),
        [
            ("LayerNormalization", 3, "layer", 1e-5),
            ("RMSNormalization", 2, "rms", 1e-5),
            ("SimplifiedLayerNormalization", 2, "rms", 1e-5),
            ("SkipLayerNormalization", 4, "layer", 1e-12),
            ("SkipSimplifiedLayerNormalization", 3, "rms", 1e-12),
        ],
    )
    def test_epsilon_of_an_operator(self, tmp_path, operator, inputs, norm, default):
        """The attribute, or the schema's default; width and gain of its weight."""
        width = random.randint(2, 99)
        names = ["x", "x", "norm.weight", "norm.bias"] if inputs > 3 or "Skip" in operator else [
            "x", "norm.weight", "norm.bias"]  # fmt: skip
        weight = np.random.default_rng().random(width, np.float32)
        for eps in (None, 3e-7):
            stated = {} if eps is None else {"epsilon": eps}
            node = helper.make_node(
                operator,
                names[:inputs],
                ["y"],
                domain=MICROSOFT if "Skip" in operator else "",
                **stated,
            )
            constants = {"norm.weight": weight, "norm.bias": weight[::-1].copy()}
            path = save(tmp_path / "a.onnx", [node], constants, x=("rows", width))
            config = read_model_config(path)
            part = only(config)
            assert (norm, eps or default, width) == (part.norm, part.eps, part.hidden_size)
            np.testing.assert_array_equal(weight, config.gains["norm"][0])
            assert (config.gains["norm"][1] is not None) == (norm == "layer")

    def test_defaults_are_those_of_the_schemas(self):
        """What a node adds that states nothing is what onnx's own schema says."""
        from precision_lab.models.onnx_file import OPERATORS, UNJUDGED

        known = {"LayerNormalization", "RMSNormalization", "GroupNormalization",
                 "InstanceNormalization", "BatchNormalization"}  # fmt: skip
        for name in known:
            schema = onnx.defs.get_schema(name)
            ours = OPERATORS[name].eps if name in OPERATORS else UNJUDGED[name]
            assert np.float32(ours) == np.float32(schema.attributes["epsilon"].default_value.f)

    def test_other_norms_are_listed_with_their_eps(self, tmp_path):
        """Norms over groups or batches are not judged, and never passed over."""
        gain = np.ones(32, np.float32)
        nodes = [
            helper.make_node("LayerNormalization", ["x", "w"], ["a"]),
            helper.make_node("GroupNormalization", ["a", "w", "w"], ["y"], num_groups=4,
                             epsilon=1e-3),
        ]  # fmt: skip
        config = read_model_config(save(tmp_path / "a.onnx", nodes, {"w": gain}, x=(2, 32)))
        assert [("GroupNormalization", True)] == [(one.kind, "0.001" in one.why)
                                                   for one in config.unjudged]  # fmt: skip
        node = helper.make_node("InstanceNormalization", ["x", "w", "w"], ["y"])
        path = save(tmp_path / "b.onnx", [node], {"w": gain}, x=(2, 32, 5))
        assert "no RMSNorm or LayerNorm to judge" in trouble(path)

    def test_another_axis_is_not_judged(self, tmp_path):
        """A norm over several axes is told."""
        node = helper.make_node("LayerNormalization", ["x", "w"], ["y"], axis=1)
        path = save(tmp_path / "a.onnx", [node], {"w": np.ones((4, 8), np.float32)}, x=(2, 4, 8))
        assert "no RMSNorm or LayerNorm to judge" in trouble(path)

    def test_branches_share_their_norms(self, tmp_path):
        """Norms of both branches are one where their weight is one; a function's are found too."""
        type = helper.make_tensor_value_info("y", FLOAT, None)
        branches = {
            f"{name}_branch": helper.make_graph(
                [helper.make_node("LayerNormalization", ["x", "w"], ["y"], epsilon=1e-6)], name, [],
                [type])
            for name in ("then", "else")
        }  # fmt: skip
        node = helper.make_node("If", ["flag"], ["z"], **branches)
        constants = {"w": np.ones(32, np.float32), "flag": np.asarray(True)}
        part = only(read_model_config(save(tmp_path / "a.onnx", [node], constants)))
        assert (1e-6, 1) == (part.eps, part.count)
        body = [helper.make_node("RMSNormalization", ["p", "q"], ["o"], epsilon=1e-4)]
        function = helper.make_function("own", "Ours", ["p", "q"], ["o"], body,
                                        [helper.make_opsetid("", 23)])  # fmt: skip
        nodes = [helper.make_node("Ours", ["x", "w"], ["y"], domain="own")]
        path = save(
            tmp_path / "b.onnx", nodes, {"w": np.ones(32, np.float32)}, functions=[function]
        )
        assert only(read_model_config(path)).eps == 1e-4

    def test_norms_that_share_a_weight_are_two(self, tmp_path):
        """Exporters store equal weights once, and the norms differ all the same."""
        nodes = [
            helper.make_node("LayerNormalization", ["x", "w"], ["a"], epsilon=1e-6),
            helper.make_node("LayerNormalization", ["a", "w"], ["y"], epsilon=1e-3),
        ]
        path = save(tmp_path / "a.onnx", nodes, {"w": np.ones(32, np.float32)})
        assert {1e-6, 1e-3} == {part.eps for part in read_model_config(path).parts}


class TestWrittenOut:
    """Norms of simple operators."""

    @pytest.mark.parametrize("centre", [False, True])
    @pytest.mark.parametrize("root", ["Sqrt", "Pow"])
    @pytest.mark.parametrize("square", ["Mul", "Pow"])
    def test_the_constant_under_the_root(self, tmp_path, centre, root, square):
        """Kind, eps and width of each form."""
        nodes, constants = written(1e-6, centre=centre, root=root, square=square)
        part = only(read_model_config(save(tmp_path / "a.onnx", nodes, constants)))
        wanted = ("layer" if centre else "rms", 1e-6, 32)
        assert wanted == (part.norm, part.eps, part.hidden_size)

    def test_a_constant_that_half_precision_makes_zero_is_harm(self, tmp_path):
        """1e-8 is 0 in float16: the norm is read with eps 0, and a row of zeros gives NaN."""
        nodes, constants = written(1e-8, add_type=np.float16)
        path = save(tmp_path / "a.onnx", nodes, constants, type=HALF)
        part = only(read_model_config(path))
        assert (part.eps, part.plan) == (0.0, "all-low")
        advice = recommend_eps(path)
        assert advice.verdict != "keep"
        assert "zero-row-nan" in {one.code for one in advice.findings}
        nodes, constants = written(1e-6, add_type=np.float16)
        path = save(tmp_path / "a.onnx", nodes, constants, type=HALF)
        assert float(np.float16(1e-6)) == only(read_model_config(path)).eps

    def test_a_constant_that_is_cast_to_half(self, tmp_path):
        """The cast counts, not what is stored."""
        nodes, constants = written(1e-8)
        at = next(place for place, node in enumerate(nodes) if node.op_type == "Add")
        nodes.insert(at, helper.make_node("Cast", ["eps"], ["low"], to=HALF))
        nodes[at + 1].input[0] = "low"
        assert (
            only(read_model_config(save(tmp_path / "a.onnx", nodes, constants, type=HALF))).eps == 0
        )

    def test_no_constant_is_an_eps_of_zero(self, tmp_path):
        """A root of the bare mean of squares."""
        nodes, constants = written(None)
        assert only(read_model_config(save(tmp_path / "a.onnx", nodes, constants))).eps == 0

    def test_eps_outside_the_root_is_not_judged(self, tmp_path):
        """x / (√ms + eps) is another function."""
        nodes, constants = written(None)
        nodes[-1].input[1] = "outside"
        nodes.insert(-1, helper.make_node("Add", ["r", "eps"], ["outside"]))
        constants["eps"] = np.asarray(1e-6, np.float32)
        path = save(tmp_path / "a.onnx", nodes, constants)
        assert "no RMSNorm or LayerNorm to judge" in trouble(path)

    def test_one_is_added_to_the_weight(self, tmp_path):
        """Gemma's 1 + w is an offset, and the weight is as stored."""
        nodes, constants = written(1e-6)
        constants |= {"one": np.asarray(1, np.float32), "w": np.full(32, 0.25, np.float32)}
        nodes += [helper.make_node("Add", ["w", "one"], ["g"]),
                  helper.make_node("Mul", ["n", "g"], ["y"])]  # fmt: skip
        config = read_model_config(save(tmp_path / "a.onnx", nodes, constants))
        assert only(config).weight_offset == 1
        np.testing.assert_array_equal(constants["w"], config.gains["w"][0])

    def test_a_root_of_anything_else_is_no_norm(self, tmp_path):
        """A distance is none."""
        nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Sqrt", ["s"], ["y"])]
        assert "holds no norm" in trouble(save(tmp_path / "a.onnx", nodes))


class TestExports:
    """What torch's exporter writes."""

    @pytest.mark.parametrize("opset", [14, 17])
    def test_a_model_of_torch(self, tmp_path, opset):
        """Every norm of the model with its eps, width and gain, fused or written out."""
        torch = optional("torch")

        class Rms(torch.nn.Module):
            def __init__(self, width, eps):
                super().__init__()
                self.weight, self.eps = torch.nn.Parameter(torch.rand(width)), eps

            def forward(self, x):
                wide = x.float()
                r = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
                return self.weight * (wide * r).to(x.dtype)

        widths = [random.randrange(8, 64, 4) for _ in range(3)]
        all_eps = [1e-6, 3e-5, 1e-12]
        model = torch.nn.Sequential()
        for width, after, eps in zip(widths, [*widths[1:], 8], all_eps, strict=True):
            model.append(Rms(width, eps))
            model.append(torch.nn.LayerNorm(width, eps=2 * eps))
            torch.nn.init.uniform_(model[-1].weight)
            model.append(torch.nn.Linear(width, after))
        path = tmp_path / "model.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model.eval(), (torch.rand(2, 3, widths[0]),), path, dynamo=False,
                              opset_version=opset)  # fmt: skip
        config = read_model_config(path)
        found = Counter()
        for part in config.parts:
            found[part.norm, part.eps, part.hidden_size] += part.count
        wanted = Counter(("rms", eps, width) for width, eps in zip(widths, all_eps, strict=True))
        wanted += Counter(("layer", 2 * eps, width)
                          for width, eps in zip(widths, all_eps, strict=True))  # fmt: skip
        assert wanted == found
        for name, (weight, _) in config.gains.items():
            np.testing.assert_array_equal(model.get_parameter(f"{name}.weight").detach(), weight)


class TestHostile:
    """Any bytes are a model or an input error."""

    @pytest.mark.parametrize("seed", range(3))
    def test_broken_files(self, tmp_path, seed):
        """Bytes that are changed or cut off never give another error."""
        nodes, constants = written(1e-6, centre=True)
        path = save(tmp_path / "a.onnx", nodes, constants)
        whole, random_ = path.read_bytes(), random.Random(seed)
        for _ in range(100):
            content = bytearray(whole)
            for _ in range(random_.randint(1, 4)):
                content[random_.randrange(len(content))] = random_.randrange(256)
            if random_.random() < 0.3:
                del content[random_.randrange(len(content)) :]
            path.write_bytes(content)
            assert "\n" not in outcome(path)

    def test_what_is_no_model(self, tmp_path):
        """Other bytes, an empty file and a graph that goes in circles."""
        path = tmp_path / "a.onnx"
        for content in (b"", b"\xff" * 99, b"no model"):
            path.write_bytes(content)
            assert "no ONNX model" in trouble(path)
        nodes = [helper.make_node("Cast", ["b"], ["a"], to=FLOAT),
                 helper.make_node("Cast", ["a"], ["b"], to=FLOAT),
                 helper.make_node("Sqrt", ["a"], ["y"])]  # fmt: skip
        assert "holds no norm" in trouble(save(path, nodes))
