#include "base/thread/shutdown.h"

#include <stdio.h>

#include "base/core/buf.h"
#include "base/core/error.h"

static pawl_status fail_naming_who_runs(const struct pawl__stop *threads,
                                        size_t count,
                                        pawl_error *reterr)
{
    char names[PAWL_ERROR_MESSAGE_SIZE] = "";
    struct pawl__buf list = BUF_OVER(names);
    size_t running = 0;

    for (size_t i = 0; i < count; i++) {
        if (threads[i].thread->started) {
            /* A list that is full loses its last names; the count stays right. */
            pawl__buf_add_format(&list, "%s'%s'", running == 0 ? "" : ", ", threads[i].name);
            running++;
        }
    }
    return pawl__fail(
        reterr, PAWL_TIMEOUT, "%zu of %zu threads did not stop: %s", running, count, names);
}

pawl_status pawl__stop_threads(struct pawl__cancel *cancel,
                               const struct pawl__stop *threads,
                               size_t count,
                               int64_t deadline_ns,
                               pawl_error *reterr)
{
    bool all = true;

    if (cancel != NULL) {
        pawl__cancel_now(cancel);
    }
    /* One deadline for all: after it has passed, joining only collects who has ended already. */
    for (size_t i = 0; i < count; i++) {
        all = pawl__thread_join_until(threads[i].thread, deadline_ns) && all;
    }
    return all ? PAWL_OK : fail_naming_who_runs(threads, count, reterr);
}
