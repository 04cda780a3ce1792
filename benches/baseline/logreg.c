/* Logistic regression: the mean of log(1 + exp z) - y z with z = X w, plus 0.0005 |w|^2, and its gradient
 * X^T (sigmoid(z) - y) / n + 0.001 w, by blocks of rows that stay in the cache. */
#include "common.h"

enum { BLOCK = 32 };

static size_t n, d;
static double *X, *y, *w, *results;

struct workload logreg;

static size_t prepare(const size_t *sizes) {
    n = sizes[0], d = sizes[1];
    X = uniform(5, n * d), y = uniform(7, n), w = uniform(6, d);
    for (size_t i = 0; i < n * d; i++) X[i] = 2 * X[i] - 1;
    for (size_t i = 0; i < n; i++) y[i] = y[i] < 0.5 ? 1 : 0;
    for (size_t j = 0; j < d; j++) w[j] = 0.1 * (2 * w[j] - 1);
    results = logreg.results = numbers(1 + d);
    return 1 + d;
}

static inline const double *row(size_t i) { return X + (i < n ? i : 0) * d; }

static void run(void) {
    double *restrict gradient = results + 1, losses = 0, squares = 0;
    for (size_t j = 0; j < d; j++) gradient[j] = 0.001 * w[j], squares += w[j] * w[j];
    double inverse = 1.0 / (double)n;
    for (size_t first = 0; first < n; first += BLOCK) {
        size_t used = n - first < BLOCK ? n - first : BLOCK;
        double z[BLOCK], off[BLOCK], label[BLOCK] = {0}, loss[BLOCK], share[BLOCK];
        /* Four rows at a time share what they read of w and of the gradient. Rows beyond the end have no share. */
        for (size_t i = 0; i < BLOCK; i += 4) {
            const double *a = row(first + i), *b = row(first + i + 1), *c = row(first + i + 2), *e = row(first + i + 3);
            double za = 0, zb = 0, zc = 0, ze = 0;
            for (size_t j = 0; j < d; j++) za += a[j] * w[j], zb += b[j] * w[j], zc += c[j] * w[j], ze += e[j] * w[j];
            z[i] = za, z[i + 1] = zb, z[i + 2] = zc, z[i + 3] = ze;
        }
        for (size_t i = 0; i < used; i++) label[i] = y[first + i];
        /* One function per loop: gcc makes vectors of each. */
        for (size_t i = 0; i < BLOCK; i++) share[i] = exp(-fabs(z[i]));
        for (size_t i = 0; i < BLOCK; i++) loss[i] = 0.5 * (z[i] + fabs(z[i])) + log(1 + share[i]) - z[i] * label[i];
        for (size_t i = 0; i < BLOCK; i++) {
            double part = 1 / (1 + share[i]);
            off[i] = ((z[i] < 0 ? 1 - part : part) - label[i]) * inverse;
        }
        for (size_t i = 0; i < used; i++) losses += loss[i];
        for (size_t i = used; i < BLOCK; i++) off[i] = 0;
        for (size_t i = 0; i < BLOCK; i += 4) {
            const double *a = row(first + i), *b = row(first + i + 1), *c = row(first + i + 2), *e = row(first + i + 3);
            double oa = off[i], ob = off[i + 1], oc = off[i + 2], oe = off[i + 3];
            for (size_t j = 0; j < d; j++) gradient[j] += oa * a[j] + ob * b[j] + oc * c[j] + oe * e[j];
        }
    }
    results[0] = losses * inverse + 0.0005 * squares;
}

struct workload logreg = {"logreg", {"n", "d"}, prepare, run, NULL};
