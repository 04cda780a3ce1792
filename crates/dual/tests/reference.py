"""Writes reference.txt: functions and their partial derivatives, to the last bit, at arguments of every size.

    python3 crates/dual/tests/reference.py > crates/dual/tests/reference.txt

The numbers come from mpmath (1.3.0) with 4000 bits and more, from the functions and textbook formulas for their derivatives, which have
nothing in common with those of the library, and are rounded once. A line is: the name, the arguments, the value, the partial
derivatives; all as the bits of an f64.
"""

import struct
import sys

from mpmath import mp, mpf

mp.prec = 4400  # 1 - tanh(700) and 1 + 2^-1074 keep 64 bits and more
sys.stdout.reconfigure(newline="\n")


def sign(x):
    return mpf(-1) if x < 0 else mpf(1)


def cbrt(x):
    return sign(x) * mp.cbrt(abs(x))


ONE = mpf(1)
# name: function, derivative, domain
UNARY = {
    "recip": (lambda x: 1 / x, lambda x: -1 / x**2, lambda x: x != 0),
    "sqrt": (mp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), lambda x: x > 0),
    "cbrt": (cbrt, lambda x: cbrt(x) / (3 * x), lambda x: x != 0),
    "exp": (mp.exp, mp.exp, lambda x: abs(x) < 800),
    "exp2": (lambda x: mpf(2) ** x, lambda x: mp.log(2) * mpf(2) ** x, lambda x: abs(x) < 1100),
    "exp_m1": (lambda x: mp.exp(x) - 1, mp.exp, lambda x: abs(x) < 800),
    "ln": (mp.log, lambda x: 1 / x, lambda x: x > 0),
    "log2": (lambda x: mp.log(x) / mp.log(2), lambda x: 1 / (x * mp.log(2)), lambda x: x > 0),
    "log10": (lambda x: mp.log(x) / mp.log(10), lambda x: 1 / (x * mp.log(10)), lambda x: x > 0),
    "ln_1p": (lambda x: mp.log(1 + x), lambda x: 1 / (1 + x), lambda x: x > -1),
    "sin": (mp.sin, mp.cos, lambda x: abs(x) < 1e6),
    "cos": (mp.cos, lambda x: -mp.sin(x), lambda x: abs(x) < 1e6),
    "tan": (mp.tan, lambda x: 1 / mp.cos(x) ** 2, lambda x: abs(x) < 1e6),
    "asin": (mp.asin, lambda x: 1 / mp.sqrt(1 - x**2), lambda x: abs(x) < 1),
    "acos": (mp.acos, lambda x: -1 / mp.sqrt(1 - x**2), lambda x: abs(x) < 1),
    "atan": (mp.atan, lambda x: 1 / (1 + x**2), lambda x: True),
    "sinh": (lambda x: (mp.exp(x) - mp.exp(-x)) / 2, lambda x: (mp.exp(x) + mp.exp(-x)) / 2, lambda x: abs(x) < 800),
    "cosh": (lambda x: (mp.exp(x) + mp.exp(-x)) / 2, lambda x: (mp.exp(x) - mp.exp(-x)) / 2, lambda x: abs(x) < 800),
    "tanh": (
        lambda x: 1 - 2 / (mp.exp(2 * x) + 1),
        lambda x: 4 / (mp.exp(x) + mp.exp(-x)) ** 2,
        lambda x: abs(x) < 800,
    ),
    "asinh": (
        lambda x: sign(x) * mp.log(abs(x) + mp.sqrt(x**2 + 1)),
        lambda x: 1 / mp.sqrt(x**2 + 1),
        lambda x: True,
    ),
    "acosh": (lambda x: mp.log(x + mp.sqrt(x**2 - 1)), lambda x: 1 / mp.sqrt(x**2 - 1), lambda x: x > 1),
    "atanh": (lambda x: mp.log((1 + x) / (1 - x)) / 2, lambda x: 1 / (1 - x**2), lambda x: abs(x) < 1),
    "sigmoid": (
        lambda x: 1 / (1 + mp.exp(-x)),
        lambda x: mp.exp(-x) / (1 + mp.exp(-x)) ** 2,
        lambda x: abs(x) < 800,
    ),
}
BINARY = {
    "div": (lambda x, y: x / y, lambda x, y: (1 / y, -x / y**2), lambda x, y: y != 0),
    "pow": (
        lambda x, y: x**y,
        lambda x, y: (y * x ** (y - 1), x**y * mp.log(x)),
        lambda x, y: x > 0 and abs(y * mp.log(x)) < 700 and abs((y - 1) * mp.log(x)) < 700,
    ),
    "atan2": (
        mp.atan2,
        lambda x, y: (y / (x**2 + y**2), -x / (x**2 + y**2)),
        lambda x, y: x != 0 or y != 0,
    ),
    "hypot": (
        lambda x, y: mp.sqrt(x**2 + y**2),
        lambda x, y: (x / mp.sqrt(x**2 + y**2), y / mp.sqrt(x**2 + y**2)),
        lambda x, y: x != 0 or y != 0,
    ),
}


def points():
    """Sizes from the least number to the largest, and next to 1 and -1."""
    for e in [-1074, -1022, -520, -300, -60, -53, -27, -14, -5, -2, -1, 0, 1, 2, 3, 4, 5, 9, 28, 53, 160, 511, 1000, 1023]:
        for m in [1.0, 1.6875]:
            x = m * 2.0**e if e >= -1022 else 2.0**e
            yield from (x, -x)
            if -54 < e < 0:
                yield from (1 + x, 1 - x, -1 + x, -1 - x)


def bits(x):
    return struct.pack(">d", x).hex()


def rounded(x):
    """The nearest f64: mpmath's own conversion rounds numbers below the normal ones twice."""
    if x == 0:
        return 0.0
    exponent = mp.floor(mp.log(abs(x), 2)) if abs(x) > 0 else 0
    if exponent >= 1025:
        return float("inf") if x > 0 else float("-inf")
    unit = mpf(2) ** (max(int(exponent) - 60, -1074))
    if unit == mpf(2) ** -1074:
        return int(mp.nint(x / unit)) * 2.0**-1074
    return float(x)


def main():
    unary = sorted(set(points()))
    for name, (f, d, domain) in UNARY.items():
        for x in unary:
            if domain(x):
                y = mpf(x)
                print(name, bits(x), bits(rounded(f(y))), bits(rounded(d(y))))
    sizes = [2.0**-1022, 1.5 * 2.0**-1000, 1.75 * 2.0**-30, 0.75, 3.5, 1.5 * 2.0**520, 1.25 * 2.0**1000]
    few = [0.0, *sizes, *(-x for x in sizes)]
    for name, (f, d, domain) in BINARY.items():
        for x in few:
            for y in few:
                if domain(x, y):
                    values = [f(mpf(x), mpf(y)), *d(mpf(x), mpf(y))]
                    print(name, bits(x), bits(y), *(bits(rounded(v)) for v in values))


main()
