/* Servers that refuse, vanish, hang or come back: what the PostgreSQL wrapper makes of them. */
#include "lib/pg_fixture.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/thread/cancel.h"

enum { ADD, MY_PID, KILL_ME, SLEEP };

static const struct pawl__pg_statement statements[] = {
    [ADD] = { "INSERT INTO item (id) VALUES ($1)", "i", NULL },
    [MY_PID] = { "SELECT pg_backend_pid()", NULL, "i" },
    [KILL_ME] = { "SELECT pg_terminate_backend(pg_backend_pid())", NULL, "b" },
    [SLEEP] = { "SELECT true FROM pg_sleep($1)", "d", "b" },
};

static const struct pawl__pg_options usual = { .statements = statements,
                                               .statement_count = COUNT_OF(statements) };

static struct pawl__pg *connect_to_items(struct pg_fixture *f)
{
    pg_admin(f, "DROP TABLE IF EXISTS item; CREATE TABLE item (id bigint PRIMARY KEY)");
    return pg_connect(f, &usual);
}

static pawl_status add(struct pawl__pg *pg, int64_t id, pawl_error *reterr)
{
    return pawl__pg_exec(pg, ADD, PG_ARGS(pawl__pg_i64(id)), NULL, reterr);
}

static int64_t count(struct pg_fixture *f)
{
    return pg_number(f, "SELECT count(*) FROM item");
}

static pid_t backend_of(struct pg_fixture *f, struct pawl__pg *pg)
{
    struct pawl__pg_rows rows = { 0 };

    assert_ok(pawl__pg_exec(pg, MY_PID, PG_NO_ARGS, &rows, &f->err), &f->err);
    pid_t pid = (pid_t)pawl__pg_get_i64(&rows, 0, 0);
    pawl__pg_rows_done(&rows);
    return pid;
}

static void restart(struct pg_fixture *f)
{
    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    assert_ok(pg_server_restart(f->server, &f->err), &f->err);
}

static void terminate(struct pg_fixture *f, pid_t backend)
{
    char sql[128];

    snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%d, 30000)::int", (int)backend);
    assert_int_equal(pg_number(f, sql), 1);
}

/* A socket that listens and never accepts: it completes the handshake and says nothing. */
static int silent_port(int *ret_port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static pawl_status try_open(const char *url, int ms, pawl_error *reterr)
{
    struct pawl__pg *pg = NULL;
    pawl_status status =
        pawl__pg_open(url, &(struct pawl__pg_options){ .connect_ms_max = ms }, &pg, reterr);

    pawl__pg_close(pg);
    return status;
}

static void test_a_refused_login_says_why_and_never_the_password(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    char url[256];
    int port = pg_server_port(f->server);

    snprintf(url,
             sizeof(url),
             "postgresql://guarded:s3cret%%20pass%%25word@127.0.0.1:%d/postgres",
             port);
    assert_ok(try_open(url, 0, &f->err), &f->err);

    snprintf(url, sizeof(url), "postgresql://guarded:hunter2@127.0.0.1:%d/postgres", port);
    assert_status(try_open(url, 0, &f->err), PAWL_DENIED, &f->err);
    assert_message(&f->err, "password authentication failed for user \"guarded\"");
    assert_string_equal(f->err.sqlstate, "28P01");
    assert_null(strstr(f->err.message, "hunter2"));

    snprintf(url,
             sizeof(url),
             "postgresql://guarded@127.0.0.1:%d/postgres?passfile=/nowhere/to/be/found",
             port);
    assert_status(try_open(url, 0, &f->err), PAWL_DENIED, &f->err);
    assert_message(&f->err, "no password supplied");

    snprintf(
        url, sizeof(url), "host=127.0.0.1 port=%d user=pawl password=hunter2 dbname=none", port);
    assert_status(try_open(url, 0, &f->err), PAWL_NOT_FOUND, &f->err);
    assert_message(&f->err, "database \"none\" does not exist");
    assert_null(strstr(f->err.message, "hunter2"));
}

static void test_a_bad_url_is_refused_without_showing_it(void **state)
{
    (void)state;
    pawl_error err = PAWL_ERROR_INIT;
    static const char *const urls[] = {
        "postgresql://me:hunter2%zz@localhost/db",   "postgresql://me:hunter2@localhost/db?x=1",
        "postgresql://me:hun/ter2@localhost/db",     "postgresql://me:12/hunter2@localhost/db",
        "postgresql://me:x@hunter2@localhost/db",    "host=localhost password=my hunter2=1",
        "host=localhost password='hunter2",          "host=localhost password=my hunter2",
        "postgresql://me:hunter2@localhost:port/db",
    };

    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        assert_status(try_open(urls[i], 100, &err), PAWL_INVALID, &err);
        assert_null(strstr(err.message, "hunter2"));
        assert_null(strstr(err.message, "ter2"));
        assert_message(&err, "PostgreSQL URL cannot be");
    }
}

