/* lossfs, mounted: what ordinary system calls meet, and what is left after a cut. */
#include "lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/os/fs.h"
#include "lib/lossfs_client.h"
#include "lib/tempdir.h"

struct fixture {
    char dir[TEMPDIR_SIZE];
    char live[TEMPDIR_SIZE + 8];
    char saved[TEMPDIR_SIZE + 8];
    struct lossfs_client fs;
    pawl_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->fs = (struct lossfs_client)LOSSFS_CLIENT_INIT;
    assert_ok(tempdir_make(f->dir, "test-lossfs", &f->error), &f->error);
    snprintf(f->live, sizeof(f->live), "%s/live", f->dir);
    snprintf(f->saved, sizeof(f->saved), "%s/saved", f->dir);
    assert_int_equal(mkdir(f->live, 0700), 0);
    assert_int_equal(mkdir(f->saved, 0700), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    lossfs_unmount(&f->fs);
    tempdir_remove(f->dir);
    free(f);
    return 0;
}

static void mount_or_skip(struct fixture *f, bool strict)
{
    struct lossfs_options options = { .live = f->live, .strict = strict };
    pawl_status status = lossfs_mount(&f->fs, &options, &f->error);

    if (status == PAWL_UNAVAILABLE) {
        print_message("%s\n", f->error.message);
        skip();
    }
    assert_ok(status, &f->error);
}

#define assert_told(f, ...) assert_ok(lossfs_tell(&(f)->fs, &(f)->error, __VA_ARGS__), &(f)->error)

/* A path in a buffer of the caller's statement; two at most live at once. */
static const char *below(const char *dir, const char *name)
{
    static char paths[2][160];
    static int turn;

    turn = 1 - turn;
    snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", dir, name);
    return paths[turn];
}

static int open_file(struct fixture *f, const char *name, int flags)
{
    int fd = open(below(f->fs.path, name), flags | O_CREAT | O_RDWR | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    return fd;
}

static void append(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void sync_directory(struct fixture *f)
{
    assert_ok(pawl__fs_sync_dir(f->fs.path, &f->error), &f->error);
}

static void cut_and_save(struct fixture *f, const char *mode)
{
    assert_told(f, "cut %s 7", mode);
    assert_told(f, "save %s", f->saved);
}

/* NULL for "is not there". */
static void assert_saved(struct fixture *f, const char *name, const char *expected)
{
    char text[256];
    size_t len = 0;
    pawl_status status =
        pawl__fs_read_small(below(f->saved, name), text, sizeof(text), &len, &f->error);

    if (expected == NULL) {
        assert_status(status, PAWL_NOT_FOUND, &f->error);
    } else {
        assert_ok(status, &f->error);
        assert_string_equal(text, expected);
    }
}

static void test_a_synced_write_survives_and_an_unsynced_one_does_not(void **state)
{
    struct fixture *f = *state;
    uint64_t lost = 0;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    append(fd, "synced");
    assert_int_equal(fsync(fd), 0);
    append(fd, " unsynced");
    cut_and_save(f, "drop");
    close(fd);
    assert_saved(f, "a", "synced");
    assert_ok(lossfs_counter(&f->fs, "lost_writes", &lost, &f->error), &f->error);
    assert_int_equal(lost, 1);
}

static void test_fdatasync_saves_the_new_length(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    append(fd, "0123456789");
    assert_int_equal(ftruncate(fd, 4), 0);
    assert_int_equal(fdatasync(fd), 0);
    assert_int_equal(posix_fallocate(fd, 0, 8), 0);
    cut_and_save(f, "drop");
    close(fd);
    assert_saved(f, "a", "0123");
}

static void test_o_dsync_saves_each_write(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", O_DSYNC);
    sync_directory(f);
    append(fd, "one ");
    append(fd, "two");
    cut_and_save(f, "drop");
    close(fd);
    assert_saved(f, "a", "one two");
}

static void test_keep_is_what_a_killed_process_leaves(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, true);
    int fd = open_file(f, "a", 0);
    append(fd, "in the page cache");
    close(fd);
    cut_and_save(f, "keep");
    assert_saved(f, "a", "in the page cache");
}

static void test_what_was_there_before_is_durable(void **state)
{
    struct fixture *f = *state;
    pawl_view text = pawl_view_of("before");

    assert_ok(pawl__fs_replace(below(f->live, "a"), text, &f->error), &f->error);
    assert_int_equal(mkdir(below(f->live, "dir"), 0700), 0);
    assert_ok(pawl__fs_replace(below(f->live, "dir/b"), text, &f->error), &f->error);
    assert_int_equal(symlink("a", below(f->live, "link")), 0);
    mount_or_skip(f, true);
    cut_and_save(f, "drop");
    assert_saved(f, "a", "before");
    assert_saved(f, "dir/b", "before");
    assert_saved(f, "link", "before");
}

static void test_strict_loses_a_rename_without_a_sync_of_the_directory(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, true);
    int fd = open_file(f, "new", 0);
    append(fd, "x");
    assert_int_equal(fsync(fd), 0);
    sync_directory(f);
    assert_int_equal(rename(below(f->fs.path, "new"), below(f->fs.path, "final")), 0);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    cut_and_save(f, "drop");
    assert_saved(f, "new", "x");
    assert_saved(f, "final", NULL);
}

static void test_journal_keeps_that_rename(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    int fd = open_file(f, "new", 0);
    append(fd, "x");
    assert_int_equal(rename(below(f->fs.path, "new"), below(f->fs.path, "final")), 0);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    cut_and_save(f, "drop");
    assert_saved(f, "new", NULL);
    assert_saved(f, "final", "x");
}

static void test_our_own_replace_survives_in_strict_mode(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, true);
    const char *path = below(f->fs.path, "state");
    assert_ok(pawl__fs_replace(path, pawl_view_of("one"), &f->error), &f->error);
    assert_ok(pawl__fs_replace(path, pawl_view_of("two"), &f->error), &f->error);
    cut_and_save(f, "drop");
    assert_saved(f, "state", "two");
}

