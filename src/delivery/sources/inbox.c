#include "delivery/sources/inbox.h"

#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/grow.h"

/* Places of this source mean nothing to anybody else: all are of one stream that never changes. 0 is unknown. */
enum { CREATED = 1, STORED = 1 };

/* A message that was fetched and not answered. */
struct handed {
    uint64_t sequence;
    struct delivery_submission *submission; /* NULL: answered */
    size_t index;
};

struct inbox_source {
    struct delivery_source base;
    struct delivery_inbox *inbox;
    struct pawl__cancel *cancel;
    struct pawl__cancel_link cancel_link;
    struct pawl__clock *clock;
    struct handed *handed; /* [first, count), ascending */
    size_t first;
    size_t count;
    size_t room;
    struct delivery_message *batch;
    size_t batch_room;
    uint64_t probed; /* the highest place that we were asked about: it was given once */
    uint64_t last;   /* the highest that was given */
    bool is_placed;
};

static struct inbox_source *as_inbox(struct delivery_source *source)
{
    return (struct inbox_source *)source; /* base is its first member */
}

void pawl__delivery_inbox_init(struct delivery_inbox *inbox)
{
    *inbox = (struct delivery_inbox){ .is_open = false };
    pawl__lock_cond_init(&inbox->lock, &inbox->changed);
}

void pawl__delivery_inbox_done(struct delivery_inbox *inbox)
{
    REQUIRE(inbox->first == NULL);
    pawl__lock_cond_done(&inbox->lock, &inbox->changed);
}

/* --- handing in --- */

static size_t bytes_of(const struct delivery_submission *submission)
{
    size_t bytes = 0;

    for (size_t i = 0; i < submission->count; i++) {
        bytes += submission->messages[i].payload.len;
    }
    return bytes;
}

static pawl_status check_room_locked(const struct delivery_inbox *inbox,
                                     const struct delivery_submission *submission,
                                     pawl_error *reterr) REQUIRES_LOCK(inbox->lock)
{
    if (!inbox->is_open) {
        return pawl__fail(reterr, PAWL_UNAVAILABLE, "the pipeline does not run");
    }
    /* One that is larger than the limit by itself is taken when nothing else waits. */
    bool is_full = inbox->events > 0
                   && (inbox->events + submission->count > DELIVERY_INBOX_EVENTS_MAX
                       || inbox->bytes + submission->bytes > DELIVERY_INBOX_BYTES_MAX);
    return is_full ? pawl__fail(reterr,
                                PAWL_BUSY,
                                "%zu events wait to be written; send yours again later",
                                inbox->events)
                   : PAWL_OK;
}

pawl_status pawl__delivery_inbox_submit(struct delivery_inbox *inbox,
                                        struct delivery_submission *submission,
                                        pawl_error *reterr)
{
    REQUIRE(submission->count > 0);
    submission->bytes = bytes_of(submission);
    submission->error = (pawl_error)PAWL_ERROR_INIT;
    pawl__lock(&inbox->lock);
    pawl_status status = check_room_locked(inbox, submission, reterr);
    if (status == PAWL_OK) {
        if (inbox->last == NULL) {
            inbox->first = submission;
        } else {
            inbox->last->next = submission;
        }
        inbox->last = submission;
        inbox->events += submission->count;
        inbox->bytes += submission->bytes;
        pawl__cond_broadcast(&inbox->changed);
    }
    pawl__unlock(&inbox->lock);
    return status;
}

static void end(struct delivery_submission *submission)
{
    pawl_error error = submission->error;

    submission->done(submission, &error);
}

/* So many of its events have an answer more; the first error is that of the call. */
static void answer(struct delivery_submission *submission, size_t count, const pawl_error *error)
{
    if (error != NULL && submission->error.status == PAWL_OK) {
        submission->error = *error;
    }
    submission->answered += count;
    if (submission->answered == submission->count) {
        end(submission);
    }
}

static struct delivery_submission *pop_locked(struct delivery_inbox *inbox)
    REQUIRES_LOCK(inbox->lock)
{
    struct delivery_submission *submission = inbox->first;

    inbox->first = submission->next;
    inbox->last = inbox->first == NULL ? NULL : inbox->last;
    submission->next = NULL;
    return submission;
}

