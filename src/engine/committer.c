#include "engine/committer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"

struct pawl__commit {
    struct pawl__lock lock; /* covers everything up to the thread, and the states of all items */
    struct pawl__cond wake; /* the committer's */
    struct pawl__commit_core core;
    bool ended;    /* the thread will not touch this any more */
    bool orphaned; /* free has gone ahead: the thread frees this */

    struct pawl__thread thread;
    bool stop_timed_out;
    struct pawl__commit_options options;
    struct pawl__commit_item **batch; /* the committer's own, room for batch_items_max */
};

static void destroy(struct pawl__commit *commit)
{
    pawl__cond_done(&commit->wake);
    pawl__lock_done(&commit->lock);
    free(commit->batch);
    free(commit);
}

static int64_t now_ns(const struct pawl__commit *commit)
{
    return pawl__monotonic_ns(pawl__clock_or_real(commit->options.clock));
}

/* Wakes the one thread that waits for this item. From the post on the item is that thread's, which
 * may free it at once; glibc's sem_post does not touch the memory after it has counted. */
static void wake_caller(struct pawl__commit_item *item)
{
    atomic_store_explicit(&item->answered, true, memory_order_release);
    REQUIRE(sem_post(&item->wake) == 0);
}

/* Items without a waiting thread: called back, or freed because that thread has left. */
static void finish(struct pawl__commit_item *item)
{
    if (item->given_up) {
        item->free(item);
    } else {
        item->done(item);
    }
}

static bool has_waiting_thread(const struct pawl__commit_item *item)
{
    return item->done == NULL && !item->given_up;
}

/* Waking a thread is a system call, and sixty of them were a quarter of what the committer did. So
 * it wakes the first two callers only, and each one wakes some more while the next batch is on its
 * way. The tree is flat: on a busy machine every level waits for a turn on the processor. A caller
 * that has left in the meantime is not among them: see give_up. */
static void wake_tree(struct pawl__commit_item *const *items, size_t count)
{
    enum { ROOTS = 2, CHILDREN = COUNT_OF(items[0]->children) };

    for (size_t i = 0; i < count; i++) {
        for (size_t child = 0; child < CHILDREN; child++) {
            size_t at = ROOTS + CHILDREN * i + child;
            items[i]->children[child] = at < count ? items[at] : NULL;
        }
    }
    for (size_t i = 0; i < MIN(count, (size_t)ROOTS); i++) {
        wake_caller(items[i]);
    }
}

static void wake_children(const struct pawl__commit_item *item)
{
    for (size_t i = 0; i < COUNT_OF(item->children); i++) {
        if (item->children[i] != NULL) {
            wake_caller(item->children[i]);
        }
    }
}

/* Answered items go back to their owners, without the lock. Threads first: they should not wait for
 * callbacks. */
static void hand_out(struct pawl__commit_item **items, size_t count)
{
    size_t threads = 0;

    for (size_t i = 0; i < count; i++) {
        if (has_waiting_thread(items[i])) {
            struct pawl__commit_item *item = items[i];
            items[i] = items[threads];
            items[threads++] = item;
        }
    }
    wake_tree(items, threads); /* theirs from here on */
    for (size_t i = threads; i < count; i++) {
        finish(items[i]);
    }
}

static void hand_out_list(struct pawl__commit_item *item)
{
    while (item != NULL) {
        struct pawl__commit_item *next = item->next;
        if (has_waiting_thread(item)) {
            wake_caller(item);
        } else {
            finish(item);
        }
        item = next;
    }
}

static pawl_status commit_batch(struct pawl__commit *commit, size_t count, pawl_error *reterr)
{
    FAILPOINT("commit.batch.before", reterr);
    TRY(commit->options.commit(commit->options.context, commit->batch, count, reterr));
    FAILPOINT("commit.batch.after", reterr);
    return PAWL_OK;
}

/* Takes one batch, has it committed and answers it. The lock is held before and after, not within.
 */