static void test_a_torn_cut_splits_a_write(void **state)
{
    struct fixture *f = *state;
    char page[8192];
    struct stat info;
    int split = 0;

    memset(page, 'p', sizeof(page));
    mount_or_skip(f, false);
    for (int i = 0; i < 16; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        int fd = open_file(f, name, 0);
        assert_int_equal(fsync(fd), 0);
        assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
        close(fd);
    }
    cut_and_save(f, "torn");
    for (int i = 0; i < 16; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        assert_int_equal(stat(below(f->saved, name), &info), 0);
        assert_int_equal(info.st_size % 512, 0);
        split += info.st_size > 0 && info.st_size < (off_t)sizeof(page);
    }
    assert_true(split > 0);
}

static void test_after_a_cut_nothing_works(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    append(fd, "x");
    assert_told(f, "cut drop 1");
    assert_int_equal(write(fd, "y", 1), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(fsync(fd), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(open(below(f->fs.path, "b"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), -1);
    assert_int_equal(errno, EIO);
    close(fd);
}

static void test_the_power_goes_before_the_nth_operation(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    assert_int_equal(fsync(fd), 0);
    assert_told(f, "cut-at 4 drop 1");
    append(fd, "1");
    assert_int_equal(fsync(fd), 0);
    append(fd, "2");
    assert_int_equal(fsync(fd), -1); /* the fourth */
    assert_int_equal(errno, EIO);
    close(fd);
    assert_told(f, "save %s", f->saved);
    assert_saved(f, "a", "1");
}

static void test_a_failed_fsync_loses_although_the_next_one_succeeds(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    append(fd, "1");
    assert_int_equal(fsync(fd), 0);
    append(fd, "2");
    assert_told(f, "fail-fsync 1");
    assert_int_equal(fsync(fd), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(fsync(fd), 0);
    cut_and_save(f, "drop");
    close(fd);
    assert_saved(f, "a", "1");
}

static void test_a_write_fails_when_told(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    assert_told(f, "fail-write 2");
    append(fd, "1");
    assert_int_equal(write(fd, "2", 1), -1);
    assert_int_equal(errno, EIO);
    append(fd, "3");
    close(fd);
}

static void test_a_lying_fsync_loses(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    assert_int_equal(fsync(fd), 0);
    assert_told(f, "lying-fsync 1");
    append(fd, "never there");
    assert_int_equal(fsync(fd), 0);
    cut_and_save(f, "drop");
    close(fd);
    assert_saved(f, "a", "");
}

static void test_a_quota_ends_in_enospc_and_shows_in_statfs(void **state)
{
    struct fixture *f = *state;
    struct statvfs info;
    char block[4096] = { 0 };

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    assert_told(f, "quota 8192");
    assert_int_equal(statvfs(f->fs.path, &info), 0);
    assert_int_equal(info.f_bavail * info.f_frsize, 8192);
    assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
    assert_int_equal(write(fd, block, 1), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(pwrite(fd, block, 1, 0), 1); /* no growth, no problem */
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(write(fd, block, 1), -1); /* at its old offset: a hole counts */
    assert_int_equal(pwrite(fd, block, 1, 0), 1);
    assert_told(f, "quota 0");
    assert_int_equal(write(fd, block, 1), 1);
    close(fd);
}

static void test_read_only_refuses_changes_and_still_reads(void **state)
{
    struct fixture *f = *state;
    char c = 0;

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    append(fd, "x");
    assert_told(f, "read-only 1");
    assert_int_equal(write(fd, "y", 1), -1);
    assert_int_equal(errno, EROFS);
    assert_int_equal(unlink(below(f->fs.path, "a")), -1);
    assert_int_equal(errno, EROFS);
    assert_int_equal(pread(fd, &c, 1, 0), 1);
    assert_told(f, "read-only 0");
    append(fd, "y");
    close(fd);
}

static void test_a_shared_mapping_is_seen_by_another_opener(void **state)
{
    struct fixture *f = *state;
    char c = 0;

    mount_or_skip(f, false);
    int fd = open_file(f, "shm", 0);
    int other = open_file(f, "shm", 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    char *one = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const char *two = mmap(NULL, 4096, PROT_READ, MAP_SHARED, other, 0);
    assert_ptr_not_equal(one, MAP_FAILED);
    assert_ptr_not_equal(two, MAP_FAILED);
    one[17] = 'm';
    assert_int_equal(two[17], 'm');
    assert_int_equal(pread(other, &c, 1, 17), 1);
    assert_int_equal(c, 'm');
    assert_int_equal(msync(one, 4096, MS_SYNC), 0); /* an fsync, for a mapping */
    one[18] = 'u';
    cut_and_save(f, "drop");
    munmap(one, 4096);
    close(fd);
    close(other);
    int saved = open(below(f->saved, "shm"), O_RDONLY | O_CLOEXEC);
    char text[2];
    assert_int_equal(pread(saved, text, 2, 17), 2);
    assert_memory_equal(text, "m\0", 2);
    close(saved);
}

/* A file system that has lost its disk cannot read it again: the next touch would be a SIGBUS. */
static void test_a_mapped_page_stays_in_memory(void **state)
{
    struct fixture *f = *state;
    unsigned char present = 0;
    struct stat info;

    mount_or_skip(f, false);
    int fd = open_file(f, "shm", 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    page[0] = 'm';
    int other = open_file(f, "shm", 0);
    assert_int_equal(pwrite(other, "n", 1, 1), 1); /* a new time, ... */
    assert_int_equal(msync(page, 4096, MS_SYNC), 0);
    assert_int_equal(fstat(fd, &info), 0); /* ... of which the kernel learns here */
    close(other);
    assert_int_equal(mincore(page, 4096, &present), 0);
    assert_int_equal(present & 1, 1);
    munmap(page, 4096);
    close(fd);
}

static void test_an_open_file_without_a_name_still_works(void **state)
{
    struct fixture *f = *state;
    struct stat info;
    char c = 0;

    mount_or_skip(f, false);
    int fd = open_file(f, "gone", 0);
    assert_int_equal(unlink(below(f->fs.path, "gone")), 0);
    append(fd, "x");
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(ftruncate(fd, 10), 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_size, 10);
    assert_int_equal(pread(fd, &c, 1, 0), 1);
    assert_int_equal(c, 'x');
    int again = open_file(f, "gone", 0); /* another file, whatever inode it got */
    assert_int_equal(fsync(again), 0);
    close(fd);
    close(again);
    cut_and_save(f, "drop");
    assert_saved(f, "gone", "");
}

static void test_sync_makes_everything_durable(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, true);
    assert_int_equal(mkdir(below(f->fs.path, "dir"), 0700), 0);
    int fd = open_file(f, "dir/a", 0);
    append(fd, "kept");
    assert_told(f, "sync");
    append(fd, " lost");
    close(fd);
    cut_and_save(f, "drop");
    assert_saved(f, "dir/a", "kept");
}

static void test_a_wrong_command_says_so(void **state)
{
    struct fixture *f = *state;

    mount_or_skip(f, false);
    assert_status(lossfs_tell(&f->fs, &f->error, "explode"), PAWL_INVALID, &f->error);
    assert_message(&f->error, "no command 'explode'");
    assert_status(lossfs_tell(&f->fs, &f->error, "cut half 1"), PAWL_INVALID, &f->error);
    assert_status(lossfs_tell(&f->fs, &f->error, "quota -1x"), PAWL_INVALID, &f->error);
    assert_status(lossfs_tell(&f->fs, &f->error, "save /no/such"), PAWL_INVALID, &f->error);
}

static void test_it_unmounts_with_files_open(void **state)
{
    struct fixture *f = *state;
    char path[sizeof(f->fs.path)];

    mount_or_skip(f, false);
    int fd = open_file(f, "a", 0);
    memcpy(path, f->fs.path, sizeof(path));
    lossfs_unmount(&f->fs);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(errno, ENOENT);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_synced_write_survives_and_an_unsynced_one_does_not),
        TEST(test_fdatasync_saves_the_new_length),
        TEST(test_o_dsync_saves_each_write),
        TEST(test_keep_is_what_a_killed_process_leaves),
        TEST(test_what_was_there_before_is_durable),
        TEST(test_strict_loses_a_rename_without_a_sync_of_the_directory),
        TEST(test_journal_keeps_that_rename),
        TEST(test_our_own_replace_survives_in_strict_mode),
        TEST(test_a_torn_cut_splits_a_write),
        TEST(test_after_a_cut_nothing_works),
        TEST(test_the_power_goes_before_the_nth_operation),
        TEST(test_a_failed_fsync_loses_although_the_next_one_succeeds),
        TEST(test_a_write_fails_when_told),
        TEST(test_a_lying_fsync_loses),
        TEST(test_a_quota_ends_in_enospc_and_shows_in_statfs),
        TEST(test_read_only_refuses_changes_and_still_reads),
        TEST(test_a_shared_mapping_is_seen_by_another_opener),
        TEST(test_a_mapped_page_stays_in_memory),
        TEST(test_an_open_file_without_a_name_still_works),
        TEST(test_sync_makes_everything_durable),
        TEST(test_a_wrong_command_says_so),
        TEST(test_it_unmounts_with_files_open),
    };

    return cmocka_run_group_tests_name("lossfs", tests, NULL, NULL);
}
