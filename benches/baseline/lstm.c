/* LSTM: the mean loss and its gradient in main parameters [2l][4b], then extra parameters [3][b].
 *
 * Forward keeps the gates, tanh of the cell and both states of every layer and step; backward walks the steps from the
 * end. Inside, rows of b numbers are filled up with zeros to s, a multiple of 8, so that vector loops have no tail; the three
 * sigmoid gates lie side by side, so that one loop makes them. */
#include "common.h"

#include <string.h>

static size_t layers, c, b, s;
static double *main_params, *extra, *state, *sequence, *results;
/* The same with rows of s, and the gradient. */
static double *weights, *extra_s, *start, *d_weights;
/* Per step and layer: gates 4s (forget, in, out, change), tanh of the new cell, new hidden, new cell. */
static double *tape, *outputs, *d_hidden, *d_cell, *in0;

struct workload lstm;

static size_t prepare(const size_t *sizes) {
    layers = sizes[0], c = sizes[1], b = sizes[2];
    main_params = uniform(41, 8 * layers * b), extra = uniform(42, 3 * b), state = uniform(43, 2 * layers * b);
    sequence = uniform(44, c * b);
    for (size_t i = 0; i < c * b; i++) sequence[i] = sequence[i] < 0.5 ? 0 : 1;
    s = (b + 7) / 8 * 8;
    weights = numbers(8 * layers * s), extra_s = numbers(3 * s), start = numbers(2 * layers * s);
    d_weights = numbers((8 * layers + 3) * s);
    tape = numbers(7 * s * layers * c), outputs = numbers(c * s), in0 = numbers(c * s);
    d_hidden = numbers(layers * s), d_cell = numbers(layers * s);
    size_t count = 1 + 8 * layers * b + 3 * b;
    results = lstm.results = numbers(count);
    return count;
}

static inline double *cells(size_t step, size_t layer) { return tape + (step * layers + layer) * 7 * s; }
/* The states before a step. */
static inline const double *hidden_before(size_t step, size_t layer) {
    return step ? cells(step - 1, layer) + 5 * s : start + 2 * layer * s;
}
static inline const double *cell_before(size_t step, size_t layer) {
    return step ? cells(step - 1, layer) + 6 * s : start + (2 * layer + 1) * s;
}

static void forward(void) {
    for (size_t t = 0; t + 1 < c; t++) {
        double *input = in0 + t * s;
        for (size_t j = 0; j < b; j++) input[j] = sequence[t * b + j] * extra_s[j];
        const double *x = input;
        for (size_t i = 0; i < layers; i++) {
            const double *w = weights + 8 * i * s, *bias = w + 4 * s;
            const double *h = hidden_before(t, i), *old = cell_before(t, i);
            double *restrict gate = cells(t, i);
            for (size_t j = 0; j < s; j++) {
                gate[j] = x[j] * w[j] + bias[j];
                gate[s + j] = h[j] * w[s + j] + bias[s + j];
                gate[2 * s + j] = x[j] * w[2 * s + j] + bias[2 * s + j];
                gate[3 * s + j] = h[j] * w[3 * s + j] + bias[3 * s + j];
            }
            for (size_t j = 0; j < 3 * s; j++) gate[j] = sigmoid(gate[j]);
            double *change = gate + 3 * s, *changed = gate + 4 * s, *hidden = gate + 5 * s, *cell = gate + 6 * s;
            for (size_t j = 0; j < s; j++) change[j] = tanh(change[j]);
            for (size_t j = 0; j < s; j++) cell[j] = old[j] * gate[j] + gate[s + j] * change[j];
            for (size_t j = 0; j < s; j++) changed[j] = tanh(cell[j]);
            for (size_t j = 0; j < s; j++) hidden[j] = gate[2 * s + j] * changed[j];
            x = hidden;
        }
        double *y = outputs + t * s;
        for (size_t j = 0; j < s; j++) y[j] = exp(x[j] * extra_s[s + j] + extra_s[2 * s + j]);
    }
}

/* Rows of b numbers from or to rows of s. */
static void copy_rows(double *to, size_t to_width, const double *from, size_t from_width, size_t rows) {
    for (size_t r = 0; r < rows; r++) memcpy(to + r * to_width, from + r * from_width, b * sizeof(double));
}

static void run(void) {
    copy_rows(weights, s, main_params, b, 8 * layers);
    copy_rows(extra_s, s, extra, b, 3);
    copy_rows(start, s, state, b, 2 * layers);
    forward();
    memset(d_weights, 0, (8 * layers + 3) * s * sizeof(double));
    memset(d_hidden, 0, layers * s * sizeof(double));
    memset(d_cell, 0, layers * s * sizeof(double));
    double *d_extra = d_weights + 8 * layers * s, total = 0, scale = -1.0 / (double)(b * (c - 1));
    for (size_t t = c - 1; t-- > 0;) {
        const double *y = outputs + t * s, *target = sequence + (t + 1) * b, *last = cells(t, layers - 1) + 5 * s;
        double sum = 2, count = 0, score = 0;
        for (size_t j = 0; j < b; j++) {
            sum += y[j], count += target[j];
            score += target[j] * (last[j] * extra_s[s + j] + extra_s[2 * s + j]);
        }
        total += score - count * log(sum);
        double share = count / sum;
        /* The derivative in the output of the last layer; below, in that of the layer under the current one. */
        double dx[s];
        for (size_t j = b; j < s; j++) dx[j] = 0;
        for (size_t j = 0; j < b; j++) {
            double dy = scale * (target[j] - share * y[j]);
            d_extra[s + j] += dy * last[j];
            d_extra[2 * s + j] += dy;
            dx[j] = dy * extra_s[s + j];
        }
        for (size_t i = layers; i-- > 0;) {
            const double *w = weights + 8 * i * s, *gate = cells(t, i), *changed = gate + 4 * s;
            const double *h = hidden_before(t, i), *old = cell_before(t, i);
            const double *x = i ? cells(t, i - 1) + 5 * s : in0 + t * s;
            double *restrict dw = d_weights + 8 * i * s, *restrict db = dw + 4 * s, *restrict dh = d_hidden + i * s,
                   *restrict dc = d_cell + i * s;
            for (size_t j = 0; j < s; j++) {
                double f = gate[j], in = gate[s + j], o = gate[2 * s + j], ch = gate[3 * s + j];
                double down = dh[j] + dx[j];
                double d = dc[j] + down * o * (1 - changed[j] * changed[j]);
                double df = d * old[j] * f * (1 - f), di = d * ch * in * (1 - in);
                double dout = down * changed[j] * o * (1 - o), dch = d * in * (1 - ch * ch);
                dc[j] = d * f;
                dw[j] += df * x[j], dw[s + j] += di * h[j], dw[2 * s + j] += dout * x[j], dw[3 * s + j] += dch * h[j];
                db[j] += df, db[s + j] += di, db[2 * s + j] += dout, db[3 * s + j] += dch;
                dx[j] = df * w[j] + dout * w[2 * s + j];
                dh[j] = di * w[s + j] + dch * w[3 * s + j];
            }
        }
        for (size_t j = 0; j < b; j++) d_extra[j] += dx[j] * sequence[t * b + j];
    }
    results[0] = scale * total;
    copy_rows(results + 1, b, d_weights, s, 8 * layers + 3);
}

struct workload lstm = {"lstm", {"l", "c", "b"}, prepare, run, NULL};
