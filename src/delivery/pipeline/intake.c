/* From the source into the WAL: fetch, identify, ask, append with one fsync, and only then acknowledge. */
#include "delivery/pipeline/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

/* The arrays of one batch, side by side; all have room for fetch.messages_max. */
struct intake {
    const struct delivery_message *messages;
    size_t count;
    struct pawl__arena arena; /* transaction ids */
    struct delivery_identity *identities;
    struct delivery_question *questions;
    enum delivery_admission *decisions;
    struct delivery_key *keys; /* for a look-up of some of them */
    struct delivery_hit *hits;
    struct delivery_known *known;
    size_t *asked; /* which messages a look-up is about */
    struct delivery_entry *entries;
    struct delivery_message *sorted; /* to acknowledge, or to deliver again */
    size_t entry_count;
};

void pawl__delivery_intake_free(struct intake *intake)
{
    if (intake == NULL) {
        return;
    }
    pawl__arena_done(&intake->arena);
    free(intake->identities);
    free(intake->questions);
    free(intake->decisions);
    free(intake->keys);
    free(intake->hits);
    free(intake->known);
    free(intake->asked);
    free(intake->entries);
    free(intake->sorted);
    free(intake);
}

static pawl_status make_room(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    size_t room = pipeline->settings.fetch.messages_max;
    struct intake *intake = pipeline->intake;

    if (intake != NULL) {
        return PAWL_OK;
    }
    intake = calloc(1, sizeof(*intake));
    TRY(pawl__check_memory(intake, "a batch", reterr));
    pipeline->intake = intake;
    intake->identities = calloc(room, sizeof(*intake->identities));
    intake->questions = calloc(room, sizeof(*intake->questions));
    intake->decisions = calloc(room, sizeof(*intake->decisions));
    intake->keys = calloc(room, sizeof(*intake->keys));
    intake->hits = calloc(room, sizeof(*intake->hits));
    intake->known = calloc(room, sizeof(*intake->known));
    intake->asked = calloc(room, sizeof(*intake->asked));
    intake->entries = calloc(room, sizeof(*intake->entries));
    intake->sorted = calloc(room, sizeof(*intake->sorted));
    if (intake->identities == NULL || intake->questions == NULL || intake->decisions == NULL
        || intake->keys == NULL || intake->hits == NULL || intake->known == NULL
        || intake->asked == NULL || intake->entries == NULL || intake->sorted == NULL) {
        pawl__delivery_intake_free(intake);
        pipeline->intake = NULL;
        return pawl__fail(reterr, PAWL_NOMEM, "no memory for a batch of %zu messages", room);
    }
    return PAWL_OK;
}

/* --- who they are --- */

static pawl_status identify(struct delivery_pipeline *pipeline, size_t i, pawl_error *reterr)
{
    struct intake *intake = pipeline->intake;
    char *room = pawl__arena_take(&intake->arena, DELIVERY_TRANSACTION_ID_BYTES_MAX + 1);

    TRY(pawl__check_memory(room, "a transaction id", reterr));
    struct pawl__buf text = { .data = room,
                              .cap = DELIVERY_TRANSACTION_ID_BYTES_MAX + 1,
                              .max = DELIVERY_TRANSACTION_ID_BYTES_MAX };
    return pawl__delivery_identify(
        &pipeline->settings.identity, &intake->messages[i], &text, &intake->identities[i], reterr);
}

static pawl_status begin_questions(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct intake *intake = pipeline->intake;
    struct delivery_wal *wal = pipeline->parts.wal;

    pawl__arena_clear(&intake->arena);
    for (size_t i = 0; i < intake->count; i++) {
        TRY(identify(pipeline, i, reterr));
        intake->keys[i] =
            (struct delivery_key){ intake->identities[i].id, intake->identities[i].payload };
        intake->questions[i] = (struct delivery_question){
            .key = intake->keys[i],
            .epoch = pipeline->meta.epoch,
            .was_rebuilt =
                pipeline->meta.epoch > 1 && intake->identities[i].kind == DELIVERY_ID_GIVEN,
            .may_be_older = pawl__delivery_position_may_know(&pipeline->shared.position,
                                                             &intake->messages[i].place),
        };
    }
    TRY(wal->ops->lookup(wal, intake->keys, intake->count, intake->hits, reterr));
    for (size_t i = 0; i < intake->count; i++) {
        intake->questions[i].hit = intake->hits[i];
    }
    return PAWL_OK;
}

