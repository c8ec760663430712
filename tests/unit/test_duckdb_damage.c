/* DuckDB files that are damaged, locked, foreign, read-only, or whose process was killed. */
#include "lib/duck_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/os/fs.h"
#include "lib/child.h"

enum { CHECKPOINTED = 5000, LOGGED = 15, FILE_BYTES_MAX = 8 << 20 };

struct content {
    char *data;
    size_t len;
};

static struct content read_file(const char *path)
{
    struct content content = { .data = malloc(FILE_BYTES_MAX) };
    FILE *file = fopen(path, "rb");

    assert_non_null(content.data);
    assert_non_null(file);
    content.len = fread(content.data, 1, FILE_BYTES_MAX, file);
    fclose(file);
    return content;
}

static void write_file(const char *path, const char *data, size_t len)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* A file with rows in it and more rows in its log; closed. */
static int setup(void **state)
{
    if (duck_setup(state) != 0) {
        return -1;
    }
    struct duck_fixture *f = *state;
    duck_script(f,
                f->conn,
                "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT);"
                "INSERT INTO t SELECT range, repeat('x', 100) || range FROM range(5000)");
    assert_ok(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), &f->error);
    for (int i = 0; i < LOGGED; i++) {
        char sql[64];

        snprintf(sql, sizeof(sql), "INSERT INTO t VALUES (%d, 'logged')", CHECKPOINTED + i);
        duck_script(f, f->conn, sql);
    }
    duck_close(f);
    return 0;
}

/* Opens and reads everything: PAWL_OK with the number of rows, or what came first. */
static pawl_status look(struct duck_fixture *f, int64_t *ret_rows)
{
    AUTO(pawl__duck_close_p) struct pawl__duck *db = NULL;
    AUTO(pawl__duck_disconnect_p) struct pawl__duck_conn *conn = NULL;
    AUTO(pawl__duck_rows_free_p) struct pawl__duck_rows *rows = NULL;
    pawl_status status = pawl__duck_open(f->path, &f->options, &db, &f->error);

    if (status == PAWL_OK) {
        status = pawl__duck_connect(db, &conn, &f->error);
    }
    if (status == PAWL_OK) {
        /* The length makes it read the texts, the maximum proves that rows are whole. */
        status = pawl__duck_query_text(conn,
                                       "SELECT count(*), max(id), sum(length(v))::BIGINT FROM t",
                                       DUCK_NO_ARGS,
                                       &rows,
                                       &f->error);
    }
    if (status == PAWL_OK) {
        status = pawl__duck_next(rows, &f->error);
    }
    if (status == PAWL_OK) {
        *ret_rows = pawl__duck_get_i64(rows, 0);
        assert_int_equal(pawl__duck_get_i64(rows, 1), *ret_rows - 1);
    }
    return status;
}

static void test_an_intact_file_opens_with_its_log(void **state)
{
    struct duck_fixture *f = *state;
    int64_t rows = 0;

    assert_ok(look(f, &rows), &f->error);
    assert_int_equal(rows, CHECKPOINTED + LOGGED);
}

static void test_a_file_that_was_cut_is_corrupt(void **state)
{
    struct duck_fixture *f = *state;
    struct content file = read_file(f->path);
    const size_t lens[] = { 0, 1, 100, 4096, 8192, 12288, file.len / 2, file.len - 4096 };

    for (size_t i = 0; i < COUNT_OF(lens); i++) {
        int64_t rows = 0;

        write_file(f->path, file.data, lens[i]);
        assert_status(look(f, &rows), PAWL_CORRUPT, &f->error);
        assert_message(&f->error, f->path);
        assert_int_equal(duck_file_size(f->path), lens[i]); /* nothing was changed */
    }
    free(file.data);
}

static void test_garbage_is_corrupt(void **state)
{
    struct duck_fixture *f = *state;
    struct content file = read_file(f->path);
    int64_t rows = 0;

    memset(file.data + 12288, 0x5A, file.len - 12288);
    write_file(f->path, file.data, file.len);
    assert_status(look(f, &rows), PAWL_CORRUPT, &f->error);
    memset(file.data, 0x5A, file.len);
    write_file(f->path, file.data, file.len);
    assert_status(look(f, &rows), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "not a valid DuckDB database file");
    free(file.data);
}

