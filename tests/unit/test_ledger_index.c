/* An index that does not say what its table says: SQLite believes it, verify does not. */
#include "lib/check.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include <pawl/ledger.h>

#include "base/core/macros.h"
#include "lib/ledger_sample.h"

static int64_t root_page(sqlite3 *db, const char *index)
{
    sqlite3_stmt *stmt = NULL;

    assert_int_equal(sqlite3_prepare_v2(
                         db, "SELECT rootpage FROM sqlite_schema WHERE name = ?", -1, &stmt, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(stmt, 1, index, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t page = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return page;
}

/* Runs SQL on the entries of an index, as if they were a table of their own (key, offset). */
static void on_index(struct sample *sample, const char *index, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;

    assert_int_equal(sqlite3_open_v2(sample->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    int page = (int)root_page(db, index);
    assert_int_equal(sqlite3_test_control(SQLITE_TESTCTRL_IMPOSTER, db, "main", 1, page),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "CREATE TABLE entries (key TEXT, offset INT,"
                                  " PRIMARY KEY (key, offset)) WITHOUT ROWID",
                                  NULL,
                                  NULL,
                                  NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_test_control(SQLITE_TESTCTRL_IMPOSTER, db, "main", 0, 0), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#define ID_INDEX "sqlite_autoindex_events_1"

static const struct {
    const char *index;
    const char *sql;
    uint64_t offset;
    const char *what;
} deeds[] = {
    { ID_INDEX, "DELETE FROM entries WHERE key = 'e-5'", 5, "not indexed: its id does not lead" },
    { ID_INDEX, "DELETE FROM entries WHERE offset BETWEEN 12 AND 29", 12, "not indexed: its id" },
    { ID_INDEX,
      "UPDATE entries SET offset = 7 WHERE key = 'e-5'",
      5,
      "not indexed: its id leads to" },
    { ID_INDEX, "UPDATE entries SET key = 'e-99' WHERE key = 'e-5'", 5, "not indexed: its id" },
    { ID_INDEX, "INSERT INTO entries VALUES ('stray', 4)", 4, "the index of its id has an entry" },
    { ID_INDEX, "INSERT INTO entries VALUES ('e-3', 8)", 8, "the index of its id has an entry" },
    { ID_INDEX,
      "INSERT INTO entries VALUES ('beyond', 31)",
      31,
      "the index of its id has an entry" },
    { "idx_run_id", "DELETE FROM entries WHERE offset = 6", 6, "not indexed: its run_id" },
    { "idx_kind", "DELETE FROM entries WHERE offset = 9", 9, "not indexed: its kind" },
    { "idx_actor", "UPDATE entries SET key = 'eve' WHERE offset = 3", 3, "not indexed: its actor" },
    { "idx_actor", "INSERT INTO entries VALUES ('eve', 2)", 2, "the index of its actor has" },
};

static void test_an_index_that_lies_is_found_by_offset(void **state)
{
    struct sample *sample = *state;
    char kept[sizeof(sample->path) + 8];

    snprintf(kept, sizeof(kept), "%s.kept", sample->path);
    sample_copy(sample->path, kept);
    for (size_t i = 0; i < COUNT_OF(deeds); i++) {
        pawl_verify_report report = { .size = sizeof(pawl_verify_report) };
        sample_copy(kept, sample->path);
        pawl_ledger *ledger = sample_open(sample, sample->path);
        assert_verifies(sample, ledger, SAMPLE_EVENTS);
        on_index(sample, deeds[i].index, deeds[i].sql);
        pawl_status status = pawl_ledger_verify(ledger, NULL, &report, &sample->err);
        if (status != PAWL_CORRUPT || report.first_bad_offset != deeds[i].offset
            || strstr(report.what, deeds[i].what) != report.what) {
            fail_msg("%s: %s at %llu, '%s'",
                     deeds[i].sql,
                     pawl_status_name(status),
                     (unsigned long long)report.first_bad_offset,
                     report.what);
        }
        pawl_ledger_close(ledger, 0, NULL);
    }
}

/* What such an index leads to: the same event twice. */
static void test_an_id_that_slipped_in_twice_is_found(void **state)
{
    struct sample *sample = *state;
    pawl_verify_report report = { .size = sizeof(pawl_verify_report) };
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_event again = {
        .size = sizeof(pawl_event),
        .id = pawl_view_of("e-5"),
        .run_id = pawl_view_of("r"),
        .kind = pawl_view_of("said"),
        .actor = pawl_view_of("ada"),
        .payload = pawl_view_of("5"),
    };
    pawl_append_result result = PAWL_APPEND_RESULT_INIT;

    on_index(sample, ID_INDEX, "DELETE FROM entries WHERE key = 'e-5'");
    assert_ok(pawl_ledger_append(ledger, &again, &result, &sample->err), &sample->err);
    assert_int_equal(result.offset, SAMPLE_EVENTS + 1); /* nothing cheap could have known */
    assert_int_equal(pawl_ledger_verify(ledger, NULL, &report, &sample->err), PAWL_CORRUPT);
    assert_int_equal(report.first_bad_offset, 5);
    assert_string_equal(report.what, "not indexed: its id leads to offset 31 instead");
    pawl_ledger_close(ledger, 0, NULL);
}

/* To write is refused, to read is not: it may be what saves the events. */
static void test_a_newest_event_without_its_index_keeps_writers_out(void **state)
{
    struct sample *sample = *state;
    pawl_ledger_options options = PAWL_LEDGER_OPTIONS_INIT;
    pawl_ledger *ledger = NULL;

    on_index(sample, ID_INDEX, "DELETE FROM entries WHERE offset = 30");
    assert_int_equal(pawl_ledger_open(sample->path, NULL, &ledger, &sample->err), PAWL_CORRUPT);
    assert_message(&sample->err, "the id of the newest event, at 30");
    options.read_only = true;
    assert_ok(pawl_ledger_open(sample->path, &options, &ledger, &sample->err), &sample->err);
    assert_int_equal(pawl_ledger_verify(ledger, NULL, NULL, &sample->err), PAWL_CORRUPT);
    assert_message(&sample->err, "offset 30: not indexed");
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_an_index_that_was_built_anew_verifies(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger;

    on_index(sample, ID_INDEX, "DELETE FROM entries WHERE offset BETWEEN 5 AND 20");
    sample_sql(sample->path, "REINDEX");
    ledger = sample_open(sample, sample->path);
    assert_verifies(sample, ledger, SAMPLE_EVENTS);
    pawl_ledger_close(ledger, 0, NULL);
}

/* A resumed walk compares what it has walked. */
static void test_a_resumed_walk_compares_the_indexes_from_there_on(void **state)
{
    struct sample *sample = *state;
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    pawl_verify_report report = { .size = sizeof(pawl_verify_report) };
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_event *tenth = NULL;

    assert_ok(pawl_ledger_get(ledger, (pawl_view){ NULL, 0 }, 10, &tenth, &sample->err),
              &sample->err);
    options.from.offset = 10;
    memcpy(options.from.hash, tenth->hash, sizeof(options.from.hash));
    pawl_event_free(tenth);
    assert_ok(pawl_ledger_verify(ledger, &options, &report, &sample->err), &sample->err);
    on_index(sample, "idx_kind", "DELETE FROM entries WHERE offset = 25");
    assert_int_equal(pawl_ledger_verify(ledger, &options, &report, &sample->err), PAWL_CORRUPT);
    assert_int_equal(report.first_bad_offset, 25);
    pawl_ledger_close(ledger, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(test_an_index_that_lies_is_found_by_offset),
        SAMPLE_TEST(test_an_id_that_slipped_in_twice_is_found),
        SAMPLE_TEST(test_a_newest_event_without_its_index_keeps_writers_out),
        SAMPLE_TEST(test_an_index_that_was_built_anew_verifies),
        SAMPLE_TEST(test_a_resumed_walk_compares_the_indexes_from_there_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
