#include <string.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "ledger/postgres/backend.h"

enum {
    TURNS_PAGE = 1000,
    PAGE_ROWS_MIN = 16,
    PAGE_ROWS_MAX = 4096,
};
#define PAGE_BYTES ((size_t)1 << 20) /* what one statement should bring */

static struct pawl__pg_value name_or_null(pawl_view name)
{
    return name.len == 0 ? pawl__pg_null() : pawl__pg_text(name);
}

/* Outside of what an event can have, any time is as good as the infinity beside it. */
static struct pawl__pg_value bound_of_time(int64_t wall_us)
{
    if (wall_us > PAWL__WALL_US_MAX) {
        return pawl__pg_time(PAWL__PG_TIME_INFINITY);
    }
    return pawl__pg_time(wall_us < PAWL__WALL_US_MIN ? PAWL__PG_TIME_MINUS_INFINITY : wall_us);
}

void pawl__ledger_pg_filter(const pawl_event_filter *filter, struct pawl__pg_value *values)
{
    static const pawl_event_filter all = PAWL_EVENT_FILTER_INIT;

    filter = filter == NULL ? &all : filter;
    values[0] = name_or_null(filter->run_id);
    values[1] = name_or_null(filter->kind);
    values[2] = name_or_null(filter->actor);
    values[3] = pawl__pg_i64(filter->turn_min);
    values[4] = pawl__pg_i64(filter->turn_max);
    values[5] = bound_of_time(filter->time_min_us);
    values[6] = bound_of_time(filter->time_max_us);
}

/* --- events --- */

static pawl_status event_of(const struct pawl__pg_rows *rows,
                            size_t row,
                            pawl_event *ret_event,
                            pawl_error *reterr)
{
    pawl_view hash = pawl__pg_get_bytes(rows, row, 9);
    pawl_event event = {
        .size = sizeof(pawl_event),
        .offset = (uint64_t)pawl__pg_get_i64(rows, row, 0),
        .id = pawl__pg_get_text(rows, row, 1),
        .run_id = pawl__pg_get_text(rows, row, 2),
        .turn = pawl__pg_get_i64(rows, row, 3),
        .kind = pawl__pg_get_text(rows, row, 4),
        .actor = pawl__pg_get_text(rows, row, 5),
        .payload = pawl__pg_get_text(rows, row, 6),
        .created_at_us = pawl__pg_get_time(rows, row, 7),
        .schema_version = pawl__pg_get_i64(rows, row, 8),
    };

    TRY(pawl__ledger_set_hash(hash, &event, reterr));
    *ret_event = event;
    return PAWL_OK;
}

/* Hands rows to a sink as they arrive. */
struct event_walk {
    ledger_event_sink sink;
    void *context;
    uint64_t last;
    uint32_t rows;
    size_t bytes;
};

static pawl_status walk_event(void *context,
                              size_t index,
                              const struct pawl__pg_rows *rows,
                              pawl_error *reterr)
{
    struct event_walk *walk = context;
    pawl_event event;

    (void)index;
    TRY(event_of(rows, 0, &event, reterr));
    walk->last = event.offset;
    walk->bytes += event.payload.len;
    walk->rows++;
    return walk->sink(walk->context, &event, reterr);
}

static const size_t read_statements[LEDGER_NARROWINGS] = {
    [LEDGER_BY_OFFSET] = LEDGER_PG_READ,      [LEDGER_BY_FILTER] = LEDGER_PG_READ_FILTER,
    [LEDGER_BY_RUN] = LEDGER_PG_READ_RUN,     [LEDGER_BY_KIND] = LEDGER_PG_READ_KIND,
    [LEDGER_BY_ACTOR] = LEDGER_PG_READ_ACTOR,
};

static int64_t clamped(uint64_t offset)
{
    return (int64_t)MIN(offset, (uint64_t)INT64_MAX);
}

/* At the most `rows` rows after walk->last. */
static pawl_status read_some(struct pawl__pg *pg,
                             const struct ledger_query *query,
                             uint32_t rows,
                             struct event_walk *walk,
                             pawl_error *reterr)
{
    struct pawl__pg_value values[3 + PG_FILTER_VALUES] = {
        pawl__pg_i64(clamped(walk->last)),
        pawl__pg_i64(clamped(query->up_to)),
        pawl__pg_i64(rows),
    };

    if (query->filter != NULL) {
        pawl__ledger_pg_filter(query->filter, &values[3]);
    }
    return pawl__pg_each(pg,
                         read_statements[pawl__ledger_narrowing(query->filter)],
                         values,
                         query->filter == NULL ? 3 : COUNT_OF(values),
                         walk_event,
                         walk,
                         reterr);
}

/* The next statement asks for about PAGE_BYTES. A sink that has enough leaves the rest of an answer
 * to be thrown away, so an answer should not be much longer than what a sink takes. */
