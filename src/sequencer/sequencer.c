/* A core (core.h) with two threads behind it: one writes numbers, the other reads the log. */
#include <pawl/sequencer.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/random.h"
#include "base/decide/backoff.h"
#include "base/os/clock.h"
#include "base/thread/inside.h"
#include "base/thread/thread.h"
#include "sequencer/core.h"
#include "sequencer/internal.h"
#include "sequencer/storage_call.h"

struct pawl_sequencer {
    struct pawl__clock *clock;
    struct seq_core core; /* its shared half under the lock */
    pawl_seq_storage storage;
    pawl_sequencer_options options;
    /* The number of the thread whose transaction is open; NOBODY: none is; THE_STORAGE: its own storage is
     * being asked, and must not come back to it */
    atomic_uint_fast64_t owner;
    atomic_bool closed;

    struct pawl__lock lock; /* covers all below */
    struct pawl__cond changed;
    bool closing;
    bool abandoned; /* nobody waits for the threads any more, and the storage may be gone soon */
    bool flush_wanted;
    bool actualize_wanted;
    bool cleaning; /* no write may begin: what waits is about to be forgotten */
    bool writing;
    int64_t retry_ns;     /* not before, after a write that failed */
    pawl_error log_error; /* what is wrong with the log; PAWL_OK: nothing */
    struct pawl__prng random;
    pawl_sequencer_status status; /* counts and the last error */
    int users;                    /* the handle and the threads; the last one out frees */

    struct pawl__lock joining; /* a thread is joined by one thread only; covers all below */
    bool close_timed_out;
    struct pawl__thread flusher;
    struct pawl__thread actualizer;
};

/* By the name that the header gives it. */
#define NEED_SEQUENCER(seq, reterr)                                                \
    do {                                                                           \
        if ((seq) == NULL) {                                                       \
            return pawl__fail((reterr), PAWL_INVALID, "%s: is NULL", "sequencer"); \
        }                                                                          \
    } while (0)

enum { NOBODY = 0 };
static const uint64_t THE_STORAGE = UINT64_MAX;

static int64_t from_now(const struct pawl_sequencer *seq, uint32_t ms)
{
    return pawl__monotonic_ns(seq->clock) + ms * NS_PER_MS;
}

static int64_t retry_at_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock)
{
    const struct pawl__backoff backoff = {
        .first_ns = seq->options.retry_ms * NS_PER_MS,
        .max_ns = seq->options.retry_ms * NS_PER_MS,
    };

    return from_now(seq, 0) + pawl__backoff_ns(&backoff, 1, pawl__prng_next(&seq->random));
}

static struct seq_storage_of storage_of(const struct pawl_sequencer *seq)
{
    return (struct seq_storage_of){ .storage = &seq->storage, .sequencer = seq };
}

/* --- writing --- */

static void note_failure_locked(struct pawl_sequencer *seq, const pawl_error *error)
    REQUIRES_LOCK(seq->lock)
{
    seq->status.last_error = *error;
    seq->status.flush_failures++;
}

/* Writes what waits, with the lock open meanwhile. What came in the meantime waits for the next one. */
static void write_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock)
{
    const pawl_seq_value *values = NULL;
    size_t count = 0;
    uint64_t offset = 0;
    pawl_error error = PAWL_ERROR_INIT;

    if (!pawl__seq_core_begin_write(&seq->core, &values, &count, &offset)) {
        return;
    }
    seq->writing = true;
    pawl__unlock(&seq->lock);
    pawl_status status = pawl__seq_write(storage_of(seq), values, count, offset, &error);
    pawl__lock(&seq->lock);
    seq->writing = false;
    if (status == PAWL_OK) {
        pawl__seq_core_written(&seq->core);
        seq->status.flushes++;
        seq->status.last_error = (pawl_error)PAWL_ERROR_INIT;
    } else {
        note_failure_locked(seq, &error);
        seq->retry_ns = retry_at_locked(seq);
        seq->flush_wanted = true; /* then, and not after a whole interval */
    }
    pawl__cond_broadcast(&seq->changed);
}

static void leave(struct pawl_sequencer *seq);