/* --- asking again --- */

static size_t collect(struct intake *intake, enum delivery_admission wanted)
{
    size_t count = 0;

    for (size_t i = 0; i < intake->count; i++) {
        if (pawl__delivery_admit(&intake->questions[i]) == wanted) {
            intake->asked[count] = i;
            intake->keys[count++] = intake->questions[i].key;
        }
    }
    return count;
}

/* Where the sink does not answer, the messages stay undecided and are delivered again. */
static bool ask_sink(struct delivery_pipeline *pipeline)
{
    struct intake *intake = pipeline->intake;
    struct delivery_sink *sink = pipeline->parts.sink;
    size_t count = collect(intake, DELIVERY_ASK_SINK);

    if (count == 0
        || sink->ops->lookup(sink, intake->keys, count, intake->known, NULL) != PAWL_OK) {
        return count == 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct delivery_question *question = &intake->questions[intake->asked[i]];
        question->sink_asked = true;
        question->known = intake->known[i];
    }
    return true;
}

/* After a rebuild the index knows an id by the WAL's payload, and the sink may have it with another: which of the two
 * came first depends on what was lost. */
static bool sink_may_disagree(const struct delivery_question *question)
{
    return question->may_be_older
           || (question->was_rebuilt && pawl__delivery_hit_counts(&question->hit, question->epoch));
}

/* False: the sink does not answer. */
static bool ask_sink_of_conflict(struct delivery_pipeline *pipeline,
                                 const struct delivery_question *question,
                                 const struct delivery_key *conflict,
                                 bool *ret_known)
{
    struct delivery_sink *sink = pipeline->parts.sink;
    struct delivery_key keys[] = { question->key, *conflict };
    struct delivery_known known[COUNT_OF(keys)];

    if (sink->ops->lookup(sink, keys, COUNT_OF(keys), known, NULL) != PAWL_OK) {
        return false;
    }
    bool owns_id =
        known[0].found
        && pawl__delivery_hash_equal(&known[0].payload_hash, &question->key.payload_hash);
    *ret_known = owns_id || known[1].found;
    return true;
}

static pawl_status ask_conflict(struct delivery_pipeline *pipeline, size_t i, pawl_error *reterr)
{
    struct intake *intake = pipeline->intake;
    struct delivery_question *question = &intake->questions[i];
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_key key = { .payload_hash = question->key.payload_hash };
    struct delivery_hit hit = { .found = false };

    TRY(pawl__delivery_conflict_key(
        &question->key.key, &question->key.payload_hash, &key.key, reterr));
    if (!pawl__delivery_batch_keys_find(&pipeline->batch_keys, &key.key, question->epoch, &hit)) {
        TRY(wal->ops->lookup(wal, &key, 1, &hit, reterr));
    }
    bool is_known = pawl__delivery_hit_counts(&hit, question->epoch);
    if (!is_known && sink_may_disagree(question)
        && !ask_sink_of_conflict(pipeline, question, &key, &is_known)) {
        return PAWL_OK; /* undecided */
    }
    question->conflict_asked = true;
    question->conflict_known = is_known;
    return PAWL_OK;
}

/* --- deciding --- */

static void make_entry(struct delivery_pipeline *pipeline,
                       size_t i,
                       const struct delivery_hash *key)
{
    struct intake *intake = pipeline->intake;
    const struct delivery_message *message = &intake->messages[i];
    struct delivery_entry *entry = &intake->entries[intake->entry_count];

    pawl__delivery_entry_of(message,
                            &intake->identities[i],
                            key,
                            intake->decisions[i] == DELIVERY_ADMIT_CONFLICT,
                            entry);
    entry->lsn = pipeline->shared.next_lsn + intake->entry_count;
    entry->created_us = pawl__wall_us(pipeline->parts.clock);
    intake->entry_count++;
}

