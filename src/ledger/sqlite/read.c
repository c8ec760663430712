#include "ledger/sqlite/backend.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/core/error.h"
#include "base/os/clock.h"

static struct sqlite_backend *of(struct ledger_backend *base)
{
    return (struct sqlite_backend *)base; /* base is its first member */
}

static pawl_status borrow(struct ledger_backend *base,
                          struct pawl__sqlite_borrowed *ret_borrowed,
                          pawl_error *reterr)
{
    return pawl__sqlite_borrow(&of(base)->pool, ret_borrowed, reterr);
}

static pawl_status ask(struct ledger_backend *base,
                       size_t statement,
                       struct pawl__sqlite_question *ret_asked,
                       pawl_error *reterr)
{
    return pawl__sqlite_ask(&of(base)->pool, statement, ret_asked, reterr);
}

static void bind_name(struct pawl__sqlite_stmt *stmt, int parameter, pawl_view name)
{
    if (name.len == 0) {
        pawl__sqlite_bind_null(stmt, parameter);
    } else {
        pawl__sqlite_bind_text(stmt, parameter, name);
    }
}

/* Times are compared as text, which sorts as they do. The texts must outlive the statement's use.
 */
struct filter_texts {
    char from[PAWL__TIME_SIZE];
    char until[PAWL__TIME_SIZE];
};

/* Parameters from `first` on: run, kind, actor, two turns, two times. NULL: all events. */
static void bind_filter(struct pawl__sqlite_stmt *stmt,
                        int first,
                        const pawl_event_filter *filter,
                        struct filter_texts *texts)
{
    static const pawl_event_filter all = PAWL_EVENT_FILTER_INIT;

    filter = filter == NULL ? &all : filter;
    bind_name(stmt, first, filter->run_id);
    bind_name(stmt, first + 1, filter->kind);
    bind_name(stmt, first + 2, filter->actor);
    pawl__sqlite_bind_i64(stmt, first + 3, filter->turn_min);
    pawl__sqlite_bind_i64(stmt, first + 4, filter->turn_max);
    pawl__time_store(filter->time_min_us, texts->from);
    pawl__sqlite_bind_text(stmt, first + 5, pawl_view_of(texts->from));
    if (filter->time_max_us > PAWL__WALL_US_MAX) {
        pawl__sqlite_bind_text(stmt, first + 6, pawl_view_of("a")); /* above every digit */
    } else {
        pawl__time_store(filter->time_max_us, texts->until);
        pawl__sqlite_bind_text(stmt, first + 6, pawl_view_of(texts->until));
    }
}

/* "2026-01-29 10:20:30.123456": of all that can be read as a time, only what was written. */
static bool is_stored_form(pawl_view time)
{
    return time.len == 26 && time.data[10] == ' ' && time.data[25] >= '0' && time.data[25] <= '9';
}

static pawl_status fail_type(struct pawl__sqlite_stmt *stmt,
                             const char *column,
                             const char *type,
                             pawl_error *reterr)
{
    return pawl__fail(reterr,
                      PAWL_CORRUPT,
                      "%s of offset %llu is not stored as %s",
                      column,
                      (unsigned long long)pawl__sqlite_i64(stmt, 0),
                      type);
}

static pawl_status read_time(pawl_view created_at, pawl_event *event, pawl_error *reterr)
{
    if (!is_stored_form(created_at)
        || pawl__time_parse(created_at, &event->created_at_us, NULL) != PAWL_OK) {
        return pawl__fail(reterr,
                          PAWL_CORRUPT,
                          "created_at of offset %llu is '%.*s'",
                          (unsigned long long)event->offset,
                          (int)MIN(created_at.len, (size_t)40),
                          created_at.len == 0 ? "" : created_at.data);
    }
    return PAWL_OK;
}

static const struct {
    const char *name;
    int column;
    size_t member;
} text_columns[] = {
    { "id", 1, offsetof(pawl_event, id) },           { "run_id", 2, offsetof(pawl_event, run_id) },
    { "kind", 4, offsetof(pawl_event, kind) },       { "actor", 5, offsetof(pawl_event, actor) },
    { "payload", 6, offsetof(pawl_event, payload) },
};

