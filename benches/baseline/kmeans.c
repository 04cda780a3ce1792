/* k-means: the cost and its gradient in the centroids [k][d]; and the Newton direction gradient / diagonal of the Hessian.
 *
 * Points come in blocks, transposed, so that the loop inside runs over the points of a block while the centroids pass by.
 * The first of equally near centroids is the nearest. */
#include "common.h"

#include <string.h>

enum { BLOCK = 64 };

static size_t n, k, d;
static double *points, *centroids, *results, *columns, *sums, *counts;

struct workload kmeans, kmeans_direction;

static void prepare(const size_t *sizes) {
    n = sizes[0], k = sizes[1], d = sizes[2];
    points = uniform(11, n * d), centroids = uniform(12, k * d);
    for (size_t i = 0; i < n * d; i++) points[i] = 2 * points[i] - 1;
    for (size_t i = 0; i < k * d; i++) centroids[i] = 2 * centroids[i] - 1;
    columns = numbers(d * BLOCK), sums = numbers(k * d), counts = numbers(k);
}
static size_t prepare_gradient(const size_t *sizes) {
    prepare(sizes);
    results = kmeans.results = numbers(1 + k * d);
    return 1 + k * d;
}
static size_t prepare_direction(const size_t *sizes) {
    prepare(sizes);
    results = kmeans_direction.results = numbers(k * d);
    return k * d;
}

/* The cost; the sum and the number of the points nearest to each centroid. */
static double clusters(void) {
    double cost = 0;
    memset(sums, 0, k * d * sizeof(double));
    memset(counts, 0, k * sizeof(double));
    for (size_t first = 0; first < n; first += BLOCK) {
        size_t used = n - first < BLOCK ? n - first : BLOCK;
        for (size_t p = 0; p < BLOCK; p++)
            for (size_t j = 0; j < d; j++) columns[j * BLOCK + p] = points[(first + (p < used ? p : 0)) * d + j];
        double least[BLOCK];
        int64_t nearest[BLOCK];
        for (size_t p = 0; p < BLOCK; p++) least[p] = DBL_MAX, nearest[p] = 0;
        for (size_t c = 0; c < k; c++) {
            double distance[BLOCK] = {0};
            for (size_t j = 0; j < d; j++) {
                double at = centroids[c * d + j];
                for (size_t p = 0; p < BLOCK; p++) {
                    double away = columns[j * BLOCK + p] - at;
                    distance[p] += away * away;
                }
            }
            for (size_t p = 0; p < BLOCK; p++) {
                nearest[p] = distance[p] < least[p] ? (int64_t)c : nearest[p];
                least[p] = distance[p] < least[p] ? distance[p] : least[p];
            }
        }
        for (size_t p = 0; p < used; p++) {
            double *sum = sums + nearest[p] * d;
            const double *point = points + (first + p) * d;
            for (size_t j = 0; j < d; j++) sum[j] += point[j];
            counts[nearest[p]] += 1;
            cost += least[p];
        }
    }
    return cost;
}

static void run(void) {
    results[0] = clusters();
    for (size_t c = 0; c < k; c++)
        for (size_t j = 0; j < d; j++) results[1 + c * d + j] = 2 * (counts[c] * centroids[c * d + j] - sums[c * d + j]);
}

static void run_direction(void) {
    clusters();
    for (size_t c = 0; c < k; c++)
        for (size_t j = 0; j < d; j++) results[c * d + j] = centroids[c * d + j] - sums[c * d + j] / counts[c];
}

struct workload kmeans = {"kmeans", {"n", "k", "d"}, prepare_gradient, run, NULL};
struct workload kmeans_direction = {"kmeans_direction", {"n", "k", "d"}, prepare_direction, run_direction, NULL};
