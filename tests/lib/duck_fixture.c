#include "lib/duck_fixture.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/os/failpoint.h"

int duck_setup(void **state)
{
    static struct duck_fixture f;

    f = (struct duck_fixture){ .options = { .threads = 2, .memory_bytes_max = 256 << 20 } };
    if (tempdir_make(f.dir, "pawl-duckdb", &f.error) != PAWL_OK) {
        return -1;
    }
    snprintf(f.path, sizeof(f.path), "%s/analytics.duckdb", f.dir);
    snprintf(f.wal, sizeof(f.wal), "%s.wal", f.path);
    duck_open(&f);
    *state = &f;
    return 0;
}

int duck_teardown(void **state)
{
    struct duck_fixture *f = *state;
    pawl_status status = pawl__failpoint_set(NULL, NULL);

    duck_close(f);
    tempdir_remove(f->dir);
    return status == PAWL_OK ? 0 : -1;
}

void duck_open(struct duck_fixture *f)
{
    assert_ok(pawl__duck_open(f->path, &f->options, &f->db, &f->error), &f->error);
    assert_ok(pawl__duck_connect(f->db, &f->conn, &f->error), &f->error);
    assert_ok(pawl__duck_connect(f->db, &f->other, &f->error), &f->error);
}

void duck_close(struct duck_fixture *f)
{
    pawl__duck_disconnect(STEAL(f->conn));
    pawl__duck_disconnect(STEAL(f->other));
    pawl__duck_close(STEAL(f->db));
}

void duck_script(struct duck_fixture *f, struct pawl__duck_conn *conn, const char *sql)
{
    assert_ok(pawl__duck_script(conn, sql, &f->error), &f->error);
}

void duck_begin(struct duck_fixture *f, struct pawl__duck_conn *conn)
{
    assert_ok(pawl__duck_begin(conn, PAWL__DUCK_WRITE, &f->error), &f->error);
}

void duck_commit(struct duck_fixture *f, struct pawl__duck_conn *conn)
{
    assert_ok(pawl__duck_commit(conn, &f->error), &f->error);
}

int64_t duck_number(struct duck_fixture *f, struct pawl__duck_conn *conn, const char *sql)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;

    assert_ok(pawl__duck_query_text(conn, sql, DUCK_NO_ARGS, &rows, &f->error), &f->error);
    assert_ok(pawl__duck_next(rows, &f->error), &f->error);
    assert_true(pawl__duck_has_row(rows));
    return pawl__duck_get_i64(rows, 0);
}

pawl_status duck_drain(struct duck_fixture *f, struct pawl__duck_conn *conn, const char *sql)
{
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    pawl_status status = pawl__duck_query_text(conn, sql, DUCK_NO_ARGS, &rows, &f->error);

    while (status == PAWL_OK && (status = pawl__duck_next(rows, &f->error)) == PAWL_OK
           && pawl__duck_has_row(rows)) {
    }
    return status;
}

int64_t duck_file_size(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (int64_t)info.st_size : -1;
}
