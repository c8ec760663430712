/* What the SQLite wrapper does when memory, disk or fsync fail, and what it makes of damaged files.
 */
#include "lib/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/os/failpoint.h"
#include "lib/fault.h"
#include "lib/sqlite_probe.h"

/* --- a file system that counts and refuses fsync: SQLite's own, with xSync in between --- */

static struct {
    int syncs;                      /* calls so far */
    int fail_next;                  /* this many of the next ones fail */
    int fail_next_main;             /* the same, of the database file alone */
    struct pawl__sqlite *interrupt; /* interrupted in the middle of the next one */
} disk;

struct file {
    sqlite3_file base;
    const sqlite3_io_methods *real; /* the methods of the file that stands behind this struct */
    sqlite3_io_methods methods;     /* the same with our xSync */
    bool is_main;                   /* the database, not its log */
};

static sqlite3_vfs *real_vfs;

static struct file *behind(sqlite3_file *file)
{
    return (struct file *)((char *)file + real_vfs->szOsFile);
}

static int file_sync(sqlite3_file *file, int flags)
{
    int *fail =
        behind(file)->is_main && disk.fail_next_main > 0 ? &disk.fail_next_main : &disk.fail_next;

    disk.syncs++;
    if (disk.interrupt != NULL) {
        pawl__sqlite_interrupt(disk.interrupt);
        disk.interrupt = NULL;
    }
    if (*fail > 0) {
        (*fail)--;
        return SQLITE_IOERR_FSYNC;
    }
    return behind(file)->real->xSync(file, flags);
}

static int vfs_open(
    sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
    int rc = real_vfs->xOpen(real_vfs, name, file, flags, ret_flags);

    (void)vfs;
    if (rc == SQLITE_OK && file->pMethods != NULL) {
        behind(file)->real = file->pMethods;
        behind(file)->methods = *file->pMethods;
        behind(file)->methods.xSync = file_sync;
        behind(file)->is_main = (flags & SQLITE_OPEN_MAIN_DB) != 0;
        file->pMethods = &behind(file)->methods;
    }
    return rc;
}

static void register_disk(void)
{
    static sqlite3_vfs vfs;

    real_vfs = sqlite3_vfs_find(NULL);
    vfs = *real_vfs;
    vfs.zName = "counting";
    vfs.szOsFile += (int)sizeof(struct file);
    vfs.xOpen = vfs_open;
    assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

/* --- SQLite's own memory, which --wrap does not reach --- */

static struct {
    sqlite3_mem_methods real;
    long countdown;
    bool fired;
} memory;

static bool memory_fails_now(void)
{
    if (memory.countdown == 0 || --memory.countdown > 0) {
        return false;
    }
    memory.fired = true;
    return true;
}

static void *memory_malloc(int size)
{
    return memory_fails_now() ? NULL : memory.real.xMalloc(size);
}

static void *memory_realloc(void *old, int size)
{
    return memory_fails_now() ? NULL : memory.real.xRealloc(old, size);
}

static void wrap_memory(void) /* before SQLite is used */
{
    sqlite3_mem_methods methods;

    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory.real), SQLITE_OK);
    methods = memory.real;
    methods.xMalloc = memory_malloc;
    methods.xRealloc = memory_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
    assert_int_equal(sqlite3_initialize(), SQLITE_OK);
}

/* --- fsync --- */

static void test_a_commit_is_synced_unless_told_otherwise(void **state)
{
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__sqlite *db = probe_open(probe);

    for (int i = 0; i < 3; i++) { /* each and every one, not just the first */
        char name[16];
        int before = disk.syncs;

        snprintf(name, sizeof(name), "full-%d", i);
        assert_ok(probe_put_committed(db, name, &error), &error);
        assert_int_equal(disk.syncs, before + 1);
    }
    pawl__sqlite_close(db);

    probe->options.sync_normal = true;
    db = probe_open(probe);
    assert_ok(probe_put_committed(db, "settle", &error), &error); /* starts a new log: synced */
    int before = disk.syncs;
    assert_ok(probe_put_committed(db, "normal", &error), &error);
    assert_int_equal(disk.syncs, before);
    pawl__sqlite_close(db);

    probe->options.unsafe_skip_sync = true;
    before = disk.syncs;
    db = probe_open(probe);
    assert_ok(probe_put_committed(db, "unsafe", &error), &error);
    assert_ok(pawl__sqlite_checkpoint(db, PAWL__SQLITE_TRUNCATE, NULL, &error), &error);
    pawl__sqlite_close(db);
    assert_int_equal(disk.syncs, before);
}