static void learn_page_size(struct postgres_backend *backend, const struct event_walk *walk)
{
    if (walk->rows > 0) {
        size_t each = walk->bytes / walk->rows + 128;
        size_t rows = MIN(MAX(PAGE_BYTES / each, (size_t)PAGE_ROWS_MIN), (size_t)PAGE_ROWS_MAX);
        atomic_store_explicit(&backend->page_rows, (unsigned)rows, memory_order_relaxed);
    }
}

pawl_status pawl__ledger_pg_read(struct ledger_backend *base,
                                 const struct ledger_query *query,
                                 ledger_event_sink sink,
                                 void *context,
                                 pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    struct event_walk walk = { .sink = sink, .context = context, .last = query->from };
    struct postgres_backend *backend = pawl__ledger_pg_of(base);

    pawl_status status = pawl__ledger_pg_borrow(base, &borrowed, reterr);
    for (uint32_t left = query->limit; status == PAWL_OK && left > 0;) {
        uint32_t rows = MIN(left, atomic_load_explicit(&backend->page_rows, memory_order_relaxed));
        walk.rows = 0;
        walk.bytes = 0;
        status = read_some(borrowed.pg, query, rows, &walk, reterr);
        learn_page_size(backend, &walk);
        if (walk.rows < rows) {
            break;
        }
        left -= rows;
    }
    return status;
}

pawl_status pawl__ledger_pg_lookup(struct pawl__pg *pg,
                                   const pawl_view *ids,
                                   size_t count,
                                   ledger_event_sink sink,
                                   void *context,
                                   pawl_error *reterr)
{
    AUTO(pawl__pg_array_done) struct pawl__pg_array array = PG_ARRAY_INIT;
    struct event_walk walk = { .sink = sink, .context = context };

    pawl__pg_array_start(&array, 'T', count);
    for (size_t i = 0; i < count; i++) {
        pawl__pg_array_add_view(&array, ids[i]);
    }
    return pawl__pg_each(
        pg, LEDGER_PG_LOOKUP, PG_ARGS(pawl__pg_array_value(&array)), walk_event, &walk, reterr);
}

pawl_status pawl__ledger_pg_get(struct ledger_backend *base,
                                pawl_view id,
                                uint64_t offset,
                                ledger_event_sink sink,
                                void *context,
                                pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };
    struct event_walk walk = { .sink = sink, .context = context };
    struct pawl__pg_value value = id.len > 0 ? pawl__pg_text(id) : pawl__pg_i64(clamped(offset));

    TRY(pawl__ledger_pg_borrow(base, &borrowed, reterr));
    TRY(pawl__pg_each(borrowed.pg,
                      id.len > 0 ? LEDGER_PG_BY_ID : LEDGER_PG_BY_OFFSET,
                      &value,
                      1,
                      walk_event,
                      &walk,
                      reterr));
    if (walk.rows > 0) {
        return PAWL_OK;
    }
    return id.len > 0 ? pawl__ledger_fail_no_id(id, reterr)
                      : pawl__ledger_fail_no_offset(offset, reterr);
}

/* No connection is held while a caller uses the rows. */
static pawl_status ask(struct ledger_backend *base,
                       size_t statement,
                       const struct pawl__pg_value *values,
                       size_t value_count,
                       struct pawl__pg_rows *ret_rows,
                       pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };

    TRY(pawl__ledger_pg_borrow(base, &borrowed, reterr));
    return pawl__pg_exec(borrowed.pg, statement, values, value_count, ret_rows, reterr);
}

/* --- numbers --- */

pawl_status pawl__ledger_pg_head(struct pawl__pg *pg,
                                 size_t statement,
                                 pawl_ledger_head *ret_head,
                                 pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    pawl_ledger_head head;

    TRY(pawl__pg_exec(pg, statement, PG_NO_ARGS, &rows, reterr));
    pawl_view hash = rows.count == 1 ? pawl__pg_get_bytes(&rows, 0, 1) : (pawl_view){ NULL, 0 };
    if (hash.len != sizeof(head.hash)) {
        return pawl__fail(reterr, PAWL_CORRUPT, "ledger_head does not hold one whole head");
    }
    head.offset = (uint64_t)pawl__pg_get_i64(&rows, 0, 0);
    memcpy(head.hash, hash.data, sizeof(head.hash));
    *ret_head = head;
    return PAWL_OK;
}

pawl_status pawl__ledger_pg_get_head(struct ledger_backend *base,
                                     pawl_ledger_head *ret_head,
                                     pawl_error *reterr)
{
    AUTO(pawl__pg_return) struct pawl__pg_borrowed borrowed = { NULL, NULL };

    TRY(pawl__ledger_pg_borrow(base, &borrowed, reterr));
    return pawl__ledger_pg_head(borrowed.pg, LEDGER_PG_HEAD, ret_head, reterr);
}