static void test_no_flipped_bit_gives_wrong_rows(void **state)
{
    enum { STEPS = 30 };
    struct duck_fixture *f = *state;
    struct content file = read_file(f->path);
    int corrupt = 0;

    for (size_t i = 0; i < STEPS; i++) {
        /* All of the headers, then steps through the blocks. */
        size_t at = i < 15 ? i * 800 : 12288 + (file.len - 12288) / (STEPS - 15) * (i - 15) + 99;
        int64_t rows = CHECKPOINTED + LOGGED;

        file.data[at] ^= 8;
        write_file(f->path, file.data, file.len);
        pawl_status status = look(f, &rows);
        if (status != PAWL_OK && status != PAWL_CORRUPT) {
            fail_msg("byte %zu: %s: %s", at, pawl_status_name(status), f->error.message);
        }
        assert_int_equal(rows, CHECKPOINTED + LOGGED); /* in a part that is not used, it is there */
        corrupt += status == PAWL_CORRUPT;
        file.data[at] ^= 8;
    }
    assert_true(corrupt >= STEPS / 2);
    free(file.data);
}

static void test_a_cut_log_keeps_the_commits_before_the_cut(void **state)
{
    struct duck_fixture *f = *state;
    struct content wal = read_file(f->wal);
    int64_t last = CHECKPOINTED;

    for (size_t cut = 0; cut <= 10; cut++) {
        int64_t rows = 0;

        write_file(f->wal, wal.data, wal.len * cut / 10);
        assert_ok(look(f, &rows), &f->error);
        assert_true(rows >= last);
        last = rows;
        write_file(f->wal, wal.data, wal.len);
    }
    assert_int_equal(last, CHECKPOINTED + LOGGED);
    free(wal.data);
}

static void test_a_flipped_bit_in_the_log_is_corrupt(void **state)
{
    struct duck_fixture *f = *state;
    struct content wal = read_file(f->wal);
    int64_t rows = 0;

    /* In the body of an entry. In its length it looks like a torn end; see the header. */
    char *body = memmem(wal.data, wal.len, "logged", 6);
    assert_non_null(body);
    body[2] ^= 1;
    write_file(f->wal, wal.data, wal.len);
    assert_status(look(f, &rows), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "replaying WAL");
    free(wal.data);
}

static void test_a_log_without_its_file_is_corrupt_and_not_replayed(void **state)
{
    struct duck_fixture *f = *state;
    int64_t rows = 0;
    int number = 0;

    assert_int_equal(unlink(f->path), 0);
    assert_status(look(f, &rows), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "its log is there, the file itself is not");
    assert_int_equal(duck_file_size(f->path), -1);
    assert_ok(pawl__duck_quarantine(f->path, &number, &f->error), &f->error);
    duck_open(f); /* and now it is a new one */
}

/* The checksum that DuckDB keeps in front of a header block. */
static uint64_t header_checksum(const char *block)
{
    uint64_t sum = 5381;

    for (size_t at = 8; at < 4096; at += 8) {
        uint64_t word;

        memcpy(&word, block + at, sizeof(word));
        sum ^= word * UINT64_C(0xbf58476d1ce4e5b9);
    }
    return sum;
}

static void test_a_file_of_a_newer_version_is_unsupported(void **state)
{
    struct duck_fixture *f = *state;
    struct content file = read_file(f->path);
    const uint64_t version = 9999;
    int64_t rows = 0;

    memcpy(file.data + 12, &version, sizeof(version));
    uint64_t sum = header_checksum(file.data);
    memcpy(file.data, &sum, sizeof(sum));
    write_file(f->path, file.data, file.len);
    assert_status(look(f, &rows), PAWL_UNSUPPORTED, &f->error);
    assert_message(&f->error, "version number 9999");
    free(file.data);
}

