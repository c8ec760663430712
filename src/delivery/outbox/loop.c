#include "delivery/outbox/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/os/failpoint.h"
#include "delivery/outbox/loop_internal.h"

enum { TEXT_BYTES_MAX = 64 << 20 };

#define SYNC_NS NS_PER_S /* acknowledgements are at most so far behind on disk */

int64_t pawl__delivery_outbox_loop_now(const struct outbox_loop *loop)
{
    return pawl__monotonic_ns(loop->clock);
}

static pawl_status prepare(struct outbox_loop *loop, pawl_error *reterr)
{
    struct outbox_stats stats;

    loop->slots = calloc(OUTBOX_SUBJECTS_MAX, sizeof(*loop->slots));
    TRY(pawl__check_memory(loop->slots, "the outbox", reterr));
    TRY(loop->store->ops->stats(loop->store, &stats, reterr));
    loop->outbox = stats.outbox;
    return pawl__map_new(OUTBOX_SUBJECTS_MAX, &loop->by_subject, reterr);
}

pawl_status pawl__delivery_outbox_loop_new(struct outbox_store *store,
                                           struct outbox_broker *broker,
                                           struct pawl__clock *clock,
                                           const struct outbox_loop_options *options,
                                           struct outbox_loop **ret_loop,
                                           pawl_error *reterr)
{
    AUTO(pawl__delivery_outbox_loop_free_p) struct outbox_loop *loop = calloc(1, sizeof(*loop));

    TRY(pawl__check_memory(loop, "the outbox", reterr));
    loop->store = store;
    loop->broker = broker;
    loop->clock = clock;
    loop->options = *options;
    loop->random = pawl__prng_seeded(options->seed);
    loop->text.max = TEXT_BYTES_MAX;
    loop->rescan = true;
    loop->progress.error = (pawl_error)PAWL_ERROR_INIT;
    TRY(prepare(loop, reterr));
    *ret_loop = STEAL(loop);
    return PAWL_OK;
}

void pawl__delivery_outbox_loop_free(struct outbox_loop *loop)
{
    if (loop != NULL) {
        pawl__map_free(loop->by_subject);
        pawl__delivery_outbox_read_done(&loop->read);
        pawl__buf_done(&loop->text);
        free(loop->slots);
        free(loop);
    }
}

const struct outbox_progress *pawl__delivery_outbox_loop_progress(const struct outbox_loop *loop)
{
    return &loop->progress;
}

/* --- the link --- */

pawl_status pawl__delivery_outbox_loop_suffer(struct outbox_loop *loop,
                                              const pawl_error *error,
                                              pawl_error *reterr)
{
    if (error->status == PAWL_NOMEM) {
        return pawl__fail_with(reterr, PAWL_NOMEM, error);
    }
    loop->progress.error = *error;
    loop->link_attempts++;
    loop->wait_until_ns = pawl__delivery_outbox_loop_now(loop)
                          + pawl__backoff_ns(&loop->options.limits.backoff,
                                             loop->link_attempts,
                                             pawl__prng_next(&loop->random));
    return PAWL_OK;
}

/* Another link: what the old one knew about streams and subjects counts for nothing. */
static void begin_link(struct outbox_loop *loop, const struct outbox_link *link)
{
    loop->link = *link;
    loop->compared = false;
    for (size_t i = 0; i < loop->used; i++) {
        struct outbox_subject *state = &loop->slots[i].state;
        if (state->phase != OUTBOX_UNDER_WAY) {
            state->phase = OUTBOX_ASK;
            state->wait_until_ns = 0;
        }
    }
}

static pawl_status refresh_link(struct outbox_loop *loop, pawl_error *reterr)
{
    struct outbox_link link = { .number = 0 };
    pawl_error error = PAWL_ERROR_INIT;

    if (loop->broker->ops->link(loop->broker, &link, &error) != PAWL_OK) {
        loop->progress.connected = false;
        loop->link.number = 0;
        return pawl__delivery_outbox_loop_suffer(loop, &error, reterr);
    }
    loop->progress.connected = true;
    if (link.number != loop->link.number) {
        begin_link(loop, &link);
    }
    return PAWL_OK;
}

