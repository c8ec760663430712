#include "lib/sink_fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/os/failpoint.h"

static bool choose_duckdb;

void sink_fixture_choose(const char *kind)
{
    choose_duckdb = strcmp(kind, "duckdb") == 0;
}

void sink_open(struct sink_fixture *f)
{
    if (!f->is_duckdb) {
        f->sink = &f->memory.base;
        return;
    }
    assert_ok(pawl__delivery_duckdb_open(&f->options, &f->file, &f->opened, &f->error), &f->error);
    assert_ok(pawl__delivery_duckdb_sink(f->file, "orders", f->mapping, &f->sink, &f->error),
              &f->error);
}

void sink_close(struct sink_fixture *f)
{
    if (f->sink != NULL) {
        f->sink->ops->close(STEAL(f->sink));
    }
    pawl__delivery_duckdb_close(STEAL(f->file));
}

int sink_fixture_open(void **state)
{
    static struct sink_fixture f;
    const struct delivery_uuid sink_id = { { 7, 7, 7 } };

    memset(&f, 0, sizeof(f));
    f.is_duckdb = choose_duckdb;
    f.memory = pawl__delivery_memory_sink(&sink_id, NULL);
    if (tempdir_make(f.dir, "pawl-sink", &f.error) != PAWL_OK) {
        return -1;
    }
    snprintf(f.path, sizeof(f.path), "%s/events.db", f.dir);
    f.options = (struct delivery_duckdb_options){
        .path = f.path,
        .duck = { .threads = 1, .memory_bytes_max = 256 << 20 },
    };
    f.cursor = (struct delivery_cursor){ .wal_id = { { 1, 2, 3 } }, .epoch = 1, .fence = 5 };
    sink_open(&f);
    *state = &f;
    return 0;
}

int sink_fixture_close(void **state)
{
    struct sink_fixture *f = *state;
    pawl_status status = pawl__failpoint_set(NULL, NULL);

    sink_close(f);
    pawl__delivery_memory_sink_done(&f->memory);
    tempdir_remove(f->dir);
    return status == PAWL_OK ? 0 : -1;
}

struct delivery_key sink_key(uint64_t n)
{
    struct delivery_key key = { .key = { { 0xab } }, .payload_hash = { { 0xcd } } };

    memcpy(&key.key.bytes[8], &n, sizeof(n));
    memcpy(&key.payload_hash.bytes[8], &n, sizeof(n));
    return key;
}

struct delivery_outcome *sink_add_bytes(struct sink_fixture *f,
                                        uint64_t n,
                                        enum delivery_outcome_kind kind,
                                        pawl_view payload)
{
    size_t i = f->transaction.count++;
    struct delivery_key key = sink_key(n);

    assert_true(i < SINK_ENTRIES_MAX);
    snprintf(f->ids[i], sizeof(f->ids[i]), "shop:order-%llu:0", (unsigned long long)n);
    f->entries[i] = (struct delivery_entry){
        .lsn = n,
        .key = key.key,
        .payload_hash = key.payload_hash,
        .place = { .created_ns = 100, .sequence = n, .stored_ns = (int64_t)n * 10 },
        .created_us = INT64_C(1769682030123456),
        .transaction_id = pawl_view_of(f->ids[i]),
        .source = pawl_view_of("shop"),
        .event_id = pawl_view_of("order"),
        .subject = pawl_view_of("orders.new"),
        .payload = payload,
    };
    f->outcomes[i] = (struct delivery_outcome){
        .entry = &f->entries[i],
        .kind = kind,
        .exception = { .lsn = n, .sequence = n, .first_failed_running_ns = -1 },
        .reason = kind == DELIVERY_TO_FAILED ? "rejected" : NULL,
        .error = "",
    };
    return &f->outcomes[i];
}

struct delivery_outcome *sink_add(struct sink_fixture *f,
                                  uint64_t n,
                                  enum delivery_outcome_kind kind,
                                  const char *payload)
{
    return sink_add_bytes(f, n, kind, pawl_view_of(payload));
}

