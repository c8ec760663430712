/* Imports never change a value: a number that is not whole is refused by the name of its field and
 * its row, whatever format it comes from, and what JSON lines may leave out, others may, too. */
#include "lib/ledger_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/os/clock.h"
#include "lib/file.h"
#include "store/duckdb/duckdb.h"

/* --- the files --- */

static const char *path_of(struct ledger_fixture *f, const char *name)
{
    static char path[TEMPDIR_SIZE + 64];

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    unlink(path);
    return path;
}

static const char *parquet_of(struct ledger_fixture *f, const char *select)
{
    const char *path = path_of(f, "events.parquet");
    AUTO(pawl__duck_close_p) struct pawl__duck *db = NULL;
    AUTO(pawl__duck_disconnect_p) struct pawl__duck_conn *conn = NULL;
    const char *const dirs[] = { f->dir };
    struct pawl__duck_options options = {
        .threads = 1, .allowed_dirs = dirs, .allowed_dir_count = 1, .unsafe_no_sync = true
    };
    struct pawl__buf sql = BUF_INIT(1 << 14);
    char file[TEMPDIR_SIZE + 64];

    snprintf(file, sizeof(file), "%s/make.duckdb", f->dir);
    pawl__buf_add_format(&sql, "COPY (%s) TO '%s' (FORMAT parquet)", select, path);
    assert_ok(pawl__duck_open(file, &options, &db, &f->err), &f->err);
    assert_ok(pawl__duck_connect(db, &conn, &f->err), &f->err);
    assert_ok(pawl__duck_script(conn, sql.data, &f->err), &f->err);
    pawl__buf_done(&sql);
    return path;
}

static const char *seed_of(struct ledger_fixture *f, const char *turn, const char *schema_version)
{
    const char *path = path_of(f, "seed.db");
    struct pawl__buf sql = BUF_INIT(1 << 14);
    sqlite3 *db = NULL;

    pawl__buf_add_format(
        &sql,
        "CREATE TABLE events (offset INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,"
        " run_id TEXT NOT NULL, turn INTEGER, kind TEXT NOT NULL, actor TEXT NOT NULL,"
        " payload TEXT NOT NULL, created_at TEXT NOT NULL, schema_version INTEGER DEFAULT 1);"
        "INSERT INTO events (id, run_id, turn, kind, actor, payload, created_at, schema_version)"
        " VALUES ('e', 'r', %s, 'k', 'a', '1', '2026-01-29T10:20:30Z', %s);",
        turn,
        schema_version);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql.data, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    pawl__buf_done(&sql);
    return path;
}

static const char *jsonl_of(struct ledger_fixture *f, const char *members)
{
    const char *path = path_of(f, "events.jsonl");
    char line[1024];

    snprintf(line,
             sizeof(line),
             "{\"id\":\"e\",\"run_id\":\"r\",\"kind\":\"k\",\"actor\":\"a\",\"payload\":1,%s}\n",
             members);
    file_write(path, line, strlen(line));
    return path;
}

/* --- what becomes of them --- */

static pawl_status import(struct ledger_fixture *f, const char *path, pawl_file_format format)
{
    return pawl_ledger_import(f->ledger, path, format, NULL, NULL, &f->err);
}

static void assert_refused(struct ledger_fixture *f,
                           const char *path,
                           pawl_file_format format,
                           const char *message)
{
    uint64_t before = latest_offset(f);

    assert_status(import(f, path, format), PAWL_INVALID, &f->err);
    assert_message(&f->err, message);
    assert_int_equal(latest_offset(f), before);
}

/* The newest event, which is to be freed. */
static pawl_event *newest(struct ledger_fixture *f)
{
    pawl_event *event = NULL;

    assert_ok(pawl_ledger_get(f->ledger, pawl_view_of(NULL), latest_offset(f), &event, &f->err),
              &f->err);
    return event;
}

#define NAMES "'r' AS run_id, 'k' AS kind, 'a' AS actor, '1' AS payload"

