/* The two threads of a sequencer: one writes numbers, the other reads the log. */
#include "base/core/error.h"
#include "base/decide/backoff.h"
#include "sequencer/handle.h"

static int64_t retry_at_locked(struct pawl_sequencer *seq) REQUIRES_LOCK(seq->lock)
{
    const struct pawl__backoff backoff = {
        .first_ns = seq->options.retry_ms * NS_PER_MS,
        .max_ns = seq->options.retry_ms * NS_PER_MS,
    };

    return pawl__seq_from_now(seq, 0)
           + pawl__backoff_ns(&backoff, 1, pawl__prng_next(&seq->random));
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
    pawl_status status = pawl__seq_write(pawl__seq_storage_of(seq), values, count, offset, &error);
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

static void run_flusher(void *context)
{
    struct pawl_sequencer *seq = context;
    int64_t due_ns = pawl__seq_from_now(seq, seq->options.flush_interval_ms);

    pawl__lock(&seq->lock);
    while (!seq->closing) {
        int64_t wake_ns = seq->flush_wanted ? 0 : due_ns;
        wake_ns = seq->cleaning ? INT64_MAX : MAX(wake_ns, seq->retry_ns);
        if (pawl__seq_from_now(seq, 0) < wake_ns) {
            pawl__cond_wait_on(seq->clock, &seq->changed, &seq->lock, wake_ns);
            continue;
        }
        seq->flush_wanted = false;
        write_locked(seq);
        due_ns = pawl__seq_from_now(seq, seq->options.flush_interval_ms);
    }
    /* Once more, so that the next start has no log to read; not when the last write failed, nor while the
     * log is being read, which knows better. */
    if (!seq->abandoned && !seq->cleaning && !seq->core.shared.actualizing
        && pawl__seq_from_now(seq, 0) >= seq->retry_ns) {
        write_locked(seq);
    }
    pawl__unlock(&seq->lock);
    pawl__seq_leave(seq);
}

void pawl__seq_want_flush_locked(struct pawl_sequencer *seq)
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
            pawl__seq_want_flush_locked(seq);
            pawl__cond_wait_until(
                &seq->changed, &seq->lock, pawl__seq_deadline(seq, seq->options.batcher_delay_ms));
        }
    }
    pawl__unlock(&seq->lock);
    return status;
}

static pawl_status walk_log(struct pawl_sequencer *seq, pawl_error *reterr)
{
    uint64_t stored = 0;

    TRY(pawl__seq_read_next_offset(pawl__seq_storage_of(seq), &stored, reterr));
    pawl__lock(&seq->lock);
    uint64_t from = pawl__seq_core_read_from(&seq->core, stored);
    pawl__unlock(&seq->lock);
    return pawl__seq_actualize(pawl__seq_storage_of(seq), from, batch_event, seq, reterr);
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
    if (status == PAWL_CORRUPT || error->detail == PAWL_DETAIL_EXHAUSTED
        || status == PAWL_UNSUPPORTED || status == PAWL_LEASE_LOST) {
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
        while (status != PAWL_OK && !seq->closing && pawl__seq_from_now(seq, 0) < retry_ns) {
            pawl__cond_wait_on(seq->clock, &seq->changed, &seq->lock, retry_ns);
        }
    }
}

static void run_actualizer(void *context)
{
    struct pawl_sequencer *seq = context;

    pawl__lock(&seq->lock);
    while (!seq->closing) {
        if (!seq->actualize_wanted || seq->writing) {
            pawl__cond_wait_on(seq->clock, &seq->changed, &seq->lock, INT64_MAX);
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
    pawl__seq_leave(seq);
}

void pawl__seq_want_actualization_locked(struct pawl_sequencer *seq)
{
    seq->actualize_wanted = true;
    seq->cleaning = true;
    pawl__cond_broadcast(&seq->changed);
}

/* --- both threads --- */

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

pawl_status pawl__seq_start_threads(struct pawl_sequencer *seq, pawl_error *reterr)
{
    uint64_t seed = 0;

    TRY(pawl__random_bytes(pawl__random_real(), &seed, sizeof(seed), reterr));
    pawl__lock(&seq->lock);
    seq->random = pawl__prng_seeded(seed);
    pawl__seq_want_actualization_locked(seq);
    pawl__unlock(&seq->lock);
    TRY(start_thread(seq, &seq->flusher, "seq-flusher", run_flusher, reterr));
    TRY(start_thread(seq, &seq->actualizer, "seq-actualizer", run_actualizer, reterr));
    return PAWL_OK;
}
