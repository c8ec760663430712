#include "lib/pg_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os/clock.h"

int pg_fixture_start(void **state)
{
    struct pg_fixture *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        return -1;
    }
    *state = f;
    pawl_status status =
        pg_server_start(&(struct pg_server_options){ .settings = NULL }, &f->server, &f->err);
    if (status != PAWL_OK && status != PAWL_UNSUPPORTED) {
        print_error("%s\n", f->err.message);
        return -1;
    }
    if (f->server != NULL) {
        pg_admin(f, "CREATE SCHEMA IF NOT EXISTS pawl");
    }
    return 0;
}

int pg_fixture_stop(void **state)
{
    struct pg_fixture *f = *state;

    pg_server_free(f->server);
    free(f);
    return 0;
}

struct pg_fixture *pg_fixture(void **state)
{
    struct pg_fixture *f = *state;

    if (f->server == NULL) {
        skip();
    }
    f->err = (pawl_error)PAWL_ERROR_INIT;
    return f;
}

struct pawl__pg *pg_connect(struct pg_fixture *f, const struct pawl__pg_options *options)
{
    struct pawl__pg *pg = NULL;

    assert_ok(pawl__pg_open(pg_server_url(f->server), options, &pg, &f->err), &f->err);
    return pg;
}

void pg_admin(struct pg_fixture *f, const char *sql)
{
    struct pawl__pg *pg = pg_connect(f, NULL);

    assert_ok(pawl__pg_script(pg, sql, &f->err), &f->err);
    pawl__pg_close(pg);
}

int64_t pg_number(struct pg_fixture *f, const char *sql)
{
    const struct pawl__pg_statement statement = { .sql = sql, .columns = "i" };
    struct pawl__pg_rows rows = { 0 };
    struct pawl__pg *pg =
        pg_connect(f, &(struct pawl__pg_options){ .statements = &statement, .statement_count = 1 });

    assert_ok(pawl__pg_exec(pg, 0, PG_NO_ARGS, &rows, &f->err), &f->err);
    assert_int_equal(rows.count, 1);
    int64_t number = pawl__pg_get_i64(&rows, 0, 0);
    pawl__pg_rows_done(&rows);
    pawl__pg_close(pg);
    return number;
}

int64_t in_ms(int ms)
{
    return pawl__monotonic_ns(pawl__clock_real()) + ms * NS_PER_MS;
}

enum { STOPPED_MAX = 32 };
static pid_t stopped[STOPPED_MAX];
static size_t stopped_count;

void pg_stop_sessions(struct pg_fixture *f)
{
    char sql[256];
    int64_t pid = 0;

    for (;;) {
        snprintf(sql,
                 sizeof(sql),
                 "SELECT coalesce(min(pid), 0)::bigint FROM pg_stat_activity WHERE pid > %lld"
                 " AND application_name LIKE 'pawl _%%' AND pid <> pg_backend_pid()",
                 (long long)pid);
        pid = pg_number(f, sql);
        if (pid == 0) {
            break;
        }
        assert_true(stopped_count < STOPPED_MAX);
        assert_int_equal(kill((pid_t)pid, SIGSTOP), 0);
        stopped[stopped_count++] = (pid_t)pid;
    }
    assert_true(stopped_count > 0);
}

void pg_resume_sessions(void)
{
    while (stopped_count > 0) {
        kill(stopped[--stopped_count], SIGCONT);
    }
}
