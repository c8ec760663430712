/* The SQLite wrapper on the real engine: opening, statements, transactions, maintenance. */
#include "lib/check.h"

#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/thread/thread.h"
#include "lib/sqlite_probe.h"
#include "lib/virtual_clock.h"
#include "store/schemas.h"
#include "store/sqlite/internal.h"
#include "test_schemas.h"

static void test_a_new_store_is_private_and_set_up_our_way(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    struct stat info;
    char wal[128];

    assert_int_equal(stat(probe->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    snprintf(wal, sizeof(wal), "%s-wal", probe->path);
    assert_int_equal(stat(wal, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    pawl__sqlite_close(db);

    assert_int_equal(probe_pragma(probe, "PRAGMA synchronous"), 2); /* FULL */
    assert_int_equal(probe_pragma(probe, "PRAGMA foreign_keys"), 1);
    assert_int_equal(probe_pragma(probe, "PRAGMA trusted_schema"), 0);
    assert_int_equal(probe_pragma(probe, "PRAGMA cell_size_check"), 1);
    assert_int_equal(probe_pragma(probe, "PRAGMA application_id"), PROBE_APPLICATION_ID);
    assert_int_equal(
        probe_pragma(probe, "SELECT count(*) FROM schema_version WHERE version = '0.30.0'"), 2);
    probe->options.sync_normal = true;
    probe->options.cache_kib = 4096;
    probe->options.mmap_bytes = 1 << 20;
    assert_int_equal(probe_pragma(probe, "PRAGMA synchronous"), 1);
    assert_int_equal(probe_pragma(probe, "PRAGMA cache_size"), -4096);
    assert_int_equal(probe_pragma(probe, "PRAGMA mmap_size"), 1 << 20);
    probe->options.unsafe_skip_sync = true;
    assert_int_equal(probe_pragma(probe, "PRAGMA synchronous"), 0);
}

static void test_what_is_decided_at_creation_stays(void **state)
{
    struct probe *probe = *state;

    probe->options.incremental_vacuum = true;
    probe->options.temp_in_memory = true;
    assert_int_equal(probe_pragma(probe, "PRAGMA auto_vacuum"), 2); /* INCREMENTAL */
    assert_int_equal(probe_pragma(probe, "PRAGMA temp_store"), 2);  /* MEMORY */
    probe->options.incremental_vacuum = false;
    probe->options.temp_in_memory = false;
    assert_int_equal(probe_pragma(probe, "PRAGMA auto_vacuum"), 2);
    assert_int_equal(probe_pragma(probe, "PRAGMA temp_store"), 0);
}

static void test_a_migrated_text_arrives_as_it_was_written(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    struct pawl__sqlite_stmt get = pawl__sqlite_use(db, PROBE_GET);
    pawl_error error = PAWL_ERROR_INIT;
    bool row = false;

    pawl__sqlite_bind_i64(&get, 1, 1);
    assert_ok(pawl__sqlite_next(&get, &row, &error), &error);
    assert_string_equal(pawl__sqlite_text(&get, 0).data, "what?\?=' \"é\\n\" /* ; */");
    pawl__sqlite_reset(&get);
    pawl__sqlite_close(db);
}

static void put_all(
    struct pawl__sqlite *db, int64_t id, pawl_view name, pawl_view body, double size)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt put = pawl__sqlite_use(db, PROBE_PUT_ALL);
    pawl_error error = PAWL_ERROR_INIT;

    pawl__sqlite_bind_i64(&put, 1, id);
    pawl__sqlite_bind_text(&put, 2, name);
    pawl__sqlite_bind_blob(&put, 3, body);
    pawl__sqlite_bind_double(&put, 4, size);
    assert_ok(pawl__sqlite_run(&put, &error), &error);
    assert_int_equal(pawl__sqlite_changes(db), 1);
}

static void test_values_come_back_as_they_were_bound(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;
    const int64_t ids[] = { INT64_MIN, INT64_MAX, 0 };
    const pawl_view names[] = { { "a\0b", 3 }, { "é", 2 }, { NULL, 0 } };
    bool row = false;

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        put_all(db, ids[i], names[i], names[i], DBL_MAX);
        AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt get = pawl__sqlite_use(db, PROBE_GET);
        pawl__sqlite_bind_i64(&get, 1, ids[i]);
        assert_ok(pawl__sqlite_next(&get, &row, &error), &error);
        assert_true(row);
        assert_int_equal(pawl__sqlite_text(&get, 0).len, names[i].len);
        assert_false(pawl__sqlite_is_null(&get, 0)); /* empty is not NULL */
        assert_false(pawl__sqlite_is_null(&get, 1));
        assert_int_equal(pawl__sqlite_blob(&get, 1).len, names[i].len);
        if (names[i].len > 0) {
            assert_memory_equal(pawl__sqlite_text(&get, 0).data, names[i].data, names[i].len);
            assert_memory_equal(pawl__sqlite_blob(&get, 1).data, names[i].data, names[i].len);
        }
        assert_true(pawl__sqlite_double(&get, 2) == DBL_MAX);
        assert_ok(pawl__sqlite_next(&get, &row, &error), &error);
        assert_false(row);
    }
    pawl__sqlite_close(db);
}

static void test_null_is_told_from_empty(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;
    bool row = false;

    {
        AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt put = pawl__sqlite_use(db, PROBE_PUT_ALL);
        pawl__sqlite_bind_i64(&put, 1, 7);
        pawl__sqlite_bind_text(&put, 2, pawl_view_of("x"));
        pawl__sqlite_bind_null(&put, 3);
        assert_ok(pawl__sqlite_run(&put, &error), &error); /* 4 was never bound: NULL */
    }
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt get = pawl__sqlite_use(db, PROBE_GET);
    pawl__sqlite_bind_i64(&get, 1, 7);
    assert_ok(pawl__sqlite_next(&get, &row, &error), &error);
    assert_true(pawl__sqlite_is_null(&get, 1));
    assert_true(pawl__sqlite_is_null(&get, 2));
    assert_null(pawl__sqlite_text(&get, 1).data);
    assert_int_equal(pawl__sqlite_i64(&get, 2), 0);
    pawl__sqlite_reset(&get);
    pawl__sqlite_close(db);
}

static void test_a_wrong_parameter_is_reported_by_the_step(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__sqlite_stmt put = pawl__sqlite_use(db, PROBE_PUT);

    pawl__sqlite_bind_text(&put, 1, pawl_view_of("x"));
    pawl__sqlite_bind_i64(&put, 2, 1);
    assert_status(pawl__sqlite_run(&put, &error), PAWL_FAILED, &error);
    assert_int_equal(error.native, SQLITE_RANGE);
    pawl__sqlite_reset(&put);
    struct pawl__sqlite_stmt rows = pawl__sqlite_use(db, PROBE_ROWS);
    assert_status(pawl__sqlite_run(&rows, &error), PAWL_FAILED, &error);
    assert_message(&error, "rows from a statement that gives none");
    pawl__sqlite_reset(&rows);
    assert_rows(db, 1);
    pawl__sqlite_close(db);
}

static void test_a_reset_forgets_what_was_bound(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(probe_put(db, "x", &error), &error);
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt put = pawl__sqlite_use(db, PROBE_PUT);
    assert_status(pawl__sqlite_run(&put, &error), PAWL_CONFLICT, &error);
    assert_int_equal(error.native, SQLITE_CONSTRAINT_NOTNULL);
    pawl__sqlite_reset(&put);
    pawl__sqlite_close(db);
}

static void test_a_bad_statement_table_fails_at_open(void **state)
{
    struct probe *probe = *state;
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        { "SELECT nmae FROM probe", "no such column: nmae" },
        { "SELECT \"name FROM probe", "unrecognized token" },
        { "SELECT 1 WHERE \"text\" = 'x'", "no such column" },
        { "SELECT 1; SELECT 2", "not one statement" },
        { "-- nothing", "not one statement" },
        { NULL, "statement 1 has no text" },
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *const table[] = { "SELECT 1;\n", bad[i].text };
        struct pawl__sqlite *db = NULL;
        pawl_error error = PAWL_ERROR_INIT;

        probe->options.statements = table;
        probe->options.statement_count = COUNT_OF(table);
        assert_status(
            pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_FAILED, &error);
        assert_message(&error, bad[i].says);
        assert_message(&error, "statement");
        assert_null(db);
    }
}

static void test_a_missing_or_empty_store_is_not_found(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    for (int mode = PAWL__SQLITE_MUST_EXIST; mode <= PAWL__SQLITE_READ_ONLY; mode++) {
        probe->options.mode = (enum pawl__sqlite_mode)mode;
        assert_status(
            pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_NOT_FOUND, &error);
        assert_int_equal(access(probe->path, F_OK), -1); /* and not created */
    }
    file_write(probe->path, "", 0);
    for (int mode = PAWL__SQLITE_MUST_EXIST; mode <= PAWL__SQLITE_READ_ONLY; mode++) {
        probe->options.mode = (enum pawl__sqlite_mode)mode;
        assert_status(
            pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_NOT_FOUND, &error);
    }
    assert_status(pawl__sqlite_open("", &probe->options, &db, &error), PAWL_INVALID, &error);
    assert_status(
        pawl__sqlite_open(probe->dir, &probe->options, &db, &error), PAWL_INVALID, &error);
    assert_null(db);
    probe->options.mode = PAWL__SQLITE_CREATE; /* what a crash right after the creation leaves */
    db = probe_open(probe);
    assert_rows(db, 1);
    pawl__sqlite_close(db);
}

static void test_a_read_only_handle_reads_and_does_not_write(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *writer = probe_open(probe);
    pawl_error error = PAWL_ERROR_INIT;

    probe->options.mode = PAWL__SQLITE_READ_ONLY;
    struct pawl__sqlite *reader = probe_open(probe);
    assert_rows(reader, 1);
    assert_ok(probe_put_committed(writer, "x", &error), &error);
    assert_rows(reader, 2); /* what another handle committed */
    assert_status(probe_put(reader, "y", &error), PAWL_DENIED, &error);
    pawl__sqlite_close(reader);
    pawl__sqlite_close(writer);
    reader = probe_open(probe); /* with no writer around */
    assert_rows(reader, 2);
    pawl__sqlite_close(reader);
}

static void test_special_names_of_sqlite_are_files_here(void **state)
{
    struct probe *probe = *state;
    static const char *const names[] = { ":memory:", "file:x?mode=memory", "file::memory:" };
    char before[PATH_MAX];

    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(probe->dir), 0);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct pawl__sqlite *db = NULL;
        pawl_error error = PAWL_ERROR_INIT;

        assert_ok(pawl__sqlite_open(names[i], &probe->options, &db, &error), &error);
        pawl__sqlite_close(db);
        assert_int_equal(access(names[i], F_OK), 0);
    }
    assert_int_equal(chdir(before), 0);
}

