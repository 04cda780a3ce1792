/* Gaussian mixture: the log posterior and its gradient in alpha [K], mu [K][d], q [K][d], l [K][d(d-1)/2], in this order.
 *
 * With y = x_i - mu_k, z = Q_k y, r_ik = softmax over k of alpha_k + sum q_k - |z|^2 / 2, and G_k = - sum_i r_ik z y^T:
 *   d alpha = R_k - n softmax(alpha)_k   d mu = Q_k^T sum_i r z   d q = R_k + exp(q) G_jj - gamma^2 exp(2 q) + m
 *   d l = G_ij - gamma^2 l
 * d, K and n are known at run time only. `gmm` takes points in blocks with one component after the other, so that all
 * loops inside run over the points of a block; `gmm_by_points` is the textbook order. */
#include "common.h"

#include <string.h>

enum { BLOCK = 64 };

static size_t n, d, K, t;
static const double gamma_prior = 1.0, m_prior = 0.0, pi = 3.14159265358979323846;
/* The sum of lse(beta_i) over the points. */
static double likelihood;
static double *x, *alpha, *mu, *q, *l, *results;
/* Q by rows, packed: row i starts at i(i+1)/2. G likewise, and the sums of r z and of r. */
static double *Q, *log_det, *G, *sum_rz, *sum_r;
static double *xs, *ys, *betas, *z_tape, *y_point;

struct workload gmm, gmm_by_points;

static size_t prepare(const size_t *sizes) {
    n = sizes[0], d = sizes[1], K = sizes[2], t = d * (d - 1) / 2;
    x = uniform(11, n * d), alpha = uniform(12, K), mu = uniform(13, K * d), q = uniform(14, K * d), l = uniform(15, K * t);
    size_t packed = t + d;
    Q = numbers(K * packed), log_det = numbers(K), G = numbers(K * packed), sum_rz = numbers(K * d), sum_r = numbers(K);
    xs = numbers(d * BLOCK), ys = numbers(d * BLOCK), betas = numbers(K * BLOCK), z_tape = numbers(K * d * BLOCK);
    y_point = numbers(K * d);
    size_t count = 1 + K + 2 * K * d + K * t;
    results = gmm.results = gmm_by_points.results = numbers(count);
    return count;
}

static void start(void) {
    for (size_t k = 0; k < K; k++) {
        double *Qk = Q + k * (t + d);
        log_det[k] = 0;
        for (size_t j = 0; j < d; j++) {
            Qk[j * (j + 1) / 2 + j] = exp(q[k * d + j]);
            log_det[k] += q[k * d + j];
        }
        const double *lk = l + k * t;
        for (size_t j = 0; j < d; j++)
            for (size_t i = j + 1; i < d; i++) Qk[i * (i + 1) / 2 + j] = *lk++;
    }
    likelihood = 0;
    memset(G, 0, K * (t + d) * sizeof(double));
    memset(sum_rz, 0, K * d * sizeof(double));
    memset(sum_r, 0, K * sizeof(double));
}

static void finish(void) {
    double top = alpha[0], sum = 0;
    for (size_t k = 1; k < K; k++) top = fmax(top, alpha[k]);
    for (size_t k = 0; k < K; k++) sum += exp(alpha[k] - top);
    double *d_alpha = results + 1, *d_mu = d_alpha + K, *d_q = d_mu + K * d, *d_l = d_q + K * d;
    double gamma2 = gamma_prior * gamma_prior, squares = 0, logs = 0;
    double df = (double)d + m_prior + 1, normaliser = 0.25 * (double)(d * (d - 1)) * log(pi);
    for (size_t j = 0; j < d; j++) normaliser += lgamma(0.5 * (df - (double)j));
    normaliser = df * (double)d * (log(gamma_prior) - 0.5 * log(2)) - normaliser;
    for (size_t k = 0; k < K; k++) {
        const double *Qk = Q + k * (t + d), *Gk = G + k * (t + d), *rz = sum_rz + k * d;
        d_alpha[k] = sum_r[k] - (double)n * exp(alpha[k] - top) / sum;
        for (size_t j = 0; j < d; j++) {
            double s = 0;
            for (size_t i = j; i < d; i++) s += Qk[i * (i + 1) / 2 + j] * rz[i];
            d_mu[k * d + j] = s;
            double e = Qk[j * (j + 1) / 2 + j];
            squares += e * e;
            d_q[k * d + j] = sum_r[k] - e * Gk[j * (j + 1) / 2 + j] - gamma2 * e * e + m_prior;
        }
        const double *lk = l + k * t;
        double *dlk = d_l + k * t;
        logs += log_det[k];
        for (size_t at = 0; at < t; at++) squares += lk[at] * lk[at];
        for (size_t j = 0, at = 0; j < d; j++)
            for (size_t i = j + 1; i < d; i++, at++) dlk[at] = -Gk[i * (i + 1) / 2 + j] - gamma2 * lk[at];
    }
    results[0] = likelihood - (double)n * (top + log(sum)) - 0.5 * (double)(n * d) * log(2 * pi) -
                 (0.5 * gamma2 * squares - m_prior * logs - (double)K * normaliser);
}