static void run_batch_locked(struct pawl__commit *commit) REQUIRES_LOCK(commit->lock)
{
    size_t count = pawl__commit_core_begin_batch(&commit->core, commit->batch);
    pawl__unlock(&commit->lock);

    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = commit_batch(commit, count, &error);
    if (status != PAWL_OK && error.status != status) {
        pawl__fail(&error, status, "commit of '%s' failed", commit->options.name);
    }

    pawl__lock(&commit->lock);
    pawl__commit_core_answer(
        &commit->core, commit->batch, count, now_ns(commit), status == PAWL_OK ? NULL : &error);
    pawl__unlock(&commit->lock);

    hand_out(commit->batch, count);
    pawl__lock(&commit->lock);
}

static void run(void *context)
{
    struct pawl__commit *commit = context;
    bool running = true;

    pawl__lock(&commit->lock);
    while (running) {
        int64_t until_ns = 0;
        switch (pawl__commit_core_next(&commit->core, now_ns(commit), &until_ns)) {
        case PAWL__COMMIT_WAIT:
            pawl__cond_wait(&commit->wake, &commit->lock);
            break;
        case PAWL__COMMIT_WAIT_UNTIL:
            (void)pawl__cond_wait_until(&commit->wake, &commit->lock, until_ns);
            break;
        case PAWL__COMMIT_TAKE:
            run_batch_locked(commit);
            break;
        case PAWL__COMMIT_STOP:
            running = false;
            break;
        }
    }
    commit->ended = true;
    bool orphaned = commit->orphaned;
    pawl__unlock(&commit->lock);
    if (orphaned) {
        destroy(commit);
    }
}

pawl_status pawl__commit_new(const struct pawl__commit_options *options,
                             struct pawl__commit **ret_commit,
                             pawl_error *reterr)
{
    struct pawl__commit_core core;
    pawl_status status = pawl__commit_core_init(&core, &options->limits, reterr);

    if (status != PAWL_OK) {
        return pawl__fail_context(reterr, status, "group commit '%s'", options->name);
    }
    struct pawl__commit *commit = calloc(1, sizeof(*commit));
    struct pawl__commit_item **batch =
        calloc(options->limits.batch_items_max, sizeof(struct pawl__commit_item *));
    if (commit == NULL || batch == NULL) {
        free(batch);
        free(commit);
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for group commit '%s'", options->name);
    }
    commit->core = core;
    commit->options = *options;
    commit->batch = batch;
    pawl__lock_cond_init(&commit->lock, &commit->wake);
    status = pawl__thread_start(&commit->thread, options->name, run, commit, reterr);
    if (status != PAWL_OK) {
        destroy(commit);
        return status;
    }
    *ret_commit = commit;
    return PAWL_OK;
}

static pawl_status enqueue(struct pawl__commit *commit,
                           struct pawl__commit_item *item,
                           pawl_error *reterr)
{
    bool wake = false;
    int64_t now = now_ns(commit);

    pawl__lock(&commit->lock);
    pawl_status status = pawl__commit_core_submit(&commit->core, item, now, &wake, reterr);
    if (wake) {
        /* Not after the unlock: by then the item may be answered and, by a stop, all of this gone.
         */
        pawl__cond_signal(&commit->wake);
    }
    pawl__unlock(&commit->lock);
    return status;
}

pawl_status pawl__commit_submit_async(struct pawl__commit *commit,
                                      struct pawl__commit_item *item,
                                      pawl_error *reterr)
{
    REQUIRE(item->done != NULL);
    return enqueue(commit, item, reterr);
}

static bool wait_for_answer(struct pawl__commit_item *item, int64_t deadline_ns)
{
    struct timespec deadline = {
        .tv_sec = deadline_ns / NS_PER_S,
        .tv_nsec = deadline_ns % NS_PER_S,
    };
    int result;

    do {
        result = sem_clockwait(&item->wake, CLOCK_MONOTONIC, &deadline);
    } while (result != 0 && errno == EINTR);
    REQUIRE(result == 0 || errno == ETIMEDOUT);
    return result == 0;
}

