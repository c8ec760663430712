#include "seq_store.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/rocksdb/backend.h"
#include "base/core/macros.h"
#include "lib/tempdir.h"

enum { BATCH_ENTRIES = 10000, SETTLE_MS = 100 };

static const pawl_seq_type types[] = {
    { sizeof(pawl_seq_type), SEQ_STORE_KIND, PAWL_APP_SEQ_WLOG_OFFSET, 1 },
    { sizeof(pawl_seq_type), SEQ_STORE_KIND, PAWL_APP_SEQ_C_RECORD, PAWL_APP_C_ID_MIN },
    { sizeof(pawl_seq_type), SEQ_STORE_KIND, PAWL_APP_SEQ_OW_RECORD, PAWL_APP_OW_ID_MIN },
};

/* --- the directory --- */

static char directory[TEMPDIR_SIZE];
static pid_t directory_owner;

static void remove_directory(void)
{
    if (getpid() == directory_owner) {
        tempdir_remove(directory);
    }
}

void seq_store_path(const char *name, char ret_path[SEQ_STORE_PATH_SIZE])
{
    if (directory[0] == '\0') {
        MUST(tempdir_make(directory, "pawl-bench-seq", err));
        directory_owner = getpid();
        atexit(remove_directory);
    }
    snprintf(ret_path, SEQ_STORE_PATH_SIZE, "%s/%s", directory, name);
}

double seq_store_in_child(double (*work)(void *context), void *context)
{
    double result = 0;
    int ends[2];
    int how = 0;

    fflush(NULL);
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        result = work(context);
        REQUIRE(write(ends[1], &result, sizeof(result)) == (ssize_t)sizeof(result));
        _exit(0);
    }
    close(ends[1]);
    bool answered = read(ends[0], &result, sizeof(result)) == (ssize_t)sizeof(result);
    close(ends[0]);
    if (waitpid(pid, &how, 0) != pid || how != 0 || !answered) {
        exit(1); /* it said why */
    }
    return result;
}

/* --- filling --- */

/* Writes in batches and without fsync: what is lost with the power is filled again. */
struct filler {
    struct pawl__rocks *db;
    struct pawl__rocks_batch *batch;
    size_t entries;
};

static void open_filler(const char *path, struct filler *filler)
{
    const char *families[APP_FAMILY_COUNT];
    struct pawl__rocks_options options = pawl__app_rocksdb_options(families);

    options.unsafe_no_sync = true;
    *filler = (struct filler){ 0 };
    MUST(pawl__rocks_open(path, &options, &filler->db, err));
    MUST(pawl__rocks_batch_new(filler->db, &filler->batch, err));
}

static void add_entry(struct filler *filler,
                      enum app_family family,
                      const struct app_key *key,
                      pawl_view value)
{
    pawl__rocks_put(filler->batch, family, pawl__app_key_view(key), value);
    if (++filler->entries % BATCH_ENTRIES == 0) {
        MUST(pawl__rocks_write(filler->db, filler->batch, err));
    }
}

static bool is_busy(struct filler *filler, size_t family)
{
    static const char *const names[] = { "rocksdb.compaction-pending",
                                         "rocksdb.num-running-compactions",
                                         "rocksdb.mem-table-flush-pending",
                                         "rocksdb.num-running-flushes" };
    uint64_t sum = 0;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        uint64_t value = 0;
        MUST(pawl__rocks_property(filler->db, family, names[i], &value, err));
        sum += value;
    }
    return sum > 0;
}

static void close_filler(struct filler *filler, size_t family)
{
    MUST(pawl__rocks_write(filler->db, filler->batch, err));
    MUST(pawl__rocks_flush(filler->db, err));
    while (is_busy(filler, family)) {
        poll(NULL, 0, SETTLE_MS); /* whoever measures next shall not pay for it */
    }
    pawl__rocks_batch_free(filler->batch);
    pawl__rocks_close(filler->db);
}

