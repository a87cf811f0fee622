# SPDX-License-Identifier: Apache-2.0
"""`precision-lab plans` and `precision-lab plans diff`."""

from __future__ import annotations

import click
import pytest

from precision_lab.arithmetic.orders.table import orders
from precision_lab.cli.plans import WIDTH, cast_of, eps_text, shortened
from precision_lab.numbers.table import formats
from precision_lab.plan.plan import SWITCHES
from precision_lab.plan.switches import CHOICES, meaning
from precision_lab.plan.table import plans


def test_every_plan_has_a_line(lab):
    """Name, norm, cast order, eps, whether it is verified and whose it is; 100 columns at most."""
    lines = lab("plans").out.splitlines()
    assert ["plan", "norm", "cast", "eps", "verified", "whose"] == lines[0].split()
    for line, (name, plan) in zip(lines[1:], plans.items(), strict=False):
        known = "-" if plan.verified == "it is a definition" else ["no", "yes"][bool(plan.verified)]
        expected = [name, plan.norm, cast_of(plan), eps_text(plan.eps_default), known]
        assert expected == line.split()[:5]
        assert shortened(plan.source, 46).strip("…") in line
    assert max(len(line) for line in lines) <= WIDTH
    assert "" == lines[len(plans) + 1]
    assert "no: written from its source alone, never run beside it" in lab("plans").out


def test_the_whole_list_as_json(lab):
    """Every plan with every switch, its version, and what of it is assumed."""
    data = lab("plans", "--json").data
    assert list(plans) == [row["name"] for row in data]
    for row in data:
        plan = plans[row["name"]]
        assert plan.switches == row["switches"]
        assert [plan.version, list(plan.assumed)] == [row["version"], row["assumed"]]


def test_where_one_comes_from(lab):
    """With names: source, version, what is assumed, and the switches beside those of `late`."""
    text = lab("plans", "hf-llama", "apex-rms-norm").out
    told = " ".join(text.split())
    for name in ("hf-llama", "apex-rms-norm"):
        for part in (plans[name].source, plans[name].version, plans[name].summary):
            assert part in told
    assert "assumed   eps_default, order" in text
    assert "verified  no: written from its source alone" in text
    for switch in SWITCHES:
        assert f"\n{switch} " in text
    assert "·" in text
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    assert ["hf-llama"] == [row["name"] for row in lab("plans", "hf-llama", "--json").data]
    # The plan beside which the others stand is a column once.
    assert 1 == lab("plans", "late").out.splitlines()[-len(SWITCHES) - 1].split().count("late")


def test_an_eps_that_depends_on_the_format(lab):
    """The list has a word for it, the plan's page a sentence, JSON the rule, steps the number."""
    name = "torch-2.6-rms-norm"
    line = next(line for line in lab("plans").out.splitlines() if line.startswith(name))
    assert "input" == line.split()[3]
    assert "eps       the machine epsilon of x's format" in lab("plans", name).out
    assert "input_epsilon" == lab("plans", name, "--json").data[0]["eps_default"]
    for format, eps in (("bfloat16", 2.0**-7), ("float16", 2.0**-10), ("float32", 2.0**-23)):
        found = lab("steps", name, "--format", format, "--hidden", 8, "--json").data
        assert eps == found["eps"]
        diff = lab("plans", "diff", name, "torch-rms-norm", "--format", format, "--json").data
        assert [eps, 2.0**-23] == diff["eps_defaults"]


def test_cast_orders_in_a_word():
    """late, early, or low where every format is the input's own."""
    expected = {"late": "late", "early": "early", "all-low": "low", "gemma-jax": "low"}
    assert expected == {name: cast_of(plans[name]) for name in expected}


def test_long_texts_are_cut():
    """Text at its end, a dotted name at its start, where what tells it apart is at the end."""
    assert ("a b", "a lo…", "….Norm") == (
        shortened("a b", 5), shortened("a long one", 5), shortened("package.Norm", 6),
    )  # fmt: skip
    assert ["2^-23", "1e-06", "0.001"] == [eps_text(eps) for eps in (2.0**-23, 1e-6, 1e-3)]


def test_help_tells_both_uses(lab):
    """`--help`, wherever it stands, and the name of the other command."""
    text = lab("plans", "--help").out
    for told in ("diff PLAN PLAN", "--switches", "--json", "  diff "):
        assert told in text
    assert "--format" in lab("plans", "diff", "--help").out


def test_every_value_of_a_switch_has_words():
    """What `diff` says of a value: choices, orders, formats."""
    for switch, values in CHOICES.items():
        for value in values:
            assert len(meaning(switch, value)) > 0
    assert orders["lanes:8x2"].description == meaning("order", "lanes:8x2")
    assert "the weight's own" == meaning("gain_format", "input")
    assert "" == meaning("sum_format", "bfloat16")


def test_diff_shows_an_input(lab):
    """The switches with what they mean, the input in both notations, both outputs, the share."""
    text = lab("plans", "diff", "late", "early").out
    for told in (
        "\nA  late\n", "cast", "to the output format before the gain", "0x4040", "nearer",
        "the same function of real numbers: only roundings differ", "of 65,536 outputs differ",
    ):  # fmt: skip
        assert told in f"\n{text}"
    data = lab("plans", "diff", "late", "early", "--json").data
    assert (["late", "early"], "rms", "bfloat16") == (data["plans"], data["norm"], data["format"])
    assert ["late", "early"] == [entry["value"] for entry in data["switches"]["cast"]]
    example = data["example"]
    assert len(example["x"]) == len(example["x_hex"]) == 1
    one, other = example["outputs"]
    assert one["output_hex"] != other["output_hex"]
    assert one["right_hex"] == other["right_hex"] == one["output_hex"]
    assert "late" == example["nearer"]
    assert formats["bfloat16"].round(one["exact"]) == one["right"]