/* What is queued is cut off under the lock, and answered after it: `done` may hand in something new. */
static void refuse(struct delivery_inbox *inbox, bool closes, const pawl_error *error)
{
    pawl__lock(&inbox->lock);
    struct delivery_submission *next = inbox->first;
    inbox->first = NULL;
    inbox->last = NULL;
    inbox->events = 0;
    inbox->bytes = 0;
    inbox->is_open = inbox->is_open && !closes;
    pawl__unlock(&inbox->lock);
    while (next != NULL) {
        struct delivery_submission *submission = next;
        next = submission->next;
        submission->next = NULL;
        answer(submission, submission->count - submission->fetched, error);
    }
}

void pawl__delivery_inbox_refuse(struct delivery_inbox *inbox, const pawl_error *error)
{
    refuse(inbox, false, error);
}

/* --- fetch --- */

static void answer_all(struct inbox_source *source,
                       const struct delivery_message *messages,
                       size_t count,
                       const pawl_error *error);

static void wake(void *context)
{
    struct delivery_inbox *inbox = context;

    pawl__lock(&inbox->lock);
    pawl__cond_broadcast(&inbox->changed);
    pawl__unlock(&inbox->lock);
}

static pawl_status add_handed(struct inbox_source *source,
                              size_t in_batch,
                              struct delivery_submission *submission,
                              pawl_error *reterr)
{
    struct handed *handed =
        pawl__grow(source->handed, source->count, &source->room, sizeof(*handed));
    TRY(pawl__check_memory(handed, "a batch", reterr));
    source->handed = handed;
    struct delivery_message *batch =
        pawl__grow(source->batch, in_batch, &source->batch_room, sizeof(*batch));
    TRY(pawl__check_memory(batch, "a batch", reterr));
    source->batch = batch;

    uint64_t sequence = ++source->last;
    handed[source->count++] = (struct handed){ sequence, submission, submission->fetched };
    struct delivery_message *message = &submission->messages[submission->fetched++];
    message->place = (struct delivery_place){ CREATED, sequence, STORED };
    message->handle = sequence;
    batch[in_batch] = *message;
    return PAWL_OK;
}

static pawl_status take_locked(struct delivery_inbox *inbox,
                               struct inbox_source *source,
                               const struct delivery_fetch *limits,
                               size_t *ret_count,
                               pawl_error *reterr) REQUIRES_LOCK(inbox->lock)
{
    size_t bytes = 0;

    while (inbox->first != NULL && *ret_count < limits->messages_max && bytes < limits->bytes_max) {
        struct delivery_submission *submission = inbox->first;
        size_t len = submission->messages[submission->fetched].payload.len;

        TRY(add_handed(source, *ret_count, submission, reterr));
        ++*ret_count;
        bytes += len;
        inbox->events--;
        inbox->bytes -= len;
        if (submission->fetched == submission->count) {
            (void)pop_locked(inbox);
        }
    }
    return PAWL_OK;
}

/* Answered ones at the beginning are forgotten, so that the array does not grow for ever. */
static void forget_answered(struct inbox_source *source)
{
    while (source->first < source->count && source->handed[source->first].submission == NULL) {
        source->first++;
    }
    if (source->first == source->count) {
        source->first = 0;
        source->count = 0;
    }
}

static pawl_status fetch(struct delivery_source *base,
                         const struct delivery_fetch *limits,
                         struct delivery_batch *ret_batch,
                         pawl_error *reterr)
{
    struct inbox_source *source = as_inbox(base);
    struct delivery_inbox *inbox = source->inbox;
    int64_t until_ns = pawl__monotonic_ns(source->clock) + limits->wait_ns;
    bool in_time = limits->wait_ns > 0;
    size_t count = 0;

    forget_answered(source);
    pawl__lock(&inbox->lock);
    while (inbox->first == NULL && in_time && !pawl__cancelled(source->cancel)) {
        in_time = pawl__cond_wait_until(&inbox->changed, &inbox->lock, until_ns);
    }
    pawl_error error = PAWL_ERROR_INIT;
    pawl_status status = take_locked(inbox, source, limits, &count, &error);
    pawl__unlock(&inbox->lock);
    if (status != PAWL_OK) { /* nobody will answer for what is in no batch */
        answer_all(source, source->batch, count, &error);
        return pawl__fail_with(reterr, status, &error);
    }
    *ret_batch = (struct delivery_batch){ source->batch, count };
    return PAWL_OK;
}

/* --- answers --- */

