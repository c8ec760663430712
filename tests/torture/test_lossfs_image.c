/* The durable image behind lossfs, without a mount: which bytes and names a cut leaves. */
#include "lib/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "torture/lossfs/faults.h"
#include "torture/lossfs/names.h"

#define REGULAR (S_IFREG | 0644)
#define DIRECTORY (S_IFDIR | 0755)

static void put(struct loss_file *file, uint64_t offset, const char *text)
{
    loss_file_write(file, offset, text, strlen(text), false);
}

static void assert_durable(const struct loss_file *file, const char *expected)
{
    assert_int_equal(file->durable_len, strlen(expected));
    assert_memory_equal(file->durable == NULL ? "" : file->durable, expected, strlen(expected));
}

static void cut_file(struct loss_file *file, enum loss_cut cut, uint64_t seed)
{
    struct pawl__prng random = pawl__prng_seeded(seed);

    loss_file_cut(file, cut, &random);
}

static void test_a_cut_drops_what_was_not_synced(void **state)
{
    struct loss_file file = { 0 };

    (void)state;
    put(&file, 0, "kept");
    loss_file_sync(&file);
    put(&file, 4, " lost");
    loss_file_resize(&file, 2);
    assert_int_equal(file.live_len, 2);
    cut_file(&file, LOSS_CUT_DROP, 1);
    assert_durable(&file, "kept");
    loss_file_done(&file);
}

static void test_keep_leaves_what_programs_saw(void **state)
{
    struct loss_file file = { 0 };

    (void)state;
    put(&file, 0, "abcdef");
    loss_file_resize(&file, 3);
    put(&file, 2, "X");
    cut_file(&file, LOSS_CUT_KEEP, 1);
    assert_durable(&file, "abX");
    loss_file_done(&file);
}

static void test_growing_again_after_a_shrink_reads_zeros(void **state)
{
    struct loss_file file = { 0 };

    (void)state;
    put(&file, 0, "abcdef");
    loss_file_resize(&file, 2);
    loss_file_resize(&file, 4);
    loss_file_sync(&file);
    assert_int_equal(file.durable_len, 4);
    assert_memory_equal(file.durable, "ab\0\0", 4);
    loss_file_done(&file);
}

static void test_a_synced_write_survives_older_unsynced_ones(void **state)
{
    struct loss_file file = { 0 };

    (void)state;
    put(&file, 0, "old");
    loss_file_write(&file, 1, "N", 1, true);
    cut_file(&file, LOSS_CUT_DROP, 1);
    assert_int_equal(file.durable_len, 2);
    assert_memory_equal(file.durable, "\0N", 2);
    loss_file_done(&file);

    put(&file, 0, "o_E");
    loss_file_write(&file, 1, "N", 1, true);
    loss_file_sync(&file); /* in the order they were made */
    assert_durable(&file, "oNE");
    loss_file_done(&file);
}

static void test_a_failed_fsync_forgets(void **state)
{
    struct loss_file file = { 0 };

    (void)state;
    put(&file, 0, "gone");
    loss_file_forget(&file);
    loss_file_sync(&file); /* a retry succeeds and brings nothing back */
    cut_file(&file, LOSS_CUT_KEEP, 1);
    assert_durable(&file, "");
    loss_file_done(&file);
}

/* Over many seeds every prefix occurs, and nothing but prefixes. */
static void test_prefix_keeps_the_first_few(void **state)
{
    static const char *const possible[] = { "", "1", "12", "123" };
    bool seen[4] = { false };

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct loss_file file = { 0 };
        put(&file, 0, "1");
        put(&file, 1, "2");
        put(&file, 2, "3");
        cut_file(&file, LOSS_CUT_PREFIX, seed);
        assert_in_range(file.durable_len, 0, 3);
        assert_durable(&file, possible[file.durable_len]);
        seen[file.durable_len] = true;
        loss_file_done(&file);
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

static void test_random_keeps_any_subset(void **state)
{
    bool later_without_earlier = false;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct loss_file file = { 0 };
        put(&file, 0, "1");
        put(&file, 1, "2");
        cut_file(&file, LOSS_CUT_RANDOM, seed);
        if (file.durable_len == 2 && file.durable[0] == '\0') {
            later_without_earlier = true;
        }
        loss_file_done(&file);
    }
    assert_true(later_without_earlier);
}

