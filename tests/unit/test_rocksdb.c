/* What the RocksDB wrapper promises, on the real engine: batches, reads, iterators, families. */
#include "lib/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/os/failpoint.h"
#include "base/os/fs.h"
#include "lib/fault.h"
#include "lib/tempdir.h"
#include "store/rocksdb/rocksdb.h"

enum { EVENTS, META, FAMILY_COUNT };

static const char *const families[] = { [EVENTS] = "events", [META] = "meta" };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    struct pawl__rocks_options options;
    struct pawl__rocks *db;
    pawl_error error;
};

static void reopen(struct fixture *f)
{
    pawl__rocks_close(f->db);
    f->db = NULL;
    assert_ok(pawl__rocks_open(f->path, &f->options, &f->db, &f->error), &f->error);
}

static int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){
        .options = { .families = families,
                     .family_count = FAMILY_COUNT,
                     .free_space_min = 1 << 20 },
    };
    if (tempdir_make(f.dir, "pawl-rocksdb", &f.error) != PAWL_OK) {
        return -1;
    }
    snprintf(f.path, sizeof(f.path), "%s/store", f.dir);
    reopen(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl_status status = pawl__failpoint_set(NULL, NULL);
    pawl__rocks_close(f->db);
    tempdir_remove(f->dir);
    return status == PAWL_OK ? 0 : -1;
}

static pawl_view text(const char *value)
{
    return pawl_view_of(value);
}

static pawl_status put(struct fixture *f, size_t family, const char *key, const char *value)
{
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_put(batch, family, text(key), text(value));
    return pawl__rocks_write(f->db, batch, &f->error);
}

static void put_keys(struct fixture *f, size_t family, const char *keys)
{
    for (const char *key = keys; *key != '\0'; key++) {
        assert_ok(put(f, family, (char[]){ *key, '\0' }, "v"), &f->error);
    }
}

static void assert_value(struct fixture *f, size_t family, const char *key, const char *expected)
{
    struct pawl__rocks_value value = { 0 };

    assert_ok(pawl__rocks_get(f->db, NULL, family, text(key), &value, &f->error), &f->error);
    assert_true(pawl__view_is(value.view, expected));
    pawl__rocks_value_done(&value);
}

