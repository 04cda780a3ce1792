/* What the workloads share: the generator of inputs, memory, and the description of a workload.
 *
 * A workload file defines one `struct workload`. `prepare` makes inputs and buffers for the sizes given; `run` is what is
 * timed: from inputs in memory to results in memory, nothing kept from an earlier run. Inputs are those of the generator
 * of the project's small programs, so that any other program can make the same. */
#ifndef BASELINE_COMMON_H
#define BASELINE_COMMON_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct workload {
    const char *name;
    /* The names of the sizes, in the order of the command line, up to a null pointer. */
    const char *sizes[5];
    /* Makes the inputs; gives the number of results. */
    size_t (*prepare)(const size_t *sizes);
    /* Computes the results. */
    void (*run)(void);
    /* Where they are. */
    double *results;
};

/* Memory of so many numbers, aligned for vectors. The program stops if there is none. */
double *numbers(size_t count);

/* `count` numbers in [0, 1): number i is a hash of i and the seed. */
double *uniform(uint32_t seed, size_t count);

static inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

#endif
