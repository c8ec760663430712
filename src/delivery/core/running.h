/* How long a pipeline has run in all: the clock of ENTRY_TTL and of retries. It stands while the process is down,
 * the machine sleeps, the pipeline is paused or its breaker is open, and no step of the wall clock moves it. So
 * nothing grows old that nobody could have tried. */
#ifndef PAWL_DELIVERY_CORE_RUNNING_H
#define PAWL_DELIVERY_CORE_RUNNING_H

#include <pawl/pawl.h>

struct delivery_running {
    int64_t total_ns; /* up to since_ns; stored with every batch and every commit */
    int64_t since_ns; /* monotonic */
    bool stands;
};

struct delivery_running pawl__delivery_running_start(int64_t total_ns, int64_t now_ns);
int64_t pawl__delivery_running_ns(const struct delivery_running *running, int64_t now_ns);
void pawl__delivery_running_stop(struct delivery_running *running, int64_t now_ns);
void pawl__delivery_running_resume(struct delivery_running *running, int64_t now_ns);

#endif
