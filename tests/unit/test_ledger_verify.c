/* A ledger that somebody changed behind our back: which offset, and what was done. */
#include "lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sqlite3.h>

#include <pawl/ledger.h>

#include "base/core/buf.h"
#include "base/core/macros.h"
#include "base/core/random.h"
#include "ledger/core/chain.h"
#include "lib/ledger_sample.h"

static void test_what_nobody_touched_verifies(void **state)
{
    struct sample *sample = *state;
    static const char *const locations[] = { NULL, "memory:" };

    for (size_t i = 0; i < COUNT_OF(locations); i++) {
        pawl_ledger *ledger =
            sample_open(sample, locations[i] == NULL ? sample->path : locations[i]);
        if (locations[i] != NULL) {
            assert_verifies(sample, ledger, 0);
            sample_fill(sample, ledger);
        }
        assert_verifies(sample, ledger, SAMPLE_EVENTS);
        pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;
        pawl_ledger_head head = sample_head(sample, ledger);
        pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
        options.expect = &head;
        assert_ok(pawl_ledger_verify(ledger, &options, &report, &sample->err), &sample->err);
        assert_memory_equal(report.verified.hash, head.hash, sizeof(head.hash));
        pawl_ledger_close(ledger, 0, NULL);
    }
}

/* The ledger is open while it happens: what opening would find is another test's. */
static void assert_finds(struct sample *sample, const char *sql, uint64_t offset, const char *what)
{
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_verify_report report = { .size = sizeof(pawl_verify_report) };

    sample_sql(sample->path, sql);
    pawl_status status = pawl_ledger_verify(ledger, NULL, &report, &sample->err);
    if (status != PAWL_CORRUPT || report.first_bad_offset != offset
        || strstr(report.what, what) != report.what) {
        fail_msg("%s: %s at %llu, '%s' instead of %llu, '%s'",
                 sql,
                 pawl_status_name(status),
                 (unsigned long long)report.first_bad_offset,
                 report.what,
                 (unsigned long long)offset,
                 what);
    }
    assert_true(report.verified.offset < offset);
    assert_message(&sample->err, what);
    pawl_ledger_close(ledger, 0, NULL);
}

struct deed {
    const char *sql;
    uint64_t offset;
    const char *what;
};

#define MAKE_ROOM_AT_5                                      \
    "UPDATE events SET offset = -offset WHERE offset >= 5;" \
    "UPDATE events SET offset = 1 - offset WHERE offset < 0;"
#define FORGE(offset, hash)                                                               \
    "INSERT INTO events VALUES (" offset ",'forged','r',0,'said','ada','{}','2026-01-01 " \
    "00:00:00.000000',1," hash ");"
#define SWAP(a, b)                                           \
    "UPDATE events SET offset = -1 WHERE offset = " a ";"    \
    "UPDATE events SET offset = " a " WHERE offset = " b ";" \
    "UPDATE events SET offset = " b " WHERE offset = -1;"