static void test_torn_splits_a_write_between_sectors(void **state)
{
    char page[4096];
    bool torn = false;

    (void)state;
    memset(page, 'x', sizeof(page));
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct loss_file file = { 0 };
        loss_file_write(&file, 0, page, sizeof(page), false);
        cut_file(&file, LOSS_CUT_TORN, seed);
        assert_int_equal(file.durable_len % LOSS_SECTOR_BYTES, 0);
        torn = torn || (file.durable_len > 0 && file.durable_len < sizeof(page));
        loss_file_done(&file);
    }
    assert_true(torn);
}

static void test_a_seed_repeats_its_cut(void **state)
{
    struct loss_file files[2] = { { 0 }, { 0 } };

    (void)state;
    for (int i = 0; i < 2; i++) {
        for (uint64_t at = 0; at < 50; at++) {
            put(&files[i], at, "z");
        }
        cut_file(&files[i], LOSS_CUT_RANDOM, 42);
    }
    assert_int_equal(files[0].durable_len, files[1].durable_len);
    assert_memory_equal(files[0].durable, files[1].durable, files[0].durable_len);
    loss_file_done(&files[0]);
    loss_file_done(&files[1]);
}

static const struct loss_entry *next_name(const struct loss_node *directory, const char *last)
{
    const struct loss_entry *next = NULL;

    for (const struct loss_entry *e = directory->durable; e != NULL; e = e->next) {
        if (strcmp(e->name, last) > 0 && (next == NULL || strcmp(e->name, next->name) < 0)) {
            next = e;
        }
    }
    return next;
}

/* The durable tree as text: "a b/ b/c", names in alphabetical order. */
static void list(const struct loss_node *directory, const char *prefix, char *text, size_t size)
{
    const struct loss_entry *entry = NULL;

    for (const char *last = ""; (entry = next_name(directory, last)) != NULL; last = entry->name) {
        char path[64];
        bool is_directory = S_ISDIR(entry->node->mode);
        snprintf(path, sizeof(path), "%s%s%s", prefix, entry->name, is_directory ? "/" : "");
        size_t len = strlen(text);
        snprintf(&text[len], size - len, "%s%s", len == 0 ? "" : " ", path);
        list(entry->node, path, text, size);
    }
}

static void assert_names(const struct loss_names *names, const char *expected)
{
    char text[256] = "";

    list(names->root, "", text, sizeof(text));
    assert_string_equal(text, expected);
}

static void test_journal_any_fsync_saves_every_name(void **state)
{
    struct loss_names names;

    (void)state;
    loss_names_init(&names, LOSS_METADATA_JOURNAL);
    loss_names_create(&names, "/dir", DIRECTORY);
    loss_names_create(&names, "/dir/a", REGULAR);
    struct loss_node *b = loss_names_create(&names, "/b", REGULAR);
    assert_names(&names, "");
    loss_names_sync(&names, b);
    assert_names(&names, "b dir/ dir/a");
    loss_names_unlink(&names, "/b");
    assert_int_equal(loss_names_cut(&names, LOSS_CUT_DROP, 1).names, 1);
    assert_names(&names, "b dir/ dir/a");
    loss_names_done(&names);
}

static void test_strict_needs_the_directory(void **state)
{
    struct loss_names names;

    (void)state;
    loss_names_init(&names, LOSS_METADATA_STRICT);
    struct loss_node *a = loss_names_create(&names, "/a", REGULAR);
    loss_names_sync(&names, a);
    assert_names(&names, "");
    loss_names_sync(&names, names.root);
    assert_names(&names, "a");
    loss_names_rename(&names, "/a", "/b");
    loss_names_sync(&names, a);
    assert_names(&names, "a");
    loss_names_sync(&names, names.root);
    assert_names(&names, "b");
    loss_names_done(&names);
}

static void test_strict_loses_what_stands_in_a_lost_directory(void **state)
{
    struct loss_names names;

    (void)state;
    loss_names_init(&names, LOSS_METADATA_STRICT);
    struct loss_node *dir = loss_names_create(&names, "/dir", DIRECTORY);
    loss_names_create(&names, "/dir/a", REGULAR);
    loss_names_sync(&names, dir);
    assert_names(&names, ""); /* /dir itself was never synced */
    loss_names_sync(&names, names.root);
    assert_names(&names, "dir/ dir/a");
    loss_names_done(&names);
}