static void assert_absent(struct fixture *f, size_t family, const char *key)
{
    struct pawl__rocks_value value = { 0 };

    assert_status(pawl__rocks_get(f->db, NULL, family, text(key), &value, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
    assert_null(value.pin);
}

/* The keys of a range, forward and then backward: "abc|cba". */
static const char *keys_of(struct fixture *f,
                           const struct pawl__rocks_snapshot *snapshot,
                           struct pawl__rocks_range range)
{
    static char found[64];
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    size_t len = 0;

    assert_ok(pawl__rocks_iter_open(f->db, snapshot, EVENTS, range, &iter, &f->error), &f->error);
    pawl_status status = pawl__rocks_iter_first(iter, &f->error);
    for (; status == PAWL_OK && iter->valid; status = pawl__rocks_iter_next(iter, &f->error)) {
        found[len++] = iter->key.data[iter->key.len - 1];
    }
    assert_ok(status, &f->error);
    found[len++] = '|';
    status = pawl__rocks_iter_last(iter, &f->error);
    for (; status == PAWL_OK && iter->valid; status = pawl__rocks_iter_prev(iter, &f->error)) {
        found[len++] = iter->key.data[iter->key.len - 1];
    }
    assert_ok(status, &f->error);
    found[len] = '\0';
    return found;
}

static const struct pawl__rocks_range everything;

static void test_a_batch_reads_back_in_its_families(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    struct pawl__rocks_value value = { 0 };
    const pawl_view zeros = { "a\0b", 3 };

    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_put(batch, EVENTS, text("k"), text("event"));
    pawl__rocks_put(batch, META, text("k"), text(""));
    pawl__rocks_put(batch, META, zeros, zeros);
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    reopen(f);
    assert_value(f, EVENTS, "k", "event");
    assert_value(f, META, "k", "");
    assert_absent(f, EVENTS, "a");
    assert_ok(pawl__rocks_get(f->db, NULL, META, zeros, &value, &f->error), &f->error);
    assert_true(pawl__view_equal(value.view, zeros));
    pawl__rocks_value_done(&value);
}

static void test_a_written_batch_is_empty_and_can_be_filled_again(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    pawl__rocks_put(batch, EVENTS, text("a"), text("1"));
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    pawl__rocks_put(batch, EVENTS, text("a"), text("2"));
    pawl__rocks_batch_clear(batch);
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    assert_value(f, EVENTS, "a", "1");
}

static void test_deletes_and_ranges_apply_in_order(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    put_keys(f, EVENTS, "abcdefg");
    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_delete(batch, EVENTS, text("a"));
    pawl__rocks_delete_range(batch, EVENTS, text("c"), text("f"));
    pawl__rocks_put(batch, EVENTS, text("d"), text("again"));
    pawl__rocks_delete_range(batch, EVENTS, text("g"), text("g")); /* empty */
    pawl__rocks_delete_range(batch, EVENTS, text("z"), text("a")); /* empty */
    pawl__rocks_delete_range(batch, EVENTS, text("b"), text(""));  /* empty */
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    assert_string_equal(keys_of(f, NULL, everything), "bdfg|gfdb");
    assert_value(f, EVENTS, "d", "again");
}

static void test_a_key_has_a_limit_and_one_past_it_breaks_the_batch(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    char *key = calloc(1, PAWL__ROCKS_KEY_BYTES_MAX + 1);

    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_put(batch, EVENTS, (pawl_view){ key, PAWL__ROCKS_KEY_BYTES_MAX }, text("v"));
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    pawl__rocks_put(batch, EVENTS, text("before"), text("v"));
    pawl__rocks_put(batch, EVENTS, (pawl_view){ key, PAWL__ROCKS_KEY_BYTES_MAX + 1 }, text("v"));
    pawl__rocks_put(batch, EVENTS, text("behind"), text("v"));
    assert_status(pawl__rocks_write(f->db, batch, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "key has 65537 bytes, the limit is 65536");
    assert_absent(f, EVENTS, "before");
    assert_absent(f, EVENTS, "behind");
    pawl__rocks_batch_clear(batch);
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    free(key);
}

static void test_a_batch_has_a_limit_and_one_past_it_breaks_it(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    size_t fits = PAWL__ROCKS_BATCH_BYTES_MAX - 16 - 1; /* the entry's overhead and its key */
    char *value = calloc(1, fits + 1);

    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_put(batch, EVENTS, text("k"), (pawl_view){ value, fits + 1 });
    assert_status(pawl__rocks_write(f->db, batch, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "batch has more than 268435456 bytes");

    /* At the limit it gets as far as the engine; there is no need to write 256 MiB for that. */
    assert_ok(pawl__failpoint_set("rocksdb.write.before=error:CANCELLED", &f->error), &f->error);
    pawl__rocks_batch_clear(batch);
    pawl__rocks_put(batch, EVENTS, text("k"), (pawl_view){ value, fits });
    assert_status(pawl__rocks_write(f->db, batch, &f->error), PAWL_CANCELLED, &f->error);
    free(value);
}

static void test_iterators_stay_in_their_range_both_ways(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(keys_of(f, NULL, everything), "|");
    put_keys(f, EVENTS, "abcdef");
    assert_string_equal(keys_of(f, NULL, everything), "abcdef|fedcba");
    assert_string_equal(
        keys_of(f, NULL, (struct pawl__rocks_range){ .from = text("b"), .until = text("e") }),
        "bcd|dcb");
    assert_string_equal(keys_of(f, NULL, (struct pawl__rocks_range){ .from = text("d") }),
                        "def|fed");
    assert_string_equal(keys_of(f, NULL, (struct pawl__rocks_range){ .until = text("c") }),
                        "ab|ba");
}

static void test_a_prefix_is_a_range_also_at_the_end_of_all_keys(void **state)
{
    struct fixture *f = *state;
    char space[8];

    assert_ok(put(f, EVENTS, "a", "v"), &f->error);
    assert_ok(put(f, EVENTS, "b/1", "v"), &f->error);
    assert_ok(put(f, EVENTS, "b/2", "v"), &f->error);
    assert_ok(put(f, EVENTS, "b0", "v"), &f->error);
    assert_ok(put(f, EVENTS, "\xff\xff", "v"), &f->error);
    assert_ok(put(f,
                  EVENTS,
                  "\xff\xff"
                  "9",
                  "v"),
              &f->error);
    assert_string_equal(keys_of(f, NULL, pawl__rocks_prefix(text("b/"), space)), "12|21");
    assert_string_equal(keys_of(f, NULL, pawl__rocks_prefix(text("\xff\xff"), space)),
                        "\xff"
                        "9|9\xff");
    assert_string_equal(keys_of(f, NULL, pawl__rocks_prefix(text("b\xff"), space)), "|");
    assert_string_equal(keys_of(f, NULL, pawl__rocks_prefix(text(""), space)),
                        "a120\xff"
                        "9|9\xff"
                        "021a");
}

static void test_seeking_finds_the_neighbours(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;

    put_keys(f, EVENTS, "bdf");
    assert_ok(pawl__rocks_iter_open(f->db, NULL, EVENTS, everything, &iter, &f->error), &f->error);
    assert_ok(pawl__rocks_iter_seek(iter, text("c"), &f->error), &f->error);
    assert_true(pawl__view_is(iter->key, "d"));
    assert_ok(pawl__rocks_iter_seek(iter, text("d"), &f->error), &f->error);
    assert_true(pawl__view_is(iter->key, "d"));
    assert_true(pawl__view_is(iter->value, "v"));
    assert_ok(pawl__rocks_iter_seek_back(iter, text("e"), &f->error), &f->error);
    assert_true(pawl__view_is(iter->key, "d"));
    assert_ok(pawl__rocks_iter_seek(iter, text("g"), &f->error), &f->error);
    assert_false(iter->valid);
    assert_ok(pawl__rocks_iter_seek_back(iter, text("a"), &f->error), &f->error);
    assert_false(iter->valid);
}

static void test_a_snapshot_and_an_open_iterator_do_not_see_later_writes(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_snapshot_close_p) struct pawl__rocks_snapshot *snapshot = NULL;
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    struct pawl__rocks_value value = { 0 };

    put_keys(f, EVENTS, "ab");
    assert_ok(pawl__rocks_snapshot_open(f->db, &snapshot, &f->error), &f->error);
    assert_ok(pawl__rocks_iter_open(f->db, NULL, EVENTS, everything, &iter, &f->error), &f->error);
    assert_ok(put(f, EVENTS, "a", "new"), &f->error);
    put_keys(f, EVENTS, "c");
    assert_string_equal(keys_of(f, snapshot, everything), "ab|ba");
    assert_string_equal(keys_of(f, NULL, everything), "abc|cba");
    assert_ok(pawl__rocks_get(f->db, snapshot, EVENTS, text("a"), &value, &f->error), &f->error);
    assert_true(pawl__view_is(value.view, "v"));
    pawl__rocks_value_done(&value);
    assert_ok(pawl__rocks_iter_last(iter, &f->error), &f->error);
    assert_true(pawl__view_is(iter->key, "b"));
}

static void test_many_keys_are_found_at_once_with_holes(void **state)
{
    enum { COUNT = 200 }; /* several of the engine's steps, the last one short */
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    static char names[COUNT][8];
    pawl_view keys[COUNT];
    struct pawl__rocks_value values[COUNT];

    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof(names[i]), "k%zu", COUNT - i); /* not in the engine's order */
        keys[i] = text(names[i]);
        if (i % 3 != 0) {
            pawl__rocks_put(batch, META, keys[i], keys[i]);
        }
    }
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    assert_ok(pawl__rocks_get_many(f->db, NULL, META, keys, COUNT, values, &f->error), &f->error);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(values[i].found, i % 3 != 0);
        assert_true(!values[i].found || pawl__view_equal(values[i].view, keys[i]));
        pawl__rocks_value_done(&values[i]);
    }
}