static void run_flusher(void *context)
{
    struct pawl_sequencer *seq = context;
    int64_t due_ns = from_now(seq, seq->options.flush_interval_ms);

    pawl__lock(&seq->lock);
    while (!seq->closing) {
        int64_t wake_ns = seq->flush_wanted ? 0 : due_ns;
        wake_ns = seq->cleaning ? INT64_MAX : MAX(wake_ns, seq->retry_ns);
        if (from_now(seq, 0) < wake_ns) {
            pawl__cond_wait_until(&seq->changed, &seq->lock, wake_ns);
            continue;
        }
        seq->flush_wanted = false;
        write_locked(seq);
        due_ns = from_now(seq, seq->options.flush_interval_ms);
    }
    /* Once more, so that the next start has no log to read; not when the last write failed, nor while the
     * log is being read, which knows better. */
    if (!seq->abandoned && !seq->cleaning && !seq->core.shared.actualizing
        && from_now(seq, 0) >= seq->retry_ns) {
        write_locked(seq);
    }
    pawl__unlock(&seq->lock);
    leave(seq);
}

static void want_flush_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock)
{
    seq->flush_wanted = true;
    pawl__cond_broadcast(&seq->changed);
}

/* --- reading the log --- */

/* Waits while too much waits to be written. */
static pawl_status batch_event(
    void *context, const pawl_seq_value *values, size_t count, uint64_t offset, pawl_error *reterr)
{
    struct pawl_sequencer *seq = context;
    pawl_status status = PAWL_BUSY;

    if (seq == NULL || (values == NULL && count > 0)) {
        return pawl__fail(
            reterr, PAWL_INVALID, "%s: is NULL", seq == NULL ? "batcher_context" : "values");
    }
    pawl__lock(&seq->lock);
    while (status == PAWL_BUSY) {
        if (seq->closing) {
            status = pawl__fail(reterr, PAWL_CANCELLED, "the sequencer is being closed");
            break;
        }
        status = pawl__seq_core_event(&seq->core, values, count, offset, reterr);
        if (status == PAWL_BUSY) {
            want_flush_locked(seq);
            pawl__cond_wait_until(
                &seq->changed, &seq->lock, from_now(seq, seq->options.batcher_delay_ms));
        }
    }
    pawl__unlock(&seq->lock);
    return status;
}

static pawl_status walk_log(struct pawl_sequencer *seq, pawl_error *reterr)
{
    uint64_t stored = 0;

    TRY(pawl__seq_read_next_offset(storage_of(seq), &stored, reterr));
    pawl__lock(&seq->lock);
    uint64_t from = pawl__seq_core_read_from(&seq->core, stored);
    pawl__unlock(&seq->lock);
    return pawl__seq_actualize(storage_of(seq), from, batch_event, seq, reterr);
}

static void finish_walk_locked(struct pawl_sequencer *seq,
                               pawl_status status,
                               const pawl_error *error) REQUIRES_LOCK(seq->lock)
{
    if (status == PAWL_OK) {
        seq->log_error = (pawl_error)PAWL_ERROR_INIT;
        seq->status.last_error = (pawl_error)PAWL_ERROR_INIT;
        seq->status.actualizations++;
        pawl__seq_core_actualized(&seq->core);
        if (seq->core.shared.filling_offset != 0) {
            seq->flush_wanted = true;
        }
        pawl__cond_broadcast(&seq->changed);
        return;
    }
    seq->status.last_error = *error;
    if (status == PAWL_CORRUPT || status == PAWL_EXHAUSTED || status == PAWL_UNSUPPORTED
        || status == PAWL_LEASE_LOST) {
        seq->log_error = *error; /* nothing that waiting would mend; a person may */
    }
    pawl__cond_broadcast(&seq->changed);
}

/* Until the log has been read to its end, however often that fails. */
static void actualize_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock)
{
    pawl_status status = PAWL_FAILED;

    while (status != PAWL_OK && !seq->closing) {
        pawl_error error = PAWL_ERROR_INIT;

        pawl__unlock(&seq->lock);
        status = walk_log(seq, &error);
        pawl__lock(&seq->lock);
        finish_walk_locked(seq, status, &error);
        int64_t retry_ns = retry_at_locked(seq);
        while (status != PAWL_OK && !seq->closing && from_now(seq, 0) < retry_ns) {
            pawl__cond_wait_until(&seq->changed, &seq->lock, retry_ns);
        }
    }
}