/* Each value must be stored as what it is. SQLite converts whatever is asked for, so 'abc' would be
 * read as turn 0, and a BLOB as the text that it looks like; comparing, it does not convert, and
 * filters and ids would miss such an event. */
static pawl_status read_row(struct pawl__sqlite_stmt *stmt,
                            pawl_event *ret_event,
                            pawl_error *reterr)
{
    pawl_view created_at;

    for (size_t i = 0; i < COUNT_OF(text_columns); i++) {
        pawl_view *text = (pawl_view *)((char *)ret_event + text_columns[i].member);
        if (!pawl__sqlite_as_text(stmt, text_columns[i].column, text)) {
            return fail_type(stmt, text_columns[i].name, "text", reterr);
        }
    }
    if (!pawl__sqlite_as_text(stmt, 7, &created_at)) {
        return fail_type(stmt, "created_at", "text", reterr);
    }
    if (!pawl__sqlite_as_i64(stmt, 3, &ret_event->turn)) {
        return fail_type(stmt, "turn", "a number", reterr);
    }
    if (!pawl__sqlite_as_i64(stmt, 8, &ret_event->schema_version)) {
        return fail_type(stmt, "schema_version", "a number", reterr);
    }
    ret_event->offset = (uint64_t)pawl__sqlite_i64(stmt, 0);
    TRY(pawl__ledger_set_hash(pawl__sqlite_blob(stmt, 9), ret_event, reterr));
    return read_time(created_at, ret_event, reterr);
}

static pawl_status each_row(struct pawl__sqlite_stmt *stmt,
                            ledger_event_sink sink,
                            void *context,
                            uint64_t *ret_rows,
                            pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    for (*ret_rows = 0; pawl__sqlite_more(stmt, &status, reterr); ++*ret_rows) {
        pawl_event event;

        TRY(read_row(stmt, &event, reterr));
        TRY(sink(context, &event, reterr));
    }
    return status;
}

struct up_to {
    uint64_t offset;
    ledger_event_sink sink;
    void *context;
    bool passed;
};

static pawl_status sink_up_to(void *context, const pawl_event *event, pawl_error *reterr)
{
    struct up_to *up_to = context;

    if (event->offset > up_to->offset) {
        up_to->passed = true;
        return PAWL_CANCELLED;
    }
    return up_to->sink(up_to->context, event, reterr);
}

static int64_t clamped(uint64_t offset)
{
    return (int64_t)MIN(offset, (uint64_t)INT64_MAX);
}

static const size_t read_statements[LEDGER_NARROWINGS] = {
    [LEDGER_BY_OFFSET] = LEDGER_SQL_READ,      [LEDGER_BY_FILTER] = LEDGER_SQL_READ_FILTER,
    [LEDGER_BY_RUN] = LEDGER_SQL_READ_RUN,     [LEDGER_BY_KIND] = LEDGER_SQL_READ_KIND,
    [LEDGER_BY_ACTOR] = LEDGER_SQL_READ_ACTOR,
};

pawl_status pawl__ledger_sqlite_read(struct ledger_backend *base,
                                     const struct ledger_query *query,
                                     ledger_event_sink sink,
                                     void *context,
                                     pawl_error *reterr)
{
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };
    size_t statement = read_statements[pawl__ledger_narrowing(query->filter)];
    struct filter_texts texts;
    uint64_t rows;

    TRY(ask(base, statement, &asked, reterr));
    pawl__sqlite_bind_i64(&asked.stmt, 1, clamped(query->from));
    pawl__sqlite_bind_i64(&asked.stmt, 3, query->limit);
    if (query->filter != NULL) {
        pawl__sqlite_bind_i64(&asked.stmt, 2, clamped(query->up_to));
        bind_filter(&asked.stmt, 4, query->filter, &texts);
        return each_row(&asked.stmt, sink, context, &rows, reterr);
    }
    /* The end is looked for here: in the statement it costs as much as reading a column. */
    struct up_to up_to = { query->up_to, sink, context, false };
    pawl_status status = each_row(&asked.stmt, sink_up_to, &up_to, &rows, reterr);
    return up_to.passed ? PAWL_OK : status;
}