static const struct deed deeds[] = {
    { "UPDATE events SET payload = '{\"n\":0}' WHERE offset = 5", 5, "changed: its content" },
    { "UPDATE events SET payload = payload || ' ' WHERE offset = 1", 1, "changed: its content" },
    { "UPDATE events SET payload = '' WHERE offset = 30", 30, "changed" },
    { "UPDATE events SET id = 'e-99' WHERE offset = 5", 5, "changed: its content" },
    { "UPDATE events SET run_id = 's' WHERE offset = 5", 5, "changed: its content" },
    { "UPDATE events SET turn = 1 WHERE offset = 5", 5, "changed: its content" },
    { "UPDATE events SET kind = 'says' WHERE offset = 5", 5, "changed: its content" },
    { "UPDATE events SET actor = 'eve' WHERE offset = 5", 5, "changed: its content" },
    { "UPDATE events SET schema_version = 2 WHERE offset = 5", 5, "changed: its content" },
    { "UPDATE events SET created_at = '2020-01-01 00:00:00.000000' WHERE offset = 5",
      5,
      "changed: its content" },
    { "UPDATE events SET turn = turn || 'x' WHERE offset = 5",
      5,
      "turn of offset 5 is not stored" },
    { "UPDATE events SET schema_version = '1x' WHERE offset = 5", 5, "schema_version of" },
    { "UPDATE events SET id = CAST(id AS BLOB) WHERE offset = 5", 5, "id of offset 5" },
    { "UPDATE events SET actor = CAST(actor AS BLOB) WHERE offset = 5", 5, "actor of offset 5" },
    { "UPDATE events SET payload = CAST(payload AS BLOB) WHERE offset = 5",
      5,
      "payload of offset 5" },
    { "UPDATE events SET created_at = 'yesterday' WHERE offset = 5", 5, "created_at" },
    { "UPDATE events SET created_at = replace(created_at, ' ', 'T') || 'Z' WHERE offset = 5",
      5,
      "created_at" },
    { "UPDATE events SET id = 'sai', kind = 'de-5' WHERE offset = 5", 5, "changed: its content" },
    { "UPDATE events SET hash = zeroblob(32) WHERE offset = 5", 5, "changed: its hash" },
    { "UPDATE events SET hash = zeroblob(32) WHERE offset = 30", 30, "changed" },
    { "UPDATE events SET hash = zeroblob(31) WHERE offset = 5", 5, "the hash" },
    { "UPDATE events SET hash = zeroblob(31) WHERE offset = 30", 30, "the hash" },
    { "UPDATE events SET hash = (SELECT hash FROM events WHERE offset = 6) WHERE offset = 5",
      5,
      "changed: its hash" },
    { "DELETE FROM events WHERE offset = 1", 1, "removed" },
    { "DELETE FROM events WHERE offset = 5", 5, "removed" },
    { "DELETE FROM events WHERE offset BETWEEN 5 AND 8", 5, "removed" },
    { "DELETE FROM events WHERE offset = 5;"
      "UPDATE events SET offset = offset - 1 WHERE offset > 5",
      5,
      "removed: 1 gone" },
    { "DELETE FROM events WHERE offset BETWEEN 5 AND 7;"
      "UPDATE events SET offset = offset - 3 WHERE offset > 5",
      5,
      "removed: 3 gone" },
    { "DELETE FROM events WHERE offset = 30", 30, "cut off" },
    { "DELETE FROM events WHERE offset > 20", 21, "cut off" },
    { "DELETE FROM events", 1, "cut off" },
    { MAKE_ROOM_AT_5 FORGE("5", "zeroblob(32)"), 5, "inserted" },
    { FORGE("31", "zeroblob(32)"), 31, "changed" },
    { FORGE("33", "zeroblob(32)"), 31, "removed" },
    { FORGE("0", "zeroblob(32)"), 1, "inserted" },
    { FORGE("-7", "zeroblob(32)"), 1, "inserted" },
    { SWAP("5", "9"), 5, "reordered: the event that stood here is at offset 9" },
    { SWAP("5", "6"), 5, "reordered" },
    { SWAP("29", "30"), 29, "reordered" },
    { SWAP("1", "30"), 1, "reordered" },
    { "UPDATE events SET payload = CASE offset WHEN 5 THEN '6' ELSE '5' END WHERE offset IN (5, 6)",
      5,
      "changed" },
};

/* A second copy of file and anchor, to begin each deed with. */
static void keep(struct sample *sample)
{
    char name[sizeof(sample->anchor) + 8];

    snprintf(name, sizeof(name), "%s.kept", sample->path);
    sample_copy(sample->path, name);
    snprintf(name, sizeof(name), "%s.kept", sample->anchor);
    sample_copy(sample->anchor, name);
}

static void put_back(struct sample *sample)
{
    char name[sizeof(sample->anchor) + 8];

    snprintf(name, sizeof(name), "%s-wal", sample->path);
    assert_true(access(name, F_OK) != 0); /* the last one to close takes it along */
    snprintf(name, sizeof(name), "%s.kept", sample->path);
    sample_copy(name, sample->path);
    snprintf(name, sizeof(name), "%s.kept", sample->anchor);
    sample_copy(name, sample->anchor);
}

static void test_every_deed_is_found_where_it_was_done(void **state)
{
    struct sample *sample = *state;

    keep(sample);
    for (size_t i = 0; i < COUNT_OF(deeds); i++) {
        put_back(sample);
        assert_finds(sample, deeds[i].sql, deeds[i].offset, deeds[i].what);
    }
}