/* Opens in every mode; each must fail with `expected` and leave the file as it was. */
static void assert_refused(struct probe *probe, pawl_status expected, const char *says)
{
    size_t size = 0;
    char *before = file_read(probe->path, &size);
    char wal[128];

    snprintf(wal, sizeof(wal), "%s-wal", probe->path);
    for (int mode = PAWL__SQLITE_CREATE; mode <= PAWL__SQLITE_READ_ONLY; mode++) {
        struct pawl__sqlite *db = NULL;
        pawl_error error = PAWL_ERROR_INIT;
        size_t size_after = 0;

        probe->options.mode = (enum pawl__sqlite_mode)mode;
        assert_status(
            pawl__sqlite_open(probe->path, &probe->options, &db, &error), expected, &error);
        assert_message(&error, says);
        assert_message(&error, probe->path);
        assert_null(db);
        char *after = file_read(probe->path, &size_after);
        assert_int_equal(size_after, size);
        assert_memory_equal(after, before, size);
        free(after);
        if (mode != PAWL__SQLITE_READ_ONLY) { /* a reader may not clear its empty log away */
            assert_int_equal(access(wal, F_OK), -1);
        }
    }
    free(before);
}

static void make_foreign(const char *path, const char *sql)
{
    sqlite3 *native = NULL;

    assert_int_equal(sqlite3_open(path, &native), SQLITE_OK);
    assert_int_equal(sqlite3_exec(native, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(native), SQLITE_OK);
}

static void test_a_database_of_others_is_refused_and_not_touched(void **state)
{
    struct probe *probe = *state;

    make_foreign(probe->path, "CREATE TABLE bookmarks (url)");
    assert_refused(probe, PAWL_INVALID, "application id 0x00000000 instead of 0x7061776c");
    assert_int_equal(unlink(probe->path), 0);
    make_foreign(probe->path, "PRAGMA application_id=252006673"); /* even without tables */
    assert_refused(probe, PAWL_INVALID, "not this store (application id 0x0f055111");
}

static void test_what_is_no_database_is_refused_and_not_touched(void **state)
{
    struct probe *probe = *state;
    char garbage[8192];

    memset(garbage, 'x', sizeof(garbage));
    file_write(probe->path, garbage, sizeof(garbage));
    assert_refused(probe, PAWL_CORRUPT, "file is not a database");
    file_write(probe->path, "hello\n", 6);
    assert_refused(probe, PAWL_CORRUPT, "file is not a database");
}

static void test_a_newer_schema_is_refused_and_not_touched(void **state)
{
    struct probe *probe = *state;
    const struct pawl__schema older = { .component = "probe",
                                        .migrations = pawl__schema_sqlite_probe.migrations,
                                        .count = 2 };

    pawl__sqlite_close(probe_open(probe));
    probe->options.schema = &older;
    assert_refused(probe,
                   PAWL_UNSUPPORTED,
                   "'probe' is version 0.31.0 (migration 3), this program knows version 0.30.0");
}

static void test_an_older_schema_is_migrated_but_not_by_a_reader(void **state)
{
    struct probe *probe = *state;
    const struct pawl__schema older = { .component = "probe",
                                        .migrations = pawl__schema_sqlite_probe.migrations,
                                        .count = 1 };
    struct pawl__sqlite *db = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__sqlite_options options = probe->options;

    options.schema = &older;
    options.statement_count = 0;
    assert_ok(pawl__sqlite_open(probe->path, &options, &db, &error), &error);
    pawl__sqlite_close(db);
    probe->options.mode = PAWL__SQLITE_READ_ONLY;
    assert_status(
        pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_UNSUPPORTED, &error);
    assert_message(&error, "2 migrations behind version 0.31.0");
    probe->options.mode = PAWL__SQLITE_MUST_EXIST;
    pawl__sqlite_close(probe_open(probe));
    assert_int_equal(probe_pragma(probe, "SELECT count(*) FROM schema_version"), 3);
}

static void test_a_failing_migration_leaves_the_old_schema(void **state)
{
    struct probe *probe = *state;
    const struct pawl__migration bad[] = {
        pawl__schema_sqlite_probe.migrations[0],
        { 2, "0.31.0", "half", "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);" },
        { 3, "0.31.0", "ends", "CREATE TABLE half (x); COMMIT; CREATE TABLE rest (x);" },
    };
    struct pawl__schema schema = { .component = "probe", .migrations = bad, .count = 1 };
    struct pawl__sqlite *db = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    probe->options.statement_count = 0;
    probe->options.schema = &schema;
    pawl__sqlite_close(probe_open(probe));
    schema.count = 2;
    assert_status(
        pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_FAILED, &error);
    assert_message(&error, "migrate 'probe': migration 2 'half': ");
    assert_message(&error, "no such table: nowhere");
    schema.count = 1;
    assert_int_equal(probe_pragma(probe, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"),
                     0);
    assert_int_equal(probe_pragma(probe, "SELECT max(migration) FROM schema_version"), 1);
}

static void test_a_broken_constraint_is_a_conflict_that_names_it(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(probe_put(db, "x", &error), &error);
    assert_status(probe_put(db, "x", &error), PAWL_CONFLICT, &error);
    assert_message(&error, "probe.name");
    assert_int_equal(error.native, SQLITE_CONSTRAINT_UNIQUE);
    assert_false(error.retryable);

    struct pawl__sqlite_stmt put = pawl__sqlite_use(db, PROBE_PUT_ALL);
    pawl__sqlite_bind_text(&put, 2, pawl_view_of("y"));
    pawl__sqlite_bind_double(&put, 4, -1);
    assert_status(pawl__sqlite_run(&put, &error), PAWL_CONFLICT, &error);
    assert_message(&error, "probe_size_positive");
    pawl__sqlite_reset(&put);

    struct pawl__sqlite_stmt child = pawl__sqlite_use(db, PROBE_PUT_CHILD);
    pawl__sqlite_bind_i64(&child, 1, 99);
    assert_status(pawl__sqlite_run(&child, &error), PAWL_CONFLICT, &error);
    assert_message(&error, "FOREIGN KEY");
    pawl__sqlite_reset(&child);

    child = pawl__sqlite_use(db, PROBE_PUT_CHILD);
    pawl__sqlite_bind_i64(&child, 1, 1);
    assert_ok(pawl__sqlite_run(&child, &error), &error);
    pawl__sqlite_reset(&child);
    struct pawl__sqlite_stmt drop = pawl__sqlite_use(db, PROBE_DROP_CHILDREN);
    assert_status(pawl__sqlite_run(&drop, &error), PAWL_CONFLICT, &error);
    assert_message(&error, "children stay");
    pawl__sqlite_reset(&drop);
    assert_rows(db, 2);
    pawl__sqlite_close(db);
}

static void test_a_transaction_is_all_or_nothing(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_true(pawl__sqlite_in_transaction(db));
    assert_ok(probe_put(db, "a", &error), &error);
    assert_status(probe_put(db, "a", &error), PAWL_CONFLICT, &error); /* the row, not the rest */
    assert_ok(probe_put(db, "b", &error), &error);
    assert_ok(pawl__sqlite_commit(db, &error), &error);
    assert_false(pawl__sqlite_in_transaction(db));
    assert_rows(db, 3);
    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_ok(probe_put(db, "c", &error), &error);
    pawl__sqlite_rollback(db);
    pawl__sqlite_rollback(db); /* nothing to do */
    assert_rows(db, 3);
    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_ok(probe_put(db, "d", &error), &error);
    pawl__sqlite_close(db); /* takes it back */
    db = probe_open(probe);
    assert_rows(db, 3);
    pawl__sqlite_close(db);
}

static void test_a_store_that_is_not_in_its_place_is_not_written(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    pawl_error error = PAWL_ERROR_INIT;
    char aside[128];

    snprintf(aside, sizeof(aside), "%s.aside", probe->path);
    assert_int_equal(rename(probe->path, aside), 0);
    assert_status(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), PAWL_IO, &error);
    assert_message(&error, "was moved, replaced or deleted");
    FILE *other = fopen(probe->path, "w");
    assert_non_null(other);
    fclose(other);
    assert_status(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), PAWL_IO, &error);
    assert_int_equal(rename(aside, probe->path), 0);
    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_ok(probe_put(db, "a", &error), &error);
    assert_ok(pawl__sqlite_commit(db, &error), &error);
    pawl__sqlite_close(db);
}