def test_diff_says_what_it_compares(lab):
    """Formats of outputs that differ come first; whose right is shown; an RMSNorm's own bias."""
    text = lab("plans", "diff", "late", "llama-cpp-rms-cpu").out
    assert text.index("A gives bfloat16, B float32") < text.index("switch ")
    assert "0 of 65,536 outputs differ (0.000%) once both are rounded to bfloat16" in text
    text = lab("plans", "diff", "rmsnorm-paper-torch", "late").out
    assert "the textbook's RMSNorm, eps inside the root; rmsnorm-paper-torch has its own" in text
    assert "nearer" not in text
    data = lab("plans", "diff", "rmsnorm-paper-torch", "late", "--json").data
    assert {"rmsnorm-paper-torch": ["eps_place"], "late": []} == data["not_textbook"]
    assert data["differing"] == data["differing_rounded"] > 0
    text = lab("plans", "diff", "late", "late bias_rounding=fused").out
    assert "they differ in nothing else; RMSNorm usually has none" in text


@pytest.mark.parametrize("command", [["plans"], ["plans", "diff", "late", "early"], ["sweep"]])
def test_where_set_belongs(lab, command):
    """Commands that have no --set name the one that has."""
    ran = lab(*command, "--set", "x=1")
    assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
    assert "precision-lab steps PLAN --set SWITCH=VALUE" in ran.err
    assert "steps PLAN" not in lab(*command, "--sat", "x=1").err


def test_diff_takes_switches(lab):
    """A name followed by switches is that plan changed."""
    found = lab("plans", "diff", "late", "late order=kahan sum_format=fp16", "--json").data
    assert ["late", "late order=kahan sum_format=float16"] == found["plans"]
    assert {"order", "sum_format"} == set(found["switches"])


def test_diff_of_what_agrees(lab):
    """Plans that mean the same are said to; where none is found, that this is no proof."""
    text = lab("plans", "diff", "hf-llama", "meta-llama").out
    assert "hf-llama and meta-llama have the same switches" in text
    assert "No input can tell them apart here" in text
    assert "the same, to the last bit" in text
    assert "defaults: 1e-06 and 1e-05" in text
    changed = "late prescale=constant"
    text = lab("plans", "diff", "late", changed, "--format", "fp16").out
    assert "No input on which they disagree was found among" in text
    assert "no proof" in text


def test_a_long_input_is_cut_but_in_json(lab, monkeypatch):
    """Of many elements the first are printed, and it is said where the others are."""
    monkeypatch.setattr("precision_lab.cli.plans_diff.MOST_VALUES", 3)
    arguments = ("plans", "diff", "late", "late order=kahan")
    text, data = lab(*arguments).out, lab(*arguments, "--json").data
    size = len(data["example"]["x"])
    assert size > 3
    assert f"… {size} elements in all: --json prints them" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["erly"], ["'erly'", "early"]),
        (["diff", "late", "erly"], ["'erly'", "early"]),
        (["diff", "late", "late ordr=kahan"], ["'ordr'", "order"]),
        (["diff", "late", "late order=kahn"], ["'kahn'", "kahan"]),
        (["diff", "late", "late order"], ["'order'", "NAME=VALUE"]),
        (["diff", "late", ""], ["''", "late"]),
        (["diff", "late"], ["OTHER"]),
        (["diff", "late", "early", "--format", "bf61"], ["'bf61'", "bf16"]),
        (["diff", "late", "early", "--norm", "rsm"], ["'rsm'", "rms"]),
        (["diff", "te-layer-norm", "hf-llama"], ["te-layer-norm", "layer", "hf-llama", "rms"]),
        (["late", "--switches"], ["--switches"]),
        (["--swiches"], ["--switches"]),
    ],
)
def test_bad_usage(lab, arguments, told):
    """One sentence that names the nearest, exit code 2, nothing on standard output."""
    ran = lab("plans", *arguments)
    assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
    for part in told:
        assert part in ran.err


def test_the_command_is_a_group():
    """A plan cannot have the name of a command of the group."""
    from precision_lab.cli.plans import command

    assert isinstance(command, click.Group)
    assert not {"diff", "show"} & set(plans)


def test_every_switch_is_explained(lab):
    """`--switches`: each switch with its values and meaning, and the rules of the orders."""
    text, data = lab("plans", "--switches").out, lab("plans", "--switches", "--json").data
    assert [row["name"] for row in data["switches"]] == list(SWITCHES)
    for row in data["switches"]:
        assert f"{row['name']} = {' | '.join(row['values'])}\n" in text
        assert len(row["meaning"]) > 10
        assert row["late"] == plans["late"].switches[row["name"]]
    assert [row["name"] for row in data["orders"]] == list(orders)
    for told in ("lanes:WxV, W a power of two", "blocked:B", "wider:FORMAT", "In late: inside.",
                 "precision-lab steps PLAN --set SWITCH=VALUE"):  # fmt: skip
        assert told in text
    assert lab("plans", "late", "--switches").code == 2
