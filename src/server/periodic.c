#include "server/periodic.h"

#include "base/core/error.h"
#include "base/thread/shutdown.h"

static void run(void *context)
{
    struct node_periodic *periodic = context;

    while (!pawl__cancelled(&periodic->stop)) {
        (void)pawl__cancel_wait_until(&periodic->stop, periodic->run(periodic->context));
    }
}

pawl_status pawl__serve_periodic_start(struct node_periodic *periodic,
                                       const char *thread_name,
                                       pawl_error *reterr)
{
    pawl__cancel_init(&periodic->stop, NULL);
    return pawl__thread_start(&periodic->thread, thread_name, run, periodic, reterr);
}

void pawl__serve_periodic_cancel(struct node_periodic *periodic)
{
    pawl__cancel_now(&periodic->stop);
}

pawl_status pawl__serve_periodic_stop(struct node_periodic *periodic,
                                      int64_t deadline_ns,
                                      pawl_error *reterr)
{
    const struct pawl__stop stop = { periodic->name, &periodic->thread };

    return pawl__stop_threads(&periodic->stop, &stop, 1, deadline_ns, reterr);
}

void pawl__serve_periodic_done(struct node_periodic *periodic)
{
    pawl__cancel_done(&periodic->stop);
}