static void test_families_are_added_and_unknown_ones_refused_by_name(void **state)
{
    struct fixture *f = *state;
    static const char *const more[] = { "events", "meta", "outbox", "default" };

    assert_ok(put(f, EVENTS, "k", "v"), &f->error);
    f->options.families = more;
    f->options.family_count = COUNT_OF(more);
    reopen(f);
    assert_ok(put(f, 2, "new", "v"), &f->error);
    assert_ok(put(f, 3, "default", "v"), &f->error);
    assert_value(f, EVENTS, "k", "v");
    pawl__rocks_close(f->db);
    f->db = NULL;

    f->options.families = families;
    f->options.family_count = FAMILY_COUNT;
    assert_status(
        pawl__rocks_open(f->path, &f->options, &f->db, &f->error), PAWL_UNSUPPORTED, &f->error);
    assert_message(&f->error, "column family 'outbox' is not known");
    f->options.families = more;
    f->options.family_count = COUNT_OF(more);
    reopen(f); /* the refusal changed nothing */
    assert_value(f, 2, "new", "v");
}

static void test_options_out_of_range_are_refused(void **state)
{
    struct fixture *f = *state;
    static const char *many[PAWL__ROCKS_FAMILIES_MAX + 1];
    static char names[PAWL__ROCKS_FAMILIES_MAX + 1][8];
    struct pawl__rocks_options options = { .families = many, .free_space_min = 1 };
    struct pawl__rocks *db = NULL;
    char path[TEMPDIR_SIZE + 32];

    for (size_t i = 0; i < COUNT_OF(many); i++) {
        snprintf(names[i], sizeof(names[i]), "f%zu", i);
        many[i] = names[i];
    }
    snprintf(path, sizeof(path), "%s/many", f->dir);
    assert_status(pawl__rocks_open(path, &options, &db, &f->error), PAWL_INVALID, &f->error);
    options.family_count = PAWL__ROCKS_FAMILIES_MAX + 1;
    assert_status(pawl__rocks_open(path, &options, &db, &f->error), PAWL_INVALID, &f->error);
    assert_message(&f->error, "65 column families, 1 to 64 are possible");
    options.family_count = PAWL__ROCKS_FAMILIES_MAX;
    options.memtable_bytes = 64 << 10;
    assert_ok(pawl__rocks_open(path, &options, &db, &f->error), &f->error);
    pawl__rocks_close(db);
}

