/* What a power cut can leave at the end of DuckDB's log: the transaction under way with holes in it.
 * It goes; everything before it stays; and what is damaged in another way stays CORRUPT. */
#include "lib/duck_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/fault.h"

enum { TRANSACTIONS = 3, ROWS = 400, LOG_BYTES_MAX = 1 << 20, HOLE_BYTES = 4096 };

struct log {
    char *file; /* what the log belongs to */
    size_t file_len;
    char *data;
    size_t len;
    size_t ends[TRANSACTIONS]; /* of each transaction */
};

/* A checkpointed table, and so many transactions in the log; closed. */
static int setup(void **state)
{
    if (duck_setup(state) != 0) {
        return -1;
    }
    struct duck_fixture *f = *state;
    duck_script(f, f->conn, "CREATE TABLE t (id BIGINT, v TEXT)");
    assert_ok(pawl__duck_checkpoint(f->db, PAWL__DUCK_CHECKPOINT_TRY, &f->error), &f->error);
    return 0;
}

static char *read_all(const char *path, size_t *ret_len)
{
    char *data = malloc(LOG_BYTES_MAX);
    FILE *file = fopen(path, "rbe");

    assert_non_null(data);
    assert_non_null(file);
    *ret_len = fread(data, 1, LOG_BYTES_MAX, file);
    assert_true(*ret_len < LOG_BYTES_MAX);
    fclose(file);
    return data;
}

static void write_all(const char *path, const char *data, size_t len)
{
    FILE *file = fopen(path, "wbe");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static struct log make_log(struct duck_fixture *f)
{
    struct log log = { .data = NULL };

    for (int i = 0; i < TRANSACTIONS; i++) {
        char sql[128];
        snprintf(sql,
                 sizeof(sql),
                 "INSERT INTO t SELECT %d, 'row ' || range || repeat('y', 100) FROM range(%d)",
                 i,
                 ROWS);
        duck_script(f, f->conn, sql);
        log.ends[i] = (size_t)duck_file_size(f->wal);
    }
    duck_close(f);
    log.file = read_all(f->path, &log.file_len);
    log.data = read_all(f->wal, &log.len);
    assert_int_equal(log.len, log.ends[TRANSACTIONS - 1]);
    return log;
}

static void free_log(struct log *log)
{
    free(log->file);
    free(log->data);
}

/* The first `len` bytes of the log, and the file as it was. */
static void put_log(struct duck_fixture *f, const struct log *log, size_t len)
{
    write_all(f->path, log->file, log->file_len);
    write_all(f->wal, log->data, len);
}

static void put_hole(struct duck_fixture *f, size_t at)
{
    static const char zeros[HOLE_BYTES];
    FILE *file = fopen(f->wal, "r+be");

    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(zeros, 1, sizeof(zeros), file), sizeof(zeros));
    assert_int_equal(fclose(file), 0);
}

static void assert_log_is(struct duck_fixture *f, const struct log *log)
{
    size_t len = 0;
    char *data = read_all(f->wal, &len);

    assert_int_equal(len, log->len);
    assert_memory_equal(data, log->data, len);
    free(data);
}

static void assert_no_leftovers(struct duck_fixture *f)
{
    char path[sizeof(f->wal) + 16];

    snprintf(path, sizeof(path), "%s.torn", f->wal);
    assert_int_equal(duck_file_size(path), -1);
    snprintf(path, sizeof(path), "%s.shorter", f->wal);
    assert_int_equal(duck_file_size(path), -1);
}

static void test_a_hole_anywhere_in_the_last_transaction_takes_only_that(void **state)
{
    struct duck_fixture *f = *state;
    struct log log = make_log(f);
    size_t begin = log.ends[TRANSACTIONS - 2];
    int cut = 0;

    for (size_t at = begin; at + HOLE_BYTES < log.len; at += HOLE_BYTES / 2) {
        char saved[HOLE_BYTES];
        memcpy(saved, &log.data[at], HOLE_BYTES);
        memset(&log.data[at], 0, HOLE_BYTES);
        put_log(f, &log, log.len);
        duck_open(f);
        assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM t"),
                         (TRANSACTIONS - 1) * ROWS);
        assert_int_equal(pawl__duck_cut_bytes(f->db), log.len - begin);
        assert_no_leftovers(f);
        duck_script(f, f->conn, "INSERT INTO t VALUES (9, 'goes on')");
        duck_close(f);
        duck_open(f);
        assert_int_equal(pawl__duck_cut_bytes(f->db), 0);
        assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM t WHERE id = 9"), 1);
        duck_close(f);
        memcpy(&log.data[at], saved, HOLE_BYTES);
        cut++;
    }
    assert_true(cut > 5);
    free_log(&log);
}

