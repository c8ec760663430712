/* Telemetry on DuckDB files: threads, damage, failures, and every data type from an agent's file into a colony's. */
#include "lib/check.h"
#include "lib/tempdir.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/core/macros.h"
#include "base/os/failpoint.h"
#include "base/thread/thread.h"
#include "telemetry/agent/duckdb.h"
#include "telemetry/colony/duckdb.h"
#include "telemetry/colony/poller.h"

enum { WRITERS = 4, BATCHES = 20, BATCH_ROWS = 5 };

struct fixture {
    char dir[TEMPDIR_SIZE];
    char agent_path[TEMPDIR_SIZE + 32];
    char colony_path[TEMPDIR_SIZE + 32];
    struct telemetry_agent_store *agent;
    struct telemetry_colony_store *colony;
    pawl_error error;
};

static const struct pawl__duck_options duck = { .threads = 1, .memory_bytes_max = 256 << 20 };

static pawl_status try_agent(struct fixture *f, struct telemetry_duckdb_agent_opened *ret_opened)
{
    const struct telemetry_duckdb_agent_options options = {
        .path = f->agent_path, .duck = duck, .retention = { .group_rows = 10 }, .checkpoint_rows = 1
    };

    return pawl__telemetry_duckdb_agent(&options, &f->agent, ret_opened, &f->error);
}

static struct telemetry_duckdb_agent_opened open_agent(struct fixture *f)
{
    struct telemetry_duckdb_agent_opened opened;

    assert_ok(try_agent(f, &opened), &f->error);
    return opened;
}

static void close_agent(struct fixture *f)
{
    if (f->agent != NULL) {
        f->agent->ops->close(STEAL(f->agent));
    }
}

static void open_colony(struct fixture *f)
{
    const struct telemetry_duckdb_colony_options options = { .path = f->colony_path,
                                                             .duck = duck,
                                                             .checkpoint_rows = 1 };

    assert_ok(pawl__telemetry_duckdb_colony(&options, &f->colony, &f->error), &f->error);
}

