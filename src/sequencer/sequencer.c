/* The public calls: a lock around the core (core.h), beside the threads of background.c. */
#include <pawl/sequencer.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/core/argument.h"
#include "base/core/error.h"
#include "base/core/sized.h"
#include "base/thread/inside.h"
#include "sequencer/handle.h"

/* By the name that the header gives it. */
#define NEED_SEQUENCER(seq, reterr)                                                \
    do {                                                                           \
        if ((seq) == NULL) {                                                       \
            return pawl__fail((reterr), PAWL_INVALID, "%s: is NULL", "sequencer"); \
        }                                                                          \
    } while (0)

enum { NOBODY = 0 };
static const uint64_t THE_STORAGE = UINT64_MAX;

/* --- from new to free --- */

static void destroy(struct pawl_sequencer *seq)
{
    pawl__cond_done(&seq->changed);
    pawl__lock_done(&seq->lock);
    pawl__lock_done(&seq->joining);
    pawl__seq_core_done(&seq->core);
    free(seq);
}

void pawl__seq_leave(struct pawl_sequencer *seq)
{
    pawl__lock(&seq->lock);
    bool last = --seq->users == 0;
    pawl__unlock(&seq->lock);
    if (last) {
        destroy(seq);
    }
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

/* What a caller of an older version gives becomes that of this one; `arena` holds its types. */
static pawl_status take_options(const pawl_sequencer_options *given,
                                pawl_sequencer_options *options,
                                pawl_seq_storage *storage,
                                struct pawl__arena *arena,
                                pawl_error *reterr)
{
    static const pawl_seq_type type = PAWL_SEQ_TYPE_INIT;

    TRY(pawl__take_sized("options", given, options, sizeof(*options), reterr));
    TRY(pawl__take_sized("storage", options->storage, storage, sizeof(*storage), reterr));
    options->storage = options->storage == NULL ? NULL : storage;
    const void *types = options->types;
    if (types != NULL && options->type_count <= SEQ_TYPES_MAX) {
        TRY(pawl__widen_sized(
            "types", &types, options->type_count, &type, sizeof(type), arena, reterr));
    }
    options->types = types;
    return PAWL_OK;
}

pawl_status pawl__sequencer_new_at(const pawl_sequencer_options *options,
                                   struct pawl__clock *clock,
                                   pawl_sequencer **ret_sequencer,
                                   pawl_error *reterr)
{
    NEED(options, ret_sequencer, reterr);
    pawl_sequencer_options whole = PAWL_SEQUENCER_OPTIONS_INIT;
    pawl_seq_storage storage = PAWL_SEQ_STORAGE_INIT;
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    TRY(take_options(options, &whole, &storage, &arena, reterr));
    options = &whole;
    struct pawl_sequencer *seq = calloc(1, sizeof(*seq));
    if (seq == NULL) {
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a sequencer");
    }
    pawl_status status = pawl__seq_core_init(&seq->core, options, reterr);
    status = status == PAWL_OK ? check_storage(options->storage, reterr) : status;
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
    seq->clock = pawl__clock_or_real(clock);
    seq->wait_clock = pawl__clock_or_real(NULL);
    status = pawl__seq_start_threads(seq, reterr);
    if (status != PAWL_OK) {
        pawl_sequencer_close(seq, 0, NULL);
        return status;
    }
    *ret_sequencer = seq;
    return PAWL_OK;
}

pawl_status pawl_sequencer_open(const pawl_sequencer_options *options,
                                pawl_sequencer **ret_sequencer,
                                pawl_error *reterr)
{
    return pawl__sequencer_new_at(options, NULL, ret_sequencer, reterr);
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

/* A call from within the storage would wait for its own caller. */
static pawl_status refuse_storage(const struct pawl_sequencer *seq, pawl_error *reterr)
{
    return pawl__is_inside(seq)
               ? pawl__fail_detail(reterr,
                                   PAWL_INVALID,
                                   PAWL_DETAIL_WRONG_THREAD,
                                   "called from within the sequencer's own storage")
               : PAWL_OK;
}

static uint32_t bound_of(const struct pawl_sequencer *seq, uint32_t timeout_ms)
{
    return timeout_ms == 0 ? seq->options.close_ms_max : timeout_ms;
}

static pawl_status fail_late(uint32_t ms, pawl_error *reterr)
{
    return pawl__fail(
        reterr, PAWL_TIMEOUT, "the storage did not come back within %" PRIu32 " ms", ms);
}

pawl_status pawl_sequencer_stop(pawl_sequencer *seq, uint32_t timeout_ms, pawl_error *reterr)
{
    NEED_SEQUENCER(seq, reterr);
    TRY(refuse_storage(seq, reterr));
    uint32_t ms = bound_of(seq, timeout_ms);
    return pawl__sequencer_close_until(seq, pawl__seq_deadline(seq, ms)) ? PAWL_OK
                                                                         : fail_late(ms, reterr);
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
    pawl__seq_leave(seq);
    return ended;
}

pawl_status pawl_sequencer_close(pawl_sequencer *seq, uint32_t timeout_ms, pawl_error *reterr)
{
    if (seq == NULL) {
        return PAWL_OK;
    }
    /* A caller whose stop has timed out does not wait twice, and a storage never waits for itself. */
    pawl__lock(&seq->joining);
    bool waits = !seq->close_timed_out && !pawl__is_inside(seq);
    uint32_t ms = waits ? bound_of(seq, timeout_ms) : 0;
    pawl__unlock(&seq->joining);
    return pawl__sequencer_end(seq, pawl__seq_deadline(seq, ms)) ? PAWL_OK : fail_late(ms, reterr);
}

/* --- transactions --- */

static pawl_status fail_closed(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_CLOSED, "the sequencer is closed");
}

static pawl_status fail_thread(const struct pawl_sequencer *seq, pawl_error *reterr)
{
    TRY(refuse_storage(seq, reterr));
    return pawl__fail_detail(reterr,
                             PAWL_INVALID,
                             PAWL_DETAIL_WRONG_THREAD,
                             "the transaction of another thread is open");
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
    return owner == NOBODY ? pawl__fail_detail(
               reterr, PAWL_INVALID, PAWL_DETAIL_NO_TRANSACTION, "no transaction is open")
                           : fail_thread(seq, reterr);
}

static pawl_status start_locked(struct pawl_sequencer *seq,
                                uint16_t kind,
                                uint64_t workspace,
                                uint64_t *ret_offset,
                                pawl_error *reterr) REQUIRES_LOCK(seq->lock)
{
    if (seq->log_error.status != PAWL_OK) {
        return pawl__fail_with(reterr, seq->log_error.status, &seq->log_error);
    }
    pawl_status status = pawl__seq_core_start(&seq->core, kind, workspace, ret_offset, reterr);
    if (status == PAWL_BUSY) {
        pawl__seq_want_flush_locked(seq);
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
    TRY(refuse_storage(seq, reterr));
    if (atomic_load(&seq->closed)) {
        return fail_closed(reterr);
    }
    if (!atomic_compare_exchange_strong(&seq->owner, &owner, mine)) {
        return owner == mine ? pawl__fail_detail(reterr,
                                                 PAWL_INVALID,
                                                 PAWL_DETAIL_TRANSACTION_OPEN,
                                                 "a transaction is open already")
                             : fail_thread(seq, reterr);
    }
    pawl__lock(&seq->lock);
    pawl_status status = start_locked(seq, kind, workspace, ret_offset, reterr);
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
    TRY(check_owner(seq, reterr));
    pawl__lock(&seq->lock);
    pawl_status status = pawl__seq_core_also(&seq->core, kind, workspace, ret_offset, reterr);
    if (status == PAWL_BUSY) {
        pawl__seq_want_flush_locked(seq);
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
    pawl_status status = pawl__seq_read_numbers(pawl__seq_storage_of(seq),
                                                core->transaction.workspace,
                                                kind->sequences,
                                                kind->count,
                                                pawl__seq_deadline(seq, seq->options.read_ms_max),
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
    pawl__seq_leave(seq);
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

/* Publishes the counts and lets other threads begin a transaction. */
static void end_transaction_locked(struct pawl_sequencer *seq) RELEASES_LOCK(seq->lock)
{
    seq->status.misses = seq->core.misses;
    seq->status.hits = seq->core.hits;
    pawl__unlock(&seq->lock);
    atomic_store_explicit(&seq->owner, NOBODY, memory_order_release);
}

pawl_status pawl_sequencer_drop(pawl_sequencer *seq, pawl_error *reterr)
{
    NEED_SEQUENCER(seq, reterr);
    TRY(check_owner(seq, reterr));
    if (!pawl__seq_core_drop(&seq->core)) {
        pawl__lock(&seq->lock);
        end_transaction_locked(seq);
    }
    return PAWL_OK;
}

pawl_status pawl_sequencer_flush(pawl_sequencer *seq, pawl_error *reterr)
{
    bool forgotten = false;

    NEED_SEQUENCER(seq, reterr);
    TRY(check_owner(seq, reterr));
    pawl__lock(&seq->lock);
    if (pawl__seq_core_flush(&seq->core, &forgotten)) {
        pawl__seq_want_flush_locked(seq);
    }
    if (forgotten) {
        pawl__seq_core_actualize(&seq->core);
        pawl__seq_want_actualization_locked(seq);
    }
    end_transaction_locked(seq);
    return PAWL_OK;
}

pawl_status pawl_sequencer_actualize(pawl_sequencer *seq, pawl_error *reterr)
{
    NEED_SEQUENCER(seq, reterr);
    TRY(check_owner(seq, reterr));
    pawl__lock(&seq->lock);
    pawl__seq_core_actualize(&seq->core);
    pawl__seq_want_actualization_locked(seq);
    end_transaction_locked(seq);
    return PAWL_OK;
}

/* --- status --- */

pawl_status pawl_sequencer_get_status(pawl_sequencer *seq,
                                      pawl_sequencer_status *ret_status,
                                      pawl_error *reterr)
{
    NEED(ret_status, reterr);
    NEED_SEQUENCER(seq, reterr);
    TRY(pawl__check_sized("ret_status", ret_status, reterr));
    pawl__lock(&seq->lock);
    pawl_sequencer_status status = seq->status;
    status.next_offset = seq->core.shared.next_offset;
    status.stored_offset = seq->core.shared.stored_offset;
    status.actualizing = seq->core.shared.actualizing;
    status.unflushed = pawl__seq_core_unflushed(&seq->core);
    pawl__unlock(&seq->lock);
    pawl__give_sized(&status, sizeof(status), ret_status);
    return PAWL_OK;
}

/* `writes`: also while too much waits to be written; then it wakes the flusher. */
static bool waits_locked(struct pawl_sequencer *seq, bool writes) REQUIRES_LOCK(seq->lock)
{
    if (seq->core.shared.actualizing) {
        return true;
    }
    bool full = writes && pawl__seq_core_unflushed(&seq->core) > seq->core.unflushed_max;
    if (full && !seq->flush_wanted) {
        pawl__seq_want_flush_locked(seq);
    }
    return full;
}

static pawl_status wait_for(pawl_sequencer *seq,
                            bool writes,
                            uint32_t timeout_ms,
                            pawl_error *reterr)
{
    int64_t deadline_ns = pawl__seq_deadline(seq, timeout_ms);
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
