/* A ledger in this process: the reference that the others are held against.
 *
 * Events are written once and never move, so readers need the lock only to learn how many there
 * are. What a transaction adds stands after the committed count and becomes visible with it. */
#include "ledger/core/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/core/map.h"
#include "base/thread/thread.h"
#include "ledger/core/event.h"
#include "ledger/memory/turns.h"

enum { CHUNK_EVENTS = 1024, CHUNKS_MAX = 65536, EVENTS_MAX = CHUNK_EVENTS * CHUNKS_MAX };

struct memory_event {
    pawl_event event;
    struct pawl__buf vector; /* empty: none */
    char texts[];
};

/* What a transaction will do when it commits; everything it needs is allocated before. */
struct memory_embed {
    struct memory_event *event;
    struct pawl__buf vector;
};

struct memory_backend {
    struct ledger_backend base;
    struct memory_event **chunks[CHUNKS_MAX]; /* each holds CHUNK_EVENTS pointers */
    size_t written;                           /* the committer's: with the open transaction */
    struct pawl__map *ids;                    /* the committer's: id -> struct memory_event * */
    struct memory_embed *staged_embeds;
    size_t staged_embed_count;
    size_t staged_embed_cap;

    struct pawl__lock lock; /* covers everything below, and the vectors */
    size_t committed;
    struct memory_turns turns;
    size_t vector_bytes; /* of every embedding; 0: none yet */
};

static struct memory_backend *of(struct ledger_backend *base)
{
    return (struct memory_backend *)base; /* base is its first member */
}

static struct memory_event *at(const struct memory_backend *backend, size_t index)
{
    return backend->chunks[index / CHUNK_EVENTS][index % CHUNK_EVENTS];
}

static size_t committed(struct memory_backend *backend)
{
    pawl__lock(&backend->lock);
    size_t count = backend->committed;
    pawl__unlock(&backend->lock);
    return count;
}

/* --- writing: the committer's thread --- */

static pawl_status memory_begin(struct ledger_backend *base,
                                pawl_ledger_head *ret_head,
                                pawl_error *reterr)
{
    struct memory_backend *backend = of(base);

    (void)reterr;
    *ret_head = (pawl_ledger_head){ 0 };
    if (backend->written > 0) {
        const pawl_event *last = &at(backend, backend->written - 1)->event;
        ret_head->offset = last->offset;
        memcpy(ret_head->hash, last->hash, sizeof(ret_head->hash));
    }
    return PAWL_OK;
}

static pawl_status memory_lookup(struct ledger_backend *base,
                                 const pawl_view *ids,
                                 size_t count,
                                 ledger_event_sink sink,
                                 void *context,
                                 pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        const struct memory_event *found = pawl__map_get(of(base)->ids, ids[i]);
        if (found != NULL) {
            TRY(sink(context, &found->event, reterr));
        }
    }
    return PAWL_OK;
}

/* One allocation per event: its texts stand after it. */
static struct memory_event *copy_event(const pawl_event *event)
{
    struct memory_event *copy = malloc(sizeof(*copy) + pawl__ledger_event_text_bytes(event));

    if (copy != NULL) {
        pawl__ledger_event_copy_to(event, copy->texts, &copy->event);
        copy->vector = (struct pawl__buf)BUF_INIT(PAWL_EMBEDDING_DIMENSIONS_MAX * sizeof(float));
    }
    return copy;
}

static void free_event(struct memory_event *event)
{
    if (event != NULL) {
        pawl__buf_done(&event->vector);
        free(event);
    }
}

static pawl_status no_memory(pawl_error *reterr)
{
    return pawl__fail(reterr, PAWL_NOMEM, "no memory for events in memory");
}

static pawl_status insert_one(struct memory_backend *backend,
                              const pawl_event *event,
                              pawl_error *reterr)
{
    size_t chunk = backend->written / CHUNK_EVENTS;

    if (backend->written >= EVENTS_MAX) {
        return pawl__fail(
            reterr, PAWL_NO_SPACE, "a ledger in memory ends at %d events", EVENTS_MAX);
    }
    if (pawl__map_get(backend->ids, event->id) != NULL) {
        return pawl__fail_detail(reterr,
                                 PAWL_CONFLICT,
                                 PAWL_DETAIL_ID_TAKEN,
                                 "id '%.*s' is there",
                                 VIEW_ARGS(event->id));
    }
    if (backend->chunks[chunk] == NULL) {
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what the array holds */
        backend->chunks[chunk] = calloc(CHUNK_EVENTS, sizeof(*backend->chunks[chunk]));
    }
    struct memory_event *copy = backend->chunks[chunk] == NULL ? NULL : copy_event(event);
    if (copy == NULL) {
        return no_memory(reterr);
    }
    pawl_status status = pawl__map_put(backend->ids, copy->event.id, copy, NULL, reterr);
    if (status != PAWL_OK) {
        free_event(copy);
        return status;
    }
    backend->chunks[chunk][backend->written % CHUNK_EVENTS] = copy;
    backend->written++;
    return PAWL_OK;
}

