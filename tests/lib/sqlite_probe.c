#include "lib/sqlite_probe.h"

#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test_schemas.h"

static const char *const statements[PROBE_COUNT] = {
    [PROBE_PUT] = "INSERT INTO probe (name) VALUES (?1)",
    [PROBE_PUT_ALL] = "INSERT INTO probe (id, name, body, size) VALUES (?1, ?2, ?3, ?4)",
    [PROBE_GET] = "SELECT name, body, size FROM probe WHERE id = ?1",
    [PROBE_ROWS] = "SELECT count(*) FROM probe",
    [PROBE_PUT_CHILD] = "INSERT INTO probe_child (probe_id) VALUES (?1)",
    [PROBE_DROP_CHILDREN] = "DELETE FROM probe_child",
    [PROBE_FOREVER] = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                       " WHERE i < 1000000000000) SELECT count(*) FROM n"),
};

static int setup_in(const char *parent, void **state)
{
    static struct probe probe;

    probe = (struct probe){ .options = PAWL__SQLITE_OPTIONS_INIT };
    snprintf(probe.dir, sizeof(probe.dir), "%.40s/pawl-sqlite-XXXXXX", parent);
    if (mkdtemp(probe.dir) == NULL) {
        return -1;
    }
    snprintf(probe.path, sizeof(probe.path), "%s/probe.sqlite", probe.dir);
    probe.options.application_id = PROBE_APPLICATION_ID;
    probe.options.schema = &pawl__schema_sqlite_probe;
    probe.options.statements = statements;
    probe.options.statement_count = PROBE_COUNT;
    *state = &probe;
    return 0;
}

int probe_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");

    return setup_in(tmp == NULL ? "/tmp" : tmp, state);
}

int probe_setup_in_memory(void **state)
{
    return access("/dev/shm", W_OK) == 0 ? setup_in("/dev/shm", state) : probe_setup(state);
}

int probe_teardown(void **state)
{
    struct probe *probe = *state;
    char command[96];

    snprintf(command, sizeof(command), "rm -rf '%s'", probe->dir);
    return system(command); /* NOLINT(cert-env33-c): a path of our own making */
}

pawl_status probe_put(struct pawl__sqlite *db, const char *name, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt put = pawl__sqlite_use(db, PROBE_PUT);

    pawl__sqlite_bind_text(&put, 1, pawl_view_of(name));
    return pawl__sqlite_run(&put, reterr);
}

pawl_status probe_put_committed(struct pawl__sqlite *db, const char *name, pawl_error *reterr)
{
    pawl_status status = pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, reterr);

    if (status != PAWL_OK) {
        return status;
    }
    status = probe_put(db, name, reterr);
    if (status != PAWL_OK) {
        pawl__sqlite_rollback(db);
        return status;
    }
    return pawl__sqlite_commit(db, reterr);
}

pawl_status probe_rows(struct pawl__sqlite *db, int64_t *ret_rows, pawl_error *reterr)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt rows = pawl__sqlite_use(db, PROBE_ROWS);
    bool row = false;
    pawl_status status = pawl__sqlite_next(&rows, &row, reterr);

    if (status == PAWL_OK) {
        *ret_rows = pawl__sqlite_i64(&rows, 0);
    }
    return status;
}

struct pawl__sqlite *probe_open(struct probe *probe)
{
    struct pawl__sqlite *db = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__sqlite_open(probe->path, &probe->options, &db, &error), &error);
    return db;
}

void assert_rows(struct pawl__sqlite *db, int64_t expected)
{
    int64_t rows = -1;
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(probe_rows(db, &rows, &error), &error);
    assert_int_equal(rows, expected);
}

int64_t probe_pragma(struct probe *probe, const char *sql)
{
    struct pawl__sqlite *db = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__sqlite_options options = probe->options;
    bool row = false;

    options.statements = &sql;
    options.statement_count = 1;
    assert_ok(pawl__sqlite_open(probe->path, &options, &db, &error), &error);
    struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, 0);
    assert_ok(pawl__sqlite_next(&stmt, &row, &error), &error);
    assert_true(row);
    int64_t value = pawl__sqlite_i64(&stmt, 0);
    pawl__sqlite_reset(&stmt);
    pawl__sqlite_close(db);
    return value;
}