static int setup(void **state)
{
    static struct fixture f;

    memset(&f, 0, sizeof(f));
    f.error = (pawl_error)PAWL_ERROR_INIT;
    if (tempdir_make(f.dir, "pawl-telemetry", &f.error) != PAWL_OK) {
        return -1;
    }
    snprintf(f.agent_path, sizeof(f.agent_path), "%s/agent.db", f.dir);
    snprintf(f.colony_path, sizeof(f.colony_path), "%s/colony.db", f.dir);
    open_agent(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    pawl_status status = pawl__failpoint_set(NULL, NULL);

    close_agent(f);
    if (f->colony != NULL) {
        f->colony->ops->close(f->colony);
    }
    tempdir_remove(f->dir);
    return status == PAWL_OK ? 0 : -1;
}

static struct telemetry_values row_of(enum telemetry_type type, const char *text)
{
    const struct telemetry_type_info *info = pawl__telemetry_type(type);
    struct telemetry_values row = { .at = { { .as = { .i64 = 0 } } } };

    for (size_t i = 0; i < info->column_count; i++) {
        char kind = info->columns[i].kind;
        if (kind == 't') {
            row.at[i].as.text = pawl_view_of(text);
        } else if (kind == 'm' || kind == 'l') {
            row.at[i].as.text =
                pawl_view_of(kind == 'm' ? "{\"host\":\"a\"}" : "[\"main\",\"run\"]");
        } else if (kind == 'd') {
            row.at[i].as.real = 2.5;
        } else if (kind != 'b') {
            row.at[i].as.i64 = 3;
        }
    }
    return row;
}

static pawl_status append_one(struct fixture *f,
                              enum telemetry_type type,
                              const char *text,
                              uint64_t *ret_last)
{
    struct telemetry_values row = row_of(type, text);
    struct telemetry_appended appended = { .last = 0 };
    pawl_status status = f->agent->ops->append(f->agent, type, &row, 1, &appended, &f->error);

    *ret_last = appended.last;
    return status;
}

/* --- threads --- */

struct work {
    struct fixture *f;
    int number;
    atomic_int *failures;
    atomic_int *writing;
};

static void write_rows(void *context)
{
    struct work *work = context;

    for (int batch = 0; batch < BATCHES; batch++) {
        struct telemetry_values rows[BATCH_ROWS];
        char texts[BATCH_ROWS][32];
        struct telemetry_appended appended;
        pawl_error error = PAWL_ERROR_INIT;
        for (int i = 0; i < BATCH_ROWS; i++) {
            snprintf(texts[i], sizeof(texts[i]), "%d-%d-%d", work->number, batch, i);
            rows[i] = row_of(TELEMETRY_SPANS, texts[i]);
        }
        pawl_status status = work->f->agent->ops->append(
            work->f->agent, TELEMETRY_SPANS, rows, BATCH_ROWS, &appended, &error);
        if (status != PAWL_OK || appended.last - appended.first + 1 != BATCH_ROWS) {
            atomic_fetch_add(work->failures, 1);
        }
    }
    atomic_fetch_sub(work->writing, 1);
}

/* A page never has a hole: an id that is visible has all before it visible, too. */
static void read_rows(void *context)
{
    struct work *work = context;
    struct telemetry_page page = { .count = 0 };
    const struct telemetry_query query = { .type = TELEMETRY_SPANS, .rows_max = 10000 };

    do {
        pawl_error error = PAWL_ERROR_INIT;
        bool is_whole = work->f->agent->ops->query(work->f->agent, &query, &page, &error) == PAWL_OK
                        && page.count == page.high_water;
        for (size_t i = 0; is_whole && i < page.count; i++) {
            is_whole = page.rows[i].seq_id == i + 1;
        }
        atomic_fetch_add(work->failures, is_whole ? 0 : 1);
    } while (atomic_load(work->writing) > 0);
    pawl__telemetry_page_done(&page);
}

static void maintain_store(void *context)
{
    struct work *work = context;

    do {
        pawl_error error = PAWL_ERROR_INIT;
        pawl_status status = work->f->agent->ops->maintain(work->f->agent, NULL, &error);
        atomic_fetch_add(work->failures, status == PAWL_OK || status == PAWL_BUSY ? 0 : 1);
    } while (atomic_load(work->writing) > 0);
}

static void test_concurrent_inserts_get_unique_consecutive_ids(void **state)
{
    struct fixture *f = *state;
    struct pawl__thread threads[WRITERS + 2] = { { .started = false } };
    struct work works[WRITERS + 2];
    atomic_int failures = 0;
    atomic_int writing = WRITERS;

    for (int i = 0; i < WRITERS + 2; i++) {
        works[i] = (struct work){ f, i, &failures, &writing };
        assert_ok(pawl__thread_start(&threads[i],
                                     "telemetry",
                                     i < WRITERS    ? write_rows
                                     : i == WRITERS ? read_rows
                                                    : maintain_store,
                                     &works[i],
                                     &f->error),
                  &f->error);
    }
    for (int i = 0; i < WRITERS + 2; i++) {
        pawl__thread_join(&threads[i]);
    }
    assert_int_equal(failures, 0);
    struct telemetry_agent_status status;
    assert_ok(f->agent->ops->status(f->agent, &status, &f->error), &f->error);
    assert_int_equal(status.kept[TELEMETRY_SPANS].counter, WRITERS * BATCHES * BATCH_ROWS);
    close_agent(f);
    open_agent(f);
    works[0].number = 0;
    writing = 0;
    read_rows(&works[0]); /* and all of them are there after a restart */
    assert_int_equal(failures, 0);
}

/* --- failures --- */

static void test_a_failed_append_burns_no_id_and_its_retry_is_stored(void **state)
{
    struct fixture *f = *state;
    uint64_t last = 0;

    assert_ok(append_one(f, TELEMETRY_SPANS, "a", &last), &f->error);
    if (pawl__failpoint_set("duckdb.commit.before=error:NO_SPACE*1", &f->error) != PAWL_OK) {
        skip(); /* a build without failpoints */
    }
    assert_status(append_one(f, TELEMETRY_SPANS, "b", &last), PAWL_NO_SPACE, &f->error);
    f->error = (pawl_error)PAWL_ERROR_INIT;
    assert_ok(append_one(f, TELEMETRY_SPANS, "b", &last), &f->error);
    assert_int_equal(last, 2);
}

static void spoil_file(const char *path)
{
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    for (int i = 0; i < 4096; i++) {
        assert_int_not_equal(fputc('x', file), EOF);
    }
    fclose(file);
}

static void test_a_file_that_does_not_open_is_moved_aside_and_a_new_session_begins(void **state)
{
    struct fixture *f = *state;
    struct telemetry_agent_status before;
    struct telemetry_agent_status after;
    uint64_t last = 0;

    assert_ok(append_one(f, TELEMETRY_SPANS, "a", &last), &f->error);
    assert_ok(f->agent->ops->maintain(f->agent, NULL, &f->error), &f->error); /* into the file */
    assert_ok(f->agent->ops->status(f->agent, &before, &f->error), &f->error);
    close_agent(f);
    spoil_file(f->agent_path);
    struct telemetry_duckdb_agent_opened opened = open_agent(f);
    assert_int_equal(opened.quarantined, 1);
    assert_true(opened.is_new);
    assert_int_equal(opened.why.status, PAWL_CORRUPT);
    assert_ok(f->agent->ops->status(f->agent, &after, &f->error), &f->error);
    assert_string_not_equal(before.session.text, after.session.text);
    assert_ok(append_one(f, TELEMETRY_SPANS, "a", &last), &f->error);
    assert_int_equal(last, 1);
}

static void test_a_database_without_a_session_is_an_error_and_stays_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct pawl__duck *db = NULL;
    struct pawl__duck_conn *conn = NULL;

    close_agent(f);
    for (int i = 0; i < 2; i++) {
        assert_ok(pawl__duck_open(f->agent_path, &duck, &db, &f->error), &f->error);
        assert_ok(pawl__duck_connect(db, &conn, &f->error), &f->error);
        assert_ok(pawl__duck_script(conn,
                                    i == 0 ? "DELETE FROM db_metadata WHERE key = 'session_id'"
                                           : "INSERT INTO db_metadata VALUES ('session_id', '')",
                                    &f->error),
                  &f->error);
        pawl__duck_disconnect(conn);
        pawl__duck_close(db);
        assert_status(try_agent(f, NULL), PAWL_CORRUPT, &f->error);
        assert_message(&f->error, "no session_id");
        f->error = (pawl_error)PAWL_ERROR_INIT;
    }
}