static void test_properties_count_and_unknown_ones_are_not_found(void **state)
{
    struct fixture *f = *state;
    uint64_t count = 0;

    put_keys(f, EVENTS, "abc");
    assert_ok(pawl__rocks_property(f->db, EVENTS, "rocksdb.estimate-num-keys", &count, &f->error),
              &f->error);
    assert_int_equal(count, 3);
    assert_status(pawl__rocks_property(f->db, EVENTS, "rocksdb.nonsense", &count, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
}

static void test_flush_and_compaction_keep_what_is_there(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    uint64_t in_memory = 1;

    put_keys(f, EVENTS, "abcdef");
    assert_ok(pawl__rocks_flush(f->db, &f->error), &f->error);
    assert_ok(pawl__rocks_property(
                  f->db, EVENTS, "rocksdb.num-entries-active-mem-table", &in_memory, &f->error),
              &f->error);
    assert_int_equal(in_memory, 0);
    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_delete_range(batch, EVENTS, text("b"), text("e"));
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    assert_ok(pawl__rocks_compact(f->db, EVENTS, everything, &f->error), &f->error);
    reopen(f);
    assert_string_equal(keys_of(f, NULL, everything), "aef|fea");
}

static void test_an_unsynced_write_is_there_and_survives_a_close(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;

    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_put(batch, EVENTS, text("a"), text("1"));
    assert_ok(pawl__rocks_write_unsynced(f->db, batch, &f->error), &f->error);
    assert_value(f, EVENTS, "a", "1");
    pawl__rocks_put(batch, EVENTS, text("b"), text("2")); /* the batch was emptied */
    assert_ok(pawl__rocks_write_unsynced(f->db, batch, &f->error), &f->error);
    pawl__rocks_batch_free(STEAL(batch));
    reopen(f);
    assert_string_equal(keys_of(f, NULL, everything), "ab|ba");
}

static void put_file(struct fixture *f, const char *keys)
{
    char first[2] = { keys[0], '\0' };
    char until[2] = { (char)(keys[strlen(keys) - 1] + 1), '\0' };
    struct pawl__rocks_range range = { text(first), text(until) };

    put_keys(f, EVENTS, keys);
    assert_ok(pawl__rocks_flush(f->db, &f->error), &f->error);
    assert_ok(pawl__rocks_compact(f->db, EVENTS, range, &f->error), &f->error);
}

static void test_dropping_files_takes_only_those_that_lie_within(void **state)
{
    struct fixture *f = *state;

    put_file(f, "abc");
    put_file(f, "def");
    put_file(f, "ghi");
    assert_ok(pawl__rocks_drop_files(f->db, EVENTS, text("a"), text("e"), &f->error), &f->error);
    assert_string_equal(keys_of(f, NULL, everything), "defghi|ihgfed");
    assert_ok(pawl__rocks_drop_files(f->db, EVENTS, text("b"), text("f"), &f->error), &f->error);
    reopen(f);
    assert_string_equal(keys_of(f, NULL, everything), "ghi|ihg");
}

static uint64_t file_bytes(struct fixture *f, size_t family)
{
    uint64_t bytes = 0;

    assert_ok(pawl__rocks_compact(f->db, family, everything, &f->error), &f->error);
    assert_ok(
        pawl__rocks_property(f->db, family, "rocksdb.total-sst-files-size", &bytes, &f->error),
        &f->error);
    return bytes;
}

/* Twice, so that there is something to compact: the files of the last level are those without. */
static void fill_both_twice(struct fixture *f, int keys)
{
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    char key[16];

    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    for (int i = 0; i < 2 * keys; i++) {
        snprintf(key, sizeof(key), "%06d", i % keys);
        pawl__rocks_put(batch, EVENTS, text(key), text("v"));
        pawl__rocks_put(batch, META, text(key), text("v"));
        if ((i + 1) % keys == 0) {
            assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
            assert_ok(pawl__rocks_flush(f->db, &f->error), &f->error);
        }
    }
}

static void test_a_sure_family_has_no_filter_and_finds_the_same(void **state)
{
    struct fixture *f = *state;
    struct pawl__rocks_value value = { 0 };

    f->options.sure_families = UINT64_C(1) << EVENTS;
    reopen(f);
    fill_both_twice(f, 10000);
    assert_true(file_bytes(f, EVENTS) + 10000 < file_bytes(f, META)); /* ten bits a key */
    assert_value(f, EVENTS, "007777", "v");
    assert_status(pawl__rocks_get(f->db, NULL, EVENTS, text("0077770"), &value, &f->error),
                  PAWL_NOT_FOUND,
                  &f->error);
}

static void test_a_checkpoint_opens_as_a_store_of_its_own(void **state)
{
    struct fixture *f = *state;
    char copy[TEMPDIR_SIZE + 32];
    struct pawl__rocks *db = f->db;

    snprintf(copy, sizeof(copy), "%s/copy", f->dir);
    assert_ok(put(f, EVENTS, "k", "then"), &f->error);
    assert_ok(pawl__rocks_checkpoint(f->db, copy, &f->error), &f->error);
    assert_ok(put(f, EVENTS, "k", "now"), &f->error);
    assert_status(pawl__rocks_checkpoint(f->db, copy, &f->error), PAWL_CONFLICT, &f->error);
    f->db = NULL;
    assert_ok(pawl__rocks_open(copy, &f->options, &f->db, &f->error), &f->error);
    assert_value(f, EVENTS, "k", "then");
    pawl__rocks_close(f->db);
    f->db = db;
    assert_value(f, EVENTS, "k", "now");
}

static bool has_file(const char *dir, const char *end)
{
    DIR *stream = opendir(dir);
    bool found = false;

    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        found |= dot != NULL && strcmp(dot, end) == 0;
    }
    closedir(stream);
    return found;
}

static void test_long_values_go_to_blob_files_when_asked(void **state)
{
    struct fixture *f = *state;
    char value[512];

    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    assert_ok(put(f, EVENTS, "k", value), &f->error);
    assert_ok(pawl__rocks_flush(f->db, &f->error), &f->error);
    assert_false(has_file(f->path, ".blob"));
    f->options.blob_bytes_min = 256;
    reopen(f);
    assert_ok(put(f, EVENTS, "l", value), &f->error);
    assert_ok(pawl__rocks_flush(f->db, &f->error), &f->error);
    assert_true(has_file(f->path, ".blob"));
    assert_value(f, EVENTS, "k", value);
    assert_value(f, EVENTS, "l", value);
}

static void test_the_reserve_stops_puts_before_deletes(void **state)
{
    struct fixture *f = *state;
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    uint64_t free_bytes = 0;

    put_keys(f, EVENTS, "ab");
    assert_ok(pawl__fs_free_bytes(f->dir, &free_bytes, &f->error), &f->error);
    f->options.free_space_min =
        free_bytes / 2 * 3; /* others use the disk, too: keep wide margins */
    reopen(f);
    assert_status(put(f, EVENTS, "c", "v"), PAWL_NO_SPACE, &f->error);
    assert_message(&f->error, "store.free_space_min");
    assert_status(put(f, EVENTS, "c", "v"), PAWL_NO_SPACE, &f->error);
    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_delete(batch, EVENTS, text("a"));
    assert_ok(pawl__rocks_write(f->db, batch, &f->error), &f->error);
    assert_string_equal(keys_of(f, NULL, everything), "b|b");
    pawl__rocks_put(batch, EVENTS, text("c"), text("v"));
    assert_status(pawl__rocks_write(f->db, batch, &f->error), PAWL_NO_SPACE, &f->error);
    f->options.free_space_min = 1 << 20;
    pawl__rocks_batch_free(STEAL(batch));
    reopen(f);
    assert_ok(put(f, EVENTS, "c", "v"), &f->error); /* it was never poisoned */
}

/* What the engine would take of the disk in advance, nobody could write into any more. */
static void test_an_open_store_takes_what_is_in_it_and_no_more(void **state)
{
    struct fixture *f = *state;
    DIR *stream = opendir(f->path);
    uint64_t bytes = 0;

    assert_non_null(stream);
    put_keys(f, EVENTS, "abc");
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        struct stat info;
        assert_int_equal(fstatat(dirfd(stream), entry->d_name, &info, 0), 0);
        bytes += (uint64_t)info.st_blocks * 512;
    }
    closedir(stream);
    assert_true(bytes < 4 << 20);
}

