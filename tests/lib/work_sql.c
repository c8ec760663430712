#include "lib/work_sql.h"

#include <stdio.h>
#include <stdlib.h>

#include <libpq-fe.h>
#include <sqlite3.h>

#include "lib/pg_server.h"
#include "store/postgres/postgres.h"
#include "work/core/schema.h"

static struct pg_server *server; /* one for the program */
static bool on_postgres;

static void add_value(struct pawl__buf *answer, int column, const char *text)
{
    if (column > 0) {
        pawl__buf_add_char(answer, '|');
    } else if (answer->len > 0) {
        pawl__buf_add_char(answer, '\n');
    }
    pawl__buf_add_text(answer, text == NULL ? "" : text);
}

static int take_sqlite_row(void *context, int count, char **values, char **names)
{
    struct work_sql *store = context;

    (void)names;
    for (int i = 0; i < count; i++) {
        add_value(&store->answer, i, values[i]);
    }
    return 0;
}

static bool try_sqlite(struct work_sql *store, const char *sql)
{
    if (sqlite3_exec(store->db, sql, take_sqlite_row, store, NULL) == SQLITE_OK) {
        return true;
    }
    snprintf(store->error, sizeof(store->error), "%s", sqlite3_errmsg(store->db));
    return false;
}

static bool try_postgres(struct work_sql *store, const char *sql)
{
    PGresult *result = PQexec(store->db, sql);
    ExecStatusType status = PQresultStatus(result);

    for (int row = 0; row < PQntuples(result); row++) {
        for (int column = 0; column < PQnfields(result); column++) {
            bool null = PQgetisnull(result, row, column) != 0;
            add_value(&store->answer, column, null ? NULL : PQgetvalue(result, row, column));
        }
    }
    snprintf(store->error, sizeof(store->error), "%s", PQresultErrorMessage(result));
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

bool work_sql_try(struct work_sql *store, const char *sql)
{
    pawl__buf_clear(&store->answer);
    return store->is_postgres ? try_postgres(store, sql) : try_sqlite(store, sql);
}

void work_sql_must(struct work_sql *store, const char *sql)
{
    if (!work_sql_try(store, sql)) {
        fail_msg("%s: %s", sql, store->error);
    }
}

const char *work_sql_answer(struct work_sql *store, const char *sql)
{
    work_sql_must(store, sql);
    return store->answer.len == 0 ? "" : store->answer.data;
}

void work_sql_is(struct work_sql *store, const char *sql, const char *expected)
{
    const char *got = work_sql_answer(store, sql);

    if (strcmp(got, expected) != 0) {
        fail_msg("%s: '%s' instead of '%s'", sql, got, expected);
    }
}

static void open_sqlite(struct work_sql *store, pawl_error *error)
{
    struct pawl__sqlite_options options = pawl__work_sqlite_options();
    struct pawl__sqlite *ours = NULL;
    char path[TEMPDIR_SIZE + 16];

    assert_ok(tempdir_make(store->dir, "pawl-work-sql", error), error);
    snprintf(path, sizeof(path), "%s/work.sqlite", store->dir);
    options.mode = PAWL__SQLITE_CREATE;
    assert_ok(pawl__sqlite_open(path, &options, &ours, error), error);
    pawl__sqlite_close(ours);

    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    store->db = db;
    work_sql_must(store, "PRAGMA foreign_keys = ON");
    work_sql_must(store, "PRAGMA synchronous = OFF"); /* nothing here is about power */
}

static void open_postgres(struct work_sql *store, pawl_error *error)
{
    struct pawl__pg *ours = NULL;
    const struct pawl__pg_options options = { .schema = &pawl__schema_postgres_work };

    if (server == NULL) {
        skip();
    }
    store->db = PQconnectdb(pg_server_url(server));
    assert_int_equal(PQstatus(store->db), CONNECTION_OK);
    work_sql_must(store, "SET client_min_messages = error; DROP SCHEMA IF EXISTS pawl CASCADE");
    assert_ok(pawl__pg_open(pg_server_url(server), &options, &ours, error), error);
    pawl__pg_close(ours);
    work_sql_must(store, "SET search_path = pawl");
}

int work_sql_setup(void **state)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct work_sql *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return -1;
    }
    *state = store;
    store->answer = (struct pawl__buf)BUF_INIT(1 << 20);
    store->is_postgres = on_postgres;
    if (on_postgres) {
        open_postgres(store, &error);
    } else {
        open_sqlite(store, &error);
    }
    return 0;
}

int work_sql_teardown(void **state)
{
    struct work_sql *store = *state;

    if (store->is_postgres) {
        PQfinish(store->db);
    } else {
        sqlite3_close(store->db);
        tempdir_remove(store->dir);
    }
    pawl__buf_done(&store->answer);
    free(store);
    return 0;
}

static bool start(const char *name)
{
    pawl_error error = PAWL_ERROR_INIT;

    on_postgres = strcmp(name, "postgres") == 0;
    if (!on_postgres) {
        return strcmp(name, "sqlite") == 0;
    }
    pawl_status status = pg_server_start(&(struct pg_server_options){ 0 }, &server, &error);
    if (status != PAWL_OK && status != PAWL_UNSUPPORTED) {
        fprintf(stderr, "%s\n", error.message);
        return false;
    }
    return true;
}

int work_sql_suite(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    if (argc != 2 || !start(argv[1])) {
        return 2;
    }
    int failed = _cmocka_run_group_tests("work_sql", tests, count, NULL, NULL);
    pg_server_free(server);
    return failed;
}
