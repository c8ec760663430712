#include "ledger/core/turn_index.h"

#include <stdlib.h>

#include "base/core/buf.h"
#include "base/core/error.h"

void pawl__ledger_turn_index_done(struct ledger_turn_index *index)
{
    free(index->spans);
    pawl__arena_done(&index->arena);
    *index = (struct ledger_turn_index)TURN_INDEX_INIT;
}

void pawl__ledger_turn_index_clear(struct ledger_turn_index *index)
{
    index->barrier = UINT64_MAX;
    index->active = 0;
    index->next = 0;
    index->count = 0;
    pawl__arena_clear(&index->arena);
}

static bool add_span(struct ledger_turn_index *index, const pawl_turn_info *info)
{
    if (index->count == index->cap) {
        size_t cap = MAX(index->cap * 2, (size_t)16);
        struct ledger_span *larger = realloc(index->spans, cap * sizeof(*larger));
        if (larger == NULL) {
            return false;
        }
        index->spans = larger;
        index->cap = cap;
    }
    struct ledger_span *span = &index->spans[index->count];
    if (!pawl__arena_copy(&index->arena, info->run_id, &span->run_id)) {
        return false;
    }
    span->turn = info->turn;
    span->begin = info->begin_offset;
    span->end = info->end_offset;
    index->count++;
    return true;
}

bool pawl__ledger_turn_index_add(struct ledger_turn_index *index, const pawl_turn_info *info)
{
    if (info->state == PAWL_TURN_ABANDONED) {
        return add_span(index, info);
    }
    index->barrier = MIN(index->barrier, info->begin_offset);
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const struct ledger_span *x = a;
    const struct ledger_span *y = b;

    return (x->begin > y->begin) - (x->begin < y->begin);
}

void pawl__ledger_turn_index_ready(struct ledger_turn_index *index)
{
    if (index->count > 1) {
        qsort(index->spans, index->count, sizeof(*index->spans), by_begin);
    }
}

/* Attempts of other runs may overlap, so several can be active; there is room for them in front,
 * because no more become active than have been taken from behind. */
static void advance(struct ledger_turn_index *index, uint64_t offset)
{
    for (size_t i = 0; i < index->active;) {
        if (index->spans[i].end < offset) {
            index->spans[i] = index->spans[--index->active];
        } else {
            i++;
        }
    }
    while (index->next < index->count && index->spans[index->next].begin <= offset) {
        struct ledger_span span = index->spans[index->next++];
        if (span.end >= offset) {
            index->spans[index->active++] = span;
        }
    }
}

bool pawl__ledger_turn_index_skips(struct ledger_turn_index *index, const pawl_event *event)
{
    advance(index, event->offset);
    for (size_t i = 0; i < index->active; i++) {
        const struct ledger_span *span = &index->spans[i];
        if (span->turn == event->turn && pawl__view_equal(span->run_id, event->run_id)) {
            return true;
        }
    }
    return false;
}

/* --- what the backend knows --- */

struct loading {
    struct ledger_turn_index *index;
    const struct ledger_turn_question *question;
    bool no_memory;
};

static bool refuses(const pawl_event_filter *filter, const pawl_turn_info *info)
{
    return filter != NULL
           && ((filter->run_id.len > 0 && !pawl__view_equal(filter->run_id, info->run_id))
               || info->turn < filter->turn_min || info->turn > filter->turn_max);
}

static bool load_attempt(void *context, const pawl_turn_info *given)
{
    struct loading *loading = context;
    const struct ledger_turn_question *question = loading->question;
    pawl_turn_info info = *given;

    if (info.end_offset > question->as_of) {
        info.state = PAWL_TURN_OPEN; /* it still was */
    }
    bool passed = info.state != PAWL_TURN_OPEN && info.end_offset <= question->since;
    if (info.state == PAWL_TURN_COMMITTED || passed || info.begin_offset > question->as_of
        || refuses(question->filter, &info)) {
        return true;
    }
    loading->no_memory = !pawl__ledger_turn_index_add(loading->index, &info);
    return !loading->no_memory;
}

pawl_status pawl__ledger_turn_index_load(struct ledger_turn_index *index,
                                         struct ledger_backend *backend,
                                         const struct ledger_turn_question *question,
                                         pawl_error *reterr)
{
    struct loading loading = { .index = index, .question = question };
    pawl_status status;

    pawl__ledger_turn_index_clear(index);
    if (question->as_of == UINT64_MAX && backend->ops->unfinished != NULL) {
        status = backend->ops->unfinished(backend, question->since, load_attempt, &loading, reterr);
    } else {
        /* The past, or a backend without a shorter way: every attempt of the run. */
        pawl_view run_id =
            question->filter == NULL ? (pawl_view){ NULL, 0 } : question->filter->run_id;
        status = backend->ops->turns(backend, run_id, 0, load_attempt, &loading, reterr);
    }
    if (status == PAWL_OK && loading.no_memory) {
        status = pawl__fail(reterr, PAWL_NOMEM, "no memory for the index of turns");
    }
    pawl__ledger_turn_index_ready(index);
    return status;
}