static void test_a_failed_fsync_spoils_the_handle(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    pawl_error error = PAWL_ERROR_INIT;
    int64_t rows = 0;

    assert_ok(probe_put_committed(db, "a", &error), &error);
    disk.fail_next = 1;
    assert_status(probe_put_committed(db, "b", &error), PAWL_IO, &error);
    assert_int_equal(error.native, SQLITE_IOERR_FSYNC);
    assert_false(pawl__sqlite_in_transaction(db));
    int before = disk.syncs; /* the disk works again; the handle does not try */
    assert_status(probe_put_committed(db, "c", &error), PAWL_IO, &error);
    assert_message(&error, "close the store and open it again");
    assert_status(probe_rows(db, &rows, &error), PAWL_IO, &error);
    assert_status(pawl__sqlite_checkpoint(db, PAWL__SQLITE_PASSIVE, NULL, &error), PAWL_IO, &error);
    pawl__sqlite_close(db);
    assert_int_equal(disk.syncs, before);

    db = probe_open(probe);
    assert_ok(probe_rows(db, &rows, &error), &error);
    assert_true(rows == 2 || rows == 3); /* "b" is unknown, "a" was acknowledged */
    assert_ok(probe_put_committed(db, "c", &error), &error);
    pawl__sqlite_close(db);
}

static void test_a_failed_fsync_after_the_commit_is_not_swallowed(void **state)
{
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;

    probe->options.wal_pages_max = 1; /* every commit moves the log */
    struct pawl__sqlite *db = probe_open(probe);
    disk.fail_next_main = 1;
    assert_ok(probe_put_committed(db, "a", &error), &error); /* it is in the log */
    assert_int_equal(disk.fail_next_main, 0);
    assert_status(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), PAWL_IO, &error);
    pawl__sqlite_close(db);
    db = probe_open(probe);
    assert_rows(db, 2);
    pawl__sqlite_close(db);
}

/* --- interrupts that arrive while something is synced --- */

static void test_an_interrupt_does_not_cut_a_commit_in_two(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;

    /* Often enough that SQLite looks for interrupts at the end of some COMMIT. */
    for (int i = 0; i < 1200; i++) {
        char name[32];

        snprintf(name, sizeof(name), "row-%d", i);
        assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), &error);
        assert_ok(probe_put(db, name, &error), &error);
        disk.interrupt = db;
        assert_ok(pawl__sqlite_commit(db, &error), &error); /* it was under way */
        assert_null(disk.interrupt);
        assert_status(
            pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &error), PAWL_CANCELLED, &error);
        pawl__sqlite_interrupt_clear(db);
    }
    assert_rows(db, 1201);
    pawl__sqlite_close(db);
}

static void test_an_interrupt_between_two_statements_is_not_lost(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;

    disk.interrupt = db; /* in the sync of the INSERT; SQLite forgets it at the next statement */
    assert_status(pawl__sqlite_exec(db,
                                    "INSERT INTO probe (name) VALUES ('x');"
                                    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                                    " WHERE i < 1000000000000) SELECT count(*) FROM n",
                                    &error),
                  PAWL_CANCELLED,
                  &error);
    pawl__sqlite_interrupt_clear(db);
    assert_rows(db, 2);
    pawl__sqlite_close(db);
}

/* --- failpoints --- */

static void test_failpoints_stand_on_both_sides_of_a_commit(void **state)
{
    struct pawl__sqlite *db = probe_open(*state);
    pawl_error error = PAWL_ERROR_INIT;

    assert_ok(pawl__failpoint_set("sqlite.commit.before=error:NO_SPACE", &error), &error);
    assert_status(probe_put_committed(db, "before", &error), PAWL_NO_SPACE, &error);
    assert_rows(db, 1);
    assert_ok(pawl__failpoint_set("sqlite.commit.after=error", &error), &error);
    assert_status(probe_put_committed(db, "after", &error), PAWL_IO, &error);
    assert_rows(db, 2); /* an error after the fact: the caller cannot know */
    assert_false(pawl__sqlite_in_transaction(db));
    assert_ok(pawl__failpoint_set(NULL, &error), &error);
    assert_ok(probe_put_committed(db, "again", &error), &error);
    pawl__sqlite_close(db);
}

