# SPDX-License-Identifier: Apache-2.0
"""What is known of implementations that cannot run here, held against their rows."""

from __future__ import annotations

import numpy as np
import pytest

from precision_lab.inputs.parameters import make_bias, make_gain
from precision_lab.inputs.synthetic import make_inputs
from precision_lab.norm.ground_truth import truth
from precision_lab.numbers.table import formats
from precision_lab.plan.emulation import emulate
from precision_lab.plan.table import plans

NARROW = [formats["float16"], formats["bfloat16"]]


def filled(name, value, *, eps, format="float16", hidden=8, **switches):
    """The first output of a constant row."""
    x = formats[format].cast(np.full((1, hidden), value))
    plan = plans[name].replace(**switches)
    return float(emulate(x, eps=eps, plan=plan)[0, 0])


def normal(format, rows=32, hidden=1024):
    """Rows and a random gain in a format."""
    x = make_inputs("normal", rows=rows, hidden=hidden, seed=5)
    return format.cast(x), format.cast(make_gain("random", hidden=hidden, seed=5))


def share(one, other, format):
    """The share of outputs whose bits differ between two plans."""
    x, weight = normal(format)
    left, right = (emulate(x, weight, eps=1e-6, plan=plan) for plan in (one, other))
    return np.mean(left.view(np.uint16) != right.view(np.uint16))


def step(name, wanted, x, weight=None, *, eps, **switches):
    """What one step of a plan holds for its first row."""
    trace = []
    emulate(x, weight, eps=eps, plan=plans[name].replace(**switches), trace=trace)
    return float(next(step.values.flat[0] for step in trace if step.name == wanted))


class TestReleasesOfTorch:
    """What releases of torch were measured to give on a CPU, fp16."""

    OLD, MIDDLE, NEW = "torch-2.4-rms-norm", "torch-2.6-rms-norm", "torch-rms-norm"

    @pytest.mark.parametrize(
        ("value", "eps", "expected"),
        [
            (300.0, 1e-6, (0.0, 1.0, 1.0)),
            (60000.0, 1e-6, (0.0, 1.0, 1.0)),
            (0.0, 1e-8, (np.nan, np.nan, 0.0)),
            (1e-4, 1e-8, (np.inf, 1.0, 0.70703)),
        ],
    )
    def test_constant_rows(self, value, eps, expected):
        """2.4: squares overflow; up to 2.6 eps is rounded to float16, which makes 0 of 1e-8."""
        found = [filled(name, value, eps=eps) for name in (self.OLD, self.MIDDLE, self.NEW)]
        assert pytest.approx(expected, abs=5e-6, nan_ok=True) == found

    @pytest.mark.parametrize("format", NARROW)
    def test_cast_order(self, format):
        """2.6 has the bits of an early plan with torch's sum, and not those of 2.7."""
        early = plans["hf-llama"]
        if format.name == "bfloat16":
            assert 0 == share(self.MIDDLE, early, format)
        assert 0.2 < share(self.MIDDLE, self.NEW, format) < 0.3
        assert 0.2 < share(self.OLD, self.NEW, format)

    def test_the_eps_that_nobody_gave(self):
        """eps=None: up to 2.6 the epsilon of x's format; since 2.7 float32's, as on a GPU."""
        formats_of = ("float32", "float16", "bfloat16")
        for name in (self.OLD, self.MIDDLE):
            own = [plans[name].default_eps(format) for format in formats_of]
            assert [2.0**-23, 2.0**-10, 2.0**-7] == own
        for name in (self.NEW, "torch-cuda-rms-norm", "torch-cuda-rms-other"):
            assert {2.0**-23} == {plans[name].default_eps(format) for format in formats_of}

    def test_a_wider_weight(self):
        """bf16 rows with an fp32 weight: bf16 since 2.7."""
        x, _ = normal(formats["bfloat16"], rows=1)
        y = emulate(x, np.ones(1024, np.float32), eps=1e-6, plan=self.NEW)
        assert formats["bfloat16"].dtype == y.dtype

    def test_by_way_of_the_variance_is_no_other_function(self):
        """Variance plus the square of the mean: the paths of CUDA agree to a few units of 2^-24."""
        x, weight = (formats["float32"].cast(part) for part in normal(formats["bfloat16"]))
        one, other = (
            emulate(x, weight, eps=1e-6, plan=f"torch-cuda-rms-{path}")
            for path in ("norm", "other")
        )
        assert not np.array_equal(one, other)
        assert np.allclose(one, other, rtol=1e-6, atol=0)


