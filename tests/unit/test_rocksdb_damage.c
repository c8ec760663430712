/* RocksDB stores that are damaged, locked, read-only or on a full disk, or whose process was
 * killed. What may abort the process happens in another one. */
#include "lib/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <rocksdb/c.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/os/fs.h"
#include "lib/child.h"
#include "lib/tempdir.h"
#include "store/rocksdb/rocksdb.h"

enum { KEYS = 50, VALUE_BYTES = 2000 };

static const char *const families[] = { "events" };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char path[TEMPDIR_SIZE + 32];
    struct pawl__rocks *db;
    pawl_error error;
};

static struct pawl__rocks_options options = {
    .families = families,
    .family_count = 1,
    .memtable_bytes = 1 << 20,
    .free_space_min = 8 << 20,
};

static pawl_status open_store(const char *path, struct pawl__rocks **ret_db, pawl_error *reterr)
{
    return pawl__rocks_open(path, &options, ret_db, reterr);
}

/* Key `n` with a value that nothing compresses and that `n` determines. */
static pawl_status put(struct pawl__rocks *db, uint32_t n, pawl_error *reterr)
{
    AUTO(pawl__rocks_batch_free_p) struct pawl__rocks_batch *batch = NULL;
    char key[16];
    char value[VALUE_BYTES];
    uint32_t random = n * 2654435761U + 1;

    for (size_t i = 0; i < sizeof(value); i++) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        value[i] = (char)random;
    }
    snprintf(key, sizeof(key), "%08u", n);
    pawl_status status = pawl__rocks_batch_new(db, &batch, reterr);
    if (status == PAWL_OK) {
        pawl__rocks_put(batch, 0, pawl_view_of(key), (pawl_view){ value, sizeof(value) });
        status = pawl__rocks_write(db, batch, reterr);
    }
    return status;
}

static pawl_status count_keys(struct pawl__rocks *db, uint32_t *ret_count, pawl_error *reterr)
{
    AUTO(pawl__rocks_iter_close_p) struct pawl__rocks_iter *iter = NULL;
    const struct pawl__rocks_range all = { .from = { 0 } };
    pawl_status status = pawl__rocks_iter_open(db, NULL, 0, all, &iter, reterr);
    uint32_t count = 0;

    if (status == PAWL_OK) {
        status = pawl__rocks_iter_first(iter, reterr);
    }
    for (; status == PAWL_OK && iter->valid; status = pawl__rocks_iter_next(iter, reterr)) {
        count++;
    }
    *ret_count = count;
    return status;
}

static int setup_empty(void **state)
{
    static struct fixture f;

    f = (struct fixture){ .db = NULL };
    if (tempdir_make(f.dir, "pawl-rocksdb", &f.error) != PAWL_OK) {
        return -1;
    }
    snprintf(f.path, sizeof(f.path), "%s/store", f.dir);
    *state = &f;
    return 0;
}

/* A store with KEYS keys, all of them in its log; closed. */
static int setup(void **state)
{
    if (setup_empty(state) != 0) {
        return -1;
    }
    struct fixture *f = *state;
    assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
    for (uint32_t n = 0; n < KEYS; n++) {
        assert_ok(put(f->db, n, &f->error), &f->error);
    }
    pawl__rocks_close(STEAL(f->db));
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pawl__rocks_close(f->db);
    tempdir_remove(f->dir);
    return 0;
}

/* The largest file whose name begins or ends so; its path and size. */
static off_t find_file(const struct fixture *f, const char *part, char *ret_path, size_t size)
{
    DIR *stream = opendir(f->path);
    off_t best = -1;

    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char path[600];
        struct stat info;

        snprintf(path, sizeof(path), "%s/%s", f->path, entry->d_name);
        if (strstr(entry->d_name, part) != NULL && stat(path, &info) == 0 && info.st_size > best) {
            best = info.st_size;
            snprintf(ret_path, size, "%s", path);
        }
    }
    closedir(stream);
    assert_true(best >= 0);
    return best;
}

static void flip(const char *path, off_t at)
{
    int fd = open(path, O_RDWR);
    char c;

    assert_int_equal(pread(fd, &c, 1, at), 1);
    c ^= 16;
    assert_int_equal(pwrite(fd, &c, 1, at), 1);
    close(fd);
}