static void test_a_rename_between_directories_is_atomic(void **state)
{
    struct loss_names names;

    (void)state;
    loss_names_init(&names, LOSS_METADATA_STRICT);
    struct loss_node *from = loss_names_create(&names, "/from", DIRECTORY);
    struct loss_node *to = loss_names_create(&names, "/to", DIRECTORY);
    loss_names_sync(&names, names.root);
    loss_names_create(&names, "/from/a", REGULAR);
    loss_names_rename(&names, "/from/a", "/to/a");
    loss_names_create(&names, "/from/b", REGULAR);
    loss_names_sync(&names, to);
    assert_names(&names, "from/ to/ to/a");
    loss_names_sync(&names, from); /* does not bring the old name back */
    assert_names(&names, "from/ from/b to/ to/a");
    loss_names_done(&names);
}

static void test_a_replaced_file_comes_back_when_the_rename_is_lost(void **state)
{
    struct loss_names names;

    (void)state;
    loss_names_init(&names, LOSS_METADATA_STRICT);
    struct loss_node *old = loss_names_create(&names, "/config", REGULAR);
    loss_names_write(&names, old, 0, "old", 3, false);
    loss_file_sync(&old->file);
    loss_names_sync(&names, names.root);
    struct loss_node *new = loss_names_create(&names, "/config.tmp", REGULAR);
    loss_names_write(&names, new, 0, "new", 3, false);
    loss_file_sync(&new->file);
    loss_names_rename(&names, "/config.tmp", "/config");
    assert_ptr_equal(loss_names_find(&names, "/config"), new);
    loss_names_cut(&names, LOSS_CUT_DROP, 1);
    assert_names(&names, "config");
    assert_durable(&names.root->durable->node->file, "old");
    loss_names_done(&names);
}

static void test_replacing_an_open_file_leaves_the_old_or_the_new_one(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        for (int renamed = 0; renamed < 2; renamed++) {
            struct loss_names names;
            loss_names_init(&names, LOSS_METADATA_JOURNAL);
            loss_names_create(&names, "/a", REGULAR);
            loss_names_create(&names, "/new", REGULAR);
            loss_names_sync_all(&names);
            loss_names_hide(&names, "/a", "/.fuse_hidden1");
            if (renamed) {
                loss_names_rename(&names, "/new", "/a");
            }
            struct loss_lost lost = loss_names_cut(&names, LOSS_CUT_PREFIX, seed);
            assert_names(&names, renamed && lost.names == 0 ? "a" : "a new");
            loss_names_done(&names);
        }
    }
}

static void test_an_open_file_that_is_unlinked_is_gone_from_the_disk(void **state)
{
    struct loss_names names;

    (void)state;
    loss_names_init(&names, LOSS_METADATA_JOURNAL);
    loss_names_create(&names, "/a", REGULAR);
    loss_names_sync_all(&names);
    loss_names_hide(&names, "/a", "/.fuse_hidden1");
    assert_non_null(loss_names_find(&names, "/.fuse_hidden1"));
    loss_names_sync_all(&names);
    assert_names(&names, "");
    loss_names_unlink(&names, "/.fuse_hidden1");
    loss_names_sync_all(&names);
    assert_names(&names, "");
    loss_names_done(&names);
}

static void test_a_cut_reaches_files_in_every_directory(void **state)
{
    struct loss_names names;

    (void)state;
    loss_names_init(&names, LOSS_METADATA_JOURNAL);
    loss_names_create(&names, "/dir", DIRECTORY);
    struct loss_node *file = loss_names_create(&names, "/dir/a", REGULAR);
    loss_names_sync_all(&names);
    loss_names_write(&names, file, 0, "xyz", 3, false);
    assert_int_equal(loss_names_cut(&names, LOSS_CUT_DROP, 1).writes, 1);
    assert_int_equal(file->file.durable_len, 0);
    loss_names_done(&names);
}