static void remove_beside(const struct probe *probe, const char *suffix)
{
    char path[128];

    snprintf(path, sizeof(path), "%s%s", probe->path, suffix);
    assert_int_equal(unlink(path), 0);
}

static void test_a_store_whose_log_was_removed_is_not_written(void **state)
{
    static const char *const suffixes[] = { "-wal", "-shm" };
    struct probe *probe = *state;

    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        struct pawl__sqlite *db = probe_open(probe);
        pawl_error error = PAWL_ERROR_INIT;

        assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
        assert_ok(pawl__sqlite_commit(db, &error), &error);
        remove_beside(probe, suffixes[i]);
        assert_status(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), PAWL_IO, &error);
        assert_message(&error, suffixes[i]);
        assert_message(&error, "was moved, replaced or deleted");
        pawl__sqlite_close(db);
    }
}

static void test_what_went_into_a_log_that_was_removed_is_not_acknowledged(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_ok(probe_put(db, "a", &error), &error);
    remove_beside(probe, "-wal");
    assert_status(pawl__sqlite_commit(db, &error), PAWL_IO, &error);
    assert_message(&error, "-wal' was moved, replaced or deleted");
    assert_false(pawl__sqlite_in_transaction(db));
    pawl__sqlite_close(db); /* and does not put it over what others may have stored since */
    db = probe_open(probe);
    assert_rows(db, 1); /* that of the schema */
    pawl__sqlite_close(db);
}