static void run_actualizer(void *context)
{
    struct pawl_sequencer *seq = context;

    pawl__lock(&seq->lock);
    while (!seq->closing) {
        if (!seq->actualize_wanted || seq->writing) {
            pawl__cond_wait(&seq->changed, &seq->lock);
            continue;
        }
        seq->actualize_wanted = false;
        pawl__seq_core_forget(&seq->core);
        seq->cleaning = false;
        pawl__cond_broadcast(&seq->changed); /* the flusher sleeps until it is over */
        seq->retry_ns = 0;
        actualize_locked(seq);
    }
    pawl__unlock(&seq->lock);
    leave(seq);
}

static void want_actualization_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock)
{
    seq->actualize_wanted = true;
    seq->cleaning = true;
    pawl__cond_broadcast(&seq->changed);
}

/* --- from new to free --- */

static void destroy(struct pawl_sequencer *seq)
{
    pawl__cond_done(&seq->changed);
    pawl__lock_done(&seq->lock);
    pawl__lock_done(&seq->joining);
    pawl__seq_core_done(&seq->core);
    free(seq);
}

static void leave(struct pawl_sequencer *seq)
{
    pawl__lock(&seq->lock);
    bool last = --seq->users == 0;
    pawl__unlock(&seq->lock);
    if (last) {
        destroy(seq);
    }
}

static pawl_status start_thread(struct pawl_sequencer *seq,
                                struct pawl__thread *thread,
                                const char *name,
                                void (*run)(void *context),
                                pawl_error *reterr)
{
    pawl__lock(&seq->lock);
    seq->users++;
    pawl_status status = pawl__thread_start(thread, name, run, seq, reterr);
    seq->users -= status != PAWL_OK;
    pawl__unlock(&seq->lock);
    return status;
}

static pawl_status start_threads(struct pawl_sequencer *seq, pawl_error *reterr)
{
    uint64_t seed = 0;

    TRY(pawl__random_bytes(pawl__random_real(), &seed, sizeof(seed), reterr));
    pawl__lock(&seq->lock);
    seq->random = pawl__prng_seeded(seed);
    want_actualization_locked(seq);
    pawl__unlock(&seq->lock);
    TRY(start_thread(seq, &seq->flusher, "seq-flusher", run_flusher, reterr));
    TRY(start_thread(seq, &seq->actualizer, "seq-actualizer", run_actualizer, reterr));
    return PAWL_OK;
}

static pawl_status check_storage(const pawl_seq_storage *storage, pawl_error *reterr)
{
    const struct {
        const char *name;
        bool there;
    } calls[] = {
        { "read_numbers", storage->read_numbers != NULL },
        { "read_next_offset", storage->read_next_offset != NULL },
        { "write", storage->write != NULL },
        { "actualize", storage->actualize != NULL },
    };

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        if (!calls[i].there) {
            return pawl__fail(reterr, PAWL_INVALID, "storage: %s is NULL", calls[i].name);
        }
    }
    return PAWL_OK;
}

pawl_status pawl_sequencer_new(const pawl_sequencer_options *options,
                               pawl_sequencer **ret_sequencer,
                               pawl_error *reterr)
{
    NEED(options, reterr);
    NEED(ret_sequencer, reterr);
    if (options->size != sizeof(*options)) {
        return pawl__fail(reterr,
                          PAWL_INVALID,
                          "options: begin with PAWL_SEQUENCER_OPTIONS_INIT of this version");
    }
    struct pawl_sequencer *seq = calloc(1, sizeof(*seq));
    if (seq == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a sequencer");
    }
    pawl_status status = pawl__seq_core_init(&seq->core, options, reterr);
    if (status == PAWL_OK) {
        status = check_storage(options->storage, reterr);
    }
    if (status != PAWL_OK) {
        pawl__seq_core_done(&seq->core);
        free(seq);
        return status;
    }
    pawl__lock_cond_init(&seq->lock, &seq->changed);
    pawl__lock_init(&seq->joining);
    seq->storage = *options->storage;
    seq->options = *options;
    seq->options.types = NULL;
    seq->options.storage = NULL;
    seq->users = 1;
    seq->clock = pawl__clock_or_real(NULL);
    status = start_threads(seq, reterr);
    if (status != PAWL_OK) {
        pawl_sequencer_free(seq);
        return status;
    }
    *ret_sequencer = seq;
    return PAWL_OK;
}