static const struct deed turn_deeds[] = {
    { "UPDATE turns SET state = 1 WHERE state = 2", 18, "changed" },
    { "UPDATE turns SET state = 2 WHERE turn = 1", 15, "changed" },
    { "UPDATE turns SET state = 0, end_offset = 0 WHERE turn = 1", 15, "changed" },
    { "UPDATE turns SET state = 0 WHERE turn = 1", 11, "changed" },
    { "UPDATE turns SET state = 1, end_offset = 23 WHERE turn = 3", 23, "changed" },
    { "UPDATE turns SET state = 1 WHERE turn = 3", 22, "changed" },
    { "UPDATE turns SET begin_offset = 10 WHERE turn = 1", 10, "changed" },
    { "UPDATE turns SET attempt = 7 WHERE turn = 2 AND attempt = 2", 19, "changed" },
    { "UPDATE turns SET turn = 9 WHERE turn = 1", 11, "changed" },
    { "UPDATE turns SET run_id = 's' WHERE turn = 1", 11, "changed" },
    { "DELETE FROM turns", 11, "changed" },
    { "DELETE FROM turns WHERE turn = 3", 22, "changed" },
    { "INSERT INTO turns VALUES ('r', 4, 1, 1, 7, 9)", 7, "changed" },
};

static void test_rows_of_turns_must_say_what_the_events_say(void **state)
{
    struct sample *sample = *state;

    keep(sample);
    for (size_t i = 0; i < COUNT_OF(turn_deeds); i++) {
        pawl_verify_report report = { .size = sizeof(pawl_verify_report) };
        put_back(sample);
        pawl_ledger *ledger = sample_open(sample, sample->path);
        sample_sql(sample->path, turn_deeds[i].sql);
        assert_int_equal(pawl_ledger_verify(ledger, NULL, &report, NULL), PAWL_CORRUPT);
        if (report.first_bad_offset != turn_deeds[i].offset) {
            fail_msg("%s: %llu", turn_deeds[i].sql, (unsigned long long)report.first_bad_offset);
        }
        assert_int_equal(report.verified.offset, SAMPLE_EVENTS);
        pawl_ledger_close(ledger, 0, NULL);
    }
}

/* --- somebody who knows the hash --- */

/* Writes the hashes of offsets first .. last anew, as a forger would who has read chain.c. */
static void hash_again(struct sample *sample, pawl_ledger *ledger, uint64_t first, uint64_t last)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *get = NULL;
    sqlite3_stmt *put = NULL;

    assert_int_equal(sqlite3_open(sample->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT hash FROM events WHERE offset = ?", -1, &get, NULL),
        SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "UPDATE events SET hash = ? WHERE offset = ?", -1, &put, NULL),
        SQLITE_OK);
    for (uint64_t offset = first; offset <= last; offset++) {
        pawl_ledger_head head = { .offset = offset - 1 };
        pawl_event *event = NULL;
        sqlite3_bind_int64(get, 1, (sqlite3_int64)offset - 1);
        if (sqlite3_step(get) == SQLITE_ROW) {
            memcpy(head.hash, sqlite3_column_blob(get, 0), sizeof(head.hash));
        }
        sqlite3_reset(get);
        assert_ok(pawl_ledger_get(ledger, (pawl_view){ NULL, 0 }, offset, &event, &sample->err),
                  &sample->err);
        assert_ok(pawl__ledger_chain_extend(&head, event, &sample->err), &sample->err);
        pawl_event_free(event);
        sqlite3_bind_blob(put, 1, head.hash, sizeof(head.hash), SQLITE_TRANSIENT);
        sqlite3_bind_int64(put, 2, (sqlite3_int64)offset);
        assert_int_equal(sqlite3_step(put), SQLITE_DONE);
        sqlite3_reset(put);
    }
    sqlite3_finalize(get);
    sqlite3_finalize(put);
    sqlite3_close(db);
}

