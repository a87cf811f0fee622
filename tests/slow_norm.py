# SPDX-License-Identifier: Apache-2.0
"""A plan run on one row with rational numbers: every operation exact, then rounded slowly.

Written from the meaning of the switches and from nothing in `precision_lab`. Sums are in turn, as
NumPy's are for fewer than eight addends. It knows no infinities: give it rows that do not overflow;
and where subnormals are flushed, no steps in other formats whose subnormals float32 steps get.
"""

from __future__ import annotations

from fractions import Fraction

from slow_rounding import float32_round, grid, near_root

OUTSIDE = ("outside", "outside_root", "both")


def rounded(name: str, exact: Fraction, mode: str = "nearest_even") -> Fraction:
    """A rational number in a format."""
    if name == "float32":
        assert mode == "nearest_even"
        return Fraction(float32_round(exact))
    return Fraction(grid(name).round(exact, mode))


def flushed(exact: Fraction) -> Fraction:
    """A rational number rounded to float32's 24 bits; below its normal range it is 0."""
    lift = 2**100 if abs(exact) < Fraction(1, 2**90) else 1
    value = Fraction(float32_round(exact * lift)) / lift
    return value if abs(value) >= Fraction(1, 2**126) else Fraction(0)


def slow_norm(switches, x, g, b, eps, *, layer, x_format=None):
    """One row of a norm as the switches say, as rational numbers.

    Parameters
    ----------
    switches
        Every switch of a plan, no format left open.
    x, g, b
        Lists of floats; g and b may be None.
    x_format
        The format that x is of, which ``shift_narrow`` asks for.
    """
    s = switches
    n = len(x)

    def to(kind, exact):
        if kind == "exact":
            return exact
        mode = s["output_rounding"] if kind == "output" else "nearest_even"
        if s["underflow"] == "flush_to_zero" and s[f"{kind}_format"] == "float32":
            return flushed(exact)
        return rounded(s[f"{kind}_format"], exact, mode)

    def total(values):
        values = [to("sum", value) for value in values]
        result = values[0]
        for value in values[1:]:
            result = to("sum", result + value)
        return result

    x = [to("compute", Fraction(value)) for value in x]
    scale = Fraction(1)
    if s["prescale"] == "constant":
        scale = Fraction(1, 256)
    if s["prescale"] == "row_max":
        top = max(*map(abs, x), near_root(Fraction(eps)))
        while top and top * scale >= 1:
            scale /= 2
        while top and top * scale < Fraction(1, 2):
            scale *= 2
    if s["prescale"] != "none":
        x = [to("compute", value * scale) for value in x]

    def rounded_eps(power):
        return to("eps", Fraction(eps) * scale**power)

    def share_of(sum_of_all, count):
        if s["divisor"] == "reciprocal_n":
            return to("sum", sum_of_all * to("sum", Fraction(1, count)))
        return to("sum", sum_of_all / count)

    def mean_of(sum_of_squares):
        if s["eps_place"] == "sum":
            sum_of_squares = to("sum", sum_of_squares + rounded_eps(2))
        return share_of(sum_of_squares, n - 1 if s["divisor"] == "n-1" else n)

    def mean_square(values):
        return mean_of(total([to("square", value * value) for value in values]))

    statistic = s["statistic"]
    if statistic == "mean_square":
        statistic = "two_pass" if layer else "direct"
    m = Fraction(0)
    if statistic not in ("direct", "welford"):
        m = share_of(total(x), n)
    if statistic == "direct":
        ms = mean_square(x)
    elif statistic == "two_pass":
        ms = mean_square([to("compute", value - m) for value in x])
    elif statistic == "two_pass_plus_square":
        variance = mean_square([to("compute", value - m) for value in x])
        ms = to("sum", variance + to("square", m * m))
    elif statistic == "welford":
        squares = Fraction(0)
        for k, value in enumerate([to("sum", value) for value in x], 1):
            delta = to("sum", value - m)
            m = to("sum", m + to("sum", delta / k))
            squares = to("sum", squares + to("square", delta * to("sum", value - m)))
        ms = mean_of(squares)
    else:
        ms = to("sum", mean_square(x) - to("square", m * m))
        if statistic == "one_pass_clamped":
            ms = max(ms, Fraction(0))

    place = s["eps_place"]
    if place in ("inside", "both"):
        ms = to("sum", ms + rounded_eps(2))
    elif place == "max":
        ms = to("sum", max(ms, rounded_eps(2)))
    divides = s["inverse"] == "divide"
    if place in OUTSIDE:
        added = (
            to("reciprocal", near_root(rounded_eps(2)))
            if place == "outside_root"
            else rounded_eps(1)
        )
        root = to("reciprocal", to("reciprocal", near_root(ms)) + added)
        r = 1 / root if divides else to("reciprocal", 1 / root)
    elif divides:
        r = 1 / to("reciprocal", near_root(ms))
    elif s["inverse"] == "reciprocal_sqrt":
        r = to("reciprocal", 1 / to("reciprocal", near_root(ms)))
    else:
        r = to("reciprocal", near_root(1 / ms))

    if g is None or s["gain"] == "ignored":
        g = None
    elif s["gain"] == "one_plus":
        g = [to("gain", 1 + Fraction(value)) for value in g]
    else:
        g = [to("gain", Fraction(value)) for value in g]
    fused = s["bias_rounding"] == "fused"
    early = s["cast"] == "early"
    out = []
    apply = s["apply"]
    if apply == "shift_narrow":
        apply = "scale_shift" if x_format in ("float16", "bfloat16", "float8_e4m3fn") else "centred"
    shifted = layer and apply == "scale_shift"
    for i, element in enumerate(x):
        centres = layer and apply in ("centred", "folded_gain")
        value = to("compute", element - m) if centres else element
        gain = None if g is None else g[i]
        bias = None if b is None else Fraction(b[i])
        if bias is None and s["absent_bias"] == "zero":
            bias = Fraction(0)
        stage = "compute" if s["cast"] == "late" else "output"
        if bias is not None and s["underflow"] == "flush_to_zero":
            # An operand of a step in float32, which no step has made.
            bias = flushed(bias) if s[f"{stage}_format"] == "float32" else bias
        factor = r
        if apply in ("folded_gain", "folded_shift") and gain is not None:
            factor, gain = to("compute", r * gain), None
        # `product` is what has not been rounded yet, and a sum may fuse with it.
        folded = apply == "folded_gain" and g is not None
        product, is_product, kind = value * factor, folded or not divides, "compute"
        if shifted:
            shift = to("compute", m * r)
            product = product - shift if fused else to("compute", product) - shift
            is_product = False
        if apply == "folded_shift":
            shift = m * factor
            if bias is None:
                offset = -to("compute", shift)
            else:
                offset = to("compute", bias - (shift if fused else to("compute", shift)))
            product = (product if fused else to("compute", product)) + offset
            is_product, bias = False, None
        if early:
            product, is_product, kind = to("output", to("compute", product)), False, "output"
        elif s["cast"] == "input":
            value = rounded(x_format, to("compute", product))
            product, is_product, kind = value, False, "exact"
        affine = [("gain", gain), ("bias", bias)]
        if s["bias"] == "before_gain":
            affine.reverse()
        for what, operand in affine:
            if operand is None:
                continue
            if what == "gain":
                product, is_product = to(kind, product) * operand, True
            else:
                start = product if fused and is_product else to(kind, product)
                product, is_product = start + operand, False
            kind = stage
        out.append(to("output", to(kind, product)))
    return out
