/* A consumer WAL in RocksDB that is damaged, foreign, newer, busy, full or killed. */
#include "lib/wal_fixture.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/core/buf.h"
#include "base/core/crc32c.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "delivery/rocksdb/format.h"
#include "lib/child.h"
#include "lib/file.h"
#include "store/rocksdb/rocksdb.h"

static const char *const families[WAL_FAMILY_COUNT] = { "meta", "entries", "fates", "index" };

static int set_up(void **state)
{
    struct wal_fixture *f = calloc(1, sizeof(*f));

    *state = f;
    wal_fixture_open(f, false);
    return 0;
}

static int tear_down(void **state)
{
    wal_fixture_close(*state);
    free(*state);
    return 0;
}

/* --- rows as such --- */

typedef pawl_status (*decoder)(pawl_view value, pawl_error *reterr);

static pawl_status decode_entry(pawl_view value, pawl_error *reterr)
{
    struct pawl__arena arena = ARENA_INIT;
    struct delivery_entry entry;
    pawl_status status = pawl__delivery_wal_entry_decode(7, value, &arena, &entry, reterr);

    pawl__arena_done(&arena);
    return status;
}

static pawl_status decode_fate(pawl_view value, pawl_error *reterr)
{
    struct wal_fate_row row;

    return pawl__delivery_wal_fate_decode(DELIVERY_FAILED, 7, value, &row, reterr);
}

static pawl_status decode_index(pawl_view value, pawl_error *reterr)
{
    struct wal_index_row row;
    struct delivery_key key = wal_key_of(7);

    return pawl__delivery_wal_index_decode(&key.key, value, &row, reterr);
}

static pawl_status decode_meta(pawl_view value, pawl_error *reterr)
{
    struct delivery_wal_meta meta;

    return pawl__delivery_wal_meta_decode(value, &meta, reterr);
}

static pawl_status decode_counters(pawl_view value, pawl_error *reterr)
{
    struct wal_counters counters;

    return pawl__delivery_wal_counter_decode(WAL_MARKED, value, &counters, reterr);
}

