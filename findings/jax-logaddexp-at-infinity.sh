#!/bin/sh
# JAX 0.10.2: the derivative of logaddexp with respect to a finite argument, where the other one is infinite, is exp of the
# finite one, in forward and in reverse mode, without a warning.
#
# logaddexp(x, y) = log(exp x + exp y) does not depend on y where x is infinite: the derivative by y is the limit of
# exp(y - logaddexp(x, y)), which is 0. Seen at (inf, 1): (1, 2.718281828459045), at (inf, 100): (1, 2.6881171418161356e+43).
# Right: (1, 0), which Pullback gives.
#
# Installs the pinned package in a temporary folder, runs it, and fails if the behaviour is another one.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-cache-dir "jax[cpu]==0.10.2" "jaxlib==0.10.2"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import math

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
for y in (1.0, 100.0):
    point = (jnp.float64(math.inf), jnp.float64(y))
    reverse = float(jax.grad(jnp.logaddexp, argnums=1)(*point))
    forward = float(jax.jvp(jnp.logaddexp, point, (jnp.float64(0.0), jnp.float64(1.0)))[1])
    print(f"jax {jax.__version__}: d logaddexp(inf, {y}) / dy = {reverse!r} in reverse, {forward!r} in forward mode; right: 0")
    assert abs(reverse - math.exp(y)) <= 1e-12 * math.exp(y), "the behaviour has changed"
    assert abs(forward - math.exp(y)) <= 1e-12 * math.exp(y), "the behaviour has changed"
PROGRAM