static void test_an_inserted_event_with_a_good_hash_is_found_itself(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;

    sample_sql(sample->path, MAKE_ROOM_AT_5 FORGE("5", "zeroblob(32)"));
    hash_again(sample, ledger, 5, 5);
    assert_status(
        pawl_ledger_verify(ledger, NULL, &report, &sample->err), PAWL_CORRUPT, &sample->err);
    assert_int_equal(report.first_bad_offset, 5);
    assert_int_equal(report.verified.offset, 4);
    assert_message(&sample->err, "inserted: the event that stood here is at offset 6");
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_chain_that_was_written_anew_is_not_the_anchored_one(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_ledger_head noted = sample_head(sample, ledger);
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;

    sample_sql(sample->path, "UPDATE events SET payload = '{\"n\":0}' WHERE offset = 5");
    hash_again(sample, ledger, 5, SAMPLE_EVENTS);
    assert_status(
        pawl_ledger_verify(ledger, NULL, &report, &sample->err), PAWL_CORRUPT, &sample->err);
    assert_int_equal(report.first_bad_offset, SAMPLE_EVENTS);
    assert_message(&sample->err, "its anchor has another hash");

    /* Who takes the anchor away, too, is found by a head that was noted elsewhere. */
    assert_int_equal(unlink(sample->anchor), 0);
    assert_verifies(sample, ledger, SAMPLE_EVENTS);
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    options.expect = &noted;
    assert_status(
        pawl_ledger_verify(ledger, &options, &report, &sample->err), PAWL_CORRUPT, &sample->err);
    assert_int_equal(report.first_bad_offset, SAMPLE_EVENTS);
    assert_message(&sample->err, "the expected head has another hash");
    pawl_ledger_close(ledger, 0, NULL);
}

/* --- expect, resume, progress --- */

static pawl_ledger_head head_at(struct sample *sample, pawl_ledger *ledger, uint64_t offset)
{
    pawl_event *event = NULL;
    pawl_ledger_head head = { .offset = offset };

    assert_ok(pawl_ledger_get(ledger, (pawl_view){ NULL, 0 }, offset, &event, &sample->err),
              &sample->err);
    memcpy(head.hash, event->hash, sizeof(head.hash));
    pawl_event_free(event);
    return head;
}

static void test_an_expected_head_may_be_anywhere_in_the_chain(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    pawl_ledger_head expected = head_at(sample, ledger, 12);
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;

    options.expect = &expected;
    assert_ok(pawl_ledger_verify(ledger, &options, &report, &sample->err), &sample->err);
    options.from = head_at(sample, ledger, 20); /* behind it: it is looked up */
    assert_ok(pawl_ledger_verify(ledger, &options, &report, &sample->err), &sample->err);

    expected.hash[7] ^= 1;
    assert_int_equal(pawl_ledger_verify(ledger, &options, &report, NULL), PAWL_CORRUPT);
    assert_int_equal(report.first_bad_offset, 12);
    options.from = (pawl_ledger_head){ 0 };
    assert_int_equal(pawl_ledger_verify(ledger, &options, &report, NULL), PAWL_CORRUPT);
    assert_int_equal(report.first_bad_offset, 12);
    assert_int_equal(report.verified.offset, 11);

    expected = sample_head(sample, ledger);
    expected.offset = SAMPLE_EVENTS + 5;
    assert_status(
        pawl_ledger_verify(ledger, &options, &report, &sample->err), PAWL_CORRUPT, &sample->err);
    assert_int_equal(report.first_bad_offset, SAMPLE_EVENTS + 1);
    assert_int_equal(report.verified.offset, SAMPLE_EVENTS);
    assert_message(&sample->err, "cut off: the log ends at offset 30, the expected head is at 35");
    pawl_ledger_close(ledger, 0, NULL);
}

struct seen {
    uint64_t done;
    uint64_t total;
    int calls;
    int stop_at;
};

static bool see(void *context, uint64_t done, uint64_t total)
{
    struct seen *seen = context;

    assert_true(done > seen->done && done <= total);
    seen->done = done;
    seen->total = total;
    return ++seen->calls != seen->stop_at;
}

static void test_a_cancelled_walk_goes_on_where_it_stopped(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    struct seen seen = { .stop_at = 1 };
    pawl_verify_report report = { .size = sizeof(pawl_verify_report) };
    int last = 5000;

    sample_append(sample, ledger, SAMPLE_EVENTS + 1, last);
    const pawl_watch watch = { sizeof(pawl_watch), see, &seen };
    options.watch = &watch;
    assert_status(
        pawl_ledger_verify(ledger, &options, &report, &sample->err), PAWL_CANCELLED, &sample->err);
    assert_int_equal(report.verified.offset, seen.done);
    assert_in_range(seen.done, 1, last - 1);
    assert_int_equal(seen.total, last);

    options.from = report.verified;
    seen = (struct seen){ .done = report.verified.offset };
    assert_ok(pawl_ledger_verify(ledger, &options, &report, &sample->err), &sample->err);
    assert_int_equal(report.verified.offset, last);
    assert_int_equal(seen.done, last);

    /* From the end there is nothing to walk, and a head that is not in the log is no beginning. */
    options.from = report.verified;
    options.watch = NULL;
    assert_ok(pawl_ledger_verify(ledger, &options, &report, &sample->err), &sample->err);
    options.from.hash[0] ^= 1;
    assert_int_equal(pawl_ledger_verify(ledger, &options, &report, NULL), PAWL_CORRUPT);
    assert_int_equal(report.first_bad_offset, last);
    assert_int_equal(report.verified.offset, 0);
    options.from.offset = (uint64_t)last + 3;
    assert_int_equal(pawl_ledger_verify(ledger, &options, &report, NULL), PAWL_CORRUPT);
    assert_int_equal(report.first_bad_offset, last + 1);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_a_resumed_walk_finds_what_is_behind_its_beginning(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;

    for (uint64_t from = 1; from < SAMPLE_EVENTS; from++) { /* the turns, too, from anywhere */
        options.from = head_at(sample, ledger, from);
        assert_ok(pawl_ledger_verify(ledger, &options, &report, &sample->err), &sample->err);
    }
    options.from = head_at(sample, ledger, 20);
    sample_sql(sample->path, "UPDATE events SET actor = 'eve' WHERE offset = 25");
    assert_int_equal(pawl_ledger_verify(ledger, &options, &report, NULL), PAWL_CORRUPT);
    assert_int_equal(report.first_bad_offset, 25);
    assert_int_equal(report.verified.offset, 24);
    pawl_ledger_close(ledger, 0, NULL);
}

static void test_bad_arguments_are_refused_and_leave_the_report_alone(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);
    pawl_verify_options options = PAWL_VERIFY_OPTIONS_INIT;
    pawl_verify_report report = { .size = sizeof(pawl_verify_report), .first_bad_offset = 77 };

    options.size = sizeof(options) + 1;
    assert_int_equal(pawl_ledger_verify(ledger, &options, &report, NULL), PAWL_INVALID);
    assert_int_equal(pawl_ledger_verify(NULL, NULL, &report, NULL), PAWL_INVALID);
    assert_int_equal(report.first_bad_offset, 77);
    assert_ok(pawl_ledger_verify(ledger, NULL, NULL, &sample->err), &sample->err);
    pawl_ledger_close(ledger, 0, NULL);
}

/* --- the file itself --- */

static void test_a_flipped_bit_in_a_payload_is_found_at_its_offset(void **state)
{
    struct sample *sample = *state;
    size_t size;
    char *bytes = file_read(sample->path, &size);
    pawl_verify_report report = PAWL_VERIFY_REPORT_INIT;

    bytes[sample_find(bytes, size, "marker-0007")] ^= 4;
    file_write(sample->path, bytes, size);
    free(bytes);
    pawl_ledger *ledger = sample_open(sample, sample->path); /* SQLite itself sees nothing */
    assert_int_equal(pawl_ledger_verify(ledger, NULL, &report, NULL), PAWL_CORRUPT);
    assert_int_equal(report.first_bad_offset, 7);
    pawl_ledger_close(ledger, 0, NULL);
}

/* Everything that a reader gets, as text. */
static void add_all(struct sample *sample, pawl_ledger *ledger, struct pawl__buf *text)
{
    pawl_reader *reader = NULL;
    const pawl_event *event = NULL;

    assert_ok(pawl_reader_open(ledger, NULL, &reader, &sample->err), &sample->err);
    while (pawl_reader_next(reader, &event, &sample->err) == PAWL_OK) {
        pawl__buf_add_format(text,
                             "%llu %lld %lld %lld ",
                             (unsigned long long)event->offset,
                             (long long)event->turn,
                             (long long)event->created_at_us,
                             (long long)event->schema_version);
        pawl__buf_add(text, event->id);
        pawl__buf_add(text, event->run_id);
        pawl__buf_add(text, event->kind);
        pawl__buf_add(text, event->actor);
        pawl__buf_add(text, event->payload);
    }
    pawl_reader_free(reader);
}

static void test_what_verifies_is_what_was_written_wherever_a_bit_flips(void **state)
{
    struct sample *sample = *state;
    struct pawl__prng random = pawl__prng_seeded(20260129);
    struct pawl__buf original = BUF_INIT(1 << 20);
    struct pawl__buf found = BUF_INIT(1 << 20);
    size_t size;
    char *bytes = file_read(sample->path, &size);
    int caught = 0;

    pawl_ledger *ledger = sample_open(sample, sample->path);
    add_all(sample, ledger, &original);
    pawl_ledger_close(ledger, 0, NULL);
    for (int round = 0; round < 300; round++) {
        size_t at = pawl__prng_below(&random, size);
        char bit = (char)(1 << pawl__prng_below(&random, 8));
        bytes[at] ^= bit;
        file_write(sample->path, bytes, size);
        bytes[at] ^= bit;
        pawl_status status = pawl_ledger_open(sample->path, NULL, &ledger, &sample->err);
        if (status == PAWL_OK) {
            status = pawl_ledger_verify(ledger, NULL, NULL, &sample->err);
            if (status == PAWL_OK) {
                pawl__buf_clear(&found);
                add_all(sample, ledger, &found);
                assert_true(pawl__view_equal(pawl__buf_view(&found), pawl__buf_view(&original)));
            }
            pawl_ledger_close(ledger, 0, NULL);
        }
        caught += status != PAWL_OK;
        if (status != PAWL_OK && status != PAWL_CORRUPT && status != PAWL_INVALID
            && status != PAWL_UNSUPPORTED) {
            fail_msg("byte %zu: %s: %s", at, pawl_status_name(status), sample->err.message);
        }
    }
    assert_in_range(caught, 5, 295);
    free(bytes);
    pawl__buf_done(&original);
    pawl__buf_done(&found);
}

/* Reads all with a filter or without, and returns how that ended. */
static pawl_status read_all(struct sample *sample, pawl_ledger *ledger, const char *actor)
{
    pawl_event_filter filter = PAWL_EVENT_FILTER_INIT;
    pawl_reader_options options = PAWL_READER_OPTIONS_INIT;
    pawl_reader *reader = NULL;
    const pawl_event *event = NULL;
    pawl_status status;

    filter.actor = pawl_view_of(actor);
    options.filter = actor == NULL ? NULL : &filter;
    assert_ok(pawl_reader_open(ledger, &options, &reader, &sample->err), &sample->err);
    do {
        status = pawl_reader_next(reader, &event, &sample->err);
    } while (status == PAWL_OK);
    pawl_reader_free(reader);
    return status;
}

static void test_a_reader_does_not_pass_over_an_event_that_is_gone(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);

    sample_sql(sample->path, "DELETE FROM events WHERE offset = 5");
    assert_status(read_all(sample, ledger, NULL), PAWL_CORRUPT, &sample->err);
    assert_message(&sample->err, "offset 5 is missing");
    pawl_ledger_close(ledger, 0, NULL);
}