static pawl_status admit(struct delivery_pipeline *pipeline, size_t i, pawl_error *reterr)
{
    struct intake *intake = pipeline->intake;
    struct delivery_question *question = &intake->questions[i];
    struct delivery_key key = question->key;

    pawl__delivery_batch_keys_find(
        &pipeline->batch_keys, &key.key, question->epoch, &question->hit);
    if (pawl__delivery_admit(question) == DELIVERY_ASK_CONFLICT) {
        TRY(ask_conflict(pipeline, i, reterr));
    }
    intake->decisions[i] = pawl__delivery_admit(question);
    if (intake->decisions[i] == DELIVERY_ADMIT_CONFLICT) {
        TRY(pawl__delivery_conflict_key(
            &question->key.key, &question->key.payload_hash, &key.key, reterr));
    } else if (intake->decisions[i] != DELIVERY_ADMIT) {
        return PAWL_OK;
    }
    make_entry(pipeline, i, &key.key);
    pawl__delivery_batch_keys_add(
        &pipeline->batch_keys, &key, intake->entries[intake->entry_count - 1].lsn);
    return PAWL_OK;
}

static pawl_status decide(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct intake *intake = pipeline->intake;

    intake->entry_count = 0;
    TRY(pawl__delivery_batch_keys_begin(&pipeline->batch_keys, intake->count, reterr));
    TRY(begin_questions(pipeline, reterr));
    (void)ask_sink(pipeline); /* what it does not answer stays undecided */
    for (size_t i = 0; i < intake->count; i++) {
        TRY(admit(pipeline, i, reterr));
    }
    return PAWL_OK;
}

/* --- the WAL, then the source --- */

struct delivery_wal_meta pawl__delivery_next_meta(struct delivery_pipeline *pipeline)
{
    struct delivery_wal_meta meta = pipeline->meta;
    int64_t now_ns = pawl__delivery_now_ns(pipeline);

    pawl__lock(&pipeline->shared.lock);
    meta.running_ns = pawl__delivery_running_ns(&pipeline->shared.running, now_ns);
    meta.stream.created_ns = pipeline->shared.position.created_ns;
    meta.stream.sequence = pawl__delivery_position_floor(&pipeline->shared.position);
    meta.applied = MAX(meta.applied, pipeline->shared.applied_seen);
    pawl__unlock(&pipeline->shared.lock);
    return meta;
}

static pawl_status append(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct intake *intake = pipeline->intake;
    struct delivery_wal *wal = pipeline->parts.wal;
    struct delivery_wal_meta meta = pawl__delivery_next_meta(pipeline);

    if (intake->entry_count == 0) {
        return PAWL_OK;
    }
    TRY(wal->ops->append(wal, intake->entries, intake->entry_count, &meta, reterr));
    pipeline->meta = meta;
    return PAWL_OK;
}

static pawl_status note_position(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct intake *intake = pipeline->intake;
    struct delivery_shared *shared = &pipeline->shared;
    size_t next_entry = 0;

    for (size_t i = 0; i < intake->count; i++) {
        const struct delivery_place *place = &intake->messages[i].place;
        switch (intake->decisions[i]) {
        case DELIVERY_ADMIT:
        case DELIVERY_ADMIT_CONFLICT:
            /* A place that was passed before, with something new in it: the server may have lost its tail. */
            shared->check_stream |=
                place->sequence <= pawl__delivery_position_floor(&shared->position);
            shared->totals.conflicts += intake->decisions[i] == DELIVERY_ADMIT_CONFLICT;
            TRY(pawl__delivery_position_appended(
                &shared->position, intake->entries[next_entry++].lsn, place, reterr));
            break;
        case DELIVERY_DUPLICATE:
            shared->totals.duplicates++;
            TRY(pawl__delivery_position_duplicate(
                &shared->position, intake->questions[i].hit.lsn, place, reterr));
            break;
        default:
            break; /* undecided: it comes again */
        }
    }
    shared->next_lsn += intake->entry_count;
    shared->accepted += intake->entry_count;
    shared->totals.writes += intake->entry_count;
    return PAWL_OK;
}

static enum delivery_taken how_taken(const struct intake *intake, size_t i)
{
    if (intake->decisions[i] == DELIVERY_ADMIT) {
        return DELIVERY_TAKEN_NEW;
    }
    return intake->decisions[i] == DELIVERY_ADMIT_CONFLICT || intake->questions[i].conflict_known
               ? DELIVERY_TAKEN_CONFLICT
               : DELIVERY_TAKEN_AGAIN;
}