bool pawl__sequencer_close_until(struct pawl_sequencer *seq, int64_t deadline_ns)
{
    if (seq == NULL) {
        return true;
    }
    atomic_store(&seq->closed, true);
    pawl__lock(&seq->lock);
    seq->closing = true;
    pawl__cond_broadcast(&seq->changed);
    pawl__unlock(&seq->lock);

    pawl__lock(&seq->joining);
    bool ended = pawl__thread_join_until(&seq->flusher, deadline_ns);
    ended = pawl__thread_join_until(&seq->actualizer, deadline_ns) && ended;
    seq->close_timed_out = !ended;
    pawl__unlock(&seq->joining);
    return ended;
}

/* What a call from within the storage would wait for is its own caller. */
static pawl_status refuse_storage(const struct pawl_sequencer *seq, pawl_error *reterr)
{
    return pawl__is_inside(seq) ? pawl__fail(
               reterr, PAWL_WRONG_THREAD, "called from within the sequencer's own storage")
                                : PAWL_OK;
}

pawl_status pawl_sequencer_close(pawl_sequencer *seq, pawl_error *reterr)
{
    NEED_SEQUENCER(seq, reterr);
    TRY(refuse_storage(seq, reterr));
    return pawl__sequencer_close_until(seq, from_now(seq, seq->options.close_ms_max))
               ? PAWL_OK
               : pawl__fail(reterr,
                            PAWL_TIMEOUT,
                            "the storage did not come back within %" PRIu32 " ms",
                            seq->options.close_ms_max);
}

bool pawl__sequencer_end(pawl_sequencer *seq, int64_t deadline_ns)
{
    if (seq == NULL) {
        return true;
    }
    bool ended = pawl__sequencer_close_until(seq, deadline_ns);
    pawl__lock(&seq->lock);
    seq->abandoned = !ended;
    pawl__unlock(&seq->lock);
    if (!ended && seq->flusher.started) {
        pthread_detach(seq->flusher.id);
    }
    if (!ended && seq->actualizer.started) {
        pthread_detach(seq->actualizer.id);
    }
    leave(seq);
    return ended;
}

void pawl_sequencer_free(pawl_sequencer *seq)
{
    if (seq != NULL) {
        /* Whoever has waited for it in vain does not wait twice, and its storage never for itself. */
        pawl__lock(&seq->joining);
        bool waits = !seq->close_timed_out && !pawl__is_inside(seq);
        uint32_t ms = waits ? seq->options.close_ms_max : 0;
        pawl__unlock(&seq->joining);
        (void)!pawl__sequencer_end(seq, from_now(seq, ms));
    }
}

/* --- transactions --- */

static pawl_status fail_closed(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_CLOSED, "the sequencer is closed");
}

static pawl_status fail_thread(const struct pawl_sequencer *seq, pawl_error *reterr)
{
    TRY(refuse_storage(seq, reterr));
    return pawl__fail(reterr, PAWL_WRONG_THREAD, "the transaction of another thread is open");
}

/* Whether this thread's transaction is open. */
static inline pawl_status check_owner(struct pawl_sequencer *seq, pawl_error *reterr)
{
    uint64_t owner = atomic_load_explicit(&seq->owner, memory_order_acquire);

    if (atomic_load_explicit(&seq->closed, memory_order_relaxed)) {
        return fail_closed(reterr);
    }
    if (owner == pawl__thread_number()) {
        return PAWL_OK;
    }
    return owner == NOBODY ? pawl__fail(reterr, PAWL_NO_TRANSACTION, "no transaction is open")
                           : fail_thread(seq, reterr);
}

static pawl_status start_locked(struct pawl_sequencer *seq,
                                uint16_t kind,
                                uint64_t workspace,
                                uint64_t *ret_offset,
                                pawl_error *reterr) REQUIRES_LOCK(seq->lock)
{
    if (seq->log_error.status != PAWL_OK) {
        if (reterr != NULL) {
            *reterr = seq->log_error;
        }
        return seq->log_error.status;
    }
    pawl_status status = pawl__seq_core_start(&seq->core, kind, workspace, ret_offset, reterr);
    if (status == PAWL_BUSY) {
        want_flush_locked(seq);
    }
    return status;
}

