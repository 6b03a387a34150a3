"""Coefficients of the polynomials in native/simd*.hpp, from first principles. Needs mpmath.

Each function is interpolated at Chebyshev nodes in 60 digits, which is within a small factor of the
best polynomial, and the coefficients are rounded to the working type.
"""

import mpmath as mp
import numpy as np

mp.mp.dps = 60


def interpolant(f, low, high, degree):
    """Monomial coefficients, lowest first, of the interpolant at Chebyshev nodes."""
    nodes = [
        (low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * (degree + 1)))
        for i in range(degree + 1)
    ]
    A = mp.matrix(degree + 1, degree + 1)
    b = mp.matrix(degree + 1, 1)
    for i, x in enumerate(nodes):
        b[i] = f(x)
        for j in range(degree + 1):
            A[i, j] = x**j
    return list(mp.lu_solve(A, b))


def show(name, coefficients, dtype):
    """Print coefficients, highest first, as the hexadecimal numbers of the source."""
    print(name)
    for j in reversed(range(len(coefficients))):
        value = float(dtype(float(coefficients[j])))
        print(f"  [{j}] {value.hex()}{'f' if dtype is np.float32 else ''}")


def exp_tail(r):
    """(exp(r) - 1 - r) / r^2."""
    return mp.nsum(lambda j: r**j / mp.factorial(j + 2), [0, 40])


def exp2_tail(f):
    """(2^f - 1) / f."""
    return mp.expm1(f * mp.log(2)) / f if f else mp.log(2)


def log_tail(z):
    """(2 atanh(s) / s - 2) / z with z = s^2."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z if z else mp.mpf(2) / 3


half = mp.log(2) / 2 * (1 + mp.mpf(2) ** -20)
edge = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * (1 + mp.mpf(2) ** -20)
show("exp, float64", interpolant(exp_tail, -half, half, 9), np.float64)
show("exp, float32", interpolant(exp_tail, -half, half, 4), np.float32)
show("exp2, float64", interpolant(exp2_tail, -mp.mpf(1) / 2, mp.mpf(1) / 2, 10), np.float64)
show("exp2, float32", interpolant(exp2_tail, -mp.mpf(1) / 2, mp.mpf(1) / 2, 5), np.float32)
show("log, float64", interpolant(log_tail, mp.mpf(0), edge, 7), np.float64)
show("log, float32", interpolant(log_tail, mp.mpf(0), edge, 3), np.float32)
ln2 = mp.log(2)
for bits, dtype in ((42, np.float64), (15, np.float32)):
    head = mp.floor(ln2 * mp.mpf(2) ** bits) / mp.mpf(2) ** bits
    print(
        f"log 2 to {bits} bits: {float(head).hex()}, rest {float(dtype(float(ln2 - head))).hex()}"
    )

# --- AVX-512: exponentials by a table of sixteen, powers by one of logarithms


def expm1_tail(r):
    """(exp(r) - 1) / r."""
    return mp.expm1(r) / r if r else mp.mpf(1)


def log2_tail(r):
    """log2(1 + r) / r."""
    return mp.nsum(lambda j: (-r) ** j / (j + 1), [0, 60]) / mp.log(2)


reach = mp.mpf(1) / 32 * (1 + mp.mpf(2) ** -20)
for name, f, end in (("exp", expm1_tail, reach * ln2), ("exp2", exp2_tail, reach)):
    show(f"{name} by table, float64", interpolant(f, -end, end, 5), np.float64)
    show(f"{name} by table, float32", interpolant(f, -end, end, 2), np.float32)
show("log2, float64", interpolant(log2_tail, -reach, reach, 6), np.float64)
show("log2, float32", interpolant(log2_tail, -reach, reach, 3), np.float32)
for dtype in (np.float64, np.float32):
    powers = [dtype(float(mp.mpf(2) ** (mp.mpf(j) / 16))) for j in range(16)]
    centres = [dtype(1 / (1 + (j + 0.5) / 16)) for j in range(16)]
    logs = [dtype(float(-mp.log(mp.mpf(float(c))) / mp.log(2))) for c in centres]
    print("powers", ", ".join(float(c).hex() for c in powers))
    print("reciprocals", ", ".join(float(c).hex() for c in centres))
    print("logarithms", ", ".join(float(c).hex() for c in logs))