/* NOT_FOUND when the number is null, because no event was there to take it of. */
pawl_status pawl__ledger_pg_turn_of(struct ledger_backend *base,
                                    enum ledger_which_turn which,
                                    pawl_view run_id,
                                    int64_t *ret_turn,
                                    pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(ask(base,
            which == LEDGER_TURN_HIGHEST ? LEDGER_PG_MAX_TURN : LEDGER_PG_LAST_COMPLETE,
            PG_ARGS(name_or_null(run_id)),
            &rows,
            reterr));
    if (rows.count == 0 || pawl__pg_is_null(&rows, 0, 0)) {
        return pawl__ledger_fail_no_turn(run_id, reterr);
    }
    *ret_turn = pawl__pg_get_i64(&rows, 0, 0);
    return PAWL_OK;
}

/* --- lists --- */

pawl_status pawl__ledger_pg_counts(struct ledger_backend *base,
                                   pawl_count_by by,
                                   const pawl_event_filter *filter,
                                   pawl_count_visit visit,
                                   void *context,
                                   pawl_error *reterr)
{
    static const size_t statements[] = {
        [PAWL_COUNT_BY_RUN] = LEDGER_PG_COUNT_RUN,
        [PAWL_COUNT_BY_KIND] = LEDGER_PG_COUNT_KIND,
        [PAWL_COUNT_BY_ACTOR] = LEDGER_PG_COUNT_ACTOR,
    };
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    struct pawl__pg_value values[PG_FILTER_VALUES];

    pawl__ledger_pg_filter(filter, values);
    TRY(ask(base, statements[by], values, COUNT_OF(values), &rows, reterr));
    for (size_t i = 0; i < rows.count; i++) {
        uint64_t count = (uint64_t)pawl__pg_get_i64(&rows, i, 1);
        if (!visit(context,
                   &(pawl_count){ sizeof(pawl_count), pawl__pg_get_text(&rows, i, 0), count })) {
            break;
        }
    }
    return PAWL_OK;
}

static pawl_turn_info turn_at(const struct pawl__pg_rows *rows, size_t row)
{
    return (pawl_turn_info){
        .size = sizeof(pawl_turn_info),
        .run_id = pawl__pg_get_text(rows, row, 0),
        .turn = pawl__pg_get_i64(rows, row, 1),
        .attempt = (uint32_t)pawl__pg_get_i64(rows, row, 2),
        .state = (pawl_turn_state)pawl__pg_get_i64(rows, row, 3),
        .begin_offset = (uint64_t)pawl__pg_get_i64(rows, row, 4),
        .end_offset = (uint64_t)pawl__pg_get_i64(rows, row, 5),
    };
}

/* False when the visitor has seen enough. */
static bool visit_turns(const struct pawl__pg_rows *rows, pawl_turn_visit visit, void *context)
{
    for (size_t i = 0; i < rows->count; i++) {
        pawl_turn_info info = turn_at(rows, i);
        if (!visit(context, &info)) {
            return false;
        }
    }
    return true;
}

pawl_status pawl__ledger_pg_turns(struct ledger_backend *base,
                                  pawl_view run_id,
                                  uint64_t from,
                                  pawl_turn_visit visit,
                                  void *context,
                                  pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };
    pawl_turn_info last = { .size = sizeof(pawl_turn_info),
                            .turn = INT64_MIN,
                            .begin_offset =
                                from == 0 ? (uint64_t)INT64_MIN : MIN(from, (uint64_t)INT64_MAX) };

    for (;;) {
        /* The last row's name is in the page that is being replaced: it lives until the answer. */
        TRY(ask(base,
                LEDGER_PG_TURNS,
                PG_ARGS(name_or_null(run_id),
                        pawl__pg_i64((int64_t)last.begin_offset),
                        pawl__pg_i64(TURNS_PAGE),
                        pawl__pg_text(last.run_id),
                        pawl__pg_i64(last.turn),
                        pawl__pg_i64(last.attempt)),
                &rows,
                reterr));
        if (!visit_turns(&rows, visit, context) || rows.count < TURNS_PAGE) {
            return PAWL_OK;
        }
        last = turn_at(&rows, rows.count - 1);
    }
}

pawl_status pawl__ledger_pg_open_turns(struct ledger_backend *base,
                                       pawl_turn_visit visit,
                                       void *context,
                                       pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(pawl__pg_exec(pawl__ledger_pg_of(base)->pg.writer,
                      LEDGER_PG_TURNS_UNFINISHED,
                      PG_ARGS(pawl__pg_i64(INT64_MAX)),
                      &rows,
                      reterr));
    (void)visit_turns(&rows, visit, context);
    return PAWL_OK;
}

pawl_status pawl__ledger_pg_unfinished(struct ledger_backend *base,
                                       uint64_t since,
                                       pawl_turn_visit visit,
                                       void *context,
                                       pawl_error *reterr)
{
    AUTO(pawl__pg_rows_done) struct pawl__pg_rows rows = { 0 };

    TRY(ask(
        base, LEDGER_PG_TURNS_UNFINISHED, PG_ARGS(pawl__pg_i64(clamped(since))), &rows, reterr));
    (void)visit_turns(&rows, visit, context);
    return PAWL_OK;
}
