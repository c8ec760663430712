/* A sink of each kind, for the contract of delivery/core/sink.h: memory or duckdb. */
#ifndef TESTS_SINK_FIXTURE_H
#define TESTS_SINK_FIXTURE_H

#include "delivery/duckdb/sink.h"
#include "delivery/memory/sink.h"
#include "lib/check.h"
#include "lib/tempdir.h"

enum { SINK_ENTRIES_MAX = 4096 };

struct sink_fixture {
    struct delivery_sink *sink;
    bool is_duckdb;
    struct delivery_memory_sink memory;
    struct delivery_duckdb_options options;
    struct delivery_duckdb_opened opened;
    struct delivery_duckdb_file *file;
    const struct delivery_mapping *mapping;
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 16];
    struct delivery_cursor cursor; /* as last committed */
    struct delivery_entry entries[SINK_ENTRIES_MAX];
    char ids[SINK_ENTRIES_MAX][32];
    struct delivery_outcome outcomes[SINK_ENTRIES_MAX];
    struct delivery_transaction transaction; /* the next one */
    pawl_error error;
};

void sink_fixture_choose(const char *kind); /* "memory", "duckdb" */
int sink_fixture_open(void **state);
int sink_fixture_close(void **state);
#define sink_test(function) \
    cmocka_unit_test_setup_teardown(function, sink_fixture_open, sink_fixture_close)

void sink_close(struct sink_fixture *f);
void sink_open(struct sink_fixture *f); /* what was in it is still there */

/* Adds event number `n` (LSN n, key n) to the next transaction. */
struct delivery_outcome *sink_add(struct sink_fixture *f,
                                  uint64_t n,
                                  enum delivery_outcome_kind kind,
                                  const char *payload);
struct delivery_outcome *sink_add_bytes(struct sink_fixture *f,
                                        uint64_t n,
                                        enum delivery_outcome_kind kind,
                                        pawl_view payload);

/* Commits what was added, with the next cursor row. sink_try leaves f->cursor alone unless it is OK. */
pawl_status sink_try(struct sink_fixture *f);
void sink_commit(struct sink_fixture *f);
/* Forgets what was added. */
void sink_clear(struct sink_fixture *f);

struct delivery_key sink_key(uint64_t n);
struct delivery_known sink_find(struct sink_fixture *f, uint64_t n);
struct delivery_cursor sink_cursor(struct sink_fixture *f); /* of the sink; zeroes: no row */
size_t sink_count_keys(struct sink_fixture *f);
struct delivery_verdict sink_judge(struct sink_fixture *f, pawl_view payload);

/* The first column of the first row, as SQL casts it to text; good until the next call. */
const char *sink_sql(struct sink_fixture *f, const char *sql);

#endif
