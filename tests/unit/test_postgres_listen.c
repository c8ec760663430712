/* LISTEN and NOTIFY, interrupts from other threads, and waits across a restart. */
#include "lib/pg_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/thread/cancel.h"
#include "base/thread/thread.h"
#include "store/postgres/internal.h"

enum { WAIT_MS = 30000 }; /* only a failure takes that long */

enum { SLEEP };

static const struct pawl__pg_statement statements[] = {
    [SLEEP] = { "SELECT true FROM pg_sleep($1)", "d", "b" },
};

static const struct pawl__pg_options usual = { .statements = statements,
                                               .statement_count = COUNT_OF(statements) };

static void assert_notified(struct pg_fixture *f,
                            struct pawl__pg *pg,
                            const char *channel,
                            const char *payload)
{
    struct pawl__pg_notification note = { 0 };

    assert_ok(pawl__pg_wait(pg, in_ms(WAIT_MS), &note, &f->err), &f->err);
    assert_false(note.missed);
    assert_string_equal(note.channel, channel);
    assert_string_equal(note.payload, payload);
}

static void assert_nothing(struct pg_fixture *f, struct pawl__pg *pg)
{
    struct pawl__pg_notification note = { .payload = "untouched" };

    assert_status(pawl__pg_wait(pg, in_ms(20), &note, &f->err), PAWL_TIMEOUT, &f->err);
    assert_string_equal(note.payload, "untouched");
}

static pawl_status notify(struct pawl__pg *pg,
                          const char *channel,
                          const char *payload,
                          pawl_error *reterr)
{
    static const struct pawl__pg_statement statement = {
        .sql = "SELECT true FROM pg_notify($1, $2)",
        .params = "tt",
        .columns = "b",
    };

    pawl_status status = pawl__pg_ready(pg, reterr);
    return status == PAWL_OK ? pawl__pg_query(
               pg,
               &statement,
               PG_ARGS(pawl__pg_text(pawl_view_of(channel)), pawl__pg_text(pawl_view_of(payload))),
               NULL,
               reterr)
                             : status;
}

static void test_a_notification_reaches_who_listens(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *listener = pg_connect(f, NULL);
    struct pawl__pg *sender = pg_connect(f, NULL);
    struct pawl__pg_notification note = { 0 };

    assert_ok(pawl__pg_listen(listener, "work", &f->err), &f->err);
    assert_ok(pawl__pg_listen(listener, "work", &f->err), &f->err); /* twice is once */
    assert_nothing(f, listener);
    assert_ok(notify(sender, "work", "1", &f->err), &f->err);
    assert_ok(notify(sender, "other", "no", &f->err), &f->err);
    assert_ok(notify(sender, "work", "", &f->err), &f->err);
    assert_notified(f, listener, "work", "1");
    assert_notified(f, listener, "work", "");
    assert_nothing(f, listener);
    assert_ok(notify(listener, "work", "own", &f->err), &f->err);
    assert_ok(pawl__pg_wait(listener, in_ms(WAIT_MS), &note, &f->err), &f->err);
    assert_true(note.own);
    pawl__pg_close(listener);
    pawl__pg_close(sender);
}

static void test_channel_names_are_quoted_and_limits_kept(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, NULL);
    static const char nasty[] = "We\"ird; DROP SCHEMA pawl; --'";
    char name[PAWL__PG_NAME_BYTES_MAX + 2];

    assert_ok(pawl__pg_listen(pg, nasty, &f->err), &f->err);
    assert_ok(notify(pg, nasty, "x", &f->err), &f->err);
    assert_notified(f, pg, nasty, "x");

    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    assert_status(pawl__pg_listen(pg, name, &f->err), PAWL_INVALID, &f->err);
    assert_status(pawl__pg_listen(pg, "", &f->err), PAWL_INVALID, &f->err);
    name[sizeof(name) - 2] = '\0';
    assert_ok(pawl__pg_listen(pg, name, &f->err), &f->err);

    pawl_status status = PAWL_OK;
    for (int i = 2; i < PAWL__PG_CHANNELS_MAX; i++) {
        snprintf(name, sizeof(name), "channel %d", i);
        assert_ok(pawl__pg_listen(pg, name, &f->err), &f->err);
    }
    status = pawl__pg_listen(pg, "one more", &f->err);
    assert_status(status, PAWL_INVALID, &f->err);
    pawl__pg_close(pg);
}

