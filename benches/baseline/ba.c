/* Bundle adjustment: the Jacobian blocks of all observations, rows [p][2][15] (11 camera, 3 point, 1 weight), then -2 w [p].
 *
 * With a = r/|r|, Y = R (X - C), p = (Y0/Y2, Y1/Y2), s = |p|^2, D = 1 + k1 s + k2 s^2, e = w (f D p + (u0, v0) - feat), and b the
 * row of d(f D p)/dY of one component:
 *   d/dX = w R^T b = -d/dC   d/dr_j = w (a_j b.dY/dangle + (v_j - a_j a.v)/angle)
 *   v = sin (Xo x b) + (1 - cos) ((a.Xo) b + (a.b) Xo)
 * At r = 0 the rotation is Xo + r x Xo, which the same lines give with a = 0, cos = sin = angle = 1.
 * Observations come in blocks, transposed on the way in and out, so that gcc makes vectors of the loops in between. */
#include "common.h"

enum { BLOCK = 64, ROW = 15 };

static size_t n, m, p;
static double *cameras, *points, *weights, *features, *results;
static int64_t *observed;

struct workload ba;

static size_t prepare(const size_t *sizes) {
    static const double camera[11] = {0.2, -0.1, 0.3, 0.1, 0.2, -5.0, 400.0, 5.0, -8.0, 0.01, 0.002};
    n = sizes[0], m = sizes[1], p = sizes[2];
    cameras = numbers(11 * n), points = uniform(21, 3 * m), weights = uniform(22, p), features = uniform(23, 2 * p);
    for (size_t c = 0; c < n; c++)
        for (size_t j = 0; j < 11; j++) cameras[11 * c + j] = camera[j] * (1.0 + 0.01 * (double)c);
    observed = (int64_t *)numbers(2 * p);
    for (size_t i = 0; i < p; i++) observed[2 * i] = (int64_t)(i % n), observed[2 * i + 1] = (int64_t)(i % m);
    results = ba.results = numbers(31 * p);
    return 31 * p;
}

/* One component of the error, by its row b = d(f D p)/dY. */
static inline void row(double (*restrict out)[BLOCK], size_t i, size_t which, double w, double b0, double b1, double b2,
                       const double a[3], const double X[3], double sn, double cs, double inverse, double aX,
                       const double turned[3], double p_c, double fp_c, double D, double s, double residual) {
    double ab = a[0] * b0 + a[1] * b1 + a[2] * b2;
    double c0 = X[1] * b2 - X[2] * b1, c1 = X[2] * b0 - X[0] * b2, c2 = X[0] * b1 - X[1] * b0;
    double u = 1 - cs;
    double v0 = sn * c0 + u * (aX * b0 + ab * X[0]), v1 = sn * c1 + u * (aX * b1 + ab * X[1]),
           v2 = sn * c2 + u * (aX * b2 + ab * X[2]);
    double av = a[0] * v0 + a[1] * v1 + a[2] * v2;
    double angle = b0 * turned[0] + b1 * turned[1] + b2 * turned[2];
    out[0][i] = w * (a[0] * angle + (v0 - a[0] * av) * inverse);
    out[1][i] = w * (a[1] * angle + (v1 - a[1] * av) * inverse);
    out[2][i] = w * (a[2] * angle + (v2 - a[2] * av) * inverse);
    /* R^T b = cos b + sin (b x a) + (1 - cos) (a.b) a */
    double x0 = w * (cs * b0 + sn * (b1 * a[2] - b2 * a[1]) + u * ab * a[0]);
    double x1 = w * (cs * b1 + sn * (b2 * a[0] - b0 * a[2]) + u * ab * a[1]);
    double x2 = w * (cs * b2 + sn * (b0 * a[1] - b1 * a[0]) + u * ab * a[2]);
    out[3][i] = -x0, out[4][i] = -x1, out[5][i] = -x2;
    out[6][i] = w * D * p_c;
    out[7][i] = which == 0 ? w : 0, out[8][i] = which == 1 ? w : 0;
    out[9][i] = w * fp_c * s, out[10][i] = w * fp_c * s * s;
    out[11][i] = x0, out[12][i] = x1, out[13][i] = x2;
    out[14][i] = residual;
}

