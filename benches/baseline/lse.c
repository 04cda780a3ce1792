/* Log-sum-exp, shifted by the maximum, and its gradient exp(x - max) / sum. */
#include "common.h"

static size_t n;
static double *x, *results;

struct workload lse;

static size_t prepare(const size_t *sizes) {
    n = sizes[0];
    x = uniform(103, n);
    results = lse.results = numbers(1 + n);
    return 1 + n;
}

static void run(void) {
    double *restrict out = results + 1;
    double top = x[0], sum = 0;
    for (size_t i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
    for (size_t i = 0; i < n; i++) {
        double e = exp(x[i] - top);
        out[i] = e;
        sum += e;
    }
    results[0] = top + log(sum);
    double inverse = 1 / sum;
    for (size_t i = 0; i < n; i++) out[i] *= inverse;
}

struct workload lse = {"lse", {"n"}, prepare, run, NULL};