/* One block of points, columns of BLOCK numbers each. Unused columns have weight zero. */
static void block(size_t first, size_t used) {
    for (size_t p = 0; p < BLOCK; p++) {
        const double *row = x + (first + (p < used ? p : 0)) * d;
        for (size_t j = 0; j < d; j++) xs[j * BLOCK + p] = row[j];
    }
    double top[BLOCK], sum[BLOCK];
    for (size_t p = 0; p < BLOCK; p++) top[p] = -DBL_MAX, sum[p] = 0;
    for (size_t k = 0; k < K; k++) {
        const double *Qk = Q + k * (t + d);
        double *zs = z_tape + k * d * BLOCK, *beta = betas + k * BLOCK, squares[BLOCK] = {0};
        for (size_t i = 0; i < d; i++)
            for (size_t p = 0; p < BLOCK; p++) ys[i * BLOCK + p] = xs[i * BLOCK + p] - mu[k * d + i];
        for (size_t i = 0; i < d; i++) {
            double z[BLOCK] = {0};
            for (size_t j = 0; j <= i; j++) {
                double c = *Qk++;
                for (size_t p = 0; p < BLOCK; p++) z[p] += c * ys[j * BLOCK + p];
            }
            for (size_t p = 0; p < BLOCK; p++) zs[i * BLOCK + p] = z[p], squares[p] += z[p] * z[p];
        }
        for (size_t p = 0; p < BLOCK; p++) {
            beta[p] = alpha[k] + log_det[k] - 0.5 * squares[p];
            top[p] = fmax(top[p], beta[p]);
        }
    }
    for (size_t k = 0; k < K; k++)
        for (size_t p = 0; p < BLOCK; p++) {
            betas[k * BLOCK + p] = exp(betas[k * BLOCK + p] - top[p]);
            sum[p] += betas[k * BLOCK + p];
        }
    double all = 0;
    for (size_t p = 0; p < BLOCK; p++) all += p < used ? top[p] + log(sum[p]) : 0;
    likelihood += all;
    for (size_t p = 0; p < BLOCK; p++) sum[p] = p < used ? 1 / sum[p] : 0;
    for (size_t k = 0; k < K; k++) {
        double *Gk = G + k * (t + d), *zs = z_tape + k * d * BLOCK, *r = betas + k * BLOCK, all = 0;
        for (size_t p = 0; p < BLOCK; p++) r[p] *= sum[p], all += r[p];
        sum_r[k] += all;
        for (size_t i = 0; i < d; i++)
            for (size_t p = 0; p < BLOCK; p++) ys[i * BLOCK + p] = xs[i * BLOCK + p] - mu[k * d + i];
        for (size_t i = 0; i < d; i++) {
            double rz[BLOCK], s = 0;
            for (size_t p = 0; p < BLOCK; p++) rz[p] = r[p] * zs[i * BLOCK + p], s += rz[p];
            sum_rz[k * d + i] += s;
            for (size_t j = 0; j <= i; j++, Gk++) {
                double g = 0;
                for (size_t p = 0; p < BLOCK; p++) g += rz[p] * ys[j * BLOCK + p];
                *Gk += g;
            }
        }
    }
}

static void run(void) {
    start();
    for (size_t first = 0; first < n; first += BLOCK) block(first, n - first < BLOCK ? n - first : BLOCK);
    finish();
}

static void run_by_points(void) {
    start();
    for (size_t point = 0; point < n; point++) {
        double top = -DBL_MAX, sum = 0;
        for (size_t k = 0; k < K; k++) {
            const double *Qk = Q + k * (t + d);
            double *y = y_point + k * d, *z = z_tape + k * d, squares = 0;
            for (size_t i = 0; i < d; i++) y[i] = x[point * d + i] - mu[k * d + i];
            for (size_t i = 0; i < d; i++, Qk += i) {
                double s = 0;
                for (size_t j = 0; j <= i; j++) s += Qk[j] * y[j];
                z[i] = s, squares += s * s;
            }
            betas[k] = alpha[k] + log_det[k] - 0.5 * squares;
            top = fmax(top, betas[k]);
        }
        for (size_t k = 0; k < K; k++) betas[k] = exp(betas[k] - top), sum += betas[k];
        likelihood += top + log(sum);
        for (size_t k = 0; k < K; k++) {
            double r = betas[k] / sum, *Gk = G + k * (t + d);
            const double *y = y_point + k * d, *z = z_tape + k * d;
            sum_r[k] += r;
            for (size_t i = 0; i < d; i++, Gk += i) {
                double rz = r * z[i];
                sum_rz[k * d + i] += rz;
                for (size_t j = 0; j <= i; j++) Gk[j] += rz * y[j];
            }
        }
    }
    finish();
}

struct workload gmm = {"gmm", {"n", "d", "k"}, prepare, run, NULL};
struct workload gmm_by_points = {"gmm_by_points", {"n", "d", "k"}, prepare, run_by_points, NULL};
