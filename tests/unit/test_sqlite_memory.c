/* SQLite stores in memory: what their handles share, and for how long. */
#include "lib/check.h"

#include <pthread.h>
#include <unistd.h>

#include "store/sqlite/sqlite.h"

enum { SQL_ADD, SQL_COUNT_ROWS, SQL_STATEMENTS };
enum { ROWS = 2000, APPLICATION = 0x70726f62 };

static const char *const statements[SQL_STATEMENTS] = {
    [SQL_ADD] = "INSERT INTO t (x) VALUES (?1)",
    [SQL_COUNT_ROWS] = "SELECT count(*) FROM t",
};

static const struct pawl__migration migrations[] = {
    { 1, "0.1.0", "t", "CREATE TABLE t (x TEXT NOT NULL);" },
};
static const struct pawl__schema schema = { "probe", migrations, 1, NULL, 0, NULL };

static struct pawl__sqlite *open_one(const char *name, enum pawl__sqlite_mode mode)
{
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;
    struct pawl__sqlite *db = NULL;
    pawl_error err = PAWL_ERROR_INIT;

    options.in_memory = true;
    options.mode = mode;
    options.application_id = APPLICATION;
    options.schema = &schema;
    options.schema_unchecked = true;
    options.statements = statements;
    options.statement_count = SQL_STATEMENTS;
    assert_ok(pawl__sqlite_open(name, &options, &db, &err), &err);
    return db;
}

static void add(struct pawl__sqlite *db, int count)
{
    pawl_error err = PAWL_ERROR_INIT;

    assert_ok(pawl__sqlite_begin(db, PAWL__SQLITE_IMMEDIATE, &err), &err);
    for (int i = 0; i < count; i++) {
        AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, SQL_ADD);
        pawl__sqlite_bind_text(&stmt, 1, pawl_view_of("a row of some length"));
        assert_ok(pawl__sqlite_run(&stmt, &err), &err);
    }
    assert_ok(pawl__sqlite_commit(db, &err), &err);
}

static int64_t count(struct pawl__sqlite *db)
{
    AUTO(pawl__sqlite_reset) struct pawl__sqlite_stmt stmt = pawl__sqlite_use(db, SQL_COUNT_ROWS);
    pawl_error err = PAWL_ERROR_INIT;
    bool row = false;

    assert_ok(pawl__sqlite_next(&stmt, &row, &err), &err);
    assert_true(row);
    return pawl__sqlite_i64(&stmt, 0);
}

static void test_handles_of_one_name_share_a_store(void **state)
{
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *writer = open_one("a", PAWL__SQLITE_CREATE);
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *reader = open_one("a", PAWL__SQLITE_READ_ONLY);
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *other = open_one("b", PAWL__SQLITE_CREATE);

    (void)state;
    add(writer, 3);
    assert_int_equal(count(reader), 3);
    assert_int_equal(count(other), 0);
    assert_int_not_equal(access("a", F_OK), 0); /* and no file comes of it */
}

static void test_a_reader_keeps_its_snapshot_while_others_write(void **state)
{
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *writer = open_one("a", PAWL__SQLITE_CREATE);
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *reader = open_one("a", PAWL__SQLITE_READ_ONLY);
    pawl_error err = PAWL_ERROR_INIT;

    (void)state;
    add(writer, 1);
    assert_ok(pawl__sqlite_begin(reader, PAWL__SQLITE_DEFERRED, &err), &err);
    assert_int_equal(count(reader), 1);
    add(writer, ROWS); /* more than a page, and nobody waits */
    assert_int_equal(count(reader), 1);
    pawl__sqlite_rollback(reader);
    assert_int_equal(count(reader), 1 + ROWS);
}

static void test_two_writers_take_turns(void **state)
{
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *one = open_one("a", PAWL__SQLITE_CREATE);
    struct pawl__sqlite_options options = PAWL__SQLITE_OPTIONS_INIT;
    AUTO(pawl__sqlite_close_p) struct pawl__sqlite *two = NULL;
    pawl_error err = PAWL_ERROR_INIT;

    (void)state;
    options.in_memory = true;
    options.application_id = APPLICATION;
    options.busy_ms_max = 0;
    assert_ok(pawl__sqlite_open("a", &options, &two, &err), &err);
    assert_ok(pawl__sqlite_begin(one, PAWL__SQLITE_IMMEDIATE, &err), &err);
    assert_int_equal(pawl__sqlite_begin(two, PAWL__SQLITE_IMMEDIATE, &err), PAWL_BUSY);
    pawl__sqlite_rollback(one);
    assert_ok(pawl__sqlite_begin(two, PAWL__SQLITE_IMMEDIATE, &err), &err);
    pawl__sqlite_rollback(two);
}

static void test_a_store_is_gone_with_its_last_handle(void **state)
{
    struct pawl__sqlite *first = open_one("a", PAWL__SQLITE_CREATE);
    struct pawl__sqlite *second = open_one("a", PAWL__SQLITE_READ_ONLY);

    (void)state;
    add(first, 2);
    pawl__sqlite_close(first);
    assert_int_equal(count(second), 2);
    pawl__sqlite_close(second);
    first = open_one("a", PAWL__SQLITE_CREATE);
    assert_int_equal(count(first), 0);
    pawl__sqlite_close(first);
}

struct reader {
    struct pawl__sqlite *db;
    pthread_t thread;
    bool good; /* it saw whole transactions, and never went back */
};

/* Asserts nothing: that is for the test's own thread. */
static void *read_on(void *context)
{
    struct reader *reader = context;
    int64_t seen = 0;

    reader->good = true;
    while (seen < ROWS && reader->good) {
        AUTO(pawl__sqlite_reset)
        struct pawl__sqlite_stmt stmt = pawl__sqlite_use(reader->db, SQL_COUNT_ROWS);
        bool row = false;

        reader->good = pawl__sqlite_next(&stmt, &row, NULL) == PAWL_OK && row
                       && pawl__sqlite_i64(&stmt, 0) >= seen
                       && pawl__sqlite_i64(&stmt, 0) % 10 == 0;
        seen = pawl__sqlite_i64(&stmt, 0);
    }
    return NULL;
}

static void test_threads_read_while_one_writes(void **state)
{
    AUTO(pawl__sqlite_close_p)
    struct pawl__sqlite *writer = open_one("threads", PAWL__SQLITE_CREATE);
    struct reader readers[3];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        readers[i].db = open_one("threads", PAWL__SQLITE_READ_ONLY);
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
    }
    for (int i = 0; i < ROWS / 10; i++) {
        add(writer, 10);
    }
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        pthread_join(readers[i].thread, NULL);
        pawl__sqlite_close(readers[i].db);
        assert_true(readers[i].good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles_of_one_name_share_a_store),
        cmocka_unit_test(test_a_reader_keeps_its_snapshot_while_others_write),
        cmocka_unit_test(test_two_writers_take_turns),
        cmocka_unit_test(test_a_store_is_gone_with_its_last_handle),
        cmocka_unit_test(test_threads_read_while_one_writes),
    };

    return cmocka_run_group_tests_name("sqlite_memory", tests, NULL, NULL);
}
