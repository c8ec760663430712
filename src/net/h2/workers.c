/* Threads that run the handlers of methods that block. */
#include "net/h2/server.h"

#include "base/core/error.h"

enum { JOBS_MAX = 1024 };

static void work(void *context)
{
    struct pawl__h2 *server = context;
    void *job = NULL;

    while (pawl__queue_pop(server->jobs, INT64_MAX, NULL, &job, NULL) == PAWL_OK) {
        struct pawl__h2_call *call = job;
        call->method->handle(call, call->method->context);
    }
}

static bool any_blocks(const struct pawl__h2_services *services)
{
    for (size_t i = 0; i < services->count; i++) {
        if (services->methods[i]->blocks) {
            return true;
        }
    }
    return false;
}

pawl_status pawl__h2_workers_start(struct pawl__h2 *server, uint32_t count, pawl_error *reterr)
{
    if (!any_blocks(&server->services)) {
        return PAWL_OK;
    }
    if (count == 0 || count > H2_WORKERS_MAX) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "%u threads for methods that block: from 1 to %d are allowed",
                          (unsigned)count,
                          H2_WORKERS_MAX);
    }
    TRY(pawl__queue_new(JOBS_MAX, &server->jobs, reterr));
    for (; server->worker_count < count; server->worker_count++) {
        TRY(pawl__thread_start(
            &server->workers[server->worker_count], "pawl-h2-work", work, server, reterr));
    }
    return PAWL_OK;
}

bool pawl__h2_workers_stop(struct pawl__h2 *server, int64_t deadline_ns)
{
    if (server->jobs == NULL) {
        return true;
    }
    pawl__queue_close(server->jobs); /* those that wait are run: each finds that it is gone */
    for (size_t i = 0; i < server->worker_count; i++) {
        if (server->workers[i].started
            && !pawl__thread_join_until(&server->workers[i], deadline_ns)) {
            return false;
        }
    }
    return true;
}