static void test_a_copy_that_fails_late_leaves_nothing(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    static const char *const points[] = { "sqlite.backup.sync.before=error",
                                          "sqlite.backup.rename.before=error" };
    char command[128];
    char copy[128];

    snprintf(copy, sizeof(copy), "%s/copy", probe->dir);
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        pawl_error error = PAWL_ERROR_INIT;

        assert_ok(pawl__failpoint_set(points[i], &error), &error);
        assert_status(pawl__sqlite_backup(db, copy, NULL, &error), PAWL_IO, &error);
    }
    assert_int_equal(pawl__failpoint_set(NULL, NULL), PAWL_OK);
    pawl__sqlite_close(db);
    snprintf(command, sizeof(command), "test $(ls '%s' | wc -l) = 1", probe->dir);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a path of our own making */
}

/* --- memory --- */

/* Everything a store does in its life. */
static pawl_status live(struct probe *probe, int64_t *ret_rows, pawl_error *reterr)
{
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *db = NULL;
    char copy[128];
    pawl_status status = pawl__sqlite_open(probe->path, &probe->options, &db, reterr);

    snprintf(copy, sizeof(copy), "%s/copy", probe->dir);
    if (status == PAWL_OK) {
        status = probe_put_committed(db, "x", reterr);
    }
    if (status == PAWL_OK) {
        status = probe_rows(db, ret_rows, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__sqlite_backup(db, copy, NULL, reterr);
    }
    if (status == PAWL_OK) {
        status = pawl__sqlite_quick_check(db, reterr);
    }
    return status;
}

static void remove_store(struct probe *probe)
{
    static const char *const suffixes[] = { "", "-wal", "-shm" };

    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char name[128];

        snprintf(name, sizeof(name), "%s%s", probe->path, suffixes[i]);
        unlink(name);
    }
}

static void test_running_out_of_our_memory_is_reported(void **state)
{
    struct probe *probe = *state;

    probe->options.unsafe_skip_sync = true;
    FAULT_WALK (walk) {
        pawl_error error = PAWL_ERROR_INIT;
        int64_t rows = 0;
        pawl_status status = live(probe, &rows, &error);

        assert_status(status, fault_fired() ? PAWL_NOMEM : PAWL_OK, &error);
        fault_disarm();
        remove_store(probe);
    }
}

static void test_running_out_of_sqlites_memory_is_reported(void **state)
{
    struct probe *probe = *state;
    long failures = 0;

    probe->options.unsafe_skip_sync = true;
    for (long nth = 1; nth == 1 || memory.fired; nth++) {
        pawl_error error = PAWL_ERROR_INIT;
        int64_t rows = 0;

        memory.countdown = nth;
        memory.fired = false;
        pawl_status status = live(probe, &rows, &error);
        memory.countdown = 0;
        /* Some of its allocations it can do without. */
        if (status != PAWL_OK) {
            assert_status(status, PAWL_NOMEM, &error);
            assert_true(memory.fired);
            failures++;
        } else {
            assert_int_equal(rows, 2);
        }
        assert_true(nth < 100000);

        struct pawl__sqlite *db = probe_open(probe); /* whatever happened, the store opens */
        assert_ok(pawl__sqlite_quick_check(db, &error), &error);
        pawl__sqlite_close(db);
        remove_store(probe);
    }
    assert_true(failures > 100);
}

/* --- damaged files --- */

static void test_a_truncated_store_is_corrupt(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    size_t size = 0;

    pawl__sqlite_close(probe_open(probe));
    char *bytes = file_read(probe->path, &size);
    for (size_t cut = 1; cut < 4096; cut += 500) { /* within the first page: no database at all */
        file_write(probe->path, bytes, cut);
        assert_status(
            pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_CORRUPT, &error);
    }
    for (size_t cut = 2; cut < 20; cut++) {
        file_write(probe->path, bytes, cut);
        assert_status(
            pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_CORRUPT, &error);
    }
    file_write(probe->path, bytes, 4096); /* pages missing that the first one counts */
    assert_status(
        pawl__sqlite_open(probe->path, &probe->options, &db, &error), PAWL_CORRUPT, &error);
    assert_message(&error, probe->path);
    free(bytes);
}

static void test_a_store_cut_to_nothing_keeps_its_log(void **state)
{
    struct probe *probe = *state;
    struct pawl__sqlite *db = probe_open(probe);
    struct pawl__sqlite *second = NULL;
    pawl_error error = PAWL_ERROR_INIT;
    char wal[128];

    snprintf(wal, sizeof(wal), "%s-wal", probe->path);
    assert_ok(probe_put_committed(db, "x", &error), &error);
    assert_int_equal(truncate(probe->path, 0), 0);
    assert_status(
        pawl__sqlite_open(probe->path, &probe->options, &second, &error), PAWL_CORRUPT, &error);
    assert_message(&error, "-wal' is not");
    assert_int_equal(access(wal, F_OK), 0);
    pawl__sqlite_close(db);
}

