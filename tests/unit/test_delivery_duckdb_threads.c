/* Pipelines that share a DuckDB file, each on a thread of its own, while answers are lost and checkpoints run. */
#include "lib/sink_fixture.h"

#include <stdio.h>

#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "delivery/core/apply.h"

enum { PIPELINES = 3, TRANSACTIONS = 12 };

struct worker {
    struct delivery_sink *sink;
    struct delivery_column column;
    struct delivery_mapping mapping;
    char name[16];
    struct pawl__thread thread;
    struct delivery_cursor cursor;
    int lost;
    pawl_status status;
    pawl_error error;
};

static pawl_status commit_next(struct worker *worker)
{
    uint64_t n = worker->cursor.applied + 1;
    struct delivery_key key = sink_key(n);
    struct delivery_entry entry = {
        .lsn = n,
        .key = key.key,
        .payload_hash = key.payload_hash,
        .transaction_id = pawl_view_of("a:b:0"),
        .payload = pawl_view_of("{\"n\":1}"),
    };
    struct delivery_outcome outcome = { .entry = &entry, .kind = DELIVERY_ROW };
    struct delivery_transaction transaction = { .outcomes = &outcome,
                                                .count = 1,
                                                .cursor = worker->cursor };

    transaction.cursor.applied = n;
    transaction.cursor.version++;
    pawl_status status = worker->sink->ops->apply(worker->sink, &transaction, &worker->error);
    worker->cursor = status == PAWL_OK ? transaction.cursor : worker->cursor;
    return status;
}

/* Goes on as a pipeline does: after an outage the cursor row tells, as soon as it can be read. */
static void run(void *context)
{
    struct worker *worker = context;
    bool is_in_doubt = false;
    bool is_found = false;

    while (worker->cursor.applied < TRANSACTIONS && worker->lost < TRANSACTIONS) {
        worker->status = is_in_doubt ? worker->sink->ops->read_cursor(
                             worker->sink, &worker->cursor, &is_found, &worker->error)
                                     : commit_next(worker);
        is_in_doubt = worker->status != PAWL_OK;
        worker->lost += is_in_doubt;
        if (is_in_doubt && pawl__delivery_blame(worker->status) != DELIVERY_BLAME_OUTAGE) {
            return;
        }
    }
}

static void start(struct sink_fixture *f, struct worker *worker, int number)
{
    snprintf(worker->name, sizeof(worker->name), "plays_%d", number);
    worker->column =
        (struct delivery_column){ .name = "n", .type = DELIVERY_BIGINT, .path = "$.n" };
    worker->mapping =
        (struct delivery_mapping){ .table = worker->name, .columns = &worker->column, .count = 1 };
    assert_ok(pawl__delivery_duckdb_sink(
                  f->file, worker->name, &worker->mapping, &worker->sink, &f->error),
              &f->error);
}

static void test_pipelines_share_a_file_through_outages(void **state)
{
    static struct worker workers[PIPELINES];
    struct sink_fixture *f = *state;
    struct delivery_cursor cursor;
    int lost = 0;

    for (int i = 0; i < PIPELINES; i++) {
        start(f, &workers[i], i);
    }
    assert_ok(pawl__failpoint_set("duckdb.commit.after=error:IO@9*2", &f->error), &f->error);
    for (int i = 0; i < PIPELINES; i++) {
        assert_ok(pawl__thread_start(&workers[i].thread, "pipeline", run, &workers[i], &f->error),
                  &f->error);
    }
    pawl_status checkpointed = PAWL_OK;
    for (int i = 0; i < 3 && checkpointed != PAWL_INVALID; i++) {
        checkpointed = f->sink->ops->checkpoint(f->sink, &cursor, &f->error);
    }
    struct delivery_sink *own = f->sink;
    size_t keys[PIPELINES];
    for (int i = 0; i < PIPELINES; i++) {
        pawl__thread_join(&workers[i].thread);
    }
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(pawl__failpoint_set(NULL, NULL), &f->error);
    for (int i = 0; i < PIPELINES; i++) {
        f->sink = workers[i].sink;
        keys[i] = sink_count_keys(f);
        workers[i].cursor = sink_cursor(f);
        f->sink->ops->close(f->sink);
        lost += workers[i].lost;
    }
    f->sink = own;
    for (int i = 0; i < PIPELINES; i++) {
        assert_int_equal(workers[i].status, PAWL_OK);
        assert_int_equal(keys[i], TRANSACTIONS); /* none lost, none twice */
        assert_int_equal(workers[i].cursor.version, TRANSACTIONS);
    }
    assert_int_not_equal(checkpointed, PAWL_INVALID);
    assert_true(lost > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        sink_test(test_pipelines_share_a_file_through_outages),
    };

    sink_fixture_choose("duckdb");
    return cmocka_run_group_tests_name("delivery_duckdb_threads", tests, NULL, NULL);
}