static void test_a_full_store_takes_the_transaction_back_as_a_whole(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;
    static char big[60000];

    memset(big, 'x', sizeof(big) - 1);
    assert_ok(pawl__sqlite_exec(db, "PRAGMA max_page_count=20", &error), &error);
    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_ok(probe_put(db, "a", &error), &error);
    assert_status(probe_put(db, big, &error), PAWL_NO_SPACE, &error);
    /* SQLite has rolled back: "b" alone would be committed at once, without "a". */
    assert_status(probe_put(db, "b", &error), PAWL_FAILED, &error);
    assert_message(&error, "roll it back and start again");
    assert_status(pawl__sqlite_commit(db, &error), PAWL_FAILED, &error);
    assert_rows(db, 1);
    assert_ok(probe_put_committed(db, "c", &error), &error);
    assert_rows(db, 2);
    pawl__sqlite_close(db);
}

static void test_a_writer_waits_as_long_as_it_was_told(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *holder = probe_open(probe);
    struct pawl__clock_virtual clock = pawl__clock_virtual_at(0, 0);
    pawl_error error = PAWL_ERROR_INIT;

    probe->options.clock = &clock.base;
    probe->options.busy_ms_max = 250;
    struct pawl__sqlite *waiter = probe_open(probe);
    assert_ok(pawl__sqlite_begin(holder, PAWL__SQLITE_IMMEDIATE, &error), &error);
    int64_t before = pawl__monotonic_ns(&clock.base);
    assert_status(pawl__sqlite_begin(waiter, PAWL__SQLITE_IMMEDIATE, &error), PAWL_BUSY, &error);
    assert_int_equal(pawl__monotonic_ns(&clock.base) - before, 250 * NS_PER_MS);
    assert_message(&error, "database is locked, waited 250 ms");
    assert_true(error.retryable);
    assert_int_equal(error.native, SQLITE_BUSY);
    assert_rows(waiter, 1); /* readers do not wait */
    pawl__sqlite_rollback(holder);
    assert_ok(probe_put_committed(waiter, "x", &error), &error);
    pawl__sqlite_close(waiter);
    pawl__sqlite_close(holder);
}

/* A virtual clock that remembers the longest sleep. */
struct napping {
    struct pawl__clock_virtual clock;
    struct pawl__clock_ops ops;
    const struct pawl__clock_ops *real;
    int64_t longest_ns;
};