static void test_quarantine_moves_file_and_log_and_counts_on(void **state)
{
    struct duck_fixture *f = *state;
    char moved[TEMPDIR_SIZE + 64];

    for (int expected = 1; expected <= 3; expected++) {
        int number = 0;

        assert_ok(pawl__duck_quarantine(f->path, &number, &f->error), &f->error);
        assert_int_equal(number, expected);
        assert_int_equal(duck_file_size(f->path), -1);
        assert_int_equal(duck_file_size(f->wal), -1);
        snprintf(moved, sizeof(moved), "%s.quarantined-%d", f->path, number);
        assert_true(duck_file_size(moved) > 0);
        snprintf(moved, sizeof(moved), "%s.quarantined-%d", f->wal, number);
        assert_true(duck_file_size(moved) > 0);
        duck_open(f);
        duck_script(f, f->conn, "CREATE TABLE rebuilt (n INTEGER)");
        int unused = 0;
        assert_status(pawl__duck_quarantine(f->path, &unused, &f->error), PAWL_BUSY, &f->error);
        duck_close(f);
    }
}

static void test_quarantine_of_nothing_is_not_found(void **state)
{
    struct duck_fixture *f = *state;
    int number = 0;

    unlink(f->path);
    unlink(f->wal);
    assert_status(pawl__duck_quarantine(f->path, &number, &f->error), PAWL_NOT_FOUND, &f->error);
}

static void test_a_second_handle_in_this_process_is_busy(void **state)
{
    struct duck_fixture *f = *state;
    struct pawl__duck *second = NULL;

    duck_open(f); /* DuckDB itself would open it twice, and both would write */
    assert_status(pawl__duck_open(f->path, NULL, &second, &f->error), PAWL_BUSY, &f->error);
}

static int child_hold(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__duck *db = NULL;
    pawl_status status = pawl__duck_open(path, NULL, &db, &error);

    child_say("%s", pawl_status_name(status));
    pause(); /* until it is killed */
    return 0;
}

static void test_another_process_is_busy_and_named(void **state)
{
    struct duck_fixture *f = *state;
    struct child child;
    char line[64];
    char pid[32];
    int64_t rows = 0;

    child_start(&child, (const char *const[]){ "hold", f->path, NULL });
    assert_true(child_line(&child, line, sizeof(line)));
    assert_string_equal(line, "OK");
    assert_status(look(f, &rows), PAWL_BUSY, &f->error);
    snprintf(pid, sizeof(pid), "%d", (int)child.pid);
    assert_message(&f->error, pid);
    assert_true(f->error.retryable);
    assert_true(WIFSIGNALED(child_end(&child, SIGKILL)));
    assert_ok(look(f, &rows), &f->error); /* the lock ended with its holder */
}

/* Two rows a transaction, forever; says a number when its transaction is committed. */
static int child_write(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;
    static const char *const sql[] = { "INSERT INTO w VALUES (?, 0), (?, 1)" };
    pawl_status status = pawl__duck_open(path, NULL, &db, &error);

    if (status == PAWL_OK) {
        status = pawl__duck_connect(db, &conn, &error);
    }
    if (status == PAWL_OK) {
        status =
            pawl__duck_script(conn, "CREATE TABLE IF NOT EXISTS w (n BIGINT, half BIGINT)", &error);
    }
    if (status == PAWL_OK) {
        status = pawl__duck_prepare(conn, sql, 1, &error);
    }
    for (int64_t n = 0; status == PAWL_OK; n++) {
        status = pawl__duck_begin(conn, PAWL__DUCK_WRITE, &error);
        if (status == PAWL_OK) {
            status = pawl__duck_run(
                conn, 0, DUCK_ARGS(pawl__duck_i64(n), pawl__duck_i64(n)), NULL, &error);
        }
        if (status == PAWL_OK) {
            status = pawl__duck_commit(conn, &error);
        }
        if (status == PAWL_OK && n % 50 == 49) {
            status = pawl__duck_checkpoint(db, PAWL__DUCK_CHECKPOINT_TRY, &error);
        }
        child_say("%lld", (long long)n);
    }
    child_say("failed: %s", error.message);
    return 1;
}

