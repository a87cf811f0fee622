# SPDX-License-Identifier: Apache-2.0
"""Cases and the grids that list them: what is in, in which order, under which key."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math

import numpy as np
import pytest

from precision_lab import canonical_json as canonical
from precision_lab.exceptions import InputError
from precision_lab.inputs.packaged import captures
from precision_lab.inputs.synthetic import families
from precision_lab.numbers.table import formats
from precision_lab.plan.table import plans
from precision_lab.sweeps.case import PLACES, Case
from precision_lab.sweeps.grid import Sweep
from precision_lab.sweeps.sources import captured, family

CASE = Case(
    norm="rms",
    plan={"name": "late", "norm": "any", "cast": "late"},
    format="bfloat16",
    weight_format="float32",
    eps=1e-6,
    hidden=64,
    rows=4,
    source="family:normal",
    parameters={"scale": 2.0},
    seed=7,
    gain="random",
)


class TestCase:
    """What a case is known by."""

    def test_key_is_stable(self):
        """Keys of files that people have must not change: this one is committed."""
        text = (
            '{"bias":"none","eps":{"float":"0x1.0c6f7a0b5ed8dp-20"},"format":"bfloat16",'
            '"gain":"random","hidden":64,"norm":"rms","parameters":{"scale":{"float":'
            '"0x1.0000000000000p+1"}},"plan":{"cast":"late","name":"late","norm":"any"},"rows":4,'
            '"scale":"none","seed":7,"source":"family:normal","weight_format":"float32"}'
        )
        expected = "0929ad5311dea3f2eed5b3d1f05f02fea68589f8dfd11ee4bc9eed26673a5fb9"
        assert expected == hashlib.sha256(text.encode()).hexdigest()
        assert expected == CASE.key

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("norm", "layer"),
            ("plan", {"name": "late", "norm": "any", "cast": "early"}),
            ("format", "float16"),
            ("weight_format", "bfloat16"),
            ("eps", math.nextafter(1e-6, 1)),
            ("hidden", 65),
            ("rows", 5),
            ("source", "family:uniform"),
            ("parameters", {"scale": 2.0000000000000004}),
            ("seed", 8),
            ("gain", "none"),
            ("bias", "random"),
            ("scale", "per_tensor"),
            ("exact", "square"),
            ("kernel", {"name": "mine", "digest": "0"}),
            ("against", {"name": "late", "norm": "any", "cast": "early"}),
        ],
    )
    def test_any_change_is_another_case(self, name, value):
        """Each field is in the key, to the last bit."""
        assert CASE.key != dataclasses.replace(CASE, **{name: value}).key

    def test_every_field_was_changed_above(self):
        """A field that is added must be in the key as well."""
        changed = {mark.args[1][at][0] for mark in self.marks() for at in range(len(mark.args[1]))}
        assert {field.name for field in dataclasses.fields(Case)} == {*changed, *PLACES}

    def test_where_a_file_lies_is_no_part_of_it(self):
        """The same capture on two machines gives the same rows; a worker is told its path."""
        moved = dataclasses.replace(CASE, path="/elsewhere/a.safetensors", where="/there/k.py:f")
        assert CASE.key == moved.key
        assert CASE.identity == moved.identity
        assert moved == Case(**canonical.decode(canonical.encode(moved.record)))

    def marks(self):
        """How the test above is parametrised."""
        return self.test_any_change_is_another_case.pytestmark

    def test_json_tells_all(self):
        """A case comes back from its JSON with the same key."""
        assert CASE.key == Case(**canonical.decode(canonical.encode(CASE.record))).key

    def test_text_names_the_case(self):
        """A reader of an error can find the case."""
        expected = (
            "late in bfloat16 on family:normal(scale=2), [4, 64], eps 1e-06, seed 7, gain random, "
            "bias none, scale none"
        )
        assert expected == CASE.text


class TestSweep:
    """The grid."""

    def test_every_combination_once_in_order(self):
        """What shares inputs stands together, plans vary fastest."""
        sweep = Sweep(
            plans=["late", "early"], formats=["bf16", "float16"], seeds=[1, 2], eps=[1e-5, 1e-6]
        )
        expected = list(
            itertools.product([1, 2], [1e-5, 1e-6], ["bfloat16", "float16"], ["late", "early"])
        )
        cases = sweep.cases()
        assert expected == [(c.seed, c.eps, c.format, c.plan["name"]) for c in cases]

    def test_names_records_and_lone_values(self):
        """A name, an alias, a record, a list of one of them: the same case."""
        keys = {
            Sweep(plans=plan, formats=format, inputs=source).cases()[0].key
            for plan in ("late", plans["late"], ["late"])
            for format in ("bf16", formats["bfloat16"], ("bfloat16",))
            for source in ("normal", family("normal"), family("normal", scale=1), ["normal"])
        }
        assert 1 == len(keys)

    def test_no_case_twice(self):
        """Repeated values and aliases give one case."""
        sweep = Sweep(formats=["bf16", "bfloat16"], plans=["late"] * 3, seeds=[0, np.int64(0)])
        assert 1 == len(sweep.cases())

    def test_a_changed_switch_is_another_case(self):
        """A plan is in the key by its switches, whatever its name."""
        changed = plans["late"].replace(name="late", cast="early")
        first, second = Sweep(plans=["late", changed]).cases()
        assert first.key != second.key

    def test_plans_of_another_norm_are_left_out(self):
        """`hf-llama` is an RMSNorm."""
        cases = Sweep(norm=["rms", "layer"], plans=["late", "hf-llama"]).cases()
        expected = [("rms", "late"), ("rms", "hf-llama"), ("layer", "late")]
        assert expected == [(case.norm, case.plan["name"]) for case in cases]

    def test_scales_are_for_small_formats(self):
        """A format of more than 8 bits has the range, so nothing is scaled and nothing doubled."""
        sweep = Sweep(formats=["bfloat16", "float8_e5m2"], scales=["per_tensor", "none"])
        expected = [
            ("bfloat16", "none"), ("float8_e5m2", "per_tensor"), ("float8_e5m2", "none"),
        ]  # fmt: skip
        assert expected == [(case.format, case.scale) for case in sweep.cases()]

    def test_no_arithmetic_without_nan(self):
        """Formats that cannot say overflow hold outputs, and nothing is computed in them."""
        names = ["late", "early", "all-low"]
        for format, fits in (("float4_e2m1fn", ["late"]), ("float8_e4m3fn", names)):
            cases = Sweep(plans=names, formats=format).cases()
            assert fits == [case.plan["name"] for case in cases]

    def test_exact_steps(self):
        """Each step at a time where the plan has it; none of them is the plan as it was."""
        plain = Sweep(plans=["late", "hf-gemma"]).cases()
        steps = ("none", "bias", "output", "normalise")
        cases = Sweep(plans=["late", "hf-gemma"], exact=steps).cases()
        expected = [(name, step) for name in ("late", "hf-gemma")
                    for step in ("", "output", "normalise")]  # fmt: skip
        assert expected == [(case.plan["name"], case.exact) for case in cases]
        assert [case.key for case in plain] == [case.key for case in cases if not case.exact]
        assert "scale none, output exact" in cases[1].text
        biased = Sweep(exact=steps, biases="random").cases()
        assert ["", "bias", "output", "normalise"] == [case.exact for case in biased]

    def test_plans_to_compare_with(self):
        """Each other plan of the norm is a case; without one, cases are what they were."""
        plain = Sweep(plans=["late", "early"]).cases()
        centred = dataclasses.replace(plans["late"], name="of another norm", norm="layer")
        others = ["none", plans["early"], centred]
        cases = Sweep(plans=["late", "early"], against=others).cases()
        expected = [("late", ""), ("late", "early"), ("early", ""), ("early", "early")]
        told = [(case.plan["name"], case.against.get("name", "")) for case in cases]
        assert expected == told
        assert [case.key for case in plain] == [case.key for case in cases if not case.against]
        assert cases[1].text.endswith("scale none, against early")
        with pytest.raises(InputError, match="plans it is held against"):
            Sweep(against=centred).cases()

    def test_exact_steps_of_captures(self):
        """A layer without a bias has no step that adds one."""
        for norm, name, some in (("layer", "minilm", True), ("rms", "smollm2", False)):
            sweep = Sweep(norm=norm, inputs=captured(name), exact=["none", "bias"])
            assert some is any(case.exact == "bias" for case in sweep.cases())

    def test_eps(self):
        """None is the capture's own eps, or else the plan's default."""
        sweep = Sweep(plans="hf-llama", inputs=["normal", captured("smollm2")], eps=[None, 0.5])
        found = {(case.source.partition(":")[0], case.eps) for case in sweep.cases()}
        expected = {
            ("family", plans["hf-llama"].eps_default), ("family", 0.5),
            ("capture", captures["smollm2"].load().eps), ("capture", 0.5),
        }  # fmt: skip
        assert expected == found

    def test_eps_of_a_format(self):
        """A default that depends on the format of x is that of each case's format."""
        cases = Sweep(plans="torch-2.6-rms-norm", formats=["bfloat16", "float16"]).cases()
        assert {("bfloat16", 2.0**-7), ("float16", 2.0**-10)} == {(c.format, c.eps) for c in cases}

    def test_captures(self):
        """Every layer in the model's order with its own shape, gain and bias; or those named."""
        layers = captures["minilm"].load().layers
        cases = Sweep(norm="layer", inputs=captured("minilm"), gains=["none", "random"]).cases()
        assert [f"capture:minilm:{layer.name}" for layer in layers] == [c.source for c in cases]
        assert {"own"} == {case.gain for case in cases} == {case.bias for case in cases}
        assert [layer.x.shape for layer in layers] == [(c.rows, c.hidden) for c in cases]
        one = Sweep(norm="layer", inputs=captured("minilm", layers[3].name)).cases()
        assert [cases[3].key] == [case.key for case in one]

    def test_inputs_with_axes_of_their_own(self):
        """Seeds, gains and biases of one source go before those of the sweep."""
        own = family("normal").replace(seeds=(5, 6), gains=("none",))
        cases = Sweep(inputs=[own, "uniform"], seeds=[1, 2], gains=["random", "ones"]).cases()
        expected = [("family:normal", seed, "none") for seed in (5, 6)] + [
            ("family:uniform", seed, gain) for seed in (1, 2) for gain in ("random", "ones")
        ]
        assert expected == [(case.source, case.seed, case.gain) for case in cases]

    def test_captures_with_other_gains(self):
        """Seeds count where something is made from them, and a sweep's own gains do not."""
        layer = captures["smollm2"].load().layers[0].name
        source = captured("smollm2", layer).replace(seeds=(5, 6), gains=("own", "random"))
        cases = Sweep(inputs=source, gains="none", seeds=9).cases()
        expected = [("own", "own", 0), ("random", "own", 5), ("random", "own", 6)]
        assert expected == [(case.gain, case.bias, case.seed) for case in cases]

    def test_captures_of_another_norm_are_left_out(self):
        """An RMSNorm's inputs say nothing about LayerNorm."""
        sweep = Sweep(norm=["rms", "layer"], inputs=[captured("minilm"), captured("smollm2")])
        found = {(case.norm, case.source.split(":")[1]) for case in sweep.cases()}
        assert {("rms", "smollm2"), ("layer", "minilm")} == found

    def test_parameters_are_all_told(self):
        """Defaults are in the case, so that it stays what it is when they change."""
        for name, row in families.items():
            (case,) = Sweep(inputs=name).cases()
            assert dict(row.parameters) == dict(case.parameters)

    def test_the_record_is_plain_data(self):
        """The grid can be kept beside its rows."""
        sweep = Sweep(plans=["late"], inputs=[family("normal", scale=2), captured("smollm2")])
        text = canonical.encode(sweep.record)
        assert '"scale":2.0' in text
        assert '"square_format":"float32"' in text