static void test_parquet_numbers_are_whole_or_refused(void **state)
{
    struct ledger_fixture *f = *state;
    static const struct {
        const char *field;
        const char *value;
        const char *problem; /* NULL: it is good */
        int64_t number;
    } cases[] = {
        { "turn", "1.5::DOUBLE", "row 1: turn: is 1.5, must be a whole number", 0 },
        { "turn", "1.5::FLOAT", "turn: is 1.5", 0 },
        { "turn", "1.5::DECIMAL(4,2)", "turn: is 1.50", 0 },
        { "turn", "9.9::DECIMAL(2,1)", "turn: is 9.9", 0 },
        { "turn", "'0.9999999999999999'::DOUBLE", "turn: is 0.9999999999999999", 0 },
        { "turn", "-0.5::DOUBLE", "turn: is -0.5", 0 },
        { "turn", "1e300::DOUBLE", "turn: is 1e+300", 0 },
        { "turn", "9223372036854775808::DOUBLE", "turn: is 9", 0 },
        { "turn", "'nan'::DOUBLE", "turn: is nan", 0 },
        { "turn", "'inf'::DOUBLE", "turn: is inf", 0 },
        { "turn", "18446744073709551615::UBIGINT", "turn: is 18446744073709551615", 0 },
        { "turn", "true", "turn: is a column of BOOLEAN, must be a whole number", 0 },
        { "turn", "'7'", "turn: is a column of VARCHAR", 0 },
        { "turn", "DATE '2026-01-29'", "turn: is a column of DATE", 0 },
        { "turn", "'\\x01'::BLOB", "turn: is a column of BLOB", 0 },
        { "turn", "-1", "turn: is -1, must be 0 or more", 0 },
        { "turn", "NULL::BIGINT", "turn: missing", 0 },
        { "turn", "NULL::DOUBLE", "turn: missing", 0 },
        { "schema_version", "2.5::DOUBLE", "schema_version: is 2.5", 0 },
        { "schema_version", "2147483648", "schema_version: is 2147483648", 0 },
        { "schema_version", "0", "schema_version: is 0", 0 },
        { "schema_version", "true", "schema_version: is a column of BOOLEAN", 0 },
        { "turn", "7::TINYINT", NULL, 7 },
        { "turn", "7.0::DOUBLE", NULL, 7 }, /* whole columns with a NULL become these elsewhere */
        { "turn", "7.00::DECIMAL(4,2)", NULL, 7 },
        { "turn", "9007199254740992::DOUBLE", NULL, INT64_C(9007199254740992) },
        { "turn", "9223372036854775807::BIGINT", NULL, INT64_MAX },
        { "schema_version", "3.0::DOUBLE", NULL, 3 },
        { "schema_version", "NULL::BIGINT", NULL, 1 },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char select[512];
        bool is_turn = strcmp(cases[i].field, "turn") == 0;
        snprintf(select,
                 sizeof(select),
                 "SELECT 'e-%zu' AS id, " NAMES ", %s AS %s%s",
                 i,
                 cases[i].value,
                 cases[i].field,
                 is_turn ? "" : ", 0 AS turn");
        if (cases[i].problem != NULL) {
            assert_refused(f, parquet_of(f, select), PAWL_FORMAT_PARQUET, cases[i].problem);
            continue;
        }
        assert_ok(import(f, parquet_of(f, select), PAWL_FORMAT_PARQUET), &f->err);
        pawl_event *event = newest(f);
        assert_int_equal(is_turn ? event->turn : event->schema_version, cases[i].number);
        pawl_event_free(event);
    }
}

