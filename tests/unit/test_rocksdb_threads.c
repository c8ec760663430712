/* One RocksDB handle, many threads. */
#include "lib/check.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/thread/thread.h"
#include "lib/tempdir.h"
#include "store/rocksdb/rocksdb.h"

enum { WRITERS = 4, READERS = 2, BATCHES = 60, BATCH = 8 };

static const char *const families[] = { "events", "meta" };

struct world {
    struct pawl__rocks *db;
    atomic_int acknowledged[WRITERS]; /* batches of each writer */
    atomic_bool stop;
};

struct worker {
    struct world *world;
    int number;
    struct pawl__thread thread;
    pawl_status status;
    pawl_error error;
    long seen;
};

static void make_key(char key[16], int writer, int n)
{
    snprintf(key, 16, "%d/%06d", writer, n);
}

/* Each batch also moves the writer's cursor in the other family. */
static void write_batches(void *context)
{
    struct worker *worker = context;
    struct pawl__rocks_batch *batch = NULL;

    worker->status = pawl__rocks_batch_new(worker->world->db, &batch, &worker->error);
    for (int i = 0; i < BATCHES && worker->status == PAWL_OK; i++) {
        char key[16];

        for (int k = 0; k < BATCH; k++) {
            make_key(key, worker->number, i * BATCH + k);
            pawl__rocks_put(batch, 0, pawl_view_of(key), pawl_view_of(key));
        }
        char cursor[16];
        make_key(cursor, worker->number, 0);
        make_key(key, worker->number, (i + 1) * BATCH);
        pawl__rocks_put(batch, 1, pawl_view_of(cursor), pawl_view_of(key));
        worker->status = pawl__rocks_write(worker->world->db, batch, &worker->error);
        if (worker->status == PAWL_OK) {
            atomic_store(&worker->world->acknowledged[worker->number], i + 1);
        }
    }
    pawl__rocks_batch_free(batch);
}

/* What was acknowledged before a read is in it, and a snapshot has whole batches. */
static pawl_status check_once(struct worker *worker, int writer)
{
    struct pawl__rocks *db = worker->world->db;
    AUTO(pawl__rocks_snapshot_close_p) struct pawl__rocks_snapshot *snapshot = NULL;
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    char space[4];
    char prefix[4];
    int acknowledged = atomic_load(&worker->world->acknowledged[writer]);
    int count = 0;

    snprintf(prefix, sizeof(prefix), "%d/", writer);
    pawl_status status = pawl__rocks_snapshot_open(db, &snapshot, &worker->error);
    if (status == PAWL_OK) {
        status = pawl__rocks_iter_open(db,
                                       snapshot,
                                       0,
                                       pawl__rocks_prefix(pawl_view_of(prefix), space),
                                       &iter,
                                       &worker->error);
    }
    if (status == PAWL_OK) {
        status = pawl__rocks_iter_first(iter, &worker->error);
    }
    for (; status == PAWL_OK && iter->valid; status = pawl__rocks_iter_next(iter, &worker->error)) {
        count++;
    }
    worker->seen += count;
    if (status == PAWL_OK && (count % BATCH != 0 || count < acknowledged * BATCH)) {
        return PAWL_CORRUPT;
    }
    return status;
}

static void read_all_the_time(void *context)
{
    struct worker *worker = context;

    for (int i = 0; worker->status == PAWL_OK && !atomic_load(&worker->world->stop); i++) {
        worker->status = check_once(worker, i % WRITERS);
        if (worker->status == PAWL_OK && i % 10 == worker->number) {
            worker->status = pawl__rocks_flush(worker->world->db, &worker->error);
        }
    }
    /* Writers may be done before a reader had its first turn: the last look sees all they wrote. */
    if (worker->status == PAWL_OK) {
        worker->status = check_once(worker, worker->number % WRITERS);
    }
}

static void start(struct worker *worker, struct world *world, int number, void (*run)(void *))
{
    *worker = (struct worker){ .world = world, .number = number };
    assert_ok(pawl__thread_start(&worker->thread, "rocks", run, worker, &worker->error),
              &worker->error);
}

static void test_writers_and_readers_share_a_handle(void **state)
{
    (void)state;
    struct world world = { 0 };
    struct worker writers[WRITERS];
    struct worker readers[READERS];
    char dir[TEMPDIR_SIZE];
    pawl_error error = PAWL_ERROR_INIT;
    const struct pawl__rocks_options options = { .families = families,
                                                 .family_count = 2,
                                                 .free_space_min = 1 << 20 };

    assert_ok(tempdir_make(dir, "pawl-rocksdb", &error), &error);
    assert_ok(pawl__rocks_open(dir, &options, &world.db, &error), &error);
    for (int i = 0; i < WRITERS; i++) {
        start(&writers[i], &world, i, write_batches);
    }
    for (int i = 0; i < READERS; i++) {
        start(&readers[i], &world, i, read_all_the_time);
    }
    for (int i = 0; i < WRITERS; i++) {
        pawl__thread_join(&writers[i].thread);
    }
    atomic_store(&world.stop, true);
    for (int i = 0; i < READERS; i++) {
        pawl__thread_join(&readers[i].thread);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_ok(writers[i].status, &writers[i].error);
        assert_int_equal(atomic_load(&world.acknowledged[i]), BATCHES);
    }
    for (int i = 0; i < READERS; i++) {
        assert_ok(readers[i].status, &readers[i].error);
        assert_true(readers[i].seen > 0);
    }
    pawl__rocks_close(world.db);
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writers_and_readers_share_a_handle),
    };
    return cmocka_run_group_tests_name("rocksdb_threads", tests, NULL, NULL);
}