/* Every bit flipped, every length cut off, and a byte too many. */
static void try_damage(struct pawl__buf *value, decoder decode, const char *name)
{
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(decode(pawl__buf_view(value), &error), &error);
    for (size_t bit = 0; bit < value->len * 8; bit++) {
        value->data[bit / 8] ^= (char)(1 << bit % 8);
        assert_status(decode(pawl__buf_view(value), &error), PAWL_CORRUPT, &error);
        assert_message(&error, name);
        value->data[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t len = 0; len < value->len; len++) {
        assert_status(decode((pawl_view){ value->data, len }, &error), PAWL_CORRUPT, &error);
    }
    pawl__buf_add_u8(value, 0);
    assert_status(decode(pawl__buf_view(value), &error), PAWL_CORRUPT, &error);
}

static void test_a_flipped_bit_of_any_row_is_corrupt_and_named(void **state)
{
    struct pawl__buf value = BUF_INIT(WAL_VALUE_BYTES_MAX);
    struct wal_sample sample;
    struct wal_fate_row fate = { .fate = { .state = DELIVERY_FAILED, .last_error = "no" },
                                 .bytes = 300,
                                 .by_place = true };
    struct wal_index_row row = { .epoch = 1, .lsn = 7 };
    struct delivery_wal_meta meta = { .epoch = 1, .lease_holder = "node-1" };
    struct wal_counters counters = { .marked = { .entries = { 1, 2, 3 } } };
    struct delivery_key key = wal_key_of(7);

    (void)state;
    wal_sample(&sample, 7, 8); /* with headers */
    pawl__delivery_wal_entry_encode(&sample.entry, &value);
    try_damage(&value, decode_entry, "the entry of LSN 7");
    pawl__delivery_wal_fate_encode(7, &fate, &value);
    try_damage(&value, decode_fate, "the failed row of LSN 7");
    pawl__delivery_wal_index_encode(&key.key, &row, &value);
    try_damage(&value, decode_index, "the index row of key ");
    pawl__delivery_wal_meta_encode(&meta, &value);
    try_damage(&value, decode_meta, "the row 'meta'");
    pawl__delivery_wal_counter_encode(WAL_MARKED, &counters, &value);
    try_damage(&value, decode_counters, "the row 'marked'");
    pawl__delivery_wal_format_encode(WAL_FORMAT, &value);
    try_damage(&value, pawl__delivery_wal_format_decode, "the row 'format'");
    pawl__buf_done(&value);
}

static void test_a_row_under_another_key_is_corrupt(void **state)
{
    struct pawl__buf value = BUF_INIT(WAL_VALUE_BYTES_MAX);
    struct wal_sample sample;
    struct wal_fate_row fate = { .fate = { .state = DELIVERY_PENDING } };
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    wal_sample(&sample, 8, 8);
    pawl__delivery_wal_entry_encode(&sample.entry, &value);
    assert_status(decode_entry(pawl__buf_view(&value), &error), PAWL_CORRUPT, &error);
    pawl__delivery_wal_fate_encode(7, &fate, &value); /* pending, and read as failed */
    assert_status(decode_fate(pawl__buf_view(&value), &error), PAWL_CORRUPT, &error);
    pawl__buf_done(&value);
}

static void test_a_row_of_a_newer_format_is_unsupported(void **state)
{
    struct pawl__buf value = BUF_INIT(WAL_VALUE_BYTES_MAX);
    struct wal_sample sample;
    struct wal_key key = pawl__delivery_wal_entry_key(7);
    pawl_error error = PAWL_ERROR_INIT;

    (void)state;
    wal_sample(&sample, 7, 7);
    pawl__delivery_wal_entry_encode(&sample.entry, &value);
    pawl__buf_cut(&value, value.len - 4);
    value.data[0] = WAL_FORMAT + 1;
    pawl__buf_add_u32be(
        &value, pawl__crc32c(pawl__buf_view(&value)) ^ pawl__crc32c(pawl__delivery_wal_key(&key)));
    assert_status(decode_entry(pawl__buf_view(&value), &error), PAWL_UNSUPPORTED, &error);
    assert_message(&error, "the entry of LSN 7 has format 2");
    pawl__buf_done(&value);
}

/* --- the store behind the WAL's back --- */

struct raw {
    struct pawl__rocks *db;
    struct pawl__rocks_batch *batch;
};

static struct raw raw_open(struct wal_fixture *f)
{
    const struct pawl__rocks_options options = { .families = families,
                                                 .family_count = WAL_FAMILY_COUNT,
                                                 .free_space_min = 1 << 20 };
    struct raw raw = { NULL, NULL };

    if (f->wal != NULL) {
        f->wal->ops->close(f->wal);
        f->wal = NULL;
    }
    assert_ok(pawl__rocks_open(f->path, &options, &raw.db, &f->error), &f->error);
    assert_ok(pawl__rocks_batch_new(raw.db, &raw.batch, &f->error), &f->error);
    return raw;
}

static void raw_close(struct wal_fixture *f, struct raw *raw)
{
    assert_ok(pawl__rocks_write(raw->db, raw->batch, &f->error), &f->error);
    pawl__rocks_batch_free(raw->batch);
    pawl__rocks_close(raw->db);
}

static void raw_delete(struct wal_fixture *f, enum wal_family family, struct wal_key key)
{
    struct raw raw = raw_open(f);

    pawl__rocks_delete(raw.batch, family, pawl__delivery_wal_key(&key));
    raw_close(f, &raw);
}

static void raw_flip(struct wal_fixture *f, enum wal_family family, struct wal_key key)
{
    struct raw raw = raw_open(f);
    struct pawl__rocks_value value;
    struct pawl__buf copy = BUF_INIT(WAL_VALUE_BYTES_MAX);

    assert_ok(
        pawl__rocks_get(raw.db, NULL, family, pawl__delivery_wal_key(&key), &value, &f->error),
        &f->error);
    pawl__buf_add(&copy, value.view);
    pawl__rocks_value_done(&value);
    copy.data[copy.len / 2] ^= 1;
    pawl__rocks_put(raw.batch, family, pawl__delivery_wal_key(&key), pawl__buf_view(&copy));
    raw_close(f, &raw);
    pawl__buf_done(&copy);
}

static pawl_status open_wal(struct wal_fixture *f)
{
    return pawl__delivery_rocksdb_wal_open(f->path, &wal_options, &f->wal, &f->error);
}

static void assert_read_corrupt(struct wal_fixture *f, unsigned states, const char *message)
{
    struct delivery_range range = {
        .from = 1, .to = UINT64_MAX, .states = states, .entries_max = 100, .bytes_max = SIZE_MAX
    };

    if (f->wal == NULL) {
        assert_ok(open_wal(f), &f->error);
    }
    assert_status(f->wal->ops->read(f->wal, &range, &f->page, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, message);
    assert_status(pawl__delivery_rocksdb_wal_verify(f->wal, &f->error), PAWL_CORRUPT, &f->error);
}

static void test_a_damaged_entry_stops_the_read_and_is_named(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 5);
    raw_flip(f, WAL_ENTRIES, pawl__delivery_wal_entry_key(3));
    assert_read_corrupt(f, DELIVERY_STATES_ALL, "the entry of LSN 3 is damaged");
    assert_string_equal(wal_lsns(f, 4, 9, DELIVERY_STATES_ALL), "4 5");
}

static void test_a_damaged_state_row_stops_read_mark_and_clean_up(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_fate fate = { .state = DELIVERY_FAILED };
    delivery_lsn lsn = 2;

    wal_append(f, 1, 5);
    wal_mark(f, 2, DELIVERY_CONFIRMED);
    raw_flip(f, WAL_FATES, pawl__delivery_wal_fate_key(DELIVERY_CONFIRMED, 2));
    assert_read_corrupt(f, DELIVERY_STATES_ALL, "the confirmed row of LSN 2 is damaged");
    assert_status(f->wal->ops->mark(f->wal, &lsn, &fate, 1, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "LSN 2");
    assert_status(f->wal->ops->clean_up(f->wal, 5, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "LSN 2");
    assert_int_equal(wal_stats(f).entries[DELIVERY_CONFIRMED], 1);
}

static void test_a_missing_entry_is_noticed(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 5);
    raw_delete(f, WAL_ENTRIES, pawl__delivery_wal_entry_key(5));
    assert_read_corrupt(f, DELIVERY_STATES_ALL, "the entry of LSN 5 is not there");
}

static void test_a_missing_state_row_is_noticed(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 5);
    raw_delete(f, WAL_FATES, pawl__delivery_wal_fate_key(DELIVERY_PENDING, 3));
    assert_read_corrupt(f, DELIVERY_STATES_ALL, "LSN 3 has an entry, but is neither");
    raw_delete(f, WAL_FATES, pawl__delivery_wal_fate_key(DELIVERY_PENDING, 1));
    assert_read_corrupt(f, DELIVERY_STATES_ALL, "LSN 1 has an entry, but is neither");
    assert_read_corrupt(f, 1U << DELIVERY_PENDING, "LSN 3 has an entry, but is neither");
}

static void test_a_missing_last_state_row_is_noticed(void **state)
{
    struct wal_fixture *f = *state;

    wal_append(f, 1, 5);
    raw_delete(f, WAL_FATES, pawl__delivery_wal_fate_key(DELIVERY_PENDING, 5));
    assert_read_corrupt(f, DELIVERY_STATES_ALL, "LSN 5 has an entry, but is neither");
}

static void test_an_entry_in_two_states_is_noticed(void **state)
{
    struct wal_fixture *f = *state;
    struct wal_fate_row row = { .fate = { .state = DELIVERY_FAILED } };
    struct wal_key key = pawl__delivery_wal_fate_key(DELIVERY_FAILED, 2);
    struct pawl__buf value = BUF_INIT(WAL_SMALL_BYTES_MAX);

    wal_append(f, 1, 3);
    struct raw raw = raw_open(f);
    pawl__delivery_wal_fate_encode(2, &row, &value);
    pawl__rocks_put(raw.batch, WAL_FATES, pawl__delivery_wal_key(&key), pawl__buf_view(&value));
    raw_close(f, &raw);
    pawl__buf_done(&value);
    assert_read_corrupt(f, DELIVERY_STATES_ALL, "LSN 2 is both pending and failed");
}

static void test_verification_finds_what_reads_cannot(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_key fourth = wal_key_of(4);

    wal_append(f, 1, 5);
    assert_ok(pawl__delivery_rocksdb_wal_verify(f->wal, &f->error), &f->error);
    raw_delete(f, WAL_INDEX, pawl__delivery_wal_index_key(&fourth.key));
    assert_ok(open_wal(f), &f->error);
    assert_status(pawl__delivery_rocksdb_wal_verify(f->wal, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "LSN 4 is not in the index");
    raw_delete(f, WAL_FATES, pawl__delivery_wal_fate_key(DELIVERY_PENDING, 4));
    raw_delete(f, WAL_ENTRIES, pawl__delivery_wal_entry_key(4));
    assert_ok(open_wal(f), &f->error);
    assert_status(pawl__delivery_rocksdb_wal_verify(f->wal, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "5 pending entries");
}

static void test_a_damaged_index_row_is_no_miss(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_key key = wal_key_of(2);
    struct delivery_hit hit;

    wal_append(f, 1, 3);
    raw_flip(f, WAL_INDEX, pawl__delivery_wal_index_key(&key.key));
    assert_ok(open_wal(f), &f->error);
    assert_status(f->wal->ops->lookup(f->wal, &key, 1, &hit, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "the index row of key ");
}

static void test_damaged_metadata_does_not_open(void **state)
{
    struct wal_fixture *f = *state;
    static const char *const rows[] = { "meta", "appended", "marked", "cleaned", "format" };

    wal_append(f, 1, 3);
    wal_mark(f, 1, DELIVERY_CONFIRMED);
    assert_ok(f->wal->ops->clean_up(f->wal, 1, &f->error), &f->error);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        raw_flip(f, WAL_META, pawl__delivery_wal_text_key(rows[i]));
        assert_status(open_wal(f), PAWL_CORRUPT, &f->error);
        assert_message(&f->error, rows[i]);
        assert_message(&f->error, f->path);
        raw_flip(f, WAL_META, pawl__delivery_wal_text_key(rows[i]));
    }
    raw_delete(f, WAL_META, pawl__delivery_wal_text_key("appended"));
    assert_status(open_wal(f), PAWL_CORRUPT, &f->error);
    raw_delete(f, WAL_META, pawl__delivery_wal_text_key("format"));
    assert_status(open_wal(f), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "no row 'format'");
}

static void test_a_newer_wal_is_unsupported(void **state)
{
    struct wal_fixture *f = *state;
    struct wal_key key = pawl__delivery_wal_text_key("format");
    struct pawl__buf value = BUF_INIT(WAL_SMALL_BYTES_MAX);
    struct raw raw = raw_open(f);

    pawl__delivery_wal_format_encode(WAL_FORMAT + 1, &value);
    pawl__rocks_put(raw.batch, WAL_META, pawl__delivery_wal_key(&key), pawl__buf_view(&value));
    raw_close(f, &raw);
    pawl__buf_done(&value);
    assert_status(open_wal(f), PAWL_UNSUPPORTED, &f->error);
    assert_message(&f->error, "WAL has format 2, this pawl knows 1");
}

/* --- directories --- */

static void test_a_foreign_directory_is_refused_by_name(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_wal *wal = NULL;
    static const char *const strange[] = { "plog" };
    const struct pawl__rocks_options options = { .families = strange, .family_count = 1 };
    struct pawl__rocks *db = NULL;
    char path[TEMPDIR_SIZE + 32];
    char file[TEMPDIR_SIZE + 64];

    snprintf(path, sizeof(path), "%s/notes", f->dir);
    snprintf(file, sizeof(file), "%s/todo.txt", path);
    assert_ok(pawl__fs_make_dir(path, &f->error), &f->error);
    file_write(file, "x", 1);
    assert_status(
        pawl__delivery_rocksdb_wal_open(path, NULL, &wal, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, path);
    assert_message(&f->error, "todo.txt");
    assert_status(
        pawl__delivery_rocksdb_wal_open(file, NULL, &wal, &f->error), PAWL_INVALID, &f->error);

    snprintf(path, sizeof(path), "%s/app", f->dir);
    assert_ok(pawl__rocks_open(path, &options, &db, &f->error), &f->error);
    pawl__rocks_close(db);
    assert_status(
        pawl__delivery_rocksdb_wal_open(path, NULL, &wal, &f->error), PAWL_UNSUPPORTED, &f->error);
    assert_message(&f->error, "plog");
    assert_status(
        pawl__delivery_rocksdb_wal_open(NULL, NULL, &wal, &f->error), PAWL_INVALID, &f->error);
    assert_null(wal);
}

static void test_a_wal_that_is_only_read_refuses_writes(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_rocksdb_options options = wal_options;
    char path[TEMPDIR_SIZE + 32];

    wal_append(f, 1, 2);
    f->wal->ops->close(f->wal);
    f->wal = NULL;
    options.read_only = true;
    assert_ok(pawl__delivery_rocksdb_wal_open(f->path, &options, &f->wal, &f->error), &f->error);
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "1 2");
    assert_int_equal(wal_stats(f).last, 2);
    assert_status(f->wal->ops->write_meta(f->wal, &f->meta, &f->error), PAWL_DENIED, &f->error);
    struct delivery_wal *none = NULL;
    snprintf(path, sizeof(path), "%s/none", f->dir);
    assert_status(pawl__delivery_rocksdb_wal_open(path, &options, &none, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
}

static void test_a_full_disk_writes_nothing_and_can_still_be_read(void **state)
{
    struct wal_fixture *f = *state;
    struct delivery_rocksdb_options options = wal_options;
    struct wal_sample sample;
    uint64_t free_bytes = 0;

    wal_append(f, 1, 2);
    f->wal->ops->close(f->wal);
    f->wal = NULL;
    assert_ok(pawl__fs_free_bytes(f->path, &free_bytes, &f->error), &f->error);
    options.free_space_min = 2 * free_bytes;
    assert_ok(pawl__delivery_rocksdb_wal_open(f->path, &options, &f->wal, &f->error), &f->error);
    wal_sample(&sample, 3, 3);
    assert_status(f->wal->ops->append(f->wal, &sample.entry, 1, &f->meta, &f->error),
                  PAWL_NO_SPACE,
                  &f->error);
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "1 2");
    assert_int_equal(wal_stats(f).last, 2);
    wal_reopen(f);
    wal_append(f, 3, 3);
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "1 2 3");
}

static void test_closing_leaves_no_log_to_read(void **state)
{
    struct wal_fixture *f = *state;
    struct dirent **names = NULL;

    wal_append(f, 1, 50);
    f->wal->ops->close(f->wal);
    f->wal = NULL;
    int count = scandir(f->path, &names, NULL, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        char path[2 * TEMPDIR_SIZE + 300];
        struct stat info;
        snprintf(path, sizeof(path), "%s/%s", f->path, names[i]->d_name);
        if (strstr(names[i]->d_name, ".log") != NULL) {
            assert_int_equal(stat(path, &info), 0);
            assert_int_equal(info.st_size, 0);
        }
        free(names[i]);
    }
    free(names);
}

/* --- failures and kills --- */

static void test_lsns_that_do_not_ascend_are_refused(void **state)
{
    struct wal_fixture *f = *state;
    struct wal_sample sample;

    wal_append(f, 1, 4);
    wal_sample(&sample, 4, 9);
    assert_status(f->wal->ops->append(f->wal, &sample.entry, 1, &f->meta, &f->error),
                  PAWL_INVALID,
                  &f->error);
    assert_message(&f->error, "LSN 4 is not above 4");
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "1 2 3 4");
}

static void test_a_failed_append_leaves_nothing(void **state)
{
    struct wal_fixture *f = *state;
    struct wal_sample sample;

    wal_append(f, 1, 2);
    wal_sample(&sample, 3, 3);
    assert_ok(pawl__failpoint_set("delivery.wal.append.before=error:IO", &f->error), &f->error);
    assert_status(
        f->wal->ops->append(f->wal, &sample.entry, 1, &f->meta, &f->error), PAWL_IO, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_string_equal(wal_lsns(f, 1, 9, DELIVERY_STATES_ALL), "1 2");
    wal_reopen(f);
    wal_append(f, 3, 3);
    assert_ok(pawl__delivery_rocksdb_wal_verify(f->wal, &f->error), &f->error);
}

enum { BATCH = 5, ROUNDS = 6 };

/* In the child: appends, marks and cleans up, and says what is done; a failpoint kills it on the way. */
static int run_child(char **argv)
{
    struct wal_fixture f = { .meta = { .epoch = 1 } };

    if (pawl__failpoint_set(argv[3], &f.error) != PAWL_OK
        || pawl__delivery_rocksdb_wal_open(argv[2], &wal_options, &f.wal, &f.error) != PAWL_OK) {
        child_say("%s", f.error.message);
        return 1;
    }
    child_say("open");
    for (delivery_lsn round = 0; round < ROUNDS; round++) {
        delivery_lsn first = round * BATCH + 1;
        wal_append(&f, first, first + BATCH - 1);
        child_say("appended %llu", (unsigned long long)(first + BATCH - 1));
        for (delivery_lsn lsn = first; lsn < first + BATCH; lsn++) {
            wal_mark(&f, lsn, lsn % BATCH == 2 ? DELIVERY_FAILED : DELIVERY_CONFIRMED);
        }
        if (round % 2 == 1 && f.wal->ops->clean_up(f.wal, first, &f.error) != PAWL_OK) {
            return 1;
        }
    }
    child_say("done");
    return 0;
}

/* Returns the last LSN that was acknowledged. */
static delivery_lsn run_until_killed(struct wal_fixture *f, const char *failpoint)
{
    struct child child;
    char line[200];
    unsigned long long last = 0;

    child_start(&child, (const char *[]){ f->path, failpoint, NULL });
    while (child_line(&child, line, sizeof(line)) && strcmp(line, "done") != 0) {
        if (strncmp(line, "appended ", 9) == 0) {
            last = strtoull(&line[9], NULL, 10);
        }
    }
    int status = child_end(&child, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    return last;
}

static void test_a_kill_anywhere_leaves_a_whole_wal(void **state)
{
    struct wal_fixture *f = *state;
    static const char *const points[] = {
        "delivery.wal.format.before=kill",   "delivery.wal.format.after=kill",
        "delivery.wal.append.before=kill@4", "delivery.wal.append.after=kill@4",
        "rocksdb.write.after=kill@9",        "delivery.wal.mark.before=kill@13",
        "delivery.wal.mark.after=kill@13",   "delivery.wal.clean.before=kill@3",
        "delivery.wal.clean.after=kill@3",   "delivery.wal.clean.before=kill@4",
    };

    f->wal->ops->close(f->wal);
    f->wal = NULL;
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        tempdir_remove(f->path);
        delivery_lsn last = run_until_killed(f, points[i]);
        assert_ok(open_wal(f), &f->error);
        assert_ok(pawl__delivery_rocksdb_wal_verify(f->wal, &f->error), &f->error);
        struct delivery_wal_stats stats = wal_stats(f);
        assert_true(stats.last == last || stats.last == last + BATCH); /* the answer was lost */
        for (delivery_lsn lsn = 1; lsn <= stats.last; lsn++) {
            struct delivery_key key = wal_key_of(lsn);
            struct delivery_hit hit;
            assert_ok(f->wal->ops->lookup(f->wal, &key, 1, &hit, &f->error), &f->error);
            assert_true(hit.found);
            assert_int_equal(hit.lsn, lsn);
        }
        wal_append(f, stats.last + 1, stats.last + 3);
        assert_ok(f->wal->ops->clean_up(f->wal, stats.last, &f->error), &f->error);
        assert_ok(pawl__delivery_rocksdb_wal_verify(f->wal, &f->error), &f->error);
        f->wal->ops->close(f->wal);
        f->wal = NULL;
    }
}

static void test_another_process_makes_it_busy_until_it_dies(void **state)
{
    struct wal_fixture *f = *state;
    struct child child;
    char line[200];

    f->wal->ops->close(f->wal);
    f->wal = NULL;
    child_start(&child,
                (const char *[]){ f->path, "delivery.wal.append.before=delay:60000", NULL });
    assert_true(child_line(&child, line, sizeof(line)));
    assert_string_equal(line, "open");
    assert_status(open_wal(f), PAWL_BUSY, &f->error);
    assert_message(&f->error, f->path);
    (void)child_end(&child, SIGKILL);
    assert_ok(open_wal(f), &f->error);
}

#define damage_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flipped_bit_of_any_row_is_corrupt_and_named),
        cmocka_unit_test(test_a_row_under_another_key_is_corrupt),
        cmocka_unit_test(test_a_row_of_a_newer_format_is_unsupported),
        damage_test(test_a_damaged_entry_stops_the_read_and_is_named),
        damage_test(test_a_damaged_state_row_stops_read_mark_and_clean_up),
        damage_test(test_a_missing_entry_is_noticed),
        damage_test(test_a_missing_state_row_is_noticed),
        damage_test(test_a_missing_last_state_row_is_noticed),
        damage_test(test_an_entry_in_two_states_is_noticed),
        damage_test(test_verification_finds_what_reads_cannot),
        damage_test(test_a_damaged_index_row_is_no_miss),
        damage_test(test_damaged_metadata_does_not_open),
        damage_test(test_a_newer_wal_is_unsupported),
        damage_test(test_a_foreign_directory_is_refused_by_name),
        damage_test(test_a_wal_that_is_only_read_refuses_writes),
        damage_test(test_a_full_disk_writes_nothing_and_can_still_be_read),
        damage_test(test_closing_leaves_no_log_to_read),
        damage_test(test_lsns_that_do_not_ascend_are_refused),
        damage_test(test_a_failed_append_leaves_nothing),
        damage_test(test_a_kill_anywhere_leaves_a_whole_wal),
        damage_test(test_another_process_makes_it_busy_until_it_dies),
    };

    if (child_is_one(argc, argv)) {
        return run_child(argv);
    }
    return cmocka_run_group_tests_name("delivery_wal_damage", tests, NULL, NULL);
}