class TestRefusals:
    """Bad input is told when the grid is made, with the nearest right names."""

    @pytest.mark.parametrize(
        ("axis", "value", "words"),
        [
            ("norm", "rmsnorm", "unknown norm 'rmsnorm'.*rms"),
            ("plans", "lat", "unknown plan 'lat'.*late"),
            ("plans", ["late", 3], "unknown plan '3'"),
            ("formats", "bfloat61", "unknown format 'bfloat61'.*bfloat16"),
            ("formats", formats["float16"].flushed, "float16 has its switches set"),
            ("weight_formats", ["fp17"], "unknown format 'fp17'.*fp16"),
            ("eps", -1e-6, "eps"),
            ("eps", [1e-6, math.nan], "eps"),
            ("eps", "1e-6", "eps"),
            ("inputs", "norml", "unknown input family 'norml'.*normal"),
            ("hidden", 0, "hidden is 0"),
            ("hidden", [64, 1.5], "hidden is 1.5"),
            ("rows", -1, "rows is -1"),
            ("seeds", True, "seed is True"),
            ("gains", "randm", "unknown gain 'randm'.*random"),
            ("biases", "", "unknown bias ''"),
            ("exact", "sqare", "unknown step 'sqare'.*nearest are square"),
            ("exact", ["none", 3], "unknown step '3'"),
            ("against", "erly", "unknown plan 'erly'.*nearest (is|are) early"),
            ("scales", "tensor", "unknown scale 'tensor'.*per_tensor"),
            ("hidden", 2**27 + 1, "hidden is 134217729: give an integer up to 134217728"),
            ("seeds", 2**64, "seed is 18446744073709551616: give an integer up to"),
            ("formats", [], "formats is empty"),
            ("seeds", range(0), "seeds is empty"),
        ],
    )
    def test_axes(self, axis, value, words):
        """Each axis says what is wrong with it, in one sentence."""
        with pytest.raises(InputError, match=words) as caught:
            Sweep(**{axis: value})
        assert "\n" not in str(caught.value)

    def test_more_elements_than_are_ever_made(self):
        """The product counts, and captures, which have their own shapes, do not."""
        with pytest.raises(InputError, match="65536 rows of 65536 are 4294967296 elements"):
            Sweep(rows=[1, 65536], hidden=[65536, 1])
        assert Sweep(rows=65536, hidden=65536, inputs=captured("smollm2")).cases()

    def test_no_case_at_all(self):
        """A grid without a case is an error, not an empty table."""
        with pytest.raises(InputError, match=r"no case.*hf-llama.*layer"):
            Sweep(norm="layer", plans="hf-llama").cases()

    def test_no_plan_has_the_step(self):
        """A step that is nowhere is told with the plans that were asked."""
        with pytest.raises(
            InputError, match=r"plans \(late\) has the step prescale .*: they have upc"
        ):
            Sweep(exact="prescale").cases()

    def test_a_misspelt_axis(self):
        """Python names it."""
        with pytest.raises(TypeError, match="format"):
            Sweep(format="bfloat16")
