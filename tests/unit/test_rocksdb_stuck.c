/* A store whose disk hangs, in a process with others: fdatasync of this program does not return for it. */
#include "lib/check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/thread/thread.h"
#include "lib/tempdir.h"
#include "store/rocksdb/internal.h"

enum { BUDGET = 16 << 20, VALUE = 64 << 10, STUCK_VALUES = 80, OTHER_VALUES = 200 };

static const char *const families[] = { "events", "meta" };

static struct {
    struct pawl__lock lock; /* covers all below */
    struct pawl__cond changed;
    bool hangs; /* what is synced below a directory "stuck" */
    int waiting;
} disk;

static void wait_for_disk(void)
{
    pawl__lock(&disk.lock);
    disk.waiting++;
    pawl__cond_broadcast(&disk.changed);
    while (disk.hangs) {
        pawl__cond_wait(&disk.changed, &disk.lock);
    }
    disk.waiting--;
    pawl__unlock(&disk.lock);
}

/* Instead of libc's, also for the engine. */
__attribute__((visibility("default"))) int fdatasync(int __fildes)
{
    char link[64];
    char path[512] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", __fildes);
    if (readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "/stuck/") != NULL) {
        wait_for_disk();
    }
    return (int)syscall(SYS_fdatasync, __fildes);
}

static void set_hanging(bool hangs)
{
    pawl__lock(&disk.lock);
    disk.hangs = hangs;
    pawl__cond_broadcast(&disk.changed);
    pawl__unlock(&disk.lock);
}

static int64_t in_a_minute(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) + 60 * NS_PER_S;
}

static bool wait_until_it_hangs(void)
{
    int64_t deadline_ns = in_a_minute();
    bool in_time = true;

    pawl__lock(&disk.lock);
    while (disk.waiting == 0 && in_time) {
        in_time = pawl__cond_wait_until(&disk.changed, &disk.lock, deadline_ns);
    }
    bool hangs = disk.waiting > 0;
    pawl__unlock(&disk.lock);
    return hangs;
}

struct worker {
    struct pawl__thread thread;
    const char *dir;
    struct pawl__rocks *db; /* NULL: opened and closed by the worker */
    int values;
    pawl_status status;
    pawl_error error;
};

static pawl_status open_store(const char *dir,
                              const char *name,
                              struct pawl__rocks **ret_db,
                              pawl_error *reterr)
{
    char path[TEMPDIR_SIZE + 32];
    const struct pawl__rocks_options options = {
        .families = families, .family_count = 2, .memtable_bytes = BUDGET, .free_space_min = 1 << 20
    };

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return pawl__rocks_open(path, &options, ret_db, reterr);
}

static pawl_status write_values(struct worker *worker, struct pawl__rocks *db)
{
    static const char value[VALUE] = "v";
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    pawl_status status = pawl__rocks_batch_new(db, &batch, &worker->error);

    for (int i = 0; i < worker->values && status == PAWL_OK; i++) {
        char key[16];

        snprintf(key, sizeof(key), "%08d", i);
        pawl__rocks_put(batch, (size_t)i % 2, pawl_view_of(key), (pawl_view){ value, VALUE });
        status = pawl__rocks_write(db, batch, &worker->error);
    }
    return status;
}

static void run_worker(void *context)
{
    struct worker *worker = context;
    struct pawl__rocks *db = worker->db;

    if (db == NULL) {
        worker->status = open_store(worker->dir, "other", &db, &worker->error);
    }
    if (worker->status == PAWL_OK) {
        worker->status = write_values(worker, db);
    }
    if (worker->db == NULL && worker->status == PAWL_OK) {
        worker->status = pawl__rocks_flush_last(db, in_a_minute(), &worker->error);
        pawl__rocks_close(db);
    }
}

static void start(struct worker *worker)
{
    assert_ok(pawl__thread_start(&worker->thread, "worker", run_worker, worker, &worker->error),
              &worker->error);
}

static void test_a_store_that_hangs_does_not_hold_up_another_that_opens_writes_and_closes(
    void **state)
{
    (void)state;
    char dir[TEMPDIR_SIZE];
    pawl_error error = PAWL_ERROR_INIT;
    static struct worker filler = { .values = STUCK_VALUES };
    static struct worker stuck = { .values = 1 };
    static struct worker other = { .values = OTHER_VALUES };

    assert_ok(tempdir_make(dir, "pawl-rocksdb", &error), &error);
    pawl__rocks_set_memory_max(BUDGET);
    assert_ok(open_store(dir, "stuck", &stuck.db, &error), &error);
    filler.db = stuck.db;
    run_worker(&filler); /* it has the most to flush of all */
    assert_ok(filler.status, &filler.error);
    set_hanging(true);
    start(&stuck);
    bool hung = wait_until_it_hangs();

    other.dir = dir;
    start(&other);
    bool ended = pawl__thread_join_until(&other.thread, in_a_minute());
    bool was_asked = atomic_load(&stuck.db->share.flushing); /* and has not done it */

    set_hanging(false);
    pawl__thread_join(&other.thread);
    pawl__thread_join(&stuck.thread);
    assert_true(hung);
    assert_true(ended);
    assert_true(was_asked);
    assert_ok(other.status, &other.error);
    assert_ok(stuck.status, &stuck.error);
    pawl__rocks_close(stuck.db);
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_a_store_that_hangs_does_not_hold_up_another_that_opens_writes_and_closes),
    };

    pawl__lock_cond_init(&disk.lock, &disk.changed);
    return cmocka_run_group_tests_name("rocksdb_stuck", tests, NULL, NULL);
}
