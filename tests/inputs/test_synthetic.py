# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest

from precision_lab.exceptions import InputError
from precision_lab.inputs.parameters import biases, gains, make_bias, make_gain
from precision_lab.inputs.synthetic import families, make_inputs
from precision_lab.numbers.table import formats


def made(name, rows=6, hidden=64, seed=3, **options):
    """Rows of a family."""
    options = {"format": "bfloat16", **options}
    return make_inputs(name, rows=rows, hidden=hidden, seed=seed, **options)


def rms(x):
    """Root mean square of each row."""
    return np.sqrt(np.mean(x * x, axis=1))


def digest(array):
    """A short digest of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array, "<f8").tobytes()).hexdigest()[:16]


DIGESTS = {
    "normal": "9449493da40d61f1",
    "uniform": "6455a511a3d909bd",
    "lognormal": "3e51345987162bb5",
    "heavy-tailed": "cf94042379614897",
    "one-outlier": "392aa191be50b5ee",
    "massive-activations": "31348face32df064",
    "near-zero": "761bd700d7a4a01c",
    "subnormal": "b6364c26c7decd3c",
    "constant": "7b45a9aa62535fdd",
    "zero": "4082068ef03cdb6c",
    "mean-offset": "5048749cf68ad0a4",
    "alternating": "ea4cdbe207871659",
    "near-largest": "e031ad45e7cac02e",
}

PARAMETER_DIGESTS = {
    "ones": "8495b6259e321e15",
    "random": "95eb1feb1ec6ded9",
    "wide": "0f23a7cf8e42e385",
    "negative": "cbb413f524d73b51",
    "tiny": "8de5d27dbb75d294",
    "powers-of-two": "0f0773ef89a92cec",
    "many-sizes": "4eaa037063f9185a",
    "huge": "599b121fcb76221d",
    "zero": "f9d54bbe3ccaf085",
    "mixed": "8f45931cf953031c",
    "bias": "5b14839efd380e44",
}


@pytest.mark.parametrize("name", families)
def test_every_family_has_the_same_bits_everywhere(name):
    """The digest of a family's values (5 rows of 77, seed 12345) is the committed one."""
    assert DIGESTS.get(name) == digest(made(name, rows=5, hidden=77, seed=12345))


@pytest.mark.parametrize("name", [row for row in gains if row != "none"])
def test_every_gain_and_bias_has_the_same_bits_everywhere(name):
    """The digest of a gain's values (77 elements, seed 12345) is the committed one."""
    assert PARAMETER_DIGESTS.get(name) == digest(make_gain(name, hidden=77, seed=12345))
    assert PARAMETER_DIGESTS["bias"] == digest(make_bias("random", hidden=77, seed=12345))


@pytest.mark.parametrize("name", families)
def test_every_family_gives_finite_float64_rows(name):
    """Shape, type and finiteness, for rows of one element and no rows too."""
    for rows, hidden in ((3, 8), (0, 8), (2, 1), (1, 1)):
        x = made(name, rows=rows, hidden=hidden)
        assert ((rows, hidden), np.float64) == (x.shape, x.dtype)
        assert np.isfinite(x).all()


@pytest.mark.parametrize("name", families)
def test_rows_do_not_depend_on_their_number_but_on_the_seed(name):
    """The first rows of many are those of few; another seed gives others (zero apart)."""
    assert (made(name)[:3] == made(name, rows=3)).all()
    assert (made(name) == made(name, seed=4)).all() == (name == "zero")


def test_the_uniform_family_fills_its_interval():
    """Every value lies between low and high, and the ends are approached."""
    x = made("uniform", rows=50, low=2.0, high=5.0)
    assert 2 < x.min() < 2.01
    assert 4.99 < x.max() < 5


def test_the_lognormal_family_has_normal_logarithms():
    """log(x / scale) / sigma are the values of the normal family of the same seed."""
    x = made("lognormal", scale=3.0, sigma=2.0)
    assert np.allclose(np.log(x / 3) / 2, made("normal"), rtol=0, atol=1e-13)


def test_the_heavy_tailed_family_has_heavy_tails():
    """Of 32,000 values with 2 degrees of freedom some pass 30, where normal ones stay below 6."""
    assert np.abs(made("heavy-tailed", rows=500)).max() > 30
    assert np.abs(made("normal", rows=500)).max() < 6