/* The deadline has passed. PAWL_OK: the answer came at the same moment and is there now. */
static pawl_status give_up(struct pawl__commit *commit,
                           struct pawl__commit_item **item,
                           pawl_error *reterr)
{
    pawl__lock(&commit->lock);
    enum pawl__commit_state was = pawl__commit_core_give_up(&commit->core, *item);
    pawl__unlock(&commit->lock);

    if (was == PAWL__COMMIT_WAITING) {
        return pawl__fail(reterr,
                          PAWL_BUSY,
                          "'%s' did not come to it before the deadline; nothing was committed",
                          commit->options.name);
    }
    if (was == PAWL__COMMIT_IN_FLIGHT) {
        *item = NULL; /* the committer's now */
        return pawl__fail(reterr,
                          PAWL_TIMEOUT,
                          "the deadline passed during a commit of '%s'; its outcome is unknown",
                          commit->options.name);
    }
    REQUIRE(wait_for_answer(*item, INT64_MAX)); /* the committer is about to post */
    return PAWL_OK;
}

pawl_status pawl__commit_submit(struct pawl__commit *commit,
                                struct pawl__commit_item **item,
                                int64_t deadline_ns,
                                pawl_error *reterr)
{
    struct pawl__commit_item *mine = *item;

    REQUIRE(mine->done == NULL);
    REQUIRE(mine->free != NULL || deadline_ns == INT64_MAX);
    REQUIRE(sem_init(&mine->wake, 0, 0) == 0); /* allocates nothing */
    memset(mine->children, 0, sizeof(mine->children));
    atomic_store_explicit(&mine->answered, false, memory_order_relaxed);
    pawl_status status = enqueue(commit, mine, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (!wait_for_answer(mine, MAX(deadline_ns, 0))) {
        status = give_up(commit, item, reterr);
        if (status != PAWL_OK) {
            return status;
        }
    }
    REQUIRE(atomic_load_explicit(&mine->answered, memory_order_acquire));
    wake_children(mine);
    if (mine->outcome.status != PAWL_OK && reterr != NULL) {
        *reterr = mine->outcome;
    }
    return mine->outcome.status;
}

static void fail_waiting(struct pawl__commit *commit)
{
    pawl__lock(&commit->lock);
    struct pawl__commit_item *failed = pawl__commit_core_fail_waiting(&commit->core);
    pawl__unlock(&commit->lock);
    hand_out_list(failed);
}

pawl_status pawl__commit_stop(struct pawl__commit *commit,
                              bool drain,
                              int64_t deadline_ns,
                              pawl_error *reterr)
{
    pawl__lock(&commit->lock);
    pawl__commit_core_close(&commit->core);
    pawl__cond_signal(&commit->wake);
    pawl__unlock(&commit->lock);
    if (!drain) {
        fail_waiting(commit);
    }
    commit->stop_timed_out = !pawl__thread_join_until(&commit->thread, deadline_ns);
    if (commit->stop_timed_out) {
        fail_waiting(commit);
        return pawl__fail(reterr,
                          PAWL_TIMEOUT,
                          "a commit of '%s' did not come back before the deadline",
                          commit->options.name);
    }
    return PAWL_OK;
}

void pawl__commit_free(struct pawl__commit *commit)
{
    if (commit == NULL) {
        return;
    }
    if (!commit->stop_timed_out) {
        REQUIRE(pawl__commit_stop(commit, false, INT64_MAX, NULL) == PAWL_OK);
        destroy(commit);
        return;
    }
    pthread_t id = commit->thread.id;
    pawl__lock(&commit->lock);
    commit->orphaned = true;
    bool ended = commit->ended;
    pawl__unlock(&commit->lock);
    if (ended) {
        pawl__thread_join(&commit->thread);
        destroy(commit);
    } else {
        pthread_detach(id); /* it frees the rest; nothing here may be touched any more */
    }
}

void pawl__commit_counts(struct pawl__commit *commit, uint64_t *ret_batches, uint64_t *ret_items)
{
    pawl__lock(&commit->lock);
    *ret_batches = commit->core.batches;
    *ret_items = commit->core.items;
    pawl__unlock(&commit->lock);
}

size_t pawl__commit_waiting(struct pawl__commit *commit)
{
    pawl__lock(&commit->lock);
    size_t waiting = commit->core.waiting;
    pawl__unlock(&commit->lock);
    return waiting;
}