static void test_parquet_times_are_kept_or_refused(void **state)
{
    struct ledger_fixture *f = *state;
    static const struct {
        const char *value;
        const char *problem;
        const char *time;
    } cases[] = {
        { "TIMESTAMP '2026-01-29 10:20:30.123456'", NULL, "2026-01-29T10:20:30.123456Z" },
        { "TIMESTAMPTZ '2026-01-29 10:20:30+02'", NULL, "2026-01-29T08:20:30.000000Z" },
        { "'2026-01-29 10:20:30.123'::TIMESTAMP_MS", NULL, "2026-01-29T10:20:30.123000Z" },
        { "'2026-01-29 10:20:30.123456999'::TIMESTAMP_NS", NULL, "2026-01-29T10:20:30.123456Z" },
        { "'1969-12-31 23:59:59.999999001'::TIMESTAMP_NS", NULL, "1969-12-31T23:59:59.999999Z" },
        { "DATE '2026-01-29'", NULL, "2026-01-29T00:00:00.000000Z" },
        { "'2026-01-29T10:20:30.5+02:00'", NULL, "2026-01-29T08:20:30.500000Z" },
        { "'yesterday'", "row 1: created_at: 'yesterday' is no time", NULL },
        { "TIMESTAMP 'infinity'", "created_at: 'infinity' is no time", NULL },
        { "TIME '10:20:30'", "created_at: is a column of TIME, must be a TIMESTAMP", NULL },
        { "INTERVAL 1 DAY", "created_at: is a column of INTERVAL", NULL },
        { "1769682030", "created_at: is a column of INTEGER", NULL },
        { "1769682030.5::DOUBLE", "created_at: is a column of DOUBLE", NULL },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char select[512];
        char text[PAWL__TIME_SIZE];
        snprintf(select,
                 sizeof(select),
                 "SELECT 'e-%zu' AS id, " NAMES ", 0 AS turn, %s AS created_at",
                 i,
                 cases[i].value);
        if (cases[i].problem != NULL) {
            assert_refused(f, parquet_of(f, select), PAWL_FORMAT_PARQUET, cases[i].problem);
            continue;
        }
        assert_ok(import(f, parquet_of(f, select), PAWL_FORMAT_PARQUET), &f->err);
        pawl_event *event = newest(f);
        pawl__time_rfc3339(event->created_at_us, text);
        assert_string_equal(text, cases[i].time);
        pawl_event_free(event);
    }
}

static void test_parquet_texts_are_taken_from_types_that_keep_them(void **state)
{
    struct ledger_fixture *f = *state;
    static const struct {
        const char *columns;
        const char *problem;
        const char *payload;
    } cases[] = {
        { "'a' AS id, '{\"b\": 1.50}' AS payload", NULL, "{\"b\": 1.50}" },
        { "7 AS id, 'true' AS payload", NULL, "true" },
        { "'c' AS id, 12 AS payload", NULL, "12" },
        { "'d' AS id, false AS payload", NULL, "false" },
        { "'e' AS id, 0.1::DOUBLE AS payload", NULL, "0.1" },
        { "1.5::DOUBLE AS id, '1' AS payload", "id: is a column of DOUBLE, must be text", NULL },
        { "'\\x01'::BLOB AS id, '1' AS payload", "id: is a column of BLOB, must be text", NULL },
        { "'f' AS id, {'a': 1} AS payload", "payload: is a column of STRUCT", NULL },
        { "'g' AS id, 0.1::FLOAT AS payload", "payload: is a column of FLOAT", NULL },
        { "'h' AS id, 'nan'::DOUBLE AS payload", "row 1: payload: ", NULL },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char select[512];
        snprintf(select,
                 sizeof(select),
                 "SELECT %s, 'r' AS run_id, 'k' AS kind, 'a' AS actor, 0 AS turn",
                 cases[i].columns);
        if (cases[i].problem != NULL) {
            assert_refused(f, parquet_of(f, select), PAWL_FORMAT_PARQUET, cases[i].problem);
            continue;
        }
        assert_ok(import(f, parquet_of(f, select), PAWL_FORMAT_PARQUET), &f->err);
        pawl_event *event = newest(f);
        assert_true(pawl__view_is(event->payload, cases[i].payload));
        pawl_event_free(event);
    }
}

static void test_columns_that_json_lines_may_leave_out_parquet_may_leave_out(void **state)
{
    struct ledger_fixture *f = *state;
    int64_t before_us = pawl__wall_us(pawl__clock_real());
    static const struct {
        const char *columns;
        const char *problem;
    } cases[] = {
        { "'e' AS id, 'k' AS kind, 'a' AS actor, '1' AS payload, 0 AS turn", "run_id: missing" },
        { "'r' AS run_id, 'k' AS kind, 'a' AS actor, '1' AS payload, 0 AS turn", "id: missing" },
        { "'e' AS id, " NAMES, "row 1: turn: missing" },
        { "'e' AS id, 'r' AS run_id, 'k' AS kind, 'a' AS actor, 0 AS turn", "payload: missing" },
        { "'k' AS kind", "turn: missing" },
    };

    assert_ok(
        import(f, parquet_of(f, "SELECT 'e' AS id, " NAMES ", 4 AS TURN"), PAWL_FORMAT_PARQUET),
        &f->err);
    pawl_event *event = newest(f);
    assert_int_equal(event->turn, 4);
    assert_int_equal(event->schema_version, 1);
    assert_true(event->created_at_us >= before_us
                && event->created_at_us <= pawl__wall_us(pawl__clock_real()));
    pawl_event_free(event);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char select[512];
        snprintf(select, sizeof(select), "SELECT %s", cases[i].columns);
        assert_refused(f, parquet_of(f, select), PAWL_FORMAT_PARQUET, cases[i].problem);
    }
}

