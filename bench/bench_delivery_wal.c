/* The consumer WAL, against one that keeps whole entries under `consumer:pending:` and moves them to
 * `consumer:confirmed:` as they are. The same store, the same events, one fsync per append in both; ours decides and
 * checks more (statistics, checksums, metadata). This is why a mark moves only a small row. */
#include "bench.h"
#include "must.h"

#include <stdio.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/core/random.h"
#include "delivery/rocksdb/format.h"
#include "delivery/rocksdb/wal.h"
#include "lib/tempdir.h"
#include "store/rocksdb/rocksdb.h"

enum { BATCH = 1000, ROUNDS = 60, EVENTS = BATCH * ROUNDS, RUNS = 3, PAYLOAD_BYTES = 300 };

static struct delivery_entry entries[BATCH];
static char payloads[BATCH][PAYLOAD_BYTES];
static delivery_lsn lsns[BATCH];
static struct delivery_fate fates[BATCH];
static struct delivery_key keys[BATCH];
static struct delivery_hit hits[BATCH];

static void make_events(struct pawl__prng *prng, delivery_lsn first)
{
    for (size_t i = 0; i < BATCH; i++) {
        struct delivery_entry *entry = &entries[i];
        for (size_t at = 0; at + 8 <= PAYLOAD_BYTES; at += 8) {
            uint64_t bits = pawl__prng_next(prng);
            memcpy(&payloads[i][at], &bits, 4); /* half of it compresses */
        }
        for (size_t at = 0; at < 2; at++) {
            uint64_t bits = pawl__prng_next(prng);
            memcpy(&entry->key.bytes[8 * at], &bits, 8);
        }
        entry->lsn = first + i;
        entry->transaction_id = pawl_view_of("shop:order-12345678:0");
        entry->source = pawl_view_of("shop");
        entry->event_id = pawl_view_of("order-12345678");
        entry->subject = pawl_view_of("orders.new");
        entry->message_id = entry->event_id;
        entry->payload = (pawl_view){ payloads[i], PAYLOAD_BYTES };
        lsns[i] = entry->lsn;
        fates[i] = (struct delivery_fate){ .state = DELIVERY_CONFIRMED, .attempts = 1 };
        keys[i].key = entry->key;
        keys[i].key.bytes[0] ^= 1; /* absent */
    }
}

/* --- whole entries that move --- */

struct moving {
    struct pawl__rocks *db;
    struct pawl__rocks_batch *batch;
    struct pawl__buf value;
};

static void moving_append(struct moving *store)
{
    for (size_t i = 0; i < BATCH; i++) {
        struct wal_key key = pawl__delivery_wal_fate_key(DELIVERY_PENDING, entries[i].lsn);
        struct wal_key index = pawl__delivery_wal_index_key(&entries[i].key);
        struct wal_index_row row = { .lsn = entries[i].lsn };
        pawl__delivery_wal_entry_encode(&entries[i], &store->value);
        pawl__rocks_put(
            store->batch, WAL_FATES, pawl__delivery_wal_key(&key), pawl__buf_view(&store->value));
        pawl__delivery_wal_index_encode(&entries[i].key, &row, &store->value);
        pawl__rocks_put(
            store->batch, WAL_INDEX, pawl__delivery_wal_key(&index), pawl__buf_view(&store->value));
    }
    MUST(pawl__rocks_write(store->db, store->batch, err));
}

static void moving_mark(struct moving *store)
{
    static struct wal_key from[BATCH];
    static pawl_view views[BATCH];
    static struct pawl__rocks_value values[BATCH];

    for (size_t i = 0; i < BATCH; i++) {
        from[i] = pawl__delivery_wal_fate_key(DELIVERY_PENDING, lsns[i]);
        views[i] = pawl__delivery_wal_key(&from[i]);
    }
    MUST(pawl__rocks_get_many(store->db, NULL, WAL_FATES, views, BATCH, values, err));
    for (size_t i = 0; i < BATCH; i++) {
        struct wal_key to = pawl__delivery_wal_fate_key(DELIVERY_CONFIRMED, lsns[i]);
        pawl__rocks_delete(store->batch, WAL_FATES, views[i]);
        pawl__rocks_put(store->batch, WAL_FATES, pawl__delivery_wal_key(&to), values[i].view);
        pawl__rocks_value_done(&values[i]);
    }
    MUST(pawl__rocks_write_unsynced(store->db, store->batch, err));
}

/* --- runs --- */

/* CPU time and bytes of everything, with the flushes and compactions behind it: what a busy machine cannot
 * distort. */
struct cost {
    double wall_s[RUNS];
    double cpu_s[RUNS];
    double written[RUNS];
};

