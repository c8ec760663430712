/* The end of the engine's log after a power cut that kept the second half of the last write, and what
 * only looks like it. */
#include "lib/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/os/fs.h"
#include "lib/tempdir.h"
#include "store/rocksdb/rocksdb.h"

enum { VALUE_BYTES = 3000, BLOCK = 32768, HEADER = 7, MORE = 15 };

static const char *const families[] = { "events" };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    char log[TEMPDIR_SIZE + 64];
    struct pawl__rocks *db;
    uint32_t keys;
    pawl_error error;
};

static pawl_status open_store(struct fixture *f)
{
    const struct pawl__rocks_options options = { .families = families,
                                                 .family_count = 1,
                                                 .free_space_min = 8 << 20 };

    return pawl__rocks_open(f->path, &options, &f->db, &f->error);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_ok(tempdir_make(f->dir, "rocksdb-tail", &f->error), &f->error);
    snprintf(f->path, sizeof(f->path), "%s/store", f->dir);
    assert_ok(open_store(f), &f->error);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__rocks_close(f->db);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

typedef pawl_status writing(struct pawl__rocks *db,
                            struct pawl__rocks_batch *batch,
                            pawl_error *reterr);

static void put_by(struct fixture *f, writing *write)
{
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    char key[16];
    char value[VALUE_BYTES];

    memset(value, 'a' + (int)(f->keys % 20), sizeof(value));
    snprintf(key, sizeof(key), "%08u", f->keys++);
    assert_ok(pawl__rocks_batch_new(f->db, &batch, &f->error), &f->error);
    pawl__rocks_put(batch, 0, pawl_view_of(key), (pawl_view){ value, sizeof(value) });
    assert_ok(write(f->db, batch, &f->error), &f->error);
}

static void put(struct fixture *f)
{
    put_by(f, pawl__rocks_write);
}

static void put_unsynced(struct fixture *f)
{
    put_by(f, pawl__rocks_write_unsynced);
}

/* The only log that is not empty. */
static size_t find_log(struct fixture *f)
{
    DIR *stream = opendir(f->path);
    const struct dirent *entry = NULL;
    size_t size = 0;

    assert_non_null(stream);
    while ((entry = readdir(stream)) != NULL) {
        char path[sizeof(f->log)];
        struct stat info;
        const char *end = strrchr(entry->d_name, '.');
        if (end == NULL || strcmp(end, ".log") != 0) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%.20s", f->path, entry->d_name);
        assert_int_equal(stat(path, &info), 0);
        if (info.st_size > 0) {
            size = (size_t)info.st_size;
            memcpy(f->log, path, sizeof(path));
        }
    }
    closedir(stream);
    return size;
}

/* Writes until the last record goes over the end of the first block. */
static void fill_block_by(struct fixture *f, writing *write)
{
    do {
        put_by(f, write);
    } while (find_log(f) < BLOCK);
}

static void fill_block(struct fixture *f)
{
    fill_block_by(f, pawl__rocks_write);
}

static void read_block(const struct fixture *f, unsigned char block[BLOCK])
{
    AUTO(pawl__fs_close) int fd = open(f->log, O_RDONLY | O_CLOEXEC);

    assert_int_equal(pread(fd, block, BLOCK, 0), BLOCK);
}

/* Where the last fragment of the first block begins. */
static size_t last_fragment(const struct fixture *f)
{
    static unsigned char block[BLOCK];
    size_t at = 0;

    read_block(f, block);
    for (;;) {
        size_t len = (size_t)block[at + 4] | (size_t)block[at + 5] << 8;
        if (at + HEADER + len + HEADER > BLOCK) {
            assert_int_equal(block[at + 6], 2); /* it goes on in the next block */
            return at;
        }
        at += HEADER + len;
    }
}

static void overwrite(const struct fixture *f, size_t at, size_t len, int with)
{
    AUTO(pawl__fs_close) int fd = open(f->log, O_RDWR | O_CLOEXEC);
    char *bytes = malloc(len);

    assert_non_null(bytes);
    memset(bytes, with, len);
    assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
    free(bytes);
}

static void close_store(struct fixture *f)
{
    pawl__rocks_close(f->db);
    f->db = NULL;
}

static void expect_keys(struct fixture *f, uint32_t count)
{
    for (uint32_t n = 0; n < f->keys; n++) {
        struct pawl__rocks_value value = { .found = false };
        char key[16];
        snprintf(key, sizeof(key), "%08u", n);
        pawl_status status = pawl__rocks_get(f->db, NULL, 0, pawl_view_of(key), &value, &f->error);
        assert_status(status, n < count ? PAWL_OK : PAWL_NOT_FOUND, &f->error);
        pawl__rocks_value_done(&value);
    }
}

static void test_a_last_write_without_its_beginning_is_cut(void **state)
{
    struct fixture *f = *state;

    fill_block(f);
    size_t at = last_fragment(f);
    close_store(f);
    overwrite(f, at, BLOCK - at, 0);
    assert_ok(open_store(f), &f->error);
    expect_keys(f, f->keys - 1);
    put(f); /* and it goes on */
    close_store(f);
    assert_ok(open_store(f), &f->error);
}

static void test_the_same_with_whole_records_behind_it_is_damage(void **state)
{
    struct fixture *f = *state;

    fill_block(f);
    size_t at = last_fragment(f);
    for (int i = 0; i < MORE; i++) {
        put(f);
    }
    close_store(f);
    overwrite(f, at, BLOCK - at, 0);
    assert_status(open_store(f), PAWL_CORRUPT, &f->error);
    assert_status(open_store(f), PAWL_CORRUPT, &f->error); /* nothing was cut */
}

/* Marks of a consumer WAL are such writes: a disk may have the later ones and not the first. */
static void test_unsynced_writes_behind_a_hole_are_cut_with_it(void **state)
{
    struct fixture *f = *state;

    put(f);
    fill_block_by(f, pawl__rocks_write_unsynced);
    uint32_t kept = f->keys - 1;
    size_t at = last_fragment(f);
    for (int i = 0; i < MORE; i++) {
        put_unsynced(f);
    }
    close_store(f);
    overwrite(f, at, BLOCK - at, 0);
    assert_ok(open_store(f), &f->error);
    expect_keys(f, kept);
    put(f);
    close_store(f);
    assert_ok(open_store(f), &f->error);
}

/* A start notes unsynced what it finds: the hole may be at the beginning of a new log. */
static void test_a_hole_at_the_start_of_a_log_is_cut(void **state)
{
    struct fixture *f = *state;

    fill_block_by(f, pawl__rocks_write_unsynced);
    for (int i = 0; i < MORE; i++) {
        put_unsynced(f);
    }
    close_store(f);
    overwrite(f, 0, BLOCK, 0);
    assert_ok(open_store(f), &f->error);
    expect_keys(f, 0);
}

/* The first page of a write is there, the rest is not. */
static void test_an_unsynced_write_without_its_end_is_cut(void **state)
{
    struct fixture *f = *state;

    fill_block(f);
    uint32_t kept = f->keys;
    size_t at = find_log(f);
    put_unsynced(f);
    size_t until = find_log(f);
    put_unsynced(f);
    close_store(f);
    overwrite(f, at + HEADER + 12, until - at - HEADER - 12, 0);
    assert_ok(open_store(f), &f->error);
    expect_keys(f, kept);
}

static void test_a_hole_before_something_that_was_synced_is_damage(void **state)
{
    struct fixture *f = *state;

    fill_block(f);
    size_t at = last_fragment(f);
    put_unsynced(f); /* it tells of the one before */
    close_store(f);
    overwrite(f, at, BLOCK - at, 0);
    assert_status(open_store(f), PAWL_CORRUPT, &f->error);
    assert_status(open_store(f), PAWL_CORRUPT, &f->error);
}

static void test_a_changed_byte_in_the_last_record_is_damage(void **state)
{
    struct fixture *f = *state;

    fill_block(f);
    size_t at = last_fragment(f);
    close_store(f);
    overwrite(f, at + HEADER + 3, 1, 0xFF);
    assert_status(open_store(f), PAWL_CORRUPT, &f->error);
    assert_status(open_store(f), PAWL_CORRUPT, &f->error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_last_write_without_its_beginning_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_the_same_with_whole_records_behind_it_is_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_unsynced_writes_behind_a_hole_are_cut_with_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_hole_at_the_start_of_a_log_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_an_unsynced_write_without_its_end_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_hole_before_something_that_was_synced_is_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_changed_byte_in_the_last_record_is_damage, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