static pawl_status memory_insert(struct ledger_backend *base,
                                 const pawl_event *events,
                                 size_t count,
                                 pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        TRY(insert_one(of(base), &events[i], reterr));
    }
    return PAWL_OK;
}

/* Room for one more element after `count`. */
static pawl_status grow(void **array, size_t count, size_t *cap, size_t size, pawl_error *reterr)
{
    if (count < *cap) {
        return PAWL_OK;
    }
    size_t larger = MAX(*cap * 2, (size_t)16);
    void *moved = realloc(*array, larger * size);
    if (moved == NULL) {
        return no_memory(reterr);
    }
    *array = moved;
    *cap = larger;
    return PAWL_OK;
}

static pawl_status memory_turn_get(struct ledger_backend *base,
                                   pawl_view run_id,
                                   int64_t turn,
                                   struct ledger_turn *ret_turn,
                                   pawl_error *reterr)
{
    (void)reterr;
    pawl__ledger_memory_turns_get(&of(base)->turns, run_id, turn, ret_turn);
    return PAWL_OK;
}

static pawl_status memory_open_turns(struct ledger_backend *base,
                                     pawl_turn_visit visit,
                                     void *context,
                                     pawl_error *reterr)
{
    (void)reterr;
    pawl__ledger_memory_turns_unfinished(&of(base)->turns, UINT64_MAX, visit, context);
    return PAWL_OK;
}

static pawl_status memory_turn_put(struct ledger_backend *base,
                                   const struct ledger_turn *turn,
                                   pawl_error *reterr)
{
    return pawl__ledger_memory_turns_put(&of(base)->turns, turn, reterr);
}

/* Bytes of an embedding, with those of the open transaction; 0: none. */
static size_t staged_vector_bytes(const struct memory_backend *backend)
{
    return backend->staged_embed_count > 0 ? backend->staged_embeds[0].vector.len
                                           : backend->vector_bytes;
}

static pawl_status memory_embed(struct ledger_backend *base,
                                uint64_t offset,
                                pawl_view vector,
                                pawl_error *reterr)
{
    struct memory_backend *backend = of(base);

    if (offset == 0 || offset > backend->written) {
        return pawl__ledger_fail_no_offset(offset, reterr);
    }
    TRY(pawl__ledger_check_dimensions(vector.len, staged_vector_bytes(backend), reterr));
    void *staged = backend->staged_embeds;
    pawl_status status = grow(&staged,
                              backend->staged_embed_count,
                              &backend->staged_embed_cap,
                              sizeof(*backend->staged_embeds),
                              reterr);
    backend->staged_embeds = staged;
    if (status != PAWL_OK) {
        return status;
    }
    struct memory_embed *embed = &backend->staged_embeds[backend->staged_embed_count];
    *embed = (struct memory_embed){ at(backend, offset - 1), BUF_INIT(vector.len) };
    pawl__buf_add(&embed->vector, vector);
    if (embed->vector.broken) {
        return no_memory(reterr);
    }
    backend->staged_embed_count++;
    return PAWL_OK;
}

static void apply_locked(struct memory_backend *backend) REQUIRES_LOCK(backend->lock)
{
    pawl__ledger_memory_turns_apply_locked(&backend->turns);
    for (size_t i = 0; i < backend->staged_embed_count; i++) {
        struct memory_embed *staged = &backend->staged_embeds[i];
        pawl__buf_done(&staged->event->vector);
        staged->event->vector = staged->vector;
        backend->vector_bytes = staged->vector.len;
    }
    backend->staged_embed_count = 0;
    backend->committed = backend->written;
}

static void memory_rollback(struct ledger_backend *base)
{
    struct memory_backend *backend = of(base);
    size_t kept = committed(backend);

    while (backend->written > kept) {
        struct memory_event *event = at(backend, --backend->written);
        pawl__map_remove(backend->ids, event->event.id);
        free_event(event);
    }
    pawl__ledger_memory_turns_drop(&backend->turns);
    for (size_t i = 0; i < backend->staged_embed_count; i++) {
        pawl__buf_done(&backend->staged_embeds[i].vector);
    }
    backend->staged_embed_count = 0;
}