/* Window after window up to 2^62 would take years, with a filter as well as without. */
static void test_a_reader_ends_where_the_log_does_however_far_the_head_is(void **state)
{
    struct sample *sample = *state;
    pawl_ledger *ledger = sample_open(sample, sample->path);

    sample_sql(sample->path, "UPDATE events SET offset = 4611686018427387904 WHERE offset = 30");
    assert_status(read_all(sample, ledger, NULL), PAWL_CORRUPT, &sample->err);
    assert_message(&sample->err, "offset 30 is missing");
    assert_status(read_all(sample, ledger, "nobody"), PAWL_CORRUPT, &sample->err);
    pawl_ledger_close(ledger, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(test_what_nobody_touched_verifies),
        SAMPLE_TEST(test_every_deed_is_found_where_it_was_done),
        SAMPLE_TEST(test_rows_of_turns_must_say_what_the_events_say),
        SAMPLE_TEST(test_an_inserted_event_with_a_good_hash_is_found_itself),
        SAMPLE_TEST(test_a_chain_that_was_written_anew_is_not_the_anchored_one),
        SAMPLE_TEST(test_an_expected_head_may_be_anywhere_in_the_chain),
        SAMPLE_TEST(test_a_cancelled_walk_goes_on_where_it_stopped),
        SAMPLE_TEST(test_a_resumed_walk_finds_what_is_behind_its_beginning),
        SAMPLE_TEST(test_bad_arguments_are_refused_and_leave_the_report_alone),
        SAMPLE_TEST(test_a_flipped_bit_in_a_payload_is_found_at_its_offset),
        SAMPLE_TEST(test_what_verifies_is_what_was_written_wherever_a_bit_flips),
        SAMPLE_TEST(test_a_reader_does_not_pass_over_an_event_that_is_gone),
        SAMPLE_TEST(test_a_reader_ends_where_the_log_does_however_far_the_head_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