static void test_a_killed_writer_has_lost_nothing_it_acknowledged(void **state)
{
    struct duck_fixture *f = *state;

    for (int round = 0; round < 3; round++) {
        struct child child;
        char line[256];
        long long acknowledged = -1;

        duck_open(f);
        duck_script(f, f->conn, "DROP TABLE IF EXISTS w");
        duck_close(f);
        child_start(&child, (const char *const[]){ "write", f->path, NULL });
        /* Not always at the same place: in the log, and around a checkpoint. */
        for (int i = 0; i < 35 + round * 10; i++) {
            assert_true(child_line(&child, line, sizeof(line)));
        }
        kill(child.pid, SIGKILL);
        do {
            acknowledged = strtoll(line, NULL, 10);
        } while (child_line(&child, line, sizeof(line)));
        assert_true(WIFSIGNALED(child_end(&child, 0)));
        duck_open(f);
        assert_true(duck_number(f, f->conn, "SELECT max(n) FROM w") >= acknowledged);
        assert_int_equal(duck_number(f, f->conn, "SELECT count(*) - 2 * (max(n) + 1) FROM w"), 0);
        duck_close(f);
    }
}

static int child_open_as_nobody(const char *path)
{
    pawl_error error = PAWL_ERROR_INIT;
    struct pawl__duck *db = NULL;

    if (!child_drop_rights()) {
        child_say("no rights to drop");
        return 1;
    }
    pawl_status status = pawl__duck_open(path, NULL, &db, &error);
    child_say("%s %s", pawl_status_name(status), error.message);
    pawl__duck_close(db);
    return 0;
}

static void assert_denied_to_nobody(const char *path)
{
    struct child child;
    char line[600];

    child_start(&child, (const char *const[]){ "nobody", path, NULL });
    assert_true(child_line(&child, line, sizeof(line)));
    assert_int_equal(child_end(&child, 0), 0);
    if (strncmp(line, "DENIED ", 7) != 0) {
        fail_msg("%s", line);
    }
}

static void test_what_may_not_be_written_is_denied(void **state)
{
    struct duck_fixture *f = *state;
    char fresh[TEMPDIR_SIZE + 32];

    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_denied_to_nobody(f->path);
    snprintf(fresh, sizeof(fresh), "%s/fresh.duckdb", f->dir);
    assert_denied_to_nobody(fresh);
    assert_int_equal(duck_file_size(fresh), -1);
    /* A directory that may be written with a file that may not. */
    assert_int_equal(chmod(f->dir, 0777), 0);
    char lock[TEMPDIR_SIZE + 48];
    snprintf(lock, sizeof(lock), "%s.lock", f->path);
    assert_int_equal(unlink(lock), 0);
    assert_denied_to_nobody(f->path);
}

static void test_what_is_no_file_is_invalid(void **state)
{
    struct duck_fixture *f = *state;
    struct pawl__duck *db = NULL;

    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(unlink(f->wal), 0);
    assert_int_equal(mkdir(f->path, 0700), 0);
    assert_status(pawl__duck_open(f->path, NULL, &db, &f->error), PAWL_INVALID, &f->error);
}

static int run_child(char **argv)
{
    if (strcmp(argv[2], "hold") == 0) {
        return child_hold(argv[3]);
    }
    if (strcmp(argv[2], "write") == 0) {
        return child_write(argv[3]);
    }
    return child_open_as_nobody(argv[3]);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, duck_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_an_intact_file_opens_with_its_log),
        TEST(test_a_file_that_was_cut_is_corrupt),
        TEST(test_garbage_is_corrupt),
        TEST(test_no_flipped_bit_gives_wrong_rows),
        TEST(test_a_cut_log_keeps_the_commits_before_the_cut),
        TEST(test_a_flipped_bit_in_the_log_is_corrupt),
        TEST(test_a_log_without_its_file_is_corrupt_and_not_replayed),
        TEST(test_a_file_of_a_newer_version_is_unsupported),
        TEST(test_quarantine_moves_file_and_log_and_counts_on),
        TEST(test_quarantine_of_nothing_is_not_found),
        TEST(test_a_second_handle_in_this_process_is_busy),
        TEST(test_another_process_is_busy_and_named),
        TEST(test_a_killed_writer_has_lost_nothing_it_acknowledged),
        TEST(test_what_may_not_be_written_is_denied),
        TEST(test_what_is_no_file_is_invalid),
    };

    if (child_is_one(argc, argv)) {
        return run_child(argv);
    }
    return cmocka_run_group_tests_name("duckdb_damage", tests, NULL, NULL);
}