static void nap_until(struct pawl__clock *clock, int64_t until_ns)
{
    struct napping *napping = (struct napping *)clock; /* its first member's first member */

    napping->longest_ns = MAX(napping->longest_ns, until_ns - napping->clock.now_ns);
    napping->real->sleep_until(clock, until_ns);
}

static int64_t longest_nap_ns(struct probe *probe, int64_t nap_ms_max)
{
    struct napping napping = { .clock = pawl__clock_virtual_at(0, 0) };
    pawl_error error = PAWL_ERROR_INIT;

    napping.real = napping.clock.base.ops;
    napping.ops = *napping.real;
    napping.ops.sleep_until = nap_until;
    napping.clock.base.ops = &napping.ops;
    probe->options.clock = &napping.clock.base;
    probe->options.busy_ms_max = 1000;
    probe->options.busy_nap_ms_max = nap_ms_max;
    struct pawl__sqlite *waiter = probe_open(probe);
    assert_status(pawl__sqlite_begin(waiter, PAWL__SQLITE_IMMEDIATE, &error), PAWL_BUSY, &error);
    assert_int_equal(napping.clock.now_ns, 1000 * NS_PER_MS);
    pawl__sqlite_close(waiter);
    return napping.longest_ns;
}

static void test_a_waiter_asks_as_often_as_it_was_told(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *holder = probe_open(probe);
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__sqlite_begin(holder, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_in_range(longest_nap_ns(probe, 0), 25 * NS_PER_MS, 50 * NS_PER_MS);
    assert_in_range(longest_nap_ns(probe, 1), NS_PER_MS / 2, NS_PER_MS);
    pawl__sqlite_rollback(holder);
    pawl__sqlite_close(holder);
}

static void test_creating_waits_for_another_who_is_creating(void **state)
{
    struct probe *probe = *state;
    struct pawl__clock_virtual clock = pawl__clock_virtual_at(0, 0);
    struct pawl__sqlite *db = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    sqlite3 *other = NULL;

    assert_int_equal(sqlite3_open(probe->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    probe->options.clock = &clock.base;
    probe->options.busy_ms_max = 100;
    assert_status(pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_BUSY, &error);
    assert_true(pawl__monotonic_ns(&clock.base) >= 100 * NS_PER_MS);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    pawl__sqlite_close(probe_open(probe));
}

static void test_a_stale_snapshot_cannot_write(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *one = probe_open(probe);
    struct pawl__sqlite *two = probe_open(probe);
    pawl_error error = PAWL_ERROR_INIT;
    int64_t before = 0;
    int64_t after = 0;

    assert_ok(pawl__sqlite_data_version(one, &before, &error), &error);
    assert_ok(pawl__sqlite_begin(one, PAWL__SQLITE_DEFERRED, &error), &error);
    assert_rows(one, 1);
    assert_ok(probe_put_committed(two, "x", &error), &error);
    assert_rows(one, 1); /* still its snapshot */
    assert_status(probe_put(one, "y", &error), PAWL_BUSY, &error);
    assert_int_equal(error.native, SQLITE_BUSY_SNAPSHOT);
    pawl__sqlite_rollback(one);
    assert_rows(one, 2);
    assert_ok(pawl__sqlite_data_version(one, &after, &error), &error);
    assert_int_not_equal(before, after);
    assert_ok(probe_put_committed(one, "y", &error), &error);
    assert_ok(pawl__sqlite_data_version(one, &before, &error), &error);
    assert_int_equal(before, after); /* our own commits are no news */
    pawl__sqlite_close(two);
    pawl__sqlite_close(one);
}

/* --- interrupts --- */

struct stopper {
    struct pawl__sqlite *db;
};

static void stop(void *context)
{
    struct stopper *stopper = context;

    pawl__sqlite_interrupt(stopper->db);
}

static void test_another_thread_stops_a_long_query(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    struct stopper stopper = { db };
    struct pawl__thread thread = { 0 };
    pawl_error error = PAWL_ERROR_INIT;
    bool row = false;

    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_ok(probe_put(db, "x", &error), &error);
    /* Whether the interrupt comes before or during the query makes no difference. */
    assert_ok(pawl__thread_start(&thread, "stop", stop, &stopper, &error), &error);
    struct pawl__sqlite_stmt forever = pawl__sqlite_use(db, PROBE_FOREVER);
    assert_status(pawl__sqlite_next(&forever, &row, &error), PAWL_CANCELLED, &error);
    pawl__sqlite_reset(&forever);
    pawl__thread_join(&thread);
    assert_status(probe_put(db, "y", &error), PAWL_CANCELLED, &error); /* it holds */
    assert_status(pawl__sqlite_commit(db, &error), PAWL_CANCELLED, &error);
    pawl__sqlite_interrupt_clear(db);
    assert_rows(db, 1);
    assert_ok(probe_put_committed(db, "z", &error), &error);
    pawl__sqlite_close(db);
}

static void test_another_thread_stops_a_wait(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *holder = probe_open(probe);
    struct pawl__thread thread = { 0 };
    pawl_error error = PAWL_ERROR_INIT;

    probe->options.busy_ms_max = INT64_C(3600) * 1000;
    struct pawl__sqlite *waiter = probe_open(probe);
    struct stopper stopper = { waiter };
    assert_ok(pawl__sqlite_begin(holder, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_ok(pawl__thread_start(&thread, "stop", stop, &stopper, &error), &error);
    pawl_status status = pawl__sqlite_begin(waiter, PAWL__SQLITE_IMMEDIATE, &error);
    pawl__thread_join(&thread);
    assert_status(status, PAWL_CANCELLED, &error);
    pawl__sqlite_close(waiter);
    pawl__sqlite_close(holder);
}

/* --- maintenance --- */

static off_t size_of(const char *path, const char *suffix)
{
    char name[128];
    struct stat info;

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &info) == 0 ? info.st_size : -1;
}

static void put_many(struct pawl__sqlite *db, const char *prefix, int count)
{
    pawl_error error = PAWL_ERROR_INIT;
    char name[32];

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%s-%d", prefix, i);
        assert_ok(probe_put_committed(db, name, &error), &error);
    }
}

static void test_commits_keep_the_log_short(void **state)
{
    struct probe *probe = *state;

    probe->options.unsafe_skip_sync = true; /* quicker; the log is the same */
    probe->options.wal_pages_max = 20;
    struct pawl__sqlite *db = probe_open(probe);
    put_many(db, "a", 300);
    assert_true(size_of(probe->path, "-wal") < (off_t)4200 * 40);
    pawl__sqlite_close(db);
    probe->options.wal_pages_max = 0;
    db = probe_open(probe);
    put_many(db, "b", 300);
    assert_true(size_of(probe->path, "-wal") > (off_t)4096 * 300);
    pawl__sqlite_close(db);
}

static void test_a_checkpoint_moves_the_log_into_the_file(void **state)
{
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;
    int left = -1;

    probe->options.busy_ms_max = 0;
    struct pawl__sqlite *db = probe_open(probe);
    struct pawl__sqlite *reader = probe_open(probe);
    put_many(db, "a", 10);
    assert_ok(pawl__sqlite_begin(reader, PAWL__SQLITE_DEFERRED, &error), &error);
    assert_rows(reader, 11);
    put_many(db, "b", 10);
    assert_ok(pawl__sqlite_checkpoint(db, PAWL__SQLITE_PASSIVE, &left, &error), &error);
    assert_true(left > 0); /* what the reader must not see yet */
    assert_status(
        pawl__sqlite_checkpoint(db, PAWL__SQLITE_TRUNCATE, &left, &error), PAWL_BUSY, &error);
    pawl__sqlite_rollback(reader);
    assert_ok(pawl__sqlite_checkpoint(db, PAWL__SQLITE_TRUNCATE, &left, &error), &error);
    assert_int_equal(left, 0);
    assert_int_equal(size_of(probe->path, "-wal"), 0);
    pawl__sqlite_close(reader);
    pawl__sqlite_close(db);
}

struct watcher {
    struct pawl__sqlite *writer;
    uint64_t last_done;
    int calls;
    bool went_back;
    int cancel_at;
};

static bool watch(void *context, uint64_t done_pages, uint64_t all_pages)
{
    struct watcher *watcher = context;
    char name[32];

    watcher->went_back = watcher->went_back || done_pages < watcher->last_done;
    watcher->last_done = done_pages;
    assert_true(done_pages <= all_pages);
    snprintf(name, sizeof(name), "during-%d", watcher->calls);
    if (probe_put_committed(watcher->writer, name, NULL) != PAWL_OK) {
        return false;
    }
    return ++watcher->calls != watcher->cancel_at;
}

static int64_t file_bytes(const struct probe *probe)
{
    struct stat info;

    assert_int_equal(stat(probe->path, &info), 0);
    return info.st_size;
}

static void test_free_space_is_given_back_when_the_file_was_made_for_it(void **state)
{
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;
    uint64_t bytes = 0;
    uint64_t given = 0;

    probe->options.incremental_vacuum = true;
    struct pawl__sqlite *db = probe_open(probe);
    assert_ok(pawl__sqlite_exec(db,
                                "CREATE TABLE big AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                                "SELECT i + 1 FROM n WHERE i < 500) SELECT randomblob(4000) FROM n;"
                                "DELETE FROM big",
                                &error),
              &error);
    assert_ok(pawl__sqlite_checkpoint(db, PAWL__SQLITE_TRUNCATE, NULL, &error), &error);
    int64_t before = file_bytes(probe);
    assert_ok(pawl__sqlite_free_bytes(db, &bytes, &error), &error);
    assert_true(bytes > UINT64_C(500) * 4000);
    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
    assert_ok(pawl__sqlite_give_back(db, 100, &given, &error), &error);
    assert_ok(pawl__sqlite_commit(db, &error), &error);
    assert_int_equal(given, 100 * 4096);
    assert_ok(pawl__sqlite_give_back(db, 100000, &given, &error), &error);
    assert_int_equal(given, bytes - UINT64_C(100) * 4096);
    assert_ok(pawl__sqlite_give_back(db, 100000, &given, &error), &error);
    assert_int_equal(given, 0);
    assert_ok(pawl__sqlite_checkpoint(db, PAWL__SQLITE_TRUNCATE, NULL, &error), &error);
    assert_true(file_bytes(probe) <= before - (int64_t)bytes);
    pawl__sqlite_close(db);
}

static void assert_no_question(struct pawl__sqlite *db, const char *sql)
{
    pawl_error error = PAWL_ERROR_INIT;
    bool exists = true;

    assert_status(pawl__sqlite_row_exists(db, sql, 10000, &exists, &error), PAWL_INVALID, &error);
    assert_true(exists); /* a failed call leaves its outputs alone */
}

static void test_a_question_can_only_read(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;
    bool exists = false;

    assert_ok(pawl__sqlite_row_exists(db, "SELECT 1", 10000, &exists, &error), &error);
    assert_true(exists);
    assert_ok(pawl__sqlite_row_exists(db, "SELECT 1 WHERE 1 = 2;", 10000, &exists, &error), &error);
    assert_false(exists);
    assert_no_question(db, "DELETE FROM schema_version");
    assert_no_question(db, "WITH x AS (SELECT 1) DELETE FROM schema_version");
    assert_no_question(db, "SELECT 1; DELETE FROM schema_version");
    assert_no_question(db, "ATTACH '/nowhere' AS other");
    assert_no_question(db, "PRAGMA user_version = 7");
    assert_no_question(db, "BEGIN");
    assert_no_question(db, "SELECT * FROM nothing_here");
    assert_no_question(db, "SELECT ?");
    assert_no_question(db, "nonsense");
    assert_no_question(db, "");
    assert_no_question(db, "SELECT abs(-9223372036854775807 - 1)");
    assert_status(pawl__sqlite_row_exists(db,
                                          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                                          "FROM n) SELECT 1 FROM n WHERE i < 0",
                                          20,
                                          &exists,
                                          &error),
                  PAWL_TIMEOUT,
                  &error);
    assert_ok(pawl__sqlite_exec(db, "PRAGMA user_version = 7", &error), &error);
    pawl__sqlite_close(db);
}

static void test_a_live_store_is_copied_as_it_was(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    struct watcher watcher = { .writer = probe_open(probe) };
    struct pawl__sqlite_backup_options options = { .step_pages = 1,
                                                   .progress = watch,
                                                   .context = &watcher };
    pawl_error error = PAWL_ERROR_INIT;
    struct probe copy = *probe;

    put_many(db, "a", 200);
    snprintf(copy.path, sizeof(copy.path), "%s/copy.sqlite", probe->dir);
    assert_ok(pawl__sqlite_backup(db, copy.path, &options, &error), &error);
    assert_true(watcher.calls > 3); /* it wrote in between, and the copy did not start again */
    assert_false(watcher.went_back);
    assert_rows(db, 201 + watcher.calls);
    assert_false(pawl__sqlite_in_transaction(db));

    struct stat info;
    assert_int_equal(stat(copy.path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    copy.options.mode = PAWL__SQLITE_MUST_EXIST;
    struct pawl__sqlite *copied = probe_open(&copy);
    assert_rows(copied, 201);
    assert_ok(pawl__sqlite_quick_check(copied, &error), &error);
    assert_ok(probe_put_committed(copied, "new", &error), &error); /* a store like any other */
    pawl__sqlite_close(copied);
    pawl__sqlite_close(watcher.writer);
    pawl__sqlite_close(db);
}

static void test_a_cancelled_copy_leaves_the_old_one(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    struct watcher watcher = { .writer = probe_open(probe), .cancel_at = 2 };
    struct pawl__sqlite_backup_options options = { .step_pages = 1,
                                                   .progress = watch,
                                                   .context = &watcher };
    pawl_error error = PAWL_ERROR_INIT;
    char copy[128];
    size_t size = 0;

    snprintf(copy, sizeof(copy), "%s/copy", probe->dir);
    file_write(copy, "old", 3);
    assert_status(pawl__sqlite_backup(db, copy, &options, &error), PAWL_CANCELLED, &error);
    char *bytes = file_read(copy, &size);
    assert_int_equal(size, 3);
    free(bytes);
    assert_status(
        pawl__sqlite_backup(db, "/nonexistent/copy", NULL, &error), PAWL_NOT_FOUND, &error);
    pawl__sqlite_interrupt(db);
    assert_status(pawl__sqlite_backup(db, copy, NULL, &error), PAWL_CANCELLED, &error);
    pawl__sqlite_interrupt_clear(db);
    assert_ok(pawl__sqlite_backup(db, copy, NULL, &error), &error);
    pawl__sqlite_close(watcher.writer);
    pawl__sqlite_close(db);

    char command[128]; /* no temporary file stays: probe.sqlite and copy */
    snprintf(command, sizeof(command), "test $(ls '%s' | wc -l) = 2", probe->dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a path of our own making */
}

/* --- what does not belong --- */

static void sabotage(struct probe *probe, const char *sql)
{
    sqlite3 *native = NULL;

    assert_int_equal(sqlite3_open(probe->path, &native), SQLITE_OK);
    assert_int_equal(sqlite3_exec(native, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(native), SQLITE_OK);
}

static void test_a_whole_schema_is_known_by_its_fingerprint(void **state)
{
    static const struct pawl__schema *const schemas[] = { &pawl__schema_sqlite_probe,
                                                          &pawl__schema_sqlite_ledger,
                                                          &pawl__schema_sqlite_work };
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;

    for (size_t i = 0; i < COUNT_OF(schemas); i++) {
        struct pawl__sqlite *db = NULL;
        struct pawl__sqlite_options options = probe->options;
        char path[sizeof(probe->path) + 8];

        snprintf(path, sizeof(path), "%s.%zu", probe->path, i);
        options.schema = schemas[i];
        options.statement_count = 0;
        assert_ok(pawl__sqlite_open(path, &options, &db, &error), &error);
        bool has = false;
        assert_ok(pawl__sqlite_has_fingerprint(db, &has, &error), &error);
        assert_true(has);
        assert_ok(pawl__sqlite_exec(db, "CREATE TABLE another (x)", &error), &error);
        assert_ok(pawl__sqlite_has_fingerprint(db, &has, &error), &error);
        assert_false(has);
        assert_ok(pawl__sqlite_check_schema(db, &error), &error); /* nobody's business */
        pawl__sqlite_close(db);
    }
}

static void test_a_trigger_planted_under_an_open_handle_is_refused(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    struct pawl__sqlite *other = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    sabotage(probe, "CREATE TRIGGER eve BEFORE INSERT ON probe BEGIN SELECT RAISE(IGNORE); END");
    assert_status(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), PAWL_CORRUPT, &error);
    assert_message(&error, "'eve' on 'probe'");
    assert_false(pawl__sqlite_in_transaction(db));
    assert_status(
        pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), PAWL_CORRUPT, &error); /* still */
    assert_status(
        pawl__sqlite_open(probe->path, &probe->options, &other, &error), PAWL_CORRUPT, &error);
    sabotage(probe, "DROP TRIGGER eve");
    assert_ok(probe_put_committed(db, "now", &error), &error);
    pawl__sqlite_close(db);
}

static void test_columns_and_indexes_of_others_are_accepted(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    struct pawl__sqlite *other = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    sabotage(probe,
             "ALTER TABLE probe ADD COLUMN mine TEXT;"
             "ALTER TABLE probe ADD COLUMN \"a, (b\" INTEGER NOT NULL DEFAULT 1 CHECK (1 <> 2);"
             "ALTER TABLE probe_child ADD COLUMN mine /* , */ TEXT;"
             "CREATE INDEX mine ON probe (mine)");
    assert_ok(probe_put_committed(db, "under an open handle", &error), &error);
    assert_ok(pawl__sqlite_open(probe->path, &probe->options, &other, &error), &error);
    assert_ok(probe_put_committed(other, "now", &error), &error);
    pawl__sqlite_close(other);
    pawl__sqlite_close(db);
}

/* `probe` made again, as it is but for what stands between the parentheses. */
static void remake(struct probe *probe, const char *columns)
{
    char sql[1024];

    snprintf(sql,
             sizeof(sql),
             "DROP TABLE probe; CREATE TABLE probe (%s); CREATE INDEX probe_note ON probe (note)",
             columns);
    sabotage(probe, sql);
}

static void test_a_change_of_our_columns_and_constraints_is_refused(void **state)
{
#define ID "id INTEGER PRIMARY KEY,"
#define NAMED "name TEXT NOT NULL CONSTRAINT probe_name_unique UNIQUE,"
#define SIZED "size REAL CONSTRAINT probe_size_positive CHECK (size IS NULL OR size > 0),"
    static const struct {
        const char *columns;
        const char *message; /* NULL: that is how it was */
    } cases[] = {
        { ID NAMED "body BLOB," SIZED "note TEXT", NULL },
        { ID NAMED "mine TEXT, body BLOB," SIZED "more TEXT DEFAULT 'x', note TEXT", NULL },
        { ID "name TEXT NOT NULL, body BLOB," SIZED "note TEXT", "restore" },
        { ID NAMED "body BLOB, size REAL, note TEXT", "restore" },
        { ID NAMED "body TEXT," SIZED "note TEXT", "restore" },
        { ID NAMED SIZED "note TEXT", "restore" },
        { ID NAMED "body BLOB," SIZED "note TEXT, mine TEXT NOT NULL", "to continue, remove that" },
        { ID NAMED "body BLOB," SIZED "note TEXT, mine TEXT UNIQUE ON CONFLICT REPLACE",
          "to continue, remove that" },
        { ID NAMED "body BLOB," SIZED "note TEXT, mine TEXT REFERENCES x ON DELETE CASCADE",
          "to continue, remove that" },
        { ID NAMED "body BLOB," SIZED "note TEXT, CHECK (id > 1)", "to continue, remove that" },
    };
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;

    pawl__sqlite_close(probe_open(probe));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pawl__sqlite *db = NULL;
        remake(probe, cases[i].columns);
        assert_status(pawl__sqlite_open(probe->path, &probe->options, &db, &error),
                      cases[i].message == NULL ? PAWL_OK : PAWL_CORRUPT,
                      &error);
        if (cases[i].message != NULL) {
            assert_message(&error, "'probe' is not the one that pawl made");
            assert_message(&error, cases[i].message);
        }
        pawl__sqlite_close(db);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, probe_setup, probe_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_whole_schema_is_known_by_its_fingerprint),
        CASE(test_a_trigger_planted_under_an_open_handle_is_refused),
        CASE(test_columns_and_indexes_of_others_are_accepted),
        CASE(test_a_change_of_our_columns_and_constraints_is_refused),
        CASE(test_a_new_store_is_private_and_set_up_our_way),
        CASE(test_what_is_decided_at_creation_stays),
        CASE(test_a_migrated_text_arrives_as_it_was_written),
        CASE(test_values_come_back_as_they_were_bound),
        CASE(test_null_is_told_from_empty),
        CASE(test_a_wrong_parameter_is_reported_by_the_step),
        CASE(test_a_reset_forgets_what_was_bound),
        CASE(test_a_bad_statement_table_fails_at_open),
        CASE(test_a_missing_or_empty_store_is_not_found),
        CASE(test_a_read_only_handle_reads_and_does_not_write),
        CASE(test_special_names_of_sqlite_are_files_here),
        CASE(test_a_database_of_others_is_refused_and_not_touched),
        CASE(test_what_is_no_database_is_refused_and_not_touched),
        CASE(test_a_newer_schema_is_refused_and_not_touched),
        CASE(test_an_older_schema_is_migrated_but_not_by_a_reader),
        CASE(test_a_failing_migration_leaves_the_old_schema),
        CASE(test_a_broken_constraint_is_a_conflict_that_names_it),
        CASE(test_a_transaction_is_all_or_nothing),
        CASE(test_a_store_that_is_not_in_its_place_is_not_written),
        CASE(test_a_store_whose_log_was_removed_is_not_written),
        CASE(test_what_went_into_a_log_that_was_removed_is_not_acknowledged),
        CASE(test_a_full_store_takes_the_transaction_back_as_a_whole),
        CASE(test_a_writer_waits_as_long_as_it_was_told),
        CASE(test_a_waiter_asks_as_often_as_it_was_told),
        CASE(test_creating_waits_for_another_who_is_creating),
        CASE(test_a_stale_snapshot_cannot_write),
        CASE(test_another_thread_stops_a_long_query),
        CASE(test_another_thread_stops_a_wait),
        CASE(test_commits_keep_the_log_short),
        CASE(test_a_checkpoint_moves_the_log_into_the_file),
        CASE(test_free_space_is_given_back_when_the_file_was_made_for_it),
        CASE(test_a_question_can_only_read),
        CASE(test_a_live_store_is_copied_as_it_was),
        CASE(test_a_cancelled_copy_leaves_the_old_one),
    };
    return cmocka_run_group_tests_name("sqlite", tests, NULL, NULL);
}