class TestEps:
    """Where eps stands, and what it is held in."""

    def test_the_two_files_of_the_paper_disagree(self):
        """Outside the root eps = 2^-8 shrinks 2^-8 to a half; inside it, to about a sixteenth."""
        eps, value = 2.0**-8, 2.0**-8
        assert 0.5 == filled("rmsnorm-paper-torch", value, eps=eps)
        assert pytest.approx(2**-4, rel=0.01) == filled("rmsnorm-paper-tf", value, eps=eps)

    def test_low_formats_hold_eps(self):
        """In Liger's mode `none` and DeepMind's Gemma float16 makes 0 of eps = 1e-8: 0/0."""
        for name in ("liger-none", "gemma-jax", "rmsnorm-paper-tf"):
            assert np.isnan(filled(name, 0.0, eps=1e-8))
            assert 0 == filled(name, 300.0, eps=1e-6)
        for name in ("liger-llama", "liger-gemma", "apex-rms-norm", "meta-llama"):
            assert 0 == filled(name, 0.0, eps=1e-8)
            assert 1 == filled(name, 300.0, eps=1e-6)

    @pytest.mark.parametrize(
        ("eps", "expected"),
        [
            (1e-3, 1.0004e-3), (1e-5, 1.0014e-5), (1e-6, 1.0133e-6), (1e-7, 1.1921e-7),
            (1.5625e-7, 1.7881e-7), (1e-8, 0.0), (1e-12, 0.0),
        ],
    )  # fmt: skip
    def test_what_float16_makes_of_eps(self, eps, expected):
        """torch up to 2.6 adds another eps than it was given, for fp16 inputs."""
        held = step("torch-2.6-rms-norm", "eps", np.float16([[1.0]]), eps=eps)
        assert pytest.approx(expected, rel=1e-4) == held

    def test_layer_norm_of_gpt2(self):
        """Nothing is widened: a row of ±300 overflows, and all its outputs are 0."""
        x = np.float16([[300, -300] * 4])
        assert [0.0] * 8 == np.abs(emulate(x, eps=1e-5, plan="gpt2-tf")[0]).tolist()
        assert [1.0] * 8 == np.abs(emulate(x, eps=1e-5, plan="te-layer-norm")[0]).tolist()


class TestCastOrder:
    """Rounding before the gain shows in a quarter of the outputs; the order of sums does not."""

    @pytest.mark.parametrize("format", NARROW)
    def test_vllm_changes_its_cast_order(self, format):
        """Batch invariance switched on changes about a quarter of all bits."""
        assert 0.2 < share("vllm-rms-norm", "vllm-batch-invariant", format) < 0.3

    @pytest.mark.parametrize("format", NARROW)
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("apex-rms-norm", "vllm-rms-norm"),
            ("onnx-rms-norm", "mlx-rms-norm"),
            ("flash-attn-rms-norm", "xformers-rms-norm"),
            ("te-rms-norm-tuned", "te-rms-norm-general"),
            ("flashinfer-rms-norm", "torch-rms-norm"),
            ("paddle-rms-norm", "trt-llm-rms-norm"),
        ],
    )
    def test_the_same_cast_order_differs_little(self, one, other, format):
        """Within one cast order the reciprocal and the sum change less than one in a thousand."""
        assert share(one, other, format) < 1e-3

    def test_gain_as_an_offset(self):
        """1 + w in bf16 loses what litgpt rounds: 1 + 2^-8 is 1, and Google's is not."""
        x = formats["bfloat16"].cast([[1.0, -1.0]])
        w = np.float32([2.0**-8, 1.5 * 2.0**-7])
        low, high = (
            emulate(x, formats["bfloat16"].cast(w), eps=0.0, plan=plan).astype(float)[0]
            for plan in ("litgpt-gemma", "gemma-torch")
        )
        assert [1.0, -(1 + 2.0**-6)] == low.tolist()
        assert low[0] == high[0]
        wide = plans["gemma-torch"].replace(output_format="float32")
        y = emulate(x, formats["bfloat16"].cast(w), eps=0.0, plan=wide)
        assert [1 + 2.0**-8, -(1 + 1.5 * 2.0**-7)] == y[0].tolist()

    @pytest.mark.parametrize(
        ("weight", "expected"),
        [(0.00390625, 1.0), (0.001, 1.0), (0.05005, 1.046875), (15.8125, 16.75), (-0.996, 2**-8)],
    )
    def test_an_offset_of_one_in_the_weights_format(self, weight, expected):
        """What bf16 makes of 1 + w."""
        x, w = (formats["bfloat16"].cast([[value]]) for value in (1.0, weight))
        assert expected == step("litgpt-gemma", "weight", x, w[0], eps=1e-6)

    @pytest.mark.parametrize("format", NARROW)
    def test_gains_that_hide_the_cast_order(self, format):
        """Without a gain, with gain 1 and with powers of two early is late."""
        x, _ = normal(format)
        for values in (None, np.ones(1024), 2.0 ** (np.arange(1024) % 5 - 2)):
            weight = None if values is None else format.cast(values)
            late, early = (
                emulate(x, weight, eps=1e-6, plan=name).astype(np.float64)
                for name in ("te-rms-norm-general", "vllm-rms-norm")
            )
            assert np.mean(late != early) < 1e-3

    def test_the_gain_folded_into_the_reciprocal(self):
        """x·(r·g) differs from (x·r)·g in a third of float32's outputs, and hardly in bf16's."""
        x, weight = (formats["float32"].cast(part) for part in normal(formats["float32"]))
        product = plans["onednn-rms-norm"].replace(inverse="rsqrt")
        one, other = (
            emulate(x, weight, eps=1e-6, plan=plan)
            for plan in (product, product.replace(apply="centred"))
        )
        assert 0.3 < np.mean(one != other) < 0.4
        folded = product.replace(apply="centred")
        assert share(product, folded, formats["bfloat16"]) < 1e-4

    def test_apex_adds_the_bias_in_the_output_format(self):
        """Early plans round three times: after the norm, the weight and the bias."""
        target = formats["bfloat16"]
        x, weight = normal(target, rows=4)
        bias = target.cast(make_bias("random", hidden=1024, seed=5))
        value = target.round(emulate(x, eps=1e-5, plan="apex-layer-norm").astype(np.float64))
        expected = target.round(value * weight.astype(np.float64))
        expected = target.round(expected + bias.astype(np.float64))
        y = emulate(x, weight, bias, eps=1e-5, plan="apex-layer-norm")
        assert expected.tolist() == y.astype(np.float64).tolist()
        late = emulate(x, weight, bias, eps=1e-5, plan="te-layer-norm")
        assert 0.1 < np.mean(late.astype(np.float64) != expected) < 0.5