pawl_status pawl__ledger_sqlite_get_head(struct ledger_backend *base,
                                         pawl_ledger_head *ret_head,
                                         pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed borrowed = { NULL, NULL };

    TRY(borrow(base, &borrowed, reterr));
    /* Of a file that was replaced a follower would wait for ever. */
    TRY(pawl__sqlite_check_place(borrowed.db, reterr));
    return pawl__ledger_sqlite_head(borrowed.db, ret_head, reterr);
}

static pawl_status check_first(struct pawl__sqlite *db, uint64_t *ret_bad, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, LEDGER_SQL_FIRST);
    bool row;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    return row ? pawl__ledger_check_first(pawl__sqlite_i64(&stmt, 0), ret_bad, reterr) : PAWL_OK;
}

/* AUTOINCREMENT makes SQLite remember the highest offset there ever was, in the same transaction: a
 * tail that was cut off, or a log that was emptied, shows without an anchor, too. */
static pawl_status highest_of(struct pawl__sqlite *db, int64_t *ret_highest, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, LEDGER_SQL_HIGHEST_EVER);
    bool row;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    *ret_highest = row ? pawl__sqlite_i64(&stmt, 0) : 0;
    return PAWL_OK;
}

pawl_status pawl__ledger_sqlite_highest(struct ledger_backend *base,
                                        uint64_t *ret_offset,
                                        pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed borrowed = { NULL, NULL };
    int64_t highest = 0;

    TRY(borrow(base, &borrowed, reterr));
    TRY(highest_of(borrowed.db, &highest, reterr));
    *ret_offset = (uint64_t)MAX(highest, 0);
    return PAWL_OK;
}

static pawl_status check_highest(struct pawl__sqlite *db, uint64_t *ret_bad, pawl_error *reterr)
{
    pawl_ledger_head head;
    int64_t highest = 0;

    TRY(highest_of(db, &highest, reterr));
    TRY(pawl__ledger_sqlite_head(db, &head, reterr)); /* after it: the log only grows */
    if (highest <= (int64_t)head.offset) {
        return PAWL_OK;
    }
    *ret_bad = head.offset + 1;
    return pawl__fail_advised(
        reterr,
        PAWL_CORRUPT,
        "cut off: the log ends at offset %llu, but had events up to %lld; " LEDGER_CUT_ADVICE,
        (unsigned long long)head.offset,
        (long long)highest);
}

/* Writers find duplicates by the index of ids. Verify reads all of it; opening only makes sure that it
 * has the newest event. */
static pawl_status check_last(struct pawl__sqlite *db, uint64_t *ret_bad, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, LEDGER_SQL_LAST_UNINDEXED);
    bool row;

    TRY(pawl__sqlite_next(&stmt, &row, reterr));
    if (row) {
        *ret_bad = (uint64_t)pawl__sqlite_i64(&stmt, 0);
        return pawl__fail_advised(
            reterr,
            PAWL_CORRUPT,
            "not indexed: the id of the newest event, at %lld, does not lead to it; stop "
            "the writers and run `sqlite3 FILE REINDEX`",
            (long long)pawl__sqlite_i64(&stmt, 0));
    }
    return PAWL_OK;
}

pawl_status pawl__ledger_sqlite_check(struct ledger_backend *base,
                                      uint64_t *ret_bad,
                                      pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed borrowed = { NULL, NULL };

    TRY(borrow(base, &borrowed, reterr));
    TRY(check_first(borrowed.db, ret_bad, reterr));
    TRY(check_highest(borrowed.db, ret_bad, reterr));
    return of(base)->writer != NULL ? check_last(borrowed.db, ret_bad, reterr) : PAWL_OK;
}

pawl_status pawl__ledger_sqlite_schema(struct ledger_backend *base, pawl_error *reterr)
{
    AUTO(pawl__sqlite_return) struct pawl__sqlite_borrowed borrowed = { NULL, NULL };

    TRY(borrow(base, &borrowed, reterr));
    return pawl__sqlite_check_schema(borrowed.db, reterr);
}