static void assert_corrupt_at_open(struct fixture *f)
{
    assert_status(open_store(f->path, &f->db, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, f->path);
    assert_null(f->db);
}

/* The engine's default would open it, without the records from there on. */
static void test_a_flipped_bit_in_the_log_is_refused(void **state)
{
    struct fixture *f = *state;
    char path[600];
    off_t size = find_file(f, ".log", path, sizeof(path));

    flip(path, size / 2);
    assert_corrupt_at_open(f);
    flip(path, size / 2); /* it changed nothing: put right again, all is there */
    uint32_t count = 0;
    assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
    assert_ok(count_keys(f->db, &count, &f->error), &f->error);
    assert_int_equal(count, KEYS);
}

static void test_a_torn_end_of_the_log_loses_only_the_torn_batch(void **state)
{
    struct fixture *f = *state;
    char path[600];
    uint32_t count = 0;
    off_t size = find_file(f, ".log", path, sizeof(path));

    assert_int_equal(truncate(path, size - 5), 0);
    assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
    assert_ok(count_keys(f->db, &count, &f->error), &f->error);
    assert_int_equal(count, KEYS - 1);
}

static void flush_all(struct fixture *f)
{
    assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
    assert_ok(pawl__rocks_flush(f->db, &f->error), &f->error);
    pawl__rocks_close(STEAL(f->db));
}

static void test_damage_in_a_table_is_an_error_and_not_an_end(void **state)
{
    struct fixture *f = *state;
    char path[600];
    uint32_t count = 0;
    struct pawl__rocks_value value = { 0 };

    flush_all(f);
    off_t size = find_file(f, ".sst", path, sizeof(path));
    flip(path, size / 2);
    assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
    assert_status(count_keys(f->db, &count, &f->error), PAWL_CORRUPT, &f->error);
    assert_true(count < KEYS); /* it got somewhere, and then said why it stopped */
    /* One by one and together: the key in the damaged block is not "not found". */
    pawl_status worst = PAWL_OK;
    for (uint32_t n = 0; n < KEYS; n++) {
        char key[16];

        snprintf(key, sizeof(key), "%08u", n);
        pawl_status status = pawl__rocks_get(f->db, NULL, 0, pawl_view_of(key), &value, &f->error);
        assert_int_not_equal(status, PAWL_NOT_FOUND);
        worst = status == PAWL_OK ? worst : status;
        pawl__rocks_value_done(&value);
    }
    assert_int_equal(worst, PAWL_CORRUPT);
}

static void test_damage_fails_a_read_of_many_as_a_whole(void **state)
{
    struct fixture *f = *state;
    char path[600];
    char names[KEYS][16];
    pawl_view keys[KEYS];
    struct pawl__rocks_value values[KEYS];

    flush_all(f);
    off_t size = find_file(f, ".sst", path, sizeof(path));
    flip(path, size / 2);
    assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
    for (uint32_t n = 0; n < KEYS; n++) {
        snprintf(names[n], sizeof(names[n]), "%08u", n);
        keys[n] = pawl_view_of(names[n]);
    }
    assert_status(pawl__rocks_get_many(f->db, NULL, 0, keys, KEYS, values, &f->error),
                  PAWL_CORRUPT,
                  &f->error);
    for (uint32_t n = 0; n < KEYS; n++) {
        assert_null(values[n].pin);
    }
}

static void test_a_table_that_is_gone_is_corrupt(void **state)
{
    struct fixture *f = *state;
    char path[600];

    flush_all(f);
    find_file(f, ".sst", path, sizeof(path));
    assert_int_equal(unlink(path), 0);
    assert_corrupt_at_open(f);
}

/* The engine would take it for a new store and remove what it does not know. */
static void test_data_without_current_is_corrupt_and_kept(void **state)
{
    struct fixture *f = *state;
    char path[600];
    char table[600];

    flush_all(f);
    find_file(f, "CURRENT", path, sizeof(path));
    assert_int_equal(unlink(path), 0);
    assert_corrupt_at_open(f);
    assert_message(&f->error, "no file 'CURRENT'");
    find_file(f, ".sst", table, sizeof(table));
}

static void test_garbage_in_the_stores_own_records_is_corrupt(void **state)
{
    struct fixture *f = *state;
    static const char *const records[] = { "MANIFEST", "CURRENT" };

    for (size_t i = 0; i < COUNT_OF(records); i++) {
        char path[600];
        off_t size = find_file(f, records[i], path, sizeof(path));
        FILE *file = fopen(path, "wb");

        for (off_t at = 0; at < size; at++) {
            fputc(0x5A, file);
        }
        assert_int_equal(fclose(file), 0);
        assert_corrupt_at_open(f);
    }
}

static void test_a_second_handle_in_this_process_is_busy(void **state)
{
    struct fixture *f = *state;
    struct pawl__rocks *second = NULL;

    assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
    assert_status(open_store(f->path, &second, &f->error), PAWL_BUSY, &f->error);
}

static size_t count_files(const char *path)
{
    DIR *stream = opendir(path);
    size_t count = 0;

    assert_non_null(stream);
    while (readdir(stream) != NULL) {
        count++;
    }
    closedir(stream);
    return count;
}

/* The copy has one more table, as if somebody had opened it and written. */
static void replace_by_copy(const struct fixture *f, const char *moved)
{
    char command[3 * TEMPDIR_SIZE + 128];

    assert_int_equal(rename(f->path, moved), 0);
    snprintf(command,
             sizeof(command),
             "cp -r '%s' '%s' && touch '%s/900000.sst'",
             moved,
             f->path,
             f->path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a path of our own making */
}

static void test_a_directory_that_was_replaced_is_left_alone(void **state)
{
    struct fixture *f = *state;
    char moved[TEMPDIR_SIZE + 32];
    uint32_t count = 0;

    assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
    assert_ok(put(f->db, KEYS, &f->error), &f->error);
    snprintf(moved, sizeof(moved), "%s/moved", f->dir);
    replace_by_copy(f, moved);
    size_t files = count_files(f->path);

    assert_status(put(f->db, KEYS + 1, &f->error), PAWL_IO, &f->error);
    assert_non_null(strstr(f->error.message, "was moved, replaced or deleted while it was open"));
    assert_status(put(f->db, KEYS + 1, &f->error), PAWL_IO, &f->error);
    assert_status(pawl__rocks_flush(f->db, &f->error), PAWL_IO, &f->error);
    assert_ok(pawl__rocks_flush_last(f->db, INT64_MAX, &f->error), &f->error);
    pawl__rocks_close(STEAL(f->db));
    assert_int_equal(count_files(f->path), files);

    assert_ok(open_store(moved, &f->db, &f->error), &f->error);
    assert_ok(count_keys(f->db, &count, &f->error), &f->error);
    assert_int_equal(count, KEYS + 1);
}

/* Nobody writes: the flush and the close notice it themselves. */
static void test_closing_writes_and_removes_nothing_in_a_directory_that_was_replaced(void **state)
{
    struct fixture *f = *state;
    char moved[TEMPDIR_SIZE + 32];

    for (int flush = 0; flush < 2; flush++) {
        assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
        assert_ok(put(f->db, KEYS, &f->error), &f->error);
        snprintf(moved, sizeof(moved), "%s/moved-%d", f->dir, flush);
        replace_by_copy(f, moved);
        size_t files = count_files(f->path);
        if (flush != 0) {
            assert_ok(pawl__rocks_flush_last(f->db, INT64_MAX, &f->error), &f->error);
        }
        pawl__rocks_close(STEAL(f->db));
        assert_int_equal(count_files(f->path), files);
        tempdir_remove(f->path);
        assert_int_equal(rename(moved, f->path), 0);
    }
}

static int child_hold(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__rocks *db = NULL;

    child_say("%s", pawl_status_name(open_store(path, &db, &error)));
    pause(); /* until it is killed */
    return 0;
}

/* Somebody who does not know our lock. */
static int child_hold_raw(const char *path)
{
    rocksdb_options_t *native = rocksdb_options_create();
    const char *const names[] = { "default", "events" };
    const rocksdb_options_t *const each[] = { native, native };
    rocksdb_column_family_handle_t *handles[2];
    char *text = NULL;

    rocksdb_open_column_families(native, path, 2, names, each, handles, &text);
    child_say("%s", text == NULL ? "OK" : text);
    pause();
    return 0;
}

static void test_another_process_is_busy(void **state)
{
    struct fixture *f = *state;
    static const char *const holders[] = { "hold", "hold-raw" };

    for (size_t i = 0; i < COUNT_OF(holders); i++) {
        struct child child;
        char line[256];
        char pid[32];

        child_start(&child, (const char *const[]){ holders[i], f->path, NULL });
        assert_true(child_line(&child, line, sizeof(line)));
        assert_string_equal(line, "OK");
        assert_status(open_store(f->path, &f->db, &f->error), PAWL_BUSY, &f->error);
        assert_true(f->error.retryable);
        snprintf(pid, sizeof(pid), "%d", (int)child.pid);
        assert_message(&f->error, i == 0 ? pid : "LOCK"); /* the engine's does not tell who */
        assert_true(WIFSIGNALED(child_end(&child, SIGKILL)));
        assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
        pawl__rocks_close(STEAL(f->db));
    }
}

static int child_write(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__rocks *db = NULL;
    pawl_status status = open_store(path, &db, &error);

    for (uint32_t n = KEYS; status == PAWL_OK; n++) {
        status = put(db, n, &error);
        if (status == PAWL_OK) {
            child_say("%u", n);
        }
    }
    child_say("failed: %s", error.message);
    return 1;
}

static void test_a_killed_writer_has_lost_nothing_it_acknowledged(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < 3; round++) {
        struct child child;
        char line[600];
        unsigned long acknowledged = 0;
        uint32_t count = 0;

        child_start(&child, (const char *const[]){ "write", f->path, NULL });
        for (int i = 0; i < 300 + round * 100; i++) { /* over the size of a memtable */
            assert_true(child_line(&child, line, sizeof(line)));
        }
        kill(child.pid, SIGKILL);
        do {
            acknowledged = strtoul(line, NULL, 10);
        } while (child_line(&child, line, sizeof(line)));
        assert_true(WIFSIGNALED(child_end(&child, 0)));
        assert_ok(open_store(f->path, &f->db, &f->error), &f->error);
        assert_ok(count_keys(f->db, &count, &f->error), &f->error);
        assert_true(count > acknowledged);
        pawl__rocks_close(STEAL(f->db));
    }
}

/* A write that fails inside the engine: files may not grow beyond what they are. */
static int child_fail_write(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__rocks *db = NULL;
    struct rlimit limit = { .rlim_cur = 300000, .rlim_max = RLIM_INFINITY };
    uint32_t acknowledged = KEYS;
    uint32_t count = 0;

    signal(SIGXFSZ, SIG_IGN);
    pawl_status status = open_store(path, &db, &error);
    setrlimit(RLIMIT_FSIZE, &limit);
    while (status == PAWL_OK && acknowledged < 10000) {
        status = put(db, acknowledged, &error);
        acknowledged += status == PAWL_OK;
    }
    child_say("%s: %s", pawl_status_name(status), error.message);
    limit.rlim_cur = RLIM_INFINITY; /* the cause is gone, the doubt is not */
    setrlimit(RLIMIT_FSIZE, &limit);
    status = put(db, acknowledged, &error);
    child_say("%s: %s", pawl_status_name(status), error.message);
    status = pawl__rocks_flush(db, &error);
    child_say("%s", pawl_status_name(status));
    status = count_keys(db, &count, &error);
    child_say("%s, %s", pawl_status_name(status), count == acknowledged ? "all there" : "not all");
    pawl__rocks_close(STEAL(db));
    status = open_store(path, &db, &error);
    if (status == PAWL_OK) {
        status = count_keys(db, &count, &error);
    }
    if (status == PAWL_OK) {
        status = put(db, 20000, &error);
    }
    child_say("%s, %s", pawl_status_name(status), count >= acknowledged ? "all there" : "not all");
    pawl__rocks_close(db);
    return 0;
}

static void assert_says(struct child *child, const char *expected)
{
    char line[700];

    if (!child_line(child, line, sizeof(line)) || strncmp(line, expected, strlen(expected)) != 0) {
        fail_msg("'%s' instead of '%s...'", line, expected);
    }
}

static void test_after_a_failed_write_only_reads_until_it_is_opened_again(void **state)
{
    struct fixture *f = *state;
    struct child child;
    char line[700];

    child_start(&child, (const char *const[]){ "fail-write", f->path, NULL });
    assert_says(&child, "IO: IO error: ");
    assert_true(child_line(&child, line, sizeof(line)));
    assert_non_null(strstr(line, "takes no more writes until it is opened again: IO error: "));
    assert_says(&child, "IO");
    assert_says(&child, "OK, all there");
    assert_says(&child, "OK, all there");
    assert_int_equal(child_end(&child, 0), 0);
}

static bool make_ballast(const char *dir, int number, char ret_path[TEMPDIR_SIZE + 64])
{
    snprintf(ret_path, TEMPDIR_SIZE + 64, "%s/ballast%d", dir, number);
    int fd = open(ret_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool made = fd >= 0 && posix_fallocate(fd, 0, 12 << 20) == 0;
    close(fd);
    return made;
}

/* Writes until the guard has refused 2,000 times in a row. Flushes in the background make a little
 * room now and then; asking again and again must not wear the reserve down. */
static pawl_status fill(struct pawl__rocks *db, uint32_t *acknowledged, pawl_error *reterr)
{
    pawl_status status = PAWL_OK;

    for (int refused = 0; refused < 2000;) {
        status = put(db, *acknowledged, reterr);
        *acknowledged += status == PAWL_OK;
        refused = status == PAWL_NO_SPACE ? refused + 1 : 0;
        if (status != PAWL_OK && status != PAWL_NO_SPACE) {
            break;
        }
    }
    return status;
}

/* Fills a small disk that also holds two files of strangers. */
static int child_fill(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__rocks *db = NULL;
    char ballast[2][TEMPDIR_SIZE + 64];
    char store[TEMPDIR_SIZE + 64];
    uint32_t acknowledged = 0;
    uint32_t count = 0;

    /* What waits in memory to be flushed is more than the reserve: it has to be counted in. */
    options.memtable_bytes = 6 << 20;
    options.free_space_min = 2 << 20;
    snprintf(store, sizeof(store), "%s/store", path);
    if (!child_mount_tmpfs(path, "size=64m") || !make_ballast(path, 0, ballast[0])
        || !make_ballast(path, 1, ballast[1])) {
        child_say("no file system of its own");
        return 1;
    }
    pawl_status status = open_store(store, &db, &error);
    if (status == PAWL_OK) {
        status = fill(db, &acknowledged, &error);
    }
    child_say("%s %s", pawl_status_name(status), acknowledged > 4000 ? "after many" : "too early");
    status = count_keys(db, &count, &error);
    child_say("%s, %s", pawl_status_name(status), count == acknowledged ? "all there" : "not all");
    unlink(ballast[0]); /* it goes on by itself */
    status = put(db, acknowledged++, &error);
    child_say("%s %s", pawl_status_name(status), error.message);
    status = fill(db, &acknowledged, &error);
    child_say("%s: %s", pawl_status_name(status), error.message);
    pawl__rocks_close(STEAL(db)); /* and it opens with what the guard has left free */
    status = open_store(store, &db, &error);
    if (status == PAWL_OK) {
        unlink(ballast[1]);
        status = put(db, acknowledged++, &error);
    }
    if (status == PAWL_OK) {
        status = count_keys(db, &count, &error);
    }
    child_say("%s, %s", pawl_status_name(status), count == acknowledged ? "all there" : "not all");
    pawl__rocks_close(db);
    return 0;
}

enum { DEBTS = 2, PAY_MS_MAX = 60000 };

/* What waits in memory is counted twice, and nothing else is on the disk: when the guard refuses, most
 * of it is free. */
static int child_debt(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__rocks *db = NULL;
    char store[TEMPDIR_SIZE + 64];
    uint32_t acknowledged = 0;
    uint32_t count = 0;

    options.memtable_bytes = 40 << 20;
    options.free_space_min = 2 << 20;
    snprintf(store, sizeof(store), "%s/store", path);
    if (!child_mount_tmpfs(path, "size=64m")) {
        child_say("no file system of its own");
        return 1;
    }
    pawl_status status = open_store(store, &db, &error);
    for (int i = 0; i < DEBTS; i++) {
        while (status == PAWL_OK) {
            status = put(db, acknowledged, &error);
            acknowledged += status == PAWL_OK;
        }
        child_say("%s", pawl_status_name(status));
        for (int ms = 0; status == PAWL_NO_SPACE && ms < PAY_MS_MAX; ms += 10) {
            poll(NULL, 0, 10);
            status = put(db, acknowledged % 100, &error); /* again: the store does not grow */
        }
        child_say("%s, it goes on", pawl_status_name(status));
    }
    status = count_keys(db, &count, &error);
    child_say("%s, %s", pawl_status_name(status), count == acknowledged ? "all there" : "not all");
    pawl__rocks_close(db);
    return 0;
}

static void test_a_disk_that_has_room_is_not_refused_for_ever(void **state)
{
    struct fixture *f = *state;
    struct child child;

    if (geteuid() != 0) {
        skip();
    }
    child_start(&child, (const char *const[]){ "debt", f->dir, NULL });
    for (int i = 0; i < DEBTS; i++) {
        assert_says(&child, "NO_SPACE");
        assert_says(&child, "OK, it goes on");
    }
    assert_says(&child, "OK, all there");
    assert_int_equal(child_end(&child, 0), 0);
}

static void test_a_full_disk_stops_writes_before_the_engine_meets_it(void **state)
{
    struct fixture *f = *state;
    struct child child;

    if (geteuid() != 0) {
        skip();
    }
    child_start(&child, (const char *const[]){ "fill", f->dir, NULL });
    assert_says(&child, "NO_SPACE after many");
    assert_says(&child, "OK, all there");
    assert_says(&child, "OK");
    assert_says(&child, "NO_SPACE: ");
    assert_says(&child, "OK, all there");
    assert_int_equal(child_end(&child, 0), 0);
}

static int child_read_only_disk(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__rocks *db = NULL;
    char store[TEMPDIR_SIZE + 64];

    snprintf(store, sizeof(store), "%s/store", path);
    if (!child_mount_tmpfs(path, "size=64m")) {
        child_say("cannot mount");
        return 1;
    }
    pawl_status status = open_store(store, &db, &error);
    if (status == PAWL_OK) {
        status = put(db, 1, &error);
    }
    pawl__rocks_close(STEAL(db));
    if (status != PAWL_OK || !child_remount_read_only(path)) {
        child_say("cannot remount");
        return 1;
    }
    status = open_store(store, &db, &error);
    child_say("%s %s", pawl_status_name(status), error.message);
    return 0;
}

static int child_open_as_nobody(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__rocks *db = NULL;

    if (!child_drop_rights()) {
        child_say("no rights to drop");
        return 1;
    }
    pawl_status status = open_store(path, &db, &error);
    child_say("%s %s", pawl_status_name(status), error.message);
    return 0;
}

static void test_what_may_not_be_written_is_denied(void **state)
{
    struct fixture *f = *state;
    struct child child;
    static const char *const cases[] = { "nobody", "read-only-disk" };

    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(chmod(f->path, 0755), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        child_start(&child, (const char *const[]){ cases[i], i == 0 ? f->path : f->dir, NULL });
        assert_says(&child, "DENIED open RocksDB store");
        assert_int_equal(child_end(&child, 0), 0);
    }
    char fresh[TEMPDIR_SIZE + 32];
    snprintf(fresh, sizeof(fresh), "%s/fresh", f->dir);
    child_start(&child, (const char *const[]){ "nobody", fresh, NULL });
    assert_says(&child, "DENIED");
    assert_int_equal(child_end(&child, 0), 0);
    /* A directory that anybody may write, with a store that is somebody else's. */
    assert_int_equal(chmod(f->path, 0777), 0);
    char lock[600];
    find_file(f, "pawl.lock", lock, sizeof(lock));
    assert_int_equal(unlink(lock), 0);
    child_start(&child, (const char *const[]){ "nobody", f->path, NULL });
    assert_says(&child, "DENIED");
    assert_int_equal(child_end(&child, 0), 0);
}

static int run_child(char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const char *path);
    } modes[] = {
        { "hold", child_hold },
        { "hold-raw", child_hold_raw },
        { "write", child_write },
        { "fail-write", child_fail_write },
        { "debt", child_debt },
        { "fill", child_fill },
        { "read-only-disk", child_read_only_disk },
        { "nobody", child_open_as_nobody },
    };

    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        if (strcmp(argv[2], modes[i].name) == 0) {
            return modes[i].run(argv[3]);
        }
    }
    return 2;
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_flipped_bit_in_the_log_is_refused),
        TEST(test_a_torn_end_of_the_log_loses_only_the_torn_batch),
        TEST(test_damage_in_a_table_is_an_error_and_not_an_end),
        TEST(test_damage_fails_a_read_of_many_as_a_whole),
        TEST(test_a_table_that_is_gone_is_corrupt),
        TEST(test_data_without_current_is_corrupt_and_kept),
        TEST(test_garbage_in_the_stores_own_records_is_corrupt),
        TEST(test_a_second_handle_in_this_process_is_busy),
        TEST(test_a_directory_that_was_replaced_is_left_alone),
        TEST(test_closing_writes_and_removes_nothing_in_a_directory_that_was_replaced),
        TEST(test_another_process_is_busy),
        TEST(test_a_killed_writer_has_lost_nothing_it_acknowledged),
        TEST(test_after_a_failed_write_only_reads_until_it_is_opened_again),
        cmocka_unit_test_setup_teardown(
            test_a_disk_that_has_room_is_not_refused_for_ever, setup_empty, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_full_disk_stops_writes_before_the_engine_meets_it, setup_empty, teardown),
        TEST(test_what_may_not_be_written_is_denied),
    };

    if (child_is_one(argc, argv)) {
        return run_child(argv);
    }
    return cmocka_run_group_tests_name("rocksdb_damage", tests, NULL, NULL);
}