/* --- subjects --- */

static void free_slot(struct outbox_loop *loop, struct outbox_slot *slot)
{
    (void)pawl__map_remove(loop->by_subject, pawl_view_of(slot->subject));
    *slot = (struct outbox_slot){ .subject = "" };
}

/* A free slot, or that of a subject with nothing under way: it is found again when its turn comes. NULL: all wait
 * for answers. */
static struct outbox_slot *take_slot(struct outbox_loop *loop)
{
    if (loop->used < OUTBOX_SUBJECTS_MAX) {
        return &loop->slots[loop->used++];
    }
    for (size_t i = 0; i < OUTBOX_SUBJECTS_MAX; i++) {
        struct outbox_slot *slot = &loop->slots[loop->hand];
        loop->hand = (loop->hand + 1) % OUTBOX_SUBJECTS_MAX;
        if (slot->state.phase != OUTBOX_UNDER_WAY) {
            free_slot(loop, slot);
            return slot;
        }
    }
    return NULL;
}

static pawl_status add_subject(struct outbox_loop *loop, pawl_view subject, pawl_error *reterr)
{
    struct outbox_slot *slot = pawl__map_get(loop->by_subject, subject);

    if (slot != NULL) {
        slot->idle = false;
        return PAWL_OK;
    }
    slot = take_slot(loop);
    if (slot == NULL) {
        loop->rescan = true;
        return PAWL_OK;
    }
    TRY(pawl__map_put(loop->by_subject, subject, slot, NULL, reterr));
    snprintf(slot->subject, sizeof(slot->subject), "%.*s", VIEW_ARGS(subject));
    return PAWL_OK;
}

/* Subjects with pending entries. Only when some were added since the last time: it reads all of them. */
static pawl_status scan(struct outbox_loop *loop, pawl_error *reterr)
{
    char room[OUTBOX_SUBJECT_SIZE];
    struct pawl__buf subject = BUF_OVER(room);
    struct outbox_stats stats;
    bool found = false;

    TRY(loop->store->ops->stats(loop->store, &stats, reterr));
    if (stats.last == loop->scanned && !loop->rescan) {
        return PAWL_OK;
    }
    loop->rescan = false;
    loop->scanned = stats.last;
    TRY(loop->store->ops->next_subject(loop->store, pawl_view_of(""), &subject, &found, reterr));
    while (found) {
        TRY(add_subject(loop, pawl__buf_view(&subject), reterr));
        TRY(loop->store->ops->next_subject(
            loop->store, pawl__buf_view(&subject), &subject, &found, reterr));
    }
    return PAWL_OK;
}

/* --- asking --- */

/* The number of our entry, if this outbox sent the message whose id is in loop->text; else 0. An older copy of the
 * outbox, put back, may have given the number to another event since: the id must be that number's. */
static pawl_status find_number(struct outbox_loop *loop,
                               const struct outbox_origin *origin,
                               uint64_t *ret_number,
                               pawl_error *reterr)
{
    struct delivery_hash key;
    struct outbox_hit hit;

    TRY(pawl__delivery_given_key(pawl__buf_view(&loop->text), &key, reterr));
    TRY(loop->store->ops->lookup(loop->store, &key, 1, &hit, reterr));
    bool is_ours = origin->outbox == loop->outbox && hit.found && hit.number == origin->number;
    *ret_number = is_ours ? hit.number : 0;
    return PAWL_OK;
}