pawl_status pawl__ledger_sqlite_entries(struct ledger_backend *base,
                                        enum ledger_index index,
                                        ledger_entry_sink sink,
                                        void *context,
                                        pawl_error *reterr)
{
    static const size_t statements[LEDGER_INDEXES] = {
        [LEDGER_INDEX_ID] = LEDGER_SQL_INDEX_ID,
        [LEDGER_INDEX_RUN] = LEDGER_SQL_INDEX_RUN,
        [LEDGER_INDEX_KIND] = LEDGER_SQL_INDEX_KIND,
        [LEDGER_INDEX_ACTOR] = LEDGER_SQL_INDEX_ACTOR,
    };
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };
    pawl_status status = PAWL_OK;

    TRY(ask(base, statements[index], &asked, reterr));
    while (pawl__sqlite_more(&asked.stmt, &status, reterr)) {
        TRY(sink(context,
                 pawl__sqlite_text(&asked.stmt, 0),
                 (uint64_t)pawl__sqlite_i64(&asked.stmt, 1),
                 reterr));
    }
    return status;
}

pawl_status pawl__ledger_sqlite_lookup(struct ledger_backend *base,
                                       const pawl_view *ids,
                                       size_t count,
                                       ledger_event_sink sink,
                                       void *context,
                                       pawl_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(pawl__sqlite_reset)
        struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, LEDGER_SQL_BY_ID);
        uint64_t rows;

        pawl__sqlite_bind_text(&stmt, 1, ids[i]);
        TRY(each_row(&stmt, sink, context, &rows, reterr));
    }
    return PAWL_OK;
}

pawl_status pawl__ledger_sqlite_get(struct ledger_backend *base,
                                    pawl_view id,
                                    uint64_t offset,
                                    ledger_event_sink sink,
                                    void *context,
                                    pawl_error *reterr)
{
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };
    uint64_t rows;

    TRY(ask(base, id.len > 0 ? LEDGER_SQL_BY_ID : LEDGER_SQL_BY_OFFSET, &asked, reterr));
    if (id.len > 0) {
        pawl__sqlite_bind_text(&asked.stmt, 1, id);
    } else {
        pawl__sqlite_bind_i64(&asked.stmt, 1, clamped(offset));
    }
    TRY(each_row(&asked.stmt, sink, context, &rows, reterr));
    return rows > 0     ? PAWL_OK
           : id.len > 0 ? pawl__ledger_fail_no_id(id, reterr)
                        : pawl__ledger_fail_no_offset(offset, reterr);
}

/* NOT_FOUND when the number is NULL, because no event was there to take it of. */
pawl_status pawl__ledger_sqlite_turn_of(struct ledger_backend *base,
                                        enum ledger_which_turn which,
                                        pawl_view run_id,
                                        int64_t *ret_turn,
                                        pawl_error *reterr)
{
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };
    bool highest = which == LEDGER_TURN_HIGHEST;
    bool row;

    TRY(ask(base, highest ? LEDGER_SQL_MAX_TURN : LEDGER_SQL_LAST_COMPLETE, &asked, reterr));
    bind_name(&asked.stmt, 1, run_id);
    TRY(pawl__sqlite_next(&asked.stmt, &row, reterr));
    if (!row || pawl__sqlite_is_null(&asked.stmt, 0)) {
        return pawl__ledger_fail_no_turn(run_id, reterr);
    }
    *ret_turn = pawl__sqlite_i64(&asked.stmt, 0);
    return PAWL_OK;
}

