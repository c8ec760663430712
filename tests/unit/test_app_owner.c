/* What only applications on PostgreSQL have to do: one owner at a time whatever happens to sessions and
 * server, several applications in a database, sessions that were left behind. */
#include "lib/app_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/postgres/backend.h"
#include "base/core/error.h"
#include "base/core/macros.h"
#include "base/os/clock.h"
#include "base/thread/thread.h"

enum { WORKSPACE = 7 };

static bool refuse(void *context, const pawl_app_record *record)
{
    (void)context;
    fail_msg("no record is expected, and there is %llu", (unsigned long long)record->id);
    return false;
}

static const char *with(const char *location, const char *parameter)
{
    static char text[APP_LOCATION_SIZE + 64];

    snprintf(text,
             sizeof(text),
             "%s%c%s",
             location,
             strchr(location, '?') == NULL ? '?' : '&',
             parameter);
    return text;
}

/* Again and again: threads of the application may have connected anew meanwhile. */
static void end_sessions(void)
{
    int64_t deadline_ns = in_ms(APP_PATIENCE_MS);

    while (pg_number(&app_server,
                     "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                     " WHERE application_name = 'pawl app'")
           > 0) {
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
    }
}

/* A command that is repeated until somebody knows. */
static uint64_t create_with_key(struct app_fixture *f, const char *key)
{
    int64_t deadline_ns = in_ms(APP_PATIENCE_MS);
    pawl_status status = PAWL_UNAVAILABLE;

    while (status == PAWL_UNAVAILABLE && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
        status = app_try_create(f, WORKSPACE, PAWL_APP_C_RECORD, key);
    }
    assert_ok(status, &f->error);
    return f->response->ids[0].id;
}

static void test_the_second_owner_is_refused_and_told_who_has_it(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *second = NULL;
    char who[64];

    app_open(f);
    snprintf(who, sizeof(who), "another process has the application: process %ld", (long)getpid());
    assert_status(pawl_app_open(f->location, &f->descriptor, &f->options, &second, &f->error),
                  PAWL_BUSY,
                  &f->error);
    assert_message(&f->error, who);
    assert_message(&f->error, "; its lease expires in ");
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    app_reopen(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
}

static void test_lost_sessions_come_back_as_the_owners(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *second = NULL;

    app_open(f);
    for (uint64_t i = 0; i < 3; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", (unsigned)i);
        assert_true(create_with_key(f, key) == PAWL_APP_C_ID_MIN + i);
        end_sessions();
    }
    assert_true(create_with_key(f, "last") == PAWL_APP_C_ID_MIN + 3);
    assert_int_equal(f->response->plog_offset, 4);
    assert_status(pawl_app_open(f->location, &f->descriptor, &f->options, &second, &f->error),
                  PAWL_BUSY,
                  &f->error);
}

static void test_a_server_that_was_killed_is_waited_for(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    create_with_key(f, "before");
    assert_ok(pg_server_kill(app_server.server, &f->error), &f->error);
    assert_status(
        app_try_create(f, WORKSPACE, PAWL_APP_C_RECORD, "away"), PAWL_UNAVAILABLE, &f->error);
    assert_ok(pg_server_restart(app_server.server, &f->error), &f->error);
    assert_true(create_with_key(f, "away") == PAWL_APP_C_ID_MIN + 1);
    assert_true(create_with_key(f, "after") == PAWL_APP_C_ID_MIN + 2);
}

/* Between two refusals it looks at its log again, which is BUSY for a moment. */
static void assert_lost(struct app_fixture *f, pawl_app *app)
{
    pawl_app_response *response = NULL;
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = WORKSPACE,
                                       .kind = pawl_view_of("shop") };
    int64_t deadline_ns = in_ms(APP_PATIENCE_MS);
    pawl_status status = PAWL_BUSY;

    while (status == PAWL_BUSY && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
        status = pawl_app_exec(app, &command, &response, &f->error);
    }
    assert_status(status, PAWL_LEASE_LOST, &f->error);
    assert_message(&f->error, "another process has taken the application over");
}

/* The first one's numbers are of the past: not one of them may be written. */
static void test_an_owner_that_was_dispossessed_never_writes_again(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *first = NULL;

    app_open(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    first = STEAL(f->app);
    end_sessions();
    app_open(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    for (int i = 0; i < 3; i++) {
        assert_lost(f, first);
        assert_int_equal(app_create(f, WORKSPACE, PAWL_APP_C_RECORD),
                         PAWL_APP_C_ID_MIN + (uint64_t)i + 2);
    }
    assert_status(
        pawl_app_read_record(first, WORKSPACE, PAWL_APP_C_ID_MIN, refuse, NULL, &f->error),
        PAWL_LEASE_LOST,
        &f->error);
    pawl_app_close(first, 0, NULL);
    assert_int_equal(f->response->plog_offset, 5);
    app_reopen(f); /* the other one has left nothing that is in the way */
    assert_int_equal(app_create(f, WORKSPACE, PAWL_APP_C_RECORD), PAWL_APP_C_ID_MIN + 5);
}

/* As if it had stood still for longer than its lease; it is renewed only every few seconds. */
static void expire_lease(void)
{
    pg_admin(&app_server, "UPDATE apps SET lease_until = clock_timestamp() - interval '1 s'");
}

static void test_an_owner_that_stands_still_loses_its_lease(void **state)
{
    struct app_fixture *f = *state;
    int64_t deadline_ns = in_ms(APP_PATIENCE_MS);
    pawl_status status = PAWL_BUSY;

    app_open(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    pawl_app *first = STEAL(f->app);
    while (status == PAWL_BUSY && pawl__monotonic_ns(pawl__clock_real()) < deadline_ns) {
        expire_lease();
        status = pawl_app_open(f->location, &f->descriptor, &f->options, &f->app, &f->error);
    }
    assert_ok(status, &f->error);
    assert_int_equal(create_with_key(f, "second"), PAWL_APP_C_ID_MIN + 1);
    assert_lost(f, first);
    pawl_app_close(first, 0, NULL);
    assert_int_equal(create_with_key(f, "third"), PAWL_APP_C_ID_MIN + 2);
    assert_int_equal(f->response->plog_offset, 3);
}

static void test_a_lease_that_ran_out_stays_with_its_owner_while_nobody_else_wants_it(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    expire_lease();
    assert_int_equal(create_with_key(f, "k"), PAWL_APP_C_ID_MIN);
}

static void test_an_application_closes_in_time_though_its_server_has_stalled(void **state)
{
    struct app_fixture *f = *state;

    f->options.flush_interval_ms = 3600 * 1000; /* numbers wait to be written until it closes */
    app_open(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    pg_server_stall(app_server.server);
    pawl_status status = pawl_app_close(STEAL(f->app), 6000, &f->error);
    pg_server_resume(app_server.server);
    assert_ok(status, &f->error);
    f->options.flush_interval_ms = 500;
    app_open(f);
    assert_int_equal(app_create(f, WORKSPACE, PAWL_APP_C_RECORD), PAWL_APP_C_ID_MIN + 1);
}

static int resume_and_teardown(void **state)
{
    pg_resume_sessions();
    return app_teardown(state);
}

static void test_a_command_to_a_stopped_process_of_the_server_ends_in_time(void **state)
{
    struct app_fixture *f = *state;

    f->options.answer_ms_max = 1000;
    app_open(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    pg_stop_sessions(&app_server);
    int64_t deadline_ns = in_ms(30000);
    pawl_status status = app_try_create(f, WORKSPACE, PAWL_APP_C_RECORD, "k");
    assert_true(status == PAWL_UNAVAILABLE || status == PAWL_TIMEOUT);
    assert_message(&f->error, "has stalled: it has not read what was sent");
    assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
    pg_resume_sessions();
    assert_int_equal(create_with_key(f, "k"), PAWL_APP_C_ID_MIN + 1);
}

static void test_applications_share_a_database(void **state)
{
    struct app_fixture *f = *state;
    pawl_app *other = NULL;
    pawl_app_descriptor second = f->descriptor;

    app_open(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    second.name = "returns";
    assert_status(
        pawl_app_open(f->location, &second, NULL, &other, &f->error), PAWL_CONFLICT, &f->error);
    assert_message(&f->error, "has an application 'orders' with id 1");
    second.id = 2;
    assert_status(pawl_app_open(with(f->location, "app=orders"), &second, NULL, &other, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_ok(pawl_app_open(f->location, &second, NULL, &other, &f->error), &f->error);
    pawl_app *mine = f->app;
    f->app = other;
    assert_true(app_create(f, WORKSPACE, PAWL_APP_C_RECORD) == PAWL_APP_C_ID_MIN);
    assert_int_equal(f->response->plog_offset, 1);
    pawl_app_close(f->app, 0, NULL);
    f->app = mine;
    assert_status(
        pawl_app_open(f->location, NULL, NULL, &other, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "several applications (orders, returns)");
    assert_status(pawl_app_open(with(f->location, "app=sales"), NULL, NULL, &other, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_ok(pawl_app_open(with(f->location, "app=returns"), NULL, NULL, &other, &f->error),
              &f->error);
    assert_string_equal(pawl_app_get_descriptor(other)->name, "returns");
    pawl_app_close(other, 0, NULL);
}

static void test_one_connection_is_enough(void **state)
{
    struct app_fixture *f = *state;

    f->options.flush_interval_ms = 1;
    assert_ok(
        pawl_app_open(
            with(f->location, "connections=1"), &f->descriptor, &f->options, &f->app, &f->error),
        &f->error);
    for (uint64_t i = 0; i < 20; i++) {
        assert_true(app_create(f, WORKSPACE + i, PAWL_APP_C_RECORD) == PAWL_APP_C_ID_MIN);
    }
    assert_int_equal(pg_number(&app_server,
                               "SELECT count(*) FROM pg_stat_activity"
                               " WHERE application_name = 'pawl app'"),
                     2); /* and the one of the lease */
}

/* --- the store alone --- */

static struct app_postgres *open_store(struct app_fixture *f)
{
    const struct app_store_options options = { .app_id = 1, .app_name = "orders" };
    struct app_store *store = NULL;

    assert_ok(pawl__app_store_open(f->location, &options, &store, &f->error), &f->error);
    return (struct app_postgres *)store;
}

static void wait_for(const char *sql)
{
    int64_t deadline_ns = in_ms(APP_PATIENCE_MS);

    while (pg_number(&app_server, sql) == 0) {
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
    }
}

static void test_a_lease_is_renewed_while_its_owner_lives(void **state)
{
    struct app_fixture *f = *state;
    const struct app_store_options options = { .app_id = 1, .app_name = "orders", .lease_ms = 600 };
    struct app_store *store = NULL;

    assert_ok(pawl__app_store_open(f->location, &options, &store, &f->error), &f->error);
    for (int i = 0; i < 3; i++) {
        expire_lease();
        wait_for("SELECT count(*) FROM apps WHERE lease_until > clock_timestamp()");
    }
    pawl__app_store_close(store);
}

static pawl_status put_x(struct app_postgres *store, pawl_error *reterr)
{
    struct app_key key = pawl__app_key_plog(1, 0, 1);
    const struct app_entry entry = {
        APP_PLOG, APP_PUT, pawl__app_key_view(&key), pawl_view_of("x")
    };

    return store->base.ops->write(&store->base, &entry, 1, reterr);
}

static void await_put(struct app_fixture *f, struct app_postgres *store, pawl_status wanted)
{
    int64_t deadline_ns = in_ms(APP_PATIENCE_MS);

    while (put_x(store, &f->error) != wanted) {
        assert_true(pawl__monotonic_ns(pawl__clock_real()) < deadline_ns);
    }
}

/* Every statement reports success. */
static void test_a_trigger_that_deletes_what_was_written_is_found_while_the_store_is_open(
    void **state)
{
    struct app_fixture *f = *state;
    const struct app_store_options options = { .app_id = 1, .app_name = "orders", .lease_ms = 600 };
    struct app_store *store = NULL;

    assert_ok(pawl__app_store_open(f->location, &options, &store, &f->error), &f->error);
    assert_ok(put_x((struct app_postgres *)store, &f->error), &f->error);
    pg_admin(&app_server,
             "CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
             " DELETE FROM app_entries WHERE key = NEW.key; RETURN NULL; END$$;"
             "CREATE TRIGGER eve AFTER INSERT OR UPDATE ON app_entries FOR EACH ROW"
             " EXECUTE FUNCTION eve()");
    await_put(f, (struct app_postgres *)store, PAWL_CORRUPT);
    assert_message(&f->error, "a trigger that is not pawl's, 'eve' on 'app_entries'");
    pg_admin(&app_server, "DROP FUNCTION eve CASCADE");
    await_put(f, (struct app_postgres *)store, PAWL_OK);
    pawl__app_store_close(store);
}

static void test_a_lease_is_renewed_while_commands_have_all_connections(void **state)
{
    struct app_fixture *f = *state;
    const struct app_store_options options = { .app_id = 1, .app_name = "orders", .lease_ms = 600 };
    struct app_store *store = NULL;
    struct pawl__pg *pg = NULL;

    assert_ok(pawl__app_store_open(with(f->location, "connections=1"), &options, &store, &f->error),
              &f->error);
    struct app_postgres *self = (struct app_postgres *)store;
    assert_ok(pawl__pg_pool_borrow(self->pg.pool, in_ms(APP_PATIENCE_MS), &pg, &f->error),
              &f->error);
    for (int i = 0; i < 3; i++) {
        expire_lease();
        wait_for("SELECT count(*) FROM apps WHERE lease_until > clock_timestamp()");
    }
    pawl__pg_pool_return(self->pg.pool, pg);
    pawl__app_store_close(store);
}

/* A process that was stopped right behind the statement that took the application. */
static void test_an_owner_that_was_stopped_while_it_opened_loses_its_lease(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    app_create(f, WORKSPACE, PAWL_APP_C_RECORD);
    pawl_app_close(STEAL(f->app), 0, NULL);
    struct pawl__pg *stopped = pg_connect(&app_server, NULL);
    assert_ok(pawl__pg_script(stopped, "SELECT app_take_lease(1, 'it', 10000, 1)", &f->error),
              &f->error);
    app_open(f);
    assert_int_equal(app_create(f, WORKSPACE, PAWL_APP_C_RECORD), PAWL_APP_C_ID_MIN + 1);
    pawl__pg_close(stopped);
}

/* It holds the lock alone, and its new lease cannot be seen yet. */
static void test_an_owner_that_is_just_taking_an_application_is_not_ended(void **state)
{
    struct app_fixture *f = *state;

    app_open(f);
    pawl_app_close(STEAL(f->app), 0, NULL);
    expire_lease();
    struct pawl__pg *taking = pg_connect(&app_server, NULL);
    assert_ok(pawl__pg_begin(taking, PAWL__PG_READ_COMMITTED, &f->error), &f->error);
    assert_ok(pawl__pg_script(taking, "SELECT app_take_lease(1, 'it', 10000, 60000)", &f->error),
              &f->error);
    assert_int_equal(pg_number(&app_server, "SELECT app_end_owner(1)"), 0);
    assert_ok(pawl__pg_commit(taking, &f->error), &f->error);
    assert_int_equal(pg_number(&app_server, "SELECT app_end_owner(1)"), 0);
    expire_lease();
    assert_int_equal(pg_number(&app_server, "SELECT app_end_owner(1)"), 1);
    pawl__pg_close(taking);
}

static void test_closing_does_not_wait_for_a_server_that_has_stalled(void **state)
{
    struct app_fixture *f = *state;
    const struct app_store_options options = { .app_id = 1, .app_name = "orders", .lease_ms = 3 };
    struct app_store *store = NULL;

    assert_ok(pawl__app_store_open(f->location, &options, &store, &f->error), &f->error);
    expire_lease();
    wait_for("SELECT count(*) FROM apps WHERE lease_until > clock_timestamp() - interval '1 s'");
    pg_server_stall(app_server.server); /* in the middle of a renewal, or just before one */
    int64_t deadline_ns = in_ms(20000);
    pawl__app_store_close(store);
    bool in_time = pawl__monotonic_ns(pawl__clock_real()) < deadline_ns;
    pg_server_resume(app_server.server);
    assert_true(in_time);
}

static pawl_status write_one(struct app_postgres *store, enum app_mode mode, pawl_error *reterr)
{
    struct app_key key = pawl__app_key_plog(1, 0, 5);
    const struct app_entry entry = { APP_PLOG, mode, pawl__app_key_view(&key), pawl_view_of("x") };

    return store->base.ops->write(&store->base, &entry, 1, reterr);
}

static pawl_status read_one(struct app_postgres *store, int64_t deadline_ns, pawl_error *reterr)
{
    AUTO(pawl__arena_done) struct pawl__arena arena = ARENA_INIT;
    struct app_key key = pawl__app_key_plog(1, 0, 5);
    pawl_view view = pawl__app_key_view(&key);
    struct app_value value;

    return store->base.ops->get_many(&store->base,
                                     &(struct app_lookup){ APP_PLOG, &view, 1, deadline_ns },
                                     &arena,
                                     &value,
                                     reterr);
}

struct busy {
    struct pawl__thread thread;
    struct pawl__pg *pg; /* or */
    struct app_postgres *store;
    pawl_status status;
    pawl_error error;
};

static void run_write(void *context)
{
    struct busy *busy = context;

    busy->status = write_one(busy->store, APP_INSERT, &busy->error);
}

#define SLEEPING                                                                \
    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'" \
    " AND state = 'active' AND pid <> pg_backend_pid()"

static void run_sleep(void *context)
{
    struct busy *busy = context;

    busy->status = pawl__pg_script(busy->pg, "SELECT pg_sleep(600)", &busy->error);
}

/* Between a look and a write somebody else inserts the same key. */
static void test_an_insert_that_comes_second_is_found_though_nobody_could_see_it(void **state)
{
    struct app_fixture *f = *state;
    struct busy busy = { .store = open_store(f) };
    struct pawl__pg *other = pg_connect(&app_server, NULL);

    assert_ok(pawl__pg_begin(other, PAWL__PG_READ_COMMITTED, &f->error), &f->error);
    assert_ok(pawl__pg_script(other,
                              "INSERT INTO app_entries VALUES"
                              " (1, '\\x0000000100000000000000000005', 'theirs')",
                              &f->error),
              &f->error);
    assert_ok(pawl__thread_start(&busy.thread, "write", run_write, &busy, &f->error), &f->error);
    wait_for("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pawl app'"
             " AND wait_event_type = 'Lock'");
    assert_ok(pawl__pg_commit(other, &f->error), &f->error);
    pawl__thread_join(&busy.thread);
    assert_status(busy.status, PAWL_CONFLICT, &busy.error);
    assert_message(&busy.error,
                   "offset 5 of the PLog of partition 0 (application 1) is there already");
    assert_ok(write_one(busy.store, APP_PUT, &f->error), &f->error);
    pawl__pg_close(other);
    pawl__app_store_close(&busy.store->base);
}

/* Its commit would come behind the back of whoever looks at the log now. */
static void test_a_session_that_was_left_behind_is_ended_before_anything_is_read(void **state)
{
    struct app_fixture *f = *state;
    struct app_postgres *store = open_store(f);
    struct busy left = { .pg = pg_connect(&app_server, NULL) };
    int64_t session = pawl__pg_session(left.pg);

    assert_ok(pawl__pg_script(left.pg, "SELECT pg_advisory_lock_shared(app_lock_of(1))", &f->error),
              &f->error);
    assert_ok(pawl__thread_start(&left.thread, "sleep", run_sleep, &left, &f->error), &f->error);
    wait_for(SLEEPING);
    assert_ok(read_one(store, 0, &f->error), &f->error); /* nobody's business */
    pawl__app_pg_add_orphan(store, session);
    pawl__app_pg_add_orphan(store, 1); /* gone long ago */
    assert_ok(read_one(store, 0, &f->error), &f->error);
    assert_int_equal(store->orphan_count, 0);
    assert_int_equal(pg_number(&app_server, SLEEPING), 0);
    pawl__thread_join(&left.thread);
    assert_status(left.status, PAWL_UNAVAILABLE, &left.error);
    pawl__pg_close(left.pg);
    pawl__app_store_close(&store->base);
}

static void test_a_read_has_a_deadline(void **state)
{
    struct app_fixture *f = *state;
    struct app_postgres *store = open_store(f);
    struct pawl__pg *other = pg_connect(&app_server, NULL);

    assert_ok(pawl__pg_begin(other, PAWL__PG_READ_COMMITTED, &f->error), &f->error);
    assert_ok(pawl__pg_script(other, "LOCK TABLE app_entries", &f->error), &f->error);
    assert_status(read_one(store, in_ms(50), &f->error), PAWL_TIMEOUT, &f->error);
    pawl__pg_rollback(other);
    assert_ok(read_one(store, in_ms(APP_PATIENCE_MS), &f->error), &f->error);
    pawl__pg_close(other);
    pawl__app_store_close(&store->base);
}

#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)

int main(void)
{
    char program[] = "test_app_owner";
    char backend[] = "postgres";
    char *arguments[] = { program, backend, NULL };
    const struct CMUnitTest tests[] = {
        APP_TEST(test_the_second_owner_is_refused_and_told_who_has_it),
        APP_TEST(test_lost_sessions_come_back_as_the_owners),
        APP_TEST(test_a_server_that_was_killed_is_waited_for),
        APP_TEST(test_an_owner_that_was_dispossessed_never_writes_again),
        APP_TEST(test_an_owner_that_stands_still_loses_its_lease),
        APP_TEST(test_a_lease_that_ran_out_stays_with_its_owner_while_nobody_else_wants_it),
        APP_TEST(test_a_lease_is_renewed_while_its_owner_lives),
        APP_TEST(test_a_trigger_that_deletes_what_was_written_is_found_while_the_store_is_open),
        APP_TEST(test_a_lease_is_renewed_while_commands_have_all_connections),
        APP_TEST(test_an_owner_that_was_stopped_while_it_opened_loses_its_lease),
        APP_TEST(test_an_owner_that_is_just_taking_an_application_is_not_ended),
        APP_TEST(test_closing_does_not_wait_for_a_server_that_has_stalled),
        APP_TEST(test_an_application_closes_in_time_though_its_server_has_stalled),
        cmocka_unit_test_setup_teardown(
            test_a_command_to_a_stopped_process_of_the_server_ends_in_time,
            app_setup,
            resume_and_teardown),
        APP_TEST(test_applications_share_a_database),
        APP_TEST(test_one_connection_is_enough),
        APP_TEST(test_an_insert_that_comes_second_is_found_though_nobody_could_see_it),
        APP_TEST(test_a_session_that_was_left_behind_is_ended_before_anything_is_read),
        APP_TEST(test_a_read_has_a_deadline),
    };

    return app_suite(2, arguments, tests, COUNT_OF(tests));
}