static void test_live_bytes_follow_what_has_a_name(void **state)
{
    struct loss_names names;

    (void)state;
    loss_names_init(&names, LOSS_METADATA_JOURNAL);
    struct loss_node *a = loss_names_create(&names, "/a", REGULAR);
    loss_names_write(&names, a, 10, "12345", 5, false);
    assert_int_equal(names.live_bytes, 15);
    loss_names_link(&names, "/b", a);
    loss_names_resize(&names, a, 4);
    loss_names_unlink(&names, "/a");
    assert_int_equal(names.live_bytes, 4);
    loss_node_ref(a); /* still open */
    loss_names_unlink(&names, "/b");
    assert_int_equal(names.live_bytes, 0);
    loss_names_write(&names, a, 0, "1234567", 7, false);
    assert_int_equal(names.live_bytes, 0);
    loss_names_unref(&names, a);
    struct loss_node *c = loss_names_create(&names, "/c", REGULAR);
    loss_names_write(&names, c, 0, "123", 3, false);
    loss_names_create(&names, "/c", REGULAR); /* replaces it */
    assert_int_equal(names.live_bytes, 0);
    loss_names_done(&names);
}

static void test_faults_hit_the_operation_they_name(void **state)
{
    struct loss_faults faults = { .quota = 100, .cut_at = 3, .fail_write = 2, .fail_fsync = 1 };
    int error = 0;

    (void)state;
    assert_int_equal(loss_faults_write(&faults), 0);
    assert_int_equal(loss_faults_write(&faults), EIO);
    assert_int_equal(loss_faults_write(&faults), 0);
    assert_int_equal(loss_faults_fsync(&faults), EIO);
    assert_int_equal(faults.errors, 2);
    assert_int_equal(loss_faults_grow(&faults, 50, 100), 0);
    assert_int_equal(loss_faults_grow(&faults, 50, 101), ENOSPC);
    assert_int_equal(loss_faults_grow(&faults, 150, 120), 0); /* less is always allowed */
    assert_int_equal(loss_faults_change(&faults, &error), LOSS_GO);
    faults.read_only = true;
    assert_int_equal(loss_faults_change(&faults, &error), LOSS_REFUSE);
    assert_int_equal(error, EROFS);
    assert_int_equal(loss_faults_change(&faults, &error), LOSS_CUT_NOW);
    faults.cut_done = true;
    assert_int_equal(loss_faults_change(&faults, &error), LOSS_REFUSE);
    assert_int_equal(error, EIO);
}

static void test_cuts_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < LOSS_CUT_COUNT; i++) {
        enum loss_cut cut = LOSS_CUT_COUNT;
        assert_true(loss_cut_parse(loss_cut_name((enum loss_cut)i), &cut));
        assert_int_equal(cut, i);
    }
    enum loss_cut untouched = LOSS_CUT_TORN;
    assert_false(loss_cut_parse("half", &untouched));
    assert_int_equal(untouched, LOSS_CUT_TORN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cut_drops_what_was_not_synced),
        cmocka_unit_test(test_keep_leaves_what_programs_saw),
        cmocka_unit_test(test_growing_again_after_a_shrink_reads_zeros),
        cmocka_unit_test(test_a_synced_write_survives_older_unsynced_ones),
        cmocka_unit_test(test_a_failed_fsync_forgets),
        cmocka_unit_test(test_prefix_keeps_the_first_few),
        cmocka_unit_test(test_random_keeps_any_subset),
        cmocka_unit_test(test_torn_splits_a_write_between_sectors),
        cmocka_unit_test(test_a_seed_repeats_its_cut),
        cmocka_unit_test(test_journal_any_fsync_saves_every_name),
        cmocka_unit_test(test_strict_needs_the_directory),
        cmocka_unit_test(test_strict_loses_what_stands_in_a_lost_directory),
        cmocka_unit_test(test_a_rename_between_directories_is_atomic),
        cmocka_unit_test(test_a_replaced_file_comes_back_when_the_rename_is_lost),
        cmocka_unit_test(test_replacing_an_open_file_leaves_the_old_or_the_new_one),
        cmocka_unit_test(test_an_open_file_that_is_unlinked_is_gone_from_the_disk),
        cmocka_unit_test(test_a_cut_reaches_files_in_every_directory),
        cmocka_unit_test(test_live_bytes_follow_what_has_a_name),
        cmocka_unit_test(test_faults_hit_the_operation_they_name),
        cmocka_unit_test(test_cuts_have_names),
    };

    return cmocka_run_group_tests_name("lossfs_image", tests, NULL, NULL);
}