static void test_a_notification_goes_out_with_the_commit(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *listener = pg_connect(f, NULL);
    struct pawl__pg *sender = pg_connect(f, NULL);

    assert_ok(pawl__pg_listen(listener, "work", &f->err), &f->err);
    assert_ok(pawl__pg_begin(sender, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(notify(sender, "work", "taken back", &f->err), &f->err);
    pawl__pg_rollback(sender);
    assert_ok(pawl__pg_begin(sender, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    assert_ok(notify(sender, "work", "kept", &f->err), &f->err);
    assert_nothing(f, listener);
    assert_ok(pawl__pg_commit(sender, &f->err), &f->err);
    assert_notified(f, listener, "work", "kept");
    pawl__pg_close(listener);
    pawl__pg_close(sender);
}

static void test_a_notification_crosses_processes(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *listener = pg_connect(f, NULL);
    int ended = 0;

    assert_ok(pawl__pg_listen(listener, "work", &f->err), &f->err);
    pid_t child = fork();
    if (child == 0) {
        struct pawl__pg *pg = NULL;
        bool sent = pawl__pg_open(pg_server_url(f->server), NULL, &pg, NULL) == PAWL_OK
                    && notify(pg, "work", "from a child", NULL) == PAWL_OK;
        pawl__pg_close(pg);
        _exit(sent ? 0 : 1);
    }
    assert_true(child > 0);
    assert_notified(f, listener, "work", "from a child");
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    pawl__pg_close(listener);
}

static void test_a_restart_is_reported_as_missed_and_listening_goes_on(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *listener = pg_connect(f, NULL);
    struct pawl__pg_notification note = { 0 };

    assert_ok(pawl__pg_listen(listener, "work", &f->err), &f->err);
    assert_ok(pawl__pg_listen(listener, "play", &f->err), &f->err);
    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    assert_status(pawl__pg_wait(listener, in_ms(100), &note, &f->err), PAWL_UNAVAILABLE, &f->err);
    assert_ok(pg_server_restart(f->server, &f->err), &f->err);
    assert_ok(pawl__pg_wait(listener, in_ms(WAIT_MS), &note, &f->err), &f->err);
    assert_true(note.missed);
    assert_null(note.channel);
    struct pawl__pg *sender = pg_connect(f, NULL);
    assert_ok(notify(sender, "play", "again", &f->err), &f->err);
    assert_notified(f, listener, "play", "again");

    /* A reconnect behind another call is reported, too. */
    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    assert_ok(pg_server_restart(f->server, &f->err), &f->err);
    assert_ok(notify(listener, "work", "own", &f->err), &f->err);
    assert_ok(pawl__pg_wait(listener, in_ms(WAIT_MS), &note, &f->err), &f->err);
    assert_true(note.missed);
    assert_notified(f, listener, "work", "own");
    pawl__pg_close(listener);
    pawl__pg_close(sender);
}

/* A thread that waits or runs a long statement until somebody stops it. */
struct waiter {
    struct pawl__pg *pg;
    bool in_statement;
    pawl_status status;
    pawl_error err;
};

static void wait_long(void *context)
{
    struct waiter *waiter = context;
    struct pawl__pg_notification note;

    waiter->status =
        waiter->in_statement
            ? pawl__pg_exec(waiter->pg, SLEEP, PG_ARGS(pawl__pg_double(60)), NULL, &waiter->err)
            : pawl__pg_wait(waiter->pg, in_ms(60000), &note, &waiter->err);
}

static void wait_for_sleepers(struct pg_fixture *f, int64_t expected)
{
    int64_t deadline_ns = in_ms(WAIT_MS);

    while (pg_number(f,
                     "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%true FROM pg_sleep%'"
                     " AND state = 'active' AND pid <> pg_backend_pid()")
           != expected) {
        assert_true(in_ms(0) < deadline_ns);
    }
}

static void test_another_thread_ends_a_wait(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct waiter waiter = { .pg = pg_connect(f, &usual) };
    struct pawl__pg *sender = pg_connect(f, NULL);
    struct pawl__thread thread = { 0 };

    assert_ok(pawl__pg_listen(waiter.pg, "work", &f->err), &f->err);
    for (int i = 0; i < 20; i++) {
        assert_ok(pawl__thread_start(&thread, "wait", wait_long, &waiter, &f->err), &f->err);
        pawl__pg_interrupt(waiter.pg);
        assert_true(pawl__thread_join_until(&thread, in_ms(WAIT_MS)));
        assert_status(waiter.status, PAWL_CANCELLED, &waiter.err);
        pawl__pg_resume(waiter.pg);
    }
    assert_ok(notify(sender, "work", "still here", &f->err), &f->err);
    assert_notified(f, waiter.pg, "work", "still here");
    pawl__pg_close(waiter.pg);
    pawl__pg_close(sender);
}

static void test_a_token_cancels_the_running_statement_on_the_server(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__cancel cancel;
    struct pawl__pg_options options = usual;
    struct pawl__thread thread = { 0 };

    pawl__cancel_init(&cancel, NULL);
    options.cancel = &cancel;
    struct waiter waiter = { .pg = pg_connect(f, &options), .in_statement = true };
    assert_ok(pawl__thread_start(&thread, "sleep", wait_long, &waiter, &f->err), &f->err);
    wait_for_sleepers(f, 1);
    pawl__cancel_now(&cancel);
    assert_true(pawl__thread_join_until(&thread, in_ms(WAIT_MS)));
    assert_status(waiter.status, PAWL_CANCELLED, &waiter.err);
    assert_string_equal(waiter.err.sqlstate, "57014"); /* the server said so itself */
    assert_false(pawl__pg_is_broken(waiter.pg));
    wait_for_sleepers(f, 0);
    pawl__pg_resume(waiter.pg); /* a token is final */
    assert_status(pawl__pg_exec(waiter.pg, SLEEP, PG_ARGS(pawl__pg_double(0)), NULL, &f->err),
                  PAWL_CANCELLED,
                  &f->err);
    pawl__pg_close(waiter.pg);
    pawl__cancel_done(&cancel);
}

/* After a failover the number of our session may be that of anybody's on the new server. */
static void test_a_cancel_request_spares_a_stranger_with_the_same_pid(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct pawl__pg *pg = pg_connect(f, &usual);
    struct waiter stranger = { .pg = pg_connect(f, &usual), .in_statement = true };
    struct pawl__thread thread = { 0 };

    assert_ok(pawl__thread_start(&thread, "sleep", wait_long, &stranger, &f->err), &f->err);
    wait_for_sleepers(f, 1);
    assert_ok(pawl__pg_begin(pg, PAWL__PG_READ_COMMITTED, &f->err), &f->err);
    pg->session = pawl__pg_session(stranger.pg);
    pawl__pg_set_deadline(pg, in_ms(500));
    assert_status(pawl__pg_exec(pg, SLEEP, PG_ARGS(pawl__pg_double(5)), NULL, &f->err),
                  PAWL_TIMEOUT,
                  &f->err);
    assert_message(&f->err, "not even to a cancel request"); /* so the link is given up */
    pawl__pg_close(pg);
    wait_for_sleepers(f, 1); /* the stranger's goes on, ours ends by itself */
    pawl__pg_interrupt(stranger.pg);
    assert_true(pawl__thread_join_until(&thread, in_ms(WAIT_MS)));
    assert_status(stranger.status, PAWL_CANCELLED, &stranger.err);
    pawl__pg_close(stranger.pg);
    wait_for_sleepers(f, 0);
}

static void test_another_thread_ends_a_wait_for_a_server_that_is_away(void **state)
{
    struct pg_fixture *f = pg_fixture(state);
    struct waiter waiter = { .pg = pg_connect(f, NULL) };
    struct pawl__thread thread = { 0 };

    assert_ok(pawl__pg_listen(waiter.pg, "work", &f->err), &f->err);
    assert_ok(pg_server_stop(f->server, SIGINT, &f->err), &f->err);
    assert_ok(pawl__thread_start(&thread, "wait", wait_long, &waiter, &f->err), &f->err);
    pawl__pg_interrupt(waiter.pg);
    assert_true(pawl__thread_join_until(&thread, in_ms(WAIT_MS)));
    assert_status(waiter.status, PAWL_CANCELLED, &waiter.err);
    assert_ok(pg_server_restart(f->server, &f->err), &f->err);
    pawl__pg_close(waiter.pg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_notification_reaches_who_listens),
        cmocka_unit_test(test_channel_names_are_quoted_and_limits_kept),
        cmocka_unit_test(test_a_notification_goes_out_with_the_commit),
        cmocka_unit_test(test_a_notification_crosses_processes),
        cmocka_unit_test(test_a_restart_is_reported_as_missed_and_listening_goes_on),
        cmocka_unit_test(test_another_thread_ends_a_wait),
        cmocka_unit_test(test_a_token_cancels_the_running_statement_on_the_server),
        cmocka_unit_test(test_a_cancel_request_spares_a_stranger_with_the_same_pid),
        cmocka_unit_test(test_another_thread_ends_a_wait_for_a_server_that_is_away),
    };
    return cmocka_run_group_tests_name("postgres_listen", tests, pg_fixture_start, pg_fixture_stop);
}
