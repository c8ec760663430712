/* A benchmark has nobody to return a status to. In the call, `err` is where its error goes. */
#ifndef BENCH_MUST_H
#define BENCH_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

#define MUST(call)                                                   \
    do {                                                             \
        pawl_error error_ = PAWL_ERROR_INIT;                         \
        pawl_error *err = &error_;                                   \
        if ((call) != PAWL_OK) {                                     \
            fprintf(stderr, "bench: %s: %s\n", #call, err->message); \
            exit(1);                                                 \
        }                                                            \
    } while (0)

#endif