/* The stream of a subject and the last message in it. */
static pawl_status ask_broker(struct outbox_loop *loop,
                              struct outbox_slot *slot,
                              struct outbox_last *ret_last,
                              struct outbox_origin *ret_origin,
                              pawl_error *broker_error)
{
    struct outbox_broker *broker = loop->broker;
    struct outbox_stream stream;

    TRY(broker->ops->find_stream(broker, slot->subject, slot->stream, broker_error));
    TRY(broker->ops->stream(broker, slot->stream, &stream, broker_error));
    slot->created_ns = stream.created_ns;
    pawl_status status = broker->ops->get(broker,
                                          slot->stream,
                                          slot->subject,
                                          0,
                                          &loop->text,
                                          &ret_last->sequence,
                                          ret_origin,
                                          broker_error);
    ret_last->found = status == PAWL_OK;
    return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

static struct outbox_kept kept_now(const struct outbox_loop *loop,
                                   const struct outbox_slot *slot,
                                   uint64_t number,
                                   uint64_t sequence)
{
    return (struct outbox_kept){ .number = number,
                                 .sequence = sequence,
                                 .created_ns = slot->created_ns,
                                 .session = loop->link.session,
                                 .acked_ns = pawl__boot_ns(loop->clock) };
}

/* Pending entries up to `number` are in the stream, the last of them at `sequence`. */
static pawl_status keep_up_to(struct outbox_loop *loop,
                              struct outbox_slot *slot,
                              uint64_t number,
                              uint64_t sequence,
                              pawl_error *reterr)
{
    pawl_view subject = pawl_view_of(slot->subject);
    struct outbox_store *store = loop->store;
    bool found = false;

    TRY(store->ops->head(store, subject, 0, &loop->read, &found, reterr));
    while (found && loop->read.entry.number <= number) {
        struct outbox_kept kept = kept_now(loop, slot, loop->read.entry.number, sequence);
        TRY(store->ops->keep(store, pawl_view_of(slot->stream), &kept, 1, reterr));
        loop->progress.published++;
        loop->progress.duplicates++;
        TRY(store->ops->head(store, subject, kept.number + 1, &loop->read, &found, reterr));
    }
    return PAWL_OK;
}

static pawl_status wait_slot(struct outbox_loop *loop,
                             struct outbox_slot *slot,
                             const pawl_error *error,
                             pawl_error *reterr)
{
    struct outbox_answer refused = { .fate = OUTBOX_FATE_UNKNOWN };

    if (error->status == PAWL_NOMEM) {
        return pawl__fail_with(reterr, PAWL_NOMEM, error);
    }
    loop->progress.error = *error;
    pawl__delivery_outbox_answered(&slot->state,
                                   &refused,
                                   &loop->options.limits,
                                   pawl__delivery_outbox_loop_now(loop),
                                   pawl__prng_next(&loop->random));
    return PAWL_OK;
}

static pawl_status ask(struct outbox_loop *loop,
                       struct outbox_slot *slot,
                       uint64_t head,
                       pawl_error *reterr)
{
    struct outbox_last last = { .found = false };
    struct outbox_origin origin = { 0, 0 };
    pawl_error error = PAWL_ERROR_INIT;

    if (ask_broker(loop, slot, &last, &origin, &error) != PAWL_OK) {
        return wait_slot(loop, slot, &error, reterr);
    }
    if (last.found) {
        TRY(find_number(loop, &origin, &last.number, reterr));
    }
    uint64_t stored = pawl__delivery_outbox_asked(&slot->state, &last, head);
    return stored == 0 ? PAWL_OK : keep_up_to(loop, slot, stored, last.sequence, reterr);
}

/* --- sending --- */

static pawl_status fail_entry(struct outbox_loop *loop,
                              uint64_t number,
                              const char *why,
                              pawl_error *reterr)
{
    struct outbox_failed failed = { .number = number, .failed_us = pawl__wall_us(loop->clock) };

    snprintf(failed.reason, sizeof(failed.reason), "%.*s", OUTBOX_REASON_SIZE - 1, why);
    loop->progress.failed++;
    return loop->store->ops->set_aside(loop->store, &failed, reterr);
}

static pawl_status refuse_unsent(struct outbox_loop *loop,
                                 struct outbox_slot *slot,
                                 const pawl_error *error,
                                 pawl_error *reterr)
{
    uint64_t number = loop->read.entry.number;

    if (error->status != PAWL_INVALID) {
        return wait_slot(loop, slot, error, reterr);
    }
    loop->progress.error = *error;
    slot->state.from = number + 1;
    return fail_entry(loop, number, error->message, reterr);
}

/* The entry in loop->read. */
static pawl_status send_entry(struct outbox_loop *loop,
                              struct outbox_slot *slot,
                              pawl_error *reterr)
{
    const struct outbox_entry *entry = &loop->read.entry;
    char id_room[DELIVERY_TRANSACTION_ID_BYTES_MAX + 1];
    struct pawl__buf id = BUF_OVER(id_room);
    pawl_error error = PAWL_ERROR_INIT;

    pawl__delivery_outbox_add_id(entry, &id);
    TRY(pawl__buf_check(&id, "a transaction id", reterr));
    const struct outbox_outgoing message = { .token = (uint64_t)(slot - loop->slots),
                                             .origin = { loop->outbox, entry->number },
                                             .subject = slot->subject,
                                             .id = pawl__buf_view(&id),
                                             .source = entry->source,
                                             .event_id = entry->event_id,
                                             .sequence = entry->sequence,
                                             .payload = entry->payload,
                                             .headers = entry->headers,
                                             .header_count = entry->header_count,
                                             .expect_last = !slot->state.shared,
                                             .last_sequence = slot->state.last_sequence };
    FAILPOINT("delivery.outbox.send.before", reterr);
    if (loop->broker->ops->send(loop->broker, &message, &error) != PAWL_OK) {
        return refuse_unsent(loop, slot, &error, reterr);
    }
    FAILPOINT("delivery.outbox.send.after", reterr);
    pawl__delivery_outbox_sent(&slot->state, entry->number);
    loop->under_way++;
    return PAWL_OK;
}

static pawl_status feed(struct outbox_loop *loop, struct outbox_slot *slot, pawl_error *reterr)
{
    struct outbox_store *store = loop->store;
    pawl_view subject = pawl_view_of(slot->subject);
    bool found = false;

    TRY(store->ops->head(store, subject, slot->state.from, &loop->read, &found, reterr));
    if (found && slot->state.phase == OUTBOX_ASK) {
        TRY(ask(loop, slot, loop->read.entry.number, reterr));
        TRY(store->ops->head(store, subject, slot->state.from, &loop->read, &found, reterr));
    }
    slot->idle = !found;
    return found && slot->state.phase == OUTBOX_READY ? send_entry(loop, slot, reterr) : PAWL_OK;
}

static pawl_status feed_all(struct outbox_loop *loop, pawl_error *reterr)
{
    TRY(scan(loop, reterr));
    for (size_t i = 0; i < loop->used; i++) {
        struct outbox_slot *slot = &loop->slots[i];
        if (slot->subject[0] != '\0' && !slot->idle && slot->state.phase != OUTBOX_UNDER_WAY
            && slot->state.wait_until_ns <= pawl__delivery_outbox_loop_now(loop)) {
            TRY(feed(loop, slot, reterr));
        }
    }
    return PAWL_OK;
}

/* --- answers --- */

static pawl_status take_answer(struct outbox_loop *loop,
                               const struct outbox_answer *answer,
                               pawl_error *reterr)
{
    struct outbox_slot *slot = &loop->slots[answer->token];
    uint64_t number = slot->state.number;
    struct outbox_kept kept = kept_now(loop, slot, number, answer->sequence);

    loop->under_way--;
    if (answer->fate != OUTBOX_FATE_STORED) {
        pawl__fail(&loop->progress.error,
                   answer->status,
                   "publish to '%s': %s",
                   slot->subject,
                   answer->why);
    }
    switch (pawl__delivery_outbox_answered(&slot->state,
                                           answer,
                                           &loop->options.limits,
                                           pawl__delivery_outbox_loop_now(loop),
                                           pawl__prng_next(&loop->random))) {
    case OUTBOX_STORED:
        loop->progress.published++;
        loop->progress.duplicates += answer->duplicate;
        loop->progress.error = (pawl_error)PAWL_ERROR_INIT;
        return loop->store->ops->keep(loop->store, pawl_view_of(slot->stream), &kept, 1, reterr);
    case OUTBOX_CHECK:
        loop->compared = false;
        return PAWL_OK;
    case OUTBOX_FAIL:
        return fail_entry(loop, number, answer->why, reterr);
    case OUTBOX_AGAIN:
        return PAWL_OK;
    }
    return PAWL_OK;
}

static pawl_status collect(struct outbox_loop *loop, int wait_ms, pawl_error *reterr)
{
    pawl_error error = PAWL_ERROR_INIT;
    size_t count = 0;

    if (loop->under_way == 0) {
        return PAWL_OK;
    }
    if (loop->broker->ops->collect(
            loop->broker, wait_ms, loop->answers, OUTBOX_ANSWERS_MAX, &count, &error)
        != PAWL_OK) {
        return pawl__delivery_outbox_loop_suffer(loop, &error, reterr);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(take_answer(loop, &loop->answers[i], reterr));
    }
    return PAWL_OK;
}

/* --- steps --- */

static pawl_status compare(struct outbox_loop *loop, pawl_error *reterr)
{
    int64_t now_ns = pawl__delivery_outbox_loop_now(loop);
    bool done = false;

    TRY(pawl__delivery_outbox_loop_compare(loop, &done, reterr));
    if (done) {
        loop->compared = true;
        loop->link_attempts = 0;
        loop->check_at_ns = now_ns + loop->options.check_ns;
    }
    return PAWL_OK;
}

static pawl_status maintain(struct outbox_loop *loop, pawl_error *reterr)
{
    int64_t now_ns = pawl__delivery_outbox_loop_now(loop);
    bool done = false;

    if (now_ns >= loop->sync_at_ns) {
        TRY(loop->store->ops->sync(loop->store, reterr));
        loop->sync_at_ns = now_ns + SYNC_NS;
    }
    if (now_ns < loop->check_at_ns || !loop->compared) {
        return PAWL_OK;
    }
    TRY(compare(loop, reterr));
    TRY(loop->compared ? pawl__delivery_outbox_loop_forget(loop, &done, reterr) : PAWL_OK);
    return PAWL_OK;
}

pawl_status pawl__delivery_outbox_loop_step(struct outbox_loop *loop,
                                            int wait_ms,
                                            pawl_error *reterr)
{
    if (loop->under_way == 0 && pawl__delivery_outbox_loop_now(loop) < loop->wait_until_ns) {
        return PAWL_OK;
    }
    TRY(refresh_link(loop, reterr));
    if (loop->link.number == 0) {
        return collect(loop, 0, reterr); /* what was under way is unanswered */
    }
    /* Nothing new goes out before the answers of an old link are in and the streams are compared. */
    if (!loop->compared && loop->under_way == 0) {
        TRY(compare(loop, reterr));
    }
    if (loop->compared) {
        TRY(feed_all(loop, reterr));
    }
    TRY(collect(loop, wait_ms, reterr));
    return maintain(loop, reterr);
}

void pawl__delivery_outbox_loop_hurry(struct outbox_loop *loop)
{
    loop->wait_until_ns = 0;
    loop->check_at_ns = 0;
    for (size_t i = 0; i < loop->used; i++) {
        loop->slots[i].state.wait_until_ns = 0;
        loop->slots[i].state.from = 0;
    }
    loop->rescan = true;
}

int64_t pawl__delivery_outbox_loop_due_ns(const struct outbox_loop *loop)
{
    if (loop->link.number == 0 || !loop->compared) {
        return loop->wait_until_ns;
    }
    int64_t due_ns = loop->under_way > 0 || loop->rescan ? 0 : loop->check_at_ns;
    for (size_t i = 0; i < loop->used; i++) {
        const struct outbox_slot *slot = &loop->slots[i];
        if (slot->subject[0] != '\0' && !slot->idle) {
            due_ns = MIN(due_ns, slot->state.wait_until_ns);
        }
    }
    return due_ns;
}
