/* Group commit against one fdatasync an operation: 64 threads that append 256 bytes each, over and
 * over, to a real file. Both sides acknowledge only what is on disk. */
#include "bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/error.h"
#include "base/os/clock.h"
#include "base/os/fs.h"
#include "base/thread/thread.h"
#include "engine/committer.h"

enum { THREADS = 64, ROUNDS = 5, ROUND_MS = 1000, RECORD_BYTES = 256 };

struct file {
    int fd;
    char records[THREADS * RECORD_BYTES];
};

struct record {
    struct pawl__commit_item item;
    char bytes[RECORD_BYTES];
};

static pawl_status write_and_sync(struct file *file, size_t bytes, pawl_error *reterr)
{
    if (write(file->fd, file->records, bytes) != (ssize_t)bytes || fdatasync(file->fd) != 0) {
        return pawl__fail(reterr, PAWL_IO, "append to the benchmark's file");
    }
    return PAWL_OK;
}

static pawl_status commit_records(void *context,
                                  struct pawl__commit_item *const *items,
                                  size_t count,
                                  pawl_error *reterr)
{
    struct file *file = context;

    for (size_t i = 0; i < count; i++) {
        const struct record *record = (const struct record *)items[i];
        memcpy(&file->records[i * RECORD_BYTES], record->bytes, RECORD_BYTES);
    }
    return write_and_sync(file, count * RECORD_BYTES, reterr);
}

struct caller {
    struct pawl__thread thread;
    struct pawl__commit *commit;
    double until_s;
    long done;
};

static void run_caller(void *context)
{
    struct caller *caller = context;
    struct record record = { .bytes = "payload" };
    struct pawl__commit_item *item = &record.item;

    record.item.bytes = RECORD_BYTES;
    while (bench_now_s() < caller->until_s
           && pawl__commit_submit(caller->commit, &item, INT64_MAX, NULL) == PAWL_OK) {
        caller->done++;
    }
}

static double grouped_round(struct pawl__commit *commit)
{
    static struct caller callers[THREADS];
    double start = bench_now_s();
    long done = 0;

    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){ .commit = commit, .until_s = start + ROUND_MS / 1e3 };
        REQUIRE(pawl__thread_start(&callers[i].thread, "caller", run_caller, &callers[i], NULL)
                == PAWL_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        pawl__thread_join(&callers[i].thread);
        done += callers[i].done;
    }
    return (double)done / (bench_now_s() - start);
}

static double single_round(struct file *file)
{
    double start = bench_now_s();
    double until = start + ROUND_MS / 1e3;
    long done = 0;

    while (bench_now_s() < until && write_and_sync(file, RECORD_BYTES, NULL) == PAWL_OK) {
        done++;
    }
    return (double)done / (bench_now_s() - start);
}

static int open_scratch(void)
{
    const char *dir = getenv("TMPDIR");
    char *path = pawl__fs_join(dir == NULL ? "/tmp" : dir, "pawl-bench-XXXXXX");
    int fd = path == NULL ? -1 : mkostemp(path, O_CLOEXEC);

    if (fd >= 0) {
        unlink(path);
    }
    free(path);
    return fd;
}

int main(void)
{
    static struct file file;
    struct pawl__commit_options options = {
        "bench", commit_records, &file, PAWL__COMMIT_LIMITS_DEFAULT, NULL
    };
    struct pawl__commit *commit = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    double grouped = 0;
    double single = 0;
    uint64_t batches;
    uint64_t items;

    file.fd = open_scratch();
    if (file.fd < 0 || pawl__commit_new(&options, &commit, &error) != PAWL_OK) {
        fprintf(stderr, "commit: cannot start: %s\n", error.message);
        return 1;
    }
    for (int i = 0; i < ROUNDS; i++) {
        single += single_round(&file) / ROUNDS;
        grouped += grouped_round(commit) / ROUNDS;
    }
    pawl__commit_counts(commit, &batches, &items);
    fprintf(stderr, "commit: %.1f items a batch\n", (double)items / (double)batches);
    bench_report("commit/64-threads", "ops/s", grouped, "one fdatasync an operation", single, 5);
    pawl__commit_free(commit);
    close(file.fd);
    return 0;
}
