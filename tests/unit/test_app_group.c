/* What becomes of a group of commands of which some cannot be written. Argument: the backend. */
#include "lib/app_fixture.h"

#include <stdatomic.h>

#include "base/os/clock.h"
#include "base/thread/thread.h"

#define V(text) ((pawl_view){ (text), sizeof(text) - 1 })

enum { THREADS = 8 };

struct client {
    struct app_fixture *f;
    struct pawl__thread thread;
    uint64_t workspace;
    pawl_status status;
};

/* A store that counts the writes of events, and holds the first one up until a group waits behind it. */
static struct {
    struct app_store_ops ops;
    const struct app_store_ops *real;
    struct app_partition *partition;
    atomic_int writes;
    size_t group;
} counted;

static bool before(int64_t deadline_ns)
{
    return pawl__monotonic_ns(pawl__clock_real()) < deadline_ns;
}

static int64_t patience(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) + APP_PATIENCE_MS * NS_PER_MS;
}

static pawl_status count_write(struct app_store *store,
                               const struct app_entry *entries,
                               size_t count,
                               pawl_error *reterr)
{
    int64_t deadline_ns = patience();

    if (entries[0].family == APP_PLOG && atomic_fetch_add(&counted.writes, 1) == 0) {
        while (pawl__commit_waiting(counted.partition->commit) < counted.group
               && before(deadline_ns)) {
        }
    }
    return counted.real->write(store, entries, count, reterr);
}

static void run_client(void *context)
{
    struct client *client = context;
    const pawl_app_create create = {
        sizeof(pawl_app_create), PAWL_APP_C_RECORD, 1, 0, V("order"), V("{}")
    };
    const pawl_app_command command = { .size = sizeof(pawl_app_command),
                                       .workspace = client->workspace,
                                       .kind = V("shop"),
                                       .creates = &create,
                                       .create_count = 1 };
    pawl_app_response *response = NULL;
    pawl_error error = PAWL_ERROR_INIT;

    client->status = pawl_app_exec(client->f->app, &command, &response, &error);
    pawl_app_response_free(response);
}

static bool see_event(void *context, const pawl_app_event *event)
{
    *(uint64_t *)context = event->plog_offset;
    return true;
}

/* The first write, the group, the group without those of workspace 1, and each of those. */
static void test_a_group_in_conflict_runs_again_without_the_workspace_that_is(void **state)
{
    struct app_fixture *f = *state;
    struct client clients[1 + THREADS] = { 0 };
    uint64_t last = 0;

    app_open(f);
    assert_ok(pawl_app_wait(f->app, APP_PATIENCE_MS, &f->error), &f->error);
    app_sabotage(f, APP_RECORDS, pawl__app_key_record(1, 1, PAWL_APP_C_ID_MIN), V("taken"));
    counted.real = f->app->store->ops;
    counted.ops = *counted.real;
    counted.ops.write = count_write;
    counted.partition = &f->app->partitions[1];
    counted.group = THREADS;
    atomic_store(&counted.writes, 0);
    f->app->store->ops = &counted.ops;
    for (size_t i = 0; i <= THREADS; i++) {
        int64_t deadline_ns = patience();
        clients[i] =
            (struct client){ .f = f, .workspace = i == 3 || i == 5 ? 1 : 1 + 2 * (1 + i / 2) };
        assert_ok(
            pawl__thread_start(&clients[i].thread, "client", run_client, &clients[i], &f->error),
            &f->error);
        while (atomic_load(&counted.writes) == 0 && before(deadline_ns)) {
        }
    }
    for (size_t i = 0; i <= THREADS; i++) {
        pawl__thread_join(&clients[i].thread);
        assert_int_equal(clients[i].status, clients[i].workspace == 1 ? PAWL_CONFLICT : PAWL_OK);
    }
    assert_int_equal(atomic_load(&counted.writes), 5);
    assert_ok(pawl_app_read_plog(f->app, 1, NULL, see_event, &last, &f->error), &f->error);
    assert_int_equal(last, THREADS - 1);
}

#define APP_TEST(name) cmocka_unit_test_setup_teardown(name, app_setup, app_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        APP_TEST(test_a_group_in_conflict_runs_again_without_the_workspace_that_is),
    };

    return app_suite(argc, argv, tests, COUNT_OF(tests));
}
