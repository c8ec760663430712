/* Sync batches through the wrapper against the same batches through the bare C interface: what the
 * limits, the free-space guard and the poison check cost. Both open with the same settings, and both
 * write every batch with sync. */
#include "bench.h"

#include <rocksdb/c.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/macros.h"
#include "lib/tempdir.h"
#include "store/rocksdb/rocksdb.h"

enum { BATCH = 1000, ROUNDS = 400, VALUE_BYTES = 300, KEY_SIZE = 24 };

static char value[VALUE_BYTES];
static long next_key; /* ordered, as sequence numbers are; the two stores get the same ones */

static void stop(const char *what, const char *message)
{
    fprintf(stderr, "%s: %s\n", what, message);
    exit(1);
}

static void check(pawl_status status, const pawl_error *error)
{
    if (status != PAWL_OK) {
        stop(pawl_status_name(status), error->message);
    }
}

static pawl_view make_key(char key[KEY_SIZE], long n)
{
    return (pawl_view){ key, (size_t)snprintf(key, KEY_SIZE, "%016ld", n) };
}

static double run_wrapper(struct pawl__rocks *db, struct pawl__rocks_batch *batch, long from)
{
    pawl_error error = PAWL_ERROR_INIT;
    double start = bench_now_s();

    for (long n = from; n < from + BATCH; n++) {
        char key[KEY_SIZE];

        pawl__rocks_put(batch, 0, make_key(key, n), (pawl_view){ value, VALUE_BYTES });
    }
    check(pawl__rocks_write(db, batch, &error), &error);
    return bench_now_s() - start;
}

struct raw {
    rocksdb_t *db;
    rocksdb_column_family_handle_t *family;
    rocksdb_writeoptions_t *options;
    rocksdb_writebatch_t *batch;
};

static double run_raw(const struct raw *raw, long from)
{
    char *text = NULL;
    double start = bench_now_s();

    for (long n = from; n < from + BATCH; n++) {
        char key[KEY_SIZE];
        pawl_view view = make_key(key, n);

        rocksdb_writebatch_put_cf(raw->batch, raw->family, view.data, view.len, value, VALUE_BYTES);
    }
    rocksdb_write(raw->db, raw->options, raw->batch, &text);
    rocksdb_writebatch_clear(raw->batch);
    if (text != NULL) {
        stop("raw", text);
    }
    return bench_now_s() - start;
}

static struct raw open_raw(const char *path)
{
    struct raw raw = { .options = rocksdb_writeoptions_create(),
                       .batch = rocksdb_writebatch_create() };
    rocksdb_options_t *options = rocksdb_options_create();
    const char *const names[] = { "default", "events" };
    const rocksdb_options_t *const each[] = { options, options };
    rocksdb_column_family_handle_t *handles[2];
    char *text = NULL;

    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_create_missing_column_families(options, 1);
    rocksdb_options_set_wal_recovery_mode(options, 0);
    rocksdb_options_set_write_buffer_size(options, (size_t)64 << 20);
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_compression(options, rocksdb_snappy_compression);
    raw.db = rocksdb_open_column_families(options, path, 2, names, each, handles, &text);
    if (text != NULL) {
        stop("open", text);
    }
    raw.family = handles[1];
    rocksdb_column_family_handle_destroy(handles[0]);
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_set_sync(raw.options, 1);
    return raw;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Medians: a round that met a stall of the disk says nothing about either. */
static double rows_per_second(double seconds[ROUNDS])
{
    qsort(seconds, ROUNDS, sizeof(seconds[0]), compare);
    return BATCH / seconds[ROUNDS / 2];
}

int main(void)
{
    static const char *const families[] = { "events" };
    const struct pawl__rocks_options options = { .families = families, .family_count = 1 };
    char dir[TEMPDIR_SIZE];
    char ours_path[TEMPDIR_SIZE + 8];
    char raw_path[TEMPDIR_SIZE + 8];
    struct pawl__rocks *db = NULL;
    struct pawl__rocks_batch *batch = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    double ours[ROUNDS];
    double bare[ROUNDS];

    for (size_t i = 0; i < VALUE_BYTES; i++) {
        value[i] = (char)(i * 131 % 251);
    }
    check(tempdir_make(dir, "pawl-bench", &error), &error);
    snprintf(ours_path, sizeof(ours_path), "%s/ours", dir);
    snprintf(raw_path, sizeof(raw_path), "%s/raw", dir);
    check(pawl__rocks_open(ours_path, &options, &db, &error), &error);
    check(pawl__rocks_batch_new(db, &batch, &error), &error);
    struct raw raw = open_raw(raw_path);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 2 == 0) { /* who goes first changes */
            ours[round] = run_wrapper(db, batch, next_key);
            bare[round] = run_raw(&raw, next_key);
        } else {
            bare[round] = run_raw(&raw, next_key);
            ours[round] = run_wrapper(db, batch, next_key);
        }
        next_key += BATCH;
    }
    bench_report("rocksdb, sync batches of 1000",
                 "rows/s",
                 rows_per_second(ours),
                 "rocksdb/c.h",
                 rows_per_second(bare),
                 0.95);
    rocksdb_writebatch_destroy(raw.batch);
    rocksdb_writeoptions_destroy(raw.options);
    rocksdb_column_family_handle_destroy(raw.family);
    rocksdb_close(raw.db);
    pawl__rocks_batch_free(batch);
    pawl__rocks_close(db);
    tempdir_remove(dir);
    return 0;
}