static void test_a_column_that_is_no_field_is_refused_by_name(void **state)
{
    struct ledger_fixture *f = *state;
    static const char all[] = "SELECT 'e' AS id, " NAMES ", 4 AS turn, 9 AS \"offset\","
                              " '\\x01'::BLOB AS hash";
    static const struct {
        const char *column;
        const char *problem;
    } cases[] = {
        { "1 AS x", "'x' is no field of an event; the columns of an event are " },
        { "now() AS create_at", "'create_at' is no field of an event; did you mean 'created_at'?" },
        { "'1' AS payload_text", "'payload_text' is no field of an event" },
        { "5 AS \"Turn\"", "'Turn_1' is no field of an event" }, /* as DuckDB calls the second */
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char select[512];
        snprintf(select, sizeof(select), "%s, %s", all, cases[i].column);
        assert_refused(f, parquet_of(f, select), PAWL_FORMAT_PARQUET, cases[i].problem);
    }
    assert_ok(import(f, parquet_of(f, all), PAWL_FORMAT_PARQUET), &f->err);
}

static void test_json_lines_and_the_original_schema_do_not_round_either(void **state)
{
    struct ledger_fixture *f = *state;
    static const char *const members[] = {
        "\"turn\":1.5",
        "\"turn\":1.0",
        "\"turn\":0.99999999999999999999",
        "\"turn\":100000000000000000001e-20",
        "\"turn\":0,\"offset\":0.99999999999999999999",
        "\"turn\":0,\"schema_version\":1.00000000000000000001",
        "\"turn\":1e300",
        "\"turn\":9223372036854775808",
        "\"turn\":true",
        "\"turn\":\"7\"",
        "\"turn\":0,\"schema_version\":2.5",
        "\"turn\":0,\"schema_version\":true",
        "\"turn\":0,\"offset\":1.5",
        "\"turn\":0,\"created_at\":1769682030.5",
    };
    static const struct {
        const char *turn;
        const char *schema_version;
        const char *problem;
    } rows[] = {
        { "1.5", "1", "offset 1: turn: is '1.5', must be a whole number" },
        { "'many'", "1", "turn: is 'many'" },
        { "NULL", "1", "turn: missing" },
        { "1e300", "1", "turn: is " },
        { "x'01'", "1", "turn: is " },
        { "1", "2.5", "schema_version: is '2.5'" },
        { "1", "'two'", "schema_version: is 'two'" },
    };

    for (size_t i = 0; i < COUNT_OF(members); i++) {
        assert_refused(f, jsonl_of(f, members[i]), PAWL_FORMAT_JSONL, "line 1: ");
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_refused(f,
                       seed_of(f, rows[i].turn, rows[i].schema_version),
                       PAWL_FORMAT_SEED_SQLITE,
                       rows[i].problem);
    }
    assert_ok(import(f, seed_of(f, "7.0", "NULL"), PAWL_FORMAT_SEED_SQLITE), &f->err);
    pawl_event *event = newest(f);
    assert_int_equal(event->turn, 7);
    assert_int_equal(event->schema_version, 1);
    pawl_event_free(event);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LEDGER_TEST(test_parquet_numbers_are_whole_or_refused),
        LEDGER_TEST(test_parquet_times_are_kept_or_refused),
        LEDGER_TEST(test_parquet_texts_are_taken_from_types_that_keep_them),
        LEDGER_TEST(test_columns_that_json_lines_may_leave_out_parquet_may_leave_out),
        LEDGER_TEST(test_a_column_that_is_no_field_is_refused_by_name),
        LEDGER_TEST(test_json_lines_and_the_original_schema_do_not_round_either),
    };

    return ledger_suite(argc, argv, tests, COUNT_OF(tests));
}
