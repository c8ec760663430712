/* One consumer WAL in RocksDB: intake appends while apply reads and marks, maintenance cleans up and people look. */
#include "lib/wal_fixture.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread/thread.h"

enum { EVENTS = 3000, BATCH = 50, PAGE = 70 };

struct world {
    struct delivery_wal *wal;
    atomic_uint_least64_t appended;
    atomic_uint_least64_t applied;
    atomic_bool stop;
};

struct worker {
    struct world *world;
    struct pawl__thread thread;
    pawl_status status;
    pawl_error error;
    uint64_t rounds;
};

static void append_all(void *context)
{
    struct worker *worker = context;
    struct delivery_wal *wal = worker->world->wal;
    const struct delivery_wal_meta meta = { .epoch = 1 };
    struct wal_sample *samples = calloc(BATCH, sizeof(*samples));
    struct delivery_entry entries[BATCH];

    worker->status = samples == NULL ? PAWL_NOMEM : PAWL_OK;
    for (delivery_lsn first = 1; first <= EVENTS && worker->status == PAWL_OK; first += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            wal_sample(&samples[i], first + i, first + i);
            entries[i] = samples[i].entry;
            entries[i].by_place = i % 5 == 0;
        }
        worker->status = wal->ops->append(wal, entries, BATCH, &meta, &worker->error);
        if (worker->status == PAWL_OK) {
            atomic_store(&worker->world->appended, first + BATCH - 1);
        }
    }
    free(samples);
}

/* A page must hold every LSN from where it begins, and what was acknowledged before the read. */
static pawl_status apply_page(struct worker *worker, struct delivery_page *page, uint64_t *applied)
{
    static const struct delivery_fate confirmed = { .state = DELIVERY_CONFIRMED };
    struct delivery_wal *wal = worker->world->wal;
    struct delivery_range range = { .from = *applied + 1,
                                    .to = UINT64_MAX,
                                    .states = DELIVERY_STATES_ALL,
                                    .entries_max = PAGE,
                                    .bytes_max = SIZE_MAX };
    uint64_t appended = atomic_load(&worker->world->appended);
    delivery_lsn lsns[PAGE];
    struct delivery_fate fates[PAGE];

    TRY(wal->ops->read(wal, &range, page, &worker->error));
    if (*applied + page->count < MIN(appended, *applied + PAGE)) {
        return PAWL_FAILED;
    }
    for (size_t i = 0; i < page->count; i++) {
        if (page->entries[i].lsn != *applied + 1 + i) {
            return PAWL_FAILED;
        }
        lsns[i] = page->entries[i].lsn;
        fates[i] = confirmed;
        fates[i].state = lsns[i] % 100 == 7 ? DELIVERY_FAILED : DELIVERY_CONFIRMED;
    }
    TRY(wal->ops->mark(wal, lsns, fates, page->count, &worker->error));
    *applied += page->count;
    return PAWL_OK;
}

static void apply_all(void *context)
{
    struct worker *worker = context;
    struct delivery_page page = { .count = 0 };
    uint64_t applied = 0;

    while (applied < EVENTS && worker->status == PAWL_OK && !atomic_load(&worker->world->stop)) {
        worker->status = apply_page(worker, &page, &applied);
        atomic_store(&worker->world->applied, applied);
    }
    pawl__delivery_page_done(&page);
}

static void clean_all(void *context)
{
    struct worker *worker = context;
    struct delivery_wal *wal = worker->world->wal;

    while (worker->status == PAWL_OK && !atomic_load(&worker->world->stop)) {
        uint64_t applied = atomic_load(&worker->world->applied);
        worker->status =
            wal->ops->clean_up(wal, applied > PAGE ? applied - PAGE : 0, &worker->error);
        worker->rounds++;
    }
}

/* Reads everything from the beginning, and the statistics: sums that no moment can contradict. */
static pawl_status look_once(struct worker *worker, struct delivery_page *page)
{
    struct delivery_wal *wal = worker->world->wal;
    struct delivery_range range = { .from = 1,
                                    .to = UINT64_MAX,
                                    .states = DELIVERY_STATES_ALL,
                                    .entries_max = 300,
                                    .bytes_max = SIZE_MAX };
    struct delivery_wal_stats stats;

    TRY(wal->ops->read(wal, &range, page, &worker->error));
    TRY(wal->ops->stats(wal, &stats, &worker->error));
    return stats.entries[DELIVERY_PENDING] <= EVENTS && stats.entries[DELIVERY_CONFIRMED] <= EVENTS
                   && stats.first <= stats.last + 1
               ? PAWL_OK
               : PAWL_FAILED;
}

static void look_all(void *context)
{
    struct worker *worker = context;
    struct delivery_page page = { .count = 0 };

    while (worker->status == PAWL_OK && !atomic_load(&worker->world->stop)) {
        worker->status = look_once(worker, &page);
        worker->rounds++;
    }
    pawl__delivery_page_done(&page);
}

static void test_appending_reading_marking_and_cleaning_up_run_at_once(void **state)
{
    static void (*const jobs[])(void *) = { append_all, apply_all, clean_all, look_all };
    struct wal_fixture f;
    struct world world = { .stop = false };
    struct worker workers[COUNT_OF(jobs)];

    (void)state;
    wal_fixture_open(&f, false);
    world.wal = f.wal;
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        workers[i] = (struct worker){ .world = &world };
        assert_ok(pawl__thread_start(&workers[i].thread, "wal", jobs[i], &workers[i], &f.error),
                  &f.error);
    }
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        pawl__thread_join(&workers[i].thread);
        if (i == 1 || workers[i].status != PAWL_OK) {
            atomic_store(&world.stop, true); /* all is applied, or it never will be */
        }
    }
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        if (workers[i].status != PAWL_OK) {
            fail_msg("worker %zu: %s: %s",
                     i,
                     pawl_status_name(workers[i].status),
                     workers[i].error.message);
        }
    }
    assert_ok(pawl__delivery_rocksdb_wal_verify(f.wal, &f.error), &f.error);
    assert_ok(f.wal->ops->clean_up(f.wal, EVENTS, &f.error), &f.error);
    wal_reopen(&f);
    assert_int_equal(wal_stats(&f).entries[DELIVERY_PENDING], 0);
    assert_int_equal(wal_stats(&f).entries[DELIVERY_CONFIRMED], 0);
    assert_int_equal(wal_stats(&f).entries[DELIVERY_FAILED], EVENTS / 100);
    assert_ok(pawl__delivery_rocksdb_wal_verify(f.wal, &f.error), &f.error);
    wal_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appending_reading_marking_and_cleaning_up_run_at_once),
    };
    return cmocka_run_group_tests_name("delivery_wal_threads", tests, NULL, NULL);
}