/* Both rows of observation i of a block; column j of `in` holds camera, point, weight, feature. */
static inline void observation(double (*restrict in)[BLOCK], size_t i, double angle, double sine, double cosine,
                               double (*restrict out)[BLOCK]) {
    double X[3] = {in[11][i] - in[3][i], in[12][i] - in[4][i], in[13][i] - in[5][i]};
    double w = in[14][i];
    double f = in[6][i], k1 = in[9][i], k2 = in[10][i];
    int turns = angle != 0;
    double inverse = turns ? 1 / angle : 1, scale = turns ? inverse : 0, sn = turns ? sine : 1, cs = cosine;
    double a[3] = {in[0][i] * scale, in[1][i] * scale, in[2][i] * scale};
    double cross[3] = {a[1] * X[2] - a[2] * X[1], a[2] * X[0] - a[0] * X[2], a[0] * X[1] - a[1] * X[0]};
    double aX = a[0] * X[0] + a[1] * X[1] + a[2] * X[2];
    double Y[3], turned[3];
    for (int j = 0; j < 3; j++) {
        Y[j] = cs * X[j] + sn * cross[j] + (1 - cs) * aX * a[j];
        turned[j] = cs * cross[j] + sn * (aX * a[j] - X[j]);
    }
    double depth = 1 / Y[2], p0 = Y[0] * depth, p1 = Y[1] * depth;
    double s = p0 * p0 + p1 * p1, D = 1 + s * (k1 + s * k2), D1 = 2 * f * (k1 + 2 * k2 * s) * depth, fD = f * D * depth;
    double b00 = fD + D1 * p0 * p0, b01 = D1 * p0 * p1, b11 = fD + D1 * p1 * p1;
    row(out, i, 0, w, b00, b01, -(b00 * p0 + b01 * p1), a, X, sn, cs, inverse, aX, turned, p0, f * p0, D, s,
        f * D * p0 + in[7][i] - in[15][i]);
    row(out + ROW, i, 1, w, b01, b11, -(b01 * p0 + b11 * p1), a, X, sn, cs, inverse, aX, turned, p1, f * p1, D, s,
        f * D * p1 + in[8][i] - in[16][i]);
}

static void run(void) {
    static double in[17][BLOCK] __attribute__((aligned(64))), out[2 * ROW][BLOCK] __attribute__((aligned(64)));
    for (size_t first = 0; first < p; first += BLOCK) {
        size_t used = p - first < BLOCK ? p - first : BLOCK;
        double angle[BLOCK], sine[BLOCK], cosine[BLOCK];
        for (size_t i = 0; i < BLOCK; i++) {
            size_t at = first + (i < used ? i : 0);
            const double *cam = cameras + 11 * observed[2 * at], *point = points + 3 * observed[2 * at + 1];
            for (size_t j = 0; j < 11; j++) in[j][i] = cam[j];
            for (size_t j = 0; j < 3; j++) in[11 + j][i] = point[j];
            in[14][i] = weights[at], in[15][i] = features[2 * at], in[16][i] = features[2 * at + 1];
        }
        for (size_t i = 0; i < BLOCK; i++) angle[i] = sqrt(in[0][i] * in[0][i] + in[1][i] * in[1][i] + in[2][i] * in[2][i]);
        for (size_t i = 0; i < BLOCK; i++) sine[i] = sin(angle[i]);
        for (size_t i = 0; i < BLOCK; i++) cosine[i] = cos(angle[i]);
        for (size_t i = 0; i < BLOCK; i++) observation(in, i, angle[i], sine[i], cosine[i], out);
        double *rows = results + 2 * ROW * first;
        for (size_t i = 0; i < used; i++)
            for (size_t j = 0; j < 2 * ROW; j++) rows[2 * ROW * i + j] = out[j][i];
    }
    for (size_t i = 0; i < p; i++) results[2 * ROW * p + i] = -2 * weights[i];
}

struct workload ba = {"ba", {"n", "m", "p"}, prepare, run, NULL};