static pawl_status memory_commit(struct ledger_backend *base, pawl_error *reterr)
{
    struct memory_backend *backend = of(base);
    pawl_status status = pawl__ledger_memory_turns_reserve(&backend->turns, reterr);

    if (status != PAWL_OK) {
        memory_rollback(base);
        return status;
    }
    pawl__lock(&backend->lock);
    apply_locked(backend);
    pawl__unlock(&backend->lock);
    return PAWL_OK;
}

/* --- reading: any thread --- */

static pawl_status memory_read(struct ledger_backend *base,
                               const struct ledger_query *query,
                               ledger_event_sink sink,
                               void *context,
                               pawl_error *reterr)
{
    struct memory_backend *backend = of(base);
    size_t end = (size_t)MIN((uint64_t)committed(backend), query->up_to);
    uint32_t left = query->limit;

    for (size_t i = (size_t)MIN(query->from, (uint64_t)end); i < end && left > 0; i++) {
        const pawl_event *event = &at(backend, i)->event;
        if (!pawl__ledger_event_matches(query->filter, event)) {
            continue;
        }
        TRY(sink(context, event, reterr));
        left--;
    }
    return PAWL_OK;
}

static pawl_status memory_head(struct ledger_backend *base,
                               pawl_ledger_head *ret_head,
                               pawl_error *reterr)
{
    size_t count = committed(of(base));

    (void)reterr;
    *ret_head = (pawl_ledger_head){ .offset = count };
    if (count > 0) {
        memcpy(ret_head->hash, at(of(base), count - 1)->event.hash, sizeof(ret_head->hash));
    }
    return PAWL_OK;
}

static pawl_status memory_get(struct ledger_backend *base,
                              pawl_view id,
                              uint64_t offset,
                              ledger_event_sink sink,
                              void *context,
                              pawl_error *reterr)
{
    size_t count = committed(of(base));

    for (size_t i = 0; i < count && id.len > 0; i++) {
        const pawl_event *event = &at(of(base), i)->event;
        if (pawl__view_equal(event->id, id)) {
            return sink(context, event, reterr);
        }
    }
    if (id.len > 0) {
        return pawl__ledger_fail_no_id(id, reterr);
    }
    if (offset == 0 || offset > count) {
        return pawl__ledger_fail_no_offset(offset, reterr);
    }
    return sink(context, &at(of(base), (size_t)offset - 1)->event, reterr);
}

static int64_t highest_turn(struct memory_backend *backend, pawl_view run_id)
{
    size_t count = committed(backend);
    int64_t highest = -1;

    for (size_t i = 0; i < count; i++) {
        const pawl_event *event = &at(backend, i)->event;
        if (run_id.len == 0 || pawl__view_equal(event->run_id, run_id)) {
            highest = MAX(highest, event->turn);
        }
    }
    return highest;
}

static pawl_status memory_turn_of(struct ledger_backend *base,
                                  enum ledger_which_turn which,
                                  pawl_view run_id,
                                  int64_t *ret_turn,
                                  pawl_error *reterr)
{
    int64_t turn = which == LEDGER_TURN_HIGHEST
                       ? highest_turn(of(base), run_id)
                       : pawl__ledger_memory_turns_last_complete(&of(base)->turns, run_id);

    if (turn < 0) {
        return pawl__ledger_fail_no_turn(run_id, reterr);
    }
    *ret_turn = turn;
    return PAWL_OK;
}

static pawl_status memory_turns(struct ledger_backend *base,
                                pawl_view run_id,
                                uint64_t from,
                                pawl_turn_visit visit,
                                void *context,
                                pawl_error *reterr)
{
    (void)reterr;
    pawl__ledger_memory_turns_visit(&of(base)->turns, run_id, from, visit, context);
    return PAWL_OK;
}

static pawl_status memory_unfinished(struct ledger_backend *base,
                                     uint64_t since,
                                     pawl_turn_visit visit,
                                     void *context,
                                     pawl_error *reterr)
{
    (void)reterr;
    pawl__ledger_memory_turns_unfinished(&of(base)->turns, since, visit, context);
    return PAWL_OK;
}

struct counted {
    pawl_view name;
    uint64_t count;
};

static int by_name(const void *a, const void *b)
{
    const struct counted *x = a;
    const struct counted *y = b;
    size_t shared = MIN(x->name.len, y->name.len);
    int order = shared == 0 ? 0 : memcmp(x->name.data, y->name.data, shared);

    return order != 0 ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

static pawl_view name_of(const pawl_event *event, pawl_count_by by)
{
    if (by == PAWL_COUNT_BY_RUN) {
        return event->run_id;
    }
    return by == PAWL_COUNT_BY_KIND ? event->kind : event->actor;
}

/* One entry an event that matches, with count 1; sorted and added up by the caller. */
static size_t collect(struct memory_backend *backend,
                      size_t count,
                      pawl_count_by by,
                      const pawl_event_filter *filter,
                      struct counted *ret_entries)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        const pawl_event *event = &at(backend, i)->event;
        if (pawl__ledger_event_matches(filter, event)) {
            ret_entries[found++] = (struct counted){ name_of(event, by), 1 };
        }
    }
    qsort(ret_entries, found, sizeof(*ret_entries), by_name);
    return found;
}