pawl_status pawl_sequencer_start(pawl_sequencer *seq,
                                 uint16_t kind,
                                 uint64_t workspace,
                                 uint64_t *ret_offset,
                                 pawl_error *reterr)
{
    uint64_t mine = pawl__thread_number();
    uint_fast64_t owner = NOBODY;

    NEED_SEQUENCER(seq, reterr);
    NEED(ret_offset, reterr);
    pawl_status status = refuse_storage(seq, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    if (atomic_load(&seq->closed)) {
        return fail_closed(reterr);
    }
    if (!atomic_compare_exchange_strong(&seq->owner, &owner, mine)) {
        return owner == mine
                   ? pawl__fail(reterr, PAWL_TRANSACTION_OPEN, "a transaction is open already")
                   : fail_thread(seq, reterr);
    }
    pawl__lock(&seq->lock);
    status = start_locked(seq, kind, workspace, ret_offset, reterr);
    pawl__unlock(&seq->lock);
    if (status == PAWL_OK) {
        pawl__seq_core_fetch(&seq->core);
    } else {
        atomic_store_explicit(&seq->owner, NOBODY, memory_order_release);
    }
    return status;
}

pawl_status pawl_sequencer_also(pawl_sequencer *seq,
                                uint16_t kind,
                                uint64_t workspace,
                                uint64_t *ret_offset,
                                pawl_error *reterr)
{
    NEED_SEQUENCER(seq, reterr);
    NEED(ret_offset, reterr);
    pawl_status status = check_owner(seq, reterr);
    if (status != PAWL_OK) {
        return status;
    }
    pawl__lock(&seq->lock);
    status = pawl__seq_core_also(&seq->core, kind, workspace, ret_offset, reterr);
    if (status == PAWL_BUSY) {
        want_flush_locked(seq);
    }
    pawl__unlock(&seq->lock);
    return status;
}

/* A storage that does not answer in time is busy: nothing was given out, and the same call may
 * succeed later. */
static pawl_status read_numbers(struct pawl_sequencer *seq, uint16_t wanted, pawl_error *reterr)
{
    struct seq_core *core = &seq->core;
    const struct seq_kind *kind = core->transaction.kind;

    pawl__lock(&seq->lock);
    seq->users++; /* the storage may free the sequencer */
    pawl__seq_core_read_pending(core, core->pending);
    pawl__unlock(&seq->lock);
    atomic_store_explicit(&seq->owner, THE_STORAGE, memory_order_relaxed);
    pawl_status status = pawl__seq_read_numbers(storage_of(seq),
                                                core->transaction.workspace,
                                                kind->sequences,
                                                kind->count,
                                                from_now(seq, seq->options.read_ms_max),
                                                core->stored,
                                                reterr);
    atomic_store_explicit(&seq->owner, pawl__thread_number(), memory_order_relaxed);
    if (atomic_load(&seq->closed)) {
        return fail_closed(reterr);
    }
    if (status == PAWL_OK) {
        pawl__seq_core_supply(core, wanted, core->pending, core->stored);
        return PAWL_OK;
    }
    if (status == PAWL_TIMEOUT || status == PAWL_UNAVAILABLE) {
        status = PAWL_BUSY;
    }
    return pawl__fail_context(
        reterr, status, "read the numbers of workspace %" PRIu64, core->transaction.workspace);
}

static pawl_status next_from_storage(struct pawl_sequencer *seq,
                                     uint16_t sequence,
                                     uint64_t *ret_number,
                                     pawl_error *reterr)
{
    bool known = false;
    pawl_status status = read_numbers(seq, sequence, reterr);

    if (status == PAWL_OK) {
        status = pawl__seq_core_next(&seq->core, sequence, &known, ret_number, reterr);
    }
    leave(seq);
    return status;
}

pawl_status pawl_sequencer_next(pawl_sequencer *seq,
                                uint16_t sequence,
                                uint64_t *ret_number,
                                pawl_error *reterr)
{
    bool known = false;

    NEED_SEQUENCER(seq, reterr);
    NEED(ret_number, reterr);
    TRY(check_owner(seq, reterr));
    TRY(pawl__seq_core_next(&seq->core, sequence, &known, ret_number, reterr));
    if (known) {
        seq->core.hits++;
        return PAWL_OK;
    }
    return next_from_storage(seq, sequence, ret_number, reterr);
}

static void publish_counts_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock)
{
    seq->status.misses = seq->core.misses;
    seq->status.hits = seq->core.hits;
}