/* Every one of 1 .. count once as `i` goes from 0 to count - 1, far from where the last one was. */
static uint64_t scattered(uint64_t i, uint64_t count)
{
    const uint64_t prime = 2147483647;

    REQUIRE(count < prime);
    return 1 + i % count * prime % count;
}

void seq_store_fill_numbers(const char *path, uint64_t workspaces)
{
    struct filler filler;

    open_filler(path, &filler);
    for (uint64_t i = 0; i < workspaces; i++) {
        uint64_t workspace = scattered(i, workspaces);
        for (size_t n = 0; n < COUNT_OF(types); n++) {
            char bytes[APP_STORED_BYTES];
            struct app_key key = pawl__app_key_seq(SEQ_STORE_APP, 0, workspace, types[n].sequence);
            const struct app_stored stored = { types[n].initial + workspace % 1000, 1 };
            pawl__app_stored_encode(&key, &stored, bytes);
            add_entry(&filler, APP_SEQ, &key, (pawl_view){ bytes, sizeof(bytes) });
        }
    }
    close_filler(&filler, APP_SEQ);
}

void seq_store_fill_log(const char *path, uint64_t first, uint64_t last, uint64_t workspaces)
{
    struct filler filler;

    open_filler(path, &filler);
    for (uint64_t offset = first; offset <= last; offset++) {
        uint64_t round = (offset - 1) / workspaces;
        const pawl_app_record record = {
            .size = sizeof(pawl_app_record),
            .record_class = PAWL_APP_O_RECORD,
            .raw_id = 1,
            .id = PAWL_APP_OW_ID_MIN + round,
            .table = pawl_view_of("order"),
            .data = pawl_view_of("{\"sum\":5,\"item\":\"a book\"}"),
        };
        const pawl_app_number numbers[] = {
            { PAWL_APP_SEQ_WLOG_OFFSET, round + 1 },
            { PAWL_APP_SEQ_OW_RECORD, record.id },
        };
        const pawl_app_event event = {
            .size = sizeof(pawl_app_event),
            .workspace = scattered(offset - 1, workspaces),
            .plog_offset = offset,
            .wlog_offset = round + 1,
            .kind = SEQ_STORE_KIND,
            .records = &record,
            .record_count = 1,
            .numbers = numbers,
            .number_count = COUNT_OF(numbers),
        };
        char space[256];
        struct pawl__buf value = BUF_OVER(space);
        struct app_key key = pawl__app_key_plog(SEQ_STORE_APP, 0, offset);
        pawl__app_event_encode(&event, &value);
        REQUIRE(!value.broken);
        add_entry(&filler, APP_PLOG, &key, pawl__buf_view(&value));
    }
    close_filler(&filler, APP_PLOG);
}

void seq_store_forget_offset(const char *path)
{
    struct app_key key = pawl__app_key_offset(SEQ_STORE_APP, 0);
    struct filler filler;

    open_filler(path, &filler);
    pawl__rocks_delete(filler.batch, APP_OFFSETS, pawl__app_key_view(&key));
    close_filler(&filler, APP_SEQ);
}

/* --- using --- */

void seq_store_open(const char *path, struct seq_store *store)
{
    const struct app_store_options options = { .must_exist = true };

    MUST(pawl__app_store_open(path, &options, &store->store, err));
    store->seq = (struct app_seq){ .store = store->store, .app = SEQ_STORE_APP, .partition = 0 };
}

void seq_store_close(struct seq_store *store)
{
    pawl__app_store_close(store->store);
    *store = (struct seq_store){ 0 };
}

pawl_sequencer *seq_store_sequencer(struct seq_store *store, uint32_t unflushed_max)
{
    pawl_seq_storage storage = pawl__app_seq_storage(&store->seq);
    pawl_sequencer_options options = PAWL_SEQUENCER_OPTIONS_INIT;
    pawl_sequencer *seq = NULL;

    options.types = types;
    options.type_count = COUNT_OF(types);
    options.storage = &storage;
    if (unflushed_max != 0) {
        options.unflushed_max = unflushed_max;
    }
    MUST(pawl_sequencer_open(&options, &seq, err));
    return seq;
}
