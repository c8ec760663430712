/* What every benchmark shares: a monotonic timer and one way to report.
 *
 * A figure is a ratio inside one run: ours against a baseline that does the same durable work, on
 * the same machine, in the same minute. Rounds of the two alternate, so that a disk that changes
 * its mind hits both. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline int bench_compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sorts. A round in which somebody else had the machine does not move it. */
static inline double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), bench_compare);
    return values[count / 2];
}

/* One line of JSON on stdout; scripts/bench makes the table. `wanted` is the ratio the project
 * promises, 0 when it promises none. */
static inline void bench_report(const char *name,
                                const char *unit,
                                double ours,
                                const char *baseline_name,
                                double baseline,
                                double wanted)
{
    printf("{\"bench\":\"%s\",\"unit\":\"%s\",\"ours\":%.1f,\"baseline_name\":\"%s\","
           "\"baseline\":%.1f,\"ratio\":%.3f,\"wanted\":%.2f}\n",
           name,
           unit,
           ours,
           baseline_name,
           baseline,
           baseline > 0 ? ours / baseline : 0,
           wanted);
    fflush(stdout);
}

#endif
