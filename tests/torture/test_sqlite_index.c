/* The index of SQLite's log is mapped memory. A disk that cannot deliver a page of it must end in a
 * status, not in SIGBUS. Each test runs in a process of its own, which says by its exit code how its
 * calls ended. */
#include "lib/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "lib/lossfs_client.h"
#include "lib/sqlite_probe.h"

enum {
    REGION_BYTES = 32 * 1024, /* SQLite maps so many at once */
    PAGE_BYTES = 4096,
    EXIT_RIG = 99, /* the disk could not be brought into the state that is tested */
};

struct fixture {
    struct probe *probe;
    char live[80];
    struct lossfs_client fs;
    pawl_error error;
};

/* --- SQLite's own VFS; tells where the index is, and cuts the power when it has been mapped --- */

static struct {
    sqlite3_vfs *real;
    const sqlite3_io_methods *real_methods;
    sqlite3_io_methods methods;
    struct lossfs_client *cut; /* at the next map; NULL: not at all */
    void *region;
} disk;

static bool cut_power(struct lossfs_client *fs)
{
    pawl_error error = PAWL_ERROR_INIT;

    return lossfs_tell(fs, &error, "cut drop 1") == PAWL_OK;
}

static int map_and_cut(
    sqlite3_file *file, int number, int bytes, int extend, void volatile **ret_region)
{
    int rc = disk.real_methods->xShmMap(file, number, bytes, extend, ret_region);

    disk.region = (void *)(uintptr_t)*ret_region;
    if (disk.region != NULL && disk.cut != NULL && !cut_power(disk.cut)) {
        _exit(EXIT_RIG);
    }
    return rc;
}

static int open_file(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    int rc = disk.real->xOpen(disk.real, name, file, flags, ret_flags);

    (void)vfs;
    if (rc == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB)) {
        disk.real_methods = file->pMethods;
        disk.methods = *file->pMethods;
        disk.methods.xShmMap = map_and_cut;
        file->pMethods = &disk.methods;
    }
    return rc;
}

static void register_disk(void)
{
    static sqlite3_vfs vfs;

    disk.real = sqlite3_vfs_find(NULL);
    vfs = *disk.real;
    vfs.zName = "cutting";
    vfs.xOpen = open_file;
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) {
        _exit(EXIT_RIG);
    }
}

/* --- processes --- */

static pawl_status open_while_the_power_goes(struct fixture *f)
{
    struct pawl__sqlite *db = NULL;

    disk.cut = &f->fs;
    return pawl__sqlite_open(f->probe->path, &f->probe->options, &db, &f->error);
}

/* As memory pressure does it: the pages are written back, no longer mapped, and dropped. A page that is
 * locked in memory withstands it. */
static bool evict_index(const struct fixture *f)
{
    char path[128];

    snprintf(path, sizeof(path), "%s-shm", f->probe->path);
    int fd = open(path, O_RDWR | O_CLOEXEC); /* left open: closing drops SQLite's locks */
    if (fd < 0 || msync(disk.region, REGION_BYTES, MS_SYNC) != 0) {
        return false;
    }
    madvise(disk.region, REGION_BYTES, MADV_DONTNEED);
    return posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
}

static struct pawl__sqlite *open_and_put(struct fixture *f)
{
    struct pawl__sqlite *db = NULL;

    if (pawl__sqlite_open(f->probe->path, &f->probe->options, &db, &f->error) != PAWL_OK
        || probe_put_committed(db, "before", &f->error) != PAWL_OK) {
        _exit(EXIT_RIG);
    }
    return db;
}

static pawl_status read_after_memory_was_short(struct fixture *f)
{
    struct pawl__sqlite *db = open_and_put(f);
    int64_t rows = 0;

    if (!evict_index(f) || !cut_power(&f->fs)) {
        _exit(EXIT_RIG);
    }
    return probe_rows(db, &rows, &f->error);
}

/* A map of nothing in the place of the index, but for its first page, is what a file system leaves that
 * has shut down: every touch is a SIGBUS. */
static pawl_status write_on_a_file_system_that_shut_down(struct fixture *f)
{
    struct pawl__sqlite *db = open_and_put(f);
    int nothing = memfd_create("nothing", MFD_CLOEXEC);
    char *pages = disk.region;
    void *mapped = nothing < 0 ? MAP_FAILED
                               : mmap(&pages[PAGE_BYTES],
                                      REGION_BYTES - PAGE_BYTES,
                                      PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_FIXED,
                                      nothing,
                                      0);

    if (mapped == MAP_FAILED) {
        _exit(EXIT_RIG);
    }
    return probe_put_committed(db, "after", &f->error);
}

static void assert_process_says(struct fixture *f,
                                pawl_status (*run)(struct fixture *f),
                                pawl_status expected)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGBUS, SIG_DFL); /* cmocka's own would run the other tests here */
        register_disk();
        _exit((int)run(f));
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, 0);
    assert_int_equal(WEXITSTATUS(status), expected);
}

/* --- tests --- */

static int set_up(void **state)
{
    static struct fixture fixture;
    void *probe = NULL;

    if (probe_setup(&probe) != 0) {
        return -1;
    }
    fixture =
        (struct fixture){ .probe = probe, .fs = LOSSFS_CLIENT_INIT, .error = PAWL_ERROR_INIT };
    snprintf(fixture.live, sizeof(fixture.live), "%s/live", fixture.probe->dir);
    *state = &fixture;
    return mkdir(fixture.live, 0700);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    void *probe = f->probe;

    lossfs_unmount(&f->fs);
    return probe_teardown(&probe);
}

static void mount_or_skip(struct fixture *f)
{
    pawl_status status =
        lossfs_mount(&f->fs, &(struct lossfs_options){ .live = f->live }, &f->error);

    if (status == PAWL_UNAVAILABLE) {
        print_message("%s\n", f->error.message);
        skip();
    }
    assert_ok(status, &f->error);
    int len = snprintf(f->probe->path, sizeof(f->probe->path), "%.60s/probe.sqlite", f->fs.path);
    assert_true(len < (int)sizeof(f->probe->path));
}

static void test_an_index_that_cannot_be_read_when_it_is_mapped_is_an_error(void **state)
{
    mount_or_skip(*state);
    assert_process_says(*state, open_while_the_power_goes, PAWL_IO);
}

static void test_an_index_in_use_is_not_evicted(void **state)
{
    mount_or_skip(*state);
    assert_process_says(*state, read_after_memory_was_short, PAWL_OK);
}

static void test_an_index_that_is_lost_later_is_an_error_at_the_next_lock(void **state)
{
    mount_or_skip(*state);
    assert_process_says(*state, write_on_a_file_system_that_shut_down, PAWL_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_an_index_that_cannot_be_read_when_it_is_mapped_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_index_in_use_is_not_evicted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_an_index_that_is_lost_later_is_an_error_at_the_next_lock, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
