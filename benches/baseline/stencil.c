/* Stencil: the sum of squares of the last of T + 1 grids N x N, and its gradient in the first.
 *
 * v = 0.2 (u + its four neighbours), u' = v - 0.01 v^3 inside; the border keeps its values. Forward keeps v of every step.
 * Backward: q = g (1 - 0.03 v^2) inside and 0 on the border; g' = 0.2 (q + its four neighbours) inside, and on the border
 * g + 0.2 (neighbours). Rows of q are made one ahead of where they are used. */
#include "common.h"

#include <string.h>

static size_t N, T;
static double *start, *now, *next, *tape, *results, *q_rows;

struct workload stencil;

static size_t prepare(const size_t *sizes) {
    N = sizes[0], T = sizes[1];
    start = uniform(50, N * N);
    for (size_t i = 0; i < N * N; i++) start[i] = 2 * start[i] - 1;
    now = numbers(N * N), next = numbers(N * N), tape = numbers(N * N * T), q_rows = numbers(3 * N);
    results = stencil.results = numbers(1 + N * N);
    return 1 + N * N;
}

static void forward(double *restrict to, const double *restrict from, double *restrict kept) {
    memcpy(to, from, N * sizeof(double));
    memcpy(to + (N - 1) * N, from + (N - 1) * N, N * sizeof(double));
    for (size_t i = 1; i + 1 < N; i++) {
        const double *u = from + i * N;
        to[i * N] = u[0], to[i * N + N - 1] = u[N - 1];
        for (size_t j = 1; j + 1 < N; j++) {
            double v = 0.2 * (u[j] + u[j - N] + u[j + N] + u[j - 1] + u[j + 1]);
            kept[i * N + j] = v;
            to[i * N + j] = v - 0.01 * v * v * v;
        }
    }
}

static void q_row(double *restrict q, const double *g, const double *v) {
    q[0] = 0, q[N - 1] = 0;
    for (size_t j = 1; j + 1 < N; j++) q[j] = g[j] * (1 - 0.03 * v[j] * v[j]);
}

static void backward(double *g, const double *kept) {
    double *above = q_rows, *here = q_rows + N, *below = q_rows + 2 * N;
    memset(above, 0, N * sizeof(double));
    memset(here, 0, N * sizeof(double));
    for (size_t i = 0; i < N; i++) {
        double *restrict row = g + i * N;
        if (i + 2 < N) q_row(below, row + N, kept + (i + 1) * N);
        else memset(below, 0, N * sizeof(double));
        double left = row[0], right = row[N - 1];
        if (i == 0 || i + 1 == N) {
            for (size_t j = 0; j < N; j++) row[j] += 0.2 * (above[j] + below[j]);
        } else {
            for (size_t j = 1; j + 1 < N; j++) row[j] = 0.2 * (here[j] + above[j] + below[j] + here[j - 1] + here[j + 1]);
            row[0] = left + 0.2 * here[1], row[N - 1] = right + 0.2 * here[N - 2];
        }
        double *free = above;
        above = here, here = below, below = free;
    }
}

static void run(void) {
    memcpy(now, start, N * N * sizeof(double));
    for (size_t t = 0; t < T; t++) {
        forward(next, now, tape + t * N * N);
        double *free = now;
        now = next, next = free;
    }
    double *gradient = results + 1, loss = 0;
    for (size_t i = 0; i < N * N; i++) gradient[i] = 2 * now[i], loss += now[i] * now[i];
    results[0] = loss;
    for (size_t t = T; t-- > 0;) backward(gradient, tape + t * N * N);
}

struct workload stencil = {"stencil", {"N", "T"}, prepare, run, NULL};