static void test_a_store_is_read_without_room_and_nothing_is_made(void **state)
{
    struct fixture *f = *state;
    struct pawl__rocks *db = NULL;
    char path[TEMPDIR_SIZE + 32];

    put_keys(f, EVENTS, "ab");
    assert_ok(pawl__rocks_flush(f->db, &f->error), &f->error);
    put_keys(f, EVENTS, "c"); /* in the log alone */
    f->options.free_space_min = UINT64_MAX / 2;
    f->options.read_only = true;
    reopen(f);
    assert_string_equal(keys_of(f, NULL, everything), "abc|cba");
    assert_status(put(f, EVENTS, "d", "v"), PAWL_DENIED, &f->error);
    assert_message(&f->error, "opened for reading");
    assert_status(pawl__rocks_flush(f->db, &f->error), PAWL_DENIED, &f->error);
    assert_status(pawl__rocks_open(f->path, &f->options, &db, &f->error), PAWL_BUSY, &f->error);
    snprintf(path, sizeof(path), "%s/none", f->dir);
    assert_status(pawl__rocks_open(path, &f->options, &db, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_int_equal(access(path, F_OK), -1);
    static const char *const more[] = { "events", "meta", "new" };
    struct pawl__rocks_options options = f->options;
    options.families = more;
    options.family_count = COUNT_OF(more);
    pawl__rocks_close(STEAL(f->db));
    assert_status(pawl__rocks_open(f->path, &options, &db, &f->error), PAWL_NOT_FOUND, &f->error);
    assert_message(&f->error, "column family 'new' was not made yet");
    f->options.free_space_min = 1 << 20;
    f->options.read_only = false;
    reopen(f);
    assert_ok(put(f, EVENTS, "d", "v"), &f->error);
}

static void test_opening_without_room_is_refused_and_makes_nothing(void **state)
{
    struct fixture *f = *state;
    struct pawl__rocks *db = NULL;
    char path[TEMPDIR_SIZE + 32];

    f->options.free_space_min = UINT64_MAX / 2;
    snprintf(path, sizeof(path), "%s/not/there", f->dir);
    assert_status(pawl__rocks_open(path, &f->options, &db, &f->error), PAWL_NO_SPACE, &f->error);
    assert_message(&f->error, "make room or lower store.free_space_min");
    snprintf(path, sizeof(path), "%s/not", f->dir);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(mkdir(path, 0700), 0); /* somebody else's, who may want it */
    assert_status(pawl__rocks_open(path, &f->options, &db, &f->error), PAWL_NO_SPACE, &f->error);
    assert_false(has_file(path, ".log"));
}

static void test_failpoints_stand_on_both_sides_of_a_write(void **state)
{
    struct fixture *f = *state;

    assert_ok(pawl__failpoint_set("rocksdb.write.before=error:IO", &f->error), &f->error);
    assert_status(put(f, EVENTS, "before", "v"), PAWL_IO, &f->error);
    assert_ok(pawl__failpoint_set("rocksdb.write.after=error:IO", &f->error), &f->error);
    assert_status(put(f, EVENTS, "after", "v"), PAWL_IO, &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    assert_absent(f, EVENTS, "before");
    assert_value(f, EVENTS, "after", "v"); /* failed for the caller, and yet there */
}

static void test_every_allocation_of_ours_may_fail(void **state)
{
    struct fixture *f = *state;

    put_keys(f, EVENTS, "a");
    pawl__rocks_close(STEAL(f->db));
    FAULT_WALK (walk) {
        AUTO(pawl__rocks_close_p) struct pawl__rocks *db = NULL;
        struct pawl__rocks_batch *batch = NULL;
        struct pawl__rocks_iter *iter = NULL;
        struct pawl__rocks_snapshot *snapshot = NULL;
        struct pawl__rocks_range range = { .from = text("a"), .until = text("z") };

        pawl_status status = pawl__rocks_open(f->path, &f->options, &db, &f->error);
        if (status == PAWL_OK) {
            status = pawl__rocks_batch_new(db, &batch, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__rocks_snapshot_open(db, &snapshot, &f->error);
        }
        if (status == PAWL_OK) {
            status = pawl__rocks_iter_open(db, snapshot, EVENTS, range, &iter, &f->error);
        }
        pawl__rocks_iter_close(iter);
        pawl__rocks_snapshot_close(snapshot);
        pawl__rocks_batch_free(batch);
        assert_status(status, fault_fired() ? PAWL_NOMEM : PAWL_OK, &f->error);
    }
    reopen(f);
    assert_value(f, EVENTS, "a", "v");
}

static uint64_t bytes_of_logs(const char *dir)
{
    DIR *stream = opendir(dir);
    uint64_t bytes = 0;

    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        struct stat info;
        if (dot != NULL && strcmp(dot, ".log") == 0
            && fstatat(dirfd(stream), entry->d_name, &info, 0) == 0) {
            bytes += (uint64_t)info.st_size;
        }
    }
    closedir(stream);
    return bytes;
}

static int64_t in_a_minute(void)
{
    return pawl__monotonic_ns(pawl__clock_real()) + 60 * NS_PER_S;
}

static void test_a_flush_before_closing_leaves_no_log_to_read(void **state)
{
    struct fixture *f = *state;

    put_keys(f, EVENTS, "ab");
    put_keys(f, META, "c");
    assert_true(bytes_of_logs(f->path) > 0);
    assert_ok(pawl__rocks_flush_last(f->db, in_a_minute(), &f->error), &f->error);
    pawl__rocks_close(STEAL(f->db));
    assert_int_equal(bytes_of_logs(f->path), 0);
    reopen(f);
    assert_value(f, EVENTS, "a", "v");
    assert_value(f, META, "c", "v");
    assert_ok(pawl__rocks_flush_last(f->db, in_a_minute(), &f->error),
              &f->error); /* nothing to do */
}

static void test_a_flush_that_is_given_up_loses_nothing(void **state)
{
    struct fixture *f = *state;

    put_keys(f, EVENTS, "ab");
    assert_ok(pawl__rocks_flush_last(f->db, 0, &f->error), &f->error); /* at once, or in time */
    reopen(f);
    assert_value(f, EVENTS, "a", "v");
    assert_ok(pawl__failpoint_set("rocksdb.flush.before=error:IO", &f->error), &f->error);
    put_keys(f, EVENTS, "c");
    assert_ok(pawl__rocks_flush_last(f->db, in_a_minute(), &f->error), &f->error);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    reopen(f);
    assert_value(f, EVENTS, "c", "v");
}

static void test_a_last_flush_without_memory_is_left_out_and_no_error(void **state)
{
    struct fixture *f = *state;

    put_keys(f, EVENTS, "a");
    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;

        assert_ok(pawl__rocks_flush_last(f->db, in_a_minute(), &error), &error);
        assert_int_equal(error.status, PAWL_OK);
    }
    reopen(f);
    assert_value(f, EVENTS, "a", "v");
}

static void test_the_engine_keeps_no_info_log_on_the_disk(void **state)
{
    struct fixture *f = *state;
    char path[TEMPDIR_SIZE + 64];

    put_keys(f, EVENTS, "a");
    reopen(f);
    snprintf(path, sizeof(path), "%s/LOG", f->path);
    assert_int_equal(access(path, F_OK), -1);
}

static void put_bytes(struct pawl__rocks *db, size_t family, unsigned number, size_t len)
{
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    char *value = malloc(len);
    char key[32];

    assert_non_null(value);
    memset(value, (int)(number % 251), len);
    snprintf(key, sizeof(key), "%08u", number);
    assert_ok(pawl__rocks_batch_new(db, &batch, &error), &error);
    pawl__rocks_put(batch, family, text(key), (pawl_view){ value, len });
    assert_ok(pawl__rocks_write(db, batch, &error), &error);
    free(value);
}

/* Several stores, the first one idle with full memtables: a busy one has it flushed, and all of them stay
 * within the budget. */
static void test_all_stores_of_a_process_share_one_budget_of_memory(void **state)
{
    enum { STORES = 4, BUDGET = 16 << 20, VALUE = 64 << 10, VALUES = 120 };
    struct fixture *f = *state;
    struct pawl__rocks *dbs[STORES] = { NULL };
    uint64_t most = 0;

    pawl__rocks_close(STEAL(f->db));
    pawl__rocks_set_memory_max(BUDGET);
    for (size_t i = 0; i < STORES; i++) {
        char path[TEMPDIR_SIZE + 64];
        snprintf(path, sizeof(path), "%s/shared-%zu", f->dir, i);
        assert_ok(pawl__rocks_open(path, &f->options, &dbs[i], &f->error), &f->error);
    }
    for (unsigned n = 0; n < VALUES * STORES; n++) {
        put_bytes(dbs[n / VALUES], n % FAMILY_COUNT, n, VALUE);
        most = MAX(most, pawl__rocks_memory_used());
    }
    print_message("# %llu KiB at the most\n", (unsigned long long)(most >> 10));
    assert_true(most > 0);
    assert_true(most <= BUDGET);
    for (size_t i = 0; i < STORES; i++) {
        pawl__rocks_close(dbs[i]);
    }
    pawl__rocks_set_memory_max(UINT64_C(128) << 20);
    reopen(f);
}

static unsigned files_of_tables(const char *dir)
{
    DIR *stream = opendir(dir);
    unsigned count = 0;

    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        count += dot != NULL && strcmp(dot, ".sst") == 0;
    }
    closedir(stream);
    return count;
}

/* What empty memtables take is not given back by a flush: with it alone near the limit, every write would
 * begin one. */
static void test_writes_to_many_stores_do_not_make_a_file_each(void **state)
{
    enum { STORES = 64, WRITES = 8 };
    struct fixture *f = *state;
    static struct pawl__rocks *dbs[STORES];
    unsigned files = 0;

    pawl__rocks_close(STEAL(f->db));
    pawl__rocks_set_memory_max(0); /* the least there is */
    f->options.unsafe_no_sync = true;
    for (size_t i = 0; i < STORES; i++) {
        char path[TEMPDIR_SIZE + 64];
        snprintf(path, sizeof(path), "%s/many-%zu", f->dir, i);
        assert_ok(pawl__rocks_open(path, &f->options, &dbs[i], &f->error), &f->error);
    }
    for (unsigned n = 0; n < WRITES * STORES; n++) {
        put_bytes(dbs[n % STORES], n / STORES % FAMILY_COUNT, n, 100);
    }
    for (size_t i = 0; i < STORES; i++) {
        char path[TEMPDIR_SIZE + 64];
        snprintf(path, sizeof(path), "%s/many-%zu", f->dir, i);
        pawl__rocks_close(dbs[i]);
        files += files_of_tables(path);
    }
    print_message("# %u files\n", files);
    assert_int_equal(files, 0);
    pawl__rocks_set_memory_max(UINT64_C(128) << 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_batch_reads_back_in_its_families),
        TEST(test_a_written_batch_is_empty_and_can_be_filled_again),
        TEST(test_deletes_and_ranges_apply_in_order),
        TEST(test_a_key_has_a_limit_and_one_past_it_breaks_the_batch),
        TEST(test_a_batch_has_a_limit_and_one_past_it_breaks_it),
        TEST(test_iterators_stay_in_their_range_both_ways),
        TEST(test_a_prefix_is_a_range_also_at_the_end_of_all_keys),
        TEST(test_seeking_finds_the_neighbours),
        TEST(test_a_snapshot_and_an_open_iterator_do_not_see_later_writes),
        TEST(test_many_keys_are_found_at_once_with_holes),
        TEST(test_families_are_added_and_unknown_ones_refused_by_name),
        TEST(test_options_out_of_range_are_refused),
        TEST(test_properties_count_and_unknown_ones_are_not_found),
        TEST(test_flush_and_compaction_keep_what_is_there),
        TEST(test_an_unsynced_write_is_there_and_survives_a_close),
        TEST(test_dropping_files_takes_only_those_that_lie_within),
        TEST(test_a_sure_family_has_no_filter_and_finds_the_same),
        TEST(test_a_checkpoint_opens_as_a_store_of_its_own),
        TEST(test_long_values_go_to_blob_files_when_asked),
        TEST(test_the_reserve_stops_puts_before_deletes),
        TEST(test_an_open_store_takes_what_is_in_it_and_no_more),
        TEST(test_a_store_is_read_without_room_and_nothing_is_made),
        TEST(test_opening_without_room_is_refused_and_makes_nothing),
        TEST(test_failpoints_stand_on_both_sides_of_a_write),
        TEST(test_every_allocation_of_ours_may_fail),
        TEST(test_a_flush_before_closing_leaves_no_log_to_read),
        TEST(test_a_flush_that_is_given_up_loses_nothing),
        TEST(test_a_last_flush_without_memory_is_left_out_and_no_error),
        TEST(test_the_engine_keeps_no_info_log_on_the_disk),
        TEST(test_all_stores_of_a_process_share_one_budget_of_memory),
        TEST(test_writes_to_many_stores_do_not_make_a_file_each),
    };
    return cmocka_run_group_tests_name("rocksdb", tests, NULL, NULL);
}
