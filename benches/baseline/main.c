/* Runs one workload and prints its times as JSON: `baseline NAME RUNS FILE SIZE...`.
 *
 * FILE is where the results go as binary64 numbers of this machine's order; `-`: nowhere. Times are of one thread; the
 * least of many short runs is what a busy machine can be asked for. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern struct workload gmm, gmm_by_points, ba, lstm, kmeans, kmeans_direction, logreg, lse, stencil;
static struct workload *const workloads[] = {&gmm, &gmm_by_points, &ba, &lstm, &kmeans, &kmeans_direction, &logreg, &lse, &stencil};

double *numbers(size_t count) {
    size_t bytes = (count * sizeof(double) + 63) / 64 * 64;
    double *memory = aligned_alloc(64, bytes ? bytes : 64);
    if (!memory) {
        fprintf(stderr, "no memory for %zu numbers\n", count);
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static uint32_t hash(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ (x >> 16);
}

double *uniform(uint32_t seed, size_t count) {
    double *all = numbers(count);
    for (size_t i = 0; i < count; i++) all[i] = hash((uint32_t)i + 1000003U * seed) / 4294967296.0;
    return all;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int usage(void) {
    fprintf(stderr, "usage: baseline NAME RUNS FILE SIZE...\n");
    for (size_t w = 0; w < sizeof workloads / sizeof *workloads; w++) {
        fprintf(stderr, "  %s", workloads[w]->name);
        for (size_t i = 0; workloads[w]->sizes[i]; i++) fprintf(stderr, " %s", workloads[w]->sizes[i]);
        fprintf(stderr, "\n");
    }
    return 2;
}

static int write_results(const char *file, const double *results, size_t count) {
    FILE *out = fopen(file, "wb");
    if (!out) return 0;
    size_t written = fwrite(results, sizeof(double), count, out);
    return (fclose(out) == 0) & (written == count);
}

int main(int argc, char **argv) {
    if (argc < 4) return usage();
    struct workload *workload = NULL;
    for (size_t w = 0; w < sizeof workloads / sizeof *workloads; w++)
        if (!strcmp(workloads[w]->name, argv[1])) workload = workloads[w];
    if (!workload) return usage();
    size_t sizes[5] = {0}, given = 0;
    for (; workload->sizes[given]; given++) {
        if (4 + (int)given >= argc) return usage();
        sizes[given] = strtoull(argv[4 + given], NULL, 10);
    }
    size_t runs = strtoull(argv[2], NULL, 10);
    if (runs == 0) return usage();
    size_t results = workload->prepare(sizes);
    workload->run();
    double *times = numbers(runs);
    for (size_t r = 0; r < runs; r++) {
        double start = now();
        workload->run();
        times[r] = now() - start;
    }
    qsort(times, runs, sizeof *times, ascending);
    printf("{\"workload\": \"%s\", \"runs\": %zu, \"minimum_ns\": %.0f, \"median_ns\": %.0f, \"results\": %zu}\n",
           workload->name, runs, times[0], times[runs / 2], results);
    if (strcmp(argv[3], "-") && !write_results(argv[3], workload->results, results)) {
        fprintf(stderr, "%s was not written\n", argv[3]);
        return 1;
    }
    return 0;
}