def test_one_outlier_stands_anywhere_in_its_row():
    """Exactly one element a row is ±magnitude; places and signs vary, the rest is normal."""
    x = made("one-outlier", rows=400, hidden=16, magnitude=500.0)
    out = np.abs(x) == 500
    assert (out.sum(axis=1) == 1).all()
    assert np.unique(out.argmax(axis=1)).size == 16
    assert set(x[out]) == {-500, 500}
    assert (x[~out] == made("normal", rows=400, hidden=16)[~out]).all()


def test_massive_activations_share_their_channels():
    """Row 0 and every third row after hold ±magnitude in the same two channels, no other does."""
    x = made("massive-activations", rows=7, magnitude=1e4, channels=2, every=3)
    out = np.abs(x) == 1e4
    assert out.sum(axis=1).tolist() == [2, 0, 0, 2, 0, 0, 2]
    assert (x[out].reshape(3, 2) == x[out][:2]).all()
    assert (out[::3] == out[0]).all()
    assert made("massive-activations", hidden=1, channels=2).shape == (6, 1)


@pytest.mark.parametrize("ratio", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("eps", [1e-12, 1e-5])
def test_near_zero_rows_have_their_rms_at_a_multiple_of_the_root_of_eps(ratio, eps):
    """Each row's rms is ratio · √eps to rounding; with eps = 0 it is 0."""
    x = made("near-zero", ratio=ratio, eps=eps)
    assert np.allclose(rms(x), ratio * np.sqrt(eps), rtol=1e-14, atol=0)
    assert (made("near-zero", eps=0.0) == 0).all()


@pytest.mark.parametrize("name", formats)
def test_families_of_a_range_stay_in_it(name):
    """Subnormal values lie below the smallest normal, large ones in the top half, none past it."""
    format = formats[name]
    x = np.abs(made("subnormal", format=name))
    assert x.max() < format.tiny
    assert x.max() > format.tiny / 2
    x = np.abs(made("near-largest", format=format))
    assert format.largest / 2 <= x.min()
    assert x.max() <= format.largest


@pytest.mark.parametrize("name", families)
def test_a_family_says_whether_it_depends_on_the_format(name):
    """Its values change with the format exactly where it says so; without one it is float32."""
    single = made(name, format=None)
    assert (single == made(name, format="float32")).all()
    assert families[name].needs_format == (single != made(name, format="float16")).any()


def test_constant_rows_are_constant_and_differ():
    """One value a row."""
    x = made("constant", scale=3.0)
    assert (x == x[:, :1]).all()
    assert np.unique(x[:, 0]).size == 6


def test_offset_and_alternating_rows_are_as_described():
    """The mean offset is added; alternating signs alternate, magnitudes within the spread."""
    assert (made("mean-offset", offset=7.0) == 7 + made("normal")).all()
    x = made("alternating", scale=2.0, spread=0.25)
    assert (np.sign(x) == [1, -1] * 32).all()
    assert np.abs(x).min() >= 1.5
    assert np.abs(x).max() <= 2.5


def test_a_scale_is_a_factor():
    """For the families that have one, doubling scale doubles every value of the normal part."""
    for name, row in families.items():
        if "scale" in row.parameters and name not in ("mean-offset", "one-outlier"):
            x, y = made(name, rows=1, scale=1.0), made(name, rows=1, scale=2.0)
            kept = np.abs(x) != row.parameters.get("magnitude", 0)
            assert (2 * x == y)[kept].all(), name


def test_gains_are_as_described():
    """Each gain, on 1000 elements."""
    gain = {name: make_gain(name, hidden=1000, seed=1) for name in gains}
    assert gain["none"] is None
    assert make_bias("none", hidden=3, seed=1) is None
    assert (gain["ones"] == 1).all()
    assert (gain["zero"] == 0).all()
    kinds = [name for name in gain if name not in ("none", "huge", "mixed")]
    for place, value in enumerate(gain["mixed"]):
        assert value == gain[kinds[place % len(kinds)]][place]
    assert (gain["negative"] == -gain["random"]).all()
    assert (gain["tiny"] == gain["random"] / 1024).all()
    assert np.allclose(gain["random"], 1 + 0.1 * gain["wide"], rtol=0, atol=1e-15)
    assert (gain["wide"] < 0).any()
    assert set(np.abs(gain["powers-of-two"])) == {1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8}
    assert set(np.sign(gain["powers-of-two"])) == {-1, 1}
    sizes = np.abs(gain["many-sizes"])
    assert 2.0**-25 < sizes.min() < 2.0**-23
    assert 4 < sizes.max() < 16


def test_values_gains_and_biases_of_one_seed_are_independent():
    """Inputs, gain and bias of the same seed have no value in common and no correlation."""
    x = make_inputs("normal", rows=1, hidden=10_000, seed=5)[0]
    g, b = make_gain("wide", hidden=10_000, seed=5), make_bias("random", hidden=10_000, seed=5)
    for one, other in itertools.combinations((x, g, b), 2):
        assert not np.isin(one, other).any()
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.05


def test_names_have_aliases_and_descriptions():
    """`one` and `normal` are gains too, and each row says what it is in one line."""
    assert gains["one"] is gains["ones"]
    assert gains["normal"] is gains["random"]
    for table in (families, gains, biases):
        assert all(row.description and "\n" not in row.description for row in table.values())
    for row in families.values():
        assert set(row.limits) <= set(row.parameters)


WRONG = {
    "unknown family": ({"family": "norml"}, "unknown input family 'norml': the nearest are normal"),
    "unknown parameter": ({"sclae": 2.0}, "parameter of family 'normal' 'sclae'.*scale"),
    "no parameter": ({"family": "zero", "scale": 2.0}, r"unknown parameter of family 'zero'"),
    "negative rows": ({"rows": -1}, "rows is -1: give a whole number from 0"),
    "no hidden": ({"hidden": 0}, "hidden is 0: give a whole number from 1"),
    "rows of text": ({"rows": "3"}, "rows is '3': give a whole number"),
    "rows in part": ({"rows": 2.5}, "rows is 2.5: give a whole number"),
    "rows true": ({"rows": True}, "rows is True: give a whole number"),
    "too many": ({"rows": 2**14, "hidden": 2**14}, "more than 134217728 elements"),
    "negative seed": ({"seed": -1}, "seed is -1"),
    "large seed": ({"seed": 2**64}, "seed is 18446744073709551616"),
    "unknown format": ({"format": "bf61"}, "unknown format 'bf61'.*bf16"),
    "eps": ({"eps": -1.0}, "eps is -1"),
    "NaN": ({"scale": float("nan")}, "parameter 'scale' is nan"),
    "infinity": ({"scale": float("inf")}, "parameter 'scale' is inf"),
    "large": ({"scale": 10**400}, "parameter 'scale' is 1000"),
    "text": ({"scale": "1"}, "parameter 'scale' is '1': give a number"),
    "past a limit": ({"family": "heavy-tailed", "freedom": 0.1}, "'freedom' is 0.1.*from 0.5"),
    "half a channel": ({"family": "massive-activations", "channels": 1.5}, "give whole numbers"),
    "past float64": ({"scale": 1e308}, "'normal' leaves float64's range with scale=1e"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_arguments_are_told_in_one_sentence(case):
    """Each is an InputError that names the value and the nearest right one."""
    changes, expected = WRONG[case]
    arguments = {"family": "normal", "rows": 2, "hidden": 64, "seed": 1, **changes}
    with pytest.raises(InputError, match=expected) as caught:
        make_inputs(arguments.pop("family"), **arguments)
    assert "\n" not in str(caught.value)


def test_unknown_gains_and_biases_name_the_nearest():
    """A gain or bias that is in no row is an InputError, and so is a bad size or seed."""
    with pytest.raises(InputError, match="unknown gain 'randon': the nearest are random"):
        make_gain("randon", hidden=3, seed=1)
    with pytest.raises(InputError, match="unknown bias 'ones'"):
        make_bias("ones", hidden=3, seed=1)
    with pytest.raises(InputError, match="hidden is 0"):
        make_gain("ones", hidden=0, seed=1)
    with pytest.raises(InputError, match="seed is 'x'"):
        make_bias("none", hidden=3, seed="x")