static void test_nobody_there_is_unavailable_and_silence_a_timeout(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    char url[256];
    int port;
    int fd = silent_port(&port);

    snprintf(url, sizeof(url), "postgresql://me:hunter2@127.0.0.1:%d/db?sslmode=disable", port);
    assert_status(try_open(url, 100, &f->err), PAWL_TIMEOUT, &f->err);
    assert_message(&f->err, "no answer while connecting to '127.0.0.1:");
    close(fd);
    assert_status(try_open(url, 0, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_message(&f->err, "Connection refused");
    assert_null(strstr(f->err.message, "hunter2"));
    assert_null(strchr(f->err.message, '\n'));
    assert_true(f->err.retryable);
}

static void test_the_next_host_is_tried_while_there_is_time(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    char url[256];
    int port;
    int fd = silent_port(&port);

    snprintf(url,
             sizeof(url),
             "host=127.0.0.1,127.0.0.1 port=%d,%d user=pawl dbname=postgres sslmode=disable",
             port,
             pg_server_port(f->server));
    assert_ok(try_open(url, 2000, &f->err), &f->err);
    close(fd);
}

static void test_a_cancelled_token_ends_a_connect(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__cancel cancel;
    struct pawl__pg *pg = NULL;
    char url[128];
    int port;
    int fd = silent_port(&port);

    pawl__cancel_init(&cancel, NULL);
    pawl__cancel_now(&cancel);
    snprintf(url, sizeof(url), "host=127.0.0.1 port=%d user=pawl sslmode=disable", port);
    assert_status(pawl__pg_open(url, &(struct pawl__pg_options){ .cancel = &cancel }, &pg, &f->err),
                  PAWL_CANCELLED,
                  &f->err);
    assert_null(pg);
    pawl__cancel_done(&cancel);
    close(fd);
}

static void test_a_restart_under_an_idle_connection_goes_unnoticed(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_ok(add(pg, 1, &f->err), &f->err);
    restart(f);
    assert_ok(add(pg, 2, &f->err), &f->err);
    terminate(f, backend_of(f, pg));
    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(add(pg, 3, &f->err), &f->err);
    assert_ok(pawl__pg_commit(pg, &f->err), &f->err);
    assert_int_equal(count(f), 3);
    pawl__pg_close(pg);
}

static void test_a_transaction_does_not_survive_its_connection(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    for (int64_t round = 0; round < 2; round++) {
        assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
        assert_ok(add(pg, 1, &f->err), &f->err);
        if (round == 0) {
            restart(f);
        } else {
            terminate(f, backend_of(f, pg));
        }
        assert_status(add(pg, 2, &f->err), PAWL_UNAVAILABLE, &f->err);
        /* Not even now is there a new connection behind the caller's back. */
        assert_status(add(pg, 3, &f->err), PAWL_UNAVAILABLE, &f->err);
        assert_message(&f->err, "nothing of it is stored");
        assert_status(pawl__pg_reconnect(pg, &f->err), PAWL_INVALID, &f->err);
        assert_true(pawl__pg_in_transaction(pg));
        assert_status(pawl__pg_commit(pg, &f->err), PAWL_UNAVAILABLE, &f->err);
        assert_string_not_equal(f->err.sqlstate, "08007"); /* it is known: nothing */
        assert_int_equal(count(f), 0);
    }
    assert_ok(add(pg, 4, &f->err), &f->err);
    assert_int_equal(count(f), 1);
    pawl__pg_close(pg);
}

static void test_a_link_that_dies_with_the_last_word_leaves_the_outcome_unknown(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    assert_status(pawl__pg_exec(pg, KILL_ME, PG_NO_ARGS, NULL, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_string_equal(f->err.sqlstate, "08007");
    assert_message(&f->err, "whether the statement was stored is not known");
    assert_true(f->err.retryable);
    assert_true(pawl__pg_is_broken(pg));

    /* A trigger that runs in the COMMIT ends the session there. */
    pg_admin(f,
             "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(30); RETURN NULL;"
             " END $$;"
             "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON item DEFERRABLE INITIALLY DEFERRED"
             " FOR EACH ROW EXECUTE FUNCTION die()");
    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(add(pg, 1, &f->err), &f->err);
    assert_status(pawl__pg_commit(pg, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_string_equal(f->err.sqlstate, "08007");
    assert_message(&f->err, "whether the transaction was stored is not known");
    assert_false(pawl__pg_in_transaction(pg));
    pg_admin(f, "DROP FUNCTION die() CASCADE");
    assert_ok(add(pg, 2, &f->err), &f->err);
    pawl__pg_close(pg);
}

static void test_a_server_that_is_away_is_waited_for_only_so_long(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg_options impatient = usual;

    impatient.reconnect_ms_max = 200;
    pawl__pg_close(connect_to_items(f));
    struct pawl__pg *pg = pg_connect(f, &impatient);
    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    assert_status(add(pg, 1, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_message(&f->err, "attempts to reconnect: ");
    assert_message(&f->err, "Connection refused");
    assert_string_not_equal(f->err.sqlstate, "08007"); /* nothing was sent */
    pawl__pg_interrupt(pg);
    assert_status(pawl__pg_reconnect(pg, &f->err), PAWL_CANCELLED, &f->err);
    pawl__pg_resume(pg);
    assert_ok(pg_server_restart(f->server, &f->err), &f->err);
    assert_ok(pawl__pg_reconnect(pg, &f->err), &f->err);
    assert_false(pawl__pg_is_broken(pg));
    assert_ok(add(pg, 1, &f->err), &f->err);
    pawl__pg_close(pg);
}

static void test_what_was_committed_survives_kill_9(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);

    for (int64_t i = 0; i < 3; i++) {
        assert_ok(add(pg, 2 * i, &f->err), &f->err);
        assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
        assert_ok(add(pg, 2 * i + 1, &f->err), &f->err);
        assert_ok(pg_server_kill(f->server, &f->err), &f->err);
        assert_ok(pg_server_restart(f->server, &f->err), &f->err);
        pawl__pg_rollback(pg);
        assert_int_equal(count(f), i + 1);
    }
    pawl__pg_close(pg);
}

static void test_a_server_that_hangs_is_given_up(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = connect_to_items(f);
    pid_t backend = backend_of(f, pg);

    /* Stopped, it neither answers nor hears the cancel request. */
    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    pawl__pg_set_deadline(pg, in_ms(50));
    assert_status(add(pg, 1, &f->err), PAWL_TIMEOUT, &f->err);
    assert_message(&f->err, "not even to a cancel request");
    assert_true(pawl__pg_is_broken(pg));
    assert_int_equal(kill(backend, SIGCONT), 0);
    pawl__pg_rollback(pg);
    pawl__pg_set_deadline(pg, 0);
    assert_ok(add(pg, 1, &f->err), &f->err); /* over a new connection */
    pawl__pg_close(pg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_refused_login_says_why_and_never_the_password),
        cmocka_unit_test(test_a_bad_url_is_refused_without_showing_it),
        cmocka_unit_test(test_nobody_there_is_unavailable_and_silence_a_timeout),
        cmocka_unit_test(test_the_next_host_is_tried_while_there_is_time),
        cmocka_unit_test(test_a_cancelled_token_ends_a_connect),
        cmocka_unit_test(test_a_restart_under_an_idle_connection_goes_unnoticed),
        cmocka_unit_test(test_a_transaction_does_not_survive_its_connection),
        cmocka_unit_test(test_a_link_that_dies_with_the_last_word_leaves_the_outcome_unknown),
        cmocka_unit_test(test_a_server_that_is_away_is_waited_for_only_so_long),
        cmocka_unit_test(test_what_was_committed_survives_kill_9),
        cmocka_unit_test(test_a_server_that_hangs_is_given_up),
    };
    return cmocka_run_group_tests_name("postgres_lost", tests, pg_fixture_start, pg_fixture_stop);
}
