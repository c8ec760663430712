#include "delivery/core/running.h"

#include "base/core/macros.h"

struct delivery_running pawl__delivery_running_start(int64_t total_ns, int64_t now_ns)
{
    return (struct delivery_running){ .total_ns = MAX(total_ns, INT64_C(0)), .since_ns = now_ns };
}

int64_t pawl__delivery_running_ns(const struct delivery_running *running, int64_t now_ns)
{
    return running->stands ? running->total_ns
                           : running->total_ns + MAX(now_ns - running->since_ns, INT64_C(0));
}

void pawl__delivery_running_stop(struct delivery_running *running, int64_t now_ns)
{
    running->total_ns = pawl__delivery_running_ns(running, now_ns);
    running->stands = true;
}

void pawl__delivery_running_resume(struct delivery_running *running, int64_t now_ns)
{
    running->total_ns = pawl__delivery_running_ns(running, now_ns);
    running->since_ns = now_ns;
    running->stands = false;
}