static void test_a_hole_before_an_end_that_is_missing(void **state)
{
    struct duck_fixture *f = *state;
    struct log log = make_log(f);
    size_t begin = log.ends[TRANSACTIONS - 2];

    memset(&log.data[begin + 100], 0, HOLE_BYTES);
    put_log(f, &log, log.len - 1000);
    duck_open(f);
    assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM t"), (TRANSACTIONS - 1) * ROWS);
    free_log(&log);
}

static void test_a_log_whose_only_transaction_has_a_hole_is_emptied(void **state)
{
    struct duck_fixture *f = *state;
    struct log log = make_log(f);

    for (size_t at = 0; at < 2; at++) { /* once not even its first bytes came through */
        put_log(f, &log, log.ends[0]);
        put_hole(f, at * HOLE_BYTES);
        duck_open(f);
        assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM t"), 0);
        duck_script(f, f->conn, "INSERT INTO t VALUES (9, 'goes on')");
        duck_close(f);
        duck_open(f);
        assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM t WHERE id = 9"), 1);
        duck_close(f);
    }
    free_log(&log);
}

/* Those were acknowledged: somebody has to know. */
static void test_a_hole_in_an_earlier_transaction_is_corrupt_and_left_alone(void **state)
{
    struct duck_fixture *f = *state;
    struct log log = make_log(f);
    struct pawl__duck *db = NULL;

    memset(&log.data[log.ends[0] + HOLE_BYTES], 0, HOLE_BYTES);
    put_log(f, &log, log.len);
    assert_status(pawl__duck_open(f->path, &f->options, &db, &f->error), PAWL_CORRUPT, &f->error);
    assert_log_is(f, &log);

    /* Also when the last one has a hole as well. */
    memset(&log.data[log.ends[1] + HOLE_BYTES], 0, HOLE_BYTES);
    put_log(f, &log, log.len);
    assert_status(pawl__duck_open(f->path, &f->options, &db, &f->error), PAWL_CORRUPT, &f->error);
    assert_message(&f->error, "replaying WAL");
    assert_log_is(f, &log);
    assert_no_leftovers(f);
    free_log(&log);
}

static void test_a_flipped_bit_in_the_last_transaction_is_corrupt(void **state)
{
    struct duck_fixture *f = *state;
    struct log log = make_log(f);
    struct pawl__duck *db = NULL;

    log.data[log.len - 5000] ^= 1;
    put_log(f, &log, log.len);
    assert_status(pawl__duck_open(f->path, &f->options, &db, &f->error), PAWL_CORRUPT, &f->error);
    assert_log_is(f, &log);
    free_log(&log);
}

static void test_read_only_changes_nothing(void **state)
{
    struct duck_fixture *f = *state;
    struct log log = make_log(f);
    struct pawl__duck *db = NULL;

    memset(&log.data[log.ends[1] + HOLE_BYTES], 0, HOLE_BYTES);
    put_log(f, &log, log.len);
    f->options.read_only = true;
    assert_status(pawl__duck_open(f->path, &f->options, &db, &f->error), PAWL_CORRUPT, &f->error);
    assert_log_is(f, &log);
    f->options.read_only = false;
    free_log(&log);
}

static void test_without_memory_nothing_more_is_lost(void **state)
{
    struct duck_fixture *f = *state;
    struct log log = make_log(f);
    bool fired = true;

    memset(&log.data[log.ends[1] + HOLE_BYTES], 0, HOLE_BYTES);
    for (long nth = 1; fired; nth++) {
        struct pawl__duck *db = NULL;
        put_log(f, &log, log.len);
        fault_arm(nth);
        pawl_status status = pawl__duck_open(f->path, &f->options, &db, &f->error);
        fired = fault_fired();
        fault_disarm();
        assert_status(status, fired ? PAWL_NOMEM : PAWL_OK, &f->error);
        pawl__duck_close(db);
        duck_open(f);
        assert_int_equal(duck_number(f, f->conn, "SELECT count(*) FROM t"),
                         (TRANSACTIONS - 1) * ROWS);
        duck_close(f);
    }
    free_log(&log);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, duck_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_hole_anywhere_in_the_last_transaction_takes_only_that),
        TEST(test_a_hole_before_an_end_that_is_missing),
        TEST(test_a_log_whose_only_transaction_has_a_hole_is_emptied),
        TEST(test_a_hole_in_an_earlier_transaction_is_corrupt_and_left_alone),
        TEST(test_a_flipped_bit_in_the_last_transaction_is_corrupt),
        TEST(test_read_only_changes_nothing),
        TEST(test_without_memory_nothing_more_is_lost),
    };

    return cmocka_run_group_tests_name("duckdb_log", tests, NULL, NULL);
}