static struct handed *find(struct inbox_source *source, uint64_t sequence)
{
    size_t low = source->first;
    size_t high = source->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (source->handed[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_there = low < source->count && source->handed[low].sequence == sequence
                    && source->handed[low].submission != NULL;
    return is_there ? &source->handed[low] : NULL;
}

static void taken(struct delivery_source *base,
                  const struct delivery_message *message,
                  enum delivery_taken how)
{
    struct handed *handed = find(as_inbox(base), message->handle);

    if (handed != NULL) {
        handed->submission->taken[handed->index] = how;
    }
}

static void answer_all(struct inbox_source *source,
                       const struct delivery_message *messages,
                       size_t count,
                       const pawl_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct handed *handed = find(source, messages[i].handle);
        if (handed != NULL) {
            answer(STEAL(handed->submission), 1, error);
        }
    }
}

static pawl_status ack(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       pawl_error *reterr)
{
    (void)reterr;
    answer_all(as_inbox(base), messages, count, NULL);
    return PAWL_OK;
}

/* Nobody but the caller can deliver it again. */
static pawl_status nak(struct delivery_source *base,
                       const struct delivery_message *messages,
                       size_t count,
                       int64_t delay_ns,
                       pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;

    (void)reterr;
    (void)delay_ns;
    (void)pawl__fail(&error,
                     PAWL_UNAVAILABLE,
                     "the event could not be written down now; send it again with the same id");
    answer_all(as_inbox(base), messages, count, &error);
    return PAWL_OK;
}

/* --- state: a stream that has everything that was ever asked for --- */

static uint64_t acked_to(struct inbox_source *source)
{
    forget_answered(source);
    return source->first < source->count ? source->handed[source->first].sequence - 1
                                         : source->last;
}

static pawl_status state(struct delivery_source *base,
                         uint64_t probe,
                         struct delivery_stream_state *ret_state,
                         pawl_error *reterr)
{
    struct inbox_source *source = as_inbox(base);

    (void)reterr;
    source->probed = MAX(source->probed, probe);
    *ret_state = (struct delivery_stream_state){
        .created_ns = CREATED,
        .first = 1,
        .last = MAX(source->last, source->probed),
        .probe_found = probe > 0,
        .probe_stored_ns = STORED,
        .consumer_found = source->is_placed,
        .consumer_created_ns = CREATED,
        .delivered = source->last,
        .acked_to = source->is_placed ? acked_to(source) : 0,
    };
    return PAWL_OK;
}

/* Places of duplicates are in no store, so the floor may lie below places that were given: those are not given again. */
static pawl_status restart_at(struct delivery_source *base, uint64_t sequence, pawl_error *reterr)
{
    struct inbox_source *source = as_inbox(base);
    uint64_t before = MAX(sequence, UINT64_C(1)) - 1;

    (void)reterr;
    source->last = MAX(source->last, MAX(before, source->probed));
    source->is_placed = true;
    return PAWL_OK;
}

/* --- open and close --- */

static void close_inbox(struct delivery_source *base)
{
    struct inbox_source *source = as_inbox(base);
    pawl_error error = PAWL_ERROR_INIT;

    (void)pawl__fail(&error,
                     PAWL_UNAVAILABLE,
                     "the pipeline was stopped before it answered; send the events again");
    pawl__cancel_unlink(source->cancel, &source->cancel_link);
    refuse(source->inbox, true, &error);
    for (size_t i = source->first; i < source->count; i++) {
        if (source->handed[i].submission != NULL) {
            answer(STEAL(source->handed[i].submission), 1, &error);
        }
    }
    free(source->handed);
    free(source->batch);
    free(source);
}

pawl_status pawl__delivery_inbox_open(struct delivery_inbox *inbox,
                                      struct pawl__cancel *cancel,
                                      struct pawl__clock *clock,
                                      struct delivery_source **ret_source,
                                      pawl_error *reterr)
{
    static const struct delivery_source_ops ops = {
        .fetch = fetch,
        .ack = ack,
        .nak = nak,
        .taken = taken,
        .state = state,
        .restart_at = restart_at,
        .close = close_inbox,
    };
    struct inbox_source *source = calloc(1, sizeof(*source));

    TRY(pawl__check_memory(source, "a source", reterr));
    *source = (struct inbox_source){
        .base = { .ops = &ops, .may_skip = true }, /* duplicates */
        .inbox = inbox,
        .cancel = cancel,
        .clock = pawl__clock_or_real(clock),
    };
    pawl__cancel_link(cancel, &source->cancel_link, wake, inbox);
    pawl__lock(&inbox->lock);
    REQUIRE(!inbox->is_open);
    inbox->is_open = true;
    pawl__unlock(&inbox->lock);
    *ret_source = &source->base;
    return PAWL_OK;
}