/* --- both --- */

static void test_every_data_type_gets_from_an_agents_file_into_the_colonys(void **state)
{
    struct fixture *f = *state;
    struct telemetry_local_source source = pawl__telemetry_local_source(f->agent);
    struct telemetry_feed feeds[TELEMETRY_TYPE_COUNT];
    struct telemetry_colony_settings settings = pawl__telemetry_colony_settings_default();
    struct telemetry_colony colony;
    uint64_t last = 0;

    open_colony(f);
    pawl__telemetry_colony_init(&colony, f->colony, pawl__clock_real(), &settings, 1);
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        assert_ok(append_one(f, (enum telemetry_type)t, "a", &last), &f->error);
        assert_ok(append_one(f, (enum telemetry_type)t, "b", &last), &f->error);
        feeds[t] = (struct telemetry_feed){ .agent = "web-1",
                                            .type = (enum telemetry_type)t,
                                            .source = &source.base,
                                            .error = PAWL_ERROR_INIT };
    }
    pawl__telemetry_poll(&colony, feeds, TELEMETRY_TYPE_COUNT);
    for (int t = 0; t < TELEMETRY_TYPE_COUNT; t++) {
        uint64_t rows = 0;
        uint64_t rejected = 0;
        assert_ok(feeds[t].status, &feeds[t].error);
        assert_ok(f->colony->ops->count(f->colony,
                                        "web-1",
                                        (enum telemetry_type)t,
                                        &feeds[t].cursor.session,
                                        &pawl__telemetry_current(&feeds[t].cursor)->id,
                                        &rows,
                                        &rejected,
                                        &f->error),
                  &f->error);
        assert_true(rows == 2 && rejected == 0);
        pawl__telemetry_feed_done(&feeds[t]);
    }
    assert_ok(f->colony->ops->maintain(f->colony, &f->error), &f->error);
}

static void
test_a_storage_failure_after_the_query_leaves_the_checkpoint_and_the_next_poll_asks_again(
    void **state)
{
    struct fixture *f = *state;
    struct telemetry_local_source source = pawl__telemetry_local_source(f->agent);
    struct telemetry_feed feed = {
        .agent = "web-1", .type = TELEMETRY_SPANS, .source = &source.base, .error = PAWL_ERROR_INIT
    };
    struct telemetry_colony_settings settings = pawl__telemetry_colony_settings_default();
    struct telemetry_colony colony;
    uint64_t last = 0;

    open_colony(f);
    pawl__telemetry_colony_init(&colony, f->colony, pawl__clock_real(), &settings, 1);
    assert_ok(append_one(f, TELEMETRY_SPANS, "a", &last), &f->error);
    pawl__telemetry_poll(&colony, &feed, 1);
    assert_ok(append_one(f, TELEMETRY_SPANS, "b", &last), &f->error);
    if (pawl__failpoint_set("telemetry.commit.before=error:NO_SPACE", &f->error) != PAWL_OK) {
        skip();
    }
    pawl__telemetry_poll(&colony, &feed, 1);
    assert_int_equal(feed.status, PAWL_NO_SPACE);
    assert_ok(pawl__failpoint_set(NULL, &f->error), &f->error);
    pawl__telemetry_poll(&colony, &feed, 1);
    assert_int_equal(feed.status, PAWL_OK);
    assert_int_equal(pawl__telemetry_current(&feed.cursor)->last, 2);
    assert_int_equal(feed.counts.rows, 2);
    pawl__telemetry_feed_done(&feed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_concurrent_inserts_get_unique_consecutive_ids),
        TEST(test_a_failed_append_burns_no_id_and_its_retry_is_stored),
        TEST(test_a_file_that_does_not_open_is_moved_aside_and_a_new_session_begins),
        TEST(test_a_database_without_a_session_is_an_error_and_stays_as_it_is),
        TEST(test_every_data_type_gets_from_an_agents_file_into_the_colonys),
        TEST(
            test_a_storage_failure_after_the_query_leaves_the_checkpoint_and_the_next_poll_asks_again),
    };

    return cmocka_run_group_tests_name("telemetry_duckdb", tests, NULL, NULL);
}