void sink_clear(struct sink_fixture *f)
{
    f->transaction = (struct delivery_transaction){ .outcomes = f->outcomes };
}

pawl_status sink_try(struct sink_fixture *f)
{
    struct delivery_cursor next = f->cursor;

    f->transaction.outcomes = f->outcomes;
    next.version++;
    next.counters.accepted += f->transaction.count;
    for (size_t i = 0; i < f->transaction.count; i++) {
        next.applied = MAX(next.applied, f->entries[i].lsn);
        next.counters.delivered += f->outcomes[i].kind == DELIVERY_ROW;
        next.counters.filtered += f->outcomes[i].kind == DELIVERY_FILTERED;
        next.counters.failed += f->outcomes[i].kind == DELIVERY_TO_FAILED;
    }
    next.stream = (struct delivery_place){ 100, next.applied, (int64_t)next.applied * 10 };
    next.running_ns += 1000;
    f->transaction.cursor = next;
    pawl_status status = f->sink->ops->apply(f->sink, &f->transaction, &f->error);
    if (status == PAWL_OK) {
        f->cursor = next;
    }
    return status;
}

void sink_commit(struct sink_fixture *f)
{
    assert_ok(sink_try(f), &f->error);
    sink_clear(f);
}

struct delivery_known sink_find(struct sink_fixture *f, uint64_t n)
{
    struct delivery_key key = sink_key(n);
    struct delivery_known known;

    assert_ok(f->sink->ops->lookup(f->sink, &key, 1, &known, &f->error), &f->error);
    if (known.found) {
        assert_memory_equal(&known.payload_hash, &key.payload_hash, sizeof(key.payload_hash));
    }
    return known;
}

struct delivery_cursor sink_cursor(struct sink_fixture *f)
{
    struct delivery_cursor cursor;
    bool is_found = false;

    assert_ok(f->sink->ops->read_cursor(f->sink, &cursor, &is_found, &f->error), &f->error);
    return is_found ? cursor : (struct delivery_cursor){ .epoch = 0 };
}

static pawl_status count_key(void *context, const struct delivery_key *key, pawl_error *reterr)
{
    (void)key;
    (void)reterr;
    ++*(size_t *)context;
    return PAWL_OK;
}

size_t sink_count_keys(struct sink_fixture *f)
{
    size_t count = 0;

    assert_ok(f->sink->ops->each_key(f->sink, count_key, &count, &f->error), &f->error);
    return count;
}

struct delivery_verdict sink_judge(struct sink_fixture *f, pawl_view payload)
{
    struct delivery_verdict verdict;

    sink_add_bytes(f, 1, DELIVERY_ROW, payload);
    assert_ok(f->sink->ops->validate(f->sink, &f->entries[0], 1, &verdict, &f->error), &f->error);
    sink_clear(f);
    return verdict;
}

/* On the file itself, while the sink has it closed. */
const char *sink_sql(struct sink_fixture *f, const char *sql)
{
    static char text[4096];
    AUTO(pawl__duck_close_p) struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;
    struct pawl__duck_rows *rows = NULL;
    char query[1024];

    sink_close(f);
    snprintf(query, sizeof(query), "SELECT CAST(q AS VARCHAR) FROM (%s) AS t(q)", sql);
    assert_ok(pawl__duck_open(f->path, &f->options.duck, &db, &f->error), &f->error);
    assert_ok(pawl__duck_connect(db, &conn, &f->error), &f->error);
    assert_ok(pawl__duck_query_text(conn, query, DUCK_NO_ARGS, &rows, &f->error), &f->error);
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    assert_true(pawl__duck_has_row(rows));
    snprintf(text,
             sizeof(text),
             "%.*s",
             VIEW_ARGS(pawl__duck_is_null(rows, 0) ? pawl_view_of("NULL")
                                                   : pawl__duck_get_text(rows, 0)));
    pawl__duck_rows_free(rows);
    pawl__duck_disconnect(conn);
    pawl__duck_close(STEAL(db));
    sink_open(f);
    return text;
}