pawl_status pawl_sequencer_drop(pawl_sequencer *seq, pawl_error *reterr)
{
    NEED_SEQUENCER(seq, reterr);
    pawl_status status = check_owner(seq, reterr);

    if (status != PAWL_OK || pawl__seq_core_drop(&seq->core)) {
        return status;
    }
    pawl__lock(&seq->lock);
    publish_counts_locked(seq);
    pawl__unlock(&seq->lock);
    atomic_store_explicit(&seq->owner, NOBODY, memory_order_release);
    return PAWL_OK;
}

pawl_status pawl_sequencer_flush(pawl_sequencer *seq, pawl_error *reterr)
{
    bool forgotten = false;

    NEED_SEQUENCER(seq, reterr);
    TRY(check_owner(seq, reterr));
    pawl__lock(&seq->lock);
    if (pawl__seq_core_flush(&seq->core, &forgotten)) {
        want_flush_locked(seq);
    }
    if (forgotten) {
        pawl__seq_core_actualize(&seq->core);
        want_actualization_locked(seq);
    }
    publish_counts_locked(seq);
    pawl__unlock(&seq->lock);
    atomic_store_explicit(&seq->owner, NOBODY, memory_order_release);
    return PAWL_OK;
}

pawl_status pawl_sequencer_actualize(pawl_sequencer *seq, pawl_error *reterr)
{
    NEED_SEQUENCER(seq, reterr);
    TRY(check_owner(seq, reterr));
    pawl__lock(&seq->lock);
    pawl__seq_core_actualize(&seq->core);
    publish_counts_locked(seq);
    want_actualization_locked(seq);
    pawl__unlock(&seq->lock);
    atomic_store_explicit(&seq->owner, NOBODY, memory_order_release);
    return PAWL_OK;
}

/* --- looking --- */

void pawl_sequencer_get_status(pawl_sequencer *seq, pawl_sequencer_status *ret_status)
{
    if (seq == NULL || ret_status == NULL) {
        return;
    }
    pawl__lock(&seq->lock);
    *ret_status = seq->status;
    ret_status->next_offset = seq->core.shared.next_offset;
    ret_status->stored_offset = seq->core.shared.stored_offset;
    ret_status->actualizing = seq->core.shared.actualizing;
    ret_status->unflushed = pawl__seq_core_unflushed(&seq->core);
    pawl__unlock(&seq->lock);
}

/* `writes`: also while too much waits to be written, which the flusher is told. */
static bool waits_locked(struct pawl_sequencer *seq, bool writes) REQUIRES_LOCK(seq->lock)
{
    if (seq->core.shared.actualizing) {
        return true;
    }
    bool full = writes && pawl__seq_core_unflushed(&seq->core) > seq->core.unflushed_max;
    if (full && !seq->flush_wanted) {
        want_flush_locked(seq);
    }
    return full;
}

static pawl_status wait_for(pawl_sequencer *seq,
                            bool writes,
                            uint32_t timeout_ms,
                            pawl_error *reterr)
{
    int64_t deadline_ns = from_now(seq, timeout_ms);
    pawl_status status = PAWL_OK;

    pawl__lock(&seq->lock);
    while (!seq->closing && seq->log_error.status == PAWL_OK && waits_locked(seq, writes)
           && pawl__cond_wait_until(&seq->changed, &seq->lock, deadline_ns)) {
    }
    if (seq->closing) {
        status = fail_closed(reterr);
    } else if (seq->log_error.status != PAWL_OK) {
        status = pawl__fail(reterr, seq->log_error.status, "%s", seq->log_error.message);
    } else if (waits_locked(seq, writes)) {
        status = pawl__fail(reterr,
                            PAWL_TIMEOUT,
                            "not %s within %" PRIu32 " ms",
                            seq->core.shared.actualizing ? "actualized" : "written",
                            timeout_ms);
    }
    pawl__unlock(&seq->lock);
    return status;
}

pawl_status pawl_sequencer_wait(pawl_sequencer *seq, uint32_t timeout_ms, pawl_error *reterr)
{
    NEED_SEQUENCER(seq, reterr);
    TRY(refuse_storage(seq, reterr));
    return wait_for(seq, false, timeout_ms, reterr);
}

pawl_status pawl__sequencer_await(pawl_sequencer *seq, uint32_t timeout_ms, pawl_error *reterr)
{
    return wait_for(seq, true, timeout_ms, reterr);
}