/* Reads all there is. */
static pawl_status read_everything(struct probe *probe, pawl_error *reterr)
{
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *db = NULL;
    int64_t rows = 0;
    pawl_status status = pawl__sqlite_open(probe->path, &probe->options, &db, reterr);

    if (status == PAWL_OK) {
        status = probe_rows(db, &rows, reterr);
    }
    if (status == PAWL_OK) {
        status = probe_put_committed(db, "x", reterr);
    }
    return status == PAWL_OK ? pawl__sqlite_quick_check(db, reterr) : status;
}

static void test_flipped_bits_are_reported_and_never_crash(void **state)
{
    struct probe *probe = *state;
    size_t size = 0;
    long corrupt = 0;

    probe->options.unsafe_skip_sync = true;
    pawl__sqlite_close(probe_open(probe));
    char *bytes = file_read(probe->path, &size);
    for (size_t at = 0; at < size; at += at < 120 ? 1 : 37) {
        pawl_error error = PAWL_ERROR_INIT;

        bytes[at] = (char)(bytes[at] ^ (1 << (at % 8)));
        file_write(probe->path, bytes, size);
        bytes[at] = (char)(bytes[at] ^ (1 << (at % 8)));
        pawl_status status = read_everything(probe, &error);
        switch (status) {
        case PAWL_OK:          /* free space, or inside a value: nothing in the file can tell */
        case PAWL_INVALID:     /* our mark is gone */
        case PAWL_UNSUPPORTED: /* a migration's number or name changed */
        case PAWL_DENIED:      /* the header says: written by a newer SQLite */
        case PAWL_FAILED:      /* a name in the schema changed */
        case PAWL_CONFLICT:    /* so did a migration's number or the row we add */
            break;
        default:
            assert_status(status, PAWL_CORRUPT, &error);
            corrupt++;
        }
        remove_store(probe);
    }
    assert_true(corrupt > 30);
    free(bytes);
}

/* --- a full disk --- */

static void test_a_full_disk_refuses_and_keeps_what_was_acknowledged(void **state)
{
    struct probe *probe = *state;
    pawl_error error = PAWL_ERROR_INIT;
    char name[32];
    int stored = 0;
    pawl_status status = PAWL_OK;

    if (mount("tmpfs", probe->dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=256k") != 0) {
        skip(); /* needs root */
    }
    struct pawl__sqlite *db = NULL;
    status = pawl__sqlite_open(probe->path, &probe->options, &db, &error);
    for (int i = 0; status == PAWL_OK && i < 100000; i++) {
        snprintf(name, sizeof(name), "row-%d", i);
        status = probe_put_committed(db, name, &error);
        stored += status == PAWL_OK;
    }
    pawl_status at_the_edge = status;
    int64_t rows = -1;
    pawl_status reading = db == NULL ? PAWL_FAILED : probe_rows(db, &rows, &error);
    pawl__sqlite_close(db);
    /* Before any assertion: a failed one would leave the mount behind. */
    int unmounted = umount2(probe->dir, MNT_DETACH);
    assert_int_equal(unmounted, 0);
    assert_int_equal(at_the_edge, PAWL_NO_SPACE);
    assert_true(stored > 10);
    assert_int_equal(reading, PAWL_OK);
    assert_int_equal(rows, stored + 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, probe_setup, probe_teardown)
#define QUICK(name) cmocka_unit_test_setup_teardown(name, probe_setup_in_memory, probe_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_commit_is_synced_unless_told_otherwise),
        CASE(test_a_failed_fsync_spoils_the_handle),
        CASE(test_a_failed_fsync_after_the_commit_is_not_swallowed),
        QUICK(test_an_interrupt_does_not_cut_a_commit_in_two),
        CASE(test_an_interrupt_between_two_statements_is_not_lost),
        CASE(test_failpoints_stand_on_both_sides_of_a_commit),
        CASE(test_a_copy_that_fails_late_leaves_nothing),
        QUICK(test_running_out_of_our_memory_is_reported),
        QUICK(test_running_out_of_sqlites_memory_is_reported),
        CASE(test_a_truncated_store_is_corrupt),
        CASE(test_a_store_cut_to_nothing_keeps_its_log),
        QUICK(test_flipped_bits_are_reported_and_never_crash),
        CASE(test_a_full_disk_refuses_and_keeps_what_was_acknowledged),
    };
    wrap_memory();
    register_disk();
    return cmocka_run_group_tests_name("sqlite_faults", tests, NULL, NULL);
}