static pawl_status acknowledge(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct intake *intake = pipeline->intake;
    struct delivery_source *source = pipeline->parts.source;
    size_t decided = 0;
    size_t undecided = intake->count;

    for (size_t i = 0; i < intake->count; i++) {
        bool is_open = intake->decisions[i] == DELIVERY_ASK_SINK
                       || intake->decisions[i] == DELIVERY_ASK_CONFLICT;
        intake->sorted[is_open ? --undecided : decided++] = intake->messages[i];
        if (!is_open && source->ops->taken != NULL) {
            source->ops->taken(source, &intake->messages[i], how_taken(intake, i));
        }
    }
    TRY(source->ops->ack(source, intake->sorted, decided, reterr));
    return source->ops->nak(source,
                            &intake->sorted[decided],
                            intake->count - decided,
                            pipeline->settings.nak_delay_ns,
                            reterr);
}

/* Nobody knows what of the batch is on disk: deliver it again, to a pipeline that was opened anew. */
static void give_back(struct delivery_pipeline *pipeline)
{
    struct intake *intake = pipeline->intake;
    struct delivery_source *source = pipeline->parts.source;

    pipeline->is_broken = true;
    /* May be lost like any answer to a source: the message comes again all the same, later. */
    pawl_status ignored = source->ops->nak(
        source, intake->messages, intake->count, pipeline->settings.nak_delay_ns, NULL);
    (void)ignored;
}

static pawl_status take_in(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    pawl_status status = decide(pipeline, reterr);

    if (status == PAWL_OK) {
        status = append(pipeline, reterr);
    }
    if (status != PAWL_OK) {
        give_back(pipeline);
        return status;
    }
    pawl__lock(&pipeline->shared.lock);
    status = note_position(pipeline, reterr);
    pawl__unlock(&pipeline->shared.lock);
    if (status
        != PAWL_OK) { /* without memory for it: a new pipeline finds the entries in the WAL */
        pipeline->is_broken = true;
        return status;
    }
    return acknowledge(pipeline, reterr);
}

static pawl_status check_room(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    struct delivery_wal *wal = pipeline->parts.wal;
    uint64_t bytes[DELIVERY_STATE_COUNT];

    wal->ops->held_bytes(wal, bytes);
    if (bytes[DELIVERY_PENDING] > pipeline->settings.pending_bytes_max) {
        return pawl__fail(
            reterr, PAWL_BUSY, "the WAL is full: pending entries reached max_pending_bytes");
    }
    if (bytes[DELIVERY_FAILED] > pipeline->settings.failed_bytes_max) {
        return pawl__fail(
            reterr,
            PAWL_BUSY,
            "the WAL is full: failed entries reached max_failed_bytes; resolve or abandon some");
    }
    return PAWL_OK;
}

static bool must_check_stream(struct delivery_pipeline *pipeline)
{
    return pipeline->shared.check_stream || pipeline->shared.position.crowded
           || pawl__delivery_now_ns(pipeline) - pipeline->asked_ns
                  >= pipeline->settings.state_interval_ns;
}

/* No transaction is under way meanwhile: what is noted about the stream names the newest cursor row. */
static pawl_status check_stream(struct delivery_pipeline *pipeline, pawl_error *reterr)
{
    pawl__lock(&pipeline->turn);
    pawl_status status = pawl__delivery_check_stream(pipeline, reterr);
    pawl__unlock(&pipeline->turn);
    return status;
}

pawl_status pawl__delivery_intake(struct delivery_pipeline *pipeline,
                                  size_t *ret_moved,
                                  pawl_error *reterr)
{
    struct delivery_source *source = pipeline->parts.source;
    struct delivery_batch batch = { .count = 0 };

    TRY(make_room(pipeline, reterr));
    TRY(check_room(pipeline, reterr));
    if (must_check_stream(pipeline)) {
        TRY(check_stream(pipeline, reterr));
    }
    pawl_status status = source->ops->fetch(source, &pipeline->settings.fetch, &batch, reterr);
    if (status != PAWL_OK) { /* a part of what was sent may be gone */
        pipeline->is_connected = false;
        pipeline->shared.check_stream = true;
        return status;
    }
    REQUIRE(batch.count <= pipeline->settings.fetch.messages_max);
    pipeline->intake->messages = batch.messages;
    pipeline->intake->count = batch.count;
    if (batch.count > 0) {
        TRY(take_in(pipeline, reterr));
    }
    *ret_moved = batch.count;
    return PAWL_OK;
}