static pawl_status memory_counts(struct ledger_backend *base,
                                 pawl_count_by by,
                                 const pawl_event_filter *filter,
                                 pawl_count_visit visit,
                                 void *context,
                                 pawl_error *reterr)
{
    size_t count = committed(of(base));
    struct counted *entries = calloc(count + 1, sizeof(*entries));

    if (entries == NULL) {
        return no_memory(reterr);
    }
    size_t found = collect(of(base), count, by, filter, entries);
    bool going = true;
    for (size_t first = 0; first < found && going;) {
        size_t next = first + 1;
        while (next < found && by_name(&entries[first], &entries[next]) == 0) {
            next++;
        }
        going =
            visit(context, &(pawl_count){ sizeof(pawl_count), entries[first].name, next - first });
        first = next;
    }
    free(entries);
    return PAWL_OK;
}

static pawl_status memory_embeddings(struct ledger_backend *base,
                                     const pawl_event_filter *filter,
                                     ledger_vector_sink visit,
                                     void *context,
                                     pawl_error *reterr)
{
    struct memory_backend *backend = of(base);
    AUTO(pawl__buf_done)
    struct pawl__buf vector = BUF_INIT(PAWL_EMBEDDING_DIMENSIONS_MAX * sizeof(float));
    size_t count = committed(backend);

    for (size_t i = 0; i < count; i++) {
        const struct memory_event *event = at(backend, i);
        if (!pawl__ledger_event_matches(filter, &event->event)) {
            continue;
        }
        /* A copy, because it may be replaced, and the visitor of a snapshot writes to a disk: for
         * that nobody shall wait. */
        pawl__buf_clear(&vector);
        pawl__lock(&backend->lock);
        pawl__buf_add(&vector, pawl__buf_view(&event->vector));
        pawl__unlock(&backend->lock);
        if (vector.broken) {
            return no_memory(reterr);
        } else if (vector.len > 0) {
            TRY(visit(context, event->event.offset, pawl__buf_view(&vector), reterr));
        }
    }
    return PAWL_OK;
}

static void memory_close(struct ledger_backend *base)
{
    struct memory_backend *backend = of(base);

    memory_rollback(base);
    for (size_t i = 0; i < backend->written; i++) {
        free_event(at(backend, i));
    }
    for (size_t i = 0; i < CHUNKS_MAX && backend->chunks[i] != NULL; i++) {
        free(backend->chunks[i]);
    }
    pawl__ledger_memory_turns_done(&backend->turns);
    free(backend->staged_embeds);
    pawl__map_free(backend->ids);
    pawl__lock_done(&backend->lock);
    free(backend);
}

static const struct ledger_backend_ops memory_ops = {
    .name = "memory",
    .close = memory_close,
    .begin = memory_begin,
    .lookup = memory_lookup,
    .insert = memory_insert,
    .turn_get = memory_turn_get,
    .open_turns = memory_open_turns,
    .turn_put = memory_turn_put,
    .embed = memory_embed,
    .commit = memory_commit,
    .rollback = memory_rollback,
    .read = memory_read,
    .head = memory_head,
    .get = memory_get,
    .turn_of = memory_turn_of,
    .counts = memory_counts,
    .turns = memory_turns,
    .unfinished = memory_unfinished,
    .embeddings = memory_embeddings,
};

pawl_status pawl__ledger_memory_open(const struct pawl__location *location,
                                     const void *setup,
                                     void *ret_backend,
                                     pawl_error *reterr)
{
    struct memory_backend *backend = calloc(1, sizeof(*backend));

    (void)location;
    (void)setup;
    if (backend == NULL) {
        return no_memory(reterr);
    }
    backend->base.ops = &memory_ops;
    pawl__lock_init(&backend->lock);
    pawl_status status = pawl__ledger_memory_turns_init(&backend->turns, &backend->lock, reterr);
    if (status == PAWL_OK) {
        status = pawl__map_new(EVENTS_MAX, &backend->ids, reterr);
    }
    if (status != PAWL_OK) {
        memory_close(&backend->base);
        return status;
    }
    *(struct ledger_backend **)ret_backend = &backend->base;
    return PAWL_OK;
}