pawl_status pawl__ledger_sqlite_counts(struct ledger_backend *base,
                                       pawl_count_by by,
                                       const pawl_event_filter *filter,
                                       pawl_count_visit visit,
                                       void *context,
                                       pawl_error *reterr)
{
    static const size_t statements[] = {
        [PAWL_COUNT_BY_RUN] = LEDGER_SQL_COUNT_RUN,
        [PAWL_COUNT_BY_KIND] = LEDGER_SQL_COUNT_KIND,
        [PAWL_COUNT_BY_ACTOR] = LEDGER_SQL_COUNT_ACTOR,
    };
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };
    struct pawl__sqlite_stmt *stmt = &asked.stmt;
    pawl_status status = PAWL_OK;
    struct filter_texts texts;

    TRY(ask(base, statements[by], &asked, reterr));
    bind_filter(stmt, 1, filter, &texts);
    for (bool wanted = true; wanted && pawl__sqlite_more(stmt, &status, reterr);) {
        const pawl_count count = { sizeof(count),
                                   pawl__sqlite_text(stmt, 0),
                                   (uint64_t)pawl__sqlite_i64(stmt, 1) };
        wanted = visit(context, &count);
    }
    return status;
}

static pawl_status each_turn(struct pawl__sqlite_stmt *stmt,
                             pawl_turn_visit visit,
                             void *context,
                             pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    for (bool wanted = true; wanted && pawl__sqlite_more(stmt, &status, reterr);) {
        pawl_turn_info info = {
            .size = sizeof(pawl_turn_info),
            .run_id = pawl__sqlite_text(stmt, 0),
            .turn = pawl__sqlite_i64(stmt, 1),
            .attempt = (uint32_t)pawl__sqlite_i64(stmt, 2),
            .state = (pawl_turn_state)pawl__sqlite_i64(stmt, 3),
            .begin_offset = (uint64_t)pawl__sqlite_i64(stmt, 4),
            .end_offset = (uint64_t)pawl__sqlite_i64(stmt, 5),
        };
        wanted = visit(context, &info);
    }
    return status;
}

pawl_status pawl__ledger_sqlite_turns(struct ledger_backend *base,
                                      pawl_view run_id,
                                      uint64_t from,
                                      pawl_turn_visit visit,
                                      void *context,
                                      pawl_error *reterr)
{
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };

    TRY(ask(base, LEDGER_SQL_TURNS, &asked, reterr));
    bind_name(&asked.stmt, 1, run_id);
    pawl__sqlite_bind_i64(
        &asked.stmt, 2, from == 0 ? INT64_MIN : (int64_t)MIN(from, (uint64_t)INT64_MAX));
    return each_turn(&asked.stmt, visit, context, reterr);
}

pawl_status pawl__ledger_sqlite_open_turns(struct ledger_backend *base,
                                           pawl_turn_visit visit,
                                           void *context,
                                           pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset)
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(of(base)->writer, LEDGER_SQL_TURNS_UNFINISHED);

    pawl__sqlite_bind_i64(&stmt, 1, INT64_MAX);
    return each_turn(&stmt, visit, context, reterr);
}

pawl_status pawl__ledger_sqlite_unfinished(struct ledger_backend *base,
                                           uint64_t since,
                                           pawl_turn_visit visit,
                                           void *context,
                                           pawl_error *reterr)
{
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };

    TRY(ask(base, LEDGER_SQL_TURNS_UNFINISHED, &asked, reterr));
    pawl__sqlite_bind_i64(&asked.stmt, 1, clamped(since));
    return each_turn(&asked.stmt, visit, context, reterr);
}

pawl_status pawl__ledger_sqlite_embeddings(struct ledger_backend *base,
                                           const pawl_event_filter *filter,
                                           ledger_vector_sink visit,
                                           void *context,
                                           pawl_error *reterr)
{
    AUTO(pawl__sqlite_asked) struct pawl__sqlite_question asked = { 0 };
    struct pawl__sqlite_stmt *stmt = &asked.stmt;
    pawl_status status = PAWL_OK;
    struct filter_texts texts;

    TRY(ask(base,
            filter == NULL ? LEDGER_SQL_EMBEDDINGS : LEDGER_SQL_EMBEDDINGS_FILTER,
            &asked,
            reterr));
    if (filter != NULL) {
        bind_filter(stmt, 1, filter, &texts);
    }
    while (pawl__sqlite_more(stmt, &status, reterr)) {
        TRY(visit(
            context, (uint64_t)pawl__sqlite_i64(stmt, 0), pawl__sqlite_blob(stmt, 1), reterr));
    }
    return status;
}
