/* Threads for claims that wait for items: one each, up to a limit, so that waiting takes no thread from other
 * requests. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/thread/shutdown.h"
#include "server/work/work.h"

struct wait_slot {
    struct node_waits *waits;
    struct pawl__thread thread; /* may have ended without being joined */
    bool busy;
    void (*run)(void *context);
    void *context;
};

struct node_waits {
    struct pawl__lock lock; /* covers the rest */
    bool stopping;
    struct wait_slot slots[NODE_WAITS_MAX];
};

pawl_status pawl__serve_waits_new(struct node_waits **ret_waits, pawl_error *reterr)
{
    struct node_waits *waits = calloc(1, sizeof(*waits));

    if (waits == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for threads");
    }
    pawl__lock_init(&waits->lock);
    for (size_t i = 0; i < NODE_WAITS_MAX; i++) {
        waits->slots[i].waits = waits;
    }
    *ret_waits = waits;
    return PAWL_OK;
}

static void run_slot(void *context)
{
    struct wait_slot *slot = context;

    slot->run(slot->context);
    pawl__lock(&slot->waits->lock);
    slot->busy = false;
    pawl__unlock(&slot->waits->lock);
}

static bool start_locked(struct node_waits *waits, void (*run)(void *context), void *context)
    REQUIRES_LOCK(waits->lock)
{
    for (size_t i = 0; i < NODE_WAITS_MAX && !waits->stopping; i++) {
        struct wait_slot *slot = &waits->slots[i];

        if (!slot->busy) {
            pawl__thread_join(&slot->thread); /* it has ended */
            slot->run = run;
            slot->context = context;
            slot->busy = pawl__thread_start(&slot->thread, "pawl-work-wait", run_slot, slot, NULL)
                         == PAWL_OK;
            return slot->busy;
        }
    }
    return false;
}

bool pawl__serve_waits_run(struct node_waits *waits, void (*run)(void *context), void *context)
{
    pawl__lock(&waits->lock);
    bool started = start_locked(waits, run, context);
    pawl__unlock(&waits->lock);
    return started;
}

void pawl__serve_waits_stop(struct node_waits *waits)
{
    pawl__lock(&waits->lock);
    waits->stopping = true;
    pawl__unlock(&waits->lock);
}

pawl_status pawl__serve_waits_stop_until(struct node_waits *waits,
                                         int64_t deadline_ns,
                                         pawl_error *reterr)
{
    struct pawl__stop stops[NODE_WAITS_MAX];

    if (waits == NULL) {
        return PAWL_OK;
    }
    pawl__serve_waits_stop(waits);
    for (size_t i = 0; i < NODE_WAITS_MAX; i++) {
        stops[i] = (struct pawl__stop){ "a claim that waits", &waits->slots[i].thread };
    }
    return pawl__stop_threads(NULL, stops, NODE_WAITS_MAX, deadline_ns, reterr);
}

void pawl__serve_waits_free(struct node_waits *waits)
{
    if (waits != NULL) {
        pawl__lock_done(&waits->lock);
        free(waits);
    }
}