static double written_bytes(void)
{
    FILE *file = fopen("/proc/self/io", "r");
    char line[80];
    double bytes = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "wchar: ", 7) == 0) {
            bytes = strtod(&line[7], NULL);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

static double cpu_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void begin(struct cost *cost, int run)
{
    cost->wall_s[run] = -bench_now_s();
    cost->cpu_s[run] = -cpu_now_s();
    cost->written[run] = -written_bytes();
}

static void end(struct cost *cost, int run)
{
    cost->wall_s[run] += bench_now_s();
    cost->cpu_s[run] += cpu_now_s();
    cost->written[run] += written_bytes();
}

static void report_time(const char *name, double start_s, double events)
{
    bench_report(name, "events/CPU s", events / (cpu_now_s() - start_s), "", 0, 0);
}

static void read_all(struct delivery_wal *wal)
{
    struct delivery_page page = { .count = 0 };
    struct delivery_range range = { .from = 1,
                                    .to = UINT64_MAX,
                                    .states = DELIVERY_STATES_ALL,
                                    .entries_max = BATCH,
                                    .bytes_max = SIZE_MAX };

    do {
        MUST(wal->ops->read(wal, &range, &page, err));
        range.from = page.count > 0 ? page.entries[page.count - 1].lsn + 1 : 0;
    } while (page.count == BATCH);
    pawl__delivery_page_done(&page);
}

static void report_rest(struct delivery_wal *wal)
{
    double start_s = cpu_now_s();

    MUST(wal->ops->lookup(wal, keys, BATCH, hits, err));
    report_time("delivery WAL, lookup of absent ids", start_s, BATCH);
    start_s = cpu_now_s();
    read_all(wal);
    report_time("delivery WAL, read", start_s, EVENTS);
    start_s = cpu_now_s();
    MUST(wal->ops->clean_up(wal, EVENTS, err));
    report_time("delivery WAL, clean up", start_s, EVENTS);
}

static void run_ours(const char *path, struct cost *cost, int run)
{
    const struct delivery_wal_meta meta = { .epoch = 1 };
    struct pawl__prng prng = pawl__prng_seeded(1);
    struct delivery_wal *wal = NULL;

    begin(cost, run);
    MUST(pawl__delivery_rocksdb_wal_open(path, NULL, &wal, err));
    for (int round = 0; round < ROUNDS; round++) {
        make_events(&prng, (delivery_lsn)round * BATCH + 1);
        MUST(wal->ops->append(wal, entries, BATCH, &meta, err));
        MUST(wal->ops->mark(wal, lsns, fates, BATCH, err));
    }
    wal->ops->close(wal);
    end(cost, run);
    if (run == RUNS - 1) {
        MUST(pawl__delivery_rocksdb_wal_open(path, NULL, &wal, err));
        report_rest(wal);
        wal->ops->close(wal);
    }
    tempdir_remove(path);
}

static void run_moving(const char *path, struct cost *cost, int run)
{
    static const char *const families[] = { "meta", "entries", "fates", "index" };
    const struct pawl__rocks_options options = { .families = families, .family_count = 4 };
    struct moving store = { .value = BUF_INIT(WAL_VALUE_BYTES_MAX) };
    struct pawl__prng prng = pawl__prng_seeded(1);

    begin(cost, run);
    MUST(pawl__rocks_open(path, &options, &store.db, err));
    MUST(pawl__rocks_batch_new(store.db, &store.batch, err));
    for (int round = 0; round < ROUNDS; round++) {
        make_events(&prng, (delivery_lsn)round * BATCH + 1);
        moving_append(&store);
        moving_mark(&store);
    }
    MUST(pawl__rocks_flush(store.db, err));
    pawl__buf_done(&store.value);
    pawl__rocks_batch_free(store.batch);
    pawl__rocks_close(store.db);
    end(cost, run);
    tempdir_remove(path);
}

static void report(struct cost *ours, struct cost *moving)
{
    const char *other = "whole entries move";

    bench_report("delivery WAL, append and mark",
                 "events/s",
                 EVENTS / bench_median(ours->wall_s, RUNS),
                 other,
                 EVENTS / bench_median(moving->wall_s, RUNS),
                 0);
    bench_report("delivery WAL, append and mark",
                 "events/CPU s",
                 EVENTS / bench_median(ours->cpu_s, RUNS),
                 other,
                 EVENTS / bench_median(moving->cpu_s, RUNS),
                 0);
    bench_report("delivery WAL, append and mark",
                 "bytes/event",
                 bench_median(ours->written, RUNS) / EVENTS,
                 other,
                 bench_median(moving->written, RUNS) / EVENTS,
                 0);
}

int main(void)
{
    static struct cost ours;
    static struct cost moving;
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 8];

    MUST(tempdir_make(dir, "pawl-bench", err));
    snprintf(path, sizeof(path), "%s/wal", dir);
    for (int run = 0; run < RUNS; run++) {
        run_moving(path, &moving, run);
        run_ours(path, &ours, run);
    }
    report(&ours, &moving);
    tempdir_remove(dir);
    return 0;
}