class TestVariance:
    """One pass, and its missing clamp."""

    @pytest.mark.parametrize(
        ("row", "variance"),
        [
            ([40000, 40001, 40002, 40003], -128.0),
            ([80000, 80001, 80002, 80003], -512.0),
            ([1234] * 256, -3.25),
        ],
    )
    def test_one_pass_can_be_negative(self, row, variance):
        """llama.cpp's CUDA norm on rows far from 0, summed in turn: NaN, where two passes work."""
        x = np.float32([row])
        found = step("llama-cpp-norm-cuda", "variance", x, eps=1e-5, order="sequential")
        assert variance == found
        one_pass = plans["llama-cpp-norm-cuda"].replace(order="sequential")
        assert np.isnan(emulate(x, eps=1e-5, plan=one_pass)).all()
        assert np.isfinite(emulate(x, eps=1e-5, plan="llama-cpp-norm-cpu")).all()
        clamped = one_pass.replace(statistic="one_pass_clamped")
        assert np.isfinite(emulate(x, eps=1e-5, plan=clamped)).all()

    def test_a_shift_cancels(self):
        """Keras subtracts m·r·γ from x·r·γ: far from 0 that leaves less than deviations do."""
        near = np.round(make_inputs("normal", rows=9, hidden=4, seed=5) * 256) / 256
        # Symmetric about 4096, so that the mean is exact in float32.
        x = (4096 + np.concatenate([near, -near], axis=1)).astype(np.float32)
        exact = truth("layer", x, eps=1e-5).value
        keras, deviations = (
            np.abs(emulate(x, eps=1e-5, plan=plan) - exact).max()
            for plan in ("keras-layer-norm", "onnx-layer-norm")
        )
        assert deviations < 1e-6
        assert 1e-4 < keras

    def test_a_double_accumulator(self):
        """llama.cpp on a CPU sums squares in a double: long rows lose nothing."""
        x = np.ones((1, 2**17), np.float32)
        x[0, 0] = 4096.0
        low, double = (
            emulate(x, eps=1e-5, plan=plans["llama-cpp-rms-cpu"].replace(order=order))[0, 1]
            for order in ("sequential", "wider:float64")
        )
        exact = ((4096.0**2 + 2**17 - 1) / 2**17) ** -0.5
        assert pytest.approx(exact, rel=1e-7) == double
        assert abs(low - exact) > 1e-4 * exact
